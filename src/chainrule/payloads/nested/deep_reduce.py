"""Reductions of nests of nests: of dims of the inner components, or of whole outer ones."""

from __future__ import annotations

from typing import Any

from ...core.errors import ChainruleError
from ...core.op import Op
from ...ops.linalg import norms
from ...ops.reduce import counts as aggregate
from ...ops.reduce import extrema
from ...ops.reduce import reductions as reduce
from .array import NestedArray
from .deep import DeepArray, lifted
from .deep_shape import shaped


def _reduces(op: Op) -> None:
    """The body of a reduction over several dims: beyond the inner components it needs all ragged dims at once, as one."""

    @op.on(DeepArray)
    def _(x: DeepArray, *, dim: Any, keepdim: bool, **kw: Any) -> Any:
        k = x.inner.geometry.k
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if all(d >= -k for d in dims):
            return lifted(op, (x,), {"dim": dim, "keepdim": keepdim, **kw})
        t = len(x.inner.geometry.trail)
        need = range(-k - 1, -t)  # the inner components and the dims of these up to the last ragged one
        if any(d not in dims for d in need) or any(d < -k - 2 for d in dims):
            raise ChainruleError(
                f"{op.name}: over the inner components of a nest of nests (shape {list(x.shape)}) goes together with their ragged "
                f"dims: dim={tuple(need)}; reduce these first, or join the nests: cat(x.unbind())"
            )
        y = x.flattened()
        own = tuple(d for d in dims if d >= -t)
        top = (-t - 2,) if -k - 2 in dims else ()
        if "old" in kw:
            kw["old"] = y.shape[len(y.lead) :]
        flat_dims: Any = (*top, -t - 1, *own)
        if isinstance(dim, int):
            flat_dims = dim = -t - 1
        z = _as_asked(op, y, flat_dims, kw)
        if not keepdim:
            return z
        full = x.shape[len(x.lead) :]
        return shaped(z, (*x.lead, *[1 if i - len(full) in dims else s for i, s in enumerate(full)]))


def _as_asked(op: Op, y: NestedArray, dim: Any, kw: dict[str, Any]) -> Any:
    return op.bodies[NestedArray](y, dim=dim, keepdim=False, **kw)


for _p in (
    reduce.sum_p, reduce.prod_p, reduce.var_p, reduce.std_p, reduce.logsumexp_p, aggregate.all_p, aggregate.any_p,
    extrema.amax_p, extrema.amin_p, norms.vector_norm_p,
):  # fmt: skip
    _reduces(_p)
