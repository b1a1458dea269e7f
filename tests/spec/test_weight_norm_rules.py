"""Rules of weight norm: fused kernels, saved norms, second order."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, vjp

from .judge import array, case, gradients, judge, mathematics, require, row, same, values

DTYPES = ["float64", "float32", "bfloat16", "float16"]
DIMS = pytest.mark.parametrize("dim", ["first", "last"])


def pair(shape: tuple[int, ...], dim: str | int | None, seed: int = 0) -> tuple[np.ndarray, np.ndarray, int]:
    """v, g shaped like the norm over all dims but `dim`, and the dim."""
    d = {"first": 0, "last": len(shape) - 1}.get(dim, dim) if isinstance(dim, str) else dim
    kept = tuple(s if i == d else 1 for i, s in enumerate(shape))
    return array(*shape, seed=seed), array(*kept, seed=seed + 1), d


def interface(dim: int):
    return lambda m, v, g: m._weight_norm_interface(v, g, dim)


@row("weight_norm.first", "weight_norm.last")
@DIMS
@pytest.mark.parametrize("shape", [(4, 3), (5, 2, 3), (1, 7), (7, 1), (6,), (3, 1, 2, 2)], ids=str)
def test_forward(shape: tuple[int, ...], dim: str) -> None:
    v, g, d = pair(shape, dim)
    require("_weight_norm_interface")
    values(interface(d), v, g)
    f = lambda m, v, g: m._weight_norm_interface(v, g, d)[0]
    judge("_weight_norm_interface", f, v, g)
    # The norm is an output whose cotangent counts; PyTorch's is not differentiable.
    mathematics(case("_weight_norm_interface", interface(d), v, g))


@row("weight_norm.first", "weight_norm.last", "weight_norm.interface")
@DIMS
@pytest.mark.parametrize("dtype", DTYPES)
def test_types(dtype: str, dim: str) -> None:
    v, g, d = pair((37, 53), dim)
    tv, tg = (torch.tensor(a, dtype=getattr(torch, dtype)) for a in (v, g))
    cv, cg = (cr.tensor(a, dtype=getattr(cr, dtype)) for a in (v, g))
    w, n = cr._weight_norm_interface(cv, cg, d)
    assert w.dtype is getattr(cr, dtype)
    assert n.dtype is (cr.float64 if dtype == "float64" else cr.float32)
    # The reference: exact inputs, exact arithmetic, one rounding at the end.
    xv, xg = tv.double().numpy(), tg.double().numpy()
    norm = np.sqrt((xv**2).sum(1 - d, keepdims=True))
    eps = {"float64": 2.0**-52, "float32": 2.0**-23, "bfloat16": 2.0**-8, "float16": 2.0**-11}[dtype]
    np.testing.assert_allclose(n.double().numpy(), norm, rtol=8 * min(eps, 2.0**-23))
    np.testing.assert_allclose(w.double().numpy(), xv * xg / norm, rtol=max(1.01 * eps, 16 * min(eps, 2.0**-23)))
    if dtype in ("float64", "float32", "bfloat16"):
        tw, tn = torch._weight_norm_interface(tv, tg, d)
        np.testing.assert_allclose(w.double().numpy(), tw.double().numpy(), rtol=4 * eps)
        assert str(tn.dtype).split(".")[-1] == str(n.dtype).split(".")[-1]


@row("weight_norm.first", "weight_norm.last")
@DIMS
def test_sixteen_bits_are_summed_in_thirty_two(dim: str) -> None:
    # 70,000 ones: a sum in 16 bits stops growing at 256 (bfloat16) or 2048 (float16), and overflows float16.
    shape = (2, 70000) if dim == "first" else (70000, 2)
    for dtype in (cr.bfloat16, cr.float16):
        g = cr.ones(2, 1, dtype=dtype) if dim == "first" else cr.ones(1, 2, dtype=dtype)
        w, n = cr._weight_norm_interface(cr.ones(*shape, dtype=dtype), g, 0 if dim == "first" else 1)
        np.testing.assert_allclose(n.numpy().ravel(), np.sqrt(70000.0), rtol=1e-5)
        np.testing.assert_allclose(w.float().numpy(), 1 / np.sqrt(70000.0), rtol=2.0**-7)


@row("weight_norm.last", "weight_norm.last.backward", "weight_norm.first.backward")
@DIMS
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 1000])
def test_any_number_of_rows_and_threads(rows: int, dim: str) -> None:
    v, g, d = pair((rows, 300), dim)
    now = cr.get_num_threads() if hasattr(cr, "get_num_threads") else None
    try:
        for threads in (1, 2) if now else (0,):
            if now:
                cr.set_num_threads(threads)
            values(interface(d), v, g)
            gradients(lambda m, v, g: m._weight_norm_interface(v, g, d)[0], v, g)
    finally:
        if now:
            cr.set_num_threads(now)


@row("weight_norm.first.backward", "weight_norm.last.backward", "weight_norm.interface.backward")
@DIMS
@pytest.mark.parametrize("shape", [(4, 3), (3, 2, 5), (1, 4)], ids=str)
def test_backward(shape: tuple[int, ...], dim: str) -> None:
    v, g, d = pair(shape, dim)
    gw = array(*shape, seed=5)
    n = np.sqrt((v**2).sum(tuple(k for k in range(len(shape)) if k != d), keepdims=True))
    f = lambda m, gw, v, g, n: m._weight_norm_interface_backward(gw, v, g, n, d)
    require("_weight_norm_interface_backward")
    values(f, gw, v, g, n)
    # In all four arguments, the saved norm among them.
    mathematics(case("_weight_norm_interface_backward", f, gw, v, g, n))


@row("weight_norm.interface.backward")
def test_backward_refuses_what_does_not_fit_and_takes_any_layout() -> None:
    v, g, _ = pair((4, 3), 0)
    gw = array(4, 3, seed=5)
    n = np.sqrt((v**2).sum(1, keepdims=True))
    c = [cr.tensor(a) for a in (gw, v, g, n)]
    want = cr._weight_norm_interface_backward(*c, 0)
    odd = [cr.tensor(np.ascontiguousarray(a.T)).t() for a in (gw, v, g, n)]
    assert not odd[1].is_contiguous()
    for a, b in zip(cr._weight_norm_interface_backward(*odd, 0), want, strict=True):
        same(a.numpy(), b.numpy(), "transposed memory")
    with pytest.raises(RuntimeError, match="grad_w"):
        cr._weight_norm_interface_backward(c[0][:2], *c[1:], 0)
    with pytest.raises(RuntimeError, match="saved_g"):
        cr._weight_norm_interface_backward(c[0], c[1], c[2].reshape(1, 4), c[3], 0)
    with pytest.raises(RuntimeError, match="saved_norms"):
        cr._weight_norm_interface_backward(*c[:3], c[3].reshape(4), 0)
    with pytest.raises(IndexError, match="dim"):
        cr._weight_norm_interface_backward(*c, 5)


@row("norm_except_dim")
@pytest.mark.parametrize("p", [1, 2, 3, 1.5, 0.5])
@pytest.mark.parametrize("dim", [-1, 0, 1, 2])
def test_norm_except_dim(p: float, dim: int) -> None:
    f = lambda m, v: m.norm_except_dim(v, p, dim) if m is cr else torch.norm_except_dim(v, int(p), dim)
    whole = float(p).is_integer()
    judge("norm_except_dim", f, array(3, 2, 4), oracle="value gradient" if whole else "")
    if not whole:
        x = array(3, 2, 4)
        axes = (0, 1, 2) if dim == -1 else tuple(k for k in range(3) if k != dim)
        want = (np.abs(x) ** p).sum(axes, keepdims=dim != -1) ** (1 / p)
        same(cr.norm_except_dim(cr.tensor(x), p, dim).numpy().reshape(want.shape), want, "value")
    zero = np.zeros((2, 2, 2))
    judge("norm_except_dim", f, zero, smooth=False, oracle="value gradient" if whole else "")


@row("weight_norm.interface")
def test_interface() -> None:
    v, g, _ = pair((4, 3), 0)
    out = cr._weight_norm_interface(cr.tensor(v), cr.tensor(g), 0)
    assert isinstance(out, tuple) and [tuple(o.shape) for o in out] == [(4, 3), (4, 1)]
    with pytest.raises(RuntimeError, match="g must"):
        cr._weight_norm_interface(cr.tensor(v), cr.tensor(g.T), 0)
    # A slice of zeros has no direction: zeros everywhere, not NaN.
    v[1] = 0
    w, n = cr._weight_norm_interface(cr.tensor(v), cr.tensor(g), 0)
    assert not w[1].numpy().any() and n[1].item() == 0
    mathematics(
        case("_weight_norm_interface", lambda m, v, g: m._weight_norm_interface(v, g, 0)[0], v, g), smooth=False
    )


@row("weight_norm")
@pytest.mark.parametrize(("shape", "dim"), [((4, 3), 0), ((4, 3), 1), ((2, 3, 2), 1), ((2, 3), -1), ((3,), 0)], ids=str)
def test_weight_norm(shape: tuple[int, ...], dim: int) -> None:
    v, g, d = pair(shape, None if dim == -1 else dim)
    f = lambda m, v, g: m._weight_norm(v, g, dim)
    judge("_weight_norm", f, v, g)
    # Fused and composed are the same function.
    axes = tuple(k for k in range(len(shape)) if k != d)
    plain = lambda v, g: v * (g / (v.norm(2, axes, keepdim=True) if axes else v.abs()))
    ts = [cr.tensor(v), cr.tensor(g)]
    same(f(cr, *ts).numpy(), plain(*ts).numpy(), "value")
    for k in (0, 1):
        a, b = (grad(lambda *xs, h=h: (h(*xs) ** 3).sum(), argnums=k)(*ts) for h in (lambda *xs: f(cr, *xs), plain))
        same(a.numpy(), b.numpy(), f"gradient {k}")


@row("weight_norm")
def test_weight_norm_broadcasts_g_and_refuses_other_devices() -> None:
    v = array(3, 2)
    # PyTorch's kernel reads past the end of a smaller g.
    for g in (array(seed=3), array(1, 2, seed=3), array(2, seed=3)):
        mathematics(case("_weight_norm", lambda m, v, g: m._weight_norm(v, g, 0), v, g))
        same(
            cr._weight_norm(cr.tensor(v), cr.tensor(g), 0).numpy(),
            v * g / np.linalg.norm(v, axis=1, keepdims=True),
            "g",
        )
    with pytest.raises((RuntimeError, NotImplementedError), match=r"meta|device"):
        cr._weight_norm(cr.tensor(v), cr.ones(3, 1, device="meta"), 0)


@row("weight_norm.second")
@pytest.mark.parametrize(
    ("shape", "dim"), [((4, 3), 0), ((4, 3), 1), ((2, 3, 2), 1), ((2, 3, 2), 2), ((2, 3), -1)], ids=str
)
def test_second_order_counts_the_saved_norm(shape: tuple[int, ...], dim: int) -> None:
    v, g, d = pair(shape, None if dim == -1 else dim)
    axes = tuple(k for k in range(len(shape)) if k != d)
    gw = cr.tensor(array(*shape, seed=4))
    fused = lambda v: vjp(lambda v: cr._weight_norm(v, cr.tensor(g), dim), v)[1](gw)[0]
    plain = lambda v: vjp(lambda v: v * (cr.tensor(g) / v.norm(2, axes, keepdim=True)), v)[1](gw)[0]
    x = cr.tensor(v)
    for a, b in ((cr.func.jacrev(fused), cr.func.jacrev(plain)), (cr.func.jacfwd(fused), cr.func.jacrev(plain))):
        same(a(x).numpy(), b(x).numpy(), "second derivative")
    mathematics(case("_weight_norm", lambda m, v, g: m._weight_norm(v, g, dim), v, g), order=3)


@row("weight_norm.second")
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_differentiable_backward(dim: int) -> None:
    require("_weight_norm_differentiable_backward")
    v, g, d = pair((2, 3, 4), dim)
    gw = array(2, 3, 4, seed=4)

    def f(m, gw, v, g):
        n = v.norm(2, [k for k in range(3) if k != d], keepdim=True)
        return m._weight_norm_differentiable_backward(gw, v, g, n, dim)

    if dim != 1:
        values(lambda m, gw, v, g: f(m, gw, v, g), gw, v, g)
        gradients(f, gw, v, g)
    mathematics(case("_weight_norm_differentiable_backward", f, gw, v, g))
