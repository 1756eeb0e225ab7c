#!/usr/bin/env python3
"""How fast `dpinfer generate` writes, beside plain steps of as many sequences.

    bench/generate.py BUILD MODEL [--parallel 32] [--tokens 128] [--rank 1] [--threads N]

An adapter is trained for one step (which is not timed). The rate of generate is that of the tokens
that a long run has more than a short one, so that opening the model does not count; that of bench
is of plain steps without an adapter, with the same number of sequences and positions. On an idle
machine the first one should not be below .9 of the second.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time


def run(words):
    begin = time.monotonic()
    out = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True)
    return out.stdout, time.monotonic() - begin


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("build")
    p.add_argument("model")
    p.add_argument("--parallel", type=int, default=32)
    p.add_argument("--tokens", type=int, default=128)
    p.add_argument("--rank", type=int, default=1)
    p.add_argument("--threads", type=int, default=os.cpu_count())
    o = p.parse_args()
    program = f"{o.build}/dpinfer"
    with tempfile.TemporaryDirectory() as folder:
        records, adapter = f"{folder}/records.jsonl", f"{folder}/adapter.gguf"
        with open(records, "w", encoding="utf-8") as f:
            f.write('{"text": "one record"}\n')
        run([program, "finetune", o.model, records, "--units", 1, "--delta", .5, "--epsilon", "inf",
             "--steps", 1, "--expected", 1, "--positions", 64, "--rank", o.rank, "-q", "-t",
             o.threads, "--instruction", "Write a text:", "-o", adapter])

        def rate(n):
            out, seconds = run([program, "generate", o.model, "--lora", adapter, "--num",
                                o.parallel, "--parallel", o.parallel, "-n", n, "--jsonl", "-t",
                                o.threads])
            return sum(json.loads(line)["n_tokens"] for line in out.splitlines()), seconds

        rate(8) # the file is read once
        (few, short), (many, long) = rate(8), rate(o.tokens)
    out, _ = run([program, "bench", o.model, "--method", "plain", "-B", 1, "--texts", o.parallel,
                  "-p", 32, "-n", o.tokens, "-t", o.threads, "-r", 3, "-o", "jsonl"])
    rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    plain = next(r for r in rows if r.get("method") == "plain")
    found, wanted = (many - few) / (long - short), plain["out_t/s"]
    print(f"| {os.path.basename(o.model)} | {o.parallel} | {found:.0f} | {wanted:.0f} | "
          f"{found / wanted:.2f} |")


if __name__ == "__main__":
    main()
