#!/usr/bin/env bash
# Groups of similar records, from outside: clusters.sh path/to/dpinfer path/to/sources
sources=$(readlink -f "$2")
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
model=$sources/models/dpinfer-4m-q8_0.gguf
refs=$sources/examples/refs/ticket
clustered() { # clustered COMMAND ARGS
    run "$1" "$model" "$refs" --adjacency add-remove -B 4 --num 12 --cluster 3 -n 40 -t 1 \
        --delta 1e-3 --public-prompt 'Write a support ticket.' "${@:2}"
}
texts_of() { grep -c "\"text_label\":\"$1\"" out; }

clustered run --rho .5 --jsonl --report r.json; expect_rc 0; expect_lines 12 out
for group in 1 2 3; do check "texts of group $group" test "$(texts_of $group)" -eq 4; done
expect_err "groups of similar records: a unit is in that of the nearest public centroid"
expect_err "texts of the public prompt, which cost nothing"
check "the report has no number of public texts" grep -q '"cluster_texts": 12' r.json
run verify r.json; expect_rc 0
sed 's/"cluster_texts": 12/"cluster_texts": null/' r.json >other.json
run verify other.json; expect_rc 1
sed 's/"adjacency": "add-remove"/"adjacency": "replace-by-null"/' r.json >other.json
run verify other.json; check "groups by position are verified" test "$rc" -ne 0

# Texts in proportion to the records of each group: some 30 records are of one.
clustered run --rho 1 --histogram-rho .5 --jsonl; expect_rc 0; expect_lines 12 out
check "12 texts" test $(($(texts_of 1) + $(texts_of 2) + $(texts_of 3))) -eq 12
expect_err "rho, of histogram"
clustered plan --rho .5; expect_rc 0; expect_out "groups of similar records"

# The same seed, the same texts; other texts where records are not grouped.
clustered run --rho .5 --seed 3 -q; expect_rc 0; cp out first
clustered run --rho .5 --seed 3 -q; check "two runs of a seed" cmp -s first out

# What is not proven.
refuse 2 "add/remove" run "$model" "$refs" --cluster 3 --rho 1 -B 4
refuse 2 "without subsample" run "$model" "$refs" --cluster 3 --epsilon 1 --delta 1e-5 -B 4 \
    --num 6 --subsample .5
refuse 2 "the texts" run "$model" "$refs" --cluster 7 --rho 1 -B 4 --num 6 --adjacency add-remove
refuse 2 "--cluster" run "$model" "$refs" --cluster 1 --rho 1 -B 4 --num 6 --adjacency add-remove
finish
