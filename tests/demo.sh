#!/usr/bin/env bash
# `dpinfer demo` on the model and the documents of the source tree: tests/demo.sh DPINFER
set -uo pipefail
dpinfer=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

fail() {
    echo "demo: $*"
    failures=$((failures + 1))
}

"$dpinfer" demo >"$work/out" 2>"$work/err" || fail "exit code $?: $(cat "$work/err")"
[ ! -s "$work/err" ] || fail "stderr: $(cat "$work/err")"
for line in 'Public: ' 'Private, epsilon 1: ' 'Private, epsilon 10: ' 'Not private: ' 'Cost' \
    'Private, epsilon 10  (10, 1e-06)-DP' 'Not private          NONE'; do
    grep -qF "$line" "$work/out" || fail "no line '$line'"
done
# Words of a discharge sheet, in each of the four texts and the document.
[ "$(grep -c '^  | ' "$work/out")" -ge 25 ] || fail "hardly any text"
grep -q $'\033' "$work/out" && fail "colours in a file"
[ "$(awk '{ print length }' "$work/out" | sort -n | tail -1)" -le 100 ] || fail "a line too long"

# Nothing is read from where the program is run, and a copy without its files says what is missing.
mkdir -p "$work/bin"
cp "$dpinfer" "$work/bin/dpinfer"
"$work/bin/dpinfer" demo >"$work/out" 2>"$work/err"
code=$?
[ $code -eq 3 ] || fail "without a model: exit code $code"
grep -q 'no models/dpinfer-4m-q8_0.gguf in ' "$work/err" || fail "without a model: $(cat "$work/err")"

[ $failures -eq 0 ] && echo "demo: passed"
exit $((failures > 0))
