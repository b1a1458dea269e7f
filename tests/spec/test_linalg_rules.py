"""Rules of linear algebra: products, decompositions, solvers. What depends on a gauge is asked through what does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, vjp

from .judge import array, case, gradient, gradients, judge, mathematics, require, row, same, values

CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])


def h(m, a):
    """The hermitian part."""
    return (a + a.mH) / 2


def spd(m, a):
    """A positive definite matrix made of any."""
    return a @ a.mH + 2 * m.eye(a.shape[-2], dtype=a.dtype)


# -- products ---------------------------------------------------------------------------------------------------------------

PRODUCTS = {
    "mm": (lambda m, a, b: m.mm(a, b), (2, 3), (3, 4)),
    "mm-transposed": (lambda m, a, b: m.mm(a.t(), b.mH), (3, 2), (4, 3)),
    "mm-sliced": (lambda m, a, b: m.mm(a[::2, 1:], b[:, ::2]), (4, 4), (3, 4)),
    "mm-expanded": (lambda m, a, b: m.mm(a.expand(2, 3), b), (1, 3), (3, 2)),
    "mm-empty": (lambda m, a, b: m.mm(a, b), (2, 0), (0, 3)),
    "bmm": (lambda m, a, b: m.bmm(a, b), (2, 2, 3), (2, 3, 2)),
    "bmm-empty": (lambda m, a, b: m.bmm(a, b), (0, 2, 3), (0, 3, 2)),
    "mv": (lambda m, a, b: m.mv(a, b), (2, 3), (3,)),
    "dot": (lambda m, a, b: m.dot(a, b), (3,), (3,)),
    "vdot": (lambda m, a, b: m.vdot(a, b), (3,), (3,)),
    "matmul-11": (lambda m, a, b: m.matmul(a, b), (3,), (3,)),
    "matmul-12": (lambda m, a, b: m.matmul(a, b), (3,), (3, 2)),
    "matmul-21": (lambda m, a, b: m.matmul(a, b), (2, 3), (3,)),
    "matmul-13": (lambda m, a, b: m.matmul(a, b), (3,), (2, 3, 2)),
    "matmul-31": (lambda m, a, b: m.matmul(a, b), (2, 2, 3), (3,)),
    "matmul-broadcast": (lambda m, a, b: m.matmul(a, b), (2, 1, 2, 3), (3, 3, 2)),
    "matmul-self": (lambda m, a, b: m.matmul(a, a) @ b, (3, 3), (3, 2)),
    "linear": (lambda m, a, b: m.nn.functional.linear(a, b), (2, 2, 3), (4, 3)),
    "linear-1": (lambda m, a, b: m.nn.functional.linear(a, b), (3,), (4, 3)),
    "linear-vector": (lambda m, a, b: m.nn.functional.linear(a, b), (2, 3), (3,)),
    "outer": (lambda m, a, b: m.outer(a, b), (3,), (2,)),
}


@row("matmul")
@pytest.mark.parametrize("name", PRODUCTS)
@CX
def test_products(name: str, cx: bool) -> None:
    f, a, b = PRODUCTS[name]
    op = name.split("-")[0]
    judge("F.linear" if op == "linear" else op, f, array(*a, cx=cx), array(*b, cx=cx, seed=1))


ADDED = {
    "addmm": ((2, 4), (2, 3), (3, 4)),
    "addmm-bias": ((4,), (2, 3), (3, 4)),
    "addbmm": ((2, 4), (3, 2, 3), (3, 3, 4)),
    "baddbmm": ((3, 2, 4), (3, 2, 3), (3, 3, 4)),
    "baddbmm-bias": ((1, 2, 1), (3, 2, 3), (3, 3, 4)),
    "addmv": ((2,), (2, 3), (3,)),
    "addmv-scalar": ((), (2, 3), (3,)),
    "addr": ((2, 3), (2,), (3,)),
}


@row("matmul")
@pytest.mark.parametrize("name", ADDED)
@CX
def test_products_with_alpha_and_beta(name: str, cx: bool) -> None:
    op, shapes = name.split("-")[0], ADDED[name]
    xs = [array(*s, cx=cx, seed=k) for k, s in enumerate(shapes)]
    for alpha, beta in ((1, 1), (0.6, -2.0), (0, 1.5), (2, 0)):
        judge(op, lambda m, *a, al=alpha, be=beta: getattr(m, op)(*a, beta=be, alpha=al), *xs)
    if cx:
        judge(op, lambda m, *a: getattr(m, op)(*a, beta=1 + 2j, alpha=0.3 - 1j), *xs)
    # With beta 0 what is added is not read: its NaN does not come through.
    bad = np.full_like(xs[0], np.nan)
    values(lambda m, *a: getattr(m, op)(*a, beta=0, alpha=1), bad, *xs[1:])


# -- decompositions ------------------------------------------------------------------------------------------------------------
# Each entry: the operator, the program, shapes of its arguments. Programs give results that do not depend on signs and phases.


def svd_gauge_free(m, a, full=False):
    u, s, vh = m.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    u, vh = u[..., :, :k], vh[..., :k, :]
    return u * s.unsqueeze(-2) @ vh, s, u.abs() if full else (u * (s.unsqueeze(-2) ** 2)) @ u.mH


def eig_gauge_free(m, a):
    w, v = m.linalg.eig(a)
    order = m.argsort(w.real.detach() + 3 * w.imag.detach())
    return w[order], (v * w.exp().unsqueeze(-2)) @ m.linalg.inv(v), v.abs()[:, order]


def qr_pair(mode):
    return lambda m, a: m.linalg.qr(a, mode=mode)


def tri(m, a):
    """A lower triangular matrix with a positive diagonal, as a Cholesky factor has it."""
    return m.tril(a, -1) + m.diag_embed(m.diagonal(a, 0, -2, -1).abs() + 1)


DECOMPOSITIONS: dict[str, list[tuple]] = {
    "cholesky": [
        ("linalg.cholesky", lambda m, a: m.linalg.cholesky(spd(m, a)), (3, 3)),
        ("linalg.cholesky", lambda m, a: m.linalg.cholesky(spd(m, a), upper=True), (2, 3, 3)),
        ("cholesky_inverse", lambda m, a: m.cholesky_inverse(tri(m, a)), (3, 3)),
        ("cholesky_inverse", lambda m, a: m.cholesky_inverse(tri(m, a).mH, upper=True), (2, 3, 3)),
        ("cholesky_solve", lambda m, b, a: m.cholesky_solve(b, tri(m, a)), (3, 2), (3, 3)),
        ("cholesky_solve", lambda m, b, a: m.cholesky_solve(b, tri(m, a).mH, upper=True), (2, 3, 1), (2, 3, 3)),
        ("linalg.cholesky", lambda m, a: m.linalg.cholesky(spd(m, a)), (0, 3, 3)),
    ],
    "pinv": [
        ("linalg.pinv", lambda m, a: m.linalg.pinv(a), (3, 3)),
        ("linalg.pinv", lambda m, a: m.linalg.pinv(a), (2, 4)),
        ("linalg.pinv", lambda m, a: m.linalg.pinv(a), (4, 2)),
        ("linalg.pinv", lambda m, a: m.linalg.pinv(a), (2, 3, 2)),
        ("linalg.pinv", lambda m, a: m.linalg.pinv(h(m, a), hermitian=True), (3, 3)),
    ],
    "svd": [
        ("linalg.svd", lambda m, a: svd_gauge_free(m, a), (3, 3)),
        ("linalg.svd", lambda m, a: svd_gauge_free(m, a), (2, 4)),
        ("linalg.svd", lambda m, a: svd_gauge_free(m, a), (4, 2)),
        ("linalg.svd", lambda m, a: svd_gauge_free(m, a), (2, 2, 3)),
        ("linalg.svdvals", lambda m, a: m.linalg.svdvals(a), (3, 2)),
        ("linalg.svdvals", lambda m, a: m.linalg.svdvals(a), (2, 2, 3)),
    ],
    "eig": [
        ("linalg.eigh", lambda m, a: m.linalg.eigh(h(m, a))[0], (3, 3)),
        (
            "linalg.eigh",
            lambda m, a: (lambda w, v: (v * w.exp().unsqueeze(-2)) @ v.mH)(*m.linalg.eigh(h(m, a))),
            (3, 3),
        ),
        ("linalg.eigh", lambda m, a: m.linalg.eigh(h(m, a), UPLO="U")[1].abs(), (2, 3, 3)),
        ("linalg.eigvalsh", lambda m, a: m.linalg.eigvalsh(h(m, a)), (2, 3, 3)),
        ("linalg.eigvals", lambda m, a: (m.linalg.eigvals(a) ** 2).sum(-1), (3, 3)),
        ("linalg.eig linalg.inv", eig_gauge_free, (3, 3)),
    ],
    "lstsq": [
        ("linalg.lstsq", lambda m, a, b: m.linalg.lstsq(a, b)[0], (4, 2), (4, 3)),
        ("linalg.lstsq", lambda m, a, b: m.linalg.lstsq(a, b)[0], (3, 3), (3, 1)),
        ("linalg.lstsq", lambda m, a, b: m.linalg.lstsq(a, b)[0], (2, 3, 2), (2, 3, 2)),
    ],
    "qr": [
        ("linalg.qr", qr_pair("reduced"), (3, 3)),
        ("linalg.qr", qr_pair("reduced"), (4, 2)),
        ("linalg.qr", qr_pair("reduced"), (2, 4)),
        ("linalg.qr", qr_pair("complete"), (2, 4)),
        ("linalg.qr", qr_pair("complete"), (3, 3)),
        ("linalg.qr", qr_pair("reduced"), (2, 3, 2)),
    ],
    "matrix_exp": [
        ("linalg.matrix_exp", lambda m, a: m.linalg.matrix_exp(a), (3, 3)),
        ("linalg.matrix_exp", lambda m, a: m.linalg.matrix_exp(a / 5), (2, 2, 2)),
        ("linalg.matrix_exp", lambda m, a: m.linalg.matrix_exp(4 * a), (2, 2)),
        ("linalg.matrix_exp", lambda m, a: m.linalg.matrix_exp(a), (1, 1)),
    ],
    "det": [
        ("linalg.det", lambda m, a: m.linalg.det(a), (3, 3)),
        ("linalg.det", lambda m, a: m.linalg.det(a), (2, 2, 2)),
        ("linalg.det", lambda m, a: m.linalg.det(a), (1, 1)),
        ("linalg.det", lambda m, a: m.linalg.det(a), (0, 0)),
        ("linalg.slogdet", lambda m, a: m.linalg.slogdet(a), (3, 3)),
        ("linalg.slogdet", lambda m, a: m.linalg.slogdet(a)[1], (2, 2, 2)),
        ("logdet", lambda m, a: m.logdet(spd(m, a)), (3, 3)),
    ],
    "triangular": [
        (
            "triangular_solve",
            lambda m, b, a, u=u, t=t, d=d: m.triangular_solve(b, tri(m, a).mT if u else tri(m, a), u, t, d)[0],
            (3, 2),
            (3, 3),
        )
        for u, t, d in itertools.product((False, True), repeat=3)
    ]
    + [
        (
            "linalg.solve_triangular",
            lambda m, a, b, u=u, left=left, d=d: m.linalg.solve_triangular(
                tri(m, a).mT if u else tri(m, a), b if left else b.mT, upper=u, left=left, unitriangular=d
            ),
            (2, 3, 3),
            (2, 3, 2),
        )
        for u, left, d in itertools.product((False, True), repeat=3)
    ],
    "solve": [
        ("linalg.solve", lambda m, a, b: m.linalg.solve(a, b), (3, 3), (3, 2)),
        ("linalg.solve", lambda m, a, b: m.linalg.solve(a, b), (3, 3), (3,)),
        ("linalg.solve", lambda m, a, b: m.linalg.solve(a, b), (2, 3, 3), (2, 3)),
        ("linalg.solve", lambda m, a, b: m.linalg.solve(a, b), (2, 1, 3, 3), (2, 3, 2)),
        ("linalg.solve", lambda m, a, b: m.linalg.solve(a, b, left=False), (3, 3), (2, 3)),
        ("linalg.inv", lambda m, a: m.linalg.inv(a), (3, 3)),
        ("linalg.inv", lambda m, a: m.linalg.inv(a), (2, 2, 2)),
    ]
    + [
        (
            "linalg.lu_solve linalg.lu_factor",
            lambda m, a, b, left=left, adj=adj: m.linalg.lu_solve(
                *m.linalg.lu_factor(a), b if left else b.mT, left=left, adjoint=adj
            ),
            (3, 3),
            (3, 2),
        )
        for left, adj in itertools.product((False, True), repeat=2)
    ]
    + [("lu_solve linalg.lu_factor", lambda m, a, b: m.lu_solve(b, *m.linalg.lu_factor(a)), (2, 3, 3), (2, 3, 1))],
    "lu": [
        ("linalg.lu", lambda m, a: m.linalg.lu(a)[1:], (3, 3)),
        ("linalg.lu", lambda m, a: m.linalg.lu(a)[1:], (2, 4)),
        ("linalg.lu", lambda m, a: m.linalg.lu(a)[1:], (4, 2)),
        ("linalg.lu", lambda m, a: m.linalg.lu(a)[1:], (2, 3, 2)),
        ("linalg.lu_factor", lambda m, a: m.linalg.lu_factor(a)[0], (3, 3)),
        ("linalg.lu_factor", lambda m, a: m.linalg.lu_factor(a)[0], (2, 4)),
        ("linalg.lu_factor", lambda m, a: m.linalg.lu_factor(a)[0], (4, 2)),
        ("lu_unpack linalg.lu_factor", lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a))[1:], (3, 3)),
        ("lu_unpack linalg.lu_factor", lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a))[1:], (2, 4)),
        ("lu_unpack linalg.lu_factor", lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a))[1:], (4, 2)),
    ],
    "householder": [
        ("linalg.householder_product", lambda m, a, t: m.linalg.householder_product(a, t), (3, 3), (3,)),
        ("linalg.householder_product", lambda m, a, t: m.linalg.householder_product(a, t), (2, 4, 3), (2, 3)),
        ("linalg.householder_product", lambda m, a, t: m.linalg.householder_product(a, t), (4, 3), (2,)),
    ]
    + [
        (
            "ormqr",
            lambda m, a, t, c, left=left, tr=tr: m.ormqr(a, t, c if left else c.mT, left, tr),
            (4, 3),
            (3,),
            (4, 2),
        )
        for left, tr in itertools.product((False, True), repeat=2)
    ],
}
TABLE = [(r, k) for r, entries in DECOMPOSITIONS.items() for k in range(len(entries))]


def judge_entry(name: str, k: int, cx: bool) -> None:
    op, f, *shapes = DECOMPOSITIONS[name][k]
    require(op)
    judge(op, f, *[array(*s, cx=cx, seed=i) for i, s in enumerate(shapes)])


def entries(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "k", range(len(DECOMPOSITIONS[name])), ids=[f"{e[0].split()[0]}{e[2]}" for e in DECOMPOSITIONS[name]]
    )


@row("cholesky")
@entries("cholesky")
@CX
def test_cholesky(k: int, cx: bool) -> None:
    judge_entry("cholesky", k, cx)


@row("cholesky")
def test_cholesky_refuses_what_is_not_positive_definite() -> None:
    require("linalg.cholesky")
    with pytest.raises(RuntimeError, match="positive"):
        cr.linalg.cholesky(cr.tensor([[1.0, 2.0], [2.0, 1.0]]))


@row("pinv")
@entries("pinv")
@CX
def test_pinv(k: int, cx: bool) -> None:
    judge_entry("pinv", k, cx)


@row("svd")
@entries("svd")
@CX
def test_svd(k: int, cx: bool) -> None:
    judge_entry("svd", k, cx)


@row("svd")
def test_svd_full_matrices_and_gauge() -> None:
    require("linalg.svd")
    for shape in ((3, 3), (2, 4), (4, 2)):
        for a in (array(*shape), array(*shape, cx=True)):
            values(lambda m, a: tuple(x.abs() for x in m.linalg.svd(a, full_matrices=False)), a)
            # The singular values do not depend on the gauge, with full matrices either.
            judge("linalg.svd", lambda m, a: m.linalg.svd(a)[1], a)
    z = cr.tensor(array(3, 3, cx=True))
    with pytest.raises(RuntimeError, match=r"gauge|phase"):
        grad(lambda a: cr.linalg.svd(a)[0].real.sum())(z)
    # Equal singular values: exact where the result does not depend on the choice of vectors.
    eye = cr.tensor(np.eye(3))
    g = grad(lambda a: (cr.linalg.svd(a)[1] ** 2).sum())(eye).numpy()
    same(g, 2 * np.eye(3), "the squared norm of equal singular values")
    same(grad(lambda a: cr.linalg.svdvals(a).sum())(eye).numpy(), np.eye(3), "the nuclear norm")


@row("eig")
@entries("eig")
@CX
def test_eig(k: int, cx: bool) -> None:
    judge_entry("eig", k, cx)


@row("eig")
def test_eig_gauge() -> None:
    require("linalg.eig linalg.eigh")
    z = cr.tensor(array(3, 3, cx=True))
    with pytest.raises(RuntimeError, match=r"gauge|phase"):
        grad(lambda a: cr.linalg.eigh((a + a.mH) / 2)[1].real.sum())(z)
    with pytest.raises(RuntimeError, match=r"gauge|phase"):
        grad(lambda a: cr.linalg.eig(a)[1].real.sum())(z)
    eye = cr.tensor(np.eye(3))
    same(grad(lambda a: (cr.linalg.eigh(a)[0] ** 3).sum())(eye).numpy(), 3 * np.eye(3), "equal eigenvalues")
    same(grad(lambda a: cr.linalg.eigvalsh(a).sum())(eye).numpy(), np.eye(3), "the trace")


@row("lstsq")
@entries("lstsq")
@CX
def test_lstsq(k: int, cx: bool) -> None:
    judge_entry("lstsq", k, cx)


@row("lstsq")
def test_lstsq_of_wide_matrices_is_the_shortest_solution() -> None:
    require("linalg.lstsq linalg.pinv")
    a, b = array(2, 4), array(2, 3, seed=1)
    f = lambda m, a, b: m.linalg.lstsq(a, b, driver="gelsd")[0]
    values(f, a, b)
    ts = [cr.tensor(x) for x in (a, b)]
    for k in (0, 1):
        got = grad(lambda a, b: (f(cr, a, b) ** 2).sum(), argnums=k)(*ts)
        want = grad(lambda a, b: ((cr.linalg.pinv(a) @ b) ** 2).sum(), argnums=k)(*ts)
        same(got.numpy(), want.numpy(), "gradient")
    mathematics(case("linalg.lstsq", f, a, b))


@row("qr")
@entries("qr")
@CX
def test_qr(k: int, cx: bool) -> None:
    judge_entry("qr", k, cx)


@row("qr")
def test_qr_modes_that_have_no_derivative() -> None:
    require("linalg.qr")
    a = cr.tensor(array(4, 2))
    values(lambda m, a: m.linalg.qr(a, mode="r")[1], a.numpy())
    with pytest.raises(RuntimeError, match="mode"):
        grad(lambda a: cr.linalg.qr(a, mode="r")[1].sum())(a)
    with pytest.raises(RuntimeError, match="complete"):
        grad(lambda a: cr.linalg.qr(a, mode="complete")[0].sum())(a)


@row("matrix_exp")
@entries("matrix_exp")
@CX
def test_matrix_exp(k: int, cx: bool) -> None:
    judge_entry("matrix_exp", k, cx)


@row("det")
@entries("det")
@CX
def test_det(k: int, cx: bool) -> None:
    judge_entry("det", k, cx)


SINGULAR = {
    "rank 2 of 3": np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]]),
    "rank 1 of 3": np.outer([1.0, 2.0, -1.0], [1.0, 0.5, 3.0]),
    "zero": np.zeros((3, 3)),
    "rank 1 of 2": np.array([[1.0, 2.0], [2.0, 4.0]]),
    "a batch": np.array([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [3.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]]),
}


@row("det")
@pytest.mark.parametrize("name", SINGULAR)
@CX
def test_det_of_singular_matrices(name: str, cx: bool) -> None:
    # The determinant is a polynomial: it has every derivative everywhere.
    require("linalg.det")
    a = SINGULAR[name] * (1 + 1j if cx else 1)
    f = lambda m, a: m.linalg.det(a)
    values(f, a)
    mathematics(case("linalg.det", f, a))
    minors = np.linalg.det(np.delete(np.delete(a, 0, -1), 0, -2))
    same(gradient(f, a)[0][..., 0, 0], np.asarray(np.conj(minors)), "the cofactor")


@row("triangular")
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@entries("triangular")
@CX
def test_triangular(k: int, cx: bool) -> None:
    judge_entry("triangular", k, cx)


@row("solve")
@pytest.mark.filterwarnings("ignore:torch.lu_solve is deprecated")
@entries("solve")
@CX
def test_solve(k: int, cx: bool) -> None:
    judge_entry("solve", k, cx)


@row("lu")
@entries("lu")
@CX
def test_lu(k: int, cx: bool) -> None:
    judge_entry("lu", k, cx)


@row("lu")
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2)])
def test_lu_without_pivots(shape: tuple[int, int]) -> None:
    require("linalg.lu linalg.lu_factor")
    a = array(*shape) + 4 * np.eye(*shape)
    f = lambda m, a: m.linalg.lu(a, pivot=False)[1:]
    # PyTorch has no pivot=False on a CPU: l @ u is the matrix, l is unit lower and u upper triangular.
    l, u = (x.numpy() for x in f(cr, cr.tensor(a)))
    same(l @ u, a, "l u = a")
    assert np.allclose(np.tril(l), l) and np.allclose(np.triu(u), u) and np.allclose(np.diagonal(l), 1)
    mathematics(case("linalg.lu", f, a))
    mathematics(case("linalg.lu_factor", lambda m, a: m.linalg.lu_factor(a, pivot=False)[0], a))


@row("householder")
@entries("householder")
@CX
def test_householder(k: int, cx: bool) -> None:
    judge_entry("householder", k, cx)


@row("solve")
def test_solve_of_singular_matrices_raises() -> None:
    require("linalg.solve")
    with pytest.raises(RuntimeError, match="singular"):
        cr.linalg.solve(cr.tensor([[1.0, 2.0], [2.0, 4.0]]), cr.tensor([1.0, 2.0]))
    y, pull = vjp(cr.linalg.solve, cr.tensor(array(3, 3)), cr.tensor(array(3, seed=1)))
    assert [tuple(g.shape) for g in pull(y)] == [(3, 3), (3,)]
    gradients(lambda m, a, b: m.linalg.solve(a, b), array(3, 3), array(3, seed=1))
