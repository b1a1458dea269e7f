"""Control flow on values: cond, switch, while_loop, scan, map, fori_loop, associative_scan.

Without jit they are plain Python: a branch, a loop. While a function is recorded, bodies are recorded once and become parts of its graph
(:mod:`.loops`, :mod:`.branches`), so that a loop stays a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import recorder, recorder_of
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from .branches import SWITCH
from .draws import apart, draw_steps_p, refuse
from .graph import Graph, Var
from .loops import SCAN, WHILE
from .program import Program, capture
from .record import NotRecorded, example


def _tensors(name: str, tree: Any) -> tuple[list[Tensor], Any]:
    leaves, spec = flatten(tree)
    out = []
    for x in leaves:
        if isinstance(x, Tensor):
            out.append(x)
        elif isinstance(x, bool | int | float | complex | np.ndarray | np.generic):
            d = None if isinstance(x, np.ndarray | np.generic) else dt.scalar_dtype(x).np
            out.append(Tensor(np.asarray(x, d)))
        else:
            raise TypeError(f"{name}: expected tensors (in tuples, lists or dicts), got {type(x).__name__}")
    return out, spec


def _batched(x: Tensor) -> bool:
    while x._interp is not None:
        if x._interp.kind == "vmap":
            return True
        x = x._value
    return False


def _need_operands(name: str, argument: str, x: Any) -> None:
    """Refuse one tensor where a tuple of arguments is meant: its rows would be handed on, one by one."""
    if isinstance(x, Tensor):
        raise TypeError(
            f"{name}: argument {argument} must be a tuple of what the functions take, not a Tensor: write (x,)"
        )


# -- branches -----------------------------------------------------------------------------------------------------------------


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """``true_fn(*operands)`` where the one element of `pred` is true, else ``false_fn(*operands)``.

    >>> chainrule.cond(chainrule.tensor(2.0) > 1, lambda x: x * 2, lambda x: -x, (chainrule.tensor(3.0),))
    tensor(6.)
    """
    _need_operands("cond", "operands", operands)
    if not isinstance(pred, Tensor):
        return true_fn(*operands) if pred else false_fn(*operands)
    if pred.numel() != 1:
        raise RuntimeError(f"cond: pred must have one element, got shape {list(pred.shape)}; use where() for more")
    index = (pred.reshape(()) == 0) if pred.dtype is not dt.bool_ else ~pred.reshape(())
    return _branches("cond", index.to(dt.int64), [true_fn, false_fn], operands)


def switch(index: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any] = ()) -> Any:
    """``branches[index](*operands)``; an index beyond the ends takes the first branch or the last.

    >>> chainrule.switch(chainrule.tensor(1), [lambda x: x, lambda x: x * 10], (chainrule.tensor(3.0),))
    tensor(30.)
    """
    if not branches:
        raise ValueError("switch: got no branches")
    _need_operands("switch", "operands", operands)
    if not isinstance(index, Tensor):
        return branches[min(max(index, 0), len(branches) - 1)](*operands)
    if index.numel() != 1 or index.dtype.category > dt.INT:
        raise RuntimeError(f"switch: index must be one integer, got {index.dtype} of shape {list(index.shape)}")
    return _branches("switch", index.reshape(()).to(dt.int64), list(branches), operands)


def _branches(name: str, index: Tensor, fs: list[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    if recorder_of(index) is None and not _batched(index):
        k = int(index.detach().item())
        return fs[min(max(k, 0), len(fs) - 1)](*operands)
    try:
        return _recorded_branches(name, index, fs, operands)
    except NotRecorded:
        if recorder() is not None:
            raise
        return _all_branches(name, index, fs, operands)


def _all_branches(name: str, index: Tensor, fs: list[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    """Every branch as it is, and of their results those that the index names: for what cannot be recorded."""
    from ..ops.elementwise.select import where

    results = [_tensors(name, f(*operands)) for f in fs]
    ys, spec = results[0]
    for k, (other, s) in enumerate(results[1:], 1):
        if s != spec or [(y.shape, y.dtype) for y in other] != [(y.shape, y.dtype) for y in ys]:
            raise RuntimeError(f"{name}: the branches must return tensors of the same structure, shapes and types")
        ys = [where(index >= k, new, old) for new, old in zip(other, ys, strict=True)]
    return unflatten(ys, spec)


def _recorded_branches(name: str, index: Tensor, fs: list[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    leaves, spec = _tensors(name, tuple(operands))
    parts: list[tuple[Program, list[Tensor]]] = []
    outs: Any = None
    for f in fs:
        shape: list[Any] = []

        def flat(*xs: Any, f: Any = f, shape: list[Any] = shape) -> list[Tensor]:
            ys, s = _tensors(name, f(*unflatten(list(xs), spec)))
            shape.append(s)
            return ys

        program, foreign = capture(flat, leaves, name)
        parts.append((program, foreign))
        if outs is None:
            outs = shape[0]
        elif outs != shape[0]:
            raise RuntimeError(f"{name}: the branches must return the same structure, got {outs} and {shape[0]}")
        got, want = ([(v.shape, v.dtype) for v in p[0].graph.outputs] for p in (parts[-1], parts[0]))
        if got != want:
            raise RuntimeError(
                f"{name}: the branches must return tensors of the same shapes and types, got {want} and {got}"
            )
    # Every branch takes what all of them read.
    every = [t for _, foreign in parts for t in foreign]
    programs, at = [], 0
    for program, foreign in parts:
        g = program.graph
        own = g.inputs[len(leaves) :]
        extra = [Var(e.shape, e.dtype) for e in map(example, every)]
        extra[at : at + len(foreign)] = own
        at += len(foreign)
        p = Program(Graph([*g.inputs[: len(leaves)], *extra], g.nodes, g.outputs), name)
        p.examples = [example(x) for x in (*leaves, *every)]
        programs.append(p)
    if recorder() is None:
        refuse(*programs)
    return unflatten(list(SWITCH.bind(index, *leaves, *every, branches=tuple(programs))), outs)


# -- loops --------------------------------------------------------------------------------------------------------------------


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: Sequence[Any],
    *,
    max_steps: int | None = None,
) -> Any:
    """``while cond_fn(*carry): carry = body_fn(*carry)``.

    With `max_steps` no more than so many steps are made, and the loop has reverse mode under jit too.

    >>> chainrule.while_loop(lambda x: x < 100, lambda x: (x * 2,), (chainrule.tensor(3.0),))
    (tensor(192.),)
    """
    _need_operands("while_loop", "carried_inputs", carried_inputs)
    carry, spec = _tensors("while_loop", tuple(carried_inputs))

    def test(*xs: Any) -> Tensor:
        c = cond_fn(*unflatten(list(xs), spec))
        c = c if isinstance(c, Tensor) else Tensor(np.asarray(bool(c)))
        return c.reshape(()) if c.dtype is dt.bool_ else c.reshape(()) != 0

    def body(*xs: Any) -> list[Tensor]:
        y = body_fn(*unflatten(list(xs), spec))
        out, s = _tensors("while_loop", y if isinstance(y, tuple | list) else (y,))
        if len(out) != len(carry):
            raise RuntimeError(f"while_loop: body_fn must return what it was given, {spec}, got {s}")
        return out

    if recorder() is None and not any(map(_batched, carry)):
        step = 0
        while max_steps is None or step < max_steps:
            live = test(*carry)
            if _batched(live):  # by what the body reads: from here on examples go on for different numbers of steps
                break
            if not bool(live):
                return unflatten(carry, spec)
            carry, step = body(*carry), step + 1
        else:
            return unflatten(carry, spec)
        max_steps = None if max_steps is None else max_steps - step
    if max_steps is not None:
        from ..ops.elementwise.select import where

        def masked(xs: Any, _: Any) -> Any:
            live = test(*xs)
            return [where(live, n, o) for n, o in zip(body(*xs), xs, strict=True)], ()

        return unflatten(scan(masked, carry, None, length=max_steps)[0], spec)
    if recorder() is None:
        return unflatten(_while_batched(test, body, carry), spec)
    asked, tk = capture(lambda *xs: [test(*xs)], carry, "while_loop")
    program, bk = capture(body, carry, "while_loop")
    _check_carry("while_loop", program, len(carry))
    return unflatten(list(WHILE.bind(*carry, *tk, *bk, test=asked, body=program, nc=len(carry), nt=len(tk))), spec)


def _while_batched(test: Any, body: Any, carry: list[Tensor]) -> list[Tensor]:
    """Until all examples are done: those that are keep their values."""
    from ..func import debug_unwrap
    from ..ops.elementwise.select import where

    while True:
        live = test(*carry)
        if not bool(np.any(debug_unwrap(live)._value)):
            return carry
        carry = [where(live, n, o) for n, o in zip(body(*carry), carry, strict=True)]


def _check_carry(name: str, body: Program, n: int) -> None:
    ins, outs = body.graph.inputs[:n], body.graph.outputs[:n]
    for k, (a, b) in enumerate(zip(ins, outs, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise RuntimeError(
                f"{name}: the body must carry what it was given, but value {k} is {a!r} before and {b!r} after a step"
            )


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    *,
    dim: int = 0,
    reverse: bool = False,
    length: int | None = None,
    checkpoint: int | str | None = None,
) -> tuple[Any, Any]:
    """``carry, y_i = combine_fn(carry, x_i)`` for every slice x_i of `xs` along `dim`; returns the last carry, and the y_i stacked.

    Without `xs`, `length` is the number of steps. Reverse mode keeps the carried values of every step and computes the rest again; with
    `checkpoint` it keeps those of every k-th step alone ("sqrt": of as many as a segment has steps; "binomial": nested halves).

    >>> chainrule.scan(lambda c, x: (c + x, c * x), chainrule.tensor(0.0), chainrule.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    carry, cspec = _tensors("scan", init)
    leaves, xspec = _tensors("scan", xs)
    if dim:
        leaves = [x.movedim(dim, 0) for x in leaves]
    sizes = {x.shape[0] for x in leaves} | ({length} if length is not None else set())
    if len(sizes) != 1:
        raise RuntimeError(f"scan: the slices of xs (and length) must be of one number, got {sorted(sizes, key=str)}")
    n = sizes.pop()
    ys: list[Any] = []

    def step(*a: Any) -> list[Tensor]:
        got = combine_fn(unflatten(list(a[: len(carry)]), cspec), unflatten(list(a[len(carry) :]), xspec))
        if not isinstance(got, tuple | list) or len(got) != 2:
            raise RuntimeError("scan: combine_fn must return (carry, y)")
        c, s = _tensors("scan", got[0])
        if len(c) != len(carry):
            raise RuntimeError(f"scan: combine_fn must carry what it was given, {cspec}, got {s}")
        y, yspec = _tensors("scan", got[1])
        ys[:] = [yspec]
        return [*c, *y]

    run = _recorded_scan if recorder() is not None else _plain_scan
    k = _segment(n, checkpoint)
    if not k:
        out = run(step, carry, leaves, n, reverse)
    else:
        out = _segments(run, step, carry, leaves, n, reverse, k, checkpoint)
    last = unflatten(out[: len(carry)], cspec)
    rows = out[len(carry) :]
    if dim:
        rows = [y.movedim(0, min(dim, y.ndim - 1)) for y in rows]
    return last, unflatten(rows, ys[0])


def _plain_scan(step: Any, carry: list[Tensor], xs: list[Tensor], n: int, reverse: bool) -> list[Tensor]:
    if n == 0:  # no step says what it would return
        return _recorded_scan(step, carry, xs, n, reverse)
    from ..ops.shape.slices import stack

    rows: list[list[Tensor]] = []
    m = len(carry)
    for i in range(n - 1, -1, -1) if reverse else range(n):
        out = step(*carry, *[x[i] for x in xs])
        carry = out[:m]
        rows.append(out[m:])
    if reverse:
        rows.reverse()
    return [*carry, *[stack(list(r)) for r in zip(*rows, strict=True)]]


def _recorded_scan(step: Any, carry: list[Tensor], xs: list[Tensor], n: int, reverse: bool) -> list[Tensor]:
    firsts = [Tensor(e[0] if len(e := example(x)) else np.zeros(e.shape[1:], e.dtype)) for x in xs]
    program, foreign = capture(step, [*[Tensor(example(c)) for c in carry], *firsts], "scan")
    _check_carry("scan", program, len(carry))
    if program.draws:
        program, rows = _draws_before(program, len(carry) + len(xs), n, reverse)
        xs = [*xs, *rows]
    return list(SCAN.bind(*carry, *xs, *foreign, body=program, nc=len(carry), nx=len(xs), length=n, reverse=reverse))


def _draws_before(program: Program, k: int, n: int, reverse: bool) -> tuple[Program, list[Tensor]]:
    """A body that takes its random numbers after its first `k` inputs, and those of all steps; as it is where they depend on the rest."""
    parts = apart(program.graph)
    if parts is None or any(m.op.name not in ("draw", "draw_steps") for m in parts[0]):
        return program, []
    nodes, g = parts
    draws = tuple(m.kw for m in nodes)
    rows = recorder().note(draw_steps_p, (), {"draws": draws, "length": n, "reverse": reverse})
    m = len(program.graph.inputs)
    new = Program(Graph([*g.inputs[:k], *g.inputs[m:], *g.inputs[k:m]], g.nodes, g.outputs), program.name)
    shown = [np.zeros(v.shape, v.dtype) for v in g.inputs[m:]]
    new.examples = [*program.examples[:k], *shown, *program.examples[k:]]
    return new, list(rows)


def _segment(n: int, checkpoint: int | str | None) -> int:
    """The number of steps of a segment, 0 for no segments."""
    if checkpoint is None or checkpoint is False or n < 4:
        return 0
    if checkpoint == "sqrt" or checkpoint is True:
        return max(2, round(n**0.5))
    if checkpoint == "binomial":
        return n // 2
    if isinstance(checkpoint, int) and checkpoint > 0:
        return checkpoint if checkpoint < n else 0
    raise ValueError(f"scan: checkpoint must be a number of steps, 'sqrt' or 'binomial', got {checkpoint!r}")


def _segments(run: Any, step: Any, carry: list[Tensor], xs: list[Tensor], n: int, reverse: bool, k: int, checkpoint: Any) -> list[Tensor]:  # fmt: skip
    """A loop over segments, each a loop of its own: reverse mode keeps what lies between segments, and runs each again."""
    from ..ops.shape.slices import cat
    from ..utils.checkpoint import checkpoint as again

    m, whole = len(carry), n // k * k
    inner = _segment(k, checkpoint) if checkpoint == "binomial" else 0
    plain = run is _plain_scan

    def segment(*a: Any) -> list[Tensor]:
        c, x = list(a[:m]), list(a[m:])
        one = lambda *b: tuple(_go(run, step, list(b[:m]), list(b[m:]), k, reverse, inner, checkpoint))
        return list(again(one, *c, *x, use_reentrant=False) if plain else one(*c, *x))

    body = [x[:whole].reshape(whole // k, k, *x.shape[1:]) for x in xs]
    rest = [x[whole:] for x in xs]
    if n == whole:
        out = run(segment, carry, body, n // k, reverse)
        return [*out[:m], *[y.reshape(n, *y.shape[2:]) for y in out[m:]]]
    if reverse:
        late = run(step, carry, rest, n - whole, reverse)
        early = run(segment, late[:m], body, whole // k, reverse)
        end = early[:m]
    else:
        early = run(segment, carry, body, whole // k, reverse)
        late = run(step, early[:m], rest, n - whole, reverse)
        end = late[:m]
    return [*end, *[cat([y.reshape(whole, *y.shape[2:]), z]) for y, z in zip(early[m:], late[m:], strict=True)]]


def _go(run: Any, step: Any, carry: list[Tensor], xs: list[Tensor], n: int, reverse: bool, k: int, checkpoint: Any) -> list[Tensor]:  # fmt: skip
    return _segments(run, step, carry, xs, n, reverse, k, checkpoint) if k else run(step, carry, xs, n, reverse)


def fori_loop(
    lower: int, upper: int, body: Callable[[Any, Any], Any], init: Any, *, checkpoint: int | str | None = None
) -> Any:
    """``for i in range(lower, upper): carry = body(i, carry)``; `i` is an integer tensor.

    >>> chainrule.fori_loop(0, 5, lambda i, x: x * 2, chainrule.tensor(1.0))
    tensor(32.)
    """
    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        from ..ops.shape.create import tensor as make

        low = lower if isinstance(lower, Tensor) else make(lower)
        return while_loop(lambda i, c: i < upper, lambda i, c: (i + 1, body(i, c)), (low.to(dt.int64), init))[1]
    i = Tensor(np.arange(lower, max(lower, upper), dtype=np.int64))
    return scan(lambda c, i: (body(i, c), ()), init, i, checkpoint=checkpoint)[0]


def map_(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """``f(x_i, *args)`` for every slice x_i of `xs` along its first dim, one after the other, stacked; vmap does all at once.

    >>> chainrule.map(lambda x: x.sum(), chainrule.ones(3, 2))
    tensor([2., 2., 2.])
    """
    return scan(lambda c, x: ((), f(x, *args)), (), xs)[1]


map_.__name__ = map_.__qualname__ = "map"
map_.__module__ = "chainrule.func"


def associative_scan(combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int = 0, reverse: bool = False) -> Any:
    """``x_0, x_0 o x_1, x_0 o x_1 o x_2, ...`` for an associative `combine_fn`, in a number of steps that grows as the logarithm.

    >>> chainrule.associative_scan(lambda a, b: a * b, chainrule.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 1.,  2.,  6., 24.])
    """
    from ..ops.shape.slices import cat, flip
    from ..transforms.batch import vmap

    leaves, spec = _tensors("associative_scan", xs)
    leaves = [x.movedim(dim, 0) if dim else x for x in leaves]
    if len({x.shape[0] for x in leaves}) != 1:
        raise RuntimeError(f"associative_scan: all tensors must have one size along dim {dim}")
    if reverse:
        leaves = [flip(x, 0) for x in leaves]

    def both(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        def one(*ab: Any) -> Any:
            y = combine_fn(unflatten(list(ab[: len(a)]), spec), unflatten(list(ab[len(a) :]), spec))
            return tuple(_tensors("associative_scan", y)[0])

        return list(vmap(one)(*a, *b))

    def run(x: list[Tensor]) -> list[Tensor]:
        n = x[0].shape[0]
        if n < 2:
            return x
        odd = run(both([v[: n - 1 : 2] for v in x], [v[1::2] for v in x]))  # after an even number of entries
        if n > 2:
            m = (n - 1) // 2
            even = both([v[:m] for v in odd], [v[2::2] for v in x])
            even = [cat([v[:1], e]) for v, e in zip(x, even, strict=True)]
        else:
            even = [v[:1] for v in x]
        return [_interleave(e, o) for e, o in zip(even, odd, strict=True)]

    out = run(leaves)
    if reverse:
        out = [flip(y, 0) for y in out]
    return unflatten([y.movedim(0, dim) if dim else y for y in out], spec)


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    from ..ops.shape.slices import cat, stack

    m = odd.shape[0]
    y = stack([even[:m], odd], 1).reshape(2 * m, *odd.shape[1:])
    return y if even.shape[0] == m else cat([y, even[m:]])


__all__ = ["associative_scan", "cond", "fori_loop", "map_", "scan", "switch", "while_loop"]
