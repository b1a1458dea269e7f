"""Channels that are last in memory stay last through layers, in gradients too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import chainrule as cr
from chainrule.nn import functional as F

LAYERS: dict[str, Callable[[cr.Tensor], cr.Tensor]] = {
    "interpolate": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "nearest": lambda x: F.interpolate(x, size=(5, 3)),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, 2),
    "conv2d": lambda x: F.conv2d(x, cr.ones(5, 4, 3, 3, dtype=x.dtype), padding=1),
    "conv_transpose2d": lambda x: F.conv_transpose2d(x, cr.ones(4, 2, 2, 2, dtype=x.dtype)),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x: F.group_norm(x, 2),
    "dropout": lambda x: F.dropout(x, 0.5),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_carry_channels_last_on(name: str) -> None:
    f = LAYERS[name]
    x = cr.randn(2, 4, 6, 6, dtype=cr.float64)
    rows, last = (x.clone().requires_grad_(), x.contiguous(memory_format=cr.channels_last).requires_grad_())
    for _ in range(3):  # from the second call on small arrays run as straight-line code
        results = []
        for leaf, form in ((rows, cr.contiguous_format), (last, cr.channels_last)):
            leaf.grad = None
            cr.manual_seed(0)
            y = f(leaf)
            assert y.is_contiguous(memory_format=form), (name, form)
            y.backward(cr.cos(cr.arange(float(y.numel()), dtype=y.dtype)).reshape(y.shape))
            assert leaf.grad is not None and leaf.grad.is_contiguous(memory_format=form), (name, form)
            results.append((y, leaf.grad))
        for a, b in zip(*results, strict=True):
            cr.testing.assert_close(a, b)


def test_indices_of_maxima_and_weights_with_channels_last() -> None:
    x = cr.randn(2, 3, 4, 4).contiguous(memory_format=cr.channels_last)
    y, i = F.max_pool2d(x, 2, return_indices=True)
    assert y.is_contiguous(memory_format=cr.channels_last) and i.is_contiguous(memory_format=cr.channels_last)
    assert F.max_unpool2d(y, i, 2).is_contiguous(memory_format=cr.channels_last)
    w = cr.randn(5, 3, 3, 3).contiguous(memory_format=cr.channels_last)
    assert F.conv2d(x.contiguous(), w).is_contiguous(memory_format=cr.channels_last)
    z = cr.randn(1, 2, 2, 2, 2).contiguous(memory_format=cr.channels_last_3d)
    assert F.avg_pool3d(z, 2, 1).is_contiguous(memory_format=cr.channels_last_3d)
    assert cr.vmap(lambda x: F.max_pool2d(x, 2))(x).shape == (2, 3, 2, 2)


def test_gradients_lie_as_their_leaf_does() -> None:
    w = cr.randn(3, 4).t().requires_grad_()
    (w * cr.arange(12.0).reshape(4, 3)).sum().backward()
    assert w.grad is not None and w.grad.stride() == w.stride() == (1, 4) and w.grad[1, 2] == 5
    gaps = cr.randn(4, 6)[:, ::2].requires_grad_()
    (gaps * 2.0).sum().backward()
    assert gaps.grad is not None and gaps.grad.stride() == (3, 1)


def test_formats_of_images_with_gaps_and_formats_asked_for() -> None:
    x = cr.randn(2, 3, 8, 12).contiguous(memory_format=cr.channels_last)[:, :, ::2, 1:9]
    assert F.avg_pool2d(x, 2).is_contiguous(memory_format=cr.channels_last)
    rows = cr.randn(2, 3, 8, 12)[:, :, ::2, 1:9]
    assert F.avg_pool2d(rows, 2).is_contiguous()
    y = x.to(memory_format=cr.contiguous_format)
    assert y.is_contiguous() and cr.equal(x, y)
    conv = cr.nn.Conv2d(3, 4, 3).to(memory_format=cr.channels_last)
    assert conv.to(memory_format=cr.contiguous_format).weight.is_contiguous()
