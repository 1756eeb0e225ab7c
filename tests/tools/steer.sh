#!/usr/bin/env bash
# Steering vectors from outside: steer.sh path/to/dpinfer
# What is refused, charged, written, verified; texts with them; a model that is not theirs.
# shellcheck disable=SC2086 # arguments are words
. "$(dirname "$0")/cli_support.sh"
"$dpinfer" make-model --layers 3 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 -o m.gguf 2>err || exit 1
"$dpinfer" make-model --layers 3 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 --seed 1 -o other.gguf 2>err || exit 1
echo who,text >people.csv
for i in 1 2 3 4 5 6; do echo "p$((i % 4)),Record $i of Anna and others."; done >>people.csv
printf '%s\n' text abc "some more" "and others" >public.csv
brief="people.csv --delta 1e-3 --instruction say --positions 64 -t 1 --public public.csv"

# ---- What is refused, before anything is charged ---------------------------------------------
works ledger init year --dataset all --epsilon 10 --delta 1e-3
refuse_each 2 steer m.gguf <<END
                                       | no RECORDS given
$brief --epsilon 1                     | -o FILE: needed
$brief -o s.gguf                       | --epsilon and --sigma: needed is one
$brief -o s.gguf --epsilon 1 --sigma 1 | needed is one
$brief -o s.gguf --epsilon 1 --units 9 | --units: allowed with --adjacency add-remove
$brief -o s.gguf --epsilon 1 --adjacency add-remove | --units N: needed
$brief -o s.gguf --epsilon 1 --max-per-unit 2 | --max-per-unit needs --unit-field
$brief -o s.gguf --epsilon 1 --public-texts 9 | --public and --public-texts
$brief -o s.gguf --epsilon 1 --layers 0 | layers: found 0, allowed are 1..2
$brief -o s.gguf --epsilon 1 --layers 2,1 | layers: found 1, allowed
$brief -o s.gguf --epsilon 1 --layers 1,,2 | --layers: found ',2'
$brief -o s.gguf --epsilon 1 --layers 1, | --layers: found '1,'
$brief -o s.gguf --epsilon 1 --describe notes | --instruction and --describe
people.csv --delta .2 -o s.gguf --epsilon 1 | delta: found 0.2
$brief -o s.gguf --epsilon 1 --positions 3 | positions
$brief -o s.gguf --epsilon 1 --seed 1 --ledger year | a ledger counts guarantees
$brief -o people.csv --epsilon 1 --overwrite | people.csv
END
fails 4 steer m.gguf nothing.csv -o s.gguf --epsilon 1
fails 3 steer nothing.gguf $brief -o s.gguf --epsilon 1
fails 6 steer m.gguf $brief -o s.gguf --epsilon 20 --ledger year
expect_none s.gguf
works ledger show year --json; expect_out '"n_charges": 0'
works steer m.gguf $brief --epsilon 1 --plan; expect_err "(1, 0.001)-DP" "units              6"
expect_none s.gguf

# ---- Vectors, and texts with them ------------------------------------------------------------
works steer m.gguf $brief --epsilon 4 --unit-field who --layers 1,2 --ledger year -o s.gguf
expect_empty_out; expect_err "(3.99" "all records with one unit ID" "layers             2"
works ledger show year; expect_out "steering" "1 sum"
works verify s.gguf; expect_out verified PRIVATE
works inspect m.gguf --control-vector s.gguf; expect_out "layers with a vector 2"
fails 3 inspect other.gguf --control-vector s.gguf; expect_err "is of another model"
drawn="generate m.gguf --steer s.gguf --num 3 -n 5 --seed 1 --jsonl"
works $drawn --report texts.json -o texts.jsonl
expect_lines 3 texts.jsonl; expect_count 3 '"private":true' texts.jsonl
expect_err "steering vectors of clipped states" "(3.99" "of 3 texts end at -n 5"
expect_line texts.json '"alike": [0-9]'
works ${drawn/--jsonl/-q} --report rows.json -o rows.csv; expect_no_err "note:"
works verify rows.json --output rows.csv
python_check "rows of a .csv" <<'P'
rows = list(csv.reader(open("rows.csv", newline="")))
assert rows == [["index", "text", "n_tokens", "ended", "private"]] + [
    [str(o["index"]), o["text"], str(o["n_tokens"]), json.dumps(o["ended"]), "true"]
    for o in objects("texts.jsonl")]
P
works verify texts.json --output texts.jsonl --steer s.gguf
expect_out "PRIVATE" "the vectors are those named"
refuse 2 "--lora: not looked at" verify texts.json --lora s.gguf
works steer m.gguf $brief --epsilon 3 --unit-field who --layers 1,2 -o again.gguf
fails 1 verify texts.json --steer again.gguf; expect_out "WRONG  claim"
works $drawn; expect_same out texts.jsonl
refuse 2 "--steer and --lora" generate m.gguf --steer s.gguf --lora s.gguf
refuse 2 "--steer and --control-vector" generate m.gguf --steer s.gguf --control-vector s.gguf
refuse 2 "--lora: s.gguf is of 'dpinfer steer'" generate m.gguf --lora s.gguf
fails 3 generate other.gguf --steer s.gguf -n 3; expect_err "is of another model"

# ---- Records again, with the vectors: one claim of both ---------------------------------------
works steer m.gguf $brief --epsilon 4 --unit-field who --layers 1,2 -o own.gguf
steered="run m.gguf people.csv --steer own.gguf --unit-field who --delta 1e-3 -B 2 -n 5 -t 1"
works $steered --rho .5 --report run.json -o run.txt
rho=$(python3 -c "
import json
r = json.load(open('run.json'))
texts, vectors = r['parameters']['mechanisms'] if 'parameters' in r else r['claim']['mechanisms']
print(.5 + .5 / vectors['sigma'] ** 2)")
expect_err "steering vectors of clipped states" "${rho:0:5}"
works verify run.json --model m.gguf --steer own.gguf
expect_out PRIVATE "model and vectors are those named"
works verify run.json; expect_out "model and vectors were not looked at"
fails 1 verify run.json --steer again.gguf; expect_out "WRONG  claim.steering"
# Vectors of other units than the run's, or with noise that somebody knows: they are the same ones.
for key in M n_units; do
    sed 's/"'$key'":[0-9]/"'$key'":9/' own.gguf >units.gguf
    fails 1 verify run.json --steer units.gguf
    expect_out "WRONG  claim.steering" "WRONG  model.control_vector.sha256"
done
works steer m.gguf $brief --epsilon 4 --unit-field who --layers 1,2 --seed 5 -o known.gguf
works ${steered/own/known} --rho .5 --report known.json -o known.txt; expect_err "NOT PRIVATE"
works verify known.json --steer known.gguf; expect_out "NOT PRIVATE"
sed 's/"randomness": "seed"/"randomness": "getrandom"/' known.json >forged.json
fails 1 verify forged.json --steer known.gguf; expect_out "WRONG  claim.steering"
# A report that names another file, or none, for the model that it had.
sed "s/$(sha256sum own.gguf | cut -c 1-64)/$(sha256sum m.gguf | cut -c 1-64)/" run.json >forged.json
fails 1 verify forged.json --steer own.gguf; expect_out "WRONG  model.control_vector.sha256"
# ---- What the file says of itself ---------------------------------------------------------------
sed 's/dpinfer.adapter.base/dpinfer.adapter.none/' own.gguf >none.gguf
refuse 5 "says ''" verify none.gguf
refuse 5 "says ''" generate m.gguf --steer none.gguf -n 3
sed 's/"model":"random/"model":"Random/' own.gguf >named.gguf
refuse 5 "it is of the model 'Random" verify named.gguf
works $steered --rho .5 --control-vector-scale 0 --job job --report job.json -o job.txt
works verify job.json; expect_out PRIVATE
refuse_each 2 run m.gguf people.csv -B 2 -n 5 --delta 1e-3 <<END
--steer own.gguf --unit-field who --rho 1 --adjacency add-remove --num 2 | --steer: found add-remove
--steer own.gguf --unit-field who --epsilon 1 --accountant br | --steer: found the accountant br
--steer own.gguf --rho 1 | of 4 units of at most 4 records
--steer s.gguf --unit-field who --rho 1 --ledger year | --steer: found a ledger
--steer s.gguf --unit-field who --rho 1 --ledger year | by --control-vector in place of this
--steer own.gguf --control-vector own.gguf --rho 1 | --steer and --control-vector
END
refuse 2 "leave out --steer" run m.gguf people.csv --plain --steer own.gguf
works steer m.gguf $brief --unit-field who --epsilon inf -o loud.gguf
refuse 2 "the vectors have no noise" \
    run m.gguf people.csv --steer loud.gguf --unit-field who --rho 1
# A claim that is not that of its vectors.
sed 's/"sigma":[0-9.]*/"sigma":99/' s.gguf >forged.gguf; expect_different s.gguf forged.gguf
"$dpinfer" verify forged.gguf >out 2>err && bad "a forged claim is verified"
"$dpinfer" generate m.gguf --steer forged.gguf -n 3 >out 2>err && bad "a forged claim is used"

# ---- With a seed, the same; without noise, not private ---------------------------------------
works steer m.gguf $brief --epsilon 4 --seed 3 -o a.gguf; expect_err "NOT PRIVATE"
works steer m.gguf $brief --epsilon 4 --seed 3 -o b.gguf; expect_same a.gguf b.gguf
works steer m.gguf $brief --epsilon inf -o c.gguf; expect_err "no noise was added"
works generate m.gguf --steer c.gguf --num 1 -n 3 --jsonl; expect_count 1 '"private":false' out
works ${drawn/s.gguf/c.gguf} --control-vector-scale 0; cp out none
works ${drawn/s.gguf/c.gguf} --control-vector-scale 500; expect_different out none
# Texts of a description are items of a list; the file says so, and the report.
works steer m.gguf ${brief/--instruction say/--describe notes} --epsilon 4 -o e.gguf
works verify e.gguf; expect_out PRIVATE
works generate m.gguf --steer e.gguf --num 3 -n 5 --seed 1 --jsonl --report e.json
expect_count 1 '"answer":" \\""' <(python3 -c "
import json
json.dump(json.load(open('e.json')).get('wording'), open(1, 'w'), separators=(',', ':'))")
cp out listed
works generate m.gguf --steer e.gguf --describe notes --num 3 -n 5 --seed 1 --jsonl
expect_same out listed
works generate m.gguf --steer e.gguf --instruction notes --num 3 -n 5 --seed 1 --jsonl
expect_different out listed
# Above 256 positions texts are long, and stand below headings.
long="${brief/--instruction say/--describe notes} --epsilon 4 -o long.gguf"
works steer m.gguf ${long/--positions 64/--positions 257}
works verify long.gguf; expect_out PRIVATE
works generate m.gguf --steer long.gguf --num 2 -n 5 --jsonl --report long.json
python3 - <<'P' || bad "texts of a description that are long"
import json
assert json.load(open("long.json"))["wording"]["stops"] == ["\nText "]
P
# ---- Labels: each has vectors of its own ------------------------------------------------------
echo kind,text >kinds.csv
for i in 1 2 3 4 5 6; do echo "$((i % 2))_x,Record $i of Anna and others."; done >>kinds.csv
printf '%s\n' kind,text "1_x,abc" "1_x,some more" "0_x,and others" "0_x,a letter" >public_kinds.csv
kinds="kinds.csv --delta 1e-3 --label-field kind --positions 64 -t 1 --public public_kinds.csv"
printf '0_x\n1_x\n' >both
works ledger init labels --dataset all --epsilon 10 --delta 1e-3
refuse_each 2 steer m.gguf <<END
$kinds --describe notes -o k.gguf --epsilon 1 | --describe: found no {label}, needed with labels
$brief --describe notes -o k.gguf --epsilon 1 --label-names public.csv | --label-names needs
$kinds --describe {label} -o k.gguf --epsilon 1 --label-names public.csv | names: found no unit of
$kinds --describe {label} -o k.gguf --epsilon 1 --adjacency add-remove --units 9 | needed with add
END
works steer m.gguf $kinds --epsilon 8 --describe {label} --ledger labels -o k.gguf
expect_err "labels             2" "public: which unit has which label"
expect_err "vectors            64 numbers"
works ledger show labels; expect_out "1 sum"
works verify k.gguf; expect_out PRIVATE
works steer m.gguf $kinds --epsilon 8 --describe {label} --key-words 0 -o silent.gguf
expect_no_err "words, asked for"
works steer m.gguf $kinds --epsilon 8 --describe {label} -o usual.gguf
expect_err "words, asked for   1000"
refuse 3 "k.gguf is a control vector (general.architecture), and no model" inspect k.gguf
works inspect m.gguf --control-vector k.gguf; expect_out "sets of vectors    2"
sed 's/"labels":"public","n_labels":2/"labels":null, "n_labels":null/' silent.gguf >none.gguf
refuse 5 "found 0 labels in it, 2 in dpinfer.finetune.labels" verify none.gguf
works generate m.gguf --steer k.gguf --num 2 -n 9 --report k.json -o k.jsonl
works verify k.json --output k.jsonl --steer k.gguf; expect_out PRIVATE
works steer m.gguf $kinds --epsilon inf --describe {label} -o loud_kinds.gguf
loud="generate m.gguf --steer loud_kinds.gguf --control-vector-scale 20 --seed 3 -n 9 --jsonl"
works $loud --num 4 -o loud.jsonl
# Vectors of labels are twice as strong where nothing is said, others as they are.
works ${loud/ --control-vector-scale 20/} --num 9; cp out unsaid
works ${loud/scale 20/scale 2} --num 9; expect_same out unsaid
works ${loud/scale 20/scale 1} --num 9; expect_different out unsaid
works $drawn; cp out unsaid
works $drawn --control-vector-scale 1; expect_same out unsaid
# The bits of a text follow from the seed and its number, so that text 1 is the same of its label.
echo "2 0_x" >one; works $loud --num-per-label one; cp out one.jsonl
echo "2 1_x" >two; works $loud --num-per-label two
python3 - <<'P' || bad "vectors of another label"
import json
of, one, two = ([json.loads(line) for line in open(f)] for f in ("loud.jsonl", "one.jsonl", "out"))
assert [t["text_label"] for t in of] == ["1_x", "0_x", "1_x", "0_x"], of
assert of[1]["text"] == one[1]["text"] and of[0]["text"] == two[0]["text"], (of, one, two)
assert one[0]["text"] != two[0]["text"], (one, two)
P
# What {label} stands for: texts are those of records whose labels say it, and have the label.
printf '0_x\tfirst kind\n1_x\n' >meant
sed 's/0_x/first kind/; s/1_x/1 x/' kinds.csv >said.csv
sed 's/0_x/first kind/; s/1_x/1 x/' public_kinds.csv >public_said.csv
printf 'first kind\n1 x\n' >said
for names in meant said; do
    options=${kinds//kinds.csv/$names.csv}
    [ $names = meant ] && options=$kinds
    works steer m.gguf $options --epsilon inf --describe {label} --label-names $names -o $names.gguf
    works generate m.gguf --steer $names.gguf --control-vector-scale 20 --seed 3 -n 9 --num 4 \
        --jsonl
    cp out $names.jsonl
done
expect_count 2 0_x meant.jsonl; expect_count 2 1_x meant.jsonl
sed 's/first kind/0_x/; s/1 x/1_x/' said.jsonl >as_meant.jsonl
expect_same as_meant.jsonl meant.jsonl
printf '2 0_x\tanother kind\n2 1_x\n' >numbers
works generate m.gguf --steer meant.gguf --control-vector-scale 20 --seed 3 -n 9 --jsonl \
    --num-per-label numbers
expect_different out meant.jsonl
printf '0_x\t\n1_x\n' >blank
refuse 2 "line 1 has a TAB and no description" steer m.gguf $kinds --epsilon 1 --describe {label} \
    --label-names blank -o x.gguf
sed 's/first kind/first\nkind/' meant.gguf >lines.gguf
refuse 5 "label_meanings: found 3 lines, needed are 2" generate m.gguf --steer lines.gguf -n 4
refuse 5 "label_meanings: found 3 lines, needed are 2" verify lines.gguf
# Words that tell labels apart, in prompts of texts with the vectors: the same texts as with these
# words on the command line.
printf '%s\n' kind,text "0_x,bolt and nut" "0_x,Bolt nut" "1_x,wood" "1_x,wood bolt" >worded.csv
echo kind,text >told.csv
for i in 1 2 3 4 5 6 7 8; do printf '%s\n' "0_x,A nut and bolt $i" "1_x,wood" >>told.csv; done
told="told.csv --delta 1e-3 --label-field kind --positions 64 -t 1 --public worded.csv"
refuse 2 "--key-words: found 9, allowed with labels" steer m.gguf $brief --epsilon 1 --key-words 9 \
    -o x.gguf
works steer m.gguf $told --describe {label} --epsilon inf --key-words 9 -o told.gguf
expect_err "words, asked for   9" "NOT PRIVATE"
expect_err "key words of '0_x': nut bolt" "key words of '1_x': wood"
works steer m.gguf $told --describe {label} --epsilon 40 --key-words 9 -o quiet.gguf
works verify quiet.gguf; expect_out verified PRIVATE
with="generate m.gguf --steer told.gguf -n 6 --seed 1 --jsonl -q"
works $with --num 2 --best-of 1; cp out hinted.jsonl
printf '1 0_x\t0 x (nut, bolt)\n1 1_x\t1 x (wood)\n' >hints
works $with --num-per-label hints --best-of 1; expect_same out hinted.jsonl
printf '1 0_x\n1 1_x\n' >hints
works $with --num-per-label hints --best-of 1; expect_different out hinted.jsonl
works $with; expect_lines 2 out
# Of several texts those that say what records said: labels in turn, also where they do not come out
# even, and of those that are asked for as many as they shall have.
works $with --num 5 --best-of 3 --report best.json; expect_lines 5 out
expect_line best.json '"best_of": 3'
expect_count 3 '"text_label":"0_x"' out
in_turn=$(sed -n 's/.*"index":\([0-9]*\).*"text_label":"\([01]\).*/\1\2/p' out | tr -d '\n')
check "labels in turn" test "$in_turn" = 0011203140
works verify best.json; expect_out verified
sed 's/"best_of": 3/"best_of": 1/' best.json >best-bad.json
refuse 5 "best_of is 1, must be 2..64" verify best-bad.json
printf '3 1_x\n1 0_x\n' >hints
works $with --num-per-label hints --best-of 4; expect_lines 4 out
check "labels one after the other" test "$(grep -o '"text_label":"[01]' out | tr -dc '01')" = 1110
works $with --num 4 --best-of 1 --report each.json; expect_count 0 best_of each.json
works $with --num 1 --report usual.json; expect_line usual.json '"best_of": 4'; expect_lines 1 out
works $with --num 1 --best-of 7; expect_lines 1 out
echo 'root ::= "nut bolt" | "wood" | "glue"' >words.gbnf
works generate m.gguf --steer told.gguf -n 12 --seed 1 --jsonl --num 8 --best-of 8 \
    --grammar words.gbnf
expect_count 4 '"text_label":"0_x","text":"nut bolt"' out
expect_count 4 '"text_label":"1_x","text":"wood"' out
refuse 2 "--best-of: found no words in silent.gguf" generate m.gguf --steer silent.gguf -n 4 \
    --best-of 4
refuse 2 "--best-of: found no words in k.gguf" generate m.gguf \
    --steer k.gguf -n 4 --best-of 4
refuse 2 "--best-of: found '65', allowed 1..64" $with --best-of 65
refuse 2 "texts: found 100000000, allowed 1..16" $with --num 100000000 --best-of 64
sed 's/key_words/key_verbs/' told.gguf >verbs.gguf
refuse 5 "unknown key dpinfer.finetune.key_verbs" generate m.gguf --steer verbs.gguf -n 4
works run m.gguf told.csv --label-field kind -B 2 -n 5 --rho .1 --delta 1e-3 --describe {label} \
    --steer quiet.gguf --report worded.json -o worded.jsonl
works verify worded.json --steer quiet.gguf; expect_out verified
expect_line worded.json '"words": 9'
# Whoever knows no labels cannot use them, and pays nothing.
works ledger init untouched --dataset all --epsilon 10 --delta 1e-3
refuse 2 "has 2 sets, of labels" run m.gguf kinds.csv -B 2 -n 5 --rho .1 --delta 1e-3 \
    --control-vector k.gguf --ledger untouched
works ledger show untouched --json; expect_out '"n_charges": 0'
refuse 2 "the vectors are of 2 labels" \
    run m.gguf kinds.csv -B 2 -n 5 --rho .1 --delta 1e-3 --steer k.gguf
# A run of the same labels: each text has the vectors of its own, so strong that they alone count.
works steer m.gguf $kinds --epsilon 8 --describe {label} --seed 4 -o seeded.gguf
works generate m.gguf --steer seeded.gguf --control-vector-scale 500 --top-p .0001 --num 40 -n 5 \
    --jsonl
cp out drawn
labelled="run m.gguf kinds.csv --label-field kind --steer seeded.gguf --describe {label} -B 1 -n 5"
works $labelled --rho .5 --delta 1e-3 --control-vector-scale 500 --top-k 1 --temp .01 \
    --report labelled.json -o labelled.jsonl
expect_err "steering vectors of clipped states" "which unit has which label is no secret"
works verify labelled.json --model m.gguf --steer seeded.gguf
python3 - <<'P' || bad "texts with the vectors of another label"
import json
drawn, texts = ([json.loads(line) for line in open(f)] for f in ("drawn", "labelled.jsonl"))
assert len(texts) == 6, texts
def shares(of, label): # of each character; white space at the ends is no part of a text
    read = "".join(t["text"] for t in of if t["text_label"] == label)
    return {c: read.count(c) / len(read) for c in read}
def alike(a, b): # 1 - total variation
    a, b = shares(drawn, a), shares(texts, b)
    return sum(min(a[c], b.get(c, 0)) for c in a)
own, other = alike("0_x", "0_x") + alike("1_x", "1_x"), alike("0_x", "1_x") + alike("1_x", "0_x")
assert own > other + .5, (own, other, drawn, texts)
P
refuse 2 "--steer: the vectors are of 2 labels" $labelled --rho .5 --delta 1e-3 \
    --adjacency add-remove --num 2 --label-names both
echo 0_x >one
works steer m.gguf $kinds --epsilon 8 --describe {label} --label-names one -o one.gguf
refuse 2 "the vectors are of 1 labels" run m.gguf kinds.csv -B 2 -n 5 --rho .1 --delta 1e-3 \
    --steer one.gguf
sed 's/"n_labels":2/"n_labels":1/' k.gguf >forged.gguf; expect_different k.gguf forged.gguf
"$dpinfer" verify forged.gguf >out 2>err && bad "a claim of fewer labels is verified"
# The model writes the public texts itself.
works steer m.gguf ${kinds/--public public_kinds.csv/} --public-texts 4 --describe {label} \
    --epsilon 2 --adjacency add-remove --units 9 --label-names both -o l.gguf
expect_err "private: a unit's label is a secret"
works verify l.gguf; expect_out PRIVATE
works steer m.gguf ${brief/--public public.csv/} --public-texts 4 --epsilon 2 -o d.gguf
works verify d.gguf; expect_out "PRIVATE"
works steer m.gguf $brief --epsilon .1 --seed 1 -o f.gguf
expect_err "the noise has drowned the vectors: they"
works steer m.gguf $kinds --epsilon .1 --describe {label} --seed 1 -o g.gguf
expect_err "the vectors of 2 of 2 labels"
finish
