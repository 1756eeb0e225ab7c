#!/usr/bin/env bash
# examples/rag_server.c answers what the budget allows and refuses the rest:
#   rag.sh path/to/rag_server path/to/dpinfer
. "$(dirname "$0")/example_support.sh"
charged() { "$dpinfer" ledger show year --json | grep -c '"id"'; }

# Rho of epsilon 1 at 1e-6 is .024356, that of 2 is below 4 times as much and above 3 times.
run ledger init year --dataset letters --epsilon 2 --delta 1e-6; expect_rc 0
printf '%s\n' 'What is new?' 'Who came?' 'What helps?' 'When?' 'Why?' 'How?' >questions
"$example" "$model" "$documents" year letters 1 <questions >out 2>err; rc=$?
expect_rc 0
answered=$(grep -E '^[1-6] answer: .' out | cut -c 1 | sort | tr -d '\n')
check "not the first three" test "$answered" = 123
check "the others are not refused" test "$(grep -c ' refused: ' out)" -eq 3
check "$(charged) charges" test "$(charged)" -eq 3
# What was refused read no record: without one there is nothing to answer either.
"$example" "$model" "$documents" year other 1 <questions >out 2>err
check "a dataset that is not there" test "$(grep -c ' refused: ' out)" -eq 6
"$example" none none none none 1 </dev/null >out 2>err; rc=$?
check "no model, and it went well" test $rc -eq 1
finish
