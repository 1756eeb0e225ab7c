#!/usr/bin/env bash
# The command `perturb`: perturb.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
small_vectors
perturb() { # TEXT ARGS: standard input is TEXT
    local text=$1
    shift
    last="dpinfer perturb $*"
    "$dpinfer" perturb "$@" >out 2>err <<<"$text"
    rc=$?
}
field() { python3 -c "import json, sys; print(json.load(open('out'))['$1'])"; }

# ---- The command line --------------------------------------------------------------------------
refuse 2 "no MODEL and no --vectors FILE given" perturb
refuse 2 "allowed rantext|santext+|custext+|exponential|calibrated" perturb m.gguf --mechanism noise
refuse 2 "allowed 0.001..64" perturb m.gguf --epsilon 65
refuse 2 "unexpected argument" perturb --vectors vectors.txt a b
refuse 2 "reads no document" perturb --vectors vectors.txt . --certify
refuse 1 "No such file" perturb --vectors nothing.txt
refuse 4 "No such file" perturb --vectors vectors.txt nothing.jsonl
refuse 2 "is an input" perturb --vectors vectors.txt -o ./vectors.txt --overwrite
check "vectors are as they were" grep -q "dog 1 .5" vectors.txt

# ---- A text ------------------------------------------------------------------------------------
for mechanism in rantext santext+ custext+ exponential calibrated; do
    perturb "The cat sat" --vectors vectors.txt --mechanism "$mechanism"
    expect_rc 0
    expect_lines 1 out
    expect_err "$mechanism, over 5 words of 2 dimensions"
    expect_err "epsilon      6 for a word, as its paper counts"
    tr ' ' '\n' <out | grep -vxE 'the|The|cat|dog|sat|ran' >others
    check "words of the vocabulary" test ! -s others
done
expect_err "holds for every pair of words"
perturb "The zebra 12 sat" --vectors vectors.txt --json
expect_rc 0
check "dropped" python3 -c "
import json; d = json.load(open('out')); w = d['words']
assert [x['word'] for x in w] == ['The', 'zebra', '12', 'sat'], w
assert [x['how'] for x in w] == ['drawn', 'dropped', 'number', 'drawn'], w
assert w[1]['replacement'] is None and 1 <= int(w[2]['replacement']) <= 1000
assert d['text'] == ' '.join(x['replacement'] for x in w if x['replacement'])"
perturb "" --vectors vectors.txt
expect_rc 0
perturb "Some words of a document" m.gguf
expect_rc 0
expect_err "rantext, over"

# ---- Documents ---------------------------------------------------------------------------------
printf '{"text": "the cat"}\n{"text": ""}\n{"text": "the dog ran"}\n' >docs.jsonl
run perturb --vectors vectors.txt docs.jsonl -o out.jsonl --mechanism exponential
expect_rc 0
check "one object per document" python3 -c "
import json
lines = [json.loads(x) for x in open('out.jsonl')]
assert [x['index'] for x in lines] == [0, 1, 2]
assert lines[1]['text'] is None and len(lines[2]['text'].split()) == 3"
refuse 2 "is there already" perturb --vectors vectors.txt docs.jsonl -o out.jsonl
printf 'id;letter\n1;the cat\n' >docs.csv
refuse 2 "--delimiter: found '::', allowed one character, or tab" \
    perturb --vectors vectors.txt docs.csv --delimiter '::'
run perturb --vectors vectors.txt docs.csv --text-field letter --delimiter ';'
expect_rc 0
expect_lines 1 out

# ---- Distances and certificates ----------------------------------------------------------------
run perturb --vectors vectors.txt --distances d.cache --certify --mechanism exponential --json
expect_rc 0
first=$(field epsilon)
check "cached" test "$(stat -c %s d.cache)" = $((64 + 4 * 5 * 5))
run perturb --vectors vectors.txt --distances d.cache --certify --mechanism exponential --json
check "the same from the file" test "$(field epsilon)" = "$first"
# By hand: the largest ln P(y|x) / P(y|x') of e^(-6 d / (2 D)).
check "epsilon by enumeration" python3 -c "
import math
v = [(0, 0), (1, 0), (1, .5), (0, 2), (.25, 2)]
d = [[math.dist(a, b) for b in v] for a in v]
D = max(map(max, d))
P = [[math.exp(-3 * x / D) for x in row] for row in d] + [[1] * 5]
P = [[x / sum(row) for x in row] for row in P]
e = max(math.log(a[y] / b[y]) for a in P for b in P for y in range(5))
assert abs(e - $first) < 1e-5 and e <= 6, (e, $first)"
run perturb --vectors vectors.txt --certify --mechanism custext+ --group-size 2 --json
expect_rc 0
check "infinite" test "$(field epsilon)" = None
run perturb --vectors vectors.txt --certify --mechanism santext+
expect_out "true epsilon       infinite"
run perturb --vectors vectors.txt --certify --mechanism santext+ --rare 1 --json
check "finite where all are rare" test "$(field epsilon)" != None
run perturb --vectors vectors.txt --certify --json
check "rantext is above its nominal epsilon" python3 -c "assert $(field epsilon) > 6"
refuse 1 "other words or vectors" perturb m.gguf --distances d.cache --certify
# ---- Reports -----------------------------------------------------------------------------------
run perturb --vectors vectors.txt docs.jsonl --report r.md --report r.html; expect_rc 0
check "words that are not protected say so" grep -q 'epsilon\\_word | [0-9]' r.md
check "a page" grep -q '<h2>Certificate</h2>' r.html
for mechanism in rantext santext+ custext+ exponential calibrated; do
    rm -f r.json
    run perturb --vectors vectors.txt docs.jsonl --mechanism "$mechanism" --group-size 2 \
        --report r.json
    expect_rc 0
    run verify r.json; expect_rc 0; expect_out "the vocabulary was not looked at"
    run verify r.json --vectors vectors.txt
    expect_rc 0; expect_out "the certificate is that of the vocabulary"
done
# The last one is calibrated, 6 for a word: what is changed by hand is seen.
check "statement" python3 -c "
import json; r = json.load(open('r.json')); s = r['statement']
assert r['released'] == {'n_documents': 2, 'n_words': 5, 'longest': 3}, r['released']
assert 5.9 < s['epsilon_word'] <= 6 and abs(s['epsilon_document'] - 3 * s['epsilon_word']) < 1e-9"
change() { python3 -c "
import json; r = json.load(open('r.json')); x = r['$1']; x['$2'] = $3
json.dump(r, open('changed.json', 'w'))"; }
for what in "statement epsilon_document 3" "statement epsilon_word 1" "certificate epsilon 7" \
    "certificate epsilon None" "parameters epsilon 100" "released longest 9"; do
    # shellcheck disable=SC2086
    change $what
    run verify changed.json; expect_rc 1; expect_out "WRONG"; expect_err "not hold"
done
for what in "certificate kept .9" "vocabulary hash 'x'" "parameters mechanism 'rantext'"; do
    # shellcheck disable=SC2086
    change $what
    run verify changed.json --vectors vectors.txt; expect_rc 1; expect_out "WRONG"
done
change parameters mechanism "'noise'"
refuse 5 "lacks a key" verify changed.json
change statement unit "'document'"
refuse 5 "lacks a key" verify changed.json
run perturb --vectors vectors.txt docs.jsonl --mechanism santext+ --report santext.json
sed -i 's/"epsilon": null/"epsilon": 3.0/; s/"epsilon_word": null/"epsilon_word": 3.0/' santext.json
sed -i 's/"epsilon_document": null/"epsilon_document": 9.0/' santext.json
run verify santext.json; expect_rc 1; expect_out "infinite: a frequent word can stay"
# A rare share that leaves no word frequent has a bound.
run perturb --vectors vectors.txt docs.jsonl --mechanism santext+ --rare .95 --report rare.json
expect_err "grows with the distance"
run verify rare.json --vectors vectors.txt; expect_rc 0
# Stop words that stay, and numbers that become numbers, have no bound with any other word.
printf '%s\n' "the 0 0" "of 1 0" "cat 1 .5" "dog 0 2" "ran .25 2" >stop.txt
printf '%s\n' "cat 1 .5" "dog 0 2" "7 .25 2" "ran .3 .3" >numbers.txt
for what in "stop.txt custext+" "numbers.txt rantext"; do
    # shellcheck disable=SC2086
    set -- $what
    run perturb --vectors "$1" --mechanism "$2" --certify --json
    check "$2: no bound" test "$(field epsilon)" = None
    run perturb --vectors "$1" docs.jsonl --mechanism "$2" --report "$2.json"
    check "$2: its report says so" grep -q '"epsilon_word": null' "$2.json"
    check "$2: unknown words" grep -q '"unknown_words": "dropped, which shows"' "$2.json"
    run verify "$2.json" --vectors "$1"; expect_rc 0
done
finish
