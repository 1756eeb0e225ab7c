#!/usr/bin/env bash
# Units that pay each for itself, from outside: units.sh path/to/dpinfer path/to/sources
# The budgets here are so large that a text says what its letter is about; a text without a letter
# says what the public prompt does, which is about something else.
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
# shellcheck source=/dev/null
. "$here/letters.sh"

letters() { # letters FILE UNIT LETTER ...
    echo 'patient,letter' >"$1"
    printf '%s,%s\n' "${@:2}" >>"$1"
}
letters ann.csv ann "$heart"
letters january.csv ann "$heart" ben "$blood"
letters february.csv ben "$blood" ann "$heart" cy "$burn" ann "$heart"
# texts FILE DATASET ARGS: one text for each unit in `out`, one a line.
texts() {
    run run "$model" "$1" --unit-field patient --text-field letter --max-per-unit 2 -B 1 -t 1 \
        "${loud[@]}" --ledger units.ledger --dataset "$2" "${@:3}"
}
# say TEXT...: there are so many lines, and line i says TEXT i; '' is nothing of a letter.
say() {
    local n=0 wanted line
    expect_rc 0; expect_lines $# out
    for wanted; do
        n=$((n + 1)); line=$(sed -n "${n}p" out)
        case $wanted in
        '') check "text $n: $line" grep -qvE "heart|blood|sepsis|burn|scald" <<<"$line" ;;
        *) check "text $n is not about $wanted: $line" grep -qE "$wanted" <<<"$line" ;;
        esac
    done
}

# What a run costs; of this, two and a half.
works ledger init units.ledger --dataset trial --epsilon 1e6 --delta 1e-5 --scope unit
texts ann.csv trial; say heart
cost=$(sed -n 's/.*charged for this *//p' err)
check "a cost" test -n "$cost"
epsilon=$(awk -v x="$cost" 'BEGIN { print 2.5 * x + 20 }')
for name in patients others hashed; do
    works ledger init units.ledger --dataset $name --epsilon "$epsilon" --delta 1e-5 --scope unit
done

# ---- Each unit pays for the runs that it is in, and is null when it cannot -----------------------
texts january.csv patients; say heart "blood|sepsis"
texts ann.csv patients; say heart
texts february.csv patients; say "blood|sepsis" "" "burn|scald"
cp err with.err
texts february.csv patients; say "" "" "burn|scald"
texts february.csv patients; say "" "" ""
# By the hash of its ID a unit that cannot pay is in no text.
letters new.csv ann "$heart" dee "$burn"
for i in 1 2; do texts ann.csv hashed --adjacency add-remove --num 3; expect_rc 0; done
texts new.csv hashed --adjacency add-remove --num 3; expect_rc 0; expect_lines 3 out
expect_count 0 heart out # nobody says that who cannot pay
expect_count 1 "burn|scald" out

# ---- Who cannot pay is told nowhere --------------------------------------------------------------
letters zoe.csv zoe "$heart" yan "$blood"
texts zoe.csv others; texts zoe.csv others
texts february.csv others; say "blood|sepsis" heart "burn|scald"
sed -i "/note: [0-9]* of [0-9]* texts /d" with.err err # of released texts
sed -i "s/others/patients/" err; expect_same with.err err
works ledger show units.ledger --dataset patients --json
check "no sum of a unit" test "$(grep -ciE "spent|unit_[^f]" out)" -eq 0

# ---- Sums and hashes, computed a second time from the file ---------------------------------------
command -v python3 >/dev/null && python_check "sums" <<'P'
import hmac, sqlite3
db = sqlite3.connect("file:units.ledger?mode=ro", uri=True)
def rows(*query): return db.execute(*query).fetchall()
paid = {"patients": {"ann": 2, "ben": 2, "cy": 2}, "hashed": {"ann": 2, "dee": 1},
        "others": {"zoe": 2, "yan": 2, "ann": 1, "ben": 1, "cy": 1}}
for name, units in paid.items():
    [(dataset, key, budget)] = rows(
        "SELECT id, unit_key, budget FROM dataset WHERE name = ?", (name,))
    for unit, n in units.items():
        [(row, spent)] = rows("SELECT id, spent FROM unit WHERE dataset = ? AND hash = ?",
                              (dataset, hmac.new(key, unit.encode(), hashlib.sha256).digest()))
        charges = [amount for (amount,) in rows(
            "SELECT amount FROM payer JOIN charge ON charge.id = charge WHERE unit = ?", (row,))]
        assert len(charges) == n and sum(charges) == spent <= budget, (unit, charges, spent)
assert rows("SELECT COUNT(*) FROM unit") == [(3 + 2 + 5 + 1,)] # and ann's trial
P

# ---- What has no IDs, and what is refused for all ------------------------------------------------
refuse 2 "--unit-field: found none" run "$model" january.csv --text-field letter --rho .1 -B 1 \
    --ledger units.ledger --dataset patients
works ledger init units.ledger --dataset small --epsilon 1 --delta 1e-5 --scope unit
texts january.csv small; expect_rc 6; expect_empty_out
expect_err "a new unit has" "no record was read"

# A field that no line has may be a slip. What is said of it must not depend on records.
small_model
echo '{"text": "One.", "id": 1}' >lines.jsonl
of_lines() { run run m.gguf lines.jsonl --rho .1 -B 1 -n 2 -t 1 --unit-field "$@"; }
for field in id who; do
    of_lines "$field"; expect_rc 0; expect_err "lines of lines.jsonl without '$field' have no ID"
done
of_lines who -q; expect_rc 0; expect_no_err "without 'who'"
refuse 2 "--delta: found 0.5 with 2 units, allowed less than 1 / number of units" run m.gguf \
    january.csv --text-field letter --unit-field patient --epsilon 1 --delta .5 -B 1
# A record without an ID is a unit, and no person: the words are the same whether there is one.
for field in id who; do
    of_lines "$field" -q --report r.json --overwrite; expect_rc 0
    expect_err "all records with one unit ID, or one without an ID, which adds nothing"
    expect_line r.json "records of at most 1 person \\(all .* without an ID counts as a person"
    works verify r.json
done
of_lines who --public-fields; expect_rc 4; expect_err "'who'"
run records lines.jsonl --unit-field who; expect_out "without an ID"

# ---- kill -9 -------------------------------------------------------------------------------------
# Whatever moment it hits: of a run whose text was seen, each unit has paid.
works ledger init kill.ledger --dataset patients --epsilon 50 --delta 1e-5 --scope unit
seen=0
for ((i = 0; i < ${DPI_RUN_KILLS:-8}; i++)); do
    : >text # by this shell: the other one may be killed before it opens the file
    "$dpinfer" run m.gguf january.csv --unit-field patient --text-field letter -B 1 -n 64 -t 1 \
        --rho .01 -q --ledger kill.ledger >text 2>/dev/null </dev/null &
    sleep "0.0$((RANDOM % 8))$((RANDOM % 10))" # the moment is the test
    kill -9 $! 2>/dev/null; wait $! 2>/dev/null
    if [ -s text ]; then seen=$((seen + 1)); fi
    works ledger budget kill.ledger --json
    holds "charges of the $seen runs that were seen" "$(field n_charges) >= $seen"
done
command -v python3 >/dev/null && python_check "both units have paid for each charge" <<'P'
import sqlite3
db = sqlite3.connect("kill.ledger")
[(n, total)] = db.execute("SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM charge").fetchall()
assert db.execute("SELECT COUNT(*) FROM payer").fetchall() == [(2 * n,)]
assert db.execute("SELECT spent FROM unit").fetchall() == [(total,)] * (2 * (n > 0))
P
finish
