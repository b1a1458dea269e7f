"""Special functions against mpmath: values, the families behind the derivatives, third derivatives, extreme arguments."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import chainrule
from chainrule.func import grad
from chainrule.ops.special import bessel as special_bessel
from chainrule.ops.special import erf as special_erf
from chainrule.ops.special import gamma as special_gamma
from chainrule.ops.special import igamma as special_igamma
from chainrule.ops.special import polynomials as special_polynomials

mp.mp.dps = 30


def double(x: float) -> chainrule.Tensor:
    return chainrule.tensor(float(x), dtype=chainrule.float64)


def agree(got: float, want: Any, tol: float, scale: float = 0.0) -> None:
    assert abs(got - want) <= tol * max(abs(want), scale), (got, mp.nstr(want, 17))


# -- derivatives of any order, through the transforms ---------------------------------------------------------------------

ONE_ARGUMENT: list[tuple[str, Callable[..., Any], tuple[float, ...]]] = [
    ("lgamma", lambda x: mp.log(abs(mp.gamma(x))), (0.3, 4.2, -1.4, 60.0)),
    ("digamma", mp.digamma, (0.3, 4.2, -1.4, -30.7)),
    ("erf", mp.erf, (-0.7, 0.2, 3.0)),
    ("erfc", mp.erfc, (-0.7, 0.2, 8.0)),
    ("erfinv", mp.erfinv, (-0.7, 0.2, 0.99)),
    ("special.erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (-2.0, 0.0, 0.4, 7.0, 40.0)),
    ("special.ndtr", mp.ncdf, (-3.0, 0.0, 1.2)),
    ("special.ndtri", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (0.1, 0.5, 0.97)),
    ("special.log_ndtr", lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), (-30.0, -1.0, 0.5, 5.0)),
    ("special.entr", lambda x: -x * mp.log(x), (0.1, 3.0)),
    ("logit", lambda x: mp.log(x / (1 - x)), (0.1, 0.45, 0.97)),
    ("sinc", lambda x: mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.mpf(1), (1e-3, 0.4, 2.7)),
    ("special.spherical_bessel_j0", lambda x: mp.sin(x) / x, (1e-3, 1.4, 1.6, -30.0)),
    ("i0", lambda x: mp.besseli(0, x), (-2.0, 0.1, 20.0)),
    ("special.i1", lambda x: mp.besseli(1, x), (-2.0, 0.1, 20.0)),
    ("special.i0e", lambda x: mp.besseli(0, x) * mp.exp(-x), (0.1, 20.0, 41.0, 1e5)),
    ("special.i1e", lambda x: mp.besseli(1, x) * mp.exp(-x), (0.1, 20.0, 41.0, 1e5)),
    ("special.bessel_j0", lambda x: mp.besselj(0, x), (0.1, 5.0, 30.0)),
    ("special.bessel_j1", lambda x: mp.besselj(1, x), (0.1, 5.0, 30.0)),
    ("special.bessel_y0", lambda x: mp.bessely(0, x), (0.1, 5.0, 30.0)),
    ("special.bessel_y1", lambda x: mp.bessely(1, x), (0.1, 5.0, 30.0)),
    ("special.modified_bessel_k0", lambda x: mp.besselk(0, x), (0.1, 5.0, 30.0)),
    ("special.modified_bessel_k1", lambda x: mp.besselk(1, x), (0.1, 5.0, 30.0)),
    ("special.scaled_modified_bessel_k0", lambda x: mp.besselk(0, x) * mp.exp(x), (1e-3, 5.0, 1e5)),
    ("special.scaled_modified_bessel_k1", lambda x: mp.besselk(1, x) * mp.exp(x), (1e-3, 5.0, 1e5)),
    ("special.airy_ai", mp.airyai, (-80.0, -3.0, 0.0, 2.0)),
]


@pytest.mark.parametrize(("name", "reference", "points"), ONE_ARGUMENT, ids=[c[0] for c in ONE_ARGUMENT])
def test_three_derivatives(name: str, reference: Callable[..., Any], points: tuple[float, ...]) -> None:
    f: Any = chainrule
    for part in name.split("."):
        f = getattr(f, part)
    for x in points:
        g = f
        for order in range(4):
            want = mp.diff(reference, mp.mpf(x), order, h=mp.mpf(10) ** -12) if order else reference(mp.mpf(x))
            # Where a derivative passes near zero, digits relative to the function are all one can ask for.
            agree(float(g(double(x))), want, 1e-12 if order < 2 else 1e-9, 1e-3 * float(abs(reference(mp.mpf(x)))))
            g = grad(g)


# -- the families behind them ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("x", [-3.0, -1e-9, 0.0, 0.3, 3.0, 1e3, 1e6])
def test_scaled_integrals_of_erfc(n: int, x: float) -> None:
    # exp(x**2) i^n erfc(x) = exp(x**2/2) 2**((1-n)/2) U(n + 1/2, sqrt(2) x) / sqrt(pi)
    want = (
        mp.exp(mp.mpf(x) ** 2 / 2)
        * mp.pcfu(n + mp.mpf(1) / 2, mp.sqrt(2) * mp.mpf(x))
        * mp.mpf(2) ** ((1 - mp.mpf(n)) / 2)
        / mp.sqrt(mp.pi)
    )
    agree(float(special_erf._scaled_integral(np.float64(x), n=n)), want, 2e-14)


@pytest.mark.parametrize("a", [1e-8, 0.3, 1.0, 9.9, 99.0, 101.0, 1e5])
@pytest.mark.parametrize("ratio", [0.3, 0.97, 1.0, 1.03, 2.0])
def test_incomplete_gamma_in_a(a: float, ratio: float) -> None:
    x = a * ratio if a > 0.1 else ratio
    if abs(x - a) > 35 * a**0.5 + 50:
        pytest.skip("underflow")
    if x > a:
        tail = lambda b: -mp.gammainc(b, mp.mpf(x), mp.inf, regularized=True)
    else:
        tail = lambda b: mp.gammainc(b, 0, mp.mpf(x), regularized=True)
    for n in (1, 2, 3):
        want = mp.diff(tail, mp.mpf(a), n, h=mp.mpf(10) ** -12 * max(a, 0.1))
        # The n-th derivative has the size of the tail times a**(-n/2), and zeros.
        scale = float(abs(tail(mp.mpf(a)))) * max(a, 1.0) ** (-n / 2)
        agree(float(special_igamma._igamma_in_a(np.float64(a), np.float64(x), n=n)), want, 1e-11, scale)


@pytest.mark.parametrize("s", [1.001, 1.5, 3.0, 10.0, 60.0])
@pytest.mark.parametrize("q", [0.01, 1.0, 7.3, 11.0])
def test_zeta_in_s(s: float, q: float) -> None:
    for n in (1, 2, 4):
        want = mp.zeta(mp.mpf(s), mp.mpf(q), n)
        agree(float(special_gamma._zeta(np.float64(s), np.float64(q), n=n)), want, 1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 6])
def test_polygamma_left_of_zero(n: int) -> None:
    for x in (-0.5, -19.3, -20.3, -1000.25):
        agree(float(special_gamma._polygamma(np.float64(x), n=n)), mp.polygamma(n, mp.mpf(x)), 1e-12)


def test_bessel_far_out() -> None:
    for x in (-60.1, -13437.5):
        agree(float(special_bessel._airy(np.float64(x))), mp.airyai(mp.mpf(x)), 1e-12, 1e-2)
        agree(float(special_bessel._airy_slope(np.float64(x))), mp.airyai(mp.mpf(x), derivative=1), 1e-12, 1.0)


def _chebyshev(first: int) -> Callable[..., Any]:
    def value(n: int, x: Any) -> Any:
        a, b = mp.mpf(1), 2 * x + first
        for _ in range(n):
            a, b = b, 2 * x * b - a
        return a

    return value


def _laguerre(n: int, x: Any) -> Any:
    a, b = mp.mpf(1), 1 - x
    for k in range(1, n + 1):
        a, b = b, ((2 * k + 1 - x) * b - k * a) / (k + 1)
    return a


POLYNOMIALS: dict[str, Callable[..., Any]] = {
    "t": mp.chebyt,
    "u": mp.chebyu,
    "v": _chebyshev(-1),
    "w": _chebyshev(1),
    "h": mp.hermite,
    "he": lambda n, x: mp.mpf(2) ** (-mp.mpf(n) / 2) * mp.hermite(n, x / mp.sqrt(2)),
    "l": _laguerre,
    "p": mp.legendre,
}


@pytest.mark.parametrize("kind", POLYNOMIALS)
@pytest.mark.parametrize("n", [0, 1, 2, 7, 60])
def test_polynomials(kind: str, n: int) -> None:
    for x in (0.0, 1e-10, 0.8, 0.999, 1.0, 1.5, -0.95, -1.0):
        for k in range(4):
            want = mp.diff(lambda y: POLYNOMIALS[kind](n, y), mp.mpf(x), k, h=mp.mpf(10) ** -12)
            got = special_polynomials._polynomial(np.float64(x), np.float64(n), kind=kind, k=k)
            agree(float(got), want, 1e-11, float(max(n, 1)) ** k / 10)


# -- edges ----------------------------------------------------------------------------------------------------------------


def test_derivatives_at_zero() -> None:
    assert float(grad(chainrule.sinc)(double(0))) == 0
    assert abs(float(grad(grad(chainrule.sinc))(double(0))) + np.pi**2 / 3) < 1e-14
    assert float(grad(chainrule.special.i1)(double(0))) == 0.5
    assert float(grad(chainrule.special.i1e)(double(0))) == pytest.approx(0.5, rel=1e-14)
    assert float(grad(chainrule.special.i0e)(double(0))) == 0
    assert float(grad(chainrule.digamma)(double(0))) == np.inf
    assert float(grad(chainrule.special.entr)(double(0))) == np.inf
    assert float(grad(chainrule.igamma, argnums=1)(double(1), double(0))) == 1
    assert float(grad(chainrule.igamma, argnums=0)(double(1), double(0))) == 0


def test_nothing_overflows_in_the_tails() -> None:
    for x in (-1e5, -40.0, 40.0, 1e5):
        g = grad(chainrule.special.log_ndtr)
        for _ in range(2):
            assert np.isfinite(float(g(double(x))))
            g = grad(g)
    assert float(grad(chainrule.special.erfcx)(double(1e10))) == pytest.approx(-1e-20 / np.sqrt(np.pi), rel=1e-12)


def test_degrees_that_are_none() -> None:
    x = chainrule.tensor([0.5, 0.5, 0.5, 0.5])
    y = chainrule.special.legendre_polynomial_p(x, chainrule.tensor([-3.0, float("nan"), float("inf"), 2.9]))
    assert y.tolist() == [0.0, 0.0, 0.0, -0.125]


def test_the_package_does_not_load_scipy() -> None:
    code = "import sys, chainrule; sys.exit(any(m.split('.')[0] == 'scipy' for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name, first, after", [
    ("hermite_polynomial_h", lambda x: 2 * x, lambda j, x, p, q: 2 * x * p - 2 * j * q),
    ("legendre_polynomial_p", lambda x: x, lambda j, x, p, q: ((2 * j + 1) * x * p - j * q) / (j + 1)),
    ("chebyshev_polynomial_v", lambda x: 2 * x - 1, lambda j, x, p, q: 2 * x * p - q),
    ("laguerre_polynomial_l", lambda x: 1 - x, lambda j, x, p, q: ((2 * j + 1 - x) * p - j * q) / (j + 1)),
])  # fmt: skip
def test_polynomials_keep_their_digits_near_roots(name: str, first: Any, after: Any) -> None:
    x = np.linspace(-1.3, 2.6, 401)
    got = getattr(chainrule.special, name)(chainrule.tensor(x), 8).numpy()
    if np.finfo(np.longdouble).nmant == np.finfo(np.float64).nmant:
        pytest.skip("the platform has no wider type")
    for v, y in zip(x.tolist(), got.tolist(), strict=True):
        z = Fraction(v)
        q, p = Fraction(1), first(z)
        for j in range(1, 8):
            p, q = after(j, z, p, q), p
        assert abs(Fraction(y) - p) <= abs(p) * Fraction(1, 2**52), f"{name}({v}, 8) is {float(p)}, got {y}"
    mixed = getattr(chainrule.special, name)(
        chainrule.tensor(x[:4]), chainrule.tensor([0.0, 1.0, 8.0, -1.0], dtype=chainrule.float64)
    ).tolist()
    assert mixed == [1.0, float(first(Fraction(x[1]))), got[2], 0.0]


@pytest.mark.parametrize("x", [-0.3, -5.1, -20.3, -26.5])
def test_erfcx_left_of_zero_keeps_its_digits(x: float) -> None:
    """2 exp(x**2) by a rounded square loses a digit for every ten of it."""
    with mp.workdps(40):
        want = mp.exp(mp.mpf(x) ** 2) * mp.erfc(mp.mpf(x))
        assert abs(mp.mpf(float(chainrule.special.erfcx(double(x)))) / want - 1) < 8e-16


@pytest.mark.parametrize("many", [1, 5000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_modified_bessel_functions_at_the_infinities(dtype: str, many: int) -> None:
    x = chainrule.tensor([float("inf"), float("-inf")] * many, dtype=getattr(chainrule, dtype))
    assert (chainrule.special.i0(x) == float("inf")).all()
    assert chainrule.equal(chainrule.special.i1(x), x)
    assert (chainrule.special.i0e(x) == 0).all() and (chainrule.special.i1e(x) == 0).all()
