#!/usr/bin/env bash
# `dpinfer serve` asked by curl.  serve.sh path/to/dpinfer SOURCE
. "$(dirname "$0")/cli_support.sh"
. "$here/serve_support.sh"
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
chat=/v1/chat/completions

# ---- Other commands do not load what HTTP needs ------------------------------------------------
last="ldd"; rc=0
check "libmicrohttpd is linked" test -z "$(ldd "$dpinfer" | grep microhttpd)"

# ---- The command line --------------------------------------------------------------------------
refuse 2 "no MODEL given" serve
refuse 2 "--port: found '70000', allowed 0..65535" serve "$model" --port 70000
refuse 2 "allowed is a numeric address" serve "$model" --host localhost --port 0
refuse 3 "missing.gguf" serve missing.gguf
data=(serve "$model" --port 0 --ledger year --dataset)
refuse 4 "none.jsonl: No such file" "${data[@]}" a=none.jsonl,epsilon=1,delta=1e-6
rm -f year year.answers # without a dataset: it is opened before the records
refuse 2 "found 'epsilon' twice" "${data[@]}" a=r.jsonl,epsilon=1,delta=1e-6,epsilon=2
refuse 2 "found 'pace' twice" "${data[@]}" a=r.jsonl,epsilon=1,delta=1e-6,pace=none,pace=none
for number in 0x1 ' 1' '1 ' 1e nan 0x1p-3; do
    refuse 2 "epsilon: found '$number'" "${data[@]}" "a=r.jsonl,epsilon=$number,delta=1e-6"
done
check "a ledger was made" test ! -e year

# ---- What llama-server has ---------------------------------------------------------------------
serve "$model" -t 1 -c 512 --max-tokens 200
get /health; expect_code 200; expect_out '"status":"ok"'
get /v1/models; expect_code 200; expect_out '"id":"dpinfer-4m"'
get /nowhere; expect_code 404; expect_out not_found_error
get $chat; expect_code 405; expect_out "allowed POST"
get /health -X DELETE; expect_code 405
get /health -I; expect_code 200; check "a body" test -z "$(sed 1,/^.$/d out)"
get "/v1/models?x=1"; expect_code 200

# ---- Whole answers -----------------------------------------------------------------------------
ask='{"messages": [{"role": "user", "content": "Write a support ticket."}], "seed": 7, '
ask+='"max_tokens": 40'
post $chat "$ask}"; expect_code 200
for field in '"object":"chat.completion"' '"role":"assistant"' '"finish_reason":"length"' \
    '"completion_tokens":40' '"model":"dpinfer-4m"'; do expect_out "$field"; done
check "a cache may keep it" grep -qi '^cache-control: no-store' headers
text_of out >chat.text
# The text is that of `run`: the likeliest token of each step.
post $chat '{"messages": [{"role": "user", "content": "Write a support ticket."}],
    "temperature": 0, "max_tokens": 40, "model": "any", "user": "me", "n": 1, "stop": null}'
expect_code 200
text_of out | sed 's/^"content":"//; s/"$//' | sed 's/\\n/\n/g' >served.text
run run "$model" --plain --public-prompt 'Write a support ticket.' --temp 0 -n 40 -q; expect_rc 0
expect_same served.text out
post /v1/completions '{"prompt": "Ticket 8565", "temperature": 0, "max_tokens": 30}'
expect_code 200; expect_out '"object":"text_completion"'; expect_out '"usage":{"prompt_tokens":'
post $chat '{"messages": [{"role": "system", "content": "Be short."}, {"role": "user", "content":
    [{"type": "text", "text": "Write a "}, {"type": "text", "text": "ticket."}]}], "max_tokens": 3}'
expect_code 200; expect_out '"completion_tokens":3'

# ---- Streams: the same text, in events ---------------------------------------------------------
post $chat "$ask, \"stream\": true, \"stream_options\": {\"include_usage\": true}}" -N
expect_code 200
check "no events" grep -qi '^content-type: text/event-stream' headers
check "no end" test "$(grep -c . out)" -ge 4
expect_out "data: [DONE]"; expect_out '"completion_tokens":40'; expect_out '"choices":[]'
sed -nE 's/^data: .*"content":"(([^"\\]|\\.)*)".*/\1/p' out | tr -d '\n' >stream.text
sed 's/^"content":"//; s/"$//' chat.text | tr -d '\n' >whole.text
expect_same stream.text whole.text

# ---- Several at once have the text that each has alone -----------------------------------------
for i in 1 2 3 4 5 6 7 8 9 10; do
    words=$(printf 'word %.0s' $(seq $((i * i))))
    echo "{\"prompt\": \"Ticket $i: $words\", \"seed\": $i, \"max_tokens\": $((10 * i))}" >"ask.$i"
    post /v1/completions "@ask.$i"; expect_code 200
    text_of out >"alone.$i"
done
pids=()
for i in 1 2 3 4 5 6 7 8 9 10; do
    curl -s -o "beside.$i" -H 'Content-Type: application/json' --data-binary "@ask.$i" \
        "$url/v1/completions" &
    pids+=($!)
done
wait "${pids[@]}"
last="ten at once"; rc=0
for i in 1 2 3 4 5 6 7 8 9 10; do
    text_of "beside.$i" >beside.text
    expect_same beside.text "alone.$i"
done

# ---- What is refused ---------------------------------------------------------------------------
refused 400 "the body is not JSON" $chat '{"messages": '
refused 400 "not a JSON object" $chat '[]'
refused 400 "duplicate" $chat '{"seed": 1, "seed": 2}'
refused 400 "there is no text" $chat '{}'
refused 400 "messages: found 0" $chat '{"messages": []}'
refused 400 "the role of message 1 must be 'user'" $chat \
    '{"messages": [{"role": "system", "content": "x"}]}'
refused 400 "a part that is no text" $chat \
    '{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}'
refused 400 "'refusal' is not a field of a message" $chat \
    '{"messages": [{"role": "user", "content": "x", "refusal": null}]}'
refused 400 "'cache_control' is not a field of a part of the content" $chat '{"messages":
    [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}]}'
refused 400 "the body is empty" $chat ''
refused 400 "the body has the character NUL in a string" /v1/completions '{"prompt": "a\u0000b"}'
post $chat '{"messages": [{"role": "user", "content": "x", "name": "me"}], "max_tokens": 1}'
expect_code 200
get $chat; expect_code 405
check "no methods that are allowed" grep -qi $'^allow: POST\r$' headers
post /health '{}'; expect_code 405
check "no methods that are allowed" grep -qi $'^allow: GET, HEAD\r$' headers
get /v1/privacy/budget; expect_code 200; expect_out '{"object":"list","data":[]}'
get /v1/privacy/budget/letters; expect_code 404
refused 400 "max_tokens: found 0, allowed 1..1048576" $chat "${ask% *} 0}"
refused 400 "max_tokens: found 201, allowed 1..200" $chat "${ask% *} 201}"
for field in '"temperature": -1' '"temperature": "hot"' '"top_p": 0.5' '"n": 2' '"logprobs": true' \
    '"echo": true' '"logit_bias": {"5": 1}' '"stop": ["x"]' '"top_k": -1' '"seed": 1.5' \
    '"response_format": {"type": "json_object"}' '"stream": 1' '"tools": [1]'; do
    refused 400 ": found " $chat \
        "{\"messages\": [{\"role\": \"user\", \"content\": \"x\"}], $field}"
done
refused 400 "is not a field here" $chat \
    '{"messages": [{"role": "user", "content": "x"}], "top_pp": 1}'
refused 400 "allowed is one string" /v1/completions '{"prompt": ["a", "b"]}'
words=$(printf 'word %.0s' $(seq 600))
refused 400 "tokens, allowed 1..511" /v1/completions "{\"prompt\": \"$words\"}"
last="a form of a web page"
code=$(curl -s -o out -w '%{http_code}' --data-binary "$ask}" "$url$chat"); expect_code 415
last="a name that leads here"
get /v1/models -H 'Host: dns.example.org'; expect_code 403
get /v1/models -H 'Host: localhost:1'; expect_code 200

# ---- Limits of the body ------------------------------------------------------------------------
{ printf '{"prompt": "'; head -c 1048551 /dev/zero | tr '\0' ' '; printf '"}'; } >long
post /v1/completions @long; expect_code 400; expect_out "the prompt: found"
check "the body is not 1 MiB" test "$(($(stat -c %s long) + 11))" -eq 1048576
{ cat long; head -c 12 /dev/zero | tr '\0' ' '; } >longer
post /v1/completions @longer; expect_code 413
post /v1/completions @longer -H 'Transfer-Encoding: chunked'; expect_code 413

# ---- Metrics, and the end ----------------------------------------------------------------------
get /metrics; expect_code 200
expect_out 'dpinfer_requests_total{code="413"} 2'; expect_out 'dpinfer_answers_waiting 0'
names='^(#|dpinfer_[a-z_]+(\{code="[0-9]+"\})? [0-9]+$)'
check "names of metrics" test -z "$(grep -vE "$names" out)"
stop

# ---- Tokens ------------------------------------------------------------------------------------
refuse 2 "there are no tokens" serve "$model" --host 0.0.0.0 --port 0
echo "alice ba7816" >tokens
refuse 2 "tokens line 1: allowed are a name" serve "$model" --tokens tokens --port 0
refuse 2 "cannot read nowhere" serve "$model" --tokens nowhere --port 0
token=$(head -c 32 /dev/urandom | sha256sum | cut -d ' ' -f 1)
echo "alice $(printf %s "$token" | sha256sum | cut -d ' ' -f 1)" >tokens
serve "$model" -t 1 --host 0.0.0.0 --tokens tokens
url=http://127.0.0.1:${url##*:}
get /health; expect_code 200
for path in /v1/models /metrics; do
    get $path; expect_code 401; expect_out authentication_error
    check "no way to say who" grep -qi '^www-authenticate: bearer' headers
    get $path -H "Authorization: Bearer ${token}0"; expect_code 401
    get $path -H "Authorization: Bearer $token" -H 'Host: models.example.org'; expect_code 200
done
post /v1/completions '{"prompt": "Ticket", "max_tokens": 1}'; expect_code 401
post /v1/completions '{"prompt": "Ticket", "max_tokens": 1}' -H "Authorization: Bearer $token"
expect_code 200
stop

# ---- Too many wait -----------------------------------------------------------------------------
# A model of random weights that goes on for a second or more, by its likeliest tokens.
run make-model --layers 6 --embd 384 --ff 768 --heads 6 --kv-heads 2 --vocab-size 300 \
    -o slow.gguf -q
expect_rc 0
serve slow.gguf -t 1 --parallel 1 --waiting 0
long='{"prompt": "Ticket", "max_tokens": 2000, "stream": true, "temperature": 0}'
mkfifo first
curl -sN -H 'Content-Type: application/json' --data-binary \
    "$long" "$url/v1/completions" >first 2>curl.err &
reader=$!
exec 8<first
read -r _ <&8; read -r _ <&8; read -r part <&8 # a token has come: it is being drawn
last="a stream"; check "no part" test -n "$part"
# The one that is drawn makes the next one wait, and no one may.
post /v1/completions '{"prompt": "Ticket", "max_tokens": 1}'; expect_code 503
expect_out overloaded_error
check "no Retry-After" grep -qi '^retry-after: [1-9]' headers
# A client that goes makes room.
kill "$reader"; wait "$reader" 2>/dev/null; exec 8<&-
last="after a client has gone"
until post /v1/completions '{"prompt": "Ticket", "max_tokens": 1}'; [ "$code" != 503 ]; do :; done
expect_code 200

# ---- SIGTERM: what has begun is answered -------------------------------------------------------
curl -sN -H 'Content-Type: application/json' --data-binary \
    "$long" "$url/v1/completions" >first 2>curl.err &
reader=$!
exec 8<first
read -r _ <&8; read -r _ <&8; read -r part <&8
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
