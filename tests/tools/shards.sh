#!/usr/bin/env bash
# One job that several processes draw, and `merge`: shards.sh path/to/dpinfer [KILL_AT_LIBRARY]
# Without the library nothing is stopped.
library=${2:+$(readlink -f "$2")}
. "$(dirname "$0")/process_support.sh"
small_model
records 12 who >r.jsonl
base=(m.gguf r.jsonl -n 6 -t 1)
position=("${base[@]}" --rho .5 -B 2)
secret=("${base[@]}" --epsilon 5 --delta 1e-3 -B 2 --num 5)
# shards JOB N ARGS: all shards of a job, each with its own process.
shards() {
    local job=$1 n=$2 i
    shift 2
    for ((i = n - 1; i >= 0; i--)); do
        works run "$@" --job "$job" --shard "$i/$n"; expect_empty_out
    done
}

# ---- The same texts for the same bits: one process, several at a time, shards --------------------
# same NAME N ARGS
same() {
    local name=$1 n=$2
    shift 2
    works run "$@" --seed 7 --parallel 1 -o "$name.jsonl"
    works run "$@" --seed 7 --parallel 3 -o "$name.parallel.jsonl"
    expect_same "$name.jsonl" "$name.parallel.jsonl"
    works plan "$@" --seed 7 --job "$name"
    shards "$name" "$n" "$@" --seed 7
    works merge "$name.merged.jsonl" "$name" --report "$name.json"
    expect_same "$name.jsonl" "$name.merged.jsonl"
    works verify "$name.json"
}
same position 3 "${position[@]}"
same many 9 "${position[@]}" # more shards than texts
same content 2 "${secret[@]}" --adjacency add-remove
same drawn 2 "${secret[@]}" --subsample .5
same units 2 "${position[@]}" --unit-field who
works run "${position[@]}" --seed 7 -o one.txt
works merge two.txt position; expect_same one.txt two.txt
works merge - position; expect_same one.txt out

# ---- The folder ----------------------------------------------------------------------------------
check "the folder and the key are the owner's" \
    test "$(stat -c %a position position/key | xargs)" = "700 600"
check "a key of 32 bytes" test "$(stat -c %s position/key)" = 32
expect_different position/key many/key
fails_with 2 "position is there already" plan "${position[@]}" --job position
refuse 2 "--job needs REFS" plan m.gguf --records 12 --rho .5 -B 2 --job other
check "no folder" test ! -e other
fails_with 1 "cannot make none/other" plan "${position[@]}" --job none/other

# ---- Without a seed: each record in one text, as the audit of releases sees it -------------------
works plan "${secret[@]}" --adjacency add-remove --job real
shards real 2 "${secret[@]}" --adjacency add-remove
works merge real.jsonl real --report real.json --report real.md
expect_lines 5 real.jsonl; expect_no_err "NOT PRIVATE"
check "the report is complete" grep -q '"complete": true' real.json
works verify real.json --model m.gguf --ledger real/ledger
works ledger show real/ledger; expect_out "this job alone"; expect_out "runs left  0"

# ---- A shard begins with the options, prompts, records and model of the job ----------------
works plan "${position[@]}" --job job
refuse 2 "--shard needs --job" run "${position[@]}" --shard 0/2
refuse 2 "run: --max-per-unit: found 4, the job has null" \
    run "${position[@]}" --unit-field id --job job --shard 0/2
refuse 2 "run: -B: found 3, the job has 2" run "${base[@]}" --rho .5 -B 3 --job job --shard 0/2
refuse 2 "run: --rho: found 0.25, the job has 0.5" \
    run "${base[@]}" --rho .25 -B 2 --job job --shard 0/2
refuse 2 "run: --num: found 5, the job has 6" run "${position[@]}" --num 5 --job job --shard 0/2
refuse 2 "prompts: found " \
    run "${position[@]}" --public-prompt "Something else" --job job --shard 0/2
refusals 2 run "${position[@]}" --job job <<'END'
is a job in shards, which needs --shard |
allowed i/n | --shard 2/2
allowed i/n | --shard 1
allowed i/n | --shard 0/2x
--output is not allowed | --shard 0/2 -o x.txt
--report is not allowed | --shard 0/2 --report x.json
--ledger is not allowed | --shard 0/2 --ledger x
--meta is not allowed | --shard 0/2 --meta x
--sign is not allowed | --shard 0/2 --sign x
the prompts are not those of the job | --shard 0/2 -c 64
END
works make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 --type F32 \
    --seed 9 -o other.gguf
refuse 2 "the model is not that of the job" run other.gguf "${position[@]:1}" --job job --shard 0/2
cp r.jsonl kept.jsonl
sed -i '3s/Record/Records/' r.jsonl # one that the shard would not read
refuse 2 "the records are not those of the job" run "${position[@]}" --job job --shard 0/2
expect_no_err "Anna"
cp kept.jsonl r.jsonl
check "nothing has begun" test ! -e job/count
shards job 2 "${position[@]}"
# A shard that is over is not drawn again.
cp -r job/shard-1-of-2 was
works run "${position[@]}" --job job --shard 1/2; expect_err "nothing is left to draw"
check "a shard that is over has changed" diff -r job/shard-1-of-2 was
refuse 2 "was begun with 2 shards, found 3" run "${position[@]}" --job job --shard 2/3
chmod 640 job/key
refuse 2 "others can read it" run "${position[@]}" --job job --shard 0/2
chmod 600 job/key

# ---- Slurm: IDs from any number on, in equal steps -----------------------------------------------
works plan "${position[@]}" --seed 7 --job slurm
export SLURM_ARRAY_TASK_COUNT=3
for id in 10 12 14; do
    SLURM_ARRAY_TASK_ID=$id SLURM_ARRAY_TASK_MIN=10 SLURM_ARRAY_TASK_MAX=14 \
        SLURM_ARRAY_TASK_STEP=2 works run "${position[@]}" --seed 7 --job slurm
done
works merge slurm.jsonl slurm; expect_same position.jsonl slurm.jsonl
SLURM_ARRAY_TASK_ID=7 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=7 \
    refuse 2 "in equal steps" run "${position[@]}" --seed 7 --job slurm # --array=1,3,7
unset SLURM_ARRAY_TASK_COUNT

# ---- The report of all shards: with fields of the operator, and signed ---------------------------
echo '{"organisation": "Example Clinic"}' >meta.json
refusals 2 plan "${position[@]}" --job none <<'END'
'dpinfer merge' | --meta meta.json
'dpinfer merge' | --sign nokey
END
check "no folder" test ! -e none
works merge meant.jsonl position --report meant.json --meta meta.json
python_check "the fields of --meta" <<'P'
assert load("meant.json")["meta"] == {"organisation": "Example Clinic"}
P
works verify meant.json --output meant.jsonl
refusals 2 merge no.jsonl position <<'END'
--meta needs --report | --meta meta.json
--sign needs --report | --sign nokey
cannot read nowhere | --report no.json --meta nowhere
nokey | --report no.json --sign nokey
END
check "nothing is written" test ! -e no.jsonl -a ! -e no.json
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N '' -f signer
    works merge signed.jsonl position --report signed.json --sign signer
    works verify signed.json --key signer.pub
    refuse 2 "is not a file" merge no.jsonl position --report /dev/null --sign signer
else
    echo "skipped: ssh-keygen is not there"
fi

# ---- What merge refuses --------------------------------------------------------------------------
refusals 2 merge <<'END'
no OUT given |
no DIR given | x.txt
is there already | one.txt position
position | position/key position --overwrite
END
works merge one.txt position --overwrite
cp -r position copy
mkdir elsewhere; works run "${position[@]}" --job alone
refusals 1 merge x.txt <<'END'
nowhere/key | nowhere
elsewhere is not the folder of a job in shards | elsewhere
alone is a job of one process | alone
are not the same job | position job
shard 0/3 is there twice | position copy
END
refuse 2 "position is a job in shards" resume position
refuse 1 "the job is that of a shard" resume position/shard-0-of-3
rm -rf copy/shard-0-of-3 copy/shard-2-of-3
refuse 1 "2 of 3 shards are missing: 0/3 has not begun, 2/3 has not begun" merge x.txt copy
cp -r position/{key,shards.json,count,shard-0-of-3,shard-2-of-3} elsewhere
works merge both.jsonl copy elsewhere; expect_same position.jsonl both.jsonl
works merge part.jsonl copy --partial --report part.json
expect_lines 2 part.jsonl; expect_err "stopped early"
check "the report is not complete" grep -q '"complete": false' part.json
# Texts, ends and claims of another hand, of another shard, of another key.
while IFS='|' read -r text commands; do
    rm -rf copy; cp -r position copy
    (cd copy && eval "$commands")
    refuse 1 "${text% }" merge x.txt copy
done <<'END'
is not what the shard has written | echo '{"index": 1, "text": "mine"}' >>shard-1-of-3/texts.jsonl
holds another shard than its name says | rm -r shard-1-of-3; cp -r shard-0-of-3 shard-1-of-3
it was changed, or has another key | sed -i s/true/false/ shard-1-of-3/shard.json
it was changed, or has another key | sed -i 's/"runs": 6/"runs": 7/' shards.json
it was changed, or has another key | cp ../job/key key
it was changed, or has another key | rm -r shard-1-of-3; cp -r ../job/shard-1-of-2 shard-1-of-3
missing | echo 4 >count
1 of 3 shards are missing: 1/3 is not over | rm shard-1-of-3/shard.json
END
check "no output" test ! -e x.txt

# ---- One charge for the whole job, before a record is read ---------------------------------------
charged() { budget year.ledger charged; }
works ledger init year.ledger --dataset letters --epsilon 8 --delta 1e-5
works run "${position[@]}" --ledger year.ledger
one=$(charged)
works plan "${position[@]}" --job paid --ledger year.ledger
two=$(charged)
run ledger budget year.ledger --json; near charged "$(awk -v x="$one" 'BEGIN { print 2 * x }')" 1e-6
shards paid 3 "${position[@]}"; expect_err "charged for this"
check "no charge by shards" test "$(charged)" = "$two"
works merge paid.txt paid --report paid.json; expect_err "charged for this"
works verify paid.json
check "the charge in the report" grep -q '"charge": [0-9]' paid.json
works ledger init units.ledger --dataset letters --epsilon 8 --delta 1e-5 --scope unit
fails_with 2 "whose scope is unit" \
    plan "${position[@]}" --unit-field who --job much --ledger units.ledger
fails_with 6 "is left" plan "${base[@]}" --rho 5 -B 2 --job much --ledger year.ledger
check "no folder" test ! -e much
check "no charge" test "$(charged)" = "$two"

# ---- Without a journal, as of amin, a shard begins once ------------------------------------------
amin=("${base[@]}" --rho .5 -B 2 --method amin)
works plan "${amin[@]}" --job amin
refuse 2 "cannot go on" run "${amin[@]}" --job amin --shard 0/2 --max-hours 1
shards amin 2 "${amin[@]}"
refuse 2 "shard 1/2 has begun before" run "${amin[@]}" --job amin --shard 1/2
works merge amin.jsonl amin
# Nothing drawn: the shard may begin again
works plan "${position[@]}" --job full
chmod 500 full && [ "$(id -u)" -ne 0 ] &&
    refuse 1 "cannot make" run "${position[@]}" --job full --shard 0/1
chmod 700 full
[ -n "$library" ] || finish

# ---- A shard that is stopped goes on: the same texts, the same charge ----------------------------
long=(m.gguf r.jsonl -t 1 -n 24)
# hits SIGNAL JOB SHARD ARGS: the signal comes when some tokens are written.
hits() { at "$1" pwrite 16 run "${@:4}" --job "$2" --shard "$3"; }
# stopped NAME ARGS: both shards are killed, and then stopped.
stopped() {
    local name=$1 signal shard
    shift
    works run "${long[@]}" "$@" --seed 7 -o "$name.whole.jsonl"
    works plan "${long[@]}" "$@" --seed 7 --job "$name"
    for signal in KILL TERM; do
        for shard in 0/2 1/2; do
            hits $signal "$name" $shard "${long[@]}" "$@" --seed 7; expect_rc "$(code_of $signal)"
        done
    done
    expect_err "the same command goes on with it"
    refuse 1 "2 of 2 shards are missing: 0/2 has stopped early, 1/2 has stopped early" merge x.txt \
        "$name"
    works merge some.jsonl "$name" --partial --overwrite; check "a text" test -s some.jsonl
    shards "$name" 2 "${long[@]}" "$@" --seed 7
    check "what a killed process has left" test "$(parts)" -eq 0
    works merge "$name.jsonl" "$name" --report "$name.json"
    expect_same "$name.whole.jsonl" "$name.jsonl"
    works verify "$name.json"
}
stopped killed --rho .5 -B 2 --parallel 1
stopped killed.content --epsilon 5 --delta 1e-3 -B 2 --num 5 --adjacency add-remove
stopped killed.drawn --epsilon 5 --delta 1e-3 -B 2 --num 5 --subsample .5
stopped killed.filter --rho .5 -B 2 --accountant filter

# What was seen of a shard stays, for the one charge.
paid=("${long[@]}" --rho .1 -B 2)
works ledger init stopped.ledger --dataset letters --epsilon 8 --delta 1e-5
works plan "${paid[@]}" --job seen --ledger stopped.ledger
one=$(budget stopped.ledger charged)
hits TERM seen 0/1 "${paid[@]}"
works merge seen.jsonl seen --partial
run run "${paid[@]}" --job seen --shard 0/1 --max-hours 1e-9
ended 7 "the same command goes on with it"
hits STOP seen 0/1 "${paid[@]}"
refuse 1 "another process goes on with this job" run "${paid[@]}" --job seen --shard 0/1
let_go
sed -i '3s/Record/Records/' r.jsonl
refuse 2 "the records are not those of the job" run "${paid[@]}" --job seen --shard 0/1
cp kept.jsonl r.jsonl
works run "${paid[@]}" --job seen --shard 0/1
works merge all.jsonl seen
begins() { # each whole text of the first file in its place in the second
    python3 - "$1" "$2" <<'EOF'
import json, sys
part, whole = ({t["index"]: t for t in map(json.loads, open(f))} for f in sys.argv[1:])
assert part and all(whole[i]["text"].startswith(t["text"].rstrip("\ufffd"))
                    for i, t in part.items())
EOF
}
check "what was seen is lost" begins seen.jsonl all.jsonl
check "one charge" test "$(budget stopped.ledger charged)" = "$one"
# Texts of a shard that is over, of which the disk has lost a part: the journal has them.
cp seen/shard-0-of-1/texts.jsonl whole.jsonl
head -c 100 whole.jsonl >seen/shard-0-of-1/texts.jsonl
refuse 1 "is not what the shard has written" merge x.txt seen
works run "${paid[@]}" --job seen --shard 0/1
expect_same whole.jsonl seen/shard-0-of-1/texts.jsonl
works merge again.jsonl seen; expect_same all.jsonl again.jsonl
finish
