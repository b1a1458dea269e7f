"""Functions of sparse tensors against mathematics: forward mode, reverse mode, all second-order mixes, vmap; and values against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.testing import laws

INDEX = np.array([[0, 0, 1, 2, 3], [0, 2, 1, 0, 3]])
CROW, COL = np.array([0, 2, 3, 4, 5]), np.array([0, 2, 1, 0, 3])
TWICE = np.array([[0, 2, 0, 1, 0], [1, 0, 1, 2, 3]])
N = 4


def draw(*shape: int, seed: int = 0, cx: bool = False) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if cx else x


def coo(m: Any, v: Any) -> Any:
    return m.sparse_coo_tensor(m.tensor(INDEX), v, (N, N)).coalesce()


def twice(m: Any, v: Any) -> Any:
    return m.sparse_coo_tensor(m.tensor(TWICE), v, (N, N))


def csr(m: Any, v: Any) -> Any:
    return m.sparse_csr_tensor(m.tensor(CROW), m.tensor(COL), v, (N, N))


def csc(m: Any, v: Any) -> Any:
    return m.sparse_csc_tensor(m.tensor(CROW), m.tensor(COL), v, (N, N))


def bsr(m: Any, v: Any) -> Any:
    """Five blocks of one row and two columns."""
    blocks = v.unsqueeze(-1).unsqueeze(-1) * m.tensor([[1.0, -2.0]], dtype=m.float64).to(v.dtype)
    return m.sparse_bsr_tensor(m.tensor(CROW), m.tensor([0, 1, 1, 0, 1]), blocks, (N, N))


def hybrid(m: Any, v: Any) -> Any:
    """Rows of two numbers each: a dense dim."""
    return m.sparse_coo_tensor(m.tensor(INDEX), m.stack([v, v * v], 1), (N, N, 2)).coalesce()


def batch(m: Any, v: Any) -> Any:
    """A batch of two matrices by rows."""
    both = m.stack([v, 2 * v])
    return m.sparse_csr_tensor(m.tensor(np.stack([CROW] * 2)), m.tensor(np.stack([COL] * 2)), both, (2, N, N))


BUILD = {"coo": coo, "twice": twice, "csr": csr, "csc": csc, "bsr": bsr}
D = draw(N, 3, seed=1)
E = draw(N, N, seed=2)

# f(m, S, D, E): a sparse matrix and dense ones.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "to_dense": lambda m, s, d, e: s.to_dense() ** 2,
    "mm": lambda m, s, d, e: s @ d,
    "dense_mm": lambda m, s, d, e: e @ s,
    "mm_sparse": lambda m, s, d, e: (s @ s.transpose(0, 1)).to_dense(),
    "sampled": lambda m, s, d, e: m.sparse.sampled_addmm(s, d, e[:3], beta=0.5, alpha=2.0).to_dense(),
    "product": lambda m, s, d, e: (s * e).to_dense(),
    "quotient": lambda m, s, d, e: (s / (e * e + 1)).to_dense(),
    "sum_of_two": lambda m, s, d, e: (s + s.transpose(0, 1) * 2).to_dense(),
    "product_of_two": lambda m, s, d, e: (s * s.transpose(0, 1)).to_dense(),
    "plus_dense": lambda m, s, d, e: s + e,
    "sin": lambda m, s, d, e: (s.sin() * 3).to_dense(),
    "power": lambda m, s, d, e: (s**3).to_dense(),
    "sum": lambda m, s, d, e: (s * s).sum(),
    "sum_rows": lambda m, s, d, e: m.sparse.sum(s, 0).to_dense() ** 2,
    "softmax": lambda m, s, d, e: m.sparse.softmax(s, 1).to_dense(),
    "log_softmax": lambda m, s, d, e: m.sparse.log_softmax(s, 0).to_dense(),
    "values": lambda m, s, d, e: s._values() ** 2,
    "mask": lambda m, s, d, e: e.sparse_mask(s).to_dense() * e,
    "select": lambda m, s, d, e: s.select(0, 0).to_dense() ** 2,
    "narrow": lambda m, s, d, e: s.narrow(1, 1, 2).to_dense() ** 2,
    "index_select": lambda m, s, d, e: s.index_select(0, m.tensor([2, 0, 0])).to_dense() ** 2,
    "reshape": lambda m, s, d, e: s.reshape(2, 2 * N).to_dense() ** 2,
    "cat": lambda m, s, d, e: m.cat([s, s * 2], 1).to_dense() ** 2,
    "stack": lambda m, s, d, e: m.stack([s, s.sin()]).to_dense() ** 2,
    "layouts": lambda m, s, d, e: s.to_sparse_csr().to_sparse_csc().to_sparse_bsr((2, 2)).to_sparse_bsc((1, 4)).to_sparse().to_dense() ** 2,
    "solve": lambda m, s, d, e: m.sparse.spsolve((s + 5 * m.eye(N, dtype=m.float64).to_sparse()).to_sparse_csc(), d),
    "solve_transposed": lambda m, s, d, e: m.sparse.spsolve((s + 5 * m.eye(N, dtype=m.float64).to_sparse()).transpose(0, 1), d),
    "norm": lambda m, s, d, e: s.norm(),
    "max_of_products": lambda m, s, d, e: m.sparse.mm(s, d, "amax"),
    "mean_of_products": lambda m, s, d, e: m.sparse.mm(s, d, "mean"),
    "linear": lambda m, s, d, e: m.nn.functional.linear(e, s, d[:, 0]),
    "masked_sum": lambda m, s, d, e: m.masked.sum(s, 1, keepdim=True).to_dense() ** 2,
    "masked_amax": lambda m, s, d, e: m.masked.amax(s, 0).to_dense() ** 2,
}  # fmt: skip


def check(name: str, f: Callable[..., Any], *xs: np.ndarray) -> None:
    rng = np.random.default_rng(5)
    c = laws.Case(name, f, list(xs))
    laws.check_dot(c, rng)
    laws.check_tangent(c, rng)
    laws.check_second(c, rng)
    laws.check_vmap(c, rng)


# The layouts differ in conversions and in what is done directly: the others go by coordinates.
DIRECT = "to_dense mm dense_mm mm_sparse sampled product sum_of_two sin sum_rows softmax index_select layouts solve masked_sum".split()
CASES = [(p, "coo") for p in PROGRAMS] + [(p, layout) for layout in BUILD if layout != "coo" for p in DIRECT]


@pytest.mark.parametrize(("program", "layout"), CASES)
def test_laws(program: str, layout: str) -> None:
    f = PROGRAMS[program]
    check(f"{program} {layout}", lambda v, d, e: f(cr, BUILD[layout](cr, v), d, e), draw(5), D, E)


@pytest.mark.parametrize(("program", "layout"), CASES)
def test_derivatives_of_maps(program: str, layout: str) -> None:
    """The derivative of a map over examples is that of each; a sparse tensor that is used twice gets both cotangents."""

    def f(v: Any, d: Any, e: Any) -> Any:
        s = BUILD[layout](cr, v)
        return (PROGRAMS[program](cr, s, d, e) ** 2).sum() + (s * s.sin()).sum() * (s.to_dense() * e).sum()

    xs = [cr.tensor(np.stack([x, -0.5 * x, 0.3 * x + 0.1])) for x in (draw(5), D, E)]
    ts = [x.cos() for x in xs]
    examples = [[x[k] for x in xs] for k in range(3)]
    pulled = cr.func.grad(lambda *xs: cr.vmap(f)(*xs).sum(), (0, 1, 2))(*xs)
    for k, each in enumerate(examples):
        for a, b in zip(pulled, cr.func.grad(f, (0, 1, 2))(*each), strict=True):
            np.testing.assert_allclose(a[k].numpy(), b.numpy(), rtol=1e-9, atol=1e-9)
    pushed = cr.func.jvp(cr.vmap(f), tuple(xs), tuple(ts))[1]
    each = [cr.func.jvp(f, tuple(examples[k]), tuple(t[k] for t in ts))[1].item() for k in range(3)]
    np.testing.assert_allclose(pushed.numpy(), each, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("program", ["mm", "dense_mm", "mm_sparse", "sampled", "product", "sum", "to_dense"])
def test_complex(program: str) -> None:
    f = PROGRAMS[program]
    d, e = draw(N, 3, seed=1, cx=True), draw(N, N, cx=True)
    check(f"{program} complex", lambda v, d, e: f(cr, coo(cr, v), d, e), draw(5, cx=True), d, e)


def test_complex_solve() -> None:
    eye = cr.eye(N, dtype=cr.complex128).to_sparse()
    check("solve", lambda v, b: cr.sparse.spsolve(coo(cr, v) + 5 * eye, b), draw(5, cx=True), draw(N, 3, cx=True))


@pytest.mark.parametrize(
    "name",
    [
        "sum",
        "sum_dense",
        "sum_sparse",
        "softmax_dense",
        "softmax_sparse",
        "times",
        "select",
        "transpose",
        "unsqueeze",
        "reshape_both",
    ],
)
def test_hybrid(name: str) -> None:
    f = {
        "sum": lambda s: (s * s).sum(),
        "sum_dense": lambda s: s.sum(2).to_dense() ** 2,
        "sum_sparse": lambda s: s.sum((0, 1)) ** 2,
        "softmax_dense": lambda s: cr.sparse.softmax(s, 2).to_dense(),
        "softmax_sparse": lambda s: cr.sparse.softmax(s, 1).to_dense(),
        "times": lambda s: (s * cr.tensor(draw(N, N, 2))).sin().to_dense(),
        "select": lambda s: s.select(2, 1).to_dense() ** 2,
        "transpose": lambda s: s.transpose(0, 1).to_dense() ** 2,
        "unsqueeze": lambda s: s.unsqueeze(-1).unsqueeze(0).sin().to_dense()[0, ..., 0],
        "reshape_both": lambda s: s.reshape(N * N, 2, 1).sum(0) ** 2,
    }[name]
    check(name, lambda v: f(hybrid(cr, v)), draw(5))


@pytest.mark.parametrize("name", ["bmm", "sampled", "to_dense", "sum", "select"])
def test_batches(name: str) -> None:
    d = cr.tensor(draw(2, N, 3))
    f = {
        "bmm": lambda s: s @ d,
        "sampled": lambda s: cr.sparse.sampled_addmm(s, d, d.transpose(1, 2)).to_dense(),
        "to_dense": lambda s: s.to_dense() ** 2,
        "sum": lambda s: (s * s).sum(),
        "select": lambda s: s[1].to_dense() ** 2,
    }[name]
    check(name, lambda v: f(batch(cr, v)), draw(5))


@pytest.mark.parametrize(
    "program", ["mm", "dense_mm", "product", "sin", "sum", "to_dense", "mask", "select", "softmax", "log_softmax"]
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_values_are_pytorchs(program: str) -> None:
    f = PROGRAMS[program]
    ours = f(cr, coo(cr, cr.tensor(draw(5))), cr.tensor(D), cr.tensor(E))
    theirs = f(torch, coo(torch, torch.tensor(draw(5))), torch.tensor(D), torch.tensor(E))
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-12)
