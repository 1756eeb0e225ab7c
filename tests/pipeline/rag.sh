#!/usr/bin/env bash
# examples/rag_server.c answers what the budget allows and refuses the rest:
#   rag.sh path/to/rag_server path/to/dpinfer
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
server=$(readlink -f "$1") dpinfer=$(readlink -f "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
export OMP_WAIT_POLICY=passive
model=$root/models/dpinfer-4m-q8_0.gguf
passed=0 failed=0
check() {
    if "${@:2}"; then passed=$((passed + 1)); else
        echo "rag: $1"
        cat out err
        failed=$((failed + 1))
    fi
}
charged() { "$dpinfer" ledger show year --json | grep -c '"id"'; }

# Rho of epsilon 1 at 1e-6 is .024356, that of 2 is below 4 times as much and above 3 times.
"$dpinfer" ledger init year --dataset letters --epsilon 2 --delta 1e-6 >out 2>err || exit 1
printf '%s\n' 'What is new?' 'Who came?' 'What helps?' 'When?' 'Why?' 'How?' >questions
"$server" "$model" "$root/examples/refs/discharge" year letters 1 <questions >out 2>err
check "it fails" [ $? -eq 0 ]
n=$(grep -cE '^[1-6] answer: .' out)
check "$n answers" [ "$n" -eq 3 ]
check "not the first three" [ "$(grep -oE '^[0-9] answer' out | sort | tr -d '\n')" = \
    "1 answer2 answer3 answer" ]
check "the others are not refused" [ "$(grep -c ' refused: ' out)" -eq 3 ]
check "$(charged) charges" [ "$(charged)" -eq 3 ]
# What was refused read no record: without one there is nothing to answer either.
"$server" "$model" "$root/examples/refs/discharge" year other 1 <questions >out 2>err
check "a dataset that is not there" [ "$(grep -c ' refused: ' out)" -eq 6 ]
"$server" none none none none 1 </dev/null >out 2>err
check "no model, and it went well" [ $? -eq 1 ]
echo "$passed passed, $failed failed"
exit $((failed > 0))
