#!/usr/bin/env bash
# Every command ends, with its result or with an error, where the machine gives little: address
# space, processes, files, processors, no /proc. limits.sh path/to/dpinfer SOURCE
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/cli_support.sh"
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
small_model
for i in 1 2 3; do echo "{\"text\": \"Record $i of Anna.\"}"; done >refs.jsonl
run run m.gguf refs.jsonl --rho 1 -n 4 -q --report ink.json
expect_rc 0

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
# clock stands outside of it.
limited() {
    local limit=$1 clock=(timeout -k 1 600)
    shift
    # shellcheck disable=SC2016
    case $limit in
    v*) "${clock[@]}" bash -c 'ulimit -v "$1"; shift; exec "$@"' - "${limit#v}" "$@" ;;
    n*) "${clock[@]}" bash -c 'ulimit -n "$1"; shift; exec "$@"' - "${limit#n}" "$@" ;;
    u*)
        [ "${other[0]:-}" != false ] || return 125
        "${clock[@]}" "${other[@]}" bash -c 'ulimit -u "$1"; shift; exec "$@"' - "${limit#u}" "$@"
        ;;
    c*) "${clock[@]}" taskset -c "${limit#c}" "$@" ;;
    proc)
        unshare -m true 2>/dev/null || return 125
        "${clock[@]}" unshare -m sh -c 'umount -l /proc && exec "$@"' - "$@"
        ;;
    esac
}

# try LIMIT NAME ARGS: what the program does under the limit: its result, as without one (NAME.out,
# where there is one), or an exit code of the README and a reason.
try() {
    local limit=$1 name=$2
    shift 2
    last="dpinfer $* under $limit"
    limited "$limit" "$dpinfer" "$@" >out 2>err </dev/null
    rc=$?
    case $rc in
    125) return ;;
    0) if [ -f "$name.out" ]; then expect_same out "$name.out"; else ok; fi ;;
    [1-6]) check "no reason" test -s err ;;
    *) # the shell's own code, where not even the program could be loaded
        if grep -q 'error while loading shared libraries\|Cannot allocate memory' err; then ok; else
            bad "$last: it did not end as the README says"
        fi
        ;;
    esac
}

# What each command is asked. Those whose output is the same each time leave it in NAME.out.
commands=(help version inspect tokenize logits run many exact account ledger resume verify
    quantize make plan
    pretrain training shard merge perturb attack infer certify certificate wards adapter
    eval vectors finetune generate evolve)
declare -A arguments=(
    [help]="run -h"
    [version]="--version"
    [inspect]="inspect $model --check"
    [tokenize]="tokenize $model"
    [logits]="logits m.gguf --tokens tokens -o -"
    [run]="run $model refs.jsonl --rho 1 -B 3 -n 4 --seed 1 -q"
    [many]="run $model $2/examples/refs/discharge --rho 1 -B 16 --num 1 -n 4 --seed 1 -q"
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
        --controls refs.jsonl --claimed-epsilon 1"
    [vectors]="eval p.f32 p.f32 --features --dim 4 --json"
    [verify]="verify ink.json --model m.gguf"
    [quantize]="quantize m.gguf q.gguf Q8_0 -q"
    [make]="make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 -o made.gguf -q"
    [plan]="plan $model refs.jsonl --rho 1"
    [pretrain]="pretrain tiny.conf -q"
    [perturb]="perturb m.gguf refs.jsonl"
    [attack]="attack m.gguf refs.jsonl --mechanism custext+ --epsilon 6"
    [infer]="infer m.gguf refs.jsonl --remote-model x --dry-run"
    [finetune]="finetune m.gguf refs.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1 \
        --positions 16 -o made.lora -q --overwrite"
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
run run "$model" refs.jsonl --rho 1 -B 3 -n 4 --seed 1 -q --job job; expect_rc 0
run finetune m.gguf refs.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1 --positions 16 \
    -o kept.lora -q; expect_rc 0
run ledger init year.ledger --dataset a --epsilon 1 --delta 1e-6; expect_rc 0
{
    printf '<unk>\t0\n<s>\t0\n<|im_start|>\t0\n<|im_end|>\t0\n'
    for i in {0..255}; do printf '<0x%02X>\t0\n' "$i"; done
} >vocab
echo '{"user": "Who?", "assistant": "Anna."}' >pairs.jsonl
printf '%s\n' 'data = pairs.jsonl' 'vocab = vocab' 'checkpoint = made.checkpoint' 'n_layer = 1' \
    'dim = 16' 'n_head = 2' 'n_kv_head = 1' 'ffn = 16' 'context = 64' 'batch_tokens = 128' \
    'steps = 1' 'threads = 2' >tiny.conf
run plan "$model" refs.jsonl --rho 1 -B 1 -n 4 --seed 1 -q --job undrawn; expect_rc 0
cp -r undrawn drawn
for i in 0 1; do
    run run "$model" refs.jsonl --rho 1 -B 1 -n 4 --seed 1 -q --job drawn --shard $i/2; expect_rc 0
done
for name in help version inspect tokenize logits run many exact account ledger resume verify \
    training merge certify wards adapter evolve; do
    run ${arguments[$name]}
    [ "$name" = adapter ] && [ ! -s adapter.gguf ] || expect_rc 0
    mv out "$name.out"
done
for limit in v20000 v28000 v40000 v100000 v300000 n3 n4 n5 n8 u1 c0 proc; do
    for name in "${commands[@]}"; do
        [ "$name" != shard ] || { rm -rf shards; cp -r undrawn shards; } # each shard is drawn once
        try "$limit" "$name" ${arguments[$name]}
    done
done
# Those that take a second or more, where it matters.
for limit in v30000 u1; do
    try "$limit" bench bench m.gguf -B 1 -p 8 -n 4 -r 1 -t 2
done
try u1 audit audit m.gguf -t 2 --effort .1

# With little memory it is the command that says so: these have enough to begin.
last="the least address space for a text"
limited v68000 "$dpinfer" ${arguments[many]} -t 2 >out 2>err </dev/null
rc=$?
expect_rc 0
# FFTW ends the process where it gets no memory: it is asked for less than there is.
for size in 40000 45000 50000 55000 60000 70000 80000 90000 300000; do
    last="an accountant under v$size"
    limited v$size "$dpinfer" account --sigma 1 --sampling .01 --steps 1000 --delta 1e-5 >out 2>err
    rc=$?
    if [ "$size" -eq 300000 ]; then expect_rc 0; else expect_no_err "for a Fourier transform"; fi
done
# One processor's worth of threads is what one process may start.
if [ "${other[0]:-}" != false ]; then
    last="one process"
    limited u1 "$dpinfer" ${arguments[many]} >out 2>err </dev/null
    rc=$?
    expect_rc 0
    expect_same out many.out
    limited u1 "$dpinfer" ${arguments[exact]} >out 2>err </dev/null
    rc=$?
    expect_rc 0
    expect_same out exact.out
    for name in perturb attack infer certificate; do
        last="$name by one process"
        limited u1 "$dpinfer" ${arguments[$name]} >out 2>err </dev/null
        rc=$?
        expect_rc 0
    done
fi

# A server answers, or says why it cannot, and ends when it is told to.
mkfifo address
for limit in v28000 v60000 v300000 n4 n8 n20; do
    last="dpinfer serve under $limit"
    (ulimit "-${limit:0:1}" "${limit:1}" && exec "$dpinfer" serve m.gguf --port 0 </dev/null) \
        >address 2>err &
    pid=$!
    url=
    read -r url <address
    if [ -n "$url" ]; then
        curl -s --max-time 60 -o out "$url/health" 2>curl.err
        kill -TERM "$pid"
    fi
    wait "$pid"
    rc=$?
    case $rc in
    0) check "no answer" grep -q ok out ;;
    [1-6]) check "no reason" test -s err ;;
    *) check "it did not end as it should" grep -q \
        'error while loading shared libraries\|Cannot allocate memory' err ;;
    esac
done
finish
