"""Logits by the caller: everything is as on a model of ours, whose session computes them here."""

from __future__ import annotations

from typing import Any, Dict

import dpinfer
import numpy as np
import pytest
from conftest import made_up

OPTIONS: Dict[str, Any] = {"epsilon": 8, "delta": 1e-3, "batch": 4, "texts": 2, "tokens": 8,
                           "description": "letters", "seed": 3, "context": 256}


def outside(model: dpinfer.Model, form: str = "float32") -> dpinfer.Model:
    """The same model, with its logits from a function of Python."""
    session = model.session(threads=1)

    def logits(tokens: Any) -> Any:
        assert tokens.dtype == np.int32 and tokens.ndim == 1
        session.reset()
        session.prefill(tokens)
        found = session.logits()
        return list(found) if form == "list" else found.astype(form)

    return dpinfer.Model(model.path, logits=logits, context=256)


@pytest.mark.parametrize("form", ["float32", "float64", "list"])
def test_release(model: dpinfer.Model, form: str) -> None:
    mine = dpinfer.plan(outside(model, form), made_up(8), **OPTIONS).run()
    its = dpinfer.plan(model, made_up(8), **OPTIONS).run()
    assert mine.to_dicts() == its.to_dicts()
    assert mine.claim.epsilon == its.claim.epsilon
    assert "(logits by the caller)" in mine.claim.to_dict()["model"]
    assert mine.report.verify()


def test_session(model: dpinfer.Model) -> None:
    session, its = outside(model).session(seq=2), model.session(threads=1)
    session.prefill([5, 6, 7])
    session.fork(0, 1, 2)
    session.step([8], [1])
    its.prefill([5, 6, 8])
    assert np.array_equal(session.logits(1), its.logits())
    with pytest.raises(dpinfer.Unsupported, match="features"):
        session.features(1)


def test_failures(model: dpinfer.Model) -> None:
    def gone(tokens: Any) -> Any:
        raise RuntimeError("the engine is gone")

    with pytest.raises(RuntimeError, match="the engine is gone"):
        dpinfer.Model(model.path, logits=gone, context=256).session().prefill([1])
    short = dpinfer.Model(model.path, logits=lambda tokens: [1, 2], context=256).session()
    with pytest.raises(dpinfer.ArgumentError, match="logits: found 2 numbers, allowed 300"):
        short.prefill([1])
    assert short.length() == 0
    words = dpinfer.Model(model.path, logits=lambda tokens: "abc", context=256).session()
    with pytest.raises(TypeError, match="allowed are numbers"):
        words.prefill([1])
    with pytest.raises(dpinfer.ArgumentError, match="n_ctx"):
        dpinfer.Model(model.path, logits=gone)


def test_interrupted(model: dpinfer.Model) -> None:
    """A signal in the function ends the run at a token; what was released is there."""
    session, calls = model.session(threads=1), 0

    def logits(tokens: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 60:
            raise KeyboardInterrupt
        session.reset()
        session.prefill(tokens)
        return session.logits()

    engine = dpinfer.Model(model.path, logits=logits, context=256)
    plan = dpinfer.plan(engine, made_up(8), **{**OPTIONS, "pace": "none"})
    with pytest.raises(KeyboardInterrupt) as caught:
        plan.run()
    assert isinstance(caught.value, dpinfer.Interrupted)
    whole = dpinfer.plan(model, made_up(8), **{**OPTIONS, "pace": "none"}).run()
    for one, other in zip(caught.value.release.texts, whole.texts):
        assert other.text.startswith(one.text.strip())
