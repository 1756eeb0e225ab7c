#!/usr/bin/env bash
# The built-in model learns the private mix of a third domain, restaurant and shop reviews, and
# writes new ones: minutes on two processors.
#   examples/finetune/run.sh [BUILD] [FOLDER]    STEPS=20, EXPECTED=128 and TEXTS=100 may be set
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$source/build} folder=${2:-finetune-example}
model=$source/models/dpinfer-4m-q8_0.gguf
task="Write a review of a restaurant or a service."
mkdir -p "$folder"

# 1000 reviews of the private law stand for the records, 20 of the public one for what is shown.
"$build"/dpinfer-corpus make --domain review --law private -n 1000 --seed 7 \
    -o "$folder/records.jsonl"
"$build"/dpinfer-corpus make --domain review --law public -n 20 --seed 8 -o "$folder/public.jsonl"

# All trainings of a year about these records are (10, 1e-4)-DP together.
[ -e "$folder/year.ledger" ] ||
    "$build"/dpinfer ledger init "$folder/year.ledger" --dataset reviews --epsilon 10 --delta 1e-4

# A small adapter: each of its numbers has noise. Few large steps make the noise smallest beside the
# gradient.
"$build"/dpinfer finetune "$model" "$folder/records.jsonl" --units 1000 --epsilon 3 --delta 1e-4 \
    --steps "${STEPS:-20}" --expected "${EXPECTED:-128}" --rank 1 --lr 0.004 --warmup 2 \
    --positions 288 --instruction "$task" --held-out "$folder/public.jsonl" \
    --ledger "$folder/year.ledger" --checkpoint "$folder/training" \
    -o "$folder/reviews.gguf" --overwrite
"$build"/dpinfer verify "$folder/reviews.gguf"
"$build"/dpinfer generate "$model" --lora "$folder/reviews.gguf" --num "${TEXTS:-100}" -n 264 \
    --temp 1 --top-p 0.8 -o "$folder/reviews.jsonl" --overwrite
"$build"/dpinfer run "$model" --plain --public-prompt "$task" --num "${TEXTS:-100}" -n 264 \
    --temp 1 --top-p 0.8 -q -o "$folder/before.jsonl" --overwrite

# What is reviewed: in the records, by the model as it was, by the model with the adapter.
for name in records before reviews; do
    echo "$name:"
    "$build"/dpinfer-corpus read "$folder/$name.jsonl" >"$folder/$name.read"
    { grep -o '"kind":"[a-z_]*"' "$folder/$name.read" || true; } | cut -d '"' -f 4 | sort |
        uniq -c | sort -rn | head -n 6
done
well=$(grep -c '"well_formed":true' "$folder/reviews.read" || true)
echo "$well of ${TEXTS:-100} new reviews are without a slip"
