#!/usr/bin/env bash
# Runs that are stopped and go on: job.sh path/to/dpinfer [KILL_AT_LIBRARY]
# Without the library nothing is stopped.
library=${2:+$(readlink -f "$2")}
. "$(dirname "$0")/process_support.sh"
small_model
records 12 >r.jsonl
letters=(m.gguf r.jsonl --rho 1 -B 3 -t 1 -n 24)
job() { run run "${letters[@]}" --seed 5 -q "$@"; expect_rc 0; }
# n_charges LEDGER
n_charges() { "$dpinfer" ledger show "$1" --json | grep -c '"amount"'; }
year() { works ledger init year --dataset letters --epsilon 8 --delta 1e-5; }

# ---- The same texts, and what is there ----------------------------------------------------------
job; mv out unbroken
job --job j -o x.txt; expect_same x.txt unbroken
check "only the owner reads it" test "$(stat -c %a j j/tokens j/job.json | xargs)" = "700 600 600"
works resume j -o y.txt --report y.json; expect_same y.txt unbroken # nothing is left to draw
check "a report" grep -q '"complete": true' y.json
# A job that is over says so; nothing is read for that but its output.
mv r.jsonl gone
refuse 0 "the job is over: all of its texts are in $PWD/x.txt" resume j
refuse 0 "all of its texts are in $PWD/y.txt" resume j -o y.txt --report y.json
mv gone r.jsonl
refuse 2 "y.txt is there already" resume j -o y.txt --report y2.json
expect_none y2.json
echo more >>y.txt
refuse 2 "y.txt is there already" resume j -o y.txt
rm x.txt; works resume j; expect_same x.txt unbroken; expect_no_err "the job is over"
works resume j -o y.txt --overwrite; expect_same y.txt unbroken
mkdir elsewhere
(cd elsewhere && "$dpinfer" resume ../j -o z.txt >/dev/null 2>../err)
rc=$? last="resume from elsewhere"
expect_rc 0; expect_same elsewhere/z.txt unbroken
job --jsonl; mv out unbroken.jsonl
works resume j --jsonl -o -; expect_same out unbroken.jsonl
for every in 1 5 1000; do
    rm -rf e
    job --job e --journal-every "$every"; expect_same out unbroken
done

# ---- What is refused ----------------------------------------------------------------------------
refuse 2 "'dpinfer resume j' goes on with it" run "${letters[@]}" --job j
refuse 2 "--max-hours needs --job" run "${letters[@]}" --max-hours 1
refuse 2 "standard input cannot be read again" run "${letters[@]}" --job k --private-prompt-file -
refuse 2 "amin" run m.gguf r.jsonl --rho 1 --method amin --job k
refuse 2 "no DIR given" resume
refuse 1 "No such file" resume nothing
check "a folder that was made for nothing" test ! -e nothing -a ! -e k
mkdir empty; refuse 1 "no job has begun there" resume empty
job --job cut
# The last token goes: the job must go on.
size=$((4096 + 32 * $(tokens_of cut)))
dd if=/dev/zero of=cut/tokens bs=1 seek=$((size - 32)) count=32 conv=notrunc status=none
cp -r cut whole; cp m.gguf kept.gguf; cp r.jsonl kept.jsonl
sed -i 's/Record 7/Record 8/' r.jsonl
refuse 1 "the records are not those that it began with" resume cut
expect_no_err "Record"
head -n 11 kept.jsonl >r.jsonl
refuse 1 "parameters.data.n_units was 12 when it began, and is 11" resume cut
cp kept.jsonl r.jsonl
works make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 --type F32 \
    --seed 9 --overwrite -o m.gguf
refuse 1 "model[0].sha256 was" resume cut
cp kept.gguf m.gguf
best=$(sed -n 's/ *"isa": "\(.*\)",/\1/p' cut/job.json)
[ "$best" = ref ] ||
    refuse 1 "engine.isa was \"$best\" when it began, and is \"ref\"" resume cut --isa ref
sed -i 's/"rho", *"1"/&/; s/^   "1",$/   "2",/' cut/job.json
refuse 1 "its hash does not hold" resume cut
cp whole/job.json cut/job.json
head -c $((size - 32)) whole/tokens >cut/tokens; refuse 1 "its end is missing" resume cut
cp whole/tokens cut/tokens; flip_bit cut/tokens 4120; refuse 1 "a record has changed" resume cut
cp whole/tokens cut/tokens
works resume cut -t 2; expect_same out unbroken

# ---- Without --ledger: one of its own -----------------------------------------------------------
mkdir own && echo "of a process that was killed before the job began" >own/ledger
works run "${letters[@]}" -q --job own -o own.txt --report own.json
check "only the owner reads it" test "$(stat -c %a own/ledger)" = 600
check "one charge" test "$(n_charges own/ledger)" -eq 1
run ledger show own/ledger; expect_out "this job alone"; expect_out "runs left  0"
works verify own.json --ledger own/ledger
works resume own -o - --report own2.json; expect_same out own.txt
check "one charge" test "$(n_charges own/ledger)" -eq 1
for budget in "--epsilon 3" "--epsilon 5 --accountant br" "--epsilon 5 --accountant filter" \
    "--epsilon 5 --num 3 --subsample .5" "--rho 30"; do
    rm -rf own
    # shellcheck disable=SC2086 # arguments are words
    works run m.gguf r.jsonl $budget -B 3 -t 1 -n 4 -q --job own
    check "one charge of $budget" test "$(n_charges own/ledger)" -eq 1
done
(cd elsewhere && "$dpinfer" resume ../own >out 2>../err); rc=$? last="resume from elsewhere"
expect_rc 0; expect_same elsewhere/out out
mv own/ledger gone; refuse 1 "it was begun with a ledger" resume own
job --job seeded
check "what has no guarantee is in no ledger" test ! -e seeded/ledger

# ---- A disk that is full ------------------------------------------------------------------------
if mkdir small && mount -t tmpfs -o size=96k none small 2>/dev/null; then
    trap 'umount small 2>/dev/null; rm -rf "$dir"' EXIT
    full=(m.gguf r.jsonl --rho 1 -B 1 -t 1 -n 300 --seed 6 -q)
    works run "${full[@]}"; mv out full
    run run "${full[@]}" --job small/j; ended 1 "No space left" "dpinfer resume small/j"
    check "no text" test -s out
    check "what was seen is not in the text" cmp -s -n "$(wc -c <out)" out full
    mount -o remount,size=10m small
    works resume small/j; expect_same out full
    umount small
else
    echo "skipped: a full disk: no file system can be mounted"
fi

# ---- Hours that are over at once: the job begins, and has no token -------------------------------
job --pace none; mv out unpaced
run run "${letters[@]}" --seed 5 -q --pace none --job h --max-hours 1e-9 -o h.txt
ended 7 "dpinfer resume h"; check "a file of a run that is not over" test ! -e h.txt
run resume h --max-hours 1e-9; ended 7 "dpinfer resume h"
works resume h --max-hours 1; expect_same h.txt unpaced
# They are over while the pace is found: there is no job yet, or it goes on as it is.
run run "${letters[@]}" --seed 5 -q --job h2 --max-hours 1e-9 -o h2.txt
ended 7 "stopped before a record was read"
check "a job of a run that has not begun" test ! -e h2
[ -n "$library" ] || finish

# ---- Signals: it goes on ------------------------------------------------------------------------
# begin SIGNAL JOB ARGS: a run that gets the signal when some tokens are written.
begin() { at "$1" pwrite 20 run "${letters[@]}" --seed 5 -q --job "$2" "${@:3}"; }
for signal in TERM USR1 INT HUP QUIT KILL; do
    job=s$signal
    begin $signal "$job" -o "$job.txt" --report "$job.json"; expect_rc "$(code_of $signal)"
    check "a file of a run that is not over" test ! -e "$job.txt" -a ! -e "$job.json"
    case $signal in QUIT | KILL) ;; *)
        ended $rc "dpinfer resume $job" "stopped early"
        check "a temporary file" test "$(parts)" -eq 0 ;;
    esac
    n=$(tokens_of "$job")
    works resume "$job"; expect_same "$job.txt" unbroken
    check "tokens are drawn again" test "$n" -ge 5 -a "$n" -lt "$(tokens_of "$job")"
    check "a report" grep -q '"complete": true' "$job.json"
    # What a killed process of the job has left goes; of another one's it is told alone.
    expect_no_err ".part-"; check "a temporary file" test "$(parts)" -eq 0
done
begin KILL left -o left.txt; check "no temporary file" test "$(parts)" -eq 1
echo "of another run" >left.txt.part-aBcDeF
works resume left; expect_same left.txt unbroken
expect_err "left.txt.part-aBcDeF holds"; check "it is gone" test "$(parts)" -eq 1
rm left.txt.part-aBcDeF
begin TERM h3
run resume h3 --max-hours 1e-9; ended 7 "dpinfer resume h3"
SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 works resume h3; expect_same out unbroken
# Two that go on with one job: only one may.
begin STOP two
refuse 1 "another process goes on with this job" resume two
let_go
works resume two; expect_same out unbroken

# ---- Ledger: one charge -------------------------------------------------------------------------
year
at KILL pwrite 20 run "${letters[@]}" -q --job paid --ledger year; expect_rc 137
before=$(budget year charged)
cp paid/tokens seen
works resume paid --report paid.json
check "a charge" test "$before" != 0 -a "$(budget year charged)" = "$before"
expect_err "charged for this"; check "the charge" grep -q '"dataset": "letters"' paid.json
works verify paid.json
mv year other; year
refuse 1 "the ledger does not have its charge" resume paid
finish
