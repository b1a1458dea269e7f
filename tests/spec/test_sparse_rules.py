"""Rules of sparse tensors, by coordinates and by rows: products, masks, conversions, values."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vmap

from .judge import array, judge, require, row, same

INDEX = np.array([[0, 0, 1, 2], [0, 2, 1, 0]])
CROW, COL = np.array([0, 2, 3, 4]), np.array([0, 2, 1, 0])
LAYOUTS = pytest.mark.parametrize("layout", ["coo", "csr"])


def build(m, v, layout):
    """A 3 x 3 tensor of four stored numbers."""
    if layout == "coo":
        return m.sparse_coo_tensor(m.tensor(INDEX), v, (3, 3))
    return m.sparse_csr_tensor(m.tensor(CROW), m.tensor(COL), v, (3, 3))


def names(layout: str) -> str:
    return "sparse_coo_tensor" if layout == "coo" else "sparse_csr_tensor"


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_products(layout: str) -> None:
    need = names(layout)
    b = array(3, 2, seed=1)
    judge(f"{need} sparse.mm", lambda m, v, b: m.sparse.mm(build(m, v, layout), b), array(4), b)
    judge(f"{need} mm", lambda m, v, b: m.mm(build(m, v, layout), b), array(4), b)
    judge(f"{need} mv", lambda m, v, b: m.mv(build(m, v, layout), b), array(4), b[:, 0].copy())
    judge(
        f"{need} addmm",
        lambda m, c, v, b: m.addmm(c, build(m, v, layout), b, beta=0.5, alpha=2),
        array(3, 2),
        array(4),
        b,
    )
    both = lambda m, v, u: m.sparse.mm(build(m, v, layout), build(m, u, layout)).to_dense()
    judge(f"{need} sparse.mm", both, array(4), array(4, seed=1), oracle="value")


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_conversions_and_values(layout: str) -> None:
    need = names(layout)
    judge(need, lambda m, v: build(m, v, layout).to_dense(), array(4))
    x = array(3, 3)
    if layout == "coo":
        judge("Tensor.to_sparse", lambda m, x: x.to_sparse().to_dense() * 2, x)
        judge("Tensor.to_sparse", lambda m, x: x.to_sparse().coalesce().values() ** 2, x, vmap=False)
        # Coordinates that repeat are added up.
        twice = np.array([[0, 0, 1], [1, 1, 2]])
        judge(need, lambda m, v: m.sparse_coo_tensor(m.tensor(twice), v, (2, 3)).to_dense(), array(3))
    else:
        judge("Tensor.to_sparse_csr", lambda m, x: x.to_sparse_csr().to_dense() * 2, x)
        judge("Tensor.to_sparse_csr", lambda m, x: x.to_sparse_csr().values() ** 2, x, vmap=False)


@row("sparse")
@pytest.mark.filterwarnings("ignore:Sparse")
def test_masks() -> None:
    require("sparse_coo_tensor Tensor.sparse_mask")
    mask = lambda m: build(m, m.ones(4, dtype=m.float64), "coo").coalesce()
    judge("Tensor.sparse_mask", lambda m, x: x.sparse_mask(mask(m)).to_dense(), array(3, 3))
    g = grad(lambda x: (x.sparse_mask(mask(cr)).to_dense() ** 2).sum())(cr.tensor(array(3, 3))).numpy()
    want = np.zeros((3, 3))
    want[tuple(INDEX)] = 2 * array(3, 3)[tuple(INDEX)]
    same(g, want, "only what the mask keeps")


@row("sparse")
@pytest.mark.filterwarnings("ignore:Sparse")
def test_sampled_product() -> None:
    require("sparse_csr_tensor sparse.sampled_addmm")

    def f(m, v, a, b):
        return m.sparse.sampled_addmm(build(m, v, "csr"), a, b, beta=0.5, alpha=2.0).to_dense()

    judge("sparse.sampled_addmm", f, array(4), array(3, 2, seed=1), array(2, 3, seed=2))


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_transforms(layout: str) -> None:
    require(names(layout))
    v, b = cr.tensor(array(5, 4)), cr.tensor(array(3, seed=1))
    f = lambda v: build(cr, v, layout) @ b
    same(vmap(f)(v).numpy(), np.stack([f(u).numpy() for u in v.unbind()]), "vmap")
    same(jvp(f, (v[0],), (v[1],))[1].numpy(), f(v[1]).numpy(), "forward mode is linear")
