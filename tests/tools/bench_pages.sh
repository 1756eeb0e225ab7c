#!/usr/bin/env bash
# The tables and plots of bench/UTILITY.md and docs/results.md are those of the rows that are kept,
# bench/frontier.py and bench/real/run measure what their rows say:
# bench_pages.sh path/to/dpinfer SOURCE [run]
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
check "many.py" python3 "$bench/many.py" tables UTILITY.md "$results/many.csv"
for script in finetune structured; do
    check "$script.py" python3 "$bench/$script.py" tables UTILITY.md "$results/$script.csv"
done
for file in UTILITY.md frontier-{,all-}{ticket,discharge}.svg; do
    check "$file is not what its data make it" cmp "$file" "$bench/$file"
done
# ---- Real models -------------------------------------------------------------------------------
cp "$bench"/../docs/{results.md,real-*.svg} .
check "real/plot" "$bench/real/plot" results.md "$bench/results/real/rows.jsonl"
for file in results.md real-*.svg; do
    check "$file is not what its data make it" cmp "$file" "$bench/../docs/$file"
done
mkdir real
echo other >real/SmolLM2-135M-Instruct.Q4_1.gguf
last="real/models with a file of another checksum"
"$bench/real/models" real >out 2>err
rc=$?
expect_rc 1
expect_err "SmolLM2-135M-Instruct.Q4_1.gguf has SHA-256" "expected is b179c952"
check "the file is kept" grep -qx other real/SmolLM2-135M-Instruct.Q4_1.gguf
check "real/run, its sets and settings" python3 - "$bench/real/run" <<'E2'
import argparse, importlib.machinery, importlib.util, sys
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("real_run", sys.argv[1])
real_run = importlib.util.module_from_spec(importlib.util.spec_from_loader("real_run", loader))
loader.exec_module(real_run)
records = [{"text": f"{c}{i}", "kind": c} for c, n in (("a", 9), ("b", 12), ("c", 30))
           for i in range(n)]
parts = real_run.split(records, "kind", 2, 6, 3, 2, seed=1)
for part, n in zip(parts, (6, 2, 3)): # of the labels c and b, which are the most frequent
    assert sorted(r["kind"] for r in part) == ["b"] * n + ["c"] * n, part
assert len({r["text"] for part in parts for r in part}) == 22
try:
    real_run.split(records, "kind", 3, 6, 3, 2, seed=1)
    raise AssertionError("too few records are found")
except SystemExit as e:
    assert "label 'a' has 9 records" in str(e)
o = argparse.Namespace(settings="amin,augpe,one", epsilons="10,.01,inf")
assert real_run.wanted(o) == [("one", None), ("amin", "0.01"), ("amin", "10"), ("amin", "inf"),
                              ("augpe", "0.1"), ("augpe", "10"), ("augpe", "inf")]
E2
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
    # Real models are for those who have them: the same commands, of this one.
    python3 - >records.jsonl <<'E2'
import json
for i in range(40):
    print(json.dumps({"text": f"The {'screen' if i % 2 else 'battery'} of phone {i} is broken.",
                      "part": "screen" if i % 2 else "battery"}))
E2
    real_run() {
        last="real/run"
        bench/real/run "$(dirname "$dpinfer")" models/dpinfer-4m-q8_0.gguf records.jsonl \
            rows.jsonl --label-field part --describe "support tickets" --labels 2 --texts 2 -B 3 \
            -n 12 --epsilons 3,.1 --steps 2 \
            --settings real,public,one,invisibleink,amin,tang,augpe,finetune >out 2>"$1"
        rc=$?
        expect_rc 0
    }
    real_run first
    real_run second
    check "rows of real/run are made again" test ! -s second
    check "rows of real/run" python3 - <<'E2'
import collections, json
rows = [json.loads(line) for line in open("rows.jsonl")]
assert len(rows) == 13, len(rows)
records = {json.loads(line)["text"] for line in open("records.jsonl")}
for r in rows:
    labels = collections.Counter(t["label"] for t in r["texts"])
    assert labels == ({"screen": 2, "battery": 2} if r["setting"] != "real" else {}), r
    assert r["n_training"] == 12 and r["measured"]["n_real"] == 24, r["setting"]
    assert not any(t["text"] in records for t in r["texts"])
    if r["setting"] != "real":  # a text without a word is none; all four of a row never are
        assert r["measured"]["n_synthetic"] == sum(bool(t["text"].strip()) for t in r["texts"]), r
    assert r["control"] == (r["epsilon"] == "3") == ("control" in r["measured"])
    assert (r["setting"] == "real") == (r["peak_bytes"] == 0)
    claimed = f"--claimed-epsilon {float(r['epsilon'] or 0)}" in r["commands"][-1]
    assert claimed == (r["epsilon"] is not None), r["commands"]
    assert r["commands"][-1].startswith("dpinfer eval texts.jsonl --real real.jsonl")
E2
fi
finish
