"""Datasets, samplers and collating beside PyTorch's: the same program with either library."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.utils.data

import chainrule as cr

LIBS = pytest.mark.parametrize("lib", [cr, torch], ids=["chainrule", "torch"])


class Point(NamedTuple):
    """A named tuple of an example."""

    x: Any
    y: Any


class Ordered(dict):  # type: ignore[type-arg]
    """A mapping of a class of one's own."""


@LIBS
def test_datasets(lib: Any) -> None:
    d = lib.utils.data
    x, y = lib.arange(10).reshape(5, 2), lib.arange(5)
    t = d.TensorDataset(x, y)
    assert len(t) == 5 and [v.tolist() for v in t[1]] == [[2, 3], 1] and t[1:3][1].tolist() == [1, 2]
    with pytest.raises(AssertionError, match="Size mismatch"):
        d.TensorDataset(x, lib.arange(4))
    s = d.StackDataset(list(range(5)), t)
    assert s[2][0] == 2 and len(s) == 5 and [r[0] for r in s.__getitems__([4, 0])] == [4, 0]
    named = d.StackDataset(a=list(range(5)), b=t)
    assert named[3]["a"] == 3 and named.__getitems__([1])[0]["b"][1].item() == 1
    with pytest.raises(ValueError, match="Size mismatch"):
        d.StackDataset([1], [1, 2])
    with pytest.raises(ValueError, match="both types"):
        d.StackDataset([1], a=[1])
    c = d.ConcatDataset([[0, 1, 2], [3], [4, 5]])
    assert len(c) == 6 and [c[i] for i in range(-6, 6)] == [0, 1, 2, 3, 4, 5] * 2 and c.cumulative_sizes == [3, 4, 6]
    with pytest.raises(ValueError, match="absolute value"):
        c[-7]
    with pytest.raises(AssertionError, match="empty"):
        d.ConcatDataset([])
    both = t + t
    assert isinstance(both, d.ConcatDataset) and len(both) == 10
    sub = d.Subset(c, [5, 0, 3])
    assert [sub[i] for i in range(3)] == [5, 0, 3] and sub.__getitems__([2, 0]) == [3, 5]

    class Count(d.IterableDataset):
        def __init__(self, n: int) -> None:
            self.n = n

        def __iter__(self) -> Any:
            return iter(range(self.n))

        def __len__(self) -> int:
            return self.n

    chain = Count(2) + Count(3)
    assert isinstance(chain, d.ChainDataset) and list(chain) == [0, 1, 0, 1, 2] and len(chain) == 5
    with pytest.raises(AssertionError, match="ConcatDataset does not support"):
        d.ConcatDataset([Count(1)])


@LIBS
def test_random_split(lib: Any) -> None:
    d = lib.utils.data
    parts = d.random_split(list(range(17)), [0.5, 0.3, 0.2], generator=lib.Generator().manual_seed(0))
    assert [len(p) for p in parts] == [9, 5, 3]
    assert sorted(v for p in parts for v in p) == list(range(17))
    again = d.random_split(list(range(17)), [9, 5, 3], generator=lib.Generator().manual_seed(0))
    assert [list(a) for a in again] == [list(p) for p in parts]
    with pytest.raises(ValueError, match="Sum of input lengths"):
        d.random_split(list(range(5)), [1, 2])
    with pytest.warns(UserWarning, match="index 1 is 0"):
        d.random_split([0], [0.9, 0.1])


@LIBS
def test_samplers(lib: Any) -> None:
    d = lib.utils.data
    data = list(range(10))
    assert list(d.SequentialSampler(data)) == data
    r = d.RandomSampler(data, generator=lib.Generator().manual_seed(0))
    a, b = list(r), list(r)
    assert sorted(a) == sorted(b) == data and a != b and len(r) == 10
    assert len(list(d.RandomSampler(data, num_samples=25))) == 25
    drawn = list(d.RandomSampler(data, replacement=True, num_samples=200))
    assert len(drawn) == 200 and set(drawn) <= set(data)
    assert sorted(d.SubsetRandomSampler([3, 5, 8])) == [3, 5, 8]
    w = list(d.WeightedRandomSampler([0.0, 1.0, 3.0], 400))
    assert set(w) == {1, 2} and w.count(2) > w.count(1)
    assert sorted(d.WeightedRandomSampler([1.0, 1.0, 3.0], 3, replacement=False)) == [0, 1, 2]
    assert list(d.BatchSampler(range(7), 3, False)) == [[0, 1, 2], [3, 4, 5], [6]]
    short = d.BatchSampler(d.SequentialSampler(range(7)), 3, True)
    assert list(short) == [[0, 1, 2], [3, 4, 5]] and len(short) == 2
    for bad in (
        lambda: d.RandomSampler(data, num_samples=0),
        lambda: d.WeightedRandomSampler([1.0], 0),
        lambda: d.WeightedRandomSampler([[1.0]], 1),
        lambda: d.BatchSampler(data, 0, False),
    ):
        with pytest.raises(ValueError, match=r"should be|weights"):
            bad()
    parts = [d.distributed.DistributedSampler(data, 3, k, seed=4) for k in range(3)]
    assert [len(p) for p in parts] == [4] * 3 and set().union(*map(set, parts)) == set(data)
    before = [list(p) for p in parts]
    for p in parts:
        p.set_epoch(1)
    assert [list(p) for p in parts] != before
    cut = [list(d.DistributedSampler(data, 3, k, shuffle=False, drop_last=True)) for k in range(3)]
    assert cut == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    assert [list(d.DistributedSampler([7], 3, k, shuffle=False)) for k in range(3)] == [[0]] * 3
    with pytest.raises(ValueError, match="Invalid rank"):
        d.DistributedSampler(data, 2, 2)


def plain(v: Any) -> Any:
    """A nest of tensors of either library as plain data, with the types of the containers and of the numbers."""
    if isinstance(v, cr.Tensor | torch.Tensor):
        return str(v.dtype).split(".")[-1], tuple(v.shape), v.tolist()
    if isinstance(v, dict):
        return type(v).__name__, {k: plain(x) for k, x in v.items()}
    if isinstance(v, tuple | list):
        return type(v).__name__, [plain(x) for x in v]
    return v


def nests(lib: Any) -> list[Any]:
    t = lambda *s: lib.arange(float(np.prod(s))).reshape(s)
    return [
        [t(2, 3), t(2, 3)],
        [1.5, 2.5],
        [1, 2],
        [True, False],
        ["a", "b"],
        [b"a", b"b"],
        [np.float32(1), np.float32(2)],
        [np.ones((2, 2), np.int32), np.zeros((2, 2), np.int32)],
        [np.bool_(True), np.bool_(False)],
        [np.array(1.0), np.array(2.0)],
        [(t(2), 1), (t(2), 2)],
        [[t(2), "x"], [t(2), "y"]],
        [{"a": t(2), "b": [1, 2.0]}, {"a": t(2), "b": [3, 4.0]}],
        [Point(t(1), 2), Point(t(1), 3)],
        [Ordered(a=1), Ordered(a=2)],
        [collections.OrderedDict(z=1, a=t(3)), collections.OrderedDict(z=2, a=t(3))],
        [{"p": Point((1, "u"), {"q": np.arange(3)})}] * 3,
    ]


def test_collate_like_pytorch() -> None:
    for a, b in zip(nests(cr), nests(torch), strict=True):
        assert plain(cr.utils.data.default_collate(a)) == plain(torch.utils.data.default_collate(b))
        assert plain(cr.utils.data.default_convert(a)) == plain(torch.utils.data.default_convert(b))


@LIBS
def test_collate_refuses(lib: Any) -> None:
    f = lib.utils.data.default_collate
    with pytest.raises(RuntimeError, match="equal size"):
        f([[1, 2], [1]])
    for bad in ([object()] * 2, [{1}] * 2, [np.array(["a"])] * 2):
        with pytest.raises(TypeError, match="must contain tensors"):
            f(bad)


def test_collate_with_functions_of_ones_own() -> None:
    from chainrule.utils.data._utils.collate import collate, default_collate_fn_map

    class Image:
        pass

    table = {Image: lambda batch, *, collate_fn_map: f"{len(batch)} images", **default_collate_fn_map}
    assert collate([(Image(), 1), (Image(), 2)], collate_fn_map=table)[0] == "2 images"
