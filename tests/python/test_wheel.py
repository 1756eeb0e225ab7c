"""The package has what it needs inside: nothing of the system's is loaded in its place."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from typing import List, Set

import dpinfer
from conftest import child, made_up, write_jsonl
from dpinfer._library import FOLDER
from dpinfer._program import PROGRAM

# On every system that the tag of the wheel names.
EVERYWHERE = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|z|dl|rt|pthread|gcc_s|stdc\+\+))\.so")
HOMES = (str(FOLDER), str(FOLDER.parent / "dpinfer.libs"))


def loaded(tmp_path: pathlib.Path, *words: str) -> Set[str]:
    """The libraries that the program has loaded for a command, by the loader's own account."""
    log = tmp_path / "loaded"
    environment = {**os.environ, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)}
    done = subprocess.run([PROGRAM, *words], env=environment, capture_output=True,
                          stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    said = "".join(path.read_text(errors="replace") for path in tmp_path.glob("loaded.*"))
    return {os.path.realpath(path) for path in re.findall(r"calling init: (/.*)", said)}


def check(paths: Set[str], wanted: List[str]) -> None:
    names = " ".join(map(os.path.basename, paths))
    for name in wanted:
        assert name in names, names
    assert not [path for path in paths if not path.startswith(HOMES) and
                not EVERYWHERE.match(os.path.basename(path))]


def test_training(tmp_path: pathlib.Path, model_path: str) -> None:
    records = write_jsonl(tmp_path / "records.jsonl", made_up(20))
    check(loaded(tmp_path, "finetune", model_path, records, "--instruction", "Write.", "--steps",
                 "1", "--epsilon", "8", "--delta", "1e-3", "--units", "20", "--expected", "2",
                 "-o", "adapter.gguf"),
          ["libopenblas", "libfftw3", "libgomp", "libjansson", "libnettle", "libpcre2"])
    assert dpinfer.verify_file(tmp_path / "adapter.gguf").ok


def test_evaluation(tmp_path: pathlib.Path, model_path: str) -> None:
    rows = [{"text": f"{animal} number {i} sat", "label": animal} for i in range(8)
            for animal in ("cat", "dog")]
    records = write_jsonl(tmp_path / "records.jsonl", rows)
    check(loaded(tmp_path, "eval", records, "--real", records, "--label-field", "label", "--model",
                 model_path), ["libopenblas", "liblapacke", "liblapack", "libtmglib", "liblinear",
                               "libblas"])


LIBRARIES = """
import dpinfer, sys
training = dpinfer.Training(dpinfer.Model(sys.argv[1]), ["a b c"] * 20, units=20, expected=2,
                            steps=1, epsilon=8, delta=1e-3, instruction="Write.")
training.step()
for line in open("/proc/self/maps"):
    if ".so" in line and "x" in line.split()[1]:
        print(line.split()[-1])
"""


def test_library(model_path: str) -> None:
    done = child(LIBRARIES, model_path)
    assert done.returncode == 0, done.stderr
    ours = re.compile("openblas|fftw|jansson|nettle|pcre2|sqlite|csv|dpinfer|gomp")
    paths = {path for path in done.stdout.split() if ours.search(os.path.basename(path)) and
             "scipy_openblas" not in path}  # which is numpy's
    check(paths, ["libdpinfer_full", "libopenblas", "libfftw3", "libsqlite3", "libcsv"])


def test_demo() -> None:
    """It finds its model and its documents in the package, and writes."""
    demo = subprocess.Popen([sys.executable, "-m", "dpinfer", "demo"], stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert demo.stdout is not None
    seen = []
    for line in demo.stdout:
        seen.append(line)
        if line.startswith("  | "):  # of a text
            break
    else:
        raise AssertionError("".join(seen))
    demo.kill()
    demo.communicate()


def test_licences() -> None:
    said = (FOLDER / "LICENCES").read_text("utf-8", "replace")
    bundled = [*(FOLDER.parent / "dpinfer.libs").iterdir(), *(FOLDER / "lib").iterdir()]
    names = {re.sub(r"(-[0-9a-f]{8})?\.so.*", ".so", path.name) for path in bundled}
    assert len(names) > 10
    for name in names - {"libdpinfer_full.so"}:
        assert re.search(rf"^{re.escape(name)}[.\d]*: \S+ \S+ \(source ", said, re.M), name
    assert "GNU GENERAL PUBLIC LICENSE" in said.upper()
