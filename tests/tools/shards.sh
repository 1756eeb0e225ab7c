#!/usr/bin/env bash
# One job that several processes draw, and `merge`: shards.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do
    echo "{\"who\": \"p$((i % 7))\", \"text\": \"Record number $i.\"}"
done >r.jsonl
base=(m.gguf r.jsonl -n 6 -t 1)
position=("${base[@]}" --rho .5 -B 2)
secret=("${base[@]}" --epsilon 5 --delta 1e-3 -B 2 --num 5)
# shards JOB N ARGS: all shards of a job, each with its own process.
shards() {
    local job=$1 n=$2 i
    shift 2
    for ((i = n - 1; i >= 0; i--)); do
        run run "$@" --job "$job" --shard "$i/$n"; expect_rc 0; expect_empty_out
    done
}

# ---- The same texts for the same bits: one process, several at a time, shards --------------------
# same NAME N ARGS
same() {
    local name=$1 n=$2
    shift 2
    run run "$@" --seed 7 --parallel 1 -o "$name.jsonl"; expect_rc 0
    run run "$@" --seed 7 --parallel 3 -o "$name.parallel.jsonl"; expect_rc 0
    expect_same "$name.jsonl" "$name.parallel.jsonl"
    run plan "$@" --seed 7 --job "$name"; expect_rc 0
    shards "$name" "$n" "$@" --seed 7
    run merge "$name.merged.jsonl" "$name" --report "$name.json"; expect_rc 0
    expect_same "$name.jsonl" "$name.merged.jsonl"
    run verify "$name.json"; expect_rc 0
}
same position 3 "${position[@]}"
same many 9 "${position[@]}" # more shards than texts
same content 2 "${secret[@]}" --adjacency add-remove
same drawn 2 "${secret[@]}" --subsample .5
same units 2 "${position[@]}" --unit-field who
run run "${position[@]}" --seed 7 -o one.txt; expect_rc 0
run merge two.txt position; expect_rc 0; expect_same one.txt two.txt
run merge - position; expect_rc 0; expect_same one.txt out

# ---- The folder ----------------------------------------------------------------------------------
check "the folder is the owner's" test "$(stat -c %a position)" = 700
check "the key is the owner's" test "$(stat -c %a position/key)" = 600
check "a key of 32 bytes" test "$(stat -c %s position/key)" = 32
expect_different position/key many/key
run plan "${position[@]}" --job position; expect_rc 2; expect_err "cannot make position"
refuse 2 "--job needs REFS" plan m.gguf --records 12 --rho .5 -B 2 --job other
check "no folder" test ! -e other
run plan "${position[@]}" --job none/other; expect_rc 1; expect_err "cannot make none/other"

# ---- Without a seed: each record in one text, as the audit of releases sees it -------------------
run plan "${secret[@]}" --adjacency add-remove --job real; expect_rc 0
shards real 2 "${secret[@]}" --adjacency add-remove
run merge real.jsonl real --report real.json --report real.md; expect_rc 0
expect_lines 5 real.jsonl; expect_no_err "NOT PRIVATE"
check "the report is complete" grep -q '"complete": true' real.json
run verify real.json --model m.gguf --ledger real/ledger; expect_rc 0
run ledger show real/ledger; expect_rc 0; expect_out "this job alone"; expect_out "runs left  0"

# ---- A shard begins with the options, prompts, records and model of the job ----------------
run plan "${position[@]}" --job job; expect_rc 0
refuse 2 "--shard needs --job" run "${position[@]}" --shard 0/2
refuse 2 "is a job in shards, which needs --shard" run "${position[@]}" --job job
refuse 2 "allowed i/n" run "${position[@]}" --job job --shard 2/2
refuse 2 "allowed i/n" run "${position[@]}" --job job --shard 1
refuse 2 "allowed i/n" run "${position[@]}" --job job --shard 0/2x
refuse 2 "--output is not allowed" run "${position[@]}" --job job --shard 0/2 -o x.txt
refuse 2 "--report is not allowed" run "${position[@]}" --job job --shard 0/2 --report x.json
refuse 2 "--ledger is not allowed" run "${position[@]}" --job job --shard 0/2 --ledger x
refuse 2 "found 3, the job has 2" run "${base[@]}" --rho .5 -B 3 --job job --shard 0/2
refuse 2 "found 0.25, the job has 0.5" run "${base[@]}" --rho .25 -B 2 --job job --shard 0/2
refuse 2 "the prompts are not those of the job" \
    run "${position[@]}" --public-prompt "Something else" --job job --shard 0/2
refuse 2 "the prompts are not those of the job" run "${position[@]}" -c 64 --job job --shard 0/2
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --seed 9 \
    --type F32 -o other.gguf 2>err
refuse 2 "the model is not that of the job" \
    run other.gguf "${position[@]:1}" --job job --shard 0/2
cp r.jsonl kept.jsonl
sed -i '3s/number/numbers/' r.jsonl # one that the shard would not read
refuse 2 "the records are not those of the job" run "${position[@]}" --job job --shard 0/2
expect_no_err "umber"
cp kept.jsonl r.jsonl
check "nothing has begun" test ! -e job/count
shards job 2 "${position[@]}"
# A shard that is over is not drawn again.
cp -r job/shard-1-of-2 was
run run "${position[@]}" --job job --shard 1/2; expect_rc 0; expect_err "nothing is left to draw"
check "a shard that is over has changed" diff -r job/shard-1-of-2 was
refuse 2 "was begun with 2 shards, found 3" run "${position[@]}" --job job --shard 2/3
chmod 640 job/key
refuse 2 "others can read it" run "${position[@]}" --job job --shard 0/2
chmod 600 job/key

# ---- Slurm: IDs from any number on, in equal steps -----------------------------------------------
run plan "${position[@]}" --seed 7 --job slurm; expect_rc 0
for id in 10 12 14; do
    SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=10 \
        SLURM_ARRAY_TASK_MAX=14 \
        SLURM_ARRAY_TASK_STEP=2 run run "${position[@]}" --seed 7 --job slurm
    expect_rc 0
done
run merge slurm.jsonl slurm; expect_rc 0; expect_same position.jsonl slurm.jsonl
SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_COUNT=3 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7 \
    refuse 2 "in equal steps" run "${position[@]}" --seed 7 --job slurm # --array=1,3,7

# ---- What merge refuses --------------------------------------------------------------------------
refuse 2 "no OUT given" merge
refuse 2 "no DIR given" merge x.txt
refuse 1 "nowhere/key" merge x.txt nowhere
refuse 2 "is there already" merge one.txt position
run merge one.txt position --overwrite; expect_rc 0
refuse 2 "position" merge position/key position --overwrite
refuse 1 "are not the same job" merge x.txt position job
cp -r position copy
refuse 1 "shard 0/3 is there twice" merge x.txt position copy
rm -rf copy/shard-0-of-3 copy/shard-2-of-3
refuse 1 "2 of 3 shards are missing: 0/3 has not begun, 2/3 has not begun" merge x.txt copy
mkdir elsewhere && cp position/key position/shards.json position/count elsewhere
cp -r position/shard-0-of-3 position/shard-2-of-3 elsewhere
run merge both.jsonl copy elsewhere; expect_rc 0; expect_same position.jsonl both.jsonl
run merge part.jsonl copy --partial --report part.json; expect_rc 0
expect_lines 2 part.jsonl; expect_err "stopped early"
check "the report is not complete" grep -q '"complete": false' part.json
# texts, ends and claims of another hand, of another shard, of another key
spoil() { rm -rf copy && cp -r position copy && (cd copy && eval "$1"); }
spoil 'echo "{\"index\": 1, \"text\": \"mine\"}" >>shard-1-of-3/texts.jsonl'
refuse 1 "is not what the shard has written" merge x.txt copy
spoil 'rm -r shard-1-of-3; cp -r shard-0-of-3 shard-1-of-3'
refuse 1 "holds another shard than its name says" merge x.txt copy
spoil 'sed -i s/true/false/ shard-1-of-3/shard.json'
refuse 1 "it was changed, or has another key" merge x.txt copy
spoil 'sed -i "s/\"n_texts\": 6/\"n_texts\": 7/" shards.json'
refuse 1 "it was changed, or has another key" merge x.txt copy
spoil 'cp ../job/key key'
refuse 1 "it was changed, or has another key" merge x.txt copy
spoil 'rm -r shard-1-of-3; cp -r ../job/shard-1-of-2 shard-1-of-3'
refuse 1 "it was changed, or has another key" merge x.txt copy
spoil 'echo 4 >count'
refuse 1 "missing" merge x.txt copy
spoil 'rm shard-1-of-3/shard.json'
refuse 1 "1 of 3 shards are missing: 1/3 is not over" merge x.txt copy
check "no output" test ! -e x.txt

# ---- One charge for the whole job, before a record is read ---------------------------------------
run ledger init year.ledger --dataset letters --epsilon 8 --delta 1e-5; expect_rc 0
run run "${position[@]}" --ledger year.ledger; expect_rc 0
run ledger budget year.ledger --json; one=$(field charged)
run plan "${position[@]}" --job paid --ledger year.ledger; expect_rc 0
run ledger budget year.ledger --json; near charged "$(awk -v x="$one" 'BEGIN { print 2 * x }')" 1e-6
two=$(field charged)
shards paid 3 "${position[@]}"
expect_err "charged for this"
run ledger budget year.ledger --json; check "no charge by shards" test "$(field charged)" = "$two"
run merge paid.txt paid --report paid.json; expect_rc 0; expect_err "charged for this"
run verify paid.json; expect_rc 0
check "the charge in the report" grep -q '"ledger_charge"' paid.json
run ledger init units.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit; expect_rc 0
run plan "${position[@]}" --unit-field who --job much --ledger units.ledger; expect_rc 2
expect_err "whose scope is unit"
run plan "${base[@]}" --rho 5 -B 2 --job much --ledger year.ledger; expect_rc 6
expect_err "is left"
check "no folder" test ! -e much
run ledger budget year.ledger --json; check "no charge" test "$(field charged)" = "$two"

# ---- A shard that is stopped goes on: the same texts, the same charge ----------------------------
# begin JOB SHARD ARGS: in the background, until it has shown something.
begin() {
    local folder=$1/shard-${2%/*}-of-${2#*/}
    local before now
    before=$(echo "$folder"/texts.jsonl.part-*) # of a process that was killed
    "$dpinfer" run "${@:3}" --job "$1" --shard "$2" >out 2>err </dev/null &
    pid=$!
    until now=$(echo "$folder"/texts.jsonl.part-*) && [ "$now" != "$before" ] && [ -s "$now" ] ||
        ! kill -0 $pid 2>/dev/null; do
        :
    done
}
# hits SIGNAL JOB SHARD ARGS: begins, and sends the signal. On a busy machine a shard can be over
# before: then once more, from the job as it was. All but STOP end the process, with the code rc.
hits() {
    local signal=$1 job=$2 state
    for _ in 1 2 3 4 5 6 7 8 9; do
        rm -rf before
        cp -r "$job" before
        begin "${@:2}"
        kill -"$signal" $pid 2>/dev/null
        if [ "$signal" = STOP ]; then
            until state=$(ps -o stat= -p $pid) && [[ $state == [TZ]* ]]; do :; done
            [[ $state == Z* ]] || return
        fi
        wait $pid 2>/dev/null; rc=$?
        [ $rc -eq 0 ] || return
        rm -rf "$job"
        mv before "$job"
    done
}
long=(m.gguf r.jsonl -t 1 -n 400)
# stopped NAME ARGS: shard 0 is killed and shard 1 stopped, more than once.
stopped() {
    local name=$1 signal shard
    shift
    run run "${long[@]}" "$@" --seed 7 -o "$name.whole.jsonl"; expect_rc 0
    run plan "${long[@]}" "$@" --seed 7 --job "$name"; expect_rc 0
    for signal in KILL TERM; do
        for shard in 0/2 1/2; do
            hits $signal "$name" $shard "${long[@]}" "$@" --seed 7; last="$name, $shard, $signal"
            if [ $signal = KILL ]; then expect_rc 137; else expect_rc 143; fi
        done
    done
    expect_err "the same command goes on with it"
    refuse 1 "2 of 2 shards are missing: 0/2 has stopped early, 1/2 has stopped early" merge x.txt \
        "$name"
    run merge some.jsonl "$name" --partial --overwrite
    expect_rc 0; check "a text" test -s some.jsonl
    shards "$name" 2 "${long[@]}" "$@" --seed 7
    check "what a killed process has left" test -z "$(find "$name" -name "*.part-*")"
    run merge "$name.jsonl" "$name" --report "$name.json"; expect_rc 0
    expect_same "$name.whole.jsonl" "$name.jsonl"
    run verify "$name.json"; expect_rc 0
}
stopped killed --rho .5 -B 2 --parallel 1
stopped killed.content --epsilon 5 --delta 1e-3 -B 2 --num 5 --adjacency add-remove
stopped killed.drawn --epsilon 5 --delta 1e-3 -B 2 --num 5 --subsample .5
stopped killed.filter --rho .5 -B 2 --accountant filter

# What was seen of a shard stays, for the one charge.
paid=("${long[@]}" --rho .1 -B 2)
run ledger init stopped.ledger --dataset letters --epsilon 8 --delta 1e-5; expect_rc 0
run plan "${paid[@]}" --job seen --ledger stopped.ledger; expect_rc 0
run ledger budget stopped.ledger --json; one=$(field charged)
hits TERM seen 0/1 "${paid[@]}"
run merge seen.jsonl seen --partial; expect_rc 0
run run "${paid[@]}" --job seen --shard 0/1 --max-hours 1e-9; expect_rc 7
expect_err "the same command goes on with it"
hits STOP seen 0/1 "${paid[@]}"
refuse 1 "another process goes on with this job" run "${paid[@]}" --job seen --shard 0/1
kill -KILL $pid; kill -CONT $pid; wait $pid 2>/dev/null
cp r.jsonl kept.jsonl; sed -i '3s/number/numbers/' r.jsonl
refuse 2 "the records are not those of the job" run "${paid[@]}" --job seen --shard 0/1
cp kept.jsonl r.jsonl
run run "${paid[@]}" --job seen --shard 0/1; expect_rc 0
run merge all.jsonl seen; expect_rc 0
begins() { # each whole text of the first file in its place in the second
    python3 - "$1" "$2" <<'EOF'
import json, sys
part, whole = ({t["index"]: t for t in map(json.loads, open(f))} for f in sys.argv[1:])
assert part and all(whole[i]["text"].startswith(t["text"].rstrip("\ufffd"))
                    for i, t in part.items())
EOF
}
check "what was seen is lost" begins seen.jsonl all.jsonl
run ledger budget stopped.ledger --json; check "one charge" test "$(field charged)" = "$one"
# Texts of a shard that is over, of which the disk has lost a part: the journal has them.
cp seen/shard-0-of-1/texts.jsonl whole.jsonl
head -c 100 whole.jsonl >seen/shard-0-of-1/texts.jsonl
refuse 1 "is not what the shard has written" merge x.txt seen
run run "${paid[@]}" --job seen --shard 0/1; expect_rc 0
expect_same whole.jsonl seen/shard-0-of-1/texts.jsonl
run merge again.jsonl seen; expect_rc 0; expect_same all.jsonl again.jsonl

# ---- Without a journal, as of amin, a shard begins once ------------------------------------------
amin=("${base[@]}" --rho .5 -B 2 --method amin)
run plan "${amin[@]}" --job amin; expect_rc 0
refuse 2 "cannot go on" run "${amin[@]}" --job amin --shard 0/2 --max-hours 1
shards amin 2 "${amin[@]}"
refuse 2 "shard 1/2 has begun before" run "${amin[@]}" --job amin --shard 1/2
run merge amin.jsonl amin; expect_rc 0
# Nothing drawn: the shard may begin again
run plan "${position[@]}" --job full; expect_rc 0
chmod 500 full && [ "$(id -u)" -ne 0 ] && refuse 1 "cannot make" run "${position[@]}" --job full \
    --shard 0/1
chmod 700 full
finish
