#!/usr/bin/env bash
# Private evolution from outside: augpe.sh path/to/dpinfer
# What is refused, charged, written, reported and verified; another server that writes.
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/cli_support.sh"
small_model
echo who,text >people.csv
for i in 1 2 3 4 5 6; do echo "p$((i % 4)),Record $i of Anna and others."; done >>people.csv
few="--num 2 --candidates 3 --rounds 2 -n 6 -t 1 --delta 1e-3"

# ---- What is refused, before anything is charged ---------------------------------------------
run ledger init year --dataset all --epsilon 10 --delta 1e-3; expect_rc 0
for bad in "|no RECORDS given" "people.csv --rho 1|--num N: needed" \
    "people.csv --num 2|--epsilon and --rho: needed is one" \
    "people.csv --num 2 --rho 1 --epsilon 1|needed is one" \
    "people.csv --num 2 --rho 1 --units 9|--units: allowed with --adjacency add-remove" \
    "people.csv $few --rho 1 --adjacency add-remove|--units: found none" \
    "people.csv --num 2 --rho 1 --dataset all|--dataset needs --ledger" \
    "people.csv --num 2 --rho 1 -o x.csv|found a .csv" \
    "people.csv --num 2 --rho 1 --delta .5|delta" \
    "people.csv $few --rho 1e-9|--rho: found" \
    "people.csv --num 2 --rho 1 --candidates 1|--candidates" \
    "people.csv --num 2 --rho 1 --variation-prompt x|--variation-prompt: found 0 times {ref" \
    "people.csv --num 2 --rho 1 --describe {label}s|label: found {label} in a prompt" \
    "people.csv --num 2 --rho 1 --max-per-unit 2|--max-per-unit needs --unit-field" \
    "people.csv --num 2 --rho 1 --variation continue --variation-prompt {reference}|variation" \
    "people.csv $few --rho 1 --seed 1 --ledger year|a ledger counts guarantees" \
    "people.csv --num 2 --rho 1 --remote-model x|--remote-model needs --remote" \
    "people.csv --num 2 --rho 1 -o m.gguf|m.gguf"; do
    run augpe m.gguf ${bad%%|*}
    expect_rc 2; expect_err "${bad##*|}"; expect_empty_out
done
run augpe m.gguf nothing.csv $few --rho 1; expect_rc 4
run augpe nothing.gguf people.csv $few --rho 1; expect_rc 3
run ledger show year --json; expect_rc 0; expect_out '"n_charges": 0'
run augpe m.gguf people.csv $few --rho 20 --ledger year -o refused.jsonl --report refused.json
expect_rc 6; expect_empty_out
check "something was written" [ ! -e refused.jsonl ] && check "a report" [ ! -e refused.json ]

# ---- Variations ------------------------------------------------------------------------------
# With one candidate for each token the model writes one text, and goes on with its beginning as it
# went on the first time.
builtin=$(dirname "$0")/../../models/dpinfer-4m-q8_0.gguf
for rounds in 1 3; do
    run augpe "$builtin" people.csv --num 2 --candidates 2 -t 1 --rho 30 --rounds $rounds -n 60 \
        --describe "support ticket" --top-k 1 --variation continue -q
    expect_rc 0
    cp out "rounds$rounds"
done
check "a text that begins as before goes on as before" cmp -s rounds1 rounds3

# With a grammar, from the first texts on and in every variation.
printf 'root ::= "{\\"n\\": " [0-9]{2,3} ", \\"who\\": \\"" [a-z]{1,6} "\\"}"\n' >form.gbnf
for how in another blanks continue; do
    run augpe "$builtin" people.csv --num 3 --candidates 3 --lookahead 1 -t 1 --rho 30 --rounds 3 \
        -n 60 --describe ticket --grammar form.gbnf --variation $how -q -o form.$how.jsonl \
        --report form.$how.json
    expect_rc 0; expect_err "form of texts      a public grammar ("
    run eval form.$how.jsonl --real people.csv --grammar form.gbnf --json; expect_rc 0
    expect_out '"accepted": 1.0'
    run verify form.$how.json --model "$builtin" --output form.$how.jsonl; expect_rc 0
done
sed 's/"grammar": "./"grammar": "x/' form.blanks.json >other.json
run verify other.json; expect_rc 5
for form in --grammar --json-schema; do
    run augpe m.gguf people.csv --num 2 --rho 1 --remote http://localhost:1 --remote-model x \
        $form form.gbnf
    expect_rc 2; expect_err "$form: not with --remote, whose model is elsewhere"
done

# ---- A run -----------------------------------------------------------------------------------
run augpe m.gguf people.csv $few --epsilon 4 --unit-field who --ledger year -o texts.jsonl \
    --report report.json --report report.md --report report.htm
expect_rc 0; expect_empty_out
expect_err "zCDP, and so (3.99"; expect_err "0.001)-DP, for all texts together"
expect_err "all records with one unit ID"
expect_err "round 2 of 2 is over"
check "a report to read" grep -q '^# Privacy report$' report.md
check "a page" grep -q '^<!DOCTYPE html>' report.htm
check "its statement" grep -q 'for all texts together' report.md report.htm
check "two texts" [ "$(wc -l <texts.jsonl)" -eq 2 ]
check "texts that are private" [ "$(grep -c '"private":true' texts.jsonl)" -eq 2 ]
if command -v python3 >/dev/null; then
    # sigma from the report's variance: rho = R 16^2 / (2 s), and what the ledger was charged.
    python3 - >computed 2>&1 <<'EOF'
import json
r = json.load(open("report.json"))
rho = 2 * 256 / (2 * r["realised"]["variance"] / 256)
assert rho <= r["realised"]["rho_total"] <= rho * (1 + 1e-9), rho
charge = r["ledger"]["charge"] / 2**40
assert charge >= rho * r["ledger"]["order"] and charge < rho * r["ledger"]["order"] * (1 + 1e-9)
assert r["realised"]["private"] and r["complete"]
print("as computed")
EOF
    check "numbers of the report: $(tail -n 1 computed)" grep -q 'as computed' computed
fi
run verify report.json --model m.gguf --output texts.jsonl --ledger year
expect_rc 0; expect_out "PRIVATE"; expect_out "year has its charge"
expect_out "ok     realised.variance"
sed 's/"n_rounds": 2/"n_rounds": 1/' report.json >cheaper.json
run verify cheaper.json; expect_rc 1; expect_out "WRONG"
sed 's/"rho_round"/"rho_rounds"/; s/"variance": [0-9]*/"variance": 5/' report.json >other.json
run verify other.json; expect_rc 1
echo '{"index":7}' >>texts.jsonl
run verify report.json --output texts.jsonl; expect_rc 1; expect_out "WRONG  output.sha256"
# What is believed has the form that it was written in, and nothing of it steers a terminal.
for section in output model_files; do
    sed "/\"$section\"/,\$s/\"n_bytes\"/\"a\\\\u001b[2J\": 1, &/" report.json >added.json
    check "$section is as it was" [ "$(cmp -s report.json added.json; echo $?)" -eq 1 ]
    run verify added.json; expect_rc 5; expect_err "malformed"
    check "a control character" [ "$(tr -d '\n' <out | tr -d -c '\000-\037' | wc -c)" -eq 0 ]
done
head -c 300 report.json >cut.json
run verify cut.json; expect_rc 5
run ledger init copy --dataset all --epsilon 10 --delta 1e-3; expect_rc 0
run verify report.json --ledger copy; expect_rc 1; expect_err "does not have the charge"
run augpe m.gguf people.csv $few --epsilon 4 --ledger year -o texts.jsonl; expect_rc 2
expect_err "texts.jsonl"

# ---- The same texts with a seed, which is not private ----------------------------------------
run augpe m.gguf people.csv $few --rho 1 --seed 3 --report seeded.json; expect_rc 0
mv out first
expect_err "NOT PRIVATE"
run augpe m.gguf people.csv $few --rho 1 --seed 3 --parallel 1 -q; expect_rc 0
expect_same out first
run augpe m.gguf people.csv $few --rho 1 --seed 4 -q; expect_rc 0
check "another seed, the same texts" [ "$(cmp -s out first; echo $?)" -eq 1 ]
run verify seeded.json; expect_rc 0; expect_out "NOT PRIVATE"
for how in "--variation blanks" "--variation continue --change .3" "--select sample" \
    "--select sample --candidates 1" "--lookahead 2 --threshold 1" \
    "--adjacency add-remove --units 100" "--describe letters"; do
    run augpe m.gguf people.csv ${few/--candidates 3/} --rho 1 --seed 3 -q --jsonl $how
    expect_rc 0
    check "two texts" [ "$(grep -c '"private":false' out)" -eq 2 ]
done

# ---- Units that pay each for itself; a run that is stopped ------------------------------------
run ledger init units --dataset all --epsilon 3 --delta 1e-3 --scope unit; expect_rc 0
run augpe m.gguf people.csv $few --epsilon 2 --ledger units; expect_rc 2
expect_err "--unit-field: found none"
for i in 1 2 3; do
    run augpe m.gguf people.csv $few --epsilon 2 --unit-field who --ledger units -q; expect_rc 0
done
run ledger init stopped --dataset all --epsilon 10 --delta 1e-3; expect_rc 0
last="a run that is stopped"
mkfifo pipe
exec 7<>pipe 8<pipe
"$dpinfer" augpe m.gguf people.csv --num 40 --rounds 500 -n 200 -t 1 --epsilon 4 --delta 1e-3 \
    --ledger stopped -o stopped.jsonl 2>&7 >out &
pid=$!
read -r -u 7 line # the first round is over
kill -TERM $pid
wait $pid
rc=$?
exec 7>&-
cat <&8 >err # what it said until its end
exec 8<&-
expect_rc 143
expect_err "the cost is that of all"
check "texts of a run that was stopped" [ ! -e stopped.jsonl ]
run ledger show stopped --json; expect_rc 0; expect_out '"n_charges": 1'

# ---- A server of others writes; it sees candidates, and no record ------------------------------
if command -v python3 >/dev/null && "$dpinfer" infer -h | grep -q -- --remote; then
    remote_server remote
    exec 8>remote/end
    read -r port <remote/port
    sed -i 's/Anna/Zylberg/' people.csv
    run augpe m.gguf people.csv $few --rho 1 -q --jsonl --describe letters --remote-model x \
        --remote "http://127.0.0.1:$port" --variation blanks
    if [ "$rc" -eq 1 ] && grep -q 'built without' err; then
        echo "skipped: built without libcurl"
    else
        expect_rc 0; expect_out "answer of the server"; expect_err "a model elsewhere writes"
        check "a record was sent" [ -z "$(grep -l Zylberg remote/bodies remote/bytes)" ]
        check "nothing was sent" grep -q letters remote/bodies
        echo "refuses good" >remote/mode; touch remote/restart
        run augpe m.gguf people.csv $few --rho 1 -q --jsonl --describe letters --remote-model x \
            --remote "http://127.0.0.1:$port" --variation blanks
        expect_rc 0; expect_err "an answer without content"; expect_out "answer of the server"
        echo bad >remote/mode
        run augpe m.gguf people.csv $few --rho 1 -q --describe letters --remote-model x \
            --remote "http://127.0.0.1:$port" --retries 0
        expect_rc 1; expect_empty_out
        # A server that is not there is noticed before a record is read: nothing is spent.
        run ledger init unreached --dataset all --epsilon 10 --delta 1e-3; expect_rc 0
        run augpe m.gguf people.csv $few --epsilon 4 --describe letters --remote-model x \
            --remote https://127.0.0.1:9/v1 --retries 0 --ledger unreached
        expect_rc 1; expect_empty_out
        run ledger budget unreached --json; expect_rc 0; expect_out '"charged": 0'
        run augpe m.gguf people.csv $few --epsilon 4 --describe letters --remote-model x \
            --remote https://127.0.0.1:9/v1 --variation-prompt nothing
        expect_rc 2; expect_err "--variation-prompt: found 0 times {reference}, allowed once"
        for option in "--system x" "--top-k 5" "--parallel 2"; do
            run augpe m.gguf people.csv $few --epsilon 4 --remote-model x \
                --remote https://127.0.0.1:9/v1 $option
            expect_rc 2; expect_err "${option% *}: not with --remote"
        done
    fi
    exec 8>&-
fi
finish
