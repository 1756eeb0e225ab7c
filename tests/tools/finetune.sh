#!/usr/bin/env bash
# Tests of `dpinfer finetune`, of adapters in other commands and of their verification:
# finetune.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"text\": \"Anna said $i things.\", \"who\": \"p$((i % 3))\"}"
done >refs.jsonl
alone="finetune m.gguf refs.jsonl --delta 1e-3 --steps 4 --rank 2 --positions 32"
one="$alone --units 8 -t 1" tune="$alone --units 8 -t 2"

run $tune --sigma 2 -o a.gguf -q; expect_rc 0; expect_empty_out
expect_err "Privacy statement"
expect_err "guarantee          ("
expect_err "for the adapter and all texts from it"
check "the statement says NOT PRIVATE" test "$(grep -c 'NOT PRIVATE' err)" -eq 0
check "a record is told" test "$(grep -c 'Anna' err)" -eq 0
run verify a.gguf; expect_rc 0; expect_out "verified: the guarantee follows"; expect_out "PRIVATE"
run $tune --expected 4 --epsilon 3 -o e.gguf -q; expect_rc 0
check "epsilon" grep -qE "\((2\.999|3,)" err
run verify e.gguf; expect_rc 0

# ---- What is made of an adapter ---------------------------------------------------------------
run inspect m.gguf --lora a.gguf; expect_rc 0; expect_out "adapter's rank"
expect_out "adapted matrices"
check "its guarantee" grep -qE "adapter's epsilon +[0-9.]+$" out
check "its label" grep -qE "adapter's label +PRIVATE$" out; expect_out "its claim holds"
run inspect m.gguf --lora a.gguf --json; expect_out '"adapter_delta": 0.001'
echo 1 5 9 | "$dpinfer" logits m.gguf --tokens - --exact >plain.f32
echo 1 5 9 | "$dpinfer" logits m.gguf --tokens - --exact --lora a.gguf >with.f32
echo 1 5 9 | "$dpinfer" logits m.gguf --tokens - --exact --lora a.gguf --lora-scale 0 >zero.f32
check "the adapter changes nothing" test "$(cmp plain.f32 with.f32 | wc -l)" -eq 1
expect_same zero.f32 plain.f32
run run m.gguf --plain --lora a.gguf -n 4 -t 1 -q; expect_rc 0; expect_err "+ adapter"
run run m.gguf refs.jsonl --rho 1 -B 4 -n 4 -t 1 -q --lora a.gguf --report r.json --report r.md \
    --report r.html; expect_rc 0; expect_err "+ adapter"
check "the report has no hash of the adapter" \
    grep -q "\"sha256\": \"$(sha256sum a.gguf | cut -c 1-64)\"" r.json
check "r.md" grep -q "SHA-256 of the adapter" r.md
check "r.html" grep -q "$(sha256sum a.gguf | cut -c 1-64)" r.html
run verify r.json --model m.gguf; expect_rc 0
refuse 3 "is no adapter" logits m.gguf --tokens refs.jsonl --lora m.gguf

# ---- The same bits, stopped or not -------------------------------------------------------------
run $tune --sigma 2 --seed 7 -o s1.gguf -q; expect_rc 0; expect_err "NOT PRIVATE"
run $one --sigma 2 --seed 7 -o s2.gguf -q --checkpoint state --checkpoint-steps 1; expect_rc 0
expect_same s1.gguf s2.gguf
run $tune --sigma 2 --seed 7 -o s3.gguf --checkpoint state; expect_rc 0
expect_err "going on after step 4"
expect_same s1.gguf s3.gguf
run verify s1.gguf; expect_rc 0; expect_out "NOT PRIVATE"
run $tune --epsilon inf -o n.gguf -q; expect_rc 0; expect_err "NOT PRIVATE"
expect_err "none: no noise was added"
run verify n.gguf; expect_rc 0; expect_out "NOT PRIVATE"
refuse 1 "another configuration; only threads, paths" $tune --sigma 3 --seed 7 -o s4.gguf -q \
    --checkpoint state
check "s4.gguf is there" test ! -e s4.gguf

# ---- What comes with a file --------------------------------------------------------------------
# A smaller noise or a larger delta than the training had, lines of its own, a name that is long.
put() { # FILE KEY VALUE NEW: a value of the same length in its place
    python3 - "$@" <<'P' || bad "cannot change $2"
import struct, sys
path, key, old, new = sys.argv[1:]
data = open(path, "rb").read()
new = new.encode().ljust(len(old), b"0")
at = data.index(key.encode()) + len(key) + 12
assert data[at:at + len(old)] == old.encode(), data[at:at + 20]
open(path, "wb").write(data[:at] + new + data[at + len(old):])
P
}
for change in "sigma 2 9" "delta 0.001 0.9"; do
    set -- $change
    cp a.gguf forged.gguf; put forged.gguf "dpinfer.finetune.$1" "$2" "$3"
    run verify forged.gguf; expect_rc 1; expect_out "WRONG  epsilon"
    run generate m.gguf --lora forged.gguf -n 4; expect_rc 5; expect_empty_out
    expect_err "the claim of forged.gguf does not hold"
done
# What is said of the numbers: a claim of another neighbour, of another accountant, of a label.
for change in "adjacency add-remove replace-me" "accountant pld rdp" "label PRIVATE private"; do
    set -- $change
    cp a.gguf forged.gguf; put forged.gguf "dpinfer.finetune.$1" "$2" "$3"
    run verify forged.gguf; expect_rc 1; expect_out "WRONG  $1: recorded $3, computed $2"
    refuse 5 "the claim of forged.gguf does not hold" generate m.gguf --lora forged.gguf -n 4
done
cp n.gguf forged.gguf; put forged.gguf dpinfer.finetune.label "NOT PRIVATE" "OF A SECRET"
run verify forged.gguf; expect_rc 1; expect_out "WRONG  label"
python3 - <<'P' || bad "cannot change whether it is private"
data = open("n.gguf", "rb").read()
at = data.index(b"dpinfer.finetune.private") + len("dpinfer.finetune.private") + 4
assert data[at] == 0
open("forged.gguf", "wb").write(data[:at] + b"\x01" + data[at + 1:])
P
run verify forged.gguf; expect_rc 1; expect_out "WRONG  private: recorded true, computed false"
run inspect a.gguf; expect_rc 3; expect_err "a.gguf is an adapter (general.type), and no model"

# ---- The ledger -------------------------------------------------------------------------------
run ledger init year.ledger --dataset letters --epsilon 4 --delta 1e-3; expect_rc 0
run $tune --sigma 3 -o l1.gguf -q --ledger year.ledger; expect_rc 0; expect_err "charged for this"
run ledger show year.ledger; expect_rc 0; expect_out "finetune"; expect_out "an adapter, ("
run $tune --sigma 2 -o l6.gguf -q --ledger year.ledger --checkpoint kept; expect_rc 0
# Another ledger has a charge of the same number, which is not that of this training.
run ledger init next.ledger --dataset letters --epsilon 4 --delta 1e-3; expect_rc 0
for i in 1 2; do
    run $tune --sigma 50 -o l7.gguf -q --ledger next.ledger --overwrite; expect_rc 0
done
refuse 1 "is not in the ledger" $tune --sigma 2 -o l8.gguf -q --ledger next.ledger \
    --checkpoint kept
refuse 6 "left" $tune --expected 8 --sigma .6 -o l2.gguf -q --ledger year.ledger
check "l2.gguf is there" test ! -e l2.gguf

run ledger init own.ledger --dataset people --epsilon 4 --delta 1e-3 --scope unit; expect_rc 0
run $tune --sigma 3 --unit-field who -o l3.gguf -q --ledger own.ledger; expect_rc 0
expect_err "a unit before, most"; expect_err "each unit pays for itself"
refuse 2 "unit-field: found none" $tune --sigma 3 -o l4.gguf -q --ledger own.ledger
run $tune --sigma 3 --unit-field who -o l4.gguf -q --ledger own.ledger --overwrite; expect_rc 0
refuse 6 "a new unit has" $tune --expected 8 --sigma .6 --unit-field who -o l5.gguf -q \
    --ledger own.ledger

# ---- People -----------------------------------------------------------------------------------
run $tune --sigma 2 --unit-field who -o u.gguf -q; expect_rc 0
expect_err "all records with one unit ID"

# ---- Labels, and texts of an adapter -----------------------------------------------------------
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"text\": \"Anna said $i things.\", \"kind\": \"k$((i % 3))\"}"
done >kinds.jsonl
printf 'k0\nk1\nk9\n' >kinds
kinds="$alone --units 8 --sigma 2 --label-field kind --label-names kinds --expected 8"
kinds=${kinds/refs.jsonl/kinds.jsonl}
run $kinds --instruction "Of {label}:" -t 2 --seed 5 -o k.gguf -q; expect_rc 0
run $kinds --instruction "Of {label}:" -t 1 --seed 5 -o k1.gguf -q; expect_rc 0
expect_same k.gguf k1.gguf
run $kinds --instruction "Of {label}:" -t 1 --seed 5 -o k2.gguf -q --mismatch 0; expect_rc 0
expect_different k.gguf k2.gguf
run $kinds --instruction "Of {label}:" -t 1 --seed 5 -o k3.gguf -q --loss-on all; expect_rc 0
expect_different k.gguf k3.gguf
run $kinds --instruction "Of {label}:" -o p.gguf -q; expect_rc 0
check "a label that is none is told" test "$(grep -c k2 err)" -eq 0
refuse 2 "no {label}" $kinds --instruction "Of one:" -o x.gguf
refuse 2 "needed are both" finetune m.gguf kinds.jsonl --units 8 --sigma 1 --label-field kind \
    -o x.gguf

run generate m.gguf --lora p.gguf --num 7 -n 8 --jsonl; expect_rc 0; expect_lines 7 out
expect_err "7, by post-processing of this adapter"; expect_err "guarantee          ("
python3 - <<'P' || bad "the texts' labels"
import json
labels = [json.loads(line)["text_label"] for line in open("out")]
assert labels == ["k0", "k1", "k9"] * 2 + ["k0"], labels
assert all(json.loads(line)["private"] for line in open("out"))
P
printf '1 k9\n3 k0\n' >numbers
run generate m.gguf --lora p.gguf --num-per-label numbers -n 8 --jsonl; expect_rc 0
check "numbers of texts" test "$(grep -c '"k9"' out),$(grep -c '"k0"' out)" = 1,3
run generate m.gguf --lora p.gguf --num 40 -n 9 --top-p .9 --seed 4 -o g1.jsonl; expect_rc 0
run generate m.gguf --lora p.gguf --num 40 -n 9 --top-p .9 --seed 4 -o g2.jsonl --parallel 3 -t 1
expect_rc 0; expect_same g1.jsonl g2.jsonl
run generate m.gguf --lora p.gguf --num 40 -n 9 --seed 4 -o g3.jsonl; expect_rc 0
expect_different g1.jsonl g3.jsonl
run generate m.gguf --lora n.gguf -n 4; expect_rc 0; expect_err "NOT PRIVATE"
run generate m.gguf --lora s1.gguf -n 4 --jsonl; expect_rc 0; expect_out '"private":false'
echo 1 k2 >other
refuse 2 "has no label 'k2'" generate m.gguf --lora p.gguf --num-per-label other -n 4
refuse 2 "needed is the adapter" generate m.gguf -n 4
refuse 2 "is there already" generate m.gguf --lora p.gguf -n 4 -o g1.jsonl
refuse 3 "" generate m.gguf --lora refs.jsonl -n 4

# ---- Several attributes, and how often each is there -------------------------------------------
for i in 1 2 3 4 5 6 7 8; do
    echo "{\"text\": \"Anna said $i.\", \"mood\": \"m$((i % 2))\", \"thing\": \"t$((i % 3))\"}"
done >pairs.jsonl
printf 'm0\tt0\nm1\tt0\nm0\tt1\nm1\tt1\nm1\tt2\n' >pairs
pairs="$alone --units 8 --sigma 2 --attributes mood,thing --label-names pairs --expected 8"
pairs=${pairs/refs.jsonl/pairs.jsonl}
run $pairs --instruction "A {mood} {thing}:" -t 1 --seed 5 -o at.gguf -q; expect_rc 0
run $pairs --instruction "A {mood} {thing}:" -t 2 --seed 5 -o at1.gguf -q; expect_rc 0
expect_same at.gguf at1.gguf
run $pairs --instruction "A {mood} {thing}:" --histogram-epsilon .5 -o ah.gguf -q; expect_rc 0
expect_err "numbers of units   of each label, with Laplace noise of scale 2: epsilon 0.5 of it"
run verify ah.gguf; expect_rc 0; expect_out "given  histogram_scale: recorded 2"
run $pairs --instruction "A {mood} {thing}:" -o ap.gguf -q; expect_rc 0
python3 - <<'P' || bad "the epsilon of a histogram"
import re
def epsilon(name):
    data = open(name, "rb").read()
    at = data.index(b"dpinfer.finetune.epsilon") + len("dpinfer.finetune.epsilon") + 12
    return float(re.match(rb"[0-9.e+-]+", data[at:]).group())
more = epsilon("ah.gguf") - epsilon("ap.gguf")
assert 0.5 <= more < 0.5 + 1e-9, more
P
run generate m.gguf --lora ap.gguf --num 7 -n 4 --jsonl --seed 3; expect_rc 0
python3 - <<'P' || bad "the attributes of texts"
import json
found = [json.loads(line) for line in open("out")]
wanted = [line.rstrip("\n").split("\t") for line in open("pairs")]
assert [[o["attributes"]["mood"], o["attributes"]["thing"]] for o in found] == \
    (wanted * 2)[:7], found
assert [o["text_label"] for o in found] == ["\t".join(w) for w in wanted * 2][:7]
P
printf '3 m1\tt2\n1 m0\tt1\n' >joint
run generate m.gguf --lora ap.gguf --num-per-label joint -n 4 --jsonl; expect_rc 0
check "the joint distribution" \
    test "$(grep -c '"thing":"t2"' out),$(grep -c '"thing":"t1"' out)" = 3,1
python3 - <<'P' || bad "counts"
data = open("ah.gguf", "rb").read()
key = b"dpinfer.finetune.label_counts"
at = data.index(key) + len(key) + 4
n = int.from_bytes(data[at:at + 8], "little")
counts = data[at + 8:at + 8 + n]
assert len(counts.split(b"\n")) == 5
# The same number of bytes: 9s and 0s, so that the shares are known.
def digits(line, first):
    return (b"9" if first else b"0") * len(line)
lines = [digits(line, i in (1, 4)) for i, line in enumerate(counts.split(b"\n"))]
open("shares.gguf", "wb").write(data[:at + 8] + b"\n".join(lines) + data[at + 8 + n:])
open("sizes", "w").write(" ".join(str(int(line)) for line in lines))
P
run generate m.gguf --lora shares.gguf --num 40 -n 3 --jsonl; expect_rc 0
python3 - <<'P' || bad "shares of texts"
import json
sizes = [int(x) for x in open("sizes").read().split()]
found = [json.loads(line)["text_label"] for line in open("out")]
wanted = [line.rstrip("\n") for line in open("pairs")]
for size, label in zip(sizes, wanted):
    assert abs(found.count(label) - 40 * size / sum(sizes)) <= 1, (sizes, found)
P
# More labels than prompts that are kept: the same texts, however many are drawn at a time.
python3 -c 'print("\n".join(f"m{i}\tt{i % 7}" for i in range(150)))' >many
run ${pairs/--label-names pairs/--label-names many} --instruction "A {mood} {thing}:" -o am.gguf -q
expect_rc 0
run generate m.gguf --lora am.gguf --num 200 -n 3 --seed 4 -o am1.jsonl; expect_rc 0
run generate m.gguf --lora am.gguf --num 200 -n 3 --seed 4 -o am2.jsonl --parallel 5; expect_rc 0
expect_same am1.jsonl am2.jsonl
check "labels of all" \
    test "$(grep -o '"text_label":"[^"]*"' am1.jsonl | sort -u | wc -l)" -eq 150
refuse 2 "no {thing}" $pairs --instruction "A {mood}:" -o x.gguf
refuse 2 "needed are 2 values" ${pairs/--label-names pairs/--label-names kinds} \
    --instruction "A {mood} {thing}:" -o x.gguf
refuse 2 "allowed is one of them" $pairs --label-field mood --instruction "A {mood}:" -o x.gguf
refuse 2 "histogram_epsilon: found 0.5" $tune --sigma 1 -o x.gguf --histogram-epsilon .5

# ---- One model of a model and its adapter -------------------------------------------------------
run $tune --sigma 2 -o w.gguf --merge whole.gguf -q; expect_rc 0
run quantize m.gguf whole2.gguf F32 --lora w.gguf; expect_rc 0
echo 1 5 9 | "$dpinfer" logits m.gguf --tokens - --exact --lora w.gguf >with.f32
for whole in whole whole2; do
    echo 1 5 9 | "$dpinfer" logits $whole.gguf --tokens - --exact >merged.f32
    python3 - <<'P' || bad "the logits of $whole.gguf are not those of the adapter"
from array import array
a, b, c = (array("f", open(n, "rb").read()) for n in ("with.f32", "merged.f32", "plain.f32"))
norm = sum(x * x for x in a)
assert sum((x - y) ** 2 for x, y in zip(a, b)) < 1e-11 * norm
assert sum((x - y) ** 2 for x, y in zip(a, c)) > 1e-9 * norm
P
done
run inspect whole.gguf; expect_rc 0; expect_out "+ adapter"
# It has the adapter's claim, of its own weights.
for whole in whole whole2; do
    run verify $whole.gguf; expect_rc 0; expect_out "ok     epsilon"
    expect_out "ok     tensors_sha256"
    check "PRIVATE" grep -qx "PRIVATE" out
done
run verify w.gguf; grep -v sha256 out >of_adapter
run verify whole.gguf; grep -v sha256 out >of_whole; expect_same of_whole of_adapter
run generate whole.gguf --num 3 -n 4 --jsonl --report rw.json; expect_rc 0
expect_out '"private":true'; expect_err "3, by post-processing of this model"
expect_err "numbers, in the weights"
run verify rw.json --model whole.gguf; expect_rc 0; expect_out "ok     adapter.tensors"
cp whole.gguf forged.gguf; put forged.gguf dpinfer.finetune.sigma 2 9
run verify forged.gguf; expect_rc 1; expect_out "WRONG  epsilon"
refuse 5 "the claim of forged.gguf does not hold" generate forged.gguf -n 4
cp whole.gguf wbits.gguf; flip_bit wbits.gguf -8
run verify wbits.gguf; expect_rc 1; expect_out "WRONG  tensors_sha256"
run quantize m.gguf w8.gguf Q8_0 --lora p.gguf; expect_rc 0
run verify w8.gguf; expect_rc 0
run generate w8.gguf --num 3 -n 4 --jsonl; expect_rc 0; expect_out '"text_label":"k9"'
run quantize m.gguf ws.gguf KEEP --lora s1.gguf; expect_rc 0
run verify ws.gguf; expect_rc 0; expect_out "NOT PRIVATE"
run generate ws.gguf -n 4 --jsonl; expect_rc 0; expect_out '"private":false'
expect_err "Privacy statement: NOT PRIVATE"
cp a.gguf forged.gguf; put forged.gguf dpinfer.finetune.sigma 2 9
refuse 3 "the claim of forged.gguf does not hold" quantize m.gguf x.gguf KEEP --lora forged.gguf
run quantize m.gguf bare.gguf KEEP --lora n.gguf; expect_rc 0
run verify bare.gguf; expect_rc 0; expect_out "NOT PRIVATE"
run inspect bare.gguf; expect_rc 0; expect_out "NOT PRIVATE"
refuse 2 "is there already" $tune --sigma 2 -o w2.gguf --merge whole.gguf -q
check "w2.gguf is there" test ! -e w2.gguf
refuse 2 "would be overwritten" $tune --sigma 2 -o w2.gguf --merge m.gguf --overwrite
refuse 3 "is no adapter" quantize m.gguf x.gguf Q8_0 --lora m.gguf
refuse 2 "allowed: F32" quantize m.gguf x.gguf Q9 --lora w.gguf

# ---- All weights ------------------------------------------------------------------------------
full="finetune m.gguf refs.jsonl --delta 1e-3 --steps 4 --positions 32 --units 8 --full"
run $full --sigma 2 -o f.gguf -q --instruction "Say:"; expect_rc 0
expect_err "for the model and all texts from it"; expect_err "trained            all"
run verify f.gguf; expect_rc 0; expect_out "verified: the guarantee follows"; expect_out "PRIVATE"
# A base with a claim of its own: what is trained on it, or merged into it, would not count that.
LC_ALL=C sed 's/dpinfer\.adapter\.base/dpinfer.adapter.else/' w.gguf >of_any.gguf
run quantize f.gguf y.gguf F32 --lora of_any.gguf; expect_rc 3; expect_err "would have two claims"
# The first adapters do not say what was trained.
LC_ALL=C sed 's/dpinfer\.finetune\.trained/dpinfer.finetune.unknown/' w.gguf >first.gguf
run verify first.gguf; expect_rc 0
refuse 2 "was trained on records itself" ${tune/m.gguf/f.gguf} --sigma 2 -o x.gguf
check "the type of a weight" test "$("$dpinfer" inspect m.gguf --json | grep -c '"F32"')" = \
    "$("$dpinfer" inspect f.gguf --json | grep -c '"F32"')"
run generate f.gguf --num 3 -n 4 --jsonl; expect_rc 0; expect_lines 3 out
expect_out '"private":true'; expect_err "3, by post-processing of this model"
refuse 2 "needed is the adapter" generate m.gguf -n 4
run $full --sigma 2 --seed 7 -t 1 -o f1.gguf -q --checkpoint fstate --checkpoint-steps 1
expect_rc 0
run $full --sigma 2 --seed 7 -t 2 -o f2.gguf -q; expect_rc 0; expect_same f1.gguf f2.gguf
run $full --sigma 2 --seed 7 -o f3.gguf -q --checkpoint fstate; expect_rc 0
expect_same f1.gguf f3.gguf
run generate f1.gguf -n 4 --jsonl; expect_rc 0; expect_out '"private":false'
run inspect f1.gguf; expect_rc 0; expect_out "(NOT PRIVATE)"
for type in F16 BF16; do
    run quantize m.gguf base.gguf $type --overwrite; expect_rc 0
    run ${full/m.gguf/base.gguf} --sigma 2 -o half.gguf -q --overwrite; expect_rc 0
    run verify half.gguf; expect_rc 0; expect_out "PRIVATE"
done
# Without noise the first step of Adam moves each weight by the learning rate, of which a cosine
# leaves a tenth at the last step.
run ${full/--steps 4/--steps 1} --epsilon inf --warmup 0 --lr .01 --expected 8 -o n1.gguf -q
expect_rc 0
python3 - <<'P' || bad "what a step of all weights does"
import struct
a, b = (open(n, "rb").read() for n in ("m.gguf", "n1.gguf"))
x, y = (struct.unpack("<1024f", d[-4096:]) for d in (a, b))
moved = [abs(p - q) for p, q in zip(x, y)]
assert max(moved) < 1.01e-3 and sum(m > 0.9e-3 for m in moved) > 900, (max(moved), moved[:5])
P
run quantize f.gguf fq.gguf Q8_0; expect_rc 0
run verify fq.gguf; expect_rc 5; expect_err "tensors_sha256"
run quantize m.gguf mq.gguf Q8_0; expect_rc 0
refuse 2 "full: found weights of type Q8_0" ${full/m.gguf/mq.gguf} --sigma 1 -o x.gguf
refuse 2 "--rank: not allowed with --full" $full --sigma 1 -o x.gguf --rank 2
refuse 1 "another configuration" $full --sigma 2 --seed 7 -o f4.gguf -q --checkpoint state
cp f.gguf fbits.gguf; flip_bit fbits.gguf -8
refuse 5 "the claim of fbits.gguf does not hold" generate fbits.gguf -n 4
run verify fbits.gguf; expect_rc 1; expect_out "WRONG  tensors_sha256"

# ---- Texts of a given form ----------------------------------------------------------------------
printf 'root ::= "say " [a-c]{2,3} ("!" | "?")\n' >form.gbnf
run generate m.gguf --lora a.gguf --num 40 -n 24 --grammar form.gbnf --jsonl; expect_rc 0
python3 - <<'P' || bad "texts of a grammar"
import json, re
texts = [json.loads(line) for line in open("out")]
assert len(texts) == 40 and all(t["ended"] and t["private"] for t in texts)
assert all(re.fullmatch("say [a-c]{2,3}[!?]", t["text"]) for t in texts), texts[:3]
assert len({t["text"] for t in texts}) > 5
P
echo '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}' >form.json
run generate m.gguf --lora a.gguf --num 5 -n 60 --json-schema form.json --jsonl; expect_rc 0
python3 - <<'P' || bad "texts of a schema"
import json
texts = [json.loads(line) for line in open("out")]
done = [json.loads(t["text"]) for t in texts if t["ended"]]
assert all(set(o) == {"n"} and isinstance(o["n"], int) for o in done)
P
refuse 2 "cannot read nothing" generate m.gguf --lora a.gguf -n 4 --grammar nothing

# ---- Matrices that have an adapter --------------------------------------------------------------
run $tune --sigma 2 --targets v,down -o tv.gguf -q; expect_rc 0
run inspect tv.gguf; expect_rc 3
check "the tensors of v and down" test "$(grep -aoE 'blk.0.[a-z_]+.weight.lora_a' tv.gguf |
    sort -u | tr '\n' ' ')" = "blk.0.attn_v.weight.lora_a blk.0.ffn_down.weight.lora_a "
run logits m.gguf --tokens before --lora tv.gguf; check "an adapter of two" test "$rc" -ne 3
refuse 2 "--targets: found 'w'" $tune --sigma 2 --targets v,w -o x.gguf

# ---- The report of texts, and its verification --------------------------------------------------
run generate m.gguf --lora ah.gguf --num 6 -n 4 -o rt.jsonl --report rt.json --seed 2; expect_rc 0
python3 - <<'P' || bad "the report of texts"
import hashlib, json
o = json.load(open("rt.json"))
sha = lambda name: hashlib.sha256(open(name, "rb").read()).hexdigest()
assert o["texts"]["output"]["sha256"] == sha("rt.jsonl")
assert o["adapter"]["sha256"] == sha("ah.gguf")
assert o["label"] == "PRIVATE" and o["texts"]["number"] == 6
assert o["statement"]["guarantee"] == "(epsilon, delta)-DP" and o["statement"]["delta"] == 1e-3
assert o["statement"]["by"] == "post-processing of the adapter"
assert o["parameters"]["histogram_scale"] == 2 and o["parameters"]["sigma"] == 2
for name, change in (("low", lambda o: o["statement"].update(epsilon=0.1)),
                     ("quiet", lambda o: o["parameters"].update(histogram_scale=200)),
                     ("sure", lambda o: o["parameters"].update(sigma=50.0)),
                     ("typed", lambda o: o["parameters"].update(steps="4")),
                     ("range", lambda o: o["parameters"].update(sampling=2.0)),
                     ("slow0", lambda o: o["parameters"].update(sampling=1e-9, steps=2)),
                     ("slow1", lambda o: o["parameters"].update(sampling=.05, steps=10000000)),
                     ("slow2", lambda o: o["parameters"].update(sampling=1e-4, steps=1000000,
                                                                sigma=1)),
                     ("seeded", lambda o: o["parameters"].update(randomness=1)),
                     ("near", lambda o: o["statement"].update(adjacency="replace-one")),
                     ("by", lambda o: o["statement"].update(by="magic")),
                     ("model", lambda o: o.update(model="another")),
                     ("more", lambda o: o["texts"].update(number=7)),
                     ("less", lambda o: o["texts"].update(number=5)),
                     ("none", lambda o: o["texts"].pop("number")),
                     ("form", lambda o: o["texts"].update(form="other")),
                     ("first", lambda o: (o["texts"].pop("form"), o["texts"].pop("bytes"))),
                     ("other", lambda o: o["adapter"].update(sha256="0" * 64))):
    changed = json.loads(json.dumps(o))
    change(changed)
    json.dump(changed, open(name + ".json", "w"))
P
run verify rt.json; expect_rc 0; expect_out "PRIVATE"; expect_out "given  sigma"
expect_out "the adapter was not looked at"
run verify rt.json --lora ah.gguf --output rt.jsonl; expect_rc 0
expect_out "ok     adapter.sha256"; expect_out "ok     texts.output.sha256"
expect_out "the adapter is the one named; the output is the one"
run verify low.json; expect_rc 1; expect_out "WRONG  statement.epsilon: recorded 0.1"
run verify quiet.json; expect_rc 1; expect_out "WRONG  statement.epsilon"
run verify sure.json; expect_rc 1; expect_out "WRONG  statement.epsilon"
run verify sure.json --lora ah.gguf; expect_rc 1; expect_out "WRONG  parameters.sigma"
run verify seeded.json; expect_rc 1; expect_out "WRONG  label"
run verify near.json; expect_rc 1; expect_out "WRONG  statement.adjacency: recorded replace-one"
run verify by.json; expect_rc 1; expect_out "WRONG  statement.by"
run verify model.json --lora ah.gguf; expect_rc 1; expect_out "WRONG  model: recorded another"
run verify model.json; expect_rc 0; expect_out "given  model: recorded another"
for name in more less; do
    run verify $name.json --output rt.jsonl; expect_rc 1; expect_out "WRONG  texts.number"
    run verify $name.json; expect_rc 0; expect_out "given  texts.number"
done
refuse 5 "lacks texts.number" verify none.json
refuse 5 "lacks texts.form" verify form.json
run verify first.json --output rt.jsonl; expect_rc 0 # as the first reports were
run generate m.gguf --lora ah.gguf --num 6 -n 4 -o plain.txt --report plain.json; expect_rc 0
run verify plain.json --output plain.txt; expect_rc 0; expect_out "ok     texts.number"
for change in 's/"number": 6/"number": 5/' 's/"number": 6/"number": 7/' 's/"bytes": /&1/'; do
    sed "$change" plain.json >changed.json
    run verify changed.json --output plain.txt; expect_rc 1; expect_out "WRONG  texts.number"
done
for name in slow0 slow1 slow2; do # which took 7 seconds and more
    last="verify $name.json"
    (ulimit -t 4 && exec "$dpinfer" verify $name.json) >out 2>err
    rc=$?
    expect_rc 1; expect_out "WRONG  statement.epsilon"
done
refuse 5 "lacks steps" verify typed.json
refuse 5 "lacks sampling" verify range.json
run verify other.json; expect_rc 0
run verify other.json --lora ah.gguf; expect_rc 1; expect_out "WRONG  adapter.sha256"
run verify rt.json --lora ap.gguf; expect_rc 1; expect_out "WRONG  adapter.sha256"
run verify rt.json --output pairs; expect_rc 1; expect_out "WRONG  texts.output.sha256"
run generate f.gguf --num 2 -n 4 --report rf.json; expect_rc 0
run verify rf.json --model f.gguf; expect_rc 0; expect_out "ok     adapter.tensors"
run generate m.gguf --lora s1.gguf -n 4 --report rn.json; expect_rc 0
run verify rn.json --lora s1.gguf; expect_rc 0; expect_out "NOT PRIVATE"
refuse 2 "is there already" generate m.gguf --lora ah.gguf -n 4 --report rt.json
run generate m.gguf --lora ah.gguf --num 6 -n 4 -o rt2.jsonl --report rt.md --report rt.html
expect_rc 0
check "the same in Markdown" grep -q "| epsilon | [0-9.]* |" rt.md
check "the hash of the texts" grep -q "$(sha256sum <rt2.jsonl | cut -d ' ' -f 1)" rt.md rt.html
run generate m.gguf --lora s1.gguf -n 4 --report rn.md; expect_rc 0
check "a heading that says so" grep -q "^# Privacy report: NOT PRIVATE" rn.md
check "without a guarantee" grep -q "| guarantee | none |" rn.md

# ---- The model that an adapter is of -------------------------------------------------------------
mv m.gguf mine.gguf
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 --seed 2 -o m.gguf 2>err || exit 1
refuse 3 "p.gguf is an adapter of another model" generate m.gguf --lora p.gguf -n 4
refuse 3 "a.gguf is an adapter of another model" logits m.gguf --tokens - --lora a.gguf
mv mine.gguf m.gguf
run quantize m.gguf q8.gguf Q8_0; expect_rc 0
run generate q8.gguf --lora p.gguf -n 4; expect_rc 0; expect_err "guarantee          ("
run generate m.gguf --lora p.gguf -n 4 --seed 3 --jsonl; expect_rc 0; expect_out '"private":true'
run generate -h; expect_rc 0
check "the seed of draws" test "$(grep -A1 -e --seed out | grep -c 'NOT PRIVATE')" -eq 0

# ---- Public loss ---------------------------------------------------------------------------------
echo '{"text": "Public words."}' >public.jsonl; echo '{}' >empty.jsonl
run $one --sigma 2 --seed 7 -o h.gguf --held-out public.jsonl; expect_rc 0
expect_same h.gguf s1.gguf
check "what is spent" test "$(grep '^step 4: epsilon' err | awk '{ print $4 == $6 }')" = 1
check "losses" test "$(grep -cE '^step [04]: [0-9.]+ nats a token of the held-out' err)" -eq 2
refuse 4 "no held-out record has a token" $one --sigma 2 -o hx.gguf --held-out empty.jsonl
refuse 2 "is an input and would be overwritten" $one --sigma 2 -o public.jsonl \
    --held-out public.jsonl --overwrite

# ---- The plan ------------------------------------------------------------------------------
run ledger show year.ledger; cp out before
run $tune --sigma 3 --plan --ledger year.ledger --json; expect_rc 0
python3 - <<'P' || bad "the plan"
import json
o = json.load(open("out"))
assert o["sigma"] == 3 and o["steps"] == 4 and o["threads"] == 2
assert o["memory_bytes"] == o["program_bytes"] + o["state_bytes"] + o["step_bytes"] + \
    2 * o["thread_bytes"] + o["record_bytes"]
# 7 matrices of rank 2: q, o 32 x 32; k, v 32 x 16; gate, up, down 32 x 32. The base is mapped, but
# for three norms.
n, base = 2 * (5 * 64 + 2 * 48), 3 * 32
assert o["numbers"] == n and o["state_bytes"] == 4 * (base + 4 * n) and o["step_bytes"] == 20 * n
assert o["thread_bytes"] > 20 * n and o["record_bytes"] == 8 * 33 * 4
assert 0 < o["step_seconds"] < 60 and abs(o["seconds"] / o["step_seconds"] - 4) < 1e-9
P
run ledger show year.ledger; expect_same out before
run $tune --epsilon 2 --plan; expect_rc 0; expect_out "MiB: program and model"
expect_out "s a step"
check "a plan that is private" grep -qE "^ *label +PRIVATE$" out
run $tune --epsilon inf --plan; expect_rc 0
check "a plan without privacy" grep -qE "^ *label +NOT PRIVATE$" out
run $tune --epsilon inf --plan --json; expect_out '"label": "NOT PRIVATE"'
run $tune --sigma 1 --seed 1 --plan; expect_out "NOT PRIVATE"
run ${full/--full/--full --plan --json} --sigma 2; expect_rc 0; expect_out '"numbers": 25440'

# ---- What is refused --------------------------------------------------------------------------
refuse 2 "-o FILE" finetune m.gguf refs.jsonl --units 8 --sigma 1
refuse 2 "--units N: needed" finetune m.gguf refs.jsonl --sigma 1 -o x.gguf
refuse 2 "needed is one of them" $tune -o x.gguf
refuse 2 "needed is one of them" $tune --sigma 1 --epsilon 1 -o x.gguf
# One range of noise, in the help, on the command line and where it is found for epsilon.
for sigma in 0 .05 5000; do
    refuse 2 "--sigma: found '$sigma', allowed 0.1..4096" $tune --sigma $sigma -o x.gguf
done
refuse 2 "allowed 0.1..4096" $tune --epsilon .0001 --expected 8 -o x.gguf
run finetune -h; expect_rc 0; expect_out "(0.1..4096)"
expect_out "must be below 1/N of --units"; expect_out "labels, one a line, which are public"
refuse 2 "--sigma: found '.05', allowed 0.1..1e+06" account --sigma .05 --delta 1e-5
run run -h; expect_out "less than 1 / number of records"
refuse 2 "delta: found 0.001, allowed below 1 / units" $alone --sigma 1 -o x.gguf --units 5000
refuse 2 "--units is given more than once" $tune --sigma 1 -o x.gguf --units 9
refuse 2 "a.gguf is there already" $tune --sigma 1 -o a.gguf
refuse 2 "is an input and would be overwritten" $tune --sigma 1 -o m.gguf --overwrite
refuse 2 "is an input and would be overwritten" $tune --sigma 1 -o x.gguf --checkpoint refs.jsonl
refuse 2 "would be overwritten" $tune --sigma 1 -o x.gguf --checkpoint x.gguf --overwrite
refuse 2 "no RECORDS given" finetune m.gguf --sigma 1
refuse 2 "chat template llama3 needs" $tune --sigma 1 -o x.gguf --template llama3
refuse 2 "chat template llama3 needs" generate m.gguf --lora a.gguf --template llama3
# A machine without memory for OpenBLAS is no error of the command line. AddressSanitizer needs
# more.
if ! grep -q __asan_init "$dpinfer"; then
    for size in 40 56 64 80 120; do
        (ulimit -v ${size}000; exec "$dpinfer" $one --sigma 1 -o x.gguf >out 2>err </dev/null)
        rc=$?
        last="finetune with $size MB"; check "exit code" test $rc -le 1
    done
fi
rm -f x.gguf
# What was paid for is not lost in a device or a pipe; a checkpoint keeps it.
refuse 2 "/dev/full: a file is needed" $one --sigma 1 -o /dev/full
refuse 2 "-o FILE: needed for the adapter" $one --sigma 1 -o -
run $one --sigma 1 -o /dev/full --checkpoint kept.ckpt; expect_rc 1
run $one --sigma 1 -o x.gguf --checkpoint kept.ckpt; expect_rc 0
check "an adapter" test -s x.gguf
rm -f x.gguf
refuse 4 "cannot open the records none" finetune m.gguf none --units 8 --sigma 1 -o x.gguf
printf 'GGUF' >short.gguf
run verify short.gguf; expect_rc 5
head -c 2000 a.gguf >cut.gguf
run verify cut.gguf; expect_rc 5
python3 - <<'P'
data = open("a.gguf", "rb").read()
i = data.index(b"dpinfer.finetune.epsilon") + len(b"dpinfer.finetune.epsilon") + 4 + 8
i += 2  # of "0.1178...": the first digit after the point
open("lower.gguf", "wb").write(data[:i] + b"0" + data[i + 1:])
P
cp a.gguf bits.gguf; flip_bit bits.gguf -8
refuse 5 "the claim of bits.gguf does not hold" generate m.gguf --lora bits.gguf -n 4
refuse 5 "the claim of lower.gguf does not hold" generate m.gguf --lora lower.gguf -n 4
run verify lower.gguf; expect_rc 1; expect_out "WRONG  epsilon"
run verify bits.gguf; expect_rc 1; expect_out "WRONG  tensors_sha256"
finish
