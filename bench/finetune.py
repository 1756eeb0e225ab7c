#!/usr/bin/env python3
"""What texts of a privately trained adapter are worth, on the built-in model.

    bench/finetune.py BUILD OUT.csv [--domains ticket,discharge] [--units 250,1000,5000]
                      [--epsilons 1,3,8,inf] [--texts 200] [--steps 60] [--threads N]

For each domain, number of records and epsilon: private documents by dpinfer-corpus, an adapter by
dpinfer finetune, texts by dpinfer generate. A row has the mean total variation over attributes
between the texts and the private law, the share of texts without a slip, the share that shares
half of its words' triples with a record (near copy), seconds of training, and of a text. Rows
"documents" (as many fresh documents of the law) and "base" (the model without an adapter) are what
to compare with. delta is 1 / (2 n). Rows that OUT.csv has already are not made again.
"""
import argparse
import csv
import json
import math
import os
import re
import subprocess
import tempfile
import time

INSTRUCTIONS = {
    "ticket": "Write a support ticket.",
    "discharge": "Write hospital discharge instructions.",
    "review": "Write a review of a restaurant or a service.",
    "court": "Write the procedure of a court case.",
}
FIELDS = ["domain", "n", "epsilon", "delta", "steps", "expected", "texts", "tv", "tv_records",
          "well_formed", "near_copies", "seconds_training", "seconds_text"]


def run(words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def read(build, texts):
    """What the grammar reads from texts: a dictionary for each."""
    lines = "".join(json.dumps({"text": t}) + "\n" for t in texts)
    out = run([f"{build}/dpinfer-corpus", "read"], input=lines)
    return [json.loads(line) for line in out.splitlines()]


def make(build, domain, n, seed, law="private"):
    out = run([f"{build}/dpinfer-corpus", "make", "--domain", domain, "--law", law, "-n", n,
               "--seed", seed])
    return [json.loads(line)["text"] for line in out.splitlines()]


def shares(readings, domain):
    """Of each attribute, the share of each value; texts that do not say it count as a value."""
    names = sorted({a for r in readings for a in r.get("attributes", {})})
    table = {}
    for name in names:
        counts = {}
        for r in readings:
            value = r["attributes"].get(name) if r.get("domain") == domain else None
            counts[value] = counts.get(value, 0) + 1
        table[name] = {v: c / len(readings) for v, c in counts.items()}
    return table


def distance(a, b):
    """Mean total variation over the attributes of b."""
    each = [sum(abs(a.get(name, {None: 1}).get(v, 0) - b[name].get(v, 0))
                for v in set(a.get(name, {None: 1})) | set(b[name])) / 2 for name in b]
    return sum(each) / len(each)


def triples(text):
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[i:i + 3]) for i in range(len(words) - 2)}


def near_copies(texts, records):
    """The rule of eval/utility_stats.c: half of the fewer triples are shared with one record."""
    index = {}
    sizes = []
    for i, record in enumerate(records):
        grams = triples(record)
        sizes.append(len(grams))
        for g in grams:
            index.setdefault(g, []).append(i)
    found = 0
    for text in texts:
        grams = triples(text)
        shared = {}
        for g in grams:
            for i in index.get(g, ()):
                shared[i] = shared.get(i, 0) + 1
        found += any(2 * s >= min(len(grams), sizes[i]) for i, s in shared.items())
    return found / max(1, len(texts))


def train_and_draw(o, model, domain, records, epsilon, expected, folder):
    """Texts of an adapter, seconds of training, seconds of a text."""
    path, adapter = f"{folder}/records.jsonl", f"{folder}/adapter.gguf"
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps({"text": t}) + "\n" for t in records)
    budget = ["--no-noise"] if math.isinf(epsilon) else ["--epsilon", epsilon]
    begin = time.monotonic()
    run([f"{o.build}/dpinfer", "finetune", model, path, "--units", len(records), *budget,
         "--delta", 1 / (2 * len(records)), "--steps", o.steps, "--expected", expected,
         "--positions", 288, "--lr", o.lr, "--instruction", INSTRUCTIONS[domain], "-o", adapter,
         "--overwrite", "-q", "-t", o.threads])
    trained = time.monotonic()
    out = run([f"{o.build}/dpinfer", "generate", model, "--lora", adapter, "--num", o.texts,
               "-n", 264, "--temp", 1, "--top-p", .8, "--jsonl", "-t", o.threads])
    end = time.monotonic()
    return ([json.loads(line)["text"] for line in out.splitlines()], trained - begin,
            (end - trained) / o.texts)


def base_texts(o, model, domain):
    out = run([f"{o.build}/dpinfer", "run", model, "--plain", "--public-prompt",
               INSTRUCTIONS[domain], "--num", o.texts, "-n", 264, "--temp", 1, "--top-p", .8,
               "--jsonl", "-q", "-t", o.threads])
    return [json.loads(line)["text"] for line in out.splitlines()]


def row_of(o, domain, n, epsilon, texts, law, records, expected="", training="", each=""):
    readings = read(o.build, texts)
    private = isinstance(epsilon, float) and not math.isinf(epsilon)
    return {
        "domain": domain, "n": n, "epsilon": epsilon, "delta": 1 / (2 * n) if private else "",
        "steps": o.steps if expected else "", "expected": expected, "texts": len(texts),
        "tv": round(distance(shares(readings, domain), law), 4),
        "tv_records": round(distance(shares(readings, domain),
                                     shares(read(o.build, records), domain)), 4),
        "well_formed": round(sum(r["well_formed"] for r in readings) / len(readings), 4),
        "near_copies": round(near_copies(texts, records), 4),
        "seconds_training": round(training, 1) if training else "",
        "seconds_text": round(each, 3) if each else "",
    }


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--domains", default="ticket,discharge")
    p.add_argument("--units", default="250,1000,5000")
    p.add_argument("--epsilons", default="1,3,8,inf")
    p.add_argument("--texts", type=int, default=200)
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--share", type=float, default=.1, help="of the units in a step, expected")
    p.add_argument("--most", type=int, default=256, help="units of a step, at most")
    p.add_argument("--lr", type=float, default=.002)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    o = p.parse_args()
    model = f"{os.path.dirname(os.path.abspath(__file__))}/../models/dpinfer-4m-q8_0.gguf"
    done = []
    if os.path.exists(o.out):
        with open(o.out, newline="", encoding="utf-8") as f:
            done = [(r["domain"], r["n"], r["epsilon"]) for r in csv.DictReader(f)]
    with open(o.out, "a", newline="", encoding="utf-8") as f:
        out = csv.DictWriter(f, FIELDS, lineterminator="\n")
        if not done:
            out.writeheader()

        def add(row):
            out.writerow(row)
            f.flush()
            print(row, flush=True)

        for domain in o.domains.split(","):
            law = shares(read(o.build, make(o.build, domain, 5000, 99)), domain)
            for n in map(int, o.units.split(",")):
                records = make(o.build, domain, n, 7)
                expected = min(o.most, max(1, round(o.share * n)))
                for name in ("documents", "base"):
                    if (domain, str(n), name) not in done:
                        texts = (make(o.build, domain, o.texts, 55) if name == "documents"
                                 else base_texts(o, model, domain))
                        add(row_of(o, domain, n, name, texts, law, records))
                for epsilon in map(float, o.epsilons.split(",")):
                    if (domain, str(n), str(epsilon)) in done:
                        continue
                    with tempfile.TemporaryDirectory() as folder:
                        texts, training, each = train_and_draw(o, model, domain, records, epsilon,
                                                               expected, folder)
                    add(row_of(o, domain, n, epsilon, texts, law, records, expected, training,
                               each))


if __name__ == "__main__":
    main()
