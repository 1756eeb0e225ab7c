#!/usr/bin/env bash
# What `records` tells the owner of records, as text and as JSON: records.sh DPINFER SOURCE
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
. "$(dirname "$0")/cli_support.sh"

printf '%s\n' text,who,ward 'one two,a,x' 'one two,b,y' ',a,x' '"odd" z,a,x' $'caf\xe9,b,y' \
    three,,x four,a,y five,a,x five,1.0,x five,1,x >r.csv
cp r.csv r.before
works records r.csv
expect_out "PRIVATE" "Nothing was charged" "advice             --encoding windows-1252"
expect_line out 'records +10$' 'read +7$' 'empty +1: 3$' 'malformed +1: 4$' \
    'not of --encoding +1: 5$' 'copies of a text +8 9 10$' '^ +1 2$'
units=(--unit-field who --label-field ward --max-per-unit 2 --encoding windows-1252)
works records r.csv "${units[@]}"
expect_line out 'without an ID +1: 6$' 'units +3$' 'a run says 5: each record without an ID' \
    'labels +3$' 'records of a unit +a: 4 records' \
    'label +x: 3 units, 6 records' '\(none\): 1 units, 1 records' 'beyond M +1$' \
    '1 records have another one than their unit'
expect_count 0 advice out
works records r.csv "${units[@]}" -m "$model" --max-ref-tokens 1 --json
python_check "not what stands there" "$model" "$dpinfer" <<'P'
import subprocess
told = json.load(open("out"))
texts = {1: "one two", 2: "one two", 5: "caf\u00e9", 7: "four", 8: "five", 9: "five", 10: "five"}
tokens = {i: len(subprocess.run([sys.argv[2], "tokenize", sys.argv[1]], input=t.encode(),
                                capture_output=True).stdout.split()) for i, t in texts.items()}
of = lambda sizes: {"least": min(sizes), "middle": sorted(sizes)[3], "p90": max(sizes),
                    "most": max(sizes), "all": sum(sizes)}
assert told["notice"].startswith("PRIVATE")
nulls = {k: v for k, v in told["null"].items() if v}
assert nulls == {"empty": [3], "malformed": [4], "no_id": [6]}, nulls
assert told["bytes"] == of([len(t.encode()) for t in texts.values()]), told["bytes"]
assert told["tokens"] == of(list(tokens.values())), told["tokens"]
assert told["cut"] == [i for i, n in tokens.items() if n > 1]
assert told["n_lost_tokens"] == sum(n - 1 for n in tokens.values())
assert sorted(told["copies"]) == [[1, 2], [8, 9, 10]] and told["n_copies"] == 3
assert told["units"] == [{"id": i, "n_records": n} for i, n in (("a", 4), ("b", 2), ("1", 2))]
assert told["n_units"] == 3 and told["n_units_of_run"] == 5
assert told["n_beyond"] == 1 and told["n_other_label"] == 1 and told["n_read"] == 7
assert told["labels"] == [{"label": l, "n_units": u, "n_records": r}
                          for l, u, r in (("x", 3, 6), ("y", 1, 2), (None, 1, 1))]
P
expect_same r.csv r.before
mkdir d
printf one >d/a.txt; printf '\n' >d/b.txt; printf 'x\xff' >d/c.txt; ln -s nowhere d/d.txt
works records d
expect_line out 'empty +1: b.txt$' 'not of --encoding +1: c.txt$' 'files not readable +1: d.txt$'

# What fits better: advice DEFAULTS WANTED, of e.jsonl.
advice() {
    works records e.jsonl --encoding "$1"
    if [ "$2" ]; then expect_out "advice             --encoding $2 reads"; else
        expect_count 0 'advice' out; fi
}
printf '{"text": "caf\xe9 \x93a\x94 5 \x80"}\n{"text": "b"}\n' >e.jsonl
advice utf8 windows-1252; advice latin1 windows-1252; advice windows-1252 ''
printf '{"text": "caf\xc3\xa9"}\n' >e.jsonl
advice windows-1252 utf8; advice latin1 utf8; advice utf8 ''
iconv -f UTF-8 -t UTF-16 e.jsonl >f.jsonl; mv f.jsonl e.jsonl; advice utf8 utf16
printf '{"text": "plain"}\n' >e.jsonl
advice latin1 ''; advice utf8 ''
works records e.jsonl --text-field body; expect_out "no record has the field of --text-field"
works records e.jsonl --unit-field pid; expect_out "is --unit-field the name of its field?"
sed 's/,/;/g' r.csv >s.csv
refuse 4 "with --delimiter ';' it has these columns" records s.csv
# Options, and not fields of the library, in each command. The first line may be a record of a file
# without a header row: none of it is told.
expect_err "(--text-field): its columns seem to be set apart by ';' (--delimiter)"
refuse 4 "no column 'body' in the header row (--text-field)" records r.csv --text-field body
refuse 4 "(--text-field)" eval r.csv --real r.csv --text-field body
printf 'Anna,b\n1,2\n' >w.csv
refuse 4 "in the header row (--text-field)" records w.csv; expect_no_err "Anna"
refuse_each 2 records <<'END'
 | no RECORDS given
r.csv --max-ref-tokens 3 | --max-ref-tokens needs -m MODEL
r.csv s.csv | unexpected argument
r.csv --delimiter '"' | --delimiter: found '"', allowed an ASCII character but quote and line end
r.csv --delimiter $'\n' | --delimiter: found
END
# An ID does not steer a terminal.
printf '{"text": "a", "who": "\\u001b[31m\\u009bred"}\n' >e.jsonl
works records e.jsonl --unit-field who
check "a control character" bash -c '! grep -qP "\x1b|\x{9b}" out'
finish
