#!/usr/bin/env bash
# What a run lets out beside its texts, and whether it fails, must not depend on records:
# path.sh path/to/dpinfer
. "$(dirname "$0")/process_support.sh"
small_model

# ---- Numbers of records ------------------------------------------------------------------------
# numbered NAME N NULLS: NAME.jsonl with N records, of which the last NULLS are null.
numbered() {
    seq "$2" | awk -v n=$(($2 - $3)) '{
        print "{\"text\": \"" ($1 > n ? "" : "Record " $1 ".") "\"}" }' >"$1.jsonl"
}
numbered none 0 0
numbered one 1 0
numbered some 7 2
numbered null 9 9
numbered many 60 20
printf 'text\n' >header.csv
mkdir -p empty
: >empty/notes.md
run_secret() { run run m.gguf "$1" -B 3 --num 2 -n 3 -t 1 --delta 1e-6 "${@:2}"; }
for how in "--adjacency add-remove --rho .5" "--subsample .5 --epsilon 3" \
    "--subsample .5 --epsilon 3 --adjacency add-remove" \
    "--adjacency add-remove --epsilon 3 --accountant filter --method invisibleink" \
    "--adjacency add-remove --rho 50 --method amin"; do
    rm -rf kept
    for refs in some.jsonl none.jsonl one.jsonl null.jsonl many.jsonl header.csv empty; do
        case $refs in
        header.csv | empty) [[ $how == *amin* || $how == *filter* ]] && continue ;;
        esac
        # shellcheck disable=SC2086
        run_secret $refs $how --jsonl --overwrite --report r.json --report r.md -o texts.jsonl
        expect_rc 0
        expect_lines 2 texts.jsonl
        sed -i '/note: [0-9]* of 2 texts /d' err # of released texts
        expect_no_err "note:"                    # of what is in the records
        # What a record is, is public: one line, one row, one file.
        sed -i -E 's/one (line of a .jsonl|row of a .csv|.txt) file/one record/' err r.json r.md
        # The texts are released; all else is the same.
        sed -i '/^  "output": {/,/^  }/d' r.json; sed -i '/SHA-256 of the output\|The texts:/d' r.md
        sed -i '/claim_sha256\|claim\\_sha256/d' r.json r.md # which has what a record is
        [ -e kept ] || { mkdir kept; cp err r.json r.md kept; }
        for file in err r.json r.md; do expect_same kept/$file $file; done
    done
done
# By position their number is public, and where none is there is no run.
refuse 4 "none.jsonl holds no record" run m.gguf none.jsonl --rho .5
# Progress on a terminal.
if command -v script >/dev/null; then
    for refs in some.jsonl many.jsonl; do
        script -qec "'$dpinfer' run m.gguf $refs -B 3 --num 2 -n 3 -t 1 --rho .5 \
            --adjacency add-remove --overwrite -o texts.txt" /dev/null >err </dev/null
        rc=$?
        last="progress of $refs on a terminal"
        expect_rc 0
        expect_err "reading the prompts"
        sed -i '/note: [0-9]* of 2 texts /d' err
        check "it counts prompts" test "$(grep -cE 'prompts, [0-9]|[0-9] of [0-9]' err)" -eq 0
    done
fi

# ---- Records that cannot be read -----------------------------------------------------------------
# The same slots with a record in each of the ways that it may be null: the same texts and messages.
run_by_position() {
    run run m.gguf "$1" -B 2 -n 3 -t 1 --rho 5 --seed 3
    expect_rc 0
    expect_err "1 of 5 records are empty or unreadable"
    sed -i -E 's/one (line of a .jsonl|row of a .csv|.txt) file/one record/' err
    cat out err >"$2"
}
rows=0
for row in '""' '"open' 'a "b" c' '   ' '"a" b' 'a"'; do
    printf 'text\nFirst one.\nSecond one.\n%s\n"Fourth one."\nFifth one.\n' "$row" >rows.csv
    rows=$((rows + 1))
    run_by_position rows.csv "row.$rows"
    expect_same row.1 "row.$rows"
done
for line in '{"text": ""}' '' '{"text": "open' '[1]' 'null' '{"text": 3}' '{"other": "x"}'; do
    printf '%s\n' '{"text": "First one."}' '{"text": "Second one."}' "$line" \
        '{"text": "Fourth one."}' '{"text": "Fifth one."}' >lines.jsonl
    run_by_position lines.jsonl line
    expect_same row.1 line
done
mkdir folder
for i in 1 2 3 4 5; do
    sed -n "${i}s/.*\"\(.* one.\)\".*/\1/p" lines.jsonl | tr -d '\n' >folder/$i.txt
done
run_by_position folder file; expect_same row.1 file
rm folder/3.txt; ln -s nowhere folder/3.txt
run_by_position folder file; expect_same row.1 file
# Longer than the context, of bytes that are no text: not null, and no failure.
head -c 300000 m.gguf >folder/2.txt
works run m.gguf folder -B 2 -n 3 -t 1 --rho 5

# ---- Delta -------------------------------------------------------------------------------------
# It is held against public numbers: the records of a release by position, else the expected ones,
# or a bound on their number that the operator states: what there is, is not looked at.
refuse 2 "delta: found 0.2" run m.gguf some.jsonl --epsilon 1 --delta .2
for refs in one.jsonl many.jsonl; do # 2 texts of 3, and by q = .5
    texts=(run m.gguf $refs -B 3 --num 2 -n 3 -t 1 --epsilon 3)
    works "${texts[@]}" --delta .1 --adjacency add-remove
    refuse 2 "delta: found 0.2" "${texts[@]}" --delta .2 --adjacency add-remove
    refuse 2 "delta: found 0.1" "${texts[@]}" --delta .1 --subsample .5
    refuse 2 "delta: found 0.01 with 200 records" "${texts[@]}" --delta .01 \
        --adjacency add-remove --records 200
    works "${texts[@]}" --delta .01 --subsample .5 --records 50
done
refuse 2 "REFS and --records" run m.gguf some.jsonl --rho 1 --records 9

# ---- Reports that were made up -------------------------------------------------------------------
works run m.gguf some.jsonl -B 3 -n 3 -t 1 --epsilon 1 --delta 1e-5 --report good.json
works verify good.json
# forge KEY VALUE: good.json with another value, which verify must not take.
forge() {
    sed -E "s/(\"$1\": )[^,]*(,?)\$/\1$2\2/" good.json >forged.json
    check "$1 is not in the report" bash -c '! cmp -s good.json forged.json'
    run verify forged.json
    last="verify with $1 $2"
    if [ "$rc" -eq 1 ] || [ "$rc" -eq 5 ]; then ok; else bad "$last: taken (exit code $rc)"; fi
}
while read -r keys values; do
    for key in ${keys//,/ }; do
        for value in $values; do forge "$key" "$value"; done
    done
done <<'END'
delta 0 0.0 -0.0 1 1.0 1.5 2 -1 -1e-5 1e-400 1e999 NaN null "1e-5" [] true
budget_epsilon 0 -1 1e-300 1e7 Infinity null "1"
budget_rho -1 -0.5 0 1
rho_total,rho_token,eta,epsilon,rho 0 -1 NaN null
T,B,runs,top_k,n_vocab 0 -1 2147483648 1e3 null
n_units 0 -1 2147483648 1e3
top_k 99
subsample .5
clip 2
private false
adjacency "add-remove"
randomness "seed"
mechanism "amin"
END
# A guarantee that no section of its own has.
sed 's/"statement": {/"statement": {\n    "guarantee": "(0, 0)-DP",/' good.json >forged.json
run verify forged.json; expect_rc 1; expect_err "statement.guarantee"

# ---- A model's name is free text -----------------------------------------------------------------
# rename NAME: named.gguf, whose general.name is NAME and spaces.
name='random weights, 1 layers of 32'
run inspect m.gguf; expect_out "$name"
rename() {
    local offset
    offset=$(grep -obUaF -- "$name" m.gguf | head -n 1 | cut -d : -f 1)
    cp m.gguf named.gguf
    printf '%-*s' ${#name} '' | dd of=named.gguf bs=1 seek="$offset" conv=notrunc status=none
    printf '%b' "$1" | dd of=named.gguf bs=1 seek="$offset" conv=notrunc status=none
}
no_controls() {
    check "control characters" test "$(grep -cP '[\x00-\x08\x0b-\x1f\x7f]' "$1")" -eq 0
}
unseen='\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]|\xe2\x81[\xa6-\xa9]'
hostile=('\033[2J\033[1;1Hnice' 'x\n  guarantee' 'a\r\n**PRIVATE**' '| a | b |' '<b onx=1>'
    '\0302\0233[2J'
    '\0342\0200\0256evirp' '\0342\0200\0250line' '\0377\0376' '[x](http:y)' '`# a`' '\0177\010\010')
for text in "${hostile[@]}"; do
    rename "$text"
    rm -f n.json n.md
    run run named.gguf some.jsonl -B 3 -n 3 -t 1 --rho .5 --report n.json --report n.md
    last="a model with the name $text"
    expect_rc 0
    expect_no_err "$name"
    no_controls err
    for file in err n.json n.md; do
        check "C1, separators or directions in $file" test "$(grep -cP "$unseen" $file)" -eq 0
    done
    check "one guarantee" test "$(grep -c '^  guarantee ' err)" -eq 1
    check "markup in Markdown" test "$(grep -E '^- \*\*Model:' n.md | sed 's/^- \*\*Model:\*\*//' |
        grep -cE '(^|[^\\])[][`*<>#|]')" -eq 0
    for command in "verify n.json --model named.gguf" "plan named.gguf --records 9 --rho .5" \
        "inspect named.gguf"; do
        # shellcheck disable=SC2086
        works $command; no_controls out
    done
done

# ---- Who may be in what is done outside: only units that have paid ------------------------------
works ledger init units.ledger --dataset d --epsilon 1 --delta 1e-5 --scope unit
printf 'first\n' >first.ids
printf 'first\nsecond\n' >both.ids
works ledger charge units.ledger --rho .02 --unit-ids first.ids --payers first.pays
works ledger charge units.ledger --rho .02 --unit-ids both.ids --payers both.pays
expect_same first.pays first.ids
check "a unit that has not paid may take part" test "$(cat both.pays)" = second

finish
