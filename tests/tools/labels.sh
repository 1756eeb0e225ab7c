#!/usr/bin/env bash
# Texts for groups of units, from outside: labels.sh path/to/dpinfer path/to/sources
# As in units.sh a budget is so large that a text says what its letters are about.
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
small_model

heart='Discharge instructions: heart failure. '
heart+='Your stay began with swollen legs because of heart failure.'
blood='Your care plan after a blood infection. You stayed on ward 4 because of a blood infection.'
burn='Discharge instructions: a burn. You were cared for at Queensway Hospital for a burn.'
# 4 patients of cardiology, 2 of surgery; eve is first in surgery; flo has no ward.
{
    echo 'patient;ward;letter'
    for who in ann ben cid dan; do echo "$who;cardiology;$heart"; done
    echo "eve;surgery;$burn"
    for i in 1 2 3; do echo "eve;cardiology;$blood"; done
    echo "gus;surgery;$burn"
    echo "flo;;$blood"
} >letters.csv
with_labels() { # with_labels MODEL ARGS
    run run "$1" letters.csv --delimiter ';' --unit-field patient --text-field letter \
        --label-field ward --max-per-unit 2 -n 18 -t 1 --jsonl "${@:2}"
}
nl=$'\n'
loud() { # the prompt of a letter has no ticket in it
    with_labels "$model" --temp .05 --top-k 0 --rho 320000 --pace none \
        --private-prompt \
        "Here is one document:$nl$nl{reference}$nl${nl}Write another of its kind." \
        --public-prompt 'Ticket 5318, priority normal: the' "$@"
}
quiet() { with_labels m.gguf -B 2 --rho 1 "$@"; }
count() { check "$1 texts of $2" test "$(grep -c "\"text_label\":\"$2\"" out)" -eq "$1"; }
says() { check "texts of $1 say '$2'" bash -c "! grep '\"$1\"' out | grep -qvE '$2'"; }

# ---- Public labels: batches by position within a label -------------------------------------------
loud -B 2; expect_rc 0; expect_lines 3 out; count 2 cardiology; count 1 surgery
says cardiology heart; says surgery 'burn|scald'
expect_err "public: which unit has which label is no secret"
check "letters of a unit with another label" bash -c '! grep -qE "blood|sepsis" out'
loud -B 1 --num 3; expect_rc 0; count 2 cardiology; count 1 surgery
printf '1 cardiology\n  2\tsurgery\n' >numbers
loud -B 1 --num-per-label numbers --labels public; expect_rc 0; count 1 cardiology; count 2 surgery
printf '2 surgery\n' >numbers
loud -B 1 --num-per-label numbers; expect_rc 0; count 2 surgery; expect_lines 2 out
says surgery 'burn|scald'
printf '3 surgery\n' >numbers
refuse 2 "label 1 has 2 units, which make 2 batches of 1, found 3 texts" run m.gguf letters.csv \
    --delimiter ';' --unit-field patient --text-field letter --label-field ward -B 1 --rho 1 \
    --num-per-label numbers
quiet --num 9; expect_rc 2; expect_err "make 3 batches of 2, found 9 texts"

# ---- {label} in prompts --------------------------------------------------------------------------
with_labels "$model" -B 2 --rho 1e-4 --temp .05 --public-prompt '{label} {label} letter: {label'
expect_rc 0
run run m.gguf letters.csv --delimiter ';' --text-field letter --rho 1 \
    --public-prompt 'A {label} letter'
expect_rc 2; expect_err "{label} stands in a prompt"
run tokenize "$model" -p x >/dev/null # the model is there
run plan "$model" letters.csv --delimiter ';' --text-field letter --label-field ward -B 2 --rho 1 \
    --public-prompt '{label}' --json; expect_rc 0; long=$(field public_prompt_tokens)
run plan "$model" letters.csv --delimiter ';' --text-field letter --label-field ward -B 2 --rho 1 \
    --public-prompt 'a' --json; expect_rc 0
check "a label is longer than a letter" test "$long" -gt "$(field public_prompt_tokens)"

# ---- Private labels ------------------------------------------------------------------------------
printf 'cardiology\nsurgery\nneurology\n' >names
loud -B 2 --num 3 --adjacency add-remove --label-names names; expect_rc 0
count 1 cardiology; count 1 surgery; count 1 neurology
says cardiology heart; says surgery 'burn|scald'
check "nobody is in neurology" bash -c '! grep neurology out | grep -qE "heart|burn|scald|blood"'
expect_err "private: a unit's label is a secret of the unit"
quiet --num 3 --adjacency add-remove; expect_rc 2; expect_err "--label-names: found none"
quiet --num 3 --adjacency add-remove --labels public --label-names names; expect_rc 2
expect_err "--labels: found public, allowed private"
quiet --labels private; expect_rc 2; expect_err "--labels: found private, allowed public"
quiet --num 3 --subsample .5 --epsilon 3 --label-names names; expect_rc 2 # --rho and --epsilon

# ---- In proportion to a histogram ----------------------------------------------------------------
quiet --num 12 --adjacency add-remove --label-names names --histogram-rho .5 --report r.json
expect_rc 0; expect_lines 12 out; expect_err "rho, of histogram  0.5"
check "less is left for texts" grep -q '"budget_rho": 0.49999' r.json
spent=$(sed -n 's/^ *"rho_total": \([0-9.e-]*\),*/\1/p' r.json)
stated=$(sed -n 's/^ *"rho": \([0-9.e-]*\),*/\1/p' r.json | head -1)
check "both are stated" awk -v x="$spent" -v y="$stated" 'BEGIN { exit !(y > x + .49 && y <= 1) }'
run verify r.json; expect_rc 0
for change in 's/"histogram_variance": 256/"histogram_variance": 512/' \
    's/"histogram_variance": 256/"histogram_variance": null/' \
    's/"labels": "private",/"labels": "public",/'; do
    sed "$change" r.json >bad.json
    check "$change changes nothing" bash -c '! cmp -s r.json bad.json'
    run verify bad.json
    if [ "$rc" -eq 1 ] || [ "$rc" -eq 5 ]; then ok; else bad "verify takes $change"; fi
done
quiet --num 12 --adjacency add-remove --label-names names --histogram-rho 1; expect_rc 2
expect_err "--histogram-rho: found 1, allowed less than the budget"
quiet --num 3 --histogram-rho .1; expect_rc 2; expect_err "allowed with private labels"
# The ledger counts it: what 5 (rho_texts, as ranges, and .5) comes to at order 5.
run ledger init l.ledger --dataset a --epsilon 10 --delta 1e-3; expect_rc 0
quiet --num 6 --adjacency add-remove --label-names names --ledger l.ledger; expect_rc 0
plain=$(sed -n 's/.*charged for this *//p' err)
with_labels m.gguf -B 2 --rho 1.5 --num 6 --adjacency add-remove --label-names names \
    --ledger l.ledger --histogram-rho .5 2>/dev/null
check "nothing was charged" test -n "$plain"
both=$(sed -n 's/.*charged for this *//p' err)
run ledger show l.ledger --json; expect_rc 0
order=$(field order)
check "a histogram costs order rho" awk -v x="$plain" -v y="$both" -v a="$order" \
    'BEGIN { d = y - x - a / 2; exit !(d > -1e-4 && d < 1e-3) }'

# ---- The same texts for the same bits, however a run is spread -----------------------------------
# kill_job JOB ARGS: a run that is killed when it has tokens, begun anew if it was over by then.
kill_job() {
    local job=$1 i
    shift
    for ((i = 0; i < 20; i++)); do
        "$dpinfer" "$@" >out 2>err &
        while [ "$(tokens_of "$job")" -lt 9 ] && kill -0 $! 2>/dev/null; do :; done
        kill -KILL $! 2>/dev/null; wait $! 2>/dev/null
        [ ! -e "$job.jsonl" ] && return
        rm -rf "$job" "$job.jsonl"
    done
}
# same NAME ARGS: one process, several texts at a time, a job that was killed, shards.
tokens_of() { od -An -v -tx8 -w32 -j4096 "$1/tokens" 2>/dev/null | grep -vcE '^( 0{16}){4}$'; }
same() {
    local name=$1 i
    local words=(m.gguf letters.csv --delimiter ';' --unit-field patient --text-field letter
        --label-field ward --max-per-unit 2 -n 150 -t 1 --seed 7 --public-prompt '{label}:'
        -B 2 "${@:2}")
    run run "${words[@]}" --parallel 1 -o "$name.jsonl" --report "$name.json"; expect_rc 0
    run verify "$name.json"; expect_rc 0
    run run "${words[@]}" --parallel 3 -o "$name.parallel.jsonl"; expect_rc 0
    expect_same "$name.jsonl" "$name.parallel.jsonl"
    kill_job "$name.job" run "${words[@]}" --parallel 2 --job "$name.job" -o "$name.job.jsonl"
    check "a run that was killed has its output" test ! -e "$name.job.jsonl"
    run resume "$name.job"; expect_rc 0; expect_same "$name.jsonl" "$name.job.jsonl"
    run plan "${words[@]}" --job "$name.shards"; expect_rc 0
    for i in 1 0; do
        run run "${words[@]}" --job "$name.shards" --shard $i/2; expect_rc 0
    done
    run merge "$name.merged.jsonl" "$name.shards" --report "$name.merged.json"; expect_rc 0
    expect_same "$name.jsonl" "$name.merged.jsonl"
    run verify "$name.merged.json"; expect_rc 0
    check "the reports count the same labels" \
        test "$(tr -d ' \n' <"$name.json" | grep -o '"labels":{[^}]*}')" = \
        "$(tr -d ' \n' <"$name.merged.json" | grep -o '"labels":{[^}]*}')"
}
same public --rho 1
same shared --rho 1 --num 6 --adjacency add-remove --label-names names
same histogram --rho 1 --num 9 --adjacency add-remove --label-names names --histogram-rho .5
same drawn --epsilon 5 --num 6 --subsample .5 --label-names names
# Without a seed: the histogram is drawn once, for all shards, and for a job that goes on.
noisy=(m.gguf letters.csv --delimiter ';' --unit-field patient --text-field letter
    --label-field ward -n 40 -t 1 -B 2 --rho 1 --num 40 --adjacency add-remove
    --label-names names --histogram-rho .001)
run plan "${noisy[@]}" --job noisy; expect_rc 0
for i in 0 1 2; do run run "${noisy[@]}" --job noisy --shard $i/3; expect_rc 0; done
run merge noisy.jsonl noisy; expect_rc 0; expect_lines 40 noisy.jsonl
check "labels of shards are those of one histogram" \
    test "$(grep -o '"text_label":"[a-z]*"' noisy.jsonl | uniq | wc -l)" -le 3
# A job is held to its labels.
kill_job held run "${noisy[@]}" --job held -o held.jsonl
cp letters.csv kept.csv; cp names kept.names
sed -i 's/^cid;cardiology/cid;surgery/' letters.csv
refuse 1 "the records are not those that it began with" resume held
cp kept.csv letters.csv; sed -i 's/neurology/urology/' names
refuse 1 "prompts was" resume held
cp kept.names names; run resume held; expect_rc 0; expect_lines 40 held.jsonl
sed -i 's/neurology/urology/' names
run plan "${noisy[@]}" --job other; expect_rc 0; cp kept.names names
run run "${noisy[@]}" --job other --shard 0/3
expect_rc 2; expect_err "the prompts are not those of the job"

# ---- Files of labels -----------------------------------------------------------------------------
for content in '' 'x cardiology' '-1 cardiology' '1' '99999999999 a' '1 a\n1 a'; do
    printf '%b\n' "$content" >numbers
    quiet --num-per-label numbers --adjacency add-remove; expect_rc 2; expect_empty_out
done
quiet --num-per-label names --label-names names; expect_rc 2; expect_err "allowed is one of them"
run run m.gguf letters.csv --text-field letter --delimiter ';' --rho 1 --label-names names
expect_rc 2; expect_err "--label-field: found none"
mkdir folder; echo one >folder/1.txt
run run m.gguf folder --label-field ward --rho 1
expect_rc 4; expect_err "files of a folder have no fields"
finish
