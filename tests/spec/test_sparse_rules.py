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


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_masks_of_sparse_tensors(layout: str) -> None:
    """A sparse tensor masked by another: matches add up, what the mask has alone is zero, what it lacks gets no gradient."""
    other = np.array([[0, 1, 1, 2], [0, 1, 2, 1]])
    mask = lambda m: m.sparse_coo_tensor(m.tensor(other), m.ones(4, dtype=m.float64), (3, 3)).coalesce()
    if layout == "coo":
        judge(
            "Tensor.sparse_mask",
            lambda m, v: build(m, v, layout).coalesce().sparse_mask(mask(m)).to_dense() ** 2,
            array(4),
        )
        twice = np.array([[0, 0, 1], [1, 1, 2]])
        repeated = lambda v: cr.sparse_coo_tensor(cr.tensor(twice), v, (3, 3)).sparse_mask(
            mask(cr) + build(cr, cr.ones(4, dtype=cr.float64), "coo")
        )
        judge("Tensor.sparse_mask", lambda m, v: repeated(v).to_dense() ** 2, array(3), oracle="")
    g = grad(lambda s: (s.sparse_mask(mask(cr)).to_dense() * 3).sum())(build(cr, cr.tensor(array(4)), layout))
    same(
        g.to_dense().numpy(),
        np.where((np.indices((3, 3)).T[:, :, None] == other.T).all(-1).any(-1).T * on_pattern(), 3.0, 0.0),
        "matches alone",
    )


def on_pattern() -> np.ndarray:
    """Where `build` stores numbers."""
    y = np.zeros((3, 3))
    y[tuple(INDEX)] = 1
    return y


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_gradients_in_the_tensor_itself(layout: str) -> None:
    """values, to_sparse and sampled products pull back to a sparse tensor of the input's layout and pattern, or to a dense one."""
    s = build(cr, cr.tensor(array(4)), layout)
    s = s.coalesce() if layout == "coo" else s
    a, b = cr.tensor(array(3, 2, seed=1)), cr.tensor(array(2, 3, seed=2))
    g = grad(lambda s: (s.values() ** 2).sum())(s)
    assert g.layout is s.layout
    same(g.values().numpy(), 2 * s.values().numpy(), "values")
    x = cr.tensor(array(3, 3))
    convert = lambda x: x.to_sparse() if layout == "coo" else x.to_sparse_csr()
    g = grad(lambda x: (convert(x).to_dense() ** 2).sum())(x)
    assert g.layout is x.layout
    same(g.numpy(), 2 * x.numpy(), "to_sparse")
    if layout == "csr":
        gs, ga, gb = grad(
            lambda s, a, b: (cr.sparse.sampled_addmm(s, a, b, beta=0.5, alpha=2.0).to_dense() * x).sum(), (0, 1, 2)
        )(s, a, b)
        assert gs.layout is s.layout
        same(gs.to_dense().numpy(), 0.5 * x.numpy() * on_pattern(), "the sampled tensor")
        same(ga.numpy(), 2 * (x.numpy() * on_pattern()) @ b.numpy().T, "the left factor")
        same(gb.numpy(), 2 * a.numpy().T @ (x.numpy() * on_pattern()), "the right factor")


@row("sparse")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse")
def test_products_of_sparse_matrices(layout: str) -> None:
    """Gradients of a product of two sparse matrices stand on their own patterns, at places that the product lacks too."""
    u, w = build(cr, cr.tensor(array(4)), layout), build(cr, cr.tensor(array(4, seed=1)), layout)
    c = cr.tensor(array(3, 3, seed=2))
    gu, gw = grad(lambda u, w: ((u @ w).to_dense() * c).sum(), (0, 1))(u, w)
    present = (on_pattern() @ on_pattern() != 0) * c.numpy()
    same(gu.to_dense().numpy(), on_pattern() * (present @ w.to_dense().numpy().T), "left")
    same(gw.to_dense().numpy(), on_pattern() * (u.to_dense().numpy().T @ present), "right")
    both = lambda m, v, u: m.sparse.mm(build(m, v, layout), build(m, u, layout)).to_dense()
    judge("sparse.mm", both, array(4, cx=True), array(4, cx=True, seed=1), oracle="")


@row("sparse.branches")
@LAYOUTS
@pytest.mark.filterwarnings("ignore:Sparse", "ignore:log1p_backward")
def test_sparse_branches(layout: str) -> None:
    need = names(layout)
    positive = np.abs(array(4)) + 0.5
    judge(f"{need} log1p", lambda m, v: m.log1p(build(m, v, layout)).to_dense(), positive, oracle="value")
    judge(
        f"{need} log1p",
        lambda m, v: m.log1p(build(m, v, layout)).to_dense(),
        array(4, cx=True),
        oracle="value" if layout == "coo" else "",
    )
    b = array(3, 2, seed=1, cx=True)
    # PyTorch builds no complex tensors by rows that could be differentiated.
    oracle = "value gradient" if layout == "coo" else "value"
    judge(f"{need} mm", lambda m, v, b: m.mm(build(m, v, layout), b), array(4, cx=True), b, oracle=oracle)
    judge(
        f"{need} mm",
        lambda m, v, b: m.mm(b, build(m, v, layout)),
        array(4, cx=True),
        array(2, 3, cx=True),
        oracle="value",
    )

    def leaf(f) -> cr.Tensor:
        x = build(cr, cr.tensor(positive), layout).requires_grad_()
        f(x).backward()
        return x.grad

    dense = build(cr, cr.tensor(positive), layout).to_dense().numpy()
    g = leaf(lambda x: x.log1p().sum())
    assert g.layout.name == f"sparse_{layout}"
    same(g.to_dense().numpy(), on_pattern() / (1 + dense), "log1p, on the pattern")
    g = leaf(lambda x: x.to_dense(masked_grad=False).log1p().sum())
    same(g.to_dense().numpy(), 1 / (1 + dense), "log1p, dense")
    d = array(3, 2, seed=1)
    g = leaf(lambda x: (x @ cr.tensor(d)).sum())
    same(g.to_dense().numpy(), on_pattern() * d.sum(1), "mm in its sparse operand")
    same(
        grad(lambda d: (build(cr, cr.tensor(positive), layout) @ d).sum())(cr.tensor(d)).numpy(),
        np.repeat(dense.sum(0)[:, None], 2, 1),
        "mm in its dense operand",
    )
