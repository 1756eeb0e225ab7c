#!/usr/bin/env bash
# The command `attack`: attack.sh path/to/dpinfer SOURCE
. "$(dirname "$0")/cli_support.sh"
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
tickets=$(readlink -f "$2/examples/tickets.csv")
small_model
small_vectors
echo '{"text": "the cat sat"}' >docs.jsonl

refuse 2 "no MODEL and no --vectors FILE given" attack
refuse 2 "--mechanism: found 'noise'" attack --vectors vectors.txt docs.jsonl --mechanism noise
refuse 2 "each once" attack --vectors vectors.txt docs.jsonl --mechanism rantext,rantext
for list in 0 65 2,1 1,,2 1, x; do
    refuse 2 "--epsilon: found '$list'" attack --vectors vectors.txt docs.jsonl --epsilon $list
done
refuse 4 "No such file" attack --vectors vectors.txt nothing.jsonl
: >empty.jsonl
refuse 4 "" attack --vectors vectors.txt empty.jsonl
refuse 4 "no word in the documents" attack --vectors vectors.txt

# One table in every form.
for form in md csv json jsonl svg; do
    run attack --vectors vectors.txt docs.jsonl --epsilon 1,6 -o $form
    expect_rc 0
    mv out out.$form
done
check "forms" python3 -c "
import csv, json, xml.dom.minidom
rows = list(csv.DictReader(open('out.csv')))
assert [(r['mechanism'], float(r['epsilon'])) for r in rows] == [(m, e)
    for m in ('rantext', 'santext+', 'custext+', 'exponential', 'calibrated') for e in (1, 6)], rows
assert len(json.load(open('out.json'))) == 10 and len(open('out.jsonl').readlines()) == 10
assert 'language' not in rows[0] and float(rows[0]['bayes_low']) <= float(rows[0]['bayes'])
svg = xml.dom.minidom.parse('out.svg')
assert len(svg.getElementsByTagName('polyline')) == 3 * 5"
check "a table for people" test "$(wc -l <out.md)" = 12
run attack m.gguf docs.jsonl --mechanism exponential --epsilon 6 -o json
expect_rc 0
check "guesses of a model" python3 -c "
import json; r = json.load(open('out'))[0]
assert 0 <= r['language'] <= 1 and 0 <= r['context'] <= 1"

# Tong et al. 2025, Figure 7 and Tables IV and V: custext+ protects least from inversion at every
# epsilon; words that stay alike become more with epsilon, and distances fall. The best guess
# is right at least as often as any other from the word alone.
run attack "$model" "$tickets" --no-language --epsilon 2,6,14 -o json
expect_rc 0
check "the orders of the paper" python3 -c "
import json
rows = {(r['mechanism'], r['epsilon']): r for r in json.load(open('out'))}
for e in (2, 6, 14):
    for m in ('rantext', 'santext+', 'exponential', 'calibrated'):
        assert rows['custext+', e]['nearest'] < rows[m, e]['nearest'], (m, e)
        assert rows['custext+', e]['nearest_10'] < rows[m, e]['nearest_10'], (m, e)
for m in ('rantext', 'santext+', 'custext+'):
    r = [rows[m, e] for e in (2, 6, 14)]
    assert r[0]['alike'] < r[1]['alike'] < r[2]['alike'], m
    assert r[0]['distance'] > r[1]['distance'] > r[2]['distance'], m
    assert r[0]['leaked_3'] < r[1]['leaked_3'] < r[2]['leaked_3'], m
for r in rows.values():
    assert r['bayes_mean'] <= r['nearest_high'] and r['nearest_10'] <= r['nearest']
    assert r['bayes_low'] - .01 <= r['bayes_mean'] <= r['bayes_high'] + .01, r"
finish
