"""What the tests of the package share. They run against the installed package alone, never against
the source tree, and no test waits for time or fails by chance."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any, Callable, Iterator, List

import dpinfer
import numpy as np
import pytest
from dpinfer._program import PROGRAM

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("DPI_DATA") or SOURCE.parent / "shared" / "data")

try:
    from hypothesis import configuration, settings

    configuration.set_hypothesis_home_dir(tempfile.mkdtemp())  # not the source tree
    settings.register_profile("dpinfer", derandomize=True, deadline=None, database=None)
    settings.load_profile("dpinfer")
except ImportError:  # its tests are skipped
    pass


def pytest_sessionstart(session: Any) -> None:
    if SOURCE / "python" in pathlib.Path(dpinfer.__file__).resolve().parents:
        pytest.exit("the tests are for an installed package, not for the source tree", 2)


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model of random weights: a text takes no time."""
    path = tmp_path_factory.mktemp("model") / "m.gguf"
    subprocess.run([PROGRAM, "make-model", "--layers", "1", "--embd", "32", "--ff", "32", "--heads",
                    "2", "--kv-heads", "1", "--vocab-size", "300", "--type", "F32", "-o",
                    str(path)], check=True, capture_output=True)
    return str(path)


@pytest.fixture
def model(model_path: str) -> Iterator[dpinfer.Model]:
    yield dpinfer.Model(model_path)


def data_path(relative: str) -> str:
    """A file of the shared data; without it the test is skipped."""
    path = DATA / relative
    if not path.exists():
        pytest.skip(f"there is no {relative} of the shared data ($DPI_DATA)")
    return str(path)


def made_up(n: int) -> List[str]:
    """Texts of records."""
    return [f"Dear patient {i}, you had a fever for {i % 5 + 1} days." for i in range(n)]


def write_jsonl(path: pathlib.Path, rows: List[Any]) -> str:
    lines = [json.dumps({"text": row} if isinstance(row, str) else row) + "\n" for row in rows]
    path.write_text("".join(lines), "utf-8")
    return str(path)


def program(*words: str) -> str:
    """What the program of the package writes to its output."""
    done = subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def child(code: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a Python of its own, which may crash or be killed."""
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, cwd=pathlib.Path(__file__).parent)


def at_call(name: str, number: int, act: Callable[[], None]) -> Callable[..., Any]:
    """A function for sys.settrace: acts once, where a function of this name is called for the
    number-th time, from 1. So a signal comes at a place, not after a time."""
    left = number

    def trace(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        if frame.f_code.co_name == name:
            left -= 1
            if left == 0:
                act()

    return trace


def nmse(found: Any, expected: Any) -> float:
    difference = np.asarray(found, np.float64) - expected
    return float(np.sum(difference**2) / np.sum(np.asarray(expected, np.float64)**2))
