"""Making, taking apart, printing and saving nested tensors; errors that say where; empty nests; sizes."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import chainrule as ct

from .harness import close

nested, F, grad = ct.nested, ct.nn.functional, ct.func.grad


def make(*sizes: int, width: int = 2) -> Any:
    rng = np.random.default_rng(len(sizes))
    return nested.nested_tensor([rng.normal(size=(n, width)) for n in sizes], dtype=ct.float64)


def test_making() -> None:
    x = nested.nested_tensor([[1.0, 2.0, 3.0], [4.0]], layout=ct.jagged, requires_grad=True)
    assert x.requires_grad and x.is_nested and x.is_leaf
    assert [c.tolist() for c in x.detach().unbind()] == [[1.0, 2.0, 3.0], [4.0]]
    y = nested.nested_tensor_from_jagged(ct.arange(20.0).reshape(10, 2), ct.tensor([0, 3, 7, 10]), ct.tensor([2, 1, 3]))
    assert [c.tolist() for c in y.unbind()] == [[[0, 1], [2, 3]], [[6, 7]], [[14, 15], [16, 17], [18, 19]]]
    z = nested.nested_tensor_from_jagged(ct.arange(20.0).reshape(2, 10), ct.tensor([0, 3, 10]), jagged_dim=2)
    assert z.unbind()[0].tolist() == [[0, 1, 2], [10, 11, 12]]
    m = ct.arange(20.0).reshape(4, 5)
    assert nested.narrow(m, 1, ct.tensor([0, 1, 2, 0]), ct.tensor([2, 1, 3, 0])).tolist() == [
        [0, 1],
        [6],
        [12, 13, 14],
        [],
    ]
    assert nested.masked_select(m, m % 3 == 0).tolist() == [[0, 3], [6, 9], [12], [15, 18]]
    assert nested.from_padded(m, [2, 0, 1, 5]).tolist() == [[0, 1], [], [10], [15, 16, 17, 18, 19]]


def test_derivatives_flow_through_making_and_taking_apart() -> None:
    a, b = ct.ones(2, 3), ct.ones(4, 3)
    ga, gb = grad(lambda a, b: (nested.as_nested_tensor([a, b]) ** 2).sum(), (0, 1))(a, b)
    assert (ga == 2).all() and ga.shape == a.shape and gb.shape == b.shape
    x = make(3, 1, 2)
    g = grad(lambda x: sum((i + 1) * c.sum() for i, c in enumerate(x.unbind()) if i != 1))(x)
    close(g, [ct.ones(3, 2), ct.zeros(1, 2), ct.ones(2, 2) * 3], "unbind with an unused output")
    close(grad(lambda x: (x.values() ** 2).sum())(x), list((2 * x).unbind()), "values")
    close(grad(lambda x: (x.to_padded_tensor(7.0) ** 2).sum())(x), list((2 * x).unbind()), "padding")
    p = ct.ones(3, 4, 2, dtype=ct.float64)
    g = grad(lambda p: nested.from_padded(p, [3, 1, 2]).sum())(p)
    assert g.sum((1, 2)).tolist() == [6, 2, 4]
    v = ct.arange(12.0).reshape(6, 2)
    close(
        grad(lambda v: (nested.nested_tensor_from_jagged(v, ct.tensor([0, 2, 6])) ** 2).sum())(v), 2 * v, "from_jagged"
    )


def test_parts() -> None:
    x = make(3, 0, 2)
    assert x.offsets().tolist() == [0, 3, 3, 5] and x.lengths().tolist() == [3, 0, 2]
    assert x.values().shape == (5, 2) and len(x) == 3 and x.numel() == 10
    assert x.size(0) == 3 and x.size(-1) == 2 and x.size(1).values.tolist() == [3, 0, 2]
    assert [c.shape for c in x] == [(3, 2), (0, 2), (2, 2)]
    assert x[2].shape == (2, 2) and x[-1].shape == (2, 2) and x[1:].lengths().tolist() == [0, 2]
    assert x[[2, 0]].lengths().tolist() == [2, 3] and x[ct.tensor([True, False, True])].lengths().tolist() == [3, 2]
    assert x[x > 0].shape == ((x.values() > 0).sum().item(),)
    assert [a.shape for a in x.numpy()] == [(3, 2), (0, 2), (2, 2)]
    g = grad(lambda x: x[ct.tensor([2, 2, 0])].sum())(x)
    assert g.tolist() == [[[1, 1]] * 3, [], [[2, 2]] * 2]


def test_printing_pickling_copying() -> None:
    x = make(2, 1)
    assert repr(x).startswith("nested_tensor([") and repr(nested.nested_tensor([])) == "nested_tensor([])"
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
        assert y.tolist() == x.tolist() and y.shape == x.shape
    leaf = x.detach().requires_grad_()
    assert copy.deepcopy(leaf).requires_grad and pickle.loads(pickle.dumps(leaf)).requires_grad
    y = x.clone()
    y.add_(1)
    np.testing.assert_allclose((y - x).values().numpy(), 1.0)


def test_dtypes() -> None:
    x = make(3, 1)
    assert (
        x.to(ct.float32).dtype is ct.float32
        and x.half().softmax(1).dtype is ct.float16
        and x.long().sum(1).dtype is ct.int64
    )
    z = x * 1j
    assert z.dtype is ct.complex128 and ct.allclose(z.abs(), x.abs())
    g = grad(lambda x: (x * 1j).abs().square().sum())(x)
    close(g, list((2 * x).unbind()), "complex")


def test_non_contiguous_input() -> None:
    a = ct.arange(24.0).reshape(4, 6)
    x = nested.nested_tensor([a[:3, ::2], a.t()[:2, :3], a.flip(0)[:1, 3:]])
    assert [c.tolist() for c in x.unbind()] == [a[:3, ::2].tolist(), a.t()[:2, :3].tolist(), a.flip(0)[:1, 3:].tolist()]
    y = x.transpose(1, 2)
    assert ct.equal(y.unbind()[0], x.unbind()[0].t()) and ct.equal(y.softmax(1).unbind()[1], y.unbind()[1].softmax(0))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda: make(3, 1) + make(3, 2), ["component 1", "dimension 1", "1 and 2"]),
        (lambda: make(3, 1) + make(3, 1, 2), ["2 and 3 components"]),
        (lambda: make(3, 1) * ct.ones(3), ["dimension 2"]),
        (lambda: nested.nested_tensor([np.ones(2), np.ones((2, 2))]), ["component 1", "same number of dims"]),
        (lambda: make(3, 1) @ ct.ones(5, 2, dtype=ct.float64), ["matmul"]),
        (lambda: make(3, 1) @ make(3, 1), ["matmul", "j3/1"]),
        (lambda: make(3, 0).amax(1), ["component 1", "no entries", "dimension 1"]),
        (lambda: make(3, 0).argmax(1), ["component 1", "no entries"]),
        (lambda: make(3, 1)[:, 2], ["dimension 1", "j3/1"]),
        (lambda: make(3, 1).sum(0), ["nesting dim", "equal sizes"]),
        (lambda: make(3, 1).softmax(0), ["nesting dim"]),
        (lambda: make(3, 1).reshape(2, 5, 2), ["component 0", "6 elements"]),
        (lambda: make(3, 1).transpose(0, 1), ["nesting dim"]),
        (lambda: range(make(3, 1).size(1)), ["concrete size", "j3/1", "to_padded_tensor"]),
        (lambda: np.asarray(make(3, 1)), ["not one array", "unbind"]),
        (lambda: make(3, 1).stride(), ["no strides"]),
        (lambda: ct.vmap(lambda c: ct.eye(c.shape[0]))(make(3, 1)), ["concrete size"]),
        (lambda: ct.ones(3).offsets(), ["nested tensors", "dense"]),
        (lambda: make(3, 1).to_padded_tensor(0.0, (2, 2, 2)), ["output size 2", "dimension 1"]),
        (lambda: make(3, 1).split([1, 1], 1), ["component 0", "3"]),
        (lambda: ct.cat([make(3, 1), make(2, 1)], 2), ["cat", "j3/1", "j2/1"]),
    ],
)
def test_errors_say_where(f: Any, words: list[str]) -> None:
    with pytest.raises((RuntimeError, IndexError, TypeError, ValueError)) as e:
        f()
    for w in words:
        assert w in str(e.value), str(e.value)


EMPTY = nested.nested_tensor_from_jagged(ct.zeros(0, 4, dtype=ct.float64), ct.tensor([0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.softmax(1), lambda x: x.softmax(-1), lambda x: x.sum(1), lambda x: x.mean(1), lambda x: x.cumsum(1), lambda x: x.sort(1)[0],
        lambda x: x @ x.mT, lambda x: ct.cat([x, x], 1), lambda x: x.mT, lambda x: x[:, 1:], lambda x: F.pad(x, (0, 0, 1, 1)), lambda x: x.var(1),
        lambda x: x.norm(dim=1), lambda x: x.flip(1), lambda x: F.layer_norm(x, (4,)), lambda x: F.gelu(x), lambda x: x @ ct.ones(4, 3, dtype=ct.float64),
        lambda x: x.logsumexp(1), lambda x: x.amax(1), lambda x: x.to_padded_tensor(0.0), lambda x: x.values(), lambda x: (x @ x.mT).tril(),
    ],
)  # fmt: skip
def test_an_empty_nest(f: Any) -> None:
    y = f(EMPTY)
    assert y.shape[0] == 0
    assert grad(lambda x: f(x).sum())(EMPTY).shape == EMPTY.shape
    assert ct.func.jvp(lambda x: f(x).sum(), (EMPTY,), (EMPTY,))[1].item() == 0


def test_sizes_inside_vmap_are_those_of_the_component() -> None:
    x = make(3, 1, 2)
    means = ct.vmap(lambda c: c.sum(0) / c.shape[0])(x)
    close(means, ct.stack([c.mean(0) for c in x.unbind()]), "sizes as numbers")
    place = ct.vmap(lambda c: c + ct.arange(c.shape[0]).unsqueeze(-1))(x)
    close(place, [c + ct.arange(c.shape[0]).unsqueeze(-1) for c in x.unbind()], "arange of a ragged size")
    close(ct.vmap(lambda c: ct.ones(c.shape[0], 2) * c)(x), list(x.unbind()), "ones of a ragged size")


def test_dropout_and_random_numbers() -> None:
    x = nested.nested_tensor([np.ones((50, 4)), np.ones((30, 4))])
    y = F.dropout(x, 0.5)
    assert set(np.unique(y.values().numpy())) == {0.0, 2.0} and F.dropout(x, 0.5, training=False) is x
    assert ct.rand_like(x).shape == x.shape
    z = ct.vmap(lambda c: F.dropout(c, 0.5), randomness="different")(x)
    assert z.shape == x.shape and set(np.unique(z.values().numpy())) == {0.0, 2.0}
