"""Plans, runs, and runs that go on."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import sys
from typing import Any, Callable, Dict, List

import dpinfer
import pytest
from conftest import at_call, child, made_up, program, write_jsonl
from dpinfer import _release

OPTIONS: Dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "batch": 4, "texts": 3, "tokens": 8,
                           "description": "letters"}
SEEDED = {**OPTIONS, "seed": 7}


def texts_of(release: dpinfer.Release) -> List[str]:
    return [one.text for one in release.texts]


# ---- Records -----------------------------------------------------------------------------------


def from_rows(form: str, rows: List[Dict[str, Any]], path: pathlib.Path) -> Any:
    """The same records in a form."""
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    if form == "dicts":
        return rows
    if form == "path":
        return write_jsonl(path / "records.jsonl", rows)
    if form == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if form == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    arrow = pytest.importorskip("pyarrow").table(columns)
    if form == "arrow":
        return arrow

    class Stream:
        """No library's: the PyCapsule protocol alone."""

        def __arrow_c_stream__(self, requested: Any = None) -> Any:
            return arrow.__arrow_c_stream__(requested)

    return Stream()


FORMS = ["dicts", "path", "pandas", "polars", "arrow", "stream"]


@pytest.fixture(scope="module")
def rows() -> List[Dict[str, Any]]:
    made: List[Dict[str, Any]] = [{"letter": text, "patient": i // 2, "ward": "ab"[i // 2 % 2]}
                                  for i, text in enumerate(made_up(24))]
    made[5]["letter"] = None
    return made


@pytest.fixture(scope="module")
def expected(model_path: str, rows: List[Dict[str, Any]],
             tmp_path_factory: pytest.TempPathFactory) -> List[Dict[str, Any]]:
    """What the program writes with the same seed."""
    records = write_jsonl(tmp_path_factory.mktemp("records") / "records.jsonl", rows)
    out = program("run", model_path, records, "--text-field", "letter", "--unit-field", "patient",
                  "--label-field", "ward", "--seed", "7", "--epsilon", "8", "--delta", "1e-3", "-B",
                  "4", "--num", "2", "-n", "8", "--describe", "letters", "--jsonl")
    return [json.loads(line) for line in out.splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_same_texts_as_the_program(form: str, model: dpinfer.Model, rows: List[Dict[str, Any]],
                                   expected: List[Dict[str, Any]], tmp_path: pathlib.Path) -> None:
    plan = dpinfer.plan(model, from_rows(form, rows, tmp_path), text="letter", unit="patient",
                        label="ward", **{**SEEDED, "texts": 2})
    release = plan.run()
    assert release.complete and len(release) == 2
    assert texts_of(release) == [one["text"] for one in expected]
    assert [one.label for one in release.texts] == ["a", "b"]
    assert not release.claim.is_private and "NOT PRIVATE" in repr(release)


def test_texts(model: dpinfer.Model) -> None:
    """A list of texts; each way to have what comes of it."""
    release = dpinfer.run(model, made_up(12), **SEEDED)
    texts = texts_of(release)
    assert [str(one) for one in release] == texts  # those that are there
    started = dpinfer.plan(model, made_up(12), **SEEDED).start()
    assert "not over" in repr(started)
    assert [one.text for one in started] == texts  # as they come
    assert started.complete and release[1].index == 1 and len(release) == 3
    frame = pytest.importorskip("pandas").DataFrame(release.to_dicts()).set_index("index")
    assert release.to_pandas().equals(frame)
    pytest.importorskip("pyarrow")
    assert release.to_arrow().to_pylist() == release.to_dicts()
    assert release.progress["n_drawn"] == sum(one.tokens for one in release.texts)
    assert release.null_records == 0
    for one in release.texts:
        assert one.end in ("length", "eog") and one.tokens <= 8


def test_plan(model: dpinfer.Model) -> None:
    plan = dpinfer.plan(model, made_up(12), **OPTIONS)
    assert plan.epsilon is not None and 7.99 < plan.epsilon <= 8 and plan.delta == 1e-3
    assert plan.settings["n_tokens"] == 8 and plan.settings["n_texts"] == 3
    sampler = dpinfer.Sampler(vocab=300, references=4, epsilon=8, delta=1e-3, tokens=8)
    assert dpinfer.plan(model, made_up(12), pace="none", **OPTIONS).clip == sampler.plan["clip"]
    text = str(plan)
    for line in ("guarantee", "clip bound C", "memory", "time"):
        assert line in text
    assert plan.claim.is_private and "zCDP" in repr(plan)
    assert "zCDP" not in repr(dpinfer.plan(model, made_up(12), **SEEDED))
    assert "letters" in json.dumps(plan.prompts)
    assert dpinfer.plan(model, n_records=12, **OPTIONS).claim.epsilon == plan.epsilon
    with pytest.raises(dpinfer.StateError):
        dpinfer.plan(model, n_records=12, **OPTIONS).run()
    with pytest.raises(dpinfer.ArgumentError, match="unit: allowed with records"):
        dpinfer.plan(model, dpinfer.Records(made_up(12)), unit="a", **OPTIONS)


def test_a_run_is_what_was_planned(model: dpinfer.Model, monkeypatch: Any) -> None:
    """The pace is found from random public texts: not a second time for the run of a plan."""
    plan = dpinfer.plan(model, made_up(12), **OPTIONS)
    settled = []
    again = _release._Settings.open
    monkeypatch.setattr(_release._Settings, "open", lambda self, *args: (
        settled.append(1), again(self, *args))[1])
    release = plan.run()
    assert not settled and release.claim.to_json() == plan.claim.to_json()
    plan.run()  # another run, of its own
    assert len(settled) == 1 and plan.claim.to_json() == release.claim.to_json()
    assert "guarantee" in str(plan) and "zCDP" in repr(plan) and plan.prompts
    release.close()
    plan.close()
    assert repr(plan) == "<Plan, closed>"
    with pytest.raises(dpinfer.StateError, match="closed"):
        plan.run()


def test_wording(model: dpinfer.Model) -> None:
    plan = dpinfer.plan(model, made_up(12), stops=["\n\n", "END"], bans=["x"], min_words=1,
                        **OPTIONS)
    assert plan.wording["stops"][-2:] == ["\n\n", "END"] and plan.wording["bans"] == ["x"]
    forced = dpinfer.plan(model, made_up(12), grammar='root ::= "yes" | "no"', **OPTIONS).run()
    assert set(texts_of(forced)) <= {"yes", "no"}
    schema = {"type": "object", "properties": {"a": {"enum": ["b"]}}, "required": ["a"]}
    made = dpinfer.plan(model, made_up(12), json_schema=schema, **{**OPTIONS, "tokens": 40}).run()
    assert all(json.loads(text) == {"a": "b"} for text in texts_of(made))
    token = model.tokenizer.encode("e")[-1]
    biased = dpinfer.plan(model, made_up(12), logit_bias={token: 100.0}, **OPTIONS).run()
    assert texts_of(biased) != texts_of(forced)
    with pytest.raises(dpinfer.ArgumentError, match="one of them"):
        dpinfer.plan(model, made_up(12), grammar="root ::= []", json_schema={}, **OPTIONS)
    with pytest.raises(dpinfer.FormatError):
        dpinfer.plan(model, made_up(12), grammar="root ::= (", **OPTIONS)


def test_cancel(model: dpinfer.Model) -> None:
    release = dpinfer.plan(model, made_up(12), **SEEDED).start()
    iterator = iter(release)
    first = next(iterator)
    release.cancel()
    with pytest.raises(dpinfer.Cancelled):
        list(iterator)
    assert release.texts[0] == first and not release.complete
    assert release.report.verify().ok


# ---- Jobs --------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import dpinfer
from test_release import SEEDED
from conftest import made_up
release = dpinfer.plan(dpinfer.Model(sys.argv[1]), made_up(12), **SEEDED).start(job=sys.argv[2])
for _ in range(int(sys.argv[3])):
    release._advance()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("events", [1, 20, 35])
def test_killed_and_resumed(events: int, model: dpinfer.Model, model_path: str,
                            tmp_path: pathlib.Path) -> None:
    texts = texts_of(dpinfer.run(model, made_up(12), **SEEDED))
    job = str(tmp_path / "job")
    assert child(KILLED, model_path, job, str(events)).returncode == -signal.SIGKILL
    with pytest.raises(dpinfer.ArgumentError, match="from memory"):
        dpinfer.resume(job)
    release = dpinfer.resume(job, records=made_up(12))
    assert release.complete and texts_of(release) == texts


def test_killed_before_it_began(model: dpinfer.Model, model_path: str,
                                tmp_path: pathlib.Path) -> None:
    job = str(tmp_path / "job")
    assert child(KILLED, model_path, job, "0").returncode == -signal.SIGKILL
    with pytest.raises(dpinfer.StateError, match="no job has begun"):
        dpinfer.resume(job, records=made_up(12))
    assert len(dpinfer.plan(model, made_up(12), **SEEDED).run(job=job)) == 3


def test_resume(model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    """From a path; what is over is not drawn again; other records are refused."""
    records = write_jsonl(tmp_path / "records.jsonl", made_up(12))
    job = tmp_path / "job"
    plan = dpinfer.plan(model, records, logit_bias={5: 1.0}, **OPTIONS)  # the system's bits
    whole = plan.run(job=job)
    texts = texts_of(whole)
    assert whole.complete and whole.report.verify().ok and whole.claim.epsilon == plan.epsilon
    assert texts_of(dpinfer.resume(job)) == texts
    with pytest.raises(dpinfer.Error):
        dpinfer.resume(job, records=made_up(13))
    with pytest.raises(dpinfer.Error):
        plan.run(job=job)
    with pytest.raises(dpinfer.FileError):
        dpinfer.resume(tmp_path / "none")
    program("run", str(model.path), records, "--epsilon", "8", "--delta", "1e-3", "-B", "4", "-n",
            "2", "--num", "1", "--describe", "letters", "--job", str(tmp_path / "other"))
    with pytest.raises(dpinfer.ArgumentError, match="dpinfer resume"):
        dpinfer.resume(tmp_path / "other")


# ---- Signals -----------------------------------------------------------------------------------


def interrupted(begin: Callable[[], Any], trace: Any) -> dpinfer.Release:
    sys.settrace(trace)
    try:
        with pytest.raises(dpinfer.Interrupted) as caught:
            begin()
    finally:
        sys.settrace(None)
    return caught.value.release


def at_line(functions: Any, number: int) -> Any:
    """A function for sys.settrace: a signal before the number-th line of these functions."""
    codes = {function.__code__ for function in functions}
    left = number

    def lines(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left == 0:
                signal.raise_signal(signal.SIGINT)
        return lines

    def trace(frame: Any, event: str, argument: Any) -> Any:
        return lines if frame.f_code in codes else None

    return trace


def check_interrupted(release: dpinfer.Release, texts: List[str]) -> None:
    """Every token that was drawn is there, and in its place."""
    assert sum(one.tokens for one in release.texts) == release.progress["n_drawn"]
    for one in release.texts:
        assert texts[one.index].startswith(one.text.rstrip("\ufffd"))  # a character that was cut
        assert one.end == "cancelled" or one.text == texts[one.index]


# Three texts of eight tokens are some 400 lines: the first of them one by one, then others.
@pytest.mark.parametrize("number", [*range(4, 26), *range(26, 380, 13)])
def test_interrupted(number: int, model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    """A signal before any line of a run, between any two events."""
    plan = dpinfer.plan(model, made_up(12), parallel=1, **SEEDED)
    texts = texts_of(plan.run())
    release = interrupted(lambda: plan.run(job=tmp_path / "job"),
                          at_line((_release.Release._advance, _release._settle_ledger), number))
    check_interrupted(release, texts)
    release.close()
    assert texts_of(dpinfer.resume(tmp_path / "job", records=made_up(12))) == texts


def test_interrupted_in_c(model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    """A signal in the middle of a call: the library asks whether to go on (_cancel)."""
    plan = dpinfer.plan(model, made_up(12), **SEEDED)
    texts = texts_of(plan.run())
    for number in (1, 2, 5):
        job = tmp_path / str(number)
        started = plan.start(job=job)
        release = interrupted(lambda release=started: _release._finish(release, False), at_call(
            "_cancel", number, lambda: signal.raise_signal(signal.SIGINT)))
        check_interrupted(release, texts)
        assert release.report.verify().ok
        release.close()
        assert texts_of(dpinfer.resume(job, records=made_up(12))) == texts


def test_release_outlives_its_names(model_path: str) -> None:
    release = dpinfer.plan(dpinfer.Model(model_path), made_up(12), **SEEDED).start()
    assert len(list(release)) == 3
    assert os.path.basename(str(release.model.path)) == "m.gguf"
    with pytest.raises(dpinfer.StateError, match="an open Release needs it"):
        release.model.close()
    release.close()
    assert "closed" in repr(release) and len(release.texts) == 3


def test_resumed_with_another_table(model: dpinfer.Model, tmp_path: pathlib.Path) -> None:
    """The columns of records that were read before are remembered by the job."""
    rows = [{"letter": text, "other": "x"} for text in made_up(12)]
    records = dpinfer.Records(rows, text="letter")
    whole = dpinfer.plan(model, records, **SEEDED).run(job=tmp_path / "job")
    again = dpinfer.resume(tmp_path / "job", records=rows)
    assert texts_of(again) == texts_of(whole) != []
