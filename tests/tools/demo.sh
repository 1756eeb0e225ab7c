#!/usr/bin/env bash
# Tests of `dpinfer demo` on the model and the documents of the source tree: demo.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"

run demo; expect_rc 0; check "stderr is not empty" test ! -s err
for line in 'Public: ' 'Private, epsilon 1: ' 'Private, epsilon 10: ' 'Not private: ' 'Cost' \
    'Private, epsilon 10  (10, 1e-06)-DP' 'Not private          NONE'; do
    expect_out "$line"
done
# Words of a discharge sheet, in each of the four texts and the document.
check "hardly any text" test "$(grep -c '^  | ' out)" -ge 25
check "colours in a file" test "$(grep -c $'\033' out)" -eq 0
check "a line too long" test "$(awk '{ print length }' out | sort -n | tail -1)" -le 100

# Nothing is read from where the program is run, and a copy without its files says what is missing.
mkdir bin
cp "$dpinfer" bin/dpinfer
dpinfer=bin/dpinfer
run demo; expect_rc 3; expect_err 'no models/dpinfer-4m-q8_0.gguf in '

finish
