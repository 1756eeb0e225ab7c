#!/usr/bin/env bash
# The command `ledger`, and runs that are charged to one: ledger.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6; do echo "{\"text\": \"Record number $i.\"}"; done >six.jsonl
ledger() { works ledger "$@"; }
small="m.gguf six.jsonl -B 3 -n 4 -t 1"
# charged LEDGER ARGS: a run. Every token pays: charges are those of the formula below.
# shellcheck disable=SC2086
charged() { works run $small --pace none --ledger "$1.ledger" "${@:2}"; }
# uncharged CODE TEXT ARGS: a run that the ledger of the year does not allow.
# shellcheck disable=SC2086
uncharged() { refuse "$1" "$2" run $small --pace none --ledger year.ledger "${@:3}"; }

# ---- Words -------------------------------------------------------------------------------------
refuse_each 2 ledger <<'END'
                                        | no ACTION given
show                                    | no LEDGER given
open x.ledger                           | allowed init|show|budget|charge|close
init x.ledger --dataset a --epsilon 1   | init needs --dataset, --epsilon and --delta
charge x.ledger                         | charge needs one of them
charge x.ledger --rho 1 --sigma 2       | charge needs one of them
charge x.ledger --epsilon 1 --delta 1e-6 | bounds no Renyi divergence
charge x.ledger --rho 1 --sampling .1   | --sampling needs --sigma
init x.ledger --dataset a --epsilon 1 --delta 1e-6 --scope all | allowed dataset|unit
END
echo "no data base" >text.ledger
refuse_each 1 <<'END'
ledger show x.ledger                            | No such file
ledger show .                                   | it is not a regular file
ledger show text.ledger                         | it is no SQLite file
run m.gguf six.jsonl --rho 1 --ledger x.ledger  | No such file
END
expect_none x.ledger
refuse 2 "--dataset needs --ledger" run m.gguf six.jsonl --rho 1 --dataset a

# ---- A year ------------------------------------------------------------------------------------
# Order and budget by 60-digit arithmetic: tests/dp/account/test_renyi.c.
ledger init year.ledger --dataset letters --epsilon 5 --delta 1e-5 --json
near budget 2.74727166318; near order 5
check "mode" test "$(stat -c %a year.ledger)" = 600
refuse 2 "already" ledger init year.ledger --dataset letters --epsilon 5 --delta 1e-5
charged year --rho .3; check "two texts" test -s out
expect_err "all units pay for every run" "spent before       0" "Renyi, order 5" "charged for this"
ledger budget year.ledger --json
# 4 steps of range sqrt(8 .3 / 4), by the formula of docs/spec.md 4.8; K is an integer
near charged 1.29381845 1e-4
before=$(field charged)
charged year --rho .25 --report r.json
expect_line r.json '"charge": [0-9.]+' '"before": 1\.29' '"dataset": "letters"'
works verify r.json
while IFS='|' read -r code change text; do
    sed "$change" r.json >bad.json; fails "$code" verify bad.json; expect_err "$text"
done <<'END'
1|/^  "follows"/,/^  }/s/"charge": [0-9]/"charge": 4/|follows.ledger.charge
5|s/"before": 14/"before": 914/|cannot have been charged
1|s/"before": 14/"before": 13/|follows.claim_sha256
5|s/"order": 5/"order": 2/|order
END
ledger budget year.ledger --json; holds "more is charged" "$(field charged) > $before + 1"

# ---- Exhausted: exit code 6, nothing read, a smaller job that fits ------------------------------
rm -f r.json
uncharged 6 "the budget of the dataset 'letters'" --rho .3 --report r.json -o text.txt
expect_err "no record was read"; expect_none r.json text.txt
rho=$(sed -n 's/.*with --rho \([^ ]*\) would fit.*/\1/p' err)
uncharged 6 "with --epsilon" --epsilon 4
charged year --rho "$rho" # a smaller one
uncharged 6 "" --rho "$rho"
# Not counted: what guarantees nothing. Outputs that are the ledger.
uncharged 2 "this run has none" --rho .001 --seed 1
uncharged 2 "" --rho .001 --method adapmixed --i-know-this-is-not-dp
uncharged 2 "is an input and would be overwritten" --rho .001 -o year.ledger --overwrite

# All charges protect the same: another unit is refused, and both are shown.
uncharged 2 "protect one line of a .jsonl file; replace-by-null, and this one protects one line of \
a .jsonl file; add-remove" --rho .001 --adjacency add-remove --num 2
uncharged 2 "and this one protects all records with one ID in 'who', at most 4 of them used; \
replace-by-null" --rho .001 --unit-field who
works ledger budget year.ledger; expect_out "protects   one line of a .jsonl file; replace-by-null"
works ledger init pinned.ledger --dataset d --epsilon 50 --delta 1e-5 --adjacency add-remove \
    --unit-field who --max-per-unit 2
expect_out "all records with one ID in 'who', at most 2 of them used; add-remove"
of_who=(--rho .01 --ledger pinned.ledger --adjacency add-remove --num 2)
echo '{"who": "ann", "text": "A letter."}' >who.jsonl
for other in "--unit-field text" "--unit-field who --max-per-unit 3" ""; do
    # shellcheck disable=SC2086
    refuse 2 "'d' protect all records with one ID in 'who', at most 2 of them used; add-remove" \
        run m.gguf who.jsonl -B 3 -n 4 -t 1 "${of_who[@]}" $other
done
refuse_each 2 ledger charge pinned.ledger --rho .01 <<'END'
--adjacency replace-by-null | and this one protects replace-by-null
--unit-field whom           | and this one protects all records with one ID in 'whom'
--max-per-unit 2            | --max-per-unit needs --unit-field
END
works ledger charge pinned.ledger --rho .01
works run m.gguf who.jsonl -B 3 -n 4 -t 1 "${of_who[@]}" --unit-field who --max-per-unit 2
works ledger show pinned.ledger --json
expect_out '"adjacency": "add-remove"' '"unit": "id"' '"unit_field": "who"' '"max_per_unit": 2'

# ---- What was done outside, other datasets, the end ---------------------------------------------
refuse 6 "left is" ledger charge year.ledger --rho 1
ledger init year.ledger --dataset counts --epsilon 1 --delta 1e-6
uncharged 2 "give --dataset NAME" --rho .001
ledger charge year.ledger --dataset counts --pure-epsilon .1 --note "a count"
fails 2 ledger charge year.ledger --dataset counts --sigma 20 --steps 2 --note $'two\tsums'
ledger charge year.ledger --dataset counts --sigma 20 --steps 2
charged year --rho .001 --dataset counts; expect_err "dataset            counts"
refuse 2 "it has 'letters', 'counts'" ledger show year.ledger --dataset count
ledger show year.ledger; expect_out "a count" "invisibleink"
ledger close year.ledger --dataset counts; expect_out "closed"
refuse 1 "was closed on" ledger charge year.ledger --dataset counts --rho 1e-6
uncharged 1 "was closed on" --rho .001 --dataset counts

# ---- Totals, computed a second time from the charges --------------------------------------------
ledger show year.ledger --json
command -v python3 >/dev/null && python_check "totals" <<'P'
def divergence(cost, A):
    total = 0
    h = lambda y: math.log(math.sinh(y) / y)
    for part in cost.split("; "):
        kind, n, x = part.split()[:3]
        n, x = int(n), float(x)
        total += n * (
            A * x if kind == "zcdp" else
            (A * h(A * x / 2) - (A - 1) * h((A - 1) * x / 2) - h(x / 2)) / (A - 1)
            if kind == "range" else
            math.log(math.cosh(x * (A - .5)) / math.cosh(x / 2)) / (A - 1) if kind == "pure" else
            A / (2 * x * x))
    return total
shown, n = load("out"), 0
one = Fraction(shown["units_of_one"])
for d in shown["datasets"]:
    A, total = d["order"], 0
    R = d["epsilon"] - math.log(1 - 1 / A) + (math.log(d["delta"]) + math.log(A)) / (A - 1)
    for c in d["charges"]:
        assert c["before_units"] == total and c["counted"]
        total += c["amount_units"]
        amount, true = Fraction(c["amount_units"]) / one, divergence(c["cost"], A)
        assert true * (1 - 1e-6) <= amount <= true * (1 + 1e-6) + 2 / one, (c, true)
        n += 1
    assert total == d["charged_units"] <= d["budget_units"] <= R * float(one) * (1 + 1e-12)
    assert d["left_units"] == d["budget_units"] - total
    same(d["budget"], R)
assert n == 6, n
P

# ---- plan: before and after, and nothing is charged ----------------------------------------------
# planned CODE ARGS: a plan with a ledger that cannot be written.
# shellcheck disable=SC2086
planned() { fails "$1" plan $small --ledger plan.ledger "${@:2}"; }
# shellcheck disable=SC2086
paced() { works run $small --ledger plan.ledger "$@"; }
ledger init plan.ledger --dataset letters --epsilon 2 --delta 1e-5
paced --rho .03
cp plan.ledger before.ledger
chmod a-w plan.ledger
planned 0 --rho .02; expect_out "spent after"
planned 6 --rho 1; expect_out "spent after"; expect_err "is left" "would fit"
planned 0 --rho .02 --json
after=$(field ledger_after) charge=$(field ledger_charge) most="$(field order) * .02"
holds "a charge of order times rho at most" "$charge <= $most && $charge > .9 * $most"
expect_same plan.ledger before.ledger
chmod u+w plan.ledger
paced --rho .02 --report after.json
sed -n '/^  "follows"/,$p' after.json >out; near after "$after"

# ---- verify --ledger: the charge of a report is in its ledger, and in no earlier copy ----------
cp plan.ledger copy.ledger
paced --rho .01 --report last.json
for report in after last; do
    works verify $report.json --ledger plan.ledger; expect_out "plan.ledger has its charge"
done
expect_count 0 '-0\.0 %' after.json # the first page
works verify after.json --ledger copy.ledger
fails 1 verify last.json --ledger copy.ledger; expect_err "a copy from before the run"
works verify last.json
cp copy.ledger plan.ledger # restored, and charged again: what came after is not in it
until [ "$(date -u +%FT%TZ)" != "$(grep -o '"date": "[^"]*"' last.json | tail -n 1 |
    cut -d '"' -f 4)" ]; do sleep .1; done # the same charge again, a second later
paced --rho .01
fails 1 verify last.json --ledger plan.ledger
works run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --report none.json
fails 2 verify none.json --ledger plan.ledger; expect_err "was charged to no ledger"
fails 1 verify last.json --ledger units.none; expect_err "units.none"
# A report of an earlier version, with the sign of a budget of which nothing was spent.
ledger init zero.ledger --dataset letters --epsilon 2 --delta 1e-5
works run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .01 --ledger zero.ledger --report zero.json
works verify zero.json --ledger zero.ledger; expect_line zero.json 'Before this run 0.0 %'
sed -i 's/Before this run 0.0 %/Before this run -0.0 %/' zero.json; fails 1 verify zero.json

# ---- Units: their sums are private ---------------------------------------------------------------
ledger init units.ledger --dataset patients --epsilon 5 --delta 1e-5 --scope unit
expect_out "each unit pays for the runs that it is in"
fails 2 run m.gguf six.jsonl -B 3 -n 4 -t 1 --rho .1 --ledger units.ledger
expect_err "--unit-field: found none"
# What is done outside costs each of its units, which are named; those that can pay are told, and
# no sum is: 2 * .2 * 5 fits into 2.747, a third time does not.
printf 'annabel\r\nbenedict\n\n \ncidonia' >ids; windows_text ids; printf ' \n' >blank
outside() { # CODE ARGS
    fails "$1" ledger charge units.ledger --rho .2 "${@:2}" --note "a table of counts"
}
outside 2; expect_err "--unit-ids says whom the charge is about"
outside 2 --unit-ids ids; expect_err "--unit-ids and --payers"
outside 2 --unit-ids ids --payers -; expect_err "who can pay is private"
outside 2 --unit-ids none --payers p1; expect_err "cannot read none"
outside 2 --unit-ids blank --payers p1; expect_err "has no ID"
outside 2 --unit-ids ids --payers ids; expect_err "would be overwritten"
outside 2 --unit-ids ids --payers units.ledger-journal
outside 1 --unit-ids ids --payers nowhere/p1
ledger budget units.ledger --json; expect_out '"n_charges": 0'
# paid ID...: these are the payers, in the file that the last charge wrote.
paid() { check "payers: $(tr '\n' ' ' <payers)" cmp -s payers <(printf '%s\n' "$@"); rm payers; }
outside 0 --unit-ids ids --payers payers; expect_out "1, to a unit that was in every run"
check "the payers are their owner's alone" test "$(stat -c %a payers)" = 600
outside 2 --unit-ids ids --payers payers; expect_err "is there already"
paid annabel benedict cidonia
echo benedict >benedict; outside 0 --unit-ids benedict --payers payers; paid benedict
printf 'danielle\nbenedict\nannabel\n' >three
outside 0 --unit-ids three --payers payers; expect_out "left       2.747"; paid danielle annabel
outside 6 --unit-ids three --payers payers --steps 4; expect_none payers
ledger show units.ledger; expect_out "a table of counts"
for part in units.ledger out err; do
    expect_count 0 'annabel|benedict|cidonia|danielle' $part # no unit is named
done
# A run counts them by the same IDs: annabel and benedict have too little left for it.
printf 'who,text\nannabel,one\nbenedict,two\nevelyn,three\n' >who.csv
works run m.gguf who.csv --unit-field who -B 3 -n 4 -t 1 --rho .2 --ledger units.ledger
echo evelyn >evelyn
ledger charge units.ledger --rho .4 --unit-ids evelyn --payers p5
check "evelyn has paid for the run" test ! -s p5
ledger init sum.ledger --dataset letters --epsilon 2 --delta 1e-5
fails 2 ledger charge sum.ledger --rho .01 --unit-ids ids --payers p6
expect_err "has the scope dataset, so that all units pay"
fails 2 ledger show sum.ledger --unit-ids ids --payers p6; expect_err "allowed only with charge"

# ---- kill -9 -------------------------------------------------------------------------------------
# Whatever moment it hits: who has seen text is in the ledger.
ledger init kill.ledger --dataset letters --epsilon 50 --delta 1e-5
seen=0
for ((i = 1; i <= ${DPI_RUN_KILLS:-12}; i++)); do
    : >text # by this shell: the other one may be killed before it opens the file
    "$dpinfer" run m.gguf six.jsonl -B 3 -n 64 -t 1 --rho .01 -q --ledger kill.ledger \
        >text 2>/dev/null </dev/null &
    sleep "0.0$((RANDOM % 8))$((RANDOM % 10))" # the moment is the test
    kill -9 $! 2>/dev/null; wait $! 2>/dev/null
    if [ -s text ]; then seen=$((seen + 1)); fi
    ledger budget kill.ledger --json
    n=$(field n_charges)
    holds "charges of the $seen runs that were seen, of $i" "$n >= $seen && $n <= $i"
done
finish
