"""Transforms over ragged data: Jacobians, Hessians, checks, ensembles of weights over one nest, levels in any order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct
from chainrule.utils.checkpoint import checkpoint as recompute

from .harness import close

nested, func = ct.nested, ct.func
SIZES = [3, 1, 0, 5]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


@pytest.fixture
def comps(rng: np.random.Generator) -> list[Any]:
    return [ct.tensor(rng.normal(size=(n, 4))) for n in SIZES]


@pytest.fixture
def x(comps: list[Any]) -> Any:
    return nested.as_nested_tensor(comps)


@pytest.fixture
def w(rng: np.random.Generator) -> Any:
    return ct.tensor(rng.normal(size=(3, 4, 4)))


def pooled(c: Any, m: Any) -> Any:
    return ((c @ m).softmax(-2) * c.sin()).sum((-2, -1))


def test_jacobians_keep_the_structure_of_the_input(x: Any, comps: list[Any], w: Any) -> None:
    for jac in (func.jacrev, func.jacfwd):
        j = jac(lambda v: pooled(v, w[0]))(x)
        assert j.shape[:2] == (4, 4) and j.is_nested
        for i in range(4):
            want = [func.grad(pooled)(c, w[0]) if k == i else ct.zeros_like(c) for k, c in enumerate(comps)]
            close(list(j[i].unbind()), want, "jacobian")


def test_jacobian_of_a_nested_output_has_one_dim_for_its_elements(x: Any, comps: list[Any], w: Any) -> None:
    j = func.jacrev(lambda m: (x @ m).sin())(w[0])
    want = ct.cat([func.jacfwd(lambda m, c=c: (c @ m).sin())(w[0]).reshape(-1, 4, 4) for c in comps if c.shape[0]])
    close(j, want, "jacobian of a nested output")


def test_hessian_of_ragged_data(x: Any, comps: list[Any], w: Any) -> None:
    h = func.hessian(lambda v: pooled(v, w[0]).sum())(x)
    assert h.shape[0] == x.numel()
    at = 0
    for k, c in enumerate(comps):
        n = c.numel()
        if n:
            want = func.hessian(lambda v: pooled(v, w[0]))(c).reshape(n, *c.shape)
            got = ct.stack([h[at + i].unbind()[k] for i in range(n)])
            close(got, want, "hessian block")
        at += n


def test_jacobians_of_each_component(x: Any, w: Any) -> None:
    """Inside vmap a Jacobian has the sizes of the component, in its input and in its output."""
    parts = [x[0], x[1], x[3]]
    nest = nested.as_nested_tensor(parts)
    for f in (lambda c: (c @ w[0]).sin().sum(0), lambda c: (c @ w[0]).cumsum(0).sin()):
        for jac in (func.jacrev(f), func.jacfwd(f)):
            close(ct.vmap(jac)(nest), [jac(c) for c in parts], "jacobian")
    close(
        ct.vmap(func.hessian(lambda c: pooled(c, w[0])))(nest),
        [func.hessian(lambda c: pooled(c, w[0]))(c) for c in parts],
        "hessian",
    )
    both = func.jacfwd(lambda c, m: (c @ m).sin().sum(0), (0, 1))
    close(
        list(ct.vmap(both, (0, None))(nest, w[0])),
        [[both(c, w[0])[i] for c in parts] if not i else ct.stack([both(c, w[0])[i] for c in parts]) for i in (0, 1)],
        "two",
    )
    per = ct.vmap(func.hessian(lambda m, c: pooled(c, m)), (None, 0))(w[0], nest)
    close(per, ct.stack([func.hessian(lambda m, c=c: pooled(c, m))(w[0]) for c in parts]), "per-example hessian")


def test_gradcheck(x: Any, w: Any) -> None:
    assert ct.autograd.gradcheck(lambda v: (v @ w[0]).softmax(1), (x.detach().requires_grad_(),))
    assert ct.autograd.gradgradcheck(lambda v: pooled(v, w[0]), (x.detach().requires_grad_(),))


def test_checks_reject_a_wrong_derivative(x: Any) -> None:
    with pytest.raises(ct.autograd.GradcheckError):
        ct.autograd.gradcheck(lambda v: v.sin() + 0.01 * (v - v.detach()), (x.detach().requires_grad_(),))


def test_checkpoint(x: Any, w: Any) -> None:
    from chainrule.utils.checkpoint import checkpoint

    close(
        func.grad(lambda v: checkpoint(pooled, v, w[0]).sum())(x),
        func.grad(lambda v: pooled(v, w[0]).sum())(x),
        "checkpoint",
    )
    assert recompute is not None


def test_an_ensemble_of_weights_over_one_nest(x: Any, comps: list[Any], w: Any) -> None:
    y = ct.vmap(lambda m: (x @ m).softmax(1))(w)
    assert y.shape[:2] == (3, 4)
    for b in range(3):
        close(list(y[b].unbind()), [(c @ w[b]).softmax(0) for c in comps], "ensemble")
    loss = lambda v, m: pooled(v, m).sin().sum()
    close(
        ct.vmap(func.grad(loss, 1), (None, 0))(x, w),
        ct.stack([sum(func.grad(loss, 1)(c, w[b]) for c in comps) for b in range(3)]),
        "weights",
    )
    g = ct.vmap(func.grad(loss, 0), (None, 0))(x, w)
    for b in range(3):
        close(list(g[b].unbind()), [func.grad(loss, 0)(c, w[b]) for c in comps], "inputs")


def test_levels_in_any_order(x: Any, comps: list[Any], w: Any) -> None:
    want = ct.stack([ct.stack([pooled(c, w[b]) for c in comps]) for b in range(3)])
    close(ct.vmap(lambda m: ct.vmap(lambda c: pooled(c, m))(x))(w), want, "weights outside")
    close(ct.vmap(lambda c: ct.vmap(lambda m: pooled(c, m))(w))(x), want.mT, "components outside")
    want = [ct.stack([func.grad(pooled)(c, w[b]) for b in range(3)]) for c in comps]
    close(ct.vmap(lambda c: ct.vmap(lambda m: func.grad(pooled)(c, m))(w))(x), want, "gradients")


def test_linearize_and_vjp(x: Any, comps: list[Any], w: Any) -> None:
    y, push = func.linearize(lambda v: (v @ w[0]).softmax(1), x)
    close(
        list(push(x).unbind()), [func.jvp(lambda v: (v @ w[0]).softmax(0), (c,), (c,))[1] for c in comps], "linearize"
    )
    _, pull = func.vjp(lambda v: (v @ w[0]).softmax(1), x)
    close(
        list(pull(y)[0].unbind()),
        [func.vjp(lambda v: (v @ w[0]).softmax(0), c)[1]((c @ w[0]).softmax(0))[0] for c in comps],
        "vjp",
    )


def test_ops_run_once_for_all_components(w: Any) -> None:
    """The number of ops does not grow with the number of components."""
    from chainrule.core.op import Op

    def ops(n: int) -> int:
        x = nested.nested_tensor([np.ones((1 + i % 3, 4)) for i in range(n)], dtype=ct.float64)
        count, old = 0, Op.run

        def counted(self: Any, args: Any, kw: Any) -> Any:
            nonlocal count
            count += 1
            return old(self, args, kw)

        Op.run = counted  # type: ignore[method-assign]
        try:
            ct.vmap(func.grad(lambda c: pooled(c, w[0]) + c.cumsum(0).sum() + (c @ c.mT).sum()))(x)
        finally:
            Op.run = old  # type: ignore[method-assign]
        return count

    assert ops(4) == ops(40)


W = ct.tensor(np.random.default_rng(4).normal(size=(2, 4)))


def written(r: Any) -> Any:
    r = r * 1
    r[ct.tensor([0, 0])] = ct.tensor([2.0, 3.0], dtype=ct.float64)
    return r


ROWS = {
    "softmax": lambda r: r.softmax(0) * r,
    "sum": lambda r: r.sum(),
    "sort": lambda r: r.sort()[0],
    "index": lambda r: r[ct.tensor([1, 0])],
    "cumsum": lambda r: r.cumsum(0),
    "linear": lambda r: ct.nn.functional.linear(r, W),
    "layer_norm": lambda r: ct.nn.functional.layer_norm(r, (4,)),
    "constant": lambda r: ct.ones(2, dtype=ct.float64) + r.sum(),
    "outer": lambda r: ct.outer(r, r),
    "writes": written,
}


@pytest.mark.parametrize("name", ROWS)
def test_map_over_the_rows_of_components(x: Any, comps: list[Any], name: str) -> None:
    f, total = ROWS[name], lambda r: (ROWS[name](r).sin() + ROWS[name](r) ** 2).sum()
    over = lambda g: func.vmap(func.vmap(g))
    rows = [c for c in comps if len(c)]
    for got, want in (
        (over(f)(x), [func.vmap(f)(c) for c in rows]),
        (over(func.grad(total))(x), [func.vmap(func.grad(total))(c) for c in rows]),
        (func.grad(lambda x: over(total)(x).sum())(x), [func.vmap(func.grad(total))(c) for c in rows]),
    ):
        close([y for y in got.unbind() if len(y)], want, name)
