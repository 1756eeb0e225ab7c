"""Records of any content, from any table."""

from __future__ import annotations

import datetime
from typing import Any, List

import dpinfer
import numpy as np
import pytest

hypothesis = pytest.importorskip("hypothesis")
given, st = hypothesis.given, hypothesis.strategies

texts = st.text(st.characters(), max_size=30)  # with lone surrogates, NUL and all others
values = st.one_of(
    texts, st.none(), st.booleans(), st.integers(), st.integers(10**300, 10**310),
    st.floats(), st.binary(max_size=5), st.lists(st.integers(), max_size=2), st.dates(),
    st.decimals(), st.complex_numbers())
keys = st.sampled_from(["text", "unit", "label", "other"])


@given(st.lists(st.one_of(texts, st.none()), max_size=20))
def test_list_of_texts(rows: List[Any]) -> None:
    records = dpinfer.Records(rows)
    assert len(records) == records.units == len(rows)


@given(st.lists(st.dictionaries(keys, values, max_size=4), max_size=12))
def test_list_of_dicts(rows: List[Any]) -> None:
    """Any value keeps its place."""
    first = {"text": "a", "unit": "u", "label": "l"}
    records = dpinfer.Records([first, *rows], unit="unit", label="label")
    assert len(records) == 1 + len(rows) and 1 <= records.units <= len(records)


@given(st.lists(st.lists(values, min_size=3, max_size=3), max_size=12))
def test_pandas(rows: List[Any]) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rows, columns=["text", "unit", "label"], dtype=object)
    records = dpinfer.Records(frame, unit="unit", label=["label"])
    assert len(records) == len(rows)


@given(st.lists(st.tuples(st.one_of(texts, st.none()), st.one_of(st.none(), st.integers(0, 5))),
                max_size=12))
def test_same_units_in_all_forms(rows: List[Any]) -> None:
    """A unit is one in all forms: pandas makes floats of whole numbers where one is missing."""
    pd = pytest.importorskip("pandas")
    dicts = [{"text": text, "unit": unit} for text, unit in rows]
    expected = dpinfer.Records([*dicts, {"text": "a", "unit": 9}], unit="unit").units
    columns = {"text": [*(text for text, _ in rows), "a"], "unit": [*(u for _, u in rows), 9]}
    for unit in (columns["unit"], pd.array(columns["unit"], dtype="Int64"),
                 pd.array(columns["unit"], dtype="Float64")):
        frame = pd.DataFrame({"text": pd.Series(columns["text"], dtype=object), "unit": unit})
        assert dpinfer.Records(frame, unit="unit").units == expected


@given(st.lists(st.text(max_size=20), min_size=1, max_size=12), st.integers(0, 3))
def test_polars_and_arrow(rows: List[str], unit: int) -> None:
    pl = pytest.importorskip("polars")
    pa = pytest.importorskip("pyarrow")
    columns = {"text": rows, "unit": [i % (unit + 1) for i in range(len(rows))]}
    expected = dpinfer.Records(pl.DataFrame(columns), unit="unit")
    for table in (pa.table(columns), pa.table(columns).to_batches()[0],
                  pl.DataFrame(columns).with_columns(pl.col("text").cast(pl.Categorical))):
        records = dpinfer.Records(table, unit="unit")
        assert (len(records), records.units) == (len(rows), expected.units)


def test_columns() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": ["a", "b"], "unit": [1, 1]})
    assert dpinfer.Records(frame, unit="unit").units == 1
    for wrong in (lambda: dpinfer.Records(frame, text="letter"),
                  lambda: dpinfer.Records(frame, unit="patient"),
                  lambda: dpinfer.Records([{"letter": "a"}]),
                  lambda: dpinfer.Records(["a"], unit="patient"),
                  lambda: dpinfer.Records(frame.rename(columns={"unit": "text"}))):
        with pytest.raises(dpinfer.ArgumentError, match=r"patient|text|letter"):
            wrong()
    assert len(dpinfer.Records(frame[:0], unit="unit")) == 0
    assert len(dpinfer.Records([])) == 0
    assert len(dpinfer.Records(pd.DataFrame({"text": []}))) == 0
    with pytest.raises(dpinfer.ArgumentError):
        dpinfer.Records(pd.DataFrame())
    numbered = pd.DataFrame([["a", 1]])  # columns 0 and 1
    assert len(dpinfer.Records(numbered, text="0", unit="1")) == 1


def test_numpy() -> None:
    assert len(dpinfer.Records(np.array(["a", "b"]))) == 2
    assert len(dpinfer.Records(np.array(["a", None], object))) == 2
    rows = [{"text": np.str_("a"), "unit": np.int64(3)}, {"text": "b", "unit": 3}]
    assert dpinfer.Records(rows, unit="unit").units == 1


def test_no_records(model: dpinfer.Model) -> None:
    with pytest.raises(dpinfer.Error):
        dpinfer.plan(model, [], epsilon=1, description="letters")


def test_wrong_types() -> None:
    loop: List[Any] = []
    loop.append(loop)
    for wrong in (5, 1.5, None, b"bytes", {"text": ["a"]}, object(), [5], [["a"]], [b"a"], loop,
                  datetime.date(2000, 1, 1), lambda: None, np.array([1.5]), dpinfer.Model):
        with pytest.raises(TypeError):
            dpinfer.Records(wrong)
