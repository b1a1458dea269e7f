"""A derivative that exists is never a silent zero: ops without rules, a detour through numpy(), choices that depend on values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.core import dtypes as dt
from chainrule.core.errors import MissingRuleError
from chainrule.core.op import OPS, Op
from chainrule.core.samples import SAMPLES
from chainrule.core.tensor import Tensor
from chainrule.ops.special.orders import ORDERED
from chainrule.testing.laws import case_of

# Ops without a derivative that take and give floats, and why none is lost.
WITHOUT = {
    "detach": "that is what it is for",
    "one_hot_max": "the straight-through estimate: gumbel_softmax adds the soft value's derivative",
    "eigvalsh": "called where no derivative is taken: otherwise eigh is",
    "eigvals": "called where no derivative is taken: otherwise eig is",
    "svdvals": "called where no derivative is taken: otherwise svd is",
    "poisson": "counts: random numbers that do not move with the rate, as in PyTorch",
    "binomial": "counts: random numbers that do not move with the probability, as in PyTorch",
    "check_range": "indices",
    "check_unit_interval": "a check: its result is not used",
    "check_nonnegative": "a check: its result is not used",
    "check_weights": "a check: its result is not used",
    "check_fraction": "a check: its result is not used",
    "view_dtype": "bits, not numbers",
}


def test_no_op_without_rules_turns_floats_into_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    found: set[str] = set()
    run = Op.run

    def noting(self: Op, args: Any, kw: Any) -> Any:
        y = run(self, args, kw)
        if not self.differentiable and any(isinstance(a, Tensor) and a.dtype.category >= dt.FLOAT for a in args):
            ys = y if isinstance(y, tuple) else (y,)
            if any(v.dtype.category >= dt.FLOAT for v in ys):
                found.add(self.name)
        return y

    monkeypatch.setattr(Op, "run", noting)
    for s in SAMPLES:
        c = case_of(s, False)
        c.f(*c.tensors())
    assert sorted(found - set(WITHOUT)) == []
    assert set(WITHOUT) <= set(OPS), "an op of this name is gone"


MODES = {
    "grad": lambda f, x: func.grad(f)(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (cr.ones_like(x),))[1],
    "vjp of vjp": lambda f, x: func.grad(lambda x: func.grad(f)(x).sum())(x),
    "vmap": lambda f, x: func.vmap(func.grad(f))(cr.stack([x, x])),
    "backward": lambda f, x: f(x.clone().requires_grad_()).backward(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["jv", "kv", "ive"])
def test_what_is_missing_is_said(mode: str, name: str) -> None:
    x = cr.tensor([0.5, 2.5], dtype=cr.float64)
    with pytest.raises(MissingRuleError, match=rf"{name} has no derivative in the order"):
        MODES[mode](lambda v: ORDERED[name](v, x).sum(), x)


def test_numpy_is_no_way_out_of_a_derivative() -> None:
    x = cr.tensor([1.0, 2.0])
    detour = lambda x: cr.tensor(x.numpy() * 2).sum()
    for run in (lambda: func.grad(detour)(x), lambda: func.jvp(detour, (x,), (x,)), lambda: detour(x.requires_grad_())):
        with pytest.raises(RuntimeError, match=r"numpy\(\).*[Ww]ould lose"):
            run()
    y, t = func.jvp(lambda x: x * cr.tensor(x.detach().numpy()), (cr.tensor([3.0]),), (cr.tensor([1.0]),))
    assert y.tolist() == [9.0] and t.tolist() == [3.0]
    assert func.jvp(lambda x: x * float(x.numpy(force=True)[0]), (cr.tensor([3.0]),), (cr.tensor([1.0]),))[
        1
    ].tolist() == [3.0]
    # What has no tangent at the level may be looked at.
    assert (
        func.jvp(lambda a: a * float(cr.tensor([5.0]).numpy()[0]), (cr.tensor(1.0),), (cr.tensor(1.0),))[1].item()
        == 5.0
    )


def test_unique_goes_through_the_first_of_equal_ones() -> None:
    x = cr.tensor([3.0, 1.0, 2.0, 1.0])
    t = cr.tensor([10.0, 20.0, 30.0, 40.0])
    assert func.jvp(lambda x: cr.unique(x), (x,), (t,))[1].tolist() == [20.0, 30.0, 10.0]
    assert func.grad(lambda x: (cr.unique(x) * cr.tensor([1.0, 2.0, 3.0])).sum())(x).tolist() == [3.0, 1.0, 2.0, 0.0]
    w = cr.tensor([[2.0, 2.0, 1.0], [2.0, 2.0, 4.0]], requires_grad=True)
    y, inverse, counts = cr.unique_consecutive(w, True, True, dim=1)
    assert y.tolist() == [[2.0, 1.0], [2.0, 4.0]] and inverse.tolist() == [0, 0, 1] and counts.tolist() == [2, 1]
    (y**2).sum().backward()
    assert w.grad.tolist() == [[4.0, 0.0, 2.0], [4.0, 0.0, 8.0]]
    hess = func.hessian(lambda x: (cr.unique_consecutive(x) ** 3).sum())(cr.tensor([1.0, 1.0, 2.0]))
    assert hess.tolist() == [[6.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 12.0]]
    one = cr.tensor([7.0])
    assert func.grad(lambda x: (cr.unique(x) ** 2).sum())(one).tolist() == [14.0]
    assert func.vmap(lambda x: cr.unique(x))(cr.tensor([[1.0], [2.0]])).tolist() == [[1.0], [2.0]]


def test_edges_of_histograms_follow_the_extremes() -> None:
    x = cr.tensor([0.0, 1.0, 4.0, 2.0], dtype=cr.float64)
    edges = lambda x: cr.histogram(x, 4).bin_edges
    np.testing.assert_allclose(
        func.jacrev(edges)(x).numpy(), [[1 - k / 4, 0, k / 4, 0] for k in range(5)], rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(func.jacfwd(edges)(x).numpy(), func.jacrev(edges)(x).numpy())
    dd = lambda x: cr.histogramdd(x, (2, 1)).bin_edges[1]
    assert func.jacrev(dd)(cr.tensor([[0.0, 5.0], [1.0, 3.0]])).tolist() == [
        [[0.0, 0.0], [0.0, 1.0]],
        [[0.0, 1.0], [0.0, 0.0]],
    ]


def test_max_norm_has_the_derivative_of_the_table_after_scaling() -> None:
    w = cr.tensor([[3.0, 4.0], [0.1, 0.2]], dtype=cr.float64)
    i = cr.tensor([0, 1, 1])
    for f in (
        lambda w: (cr.nn.functional.embedding(i, w, max_norm=1.0) ** 2).sum(),
        lambda w: (cr.nn.functional.embedding_bag(i.reshape(3, 1), w, max_norm=1.0, mode="sum") ** 2).sum(),
    ):
        g = func.grad(f)(w)
        np.testing.assert_allclose(g.numpy(), [[1.2, 1.6], [0.4, 0.8]], rtol=1e-6)
        np.testing.assert_allclose(func.jvp(f, (w,), (cr.ones_like(w),))[1].numpy(), g.sum().numpy(), rtol=1e-12)
        np.testing.assert_allclose(func.hessian(f)(w).numpy().reshape(4, 4), np.diag([2.0, 2.0, 4.0, 4.0]), rtol=1e-12)
        assert w[0].tolist() == [3.0, 4.0], "a transform writes to nothing"
    leaf = w.clone().requires_grad_()
    (cr.nn.functional.embedding(i, leaf, max_norm=1.0) ** 2).sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), [[1.2, 1.6], [0.4, 0.8]], rtol=1e-6)
    np.testing.assert_allclose(leaf.detach().numpy()[0], [0.6, 0.8], rtol=1e-6)  # the table itself, as in PyTorch
