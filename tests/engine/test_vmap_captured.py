"""A tensor from outside that vmap's function writes to, example by example, is refused and keeps its value."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr
from chainrule.func import grad, vmap

WRITES = {
    "whole": lambda c, x: c.add_(x),
    "after a common write": lambda c, x: c.add_(1).mul_(x),
    "through a view": lambda c, x: c[1:].add_(x[1:]),
    "one entry": lambda c, x: c.__setitem__(0, x[0]),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("outside", ["vmap", "grad of vmap"])
def test_a_captured_tensor_is_as_it_was(name: str, outside: str) -> None:
    c = cr.tensor([1.0, 2.0, 3.0])
    view = c[1:]

    def f(x: Any) -> Any:
        WRITES[name](c, x)
        return x

    with pytest.raises(cr.ChainruleError, match="from outside the mapped function was written to"):
        if outside == "vmap":
            vmap(f)(cr.ones(2, 3))
        else:
            grad(lambda x: vmap(f)(x).sum())(cr.ones(2, 3))
    first = 1.0 if "common" in name else 0.0
    assert (c + 1).tolist() == [2.0 + first, 3.0 + first, 4.0 + first]
    assert view.tolist() == [2.0 + first, 3.0 + first]


def test_another_error_leaves_it_as_it_was_too() -> None:
    c = cr.zeros(3)

    def f(x: Any) -> Any:
        c.add_(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        vmap(f)(cr.ones(2, 3))
    assert c.tolist() == [0.0, 0.0, 0.0]


def test_a_tensor_of_an_outer_vmap_is_as_it_was() -> None:
    def f(x: Any) -> Any:
        d = 2 * x
        with pytest.raises(cr.ChainruleError, match="from outside the mapped function"):
            vmap(lambda z: d.add_(z))(cr.ones(2, 3))
        return d + 1

    assert vmap(f)(cr.ones(2, 3)).tolist() == [[3.0] * 3] * 2
