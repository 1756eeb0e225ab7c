#!/usr/bin/env python3
"""What texts of a privately trained adapter are worth, on the built-in model.

    bench/finetune.py BUILD OUT.csv [--domains ticket,discharge] [--units 1000,5000,250]
                      [--epsilons 3,inf,8,1] [--texts 200] [--steps 20] [--rank 1]
                      [--seed 7] [--threads N]
    bench/finetune.py tables UTILITY.md OUT.csv

For each number of records, domain and epsilon: private documents by dpinfer-corpus; an adapter by
dpinfer finetune and its texts by dpinfer generate (method "finetune"); and texts of dpinfer run
with its pace, of the same records at the same epsilon and delta, a text of each 31 records
("invisibleink"). A row has the mean total variation over attributes between the texts and the
private law, with a bootstrap over the texts; the share of texts without a slip; the share that
shares half of its words' triples with a record (near copy); the accuracy on 1000 held-out documents
of a classifier of one attribute that is trained on the texts, whose labels the grammar reads from
them, and of one trained on the records; processor seconds of training, and of a text. Rows
"documents" (as many fresh documents of the law; "documents-few": as many as invisibleink writes)
and "base" (the model without an adapter) are what to compare with. delta is 1 / (2 n). Rows that
OUT.csv has already are not made again.

tables: the part of UTILITY.md between the marks of this name.
"""
import argparse
import json
import math
import os
import random
import resource
import subprocess
import sys
import tempfile

from rows import Rows, put_part, read_rows # of this folder

INSTRUCTIONS = {
    "ticket": "Write a support ticket.",
    "discharge": "Write hospital discharge instructions.",
    "review": "Write a review of a restaurant or a service.",
    "court": "Write the procedure of a court case.",
}
DESCRIPTIONS = {
    "ticket": "support ticket", "discharge": "hospital discharge instructions",
    "review": "review of a restaurant or a service", "court": "procedure of a court case",
}
TITLES = {"ticket": "Support tickets",
          "discharge": "Discharge instructions, of which the classifier says the diagnosis"}
# What the classifier tells apart: of the private law's values most are rare in public documents.
CLASSES = {"ticket": "prod", "discharge": "dx", "review": "prod", "court": "prod"}
FIELDS = ["method", "domain", "n", "seed", "epsilon", "delta", "steps", "expected", "rank", "texts",
          "tv", "tv_95", "tv_records", "well_formed", "near_copies", "accuracy",
          "accuracy_95", "accuracy_records", "seconds_training", "seconds_text"]
KEY = ("method", "domain", "n", "seed", "epsilon", "rank")
N_HELD_OUT = 1000
SLOTS = 31 # of a text of InvisibleInk


def run(words, **options):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return done.stdout


def processor_seconds():
    """Of the programs that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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


def half_width(readings, domain, law):
    """Half of the 95 % interval of the distance, from 200 bootstrap samples of the texts."""
    draw = random.Random(1)
    found = sorted(distance(shares(draw.choices(readings, k=len(readings)), domain), law)
                   for _ in range(200))
    return (found[194] - found[4]) / 2


def write_lines(path, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
    return path


def labelled(texts, readings, domain):
    """Rows of texts with the value of the domain's class, where they have one."""
    name = CLASSES[domain]
    return [{"text": t, "label": r["attributes"][name]}
            if r.get("domain") == domain and name in r["attributes"] else {"text": t}
            for t, r in zip(texts, readings)]


def evaluate(o, texts, readings, domain, records):
    """Share of near copies of records; accuracy of a classifier that learns from the texts, half of
    its interval, and that of one that learns from the records, on documents that are neither."""
    held_out = make(o.build, domain, N_HELD_OUT, 1234)
    with tempfile.TemporaryDirectory() as folder:
        rows = {"texts": labelled(texts, readings, domain),
                "real": labelled(held_out, read(o.build, held_out), domain),
                "train": labelled(records, read(o.build, records), domain)}
        paths = [write_lines(f"{folder}/{name}.jsonl", of) for name, of in rows.items()]
        out = json.loads(run([f"{o.build}/dpinfer", "eval", paths[0], "--real", paths[1], "--train",
                              paths[2], "--label-field", "label", "--json", "-t", o.threads]))
    if "accuracy" not in out: # too few labels
        return out["near_copies"], "", "", ""
    low, high = out["intervals"]["accuracy"]
    return tuple(round(x, 4) for x in (out["near_copies"], out["accuracy"], (high - low) / 2,
                                       out["accuracy_train"]))


def train_and_draw(o, model, domain, records, epsilon, expected, folder):
    """Texts of an adapter, processor seconds of training, and of a text."""
    path = write_lines(f"{folder}/records.jsonl", ({"text": t} for t in records))
    adapter = f"{folder}/adapter.gguf"
    begin = processor_seconds()
    run([f"{o.build}/dpinfer", "finetune", model, path, "--units", len(records), "--epsilon",
         epsilon,
         "--delta", 1 / (2 * len(records)), "--steps", o.steps, "--expected", expected,
         "--positions", 288, "--lr", o.lr, "--rank", o.rank, "--warmup", 2,
         "--instruction", INSTRUCTIONS[domain], "-o", adapter,
         "--overwrite", "-q", "-t", o.threads])
    trained = processor_seconds()
    out = run([f"{o.build}/dpinfer", "generate", model, "--lora", adapter, "--num", o.texts,
               "-n", 264, "--temp", 1, "--top-p", .8, "--jsonl", "-t", o.threads])
    end = processor_seconds()
    return ([json.loads(line)["text"] for line in out.splitlines()], trained - begin,
            (end - trained) / o.texts)


def base_texts(o, model, domain):
    out = run([f"{o.build}/dpinfer", "run", model, "--plain", "--public-prompt",
               INSTRUCTIONS[domain], "--num", o.texts, "-n", 264, "--temp", 1, "--top-p", .8,
               "--jsonl", "-q", "-t", o.threads])
    return [json.loads(line)["text"] for line in out.splitlines()]


def asked(description):
    """A public prompt for the built-in model, which writes a document and goes on with no list."""
    return (f"Please write a fictional document of this kind: {description}. Do not copy names, "
            "dates or other particulars. Output only the text of the new document.")


def ink_texts(o, model, domain, records, epsilon):
    """Texts of InvisibleInk with its pace, of all records: a text of each 31. Its seconds."""
    num = max(1, len(records) // SLOTS)
    with tempfile.TemporaryDirectory() as folder:
        path = write_lines(f"{folder}/records.jsonl", ({"text": t} for t in records))
        begin = processor_seconds()
        out = run([f"{o.build}/dpinfer", "run", model, path, "--public-prompt",
                   asked(DESCRIPTIONS[domain]),
                   "--epsilon", epsilon, "--delta", 1 / (2 * len(records)), "-B",
                   min(SLOTS, len(records)), "--num", num, "-n", 264, "--temp", 1, "--jsonl", "-q",
                   "-t", o.threads])
    return ([json.loads(line)["text"] for line in out.splitlines()],
            (processor_seconds() - begin) / num)


def row_of(o, method, domain, n, epsilon, texts, law, records, expected="", training="", each=""):
    readings = read(o.build, texts)
    copies, accuracy, accuracy_95, accuracy_records = evaluate(o, texts, readings, domain, records)
    private = isinstance(epsilon, float) and not math.isinf(epsilon)
    return {
        "method": method, "domain": domain, "n": n, "seed": o.seed, "epsilon": epsilon,
        "delta": 1 / (2 * n) if private else "",
        "steps": o.steps if expected else "", "expected": expected,
        "rank": o.rank if expected else "", "texts": len(texts),
        "tv": round(distance(shares(readings, domain), law), 4),
        "tv_95": round(half_width(readings, domain, law), 4),
        "tv_records": round(distance(shares(readings, domain),
                                     shares(read(o.build, records), domain)), 4),
        "well_formed": round(sum(r["well_formed"] for r in readings) / len(readings), 4),
        "near_copies": copies,
        "accuracy": accuracy, "accuracy_95": accuracy_95, "accuracy_records": accuracy_records,
        "seconds_training": round(training, 1) if training else "",
        "seconds_text": round(each, 3) if each else "",
    }


def tables(page, path):
    rows, lines = read_rows(path), []
    for domain in dict.fromkeys(r["domain"] for r in rows):
        lines += [TITLES.get(domain, domain) + ":", "",
                  "| records | method | epsilon | texts | TV to the law | without a slip, % | "
                  "near copies, % | accuracy, % | of the records |",
                  "|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
        for r in sorted((r for r in rows if r["domain"] == domain),
                        key=lambda r: (int(r["n"]), int(r["seed"]), r["method"], r["rank"],
                                       float(r["epsilon"] or 0))):
            name = r["method"] + (f", rank {r['rank']}" if r["rank"] not in ("", "1") else "")
            n = r["n"] + (f", seed {r['seed']}" if r["seed"] != "7" else "")
            percent = [f"{100 * float(r[name]):.1f}" if r[name] else ""
                       for name in ("well_formed", "near_copies", "accuracy", "accuracy_95",
                                    "accuracy_records")]
            lines.append(f"| {n} | {name} | {r['epsilon']} | {r['texts']} | "
                         f"{float(r['tv']):.3f} ± {float(r['tv_95']):.3f} | {percent[0]} | "
                         f"{percent[1]} | {percent[2]} ± {percent[3]} | {percent[4]} |")
        lines.append("")
    put_part(page, "finetune", lines)


def measure(o, out, model, domain, law, n):
    """The rows of a domain and a number of records that are not there."""
    records = make(o.build, domain, n, o.seed)
    expected = min(o.most, max(1, round(o.share * n)))
    few = max(1, n // SLOTS)

    def has(method, epsilon="", rank=""):
        return out.has(method=method, domain=domain, n=n, seed=o.seed, epsilon=epsilon, rank=rank)

    for name, count in (("documents", o.texts), ("documents-few", few), ("base", o.texts)):
        if not has(name):
            texts = (base_texts(o, model, domain) if name == "base"
                     else make(o.build, domain, count, 55))
            out.add(row_of(o, name, domain, n, "", texts, law, records))
    for epsilon in map(float, o.epsilons.split(",")):
        if not math.isinf(epsilon) and not o.no_ink and not has("invisibleink", epsilon):
            texts, each = ink_texts(o, model, domain, records, epsilon)
            out.add(row_of(o, "invisibleink", domain, n, epsilon, texts, law, records, each=each))
        if not has("finetune", epsilon, o.rank):
            with tempfile.TemporaryDirectory() as folder:
                texts, training, each = train_and_draw(o, model, domain, records, epsilon,
                                                       expected, folder)
            out.add(row_of(o, "finetune", domain, n, epsilon, texts, law, records, expected,
                           training, each))


def main():
    if sys.argv[1:2] == ["tables"] and len(sys.argv) == 4:
        tables(sys.argv[2], sys.argv[3])
        return
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--domains", default="ticket,discharge")
    p.add_argument("--units", default="1000,5000,250")
    p.add_argument("--epsilons", default="3,inf,8,1")
    p.add_argument("--texts", type=int, default=200)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--share", type=float, default=.5, help="of the units in a step, expected")
    p.add_argument("--most", type=int, default=128, help="units of a step, at most")
    p.add_argument("--rank", type=int, default=1)
    p.add_argument("--lr", type=float, default=.004)
    p.add_argument("--seed", type=int, default=7, help="of the records that are made up")
    p.add_argument("--no-ink", action="store_true", help="no texts of dpinfer run")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    o = p.parse_args()
    model = f"{os.path.dirname(os.path.abspath(__file__))}/../models/dpinfer-4m-q8_0.gguf"
    with Rows(o.out, FIELDS, KEY) as out:
        domains = o.domains.split(",")
        laws = {d: shares(read(o.build, make(o.build, d, 5000, 99)), d) for d in domains}
        for n in map(int, o.units.split(",")):
            for domain in domains:
                measure(o, out, model, domain, laws[domain], n)


if __name__ == "__main__":
    main()
