"""The sum of products of three tensors, which is linear in each of them and its own reverse rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.tensor import Tensor

Dims = tuple[int, ...]


def _expanded(x: Any, dims: Dims, rank: int) -> list[int]:
    """The dims of the product that the dims of `x` are, counted from the end."""
    own = [d for d in range(-rank, 0) if d not in dims]
    lead = x.ndim - len(own)
    return [*range(-rank - lead, -rank), *own]


@op("_trilinear", batch="expand", linear="each")
def trilinear_p(a: Any, b: Any, c: Any, *, e1: Dims, e2: Dims, e3: Dims, over: Dims, rank: int) -> Any:
    """The sum over the dims `over` of the product of a, b and c, with dims of size 1 put in at e1, e2, e3; all negative."""
    work = dt.WORK.get(a.dtype, a.dtype)
    # Dims of size 1 broadcast, which einsum does not: they are taken out of the operand.
    args: list[Any] = []
    full: dict[int, int] = {}
    for x, e in ((a, e1), (b, e2), (c, e3)):
        at = _expanded(x, e, rank)
        ones = [i for i, n in enumerate(x.shape) if n == 1]
        for d, n in zip(at, x.shape, strict=True):
            full[d] = max(full.get(d, 1), n) if n and full.get(d, 1) else 0
        args += [x.astype(work, copy=False).reshape([n for i, n in enumerate(x.shape) if i not in ones]),
                 [d for i, d in enumerate(at) if i not in ones]]  # fmt: skip
    lead = a.ndim - (rank - len(e1))
    every = sorted(range(-rank - lead, 0))
    seen = {d for dims in args[1::2] for d in dims}
    out = [d for d in every if d not in over]
    label = {d: k for k, d in enumerate(every)}
    times = [a if i % 2 == 0 else [label[d] for d in a] for i, a in enumerate(args)]
    y = np.einsum(*times, [label[d] for d in out if d in seen], optimize=True)
    return np.asarray(y).reshape([full.get(d, 1) if d in seen else 1 for d in out]).astype(a.dtype, copy=False)


def _conj(x: Any) -> Any:
    return x.conj() if x.dtype.category == dt.COMPLEX else x


# Each cotangent is the same sum: the result's missing dims are put in, the input's missing ones summed.
trilinear_p.vjp(
    [
        lambda g, y, a, b, c, *, e1, e2, e3, over, rank: trilinear_p.bind(
            g, _conj(b), _conj(c), e1=over, e2=e2, e3=e3, over=e1, rank=rank
        ),
        lambda g, y, a, b, c, *, e1, e2, e3, over, rank: trilinear_p.bind(
            _conj(a), g, _conj(c), e1=e1, e2=over, e3=e3, over=e2, rank=rank
        ),
        lambda g, y, a, b, c, *, e1, e2, e3, over, rank: trilinear_p.bind(
            _conj(a), _conj(b), g, e1=e1, e2=e2, e3=over, over=e3, rank=rank
        ),
    ]
)


@public("_trilinear", out=False)
def trilinear(
    i1: Tensor,
    i2: Tensor,
    i3: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    """``(i1 * i2 * i3).sum(sumdim)`` with dims of size 1 put into each at `expand1`, `expand2`, `expand3`."""
    ts, es = (i1, i2, i3), (expand1, expand2, expand3)
    rank = i1.ndim + len(expand1)
    for k, (t, e) in enumerate(zip(ts, es, strict=True), 1):
        if t.ndim + len(e) != rank:
            raise ChainruleError(
                f"_trilinear: i{k} of shape {list(t.shape)} with {len(e)} dims put in has {t.ndim + len(e)} dims, i1 has {rank}"
            )
        if t.dtype is not i1.dtype:
            raise ChainruleError(f"_trilinear: i{k} has type {t.dtype}, i1 {i1.dtype}; convert one with .to()")
    e1, e2, e3, over = (tuple(sorted(wrap_dim(d, rank) for d in e)) for e in (*es, sumdim))
    return trilinear_p.bind(i1, i2, i3, e1=e1, e2=e2, e3=e3, over=over, rank=rank)


sample("_trilinear", S(2, 3), S(4, 3, 5), S(2, 5), (1, 3), (0,), (1, 2), (2, 3))
sample("_trilinear", S(2, 3), S(2, 1), S(1, 3), (), (), (), (1,))
sample("_trilinear", S(3), S(3), S(2), (0,), (0,), (1,), ())
