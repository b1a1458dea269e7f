"""Constructors, layouts, conversions and what sparse tensors say of themselves, beside PyTorch; printing, saving, scipy."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import chainrule as cr

A = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0], [4.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 6.0]])
BLOCKS = {"bsr": (2, 2), "bsc": (2, 2)}
LAYOUTS = ["coo", "csr", "csc", "bsr", "bsc"]
pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*invariant")


def to(x: Any, layout: str) -> Any:
    f = getattr(x, "to_sparse" if layout == "coo" else f"to_sparse_{layout}")
    return f(BLOCKS[layout]) if layout in BLOCKS else f()


def array(y: Any) -> np.ndarray:
    if isinstance(y, bool | int | tuple):
        return np.asarray(y)
    return (y.to_dense() if "sparse" in str(y.layout) else y).detach().numpy()


def same(ours: Any, theirs: Any) -> None:
    a, b = array(ours), array(theirs)
    assert a.shape == b.shape and a.dtype == b.dtype
    np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)
    if hasattr(ours, "layout"):
        assert str(ours.layout).split(".")[1] == str(theirs.layout).split(".")[1]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_indices_and_values_are_pytorchs(layout: str) -> None:
    s, t = to(cr.tensor(A), layout), to(torch.tensor(A), layout)
    names = {"coo": ["indices"], "c": ["ccol_indices", "row_indices"], "r": ["crow_indices", "col_indices"]}[
        "coo" if layout == "coo" else layout[-1]
    ]
    for n in (*names, "values", "sparse_dim", "dense_dim", "_nnz"):
        same(getattr(s, n)(), getattr(t, n)())
    assert (s.is_sparse, s.is_sparse_csr) == (t.is_sparse, t.is_sparse_csr)
    make = getattr(cr, f"sparse_{layout}_tensor")
    parts = [getattr(s, n)() for n in names]
    same(make(*parts, s.values(), A.shape), t)
    same(make(*parts, s.values()), t)
    if layout != "coo":
        same(cr.sparse_compressed_tensor(*parts, s.values(), A.shape, layout=s.layout), t)
    for other in LAYOUTS:
        np.testing.assert_array_equal(to(s, other).to_dense().numpy(), A)


UNARY = "sin tan asin atan sinh tanh asinh atanh expm1 log1p sqrt abs neg sgn sign floor ceil round trunc erf deg2rad relu isnan frac".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_that_keep_zero(name: str) -> None:
    x = A / 7
    same(getattr(cr.tensor(x).to_sparse(), name)(), getattr(torch.tensor(x).to_sparse(), name)())
    csr = getattr(cr.tensor(x).to_sparse_csr(), name)()
    assert csr.is_sparse_csr
    np.testing.assert_array_equal(csr.to_dense().numpy(), array(getattr(cr.tensor(x).to_sparse(), name)()))


@pytest.mark.parametrize("name", ["cos", "exp", "digamma", "sigmoid", "cosh"])
def test_functions_that_fill_zeros_are_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name}: does not map 0 to 0.*to_dense"):
        getattr(cr.tensor(A).to_sparse(), name)()


def test_repeated_coordinates() -> None:
    def run(m: Any) -> list[Any]:
        s = m.sparse_coo_tensor(m.tensor([[1, 0, 1], [2, 0, 2]]), m.tensor([3.0, 1.0, 4.0]), (2, 3))
        c = s.coalesce()
        return [
            s.is_coalesced(),
            c.is_coalesced(),
            c.indices(),
            c.values(),
            s._values(),
            s.sin(),
            s * s,
            s.abs(),
            s.sum(1),
            s + s,
            s.t(),
        ]

    for a, b in zip(run(cr), run(torch), strict=True):
        same(a, b)
    with pytest.raises(RuntimeError, match=r"uncoalesced tensor, please call \.coalesce"):
        cr.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).values()


def test_hybrid_and_batched() -> None:
    x = np.stack([A, 2 * A, 3 * A], -1)
    for k in (0, 1, 2, 3):
        same(cr.tensor(x).to_sparse(2).unsqueeze(k), torch.tensor(x).to_sparse(2).unsqueeze(k))
    for a, b in (
        (cr.tensor(x).to_sparse(2), torch.tensor(x).to_sparse(2)),
        (cr.tensor(x).to_sparse_csr(dense_dim=1), torch.tensor(x).to_sparse_csr(dense_dim=1)),
    ):
        same(a, b)
        same(a.values(), b.values())
        assert (a.sparse_dim(), a.dense_dim()) == (b.sparse_dim(), b.dense_dim()) == (2, 1)
    y = np.stack([A, 2 * A])
    s, t = cr.tensor(y).to_sparse_csr(), torch.tensor(y).to_sparse_csr()
    same(s.crow_indices(), t.crow_indices())
    same(s.values(), t.values())
    d = np.arange(24.0).reshape(2, 4, 3)
    np.testing.assert_allclose((s @ cr.tensor(d)).numpy(), y @ d)
    same(cr.bmm(cr.tensor(y).to_sparse(), cr.tensor(d)), torch.bmm(torch.tensor(y).to_sparse(), torch.tensor(d)))
    # Matrices of a batch with different numbers of entries: explicit zeros fill up.
    uneven = np.stack([A, np.eye(4)])
    np.testing.assert_array_equal(cr.tensor(uneven).to_sparse_csr().to_dense().numpy(), uneven)


SHAPES: dict[str, Any] = {
    "cat": lambda m, s: m.cat([s, s * 2], 1),
    "stack": lambda m, s: m.stack([s, s]),
    "t": lambda m, s: s.t(),
    "unsqueeze": lambda m, s: s.unsqueeze(0),
    "select": lambda m, s: s[2],
    "one": lambda m, s: s[2, 1],
    "index_select": lambda m, s: s.index_select(1, m.tensor([2, 0, 0])),
    "sum": lambda m, s: s.sum(),
    "sum0": lambda m, s: m.sparse.sum(s, 0),
    "softmax": lambda m, s: m.sparse.softmax(s, 1),
    "log_softmax": lambda m, s: m.sparse.log_softmax(s, 0),
    "norm": lambda m, s: s.norm(),
    "zeros_like": lambda m, s: m.zeros_like(s),
    "to": lambda m, s: s.to(m.float32),
    "mul_": lambda m, s: s.clone().mul_(3),
    "resize": lambda m, s: s.clone().sparse_resize_((6, 6), 2, 0),
    "clear": lambda m, s: s.clone().sparse_resize_and_clear_((2, 2), 2, 0),
    "mask": lambda m, s: m.tensor(A + 1).sparse_mask(s),
    "masked_sum": lambda m, s: m.masked.sum(s, 0),
    "masked_amax": lambda m, s: m.masked.amax(s, 1, mask=s != 0 if m is cr else torch.sparse_coo_tensor(s.indices(), s.values() != 0, s.shape)),
    "addmm": lambda m, s: m.addmm(m.tensor(A), s, m.tensor(A), beta=2, alpha=3),
    "sparse_addmm": lambda m, s: m.sparse.addmm(m.tensor(A), s, m.tensor(A), beta=2, alpha=3),
    "hspmm": lambda m, s: m.hspmm(s, m.tensor(A)),
    "smm": lambda m, s: m.smm(s, m.tensor(A)),
    "sspaddmm": lambda m, s: m.sspaddmm(s, s, m.tensor(A), beta=2, alpha=3),
    "spdiags": lambda m, s: m.sparse.spdiags(m.tensor(A), m.tensor([0, -2, 1, 3]), (4, 5)),
    "mv": lambda m, s: m.mv(s, m.tensor(A[0])),
    "dense_times": lambda m, s: m.tensor(A) @ s,
    "plus_dense": lambda m, s: m.tensor(A) + s,
    "spsp": lambda m, s: m.sparse.mm(s, s),
    "divided_by_0": lambda m, s: s / 0,
    "times_infinity": lambda m, s: s * float("inf"),
    "floor_divided": lambda m, s: s // m.tensor(2.0, dtype=m.float64),
    "trunc_divided": lambda m, s: m.div(s, m.tensor(-2.0, dtype=m.float64), rounding_mode="trunc"),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_operators_by_coordinates_are_pytorchs(name: str) -> None:
    f = SHAPES[name]
    same(f(cr, cr.tensor(A).to_sparse()), f(torch, torch.tensor(A).to_sparse()))


def test_what_pytorch_lacks() -> None:
    s = cr.tensor(A).to_sparse()
    np.testing.assert_array_equal(s.reshape(2, 8).to_dense().numpy(), A.reshape(2, 8))
    np.testing.assert_array_equal(s.narrow(1, 1, 2).to_dense().numpy(), A[:, 1:3])
    np.testing.assert_array_equal(s[1:, ::2].to_dense().numpy(), A[1:, ::2])
    np.testing.assert_array_equal((s > 2).to_dense().numpy(), A > 2)
    np.testing.assert_array_equal((s == s).numpy(), np.ones((4, 4), bool))
    np.testing.assert_array_equal((s / cr.tensor(A + 1)).to_dense().numpy(), A / (A + 1))
    np.testing.assert_array_equal(cr.remainder(s, cr.tensor(A + 1.5)).to_dense().numpy(), A % (A + 1.5))
    assert cr.allclose(s, s.to_sparse_csr().to_sparse())
    copy = cr.tensor(s, dtype=cr.float32, requires_grad=True)
    assert copy.is_sparse and copy.is_leaf and copy.values() is not s.values()
    same(copy.detach(), torch.tensor(A).to_sparse().float())
    with pytest.raises(NotImplementedError, match="div"):
        cr.tensor(A) / s
    with pytest.raises(NotImplementedError, match="cumsum: not available for sparse tensors"):
        s.cumsum(0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cr.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)), "index 5 in dim 0 of size 3"),
        (lambda: cr.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), "negative index -1"),
        (lambda: cr.sparse_coo_tensor([[0, 1]], [1.0], (3,)), "2 coordinates, but values of shape"),
        (lambda: cr.sparse_coo_tensor([[1, 0]], [1.0, 2.0], (3,), is_coalesced=True), "not in order"),
        (lambda: cr.sparse_csr_tensor([0, 1], [7], [1.0], (1, 3)), "col_indices must lie in"),
        (lambda: cr.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 3)), "crow_indices must rise from 0 to 1"),
        (lambda: cr.sparse_csr_tensor([0, 1], [0], [1.0], (2, 3)), "crow_indices has 2 entries.*expected 3"),
        (lambda: cr.tensor(A).to_sparse_bsr((3, 2)), "do not tile"),
        (lambda: cr.tensor(A).to_sparse() @ cr.ones(3, 3, dtype=cr.float64), "cannot be multiplied"),
        (lambda: cr.sparse.spsolve(cr.tensor(A * 0).to_sparse(), cr.ones(4, dtype=cr.float64)), "singular"),
        (lambda: cr.ones(3).indices(), "indices expected a sparse tensor"),
        (lambda: cr.tensor(A).to_sparse_csr().indices(), "expected the layout sparse_coo, got sparse_csr"),
        (lambda: cr.tensor(A).to_sparse().numpy(), "to_dense"),
        (lambda: cr.tensor(A).to_sparse().fill_(3), "only with 0"),
    ],
)  # fmt: skip
def test_errors_say_what_is_wrong(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


def test_writes() -> None:
    s = cr.tensor(A).to_sparse()
    s.values().mul_(2)
    s.values()[:1].add_(1)
    np.testing.assert_array_equal(s.to_dense().numpy(), 2 * A + np.eye(4)[:, :1] * np.eye(4)[:1])
    t = s.t()
    t.zero_()
    assert s.sum().item() == 2 * A.sum() + 1
    # What a tape saved is never reached.
    x = cr.ones(4, dtype=cr.float64).requires_grad_()
    y = (cr.tensor(A).to_sparse() @ x).sum()
    s = cr.tensor(A).to_sparse()
    y = (s @ x).sum()
    s.values().mul_(100)
    y.backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), A.sum(0))
    w = cr.tensor(2.0, dtype=cr.float64).requires_grad_()
    s = cr.tensor(A).to_sparse()
    s.values().mul_(w)
    s.sum().backward()
    assert w.grad is not None and w.grad.item() == A.sum()


def test_index_data_cannot_be_changed_afterwards() -> None:
    """Compiled loops trust what was checked: writes to tensors of indices go elsewhere."""
    i = cr.tensor([[0, 1], [1, 0]])
    s = cr.sparse_coo_tensor(i, [2.0, 3.0], (2, 2)).coalesce()
    i.add_(100)
    shown = s.indices()
    shown.add_(100)
    assert shown.tolist() == [[100, 101], [101, 100]]
    c = s.to_sparse_csr()
    c.col_indices().mul_(1000)
    assert (s @ cr.ones(2)).tolist() == (c @ cr.ones(2)).tolist() == [2.0, 3.0]


def test_printing() -> None:
    assert repr(cr.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))) == (
        "tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([2., 3.]),\n"
        "       size=(2, 2), nnz=2, layout=chainrule.sparse_coo)"
    )
    text = repr(cr.tensor(A).to_sparse_csr().requires_grad_())
    assert (
        "crow_indices=tensor([0, 2, 3, 5, 6])" in text
        and "requires_grad=True" in text
        and "dtype=chainrule.float64" in text
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_saving_and_copying(layout: str) -> None:
    s = to(cr.tensor(A), layout).requires_grad_()
    for t in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert t.layout is s.layout and t.requires_grad
        np.testing.assert_array_equal(t.detach().to_dense().numpy(), A)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_scipy_without_a_copy(layout: str) -> None:
    m = scipy.sparse.coo_array(A).asformat(layout)
    s = cr.sparse.from_scipy(m)
    np.testing.assert_array_equal(s.to_dense().numpy(), A)
    back = cr.sparse.to_scipy(s)
    assert back.format == layout and np.shares_memory(back.data, m.data)
    if layout != "coo":
        assert np.shares_memory(back.indices, m.indices)
    np.testing.assert_array_equal((s @ cr.tensor(A)).numpy(), A @ A)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "int64", "bool"])
def test_types(dtype: str) -> None:
    a = cr.tensor(np.round(A)).to(getattr(cr, dtype))
    s = a.to_sparse_csr()
    if dtype != "bool":
        y = s @ a
        assert y.dtype is a.dtype
        np.testing.assert_allclose(y.to(cr.complex128).numpy(), A @ A)
        np.testing.assert_allclose((s + s).to_dense().to(cr.complex128).numpy(), 2 * A)
    np.testing.assert_array_equal(
        s.to_dense().to(cr.float64).numpy() if dtype != "complex64" else s.to_dense().real.numpy(),
        (A != 0) if dtype == "bool" else A,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_and_scipy_agree(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without entries, many columns, repeated coordinates; one and many examples; with and without compiled loops."""
    from chainrule.kernels import sparse as kernels
    from chainrule.kernels.calls import NotSupported

    rng = np.random.default_rng(0)
    ran: list[str] = []
    for name in ("rows_times", "sampled"):
        inner = getattr(kernels, name)
        monkeypatch.setattr(kernels, name, lambda *a, inner=inner, name=name: (ran.append(name), inner(*a))[1])
    for n, m, k in ((50, 40, 64), (7, 9, 1), (30, 20, 131), (5, 5, 16)):
        dense = (rng.standard_normal((n, m)) * (rng.random((n, m)) < 0.2)).astype(dtype)
        x, y = rng.standard_normal((3, m, k)).astype(dtype), rng.standard_normal((3, n, k)).astype(dtype)
        for s in (cr.tensor(dense).to_sparse_csr(), cr.tensor(dense).to_sparse_csc(), cr.tensor(dense).to_sparse()):
            tol = {"rtol": 0, "atol": 2e-5 if dtype == np.float32 else 1e-12}
            f = lambda x, s=s: s @ x
            np.testing.assert_allclose(cr.vmap(f)(cr.tensor(x)).numpy(), dense @ x, **tol)
            np.testing.assert_allclose((s @ cr.tensor(x[0])).numpy(), dense @ x[0], **tol)
            g = cr.vmap(cr.func.grad(lambda s, x, y: ((s @ x) * y).sum()), (None, 0, 0))(s, cr.tensor(x), cr.tensor(y))
            np.testing.assert_allclose(g.to_dense().numpy(), (dense != 0) * (y @ x.transpose(0, 2, 1)), **tol)
            both = cr.vmap(lambda v, x, s=s: cr.sparse.mm(s * v, x))(
                cr.tensor(np.array([1, 2, 3], dtype)), cr.tensor(x)
            )
            np.testing.assert_allclose(both.numpy(), np.array([1, 2, 3], dtype)[:, None, None] * (dense @ x), **tol)
    assert set(ran) == {"rows_times", "sampled"}

    def none(*a: Any) -> Any:
        raise NotSupported

    s, x = cr.tensor(dense).to_sparse(), cr.tensor(x)
    want = cr.vmap(lambda x: s @ x)(x).numpy()
    monkeypatch.setattr(kernels, "rows_times", none)
    np.testing.assert_allclose(cr.vmap(lambda x: s @ x)(x).numpy(), want, rtol=0, atol=2e-5)


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "bsc"])
def test_what_is_saved_is_read_without_trust(layout: str) -> None:
    import io

    x = cr.tensor([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.0]], dtype=cr.float64)
    kw = {"blocksize": (1, 2)} if layout.startswith("bs") else {}
    s = x.to_sparse(layout=getattr(cr, f"sparse_{layout}"), **kw)
    file = io.BytesIO()
    cr.save({"s": s}, file)
    got = cr.load(io.BytesIO(file.getvalue()))["s"]
    assert got.layout == s.layout and (got.to_dense() == x).all()
    # Indices that point elsewhere are refused: compiled loops would follow them.
    values = s._value
    _, (v, name, shape, index, *rest) = values.__reduce__()
    bad = (*index[:-1], index[-1] + 7)
    rebuild = values.__reduce__()[0]
    with pytest.raises(RuntimeError, match=r"inconsistent|must lie|must rise"):
        rebuild(v, name, shape, bad, *rest)
    assert pickle.loads(pickle.dumps(values)).pattern.nnz == values.pattern.nnz


ZEROS: dict[str, Any] = {
    "dense": lambda s, x: (s @ x).sin().sum(),
    "from the left": lambda s, x: (x.mT @ s.t()).sin().sum(),
    "sparse": lambda s, x: (s @ s.t()).to_dense().pow(2).sum(),
    "vector": lambda s, x: (s @ x.sum(1)).pow(2).sum(),
    "sums": lambda s, x: (s + s * s).sum(),
    "joined": lambda s, x: cr.cat([s, s]).to_dense().pow(2).sum(),
}


@pytest.mark.parametrize("name", ZEROS)
@pytest.mark.parametrize("sizes", [(3, 4, 2, 0), (3, 4, 0, 4), (0, 4, 2, 0), (3, 0, 2, 0), (0, 0, 0, 0)])
def test_no_numbers_no_rows_no_columns(name: str, sizes: tuple[int, int, int, int]) -> None:
    m, n, k, count = sizes
    v = cr.linspace(0.5, 1.5, count, dtype=cr.float64)
    x = cr.ones(n, k, dtype=cr.float64)
    index = cr.tensor(np.stack([np.arange(count) % max(m, 1), np.arange(count) % max(n, 1)]))
    for by_rows in (False, True):

        def f(v: Any, by_rows: bool = by_rows) -> Any:
            s = cr.sparse_coo_tensor(index, v, (m, n))
            return ZEROS[name](s.to_sparse_csr() if by_rows else s, x)

        got = cr.func.grad(f)(v)
        assert got.shape == v.shape
        np.testing.assert_allclose(cr.func.vmap(cr.func.grad(f))(cr.stack([v, v])).numpy(), [got.numpy()] * 2)
        h = cr.func.hessian(f)(v)
        assert h.shape == (count, count)
        np.testing.assert_allclose(cr.func.jacrev(cr.func.jacrev(f))(v).numpy(), h.numpy(), atol=1e-12)
        s = cr.sparse_coo_tensor(index, v, (m, n))
        many = cr.stack([x, x * 2])
        np.testing.assert_allclose(
            cr.func.vmap(lambda x, s=s: s @ x)(many).numpy(), np.stack([(s @ y).numpy() for y in many])
        )
