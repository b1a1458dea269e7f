"""The extreme eigenpairs of symmetric matrices, for which PyTorch has the iteration LOBPCG: here from the whole decomposition.

That is exact, works for every k and has the derivatives of eigh; where only few of very many pairs are wanted an iteration would be
faster, and `scipy.sparse.linalg.lobpcg` has one.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import S, sample
from ...core.tensor import Tensor
from .eig import eigh
from .solve import cholesky
from .triangular import solve_triangular


def _dense(m: Tensor) -> Tensor:
    return m if m.layout.name == "strided" else m.to_dense()


@public("lobpcg", out=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """``A X = B X diag(E)``: the `k` largest (or smallest) eigenvalues E in this order and their vectors X, ``X^H B X = I``.

    `A` is symmetric (Hermitian), `B` positive definite, both dense or sparse. The pairs are exact, so a first guess `X` only says how many,
    and what guides PyTorch's iteration (`n`, `iK`, `niter`, `tol`, `method`, `ortho_*`) is taken and not needed.
    """
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ChainruleError(f"lobpcg: A must be a square matrix, got {list(A.shape)}")
    if tracker is not None:
        raise ChainruleError("lobpcg: there is no iteration here that a tracker could follow; leave it out")
    A, B = _dense(A), None if B is None else _dense(B)
    k = k if k is not None else 1 if X is None else int(X.shape[-1])
    if not 0 < k <= A.shape[-1]:
        raise ChainruleError(f"lobpcg: k must be between 1 and {A.shape[-1]}, the size of A, got {k}")
    if B is None:
        e, v = eigh(A)
    else:  # with B = L L^H the ordinary problem of L^-1 A L^-H
        low = cholesky(B)
        e, v = eigh(solve_triangular(low, solve_triangular(low, A, upper=False).mH, upper=False))
        v = solve_triangular(low.mH, v, upper=True)
    if largest is None or largest:
        return e[..., -k:].flip(-1), v[..., -k:].flip(-1)
    return e[..., :k], v[..., :k]


def _up_to_sign(a: Tensor, b: Tensor | None = None, largest: bool = True) -> tuple[Tensor, Tensor]:
    metric = None if b is None else b @ b.mH + b.new_ones(b.shape[-1]).diag()
    e, v = lobpcg(a @ a.mH, 2, metric, largest=largest)
    return e, v.abs() ** 2


sample("lobpcg", S(4, 4), f=_up_to_sign)
sample("lobpcg", S(4, 4), S(4, 4), f=lambda a, b: _up_to_sign(a, b, largest=False))
