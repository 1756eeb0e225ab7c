#!/usr/bin/env bash
# kill -9 at random moments: nothing that was seen is lost, texts are those of a run that was never
# stopped, and the ledger has one charge for each job that began.
#   kill.sh path/to/dpinfer [N]   N kills, 30 without it
. "$(dirname "$0")/cli_support.sh"
most=${2:-30}
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

kinds=("--rho 1 -B 3" "--rho 1 -B 3 --parallel 3" "--rho 1 -B 2 --unit-field who"
    "--rho 1 -B 3 --accountant filter" "--epsilon 5 -B 3 --num 3 --adjacency add-remove"
    "--epsilon 5 -B 3 --num 3 --subsample .5" "--rho 1 -B 3 --journal-every 7")
kills=0 round=0
while [ "$kills" -lt "$most" ]; do
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
    last="${words[*]}"
    while :; do
        kill_after "$(seconds 0.3)" "${next[@]}"
        # What was seen before comes again, byte for byte, as far as this one came.
        n=$(wc -c <seen) m=$(wc -c <out)
        check "what was seen is lost" cmp -s -n "$((n < m ? n : m))" seen out
        [ "$n" -ge "$m" ] || cp out seen
        [ "$seeded" -eq 0 ] || check "not a text of the unbroken run" cmp -s -n "$m" out unbroken
        [ "$rc" -ne 0 ] || break
        kills=$((kills + 1))
        if [ "$rc" -ne 137 ]; then bad "$last: it ended by itself"; break; fi
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
finish
