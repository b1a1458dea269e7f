"""Values as LLVM writes them: operands, pure operations, conversions. A varying value is one vector for each unrolled copy."""

from __future__ import annotations

from .lang import Accumulator, DType, Kernel, Value, Variable, bf16, bool_, f16, f32, f64, i32, i64, u8
from .llvm_text import BINARY, COMPARE, INTRINSIC, MANGLE, PURE, TYPES, Function, Lanes, literal


class Values:
    """The function that is being written, and the operands in it."""

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
    exits: list[str]  # where `leave` goes, innermost last

    def begin(self) -> None:
        """Start a function."""
        self.f, self.env, self.slots, self.carried, self.splats = Function(), {}, {}, {}, {}
        self.scope, self.lanes, self.nesting, self.exits = [[]], None, 0, []

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

    def do_pure(self, v: Value) -> None:
        if v.op not in PURE:
            raise NotImplementedError(v.op)
        if v.varying and v.dtype is i64:  # indices: computed on demand only, addresses do not need them
            return
        if v not in self.env:
            self.pure(v)

    def do_any(self, v: Value) -> None:
        if not v.args[0].varying:
            self.env[v] = [self.get(v.args[0], 0, False)]
            self.scope[-1].append(v)
            return
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
        assert v.dtype is not None
        st, ty = TYPES[v.dtype], self.vty(v)
        name = "@" + v.attr + ("f" if v.dtype is f32 else "")
        self.declare(name, f"declare {st} {name}({st})")
        out = []
        for u in range(len(self.lanes.bases) if v.varying and self.lanes is not None else 1):  # scalars have no lanes
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
