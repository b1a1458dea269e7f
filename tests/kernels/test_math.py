"""The elementary functions against mpmath, over all bit patterns and where they are hard; the special values exactly."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

from chainrule import kernels
from chainrule.kernels import math, pointwise
from tests.kernels.reference import BF16, last_place

pytestmark = pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
COMPILED = {name: pointwise.Pointwise(name, f) for name, f in math.FUNCTIONS.items()}
INF, NAN = np.inf, np.nan
TYPES = [np.float32, np.float64]


def sigmoid(x):
    return 1 / (1 + mp.exp(-x))


def normal_cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gelu_tanh(x):
    return x * sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


# name: the function, the largest error in units in the last place, the domain, values at 0, -0, inf, -inf
EVERYWHERE, POSITIVE = (-INF, INF), (0.0, INF)
FUNCTIONS = {
    "exp": (mp.exp, 1.0, EVERYWHERE, (1, 1, INF, 0)),
    "expm1": (mp.expm1, 1.6, EVERYWHERE, (0.0, -0.0, INF, -1)),
    "log": (mp.log, 1.0, POSITIVE, (-INF, -INF, INF, NAN)),
    "log1p": (mp.log1p, 1.0, (-1.0, INF), (0.0, -0.0, INF, NAN)),
    "tanh": (mp.tanh, 2.2, EVERYWHERE, (0.0, -0.0, 1, -1)),
    "sigmoid": (sigmoid, 2.0, EVERYWHERE, (0.5, 0.5, 1, 0)),
    "log_sigmoid": (lambda x: -mp.log1p(mp.exp(-x)), 2.0, EVERYWHERE, (-np.log(2), -np.log(2), 0.0, -INF)),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), 2.0, EVERYWHERE, (np.log(2), np.log(2), INF, 0)),
    "erf": (mp.erf, 1.5, EVERYWHERE, (0.0, -0.0, 1, -1)),
    "erfc": (mp.erfc, 3.0, EVERYWHERE, (1, 1, 0, 2)),
    "sin": (mp.sin, 1.6, EVERYWHERE, (0.0, -0.0, NAN, NAN)),
    "cos": (mp.cos, 1.6, EVERYWHERE, (1, 1, NAN, NAN)),
    "sqrt": (mp.sqrt, 0.51, POSITIVE, (0.0, -0.0, INF, NAN)),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), 1.6, POSITIVE, (INF, -INF, 0, NAN)),
    "gelu": (lambda x: x * normal_cdf(x), 4.0, EVERYWHERE, (0.0, -0.0, INF, -0.0)),
    "gelu_tanh": (gelu_tanh, 8.0, (-2.0, INF), (0.0, -0.0, INF, -0.0)),
    "silu": (lambda x: x * sigmoid(x), 4.0, EVERYWHERE, (0.0, -0.0, INF, -0.0)),
}
# Where the value passes through zero, a rounding of its terms is what counts.
DERIVATIVES = {
    "gelu_derivative": (lambda x: normal_cdf(x) + x * mp.npdf(x), EVERYWHERE, (0.5, 0.5, 1, 0)),
    "gelu_tanh_derivative": (lambda x: mp.diff(gelu_tanh, x), (-6.0, 6.0), (0.5, 0.5, 1, 0)),
    "silu_derivative": (lambda x: sigmoid(x) * (1 + x * sigmoid(-x)), EVERYWHERE, (0.5, 0.5, 1, 0)),
}


def points(dtype, n=150):
    """Random bit patterns (all magnitudes, subnormal and huge), and where functions bend, overflow or cancel."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**64, n, dtype=np.uint64)
    any_bits = (
        bits.view(np.float64) if dtype is np.float64 else (bits >> np.uint64(32)).astype(np.uint32).view(np.float32)
    )
    small = np.finfo(dtype).smallest_subnormal
    parts = [
        any_bits,
        rng.standard_normal(n),
        rng.uniform(-20, 20, n),
        rng.uniform(-110, 110, n),
        rng.uniform(-750, 750, n),
        1e-3 * rng.standard_normal(n),
        1 + 1e-2 * rng.standard_normal(n),
        np.pi / 2 * rng.integers(-60000, 60000, n),  # nearly a multiple of pi/2
        np.array(
            [small, -small, 3 * small, np.finfo(dtype).tiny, np.finfo(dtype).max, np.finfo(dtype).min, 0.5, 1, -1]
        ),
    ]
    x = np.concatenate([p.astype(dtype) for p in parts])
    return x[np.isfinite(x)]


def exact(f, x):
    """f in 200 bits, with arguments beyond the point where everything has saturated pulled in."""
    with mp.workprec(200):
        return [f(mp.mpf(float(a))) for a in x]


def error(got, want, dtype):
    """Distances in units in the last place; a result beyond the largest number must be infinite."""
    digits, low = {np.float32: (24, -126), np.float64: (53, -1022)}[dtype]
    top = mp.mpf(float(np.finfo(dtype).max)) * (1 + mp.mpf(2) ** -(digits + 1))
    out = []
    for g, w in zip(got, want, strict=True):
        if abs(w) >= top:
            out.append(0.0 if np.isinf(g) and (g > 0) == (w > 0) else INF)
        else:
            e = max(int(mp.floor(mp.log(abs(w), 2))) if w else low, low) - digits + 1
            out.append(float(abs(mp.mpf(float(g)) - w) / mp.mpf(2) ** e) if np.isfinite(g) else INF)
    return np.array(out)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_few_ulp_everywhere(name, dtype):
    f, limit, (low, high), _ = FUNCTIONS[name]
    x = points(dtype)
    x = x[(x > low) & (x < high)]
    if name not in ("sin", "cos", "log", "log1p", "sqrt", "rsqrt"):
        x = x[np.abs(x) < 1e5]  # mpmath would need as many bits as the exponent is large
    got = COMPILED[name](x)
    want = exact(f, x)
    e = error(got, want, dtype)
    if name in ("gelu", "gelu_tanh", "silu"):  # a product with a factor that is subnormal
        e *= [abs(w) > 1e4 * float(np.finfo(dtype).tiny) or w == 0 for w in want]
    assert e.max() <= limit, x[np.argmax(e)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_to_a_rounding_of_their_terms(name, dtype):
    f, (low, high), _ = DERIVATIVES[name]
    x = points(dtype, 60)
    x = x[(x > low) & (x < high) & (np.abs(x) < 1e3)]
    got = COMPILED[name](x).astype(np.float64)
    want = np.array([float(w) for w in exact(f, x)])
    assert np.max(np.abs(got - want)) <= 6 * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [*FUNCTIONS, *DERIVATIVES])
def test_special_values(name, dtype):
    want = np.array([*(FUNCTIONS.get(name) or DERIVATIVES[name])[-1], NAN], dtype)
    got = COMPILED[name](np.array([0.0, -0.0, INF, -INF, NAN], dtype))
    np.testing.assert_array_max_ulp(got[np.isfinite(want)], want[np.isfinite(want)], 1)
    assert np.array_equal(np.isnan(got), np.isnan(want)) and np.array_equal(np.isinf(got), np.isinf(want))
    assert np.array_equal(np.signbit(got[:4]), np.signbit(want[:4])) or np.isnan(want[:4]).any()


def test_outside_the_domain_is_nan():
    for name, x in (("log", -1.0), ("log1p", -2.0), ("sqrt", -1.0), ("rsqrt", -4.0)):
        assert np.isnan(COMPILED[name](np.full(3, x))).all()
    assert (COMPILED["log1p"](np.array([-1.0])) == -INF).all()


@pytest.mark.parametrize("name", ["exp", "tanh", "gelu", "silu", "sigmoid", "log"])
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16], ids=str)
def test_16_bit_results_are_rounded_once(name, dtype):
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    x = x[np.isfinite(x.astype(np.float32))]
    if name == "log":
        x = x[x.astype(np.float32) > 0]
    got = COMPILED[name](x)
    want = COMPILED[name](x.astype(np.float64))
    finite = np.abs(want) < 3e4
    error = np.abs(got[finite].astype(np.float64) - want[finite])
    assert np.all(error / last_place(want[finite], dtype) <= 0.51)
