#!/usr/bin/env bash
# The first signal ends a command at once where it has nothing to finish: while it reads standard
# input, and while it computes. stop.sh path/to/dpinfer
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/process_support.sh"
small_model
small_vectors
echo '{"text": "the cat sat", "who": "a"}' >r.jsonl
printf '%s\n' '{"text": "the dog ran"}' >s.jsonl
mkfifo held
exec 9<>held
reads() { # it sleeps, and goes on sleeping
    for _ in 1 2 3 4 5; do state_is SZ || return; sleep .02; done
}
used() { # N: it has computed for so many hundredths of a second, or has ended
    state_is Z || [ "$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 12)" -ge "$1" ]
}
# stops SIGNAL reads|computes ARGS: the command waits for its input, or computes, and is sent the
# signal. What would go on computing for a second is killed, and so has not ended by the signal.
stops() {
    last="dpinfer ${*:3}, SIG$1"
    "$dpinfer" "${@:3}" <held >out 2>err 9<&- &
    pid=$!
    if [ "$2" = reads ]; then await reads; else await used 50; fi
    check "it had ended" state_is RSD
    kill "-$1" "$pid"
    if [ "$2" = reads ]; then await state_is Z; else await used 150; fi
    state_is Z || kill -KILL "$pid"
    it_ends
    expect_rc "$(code_of "$1")"
    check "a temporary file" test "$(parts)" -eq 0
}

tune="finetune m.gguf r.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1"
works $tune -o kept.lora -q
for signal in INT TERM HUP; do
    while read -r words; do stops $signal reads $words; done <<END
perturb --vectors vectors.txt -o text
infer m.gguf --remote-model x --dry-run -o text
attack --vectors vectors.txt
augpe m.gguf r.jsonl --num 2 --rho 1 --delta 1e-3 --public-prompt-file - -o text
$tune -o a.gguf --label-field who --label-names -
generate m.gguf --lora kept.lora --grammar - -o text
eval s.jsonl --real r.jsonl --grammar - -o text
run m.gguf r.jsonl --rho 1 --public-prompt-file - -o text
END
done

# A certificate of 4,000 words takes half a minute.
awk 'BEGIN { for (i = 0; i < 4000; i++) print "w" i, rand(), rand(), rand() }' >many.txt
echo '{"text": "w1 w2 w3"}' >words.jsonl
long=(--vectors many.txt -t 1)
stops TERM computes perturb "${long[@]}" --certify -o certificate
check "no file" test ! -e certificate
stops INT computes perturb "${long[@]}" words.jsonl -o text --report r.json
check "no report" test ! -e r.json
rm -f text
printf '{"text": "%s"}\n' "$(seq -s ' ' -f 'w%.0f' 0 3999)" >all.jsonl
stops HUP computes attack "${long[@]}" all.jsonl --mechanism rantext --epsilon 1,2,3,4,5,6
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 4000 -o many.gguf -q 2>err
# Its certificate is computed before anything leaves, and there is nothing to finish.
stops TERM computes infer many.gguf words.jsonl --remote-model x --remote http://127.0.0.1:1 -t 1 \
    -o text --report r.json
check "no report" test ! -e r.json
finish
