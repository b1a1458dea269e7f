"""A persistent pool of native threads that runs ranges of a kernel's grid.

The threads are started by Python but live in compiled code: they spin for a short while after a job, then sleep on a condition
variable, and never take the GIL. One word holds (generation, next block); a block is claimed by a compare-and-swap on it, so a
thread that wakes late cannot take a block of a job it has not seen. Which thread runs which block changes no result: indices of
a grid are independent, and reductions over them are chunked by the kernels themselves, by shape only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import sys
import threading

from . import compiler
from .llvm_text import GLUE

# Offsets into the shared state; what different threads write lies in different cache lines.
RUN, WORD, DONE, FUNCTION, ARGS, COUNT, GRAIN, BLOCKS, BUSY, SLEEPERS, THREADS, SPIN, MUTEX, COND = (
    0, 64, 128, 192, 200, 208, 216, 224, 256, 320, 384, 392, 448, 576,
)  # fmt: skip
STATE_SIZE = 4096
SPIN_ROUNDS = 4000
YIELD_ROUNDS = 32  # spinning threads let others run this often: the workers of a BLAS library want the same cores

# The processor's hint that this is a spin loop.
_PAUSES = {
    "x86_64": ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()"),
    "aarch64": ("declare void @llvm.aarch64.hint(i32)", "call void @llvm.aarch64.hint(i32 1)"),
}
_MACHINE = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
_DECLARE_PAUSE, _PAUSE = _PAUSES.get(_MACHINE, ("", "fence seq_cst"))

IR = f"""
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
{_DECLARE_PAUSE}

define void @setup(ptr %s) {GLUE} {{
  %run = getelementptr i8, ptr %s, i64 {RUN}
  store ptr @run, ptr %run
  %m = getelementptr i8, ptr %s, i64 {MUTEX}
  %c = getelementptr i8, ptr %s, i64 {COND}
  call i32 @pthread_mutex_init(ptr %m, ptr null)
  call i32 @pthread_cond_init(ptr %c, ptr null)
  ret void
}}

; claim and run blocks of generation %gen until none is left
define internal void @work(ptr %s, i64 %gen) {GLUE} {{
entry:
  %word.p = getelementptr i8, ptr %s, i64 {WORD}
  %done.p = getelementptr i8, ptr %s, i64 {DONE}
  %f.p = getelementptr i8, ptr %s, i64 {FUNCTION}
  %a.p = getelementptr i8, ptr %s, i64 {ARGS}
  %n.p = getelementptr i8, ptr %s, i64 {COUNT}
  %g.p = getelementptr i8, ptr %s, i64 {GRAIN}
  %b.p = getelementptr i8, ptr %s, i64 {BLOCKS}
  br label %again
again:
  %w = load atomic i64, ptr %word.p acquire, align 8
  %wg = lshr i64 %w, 32
  %same = icmp eq i64 %wg, %gen
  br i1 %same, label %look, label %out
look:
  %i = and i64 %w, 4294967295
  %blocks = load atomic i64, ptr %b.p monotonic, align 8
  %left = icmp slt i64 %i, %blocks
  br i1 %left, label %claim, label %out
claim:
  %f = load atomic ptr, ptr %f.p monotonic, align 8
  %a = load atomic ptr, ptr %a.p monotonic, align 8
  %n = load atomic i64, ptr %n.p monotonic, align 8
  %grain = load atomic i64, ptr %g.p monotonic, align 8
  %next = add i64 %w, 1
  %pair = cmpxchg ptr %word.p, i64 %w, i64 %next acq_rel acquire
  %got = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %got, label %do, label %again
do:
  %begin = mul i64 %i, %grain
  %end0 = add i64 %begin, %grain
  %over = icmp sgt i64 %end0, %n
  %end = select i1 %over, i64 %n, i64 %end0
  call void %f(ptr %a, i64 %begin, i64 %end)
  %old = atomicrmw add ptr %done.p, i64 1 acq_rel
  br label %again
out:
  ret void
}}

define void @worker(ptr %s) {GLUE} {{
entry:
  %word.p = getelementptr i8, ptr %s, i64 {WORD}
  %sleepers.p = getelementptr i8, ptr %s, i64 {SLEEPERS}
  %spin.p = getelementptr i8, ptr %s, i64 {SPIN}
  %m = getelementptr i8, ptr %s, i64 {MUTEX}
  %c = getelementptr i8, ptr %s, i64 {COND}
  %rounds = load i64, ptr %spin.p
  br label %top
top:
  %last = phi i64 [ 0, %entry ], [ %gen, %go ]
  br label %spin
spin:
  %k = phi i64 [ 0, %top ], [ %k1, %pause ], [ %k1, %let ]
  %w = load atomic i64, ptr %word.p acquire, align 8
  %g = lshr i64 %w, 32
  %fresh = icmp ne i64 %g, %last
  br i1 %fresh, label %go, label %tired
tired:
  %enough = icmp sge i64 %k, %rounds
  br i1 %enough, label %sleep, label %pause
pause:
  {_PAUSE}
  %k1 = add i64 %k, 1
  %low = and i64 %k1, {YIELD_ROUNDS - 1}
  %polite = icmp eq i64 %low, 0
  br i1 %polite, label %let, label %spin
let:
  call i32 @sched_yield()
  br label %spin
sleep:
  call i32 @pthread_mutex_lock(ptr %m)
  %s0 = atomicrmw add ptr %sleepers.p, i64 1 seq_cst
  br label %check
check:
  %w2 = load atomic i64, ptr %word.p seq_cst, align 8
  %g2 = lshr i64 %w2, 32
  %fresh2 = icmp ne i64 %g2, %last
  br i1 %fresh2, label %awake, label %wait
wait:
  call i32 @pthread_cond_wait(ptr %c, ptr %m)
  br label %check
awake:
  %s1 = atomicrmw sub ptr %sleepers.p, i64 1 seq_cst
  call i32 @pthread_mutex_unlock(ptr %m)
  br label %go
go:
  %gen = phi i64 [ %g, %spin ], [ %g2, %awake ]
  call void @work(ptr %s, i64 %gen)
  br label %top
}}

; run f(args, begin, end) over blocks of [0, n); inline if another thread is using the pool
define void @run(ptr %s, ptr %f, ptr %args, i64 %n) {GLUE} {{
entry:
  %busy.p = getelementptr i8, ptr %s, i64 {BUSY}
  %pair = cmpxchg ptr %busy.p, i64 0, i64 1 acquire monotonic
  %ours = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %ours, label %start, label %inline
inline:
  call void %f(ptr %args, i64 0, i64 %n)
  ret void
start:
  %word.p = getelementptr i8, ptr %s, i64 {WORD}
  %done.p = getelementptr i8, ptr %s, i64 {DONE}
  %f.p = getelementptr i8, ptr %s, i64 {FUNCTION}
  %a.p = getelementptr i8, ptr %s, i64 {ARGS}
  %n.p = getelementptr i8, ptr %s, i64 {COUNT}
  %g.p = getelementptr i8, ptr %s, i64 {GRAIN}
  %b.p = getelementptr i8, ptr %s, i64 {BLOCKS}
  %t.p = getelementptr i8, ptr %s, i64 {THREADS}
  %sleepers.p = getelementptr i8, ptr %s, i64 {SLEEPERS}
  %m = getelementptr i8, ptr %s, i64 {MUTEX}
  %c = getelementptr i8, ptr %s, i64 {COND}
  %threads = load i64, ptr %t.p
  %parts = mul i64 %threads, 8
  %up = add i64 %n, %parts
  %up1 = sub i64 %up, 1
  %grain = sdiv i64 %up1, %parts
  %up2 = add i64 %n, %grain
  %up3 = sub i64 %up2, 1
  %blocks = sdiv i64 %up3, %grain
  store atomic ptr %f, ptr %f.p monotonic, align 8
  store atomic ptr %args, ptr %a.p monotonic, align 8
  store atomic i64 %n, ptr %n.p monotonic, align 8
  store atomic i64 %grain, ptr %g.p monotonic, align 8
  store atomic i64 %blocks, ptr %b.p monotonic, align 8
  store atomic i64 0, ptr %done.p monotonic, align 8
  %w = load atomic i64, ptr %word.p monotonic, align 8
  %g = lshr i64 %w, 32
  %g1 = add i64 %g, 1
  %w1 = shl i64 %g1, 32
  %gen = lshr i64 %w1, 32
  store atomic i64 %w1, ptr %word.p seq_cst, align 8
  %asleep = load atomic i64, ptr %sleepers.p seq_cst, align 8
  %some = icmp sgt i64 %asleep, 0
  br i1 %some, label %wake, label %mine
wake:
  call i32 @pthread_mutex_lock(ptr %m)
  call i32 @pthread_cond_broadcast(ptr %c)
  call i32 @pthread_mutex_unlock(ptr %m)
  br label %mine
mine:
  call void @work(ptr %s, i64 %gen)
  br label %join
join:
  %k = phi i64 [ 0, %mine ], [ %k1, %next ]
  %done = load atomic i64, ptr %done.p acquire, align 8
  %all = icmp eq i64 %done, %blocks
  br i1 %all, label %finish, label %idle
idle:
  %long = icmp sgt i64 %k, 2000
  br i1 %long, label %yield, label %relax
yield:
  call i32 @sched_yield()
  br label %next
relax:
  {_PAUSE}
  br label %next
next:
  %k1 = add i64 %k, 1
  br label %join
finish:
  store atomic i64 0, ptr %busy.p release, align 8
  ret void
}}
"""

MOST_THREADS = 1 << 12  # more than any machine has use for
_lock = threading.Lock()
_pools: dict[int, int] = {}
_functions: compiler.Code | None = None
_current: int | None = None  # the address kernels are called with; 0 runs everything on the calling thread
_configured: int | None = None


def default_threads() -> int:
    """CHAINRULE_NUM_THREADS, or OMP_NUM_THREADS, or the number of cores this process may use."""
    for name in ("CHAINRULE_NUM_THREADS", "OMP_NUM_THREADS"):
        env = os.environ.get(name, "").partition(",")[0].strip()
        if env.isdigit() and int(env) > 0:
            return int(env)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _start(n: int) -> int:
    """A pool of n threads (the caller is one of them): the address of its state."""
    global _functions
    if n <= 1 or sys.platform == "win32" or not compiler.available():
        return 0
    if _functions is None:
        _functions = compiler.forever(compiler.link(IR, ["setup", "worker", "run"], "runtime"))
    mem = compiler.forever(mmap.mmap(-1, STATE_SIZE))  # page aligned
    address = ctypes.addressof(ctypes.c_char.from_buffer(mem))
    ctypes.c_int64.from_address(address + THREADS).value = n
    ctypes.c_int64.from_address(address + SPIN).value = SPIN_ROUNDS
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_functions["setup"])(address)
    worker = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_functions["worker"])
    for i in range(n - 1):
        try:
            threading.Thread(target=worker, args=(address,), name=f"chainrule-{i + 1}", daemon=True).start()
        except RuntimeError:  # the system gives no more: those that run share the work
            ctypes.c_int64.from_address(address + THREADS).value = i + 1
            break
    return address


def pool() -> int:
    """The address of the current pool's state, 0 for none; starts the threads on first use."""
    global _current
    if _current is None:
        with _lock:
            if _current is None:
                n = _configured or default_threads()
                if n not in _pools:
                    _pools[n] = _start(n)
                _current = _pools[n]
    return _current


def set_num_threads(n: int) -> None:
    """Use n threads from now on. Results do not depend on it."""
    global _configured, _current
    if not 1 <= n < MOST_THREADS:
        raise ValueError(f"set_num_threads: expected a number from 1 to {MOST_THREADS - 1}, got {n}")
    _configured, _current = n, None


def get_num_threads() -> int:
    """How many threads a large kernel uses."""
    return _configured or default_threads()


def _after_fork() -> None:
    """A forked child has none of the threads: forget the pools, start new ones when needed."""
    global _current, _lock
    _lock = threading.Lock()
    _pools.clear()
    _current = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
