"""What pools refuse, in words that say which argument it was; sizes that are zero give empty results."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import nn
from chainrule.nn import functional as F


def test_kernel_sizes() -> None:
    x = cr.rand(1, 2, 7, 7)
    for kernel in ((), (1,), (1, 2, 3)):
        with pytest.raises(RuntimeError, match="fractional_max_pool2d: kernel_size must either be a single Int"):
            F.fractional_max_pool2d(x, kernel, output_size=(3, 3))
    for kernel in (0, -1, (2, 0)):
        with pytest.raises(ValueError, match="kernel_size must greater than 0"):
            nn.FractionalMaxPool2d(kernel, output_size=1)
    with pytest.raises(
        RuntimeError, match="max_pool2d: kernel size should be greater than zero, but got kernel_size=-1"
    ):
        F.max_pool2d(x, -1)
    with pytest.raises(RuntimeError, match="There should be exactly 2 elements in kernel_size"):
        F.max_unpool2d(x, cr.zeros(1, 2, 7, 7, dtype=cr.int64), ())


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (0, 0)])
def test_no_windows(size: tuple[int, int]) -> None:
    x = cr.rand(2, 3, 5, 5, requires_grad=True)
    y = F.fractional_max_pool2d(x, 2, output_size=size)
    assert y.shape == (2, 3, *size)
    y.sum().backward()
    assert bool((x.grad == 0).all())
