#!/usr/bin/env bash
# Texts of a given form, from outside: --grammar and --json-schema of run and plan, the report and
# its verification, a job that goes on, and what is refused.
#   grammar.sh DPINFER SOURCE
set -u
cli=$1 source=$2
model=$source/models/dpinfer-4m-q8_0.gguf refs=$source/examples/refs/discharge
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0 failed=0
check() {
    local what=$1
    shift
    if "$@" >/dev/null 2>&1; then
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        failed=$((failed + 1))
    fi
}
# run NAME ARGS...: its texts in NAME.jsonl, its report in NAME.json.
run() {
    local name=$1
    shift
    "$cli" run "$model" "$refs" --rho 2 -B 4 -n 60 --jsonl -o "$name.jsonl" --report "$name.json" \
        --overwrite "$@" >"$name.out" 2>"$name.err"
}
refuse() { # WHAT, then part of the message, then options
    local part=$1
    shift
    "$cli" run "$model" "$refs" --rho 2 -B 4 -n 60 "$@" >out 2>err
    [ $? -eq 2 ] && grep -qF -- "$part" err && [ ! -s out ]
}

printf 'root ::= "{\\"name\\": \\"\xc3\x84nne\\"}"\n' >one.gbnf
cat >shape.json <<'END'
{"type": "object", "properties": {"age": {"type": "integer"}, "sex": {"enum": ["f", "m"]},
 "drug": {"type": "string", "maxLength": 8}}, "required": ["age", "sex"]}
END
# Every method writes the one text that there is.
for method in invisibleink amin tang adapmixed; do
    set --
    [ $method != adapmixed ] || set -- --delta 1e-6 --i-know-this-is-not-dp
    run one --grammar one.gbnf --method "$method" "$@"
    check "$method does not write the only text" python3 - one.jsonl <<'END'
import json, sys
texts = [json.loads(line)["text"] for line in open(sys.argv[1], encoding="utf-8")]
assert texts and all(text == '{"name": "\u00c4nne"}' for text in texts), texts
END
done
# What a schema leaves open is drawn, and is JSON of it.
run form --json-schema shape.json --seed 3
check "texts are no JSON of the schema" python3 - form.jsonl <<'END'
import json, sys
for line in open(sys.argv[1], encoding="utf-8"):
    row = json.loads(line)
    assert row["ended"], "T ended first"
    text = json.loads(row["text"])
    assert isinstance(text["age"], int) and text["sex"] in "fm" and len(text.get("drug", "")) <= 8
    assert list(text) == [key for key in ("age", "sex", "drug") if key in text]
END
check "the statement says nothing of the form" grep -q "form of texts" form.err
run ink --grammar one.gbnf
check "the report does not hold" "$cli" verify ink.json
check "the report has no digest" grep -Eq '"grammar": "[0-9a-f]{16}"' ink.json
sed 's/"grammar": "[0-9a-f]*"/"grammar": null/' ink.json >other.json
"$cli" verify other.json >/dev/null 2>&1
check "a report without its grammar holds" test $? -eq 1
# A job goes on with the same grammar alone.
"$cli" run "$model" "$refs" --rho 2 -B 4 -n 60 --jsonl -o job.jsonl --seed 3 --job job \
    --json-schema shape.json >/dev/null 2>&1
check "a job with a grammar fails" test -s job.jsonl
check "a job draws other texts" cmp -s <(python3 -c '
import json, sys
for line in open("job.jsonl", encoding="utf-8"): print(json.loads(line)["text"])') <(python3 -c '
import json, sys
for line in open("form.jsonl", encoding="utf-8"): print(json.loads(line)["text"])')

echo 'root ::= root "a" | "b"' >left.gbnf
echo 'root ::= ((("a"{9999}){9999}){9999})' >huge.gbnf
python3 -c 'print("root ::= " + "(" * 100000)' >deep.gbnf
echo '{"type": "string", "pattern": "a"}' >pattern.json
python3 -c 'print("{\"type\": \"array\", \"minItems\": 1, \"items\": " * 1000 + "true" +
    "}" * 1000)' >deep.json
check "left recursion" refuse "begins with itself" --grammar left.gbnf
check "huge repetitions" refuse "65536 states" --grammar huge.gbnf
check "deep groups" refuse "64 groups" --grammar deep.gbnf
check "an unknown keyword" refuse "'pattern'" --json-schema pattern.json
check "a deep schema" refuse "inside each other" --json-schema deep.json
# A T that no text fits into is refused, by all who draw.
for command in run plan "augpe --num 1"; do
    if [ "${command%% *}" = augpe ]; then set -- --rho 2; else set -- --rho 2 -B 4; fi
    # shellcheck disable=SC2086 # a command with its options
    "$cli" ${command%% *} "$model" "$refs" "$@" ${command#"${command%% *}"} -n 2 \
        --grammar one.gbnf >out 2>err
    check "$command with a T below the shortest text" test $? -eq 2
    check "$command says why" grep -qF -- "--n-predict: found 2, allowed" err
done
least=$(sed -n 's/.*allowed \([0-9]*\) or more: no text of the grammar.*/\1/p' err)
"$cli" run "$model" "$refs" --rho 2 -B 4 -n "$least" --grammar one.gbnf -q >out 2>err
check "the least T, which not all texts fit into" grep -qF '{"name": "' out
"$cli" run "$model" "$refs" --rho 2 -B 4 -n $((least - 1)) --grammar one.gbnf -q >out 2>err
check "a T of one less" test $? -eq 2
check "no file" refuse "cannot read" --grammar none.gbnf
check "both" refuse "allowed is one of them" --grammar one.gbnf --json-schema shape.json
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
