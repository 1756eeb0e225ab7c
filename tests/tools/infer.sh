#!/usr/bin/env bash
# The command `infer`, with a server that behaves and that does not: infer.sh path/to/dpinfer SOURCE
source=$(readlink -f "$2")
. "$(dirname "$0")/cli_support.sh"
. "$here/words_support.sh"
model=$source/models/dpinfer-4m-q8_0.gguf
small_model
printf '%s\n' 'zero 0 0' 'one 1 0' 'two 1 .5' 'three 0 2' 'four .25 2' >vectors.txt

# ---- The command line --------------------------------------------------------------------------
far=(--vectors vectors.txt --remote-model far)
refuse 2 "no MODEL given" infer
refuse 2 "no --remote-model NAME given" infer m.gguf --remote http://localhost:1
refuse 2 "no --remote URL and no --dry-run" infer m.gguf --remote-model x
for url in http://example.org ftp://localhost localhost:80 http://localhost@evil.example \
    http://localhost.evil.example http://127.0.0.1.evil.example 'https://h/?q' 'https://' \
    'https://a b' 'https://u:p@h'; do
    refuse 2 "--remote: found '$url'" infer m.gguf --remote-model x --remote "$url"
done
printf 'two words' >bad.key
echo 'no name in it' >none.prompt
echo '{document}' >half.prompt
while IFS='|' read -r text words; do
    # shellcheck disable=SC2086
    refuse 2 "$text" infer m.gguf --remote-model x $words
done <<'TABLE'
there is no variable 'NO_SUCH_KEY'|--remote https://h --api-key-env NO_SUCH_KEY
a character that no header may have|--remote https://h --api-key-file bad.key
allowed is one of them|--remote https://h --api-key-file bad.key --api-key-env HOME
must have {document}, once|--dry-run --remote-prompt-file none.prompt
must have {generation}, once|--dry-run --extract-prompt-file half.prompt
--report and --dry-run: allowed is one of them|--dry-run --report r.json
TABLE

# ---- A dry run -----------------------------------------------------------------------------------
printf '{"text": "%s"}\n' 'Xylophon Brandt one two' '' 'three Xylophon Brandt four' >docs.jsonl
begin="begin = 'Continue the text. Write only the continuation.\n\n'"
run infer m.gguf docs.jsonl "${far[@]}" --dry-run; expect 0 "NOTHING LEFT"
holds "what would be sent" "$begin
assert len(lines()) == 2
for x in lines():
    (m,) = x.pop('messages')
    assert x == {'model': 'far', 'max_completion_tokens': 150}, x
    assert sorted(m) == ['content', 'role'] and m['role'] == 'user'
    assert m['content'].startswith(begin), m
    words = m['content'][len(begin):].split()
    assert len(words) == 2 and set(words) <= {'zero', 'one', 'two', 'three', 'four'}, words"

run infer m.gguf docs.jsonl "${far[@]}" --dry-run --remote-temp .5 --remote-tokens 9 \
    --remote-limit max_tokens
expect 0
holds "a temperature that was asked for, and an older server's limit" "
for x in lines():
    x.pop('messages')
    assert x == {'model': 'far', 'max_tokens': 9, 'temperature': .5}, x"

# ---- Servers -------------------------------------------------------------------------------------
begin_remote proxy
proxy_url=http://127.0.0.1:$port
begin_remote plain
url=http://127.0.0.1:$port
there=("${far[@]}" --remote "$url")
at= # a path of the server
# ask MODE ARGS: the command, while the server behaves so.
ask() {
    echo "$1" >plain/mode
    rm -f plain/bytes plain/bodies
    touch plain/restart
    SECRET_KEY=sk-4711-quite-secret run infer m.gguf docs.jsonl "${there[@]}$at" -n 8 -c 480 \
        --retry-wait .01 "${@:2}"
}
secret=(--api-key-env SECRET_KEY)
one=(--in-flight 1)

ask good "${secret[@]}" --json; expect 0 "WHAT LEFT THIS MACHINE"
holds "texts, and what they were made of" "
assert [x['index'] for x in lines()] == [0, 1, 2]
first, empty, second = lines()
assert empty == {'index': 1, 'text': None, 'perturbed': None, 'remote': None}, empty
for x in first, second:
    assert x['remote'] == 'and the answer of the server.\n' and isinstance(x['text'], str)
    assert len(x['perturbed'].split()) == 2, x"
# Every byte that the server got: two requests, their headers by name, the perturbed words that
# the output names, and nothing else.
holds "bytes that were sent" "$begin
sent = open('plain/bytes', 'rb').read()
expected = []
for w in (x['perturbed'] for x in lines() if x['perturbed']):
    body = json.dumps({'model': 'far', 'messages': [{'role': 'user', 'content': begin + w}],
        'max_completion_tokens': 150}, separators=(',', ':')).encode()
    expected.append(b'\r\n'.join([b'POST /v1/chat/completions HTTP/1.1', b'Host: 127.0.0.1:$port',
        b'Accept: */*', b'Content-Type: application/json',
        b'Authorization: Bearer sk-4711-quite-secret', b'Content-Length: %d' % len(body), b'',
        body]))
a, b = expected
assert sent in (a + b, b + a), sent"
expect_none "the document left" 'Xylophon\|Brandt' plain/bytes
expect_none "the key was told" sk-4711 out err
printf 'sk-of-a-file\r\n' >file.key
ask good --api-key-file file.key
check "the key of a file" grep -qa '^Authorization: Bearer sk-of-a-file' plain/bytes
ask good; expect 0
expect_none "no key" -i authorization plain/bytes
# What goes to this machine without TLS goes by no proxy, which would read it.
http_proxy=$proxy_url HTTP_PROXY=$proxy_url ALL_PROXY=$proxy_url all_proxy=$proxy_url \
    ask good "${secret[@]}"
expect 0
expect_requests 2 # without a proxy
check "a proxy was asked" test ! -e proxy/bytes

# What passes is tried again; what does not, is not.
for mode in "429 good" "500 503 good" "close good" "half good"; do
    ask "$mode" "${one[@]}"; expect 0; expect_lines 3 out
done
# What is sent again is what was sent: words are drawn once, and the report counts them once.
ask "500 503 good" "${one[@]}" --report r.json; expect 0
holds "a retry, and what left" "b = objects('plain/bodies')
assert len(b) == 4 and b[0] == b[1] == b[2] != b[3], b
r = json.load(open('r.json'))['claim']['mechanisms'][0]
assert (r['n_documents'], r['n_words']) == (2, 4), r"
rm r.json
# Retry-After is seconds or a date: the server is angry with who comes before that.
for mode in "429-seconds" "503-date"; do
    ask "$mode good" "${one[@]}"; expect 0; expect_requests 3
done
ask "429-tomorrow" "${one[@]}"
expect 1 "says 429, and to try again in 86400 seconds, allowed is a wait of 0..3600: later"
expect_requests 1
ask 404 "${one[@]}"; expect 1 "the server says 404 to POST $url/v1/chat/completions: no"
# A path is taken as it is, a host alone has /v1.
while read -r at path; do
    ask good; expect 0
    check "the address of '$at'" grep -qa "^POST $path/chat/completions HTTP" plain/bytes
done <<'TABLE'
/                    /v1
/v1/                 /v1
/v1/chat/completions /v1
/openai/v1           /openai/v1
/api/paas/v4/        /api/paas/v4
TABLE
at=
ask 500 --retries 2 "${one[@]}"
expect 1 "the server says 500, tried 3 times: no [31mway for nobody"; expect_requests 3
ask 401 "${secret[@]}" "${one[@]}"
expect 1 "the server says 401, tried 1 times: no [31mway for Bearer ********************"
expect_requests 1
expect_none "the key in the server's words" sk-4711 err
expect_none "control characters in the server's words" -P '[\x00-\x08\x0b-\x1f]' err
for mode in escaped nested; do
    ask $mode "${secret[@]}" "${one[@]}"; expect 1 'for' 'Bearer *****'
    expect_none "a part of the key" -iE '4711|0034|quite|secret' err
done
ask repeats "${secret[@]}" --json; expect 0
holds "the key in an answer" "
told = 'and for Bearer ********************.'
assert [x['remote'] for x in lines()] == [told, None, told], lines()"
# Fields that nobody wants may hold anything.
ask odd "${one[@]}" --json; expect 0
holds "an odd answer" "assert lines()[0]['remote'] == 'an odd answer.', lines()"
# A refusal is that of one document.
ask "refuses calls" "${secret[@]}" "${one[@]}" --json
expect 0 "note: the server sent an answer without content: [31mno way for Bearer ***************"
check "two notes" test "$(grep -c 'without content' err)" = 2
expect_none "control characters in a refusal" -P '[\x00-\x08\x0b-\x1f]' err
expect_none "the key in a refusal" sk-4711 err
ask "refuses good" "${one[@]}" --json; expect 0
holds "a document without an answer, and one with it" "
first, empty, second = lines()
assert first['text'] is None and first['remote'] is None and len(first['perturbed'].split()) == 2
assert second['remote'] == 'and the answer of the server.\n' and second['text'] is not None"
ask page "${one[@]}"; expect 1 "it is no OpenAI-style server"
ask form "${one[@]}"; expect 1 "it is no OpenAI-style server"
ask endless "${one[@]}"; expect 1 "longer than 16 MiB"
ask elsewhere "${one[@]}"; expect 1 "the server says 307"
expect_requests 1 # the redirect is not followed
ask silent --timeout .2 --retries 1 "${one[@]}"; expect 1 "tried 2 times: Timeout"
# What was written before a failure stays.
ask "good 401" "${one[@]}" -o part.jsonl; expect 1
expect_lines 2 part.jsonl
# On a terminal control characters are shown, in a file they are as they came. script(1) gives a
# terminal.
printf 'an\xc2\x9b2Jswer\xe2\x80\xae' >plain/answer
ask good --json; expect 0; expect_out $'an\xc2\x9b2Jswer\xe2\x80\xae'
on_terminal() { # ARGS
    last="dpinfer infer $* on a terminal"
    script -qec "echo 'one two three four' | '$dpinfer' infer m.gguf $* --vectors vectors.txt \
        --remote-model far -n 200 -c 800 2>/dev/null" screen >/dev/null 2>&1 </dev/null
    sed '1d;$d' screen | tr -d '\r\n\t' >text
    check "no text" test -s text
    expect_none "control characters" -P '[\x00-\x1f\x7f]|\xc2\x9b|\xe2\x80\xae' text
}
if command -v script >/dev/null; then
    echo good >plain/mode
    on_terminal --json --remote "$url"
    check "the answer is not escaped" grep -qF '"an\x9b2Jswer\u202e"' text
    # The model writes bytes of all kinds. A text may end before the first one that is escaped, but
    # of ten tokens that are either not one ends it: ten texts do so with a chance below 1e-10.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        on_terminal --remote "$url"
        ! grep -qF '\x' text || break
    done
    check "the text is not escaped" grep -qF '\x' text
    printf 'one %b2J {document}' '\xc2\x9b' >steers
    on_terminal --dry-run --remote-prompt-file steers
    check "the request is not escaped" grep -qF 'one \x9b2J' text
fi
echo 'and the answer of the server.' >plain/answer
# A report says what left, also after a failure and a signal.
report_says() { # DOCUMENTS WORDS
    holds "what the report says" "r = json.load(open('r.json'))['claim']['mechanisms'][0]
assert (r['n_documents'], r['n_words'], r['runs']) == ($1, $2, 2), r"
    run verify r.json --vectors vectors.txt
    expect 0; expect_out "the certificate is that of the vocabulary"
    rm -f r.json
}
ask good --report r.json; expect 0; report_says 2 4
ask "good 401" "${one[@]}" --report r.json; expect 1; report_says 2 4
ask 401 "${one[@]}" --report r.json; expect 1; report_says 1 2
ask form --in-flight 3 --report r.json; expect 1; report_says 2 4
echo silent >plain/mode
rm -f plain/bodies
"$dpinfer" infer m.gguf docs.jsonl "${there[@]}" -n 4 -c 480 "${one[@]}" --report r.json \
    >out 2>err &
pid=$!
wait_for test -s plain/bodies
kill -TERM $pid
wait $pid
rc=$? last="infer, and a signal"
expect 143
report_says 1 2
refuse 2 "allowed is less than the context" infer m.gguf docs.jsonl "${there[@]}" -n 480 -c 480 \
    --report r.json
check "a report, and nothing left" test ! -e r.json
# Several at a time: all answers, in the order of the documents.
for i in $(seq 20); do echo "{\"text\": \"one two three $i\"}"; done >many.jsonl
echo good >plain/mode
run infer m.gguf many.jsonl "${far[@]}" --remote "$url/v1/" -n 4 -c 480 --in-flight 8; expect 0
holds "all in their order" "assert [x['index'] for x in lines()] == list(range(20))"
# A real local model; prompts of one's own; the beginning of a document.
echo 'BEGIN {document} END' >remote.prompt
echo '{generation} / {document}' >extract.prompt
rm -f plain/bodies
run infer "$model" docs.jsonl "${there[@]}" --remote-prompt-file remote.prompt \
    --extract-prompt-file extract.prompt -n 8 --json
expect 0
check "its prompt" grep -qE '"content":"BEGIN [a-z ]+ END"' plain/bodies
"$dpinfer" infer "$model" --document-tokens 1 --mechanism exponential "${there[@]}" -n 4 --json \
    <<<'one two three four' >out 2>err
rc=$? last="the beginning of a document"
expect 0
holds "one word of it" "assert len(json.loads(out)['perturbed'].split()) == 1"
end_remote plain

# Nobody there.
run infer m.gguf docs.jsonl "${far[@]}" --remote http://127.0.0.1:1 -n 4 -c 480 --retries 1 \
    --retry-wait .01
expect 1 "no answer from the server, tried 2 times"

# ---- The program's own server ------------------------------------------------------------------
mkfifo address
"$dpinfer" serve "$model" --port 0 -t 1 >address 2>serve.err &
server=$!
read -r url <address
if [ -n "$url" ]; then
    run infer "$model" many.jsonl --remote "$url" --remote-model any -n 4 --remote-tokens 8 --json
    expect 0
    holds "answers of the server" "
assert len(lines()) == 20 and all(x['remote'] and x['text'] for x in lines()), out"
    kill "$server"
else
    echo "skipped: this program has no server"
    check "it does not begin" grep -q 'built without the server' serve.err
fi
wait "$server"

# ---- TLS -----------------------------------------------------------------------------------------
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.pem -days 2 \
        -subj /CN=localhost -addext 'subjectAltName = DNS:localhost' >/dev/null 2>&1
    begin_remote safe tls.pem tls.key
    tls() { # HOST ARGS
        run infer m.gguf docs.jsonl "${far[@]}" --remote "https://$1:$port" -n 4 -c 480 \
            "${one[@]}" --retries 0 "${@:2}"
    }
    tls localhost --ca-file tls.pem; expect 0
    tls localhost; expect 1 "certificate is not trusted"
    tls 127.0.0.1 --ca-file tls.pem; expect 1 "certificate is not trusted" # of another name
    check "requests without a trusted certificate" test "$(wc -l <safe/bodies)" = 2
    # With TLS a proxy is asked for a tunnel, and sees the host alone. This one makes none.
    https_proxy=$proxy_url SECRET_KEY=sk-4711 tls localhost --ca-file tls.pem "${secret[@]}"
    expect 1 "no answer from the server"
    check "the proxy was not asked" grep -qa "^CONNECT localhost:$port HTTP/1.1" proxy/bytes
    expect_none "the proxy saw more" -E 'sk-4711|POST|content' proxy/bytes
    end_remote safe
else
    echo "skipped: TLS needs openssl"
fi
end_remote proxy
finish
