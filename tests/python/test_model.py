"""Models, tokenizers, sessions."""

from __future__ import annotations

import gc
import pathlib
import signal
import sys
import threading

import dpinfer
import numpy as np
import pytest
from conftest import at_call, data_path, nmse

TEXTS = ["The first of several texts.", "Another one, that is longer than the first.", "A third."]


def test_info(model: dpinfer.Model) -> None:
    assert model.info["n_vocab"] == 300 and model.info["n_embd"] == 32
    assert model.metadata["general.architecture"] == "llama"
    assert model.tensors["token_embd.weight"][1][:2] == (32, 300)
    assert "300 tokens" in repr(model)


def test_tokenizer() -> None:
    tokenizer = dpinfer.Model.builtin(vocab_only=True).tokenizer
    with pytest.raises(dpinfer.ArgumentError, match="gone"):
        tokenizer.encode("its model is not kept")
    model = dpinfer.Model.builtin()
    for text in ["", "a", "Dear patient, you had a fever.", "naïve 漢字 🙂 \t\n"]:
        assert model.tokenizer.decode(model.tokenizer.encode(text)) == text
    assert model.tokenizer.encode("a", bos=True)[0] == model.tokenizer.bos
    token = model.tokenizer.find(" patient")
    assert token is not None and model.tokenizer.decode([token] * 2).endswith(" patient")
    prompt = model.tokenizer.prompt("Write.", system="Be short.", turns=[("Hello", "Yes?")])
    shown = model.tokenizer.show(prompt)
    assert shown.index("Be short.") < shown.index("Hello") < shown.index("Yes?")
    assert shown.index("Yes?") < shown.index("Write.")
    assert any(model.tokenizer.is_end(token) for token in range(model.info["n_vocab"]))


@pytest.mark.parametrize("name", ["stories260K", "tiny-llama3-F32", "tiny-gqa-F32"])
def test_golden(name: str) -> None:
    tokens = [int(word) for word in pathlib.Path(data_path("golden/tokens64.txt")).read_text()
              .split()]
    expected = np.fromfile(data_path(f"golden/{name}.exact.f32"), np.float32).reshape(64, -1)
    model = dpinfer.Model(data_path(f"models/{name}.gguf"))
    session = model.session(seq=1, context=64, exact=1, kv_type="f32")
    found = session.prefill(tokens, all_logits=True)
    assert found is not None and found.shape == expected.shape
    assert nmse(found, expected) < 1e-9
    assert np.array_equal(session.logits(), found[-1])


def alone(model: dpinfer.Model, text: str) -> np.ndarray:
    with model.session(context=64) as session:
        session.prefill(model.tokenizer.encode(text))
        session.step([7])
        return session.logits()


def test_purity() -> None:
    """A row is that of a session alone, whatever is beside it."""
    model = dpinfer.Model.builtin()
    session = model.session(seq=3, context=64)
    for i, text in enumerate(TEXTS):
        session.prefill(model.tokenizer.encode(text), seq=i)
    session.step([7, 7, 7], seqs=[2, 0, 1])
    for i, text in enumerate(TEXTS):
        assert np.array_equal(session.logits(i), alone(model, text))


def test_fork_and_reset(model: dpinfer.Model) -> None:
    tokens = model.tokenizer.encode(TEXTS[0])
    session = model.session(seq=3, context=64)
    session.prefill(tokens)
    session.fork(0, 1)
    assert session.length(1) == len(tokens)
    assert np.array_equal(session.logits(1), session.logits(0))
    session.fork(0, 2, len(tokens) - 2)
    session.prefill(tokens[-2:], seq=2)
    assert np.array_equal(session.logits(2), session.logits(0))
    copy = session.logits(0)
    session.reset(0)
    assert session.length(0) == 0 and session.length(1) == len(tokens)
    with pytest.raises(dpinfer.ArgumentError, match="no logits"):
        session.logits(0)
    assert np.array_equal(copy, session.logits(1))  # a copy is the caller's
    for wrong in (3, -1):
        with pytest.raises(dpinfer.ArgumentError):
            session.reset(wrong)
        with pytest.raises(dpinfer.ArgumentError):
            session.length(wrong)
    with pytest.raises(dpinfer.ArgumentError):
        session.fork(0, 0)


def test_features(model: dpinfer.Model) -> None:
    session = model.session(context=64)
    session.prefill(model.tokenizer.encode(TEXTS[0]))
    features = session.features()
    assert features.shape == (32,) and features.dtype == np.float32 and features.any()


def test_limit(model: dpinfer.Model) -> None:
    session = model.session(context=8)
    session.prefill([5] * 6)
    before = session.logits()
    with pytest.raises(dpinfer.LimitError):
        session.prefill([5] * 3)
    assert session.length() == 6 and np.array_equal(before, session.logits())
    with pytest.raises(dpinfer.ArgumentError, match=r"0\.\.299"):
        session.prefill([300])


def test_close(model: dpinfer.Model) -> None:
    session = model.session(context=8)
    with pytest.raises(dpinfer.StateError, match="an open Session needs it"):
        model.close()
    session.close()
    session.close()
    with pytest.raises(dpinfer.StateError, match="closed"):
        session.prefill([5])
    model.close()
    for call in (lambda: model.session(), lambda: model.tokenizer.encode("a"),
                 lambda: model.metadata):
        with pytest.raises(dpinfer.StateError, match="closed"):
            call()
    assert repr(model) == "<Model, closed>"


def test_session_keeps_its_model(model_path: str) -> None:
    session = dpinfer.Model(model_path).session(context=8)
    gc.collect()
    session.prefill([5])
    assert session.logits().shape == (300,)


def test_two_threads() -> None:
    """While a call runs in one thread, another thread gets a StateError."""
    session = dpinfer.Model.builtin().session(context=512, threads=1)
    seen = []

    def other() -> None:
        for call in (session.logits, session.length, session.close, lambda: session.prefill([5])):
            try:
                call()
                seen.append("no error")
            except dpinfer.StateError as error:
                seen.append(str(error))

    def beside() -> None:
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()

    sys.settrace(at_call("_cancel", 1, beside))
    try:
        session.prefill([5] * 500)
    finally:
        sys.settrace(None)
    assert len(seen) == 4 and all("second thread" in message for message in seen)
    assert session.length() == 500


def test_signal_in_a_long_call() -> None:
    session = dpinfer.Model.builtin().session(context=512)
    sys.settrace(at_call("_cancel", 1, lambda: signal.raise_signal(signal.SIGINT)))
    try:
        with pytest.raises(KeyboardInterrupt):
            session.prefill([5] * 500)
    finally:
        sys.settrace(None)
    session.reset()
    session.prefill([5])
    assert session.length() == 1


def test_files(tmp_path: pathlib.Path, model_path: str) -> None:
    with pytest.raises(dpinfer.FileError, match="nothing"):
        dpinfer.Model(tmp_path / "nothing.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(pathlib.Path(model_path).read_bytes()[:100])
    with pytest.raises(dpinfer.FormatError) as caught:
        dpinfer.Model(broken)
    assert caught.value.offset is not None and caught.value.status == "FORMAT"
    with pytest.raises(OSError):  # as others catch it
        dpinfer.Model(tmp_path / "nothing.gguf")
