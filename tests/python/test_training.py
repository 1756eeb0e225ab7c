"""Training and steering vectors: public records are read as the private ones are."""

from __future__ import annotations

import pathlib

import dpinfer
import pytest


def test_held_out_with_labels(tmp_path: pathlib.Path) -> None:
    rows = [{"letter": f"You had a {kind}.", "kind": kind} for kind in ("burn", "fever")] * 10
    training = dpinfer.Training(
        dpinfer.Model.builtin(), rows, text="letter", label="kind", labels=["burn", "fever"],
        instruction="Write about a {label}.", held_out=rows[:2], epsilon=8, delta=1e-3, units=100,
        steps=1, expected=4, positions=64, seed=1)
    assert training.run(tmp_path / "adapter.gguf").held_out_loss() > 0


def made_up(n: int) -> list:
    return [{"letter": f"You had a {kind}. Rest for {i} days.", "kind": kind}
            for i in range(n) for kind in ("burn", "fever")]


def test_steering_vectors(tmp_path: pathlib.Path) -> None:
    model, ledger = dpinfer.Model.builtin(), tmp_path / "year.ledger"
    with dpinfer.Ledger(ledger, create=True) as kept:
        kept.add("letters", epsilon=9, delta=1e-2)
        made = dpinfer.steer(
            model, made_up(10), tmp_path / "s.gguf", text="letter", label="kind", epsilon=8,
            delta=1e-3, description="letters about a {label}", public_texts=made_up(2),
            positions=96, layers=[1, 2], ledger=kept, dataset="letters")
        assert kept.info("letters")["n_charges"] == 1
        assert made.claim.epsilon <= 8 and 0 <= made.drowned <= 2
        with pytest.raises(dpinfer.StateError):
            made.run(tmp_path / "again.gguf")
        made.close()
    assert dpinfer.file_claim(tmp_path / "s.gguf").epsilon <= 8
    texts = dpinfer.generate(model, steer=tmp_path / "s.gguf", texts=4, tokens=5)
    labels = [t["text_label"] for t in texts.texts]
    assert labels == ["burn", "fever", "burn", "fever"]
    with pytest.raises(dpinfer.ArgumentError, match=r"found no \{label\}"):
        dpinfer.Steering(model, made_up(10), text="letter", label="kind", epsilon=8, delta=1e-3,
                         description="letters")
    steered = dpinfer.Model(model.path, control_vector=tmp_path / "s.gguf",
                            control_vector_scale=50)
    with pytest.raises(dpinfer.Unsupported, match="2 sets"):
        dpinfer.Session(steered)
    with dpinfer.Session(steered, seq=3, context=8, steers=True) as session:
        for seq in range(2):
            session.steer(seq, seq)
            session.prefill([1, 2, 3], seq)
        session.fork(1, 2)
        assert (session.logits(1) == session.logits(2)).all()
        assert (session.logits(0) != session.logits(1)).any()
