#!/usr/bin/env python3
"""All methods on one frontier: what texts are worth, and what they tell, against epsilon and time.

    bench/frontier.py run BUILD OUT.csv [--domains ticket,discharge] [--records 1024]
                      [--methods public,plain,...] [--epsilons 1,3,10,inf] [--texts N] [--threads 1]
    bench/frontier.py tables UTILITY.md CSV...

run: made-up records of a private law, twice as many as are used: a fair coin says which half is
(members) and which is not (controls), and the same of canaries, which are records with words that
no other has. Each method writes texts of the members and planted canaries, at one epsilon for all
of its texts. (Of texts of one record each, these records alone are members.) A row has the distance
of the texts to the law (by the grammar of corpus/), MAUVE, form, accuracy of a classifier, near
copies, and what an attacker finds who has the texts alone: AUC and true positives at 1 % false ones
of records and of canaries, exposure, and lower bounds of epsilon (dpinfer eval; docs/eval.md).
Seconds are those of the processor, of whole commands. epsilon inf: a budget of 1e6, or no noise.
Rows that OUT.csv has are not made again: a run that was stopped goes on. A method that the program
does not have yet is said and left out.

tables: from the rows of such CSVs one table and one plot for each domain: the part of UTILITY.md
between the frontier's marks, and frontier-all-DOMAIN.svg beside it. Runs that differ in the seed
alone, which makes the records, are one line: their mean. Methods without rows are named.
"""
import argparse
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile

# Of this folder: records, readings, distances.
import finetune as tuning
from rows import Rows, put_part, read_rows

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = f"{HERE}/../models/dpinfer-4m-q8_0.gguf"
SLOTS = 31
TOKENS = 264
WORDS = 8 # of a canary's secret
CLUSTERS = 16 # of MAUVE, whatever the number of texts
MAUVE_TEXTS = 512 # held-out ones that MAUVE compares with, at most
METHODS = ["all-records", "records", "public", "plain", "invisibleink-zcdp", "invisibleink-br",
           "invisibleink-filter", "invisibleink-unpaced", "invisibleink-secret", "amin", "tang",
           "adapmixed", "augpe", "finetune"]
WITHOUT_EPSILON = METHODS[:4]
OF_FEW = ["records", "plain"] # a text of a record each: the others were not used
TITLES = {"all-records": "all of the records", "records": "as many of the records",
          "public": "public model", "plain": "plain, one reference (no privacy)",
          "invisibleink-zcdp": "InvisibleInk, zCDP, paced",
          "invisibleink-br": "InvisibleInk, br, paced",
          "invisibleink-filter": "InvisibleInk, filter, paced",
          "invisibleink-unpaced": "InvisibleInk, zCDP, no pace",
          "invisibleink-secret": "InvisibleInk, secret batches, paced", "amin": "Amin et al.",
          "tang": "Tang et al.", "adapmixed": "AdaPMixED (no guarantee)", "augpe": "AugPE",
          "finetune": "adapter, trained privately"}
FIELDS = ["method", "domain", "records", "epsilon", "delta", "texts", "seed", "tv", "tv_95",
          "well_formed", "mauve", "mauve_sd", "accuracy", "accuracy_95", "near_copies",
          "membership_auc", "membership_auc_low", "membership_auc_high", "membership_tpr_1",
          "membership_epsilon", "membership_epsilon_one_run", "canary_auc", "canary_auc_low",
          "canary_auc_high", "canary_tpr_1", "canary_epsilon", "canary_epsilon_one_run",
          "exposure_mean", "exposure_chance", "seconds_training", "seconds_text"]


# ---- Records and canaries ------------------------------------------------------------------------

def flip(items, draw):
    """Members and controls, by a fair coin for each."""
    coins = [draw.random() < .5 for _ in items]
    return ([x for x, c in zip(items, coins) if c], [x for x, c in zip(items, coins) if not c])


def make_records(o, domain):
    """Members, controls, planted canaries, canaries that are not planted."""
    draw = random.Random(o.seed)
    pool = tuning.make(o.build, domain, 2 * o.records, o.seed)
    words = sorted({w for t in pool for w in re.findall(r"[a-z]{4,}", t)})
    members, controls = flip(pool, draw)
    secrets = [" ".join(draw.choice(words) for _ in range(WORDS)) for _ in range(2 * o.canaries)]
    bodies = tuning.make(o.build, domain, 2 * o.canaries, o.seed + 1)
    planted, others = flip([f"{b} {s}." for b, s in zip(bodies, secrets)], draw)
    return members, controls, planted, others


# ---- Methods -------------------------------------------------------------------------------------

def texts_of(out):
    return [json.loads(line)["text"] for line in out.splitlines()]


def run_words(o, domain, path, epsilon, n, extra, slots=SLOTS, num=None):
    """dpinfer run over all records, a text of each `slots` of them."""
    budget = 1e6 if math.isinf(epsilon) else epsilon
    return [f"{o.build}/dpinfer", "run", MODEL, path, "--public-prompt",
            tuning.asked(tuning.DESCRIPTIONS[domain]),
            "--epsilon", budget, "--delta", 1 / (2 * n), "-B", slots,
            "--num", num or max(1, n // slots), "-n", TOKENS, "--jsonl", "-q",
            "-t", o.threads] + extra


def write_texts(o, method, domain, records, epsilon, folder):
    """Texts, processor seconds of training ('' without), and of a text."""
    n = len(records)
    path = tuning.write_lines(f"{folder}/records.jsonl", [{"text": t} for t in records])
    begin = tuning.processor_seconds()
    if method == "finetune":
        expected = min(o.most, max(1, round(o.share * n)))
        return tuning.train_and_draw(o, MODEL, domain, records, epsilon, expected, folder)
    if method.endswith("records"): # what is best, and what attacks find where all is there
        return records, "", ""
    if method == "public":
        texts = tuning.base_texts(o, MODEL, domain)
    elif method == "plain":
        texts = []
        for i in range(n):
            texts += texts_of(tuning.run(
                [f"{o.build}/dpinfer", "run", MODEL, path, "--public-prompt",
                 tuning.asked(tuning.DESCRIPTIONS[domain]), "--plain", "--reference", i + 1, "-n", TOKENS,
                 "--seed", i, "--jsonl", "-q", "-t", o.threads]))
    elif method == "augpe":
        texts = texts_of(tuning.run(
            [f"{o.build}/dpinfer", "augpe", MODEL, path, "--describe", tuning.DESCRIPTIONS[domain],
             "--epsilon", 1e6 if math.isinf(epsilon) else epsilon, "--delta", 1 / (2 * n), "--num",
             o.texts, "-n", TOKENS, "--jsonl", "-q", "-t", o.threads]))
    else:
        extra = {"amin": ["--method", "amin"], "tang": ["--method", "tang"],
                 "adapmixed": ["--method", "adapmixed", "--i-know-this-is-not-dp"],
                 "invisibleink-unpaced": ["--pace", "none"],
                 "invisibleink-secret": ["--adjacency", "add-remove"]}.get(method)
        if extra is None:
            extra = ["--accountant", method.rsplit("-", 1)[1]]
        texts = texts_of(tuning.run(run_words(o, domain, path, epsilon, n, extra)))
    return texts, "", (tuning.processor_seconds() - begin) / max(1, len(texts))


def has_method(o, method):
    return method != "augpe" or subprocess.run([f"{o.build}/dpinfer", "augpe", "-h"],
                                               capture_output=True, check=False).returncode == 0


# ---- Rows ----------------------------------------------------------------------------------------

def labelled(o, domain, texts):
    return tuning.labelled(texts, tuning.read(o.build, texts), domain)


def compared_with(o, domain, members, controls, planted, others):
    """What eval compares texts with: rows of its files. Members and planted canaries are those that
    the texts are of."""
    return {"real": labelled(o, domain, controls), "train": labelled(o, domain, members),
            "planted": [{"text": t} for t in planted], "others": [{"text": t} for t in others]}


def evaluate(o, domain, texts, rows, epsilon, delta, folder):
    """What dpinfer eval says of the texts."""
    names = {"texts": labelled(o, domain, texts), **rows}
    paths = {k: tuning.write_lines(f"{folder}/eval-{k}.jsonl", rows) for k, rows in names.items()}
    claim = [] if epsilon is None or math.isinf(epsilon) else [
        "--claimed-epsilon", epsilon, "--claimed-delta", delta]

    def report(real, more):
        return json.loads(tuning.run(
            [f"{o.build}/dpinfer", "eval", paths["texts"], "--real", real, "--json", "-t",
             o.threads] + more))

    canaries = ["--canaries", paths["planted"], "--controls", paths["others"]]
    labels = ["--label-field", "label"] if any(r.get("label") for r in names["texts"]) else []
    found = report(paths["real"], ["--train", paths["train"]] + labels + claim
                   + (canaries if rows["planted"] else []))
    # MAUVE alone needs what the model makes of each text, which is most of the work. (It is not
    # there for few texts.)
    some = tuning.write_lines(f"{folder}/eval-some.jsonl", names["real"][:MAUVE_TEXTS])
    with_model = report(some, ["--model", MODEL, "--clusters", CLUSTERS])
    found.update({k: with_model[k] for k in ("mauve", "mauve_deviation") if k in with_model})
    return found


def row_of(o, method, domain, epsilon, texts, rows, law, training, each, folder):
    n = len(rows["train"]) + len(rows["planted"])
    delta = 1 / (2 * n)
    found = evaluate(o, domain, texts, rows, epsilon, delta, folder)
    readings = tuning.read(o.build, texts)
    row = {"method": method, "domain": domain, "records": n, "texts": len(texts), "seed": o.seed,
           "epsilon": "" if epsilon is None else epsilon,
           "delta": "" if epsilon is None or math.isinf(epsilon) else f"{delta:.6g}",
           "tv": tuning.distance(tuning.shares(readings, domain), law),
           "tv_95": tuning.half_width(readings, domain, law),
           "well_formed": sum(r["well_formed"] for r in readings) / len(readings),
           "seconds_training": training and f"{training:.1f}", "seconds_text": each}
    for key in FIELDS:
        if key in found:
            row[key] = found[key]
    intervals = found["intervals"]
    for key in ("membership_auc", "canary_auc"):
        if key in intervals:
            row[key + "_low"], row[key + "_high"] = intervals[key]
    if "accuracy" in intervals:
        row["accuracy_95"] = (intervals["accuracy"][1] - intervals["accuracy"][0]) / 2
    row["mauve_sd"] = found.get("mauve_deviation", "")
    return {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()}


def settings(o):
    """(method, domain, epsilon) in the order of what is wanted first."""
    for domain in o.domains.split(","):
        for method in o.methods.split(","):
            if method in WITHOUT_EPSILON:
                yield method, domain, None
    for epsilon in map(float, o.epsilons.split(",")):
        for domain in o.domains.split(","):
            for method in o.methods.split(","):
                if method not in WITHOUT_EPSILON:
                    yield method, domain, epsilon


def measure(o):
    laws, sets, compared = {}, {}, {}
    with Rows(o.out, FIELDS, ("method", "domain", "epsilon", "seed")) as out:
        for method, domain, epsilon in settings(o):
            key = "" if epsilon is None else f"{epsilon:.4g}"
            if out.has(method=method, domain=domain, epsilon=key, seed=o.seed):
                continue
            if not has_method(o, method):
                print(f"{method}: this program does not have it", file=sys.stderr)
                continue
            if domain not in laws:
                laws[domain] = tuning.shares(
                    tuning.read(o.build, tuning.make(o.build, domain, 5000, 99)), domain)
                sets[domain] = make_records(o, domain)
                compared[domain] = compared_with(o, domain, *sets[domain])
            members, controls, planted, others = sets[domain]
            records = members + planted
            one = argparse.Namespace(**vars(o))
            one.texts = o.texts or max(1, len(records) // SLOTS)
            random.Random(o.seed).shuffle(records)
            rows = compared[domain]
            if method in OF_FEW:
                records = records[:one.texts]
                rows = compared_with(o, domain, [t for t in records if t in members], controls,
                                     [t for t in records if t in planted], others)
            with tempfile.TemporaryDirectory() as folder:
                texts, training, each = write_texts(one, method, domain, records, epsilon, folder)
                row = row_of(one, method, domain, epsilon, texts, rows, laws[domain], training,
                             each, folder)
            out.add({**row, "epsilon": key})


# ---- Tables and plots ----------------------------------------------------------------------------

BOUNDS = ["membership_epsilon_one_run", "canary_epsilon_one_run"]


def error_of_mean(values, halves):
    """95 % of the mean of runs: by the texts of each or by how the runs differ, the larger."""
    k = len(values)
    between = 1.96 * statistics.stdev(values) if k > 1 else 0
    return max(math.sqrt(sum(h * h for h in halves)) / k, between / math.sqrt(k))


def pooled(rows):
    """A row for each method, domain and epsilon: the mean of its runs, of bounds the largest."""
    groups = {}
    for r in rows:
        groups.setdefault((r["method"], r["domain"], r["epsilon"]), []).append(r)
    out = []
    for runs in groups.values():
        row = {**runs[0], "runs": str(len(runs))}
        for key in FIELDS[FIELDS.index("texts"):] + ["records"]:
            values = [float(r[key]) for r in runs if r.get(key)]
            if len(runs) > 1 and values and len(values) == len(runs):
                row[key] = f"{max(values) if key in BOUNDS else statistics.fmean(values):.4g}"
        if all(r.get("tv_95") for r in runs):
            row["tv_95"] = f"""{error_of_mean([float(r["tv"]) for r in runs],
                                             [float(r["tv_95"]) for r in runs]):.4g}"""
        out.append(row)
    return out


def cell(row, key, scale=1, form="{:.3f}"):
    return form.format(scale * float(row[key])) if row.get(key) else ""


def table(rows):
    lines = ["| method | epsilon | runs | records | texts | TV to the law | MAUVE | "
             "without a slip, % | accuracy, % | near copies, % | AUC of records | "
             "AUC of canaries | epsilon above | s of training | s a text |",
             "|---|" + "---:|" * 14]
    for r in sorted(rows, key=lambda r: (METHODS.index(r["method"]), float(r["epsilon"] or 0))):
        bound = max((float(r[k]) for k in BOUNDS if r.get(k)), default=None)
        lines.append("| " + " | ".join([
            TITLES[r["method"]], r["epsilon"], r["runs"], cell(r, "records", 1, "{:.0f}"),
            cell(r, "texts", 1, "{:.0f}"),
            cell(r, "tv") + (f" ± {cell(r, 'tv_95')}" if r.get("tv_95") else ""),
            cell(r, "mauve"), cell(r, "well_formed", 100, "{:.0f}"),
            cell(r, "accuracy", 100, "{:.0f}"), cell(r, "near_copies", 100, "{:.1f}"),
            cell(r, "membership_auc", 1, "{:.2f}"), cell(r, "canary_auc", 1, "{:.2f}"),
            "" if bound is None else f"{bound:.2f}", cell(r, "seconds_training", 1, "{:.0f}"),
            cell(r, "seconds_text", 1, "{:.2f}")]) + " |")
    missing = [TITLES[m] for m in METHODS if m not in {r["method"] for r in rows}]
    if missing:
        lines += ["", "No rows yet: " + "; ".join(missing) + "."]
    return lines


PANELS = [("tv", "distance to the law (0: perfect)", 0, 1), ("mauve", "MAUVE (1: perfect)", 0, 1),
          ("well_formed", "share without a slip", 0, 1),
          ("accuracy", "classifier's accuracy", 0, 1),
          ("near_copies", "near copies", 0, 1),
          ("membership_auc", "AUC of records (.5: by chance)", 0, 1),
          ("canary_auc", "AUC of canaries (.5: by chance)", 0, 1)]
COLOURS = ["#641e16", "#aab7b8", "#566573", "#000000", "#1b6ca8", "#5dade2", "#117a65", "#8e44ad",
           "#0b8fac", "#c0392b", "#d68910", "#2c3e50", "#7d6608", "#e84393"]
WIDTH, HEIGHT, LEFT = 260, 150, 60


def scale_of(axis, rows):
    """Ticks, and where a value stands, 0 to 1: the same in all panels."""
    if axis == "epsilon":
        return [1, 3, 10], lambda e: 1 if math.isinf(e) else .05 + .75 * math.log(e) / math.log(10)
    values = [float(r["seconds_text"]) for r in rows if float(r.get("seconds_text") or 0) > 0]
    low, high = math.log(min(values, default=1) / 1.3), math.log(max(values, default=1) * 1.3)
    ticks = [m * 10 ** k for k in range(-4, 5) for m in (1, 3)]
    ticks = [t for t in ticks if low <= math.log(t) <= high]
    return ticks, lambda s: (math.log(s) - low) / (high - low)


def panel(out, rows, key, title, low, high, axis, x0, y0):
    """One metric against epsilon, or against seconds a text."""
    name = "epsilon" if axis == "epsilon" else "seconds_text"
    points = [r for r in rows if r.get(key) and r.get(name) and float(r[name]) > 0]
    ticks, place = scale_of(axis, rows)

    def x(v):
        return x0 + WIDTH * place(v)

    def y(v):
        return y0 + HEIGHT * (1 - (v - low) / (high - low))

    out.append(f'<text x="{x0}" y="{y0 - 8}" font-weight="bold">{title}</text>')
    for k in range(5):
        v = low + (high - low) * k / 4
        out.append(f'<path d="M{x0} {y(v):.1f}h{WIDTH}" stroke="#ddd"/><text x="{x0 - 6}" '
                   f'y="{y(v) + 4:.1f}" text-anchor="end">{v:.2g}</text>')
    for t in ticks:
        out.append(f'<text x="{x(t):.1f}" y="{y0 + HEIGHT + 15}" text-anchor="middle">{t:g}</text>')
    if axis == "epsilon":
        out.append(f'<text x="{x0 + WIDTH}" y="{y0 + HEIGHT + 15}" text-anchor="middle">inf</text>')
    if not any(r.get(key) for r in rows):
        out.append(f'<text x="{x0 + WIDTH / 2}" y="{y0 + HEIGHT / 2}" text-anchor="middle" '
                   'fill="#999">no rows yet</text>')
    for i, method in enumerate(METHODS):
        own = sorted((r for r in points if r["method"] == method), key=lambda r: float(r[name]))
        colour = COLOURS[i]
        if axis == "epsilon" and method in WITHOUT_EPSILON:
            for r in (r for r in rows if r["method"] == method and r.get(key)):
                out.append(f'<path d="M{x0} {y(float(r[key])):.1f}h{WIDTH}" stroke="{colour}" '
                           'stroke-dasharray="6 4"/>')
            continue
        if axis == "epsilon" and len(own) > 1:
            out.append('<polyline fill="none" stroke="{}" points="{}"/>'.format(
                colour, " ".join(f"{x(float(r[name])):.1f},{y(float(r[key])):.1f}" for r in own)))
        for r in own:
            out.append(f'<circle cx="{x(float(r[name])):.1f}" cy="{y(float(r[key])):.1f}" '
                       f'r="3.5" fill="{colour}"><title>{TITLES[method]}, epsilon '
                       f'{r["epsilon"]}: {r[key]}</title></circle>')


def plot(domain, rows):
    full, tall = 2 * (WIDTH + LEFT + 20) + 300, 60 + len(PANELS) * (HEIGHT + 60)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {full} {tall}" width="{full}" '
           f'height="{tall}" font-family="sans-serif" font-size="12">',
           f'<rect width="{full}" height="{tall}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="16">{domain}: against epsilon</text>',
           f'<text x="{2 * LEFT + WIDTH + 20}" y="22" font-size="16">against seconds a text</text>']
    for k, (key, title, low, high) in enumerate(PANELS):
        for c, axis in enumerate(("epsilon", "seconds")):
            panel(out, rows, key, title, low, high, axis, LEFT + c * (WIDTH + LEFT + 20),
                  60 + k * (HEIGHT + 60))
    there = {r["method"] for r in rows}
    for i, method in enumerate(METHODS):
        at = 60 + 20 * i
        ink, note = ("#000", "") if method in there else ("#999", ": no rows yet")
        out.append(f'<circle cx="{full - 280}" cy="{at - 4}" r="5" fill="{COLOURS[i]}"/>'
                   f'<text x="{full - 268}" y="{at}" fill="{ink}">{TITLES[method]}{note}</text>')
    return "\n".join(out + ["</svg>", ""])


def tables(page, paths):
    rows = pooled([r for path in paths for r in read_rows(path)])
    folder = os.path.dirname(page) or "."
    lines = []
    for domain in sorted({r["domain"] for r in rows}, reverse=True):
        own = [r for r in rows if r["domain"] == domain]
        with open(f"{folder}/frontier-all-{domain}.svg", "w", encoding="utf-8") as f:
            f.write(plot(domain, own))
        lines += [f"### {domain}", "", f"![all methods](frontier-all-{domain}.svg)", ""]
        lines += table(own) + [""]
    put_part(page, "frontier", lines)


# ---- All -----------------------------------------------------------------------------------------

def parser(about, domains, methods, epsilons):
    """The options of `run` here and in many.py, which have other defaults."""
    p = argparse.ArgumentParser(description=about,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("command", choices=["run"])
    p.add_argument("build")
    p.add_argument("out")
    p.add_argument("--domains", default=domains)
    p.add_argument("--methods", default=",".join(methods))
    p.add_argument("--epsilons", default=epsilons)
    p.add_argument("--records", type=int, default=1024, help="members, about")
    p.add_argument("--canaries", type=int, default=32, help="planted, about")
    p.add_argument("--seed", type=int, default=7)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--steps", type=int, default=20, help="of finetune, as the options below")
    p.add_argument("--share", type=float, default=.5)
    p.add_argument("--most", type=int, default=128)
    p.add_argument("--rank", type=int, default=1)
    p.add_argument("--lr", type=float, default=.004)
    return p


def main():
    if sys.argv[1:2] == ["tables"] and len(sys.argv) >= 4:
        tables(sys.argv[2], sys.argv[3:])
        return
    p = parser(__doc__, "ticket,discharge", METHODS, "1,3,10,inf")
    p.add_argument("--texts", type=int, help="of methods with a free number of texts; default: as "
                   "many as the others write, since fewer texts are further from any law")
    measure(p.parse_args())


if __name__ == "__main__":
    main()
