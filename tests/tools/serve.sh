#!/usr/bin/env bash
# `dpinfer serve` asked by curl.  serve.sh path/to/dpinfer SOURCE
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
. "$(dirname "$0")/cli_support.sh"
. "$here/serve_support.sh"
chat=/v1/chat/completions text=/v1/completions
x='"messages": [{"role": "user", "content": "x"}]'

# ---- Other commands do not load what HTTP needs ------------------------------------------------
last="ldd"; rc=0
check "libmicrohttpd is linked" test -z "$(ldd "$dpinfer" | grep microhttpd)"

# ---- The command line --------------------------------------------------------------------------
refuse 2 "no MODEL given" serve
refuse 2 "--port: found '70000', allowed 0..65535" serve "$model" --port 70000
refuse 2 "allowed is a numeric address" serve "$model" --host localhost --port 0
refuse 3 "missing.gguf" serve missing.gguf
# no_data CODE TEXT SPEC: of a dataset; its ledger is not made.
no_data() { refuse "$1" "$2" serve "$model" --port 0 --ledger year --dataset "$3"; }
no_data 4 "none.jsonl: No such file" a=none.jsonl,epsilon=1,delta=1e-6
echo '{"text": "a", "pid": 1}' >fields.jsonl
no_data 4 "no line has a field 'pidd'" a=fields.jsonl,unit=pidd,fields=public,epsilon=1,delta=1e-6
no_data 2 "fields: found 'all', allowed secret, public" a=r.jsonl,fields=all,epsilon=1,delta=1e-6
rm -f year year.answers # without a dataset: it is opened before the records
no_data 2 "found 'epsilon' twice" a=r.jsonl,epsilon=1,delta=1e-6,epsilon=2
no_data 2 "found 'pace' twice" a=r.jsonl,epsilon=1,delta=1e-6,pace=none,pace=none
for number in 0x1 ' 1' '1 ' 1e nan 0x1p-3; do
    no_data 2 "epsilon: found '$number'" "a=r.jsonl,epsilon=$number,delta=1e-6"
done
check "a ledger was made" test ! -e year

# A file says what --dataset cannot: a path with a comma, the form of a .csv. Its folder is where
# its paths begin.
mkdir conf
echo '{"text": "One letter.", "who": "p1"}' | tee 'a, b.jsonl' >b.jsonl
printf 'gr\xf6\xdfe;who\n"a caf\xe9; two";p1\nthree;p2\n' >l1.csv
budget='"epsilon": 8, "delta": 1e-5'
echo '{"ledger": "year", "datasets": [{"name": "letters", "path": "../a, b.jsonl", "unit": "who",
    "max-per-unit": 2, "batch": 4, '"$budget"'}, {"name": "sizes", "path": "../l1.csv",
    "delimiter": ";", "encoding": "latin1", "text": "gr\u00f6\u00dfe", '"$budget"'}]}' \
    >conf/two.json
serve "$model" -t 1 -c 512 --config conf/two.json --dataset third=b.jsonl,epsilon=8,delta=1e-5
get /v1/privacy/budget
expect 200 '"dataset":"letters"' '"dataset":"sizes"' '"dataset":"third"'
for name in letters sizes third; do
    post $text '{"dataset": "'$name'", "privacy": {"epsilon": 1}, "prompt": "A", "max_tokens": 2}'
    expect 200 '"remaining":'
done
post $text '{"dataset": "third", "privacy": {"epsilon": 1}, "prompt": "A", "max_tokens": 2,
    "stop": ["~", "\n"]}'
expect 200 '"report":'
get "$(sed -E 's/.*"report": ?"([^"]*)".*/\1/' out)"; expect 200 '"stops"' '"~"'
cp out report.json; works verify report.json
stop
check "the ledger is not in the file's folder" test -s conf/year -a ! -e year
# config CODE TEXT JSON: what is said of such a file.
config() {
    echo "$3" >conf/bad.json
    refuse "$1" "$2" serve "$model" --port 0 --config conf/bad.json
}
a='"name": "a", "path": "../b.jsonl", '
while IFS='|' read -r words dataset; do
    config 2 "--config: datasets[0]$words" "{\"ledger\": \"no\", \"datasets\": [{$dataset}]}"
done <<TABLE
: found 'epsilom', allowed name, path, delimiter, encoding, unit|$a "epsilom": 1
.encoding: found 'utf-7', allowed utf8|$a "encoding": "utf-7"
.delimiter: found 'ab', allowed one character|$a "delimiter": "ab"
.epsilon: found a string, allowed a number|$a "epsilon": "8"
.unit: found a number, allowed a string|$a "unit": 8
.pace: found null|$a "pace": null
: batch: found '1.5', allowed 1..4096|$a "batch": 1.5
 a: path is not there|"name": "a", $budget
 a: unit is not there|$a "max-per-unit": 2, $budget
: the path: allowed is one text|"name": "a", "path": ""
: found the name 'a b'|"name": "a b"
TABLE
config 2 "datasets[1]: 'a' is there twice" \
    "{\"ledger\": \"no\", \"datasets\": [{$a $budget}, {$a $budget}]}"
config 2 "found 'dataset', allowed datasets, ledger" '{"dataset": []}'
config 2 "--config: datasets is not there" '{"ledger": "no"}'
config 2 "is no JSON: line 2, column 0" '{"datasets": ['
config 2 "a dataset needs a ledger" "{\"datasets\": [{$a $budget}]}"
config 4 "nobody.jsonl: No such file" \
    "{\"ledger\": \"no\", \"datasets\": [{\"name\": \"a\", \"path\": \"nobody.jsonl\", $budget}]}"
printf 'id,note\n1,a\n' >conf/columns.csv
config 4 "no column 'text' in the header row (text)" \
    "{\"ledger\": \"no\", \"datasets\": [{\"name\": \"a\", \"path\": \"columns.csv\", $budget}]}"
refuse 2 "--config: cannot read none.json" serve "$model" --config none.json
refuse 2 "--ledger and --config: ledger" serve "$model" --config conf/two.json --ledger year
# The schema knows the keys that the program knows.
config 2 "allowed name" "{\"datasets\": [{$a \"x\": 1}]}"
schema=$here/../../examples/serve/datasets.schema.json
for key in $(sed -n 's/.*allowed //p' err | tr -d ,); do
    check "no $key in the schema" grep -q "^ *\"$key\": {" "$schema"
done

# ---- What llama-server has ---------------------------------------------------------------------
serve "$model" -t 1 -c 512 --max-tokens 200
get /health; expect 200 '"status":"ok"'
get /v1/models; expect 200 '"id":"dpinfer-4m"'
get /nowhere; expect 404 not_found_error
get $chat; expect 405 "allowed POST"; expect_header '^allow: POST.$'
get /health -X DELETE; expect 405
post /health '{}'; expect 405; expect_header '^allow: GET, HEAD.$'
get /health -I; expect 200; check "a body" test -z "$(sed 1,/^.$/d out)"
get "/v1/models?x=1"; expect 200

# ---- Whole answers -----------------------------------------------------------------------------
ask='"messages": [{"role": "user", "content": "Write a support ticket."}]'
seven="{$ask, \"seed\": 7, \"max_tokens\": 40"
post $chat "$seven}"
expect 200 '"object":"chat.completion"' '"role":"assistant"' '"finish_reason":"length"' \
    '"completion_tokens":40' '"model":"dpinfer-4m"'
expect_header '^cache-control: no-store'
text_of out >chat.text
# The text is that of `run`: the likeliest token of each step.
post $chat "{$ask, \"temperature\": 0, \"max_tokens\": 40, \"model\": \"any\", \"user\": \"me\",
    \"n\": 1, \"stop\": null}"
expect 200
text_of out | sed 's/^"content":"//; s/"$//; s/\\n/\n/g' >served.text
run run "$model" --plain --public-prompt 'Write a support ticket.' --temp 0 -n 40 -q; expect_rc 0
expect_same served.text out
# So it is with the likeliest token alone, and behind an earlier turn, which is what an example is.
post $chat "{$ask, \"top_p\": 1e-6, \"max_tokens\": 40}"; expect 200
text_of out | sed 's/^"content":"//; s/"$//; s/\\n/\n/g' >nucleus.text
expect_same nucleus.text served.text
echo 'The printer is broken.' >example.txt
turn='{"role": "user", "content": "Write a support ticket."}'
post $chat "{\"messages\": [$turn, {\"role\": \"assistant\", \"content\":
    \"The printer is broken.\"}, $turn], \"temperature\": 0, \"max_tokens\": 40}"
expect 200
text_of out | sed 's/^"content":"//; s/"$//; s/\\n/\n/g' >turns.text
run run "$model" --plain --public-prompt 'Write a support ticket.' --example example.txt --temp 0 \
    -n 40 -q; expect_rc 0
expect_same turns.text out
check "the turn is not read" test -n "$(cmp turns.text served.text)"
post $text '{"prompt": "Ticket 8565", "temperature": 0, "max_tokens": 30}'
expect 200 '"object":"text_completion"' '"usage":{"prompt_tokens":'
post $chat '{"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content":
    [{"type": "text", "text": "Write a "}, {"type": "text", "text": "ticket."}]}], "max_tokens": 3}'
expect 200 '"completion_tokens":3'

# ---- Streams: the same text, in events ---------------------------------------------------------
post $chat "$seven, \"stream\": true, \"stream_options\": {\"include_usage\": true}}" -N
expect 200 "data: [DONE]" '"completion_tokens":40' '"choices":[]'
expect_header '^content-type: text/event-stream'
check "no end" test "$(grep -c . out)" -ge 4
sed -nE 's/^data: .*"content":"(([^"\\]|\\.)*)".*/\1/p' out | tr -d '\n' >stream.text
sed 's/^"content":"//; s/"$//' chat.text | tr -d '\n' >whole.text
expect_same stream.text whole.text

# ---- A stop: the text before it, whole or in events --------------------------------------------
word=$(grep -oE '[a-z]{5,}' chat.text | sed -n 6p)
sed "s/$word.*/\"/" chat.text >wanted.text
post $chat "$seven, \"stop\": [\"~~~\", \"$word\"]}"; expect 200 '"finish_reason":"stop"'
text_of out >stopped.text; expect_same stopped.text wanted.text
post $chat "$seven, \"stop\": \"$word\", \"stream\": true}" -N; expect 200 '"finish_reason":"stop"'
sed -nE 's/^data: .*"content":"(([^"\\]|\\.)*)".*/\1/p' out | tr -d '\n' >stream.text
sed 's/^"content":"//; s/"$//' wanted.text | tr -d '\n' >whole.text
expect_same stream.text whole.text

# ---- A token that gains so much is all that comes ----------------------------------------------
post $chat "$seven, \"logit_bias\": {\"70\": 100}}"; expect 200
text_of out | sed 's/^"content":"//; s/"$//' >biased.text
check "a token with a bias does not come" grep -qE '^(.+)\1{9}' biased.text
post $chat "$seven, \"logit_bias\": {\"9999999\": 1}}"
expect 400 "logit_bias: found the token 9999999, allowed"

# ---- A form: JSON, and JSON of a schema, as OpenAI's clients ask for it -------------------------
form='"response_format": {"type": "json_schema", "json_schema": {"name": "ticket", "strict": true,
    "schema": {"type": "object", "properties": {"age": {"type": "integer"}, "kind": {"enum":
    ["printer", "mail"]}}, "required": ["age", "kind"], "additionalProperties": false}}}'
post $chat "{$ask, \"seed\": 5, \"max_tokens\": 80, $form}"; expect 200 '"finish_reason":"stop"'
text_of out >form.text
check "the answer is not of the schema" grep -qE \
    '^"content":"\{\\"age\\": ?-?[0-9.e]+, ?\\"kind\\": ?\\"(printer|mail)\\"\}"$' form.text
post $text "{\"prompt\": \"Ticket\", \"seed\": 3, \"max_tokens\": 60, \"stream\": true,
    \"response_format\": {\"type\": \"json_object\"}}" -N
expect 200 '"text":"{'
post $chat "{$ask, \"max_tokens\": 2, $form}"
expect 400 "max_tokens: found 2, allowed" "no text of the grammar has fewer" '"param":"max_tokens"'

# ---- Several at once have the text that each has alone -----------------------------------------
pids=()
for i in 1 2 3 4 5 6 7 8 9 10; do
    words=$(printf 'word %.0s' $(seq $((i * i))))
    echo "{\"prompt\": \"Ticket $i: $words\", \"seed\": $i, \"max_tokens\": $((10 * i))}" >"ask.$i"
    post $text "@ask.$i"; expect 200
    text_of out >"alone.$i"
done
for i in 1 2 3 4 5 6 7 8 9 10; do
    curl -s -o "beside.$i" "${json[@]}" "@ask.$i" "$url$text" &
    pids+=($!)
done
wait "${pids[@]}"
last="ten at once"; rc=0
for i in 1 2 3 4 5 6 7 8 9 10; do
    text_of "beside.$i" >beside.text
    expect_same beside.text "alone.$i"
done

# ---- What is refused ---------------------------------------------------------------------------
post $chat '{"messages": [{"role": "user", "content": "x", "name": "me"}], "max_tokens": 1}'
expect 200
while IFS='|' read -r words body; do
    post $chat "$body"; expect 400 "$words"
done <<'TABLE'
the body is not JSON|{"messages": 
not a JSON object|[]
duplicate|{"seed": 1, "seed": 2}
there is no text|{}
messages: found 0|{"messages": []}
the role of message 1 must be 'user'|{"messages": [{"role": "system", "content": "x"}]}
a part that is no text|{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}
'refusal' is not a field of a message|{"messages": [{"role": "user", "content": "x", "refusal": 0}]}
the body is empty|
TABLE
post $chat '{"messages": [{"role": "user", "content":
    [{"type": "text", "text": "x", "cache_control": {}}]}]}'
expect 400 "'cache_control' is not a field of a part of the content"
for field in '"temperature": -1' '"temperature": "hot"' '"top_p": 1.1' '"n": 2' '"logprobs": true' \
    '"echo": true' '"logit_bias": {"5": 1000}' '"stop": [""]' '"top_k": -1' '"seed": 1.5' \
    '"response_format": {"type": "xml"}' '"stream": 1' '"tools": [1]'; do
    post $chat "{$x, $field}"; expect 400 ": found "
done
post $chat "{$x, \"top_pp\": 1}"; expect 400 "is not a field here"
for n in 0..1048576 201..200; do
    post $chat "{$x, \"max_tokens\": ${n%..*}}"
    expect 400 "max_tokens: found ${n%..*}, allowed 1..${n#*..}"
done
post $text '{"prompt": "a\u0000b"}'; expect 400 "the body has the character NUL in a string"
post $text '{"prompt": ["a", "b"]}'; expect 400 "allowed is one string"
post $text "{\"prompt\": \"$(printf 'word %.0s' $(seq 600))\"}";
expect 400 "tokens, allowed 1..511" '"code":"context_length_exceeded"' '"param":"prompt"'
get /v1/privacy/budget; expect 200 '{"object":"list","data":[]}'
get /v1/privacy/budget/letters; expect 404
get $chat --data-binary "$seven}"; expect 415 # a form of a web page
get /v1/models -H 'Host: dns.example.org'; expect 403 # a name that leads here
get /v1/models -H 'Host: localhost:1'; expect 200

# ---- Limits of the body ------------------------------------------------------------------------
{ printf '{"prompt": "'; head -c 1048551 /dev/zero | tr '\0' ' '; printf '"}'; } >long
post $text @long; expect 400 "the prompt: found"
check "the body is not 1 MiB" test "$(($(stat -c %s long) + 11))" -eq 1048576
{ cat long; head -c 12 /dev/zero | tr '\0' ' '; } >longer
post $text @longer; expect 413
post $text @longer -H 'Transfer-Encoding: chunked'; expect 413

# ---- Metrics, and the end ----------------------------------------------------------------------
get /metrics; expect 200 'dpinfer_requests_total{code="413"} 2' 'dpinfer_answers_waiting 0'
names='^(#|dpinfer_[a-z_]+(\{code="[0-9]+"\})? [0-9]+$)'
check "names of metrics" test -z "$(grep -vE "$names" out)"
stop

# ---- Tokens ------------------------------------------------------------------------------------
one='{"prompt": "Ticket", "max_tokens": 1}'
refuse 2 "there are no tokens" serve "$model" --host 0.0.0.0 --port 0
echo "alice ba7816" >tokens
refuse 2 "tokens line 1: allowed are a name" serve "$model" --tokens tokens --port 0
refuse 2 "cannot read nowhere" serve "$model" --tokens nowhere --port 0
token=$(make_token alice)
serve "$model" -t 1 --host 0.0.0.0 --tokens tokens
url=http://127.0.0.1:${url##*:}
get /health; expect 200
for path in /v1/models /metrics; do
    get $path; expect 401 authentication_error '"code":"invalid_api_key"'
    expect_header '^www-authenticate: bearer'
    get $path -H "Authorization: Bearer ${token}0"; expect 401
    get $path -H "Authorization: Bearer $token" -H 'Host: models.example.org'; expect 200
done
post $text "$one"; expect 401
post $text "$one" -H "Authorization: Bearer $token"; expect 200
stop

# ---- Too many wait -----------------------------------------------------------------------------
# A model of random weights that goes on for a second or more, by its likeliest tokens.
run make-model --layers 6 --embd 384 --ff 768 --heads 6 --kv-heads 2 --vocab-size 300 \
    -o slow.gguf -q
expect_rc 0
serve slow.gguf -t 1 --parallel 1 --waiting 0
mkfifo first
long='{"prompt": "Ticket", "max_tokens": 2000, "stream": true, "temperature": 0}'
# begin_long: a stream, $reader, of which a token has come to 8: it is being drawn.
begin_long() {
    curl -sN "${json[@]}" "$long" "$url$text" >first 2>curl.err &
    reader=$!
    exec 8<first
    read -r _ <&8; read -r _ <&8; read -r part <&8
    last="a stream"; check "no part" test -n "$part"
}
begin_long
# It makes the next one wait, and no one may.
post $text "$one"; expect 503 overloaded_error; expect_header '^retry-after: [1-9]'
# A client that goes makes room.
kill "$reader"; wait "$reader" 2>/dev/null; exec 8<&-
last="after a client has gone"
until post $text "$one"; [ "$code" != 503 ]; do :; done
expect 200

# ---- SIGTERM: what has begun is answered -------------------------------------------------------
begin_long
kill -TERM "$server"
cat <&8 >rest
wait "$reader"; rc=$?
last="a stream when the server stops"; expect_rc 0
check "it was cut" grep -q 'data: \[DONE\]' rest
check "it was over before the signal" test "$(grep -c '"text":"[^"]' rest)" -gt 100
wait "$server"; rc=$?
cp server.err err
expect_rc 0
check "it complains" test "$(grep -cv ': memory: ' err)" = 0
finish
