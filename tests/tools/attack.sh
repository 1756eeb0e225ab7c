#!/usr/bin/env bash
# The command `attack`: attack.sh path/to/dpinfer SOURCE
source=$(readlink -f "$2")
. "$(dirname "$0")/cli_support.sh"
. "$here/words_support.sh"
model=$source/models/dpinfer-4m-q8_0.gguf
tickets=$source/examples/tickets.csv
small_model
small_vectors
echo '{"text": "the cat sat"}' >docs.jsonl
attack=(attack docs.jsonl --vectors vectors.txt)
# rows ARGS: the table of an attack on docs.jsonl, as lines of JSON.
rows() { run "${attack[@]}" -o jsonl "$@"; }
# every WHAT PYTHON: of each row r.
every() { holds "$1" "assert lines() and all($2 for r in lines()), out"; }

refuse 2 "no MODEL and no --vectors FILE given" attack
refuse 2 "--mechanism: found 'noise'" "${attack[@]}" --mechanism noise
refuse 2 "each once" "${attack[@]}" --mechanism rantext,rantext
for list in 0 65 2,1 1,,2 1, x 1,0x10 0x1 "1, 2" " 1" "1 ,2" 1e,2; do
    refuse 2 "--epsilon: found '$list'" "${attack[@]}" --epsilon "$list"
done
refuse 4 "No such file" attack --vectors vectors.txt nothing.jsonl
: >empty.jsonl
refuse 4 "" attack --vectors vectors.txt empty.jsonl
refuse 4 "no word in the documents" attack --vectors vectors.txt

# One table in every form.
for form in md csv json jsonl svg; do
    run "${attack[@]}" --epsilon 1,6 -o $form; expect 0
    mv out out.$form
done
: >out
holds "forms" "
import csv, xml.dom.minidom
rows = list(csv.DictReader(open('out.csv')))
assert [(r['mechanism'], float(r['epsilon'])) for r in rows] == [(m, e)
    for m in ('rantext', 'santext+', 'custext+', 'exponential', 'calibrated') for e in (1, 6)], rows
assert len(json.load(open('out.json'))) == 10 and len(objects('out.jsonl')) == 10
assert 'language' not in rows[0] and float(rows[0]['bayes_low']) <= float(rows[0]['bayes'])
svg = xml.dom.minidom.parse('out.svg')
assert len(svg.getElementsByTagName('polyline')) == 4 * 5"
expect_lines 12 out.md # for people
run attack m.gguf docs.jsonl --mechanism exponential --epsilon 6 -o jsonl; expect 0
every "guesses of a model" "0 <= r['language'] <= 1 and 0 <= r['context'] <= 1"

# With vectors a model is who guesses; a file alone is the documents.
attack=(attack m.gguf docs.jsonl --vectors vectors.txt)
rows --mechanism custext+ --epsilon 6; expect 0
every "guesses of a model about words of a file" \
    "0 <= r['language'] <= 1 and 0 <= r['context'] <= 1 and r['words'] == 3"
rows --no-language --epsilon 6; expect 0
expect_none "none of them" language out
refuse 2 "unexpected argument 'more'" attack m.gguf docs.jsonl more --vectors vectors.txt
refuse 2 "unexpected argument 'docs.jsonl'" perturb m.gguf docs.jsonl --vectors vectors.txt

# Tong et al. 2025, Figure 7 and Tables IV and V: custext+ protects least from inversion at every
# epsilon; words that stay alike become more with epsilon, and distances fall. The best guess
# is right at least as often as any other from the word alone.
attack=(attack "$model" "$tickets" --no-language --vocabulary 2000)
rows --mechanism exponential,calibrated --epsilon 14; expect 0
mv out general
rows --mechanism rantext,santext+,custext+ --epsilon 2,6,14; expect 0
holds "the orders of the paper" "
rows = {(r['mechanism'], r['epsilon']): r for r in lines() + objects('general')}
for (m, e), r in rows.items():
    for key in 'nearest', 'nearest_10':
        assert m == 'custext+' or rows['custext+', e][key] < r[key], (m, e)
# More than 8,000 words are drawn: a share has a standard deviation below .0055, and a difference
# of two one below .008. What is strict here differs by 30 of them and more. Elsewhere there is room
# for 6.5 of them and more: a sound program fails with a chance below 1e-10. (Three words that were
# leaked overlap with others, but so few are at 2 and 6 that .03 are 6.5 standard deviations.)
for m in 'rantext', 'santext+', 'custext+':
    low, middle, high = (rows[m, e] for e in (2, 6, 14))
    assert low['words'] > 8000, low
    for key, sign in ('alike', 1), ('distance', -1), ('leaked_3', 1):
        a, b, c = (sign * r[key] for r in (low, middle, high))
        assert a < c and a < b + (.03 if key == 'leaked_3' else .055) and b < c, (m, key)
# Figure 9: lists of rantext are larger than those of custext+, and smaller than those of santext+.
for e in (2, 6, 14):
    lists = [rows[m, e]['list_50'] for m in ('custext+', 'rantext', 'santext+')]
    assert lists == sorted(set(lists)), lists
    assert rows['rantext', e]['list_10'] < rows['rantext', e]['list_90']
for r in rows.values():
    assert r['bayes_mean'] <= r['nearest_high'] + .03 and r['nearest_10'] <= r['nearest']
    assert r['bayes_low'] - .03 <= r['bayes_mean'] <= r['bayes_high'] + .03, r"

# ---- Synonyms ------------------------------------------------------------------------------------
attack=(attack docs.jsonl --vectors vectors.txt)
refuse 2 "--synonyms: cannot read none" "${attack[@]}" --synonyms none
printf ' \n\n' >blank; refuse 2 "no word in the synonyms" "${attack[@]}" --synonyms blank
printf 'Cat dog  sat\nran the\n\nthe sat unknown\n' >all # the, cat and sat have synonyms
windows_text all
rows --synonyms all --mechanism exponential; expect 0
every "no other word" "0 <= r['synonyms'] <= 1"
printf 'the cat dog sat ran\n' >all
rows --synonyms all; expect 0
every "all words alike" "r['synonyms'] == 1"

# ---- A model elsewhere ---------------------------------------------------------------------------
refuse 2 "no --remote-model NAME" "${attack[@]}" --remote http://localhost
refuse 2 "no --remote URL given" "${attack[@]}" --remote-model far
for i in $(seq 30); do echo '{"text": "the cat sat dog ran the 17 sat"}'; done >docs.jsonl
echo '{"text": "'"$(yes 'the cat ran' | head -n 60 | tr '\n' ' ')"'"}' >>docs.jsonl
begin_remote plain
attack+=(--remote "http://127.0.0.1:$port" --remote-model far --retry-wait .01 --remote-temp 0
    --epsilon 6)
echo inputs >plain/mode
rows; expect 0
expect_lines 5 out
every "a server that repeats the words finds those that stayed" \
    "r['remote'] == r['nearest'] and r['remote_low'] < r['remote']"
holds "words of the vocabulary and numbers alone are sent, 50 at a time" "
bodies = objects('plain/bodies')
assert len(bodies) == 5 * (30 + 4), len(bodies)
for body in bodies:
    assert body['model'] == 'far' and body['temperature'] == 0, body
    *_, title, words, ask = body['messages'][0]['content'].split('\n')
    assert title == 'For the given list of \"INPUTS\":', title # the paper's Appendix D
    assert ask == 'Generate predictions for each token in the list.', ask
    words = json.loads(words)
    assert 1 <= len(words) <= 50
    assert all(w.isdigit() or w in 'the cat dog sat ran'.split() for w in words), words"
for mode in good refuses; do
    echo $mode >plain/mode
    rows; expect 0
    every "an answer without guesses finds nothing ($mode)" "r['remote'] == 1"
done
expect_err "an answer without content"
echo 401 >plain/mode
rows; expect 1 "the server says 401"
expect_empty_out
end_remote plain
finish
