#!/usr/bin/env bash
# examples/hospital/run.sh with few letters, and what it leaves: hospital.sh path/to/dpinfer SOURCE
# BUILD
source=$2 build=$3
. "$(dirname "$0")/cli_support.sh"
if ! command -v ssh-keygen >/dev/null; then
    echo "skipped: no ssh-keygen"
    exit 77
fi
BUILD=$build "$source/examples/hospital/run.sh" 240 100 8 24 >out 2>err
rc=$?
last="examples/hospital/run.sh"
expect_rc 0
expect_out "the run has ended with exit code 143" # at night; what follows is of the next morning
expect_out "signed with the key"
expect_err "would fit"
cd hospital-job || exit 1
: >err
last="what it leaves"
expect_lines 8 texts.jsonl
check "a text is not private" test "$(grep -c '"private":true' texts.jsonl)" -eq 8
check "a department that is none" \
    test "$(grep -oE '"text_label":"[a-z_]+"' texts.jsonl | cut -d '"' -f 4 |
        grep -cxFf departments.txt)" -eq 8
check "labels in the report" grep -q '"labels": "private"' report.json
check "the histogram in the report" grep -q '"variance": 25600' report.json
check "the page" grep -q 'St Elsewhere Hospital' report.html
check "the hash on the page" grep -q "$(sha256sum texts.jsonl | cut -c 1-64)" report.html
check "M in the report" grep -q '"M": 4' report.json
check "a refused job wrote" test ! -e again.jsonl
run ledger budget year.ledger --json
check "one job was charged" test "$(field n_charges)" -eq 1
run verify report.json --output texts.jsonl --key key.pub; expect_rc 0
# The letters are the same ones each time, each patient's are several, of twelve departments.
BUILD=$build "$source/examples/hospital/letters.sh" 240 100 >again.csv
expect_same letters.csv again.csv
last="letters.csv"
grep -oE '^[0-9]+,P[0-9]+,[a-z_]+' letters.csv >heads
check "240 letters" test "$(wc -l <heads)" -eq 240
check "patients with several" test "$(cut -d , -f 2 heads | sort | uniq -d | wc -l)" -gt 50
check "twelve departments" test "$(cut -d , -f 3 heads | sort -u | wc -l)" -eq 12
finish
