"""cond and switch as one op: an index, and a program for each branch. Its rules are branches of the programs' derivatives.

Under vmap with an index that differs between examples all branches run, and each example takes its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.derive import jvp_through, vjp_through
from ..core.op import Op
from ..core.shapes import zeros_like_tensor
from ..core.tensor import Tensor
from .draws import refuse
from .graph import replay
from .loops import _like, batched_body, is_float, zero
from .program import Program, _replayer
from .record import GLIMPSES


def _switch(index: Any, *vals: Any, branches: tuple[Program, ...]) -> tuple[np.ndarray, ...]:
    """The results of the branch with this number; numbers beyond the ends take the first or the last."""
    return branches[min(max(int(index), 0), len(branches) - 1)].arrays(*vals)


GLIMPSES["switch"] = lambda vals, *, branches: replay(branches[0].graph, vals[1:])
SWITCH = Op("switch", _switch, batch=lambda op, size, args, flags, kw: _batch(size, args, flags, **kw))


def _made(b: Program, key: Any, f: Any, examples: list[Any]) -> Program:
    program, _ = b.made(key, f, examples)
    program.examples = [e._value for e in examples]
    return program


@SWITCH.jvp(sparse=True)
def _(ts: Any, y: Any, index: Any, *xs: Any, branches: tuple[Program, ...]) -> Any:
    refuse(*branches)
    have = [i for i in range(len(xs)) if ts[i + 1] is not None]
    outs = branches[0].graph.outputs
    moved = [i for i, v in enumerate(outs) if is_float(v)]
    if not have or not moved:
        return None

    def pushed(b: Program) -> Program:
        def push(*a: Any) -> Any:
            tan: list[Any] = [None] * len(xs)
            for i, v in zip(have, a[len(xs) :], strict=True):
                tan[i] = v
            got = jvp_through(_replayer(b), tan, list(a[: len(xs)]), {}) or [None] * len(outs)
            return [zero(outs[i]) if got[i] is None else got[i] for i in moved]

        examples = [*[Tensor(v) for v in b.examples], *_like([b.graph.inputs[i] for i in have])]
        return _made(b, ("switch.jvp", tuple(have)), push, examples)

    got = SWITCH.bind(index, *xs, *[ts[i + 1] for i in have], branches=tuple(pushed(b) for b in branches))
    out: list[Any] = [None] * len(outs)
    for i, v in zip(moved, got, strict=True):
        out[i] = v
    return tuple(out)


@SWITCH.vjp(sparse=True, keep=(False, None))
def _(g: Any, y: Any, index: Any, *xs: Any, branches: tuple[Program, ...], need: Any) -> Any:
    refuse(*branches)
    have = [i for i in range(len(g)) if g[i] is not None]
    ins, outs = branches[0].graph.inputs, branches[0].graph.outputs
    wanted = [bool(need[i + 1]) and is_float(v) for i, v in enumerate(ins)]

    def pulled(b: Program) -> Program:
        def pull(*a: Any) -> Any:
            cot: list[Any] = [None] * len(outs)
            for i, v in zip(have, a[len(xs) :], strict=True):
                cot[i] = v
            got = vjp_through(_replayer(b), cot, list(a[: len(xs)]), {}, wanted)
            return [zero(ins[i]) if got[i] is None else got[i] for i in range(len(xs)) if wanted[i]]

        examples = [*[Tensor(v) for v in b.examples], *_like([outs[i] for i in have])]
        return _made(b, ("switch.vjp", tuple(have), tuple(wanted)), pull, examples)

    got = iter(SWITCH.bind(index, *xs, *[g[i] for i in have], branches=tuple(pulled(b) for b in branches)))
    return (None, *[next(got) if w else None for w in wanted])


def _batch(size: int, args: list[Any], flags: list[bool], *, branches: tuple[Program, ...]) -> Any:
    programs = tuple(batched_body(b, size, flags[1:]) for b in branches)
    if not flags[0]:
        return SWITCH.bind(*args, branches=programs)
    from ..ops.elementwise.select import where

    index, xs = args[0], args[1:]
    every = [p(*xs) for p in programs]
    out = []
    for ys in zip(*every, strict=True):
        y = ys[-1]
        at = index.reshape(size, *[1] * (y.ndim - 1))
        for k in range(len(ys) - 2, -1, -1):
            y = where(at <= k, ys[k], y)
        out.append(y)
    return tuple(out)


__all__ = ["SWITCH", "zeros_like_tensor"]
