"""grouped_mm against PyTorch and against its pieces."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr

ENDS = np.array([2, 2, 5], np.int32)
SHAPES = {"rows": ((5, 8), (3, 8, 4)), "columns": ((3, 4, 8), (8, 5)), "inner": ((4, 5), (5, 8))}


@pytest.mark.parametrize("which", SHAPES)
def test_each_group_has_its_product(which: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (cr.tensor(rng.standard_normal(s), requires_grad=True) for s in SHAPES[which])
    y = cr.nn.functional.grouped_mm(a, b, offs=cr.tensor(ENDS))
    x, z = a.detach().numpy(), b.detach().numpy()
    cuts = [slice(0, 2), slice(2, 2), slice(2, 5)]
    want = {
        "rows": lambda: np.concatenate([x[c] @ z[g] for g, c in enumerate(cuts)]),
        "columns": lambda: np.concatenate([x[g] @ z[:, c] for g, c in enumerate(cuts)], 1),
        "inner": lambda: np.stack([x[:, c] @ z[c] for c in cuts]),
    }[which]()
    np.testing.assert_allclose(y.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    assert cr.autograd.gradgradcheck(lambda a, b: cr.nn.functional.grouped_mm(a, b, offs=cr.tensor(ENDS)), (a, b))


def test_rows_equal_pytorchs() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype("f4") for s in SHAPES["rows"])
    ours = cr.nn.functional.grouped_mm(cr.tensor(a), cr.tensor(b), offs=cr.tensor(ENDS))
    theirs = torch.nn.functional.grouped_mm(torch.tensor(a), torch.tensor(b), offs=torch.tensor(ENDS))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-5, atol=1e-5)


def test_what_is_in_no_group_is_zero_and_what_does_not_fit_is_refused() -> None:
    f = cr.nn.functional.grouped_mm
    y = f(cr.ones(5, 2), cr.ones(2, 2, 3), offs=cr.tensor([1, 4]))
    assert (y[:4] == 2).all() and (y[4] == 0).all()
    for a, b, offs in (
        (cr.ones(5, 2), cr.ones(2, 2, 3), None),
        (cr.ones(2, 5, 2), cr.ones(2, 2, 3), cr.tensor([1, 4])),
        (cr.ones(5, 2), cr.ones(2, 2, 3), cr.tensor([1, 6])),
        (cr.ones(5, 2), cr.ones(2, 2, 3), cr.tensor([1])),
        (cr.ones(5, 3), cr.ones(2, 2, 3), cr.tensor([1, 4])),
    ):
        with pytest.raises(RuntimeError, match="grouped_mm"):
            f(a, b, offs=offs)
