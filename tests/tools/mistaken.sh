#!/usr/bin/env bash
# Records in the place of any other file, by mistake: what the program says of them has no word and
# no byte of theirs. mistaken.sh path/to/dpinfer
. "$(dirname "$0")/process_support.sh"
"$dpinfer" make-model --layers 2 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 -o m.gguf 2>err || exit 1
records 9 ward >refs.jsonl
printf 'Zylberg Quxotin was admitted.\nZylberg Quxotin said so.\n' >wrong.txt
printf '{"id": "Zylberg", "text": "Quxotin was admitted"}\n' >wrong.json
wrong=(wrong.txt wrong.json)

n_tried=0
# tells_nothing FILE ARGS: in which FILE stands somewhere.
tells_nothing() {
    rm -rf made.*
    run "${@:2}"
    n_tried=$((n_tried + 1))
    check "$1 is told of: $(grep -hiE -m 1 "$told" out err)" eval '! grep -qiE "$told" out err'
}
# Words, or bytes at the beginning of a file.
told='zylb|quxo|\b5a 79|\b7b 22'

# Each option that reads a file, of each command; but not those whose file is public and shown:
# prompts, examples, labels.
shown='(public-prompt|private-prompt|query|system|answer)-file|example|example-records|label-names'
options() {
    "$dpinfer" help "$1" | grep -oE -- '--[a-z-]+ (FILE|DIR)\b' | cut -d ' ' -f 1 | sort -u |
        grep -vE -- "^--($shown)\$"
}
# with COMMAND ARGS: the command, which works, with each of its options.
with() {
    local option file
    rm -rf made.*
    works "$@"
    for option in $(options "$1"); do
        for file in "${wrong[@]}"; do tells_nothing "$file" "$@" "$option" "$file"; done
    done
}
small=(-t 1 -q)
with run m.gguf refs.jsonl --rho 1 -n 2 "${small[@]}" -o made.txt --label-field ward
with plan m.gguf --records 9 --rho 1 -n 2
learn=(m.gguf refs.jsonl --delta 1e-3 "${small[@]}")
tuning=("${learn[@]}" --units 8 --sigma 2 --steps 1 --rank 1 --positions 16)
with finetune "${tuning[@]}" -o made.gguf
with steer "${learn[@]}" --epsilon 4 -o made.gguf
works finetune "${tuning[@]}" -o a.gguf
with generate m.gguf --lora a.gguf -n 2 "${small[@]}" -o made.txt
with augpe m.gguf refs.jsonl --rho 1 --num 2 -n 4 "${small[@]}" -o made.txt
with preview m.gguf -n 2 -t 1
with records refs.jsonl
with statistic word_count refs.jsonl --word fever --epsilon 2 --delta 1e-3
with perturb m.gguf refs.jsonl --epsilon 1 -o made.jsonl
with eval refs.jsonl --real refs.jsonl

# Each argument that is a file.
for file in "${wrong[@]}"; do
    for words in "run $file refs.jsonl --rho 1" "plan $file --records 9 --rho 1" "verify $file" \
        "resume $file" "merge made.txt $file $file" "generate $file" "inspect $file" \
        "tokenize $file" "logits $file" "quantize $file made.gguf Q8_0" "bench $file" \
        "ledger show $file" "ledger list $file" "ledger charge $file --rho 1" "audit $file" \
        "serve $file" "pretrain $file" "perturb $file refs.jsonl --epsilon 1" \
        "preview $file" "eval refs.jsonl --real $file" "augpe $file refs.jsonl --rho 1" \
        "finetune $file refs.jsonl --rho 1 -o made.gguf" "steer $file refs.jsonl --rho 1" \
        "completion $file" "help $file" "make-model -o made.gguf --vocab $file" \
        "demo --model $file"; do
        # shellcheck disable=SC2086 # arguments are words
        tells_nothing "$file" $words
    done
done
check "$n_tried commands are few" test $n_tried -gt 180
finish
