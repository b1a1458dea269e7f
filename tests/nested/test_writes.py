"""Writes to nested tensors: index assignment, in-place ops, views of components and of packed rows, saved values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct

from .harness import close

nested, func = ct.nested, ct.func


def make(*sizes: int) -> Any:
    rng = np.random.default_rng(len(sizes))
    return nested.nested_tensor([rng.normal(size=(n, 2)) for n in sizes], dtype=ct.float64)


SIZES = (3, 1, 2)
# A write to the nest, and the same to the list of its components.
WRITES: dict[str, tuple[Any, Any]] = {
    "a component": (lambda x: x.__setitem__(1, 5.0), lambda c: c[1].fill_(5)),
    "an entry": (lambda x: x.__setitem__((0, 2, 1), 5.0), lambda c: c[0].__setitem__((2, 1), 5.0)),
    "a row": (
        lambda x: x.__setitem__((0, 1), ct.tensor([8.0, 9.0])),
        lambda c: c[0].__setitem__(1, ct.tensor([8.0, 9.0])),
    ),
    "the first of each": (lambda x: x.__setitem__((slice(None), 0), 7.0), lambda c: [v.__setitem__(0, 7.0) for v in c]),
    "the last of each": (
        lambda x: x.__setitem__((slice(None), -1), ct.arange(6.0).reshape(3, 2)),
        lambda c: [v.__setitem__(-1, w) for v, w in zip(c, ct.arange(6.0).reshape(3, 2), strict=True)],
    ),
    "a column": (lambda x: x.__setitem__((..., 1), 0.0), lambda c: [v.__setitem__((..., 1), 0.0) for v in c]),
    "all but the first": (
        lambda x: x.__setitem__((slice(None), slice(1, None)), 3.0),
        lambda c: [v.__setitem__(slice(1, None), 3.0) for v in c],
    ),
    "some components": (lambda x: x.__setitem__(slice(1, None), -1.0), lambda c: [v.fill_(-1) for v in c[1:]]),
    "listed components": (lambda x: x.__setitem__(ct.tensor([2, 0]), -1.0), lambda c: [c[i].fill_(-1) for i in (2, 0)]),
    "pairs": (
        lambda x: x.__setitem__((ct.tensor([0, 2]), ct.tensor([2, 1])), 4.0),
        lambda c: [c[i].__setitem__(j, 4.0) for i, j in ((0, 2), (2, 1))],
    ),
    "a mask": (lambda x: x.__setitem__(x > 0, -2.0), lambda c: [v.__setitem__(v > 0, -2.0) for v in c]),
    "a nest": (lambda x: x.__setitem__(slice(1, None), 2 * x[1:]), lambda c: [v.mul_(2) for v in c[1:]]),
    "in place": (lambda x: x.mul_(2).add_(1).clamp_(-1, 2), lambda c: [v.mul_(2).add_(1).clamp_(-1, 2) for v in c]),
    "through a component": (lambda x: x[2].mul_(3), lambda c: c[2].mul_(3)),
    "through unbind": (lambda x: [v.mul_(3) for v in x.unbind()], lambda c: [v.mul_(3) for v in c]),
    "through rows": (lambda x: x.values().mul_(3), lambda c: [v.mul_(3) for v in c]),
    "through a transpose": (lambda x: x.transpose(1, 2)[:, 0].zero_(), lambda c: [v[:, 0].zero_() for v in c]),
    "fill_": (lambda x: x[1:].fill_(2.5), lambda c: [v.fill_(2.5) for v in c[1:]]),
    "index_put_": (
        lambda x: x.index_put_((ct.tensor([0, 0]), ct.tensor([1, 1])), ct.ones(2, 2, dtype=x.dtype), accumulate=True),
        lambda c: c[0][1].add_(2),
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str) -> None:
    write, one_by_one = WRITES[name]
    x = make(*SIZES)
    comps = [c.clone() for c in x.unbind()]
    y = x.clone()
    write(y)
    one_by_one(comps)
    close(y, comps, name)

    def of_nest(x: Any) -> Any:
        y = x * 1
        write(y)
        return (y.sin() * y).sum()

    def of_list(cs: Any) -> Any:
        ys = [c * 1 for c in cs]
        one_by_one(ys)
        return sum((y.sin() * y).sum() for y in ys)

    cs, ts = list(x.unbind()), [c.cos() for c in x.unbind()]
    close(func.grad(of_nest)(x), func.grad(of_list)(cs), "grad")
    leaf = x.clone().requires_grad_()
    of_nest(leaf).backward()
    close(leaf.grad, func.grad(of_list)(cs), "backward")
    close(func.jvp(of_nest, (x,), (x.cos(),))[1], func.jvp(of_list, (cs,), (ts,))[1], "jvp")
    close(
        func.jvp(func.grad(of_nest), (x,), (x.cos(),))[1], func.jvp(func.grad(of_list), (cs,), (ts,))[1], "jvp of grad"
    )


def test_families_share_writes() -> None:
    v = ct.arange(6.0)
    x = nested.nested_tensor_from_jagged(v, ct.tensor([0, 2, 6]))
    c, rows = x[1], x.values()
    v.add_(1)
    assert x.tolist() == [[1, 2], [3, 4, 5, 6]] and c.tolist() == [3, 4, 5, 6]
    x.mul_(2)
    assert v.tolist() == [2, 4, 6, 8, 10, 12] == rows.tolist() and c.tolist() == [6, 8, 10, 12]
    x[0] = 0
    c[1] = -1
    assert v.tolist() == [0, 0, 6, -1, 10, 12] and x.tolist() == [[0, 0], [6, -1, 10, 12]]


def test_saved_values_never_change() -> None:
    a = ct.arange(6.0).requires_grad_()
    x = nested.nested_tensor_from_jagged(a * 1, ct.tensor([0, 2, 6]))
    y = x.square()
    for c in x.unbind():
        c.zero_()
    x.values().add_(3)
    (y.sum() + x.sum()).backward()
    assert a.grad.tolist() == [0, 2, 4, 6, 8, 10]


def test_leaves_are_protected() -> None:
    x = nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    for write in (lambda: x.__setitem__(0, 1.0), lambda: x.mul_(2), lambda: x[0].zero_()):
        with pytest.raises(ct.ChainruleError, match="leaf"):
            write()
    with ct.no_grad():
        x[0] = 9.0
    assert x.requires_grad and x.is_leaf and x.tolist() == [[9, 9], [3]]


def test_a_value_that_does_not_fit() -> None:
    with pytest.raises(RuntimeError, match="cannot be broadcast"):
        make(3, 1)[:, 0] = ct.ones(3, 2)
    with pytest.raises(IndexError, match="component 1 has size 1"):
        make(3, 1)[:, 2] = 0.0
