#!/usr/bin/env bash
# Records in compressed files, texts as rows, and prompts from a description, from outside:
# sources.sh path/to/dpinfer path/to/sources [sanitized]
sanitized=${3:-}
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
small_model

# ---- .gz: the records are those of the file that was compressed ---------------------------------
mkdir plain packed
for i in 1 2 3 4; do
    echo "Record $i of Anna, who said \"no\"." >plain/"$i.txt"
    gzip -c plain/"$i.txt" >packed/"$i.txt.gz"
    echo "{\"text\": \"Record $i of Anna, who said \\\"no\\\".\", \"who\": \"p$((i / 2))\"}"
done >r.jsonl
{ echo text; sed 's/"/""/g; s/.*/"&"/' plain/*.txt; } >r.csv
gzip -k r.jsonl r.csv
seeded() { run run m.gguf "$@" --rho 50 -B 2 -n 12 --seed 7 -t 1 -q --jsonl; }
seeded plain; expect_rc 0; expect_lines 2 out; cp out a
for refs in packed r.jsonl r.jsonl.gz r.csv r.csv.gz; do
    seeded "$refs"; expect_rc 0; expect_same out a
done
seeded r.jsonl --unit-field who; cp out b; expect_different a b
seeded r.jsonl.gz --unit-field who; expect_rc 0; expect_same out b
# A damaged file is refused before anything is charged; a damaged record is null in its place.
run ledger init year.ledger --dataset d --epsilon 100 --delta 1e-5
head -c 60 r.csv.gz >cut.csv.gz
refuse 4 "the compressed file is cut short" run m.gguf cut.csv.gz --rho 1 --ledger year.ledger
cp r.csv false.csv.gz
refuse 4 "no gzip file" run m.gguf false.csv.gz --rho 1 --ledger year.ledger
run ledger show year.ledger --json; check "a charge" test "$(field n_charges)" -eq 0
echo x >packed/2.txt.gz
run run m.gguf packed --rho 1 -B 2 -n 4; expect_rc 0; expect_err "1 of 4 records are empty"
rm packed/2.txt.gz; ln -s nothing packed/2.txt
run run m.gguf packed --rho 1 -B 2 -n 4; expect_rc 0; expect_err "1 of 4 records are empty"
# A file that would be 4.3 GB: refused without that memory, before the model is opened.
head -c 10000000 /dev/zero | gzip -9 >member
for i in $(seq 430); do echo member; done | xargs cat >bomb.jsonl.gz
last="bomb.jsonl.gz"
# AddressSanitizer reserves more address space than any machine has.
([ -n "$sanitized" ] || ulimit -v 1000000
    exec "$dpinfer" run no.gguf bomb.jsonl.gz --rho 1) >out 2>err </dev/null
rc=$?
expect_rc 4; expect_err "it holds more than 4294967296 bytes"

# ---- UTF-8: a header row that is none is refused, and of records the operator is told ------------
printf 'text,stra\xdfe\nM\xfcnchen,a\nUlm,b\n' >latin.csv
refuse 4 "its header row is not UTF-8 (the encoding latin1" run m.gguf latin.csv --rho 1
run run m.gguf latin.csv --rho 1 --encoding latin1 -n 4; expect_rc 0; expect_no_err "not UTF-8"
sed -i '1s/.*/text,street/' latin.csv
run run m.gguf latin.csv --rho 1 -n 4 --report latin.json; expect_rc 0
expect_err "note: 1 records are not UTF-8; --encoding latin1"
check "the report tells of encodings" test "$(grep -ciE 'utf|latin' latin.json)" -eq 0
run run m.gguf latin.csv --rho 1 -n 4 -q; expect_no_err "not UTF-8"
run run m.gguf latin.csv --rho 1 -n 4 --unit-field street; expect_rc 0; expect_no_err "not UTF-8"
run run m.gguf latin.csv --rho 1 -n 4 -B 2 --num 1 --adjacency add-remove; expect_rc 0
expect_no_err "not UTF-8"

# ---- -o x.csv: what a reader of RFC 4180 finds in it is what is in the objects ------------------
cat >same.py <<'END'
import csv, json, sys
rows = list(csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True))
objects = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
cell = lambda v: str(v).lower() if isinstance(v, bool) else str(v)
told = [{k: cell(v) for k, v in o.items()} for o in objects]
assert rows == told and list(rows[0]) == list(objects[0]), (rows, told)
END
same() { check "$1 and $2 differ" python3 same.py "$1" "$2"; }
printf 'who,ward,text\n' >l.csv
for i in 1 2 3 4; do echo "p$i,\"say \"\"a\"\", b\",Record $i" >>l.csv; done
letters=(run "$model" l.csv --label-field ward -B 2 --rho 1e4 -n 30 --seed 3 -t 1)
quoted=(--public-prompt 'Say "yes, no", and "no":' --private-prompt '{reference} Say "yes", "no":')
run "${letters[@]}" "${quoted[@]}" -o l.out.jsonl --report l.json; expect_rc 0
run "${letters[@]}" "${quoted[@]}" -o l.out.csv --report c.json; expect_rc 0; expect_empty_out
same l.out.csv l.out.jsonl
check "two texts and their head" test "$(grep -c $'\r$' l.out.csv)" -eq 3
run verify c.json --output l.out.csv; expect_rc 0
sed -i '2s/^0/1/' l.out.csv
run verify c.json --output l.out.csv; expect_rc 1
run run m.gguf plain --rho 1 -B 2 -n 30 -o real.csv; expect_rc 0
check "a head without labels" grep -q $'^index,text,n_tokens,ended,private\r$' real.csv
check "two private rows" test "$(grep -cE ',(true|false),true'$'\r$' real.csv)" -eq 2
run run m.gguf plain --rho 1 -B 2 -n 4 -o objects.csv --jsonl; expect_rc 0
expect_lines 2 objects.csv
# A job, and shards, write the same.
run run m.gguf plain --rho 50 -B 2 -n 40 --seed 7 -t 1 -o one.jsonl; expect_rc 0
job=(run m.gguf plain --rho 50 -B 2 -n 40 --seed 7 -t 1 -q --job job -o job.csv)
run "${job[@]}"; expect_rc 0; same job.csv one.jsonl
# The last three tokens were not drawn.
dd if=/dev/zero of=job/tokens bs=1 seek=$((4096 + 32 * ($(tokens_of job) - 3))) count=96 \
    conv=notrunc status=none
mv job.csv whole.csv
run resume job; expect_rc 0; expect_same job.csv whole.csv
run resume job -o job.jsonl; expect_rc 0; same job.csv job.jsonl
run plan m.gguf plain --rho 50 -B 2 -n 40 --seed 7 --job shards; expect_rc 0
for i in 0 1; do
    run run m.gguf plain --rho 50 -B 2 -n 40 --seed 7 -t 1 -q --job shards --shard $i/2; expect_rc 0
done
run merge merged.csv shards; expect_rc 0; expect_same merged.csv job.csv
# A run that is stopped leaves whole rows.
for i in $(seq 400); do echo "{\"text\": \"Record $i\"}"; done >many.jsonl
"$dpinfer" run m.gguf many.jsonl --rho 50 -B 2 -n 200 -t 1 --parallel 1 -o stopped.csv \
    >out 2>err </dev/null &
pid=$!
until cat stopped.csv.part-* 2>/dev/null | grep -q '^1,' || ! kill -0 $pid; do :; done
kill -TERM $pid
wait $pid; rc=$?
last="a run that is stopped"
expect_rc 143
check "whole rows" python3 -c 'import csv
rows = list(csv.DictReader(open("stopped.csv", newline=""), strict=True))
assert rows and all(r["ended"] in ("true", "false") and int(r["n_tokens"]) > 0 for r in rows)'

# ---- --describe: both prompts -------------------------------------------------------------------
words="support tickets of an IT help desk"
run plan "$model" plain --rho 1 -B 2; expect_rc 0; expect_err "say it with --describe"
run plan "$model" plain --rho 1 -B 2 -q; expect_no_err "--describe"
for given in --describe --query --public-prompt; do
    run plan "$model" plain --rho 1 -B 2 "$given" "$words"; expect_rc 0; expect_no_err "say it with"
done
run plan m.gguf plain --rho 1 -B 2; expect_rc 0
expect_no_err "say it with" # a base model continues
run run "$model" --plain --temp 0 -n 40 --describe "$words"; expect_rc 0
check "a ticket" grep -qiE 'ticket|support|help desk|fault' out
cp out ticket
run run "$model" --plain --temp 0 -n 40 --describe "hospital discharge letters"; expect_rc 0
check "a letter" grep -qiE 'hospital|home|ward|infection' out
expect_different out ticket
# The private prompt ends with the public one, as with --public-prompt.
task="Please write a fictional document of this kind: $words. Do not copy names, dates or other"
described() { run run "$model" plain --rho 1e4 -B 2 -n 12 --seed 5 -t 1 -q "$@"; }
described --describe "$words"; expect_rc 0; cp out a
described --public-prompt "$task particulars. Output only the text of the new document."
expect_same out a
described --describe "other documents"; expect_different out a
printf 'text,ward\nx,burns\ny,burns\n' >w.csv
run run "$model" w.csv --label-field ward --rho 1 -B 2 -n 4 --describe "letters of the ward {label}"
expect_rc 0
run run "$model" plain --rho 1 -B 2 -n 4 --describe "letters of the ward {label}"
expect_rc 2; expect_err "{label} stands in a prompt"
refuse 2 "--describe and --public-prompt: allowed is one of them" run no.gguf plain --rho 1 \
    --describe a --public-prompt b
refuse 2 "--describe and --query: allowed is one of them" run no.gguf plain --rho 1 \
    --describe a --query b
refuse 2 "--describe: found no text" run no.gguf plain --rho 1 --describe ' '
refuse 2 "--describe: found {reference}" run no.gguf plain --rho 1 --describe 'like {reference}'
finish
