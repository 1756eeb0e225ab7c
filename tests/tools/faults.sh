#!/usr/bin/env bash
# Each call of the system and of the allocator that a command makes fails once, in a run of its own:
# no crash, no hang, an exit code of the README with a reason, and nothing half-written.
#   faults.sh path/to/dpinfer FAULTS_LIBRARY [N]   N: runs for each command at most; all without it
. "$(dirname "$0")/cli_support.sh"
library=$(readlink -f "$2")
most=${3:-1000000}
small_model
echo 'id,text' >refs.csv
mkdir refs
for i in 1 2 3 4; do
    echo "Record $i of Anna." >"refs/$i.txt"
    echo "{\"text\": \"Record $i of Anna.\"}" >>refs.jsonl
    echo "$i,\"Record $i of Anna.\"" >>refs.csv
done
echo 1 2 3 >tokens
run run m.gguf refs.jsonl --rho 1 -n 4 -t 1 -q --report ink.json; expect_rc 0

# The files of a command go to `made`; what is there after a run that succeeded is in `whole`.
mkdir made whole
begin_with= # a file that is in `made` from the beginning
# faults HOW ARGS: all runs of one command. HOW same: where it succeeds its result is that of a run
# without a fault; ends: it ends in order.
faults() {
    local how=$1 n numbers
    shift
    rm -rf made/* whole/* calls job
    [ -z "$begin_with" ] || cp "$begin_with" made/
    last="dpinfer $*"
    DPI_FAULT=0 DPI_FAULT_LOG=$PWD/calls LD_PRELOAD=$library "$dpinfer" "$@" \
        >whole.out 2>err <tokens
    rc=$?
    expect_rc 0
    check "no call was seen" test -s calls
    mv made/* whole/ 2>/dev/null
    # The first and the last call from each place.
    numbers=$(awk '{ at = $2 $3 $4; last[at] = $1; if (!(at in first)) first[at] = $1 }
        END { for (at in first) { print first[at]; if (last[at] != first[at]) print last[at] }
            }' calls |
        sort -n | awk -v most="$most" '{ all[NR] = $1 } END {
            step = NR > most ? NR / most : 1
            for (i = 1; i <= NR; i += step) print all[int(i)] }')
    for n in $numbers; do
        rm -rf made/* job
        [ -z "$begin_with" ] || cp "$begin_with" made/
        last="dpinfer $*, call $n: $(sed -n "${n}p" calls | cut -d ' ' -f 2-)"
        timeout -k 1 300 env DPI_FAULT="$n" LD_PRELOAD="$library" "$dpinfer" "$@" >out 2>err <tokens
        rc=$?
        case $rc in
        0) # the command does without
            [ "$how" != same ] || expect_same out whole.out
            check "a file is missing or not whole" same_files ;;
        [1-6]) check "no reason" test -s err
            check "a file is there in part" whole_files ;;
        *) bad "$last: it crashed or hung" ;;
        esac
    done
}
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
        made/text) cmp -s -n $(($(stat -c %s "$file") - 1)) "$file" whole/text || return 1 ;;
        'made/*' | made/*-journal) ;;
        made/year) ledger_is_whole "$file" || return 1 ;;
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
faults same verify ink.json --model m.gguf
faults same quantize m.gguf made/q.gguf Q8_0 -t 1 -q
faults ends plan m.gguf refs.jsonl --rho 1 -t 1
faults same run m.gguf refs.jsonl --rho 1 -n 4 -t 1 --seed 3 -q --report made/r.json \
    --report made/r.md
faults same run m.gguf refs.jsonl --rho 1 -n 4 -t 1 --seed 3 -q -o made/text
faults same run m.gguf refs.csv --rho 1 -B 2 -n 4 -t 1 --seed 3 -q
faults same run m.gguf refs.csv --rho 1 -B 2 -n 4 -t 1 --seed 3 -q --job job -o made/text
faults same run m.gguf refs --rho 1 -B 2 -n 4 -t 2 --seed 3 -q --jsonl
run run m.gguf refs.jsonl --rho 1 -n 4 -t 1 --seed 3 -q --job done; expect_rc 0
faults same resume done -o made/text

# A ledger, with which each run begins as it is in `year`: a run that fails has charged all or
# nothing, one that succeeds has charged.
charged() { "$dpinfer" ledger budget "$1" --json 2>/dev/null | grep -E '"(charged|name)"'; }
ledger_is_whole() { # made/year, after exit code $rc
    local now
    now=$(charged "$1") && [ -n "$now" ] || return 1
    [ "$now" = "$(charged whole/year)" ] || { [ "$rc" -ne 0 ] && [ "$now" = "$(charged year)" ]; }
}
run ledger init year --dataset all --epsilon 20 --delta 1e-6; expect_rc 0
begin_with=year
faults same ledger budget made/year
faults ends ledger init made/year --dataset more --epsilon 1 --delta 1e-6
faults ends ledger charge made/year --rho .1
faults ends ledger close made/year
faults ends run m.gguf refs.jsonl --rho 1 -n 4 -t 1 -q --ledger made/year
begin_with=
faults ends ledger init made/new --dataset all --epsilon 1 --delta 1e-6
finish
