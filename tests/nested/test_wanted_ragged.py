"""What users of nests ask for: values for empty components, classes and channels last, alignments, entries by place."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as ct
from chainrule import func, nested
from chainrule.nn import functional as F


def nest(*shapes: tuple[int, ...]) -> ct.Tensor:
    rng = np.random.default_rng(sum(map(sum, shapes)))
    return nested.nested_tensor([rng.normal(size=s) for s in shapes])


def labels(*sizes: int, classes: int = 5) -> ct.Tensor:
    rng = np.random.default_rng(sum(sizes))
    return nested.nested_tensor([rng.integers(0, classes, n) for n in sizes])


def equal(got: ct.Tensor, want: ct.Tensor) -> None:
    assert got.is_nested == want.is_nested
    if got.is_nested:
        assert got.shape == want.shape
        got, want = got.values(), want.values()
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-12)


# -- nothing to choose from ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["amax", "amin"])
def test_fill_is_the_extremum_of_no_entries(name: str) -> None:
    x = nest((2, 3), (0, 3), (4, 3))
    f = lambda x, d=1, **kw: getattr(x, name)(d, fill=0.5, **kw)
    full = lambda c: getattr(c, name)(0) if c.shape[0] else ct.full((3,), 0.5, dtype=c.dtype)
    want = ct.stack([full(c) for c in x.unbind()])
    equal(f(x), want)
    equal(f(x, keepdim=True), want.unsqueeze(1))
    equal(ct.vmap(lambda c: f(c, 0))(x), want)
    equal(ct.vmap(lambda s: f(x * s))(ct.tensor([2.0, 2.0, 2.0, 2.0], dtype=ct.float64))[3], f(x * 2))
    assert ct.autograd.gradcheck(f, (x.clone().requires_grad_(),))
    assert func.grad(lambda x: f(x).square().sum())(x).shape == x.shape
    with pytest.raises(IndexError, match="component 1 has no entries"):
        getattr(x, name)(1)
    with pytest.raises(RuntimeError, match="nesting dim"):
        f(x, (0, 1))


def test_fill_of_dense_tensors_and_of_indices() -> None:
    assert ct.zeros(2, 0).amax(1, fill=3.0).tolist() == [3.0, 3.0]
    assert ct.tensor([1.0, 2.0]).amax(0, fill=3.0).item() == 2.0
    assert ct.zeros(0).amin(fill=4.0).item() == 4.0
    x = nested.nested_tensor([[3.0, 1.0], [], [0.0, 2.0]])
    assert x.argmax(1, fill=-1).tolist() == [0, -1, 1]
    assert x.argmin(1, True, fill=7).tolist() == [[1], [7], [0]]
    assert ct.vmap(lambda c: c.argmax(0, fill=-1))(x).tolist() == [0, -1, 1]
    assert ct.zeros(2, 0).argmax(1, fill=-1).tolist() == [-1, -1]


# -- entries by place ---------------------------------------------------------------------------------------------------


def test_unbind_of_a_ragged_dim_gives_the_entries_that_there_are() -> None:
    x = nest((2, 3), (0, 3), (4, 3))
    parts = x.unbind(1)
    assert [p.shape for p in parts] == [(2, 3), (2, 3), (1, 3), (1, 3)]
    cs = x.unbind()
    equal(parts[1], ct.stack([cs[0][1], cs[2][1]]))
    equal(parts[3], cs[2][3:])
    g = func.grad(lambda x: sum(((i + 1) * p).square().sum() for i, p in enumerate(x.unbind(1))))(x)
    for c, d in zip(cs, g.unbind(), strict=True):
        equal(d, 2 * c * ct.arange(1.0, c.shape[0] + 1, dtype=c.dtype).unsqueeze(-1) ** 2)
    two = nest((2, 3), (1, 2)).unbind(1)
    assert two[0].is_nested and two[0].shape[1].values.tolist() == [3, 2] and len(two[1]) == 1


def test_components_are_views_however_often_they_are_taken() -> None:
    x = nest((2,), (3,))
    for _ in range(3):
        cs = x.unbind()
    cs[1].mul_(0)
    assert x[1].tolist() == [0.0] * 3
    x.add_(1)
    assert cs[1].tolist() == [1.0] * 3
    assert len(x._meta.views) <= 4, "views that nobody holds are let go"


def test_places_of_nonzero_elements() -> None:
    x = nested.nested_tensor([[1, 0, 2], [], [0, 3]])
    assert ct.nonzero(x).tolist() == [[0, 0], [0, 2], [2, 1]]
    assert [i.tolist() for i in ct.nonzero(x, as_tuple=True)] == [[0, 0, 2], [0, 2, 1]]
    assert ct.vmap(lambda c: ct.bincount(c, minlength=4))(x).tolist() == [[1, 1, 1, 0], [0] * 4, [1, 0, 0, 1]]
    with pytest.raises(RuntimeError, match="no slices of dim 1"):
        ct.unique(x, dim=1)


def test_nests_of_nests_are_joined() -> None:
    a, b = nest((2,), (3,)), nest((1,))
    both = nested.nested_tensor([a, b])
    # By hand: means of sentences, then of documents.
    x = ct.cat([a, b])
    equal(both.mean(-1).mean(-1), ct.stack([a.mean(1).mean(), b.mean(1).mean()]))
    documents = nested.nested_tensor_from_jagged(x.mean(1), lengths=ct.tensor([2, 1]))
    equal(documents.mean(1), ct.stack([a.mean(1).mean(), b.mean(1).mean()]))


# -- classes and channels last ------------------------------------------------------------------------------------------

OPTIONS: list[dict[str, Any]] = [{}, {"weight": True}, {"label_smoothing": 0.1}, {"ignore_index": 2}]


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("options", OPTIONS, ids=["plain", "weight", "smoothing", "ignore"])
def test_cross_entropy_of_the_last_dim(options: dict[str, Any], reduction: str) -> None:
    x, t = nest((7, 5), (0, 5), (3, 5)), labels(7, 0, 3)
    kw = {**options, "reduction": reduction}
    if "weight" in kw:
        kw["weight"] = ct.arange(1.0, 6.0, dtype=ct.float64)
    last = lambda x: F.cross_entropy(x, t, class_dim=-1, **kw)
    second = lambda x: F.cross_entropy(x.transpose(1, 2), t, **kw)
    equal(last(x), second(x))
    equal(func.grad(lambda x: last(x).square().sum())(x), func.grad(lambda x: second(x).square().sum())(x))
    d = ct.randn(2, 3, 4, 5, dtype=ct.float64)
    u = ct.randint(0, 5, (2, 3, 4))
    equal(F.cross_entropy(d, u, class_dim=-1, **kw), F.cross_entropy(d.movedim(-1, 1), u, **kw))


def test_classes_last_in_other_forms() -> None:
    x, t = nest((7, 5), (3, 5)), labels(7, 3)
    p = x.softmax(-1)
    equal(F.cross_entropy(x, p, class_dim=2), F.cross_entropy(x.transpose(1, 2), p.transpose(1, 2)))
    equal(F.nll_loss(x, t, class_dim=-1, reduction="none"), F.nll_loss(x.transpose(1, 2), t, reduction="none"))
    want = F.cross_entropy(x.transpose(1, 2), t)
    equal(ct.nn.CrossEntropyLoss(class_dim=-1)(x, t), want)
    equal(ct.nn.NLLLoss(class_dim=-1)(x.log_softmax(-1), t), want)
    each = ct.vmap(lambda c, t: F.cross_entropy(c, t, class_dim=-1, reduction="sum"))(x, t)
    equal(each.sum() / 10, want)
    with pytest.raises(RuntimeError, match="with class_dim=-1, got target"):
        F.cross_entropy(x, labels(7, 4), class_dim=-1)


def test_batch_norm_with_channels_last() -> None:
    x = nest((7, 5), (0, 5), (3, 5))
    a, b = ct.nn.BatchNorm1d(5, channel_dim=-1).double(), ct.nn.BatchNorm1d(5).double()
    for _ in range(2):
        equal(a(x), b(x.transpose(1, 2)).transpose(1, 2))
    equal(a.running_var, b.running_var)
    assert a.num_batches_tracked == 2
    equal(a.eval()(x), b.eval()(x.transpose(1, 2)).transpose(1, 2))
    f = lambda x: F.batch_norm(x, None, None, training=True, channel_dim=-1)
    assert ct.autograd.gradcheck(f, (x.clone().requires_grad_(),))
    d = ct.randn(4, 3, 5, dtype=ct.float64)
    keep = ct.rand(4, 3, 1) > 0.3
    second = F.batch_norm(d.transpose(1, 2), None, None, training=True, mask=keep.transpose(1, 2))
    equal(F.batch_norm(d, None, None, training=True, mask=keep, channel_dim=2), second.transpose(1, 2))
    assert "channel_dim=-1" in repr(a) and "channel_dim" not in repr(b)


# -- alignments ---------------------------------------------------------------------------------------------------------


def test_ctc_loss_of_nests() -> None:
    x, t = nest((7, 5), (9, 5), (4, 5)), nested.nested_tensor([[1, 2], [3, 3, 1], np.zeros(0, np.int64)])

    def one(c: ct.Tensor, t: ct.Tensor) -> ct.Tensor:
        return F.ctc_loss(c.unsqueeze(1), t.unsqueeze(0), (c.shape[0],), (t.shape[0],), reduction="sum")

    def want(x: ct.Tensor) -> ct.Tensor:
        return ct.stack([one(c, u) for c, u in zip(x.log_softmax(-1).unbind(), t.unbind(), strict=True)])

    forms: list[Callable[[ct.Tensor], ct.Tensor]] = [
        lambda x: F.ctc_loss(x.log_softmax(-1), t, reduction="none"),
        lambda x: F.ctc_loss(x.log_softmax(-1), t.to_padded_tensor(0), None, t.lengths(), reduction="none"),
        lambda x: ct.vmap(lambda c, u: F.ctc_loss(c.log_softmax(-1), u, reduction="none"))(x, t),
    ]
    for f in forms:
        equal(f(x), want(x))
        equal(func.grad(lambda x, f=f: f(x).square().sum())(x), func.grad(lambda x: want(x).square().sum())(x))
    equal(ct.nn.CTCLoss()(x.log_softmax(-1), t), (want(x) / ct.tensor([2.0, 3.0, 1.0], dtype=ct.float64)).mean())
    with pytest.raises(RuntimeError, match="divided"):
        F.ctc_loss(ct.zeros(4, 2, 3), ct.tensor([1, 1]))
    with pytest.raises(TypeError, match="must be tensors"):
        F.ctc_loss(ct.zeros(4, 2, 3), [1, 1])


# -- digits -------------------------------------------------------------------------------------------------------------


def test_sums_over_all_components_keep_their_digits() -> None:
    n = 1 << 24
    x = nested.nested_tensor([np.ones((n, 2), np.float32), np.ones((4, 2), np.float32)])
    assert x.sum((0, 1)).tolist() == [n + 4.0] * 2
    assert func.grad(lambda w: (x * w).sum())(ct.ones(2)).tolist() == [n + 4.0] * 2
    assert nested.segment_sum(x.values()[:, 0].contiguous(), ct.zeros(n + 4, dtype=ct.int64), 1).item() == n + 4


def test_sums_of_components_keep_their_digits() -> None:
    r = np.random.default_rng(0).random(3_000_000).astype(np.float32)
    x = nested.nested_tensor([r, r[:100]])
    want = r.sum(dtype=np.float64)
    assert abs(x.sum(1)[0].item() / want - 1) < 7e-8
    assert abs(x.unsqueeze(-1).sum(1)[0].item() / want - 1) < 2e-7


def test_variances_of_components_keep_their_digits() -> None:
    r = (np.random.default_rng(0).normal(size=(10000, 2)) + 1e4).astype(np.float32)
    x = nested.nested_tensor([r, r[:100]])
    want = np.stack([r.astype(np.float64).var(0, ddof=1), r[:100].astype(np.float64).var(0, ddof=1)])
    np.testing.assert_allclose(x.var(1).numpy(), want, rtol=1.2e-7)
    np.testing.assert_allclose(x.std(1).numpy(), np.sqrt(want), rtol=1.2e-7)


def test_results_without_width_beside_rows() -> None:
    x = nested.nested_tensor([np.zeros((3, 0)), np.zeros((2, 0))])
    y = x.cummax(1).values
    assert y.shape == x.shape


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="pyarrow is not installed")
def test_arrow_slices() -> None:
    import pyarrow as pa

    pairs = pa.array([[9, 9], [1, 2], [3, 4]], type=pa.list_(pa.int64(), 2))
    assert nested.from_arrow(pa.ListArray.from_arrays(pa.array([0, 1, 2]), pairs[1:])).tolist() == [[[1, 2]], [[3, 4]]]
    a = pa.array([[None], [1.0, 2.0], []])
    x = nested.from_arrow(a[1:])
    assert x.tolist() == [[1.0, 2.0], []]
    assert x.values().numpy().__array_interface__["data"][0] == a.values.buffers()[1].address + 8
    with pytest.raises(RuntimeError, match="1 missing"):
        nested.from_arrow(a)
    with pytest.raises(RuntimeError, match="must hold numbers"):
        nested.from_arrow(pa.array([["a"]]))


@pytest.mark.parametrize("dtype", [ct.float16, ct.bfloat16])
def test_linear_of_16_bits_rounds_once(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, w, b = (ct.tensor(rng.normal(size=s)).to(dtype) for s in ((40, 64), (2, 32, 64), (2, 32)))
    n = nested.nested_tensor([x[:13], x[13:]])
    d = [v.double() for v in (x, w, b)]
    want = (d[0] @ d[1].mT + d[2].unsqueeze(1)).to(dtype)
    for got in (
        ct.stack([F.linear(n, w[i], b[i]).values() for i in range(2)]),
        ct.stack([y.values() for y in ct.vmap(lambda w, b: F.linear(n, w, b))(w, b)]),
    ):
        assert (got != want).double().mean() < 0.005, "float32 may be half way between two"
