#!/usr/bin/env bash
# run.sh [LETTERS PATIENTS TEXTS TOKENS]: a hospital's job from beginning to end, on made-up
# letters.
#
# 5,000 discharge letters lie in a CSV, several of a patient, from twelve departments. The hospital
# wants new letters in the departments' proportions to test a system with. Each patient is protected
# with epsilon 5 in this job, and with 10 in the whole year. The server is stopped at night. The
# data protection officer gets a report to check.
#
# It works in the folder that it is started from, next to build/ (or BUILD) and models/ (or MODEL),
# and writes into hospital-job/. With the built-in model it takes some minutes.
set -euo pipefail
letters=${1:-5000} patients=${2:-2000} texts=${3:-500} tokens=${4:-200}
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${BUILD:-$source/build}" && pwd)
model=${MODEL:-$source/models/dpinfer-4m-q8_0.gguf}
dpinfer=$build/dpinfer
mkdir hospital-job && cd hospital-job
say() { printf '\n== %s\n' "$*"; }

say "The letters: $letters, of $patients patients"
BUILD=$build "$source/examples/hospital/letters.sh" "$letters" "$patients" >letters.csv
head -n 2 letters.csv | cut -c 1-100

# A ledger holds the budget of the dataset for the year. All jobs about these patients are charged
# to it.
say "The budget of the year: epsilon 10 at delta 1e-5"
"$dpinfer" ledger init year.ledger --dataset "discharge letters 2026" --epsilon 10 --delta 1e-5

# Before a letter is read: what would so many texts be worth? C says how far letters may move a
# word. A factor below 10 means that they are hardly heard.
say "What the budget buys"
"$dpinfer" plan --suggest --units "$patients" --num "$texts" -n "$tokens" --epsilon 5 --delta 1e-5

# All letters of a patient are protected together, at most four of them are used, and they count as
# one. The public prompt says what is wanted, with nothing in it that came from a letter. Which
# patient was in which department is a secret: departments are named here, not read from the file;
# how many letters each gets follows from a count of its patients with noise; a patient goes to a
# text by a keyed hash of the patient's number. How many patients there are is a secret, too: some
# $patients.
cat >departments.txt <<END
pulmonology
cardiology
orthopaedics
surgery
endocrinology
neurology
nephrology
emergency
burns
allergology
intensive_care
pain_clinic
END
usual=(--ref-tokens 200 --unit-records 3)
budget=(--epsilon 5 --delta 1e-5)
job=(--unit-field patient --max-per-unit 4 -B $((patients / texts)) --num "$texts" -n "$tokens"
    --adjacency add-remove --label-field department --label-names departments.txt
    --histogram-rho .005 --public-prompt "Write a discharge letter of the department {label}."
    --ledger year.ledger)

# Guarantee, memory and time, and the ledger before and after. Nothing is charged. What is usual is
# for the time alone: a letter has some 200 tokens, and a patient two or three letters.
say "The plan"
"$dpinfer" plan "$model" letters.csv "${job[@]}" "${budget[@]}" "${usual[@]}"

# A key to sign the report with. Your own is in ~/.ssh.
[ -e key ] || ssh-keygen -q -t ed25519 -N "" -C "data steward" -f key
cat >meta.json <<END
{"organisation": "St Elsewhere Hospital (made up)", "dataset": "discharge letters 2026",
 "purpose": "letters to test a new record system with", "contact": "steward@example.org"}
END

# The run charges the ledger before it reads a letter, and keeps each word in the folder `job`
# before it can be seen.
say "The run"
"$dpinfer" run "$model" letters.csv "${job[@]}" "${budget[@]}" --job job -o texts.jsonl \
    --meta meta.json --sign key --report report.html --report report.json --progress=plain \
    2>run.log &
run=$!

# Night falls soon after the job has begun: the server stops. What is drawn is in the job.
while kill -0 "$run" 2>/dev/null && ! [ -e job/job.json ]; do :; done
kill -TERM "$run" 2>/dev/null || true
code=0
wait "$run" || code=$?
say "Night: the run has ended with exit code $code"
[ "$code" -eq 143 ] || { cat run.log; exit 1; }
tail -n 1 run.log

# The next morning it goes on where it was, for the same budget. So it does after a power cut.
say "The next morning"
"$dpinfer" resume job

say "The ledger of the year"
"$dpinfer" ledger show year.ledger

say "Letters of each department"
grep -oE '"text_label":"[a-z_]*"' texts.jsonl | sort | uniq -c

# What the data protection officer does: the numbers follow from the parameters, the texts are those
# of the report, the report is signed. report.html is the page to read.
say "The check"
"$dpinfer" verify report.json --model "$model" --output texts.jsonl --key key.pub | tail -n 2

# A job that costs more than is left of the year is refused (exit code 6) before a letter is read,
# and the message says what would fit.
say "A job that is too large for the rest of the year"
code=0
"$dpinfer" run "$model" letters.csv "${job[@]}" --epsilon 9 --delta 1e-5 -o again.jsonl || code=$?
[ "$code" -eq 6 ] || { echo "expected exit code 6, found $code"; exit 1; }
say "Done: hospital-job/report.html, hospital-job/texts.jsonl"
