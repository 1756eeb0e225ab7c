#!/usr/bin/env python3
"""What texts of private evolution are worth, on the built-in model.

    bench/augpe.py BUILD OUT.csv [--domains ticket,discharge] [--units 1000]
                   [--epsilons 1,3,10] [--texts 66] [--rounds 5] [--candidates 4]
                   [--variations another] [--lookahead 0] [--seed 7] [--threads N]

For each domain, number of records, epsilon and way to vary candidates: private documents by
dpinfer-corpus, and texts of dpinfer augpe (method "augpe"). Columns are those of bench/finetune.py,
whose functions compute them, and four more; seconds_text is the processor seconds of the run over
its texts. delta is 1 / (2 n). Rows that OUT.csv has already are not made again.
"""
import argparse
import json
import os
import tempfile

import finetune as f
from rows import Rows

FIELDS = f.FIELDS + ["rounds", "candidates", "lookahead", "variation"]
KEY = ("domain", "n", "seed", "epsilon", "texts", "rounds", "candidates", "lookahead", "variation")


def write_texts(o, model, domain, records, epsilon, variation):
    """Texts, and seconds of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = f.write_lines(f"{folder}/records.jsonl", ({"text": t} for t in records))
        begin = f.processor_seconds()
        found = f.run([f"{o.build}/dpinfer", "augpe", model, path, "--describe",
                       f.DESCRIPTIONS[domain], "--epsilon", epsilon, "--delta",
                       1 / (2 * len(records)), "--num", o.texts, "--rounds", o.rounds,
                       "--candidates", o.candidates, "--lookahead", o.lookahead, "--variation",
                       variation, "-n", 264, "--temp", 1, "--jsonl", "-q", "-t", o.threads])
    texts = [json.loads(line)["text"] for line in found.splitlines()]
    return texts, (f.processor_seconds() - begin) / len(texts)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--domains", default="ticket,discharge")
    p.add_argument("--units", default="1000")
    p.add_argument("--epsilons", default="1,3,10")
    p.add_argument("--texts", type=int, default=66)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--candidates", type=int, default=4)
    p.add_argument("--lookahead", type=int, default=0)
    p.add_argument("--variations", default="another")
    p.add_argument("--seed", type=int, default=7, help="of the records that are made up")
    p.add_argument("--threads", type=int, default=os.cpu_count())
    o = p.parse_args()
    model = f"{os.path.dirname(os.path.abspath(__file__))}/../models/dpinfer-4m-q8_0.gguf"
    with Rows(o.out, FIELDS, KEY) as out:
        for domain in o.domains.split(","):
            law = f.shares(f.read(o.build, f.make(o.build, domain, 5000, 99)), domain)
            for n in map(int, o.units.split(",")):
                records = f.make(o.build, domain, n, o.seed)
                for epsilon in map(float, o.epsilons.split(",")):
                    for variation in o.variations.split(","):
                        own = {"rounds": o.rounds, "candidates": o.candidates,
                               "lookahead": o.lookahead, "variation": variation}
                        if out.has(domain=domain, n=n, seed=o.seed, epsilon=epsilon, texts=o.texts,
                                   **own):
                            continue
                        texts, each = write_texts(o, model, domain, records, epsilon, variation)
                        out.add({**f.row_of(o, "augpe", domain, n, epsilon, texts, law, records,
                                            each=each), **own})


if __name__ == "__main__":
    main()
