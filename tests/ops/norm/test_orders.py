"""Derivatives of every order and mode: kernels against bodies, nestings against each other, third order against differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp

F = cr.nn.functional
rng = np.random.default_rng(0)


def draw(*shape: int) -> Any:
    return cr.tensor(rng.uniform(-1, 1, shape))


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "layer norm": (lambda x, w, b: F.layer_norm(x, (5,), w, b, 0.1), ((4, 5), (5,), (5,))),
    "layer norm, two dims": (lambda x, w: F.layer_norm(x, (2, 3), w, None, 0.1), ((4, 2, 3), (2, 3))),
    "saved statistics": (lambda x: cr.native_layer_norm(x, (5,), None, None, 0.1)[2], ((4, 5),)),
    "RMS norm": (lambda x, w: F.rms_norm(x, (5,), w, 0.1), ((4, 5), (5,))),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True, 0.1, 0.1), ((4, 3, 2), (3,), (3,))),
    "batch norm, evaluation": (
        lambda x, w, b, m, v: F.batch_norm(x, m, v * v, w, b, False, 0.1, 0.1),
        ((4, 3, 2), (3,), (3,), (3,), (3,)),
    ),
    "group norm": (lambda x, w, b: F.group_norm(x, 2, w, b, 0.1), ((3, 4, 2), (4,), (4,))),
    "instance norm": (lambda x, w, b: F.instance_norm(x, None, None, w, b, True, 0.1, 0.1), ((3, 4, 3), (4,), (4,))),
    "weight norm, dim 0": (lambda v, g: cr._weight_norm(v, g, 0), ((4, 5), (4, 1))),
    "weight norm, middle": (lambda v, g: cr._weight_norm(v, g, 1), ((2, 4, 3), (1, 4, 1))),
    "weight norm, last": (lambda v, g: cr._weight_norm(v, g, 1), ((4, 5), (1, 5))),
    "weight norm, whole": (lambda v, g: cr._weight_norm(v, g, -1), ((4, 5), (1, 1))),
}


def third(f: Callable[..., Any], xs: list[Any], ts: list[list[Any]], modes: str) -> float:
    """The third derivative of a scalar function along three directions, by a chain of modes: f forward, r reverse."""

    def along(h: Callable[..., Any], t: list[Any], mode: str) -> Callable[..., Any]:
        if mode == "f":
            return lambda *a: jvp(h, a, tuple(t))[1]
        n = tuple(range(len(t)))
        return lambda *a: sum((g * v).sum() for g, v in zip(grad(h, argnums=n)(*a), t, strict=True))

    h = f
    for t, mode in zip(ts, modes, strict=True):
        h = along(h, t, mode)
    return float(h(*xs))


@pytest.mark.parametrize("name", CASES)
def test_third_order_in_every_mix_of_modes(name: str) -> None:
    f, shapes = CASES[name]
    xs = [draw(*s) for s in shapes]
    c = draw(*f(*xs).shape)
    ts = [[draw(*s) for s in shapes] for _ in range(3)]

    def loss(*a: Any) -> Any:
        y = f(*a)
        return (c * y + y**3 / 3).sum()

    got = {m: third(loss, xs, ts, m) for m in ("rrr", "fff", "rff", "frf", "ffr", "rrf", "rfr", "frr")}
    np.testing.assert_allclose(list(got.values()), got["rrr"], rtol=1e-8, atol=1e-9, err_msg=str(got))
    h = 1e-4
    ends = []
    for s in (1, -1):
        at = [x + s * h * t for x, t in zip(xs, ts[2], strict=True)]
        ends.append(float(jvp(lambda *a: jvp(loss, a, tuple(ts[0]))[1], tuple(at), tuple(ts[1]))[1]))
    np.testing.assert_allclose(got["rrr"], (ends[0] - ends[1]) / (2 * h), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [cr.float64, cr.float32], ids=str)
def test_kernels_equal_bodies(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f, shapes = CASES[name]
    xs = [draw(*s).to(dtype) for s in shapes]
    ts = [draw(*s).to(dtype) for s in shapes]
    nums = tuple(range(len(xs)))

    def loss(*a: Any) -> Any:
        return (f(*a) ** 3).sum()

    def everything() -> list[Any]:
        g = grad(loss, argnums=nums)
        hvp = jvp(g, tuple(xs), tuple(ts))[1]
        vhp = grad(lambda *a: sum((v * t).sum() for v, t in zip(g(*a), ts, strict=True)), argnums=nums)(*xs)
        return [f(*xs), jvp(f, tuple(xs), tuple(ts))[1], *g(*xs), *hvp, *vhp]

    with_kernels = everything()
    calls = []

    def no_kernel(op: Any, *a: Any, **kw: Any) -> Any:
        calls.append(op.name)
        ys = op.spec(*[cr.Tensor(v) if isinstance(v, np.ndarray) else v for v in a], **kw)
        return tuple(y._value for y in ys)

    for op in list(cr.core.op.OPS.values()):
        if op.kernel is not None:
            monkeypatch.setattr(op, "body", lambda *a, _op=op, **kw: no_kernel(_op, *a, **kw))
    tol = 1e-9 if dtype is cr.float64 else 3e-4
    for a, b in zip(with_kernels, everything(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=tol, atol=tol)
    assert calls


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_zero_slices_of_weight_norm(dim: int) -> None:
    a = rng.standard_normal((3, 4))
    if dim == 0:
        a[1] = 0
    elif dim == 1:
        a[:, 2] = 0
    else:
        a[:] = 0
    v = cr.tensor(a)
    g = cr.ones(*((3, 1) if dim == 0 else (1, 4) if dim == 1 else (1, 1)), dtype=cr.float64)

    def loss(v: Any, g: Any) -> Any:
        return (cr._weight_norm(v, g, dim) ** 2).sum()

    first = grad(loss, argnums=(0, 1))(v, g)
    second = jvp(grad(loss), (v, g), (v + 1, g))[1]
    for x in (cr._weight_norm(v, g, dim), *first, second, jvp(lambda v: cr._weight_norm(v, g, dim), (v,), (v + 1,))[1]):
        assert np.isfinite(x.numpy()).all()


@pytest.mark.parametrize("name", CASES)
def test_create_graph_equals_nested_grad(name: str) -> None:
    """Imperative double and triple backward: what the tape kept depends on the inputs."""
    f, shapes = CASES[name]
    xs = [draw(*s) for s in shapes]
    ts = [draw(*s) for s in shapes]
    nums = tuple(range(len(xs)))

    def loss(*a: Any) -> Any:
        return (f(*a) ** 3).sum()

    def along(h: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a: sum((g * t).sum() for g, t in zip(grad(h, argnums=nums)(*a), ts, strict=True))

    leaves = [x.clone().requires_grad_() for x in xs]
    value = loss(*leaves)
    for _ in range(2):
        gs = cr.autograd.grad(value, leaves, create_graph=True, materialize_grads=True)
        value = sum((g * t).sum() for g, t in zip(gs, ts, strict=True))
    got = cr.autograd.grad(value, leaves, materialize_grads=True)
    for a, b in zip(got, grad(along(along(loss)), argnums=nums)(*xs), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-9)


def test_writes_after_the_call_change_nothing() -> None:
    x, w = draw(4, 5).requires_grad_(), draw(5)
    y = F.layer_norm(x, (5,), w)
    keep = w.clone()
    w.mul_(7.0)
    y2 = y * 1
    y2.mul_(3.0)
    g = cr.autograd.grad(y, x, cr.ones(4, 5, dtype=cr.float64) * cr.arange(5.0).double())[0]
    want = grad(lambda x: (F.layer_norm(x, (5,), keep) * cr.arange(5.0).double()).sum())(x.detach())
    np.testing.assert_allclose(g.numpy(), want.numpy(), rtol=1e-10)
