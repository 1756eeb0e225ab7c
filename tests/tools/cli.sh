#!/usr/bin/env bash
# Tests of the command line: cli.sh path/to/dpinfer
# Exit codes, stdout and stderr of every command. What needs the shared data ($DPI_DATA or
# ../shared/data) is skipped with a message when it is absent.
. "$(dirname "$0")/cli_support.sh"
refs=$here/../../examples/refs/stories
data=${DPI_DATA:-$here/../../../shared/data}
model=$data/models/stories260K.gguf

# ---- Help, version, bad command lines ---------------------------------------------------------
works --version; expect_out "dpinfer "
refuse 2 "Usage:"
works -h; expect_out "dpinfer run model.gguf"
for c in run resume plan ledger account inspect tokenize logits quantize make-model bench verify \
    audit finetune generate pretrain demo perturb attack serve infer eval augpe records; do
    works "$c" -h; expect_out "Usage: dpinfer $c" "Exit codes:"
    # Nothing stands in place of an argument that the command does not take.
    [[ $(tr -s ' \n' ' ' <out) != *"instead of MODEL"* ]] || expect_line out 'Usage: .*MODEL'
    [[ $(tr -s ' \n' ' ' <out) != *"instead of the argument"* ]] ||
        expect_line out 'Usage: .*(MODEL|IN )'
    options=$(grep -oE -- '^(  -., |      )--[a-z-]*' out | grep -o -- '--[a-z-]*' | sort)
    check "no options" grep -qx -- '--help' <<<"$options"
    twice=$(uniq -d <<<"$options")
    check "options that stand there twice: $twice" [ -z "$twice" ]
done
# run and plan have headings, and what the library's methods take.
for c in run plan; do
    works "$c" -h; expect_out "(invisibleink|amin|adapmixed|tang; default" "--public-top-k N" \
        "amin: noise of the threshold" "--screen-sigma X"
    for heading in Budget: Data: Prompt: Output: Expert: '.* --top-k N'; do
        expect_count 1 "^$heading" out
    done
    expect_count 0 '--(threshold|sigma) ' out # older spellings
    check "an option's line beyond 80 columns" \
        [ -z "$(sed -n '/^Budget/,$p' out | grep -E '^.{81}')" ]
done
refuse_each 2 <<'END'
walk                       | 'walk' is not a command
run --walk                 | '--walk' is not an option here
run -z                     | '-z' is not an option here
run --tmep 1               | '--tmep' is not an option here: did you mean --temp?
run --public-promt-file x  | did you mean --public-prompt-file?
account --epslion 1        | did you mean --epsilon?
run -p x   | '-p' is not an option here: the prompt without a record is --public-prompt TEXT
run -qf x                  | '-f' is not an option here: a file with
plan -s 1                  | '-s' is not an option here: reproducible text, which is NOT PRIVATE
account -s 1               | '-s' is not an option here; see 'dpinfer account -h'
run --quiet=1              | '--quiet=1' takes no value
account --rho 1 --rho 2    | --rho is given more than once
run no.gguf refs -- --rho  | unexpected argument '--rho'
run m.gguf r --rho         | '--rho' needs a value
run                        | no MODEL given
run no.gguf                | no REFS given
run no.gguf --rho 1        | no REFS given
run no.gguf refs           | no privacy budget: give --rho
run no.gguf --plain --rho 1 | leave out --rho
run no.gguf --plain --public-top-k 3 | --public-top-k is allowed only with --method amin
run no.gguf --plain --accountant br | leave out --accountant
run no.gguf refs --rho 0   | --rho: found '0', allowed 0 < x <= 1e+06
run no.gguf refs --rho inf | --rho: found 'inf', allowed
run no.gguf refs --epsilon 0 | --epsilon: found '0', allowed
run no.gguf refs --epsilon=-1 | --epsilon: found '-1', allowed
run no.gguf refs --epsilon 1e7 | --epsilon: found '1e7', allowed 0 < x <= 1e+06
run no.gguf refs --epsilon 1 --subsample .5 -B 3 | -B and --num must be given
END
works account --rho 1 --json --json # a flag twice says the same
DPI_ISA=sse refuse 2 "DPI_ISA: found 'sse', allowed" run no.gguf refs --rho 1
# Options are spelled in full, and a value is given once.
for word in --i- --i-know --i-know-this-is-not-d --see=7 --plai --eps=1 --rh --private-p --over; do
    refuse 2 "'$word' is not an option here" run no.gguf refs --rho 1 "$word"
done
for twice in "--rho 1 --rho 2" "--rho 1 --rho=1" "--epsilon 1 --epsilon 1" \
    "--delta 1e-6 --delta 1e-7" "-B 4 --batch 5" "-B4 -B5" "--accountant br --accountant zcdp" \
    "--adjacency add-remove --adjacency add-remove" "--subsample .1 --subsample .2" \
    "--clip 1 --clip 2" "-n 4 --n-predict 5" "--temp 1 --temp 2" "--num 1 --num 2" \
    "--seed 1 --seed 2" "--method amin --method invisibleink" "-c 100 -c 200" "-o a -o b"; do
    # shellcheck disable=SC2086
    refuse 2 "is given more than once" run no.gguf refs $twice
done
# Values are refused, with the allowed range, before the model (which does not exist) is opened.
while IFS='|' read -r option values range; do
    eval "values=($values)"
    for value in "${values[@]}"; do
        refuse 2 "--$option: found '$value', allowed $range" run no.gguf refs --rho 1 \
            "--$option" "$value"
    done
done <<'END'
temp|x -1 nan 0x1 '' 0|0.01..100
delta|1|0 < x < 1
batch|0 4097 8.5 99999999999999999999|1..4096
parallel|0|1..4096
template|vicuna|auto|none|zephyr
kv|f|f16|f32
isa|sse|auto|ref|avx2|avx512|neon|dotprod|i8mm
pace|fast|none|top|change|share|auto
subsample|1.5|0 < x <= 1
top-k|-1|1..262144, or 0 (all)
END
# Parameters of methods: by their names and older ones, in any order, and of that method alone.
refuse_each 2 run no.gguf refs --rho 1 <<'END'
x                | unexpected argument 'x'
--epsilon 3      | --rho and --epsilon: allowed is one of them
--reference 1    | --reference is allowed only with --plain
-qB0             | --batch: found '0', allowed 1..4096
-n 0             | --n-predict: found '0', allowed 1..1048576
-t 0             | --threads: found '0', allowed 1..1024
--adjacency add-remove --num 3 | -B and --num must be given
--top-k 10 --top-k 20 | --top-k is given more than once
--method adapmixed | adapmixed is for comparison alone
--method amin --i-know-this-is-not-dp | only with a method that guarantees nothing, found amin
--method amin --svt-threshold 1 --svt-sigma 1 --sigma 2 | --svt-sigma is given more than once
--svt-sigma 1001 --svt-threshold 1 --method amin | --svt-sigma: found '1001', allowed 1e-06..1000
--method amin --threshold 1 --sigma x | --sigma: found 'x', allowed 1e-06..1000
--sigma -1 --method adapmixed --i-know-this-is-not-dp | --sigma: found '-1', allowed 0 < x <= 1e+06
--method amin --threshold 1 | --svt-threshold needs --svt-sigma
--method amin --svt-sigma 1 | --svt-sigma needs --svt-threshold
--sigma 1        | --sigma is allowed only with --method amin or adapmixed
--private-tokens 3 | --private-tokens is allowed only with --method amin
--method amin --screen-sigma 3 | --screen-sigma is allowed only with --method adapmixed
END
refuse_each 2 run no.gguf "$refs" --rho 1 <<'END'
--private-prompt "Write."           | found 0 times {reference}
--private-prompt "{reference} {reference}" | found 2 times {reference}
--public-prompt "{reference}"       | --public-prompt: found {reference}
--system a --system-file b          | allowed is one of them
--query a --public-prompt b         | --query and --public-prompt: allowed is one of them
--query a --private-prompt "{reference} a" | --query and --private-prompt: allowed is one of them
--query a --query-file b            | --query and --query-file: allowed is one of them
--query " "                         | --query: found no text
--query "{reference}: who is it?"   | --query: found {reference}
--query-file none.txt               | --query-file: cannot read none.txt
--system-file none.txt              | --system-file: cannot read none.txt
END

# ---- Records and model files that are refused -------------------------------------------------
mkdir empty folder
echo text >plain.txt
: >none.jsonl
: >zero.csv
printf 'name,body\nx,y\n' >columns.csv
printf 'text,id,text\nx,1,y\n' >twice.csv
printf 'te"xt\na\n' >open.csv
refuse_each 4 run no.gguf --rho 1 <<'END'
nowhere      | cannot open the records nowhere
empty        | no file whose name ends in .txt
plain.txt    | a .txt file is one record of its folder
none.jsonl   | none.jsonl holds no record
zero.csv     | zero.csv is empty: a .csv begins with a header row
columns.csv  | no column 'text' in the header row (--text-field)
twice.csv    | has the column 'text' more than once
open.csv     | is not RFC 4180
END
printf 'text\n"open\n' >open.csv # a record's quote is the record's affair
printf '\xef\xbb\xbftext\na\n' >mark.csv
for i in $(seq 20); do echo '{"text": "a"}'; done >twenty.jsonl
echo "this is not a model" >bad.gguf
for records in open.csv mark.csv "$refs"; do refuse 3 "no.gguf" run no.gguf "$records" --rho 1; done
refuse 2 "--delta: found 0.05 with 20 records, allowed less than 1 / number of records = 0.05" \
    run no.gguf twenty.jsonl --rho 1 --delta 0.05
refuse 3 "bad.gguf" run bad.gguf "$refs" --rho 1; expect_err "(at byte 0)"
for command in inspect tokenize; do refuse 3 "bad.gguf" $command bad.gguf; done

# ---- Accounting: the tables of the privacy specification, which test_account.c and test_plan.c
# have in full -----------------------------------------------------------------------------
# shellcheck disable=SC2086
while IFS='|' read -r options fields; do # NAME=VALUE=PRECISION, that of the table's digits
    works account $options --json
    for field in $fields; do near ${field//=/ }; done
done <<'END'
--rho 0.1 --delta 1e-5|epsilon=1.914239=1e-6
--rho 5|epsilon=20.551949=1e-7
--epsilon 3 --delta 1e-9|rho=.120582=1e-5
--epsilon 10|rho=1.53928=1e-5
--rho 2 --epsilon 10|delta=4.872631e-5=1e-6
--sigma 1 --sampling .01 --steps 1000 --delta 1e-5|epsilon_pld=1.828237=1e-5 epsilon_rdp=2.101=1e-2
--sigma 4 --steps 50 --delta 1e-5|epsilon_pld=8.595866=1e-6
--epsilon 2.675035 --sampling .1 --steps 100 --delta 1e-6|sigma_pld=2=1e-5
--epsilon 10 --adjacency zero-out -n 500 -B 7 --temp 1.1|C=.302099053=1e-8
END
# Out of reach of Renyi orders; the exact sigma of one Gaussian by its two tails (Balle, Wang 2018).
works account --epsilon 1e-4 --sampling 1 --steps 1 --delta 1e-12 --json
expect_err "one accountant has no sigma"; near sigma_pld 50120.33 1e-4; expect_count 0 sigma_rdp out
row() {
    works account --epsilon "$1" -n "$2" -B "$3" --temp "$4" --json
    near C "$5" 1e-8; near a "$6" 1e-15; near K "$7" 1e-15; near eta "$8" 1e-10
    near rho_total "$9" 1e-10; near epsilon_realised "${10}"
}
row 1 500 7 1.1 .0760017232 50294870 79693 .0197405628274 .0243556137964 .9999921611
row 10 100 127 1.0 22.2831897 3049374 23365618 .350916371518 1.53927874749 9.999999937
works account --rho 0.5; expect_out "5.2215"
refuse_each 2 account <<'END'
--epsilon 1e-9 --sampling 1 --steps 1 --delta 1e-12 | sigma 1e+06 is not enough
--sigma 1 --rho 1        | --rho: not allowed with --sigma
--sigma 1 --epsilon 1    | allowed is one of them
                         | give --rho, or --epsilon
--rho 1 --epsilon 1 --delta 1e-6 | the third is computed
--rho 1 -n 10            | allowed are all three, or none
--epsilon 1 --adjacency zero-out --subsample .5 -n 9 -B 7 --temp 1 | nothing is amplified
--rho 1 --clip 2 -n 9 -B 7 --temp 1 | only the accountant filter leaves it free
--rho 1 --accountant br  | need -n, -B and --temp
--rho 1 --accountant rdp | --accountant: found 'rdp', allowed zcdp|br|filter
END
"$dpinfer" account --rho 1 >/dev/full 2>err; rc=$?; last="account >/dev/full"; : >out
expect_rc 1; expect_err "cannot write standard output"

# Other accountants: the gains of the tables (exact composition: 1/256 more than with N = 256).
gains() { # EPSILON T BR SUBSAMPLE_0.1
    works account --epsilon "$1" -n "$2" -B 8 --temp 1 --subsample 0.1 --json
    near gain_br "$3" 6e-3; near gain_zcdp_subsample "$4" 1e-6
}
gains 1 100 1.069 2.9444162; gains 3 100 1.062 1.8019190; gains 5 100 1.059 1.5079892
gains 10 100 1.054 1.2746587
works account --epsilon 10 --accountant br -n 500 -B 7 --temp 1.1 --json
near gain_br 1.050 4e-3; near C "$(field C_br)" 1e-12; near epsilon_realised 10 5e-6
run account --epsilon 1 --accountant filter --clip 3 -n 500 -B 7 --temp 1.1 --json; near C 3 1e-12
near C_filter "$(awk -v c="$(field C_zcdp)" 'BEGIN { printf "%.17g", 2 * c }')" 1e-12

# ---- With the trained model -------------------------------------------------------------------
if [ ! -f "$model" ]; then
    echo "skipped: the tests that need $model"
    finish
fi
tell() { works run "$model" "$refs" "$@"; }
planned() { works plan "$model" "$refs" "$@"; }

tell --rho 0.5 --pace none; check "no text" test -s out
expect_err "InvisibleInk" "replace-by-null" "one record = one .txt file" "0.5-zCDP" "1e-06" \
    "getrandom(2)" "B, slots a text    16" "parallel over disjoint batches"
expect_no_err "NOT PRIVATE"; expect_no_err "empty or unreadable"

# Plain, greedy: the text that this model is known for.
works run "$model" --plain --temp 0 -n 29 -c 512 \
    --public-prompt "Once upon a time, there was a little girl named Lily."
expect_out "She loved to play outside in the park. One day, she saw a big, red ball."
check "NOT PRIVATE at start and end" test "$(grep -c 'NOT PRIVATE' err)" -ge 2
works run "$model" --plain --temp 0
expect_out "Once upon a time, there was a little girl named Lily. She"
tell --plain --reference 1 --temp 0 -n 8 --jsonl --report plain.json
expect_out '"private":false' "NOT PRIVATE"; expect_line plain.json '"private": false'
refuse 2 "--reference: found '17', allowed 1..16" run "$model" "$refs" --plain --reference 17

# A seed reproduces a run, whatever the threads; it is never private.
seeded() { works run "$model" "$@" --seed 7 -n 12 -c 256; }
# again ARGS: the text is that of before, in `a`.
again() { seeded "$@"; expect_same out a; }
seeded "$refs" --rho 20 -B 8; cp out a; expect_err "NOT PRIVATE"
again "$refs" --rho 20 -B 8 -t 1
again "$refs" --rho 20 -B 8 --no-mmap --quiet; expect_err "NOT PRIVATE"
# As many texts at a time as it likes: they come in their order, and are the same ones.
for form in "" --jsonl; do
    seeded "$refs" --rho 20 -B 2 --num 3 --parallel 1 $form; cp out one
    for n in 2 3 8; do
        seeded "$refs" --rho 20 -B 2 --num 3 --parallel $n $form; expect_same out one
    done
done
refuse 2 "--parallel: found '2', allowed 1..1 with texts of 4097 sequences" run "$model" "$refs" \
    --rho 1 -B 4096 --num 2 --adjacency add-remove --parallel 2
fails 2 run "$model" -m "$model" "$refs" --rho 20 -B 8 --seed 7 -n 12 -c 256
works run -m "$model" "$refs" --rho 20 -B 8 --seed 7 -n 12 -c 256; expect_same out a
tell --rho 20 -B 8 --seed 8 -n 12 -c 256; expect_different out a
tell --rho 20 -B 8 -n 12 -c 256 -o text.out; expect_empty_out
check "text.out" test -s text.out

# The same three records in three forms give the same text.
mkdir three
printf 'The cat, the "big" one, sat.\n' >three/a.txt
printf 'A dog ran\nfar away.\n' >three/b.txt
printf 'The end.' >three/c.txt
printf '%s\n' '{"text":"The cat, the \"big\" one, sat."}' '{"x":1,"text":"A dog ran\nfar away."}' \
    '{"text":"The end."}' >three.jsonl
printf 'id,text\r\n1,"The cat, the ""big"" one, sat."\r\n2,"A dog ran\nfar away."\r\n3,The end.' \
    >three.csv
sed 's/"text"/"body"/' three.jsonl >body.jsonl
seeded three --rho 50; cp out a
again three.jsonl --rho 50; expect_err "one line of a .jsonl file"
again three.csv --rho 50; expect_err "one row of a .csv file"
again body.jsonl --rho 50 --text-field body; expect_no_err "empty or unreadable"

# Null in place: an unreadable file, a directory (no record) and a hidden file (no record).
cp -r three four; ln -s nothing four/aa.txt; mkdir four/d.txt; echo x >four/.e.txt
mkfifo four/f.txt
seeded four --rho 50; expect_err "1 of 4 records are empty or unreadable"; cp out a
rm four/aa.txt; printf ' \n\t\n' >four/aa.txt
again four --rho 50; expect_err "1 of 4 records"
for broken in '' '{"text":' '[1]' '{"text":3}' '{"other":"x"}' '{"text":""}'; do
    { sed -n 1p three.jsonl; echo "$broken"; sed -n 2,3p three.jsonl; } >four.jsonl
    again four.jsonl --rho 50; expect_err "1 of 4 records"
done
printf 'id,text\n1,"The cat, the ""big"" one, sat."\n\n2,"A dog ran\nfar away."\n3,The end.\n' \
    >four.csv
again four.csv --rho 50; expect_err "1 of 4 records"
seeded four --rho 50 --quiet; expect_no_err "1 of 4"
works run "$model" four --rho 50 -n 8 --report null.json
check "the report tells the null count" test \
    "$(grep -ciE '"[^"]*(null|empty|unreadable)[^"]*":' null.json)" -eq 0
for i in a aa b c; do : >"four/$i.txt"; done
works run "$model" four --rho 1 -n 8; expect_err "4 of 4 records"

# Batches by position: emptying a record of the first batch leaves the second text as it was.
cp -r "$refs" sixteen
works run "$model" sixteen --rho 90 -B 8 --seed 3 -n 5 --jsonl; cp out a; expect_lines 2 out
: >sixteen/02-snow.txt
works run "$model" sixteen --rho 90 -B 8 --seed 3 -n 5 --jsonl
check "the second batch changed" test "$(sed -n 2p out)" = "$(sed -n 2p a)"

# Under add/remove a record's batch is its own affair: without one record, the other batches keep
# their texts, whatever the form and the order of the records (one key per seed).
added() {
    works run "$model" "$1" --rho 90 -B 4 --num 5 --adjacency add-remove --seed 5 -n 4 --jsonl
    expect_lines 5 out
}
for name in Ann Ben Cid Dora Eve Finn Gus Hal Ida Jo; do
    echo "{\"text\": \"One day a friend named $name came.\"}"
done >names.jsonl
added names.jsonl; expect_err "add-remove: one record more or less"; expect_no_err "  records "
cp out a
grep -v Finn names.jsonl >fewer.jsonl; added fewer.jsonl
check "one text changes at most" test "$(diff a out | grep -c '^<')" -le 1
tac names.jsonl >order.jsonl; added order.jsonl; expect_same a out
: >nobody.jsonl; refuse 4 "holds no record" run "$model" nobody.jsonl --rho 1
echo '{}' >nobody.jsonl; added nobody.jsonl

works run "$model" names.jsonl --epsilon 5 -B 2 --num 3 --subsample .3 -n 4 --jsonl --report q.json
expect_lines 3 out; expect_err "one secret random batch with probability q"
cp q.json out; near subsample .3; near epsilon 5 1e-5; near T 4
check "no size of a batch" test "$(grep -ciE '"(n_slots|slots|joined)' q.json)" -eq 0
tell --epsilon 8 --accountant br -n 4; expect_err "exact composition"
tell --rho 1 --accountant filter --center -n 4
expect_err "each record has a budget of its own" "centred            yes"
tell --rho 1 --adjacency zero-out -n 4; expect_err "zero-out: the record's"
# A message of the library names options, wherever it stands in it.
while IFS='|' read -r text words; do
    # shellcheck disable=SC2086
    refuse 2 "$text" run "$model" "$refs" -n 4 $words
done <<'TABLE'
--rho: found a budget with the accountant br|--rho 1 --accountant br
--private-tokens is 5, must be 1..4 (--n-predict)|--rho 9 --method amin --private-tokens 5
--pace-theta is given, but|--rho 1 --pace none --pace-theta .1
--max-per-unit: found '2', allowed only with --unit-field|--rho 1 --max-per-unit 2
the accountant filter is not proven for the method tang|--rho 9 --method tang --accountant filter
TABLE
refuse 2 "--heads is 3, not a multiple of --kv-heads" make-model --embd 48 --heads 3 --kv-heads 2 \
    -o x
refuse 4 "--unit-field: found 'a', but" run "$model" "$refs" --rho 1 --unit-field a

# A query is the task of both prompts: after the record in the private one, alone in the public one.
asked="Who was happy?"
seeded "$refs" --rho 50 --public-prompt "Question: $asked"$'\nAnswer:' \
    --private-prompt $'{reference}\n\n'"Question: $asked"$'\nAnswer:'; cp out a
again "$refs" --rho 50 --query "$asked"
echo "$asked" >query.txt; again "$refs" --rho 50 --query-file query.txt
seeded "$refs" --rho 50 --query "Who was sad?"; expect_different out a
tell --rho 50 --query "$asked" --seed 7 -n 24 -c 256; cp out a
tell --rho 50 --system "One day." --query "$asked" --seed 7 -n 24 -c 256; expect_different out a
works run "$model" --plain --temp 0 -n 8 --public-prompt "Question: $asked"$'\nAnswer:'; cp out a
works run "$model" --plain --temp 0 -n 8 --query "$asked"; expect_same out a
works plan "$model" --records 9 --rho 1 --query "$asked" -c 512 --template zephyr --json
holds "a chat model is told what to do" "$(field public_prompt_tokens) > 80"
works plan "$model" --records 9 --rho 1 --query "$asked" -c 256 --json
holds "a base model is not" "$(field public_prompt_tokens) < 40"

# A long record is cut, a long prompt is refused.
mkdir long; for i in 1 2 3; do yes "A long story about a dog." | head -n 2000 >long/$i.txt; done
works run "$model" long --rho 1 -n 8; expect_no_err "empty or unreadable"
works run "$model" long --rho 1 -n 8 --max-ref-tokens 3
printf 'A long story. {reference} %s' "$(yes word | head -n 300 | tr '\n' ' ')" >long.prompt
tr -d '{}' <long.prompt >public.prompt
refuse_each 2 run "$model" --rho 1 <<'END'
long --private-prompt-file long.prompt   | the private prompt without a record has
long --public-prompt-file public.prompt  | the public prompt has
"$refs" -n 128                           | --n-predict: found '128', allowed 1..127
three.jsonl -o three.jsonl               | would be overwritten
"$refs" -o same --report same            | lead to the same file
END
planned --rho 1 --top-k 513 --json; near top_k 512
planned --rho 1 --top-k 0 --json; expect_out '"top_k": 0'
planned --rho 1 --method amin --public-top-k 7 --json; near top_k 7
planned --rho 1 --method amin --top-k 7 --json; near top_k 7
planned --rho 1 --method adapmixed --i-know-this-is-not-dp --threshold 2 --json
near top_k 60; near threshold 2; near sigma 0.01
run run "$model" "$refs" --rho 1 -c 256 -n 4; expect_err "beyond the 128"

# Output: texts apart by a blank line, JSON lines, reports, errors.
tell --rho 1 -B 4 -n 3 --public-prompt "One day" --top-k 1
expect_count 3 '^$' out # between 4 texts
tell --rho 1 -B 4 -n 3 --jsonl --num 2; expect_lines 2 out
expect_out '{"index":0,"text":"' '"index":1' '"private":true'
tell --rho 1 -B 4 -n 3 --num 2 -o lines.jsonl; expect_empty_out
expect_lines 2 lines.jsonl; expect_count 2 '^\{"index":[01],"text":"' lines.jsonl
tell --rho 1 -B 4 -n 3 --num 2 -o lines.json
expect_count 0 '^\{"index"' lines.json # another name holds text
tell --epsilon 10 --delta 1e-5 -n 4 --report r.json
cp r.json out; near rho 1.78270 1e-5; near T 4; near B 16; near delta 1e-5
for option in -o --report; do
    refuse 1 "cannot write nowhere/x" run "$model" "$refs" --rho 1 -n 4 $option nowhere/x
done
fails 1 run "$model" "$refs" --rho 1 -n 4 -o /dev/full; expect_err "No space left" "0.9999"
"$dpinfer" run "$model" "$refs" --rho 1 -B 1 2>err | head -c 3 >out; rc=${PIPESTATUS[0]}
last="run | head"; expect_rc 1; expect_err "Broken pipe" "Privacy statement"
"$dpinfer" run "$model" "$refs" --rho 1 -n 4 >&- 2>err; rc=$?; last="run >&-"
expect_rc 1; expect_err "cannot write standard output"

# Signals: what was released is written, the statement follows.
for i in $(seq 5000); do echo '{"text": "One day it rained."}'; done >many.jsonl
stop_with() {
    : >out # the shell that is about to become dpinfer must not be killed: it would clean up
    "$dpinfer" run "$model" many.jsonl --rho 1 -B 1 --report s.json --overwrite >out 2>err &
    local pid=$!
    until [ -s out ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
    kill "-$1" "$pid"; wait "$pid"; rc=$?; last="run, SIG$1"
    expect_rc "$2"; expect_err "Privacy statement" "stopped early"
    check "the text does not end" test "$(tail -c 1 out | od -An -c | tr -d ' ')" = '\n'
    expect_line s.json '"complete": false'
    works verify s.json
}
stop_with INT 130
stop_with TERM 143

# ---- Pace -------------------------------------------------------------------------------------
# Found from public texts by plan and run alike, whatever the records are; what is given stays.
text_field() { sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2" | head -n 1; }
paced() { tell --rho 1 -n 24 --report pace.json --overwrite "$@"; }
planned --rho 1 -n 24 --json; holds "public texts" "$(field pace_texts) >= 2"
pace=$(text_field pace out) quota=$(field n_private)
check "a pace by itself" test "${pace%%:*}" = top
works plan "$model" --records 16 --rho 1 -n 24 --json
check "the pace is that of other records" test "$(text_field pace out)" = "$pace"
paced; expect_err "$pace" "texts of the public prompt, which cost nothing"
expect_line pace.json "\"pace_tokens\": $quota," \
    '"pace": "found from [0-9]* texts that the model drew'
expect_line pace.json '"pace_given": null'
works verify pace.json
paced --pace-theta .5 --pace-tokens 7; expect_no_err "texts of the public prompt"
expect_err "free where the likeliest token has more than 0.5, and after 7 private tokens"
expect_line pace.json '"pace_texts": null'
works verify pace.json
paced --pace-theta .5; expect_err "which cost nothing; pace_theta was given"
expect_line pace.json '"pace_given": "pace_theta"' \
    'they cost nothing; pace_theta was given by the operator"'
works verify pace.json
sed -i 's/"pace_given": "pace_theta"/"pace_given": "pace_tokens"/' pace.json
fails 1 verify pace.json; expect_err "transparency.pace"
planned --rho 1 -n 24 --pace-tokens 7 --json
check "T_p was given" test "$(text_field pace_given out)" = pace_tokens
check "theta in numbers" test -n "$(field pace_theta)"
fails 2 plan "$model" "$refs" --rho 1 -n 24 --pace-tokens 25
expect_err "--pace-tokens is 25, must be 0..24"
tell --rho 1 -n 24 --pace none; expect_no_err "pace"
for accountant in zcdp br filter; do
    tell --epsilon 8 --accountant $accountant -n 8 -B 8; expect_err "pace               top"
done
for options in "--rho 1 --query Who?" "--rho 90 --method amin"; do
    # shellcheck disable=SC2086
    planned -n 24 $options --json
    check "$options has a pace" test "$(text_field pace out | cut -d: -f1)" = top
done
refuse 2 "the pace 'share' is not proven for the method amin" plan "$model" "$refs" --rho 9 \
    --method amin --pace share

finish
