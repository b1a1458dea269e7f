"""Indexing: sizes that follow from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import vmap

one_hot = cr.nn.functional.one_hot


def test_one_hot_under_vmap_is_the_loop() -> None:
    x = cr.tensor([[0, 2, 1], [2, 2, 0]])
    want = cr.stack([one_hot(e) for e in x])
    assert cr.equal(vmap(one_hot)(x), want)
    assert cr.equal(vmap(one_hot, in_dims=1)(x.T), want)
    deep = x.T[1:2].T.reshape(1, 2, 1)[:, :1]  # one example of one example, class 2
    assert cr.equal(vmap(vmap(one_hot))(deep), one_hot(deep))


def test_one_hot_under_vmap_with_different_numbers_of_classes_says_what_to_pass() -> None:
    x = cr.tensor([[0, 1], [2, 0]])
    with pytest.raises(cr.ChainruleError, match="num_classes=3"):
        vmap(one_hot)(x)
    assert vmap(lambda e: one_hot(e, 3))(x).shape == (2, 2, 3)


@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_halves_what_it_is_given(right: bool) -> None:
    """PyTorch's answers for NaN and for sequences out of order, and the same ones row by row and under vmap."""
    nan = float("nan")
    rows = [[1.0, 2.0, nan, nan], [4.0, 1.0, 3.0, 2.0], [0.0, 1.0, 1.0, 2.0]]
    values = [[nan, 1.5, 0.0], [1.0, 2.0, 3.5], [1.0, 2.0, 5.0]]
    want = torch.searchsorted(torch.tensor(rows), torch.tensor(values), right=right).tolist()
    seq, v = cr.tensor(rows), cr.tensor(values)
    assert cr.searchsorted(seq, v, right=right).tolist() == want
    assert [cr.searchsorted(s, x, right=right).tolist() for s, x in zip(seq, v, strict=True)] == want
    assert vmap(lambda s, x: cr.searchsorted(s, x, right=right))(seq, v).tolist() == want
    many = v[2].repeat(5)
    assert cr.searchsorted(seq[2], many, right=right).tolist() == want[2] * 5


def test_searchsorted_with_a_mapped_sorter() -> None:
    seq, sorter = cr.tensor([[3, 1, 2], [1, 3, 2]]), cr.tensor([[1, 2, 0], [0, 2, 1]])
    got = vmap(lambda s, i: cr.searchsorted(s, cr.tensor([2, 3]), sorter=i))(seq, sorter)
    assert got.tolist() == [[1, 2], [1, 2]]
    with pytest.raises(RuntimeError, match="sorter"):
        cr.searchsorted(seq[0], cr.tensor([2]), sorter=cr.tensor([0, 1, 3]))


def test_unique_tells_nan_apart_and_one_element_is_mapped() -> None:
    x = [3.0, float("nan"), 1.0, float("nan")]
    got, want = cr.unique(cr.tensor(x), return_counts=True), torch.unique(torch.tensor(x), return_counts=True)
    assert got[0].shape == want[0].shape
    assert got[1].tolist() == want[1].tolist()
    u, n = vmap(lambda e: cr.unique(e, dim=1, return_counts=True))(cr.arange(6.0).reshape(3, 2, 1))
    assert u.shape == (3, 2, 1)
    assert n.tolist() in ([1], [[1], [1], [1]])


_I, _J = np.array([2, 0, -1]), np.array([[1], [0]])
KEYS: dict[str, Any] = {
    "pairs": lambda t: (t(_I), t(_I)),
    "apart": lambda t: (t(_I), slice(None), t(_I)),
    "in the middle": lambda t: (slice(None), t(_J), t(_I)),
    "dots": lambda t: (Ellipsis, t(_J)),
    "a new dim": lambda t: (None, t(_I), slice(None), 1),
    "a number between": lambda t: (t(_J), -1, t(_I)),
    "a slice that is not whole": lambda t: (slice(1, None), t(_I)),
    "a list": lambda t: (t(_I), [0, 1, 1]),
    "rows": lambda t: t(_J),
    "a mask": lambda t: t(np.arange(60).reshape(4, 5, 3) % 7 == 0),
    "a mask in front": lambda t: t(np.arange(20).reshape(4, 5) % 3 == 0),
    "a mask of rows": lambda t: t(np.array([True, False, True, True])),
    "no place": lambda t: t(np.zeros((4, 5, 3), bool)),
    "no index": lambda t: (t(np.zeros(0, np.int64)), t(np.zeros(0, np.int64))),
}


@pytest.mark.parametrize("name", KEYS)
def test_an_index_reads_writes_and_pulls_as_pytorch_at_every_call(name: str) -> None:
    """Also from the second call of a kind on, when it is code."""
    make = KEYS[name]
    a = np.random.default_rng(0).standard_normal((4, 5, 3))
    their_key, key = make(torch.tensor), make(cr.tensor)
    theirs = torch.tensor(a, requires_grad=True)
    want = theirs[their_key]
    c = np.random.default_rng(1).standard_normal(tuple(want.shape))
    [back] = torch.autograd.grad(want, theirs, torch.tensor(c))
    filled = torch.tensor(a)
    filled[their_key] = 7.0
    for _ in range(4):
        x = cr.tensor(a, requires_grad=True)
        y = x[key]
        np.testing.assert_array_equal(y.detach().numpy(), want.detach().numpy())
        np.testing.assert_allclose(cr.autograd.grad(y, x, cr.tensor(c))[0].numpy(), back.numpy(), atol=1e-14)
        z = cr.tensor(a)
        z[key] = 7.0
        np.testing.assert_array_equal(z.numpy(), filled.numpy())
        if isinstance(key, tuple) and all(isinstance(k, cr.Tensor) for k in key):
            grown = torch.tensor(a).index_put(their_key, torch.tensor(c), accumulate=True)
            got = cr.index_put(cr.tensor(a), key, cr.tensor(c), accumulate=True)
            np.testing.assert_allclose(got.numpy(), grown.numpy(), atol=1e-14)
        each = cr.func.vmap(lambda v: v[key])(cr.tensor(np.stack([a, 2 * a])))
        np.testing.assert_array_equal(each.numpy(), np.stack([y.detach().numpy(), 2 * y.detach().numpy()]))


def test_numbers_out_of_range_are_refused_at_every_call() -> None:
    x, good = cr.zeros(4, 5), cr.tensor([0, 1])
    for _ in range(4):
        assert x[good, good].shape == (2,)
        with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size 5"):
            x[good, cr.tensor([0, 5])]
        with pytest.raises(IndexError, match="index -5 is out of bounds for dimension 0 with size 4"):
            x[cr.tensor([0, -5]), good] = 1.0
