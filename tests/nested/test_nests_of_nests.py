"""Nests of nests (documents of sentences of words), against the same function of each nest by itself, in every mode."""

import copy
import io
import pickle

import numpy as np
import pytest

import chainrule as cr
from chainrule import nested
from chainrule.core.errors import ChainruleError
from chainrule.func import grad, hessian, jvp, vmap

F = cr.nn.functional
CASES = {
    "ragged": [[3, 1], [2], [1, 2, 3]],
    "empty": [[2, 0], [1], [], [3, 1, 2]],
    "equal": [[2, 2], [2, 2]],
    "one": [[2, 3]],
}
RNG = np.random.default_rng(5)
W, B, V = cr.tensor(RNG.normal(size=(3, 3))), cr.tensor(RNG.normal(size=3)), cr.tensor(RNG.normal(size=(2, 3)))


def nests(name, trail=(), seed=0):
    """The documents of a case, as nests."""
    rng = np.random.default_rng(seed)
    out = []
    for sizes in CASES[name]:
        rows = cr.tensor(rng.normal(size=(sum(sizes), *trail)))
        out.append(nested.nested_tensor_from_jagged(rows, lengths=cr.tensor(sizes, dtype=cr.int64)))
    return out


def arrays(y):
    """A result as a flat list of arrays."""
    if isinstance(y, tuple | list):
        return [a for v in y for a in arrays(v)]
    return [a for c in y.unbind() for a in arrays(c)] if y.is_nested else [y.numpy(force=True)]


def same(got, want, what=""):
    if isinstance(want, list) and not isinstance(got, list):
        got = list(got.unbind(0))
    a, b = arrays(got), arrays(want)
    assert [v.shape for v in a] == [v.shape for v in b], what
    for u, v in zip(a, b, strict=True):
        np.testing.assert_allclose(u, v, rtol=1e-9, atol=1e-11, err_msg=what)


# Functions of one document [j, jj] and [j, jj, 3], which mean the same on all of them: dims from the end.
WORDS = {
    "arithmetic": lambda x: (x * x.sin() + 2) / (1 + x.exp()),
    "sum": lambda x: x.sum(-1),
    "keepdim": lambda x: x - x.sum(-1, keepdim=True),
    "all": lambda x: x.sum((-2, -1)),
    "mean of all": lambda x: x * x.exp().sum((-2, -1), keepdim=True),
    "softmax": lambda x: x.softmax(-1) * x,
    "log_softmax": lambda x: x.log_softmax(-1) * x,
    "logsumexp": lambda x: x.exp().logsumexp(-1).sin(),
    "sizes": lambda x: x / (x.size(-1) + 1),
    "size of a sum": lambda x: x.sum(-1) / (x.size(-1) + 1),
    "cumsum": lambda x: x.cumsum(-1),
    "sort": lambda x: x.sort(-1)[0] * 2,
    "flip": lambda x: x.flip(-1) * x,
    "where": lambda x: cr.where(x > 0.1, x * x, -x),
    "masked_fill": lambda x: x.masked_fill(x > 0.1, 0.5),
    "twice": lambda x: x.cos().sum(-1).exp().sum(-1),
    "after": lambda x: x.sum(-1).softmax(-1),
    "unsqueeze": lambda x: x.unsqueeze(-1).exp(),
    "stack": lambda x: cr.stack([x, x * x], -1),
    "cat": lambda x: cr.cat([x, x.sin()], -1),
    "cat of sentences": lambda x: cr.cat([x, x.sin()], -2),
    "slice": lambda x: x[..., 1:] * 3,
    "later sentences": lambda x: x[..., 1:, :] * 3,
    "norm": lambda x: (x * x + 1).norm(dim=-1),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
}
VECTORS = {
    "linear": lambda x: F.linear(x, V) ** 2,
    "bias": lambda x: F.linear(x, W, B).tanh(),
    "product": lambda x: (x @ W).sin(),
    "layer_norm": lambda x: F.layer_norm(x, (3,), B, B + 1) ** 3,
    "rms_norm": lambda x: F.rms_norm(x, (3,), B) ** 3,
    "softmax of features": lambda x: x.softmax(-1) * x,
    "softmax of words": lambda x: x.softmax(-2) * x,
    "sum of words": lambda x: x.sum(-2).exp(),
    "sum of features": lambda x: x.exp().sum(-1),
    "mean": lambda x: (x - x.mean(-1, keepdim=True)) * B,
    "all words": lambda x: x.exp().sum((-3, -2)),
    "all": lambda x: x.exp().sum((-3, -2, -1)),
    "moments": lambda x: (x - x.sum((-3, -2), keepdim=True)) ** 2,
    "transpose": lambda x: x.mT.exp(),
    "gram": lambda x: x.mT @ x,
    "scores": lambda x: (x @ x.mT).softmax(-1) @ x,
    "gelu": lambda x: F.gelu(x) * B,
    "first feature": lambda x: x[..., 0] * x[..., 1:].sum(-1),
    "reversed features": lambda x: x[..., cr.tensor([2, 0])] * 2,
    "var": lambda x: x.var(-1),
}
TABLE = [(n, f, ()) for n, f in WORDS.items()] + [(n, f, (3,)) for n, f in VECTORS.items()]


def number(y):
    return (y * y).sum() / 2 + y.sin().sum()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("name", "f", "trail"), TABLE, ids=[t[0] for t in TABLE])
def test_function(name, f, trail, case):
    docs, ts = nests(case, trail), nests(case, trail, 1)
    x, t = nested.nested_tensor(docs), nested.nested_tensor(ts)
    want = [f(d) for d in docs]
    same(f(x), want, "value")
    same(vmap(f)(x), want, "vmap")
    total = lambda x: number(f(x))
    slopes = [grad(total)(d) for d in docs]
    for got, what in (
        (grad(total)(x), "grad"),
        (vmap(grad(total))(x), "vmap(grad)"),
        (grad(lambda x: number(vmap(f)(x)))(x), "grad(vmap)"),
    ):
        same(got, slopes, what)
        assert got.shape == x.shape, what
    same(jvp(f, (x,), (t,))[1], [jvp(f, (d,), (v,))[1] for d, v in zip(docs, ts, strict=True)], "jvp")
    second = lambda x, t: jvp(grad(total), (x,), (t,))[1]
    seconds = [second(d, v) for d, v in zip(docs, ts, strict=True)]
    same(second(x, t), seconds, "jvp(grad)")
    same(vmap(second)(x, t), seconds, "vmap(jvp(grad))")
    scales = cr.tensor([0.5, 2.0, -1.0])
    members = vmap(lambda s: f(x * s))(scales)
    for s, y in zip(scales, members.unbind(0), strict=True):
        same(y, [f(d * s) for d in docs], "ensemble")
    of_members = vmap(grad(lambda s, x: number(f(x * s)), argnums=(0, 1)), in_dims=(0, None))(scales, x)
    for i, s in enumerate(scales):
        a, b = grad(lambda s, x: number(f(x * s)), argnums=(0, 1))(s, x)
        same([of_members[0][i], of_members[1].select(0, i)], [a, b], "gradient of an ensemble")
    leaf = x.detach().clone().requires_grad_()
    number(f(leaf)).backward()
    same(leaf.grad, slopes, "backward")


def test_choices_behind_dots():
    x = nested.nested_tensor([[1.0, 2.0], [3.0], [4.0, 5.0, 6.0]])
    assert x[..., 1:, :].tolist() == [[3.0], [4.0, 5.0, 6.0]]
    assert x[..., 2, :].tolist() == [4.0, 5.0, 6.0]
    y = nested.nested_tensor([[[1.0, 2.0], [3.0]], [[4.0]]])
    assert y[..., 0, :, :].tolist() == [[1.0, 2.0], [3.0]]
    assert y[..., :1, :, :].tolist() == [[[1.0, 2.0], [3.0]]]
    assert y[..., 0, :].tolist() == [[1.0, 2.0], [4.0]]


TABLE_OF_PLACES = cr.tensor(RNG.normal(size=(5, 3)))
SENTENCES = {
    "softmax": (lambda w: w.softmax(0) * w, ()),
    "sizes": (lambda w: w.sum() / (w.shape[0] + 1), ()),
    "root of a size": (lambda w: w * (w.shape[0] + 1) ** 0.5, ()),
    "places": (lambda w: w * cr.arange(w.shape[0]), ()),
    "positions": (lambda w: w + TABLE_OF_PLACES[: w.shape[0]], (3,)),
    "constant": (lambda w: cr.ones(2, dtype=cr.float64) + w.sum(), ()),
    "number of elements": (lambda w: w.sum() + w.numel(), (3,)),
    "linear": (lambda w: F.linear(w, V).exp().sum(0), (3,)),
    "layer_norm": (lambda w: F.layer_norm(w, (3,), B) ** 2, (3,)),
    "attention": (lambda w: (w @ w.mT / 3**0.5).softmax(-1) @ w, (3,)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", SENTENCES)
def test_map_over_maps(name, case):
    f, trail = SENTENCES[name]
    docs = nests(case, trail)
    x = nested.nested_tensor(docs)
    total = lambda w: number(f(w))
    twice = lambda g: vmap(vmap(g))
    same(twice(f)(x), [vmap(f)(d) for d in docs])
    slopes = [vmap(grad(total))(d) for d in docs]
    same(twice(grad(total))(x), slopes)
    same(grad(lambda x: twice(total)(x).sum())(x), slopes)
    same(vmap(grad(lambda d: vmap(total)(d).sum()))(x), slopes)
    second = lambda w: jvp(grad(total), (w,), (w.cos(),))[1]
    same(twice(second)(x), [vmap(second)(d) for d in docs])


def test_making():
    words = [[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]]
    x = nested.nested_tensor(words)
    assert x.tolist() == words and x.is_nested and x.ndim == 3 and x.numel() == 6 and len(x) == 2
    assert str(x.shape) == "chainrule.Size([2, j2/1, j(3/1, 2)])"
    arrays = [[np.array(s) for s in d] for d in words]
    for other in (
        [nested.nested_tensor(d) for d in words],
        [[cr.tensor(s) for s in d] for d in words],
        arrays,
        [nested.nested_tensor(words[0]), words[1]],
    ):
        assert nested.nested_tensor(other, dtype=cr.float32).tolist() == words
    assert [[s.tolist() for s in d] for d in x.numpy()] == words
    assert repr(x) == ("nested_tensor([\n  [\n    [1., 2., 3.],\n    [4.]\n  ],\n  [\n    [5., 6.]\n  ]\n])")
    # Lists of numbers of one size in each component stay what they were.
    assert nested.nested_tensor([[[1, 2], [3, 4]], [[5, 6]]]).ndim == 3
    assert nested.nested_tensor([[[1, 2], [3, 4]], [[5, 6]]]).shape[2] == 2


def test_taking_apart():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    assert (
        x[0].tolist() == [[1.0, 2.0, 3.0], [4.0]] and x[0][1].tolist() == [4.0] and x[0, 0].tolist() == [1.0, 2.0, 3.0]
    )
    assert [c.tolist() for c in x] == x.tolist() == [c.tolist() for c in x.unbind()]
    assert x[:, 0].tolist() == [[1.0, 2.0, 3.0], [5.0, 6.0]] and x[:, -1].tolist() == [[4.0], [5.0, 6.0]]
    assert x[:, 1:].tolist() == [[[4.0]], []] and x[:, :, -1].tolist() == [[3.0, 4.0], [6.0]]
    assert x[cr.tensor([1, 0, 1])].tolist() == [x[1].tolist(), x[0].tolist(), x[1].tolist()]
    assert x[1:].tolist() == [[[5.0, 6.0]]]
    assert x.values().tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0] and x.offsets().tolist() == [0, 4, 6]
    assert x.reshape(2, -1).tolist() == [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]]
    assert cr.cat(list(x.unbind())).tolist() == [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]]
    g = grad(lambda x: sum((i + 1) * (c * c).sum() for i, c in enumerate(x.unbind())))(x)
    assert g.tolist() == [[[2.0, 4.0, 6.0], [8.0]], [[20.0, 24.0]]]
    g = grad(lambda x: x[0][1].sum() + 2 * x[:, 0].sum() + x[x > 5].sum())(x)
    assert g.tolist() == [[[2.0, 2.0, 2.0], [1.0]], [[2.0, 3.0]]]
    a = x[0].requires_grad_()
    nested.as_nested_tensor([a, x[1]]).pow(2).sum().backward()
    assert a.grad.tolist() == [[2.0, 4.0, 6.0], [8.0]]


def test_positions():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    assert cr.arange(x.size(2)).tolist() == [[[0, 1, 2], [0]], [[0, 1]]]
    table = cr.tensor([1.0, 10.0, 100.0])
    assert (x + table[: x.size(2)]).tolist() == [[[2.0, 12.0, 103.0], [5.0]], [[6.0, 16.0]]]
    assert grad(lambda t: (x * t[: x.size(2)]).sum())(table).tolist() == [10.0, 8.0, 3.0]
    f = lambda d, t: vmap(lambda w: (w * t[: w.shape[0]]).sum())(d).sum()
    assert grad(lambda t: vmap(f, (0, None))(x, t).sum())(table).tolist() == [10.0, 8.0, 3.0]
    assert vmap(grad(f, argnums=1), (0, None))(x, table).tolist() == [[5.0, 2.0, 3.0], [5.0, 6.0, 0.0]]


def test_padding_and_files():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    assert x.to_padded_tensor(-1.0).tolist() == [[[1, 2, 3], [4, -1, -1]], [[5, 6, -1], [-1, -1, -1]]]
    assert x.to_padded_tensor(0.0, (2, 3, 4)).shape == (2, 3, 4)
    t = cr.randn(2, 2, 3)
    assert cr.allclose(
        grad(lambda x: (x.to_padded_tensor(2.0) * t).sum())(x).to_padded_tensor(0.0), t * (x.to_padded_tensor(0.0) > 0)
    )
    file = io.BytesIO()
    cr.save({"x": x}, file)
    file.seek(0)
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), cr.load(file)["x"]):
        assert y.tolist() == x.tolist() and y.shape == x.shape


def test_writes():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    x.mul_(2)
    x[x > 9] = 0.0
    x[0] = x[0] + 1
    assert x.tolist() == [[[3.0, 5.0, 7.0], [9.0]], [[0.0, 0.0]]]
    x[:, 0] = -x[:, 0]
    assert x.tolist() == [[[-3.0, -5.0, -7.0], [9.0]], [[0.0, 0.0]]]
    x.unbind()[1].fill_(1.0)
    assert x[1].tolist() == [[1.0, 1.0]]

    def f(x):
        y = x * 1
        y[:, :, 0] = 0.0
        return (y * y).sum()

    assert grad(f)(x).tolist() == [[[0.0, -10.0, -14.0], [0.0]], [[0.0, 2.0]]]


def test_hessians_and_steps():
    x = nested.nested_tensor([[[1.0, 2.0], [3.0]], [[4.0]]], dtype=cr.float64)
    assert hessian(lambda x: (x**3).sum())(x).shape[0] == x.numel()
    m = cr.nn.Sequential(
        cr.nn.Linear(2, 3), cr.nn.ReLU(), cr.nn.LayerNorm(3), cr.nn.Dropout(0.5), cr.nn.Linear(3, 1)
    ).double()
    pairs = nested.nested_tensor([[cr.randn(2, 2), cr.randn(1, 2)], [cr.randn(3, 2)]], dtype=cr.float64)
    m.eval()
    whole = m(pairs)
    same(whole, [m(d) for d in pairs.unbind()])
    whole.pow(2).sum().backward()
    got = [p.grad.clone() for p in m.parameters()]
    m.zero_grad()
    sum(m(d).pow(2).sum() for d in pairs.unbind()).backward()
    same(got, [p.grad for p in m.parameters()])


def test_words_to_vectors():
    ids = nested.nested_tensor([[[1, 2, 0], [3]], [[2, 2]]])
    table = cr.tensor(RNG.normal(size=(4, 3)))
    f = lambda t, i: F.embedding(i, t).sum(-2).tanh()
    same(f(table, ids), [f(table, d) for d in ids.unbind()])
    slope = lambda ids: grad(lambda t: number(f(t, ids)))(table)
    same(slope(ids), sum(slope(d) for d in ids.unbind()))


def test_refusals():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    for f, text in (
        (lambda: x.sum(1), "goes together with their ragged dims"),
        (lambda: x.softmax(1), "is not possible"),
        (lambda: nested.nested_tensor([x, x]), "nests of nests of nests"),
        (lambda: nested.nested_tensor([x[0], cr.ones(3)]), "component 1 is dense"),
        (lambda: x + nested.nested_tensor([[1.0, 2.0], [3.0]]), "unsqueeze"),
        (lambda: x + nested.nested_tensor([[[1.0], [4.0]], [[5.0, 6.0]]]), "component"),
        (lambda: x + nested.nested_tensor([[[1.0]], [[5.0, 6.0]]]), "components"),
        (lambda: x.transpose(1, 2), "among each other"),
        (lambda: cr.cat([x, cr.ones(2, 2, 3)]), "nests of nests"),
        (lambda: x[:, cr.tensor([0])], "take slices"),
        (lambda: x[:, 1], "component 1"),
    ):
        with pytest.raises((ChainruleError, IndexError, RuntimeError), match=text):
            f()


def test_joins_of_equal_and_ragged():
    x = nested.nested_tensor([[[1.0, 2.0, 3.0], [4.0]], [[5.0, 6.0]]])
    first = x[:, :, :1]
    one = first.sum(-1, keepdim=True)  # a nest of rows of one entry
    assert not any(type(s).__name__ == "DeepInt" for s in one.shape)
    assert cr.cat([one, x], -1).tolist() == [[[1.0, 1.0, 2.0, 3.0], [4.0, 4.0]], [[5.0, 5.0, 6.0]]]
    assert cr.cat([one, x], 1).tolist() == [[[1.0], [4.0], [1.0, 2.0, 3.0], [4.0]], [[5.0], [5.0, 6.0]]]
    other = nested.nested_tensor([[[7.0]], [[8.0, 9.0], [1.0]]])
    joined = [[*a, *b] for a, b in zip(x.tolist(), other.tolist(), strict=True)]
    assert cr.cat([x, other], 1).tolist() == vmap(lambda a, b: cr.cat([a, b]))(x, other).tolist() == joined
    assert cr.cat([x, one]).tolist() == [*x.tolist(), [[1.0], [4.0]], [[5.0]]]


SIZES = [[6, 9], [7, 5], [], [5, 5, 8]]


def test_windows():
    docs = [
        nested.nested_tensor_from_jagged(
            cr.tensor(RNG.normal(size=(4, sum(ss)))), lengths=cr.tensor(ss, dtype=cr.int64), jagged_dim=2
        )
        for ss in SIZES
    ]
    x, w = nested.nested_tensor(docs), cr.tensor(RNG.normal(size=(5, 4, 3)))
    f = lambda c, w: F.conv1d(c, w).sin()
    same(vmap(vmap(f, (0, None)), (0, None))(x, w), [vmap(f, (0, None))(d, w) for d in docs])
    same(F.conv1d(x, w), [F.conv1d(d, w) for d in docs])
    same(F.max_pool1d(x, 2), [F.max_pool1d(d, 2) for d in docs])
    loss = lambda d, w: number(vmap(f, (0, None))(d, w))
    whole = lambda x, w: vmap(loss, (0, None))(x, w).sum()
    same(grad(whole)(x, w), [grad(loss)(d, w) for d in docs])
    slopes = [grad(loss, argnums=1)(d, w) for d in docs]
    same(grad(whole, argnums=1)(x, w), sum(slopes))
    same(vmap(grad(loss, argnums=1), (0, None))(x, w), slopes)
    same(vmap(lambda s: grad(lambda w: whole(x * s, w))(w))(cr.tensor([1.0, 2.0]))[0], sum(slopes))
    two = cr.tensor([1.0, 2.0])
    same(vmap(lambda s: whole(x, w * s))(two)[1], whole(x, 2 * w))
    same(vmap(lambda s: grad(whole, argnums=1)(x, w * s))(two)[1], grad(whole, argnums=1)(x, 2 * w))
    with pytest.raises(ChainruleError, match="what all of them share"):  # the cotangent is one for all members
        linear = lambda w: vmap(vmap(lambda c, w: F.conv1d(c, w).sum(), (0, None)), (0, None))(x, w).values().sum()
        vmap(lambda s: grad(linear)(w * s))(two)


def test_gradients_have_the_structure_of_what_was_joined():
    a = nested.nested_tensor([RNG.normal(size=(4, m)) for m in (6, 9)])
    b = nested.nested_tensor([RNG.normal(size=(4, 7))])  # ragged in its first dim, as no size differs
    assert str(nested.nested_tensor([a, b]).shape) == "chainrule.Size([2, j2/1, 4, j(6/9, 7)])"
    for i, c in enumerate((a, b)):
        g = grad(lambda c, i=i: (nested.as_nested_tensor([c if i == 0 else a, c if i else b]) ** 2).sum())(c)
        assert repr(g.shape) == repr(c.shape)
        same(g, 2 * c)
