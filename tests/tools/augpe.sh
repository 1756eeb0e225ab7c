#!/usr/bin/env bash
# Private evolution from outside: augpe.sh path/to/dpinfer
# What is refused, charged, written, reported and verified; another server that writes.
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/cli_support.sh"
small_model
echo who,text >people.csv
for i in 1 2 3 4 5 6; do echo "p$((i % 4)),Record $i of Anna and others."; done >>people.csv
few="--num 2 --candidates 3 --rounds 2 -n 6 -t 1 --delta 1e-3"
brief="people.csv $few"
evolve() { works augpe m.gguf $brief "$@"; }

# ---- What is refused, before anything is charged ---------------------------------------------
works ledger init year --dataset all --epsilon 10 --delta 1e-3
refuse_each 2 augpe m.gguf <<'END'
                                      | no RECORDS given
people.csv --rho 1                    | --num N: needed
people.csv --num 2                    | --epsilon and --rho: needed is one
people.csv --num 2 --rho 1 --epsilon 1 | needed is one
people.csv --num 2 --rho 1 --units 9  | --units: allowed with --adjacency add-remove
$brief --rho 1 --adjacency add-remove | --units: found none
people.csv --num 2 --rho 1 --dataset all | --dataset needs --ledger
people.csv --num 2 --rho 1 --delta .5 | delta
$brief --rho 1e-9                     | --rho: found
people.csv --num 2 --rho 1 --candidates 1 | --candidates
people.csv --num 2 --rho 1 --variation-prompt x | --variation-prompt: found 0 times {ref
people.csv --num 2 --rho 1 --describe {label}s | label: found {label} in a prompt
people.csv --num 2 --rho 1 --max-per-unit 2 | --max-per-unit needs --unit-field
people.csv --num 2 --rho 1 --variation continue --variation-prompt {reference} | variation
$brief --rho 1 --seed 1 --ledger year | a ledger counts guarantees
people.csv --num 2 --rho 1 --remote-model x | --remote-model needs --remote
people.csv --num 2 --rho 1 -o m.gguf  | m.gguf
END
for form in '--grammar form.gbnf' '--json-schema form.json' '--stop x' '--max-words 3'; do
    refuse 2 "${form% *}: not with --remote, whose model is elsewhere" augpe m.gguf people.csv \
        --num 2 --rho 1 --remote http://localhost:1 --remote-model x $form
done
fails 4 augpe m.gguf nothing.csv $few --rho 1
fails 3 augpe nothing.gguf $brief --rho 1
works ledger show year --json; expect_out '"n_charges": 0'
fails 6 augpe m.gguf $brief --rho 20 --ledger year -o refused.jsonl --report refused.json
expect_empty_out; expect_none refused.jsonl refused.json

# ---- Variations ------------------------------------------------------------------------------
# With one candidate for each token the model writes one text, and goes on with its beginning as it
# went on the first time. It is a trained one, whose texts are those of their words' tokens.
for rounds in 1 3; do
    works augpe "$here/../../models/dpinfer-4m-q8_0.gguf" people.csv --num 2 --candidates 2 -t 1 \
        --rho 30 --rounds $rounds -n 60 --describe "support ticket" --top-k 1 \
        --variation continue -q
    cp out "rounds$rounds"
done
expect_same rounds1 rounds3

# With a grammar, from the first texts on and in every variation.
printf 'root ::= "{\\"n\\": " [0-9]{2,3} ", \\"who\\": \\"" [a-z]{1,6} "\\"}"\n' >form.gbnf
for how in another blanks continue; do
    works augpe m.gguf people.csv --num 3 --candidates 3 --lookahead 1 -t 1 --rho 30 --rounds 3 \
        -n 60 --describe ticket --grammar form.gbnf --variation $how -q -o form.$how.jsonl \
        --report form.$how.json
    expect_err "form of texts      a public grammar ("
    works eval form.$how.jsonl --real people.csv --grammar form.gbnf --json
    expect_out '"accepted": 1.0'
    works verify form.$how.json --model m.gguf --output form.$how.jsonl
done
sed 's/"grammar": "./"grammar": "x/' form.blanks.json >other.json; fails 5 verify other.json

# A description makes a list of texts in quotes, as in run; what is set of them is in the claim.
evolve --rho 30 --describe ticket -q -o listed.jsonl --report listed.json
expect_line listed.json '"answer": " \\""'
expect_count 0 '[^\\](\\\\)*\\"' listed.jsonl # a quote within; a text may end in backslashes
works verify listed.json --output listed.jsonl
# Rows: nobody has counted tokens here.
evolve --rho 30 --seed 5 -q -o rows.jsonl
evolve --rho 30 --seed 5 -q -o rows.csv --report rows.json
works verify rows.json --output rows.csv
python_check "rows of a .csv" <<'P'
rows = list(csv.reader(open("rows.csv", newline="")))
assert rows == [["index", "text", "private"]] + [
    [str(o["index"]), o["text"], "false"] for o in objects("rows.jsonl")]
P
sed 's/"answer": " /"answer": "/' listed.json >other.json; fails 1 verify other.json
works augpe m.gguf people.csv ${few/-n 6/-n 40} --rho 30 -q --jsonl --answer 'Text: ' --stop e \
    --ban a --max-words 2 --no-repeat 2 --variation continue
expect_count 0 '"text":"[^"]*[ae]' out; expect_count 2 '"text":"[^" ]*( +[^" ]*)?"' out

# ---- A run -----------------------------------------------------------------------------------
evolve --epsilon 4 --unit-field who --ledger year -o texts.jsonl --report report.json \
    --report report.md --report report.htm
expect_empty_out; expect_err "zCDP, and so (3.99" "0.001)-DP, for all that is released together" \
    "all records with one unit ID" "round 2 of 2 is over"
together='All that is released of this work together is [0-9.]+-zCDP'
expect_line report.md '^# Privacy report$' "$together"
expect_line report.htm '^<!DOCTYPE html>' "$together"
expect_lines 2 texts.jsonl; expect_count 2 '"private":true' texts.jsonl
# sigma from the report's variance: rho = R 16^2 / (2 s), and what the ledger was charged.
command -v python3 >/dev/null && python_check "numbers of the report" <<'P'
r = load("report.json")
f = r["follows"]
rho = 2 * 256 / (2 * f["mechanisms"][0]["variance"] / 256)
assert rho <= f["rho"] <= rho * (1 + 1e-9), rho
charge, least = f["ledger"]["charge"], rho * r["claim"]["ledger"]["order"]
assert least <= charge < least * (1 + 1e-9)
assert r["private"] and r["complete"] and r["output"]["texts"] == 2
P
works verify report.json --model m.gguf --output texts.jsonl --ledger year --verbose
expect_out "PRIVATE" "year has its charge" "ok     follows.mechanisms[0].variance"
sed 's/"runs": 2/"runs": 1/' report.json >cheaper.json
wrong "" cheaper.json
sed 's/"rho_round"/"rho_rounds"/; s/"variance": [0-9]*/"variance": 5/' report.json >other.json
fails 1 verify other.json
# A section of the ledger that no dataset can have.
while IFS='|' read -r code change text; do
    sed "/\"ledger\"/,/}/ { $change }" report.json >forged.json
    expect_different report.json forged.json
    fails "$code" verify forged.json; grep -qF "$text" out err || expect_err "$text"
done <<'END'
1|s/"budget": /&1/|WRONG  follows.ledger.budget
1|s/"charge": /&1/|WRONG  follows.ledger.charge
5|s/"order": [0-9]*/"order": 2/|the ledger's order: found 2
5|s/"epsilon": /&1/|the ledger's order: found
5|s/"before": [0-9.]*/"before": 98956046499840/|it cannot have been charged
1|s/"dataset": "/&x/|WRONG  plain.budget
1|s/"scope": "dataset"/"scope": "unit"/|WRONG  plain.budget
5|s/"scope": "dataset"/"scope": "all"/|claim.ledger.scope is "all"
END
echo '{"index":7}' >>texts.jsonl
wrong output.sha256 report.json --output texts.jsonl
# What is believed has the form that it was written in, and nothing of it steers a terminal.
for section in output model; do
    sed "/\"$section\"/,\$s/\"n_bytes\"/\"a\\\\u001b[2J\": 1, &/" report.json >added.json
    expect_different report.json added.json
    fails 5 verify added.json; expect_err "malformed"
    check "a control character" [ "$(tr -d '\n' <out | tr -d -c '\000-\037' | wc -c)" -eq 0 ]
done
sed 's/"program": "[^"]*"/"program": 5/' report.json >other.json
fails 5 verify other.json; expect_err "'software'"
head -c 300 report.json >cut.json; fails 5 verify cut.json
works ledger init copy --dataset all --epsilon 10 --delta 1e-3
fails 1 verify report.json --ledger copy; expect_err "does not have the charge"
fails 2 augpe m.gguf $brief --epsilon 4 --ledger year -o texts.jsonl; expect_err "texts.jsonl"

# ---- The same texts with a seed, which is not private ----------------------------------------
evolve --rho 1 --seed 3 --report seeded.json; mv out first; expect_err "NOT PRIVATE"
evolve --rho 1 --seed 3 --parallel 1 -q; expect_same out first
evolve --rho 1 --seed 4 -q; expect_different out first
works verify seeded.json; expect_out "NOT PRIVATE"
for how in "--variation blanks" "--variation continue --change .3" "--select sample" \
    "--select sample --candidates 1" "--lookahead 2 --threshold 1" \
    "--adjacency add-remove --units 100" "--describe letters"; do
    works augpe m.gguf people.csv ${few/--candidates 3/} --rho 1 --seed 3 -q --jsonl $how
    expect_count 2 '"private":false' out # two texts
done

# ---- Units that pay each for itself; a run that is stopped ------------------------------------
works ledger init units --dataset all --epsilon 3 --delta 1e-3 --scope unit
refuse 2 "--unit-field: found none" augpe m.gguf $brief --epsilon 2 --ledger units
for i in 1 2 3; do evolve --epsilon 2 --unit-field who --ledger units -q; done
works ledger init stopped --dataset all --epsilon 10 --delta 1e-3
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
last="a run that is stopped"; expect_rc 143; expect_err "its cost are those of the whole work"
expect_none stopped.jsonl
works ledger show stopped --json; expect_out '"n_charges": 1' '"adjacency": "replace-by-null"'

# ---- A server of others writes; it sees candidates, and no record ------------------------------
if command -v python3 >/dev/null && "$dpinfer" infer -h | grep -q -- --remote; then
    remote_server remote
    exec 8>remote/end
    read -r port <remote/port
    sed -i 's/Anna/Zylberg/' people.csv
    elsewhere() { # a run with the server of others
        run augpe m.gguf $brief --rho 1 -q --jsonl --describe letters --remote-model x \
            --remote "http://127.0.0.1:$port" "$@"
    }
    elsewhere --variation blanks
    if [ "$rc" -eq 1 ] && grep -q 'built without' err; then
        echo "skipped: built without libcurl"
    else
        expect_rc 0; expect_out "answer of the server"; expect_err "a model elsewhere writes"
        check "a record was sent" [ -z "$(grep -l Zylberg remote/bodies remote/bytes)" ]
        expect_line remote/bodies letters
        echo "refuses good" >remote/mode; touch remote/restart
        elsewhere --variation blanks
        expect_rc 0; expect_err "an answer without content"; expect_out "answer of the server"
        echo bad >remote/mode
        elsewhere --retries 0; expect_rc 1; expect_empty_out
        # A server that is not there is noticed before a record is read: nothing is spent.
        works ledger init unreached --dataset all --epsilon 10 --delta 1e-3
        absent="$brief --epsilon 4 --remote-model x --remote https://127.0.0.1:9/v1"
        fails 1 augpe m.gguf $absent --describe letters --retries 0 --ledger unreached
        expect_empty_out
        works ledger budget unreached --json; expect_out '"charged": 0'
        refuse_each 2 augpe m.gguf $absent <<'END'
--variation-prompt nothing | --variation-prompt: found 0 times {reference}, allowed once
--system x                 | --system: not with --remote
--top-k 5                  | --top-k: not with --remote
--parallel 2               | --parallel: not with --remote
END
    fi
    exec 8>&-
fi
finish
