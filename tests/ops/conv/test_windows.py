"""Convolutions, pools and resampling against their definitions, spelled out as loops; adjoints; derivatives of every argument."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional
RNG = np.random.default_rng(0)


def direct(x, w, b, stride, padding, dilation, groups):
    """``y[n, o, i] = b[o] + sum over c, k of x[n, c, i s + k d - p] w[o, c, k]``, one element after the other."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *[(p, p) for p in padding]])
    size = [(x.shape[2 + a] - dilation[a] * (w.shape[2 + a] - 1) - 1) // stride[a] + 1 for a in range(rank)]
    y = np.zeros((x.shape[0], w.shape[0], *size))
    each_in, each_out = w.shape[1], w.shape[0] // groups
    for n, o in itertools.product(range(x.shape[0]), range(w.shape[0])):
        first = o // each_out * each_in
        for at in itertools.product(*map(range, size)):
            for c in range(each_in):
                for k in itertools.product(*map(range, w.shape[2:])):
                    place = tuple(at[a] * stride[a] + k[a] * dilation[a] for a in range(rank))
                    y[(n, o, *at)] += x[(n, first + c, *place)] * w[(o, c, *k)]
    return y + b.reshape(1, -1, *(1,) * rank)


CASES = [
    ((2, 4, 7), (6, 2, 3), (2,), (1,), (1,), 2),
    ((1, 3, 6, 5), (2, 3, 3, 2), (1, 2), (2, 0), (2, 1), 1),
    ((2, 4, 5, 5), (4, 1, 3, 3), (1, 1), (1, 1), (1, 1), 4),
    ((1, 4, 5, 6), (8, 1, 2, 3), (2, 1), (0, 1), (1, 2), 4),
    ((1, 2, 4, 3, 5), (3, 2, 2, 1, 3), (1, 2, 2), (1, 0, 1), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), CASES)
def test_convolution_is_its_definition(shape, kernel, stride, padding, dilation, groups):
    x, w, b = RNG.standard_normal(shape), RNG.standard_normal(kernel), RNG.standard_normal(kernel[0])
    f = getattr(F, f"conv{len(stride)}d")
    got = f(*map(cr.tensor, (x, w, b)), stride, padding, dilation, groups)
    np.testing.assert_allclose(got.numpy(), direct(x, w, b, stride, padding, dilation, groups), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("shape", "kernel", "stride", "padding", "dilation", "groups"), CASES)
def test_transposed_convolution_is_the_adjoint(shape, kernel, stride, padding, dilation, groups):
    """``<y, conv(x, w)> = <conv_transpose(y, w), x>``, with the sizes that rounding took away given back."""
    rank = len(stride)
    x, w = cr.tensor(RNG.standard_normal(shape)), cr.tensor(RNG.standard_normal(kernel))
    z = getattr(F, f"conv{rank}d")(x, w, None, stride, padding, dilation, groups)
    y = cr.tensor(RNG.standard_normal(z.shape))
    back = getattr(F, f"conv_transpose{rank}d")
    short = back(y, w, None, stride, padding, 0, groups, dilation).shape
    more = tuple(a - b for a, b in zip(x.shape[2:], short[2:], strict=True))
    got = back(y, w, None, stride, padding, more, groups, dilation)
    assert got.shape == x.shape
    assert float((y * z).sum()) == pytest.approx(float((got * x).sum()), rel=1e-11)


@pytest.mark.parametrize("arg", [0, 1, 2])
def test_examples_with_weights_of_their_own(arg):
    """vmap over each argument alone, and its gradient, are those of a loop."""
    args = [cr.tensor(RNG.standard_normal(s)) for s in ((2, 4, 6, 6), (4, 2, 3, 3), (4,))]
    args[arg] = cr.tensor(RNG.standard_normal((3, *args[arg].shape)))
    dims = tuple(0 if i == arg else None for i in range(3))

    def f(x, w, b):
        return F.conv2d(x, w, b, stride=2, padding=1, groups=2)

    def each(g):
        return cr.stack([g(*[a[k] if i == arg else a for i, a in enumerate(args)]) for k in range(3)])

    def slope(i):
        return cr.func.grad(lambda *a: f(*a).sin().sum(), argnums=i)

    np.testing.assert_allclose(cr.vmap(f, dims)(*args).numpy(), each(f).numpy(), rtol=1e-12, atol=1e-12)
    for i in range(3):
        np.testing.assert_allclose(
            cr.vmap(slope(i), dims)(*args).numpy(), each(slope(i)).numpy(), rtol=1e-10, atol=1e-10
        )


@pytest.mark.parametrize("ceil", [False, True])
def test_pools_are_their_definitions(ceil):
    x = RNG.standard_normal((1, 2, 7, 6))
    x[0, 0, 2, 2] = x[0, 0, 2, 3] = 9.0  # a tie: the first counts
    size, stride, pad = 3, 2, 1
    got, at = F.max_pool2d(cr.tensor(x), size, stride, pad, ceil_mode=ceil, return_indices=True)
    mean = F.avg_pool2d(cr.tensor(x), size, stride, pad, ceil_mode=ceil, count_include_pad=False)
    for n, c, i, j in itertools.product(*map(range, got.shape)):
        rows = slice(max(i * stride - pad, 0), max(min(i * stride - pad + size, 7), 0))
        columns = slice(max(j * stride - pad, 0), max(min(j * stride - pad + size, 6), 0))
        part = x[n, c, rows, columns]
        assert float(got[n, c, i, j]) == part.max()
        assert float(mean[n, c, i, j]) == pytest.approx(part.mean(), rel=1e-13)
        k = int(part.argmax())
        assert int(at[n, c, i, j]) == (rows.start + k // part.shape[1]) * 6 + columns.start + k % part.shape[1]


def test_adaptive_pools_divide_evenly():
    x = RNG.standard_normal((1, 1, 7))
    got = F.adaptive_avg_pool1d(cr.tensor(x), 3).numpy()[0, 0]
    want = [x[0, 0, i * 7 // 3 : -(-(i + 1) * 7 // 3)].mean() for i in range(3)]
    np.testing.assert_allclose(got, want, rtol=1e-13)


@pytest.mark.parametrize("corners", [False, True])
def test_linear_interpolation_is_its_definition(corners):
    x = RNG.standard_normal(5)
    n = 8
    got = F.interpolate(cr.tensor(x)[None, None], size=n, mode="linear", align_corners=corners).numpy()[0, 0]
    at = np.arange(n) * 4 / (n - 1) if corners else np.clip((np.arange(n) + 0.5) * 5 / n - 0.5, 0, 4)
    np.testing.assert_allclose(got, np.interp(at, np.arange(5), x), rtol=1e-12)


def test_unfold_and_fold_are_adjoint():
    x = cr.tensor(RNG.standard_normal((2, 3, 6, 5)))
    kw = {"kernel_size": (3, 2), "dilation": (1, 2), "padding": (1, 0), "stride": (2, 1)}
    z = F.unfold(x, **kw)
    y = cr.tensor(RNG.standard_normal(z.shape))
    assert float((y * z).sum()) == pytest.approx(float((F.fold(y, (6, 5), **kw) * x).sum()), rel=1e-12)


def test_power_means_of_infinite_order_are_extrema() -> None:
    x = cr.tensor([[[1.0, -3.0, 2.0, 4.0]]])
    pool = cr.nn.functional.lp_pool1d
    assert pool(x, float("inf"), 2, 1).tolist() == [[[3.0, 3.0, 4.0]]]
    assert pool(x, -float("inf"), 2, 1).tolist() == [[[1.0, 2.0, 2.0]]]


def test_a_window_of_padding_alone_is_refused_in_words() -> None:
    with pytest.raises(RuntimeError, match="nothing but padding"):
        cr.nn.MaxPool1d(2, None, 1, 2)(cr.ones(1, 1))
    assert cr.nn.AdaptiveAvgPool1d(5)(cr.ones(0, 10)).shape == (0, 5)
