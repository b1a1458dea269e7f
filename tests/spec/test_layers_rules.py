"""Rules of layers: convolution, pooling, recurrence, bilinear forms, distances, sampling, attention."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import chainrule as cr

from .judge import array, case, gradient, gradients, judge, mathematics, require, row, same, values

# -- convolution --------------------------------------------------------------------------------------------------------------

CONV = {
    "plain": {},
    "stride": {"stride": 2},
    "padding": {"padding": 1},
    "dilation": {"dilation": 2},
    "groups": {"groups": 2},
    "all": {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
    "depthwise": {"groups": 4},
}
SIZES = {1: (7,), 2: (5, 4), 3: (4, 3, 4)}


@row("convolution")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", [*CONV, "same", "valid"])
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_conv(d: int, name: str) -> None:
    kw = CONV.get(name, {"padding": name})
    if d == 3 and name in ("dilation", "all"):
        kw = {**kw, "dilation": 1}
    groups = kw.get("groups", 1)
    x, w, b = array(2, 4, *SIZES[d]), array(4, 4 // groups, *(2,) * d, seed=1), array(4, seed=2)
    op = f"F.conv{d}d"
    run = lambda m, *a: getattr(m.nn.functional, f"conv{d}d")(*a, **kw)
    judge(op, run, x, w, b)
    judge(op, run, x[0], w)
    if d < 3:
        judge(op, run, array(2, 4, *SIZES[d], cx=True), array(4, 4 // groups, *(2,) * d, cx=True, seed=1))


@row("convolution")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", [*CONV, "output_padding"])
def test_conv_transpose(d: int, name: str) -> None:
    kw = CONV.get(name, {"stride": 2, "output_padding": 1})
    groups = kw.get("groups", 1)
    x, w = array(2, 4, *(3,) * d), array(4, 4 // groups, *(2,) * d, seed=1)
    op = f"F.conv_transpose{d}d"
    run = lambda m, *a: getattr(m.nn.functional, f"conv_transpose{d}d")(*a, **kw)
    judge(op, run, x, w, array(4, seed=2))
    judge(op, run, x[0], w)


@row("convolution")
def test_conv_of_uneven_geometry_and_of_nothing() -> None:
    f = lambda m, x, w: m.nn.functional.conv2d(x, w, stride=(1, 2), padding=(2, 0), dilation=(1, 2))
    judge("F.conv2d", f, array(2, 1, 4, 5), array(3, 1, 2, 2, seed=1))
    judge("F.conv1d", lambda m, x, w: m.nn.functional.conv1d(x, w), np.zeros((0, 2, 4)), array(3, 2, 2, seed=1))
    # A kernel that jumps over inputs leaves them without gradient.
    g = gradient(lambda m, x, w: m.nn.functional.conv1d(x, w, stride=3), array(1, 1, 7), array(1, 1, 1))[0]
    assert (g[0, 0, [1, 2, 4, 5]] == 0).all() and (g[0, 0, [0, 3, 6]] != 0).all()


# -- pooling -------------------------------------------------------------------------------------------------------------------

POOL = {
    "plain": {},
    "stride": {"stride": 1},
    "padding": {"padding": 1},
    "dilation": {"dilation": 2, "stride": 1},
    "ceil": {"stride": 2, "ceil_mode": True},
}


@row("pool")
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("name", POOL)
def test_max_pool(d: int, name: str) -> None:
    f = lambda m, x: getattr(m.nn.functional, f"max_pool{d}d")(x, 2, **POOL[name])
    g = lambda m, x: getattr(m.nn.functional, f"max_pool{d}d")(x, 2, return_indices=True, **POOL[name])
    x = array(2, 2, *SIZES[d])
    judge(f"F.max_pool{d}d", f, x)
    judge(f"F.max_pool{d}d", g, x[0])
    judge(f"F.max_pool{d}d", f, np.ones((1, 1, *SIZES[d])), smooth=False)


@row("pool")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_adaptive_max_pool(d: int) -> None:
    for size in (1, 2, 3):
        f = lambda m, x, s=size: getattr(m.nn.functional, f"adaptive_max_pool{d}d")(x, s)
        judge(f"F.adaptive_max_pool{d}d", f, array(2, 2, *SIZES[d]))
    g = lambda m, x: getattr(m.nn.functional, f"adaptive_max_pool{d}d")(x, 2, return_indices=True)
    judge(f"F.adaptive_max_pool{d}d", g, array(2, *SIZES[d]))


@row("pool")
@pytest.mark.parametrize("d", [2, 3])
def test_fractional_max_pool(d: int) -> None:
    at = array(1, 2, d, low=0.0, high=1.0)
    for kw in ({"output_size": 2}, {"output_ratio": (0.6,) * d}):
        f = lambda m, x, kw=kw: getattr(m.nn.functional, f"fractional_max_pool{d}d")(
            x, 2, _random_samples=m.tensor(at), **kw
        )
        judge(f"F.fractional_max_pool{d}d", f, array(1, 2, *(5,) * d))


# -- recurrence ------------------------------------------------------------------------------------------------------------------

RNN = {"lstm": (torch.lstm, 4), "gru": (torch.gru, 3), "rnn_tanh": (torch.rnn_tanh, 1), "rnn_relu": (torch.rnn_relu, 1)}
LAYOUTS = list(itertools.product((1, 2), (False, True), (False, True), (False, True)))


@row("recurrent")
@pytest.mark.parametrize("name", RNN)
@pytest.mark.parametrize(("layers", "both", "first", "bias"), LAYOUTS)
def test_recurrent(name: str, layers: int, both: bool, first: bool, bias: bool) -> None:
    gates, n, hidden = RNN[name][1], 2, 2
    ways = 2 if both else 1
    params = []
    for layer, _ in itertools.product(range(layers), range(ways)):
        size = n if layer == 0 else hidden * ways
        params += [array(gates * hidden, size, seed=len(params)), array(gates * hidden, hidden, seed=len(params) + 1)]
        params += [array(gates * hidden, seed=len(params) + 2) for _ in range(2 if bias else 0)]
    x, h0 = array(3, 2, n), array(layers * ways, 2, hidden, seed=1)
    if first:
        x = x.transpose(1, 0, 2).copy()
    states = [h0, array(*h0.shape, seed=2)] if name == "lstm" else [h0]
    k = len(states)

    def f(m, x, *rest):
        hx = list(rest[:k]) if name == "lstm" else rest[0]
        return getattr(m, name)(x, hx, [0.5 * p for p in rest[k:]], bias, layers, 0.0, False, both, first)

    require(name)
    if layers == 2 and (first or not both):
        values(f, x, *states, *params)
        gradients(f, x, *states, *params)
    else:
        judge(name, f, x, *states, *params, vmap=layers == 1)


@row("recurrent")
@pytest.mark.parametrize("name", RNN)
def test_recurrent_over_packed_sequences(name: str) -> None:
    require(name)
    gates = RNN[name][1]
    w = [array(gates * 2, 2, seed=1), array(gates * 2, 2, seed=2)]
    state = array(1, 3, 2, seed=3)
    states = [state, array(1, 3, 2, seed=4)] if name == "lstm" else [state]
    k = len(states)

    def f(m, x, *rest):
        hx = list(rest[:k]) if name == "lstm" else rest[0]
        return getattr(m, name)(x, m.tensor([3, 2, 1]), hx, list(rest[k:]), False, 1, 0.0, False, False)

    judge(name, f, array(6, 2), *states, *w)


# -- bilinear, distances, sampling, attention ------------------------------------------------------------------------------------


@row("bilinear")
def test_bilinear() -> None:
    f = lambda m, a, b, w, c: m.nn.functional.bilinear(a, b, w, c)
    judge("F.bilinear", f, array(2, 3), array(2, 4, seed=1), array(2, 3, 4, seed=2), array(2, seed=3))
    g = lambda m, a, b, w: m.nn.functional.bilinear(a, b, w)
    judge("F.bilinear", g, array(2, 3), array(2, 4, seed=1), array(2, 3, 4, seed=2))
    judge("F.bilinear", g, array(3), array(4, seed=1), array(2, 3, 4, seed=2))
    judge("F.bilinear", g, array(2, 2, 3), array(2, 2, 4, seed=1), array(1, 3, 4, seed=2))
    judge("F.bilinear", g, np.zeros((0, 3)), np.zeros((0, 4)), array(2, 3, 4, seed=2))


@row("distances_sampling_attention")
@pytest.mark.parametrize("p", [0.5, 1, 1.5, 2, 3, float("inf"), 0])
def test_distances(p: float) -> None:
    f = lambda m, a, b: m.cdist(a, b, p)
    judge("cdist", f, array(3, 2), array(4, 2, seed=1))
    judge("cdist", f, array(2, 3, 2), array(2, 4, 2, seed=1))
    judge("cdist", f, array(2, 0, 2), array(2, 4, 2))
    g = lambda m, a: m.nn.functional.pdist(a, p)
    judge("F.pdist", g, array(4, 3))
    judge("F.pdist", g, array(1, 3))
    # Equal points have no direction: their gradient is 0.
    same_point = np.array([[1.0, 2.0], [1.0, 2.0], [0.0, 5.0]])
    mathematics(case("F.pdist", g, same_point), smooth=False)
    assert np.isfinite(gradient(g, same_point)[0]).all()
    if p >= 1:
        values(f, same_point, same_point)
        gradients(f, same_point, same_point)


GRID = list(itertools.product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


@row("distances_sampling_attention")
@pytest.mark.parametrize(("mode", "padding", "align"), GRID)
def test_grid_sample(mode: str, padding: str, align: bool) -> None:
    f = lambda m, x, g: m.nn.functional.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=align)
    judge("F.grid_sample", f, array(1, 2, 3, 4), array(1, 2, 3, 2, seed=1, low=-1.3, high=1.3))
    if mode != "bicubic":
        judge("F.grid_sample", f, array(1, 1, 2, 3, 3), array(1, 2, 1, 2, 3, seed=1, low=-1.3, high=1.3))


RESIZE = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    "area": (1, 2, 3),
}


@row("distances_sampling_attention")
@pytest.mark.parametrize("mode", RESIZE)
def test_interpolate(mode: str) -> None:
    for d in RESIZE[mode]:
        x = array(1, 2, *(4,) * d)
        for kw in ({"size": 5}, {"size": 3}, {"scale_factor": 1.7}):
            f = lambda m, x, kw=kw: m.nn.functional.interpolate(x, mode=mode, **kw)
            judge("F.interpolate", f, x)
        if mode.endswith(("linear", "cubic")):
            f = lambda m, x: m.nn.functional.interpolate(x, size=6, mode=mode, align_corners=True)
            judge("F.interpolate", f, x)
        if mode in ("bilinear", "bicubic"):
            f = lambda m, x: m.nn.functional.interpolate(x, size=2, mode=mode, antialias=True)
            judge("F.interpolate", f, x)


@row("distances_sampling_attention")
def test_attention() -> None:
    q, k, v = array(2, 2, 3, 4), array(2, 2, 5, 4, seed=1), array(2, 2, 5, 3, seed=2)
    att = lambda m, q, k, v, **kw: m.nn.functional.scaled_dot_product_attention(q, k, v, **kw)
    name = "F.scaled_dot_product_attention"
    judge(name, lambda m, q, k, v: att(m, q, k, v), q, k, v)
    judge(name, lambda m, q, k, v: att(m, q, k, v, scale=0.3), q, k, v)
    judge(name, lambda m, q, k, v: att(m, q, k, v, is_causal=True), q, k, v)
    mask = np.array([[True, False, True, True, False]] * 3)
    judge(name, lambda m, q, k, v: att(m, q, k, v, attn_mask=m.tensor(mask)), q, k, v)
    judge(name, lambda m, q, k, v, b: att(m, q, k, v, attn_mask=b), q, k, v, array(3, 5, seed=3))
    judge(
        name,
        lambda m, q, k, v: att(m, q, k, v, enable_gqa=True),
        array(1, 4, 3, 2),
        array(1, 2, 3, 2, seed=1),
        array(1, 2, 3, 2, seed=2),
    )
    # A query that may look at nothing gives zeros and has no gradient.
    none = np.zeros((3, 5), bool)
    none[1:] = True
    y = att(cr, *[cr.tensor(a) for a in (q, k, v)], attn_mask=cr.tensor(none)).numpy()
    assert not y[..., 0, :].any() and y[..., 1, :].any()
    gq = gradient(lambda m, q, k, v: att(m, q, k, v, attn_mask=m.tensor(none)), q, k, v)[0]
    same(gq[..., 0, :], np.zeros_like(gq[..., 0, :]), "a query that sees nothing")
