"""Indexing: sizes that follow from the data."""

from __future__ import annotations

import pytest

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
