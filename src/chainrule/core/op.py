"""Op: all that is known of an operator, in one place.

Three forms of declaration (see docs/adding-an-op.md):

* :func:`pointwise` - one linear rule per input, from which forward mode, reverse mode, complex numbers and batching follow;
* :func:`op` - a structured op: a NumPy body over trailing axes, with forward and reverse rules;
* compositions - plain functions over ops, no rules at all.

Rules call ops on tensors, so they are themselves differentiable and batchable. ``None`` is the symbolic zero.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from . import dtypes as dt
from .batching import grow
from .dispatch import STACK, innermost
from .errors import ZERO, missing
from .shapes import broadcast_shapes, zeros
from .tensor import PAYLOADS, Tensor
from .views import register_view, write_out

ndarray = np.ndarray
OPS: dict[str, Op] = {}

FLOAT_NUMS = frozenset(d.np.num for d in (dt.float32, dt.float64, dt.complex64, dt.complex128))
REAL_NUMS = frozenset(d.np.num for d in (dt.float32, dt.float64))
INT_NUMS = frozenset(d.np.num for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64))
COMPLEX_NUMS = frozenset(d.np.num for d in (dt.complex32, dt.complex64, dt.complex128))
ALL_NUMS = FLOAT_NUMS | INT_NUMS | frozenset((dt.bool_.np.num,))


LARGE_SIZE = 1 << 16  # elements from which a binary op tries its body for large arrays

Rule = Callable[..., Any]


def _loads(code: CodeType, names: set[str]) -> set[str]:
    used = {
        str(i.argval)
        for i in dis.get_instructions(code)
        if i.opname.startswith("LOAD")
        for n in (i.argval,)
        if n in names
    }
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


class Op:
    """An operator: its body, its derivative, how it batches, its samples."""

    form = "structured"
    linear_rules = False
    pull_rules: Any = None
    keep_one: tuple[bool, bool] | None = None
    rules: tuple[Any, ...] = ()
    sizes: tuple[str, ...] = ()
    none_is_zero = True  # a cotangent None from the reverse rule: the derivative is zero, not "there is none"

    def __init__(
        self,
        name: str,
        impl: Callable[..., Any] | None,
        *,
        batch: Callable[..., Any] | str = "trailing",
        view: bool = False,
        differentiable: bool = True,
        integer_outputs: tuple[int, ...] = (),
        sizes: tuple[str, ...] = (),
        doc: str | None = None,
    ) -> None:
        self.name, self.impl, self.sizes = name, impl, sizes
        self.impls: dict[type, Callable[..., Any]] = {}
        self.batch_rule = batch
        self.view, self.differentiable, self.integer_outputs = view, differentiable, frozenset(integer_outputs)
        self.jvp_rule: Any = None
        self.vjp_rule: Any = None
        self.sparse_jvp = self.sparse_vjp = False
        self.samples: list[Any] = []
        self.core: Any = None
        self._keeps: dict[Any, tuple[bool, tuple[bool, ...] | None]] = {}
        self.__doc__ = doc or (impl.__doc__ if impl is not None else None)
        self.__name__ = name
        OPS[name] = self

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
        return self

    def vjp(self, rule: Any = None, *, sparse: bool = False) -> Any:
        """Declare the reverse rule ``rule(g, y, *xs, **static) -> one cotangent an input``.

        An entry may be ``None`` (zero) or a function of no arguments, which is called only if that input needs it.
        Cotangents of unused outputs arrive as zeros, or with ``sparse=True`` as ``None``.
        """
        if rule is None:
            return lambda r: self.vjp(r, sparse=sparse)
        self.vjp_rule, self.sparse_vjp = rule, sparse
        self.pull_rules = rule if type(rule) is list else None
        return self

    def on(self, payload: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Declare the body for another payload than NumPy arrays."""

        def register(f: Callable[..., Any]) -> Callable[..., Any]:
            self.impls[payload] = f
            return f

        return register

    # -- calling ------------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kw: Any) -> Any:
        y = self.bind(*args, **kw)
        if self.view:
            register_view(self, args[0], y, kw)
        return y

    def bind(self, *args: Any, **kw: Any) -> Any:
        """Run at the highest level among the arguments."""
        top = None
        if PAYLOADS and self.form == "pointwise":
            args = ragged_operands(args)
        for a in args:
            if isinstance(a, Tensor):
                i = a._interp
                if i is not None and (top is None or i.level > top.level):
                    top = i
        if PAYLOADS:
            i = ragged_level(args, kw)
            if i is not None and (top is None or i.level > top.level):
                top = i
        if top is None:
            return self.concrete(args, kw)
        return top.run(self, args, kw)

    def concrete(self, args: Any, kw: dict[str, Any]) -> Any:
        """Run the body on payloads."""
        impl = self.impl
        if len(args) == 1 and not PAYLOADS:
            r = impl(args[0]._value, **kw)  # type: ignore[misc]
            if type(r) is ndarray:
                return Tensor(r)
            return tuple([Tensor(np.asarray(v)) for v in r]) if type(r) is tuple else Tensor(np.asarray(r))
        vals = [a._value if isinstance(a, Tensor) else a for a in args]
        if PAYLOADS:
            kind = next((type(v) for v in vals if type(v) in PAYLOADS), None) or payload_in(kw)
            if kind is not None:
                impl = self.impls.get(kind) or PAYLOADS[kind](self)
        r = impl(*vals, **kw)  # type: ignore[misc]
        if type(r) is tuple:
            return tuple([Tensor(v if type(v) is ndarray or type(v) in PAYLOADS else np.asarray(v)) for v in r])
        return Tensor(r if type(r) is ndarray or type(r) in PAYLOADS else np.asarray(r))

    # -- derivatives --------------------------------------------------------------------------------------------------
    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        """The output tangent(s) from input tangents; at least one of `ts` is not None."""
        rule = self.jvp_rule
        if rule is None:
            if self.vjp_rule is None:
                raise missing(self.name, "forward-mode rule")
            from .derive import jvp_from_vjp

            return jvp_from_vjp(self, ts, y, xs, kw)
        if type(rule) is list:
            total: Any = None
            for t, r in zip(ts, rule, strict=False):
                if t is not None and r is not None and r is not ZERO:
                    part = r(t, y, *xs, **kw)
                    total = part if total is None else total + part
            return total
        if not self.sparse_jvp:
            ts = [zeros_like_tensor(x) if t is None and is_float(x) else t for t, x in zip(ts, xs, strict=True)]
        return rule(ts, y, *xs, **kw)

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        """The input cotangents from output cotangent(s), for the inputs with ``need``."""
        rule = self.vjp_rule
        if rule is None:
            if self.jvp_rule is None:
                raise missing(self.name, "reverse-mode rule")
            from .derive import vjp_from_jvp

            return vjp_from_jvp(self, g, y, xs, kw, need)
        if type(rule) is list:
            return [r(g, y, *xs, **kw) if n and callable(r) else None for r, n in zip(rule, need, strict=False)]
        gs = rule(g, y, *xs, **kw)
        if type(gs) is not tuple and type(gs) is not list:
            gs = (gs,)
        return [
            (v() if callable(v) and not isinstance(v, Tensor) else v) if n else None
            for v, n in zip(gs, need, strict=False)
        ]

    def keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        """What reverse mode must save: (the output?, which inputs); None stands for all inputs."""
        k = self._keeps.get(need)
        if k is None:
            k = self._keeps[need] = self._find_keeps(need)
        return k

    def keeps_one(self) -> tuple[bool, bool]:
        """`keeps` for an op of one input."""
        y, x = self.keeps((True,))
        self.keep_one = (y, x is None or x[0])
        return self.keep_one

    def _find_keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        rule = self.vjp_rule
        if rule is None:
            return True, None
        rules = [r for r, n in zip(rule, need, strict=False) if n and callable(r)] if type(rule) is list else [rule]
        return merge_uses(rules, len(need))

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        """Run on arguments of which those with ``flags`` carry a batch axis in front; the result carries one too."""
        rule = self.batch_rule
        for k in self.sizes:
            kw = {**kw, k: (size, *kw[k])}
        if rule == "trailing":
            return self.bind(*args, **kw)
        if rule == "expand":
            return self.bind(
                *[grow(a, size) if isinstance(a, Tensor) and not f else a for a, f in zip(args, flags, strict=True)],
                **kw,
            )
        if callable(rule):
            return rule(size, args, flags, **kw)
        raise missing(self.name, "batching rule")


def _op_named(name: str) -> Op:
    return OPS[name]


def ragged_level(args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """The innermost vmap level among the ragged sizes in arguments and static data."""
    top = None
    if not STACK.get():
        return top
    for v in (*args, *kw.values()):
        for s in v if type(v) is tuple else (v,):
            for r in (s.start, s.stop) if type(s) is slice else (s,):
                if type(r) in PAYLOADS and r.level is not None and (top is None or r.level.level > top.level):
                    top = r.level
    return top


def ragged_operands(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Ragged sizes among the operands of a pointwise op as tensors: one number for each component."""
    if not any(type(a) in PAYLOADS for a in args):
        return args
    tensors = [a for a in args if isinstance(a, Tensor)]
    nd = max(t.ndim for t in tensors)
    out = []
    for a in args:
        if type(a) in PAYLOADS:
            v = a.values
            if v.dtype.kind == "f":
                v = v.astype(next((innermost(t).dtype for t in tensors if is_float(t)), v.dtype))
            a = Tensor(Tensor(v), a.level) if a.level is not None else Tensor(v.reshape(a.tensor_shape(nd)))
        out.append(a)
    return tuple(out)


def payload_in(kw: dict[str, Any]) -> type | None:
    """The payload that static data speaks of: a shape with ragged sizes makes an op on dense tensors a nested one."""
    for v in kw.values():
        for s in v if type(v) is tuple else (v,):
            for r in (s.start, s.stop) if type(s) is slice else (s,):
                if type(r) in PAYLOADS:
                    return type(r)
    return None


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


def zeros_like_tensor(x: Tensor) -> Tensor:
    """Zeros with the shape and dtype of `x`, without its history."""
    return zeros(tuple(x.shape), x.dtype)


# -- pointwise ------------------------------------------------------------------------------------------------------------


class Pointwise(Op):
    """An op that acts element by element with broadcasting; ``rules[i]`` maps a tangent of input i to one of the output."""

    form = "pointwise"

    def __init__(
        self,
        name: str,
        fn: Callable[..., Any],
        rules: tuple[Any, ...],
        *,
        vjp: Rule | None = None,
        promote: str = "same",
        fast: frozenset[int] | None = None,
        static: bool = False,
        large: Callable[[Any, Any], Any] | None = None,
        doc: str | None = None,
    ) -> None:
        super().__init__(name, None, batch="trailing", differentiable=bool(rules), doc=doc)
        self.fn, self.rules, self.promote, self.large = fn, rules, promote, large
        self.vjp_rule = vjp
        self.linear_rules = vjp is None
        self.pull_rules = rules if vjp is None else None
        self.fast = (FLOAT_NUMS if promote in ("float", "float_only") else ALL_NUMS) if fast is None else fast
        arity = 0 if static else rules_arity(fn, rules)
        self.call = _unary(self) if arity == 1 else _binary(self) if arity == 2 else _nary(self)
        self.operator = _binary(self, operator=True) if arity == 2 else self.call

    def __call__(self, *args: Any, out: Any = None, **kw: Any) -> Any:
        y = self.call(*args, **kw)
        if out is not None:
            return write_out(out, y)
        return y

    def bind(self, *args: Any, **kw: Any) -> Any:
        return self.call(*args, **kw)

    def concrete(self, args: Any, kw: dict[str, Any]) -> Any:
        vals: list[Any] = []
        kinds = []
        for a in args:
            if isinstance(a, Tensor):
                v = a._value
                kinds.append((dt.FROM_NP[v.dtype], v.ndim))
            elif isinstance(a, ndarray | np.generic):
                v = np.asarray(a)
                kinds.append((dt.FROM_NP[v.dtype], v.ndim))
            elif isinstance(a, bool | int | float | complex):
                v = a
                kinds.append((dt.scalar_dtype(a), -1))
            elif type(a) in PAYLOADS:  # a ragged size
                v = a
                kinds.append((dt.int64, -1))
            else:
                raise TypeError(f"{self.name}: expected a tensor or a number, got {type(a).__name__}")
            vals.append(v)
        d = dt.result_of(kinds)
        if self.promote == "float" and d.category < dt.FLOAT:
            d = dt.get_default_dtype()
        work = dt.WORK.get(d.np, d.np)
        vals = [
            _scalar(v, work)
            if isinstance(v, bool | int | float | complex)
            else v
            if getattr(v, "dtype", work) == work
            else v.astype(work)
            for v in vals
        ]
        if PAYLOADS and any(type(v) in PAYLOADS for v in vals):
            r = PAYLOADS[next(type(v) for v in vals if type(v) in PAYLOADS)](self)(*vals, **kw)
        else:
            try:
                r = self.fn(*vals, **kw)
            except ValueError:
                check_broadcast(self.name, *vals)
                raise
        if work is not d.np and (narrow := dt.NARROW[d.np].get(r.dtype)) is not None:
            r = r.astype(narrow)
        return Tensor(r if type(r) is ndarray or type(r) in PAYLOADS else np.asarray(r))

    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        total: Any = None
        for t, rule in zip(ts, self.rules, strict=False):
            if t is not None and rule is not ZERO and rule is not None:
                part = rule(t, y, *xs, **kw)
                if part is not None:
                    total = part if total is None else total + part
        return total

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        if self.vjp_rule is not None:
            return Op.pull(self, g, y, xs, kw, need)
        cx = g._value.dtype.num in COMPLEX_NUMS if g._interp is None else g.dtype.category == dt.COMPLEX
        if cx:
            g = g.conj()
        out: list[Any] = []
        for n, rule in zip(need, self.rules, strict=False):
            if not n or rule is ZERO or rule is None:
                out.append(None)
                continue
            r = rule(g, y, *xs, **kw) if kw else rule(g, y, *xs)
            out.append(r.conj() if cx and r is not None else r)
        return out

    def _find_keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        if self.vjp_rule is not None:
            return Op._find_keeps(self, need)
        return merge_uses([r for r, n in zip(self.rules, need, strict=False) if n and callable(r)], len(need))

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        ranks = [a.ndim - f if isinstance(a, Tensor) else -1 for a, f in zip(args, flags, strict=True)]
        n = max(ranks)
        # Promotion looks at the rank the function sees, not at the rank with the batch axis.
        ds = [a.dtype for a in args if isinstance(a, Tensor)]
        if any(d is not ds[0] for d in ds) and self.promote != "none":
            kinds = [
                (a.dtype, r) if isinstance(a, Tensor) else (dt.scalar_dtype(a), -1)
                for a, r in zip(args, ranks, strict=True)
            ]
            d = dt.result_of(kinds)
            args = [a.to(d) if isinstance(a, Tensor) and a.dtype is not d else a for a in args]
        return self.call(
            *[lift_rank(a, r, n) if f and r < n else a for a, f, r in zip(args, flags, ranks, strict=True)], **kw
        )


def check_broadcast(name: str, *vals: Any) -> None:
    """Raise with the sizes that do not match, where shapes do not broadcast."""
    broadcast_shapes(*[np.shape(v) for v in vals], what=name)


def lift_rank(a: Tensor, have: int, want: int) -> Tensor:
    """A batched tensor with ones inserted after its batch axis, so that its example has rank `want`."""
    from .primitives import reshape_p

    shape = a.shape
    return reshape_p.bind(a, shape=(shape[0], *(1,) * (want - have), *shape[1:]), old=tuple(shape))


def _scalar(v: Any, work: Any) -> Any:
    try:
        return np.dtype(work).type(v)
    except (OverflowError, TypeError):
        return np.asarray(v).astype(work)


def rules_arity(fn: Any, rules: tuple[Any, ...]) -> int:
    """The number of tensor inputs of a pointwise op."""
    if rules:
        return len(rules)
    return int(getattr(fn, "nin", 0)) or fn.__code__.co_argcount


def _unary(op: Pointwise) -> Callable[..., Any]:
    fn, fast = op.fn, op.fast

    def call(x: Any) -> Any:
        if type(x) is Tensor:
            i = x._interp
            if i is None:
                v = x._value
                if v.dtype.num in fast and type(v) is ndarray:
                    r = fn(v)
                    return Tensor(r if type(r) is ndarray else np.asarray(r))
                return op.concrete((x,), {})
            return i.run_unary(op, x)
        if isinstance(x, Tensor) and (i := x._interp) is not None:
            return i.run_unary(op, x)
        return Op.bind(op, x)

    call.__name__ = op.name
    return call


OPERANDS = (Tensor, bool, int, float, complex, ndarray, np.generic)


def is_operand(x: Any) -> bool:
    """Whether an operator between tensors can do something with `x`; the rest is left to Python, and to the other operand."""
    return isinstance(x, OPERANDS) or type(x) in PAYLOADS


def _binary(op: Pointwise, operator: bool = False) -> Callable[..., Any]:
    fn, fast, large = op.fn, op.fast, op.large
    floats = op.fast & FLOAT_NUMS
    number = (float, int) if isinstance(fn, np.ufunc) else ()

    def call(a: Any, other: Any) -> Any:
        if type(a) is Tensor:
            ia = a._interp
            if ia is None:
                va = a._value
                if type(other) is Tensor:
                    if other._interp is None:
                        vb = other._value
                        d = va.dtype
                        if vb.dtype is d and d.num in fast and type(va) is ndarray and type(vb) is ndarray:
                            if large is not None and va.size >= LARGE_SIZE and (r := large(va, vb)) is not None:
                                return Tensor(r)
                            try:
                                r = fn(va, vb)
                            except ValueError:
                                check_broadcast(op.name, va, vb)
                                raise
                            return Tensor(r if type(r) is ndarray else np.asarray(r))
                        return op.concrete((a, other), {})
                    return other._interp.run_binary(op, a, other)
                if type(other) in number:
                    if va.dtype.num in floats and type(va) is ndarray:
                        if large is not None and va.size >= LARGE_SIZE and (r := large(va, other)) is not None:
                            return Tensor(r)
                        r = fn(va, other)
                        return Tensor(r if type(r) is ndarray else np.asarray(r))
                    return op.concrete((a, other), {})
            elif type(other) is Tensor:
                ib = other._interp
                return (ib if ib is not None and ib.level > ia.level else ia).run_binary(op, a, other)
            elif type(other) is float or type(other) is int:
                return ia.run_binary(op, a, other)
        elif type(other) is Tensor and type(a) in number:
            ib = other._interp
            if ib is not None:
                return ib.run_binary(op, a, other)
            if other._value.dtype.num in floats and type(other._value) is ndarray:
                if large is not None and other._value.size >= LARGE_SIZE and (r := large(a, other._value)) is not None:
                    return Tensor(r)
                r = fn(a, other._value)
                return Tensor(r if type(r) is ndarray else np.asarray(r))
        if isinstance(a, Tensor):  # a subclass, as parameters are
            top = a._interp
            if isinstance(other, Tensor):
                ib = other._interp
                if ib is not None and (top is None or ib.level > top.level):
                    top = ib
                if top is not None:
                    return top.run_binary(op, a, other)
            elif top is not None and (type(other) is float or type(other) is int):
                return top.run_binary(op, a, other)
        elif isinstance(other, Tensor) and other._interp is not None and type(a) in number:
            return other._interp.run_binary(op, a, other)
        if operator and not (is_operand(a) and is_operand(other)):
            return NotImplemented
        return Op.bind(op, a, other)

    call.__name__ = op.name
    return call


def _nary(op: Pointwise) -> Callable[..., Any]:
    def call(*args: Any, **kw: Any) -> Any:
        return Op.bind(op, *args, **kw)

    call.__name__ = op.name
    return call


def pointwise(
    name: str,
    fn: Callable[..., Any],
    *rules: Any,
    vjp: Rule | None = None,
    promote: str = "same",
    fast: frozenset[int] | None = None,
    static: bool = False,
    large: Callable[[Any, Any], Any] | None = None,
    doc: str | None = None,
) -> Pointwise:
    """Declare a pointwise op: ``fn`` on NumPy arrays and, an input each, a linear rule ``rule(t, y, *xs)``.

    Without rules the op has no derivative; ``ZERO`` as a rule says that the derivative exists and is zero. From the
    rules follow forward mode, reverse mode (conj . rule . conj, reduced to the input's shape and realness), complex
    numbers and batching. A non-holomorphic op spells its reverse rule too: ``vjp(g, y, *xs) -> (g1, ...)``.
    ``promote``: "same" (PyTorch's common type), "float" (integers become the default float), "none". ``static`` says that
    `fn` and the rules take keyword arguments (data, not tensors). ``large`` is another body for two operands of many elements; it
    returns None for those it has no code for.
    """
    return Pointwise(name, fn, rules, vjp=vjp, promote=promote, fast=fast, static=static, large=large, doc=doc)


def op(
    name: str | None = None,
    *,
    batch: Callable[..., Any] | str = "trailing",
    core: str | None = None,
    view: bool = False,
    differentiable: bool = True,
    integer_outputs: tuple[int, ...] = (),
    sizes: str = "",
) -> Callable[[Callable[..., Any]], Op]:
    """Declare a structured op from its body on NumPy arrays: tensors positional, static data keyword-only.

    The body acts on trailing axes (axes are stored negative) and leaves any leading axes alone; then ``batch="trailing"``
    suffices for ops of one tensor, ``"expand"`` for several tensors that need the same leading axes, and ``core`` (a
    signature such as ``"(m,n),(n,k)->(m,k)"``) for ops that broadcast their leading axes. Otherwise `batch` is a function
    ``batch(size, xs, batched, **static)``.

    ``sizes`` names the static data that hold all sizes of an argument or of the result, so that a batch axis is added to
    them too and a rule may take them for the shapes it sees. Static data that speak of trailing sizes alone are left alone:
    their rules must leave leading axes alone as well.
    """

    def declare(f: Callable[..., Any]) -> Op:
        cls = CoreOp if core is not None else Op
        o = cls(
            name or f.__name__,
            f,
            batch=batch,
            view=view,
            differentiable=differentiable,
            integer_outputs=integer_outputs,
            sizes=tuple(sizes.split()),
        )
        if core is not None:
            o.core = [len([d for d in part.strip("() ").split(",") if d]) for part in core.split("->")[0].split("),")]
        return o

    return declare


class CoreOp(Op):
    """An op with a gufunc signature: leading axes broadcast against each other, the core axes are the body's business."""

    form = "core"

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        ranks = [
            (a.ndim - f - c) if isinstance(a, Tensor) else 0 for a, f, c in zip(args, flags, self.core, strict=False)
        ]
        n = max(ranks)
        out = []
        for a, f, r, c in zip(args, flags, ranks, self.core, strict=False):
            out.append(lift_rank(a, r + c, n + c) if f and r < n else a)
        return self.bind(*out, **kw)
