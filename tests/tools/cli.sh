#!/usr/bin/env bash
# Tests of the command line: cli.sh path/to/dpinfer
# Exit codes, stdout and stderr of every command. What needs the shared data ($DPI_DATA or
# ../shared/data) is skipped with a message when it is absent.
. "$(dirname "$0")/cli_support.sh"
refs=$here/../../examples/refs/stories
data=${DPI_DATA:-$here/../../../shared/data}
model=$data/models/stories260K.gguf

# ---- Help, version, bad command lines ---------------------------------------------------------
run --version; expect_rc 0; expect_out "dpinfer "
run; expect_rc 2; expect_err "Usage:"; expect_empty_out
run -h; expect_rc 0; expect_out "dpinfer run model.gguf"
for c in run resume plan ledger account inspect tokenize logits quantize make-model bench verify \
    audit finetune generate pretrain demo perturb attack serve infer eval augpe; do
    run "$c" -h; expect_rc 0; expect_out "Usage: dpinfer $c"; expect_out "Exit codes:"
    options=$(grep -oE -- '^(  -., |      )--[a-z-]*' out | grep -o -- '--[a-z-]*' | sort)
    check "no options" grep -qx -- '--help' <<<"$options"
    twice=$(uniq -d <<<"$options")
    check "options that stand there twice: $twice" [ -z "$twice" ]
done
# run and plan have headings, and what the library's methods take.
for c in run plan; do
    run "$c" -h
    for heading in Budget: Data: Prompt: Output: Expert:; do
        check "one heading $heading" [ "$(grep -c "^$heading" out)" -eq 1 ]
    done
    expect_out "(invisibleink|amin|adapmixed|tang; default"; expect_out "--public-top-k N"
    expect_out "amin: noise of the threshold"; expect_out "--screen-sigma X"
    check "older spellings in the help" [ "$(grep -cE -- '--(threshold|sigma) ' out)" -eq 0 ]
    check "an option's line beyond 80 columns" \
        [ -z "$(sed -n '/^Budget/,$p' out | grep -E '^.{81}')" ]
    check "--top-k once" [ "$(grep -c -- ' --top-k N' out)" -eq 1 ]
done
refuse 2 "'walk' is not a command" walk
refuse 2 "'--walk' is not an option here" run --walk
refuse 2 "'-z' is not an option here" run -z
refuse 2 "'--tmep' is not an option here: did you mean --temp?" run --tmep 1
refuse 2 "did you mean --public-prompt-file?" run --public-promt-file x
refuse 2 "did you mean --epsilon?" account --epslion 1
refuse 2 "'-p' is not an option here: the prompt without a record is --public-prompt TEXT" run -p x
refuse 2 "'-f' is not an option here: a file with" run -qf x
refuse 2 "'-s' is not an option here: reproducible text, which is NOT PRIVATE" plan -s 1
refuse 2 "'-s' is not an option here; see 'dpinfer account -h'" account -s 1
refuse 2 "'--quiet=1' takes no value" run --quiet=1
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
refuse 2 "--rho and --epsilon: allowed is one of them" run no.gguf refs --rho 1 --epsilon 3
refuse 2 "--svt-sigma is given more than once" run no.gguf refs --rho 1 --method amin \
    --svt-threshold 1 --svt-sigma 1 --sigma 2
refuse 2 "--top-k is given more than once" run no.gguf refs --rho 1 --top-k 10 --top-k 20
refuse 2 "--rho is given more than once" account --rho 1 --rho 2
run account --rho 1 --json --json; expect_rc 0 # a flag twice says the same
refuse 2 "adapmixed is for comparison alone" run no.gguf refs --rho 1 --method adapmixed
refuse 2 "allowed only with a method that guarantees nothing, found amin" run no.gguf refs --rho 1 \
    --method amin --i-know-this-is-not-dp
refuse 2 "--epsilon: found '0', allowed" run no.gguf refs --epsilon 0
refuse 2 "--epsilon: found '-1', allowed" run no.gguf refs --epsilon=-1
refuse 2 "--batch: found '0', allowed 1..4096" run no.gguf refs --rho 1 -qB0
refuse 2 "unexpected argument '--rho'" run no.gguf refs -- --rho
# Parameters of methods: by their names and older ones, in any order, and of that method alone.
refuse 2 "--svt-sigma: found '1001', allowed 1e-06..1000" run no.gguf refs --rho 1 \
    --svt-sigma 1001 --svt-threshold 1 --method amin
refuse 2 "--sigma: found 'x', allowed 1e-06..1000" run no.gguf refs --rho 1 --method amin \
    --threshold 1 --sigma x
refuse 2 "--sigma: found '-1', allowed 0 < x <= 1e+06" run no.gguf refs --rho 1 --sigma -1 \
    --method adapmixed --i-know-this-is-not-dp
refuse 2 "--svt-threshold needs --svt-sigma" run no.gguf refs --rho 1 --method amin --threshold 1
refuse 2 "--svt-sigma needs --svt-threshold" run no.gguf refs --rho 1 --method amin --svt-sigma 1
refuse 2 "--sigma is allowed only with --method amin or adapmixed" run no.gguf refs --rho 1 \
    --sigma 1
refuse 2 "--private-tokens is allowed only with --method amin" run no.gguf refs --rho 1 \
    --private-tokens 3
refuse 2 "--screen-sigma is allowed only with --method adapmixed" run no.gguf refs --rho 1 \
    --method amin --screen-sigma 3
refuse 2 "--public-top-k is allowed only with --method amin" run no.gguf --plain --public-top-k 3
refuse 2 "--top-k: found '-1', allowed 1..262144, or 0 (all)" run no.gguf refs --rho 1 --top-k -1
refuse 2 "'--rho' needs a value" run m.gguf r --rho
refuse 2 "no MODEL given" run
refuse 2 "no REFS given" run no.gguf
refuse 2 "no REFS given" run no.gguf --rho 1
refuse 2 "unexpected argument 'x'" run no.gguf refs x --rho 1
refuse 2 "no privacy budget: give --rho" run no.gguf refs
refuse 2 "allowed is one of them" run no.gguf refs --rho 1 --epsilon 1
refuse 2 "leave out --rho" run no.gguf --plain --rho 1
refuse 2 "--reference is allowed only with --plain" run no.gguf refs --rho 1 --reference 1

# Values are refused, with the allowed range, before the model (which does not exist) is opened.
refuse 2 "--temp: found 'x', allowed 0.01..100" run no.gguf refs --rho 1 --temp x
refuse 2 "--temp: found '-1', allowed 0.01..100" run no.gguf refs --rho 1 --temp -1
refuse 2 "--temp: found 'nan', allowed 0.01..100" run no.gguf refs --rho 1 --temp nan
refuse 2 "--temp: found '0x1', allowed 0.01..100" run no.gguf refs --rho 1 --temp 0x1
refuse 2 "--temp: found '', allowed 0.01..100" run no.gguf refs --rho 1 --temp ''
refuse 2 "--temp: found '0', allowed 0.01..100" run no.gguf refs --rho 1 --temp 0
refuse 2 "--rho: found '0', allowed 0 < x <= 1e+06" run no.gguf refs --rho 0
refuse 2 "--rho: found 'inf', allowed" run no.gguf refs --rho inf
refuse 2 "--epsilon: found '1e7', allowed 0 < x <= 1e+06" run no.gguf refs --epsilon 1e7
refuse 2 "--delta: found '1', allowed 0 < x < 1" run no.gguf refs --rho 1 --delta 1
refuse 2 "--batch: found '0', allowed 1..4096" run no.gguf refs --rho 1 -B 0
refuse 2 "--batch: found '4097', allowed 1..4096" run no.gguf refs --rho 1 -B 4097
refuse 2 "--batch: found '8.5', allowed 1..4096" run no.gguf refs --rho 1 -B 8.5
refuse 2 "--batch: found '99999999999999999999', allowed" run no.gguf refs --rho 1 \
    -B 99999999999999999999
refuse 2 "--n-predict: found '0', allowed 1..1048576" run no.gguf refs --rho 1 -n 0
refuse 2 "--threads: found '0', allowed 1..1024" run no.gguf refs --rho 1 -t 0
refuse 2 "--template: found 'vicuna', allowed auto|none|zephyr" run no.gguf refs --rho 1 \
    --template vicuna
refuse 2 "--kv: found 'f', allowed f16|f32" run no.gguf refs --rho 1 --kv f
refuse 2 "--isa: found 'sse', allowed auto|ref|avx2|avx512" run no.gguf refs --rho 1 --isa sse
DPI_ISA=sse refuse 2 "DPI_ISA: found 'sse', allowed" run no.gguf refs --rho 1
refuse 2 "found 0 times {reference}" run no.gguf "$refs" --rho 1 --private-prompt "Write."
refuse 2 "found 2 times {reference}" run no.gguf "$refs" --rho 1 \
    --private-prompt "{reference} {reference}"
refuse 2 "--public-prompt: found {reference}" run no.gguf "$refs" --rho 1 \
    --public-prompt "{reference}"
refuse 2 "allowed is one of them" run no.gguf "$refs" --rho 1 --system a --system-file b
refuse 2 "--query and --public-prompt: allowed is one of them" run no.gguf "$refs" --rho 1 \
    --query a --public-prompt b
refuse 2 "--query and --private-prompt: allowed is one of them" run no.gguf "$refs" --rho 1 \
    --query a --private-prompt "{reference} a"
refuse 2 "--query and --query-file: allowed is one of them" run no.gguf "$refs" --rho 1 \
    --query a --query-file b
refuse 2 "--query: found no text" run no.gguf "$refs" --rho 1 --query " "
refuse 2 "--query: found {reference}" run no.gguf "$refs" --rho 1 --query "{reference}: who is it?"
refuse 2 "--query-file: cannot read none.txt" run no.gguf "$refs" --rho 1 --query-file none.txt
refuse 2 "--system-file: cannot read none.txt" run no.gguf "$refs" --rho 1 --system-file none.txt

# ---- Records that are refused -----------------------------------------------------------------
mkdir empty folder
refuse 4 "cannot open the records nowhere" run no.gguf nowhere --rho 1
refuse 4 "no file whose name ends in .txt" run no.gguf empty --rho 1
echo text >plain.txt
refuse 4 "is not a folder of .txt files" run no.gguf plain.txt --rho 1
: >none.jsonl
refuse 4 "none.jsonl holds no record" run no.gguf none.jsonl --rho 1
printf 'name,body\nx,y\n' >columns.csv
refuse 4 "no column 'text' in the header row" run no.gguf columns.csv --rho 1
printf 'te"xt\na\n' >open.csv
refuse 4 "is not RFC 4180" run no.gguf open.csv --rho 1
printf 'text\n"open\n' >open.csv # a record's quote is the record's affair
refuse 3 "no.gguf" run no.gguf open.csv --rho 1
printf '\xef\xbb\xbftext\na\n' >mark.csv
refuse 3 "no.gguf" run no.gguf mark.csv --rho 1
for i in $(seq 20); do echo '{"text": "a"}'; done >twenty.jsonl
refuse 2 "--delta: found 0.05 with 20 records, allowed less than 1 / number of records = 0.05" \
    run no.gguf twenty.jsonl --rho 1 --delta 0.05

# ---- Model files that are refused -------------------------------------------------------------
refuse 3 "no.gguf" run no.gguf "$refs" --rho 1
echo "this is not a model" >bad.gguf
refuse 3 "bad.gguf" run bad.gguf "$refs" --rho 1
expect_err "(at byte 0)"
refuse 3 "bad.gguf" inspect bad.gguf
refuse 3 "bad.gguf" tokenize bad.gguf

# ---- Accounting: the tables of the privacy specification --------------------------------------
run account --rho 0.1 --delta 1e-5 --json; expect_rc 0; near epsilon 1.914239 1e-6
run account --rho 5 --json; near epsilon 20.551949 1e-7
run account --epsilon 3 --delta 1e-9 --json; near rho .120582 1e-5
run account --epsilon 10 --json; near rho 1.53928 1e-5
run account --rho 2 --epsilon 10 --json; near delta 4.872631e-5 1e-6
run account --sigma 1 --sampling .01 --steps 1000 --delta 1e-5 --json; expect_rc 0
near epsilon_pld 1.828237 1e-5; near epsilon_rdp 2.101367 1e-2
run account --sigma 4 --steps 50 --delta 1e-5 --json; near epsilon_pld 8.595866 1e-6
run account --epsilon 2.675035 --sampling .1 --steps 100 --delta 1e-6 --json; expect_rc 0
near sigma_pld 2 1e-5
# Out of reach of Renyi orders; the exact sigma of one Gaussian by its two tails (Balle, Wang 2018).
run account --epsilon 1e-4 --sampling 1 --steps 1 --delta 1e-12 --json; expect_rc 0
expect_err "one accountant has no sigma"; near sigma_pld 50120.33 1e-4
check "a sigma that is none" test "$(grep -c sigma_rdp out)" -eq 0
refuse 2 "sigma 1e+06 is not enough" account --epsilon 1e-9 --sampling 1 --steps 1 --delta 1e-12
refuse 2 "--rho: not allowed with --sigma" account --sigma 1 --rho 1
refuse 2 "allowed is one of them" account --sigma 1 --epsilon 1
row() {
    run account --epsilon "$1" -n "$2" -B "$3" --temp "$4" --json
    expect_rc 0
    near C "$5" 1e-8; near a "$6" 1e-15; near K "$7" 1e-15; near eta "$8" 1e-10
    near rho_total "$9" 1e-10; near epsilon_realised "${10}"
}
row 1 500 7 1.1 .0760017232 50294870 79693 .0197405628274 .0243556137964 .9999921611
row 10 500 7 1.1 .604198106 50294870 633547 .156934415264 1.53927566838 9.999988095
row 3 200 15 1.2 .774355399 21515028 811970 .0860394378204 .185069621511 2.999998044
row 5 100 31 1.0 2.98330506 12492597 3128222 .192471291767 .463064976929 4.99999992
row 10 100 127 1.0 22.2831897 3049374 23365618 .350916371518 1.53927874749 9.999999937
run account --rho 0.5; expect_rc 0; expect_out "5.2215"
refuse 2 "give --rho, or --epsilon" account
refuse 2 "the third is computed" account --rho 1 --epsilon 1 --delta 1e-6
refuse 2 "allowed are all three, or none" account --rho 1 -n 10
"$dpinfer" account --rho 1 >/dev/full 2>err; rc=$?; last="account >/dev/full"; : >out
expect_rc 1; expect_err "cannot write standard output"

# Other accountants: the gains of the tables (exact composition: 1/256 more than with N = 256).
gains() { # EPSILON T BR SUBSAMPLE_0.1
    run account --epsilon "$1" -n "$2" -B 8 --temp 1 --subsample 0.1 --json; expect_rc 0
    near gain_br "$3" 6e-3; near gain_zcdp_subsample "$4" 1e-6
}
gains 1 100 1.069 2.9444162; gains 3 100 1.062 1.8019190; gains 5 100 1.059 1.5079892
gains 10 100 1.054 1.2746587
run account --epsilon 10 --accountant br -n 500 -B 7 --temp 1.1 --json; expect_rc 0
near gain_br 1.050 4e-3; near C "$(field C_br)" 1e-12; near epsilon_realised 10 5e-6
run account --epsilon 1 --accountant filter --clip 3 -n 500 -B 7 --temp 1.1 --json; near C 3 1e-12
near C_filter "$(awk -v c="$(field C_zcdp)" 'BEGIN { printf "%.17g", 2 * c }')" 1e-12
run account --epsilon 10 --adjacency zero-out -n 500 -B 7 --temp 1.1 --json; near C .302099053 1e-8
refuse 2 "nothing is amplified" account --epsilon 1 --adjacency zero-out --subsample .5 -n 9 -B 7 \
    --temp 1
refuse 2 "only the accountant filter leaves it free" account --rho 1 --clip 2 -n 9 -B 7 --temp 1
refuse 2 "need -n, -B and --temp" account --rho 1 --accountant br
refuse 2 "--accountant: found 'rdp', allowed zcdp|br|filter" account --rho 1 --accountant rdp
refuse 2 "--subsample: found '1.5', allowed 0 < x <= 1" run no.gguf refs --rho 1 --subsample 1.5
refuse 2 "-B and --num must be given" run no.gguf refs --rho 1 --adjacency add-remove --num 3
refuse 2 "-B and --num must be given" run no.gguf refs --epsilon 1 --subsample .5 -B 3
refuse 2 "leave out --accountant" run no.gguf --plain --accountant br

# ---- With the trained model -------------------------------------------------------------------
if [ ! -f "$model" ]; then
    echo "skipped: the tests that need $model"
    finish
fi

run run "$model" "$refs" --rho 0.5 --pace none
expect_rc 0; check "no text" test -s out
for part in "InvisibleInk" "replace-by-null" "one record = one .txt file" "0.5-zCDP" "1e-06" \
    "getrandom(2)" "B, slots a text    16" "parallel over disjoint batches"; do
    expect_err "$part"
done
expect_no_err "NOT PRIVATE"
expect_no_err "empty or unreadable"

# Plain, greedy: the text that this model is known for.
run run "$model" --plain --temp 0 -n 29 -c 512 \
    --public-prompt "Once upon a time, there was a little girl named Lily."
expect_rc 0
expect_out "She loved to play outside in the park. One day, she saw a big, red ball."
check "NOT PRIVATE at start and end" test "$(grep -c 'NOT PRIVATE' err)" -ge 2
run run "$model" --plain --temp 0; expect_rc 0
expect_out "Once upon a time, there was a little girl named Lily. She"
run run "$model" "$refs" --plain --reference 1 --temp 0 -n 8 --jsonl --report plain.json
expect_rc 0; expect_out '"private":false'; expect_out "NOT PRIVATE"
check "report" grep -q '"private": false' plain.json
refuse 2 "--reference: found '17', allowed 1..16" run "$model" "$refs" --plain --reference 17

# A seed reproduces a run, whatever the threads; it is never private.
seeded() { run run "$model" "$@" --seed 7 -n 12 -c 256; }
seeded "$refs" --rho 20 -B 8; cp out a; expect_rc 0; expect_err "NOT PRIVATE"
seeded "$refs" --rho 20 -B 8 -t 1; expect_same out a
seeded "$refs" --rho 20 -B 8 --no-mmap --quiet; expect_same out a; expect_err "NOT PRIVATE"
# As many texts at a time as it likes: they come in their order, and are the same ones.
for form in "" --jsonl; do
    seeded "$refs" --rho 20 -B 2 --num 3 --parallel 1 $form; cp out one; expect_rc 0
    for n in 2 3 8; do
        seeded "$refs" --rho 20 -B 2 --num 3 --parallel $n $form; expect_rc 0; expect_same out one
    done
done
refuse 2 "--parallel: found '0', allowed 1..4096" run no.gguf refs --rho 1 --parallel 0
refuse 2 "--parallel: found '2', allowed 1..1 with texts of 4097 sequences" run "$model" "$refs" \
    --rho 1 -B 4096 --num 2 --adjacency add-remove --parallel 2
seeded -m "$model" "$refs" --rho 20 -B 8; expect_rc 2
run run -m "$model" "$refs" --rho 20 -B 8 --seed 7 -n 12 -c 256; expect_same out a
run run "$model" "$refs" --rho 20 -B 8 --seed 8 -n 12 -c 256; expect_different out a
run run "$model" "$refs" --rho 20 -B 8 -n 12 -c 256 -o text.out; expect_rc 0; expect_empty_out
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
seeded three --rho 50; cp out a
seeded three.jsonl --rho 50; expect_same out a; expect_err "one line of a .jsonl file"
seeded three.csv --rho 50; expect_same out a; expect_err "one row of a .csv file"
sed 's/"text"/"body"/' three.jsonl >body.jsonl
seeded body.jsonl --rho 50 --text-field body; expect_same out a
expect_no_err "empty or unreadable"

# Null in place: an unreadable file, a directory (no record) and a hidden file (no record).
cp -r three four; ln -s nothing four/aa.txt; mkdir four/d.txt; echo x >four/.e.txt
mkfifo four/f.txt
seeded four --rho 50; expect_rc 0; expect_err "1 of 4 records are empty or unreadable"
cp out a
rm four/aa.txt; printf ' \n\t\n' >four/aa.txt
seeded four --rho 50; expect_same out a; expect_err "1 of 4 records"
{ sed -n 1p three.jsonl; echo; sed -n 2,3p three.jsonl; } >four.jsonl
seeded four.jsonl --rho 50; expect_same out a; expect_err "1 of 4 records"
for broken in '{"text":' '[1]' '{"text":3}' '{"other":"x"}' '{"text":""}'; do
    { sed -n 1p three.jsonl; echo "$broken"; sed -n 2,3p three.jsonl; } >four.jsonl
    seeded four.jsonl --rho 50; expect_same out a
done
printf 'id,text\n1,"The cat, the ""big"" one, sat."\n\n2,"A dog ran\nfar away."\n3,The end.\n' \
    >four.csv
seeded four.csv --rho 50; expect_same out a; expect_err "1 of 4 records"
seeded four --rho 50 --quiet; expect_no_err "1 of 4"
run run "$model" four --rho 50 -n 8 --report null.json
check "the report tells the null count" test \
    "$(grep -ciE '"[^"]*(null|empty|unreadable)[^"]*":' null.json)" -eq 0
for i in aa b c; do printf '' >"four/$i.txt"; done; printf '' >four/a.txt
run run "$model" four --rho 1 -n 8; expect_rc 0; expect_err "4 of 4 records"

# Batches by position: emptying a record of the first batch leaves the second text as it was.
cp -r "$refs" sixteen
run run "$model" sixteen --rho 90 -B 8 --seed 3 -n 5 --jsonl; cp out a; expect_lines 2 out
: >sixteen/02-snow.txt
run run "$model" sixteen --rho 90 -B 8 --seed 3 -n 5 --jsonl
check "the second batch changed" test "$(sed -n 2p out)" = "$(sed -n 2p a)"

# Under add/remove a record's batch is its own affair: without one record, the other batches keep
# their texts, whatever the form and the order of the records (one key per seed).
added() {
    run run "$model" "$1" --rho 90 -B 4 --num 5 --adjacency add-remove --seed 5 -n 4 --jsonl
}
sed 's/^/One day a friend named /; s/$/ came./' >names.txt <<'END'
Ann
Ben
Cid
Dora
Eve
Finn
Gus
Hal
Ida
Jo
END
sed 's/.*/{"text": "&"}/' names.txt >names.jsonl
added names.jsonl; expect_rc 0; expect_lines 5 out; expect_err "add-remove: one record more or less"
expect_no_err "  records "; cp out a
grep -v Finn names.jsonl >fewer.jsonl; added fewer.jsonl; expect_lines 5 out
check "one text changes at most" test "$(diff a out | grep -c '^<')" -le 1
tac names.jsonl >order.jsonl; added order.jsonl; expect_same a out
printf '' >nobody.jsonl; refuse 4 "holds no record" run "$model" nobody.jsonl --rho 1
printf '{}\n' >nobody.jsonl; added nobody.jsonl; expect_rc 0; expect_lines 5 out

run run "$model" names.jsonl --epsilon 5 -B 2 --num 3 --subsample .3 -n 4 --jsonl --report q.json
expect_rc 0; expect_lines 3 out; expect_err "one secret random batch with probability q"
cp q.json out; near subsample .3; near epsilon 5 1e-5; near T 4
check "no size of a batch" test "$(grep -ciE '"(n_slots|slots|joined)' q.json)" -eq 0
run run "$model" "$refs" --epsilon 8 --accountant br -n 4; expect_rc 0
expect_err "exact composition"
run run "$model" "$refs" --rho 1 --accountant filter --center -n 4; expect_rc 0
expect_err "each record has a budget of its own"; expect_err "centred            yes"
run run "$model" "$refs" --rho 1 --adjacency zero-out -n 4; expect_rc 0
expect_err "zero-out: the record's"
refuse 2 "a budget of rho with exact composition" run "$model" "$refs" --rho 1 --accountant br

# A query is the task of both prompts: after the record in the private one, alone in the public one.
asked="Who was happy?"
seeded "$refs" --rho 50 --public-prompt "Question: $asked"$'\nAnswer:' \
    --private-prompt $'{reference}\n\n'"Question: $asked"$'\nAnswer:'; cp out a
seeded "$refs" --rho 50 --query "$asked"; expect_rc 0; expect_same out a
echo "$asked" >query.txt; seeded "$refs" --rho 50 --query-file query.txt; expect_same out a
seeded "$refs" --rho 50 --query "Who was sad?"; expect_different out a
run run "$model" "$refs" --rho 50 --query "$asked" --seed 7 -n 24 -c 256; cp out a
run run "$model" "$refs" --rho 50 --system "One day." --query "$asked" --seed 7 -n 24 -c 256
expect_rc 0; expect_different out a
run run "$model" --plain --temp 0 -n 8 --public-prompt "Question: $asked"$'\nAnswer:'; cp out a
run run "$model" --plain --temp 0 -n 8 --query "$asked"; expect_same out a
run plan "$model" --records 9 --rho 1 --query "$asked" -c 512 --template zephyr --json; expect_rc 0
check "a chat model is told what to do" test "$(field public_prompt_tokens)" -gt 80
run plan "$model" --records 9 --rho 1 --query "$asked" -c 256 --json; check "a base model is not" \
    test "$(field public_prompt_tokens)" -lt 40

# A long record is cut, a long prompt is refused.
mkdir long; for i in 1 2 3; do yes "A long story about a dog." | head -n 2000 >long/$i.txt; done
run run "$model" long --rho 1 -n 8; expect_rc 0; expect_no_err "empty or unreadable"
run run "$model" long --rho 1 -n 8 --max-ref-tokens 3; expect_rc 0
printf 'A long story. {reference} %s' "$(yes word | head -n 300 | tr '\n' ' ')" >long.prompt
refuse 2 "the private prompt without a record has" run "$model" long --rho 1 \
    --private-prompt-file long.prompt
tr -d '{}' <long.prompt >public.prompt
refuse 2 "the public prompt has" run "$model" long --rho 1 --public-prompt-file public.prompt
refuse 2 "--n-predict: found '128', allowed 1..127" run "$model" "$refs" --rho 1 -n 128
run plan "$model" "$refs" --rho 1 --top-k 513 --json; expect_rc 0; near top_k 512
run plan "$model" "$refs" --rho 1 --top-k 0 --json; expect_rc 0; expect_out '"top_k": 0'
run plan "$model" "$refs" --rho 1 --method amin --public-top-k 7 --json; near top_k 7
run plan "$model" "$refs" --rho 1 --method amin --top-k 7 --json; near top_k 7
run plan "$model" "$refs" --rho 1 --method adapmixed --i-know-this-is-not-dp --threshold 2 --json
near top_k 60; near threshold 2; near sigma 0.01
run run "$model" "$refs" --rho 1 -c 256 -n 4; expect_err "beyond the 128"

# Output: texts apart by a blank line, JSON lines, reports, errors.
run run "$model" "$refs" --rho 1 -B 4 -n 3 --public-prompt "One day" --top-k 1
expect_rc 0
check "4 texts, 3 blank lines" test "$(grep -c '^$' out)" -eq 3
run run "$model" "$refs" --rho 1 -B 4 -n 3 --jsonl --num 2; expect_lines 2 out
expect_out '{"index":0,"text":"'; expect_out '"index":1'; expect_out '"private":true'
run run "$model" "$refs" --rho 1 -B 4 -n 3 --num 2 -o lines.jsonl; expect_rc 0; expect_empty_out
expect_lines 2 lines.jsonl
check "lines.jsonl holds objects" [ "$(grep -c '^{"index":[01],"text":"' lines.jsonl)" -eq 2 ]
run run "$model" "$refs" --rho 1 -B 4 -n 3 --num 2 -o lines.json
check "another name holds text" [ "$(grep -c '^{"index"' lines.json)" -eq 0 ]
run run "$model" "$refs" --epsilon 10 --delta 1e-5 -n 4 --report r.json; expect_rc 0
cp r.json out; near rho 1.78270 1e-5; near T 4; near B 16; near delta 1e-5
refuse 2 "would be overwritten" run "$model" three.jsonl --rho 1 -o three.jsonl
refuse 2 "lead to the same file" run "$model" "$refs" --rho 1 -o same --report same
refuse 1 "cannot write nowhere/x" run "$model" "$refs" --rho 1 -n 4 -o nowhere/x
refuse 1 "cannot write nowhere/x" run "$model" "$refs" --rho 1 -n 4 --report nowhere/x
run run "$model" "$refs" --rho 1 -n 4 -o /dev/full; expect_rc 1; expect_err "No space left"
expect_err "0.9999"
"$dpinfer" run "$model" "$refs" --rho 1 -B 1 2>err | head -c 3 >out; rc=${PIPESTATUS[0]}
last="run | head"
expect_rc 1; expect_err "Broken pipe"; expect_err "Privacy statement"
"$dpinfer" run "$model" "$refs" --rho 1 -n 4 >&- 2>err; rc=$?; last="run >&-"
expect_rc 1; expect_err "cannot write standard output"

# Signals: what was released is written, the statement follows.
for i in $(seq 5000); do echo '{"text": "One day it rained."}'; done >many.jsonl
stop_with() {
    : >out # the shell that is about to become dpinfer must not be killed: it would clean up
    "$dpinfer" run "$model" many.jsonl --rho 1 -B 1 --report s.json --overwrite >out 2>err &
    local pid=$! i
    for i in $(seq 300); do
        [ -s out ] && break
        sleep 0.1
    done
    kill "-$1" "$pid"
    wait "$pid"
    rc=$?
    last="run, SIG$1"
    expect_rc "$2"
    expect_err "Privacy statement"
    expect_err "stopped early"
    if [ -s out ] && [ "$(tail -c 1 out | od -An -c | tr -d ' ')" = '\n' ]; then ok
    else bad "$last: the text does not end"; fi
    check "report" grep -q '"complete": false' s.json
    run verify s.json; expect_rc 0
}
stop_with INT 130
stop_with TERM 143

# ---- Pace -------------------------------------------------------------------------------------
# Found from public texts by plan and run alike, whatever the records are; what is given stays.
text_field() { sed -n "s/^ *\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p" "$2" | head -n 1; }
run plan "$model" "$refs" --rho 1 -n 24 --json
expect_rc 0; check "public texts" test "$(field pace_texts)" -ge 2
pace=$(text_field pace out); quota=$(field n_private)
check "a pace by itself" test "${pace%%:*}" = top
run plan "$model" --records 16 --rho 1 -n 24 --json; expect_rc 0
check "the pace is that of other records" test "$(text_field pace out)" = "$pace"
run run "$model" "$refs" --rho 1 -n 24 --report pace.json; expect_rc 0; expect_err "$pace"
expect_err "texts of the public prompt, which cost nothing"
check "its quota in the report" grep -q "\"pace_tokens\": $quota," pace.json
check "where it is from" grep -q '"pace": "found from [0-9]* texts that the model drew' pace.json
check "parameters of earlier jobs" test "$(grep -c pace_given pace.json)" -eq 0
run verify pace.json; expect_rc 0
run run "$model" "$refs" --rho 1 -n 24 --pace-theta .5 --pace-tokens 7 --report pace.json \
    --overwrite
expect_rc 0
expect_err "free where the likeliest token has more than 0.5, and after 7 private tokens"
expect_no_err "texts of the public prompt"
check "it was given" grep -q '"pace_texts": null' pace.json
run verify pace.json; expect_rc 0
run run "$model" "$refs" --rho 1 -n 24 --pace-theta .5 --report pace.json --overwrite
expect_rc 0; expect_err "which cost nothing; pace_theta was given"
check "theta was given, T_p found" grep -q '"pace_given": "pace_theta"' pace.json
check "which is told" grep -q 'they cost nothing; pace_theta was given by the operator"' pace.json
run verify pace.json; expect_rc 0
sed -i 's/"pace_given": "pace_theta"/"pace_given": "pace_tokens"/' pace.json
run verify pace.json; expect_rc 1; expect_err "transparency.pace"
run plan "$model" "$refs" --rho 1 -n 24 --pace-tokens 7 --json
expect_rc 0; check "T_p was given" test "$(text_field pace_given out)" = pace_tokens
check "theta in numbers" test -n "$(field pace_theta)"
run plan "$model" "$refs" --rho 1 -n 24 --pace-tokens 25
expect_rc 2; expect_err "pace_tokens is 25, must be 0..24"
run run "$model" "$refs" --rho 1 -n 24 --pace none; expect_rc 0; expect_no_err "pace"
run plan "$model" "$refs" --rho 1 -n 24 --query "Who was glad?" --json
check "a question has a pace" test "$(text_field pace out | cut -d: -f1)" = top
for accountant in zcdp br filter; do
    run run "$model" "$refs" --epsilon 8 --accountant $accountant -n 8 -B 8; expect_rc 0
    expect_err "pace               top"
done
run plan "$model" "$refs" --rho 90 -n 24 --method amin --json; expect_rc 0
check "amin has a pace" test "$(text_field pace out | cut -d: -f1)" = top
refuse 2 "the pace 'share' is not proven for the method amin" plan "$model" "$refs" --rho 9 \
    --method amin --pace share
refuse 2 "--pace: found 'fast', allowed none|top|change|share|auto" run no.gguf refs --rho 1 \
    --pace fast

finish
