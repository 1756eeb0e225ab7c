#!/usr/bin/env bash
# The command `eval`: eval.sh path/to/dpinfer
# shellcheck disable=SC2086 # options are words
. "$(dirname "$0")/cli_support.sh"
small_model
python3 "$here/eval_texts.py"
{ head -n 10 train.jsonl; head -n 30 made.jsonl; } >copies.jsonl
head -n 39 made.jsonl >fewer.jsonl
: >empty.jsonl
both="made.jsonl --real real.jsonl"

# ---- The command line ---------------------------------------------------------------------------
refuse_each 2 eval <<'END'
                                       | no SYNTHETIC texts given
made.jsonl                             | no --real texts given
made.jsonl real.jsonl --real real.jsonl | unexpected argument 'real.jsonl'
$both --dim 3                          | --dim is allowed only with --features
a b --features                         | --features needs --dim
a --features --dim 2                   | found 1 files, allowed two
a b --features --dim 2 --real c        | allowed without --real
a b --features --dim 2 --grammar nothing | allowed without --grammar
a b --features --dim 2 --control c     | allowed without --control
$both --dp-epsilon 1 --control c       | allowed without --control
$both --control c.jsonl -o ./c.jsonl --overwrite | is an input
$both --dp-epsilon 1 --claimed-epsilon 2 | allowed without --claimed-epsilon
$both --prompts made.jsonl             | --prompts needs --model
$both --grammar g --json-schema s      | allowed is one of them
$both -o ./real.jsonl --overwrite      | is an input
$both --canaries c                     | --canaries and --controls need each other
made.jsonl --real made.jsonl --domain ticker | found 'ticker', allowed discharge|review
END
refuse_each 4 eval <<'END'
nothing.jsonl --real real.jsonl        | No such file
made.jsonl --real empty.jsonl          | real texts: found no text, allowed 1 or more
$both --model m.gguf --prompts fewer.jsonl | prompts: found 39, allowed 1 or 40
END
refuse 3 "No such file" eval $both --model nothing.gguf
works eval $both -o first.csv
check "a private report that others may read" [ "$(stat -c %a first.csv)" = 600 ]
check "a public one" [ "$(umask 022
    "$dpinfer" eval $both --real-is-public -o first.htm
    stat -c %a first.htm)" = 644 ]
expect_line first.htm '<!DOCTYPE html>'
for name in x.md x.HTML ./x.pdf x.json.gz; do
    refuse 2 "-o: found '$name', allowed is a name that ends in .txt, .json, .csv, .html or .htm" \
        eval $both -o $name
done
for name in x.txt ./x; do works eval $both -o $name; expect_line $name '^length$'; done
check "a CSV that does not say that it is private" [ "$(sed -n 2p first.csv)" = "private,1,," ]
# Made-up documents by their attributes: against a count of what dpinfer-corpus reads.
corpus=${dpinfer%/mutants/*}/dpinfer-corpus # a mutant has none of its own
[ -x "$corpus" ] || corpus=${dpinfer%/*}/dpinfer-corpus
"$corpus" make --domain ticket -n 30 --seed 3 >one.jsonl
"$corpus" make --domain ticket --law private -n 40 --seed 4 >other.jsonl
for name in one other; do "$corpus" read <$name.jsonl >$name.read; done
works eval one.jsonl --real other.jsonl --domain ticket --json
python_check "attributes" <<'P'
found, a, b = load("out"), objects("one.read"), objects("other.read")
def values(rows, name):
    return [r["attributes"].get(name) if r["domain"] == "ticket" else None for r in rows]
each = sorted(distance(values(a, n), values(b, n))
              for n in {n for r in a + b for n in r["attributes"]})
same(found["attribute_tv_mean"], sum(each) / len(each))
got = sorted(found[f"attribute_tv_{i + 1}"] for i in range(len(each)))
assert max(abs(p - q) for p, q in zip(got, each)) < 1e-9
assert found["well_formed"] == sum(r["well_formed"] for r in a) / len(a) > .9
low, high = found["intervals"]["attribute_tv_mean"]
assert 0 < low < high < 1
P
# A text that is empty is of no form; lists are JSON too.
printf '%s\n' '{"text": "[1, 2]"}' '{"text": ""}' '{"text": "x"}' '{"text": "[]"}' >lists.jsonl
works eval lists.jsonl --real lists.jsonl --json; expect_out '"json_valid": 0.5'

# ---- Texts --------------------------------------------------------------------------------------
trained="--train train.jsonl --label-field dept"
works eval $both $trained; expect_out "PRIVATE: computed from real texts"
works eval $both --real-is-public; expect_count 0 PRIVATE out
works eval copies.jsonl --real real.jsonl $trained --json
near exact_copies 10 1e-9; near n_train 40 1e-9; near n_labels 2 1e-9
python_check "copies" <<'P'
x = load("out")
assert x["private"] is True and "mauve" not in x
assert x["accuracy"] > .95 and x["accuracy_train"] > .95 and abs(x["accuracy_majority"] - .5) < 1e-9
assert x["near_copies"] >= .25 and x["longest_run"] == 12
low, high = x["intervals"]["near_copies"]
assert low < x["near_copies"] < high
P
# Noise on a classifier, with a seed: nearly none, and so much that it guesses.
works eval $both $trained --json --claimed-epsilon 100
holds "little noise" "$(field accuracy_logistic) > .95 && \
    $(field accuracy_perturbed) <= $(field accuracy_logistic)"
works eval $both $trained --json --claimed-epsilon .01
holds "chance" "$(field accuracy_perturbed) > .2 && $(field accuracy_perturbed) < .8"

# What run writes, as it stands; words for a form of the real texts do not hold for it.
for form in csv jsonl; do
    works run m.gguf train.jsonl --label-field dept --public-prompt 'On {label}:' --rho 1 -B 5 \
        -n 8 --seed 3 -o run.$form
    works eval run.$form --real real.jsonl --label-field dept --json; near n_labels 2
    cp out $form.json
done
check "the same of both forms" cmp -s csv.json jsonl.json
sed 's/"text"/"body"/; s/"dept"/"label"/' real.jsonl >body.jsonl
works eval run.csv --real body.jsonl --label-field label --text-field body --delimiter ';' --json
near n_labels 2; near n_synthetic 8
# A label that is nowhere, and one that all texts have.
refuse 4 "made.jsonl: no text has a label: found neither 'ward' nor 'text_label'" \
    eval $both --label-field ward
refuse 4 "--label-field: found 'label', which no text of --real has" \
    eval run.csv --real real.jsonl --label-field label
grep heart made.jsonl >heart.jsonl
works eval heart.jsonl --real real.jsonl --label-field dept --json; near n_labels 1
check "a classifier of one label" test -z "$(field accuracy)"
# Labels of which the real texts have none, or one: accuracy 0 is said to come from that.
sed 's/"heart"/"Heart"/' made.jsonl >half.jsonl; sed 's/"skin"/"Skin"/' half.jsonl >neither.jsonl
works eval half.jsonl --real real.jsonl --label-field dept --json; near n_labels_shared 1
expect_no_err "no real text has a label"
works eval neither.jsonl --real real.jsonl --label-field dept --json
holds "none shared" "$(field n_labels_shared) == 0 && $(field accuracy) == 0"
expect_err "note: no real text has a label of the synthetic texts"
# How texts begin: two preambles, three refusals; what customers cannot do is none.
python_check "openings" <<'P'
texts = ["Sure! Here is a message:\n\nHello", "**Here's another ticket:** My card",
         "Here is my card.", "I'm sorry, but I can't assist with that.", "Sure it is late",
         "As an AI language model, I", "I\u2019m unable to provide this.",
         "I can't open my account", "I'm sorry, I lost my card"]
with open("openings.jsonl", "w") as f:
    f.writelines(json.dumps({"text": t}) + "\n" for t in texts)
P
works eval openings.jsonl --real real.jsonl --json
python_check "shares of openings, and distinct words" <<'P'
x, words = load("out"), [w for t in texts_of("openings") for w in t.split()]
same(x["preambles"], 2 / 9)
same(x["refusals"], 3 / 9)
assert x["preambles_real"] == x["refusals_real"] == 0
same(x["distinct_1"], len(set(words)) / len(words))
P

# ---- A model ------------------------------------------------------------------------------------
works inspect m.gguf --json
name=$(field name | tr -d '"')
works eval $both --train train.jsonl --model m.gguf --real-is-public -o report.html
works eval $both --model m.gguf -o report.json -t 2
works eval $both --model m.gguf -o report.csv --isa ref
works eval $both --model m.gguf; expect_out "Model: $name." "MAUVE: c = 5, 25 weights, 4 clusters, "
expect_out "Too few texts for a score by itself: 40 and 40" "and use 5000."
# White space at the ends of texts is no part of what a model reads.
python_check "ends" <<'P'
with open("ends.jsonl", "w") as f:
    f.writelines(json.dumps({"text": "\n " + t + "\r\n"}) + "\n" for t in texts_of("made"))
P
works eval $both --model m.gguf --json; mv out made.json
works eval ends.jsonl --real real.jsonl --model m.gguf --json
check "white space changes what a model reads" cmp -s out made.json
python_check "three forms" "$name" <<'P'
import html.parser
x = load("report.json")
rows = {r["key"]: r for r in csv.DictReader(open("report.csv"))}
assert 0 < x["mauve"] <= 1 and len(x["mauve_seeds"]) == 5 and x["settings"]["scaling"] == 5
assert x["settings"]["n_texts_wanted"] == 5000
same(x["mauve"], sum(x["mauve_seeds"]) / 5, 1e-12)
same(x["mauve_deviation"], statistics.stdev(x["mauve_seeds"]), 1e-12)
assert [float(rows[f"mauve_seeds:{25 + i}"]["value"]) for i in range(5)] == x["mauve_seeds"]
for name, value in x["settings"].items():
    assert name == "first_seed" or float(rows[f"settings:{name}"]["value"]) == value, name
for i, c in ((i, c) for i in range(40) for c in range(2)): # the CSV is of another instruction set
    assert abs(float(rows[f"map:real:{i}:{'xy'[c]}"]["value"]) - x["map"]["real"][i][c]) < 1e-3
assert all(k.split(":")[0] in x for k in rows) and "perplexity" in rows
# What the plots show. Counts of words by hand.
sets = [[len(text.split()) for text in texts_of(name)] for name in ("made", "real")]
width = x["lengths"]["words_in_bin"]
for side, lengths in zip(("synthetic", "real"), sets):
    bins = [sum(n // width == b for n in lengths) for b in range(20)]
    assert x["lengths"][side] == bins
    assert [int(rows[f"lengths:{side}:{b * width} .. {(b + 1) * width - 1}"]["value"])
            for b in range(20)] == bins
curve = list(zip(x["mauve_curve"]["x"], x["mauve_curve"]["y"]))
assert len(curve) == 27 and sorted([curve[0], curve[-1]]) == [(0, 1), (1, 0)]
area = abs(sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in zip(curve, curve[1:])))
same(area, x["mauve_seeds"][0])
same(float(rows[f"mauve_curve:{curve[3][0]:.17g}"]["value"]), curve[3][1])
assert [len(x["map"][k]) for k in ("synthetic", "real")] == [40, 40]
assert all(len(p) == 2 for k in x["map"] for p in x["map"][k])
assert x["model"] == rows["model"]["value"] == sys.argv[1] != "", x["model"]
page = data("report.html").decode()
for axis in ("words of a text", "share of the texts",
             "of the real texts: exp(-c KL(real, mixture))",
             "synthetic: exp(-c KL(synthetic, mix))", "first principal component",
             "second principal component", "others that are taken for records",
             "records that are found"):
    assert page.count(f">{axis}</text>") == 1, axis
assert page.count("<svg") == 4 and "://" not in page and "<script" not in page
assert 0 <= x["precision"] <= 1 and 0 <= x["recall"] <= 1
# What is no mean over texts or over seeds: constants, numbers of things, different ones.
bare = {"n_synthetic", "n_real", "n_null", "n_cut", "n_clusters", "n_dimensions",
        "distinct_1", "distinct_2", "distinct_3", "distinct_4", "mauve_deviation"}
scalars = {k for k, v in x.items() if type(v) in (int, float)}
assert scalars - set(x["intervals"]) == bare, scalars - set(x["intervals"]) ^ bare
for key, (low, high) in x["intervals"].items():
    assert low - 1e-9 <= x[key] <= high + 1e-9 and low >= 0, key
assert x["intervals"]["mauve"][1] <= 1 and x["intervals"]["length_tv"][1] <= 1
class Tags(html.parser.HTMLParser):
    opened = []
    def handle_starttag(self, tag, attrs):
        self.opened += [tag] * (tag != "meta")
    def handle_startendtag(self, tag, attrs):
        pass
    def handle_endtag(self, tag):
        assert self.opened.pop() == tag, tag
parser = Tags()
parser.feed(page)
assert parser.opened == []
P
# Runs of the model's tokens, by what `tokenize` says: of all pairs of texts and places.
works eval copies.jsonl --real real.jsonl --train train.jsonl --model m.gguf --json
python_check "runs of tokens" "$dpinfer" <<'P'
x = load("out")
def tokens(name):
    said = subprocess.run([sys.argv[1], "tokenize", "m.gguf", "--nul"], capture_output=True,
                          input="\0".join(texts_of(name)).encode(), check=True).stdout
    return [line.split() for line in said.splitlines()]
sets = {n: tokens(n) for n in ("copies", "real", "train")}
assert [len(s) for s in sets.values()] == [40, 40, 40]
def longest(text):
    best = 0
    for other in sets["train"]:
        before = [0] * (len(other) + 1)
        for a in text:
            before = [0] + [before[i] + 1 if a == b else 0 for i, b in enumerate(other)]
            best = max(best, max(before))
    return best
each, real = ([longest(t) for t in sets[n]] for n in ("copies", "real"))
assert x["longest_token_run"] == max(each) > 12
same(x["longest_token_run_mean"], sum(each) / len(each))
same(x["longest_token_run_mean_real"], sum(real) / len(real))
P
# The perplexity of a text is that of its logits, and of exact ones but for how a run rounds.
echo '{"text": "One text of some words."}' >one.jsonl
printf 'One text of some words.' >one.txt
for type in F32 Q8_0; do
    "$dpinfer" make-model --layers 1 --embd 32 --ff 32 --heads 2 --vocab-size 300 --type $type \
        --seed 4 -o other.gguf --overwrite 2>err
    "$dpinfer" tokenize other.gguf --bos <one.txt >tokens
    "$dpinfer" logits other.gguf --tokens tokens -o logits.f32 --overwrite --isa ref
    "$dpinfer" logits other.gguf --tokens tokens -o exact.f32 --overwrite --isa ref --exact
    works eval one.jsonl --real one.jsonl --model other.gguf --json --isa ref
    python_check "perplexity of $type" $type <<'P'
tokens = [int(t) for t in data("tokens").split()]
def perplexity(name):
    logits, nll = floats(name), 0
    n = len(logits) // len(tokens)
    for i, t in enumerate(tokens[1:]):
        row = logits[i * n:(i + 1) * n]
        nll += math.log(sum(math.exp(v) for v in row)) - row[t]
    return math.exp(nll / (len(tokens) - 1))
found = load("out")["perplexity"]
assert abs(found / perplexity("logits.f32") - 1) < 1e-6
off = abs(found / perplexity("exact.f32") - 1)
assert off < (1e-4 if sys.argv[1] == "F32" else .02), off
P
done

# ---- A control ----------------------------------------------------------------------------------
# Texts of the same law are no better; longer ones whose words say nothing of the label are worse.
python_check "controls" <<'P'
random.seed(9)
for name in "made", "real", "train":
    with open(f"vary_{name}.jsonl", "w") as f:
        for o in objects(name + ".jsonl"):
            o["text"] += " and" * random.randrange(7)
            f.write(json.dumps(o) + "\n")
with open("dull.jsonl", "w") as f:
    for i in range(30):
        o = {"text": " ".join(random.choices(["and", "then"], k=random.randrange(14, 30))),
             "text_label": ("heart", "skin")[i % 2]}
        f.write(json.dumps(o) + "\n")
P
both="vary_made.jsonl --real vary_real.jsonl" with="--label-field dept --model m.gguf"
works eval $both --control vary_train.jsonl $with; expect_out "The budget bought nothing that shows"
works eval $both --control dull.jsonl $with -o beside.json
works eval $both --control dull.jsonl $with -o beside.csv
works eval $both --control dull.jsonl $with -o beside.html
works eval $both --control dull.jsonl $with --prompts made.jsonl; expect_out "accuracy: better"
works eval dull.jsonl --real vary_real.jsonl --control vary_made.jsonl --label-field dept
expect_out "bought nothing that shows" "they are further by"
works eval $both --control one.jsonl; expect_out "found 40, and 1 of the control, needed 10 of each"
works eval dull.jsonl --real vary_real.jsonl $with -o dull.json
head -n 6 vary_real.jsonl >few.jsonl
works eval vary_made.jsonl --real few.jsonl --control vary_train.jsonl -o paired.json
python_check "beside a control" <<'P'
x, dull = load("beside.json"), load("dull.json")
control = x["control"]
assert control["n_control"] == 30 and len(control["metrics"]) > 20
for key, m in control["metrics"].items():
    assert m["synthetic"] == x[key] and m["control"] == dull[key], key
    same(m["difference"], x[key] - dull[key])
for key, verdict in ("accuracy", 1), ("length_tv", 1):
    assert control["metrics"][key]["verdict"] == verdict, key
assert control["n_judged"] == sum("verdict" in m for m in control["metrics"].values()) == 3
same(math.erfc(control["z"] / math.sqrt(2)), .05 / 3)
assert control["verdict"].startswith("The budget bought something: ")
assert "accuracy" in control["verdict"] and "length_tv" in control["verdict"]
# The interval of a mean, and of a distance whose real side is the same in each pair, by hand.
draw = lambda name: random.choices(lengths[name], k=len(lengths[name]))
lengths = {n: [len(t.split()) for t in texts_of(n)]
           for n in ("vary_made", "vary_train", "dull", "few")}
def holds(metric, by_hand):
    low, high = metric["interval"]
    assert abs((high - low) / 2 / (1.96 * statistics.stdev(by_hand)) - 1) < .12, metric
    same((low + high) / 2, metric["difference"])
holds(control["metrics"]["words_mean"],
      [statistics.mean(draw("vary_made")) - statistics.mean(draw("dull")) for _ in range(2000)])
paired = load("paired.json")
def bins(s): return [n // paired["lengths"]["words_in_bin"] for n in s]
by_hand = []
for _ in range(2000):
    real = bins(draw("few"))
    by_hand.append(distance(bins(draw("vary_made")), real) -
                   distance(bins(draw("vary_train")), real))
holds(paired["control"]["metrics"]["length_tv"], by_hand)
low, high = control["metrics"]["accuracy"]["interval"]
assert 0 < low < control["metrics"]["accuracy"]["difference"] < high
rows = {r["key"]: r for r in csv.DictReader(open("beside.csv"))}
assert rows["control_verdict"]["value"] == control["verdict"]
for key, m in control["metrics"].items():
    assert float(rows["control:" + key]["value"]) == m["control"]
    found = [rows["difference:" + key][k] for k in ("value", "low", "high")]
    assert found == ["%.17g" % v for v in [m["difference"]] + m.get("interval", [])] + \
        [""] * (2 - len(m.get("interval", []))), key
page = data("beside.html").decode()
assert page.count(control["verdict"]) == 1 and page.count("(length_tv)</td><td>better<") == 1
# Four columns of numbers of 9rem would leave what the metric is 5 characters: a table of its own.
table = page[:page.index("(length_tv)")].rpartition("<table")[2]
assert table.startswith(' class="beside">'), table[:40]
assert "table.beside th,table.beside td{overflow-wrap:break-word}" in page
P
both="made.jsonl --real real.jsonl"

# ---- Prompts ------------------------------------------------------------------------------------
# A text is its own prompt; with one prompt too few nothing is guessed.
works eval $both --model m.gguf --prompts made.jsonl --json; near coherence 1 1e-6
holds "other prompts" "$(field coherence_other) < .999999"
works eval $both --model m.gguf --prompts one.jsonl --json
holds "one for all" "$(field coherence) < 1"

# ---- Who was a record ---------------------------------------------------------------------------
python_check "who was a record" <<'P'
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
P
for n in 1 2 3; do
    works eval written.jsonl --real others.jsonl --train members.jsonl --canaries planted.jsonl \
        --controls controls.jsonl --json --ngram $n --claimed-epsilon 2 --claimed-delta .001
    near epsilon_claimed 2
    mv out members_$n.json
done
python_check "membership" <<'P'
from collections import Counter
def read(name):
    return [text.split() for text in texts_of(name)]

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

def auc(a, b):
    return sum((x > y) + (x == y) / 2 for x in a for y in b) / (len(a) * len(b))

written, real, train = read("written"), read("others"), read("members")
planted, controls = read("planted"), read("controls")
for n in 1, 2, 3:
    found = load(f"members_{n}.json")
    of_written, of_real = Model(written, n), Model(real, n)
    halves = [Model(real[1::2], n), Model(real[::2], n)]
    def scores(texts):
        return [of_written.score(t) - halves[i % 2].score(t) for i, t in enumerate(texts)]
    a, b = scores(train), scores(real)
    same(found["membership_auc"], auc(a, b))
    same(found["membership_tpr_1"], sum(x > max(b) for x in a) / len(a))
    same(found["membership_epsilon_one_run"],
         one_run([(x, 1) for x in a] + [(x, 0) for x in b], .001))
    a, b = ([of_written.score(t) for t in texts] for texts in (train, real))
    same(found["membership_auc_plain"], auc(a, b))
    a, b = ([of_written.score(t) - of_real.score(t) for t in s] for s in (planted, controls))
    ranks = [1 + sum(y >= x for y in b) for x in a]
    same(found["canary_rank_mean"], sum(ranks) / len(ranks))
    same(found["exposure_mean"], sum(math.log2(26 / r) for r in ranks) / len(ranks))
    same(found["exposure_max"], math.log2(26 / min(ranks)))
    for fpr, tpr in zip(found["canary_roc"]["fpr"], found["canary_roc"]["tpr"]):
        above = sorted(b)[max(len(b) - 1 - math.floor(fpr * len(b) + 1e-9), 0)]
        same(tpr, 1 if fpr >= 1 else sum(v > above for v in a) / len(a))
    assert len(found["membership_roc"]["fpr"]) == 61 == len(found["membership_roc"]["tpr"])
    same(found["exposure_possible"], math.log2(26))
    same(found["exposure_chance"], sum(math.log2(26 / r) for r in range(1, 27)) / 26)
    low, high = found["intervals"]["canary_auc"]
    assert low <= found["canary_auc"] <= high
assert found["membership_auc"] > .6 and found["canary_auc"] > .7
P

# ---- Form ---------------------------------------------------------------------------------------
works eval json.jsonl --real json_real.jsonl --json-schema schema.json -o form.json
works eval json.jsonl --real json_real.jsonl -o form.csv
works eval json.jsonl --real json_real.jsonl -o form.html
works eval json.jsonl --real json_real.jsonl; expect_out "texts that are JSON"
python_check "form" <<'P'
found, draw = load("form.json"), random.Random(3)
sets = [[json.loads(t) if t.endswith("}") else None for t in texts_of(name)]
        for name in ("json", "json_real")]
objects_of = [[o for o in of if o is not None] for of in sets]
for key, of in ("", sets[0]), ("_real", sets[1]):
    same(found["json_valid" + key], sum(o is not None for o in of) / len(of), 1e-12)
    same(found["accepted" + key], sum(o is not None and "age" in o for o in of) / len(of), 1e-12)
names = sorted(found["fields"])
assert {"dept", "age"} <= set(names)
def distances(sides): # of each field
    return [distance(*([o.get(n) for o in s] for s in sides)) for n in names]
drawn = [distances([draw.choices(s, k=len(s)) for s in objects_of]) for _ in range(1000)]
def near_ends(ends, tv, resampled): # of the interval by resampling objects of both sides
    away = 1.96 * statistics.stdev(resampled)
    for end, by_hand in zip(ends, (max(tv - away, 0), min(tv + away, 1))):
        assert abs(end - by_hand) < .15 * away, (ends, tv, away)
for i, (name, tv) in enumerate(zip(names, distances(objects_of))):
    f = found["fields"][name]
    same(f["tv"], tv, 1e-12)
    same(sum(f["real"]), f["present_real"], 1e-12)
    near_ends(f["tv_interval"], tv, [d[i] for d in drawn])
mean = statistics.mean(distances(objects_of))
same(found["field_tv_mean"], mean, 1e-12)
near_ends(found["intervals"]["field_tv_mean"], mean, [statistics.mean(d) for d in drawn])
rows = {r["key"]: r for r in csv.DictReader(open("form.csv"))}
age = [float(rows["field_tv:age"][k]) for k in ("value", "low", "high")]
assert age == [found["fields"]["age"]["tv"]] + found["fields"]["age"]["tv_interval"]
page = data("form.html").decode()
assert "&lt;b&gt;" in page and "<b>" not in page
P

# ---- On a terminal -------------------------------------------------------------------------------
if command -v script >/dev/null; then
    for term in xterm dumb; do
        TERM=$term script -qec "'$dpinfer' eval $both --train real.jsonl \
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
python_check "vectors" <<'P'
random.seed(1)
for name, shift in ("p", 0), ("q", 0), ("r", 8):
    x = [random.gauss(shift * (i % 4 == 0), 1) for i in range(4 * 200)]
    open(name + ".f32", "wb").write(struct.pack("<800f", *x))
P
works eval p.f32 q.f32 --features --dim 4 --json; mauve=$(field mauve)
works eval p.f32 r.f32 --features --dim 4 --json --clusters 20; near n_clusters 20 1e-9
holds "far sets" "$mauve > .7 && $(field mauve) < .1"
works eval p.f32 r.f32 --features --dim 4 --json --prompts q.f32
python_check "cosines" <<'P'
x, y = floats("p.f32"), floats("q.f32")
def dot(a, b): return sum(s * t for s, t in zip(a, b))
rows = [(x[i:i + 4], y[i:i + 4]) for i in range(0, 800, 4)]
same(load("out")["coherence"],
     sum(dot(a, b) / math.sqrt(dot(a, a) * dot(b, b)) for a, b in rows) / len(rows))
P
refuse 4 "allowed a multiple of 12" eval p.f32 q.f32 --features --dim 3
finish
