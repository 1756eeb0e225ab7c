"""What the Python of these scripts shares: python_check (cli_support.sh) runs it after this."""
import csv, hashlib, json, math, random, re, statistics, struct, subprocess, sys
from fractions import Fraction


def data(name):
    with open(name, "rb") as f:
        return f.read()


def load(name):
    return json.loads(data(name))


def objects(name):
    """Those of a .jsonl file."""
    return [json.loads(line) for line in data(name).splitlines()]


def floats(name):
    return struct.unpack(f"<{len(data(name)) // 4}f", data(name))


def same(x, y, e=1e-9):
    assert abs(x - y) < e * max(1, abs(y)), (x, y)


def texts_of(name):
    """The texts of NAME.jsonl."""
    return [o["text"] for o in objects(name + ".jsonl")]


def distance(a, b):
    """Total variation distance of the values of two lists."""
    return sum(abs(a.count(v) / len(a) - b.count(v) / len(b)) for v in set(a) | set(b)) / 2
