"""Functions that need concrete sizes on nests: convolution, pooling, resampling; ranges, slices and segments of ragged sizes."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import chainrule as ct

F, nested, func = ct.nn.functional, ct.nested, ct.func


def nest(*shapes: tuple[int, ...], seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return nested.nested_tensor([rng.normal(size=s) for s in shapes])


def alike(got: Any, want: Any) -> None:
    for a, b in zip(got.unbind(), want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


rng = np.random.default_rng(3)
W1, W2 = ct.tensor(rng.normal(size=(2, 4, 3))), ct.tensor(rng.normal(size=(2, 4, 3, 3)))
T1, T2 = ct.tensor(rng.normal(size=(4, 2, 3))), ct.tensor(rng.normal(size=(4, 2, 3, 3)))
LINES = {
    "conv1d": lambda x: F.conv1d(x, W1, padding=1, stride=2),
    "conv1d same": lambda x: F.conv1d(x, W1, padding="same"),
    "conv_transpose1d": lambda x: F.conv_transpose1d(x, T1, stride=2),
    "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "avg_pool1d": lambda x: F.avg_pool1d(x, 3, 1, 1),
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x, 3),
    "adaptive_max_pool1d": lambda x: F.adaptive_max_pool1d(x, 2),
    "interpolate": lambda x: F.interpolate(x, scale_factor=2.0, mode="linear"),
    "interpolate size": lambda x: F.interpolate(x, size=7),
}
IMAGES = {
    "conv2d": lambda x: F.conv2d(x, W2, padding=1),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, T2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "interpolate": lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"),
}


@pytest.mark.parametrize(
    ("f", "shapes"),
    [
        *[pytest.param(f, [(4, 5), (4, 3), (4, 5), (4, 8)], id=n) for n, f in LINES.items()],
        *[pytest.param(f, [(4, 5, 4), (4, 3, 6)], id=n) for n, f in IMAGES.items()],
    ],
)
def test_windows(f: Any, shapes: Any) -> None:
    x, t = nest(*shapes), nest(*shapes, seed=1)
    one = lambda c: f(c.unsqueeze(0)).squeeze(0)
    number = lambda c: (one(c) ** 2).sum()
    total = lambda x: (f(x) ** 2).sum()
    alike(f(x), [one(c) for c in x.unbind()])
    alike(func.grad(total)(x), [func.grad(number)(c) for c in x.unbind()])
    alike(ct.vmap(func.grad(number))(x), [func.grad(number)(c) for c in x.unbind()])
    twice = func.jvp(func.grad(total), (x,), (t,))[1]
    alike(twice, [func.jvp(func.grad(number), (c,), (d,))[1] for c, d in zip(x.unbind(), t.unbind(), strict=True)])
    none = f(x[:0])
    assert none.shape[0] == 0
    assert none.ndim == x.ndim
    assert func.grad(total)(x[:0]).shape == x[:0].shape


def test_shared_weights() -> None:
    """The gradient of a kernel is that of all components; an ensemble of kernels has one each."""
    x = nest((4, 5), (4, 3), (4, 6))
    f = lambda w, x: (F.conv1d(x, w, padding=1) ** 2).sum()
    want = sum(func.grad(f)(W1, c.unsqueeze(0)) for c in x.unbind())
    np.testing.assert_allclose(func.grad(f)(W1, x).numpy(), want.numpy(), rtol=1e-9)
    many = ct.stack([W1, 2 * W1])
    got = ct.vmap(func.grad(f), in_dims=(0, None))(many, x)
    np.testing.assert_allclose(got[0].numpy(), want.numpy(), rtol=1e-9)
    np.testing.assert_allclose(got[1].numpy(), 2 * want.numpy(), rtol=1e-9)


@pytest.mark.parametrize("members", [1, 2])
def test_shared_weights_of_no_components(members: int) -> None:
    x, many = nest((4, 5), (4, 3))[:0], ct.stack([W1] * members)
    f = lambda w, c: (F.conv1d(c.unsqueeze(0), w, padding=1) ** 2).sum()
    assert ct.vmap(func.grad(f), in_dims=(None, 0))(W1, x).shape == (0, *W1.shape)
    both = ct.vmap(ct.vmap(func.grad(f), in_dims=(None, 0)), in_dims=(0, None))
    assert both(many, x).shape == (members, 0, *W1.shape)


def test_indices_of_maxima() -> None:
    x = nest((4, 5), (4, 3))
    y, i = F.max_pool1d(x, 2, return_indices=True)
    for c, a, b in zip(x.unbind(), y.unbind(), i.unbind(), strict=True):
        u, v = F.max_pool1d(c.unsqueeze(0), 2, return_indices=True)
        assert a.tolist() == u[0].tolist()
        assert b.tolist() == v[0].tolist()


def test_ranges_and_slices_of_ragged_sizes() -> None:
    x = nest((3, 2), (1, 2), (0, 2))
    table = ct.tensor(np.arange(10.0).reshape(5, 2))
    assert ct.arange(x.size(1)).tolist() == [[0, 1, 2], [0], []]
    alike(x + table[: x.size(1)], [c + table[: c.shape[0]] for c in x.unbind()])
    alike(ct.vmap(lambda c: c + table[: c.shape[0]])(x), [c + table[: c.shape[0]] for c in x.unbind()])
    rows = ct.tensor(np.arange(12.0).reshape(3, 4))
    alike(rows[:, : x.size(1)], [r[: c.shape[0]] for r, c in zip(rows, x.unbind(), strict=True)])
    g = func.grad(lambda table: (x * table[: x.size(1)]).sum())(table)
    want = func.grad(lambda table: sum((c * table[: c.shape[0]]).sum() for c in x.unbind()))(table)
    np.testing.assert_allclose(g.numpy(), want.numpy())
    with pytest.raises(RuntimeError, match="3 components"):
        ct.ones(2, 4)[:, : x.size(1)]


def test_unbind_of_a_ragged_dim_of_equal_sizes() -> None:
    x = nested.nested_tensor([[1.0, 2.0], [3.0, 4.0]])
    assert [c.tolist() for c in x.unbind(1)] == [[1.0, 3.0], [2.0, 4.0]]
    with pytest.raises(RuntimeError, match="one concrete size"):
        ct.vmap(lambda c: c.unbind(0)[0])(nested.nested_tensor([[1.0], [3.0, 4.0]]))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode: str) -> None:
    bags, table = [[0, 2, 2], [1], []], ct.tensor(rng.normal(size=(3, 2)))
    x = nested.nested_tensor([ct.tensor(b, dtype=ct.int64) for b in bags])
    flat, offsets = ct.tensor([0, 2, 2, 1]), ct.tensor([0, 3, 4])
    run = lambda table: F.embedding_bag(x, table, mode=mode)
    want = lambda table: F.embedding_bag(flat, table, offsets, mode=mode)
    assert run(table).tolist() == want(table).tolist()
    a, b = (func.grad(lambda t, f=f: (f(t) ** 2).sum())(table) for f in (run, want))
    assert a.tolist() == b.tolist()


def test_unique_and_isin() -> None:
    x = nested.nested_tensor([[3, 1], [1]])
    assert ct.unique(x).tolist() == [1, 3]
    _, inverse, counts = ct.unique(x, return_inverse=True, return_counts=True)
    assert (inverse.tolist(), counts.tolist()) == ([[1, 0], [0]], [2, 1])
    assert ct.isin(x, ct.tensor([3])).tolist() == [[True, False], [False]]


def test_segments() -> None:
    data, ids = ct.tensor(rng.normal(size=(5, 2))), ct.tensor([2, 0, 2, 2, 0])
    groups = {0: [1, 4], 2: [0, 2, 3]}
    for name in ("sum", "mean", "max", "min"):
        f = getattr(nested, f"segment_{name}")
        kw = {} if name in ("sum", "mean") else {"fill": 0.0}
        y = f(data, ids, 3, **kw).numpy()
        for s, rows in groups.items():
            np.testing.assert_allclose(y[s], getattr(data.numpy()[rows], name)(0))
        assert not y[1].any()
        assert ct.autograd.gradcheck(lambda d, f=f, kw=kw: f(d, ids, 3, **kw), (data.clone().requires_grad_(),))
    w = nested.segment_softmax(data, ids, 3)
    np.testing.assert_allclose(nested.segment_sum(w, ids, 3).numpy()[[0, 2]], 1.0)
    assert ct.autograd.gradcheck(lambda d: nested.segment_softmax(d, ids), (data.clone().requires_grad_(),))
    x = nest((2, 3), (0, 3), (1, 3))
    y = nested.segment_max(x.values(), nested.owners(x), len(x), fill=0.0)
    assert y.tolist() == [x[0].amax(0).tolist(), [0.0] * 3, x[2].tolist()[0]]


@pytest.mark.parametrize("name", ["awkward", "pyarrow"])
def test_exchange(name: str) -> None:
    x = nest((2, 3), (0, 3), (1, 3))
    back, to = (nested.from_awkward, nested.to_awkward) if name == "awkward" else (nested.from_arrow, nested.to_arrow)
    if importlib.util.find_spec(name) is None:
        with pytest.raises(ImportError, match=f"pip install {name}"):
            to(x)
        return
    assert to(x).tolist() == x.tolist()
    assert back(to(x)).tolist() == x.tolist()
    v = nested.nested_tensor([[1.0, 2.0], []])
    assert back(to(v)).tolist() == v.tolist()
    with pytest.raises(RuntimeError, match="dense"):
        to(ct.ones(2))
