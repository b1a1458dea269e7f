"""Reverse mode over dual numbers of the imperative style: the gradient of a dual number is one, as in PyTorch."""

import pytest
import torch

import chainrule as cr
import chainrule.utils.checkpoint
from chainrule.func import vmap


def start(lib):
    x = lib.tensor([1.0, 2.0, -0.5], dtype=lib.float64, requires_grad=True)
    w = lib.tensor([0.5, -1.0, 2.0], dtype=lib.float64, requires_grad=True)
    t = lib.tensor([1.0, -1.0, 0.5], dtype=lib.float64)
    return x, w, t, lib.autograd.forward_ad


def parts(fa, gs):
    out = []
    for g in gs:
        p, t = fa.unpack_dual(g)
        out += [p.detach(), None if t is None else t.detach()]
    return out


def of_leaf(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        y = (fa.make_dual(x, t) ** 3).sum()
        return parts(fa, lib.autograd.grad(y, x))


def of_dual(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        return parts(fa, lib.autograd.grad((d**3 * d.sum()).sum(), d))


def of_dual_beside_its_primal(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        y = (d.sin() * x).sum()
        return parts(fa, lib.autograd.grad(y, [d, x]))


def of_captured(lib):
    x, w, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        return parts(fa, lib.autograd.grad((d.sin() * w * w).sum(), [x, w]))


def tangent_that_depends(lib):
    x, w, _, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, x * w)
        return parts(fa, lib.autograd.grad((d**3 * w).sum(), [x, w]))


def its_tangent_differentiated(lib):
    x, w, _, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, x * w)
        t = fa.unpack_dual((d**3).sum()).tangent
        return list(lib.autograd.grad(t, [x, w]))


def dual_cotangent(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        g = fa.make_dual(t * 2, t + 1)
        return parts(fa, lib.autograd.grad(d.exp(), x, g))


def third_order(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        (g,) = lib.autograd.grad((d**4).sum(), d, create_graph=True)
        return parts(fa, lib.autograd.grad((g * g).sum(), d))


def through_the_tangent(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        (g,) = lib.autograd.grad((d**4).sum(), d, create_graph=True)
        return list(lib.autograd.grad(fa.unpack_dual(g).tangent.sum(), x))


def unused(lib):
    x, w, t, fa = start(lib)
    with fa.dual_level():
        g = lib.autograd.grad(fa.make_dual(x, t).sin().sum(), [x, w], allow_unused=True)
        return [*parts(fa, g[:1]), g[1]]


def no_tangent_at_all(lib):
    x, w, t, fa = start(lib)
    with fa.dual_level():
        y = fa.make_dual(x.detach(), t) * w
        return parts(fa, lib.autograd.grad(y.sum(), w))


def accumulated(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        (fa.make_dual(x, t) ** 3).sum().backward()
    return [x.grad]


def after_the_level(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        y = (fa.make_dual(x, t) ** 3).sum()
    y.backward()
    return [x.grad]


def with_a_write(lib):
    x, _, t, fa = start(lib)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        v = d.sin()
        v[1:].mul_(d[:2])
        return parts(fa, lib.autograd.grad((v * v).sum(), x))


CASES = [
    of_leaf, of_dual, of_dual_beside_its_primal, of_captured, tangent_that_depends, its_tangent_differentiated, dual_cotangent, third_order,
    through_the_tangent, unused, no_tangent_at_all, accumulated, after_the_level, with_a_write,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda f: f.__name__)
def test_as_pytorch_does(case):
    got, want = case(cr), case(torch)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        assert (a is None) == (b is None)
        assert a is None or a.tolist() == pytest.approx(b.tolist(), abs=1e-12)


def test_under_vmap():
    x = cr.tensor([[1.0, 2.0, -0.5], [0.3, 0.1, 1.2]], dtype=cr.float64)
    t = cr.tensor([1.0, -1.0, 0.5], dtype=cr.float64)

    def hvp(x):
        fa = cr.autograd.forward_ad
        x = x.clone().requires_grad_()
        with fa.dual_level():
            y = (fa.make_dual(x, t) ** 3).sum()
            return fa.unpack_dual(cr.autograd.grad(y, x)[0]).tangent

    assert cr.allclose(vmap(hvp)(x), 6 * x * t)
    assert cr.allclose(cr.func.grad(lambda x: hvp(x).sum())(x[0]), cr.zeros_like(t))  # a leaf of its own: a constant
    assert cr.allclose(hvp(x[0]), 6 * x[0] * t)


def test_through_a_checkpoint():
    x, _, t, fa = start(cr)
    with fa.dual_level():
        d = fa.make_dual(x, t)
        y = chainrule.utils.checkpoint.checkpoint(lambda v: (v**3).sum(), d, use_reentrant=False)
        p, tangent = fa.unpack_dual(cr.autograd.grad(y, x)[0])
    assert cr.allclose(p, 3 * x * x)
    assert cr.allclose(tangent, 6 * x * t)


def test_what_is_not_recorded_says_so():
    x, _, t, fa = start(cr)
    with fa.dual_level():
        y = fa.make_dual(x.detach(), t).sum()
        with pytest.raises(RuntimeError, match="does not require grad"):
            cr.autograd.grad(y, x)


def test_cotangents_mapped_over_inside_the_level():
    """A row of the Jacobian for each unit cotangent, and its tangent: by is_grads_batched, and by a vmap of one's own."""
    x, _, t, fa = start(cr)
    rows = [cr.func.jvp(cr.func.grad(lambda v, k=k: (v**3 * v.sum())[k]), (x.detach(),), (t,)) for k in range(3)]

    def f(v):
        return v**3 * v.sum()

    with fa.dual_level():
        y = f(fa.make_dual(x, t))
        (g,) = cr.autograd.grad(y, x, cr.eye(3, dtype=cr.float64), retain_graph=True, is_grads_batched=True)
        mapped = vmap(lambda e: cr.autograd.grad(y, x, e, retain_graph=True)[0])(cr.eye(3, dtype=cr.float64))
        for got in (g, mapped):
            p, tangent = fa.unpack_dual(got)
            assert cr.allclose(p, cr.stack([r for r, _ in rows]))
            assert cr.allclose(tangent, cr.stack([r for _, r in rows]))
