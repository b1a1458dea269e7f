"""A few points of every function against mpmath: `make precision` looks at many more, and writes docs/precision.md."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest

import chainrule as cr
from chainrule import kernels
from chainrule.testing.precision import functions
from chainrule.testing.precision.exact import TABLE

torch = pytest.importorskip("torch")
POINTS = 8
# mpmath takes its time over these.
SLOW = {"igamma", "igammac", "zeta", *(n for n in TABLE if n.endswith(("bessel_k0", "bessel_k1")))}


@pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
@pytest.mark.parametrize("label", [n for n in TABLE if n not in SLOW])
def test_within_the_limit_or_no_worse_than_the_others(label):
    for dtype in functions.TYPES:
        for row in functions.measure(label, dtype, POINTS, seed=7):
            assert not row.short or row.reason, row


@pytest.mark.parametrize("label", ["exp", "tanh", "lgamma", "erfc", "hypot"])
def test_the_measure_sees_one_wrong_digit(label, monkeypatch):
    real = functions.ours

    def off(f, xs, slopes):
        values, pulls = real(f, xs, slopes)
        return [v * v.dtype.type(1 + 64 * np.finfo(v.dtype).eps) for v in values], pulls

    monkeypatch.setattr(functions, "ours", off)
    assert any(r.short and not r.reason for d in functions.TYPES for r in functions.measure(label, d, 40, slopes=False))


def close(got, want, ulp, dtype="float64"):
    """`got` within so many units in the last place of the exact values."""
    error = functions.ulps(np.asarray(got, functions.TYPES[dtype]), [mp.mpf(w) for w in want], dtype)
    assert error.max() <= ulp, error


def slope(f, x):
    x = cr.tensor(x, dtype=cr.float64)
    return cr.func.vjp(f, x)[1](cr.ones_like(x))[0]


def curve(f, x):
    return slope(lambda x: slope_of(f, x), x).numpy()


def slope_of(f, x):
    return cr.func.vjp(f, x)[1](cr.ones_like(x))[0]


def test_slopes_where_the_function_has_saturated():
    x = [-300.0, -40.0, 0.5, 25.0, 350.0]
    with mp.workprec(200):
        close(slope(cr.tanh, x).numpy(), [mp.sech(v) ** 2 for v in x], 4)
        close(slope(cr.sigmoid, x).numpy(), [1 / (4 * mp.cosh(mp.mpf(v) / 2) ** 2) for v in x], 4)
        close(slope(cr.expm1, [-700.0, -40.0]).numpy(), [mp.exp(-700), mp.exp(-40)], 2)
        x = [1 - 2.0**-53, -1 + 2.0**-50, 0.3]
        root = [1 / mp.sqrt((1 - mp.mpf(v)) * (1 + mp.mpf(v))) for v in x]
        close(slope(cr.asin, x).numpy(), root, 3)
        close(slope(cr.acos, x).numpy(), [-r for r in root], 3)
        close(slope(cr.atanh, x).numpy(), [r * r for r in root], 3)


def test_second_derivatives_far_out():
    x = [-40.0, 30.0, 200.0]
    with mp.workprec(800):
        close(curve(cr.tanh, x), [-2 * mp.tanh(v) * mp.sech(v) ** 2 for v in x], 8)
        close(curve(cr.sigmoid, x), [-mp.tanh(mp.mpf(v) / 2) / (4 * mp.cosh(mp.mpf(v) / 2) ** 2) for v in x], 8)
        x = [1e-100, 1e-5, 0.3, 1 - 2.0**-53]
        close(curve(cr.logit, x), [(2 * mp.mpf(v) - 1) / (mp.mpf(v) * (1 - mp.mpf(v))) ** 2 for v in x], 8)
        hazard = [mp.npdf(v) / mp.ncdf(v) for v in (-30, -1, 5, 20)]
        want = [-h * (v + h) for h, v in zip(hazard, (-30, -1, 5, 20), strict=True)]
        close(curve(cr.special.log_ndtr, [-30.0, -1.0, 5.0, 20.0]), want, 40)
    # What overflows is infinite, what has a limit reaches it.
    assert curve(cr.logit, [1e-300]).tolist() == [-np.inf]
    assert curve(cr.special.log_ndtr, [-1e160, -1e10]).tolist() == [-1.0, -1.0]


def test_third_derivative_of_tanh():
    x, h = cr.tensor([0.3, -1.2, 2.5], dtype=cr.float64), 1e-6
    third = slope(lambda x: slope_of(lambda x: slope_of(cr.tanh, x), x), x.numpy()).numpy()
    near = [curve(cr.tanh, (x + s * h).numpy()) for s in (1, -1)]
    np.testing.assert_allclose(third, (near[0] - near[1]) / (2 * h), rtol=1e-7)


@pytest.mark.skipif(not kernels.available(), reason="no kernel compiler here")
def test_values_that_were_lost():
    with mp.workprec(200):
        x = [26.667, 24.5, 27.2]
        close(cr.erfc(cr.tensor(x, dtype=cr.float64)).numpy(), [mp.erfc(v) for v in x], 4)
        x = [1 + 2.0**-40, 1 - 2.0**-52, 2 + 2.0**-50, -2.4570247382208006]
        close(cr.lgamma(cr.tensor(x, dtype=cr.float64)).numpy(), [mp.re(mp.loggamma(mp.mpf(v))) for v in x], 4)
        x = [1e-9, 1e-3, -0.7]
        close(
            cr.nn.functional.tanhshrink(cr.tensor(x, dtype=cr.float64)).numpy(), [mp.mpf(v) - mp.tanh(v) for v in x], 4
        )
        x = [-38.4, -38.0]
        close(cr.nn.functional.gelu(cr.tensor(x, dtype=cr.float64)).numpy(), [mp.mpf(v) * mp.ncdf(v) for v in x], 4)
        x = [-745.0, -740.0]
        close(cr.nn.functional.silu(cr.tensor(x, dtype=cr.float64)).numpy(), [v / (1 + mp.exp(-v)) for v in x], 4)
        x = [712.0, -713.5]
        close(cr.special.i0(cr.tensor(x, dtype=cr.float64)).numpy(), [mp.besseli(0, v) for v in x], 8)
    assert cr.sinc(cr.tensor([1.0, -3.0, 2e6])).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "base, exponent", [(1.7565562469861032e19, -0.008180685341358185), (1e-30, 0.01), (3.7, -0.3), (-2.0, -3.0)]
)
def test_the_slope_of_a_power_in_its_base(base: float, exponent: float) -> None:
    """``b a**(b - 1)`` without the rounding of ``b - 1``."""
    a, b = (cr.tensor(v, dtype=cr.float32) for v in (base, exponent))
    got = cr.func.grad(lambda a: a**b)(a).item()
    with mp.workdps(40):
        x, y = mp.mpf(a.item()), mp.mpf(b.item())
        want = float(y * x ** (y - 1))
    assert abs(got - want) <= 3 * np.spacing(np.float32(abs(want)))


@pytest.mark.parametrize("a, b", [(-39.75, 17.53), (30.0, -30.5), (-30.057337880034886, 39.99999999999384)])
def test_the_slopes_of_logaddexp2(a: float, b: float) -> None:
    """``2**a / (2**a + 2**b)``: the difference of the exponents, here exact in both types, is all that may be rounded."""
    d = np.float64(np.float32(a)) - np.float64(np.float32(b))
    x, y = cr.tensor(float(d), dtype=cr.float64), cr.tensor(0.0, dtype=cr.float64)
    got = cr.func.grad(cr.logaddexp2, (0, 1))(x, y)
    with mp.workdps(40):
        share = 1 / (1 + mp.mpf(2) ** -mp.mpf(float(d)))
        for g, w in zip(got, (share, 1 - share), strict=True):
            assert abs(g.item() - float(w)) <= 3 * np.spacing(float(w))
