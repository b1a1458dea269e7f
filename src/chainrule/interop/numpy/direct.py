"""Ufuncs on small real arrays inside a single gradient: the ufunc, a node, and nothing in between.

Ordinary NumPy code under `grad` is a chain of calls on few numbers, each of which costs more to hand on than to compute. Where an operand belongs to a reverse
level with nothing but an ndarray beneath it, and the op's rule is known as straight-line code (core/short.py), the result needs no tensor: it is an Array of
a value, its level and its node. Whatever else comes (a mask, another level, complex numbers, somebody who looks on) goes by the tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import CUT
from ...core.errors import FLOATING
from ...core.op import Op
from ...core.reverse import Reverse, _count
from ...core.short import Lean, short_rule
from ...core.steps import SMALL
from ...core.types import REAL_NUMS
from ...core.views import meta
from ...core.watch import WATCHED
from ...ops.linalg.matmul import matmul_p
from ...ops.reduce.reductions import ALL_DIMS, sum_p
from .value import Array, _new, entered

ndarray = np.ndarray
_NOTHING = (None,)
_NEITHER = (None, None)
_BOTH, _FIRST, _SECOND = (True, True), (True, False), (False, True)
Direct = Callable[..., Any]


def _read(x: Array) -> tuple[Any, Any, Any] | None:
    """Level, value and node of an array whose tensor exists, if it is one of a reverse level around a small real ndarray."""
    t = x._box
    level = t._interp
    if level.__class__ is not Reverse:
        return None
    low = t._value
    v = low._value
    if v.__class__ is not ndarray or v.size >= SMALL or v.dtype.num not in REAL_NUMS:
        return None
    meta(low).pinned = True
    return level, v, t._aux


def _rule(op: Op) -> bool:
    """Whether the rules of an op are known as straight-line code now: a test may have put others in their place."""
    noted = op.short
    if noted is None or noted[0] is not op.pull_rules:
        noted = short_rule(op)
    return noted[2] is not None


def of_one(op: Op) -> Direct | None:
    """An op of one array; None where it goes by tensors."""
    body = op.plain
    if body is None or not _rule(op):
        return None

    def run(x: Array) -> Array | None:
        level = x._level
        if level is not None:
            v, n = x._value, x._node
        else:
            found = _read(x)
            if found is None:
                return None
            level, v, n = found
        if WATCHED.on or not level.alive or level.keep_all or level.level <= CUT.get():
            return None
        if op.short[0] is not op.pull_rules and not _rule(op):
            return None
        try:
            y = body(v)
        except FLOATING:
            return None  # by the tensors, whose ops know what to do
        if y.__class__ is not ndarray:
            y = np.asarray(y)
        if y.dtype is not v.dtype:
            return None
        keep_y, keep_x = op.keep_one or op.keeps_one()
        # Lean.__init__ and Array.__init__ as they stand: each call would cost a tenth of all this.
        node = _new(Lean)
        node.op = op
        node.raw = (v,) if keep_x else _NOTHING
        node.kept = y if keep_y else None
        node.parents = (n,)
        node.fits = _NOTHING
        node.seq = _count()
        r = _new(Array)
        r._value = y
        r._node = node
        r._d = v.dtype
        r._level = level
        return r

    return run


def of_two(op: Op) -> Direct | None:
    """An op of two arrays, or of one and a number or a constant array; None where it goes by tensors."""
    body = op.plain
    if not isinstance(body, np.ufunc) or not _rule(op):
        return None

    def run(a: Any, b: Any) -> Array | None:
        la: Any = None
        lb: Any = None
        na = nb = None
        va, vb = a, b
        if a.__class__ is Array:
            la = a._level
            if la is not None:
                va, na = a._value, a._node
            else:
                found = _read(a)
                if found is None:
                    return None
                la, va, na = found
        if b.__class__ is Array:
            lb = b._level
            if lb is not None:
                vb, nb = b._value, b._node
            else:
                found = _read(b)
                if found is None:
                    return None
                lb, vb, nb = found
        if la is None:
            level, d, need = lb, vb.dtype, _SECOND
            if va.__class__ is not float:
                va = _constant(va, d)
                if va is None:
                    return None
        elif lb is None:
            level, d, need = la, va.dtype, _FIRST
            if vb.__class__ is not float:
                vb = _constant(vb, d)
                if vb is None:
                    return None
        else:
            level, d, need = la, va.dtype, _BOTH
            if la is not lb or vb.dtype is not d:
                return None
        if WATCHED.on or not level.alive or level.keep_all or level.level <= CUT.get():
            return None
        if op.short[0] is not op.pull_rules and not _rule(op):
            return None
        try:
            y = body(va, vb)
        except FLOATING:
            return None  # by the tensors, whose ops know what to do
        if y.__class__ is not ndarray:
            y = np.asarray(y)
        if y.dtype is not d or y.size >= SMALL:
            return None
        keep_y, keep_x = op._keeps.get(need) or op.keeps(need)
        shape = y.shape
        if (na is None or va.shape == shape) and (nb is None or vb.shape == shape):
            fits: Any = _NEITHER
        else:
            fits = (
                None if na is None or va.shape == shape else (va.shape, dt.FROM_NP[d]),
                None if nb is None or vb.shape == shape else (vb.shape, dt.FROM_NP[d]),
            )
        node = _new(Lean)
        node.op = op
        node.raw = (va, vb) if keep_x is None else (va if keep_x[0] else None, vb if keep_x[1] else None)
        node.kept = y if keep_y else None
        node.parents = (na, nb)
        node.fits = fits
        node.seq = _count()
        r = _new(Array)
        r._value = y
        r._node = node
        r._d = d
        r._level = level
        return r

    return run


def _open(level: Any) -> bool:
    """Whether a level records now, and nobody looks on."""
    return level.alive and not (WATCHED.on or level.keep_all or level.level <= CUT.get())


def product(a: Any, b: Any) -> Array | None:
    """The product of two small matrices of one real type inside a single gradient; None for all else."""
    la = lb = na = nb = None
    va, vb = a, b
    if a.__class__ is Array:
        la = a._level
        if la is not None:
            va, na = a._value, a._node
        else:
            found = _read(a)
            if found is None:
                return None
            la, va, na = found
    if b.__class__ is Array:
        lb = b._level
        if lb is not None:
            vb, nb = b._value, b._node
        else:
            found = _read(b)
            if found is None:
                return None
            lb, vb, nb = found
    if va.__class__ is not ndarray or vb.__class__ is not ndarray or va.ndim != 2 or vb.ndim != 2:
        return None
    d = va.dtype
    if vb.dtype is not d or d.num not in REAL_NUMS or va.shape[1] != vb.shape[0]:
        return None
    if va.size >= SMALL or vb.size >= SMALL:
        return None
    if la is None:
        if lb is None:
            return None
        level, need = lb, _SECOND
        va = va.copy() if va.flags.writeable else va
    elif lb is None:
        level, need = la, _FIRST
        vb = vb.copy() if vb.flags.writeable else vb
    elif la is lb:
        level, need = la, _BOTH
    else:
        return None
    if not _open(level):
        return None
    try:
        z = va.dot(vb)
    except FLOATING:
        return None  # by the tensors, whose ops know what to do
    if z.size >= SMALL:
        return None
    _, keep_x = matmul_p._keeps.get(need) or matmul_p.keeps(need)
    kept = (va, vb) if keep_x is None else (va if keep_x[0] else None, vb if keep_x[1] else None)
    return entered(level, z, Lean(matmul_p, kept, None, (na, nb), _NEITHER))


def total(x: Any) -> Array | None:
    """The sum of all elements of a small real array inside a single gradient; None for all else."""
    if x.__class__ is not Array:
        return None
    level = x._level
    if level is not None:
        v, n = x._value, x._node
    else:
        found = _read(x)
        if found is None:
            return None
        level, v, n = found
    if v.ndim > 7 or v.dtype.num not in REAL_NUMS or not _open(level):
        return None
    kw = {"dim": ALL_DIMS[v.ndim], "keepdim": False, "old": v.shape}
    try:
        y = sum_p.body(v, **kw)
    except FLOATING:
        return None  # by the tensors, whose ops know what to do
    if y.__class__ is not ndarray:
        y = np.asarray(y)
    node = Lean(sum_p, _NOTHING, None, (n,), _NOTHING)
    node.kw = kw
    return entered(level, y, node)


def _constant(x: Any, d: Any) -> Any:
    """A number, or an array of the type `d`, as a constant that nobody writes to; None for all else."""
    k = x.__class__
    if k is float or k is int:
        return x
    if k is not ndarray or x.dtype is not d:
        return None
    return x.copy() if x.flags.writeable else x
