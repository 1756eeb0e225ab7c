#!/usr/bin/env bash
# Texts of earlier rounds in prompts: released.sh path/to/dpinfer [KILL_AT_LIBRARY]
# Without the library nothing is stopped.
library=${2:+$(readlink -f "$2")}
. "$(dirname "$0")/process_support.sh"
small_model
records 14 who >r.jsonl
letters=(m.gguf r.jsonl --rho 1 -B 2 -t 1 -n 10 --delta 1e-3 --public-prompt 'Write.')
seeded=("${letters[@]}" --seed 5 -q)

# ---- The texts are a function of the plan --------------------------------------------------------
works run "${seeded[@]}" --released 2 --parallel 1 -o one.txt
for n in 2 3 7; do
    works run "${seeded[@]}" --released 2 --parallel $n; expect_same out one.txt
done
works run "${seeded[@]}" --parallel 1; expect_different out one.txt
works run "${seeded[@]}" --released 3; expect_different out one.txt

# ---- What is said, and verified ------------------------------------------------------------------
works plan "${letters[@]}" --released 2 --parallel 7
expect_out "the texts of the round before (2)" "texts at a time    2"
works run "${letters[@]}" --released 2 -o two.txt --report two.json --report two.md \
    --report-prompts
expect_err "the texts of the round before (2)"
expect_line two.json '"released": 2' 'which are released and cost nothing|earlier round'
expect_line two.md 'shown earlier ones of these texts'
works verify two.json
for n in 3 null; do
    sed "s/\"released\": 2/\"released\": $n/" two.json >other.json
    wrong "follows.claim_sha256" other.json
done
for forged in 0 7 64 -1 '"2"'; do
    sed "0,/\"released\": 2/s//\"released\": $forged/" two.json >other.json
    fails 5 verify other.json; expect_err "released"
done
sed '0,/ *"released": 2,/s///' two.json >other.json; fails 5 verify other.json
expect_err "released"

# ---- What is refused -----------------------------------------------------------------------------
refuse_each 2 run "${letters[@]}" <<'END'
--released 0 | --released
--released 64 | --released
--released 7 | --released: found 7, allowed 0..6
--released 2 --answer So --keep-answer | --released and --keep-answer
--released 6 --ctx-size 80 | a larger context
END
fails_with 2 "one process" plan "${letters[@]}" --released 2 --job j # behind the plan
check "a job of several processes is there" test ! -e j
works plan "${letters[@]}" --job j
refuse 2 "one process" run "${letters[@]}" --released 2 --job j --shard 0/2

# ---- Every method, and batches of every kind -----------------------------------------------------
for more in "--method amin" "--method tang" "--adjacency add-remove --num 5" \
    "--adjacency zero-out" "--accountant filter" "--unit-field who --max-per-unit 2" \
    "--method adapmixed --i-know-this-is-not-dp" "--adjacency add-remove --num 6 --cluster 2"; do
    # shellcheck disable=SC2086 # arguments are words
    works run "${letters[@]}" --released 2 -q $more --report more.json --overwrite
    works verify more.json
done
works run m.gguf r.jsonl --epsilon 3 --subsample .5 --num 5 -B 2 -t 1 -n 10 --delta 1e-3 \
    --released 2 -q --report more.json --overwrite
works verify more.json
works run m.gguf --plain --num 5 -n 8 --public-prompt Write --released 2 -q -t 1

# ---- A job ---------------------------------------------------------------------------------------
works run "${seeded[@]}" --released 2 --job k -o k.txt; expect_same k.txt one.txt
works resume k -o -; expect_same out one.txt
[ -n "$library" ] || finish
# Killed in the first round, at its end, in later ones; where two texts are drawn at a time.
for n in 4 14 24 34 50; do
    at KILL pwrite "$n" run "${seeded[@]}" --released 2 --parallel 2 --job "k$n" -o "k$n.txt"
    expect_rc 137
    works resume "k$n"; expect_same "k$n.txt" one.txt
done
finish
