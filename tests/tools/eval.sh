#!/usr/bin/env bash
# The command `eval`: eval.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
python3 - <<'E2'
import json, random
random.seed(3)
words = {"heart": "pulse beat rest walk tablet".split(), "skin": "rash cream sun itch bath".split()}
for name, n in ("made", 40), ("real", 40), ("train", 40):
    with open(name + ".jsonl", "w") as f:
        for i in range(n):
            label = ("heart", "skin")[i % 2]
            text = " ".join(random.choice(words[label] + ["and", "then"]) for _ in range(12))
            f.write(json.dumps({"text": text, "dept": label}) + "\n")
train = open("train.jsonl").readlines()
open("copies.jsonl", "w").write("".join(train[:10] + open("made.jsonl").readlines()[:30]))
E2

# ---- The command line ---------------------------------------------------------------------------
refuse 2 "no SYNTHETIC texts given" eval
refuse 2 "no --real texts given" eval made.jsonl
refuse 2 "unexpected argument 'real.jsonl'" eval made.jsonl real.jsonl --real real.jsonl
refuse 2 "--dim is allowed only with --features" eval made.jsonl --real real.jsonl --dim 3
refuse 2 "--features needs --dim" eval a b --features
refuse 2 "found 1 files, allowed two" eval a --features --dim 2
refuse 2 "allowed without --real" eval a b --features --dim 2 --real c
refuse 4 "No such file" eval nothing.jsonl --real real.jsonl
refuse 3 "No such file" eval made.jsonl --real real.jsonl --model nothing.gguf
refuse 2 "is an input" eval made.jsonl --real real.jsonl -o ./real.jsonl --overwrite
: >empty.jsonl
refuse 4 "real texts: found no text, allowed 1 or more" eval made.jsonl --real empty.jsonl

# ---- Texts --------------------------------------------------------------------------------------
run eval made.jsonl --real real.jsonl --train train.jsonl --label-field dept; expect_rc 0
expect_out "PRIVATE: computed from real texts"
run eval made.jsonl --real real.jsonl --real-is-public; expect_rc 0
check "is private" test -z "$(grep PRIVATE out)"
run eval copies.jsonl --real real.jsonl --train train.jsonl --label-field dept --json; expect_rc 0
near exact_copies 10 1e-9; near n_train 40 1e-9; near n_labels 2 1e-9
check "copies" python3 -c "
import json
x = json.load(open('out'))
assert x['private'] is True
assert x['accuracy'] > .95 and x['accuracy_train'] > .95 and abs(x['accuracy_majority'] - .5) < 1e-9
assert x['near_copies'] >= .25 and x['longest_run'] == 12
low, high = x['intervals']['near_copies']
assert low < x['near_copies'] < high
assert 'mauve' not in x"

# ---- A model ------------------------------------------------------------------------------------
run eval made.jsonl --real real.jsonl --model m.gguf --real-is-public -o report.html; expect_rc 0
run eval made.jsonl --real real.jsonl --model m.gguf -o report.json -t 2; expect_rc 0
run eval made.jsonl --real real.jsonl --model m.gguf -o report.csv --isa ref; expect_rc 0
check "three forms" python3 - <<'E2'
import csv, html.parser, json, math
x = json.load(open("report.json"))
rows = {r["key"]: r for r in csv.DictReader(open("report.csv"))}
assert 0 < x["mauve"] <= 1 and len(x["mauve_seeds"]) == 5 and x["settings"]["scaling"] == 5
assert abs(x["mauve"] - sum(x["mauve_seeds"]) / 5) < 1e-12
assert all(k in x for k in rows) and "perplexity" in rows
page = open("report.html").read()
assert page.count("<svg") == 3 and "http" not in page and "<script" not in page
for key in "precision", "recall":
    assert 0 <= x[key] <= 1
class Tags(html.parser.HTMLParser):
    open_tags = []
    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open_tags.append(tag)
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.open_tags.pop() == tag, tag
parser = Tags()
parser.feed(page)
assert parser.open_tags == []
E2
# The perplexity of a text is that of its logits.
"$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 --type F32 --seed 4 \
    -o other.gguf 2>err
echo '{"text": "One text of some words."}' >one.jsonl
run eval one.jsonl --real one.jsonl --model other.gguf --json --isa ref; expect_rc 0
mv out one.json
printf 'One text of some words.' >one.txt
"$dpinfer" tokenize other.gguf --bos <one.txt >tokens
"$dpinfer" logits other.gguf --tokens tokens -o logits.f32 --isa ref
check "perplexity" python3 - <<'E2'
import json, math, struct
tokens = [int(t) for t in open("tokens").read().split()]
data = open("logits.f32", "rb").read()
logits = struct.unpack(f"<{len(data) // 4}f", data)
n = len(logits) // len(tokens)
nll = 0
for i, t in enumerate(tokens[1:]):
    row = logits[i * n:(i + 1) * n]
    nll += math.log(sum(math.exp(v) for v in row)) - row[t]
expected = math.exp(nll / (len(tokens) - 1))
assert abs(json.load(open("one.json"))["perplexity"] / expected - 1) < 1e-6
E2

# ---- Vectors ------------------------------------------------------------------------------------
python3 -c "
import random, struct
random.seed(1)
for name, shift in ('p', 0), ('q', 0), ('r', 8):
    x = [random.gauss(shift * (i % 4 == 0), 1) for i in range(4 * 200)]
    open(name + '.f32', 'wb').write(struct.pack('<800f', *x))"
run eval p.f32 q.f32 --features --dim 4 --json; expect_rc 0
same=$(field mauve)
run eval p.f32 r.f32 --features --dim 4 --json --clusters 20; expect_rc 0
near n_clusters 20 1e-9
check "far sets" awk -v a="$same" -v b="$(field mauve)" 'BEGIN { exit !(a > .7 && b < .1) }'
refuse 4 "allowed a multiple of 12" eval p.f32 q.f32 --features --dim 3
finish
