"""A typed loop language: `Kernel` records loops, loads, stores, reductions and math; a renderer turns the record into code.

A kernel is a sequence of *grids* (parallel ranges, a barrier between two of them). Inside a grid there are serial loops and
*lane* loops. Values are uniform (one per grid index) or varying (one per lane), as in SPMD languages; a renderer for a CPU
makes vectors of varying values, one for a GPU would make threads of them. Nothing here knows about either.

Everything is recorded in the order in which Python executes it, as a straight list per block, so a renderer is one walk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Union


@dataclass(frozen=True)
class DType:
    """A scalar type: its name, its size in bytes and its kind ('f' float, 'i' signed integer, 'b' boolean)."""

    name: str
    size: int
    kind: str

    def __repr__(self) -> str:
        return self.name


f64 = DType("f64", 8, "f")
f32 = DType("f32", 4, "f")
f16 = DType("f16", 2, "f")
bf16 = DType("bf16", 2, "f")
i64 = DType("i64", 8, "i")
i32 = DType("i32", 4, "i")
u8 = DType("u8", 1, "i")
bool_ = DType("bool", 1, "b")

BY_NAME = {d.name: d for d in (f64, f32, f16, bf16, i64, i32, u8, bool_)}
NUMPY_NAMES = {
    "float64": f64,
    "float32": f32,
    "float16": f16,
    "bfloat16": bf16,
    "int64": i64,
    "int32": i32,
    "uint8": u8,
    "bool": bool_,
}


def compute_type(dtype: DType) -> DType:
    """The type elementwise functions of `dtype` are computed in: f32 for the 16-bit floats, itself otherwise."""
    return f32 if dtype in (f16, bf16) else dtype


def precise_type(dtype: DType) -> DType:
    """The type normalisations of `dtype` are computed in: f64 for the 16-bit floats, itself otherwise.

    Their results are differences: in f32, a few elements in a million lose so many digits that not even a bfloat16 is right.
    """
    return f64 if dtype in (f16, bf16) else dtype


def stats_type(dtype: DType) -> DType:
    """The type of statistics that are kept for later: f64 for f64, f32 otherwise."""
    return f64 if dtype is f64 else f32


def two(k: Kernel, x: Value) -> list[Value]:
    """A number in double precision as the sum of two in which the kernel computes."""
    high = x.to(k.compute)
    return [high, (x - high.to(f64)).to(k.compute)]


SEGMENT = 2048  # elements that are summed before the sum is put aside

Operand = Union["Value", int, float, bool]


class Value:
    """One recorded operation and its result: op(args), of a dtype, uniform or varying over the lanes."""

    __slots__ = ("args", "attr", "block", "dtype", "k", "op", "varying")

    def __init__(
        self,
        k: Kernel,
        op: str,
        dtype: DType | None,
        args: tuple[Value, ...] = (),
        attr: Any = None,
        varying: bool | None = None,
    ):
        self.k, self.op, self.dtype, self.args, self.attr = k, op, dtype, args, attr
        self.varying: bool = any(a.varying for a in args) if varying is None else varying
        self.block: list[Value] | None = None  # the body of a structured statement

    def __repr__(self) -> str:
        return f"{self.op}:{self.dtype}{'~' if self.varying else ''}"

    def __add__(self, b: Operand) -> Value:
        return self.k.binary("add", self, b)

    def __radd__(self, b: Operand) -> Value:
        return self.k.binary("add", b, self)

    def __sub__(self, b: Operand) -> Value:
        return self.k.binary("sub", self, b)

    def __rsub__(self, b: Operand) -> Value:
        return self.k.binary("sub", b, self)

    def __mul__(self, b: Operand) -> Value:
        return self.k.binary("mul", self, b)

    def __rmul__(self, b: Operand) -> Value:
        return self.k.binary("mul", b, self)

    def __truediv__(self, b: Operand) -> Value:
        return self.k.binary("div", self, b)

    def __rtruediv__(self, b: Operand) -> Value:
        return self.k.binary("div", b, self)

    def __floordiv__(self, b: Operand) -> Value:
        return self.k.binary("idiv", self, b)

    def __mod__(self, b: Operand) -> Value:
        return self.k.binary("irem", self, b)

    def __and__(self, b: Operand) -> Value:
        return self.k.binary("and", self, b)

    def __or__(self, b: Operand) -> Value:
        return self.k.binary("or", self, b)

    def __xor__(self, b: Operand) -> Value:
        return self.k.binary("xor", self, b)

    def __lshift__(self, b: Operand) -> Value:
        return self.k.binary("shl", self, b)

    def __rshift__(self, b: Operand) -> Value:
        """Shift right, filling with the sign."""
        return self.k.binary("sar", self, b)

    def __neg__(self) -> Value:
        return self.k.unary("neg", self)

    def __abs__(self) -> Value:
        return self.k.unary("abs", self)

    def __lt__(self, b: Operand) -> Value:
        return self.k.compare("lt", self, b)

    def __le__(self, b: Operand) -> Value:
        return self.k.compare("le", self, b)

    def __gt__(self, b: Operand) -> Value:
        return self.k.compare("gt", self, b)

    def __ge__(self, b: Operand) -> Value:
        return self.k.compare("ge", self, b)

    def eq(self, b: Operand) -> Value:
        return self.k.compare("eq", self, b)

    def ne(self, b: Operand) -> Value:
        return self.k.compare("ne", self, b)

    def to(self, dtype: DType) -> Value:
        return self.k.cast(self, dtype)

    def bits(self, dtype: DType) -> Value:
        """The same bits read as `dtype` (of the same size)."""
        return self if dtype is self.dtype else self.k.emit("bitcast", dtype, (self,))


class Array:
    """A contiguous array parameter: `a[i]` loads (floats are promoted to the compute type), `a[i] = v` stores (rounded).

    A strided one may have any layout: it is read from its first entry on, and the kernel is told how far apart the others are.
    """

    __slots__ = ("base", "dtype", "k", "name", "stream", "strided")

    def __init__(self, k: Kernel, name: str, dtype: DType, stream: bool, strided: bool = False, base: Any = None):
        self.k, self.name, self.dtype, self.stream, self.strided = k, name, dtype, stream, strided
        self.base: Value | None = base  # where the entries are, if that is known at run time only

    def __getitem__(self, index: Operand) -> Value:
        v = self.raw(index)
        return self.k.cast(v, self.k.compute) if self.dtype.kind == "f" else v

    def raw(self, index: Operand) -> Value:
        """The entry as it is stored."""
        return self.k.emit("load", self.dtype, (self.k.value(index, i64),), self)

    def __setitem__(self, index: Operand, value: Operand) -> None:
        v = self.k.cast(self.k.value(value, self.dtype), self.dtype)
        self.k.emit("store", None, (self.k.value(index, i64), v), self)


class Variable:
    """A mutable local: `x.set(v)`, `x.get()`."""

    __slots__ = ("dtype", "k", "varying")

    def __init__(self, k: Kernel, dtype: DType, varying: bool):
        self.k, self.dtype, self.varying = k, dtype, varying

    def get(self) -> Value:
        return self.k.emit("get", self.dtype, (), self, self.varying)

    def set(self, v: Operand) -> None:
        self.k.emit("set", None, (self.k.cast(self.k.value(v, self.dtype), self.dtype),), self)


class Accumulator:
    """A reduction over lane loops: one partial result per lane (and per unrolled copy), combined in a fixed order by `total`."""

    __slots__ = ("carried", "dtype", "k", "op", "short", "slots", "wide")

    def __init__(self, k: Kernel, op: str, dtype: DType, wide: DType, short: bool = False):
        self.k, self.op, self.dtype = k, op, dtype
        self.wide = wide  # the type of what was put aside, and of the total
        self.slots = 1  # how many unrolled copies exist; the lane loops that use it raise it
        self.carried = False
        self.short = short  # unrolled copies are added up, and put aside at once

    def _use(self, op: str, *args: Operand) -> None:
        vals = tuple(self.k.cast(self.k.value(a, self.dtype), self.dtype) for a in args)
        self.slots = 1 if self.short else max(self.slots, self.k.lane_unroll)
        self.k.emit(op, None, vals, self)

    def add(self, v: Operand) -> None:
        """acc = op(acc, v) in every active lane."""
        self._use("accumulate", v)

    def fma(self, a: Operand, b: Operand) -> None:
        """acc = acc + a*b, rounded once, in every active lane."""
        self._use("accumulate_fma", a, b)

    def carry(self) -> None:
        """Put what was accumulated so far aside: short sums of short sums lose less than one long sum."""
        if not self.short:
            self.carried = True
            self.k.emit("carry", None, (), self)

    def total(self) -> Value:
        return self.k.emit("total", self.wide, (), self, False)


@dataclass
class Param:
    """A parameter of a kernel, in calling order: an array (passed as an ndarray), a size (int) or a scalar (float)."""

    name: str
    kind: str
    dtype: DType
    array: Array | None = None


class Kernel:
    """Records one kernel. `width` is the number of lanes of a vector: fixed per compute type, so that sums are grouped alike
    on every machine."""

    def __init__(self, name: str, compute: DType):
        self.name, self.compute = name, compute
        self.width = 64 // compute.size
        self.params: list[Param] = []
        self.locals: list[tuple[Array, int]] = []
        self.body: list[Value] = []
        self._blocks = [self.body]
        self.lane_unroll = 0  # 0 outside lane loops
        self.polls = False  # whether it can be interrupted
        self.columns = 0  # column sums of a row plan, for its caller

    # -- parameters
    def array(self, name: str, dtype: DType, stream: bool = False) -> Array:
        """An array parameter. `stream`: whole vectors bypass the cache when stored; the caller promises 64-byte alignment of
        every row it stores to."""
        a = Array(self, name, dtype, stream)
        self.params.append(Param(name, "array", dtype, a))
        return a

    def strided(self, name: str, dtype: DType) -> Array:
        """An array parameter of any layout."""
        a = Array(self, name, dtype, False, True)
        self.params.append(Param(name, "array", dtype, a))
        return a

    def array_at(self, table: Array, index: Operand, dtype: DType) -> Array:
        """The array whose ndarray object has its address at an entry of a table of integers: one kernel for many arrays."""
        base = self.emit("data", i64, (self.value(index, i64),), table, False)
        return Array(self, table.name, dtype, False, base=base)

    def local(self, name: str, dtype: DType, n: int) -> Array:
        """An array of n entries, a few kilobytes at most, that each thread has for itself; it starts out undefined."""
        a = Array(self, name, dtype, False)
        self.locals.append((a, n))
        return a

    def size(self, name: str) -> Value:
        self.params.append(Param(name, "size", i64))
        return Value(self, "param", i64, (), name, False)

    def scalar(self, name: str, dtype: DType | None = None) -> Value:
        self.params.append(Param(name, "scalar", f64))
        return self.cast(Value(self, "param", f64, (), name, False), dtype or self.compute)

    # -- recording
    def emit(
        self, op: str, dtype: DType | None, args: tuple[Value, ...] = (), attr: Any = None, varying: bool | None = None
    ) -> Value:
        v = Value(self, op, dtype, args, attr, varying)
        self._blocks[-1].append(v)
        return v

    def const(self, x: float | int | bool, dtype: DType) -> Value:
        return Value(self, "const", dtype, (), x, False)

    def value(self, x: Operand, like: DType) -> Value:
        return x if isinstance(x, Value) else self.const(x, like)

    def _pair(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        if isinstance(a, Value):
            assert a.dtype is not None
            b = self.value(b, a.dtype)
        elif isinstance(b, Value):
            assert b.dtype is not None
            a = self.value(a, b.dtype)
        if not isinstance(a, Value) or not isinstance(b, Value) or a.dtype is not b.dtype:
            raise TypeError(f"kernel {self.name}: operands of different types, {a!r} and {b!r}; write .to(dtype)")
        return a, b

    def binary(self, op: str, a: Operand, b: Operand) -> Value:
        x, y = self._pair(a, b)
        if op == "mul" and x.dtype is i64 and (x.attr == 1 or y.attr == 1):  # indices: keep unit strides visible
            if y.op == "const" and y.attr == 1:
                return x
            if x.op == "const" and x.attr == 1:
                return y
        return self.emit(op, x.dtype, (x, y))

    def compare(self, op: str, a: Operand, b: Operand) -> Value:
        return self.emit(op, bool_, self._pair(a, b))

    def unary(self, op: str, a: Value) -> Value:
        return self.emit(op, a.dtype, (a,))

    def cast(self, a: Value, dtype: DType) -> Value:
        if a.dtype is dtype:
            return a
        if a.op == "const":
            return self.const(a.attr, dtype)
        return self.emit("cast", dtype, (a,))

    def select(self, c: Value, a: Operand, b: Operand) -> Value:
        x, y = self._pair(a, b)
        return self.emit("select", x.dtype, (c, x, y))

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """a*b + c, rounded once."""
        like = next(x for x in (a, b, c) if isinstance(x, Value)).dtype
        assert like is not None
        vals = tuple(self.value(x, like) for x in (a, b, c))
        return self.emit("fma", like, vals)

    def minimum(self, a: Operand, b: Operand) -> Value:
        """The smaller one; b where they do not compare."""
        x, y = self._pair(a, b)
        return self.select(x < y, x, y)

    def maximum(self, a: Operand, b: Operand) -> Value:
        """The larger one; b where they do not compare."""
        x, y = self._pair(a, b)
        return self.select(x > y, x, y)

    def sqrt(self, a: Value) -> Value:
        return self.unary("sqrt", a)

    def rint(self, a: Value) -> Value:
        """Round to nearest, ties to even."""
        return self.unary("rint", a)

    def floor(self, a: Value) -> Value:
        """The largest integer not above."""
        return self.unary("floor", a)

    def ceil(self, a: Value) -> Value:
        """The smallest integer not below."""
        return self.unary("ceil", a)

    def trunc(self, a: Value) -> Value:
        """Without the fraction."""
        return self.unary("trunc", a)

    def copysign(self, a: Value, b: Value) -> Value:
        return self.emit("copysign", a.dtype, (a, b))

    def any(self, c: Value) -> Value:
        """Is the condition true in some active lane: a uniform boolean."""
        return self.emit("any", bool_, (c,), None, False)

    def libm(self, name: str, a: Value) -> Value:
        """A scalar library function on every lane; slow, for rare arguments."""
        return self.emit("libm", a.dtype, (a,), name)

    def prefetch(self, a: Array, index: Value) -> None:
        """Ask for the cache line that holds a[index]."""
        self.emit("prefetch", None, (index,), a)

    def gemm(
        self,
        blas: Value,
        size: tuple[Operand, Operand, Operand],
        a: tuple[Array, Operand, Operand],
        b: tuple[Array, Operand, Operand],
        c: tuple[Array, Operand, Operand],
        transposed: bool = False,
        add: bool = False,
        turned: bool = False,
    ) -> None:
        """c = a b, or c += a b, by a BLAS library: `blas` is the address of its gemm. `size` is (m, n, k): c is m x n, a is m x k.

        Matrices lie in rows: an array, where in it they start, and how far apart their rows are. `transposed`: b is n x k; `turned`:
        a is k x m.
        """
        vals = [blas, *size, *a[1:], *b[1:], *c[1:]]
        attr = (a[0], b[0], c[0], transposed, add, turned)
        self.emit("gemm", None, tuple(self.value(v, i64) for v in vals), attr, False)

    def var(self, dtype: DType, init: Operand, varying: bool = False) -> Variable:
        x = Variable(self, dtype, varying)
        x.set(init)
        return x

    def acc(self, op: str = "add", dtype: DType | None = None, wide: DType | None = None) -> Accumulator:
        """A reduction in `dtype`; what is put aside, and the total, are in the type `wide`."""
        d = dtype or self.compute
        a = Accumulator(self, op, d, wide or d)
        self.emit("acc_init", None, (), a)
        return a

    def sum(self) -> Accumulator:
        """A sum whose total is in double precision, and in which no more than the unrolled copies are added in fewer bits."""
        a = Accumulator(self, "add", self.compute, f64, short=self.compute is not f64)
        self.emit("acc_init", None, (), a)
        return a

    # -- structure
    @contextmanager
    def _block(self, op: str, args: tuple[Value, ...], attr: Any, index: Value | None) -> Iterator[Value]:
        st = self.emit(op, None, args, (attr, index), False)
        st.block = []
        self._blocks.append(st.block)
        try:
            yield index if index is not None else st
        finally:
            self._blocks.pop()

    @contextmanager
    def grid(self, n: Operand, cost: Operand = 1) -> Iterator[Value]:
        """A parallel range of n independent indices, `cost` elements of work each; a barrier follows it."""
        if len(self._blocks) != 1:
            raise TypeError("a grid cannot be nested")
        index = Value(self, "index", i64, (), None, False)
        with self._block("grid", (self.value(n, i64), self.value(cost, i64)), None, index) as i:
            yield i

    @contextmanager
    def loop(self, start: Operand, stop: Operand, step: Operand = 1) -> Iterator[Value]:
        """A serial loop over range(start, stop, step)."""
        index = Value(self, "index", i64, (), None, False)
        args = (self.value(start, i64), self.value(stop, i64), self.value(step, i64))
        with self._block("loop", args, None, index) as i:
            yield i

    @contextmanager
    def repeat(self) -> Iterator[Value]:
        """A loop without end, but for :meth:`leave`."""
        with self._block("repeat", (), None, None) as st:
            yield st

    def leave(self, cond: Value) -> None:
        """End the innermost `repeat` if the uniform condition holds."""
        if cond.varying:
            raise TypeError("leave() needs a uniform condition")
        self.emit("leave", None, (cond,), None, False)

    def poll(self, cond: Value) -> None:
        """If the uniform condition holds, look whether somebody wants the program to stop: then the kernel ends where it is."""
        self.polls = True
        self.emit("poll", None, (cond,), None, False)

    @contextmanager
    def lanes(self, n: Operand, unroll: int = 4, aligned: bool = False) -> Iterator[Value]:
        """A loop over range(n) whose iterations are lanes of vectors, `unroll` vectors at a time.

        `aligned`: iteration i accumulates in partial result ``i mod (unroll * width)``, at the end of the range too.
        """
        if self.lane_unroll:
            raise TypeError("a lane loop cannot be nested in another")
        if unroll < 1 or unroll & (unroll - 1):
            raise ValueError(f"kernel {self.name}: unroll must be a power of two, got {unroll}")
        index = Value(self, "lane", i64, (), None, True)
        self.lane_unroll = unroll
        try:
            with self._block("lanes", (self.value(n, i64),), (unroll, aligned), index) as j:
                yield j
        finally:
            self.lane_unroll = 0

    @contextmanager
    def reducing(self, n: Operand, accs: list[Accumulator], unroll: int = 4) -> Iterator[Value]:
        """A lane loop that accumulates, in segments, so that no chain of additions is longer than a segment."""
        size = self.value(n, i64)
        with self.loop(0, size, SEGMENT) as start:
            with self.lanes(self.minimum(size - start, SEGMENT), unroll) as j:
                yield start + j
            with self.when(size > SEGMENT):
                for a in accs:
                    a.carry()

    @contextmanager
    def when(self, cond: Value) -> Iterator[Value]:
        """The block runs if the uniform condition holds."""
        if cond.varying:
            raise TypeError("when() needs a uniform condition; use select() or any()")
        with self._block("if", (cond,), None, None) as st:
            yield st
