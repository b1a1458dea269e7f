"""Schur's decomposition ``A = Z T Z^H``: T upper triangular, Z unitary."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.derive import vjp_from_jvp
from ...core.dispatch import look
from ...core.errors import missing
from ...core.samples import S, sample
from ...core.tensor import Tensor
from ..shape.slices import cat
from ..shape.triangles import tril, triu
from .common import adjoint, check_phase, diag_of, identity, mm
from .triangular import trsm_p


@op("schur", core="(n,n)->(n,n),(n,n)")
def schur_p(a: Any) -> Any:
    """T and Z as LAPACK has them: of a real matrix T has blocks of two rows where eigenvalues are complex."""
    from scipy.linalg import schur

    kind = "complex" if a.dtype.kind == "c" else "real"
    n = a.shape[-1]
    flat = a.reshape(int(np.prod(a.shape[:-2])), n, n)
    t, z = np.empty_like(flat), np.empty_like(flat)
    for i, m in enumerate(flat):
        t[i], z[i] = schur(m, output=kind) if n else (m, m)
    return t.reshape(a.shape), z.reshape(a.shape)


# With M = Z^H dA Z and W = Z^H dZ, which is skew: M = W T - T W + dT. What lies below the diagonal of that says what W is there, column by
# column; its diagonal is free (phases), and zero here.


def _triangular(t: Any) -> None:
    if np.tril(t, -1).any():
        raise missing(
            "schur",
            "derivative of the real form where eigenvalues are complex: ask for output='complex', whose T is triangular",
        )


@schur_p.jvp
def _(t: Any, y: Any, a: Any) -> Any:
    tri, z = y
    n = tri.shape[-1]
    if tri.dtype.category != dt.COMPLEX:
        look(tri, _triangular)
    m = mm(adjoint(z), t[0], z)
    columns: list[Tensor] = []
    for j in range(n - 1):
        b = -m[..., j + 1 :, j : j + 1]
        for k, w in enumerate(columns):
            b = b + w[..., j - k :, :] * tri[..., k : k + 1, j : j + 1]
        shifted = tri[..., j + 1 :, j + 1 :] - tri[..., j : j + 1, j : j + 1] * identity(n - 1 - j, tri)
        columns.append(trsm_p.bind(shifted, b, upper=True, unit=False))
    pad = m[..., :1] * 0
    low = cat([cat([pad[..., : j + 1, :], w], -2) for j, w in enumerate(columns)] + [pad], -1)
    w = tril(low, -1)
    w = w - adjoint(w)
    return triu(m - mm(w, tri) + mm(tri, w)), mm(z, w)


@schur_p.vjp
def _(g: Any, y: Any, a: Any) -> Any:
    (gt, gz), (tri, z) = g, y
    free = mm(adjoint(gz), z) + mm(adjoint(gt), tri) - mm(tri, adjoint(gt))
    check_phase("linalg.schur", "Schur vectors", free, cat([gt, gz], -1), diag_of(tri), None)
    return tuple(vjp_from_jvp(schur_p, list(g), y, [a], {}, [True]))


# The phases of complex vectors are LAPACK's choice: samples are functions that do not depend on them.
sample(
    "schur",
    S(4, 4),
    f=lambda a: (lambda t, z: (diag_of(t), t.abs(), z.abs()))(*schur_p((a + 0j) if not a.dtype.is_complex else a)),
)
sample("schur", S(2, 3, 3), f=lambda a: (lambda t, z: (t * t, z * z))(*schur_p(a + a.mT)), cx=False)
