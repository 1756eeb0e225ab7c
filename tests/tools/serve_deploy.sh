#!/usr/bin/env bash
# What docs/serve.md says of deployment, as it stands in examples/serve: nginx with TLS before the
# server, the unit of systemd, copies of the ledger while it is used.
#   serve_deploy.sh path/to/dpinfer SOURCE
PATH=$PATH:/usr/sbin
source=$(readlink -f "$2") examples=$(readlink -f "$2/examples/serve")
. "$(dirname "$0")/cli_support.sh"
. "$here/serve_support.sh"
for tool in nginx openssl; do
    command -v $tool >/dev/null || { echo "skipped: no $tool"; exit 77; }
done
for i in $(seq 20); do echo "{\"text\": \"Ticket $i: the printer does not print.\"}"; done >r.jsonl
token=$(make_token alice letters=1)
chmod 755 . # nginx's own user
serve "$source/models/dpinfer-4m-q8_0.gguf" -t 1 -c 512 --tokens tokens --ledger budget.db \
    --dataset letters=r.jsonl,epsilon=8,delta=1e-6

# ---- nginx --------------------------------------------------------------------------------------
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=models.example.org \
    -addext subjectAltName=DNS:models.example.org -keyout key.pem -out cert.pem 2>err || exit 1
# nginx_at PORT
nginx_at() {
    {
        echo "pid $dir/nginx.pid; error_log $dir/error.log; events {}"
        echo "http { client_body_temp_path $dir/body; proxy_temp_path $dir/proxy;"
        echo "fastcgi_temp_path $dir/f; uwsgi_temp_path $dir/u; scgi_temp_path $dir/s;"
        sed -e "s|listen 443|listen 127.0.0.1:$1|; s|127.0.0.1:8080|127.0.0.1:${url##*:}|" \
            -e "s|/etc/ssl/certs/models.example.org.pem|$dir/cert.pem|" \
            -e "s|/etc/ssl/private/models.example.org.key|$dir/key.pem|" "$examples/nginx.conf"
        echo "}"
    } >nginx.conf
    nginx -c "$dir/nginx.conf" -e "$dir/error.log" 2>err
}
last="nginx"
for _ in $(seq 20); do # a port may be in use, by connections of other tests too
    tls=$((20000 + RANDOM % 12000))
    nginx_at "$tls"
    rc=$?
    grep -q 'Address already in use' err || break
done
expect_rc 0
trap 'kill "$(cat "$dir/nginx.pid")" 2>/dev/null; rm -rf "$dir"' EXIT
direct=$url
url=https://models.example.org:$tls
over=(--cacert cert.pem --resolve "models.example.org:$tls:127.0.0.1"
    -H "Authorization: Bearer $token")
body='{"dataset": "letters", "privacy": {"epsilon": 1}, "max_tokens": 5,
    "messages": [{"role": "user", "content": "What is the problem?"}]}'
chat=/v1/chat/completions
for reply in first again; do
    post $chat "$body" "${over[@]}" -H 'Idempotency-Key: 1'; expect 200
    cp out $reply
done
expect_same first again
post $chat "$body" "${over[@]:0:4}"; expect 401
get /metrics "${over[@]}"; expect 404
post $chat '{"messages": [{"role": "user", "content": "Ticket"}], "max_tokens": 9,
    "stream": true}' "${over[@]}" -N
expect 200 "data: [DONE]"
head -c 1048577 /dev/zero | tr '\0' ' ' >long
post $chat @long "${over[@]}"; expect 413
url=http://127.0.0.1:$tls
get /health; expect 400 # plain HTTP to the port of TLS
url=$direct

# ---- Copies of the ledger -----------------------------------------------------------------------
if command -v sqlite3 >/dev/null; then
    last="the lines of docs/serve.md for copies"
    grep -A1 '^    sqlite3 .*answers.copy$' "$source/docs/serve.md" >copy.sh
    check "there are two" test "$(wc -l <copy.sh)" = 2
    # Beside a writer that has the ledger for most of the time.
    mkfifo writing
    python3 - <<'P' &
import sqlite3, time
db = sqlite3.connect("budget.db.answers", timeout=600, isolation_level=None)
for i in range(60):
    db.execute("BEGIN EXCLUSIVE")
    if i == 0:
        open("writing", "w").close() # the copy begins
    time.sleep(.05)
    db.execute("ROLLBACK")
P
    : <writing
    bash -e copy.sh
    rc=$?
    expect_rc 0
    wait $!
    run ledger show ledger.copy; expect_rc 0; expect_out "answer chatcmpl-"
    check "the copy has no answer" \
        test "$(sqlite3 answers.copy 'SELECT count(*) FROM answer WHERE state = 2')" = 1
    post $chat "$body" -H "Authorization: Bearer $token"; expect 200
fi
stop

# ---- systemd ------------------------------------------------------------------------------------
if command -v systemd-analyze >/dev/null; then
    sed "s|/usr/local/bin/dpinfer|$dpinfer|" "$examples/dpinfer.service" >dpinfer.service
    last="systemd-analyze verify"
    systemd-analyze verify --man=no "$dir/dpinfer.service" >out 2>err
    rc=$?
    expect_rc 0
    check "it complains" test -z "$(grep dpinfer.service out err)"
    last="systemd-analyze security" # at most 2.0 of 10
    systemd-analyze security --offline=true --threshold=20 "$dir/dpinfer.service" >out 2>err
    rc=$?
    expect_rc 0
fi
finish
