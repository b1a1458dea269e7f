"""Draws as functions of their parameters: ``x(a, u)`` with ``F(a, x) = u``, F the distribution function and u uniform.

So ``dx/da = -F_a / f`` and ``dx/du = 1 / f``, f the density: exact, of the draw that was made, and of any order, since the rules are
functions of x.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.samples import S, sample
from ...core.tensor import Tensor
from ..elementwise.elementary import cos, exp, sin
from ..special.base import gauss_legendre, in_double
from ..special.bessel import i0e, i1e
from ..special.igamma import gamma_density_p, igamma_in_a_p

# -- gamma ------------------------------------------------------------------------------------------------------------


@in_double
def _gamma_inverse(a: Any, u: Any) -> Any:
    """The x with ``P(a, x) = u``; 0 for a = 0, the limit."""
    import scipy.special as sc

    return np.where(np.equal(a, 0), 0.0, sc.gammaincinv(a, u))


gamma_inverse_p = pointwise(
    "gamma_inverse",
    _gamma_inverse,
    lambda t, y, a, u: -t * (igamma_in_a_p.bind(a, y, n=1) / gamma_density_p.bind(a, y)),
    lambda t, y, a, u: t / gamma_density_p.bind(a, y),
    types="float",
)

# -- von Mises --------------------------------------------------------------------------------------------------------


@functools.cache
def _rule() -> Any:
    """Nodes and weights on [0, 1]."""
    return np.array(gauss_legendre(72)).T


@in_double
def _von_mises_inverse(k: Any, u: Any) -> Any:
    """The angle x in [-pi, pi] with ``F(x) = u`` for the density ``exp(k cos x) / (2 pi I0(k))``: Newton between bounds."""
    import scipy.special as sc

    k, u = np.broadcast_arrays(np.asarray(k), np.asarray(u))
    want = np.abs(u - 0.5)
    scale = 1 / (2 * math.pi * sc.i0e(k))
    density = lambda x, c: np.exp(-2 * c * np.sin(x / 2) ** 2)
    low, high = np.zeros(k.shape), np.minimum(math.pi, 12 / np.sqrt(np.maximum(k, 1e-3)))
    x = np.minimum(high, want / scale)
    nodes, weights = _rule()
    for _ in range(60):
        inner = density(x[..., None] * nodes, k[..., None]) @ weights
        miss = x * inner * scale - want
        low, high = np.where(miss < 0, x, low), np.where(miss < 0, high, x)
        new = x - miss / (density(x, k) * scale)
        new = np.where((new >= low) & (new <= high), new, (low + high) / 2)
        done = np.all(np.abs(new - x) <= 1e-8 * x)  # the error of the new one is the square of that
        x = new
        if done:
            break
    return np.copysign(x, u - 0.5)


def _von_mises_density(k: Any, x: Any) -> Any:
    s = sin.bind(x / 2)
    return exp.bind(-2 * k * s * s) / (2 * math.pi * i0e.bind(k))


def von_mises_cdf_in_k(k: Tensor, x: Tensor) -> Tensor:
    """``dF/dk = integral of f(t) (cos t - I1/I0) from 0 to x``; half of the draws are below 0, whatever k is."""
    nodes, weights = (v.astype(x.dtype.np) for v in _rule())
    t = x.unsqueeze(-1) * Tensor(nodes)
    k = k.unsqueeze(-1)
    part = _von_mises_density(k, t) * (cos.bind(t) - i1e.bind(k) / i0e.bind(k))
    return x * (part * Tensor(weights)).sum(-1)


def _von_mises_in_k(t: Any, y: Any, k: Any, u: Any) -> Any:
    return -t * (von_mises_cdf_in_k(k, y) / _von_mises_density(k, y))


von_mises_inverse_p = pointwise(
    "von_mises_inverse",
    _von_mises_inverse,
    _von_mises_in_k,
    lambda t, y, k, u: t / _von_mises_density(k, y),
    types="float",
)

sample(
    "gamma_inverse",
    S(2, 3, low=0.3, high=4.0),
    S(3, low=0.1, high=0.9),
    f=lambda a, u: gamma_inverse_p.bind(a, u),
    cx=False,
)
sample(
    "von_mises_inverse", S(2, 3, low=0.3, high=4.0), S(2, 3, low=0.1, high=0.9), f=lambda k, u: von_mises_inverse_p.bind(k, u),
    cx=False,
)  # fmt: skip
