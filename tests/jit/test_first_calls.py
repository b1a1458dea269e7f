"""What a first call does and what it leaves for later: nothing is compiled or run for values that only show shapes."""

import subprocess
import sys

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad
from chainrule.jit.api import jit
from chainrule.kernels import blas, compiler

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler")


def _linked(monkeypatch):
    """The names of what is compiled from now on."""
    names, link = [], compiler.link

    def noted(ir, symbols, label):
        names.append(label)
        return link(ir, symbols, label)

    monkeypatch.setattr(compiler, "link", noted)
    return names


def test_a_loop_is_compiled_once(monkeypatch):
    names = _linked(monkeypatch)
    f = jit(grad(lambda x: cr.fori_loop(0, 50, lambda i, c: (c * 1.01).sin() + 0.1 * x, x).sum()))
    x = cr.tensor([0.3, 0.7], dtype=cr.float64)
    f(x)
    assert len(names) == 1  # of the function: neither the loop nor its derivative alone
    f(x)
    assert len(names) == 2  # the short way in: for who calls again


def test_constants_of_a_recording_need_no_kernel(monkeypatch):
    n = 1 << 16
    names = _linked(monkeypatch)
    f = jit(grad(lambda x: ((x[1:] - x[:-1] ** 2) ** 2 * 100).sum()))
    x = cr.linspace(0, 1, n)
    y = f(x)
    assert [m for m in names if m != "runtime"] == ["jit__lambda_"] and y.shape == (n,)


def test_loops_that_fail_for_one_step_are_shown_whole():
    def f(x):
        c, ys = cr.scan(lambda c, v: (c + v, cr.linalg.cholesky(c + v)), x, cr.stack([x, x]))
        w = cr.while_loop(lambda a: a.sum() < 20, lambda a: (a * 2,), (c,))[0]
        s = cr.switch(cr.tensor(1), [lambda a: a, lambda a: cr.linalg.inv(a)], (w,))
        return c, ys, s

    x = cr.eye(3, dtype=cr.float64) * 2
    for a, b in zip(jit(f)(x), f(x), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12)


@pytest.mark.parametrize("way", [blas.of_numpy, blas.of_scipy])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_by_either_library(way, dtype, monkeypatch):
    if not way("dgemm"):
        pytest.skip("no such library here")
    name = "sgemm" if dtype is np.float32 else "dgemm"
    monkeypatch.setattr(blas, "_addresses", {name: way(name)})
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 30)).astype(dtype), rng.standard_normal((30, 20)).astype(dtype)
    f = jit(lambda a, b: ((a @ b) * 2, b.T @ a.T))
    y, z = f(cr.tensor(a), cr.tensor(b))
    np.testing.assert_allclose(y.numpy(), 2 * a @ b, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(z.numpy(), (a @ b).T, rtol=1e-4, atol=1e-4)
    assert f.lower(cr.tensor(a), cr.tensor(b)).recording.program._run.parts[0].code.count("inttoptr") >= 1


def test_a_product_imports_no_other_library():
    code = (
        "import sys, chainrule as cr; f = cr.jit(lambda a: a @ a); f(cr.ones(40, 40)); f(cr.ones(40, 40)); "
        "print('scipy.linalg' in sys.modules)"
    )
    if not blas.of_numpy("sgemm"):
        pytest.skip("NumPy's library cannot be looked into here")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False"]
