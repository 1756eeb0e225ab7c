"""The sampler, by an oracle of its law: docs/spec.md section 2, term by term."""

from __future__ import annotations

import json
from typing import Any, List, Optional

import dpinfer
import numpy as np
import pytest
from conftest import program

stats = pytest.importorskip("scipy.stats")

# Of a test with the system's bits: a sound sampler is refused with this chance.
CHANCE = 1e-10
DRAWS = 20000


def law(plan: Any, public: Any, rows: List[Optional[Any]], k: int) -> np.ndarray:
    """The probability of each token."""
    units = 2.0**20
    slots, K = len(rows), plan["K"]
    P = np.rint((public.astype(np.float64) - public.max()) * units)
    S = np.zeros(len(public))
    for row in rows:
        if row is not None:
            d = (row.astype(np.float64) - public) * units
            S += np.rint(np.clip(np.where(np.isfinite(d), d, 0), -K, K))
    U = slots * P + S
    kept = slots * P >= slots * np.sort(P)[-k] - 2 * K if k else np.ones(len(public), bool)
    weights = np.where(kept, np.exp2((U - U[kept].max()) * plan["a"] / 2.0**48), 0)
    return weights / weights.sum()


def draws(sampler: dpinfer.Sampler, public: Any, private: Any, n: int) -> np.ndarray:
    counts = np.zeros(len(public), np.int64)
    for _ in range(n):
        sampler.begin()
        counts[sampler.step(public, private)] += 1
    return counts


def chance(counts: np.ndarray, expected: np.ndarray) -> float:
    """How likely counts as far off as these are; 0 where one cannot be."""
    if counts[expected == 0].any():
        return 0.0
    seen = expected > 0
    return float(stats.chisquare(counts[seen], expected[seen] * counts.sum()).pvalue)


PUBLIC = np.array([1.0, 0.5, 0.2, -0.5, 0.0, -30.0, 0.9, 0.1], np.float32)
ROWS = np.array([[0.0, 2.0, 0.2, -0.5, 1.0, -30.0, 0.9, np.inf],
                 [1.0, 0.9, 0.0, 0.5, np.nan, -30.0, -np.inf, 0.1]], np.float32)


@pytest.mark.parametrize("null", [False, True])
@pytest.mark.parametrize("k", [0, 3])
def test_law(null: bool, k: int) -> None:
    sampler = dpinfer.Sampler(vocab=8, references=2, rho=0.05, tokens=1, top_k=k, tau=0.8)
    rows: List[Optional[Any]] = [None if null else ROWS[0], ROWS[1]]
    counts = draws(sampler, PUBLIC, rows, DRAWS)
    assert chance(counts, law(sampler.plan, PUBLIC, rows, k)) > CHANCE
    # The power: what is wrong by a slot, or has another clip bound, is seen.
    for other in ([ROWS[1], ROWS[1]], [None, None]):
        assert chance(counts, law(sampler.plan, PUBLIC, other, k)) < CHANCE
    if not null:
        double = {**sampler.plan, "K": 2 * sampler.plan["K"]}
        assert chance(counts, law(double, PUBLIC, rows, k)) < CHANCE


def strided() -> np.ndarray:
    wide = np.zeros((2, 16), np.float32)
    wide[:, ::2] = ROWS
    return wide[:, ::2]


@pytest.mark.parametrize("private", [
    ROWS, ROWS.astype(np.float64), np.asfortranarray(ROWS), strided(), list(ROWS), tuple(ROWS),
    ROWS.tolist(), [list(ROWS[0]), ROWS[1].astype(np.float16)],
])
def test_forms(private: Any) -> None:
    """The same logits in any form: a token that only the second row allows, as its public logit is
    far below and its clip bound is large."""
    sampler = dpinfer.Sampler(vocab=8, references=2, rho=1e5, tokens=4, tau=0.01, top_k=0)
    sure = int(np.argmax(law(sampler.plan, PUBLIC, list(ROWS), 0)))
    for public in (PUBLIC, PUBLIC.tolist(), PUBLIC.astype(np.float64), np.repeat(PUBLIC, 2)[::2]):
        assert sampler.step(public, private) == sure


def test_plan_is_that_of_the_program() -> None:
    for accountant in ("zcdp", "br"):
        said = json.loads(program("account", "--epsilon", "2", "--delta", "1e-6", "-n", "30", "-B",
                                  "7", "--temp", "1.2", "--accountant", accountant, "--json"))
        plan = dpinfer.Sampler(vocab=100, references=7, tokens=30, tau=1.2, epsilon=2, delta=1e-6,
                               accountant=accountant).plan
        for name, theirs in (("K", "K"), ("a", "a"), ("clip", "C"), ("eta", "eta")):
            assert plan[name] == said[theirs], name


def test_budget() -> None:
    sampler = dpinfer.Sampler(vocab=8, references=2, epsilon=1, delta=1e-5, tokens=2,
                              top_k=0)
    assert sampler.tokens_left == 2 and sampler.needs_references
    sampler.step(PUBLIC, ROWS)
    sampler.step(PUBLIC, ROWS)
    assert sampler.tokens_left == 0 and sampler.private_tokens == 2
    with pytest.raises(dpinfer.BudgetExceeded):
        sampler.step(PUBLIC, ROWS)
    sampler.begin()
    assert sampler.tokens_left == 2 and sampler.private_tokens == 0
    with pytest.raises(dpinfer.NumericError):
        sampler.step(np.full(8, np.nan, np.float32), ROWS)
    assert sampler.tokens_left == 2
    assert 0.999 < sampler.plan["epsilon"] <= 1


def test_allow() -> None:
    sampler = dpinfer.Sampler(vocab=100, references=1, rho=0.1, tokens=50)
    zeros = np.zeros(100, np.float32)
    sampler.allow([70, 3])
    assert {sampler.step(zeros, [zeros]) for _ in range(30)} <= {3, 70}
    sampler.allow([64])
    assert sampler.step(zeros, [None]) == 64
    sampler.allow(None)
    for wrong in ([], [100], [-1], ["a"], [1.5]):
        with pytest.raises(dpinfer.ArgumentError):
            sampler.allow(wrong)


def test_wrong_shapes() -> None:
    sampler = dpinfer.Sampler(vocab=8, references=2, rho=0.1, tokens=5, top_k=0)
    wrong: List[Any] = [None, ROWS[:1], ROWS[:, :7], ROWS.T, [ROWS[0]], [ROWS[0], ROWS[1][:7]],
                        ROWS[None], [ROWS, None], 5.0, []]
    for private in wrong:
        with pytest.raises(dpinfer.ArgumentError, match="private_logits"):
            sampler.step(PUBLIC, private)
    for public in (PUBLIC[:7], PUBLIC[None], 3.0):
        with pytest.raises(dpinfer.ArgumentError, match="public_logits"):
            sampler.step(public, ROWS)
    with pytest.raises(TypeError):
        sampler.step(["a"] * 8, ROWS)
    with pytest.raises(TypeError):
        sampler.step(PUBLIC.astype(complex), ROWS)
    assert sampler.tokens_left == 5
    with pytest.raises(TypeError, match="nearest is 'tokens'"):
        dpinfer.Sampler(vocab=8, references=2, rho=0.1, token=5)
    with pytest.raises(dpinfer.ArgumentError, match="n_vocab"):
        dpinfer.Sampler(vocab=0, references=2, rho=0.1, tokens=5)
