"""What a budget means: rho, epsilon and delta; subsampling; random allocation.

Every result is the safe end: epsilon and delta are upper bounds, rho and eta lower ones. Each
raises ArgumentError for a value out of range.
"""

from __future__ import annotations

from typing import Any, Tuple

from ._library import call, ffi, lib, new
from ._options import _real, narrow


def _one(function: Any, *args: Any) -> float:
    out = ffi.new("double *")
    call(function, *args, out)
    return float(out[0])


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon at delta of rho-zCDP."""
    return _one(lib.dpi_zcdp_epsilon, _real("rho", rho), _real("delta", delta))


def zcdp_delta(rho: float, epsilon: float) -> float:
    """The delta at epsilon of rho-zCDP."""
    return _one(lib.dpi_zcdp_delta, _real("rho", rho), _real("epsilon", epsilon))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho whose rho-zCDP is (epsilon, delta)-DP."""
    return _one(lib.dpi_zcdp_rho, _real("epsilon", epsilon), _real("delta", delta))


def range_epsilon(eta: float, tokens: int, delta: float) -> float:
    """The epsilon at delta of `tokens` draws of bounded range eta, each knowing those before."""
    return _one(lib.dpi_br_epsilon, _real("eta", eta), narrow("tokens", "int32_t", tokens),
                _real("delta", delta))


def range_delta(eta: float, tokens: int, epsilon: float) -> float:
    """The delta at epsilon of the same."""
    return _one(lib.dpi_br_delta, _real("eta", eta), narrow("tokens", "int32_t", tokens),
                _real("epsilon", epsilon))


def range_eta(epsilon: float, delta: float, tokens: int) -> float:
    """The largest eta of the same that is (epsilon, delta)-DP."""
    return _one(lib.dpi_br_eta, _real("epsilon", epsilon), _real("delta", delta),
                narrow("tokens", "int32_t", tokens))


def subsample_outside(epsilon: float, delta: float, q: float) -> Tuple[float, float]:
    """(epsilon, delta) of a run whose records join a batch with probability q, each in secret."""
    a, b = ffi.new("double *"), ffi.new("double *")
    call(lib.dpi_subsample_outside, _real("epsilon", epsilon), _real("delta", delta),
         _real("q", q), a, b)
    return float(a[0]), float(b[0])


def subsample_inside(epsilon: float, delta: float, q: float) -> Tuple[float, float]:
    """(epsilon, delta) that the mechanism inside may have, so that the run has these."""
    a, b = ffi.new("double *"), ffi.new("double *")
    call(lib.dpi_subsample_inside, _real("epsilon", epsilon), _real("delta", delta),
         _real("q", q), a, b)
    return float(a[0]), float(b[0])


def allocation_epsilon(rho: float, batches: int, delta: float) -> float:
    """The epsilon at delta of a run whose records are each in one of `batches` secret batches,
    where what is released of a batch is rho-zCDP."""
    return _one(lib.dpi_allocation_epsilon, _real("rho", rho),
                narrow("batches", "int32_t", batches), _real("delta", delta))


def allocation_rho(epsilon: float, delta: float, batches: int) -> float:
    """The largest rho of a batch that gives such a run (epsilon, delta)."""
    return _one(lib.dpi_allocation_rho, _real("epsilon", epsilon), _real("delta", delta),
                narrow("batches", "int32_t", batches))


def allocation_range_epsilon(eta: float, tokens: int, batches: int, delta: float) -> float:
    """The same where a batch gives `tokens` draws of bounded range eta."""
    return _one(lib.dpi_allocation_br_epsilon, _real("eta", eta),
                narrow("tokens", "int32_t", tokens), narrow("batches", "int32_t", batches),
                _real("delta", delta))


def allocation_range_eta(epsilon: float, delta: float, tokens: int, batches: int) -> float:
    """The largest eta of such draws that gives such a run (epsilon, delta)."""
    return _one(lib.dpi_allocation_br_eta, _real("epsilon", epsilon), _real("delta", delta),
                narrow("tokens", "int32_t", tokens), narrow("batches", "int32_t", batches))


def allocation_gaussian_epsilon(sigma: float, batches: int, delta: float) -> float:
    """The same where a batch gives a sum with Gaussian noise of multiplier sigma."""
    return _one(lib.dpi_allocation_gaussian_epsilon, _real("sigma", sigma),
                narrow("batches", "int32_t", batches), _real("delta", delta))


def gaussian_epsilon(sigma: float, delta: float, sampling: float = 1.0, steps: int = 1) -> float:
    """The epsilon at delta of `steps` Gaussian mechanisms of noise multiplier sigma, each on a
    Poisson sample of the units (add or remove one), by their privacy loss distribution."""
    o = new("dpi_gaussian")
    o.sigma, o.sampling = _real("sigma", sigma), _real("sampling", sampling)
    o.n_steps = narrow("steps", "int32_t", steps)
    return _one(lib.dpi_gaussian_epsilon, o, _real("delta", delta))


def renyi_epsilon(divergence: float, delta: float, order: int) -> float:
    """The epsilon at delta that a Renyi divergence of this order comes to."""
    return _one(lib.dpi_renyi_epsilon, _real("divergence", divergence), _real("delta", delta),
                narrow("order", "int32_t", order))
