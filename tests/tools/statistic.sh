#!/usr/bin/env bash
# Statistics from outside: statistic.sh path/to/dpinfer
# A mechanism that is one file is in help, completion, plan, statement, ledger, report and verify.
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/cli_support.sh"
{ echo text; for i in 1 2 3 4 5 6; do echo "Case $i with Fever, fever."; done; echo "none"; } >r.csv
how="word_count r.csv --word fever --delta 1e-3"

# ---- What is refused, before anything is charged ---------------------------------------------
works ledger init year --dataset all --epsilon 3 --delta 1e-3
refuse_each 2 statistic <<'END'
                                     | no NAME of a statistic
word_counts r.csv                    | did you mean word_count?
counts r.csv                         | 'counts' is not a statistic
word_count                           | no RECORDS given
word_count r.csv                     | --word: found none
word_count r.csv --word a --word b   | --word is given more than once
word_count r.csv --word a,b          | --word: found 'a,b', allowed are letters
word_count r.csv --word a --epsilon 0 | epsilon is '0', must be 0 < x <= 1e+06
word_count r.csv --word a --delta .2 | --delta: found 0.2
word_count r.csv --word a --plan     | --plan reads no RECORDS
word_count r.csv --word a --records 5 | --records N needs --plan
word_count r.csv --word a --seed 1 --ledger year | seed: not with a ledger
word_count r.csv --word a --dataset all | --dataset needs --ledger
END
fails 4 statistic word_count nothing.csv --word a
fails 6 statistic $how --epsilon 9 --ledger year -o n.txt --report n.json
expect_none n.txt n.json
works ledger show year --json; expect_out '"n_charges": 0'

# ---- What it gives ---------------------------------------------------------------------------
works statistic word_count --plan --records 100 --word fever --epsilon 2
expect_empty_out; expect_err "  word               fever"
works statistic $how --seed 1 --epsilon 1000000 # noise of variance 1/16 is 0 but for once in 3,000
expect_out "6	records with 'fever'"; expect_err "NOT PRIVATE"
works statistic $how --epsilon 2 --ledger year -o n.json --report r.json --report r.html
check "the number" grep -q "\"records with 'fever'\": " n.json
check "the page" grep -q fever r.html
works ledger show year; expect_out "word_count"; expect_out "1 count, "
works verify r.json --output n.json --ledger year; expect_out PRIVATE
sed 's/"fever"/"cough"/' r.json >forged.json
fails 1 verify forged.json; expect_out WRONG
works statistic -h; expect_out "  word_count  " "--word TEXT " "word_count: PUBLIC: "
finish
