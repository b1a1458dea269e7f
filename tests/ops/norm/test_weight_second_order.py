"""The second-order rules of weight norm: kernel against formula, every dim, every float type, examples in front."""

import ml_dtypes
import numpy as np
import pytest

import chainrule as ct
from chainrule.ops.norm import weight as module
from chainrule.ops.norm.weight import backward_tangent_op, double_backward_op

SHAPE = (6, 5, 4)
DTYPES = {
    "float32": (np.float32, 3e-6),
    "float64": (np.float64, 1e-13),
    "float16": (np.float16, 2e-3),
    "bfloat16": (ml_dtypes.bfloat16, 2e-2),
}


def arguments(dtype, dim, lead, names):
    """Arrays by name: gw, v and their like have SHAPE, the others one entry for each kept slice."""
    r = np.random.default_rng(0)
    small = tuple(s if dim is not None and i - 3 == dim else 1 for i, s in enumerate(SHAPE))
    stats = np.float64 if dtype is np.float64 else np.float32
    out = []
    for name in names:
        large = name in ("a", "gw", "v", "tgw", "tv")
        x = r.standard_normal(lead + (SHAPE if large else small)) + (3 if name == "n" else 0)
        out.append(x.astype(stats if name in ("n", "tn") else dtype))
    return out


@pytest.mark.skipif(not ct.kernels.available(), reason="no compiler")
@pytest.mark.parametrize("lead", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("dim", [-3, -2, -1, None])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", [double_backward_op, backward_tangent_op], ids=lambda o: o.name)
def test_kernel_and_formula_agree(op, dtype, dim, lead):
    d, tol = DTYPES[dtype]
    names = (
        ("a", "b", "gw", "v", "g", "n") if op is double_backward_op else ("gw", "tgw", "v", "tv", "g", "tg", "n", "tn")
    )
    xs = arguments(d, dim, lead, names)
    got = op.kernel(*xs, dim=dim, rank=3)
    exact = [x.astype(np.float64) for x in xs]
    want = op.spec(*[ct.from_numpy(x) for x in exact], dim=dim, rank=3)
    for a, b in zip(got, want, strict=True):
        scale = np.abs(b.numpy()).max()
        np.testing.assert_allclose(a.astype(np.float64), b.numpy(), rtol=tol, atol=tol * scale)


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_every_mix_of_second_order(dim):
    """Double backward, forward over reverse and finite differences of one loss."""
    r = np.random.default_rng(1)
    v, tv = (ct.from_numpy(r.standard_normal(SHAPE)) for _ in range(2))
    small = (1, 1, 1) if dim == -1 else tuple(s if i == dim else 1 for i, s in enumerate(SHAPE))
    g, tg = (ct.from_numpy(r.standard_normal(small)) for _ in range(2))

    def gradient(v, g):
        return ct.func.grad(lambda v, g: (ct._weight_norm(v, g, dim) ** 3).sum(), argnums=(0, 1))(v, g)

    _, forward = ct.func.jvp(gradient, (v, g), (tv, tg))
    _, pull = ct.func.vjp(gradient, v, g)
    reverse = pull((tv, tg))  # the Hessian is symmetric
    eps = 1e-5
    up, down = gradient(v + eps * tv, g + eps * tg), gradient(v - eps * tv, g - eps * tg)
    for f, b, p, q in zip(forward, reverse, up, down, strict=True):
        np.testing.assert_allclose(f.numpy(), b.numpy(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(f.numpy(), ((p - q) / (2 * eps)).numpy(), rtol=1e-6, atol=1e-6)


def test_rows_of_zeros_stay_finite():
    v = ct.tensor([[0.0, 0.0], [1.0, -2.0]], dtype=ct.float64)
    g = ct.ones(2, 1, dtype=ct.float64)
    _, t = ct.func.jvp(ct.func.grad(lambda v: (module.weight_norm(v, g, 0) ** 2).sum()), (v,), (ct.ones_like(v),))
    assert ct.isfinite(t).all()
