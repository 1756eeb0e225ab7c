#!/usr/bin/env bash
# Records in compressed files, texts as rows, and prompts from a description, from outside:
# sources.sh path/to/dpinfer path/to/sources [sanitized]
sanitized=${3:-}
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
. "$(dirname "$0")/process_support.sh"
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
seeded() { works run m.gguf "$@" --rho 50 -B 2 -n 12 --seed 7 -t 1 -q --jsonl; }
seeded plain; expect_lines 2 out; cp out a
for refs in packed r.jsonl r.jsonl.gz r.csv r.csv.gz; do
    seeded "$refs"; expect_same out a
done
seeded r.jsonl --unit-field who; cp out b; expect_different a b
seeded r.jsonl.gz --unit-field who; expect_same out b
# A damaged file is refused before anything is charged; a damaged record is null in its place.
run ledger init year.ledger --dataset d --epsilon 100 --delta 1e-5
head -c 60 r.csv.gz >cut.csv.gz
refuse 4 "the compressed file is cut short" run m.gguf cut.csv.gz --rho 1 --ledger year.ledger
cp r.csv false.csv.gz
refuse 4 "no gzip file" run m.gguf false.csv.gz --rho 1 --ledger year.ledger
check "a charge" test "$(budget year.ledger n_charges)" = 0
echo x >packed/2.txt.gz
works run m.gguf packed --rho 1 -B 2 -n 4; expect_err "1 of 4 records are empty"
rm packed/2.txt.gz; ln -s nothing packed/2.txt
works run m.gguf packed --rho 1 -B 2 -n 4; expect_err "1 of 4 records are empty"
# A file that would be 4.3 GB: refused without that memory, before the model is opened.
head -c 10000000 /dev/zero | gzip -9 >member
for i in $(seq 430); do echo member; done | xargs cat >bomb.jsonl.gz
last="bomb.jsonl.gz"
# AddressSanitizer reserves more address space than any machine has.
([ -n "$sanitized" ] || ulimit -v 1000000
    exec "$dpinfer" run no.gguf bomb.jsonl.gz --rho 1) >out 2>err </dev/null
rc=$?
expect_rc 4; expect_err "it holds more than 4294967296 bytes"

# ---- Encodings: a header row of another one is refused, and a record is null --------------------
printf 'text,stra\xdfe\nM\xfcnchen \x84a\x93 5 \x80,a\nUlm,b\n' >latin.csv
latin() { works run m.gguf latin.csv --rho 1 -n 4 "$@"; }
refuse 4 "is not of the encoding, UTF-8 (windows-1252" run m.gguf latin.csv --rho 1
for encoding in latin1 windows-1252; do
    latin --encoding $encoding; expect_no_err "add nothing"
done
iconv -f cp1252 -t UTF-16 latin.csv >wide.csv
refuse 4 "begins with the mark of UTF-16 (the encoding utf16)" run m.gguf wide.csv --rho 1
# The same characters are the same text.
wide=(--rho 1e4 -n 20 --seed 3 -t 1)
works run m.gguf wide.csv "${wide[@]}" --encoding utf16; cp out wide.out
works run m.gguf latin.csv "${wide[@]}" --encoding windows-1252; expect_same out wide.out
sed -i '1s/.*/text,street/' latin.csv
latin --report latin.json; expect_err "note: 1 of 2 records are empty or unreadable"
check "the report tells of encodings" test "$(grep -ciE 'utf|latin' latin.json)" -eq 0
for how in -q "--unit-field street" "-B 2 --num 1 --adjacency add-remove"; do
    # shellcheck disable=SC2086
    latin $how; expect_no_err "add nothing"
done

# ---- JSON: what other fields hold does not matter -----------------------------------------------
printf '{"id": %s, "text": "The printer on floor %d is broken."}\n' 1 0 2 1 >plain.jsonl
printf '{"id": %s, "text": "The printer on floor %d is broken."}\n' \
    18446744073709551615 0 '[1e400, NaN, "\ud800"]' 1 >odd.jsonl
works run m.gguf plain.jsonl --rho 1e4 -n 20 --seed 3 -t 1; cp out plain.out
works run m.gguf odd.jsonl --rho 1e4 -n 20 --seed 3 -t 1; expect_same out plain.out
expect_no_err "add nothing"

# A field that no line has: in silence, unless names of fields are public; then nothing is spent.
works run m.gguf plain.jsonl --rho .1 -n 4 -q --unit-field pid
expect_no_err "pid"
works ledger init fields.ledger --dataset d --epsilon 3 --delta 1e-5
refuse 4 "no line has a field 'pid' (--unit-field)" \
    run m.gguf plain.jsonl --public-fields --rho .1 \
    --unit-field pid --ledger fields.ledger
check "a charge" test "$(budget fields.ledger n_charges)" = 0
works run m.gguf plain.jsonl --public-fields --rho .1 -n 4 --unit-field id --ledger fields.ledger
printf '{"pid": %s, "text": "The printer is broken."}\n' 0.0 1.0 1e0 >float.jsonl
works run m.gguf float.jsonl --rho 1 -n 4 -B 2 --unit-field pid --report float.json
check "two units" grep -q '"n_units": 2' float.json

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
works "${letters[@]}" "${quoted[@]}" -o l.out.jsonl --report l.json
works "${letters[@]}" "${quoted[@]}" -o l.out.csv --report c.json; expect_empty_out
same l.out.csv l.out.jsonl
check "two texts and their head" test "$(grep -c $'\r$' l.out.csv)" -eq 3
works verify c.json --output l.out.csv
sed -i '2s/^0/1/' l.out.csv
run verify c.json --output l.out.csv; expect_rc 1
works run m.gguf plain --rho 1 -B 2 -n 30 -o real.csv
check "a head without labels" grep -q $'^index,text,n_tokens,ended,private\r$' real.csv
check "two private rows" test "$(grep -cE ',(true|false),true'$'\r$' real.csv)" -eq 2
works run m.gguf plain --rho 1 -B 2 -n 4 -o objects.csv --jsonl
expect_lines 2 objects.csv
# A job, and shards, write the same.
drawn=(--rho 50 -B 2 -n 40 --seed 7 -t 1)
works run m.gguf plain "${drawn[@]}" -o one.jsonl
works run m.gguf plain "${drawn[@]}" -q --job job -o job.csv; same job.csv one.jsonl
# The last three tokens were not drawn.
dd if=/dev/zero of=job/tokens bs=1 seek=$((4096 + 32 * ($(tokens_of job) - 3))) count=96 \
    conv=notrunc status=none
mv job.csv whole.csv
works resume job; expect_same job.csv whole.csv
works resume job -o job.jsonl; same job.csv job.jsonl
works plan m.gguf plain "${drawn[@]}" --job shards
for i in 0 1; do works run m.gguf plain "${drawn[@]}" -q --job shards --shard $i/2; done
works merge merged.csv shards; expect_same merged.csv job.csv
# A run that is stopped leaves whole rows.
records 4000 >many.jsonl
"$dpinfer" run m.gguf many.jsonl --rho 50 -B 2 -n 200 -t 1 --parallel 1 -o stopped.csv \
    >out 2>err </dev/null &
pid=$! last="a run that is stopped"
second_text() { cat stopped.csv.part-* 2>/dev/null | grep -q '^1,'; }
await second_text
kill -TERM $pid
it_ends; expect_rc 143
check "whole rows" python3 -c 'import csv
rows = list(csv.DictReader(open("stopped.csv", newline=""), strict=True))
assert rows and all(r["ended"] in ("true", "false") and int(r["n_tokens"]) > 0 for r in rows)'

# ---- --describe: both prompts -------------------------------------------------------------------
words="support tickets of an IT help desk"
works plan "$model" plain --rho 1 -B 2; expect_err "say it with --describe"
run plan "$model" plain --rho 1 -B 2 -q; expect_no_err "--describe"
for given in --describe --query --public-prompt; do
    works plan "$model" plain --rho 1 -B 2 "$given" "$words"; expect_no_err "say it with"
done
works plan m.gguf plain --rho 1 -B 2; expect_no_err "say it with" # a base model continues
works plan m.gguf plain --rho 1 -B 2 --public-prompt 'Ticket:'; expect_no_err "is an instruction"
works plan m.gguf plain --rho 1 -B 2 --public-prompt 'Write: a'; expect_err "is an instruction"
works plan "$model" plain --rho 1 -B 2 --public-prompt 'Write.'; expect_no_err "is an instruction"
works run "$model" --plain --temp 0 -n 40 --describe "$words"
check "a ticket" grep -qiE 'ticket|support|help desk|fault' out
cp out ticket
printf 'Write a ticket.\nA short one.\n' >ticket.prompt; cp ticket.prompt windows.prompt
windows_text windows.prompt
for prompt in ticket windows; do
    works run "$model" --plain --temp 0 -n 40 --public-prompt-file $prompt.prompt
    cp out $prompt.out
done
expect_same windows.out ticket.out
# Whatever text is read of a file beside the records.
printf 'a\0b\n' >nul; printf 'caf\xe9\n' >byte; printf '{document}\n\xff' >odd
for option in public-prompt-file private-prompt-file system-file query-file answer-file grammar \
    json-schema "adjacency add-remove -B 2 --num 1 --label-field x --label-names" num-per-label; do
    # shellcheck disable=SC2086
    refuse 2 "${option##*--}: nul: found a NUL byte" run no.gguf plain --rho 1 --$option nul
    # shellcheck disable=SC2086
    refuse 2 "byte: found a byte that is not UTF-8" run no.gguf plain --rho 1 --$option byte
done
refuse 2 "found a NUL byte" logits "$model" --tokens nul
refuse 2 "found a NUL byte" serve "$model" --tokens nul
refuse 2 "found a byte that is not UTF-8" infer m.gguf plain --vectors x \
    --dry-run --remote-model m --remote-prompt-file odd
works run "$model" --plain --temp 0 -n 40 --describe "hospital discharge letters"
check "a letter" grep -qiE 'hospital|home|ward|infection' out
expect_different out ticket
# The private prompt ends with the public one, as with --public-prompt.
task="Please write a fictional document of this kind: $words. Do not copy names, dates or other"
described() { works run "$model" plain --rho 1e4 -B 2 -n 12 --seed 5 -t 1 -q "$@"; }
described --describe "$words" --private-prompt "Like {reference}:"; cp out a
described --public-prompt "$task particulars. Output only the text of the new document." \
    --private-prompt "Like {reference}:"
expect_same out a
# Without a prompt of the caller's it is a list of texts in quotes, which another wording or a
# grammar replaces.
described --describe "$words" --report list.json; cp out a
expect_line list.json '"answer": " ' '"stops"'
described --describe "other documents"; expect_different out a
described --describe "$words" --answer ' "' --stop '"' --ban refusals; expect_same out a
described --describe "$words" --answer 'Ticket: "' --stop '"'; expect_different out a
printf 'root ::= "Yes" | "No"' >yes.gbnf
described --describe "$words" --grammar yes.gbnf --report plain.json
expect_line plain.json '"wording": null'
printf 'text,ward\nx,burns\ny,burns\n' >w.csv
works run "$model" w.csv --label-field ward --rho 1 -B 2 -n 4 \
    --describe "letters of the ward {label}"
fails_with 2 "{label} stands in a prompt" run "$model" plain --rho 1 -B 2 -n 4 \
    --describe "letters of the ward {label}"
refusals 2 run no.gguf plain --rho 1 --describe <<'END'
--describe and --public-prompt: allowed is one of them | a --public-prompt b
--describe and --query: allowed is one of them | a --query b
END
# ---- Public examples -----------------------------------------------------------------------------
printf '{"t":"One."}\n{"t":"Two."}\n' >two.jsonl; printf 't\nOne.\nTwo.\n' >two.csv
printf 'One.\n' >one.txt; printf 'Two.' >two.txt; printf '{"t":"One."}\n{"t":" "}\n' >gap.jsonl
shown() { works run "$model" --plain --temp 0 -n 12 --public-prompt "$task" "$@"; }
shown; cp out none; shown --example two.jsonl --text-field t; cp out a; expect_different out none
shown --example one.txt --example two.txt; expect_same out a
shown --example two.csv --text-field t; expect_same out a
# In the private prompt the record stands in their place, but for what is asked for.
described --public-prompt "$task" --example one.txt; cp out a
described --public-prompt "$task" --example one.txt --example-in both; expect_different out a
yes "word word" | head -n 900 >long.txt
refuse_each 2 run "$model" plain --rho 1 -B 2 -n 9 <<'END'
--example long.txt    | the public prompt with its examples has
--example -           | --example: found '-', allowed is a file
--example-in both     | --example-in needs --example
--example none.txt    | --example: cannot read none.txt
--example two.txt -o two.txt | would be overwritten
END
refuse_each 4 run "$model" plain --rho 1 -B 2 -n 9 <<'END'
--example two.jsonl   | two.jsonl
--example gap.jsonl --text-field t | --example: gap.jsonl: number 2 has no text
--example none.csv    | none.csv
END

refuse 2 "--describe: found no text" run no.gguf plain --rho 1 --describe ' '
refuse 2 "--describe: found {reference}" run no.gguf plain --rho 1 --describe 'like {reference}'
finish
