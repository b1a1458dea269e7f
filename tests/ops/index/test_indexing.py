"""Indexing: sizes that follow from the data."""

from __future__ import annotations

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
