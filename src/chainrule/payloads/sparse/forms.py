"""How ops run on sparse tensors: as compositions of ops on their numbers.

A function of elements runs on the stored numbers where it maps 0 to 0, which is tried out. Of two operands the pattern of the result
is the one both share (products), the union (sums), or that of the sparse one. What would fill the zeros gives a dense tensor
where the other operand is dense, and is refused where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from .pattern import meet, union

FORMS: dict[str, Callable[..., Any]] = {}
# Linear in what is stored: numbers that stand at one place need not be added up first.
LINEAR = frozenset(("clone", "to", "neg", "real", "imag", "conj", "positive"))
QUOTIENTS = frozenset(("div", "trunc_divide", "floor_divide", "remainder", "fmod"))
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "isclose"))  # dense where zeros compare as true


def form(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the composition that ops of these names are on sparse tensors: it takes their arguments."""

    def declare(f: Callable[..., Any]) -> Callable[..., Any]:
        for n in names:
            FORMS[n] = f
        return f

    return declare


def run(op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """`op` as a composition, or None where there is none."""
    f = FORMS.get(op.name)
    if f is not None:
        return f(*args, **kw)
    if op.form == "pointwise":
        tensors = [a for a in args if isinstance(a, Tensor)]
        if len(tensors) == 1:
            return _one(op, args, kw)
        if len(args) == 2:
            return _two(op, *args, **kw)
    return None


def _at_zero(op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """What the function gives where no number is stored."""
    zeros = [Tensor(np.zeros((), a.dtype.np)) if isinstance(a, Tensor) else a for a in args]
    return op.bind(*zeros, **kw)


def keeps_zero(op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> bool:
    """Whether a function of elements maps zeros to zero."""
    return bool(_at_zero(op, args, kw)._value == 0)


def _fills(op: Any) -> Exception:
    return NotImplementedError(
        f"{op.name}: does not map 0 to 0, so that its result on a sparse tensor would not be sparse. Write "
        f"x.to_dense().{op.name}(...) for a dense result, or apply it to x.values() for the stored numbers alone"
    )


def _one(op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """A function of one sparse tensor (and numbers)."""
    from ...ops.sparse.values import coalesced, dense, make, parts

    k = next(i for i, a in enumerate(args) if isinstance(a, Tensor))
    x = args[k]
    scaling = op.name == "mul" or (op.name == "div" and k == 0)
    if not scaling and not keeps_zero(op, args, kw):
        if op.name in COMPARISONS:
            return op.bind(*[dense(a) if a is x else a for a in args], **kw)
        raise _fills(op)
    v, p = parts(x if op.name in LINEAR or scaling else coalesced(x))
    return make(op.bind(*[v if a is x else a for a in args], **kw), p)


def _two(op: Any, a: Any, b: Any, **kw: Any) -> Any:
    """A function of two tensors of which at least one is sparse."""
    from ...ops.sparse.values import coalesced, dense, is_sparse, make, moved, parts, pick_p

    if not (is_sparse(a) and is_sparse(b)):
        s, d = (a, b) if is_sparse(a) else (b, a)
        if op.name == "overwrite":
            return _overwrite(a, b)
        # Where the dense operand multiplies, or divides the sparse one, what is not stored stays zero.
        if op.name == "mul" or (op.name in QUOTIENTS and s is a):
            v, p = parts(s if op.name in ("mul", "div") else coalesced(s))
            if d.ndim:
                if d.ndim > len(p.shape) or any(m not in (1, n) for m, n in zip(d.shape[::-1], p.shape[::-1])):
                    raise RuntimeError(
                        f"{op.name}: a dense tensor of shape {list(d.shape)} does not broadcast to a sparse one of shape {list(p.shape)}"
                    )
                d = pick_p.bind(d.expand(*p.shape), pattern=p)
            return make(op.bind(v, d) if s is a else op.bind(d, v), p)
        if op.name in QUOTIENTS:
            raise _fills(op)
        return op.bind(dense(a) if is_sparse(a) else a, dense(b) if is_sparse(b) else b, **kw)
    if a.shape != b.shape:
        raise RuntimeError(
            f"{op.name}: sparse tensors of shapes {list(a.shape)} and {list(b.shape)}; sparse tensors do not broadcast against each other"
        )
    if op.name == "overwrite":
        return _overwrite(a, b)
    if op.name == "div" or not keeps_zero(op, (a, b), kw):
        if op.name in COMPARISONS:
            return op.bind(dense(a), dense(b), **kw)
        raise _fills(op)
    linear = op.name in ("add", "sub")
    (va, pa), (vb, pb) = parts(a if linear else coalesced(a)), parts(b if linear else coalesced(b))
    if pa is pb or pa.same(pb):
        return make(op.bind(va, vb, **kw), pa)
    if pa.dense != pb.dense:
        raise RuntimeError(f"{op.name}: sparse tensors with {pa.dense} and {pb.dense} dense dims")
    q = meet(pa, pb) if op.name == "mul" else union(pa, pb)
    y = make(op.bind(moved(va, pa, q), moved(vb, pb, q), **kw), q)
    return y if pa.layout == "coo" else _as_layout(y, pa)


def _as_layout(y: Any, p: Any) -> Any:
    from ...ops.sparse.values import like, parts

    return like(p.layout, *parts(y), p.block)


def _overwrite(x: Any, new: Any) -> Any:
    """A write of all elements: the value is the new one, the derivative in what was there is zero."""
    from ...ops.sparse.values import is_sparse, make, parts

    if not is_sparse(new):
        return new * 1
    v, p = parts(new)
    return make(v * 1, p)


from . import shape_forms  # noqa: E402, F401  (declares the others)
