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
for list in 1,0x10 0x1 "1, 2" " 1" "1 ,2" 1e,2; do
    refuse 2 "--epsilon: found '$list'" attack --vectors vectors.txt docs.jsonl --epsilon "$list"
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
assert len(svg.getElementsByTagName('polyline')) == 4 * 5"
check "a table for people" test "$(wc -l <out.md)" = 12
run attack m.gguf docs.jsonl --mechanism exponential --epsilon 6 -o json
expect_rc 0
check "guesses of a model" python3 -c "
import json; r = json.load(open('out'))[0]
assert 0 <= r['language'] <= 1 and 0 <= r['context'] <= 1"

# With vectors a model is who guesses; a file alone is the documents.
run attack m.gguf docs.jsonl --vectors vectors.txt --mechanism custext+ --epsilon 6 -o json
expect_rc 0
check "guesses of a model about words of a file" python3 -c "
import json; r = json.load(open('out'))[0]
assert 0 <= r['language'] <= 1 and 0 <= r['context'] <= 1 and r['words'] == 3"
run attack m.gguf docs.jsonl --vectors vectors.txt --no-language --epsilon 6 -o csv; expect_rc 0
check "none of them" bash -c '! grep language out'
refuse 2 "unexpected argument 'more'" attack m.gguf docs.jsonl more --vectors vectors.txt
refuse 2 "unexpected argument 'docs.jsonl'" perturb m.gguf docs.jsonl --vectors vectors.txt

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
    # At 2 and 6 santext+ leaks .017 and .019 of the words: another run changes each by .001.
    assert r[0]['leaked_3'] < r[1]['leaked_3'] + .005, m
    assert max(r[0]['leaked_3'], r[1]['leaked_3']) < r[2]['leaked_3'], m
# Figure 9: lists of rantext are larger than those of custext+, and smaller than those of santext+.
for e in (2, 6, 14):
    lists = [rows[m, e]['list_50'] for m in ('custext+', 'rantext', 'santext+')]
    assert lists == sorted(set(lists)), lists
    assert rows['rantext', e]['list_10'] < rows['rantext', e]['list_90']
# Intervals take words as independent, and words of a document repeat: runs differ by .006 (1 sd).
for r in rows.values():
    assert r['bayes_mean'] <= r['nearest_high'] and r['nearest_10'] <= r['nearest']
    assert r['bayes_low'] - .02 <= r['bayes_mean'] <= r['bayes_high'] + .02, r"

# ---- Synonyms ------------------------------------------------------------------------------------
refuse 2 "--synonyms: cannot read none" attack --vectors vectors.txt docs.jsonl --synonyms none
printf ' \n\n' >blank; refuse 2 "no word in the synonyms" \
    attack --vectors vectors.txt docs.jsonl --synonyms blank
printf 'Cat dog  sat\nran the\n\nthe sat unknown\n' >all # the, cat and sat have synonyms
run attack --vectors vectors.txt docs.jsonl --synonyms all --mechanism exponential -o json
expect_rc 0
check "no other word" python3 -c "
import json
for r in json.load(open('out')): assert 0 <= r['synonyms'] <= 1, r"
printf 'the cat dog sat ran\n' >all
run attack --vectors vectors.txt docs.jsonl --synonyms all -o json; expect_rc 0
check "all words alike" python3 -c "
import json
for r in json.load(open('out')): assert r['synonyms'] == 1, r"

# ---- A model elsewhere ---------------------------------------------------------------------------
refuse 2 "no --remote-model NAME" attack --vectors vectors.txt docs.jsonl --remote http://localhost
refuse 2 "no --remote URL given" attack --vectors vectors.txt docs.jsonl --remote-model far
for i in $(seq 30); do echo '{"text": "the cat sat dog ran the 17 sat"}'; done >docs.jsonl
echo '{"text": "'"$(yes 'the cat ran' | head -n 60 | tr '\n' ' ')"'"}' >>docs.jsonl
remote_server plain
exec 8>plain/end
read -r port <plain/port
far=(--remote "http://127.0.0.1:$port" --remote-model far --retry-wait .01)
echo inputs >plain/mode
run attack --vectors vectors.txt docs.jsonl "${far[@]}" --epsilon 6 -o json; expect_rc 0
check "a server that repeats the words finds those that stayed" python3 -c "
import json
rows = json.load(open('out'))
assert len(rows) == 5
for r in rows: assert r['remote'] == r['nearest'] and r['remote_low'] < r['remote'], r"
check "words of the vocabulary and numbers alone are sent, 50 at a time" python3 -c "
import json
n = 0
for line in open('plain/bodies'):
    body = json.loads(line)
    assert body['model'] == 'far' and body['temperature'] == 0, body
    lines = body['messages'][0]['content'].split('\n')
    assert lines[-3:] == ['For the given list of \"INPUTS\":', lines[-2], # the paper's Appendix D
                          'Generate predictions for each token in the list.'], lines
    words = json.loads(lines[-2])
    assert 1 <= len(words) <= 50
    assert all(w.isdigit() or w in 'the cat dog sat ran'.split() for w in words), words
    n += 1
assert n == 5 * (30 + 4), n"
echo good >plain/mode
run attack --vectors vectors.txt docs.jsonl "${far[@]}" --epsilon 6 -o json; expect_rc 0
check "an answer without guesses finds nothing" python3 -c "
import json
for r in json.load(open('out')): assert r['remote'] == 1, r"
echo refuses >plain/mode
run attack --vectors vectors.txt docs.jsonl "${far[@]}" --epsilon 6 -o json; expect_rc 0
expect_err "an answer without content"
check "a refusal finds nothing" python3 -c "
import json
for r in json.load(open('out')): assert r['remote'] == 1, r"
echo 401 >plain/mode
run attack --vectors vectors.txt docs.jsonl "${far[@]}" --epsilon 6; expect_rc 1
expect_err "the server says 401"; expect_empty_out
exec 8>&-
wait "$server"
finish
