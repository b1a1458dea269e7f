"""What `where` did not take has no cotangent, and none comes to be on the way back through views, sums, indices and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jacfwd, jacrev, vmap

X = cr.tensor([0.5, 0.0], dtype=cr.float64)


def _written(x: Any) -> Any:
    y = x.sqrt()
    y[x < 100] = 0.0
    return y + x.exp()


def _filled(x: Any) -> Any:
    return x.sqrt().masked_fill(x < 100, 0.0) + x.exp()


# Of each, the part with an infinite slope (or a NaN) at 0 is never taken; the other is exp(x), `times` times.
NEVER: dict[str, tuple[Callable[[Any], Any], int]] = {
    "same shape": (lambda x: cr.where(x > 100, x.sqrt(), x.exp()), 1),
    "0 / 0": (lambda x: cr.where(x > 100, x / (x * 0), x.exp()), 1),
    "reshape": (lambda x: cr.where(x > 100, x.sqrt().reshape(2, 1).squeeze(1), x.exp()), 1),
    "flip": (lambda x: cr.where(x > 100, x.sqrt().flip(0), x.exp()), 1),
    "roll": (lambda x: cr.where(x > 100, x.sqrt().roll(1), x.exp()), 1),
    "index": (lambda x: cr.where(x > 100, x.sqrt()[[1, 0]], x.exp()), 1),
    "gather": (lambda x: cr.where(x > 100, x.sqrt().gather(0, cr.tensor([1, 1])), x.exp()), 1),
    "select": (lambda x: cr.where(x > 100, x.sqrt()[1], x.exp()), 1),
    "expand": (lambda x: cr.where(x > 100, x.sqrt().expand(3, 2), x.exp()), 3),
    "broadcast": (lambda x: cr.where(cr.ones(3, 2) > 100, x.sqrt(), x.exp()), 3),
    "product": (lambda x: cr.where(x > 100, x.sqrt() * cr.ones(3, 2), x.exp()), 3),
    "cat": (lambda x: cr.where(cr.ones(4) > 100, cr.cat([x.sqrt(), x.log()]), cr.cat([x, x]).exp()), 2),
    "stack": (lambda x: cr.where(cr.ones(2, 2) > 100, cr.stack([x.sqrt(), x.log()]), x.exp()), 2),
    "sum": (lambda x: cr.where((x > 100).any(), x.sqrt().sum(), x.exp().sum()), 1),
    "mean": (lambda x: cr.where((x > 100).any(), x.sqrt().mean(), x.exp().sum()), 1),
    "unfold": (lambda x: cr.where(x > 100, x.sqrt().unfold(0, 1, 1).sum(1), x.exp()), 1),
    "as_strided": (lambda x: cr.where(x > 100, x.sqrt().as_strided((2,), (1,)), x.exp()), 1),
    "triangle": (lambda x: cr.where(x > 100, x.sqrt().expand(2, 2).tril().sum(0), x.exp()), 1),
    "another type": (lambda x: cr.where(x > 100, x.to(cr.float32).sqrt().to(cr.float64), x.exp()), 1),
    "a written slice": (lambda x: cr.where(x > 100, x.sqrt().slice_scatter(x[:1].log(), 0, 0, 1), x.exp()), 1),
    "written": (_written, 1),
    "masked_fill": (_filled, 1),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_is_never_taken_has_no_derivative(name: str) -> None:
    f, times = NEVER[name]
    want = times * X.exp().numpy()

    def total(x: Any) -> Any:
        return f(x).sum()

    both = cr.stack([X, X])
    close = lambda got, wanted: np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6)
    for g in (grad(total), jacrev(total), jacfwd(total)):
        close(g(X), want)
    for batched in (vmap(grad(total))(both), grad(lambda xs: vmap(total)(xs).sum())(both)):
        close(batched, [want, want])
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd):
            close(outer(inner(total))(X), np.diag(want))


def test_what_is_taken_once_is_there() -> None:
    """Cotangents from two sides, one of them absent, add up; an infinite slope that is taken stays infinite."""
    y = grad(lambda x: (cr.where(x > 0.1, x.sqrt().flip(0).flip(0), 0.0) + x.sqrt()).sum())(X)
    assert y.tolist() == [pytest.approx(2 * 0.5 / 0.5**0.5), float("inf")]
    z = grad(lambda x: cr.where(cr.tensor([[True, False], [False, False]]), x.sqrt(), 0.0).sum())(X)
    assert z.tolist() == [pytest.approx(0.5 / 0.5**0.5), 0.0]
