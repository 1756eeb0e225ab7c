"""Calls every public function with values of the wrong type, shape and size: fuzz_calls.py SEED N.

Run in a process of its own (test_fuzz.py): its output ends with the last call where it crashes, or
with what is no documented exception.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import random
import resource
import sys
import tempfile
from typing import Any, Callable, Dict, List

import dpinfer
import numpy as np
from conftest import made_up

SMALL: Dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "batch": 2, "texts": 1, "tokens": 2,
                         "description": "letters"}
# What may be raised: dpinfer.Error is what the library says, TypeError another type than allowed.
DOCUMENTED = (dpinfer.Error, TypeError)
# Properties that measure for a second, or show a page.
SLOW = {"needs"}


class Strange:
    """It says that it is a table, and is none."""

    __dataframe__ = columns = None

    def __len__(self) -> int:
        return 3


def values(folder: str) -> List[Any]:
    """Allocates little: no number below is a size that a machine has not."""
    return [
        None, True, -1, 0, 1, 3, 2**31, 2**63, -2**63 - 1, 2**64, 10**400, 0.5, 1e308, -1.5,
        float("nan"), float("inf"), 1j, "", "a", "\0", "\udc80", "x" * 5000, b"", b"\xff\0", [],
        [None], [1, "a"], [[1.0, 2.0]], ["a", b"b"], (), {}, {"a": 1}, {1: 2}, {"text": ["a"]},
        {1, 2}, object(), Strange(), int, len, range(3), lambda: None, np.zeros(0),
        np.zeros((2, 8), np.float32), np.ones(8), np.array("a"), np.array([None, 1], object),
        np.full((3, 3), np.nan), np.array(5), np.zeros((1, 1, 1)), np.arange(8, dtype=np.int64),
        np.zeros(8, bool), np.zeros(4, complex), folder, pathlib.Path(folder) / "none",
        folder + "/a.txt", "/dev/null", memoryview(b"ab"), bytearray(b"ab"), iter([1]), slice(1),
        NotImplemented, Exception("a"), made_up(4), [{"text": "a", "unit": 1}] * 4,
    ]


def targets(path: str, folder: str) -> Dict[str, Callable[[], Any]]:
    """Each public function and method, of objects that are made anew for each call, as a call may
    close them."""
    def model() -> dpinfer.Model:
        return dpinfer.Model(path)

    def plan() -> dpinfer.Plan:
        return dpinfer.plan(model(), made_up(4), **SMALL)

    def ledger() -> dpinfer.Ledger:
        made = dpinfer.Ledger(folder + "/l", create=True)
        if not made.datasets:
            made.add("a", epsilon=1, delta=1e-5)
        return made

    makers: Dict[str, Callable[[], Any]] = {
        "Model": model, "Tokenizer": lambda: holder(model()), "Plan": plan,
        "Session": lambda: model().session(seq=2, context=16), "Release": lambda: plan().run(),
        "Sampler": lambda: dpinfer.Sampler(vocab=8, references=2, rho=1, tokens=3, top_k=0),
        "Claim": lambda: plan().claim, "Report": lambda: plan().run().report, "Ledger": ledger,
        "Records": lambda: dpinfer.Records(made_up(4))}
    found: Dict[str, Callable[[], Any]] = {}
    for name, make in makers.items():
        kind = getattr(dpinfer, name)
        for method, _ in inspect.getmembers(kind, callable):
            if (not method.startswith("_") or method in ("__call__", "__getitem__")) and (
                    method not in SLOW | {"builtin"}):
                found[f"{name}.{method}"] = lambda m=make, n=method: getattr(m(), n)
        if name not in ("Claim", "Plan", "Release", "Report", "Tokenizer"):
            found[name] = lambda k=kind: k
    for name in ("plan", "resume", "run", "Training", "Evolution", "Perturber", "file_claim",
                 "verify_file", "generate", "evaluate"):
        found[name] = lambda n=name: getattr(dpinfer, n)
    for name, function in inspect.getmembers(dpinfer.account, inspect.isfunction):
        if function.__module__ == "dpinfer.account" and not name.startswith("_"):
            found["account." + name] = lambda f=function: f
    return found


def holder(model: dpinfer.Model) -> Any:
    model.tokenizer.model = model  # which keeps it for the call
    return model.tokenizer


def arguments(name: str, function: Any, some: List[Any], random: random.Random) -> Any:
    """Wrong ones, or right ones with one wrong."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    words = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    n = random.randint(0, sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters) or 1)
    args = [random.choice(some) for _ in range(n)]
    options = {w: random.choice(some) for w in random.sample(words, min(len(words),
                                                                        random.randint(0, 2)))}
    return args, options


def main() -> None:
    seed, n, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
    bits = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # texts may be names of files
        pathlib.Path("a.txt").write_text("a")
        some = values(folder)
        some += [dpinfer.Model(path), dpinfer.Records(made_up(4)), dpinfer.Model]
        closed = dpinfer.Model(path)
        closed.close()
        some.append(closed)
        calls = targets(path, folder)
        names = sorted(calls)
        for i in range(n):
            name = names[i % len(names)]
            function = calls[name]()
            args, options = arguments(name, function, some, bits)
            if name in ("plan", "run") and bits.random() < 0.7:  # nearly right
                args = [dpinfer.Model(path), made_up(4)]
                options = {**SMALL, **options, "threads": 1}
            told = f"{name} {args!r:.300} {options!r:.300}"
            print(told, file=sys.stderr, flush=True)
            try:
                result = function(*args, **options)
                repr(result)
                getattr(result, "_repr_html_", str)()
            except DOCUMENTED:
                pass
            except ModuleNotFoundError:  # a package that few need
                pass
            except IndexError:  # as of a list
                if not name.endswith("__getitem__"):
                    print(f"{told}: IndexError")
            except Exception as error:
                print(f"{told}: {type(error).__name__}: {error}"[:900])
    print("done")


main()
