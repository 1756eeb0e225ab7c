#!/usr/bin/env bash
# Tests of the commands about models: make, quantize, train, measure, look into: models.sh
# path/to/dpinfer What needs the shared data ($DPI_DATA or ../shared/data) is skipped with a message
# when it is absent.
. "$(dirname "$0")/cli_support.sh"
refs=$here/../../examples/refs/stories
data=${DPI_DATA:-$here/../../../shared/data}
model=$data/models/stories260K.gguf

# ---- quantize, make-model ---------------------------------------------------------------------
run make-model --type F32 --layers 1 -o made.gguf; expect_rc 0; expect_empty_out
run inspect made.gguf --check; expect_rc 0; expect_out "every weight is finite"
check "does not say that its weights are random" grep -qE '^ *random weights +yes' out
run make-model --type F32 --layers 1 --seed 0 -t 1 -o again.gguf; expect_same made.gguf again.gguf
refuse 2 "again.gguf is there already" make-model --type F32 --layers 1 --seed 1 -o again.gguf
run make-model --type F32 --layers 1 --seed 1 -o again.gguf --overwrite
expect_different made.gguf again.gguf
run quantize made.gguf small.gguf Q4_K_M -q; expect_rc 0; expect_empty_out
run inspect small.gguf --check; expect_rc 0
check "is not a mixture" grep -qE '^ *weight types +(Q4_K Q6_K|Q6_K Q4_K) F32' out
refuse 2 "again.gguf is there already" quantize small.gguf again.gguf F16
run quantize small.gguf again.gguf F16 --overwrite; expect_rc 0
echo 1 5 300 | "$dpinfer" logits small.gguf --tokens - --exact >a.f32
echo 1 5 300 | "$dpinfer" logits again.gguf --tokens - --exact >b.f32
check "logits have the wrong size" test "$(wc -c <a.f32)" -eq $((3 * 1024 * 4))
check "logits have the wrong size" test "$(wc -c <b.f32)" -eq $((3 * 1024 * 4))
refuse 2 "no OUT and TYPE given" quantize made.gguf
refuse 2 "no OUT and TYPE given" quantize made.gguf x
refuse 2 "type 'Q2_K' cannot be written, allowed: F32 F16" quantize made.gguf x Q2_K
refuse 2 "made.gguf is an input and would be overwritten" quantize made.gguf made.gguf Q8_0
refuse 3 "none.gguf: cannot be opened" quantize none.gguf x Q8_0
mkfifo fifo
for file in fifo /dev/zero; do # neither need ever end
    refuse 5 "cannot read $file: it is not a regular file" verify "$file"
    refuse 2 "--tokens: cannot read $file: it is not a regular file" logits made.gguf \
        --tokens "$file"
    refuse 2 "cannot read $file: it is not a regular file" run made.gguf "$refs" --rho 1 \
        --public-prompt-file "$file"
done
mkfifo fifo.jsonl
refuse 4 "fifo.jsonl is not a regular file" run made.gguf fifo.jsonl --rho 1
refuse 2 "chat template llama3 needs" run made.gguf "$refs" --rho 1 --template llama3
refuse 3 "fifo: is not a regular file" quantize fifo x Q8_0
refuse 3 "is a directory" quantize . x Q8_0
refuse 3 "magic number" quantize a.f32 x Q8_0
refuse 1 "cannot write nowhere/x" quantize made.gguf nowhere/x Q8_0
refuse 2 "is written to a file" quantize made.gguf - Q8_0
refuse 2 "is written to a file" make-model -o -
refuse 2 "no -o FILE given" make-model --type Q8_0
refuse 2 "--shape: found 'gpt'" make-model --shape gpt -o x
refuse 2 "even multiple of n_head" make-model --heads 7 -o x
refuse 3 "magic number" make-model --vocab a.f32 -o x

# ---- pretrain ---------------------------------------------------------------------------------
{
    printf '%s\t0\n' '<unk>' '<s>' '</s>' '<|im_start|>' '<|im_end|>'
    printf '<0x%02X>\t0\n' {0..255}
    printf '%s\t-1\n' $'\xe2\x96\x81' {a..z}
} >vocab
for word in one two three four; do
    echo "{\"user\": \"say $word\", \"assistant\": \"$word $word\"}"
done >say.jsonl
cat >say.conf <<END
data = say.jsonl
heldout = say.jsonl
vocab = vocab
checkpoint = say.ckpt
output = say.gguf   # a comment
n_layer = 1
dim = 32
n_head = 2
n_kv_head = 1
ffn = 32
context = 256
batch_tokens = 256
steps = 20
warmup = 2
END
run pretrain say.conf; expect_rc 0; expect_empty_out
expect_err "step 20/20"; expect_err "held-out loss"; expect_err "wrote say.gguf (Q8_0)"
expect_lines 3 say.ckpt.csv
run inspect say.gguf --check; expect_rc 0; expect_out "every weight is finite"
expect_out "chatml"
run run say.gguf --plain --public-prompt "say one" -n 8 --seed 1; expect_rc 0
cp say.gguf first.gguf
sed -i 's/^steps = 20/steps = 30/' say.conf
refuse 2 "output: say.gguf is there already" pretrain say.conf -q
run pretrain say.conf -q --overwrite; expect_rc 0; expect_lines 4 say.ckpt.csv
expect_different first.gguf say.gguf
cp say.gguf first.gguf
run pretrain say.conf -q -q --overwrite; expect_rc 0
expect_same first.gguf say.gguf # nothing left to do
refuse 2 "no CONFIG given" pretrain
refuse 2 "cannot read none.conf" pretrain none.conf
refuse 2 "cannot read fifo: it is not a regular file" pretrain fifo
refuse 2 "cannot read /dev/zero: it is not a regular file" pretrain /dev/zero
refuse 2 "unexpected argument 'more'" pretrain say.conf more
echo "steps = many" >bad.conf
refuse 2 "bad.conf:1: steps is 'many', allowed: a whole number in 0..1000000000" pretrain bad.conf
sed 's/^dim = 32/dim = 40/' say.conf >bad.conf
refuse 1 "say.ckpt is of a run with another configuration" pretrain bad.conf --overwrite
sed 's/^output.*/output = .\/say.jsonl/' say.conf >bad.conf
refuse 2 "output: ./say.jsonl is an input and would be overwritten" pretrain bad.conf --overwrite
sed 's/^checkpoint.*/checkpoint = vocab/' say.conf >bad.conf
refuse 2 "checkpoint: vocab is an input and would be overwritten" pretrain bad.conf --overwrite
sed 's/^dim = 32/dim = 33/' say.conf >bad.conf
refuse 2 "dim is 33, must be an even multiple of n_head, 2" pretrain bad.conf --overwrite

# ---- bench ------------------------------------------------------------------------------------
# Times are not judged: only that every row is there and says what it was asked for.
run bench made.gguf -B 1,3 -p 4 -n 2 -t 1,2 -r 2 -o jsonl; expect_rc 0; expect_lines 6 out
expect_out '"threads":2,"test":"pp4+tg2"'
expect_out '"method":"invisibleink","B":3,"k":100,"rho":0.5'
expect_out '"PP":4,"TG":2,"N_KV":24,'; expect_out '"overhead_x":1.0,'
expect_out '"itl_x":1.0,'; expect_out '"peak_rss":'
for name in model size params backend t/s S_PP S_TG T S out_t/s fwd_t/s itl_ms tg_read_% \
    itl_read_% first_token_ms second_token_ms; do
    expect_out "\"$name\":"
done
expect_err "GB/s"
run bench made.gguf -B 2 -p 4,5 -n 2 -t 1 -r 1 -o csv --method plain,invisibleink,amin --top-k 7
expect_lines 7 out; expect_out '"random weights, 1 layers of 256",'; expect_out '"amin",2,7,'
run bench made.gguf -B 2 -p 4 -n 2 -t 1 -r 1 --prefix 9 -o csv --method amin
expect_lines 2 out; expect_out ',PP,prefix,TG,'; expect_out ',4,3,2,18,'
run bench made.gguf -B 2 -p 4 -n 2 -t 1 -r 1 --texts 1,3 -o csv; expect_rc 0; expect_lines 5 out
refuse 2 "--texts: found '0', allowed are numbers 1..64" bench made.gguf --texts 0
run bench made.gguf -B 2 -p 4 -n 2 -t 1 -r 1; expect_rc 0; expect_out "| tg2 | "
expect_out "| overhead_x |"; expect_out "| 1 | invisibleink | 2 |"; expect_lines 13 out
run bench made.gguf -B 2 -p 4 -n 2 -t 1 -r 1 -o json; expect_rc 0; expect_out '[{"model":'
for name in vocab_ms load_ms; do expect_out "\"$name\":"; done
refuse 2 "--method: found 'plain,x', allowed are names between commas" bench made.gguf \
    --method plain,x
refuse 2 "--method: found 'adapmixed'" bench made.gguf --method adapmixed
run bench -h; expect_out "(plain|invisibleink|amin|tang; default"
refuse 2 "-B: found '0', allowed are numbers 1..4096 between commas" bench made.gguf -B 0
refuse 2 "-p: found '3,x'" bench made.gguf -p 3,x
check "left something behind" test ! -e x
check "left a temporary file" test -z "$(find . -name '*.part')"

# ---- inspect, tokenize, logits: with the trained model -----------------------------------------
if [ ! -f "$model" ]; then
    echo "skipped: the tests that need $model"
    finish
fi
run inspect "$model" --check; expect_rc 0; expect_out "token_embd.weight"
expect_out "every weight is finite"
run inspect "$model" --json; expect_rc 0; near n_vocab 512; near n_layer 5; expect_out '"tensors"'

last=tokenize
printf 'Once upon a time' | "$dpinfer" tokenize "$model" >out 2>err; rc=$?; expect_rc 0
expect_lines 1 out
cp out a
printf 'Once upon a time' | "$dpinfer" tokenize "$model" --bos >out; sed 's/^1 //' out >b
expect_same b a
expect_different out a
printf 'Once upon a time\0\0Once upon a time' | "$dpinfer" tokenize "$model" --nul >out
{ cat a; echo; cat a; } >b; expect_same out b
: | "$dpinfer" tokenize "$model" --nul >out; expect_lines 0 out
"$dpinfer" tokenize "$data/tokenizer/vocab-llama-spm.gguf" --nul <"$data/tokenizer/random.strings" \
    >out 2>err
rc=$?; expect_rc 0; expect_same out "$data/tokenizer/random-spm.tokens"
"$dpinfer" tokenize "$data/tokenizer/vocab-llama3-bpe.gguf" --nul \
    <"$data/tokenizer/random.strings" >out 2>err
rc=$?; expect_rc 0; expect_same out "$data/tokenizer/random-bpe.tokens"

# NMSE of two files of float32.
nmse() {
    paste <(od -An -v -w4 -tf4 "$1") <(od -An -v -w4 -tf4 "$2") |
        awk '{ d = $1 - $2; e += d * d; s += $2 * $2 } END { print (NR > 0 && s > 0) ? e / s : 1 }'
}
near_golden() {
    if awk -v x="$(nmse "$1" "$2")" -v y="$3" 'BEGIN { exit !(x <= y) }'; then ok
    else bad "$last: NMSE is $(nmse "$1" "$2"), allowed $3"; fi
}
tokens=$data/golden/tokens64.txt
run logits "$model" --tokens "$tokens" -o exact.f32 --exact; expect_rc 0; expect_empty_out
near_golden exact.f32 "$data/golden/stories260K.exact.f32" 1e-9
"$dpinfer" logits "$model" --tokens - --exact <"$tokens" >piped.f32; expect_same piped.f32 exact.f32
run logits "$model" --tokens "$tokens" -o default.f32; near_golden default.f32 exact.f32 1e-4
refuse 2 "no --tokens FILE given" logits "$model"
printf '1 2 512' >big
refuse 2 "not a token id at byte 4, allowed 0..511" logits "$model" --tokens big
printf '1 -2' >big; refuse 2 "not a token id at byte 2" logits "$model" --tokens big
printf '1 2x' >big; refuse 2 "not a token id at byte 2" logits "$model" --tokens big
printf ' \n' >big; refuse 2 "found no token id" logits "$model" --tokens big
run logits "$model" --tokens "$tokens" -o nowhere/x; expect_rc 1
expect_err "cannot write nowhere/x"
run logits "$model" --tokens "$tokens" -o /dev/full; expect_rc 1; expect_err "No space left"

finish
