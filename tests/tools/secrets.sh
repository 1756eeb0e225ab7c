#!/usr/bin/env bash
# What a record says is in no memory that is given back, and nobody else reads the process's memory.
#   secrets.sh path/to/dpinfer SOURCE SECRETS_LIBRARY
. "$(dirname "$0")/cli_support.sh"
model=$(readlink -f "$2/models/dpinfer-4m-q8_0.gguf")
library=$(readlink -f "$3")
secret='Quxotin Zylberg'
mkdir refs
echo 'id,text' >refs.csv
for i in 1 2 3 4; do
    text="Patient $i: $secret was admitted, $secret said so."
    echo "$text" >"refs/$i.txt"
    echo "{\"id\": $i, \"text\": \"$text\"}" >>refs.jsonl
    echo "$i,\"$text\"" >>refs.csv
done
echo "Like $secret: {reference}" >private.txt
# Those of the secret's middle are the same whatever stands beside it.
ids=$(printf 'x %s x' "$secret" | "$dpinfer" tokenize "$model" | cut -d ' ' -f 4-9)

# watch SECRET IDS ARGS: a run whose freed memory is looked through; what was found is in `log`.
watch() {
    last="dpinfer ${*:3}"
    : >log
    DPI_SECRET=$1 DPI_SECRET_IDS=$2 DPI_SECRET_LOG=$PWD/log LD_PRELOAD=$library \
        "$dpinfer" "${@:3}" >out 2>err <private.txt
    rc=$?
}

# It sees what is there: the model's own keys, and the types of its byte tokens.
watch general.architecture "6 6 6 6" inspect "$model"; expect_rc 0
check "a text is not seen" grep -q '^text in a block' log
check "token ids are not seen" grep -q '^token ids in a block' log

for refs in refs.jsonl refs.csv refs; do
    for how in "--rho 1" "--rho 1 -B 2 --jsonl" "--plain --reference 1" \
        "--rho 1 --private-prompt-file private.txt" "--epsilon 3 --subsample .5 -B 2 --num 2" \
        "--epsilon 3 --subsample .5 -B 2 --num 2 --job job" "--rho 1 --job job"; do
        rm -rf job
        # shellcheck disable=SC2086
        watch "$secret" "$ids" run "$model" "$refs" $how -n 4 -t 1 -q; expect_rc 0
        check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
    done
done
# Records in compressed files: zlib has a window of its own.
gzip -k refs.jsonl refs.csv
mkdir packed
for i in 1 2 3 4; do gzip -c "refs/$i.txt" >"packed/$i.txt.gz"; done
for refs in refs.jsonl.gz refs.csv.gz packed; do
    watch "$secret" "$ids" run "$model" "$refs" --rho 1 -n 4 -t 1 -q -o packed.csv --overwrite
    expect_rc 0
    check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
done
for refs in refs.jsonl refs.csv refs; do
    watch "$secret" "$ids" finetune "$model" "$refs" --units 4 --delta 1e-3 --sigma 1 --steps 1 \
        --rank 1 --positions 96 -o made.gguf --overwrite -q -t 1; expect_rc 0
    check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
done
for refs in refs.jsonl refs.csv refs; do
    watch "$secret" "$ids" augpe "$model" "$refs" --rho 1 --delta 1e-3 --num 2 --rounds 2 -n 4 \
        -t 1 -q; expect_rc 0
    check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
done
for refs in refs.jsonl refs; do # with an adapter: the one that was made
    watch "$secret" "$ids" run "$model" "$refs" --lora made.gguf --rho 1 -n 4 -t 1 -q; expect_rc 0
    check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
done
# Labels: what records say, and the label of one that is none of those that are written.
hidden='Ypsilon-Ward-4711'
{ echo ward,text; sed "1d; s/^1,/w0,/; s/^2,/w1,/; s/^[34],/$hidden,/" refs.csv; } >wards.csv
printf 'w0\nw1\n' >names
private="--labels private --label-names names --epsilon 3 --delta 1e-3 -B 2 --num 2"
for what in "$secret" "$hidden"; do
    for how in "$private --adjacency add-remove" \
        "$private --adjacency add-remove --histogram-rho .1"; do
        # shellcheck disable=SC2086
        watch "$what" "$ids" run "$model" wards.csv --label-field ward $how -n 4 -t 1 -q
        expect_rc 0
        check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
    done
done
watch "$secret" "$ids" run "$model" wards.csv --label-field ward --rho 1 -B 2 -n 4 -t 1 -q
expect_rc 0
check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
watch "$secret" "$ids" run "$model" refs.csv --cluster 2 --epsilon 3 --delta 1e-3 -B 2 --num 2 \
    --adjacency add-remove -n 4 -t 1 -q; expect_rc 0
check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
# Shards, a ledger that knows units, and the units' own IDs.
{ echo who,text; sed '1d; s/^[^,]*,/Ypsilon-Brandt-4711,/' refs.csv; } >units.csv
run ledger init year --dataset all --epsilon 90 --delta 1e-6 --scope unit; expect_rc 0
for what in "$secret" Ypsilon-Brandt-4711; do
    rm -rf shards
    for how in "plan $model units.csv --job shards" \
        "run $model units.csv --job shards --shard 0/1" "run $model units.csv --ledger year"; do
        # shellcheck disable=SC2086
        watch "$what" "$ids" $how --rho 1 -n 4 -t 1 -q --unit-field who; expect_rc 0
        check "memory was given back with a record in it: $(head -n 3 log)" test ! -s log
    done
done
printf 'Ypsilon-Brandt-4711\nanother\n' >ids
watch Ypsilon-Brandt-4711 "$ids" ledger charge year --rho .01 --unit-ids ids --payers payers
expect_rc 0; expect_same ids payers
check "memory was given back with an ID in it: $(head -n 3 log)" test ! -s log
# Words that are replaced, and attacks on them.
small_vectors
for how in "perturb $model" "perturb $model refs.jsonl --json" \
    "infer $model refs.jsonl --remote-model x --dry-run" \
    "attack $model refs.jsonl --mechanism custext+,exponential --epsilon 6" \
    "attack $model refs.jsonl --vectors vectors.txt --mechanism custext+ --epsilon 6"; do
    # shellcheck disable=SC2086
    watch "$secret" "$ids" $how -t 1; expect_rc 0
    check "memory was given back with a document in it: $(head -n 3 log)" test ! -s log
done
# Texts that are compared.
for how in "" "--train refs.jsonl --json --canaries refs.jsonl --controls refs.jsonl" \
    "--model $model --prompts refs.jsonl" "--dp-epsilon 10 --dp-delta .1"; do
    # shellcheck disable=SC2086
    watch "$secret" "$ids" eval refs.jsonl --real refs.jsonl $how -t 1; expect_rc 0
    check "memory was given back with a text in it: $(head -n 3 log)" test ! -s log
done
watch "$secret" "$ids" tokenize "$model"; expect_rc 0
check "memory was given back with a text in it: $(head -n 3 log)" test ! -s log

# What waits has no core dump, and its memory is the administrator's: a run for its prompt, a ledger
# for IDs, what shards have drawn for whoever reads it.
mkfifo prompt full
exec 9<>prompt 8<>full
head -c 65536 /dev/zero >&8
waits() { # OUT ARGS
    last="dpinfer ${*:2}"
    "$dpinfer" "${@:2}" <prompt >"$1" 2>err 9<&- 8<&- &
    pid=$!
    rc=0
    # Until it is there where it waits, or has ended.
    until grep -qs '^State:.S' "/proc/$pid/status" || ! kill -0 "$pid"; do :; done
    sleep .3
    check "core dumps are allowed" grep -q '^Max core file size  *0  *0 ' "/proc/$pid/limits"
    if [ "$(id -u)" -ne 0 ]; then
        check "its memory can be read" test ! -r "/proc/$pid/mem"
    fi
    kill "$pid"
    wait "$pid"
}
waits out run "$model" refs --rho 1 -n 4 -q --private-prompt-file -
waits out ledger charge year --rho .01 --unit-ids - --payers paying
waits full merge - shards
finish
