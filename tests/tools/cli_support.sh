# What the tests of the command line share; to be sourced, with $1 the program. They go on in $dir,
# an empty directory that is removed at the end; files out and err there are the last run's.
# shellcheck shell=bash
set -u
export LC_ALL=C OMP_WAIT_POLICY=passive
unset DPI_ISA
dpinfer=$(readlink -f "$1")
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1

passed=0
failed=0
# A check that does not exist is a failure. Bash asks in a process of its own: a file tells.
command_not_found_handle() {
    echo "FAILED: no command $1"
    : >"$dir/.no_command"
    return 127
}
# finish: the test's exit, with its counts.
finish() {
    if [ -e "$dir/.no_command" ]; then failed=$((failed + 1)); fi
    echo "$(basename "$0" .sh): $passed passed, $failed failed"
    exit $((failed > 0))
}
# small_model: m.gguf, of random weights, so that no shared data is needed.
small_model() {
    "$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
        --type F32 -o m.gguf 2>err || exit 1
}
# small_adapter: adapter.gguf, of rank 2, for the queries of m.gguf. false: there is no python3.
small_adapter() {
    command -v python3 >/dev/null && python3 - <<'EOF'
from struct import pack
def text(s): return pack("<Q", len(s)) + s
keys = {b"general.architecture": b"llama", b"general.type": b"adapter", b"adapter.type": b"lora"}
head = b"GGUF" + pack("<IQQ", 3, 2, 4)
head += b"".join(text(k) + pack("<I", 8) + text(v) for k, v in keys.items())
head += text(b"adapter.lora.alpha") + pack("<If", 6, 2)
data = b""
for name, columns, rows in ((b"a", 32, 2), (b"b", 2, 32)):
    head += text(b"blk.0.attn_q.weight.lora_" + name)
    head += pack("<IQQIQ", 2, columns, rows, 0, len(data))
    data += pack("<64f", *(i % 7 - 3 for i in range(64)))
with open("adapter.gguf", "wb") as f:
    f.write(head + bytes(-len(head) % 32) + data)
EOF
}
# small_vectors: vectors.txt, five words in two dimensions.
small_vectors() {
    printf '%s\n' 'the 0 0' 'cat 1 0' 'dog 1 .5' 'sat 0 2' 'ran .25 2' >vectors.txt
}
# remote_server FOLDER [CERTIFICATE KEY]: an OpenAI-style server, $server, that ends when nobody has
# FOLDER/end open for writing any more (remote_server.py).
remote_server() {
    mkdir "$1"
    echo good >"$1/mode"
    echo 'and the answer of the server.' >"$1/answer"
    mkfifo "$1/end" "$1/port"
    python3 "$here/remote_server.py" "$@" <"$1/end" 2>"$1/err" &
    server=$!
}
# windows_text FILE...: as an editor on Windows writes it: with a mark, and CR before LF.
windows_text() { sed -i -s '$!s/\r*$/\r/; 1s/^/\xef\xbb\xbf/' "$@"; }
ok() { passed=$((passed + 1)); }
bad() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    echo "  exit code: ${rc-none}"
    sed 's/^/  stderr: /' err | tail -n 5
    head -c 300 out | sed 's/^/  stdout: /'
    if [ -n "${STOP_AT_FIRST:-}" ]; then # which is all that scripts/mutants wants to know
        finish
    fi
}
# run ARGS: the program's stdout in `out`, stderr in `err`, exit code in $rc.
run() {
    last="dpinfer $*"
    "$dpinfer" "$@" >out 2>err </dev/null
    rc=$?
}
expect_rc() { if [ "$rc" -eq "$1" ]; then ok; else bad "$last: expected exit code $1"; fi; }
# contains FILE TEXT, without another process where it can: most checks are this one.
contains() {
    local all=
    IFS= read -r -d '' all <"$1"
    [[ $all == *"$2"* ]] || grep -qF -- "$2" "$1"
}
# expect_err TEXT..., expect_out TEXT...: each of them is there.
expect_err() { expect_texts err stderr "$@"; }
expect_out() { expect_texts out stdout "$@"; }
expect_texts() {
    local text
    for text in "${@:3}"; do
        if contains "$1" "$text"; then ok; else bad "$last: no '$text' on $2"; fi
    done
}
expect_no_err() { if contains err "$1"; then bad "$last: '$1' on stderr"; else ok; fi; }
expect_empty_out() { if [ -s out ]; then bad "$last: stdout is not empty"; else ok; fi; }
expect_same() { if cmp -s "$1" "$2"; then ok; else bad "$last: $1 and $2 differ"; fi; }
expect_different() { if cmp -s "$1" "$2"; then bad "$last: $1 and $2 are the same"; else ok; fi; }
expect_lines() {
    if [ "$(wc -l <"$2")" -eq "$1" ]; then ok; else bad "$last: $2 has not $1 lines"; fi
}
# check MESSAGE COMMAND...: the command succeeds.
check() {
    local message=$1
    shift
    if "$@"; then ok; else bad "$last: $message"; fi
}
# works ARGS: a run that succeeds. fails CODE ARGS: one that ends with this exit code.
works() {
    run "$@"
    expect_rc 0
}
fails() {
    run "${@:2}"
    expect_rc "$1"
}
# refuse CODE TEXT ARGS: exit code, message, and nothing on stdout.
refuse() {
    fails "$1" "${@:3}"
    expect_err "$2"
    expect_empty_out
}
# refuse_each CODE ARGS <<END: a refusal for each line "MORE ARGS | TEXT", where ARGS go before. The
# words of a line are those of a command line, with quotes and variables. Blank lines and those that
# begin with # say nothing.
refuse_each() {
    local line words
    while IFS= read -r line; do
        [[ $line && $line != '#'* ]] || continue
        eval "words=(${line%% | *})"
        refuse "$1" "${line#* | }" "${@:2}" "${words[@]}"
    done
}
# wrong TEXT ARGS: what `verify ARGS` says to be WRONG.
wrong() {
    fails 1 verify "${@:2}"
    expect_out "WRONG  $1"
}
# holds MESSAGE CONDITION: of numbers, in awk; a field that is missing makes it false.
holds() { check "$1: $2" awk "BEGIN { exit !($2) }" 2>/dev/null; }
# python_check MESSAGE [ARGS] <<'P': Python, after checks.py, succeeds.
python_check() {
    local message=$1
    shift
    check "$message" python3 -c "$(cat "$here/checks.py" -)" "$@"
}
# expect_count N PATTERN FILE: so many lines have the pattern (grep -E).
expect_count() {
    local n
    n=$(grep -caE -- "$2" "$3")
    if [ "$n" = "$1" ]; then ok; else bad "$last: $n lines of $3 with '$2', expected $1"; fi
}
# expect_line FILE PATTERN...: the file has a line with each (grep -E).
expect_line() {
    local pattern
    for pattern in "${@:2}"; do
        check "$1 has no '$pattern'" grep -qaE -- "$pattern" "$1"
    done
}
# expect_none FILE...: nothing was written there.
expect_none() {
    local file
    for file in "$@"; do check "$file is there" test ! -e "$file"; done
}
field() { sed -n "s/^ *\"$1\": \(.*[^,]\),\{0,1\}\$/\1/p" out | head -n 1; }
# near FIELD VALUE: relative difference below 1e-9 (tables have 12 digits).
near() {
    if awk -v x="$(field "$1")" -v y="$2" -v e="${3:-1e-9}" \
        'BEGIN { d = x / y - 1; exit !(x != "" && d < e && d > -e) }'; then ok
    else bad "$last: $1 is $(field "$1"), expected $2"; fi
}

# json_lines FILE: whole lines of texts, each a JSON object.
json_lines() {
    [ ! -s "$1" ] || [ -z "$(tail -c 1 "$1")" ] || return 1
    ! grep -avqE '^\{"index":[0-9]+,("text_label":"[^"]*",)?"text":"([^"\\]|\\.)*",'\
'"n_tokens":[0-9]+,"ended":(true|false),"private":(true|false)(,"label":"[^"]*")?\}$' "$1"
}
# csv_rows FILE: quotes in pairs, a whole last row, and none in the header.
csv_rows() {
    local end='",[0-9]+,(true|false),(true|false)(,[^,]*)?.$'
    [ $(($(tr -d -c '"' <"$1" | wc -c) % 2)) -eq 0 ] && [ "$(tail -c 2 "$1")" = $'\r' ] &&
        ! head -n 1 "$1" | grep -q '"' &&
        { [ "$(wc -l <"$1")" -eq 1 ] || tail -n 1 "$1" | grep -aqE "$end"; }
}
# flip_bit FILE AT: changes one bit of byte AT; AT below 0 counts from the end. A constant in its
# place could be the value that was there.
flip_bit() {
    python3 - "$1" "$2" <<'P' || bad "cannot change $1"
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[int(sys.argv[2])] ^= 1
open(sys.argv[1], "wb").write(data)
P
}
# tokens_of JOB: how many tokens the file of a job holds.
tokens_of() { od -An -v -tx8 -w32 -j4096 "$1/tokens" 2>/dev/null | grep -vcE '^( 0{16}){4}$'; }
