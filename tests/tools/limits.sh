#!/usr/bin/env bash
# Every command ends, with its result or with an error, where the machine gives little: address
# space, processes, files, processors, no /proc. limits.sh path/to/dpinfer SOURCE
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/process_support.sh"
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
small_model
records 3 who >refs.jsonl
works run m.gguf refs.jsonl --rho 1 -n 4 -q --report ink.json

# Another user where this one is root, whom the limit of processes does not hold.
other=()
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    other=(setpriv --reuid 54321 --clear-groups)
    chmod 777 "$dir"
    if ! "${other[@]}" test -r "$model" -a -x "$dpinfer"; then
        echo "skipped: limits of processes: another user cannot read $dpinfer and $model"
        other=(false)
    fi
fi

# limited LIMIT COMMAND...: the command under a limit. 125: this limit cannot be tried here. The
# clock stands outside of it. With exec=exec, in the background: signals reach the command.
limited() {
    local limit=$1 under=(bash -c 'ulimit "-$1" "$2"; shift 2; exec "$@"' - "${1:0:1}" "${1:1}")
    case $limit in
    u*)
        [ "${other[0]:-}" != false ] || return 125
        under=("${other[@]}" "${under[@]}") ;;
    c*) under=(taskset -c "${limit#c}") ;;
    proc)
        unshare -m true 2>/dev/null || return 125
        under=(unshare -m sh -c 'umount -l /proc && exec "$@"' -) ;;
    esac
    [ -z "${exec:-}" ] || exec "${under[@]}" "${@:2}"
    timeout -k 1 600 "${under[@]}" "${@:2}"
}

# try LIMIT NAME ARGS: what the program does under the limit: its result, as without one (NAME.out,
# where there is one), or an exit code of the README and a reason.
try() {
    under "$1" "${@:3}"
    case $rc in
    125) ;;
    0) if [ -f "$2.out" ]; then expect_same out "$2.out"; else ok; fi ;;
    *) in_order ;;
    esac
}
# under LIMIT ARGS: a run under a limit.
under() {
    last="dpinfer ${*:2} under $1"
    limited "$1" "$dpinfer" "${@:2}" >out 2>err </dev/null
    rc=$?
}
# in_order: an exit code of the README and a reason, or the shell's own code, where not even the
# program could be loaded.
in_order() {
    case $rc in
    [1-6]) check "no reason" test -s err ;;
    *) check "it did not end as the README says" grep -q \
        'error while loading shared libraries\|Cannot allocate memory' err ;;
    esac
}

# What each command is asked. Those whose output is the same each time leave it in NAME.out.
declare -A arguments=(
    [help]="run -h"
    [version]="--version"
    [inspect]="inspect $model --check"
    [tokenize]="tokenize $model"
    [logits]="logits m.gguf --tokens tokens -o -"
    [run]="run $model refs.jsonl --rho 1 -B 3 -n 4 --seed 1 -q"
    [many]="run $model $2/examples/refs/discharge --rho 1 -B 16 --num 1 -n 4 --seed 1 -q
        --max-ref-tokens 40"
    [exact]="logits $model --tokens tokens -o - --exact --isa ref"
    [account]="account --rho 0.5 --json"
    [ledger]="ledger show year.ledger --json"
    [resume]="resume job -q"
    [training]="account --sigma 2 --delta 1e-5 --sampling .05 --steps 20 --json"
    [shard]="run $model refs.jsonl --rho 1 -B 1 -n 4 --seed 1 -q --job shards --shard 0/2"
    [merge]="merge - drawn"
    [certify]="perturb --vectors vectors --certify --json -t 1"
    [certificate]="perturb --vectors vectors --certify --mechanism calibrated"
    [wards]="run m.gguf wards.csv.gz --epsilon 3 -B 2 --num 2 --adjacency add-remove -n 3 --seed 3
        -q --label-field ward --labels private --label-names names --histogram-rho .1"
    [adapter]="run m.gguf refs.jsonl --rho 1 -n 4 --seed 3 -q --lora adapter.gguf"
    [eval]="eval refs.jsonl --real refs.jsonl --train refs.jsonl --label-field who --model $model
        --prompts refs.jsonl --json-schema schema.json --canaries refs.jsonl
        --controls refs.jsonl --claimed-epsilon 1 --control refs.jsonl"
    [vectors]="eval p.f32 p.f32 --features --dim 4 --json"
    [verify]="verify ink.json --model m.gguf"
    [quantize]="quantize m.gguf q.gguf Q8_0 -q"
    [make]="make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 -o made.gguf -q"
    [records]="records refs.jsonl --unit-field who -m $model --json"
    [plan]="plan m.gguf refs.jsonl --rho 1"
    [pretrain]="pretrain say.conf -q --overwrite"
    [perturb]="perturb m.gguf refs.jsonl"
    [attack]="attack m.gguf refs.jsonl --mechanism custext+ --epsilon 6"
    [infer]="infer m.gguf refs.jsonl --remote-model x --dry-run"
    [finetune]="finetune m.gguf refs.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1 \
        --positions 16 -o made.lora -q --overwrite"
    [steer]="steer $model refs.jsonl --public refs.jsonl --delta 1e-3 --sigma 2 --positions 64 \
        -o made.steer -q --overwrite"
    [evolve]="augpe m.gguf refs.jsonl --rho 1 --delta 1e-3 --num 2 --rounds 2 -n 4 --seed 1 -q"
    [generate]="generate m.gguf --lora kept.lora --num 3 -n 6 --seed 1 --jsonl"
)
echo "1 2 3 4 5" >tokens
{ echo ward,text; for i in 1 2 3 4; do echo "w$((i % 2)),Record $i of Anna."; done; } |
    gzip >wards.csv.gz
printf 'w0\nw1\n' >names
echo '{"type": "object", "properties": {"who": {"type": "string"}}}' >schema.json
printf '%s\n' 'the 0 0' 'record 1 0' 'anna 1 .5' 'of 0 2' 'ran .25 2' >vectors
small_adapter || : >adapter.gguf # without python3 it is refused each time
head -c 640 /dev/zero | tr '\0' 'A' >p.f32
works run "$model" refs.jsonl --rho 1 -B 3 -n 4 --seed 1 -q --job job
works finetune m.gguf refs.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1 \
    --positions 16 \
    -o kept.lora -q
works ledger init year.ledger --dataset a --epsilon 1 --delta 1e-6
small_training made.checkpoint made.trained
works plan "$model" refs.jsonl --rho 1 -B 1 -n 4 --seed 1 -q --job undrawn
cp -r undrawn drawn
for i in 0 1; do
    works run "$model" refs.jsonl --rho 1 -B 1 -n 4 --seed 1 -q --job drawn --shard $i/2
done
for name in help version inspect tokenize logits run many exact account ledger resume verify \
    records training merge certify wards adapter evolve steer; do
    run ${arguments[$name]}
    [ "$name" = adapter ] && [ ! -s adapter.gguf ] || expect_rc 0
    mv out "$name.out"
done
for limit in v20000 v28000 v40000 v100000 v300000 n3 n4 n5 n8 u1 c0 proc; do
    for name in "${!arguments[@]}"; do
        [ "$name" != shard ] || { rm -rf shards; cp -r undrawn shards; } # each shard is drawn once
        try "$limit" "$name" ${arguments[$name]}
    done
done
# Those that take a second or more, where it matters.
for limit in v30000 u1; do
    try "$limit" bench bench m.gguf -B 1 -p 8 -n 4 -r 1 -t 2
done
# An audit takes long: it has begun well.
if [ "${other[0]:-}" != false ]; then
    last="an audit by one process"
    exec=yes limited u1 "$dpinfer" audit m.gguf -t 2 --effort .1 >out 2>err </dev/null &
    pid=$!
    await grep -q 'texts under filter' out
    kill -TERM "$pid" && it_ends
    check "no line passes" grep -q ' pass$' out
    check "a line fails" test "$(grep -c FAIL out)" -eq 0
fi

# With little memory it is the command that says so: these have enough to begin.
under v68000 ${arguments[many]/--max-ref-tokens 40} -t 2; expect_rc 0 # the least for a text
# FFTW ends the process where it gets no memory: it is asked for less than there is.
for size in 40000 45000 50000 55000 60000 70000 80000 90000 300000; do
    under v$size account --sigma 1 --sampling .01 --steps 1000 --delta 1e-5
    if [ "$size" -eq 300000 ]; then expect_rc 0; else expect_no_err "for a Fourier transform"; fi
done
# One processor's worth of threads is what one process may start.
if [ "${other[0]:-}" != false ]; then
    for name in many exact perturb attack infer certificate; do
        under u1 ${arguments[$name]}; expect_rc 0
        case $name in many | exact) expect_same out $name.out ;; esac
    done
fi

# A server answers, or says why it cannot, and ends when it is told to.
mkfifo address
for limit in v28000 v60000 v300000 n4 n8 n20; do
    last="dpinfer serve under $limit"
    exec=yes limited "$limit" "$dpinfer" serve m.gguf --port 0 >address 2>err </dev/null &
    pid=$!
    url=
    read -r url <address
    if [ -n "$url" ]; then
        curl -s --max-time 60 -o out "$url/health" 2>curl.err
        kill -TERM "$pid"
    fi
    it_ends
    if [ "$rc" -eq 0 ]; then check "no answer" grep -q ok out; else in_order; fi
done
finish
