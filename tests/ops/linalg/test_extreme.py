"""lobpcg against PyTorch and against the whole decomposition."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch

import chainrule as cr


def matrices(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n, n))
    return a @ a.T + n * np.diag(np.arange(n)), b @ b.T + n * np.eye(n)


@pytest.mark.parametrize("largest", [None, True, False])
@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_pairs(largest: bool | None, general: bool, sparse: bool) -> None:
    a, b = matrices(12)
    torch.manual_seed(0)
    mine = [cr.tensor(a), cr.tensor(b) if general else None]
    e, v = cr.lobpcg(mine[0].to_sparse() if sparse else mine[0], 3, mine[1], largest=largest)
    want, _ = torch.lobpcg(
        torch.tensor(a), 3, torch.tensor(b) if general else None, largest=largest, niter=500, tol=1e-9
    )
    np.testing.assert_allclose(e.numpy(), want.numpy(), rtol=1e-6)
    full = scipy.linalg.eigh(a, b if general else None, eigvals_only=True)
    np.testing.assert_allclose(e.numpy(), full[::-1][:3] if largest is not False else full[:3], rtol=1e-10)
    m = b if general else np.eye(12)
    np.testing.assert_allclose(a @ v.numpy(), m @ v.numpy() * e.numpy(), atol=1e-9)
    np.testing.assert_allclose(v.numpy().T @ m @ v.numpy(), np.eye(3), atol=1e-10)


def test_gradients_equal_pytorchs() -> None:
    a, _ = matrices(12)
    torch.manual_seed(0)
    got = []
    for lib, kw in ((cr, {}), (torch, {"niter": 1000, "tol": 1e-12})):
        x = lib.tensor(a, requires_grad=True)
        e, v = lib.lobpcg((x + x.mT) / 2, 2, **kw)
        (e.sum() + (v**4).sum()).backward()
        got.append(x.grad.numpy())
    np.testing.assert_allclose(*got, rtol=1e-5, atol=1e-6)


def test_first_guess_says_how_many_and_wrong_sizes_are_refused() -> None:
    a = cr.tensor(matrices(6)[0])
    assert cr.lobpcg(a, X=cr.ones(6, 2))[0].shape == (2,) and cr.lobpcg(a)[0].shape == (1,)
    for wrong in (lambda: cr.lobpcg(a, 7), lambda: cr.lobpcg(a[:3], 1), lambda: cr.lobpcg(a, 1, tracker=print)):
        with pytest.raises(RuntimeError, match="lobpcg"):
            wrong()
