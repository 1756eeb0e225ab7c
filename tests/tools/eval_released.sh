#!/usr/bin/env bash
# The command `eval` with --dp-epsilon: eval_released.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
python3 "$here/eval_texts.py"
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --json; expect_rc 0
mv out form.json

# ---- Counts with noise --------------------------------------------------------------------------
for how in "--train train.jsonl" "--model m.gguf" "--real-is-public" \
    "--canaries json.jsonl --controls json.jsonl"; do
    # shellcheck disable=SC2086
    refuse 2 "--dp-epsilon: allowed without" eval made.jsonl --real real.jsonl --dp-epsilon 1 $how
done
refuse 2 "need --dp-epsilon" eval made.jsonl --real real.jsonl --ledger l
refuse 2 "--dataset needs --ledger" eval made.jsonl --real real.jsonl --dp-epsilon 1 --dataset d
refuse 4 "nothing.jsonl" eval made.jsonl --real nothing.jsonl --dp-epsilon 1
refuse 2 "too small" eval made.jsonl --real real.jsonl --dp-epsilon 1e-7
refuse 2 "less than 1 / number of records, 40" eval made.jsonl --real real.jsonl --dp-epsilon 1 \
    --dp-delta .1
run ledger init year.ledger --dataset letters --epsilon 3 --delta 1e-6; expect_rc 0
# With the least noise that there is (deviation .25) they are nearly the true counts.
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --dp-epsilon 900000 --json
expect_rc 0
mv out exact.json
run eval made.jsonl --real real.jsonl --label-field dept --dp-epsilon 900000 --json; expect_rc 0
mv out labels.json
run eval made.jsonl --real real.jsonl --label-field dept --json; expect_rc 0
mv out private.json
run eval made.jsonl --real real.jsonl --label-field dept --dp-epsilon 2 --ledger year.ledger --json
expect_rc 0
mv out noisy.json
run ledger show year.ledger --json; expect_rc 0
mv out charged.json
refuse 6 "letters" eval made.jsonl --real real.jsonl --dp-epsilon 2.9 --ledger year.ledger
# How many records there are is public: a delta that is too large for them is refused before the
# charge, and so is what cannot be opened.
run ledger init two.ledger --dataset letters --epsilon 9 --delta 1e-6; expect_rc 0
refuse 2 "less than 1 / number" eval made.jsonl --real real.jsonl --dp-epsilon 1 --dp-delta .1 \
    --ledger two.ledger
mkfifo endless.jsonl
for bad in endless.jsonl /dev/zero; do
    refuse 4 "$bad is not a" eval made.jsonl --real $bad --dp-epsilon 1 \
        --dp-delta 1e-6 --ledger two.ledger
done
run ledger budget two.ledger --json; expect_rc 0; expect_out '"n_charges": 0'
# Counts that were paid for and cannot be written where they should be are not lost.
run eval made.jsonl --real real.jsonl --dp-epsilon 1 --ledger two.ledger -o /dev/full
expect_rc 1; expect_err "go to standard output"; expect_out "Released with noise"
"$dpinfer" eval made.jsonl --real real.jsonl --dp-epsilon 1 >/dev/full 2>err; rc=$?
last="eval >/dev/full"; expect_rc 1; expect_err "Released with noise"
"$dpinfer" eval made.jsonl --real real.jsonl --real-is-public >/dev/full 2>err; rc=$?
expect_rc 1; expect_no_err "Texts"
run ledger budget two.ledger --json; expect_rc 0; expect_out '"n_charges": 1'
run eval made.jsonl --real real.jsonl --label-field dept --dp-epsilon 2; expect_rc 0
expect_out "Released with noise"
check "not private" test -z "$(grep PRIVATE out)"
run eval made.jsonl --real real.jsonl --dp-epsilon 2 -o noisy.html; expect_rc 0
check "released" python3 - <<'E2'
import json
exact, form = json.load(open("exact.json")), json.load(open("form.json"))
for key in "json_valid_real", "accepted_real":
    assert abs(exact[key] - form[key]) <= 3 / 70, key
assert exact["n_real"] == 70 and abs(exact["n_real_noisy"] - 70) <= 4
assert exact["guarantee"]["deviation"] == .25 and exact["guarantee"]["rho"] < 24.001
labels, private = json.load(open("labels.json")), json.load(open("private.json"))
assert abs(labels["accuracy"] - private["accuracy"]) <= 3 / 40
assert labels["label_tv"] <= 3 / 40 and abs(labels["length_tv"] - private["length_tv"]) <= 5 / 40
noisy = json.load(open("noisy.json"))
assert noisy["private"] is False and noisy["guarantee"]["charge"] == 1
assert noisy["guarantee"]["histograms"] == 4
s = noisy["guarantee"]["deviation"] ** 2
assert abs(4 / (2 * s) / noisy["guarantee"]["rho"] - 1) < 1e-6
assert noisy["guarantee"]["epsilon"] <= 2
# What is withheld is not there: all keys that real texts have a part in are counts.
assert set(noisy) == {"private", "guarantee", "n_synthetic", "n_real", "distinct_3", "self_bleu_4",
    "n_real_noisy", "length_tv", "json_valid_real", "label_tv", "accuracy", "intervals", "fields"}
assert set(noisy["fields"]) == {"words", "label", "label_found", "json_valid"}
page = open("noisy.html").read()
assert "Released with noise" in page and "PRIVATE" not in page and "nan" not in page
E2
check "the charge" grep -q counts charged.json


# ---- Cells and their intervals ------------------------------------------------------------------
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --dp-epsilon 1 -o cells.csv
expect_rc 0
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --dp-epsilon 1 -o cells.json
expect_rc 0
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --dp-epsilon 1; expect_rc 0
expect_out "counts of words"; expect_out "counts of accepted"
mv out cells.txt
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --dp-epsilon 1 -o cells.html
expect_rc 0
check "cells" python3 - <<'E2'
import csv, json, math, re
def width(s, n): # the least h with P(|Z| <= h)^n >= .95
    p = [math.exp(-z * z / (2 * s)) for z in range(10000)]
    total, h, inside = 2 * sum(p) - 1, 0, p[0]
    while (inside / total) ** n < .95:
        h += 1
        inside += 2 * p[h]
    return h
def intervals(cells, s):
    h = width(s, 1)
    return [[max(c - h, 0), max(c + h, 0)] for c in cells]
def share(no, yes):
    return max(yes, 0) / (max(no, 0) + max(yes, 0))
texts = [json.loads(line)["text"] for line in open("json.jsonl")]
valid = [sum(not t.endswith("}") for t in texts), sum(t.endswith("}") for t in texts)]

x = json.load(open("cells.json"))
s = x["guarantee"]["deviation"] ** 2
assert set(x["fields"]) == {"words", "json_valid", "accepted"}
for name, f in x["fields"].items():
    assert f["count_real_intervals"] == intervals(f["count_real"], s), name
    assert sum(f["count_synthetic"]) == len(texts), name
    assert f["tv_interval"][0] <= f["tv"] <= f["tv_interval"][1]
assert x["fields"]["json_valid"]["count_synthetic"] == valid
no, yes = x["fields"]["json_valid"]["count_real"]
h = width(s, 2)
assert abs(x["json_valid_real"] - share(no, yes)) < 1e-12
low, high = x["intervals"]["json_valid_real"]
assert abs(low - share(no + h, yes - h)) < 1e-12 and abs(high - share(no - h, yes + h)) < 1e-12
n, (low, high) = x["n_real_noisy"], x["intervals"]["n_real_noisy"]
assert n == sum(x["fields"]["words"]["count_real"])
assert [low, high] == [max(n - width(20 * s, 1), 0), max(n + width(20 * s, 1), 0)]
for key in "json_valid_real", "accepted_real", "length_tv":
    assert x["intervals"][key][0] <= x[key] <= x["intervals"][key][1]

# The other forms have noise of their own, and the same numbers.
rows = list(csv.DictReader(open("cells.csv")))
for name, f in x["fields"].items():
    own = [r for r in rows if r["key"].startswith(f"count:{name}:")]
    assert [r["key"].split(":", 2)[2] for r in own] == f["bins"]
    cells = [int(r["value"]) for r in own]
    assert [[int(r["low"]), int(r["high"])] for r in own] == intervals(cells, s)
    own = [r for r in rows if r["key"].startswith(f"count_synthetic:{name}:")]
    assert [int(r["value"]) for r in own] == f["count_synthetic"]
value = {r["key"]: r for r in rows}
assert value["length_tv"]["low"] != "" and value["n_real_noisy"]["high"] != ""
def cells_of(lines): # count, low, high of the 20 bins of words
    cells = [[int(v) for v in m.groups()] for m in lines]
    assert len(cells) == 20 + 2 + 2
    assert [c[1:] for c in cells] == intervals([c[0] for c in cells], s)
cells_of(re.finditer(r"^  (-?\d+) +(\d+) \.\. (\d+)   ", open("cells.txt").read(), re.M))
cells_of(re.finditer(r'<tr><td class="n">(-?\d+)</td><td class="n">(\d+) to (\d+)</td>'
                     r'<td class="n">',
                     open("cells.html").read()))
E2
finish
