#!/usr/bin/env bash
# The first signal ends a command at once where it has nothing to finish: while it reads standard
# input, and while it computes. stop.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
small_vectors
echo '{"text": "the cat sat", "who": "a"}' >r.jsonl
printf '%s\n' '{"text": "the dog ran"}' >s.jsonl
mkfifo held
exec 9<>held
number() { case $1 in INT) echo 2 ;; TERM) echo 15 ;; HUP) echo 1 ;; esac }
# ends SIGNAL SECONDS ARGS: the command sleeps, or has computed for so long, and is sent the signal.
ends() {
    local signal=$1 wait=$2 begun
    shift 2
    last="dpinfer $*, SIG$signal"
    { # and the shell says nothing of the signal
        "$dpinfer" "$@" <held >out 2>err 9<&- &
        pid=$!
        if [ "$wait" = reads ]; then
            until grep -qs '^State:.S' "/proc/$pid/status" || ! kill -0 "$pid"; do :; done
            wait=.2
        fi
        sleep "$wait"
        check "it had ended" kill "-$signal" "$pid"
        begun=$SECONDS
        while kill -0 "$pid" && [ $((SECONDS - begun)) -lt 5 ]; do sleep .05; done
        kill -KILL "$pid"
        wait "$pid"
        rc=$?
    } 2>/dev/null
    expect_rc $((128 + $(number "$signal")))
    check "a temporary file" test -z "$(find . -name '*.part-*')"
}

tune="finetune m.gguf r.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1"
# shellcheck disable=SC2086 # arguments are words
run $tune -o kept.lora -q; expect_rc 0
for signal in INT TERM HUP; do
    ends $signal reads perturb --vectors vectors.txt -o text
    ends $signal reads infer m.gguf --remote-model x --dry-run -o text
    ends $signal reads attack --vectors vectors.txt
    ends $signal reads augpe m.gguf r.jsonl --num 2 --rho 1 --delta 1e-3 --public-prompt-file - \
        -o text
    # shellcheck disable=SC2086 # arguments are words
    ends $signal reads $tune -o a.gguf --label-field who --label-names -
    ends $signal reads generate m.gguf --lora kept.lora --grammar - -o text
    ends $signal reads eval s.jsonl --real r.jsonl --grammar - -o text
    ends $signal reads run m.gguf r.jsonl --rho 1 --public-prompt-file - -o text
done

# A certificate of 4,000 words takes half a minute.
awk 'BEGIN { for (i = 0; i < 4000; i++) print "w" i, rand(), rand(), rand() }' >many.txt
echo '{"text": "w1 w2 w3"}' >words.jsonl
long=(--vectors many.txt -t 1)
ends TERM 2 perturb "${long[@]}" --certify -o certificate
check "no file" test ! -e certificate
ends INT 2 perturb "${long[@]}" words.jsonl -o text --report r.json
check "no report" test ! -e r.json
rm -f text
printf '{"text": "%s"}\n' "$(seq -s ' ' -f 'w%.0f' 0 3999)" >all.jsonl
ends HUP 3 attack "${long[@]}" all.jsonl --mechanism rantext --epsilon 1,2,3,4,5,6
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 4000 -o many.gguf -q 2>err
# Its certificate is computed before anything leaves, and there is nothing to finish.
ends TERM 2 infer many.gguf words.jsonl --remote-model x --remote http://127.0.0.1:1 -t 1 -o text \
    --report r.json
check "no report" test ! -e r.json
finish
