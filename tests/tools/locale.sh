#!/usr/bin/env bash
# The program in a German locale writes what it writes in another, bit by bit, and reads it.
#   german.sh FOLDER locale.sh path/to/dpinfer path/to/libcomma.so
german=$LC_ALL
. "$(dirname "$0")/cli_support.sh"
small_model
comma=$2
seq 1 24 | awk '{ printf "{\"text\": \"Record %d of Anna, %d.5 years.\"}\n", $1, $1 }' >refs.jsonl
# in_german COMMAND...: in the German locale, from before main.
in_german() { LC_ALL=$german LD_PRELOAD=$comma "$@"; }
check "numbers have no comma" test -z "$(in_german env true 2>&1)" # comma.c says so
# both ARGS: the same in both locales.
both() {
    run "$@"; mv out c.out; mv err c.err; local rc_c=$rc
    in_german "$dpinfer" "$@" >out 2>err </dev/null; rc=$?
    expect_rc $rc_c; expect_same out c.out; expect_same err c.err
}
both account --epsilon 2.5 --delta 1e-5 -B 7 -n 64 --temp 0.85
both account --rho 0.49 --delta 1e-5 --json
both plan m.gguf refs.jsonl --rho 0,5 -B 3 -n 4
# A run, its statement, report and plots; a training; a page of figures.
last="the German program"
for where in german c; do
    [ $where = c ] && in_german() { "$@"; }
    in_german "$dpinfer" run m.gguf refs.jsonl --rho 0.49 -B 3 -n 4 -t 1 --seed 7 --quiet \
        --report $where.json --report $where.html >$where.txt 2>$where.said
    in_german "$dpinfer" finetune m.gguf refs.jsonl --delta 1e-3 --steps 2 --rank 2 --positions 32 \
        --units 8 -t 1 --sigma 4.5 --seed 7 -q -o $where.gguf 2>>err
    in_german "$dpinfer" eval refs.jsonl --real refs.jsonl --real-is-public -o $where.htm 2>>err
    for other in $where.json $where.gguf; do
        in_german "$dpinfer" verify $other >$where.verified 2>err; rc=$?; expect_rc 0
    done
    in_german "$dpinfer" verify german.json >out 2>err; rc=$?; expect_rc 0
done
expect_same german.gguf c.gguf
expect_same german.txt c.txt
expect_same german.said c.said
for form in json html htm; do
    check "a number with a comma in $form" test "$(grep -cE '[0-9],[0-9]' german.$form)" = \
        "$(grep -cE '[0-9],[0-9]' c.$form)"
done
finish
