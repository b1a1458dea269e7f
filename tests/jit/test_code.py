"""Machine code gives what the replayed graph gives: samples of every op, hand-picked layouts, and sizes around the vectors' width."""

from __future__ import annotations

import zlib

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.core.errors import Unfit
from chainrule.core.samples import SAMPLES
from chainrule.core.tensor import Tensor
from chainrule.core.tree import flatten
from chainrule.jit import JitError, api, jit
from chainrule.jit.run import compiled, divide, replayed
from chainrule.kernels import compiler
from chainrule.testing.laws import case_of, like, outputs

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no llvmlite here")
rng = np.random.default_rng(2)


def graph_of(f, *xs):
    leaves, spec = flatten((xs, {}))
    return api._recorded(f, leaves, spec, api.survey(f))


def check(f, *xs, tol=1e-11, parts=None):
    """The compiled graph against the replayed one; `parts`: as many parts as there must be."""
    r = graph_of(f, *xs)
    g = r.program.graph
    ins = [x._value for x in flatten(xs)[0]] + [b._value if b._interp is None else b._value._value for b in r.boxes]
    got, want = compiled(g, "test")(*ins), replayed(g)(*ins)
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        scale = max(1.0, float(np.max(np.abs(b[np.isfinite(b)]), initial=0))) if b.dtype.kind in "fc" else 1
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol * scale, equal_nan=True)
    if parts is not None:
        assert len(divide(g)) == parts and all(p.compiled for p in divide(g)), [n for p in divide(g) for n in p.nodes]
    return g


def _chosen(s, every):
    return zlib.crc32(repr(s).encode()) % every == 0


def _sweep(samples):
    failed = []
    for s in samples:
        try:
            c = case_of(s, False, 0)
        except AttributeError:  # an op without a public name
            continue
        if not c.xs:
            continue
        g = outputs(c.f)
        try:
            check(c.f, *c.tensors())
            if y := g(*c.tensors()):
                cot = tuple(like(np.random.default_rng(0), y))
                check(lambda *a, g=g, cot=cot: func.vjp(g, *a)[1](cot), *c.tensors(), tol=1e-9)
        except (JitError, Unfit, api.NotRecorded):
            continue  # test_laws_jit has the list
        except Exception as e:
            failed.append(f"{s!r}: {type(e).__name__} {e}")
    assert not failed, "\n".join(failed)


def test_samples():
    _sweep([s for s in SAMPLES if _chosen(s, 40)])


@pytest.mark.long
@pytest.mark.parametrize("part", range(12))
def test_all_samples(part):
    _sweep([s for s in SAMPLES if zlib.crc32(repr(s).encode()) % 12 == part])


def T(*shape, dtype=np.float64):
    return Tensor(np.asarray(rng.standard_normal(shape), dtype))


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 200])
def test_lengths(n):
    x, y = T(n), T(n)
    check(lambda x, y: (x * y + x.exp()).tanh(), x, y, parts=1)
    check(lambda x, y: (x * y).sum() + x.sum() * 2, x, y, parts=1)
    check(lambda x: (x.reshape(-1, 1) * x).sum(0) + (x.reshape(-1, 1) - x).sum(1), x, parts=1)
    if n > 2:
        check(func.grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()), x, parts=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("m", "k", "n"), [(1, 1, 1), (3, 5, 2), (4, 4, 4), (8, 8, 8), (9, 17, 33), (5, 1, 20), (1, 30, 16)]
)
def test_products(dtype, m, k, n):
    tol = 1e-5 if dtype is np.float32 else 1e-12
    a, b = T(m, k, dtype=dtype), T(k, n, dtype=dtype)
    check(lambda a, b: a @ b, a, b, tol=tol, parts=1)
    check(lambda a, b: (a.T.T @ b.T.contiguous().T).T + 1, a, b, tol=tol)
    check(lambda a, b: (b.T @ a.T) * 2, a, b, tol=tol, parts=1)
    check(lambda a, b: a.exp() @ b[:, 0] + a[0].sum(), a, b, tol=tol, parts=1)
    check(lambda a, b: a[0] @ b, a, b, tol=tol, parts=1)
    check(func.grad(lambda a: (a @ b).tanh().sum()), a, tol=tol)
    check(func.vmap(lambda r: r @ b), a, tol=tol)
    c = T(3, k, n, dtype=dtype)
    check(lambda a, c: (a @ c).sin(), a, c, tol=tol)


def test_views_and_pads():
    x = T(4, 6, 5)
    check(lambda x: x.permute(2, 0, 1).reshape(5, 24) * 2, x)
    check(lambda x: (x[1:3, ::2] + x[0, 1:4]).transpose(0, 2) - x[0, 0, 0], x, parts=1)
    check(lambda x: cr.cat([x[:, :2], x[:, 3:] * 2, x[:, :1].exp()], 1).sum((0, 2)), x, parts=1)
    check(lambda x: x.sum((0, 2), keepdim=True) + x.mean(1, keepdim=True), x)
    check(func.grad(lambda x: (x[1:] * x[:-1]).sum() + x[:, 2:4].square().sum() + (x[..., ::2] ** 3).sum()), x)
    check(func.grad(lambda x: x.diagonal(0, 0, 1).exp().sum()), x)
    check(lambda x: cr.where(x > 0, x, 0.0) * (x < 1).to(x.dtype), x, parts=1)


def test_inputs_of_any_layout():
    j = jit(lambda x, y: (x * 2 + y).sum(0))
    x, y = T(6, 5), T(6, 5)
    j(x, y)
    for u, v in [
        (x[::-1] if False else Tensor(x._value[::-1]), y),
        (Tensor(x._value.T.copy().T), y),
        (x, Tensor(np.broadcast_to(y._value[0], (6, 5)))),
    ]:
        np.testing.assert_allclose(j(u, v).numpy(), (u * 2 + v).sum(0).numpy(), rtol=1e-12)


def test_large_arrays():
    x, y = T(300, 301, dtype=np.float32), T(301, dtype=np.float32)
    check(lambda x, y: (x * y + 1).tanh() * x.sum(1, keepdim=True), x, y, tol=1e-5)
    check(func.grad(lambda x: ((x * x).sum(1) * y[:300]).sum()), x, tol=1e-5)
    z = T(100_003)
    check(func.grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()), z, tol=1e-12)
    check(lambda x: x.sum() + (x * x).sum(), z, tol=1e-12)


def test_an_op_without_code_runs_between_two_parts():
    def f(x):
        y = (x * 2).exp() + x.T
        return cr.linalg.inv(y + 5 * cr.eye(4, dtype=cr.float64)).tanh() * y

    g = check(f, T(4, 4))
    parts = divide(g)
    assert len(parts) == 3 and [p.compiled for p in parts] == [True, False, True]


def test_loops_are_one_function():
    def rnn(w, x, h):
        def step(h, v):
            h = (w @ h + v).tanh()
            return h, h

        h, hs = cr.scan(step, h, x)
        return (hs * hs).sum() + h.sum()

    w, x, h = T(20, 20) * 0.2, T(13, 20), T(20)
    check(rnn, w, x, h, parts=1)
    check(func.grad(rnn), w, x, h, tol=1e-10, parts=1)
    check(func.grad(lambda x: cr.fori_loop(0, 9, lambda i, c: c * x * 0.5 + i, x).sum()), T(3), parts=1)


def test_the_scalars_of_a_small_loop():
    def lorenz(s):
        x, y, z = s[0], s[1], s[2]
        return cr.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    def f(s):
        def step(i, s):
            a = lorenz(s)
            return s + 0.01 * lorenz(s + 0.005 * a)

        return cr.fori_loop(0, 40, step, s).sum()

    check(f, T(3), parts=1)
    check(func.grad(f), T(3), tol=1e-9, parts=1)
    a = T(3, 3) * 0.3
    check(
        func.grad(
            lambda x: cr.fori_loop(
                0, 6, lambda i, x: (a @ x).tanh() + x[0] * cr.eye(3, dtype=cr.float64).sum(0), x
            ).sum()
        ),
        T(3),
    )


def test_a_batch_of_small_loops():
    def f(s):
        def step(i, s):
            return s + 0.01 * cr.stack([s[1] - s[0], s[0] * (2 - s[2]), s[0] * s[1]])

        return cr.fori_loop(0, 7, step, s)

    x = T(1030, 3)
    check(func.vmap(f), x, parts=1)
    check(func.vmap(func.grad(lambda s: (f(s) ** 2).sum())), x, tol=1e-10)
    check(lambda x: cr.scan(lambda c, v: (c * 0.5 + v, c.sum(-1)), x, x.expand(4, 1030, 3)), x)
    # What mixes examples is no batch.
    check(lambda x: cr.scan(lambda c, v: (c * 0.5 + c.sum(0), c.flip(0)), x, x[:4]), x)
    check(lambda x: cr.scan(lambda c, v: (c @ (c.T @ c) * 1e-4, ()), x, x[:4]), x)
