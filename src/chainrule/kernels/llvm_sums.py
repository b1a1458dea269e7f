"""Variables and reductions: partial results for each lane and unrolled copy, combined in an order that depends on the widths alone."""

from __future__ import annotations

from .lang import Accumulator, Value, Variable
from .llvm_text import IDENTITY, MANGLE, TYPES, literal
from .llvm_values import Values


class Reductions(Values):
    """Locals that change: variables and accumulators."""

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
