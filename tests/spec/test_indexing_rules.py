"""Rules of indexing: slices, masks, gathers, scatters, segments, embeddings."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, jvp, vmap

from .judge import array, case, gradient, gradients, judge, mathematics, require, row, same, values

CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])


@row("masked")
@CX
def test_masked_fill_and_scatter(cx: bool) -> None:
    x, v = array(2, 3, cx=cx), array(7, cx=cx, seed=1)
    mask = np.array([[True, False, True], [False, False, True]])
    for k in (mask, mask[0], mask[:, :1], np.zeros((2, 3), bool), np.ones((2, 3), bool)):
        judge("masked_fill", lambda m, x, k: m.masked_fill(x, k, 2.5), x, k)
        judge("masked_fill", lambda m, x, k, v: m.masked_fill(x, k, v), x, k, np.array(v[0]))
        judge("masked_scatter", lambda m, x, k, v: m.masked_scatter(x, k, v), x, k, v)
    judge("masked_fill", lambda m, x, k: m.masked_fill(x, k, 1.0), array(3, cx=cx), mask, oracle="value gradient")
    judge("masked_scatter", lambda m, x, k, v: m.masked_scatter(x, k, v), array(2, 3, cx=cx), mask, array(2, 4, cx=cx))
    # Only as many values as the mask has entries are read, in order: the rest has zero gradient.
    g = gradient(lambda m, x, k, v: m.masked_scatter(x, k, v), x, mask, v)
    assert (g[1][:3] == 1).all() and not g[1][3:].any() and not g[0][mask].any()


def rows(*values: object) -> np.ndarray:
    return np.array(values)


INDEX = {
    "slice": lambda m, x: x[1:3],
    "step": lambda m, x: x[::2, 1::3],
    "negative": lambda m, x: x[-3:-1, -1],
    "empty": lambda m, x: x[3:1],
    "beyond": lambda m, x: x[1:99],
    "integer": lambda m, x: x[2],
    "ellipsis": lambda m, x: x[..., 1:],
    "none": lambda m, x: x[None, :, None, 1],
    "list": lambda m, x: x[[0, 2, 0]],
    "negatives": lambda m, x: x[[-1, 0, -1]],
    "tensor": lambda m, x: x[m.tensor([[0, 1], [1, -1]])],
    "two": lambda m, x: x[m.tensor([0, 1, 1, 0]), m.tensor([2, 0, 0, 2])],
    "broadcast": lambda m, x: x[m.tensor([[0], [3]]), m.tensor([2, 0, 0])],
    "second": lambda m, x: x[:, m.tensor([0, 0, 4])],
    "apart": lambda m, x: x[m.tensor([0, 1]), None, m.tensor([1, 1])],
    "mask": lambda m, x: x[m.tensor([True, False, True, True])],
    "full_mask": lambda m, x: x[x.real > 0] if x.is_complex() else x[x > 0],
    "no_index": lambda m, x: x[m.tensor([], dtype=m.int64)],
    "true": lambda m, x: x[True],
    "false": lambda m, x: x[False],
    "mask_and_slice": lambda m, x: x[m.tensor([True, False, True, False]), 1:3],
    "scalar_tensor": lambda m, x: x[m.tensor(1), m.tensor(-1)],
}


@row("indexing")
@pytest.mark.parametrize("name", INDEX)
@CX
def test_index(name: str, cx: bool) -> None:
    judge("index_put", INDEX[name], array(4, 5, cx=cx), vmap=name != "full_mask")


@row("indexing")
def test_negative_steps() -> None:
    # As in PyTorch a negative step is refused; the message says what to write, and that has every derivative.
    for at in (np.s_[::-1], np.s_[3:0:-2], np.s_[:, ::-2]):
        with pytest.raises(ValueError, match=r"step must be positive.*flip"):
            cr.tensor(array(4, 5))[at]
    judge("flip", lambda m, x: m.flip(x, (0,))[::2], array(4, 5))
    judge("flip", lambda m, x: m.flip(x, (0, -1))[1:3, -4::3], array(4, 5, cx=True))


PICKS = {
    "select": lambda m, x: m.select(x, 1, -2),
    "narrow": lambda m, x: m.narrow(x, 0, -3, 2),
    "diagonal": lambda m, x: m.diagonal(x, 1),
    "diagonal_below": lambda m, x: m.diagonal(x, -2, 1, 0),
    "diagonal_far": lambda m, x: m.diagonal(x, 9),
    "unfold": lambda m, x: x.unfold(1, 3, 1),
    "unfold_apart": lambda m, x: x.unfold(-1, 2, 3),
    "unfold_whole": lambda m, x: x.unfold(0, 4, 2),
    "take": lambda m, x: m.take(x, m.tensor([[0, 7, 7], [-1, 0, 19]])),
    "take_none": lambda m, x: m.take(x, m.tensor([], dtype=m.int64)),
    "gather": lambda m, x: m.gather(x, 0, m.tensor([[0, 1, 1, 3, 0], [0, 0, 1, 3, 2]])),
    "gather_fewer": lambda m, x: m.gather(x, 1, m.tensor([[4, 4, 4]])),
    "gather_none": lambda m, x: m.gather(x, 1, m.zeros((2, 0), dtype=m.int64)),
    "index_select": lambda m, x: m.index_select(x, 1, m.tensor([0, 0, 4])),
    "index_select_none": lambda m, x: m.index_select(x, 0, m.tensor([], dtype=m.int64)),
    "take_along_dim": lambda m, x: m.take_along_dim(x, m.tensor([[0], [1], [1], [4]]), 1),
    "masked_select": lambda m, x: m.masked_select(x, m.tensor([True, False, True, True, False])),
}


@row("indexing")
@pytest.mark.parametrize("name", PICKS)
@CX
def test_picks(name: str, cx: bool) -> None:
    needs = "Tensor.unfold" if "unfold" in name else "diagonal" if "diagonal" in name else "select take gather"
    judge(needs, PICKS[name], array(4, 5, cx=cx))


def put(m, x, at, v, accumulate=False):
    return m.index_put(x, tuple(m.tensor(a) for a in at), v, accumulate)


WRITES = {
    "index_put": (lambda m, x, v: put(m, x, ([0, 2],), v), (2, 5)),
    "index_put_pair": (lambda m, x, v: put(m, x, ([0, 3], [-1, 0]), v), (2,)),
    "index_put_add": (lambda m, x, v: put(m, x, ([0, 3, 0], [1, 0, 1]), v, True), (3,)),
    "index_put_broadcast": (lambda m, x, v: put(m, x, ([0, 1, 1],), v, True), (1,)),
    "index_put_mask": (lambda m, x, v: put(m, x, ([True, False, True, False],), v), (2, 5)),
    "index_add": (lambda m, x, v: m.index_add(x, 0, m.tensor([0, 2, 0]), v, alpha=2), (3, 5)),
    "index_add_cols": (lambda m, x, v: m.index_add(x, -1, m.tensor([4, 4]), v), (4, 2)),
    "index_copy": (lambda m, x, v: m.index_copy(x, 1, m.tensor([4, 0]), v), (4, 2)),
    "index_fill": (lambda m, x, v: m.index_fill(x, 1, m.tensor([4, 0, 4]), v), ()),
    "scatter": (lambda m, x, v: m.scatter(x, 1, m.tensor([[0, 3], [1, 0]]), v), (2, 2)),
    "scatter_larger": (lambda m, x, v: m.scatter(x, 0, m.tensor([[0, 3]]), v), (3, 4)),
    "scatter_add": (lambda m, x, v: m.scatter_add(x, 1, m.tensor([[0, 0, 3], [1, 1, 1]]), v), (2, 3)),
    "slice_scatter": (lambda m, x, v: m.slice_scatter(x, v, 1, 0, 5, 2), (4, 3)),
    "select_scatter": (lambda m, x, v: m.select_scatter(x, v, 0, -2), (5,)),
    "diagonal_scatter": (lambda m, x, v: m.diagonal_scatter(x, v, 1), (4,)),
    "put_": (lambda m, x, v: x.clone().put_(m.tensor([1, 8, 1]), v, accumulate=True), (3,)),
    "setitem": (lambda m, x, v: set_item(x, v), (2, 2)),
}


def set_item(x, v):
    y = x * 2
    y[1:3, ::3] = v
    return y


@row("indexing")
@pytest.mark.parametrize("name", WRITES)
@CX
def test_writes(name: str, cx: bool) -> None:
    f, shape = WRITES[name]
    # PyTorch has no reverse mode where more values are given than are written, nor for complex numbers in two of these.
    refused = name == "scatter_larger" or (cx and name in ("slice_scatter", "select_scatter"))
    needs = "scatter index_put index_add index_copy index_fill"
    if refused:
        mathematics(case(name, f, array(4, 5, cx=cx), array(*shape, cx=cx, seed=1)))
    else:
        judge(needs, f, array(4, 5, cx=cx), array(*shape, cx=cx, seed=1))


@row("indexing")
@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_writes_of_numbers() -> None:
    x = array(4, 5)
    judge("scatter", lambda m, x: m.scatter(x, 1, m.tensor([[0, 3], [1, 0]]), 2.5), x)
    judge("index_fill", lambda m, x: m.index_fill(x, 0, m.tensor([1]), 2.5), x)
    judge("index_fill", lambda m, x: m.index_fill(x, 0, m.tensor([], dtype=m.int64), 2.5), x)
    # Scatters that reduce have their own derivative.
    judge(
        "scatter",
        lambda m, x, v: m.scatter(x, 1, m.tensor([[0, 3], [1, 0]]), v, reduce="add"),
        x,
        array(2, 2, seed=1),
        oracle="value",
    )


REDUCES = ["sum", "prod", "mean", "amax", "amin"]


@row("scatter_reduce")
@pytest.mark.parametrize("reduce", REDUCES)
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce: str, include_self: bool) -> None:
    x, v = array(3, 4), array(2, 4, seed=1)
    at = rows([0, 1, 1, 0], [0, 2, 1, 2])
    for dim, index in ((0, at), (1, rows([3, 3, 0], [0, 1, 1]))):
        f = lambda m, x, v, i, dim=dim: m.scatter_reduce(x, dim, i, v, reduce, include_self=include_self)
        # PyTorch refuses the reverse mode of more values than indices.
        judge("scatter_reduce", f, x, v, index, oracle="value gradient" if dim == 0 else "value")
    f = lambda m, x, v, i: m.scatter_reduce(x, 0, i, v, reduce, include_self=include_self)
    judge("scatter_reduce", f, array(4), array(0), np.zeros(0, int))


@row("scatter_reduce", "scatter_reduce.second")
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce_of_zeros_and_ties(include_self: bool) -> None:
    at = rows(0, 0, 1, 1, 2)
    prod = lambda m, x, v, i: m.scatter_reduce(x, 0, i, v, "prod", include_self=include_self)
    for x, v in (
        ([2.0, 3.0, 4.0], [0.0, 5.0, 2.0, 3.0, 0.0]),
        ([0.0, 3.0, 0.0], [1.0, 5.0, 0.0, 0.0, 0.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 2.0, 3.0]),
    ):
        judge("scatter_reduce", prod, np.array(x), np.array(v), at)
    tied = (np.array([2.0, 1.0, 0.0]), np.array([2.0, 2.0, 3.0, 3.0, 0.0]))
    for reduce in ("amax", "amin"):
        f = lambda m, x, v, i, r=reduce: m.scatter_reduce(x, 0, i, v, r, include_self=include_self)
        # Without self, PyTorch still counts it among those that share.
        judge("scatter_reduce", f, *tied, at, smooth=False, oracle="value gradient" if include_self else "value")
        gx, gv = gradient(f, *tied, at)
        assert gx.sum() + gv.sum() == pytest.approx(3)
        assert include_self or not gx.any()


@row("scatter_reduce")
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduce", ["prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_index_reduce(reduce: str, include_self: bool) -> None:
    f = lambda m, x, v, i: m.index_reduce(x, 0, i, v, reduce, include_self=include_self)
    judge("index_reduce", f, array(3, 2), array(4, 2, seed=1), rows(0, 0, 2, 0))
    g = lambda m, x, v, i: m.index_reduce(x, 1, i, v, reduce, include_self=include_self)
    judge("index_reduce", g, array(2, 3), array(2, 2, seed=1), rows(2, 2))
    zeros = (np.array([0.0, 2.0, 3.0]), np.array([0.0, 4.0, 0.0, 0.0, 5.0]), rows(0, 1, 1, 2, 2))
    chosen = reduce in ("amax", "amin")
    # Without self, PyTorch still counts it among those that share.
    judge(
        "index_reduce",
        f,
        *zeros,
        smooth=not chosen,
        oracle="value" if chosen and not include_self else "value gradient",
    )


@row("scatter_reduce")
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "max", "min"])
def test_segment_reduce(reduce: str) -> None:
    x = array(6, 2)
    lengths = rows(2, 0, 3, 1)
    f = lambda m, x, n: m.segment_reduce(x, reduce, lengths=n, axis=0)
    # A mean, largest and smallest of nothing is not finite: those segments are left to the values.
    values(f, x, lengths)
    judge("segment_reduce", f, x, rows(2, 3, 1))
    judge("segment_reduce", lambda m, x, o: m.segment_reduce(x, reduce, offsets=o, axis=0), x, rows(0, 1, 6))
    judge(
        "segment_reduce",
        lambda m, x, n: m.segment_reduce(x, reduce, lengths=n, axis=0, initial=1.5),
        x,
        rows(2, 3, 1),
        oracle="value",
    )
    if reduce == "sum":
        judge("segment_reduce", f, x, lengths)
    if reduce == "prod":
        judge("segment_reduce", f, np.array([0.0, 2.0, 0.0, 0.0, 3.0]), rows(2, 3))
    if reduce in ("max", "min"):
        tied = np.array([2.0, 2.0, 1.0, 1.0, 1.0])
        # Ties share evenly in every segment, in PyTorch only in some.
        judge("segment_reduce", f, tied, rows(2, 3), smooth=False, oracle="value")
        same(gradient(f, tied, rows(2, 3))[0], np.array([1 / 2, 1 / 2, 1 / 3, 1 / 3, 1 / 3]), "shared")


@row("embedding")
@pytest.mark.parametrize(
    "kw",
    [
        {},
        {"padding_idx": 1},
        {"padding_idx": -1},
        {"scale_grad_by_freq": True},
        {"padding_idx": 0, "scale_grad_by_freq": True},
    ],
    ids=str,
)
def test_embedding(kw: dict) -> None:
    index = rows([0, 1, 1], [3, 3, 3])
    f = lambda m, i, w: m.nn.functional.embedding(i, w, **kw)
    w = array(4, 2)
    require("F.embedding")
    values(f, index, w)
    gradients(f, index, w)
    if not kw:
        judge("F.embedding", f, index, w)
        judge("F.embedding", f, np.zeros((0, 2), int), w)
        judge("F.embedding", f, np.array(2), w)
        return
    # The gradient of padding and the scaling by counts are conventions of reverse mode: no derivative of a value. What must
    # hold is that they are linear in the cotangent, at every order.
    back = lambda g: grad(lambda v: (f(cr, cr.tensor(index), v) * g).sum())(cr.tensor(w))
    g = cr.tensor(array(2, 3, 2, seed=4))
    same(jvp(back, (g,), (g,))[1].numpy(), back(g).numpy(), "the reverse rule is linear")


MODES = ["sum", "mean", "max"]


@row("embedding.max_norm")
@pytest.mark.parametrize("name", ["embedding", "embedding_bag"])
def test_embedding_with_a_bound_on_the_norm(name: str) -> None:
    """The gradient is that of the table after scaling, as in PyTorch; the second derivative that of the loss there."""
    w = np.array([[3.0, 4.0], [0.1, 0.2], [1.0, -2.0]])
    scale = np.minimum(1, 1 / (np.sqrt((w * w).sum(1)) + 1e-7))[:, None] * np.ones((3, 2))
    scale[2] = 1  # a row that is not looked up stays as it is
    index = cr.tensor([0, 1, 1])
    look = {
        "embedding": lambda w: cr.nn.functional.embedding(index, w, max_norm=1.0),
        "embedding_bag": lambda w: cr.nn.functional.embedding_bag(index.reshape(3, 1), w, max_norm=1.0, mode="sum"),
    }[name]
    f = lambda w: (look(w) ** 3).sum()
    table, times = w * scale, np.array([[1.0], [2.0], [0.0]])
    first, second = 3 * times * table**2, 6 * times * table
    x, t = cr.tensor(w), cr.tensor(array(3, 2))
    same(f(x).numpy(), np.asarray((times * table**3).sum()), "value", 1e-6)
    same(grad(f)(x).numpy(), first, "reverse mode", 1e-6)
    same(jvp(f, (x,), (t,))[1].numpy(), np.asarray((first * t.numpy()).sum()), "forward mode", 1e-6)
    for what, h in (
        ("forward over reverse", lambda: jvp(grad(f), (x,), (t,))[1]),
        ("reverse over forward", lambda: grad(lambda x: jvp(f, (x,), (t,))[1])(x)),
        ("reverse over reverse", lambda: grad(lambda x: (grad(f)(x) * t).sum())(x)),
    ):
        same(h().numpy(), second * t.numpy(), what, 1e-6)
    both = cr.stack([x, x * 0.5])
    same(vmap(grad(f))(both).numpy(), np.stack([first, grad(f)(x * 0.5).numpy()]), "vmap", 1e-6)
    theirs = torch.tensor(w, requires_grad=True)
    i = torch.tensor([0, 1, 1])
    y = (
        torch.nn.functional.embedding(i, theirs, max_norm=1.0)
        if name == "embedding"
        else torch.nn.functional.embedding_bag(i.reshape(3, 1), theirs, max_norm=1.0, mode="sum")
    )
    (y**3).sum().backward()
    same(first, theirs.grad.numpy(), "PyTorch's gradient", 1e-6)


@row("embedding")
@pytest.mark.parametrize("mode", MODES)
def test_embedding_bag(mode: str) -> None:
    w, index, offsets = array(5, 3), rows(0, 4, 4, 2, 1, 0), rows(0, 2, 2, 5)
    bag = lambda m, i, w, o, **k: m.nn.functional.embedding_bag(i, w, o, mode=mode, **k)
    judge("F.embedding_bag", lambda m, i, w, o: bag(m, i, w, o), index, w, offsets)
    judge("F.embedding_bag", lambda m, i, w: bag(m, i, w, None), index.reshape(2, 3), w)
    last = rows(0, 2, 2, 5, 6)
    judge("F.embedding_bag", lambda m, i, w, o: bag(m, i, w, o, include_last_offset=True), index, w, last)
    judge("F.embedding_bag", lambda m, i, w, o: bag(m, i, w, o, padding_idx=4), index, w, offsets)
    if mode != "max":
        f = lambda m, i, w, o: bag(m, i, w, o, scale_grad_by_freq=True)
        values(f, index, w, offsets)
        # Each row's gradient is divided by how often its index occurs (PyTorch divides by the count of another row).
        plain = gradient(lambda m, i, w, o: bag(m, i, w, o), index, w, offsets)[0]
        count = np.bincount(index, minlength=5)[:, None]
        same(gradient(f, index, w, offsets)[0], plain / np.maximum(count, 1), "scaled by counts")


@row("embedding")
def test_embedding_bag_with_weights_of_samples() -> None:
    w, s, index, offsets = array(5, 3), array(6, seed=1), rows(0, 4, 4, 2, 1, 0), rows(0, 2, 2, 5)
    f = lambda m, i, w, o, s: m.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=s)
    judge("F.embedding_bag", f, index, w, offsets, s)
    g = lambda m, i, w, o, s: m.nn.functional.embedding_bag(i, w, o, mode="sum", per_sample_weights=s, padding_idx=0)
    judge("F.embedding_bag", g, index, w, offsets, s)
