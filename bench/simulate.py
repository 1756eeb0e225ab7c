#!/usr/bin/env python3
"""Products of the kernel sets for AArch64 on simulated cores: no such processor was at hand.

    bench/simulate.py [--cores neoverse-v1,neoverse-n1] > simulated.csv

Compiles the largest tile of each weight type (kernels/arm/) with Debian's cross compiler, takes the
block of its code with the most multiplications, and lets llvm-mca (Debian: llvm-19) run it as if
nothing had to wait for memory. A row has the instructions of the block, its multiplications of
bytes, these a cycle, and their share of what the same core does in a loop of nothing else (the
probe of the set, by which `dpinfer bench` measures the peak). What it cannot know: caches, branches,
clock.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Name: flags, DOTPROD, HAS_PAIRS of neon_products_tmpl.h.
SETS = {"neon": ("-march=armv8-a", 0, 0), "dotprod": ("-march=armv8.2-a+dotprod", 1, 0),
        "i8mm": ("-march=armv8.2-a+dotprod+i8mm", 1, 1)}
TYPES = ["Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q6_K"]
# Multiplications of an instruction, by how it begins.
PRODUCTS = {"sdot": 16, "udot": 16, "usdot": 16, "smmla": 32, "ummla": 32, "usmmla": 32, "smull": 8,
            "umull": 8, "smlal": 8, "umlal": 8, "smull2": 8, "umull2": 8, "smlal2": 8, "umlal2": 8}
JUMP = re.compile(r"\t(bl?|b\.?(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|hs|lo)|cbn?z|tbn?z|ret)"
                  r"\b")


def source(name):
    """The set's template, of which only one tile of each type and the probe are used."""
    _, dotprod, pairs = SETS[name]
    lines = [f"#define DOTPROD {dotprod}", f"#define HAS_PAIRS {pairs}",
             "#define NAME(kernel) kernel##_simulated",
             '#include "kernels/arm/neon_products_tmpl.h"', "const int tile_rows = TILE;"]
    for t in TYPES:
        lines.append(f"void tile_{t}(float *y, int64_t s, dpi_q8 x, source f, int64_t i, int32_t o)"
                     f" {{ tile(DPI_TYPE_{t}, TILE, TILE, y, s, x, f, i, o); }}")
    lines.append("double (*const probe)(int64_t, int32_t *) = probe_int8_simulated;")
    return "\n".join(lines) + "\n"


def compile_set(name):
    """Rows of a tile, and of each function the block with the most multiplications."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tile.c"
        with open(path, "w", encoding="utf-8") as f:
            f.write(source(name))
        text = subprocess.run(
            ["aarch64-linux-gnu-gcc", "-std=c17", "-O3", "-ffp-contract=off", "-w", f"-I{ROOT}",
             f"-I{ROOT}/include", SETS[name][0], "-S", "-o", "-", path], check=True,
            stdout=subprocess.PIPE, text=True).stdout
    found = re.finditer(r"^(tile_\w+|probe_int8_simulated):\n(.*?)^\t\.size\t\1", text, re.S | re.M)
    rows = int(re.search(r"^tile_rows:\n\t\.word\t(\d+)", text, re.M).group(1))
    return rows, {m.group(1): max(blocks(m.group(2).split("\n")), key=products) for m in found}


def blocks(lines):
    """Instructions between labels and jumps, with the jump left out."""
    block = []
    for line in lines:
        if line.startswith(".L"):
            yield block
            block = []
        elif JUMP.match(line):
            yield block
            block = []
        elif re.match(r"\t[a-z]", line):
            block.append(line)
    yield block


def products(block):
    return sum(PRODUCTS.get(line.split()[0], 0) for line in block)


def cycles(block, core):
    """Of one pass through a block, in a loop of 100."""
    out = subprocess.run(
        ["llvm-mca-19", "-mtriple=aarch64", f"-mcpu={core}", "-mattr=+dotprod,+i8mm",
         "-iterations=100"], input="\n".join(block) + "\n", check=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", out).group(1)) / 100


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cores", default="neoverse-v1,neoverse-n1")
    o = p.parse_args()
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["core (simulated)", "set", "weights", "rows of a tile", "instructions",
                  "multiplications", "a cycle", "share of the peak, %"])
    for name in SETS:
        rows, best = compile_set(name)
        for core in o.cores.split(","):
            if (name, core) == ("i8mm", "neoverse-n1"):
                continue # it has no such instructions
            probe = best["probe_int8_simulated"]
            peak = products(probe) / cycles(probe, core)
            for t in TYPES:
                block = best[f"tile_{t}"]
                rate = products(block) / cycles(block, core)
                out.writerow([core, name, t, rows, len(block), products(block), f"{rate:.1f}",
                              f"{100 * rate / peak:.0f}"])


if __name__ == "__main__":
    main()
