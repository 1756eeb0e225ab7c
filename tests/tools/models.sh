#!/usr/bin/env bash
# Tests of the commands about models: make, quantize, train, measure, look into: models.sh
# path/to/dpinfer What needs the shared data ($DPI_DATA or ../shared/data) is skipped with a message
# when it is absent.
. "$(dirname "$0")/cli_support.sh"
refs=$here/../../examples/refs/stories
data=${DPI_DATA:-$here/../../../shared/data}
model=$data/models/stories260K.gguf

# ---- quantize, make-model ---------------------------------------------------------------------
works make-model --type F32 --layers 1 -o made.gguf; expect_empty_out
works inspect made.gguf --check; expect_out "every weight is finite"
expect_line out '^ *random weights +yes'
# What does not run says what is missing.
works inspect made.gguf; expect_line out '^ *runs here +yes$'
works inspect made.gguf --json; expect_out '"runs": true'
sed 's/general.architecture\(.\{12\}\)llama/general.architecture\1mamba/' made.gguf >not.gguf
missing="general.architecture is 'mamba', only llama"
refuse 3 "not.gguf: $missing" inspect not.gguf
fails 3 inspect not.gguf --json; expect_err "$missing"
expect_out '"runs": false' "\"missing\": \"not.gguf: $missing"
fails 3 inspect none.gguf --json; expect_err "none.gguf: cannot be opened"; expect_empty_out
# A model of Hugging Face: how it is converted.
mkdir hf
echo '{}' >hf/config.json
printf '\2\0\0\0\0\0\0\0{}' >hf/model.safetensors
printf 'PK\3\4' >pytorch_model.bin
printf '%s | python convert_hf_to_gguf.py FOLDER --outfile model.gguf\n' >foreign "inspect hf" \
    "tokenize hf/model.safetensors" "logits pytorch_model.bin --tokens made.gguf" "bench hf/" \
    "run hf '$refs' --rho 1" "plan hf/model.safetensors '$refs' --rho 1" "audit hf" \
    "quantize hf x.gguf Q8_0" "serve pytorch_model.bin" "perturb hf '$refs' --epsilon 1" \
    "generate hf" "make-model --vocab hf -o x.gguf"
refuse_each 3 <foreign
# A template that is none of the known ones is said, with the nearest; --template chooses.
LC_ALL=C sed 's/add_generation_prompt/enable_thinking == 12/' \
    "$here/../../models/dpinfer-4m-q8_0.gguf" >odd.gguf
works inspect odd.gguf; expect_line out '^ *nearest template +chatml$'
once=(--plain -n 1 --public-prompt x)
works run odd.gguf "${once[@]}"; expect_err "none of the known ones (the nearest is chatml)"
works run odd.gguf "${once[@]}" --template chatml; expect_no_err "none of the known ones"
run make-model --type F32 --layers 1 --seed 0 -t 1 -o again.gguf; expect_same made.gguf again.gguf
refuse 2 "again.gguf is there already" make-model --type F32 --layers 1 --seed 1 -o again.gguf
run make-model --type F32 --layers 1 --seed 1 -o again.gguf --overwrite
expect_different made.gguf again.gguf
works quantize made.gguf small.gguf Q4_K_M -q; expect_empty_out
works inspect small.gguf --check; expect_line out '^ *weight types +(Q4_K Q6_K|Q6_K Q4_K) F32'
refuse 2 "again.gguf is there already" quantize small.gguf again.gguf F16
works quantize small.gguf again.gguf F16 --overwrite
for name in small again; do
    echo 1 5 300 | "$dpinfer" logits $name.gguf --tokens - --exact >$name.f32
    check "logits have the wrong size" test "$(wc -c <$name.f32)" -eq $((3 * 1024 * 4))
done
mkfifo fifo fifo.jsonl
for file in fifo /dev/zero; do # neither need ever end
    what="cannot read $file: it is not a regular file"
    refuse 5 "$what" verify "$file"
    refuse 2 "--tokens: $what" logits made.gguf --tokens "$file"
    refuse 2 "$what" run made.gguf "$refs" --rho 1 --public-prompt-file "$file"
    refuse 2 "$what" pretrain "$file"
done
refuse 4 "fifo.jsonl is not a regular file" run made.gguf fifo.jsonl --rho 1
refuse 2 "chat template llama3 needs" run made.gguf "$refs" --rho 1 --template llama3
refuse_each 2 <<'END'
quantize made.gguf                 | no OUT and TYPE given
quantize made.gguf x               | no OUT and TYPE given
quantize made.gguf x Q2_K          | type 'Q2_K' cannot be written, allowed: F32 F16
quantize made.gguf made.gguf Q8_0  | made.gguf is an input and would be overwritten
quantize made.gguf - Q8_0          | is written to a file
make-model -o -                    | is written to a file
make-model --type Q8_0             | no -o FILE given
make-model --shape gpt -o x        | --shape: found 'gpt'
make-model --heads 7 -o x          | even multiple of --heads
END
refuse_each 3 <<'END'
quantize none.gguf x Q8_0          | none.gguf: cannot be opened
quantize fifo x Q8_0               | fifo: is not a regular file
quantize . x Q8_0                  | is a directory
quantize small.f32 x Q8_0          | does not begin with "GGUF"
make-model --vocab small.f32 -o x  | does not begin with "GGUF"
END
refuse 1 "cannot write nowhere/x" quantize made.gguf nowhere/x Q8_0

# ---- pretrain ---------------------------------------------------------------------------------
{
    printf '%s\t0\n' '<unk>' '<s>' '</s>' '<|im_start|>' '<|im_end|>'
    printf '<0x%02X>\t0\n' {0..255}
    printf '%s\t-1\n' $'\xe2\x96\x81' {a..z}
} >vocab
for word in one two three four; do
    echo "{\"user\": \"say $word\", \"assistant\": \"$word $word\"}"
done >say.jsonl
printf '%s\n' 'data = say.jsonl' 'heldout = say.jsonl' 'vocab = vocab' 'checkpoint = say.ckpt' \
    'output = say.gguf   # a comment' 'n_layer = 1' 'dim = 32' 'n_head = 2' 'n_kv_head = 1' \
    'ffn = 32' 'context = 256' 'batch_tokens = 256' 'steps = 20' 'warmup = 2' >say.conf
works pretrain say.conf; expect_empty_out; expect_lines 3 say.ckpt.csv
expect_err "step 20/20" "held-out loss" "wrote say.gguf (Q8_0)"
works inspect say.gguf --check; expect_out "every weight is finite" "chatml"
works run say.gguf --plain --public-prompt "say one" -n 8 --seed 1
cp say.gguf first.gguf
sed -i 's/^steps = 20/steps = 30/' say.conf
refuse 2 "output: say.gguf is there already" pretrain say.conf -q
works pretrain say.conf -q --overwrite; expect_lines 4 say.ckpt.csv
expect_different first.gguf say.gguf
cp say.gguf first.gguf
works pretrain say.conf -q -q --overwrite; expect_same first.gguf say.gguf # nothing left to do
refuse 2 "no CONFIG given" pretrain
refuse 2 "cannot read none.conf" pretrain none.conf
refuse 2 "unexpected argument 'more'" pretrain say.conf more
echo "steps = many" >bad.conf
refuse 2 "bad.conf:1: steps is 'many', allowed: a whole number in 0..1000000000" pretrain bad.conf
while IFS='|' read -r change code text; do
    sed "$change" say.conf >bad.conf; refuse "$code" "$text" pretrain bad.conf --overwrite
done <<'END'
s/^dim = 32/dim = 40/|1|say.ckpt is of a run with another configuration
s/^output.*/output = .\/say.jsonl/|2|output: ./say.jsonl is an input and would be overwritten
s/^checkpoint.*/checkpoint = vocab/|2|checkpoint: vocab is an input and would be overwritten
s/^dim = 32/dim = 33/|2|dim is 33, must be an even multiple of n_head, 2
END

# ---- bench ------------------------------------------------------------------------------------
# Times are not judged: only that every row is there and says what it was asked for.
small_model
works bench m.gguf -B 1,3 -p 4 -n 2 -t 1,2 -r 2 -o jsonl; expect_lines 6 out; expect_err "GB/s"
expect_out '"threads":2,"test":"pp4+tg2"' '"method":"invisibleink","B":3,"k":100,"rho":0.5' \
    '"PP":4,"TG":2,"N_KV":24,' '"overhead_x":1.0,' '"itl_x":1.0,' '"peak_rss":'
for name in model size params backend t/s S_PP S_TG T S out_t/s fwd_t/s itl_ms tg_read_% \
    itl_read_% first_token_ms second_token_ms job_x pp_attn_% pp_attn_peak_% tg_attn_%; do
    expect_out "\"$name\":"
done
bench() { works bench m.gguf -B 2 -p 4 -n 2 -t 1 -r 1 "$@"; }
works bench m.gguf -B 2 -p 4,5 -n 2 -t 1 -r 1 --texts 1,3 -o csv --top-k 7 \
    --method plain,invisibleink,amin
expect_lines 13 out; expect_out '"random weights, 1 layers of 32",' '"amin",2,3,7,'
bench --prefix 9 -o csv --method amin --top-k 7
expect_lines 2 out; expect_out ',PP,prefix,TG,' ',4,3,2,18,' '"amin",2,7,'
bench; expect_lines 13 out; expect_out "| tg2 | " "| overhead_x |" "| 1 | invisibleink | 2 |"
bench -o json; expect_out '[{"model":' '"vocab_ms":' '"load_ms":'
refuse_each 2 bench m.gguf <<'END'
--texts 0           | --texts: found '0', allowed are numbers 1..64
--method plain,x    | --method: found 'plain,x', allowed are names between commas
--method adapmixed  | --method: found 'adapmixed'
-B 0                | -B: found '0', allowed are numbers 1..4096 between commas
-p 3,x              | -p: found '3,x'
END
run bench -h; expect_out "(plain|invisibleink|amin|tang; default"; expect_none x
check "left a temporary file" test -z "$(find . -name '*.part')"

# ---- inspect, tokenize, logits: with the trained model -----------------------------------------
if [ ! -f "$model" ]; then
    echo "skipped: the tests that need $model"
    finish
fi
works inspect "$model" --check; expect_out "token_embd.weight" "every weight is finite"
works inspect "$model" --json; near n_vocab 512; near n_layer 5; expect_out '"tensors"'

# tokens_of_text TEXT ARGS: `out` has the tokens of a text, with printf's escapes.
tokens_of_text() {
    last="tokenize ${*:2} of $1"
    # shellcheck disable=SC2059
    printf "$1" | "$dpinfer" tokenize "$model" "${@:2}" >out 2>err
    rc=$?
    expect_rc 0
}
tokens_of_text 'Once upon a time'; expect_lines 1 out; cp out a
tokens_of_text 'Once upon a time' --bos; expect_different out a
sed 's/^1 //' out >b; expect_same b a
{ cat a; echo; cat a; } >b
tokens_of_text 'Once upon a time\0\0Once upon a time' --nul; expect_same out b
tokens_of_text '' --nul; expect_lines 0 out
for vocab in llama-spm llama3-bpe; do
    last="tokenize, $vocab"
    "$dpinfer" tokenize "$data/tokenizer/vocab-$vocab.gguf" --nul \
        <"$data/tokenizer/random.strings" >out 2>err
    rc=$?
    expect_rc 0; expect_same out "$data/tokenizer/random-${vocab#*-}.tokens"
done

# NMSE of two files of float32.
nmse() {
    paste <(od -An -v -w4 -tf4 "$1") <(od -An -v -w4 -tf4 "$2") |
        awk '{ d = $1 - $2; e += d * d; s += $2 * $2 } END { print (NR > 0 && s > 0) ? e / s : 1 }'
}
near_golden() { holds "NMSE of $1" "$(nmse "$1" "$2") <= $3"; }
tokens=$data/golden/tokens64.txt
works logits "$model" --tokens "$tokens" -o exact.f32 --exact; expect_empty_out
near_golden exact.f32 "$data/golden/stories260K.exact.f32" 1e-9
"$dpinfer" logits "$model" --tokens - --exact <"$tokens" >piped.f32; expect_same piped.f32 exact.f32
run logits "$model" --tokens "$tokens" -o default.f32; near_golden default.f32 exact.f32 1e-4
refuse 2 "no --tokens FILE given" logits "$model"
while IFS='|' read -r ids text; do
    printf '%s' "$ids" >big; refuse 2 "$text" logits "$model" --tokens big
done <<'END'
1 2 512|not a token id at byte 4, allowed 0..511
1 -2|not a token id at byte 2
1 2x|not a token id at byte 2
 |found no token id
END
fails 1 logits "$model" --tokens "$tokens" -o nowhere/x; expect_err "cannot write nowhere/x"
fails 1 logits "$model" --tokens "$tokens" -o /dev/full; expect_err "No space left"

# ---- layers with a recurrent state -------------------------------------------------------------
recurrent=$data/arch/qwen35-A.gguf
works inspect "$recurrent"; expect_line out '^ *n_recurrent +3$'
from_records() { # ARGS: the same texts, however they are computed
    works run "$recurrent" "$refs" --rho 1 -B 4 -n 8 --template none --seed 1 \
        --private-prompt 'Like this: {reference}' --public-prompt 'Like this:' --overwrite \
        -o texts "$@"
}
from_records -t 1 --parallel 1; expect_err "rho, spent"; cp texts alone
from_records -t 2 --parallel 3; expect_same texts alone

# Gemma 4, whose layers differ in what they have: from records to texts, and in smaller types.
for name in gemma4-A gemma4-e2b-A; do
    file=$data/arch/$name
    works run "$file.gguf" "$refs" --rho 1 -B 3 -n 4 --public-prompt x
    works quantize "$file.gguf" "$name.gguf" Q4_K_M -q
    works logits "$name.gguf" --tokens "$file.tokens" -o "$name.f32"
    near_golden "$name.f32" "$file.exact.f32" .03
done

finish
