"""Wrong types and shapes: an exception of a documented kind, never a crash."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest


@pytest.mark.parametrize("seed", [1, 2])
def test_calls(seed: int, model_path: str) -> None:
    script = pathlib.Path(__file__).parent / "fuzz_calls.py"
    done = subprocess.run([sys.executable, str(script), str(seed), "350", model_path],
                          capture_output=True, text=True, errors="replace",
                          stdin=subprocess.DEVNULL)
    last = (done.stderr.splitlines() or [""])[-1]
    assert done.returncode == 0, f"ended with {done.returncode} after {last}"
    assert done.stdout == "done\n"
