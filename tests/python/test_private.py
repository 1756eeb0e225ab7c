"""No text of a record is in what people see of errors, objects and logs."""

from __future__ import annotations

import io
import pathlib
import traceback
from typing import Any, Callable, Dict, List

import dpinfer
import pytest
from conftest import write_jsonl

SECRET = "Xylophonia"
OPTIONS: Dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "batch": 2, "texts": 1, "tokens": 4,
                           "description": "letters"}


def rows() -> List[Dict[str, Any]]:
    return [{"text": f"{SECRET} text {i}", "unit": f"{SECRET} unit {i}",
             "label": f"{SECRET} label"} for i in range(4)]


def failures(model: dpinfer.Model, folder: pathlib.Path) -> List[Callable[[], Any]]:
    """Calls that fail, each with private records at hand."""
    records = dpinfer.Records(rows(), unit="unit", label="label")
    broken = folder / "broken.jsonl"
    broken.write_text(f'{{"text": "{SECRET}"\n{SECRET}\n')
    csv = folder / "broken.csv"
    csv.write_text(f'text,unit\n"{SECRET}\n{SECRET},{SECRET},{SECRET}\n')

    def plan(data: Any, **options: Any) -> Any:
        return dpinfer.plan(model, data, **{**OPTIONS, **options})

    return [
        lambda: plan(rows(), text="none"),
        lambda: plan(rows(), unit="none"),
        lambda: plan(rows(), unit="unit", label="none"),
        lambda: plan([SECRET, {"a": SECRET}, 5]),
        lambda: plan([f"{SECRET}"] * 4, unit="unit"),
        lambda: plan([SECRET.encode()] * 4),
        lambda: plan({"text": [SECRET]}),
        lambda: plan(rows(), batch=100),
        lambda: plan(rows(), texts=100),
        lambda: plan(records, unit="unit"),
        lambda: plan(records, epsilon=1e-9),
        lambda: plan(rows(), unit="unit", label="label", label_names=["other"]).run(),
        lambda: plan(rows(), label="label", label_texts=[1, 2, 3]).run(),
        lambda: plan(str(broken)).run(),
        lambda: plan(str(csv), unit="unit").run(),
        lambda: plan(rows(), method="plain", reference=9, epsilon=0).run(),
        lambda: dpinfer.Sampler(vocab=8, references=2, rho=1, tokens=1, top_k=0).step(
            [0.0] * 8, [[SECRET] * 8] * 2),
        lambda: plan(rows()).run(job=broken),
        lambda: dpinfer.resume(folder, records=rows()),
        lambda: plan([{"text": SECRET, "unit": 10**5000}] * 4, unit="unit", batch=100),
    ]


def everything(error: BaseException) -> str:
    """All that a traceback shows, without the lines of this file."""
    shown = io.StringIO()
    traceback.print_exception(type(error), error, error.__traceback__, file=shown)
    kept = [line for line in shown.getvalue().splitlines() if not line.startswith("    ")]
    return "\n".join([*kept, str(error), repr(error), repr(error.args)])


def test_messages(model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    raised = 0
    for call in failures(model, tmp_path):
        try:
            call()
        except (dpinfer.Error, TypeError) as error:
            raised += 1
            assert SECRET not in everything(error)
    assert raised >= 15


def test_objects(model: dpinfer.Model, capfd: Any) -> None:
    records = dpinfer.Records(rows(), unit="unit", label="label")
    plan = dpinfer.plan(model, records, **OPTIONS)
    shown = [repr(records), str(records), repr(plan), str(plan)]
    release = plan.run(progress=True)
    shown += [repr(release), release.report.text(), release.report.text("html"), repr(plan.claim),
              release.claim.statement(), str(release.progress), str(plan.settings)]
    out, err = capfd.readouterr()
    assert not [text for text in [*shown, out, err] if f"{SECRET} text" in text]
    assert not [text for text in [*shown, out, err] if f"{SECRET} unit" in text]


def test_pandas(model: dpinfer.Model) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows())
    with pytest.raises(dpinfer.ArgumentError) as caught:
        dpinfer.plan(model, frame, text="none", **OPTIONS)
    assert SECRET not in str(caught.value) and "'unit'" in str(caught.value)


def test_path(model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    """The same from a file, whose lines are broken in the middle."""
    path = write_jsonl(tmp_path / "records.jsonl", rows())
    with open(path, "a") as file:
        file.write(f'{{"text": "{SECRET}')
    release = dpinfer.run(model, path, **OPTIONS)
    assert release.null_records is not None and SECRET not in repr(release) + str(release.claim)
