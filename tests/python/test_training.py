"""Training: public records are read as the private ones are."""

from __future__ import annotations

import pathlib

import dpinfer


def test_held_out_with_labels(tmp_path: pathlib.Path) -> None:
    rows = [{"letter": f"You had a {kind}.", "kind": kind} for kind in ("burn", "fever")] * 10
    training = dpinfer.Training(
        dpinfer.Model.builtin(), rows, text="letter", label="kind", labels=["burn", "fever"],
        instruction="Write about a {label}.", held_out=rows[:2], epsilon=8, delta=1e-3, units=100,
        steps=1, expected=4, positions=64, seed=1)
    assert training.run(tmp_path / "adapter.gguf").held_out_loss() > 0
