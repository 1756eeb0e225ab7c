#!/usr/bin/env bash
# examples/release.c writes a text for each batch and the statement: example.sh path/to/release
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
OMP_WAIT_POLICY=passive "$1" "$root/models/dpinfer-4m-q8_0.gguf" "$root/examples/refs/discharge" 8 \
    >"$dir/out" 2>"$dir/err" || { cat "$dir/err"; exit 1; }
failed=0
expect() { grep -qF -- "$2" "$dir/$1" || { echo "example: no '$2' on $1"; failed=1; }; }
expect err "Privacy statement"
expect err "one record = one .txt file"
expect err "texts              8"
[ "$(wc -w <"$dir/out")" -gt 400 ] || { echo "example: hardly any text"; failed=1; }
"$1" none none 8 >"$dir/out" 2>"$dir/err" && {
    echo "example: no model, and it went well"
    failed=1
}
expect err "none"
[ $failed -eq 0 ] && echo "6 passed, 0 failed"
exit $failed
