"""What documents and examples say of the package holds: their code runs as it is printed, names are
those of the package, and what the program has is told of."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import Any, List, Set, Tuple

import dpinfer
import numpy as np
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted((SOURCE / "python" / "docs").glob("*.rst"))
DOCUMENTS = [SOURCE / "README.md", SOURCE / "python" / "README.md", SOURCE / "docs" / "python.md"]
EXAMPLES = SOURCE / "examples" / "python"
FENCED = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
INDENTED = re.compile(r"^\.\. code-block:: python\n\n((?:   .*\n|\n)+)", re.M)


def run(code: str, folder: pathlib.Path, *words: str) -> str:
    done = subprocess.run([sys.executable, *(["-c", code] if code else []), *words], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def code_of(document: pathlib.Path) -> str:
    """All Python of a document, which is one program."""
    found = document.read_text("utf-8")
    if document.suffix == ".md":
        return "".join(FENCED.findall(found))
    return "".join(map(textwrap.dedent, INDENTED.findall(found)))


@pytest.mark.parametrize("document", [*DOCUMENTS, *PAGES], ids=lambda p: p.name + p.parent.name)
def test_code_runs_as_it_is_printed(document: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pandas")
    code = code_of(document)
    if not code:
        assert document.name in ("index.rst", "start.rst"), "no code is found"
        return
    run(code, tmp_path)


def test_names_are_those_of_the_package() -> None:
    said = "".join(document.read_text("utf-8") for document in [*DOCUMENTS, *PAGES])
    names = set(re.findall(r"\bdpinfer\.([A-Za-z_]\w*(?:\.\w+)?)", said)) - {"h"}  # a header
    assert len(names) > 40
    for name in sorted(names):
        thing: Any = dpinfer
        for part in name.split("."):
            assert hasattr(thing, part), f"dpinfer.{name}"
            thing = getattr(thing, part)


def test_each_name_has_its_page() -> None:
    said = "".join(page.read_text("utf-8") for page in PAGES)
    pages = re.findall(r"^\.\. auto\w+:: dpinfer\.(\w+)$", said, re.M)
    assert sorted(pages) == sorted(dpinfer.__all__)


def keywords(*functions: Any) -> Set[str]:
    return {name for one in functions for name in inspect.signature(one).parameters}


def rows_of(section: str) -> List[Tuple[str, str]]:
    """The rows of the table in a section of docs/python.md."""
    page = DOCUMENTS[2].read_text("utf-8").split(section + "\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", page, re.M)
    return [row for row in rows if row[0] not in ("program", "command")]


def test_options_are_keywords_or_named() -> None:
    """Each option of `run` is a keyword of the same name, or docs/python.md says what it is."""
    page = DOCUMENTS[2].read_text("utf-8")
    known = keywords(dpinfer.plan, dpinfer.Plan.run, dpinfer.Release.make_report)
    options = re.findall(r"^ +(?:-\w, )?--([a-z][a-z-]+)", dpinfer.command("help", "run"), re.M)
    assert len(options) > 80
    # What is about files and the terminal of the program alone.
    files = {"output", "jsonl", "report", "overwrite", "quiet", "help", "model", "records",
             "journal-every", "spread"}
    missing = [option for option in options
               if option not in files and option.replace("-", "_") not in known
               and f"--{option}`" not in page and f"--{option} " not in page
               and f"{option}-file" not in options and not option.endswith("-file")]
    assert missing == []


def test_keywords_of_the_table_are_there() -> None:
    known = keywords(dpinfer.plan, dpinfer.Model, dpinfer.Plan.needs, dpinfer.finetune,
                     dpinfer.augpe, dpinfer.Perturber, dpinfer.Sampler)
    rows = rows_of("## Names of options")
    assert len(rows) > 20
    for _, python in rows:
        for name in re.findall(r"`([a-z]\w+)(?==|`)", python):
            assert name in known | {"needs"}, name


def test_commands_are_told_of() -> None:
    commands = re.findall(r"^  ([a-z-]+) {2,}\S", dpinfer.command("help"), re.M)
    page = DOCUMENTS[2].read_text("utf-8")
    assert len(commands) > 25
    assert [name for name in commands if not re.search(rf"`{name}\b", page)] == []


# ---- Examples ----------------------------------------------------------------------------------


def test_parquet_and_excel(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    pd = pytest.importorskip("pandas")
    run("", EXAMPLES, "parquet_excel.py", str(tmp_path))
    texts = pd.read_parquet(tmp_path / "texts.parquet")
    assert list(texts["index"]) == [0, 1] and all(texts["text"])
    report = dpinfer.Report.load(tmp_path / "texts.report.json")
    assert report.verify().ok and report.claim.is_private


def test_classifier() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("pandas")
    said = run("", EXAMPLES, "classifier.py")
    assert re.search(r"^private texts +[01]\.\d\d$", said, re.M)
    assert float(re.findall(r"NOT PRIVATE +(\S+)", said)[0]) > 0.9


def test_notebook_runs_and_keeps_no_output() -> None:
    path = EXAMPLES / "hospital.ipynb"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    nbclient = pytest.importorskip("nbclient")
    for needed in ("ipykernel", "matplotlib", "pandas"):
        pytest.importorskip(needed)
    nbformat = pytest.importorskip("nbformat")
    book = nbformat.read(path, 4)
    nbclient.NotebookClient(book, timeout=None,
                            resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    plots = [out for cell in book.cells for out in cell.get("outputs", [])
             if "image/png" in out.get("data", {})]
    assert len(plots) == 3


class Row:
    """An engine of three tokens. `company`: how much each other row moves a logit."""

    def __init__(self, prompts: List[List[int]], company: float) -> None:
        self._prompts = [list(prompt) for prompt in prompts]
        self._company = company

    @property
    def logits(self) -> Any:
        return np.array([[sum(p), len(p), company] for p, company in zip(
            self._prompts, [self._company * len(self._prompts)] * len(self._prompts))], np.float32)

    def append(self, token: int) -> None:
        for prompt in self._prompts:
            prompt.append(token)


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rows_that_depend_on_each_other_are_found() -> None:
    rows = load("rows")
    prompts = [[1, 2], [3], [4, 5, 6]]
    for company, change in ((0.0, 0.0), (0.5, 1.0)):
        assert rows.largest_change(lambda p, c=company: Row(p, c), prompts, [[7]], 1) == change
    one_by_one = rows.OneByOne(lambda p: Row(p, 0.5), prompts)
    one_by_one.append(9)
    assert one_by_one.logits.tolist() == [[12, 3, 0.5], [12, 2, 0.5], [24, 4, 0.5]]


def test_transformers_engine() -> None:
    for needed in ("torch", "transformers"):
        pytest.importorskip(needed, reason="heavy: examples/python/requirements-heavy.txt")
    said = run("", EXAMPLES, "transformers_engine.py", "-B", "3", "-n", "5")
    assert re.search("^rows: ", said, re.M) and " tokens from 3 records" in said


def test_pages_are_built_without_a_warning(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("sphinx")
    run("", SOURCE, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", str(tmp_path / "trees"),
        os.fspath(SOURCE / "python" / "docs"), str(tmp_path / "html"))
    assert "dpinfer.plan" in (tmp_path / "html" / "runs.html").read_text("utf-8")
    assert (tmp_path / "html" / "searchindex.js").exists()
