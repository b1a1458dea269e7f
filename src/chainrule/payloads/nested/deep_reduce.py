"""Reductions of nests of nests: of dims of the inner components, or of whole outer ones."""

from __future__ import annotations

from typing import Any

from ...core import primitives
from ...core.errors import ChainruleError
from ...core.op import Op
from ...ops.linalg import norms
from ...ops.reduce import counts as aggregate
from ...ops.reduce import extrema
from ...ops.reduce import reductions as reduce
from .array import NestedArray
from .bodies import NESTED
from .deep import DeepArray, lifted
from .deep_shape import shaped
from .sizes import RaggedInt, geometry_of


def _reduces(op: Op) -> None:
    """The body of a reduction over several dims: beyond the inner components it needs all ragged dims at once, as one."""

    @op.on(DeepArray)
    def _(x: DeepArray, *, dim: Any, keepdim: bool, **kw: Any) -> Any:
        k = x.inner.geometry.k
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if not any(-k - 2 <= d < -k for d in dims):
            return lifted(op, (x,), {"dim": dim, "keepdim": keepdim, **kw})
        x = _settled(x, dims)
        t = len(x.inner.geometry.trail)
        need = range(-k - 1, -t)  # the inner components and the dims of these up to the last ragged one
        stay = [d for d in need if d not in dims and d >= -k and not isinstance(x.shape[d], RaggedInt)]
        if any(d not in dims and d not in stay for d in need):
            raise ChainruleError(
                f"{op.name}: over the inner components of a nest of nests (shape {list(x.shape)}) goes together with their ragged "
                f"dims: dim={tuple(need)}; reduce these first, or join the nests: cat(x.unbind())"
            )
        shape = [1 if i - x.ndim in dims else s for i, s in enumerate(x.shape) if keepdim or i - x.ndim not in dims]
        if stay:  # uniform dims between ragged ones: they become part of the rows first
            order = [*[d for d in range(-k, -t) if d not in stay], *stay, *range(-t, 0)]
            x = primitives.permute_p.bodies[DeepArray](x, dims=tuple(order))
            dims, t = tuple(d if d < -k else order.index(d) - k for d in dims), len(x.inner.geometry.trail)
        y = x.flattened()
        own = tuple(d for d in dims if d >= -t)
        top = (-t - 2,) if -k - 2 in dims else ()
        if "old" in kw:
            kw["old"] = y.shape[len(y.lead) :]
        flat_dims: Any = (*[d + k - t for d in dims if d < -k - 2], *top, -t - 1, *own)
        if isinstance(dim, int):
            flat_dims = dim = -t - 1
        z = _as_asked(op, y, flat_dims, kw)
        return shaped(z, tuple(shape)) if keepdim else z


def _settled(x: DeepArray, dims: tuple[int, ...]) -> DeepArray:
    """`x` with ragged dims that stay as uniform ones where all sizes in them are equal."""
    g = x.inner.geometry
    cols = tuple(
        [
            int(c.most) if type(c) is RaggedInt and d not in dims and (c.values == c.most).all() else c
            for d, c in enumerate(g.columns, -g.k)
        ]
    )
    h = geometry_of(cols, g.n)
    return DeepArray(NestedArray(x.inner.rows.reshape((*x.lead, *h.rows)), h), x.outer)


def _as_asked(op: Op, y: NestedArray, dim: Any, kw: dict[str, Any]) -> Any:
    kw = {"dim": dim, "keepdim": False, **kw}
    return NESTED.body_of(op, (y,), kw)(y, **kw)


for _p in (
    reduce.sum_p, reduce.prod_p, reduce.var_p, reduce.std_p, reduce.logsumexp_p, aggregate.all_p, aggregate.any_p,
    extrema.amax_p, extrema.amin_p, norms.vector_norm_p,
):  # fmt: skip
    _reduces(_p)
