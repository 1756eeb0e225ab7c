#!/usr/bin/env python3
"""Records that are JSON: what a schema buys each method.

    bench/structured.py run BUILD OUT.csv [--records 1024] [--epsilons 1,3,10] [--seed 7]
                        [--threads 1]
    bench/structured.py tables UTILITY.md OUT.csv

run: the attributes of made-up tickets of the private law, one object of seven fields for each
record; a schema with the values that the corpus has. Each method writes texts, a text of each 31
records, with --json-schema and without. A row has the share of the texts that are JSON and that the
schema accepts, and the mean total variation of a field to as many other records of the law, with
its 95 % (dpinfer eval), and processor seconds of a text. "records" are other documents of the law;
"uniform" draws each value of the schema alike, without a model; "plain" is one record in the prompt
of each text, which says what the model makes of JSON. Rows that OUT.csv has are not made again.

tables: the part of UTILITY.md between the marks of this name.
"""
import argparse
import json
import os
import random
import sys
import tempfile

# Of this folder.
import finetune as tuning
from rows import Rows, put_part, read_rows

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = f"{HERE}/../models/dpinfer-4m-q8_0.gguf"
SLOTS, TOKENS, DELTA = 31, 160, 1e-5
DOMAIN, DESCRIPTION = "ticket", "support ticket as JSON"
METHODS = {"invisibleink-zcdp": [], "invisibleink-filter": ["--accountant", "filter"],
           "amin": ["--method", "amin"], "tang": ["--method", "tang"], "augpe": None}
TITLES = {"records": "as many of the records", "uniform": "all values alike, no model",
          "public": "public model", "plain": "plain, one reference (no privacy)",
          "invisibleink-zcdp": "InvisibleInk, zCDP, paced",
          "invisibleink-filter": "InvisibleInk, filter, paced", "amin": "Amin et al.",
          "tang": "Tang et al.", "augpe": "AugPE"}
FIELDS = ["method", "schema", "epsilon", "records", "texts", "json_valid", "accepted", "field_tv",
          "field_tv_low", "field_tv_high", "seconds_text"]


def make(o, n, seed, law="private"):
    """Records as objects."""
    out = tuning.run([f"{o.build}/dpinfer-corpus", "make", "--domain", DOMAIN, "--law", law, "-n",
                      n, "--seed", seed])
    return [json.loads(line)["attributes"] for line in out.splitlines()]


def write_records(path, rows):
    return tuning.write_lines(path, ({"text": json.dumps(r)} for r in rows))


def write_schema(o, path):
    """All values that either law gives a field: they are public, as the corpus is."""
    rows = make(o, 5000, 99) + make(o, 5000, 99, "public")
    fields = {k: {"enum": sorted({r[k] for r in rows})} for k in rows[0]}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"type": "object", "properties": fields, "required": list(fields)}, f)


def draw_uniform(o, folder):
    with open(f"{folder}/schema.json", encoding="utf-8") as f:
        fields = json.load(f)["properties"]
    own = random.Random(o.seed)
    return write_records(f"{folder}/texts.jsonl", ({k: own.choice(v["enum"]) for k, v
                                                    in fields.items()} for _ in range(n_texts(o))))


def n_texts(o):
    return max(1, o.records // SLOTS)


def draw(o, folder, method, schema, epsilon):
    """The texts' file, processor seconds of a text."""
    texts, n = f"{folder}/texts.jsonl", n_texts(o)
    common = ["-n", TOKENS, "--public-prompt", tuning.asked(DESCRIPTION), "--jsonl", "-q",
              "-t", o.threads, "-o", texts, "--overwrite"] + (["--json-schema", f"{folder}/schema.json"]
                                             if schema else [])
    budget = ["--epsilon", epsilon, "--delta", DELTA]
    begin = tuning.processor_seconds()
    if method == "public":
        tuning.run([f"{o.build}/dpinfer", "run", MODEL, "--plain", "--num", n] + common)
    elif method == "plain":
        lines = []
        for i in range(n):
            tuning.run([f"{o.build}/dpinfer", "run", MODEL, f"{folder}/records.jsonl", "--plain",
                        "--reference", i + 1, "--seed", i] + common)
            with open(texts, encoding="utf-8") as f:
                lines += [json.loads(line) for line in f]
        tuning.write_lines(texts, lines)
    elif method == "augpe":
        tuning.run([f"{o.build}/dpinfer", "augpe", MODEL, f"{folder}/records.jsonl", "--num", n]
                   + budget + common)
    else:
        tuning.run([f"{o.build}/dpinfer", "run", MODEL, f"{folder}/records.jsonl", "-B", SLOTS,
                    "--num", n] + METHODS[method] + budget + common)
    return texts, (tuning.processor_seconds() - begin) / n


def row_of(o, folder, method, schema, epsilon, texts, seconds):
    found = json.loads(tuning.run(
        [f"{o.build}/dpinfer", "eval", texts, "--real", f"{folder}/others.jsonl", "--json-schema",
         f"{folder}/schema.json", "--json", "-t", o.threads]))
    low, high = found["intervals"].get("field_tv_mean", ("", ""))
    return {"method": method, "schema": int(schema), "epsilon": epsilon, "records": o.records,
            "texts": found["n_synthetic"], "json_valid": found["json_valid"],
            "accepted": found["accepted"], "field_tv": found["field_tv_mean"], "field_tv_low": low,
            "field_tv_high": high, "seconds_text": seconds}


def settings(o):
    """Method, with a schema, epsilon."""
    yield "records", False, ""
    yield "uniform", True, ""
    yield "plain", True, ""
    for schema in True, False:
        yield "public", schema, ""
        for epsilon in o.epsilons.split(","):
            for method in METHODS:
                if schema or epsilon == o.epsilons.split(",")[-1]:
                    yield method, schema, epsilon


def measure(o):
    with Rows(o.out, FIELDS, ("method", "schema", "epsilon")) as out, \
            tempfile.TemporaryDirectory() as folder:
        write_schema(o, f"{folder}/schema.json")
        write_records(f"{folder}/records.jsonl", make(o, o.records, o.seed))
        write_records(f"{folder}/others.jsonl", make(o, o.records, o.seed + 1))
        for method, schema, epsilon in settings(o):
            if out.has(method=method, schema=int(schema), epsilon=epsilon):
                continue
            if method == "records":
                few = make(o, n_texts(o), o.seed + 2)
                texts, seconds = write_records(f"{folder}/few.jsonl", few), ""
            elif method == "uniform":
                texts, seconds = draw_uniform(o, folder), ""
            else:
                texts, seconds = draw(o, folder, method, schema, epsilon)
            row = row_of(o, folder, method, schema, epsilon, texts, seconds)
            out.add({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def tables(page, path):
    lines = ["| method | schema | epsilon | texts | JSON, % | of the schema, % | TV of a field | "
             "s a text |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for r in sorted(read_rows(path), key=lambda r: (-int(r["schema"]),
                                                    list(TITLES).index(r["method"]),
                                                    float(r["epsilon"] or 0))):
        half = "" if not r["field_tv_low"] else \
            f" ± {(float(r['field_tv_high']) - float(r['field_tv_low'])) / 2:.3f}"
        seconds = f"{float(r['seconds_text']):.2f}" if r["seconds_text"] else ""
        lines.append(
            f"| {TITLES[r['method']]} | {'yes' if r['schema'] == '1' else ''} | {r['epsilon']} | "
            f"{r['texts']} | {100 * float(r['json_valid']):.0f} | "
            f"{100 * float(r['accepted']):.0f} | {float(r['field_tv']):.3f}{half} | {seconds} |")
    put_part(page, "structured", lines + [""])


def main():
    if sys.argv[1:2] == ["tables"] and len(sys.argv) == 4:
        tables(sys.argv[2], sys.argv[3])
        return
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("command", choices=["run"])
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--records", type=int, default=1024)
    p.add_argument("--epsilons", default="1,3,10")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--threads", type=int, default=1)
    measure(p.parse_args())


if __name__ == "__main__":
    main()
