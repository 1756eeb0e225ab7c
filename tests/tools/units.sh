#!/usr/bin/env bash
# Units that pay each for itself, from outside: units.sh path/to/dpinfer path/to/sources
# The budgets here are so large that a text says what its letter is about; a text without a letter
# says what the public prompt does, which is about something else.
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"

heart='Discharge instructions: heart failure. '
heart+='Your stay began with swollen legs because of heart failure.'
blood='Your care plan after a blood infection. You stayed on ward 4 because of a blood infection.'
burn='Discharge instructions: a burn. You were cared for at Queensway Hospital for a burn.'
letters() { # letters FILE UNIT LETTER ...
    local file=$1
    shift
    echo 'patient,letter' >"$file"
    for (( ; $# > 0; )); do
        echo "$1,$2" >>"$file"
        shift 2
    done
}
letters ann.csv ann "$heart"
letters january.csv ann "$heart" ben "$blood"
letters february.csv ben "$blood" ann "$heart" cy "$burn" ann "$heart"
# texts FILE ARGS: one text for each unit in `out`, one a line.
texts() {
    run run "$model" "$1" --unit-field patient --text-field letter --max-per-unit 2 -B 1 -n 18 \
        -t 1 \
        --temp .05 --top-k 0 --rho 320000 --pace none --jsonl --ledger units.ledger \
        --public-prompt 'Ticket 5318, priority normal: the' "${@:2}"
}
line() { sed -n "$1p" out; }
says() { check "text $1 does not say '$2'" grep -qE "$2" <(line "$1"); }
says_nothing() {
    check "text $1 has a letter" \
        bash -c '! grep -qE "heart|blood|sepsis|burn|scald"' <<<"$(line "$1")"
}

# The same; the prompt of a letter has no ticket in it.
nl=$'\n'
letter_texts() {
    texts "$1" --private-prompt \
        "Here is one document:$nl$nl{reference}$nl${nl}Write another of its kind." \
        "${@:2}"
}

# What a run costs; of this, two and a half.
run ledger init units.ledger --dataset trial --epsilon 1e6 --delta 1e-5 --scope unit; expect_rc 0
letter_texts ann.csv; expect_rc 0; says 1 "heart"
cost=$(sed -n 's/.*charged for this *//p' err)
check "a cost" test -n "$cost"
epsilon=$(awk -v x="$cost" 'BEGIN { print 2.5 * x + 20 }')
for name in patients others; do
    run ledger init units.ledger --dataset $name --epsilon "$epsilon" --delta 1e-5 --scope unit
    expect_rc 0
done

# ---- Each unit pays for the runs that it is in, and is null when it cannot -----------------------
letter_texts january.csv --dataset patients; expect_rc 0; expect_lines 2 out
says 1 "heart"; says 2 "blood|sepsis"
letter_texts ann.csv --dataset patients; expect_rc 0; says 1 "heart"
letter_texts february.csv --dataset patients; expect_rc 0; expect_lines 3 out
says 1 "blood|sepsis"; says_nothing 2; says 3 "burn|scald"
cp err with.err
letter_texts february.csv --dataset patients; expect_rc 0; expect_lines 3 out
says_nothing 1; says_nothing 2; says 3 "burn|scald"
letter_texts february.csv --dataset patients; expect_rc 0
says_nothing 1; says_nothing 2; says_nothing 3
# By the hash of its ID a unit that cannot pay is in no text.
letters new.csv ann "$heart" dee "$burn"
letter_texts new.csv --dataset patients --adjacency add-remove --num 3
expect_rc 0; expect_lines 3 out
check "nobody says that who cannot pay" bash -c '! grep -q heart out'
check "one text says it" test "$(grep -cE "burn|scald" out)" -eq 1

# ---- Who cannot pay is told nowhere --------------------------------------------------------------
letters zoe.csv zoe "$heart" yan "$blood"
letter_texts zoe.csv --dataset others; letter_texts zoe.csv --dataset others
letter_texts february.csv --dataset others; expect_rc 0
says 1 "blood|sepsis"; says 2 "heart"; says 3 "burn|scald"
sed -i 's/others/patients/' err
expect_same with.err err
run ledger show units.ledger --dataset patients --json; expect_rc 0; mv out patients.json
check "no sum of a unit" bash -c '! grep -qiE "spent|unit_" patients.json'

# ---- Sums and hashes, computed a second time from the file ---------------------------------------
if command -v python3 >/dev/null; then
    check "sums" python3 - <<'PYTHON'
import hashlib, hmac, sqlite3
db = sqlite3.connect("file:units.ledger?mode=ro", uri=True)
paid = {"patients": {"ann": 2, "ben": 2, "cy": 2, "dee": 1},
        "others": {"zoe": 2, "yan": 2, "ann": 1, "ben": 1, "cy": 1}}
wanted_rows = 0
for name, units in paid.items():
    dataset, key, budget = db.execute(
        "SELECT id, unit_key, budget FROM dataset WHERE name = ?", (name,)).fetchone()
    wanted_rows += len(units)
    for unit, n in units.items():
        digest = hmac.new(key, unit.encode(), hashlib.sha256).digest()
        row, spent = db.execute(
            "SELECT id, spent FROM unit WHERE dataset = ? AND hash = ?",
            (dataset, digest)).fetchone()
        charges = [amount for (amount,) in db.execute(
            "SELECT amount FROM payer JOIN charge ON charge.id = charge WHERE unit = ?", (row,))]
        assert len(charges) == n and sum(charges) == spent <= budget, (unit, charges, spent)
assert db.execute("SELECT COUNT(*) FROM unit").fetchone()[0] == wanted_rows + 1 # and ann's trial
PYTHON
fi

# ---- What has no IDs, and what is refused for all ------------------------------------------------
run run "$model" january.csv --text-field letter --rho .1 -B 1 --ledger units.ledger \
    --dataset patients
expect_rc 2; expect_err "--unit-field: found none"; expect_empty_out
run ledger init units.ledger --dataset small --epsilon 1 --delta 1e-5 --scope unit; expect_rc 0
letter_texts january.csv --dataset small; expect_rc 6; expect_empty_out
expect_err "a new unit has"; expect_err "no record was read"

# ---- kill -9 -------------------------------------------------------------------------------------
# Whatever moment it hits: of a run whose text was seen, each unit has paid.
small_model
run ledger init kill.ledger --dataset patients --epsilon 50 --delta 1e-5 --scope unit; expect_rc 0
seen=0
for ((i = 0; i < ${DPI_RUN_KILLS:-8}; i++)); do
    : >text # by this shell: the other one may be killed before it opens the file
    "$dpinfer" run m.gguf january.csv --unit-field patient --text-field letter -B 1 -n 64 -t 1 \
        --rho .01 -q --ledger kill.ledger >text 2>/dev/null </dev/null &
    pid=$!
    sleep "0.0$((RANDOM % 8))$((RANDOM % 10))" # the moment is the test
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    if [ -s text ]; then seen=$((seen + 1)); fi
    run ledger budget kill.ledger --json; expect_rc 0
    check "$seen runs were seen" test "$(field n_charges)" -ge "$seen"
done
if command -v python3 >/dev/null; then
    check "both units have paid for each charge" python3 - <<'PYTHON'
import sqlite3
db = sqlite3.connect("kill.ledger")
n, = db.execute("SELECT COUNT(*) FROM charge").fetchone()
assert db.execute("SELECT COUNT(*) FROM payer").fetchone()[0] == 2 * n
total, = db.execute("SELECT COALESCE(SUM(amount), 0) FROM charge").fetchone()
assert [s for (s,) in db.execute("SELECT spent FROM unit")] == [total, total][:2 * (n > 0)]
PYTHON
fi
finish
