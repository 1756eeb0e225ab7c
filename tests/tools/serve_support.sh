# What the tests of the server share, beside cli_support.sh: a real server, and curl.
# shellcheck shell=bash
command -v curl >/dev/null || { echo "skipped: no curl"; exit 77; }
"$dpinfer" serve -h >/dev/null || exit 1
if "$dpinfer" serve m.gguf --port 0 2>&1 | grep -q 'built without the server'; then
    echo "skipped: built without the server"
    exit 77
fi
mkfifo address
# serve ARGS: starts the server; its process is $server and its address $url. Log: server.err.
serve() {
    last="dpinfer serve $*"
    "$dpinfer" serve "$@" --port 0 >address 2>server.err &
    server=$!
    url=
    read -r url <address
    rc=0
    check "it does not begin" test -n "$url"
}
# stop: SIGTERM, after which it ends well.
stop() {
    kill -TERM "$server"
    wait "$server"
    rc=$?
    cp server.err err
    expect_rc 0
}
# get PATH [curl options]: the body in `out`, the code in $code, headers in `headers`.
get() {
    last="$1"
    code=$(curl -s -o out -D headers -w '%{http_code}' "${@:2}" "$url$1" 2>err)
    rc=$?
}
# post PATH JSON [curl options]
json=(-H 'Content-Type: application/json' --data-binary)
post() { get "$1" "${json[@]}" "$2" "${@:3}"; }
# expect CODE [TEXT...]: that of the last reply, and what is in its body.
expect() {
    local text
    if [ "$code" = "$1" ]; then ok; else bad "$last: code $code, expected $1"; fi
    for text in "${@:2}"; do expect_out "$text"; done
    # Clients of OpenAI read error.code as a string or null.
    check "a code that is a number" test -z "$(grep -aoE '"code":[0-9]' out)"
}
expect_header() { check "no header $1" grep -qiE "$1" headers; }
# make_token NAME [SHARES]: a token, whose hash is in the file `tokens`.
make_token() {
    local token
    token=$(head -c 32 /dev/urandom | sha256sum | cut -d ' ' -f 1)
    echo "$1 $(printf %s "$token" | sha256sum | cut -d ' ' -f 1)${2:+ $2}" >tokens
    echo "$token"
}
# text_of FILE: the text of an answer, as JSON has it.
text_of() { grep -oE '"(content|text)":"([^"\\]|\\.)*"' "$1"; }
