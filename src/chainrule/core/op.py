"""Op: all that is known of an operator, in one place. It is declared with :mod:`chainrule.core.declare`.

Two verbs: :meth:`Op.bind` finds the level among the arguments and hands the op to its interpreter; :meth:`Op.run` runs the body on
what concrete tensors hold. Everything else an interpreter asks for is a property of the op: its tangents (`push`), its cotangents
(`pull`) and what they need to be kept (`keeps`), its batch (`batched`). Rules call ops on tensors, so they are themselves
differentiable and batchable. ``None`` is the symbolic zero.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from . import dtypes as dt
from .batching import BATCH
from .errors import FLOATING, ZERO, missing
from .payload import COMPOSED, PAYLOADS, as_payload, composed
from .shapes import broadcast_shapes, zeros_like_tensor
from .sizes import SEEN, Ragged, first_ragged, highest_level
from .tensor import Tensor
from .types import Types, as_scalar
from .views import register_view

ndarray = np.ndarray
OPS: dict[str, Op] = {}

Rule = Callable[..., Any]
# What reverse mode keeps: the results (all, none, or these), the inputs (None: all).
Keep = tuple[bool | tuple[bool, ...], tuple[bool, ...] | None]


class Op:
    """An operator: its body, its derivative, its types, how it batches, its kernel.

    `body` runs on arrays. `spec` is a body in plain ops on tensors: what runs where neither a kernel nor a body does, and what
    derivatives without a rule are taken through.
    """

    form = "structured"
    # How the reverse rules are written: one an input, or None; and whether these are the forward rules, to be conjugated.
    pull_rules: Any = None
    conjugated = False
    keep_one: tuple[bool, bool] | None = None
    rules: Any = ()  # one forward rule an input, where the op has them
    none_is_zero = True  # a cotangent None from the reverse rule: the derivative is zero, not "there is none"
    again: Callable[..., Any] | None = None  # instead of a rule: the cotangents from a second run (checkpoints)
    packs: Callable[..., Any] | None = None  # which inputs and results a node saves, where `keeps` keeps more
    scatter: Callable[..., Any] | None = (
        None  # how a write through this view reaches its base, where it is no choice of elements
    )
    linear = ""
    # Whether the reverse rule only moves and adds elements, so that it also says where an absent cotangent is absent in the inputs.
    moves = False
    # Whether the reverse rule is a walk of its own, which takes a cotangent that is absent in places (`Masked`) and gives such.
    through = False
    kernel: Callable[..., Any] | None = None
    large: Any = None  # a body for operands of many elements, which may say None
    # Whether arguments and results of equal ranks have equal leading axes: where all have one core rank, as pointwise ops do.
    even = False
    # Instead of `bind` in a replay, where the levels around decide on static data.
    anew: Callable[..., Any] | None = None
    # Whether the reverse rule on small arrays may run as straight-line code; None: not known yet.
    pull_by_code: bool | None = None
    writes = False  # whether the body may write to its arguments, as a user's may
    effect = False  # whether it must run, in order, even where nobody reads its result
    arity = 0  # the number of operands of a pointwise op
    operator: Any = None  # `bind` as Python's operator, for pointwise ops
    # Of pointwise ops: the types of arrays that `direct`, the body, takes as they are.
    fast: frozenset[int] = frozenset()
    direct: Any = None
    # ``special(arrays, static) -> function of the arrays``, the body for arrays of these shapes and types, or None: what it asks of them is known then.
    special: Any = None
    results: int | None = None  # of an op of one input, once it has run on a tape: 1, or 0 for several
    several = False  # whether a pointwise op has more than two operands, or static data
    plain: Any = None  # the body of a pointwise op that takes arrays of real floats as they are
    short: Any = None  # the reverse rules, and what computes them on small arrays (see `short.py`)
    # The reverse rules, and the same written by hand on small arrays, for ops that are not pointwise.
    straight: Any = None

    def __init__(
        self,
        name: str,
        body: Any,
        *,
        spec: Any = None,
        types: str | None = None,
        batch: Callable[..., Any] | str = "trailing",
        core: Any = None,
        view: bool = False,
        differentiable: bool = True,
        integer_outputs: tuple[int, ...] = (),
        sizes: tuple[str, ...] = (),
        grows: tuple[str, ...] = (),
        doc: str | None = None,
        listed: bool = True,
    ) -> None:
        if listed:
            if name in OPS:
                raise ValueError(f"op {name!r} is declared twice: an op has one name and one place")
            OPS[name] = self
        self.name = self.__name__ = name
        self.body, self.spec, self.core = body, spec, core
        self.types = None if types is None else Types(name, types)
        self.bodies: dict[type, Callable[..., Any]] = {}
        if isinstance(batch, str) and batch not in BATCH:
            raise ValueError(f"op {name}: batch={batch!r} is not known; there are {', '.join(BATCH)}, or a function")
        self.batch_rule = BATCH[batch] if isinstance(batch, str) else batch
        self.sizes, self.grows = (*sizes, *(k for k in grows if k not in sizes)), grows
        self.view, self.differentiable, self.integer_outputs = view, differentiable, frozenset(integer_outputs)
        self.jvp_rule: Any = None
        self.vjp_rule: Any = None
        self.sparse_jvp = self.sparse_vjp = self.asks_need = False
        self.keep: Keep | None = None
        self._keeps: dict[Any, Keep] = {}
        self.__doc__ = doc or getattr(body or spec, "__doc__", None)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _op_named, (self.name,)

    # -- declaring rules ----------------------------------------------------------------------------------------------
    def jvp(self, rule: Any = None, *, sparse: bool = False) -> Any:
        """Declare the forward rule ``rule(t, y, *xs, **static) -> tangent(s)``.

        `t` has one entry an input. Missing tangents arrive as zeros, or with ``sparse=True`` as ``None``. A list of
        linear maps ``[rule(t, y, *xs), ...]``, one an input, is taken too: their results are summed.
        """
        if rule is None:
            return lambda r: self.jvp(r, sparse=sparse)
        self.jvp_rule, self.sparse_jvp = rule, sparse
        self.rules = rule if type(rule) is list else ()
        return self

    def vjp(self, rule: Any = None, *, sparse: bool = False, keep: Keep | None = None) -> Any:
        """Declare the reverse rule ``rule(g, y, *xs, **static) -> one cotangent an input``.

        An entry may be ``None`` (zero) or a function of no arguments, which is called only if that input needs it; a rule with
        a keyword ``need`` is told which inputs do. Cotangents of unused outputs arrive as zeros, or with ``sparse=True`` as
        ``None``. What is kept for the rule is read off its code; `keep` says it where results are kept in part.
        """
        if rule is None:
            return lambda r: self.vjp(r, sparse=sparse, keep=keep)
        self.vjp_rule, self.sparse_vjp, self.keep = rule, sparse, keep
        code = getattr(rule, "__code__", None)
        self.asks_need = code is not None and "need" in code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        self.pull_rules = rule if type(rule) is list else None
        return self

    def on(self, array: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the body for another array type than NumPy's."""

        def declare(f: Callable[..., Any]) -> Callable[..., Any]:
            self.bodies[array] = f
            return f

        return declare

    # -- calling ------------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kw: Any) -> Any:
        y = self.bind(*args, **kw)
        if self.view:
            register_view(self, args[0], y, kw)
        return y

    def bind(self, *args: Any, **kw: Any) -> Any:
        """Run at the highest level among the arguments."""
        if COMPOSED and (y := composed(self, args, kw)) is not None:
            return y
        top = None
        for a in args:
            if isinstance(a, Tensor):
                i = a._interp
                if i is not None and (top is None or i.level > top.level):
                    top = i
        if SEEN:
            if self.form == "pointwise" and any(isinstance(a, Ragged) for a in args):
                return self.bind(*_as_operands(args), **kw)
            if self.sizes and first_ragged(self.sizes, kw) is not None:
                i = highest_level(self.sizes, kw)
                if i is not None and (top is None or i.level > top.level):
                    top = i
        return self.run(args, kw) if top is None else top.run(self, args, kw)

    def run(self, args: Any, kw: dict[str, Any]) -> Any:
        """Run the body on what concrete tensors hold."""
        body = self.body
        if body is None:
            return self.spec(*args, **kw)
        if len(args) == 1 and self.types is None and not SEEN and type(v := args[0]._value) is ndarray:
            try:
                y = body(v, **kw)  # the common case, by the shortest way
            except FLOATING:
                y = quietly(body, v, **kw)
            if type(y) is ndarray:
                return Tensor(y)
            return tuple([Tensor(as_payload(r)) for r in y]) if type(y) is tuple else Tensor(as_payload(y))
        if self.large is not None and (y := self._run_large(args, kw)) is not None:
            return y
        if self.several and (y := self._run_straight(args, kw)) is not None:
            return y
        vals: list[Any] = []
        rounded = None
        if self.types is not None:
            vals, rounded = self.types.values(args)
            other = next((v for v in vals if type(v) in PAYLOADS), None)
        else:
            other = None
            for v in args:
                if isinstance(v, Tensor):
                    v = v._value
                    if type(v) is not ndarray:
                        other = v
                vals.append(v)
        if other is not None:
            body = PAYLOADS[type(other)].body_for(self, vals, kw)
        elif SEEN and self.sizes and (r := first_ragged(self.sizes, kw)) is not None:
            body = r.payload.body_for(self, vals, kw)
        try:
            y = body(*vals, **kw)
        except FLOATING:
            y = quietly(body, *vals, **kw)
        except ValueError:
            if self.form == "pointwise":
                check_broadcast(self.name, *vals)
            raise
        if type(y) is ndarray and rounded is None:
            return Tensor(y)
        if type(y) is tuple:
            return tuple(map(Tensor, y if set(map(type, y)) == {ndarray} else map(as_payload, y)))
        if rounded is None:
            return Tensor(np.asarray(y) if isinstance(y, np.generic) else as_payload(y))
        if (narrow := dt.NARROW[rounded.np].get(y.dtype)) is not None:
            y = y.astype(narrow)
        return Tensor(as_payload(y))

    def _run_straight(self, args: Any, kw: dict[str, Any]) -> Any:
        """The result where the operands are arrays of one type that needs no conversion, beside real floats also numbers; else None."""
        vals: list[Any] = []
        d: Any = None
        numbers = False
        choice = self.types.choice  # type: ignore[union-attr]
        for a in args:
            if isinstance(a, Tensor):
                a = a._value
                if type(a) is not ndarray:
                    return None
                if choice and not vals:
                    if a.dtype.kind != "b":
                        return None
                elif d is None:
                    d = a.dtype
                    if d.num not in self.fast:
                        return None
                elif a.dtype is not d:
                    return None
            elif a.__class__ is float or a.__class__ is int:
                numbers = True
            else:
                return None
            vals.append(a)
        if d is None:
            return None
        if numbers:
            if d.kind != "f":
                return None
            vals = [as_scalar(v, d) if v.__class__ is float or v.__class__ is int else v for v in vals]
        try:
            y = self.direct(*vals, **kw)
        except FLOATING:
            y = quietly(self.direct, *vals, **kw)
        except ValueError:
            check_broadcast(self.name, *vals)
            raise
        return Tensor(y if type(y) is ndarray else np.asarray(y)) if type(y) is not tuple else None

    def _run_large(self, args: Any, kw: dict[str, Any]) -> Any:
        """The result where there is a body for these operands, of many elements and of one floating type; else None."""
        least, d = self.large.least, None
        vals: list[Any] = []
        for a in args:
            v = a._value if isinstance(a, Tensor) else a
            if type(v) is ndarray and v.ndim:
                if v.dtype.kind == "b" and self.types.choice and not vals:  # type: ignore[union-attr]
                    pass
                elif d is None:
                    d = v.dtype
                    if d not in dt.REALS:
                        return None
                elif v.dtype is not d:
                    return None
                if v.size >= least:
                    least = 0
            elif type(v) is not float and type(v) is not int and not (type(v) is ndarray and v.dtype.kind == "f"):
                return None
            vals.append(v)
        y = None if least or d is None else self.large(*vals, **kw)
        return None if y is None else Tensor(y)

    def settled(self, body: Any, vals: list[Any], kw: dict[str, Any]) -> Any:
        """`body` for operands of these shapes and types and this static data, in any layout; None where there is nothing shorter."""
        special = (body is self.body and self.special) or getattr(body, "special", None)
        if special is None:
            return None if self.large is None or body is not self.direct else self.large.special(body, vals, kw)
        return special(vals, kw)

    # -- derivatives --------------------------------------------------------------------------------------------------
    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        """The output tangent(s) from input tangents; at least one of `ts` is not None."""
        rule = self.jvp_rule
        if rule is None:
            if self.linear == "all":
                return self.bind(*[zeros_like_tensor(x) if t is None else t for t, x in zip(ts, xs, strict=True)], **kw)
            if self.vjp_rule is None and self.spec is None:
                raise missing(self.name, "forward-mode rule")
            from .derive import jvp_from_vjp, jvp_through

            by_spec = self.spec is not None and (self.vjp_rule is None or self.form == "fused")
            return jvp_through(self.spec, ts, xs, kw) if by_spec else jvp_from_vjp(self, ts, y, xs, kw)
        if type(rule) is list:
            total: Any = None
            for t, r in zip(ts, rule, strict=False):
                if t is not None and r is not None and r is not ZERO:
                    part = r(t, y, *xs, **kw)
                    if part is not None:
                        total = part if total is None else total + part
            return total
        if not self.sparse_jvp:
            ts = [zeros_like_tensor(x) if t is None and is_float(x) else t for t, x in zip(ts, xs, strict=True)]
        return rule(ts, y, *xs, **kw)

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        """The input cotangents from output cotangent(s), for the inputs with ``need``."""
        rules = self.pull_rules
        if rules is not None:
            cx = self.conjugated and g.dtype.category == dt.COMPLEX
            if cx:
                g = g.conj()
            each = [r(g, y, *xs, **kw) if n and callable(r) else None for r, n in zip(rules, need, strict=False)]
            return [v if v is None else v.conj() for v in each] if cx else each
        rule = self.vjp_rule
        if rule is None:
            if (self.jvp_rule is None and self.spec is None) or self.linear:
                raise missing(
                    self.name, "reverse-mode rule"
                )  # that of a linear op is its transpose, which only it knows
            from .derive import vjp_from_jvp, vjp_through

            if self.spec is not None and (self.jvp_rule is None or self.form == "fused"):
                return vjp_through(self.spec, g, xs, kw, need)
            return vjp_from_jvp(self, g, y, xs, kw, need)
        gs = rule(g, y, *xs, need=need, **kw) if self.asks_need else rule(g, y, *xs, **kw)
        if type(gs) is not tuple and type(gs) is not list:
            gs = (gs,)
        out = []
        for v, n in zip(gs, need, strict=False):
            out.append((v() if callable(v) and not isinstance(v, Tensor) else v) if n else None)
        return out

    def keeps(self, need: tuple[bool, ...]) -> Keep:
        """What reverse mode must save for the cotangents of the inputs with `need`."""
        k = self._keeps.get(need)
        if k is None:
            k = self._keeps[need] = self.keep or self._find_keeps(need)
        return k

    def keeps_one(self) -> tuple[bool, bool]:
        """`keeps` for an op of one input."""
        y, x = self.keeps((True,))
        self.keep_one = (bool(y), x is None or x[0])
        return self.keep_one

    def _find_keeps(self, need: tuple[bool, ...]) -> Keep:
        if self.pull_rules is not None:
            return merge_uses([r for r, n in zip(self.pull_rules, need, strict=False) if n and callable(r)], len(need))
        if self.vjp_rule is not None:
            return merge_uses([self.vjp_rule], len(need))
        return (False, None) if self.form == "fused" else (True, None)

    # -- batches ------------------------------------------------------------------------------------------------------
    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        """Run on arguments of which those with ``flags`` carry a batch axis in front; the result carries one too."""
        for k in self.grows:
            kw = {**kw, k: (size, *kw[k])}
        return self.batch_rule(self, size, args, flags, kw)


def quietly(f: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    """`f` whatever the caller has asked NumPy to do about infinities and NaN."""
    with np.errstate(all="ignore"):
        return f(*args, **kw)


def _op_named(name: str) -> Op:
    return OPS[name]


def _as_operands(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Ragged sizes among the operands of a pointwise op as tensors: one number for each component."""
    tensors = [a for a in args if isinstance(a, Tensor)]
    return tuple([a.as_tensor(tensors) if isinstance(a, Ragged) else a for a in args])


# -- what a rule reads --------------------------------------------------------------------------------------------------


def _loads(code: CodeType, names: set[str]) -> set[str]:
    used = {str(i.argval) for i in dis.get_instructions(code) if i.opname.startswith("LOAD") if i.argval in names}
    # Instructions that load two variables at once carry a tuple.
    for i in dis.get_instructions(code):
        if isinstance(i.argval, tuple):
            used |= names.intersection(map(str, i.argval))
    return used | names.intersection(code.co_cellvars)


def names_used(rule: Rule) -> tuple[frozenset[int], bool]:
    """The positions of the parameters that a rule's body reads, and whether it reads its ``*args``."""
    code = getattr(rule, "__code__", None)
    if code is None:
        return frozenset(), True
    n = code.co_argcount
    names = code.co_varnames[:n]
    rest = code.co_varnames[n + code.co_kwonlyargcount] if code.co_flags & 0x04 else ""
    used = _loads(code, {*names, rest})
    return frozenset(i for i, name in enumerate(names) if name in used), rest in used


def merge_uses(rules: list[Rule], n: int) -> tuple[bool, tuple[bool, ...] | None]:
    """The union of what several rules ``(t, y, *xs)`` read."""
    keep_y, keep_x = False, [False] * n
    for r in rules:
        used, star = names_used(r)
        code = getattr(r, "__code__", None)
        if code is None:
            return True, None
        keep_y |= 1 in used
        for i in range(n):
            # Arguments gathered by *xs are kept together, or not at all.
            keep_x[i] |= (i + 2 in used) if i + 2 < code.co_argcount else star
    return keep_y, tuple(keep_x)


def is_float(x: Any) -> bool:
    """Whether x is a tensor of a differentiable (floating or complex) type."""
    return isinstance(x, Tensor) and x.dtype.category >= dt.FLOAT


def check_broadcast(name: str, *vals: Any) -> None:
    """Raise with the sizes that do not match, where shapes do not broadcast."""
    broadcast_shapes(*[np.shape(v) for v in vals], what=name)
