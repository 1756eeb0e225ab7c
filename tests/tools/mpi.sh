#!/usr/bin/env bash
# Runs over the ranks of a real mpirun: mpi.sh path/to/dpinfer KILL_AT_LIBRARY. Skipped (77) where
# there is no mpirun.
command -v mpirun >/dev/null || { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
DPI_STOPS=$(readlink -f "$2")
. "$(dirname "$0")/process_support.sh"
export DPI_STOPS DPINFER=$dpinfer OTHER=
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
small_model
records 12 who >r.jsonl
base=(m.gguf r.jsonl -n 6 -t 1)
position=("${base[@]}" --rho .5 -B 3)
secret=("${base[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5)
# over N COMMAND...: the command as each of N ranks.
over() {
    last="mpirun -n $*"
    timeout 600 mpirun -n "$1" --oversubscribe "${@:2}" >out 2>err </dev/null
    rc=$?
}
ranks() { over "$1" "$dpinfer" "${@:2}"; } # N ARGS: as run
do_ranks() { ranks "$@"; expect_rc 0; }
refused() { check "refused" test $rc -ne 0; ended $rc "$@"; } # TEXT...
statements() { grep -c '^Privacy statement' err; }

# ---- The same texts for the same bits: one process, texts over ranks, references over ranks ------
# same NAME TEXTS REFERENCES ARGS: with so many ranks for texts, and for references
same() {
    local name=$1 texts=$2 references=$3
    shift 3
    works run "$@" --seed 7 -o "$name.jsonl"
    do_ranks "$texts" run "$@" --seed 7 -o "$name.texts.jsonl"; expect_empty_out
    expect_same "$name.jsonl" "$name.texts.jsonl"
    do_ranks "$references" run "$@" --seed 7 --spread -o "$name.spread.jsonl"; expect_empty_out
    expect_same "$name.jsonl" "$name.spread.jsonl"
}
printf 'p1\np2\np5\n' >names
same position 4 2 "${position[@]}"
same three 2 3 "${position[@]}" --parallel 1
same content 2 4 "${secret[@]}" --adjacency add-remove
same drawn 2 2 "${secret[@]/#6/40}" --subsample .5
same units 2 2 "${position[@]}" --unit-field who
same labels 3 2 "${position[@]}" --label-field who --public-prompt '{label}:'
same histogram 2 2 "${base[@]}" --rho 1 -B 3 --num 5 --adjacency add-remove --label-field who \
    --label-names names --histogram-rho .01
same zero 2 2 "${position[@]}" --adjacency zero-out --center
same shaped 2 3 "${position[@]}" --ban e --no-repeat 2 --repeat-penalty 1.3 --logit-bias ' =4'
same filter 2 2 "${position[@]}" --accountant filter
same pace 2 2 "${position[@]}" --pace top --pace-theta .5
works run "${position[@]}" --seed 7 -o one.txt
for n in 3 1; do
    do_ranks $n run "${position[@]}" --seed 7 -o $n.txt; expect_same one.txt $n.txt
done
# Amin's method has no sums that merge, but texts
works run "${position[@]}" --method amin --seed 7 -o amin.txt
do_ranks 2 run "${position[@]}" --method amin --seed 7 -o amin.2.txt
expect_same amin.txt amin.2.txt
ranks 2 run "${position[@]}" --method amin --seed 7 --spread
refused "spread is allowed with a method whose sums merge"
# Of references that are spread each rank has all texts, and so those of the round before.
works run "${position[@]}" --released 1 --seed 7 -o rounds.txt
do_ranks 2 run "${position[@]}" --released 1 --seed 7 --spread -o rounds.spread.txt
expect_same rounds.txt rounds.spread.txt; expect_different rounds.txt one.txt
do_ranks 2 run "${position[@]}" --released 1 --seed 7 --spread --job rounds.job -o rounds.job.txt
expect_same rounds.txt rounds.job.txt
ranks 2 run "${position[@]}" --released 1 --seed 7
refused "allowed where one process draws all texts"

# ---- One statement, one report, one charge ------------------------------------------------------
charged() { budget year.ledger charged; }
# costs TIMES: the year has been charged for so many runs.
costs() {
    run ledger budget year.ledger --json
    near charged "$(awk -v n="$1" -v x="$one" 'BEGIN { printf "%.17g", n * x }')" 1e-6
}
works ledger init year.ledger --dataset letters --epsilon 12 --delta 1e-5
works run "${position[@]}" --ledger year.ledger
one=$(charged)
do_ranks 3 run "${position[@]}" --ledger year.ledger --report r.json -o text.txt
check "one statement" test "$(statements)" = 1
expect_err "charged for this"; costs 2
works verify r.json --model m.gguf
do_ranks 2 run "${position[@]}" --ledger year.ledger --spread -o spread.txt; costs 3
three=$(charged)
ranks 2 run "${base[@]}" --rho 9 -B 3 --ledger year.ledger; ended 6 "the budget of the dataset"
expect_empty_out; check "no statement" test "$(statements)" = 0
works ledger init units.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit
ranks 2 run "${position[@]}" --unit-field who --ledger units.ledger; ended 2 "whose scope is unit"

# ---- Ranks that differ: nothing is charged, nothing is drawn -------------------------------------
# Rank 1 has other options, and other files in its own folder.
mkdir zero one
cp m.gguf r.jsonl zero; cp m.gguf r.jsonl one
cat >each.sh <<'EOF'
#!/bin/sh
if [ "$OMPI_COMM_WORLD_RANK" = 0 ]; then cd zero; else cd one; set -- "$@" $OTHER; fi
exec "$DPINFER" "$@"
EOF
chmod +x each.sh
differ() { # MESSAGE [charged]
    over 2 ./each.sh run "${position[@]}" --report "$dir/differ.json" -o "$dir/differ.txt" \
        --ledger "$dir/year.ledger"
    refused "$1"; check "no text" test ! -e differ.txt
    [ $# -gt 1 ] || check "no charge" test "$(charged)" = "$three"
}
OTHER="--center" differ "rank 1 has other options, or another model, than rank 0"
OTHER="-c 64" differ "rank 1 has other prompts than rank 0"
works make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 --seed 9 \
    --type F32 -o one/m.gguf --overwrite
differ "rank 1 has other options, or another model, than rank 0"
cp m.gguf one
rm one/r.jsonl; differ "No such file"
# After the charge: to compare records is to read them.
sed '3s/Record/Records/' r.jsonl >one/r.jsonl
differ "rank 1 has other records than rank 0" charged; expect_no_err "Anna"
check "the charge stays" test "$(charged)" != "$three"

# ---- Training: one adapter, one charge, whatever the ranks ---------------------------------------
tune=(finetune m.gguf r.jsonl --units 12 --sigma 2 --delta 1e-3 --steps 4 --rank 2 --positions 32
    --expected 6 -t 1 -q)
works "${tune[@]}" --seed 7 -o one.gguf
for n in 2 4; do
    do_ranks $n "${tune[@]}" --seed 7 -o ranks.gguf --overwrite; expect_same one.gguf ranks.gguf
    check "one statement" test "$(statements)" = 1
done
# people, and half of the steps by one process
people=("${tune[@]}" --seed 7 --unit-field who --max-per-unit 2)
works "${people[@]}" -o people.gguf
do_ranks 2 "${people[@]}" -o people.2.gguf; expect_same people.gguf people.2.gguf
do_ranks 2 "${people[@]}" -o half.gguf --checkpoint half --checkpoint-steps 2
works "${people[@]}" -o more.gguf --checkpoint half; expect_same people.gguf more.gguf
works ledger init tune.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit
do_ranks 2 "${tune[@]}" --unit-field who -o paid.gguf --ledger tune.ledger
run ledger show tune.ledger --json; check "one charge" test "$(grep -c '"method"' out)" = 1
works verify paid.gguf; expect_out "PRIVATE"
over 2 ./each.sh "${tune[@]}" --seed 7 -o "$dir/differ.gguf"
refused "other records than rank 0"; check "no adapter" test ! -e differ.gguf

# ---- Without MPI, and options that do not go together -------------------------------------------
refuse 2 "--spread needs mpirun" run "${position[@]}" --spread
ranks 5 run "${position[@]}" --spread; refused "spread.count is 5, must be 1..3"

# ---- A rank that dies ends the run; the statement comes, and the ledger keeps the charge ---------
cat >stops.sh <<'EOF'
#!/bin/sh
echo $$ >pid.$OMPI_COMM_WORLD_RANK
[ "$OMPI_COMM_WORLD_RANK" != 0 ] || export LD_PRELOAD=$DPI_STOPS
exec "$DPINFER" "$@"
EOF
chmod +x stops.sh
rank_0_stands() { [ -s pid.0 ] && [ -s pid.$((n - 1)) ] && state_is T "$(cat pid.0)"; }
# dies RANK CALL N RANKS ARGS: a run of so many ranks, of which one is killed while rank 0 stands
# just before its N-th call of that name. After that mpirun (Open MPI 4.1.4) now and then waits for
# ever for a lock of PMIx's, with no rank left (1 of some 50 times): it gets two minutes. What rank
# 0 has to say takes milliseconds: mpirun kills it after ten seconds, which it sleeps.
dies() {
    local rank=$1 n=$4 left looks=0
    last="rank $rank of $n dies: ${*:5}"
    rm -f pid.[0-9] on
    OMPI_MCA_odls_base_sigkill_timeout=$((1 + 9 * rank)) DPI_KILL_SIGNAL=$(kill -l STOP) \
        DPI_KILL_CALL=$2 DPI_KILL_AT=$3 DPI_KILL_UNTIL=on \
        timeout -s KILL 120 mpirun -n "$n" --oversubscribe ./stops.sh "${@:5}" \
        >out 2>err </dev/null &
    pid=$!
    await rank_0_stands
    kill -KILL "$(cat pid.$rank)"
    # mpirun wakes rank 0 and sends SIGTERM: rank 0 stops again at its next call of that name, and
    # goes on when it has the signal, or has waited for the rank that is gone.
    while kill -0 "$pid" 2>/dev/null && [ $looks -lt 40 ] &&
        ! grep -qsE '^(Shd|Sig)Pnd:.*[4-7c-f]...$' "/proc/$(cat pid.0)/status"; do
        state_is T "$(cat pid.0)" || looks=$((looks + 1))
        sleep .05
    done
    : >on # without a stop
    kill -CONT "$(cat pid.0)" 2>/dev/null
    it_ends
    check "the run has failed" test $rc -ne 0
    for left in pid.[0-9]; do # its lock is gone with it; a zombie is gone
        pid=$(cat "$left")
        await state_is Z
    done
}
works ledger init last.ledger --dataset letters --epsilon 12 --delta 1e-5
for mode in --jsonl --spread; do
    for rank in 1 0; do
        before=$(budget last.ledger charged)
        rm -f dead.jsonl*
        dies $rank write 2 2 run m.gguf r.jsonl -t 1 --rho .5 -B 3 -n 40 $mode --parallel 1 \
            --ledger last.ledger -o dead.jsonl
        [ $rank = 0 ] || expect_err "stopped early"
        check "the charge stays" test "$(budget last.ledger charged)" != "$before"
    done
done

# ---- A job goes on, whichever rank has died and however many there are ---------------------------
long=(m.gguf r.jsonl -t 1 -n 40 --seed 7)
# job_dies RANK RANKS ARGS: when some tokens are written.
job_dies() {
    dies "$1" pwrite 8 "$2" run "${@:3}" --job job -o job.jsonl
    check "no text of a job that is not over" test ! -e job.jsonl
}
# goes_on FIRST SECOND ARGS: with so many ranks at first, and then
goes_on() {
    local first=$1 second=$2
    shift 2
    works run "${@/--spread/-q}" -o whole.jsonl --overwrite
    rm -rf job job.jsonl*
    job_dies 1 "$first" "$@"; expect_err "the same command goes on with it"
    ranks 2 resume job; refused "under mpirun 'dpinfer run' goes on"
    job_dies 0 "$second" "$@"
    do_ranks "$first" run "$@" --job job -o job.jsonl; expect_same whole.jsonl job.jsonl
}
goes_on 2 3 "${long[@]}" --rho .5 -B 3
goes_on 2 2 "${long[@]}" --rho .5 -B 2 --unit-field who
goes_on 2 2 "${long[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5 --adjacency add-remove
goes_on 3 2 "${long[@]}" --rho .5 -B 3 --accountant filter --pace top --pace-theta .9 --spread
goes_on 2 2 "${long[@]}" --epsilon 5 --delta 1e-3 -B 3 --num 5 --subsample .5 --spread
# Where records have places, one process can go on with a job of ranks. Hours stop all ranks.
ranks 2 run "${long[@]}" --rho .5 -B 3 --pace none --job hours --max-hours 1e-9
refused "the same command goes on with it"
works run "${long[@]}" --rho .5 -B 3 --pace none; mv out whole
works resume hours --max-hours 1; expect_same out whole
# One charge
works ledger init job.ledger --dataset letters --epsilon 12 --delta 1e-5
rm -rf job job.jsonl
paid=(m.gguf r.jsonl -t 1 -n 40 --rho .1 -B 1 --ledger job.ledger)
job_dies 1 2 "${paid[@]}"
one=$(budget job.ledger charged)
check "a charge" test "$one" != 0
do_ranks 3 run "${paid[@]}" --job job -o job.jsonl --report job.json; expect_err "charged for this"
check "one charge" test "$(budget job.ledger charged)" = "$one"
works verify job.json --output job.jsonl
finish
