"""scan and while_loop as ops: the body is a program, its rules make programs of it.

Forward mode is a loop over values and tangents; a batch is a loop of a batched body, for `while` until all examples are done. Reverse mode
of scan is a loop forward that stacks the carried values and what is dear to compute again (:mod:`.residuals`), and one backwards that
runs the body's reverse on them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.batching import Batching
from ..core.derive import jvp_through, vjp_through
from ..core.errors import MissingRuleError
from ..core.op import Op
from ..core.shapes import zeros, zeros_like_tensor
from ..core.tensor import Tensor
from ..core.views import grow
from .draws import refuse
from .graph import Graph, Var, replay
from .program import Program, _replayer
from .record import GLIMPSES
from .residuals import kept


def is_float(v: Any) -> bool:
    """Whether a value of a graph has derivatives."""
    return dt.FROM_NP[v.dtype].category >= dt.FLOAT


def zero(v: Any) -> Tensor:
    """Zeros like a value of a graph."""
    return zeros(tuple(v.shape), dt.FROM_NP[v.dtype])


def _like(vs: list[Any]) -> list[Tensor]:
    return [Tensor(np.zeros(v.shape, v.dtype)) for v in vs]


# -- scan ---------------------------------------------------------------------------------------------------------------------


def _scan(*vals: Any, body: Program, nc: int, nx: int, length: int, reverse: bool) -> tuple[np.ndarray, ...]:
    """Carried values after `length` steps of ``body(carry, x_i, constants) -> (carry, y_i)``, and the y_i stacked."""
    carry, xs, consts = vals[:nc], vals[nc : nc + nx], vals[nc + nx :]
    ys = [np.empty((length, *v.shape), v.dtype) for v in body.graph.outputs[nc:]]
    run = body.arrays
    for i in range(length - 1, -1, -1) if reverse else range(length):
        outs = run(*carry, *[x[i, ...] for x in xs], *consts)
        carry = outs[:nc]
        for y, v in zip(ys, outs[nc:], strict=True):
            y[i] = v
    return (*[c if length else c.copy() for c in carry], *ys)


def _scan_glimpse(vals: list[Tensor], *, body: Program, nc: int, nx: int, length: int, reverse: bool) -> list[Tensor]:
    """What one step gives, for all of them."""
    if not length:
        return list(SCAN.bind(*vals, body=body, nc=nc, nx=nx, length=length, reverse=reverse))
    first = [Tensor(x._value[-1 if reverse else 0, ...]) for x in vals[nc : nc + nx]]
    ys = replay(body.graph, [*vals[:nc], *first, *vals[nc + nx :]])
    return [*ys[:nc], *[Tensor(np.broadcast_to(y._value, (length, *y.shape))) for y in ys[nc:]]]


GLIMPSES["scan"] = _scan_glimpse
SCAN = Op("scan", _scan, batch=lambda op, size, args, flags, kw: _scan_batch(size, args, flags, **kw))


def _split(a: Any, *counts: int) -> list[list[Any]]:
    out, at = [], 0
    for n in counts:
        out.append(list(a[at : at + n]))
        at += n
    return [*out, list(a[at:])]


@SCAN.jvp(sparse=True)
def _(ts: Any, y: Any, *args: Any, body: Program, nc: int, nx: int, length: int, reverse: bool) -> Any:
    refuse(body)
    carry, xs, consts = _split(args, nc, nx)
    have = tuple([t is not None for t in ts])
    moving = [i for i in range(nc) if is_float(body.graph.inputs[i])]
    outs = body.graph.outputs
    moved = [i for i in range(nc, len(outs)) if is_float(outs[i])]
    hx = [i for i in range(nx) if have[nc + i]]
    hk = [i for i in range(len(consts)) if have[nc + nx + i]]

    def push(*a: Any) -> Any:
        c, tc, x, tx, k, tk = _split(a, nc, len(moving), nx, len(hx), len(consts))
        t: list[Any] = [None] * (nc + nx + len(consts))
        for i, v in [
            *zip(moving, tc, strict=True),
            *zip([nc + i for i in hx], tx, strict=True),
            *zip([nc + nx + i for i in hk], tk, strict=True),
        ]:
            t[i] = v
        from ..core.forward import Forward

        with Forward() as level:
            ins = [Tensor(v, level, d) if d is not None else v for v, d in zip((*c, *x, *k), t, strict=True)]
            ys = [level.settle(v) for v in replay(body.graph, ins)]
            low = [v._value if v._interp is level else v for v in ys]
            tan = [v._aux if v._interp is level else None for v in ys]
        filled = [zeros_like_tensor(v) if d is None else d for v, d in zip(low, tan, strict=True)]
        return [*low[:nc], *[filled[i] for i in moving], *low[nc:], *[filled[i] for i in moved]]

    ins = body.graph.inputs
    examples = [
        *[Tensor(v) for v in body.examples[:nc]],
        *_like([ins[i] for i in moving]),
        *[Tensor(v) for v in body.examples[nc : nc + nx]],
        *_like([ins[nc + i] for i in hx]),
        *[Tensor(v) for v in body.examples[nc + nx :]],
        *_like([ins[nc + nx + i] for i in hk]),
    ]
    program, _ = body.made(("scan.jvp", have), push, examples)
    program.examples = [e._value for e in examples]
    got = SCAN.bind(
        *carry, *[ts[i] if ts[i] is not None else zeros_like_tensor(carry[i]) for i in moving],
        *xs, *[ts[nc + i] for i in hx],
        *consts, *[ts[nc + nx + i] for i in hk],
        body=program, nc=nc + len(moving), nx=nx + len(hx), length=length, reverse=reverse,
    )  # fmt: skip
    _, tc, _, ty = _split(got, nc, len(moving), len(outs) - nc)
    t: list[Any] = [None] * len(outs)
    for i, v in [*zip(moving, tc, strict=True), *zip(moved, ty, strict=True)]:
        t[i] = v
    return tuple(t)


@SCAN.vjp(sparse=True, keep=(False, None))
def _(g: Any, y: Any, *args: Any, body: Program, nc: int, nx: int, length: int, reverse: bool, need: Any) -> Any:
    refuse(body)
    _, xs, consts = _split(args, nc, nx)
    ins, outs = body.graph.inputs, body.graph.outputs
    moving = [i for i in range(nc) if is_float(ins[i])]
    nx_need = [i for i in range(nx) if need[nc + i] and is_float(ins[nc + i])]
    nk_need = [i for i in range(len(consts)) if need[nc + nx + i] and is_float(ins[nc + nx + i])]
    have = [i for i in range(nc, len(outs)) if g[i] is not None]
    wanted = [i < nc and i in moving for i in range(len(ins))]
    for i in nx_need:
        wanted[nc + i] = True
    for i in nk_need:
        wanted[nc + nx + i] = True

    def pull(*a: Any) -> Any:
        gc, gk, c, x, gy, k = _split(a, len(moving), len(nk_need), nc, nx, len(have))
        cot: list[Any] = [None] * len(outs)
        for i, v in [*zip(moving, gc, strict=True), *zip(have, gy, strict=True)]:
            cot[i] = v
        got = vjp_through(_replayer(body), cot, [*c, *x, *k], {}, wanted)

        def of(i: int) -> Any:
            return zero(ins[i]) if got[i] is None else got[i]

        return [
            *[of(i) for i in moving],
            *[v if got[nc + nx + i] is None else v + got[nc + nx + i] for v, i in zip(gk, nk_need, strict=True)],
            *[of(nc + i) for i in nx_need],
        ]

    examples = [
        *_like([ins[i] for i in moving]),
        *_like([ins[nc + nx + i] for i in nk_need]),
        *[Tensor(v) for v in body.examples[: nc + nx]],
        *_like([outs[i] for i in have]),
        *[Tensor(v) for v in body.examples[nc + nx :]],
    ]
    key = ("scan.vjp", tuple(have), tuple(nx_need), tuple(nk_need))
    program, _ = body.made(key, pull, examples)
    program.examples = [e._value for e in examples]
    *_, pc, px, _, pk = _split(program.graph.inputs, len(moving), len(nk_need), nc, nx, len(have))
    there, back, more = kept(body, program, dict(zip([*pc, *px, *pk], ins, strict=True)), nc, ("scan.kept", *key))
    stacks = SCAN.bind(*args, body=there, nc=nc, nx=nx, length=length, reverse=reverse)[len(outs) :]
    # The reverse program has what is kept last: as slices, it comes before what is the same in every step.
    back = _ordered(back, len(moving) + len(nk_need), nc + nx + len(have), more)
    got = SCAN.bind(
        *[g[i] if g[i] is not None else zero(ins[i]) for i in moving],
        *[zero(ins[nc + nx + i]) for i in nk_need],
        *stacks[:nc], *xs, *[g[i] for i in have], *stacks[nc:], *consts,
        body=back, nc=len(moving) + len(nk_need), nx=nc + nx + len(have) + more, length=length, reverse=not reverse,
    )  # fmt: skip
    gc, gk, gx = _split(got, len(moving), len(nk_need))
    out: list[Any] = [None] * len(args)
    for i, v in [
        *zip(moving, gc, strict=True),
        *zip([nc + i for i in nx_need], gx, strict=True),
        *zip([nc + nx + i for i in nk_need], gk, strict=True),
    ]:
        out[i] = v
    return tuple(out)


def _ordered(back: Program, nc: int, nx: int, more: int) -> Program:
    """The program with its last `more` inputs behind the first nc + nx."""
    if not more:
        return back
    found = back._derived.get("ordered")
    if found is None:

        def turn(a: list[Any]) -> list[Any]:
            return [*a[: nc + nx], *a[len(a) - more :], *a[nc + nx : len(a) - more]]

        found = back._derived["ordered"] = Program(
            Graph(turn(back.graph.inputs), back.graph.nodes, back.graph.outputs), back.name
        )
        found.examples = turn(back.examples)
    return found


def _scan_batch(size: int, args: list[Any], flags: list[bool], *, body: Program, nc: int, nx: int, length: int, reverse: bool) -> Any:  # fmt: skip
    carry, xs, consts = _split(args, nc, nx)
    carry = [c if f else grow(c, size) for c, f in zip(carry, flags, strict=False)]
    fx, fk = flags[nc : nc + nx], flags[nc + nx :]
    xs = [x.movedim(0, 1) if f else x for x, f in zip(xs, fx, strict=True)]
    program = batched_body(body, size, [*[True] * nc, *fx, *fk])
    got = SCAN.bind(*carry, *xs, *consts, body=program, nc=nc, nx=nx, length=length, reverse=reverse)
    return (*got[:nc], *[y.movedim(1, 0) for y in got[nc:]])


def batched_body(body: Program, size: int, flags: list[bool]) -> Program:
    """The program on inputs of which those with `flags` carry a batch axis in front; all results carry one."""

    def mapped(*a: Any) -> Any:
        with Batching(size, "different") as level:
            ys = replay(body.graph, [Tensor(x, level) if b else x for x, b in zip(a, flags, strict=True)])
            ys = [level.settle(v) for v in ys]
            return [v._value if v._interp is level else grow(v, size) for v in ys]

    examples = [
        Tensor(np.broadcast_to(v, (size, *v.shape)) if f else v) for v, f in zip(body.examples, flags, strict=True)
    ]
    program, _ = body.made(("loop.vmap", size, tuple(flags)), mapped, examples)
    program.examples = [e._value for e in examples]
    return program


# -- while --------------------------------------------------------------------------------------------------------------------


def _while(*vals: Any, test: Program, body: Program, nc: int, nt: int) -> tuple[np.ndarray, ...]:
    """``while test(carry): carry = body(carry)``."""
    carry, tk, bk = vals[:nc], vals[nc : nc + nt], vals[nc + nt :]
    first = True
    while bool(test.arrays(*carry, *tk)[0].any()):
        carry, first = body.arrays(*carry, *bk), False
    return tuple([c.copy() for c in carry] if first else carry)


def _while_glimpse(vals: list[Tensor], *, test: Program, body: Program, nc: int, nt: int) -> list[Tensor]:
    """What one step gives."""
    return replay(body.graph, [*vals[:nc], *vals[nc + nt :]])


GLIMPSES["while_loop"] = _while_glimpse
WHILE = Op("while_loop", _while, batch=lambda op, size, args, flags, kw: _while_batch(size, args, flags, **kw))


@WHILE.jvp(sparse=True)
def _(ts: Any, y: Any, *args: Any, test: Program, body: Program, nc: int, nt: int) -> Any:
    refuse(test, body)
    carry, tk, bk = _split(args, nc, nt)
    ins = body.graph.inputs
    moving = [i for i in range(nc) if is_float(ins[i])]
    hk = [i for i in range(len(bk)) if ts[nc + nt + i] is not None]

    def push(*a: Any) -> Any:
        c, tc, k, t = _split(a, nc, len(moving), len(bk))
        tan: list[Any] = [None] * (nc + len(bk))
        for i, v in [*zip(moving, tc, strict=True), *zip([nc + i for i in hk], t, strict=True)]:
            tan[i] = v
        low = replay(body.graph, [*c, *k])
        got = jvp_through(_replayer(body), tan, [*c, *k], {}) or [None] * nc
        return [*low, *[zeros_like_tensor(low[i]) if got[i] is None else got[i] for i in moving]]

    examples = [
        *[Tensor(v) for v in body.examples[:nc]],
        *_like([ins[i] for i in moving]),
        *[Tensor(v) for v in body.examples[nc:]],
        *_like([ins[nc + i] for i in hk]),
    ]
    program, _ = body.made(("while.jvp", tuple(hk)), push, examples)
    program.examples = [e._value for e in examples]
    t = test.graph
    wider = Graph(
        [*t.inputs[:nc], *[Var(ins[i].shape, ins[i].dtype) for i in moving], *t.inputs[nc:]], t.nodes, t.outputs
    )
    asked = Program(wider, test.name)
    asked.examples = [*test.examples[:nc], *[np.zeros(ins[i].shape, ins[i].dtype) for i in moving], *test.examples[nc:]]
    got = WHILE.bind(
        *carry, *[ts[i] if ts[i] is not None else zeros_like_tensor(carry[i]) for i in moving],
        *tk, *bk, *[ts[nc + nt + i] for i in hk],
        test=asked, body=program, nc=nc + len(moving), nt=nt,
    )  # fmt: skip
    out: list[Any] = [None] * nc
    for i, v in zip(moving, got[nc:], strict=True):
        out[i] = v
    return tuple(out)


@WHILE.vjp(sparse=True)
def _(g: Any, y: Any, *args: Any, **kw: Any) -> Any:
    raise MissingRuleError(
        "while_loop: reverse mode must know how many steps to keep: give it max_steps=, an upper bound, or use fori_loop or scan"
    )


def _while_batch(
    size: int, args: list[Any], flags: list[bool], *, test: Program, body: Program, nc: int, nt: int
) -> Any:
    """Until all examples are done; those that are keep their values."""
    carry, tk, bk = _split(args, nc, nt)
    carry = [c if f else grow(c, size) for c, f in zip(carry, flags, strict=False)]
    ft, fb = flags[nc : nc + nt], flags[nc + nt :]
    asked = batched_body(test, size, [True] * nc + ft)
    step = batched_body(body, size, [True] * nc + fb)

    def masked(*a: Any) -> Any:
        c, k, b = _split(a, nc, nt)
        from ..ops.elementwise.select import where

        live = replay(asked.graph, [*c, *k])[0]
        new = replay(step.graph, [*c, *b])
        return [where(live.reshape(size, *[1] * (n.ndim - 1)), n, o) for n, o in zip(new, c, strict=True)]

    examples = [Tensor(v) for v in (*asked.examples, *step.examples[nc:])]
    program, _ = step.made(("while.vmap", size, tuple(flags)), masked, examples)
    program.examples = [e._value for e in examples]
    return WHILE.bind(*carry, *tk, *tk, *bk, test=asked, body=program, nc=nc, nt=nt)
