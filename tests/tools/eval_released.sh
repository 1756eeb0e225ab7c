#!/usr/bin/env bash
# The command `eval` with --dp-epsilon: eval_released.sh path/to/dpinfer
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/cli_support.sh"
small_model
python3 "$here/eval_texts.py"
both="made.jsonl --real real.jsonl"
formed="json.jsonl --real json_real.jsonl --json-schema schema.json"

# ---- Counts with noise --------------------------------------------------------------------------
refuse_each 2 eval $both <<'END'
--dp-epsilon 1 --train train.jsonl   | --dp-epsilon: allowed without
--dp-epsilon 1 --model m.gguf        | --dp-epsilon: allowed without
--dp-epsilon 1 --real-is-public      | --dp-epsilon: allowed without
--dp-epsilon 1 --canaries json.jsonl --controls json.jsonl | --dp-epsilon: allowed without
--ledger l                           | need --dp-epsilon
--dp-epsilon 1 --dataset d           | --dataset needs --ledger
--dp-epsilon 1e-7                    | too small
--dp-epsilon 1 --dp-delta .1         | less than 1 / number of records, 40
END
refuse 4 "nothing.jsonl" eval made.jsonl --real nothing.jsonl --dp-epsilon 1
works ledger init year.ledger --dataset letters --epsilon 3 --delta 1e-6
works eval $formed -o form.json
# With the least noise that there is they are nearly the true counts. Its deviation is .25: a cell
# is another one in 1500 times, and by more than 1 with a chance of 3e-14; of five cells of 20 at
# once, which would be seen below, the chance is 2e-12.
works eval $formed --dp-epsilon 900000 -o exact.json
works eval $both --label-field dept --dp-epsilon 900000 -o labels.json
works eval $both --label-field dept -o private.json
works eval $both --label-field dept --dp-epsilon 2 --ledger year.ledger -o noisy.json
works ledger show year.ledger --json; expect_out counts '"record": "one line of a .jsonl file"'
refuse 6 "letters" eval $both --dp-epsilon 2.9 --ledger year.ledger
# How many records there are is public: a delta that is too large for them is refused before the
# charge, and so is what cannot be opened.
works ledger init two.ledger --dataset letters --epsilon 9 --delta 1e-6
refuse 2 "less than 1 / number" eval $both --dp-epsilon 1 --dp-delta .1 --ledger two.ledger
mkfifo endless.jsonl
for bad in endless.jsonl /dev/zero; do
    refuse 4 "$bad is not a" eval made.jsonl --real $bad --dp-epsilon 1 --dp-delta 1e-6 \
        --ledger two.ledger
done
works ledger budget two.ledger --json; expect_out '"n_charges": 0'
# Counts that were paid for and cannot be written where they should be are not lost.
fails 1 eval $both --dp-epsilon 1 --ledger two.ledger -o /dev/full
expect_err "go to standard output"; expect_out "Released with noise"
"$dpinfer" eval $both --dp-epsilon 1 >/dev/full 2>err; rc=$?
last="eval >/dev/full"; expect_rc 1; expect_err "Released with noise"
"$dpinfer" eval $both --real-is-public >/dev/full 2>err; rc=$?
expect_rc 1; expect_no_err "Texts"
works ledger budget two.ledger --json; expect_out '"n_charges": 1'
works eval $both --label-field dept --dp-epsilon 2; expect_out "Released with noise"
expect_count 0 PRIVATE out
works eval $both --dp-epsilon 2 -o noisy.html
python_check "released" <<'P'
exact, form = load("exact.json"), load("form.json")
for key in "json_valid_real", "accepted_real":
    assert abs(exact[key] - form[key]) <= 3 / 70, key
assert exact["n_real"] == 70 and abs(exact["n_real_noisy"] - 70) <= 4
assert exact["guarantee"]["deviation"] == .25 and exact["guarantee"]["rho"] < 24.001
labels, private = load("labels.json"), load("private.json")
assert abs(labels["accuracy"] - private["accuracy"]) <= 3 / 40
assert labels["label_tv"] <= 3 / 40 and abs(labels["length_tv"] - private["length_tv"]) <= 5 / 40
noisy = load("noisy.json")
assert noisy["private"] is False and noisy["guarantee"]["charge"] == 1
assert noisy["guarantee"]["histograms"] == 4
s = noisy["guarantee"]["deviation"] ** 2
assert abs(4 / (2 * s) / noisy["guarantee"]["rho"] - 1) < 1e-6
assert noisy["guarantee"]["epsilon"] <= 2
# What is withheld is not there: all keys that real texts have a part in are counts.
assert set(noisy) == {"private", "guarantee", "n_synthetic", "n_real", "distinct_3", "self_bleu_4",
    "n_real_noisy", "length_tv", "json_valid_real", "label_tv", "accuracy", "intervals", "fields"}
assert set(noisy["fields"]) == {"words", "label", "label_found", "json_valid"}
page = data("noisy.html").decode()
assert "Released with noise" in page and "PRIVATE" not in page and "nan" not in page
P

# ---- Cells and their intervals ------------------------------------------------------------------
for form in csv json html; do works eval $formed --dp-epsilon 1 -o cells.$form; done
works eval $formed --dp-epsilon 1; expect_out "counts of words" "counts of accepted"
mv out cells.txt
python_check "cells" <<'P'
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
texts = texts_of("json")
valid = [sum(not t.endswith("}") for t in texts), sum(t.endswith("}") for t in texts)]

x = load("cells.json")
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
P
finish
