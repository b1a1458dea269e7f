"""Loads, stores, addresses and products: what reaches memory."""

from __future__ import annotations

from .lang import Array, Value, bool_
from .llvm_text import MANGLE, STORAGE, literal
from .llvm_values import Values


class Memory(Values):
    """Entries of arrays: one, neighbours as a vector, or entries apart as a gather."""

    def address(self, index: Value) -> tuple[list[Value], bool, Value | None]:
        """The uniform terms of an index, whether there are more, and what the lane number is multiplied by.

        What is multiplied varies itself where an index is no multiple of the lane number: then it is the rest of the index.
        """
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
        return [], True, index

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
                vt = f"<{self.w} x i64>"
                at = self.get(stride, u, True)
                if not stride.varying:
                    at = self.f.ins(f"mul {vt} {self.get(self.lanes.index, u, True)}, {at}")
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
        """Fortran's convention: everything by address, columns where we have rows, so that b comes first; whole numbers as `blas` says."""
        a, b, c, transposed, add, turned = v.attr
        fn, m, n, k, ai, lda, bi, ldb, ci, ldc = (self.get(x, 0, False) for x in v.args)
        st = STORAGE[c.dtype]

        def boxed(ty: str, x: str) -> str:
            slot = self.f.alloca(ty)
            self.f.line(f"store {ty} {x}, ptr {slot}")
            return slot

        def number(x: str) -> str:
            return boxed("i64", x)

        def at(array: Array, index: str) -> str:
            return self.f.ins(f"getelementptr inbounds {st}, ptr %p.{array.name}, i64 {index}")

        flags = [boxed("i8", str(ord(x))) for x in ("T" if transposed else "N", "T" if turned else "N")]
        sizes = [number(x) for x in (n, m, k)]
        one, beta = boxed(st, literal(1.0, c.dtype)), boxed(st, literal(float(add), c.dtype))
        args = [*flags, *sizes, one, at(b, bi), number(ldb), at(a, ai), number(lda), beta, at(c, ci), number(ldc)]
        f = self.f.ins(f"inttoptr i64 {fn} to ptr")
        self.f.line(f"call void {f}({', '.join('ptr ' + x for x in args)})")
