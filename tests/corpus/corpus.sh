#!/usr/bin/env bash
# Tests of dpinfer-corpus from outside: corpus.sh path/to/dpinfer-corpus
# The records in examples/refs are written again, byte for byte, and read.
set -u
export LC_ALL=C
corpus=$(readlink -f "$1")
examples=$(cd "$(dirname "$0")/../../examples" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
try() {
    local what=$1
    shift
    "$@" >"$dir/log" 2>&1 || { echo "corpus: $what"; cat "$dir/log"; failed=1; }
}
refuse() {
    local message=$1
    shift
    if "$corpus" "$@" >"$dir/out" 2>"$dir/err"; then
        echo "corpus: not refused: $*"; failed=1
    elif ! grep -qF -- "$message" "$dir/err"; then
        echo "corpus: '$message' expected for: $*"; cat "$dir/err"; failed=1
    fi
}

for domain in discharge ticket; do
    mkdir "$dir/$domain"
    try "make $domain" "$corpus" make --domain $domain --law private --split heldout -n 64 \
        --seed 2026 --dir "$dir/$domain" --attributes "$dir/$domain.jsonl"
    try "records of $domain" diff -r "$examples/refs/$domain" "$dir/$domain"
    try "attributes of $domain" diff "$examples/attributes/$domain.jsonl" "$dir/$domain.jsonl"
    try "read $domain" "$corpus" make --domain $domain --law private --split heldout -n 64 \
        --seed 2026 -o "$dir/$domain.text"
    "$corpus" read "$dir/$domain.text" >"$dir/$domain.read"
    try "all of $domain is well-formed" \
        test "$(grep -c '"well_formed":true' "$dir/$domain.read")" = 64
    try "attributes read from $domain" diff \
        <(sed 's/.*"attributes"://' "$examples/attributes/$domain.jsonl") \
        <(sed 's/.*"attributes"://' "$dir/$domain.read")
done
"$corpus" examples -n 20 --seed 4 >"$dir/a"
"$corpus" examples -n 20 --seed 4 --split heldout >"$dir/b"
"$corpus" examples -n 20 --seed 4 --split heldout --new-names >"$dir/c"
try "20 examples" test "$(grep -c '^{"user":".*","assistant":".*"}$' "$dir/a")" = 20
try "splits differ" test "$(sort "$dir/a" "$dir/b" "$dir/c" | uniq | wc -l)" = 60

printf '{"text":"a\\u0000b"}\n' >"$dir/nul" # noise may be a NUL
try "a text with a NUL is none" grep -q '"sentences":0' <("$corpus" read "$dir/nul")

refuse "no such command: walk" walk
refuse "--domain: allowed are" make --domain novel
refuse "--law: allowed are" make --domain court --law common
refuse "--split: allowed are" make --domain court --split test
refuse "--dir and --attributes go together" make --domain court --dir "$dir"
refuse "whole numbers" make --domain court -n many
refuse "no JSON object" read "$examples/README.md"
refuse "No such file" read "$dir/nothing"
exit $failed
