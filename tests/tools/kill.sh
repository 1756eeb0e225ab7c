#!/usr/bin/env bash
# kill -9 at every kind of place: just before the first, a middle and the last call of each name
# that changes a file or waits for the disk. Nothing that was seen is lost, texts are those of a run
# that was never stopped, and the ledger has one charge.
#   kill.sh path/to/dpinfer KILL_AT_LIBRARY
library=$(readlink -f "$2") # from where the test is called
. "$(dirname "$0")/process_support.sh"
small_model
records 12 who >r.jsonl
works ledger init year --dataset letters --epsilon 8 --delta 1e-5
round=0 kills=0

# places ARGS: CALL and N of what a run does, the middle ones first.
places() {
    rm -f names
    DPI_KILL_NAMES=names LD_PRELOAD=$library "$dpinfer" "$@" >out 2>err </dev/null
    rc=$? last="dpinfer $*"
    expect_rc 0
    awk '{ n[$1]++ } END { for (name in n) {
        print 1, name, int((n[name] + 1) / 2); print 2, name, 1; print 2, name, n[name] } }' names |
        sort -u | awk '!seen[$2 $3]++' >places
}
# look FILE: what was seen before comes again in FILE, byte for byte, as far as this process came.
look() {
    local now n m
    now=$(ls "$1" "$1".part-* 2>/dev/null | head -n 1)
    [ -n "$now" ] || return
    n=$(wc -c <seen) m=$(wc -c <"$now")
    check "what was seen is lost" cmp -s -n "$((n < m ? n : m))" seen "$now"
    [ "$n" -ge "$m" ] || cp "$now" seen
}
# killed FILE CALL N COMMAND...: and what FILE shows then.
killed() {
    at KILL "$2" "$3" "${@:4}"
    look "$1"
    [ $rc -eq 137 ] || [ $rc -eq 0 ] || bad "$last: it ended by itself"
    kills=$((kills + (rc == 137)))
}
# A process of `command` is killed at a place, the next one on its way, and the third comes to the
# end. What they show is in a file. How often the disk is waited for depends on the disk, and how
# long a text is on random bits: the last time may not come.
goes_on() { # FILE CALL N
    : >seen
    killed "$@" "${command[@]}"
    [ "$rc" -eq 137 ] || [ "$2" = fdatasync ] || [ $how = charged ] || bad "$last: it is not killed"
    [ ! -e job/job.json ] || command=(resume job)
    killed "$1" pwrite 3 "${command[@]}"
    [ ! -e job/job.json ] || command=(resume job)
    works "${command[@]}"
    look "$1"
}
# begin: a new job of a kind: with bits that are known, where `how` is seeded, or charged.
begin() {
    round=$((round + 1))
    rm -rf job whole.jsonl out.jsonl
    words=(m.gguf r.jsonl -n 8 -t 1 -q "${kind[@]}") pays=()
    if [ $how = seeded ]; then
        words+=(--seed $round)
        works run "${words[@]}" -o whole.jsonl
    else
        works ledger init year --dataset "round $round" --epsilon 100 --delta 1e-5
        pays=(--ledger year --dataset "round $round")
    fi
    [ $what = run ] || works plan "${words[@]}" "${pays[@]}" --job job
}
# job_goes_on CALL N: a new job, whose processes are killed at that place.
job_goes_on() {
    begin
    if [ $what = run ]; then
        command=(run "${words[@]}" "${pays[@]}" --job job --jsonl)
        goes_on out "$@"
        mv out out.jsonl
    else
        for shard in 0 1; do
            command=(run "${words[@]}" --job job --shard $shard/2)
            goes_on job/shard-$shard-of-2/texts.jsonl "$@"
        done
        works merge out.jsonl job
    fi
    charges=$(budget year n_charges "round $round")
    case $what,$how in
    *,seeded) expect_same out.jsonl whole.jsonl ;;
    run,*) # one that was killed between its charge and its first record has paid for nothing
        check "no charge" test "$charges" -ge 1 ;;
    *) check "one charge" test "$charges" -eq 1 ;;
    esac
}

shapes="--ban e --no-repeat 2 --repeat-penalty 1.3"
kinds=("--rho 1 -B 3 $shapes" "--rho 1 -B 3 --parallel 3 $shapes" "--rho 1 -B 2 --unit-field who"
    "--rho 1 -B 3 --accountant filter" "--epsilon 5 -B 3 --num 4 --adjacency add-remove"
    "--epsilon 5 -B 3 --num 4 --subsample .5" "--rho 1 -B 3 --journal-every 7")
for what in run shards; do
    [ $what = run ] || unset 'kinds[6]' # which is an option of run alone
    for i in "${!kinds[@]}"; do
        read -ra kind <<<"${kinds[i]}"
        for how in seeded charged; do
            [ $what$i = run0 ] || [ $((i % 2)) -eq $((${#how} % 2)) ] || continue # in one way
            begin
            job=(--job job)
            if [ $what = run ]; then job+=("${pays[@]}"); else job+=(--shard 0/2); fi
            places run "${words[@]}" "${job[@]}"
            while read -r middle call n; do
                # Every place for one kind of run, then the middle ones, where the others write.
                [ $what$i = run0 ] || [ "$middle" -eq 1 ] || break
                [ "$i" -eq 0 ] || [[ $call == *write ]] || continue
                job_goes_on "$call" "$n"
            done <places
        done
    done
done
echo "$kills kills, $round jobs"
check "fewer kills than places" test $kills -ge 100
finish
