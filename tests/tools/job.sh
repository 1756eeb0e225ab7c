#!/usr/bin/env bash
# Runs that are stopped and go on: job.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
"$dpinfer" make-model --layers 2 --embd 64 --ff 128 --heads 4 --kv-heads 4 --vocab-size 400 \
    -o m.gguf 2>err || exit 1
for i in $(seq 12); do echo "{\"text\": \"Letter $i about a day in the garden.\"}"; done >r.jsonl
letters=(m.gguf r.jsonl --rho 1 -B 3 -t 1)
short() { run run "${letters[@]}" -n 24 "$@"; }

# ---- The same texts, and what is there ----------------------------------------------------------
short --seed 5 -q; expect_rc 0; mv out unbroken
short --seed 5 -q --job j -o x.txt; expect_rc 0; expect_same x.txt unbroken
check "only the owner reads it" \
    test "$(stat -c %a j)$(stat -c %a j/tokens)$(stat -c %a j/job.json)" = 700600600
run resume j -o y.txt --report y.json; expect_rc 0
expect_same y.txt unbroken # nothing is left to draw
check "a report" grep -q '"complete": true' y.json
refuse 2 "y.txt is there already" resume j -o y.txt
run resume j -o y.txt --overwrite; expect_rc 0; expect_same y.txt unbroken
mkdir elsewhere
(cd elsewhere && "$dpinfer" resume ../j -o z.txt >/dev/null 2>../err)
rc=$?; last="resume from elsewhere"
expect_rc 0; expect_same elsewhere/z.txt unbroken
short --seed 5 -q --jsonl; mv out unbroken.jsonl
run resume j --jsonl -o -; expect_rc 0; expect_same out unbroken.jsonl
for every in 1 5 1000; do
    rm -rf e
    short --seed 5 -q --job e --journal-every "$every"; expect_rc 0; expect_same out unbroken
done

# ---- What is refused ----------------------------------------------------------------------------
refuse 2 "'dpinfer resume j' goes on with it" run "${letters[@]}" -n 24 --job j
refuse 2 "--max-hours needs --job" run "${letters[@]}" --max-hours 1
refuse 2 "standard input cannot be read again" run "${letters[@]}" --job k --private-prompt-file -
refuse 2 "amin" run m.gguf r.jsonl --rho 1 --method amin --job k
refuse 2 "no DIR given" resume
refuse 1 "No such file" resume nothing
check "a folder that was made for nothing" test ! -e nothing -a ! -e k
mkdir empty; refuse 1 "no job has begun there" resume empty
short --seed 5 -q --job cut; expect_rc 0
# The last token goes: the job must go on.
size=$((4096 + 32 * $(od -An -v -tx8 -w32 -j4096 cut/tokens | grep -vcE '^( 0{16}){4}$')))
dd if=/dev/zero of=cut/tokens bs=1 seek=$((size - 32)) count=32 conv=notrunc status=none
cp -r cut whole
cp m.gguf kept.gguf; cp r.jsonl kept.jsonl
sed -i 's/Letter 7/Letter 8/' r.jsonl
refuse 1 "the records are not those that it began with" resume cut
expect_no_err "Letter"
cp kept.jsonl r.jsonl; head -n 11 kept.jsonl >r.jsonl
refuse 1 "parameters.n_records was 12 when it began, and is 11" resume cut
cp kept.jsonl r.jsonl
"$dpinfer" make-model --layers 2 --embd 64 --ff 128 --heads 4 --kv-heads 4 --vocab-size 400 \
    --seed 9 --overwrite \
    -o m.gguf 2>err
refuse 1 "model was" resume cut
cp kept.gguf m.gguf
best=$(sed -n 's/ *"isa": "\(.*\)",/\1/p' cut/job.json)
other=ref; [ "$best" != ref ] || other=
[ -z "$other" ] || refuse 1 "engine.isa was \"$best\" when it began, and is \"ref\"" resume cut \
    --isa ref
sed 's/"rho", *"1"/&/; s/^   "1",$/   "2",/' cut/job.json >job.json
cp job.json cut/job.json; refuse 1 "its hash does not hold" resume cut
cp whole/job.json cut/job.json
head -c "$size" whole/tokens >cut/tokens; head -c $((size - 32)) whole/tokens >cut/tokens
refuse 1 "its end is missing" resume cut
cp whole/tokens cut/tokens
flip_bit cut/tokens 4120
refuse 1 "a record has changed" resume cut
cp whole/tokens cut/tokens
run resume cut -t 2; expect_rc 0; expect_same out unbroken

# ---- Signals, hours: it goes on -----------------------------------------------------------------
# begin JOB ARGS: a long run in the background, until the job has tokens.
begin() {
    local job=$1
    shift
    "$dpinfer" run m.gguf r.jsonl --rho 1 -B 3 -t 1 -n 1500 --seed 6 -q --job "$job" "$@" \
        >out 2>err </dev/null &
    pid=$!
    while [ "$(tokens_of "$job")" -lt 5 ] && kill -0 "$pid" 2>/dev/null; do :; done
}
run run m.gguf r.jsonl --rho 1 -B 3 -t 1 -n 1500 --seed 6 -q; expect_rc 0; mv out long
run run m.gguf r.jsonl --rho 1 -B 3 -t 1 -n 1500 --seed 6 -q --pace none
expect_rc 0; mv out unpaced
for signal in TERM:143 USR1:138 INT:130 HUP:129 QUIT:131 KILL:137; do
    job=s${signal%:*}
    begin "$job" -o "$job.txt" --report "$job.json"
    kill "-${signal%:*}" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null; rc=$?; last="run, SIG${signal%:*}"
    expect_rc "${signal#*:}"
    check "a file of a run that is not over" test ! -e "$job.txt" -a ! -e "$job.json"
    case ${signal%:*} in QUIT | KILL) ;; *)
        expect_err "dpinfer resume $job"; expect_err "stopped early"
        check "a temporary file" test -z "$(find . -name "$job*.part-*")" ;;
    esac
    n=$(tokens_of "$job")
    run resume "$job"; expect_rc 0; expect_same "$job.txt" long
    check "tokens are drawn again" test "$n" -lt "$(tokens_of "$job")"
    check "a report" grep -q '"complete": true' "$job.json"
done
# Hours that are over at once: the job begins, and has no token.
hours=(m.gguf r.jsonl --rho 1 -B 3 -t 1 -n 1500 --seed 6 -q)
rm -rf h; run run "${hours[@]}" --pace none --job h --max-hours 1e-9 -o h.txt
expect_rc 7; expect_err "dpinfer resume h"; check "a file of a run that is not over" test ! -e h.txt
run resume h --max-hours 1e-9; expect_rc 7; expect_err "dpinfer resume h"
run resume h --max-hours 1; expect_rc 0; expect_same h.txt unpaced
# They are over while the pace is found: there is no job yet, or it goes on as it is.
run run "${hours[@]}" --job h2 --max-hours 1e-9 -o h2.txt; expect_rc 7
expect_err "stopped before a record was read"
check "a job of a run that has not begun" test ! -e h2
begin h3
kill -TERM "$pid"; wait "$pid" 2>/dev/null
run resume h3 --max-hours 1e-9; expect_rc 7; expect_err "dpinfer resume h3"
SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 run resume h3; expect_rc 0; expect_same out long
# Two that go on with one job: only one may.
begin two
kill -STOP "$pid"
refuse 1 "another process goes on with this job" resume two
kill -KILL "$pid"; kill -CONT "$pid"; wait "$pid" 2>/dev/null
run resume two; expect_rc 0; expect_same out long

# ---- Ledger: one charge -------------------------------------------------------------------------
"$dpinfer" ledger init year --dataset letters --epsilon 8 --delta 1e-5 >/dev/null 2>err
charged() { "$dpinfer" ledger budget year --json | sed -n 's/^ *"charged": \(.*[^,]\),*$/\1/p'; }
"$dpinfer" run m.gguf r.jsonl --rho .2 -B 3 -t 1 -n 1500 -q --job paid --ledger year >out 2>err &
pid=$!
while [ "$(tokens_of paid)" -lt 5 ] && kill -0 "$pid" 2>/dev/null; do :; done
kill -KILL "$pid"; wait "$pid" 2>/dev/null
before=$(charged)
cp paid/tokens seen
run resume paid --report paid.json; expect_rc 0
check "a charge" test "$before" != 0 -a "$(charged)" = "$before"
expect_err "charged for this"; check "the charge" grep -q '"ledger_dataset": "letters"' paid.json
run verify paid.json; expect_rc 0
mv year other
"$dpinfer" ledger init year --dataset letters --epsilon 8 --delta 1e-5 >/dev/null 2>err
refuse 1 "the ledger does not have its charge" resume paid
mv other year

# ---- Without --ledger: one of its own -----------------------------------------------------------
# n_charges LEDGER
n_charges() { "$dpinfer" ledger show "$1" --json | grep -c '"amount"'; }
mkdir own && echo "of a process that was killed before the job began" >own/ledger
run run "${letters[@]}" -n 24 -q --job own -o own.txt --report own.json; expect_rc 0
check "only the owner reads it" test "$(stat -c %a own/ledger)" = 600
check "one charge" test "$(n_charges own/ledger)" -eq 1
run ledger show own/ledger; expect_out "this job alone"; expect_out "runs left  0"
run verify own.json --ledger own/ledger; expect_rc 0
run resume own -o - --report own2.json; expect_rc 0; expect_same out own.txt
check "one charge" test "$(n_charges own/ledger)" -eq 1
for budget in "--epsilon 3" "--epsilon 5 --accountant br" "--epsilon 5 --accountant filter" \
    "--epsilon 5 --num 3 --subsample .5" "--rho 30"; do
    rm -rf own
    # shellcheck disable=SC2086 # arguments are words
    run run m.gguf r.jsonl $budget -B 3 -t 1 -n 4 -q --job own; expect_rc 0
    check "one charge of $budget" test "$(n_charges own/ledger)" -eq 1
done
(cd elsewhere && "$dpinfer" resume ../own >out 2>../err); rc=$?; last="resume from elsewhere"
expect_rc 0; expect_same elsewhere/out out
mv own/ledger gone; refuse 1 "it was begun with a ledger" resume own
short --seed 5 -q --job seeded; expect_rc 0
check "what has no guarantee is in no ledger" test ! -e seeded/ledger

# ---- A disk that is full ------------------------------------------------------------------------
if mkdir small && mount -t tmpfs -o size=96k none small 2>/dev/null; then
    trap 'umount small 2>/dev/null; rm -rf "$dir"' EXIT
    run run m.gguf r.jsonl --rho 1 -B 1 -t 1 -n 300 --seed 6 -q; expect_rc 0; mv out full
    run run m.gguf r.jsonl --rho 1 -B 1 -t 1 -n 300 --seed 6 -q --job small/j
    expect_rc 1; expect_err "No space left"; expect_err "dpinfer resume small/j"
    check "no text" test -s out
    check "what was seen is not in the text" cmp -s -n "$(wc -c <out)" out full
    mount -o remount,size=10m small
    run resume small/j; expect_rc 0; expect_same out full
    umount small
else
    echo "skipped: a full disk: no file system can be mounted"
fi
finish
