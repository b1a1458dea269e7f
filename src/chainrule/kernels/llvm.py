"""Renders a recorded `Kernel` to LLVM IR: varying values become vectors, lane loops become an unrolled and a masked loop.

The tables say which instruction an operation is; the walk says how blocks become basic blocks. The module that comes out has
one exported function `entry(pool, parameters...)`. An array parameter arrives as the address of the ndarray object, whose data
pointer the entry loads itself: asking NumPy for it from Python costs a microsecond per array.
"""

from __future__ import annotations

import platform
import struct
from typing import Any

from .lang import Accumulator, Array, DType, Kernel, Param, Value, Variable, bf16, bool_, f16, f32, f64, i32, i64, u8

TYPES = {f64: "double", f32: "float", f16: "half", bf16: "i16", i64: "i64", i32: "i32", u8: "i8", bool_: "i1"}
STORAGE = {**TYPES, bool_: "i8"}
MANGLE = {f64: "f64", f32: "f32", f16: "f16", bf16: "i16", i64: "i64", i32: "i32", u8: "i8", bool_: "i8"}

BINARY = {
    ("add", "f"): "fadd",
    ("sub", "f"): "fsub",
    ("mul", "f"): "fmul",
    ("div", "f"): "fdiv",
    ("add", "i"): "add",
    ("sub", "i"): "sub",
    ("mul", "i"): "mul",
    ("idiv", "i"): "sdiv",
    ("irem", "i"): "srem",
    ("and", "i"): "and",
    ("or", "i"): "or",
    ("xor", "i"): "xor",
    ("shl", "i"): "shl",
    ("shr", "i"): "lshr",
    ("sar", "i"): "ashr",
    ("and", "b"): "and",
    ("or", "b"): "or",
    ("xor", "b"): "xor",
}
COMPARE = {
    ("lt", "f"): "fcmp olt",
    ("le", "f"): "fcmp ole",
    ("gt", "f"): "fcmp ogt",
    ("ge", "f"): "fcmp oge",
    ("eq", "f"): "fcmp oeq",
    ("ne", "f"): "fcmp une",
    ("lt", "i"): "icmp slt",
    ("le", "i"): "icmp sle",
    ("gt", "i"): "icmp sgt",
    ("ge", "i"): "icmp sge",
    ("eq", "i"): "icmp eq",
    ("ne", "i"): "icmp ne",
}
INTRINSIC = {"sqrt": "sqrt", "rint": "roundeven", "abs": "fabs", "fma": "fma", "copysign": "copysign"}
IDENTITY = {"add": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}
PURE = {
    *(op for op, _ in BINARY),
    *(op for op, _ in COMPARE),
    *INTRINSIC,
    "cast",
    "bitcast",
    "select",
    "neg",
    "param",
    "const",
}

X86 = platform.machine() in ("x86_64", "AMD64")

# Below this many elements of work a grid runs on the calling thread: waking another one costs some microseconds.
PARALLEL_THRESHOLD = 48 * 1024


def literal(x: float | int | bool, dtype: DType) -> str:
    """x as an LLVM constant of the type; floats as hexadecimal bit patterns, which are exact."""
    if dtype.kind == "b":
        return "true" if x else "false"
    if dtype.kind == "i":
        return str(int(x))
    if dtype is f16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', x))[0]:04X}"
    if dtype is bf16:  # its bits, rounded to nearest even
        bits = struct.unpack("<I", struct.pack("<f", x))[0]
        return str((bits >> 16) | 0x40 if x != x else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
    if dtype is f32:
        x = struct.unpack("f", struct.pack("f", x))[0] if abs(x) <= 3.4028235677973366e38 or x != x else x
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"


class Function:
    """The text of one LLVM function: lines in order, allocas first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0
        self.label = "entry"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def ins(self, text: str) -> str:
        n = self.name()
        self.lines.append(f"  {n} = {text}")
        return n

    def new_label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def alloca(self, ty: str) -> str:
        n = self.name()
        self.allocas.append(f"  {n} = alloca {ty}")
        return n


class Lanes:
    """Where the walk is inside a lane loop: the scalar offset of each unrolled vector; in the last one the mask, and whose place it is in."""

    def __init__(self, index: Value, bases: list[str], mask: str | None, first: int = 0):
        self.index, self.bases, self.mask, self.first = index, bases, mask, first


class Renderer:
    """One walk over a kernel's record."""

    def __init__(self, k: Kernel, data_offset: int):
        self.k, self.data_offset = k, data_offset
        self.w = k.width
        self.declares: dict[str, str] = {}
        self.functions: list[str] = []
        self.begin()

    f: Function
    env: dict[Value, list[str]]
    slots: dict[Variable | Accumulator, list[str]]
    carried: dict[Accumulator, list[str]]
    splats: dict[tuple[str, str], str]
    scope: list[list[Value]]
    lanes: Lanes | None
    nesting: int

    def begin(self) -> None:
        """Start a function."""
        self.f, self.env, self.slots, self.carried, self.splats = Function(), {}, {}, {}, {}
        self.scope, self.lanes, self.nesting = [[]], None, 0

    # -- types and operands
    def ty(self, dtype: DType, varying: bool) -> str:
        t = TYPES[dtype]
        return f"<{self.w} x {t}>" if varying else t

    def vty(self, v: Value) -> str:
        assert v.dtype is not None
        return self.ty(v.dtype, v.varying)

    def declare(self, name: str, signature: str) -> None:
        self.declares[name] = signature

    def splat(self, scalar: str, ty: str) -> str:
        if not scalar.startswith("%"):
            return "<" + ", ".join([f"{ty} {scalar}"] * self.w) + ">"
        key = ("splat", scalar)
        if key not in self.splats:
            a = self.f.ins(f"insertelement <{self.w} x {ty}> poison, {ty} {scalar}, i64 0")
            b = self.f.ins(
                f"shufflevector <{self.w} x {ty}> {a}, <{self.w} x {ty}> poison, <{self.w} x i32> zeroinitializer"
            )
            if not self.nesting:
                return b
            self.splats[key] = b
        return self.splats[key]

    def get(self, v: Value, u: int, varying: bool) -> str:
        """The operand's text in unrolled copy u, broadcast if a vector is wanted."""
        if v.op == "const":
            assert v.dtype is not None
            text = literal(v.attr, v.dtype)
        else:
            if v not in self.env:
                if v.op not in PURE and v.op != "lane":
                    raise TypeError(f"{self.k.name}: {v!r} is used outside the block that computes it")
                self.pure(v)
            vals = self.env[v]
            text = vals[u if len(vals) > 1 else 0]
        if varying and not v.varying:
            return self.splat(text, TYPES[v.dtype])  # type: ignore[index]
        return text

    # -- pure operations
    def pure(self, v: Value) -> None:
        copies = len(self.lanes.bases) if v.varying and self.lanes else 1
        self.env[v] = [self.one(v, u) for u in range(copies)]
        self.scope[-1].append(v)

    def one(self, v: Value, u: int) -> str:
        f, op = self.f, v.op
        if op == "lane":
            assert self.lanes is not None
            base = self.splat(self.lanes.bases[u], "i64")
            iota = "<" + ", ".join(f"i64 {i}" for i in range(self.w)) + ">"
            return f.ins(f"add <{self.w} x i64> {base}, {iota}")
        if op == "param":
            return f"%p.{v.attr}"
        vec = v.varying
        ty = self.vty(v)
        a = [self.get(x, u, vec) for x in v.args]
        x0 = v.args[0]
        assert x0.dtype is not None and v.dtype is not None
        in_ty = self.ty(x0.dtype, vec)
        if (op, v.dtype.kind) in BINARY:
            return f.ins(f"{BINARY[op, v.dtype.kind]} {ty} {a[0]}, {a[1]}")
        if (op, x0.dtype.kind) in COMPARE:
            return f.ins(f"{COMPARE[op, x0.dtype.kind]} {in_ty} {a[0]}, {a[1]}")
        if op == "neg":
            return f.ins(
                f"fneg {ty} {a[0]}"
                if v.dtype.kind == "f"
                else f"sub {ty} zeroinitializer, {a[0]}"
                if vec
                else f"sub {ty} 0, {a[0]}"
            )
        if op == "abs" and v.dtype.kind == "i":
            return self.call("llvm.abs", ty, [(ty, a[0]), ("i1", "false")], suffix_of=v)
        if op in INTRINSIC:
            return self.call("llvm." + INTRINSIC[op], ty, [(ty, t) for t in a], suffix_of=v)
        if op == "select":
            cty = self.ty(bool_, vec)
            return f.ins(f"select {cty} {a[0]}, {ty} {a[1]}, {ty} {a[2]}")
        if op == "bitcast":
            return f.ins(f"bitcast {in_ty} {a[0]} to {ty}")
        if op == "cast":
            return self.cast(a[0], x0.dtype, v.dtype, vec)
        raise NotImplementedError(op)

    def call(self, name: str, ret: str, args: list[tuple[str, str]], suffix_of: Value) -> str:
        assert suffix_of.dtype is not None
        m = MANGLE[suffix_of.dtype]
        full = f"@{name}.v{self.w}{m}" if suffix_of.varying else f"@{name}.{m}"
        self.declare(full, f"declare {ret} {full}({', '.join(t for t, _ in args)})")
        return self.f.ins(f"call {ret} {full}({', '.join(f'{t} {x}' for t, x in args)})")

    def cast(self, a: str, src: DType, dst: DType, vec: bool) -> str:
        """Conversions, rounding to nearest even, once."""
        f = self.f
        st, dt = self.ty(src, vec), self.ty(dst, vec)
        ii = self.ty(i32, vec)

        def c(x: int) -> str:
            return self.splat(str(x), "i32") if vec else str(x)

        if src is bf16:
            wide = f.ins(f"zext {st} {a} to {ii}")
            up = f.ins(f"shl {ii} {wide}, {c(16)}")
            x = f.ins(f"bitcast {ii} {up} to {self.ty(f32, vec)}")
            return x if dst is f32 else self.cast(x, f32, dst, vec)
        if dst is bf16:
            if src is not f32:
                a = self.odd(a, vec) if src is f64 else self.cast(a, src, f32, vec)
            # by hand: the processor's own instruction flushes subnormal numbers
            bits = f.ins(f"bitcast {self.ty(f32, vec)} {a} to {ii}")
            top = f.ins(f"lshr {ii} {bits}, {c(16)}")
            odd = f.ins(f"and {ii} {top}, {c(1)}")
            bias = f.ins(f"add {ii} {odd}, {c(0x7FFF)}")
            rounded = f.ins(f"add {ii} {bits}, {bias}")
            shifted = f.ins(f"lshr {ii} {rounded}, {c(16)}")
            quiet = f.ins(f"or {ii} {top}, {c(0x40)}")
            nan = f.ins(f"fcmp uno {self.ty(f32, vec)} {a}, {a}")
            sel = f.ins(f"select {self.ty(bool_, vec)} {nan}, {ii} {quiet}, {ii} {shifted}")
            return f.ins(f"trunc {ii} {sel} to {dt}")
        if src.kind == "f" and dst.kind == "f":
            if dst is f16 and src is f64:
                return self.cast(self.odd(a, vec), f32, f16, vec)
            return f.ins(f"{'fpext' if dst.size > src.size else 'fptrunc'} {st} {a} to {dt}")
        if src.kind == "f" and dst.kind == "i":
            return self.saturating(a, src, dst, vec)
        if src.kind == "i" and dst.kind == "f":
            return f.ins(f"{'uitofp' if src is u8 else 'sitofp'} {st} {a} to {dt}")
        if src.kind == "b":
            return f.ins(f"{'uitofp' if dst.kind == 'f' else 'zext'} {st} {a} to {dt}")
        if dst.kind == "b":
            zero = "zeroinitializer" if vec else ("0" if src.kind == "i" else literal(0.0, src))
            return f.ins(f"{'icmp ne' if src.kind == 'i' else 'fcmp une'} {st} {a}, {zero}")
        if src.size == dst.size:
            return a
        return f.ins(f"{'trunc' if dst.size < src.size else 'zext' if src is u8 else 'sext'} {st} {a} to {dt}")

    def odd(self, a: str, vec: bool) -> str:
        """f64 to f32, inexact results to the neighbour with the odd mantissa: rounding that again is as if it had been done once."""
        f, one = self.f, self.splat("1", "i32") if vec else "1"
        wide, narrow, bits = (self.ty(t, vec) for t in (f64, f32, i32))
        near = f.ins(f"fptrunc {wide} {a} to {narrow}")
        back = f.ins(f"fpext {narrow} {near} to {wide}")
        p = f"v{self.w}f64" if vec else "f64"
        self.declare(f"@llvm.fabs.{p}", f"declare {wide} @llvm.fabs.{p}({wide})")
        x, y = (f.ins(f"call {wide} @llvm.fabs.{p}({wide} {v})") for v in (back, a))
        beyond = f.ins(f"fcmp ogt {wide} {x}, {y}")
        inexact = f.ins(f"fcmp one {wide} {back}, {a}")
        b = f.ins(f"bitcast {narrow} {near} to {bits}")
        cond = self.ty(bool_, vec)
        inward = f.ins(f"select {cond} {beyond}, {bits} {f.ins(f'sub {bits} {b}, {one}')}, {bits} {b}")
        r = f.ins(f"select {cond} {inexact}, {bits} {f.ins(f'or {bits} {inward}, {one}')}, {bits} {inward}")
        return f.ins(f"bitcast {bits} {r} to {narrow}")

    def saturating(self, a: str, src: DType, dst: DType, vec: bool) -> str:
        """Float to integer, saturating at the ends and 0 for NaN: a plain conversion is undefined out of range."""
        st, dt = self.ty(src, vec), self.ty(dst, vec)
        p = f"v{self.w}" if vec else ""
        full = f"@llvm.fptosi.sat.{p}{MANGLE[dst]}.{p}{MANGLE[src]}"
        self.declare(full, f"declare {dt} {full}({st})")
        return self.f.ins(f"call {dt} {full}({st} {a})")

    # -- memory
    def address(self, index: Value) -> tuple[list[Value], bool, Value | None]:
        """The uniform terms of an index, whether the lane number is one of its terms, and what it is multiplied by."""
        if not index.varying:
            return [index], False, None
        if index.op == "lane":
            return [], True, None
        if index.op == "mul":
            lane, step = index.args
            if lane.op == "lane" and not step.varying:
                return [], True, step
        if index.op == "add":
            a, la, sa = self.address(index.args[0])
            b, lb, sb = self.address(index.args[1])
            if not (la and lb):
                return a + b, la or lb, sa or sb
        raise NotImplementedError(
            f"{self.k.name}: an index must be uniform, uniform + lane or uniform + lane * uniform; got {index!r}"
        )

    def pointer(self, v: Value, index: Value, u: int) -> tuple[str, bool]:
        """The address of an entry, or of the first of neighbours, and which of the two; of `w` entries if they are apart."""
        terms, lane, stride = self.address(index)
        if stride is not None and v.op != "load":
            raise NotImplementedError(
                f"{self.k.name}: what is stored must have an index that is uniform, or uniform + lane"
            )
        st = STORAGE[v.attr.dtype]
        p = f"%p.{v.attr.name}"
        if v.attr.base is not None:
            p = self.f.ins(f"inttoptr i64 {self.get(v.attr.base, 0, False)} to ptr")
        offset = None
        for t in terms:
            x = self.get(t, 0, False)
            offset = x if offset is None else self.f.ins(f"add i64 {offset}, {x}")
        if offset is not None:
            p = self.f.ins(f"getelementptr inbounds {st}, ptr {p}, i64 {offset}")
        if lane:
            assert self.lanes is not None
            if stride is not None:
                step, vt = self.get(stride, 0, False), f"<{self.w} x i64>"
                at = self.f.ins(f"mul {vt} {self.get(self.lanes.index, u, True)}, {self.splat(step, 'i64')}")
                return self.f.ins(f"getelementptr {st}, ptr {p}, {vt} {at}"), lane
            p = self.f.ins(f"getelementptr inbounds {st}, ptr {p}, i64 {self.lanes.bases[u]}")
        return p, lane

    def load(self, v: Value) -> None:
        dtype = v.attr.dtype
        st = STORAGE[dtype]
        out = []
        for u in range(len(self.lanes.bases) if v.varying and self.lanes else 1):
            p, lane = self.pointer(v, v.args[0], u)
            if not lane:
                x = self.f.ins(f"load {st}, ptr {p}, align {dtype.size}")
                out.append(self.f.ins(f"icmp ne i8 {x}, 0") if dtype is bool_ else x)
                continue
            assert self.lanes is not None
            vt, mask = f"<{self.w} x {st}>", self.lanes.mask
            if self.address(v.args[0])[2] is not None:
                full = f"@llvm.masked.gather.v{self.w}{MANGLE[dtype]}.v{self.w}p0"
                bits = f"<{self.w} x i1>"
                self.declare(full, f"declare {vt} {full}(<{self.w} x ptr>, i32, {bits}, {vt})")
                active = mask if mask is not None else self.splat("true", "i1")
                x = self.f.ins(
                    f"call {vt} {full}(<{self.w} x ptr> {p}, i32 {dtype.size}, {bits} {active}, {vt} zeroinitializer)"
                )
            elif mask is None:
                x = self.f.ins(f"load {vt}, ptr {p}, align {dtype.size}")
            else:
                full = f"@llvm.masked.load.v{self.w}{MANGLE[dtype]}.p0"
                self.declare(full, f"declare {vt} {full}(ptr, i32, <{self.w} x i1>, {vt})")
                x = self.f.ins(
                    f"call {vt} {full}(ptr {p}, i32 {dtype.size}, <{self.w} x i1> {mask}, {vt} zeroinitializer)"
                )
            out.append(self.f.ins(f"icmp ne {vt} {x}, zeroinitializer") if dtype is bool_ else x)
        self.env[v] = out
        self.scope[-1].append(v)

    def store(self, v: Value) -> None:
        array, (index, value) = v.attr, v.args
        dtype = array.dtype
        st = STORAGE[dtype]
        for u in range(len(self.lanes.bases) if self.lanes and index.varying else 1):
            p, lane = self.pointer(v, index, u)
            x = self.get(value, u, lane)
            if dtype is bool_:
                x = self.f.ins(f"zext {self.ty(bool_, lane)} {x} to {f'<{self.w} x i8>' if lane else 'i8'}")
            if not lane:
                self.f.line(f"store {st} {x}, ptr {p}, align {dtype.size}")
                continue
            assert self.lanes is not None
            vt = f"<{self.w} x {st}>"
            if self.lanes.mask is None:
                if array.stream:
                    self.f.line(f"store {vt} {x}, ptr {p}, align {min(64, self.w * dtype.size)}, !nontemporal !0")
                else:
                    self.f.line(f"store {vt} {x}, ptr {p}, align {dtype.size}")
            else:
                full = f"@llvm.masked.store.v{self.w}{MANGLE[dtype]}.p0"
                self.declare(full, f"declare void {full}({vt}, ptr, i32, <{self.w} x i1>)")
                self.f.line(f"call void {full}({vt} {x}, ptr {p}, i32 {dtype.size}, <{self.w} x i1> {self.lanes.mask})")

    # -- variables and reductions
    def slot(self, x: Variable | Accumulator) -> list[str]:
        if x not in self.slots:
            if isinstance(x, Variable):
                n = len(self.lanes.bases) if x.varying and self.lanes else 1
                ty = self.ty(x.dtype, x.varying)
            else:
                n, ty = x.slots, self.ty(x.wide if x.short else x.dtype, True)
            self.slots[x] = [self.f.alloca(ty) for _ in range(n)]
        return self.slots[x]

    def combine(self, op: str, ty: str, a: str, b: str) -> str:
        if op in ("add", "mul"):
            return self.f.ins(f"f{op} {ty} {a}, {b}")
        # NaN must win: keep a unless b is beyond it or b is NaN
        better = self.f.ins(f"fcmp {'ugt' if op == 'max' else 'ult'} {ty} {b}, {a}")
        nan = self.f.ins(f"fcmp uno {ty} {a}, {a}")
        c = f"<{ty[1:].split(' ')[0]} x i1>" if ty.startswith("<") else "i1"
        keep = self.f.ins(f"select {c} {nan}, {ty} {a}, {ty} {b}")
        return self.f.ins(f"select {c} {better}, {ty} {keep}, {ty} {a}")

    def accumulate(self, v: Value) -> None:
        acc: Accumulator = v.attr
        slots = self.slot(acc)
        ty = self.ty(acc.dtype, True)
        assert self.lanes is not None

        def plus(old: str, u: int) -> str:
            a = [self.get(x, u, True) for x in v.args]
            if v.op != "accumulate_fma":
                return self.combine(acc.op, ty, old, a[0])
            full = f"@llvm.fma.v{self.w}{MANGLE[acc.dtype]}"
            self.declare(full, f"declare {ty} {full}({ty}, {ty}, {ty})")
            return self.f.ins(f"call {ty} {full}({ty} {a[0]}, {ty} {a[1]}, {ty} {old})")

        if acc.short:
            wide, copies = self.ty(acc.wide, True), len(self.lanes.bases)
            sums = []
            for u in range(0, copies, 2):
                a = [self.get(x, u, True) for x in v.args]
                one = self.f.ins(f"fmul {ty} {a[0]}, {a[1]}") if len(a) == 2 else a[0]
                sums.append(plus(one, u + 1) if u + 1 < copies else one)
            while len(sums) > 1:
                sums = [self.combine(acc.op, ty, *sums[i : i + 2]) for i in range(0, len(sums), 2)]
            old = self.f.ins(f"load {wide}, ptr {slots[0]}")
            new = self.combine(acc.op, wide, old, self.cast(sums[0], acc.dtype, acc.wide, True))
            if self.lanes.mask is not None:
                new = self.f.ins(f"select <{self.w} x i1> {self.lanes.mask}, {wide} {new}, {wide} {old}")
            self.f.line(f"store {wide} {new}, ptr {slots[0]}")
            return
        for u in range(len(self.lanes.bases)):
            slot = slots[self.lanes.first + u]
            old = self.f.ins(f"load {ty}, ptr {slot}")
            new = plus(old, u)
            if self.lanes.mask is not None:
                new = self.f.ins(f"select <{self.w} x i1> {self.lanes.mask}, {ty} {new}, {ty} {old}")
            self.f.line(f"store {ty} {new}, ptr {slot}")

    def total(self, v: Value) -> None:
        """Halve the set of partial results until one is left: the order depends on nothing but the widths."""
        acc: Accumulator = v.attr
        ty, et = self.ty(acc.wide, True), TYPES[acc.wide]
        vals = [self.widened(acc, s) for s in self.slot(acc)]
        for i, s in enumerate(self.aside(acc)):
            vals[i] = self.combine(acc.op, ty, self.f.ins(f"load {ty}, ptr {s}"), vals[i])
        while len(vals) > 1:
            half = (len(vals) + 1) // 2
            vals = [
                self.combine(acc.op, ty, vals[i], vals[i + half]) if i + half < len(vals) else vals[i]
                for i in range(half)
            ]
        x, n = vals[0], self.w
        while n > 1:
            n //= 2
            lo, hi = (", ".join(f"i32 {i + o}" for i in range(n)) for o in (0, n))
            a = self.f.ins(f"shufflevector <{2 * n} x {et}> {x}, <{2 * n} x {et}> poison, <{n} x i32> <{lo}>")
            b = self.f.ins(f"shufflevector <{2 * n} x {et}> {x}, <{2 * n} x {et}> poison, <{n} x i32> <{hi}>")
            x = self.combine(acc.op, f"<{n} x {et}>", a, b)
        self.env[v] = [self.f.ins(f"extractelement <1 x {et}> {x}, i64 0")]
        self.scope[-1].append(v)

    def widened(self, acc: Accumulator, slot: str) -> str:
        """A partial result in the type of what was put aside."""
        if acc.short:
            return self.f.ins(f"load {self.ty(acc.wide, True)}, ptr {slot}")
        x = self.f.ins(f"load {self.ty(acc.dtype, True)}, ptr {slot}")
        return x if acc.dtype is acc.wide else self.cast(x, acc.dtype, acc.wide, True)

    # -- control flow
    def counted(self, start: str, stop: str, step: str, body: Any) -> None:
        """for i = start; i < stop; i += step: body(i)"""
        f = self.f
        head, inner, done = f.new_label(), f.new_label(), f.new_label()
        before = f.label
        f.line(f"br label %{head}")
        f.start(head)
        i = f.name()
        at = len(f.lines)
        f.lines.append("")
        c = f.ins(f"icmp slt i64 {i}, {stop}")
        f.line(f"br i1 {c}, label %{inner}, label %{done}")
        f.start(inner)
        splats, self.splats = self.splats, {}
        self.nesting += 1
        self.scope.append([])
        body(i)
        for v in self.scope.pop():
            del self.env[v]
        self.nesting -= 1
        self.splats = splats
        nxt = f.ins(f"add nsw i64 {i}, {step}")
        f.lines[at] = f"  {i} = phi i64 [ {start}, %{before} ], [ {nxt}, %{f.label} ]"
        f.line(f"br label %{head}")
        f.start(done)

    def walk(self, block: list[Value]) -> None:
        for v in block:
            getattr(self, "do_" + v.op, self.do_pure)(v)

    def do_pure(self, v: Value) -> None:
        if v.op not in PURE:
            raise NotImplementedError(v.op)
        if v.varying and v.dtype is i64:  # indices: computed on demand only, addresses do not need them
            return
        if v not in self.env:
            self.pure(v)

    def do_load(self, v: Value) -> None:
        self.load(v)

    def do_store(self, v: Value) -> None:
        self.store(v)

    def do_data(self, v: Value) -> None:
        """Where the ndarray object whose address is an entry of a table keeps its elements."""
        p, _ = self.pointer(v, v.args[0], 0)
        o = self.f.ins(f"inttoptr i64 {self.f.ins(f'load i64, ptr {p}')} to ptr")
        at = self.f.ins(f"getelementptr i8, ptr {o}, i64 {self.data_offset}")
        self.env[v] = [self.f.ins(f"load i64, ptr {at}")]
        self.scope[-1].append(v)

    def do_prefetch(self, v: Value) -> None:
        p, _ = self.pointer(v, v.args[0], 0)
        self.declare("@llvm.prefetch.p0", "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
        self.f.line(f"call void @llvm.prefetch.p0(ptr {p}, i32 0, i32 3, i32 1)")

    def do_gemm(self, v: Value) -> None:
        """Fortran's convention: everything by address, columns where we have rows, so that b comes first."""
        a, b, c, transposed, add = v.attr
        fn, m, n, k, ai, lda, bi, ldb, ci, ldc = (self.get(x, 0, False) for x in v.args)
        st = STORAGE[c.dtype]

        def boxed(ty: str, x: str) -> str:
            slot = self.f.alloca(ty)
            self.f.line(f"store {ty} {x}, ptr {slot}")
            return slot

        def number(x: str) -> str:
            return boxed("i32", self.f.ins(f"trunc i64 {x} to i32"))

        def at(array: Array, index: str) -> str:
            return self.f.ins(f"getelementptr inbounds {st}, ptr %p.{array.name}, i64 {index}")

        flags = [boxed("i8", str(ord(x))) for x in ("T" if transposed else "N", "N")]
        sizes = [number(x) for x in (n, m, k)]
        one, beta = boxed(st, literal(1.0, c.dtype)), boxed(st, literal(float(add), c.dtype))
        args = [*flags, *sizes, one, at(b, bi), number(ldb), at(a, ai), number(lda), beta, at(c, ci), number(ldc)]
        f = self.f.ins(f"inttoptr i64 {fn} to ptr")
        self.f.line(f"call void {f}({', '.join('ptr ' + x for x in args)})")

    def do_get(self, v: Value) -> None:
        ty = self.ty(v.attr.dtype, v.varying)
        self.env[v] = [self.f.ins(f"load {ty}, ptr {s}") for s in self.slot(v.attr)]
        self.scope[-1].append(v)

    def do_set(self, v: Value) -> None:
        x: Variable = v.attr
        if self.lanes is not None and x.varying:
            self.slots.setdefault(x, [])
            if len(self.slots[x]) != len(self.lanes.bases):
                self.slots[x] = [self.f.alloca(self.ty(x.dtype, True)) for _ in self.lanes.bases]
        for u, s in enumerate(self.slot(x)):
            ty = self.ty(x.dtype, x.varying)
            self.f.line(f"store {ty} {self.get(v.args[0], u, x.varying)}, ptr {s}")

    def do_acc_init(self, v: Value) -> None:
        acc: Accumulator = v.attr
        for slots, dtype in ((self.slot(acc), acc.wide if acc.short else acc.dtype), (self.aside(acc), acc.wide)):
            ty, ident = self.ty(dtype, True), self.splat(literal(IDENTITY[acc.op], dtype), TYPES[dtype])
            for s in slots:
                self.f.line(f"store {ty} {ident}, ptr {s}")

    def aside(self, acc: Accumulator) -> list[str]:
        """Where carried partial results wait."""
        if not acc.carried:
            return []
        if acc not in self.carried:
            self.carried[acc] = [self.f.alloca(self.ty(acc.wide, True)) for _ in self.slot(acc)]
        return self.carried[acc]

    def do_carry(self, v: Value) -> None:
        acc: Accumulator = v.attr
        ty = self.ty(acc.dtype, True)
        ident = self.splat(literal(IDENTITY[acc.op], acc.dtype), TYPES[acc.dtype])
        wide = self.ty(acc.wide, True)
        for small, big in zip(self.slot(acc), self.aside(acc), strict=True):
            a, b = self.f.ins(f"load {wide}, ptr {big}"), self.widened(acc, small)
            self.f.line(f"store {wide} {self.combine(acc.op, wide, a, b)}, ptr {big}")
            self.f.line(f"store {ty} {ident}, ptr {small}")

    def do_accumulate(self, v: Value) -> None:
        self.accumulate(v)

    do_accumulate_fma = do_accumulate

    def do_total(self, v: Value) -> None:
        self.total(v)

    def do_any(self, v: Value) -> None:
        assert self.lanes is not None
        bits = [self.get(v.args[0], u, True) for u in range(len(self.lanes.bases))]
        if self.lanes.mask is not None:
            bits = [self.f.ins(f"and <{self.w} x i1> {b}, {self.lanes.mask}") for b in bits]
        x = bits[0]
        for b in bits[1:]:
            x = self.f.ins(f"or <{self.w} x i1> {x}, {b}")
        word = self.f.ins(f"bitcast <{self.w} x i1> {x} to i{self.w}")
        self.env[v] = [self.f.ins(f"icmp ne i{self.w} {word}, 0")]
        self.scope[-1].append(v)

    def do_libm(self, v: Value) -> None:
        assert v.dtype is not None and self.lanes is not None
        st, ty = TYPES[v.dtype], self.vty(v)
        name = "@" + v.attr + ("f" if v.dtype is f32 else "")
        self.declare(name, f"declare {st} {name}({st})")
        out = []
        for u in range(len(self.lanes.bases) if v.varying else 1):
            x = self.get(v.args[0], u, v.varying)
            if not v.varying:
                out.append(self.f.ins(f"call {st} {name}({st} {x})"))
                continue
            r = "poison"
            for i in range(self.w):
                e = self.f.ins(f"extractelement {ty} {x}, i64 {i}")
                y = self.f.ins(f"call {st} {name}({st} {e})")
                r = self.f.ins(f"insertelement {ty} {r}, {st} {y}, i64 {i}")
            out.append(r)
        self.env[v] = out
        self.scope[-1].append(v)

    def do_loop(self, v: Value) -> None:
        start, stop, step = (self.get(a, 0, False) for a in v.args)
        assert v.block is not None
        _, index = v.attr

        def body(i: str) -> None:
            self.env[index] = [i]
            self.scope[-1].append(index)
            self.walk(v.block)  # type: ignore[arg-type]

        self.counted(start, stop, step, body)

    def do_if(self, v: Value) -> None:
        f = self.f
        then, done = f.new_label(), f.new_label()
        f.line(f"br i1 {self.get(v.args[0], 0, False)}, label %{then}, label %{done}")
        f.start(then)
        splats, self.splats = self.splats, {}
        self.scope.append([])
        assert v.block is not None
        self.walk(v.block)
        for x in self.scope.pop():
            del self.env[x]
        self.splats = splats
        f.line(f"br label %{done}")
        f.start(done)

    def do_lanes(self, v: Value) -> None:
        f, w = self.f, self.w
        (unroll, aligned), index = v.attr
        n = self.get(v.args[0], 0, False)
        assert v.block is not None
        block = v.block

        def run(bases: list[str], mask: str | None, first: int = 0) -> None:
            self.lanes = Lanes(index, bases, mask, first)
            self.walk(block)
            self.lanes = None

        def whole(i: str) -> None:
            run([i] + [f.ins(f"add nsw i64 {i}, {w * u}") for u in range(1, unroll)], None)

        def masked(i: str, first: int = 0) -> None:
            left = f.ins(f"sub i64 {n}, {i}")
            over = f.ins(f"icmp sgt i64 {left}, {w}")
            few = f.ins(f"select i1 {over}, i64 {w}, i64 {left}")
            small = f.ins(f"trunc i64 {few} to i32")
            iota = "<" + ", ".join(f"i32 {j}" for j in range(w)) + ">"
            a = f.ins(f"insertelement <{w} x i32> poison, i32 {small}, i64 0")
            b = f.ins(f"shufflevector <{w} x i32> {a}, <{w} x i32> poison, <{w} x i32> zeroinitializer")
            run([i], f.ins(f"icmp sgt <{w} x i32> {b}, {iota}"), first)

        main = f.ins(f"and i64 {n}, {-w * unroll}")
        self.counted("0", main, str(w * unroll), whole)
        if not aligned:
            self.counted(main, n, str(w), masked)
            return
        for u in range(unroll):  # at most one vector each, in its own place
            at = f.ins(f"add i64 {main}, {w * u}")
            self.counted(at, n, str(w * unroll), lambda i, u=u: masked(i, u))

    # -- functions
    def render(self) -> str:
        k = self.k
        self.phases: list[Value] = [v for v in k.body if v.op == "grid"]
        for number, v in enumerate(self.phases):
            self.phase(number, v)
        self.entry()
        out = [f"; kernel {k.name}", *self.declares.values(), "", *self.functions, "!0 = !{i32 1}", ""]
        out.append('attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }')
        return "\n".join(out)

    def finish(self, signature: str) -> None:
        f = self.f
        f.line("ret void")
        self.functions.append("\n".join([f"define {signature} #0 {{", "entry:", *f.allocas, *f.lines, "}", ""]))

    @staticmethod
    def ptype(p: Param) -> str:
        return {"array": "ptr", "size": "i64", "scalar": "double"}[p.kind]

    def phase(self, number: int, v: Value) -> None:
        """The grid's body over a range of its indices, and a trampoline that unpacks the parameters for the thread pool."""
        self.begin()
        for own, n in self.k.locals:
            self.f.allocas.append(f"  %p.{own.name} = alloca {STORAGE[own.dtype]}, i64 {n}, align 64")
        _, index = v.attr
        assert v.block is not None
        block = v.block

        def body(i: str) -> None:
            self.env[index] = [i]
            self.scope[-1].append(index)
            self.walk(block)

        self.counted("%begin", "%end", "1", body)
        if X86 and any(p.array is not None and p.array.stream for p in self.k.params):
            # Stores past the cache are not ordered with what follows: other threads must see them.
            self.declare("@llvm.x86.sse.sfence", "declare void @llvm.x86.sse.sfence()")
            self.f.line("call void @llvm.x86.sse.sfence()")
        ps = ", ".join(f"{self.ptype(p)}{' noalias' if p.kind == 'array' else ''} %p.{p.name}" for p in self.k.params)
        self.finish(f"internal void @phase{number}(i64 %begin, i64 %end, {ps}) noinline")
        self.begin()
        for j, p in enumerate(self.k.params):
            a = self.f.ins(f"getelementptr i64, ptr %args, i64 {j}")
            self.f.line(f"%p.{p.name} = load {self.ptype(p)}, ptr {a}")
        ps = ", ".join(f"{self.ptype(p)} %p.{p.name}" for p in self.k.params)
        self.f.line(f"call void @phase{number}(i64 %begin, i64 %end, {ps})")
        self.finish(f"internal void @task{number}(ptr %args, i64 %begin, i64 %end)")

    def entry(self) -> None:
        """Each grid in turn, inline if it is small or there is no pool."""
        self.begin()
        f, params = self.f, self.k.params
        args = f.name()
        f.allocas.append(f"  {args} = alloca i64, i64 {len(params)}")
        for j, p in enumerate(params):
            if p.kind == "array":
                a = f.ins(f"getelementptr i8, ptr %o.{p.name}, i64 {self.data_offset}")
                f.line(f"%p.{p.name} = load ptr, ptr {a}")
            slot = f.ins(f"getelementptr i64, ptr {args}, i64 {j}")
            f.line(f"store {self.ptype(p)} %p.{p.name}, ptr {slot}")
        ps = ", ".join(f"{self.ptype(p)} %p.{p.name}" for p in params)
        no_pool = f.ins("icmp eq ptr %pool, null")
        for number, v in enumerate(self.phases):
            n, cost = (self.get(a, 0, False) for a in v.args)
            work = f.ins(f"mul i64 {n}, {cost}")
            small = f.ins(f"icmp slt i64 {work}, {PARALLEL_THRESHOLD}")
            one = f.ins(f"icmp slt i64 {n}, 2")
            inline1 = f.ins(f"or i1 {small}, {one}")
            inline2 = f.ins(f"or i1 {inline1}, {no_pool}")
            yes, no, done = f.new_label(), f.new_label(), f.new_label()
            f.line(f"br i1 {inline2}, label %{yes}, label %{no}")
            f.start(yes)
            f.line(f"call void @phase{number}(i64 0, i64 {n}, {ps})")
            f.line(f"br label %{done}")
            f.start(no)
            run = f.ins("load ptr, ptr %pool")
            f.line(f"call void {run}(ptr %pool, ptr @task{number}, ptr {args}, i64 {n})")
            f.line(f"br label %{done}")
            f.start(done)
        sig = ", ".join(f"ptr %o.{p.name}" if p.kind == "array" else f"{self.ptype(p)} %p.{p.name}" for p in params)
        self.finish(f"void @entry(ptr %pool, {sig})")


def render(k: Kernel, data_offset: int = 16) -> str:
    """The kernel as an LLVM module in text form."""
    return Renderer(k, data_offset).render()
