"""Sparse tensors: products with dense matrices, a graph convolution and sampled products, beside PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import chainrule as ct
from benchmarks.common import OURS, Row, best_of, optional

N, PER_ROW, FEATURES = 100_000, 10, 64


def pattern(n: int = N, per_row: int = PER_ROW) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `per_row` entries in random columns, in order."""
    rng = np.random.default_rng(0)
    return np.arange(0, n * per_row + 1, per_row), np.sort(rng.integers(0, n, (n, per_row)), axis=1).reshape(-1)


def draw(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def matrix(m: Any, tensor: Callable[[Any], Any], layout: str, v: np.ndarray) -> Any:
    """The same matrix in either library."""
    start, column = pattern()
    if layout == "csr":
        return m.sparse_csr_tensor(tensor(start), tensor(column), tensor(v), (N, N))
    row = np.repeat(np.arange(N), PER_ROW)
    flat = row * N + column
    keep = np.concatenate([[True], flat[1:] != flat[:-1]])
    return m.sparse_coo_tensor(tensor(np.stack([row, column])[:, keep]), tensor(v[keep]), (N, N)).coalesce()


def product(torch: Any, layout: str) -> dict[str, Callable[[], Any]]:
    """S @ x with the gradient of x. (PyTorch's gradient of S by coordinates goes through a dense matrix, here of 40 GB.)"""
    v, x, g = draw(N * PER_ROW), draw(N, FEATURES), draw(N, FEATURES, seed=2)

    def work(m: Any, tensor: Callable[[Any], Any]) -> Callable[[], Any]:
        s, d, c = matrix(m, tensor, layout, v), tensor(x).requires_grad_(), tensor(g)
        return lambda: m.autograd.grad(m.sparse.mm(s, d), d, c)

    works = {OURS: work(ct, ct.tensor)}
    return works if torch is None else works | {"torch": work(torch, torch.from_numpy)}


def convolution(torch: Any) -> dict[str, Callable[[], Any]]:
    """Two layers ``relu(A x W)`` on a graph of 10^5 nodes and 10^6 edges, with the gradients of the weights."""
    v, x = draw(N * PER_ROW) / PER_ROW, draw(N, FEATURES)
    w1, w2, g = draw(FEATURES, FEATURES) / 8, draw(FEATURES, 16) / 8, draw(N, 16, seed=2)

    def work(m: Any, tensor: Callable[[Any], Any]) -> Callable[[], Any]:
        a, h0, c = matrix(m, tensor, "csr", v), tensor(x), tensor(g)
        ws = [tensor(w).requires_grad_() for w in (w1, w2)]

        def run() -> Any:
            h = m.relu(m.sparse.mm(a, h0 @ ws[0]))
            return m.autograd.grad(m.sparse.mm(a, h @ ws[1]), ws, c)

        return run

    works = {OURS: work(ct, ct.tensor)}
    return works if torch is None else works | {"torch": work(torch, torch.from_numpy)}


def sampled(torch: Any) -> dict[str, Callable[[], Any]]:
    """The product of two dense matrices at the places of a sparse one, with the gradients of both."""
    v, a, b = np.zeros(N * PER_ROW, np.float32), draw(N, FEATURES), draw(FEATURES, N, seed=2)

    def work(m: Any, tensor: Callable[[Any], Any]) -> Callable[[], Any]:
        s, p, q = matrix(m, tensor, "csr", v), tensor(a).requires_grad_(), tensor(b).requires_grad_()
        c = matrix(m, tensor, "csr", draw(N * PER_ROW, seed=3))
        return lambda: m.autograd.grad(m.sparse.sampled_addmm(s, p, q, beta=0.0), [p, q], c)

    works = {OURS: work(ct, ct.tensor)}
    return works if torch is None else works | {"torch": work(torch, torch.from_numpy)}


def rows(only: str = "") -> Iterable[Row]:
    """One row for each piece of work whose name contains `only`."""
    torch = optional("torch")
    if torch is not None:
        torch.set_num_threads(2)
        warnings.filterwarnings("ignore", "Sparse")
    works: dict[str, tuple[Callable[[], dict[str, Callable[[], Any]]], float]] = {
        "CSR times dense, 10^5 x 10^5, 10 a row, 64 columns, fwd+bwd": (lambda: product(torch, "csr"), 0.7),
        "COO times dense, the same": (lambda: product(torch, "coo"), 0.5),
        "graph convolution, 10^5 nodes, 10^6 edges, fwd+bwd": (lambda: convolution(torch), 0.7),
        "sampled_addmm, 10^6 places, 64 columns, fwd+bwd": (lambda: sampled(torch), 1.0),
    }
    for name, (make, budget) in works.items():
        if only in name:
            yield Row(name, best_of(make(), 6), {"torch": budget})
