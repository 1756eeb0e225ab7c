#!/usr/bin/env bash
# The command `infer`, with a server that behaves and that does not: infer.sh path/to/dpinfer SOURCE
. "$(dirname "$0")/cli_support.sh"
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
unset https_proxy HTTPS_PROXY ALL_PROXY all_proxy no_proxy NO_PROXY
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
small_model
cat >vectors.txt <<'TABLE'
zero 0 0
one 1 0
two 1 .5
three 0 2
four .25 2
TABLE

# ---- The command line --------------------------------------------------------------------------
refuse 2 "no MODEL given" infer
refuse 2 "no --remote-model NAME given" infer m.gguf --remote http://localhost:1
refuse 2 "no --remote URL and no --dry-run" infer m.gguf --remote-model x
for url in http://example.org ftp://localhost localhost:80 http://localhost@evil.example \
    http://localhost.evil.example http://127.0.0.1.evil.example 'https://h/?q' 'https://' \
    'https://a b' 'https://u:p@h'; do
    refuse 2 "--remote: found '$url'" infer m.gguf --remote-model x --remote "$url"
done
refuse 2 "there is no variable 'NO_SUCH_KEY'" infer m.gguf --remote-model x \
    --remote https://h --api-key-env NO_SUCH_KEY
printf 'two words' >bad.key
refuse 2 "a character that no header may have" infer m.gguf --remote-model x --remote https://h \
    --api-key-file bad.key
refuse 2 "allowed is one of them" infer m.gguf --remote-model x --remote https://h \
    --api-key-file bad.key --api-key-env HOME
echo 'no name in it' >bad.prompt
refuse 2 "must have {document}, once" infer m.gguf --remote-model x --dry-run \
    --remote-prompt-file bad.prompt
echo '{document}' >bad.prompt
refuse 2 "must have {generation}, once" infer m.gguf --remote-model x --dry-run \
    --extract-prompt-file bad.prompt

refuse 2 "--report and --dry-run: allowed is one of them" infer m.gguf --remote-model x \
    --dry-run --report r.json

# ---- A dry run -----------------------------------------------------------------------------------
secret='Xylophon Brandt'
printf '{"text": "%s one two"}\n{"text": ""}\n{"text": "three %s four"}\n' "$secret" "$secret" \
    >docs.jsonl
run infer m.gguf docs.jsonl --vectors vectors.txt --remote-model far --dry-run
expect_rc 0
expect_err "NOTHING LEFT"
check "what would be sent" python3 -c "
import json
lines = [json.loads(x) for x in open('out')]
assert len(lines) == 2
for x in lines:
    assert sorted(x) == ['max_tokens', 'messages', 'model', 'temperature'], x
    assert x['model'] == 'far' and x['max_tokens'] == 150 and x['temperature'] == .5
    (m,) = x['messages']
    begin = 'Continue the text. Write only the continuation.\n\n'
    assert sorted(m) == ['content', 'role'] and m['role'] == 'user'
    assert m['content'].startswith(begin), m
    words = m['content'][len(begin):].split()
    assert len(words) == 2 and set(words) <= {'zero', 'one', 'two', 'three', 'four'}, words"

# ---- Servers -------------------------------------------------------------------------------------
remote_server proxy
proxy=$server
exec 9>proxy/end
read -r port <proxy/port
proxy_url=http://127.0.0.1:$port
remote_server plain
exec 8>plain/end
read -r port <plain/port
url=http://127.0.0.1:$port
# ask MODE ARGS: the command, while the server behaves so.
ask() {
    echo "$1" >plain/mode
    rm -f plain/bytes plain/bodies
    touch plain/restart
    shift
    last="dpinfer infer $*"
    SECRET_KEY=sk-4711-quite-secret "$dpinfer" infer m.gguf docs.jsonl --vectors vectors.txt \
        --remote "$url" --remote-model far -n 8 -c 480 --retry-wait .01 "$@" >out 2>err
    rc=$?
}
requests() { wc -l <plain/bodies; }

ask good --api-key-env SECRET_KEY --json
expect_rc 0
expect_err "WHAT LEFT THIS MACHINE"
check "texts, and what they were made of" python3 -c "
import json
lines = [json.loads(x) for x in open('out')]
assert [x['index'] for x in lines] == [0, 1, 2]
assert lines[1] == {'index': 1, 'text': None, 'perturbed': None, 'remote': None}, lines[1]
for x in (lines[0], lines[2]):
    assert x['remote'] == 'and the answer of the server.\n' and isinstance(x['text'], str)
    assert len(x['perturbed'].split()) == 2, x"
# Every byte that the server got: two requests, their headers by name, the perturbed words that
# the output names, and nothing else.
check "bytes that were sent" python3 -c "
import json
sent = open('plain/bytes', 'rb').read()
words = [x['perturbed'] for x in map(json.loads, open('out')) if x['perturbed']]
expected = []
for w in words:
    body = json.dumps({'model': 'far', 'messages': [{'role': 'user', 'content':
        'Continue the text. Write only the continuation.\n\n' + w}], 'temperature': .5,
        'max_tokens': 150}, separators=(',', ':')).encode()
    expected.append(b'\r\n'.join([b'POST /v1/chat/completions HTTP/1.1', b'Host: 127.0.0.1:$port',
        b'Accept: */*', b'Content-Type: application/json',
        b'Authorization: Bearer sk-4711-quite-secret', b'Content-Length: %d' % len(body), b'',
        body]))
assert len(expected) == 2 and sent in (expected[0] + expected[1], expected[1] + expected[0]), sent"
check "the document left" test -z "$(grep -a 'Xylophon\|Brandt' plain/bytes)"
check "the key was told" test -z "$(cat out err | grep sk-4711)"
printf 'sk-of-a-file\r\n' >file.key
ask good --api-key-file file.key
check "the key of a file" grep -qa '^Authorization: Bearer sk-of-a-file' plain/bytes
ask good
check "no key" test -z "$(grep -ai authorization plain/bytes)"
expect_rc 0
# What goes to this machine without TLS goes by no proxy, which would read it.
http_proxy=$proxy_url HTTP_PROXY=$proxy_url ALL_PROXY=$proxy_url all_proxy=$proxy_url \
    ask good --api-key-env SECRET_KEY
expect_rc 0
check "two requests without a proxy" test "$(requests)" = 2
check "a proxy was asked" test ! -e proxy/bytes

# What passes is tried again; what does not, is not.
for mode in "429 good" "500 503 good" "close good" "half good" "wait good"; do
    ask "$mode" --in-flight 1
    expect_rc 0
    expect_lines 3 out
done
ask 500 --retries 2 --in-flight 1
expect_rc 1
expect_err "the server says 500, tried 3 times: no [31mway for nobody"
check "three requests" test "$(requests)" = 3
ask 401 --api-key-env SECRET_KEY --in-flight 1
expect_rc 1
expect_err "the server says 401, tried 1 times: no [31mway for Bearer ********************"
check "one request" test "$(requests)" = 1
check "the key in the server's words" test -z "$(grep sk-4711 err)"
check "control characters in the server's words" test -z "$(grep -P '[\x00-\x08\x0b-\x1f]' err)"
for mode in escaped nested; do
    ask $mode --api-key-env SECRET_KEY --in-flight 1
    expect_rc 1
    expect_err 'for'
    expect_err 'Bearer *****'
    check "a part of the key" test -z "$(grep -iE '4711|0034|quite|secret' err)"
done
ask repeats --api-key-env SECRET_KEY --json
expect_rc 0
check "the key in an answer" python3 -c "
import json
lines = [json.loads(x) for x in open('out')]
assert [x['remote'] for x in lines] == ['and for Bearer ********************.', None,
                                        'and for Bearer ********************.'], lines"
# A refusal is that of one document.
ask "refuses calls" --api-key-env SECRET_KEY --in-flight 1 --json
expect_rc 0
expect_err "note: the server sent an answer without content: [31mno way for Bearer ***************"
check "two notes" test "$(grep -c 'without content' err)" = 2
check "control characters in a refusal" test -z "$(grep -P '[\x00-\x08\x0b-\x1f]' err)"
check "the key in a refusal" test -z "$(grep sk-4711 err)"
ask "refuses good" --in-flight 1 --json
expect_rc 0
check "a document without an answer, and one with it" python3 -c "
import json
first, empty, second = [json.loads(x) for x in open('out')]
assert first['text'] is None and first['remote'] is None and len(first['perturbed'].split()) == 2
assert second['remote'] == 'and the answer of the server.\n' and second['text'] is not None"
ask page --in-flight 1; expect_rc 1; expect_err "it is no OpenAI-style server"
ask form --in-flight 1; expect_rc 1; expect_err "it is no OpenAI-style server"
ask endless --in-flight 1; expect_rc 1; expect_err "longer than 16 MiB"
ask elsewhere --in-flight 1; expect_rc 1; expect_err "the server says 307"
check "the redirect was followed" test "$(requests)" = 1
ask silent --timeout .2 --retries 1 --in-flight 1; expect_rc 1; expect_err "tried 2 times: Timeout"
# What was written before a failure stays.
rm -f part.jsonl
ask "good 401" --in-flight 1 -o part.jsonl
expect_rc 1
check "what there is" test "$(wc -l <part.jsonl)" = 2
# On a terminal control characters are shown, in a file they are as they came. script(1) gives a
# terminal; the model here writes bytes of all kinds, but one text may end before the first of them.
printf 'an\xc2\x9b2Jswer\xe2\x80\xae' >plain/answer
ask good --json; expect_rc 0; expect_out $'an\xc2\x9b2Jswer\xe2\x80\xae'
on_terminal() { # ARGS
    last="dpinfer infer $* on a terminal"
    script -qec "echo 'one two three four' | '$dpinfer' infer m.gguf $* --vectors vectors.txt \
        --remote-model far -n 200 -c 800 2>/dev/null" screen >/dev/null 2>&1 </dev/null
    sed '1d;$d' screen | tr -d '\r\n\t' >text
    check "no text" test -s text
    check "control characters" test -z "$(grep -aP '[\x00-\x1f\x7f]|\xc2\x9b|\xe2\x80\xae' text)"
}
if command -v script >/dev/null; then
    echo good >plain/mode
    on_terminal --json --remote "$url"
    check "the answer is not escaped" grep -qF '"an\x9b2Jswer\u202e"' text
    for _ in 1 2 3 4 5; do
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
    check "what the report says" python3 -c "
import json; r = json.load(open('r.json'))['released']
assert (r['n_documents'], r['n_words'], r['longest']) == ($1, $2, 2), r"
    run verify r.json --vectors vectors.txt
    expect_rc 0; expect_out "the certificate is that of the vocabulary"
    rm -f r.json
}
ask good --report r.json; expect_rc 0; report_says 2 4
ask "good 401" --in-flight 1 --report r.json; expect_rc 1; report_says 2 4
ask 401 --in-flight 1 --report r.json; expect_rc 1; report_says 1 2
ask form --in-flight 3 --report r.json; expect_rc 1; report_says 2 4
echo silent >plain/mode
rm -f plain/bodies
"$dpinfer" infer m.gguf docs.jsonl --vectors vectors.txt --remote "$url" --remote-model far -n 4 \
    -c 480 --in-flight 1 --report r.json >out 2>err &
pid=$!
for _ in $(seq 100); do
    [ ! -s plain/bodies ] || break
    sleep .1
done
kill -TERM $pid
wait $pid
rc=$? last="infer, and a signal"
expect_rc 143
report_says 1 2
refuse 2 "allowed is less than the context" infer m.gguf docs.jsonl --vectors vectors.txt \
    --remote "$url" --remote-model far -n 480 -c 480 --report r.json
check "a report, and nothing left" test ! -e r.json
# Several at a time: all answers, in the order of the documents.
for i in $(seq 20); do echo "{\"text\": \"one two three $i\"}"; done >many.jsonl
echo good >plain/mode
run infer m.gguf many.jsonl --vectors vectors.txt --remote "$url/v1/" --remote-model far -n 4 \
    -c 480 --in-flight 8
expect_rc 0
check "all in their order" python3 -c "
import json; assert [json.loads(x)['index'] for x in open('out')] == list(range(20))"
# A real local model; prompts of one's own; the beginning of a document.
echo 'BEGIN {document} END' >remote.prompt
echo '{generation} / {document}' >extract.prompt
rm -f plain/bodies
run infer "$model" docs.jsonl --vectors vectors.txt --remote "$url" --remote-model far \
    --remote-prompt-file remote.prompt --extract-prompt-file extract.prompt -n 8 --json
expect_rc 0
check "its prompt" grep -qE '"content":"BEGIN [a-z ]+ END"' plain/bodies
"$dpinfer" infer "$model" --document-tokens 1 --mechanism exponential --vectors vectors.txt \
    --remote "$url" --remote-model far -n 4 --json <<<'one two three four' >out 2>err
rc=$? last="the beginning of a document"
expect_rc 0
check "one word of it" python3 -c "
import json; assert len(json.load(open('out'))['perturbed'].split()) == 1"
exec 8>&-
wait "$server"

# Nobody there.
run infer m.gguf docs.jsonl --vectors vectors.txt --remote http://127.0.0.1:1 --remote-model far \
    -n 4 -c 480 --retries 1 --retry-wait .01
expect_rc 1
expect_err "no answer from the server, tried 2 times"

# ---- The program's own server ------------------------------------------------------------------
mkfifo address
"$dpinfer" serve "$model" --port 0 -t 1 >address 2>serve.err &
server=$!
exec 7<address
if read -r url <&7 && [[ $url == http://* ]]; then
    run infer "$model" many.jsonl --remote "$url" --remote-model any -n 4 --remote-tokens 8 --json
    expect_rc 0
    check "answers of the server" python3 -c "
import json
lines = [json.loads(x) for x in open('out')]
assert len(lines) == 20 and all(x['remote'] and x['text'] for x in lines), lines[0]"
    kill "$server"
else
    echo "skipped: this program has no server: $(head -n 1 serve.err)"
fi
exec 7<&-
wait "$server"

# ---- TLS -----------------------------------------------------------------------------------------
if command -v openssl >/dev/null; then
    openssl req -x509 -newkey rsa:2048 -nodes -keyout tls.key -out tls.pem -days 2 \
        -subj /CN=localhost -addext 'subjectAltName = DNS:localhost' >/dev/null 2>&1
    remote_server safe tls.pem tls.key
    exec 8>safe/end
    read -r port <safe/port
    tls() {
        run infer m.gguf docs.jsonl --vectors vectors.txt --remote-model far -n 4 -c 480 \
            --in-flight 1 --retries 0 "$@"
    }
    tls --remote "https://localhost:$port" --ca-file tls.pem
    expect_rc 0
    tls --remote "https://localhost:$port"
    expect_rc 1; expect_err "certificate is not trusted"
    tls --remote "https://127.0.0.1:$port" --ca-file tls.pem # of another name
    expect_rc 1; expect_err "certificate is not trusted"
    check "requests without a trusted certificate" test "$(wc -l <safe/bodies)" = 2
    # With TLS a proxy is asked for a tunnel, and sees the host alone. This one makes none.
    https_proxy=$proxy_url SECRET_KEY=sk-4711 tls --remote "https://localhost:$port" \
        --ca-file tls.pem --api-key-env SECRET_KEY
    expect_rc 1; expect_err "no answer from the server"
    check "the proxy was not asked" grep -qa "^CONNECT localhost:$port HTTP/1.1" proxy/bytes
    check "the proxy saw more" test -z "$(grep -aE 'sk-4711|POST|content' proxy/bytes)"
    exec 8>&-
    wait "$server"
else
    echo "skipped: TLS needs openssl"
fi
exec 9>&-
wait "$proxy"
finish
