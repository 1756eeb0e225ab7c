#!/usr/bin/env bash
# Runs over the ranks of a real mpirun: mpi.sh path/to/dpinfer. Skipped (77) where there is no
# mpirun.
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
. "$(dirname "$0")/cli_support.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
small_model
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"who\": \"p$((i % 7))\", \"text\": \"Record number $i.\"}"
done >r.jsonl
base=(m.gguf r.jsonl -n 6 -t 1)
position=("${base[@]}" --rho .5 -B 3)
secret=("${base[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5)
# ranks N ARGS: as run, under mpirun.
ranks() {
    local n=$1
    shift
    last="mpirun -n $n dpinfer $*"
    timeout 300 mpirun -n "$n" --oversubscribe "$dpinfer" "$@" >out 2>err </dev/null
    rc=$?
}

# ---- The same texts for the same bits: one process, texts over ranks, references over ranks ------
# same NAME TEXTS REFERENCES ARGS: with so many ranks for texts, and for references
same() {
    local name=$1 texts=$2 references=$3
    shift 3
    run run "$@" --seed 7 -o "$name.jsonl"; expect_rc 0
    ranks "$texts" run "$@" --seed 7 -o "$name.texts.jsonl"; expect_rc 0; expect_empty_out
    expect_same "$name.jsonl" "$name.texts.jsonl"
    ranks "$references" run "$@" --seed 7 --spread -o "$name.spread.jsonl"; expect_rc 0
    expect_empty_out; expect_same "$name.jsonl" "$name.spread.jsonl"
}
same position 4 2 "${position[@]}"
same three 2 3 "${position[@]}" --parallel 1
same content 2 4 "${secret[@]}" --adjacency add-remove
same drawn 2 2 "${secret[@]}" --subsample .5
same units 2 2 "${position[@]}" --unit-field who
same labels 3 2 "${position[@]}" --label-field who --public-prompt '{label}:'
times() { awk -v n="$1" -v x="$2" 'BEGIN { printf "%.17g", n * x }'; }
printf 'p1\np2\np5\n' >names
same histogram 2 2 "${base[@]}" --rho 1 -B 3 --num 5 --adjacency add-remove --label-field who \
    --label-names names --histogram-rho .01
same zero 2 2 "${position[@]}" --adjacency zero-out --center
same filter 2 2 "${position[@]}" --accountant filter
same pace 2 2 "${position[@]}" --pace top --pace-theta .5
run run "${position[@]}" --seed 7 -o one.txt; expect_rc 0
ranks 3 run "${position[@]}" --seed 7 -o three.txt; expect_rc 0; expect_same one.txt three.txt
ranks 1 run "${position[@]}" --seed 7 -o alone.txt; expect_rc 0; expect_same one.txt alone.txt
# Amin's method has no sums that merge, but texts
run run "${position[@]}" --method amin --seed 7 -o amin.txt; expect_rc 0
ranks 2 run "${position[@]}" --method amin --seed 7 -o amin.2.txt; expect_rc 0
expect_same amin.txt amin.2.txt
ranks 2 run "${position[@]}" --method amin --seed 7 --spread; check "refused" test $rc -ne 0
expect_err "spread is allowed with a method whose sums merge"

# ---- One statement, one report, one charge ------------------------------------------------------
run ledger init year.ledger --dataset letters --epsilon 12 --delta 1e-5; expect_rc 0
run run "${position[@]}" --ledger year.ledger; expect_rc 0
run ledger budget year.ledger --json; one=$(field charged)
ranks 3 run "${position[@]}" --ledger year.ledger --report r.json -o text.txt; expect_rc 0
check "one statement" test "$(grep -c '^Privacy statement' err)" = 1
expect_err "charged for this"
run ledger budget year.ledger --json; near charged "$(times 2 "$one")" 1e-6
run verify r.json --model m.gguf; expect_rc 0
ranks 2 run "${position[@]}" --ledger year.ledger --spread -o spread.txt; expect_rc 0
run ledger budget year.ledger --json; near charged "$(times 3 "$one")" 1e-6
three=$(field charged)
ranks 2 run "${base[@]}" --rho 9 -B 3 --ledger year.ledger; expect_rc 6; expect_empty_out
expect_err "the budget of the dataset"; check "no statement" test -z "$(grep '^Privacy' err)"
run ledger init units.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit; expect_rc 0
ranks 2 run "${position[@]}" --unit-field who --ledger units.ledger; expect_rc 2
expect_err "whose scope is unit"

# ---- Ranks that differ: nothing is charged, nothing is drawn -------------------------------------
# differ MESSAGE PREFIX: rank 1 has other files, in its own folder
mkdir -p zero one
cp m.gguf r.jsonl zero; cp m.gguf r.jsonl one
cat >each.sh <<'EOF'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && cd zero || cd one
if [ "$OMPI_COMM_WORLD_RANK" != 0 ] && [ -n "$OTHER" ]; then set -- "$@" $OTHER; fi
exec "$DPINFER" "$@"
EOF
chmod +x each.sh
export DPINFER=$dpinfer
differ() {
    last="ranks that differ: $1"
    timeout 300 mpirun -n 2 --oversubscribe ./each.sh run "${position[@]}" \
        --report "$dir/differ.json" -o "$dir/differ.txt" --ledger "$dir/year.ledger" \
        >out 2>err </dev/null
    rc=$?
    check "refused" test $rc -ne 0
    expect_err "$1"; check "no text" test ! -e differ.txt
}
unchanged() {
    run ledger budget year.ledger --json; check "no charge" test "$(field charged)" = "$three"
}
OTHER="--center" differ "rank 1 has other options, or another model, than rank 0"; unchanged
OTHER="-c 64" differ "rank 1 has other prompts than rank 0"; unchanged
rm one/m.gguf
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --seed 9 --type F32 -o one/m.gguf 2>err
differ "rank 1 has other options, or another model, than rank 0"; unchanged
cp m.gguf one
rm one/r.jsonl; differ "No such file"; unchanged
# After the charge: to compare records is to read them.
sed '3s/number/numbers/' r.jsonl >one/r.jsonl
differ "rank 1 has other records than rank 0"; expect_no_err "umber"
run ledger budget year.ledger --json; check "the charge stays" test "$(field charged)" != "$three"

# ---- Training: one adapter, one charge, whatever the ranks ---------------------------------------
tune=(finetune m.gguf r.jsonl --units 12 --sigma 2 --delta 1e-3 --steps 4 --rank 2 --positions 32
    --expected 6 -t 1 -q)
run "${tune[@]}" --seed 7 -o one.gguf; expect_rc 0
for n in 2 4; do
    ranks $n "${tune[@]}" --seed 7 -o ranks.gguf --overwrite; expect_rc 0
    expect_same one.gguf ranks.gguf
    check "one statement" test "$(grep -c '^Privacy statement' err)" = 1
done
# people, and half of the steps by one process
people=("${tune[@]}" --seed 7 --unit-field who --max-per-unit 2)
run "${people[@]}" -o people.gguf; expect_rc 0
ranks 2 "${people[@]}" -o people.2.gguf; expect_rc 0; expect_same people.gguf people.2.gguf
ranks 2 "${people[@]}" -o half.gguf --checkpoint half --checkpoint-steps 2; expect_rc 0
run "${people[@]}" -o more.gguf --checkpoint half; expect_rc 0; expect_same people.gguf more.gguf
run ledger init tune.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit; expect_rc 0
ranks 2 "${tune[@]}" --unit-field who -o paid.gguf --ledger tune.ledger; expect_rc 0
run ledger show tune.ledger --json; check "one charge" test "$(grep -c '"method"' out)" = 1
run verify paid.gguf; expect_rc 0; expect_out "PRIVATE"
last="ranks that train on other records"
timeout 300 mpirun -n 2 --oversubscribe ./each.sh "${tune[@]}" --seed 7 -o "$dir/differ.gguf" \
    >out 2>err </dev/null
rc=$?
check "refused" test $rc -ne 0
expect_err "other records than rank 0"; check "no adapter" test ! -e differ.gguf

# ---- Without MPI, and options that do not go together -------------------------------------------
refuse 2 "--spread needs mpirun" run "${position[@]}" --spread
ranks 5 run "${position[@]}" --spread; check "more ranks than slots" test $rc -ne 0
expect_err "spread.count is 5, must be 1..3"

# Slow enough to be killed on its way.
"$dpinfer" make-model --layers 4 --embd 256 --ff 512 --heads 4 --kv-heads 4 --vocab-size 300 \
    --type F32 -o slow.gguf 2>err

# ---- A rank that dies ends the run; the statement comes, and the ledger keeps the charge ---------
cat >pid.sh <<'EOF'
#!/bin/sh
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$DPINFER" "$@"
EOF
chmod +x pid.sh
run ledger init last.ledger --dataset letters --epsilon 12 --delta 1e-5; expect_rc 0
# mpirun may end before the last rank that it has killed.
is_gone() {
    local end=$((SECONDS + 60))
    while ps -o stat= -p "$1" | grep -qv Z; do [ $SECONDS -lt $end ] || return 1; done
}
# After a rank was killed, mpirun (Open MPI 4.1.4) now and then waits for ever: it gets two minutes.
for mode in "" --spread; do
    for rank in 1 0; do
        run ledger budget last.ledger --json; before=$(field charged)
        rm -f pid.[0-9] dead.jsonl
        # shellcheck disable=SC2086
        timeout -s KILL 120 mpirun -n 2 --oversubscribe ./pid.sh run slow.gguf r.jsonl -t 1 \
            --rho .5 -B 3 -n 1000 $mode --parallel 1 --ledger last.ledger -o dead.jsonl \
            >dead.out 2>err </dev/null &
        pid=$!
        last="a rank that dies: $mode $rank"
        until "$dpinfer" ledger budget last.ledger --json >out 2>/dev/null &&
            [ "$(field charged)" != "$before" ] && [ -s pid.0 ] && [ -s pid.1 ]; do
            kill -0 $pid 2>/dev/null || break
        done
        kill -9 "$(cat pid.$rank)"
        wait $pid; rc=$?
        check "the run has failed" test $rc -ne 0
        for left in 0 1; do # a zombie is gone, whoever should have waited for it
            check "no rank is left" is_gone "$(cat pid.$left)"
        done
        [ $rank = 0 ] || expect_err "stopped early"
        run ledger budget last.ledger --json
        check "the charge stays" test "$(field charged)" != "$before"
    done
done

# ---- A job goes on, whichever rank has died and however many there are ---------------------------
# until_tokens N: the ranks of `mpirun` have so many tokens of the job, or are over
until_tokens() {
    until { [ -e job/tokens ] && [ "$(tokens_of job)" -ge "$1" ] && [ -s pid.0 ] &&
        [ -s pid.1 ]; } || ! kill -0 $pid 2>/dev/null; do
        :
    done
}
# dies RANK TOKENS N ARGS: N ranks, of which one is killed after so many tokens of the job. On a
# busy machine a run can be over before it is killed: then once more, from the job as it was.
dies() {
    local rank=$1 n=$3 tokens=$2 left try
    shift 3
    rm -rf before
    [ ! -e job ] || cp -r job before
    for try in 1 2 3 4 5 6 7 8 9; do
        rm -rf pid.[0-9] job job.jsonl
        [ ! -e before ] || cp -r before job
        timeout -s KILL 120 mpirun -n "$n" --oversubscribe ./pid.sh run "$@" --job job \
            -o job.jsonl >out 2>err </dev/null &
        pid=$!
        until_tokens "$tokens"
        kill -9 "$(cat "pid.$rank")" 2>/dev/null
        wait $pid; rc=$?
        [ -e job.jsonl ] || break
    done
    last="rank $rank of $n dies, try $try: $*"
    check "the run has failed" test $rc -ne 0
    check "no text of a job that is not over" test ! -e job.jsonl
    for left in pid.[0-9]; do # its lock is gone with it
        while ps -o stat= -p "$(cat "$left")" | grep -qv Z; do :; done
    done
}
long=(m.gguf r.jsonl -t 1 -n 400 --seed 7)
# goes_on FIRST SECOND ARGS: with so many ranks at first, and then
goes_on() {
    local first=$1 second=$2
    shift 2
    run run "${@/--spread/-q}" -o whole.jsonl --overwrite; expect_rc 0
    rm -rf job job.jsonl
    dies 1 40 "$first" "$@"; expect_err "the same command goes on with it"
    ranks 2 resume job; check "refused" test $rc -ne 0
    expect_err "under mpirun 'dpinfer run' goes on"
    dies 0 "$(($(tokens_of job) + 40))" "$second" "$@"
    ranks "$first" run "$@" --job job -o job.jsonl; expect_rc 0; expect_same whole.jsonl job.jsonl
}
goes_on 2 3 "${long[@]}" --rho .5 -B 3
goes_on 2 2 "${long[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5 --adjacency add-remove
goes_on 3 2 "${long[@]}" --rho .5 -B 3 --accountant filter --pace top --pace-theta .9 --spread
same slow 2 2 slow.gguf r.jsonl -t 1 -n 60 --epsilon 5 --delta 1e-3 -B 3 --num 5 --subsample .5
goes_on 2 2 "${long[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5 --subsample .5 --spread
# Where records have places, one process can go on with a job of ranks. Hours stop all ranks.
ranks 2 run "${long[@]}" --rho .5 -B 3 --pace none --job hours --max-hours 1e-9
check "stopped" test $rc -ne 0
expect_err "the same command goes on with it"
run run "${long[@]}" --rho .5 -B 3 --pace none; expect_rc 0; mv out whole
run resume hours --max-hours 1; expect_rc 0; expect_same out whole
# One charge
run ledger init job.ledger --dataset letters --epsilon 12 --delta 1e-5; expect_rc 0
rm -rf job job.jsonl
paid=(slow.gguf r.jsonl -t 1 -n 400 --rho .1 -B 1 --ledger job.ledger)
dies 1 10 2 "${paid[@]}"
run ledger budget job.ledger --json; one=$(field charged)
check "a charge" test "$one" != 0
ranks 3 run "${paid[@]}" --job job -o job.jsonl --report job.json; expect_rc 0
expect_err "charged for this"
run ledger budget job.ledger --json; check "one charge" test "$(field charged)" = "$one"
run verify job.json --output job.jsonl; expect_rc 0
finish
