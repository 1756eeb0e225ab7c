#!/usr/bin/env bash
# Groups of similar records, from outside: clusters.sh path/to/dpinfer path/to/sources
refs=$(readlink -f "$2")/examples/refs/ticket
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
small_model
clustered() { # clustered COMMAND ARGS
    works "$1" m.gguf "$refs" --adjacency add-remove -B 4 --num 12 --cluster 3 -n 40 -t 1 \
        --delta 1e-3 --public-prompt 'Write a support ticket.' "${@:2}"
}

clustered run --rho .5 --jsonl --report r.json; expect_lines 12 out
for group in 1 2 3; do expect_count 4 "\"text_label\":\"$group\"" out; done
expect_err "groups of similar records: a unit is in that of the nearest public centroid" \
    "texts of the public prompt, which cost nothing"
expect_line r.json '"cluster_texts": 12' # the number of public texts
works verify r.json
sed 's/"cluster_texts": 12/"cluster_texts": null/' r.json >other.json
fails 5 verify other.json; expect_err "no fields for IDs and labels" # files have no other labels
sed 's/"cluster_texts": 12/"cluster_texts": 13/' r.json >other.json
fails 1 verify other.json
sed 's/"cluster_texts": 12/"cluster_texts": 49/' r.json >other.json
fails 5 verify other.json
sed 's/"adjacency": "add-remove"/"adjacency": "replace-by-null"/' r.json >other.json
run verify other.json; check "groups by position are verified" test "$rc" -ne 0

# Texts in proportion to the records of each group.
clustered run --rho 1 --histogram-rho .5 --jsonl; expect_lines 12 out
expect_err "rho, of histogram"; expect_count 12 '"text_label":"[123]"' out
clustered plan --rho .5; expect_out "groups of similar records"

# The same seed, the same texts.
clustered run --rho .5 --seed 3 -q; cp out first
clustered run --rho .5 --seed 3 -q; expect_same first out

# What is not proven.
refuse_each 2 run m.gguf "$refs" -B 4 <<'END'
--cluster 3 --rho 1                                         | add/remove
--cluster 3 --epsilon 1 --delta 1e-5 --num 6 --subsample .5 | without subsample
--cluster 7 --rho 1 --num 6 --adjacency add-remove          | the texts
--cluster 1 --rho 1 --num 6 --adjacency add-remove          | --cluster
END
finish
