#!/usr/bin/env bash
# Tests of `dpinfer plan`: plan.sh path/to/dpinfer
# What needs the shared data ($DPI_DATA or ../shared/data) is skipped with a message when it is
# absent.
. "$(dirname "$0")/cli_support.sh"
refs=$here/../../examples/refs/stories
data=${DPI_DATA:-$here/../../../shared/data}
model=$data/models/stories260K.gguf
works make-model --type F32 --layers 1 -o made.gguf

# ---- what private prompts share -----------------------------------------------------------------
# Of a base model only BOS stands before the record; else the tokens that no record can merge with.
works plan made.gguf --records 2 --rho 1 --template none --json; near shared_prompt_tokens 1
run plan made.gguf --records 2 --rho 1 --template none --private-prompt 'Text: {reference}' --json
near shared_prompt_tokens "$(for record in The a 1 ' x' $'\n' '"' É; do
    printf 'Text: %s' "$record" | "$dpinfer" tokenize made.gguf --bos
done | awk 'NR == 1 { n = split($0, a) }
    { m = split($0, b); for (i = 1; i <= n && i <= m && a[i] == b[i]; i++); n = i - 1 }
    END { print n }')"
run plan made.gguf --plain --json; expect_out '"shared_prompt_tokens": 0,'

# ---- With the trained model -------------------------------------------------------------------
if [ ! -f "$model" ]; then
    echo "skipped: the tests that need $model"
    finish
fi
works plan "$model" "$refs" --rho 0.5 --pace none --json; near rows_per_step 17; near n_texts 1
near T 64; near K 2097152 1e-6; near weight_bytes 1171200
works plan "$model" --records 100 --rho 0.5 --json; near n_texts 13; near B 8
# No batch has more records than there are.
works plan "$model" --records 5 -B 40 --rho 0.5 --json; near rows_per_step 6; near B 40
expect_err "batches of -B 40 have 5 records at most"
most=$(field session_bytes)
works plan "$model" --records 5 -B 5 --rho 0.5 --json; expect_no_err note
holds "the memory of 5" "$most < 1.5 * $(field session_bytes)"
works plan "$model" --records 40 -B 40 --rho 0.5 --json
holds "the memory of 40" "$(field session_bytes) > 3 * $most"
works plan "$model" --records 100 --rho 0.5; expect_out "memory" "prompt tokens a second" \
    "with records of 300 tokens (--ref-tokens); the longest that fit:"
run plan "$model" --records 20 --rho 0.5 --json
for name in seconds seconds_reading seconds_most step_seconds prompt_tokens_per_second; do
    holds "$name" "$(field $name) > 0"
done
# Longer records and more texts are more to read. Times are measured; times a measured rate they are
# counts again, which hardly depend on how busy the machine is.
prompt_tokens() {
    run plan "$model" --rho 0.5 -t 1 --json "$@"
    awk -v s="$(field seconds_reading)" -v rate="$(field prompt_tokens_per_second)" \
        'BEGIN { print s * rate }'
}
more_than_twice() { # MESSAGE ARGS MORE LESS: tokens of prompts with these options
    # shellcheck disable=SC2086
    holds "$1" "$(prompt_tokens $2 $3) > 2 * $(prompt_tokens $2 $4)"
}
more_than_twice "48 texts and 8" "-B 8 --records 400" "--num 48" "--num 8"
more_than_twice "long records" "-B 8 --records 400 -n 4" "--ref-tokens 600" "--ref-tokens 16"
more_than_twice "units" "--units 100 --max-per-unit 8 -B 16 -n 4" "" "--unit-records 1"
run plan "$model" --records 20 --rho 0.5 --max-ref-tokens 40; expect_out "with records of 40 tokens"
# What C can do: 2C/tau with C = B sqrt(2 rho / T), and a table of what would be heard.
run plan "$model" --records 100 --rho 0.5 -B 32 -n 100 --pace none --json; near factor 601.8 .001
expect_out '"references_are": "well heard"'
run plan "$model" --records 100 --rho 0.5 -B 8 -n 100 --pace none
expect_out "hardly be told from none"
# What a pace buys: a quota of a quarter of the tokens is twice C for the charge, 4 rho for C.
paced=("$model" --records 100 --rho 0.5 --delta 1e-6 -B 32 -n 100 --pace top --pace-theta .9)
run plan "${paced[@]}" --pace-tokens 25 --json; near C 6.4 .001; near clip_without_pace 3.2 .001
without=$(field epsilon_without_pace)
run account --rho 2 --delta 1e-6 --json; near epsilon "$without" 1e-4
run plan "${paced[@]}" --pace-tokens 25; expect_out "C 6.4; without it 3.2 for the same charge"
run plan "$model" --records 100 --rho 0.5 --pace none; expect_count 0 "pace buys" out
works plan --suggest --units 5000 --num 500 --epsilon 5 --delta 1e-5
expect_out "-B 10 -n 64 --num 500: references are heard in texts of this length"
expect_count 1 '\| x \|$' out # one is taken
works plan --suggest --records 5000 --num 500 --epsilon 5 --delta 1e-5 --json; expect_out '"factor"'
# With MODEL each setting has the pace that is found for it, of which C is larger.
set=(--suggest --units 400 --num 20 --epsilon 4 --delta 1e-5 -n 48 --json)
works plan "${set[@]}"; expect_count 0 T_p out; cp out without.json
works plan "$model" "${set[@]}" --pace none; expect_same out without.json
works plan "$model" "${set[@]}"; cp out with.json
python_check "C with the pace of each setting" <<'P'
one, other = load("without.json"), load("with.json")
assert one and len(one) <= len(other) + 3
for x, y in zip(one[:3], other): # all texts and tokens, three batches
    assert (x["B"], x["T"], x["texts"]) == (y["B"], y["T"], y["texts"])
    assert 0 < y["T_p"] <= y["T"] and abs(y["C"] / x["C"] - (y["T"] / y["T_p"]) ** .5) < .01, (x, y)
P
# The time is that of texts as long as the public ones; where those are short, so may -n be.
works plan "$model" --records 100 --rho .5 -n 100 --pace none --json
near usual_text_tokens 100; expect_count 0 longest_public_text out
short=("$model" --records 100 --rho .5 -n 100 --max-words 2)
works plan "${short[@]}" --json; near public_texts_ended 8
holds "the mean" "$(field usual_text_tokens) <= $(field longest_public_text)"
enough=$(field tokens_enough); holds "fewer" "$enough >= 8 && $enough <= 75"
usual=$(field usual_text_tokens)
works plan "${short[@]}"; expect_out "a smaller -n would do for texts like these: -n $enough"
expect_out "texts of $usual tokens"
works plan "$model" --units 100 --max-per-unit 2 -B 5 --rho .5 --parallel 1 --json
near rows_per_step 11; near M 2
# A text for each batch, and no file that has fewer than was wanted.
works plan "$model" --records 153 --rho 1 --num 20 --json; near n_texts 20
fails 2 plan "$model" --records 152 --rho 1 --num 20
works plan "$model" --records 64 --rho 1 -B 3 --num 20 --json; near n_texts 20
refuse 2 "--num: found '500', allowed 1..8: each text has a batch of its own, and 64 records make \
8 batches of 8. 500 texts need 3993 records" run no.gguf "$refs/../discharge" --rho 1 --num 500
refuse 2 "20 texts need 153 records, or batches of at most 3" run no.gguf "$refs/../discharge" \
    --rho 1 --num 20
refuse_each 2 plan <<'END'
--suggest --records 9 --rho 1          | --suggest needs --units N or --records N, and --num
--suggest --records 9 --rho 1 --num 10 | --num: found '10', allowed 1..9
--suggest --records 9 --num 2          | no privacy budget
--suggest --units 400 --num 10 --epsilon 4 --delta .5 | --delta: found 0.5 with 400 records
"$model" "$refs" --units 3 --rho 1     | --units: allowed without REFS
"$model" --records 64 --rho 1 --num 20 | 20 texts need 153 records
"$model" "$refs" --records 3 --rho 1   | REFS and --records
END
works plan "$model" --plain; expect_out "NOT PRIVATE"

finish
