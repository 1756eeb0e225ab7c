"""The program of this package: what is measured from outside, as its users do it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Optional

from ._library import (
    FOLDER,
    ArgumentError,
    BudgetExceeded,
    Error,
    FileError,
    FormatError,
    SystemFailure,
    path_bytes,
)
from ._model import BUILTIN
from ._options import flag
from ._records import lines_of
from ._release import Release
from ._report import Report
from ._show import page

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
            words += [option, _word(option, one)]
    return words


def _word(what: str, value: Any) -> str:
    """A value as a word of a command line. Raises ArgumentError: it cannot be one."""
    word = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    try:
        path_bytes(word)
    except ArgumentError:
        raise ArgumentError(f"{what}: found a NUL, or what is no Unicode, allowed is a text"
                            ) from None
    return word


def command(name: str, *arguments: Any, **options: Any) -> str:
    """Runs a command of the program, `dpinfer NAME`, and returns what it writes to its output.

    Options are those of the command, with '_' for '-': True for a flag, a list for one that may
    stand several times. Raises what the exit code says, with the program's message.
    """
    words = [PROGRAM, name, *(_word(name, one) for one in arguments), *_words(options)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    out = done.stdout.decode("utf-8", "replace")
    if done.returncode == 0:
        return out
    said = done.stderr.decode("utf-8", "replace").strip()
    kind = _CODES.get(done.returncode, SystemFailure if done.returncode < 0 else Error)
    raise kind(said or f"dpinfer {name} ended with {done.returncode}")


# ---- What Python has of it ---------------------------------------------------------------------

# One name in Python for what the program's options call otherwise.
_RENAMED = {"texts": "num", "tokens": "n_predict", "tau": "temp", "text": "text_field",
            "label": "label_field", "adapter": "lora"}


def _renamed(options: Dict[str, Any]) -> Dict[str, Any]:
    return {_RENAMED.get(name, name): value for name, value in options.items()}


@contextlib.contextmanager
def _folder() -> Iterator[pathlib.Path]:
    """A folder of this user alone, in memory where the system has one there."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="dpinfer-", dir=memory) as folder:
        yield pathlib.Path(folder)


def _file(data: Any, name: str, folder: pathlib.Path, wanted: List[str]) -> str:
    """A path as it is; anything else as lines of JSON in the folder."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if isinstance(data, Release):
        data = [{wanted[0]: one.text, **{w: one.label for w in wanted[1:]}} for one in data.texts]
    path = folder / f"{name}.jsonl"
    path.write_bytes(lines_of(data, wanted))
    return str(path)


class Evaluation(Dict[str, Any]):
    """What texts are worth: a dict of metrics, as `dpinfer eval --json` has them; `intervals` has
    95 % of resamples of each. html is the page."""

    html: str = ""

    def to_pandas(self) -> Any:
        """A row for each metric, with its interval."""
        import pandas as pd

        rows = [{"metric": k, "value": v,
                 "low": self["intervals"].get(k, [None, None])[0],
                 "high": self["intervals"].get(k, [None, None])[1]}
                for k, v in self.items() if isinstance(v, (int, float)) and k != "private"]
        return pd.DataFrame(rows).set_index("metric")

    def _repr_html_(self) -> str:
        return page(self.html)


def evaluate(synthetic: Any, *, real: Any = None, train: Any = None, control: Any = None,
             model: Any = None, text: str = "text", label: Optional[str] = None,
             **options: Any) -> Evaluation:
    """Compares texts with real ones that were held out (`dpinfer eval -h`).

    synthetic, real, train, control: a Release, a table, a list, a path. model: a Model or a path,
    for MAUVE, neighbours and perplexity. The other options are those of `dpinfer eval`, with '_'
    for '-'. PRIVATE unless the real texts are public; those that are no file are written into
    memory (/dev/shm) while it runs.
    """
    wanted = [text] if label is None else [text, label]
    with _folder() as folder:
        files = {name: _file(data, name, folder, wanted)
                 for name, data in (("real", real), ("train", train), ("control", control))
                 if data is not None}
        first = _file(synthetic, "synthetic", folder, wanted)
        html = folder / "page.html"
        said = {**_renamed({"text": text, "label": label, **options}), **files}
        if model is not None:
            said["model"] = getattr(model, "path", model)
        found = Evaluation(json.loads(command("eval", first, json=True, **said)))
        command("eval", first, output=html, **said)
        found.html = html.read_text("utf-8")
    return found


class Generated:
    """Texts of a model that was trained with privacy, and the report of what they rest on."""

    def __init__(self, texts: List[Dict[str, Any]], report: Optional[Report]) -> None:
        self.texts = texts
        self.report = report

    def to_pandas(self) -> Any:
        """The texts as a DataFrame of pandas."""
        import pandas as pd

        return pd.DataFrame(self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    def __repr__(self) -> str:
        said = self.report.claim.short if self.report else "NOT PRIVATE: there is no claim"
        return f"<Generated: {len(self.texts)} texts; {said}>"


def generate(model: Any, adapter: Any = None, *, report: bool = True,
             **options: Any) -> Generated:
    """Texts from an adapter of finetune(), at plain cost: no record is read.

    model: a Model or a path; adapter: the file, or None for a model of finetune(full=True). The
    options are those of `dpinfer generate`: texts, tokens, tau, seed, stop, answer, ban, ...
    report=False: for an adapter that says nothing of how it was made.
    """
    with _folder() as folder:
        written = folder / "report.json"
        said = {"adapter": adapter, **options}
        if flag("report", report):
            said["report"] = written
        out = command("generate", getattr(model, "path", model), jsonl=True, **_renamed(said))
        texts = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return Generated(texts, Report.load(written) if report else None)


def audit(model: Any = None, *, effort: float = 1.0, **options: Any) -> Dict[str, Any]:
    """Plays made-up records against the code that writes texts: tries to catch it leaking.

    Returns what `dpinfer audit --json` says: `passed`, and a list of `results`. No record of yours
    is read."""
    path = BUILTIN if model is None else getattr(model, "path", model)
    with _folder() as folder:
        out = folder / "audit.json"
        try:
            command("audit", path, effort=effort, output=out, **options)
        except Error:
            if not out.exists():
                raise
        found: Dict[str, Any] = json.loads(out.read_text("utf-8"))
        return found
