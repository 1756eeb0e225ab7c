#!/usr/bin/env bash
# What a record says is in no memory that is given back, and nobody else reads the process's memory.
#   secrets.sh path/to/dpinfer SOURCE SECRETS_LIBRARY
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/process_support.sh"
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
    expect_rc 0
}
# hides SECRET ARGS: no memory is given back with the secret in it, or with the tokens of a record.
hides() {
    watch "$1" "$ids" "${@:2}"
    check "memory was given back with a secret in it: $(head -n 3 log)" test ! -s log
}
# each PREFIX: for each line of stdin, the words PREFIX and LINE hide the secret.
each() {
    local words
    while read -r words; do
        rm -rf job
        hides "$secret" $1 $words
    done
}

# It sees what is there: the model's own keys, and the types of its byte tokens.
watch general.architecture "6 6 6 6" inspect "$model"
check "a text is not seen" grep -q '^text in a block' log
check "token ids are not seen" grep -q '^token ids in a block' log

drawn="-n 4 -t 1 -q"
for refs in refs.jsonl refs.csv refs; do
    each "run $model $refs $drawn" <<'END'
--rho 1
--rho 1 -B 2 --jsonl
--plain --reference 1
--rho 1 --private-prompt-file private.txt
--epsilon 3 --subsample .5 -B 2 --num 2
--epsilon 3 --subsample .5 -B 2 --num 2 --job job
--rho 1 --job job
END
    hides "$secret" finetune "$model" "$refs" --units 4 --delta 1e-3 --sigma 1 --steps 1 --rank 1 \
        --positions 96 -o made.gguf --overwrite -q -t 1
    hides "$secret" steer "$model" "$refs" --public-texts 4 --delta 1e-3 --sigma 1 \
        --positions 96 -o steer.gguf --overwrite -q -t 1
    hides "$secret" augpe "$model" "$refs" --rho 1 --delta 1e-3 --num 2 --rounds 2 $drawn
done
# Records in compressed files: zlib has a window of its own.
gzip -k refs.jsonl refs.csv
mkdir packed
for i in 1 2 3 4; do gzip -c "refs/$i.txt" >"packed/$i.txt.gz"; done
for refs in refs.jsonl.gz refs.csv.gz packed; do
    hides "$secret" run "$model" $refs --rho 1 $drawn -o packed.csv --overwrite
done
for refs in refs.jsonl refs; do # with an adapter: the one that was made
    hides "$secret" run "$model" $refs --lora made.gguf --rho 1 $drawn
done
# Labels: what records say, and the label of one that is none of those that are written.
hidden='Ypsilon-Ward-4711'
{ echo ward,text; sed "1d; s/^1,/w0,/; s/^2,/w1,/; s/^[34],/$hidden,/" refs.csv; } >wards.csv
printf 'w0\nw1\n' >names
drawn_2="--epsilon 3 --delta 1e-3 -B 2 --num 2 --adjacency add-remove $drawn"
for what in "$secret" "$hidden"; do
    for how in "" "--histogram-rho .1"; do
        hides "$what" run "$model" wards.csv --label-field ward --labels private \
            --label-names names $how $drawn_2
    done
done
hides "$secret" run "$model" wards.csv --label-field ward --rho 1 -B 2 $drawn
hides "$secret" run "$model" refs.csv --cluster 2 $drawn_2
# Shards, a ledger that knows units, and the units' own IDs.
id=Ypsilon-Brandt-4711
{ echo who,text; sed "1d; s/^[^,]*,/$id,/" refs.csv; } >units.csv
works ledger init year --dataset all --epsilon 90 --delta 1e-6 --scope unit
for what in "$secret" $id; do
    rm -rf shards
    for how in "plan $model units.csv --job shards" \
        "run $model units.csv --job shards --shard 0/1" "run $model units.csv --ledger year"; do
        hides "$what" $how --rho 1 $drawn --unit-field who
    done
done
printf '%s\nanother\n' $id >ids
for how in "" --json; do
    for what in "$secret" $id; do
        hides "$what" records units.csv --unit-field who --label-field who -m $model $how
    done
done
hides $id ledger charge year --rho .01 --unit-ids ids --payers payers
expect_same ids payers
# Words that are replaced, and attacks on them; texts that are compared.
small_vectors
each "" <<END
perturb $model -t 1
perturb $model refs.jsonl --json -t 1
infer $model refs.jsonl --remote-model x --dry-run -t 1
attack $model refs.jsonl --mechanism custext+,exponential --epsilon 6 -t 1
attack $model refs.jsonl --vectors vectors.txt --mechanism custext+ --epsilon 6 -t 1
tokenize $model
END
each "eval refs.jsonl --real refs.jsonl -t 1" <<END
--dp-epsilon 10 --dp-delta .1
--train refs.jsonl --json --canaries refs.jsonl --controls refs.jsonl
--model $model --prompts refs.jsonl --control refs.jsonl
--json
END

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
    # Before its limit is set it has nothing to hide, and it may sleep while it reads a file.
    await grep -qs '^Max core file size  *0  *0 ' "/proc/$pid/limits"
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
