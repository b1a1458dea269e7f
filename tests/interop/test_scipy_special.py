"""scipy.special's ufuncs: the laws over the samples of those with rules of their own, and all by the protocol against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special as sp

from chainrule.core.errors import MissingRuleError
from chainrule.core.samples import SAMPLES
from chainrule.func import grad, jvp, vmap
from chainrule.interop.numpy.more_special import OPS
from chainrule.testing.laws import case_of, check

OURS = [s for s in SAMPLES if s.name.startswith("scipy_") and s.name.removeprefix("scipy_") in OPS]
X = np.array([0.3, 0.55, 0.62, 0.41])
CALLS: dict[str, Any] = {
    "cbrt": lambda x: sp.cbrt(x),
    "boxcox": lambda x: sp.boxcox(x, x - 0.4),
    "boxcox at 0": lambda x: sp.boxcox(x, 0 * x),
    "boxcox1p": lambda x: sp.boxcox1p(x, 1.5),
    "inv_boxcox": lambda x: sp.inv_boxcox(x, 0.7),
    "inv_boxcox1p": lambda x: sp.inv_boxcox1p(x, x),
    "cotdg": lambda x: sp.cotdg(30 * x),
    "gdtr": lambda x: sp.gdtr(x, 1.5, 2 * x),
    "gdtrc": lambda x: sp.gdtrc(2.0, 1.5, x),
    "fdtr": lambda x: sp.fdtr(3, 4.0, x),
    "fdtrc": lambda x: sp.fdtrc(3.0, 4, x),
    "chdtri": lambda x: sp.chdtri(3.0, x),
    "sici": lambda x: sp.sici(x)[0] * sp.sici(x)[1],
    "shichi": lambda x: sp.shichi(x)[0] + sp.shichi(x)[1],
    "fresnel": lambda x: sp.fresnel(x)[0] * sp.fresnel(x)[1],
    "airy": lambda x: sum(v * k for k, v in enumerate(sp.airy(x), 1)),
    "lambertw": lambda x: sp.lambertw(x).real,
    "lambertw -1": lambda x: sp.lambertw(-x / 3, -1).real,
    "wofz": lambda x: sp.wofz(x + 0.5j).real,
    "expn": lambda x: sp.expn(1, x) + sp.expn(3, x) + sp.expn(0, x),
    "eval_legendre": lambda x: sp.eval_legendre(4, x) + sp.eval_legendre(0, x),
    "eval_hermite": lambda x: sp.eval_hermite(3, x) + sp.eval_hermitenorm(0, x),
    "eval_jacobi": lambda x: sp.eval_jacobi(3, 0.5, 1.5, x),
    "hyp2f1": lambda x: sp.hyp2f1(0.5, 1.5, 2.5, x),
    "exprel": lambda x: sp.exprel(x) + sp.exprel(1e-6 * x),
}


@pytest.mark.parametrize("sample", OURS, ids=repr)
def test_laws(sample: Any) -> None:
    check(case_of(sample, False))


def test_every_one_has_a_sample() -> None:
    assert {s.name for s in OURS} == {f"scipy_{n}" for n in OPS}


@pytest.mark.parametrize("name", CALLS)
def test_by_the_protocol(name: str) -> None:
    f = lambda x: np.sum(np.sin(CALLS[name](x)))
    e = 1e-6
    want = np.array([(f(X + e * d) - f(X - e * d)) / (2 * e) for d in np.eye(4)])
    g = grad(f)
    np.testing.assert_allclose(g(X), want, rtol=1e-6, atol=1e-8)
    assert jvp(f, (X,), (X,))[1] == pytest.approx(want @ X, rel=1e-6)
    second = np.array([(g(X + e * d) - g(X - e * d)) @ X / (2 * e) for d in np.eye(4)])
    np.testing.assert_allclose(jvp(g, (X,), (X,))[1], second, rtol=1e-5, atol=1e-6)
    xs = np.stack([X, X * 1.05])
    np.testing.assert_allclose(vmap(g)(xs), [g(x) for x in xs], rtol=1e-10)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(vmap(CALLS[name])(xs), CALLS[name](xs), rtol=1e-12)


def test_high_orders_near_zero() -> None:
    """``(exp(x) - 1) / x``: the k-th derivative at 0 is 1/(k + 1), also a little beside it."""
    for x in (0.0, 1e-7, -1e-5, 3e-4):
        f = sp.exprel
        for k in range(1, 5):
            f = grad(f)
            assert f(np.array(x)) == pytest.approx(1 / (k + 1) + x / (k + 2), rel=1e-6)


def test_orders_have_none() -> None:
    with pytest.raises(MissingRuleError, match="argument 1"):
        grad(lambda a: np.sum(sp.hyp1f1(a, 2.0, X)))(X)


def test_hyp1f1_far_out_comes_back() -> None:
    x = np.array([1e30, np.inf, 1.0])
    value, slope = jvp(lambda x: sp.hyp1f1(1.5, 2.5, x), (x,), (np.ones(3),))
    for y in (value, slope):
        assert np.isinf(y[:2]).all()
        assert np.isfinite(y[2])
