#!/usr/bin/env bash
# Tests of `dpinfer finetune`, of adapters in other commands and of their verification:
# finetune.sh path/to/dpinfer
# shellcheck disable=SC2086 # the options of trainings are words
. "$(dirname "$0")/cli_support.sh"
small_model
for i in 1 2 3 4 5 6 7 8; do
    printf '{"text": "Anna said %s things.", "who": "p%s", "kind": "k%s", ' $i $((i % 3)) $((i % 3))
    printf '"mood": "m%s", "thing": "t%s"}\n' $((i % 2)) $((i % 3))
done >refs.jsonl
alone="finetune m.gguf refs.jsonl --delta 1e-3 --steps 4 --rank 2 --positions 32"
one="$alone --units 8 -t 1" tune="$alone --units 8 -t 2"
full="finetune m.gguf refs.jsonl --delta 1e-3 --steps 4 --positions 32 --units 8 --full"
# tuned NAME ARGS: a training, NAME.gguf. writes NAME ARGS: its texts.
tuned() { works $tune -q -o "$1.gguf" "${@:2}"; }
writes() { works generate m.gguf --lora "$1.gguf" "${@:2}"; }
sha_of() { sha256sum "$1" | cut -c 1-64; }
# verifies FILE TEXT...: verify accepts it and says this.
verifies() {
    works verify "$1" --verbose; expect_out "${@:2}"
}

tuned a --sigma 2; expect_empty_out; expect_no_err "NOT PRIVATE"
expect_err "Privacy statement" "guarantee          (" "for all that is released together"
expect_no_err Anna # no record is told
verifies a.gguf "verified: the guarantee follows" PRIVATE
tuned e --expected 4 --epsilon 3; expect_line err "\((2\.999|3,)"
verifies e.gguf

# ---- What is made of an adapter ---------------------------------------------------------------
works inspect m.gguf --lora a.gguf; expect_out "adapter's rank" "adapted matrices" "its claim holds"
expect_line out "adapter's epsilon +[0-9.]+$" "adapter's label +PRIVATE$"
works inspect m.gguf --lora a.gguf --json; expect_out '"adapter_delta": 0.001'
exact() { echo 1 5 9 | "$dpinfer" logits "$1" --tokens - --exact "${@:3}" >"$2.f32"; }
exact m.gguf plain; exact m.gguf with --lora a.gguf; exact m.gguf zero --lora a.gguf --lora-scale 0
check "the adapter changes nothing" test "$(cmp plain.f32 with.f32 | wc -l)" -eq 1
expect_same zero.f32 plain.f32
works run m.gguf --plain --lora a.gguf -n 4 -t 1 -q; expect_err "+ adapter"
works run m.gguf refs.jsonl --rho 1 -B 4 -n 4 -t 1 -q --lora a.gguf --report r.json --report r.md \
    --report r.html; expect_err "+ adapter"
expect_line r.json "\"sha256\": \"$(sha_of a.gguf)\""
expect_line r.md "SHA-256 of the adapter"; expect_line r.html "$(sha_of a.gguf)"
works verify r.json --model m.gguf
refuse 3 "is no adapter" logits m.gguf --tokens refs.jsonl --lora m.gguf

# ---- The same bits, stopped or not -------------------------------------------------------------
tuned s1 --sigma 2 --seed 7; expect_err "NOT PRIVATE"
works $one --sigma 2 --seed 7 -o s2.gguf -q --checkpoint state --checkpoint-steps 1
expect_same s1.gguf s2.gguf
works $tune --sigma 2 --seed 7 -o s3.gguf --checkpoint state; expect_err "going on after step 4"
expect_same s1.gguf s3.gguf
verifies s1.gguf "NOT PRIVATE"
tuned n --epsilon inf; expect_err "NOT PRIVATE" "no noise was added"
verifies n.gguf "NOT PRIVATE"
refuse 1 "another configuration; only threads, paths" $tune --sigma 3 --seed 7 -o s4.gguf -q \
    --checkpoint state
expect_none s4.gguf

# ---- What comes with a file --------------------------------------------------------------------
# Smaller noise or a larger delta than the training had; a claim of another neighbour, of another
# accountant, of a label, of privacy; an epsilon with another digit after its point.
put() { # FILE OLD NEW: a text of the same length in its place, in the claim or what follows
    python_check "cannot change $2" "$@" <<'P'
path, old, new = sys.argv[1:]
all, old, new = data(path), old.encode(), new.encode()
assert len(old) == len(new)
at = all.index(old, all.index(b"dpinfer.claim"))
open(path, "wb").write(all[:at] + new + all[at + len(old):])
P
}
claim="the claim of forged.gguf does not hold"
forged() { # FILE OLD NEW CODE TEXT: a file that was changed is found, and writes no text
    cp "$1" forged.gguf; put forged.gguf "$2" "$3"
    if [ "$4" = 1 ]; then wrong "$5" forged.gguf; else refuse "$4" "$5" verify forged.gguf; fi
    case $1 in
    whole.gguf) refuse 5 "$claim" generate forged.gguf -n 4 ;;
    *) refuse 5 "$claim" generate m.gguf --lora forged.gguf -n 4 ;;
    esac
}
while IFS='|' read -r file old new code text; do
    forged "$file" "$old" "$new" "$code" "$text"
done <<'END'
a.gguf|"sigma":2|"sigma":9|1|follows.epsilon
a.gguf|"delta":0.001|"delta":0.900|5|delta: found 0.9
a.gguf|"sampling":0.05|"sampling":0.04|5|sampling: found 0.04
a.gguf|"expected":0.4|"expected":0.3|5|sampling: found 0.05
a.gguf|"n_units":8|"n_units":7|5|sampling: found 0.05
a.gguf|"clip":1.0|"clip":0.0|5|clip is 0.0
a.gguf|"clip":1.0|"clap":1.0|5|has the unknown key 'clap'
a.gguf|"runs":4|"runs":3|1|follows.epsilon
a.gguf|"rank":2|"rank":1|1|claim.mechanisms[0].rank: recorded 1, computed 2
a.gguf|"epsilon":0.1|"epsilon":0.0|1|follows.epsilon
a.gguf|"adjacency":"add-remove"|"adjacency":"replace-me"|5|claim.data.adjacency is "replace-me"
a.gguf|"label":"PRIVATE"|"label":"private"|1|follows.label: recorded "private", computed "PRIVATE"
a.gguf|"model":"|"m0del":"|5|has the unknown key 'm0del'
n.gguf|"label":"NOT PRIVATE|"label":"OF A SECRET|1|follows.label
END
# A claim of texts, too. Spaces keep what stands behind it where it was, modulo 32.
python_check "a longer claim" <<'P'
head, key, rest = data("a.gguf").partition(b"dpinfer.claim\x08\0\0\0")
n = int.from_bytes(rest[:8], "little")
texts = b',{"mechanism":"texts","runs":1,"T":4,"temp":1.0,"top_p":1.0,"min_p":0.0}],"randomness"'
new = rest[8:8 + n].replace(b'],"randomness"', texts).ljust(n + 96)
open("forged.gguf", "wb").write(head + key + len(new).to_bytes(8, "little") + new + rest[8 + n:])
P
refuse 5 "it is of no training" verify forged.gguf
refuse 3 "a.gguf is an adapter (general.type), and no model" inspect a.gguf
# changed_weight FILE ARGS: one bit of the last weight; `generate ARGS forged.gguf` writes no text.
changed_weight() {
    cp "$1" forged.gguf; flip_bit forged.gguf -8
    refuse 5 "$claim" generate "${@:2}" forged.gguf -n 4
    wrong "claim.mechanisms[0].tensors_sha256" forged.gguf
}
changed_weight a.gguf m.gguf --lora
printf 'GGUF' >short.gguf; head -c 2000 a.gguf >cut.gguf
for file in short cut; do fails 5 verify $file.gguf; done

# ---- The ledger -------------------------------------------------------------------------------
works ledger init year.ledger --dataset letters --epsilon 4 --delta 1e-3
tuned l1 --sigma 3 --ledger year.ledger; expect_err "charged for this"
works ledger show year.ledger; expect_out gradients "4 steps, (" "; add-remove"
tuned l6 --sigma 2 --ledger year.ledger --checkpoint kept
# Another ledger has a charge of the same number, which is not that of this training.
works ledger init next.ledger --dataset letters --epsilon 4 --delta 1e-3
for i in 1 2; do tuned l7 --sigma 50 --ledger next.ledger --overwrite; done
refuse 1 "is not in the ledger" $tune --sigma 2 -o l8.gguf -q --ledger next.ledger --checkpoint kept
refuse 6 "left" $tune --expected 8 --sigma .6 -o l2.gguf -q --ledger year.ledger
expect_none l2.gguf

works ledger init own.ledger --dataset people --epsilon 4 --delta 1e-3 --scope unit
tuned l3 --sigma 3 --unit-field who --ledger own.ledger
expect_err "a unit before, most" "each unit pays for the runs that it is in"
refuse 2 "unit-field: found none" $tune --sigma 3 -o l4.gguf -q --ledger own.ledger
tuned l4 --sigma 3 --unit-field who --ledger own.ledger --overwrite
refuse 6 "a new unit has" $tune --expected 8 --sigma .6 --unit-field who -o l5.gguf -q \
    --ledger own.ledger
tuned u --sigma 2 --unit-field who; expect_err "all records with one unit ID"

# ---- Labels, and texts of an adapter -----------------------------------------------------------
printf 'k0\nk1\nk9\n' >kinds
kinds="$alone --units 8 --sigma 2 --label-field kind --label-names kinds --expected 8"
of_kind() { # NAME ARGS: an adapter of labels
    works $kinds --instruction "Of {label}:" -o "$1.gguf" -q "${@:2}"
}
of_kind k -t 2 --seed 5
of_kind k1 -t 1 --seed 5; expect_same k.gguf k1.gguf
of_kind k2 -t 1 --seed 5 --mismatch 0; expect_different k.gguf k2.gguf
of_kind k3 -t 1 --seed 5 --loss-on all; expect_different k.gguf k3.gguf
of_kind p; expect_no_err k2 # a label that is none
refuse 2 "no {label}" $kinds --instruction "Of one:" -o x.gguf
# Of a description records are items of a list, and texts too; the file says so.
works ${kinds/--positions 32/--positions 64} --describe "notes of {label}" -o d.gguf -q --seed 5
expect_different k.gguf d.gguf
works verify d.gguf
refuse 2 "no {label}" $kinds --describe "notes" -o x.gguf
refuse 2 "--rank: found '1025', allowed 1..1024" ${kinds/--rank 2/--rank 1025} \
    -o x.gguf
refuse 2 "--describe and --instruction" $kinds --describe "{label}" --instruction "{label}" \
    -o x.gguf
listed="generate m.gguf --lora d.gguf --num 3 -n 8 --seed 1 --jsonl"
works $listed --report d.json; cp out listed
check "the report has the beginning of an item" grep -q '"answer": " \\""' d.json
works $listed --describe "notes of {label}"; expect_same out listed
works $listed --instruction "Of {label}:"; expect_different out listed
refuse 2 "needed are both" $alone --units 8 --sigma 1 --label-field kind -o x.gguf
# What {label} stands for behind a TAB: another adapter, whose texts are asked for in these words.
printf 'k0\tsmall ones\nk1\nk9\n' >meant
works ${kinds/names kinds/names meant} --instruction "Of {label}:" -o meant.gguf -q --seed 5
expect_different k.gguf meant.gguf; works verify meant.gguf
check "the file has the meaning" grep -q "small ones" meant.gguf
meant="generate m.gguf --lora meant.gguf --num 3 -n 8 --seed 1 --jsonl"
works $meant; cp out meant.jsonl; expect_count 1 '"k0"' out
sed 's/"trained":"adapter"/"trained":"merged" /' meant.gguf >other.gguf
refuse 5 "trained is of a model" verify other.gguf
printf '1 k0\tsmall ones\n1 k1\n1 k9\n' >numbers
works ${meant/--num 3/--num-per-label numbers}; expect_same out meant.jsonl
printf '1 k0\tlarge ones\n1 k1\n1 k9\n' >numbers
works ${meant/--num 3/--num-per-label numbers}; expect_different out meant.jsonl
# A label on two lines has texts of both wordings.
printf '1 k0\tsmall ones\n1 k1\n1 k9\n1 k0\tlarge ones\n' >numbers
works ${meant/--num 3/--num-per-label numbers}; expect_count 2 '"k0"' out
head -n 3 out >first; expect_same first meant.jsonl
printf '1 k0\tsmall ones\n1 k1\n1 k9\n1 k0\tsmall ones\n' >numbers
mv out wordings; works ${meant/--num 3/--num-per-label numbers}; expect_different out wordings

texts="generate m.gguf --lora p.gguf"
writes p --num 7 -n 8 --jsonl; expect_lines 7 out
expect_err "7, by post-processing: no further cost" "guarantee          ("
python_check "the texts' labels" <<'P'
assert [o["text_label"] for o in objects("out")] == ["k0", "k1", "k9"] * 2 + ["k0"]
assert all(o["private"] for o in objects("out"))
P
printf '1 k9\n3 k0\n' >numbers
writes p --num-per-label numbers -n 8 --jsonl; expect_count 1 '"k9"' out; expect_count 3 '"k0"' out
writes p --num 40 -n 9 --top-p .9 --seed 4 -o g1.jsonl
writes p --num 40 -n 9 --top-p .9 --seed 4 -o g2.jsonl --parallel 3 -t 1
expect_same g1.jsonl g2.jsonl
writes p --num 40 -n 9 --seed 4 -o g3.jsonl; expect_different g1.jsonl g3.jsonl
writes p -n 4 --seed 3 --jsonl; expect_out '"private":true' # the seed of draws
writes n -n 4; expect_err "NOT PRIVATE"
writes s1 -n 4 --jsonl; expect_out '"private":false'
echo 1 k2 >other
refuse 2 "has no label 'k2'" $texts --num-per-label other -n 4
refuse 2 "needed is the adapter" generate m.gguf -n 4
refuse 2 "is there already" $texts -n 4 -o g1.jsonl
refuse 3 "" generate m.gguf --lora refs.jsonl -n 4
works generate -h
check "the seed of draws" test "$(grep -A1 -e --seed out | grep -c 'NOT PRIVATE')" -eq 0

# ---- Several attributes, and how often each is there -------------------------------------------
printf 'm0\tt0\nm1\tt0\nm0\tt1\nm1\tt1\nm1\tt2\n' >pairs
python3 -c 'print("\n".join(f"m{i}\tt{i % 7}" for i in range(150)))' >many
attributes="$alone --units 8 --sigma 2 --attributes mood,thing --expected 8 --label-names"
of_pair() { # NAME ARGS: an adapter of two attributes
    works $attributes "${names-pairs}" --instruction "A {mood} {thing}:" -o "$1.gguf" -q "${@:2}"
}
of_pair at -t 1 --seed 5
of_pair at1 -t 2 --seed 5; expect_same at.gguf at1.gguf
of_pair ah --histogram-epsilon .5
expect_err "numbers of units   of each label, with Laplace noise of scale 2: epsilon 0.5 of it"
verifies ah.gguf "given  claim.mechanisms[1].scale: recorded 2"
of_pair ap
writes ap --num 7 -n 4 --jsonl --seed 3
python_check "the epsilon of a histogram, the attributes of texts" <<'P'
def epsilon(name):
    follows = rb'dpinfer\.follows.{12}\{"rho":null,"epsilon":([0-9.e+-]+)'
    return float(re.search(follows, data(name), re.S)[1])
assert 0.5 <= epsilon("ah.gguf") - epsilon("ap.gguf") < 0.5 + 1e-9
wanted = (data("pairs").decode().splitlines() * 2)[:7]
assert [o["text_label"] for o in objects("out")] == wanted
assert [o["attributes"]["mood"] + "\t" + o["attributes"]["thing"] for o in objects("out")] == wanted
P
printf '3 m1\tt2\n1 m0\tt1\n' >joint
writes ap --num-per-label joint -n 4 --jsonl
expect_count 3 '"thing":"t2"' out; expect_count 1 '"thing":"t1"' out
python_check "counts" <<'P'
# The same number of bytes, 9s and 0s, so that the shares are known.
all = data("ah.gguf")
at = all.index(b"dpinfer.finetune.label_counts") + len("dpinfer.finetune.label_counts") + 12
end = at + int.from_bytes(all[at - 8:at], "little")
lines = [(b"9" if i in (1, 4) else b"0") * len(line)
         for i, line in enumerate(all[at:end].split(b"\n"))]
assert len(lines) == 5
open("shares.gguf", "wb").write(all[:at] + b"\n".join(lines) + all[end:])
json.dump([int(line) for line in lines], open("sizes", "w"))
P
writes shares --num 40 -n 3 --jsonl
python_check "shares of texts" <<'P'
found, sizes = [o["text_label"] for o in objects("out")], load("sizes")
for size, label in zip(sizes, data("pairs").decode().splitlines()):
    assert abs(found.count(label) - 40 * size / sum(sizes)) <= 1, (sizes, found)
P
# More labels than prompts that are kept: the same texts, however many are drawn at a time.
names=many of_pair am
writes am --num 200 -n 3 --seed 4 -o am1.jsonl
writes am --num 200 -n 3 --seed 4 -o am2.jsonl --parallel 5; expect_same am1.jsonl am2.jsonl
check "labels of all" \
    test "$(grep -o '"text_label":"[^"]*"' am1.jsonl | sort -u | wc -l)" -eq 150
refuse 2 "no {thing}" $attributes pairs --instruction "A {mood}:" -o x.gguf
refuse 2 "needed are 2 values" $attributes kinds --instruction "A {mood} {thing}:" -o x.gguf
refuse 2 "allowed is one of them" $attributes pairs --label-field mood --instruction "A {mood}:" \
    -o x.gguf
refuse 2 "--histogram-epsilon: found 0.5" $tune --sigma 1 -o x.gguf --histogram-epsilon .5

# ---- One model of a model and its adapter -------------------------------------------------------
works $tune --sigma 2 -o w.gguf --merge whole.gguf -q
works quantize m.gguf whole2.gguf F32 --lora w.gguf
exact m.gguf with --lora w.gguf; exact whole.gguf merged1; exact whole2.gguf merged2
python_check "the logits of a whole model are those of the adapter" <<'P'
a, c = floats("with.f32"), floats("plain.f32")
norm = sum(x * x for x in a)
assert sum((x - y) ** 2 for x, y in zip(a, c)) > 1e-9 * norm
for name in "merged1.f32", "merged2.f32":
    assert sum((x - y) ** 2 for x, y in zip(a, floats(name))) < 1e-11 * norm
P
works inspect whole.gguf; expect_out "+ adapter"
# It has the adapter's claim, of its own weights.
for whole in whole2 whole; do
    verifies $whole.gguf "ok     follows.epsilon" "ok     claim.mechanisms[0].tensors_sha256"
    expect_line out '^PRIVATE$'
done
grep -v "sha256\|trained" out >of_whole
works verify w.gguf --verbose; grep -v "sha256\|trained" out >of_adapter
expect_same of_whole of_adapter
works generate whole.gguf --num 3 -n 4 --jsonl --report rw.json; expect_out '"private":true'
expect_err "3, by post-processing: no further cost" "numbers, in the weights"
works verify rw.json --model whole.gguf --verbose
expect_out "ok     trained.claim.mechanisms[0].tensors_sha256"
forged whole.gguf '"sigma":2' '"sigma":9' 1 follows.epsilon
changed_weight whole.gguf
works quantize m.gguf w8.gguf Q8_0 --lora p.gguf
verifies w8.gguf
works generate w8.gguf --num 3 -n 4 --jsonl; expect_out '"text_label":"k9"'
works quantize m.gguf ws.gguf KEEP --lora s1.gguf
verifies ws.gguf "NOT PRIVATE"
works generate ws.gguf -n 4 --jsonl; expect_out '"private":false'
expect_err "Privacy statement: NOT PRIVATE"
forged a.gguf '"sigma":2' '"sigma":9' 1 follows.epsilon
refuse 3 "$claim" quantize m.gguf x.gguf KEEP --lora forged.gguf
works quantize m.gguf bare.gguf KEEP --lora n.gguf
verifies bare.gguf "NOT PRIVATE"
works inspect bare.gguf; expect_out "NOT PRIVATE"
refuse 2 "is there already" $tune --sigma 2 -o w2.gguf --merge whole.gguf -q; expect_none w2.gguf
refuse 2 "would be overwritten" $tune --sigma 2 -o w2.gguf --merge m.gguf --overwrite
refuse 3 "is no adapter" quantize m.gguf x.gguf Q8_0 --lora m.gguf
refuse 2 "allowed: F32" quantize m.gguf x.gguf Q9 --lora w.gguf

# ---- All weights ------------------------------------------------------------------------------
works $full --sigma 2 -o f.gguf -q --instruction "Say:"
expect_err "for all that is released together" "trained            all"
verifies f.gguf "verified: the guarantee follows" PRIVATE
# A base with a claim of its own: what is trained on it, or merged into it, would not count that.
LC_ALL=C sed 's/dpinfer\.adapter\.base/dpinfer.adapter.else/' w.gguf >of_any.gguf
refuse 3 "would have two claims" quantize f.gguf y.gguf F32 --lora of_any.gguf
# The first adapters do not say what was trained.
LC_ALL=C sed 's/dpinfer\.finetune\.trained/another_finetune.trained/' w.gguf >first.gguf
verifies first.gguf
LC_ALL=C sed 's/dpinfer\.finetune\.template/dpinfer.finetune.whatever/' w.gguf >more.gguf
refuse 5 "the unknown key dpinfer.finetune.whatever" verify more.gguf
refuse 2 "was trained on records itself" ${tune/m.gguf/f.gguf} --sigma 2 -o x.gguf
check "the type of a weight" test "$("$dpinfer" inspect m.gguf --json | grep -c '"F32"')" = \
    "$("$dpinfer" inspect f.gguf --json | grep -c '"F32"')"
works generate f.gguf --num 3 -n 4 --jsonl --report rf.json; expect_lines 3 out
expect_out '"private":true'; expect_err "3, by post-processing: no further cost"
works verify rf.json --model f.gguf --verbose
expect_out "ok     trained.claim.mechanisms[0].tensors_sha256"
works $full --sigma 2 --seed 7 -t 1 -o f1.gguf -q --checkpoint fstate --checkpoint-steps 1
works $full --sigma 2 --seed 7 -t 2 -o f2.gguf -q; expect_same f1.gguf f2.gguf
works $full --sigma 2 --seed 7 -o f3.gguf -q --checkpoint fstate; expect_same f1.gguf f3.gguf
works generate f1.gguf -n 4 --jsonl; expect_out '"private":false'
works inspect f1.gguf; expect_out "(NOT PRIVATE)"
for type in F16 BF16; do
    works quantize m.gguf base.gguf $type --overwrite
    works ${full/m.gguf/base.gguf} --sigma 2 -o half.gguf -q --overwrite
    verifies half.gguf PRIVATE
done
# Without noise the first step of Adam moves each weight by the learning rate, of which a cosine
# leaves a tenth at the last step.
works ${full/--steps 4/--steps 1} --epsilon inf --warmup 0 --lr .01 --expected 8 -o n1.gguf -q
python_check "what a step of all weights does" <<'P'
x, y = (struct.unpack("<1024f", data(n)[-4096:]) for n in ("m.gguf", "n1.gguf"))
moved = [abs(p - q) for p, q in zip(x, y)]
assert max(moved) < 1.01e-3 and sum(m > 0.9e-3 for m in moved) > 900, (max(moved), moved[:5])
P
works quantize f.gguf fq.gguf Q8_0
wrong "claim.mechanisms[0].tensors_sha256" fq.gguf
works quantize m.gguf mq.gguf Q8_0
refuse 2 "full: found weights of type Q8_0" ${full/m.gguf/mq.gguf} --sigma 1 -o x.gguf
refuse 2 "--rank: not allowed with --full" $full --sigma 1 -o x.gguf --rank 2
refuse 1 "another configuration" $full --sigma 2 --seed 7 -o f4.gguf -q --checkpoint state
changed_weight f.gguf

# ---- Texts of a given form ----------------------------------------------------------------------
printf 'root ::= "say " [a-c]{2,3} ("!" | "?")\n' >form.gbnf
echo '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}' >form.json
writes a --num 40 -n 24 --temp 100 --grammar form.gbnf -o formed.jsonl
writes a --num 5 -n 60 --json-schema form.json -o schema.jsonl
writes a --num 200 -n 96 --temp 100 --answer Say: --keep-answer --stop w --report worded.json \
    -o worded.jsonl
works verify worded.json --model a.gguf; expect_line worded.json '"answer": "Say:"'
python_check "texts of a grammar, of a schema and of a wording" <<'P'
texts = objects("formed.jsonl")
assert len(texts) == 40 and all(t["ended"] and t["private"] for t in texts)
assert all(re.fullmatch("say [a-c]{2,3}[!?]", t["text"]) for t in texts), texts[:3]
# At this temperature all tokens are as likely: fewer than 6 texts of 72 have a chance below 1e-30.
assert len({t["text"] for t in texts}) > 5
done = [json.loads(t["text"]) for t in objects("schema.jsonl") if t["ended"]]
assert all(set(o) == {"n"} and isinstance(o["n"], int) for o in done)
worded = objects("worded.jsonl")
# One token of 300, all as likely, is a w: texts without the stop show it but for a chance of 1e-20.
assert all(t["text"].startswith("Say:") and "w" not in t["text"] for t in worded), worded
P
refuse 2 "cannot read nothing" generate m.gguf --lora a.gguf -n 4 --grammar nothing

# ---- Matrices that have an adapter --------------------------------------------------------------
tuned tv --sigma 2 --targets v,down
fails 3 inspect tv.gguf
check "the tensors of v and down" test "$(grep -aoE 'blk.0.[a-z_]+.weight.lora_a' tv.gguf |
    sort -u | tr '\n' ' ')" = "blk.0.attn_v.weight.lora_a blk.0.ffn_down.weight.lora_a "
run logits m.gguf --tokens before --lora tv.gguf; check "an adapter of two" test "$rc" -ne 3
refuse 2 "--targets: found 'w'" $tune --sigma 2 --targets v,w -o x.gguf

# ---- Other architectures ------------------------------------------------------------------------
# What is written has the base's architecture, and texts are drawn with it. What needs the shared
# data is skipped when it is absent.
arch=${DPI_DATA:-$here/../../../shared/data}/arch
for name in qwen3 gemma3 phi3 gemma4 gemma4-e2b qwen35; do
    base=$arch/$name-A.gguf of_base="${alone/m.gguf/$arch/$name-A.gguf} --units 8 --sigma 2"
    [ -f "$base" ] || { echo "left out: no $base"; continue; }
    works $of_base -o $name.gguf --merge $name-merged.gguf -q
    verifies $name.gguf PRIVATE; verifies $name-merged.gguf PRIVATE
    works generate "$base" --lora $name.gguf --num 3 -n 4 --jsonl; expect_out '"private":true'
    exact "$base" with --lora $name.gguf; exact $name-merged.gguf merged
    python_check "$name, merged" <<'P'
a, b = floats("with.f32"), floats("merged.f32")
assert sum((x - y) ** 2 for x, y in zip(a, b)) < 1e-11 * sum(x * x for x in a)
P
    refuse 3 "is '${name%-e2b}', that of the model is 'llama'" generate m.gguf \
        --lora $name.gguf -n 4
    works ${full/m.gguf/$base} --sigma 2 -o all-$name.gguf -q; verifies all-$name.gguf PRIVATE
    [ $name != phi3 ] || refuse 2 "one tensor, attn_qkv, of this model" $of_base -o x.gguf \
        --targets q
done
# A delta net has more than matrices and norms: all of it is trained, and counted.
if [ -f "$arch/qwen35-A.gguf" ]; then
    works ${full/m.gguf/$arch/qwen35-A.gguf} --sigma 2 --lr .01 -o delta.gguf -q
    expect_err "all 218360 weights"
    works generate delta.gguf --num 2 -n 4; expect_err "all 218360 weights"
    "$dpinfer" inspect "$arch/qwen35-A.gguf" --json >before.json
    "$dpinfer" inspect delta.gguf --json >after.json
    python_check "a tensor stayed as it was" "$arch/qwen35-A.gguf" <<'P'
def tensors(path, listed):
    return {t["name"]: data(path)[t["offset"]:t["offset"] + t["bytes"]]
            for t in load(listed)["tensors"]}
a, b = tensors(sys.argv[1], "before.json"), tensors("delta.gguf", "after.json")
assert a.keys() == b.keys() and all(a[name] != b[name] for name in a)
P
fi

# ---- The report of texts, and its verification --------------------------------------------------
texts="generate m.gguf --lora ah.gguf --num 6 -n 4"
works $texts -o rt.jsonl --report rt.json --seed 2
python_check "the report of texts" <<'P'
o = load("rt.json")
sha = lambda name: hashlib.sha256(data(name)).hexdigest()
assert o["output"]["sha256"] == sha("rt.jsonl")
assert o["model"]["files"][0]["sha256"] == sha("ah.gguf")
assert o["label"] == "PRIVATE" and o["output"]["texts"] == 6 and o["statement"]["delta"] == 1e-3
trained, counts, texts = o["claim"]["mechanisms"]
assert trained["sigma"] == 2 and counts["scale"] == 2 and texts["runs"] == 6
P
verifies rt.json PRIVATE "given  claim.mechanisms[0].sigma" "the adapter was not looked at"
works verify rt.json --lora ah.gguf --output rt.jsonl --verbose
expect_out "ok     model.files[0].sha256" "ok     output.sha256" \
    "the adapter is the one named; the output is the one"
wrong "model.files[0].sha256" rt.json --lora ap.gguf
wrong output.sha256 rt.json --output pairs
# What is done to a report | the files that are there too | exit code and what `verify` says.
cat >changes <<'END'
statement.update(epsilon=0.1)        |                   |1 WRONG  statement.epsilon: recorded 0.1
follows.update(epsilon=0.1)          |                   |1 WRONG  follows.epsilon: recorded 0.1
C(1, scale=200)                      |                   |1 WRONG  statement.epsilon
C(0, sigma=50.0)                     |                   |1 WRONG  statement.epsilon
C(0, sigma=50.0)                     |--lora ah.gguf     |1 WRONG  claim: recorded another one
claim.update(randomness="seed")      |                   |1 WRONG  label
dp_definition.update(neighbours="one")||1 WRONG  dp_definition.neighbours: recorded "one"
plain.update(done="magic")           |                   |1 WRONG  plain.done
claim.update(model="another")        |                   |1 WRONG  follows.claim_sha256
model.update(name="another")         |                   |1 WRONG  model.name
output.update(texts=7)               |--output rt.jsonl  |1 WRONG  output.texts
output.update(texts=7)               |                   |1 WRONG  output.texts
output.update(texts=5)               |--output rt.jsonl  |1 WRONG  output.texts
output.pop("texts")                  |                   |5 'output'
output.update(texts=-5)              |                   |5 'output'
output.update(form="other")          |                   |5 'output'
output.update(form=5)                |                   |5 'output'
output.pop("form")                   |--output rt.jsonl  |5 'output'
output.update(text_bytes=1.5)        |                   |5 'output'
software.pop("program")              |                   |5 'software'
C(0, runs="4")                       |                   |5 claim.mechanisms[0].runs is "4"
C(0, sampling=2.0)                   |                   |5 claim.mechanisms[0].sampling is 2.0
C(0, expected=2.0)                   |                   |5 sampling: found
claim["data"].update(delta=.5)       |                   |5 delta: found 0.5
C(0, clip=0.0)                       |                   |5 claim.mechanisms[0].clip is 0.0
C(0, numbers=0)                      |                   |5 claim.mechanisms[0].numbers is 0
C(0, more=1)                         |                   |5 unknown key 'more'
C(2, runs=9)                         |                   |1 WRONG  follows.claim_sha256
statement.update(more=.1)            |                   |1 WRONG  statement.more: recorded 0.1
output.update(top_k=1)               |                   |5 'output'
update(note="all is well")           |                   |1 WRONG  note: recorded "all is well"
C(2, top_p=1.5)                      |                   |5 claim.mechanisms[2].top_p is 1.5
model.update(files="a")              |                   |5 'model'
model["files"][0].update(sha256="0" * 64)|               |0
model["files"][0].update(sha256="0" * 64)|--lora ah.gguf |1 WRONG  model.files[0].sha256
# Accountants that would take long say no at once: 4 s of the processor are 100 times as much.
C(0, sampling=1e-9, runs=2)          |                   |5 sampling
C(0, runs=10000000)                  |                   |1 WRONG  statement.epsilon
C(0, runs=1000000, sigma=1.0)        |                   |1 WRONG  statement.epsilon
END
python_check "changed reports" <<'P'
for n, line in enumerate(open("changes"), 1):
    o = load("rt.json")
    change = line.split("|")[0].strip()
    section = re.match(r"(\w+)([.\[])", change)
    C = lambda i, **values: o["claim"]["mechanisms"][i].update(values)
    if not line.startswith("#"):
        eval(f'o["{section[1]}"]{change[len(section[1]):]}' if section
             else change if change.startswith("C(") else f"o.{change}")
    json.dump(o, open(f"changed{n}.json", "w"))
P
n=0
while IFS='|' read -r change files wanted; do
    n=$((n + 1))
    [ "${change:0:1}" != '#' ] || continue
    last="verify after $change $files"
    (ulimit -t 4 && exec "$dpinfer" verify --verbose changed$n.json $files >out 2>err)
    rc=$?
    expect_rc "${wanted%% *}"
    if [ "$rc" -eq 5 ]; then expect_err "${wanted#* }"; else expect_out "${wanted:2}"; fi
done <changes
works $texts -o plain.txt --report plain.json
works verify plain.json --output plain.txt --verbose; expect_out "ok     output.texts"
for change in 's/"texts": 6/"texts": 5/' 's/"texts": 6/"texts": 7/' 's/"text_bytes": /&1/'; do
    sed "$change" plain.json >changed.json; wrong output.texts changed.json --output plain.txt
done
writes s1 -n 4 --report rn.json --report rn.md
works verify rn.json --lora s1.gguf; expect_out "NOT PRIVATE"
expect_line rn.md "^# Privacy report: NOT PRIVATE" 'Formal DP statement:\*\* No guarantee'
refuse 2 "is there already" generate m.gguf --lora ah.gguf -n 4 --report rt.json
works $texts -o rt2.jsonl --report rt.md --report rt.html
expect_line rt.md '\| epsilon \| [0-9.]* \|' "$(sha_of rt2.jsonl)"
expect_line rt.html "$(sha_of rt2.jsonl)"

# ---- The model that an adapter is of -------------------------------------------------------------
mv m.gguf mine.gguf
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --kv-heads 1 --vocab-size 300 \
    --type F32 --seed 2 -o m.gguf 2>err || exit 1
refuse 3 "p.gguf is of another model" generate m.gguf --lora p.gguf -n 4
refuse 3 "a.gguf is of another model" logits m.gguf --tokens - --lora a.gguf
mv mine.gguf m.gguf
works generate mq.gguf --lora p.gguf -n 4; expect_err "guarantee          ("

# ---- Public loss ---------------------------------------------------------------------------------
echo '{"text": "Public words."}' >public.jsonl; echo '{}' >empty.jsonl
works $one --sigma 2 --seed 7 -o h.gguf --held-out public.jsonl; expect_same h.gguf s1.gguf
check "what is spent" test "$(grep '^step 4: epsilon' err | awk '{ print $4 == $6 }')" = 1
expect_count 2 '^step [04]: [0-9.]+ nats a token of the held-out' err
refuse 4 "no held-out record has a token" $one --sigma 2 -o hx.gguf --held-out empty.jsonl
refuse 2 "is an input and would be overwritten" $one --sigma 2 -o public.jsonl \
    --held-out public.jsonl --overwrite

# ---- The plan ------------------------------------------------------------------------------
works ledger show year.ledger; cp out before
works $tune --sigma 3 --plan --ledger year.ledger --json
python_check "the plan" <<'P'
o = load("out")
assert o["sigma"] == 3 and o["steps"] == 4 and o["threads"] == 2
assert o["memory_bytes"] == o["program_bytes"] + o["state_bytes"] + o["step_bytes"] + \
    2 * o["thread_bytes"] + o["record_bytes"]
# 7 matrices of rank 2: q, o 32 x 32; k, v 32 x 16; gate, up, down 32 x 32. The base is mapped, but
# for three norms.
n, base = 2 * (5 * 64 + 2 * 48), 3 * 32
assert o["numbers"] == n and o["state_bytes"] == 4 * (base + 4 * n) and o["step_bytes"] == 20 * n
assert o["thread_bytes"] > 20 * n and o["record_bytes"] == 8 * 33 * 4
assert o["step_seconds"] > 0 and abs(o["seconds"] / o["step_seconds"] - 4) < 1e-9
P
works ledger show year.ledger; expect_same out before
works ${tune/--steps 4/--steps 1} --epsilon 3 --expected 8 --plan
expect_out "MiB: program and model" "s a step"
expect_line out '^ *label +PRIVATE$'
works $tune --epsilon inf --plan; expect_line out '^ *label +NOT PRIVATE: no noise was added$'
works $tune --epsilon inf --plan --json; expect_out '"label": "NOT PRIVATE: no noise was added"'
run $tune --sigma 1 --seed 1 --plan; expect_out "NOT PRIVATE"
works $full --plan --json --sigma 2; expect_out '"numbers": 25440'

# ---- What is refused --------------------------------------------------------------------------
refuse_each 2 finetune m.gguf refs.jsonl --sigma 1 <<'END'
--units 8  | -o FILE
-o x.gguf  | --units N: needed
END
# One range of noise, in the help, on the command line and where it is found for epsilon.
refuse_each 2 $tune <<'END'
-o x.gguf                                     | needed is one of them
--sigma 1 --epsilon 1 -o x.gguf               | needed is one of them
--sigma 0 -o x.gguf                           | --sigma: found '0', allowed 0.1..4096
--sigma .05 -o x.gguf                         | --sigma: found '.05', allowed 0.1..4096
--sigma 5000 -o x.gguf                        | --sigma: found '5000', allowed 0.1..4096
--sigma 1 -o x.gguf --units 9                 | --units is given more than once
--sigma 1 -o a.gguf                           | a.gguf is there already
--sigma 1 -o m.gguf --overwrite               | is an input and would be overwritten
--sigma 1 -o x.gguf --checkpoint refs.jsonl   | is an input and would be overwritten
--sigma 1 -o x.gguf --checkpoint x.gguf --overwrite | would be overwritten
--sigma 1 -o x.gguf --template llama3         | chat template llama3 needs
--sigma 1 -o /dev/full                        | /dev/full: a file is needed
--sigma 1 -o -                                | -o FILE: needed for the adapter
END
refuse 2 "allowed 0.1..4096" ${tune/1e-3/1e-12} --epsilon .0001 --expected 8 -o x.gguf
works finetune -h; expect_out "(0.1..4096)" "must be below 1/N of --units" \
    "labels, one a line, which are public"
refuse 2 "--sigma: found '.05', allowed 0.1..1e+06" account --sigma .05 --delta 1e-5
run run -h; expect_out "less than 1 / number of records"
refuse 2 "delta: found 0.001, allowed below 1 / units" $alone --sigma 1 -o x.gguf --units 5000
refuse 2 "no RECORDS given" finetune m.gguf --sigma 1
refuse 2 "chat template llama3 needs" generate m.gguf --lora a.gguf --template llama3
refuse 4 "cannot open the records none" finetune m.gguf none --units 8 --sigma 1 -o x.gguf
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
fails 1 $one --sigma 1 -o /dev/full --checkpoint kept.ckpt
works $one --sigma 1 -o x.gguf --checkpoint kept.ckpt
check "an adapter" test -s x.gguf
finish
