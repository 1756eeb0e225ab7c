#!/usr/bin/env bash
# The command `ledger`, and runs that are charged to one: ledger.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6; do echo "{\"text\": \"Record number $i.\"}"; done >six.jsonl
ledger() { run ledger "$@"; }
# Every token pays: charges are those of the formula below.
charged() { run run m.gguf six.jsonl -B 3 -n 4 -t 1 --pace none --ledger year.ledger "$@"; }

# ---- Words -------------------------------------------------------------------------------------
refuse 2 "no ACTION given" ledger
refuse 2 "no LEDGER given" ledger show
refuse 2 "allowed init|show|budget|charge|close" ledger open x.ledger
refuse 2 "init needs --dataset, --epsilon and --delta" ledger init x.ledger --dataset a --epsilon 1
refuse 2 "charge needs one of them" ledger charge x.ledger
refuse 2 "charge needs one of them" ledger charge x.ledger --rho 1 --sigma 2
refuse 2 "bounds no Renyi divergence" ledger charge x.ledger --epsilon 1 --delta 1e-6
refuse 2 "--sampling needs --sigma" ledger charge x.ledger --rho 1 --sampling .1
refuse 2 "allowed dataset|unit" ledger init x.ledger --dataset a --epsilon 1 --delta 1e-6 \
    --scope all
refuse 1 "No such file" ledger show x.ledger
check "no file" test ! -e x.ledger
refuse 1 "it is not a regular file" ledger show .
echo "no data base" >text.ledger
refuse 1 "it is no SQLite file" ledger show text.ledger
refuse 2 "--dataset needs --ledger" run m.gguf six.jsonl --rho 1 --dataset a
refuse 1 "No such file" run m.gguf six.jsonl --rho 1 --ledger x.ledger

# ---- A year ------------------------------------------------------------------------------------
# Order and budget by 60-digit arithmetic: tests/dp/account/test_renyi.c.
ledger init year.ledger --dataset letters --epsilon 5 --delta 1e-5 --json; expect_rc 0
near budget 2.74727166318; check "order" test "$(field order)" = 5
check "mode" test "$(stat -c %a year.ledger)" = 600
refuse 2 "already" ledger init year.ledger --dataset letters --epsilon 5 --delta 1e-5
charged --rho .3; expect_rc 0; check "two texts" test -s out
expect_err "all units pay for every run"; expect_err "spent before       0"
expect_err "Renyi, order 5"; expect_err "charged for this"
ledger budget year.ledger --json; expect_rc 0
# 4 steps of range sqrt(8 .3 / 4), by the formula of docs/spec.md 4.8; K is an integer
near charged 1.29381845 1e-4
before=$(field charged)
charged --rho .25 --report r.json; expect_rc 0; check "a report" test -s r.json
charge=$(grep -o '"ledger_charge": [0-9.]*' r.json)
check "charge in the report" test -n "$charge"
check "before in the report" grep -q '"ledger_before": 1.29' r.json
check "dataset in the report" grep -q '"ledger_dataset": "letters"' r.json
run verify r.json; expect_rc 0
sed 's/"ledger_charge": [0-9]/"ledger_charge": 4/' r.json >bad.json
run verify bad.json; expect_rc 1; expect_err "realised.ledger_charge"
sed 's/"ledger_before": 1.29/"ledger_before": 2.29/' r.json >bad.json
run verify bad.json; expect_rc 1; expect_err "cannot have been charged"
sed 's/"ledger_order": 5/"ledger_order": 2/' r.json >bad.json
run verify bad.json; check "another order" test "$rc" -ne 0
ledger budget year.ledger --json
check "more is charged" awk -v x="$(field charged)" -v y="$before" 'BEGIN { exit !(x > y + 1) }'

# ---- Exhausted: exit code 6, nothing read, a smaller job that fits ------------------------------
rm -f r.json
charged --rho .3 --report r.json -o text.txt; expect_rc 6; expect_empty_out
expect_err "the budget of the dataset 'letters'"; expect_err "no record was read"
check "no report" test ! -e r.json; check "no text" test ! -e text.txt
rho=$(sed -n 's/.*with --rho \([^ ]*\) would fit.*/\1/p' err)
charged --rho .3 --adjacency add-remove --num 2; expect_rc 6
charged --epsilon 4; expect_rc 6; expect_err "with --epsilon"
check "a smaller rho" test -n "$rho"
charged --rho "$rho"; expect_rc 0
charged --rho "$rho"; expect_rc 6
# Not counted: what guarantees nothing.
charged --rho .001 --seed 1; expect_rc 2; expect_err "this run has none"
charged --rho .001 --method adapmixed --i-know-this-is-not-dp; expect_rc 2; expect_empty_out
# Outputs that are the ledger.
charged --rho .001 -o year.ledger --overwrite
expect_rc 2; expect_err "is an input and would be overwritten"

# ---- What was done outside, other datasets, the end ---------------------------------------------
refuse 6 "left is" ledger charge year.ledger --rho 1
ledger init year.ledger --dataset counts --epsilon 1 --delta 1e-6; expect_rc 0
charged --rho .001; expect_rc 2; expect_err "give --dataset NAME"
ledger charge year.ledger --dataset counts --pure-epsilon .1 --note "a count"; expect_rc 0
ledger charge year.ledger --dataset counts --sigma 20 --steps 2 --note $'two\tsums'; expect_rc 2
ledger charge year.ledger --dataset counts --sigma 20 --steps 2; expect_rc 0
charged --rho .001 --dataset counts; expect_rc 0; expect_err "dataset            counts"
refuse 2 "it has 'letters', 'counts'" ledger show year.ledger --dataset count
ledger show year.ledger; expect_rc 0; expect_out "a count"; expect_out "invisibleink"
ledger close year.ledger --dataset counts; expect_rc 0; expect_out "closed"
refuse 1 "was closed on" ledger charge year.ledger --dataset counts --rho 1e-6
charged --rho .001 --dataset counts; expect_rc 1; expect_err "was closed on"; expect_empty_out

# ---- Totals, computed a second time from the charges --------------------------------------------
ledger show year.ledger --json; expect_rc 0
if command -v python3 >/dev/null; then
    check "totals" python3 - out <<'EOF'
import json, math, sys
from fractions import Fraction
def divergence(cost, A):
    total = 0
    for part in cost.split("; "):
        kind, *x = part.split()
        n, x = int(x[0]), float(x[1])
        h = lambda y: math.log(math.sinh(y) / y)
        if kind == "zcdp":
            total += n * A * x
        elif kind == "range":
            total += n * (A * h(A * x / 2) - (A - 1) * h((A - 1) * x / 2) - h(x / 2)) / (A - 1)
        elif kind == "pure":
            total += n * math.log(math.cosh(x * (A - .5)) / math.cosh(x / 2)) / (A - 1)
        else:
            total += n * A / (2 * x * x)
    return total
shown = json.load(open(sys.argv[1]))
one = Fraction(shown["units_of_one"])
n = 0
for d in shown["datasets"]:
    A, total = d["order"], 0
    R = d["epsilon"] - math.log(1 - 1 / A) + (math.log(d["delta"]) + math.log(A)) / (A - 1)
    for c in d["charges"]:
        assert c["before_units"] == total and c["counted"]
        total += c["amount_units"]
        amount = Fraction(c["amount_units"]) / one
        true = divergence(c["cost"], A)
        assert true * (1 - 1e-6) <= amount <= true * (1 + 1e-6) + 2 / one, (c, true)
        n += 1
    assert total == d["charged_units"] <= d["budget_units"] <= R * float(one) * (1 + 1e-12)
    assert d["left_units"] == d["budget_units"] - total
    assert abs(d["budget"] - R) < 1e-9
assert n == 6, n
EOF
fi

# ---- plan: before and after, and nothing is charged ----------------------------------------------
ledger init plan.ledger --dataset letters --epsilon 2 --delta 1e-5; expect_rc 0
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .03 --ledger plan.ledger; expect_rc 0
cp plan.ledger before.ledger
chmod a-w plan.ledger
run plan m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .02 --ledger plan.ledger --json; expect_rc 0
planned=$(field ledger_after)
check "a charge of order times rho at most" \
    awk -v a="$(field order)" -v x="$(field ledger_charge)" \
    'BEGIN { exit !(x <= a * .02 && x > .9 * a * .02) }'
run plan m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .02 --ledger plan.ledger; expect_out "spent after"
run plan m.gguf six.jsonl -B 3 -n 4 -t 1 --rho 1 --ledger plan.ledger; expect_rc 6
expect_out "spent after"; expect_err "is left"; expect_err "would fit"
expect_same plan.ledger before.ledger
chmod u+w plan.ledger
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .02 --ledger plan.ledger --report after.json
expect_rc 0
cp after.json out; near ledger_after "$planned"

# ---- verify --ledger: the charge of a report is in its ledger, and in no earlier copy ----------
cp plan.ledger copy.ledger
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --ledger plan.ledger --report last.json
expect_rc 0
for report in after last; do
    run verify $report.json --ledger plan.ledger; expect_rc 0
    expect_out "plan.ledger has its charge"
done
check "the first page" test "$(grep -c -- '-0.0 %' after.json)" -eq 0
run verify after.json --ledger copy.ledger; expect_rc 0
run verify last.json --ledger copy.ledger; expect_rc 1; expect_err "a copy from before the run"
run verify last.json; expect_rc 0
cp copy.ledger plan.ledger # restored, and charged again: what came after is not in it
until [ "$(date -u +%FT%TZ)" != "$(grep -o '"date": "[^"]*"' last.json | tail -n 1 |
    cut -d '"' -f 4)" ]; do sleep .1; done # the same charge again, a second later
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --ledger plan.ledger; expect_rc 0
run verify last.json --ledger plan.ledger; expect_rc 1
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --report none.json; expect_rc 0
run verify none.json --ledger plan.ledger; expect_rc 2; expect_err "was charged to no ledger"
run verify last.json --ledger units.none; expect_rc 1; expect_err "units.none"
# A report of an earlier version, with the sign of a budget of which nothing was spent.
ledger init zero.ledger --dataset letters --epsilon 2 --delta 1e-5; expect_rc 0
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --ledger zero.ledger --report zero.json
expect_rc 0; check "nothing was spent" grep -q 'Before this run 0.0 %' zero.json
run verify zero.json --ledger zero.ledger; expect_rc 0
sed -i 's/Before this run 0.0 %/Before this run -0.0 %/' zero.json
run verify zero.json; expect_rc 0
sed -i 's/Before this run -0.0 %/Before this run -0.1 %/' zero.json
run verify zero.json; expect_rc 1

# ---- Units: their sums are private ---------------------------------------------------------------
ledger init units.ledger --dataset patients --epsilon 5 --delta 1e-5 --scope unit; expect_rc 0
expect_out "each unit pays for the runs that it is in"
run run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .1 --ledger units.ledger; expect_rc 2
expect_err "--unit-field: found none"
# What is done outside costs each of its units, which are named; those that can pay are told, and
# no sum is: 2 * .2 * 5 fits into 2.747, a third time does not.
printf 'annabel\r\nbenedict\n\n \ncidonia' >ids
outside() { ledger charge units.ledger --rho .2 "$@" --note "a table of counts"; }
outside; expect_rc 2; expect_err "--unit-ids says whom the charge is about"
outside --unit-ids ids; expect_rc 2; expect_err "--unit-ids and --payers"
outside --unit-ids ids --payers -; expect_rc 2; expect_err "who can pay is private"
outside --unit-ids none --payers p1; expect_rc 2; expect_err "cannot read none"
printf ' \n' >blank
outside --unit-ids blank --payers p1; expect_rc 2; expect_err "has no ID"
outside --unit-ids ids --payers ids; expect_rc 2; expect_err "would be overwritten"
outside --unit-ids ids --payers units.ledger-journal; expect_rc 2
outside --unit-ids ids --payers nowhere/p1; expect_rc 1
ledger budget units.ledger --json; check "a refused charge" test "$(field n_charges)" -eq 0
outside --unit-ids ids --payers p1; expect_rc 0; expect_out "1, to a unit that was in every run"
printf 'annabel\nbenedict\ncidonia\n' >wanted; expect_same p1 wanted
check "the payers are their owner's alone" test "$(stat -c %a p1)" = 600
outside --unit-ids ids --payers p1; expect_rc 2; expect_err "is there already"
printf 'benedict\n' >benedict
outside --unit-ids benedict --payers p2; expect_rc 0; expect_same p2 benedict
printf 'danielle\nbenedict\nannabel\n' >three
outside --unit-ids three --payers p3; expect_rc 0; expect_out "left       2.747"
printf 'danielle\nannabel\n' >wanted; expect_same p3 wanted
outside --unit-ids three --payers p4 --steps 4; expect_rc 6; check "payers of nothing" test ! -e p4
ledger show units.ledger; expect_out "a table of counts"
for part in units.ledger out err; do
    check "a unit is named" test "$(grep -cE 'annabel|benedict|cidonia|danielle' $part)" -eq 0
done
# A run counts them by the same IDs: annabel and benedict have too little left for it.
printf 'who,text\nannabel,one\nbenedict,two\nevelyn,three\n' >who.csv
run run m.gguf who.csv --unit-field who -B 3 -n 4 -t 1 --rho .2 --ledger units.ledger; expect_rc 0
printf 'evelyn\n' >evelyn
ledger charge units.ledger --rho .4 --unit-ids evelyn --payers p5; expect_rc 0
check "evelyn has paid for the run" test ! -s p5
ledger init sum.ledger --dataset letters --epsilon 2 --delta 1e-5
ledger charge sum.ledger --rho .01 --unit-ids ids --payers p6; expect_rc 2
expect_err "has the scope dataset, so that all units pay"
ledger show sum.ledger --unit-ids ids --payers p6; expect_rc 2
expect_err "allowed only with charge"

# ---- kill -9 -------------------------------------------------------------------------------------
# Whatever moment it hits: who has seen text is in the ledger.
ledger init kill.ledger --dataset letters --epsilon 50 --delta 1e-5; expect_rc 0
seen=0 started=0
for ((i = 0; i < ${DPI_RUN_KILLS:-12}; i++)); do
    : >text # by this shell: the other one may be killed before it opens the file
    "$dpinfer" run m.gguf six.jsonl -B 3 -n 64 -t 1 --rho .01 -q --ledger kill.ledger \
        >text 2>/dev/null </dev/null &
    pid=$!
    sleep "0.0$((RANDOM % 8))$((RANDOM % 10))" # the moment is the test
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    started=$((started + 1))
    if [ -s text ]; then seen=$((seen + 1)); fi
    ledger budget kill.ledger --json; expect_rc 0
    n=$(field n_charges)
    check "$seen runs were seen, $n charged" test "$n" -ge "$seen"
    check "$started runs, $n charged" test "$n" -le "$started"
done
finish
