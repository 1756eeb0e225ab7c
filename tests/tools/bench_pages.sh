#!/usr/bin/env bash
# The tables and plots of bench/UTILITY.md are those of the CSVs beside it, and bench/frontier.py
# measures what its columns say: bench_pages.sh path/to/dpinfer SOURCE [run]
# run: the scripts that draw texts too, with few of them.
bench=$(readlink -f "$2")/bench
. "$(dirname "$0")/cli_support.sh"
last="the tables of UTILITY.md"
if ! command -v python3 >/dev/null; then
    echo "skipped: no python3"
    exit 77
fi
cp "$bench"/UTILITY.md "$bench"/frontier*.svg .
results=$bench/results/utility
check "utility-grid" "$bench/utility-grid" tables UTILITY.md "$results"/{ticket,discharge}-grid.csv
check "frontier.py" python3 "$bench/frontier.py" tables UTILITY.md "$results/frontier.csv"
for script in finetune structured; do
    check "$script.py" python3 "$bench/$script.py" tables UTILITY.md "$results/$script.csv"
done
for file in UTILITY.md frontier-{,all-}{ticket,discharge}.svg; do
    check "$file is not what its data make it" cmp "$file" "$bench/$file"
done
# ---- A run -------------------------------------------------------------------------------------
if [ "${3:-}" = run ]; then
    # The scripts look for the model beside them. Here texts are short.
    mkdir models
    cp -r "$bench" bench
    python3 "$here/short_model.py" "$bench/../models/dpinfer-4m-q8_0.gguf" \
        models/dpinfer-4m-q8_0.gguf || exit 1
    frontier() {
        last="frontier.py run"
        python3 bench/frontier.py run "$(dirname "$dpinfer")" out.csv --domains review \
            --records 40 --canaries 6 --epsilons 3 \
            --methods public,invisibleink-filter,adapmixed,augpe >"$1" 2>err
        rc=$?
        expect_rc 0
    }
    frontier first
    frontier second
    check "rows are made again" test ! -s second
    check "its rows" python3 - <<'E2'
import csv
rows = {r["method"]: r for r in csv.DictReader(open("out.csv", newline=""))}
assert len(rows) == 4, rows.keys()
n = {r["records"] for r in rows.values()}
assert len(n) == 1
for method, r in rows.items():
    assert int(r["texts"]) == max(1, int(r["records"]) // 31)
    assert (r["epsilon"] == "") == (method == "public") and float(r["seconds_text"]) > 0
    for key in "tv", "well_formed", "near_copies", "membership_auc", "canary_auc":
        assert 0 <= float(r[key]) <= 1, (method, key, r[key])
# A model that saw no record is as far from the law as its own documents, or nearly.
assert float(rows["public"]["tv"]) > .4
E2
fi
finish
