"""Budgets that are kept."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys
from typing import Any

import dpinfer
import pytest
from conftest import child, made_up, program

OPTIONS: Any = {"epsilon": 1, "delta": 1e-4, "batch": 4, "texts": 1, "tokens": 4,
                "description": "letters"}


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> dpinfer.Ledger:
    made = dpinfer.Ledger(tmp_path / "year.ledger", create=True)
    made.add("letters", epsilon=2, delta=1e-4)
    return made


def test_charge(model: dpinfer.Model, ledger: dpinfer.Ledger) -> None:
    before = ledger.info("letters")
    assert before["charged"] == 0 and before["left"] == before["budget"] > 0
    plan = dpinfer.plan(model, made_up(12), ledger=ledger, dataset="letters", **OPTIONS)
    assert ledger.info("letters") == before  # a plan charges nothing
    release = plan.run()
    after = ledger.info("letters")
    assert 0 < after["charged"] < after["budget"]
    assert after["left"] == pytest.approx(after["budget"] - after["charged"])
    assert after["epsilon_charged"] >= release.claim.epsilon * (1 - 1e-6)
    [charge] = ledger.charges("letters")
    assert charge["amount"] == after["charged"] and "replace-by-null" in charge["unit"]
    assert release.report.verify(ledger=ledger).ok
    other = dpinfer.Ledger(str(ledger.path) + ".other", create=True)
    other.add("letters", epsilon=2, delta=1e-4)
    with pytest.raises(dpinfer.StateError):
        release.report.verify(ledger=other)


def test_table_of_charges(model: dpinfer.Model, ledger: dpinfer.Ledger) -> None:
    pytest.importorskip("pandas")
    dpinfer.plan(model, made_up(12), **OPTIONS).run(ledger, "letters")
    assert ledger.to_pandas("letters")["amount"].tolist() == [ledger.info("letters")["charged"]]


def test_budget(model: dpinfer.Model, ledger: dpinfer.Ledger) -> None:
    plan = dpinfer.plan(model, made_up(12), **OPTIONS)
    with pytest.raises(dpinfer.BudgetExceeded) as refused:
        for _ in range(10):
            info = ledger.info("letters")
            plan.run(ledger=ledger, dataset="letters")
    error = refused.value
    assert info["charged"] > 0
    assert error.spent == info["charged"] and error.left == pytest.approx(info["left"])
    assert error.asked is not None and error.asked > error.left
    assert ledger.info("letters") == info and not error.release.texts
    with pytest.raises(dpinfer.BudgetExceeded) as caught:  # and a plan tells it before
        dpinfer.plan(model, made_up(12), ledger=ledger.path, dataset="letters", **OPTIONS)
    assert caught.value.asked == error.asked


# It ends where the library first asks whether to go on: in the begin of the release.
KILLED = """
import os, signal, sys
import dpinfer
from conftest import at_call, made_up
from test_ledger import OPTIONS
plan = dpinfer.plan(dpinfer.Model(sys.argv[1]), made_up(12), **OPTIONS)
release = plan.start(sys.argv[2], "letters")
sys.settrace(at_call("_cancel", 1, lambda: os.kill(os.getpid(), signal.SIGKILL)))
list(release)
"""


def test_charged_before_the_first_record(model_path: str, ledger: dpinfer.Ledger) -> None:
    path = str(ledger.path)
    assert child(KILLED, model_path, path).returncode == -signal.SIGKILL
    assert ledger.info("letters")["charged"] > 0


def test_charge_is_given_back(model: dpinfer.Model, ledger: dpinfer.Ledger,
                              tmp_path: pathlib.Path) -> None:
    """A run that fails before a record was read costs nothing."""
    folder = tmp_path / "records"
    folder.mkdir()
    for i, text in enumerate(made_up(8)):
        (folder / f"{i}.txt").write_text(text)
    release = dpinfer.plan(model, str(folder), **OPTIONS).start(ledger, "letters")
    release.close()
    assert ledger.info("letters")["charged"] == 0


RACER = """
import sys
import dpinfer
from conftest import made_up
from test_ledger import OPTIONS
plan = dpinfer.plan(dpinfer.Model(sys.argv[1]), made_up(12), **OPTIONS)
done = 0
for _ in range(2):
    try:
        done += plan.run(sys.argv[2], "letters").complete
    except dpinfer.BudgetExceeded:
        pass
print(done)
"""


def test_processes(model: dpinfer.Model, model_path: str, ledger: dpinfer.Ledger,
                   tmp_path: pathlib.Path) -> None:
    """Three processes of two runs each have no more together than one after the other would."""
    alone = dpinfer.Ledger(tmp_path / "alone.ledger", create=True)
    alone.add("letters", epsilon=2, delta=1e-4)
    plan = dpinfer.plan(model, made_up(12), **OPTIONS)
    allowed = 0
    try:
        while allowed < 6:
            plan.run(alone, "letters")
            allowed += 1
    except dpinfer.BudgetExceeded:
        pass
    assert 1 <= allowed < 6
    here = pathlib.Path(__file__).parent
    racers = [subprocess.Popen([sys.executable, "-c", RACER, model_path, str(ledger.path)],
                               stdout=subprocess.PIPE, cwd=here) for _ in range(3)]
    assert sum(int(racer.communicate()[0]) for racer in racers) == allowed
    assert ledger.info("letters")["charged"] == alone.info("letters")["charged"]
    assert len(list(ledger.charges("letters"))) == allowed


def test_whom_a_dataset_protects(model: dpinfer.Model, ledger: dpinfer.Ledger) -> None:
    ledger.add("people", epsilon=2, delta=1e-4, unit="patient", max_per_unit=3,
               adjacency="replace-by-null")
    assert "'patient', at most 3" in ledger.info("people")["unit"]
    with pytest.raises(dpinfer.ArgumentError, match="protect nobody"):
        dpinfer.plan(model, made_up(12), **OPTIONS).run(ledger, "people")
    rows = [{"text": text, "patient": i // 2} for i, text in enumerate(made_up(12))]
    dpinfer.plan(model, rows, unit="patient", max_per_unit=3, **OPTIONS).run(ledger, "people")
    assert ledger.info("people")["charged"] > 0
    for wrong in ({"unit": ""}, {"unit": "a" * 128}, {"unit": "a\0"}, {"max_per_unit": 2},
                  {"adjacency": "none"}, {"unit": "a", "max_per_unit": -1}):
        with pytest.raises(dpinfer.ArgumentError):
            ledger.add("others", epsilon=2, delta=1e-4, **wrong)


def test_datasets(ledger: dpinfer.Ledger, tmp_path: pathlib.Path) -> None:
    ledger.add("notes", epsilon=1, delta=1e-5)
    assert [one["name"] for one in ledger.datasets] == ["letters", "notes"]
    with pytest.raises(dpinfer.Error):
        ledger.add("notes", epsilon=1, delta=1e-5)
    ledger.seal("notes")
    with pytest.raises(dpinfer.ArgumentError):
        ledger.info("none")
    assert list(ledger.charges("letters")) == []
    ledger.close()
    with pytest.raises(dpinfer.StateError):
        ledger.info("letters")
    with pytest.raises(dpinfer.FileError):
        dpinfer.Ledger(tmp_path / "none.ledger")
    other = tmp_path / "other.ledger"
    other.write_text("no ledger")
    with pytest.raises(dpinfer.Error):
        dpinfer.Ledger(other)
    assert "letters" in program("ledger", "show", str(tmp_path / "year.ledger"))
