"""jit: a function is recorded once for each signature, and from then on runs from the recording."""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.casting import STATE as AUTOCAST
from ..core.dispatch import CUT, STACK, grad_cut, grad_enabled, innermost, recorder
from ..core.errors import Unfit
from ..core.grad_mode import INFERENCE
from ..core.reverse import Leaf, imperative
from ..core.shapes import sizes_of
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from ..core.views import meta
from ..transforms.common import door
from .calls import call, is_imperative, overlapping
from .donate import give_up
from .hand_over import is_spent
from .holds import Held, gradient, looks, survey
from .program import Program, differentiable, only_base
from .record import JitError, NotRecorded, Recorder, example, faithful, walks_back
from .simplify import frozen, simplify

SIGNATURES = 64  # recordings that a function keeps, the least recently used goes first
MANY = 16  # recordings that differ in numbers alone, from which on the user is told


def _walked(leaves: list[Any], boxes: list[Tensor]) -> list[bool]:
    return [walks_back(x) for x in (*leaves, *boxes) if isinstance(x, Tensor)]


class Static:
    """A static argument: a leaf, whatever it is, and part of the signature."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and type(self.value) is type(other.value) and bool(self.value == other.value)


def _unmarked(x: Any) -> Any:
    return x.value if type(x) is Static else x


class Recording:
    """What one signature gave: the program, what it reads beside the arguments, and what it writes."""

    def __init__(self) -> None:
        self.program: Program | None = None  # None: the function runs without jit, for `reason`
        self.reason = ""
        self.held: Held | None = None
        self.boxes: list[Tensor] = []  # tensors of the function: further inputs
        self.same: list[tuple[int, int]] = []  # which arguments are tensors that the function holds too
        self.owners: list[
            Any
        ] = []  # for each of them None or, of a gradient, the tensor or the argument's number whose it is
        self.foreign: list[Tensor] = []  # tensors of levels around that could be reached in no other way
        self.spec: Any = None
        self.outputs: list[
            Any
        ] = []  # ("out", i), ("arg", i), ("box", tensor) or ("static", value), for each leaf of the result
        self.writes: list[
            tuple[Any, str, int]
        ] = []  # (an argument's number or a tensor, "value" or "grad", the output)
        self.native: Any = None
        self.short: tuple[Any] | None = None  # the short way in, once it was looked for
        self.bare: Any = None  # that for arrays in place of tensors
        self.spent: set[int] = set()  # outputs whose graph the function has walked and freed
        self._plain: dict[tuple[bool, ...], list[bool]] = {}
        self.walked: list[bool] | None = (
            None  # from which inputs reverse mode walks back, where the function wanted to know
        )
        self.opens = False  # whether the function, called under no_grad, turns derivatives on again
        self.lasting = True  # whether a call leaves Python's objects as they are: what changed them holds for one call

    def plain(self, xs: list[Tensor]) -> list[bool]:
        """For each output whether it has no derivative in those of the inputs that belong to a level."""
        tracked = tuple([x._interp is not None for x in xs])
        if (found := self._plain.get(tracked)) is None:
            found = self._plain[tracked] = [not d for d in differentiable(self.program.graph, tracked)]  # type: ignore[union-attr]
        return found

    def is_for(self, leaves: list[Any]) -> bool:
        """Whether a call with these arguments has derivatives where the function saw some."""
        return self.walked is None or self.walked == _walked(leaves, self.boxes)

    def give_up(self) -> None:
        """Take back what recording did to Python's objects: the call did not happen."""
        if not self.lasting and self.held is not None:
            self.held.restore()


def arrays(leaves: list[Any]) -> tuple[int, ...]:
    """Which of the arguments are arrays. NumPy's numbers are, of floating types, where no tensor decides what they become."""
    if all(isinstance(x, Tensor | bool | int | float | str | Static) and not isinstance(x, np.generic) for x in leaves):
        return ()
    return door().arrays_among(leaves)


def _nothing(*args: Any) -> None:
    """The short way in of a function that has none."""


class Jitted:
    """A function that runs from recordings; see :func:`jit`."""

    def __init__(self, f: Callable[..., Any], static_argnums: Any, static_argnames: Any, donate: Any = None) -> None:
        self.donate = () if donate is None else (donate,) if isinstance(donate, int) else tuple(donate)
        if not callable(f):
            raise TypeError(f"jit: expected a function, got {type(f).__name__}")
        self.f = self.__wrapped__ = f
        self.static_argnums, self.static_argnames, self.names = _static(f, static_argnums, static_argnames)
        self._recordings: OrderedDict[Any, list[Recording]] = OrderedDict()
        self._lock = threading.RLock()
        self._changes = 0
        self._doors: OrderedDict[Any, Any] = OrderedDict()
        self.bare = False  # whether arrays are handed to it as tensors (`_of_arrays`)
        self._fast: Callable[..., Any] = _nothing
        self._fast_for: Recording | None = None
        if isinstance(getattr(f, "__name__", None), str):
            functools.update_wrapper(self, f, updated=())

    def __repr__(self) -> str:
        return f"<jit of {getattr(self.f, '__qualname__', repr(self.f))}>"

    def __get__(self, obj: Any, cls: Any = None) -> Any:
        return self if obj is None else functools.partial(self, obj)

    def __deepcopy__(self, memo: dict[int, Any]) -> Jitted:
        return Jitted(copy.deepcopy(self.f, memo), self.static_argnums, self.static_argnames, self.donate)

    def __reduce__(self) -> Any:
        name = getattr(self, "__qualname__", "")
        if getattr(sys.modules.get(getattr(self, "__module__", "")), name, None) is self:
            return name  # a decorated function
        return Jitted, (self.f, self.static_argnums, self.static_argnames, self.donate)

    def __call__(self, *args: Any, **kw: Any) -> Any:
        if not kw:
            y = self._fast(*args)
            if y is not None:
                return y
        return self._general(args, kw)

    def _general(self, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if recorder() is not None:  # a part of the function around
            return self.f(*args, **kw)
        if self.static_argnums or self.static_argnames:
            args, kw = self._mark(args, kw)
        leaves, spec = flatten((args, kw))
        if arrays(leaves):
            return self._of_arrays(args, leaves, spec)
        key = self._key(args, kw, leaves, spec)
        r = self._find(key, leaves)
        again = r is not None
        if r is None:
            with self._lock:
                r = self._find(key, leaves) or self._record(key, args, kw, leaves, spec)
        if r.program is None or (r.writes and overlapping(r, leaves)):
            return self._as_it_is(r, args, kw)
        try:
            y = call(r, leaves)
        except (Unfit, NotRecorded):
            return self._as_it_is(r, args, kw)
        except BaseException:
            r.give_up()
            raise
        if self.donate:
            if not STACK.get():
                give_up(flatten([args[i] for i in self.donate if i < len(args)])[0], flatten(y)[0])
        elif again and self._fast_for is not r and r.lasting:  # what is called once needs no short way
            self._shorten(r, leaves, spec)
        return y

    def _of_arrays(self, args: tuple[Any, ...], leaves: list[Any], spec: Any) -> Any:
        """Arrays in, arrays out: by a function of tensors, jitted too, that hands Arrays to this one."""
        inner = self._door(leaves, spec)
        y = inner(*leaves)
        if self.donate:
            if not STACK.get():
                give_up(flatten([args[i] for i in self.donate if i < len(args)])[0], flatten(y)[0])
        elif len(inner.places) == len(args) == len(leaves):
            r = inner.run._fast_for
            self._fast, self._fast_for = (r is not None and r.bare) or inner.way, None
        return y

    def _door(self, leaves: list[Any], spec: Any) -> Any:
        key = (spec, places := arrays(leaves))
        with self._lock:
            found = self._doors.get(key)
            if found is None:
                found = self._doors[key] = door().Compiled(jit, self.f, spec, places)
                if len(self._doors) > SIGNATURES:
                    self._doors.popitem(last=False)
        return found

    def _as_it_is(self, r: Recording, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """The function without jit."""
        r.give_up()
        return self.f(*map(_unmarked, args), **{k: _unmarked(v) for k, v in kw.items()})

    def _shorten(self, r: Recording, leaves: list[Any], spec: Any) -> None:
        """Let calls like this one take the short way from now on."""
        from .entry import entry

        if not self.static_argnums and not self.static_argnames:
            if r.short is None:
                r.short = (entry(r, leaves, spec),)
                r.bare = entry(r, leaves, spec, bare=True) if self.bare else None
            self._fast, self._fast_for = r.short[0] or _nothing, r

    def _mark(self, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Static arguments as single leaves, compared by equality."""
        places = {i % len(args) for i in self.static_argnums if -len(args) <= i < len(args)}
        names = set(self.static_argnames)
        if names and self.names:
            places |= {i for i, n in enumerate(self.names) if n in names}
        if places and self.names:
            names |= {self.names[i] for i in places if i < len(self.names)}
        marked = tuple([Static(x) if i in places else x for i, x in enumerate(args)])
        return marked, {k: Static(v) if k in names else v for k, v in kw.items()}

    # -- signatures -------------------------------------------------------------------------------------------------------
    def _key(self, args: tuple[Any, ...], kw: dict[str, Any], leaves: list[Any], spec: Any) -> Any:
        parts: list[Any] = [spec, dt.get_default_dtype(), grad_enabled(), AUTOCAST.get()]
        first: dict[int, int] = {}  # tensors with derivatives are themselves, wherever among the arguments they are
        for x in leaves:
            if isinstance(x, Tensor):
                who = (looks(gradient(x)), first.setdefault(id(x), len(first))) if is_imperative(x) else None
                parts.append((sizes_of(x), x.dtype, type(x), who, _layout(innermost(x))))
            else:
                parts.append(_static_key(x))
        return tuple(parts)

    def _find(self, key: Any, leaves: list[Any]) -> Recording | None:
        found = self._recordings.get(key)
        if found is None:
            return None
        for r in found:
            if r.held is None or (r.held.hold() and r.held.among(leaves) == r.same and r.is_for(leaves)):
                if len(self._recordings) > 1:
                    self._recordings.move_to_end(key)
                return r
        return None

    def _record(self, key: Any, args: tuple[Any, ...], kw: dict[str, Any], leaves: list[Any], spec: Any) -> Recording:
        statics = [_unmarked(x) for x in leaves if not isinstance(x, Tensor)]
        held = survey(self.f, *statics)
        try:
            r = faithful(lambda: _recorded(self.f, leaves, spec, held), held.restore)
        except NotRecorded as e:
            r = Recording()
            r.reason = f"{e} cannot be recorded"
        r.held, r.same = held, held.among(leaves)
        r.lasting = held.hold()
        self._changes += not r.lasting
        if self._changes == 2:  # the first call of an optimiser makes its state
            warnings.warn(
                f"jit: {self!r} changes Python objects that it holds (an attribute, a list, a global). It is recorded anew at every "
                f"call for which they differ; keep what changes in tensors, or pass it as an argument.",
                stacklevel=3,
            )
        if not r.foreign and r.lasting:
            same = self._recordings.setdefault(key, [])
            same.insert(0, r)
            del same[8:]
            if len(self._recordings) > SIGNATURES:
                self._recordings.popitem(last=False)
            if len(self._recordings) == MANY:
                self._tell_numbers(leaves)
        return r

    def _tell_numbers(self, leaves: list[Any]) -> None:
        if any(isinstance(x, float) for x in leaves):
            warnings.warn(
                f"jit: {self!r} was recorded for {MANY} signatures. Python numbers are part of a signature: pass those that change "
                f"as tensors, chainrule.tensor(x).",
                stacklevel=4,
            )

    def lower(self, *args: Any, **kw: Any) -> Any:
        """What these arguments are compiled to: the graph, its parts and the generated code."""
        from .explain import Lowered

        args, kw = self._mark(args, kw)
        leaves, spec = flatten((args, kw))
        if arrays(leaves):
            return self._door(leaves, spec).run.lower(*map(door().as_tensor, leaves))
        key = self._key(args, kw, leaves, spec)
        with self._lock:
            r = self._find(key, leaves) or self._record(key, args, kw, leaves, spec)
            r.give_up()
        return Lowered(r, [x for x in leaves if isinstance(x, Tensor)])


def _static(f: Any, nums: Any, names: Any) -> tuple[tuple[int, ...], tuple[str, ...], list[str]]:
    """Both ways to name static arguments, checked against the function's signature."""
    nums = () if nums is None else (nums,) if isinstance(nums, int) else tuple(nums)
    names = () if names is None else (names,) if isinstance(names, str) else tuple(names)
    try:
        known = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return nums, names, []
    own = [p.name for p in known if p.kind is p.POSITIONAL_OR_KEYWORD]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in known):
        return nums, names, own
    for n in names:
        if n not in {p.name for p in known}:
            raise ValueError(f"jit: static_argnames has {n!r}, but the function has no such parameter")
    for i in nums:
        if not -len(known) <= i < len(known):
            raise ValueError(f"jit: static_argnums has {i}, but the function has {len(known)} parameters")
    return nums, names, own


def _layout(a: Any) -> Any:
    """What a recording takes for granted of the order of elements in memory, which a function may ask for: nothing is row by row."""
    return None if type(a) is not np.ndarray or a.flags.c_contiguous else a.strides


def _static_key(x: Any) -> Any:
    try:
        hash(x)
    except TypeError:
        raise TypeError(
            f"jit: an argument of type {type(x).__name__} is neither a tensor nor a container of tensors, and cannot be part of a "
            f"signature because it is not hashable"
        ) from None
    return (type(x), frozen(x))


# -- recording ----------------------------------------------------------------------------------------------------------------


class _Swapped:
    """Tensors that stand for inputs of a graph as long as the function is recorded."""

    def __init__(self, level: Recorder) -> None:
        self.level = level
        self.saved: list[tuple[Tensor, Any, Any, Any, Any]] = []
        self.entered: list[tuple[Any, Any]] = []
        self.ends: list[tuple[Tensor, Any]] = []

    def enter(self, x: Tensor) -> None:
        m = x._meta
        self.saved.append((x, x._value, x._interp, x._aux, m))
        new = self.level.argument(x)
        leaf = is_imperative(x)
        x._meta = None
        if leaf:
            self.level.walked.discard(new._aux)  # there is a level inside that says so
            x._value, x._interp, x._aux = new, imperative(), Leaf(x)
        else:
            x._value, x._interp, x._aux = new._value, self.level, new._aux
        if m is not None and m.grad is not None:
            meta(x).grad = m.grad
        self.entered.append((new._aux, None if m is None else m.grad))

    def leave(self) -> None:
        """The tensors as they were; what they held at the end of the function is noted."""
        self.ends = []
        for x, value, interp, aux, m in self.saved:
            self.ends.append((Tensor(x._value, x._interp, x._aux), None if x._meta is None else x._meta.grad))
            x._value, x._interp, x._aux, x._meta = value, interp, aux, m

    def changes(self) -> list[tuple[Tensor, Any, Any]]:
        """For each tensor its new value, or None, and its new gradient: None where it was dropped, False where it is the old one."""
        out = []
        for (x, *_), (var, grad), (now, g) in zip(self.saved, self.entered, self.ends, strict=True):
            now = self.level.settle(now)
            out.append((x, now if self.level.var_of(now)[1] is not var else None, False if g is grad else g))
        return out


def _recorded(f: Any, leaves: list[Any], spec: Any, held: Held) -> Recording:
    r = Recording()
    given = [x for x in leaves if isinstance(x, Tensor)]
    mine = {id(x) for x in given if is_imperative(x)}
    quiet = not grad_enabled()
    for x in (*given, *[g for x in given if (g := gradient(x)) is not None], *held.tensors):
        example(x)  # refuses other payloads before anything is changed
    with Recorder() as level:
        if quiet:
            CUT.set(grad_cut(False))
        swapped = _Swapped(level)
        inner: list[Any] = []
        entered: list[Tensor] = []
        numbers: dict[int, int] = {}  # of a tensor with derivatives: one that is an argument twice is one input
        for x in leaves:
            if not isinstance(x, Tensor):
                inner.append(x)
            elif id(x) in mine:
                if id(x) not in numbers:
                    numbers[id(x)] = len(entered)
                    swapped.enter(x)
                else:
                    level.argument(x)
                entered.append(x)
                inner.append(x)
            else:
                entered.append(level.argument(x))
                inner.append(entered[-1])
        before = [None if id(x) in mine else (x._aux, x._interp) for x in entered]
        outer = INFERENCE.set(False)  # what inference mode around the call cuts is cut there
        try:
            for x in held.tensors:
                if id(x) not in mine:
                    r.boxes.append(x)
                    r.owners.append(held.owners.get(id(x)))
                    swapped.enter(x)
            for i, x in enumerate(given):
                g = gradient(x) if id(x) in mine else None
                if g is not None and id(g) not in mine and not any(b is g for b in r.boxes):
                    r.boxes.append(g)
                    r.owners.append(i)
                    swapped.enter(g)
            args, kw = unflatten(inner, spec)
            out = f(*map(_unmarked, args), **{k: _unmarked(v) for k, v in kw.items()})
            ys, r.spec = flatten(out)
            outs: list[Tensor] = []
            boxes = {id(x) for x in r.boxes} | mine
            for y in ys:
                if not isinstance(y, Tensor):
                    r.outputs.append(("static", y))
                elif (k := next((k for k, x in enumerate(entered) if x is y), None)) is not None:
                    r.outputs.append(("arg", k))
                elif id(y) in boxes:
                    r.outputs.append(("box", y))
                else:
                    r.outputs.append(("out", len(outs)))
                    if is_spent(y):
                        r.spent.add(len(outs))
                    outs.append(level.settle(y))
            for k, x in enumerate(entered):
                if before[k] is not None and (x._aux is not before[k][0] or x._interp is not level):  # type: ignore[index]
                    r.writes.append((k, "value", len(outs)))
                    outs.append(level.settle(Tensor(x._value, x._interp, x._aux)))
            fresh = [] if held.hold() else _made_inside(f, level, boxes | {id(x) for x in entered})
            for x in fresh:
                r.writes.append((x, "new", len(outs)))
                outs.append(level.settle(Tensor(x._value, x._interp, x._aux)))
        finally:
            INFERENCE.reset(outer)
            swapped.leave()
        ends = swapped.changes()
        r.walked = _walked(leaves, r.boxes) if level.asked else None
        _refuse_lost(level, ys, {id(x) for x in (*[e[0] for e in ends], *entered, *fresh)})
        for x, value, g in ends:
            target = numbers.get(id(x), x)  # an argument of another call is another tensor
            if value is not None:
                r.writes.append((target, "value", len(outs)))
                outs.append(value)
            if g is None:
                r.writes.append((target, "grad", -1))
            elif g is not False:
                r.writes.append((target, "grad", len(outs)))
                outs.append(level.settle(Tensor(g._value, g._interp, g._aux)))
        graph = simplify(level.graph(outs))
    if r.writes and overlapping(r, leaves):
        raise NotRecorded("a write to a tensor that shares its memory with another input")
    r.foreign = level.foreign
    r.opens = quiet and any(n.op.differentiable and not n.cut for n in graph.nodes)
    order = _input_order(level, leaves, r)
    graph.inputs = order
    r.program = Program(graph, getattr(f, "__name__", type(f).__name__))
    return r


def _input_order(level: Recorder, leaves: list[Any], r: Recording) -> list[Any]:
    """Inputs in the order of a call: the arguments, the tensors of the function, those of levels around."""
    n = sum(isinstance(x, Tensor) for x in leaves) + len(r.boxes)
    known = {id(v) for _, v in level._known.values()}
    own = [v for v in level.inputs if id(v) not in known]
    assert len(own) == n, "jit: an input was lost"
    return [*own, *[v for v in level.inputs if id(v) in known]]


def _made_inside(f: Any, level: Recorder, known: set[int]) -> list[Tensor]:
    """Tensors that the function made and put where it can find them again, as optimisers do with their state."""
    held = survey(f)
    of = held.owners  # gradients of tensors that were there are written as such
    return [
        x
        for x in held.tensors
        if id(x) not in known
        and x._interp in (level, level.imperative)
        and not (id(x) in of and id(of[id(x)]) in known)
    ]


def _refuse_lost(level: Recorder, ys: list[Any], known: set[int]) -> None:
    """A write to a tensor from outside that cannot be reached would happen once, and never again."""
    from ..core.dispatch import living

    returned = {id(y) for y in ys if isinstance(y, Tensor)}
    levels = [level] if level.imperative is None else [level, level.imperative]
    boxes = [x for i in levels for x in living(i.touched) if i.since is None or i.since.get(id(x), -1.0) < level.level]
    boxes = [x for x in boxes if id(x) not in known and id(x) not in returned]
    for x in boxes:
        if not _a_view_of(x, returned | known) and not only_base(x, ys, boxes):
            raise JitError(
                f"jit: a tensor of shape {tuple(x.shape)} that the function neither got nor visibly holds was written to, or holds what "
                f"was computed: this would happen once, while the function is recorded. Pass the tensor as an argument or return it."
            )


def _a_view_of(x: Tensor, ids: set[int]) -> bool:
    return x._meta is not None and x._meta.base is not None and id(x._meta.base) in ids


# -- the front door -------------------------------------------------------------------------------------------------------------


def jit(
    f: Callable[..., Any] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate: int | Sequence[int] | None = None,
) -> Any:
    """The function, recorded once for each signature and compiled.

    A signature is what the arguments look like: shapes and types of tensors, everything else (numbers, strings, functions) by value.
    Tensors that the function holds are inputs too, and writes to them happen at every call. What cannot be recorded, such as an `if`
    on the elements of a tensor, raises an error that names the line. `donate` numbers arguments that the caller gives up: their memory is
    free when the call is over, and using them afterwards raises an error.

    >>> jit(lambda x: (x * x).sum())(chainrule.tensor([1.0, 2.0]))
    tensor(5.)
    """
    if f is None:
        return functools.partial(jit, static_argnums=static_argnums, static_argnames=static_argnames, donate=donate)
    return Jitted(f, static_argnums, static_argnames, donate)


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: Any = None,
    mode: str | None = None,
    options: Any = None,
    disable: bool = False,
) -> Any:
    """PyTorch's name for :func:`jit`; of a module it makes a module. There is one backend, and every recording is a full graph of one signature."""
    if model is None:
        return functools.partial(compile, disable=disable)
    layers = sys.modules.get("chainrule.nn.module")
    if disable or layers is None or not isinstance(model, layers.Module):
        return model if disable else jit(model)
    from ..nn.optimized import OptimizedModule

    return OptimizedModule(model)


def explain(f: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    """What `f` becomes for these arguments: which ops run together as machine code, which do not and why, and what each part costs.

    Print it, or write it with ``.save("page.html")``, with the graph drawn.
    """
    return (f if isinstance(f, Jitted) else jit(f)).lower(*args, **kw)
