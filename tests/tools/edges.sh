#!/usr/bin/env bash
# Links that lead nowhere, standard streams that are files of the command, outputs that can be
# opened and not written or renamed, options that do not fit: all of it is seen before anything is
# paid for.
#   edges.sh path/to/dpinfer
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/process_support.sh"
small_model
records 8 >r.jsonl
printf '%s\n' 'the 0 0' 'record 1 0' 'anna 1 .5' 'of 0 2' >vectors
small="run m.gguf r.jsonl --rho .01 -B 8 -n 4 -t 1 -q --pace none"
works ledger init year --dataset d --epsilon 20 --delta 1e-5
charges() { budget year n_charges; }
# unpaid CODE TEXT WORDS...: refused, and nothing is charged.
unpaid() {
    refuse "$@"
    check "it was charged" test "$(charges)" = "$paid"
}
paid=$(charges)

# ---- Links that lead nowhere --------------------------------------------------------------------
ln -s nothing link
for words in "$small -o link" "$small --report link -o x" "$small -o link --overwrite" \
    "perturb --vectors vectors r.jsonl -o new --report link --overwrite" \
    "perturb --vectors vectors r.jsonl --distances nothing -o link --overwrite"; do
    refuse 2 "link is a symbolic link to a file that is not there" $words
    check "something was made" test ! -e nothing
done
unpaid 2 "link is a symbolic link" $small --ledger year -o link
ln -s nothing x.json.sig
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N "" -f key
    signed="$small --ledger year --sign key -o x --overwrite --report"
    unpaid 2 "x.json.sig is a symbolic link" $signed x.json
    mkdir y.json.sig; mkfifo z.json.sig
    unpaid 2 "y.json.sig is not a file" $signed y.json
    unpaid 2 "z.json.sig is not a file" $signed z.json
    unpaid 1 "File name too long" $signed "$(printf 'n%.0s' {1..236}).json"
fi

# ---- Standard streams that are files of the command ---------------------------------------------
cp r.jsonl given
echo "Write a letter." >prompt
cp prompt prompt.kept
# streams CODE TEXT COMMAND: a command with streams of its own.
streams() {
    last=$3
    eval "\"$dpinfer\" $3" 2>err
    rc=$?
    ended "$1" ${2:+"$2"}
}
for words in "$small --public-prompt-file - -o prompt --overwrite" \
    "perturb --vectors vectors -o /dev/stdin --overwrite" \
    "perturb --vectors vectors -o prompt --overwrite"; do
    streams 2 "is also standard input" "$words <prompt >out"; expect_same prompt prompt.kept
done
streams 2 "" "$small -o messages --overwrite >out 2>messages </dev/null"
check "no message" grep -q "messages is also standard error" messages
streams 2 "lines is also standard output" \
    "audit m.gguf --effort .1 -o lines --overwrite >lines </dev/null"
# A command that appends to its input.
streams 2 "given is an input, and standard output is written there" \
    "attack given --vectors vectors --epsilon 2 --mechanism rantext >>given"
expect_same given r.jsonl
streams 2 "" "run m.gguf given --rho 1 -B 8 -n 2 -t 1 -o x --overwrite >out 2>>given"
check "records" cmp -s -n "$(stat -c %s r.jsonl)" given r.jsonl # the message alone is behind them

# ---- What can be opened, and not written --------------------------------------------------------
mkdir folder
mkfifo pipe
works ledger init units --dataset d --epsilon 20 --delta 1e-5 --scope unit
seq -f 'person%05g' 1 2000 >ids
charge="ledger charge units --rho .001 --unit-ids ids --payers"
exec 9<>pipe
for payers in /dev/full pipe; do refuse 2 "a file is needed" $charge $payers; done
exec 9>&-
last="--payers on a disk that is full"
(ulimit -f 4; exec "$dpinfer" $charge payers >out 2>err </dev/null)
rc=$?
expect_rc 1
run ledger budget units --json; expect_out '"n_charges": 0'
for words in "eval r.jsonl --real r.jsonl --dp-epsilon .01 --dp-delta 1e-3 -t 1 --ledger year -o" \
    "$small --ledger year -o"; do
    unpaid 1 "cannot write folder: Is a directory" $words folder
done
refuse 2 "a model is written to a file; found 'pipe'" quantize m.gguf pipe Q8_0
refuse 2 "--ca-file: pipe is not a regular file" infer m.gguf r.jsonl --remote-model x \
    --remote https://127.0.0.1:1 --ca-file pipe
if mkdir mounted && echo old >bound && : >mounted/file &&
    mount --bind bound mounted/file 2>/dev/null; then
    unpaid 1 "cannot write mounted/file: Device or resource busy" $small --ledger year --overwrite \
        -o mounted/file
    umount mounted/file
fi
# The first signal ends what waits for the reader of a pipe; counts that are paid for are shown.
charged_or_run() { [[ $words != eval* ]] || [ "$(charges)" != "$paid" ]; }
for words in "$small -o pipe" \
    "eval r.jsonl --real r.jsonl --dp-epsilon .01 --dp-delta 1e-3 -t 1 --ledger year -o pipe"; do
    "$dpinfer" $words >out 2>err </dev/null &
    pid=$! last="SIGTERM while '$words' waits"
    await charged_or_run
    await state_is SZ
    kill -TERM $pid
    it_ends; expect_rc 143
done
check "no counts" test -s out

# ---- What does not fit --------------------------------------------------------------------------
works $small -o texts --report run.json --overwrite
refuse 2 "--lora: not looked at in a report of run" verify run.json --lora none
refuse 2 "--vectors: not looked at in a report of run" verify run.json --vectors none
for option in --free-temp --free-top-k --pace-share --pace-tokens; do
    refuse 2 "$option: found '0', allowed" run m.gguf r.jsonl --rho 1 -n 2 -B 8 -t 1 $option 0
done
refuse 2 "--max-per-unit: found '2'" $small --max-per-unit 2
refuse 2 "--cluster: found 2" $small --cluster 2
last="a small stack"
(ulimit -s 64; exec "$dpinfer" account --rho 1 >out 2>err </dev/null); rc=$?
ended 1 "the stack (ulimit -s): found 64 KiB, allowed 512 or more"

# ---- A report on a terminal ---------------------------------------------------------------------
if command -v script >/dev/null; then
    c1=$(printf '\302\233') bidi=$(printf '\342\200\256')
    printf 'lab,text\nx%s31m%s,hello\nx%s31m%s,two\n' "$c1" "$bidi" "$c1" "$bidi" >labels.csv
    on_terminal "'$dpinfer' run m.gguf labels.csv --rho 1 -B 2 -n 4 -t 1 -q --label-field lab \
        --report - -o texts --overwrite"
    check "no report" grep -q '"labels"' text
fi
finish
