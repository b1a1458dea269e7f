"""Modes of interpolation against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr


@pytest.mark.parametrize("size", [(3, 4), (7, 5), (16, 20), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lanczos(size: tuple[int, int], dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 7, 9)).astype(dtype)
    ours, theirs = cr.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y = cr.nn.functional.interpolate(ours, size, mode="lanczos", antialias=True)
    z = torch.nn.functional.interpolate(theirs, size, mode="lanczos", antialias=True)
    tol = 1e-5 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=tol, atol=tol)
    (y**3).sum().backward(), (z**3).sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=10 * tol, atol=10 * tol)


@pytest.mark.parametrize("kw", [{}, {"antialias": True, "align_corners": True}])
def test_lanczos_is_refused_where_pytorch_refuses_it(kw: dict[str, bool]) -> None:
    for lib in (cr, torch):
        with pytest.raises(ValueError, match="Lanczos mode"):
            lib.nn.functional.interpolate(lib.ones(1, 1, 4, 4), (2, 2), mode="lanczos", **kw)
