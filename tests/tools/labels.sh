#!/usr/bin/env bash
# Texts for groups of units, from outside: labels.sh path/to/dpinfer path/to/sources
# As in units.sh a budget is so large that a text says what its letters are about.
model=$(readlink -f "$2")/models/dpinfer-4m-q8_0.gguf
# shellcheck source=/dev/null
. "$(dirname "$0")/cli_support.sh"
# shellcheck source=/dev/null
. "$here/letters.sh"
small_model

# 4 patients of cardiology, 2 of surgery; eve is first in surgery; flo has no ward.
{
    echo 'patient;ward;letter'
    for who in ann ben cid dan; do echo "$who;cardiology;$heart"; done
    echo "eve;surgery;$burn"
    for i in 1 2 3; do echo "eve;cardiology;$blood"; done
    echo "gus;surgery;$burn"
    echo "flo;;$blood"
} >letters.csv
of_wards=(letters.csv --delimiter ';' --unit-field patient --text-field letter --label-field ward
    --max-per-unit 2 -t 1)
hidden="--adjacency add-remove --label-names names" # labels that are private
# With a seed, as no draw decides here whether a test fails.
loud() { works run "$model" "${of_wards[@]}" "${loud[@]}" --seed 3 "$@"; }
quiet() { run run m.gguf "${of_wards[@]}" -n 18 --jsonl -B 2 --rho 1 "$@"; }
refused() { # TEXT ARGS
    quiet "${@:2}"; expect_rc 2; expect_err "$1"; expect_empty_out
}
# wrote N WARD [PATTERN]: N texts of a ward, each of which says this.
wrote() {
    expect_count "$1" "\"text_label\":\"$2\"" out
    check "texts of $2 say '${3-}'" bash -c "! grep '\"$2\"' out | grep -qvE '${3-}'"
}

# ---- Public labels: batches by position within a label -------------------------------------------
loud -B 2; expect_lines 3 out; wrote 2 cardiology heart; wrote 1 surgery 'burn|scald'
expect_err "public: which unit has which label is no secret"
expect_count 0 'blood|sepsis' out # letters of a unit with another label
loud -B 1 --num 3; wrote 2 cardiology; wrote 1 surgery
printf '1 cardiology\n  2\tsurgery\n' >numbers; windows_text numbers
loud -B 1 --num-per-label numbers --labels public; wrote 1 cardiology; wrote 2 surgery
printf '2 surgery\n' >numbers
loud -B 1 --num-per-label numbers; expect_lines 2 out; wrote 2 surgery 'burn|scald'
printf '3 surgery\n' >numbers
refuse 2 "the label 'surgery' has 2 units, which make 2 batches of 1, found 3 texts" run m.gguf \
    "${of_wards[@]:0:9}" -B 1 --rho 1 --num-per-label numbers
refused "make 3 batches of 2, found 9 texts" --num 9

# ---- {label} in prompts --------------------------------------------------------------------------
works run "$model" "${of_wards[@]}" -n 18 --jsonl -B 2 --rho 1e-4 --temp .05 \
    --public-prompt '{label} {label} letter: {label'
fails 2 run m.gguf letters.csv --delimiter ';' --text-field letter --rho 1 \
    --public-prompt 'A {label} letter'
expect_err "{label} stands in a prompt"
tokens_with() { # PROMPT
    run plan "$model" letters.csv --delimiter ';' --text-field letter --label-field ward -B 2 \
        --rho 1 --public-prompt "$1" --json
    field public_prompt_tokens
}
holds "a label is longer than a letter" "$(tokens_with '{label}') > $(tokens_with a)"
# What the label means stands in prompts, and in no output.
printf 'surgery\tburns and broken bones\ncardiology\n' >meanings; windows_text meanings
works run "$model" "${of_wards[@]}" -n 18 --jsonl -B 1 --rho 1 --num 2 --label-names meanings \
    --public-prompt '{label}:' --seed 3 --report meanings.json
wrote 1 surgery .; wrote 1 cardiology .
check "the report counts labels" grep -q '"surgery"' meanings.json
check "the report says no meaning" bash -c '! grep -q broken meanings.json'
long=$(tokens_with '{label}'); run plan "$model" letters.csv --delimiter ';' --text-field letter \
    --label-field ward -B 2 --rho 1 --public-prompt '{label}' --json --label-names meanings
holds "a meaning is longer than a label" "$(field public_prompt_tokens) > $long"
printf 'surgery\t \n' >bad; refused "bad: line 1 has a TAB and no description" --label-names bad
printf 'surgery\ta\nsurgery\tb\n' >bad; refused "label 2 is blank, or there twice" \
    --label-names bad --public-prompt '{label}'

# ---- Private labels ------------------------------------------------------------------------------
printf 'cardiology\nsurgery\nneurology\n' >names; windows_text names
# shellcheck disable=SC2086
loud -B 2 --num 3 $hidden
wrote 1 cardiology heart; wrote 1 surgery 'burn|scald'; wrote 1 neurology
check "nobody is in neurology" bash -c '! grep neurology out | grep -qE "heart|burn|scald|blood"'
expect_err "private: a unit's label is a secret of the unit"
while IFS='|' read -r options text; do
    # shellcheck disable=SC2086
    refused "$text" $options
done <<END
--num 3 --adjacency add-remove|--label-names: found none
--num 3 --labels public $hidden|--labels: found public, allowed private
--labels private|--labels: found private, allowed public
--num 3 --subsample .5 --epsilon 3 --label-names names|--rho and --epsilon
--num 12 $hidden --histogram-rho 1|--histogram-rho: found 1, allowed less than the budget
--num 3 --histogram-rho .1|allowed with private labels
--num-per-label names --label-names names|allowed is one of them
END

# ---- In proportion to a histogram ----------------------------------------------------------------
# shellcheck disable=SC2086
quiet --num 12 $hidden --histogram-rho .5 --report r.json
expect_rc 0; expect_lines 12 out; expect_err "rho, of histogram  0.5"
expect_line r.json '"budget_rho": 0\.49999' # less is left for texts
cp r.json out; spent=$(field rho_total)
holds "both are stated" "$(field rho) > $spent + .49 && $(field rho) <= 1"
works verify r.json
for change in 's/"variance": 256/"variance": 512/' 's/"variance": 256/"variance": null/' \
    's/"labels": "private",/"labels": "public",/'; do
    sed "$change" r.json >bad.json; expect_different r.json bad.json
    run verify bad.json; check "verify takes $change" [ "$rc" -eq 1 -o "$rc" -eq 5 ]
done
# The ledger counts it: what 5 (rho_texts, as ranges, and .5) comes to at order 5.
works ledger init l.ledger --dataset a --epsilon 10 --delta 1e-3
for histogram in "--rho 1" "--rho 1.5 --histogram-rho .5"; do
    # shellcheck disable=SC2086
    works run m.gguf "${of_wards[@]}" -n 18 -B 2 --num 6 $hidden --ledger l.ledger $histogram
    sed -n 's/.*charged for this *//p' err >>charges
done
works ledger show l.ledger --json
cost="$(sed -n 2p charges) - $(sed -n 1p charges) - $(field order) / 2"
holds "a histogram costs order rho" "$cost > -1e-4 && $cost < 1e-3"

# ---- The same texts for the same bits, however a run is spread -----------------------------------
# kill_job JOB ARGS: a run that is killed when it has tokens, begun anew if it was over by then.
kill_job() {
    local job=$1 i
    shift
    for ((i = 0; i < 100; i++)); do
        "$dpinfer" "$@" >out 2>err &
        while [ "$(tokens_of "$job")" -lt 9 ] && kill -0 $! 2>/dev/null; do :; done
        kill -KILL $! 2>/dev/null; wait $! 2>/dev/null
        [ ! -e "$job.jsonl" ] && return
        rm -rf "$job" "$job.jsonl"
    done
}
# same NAME ARGS: one process, several texts at a time, a job that was killed, shards.
same() {
    local name=$1 i
    local words=(m.gguf "${of_wards[@]}" -n 150 --seed 7 --public-prompt '{label}:' -B 2 "${@:2}")
    works run "${words[@]}" --parallel 1 -o "$name.jsonl" --report "$name.json"
    works verify "$name.json"
    works run "${words[@]}" --parallel 3 -o "$name.parallel.jsonl"
    kill_job "$name.job" run "${words[@]}" --parallel 2 --job "$name.job" -o "$name.job.jsonl"
    expect_none "$name.job.jsonl"
    works resume "$name.job"
    works plan "${words[@]}" --job "$name.shards"
    for i in 1 0; do works run "${words[@]}" --job "$name.shards" --shard $i/2; done
    works merge "$name.merged.jsonl" "$name.shards" --report "$name.merged.json"
    for i in parallel job merged; do expect_same "$name.jsonl" "$name.$i.jsonl"; done
    works verify "$name.merged.json"
    check "the reports count the same labels" \
        test "$(tr -d ' \n' <"$name.json" | grep -o '"labels":{[^}]*}')" = \
        "$(tr -d ' \n' <"$name.merged.json" | grep -o '"labels":{[^}]*}')"
}
# shellcheck disable=SC2086
{
    same public --rho 1
    same shared --rho 1 --num 6 $hidden
    same histogram --rho 1 --num 9 $hidden --histogram-rho .5
    same drawn --epsilon 5 --num 6 --subsample .5 --label-names names
}
# Without a seed: the histogram is drawn once, for all shards, and for a job that goes on.
# shellcheck disable=SC2206
noisy=(m.gguf "${of_wards[@]:0:9}" -n 40 -t 1 -B 2 --rho 1 --num 40 $hidden --histogram-rho .001)
works plan "${noisy[@]}" --job noisy
for i in 0 1 2; do works run "${noisy[@]}" --job noisy --shard $i/3; done
works merge noisy.jsonl noisy; expect_lines 40 noisy.jsonl
check "labels of shards are those of one histogram" \
    test "$(grep -o '"text_label":"[a-z]*"' noisy.jsonl | uniq | wc -l)" -le 3
# A job is held to its labels.
kill_job held run "${noisy[@]}" --job held -o held.jsonl
cp letters.csv kept.csv; cp names kept.names
sed -i 's/^cid;cardiology/cid;surgery/' letters.csv
refuse 1 "the records are not those that it began with" resume held
cp kept.csv letters.csv; sed -i 's/neurology/urology/' names
refuse 1 "labels was" resume held
cp kept.names names; works resume held; expect_lines 40 held.jsonl
sed -i 's/neurology/urology/' names
works plan "${noisy[@]}" --job other; cp kept.names names
fails 2 run "${noisy[@]}" --job other --shard 0/3; expect_err "the prompts are not those of the job"

# ---- Files of labels -----------------------------------------------------------------------------
for content in '' 'x cardiology' '-1 cardiology' '1' '99999999999 a' '1 a\n1 a'; do
    printf '%b\n' "$content" >numbers
    refused "" --num-per-label numbers --adjacency add-remove
done
fails 2 run m.gguf letters.csv --text-field letter --delimiter ';' --rho 1 --label-names names
expect_err "--label-field: found none"
mkdir folder; echo one >folder/1.txt
fails 4 run m.gguf folder --label-field ward --rho 1; expect_err "files of a folder have no fields"
finish
