"""The walk forwards over a tape that kept everything, with tangents: what linearize plays again."""

from __future__ import annotations

from typing import Any

from ..core.dispatch import CUT, constant
from ..core.forward import fit_tangent
from ..core.reverse import Node, Pick
from ..core.shapes import zeros_like_tensor


def walk_forward(inputs: list[tuple[Node, Any]], outputs: list[Node | None], order: list[Node]) -> list[Any]:
    """Tangents of outputs from tangents of inputs along a tape that kept everything (see ``linearize``)."""
    ts: dict[Node, Any] = {n: t for n, t in inputs if t is not None}
    others: dict[Node, Any] = {}
    for n in order:
        if n.op is None:
            if type(n) is Pick and (all_of := others.get(n.parents[0])) is not None and all_of[n.index] is not None:
                ts[n] = all_of[n.index]
            continue
        tin = [ts.get(p) if p is not None else None for p in n.parents]
        if all(t is None for t in tin):
            if n.result is None:
                continue
            tin = [zeros_like_tensor(x) for x in n.args]
        token = CUT.set(max(CUT.get(), n.cut)) if n.cut is not None else None
        try:
            t = n.op.push(tin, n.y, n.args, n.kw)
            if token is not None and t is not None:
                t = [_computed(v, tin) for v in t] if n.nout else _computed(t, tin)
        finally:
            if token is not None:
                CUT.reset(token)
        if t is None:
            continue
        if n.nout:
            others[n] = [None if v is None else fit_tangent(v, w) for v, w in zip(t, n.y, strict=True)]
            t = others[n][0]
            if t is not None:
                ts[n] = t
        else:
            ts[n] = fit_tangent(t, n.y)
    return [None if n is None else ts.get(n) for n in outputs]


def _computed(t: Any, given: list[Any]) -> Any:
    """A tangent that a rule handed on as it got it, as an op would give it under the grad mode of the node."""
    return constant(t) if any(t is v for v in given) else t
