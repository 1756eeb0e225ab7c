#!/usr/bin/env bash
# Texts of a given form, from outside: --grammar and --json-schema of run and plan, --answer, --stop
# and those beside them; the report and its verification, a job that goes on, and what is refused.
#   grammar.sh DPINFER SOURCE
refs=$(readlink -f "$2")/examples/refs/discharge
. "$(dirname "$0")/cli_support.sh"
small_model
words=(m.gguf "$refs" --rho 2 -B 4 -n 60)
# form NAME ARGS...: its texts in NAME.jsonl, its report in NAME.json.
form() {
    works run "${words[@]}" --jsonl -o "$1.jsonl" --report "$1.json" --overwrite "${@:2}"
}

printf 'root ::= "{\\"name\\": \\"\xc3\x84nne\\"}"\n' >one.gbnf
cat >shape.json <<'END'
{"type": "object", "properties": {"age": {"type": "integer"}, "sex": {"enum": ["f", "m"]},
 "drug": {"type": "string", "maxLength": 8}}, "required": ["age", "sex"]}
END
windows_text one.gbnf shape.json
# Every method writes the one text that there is.
for method in adapmixed amin tang invisibleink; do
    claim=()
    [ $method != adapmixed ] || claim=(--delta 1e-6 --i-know-this-is-not-dp)
    form ink --grammar one.gbnf --method "$method" "${claim[@]}"
    python_check "$method does not write the only text" <<'P'
texts = [o["text"] for o in objects("ink.jsonl")]
assert texts and all(text == '{"name": "\u00c4nne"}' for text in texts), texts
P
done
works verify ink.json; expect_line ink.json '"grammar": "[0-9a-f]{16}"'
sed 's/"grammar": "[0-9a-f]*"/"grammar": null/' ink.json >other.json
fails 1 verify other.json
# A public prompt that leaves nothing open.
form alike --grammar one.gbnf; expect_err "public texts that the pace is found from are the same"
works plan "${words[@]}" --grammar one.gbnf; expect_err "are the same: the public prompt leaves"
works plan "${words[@]}"; expect_no_err "are the same"
# Texts that are alike are told, also where no process has two of them.
echo 'root ::= "one two three four"' >alike.gbnf
n_texts=$(wc -l <ink.jsonl)
form alike --grammar alike.gbnf; expect_line alike.json "\"alike\": $n_texts"
expect_err "note: $n_texts of $n_texts texts are near copies of another one"
expect_no_err "texts end at"
works verify alike.json
works run "${words[@]}" --grammar alike.gbnf --quiet -o quiet.txt; expect_no_err "near copies"
works plan "${words[@]}" --grammar alike.gbnf --job parts
for ((i = 0; i < n_texts; i++)); do
    works run "${words[@]}" --grammar alike.gbnf --job parts --shard "$i/$n_texts"
    expect_no_err "near copies"
done
works merge parts.jsonl parts --report parts.json --report parts.md --report parts.html
expect_err "note: $n_texts of $n_texts texts are near copies of another one"
expect_line parts.json "\"alike\": $n_texts" '"at_max_words": null'
for form in md html; do
    expect_line "parts.$form" "; $n_texts are near copies of another one\."
done
# What a schema leaves open is drawn, and is JSON of it. A job draws the same texts.
form form --json-schema shape.json --seed 3; expect_err "form of texts"
works run "${words[@]}" --jsonl -o job.jsonl --seed 3 --job job --json-schema shape.json
python_check "texts are no JSON of the schema, or a job's are others" <<'P'
rows = objects("form.jsonl")
assert rows and [o["text"] for o in objects("job.jsonl")] == [o["text"] for o in rows]
for row in rows:
    assert row["ended"], "T ended first"
    text = json.loads(row["text"])
    assert isinstance(text["age"], int) and text["sex"] in "fm" and len(text.get("drug", "")) <= 8
    assert list(text) == [key for key in ("age", "sex", "drug") if key in text]
P

# Texts by a wording end in the place where those without it would go on, and have its answer.
begun=(--seed 3 --pace none --answer 'Name: ' --private-prompt '{reference} ')
form whole "${begun[@]}" --keep-space; cp err whole.err
form worded "${begun[@]}" --stop w3 --stop e --max-words 3 --job worded
cp err worded.err; expect_err "  wording  "
form kept "${begun[@]}" --stop w3 --stop e --max-words 3 --keep-answer
python_check "texts are not those of the wording" <<'P'
def cut(text, stops):
    for i in range(1, len(text) + 1):
        ends = [i - len(stop) for stop in stops if text[:i].endswith(stop)]
        last = text[i - 1].isspace() and not text[:i - 1][-1:].isspace()
        if ends or (last and len(text[:i].split()) == 3):
            return text[:min(ends or [i - 1])], not ends
    return text, False
n_cut = n_last = 0
for whole, worded, kept in zip(*map(objects, ("whole.jsonl", "worded.jsonl", "kept.jsonl"))):
    wanted, by_words = cut(whole["text"], ("w3", "e"))
    n_last += by_words
    n_cut += wanted != whole["text"]
    assert worded["text"] == wanted.strip() and kept["text"] == ("Name: " + wanted).strip(), kept
    assert worded["ended"] == (wanted != whole["text"] or whole["ended"])
    assert (worded["n_tokens"] < whole["n_tokens"]) == (wanted != whole["text"])
assert n_cut > 1 and 0 < n_last < n_cut, (n_cut, n_last)
# What a run tells of its texts is in its report, too.
n_open = sum(not row["ended"] for row in objects("whole.jsonl"))
out, n = load("worded.json")["output"], len(objects("whole.jsonl"))
assert out["at_max_words"] == n_last and load("whole.json")["output"]["at_max_words"] == 0
assert f"note: {n_last} of {n} texts end at --max-words\n" in open("worded.err").read()
assert n_open > 0 and f"note: {n_open} of {n} texts end at -n 60 and" in open("whole.err").read()
P
works verify worded.json; expect_line worded.json '"answer": "Name: "' '"max_words": 3,'
sed 's/"max_words": 3/"max_words": 4/' worded.json >other.json; fails 1 verify other.json
fails 2 run "${words[@]}" "${begun[@]}" --keep-answer --min-words 3 --max-words 2
expect_err "--max-words is 2, must be 3"

echo 'root ::= root "a" | "b"' >left.gbnf
echo 'root ::= ((("a"{9999}){9999}){9999})' >huge.gbnf
echo '{"type": "string", "pattern": "a"}' >pattern.json
python3 - <<'P'
open("deep.gbnf", "w").write("root ::= " + "(" * 100000 + "\n")
array = '{"type": "array", "minItems": 1, "items": '
open("deep.json", "w").write(array * 1000 + "true" + "}" * 1000)
P
refuse_each 2 run "${words[@]}" <<'END'
--grammar left.gbnf        | begins with itself
--grammar huge.gbnf        | 65536 states
--grammar deep.gbnf        | 64 groups
--json-schema pattern.json | 'pattern'
--json-schema deep.json    | inside each other
--grammar none.gbnf        | cannot read
--grammar one.gbnf --json-schema shape.json | allowed is one of them
--keep-answer              | --keep-answer is 1, must be 0
--answer a --answer-file b | --answer and --answer-file: allowed is one of them
--answer {reference}       | --answer: found {reference}
--answer {label}           | --label-field: found none
--stop=                    | --stop: found a text of 0 bytes, allowed 1..256
--max-words 0              | --max-words: found '0', allowed 1..1000000
END
# What shapes texts: they obey in private and in free tokens, and a job draws the same (kill.sh: one
# that was stopped).
shaped=("${words[@]}" --jsonl --seed 4 --ban e --ban $'\n' --ban ' a' --ban refusals --no-repeat 2
    --repeat-penalty 1.1 --logit-bias ' =6')
works run "${shaped[@]}" -o shaped.jsonl --report shaped.json; works verify shaped.json
works run "${words[@]}" --jsonl --seed 4 -o plain.jsonl
works run "${shaped[@]}" -o again.jsonl --job again; expect_same again.jsonl shaped.jsonl
python_check "a text has what is banned, or repeats words, or is shaped in no way" <<'P'
texts, plain = ([o["text"] for o in objects(f)] for f in ("shaped.jsonl", "plain.jsonl"))
for text in texts:
    words = re.split("[ \t\n\v\f\r]+", text.strip(" \t\n\v\f\r"))
    pairs = list(zip(words, words[1:]))
    assert not any(ban in text for ban in ("e", "\n", " a")) and len(set(pairs)) == len(pairs)
assert "e" in "".join(plain)
assert len(texts) == len(plain) and sum(t.count(" ") for t in texts) > len(texts)
P
works plan "${words[@]}" --ban refusals --no-repeat 4 --repeat-penalty 1.5 --logit-bias 40=-2.5
for line in "no text begins with .*I'm sorry" '"As an AI"' 'repeats *4 words' 'loses 6.49' \
    'token 40: -2.5'; do
    expect_line out "$line"
done
refuse_each 2 run "${words[@]}" <<'END'
--ban ''         | --ban: found a text of 0 bytes
--no-repeat 1      | --no-repeat: found '1', allowed 2..16
--repeat-penalty 3 | allowed 1..2
--logit-bias xyz=1 | the text of a token of the model
--logit-bias 300=1 | 0..299
--logit-bias a     | allowed TOKEN=X
--logit-bias a=b   | allowed is a number of -100..100
END
# A T that no text fits into is refused, by all who draw.
too_short="--n-predict: found 2, allowed"
for command in "run ${words[*]:0:6}" "plan ${words[*]:0:6}" "augpe ${words[*]:0:4} --num 1"; do
    # shellcheck disable=SC2086 # a command with its options
    refuse 2 "$too_short" $command -n 2 --grammar one.gbnf
done
least=$(sed -n 's/.*allowed \([0-9]*\) or more: no text of the grammar.*/\1/p' err)
works run "${words[@]:0:6}" -n "$least" --grammar one.gbnf -q # which not all texts fit into
expect_out '{"name": "'
fails 2 run "${words[@]:0:6}" -n $((least - 1)) --grammar one.gbnf -q
finish
