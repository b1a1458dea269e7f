"""Trees: every container through every transform, None and numbers, containers of one's own."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule import tree
from chainrule.core.tree import broadcast_prefix, match

Pair = namedtuple("Pair", "a b")


class Typed(NamedTuple):
    x: Any
    y: Any = None


@dataclasses.dataclass
class Point:
    x: Any
    y: Any
    name: str = dataclasses.field(default="p", metadata={"static": True})

    def __post_init__(self) -> None:
        self.made = getattr(self, "made", 0) + 1  # no field


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    w: Any
    kept: Any = dataclasses.field(default=None, init=False)


class Bag:
    """A container that trees must be taught."""

    def __init__(self, items: list[Any], label: str) -> None:
        self.items, self.label = items, label


tree.register(Bag, lambda b: (b.items, b.label), lambda items, label: Bag(list(items), label))


def containers(v: Any) -> list[Any]:
    """Containers of two leaves made of v."""
    return [
        (v, v),
        [v, v],
        {"b": v, "a": v},
        Pair(v, v),
        Typed(v, v),
        OrderedDict(z=v, a=v),
        defaultdict(list, {"q": v, "b": v}),
        deque([v, v], maxlen=3),
        Point(v, v, "q"),
        Bag([v, v], "l"),
        (v, None, [v], {}),
        {"x": {"y": (v,), "n": None}, "l": [[v]]},
        Frozen(Frozen((v, v))),
        {1: v, "one": v},
    ]


def same(a: Any, b: Any) -> None:
    """Equal containers of equal tensors, of the same classes and orders."""
    assert type(a) is type(b)
    if isinstance(a, cr.Tensor):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6)
    elif isinstance(a, dict):
        assert list(a) == list(b) and getattr(a, "default_factory", 0) == getattr(b, "default_factory", 0)
        for k in a:
            same(a[k], b[k])
    elif isinstance(a, tuple | list | deque):
        assert len(a) == len(b) and getattr(a, "maxlen", 0) == getattr(b, "maxlen", 0)
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif dataclasses.is_dataclass(a):
        for f in dataclasses.fields(a):
            same(getattr(a, f.name), getattr(b, f.name))
        assert getattr(a, "made", 0) == getattr(b, "made", 0)
    elif isinstance(a, Bag):
        assert a.label == b.label
        same(a.items, b.items)
    else:
        assert a == b


KINDS = range(len(containers(None)))


@pytest.mark.parametrize("k", KINDS)
def test_apart_and_together(k: int) -> None:
    t = containers(cr.ones(2))[k]
    leaves, spec = tree.flatten(t)
    assert len(leaves) == spec.leaves == 2 and leaves == tree.leaves(t)
    same(tree.unflatten(leaves, spec), t)
    same(tree.map(lambda a, b: a + b, t, t), containers(2 * cr.ones(2))[k])
    again = tree.flatten(containers(cr.zeros(3))[k])[1]
    assert spec == again and hash(spec) == hash(again)
    assert [tree.flatten(o)[1] == spec for o in containers(1)] == [i == k for i in KINDS]
    with pytest.raises(ValueError, match="leaves"):
        tree.unflatten([*leaves, 1], spec)
    with pytest.raises(ValueError, match="differ in shape"):
        tree.map(lambda a, b: a, t, (t, t))


@pytest.mark.parametrize("k", KINDS)
def test_every_transform(k: int) -> None:
    x = cr.tensor([1.0, 2.0], dtype=cr.float64)
    t, ones = containers(x)[k], containers(cr.ones(2, dtype=cr.float64))[k]
    f = lambda p: sum((v**2).sum() for v in tree.leaves(p))
    same(cr.func.grad(f)(t), containers(2 * x)[k])
    same(cr.func.grad(f, argnums=(0,))(t), (containers(2 * x)[k],))
    same(cr.func.grad(lambda y, p: f(p) * y.sum(), argnums=1)(x, t), containers(6 * x)[k])
    _, aux = cr.func.grad(lambda y: ((y**2).sum(), containers(y)[k]), has_aux=True)(x)
    same(aux, t)
    same(cr.func.vjp(lambda y: containers(2 * y)[k], x)[1](ones)[0], 4 * cr.ones(2, dtype=cr.float64))
    same(cr.func.vjp(f, t)[1](cr.tensor(1.0, dtype=cr.float64)), (containers(2 * x)[k],))
    same(cr.func.jvp(lambda p: tree.map(lambda v: v**2, p), (t,), (ones,)), (containers(x**2)[k], containers(2 * x)[k]))
    same(cr.func.vmap(lambda p: tree.map(lambda v: v**2, p))(t), containers(x**2)[k])
    same(
        cr.func.vmap(lambda y, p: tree.map(lambda v: v * y, p), in_dims=(0, None))(x, ones),
        containers(cr.stack([x, x], 1))[k],
    )
    same(cr.func.vmap(cr.func.grad(f))(t), containers(2 * x)[k])
    for jac in (cr.func.jacrev, cr.func.jacfwd):
        same(jac(f)(t), containers(2 * x)[k])
    _, push = cr.func.linearize(lambda p: tree.map(lambda v: v**2, p), t)
    same(push(ones), containers(2 * x)[k])


def test_none_has_no_leaves() -> None:
    x = cr.tensor([1.0, 2.0])
    assert tree.flatten(None)[0] == [] and tree.map(abs, {"a": None, "b": -1}) == {"a": None, "b": 1}
    g = cr.func.grad(lambda p: (p["a"] ** 2).sum())({"a": x, "b": None})
    same(g, {"a": 2 * x, "b": None})
    same(cr.func.jvp(lambda p: p["a"] * 2, ({"a": x, "b": None},), ({"a": x, "b": None},))[1], 2 * x)
    same(cr.func.jacrev(lambda p: {"o": p[0] * 2, "n": None})((x, None)), {"o": (2 * cr.eye(2), None), "n": None})
    for in_dims in (0, (0, None), (0, 0)):
        same(cr.func.vmap(lambda a, b: (a * 2, b), in_dims=in_dims)(x, None), (2 * x, None))
    same(cr.func.vmap(lambda a: (a, None), out_dims=(0, None))(x), (x, None))
    with pytest.raises(ValueError, match="at least one input"):
        cr.func.vmap(lambda a: a)(None)


def test_what_aux_holds_comes_back_as_it_is() -> None:
    x, mark = cr.tensor([1.0, 2.0]), object()
    for kind in (cr.func.grad, cr.func.grad_and_value):
        out = kind(
            lambda p: ((p**2).sum(), {"a": None, "b": 1, "c": "s", "d": p * 2, "o": mark, "f": abs}), has_aux=True
        )(x)
        aux = out[1] if kind is cr.func.grad else out[1][1]
        assert aux["o"] is mark and (aux["a"], aux["b"], aux["c"], aux["f"]) == (None, 1, "s", abs)
        same(aux["d"], 2 * x)
    aux = cr.func.vjp(lambda p: (p.sum(), (p, 3, None)), x, has_aux=True)[2]
    same(aux, (x, 3, None))
    aux = cr.func.jvp(lambda p: (p.sum(), [p, "s"]), (x,), (x,), has_aux=True)[2]
    same(aux, [x, "s"])


def test_numbers_are_leaves() -> None:
    """A Python number goes by NumPy's door: its derivative is a number; vmap has no axis to map over."""
    x = cr.tensor([1.0, 2.0])
    g = cr.func.grad(lambda p: (p["a"] * p["b"]).sum())({"a": x, "b": 3.0})
    same(g["a"], cr.tensor([3.0, 3.0]))
    assert g["b"] == 3.0
    with pytest.raises(ValueError, match="float"):
        cr.func.vmap(lambda a, b: a * b)(x, 3.0)
    same(cr.func.vmap(lambda a, b: a * b, in_dims=(0, None))(x, 3.0), 3 * x)


def test_dicts_in_another_order_are_of_one_shape() -> None:
    x, y = cr.tensor([1.0, 2.0]), cr.tensor([3.0, 4.0])
    p, t = {"a": x, "b": y}, {"b": x, "a": y}
    _, out = cr.func.jvp(lambda p: p["a"] * p["b"], (p,), (t,))
    same(out, x * x + y * y)
    same(tree.map(lambda u, v: u - v, t, {"a": y, "b": x}), {"b": 0 * x, "a": 0 * x})
    assert tree.flatten(OrderedDict(a=1, b=2))[1] != tree.flatten(OrderedDict(b=1, a=2))[1]
    assert list(cr.func.grad(lambda p: (p["a"] * p["b"]).sum())(t)) == ["b", "a"]


def test_prefixes() -> None:
    t = {"a": (1, 2), "b": [3, None], "c": Point(4, 5)}
    assert broadcast_prefix(0, t) == [0] * 5 and broadcast_prefix(None, t) == [None] * 5
    assert broadcast_prefix({"c": Point(1, None), "a": 0, "b": None}, t) == [0, 0, None, 1, None]
    for bad in (
        {"a": 0, "b": 0},
        (0, 0, 0, 0),
        {"a": (0,), "b": 0, "c": 0},
        {"a": 0, "b": 0, "c": Point(0, 0, "other")},
    ):
        with pytest.raises(ValueError, match="does not match"):
            broadcast_prefix(bad, t)
    assert match((1, None), tree.flatten((5, {"a": 6, "b": 7}))[1]) == [1, None, None]
    assert match((1, 2), tree.flatten((5, {"a": 6, "b": 7}))[1]) is None


def test_dataclasses() -> None:
    p = Point(cr.ones(2), cr.ones(2), "name")
    q = tree.map(lambda v: v * 2, p)
    assert q.made == p.made and q.name == "name" and q is not p  # the constructor does not run again
    assert tree.flatten(p)[1] != tree.flatten(Point(1, 2, "other"))[1]
    f = Frozen(cr.ones(2))
    object.__setattr__(f, "kept", cr.ones(1))
    assert [v.shape for v in tree.leaves(f)] == [(2,), (1,)]
    same(tree.map(lambda v: v, f), f)
    assert tree.leaves(Point) == [Point]  # the class itself


def test_containers_of_ones_own() -> None:
    with pytest.raises(ValueError, match="already"):
        tree.register(Bag, lambda b: ([], None), lambda items, label: Bag([], ""))

    class Stranger(dict):
        pass

    s = Stranger(a=1)
    assert tree.leaves(s)[0] is s and tree.leaves(cr.Size((1, 2))) == [(1, 2)]
    spec = pickle.loads(pickle.dumps(tree.flatten({"b": (1, None), "a": [2]})[1]))
    assert spec == tree.flatten({"b": (1, None), "a": [2]})[1] and tree.unflatten([1, 2], spec) == {
        "b": (2, None),
        "a": [1],
    }
    assert list(tree.unflatten([1, 2], copy.deepcopy(spec))) == ["b", "a"]
    assert repr(spec) == "dict('a': list(*), 'b': tuple(*, None))"


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 6, 7])
def test_transforms_give_the_containers_of_pytorch(k: int) -> None:
    ours = cr.func.vmap(lambda a: containers(a * 2)[k])(cr.tensor([1.0, 2.0]))
    theirs = torch.func.vmap(lambda a: containers(a * 2)[k])(torch.tensor([1.0, 2.0]))
    assert str(ours) == str(theirs)
