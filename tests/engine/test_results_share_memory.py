"""What a transform gives back may show the memory of an argument or of its tape: a write to it reaches nothing that was saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chainrule as cr
from chainrule.func import grad, jvp, linearize, vjp, vmap


def _first(x: Any) -> Any:
    return x[0] if isinstance(x, tuple) else x


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "the argument": lambda a: a,
    "a view": lambda a: a[1:],
    "a view of a view": lambda a: a[None].transpose(0, -1)[1:],
    "a result that is saved": lambda a: a.exp(),
    "a view of one": lambda a: a.exp()[None].transpose(0, -1),
}
TRANSFORMS: dict[str, Callable[..., Any]] = {
    "vmap": lambda f, x: vmap(f)(x),
    "vmap of vmap": lambda f, x: vmap(vmap(f))(x),
    "vmap along the last": lambda f, x: vmap(f, in_dims=-1, out_dims=-1)(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,))[0],
    "tangent": lambda f, x: jvp(f, (x * 1,), (x,))[1],
    "vjp": lambda f, x: vjp(f, x)[0],
    "linearize": lambda f, x: linearize(f, x)[0],
    "aux": lambda f, x: grad(lambda a: (a.sum(), f(a)), has_aux=True)(x)[1],
}


@pytest.mark.parametrize("how", TRANSFORMS)
@pytest.mark.parametrize("what", FUNCTIONS)
def test_a_write_to_a_result_leaves_what_a_tape_keeps(what: str, how: str) -> None:
    x, w = cr.ones(3, 4, 5), cr.full((3, 4, 5), 2.0, requires_grad=True)
    kept = (w * x).sum()  # saves x
    TRANSFORMS[how](FUNCTIONS[what], x).zero_()
    kept.backward()
    assert bool((w.grad == 1).all())


@pytest.mark.parametrize("what", FUNCTIONS)
@pytest.mark.parametrize("make", [vjp, linearize])
def test_a_write_to_the_value_leaves_its_own_tape(make: Callable[..., Any], what: str) -> None:
    x = cr.rand(3, 4, dtype=cr.float64)
    y, along = make(FUNCTIONS[what], x)
    given = cr.ones_like(x if make is linearize else y)
    want = _first(along(given)).clone()
    y.zero_()
    assert cr.equal(_first(along(given)), want)


@pytest.mark.parametrize("dims", [0, 1, -1])
def test_vmap_of_views_gives_views(dims: int) -> None:
    x = cr.rand(3, 4, 5)
    y = vmap(lambda a: a.t()[1:], in_dims=dims, out_dims=dims)(x)
    assert y._base is x
    want = cr.stack([x.select(dims, i).t()[1:] for i in range(x.shape[dims])], dims)
    y.mul_(2)
    assert not cr.equal(y, want)
    assert cr.equal(y, cr.stack([x.select(dims, i).t()[1:] for i in range(x.shape[dims])], dims))
    x.fill_(7)
    assert bool((y == 7).all())
    assert vmap(vmap(lambda a: a.view(5, 1)))(x)._base is x


@pytest.mark.parametrize("dims", [0, 1, 2])
def test_vmap_of_a_write_gives_the_argument_back(dims: int) -> None:
    for write in (lambda a: a.exp_(), lambda a: a.copy_(a[0].expand_as(a)), lambda a: a.fill_(3.0)):
        x = cr.rand(3, 4, 5)
        want = cr.stack([write(x.select(dims, i).clone()) for i in range(x.shape[dims])], dims)
        y = vmap(write, in_dims=dims, out_dims=dims)(x)
        assert y._base is x and cr.equal(x, want) and cr.equal(y, want)
    x = cr.rand(3, 4, 5)
    y = vmap(cr.Tensor.copy_, in_dims=(dims, None))(x, cr.tensor(0.5))
    assert bool((x == 0.5).all()) and y.shape == x.movedim(dims, 0).shape and y._base is x
