"""The program of this package: what is measured from outside, as its users do it."""

from __future__ import annotations

import os
import subprocess
from typing import Any, Dict, List

from ._library import (
    FOLDER,
    ArgumentError,
    BudgetExceeded,
    Error,
    FileError,
    FormatError,
    SystemFailure,
)

PROGRAM = str(FOLDER / "bin" / "dpinfer")
# Exit codes of the program (docs/commands.md) that are errors.
_CODES = {2: ArgumentError, 3: FormatError, 4: FileError, 5: FormatError, 6: BudgetExceeded}


def _words(options: Dict[str, Any]) -> List[str]:
    """Keyword arguments as options of the program: no_repeat=3 -> --no-repeat 3."""
    words: List[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
            if "\0" in text:
                raise ArgumentError(f"{option}: the text has a NUL, which is not allowed")
            words += [option, text]
    return words


def command(name: str, *arguments: Any, **options: Any) -> str:
    """Runs a command of the program, `dpinfer NAME`, and returns what it writes to its output.

    Options are those of the command, with '_' for '-': True for a flag, a list for one that may
    stand several times. Raises what the exit code says, with the program's message.
    """
    words = [PROGRAM, name, *(os.fspath(a) if isinstance(a, os.PathLike) else str(a)
                              for a in arguments), *_words(options)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    out = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        return out
    said = done.stderr.decode("utf-8", "replace").strip()
    kind = _CODES.get(done.returncode, SystemFailure if done.returncode < 0 else Error)
    raise kind(said or f"dpinfer {name} ended with {done.returncode}")
