"""Private evolution: how its texts are worded, their form, and what the report says of it."""

from __future__ import annotations

import json
from typing import Any, Dict

import dpinfer
import pytest
from conftest import made_up

OPTIONS: Dict[str, Any] = {"epsilon": 4, "delta": 1e-3, "texts": 2, "rounds": 1, "tokens": 16,
                           "seed": 2}


def test_wording(model: dpinfer.Model) -> None:
    plain = dpinfer.augpe(model, made_up(8), **OPTIONS)
    letter = next(c for c in plain.texts[0] if c.isascii() and c.isalpha())
    worded = dpinfer.augpe(model, made_up(8), bans=[letter], **OPTIONS)
    assert not any(letter in text for text in worded.texts)
    said = json.loads(worded.report.text())
    assert said["wording"]["bans"] == [letter] and worded.report.verify()
    with pytest.raises(TypeError, match="keep_answer"):
        dpinfer.augpe(model, made_up(8), keep_answer=True, **OPTIONS)


def test_form(model: dpinfer.Model) -> None:
    evolved = dpinfer.augpe(model, made_up(8), grammar='root ::= "a" | "b"', **OPTIONS)
    assert set(evolved.texts) <= {"a", "b"} and evolved.report.verify()
    with pytest.raises(dpinfer.ArgumentError, match="grammar and json_schema"):
        dpinfer.augpe(model, made_up(8), grammar="root ::= [a]", json_schema={}, **OPTIONS)
