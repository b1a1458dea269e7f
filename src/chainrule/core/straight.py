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
from .derive import vjp_through
from .dispatch import CUT, Interpreter
from .errors import FLOATING
from .op import Op
from .recall import PLAIN, TAPED, Recall, machine, static
from .reverse import Leaf, Masked, Node, Pick, Reverse
from .tensor import Tensor
from .types import as_scalar
from .views import meta, pin
from .walk import reachable, walk_back
from .watch import WATCHED

ndarray = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])
LIMIT = 1 << 14  # elements of an argument: beyond, calls of ops cost little beside their loops
FORWARD = 1 << 17  # the same where no derivative is taken, and nothing is kept
OFTEN = (
    32  # calls of a plan after which compiled code looks for it, and again after twice as many that it has not found
)
SMALL = 1 << 12  # elements of a constant
MANY = 256  # plans of a function: then they are forgotten
ONCE, UNFIT = "once", "unfit"
PAUSED: list[str] = []  # what changes functions from outside, once it was used: then compositions run as they stand


_PLANS: list[Any] = []  # of each function, and of the reverse rules


def forget() -> None:
    """Let go of all code: it is noted anew."""
    for plans in _PLANS:
        plans.clear()


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
        self.names: dict[str, Any] = {"ndarray": ndarray, "asarray": np.asarray, "own": _own}
        self.values: dict[str, ndarray] = {}
        self.constants: list[ndarray] = []
        self.numbers: dict[Any, str] = {}
        self.looks: set[Any] = set()
        self.done: dict[Any, str] = {}  # pointwise ops by what they read: what was computed once is not computed again
        self.calls: dict[str, tuple[str, list[str]]] = {}
        self.moved: set[str] = set()  # the arguments, and what is made of them by views alone

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
        self.moved.add(name)
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

    def own(self, name: str, shared: bool) -> str:
        """The text of a result: in memory of its own."""
        return f"{name}.copy()" if shared else f"own({name})" if name in self.moved else name

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
        if op.view and not self.moved.isdisjoint(reads):
            self.moved.update(outs)
        boxes = [Tensor(v, self, name) for v, name in zip(ys, outs, strict=True)]
        return tuple(boxes) if several else boxes[0]

    @staticmethod
    def _function(op: Op, types: list[Any], low: list[Any]) -> Callable[..., Any]:
        """What runs the op on arrays: its body, where nothing is to be converted."""
        if (
            op.large is not None
            and not op.large.settles
            and any(isinstance(a, Tensor) and a._value.size >= op.large.least for a in low)
        ):
            return _general(op)
        if op.types is None or op.types.promote == "none":
            return op.body
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

    __slots__ = ("at", "backward", "calls", "diff", "fits", "forward", "like", "make", "masked", "outs", "spec")
    backward: Any
    masked: list[
        int
    ]  # the inputs whose cotangents a choice makes absent in places: these are said after the cotangents

    def __init__(self, f: Any, args: tuple[Any, ...], kw: dict[str, Any], needs: list[bool], at: list[Any]) -> None:
        self.at, self.calls = at, 0
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
        arrays = [_example(_array(x)) for x in xs]
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
        if any(c.size > SMALL and 0 not in c.strides for c in level.constants):
            raise _Unfit  # a plan keeps them
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
            results.append(level.own(g._aux, shared))
        self.masked = [k for k, m in enumerate(masks) if m is not None]
        results += [level.called(masks[k]) for k in self.masked]
        wanted = {_bare_name(r) for r in results}
        back = _needed(level.lines[cut:], wanted)
        read = {n for _, _, reads, _ in back for n in reads} | wanted
        saved = sorted(read & made)
        first = _needed(level.lines[:cut], {*[y._aux for y in ys], *saved})
        head = ", ".join(names)
        keep = "".join(f"{n}, " for n in saved)
        own = [level.own(y._aux, False) for y in ys]
        result = f"({', '.join(own)},)" if self.make else own[0]
        result = f"({result}, ({keep}))" if gs else result
        one = first[0] if len(first) == 1 and not gs and not self.make else None
        name, _, given = one[1].partition("(") if one else ("", "", "")
        if one is not None and given == f"{head})" and one[0] == (result,) and name != "asarray":
            self.forward = level.names[name]  # nothing but this
        else:
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


def _bare_name(result: str) -> str:
    return result.removesuffix(".copy()").removeprefix("own(").removesuffix(")")


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


def _example(a: ndarray) -> ndarray:
    """An array to note code on: in memory of its own and in row-major order, since the code is for every layout.

    Of a Hankel matrix in the memory of its few numbers, say, the transpose is the very same view, and of no other.
    """
    return a.copy(order="C")


def _own(a: ndarray) -> ndarray:
    """A result in memory of its own: what only moves elements may be a view of what it was given, in some layouts."""
    return a if a.base is None else a.copy()


def _array(x: Any) -> Any:
    """The array beneath a plain tensor, or one of a tape above it."""
    return x._value if x._interp is None else x._value._value


def _held(x: Any) -> tuple[Any, int] | None:
    """The array beneath a tensor, and whether there is a tape between; None for what is no tensor."""
    return (_array(x), PLAIN if x._interp is None else TAPED) if x.__class__ is Tensor else None


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


def straight(f: F, name: str = "", taped: bool = True, most: int = FORWARD) -> F:
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
            calls.clear()
        if key not in plans:
            plans[key] = ONCE
            return
        try:
            plans[key] = Plan(f, args, kw, [level is not None and values[k]._interp is not None for k in at], at)
        except Exception:  # whatever a function does that this has no words for: it runs as it stands
            plans[key] = UNFIT

    def noted(plan: Plan, got: Any, given: list[Any], level: Any) -> Any:
        """The result of a plan on a tape, with its node."""
        make = plan.make
        parents = [None if x._interp is None else x._aux for x in given]
        kept = [pin(x) if x._interp is None else x._value for x in given]
        y, saved = got
        node = Node(op, kept, None, parents, {"plan": plan, "saved": saved}, plan.fits)
        if make is None:
            return Tensor(Tensor(y), level, node)
        node.nout, node.rare, node.outs = len(y), True, plan.outs
        diff = plan.diff
        return make(
            [Tensor(Tensor(v), level, Pick(node, k) if k else node) if k in diff else _bare(v) for k, v in enumerate(y)]
        )

    recall: Any = None
    calls = Recall()
    _PLANS.extend((plans, calls))
    address = calls.address

    def often(plan: Plan, args: Any, kw: Any, level: Any) -> None:
        """Have calls like this one recognised by compiled code."""
        nonlocal recall
        if level is None and any(a.__class__ is Tensor and a._interp is not None for a in (*args, *kw.values())):
            return  # under no_grad, which is not looked at there
        if (found := machine()) is not None:
            calls.note(
                dt._default,
                args,
                kw,
                _held,
                *((plan.forward, True) if level is None and plan.make is None else (plan, False)),
            )
            recall = found

    def planned(plan: Plan, args: Any, kw: Any) -> Any:
        """The result of a plan whose arguments have been recognised; None where that is not for it."""
        values = (*args, *kw.values()) if kw else args
        given = [values[k] for k in plan.at]
        level: Any = None
        arrays: list[Any] = []
        for x in given:
            if x._interp is None:
                arrays.append(x._value)
            else:
                level = x._interp
                arrays.append(x._value._value)
        if level is not None and (level.keep_all or not level.alive or level.level <= CUT.get()):
            return None
        try:
            got = plan.forward(*arrays)
        except Exception:
            return None
        if level is None:
            make: Any = plan.make
            return make([Tensor(v) for v in got])
        return noted(plan, got, given, level)

    def door(around: Any) -> Any:
        @functools.wraps(around)
        def call(*args: Any, **kw: Any) -> Any:
            if WATCHED.on or PAUSED:
                return around(*args, **kw)
            if recall is not None:
                y = recall(address, dt._default, args, kw)
                if y.__class__ is Plan:
                    y = planned(y, args, kw)
                if y is not None:
                    return y
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
            plan.calls += 1
            if plan.calls >= OFTEN and not plan.calls & (plan.calls - 1):
                often(plan, args, kw, level)
            try:
                got = plan.forward(*arrays)
            except Exception:
                return around(*args, **kw)  # by the ops; where it is an error, in their words
            if level is None:
                return Tensor(got) if plan.make is None else plan.make([Tensor(v) for v in got])
            values = (*args, *kw.values()) if kw else args
            return noted(plan, got, [values[k] for k in plan.at], level)

        call.straight = call, door, around  # type: ignore[attr-defined]  # itself, since a wrapper takes over attributes
        return call

    return door(f)
