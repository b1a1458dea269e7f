"""Compositions on small arrays as straight-line code: what several ops would do, as one node on the tape.

On sixty-four numbers an op costs more than its arithmetic, and a loss is made of ten. A function that is decorated with :func:`straight` is
noted, op by op and with its derivative, when it is called a second time with arguments of the same shapes and types and the same static data;
from then on these calls run the same bodies in the same order, without tensors between them. That holds for plain arrays and one tape above
them; under every other transform, with other payloads and while somebody looks on, the composition runs as it stands. The second derivative
is taken through the composition too. What may be recorded by jit may be decorated, as long as it draws no random numbers and returns no view.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import dtypes as dt
from . import walk
from .derive import vjp_through
from .dispatch import CUT, Interpreter
from .errors import FLOATING
from .op import Op
from .reverse import Leaf, Masked, Node, Pick, Reverse
from .tensor import Tensor
from .types import as_scalar
from .views import meta, pin
from .walk import reachable, walk_back
from .watch import WATCHED

ndarray = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])
LIMIT = 1 << 12  # elements of an argument: beyond, ops have kernels, and their calls cost little beside them
MANY = 256  # plans of a function: then they are forgotten
ONCE, UNFIT = "once", "unfit"
PAUSED: list[str] = []  # what changes functions from outside, once it was used: then compositions run as they stand


class _Unfit(Exception):
    """The composition does something that has no place in straight-line code."""


class _Noting(Interpreter):
    """Notes the ops of a composition while they run one level down."""

    kind = "record"  # whoever asks for elements is refused, as where a function is recorded
    strict = True

    def __init__(self) -> None:
        self.lines: list[
            tuple[tuple[str, ...], str, tuple[str, ...], bool]
        ] = []  # results, text, names read, must it run
        self.names: dict[str, Any] = {"ndarray": ndarray, "asarray": np.asarray}
        self.values: dict[str, ndarray] = {}
        self.constants: list[ndarray] = []
        self.numbers: dict[Any, str] = {}
        self.looks: set[Any] = set()
        self.done: dict[Any, str] = {}  # pointwise ops by what they read: what was computed once is not computed again
        self.calls: dict[str, tuple[str, list[str]]] = {}

    def refusal(self, what: str) -> Exception:
        """The error for whoever asks for elements."""
        return _Unfit(what)

    def look(self, x: Any, check: Any) -> None:
        """A check of the elements is part of the code."""
        while x._interp is not self:
            x = x._value
        cells = tuple([repr(c.cell_contents) for c in check.__closure__ or ()])
        if (x._aux, check.__code__, cells) in self.looks:
            return
        self.looks.add((x._aux, check.__code__, cells))
        self.lines.append(((), f"{self.name('f', check)}({x._aux})", (x._aux,), True))

    def name(self, kind: str, value: Any) -> str:
        """A name for a constant or a function."""
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name

    def input(self, a: ndarray, name: str) -> Tensor:
        """An argument of the code."""
        self.values[name] = a
        return Tensor(Tensor(a), self, name)

    def number(self, v: Any) -> str:
        """A name for a number, the same for the same one."""
        key = (type(v), repr(v))
        if key not in self.numbers:
            self.numbers[key] = self.name("c", v)
        return self.numbers[key]

    def called(self, x: Any) -> str:
        """The name of a tensor of this level, or of a plain one."""
        if x._interp is self:
            return x._aux
        if x._interp is not None or type(x._value) is not ndarray:
            raise _Unfit
        self.constants.append(x._value)
        return self.name("c", x._value)

    @staticmethod
    def key(op: Op, words: list[str], kw: dict[str, Any]) -> Any:
        """What a pointwise op computes."""
        return (op, *words, *[(k, repr(v)) for k, v in kw.items()])

    def again(self, op: Op, words: list[str], kw: dict[str, Any]) -> str | None:
        """The name of a result that is known already."""
        known = self.done.get(self.key(op, words, kw))
        if known is not None or op.name not in ("bitwise_not", "where"):
            return known
        before = self.calls.get(words[-1])
        if before is not None and op.name == before[0]:
            if op.name == "bitwise_not":
                return before[1][0]
            if words[:2] == before[1][:2]:  # the same places are set to the same number
                return words[2]
        return None

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if op.body is None:
            return op.spec(*args, **kw)
        if op.effect:
            raise _Unfit(op.name)
        low: list[Any] = []
        words: list[str] = []
        types: list[Any] = []
        reads: list[str] = []
        for a in args:
            if isinstance(a, Tensor):
                if a._interp is self:
                    words.append(a._aux)
                    reads.append(a._aux)
                    a = a._value
                elif a._interp is None and type(a._value) is ndarray:
                    words.append(self.name("c", a._value))
                    self.constants.append(a._value)
                else:
                    raise _Unfit(op.name)
                types.append(a._value.dtype)
            else:
                words.append("")
            low.append(a)
        f = self._function(op, types, low)
        for k, a in enumerate(low):
            if not words[k]:
                typed = op.types is not None and op.types.promote != "none" and f is op.direct
                words[k] = self.number(as_scalar(a, types[-1]) if typed and not isinstance(f, np.ufunc) else a)
        pure = op.form == "pointwise"
        if pure and (known := self.again(op, words, kw)) is not None:
            return Tensor(Tensor(self.values[known]), self, known)
        y = op.bind(*low, **kw)
        several = type(y) is tuple
        if op.view and not several and reads and _same(y._value, self.values[reads[0]]):
            return Tensor(y, self, reads[0])
        ys = y if several else (y,)
        if any(type(v) is not Tensor or type(v._value) is not ndarray for v in ys):
            raise _Unfit(op.name)
        outs = tuple([f"v{len(self.lines)}_{k}" for k in range(len(ys))])
        settled = op.settled(f, [a._value if isinstance(a, Tensor) else a for a in low], kw)
        more = [] if settled is not None else [f"{k}={self.name('k', v)}" for k, v in kw.items()]
        text = f"{self.name('f', f if settled is None else settled)}({', '.join([*words, *more])})"
        if several and len(ys) == 1:
            text = f"{text}[0]"
        elif not several and not y._value.ndim:  # NumPy's scalars become arrays
            text = f"asarray({text})"
        self.lines.append((outs, text, tuple(reads), not op.differentiable and not pure))
        if pure:
            self.done[self.key(op, words, kw)] = outs[0]
            self.calls[outs[0]] = (op.name, words)
        for v, name in zip(ys, outs, strict=True):
            self.values[name] = v._value
        boxes = [Tensor(v, self, name) for v, name in zip(ys, outs, strict=True)]
        return tuple(boxes) if several else boxes[0]

    @staticmethod
    def _function(op: Op, types: list[Any], low: list[Any]) -> Callable[..., Any]:
        """What runs the op on arrays: its body, where nothing is to be converted."""
        if op.types is None or op.types.promote == "none":
            return op.body
        if any(isinstance(a, Tensor) and a._value.size > LIMIT for a in low):
            return _general(op)
        of = types[1:] if op.types.choice else types
        if op.form == "pointwise" and of and all(t is of[0] for t in of) and of[0].num in op.fast:
            numbers = [a for a in low if not isinstance(a, Tensor)]
            whole = all(type(a) is int for a in numbers)
            if (
                not numbers
                or (of[0].kind == "f" and all(type(a) in (int, float) for a in numbers))
                or (whole and of[0].kind == "i")
            ):
                return op.direct

        return _general(op)


def _general(op: Op) -> Callable[..., Any]:
    """An op on arrays by its own way: with conversions, or in the loops for large ones."""

    def general(*vals: Any, **kw: Any) -> Any:
        y = op.run([Tensor(v) if isinstance(v, ndarray) else v for v in vals], kw)
        return tuple([v._value for v in y]) if type(y) is tuple else y._value

    return general


def _same(a: ndarray, b: ndarray) -> bool:
    """Whether an array shows just what another does."""
    return a.shape == b.shape and a.strides == b.strides and a.dtype is b.dtype and np.may_share_memory(a, b)


class Plan:
    """The code of one function for arguments of one kind: forward, and the cotangents of those that have one."""

    __slots__ = ("at", "backward", "diff", "fits", "forward", "like", "make", "masked", "outs", "spec")
    backward: Any
    masked: list[
        int
    ]  # the inputs whose cotangents a choice makes absent in places: these are said after the cotangents

    def __init__(self, f: Any, args: tuple[Any, ...], kw: dict[str, Any], needs: list[bool], at: list[Any]) -> None:
        self.at = at
        values = [*args, *kw.values()]
        xs = [values[k] for k in at]

        def spec(*tensors: Any) -> Any:
            full = list(given)
            for k, t in zip(at, tensors, strict=True):
                full[k] = t
            return f(*full[:first], **dict(zip(names_of, full[first:], strict=True)))

        first, names_of = len(args), tuple(kw)  # and not the arguments, whose graphs would stay
        given = [None if k in at else v for k, v in enumerate(values)]
        self.spec = spec
        level, tape = _Noting(), Reverse()
        arrays = [_array(x) for x in xs]
        grad = any(needs)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with level:
                names = [f"x{k}" for k in range(len(xs))]
                boxes = [level.input(a, n) for a, n in zip(arrays, names, strict=True)]
                if grad:
                    tape.__enter__()
                try:
                    boxes = [Tensor(b, tape, Leaf()) if n else b for b, n in zip(boxes, needs, strict=True)]
                    before = [(b._value, b._aux) for b in boxes]
                    y = spec(*boxes)
                    several = isinstance(y, tuple)
                    self.make = (getattr(type(y), "_make", type(y))) if several else None
                    ys = [level.settle(v) if not grad else tape.settle(v) for v in (y if several else (y,))]
                    if any(b._value is not v or b._aux is not n for b, (v, n) in zip(boxes, before, strict=True)):
                        raise _Unfit  # an argument was written to
                finally:
                    if grad:
                        tape.__exit__(None, None, None)
                starts: list[Any] = []
                for k, v in enumerate(ys):
                    if grad and type(v) is Tensor and v._interp is tape:
                        ys[k] = v._value
                        starts.append((k, v._aux))
                    if type(ys[k]) is not Tensor or ys[k]._interp is not level:
                        raise _Unfit
                if grad and not starts:
                    raise _Unfit
                cut = len(level.lines)
                gs: list[Any] = []
                masks: list[Any] = []
                if grad:
                    seeds = []
                    for k, node in starts:
                        v = ys[k]._value._value
                        seeds.append((node, level.input(np.ones(v.shape, v.dtype), f"g{k}")))
                    skipped: list[Any] = []
                    absent: dict[Any, Any] = {}
                    got = walk_back(seeds, skipped=skipped, absent=absent)
                    masks = [absent.get(b._aux) if n else None for b, n in zip(boxes, needs, strict=True)]
                    gs = [got.get(b._aux) if n else None for b, n in zip(boxes, needs, strict=True)]
                    zero = set(reachable(dict.fromkeys(skipped)))
                    if any(n and v is None and b._aux not in zero for b, n, v in zip(boxes, needs, gs, strict=True)):
                        raise _Unfit  # a derivative that does not exist is not one that is zero
        self.diff = [k for k, _ in starts]
        if any(not issubclass(w.category, RuntimeWarning) for w in said):
            raise _Unfit  # it would be said once, and not at every call
        self._write(level, cut, ys, arrays, names, needs, gs, masks)

    def _write(
        self,
        level: _Noting,
        cut: int,
        ys: list[Any],
        arrays: list[Any],
        names: list[str],
        needs: list[bool],
        gs: list[Any],
        masks: list[Any],
    ) -> None:
        values = [y._value._value for y in ys]
        for k, v in enumerate(values):
            if any(np.may_share_memory(v, a) for a in (*arrays, *level.constants, *values[:k])):
                raise _Unfit
        self.like = [(v.shape, v.dtype) for v in values]
        self.outs = [(v.shape, dt.FROM_NP[v.dtype]) for v in values]
        results: list[str] = []
        made = {n for outs, *_ in level.lines[:cut] for n in outs}
        for a, need, g in zip(arrays, needs, gs, strict=bool(gs)) if gs else ():
            if not need or g is None:
                results.append("None")
                continue
            if type(g) is not Tensor or g._interp is not level:
                raise _Unfit
            gv = g._value._value
            if gv.shape != a.shape or gv.dtype is not a.dtype:
                raise _Unfit
            others = [*arrays, *level.constants, *[level.values[n] for n in made]]
            shared = g._aux.startswith("g") or any(np.may_share_memory(gv, v) for v in others)
            results.append(f"{g._aux}.copy()" if shared else g._aux)
        self.masked = [k for k, m in enumerate(masks) if m is not None]
        results += [level.called(masks[k]) for k in self.masked]
        wanted = {r.removesuffix(".copy()") for r in results}
        back = _needed(level.lines[cut:], wanted)
        read = {n for _, _, reads, _ in back for n in reads} | wanted
        saved = sorted(read & made)
        first = _needed(level.lines[:cut], {*[y._aux for y in ys], *saved})
        head = ", ".join(names)
        keep = "".join(f"{n}, " for n in saved)
        result = f"({', '.join(y._aux for y in ys)},)" if self.make else ys[0]._aux
        result = f"({result}, ({keep}))" if gs else result
        self.forward = _function(f"forward({head})", first, result, level.names)
        self.backward = None
        if gs:
            load = [(tuple(saved), "saved", (), True)] if saved else []
            self.backward = _function(
                f"backward({', '.join(f'g{k}' for k in self.diff)}, saved, {head})",
                [*load, *back],
                f"({', '.join(results)},)",
                level.names,
            )
        self.fits = [None] * len(arrays)


def _needed(lines: list[Any], wanted: set[str]) -> list[Any]:
    """The lines that the wanted names come from, and those that must run."""
    wanted = set(wanted)
    kept = []
    for line in reversed(lines):
        outs, _, reads, must = line
        if must or not wanted.isdisjoint(outs):
            kept.append(line)
            wanted.update(reads)
    return kept[::-1]


def _function(head: str, lines: list[Any], result: str, names: dict[str, Any]) -> Any:
    text = [f"def {head}:"]
    for outs, call, _, _ in lines:
        text.append(f"    {', '.join(outs) + (',' if call == 'saved' else '') + ' = ' if outs else ''}{call}")
    text.append(f"    return {result}")
    scope = {**names, "__name__": __name__}  # the filter of warnings goes by the module
    exec(compile("\n".join(text), f"<straight {head}>", "exec"), scope)
    return scope[head.partition("(")[0]]


def _array(x: Any) -> Any:
    """The array beneath a plain tensor, or one of a tape above it."""
    return x._value if x._interp is None else x._value._value


def _bare(v: Any) -> Tensor:
    """A result without a derivative, which the reverse rule reads: what the caller writes to it moves it to other memory."""
    t = Tensor(v)
    meta(t).pinned = True
    return t


def _pulled(g: Any, y: Any, *xs: Any, need: Any, plan: Plan, saved: Any) -> Any:
    """The reverse rule of all decorated functions."""
    gs = g if plan.make else (g,)
    cotangents = []
    for k in plan.diff:
        if gs[k].__class__ is Masked:
            break
        shape, d = plan.like[k]
        gv = gs[k]._value
        if gs[k]._interp is not None or gv.__class__ is not ndarray or gv.dtype is not d or gv.shape != shape:
            break
        cotangents.append(gv)
    else:
        arrays = []
        for x in xs:
            if x._interp is not None or x._value.__class__ is not ndarray:
                break
            arrays.append(x._value)
        else:
            try:
                out = plan.backward(*cotangents, saved, *arrays)
            except FLOATING:
                out = None  # by the ops, which know what to do
            if out is not None:
                made: list[Any] = [None if v is None else Tensor(v) for v in out[: len(xs)]]
                for k, mask in zip(plan.masked, out[len(xs) :], strict=True):
                    made[k] = Masked(made[k], Tensor(mask))
                return made
    return vjp_through(plan.spec, g, list(xs), {}, need, masked=True)


def straight(f: F, name: str = "", taped: bool = True, most: int = LIMIT) -> F:
    """`f`, a composition of ops of tensors and static data, as straight-line code where its arguments are small plain arrays.

    What is put around the function later (``out=``, other names of arguments) stands in the way of all other calls alone: see `around`.
    `most` is the number of elements that an argument may have where no derivative is taken: for what looks at few of many.
    Unless `taped`, it is code where no derivative is taken: what comes down to one op has a reverse rule that is as short.
    """
    plans: dict[Any, Any] = {}
    op = Op(name or f.__name__, None, spec=f, listed=False)
    op.form = "fused"
    op.vjp(_pulled)
    op.through = True
    op.pull_by_code = False  # it is code

    def later(key: Any, args: Any, kw: Any, level: Any) -> None:
        """What is known of a kind of arguments after a call."""
        values = (*args, *kw.values())
        at = [k for k, a in enumerate(values) if a.__class__ is Tensor]
        if any(_array(values[k]).size > (most if level is None else LIMIT) for k in at):
            return
        if len(plans) >= MANY:
            plans.clear()
        if key not in plans:
            plans[key] = ONCE
            return
        try:
            plans[key] = Plan(f, args, kw, [level is not None and values[k]._interp is not None for k in at], at)
        except Exception:  # whatever a function does that this has no words for: it runs as it stands
            plans[key] = UNFIT

    def door(around: Any) -> Any:
        @functools.wraps(around)
        def call(*args: Any, **kw: Any) -> Any:
            if WATCHED.on or PAUSED:
                return around(*args, **kw)
            key: list[Any] = [dt._default, tuple(kw)] if kw else [dt._default]
            level: Any = None
            arrays: list[Any] = []
            for a in (*args, *kw.values()) if kw else args:
                c = a.__class__
                if c is Tensor:
                    i = a._interp
                    if i is None:
                        v = a._value
                    elif taped and i.__class__ is Reverse and (level is None or level is i):
                        level, x = i, a._value
                        if x._interp is not None:
                            return around(*args, **kw)
                        v = x._value
                        key.append(True)
                    else:
                        return around(*args, **kw)
                    if v.__class__ is not ndarray:
                        return around(*args, **kw)
                    arrays.append(v)
                    key.append(v.shape)
                    key.append(v.dtype)
                elif c is int or c is bool:
                    key.append(c)
                    key.append(a)
                elif a is None or c is str:
                    key.append(a)
                elif c is float:
                    if a != a:
                        return around(*args, **kw)
                    key += (c, a or repr(a))
                elif not static(a, key):
                    return around(*args, **kw)
            if level is not None:
                if level.keep_all or not level.alive:
                    return around(*args, **kw)
                if level.level <= CUT.get():
                    level = None
                else:
                    key.append(level.__class__)
            known = tuple(key)
            plan = plans.get(known)
            if plan.__class__ is not Plan:
                y = around(*args, **kw)
                if plan is not UNFIT:
                    later(known, args, kw, level)
                return y
            try:
                got = plan.forward(*arrays)
            except Exception:
                return around(*args, **kw)  # by the ops; where it is an error, in their words
            make = plan.make
            if level is None:
                return Tensor(got) if make is None else make([Tensor(v) for v in got])
            values = (*args, *kw.values()) if kw else args
            given = [values[k] for k in plan.at]
            parents = [None if x._interp is None else x._aux for x in given]
            kept = [pin(x) if x._interp is None else x._value for x in given]
            y, saved = got
            node = Node(op, kept, None, parents, {"plan": plan, "saved": saved}, plan.fits)
            if make is None:
                return Tensor(Tensor(y), level, node)
            node.nout, node.rare, node.outs = len(y), True, plan.outs
            diff = plan.diff
            return make(
                [
                    Tensor(Tensor(v), level, Pick(node, k) if k else node) if k in diff else _bare(v)
                    for k, v in enumerate(y)
                ]
            )

        call.straight = call, door, around  # type: ignore[attr-defined]  # itself, since a wrapper takes over attributes
        return call

    return door(f)


# -- reverse rules ------------------------------------------------------------------------------------------------------

_PULLS: dict[Any, Any] = {}  # code, or a word
_SIMPLE = (int, bool, str, type(None), np.dtype, type(Ellipsis))


def static(v: Any, key: list[Any]) -> bool:
    """Add static data to a key; False for what is not plain enough."""
    c = v.__class__
    if c is float:
        if v != v:
            return False
        key += (c, v or repr(v))
    elif c in _SIMPLE:
        key += (c, v)
    elif c is tuple or c is list:
        key += (c, len(v))
        for w in v:
            if w.__class__ is int:
                key.append(w)
            elif not static(w, key):
                return False
    elif c is slice:
        key.append(c)
        return all(static(w, key) for w in (v.start, v.stop, v.step))
    else:
        return False
    return True


def pulled(n: Node, g: Any, live: Any) -> Any:
    """The cotangents of the inputs of a node by straight-line code, where all that its rule reads are small plain arrays; else None."""
    op = n.op
    if op.pull_by_code is None:
        op.pull_by_code = _ours(op)
    if not op.pull_by_code or PAUSED:
        return None
    key: list[Any] = [op, id(op.pull_rules)]  # others may have come in their place
    arrays: list[Any] = []
    several = n.nout > 0
    y = n.y
    given = [*(g if several else (g,)), *(y if y.__class__ is list or y.__class__ is tuple else (y,)), *n.args]
    for v in given:
        if v is None:
            key.append(None)
        elif isinstance(v, Tensor):
            if v._interp is not None:
                return None
            a = v._value
            if a.__class__ is not ndarray or a.size > LIMIT:
                return None
            arrays.append(a)
            key += (a.shape, a.dtype.num)
        elif v.__class__ is float or v.__class__ is int:
            key += (v.__class__, v or repr(v))
        else:
            return None
    for p in n.parents:
        key.append(p is not None and (live is None or p in live))
    if n.kw:
        for k, v in n.kw.items():
            key.append(k)
            if not static(v, key):
                return None
    known = tuple(key)
    plan = _PULLS.get(known)
    if plan is None or plan is ONCE:
        if len(_PULLS) >= 4 * MANY:
            _PULLS.clear()
        if plan is None:
            _PULLS[known] = ONCE
            return None
        try:
            plan = _pull_code(n, g, live, arrays)
        except Exception:  # whatever a rule does that this has no words for
            plan = UNFIT
        _PULLS[known] = plan
    if isinstance(plan, str):
        return None
    try:
        out = plan(*arrays)
    except Exception:
        return None  # by the ops; where it is an error, in their words
    return [v if v is None else Tensor(v) for v in out]


def _ours(op: Op) -> bool:
    """Whether the reverse rule is one of those in the package, which are made of ops: others may compute with what they please."""
    by_hand = op.pull_rules or [op.vjp_rule or op.jvp_rule or op.spec]
    rules = by_hand if type(by_hand) is list else [by_hand]
    names = [getattr(getattr(r, "rule", r), "__module__", "") or "" for r in rules if callable(r)]
    return op.form != "function" and op.again is None and not op.effect and all(_of_house(m) for m in names)


def _of_house(module: str) -> bool:
    return module.startswith(_PACKAGE) and ".random" not in module and ".recurrent" not in module


_PACKAGE = f"{__name__.partition('.')[0]}.ops."


def _pull_code(n: Node, g: Any, live: Any, arrays: list[Any]) -> Any:
    """The reverse rule of a node as a function of the arrays that it reads."""
    level = _Noting()
    names = iter([f"x{k}" for k in range(len(arrays))])

    def boxed(v: Any) -> Any:
        return level.input(v._value, next(names)) if isinstance(v, Tensor) else v

    with level:
        gs: Any = [boxed(v) for v in g] if n.nout else boxed(g)
        first = n.nout or 1
        y = n.y
        ys: Any = type(y)([boxed(v) for v in y]) if y.__class__ in (list, tuple) else boxed(y)
        xs = [boxed(x) for x in n.args]
        need = [p is not None and (live is None or p in live) for p in n.parents]
        out = n.op.pull(gs, ys, xs, n.kw, need)
    results = []
    for v in out:
        if v is None:
            results.append("None")
            continue
        if type(v) is not Tensor or v._interp is not level:
            raise _Unfit
        a = v._value._value
        others = [*arrays[first:], *level.constants]
        shared = v._aux.startswith("x") or any(np.may_share_memory(a, b) for b in others)
        results.append(f"{v._aux}.copy()" if shared else v._aux)
    lines = _needed(level.lines, {r.removesuffix(".copy()") for r in results})
    if len(lines) < 2:
        n.op.pull_by_code = False  # one op is as quick by itself
    head = ", ".join(f"x{k}" for k in range(len(arrays)))
    return _function(f"pull({head})", lines, f"({', '.join(results)},)", level.names)


walk.STRAIGHT = pulled
