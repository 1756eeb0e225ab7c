"""What Python costs: a release beside the program's, and a step of the sampler beside C's.

    python bench/python.py [MODEL]    with the package installed; MODEL: default the built-in one

Both of a pair run in turn, several times: other work on the machine hits both. Shown is the
least of the processors' seconds of releases, and of the time of steps.
"""

from __future__ import annotations

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, List, Tuple

import dpinfer
import numpy as np
from dpinfer import _program
from dpinfer._library import ffi, lib

TOKENS, BATCH, TEXTS = 200, 16, 4
VOCAB, REFERENCES, STEPS, ROUNDS = 128256, 31, 60, 20


def pairs(rounds: int, *works: Callable[[], float]) -> List[float]:
    """The least of what each returns, called in turn."""
    found: List[List[float]] = [[] for _ in works]
    for _ in range(rounds):
        for at in range(len(works)):
            found[at].append(works[at]())
    return [min(one) for one in found]


def release(model: str, records: str) -> Tuple[float, float]:
    """Seconds of the processors that a release takes: program, Python behind its imports."""
    words = ["--seed", "1", "--epsilon", "10", "--delta", "1e-3", "-B", str(BATCH), "-n",
             str(TOKENS), "--num", str(TEXTS), "--describe", "letters"]
    code = ("import dpinfer, time; begun = time.process_time(); "
            f"dpinfer.run(dpinfer.Model({model!r}), {records!r}, seed=1, epsilon=10, "
            f"delta=1e-3, batch={BATCH}, tokens={TOKENS}, texts={TEXTS}, description='letters'); "
            "print(time.process_time() - begun)")

    def program() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([_program.PROGRAM, "run", model, records, *words], check=True,
                       capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def python() -> float:
        return float(subprocess.run([sys.executable, "-c", code], check=True,
                                    capture_output=True).stdout)

    of_program, of_python = pairs(9, program, python)
    return of_program, of_python


def steps() -> Tuple[float, float]:
    """Seconds of a step through C alone, and how many more with numpy arrays."""
    bits = np.random.default_rng(1)
    public = bits.normal(0, 3, VOCAB).astype(np.float32)
    private = (public + bits.normal(0, 1, (REFERENCES, VOCAB))).astype(np.float32)
    sampler = dpinfer.Sampler(vocab=VOCAB, references=REFERENCES, epsilon=10, delta=1e-6,
                              tokens=STEPS)
    rows = ffi.new("float *[]", [ffi.cast("float *", row.ctypes.data) for row in private])
    at, token, err = ffi.cast("float *", public.ctypes.data), ffi.new("int32_t *"), ffi.new(
        "dpi_error *")

    def of_c() -> None:
        assert lib.dpi_sampler_step(sampler.c, at, rows, token, err) == 0

    def one(step: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        step()
        return time.perf_counter() - begun

    both = []
    for _ in range(ROUNDS):
        sampler.begin()
        both += [(one(of_c), one(lambda: sampler.step(public, private)))
                 for _ in range(STEPS // 2)]
    c = min(c for c, _ in both)
    return c, min(python for _, python in both) - c


def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else str(dpinfer._model.BUILTIN)
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "records.jsonl"
        records.write_text("".join(json.dumps({"text": f"Dear patient {i}, you had a fever and were"
                                               " given rest."}) + "\n" for i in range(64)))
        program, python = release(model, str(records))
    print(f"a release: program {program:.3f} s, Python {python:.3f} s behind its imports, "
          f"{100 * (python / program - 1):+.1f} %")
    c, more = steps()
    print(f"Sampler.step, V = {VOCAB}, B = {REFERENCES}: C {1e6 * c:.1f} us, Python "
          f"{1e6 * more:+.1f} us")


main()
