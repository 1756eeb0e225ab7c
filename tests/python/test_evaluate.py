"""Scores of `evaluate` against those of the field's own tools on the same texts."""

from __future__ import annotations

import random
from typing import Dict, List

import dpinfer
import numpy as np
import pytest

WORDS = (["card", "lost", "arrive", "post"], ["transfer", "pending", "account"],
         ["refund", "shop", "price"], ["I", "a", "my", "is", "not", "when", "the", "why"])


def labelled(n: int, seed: int, share: float) -> Dict[str, List[str]]:
    """n texts of nine words, of which a share tells the label."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choice(WORDS[i % 3] if draw.random() < share else WORDS[3])
                      for _ in range(9)) for i in range(n)]
    return {"text": texts, "label": ["abc"[i % 3] for i in range(n)]}


def test_classifier_is_that_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    pd = pytest.importorskip("pandas")
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.multiclass import OneVsRestClassifier

    learnt, judged = labelled(90, 1, .2), labelled(120, 2, .2)
    found = dpinfer.evaluate(pd.DataFrame(learnt), real=pd.DataFrame(judged), label="label",
                             real_is_public=True)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2))
    model = OneVsRestClassifier(LogisticRegression(solver="liblinear"))
    model.fit(vectorizer.fit_transform(learnt["text"]), learnt["label"])
    said = model.predict(vectorizer.transform(judged["text"]))
    assert found["accuracy"] == pytest.approx(accuracy_score(judged["label"], said), abs=1e-12)
    assert found["macro_f1"] == pytest.approx(
        f1_score(judged["label"], said, average="macro"), abs=1e-12)
    assert .4 < found["accuracy"] < .95


def features(model: dpinfer.Model, texts: List[str]) -> np.ndarray:
    """[n, n_embd] as docs/eval.md has them."""
    session = dpinfer.Session(model)
    rows = []
    for text in texts:
        session.reset()
        session.prefill(model.tokenizer.encode(text, bos=True))
        rows.append(session.features())
    return np.array(rows)


def test_mauve_is_that_of_mauve_text() -> None:
    """Heavy: mauve-text wants faiss. Means over seeds, since k-means begins at other points."""
    mauve = pytest.importorskip("mauve")
    model = dpinfer.Model.builtin()
    sets = [labelled(160, seed, share)["text"] for seed, share in ((3, .6), (4, .3))]
    found = dpinfer.evaluate(sets[0], real=sets[1], model=model, real_is_public=True)
    p, q = (features(model, texts) for texts in sets)
    theirs = np.mean([mauve.compute_mauve(p_features=p, q_features=q, seed=seed).mauve
                      for seed in range(5)])
    assert .1 < theirs < .9
    assert found["mauve"] == pytest.approx(theirs, abs=.05)
