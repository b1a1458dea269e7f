"""Renders a recorded `Kernel` to LLVM IR: varying values become vectors, lane loops become an unrolled and a masked loop.

The tables say which instruction an operation is; the walk says how blocks become basic blocks. The module that comes out has
one exported function `entry(pool, parameters...)`. An array parameter arrives as the address of the ndarray object, whose data
pointer the entry loads itself: asking NumPy for it from Python costs a microsecond per array.
"""

from __future__ import annotations

from typing import Any

from .lang import Kernel, Param, Value
from .llvm_memory import Memory
from .llvm_sums import Reductions
from .llvm_text import GLUE, STORAGE, X86, Lanes

# Below this many elements of work a grid runs on the calling thread: waking another one costs some microseconds.
PARALLEL_THRESHOLD = 48 * 1024


INTERRUPTED = """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
define internal i32 @interrupted() noinline {
  %held = call i32 @PyGILState_Ensure()
  %error = call i32 @PyErr_CheckSignals()
  call void @PyGILState_Release(i32 %held)
  ret i32 %error
}
"""


def _known(x: str) -> bool:
    """Whether an operand is a number."""
    return not x.startswith("%")


def _alone(grid: Value) -> bool:
    """Whether a grid is known to have one index at most."""
    n = grid.args[0]
    return n.op == "const" and n.attr < 2


def many(k: Kernel) -> bool:
    """Whether a kernel is a sequence of grids: what leads to them takes no time beside them."""
    return sum(v.op == "grid" and not _alone(v) for v in k.body) > 2


class Renderer(Memory, Reductions):
    """One walk over a kernel's record."""

    def counted(self, start: str, stop: str, step: str, body: Any) -> None:
        """for i = start; i < stop; i += step: body(i). A range that is known to be empty or to have one index is no loop."""
        f = self.f
        if _known(start) and _known(stop) and _known(step):
            if int(start) >= int(stop):
                return
            if int(start) + int(step) >= int(stop):
                self.scope.append([])
                body(start)
                for v in self.scope.pop():
                    del self.env[v]
                return
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

    def do_repeat(self, v: Value) -> None:
        f = self.f
        head, done = f.new_label(), f.new_label()
        f.line(f"br label %{head}")
        f.start(head)
        splats, self.splats = self.splats, {}
        self.nesting += 1
        self.scope.append([])
        self.exits.append(done)
        assert v.block is not None
        self.walk(v.block)
        self.exits.pop()
        for x in self.scope.pop():
            del self.env[x]
        self.nesting -= 1
        self.splats = splats
        f.line(f"br label %{head}")
        f.start(done)

    def do_leave(self, v: Value) -> None:
        go = self.f.new_label()
        self.f.line(f"br i1 {self.get(v.args[0], 0, False)}, label %{self.exits[-1]}, label %{go}")
        self.f.start(go)

    def do_poll(self, v: Value) -> None:
        f = self.f
        look, stop, go = f.new_label(), f.new_label(), f.new_label()
        f.line(f"br i1 {self.get(v.args[0], 0, False)}, label %{look}, label %{go}")
        f.start(look)
        got = f.ins("call i32 @interrupted()")
        f.line(f"br i1 {f.ins(f'icmp ne i32 {got}, 0')}, label %{stop}, label %{go}")
        f.start(stop)
        f.line("ret void")
        f.start(go)

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
            run(
                [i]
                + [str(int(i) + w * u) if _known(i) else f.ins(f"add nsw i64 {i}, {w * u}") for u in range(1, unroll)],
                None,
            )

        def masked(i: str, first: int = 0) -> None:
            if _known(i) and _known(n):
                bits = ", ".join(f"i1 {'true' if int(i) + j < int(n) else 'false'}" for j in range(w))
                run([i], None if int(i) + w <= int(n) else f"<{bits}>", first)
                return
            left = f.ins(f"sub i64 {n}, {i}")
            over = f.ins(f"icmp sgt i64 {left}, {w}")
            few = f.ins(f"select i1 {over}, i64 {w}, i64 {left}")
            small = f.ins(f"trunc i64 {few} to i32")
            iota = "<" + ", ".join(f"i32 {j}" for j in range(w)) + ">"
            a = f.ins(f"insertelement <{w} x i32> poison, i32 {small}, i64 0")
            b = f.ins(f"shufflevector <{w} x i32> {a}, <{w} x i32> poison, <{w} x i32> zeroinitializer")
            run([i], f.ins(f"icmp sgt <{w} x i32> {b}, {iota}"), first)

        main = str(int(n) & -w * unroll) if _known(n) else f.ins(f"and i64 {n}, {-w * unroll}")
        self.counted("0", main, str(w * unroll), whole)
        if not aligned:
            self.counted(main, n, str(w), masked)
            return
        for u in range(unroll):  # at most one vector each, in its own place
            at = str(int(main) + w * u) if _known(main) else f.ins(f"add i64 {main}, {w * u}")
            self.counted(at, n, str(w * unroll), lambda i, u=u: masked(i, u))

    def render(self) -> str:
        k = self.k
        self.phases: list[Value] = [v for v in k.body if v.op == "grid"]
        for number, v in enumerate(self.phases):
            self.phase(number, v)
        self.entry()
        if k.polls:
            self.functions.append(INTERRUPTED)
        out = [f"; kernel {k.name}", *self.declares.values(), "", *self.functions, "!0 = !{i32 1}", ""]
        out.append('attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }')
        return "\n".join(out)

    def finish(self, signature: str, how: str = "#0") -> None:
        f = self.f
        f.line("ret void")
        self.functions.append("\n".join([f"define {signature} {how} {{", "entry:", *f.allocas, *f.lines, "}", ""]))

    @staticmethod
    def ptype(p: Param) -> str:
        return {"array": "ptr", "size": "i64", "scalar": "double"}[p.kind]

    def phase(self, number: int, v: Value) -> None:
        """The grid's body over a range of its indices, and, where there are several, a trampoline that unpacks the parameters for the thread pool."""
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
        if _alone(v):
            return
        self.begin()
        for j, p in enumerate(self.k.params):
            a = self.f.ins(f"getelementptr i64, ptr %args, i64 {j}")
            self.f.line(f"%p.{p.name} = load {self.ptype(p)}, ptr {a}")
        ps = ", ".join(f"{self.ptype(p)} %p.{p.name}" for p in self.k.params)
        self.f.line(f"call void @phase{number}(i64 %begin, i64 %end, {ps})")
        self.finish(f"internal void @task{number}(ptr %args, i64 %begin, i64 %end)", GLUE)

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
            if _alone(v):
                f.line(f"call void @phase{number}(i64 0, i64 {n}, {ps})")
                continue
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
        self.finish(f"void @entry(ptr %pool, {sig})", GLUE if many(self.k) else "#0")


def render(k: Kernel, data_offset: int = 16) -> str:
    """The kernel as an LLVM module in text form."""
    return Renderer(k, data_offset).render()
