"""Reports and claims."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import dpinfer
import pytest
from conftest import made_up, program

OPTIONS: Any = {"epsilon": 4, "delta": 1e-4, "batch": 4, "texts": 2, "tokens": 6,
                "description": "letters"}


@pytest.fixture
def release(model: dpinfer.Model) -> dpinfer.Release:
    return dpinfer.run(model, made_up(12), **OPTIONS)


def test_forms(release: dpinfer.Release, tmp_path: pathlib.Path) -> None:
    report = release.report
    said = json.loads(report.text())
    assert said["private"] is True and said["complete"] is True
    assert said["claim"] == json.loads(release.claim.to_json())
    for kind, begin in ((".json", "{"), (".md", "#"), (".html", "<!DOCTYPE html>"), ("", "{")):
        name = "report" + kind
        report.save(tmp_path / name)
        assert (tmp_path / name).read_text("utf-8").lstrip().lower().startswith(begin.lower())
        assert not (tmp_path / (name + ".part")).exists()
    assert "<iframe" in report._repr_html_() and "PRIVATE" in repr(report)
    with pytest.raises(dpinfer.ArgumentError, match="format"):
        report.text("pdf")
    meta = release.make_report(prompts=True, meta={"organisation": "St. Mary's"}).text()
    assert "St. Mary's" in meta and "letters" in meta


def test_verify(release: dpinfer.Release, model_path: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "r.json"
    release.report.save(path)
    loaded = dpinfer.Report.load(path)
    assert loaded.text() == path.read_text("utf-8")
    found = loaded.verify(model=model_path)
    assert found and found.ok and found.is_private and found.model_hashed
    assert "0 are wrong" in repr(found) and len(found.fields) > 50
    assert loaded.verify(model=release.model).ok
    assert not loaded.verify(model=path).ok  # another file
    assert program("verify", str(path)).startswith("verified")
    with pytest.raises(dpinfer.ArgumentError, match="json"):
        loaded.text("html")


@pytest.mark.parametrize("keys", [("statement", "epsilon"), ("private",), ("claim", "model"),
                                  ("claim", "mechanisms", 0, "T"), ("dp_definition", "unit"),
                                  ("claim", "data", "delta"), ("label",)])
def test_a_changed_field_is_wrong(keys: Any, release: dpinfer.Release) -> None:
    said = json.loads(release.report.text())
    part = said
    for key in keys[:-1]:
        part = part[key]
    old = part[keys[-1]]
    part[keys[-1]] = (not old if isinstance(old, bool) else old + "x" if isinstance(old, str) else
                      old + 1 if isinstance(old, int) else old / 2)
    found = dpinfer.Report.parse(json.dumps(said)).verify()
    assert not found and found.wrong and all(f["verdict"] == "wrong" for f in found.wrong)


def test_report_of_a_part(model: dpinfer.Model) -> None:
    release = dpinfer.plan(model, made_up(12), **OPTIONS).start()
    with pytest.raises(dpinfer.StateError, match="not begun"):
        release.make_report()
    next(iter(release))
    assert json.loads(release.report.text())["complete"] is False
    assert release.report.verify().ok
    list(release)
    assert json.loads(release.report.text())["complete"] is True


@pytest.mark.parametrize("options", [
    {}, {"accountant": "br"}, {"seed": 3}, {"method": "tang", "epsilon": 30},
    {"adjacency": "add-remove", "n_records": 100},
])
def test_claims(options: Any, model: dpinfer.Model) -> None:
    claim = dpinfer.plan(model, **{"n_records": 12, **OPTIONS, **options}).claim
    again = dpinfer.Claim.read(claim.to_json())
    assert again.to_json() == claim.to_json() and again.statement() == claim.statement()
    assert (again.epsilon, again.delta, again.rho) == (claim.epsilon, claim.delta, claim.rho)
    assert again.is_private is claim.is_private is ("seed" not in options)
    assert again.guarantee == claim.guarantee and again.label == claim.label
    assert claim.to_dict()["follows"]["epsilon"] == claim.epsilon
    assert claim.to_dict()["follows"]["label"] == claim.label
    assert (claim.guarantee in repr(claim)) is claim.is_private
    assert (claim.label in repr(claim)) is not claim.is_private
    assert claim.statement() == str(claim)
    assert "<pre>" in claim._repr_html_()


def test_wrong_claims() -> None:
    for wrong in ("", "{}", "[]", "null", '{"version": 3}', "\udc80", "\0", "{" * 100000):
        with pytest.raises(dpinfer.Error):
            dpinfer.Claim.read(wrong)
        with pytest.raises(dpinfer.Error):
            dpinfer.Report.parse(wrong)
