#!/usr/bin/env bash
# Each call of the system and of the allocator that a command makes fails once, in a run of its own:
# no crash, no hang, an exit code of the README with a reason, and nothing half-written. And at each
# of them comes a signal.
#   faults.sh path/to/dpinfer FAULTS_LIBRARY [WHICH [WORDS]]
# WHICH: all, or (6 without it) how many for a command at most: of each function the first, a
# middle and the last place that no command before has seen fail. WORDS: a regular expression, of
# which commands.
library=$(readlink -f "$2") # from where the test is called
. "$(dirname "$0")/process_support.sh"
which=${3:-6}
words=${4:-}
small_model
records 4 >refs.jsonl
echo 'id,text' >refs.csv
echo who,text >units.csv
echo ward,text >wards.csv
mkdir refs
for i in 1 2 3 4; do
    text="Record $i of Anna."
    echo "$text" >"refs/$i.txt"
    echo "$i,\"$text\"" >>refs.csv
    echo "p$((i % 3)),$text" >>units.csv
    echo "w$((i % 2)),$text" >>wards.csv
done
echo 1 2 3 >tokens
gzip -k refs.jsonl
printf 'w0\nw1\n' >names
printf '%s\n' 'the 0 0' 'record 1 0' 'anna 1 .5' 'of 0 2' 'ran .25 2' >vectors
echo '{"organisation": "Hospital", "purpose": "teaching"}' >meta.json
sign=()
if command -v ssh-keygen >/dev/null; then
    ssh-keygen -q -t ed25519 -N "" -f key
    echo "signer $(cat key.pub)" >signers
    sign=(--sign key)
fi
ink=(run m.gguf refs.jsonl --rho 1 -n 4 -t 1 -q)
works "${ink[@]}" --report ink.json
works "${ink[@]}" --report signed.json "${sign[@]}" -o signed.txt

# The files of a command go to `made`; what is there after a run that succeeded is in `whole`.
mkdir made whole
begin_with=() # files and folders that are in `made` from the beginning
begin() {
    rm -rf made/*
    [ ${#begin_with[@]} -eq 0 ] || cp -r "${begin_with[@]}" made/
}
# watched ARGS: a run without a fault; its calls are in `calls`. False: it is none of $words.
watched() {
    [[ "$*" =~ $words ]] || return
    rm -f calls
    begin
    last="dpinfer $*"
    DPI_FAULT=0 DPI_FAULT_LOG=$PWD/calls LD_PRELOAD=$library "$dpinfer" "$@" \
        >whole.out 2>err <tokens
    rc=$?
    expect_rc 0
    check "no call was seen" test -s calls
}
# hit NUMBER SETTINGS ARGS: a run where the call of that number fails, or brings a signal.
hit() {
    begin
    last="dpinfer ${*:3}, $2 call $1: $(sed -n "${1}p" calls | cut -d ' ' -f 2-)"
    { # and the shell says nothing of the signal
        # shellcheck disable=SC2086 # settings are words
        timeout -k 1 600 env DPI_FAULT="$1" $2 LD_PRELOAD="$library" "$dpinfer" "${@:3}" \
            >out 2>err <tokens
        rc=$?
    } 2>/dev/null
}
# three_of: of lines "number kind" the numbers, but of a kind the first, the middle and the last,
# and of these so many as are wanted.
three_of() {
    awk '{ all[$2, ++n[$2]] = $1 } END { for (kind in n) {
        print all[kind, 1]; print all[kind, int((n[kind] + 1) / 2)]; print all[kind, n[kind]] } }' |
        sort -nu | awk -v most="$which" '{ all[NR] = $1 } END {
            step = most != "all" && NR > most ? NR / most : 1
            for (i = 1; i <= NR; i += step) print all[int(i)] }'
}
# failures: the numbers of `calls` that are to fail.
echo none >tried
failures() {
    if [ "$which" = writes ]; then
        awk '$2 == "write" { print $1 }' calls
        return
    fi
    if [ "$which" = all ]; then # the first and the last from each place
        awk '{ at = $2 $3 $4; last[at] = $1; if (!(at in first)) first[at] = $1 }
            END { for (at in first) print first[at] "\n" last[at] }' calls | sort -nu
        return
    fi
    awk 'NR == FNR { old[$1]; next } { $2 = $2 (NF > 3 ? $3 : ""); at = $2 ":" $NF }
        !(at in old) { old[at]; print $1, $2 }' tried calls | three_of >numbers
    awk 'NR == FNR { chosen[$1]; next } $1 in chosen { print $2 (NF > 3 ? $3 : "") ":" $NF }' \
        numbers calls >>tried
    cat numbers
}
# faults HOW ARGS: all runs of one command. HOW same: where it succeeds its result is that of a run
# without a fault; ends: it ends in order.
faults() {
    local how=$1 n
    shift
    rm -rf whole/*
    watched "$@" || return
    mv made/* whole/ 2>/dev/null
    for n in $(failures); do
        hit "$n" "" "$@"
        case $rc in
        0) # the command does without
            [ "$how" != same ] || expect_same out whole.out
            check "a file is missing or not whole" same_files ;;
        [1-7]) check "no reason" test -s err
            check "a file is there in part" whole_files ;;
        *) check "it crashed or hung" is_glibc ;;
        esac
    done
}
# The loader ends a thread that gets no memory for a library that was loaded late.
is_glibc() {
    [ "$rc" -eq 127 ] && grep -q '^cannot allocate memory for thread-local data: ABORT' err
}
# Whole lines of texts, after the program had to end: jansson has no way to go on without memory.
is_json_over() {
    grep -q '^dpinfer: out of memory for JSON' err && ! grep -qv "$evolved_text" "$1"
}
evolved_text='^{"index":[01],"text":".*"private":true}$'
both_texts() { [ "$(grep -c "$evolved_text" "$1")" = 2 ]; }
same_files() {
    local file
    for file in whole/*; do
        [ ! -e "$file" ] || [ -e "made/${file#whole/}" ] || return 1
    done
    whole_files
}
# What is there is what it should be: no temporary file that is not told of, nothing cut but a text.
# A report may be that of a run that stopped early, or lack the hash of a program that could not be
# read.
whole_files() {
    local file
    for file in made/*; do
        case $file in
        *.part-*) [ "$(sed -n "${n}s/.* unlink .*/unlink/p" calls)" ] || grep -qF "$file" err ||
            return 1 ;;
        made/text) # random without --seed
            [[ $last == *--seed* ]] || { test -s "$file" && continue; } || return 1
            cmp -s -n $(($(stat -c %s "$file") - 1)) "$file" whole/text || return 1 ;;
        made/texts.jsonl) # as far as it came
            cmp -s -n "$(stat -c %s "$file")" "$file" "whole/${file#made/}" &&
                [ "$(tail -c 1 "$file")" = '' ] || return 1 ;;
        'made/*' | made/*-journal) ;;
        made/year) ledger_is_whole "$file" || return 1 ;;
        made/job) job_is_whole || return 1 ;;
        made/shards) shards_are_whole || return 1 ;;
        *.csv) csv_rows "$file" || return 1 ;;
        made/tuned.lora) "$dpinfer" verify "$file" >/dev/null 2>&1 || return 1 ;; # random
        made/inferred.jsonl) # random; as far as it came
            [ "$rc" -ne 0 ] || [ "$(wc -l <"$file")" -eq 4 ] || return 1
            ! grep -qvE '^\{"index":[0-3],.*\}$' "$file" || return 1 ;;
        made/merged.gguf) "$dpinfer" inspect "$file" --check >/dev/null 2>&1 || return 1 ;; # random
        made/checkpoint) training_goes_on || return 1 ;;
        made/evolved.jsonl) # random; what the file has no room for is in `out`, as it is paid for
            both_texts "$file" || { [ "$rc" -ne 0 ] && both_texts out; } || is_json_over "$file" ||
                return 1 ;;
        made/words.jsonl) # random
            [ "$(grep -cE '^\{"index":[0-3],"text":"[^"]*"\}$' "$file")" -eq 4 ] || return 1 ;;
        made/*.sig) ssh-keygen -Y verify -q -n dpinfer-report -I signer -f signers -s "$file" \
            <"${file%.sig}" >/dev/null 2>&1 || return 1 ;;
        made/*.html) grep -q '^</html>' "$file" || return 1 ;;
        made/new) # it has the dataset, or can be given it
            "$dpinfer" ledger init "$file" --dataset all --epsilon 1 --delta 1e-6 >/dev/null 2>&1
            charged "$file" | grep -q '"name": "all"' || return 1 ;;
        *.json) "$dpinfer" verify "$file" >/dev/null 2>&1 || return 1 ;;
        *.md) [ "$(tail -n 1 "$file")" = "$(tail -n 1 "whole/${file#made/}")" ] || return 1 ;;
        *) cmp -s "$file" "whole/${file#made/}" || return 1 ;;
        esac
    done
}

faults same inspect m.gguf --check
faults same tokenize m.gguf
faults same logits m.gguf --tokens tokens -o -
faults same account --rho 1 --json
faults same account --sigma 4 --delta 1e-5 --steps 2 --json
faults ends perturb m.gguf refs.jsonl -t 1 -o made/text
faults ends attack m.gguf refs.jsonl -t 1 --mechanism custext+ --epsilon 6
faults ends infer m.gguf refs.jsonl -t 1 --remote-model x --dry-run
faults same verify ink.json --model m.gguf
faults same verify signed.json --output signed.txt ${sign:+--key key.pub}
faults same plan --suggest --units 200 --num 4 --epsilon 3
faults same make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 -o made/m.gguf -q
faults same quantize m.gguf made/q.gguf Q8_0 -t 1 -q
faults ends plan m.gguf refs.jsonl --rho 1 -t 1
faults same "${ink[@]}" --seed 3 --report made/r.json --report made/r.md
faults same "${ink[@]}" --seed 3 -o made/text
faults same run m.gguf refs.csv --rho 1 -B 2 -n 4 -t 1 --seed 3 -q
faults same "${ink[@]}" --seed 3 -o made/text --meta meta.json --report made/r.html \
    --report made/r.json "${sign[@]}"
faults same run m.gguf units.csv --rho 1 -B 2 -n 4 -t 1 --seed 3 -q --unit-field who
faults same run m.gguf refs.csv --epsilon 3 --subsample .5 -B 2 --num 2 -n 4 -t 1 --seed 3 -q
faults same run m.gguf refs --rho 1 -B 2 -n 4 -t 2 --seed 3 -q --jsonl
faults same run m.gguf refs.jsonl.gz --rho 1 -B 2 -n 4 -t 1 --seed 3 -q
faults same run m.gguf wards.csv --rho 1 -B 2 -n 3 -t 1 --seed 3 -q --label-field ward \
    -o made/rows.csv
private=(--epsilon 3 -B 2 --num 2 --adjacency add-remove -n 3 -t 1 --seed 3 -q)
faults same run m.gguf wards.csv "${private[@]}" --label-field ward --labels private \
    --label-names names --histogram-rho .1
faults same run m.gguf wards.csv "${private[@]}" --cluster 2
small_adapter && faults same "${ink[@]}" --seed 3 --lora adapter.gguf
tuning=(finetune m.gguf refs.jsonl --units 8 --delta 1e-3 --sigma 2 --steps 1 --rank 1
    --positions 16 -t 1 -q)
works "${tuning[@]}" -o tuned.lora
faults same "${tuning[@]}" -o made/tuned.lora
faults same generate m.gguf --lora tuned.lora --num 2 -n 4 --seed 1 -t 1 --jsonl
faults same generate m.gguf --lora tuned.lora --num 2 -n 4 --seed 1 -t 1 -o made/drawn.jsonl \
    --report made/r.json --report made/r.md
"$dpinfer" make-model --layers 2 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 -o deep.gguf -q || bad "no model of two layers"
faults same steer deep.gguf refs.jsonl --public refs.jsonl --delta 1e-3 --sigma 2 --seed 3 \
    --positions 32 -t 1 -q -o made/steer.gguf
evolve=(augpe m.gguf refs.jsonl --rho 1 --delta 1e-3 --num 2 --rounds 2 -n 4 -t 1 --seed 3 -q -o
    made/texts.jsonl --report made/r.json)
faults same "${evolve[@]}"
which=writes faults same "${evolve[@]}" # a text is there whole or not at all
faults ends eval refs.jsonl --real refs.jsonl -t 1
faults same records refs.jsonl --unit-field who --label-field who
faults same perturb --vectors vectors --certify --json
faults ends perturb --vectors vectors refs.jsonl -o made/words.jsonl
faults ends perturb --vectors vectors refs.jsonl --distances made/distances
faults ends attack --vectors vectors refs.jsonl --mechanism custext+ --epsilon 6 --no-language

# The texts of a model elsewhere.
if command -v python3 >/dev/null; then
    unset http_proxy HTTP_PROXY ALL_PROXY all_proxy
    remote_server remote
    exec 8>remote/end # it ends with this shell
    read -r port <remote/port
    faults ends infer m.gguf refs.jsonl --vectors vectors -t 1 --remote "http://127.0.0.1:$port" \
        --remote-model x -n 4 -c 480 --retry-wait .01 --json -o made/inferred.jsonl \
        --report made/r.json
fi

# served NUMBER [LOG]: a server whose call of that number fails, two requests, and its end.
mkfifo address
served() {
    local server url=
    timeout --foreground -k 1 300 env DPI_FAULT="$1" ${2:+DPI_FAULT_LOG="$2"} \
        LD_PRELOAD="$library" "$dpinfer" serve m.gguf -t 1 --port 0 >address 2>err &
    server=$!
    read -r url <address
    healthy=0
    if [ -n "$url" ]; then
        curl -s --max-time 60 -o out -H 'Content-Type: application/json' "$url/v1/completions" \
            -d '{"prompt": "a", "max_tokens": 2}' 2>curl.err
        for _ in 1 2; do # the call that fails may be that of one of these
            curl -sf --max-time 60 -o out "$url/health" 2>curl.err && healthy=1
        done
    fi
    kill -TERM "$server" 2>/dev/null
    wait "$server"
    rc=$?
}
if command -v curl >/dev/null && "$dpinfer" serve -h >/dev/null 2>&1 && [[ serve =~ $words ]]; then
    rm -f calls
    last="dpinfer serve"
    served 0 "$PWD/calls"
    expect_rc 0
    check "no answer" test $healthy -eq 1
    for n in $(failures); do
        last="dpinfer serve, call $n: $(sed -n "${n}p" calls | cut -d ' ' -f 2-)"
        served "$n"
        case $rc in
        0) check "it did not go on" test $healthy -eq 1 ;;
        [1-7]) check "no reason" test -s err ;;
        *) check "it crashed or hung" is_glibc ;;
        esac
    done
fi

# signals NUMBER TIMES HOW ARGS: so many signals at calls of a run, three of each kind. HOW lines:
# from the first text on; lines are whole, also on standard output, the report verifies, and no
# temporary file stays that is not told of; nothing: none stays, from the first call on.
came=0 # in all runs: how many were ended by a signal
signals() {
    local number=$1 times=$2 how=$3 from=1 n
    shift 3
    watched "$@" || return
    [ "$how" = nothing ] || # the first is of the report
        from=$(grep -n 'short write' calls | cut -d : -f 1 | sed -n 2p)
    for n in $(awk -v from="$from" -v all="$which" '$1 >= from {
        sub(/^.*(alloc|memalign|mmap|stat)$/, "memory", $2); print $1, all == "all" ? $1 : $2
        }' calls | three_of); do
        hit "$n" "DPI_FAULT_SIGNAL=$number DPI_FAULT_TIMES=$times" "$@"
        came=$((came + (rc == 128 + number)))
        check "not the signal's exit code" test $rc -eq 0 -o $rc -eq $((128 + number))
        if [ "$how" = nothing ]; then check "a temporary file stays" test "$(parts)" -eq 0
        else
            check "a line is cut" json_lines out
            check "a file is missing or not whole" signalled
        fi
    done
}
signalled() {
    local file
    [ -e made/r.json ] || return 1
    for file in made/*; do
        case $file in
        *.part-*) grep -qF "$file" err || return 1 ;;
        *.jsonl) json_lines "$file" || return 1 ;;
        *.csv) csv_rows "$file" || return 1 ;;
        *.json) "$dpinfer" verify "$file" >verified 2>&1 || return 1 ;;
        esac
    done
}
lines=(run m.gguf refs.jsonl --rho 1 -B 2 -n 3 -t 1 -q --report made/r.json)
signals 12 1 lines "${lines[@]}" -o made/text.jsonl
signals 15 2 lines "${lines[@]}" -o made/text.jsonl
signals 15 1 lines "${lines[@]}" -o made/text.jsonl
signals 12 1 lines "${lines[@]}" --jsonl
signals 12 1 lines "${lines[@]}" -o made/text.csv
# Others that write.
signals 12 1 nothing perturb --vectors vectors refs.jsonl -o made/words.jsonl --distances made/far
signals 12 1 nothing quantize m.gguf made/q.gguf Q8_0 -t 1 -q
signals 12 1 nothing logits m.gguf --tokens tokens -o made/logits
signals 12 1 nothing "${tuning[@]}" -o made/tuned.lora --checkpoint made/state
small_training made/state made/q.gguf
signals 12 1 nothing pretrain say.conf -q
signals 1 1 nothing pretrain say.conf -q

# A ledger, with which each run begins as it is in `year`: a run that fails has charged all or
# nothing, one that succeeds has charged.
charged() { "$dpinfer" ledger budget "$1" --json 2>/dev/null | grep -E '"(charged|name)"'; }
ledger_is_whole() { # made/year, after exit code $rc
    local now
    now=$(charged "$1") && [ -n "$now" ] || return 1
    [ "$now" = "$(charged whole/year)" ] || { [ "$rc" -ne 0 ] && [ "$now" = "$(charged year)" ]; }
}
works ledger init year --dataset all --epsilon 20 --delta 1e-6
begin_with=(year)
faults same ledger budget made/year
faults ends ledger init made/year --dataset more --epsilon 1 --delta 1e-6
faults ends ledger charge made/year --rho .1
faults ends ledger close made/year
faults ends "${ink[@]}" --ledger made/year
faults ends eval refs.jsonl --real refs.jsonl --dp-epsilon 3 -t 1 --ledger made/year
trains() { # FOLDER
    "${@:2}" "${tuning[@]}" --ledger "$1/year" --checkpoint "$1/checkpoint" -o "$1/tuned.lora" \
        --merge "$1/merged.gguf"
}
# With the checkpoint of a run that failed the same command comes to its end, for the same charge.
training_goes_on() {
    [ "$rc" -ne 0 ] || return 0
    rm -rf again
    cp -r made again
    rm -f again/tuned.lora again/merged.gguf again/*.part-*
    trains again "$dpinfer" >/dev/null 2>again.err &&
        [ "$(charged again/year)" = "$(charged whole/year)" ]
}
trains made faults ends
faults ends augpe m.gguf refs.jsonl --rho .1 --delta 1e-6 --num 2 --rounds 2 -n 4 -t 1 -q \
    --ledger made/year -o made/evolved.jsonl --report made/r.json
faults same ledger show made/year --json
works ledger init year --dataset each --epsilon 20 --delta 1e-6 --scope unit
faults ends run m.gguf units.csv --rho 1 -B 2 -n 4 -t 1 -q --unit-field who --ledger made/year \
    --dataset each
begin_with=()
faults ends ledger init made/new --dataset all --epsilon 1 --delta 1e-6

# A job: after any failure it goes on, to the texts that it would have had, or it has not begun.
job_is_whole() {
    [ "$rc" -ne 0 ] || return 0
    "$dpinfer" resume made/job -o went-on --overwrite >resumed.out 2>resumed.err
    case $? in
    0) [[ ${job[*]} != *--seed* ]] || cmp -s went-on whole/text ;;
    1) grep -q 'no job has begun there' resumed.err ;;
    *) return 1 ;;
    esac
}
job=(refs.csv --rho 1 -B 2 -n 4 -t 1 --seed 3 -q)
faults same run m.gguf "${job[@]}" --job made/job -o made/text
# One that was cut.
mkdir kept
works run m.gguf "${job[@]}" --job kept/job -o kept.text
size=$((4096 + 32 * $(tokens_of kept/job)))
dd if=/dev/zero of=kept/job/tokens bs=1 seek=$((size - 96)) count=96 conv=notrunc status=none
begin_with=(kept/job)
faults same resume made/job -o made/text --report made/r.json --overwrite
works ledger init kept/year --dataset all --epsilon 20 --delta 1e-6
cp kept/year year
begin_with=(kept/year)
job=(refs.csv --rho 1 -B 2 -n 4 -t 1 -q)
faults ends run m.gguf "${job[@]}" --ledger made/year --job made/job -o made/text

# Shards: what was not drawn can be drawn, what was is not drawn again, and merge sees which.
shards_are_whole() {
    local i
    for i in 0 1; do
        "$dpinfer" run m.gguf "${job[@]}" --job made/shards --shard "$i/2" >/dev/null 2>again.err
        case $? in
        0) ;;
        2) grep -q 'has begun before' again.err || return 1 ;;
        1) grep -qE 'cannot read made/shards/|is not the folder of a job' again.err ||
            return 1 ;; # it was not made whole
        *) return 1 ;;
        esac
    done
    "$dpinfer" merge went-on made/shards --partial --overwrite >/dev/null 2>&1
    [ $? -le 1 ]
}
begin_with=()
faults ends plan m.gguf "${job[@]}" --job made/shards
works plan m.gguf "${job[@]}" --job kept/shards
begin_with=(kept/shards)
faults same run m.gguf "${job[@]}" --job made/shards --shard 0/2
for i in 0 1; do works run m.gguf "${job[@]}" --job kept/shards --shard $i/2; done
shards_are_whole() { diff -r made/shards kept/shards >/dev/null; }
faults same merge made/out.txt made/shards --report made/r.json
faults same merge made/out.jsonl made/shards
signals 12 1 nothing merge made/out.jsonl made/shards --report made/r.json
if [ -z "$words" ]; then
    last="all runs with signals"
    check "signals do not arrive" test "$came" -ge 5
fi
finish
