"""The Array API standard: names, promotion, inspection; functions under grad and vmap; SciPy with array API dispatch."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import chainrule
import chainrule.array_api as xp
from chainrule.cli.coverage_numpy import array_api_rows, numpy_rows
from chainrule.func import grad, jvp, vmap

X = np.array([[0.3, 0.8, 0.5], [0.9, 0.2, 0.6]])
ELEMENTWISE = "abs acos asin atan asinh atanh cos cosh exp expm1 log log1p log2 log10 negative positive reciprocal sign sin sinh square sqrt tan tanh".split()
MATRICES = "cholesky det inv pinv slogdet svdvals eigvalsh matrix_norm vector_norm trace".split()
STATISTICS = "max mean min prod std sum var cumulative_sum cumulative_prod".split()


def _spd(x: Any) -> Any:
    return x @ xp.matrix_transpose(x) + 2 * xp.eye(2)


CASES: dict[str, Any] = {
    **{n: (lambda x, f=n: getattr(xp, f)(x)) for n in ELEMENTWISE},
    **{n: (lambda x, f=n: getattr(xp.linalg, f)(_spd(x))) for n in MATRICES if n != "slogdet"},
    **{n: (lambda x, f=n: getattr(xp, f)(x, axis=1)) for n in STATISTICS},
    "acosh": lambda x: xp.acosh(x + 1),
    "slogdet": lambda x: xp.linalg.slogdet(_spd(x)).logabsdet,
    "solve": lambda x: xp.linalg.solve(_spd(x), x),
    "clip": lambda x: xp.clip(x, 0.25, 0.7),
    "where": lambda x: xp.where(x > 0.55, x, 2 * x),
    "sort": lambda x: xp.sort(x, descending=True),
    "hypot": lambda x: xp.hypot(x, 1.0),
    "logaddexp": lambda x: xp.logaddexp(x, x * 2),
    "pow": lambda x: xp.pow(x, 2.5),
    "matmul": lambda x: xp.matmul(x, xp.matrix_transpose(x)),
    "take_along_axis": lambda x: xp.take_along_axis(x, xp.argsort(x)),
    "fft": lambda x: xp.abs(xp.fft.rfft(x)),
    "diff": lambda x: xp.diff(x),
    "tensordot": lambda x: xp.tensordot(x, x, axes=((0, 1), (0, 1))),
    "vecdot": lambda x: xp.vecdot(x, x),
    "cross": lambda x: xp.linalg.cross(x, x * x),
    "concat": lambda x: xp.concat([x, xp.flip(x)]),
    "roll": lambda x: xp.roll(x, 1, axis=1),
    "repeat": lambda x: xp.repeat(x, 2, axis=0),
    "qr": lambda x: xp.abs(xp.linalg.qr(_spd(x)).R),
    "add": lambda x: xp.add(x, x * x),
    "subtract": lambda x: xp.subtract(x * x, x),
    "multiply": lambda x: xp.multiply(x, xp.flip(x)),
    "divide": lambda x: xp.divide(x, xp.flip(x)),
    "atan2": lambda x: xp.atan2(x, xp.flip(x)),
    "copysign": lambda x: xp.copysign(x, 0.45 - x),
    "maximum": lambda x: xp.maximum(x, 1.1 - x),
    "minimum": lambda x: xp.minimum(x, 1.1 - x),
    "remainder": lambda x: xp.remainder(x, 0.35),
    "complex parts": lambda x: (lambda z: xp.real(z * z) + xp.imag(xp.exp(xp.conj(z))))(x + 1j * xp.flip(x)),
    "eigh": lambda x: xp.abs(xp.linalg.eigh(_spd(x)).eigenvectors) + xp.linalg.eigh(_spd(x)).eigenvalues,
    "svd": lambda x: xp.abs(xp.linalg.svd(x, full_matrices=False).U),
    "outer": lambda x: xp.linalg.outer(x[0, :], x[1, :]),
    "matrix_power": lambda x: xp.linalg.matrix_power(_spd(x), 3),
    "diagonal": lambda x: xp.linalg.diagonal(_spd(x)),
    "matrix_transpose": lambda x: xp.matmul(xp.linalg.matrix_transpose(x), x),
    "conj": lambda x: xp.real(xp.conj(x + 1j * x) * xp.exp(1j * x)),
    "imag": lambda x: xp.imag(xp.exp((1 + 2j) * x)),
    "real": lambda x: xp.real(xp.exp((1 + 2j) * x)),
    **{n: (lambda x, f=n: getattr(xp, f)(5 * x + 0.03) + x * x) for n in ("ceil", "floor", "round", "trunc")},
    "floor_divide": lambda x: xp.floor_divide(x, 0.13) * x,
    "nextafter": lambda x: xp.nextafter(x, xp.asarray(2.0)) * x,
    "var, corrected": lambda x: xp.var(x, correction=1, axis=0),
}


def test_there_is_a_case_for_each() -> None:
    """The standard's elementwise functions that have a derivative, its linear algebra and its statistics."""
    functions = (
        "abs acos acosh add asin asinh atan atan2 atanh ceil clip conj copysign cos cosh divide exp expm1 floor floor_divide hypot imag log log10 log1p "
        "log2 logaddexp maximum minimum multiply negative nextafter positive pow real reciprocal remainder round sign sin sinh sqrt square subtract tan "
        "tanh trunc cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_transpose outer pinv qr slogdet solve svd svdvals "
        "tensordot trace vecdot vector_norm cumulative_prod cumulative_sum max mean min prod std sum var"
    ).split()
    assert not set(functions) - set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    f = CASES[name]
    loss = lambda x: xp.sum(xp.sin(1.3 * f(xp.asarray(x))))
    value = lambda x: float(loss(x))
    g = grad(loss)(X)
    d = np.random.default_rng(0).normal(size=X.shape)
    e = 1e-6
    assert np.sum(g * d) == pytest.approx((value(X + e * d) - value(X - e * d)) / (2 * e), rel=1e-6, abs=1e-8)
    assert jvp(loss, (X,), (d,))[1] == pytest.approx(np.sum(g * d), rel=1e-9, abs=1e-11)
    xs = np.stack([X, X[::-1] * 0.9])
    np.testing.assert_allclose(vmap(grad(loss))(xs), [grad(loss)(x) for x in xs], rtol=1e-9, atol=1e-11)
    t = grad(lambda x: xp.sum(xp.sin(1.3 * f(x))))(chainrule.tensor(X))
    assert isinstance(t, chainrule.Tensor)
    np.testing.assert_allclose(t.numpy(), g, rtol=1e-12)


def test_namespace() -> None:
    x = chainrule.ones(3)
    assert x.__array_namespace__() is xp and xp.asarray(x).__array_namespace__(api_version="2024.12") is xp
    with pytest.raises(ValueError, match="1999"):
        x.__array_namespace__(api_version="1999.12")
    assert isinstance(xp.sin(x), chainrule.Tensor) and isinstance(xp.sin(xp.asarray(x)), xp.Array)
    info = xp.__array_namespace_info__()
    assert info.default_dtypes()["real floating"] == xp.float64 and set(info.dtypes(kind="complex floating")) == {
        "complex64",
        "complex128",
    }
    assert all(status == "yes" for _, _, status, _ in array_api_rows())
    with pytest.raises(TypeError, match="asarray"):
        xp.sin(np.ones(2))


def test_promotion_is_the_standards() -> None:
    """0-d arrays take part, numbers do not; a tensor's own operators promote as PyTorch's do."""
    a, b = xp.ones(2, dtype=xp.float32), xp.asarray(1.0, dtype=xp.float64)
    assert (a + b).dtype == xp.float64 and (a + 1.0).dtype == xp.float32
    assert (xp.ones(2, dtype=xp.uint8) + xp.ones(2, dtype=xp.int8)).dtype == xp.int16
    assert (xp.asarray(float("inf")) // 2.0) == float("inf")


def test_coverage_of_numpy() -> None:
    rows = numpy_rows()
    ufuncs = [r for r in rows if r[1] == "ufunc"]
    assert len(ufuncs) > 90 and all(r[2] != "no" for r in ufuncs)
    functions = [r for r in rows if r[1] == "function" and (r[2] == "yes" or (r[2] == "no" and not r[3]))]
    assert sum(r[2] == "yes" for r in functions) >= 0.95 * len(functions)


def test_coverage_by_its_command(capsys: pytest.CaptureFixture[str]) -> None:
    from chainrule.__main__ import main

    assert main(["coverage", "array-api"]) == 0
    assert "array-api: names with a derivative" in capsys.readouterr().out


PROGRAM = """
import numpy as np, chainrule as cr
from chainrule.func import grad, jvp, vmap
import scipy.special, scipy.stats, scipy.signal
x = np.array([0.2, 0.5, 0.9])
def check(f):
    e = 1e-6
    want = [float((f(x + e * d) - f(x - e * d)) / (2 * e)) for d in np.eye(3)]
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-6, atol=1e-8)
    got = grad(f)(cr.tensor(x))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jvp(f, (x,), (np.ones(3),))[1], np.sum(want), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x + 0.1]))[0], want, rtol=1e-6, atol=1e-8)
check(lambda v: scipy.special.logsumexp(v))
check(lambda v: scipy.stats.variation(v))
check(lambda v: scipy.stats.moment(v, 3))
if tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 16):  # before, these convert what they do not know
    check(lambda v: (scipy.special.softmax(v) ** 2).sum())
    check(lambda v: scipy.special.erf(v).sum())
    check(lambda v: scipy.stats.entropy(v))
print("ok")
"""


def test_scipy_with_array_api_dispatch() -> None:
    import os

    env = {**os.environ, "SCIPY_ARRAY_API": "1"}
    r = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], env=env, capture_output=True, text=True, check=False
    )
    assert r.stdout.strip() == "ok", r.stderr[-2000:]
