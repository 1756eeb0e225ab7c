#!/usr/bin/env bash
# The command `eval`: eval.sh path/to/dpinfer
. "$(dirname "$0")/cli_support.sh"
small_model
python3 "$here/eval_texts.py"
python3 - <<'E2'
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
refuse 2 "allowed without --grammar" eval a b --features --dim 2 --grammar nothing
refuse 2 "allowed without --claimed-epsilon" eval made.jsonl --real real.jsonl --dp-epsilon 1 \
    --claimed-epsilon 2
run eval made.jsonl --real real.jsonl -o first.csv; expect_rc 0
check "a private report that others may read" [ "$(stat -c %a first.csv)" = 600 ]
check "a public one" [ "$(umask 022
    "$dpinfer" eval made.jsonl --real real.jsonl --real-is-public -o first.htm
    stat -c %a first.htm)" = 644 ]
check "a page" grep -q '<!doctype html>' first.htm
for name in x.md x.HTML ./x.pdf x.json.gz; do
    refuse 2 "-o: found '$name', allowed is a name that ends in .txt, .json, .csv, .html or .htm" \
        eval made.jsonl --real real.jsonl -o $name
done
for name in x.txt ./x; do
    run eval made.jsonl --real real.jsonl -o $name; expect_rc 0
    check "$name is text" grep -q '^length$' $name
done
check "a CSV that does not say that it is private" [ "$(sed -n 2p first.csv)" = "private,1,," ]
# Made-up documents by their attributes: against a count of what dpinfer-corpus reads.
"${dpinfer%/*}/dpinfer-corpus" make --domain ticket -n 30 --seed 3 >one.jsonl
"${dpinfer%/*}/dpinfer-corpus" make --domain ticket --law private -n 40 --seed 4 >other.jsonl
run eval one.jsonl --real other.jsonl --domain ticket --json; expect_rc 0
cp out domain.json
python3 - "${dpinfer%/*}/dpinfer-corpus" <<'P' || bad "attributes"
import json, subprocess, sys
def read(path):
    text = open(path).read()
    rows = subprocess.run([sys.argv[1], "read"], input=text, capture_output=True, text=True).stdout
    return [json.loads(line) for line in rows.splitlines()]
a, b = read("one.jsonl"), read("other.jsonl")
def share(rows, name):
    counts = {}
    for r in rows:
        value = r["attributes"].get(name) if r["domain"] == "ticket" else None
        counts[value] = counts.get(value, 0) + 1 / len(rows)
    return counts
names = sorted({n for r in a + b for n in r["attributes"]})
each = []
for name in names:
    x, y = share(a, name), share(b, name)
    each.append(sum(abs(x.get(v, 0) - y.get(v, 0)) for v in set(x) | set(y)) / 2)
found = json.load(open("domain.json"))
assert abs(found["attribute_tv_mean"] - sum(each) / len(each)) < 1e-9, (found, each)
got = sorted(found[f"attribute_tv_{i + 1}"] for i in range(len(each)))
assert max(abs(p - q) for p, q in zip(got, sorted(each))) < 1e-9
assert found["well_formed"] == sum(r["well_formed"] for r in a) / len(a) > .9
low, high = found["intervals"]["attribute_tv_mean"]
assert 0 < low < high < 1
P
refuse 2 "found 'ticker', allowed discharge|review" eval one.jsonl --real other.jsonl \
    --domain ticker
# A text that is empty is of no form; lists are JSON too.
printf '%s\n' '{"text": "[1, 2]"}' '{"text": ""}' '{"text": "x"}' '{"text": "[]"}' >lists.jsonl
run eval lists.jsonl --real lists.jsonl --json; expect_rc 0; expect_out '"json_valid": 0.5'
refuse 2 "--prompts needs --model" eval made.jsonl --real real.jsonl --prompts made.jsonl
refuse 2 "allowed is one of them" eval made.jsonl --real real.jsonl --grammar g --json-schema s
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

run eval made.jsonl --real real.jsonl --train train.jsonl --label-field dept --json \
    --claimed-epsilon 100; expect_rc 0
check "noise on a classifier" python3 -c "
import json
x = json.load(open('out'))
assert x['accuracy_logistic'] > .95 and x['accuracy_perturbed'] <= x['accuracy_logistic']"
run eval made.jsonl --real real.jsonl --train train.jsonl --label-field dept --json \
    --claimed-epsilon .01; expect_rc 0
check "chance" awk -v x="$(field accuracy_perturbed)" 'BEGIN { exit !(x > .2 && x < .8) }'

# ---- A model ------------------------------------------------------------------------------------
run eval made.jsonl --real real.jsonl --train train.jsonl --model m.gguf --real-is-public \
    -o report.html; expect_rc 0
run eval made.jsonl --real real.jsonl --model m.gguf -o report.json -t 2; expect_rc 0
run eval made.jsonl --real real.jsonl --model m.gguf -o report.csv --isa ref; expect_rc 0
run inspect m.gguf --json; expect_rc 0
python3 -c "
import json
print(json.dumps({'name': json.load(open('out'))['name']}))" >model.json
run eval made.jsonl --real real.jsonl --model m.gguf; expect_rc 0
expect_out "Model: $(python3 -c "import json; print(json.load(open('model.json'))['name'])")."
expect_out "MAUVE: c = 5, 25 weights, 4 clusters, "
check "three forms" python3 - <<'E2'
import csv, html.parser, json, math, statistics
x = json.load(open("report.json"))
rows = {r["key"]: r for r in csv.DictReader(open("report.csv"))}
assert 0 < x["mauve"] <= 1 and len(x["mauve_seeds"]) == 5 and x["settings"]["scaling"] == 5
assert abs(x["mauve"] - sum(x["mauve_seeds"]) / 5) < 1e-12
assert abs(x["mauve_deviation"] - statistics.stdev(x["mauve_seeds"])) < 1e-12
assert [float(rows[f"mauve_seeds:{25 + i}"]["value"]) for i in range(5)] == x["mauve_seeds"]
for name, value in x["settings"].items():
    assert name == "first_seed" or float(rows[f"settings:{name}"]["value"]) == value, name
for i, c in ((i, c) for i in range(40) for c in range(2)): # the CSV is of another instruction set
    assert abs(float(rows[f"map:real:{i}:{'xy'[c]}"]["value"]) - x["map"]["real"][i][c]) < 1e-3
assert all(k.split(":")[0] in x for k in rows) and "perplexity" in rows
# What the plots show. Counts of words by hand.
sets = [[len(json.loads(l)["text"].split()) for l in open(n + ".jsonl")] for n in ("made", "real")]
width = x["lengths"]["words_in_bin"]
for side, lengths in zip(("synthetic", "real"), sets):
    bins = [sum(n // width == b for n in lengths) for b in range(20)]
    assert x["lengths"][side] == bins
    assert [int(rows[f"lengths:{side}:{b * width} .. {(b + 1) * width - 1}"]["value"])
            for b in range(20)] == bins
curve = list(zip(x["mauve_curve"]["x"], x["mauve_curve"]["y"]))
assert len(curve) == 27 and sorted([curve[0], curve[-1]]) == [(0, 1), (1, 0)]
area = abs(sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(curve, curve[1:])))
assert abs(area - x["mauve_seeds"][0]) < 1e-9, (area, x["mauve_seeds"])
assert abs(float(rows[f"mauve_curve:{curve[3][0]:.17g}"]["value"]) - curve[3][1]) < 1e-9
assert [len(x["map"][k]) for k in ("synthetic", "real")] == [40, 40]
assert all(len(p) == 2 for k in x["map"] for p in x["map"][k])
name = json.load(open("model.json"))["name"]
assert x["model"] == rows["model"]["value"] == name != "", x["model"]
page = open("report.html").read()
for axis in ("words of a text", "share of the texts",
             "of the real texts: exp(-c KL(real, mixture))",
             "synthetic: exp(-c KL(synthetic, mix))", "first principal component",
             "second principal component", "others that are taken for records",
             "records that are found"):
    assert page.count(f">{axis}</text>") == 1, axis
assert page.count("<svg") == 4 and "http" not in page and "<script" not in page
for key in "precision", "recall":
    assert 0 <= x[key] <= 1
# What is no mean over texts or over seeds: constants, numbers of things, different ones.
bare = {"n_synthetic", "n_real", "n_null", "distinct_2", "distinct_3", "distinct_4", "n_cut",
        "n_clusters", "n_dimensions", "mauve_deviation"}
scalars = {k for k, v in x.items() if type(v) in (int, float)}
assert scalars - set(x["intervals"]) == bare, scalars - set(x["intervals"]) ^ bare
for key, (low, high) in x["intervals"].items():
    assert low - 1e-9 <= x[key] <= high + 1e-9, key
    assert low >= 0, key
assert x["intervals"]["mauve"][1] <= 1 and x["intervals"]["length_tv"][1] <= 1
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
# Runs of the model's tokens, by what `tokenize` says: of all pairs of texts and places.
run eval copies.jsonl --real real.jsonl --train train.jsonl --model m.gguf --json; expect_rc 0
mv out runs.json
for name in copies real train; do
    python3 -c "
import json, sys
for line in open('$name.jsonl'):
    print(json.loads(line)['text'])" >lines
    while read -r line; do
        printf %s "$line" | "$dpinfer" tokenize m.gguf | tr '\n' ' '
        echo
    done <lines >$name.tokens
done
check "runs of tokens" python3 - <<'E2'
import json
x = json.load(open("runs.json"))
sets = {n: [l.split() for l in open(n + ".tokens")] for n in ("copies", "real", "train")}
def longest(text):
    best = 0
    for other in sets["train"]:
        before = [0] * (len(other) + 1)
        for a in text:
            now = [0] * (len(other) + 1)
            for i, b in enumerate(other):
                now[i + 1] = before[i] + 1 if a == b else 0
            best = max(best, max(now))
            before = now
    return best
each, real = ([longest(t) for t in sets[n]] for n in ("copies", "real"))
assert x["longest_token_run"] == max(each) > 12
assert abs(x["longest_token_run_mean"] - sum(each) / len(each)) < 1e-9
assert abs(x["longest_token_run_mean_real"] - sum(real) / len(real)) < 1e-9
E2
# The perplexity of a text is that of its logits, and of exact ones but for how a run rounds.
echo '{"text": "One text of some words."}' >one.jsonl
printf 'One text of some words.' >one.txt
for type in F32 Q8_0; do
    "$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 --type $type \
        --seed 4 -o other.gguf --overwrite 2>err
    run eval one.jsonl --real one.jsonl --model other.gguf --json --isa ref; expect_rc 0
    mv out one.json
    "$dpinfer" tokenize other.gguf --bos <one.txt >tokens
    "$dpinfer" logits other.gguf --tokens tokens -o logits.f32 --overwrite --isa ref
    "$dpinfer" logits other.gguf --tokens tokens -o exact.f32 --overwrite --isa ref --exact
    check "perplexity of $type" python3 - $type <<'E2'
import json, math, struct, sys
tokens = [int(t) for t in open("tokens").read().split()]
def perplexity(path):
    data = open(path, "rb").read()
    logits = struct.unpack(f"<{len(data) // 4}f", data)
    n = len(logits) // len(tokens)
    nll = 0
    for i, t in enumerate(tokens[1:]):
        row = logits[i * n:(i + 1) * n]
        nll += math.log(sum(math.exp(v) for v in row)) - row[t]
    return math.exp(nll / (len(tokens) - 1))
found = json.load(open("one.json"))["perplexity"]
assert abs(found / perplexity("logits.f32") - 1) < 1e-6
off = abs(found / perplexity("exact.f32") - 1)
assert off < (1e-4 if sys.argv[1] == "F32" else .02), off
E2
done

# ---- Prompts ------------------------------------------------------------------------------------
# A text is its own prompt; with one prompt too few nothing is guessed.
run eval made.jsonl --real real.jsonl --model m.gguf --prompts made.jsonl --json; expect_rc 0
near coherence 1 1e-6
check "other prompts" awk -v x="$(field coherence_other)" 'BEGIN { exit !(x < .999999) }'
run eval made.jsonl --real real.jsonl --model m.gguf --prompts one.jsonl --json; expect_rc 0
check "one for all" awk -v x="$(field coherence)" 'BEGIN { exit !(x != "" && x < 1) }'
head -n 39 made.jsonl >fewer.jsonl
refuse 4 "prompts: found 39, allowed 1 or 40" eval made.jsonl --real real.jsonl --model m.gguf \
    --prompts fewer.jsonl

# ---- Who was a record ---------------------------------------------------------------------------
python3 - <<'E2'
import json, random
random.seed(8)
def text(n=10):
    return " ".join(random.choice("a b c d e f g h i j k l m n o p q r s t".split())
                    for _ in range(n))
records = [text() for _ in range(80)]
sets = {"members": records[:30], "others": records[30:], "planted": [text(5) for _ in range(12)],
        "controls": [text(5) for _ in range(25)]}
sets["written"] = [text() for _ in range(20)] + records[:12] + sets["planted"][:8]
for name, texts in sets.items():
    with open(name + ".jsonl", "w") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
E2
refuse 2 "--canaries and --controls need each other" eval made.jsonl --real real.jsonl --canaries c
for n in 1 2 3; do
    run eval written.jsonl --real others.jsonl --train members.jsonl --canaries planted.jsonl \
        --controls controls.jsonl --json --ngram $n --claimed-epsilon 2 --claimed-delta .001
    expect_rc 0
    near epsilon_claimed 2
    mv out members_$n.json
done
check "membership" python3 - <<'E2'
import json, math
from collections import Counter
def read(name):
    return [json.loads(line)["text"].split() for line in open(name + ".jsonl")]

class Model: # Witten and Bell, by dictionaries
    def __init__(self, texts, n):
        self.n, self.seen, self.after, self.types = n, Counter(), Counter(), Counter()
        for t in texts:
            words = ["<"] * n + t + [">"]
            for i in range(n, len(words)):
                for k in range(1, n + 1):
                    gram = tuple(words[i - k + 1:i + 1])
                    self.types[gram[:-1]] += self.seen[gram] == 0
                    self.seen[gram] += 1
                    self.after[gram[:-1]] += 1
    def p(self, gram):
        if not gram:
            return 1 / (self.types[()] + 1)
        if self.after[gram[:-1]] == 0:
            return self.p(gram[1:])
        return (self.seen[gram] + self.types[gram[:-1]] * self.p(gram[1:])) / (
            self.after[gram[:-1]] + self.types[gram[:-1]])
    def score(self, t):
        words = ["<"] * self.n + t + [">"]
        each = [math.log(self.p(tuple(words[i - self.n + 1:i + 1])))
                for i in range(self.n, len(words))]
        return sum(each) / len(each)

def tail(n, k, p):
    return sum(math.comb(n, i) * p ** i * (1 - p) ** (n - i) for i in range(k, n + 1))

def bisect(holds, low, high):
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low

def one_run(pairs, delta): # guesses of a tenth at each end; ties against the guess
    m, each = len(pairs), len(pairs) // 10
    v = sum(member for _, member in sorted(pairs, key=lambda x: (-x[0], x[1]))[:each])
    v += sum(not member for _, member in sorted(pairs, key=lambda x: (x[0], -x[1]))[:each])
    r = 2 * each
    def chance(epsilon):
        q = 1 / (1 + math.exp(-epsilon))
        most = max([(tail(r, v - i, q) - tail(r, v, q)) / i for i in range(1, v + 1)], default=0)
        return min(1, tail(r, v, q) + 2 * m * delta * most)
    return bisect(lambda e: chance(e) < .05, 0, 20) if chance(0) < .05 else 0

def same(x, y):
    assert abs(x - y) < 1e-9 * max(1, abs(y)), (x, y)

written, real, train = read("written"), read("others"), read("members")
planted, controls = read("planted"), read("controls")
for n in 1, 2, 3:
    found = json.load(open(f"members_{n}.json"))
    of_written, of_real = Model(written, n), Model(real, n)
    halves = [Model(real[1::2], n), Model(real[::2], n)]
    def scores(texts):
        return [of_written.score(t) - halves[i % 2].score(t) for i, t in enumerate(texts)]
    a, b = scores(train), scores(real)
    same(found["membership_auc"], sum((x > y) + (x == y) / 2 for x in a for y in b) /
         (len(a) * len(b)))
    same(found["membership_tpr_1"], sum(x > max(b) for x in a) / len(a))
    same(found["membership_epsilon_one_run"],
         one_run([(x, 1) for x in a] + [(x, 0) for x in b], .001))
    a, b = ([of_written.score(t) for t in texts] for texts in (train, real))
    same(found["membership_auc_plain"], sum((x > y) + (x == y) / 2 for x in a for y in b) /
         (len(a) * len(b)))
    a, b = ([of_written.score(t) - of_real.score(t) for t in texts]
            for texts in (planted, controls))
    ranks = [1 + sum(y >= x for y in b) for x in a]
    same(found["canary_rank_mean"], sum(ranks) / len(ranks))
    same(found["exposure_mean"], sum(math.log2(26 / r) for r in ranks) / len(ranks))
    same(found["exposure_max"], math.log2(26 / min(ranks)))
    for fpr, tpr in zip(found["canary_roc"]["fpr"], found["canary_roc"]["tpr"]):
        above = sorted(b)[max(len(b) - 1 - math.floor(fpr * len(b) + 1e-9), 0)]
        best = 1 if fpr >= 1 else sum(v > above for v in a) / len(a)
        assert abs(tpr - best) < 1e-9, (fpr, tpr, best)
    assert len(found["membership_roc"]["fpr"]) == 61 == len(found["membership_roc"]["tpr"])
    same(found["exposure_possible"], math.log2(26))
    same(found["exposure_chance"], sum(math.log2(26 / r) for r in range(1, 27)) / 26)
    low, high = found["intervals"]["canary_auc"]
    assert low <= found["canary_auc"] <= high
assert found["membership_auc"] > .6 and found["canary_auc"] > .7
E2

# ---- Form ---------------------------------------------------------------------------------------
run eval json.jsonl --real json_real.jsonl --json-schema schema.json --json; expect_rc 0
mv out form.json
run eval json.jsonl --real json_real.jsonl -o form.csv; expect_rc 0
run eval json.jsonl --real json_real.jsonl -o form.html; expect_rc 0
run eval json.jsonl --real json_real.jsonl; expect_rc 0; expect_out "texts that are JSON"
check "form" python3 - <<'E2'
import csv, json, random, statistics
found = json.load(open("form.json"))
draw = random.Random(3)
def distance(sides):
    a, b = ({v: s.count(v) / len(s) for v in set(s)} for s in sides)
    return sum(abs(a.get(v, 0) - b.get(v, 0)) for v in set(a) | set(b)) / 2
def resamples(sides): # of the objects of both sides
    return [[draw.choices(s, k=len(s)) for s in sides] for _ in range(1000)]
sets = []
for name in "json", "json_real":
    texts = [json.loads(line)["text"] for line in open(name + ".jsonl")]
    sets.append([json.loads(t) if t.endswith("}") else None for t in texts])
for key, of in ("", sets[0]), ("_real", sets[1]):
    assert abs(found["json_valid" + key] - sum(o is not None for o in of) / len(of)) < 1e-12
    assert abs(found["accepted" + key] - sum(o is not None and "age" in o for o in of) / len(of)) \
        < 1e-12
for name in "dept", "age":
    sides = [[o.get(name) for o in of if o is not None] for of in sets]
    tv = distance(sides)
    f = found["fields"][name]
    assert abs(f["tv"] - tv) < 1e-12, (name, f, tv)
    assert abs(sum(f["real"]) - f["present_real"]) < 1e-12
    away = 1.96 * statistics.stdev(map(distance, resamples(sides)))
    for end, by_hand in zip(f["tv_interval"], (max(tv - away, 0), min(tv + away, 1))):
        assert abs(end - by_hand) < .15 * away, (name, f["tv_interval"], tv, away)
names = sorted(found["fields"])
objects = [[o for o in of if o is not None] for of in sets]
def mean_distance(sides):
    return statistics.mean(distance([[o.get(n) for o in s] for s in sides]) for n in names)
tv, away = mean_distance(objects), 1.96 * statistics.stdev(map(mean_distance, resamples(objects)))
assert abs(found["field_tv_mean"] - tv) < 1e-12
low, high = found["intervals"]["field_tv_mean"]
assert abs(low - max(tv - away, 0)) < .15 * away and abs(high - tv - away) < .15 * away
rows = {r["key"]: r for r in csv.DictReader(open("form.csv"))}
age = [float(rows["field_tv:age"][k]) for k in ("value", "low", "high")]
assert age == [found["fields"]["age"]["tv"]] + found["fields"]["age"]["tv_interval"]
page = open("form.html").read()
assert "&lt;b&gt;" in page and "<b>" not in page
E2

# ---- On a terminal -------------------------------------------------------------------------------
if command -v script >/dev/null; then
    for term in xterm dumb; do
        TERM=$term script -qec "'$dpinfer' eval made.jsonl --real real.jsonl --train real.jsonl \
            --model m.gguf -o shown.txt --overwrite" /dev/null >sent </dev/null
        last="eval on a terminal, $term"
        case $term in xterm) wanted=1 ;; *) wanted=0 ;; esac # all of it is one line
        for what in lengths "who was a record" "real texts read by the model: 40 of 40" \
            "MAUVE and neighbours" '$'; do
            check "$what" test "$(grep -c $'\r\033\\[K'"$what" sent)" -eq $wanted
        done
    done
fi

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
run eval p.f32 r.f32 --features --dim 4 --json --prompts q.f32; expect_rc 0
check "cosines" python3 - <<'E2'
import json, math, struct
x, y = (struct.unpack("<800f", open(n, "rb").read()) for n in ("p.f32", "q.f32"))
rows = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 800, 4)]
def dot(a, b): return sum(s * t for s, t in zip(a, b))
expected = sum(dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) for a, b in rows) / len(rows)
assert abs(json.load(open("out"))["coherence"] - expected) < 1e-9
E2
refuse 4 "allowed a multiple of 12" eval p.f32 q.f32 --features --dim 3
finish
