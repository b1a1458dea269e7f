"""Arrays in, arrays out: how the transforms take ndarrays, numbers and Arrays.

A transform works on tensors. Where an argument is an array, the function is wrapped: what it is handed becomes an :class:`Array` around the
transform's tensor, what it returns becomes a tensor again; and the transform's results become what the arguments were.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dispatch
from ...core import dtypes as dt
from ...core.dispatch import leaving
from ...core.reverse import Leaf, Reverse
from ...core.shapes import unit
from ...core.short import Lean
from ...core.steps import SMALL
from ...core.tensor import Tensor
from ...core.tree import flatten, tree_map, unflatten
from ...core.types import REAL_NUMS
from ...core.views import meta
from ...core.walk import walk_back, walk_lean
from ...transforms.common import lower
from ...transforms.reverse import scalar_of
from .value import Array, as_constant, check_array, entered, wrap

FOREIGN = (Array, np.ndarray, np.generic, bool, int, float, complex)


def is_foreign(x: Any) -> bool:
    """Whether a leaf is an array of NumPy's, a number, or an Array."""
    return isinstance(x, FOREIGN) and not isinstance(x, Tensor)


def any_foreign(leaves: list[Any]) -> bool:
    """Whether one of the leaves is an array or a number."""
    return any(type(x) is not Tensor and isinstance(x, FOREIGN) for x in leaves)


class Door:
    """The way of a function's arguments into a transform and of its results out, for one call."""

    def __init__(self, name: str, stays: bool = False) -> None:
        self.name = name
        self.stays = (
            stays  # a function made here reads the arguments after the call: the caller may have written to them
        )
        self.entered: list[tuple[np.ndarray, Tensor, np.ndarray]] = []

    def enter(self, x: Any) -> Any:
        """A leaf as a tensor."""
        if type(x) is Array:
            return x._t
        if isinstance(x, np.ndarray):
            t = Tensor(check_array(x, self.name))
            if t._value is x:
                copied = self.stays and x.flags.writeable
                v = x.copy() if copied else x.view()
                t = Tensor(v)
                if copied:
                    meta(t).pinned = True
                self.entered.append((x, t, v))
            return t
        return Tensor(check_array(np.asarray(x), self.name)) if isinstance(x, FOREIGN) else x

    def enter_tree(self, tree: Any) -> Any:
        """All leaves as tensors."""
        return tree_map(self.enter, tree)

    def inside(self, tree: Any, like: Any) -> Any:
        """What the function is handed: Arrays where the caller's leaves were arrays."""
        leaves, spec = flatten(tree)
        kinds = flatten(like)[0]
        return unflatten(
            [wrap(x) if is_foreign(k) and isinstance(x, Tensor) else x for x, k in zip(leaves, kinds, strict=True)],
            spec,
        )

    def outside(self, tree: Any) -> Any:
        """Results as arrays: ndarrays, or Arrays where an outer transform is involved."""
        return tree_map(leave, tree)

    def write_back(self) -> None:
        """What the function wrote to its argument shows in the caller's array, as it does without the transform."""
        for a, t, v in self.entered:
            if t._interp is None and type(t._value) is np.ndarray and not np.may_share_memory(t._value, v):
                if not a.flags.writeable:
                    raise ValueError("assignment destination is read-only")
                np.copyto(a, t._value)


def leave(t: Any) -> Any:
    """A tensor as an array that may be written to; a 0-d one as NumPy's scalar, as NumPy's functions have it."""
    if not isinstance(t, Tensor):
        return t
    if t._interp is not None:
        return wrap(t)
    v = t._value
    if type(v) is not np.ndarray:
        return t
    if not v.ndim:
        return v[()]
    # What shows one element as many, or a constant of somebody's, is copied.
    return v if v.flags.writeable and 0 not in v.strides else v.copy()


def apart(leaves: list[Any], given: Any = ()) -> list[Any]:
    """Results none of which shows what is written to another, or to what the caller gave."""
    owners: dict[int, list[np.ndarray]] = {}
    for x in given:
        if isinstance(x, np.ndarray):
            owners.setdefault(_owner(x), []).append(x)
    out = []
    for x in leaves:
        if type(x) is np.ndarray:
            others = owners.setdefault(_owner(x), [])
            if any(np.may_share_memory(x, o) for o in others):
                x = x.copy()
            else:
                others.append(x)
        out.append(x)
    return out


def _owner(x: Any) -> int:
    """Whose memory an array shows."""
    while isinstance(x.base, np.ndarray):
        x = x.base
    return id(x)


def result(y: Any) -> Any:
    """A result of a function of arrays as a tensor; what is neither stays."""
    if type(y) is Array:
        return y._t
    return y if isinstance(y, Tensor) or not isinstance(y, FOREIGN) else as_constant(y)


def results(tree: Any) -> Any:
    """All results as tensors."""
    return tree_map(result, tree)


def aux_results(tree: Any) -> Any:
    """Arrays among auxiliary results as tensors."""
    return tree_map(lambda y: y._t if type(y) is Array else y, tree)


def adapted(
    f: Callable[..., Any], door: Door, args: tuple[Any, ...], places: tuple[int, ...], has_aux: bool
) -> Callable[..., Any]:
    """`f` as a function of tensors: called with arguments like `args`, of which the arrays at some places are handed on as Arrays."""

    def run(*xs: Any, **kw: Any) -> Any:
        out = f(*[door.inside(x, args[i]) if i in places else x for i, x in enumerate(xs)], **kw)
        if has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise RuntimeError(f"{door.name}: with has_aux=True the function must return (output, aux)")
            return results(out[0]), aux_results(out[1])
        return results(out)

    return run


def as_given(tree: Any, like: Any, given: Any = ()) -> Any:
    """Derivatives as what they belong to was given: arrays for arrays, tensors for tensors; `given` are the cotangents."""
    leaves, spec = flatten(tree)
    kinds = flatten(like)[0]
    found = [leave(x) if is_foreign(k) else x for x, k in zip(leaves, kinds, strict=True)]
    return unflatten(apart(found, given), spec)


def gradient(
    run: Callable[..., Any],
    f: Any,
    argnums: Any,
    places: tuple[int, ...],
    has_aux: bool,
    args: tuple[Any, ...],
    kw: dict[str, Any],
) -> tuple[Any, Any, Any]:
    """Gradient, value and auxiliary output of a function of arrays, by `run` on tensors."""
    if len(places) == 1 and isinstance(argnums, int) and not has_aux and type(args[places[0]]) in (np.ndarray, Array):
        return _of_one(run, f, argnums, places[0], args, kw)
    door = Door("grad")
    xs = tuple([door.enter_tree(a) if i in places else a for i, a in enumerate(args)])
    g, value, aux = run(_single(adapted(f, door, args, places, has_aux), has_aux), argnums, has_aux, xs, kw)
    door.write_back()
    like = args[places[0]] if isinstance(argnums, int) else tuple([args[i] for i in places])
    return as_given(g, like), leave(value), door.outside(aux)


def _of_one(
    run: Callable[..., Any], f: Any, argnum: int, i: int, args: tuple[Any, ...], kw: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """`gradient` with respect to one array, by the shortest way."""
    door = Door("grad")

    def on_tensors(*xs: Any, **k: Any) -> Any:
        y = f(wrap(xs[0]), *xs[1:], **k) if not i else f(*xs[:i], wrap(xs[i]), *xs[i + 1 :], **k)
        y = y._t if type(y) is Array else result(y)
        return y.reshape(()) if isinstance(y, Tensor) and y.ndim and y.numel() == 1 else y

    g, value, _ = run(on_tensors, argnum, False, (*args[:i], door.enter(args[i]), *args[i + 1 :]), kw)
    if door.entered:
        door.write_back()
    return leave(g), leave(value), None


def of_first(run: Callable[..., Any], f: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, Any, Any]:
    """`gradient` with respect to the first argument, an ndarray."""
    x = args[0]
    v = check_array(x, "grad")
    shown = v.view() if v is x else v
    if v.size < SMALL and v.dtype.num in REAL_NUMS:
        return _of_small(f, x, shown, args, kw)
    t = Tensor(shown)

    def on_tensors(first: Any, *rest: Any, **k: Any) -> Any:
        return _number(f(wrap(first), *rest, **k))

    g, value, _ = run(on_tensors, 0, False, (t, *args[1:]), kw)
    if v is x and t._value is not shown:
        _copy_back(x, t)
    return leave(g), leave(value), None


def _of_small(f: Any, x: Any, v: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, Any, Any]:
    """`of_first` for few real numbers: an Array whose tensor is made when somebody asks for it, and a walk over arrays."""
    with Reverse() as level:
        leaf = Leaf()
        a = entered(level, v, leaf)
        y = f(a, *args[1:], **kw)
        if y.__class__ is Array and y._level is level and not y._value.ndim:
            node, value, d = y._node, Tensor(y._value), dt.FROM_NP[y._d]
        else:
            node, value, d = scalar_of(level, _number(y))
        now = None if a._level is not None else lower(level, a._box)
    if dispatch.SETTLE is not None:
        value = leaving(value)
    got: dict[Any, Any] = {}
    if node.__class__ is Lean and level.effects is None and dispatch.SETTLE is None:
        got = walk_lean(node, unit(d))
    elif node is not None or level.effects is not None:
        got = walk_back([] if node is None else [(node, unit(d))], must=level.effects)
    if now is not None and now._value is not v and v.base is x:  # after the walk: the tape holds the array as it was
        _copy_back(x, now)
    g = got.get(leaf)
    return np.zeros_like(v) if g is None else leave(g), leave(value), None


def _number(y: Any) -> Any:
    """What a function of arrays returned as a tensor; one element, of whatever shape, as a number."""
    if y.__class__ is Array:
        return y._t if not y.shape or y.size != 1 else y._t.reshape(())
    y = result(y)
    return y.reshape(()) if isinstance(y, Tensor) and y.ndim and y.numel() == 1 else y


def _copy_back(x: Any, t: Tensor) -> None:
    """What was written to the argument shows in the caller's array."""
    door = Door("grad")
    door.entered.append((x, t, x))
    door.write_back()


def _single(f: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """A result with one element, of whatever shape, as a number: what NumPy's functions take for one."""

    def run(*xs: Any, **kw: Any) -> Any:
        out = f(*xs, **kw)
        y = out[0] if has_aux else out
        if isinstance(y, Tensor) and y.ndim and y.numel() == 1:
            y = y.reshape(())
        return (y, out[1]) if has_aux else y

    return run


def pullback(run: Callable[..., Any], f: Any, primals: tuple[Any, ...], has_aux: bool) -> Any:
    """``vjp`` of a function of arrays."""
    door = Door("vjp", stays=True)
    places = tuple(range(len(primals)))
    out = run(adapted(f, door, primals, places, has_aux), *door.enter_tree(primals), has_aux=has_aux)
    door.write_back()

    def pull(*cotangents: Any, **kw: Any) -> Any:
        """Cotangents of the inputs from those of the output."""
        back = out[1](*tree_map(lambda g: Door("vjp").enter(g), cotangents), **kw)
        return as_given(back, primals, flatten(cotangents)[0])

    return (door.outside(out[0]), pull, door.outside(out[2])) if has_aux else (door.outside(out[0]), pull)


def pushforward(run: Callable[..., Any], f: Any, primals: Any, tangents: Any, strict: bool, has_aux: bool) -> Any:
    """``jvp`` of a function of arrays; a tangent may be of any real type that its primal can hold."""
    door = Door("jvp")
    places = tuple(range(len(primals)))
    xs = door.enter_tree(primals)
    ts = tree_map(Door("jvp").enter, tangents)
    out = run(adapted(f, door, primals, places, has_aux), xs, ts, strict=strict, has_aux=has_aux)
    door.write_back()
    value, tangent, *aux = (door.outside(y) for y in out)
    return (value, _apart(tangent, tangents), *aux)


def _apart(tree: Any, given: Any) -> Any:
    """Tangents of results that share no memory with those of the arguments."""
    leaves, spec = flatten(tree)
    return unflatten(apart(leaves, flatten(given)[0]), spec)


def linear_map(run: Callable[..., Any], f: Any, primals: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """``linearize`` of a function of arrays."""
    door = Door("linearize", stays=True)
    y, push = run(adapted(f, door, primals, tuple(range(len(primals))), False), *door.enter_tree(primals))
    door.write_back()
    return door.outside(y), lambda *ts: _apart(door.outside(push(*tree_map(Door("linearize").enter, ts))), ts)


def jacobian(
    make: Callable[..., Any], f: Any, places: tuple[int, ...], has_aux: bool, args: tuple[Any, ...], kw: dict[str, Any]
) -> Any:
    """A Jacobian of a function of arrays: ``make(g)`` is the transform of a function of tensors."""
    door = Door("jacobian")
    xs = tuple([door.enter_tree(a) if i in places else a for i, a in enumerate(args)])
    out = make(adapted(f, door, args, places, has_aux))(*xs, **kw)
    door.write_back()
    return door.outside(out)


def mapped(make: Callable[..., Any], f: Any, dims: list[Any], args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """``vmap`` of a function of arrays: those that are mapped over become tensors, the rest is handed on as it is."""
    door = Door("vmap")
    leaves, spec = flatten(args)
    over = [d is not None and isinstance(x, Array | np.ndarray | np.generic) for x, d in zip(leaves, dims, strict=True)]
    xs = unflatten([door.enter(x) if o else x for x, o in zip(leaves, over, strict=True)], spec)
    named = {k: tree_map(lambda v: door.enter(v) if isinstance(v, Array | np.ndarray) else v, v) for k, v in kw.items()}

    def run(*ys: Any, **kws: Any) -> Any:
        got, s = flatten(ys)
        inside = unflatten([wrap(y) if o else y for y, o in zip(got, over, strict=True)], s)
        for k, v in kws.items():
            kws[k] = door.inside(v, kw[k])
        return results(f(*inside, **kws))

    out = make(run)(*xs, **named)
    door.write_back()
    return door.outside(out)


def arrays_among(leaves: list[Any]) -> tuple[int, ...]:
    """Which leaves are arrays for a compiled function: NumPy's numbers of floating types are where there is no tensor, whole ones are static."""
    kinds = (Array, np.ndarray) if any(isinstance(x, Tensor) for x in leaves) else (Array, np.ndarray, np.inexact)
    return tuple([i for i, x in enumerate(leaves) if isinstance(x, kinds)])


class Compiled:
    """``jit`` of a function of arrays: a compiled function of the leaves of its arguments, in which those at some places are Arrays."""

    def __init__(self, make: Callable[..., Any], f: Callable[..., Any], spec: Any, places: tuple[int, ...]) -> None:
        def of_tensors(*leaves: Any) -> Any:
            args, kw = unflatten([wrap(x) if i in places else x for i, x in enumerate(leaves)], spec)
            return tree_map(_traced, f(*args, **kw))

        of_tensors.__name__ = getattr(f, "__name__", type(f).__name__)
        of_tensors.__qualname__ = getattr(f, "__qualname__", of_tensors.__name__)
        self.places = places
        self.run = make(of_tensors)
        self.run.bare = True
        self.way = self._way()

    def __call__(self, *leaves: Any) -> Any:
        door = Door("jit")
        out = self.run(*[door.enter(x) if i in self.places else x for i, x in enumerate(leaves)])
        door.write_back()
        return door.outside(out)

    def _way(self) -> Callable[..., Any]:
        """A call with arrays alone, by the short way of the function of tensors; None where there is none. (A method, or a loop, costs as much as the call.)"""
        run, ndarray = self.run, np.ndarray

        def of_one(*args: Any) -> Any:
            if len(args) != 1 or args[0].__class__ is not ndarray:
                return None
            y = run._fast(Tensor(args[0]))
            if y.__class__ is Tensor:
                y = y._value
                return y if y.ndim else y[()]
            return y if y is None else tree_map(leave, y)

        def of_several(*args: Any) -> Any:
            for a in args:
                if a.__class__ is not ndarray:
                    return None
            y = run._fast(*[Tensor(a) for a in args])
            if y.__class__ is Tensor:
                y = y._value
                return y if y.ndim else y[()]
            return y if y is None else tree_map(leave, y)

        return of_one if len(self.places) == 1 else of_several


def _traced(y: Any) -> Any:
    """A result of a function that is recorded as a tensor; Python's numbers are what they are."""
    return y if isinstance(y, bool | int | float | complex) and not isinstance(y, np.generic) else result(y)


def as_tensor(x: Any) -> Any:
    """An array as a tensor of its own; what is none stays."""
    return Door("jit").enter(x) if isinstance(x, (Array, np.ndarray, np.inexact)) else x
