#!/usr/bin/env bash
# The command `perturb`: perturb.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
. "$here/words_support.sh"
small_model
small_vectors
MECHANISMS=(rantext santext+ custext+ exponential calibrated)
# perturb ARGS: by the small vectors. text TEXT ARGS: the same, of this text.
perturb() { run perturb --vectors vectors.txt "$@"; }
text() {
    last="dpinfer perturb ${*:2}"
    "$dpinfer" perturb "${@:2}" >out 2>err <<<"$1"
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
for mechanism in "${MECHANISMS[@]}"; do
    text "The cat sat" --vectors vectors.txt --mechanism "$mechanism"
    expect 0 "$mechanism, over 5 words of 2 dimensions" \
        "epsilon      6 for a word, as its paper counts"
    expect_lines 1 out
    holds "words of the vocabulary" "
assert set(out.split()) <= {'the', 'The', 'cat', 'dog', 'sat', 'ran'}, out"
done
expect_err "holds for every pair of words"
text "The zebra 12 sat" --vectors vectors.txt --json; expect 0
holds "dropped" "
d = json.loads(out); w = d['words']
assert [x['word'] for x in w] == ['The', 'zebra', '12', 'sat'], w
assert [x['how'] for x in w] == ['drawn', 'dropped', 'number', 'drawn'], w
assert w[1]['replacement'] is None and 1 <= int(w[2]['replacement']) <= 1000
assert d['text'] == ' '.join(x['replacement'] for x in w if x['replacement'])"
text "" --vectors vectors.txt; expect 0
text "Some words of a document" m.gguf; expect 0 "rantext, over"

# ---- Documents ---------------------------------------------------------------------------------
printf '{"text": "%s"}\n' 'the cat' '' 'the dog ran' >docs.jsonl
perturb docs.jsonl -o out.jsonl --mechanism exponential; expect 0
holds "one object per document" "
rows = objects('out.jsonl')
assert [x['index'] for x in rows] == [0, 1, 2]
assert rows[1]['text'] is None and len(rows[2]['text'].split()) == 3"
refuse 2 "is there already" perturb --vectors vectors.txt docs.jsonl -o out.jsonl
printf 'id;letter\n1;the cat\n' >docs.csv
refuse 2 "--delimiter: found '::', allowed one character, or tab" \
    perturb --vectors vectors.txt docs.csv --delimiter '::'
perturb docs.csv --text-field letter --delimiter ';'; expect 0; expect_lines 1 out

# ---- Distances and certificates ----------------------------------------------------------------
certify() { perturb --certify --mechanism "$@" --json; }
certify exponential --distances d.cache; expect 0
first=$(field epsilon)
check "cached" test "$(stat -c %s d.cache)" = $((64 + 4 * 5 * 5))
certify exponential --distances d.cache
check "the same from the file" test "$(field epsilon)" = "$first"
# By hand: the largest ln P(y|x) / P(y|x') of e^(-6 d / (2 D)).
holds "epsilon by enumeration" "
import math
v = [(0, 0), (1, 0), (1, .5), (0, 2), (.25, 2)]
d = [[math.dist(a, b) for b in v] for a in v]
D = max(map(max, d))
P = [[math.exp(-3 * x / D) for x in row] for row in d] + [[1] * 5]
P = [[x / sum(row) for x in row] for row in P]
e = max(math.log(a[y] / b[y]) for a in P for b in P for y in range(5))
assert abs(e - $first) < 1e-5 and e <= 6, (e, $first)"
certify custext+ --group-size 2; expect 0
check "infinite" test "$(field epsilon)" = None
perturb --certify --mechanism santext+; expect_out "true epsilon       infinite"
certify santext+ --rare 1
check "finite where all are rare" test "$(field epsilon)" != None
perturb --certify --json
holds "rantext is above its nominal epsilon" "assert json.loads(out)['epsilon'] > 6"
refuse 1 "other words or vectors" perturb m.gguf --distances d.cache --certify

# ---- Reports -----------------------------------------------------------------------------------
perturb docs.jsonl --report r.md --report r.html; expect 0
check "words that are not protected say so" grep -q 'certificate\\_epsilon\\_finite | [0-9]' r.md
check "a page" grep -q '<td>mechanisms.1.certificate_epsilon_finite</td>' r.html
for mechanism in "${MECHANISMS[@]}"; do
    rm -f r.json
    perturb docs.jsonl --mechanism "$mechanism" --group-size 2 --report r.json; expect 0
    run verify r.json; expect 0; expect_out "the vocabulary was not looked at"
    run verify r.json --vectors vectors.txt
    expect 0; expect_out "the certificate is that of the vocabulary"
done
# The last one is calibrated, 6 for a word: what is changed by hand is seen.
holds "statement" "
r = json.load(open('r.json')); m = r['claim']['mechanisms'][0]; s = r['statement']
assert (m['n_documents'], m['n_words'], m['runs']) == (2, 5, 3), m
assert 5.9 < m['certificate_epsilon'] <= 6
assert abs(s['epsilon'] - 3 * m['certificate_epsilon']) < 1e-9 and s['delta'] == 0"
# Section, key and value that is put there (W: of the mechanism); the exit code of verify, what it
# says, its options.
while read -r section key value code text more; do
    python3 -c "
import json; r = json.load(open('r.json')); s = '$section'
(r['claim']['mechanisms'][0] if s == 'W' else r[s])['$key'] = $value
json.dump(r, open('changed.json', 'w'))"
    # shellcheck disable=SC2086
    run verify changed.json $more; expect "$code" "${text//_/ }"
    [ "$code" = 5 ] || expect_out "WRONG"
done <<'TABLE'
statement epsilon 3 1 not_hold
follows epsilon 1 1 not_hold
W certificate_epsilon 7 5 allowed_at_most
W certificate_epsilon None 5 allowed_at_most
W epsilon_nominal 100 5 is_100,_must
W epsilon_nominal 7.0 1 not_hold
W epsilon_nominal .1 5 allowed_at_most
W certificate_epsilon_finite 3.0 5 which_no_vocabulary_has
W certificate_kept -1.0 5 is_-1.0,_must
W certificate_best_guess 2.0 5 is_2.0,_must
W certificate_pairs_infinite .5 5 which_no_vocabulary_has
W note 1 5 unknown_key
transparency method 'kept' 1 not_hold
W replaced 2.0 5 replaced_is
W vocabulary_words -6 5 is_-6,_must
W runs 4 1 not_hold
W runs 9 5 the_longest_one_has_9
W runs 2 5 words:_found_5
W certificate_kept .9 5 which_no_vocabulary_has --vectors vectors.txt
W certificate_kept .0123 1 not_hold --vectors vectors.txt
W vocabulary_hash 'x' 5 found_'x' --vectors vectors.txt
W vocabulary_hash '0123456789abcdef' 1 not_hold --vectors vectors.txt
W replaced_by 'rantext' 1 not_hold --vectors vectors.txt
W replaced_by 'noise' 5 must_be_one_of
dp_setting model 'central' 1 not_hold
TABLE
perturb docs.jsonl --mechanism santext+ --report santext.json
sed -i 's/"certificate_epsilon": null/"certificate_epsilon": 3.0/' santext.json
run verify santext.json; expect 5 "infinite: a frequent word can stay"
# A rare share that leaves no word frequent has a bound.
perturb docs.jsonl --mechanism santext+ --rare .95 --report rare.json
expect_err "grows with the distance"
run verify rare.json --vectors vectors.txt; expect 0
# Stop words that stay, and numbers that become numbers, have no bound with any other word.
printf '%s\n' "the 0 0" "of 1 0" "cat 1 .5" "dog 0 2" "ran .25 2" >stop.txt
printf '%s\n' "cat 1 .5" "dog 0 2" "7 .25 2" "ran .3 .3" >numbers.txt
while read -r vectors mechanism; do
    run perturb --vectors "$vectors" --mechanism "$mechanism" --certify --json
    check "$mechanism: no bound" test "$(field epsilon)" = None
    run perturb --vectors "$vectors" docs.jsonl --mechanism "$mechanism" --report "$mechanism.json"
    check "$mechanism: its report says so" grep -q '"certificate_epsilon": null' "$mechanism.json"
        run verify "$mechanism.json" --vectors "$vectors"; expect 0
done <<'TABLE'
stop.txt custext+
numbers.txt rantext
TABLE
finish
