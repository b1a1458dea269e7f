"""The normalisations over trailing dims on nests: their kernels run on the packed rows."""

from __future__ import annotations

from typing import Any

from ...core.spec import Spec
from ...core.tensor import Tensor
from .array import NestedArray
from .sizes import Geometry


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
    rank = len(g.trail) + 1
    here = {**kw, "rank": rank}
    outs = op.spec.outs(**here)
    if inside and nd in outs:
        return None
    ys = op.body(*[v.rows if isinstance(v, NestedArray) else v for v in vals], **here)
    return tuple(
        [
            (NestedArray(y, g if y.shape[1:] == g.trail else Geometry(g.packing, y.shape[1:])) if r == rank else y)
            for y, r in zip(ys, outs, strict=True)
        ]
    )


def fused_body(op: Any) -> Any:
    """The body of a fused op on nests: its kernel on packed rows where they are what it works on, else its body in plain ops."""

    def run(*vals: Any, **kw: Any) -> Any:
        packed = on_rows(op, list(vals), kw)
        if packed is not None:
            return packed
        return by_spec(op, vals, kw)

    return run


def by_spec(op: Any, vals: Any, kw: dict[str, Any]) -> tuple[Any, ...]:
    """A fused op by its body in plain ops, all arguments with the same axes in front.

    A ragged size knows which axis of the argument that it was read from has the components: it must be that of all.
    """
    spec = Spec(op.spec.body, op.spec.ranks, op.spec.outs, expand=True)
    return tuple([y._value for y in spec(*[v if v is None else Tensor(v) for v in vals], **kw)])
