"""The normalisations over trailing dims on nests: their kernels run on the packed rows."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..ops.norm_base import Fused
from .nested import NestedArray
from .ragged import Geometry


def on_rows(op: Any, vals: list[Any], kw: dict[str, Any]) -> Any:
    """A fused op of rows on the packed rows of nests, or None where the rows are not what it works on.

    Its results are nests where they have the rank of the input and dense where they have that of a weight: the gradient of a
    weight is a sum over all rows, which inside a vmap over the components would mix them.
    """
    nd, rank = kw.get("nd"), kw.get("rank")
    nests = [v for v in vals if isinstance(v, NestedArray)]
    if nd is None or rank is None:
        return None
    g = nests[0].geometry
    inside = nests[0].ndim == rank + 1
    for v in nests:
        if v.geometry.packing is not g.packing or len(v.geometry.trail) < nd or v.ndim != rank + inside or v.lead:
            return None
    if any(not isinstance(v, NestedArray) and getattr(v, "ndim", nd) != nd for v in vals):
        return None
    here = {**kw, "rank": len(g.trail) + 1}
    if inside and any(r == nd for r in op.outs(**here)):
        return None
    ys = op._run(*[v.rows if isinstance(v, NestedArray) else v for v in vals], **here)
    return tuple(
        [
            Tensor(NestedArray(y, Geometry(g.packing, y.shape[1:])) if r == here["rank"] else y)
            for y, r in zip(ys, op.outs(**here), strict=True)
        ]
    )


_dense = Fused.concrete


def _concrete(self: Fused, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    for a in args:
        if a.__class__ is Tensor and a._value.__class__ is NestedArray:
            packed = on_rows(self, [v._value if isinstance(v, Tensor) else v for v in args], kw)
            if packed is not None:
                return packed
            break
    return _dense(self, args, kw)


Fused.concrete = _concrete  # type: ignore[method-assign]
