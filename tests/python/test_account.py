"""Epsilons against dp_accounting's: never below, and hardly above."""

from __future__ import annotations

import math
from typing import Any

import dpinfer
import pytest
from conftest import made_up
from dpinfer import account

de = pytest.importorskip("dp_accounting")
rdp = pytest.importorskip("dp_accounting.rdp")
pld = pytest.importorskip("dp_accounting.pld")

ABOVE = 1.001
NEAR = 1 - 1e-6  # theirs is the least of many orders, which the best one is between


def rdp_epsilon(event: Any, delta: float, rho: float) -> float:
    """Of a zCDP event, with orders around the best one."""
    best = 1 + math.sqrt(math.log(1 / delta) / rho)
    orders = [1 + (best - 1) * 1.001**i for i in range(-1000, 1000)]
    accountant = rdp.RdpAccountant(orders, de.NeighboringRelation.ADD_OR_REMOVE_ONE)
    return float(accountant.compose(event).get_epsilon(delta))


@pytest.mark.parametrize("rho", [1e-4, 0.01, 0.3, 5])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 0.01])
def test_zcdp(rho: float, delta: float) -> None:
    theirs = rdp_epsilon(de.ZCDpEvent(rho), delta, rho)
    ours = account.zcdp_epsilon(rho, delta)
    assert theirs * NEAR <= ours <= max(theirs * ABOVE, 1e-300)
    assert account.zcdp_delta(rho, ours) <= delta * (1 + 1e-9)
    assert rho * (1 - 1e-9) <= account.zcdp_rho(ours, delta)


@pytest.mark.parametrize("sigma, q, steps", [(1, 1, 1), (5, 1, 100), (0.9, 0.02, 200)])
def test_gaussian(sigma: float, q: float, steps: int) -> None:
    """Their pessimistic and optimistic distributions enclose the truth."""
    most, least = (pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, pessimistic_estimate=pessimistic, sampling_prob=q,
        value_discretization_interval=2e-4).self_compose(steps) for pessimistic in (True, False))
    for delta in (1e-7, 1e-4):
        ours = account.gaussian_epsilon(sigma, delta, q, steps)
        assert least.get_epsilon_for_delta(delta) <= ours
        assert ours <= most.get_epsilon_for_delta(delta) * ABOVE


def test_event_of_training(model: dpinfer.Model) -> None:
    claim = dpinfer.Training(model, made_up(64), units=1024, expected=16, steps=100, epsilon=3,
                             delta=1e-4, instruction="Write.").claim
    event = claim.dp_event()
    sigma, q = event.event.event.noise_multiplier, event.event.sampling_probability
    assert event.count == 100 and q == 16 / 1024
    least = pld.privacy_loss_distribution.from_gaussian_mechanism(
        sigma, pessimistic_estimate=False, sampling_prob=q, value_discretization_interval=2e-4)
    accountant = pld.PLDAccountant(value_discretization_interval=2e-4)
    most = accountant.compose(event).get_epsilon(1e-4)
    assert claim.epsilon is not None and 2.999 < claim.epsilon <= 3
    assert least.self_compose(100).get_epsilon_for_delta(1e-4) <= claim.epsilon <= most * ABOVE


@pytest.mark.parametrize("options", [
    {"epsilon": 3}, {"rho": 0.2}, {"epsilon": 3, "method": "amin", "svt_threshold": 1.0,
                                   "svt_sigma": 5.0, "private_tokens": 5},
    {"epsilon": 3, "method": "tang"}, {"epsilon": 3, "pace": "top", "pace_theta": 0.5,
                                       "pace_tokens": 4},
])
def test_event_of_a_claim(model: dpinfer.Model, options: Any) -> None:
    claim = dpinfer.plan(model, n_records=20, batch=4, texts=2, tokens=10, delta=1e-5,
                         description="letters", **options).claim
    event = claim.dp_event()
    ours, delta = claim.epsilon, claim.delta
    assert ours is not None
    assert claim.rho is not None
    theirs = rdp_epsilon(event, delta, claim.rho)
    assert theirs * NEAR <= ours <= theirs * ABOVE


def test_event_that_there_is_not(model: dpinfer.Model) -> None:
    claim = dpinfer.plan(model, n_records=100, batch=4, texts=2, tokens=10, delta=1e-5, epsilon=3,
                         subsample=0.1, description="letters").claim
    with pytest.raises(dpinfer.Unsupported, match="assignment"):
        claim.dp_event()


def test_conversions() -> None:
    eta = account.range_eta(1, 1e-6, 50)
    assert account.range_epsilon(eta, 50, 1e-6) <= 1 + 1e-9
    assert account.range_delta(eta, 50, 1) <= 1e-6 * (1 + 1e-9)
    assert account.allocation_rho(1, 1e-6, 100) > 19 * account.zcdp_rho(1, 1e-6)
    rho = account.allocation_rho(1, 1e-6, 100)
    assert 0.999 < account.allocation_epsilon(rho, 100, 1e-6) <= 1
    eta = account.allocation_range_eta(1, 1e-6, 200, 100)
    assert 0.999 < account.allocation_range_epsilon(eta, 200, 100, 1e-6) <= 1
    alone = pld.privacy_loss_distribution.from_gaussian_mechanism(1.5)
    assert account.allocation_gaussian_epsilon(1.5, 1, 1e-6) == pytest.approx(
        alone.get_epsilon_for_delta(1e-6), rel=1e-3)
    inside = account.subsample_inside(1, 1e-6, 0.1)
    outside = account.subsample_outside(*inside, 0.1)
    assert outside[0] <= 1 and outside[1] <= 1e-6 and outside[0] > 0.999
    assert account.renyi_epsilon(1.0, 1e-6, 8) > 1
    for call in (lambda: account.zcdp_epsilon(-1, 0.1), lambda: account.zcdp_epsilon(1, 0),
                 lambda: account.range_epsilon(1, 0, 0.1), lambda: account.zcdp_rho(1, 2)):
        with pytest.raises(dpinfer.ArgumentError):
            call()
    with pytest.raises(TypeError):
        account.zcdp_epsilon("1", 0.1)  # type: ignore[arg-type]
