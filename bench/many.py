#!/usr/bin/env python3
"""How many texts: the methods of bench/frontier.py for 100, 1,000 and 10,000 texts of one budget.

    bench/many.py run BUILD OUT.csv [--domains ticket] [--methods public,steer,...]
                  [--epsilons 1,3,10] [--counts 100,1000,10000] [--threads 1]
    bench/many.py tables UTILITY.md CSV...

The records are those of frontier.py. InvisibleInk writes each text from records of its own, so that
more texts have fewer each, and no more texts than records can be. What is released once (steering
vectors, an adapter) writes any number: the texts of a row are the first ones of those of the last.
Private evolution has a population as large as its texts: at most 1,000 here.

A row has the distance of the texts to the law, and the share without a slip. Seconds are those of
the processor: what comes before the first text, and each text. Rows that OUT.csv has are not made
again. tables: the part of UTILITY.md between the marks `many`."""
import argparse
import random
import sys
import tempfile

# Of this folder.
import finetune as tuning
import frontier
from rows import Rows, put_part, read_rows

METHODS = ["public", "invisibleink-zcdp", "invisibleink-secret", "augpe", "finetune", "steer"]
TITLES = {**frontier.TITLES, "steer": "steering vectors, 6 times as strong"}
STRENGTH = 6
AUGPE_MOST = 1000
FIELDS = ["method", "domain", "records", "epsilon", "delta", "texts", "seed", "tv", "tv_95",
          "well_formed", "seconds_once", "seconds_text"]


def steer_and_draw(o, domain, records, epsilon, folder):
    """Texts, processor seconds before them, and of each."""
    path = tuning.write_lines(f"{folder}/records.jsonl", ({"text": t} for t in records))
    begin = tuning.processor_seconds()
    tuning.run([f"{o.build}/dpinfer", "steer", frontier.MODEL, path, "--epsilon", epsilon,
                "--delta", 1 / (2 * len(records)), "--positions", 288, "--instruction",
                tuning.INSTRUCTIONS[domain], "-o", f"{folder}/steer.gguf", "--overwrite", "-q",
                "-t", o.threads])
    steered = tuning.processor_seconds()
    out = tuning.run([f"{o.build}/dpinfer", "generate", frontier.MODEL, "--steer",
                      f"{folder}/steer.gguf", "--control-vector-scale", STRENGTH, "--num", o.texts,
                      "-n", frontier.TOKENS, "--temp", 1, "--top-p", .8, "--jsonl", "-t",
                      o.threads])
    return (frontier.texts_of(out), steered - begin,
            (tuning.processor_seconds() - steered) / o.texts)


def ink_texts(o, method, domain, records, epsilon, folder):
    """Each text has as many records, and no more than frontier.py gives it."""
    n = len(records)
    path = tuning.write_lines(f"{folder}/records.jsonl", ({"text": t} for t in records))
    more = ["--adjacency", "add-remove"] if method == "invisibleink-secret" else []
    begin = tuning.processor_seconds()
    out = tuning.run(frontier.run_words(o, domain, path, epsilon, n, more,
                                        min(frontier.SLOTS, n // o.texts), o.texts))
    return frontier.texts_of(out), 0, (tuning.processor_seconds() - begin) / o.texts


def write_texts(o, method, domain, records, epsilon, folder):
    if method == "steer":
        return steer_and_draw(o, domain, records, epsilon, folder)
    if method == "finetune":
        expected = min(o.most, max(1, round(o.share * len(records))))
        return tuning.train_and_draw(o, frontier.MODEL, domain, records, epsilon, expected, folder)
    if method in ("public", "augpe"):
        texts, _, each = frontier.write_texts(o, method, domain, records, epsilon, folder)
        return texts, 0, each
    return ink_texts(o, method, domain, records, epsilon, folder)


def counts_of(o, method, n):
    """Of each call of write_texts: how many texts it writes, and the rows that it makes."""
    counts = [int(c) for c in o.counts.split(",")]
    if method.startswith("invisibleink"):
        return [(c, [c]) for c in counts if c <= n]
    counts = [c for c in counts if method != "augpe" or c <= AUGPE_MOST]
    return [(max(counts), counts)] if counts else []


def measure(o):
    with Rows(o.out, FIELDS, ("method", "domain", "epsilon", "seed", "texts")) as out:
        for domain in o.domains.split(","):
            law = tuning.shares(tuning.read(o.build, tuning.make(o.build, domain, 5000, 99)),
                                domain)
            members, _, planted, _ = frontier.make_records(o, domain)
            records = members + planted
            random.Random(o.seed).shuffle(records)
            for method in o.methods.split(","):
                epsilons = [""] if method == "public" else o.epsilons.split(",")
                for epsilon in epsilons:
                    measure_one(o, out, method, domain, records, epsilon, law)


def measure_one(o, out, method, domain, records, epsilon, law):
    for n_texts, counts in counts_of(o, method, len(records)):
        key = {"method": method, "domain": domain, "epsilon": epsilon, "seed": o.seed}
        counts = [c for c in counts if not out.has(**key, texts=c)]
        if not counts:
            continue
        one = argparse.Namespace(**vars(o))
        one.texts = n_texts
        with tempfile.TemporaryDirectory() as folder:
            texts, once, each = write_texts(one, method, domain, records,
                                            float(epsilon) if epsilon else None, folder)
        readings = tuning.read(o.build, texts)
        for c in counts:
            some = readings[:c]
            out.add({**key, "records": len(records), "texts": c,
                     "delta": f"{1 / (2 * len(records)):.6g}" if epsilon else "",
                     "tv": f"{tuning.distance(tuning.shares(some, domain), law):.4g}",
                     "tv_95": f"{tuning.half_width(some, domain, law):.4g}",
                     "well_formed": f"{sum(r['well_formed'] for r in some) / len(some):.4g}",
                     "seconds_once": f"{once:.4g}", "seconds_text": f"{each:.4g}"})


# ---- Tables --------------------------------------------------------------------------------------

def cell(rows, count):
    r = next((r for r in rows if int(r["texts"]) == count), None)
    if r is None:
        return ""
    return f"{float(r['tv']):.3f} ± {float(r['tv_95']):.3f}, {100 * float(r['well_formed']):.0f}"


def tables(page, paths):
    rows = [r for path in paths for r in read_rows(path)]
    counts = sorted({int(r["texts"]) for r in rows})
    lines = []
    for domain in sorted({r["domain"] for r in rows}, reverse=True):
        lines += [f"### {domain}, many texts", "",
                  "| method | epsilon | " + " | ".join(f"{c:,} texts" for c in counts) +
                  " | s before | s a text |", "|---|" + "---:|" * (len(counts) + 3)]
        for method in METHODS:
            own = [r for r in rows if (r["method"], r["domain"]) == (method, domain)]
            for epsilon in sorted({r["epsilon"] for r in own}, key=lambda e: float(e or 0)):
                of = [r for r in own if r["epsilon"] == epsilon]
                last = max(of, key=lambda r: int(r["texts"]))
                lines.append("| " + " | ".join(
                    [TITLES[method], epsilon] + [cell(of, c) for c in counts] +
                    [f"{float(last['seconds_once']):.0f}", f"{float(last['seconds_text']):.3f}"]) +
                    " |")
        lines.append("")
    put_part(page, "many", lines)


def main():
    if sys.argv[1:2] == ["tables"] and len(sys.argv) >= 4:
        tables(sys.argv[2], sys.argv[3:])
        return
    p = frontier.parser(__doc__, "ticket", METHODS, "1,3,10")
    p.add_argument("--counts", default="100,1000,10000")
    measure(p.parse_args())


if __name__ == "__main__":
    main()
