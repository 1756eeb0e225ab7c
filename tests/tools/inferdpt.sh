#!/usr/bin/env bash
# The script bench/inferdpt, with a server of its own and with another one: inferdpt.sh
# path/to/dpinfer SOURCE
. "$(dirname "$0")/cli_support.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY all_proxy
script=$(readlink -f "$2/bench/inferdpt")
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
small_model
echo text >docs.csv
for i in $(seq 9); do
    echo "the $i cats sat on mats and ran to $i dogs of the house" >>docs.csv
done
measure() {
    last="bench/inferdpt $*"
    python3 "$script" "$@" >out 2>err </dev/null
    rc=$?
}

measure --epsilon 6 "$dpinfer" "$model" m.gguf docs.csv 4; expect_rc 0
cat >rows.py <<'TABLE'
import csv, sys
rows = {(r['method'], r['epsilon']): r for r in csv.DictReader(open('out'))}
epsilons = sys.argv[1].split(',')
names = ['rantext', 'santext+', 'custext+', 'exponential', 'calibrated']
assert list(rows) == [('local alone', ''), ('remote alone', 'inf')] + [
    (name, e) for name in names for e in epsilons], list(rows)
for key, r in rows.items():
    for name in 'like_remote', 'like_other':
        assert (r[name] == '') == (key[0] == 'remote alone'), (key, r[name])
        assert r[name] == '' or -1 <= float(r[name]) <= 1 and float(r[name + '_se']) >= 0, r
TABLE
check "a row for each, beside the remote model alone" python3 rows.py 6

# A server that answers all with one text: the documents alone are in its requests besides.
remote_server plain
exec 8>plain/end
read -r port <plain/port
KEY=a-key measure --url "http://127.0.0.1:$port" --name far --key-env KEY --epsilon 1,14 \
    --words 6 "$dpinfer" m.gguf docs.csv 4
expect_rc 0
check "epsilons" python3 rows.py 1,14
check "who reads the true documents, and who does not" python3 -c "
import json
bodies = [json.loads(line) for line in open('plain/bodies')]
assert len(bodies) == 4 + 5 * 2 * 4, len(bodies)
for i, body in enumerate(bodies):
    assert body['model'] == 'far' and body['max_tokens'] == 150, body
    prompt = body['messages'][0]['content']
    assert prompt.startswith('Continue the text.'), prompt
    assert i >= 4 or prompt.endswith('\n\nthe %d cats sat on mats' % (i + 1)), prompt"
check "the key" test "$(grep -c 'Bearer a-key' plain/bytes)" = 44
exec 8>&-
wait "$server"
measure --url http://127.0.0.1:1 "$dpinfer" m.gguf docs.csv 4; expect_rc 2
expect_err "needs REMOTE.gguf, or --url and --name instead"
measure --url http://127.0.0.1:1 --name x "$dpinfer" m.gguf m.gguf docs.csv 4; expect_rc 2
measure --epsilon 1,x "$dpinfer" m.gguf m.gguf docs.csv 4; expect_rc 2
expect_err "--epsilon: found '1,x'"
measure "$dpinfer" m.gguf m.gguf docs.csv 8; expect_rc 1; expect_err "4 others"
finish
