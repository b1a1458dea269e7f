"""16-bit floats: results within one rounding of the float64 result, from the public functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional
WORK: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "weight norm, dim 0": (lambda v, g: cr._weight_norm(v, g, 0), ((16, 40), (16, 1))),
    "weight norm, middle": (lambda v, g: cr._weight_norm(v, g, 1), ((4, 16, 10), (1, 16, 1))),
    "weight norm, last": (lambda v, g: cr._weight_norm(v, g, 1), ((16, 40), (1, 40))),
    "weight norm, whole": (lambda v, g: cr._weight_norm(v, g, -1), ((16, 40), (1, 1))),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (40,), w, b), ((16, 40), (40,), (40,))),
    "RMS norm": (lambda x, w: F.rms_norm(x, (40,), w, 1e-5), ((16, 40), (40,))),
    "batch norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), ((8, 6, 5), (6,), (6,))),
    "group norm": (lambda x, w, b: F.group_norm(x, 3, w, b), ((8, 6, 5), (6,), (6,))),
    "instance norm": (lambda x, w, b: F.instance_norm(x, None, None, w, b), ((8, 6, 5), (6,), (6,))),
}


def within_a_rounding(got: Any, exact: np.ndarray, eps: float, tiny: float) -> None:
    a = got.detach().to(cr.float64).numpy()
    scale = np.maximum(np.abs(exact), np.abs(exact).max() * 1e-3)
    worst = (np.abs(a - exact) / (eps * scale + tiny)).max()
    assert worst <= 1.0, worst


@pytest.mark.parametrize("dtype", [cr.bfloat16, cr.float16], ids=str)
@pytest.mark.parametrize("name", WORK)
def test_one_rounding(name: str, dtype: Any) -> None:
    f, shapes = WORK[name]
    rng = np.random.default_rng(3)
    low = [cr.tensor(rng.standard_normal(s)).to(dtype).requires_grad_() for s in shapes]
    high = [x.detach().to(cr.float64).requires_grad_() for x in low]
    y, z = f(*low), f(*high)
    assert y.dtype is dtype
    eps = 2.0**-7 if dtype is cr.bfloat16 else 2.0**-10
    within_a_rounding(y, z.detach().numpy(), eps, 1e-7)
    g = cr.tensor(rng.standard_normal(tuple(y.shape))).to(dtype)
    for a, b in zip(cr.autograd.grad(y, low, g), cr.autograd.grad(z, high, g.to(cr.float64)), strict=True):
        assert a.dtype is dtype
        within_a_rounding(a, b.numpy(), eps, 1e-6)
