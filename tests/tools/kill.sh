#!/usr/bin/env bash
# kill -9 at random moments: nothing that was seen is lost, texts are those of a run that was never
# stopped, and the ledger has one charge for each job that began.
#   kill.sh path/to/dpinfer [N [WHAT [SECONDS]]]   N kills, 30 without it, of WHAT: run, shards or
#                                                  ranks; no job is begun after so many SECONDS
what=${3:-run}
[ "$what" != ranks ] || command -v mpirun >/dev/null ||
    { echo "skipped: there is no mpirun (openmpi-bin)"; exit 77; }
. "$(dirname "$0")/cli_support.sh"
export DPINFER=$dpinfer OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
most=${2:-30} until=${4:-1000000}
"$dpinfer" make-model --layers 2 --embd 64 --ff 128 --heads 4 --kv-heads 4 --vocab-size 400 \
    -o m.gguf 2>err || exit 1
for i in $(seq 12); do
    echo "{\"text\": \"Letter $i about a day in the garden.\", \"who\": \"p$((i % 7))\"}"
done >r.jsonl
"$dpinfer" ledger init year --dataset letters --epsilon 8 --delta 1e-5 >/dev/null 2>err

# kill_after SECONDS ARGS: the program, killed then if it still runs.
kill_after() {
    local seconds=$1
    shift
    : >out # here: a process may be killed before it opens its output
    "$dpinfer" "$@" >out 2>err </dev/null &
    pid=$!
    sleep "$seconds"
    kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    rc=$?
}
# goes_on: whether there is a job to go on with.
goes_on() { if [ -e job/job.json ]; then next=(resume job); else next=("${words[@]}"); fi; }
# seconds MOST: a random part of it.
seconds() { awk -v r="$RANDOM" -v s="$1" 'BEGIN { printf "%.3f", s * r / 32768 }'; }

# enough: as many as wanted, or the time is over
enough() {
    check "fewer kills than $most" test "$kills" -ge "$most" -o "$SECONDS" -ge "$until"
}

# ---- Shards and ranks ---------------------------------------------------------------------------
cat >own.sh <<'EOF'
#!/bin/sh
echo $$ >pid.$OMPI_COMM_WORLD_RANK
exec "$DPINFER" "$@"
EOF
chmod +x own.sh
# look FILE: what the process before has shown in FILE, which is not whole yet, or is by now. It
# begins with what was seen of it earlier, or the other way round.
look() {
    local now n m
    now=$(ls "$1" "$1".part-* 2>/dev/null | head -n 1)
    [ -n "$now" ] || return
    n=$(wc -c <seen) m=$(wc -c <"$now")
    check "what was seen is lost" cmp -s -n "$((n < m ? n : m))" seen "$now"
    [ "$n" -ge "$m" ] || cp "$now" seen
}
# allow JOB: the process that was killed had drawn nothing, where JOB still has `drawn` tokens: the
# next one gets more time than `within` seconds, which are `least` at first. On a busy machine a
# start may take longer.
allow() {
    local n
    n=$(tokens_of "$1")
    [ "${n:-0}" -gt "$drawn" ] && within=$least ||
        within=$(awk -v s="$within" 'BEGIN { print 1.5 * s }')
    drawn=${n:-0}
}
# until_over FILE JOB COMMAND: again and again, killed at random moments, until it comes to its end.
until_over() {
    local file=$1 job=$2 left within=$least drawn=0
    shift 2
    : >seen
    while :; do
        rm -f pid.[0-9]
        [ "$what" = shards ] || rm -f "$file".part-*
        "$@" >out 2>err </dev/null &
        pid=$!
        if [ "$what" = ranks ]; then # one of them: mpirun stops the others
            until { [ -s pid.0 ] && [ -s pid.1 ]; } || ! kill -0 "$pid" 2>/dev/null; do
                sleep .01
            done
            sleep "$(seconds "$within")"
            kill -KILL "$(cat "pid.$((RANDOM % 2))")" 2>/dev/null
        else
            sleep "$(seconds "$within")"
            kill -KILL "$pid" 2>/dev/null
        fi
        wait "$pid" 2>/dev/null
        rc=$?
        for left in pid.[0-9]; do # the lock is gone with the process
            while [ -s "$left" ] && ps -o stat= -p "$(cat "$left")" | grep -qv Z; do :; done
        done
        look "$file"
        [ "$rc" -ne 0 ] || break
        # The rank that was not killed writes to a pipe that mpirun has closed, or is told to end.
        case $what:$rc in
        *:137 | ranks:141 | ranks:143) ;;
        *) bad "$last: it ended by itself"; break ;;
        esac
        kills=$((kills + 1))
        allow "$job"
    done
}
# in_parts ARGS: a job of two shards, or of two ranks; with bits that are known, or charged
in_parts() {
    local shard folder words command=(m.gguf r.jsonl -n 120 -t 1 -q "$@") bits=() pays=()
    rm -rf job* whole.jsonl
    if [ $((RANDOM % 2)) -eq 0 ]; then
        bits=(--seed "$round")
        words="${command[*]}" # for one process, which cannot spread
        # shellcheck disable=SC2086 # arguments are words
        run run ${words/ --spread/} "${bits[@]}" -o whole.jsonl; expect_rc 0
    else
        pays=(--ledger year --dataset "round $round")
        "$dpinfer" ledger init year --dataset "round $round" --epsilon 100 --delta 1e-5 \
            >/dev/null 2>err
    fi
    last="$what ${command[*]} ${bits[*]} ${pays[*]}"
    if [ "$what" = shards ]; then
        run plan "${command[@]}" "${bits[@]}" "${pays[@]}" --job job; expect_rc 0
        for shard in 0 1; do
            folder=job/shard-$shard-of-2
            until_over "$folder/texts.jsonl" "$folder" "$dpinfer" run "${command[@]}" \
                "${bits[@]}" --job job --shard "$shard/2"
        done
        run merge job.jsonl job; expect_rc 0
    else
        # Open MPI 4.1.4 itself: after a rank was killed, mpirun now and then waits for ever for a
        # lock of PMIx's, with no rank left (1 of some 50 times).
        until_over job.jsonl job timeout -s KILL 120 mpirun -n 2 --oversubscribe ./own.sh run \
            "${command[@]}" "${bits[@]}" "${pays[@]}" --job job -o job.jsonl --overwrite
    fi
    if [ ${#bits[@]} -gt 0 ]; then
        expect_same whole.jsonl job.jsonl
    else # ranks that were killed between the charge and the first record have paid for nothing
        n=$("$dpinfer" ledger budget year --dataset "round $round" --json |
            sed -n 's/^ *"n_charges": \(.*[^,]\),*$/\1/p')
        check "no charge" test "$n" -ge 1
        [ "$what" != shards ] || check "one charge" test "$n" -eq 1
    fi
}
if [ "$what" != run ]; then
    kinds=("--rho 1 -B 3" "--rho 1 -B 3 --accountant filter" "--rho 1 -B 2 --unit-field who"
        "--epsilon 5 -B 3 --num 3 --adjacency add-remove" "--epsilon 5 -B 3 --num 3 --subsample .5")
    [ "$what" = shards ] || kinds=("${kinds[0]}" "${kinds[1]} --spread" "${kinds[@]:2}")
    kills=0 round=0 least=.4
    while [ "$kills" -lt "$most" ] && [ "$SECONDS" -lt "$until" ]; do
        read -ra kind <<<"${kinds[round % ${#kinds[@]}]}"
        round=$((round + 1))
        in_parts "${kind[@]}"
    done
    echo "$kills kills, $round jobs"
    enough
    finish
fi

kinds=("--rho 1 -B 3" "--rho 1 -B 3 --parallel 3" "--rho 1 -B 2 --unit-field who"
    "--rho 1 -B 3 --accountant filter" "--epsilon 5 -B 3 --num 3 --adjacency add-remove"
    "--epsilon 5 -B 3 --num 3 --subsample .5" "--rho 1 -B 3 --journal-every 7")
kills=0 round=0 least=.15
while [ "$kills" -lt "$most" ] && [ "$SECONDS" -lt "$until" ]; do
    # shellcheck disable=SC2206 # arguments are words
    kind=(${kinds[round % ${#kinds[@]}]}) seeded=$((round / ${#kinds[@]} % 2 == 0))
    round=$((round + 1))
    words=(run m.gguf r.jsonl "${kind[@]}" -n 60 -t 1 -q)
    if [ "$seeded" -eq 1 ]; then
        words+=(--seed "$round")
        run "${words[@]}"; expect_rc 0; mv out unbroken
    else # the system's random bits, charged to a ledger
        "$dpinfer" ledger init year --dataset "round $round" --epsilon 100 --delta 1e-5 \
            >/dev/null 2>err
        words+=(--ledger year --dataset "round $round")
        : >unbroken
    fi
    rm -rf job
    words+=(--job job)
    next=("${words[@]}")
    : >seen
    within=$least drawn=0
    last="${words[*]}"
    while :; do
        kill_after "$(seconds "$within")" "${next[@]}"
        # What was seen before comes again, byte for byte, as far as this one came.
        n=$(wc -c <seen) m=$(wc -c <out)
        check "what was seen is lost" cmp -s -n "$((n < m ? n : m))" seen out
        [ "$n" -ge "$m" ] || cp out seen
        [ "$seeded" -eq 0 ] || check "not a text of the unbroken run" cmp -s -n "$m" out unbroken
        [ "$rc" -ne 0 ] || break
        kills=$((kills + 1))
        if [ "$rc" -ne 137 ]; then bad "$last: it ended by itself"; break; fi
        allow job
        goes_on
    done
    if [ "$seeded" -eq 1 ]; then
        expect_same out unbroken
    else
        charges=$("$dpinfer" ledger budget year --dataset "round $round" --json |
            sed -n 's/^ *"n_charges": \(.*[^,]\),*$/\1/p')
        # One that was killed between its charge and its first record has paid for nothing.
        check "no charge" test "$charges" -ge 1
    fi
done
echo "$kills kills, $round jobs"
enough
finish
