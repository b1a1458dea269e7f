"""Making, taking apart, printing and saving nested tensors; errors that say where; empty nests; sizes."""

from __future__ import annotations

import copy
import doctest
import pickle
import subprocess
import sys
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


IMPORT = """
import sys, chainrule
from chainrule.core.registry import METHODS, PUBLIC
assert "chainrule.nested" not in sys.modules and "chainrule.payloads.nested.array" not in sys.modules
chainrule.autograd.gradcheck
def names():
    return {(where, k): v for where, d in (("public", PUBLIC), ("method", METHODS), ("tensor", vars(chainrule.Tensor)), ("func", vars(chainrule.func)),
            ("autograd", vars(chainrule.autograd)), ("chainrule", vars(chainrule))) for k, v in d.items()}
before = names()
chainrule.nested
after = names()
print([k for k in before if after.get(k) is not before[k]])
"""


def test_the_examples_of_the_docstrings() -> None:
    done = doctest.testmod(nested, extraglobs={"chainrule": ct}, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert done.attempted > 19 and not done.failed
    for name in nested.__all__:
        assert ">>>" in getattr(nested, name).__doc__, f"{name} has no example"


def test_importing_nested_replaces_nothing() -> None:
    """Nested tensors come with hooks in the functions themselves, and only when asked for."""
    out = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]", out.stdout


def test_printing_with_history() -> None:
    x = nested.nested_tensor([[1.0, 2.0], [3.0]], requires_grad=True)
    assert repr(x) == "nested_tensor([\n  [1., 2.],\n  [3.]\n], requires_grad=True)"
    assert repr(x * 2) == "nested_tensor([\n  [2., 4.],\n  [6.]\n], grad_fn=<MulBackward0>)"
    assert repr(nested.nested_tensor([[True], [False]])) == "nested_tensor([\n  [True],\n  [False]\n])"
    half = nested.nested_tensor([[1.0], [2.0]], dtype=ct.bfloat16)
    assert repr(half) == "nested_tensor([\n  [1.],\n  [2.]\n], dtype=chainrule.bfloat16)"
    many = repr(nested.nested_tensor([np.ones(3)] * 1000, dtype=ct.float32))
    assert many.count("[1., 1., 1.]") == 6 and "..." in many
    seen = []
    ct.vmap(lambda c: (seen.append(repr(c)), c)[1])(x.detach())
    assert seen[0].startswith("BatchedTensor(level=1, size=2, value=\nnested_tensor([")


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
    a = ct.arange(24.0, dtype=ct.float64).reshape(4, 6)
    x = nested.nested_tensor([a[:3, ::2], a.t()[:2, :3], a.flip(0)[:1, 3:]])
    assert [c.tolist() for c in x.unbind()] == [a[:3, ::2].tolist(), a.t()[:2, :3].tolist(), a.flip(0)[:1, 3:].tolist()]
    y = x.transpose(1, 2)
    assert ct.equal(y.unbind()[0], x.unbind()[0].t())
    close(y.softmax(1), [c.softmax(0) for c in y.unbind()], "softmax")


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda: make(3, 1) + make(3, 2), ["component 1", "dimension 1", "1 and 2"]),
        (lambda: make(3, 1) + make(3, 1, 2), ["2 and 3 components"]),
        (lambda: make(3, 1) * ct.ones(3), ["dimension 2"]),
        (lambda: make(3, 2) - make(3, 2)[:, :1], ["component 0", "sizes 3 and 1", "x[:, 0].unsqueeze(1)"]),
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
        (lambda: make(3, 1).narrow(1, 0, 2), ["component 1 has size 1"]),
        (lambda: make(3, 1).select(1, -2), ["component 1 has size 1", "dimension 1"]),
        (lambda: make(3, 1)[:, ct.tensor([0, 1])], ["component 1", "dimension"]),
        (lambda: make(3, 1)[make(3, 1)], ["mask"]),
        (
            lambda: ct.vmap(lambda c: c if c.shape[0] > 2 else 2 * c)(make(3, 1)),
            ["component 0", "component 1", "same answer"],
        ),
        (lambda: ct.vmap(lambda c: c.sum() / len(c))(make(3, 1)), ["concrete size", "x.shape[0] for len(x)"]),
        (lambda: ct.vmap(lambda c: c.item())(make(3, 1)), ["item()", "vmap"]),
        (lambda: ct.vmap(lambda c, d: c + d)(make(3, 1), make(3, 2)), ["component 1", "dimension 1", "1 and 2"]),
        (lambda: ct.vmap(lambda c, d: c + d)(make(3, 1), ct.ones(3, 2)), ["sizes 2 and 3"]),
        (lambda: make(3, 1).kthvalue(2, 1), ["component 1", "size 1"]),
        (lambda: nested.nested_tensor(None), ["list of tensors", "NoneType"]),
        (
            lambda: nested.nested_tensor_from_jagged(ct.ones(3), ct.tensor([0, 2, 4])),
            ["component 1", "rows 2 to 4 of 3"],
        ),
        (lambda: nested.nested_tensor_from_jagged(ct.ones(3), lengths=ct.tensor([2, 2])), ["component 1"]),
        (lambda: nested.narrow(ct.ones(2, 3), 1, ct.tensor([0, 2]), 2), ["component 1", "dimension 1", "size 3"]),
        (lambda: nested.from_padded(ct.ones(2, 3), [1, 4]), ["component 1", "size 4", "dimension 1"]),
        (lambda: nested.masked_select(ct.ones(2, 3), ct.ones(2, 3)), ["boolean mask"]),
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


@pytest.mark.parametrize(
    "dtype", [ct.float16, ct.bfloat16, ct.float32, ct.complex64, ct.complex128, ct.int64, ct.uint8, ct.bool]
)
def test_every_type(dtype: Any) -> None:
    """The same types and numbers as component by component, from booleans to complex numbers."""
    rng = np.random.default_rng(0)
    comps = [ct.tensor(3 * rng.normal(size=(n, 4))).to(dtype) for n in (3, 0, 1, 5)]
    x = nested.as_nested_tensor(comps)
    ops: dict[str, Any] = {
        "sum": lambda v, d: v.sum(d), "add": lambda v, d: v + v, "equal": lambda v, d: v == v, "cat": lambda v, d: ct.cat([v, v], d),
        "flip": lambda v, d: v.flip(d), "cumsum": lambda v, d: v.cumsum(d), "mT": lambda v, d: v.mT, "prod": lambda v, d: v.prod(d),
        "any": lambda v, d: (v != 0).any(d), "slice": lambda v, d: v.narrow(-1, 0, 2), "where": lambda v, d: ct.where(v != 0, v, v * 0),
    }  # fmt: skip
    if dtype is not ct.bool:
        ops["product"] = lambda v, d: v @ v.mT
    if dtype.is_floating_point:
        ops |= {
            "softmax": lambda v, d: v.softmax(d), "layer_norm": lambda v, d: F.layer_norm(v, (4,)), "gelu": lambda v, d: F.gelu(v),
            "logsumexp": lambda v, d: v.logsumexp(d), "norm": lambda v, d: v.norm(dim=d), "sort": lambda v, d: v.sort(d).values,
            "attention": lambda v, d: F.scaled_dot_product_attention(v, v, v),
        }  # fmt: skip
    if dtype.is_complex:
        ops |= {
            "abs": lambda v, d: v.abs(),
            "conj": lambda v, d: v.conj(),
            "parts": lambda v, d: v.real + v.imag,
            "exp": lambda v, d: v.exp(),
        }
    tol = {ct.float16: 2e-3, ct.bfloat16: 2e-2, ct.float32: 1e-5, ct.complex64: 1e-5}.get(dtype, 1e-10)
    for name, f in ops.items():
        y, want = f(x, 1), [f(c, 0) for c in comps]
        assert y.dtype is want[0].dtype, name
        for a, b in zip(y.unbind(), want, strict=True):
            assert a.shape == b.shape, name
            a, b = (v.numpy() if v.dtype.is_complex else v.double().numpy() for v in (a, b))
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol, err_msg=name)
    if dtype.is_complex:
        f = lambda v: (v * v.conj() * (1 + v)).abs().square().sum()
        for a, b in zip(grad(f)(x).unbind(), [grad(f)(c) for c in comps], strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=10 * tol)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.clone()):
        assert y.dtype is dtype and ct.equal(y, x)
