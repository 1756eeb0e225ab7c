#!/usr/bin/env bash
# The script bench/inferdpt, with a server of its own and with another one: inferdpt.sh
# path/to/dpinfer SOURCE
source=$(readlink -f "$2")
. "$(dirname "$0")/cli_support.sh"
. "$here/words_support.sh"
model=$source/models/dpinfer-4m-q8_0.gguf
small_model
{
    echo text
    for i in $(seq 9); do echo "the $i cats sat on mats and ran to $i dogs of the house"; done
} >docs.csv
measure() {
    last="bench/inferdpt $*"
    python3 "$source/bench/inferdpt" "$@" >out 2>err </dev/null
    rc=$?
}
rows_of() { # EPSILONS
    holds "a row for each, beside the remote model alone" "
import csv
rows = {(r['method'], r['epsilon']): r for r in csv.DictReader(open('out'))}
names = 'rantext', 'santext+', 'custext+', 'exponential', 'calibrated'
assert list(rows) == [('local alone', ''), ('remote alone', 'inf')] + [
    (name, e) for name in names for e in '$1'.split(',')], list(rows)
for key, r in rows.items():
    for name in 'like_remote', 'like_other':
        assert (r[name] == '') == (key[0] == 'remote alone'), (key, r[name])
        assert r[name] == '' or -1 <= float(r[name]) <= 1 and float(r[name + '_se']) >= 0, r"
}

measure --epsilon 6 "$dpinfer" "$model" m.gguf docs.csv 4; expect 0
rows_of 6

# A server that answers all with one text: the documents alone are in its requests besides.
begin_remote plain
KEY=a-key measure --url "http://127.0.0.1:$port" --name far --key-env KEY --epsilon 1,14 \
    --words 6 "$dpinfer" m.gguf docs.csv 4
expect 0
rows_of 1,14
holds "who reads the true documents, and who does not" "
bodies = objects('plain/bodies')
assert len(bodies) == 4 + 5 * 2 * 4, len(bodies)
for i, body in enumerate(bodies):
    assert body['model'] == 'far' and body['max_completion_tokens'] == 150, body
    assert body['temperature'] == .5, body
    prompt = body['messages'][0]['content']
    assert prompt.startswith('Continue the text.'), prompt
    assert i >= 4 or prompt.endswith('\n\nthe %d cats sat on mats' % (i + 1)), prompt"
check "the key" test "$(grep -c 'Bearer a-key' plain/bytes)" = 44
end_remote plain
url=http://127.0.0.1:1
measure --url $url "$dpinfer" m.gguf docs.csv 4
expect 2 "needs REMOTE.gguf, or --url and --name instead"
measure --url $url --name x "$dpinfer" m.gguf m.gguf docs.csv 4; expect 2
measure --epsilon 1,x "$dpinfer" m.gguf m.gguf docs.csv 4; expect 2 "--epsilon: found '1,x'"
measure "$dpinfer" m.gguf m.gguf docs.csv 8; expect 1 "4 others"
finish
