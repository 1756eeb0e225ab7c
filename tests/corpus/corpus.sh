#!/usr/bin/env bash
# Tests of dpinfer-corpus from outside: corpus.sh path/to/dpinfer-corpus
# The records in examples/refs are written again, byte for byte, and read.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/tools/cli_support.sh"
examples=$root/examples
for domain in discharge ticket; do
    mkdir $domain
    make=(make --domain $domain --law private --split heldout -n 64 --seed 2026)
    run "${make[@]}" --dir $domain --attributes $domain.jsonl; expect_rc 0
    check "records of $domain" diff -r "$examples/refs/$domain" $domain
    expect_same "$examples/attributes/$domain.jsonl" $domain.jsonl
    run "${make[@]}" -o $domain.text; expect_rc 0
    run read $domain.text; expect_rc 0
    check "all of $domain is well-formed" test "$(grep -c '"well_formed":true' out)" = 64
    check "attributes read from $domain" diff <(sed 's/.*"attributes"://' $domain.jsonl) \
        <(sed 's/.*"attributes"://' out)
done
for more in "" "--split heldout" "--split heldout --new-names"; do
    # shellcheck disable=SC2086
    run examples -n 20 --seed 4 $more; expect_rc 0
    check "20 examples" test "$(grep -c '^{"user":".*","assistant":".*"}$' out)" = 20
    cat out >>all
done
check "splits differ" test "$(sort -u all | wc -l)" = 60

printf '{"text":"a\\u0000b"}\n' >nul # noise may be a NUL
run read nul; expect_out '"sentences":0'

refuse 1 "no such command: walk" walk
refuse 1 "--domain: allowed are" make --domain novel
refuse 1 "--law: allowed are" make --domain court --law common
refuse 1 "--split: allowed are" make --domain court --split test
refuse 1 "--dir and --attributes go together" make --domain court --dir "$dir"
refuse 1 "whole numbers" make --domain court -n many
refuse 1 "no JSON object" read "$examples/README.md"
refuse 1 "No such file" read nothing
finish
