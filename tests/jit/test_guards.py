"""Compiled code stays inside its arrays, and stops when it is told to: each in a process of its own."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mmap and mprotect as Linux has them")

GUARDS = """
import ctypes, mmap
import numpy as np
import chainrule as cr
from chainrule.func import grad, hessian, vmap

PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
kept = []


def guarded(shape, dtype, at_end):
    '''Memory for an array whose last byte (or first) has a page behind it (or before it) that nobody may touch.'''
    n = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = -(-max(n, 1) // PAGE)
    m = mmap.mmap(-1, (pages + 2) * PAGE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(m))
    kept.append(m)
    for page in (0, pages + 1):
        assert libc.mprotect(base + page * PAGE, PAGE, 0) == 0
    start = (pages + 1) * PAGE - n if at_end else PAGE
    return np.ndarray(shape, dtype, m, start)


def check(f, *args, tol=1e-9):
    '''Every compiled part on guarded inputs, results and temporary arrays.'''
    e = cr.explain(f, *args)
    count = 0
    env = dict(zip(e.graph.inputs, [x._value for x in (*args, *e.recording.boxes)]))
    for p in e.parts:
        if p.run is None:
            from chainrule.jit.graph import Graph, replay
            ys = replay(Graph(p.inputs, p.nodes, p.outputs), [cr.Tensor(env[v]) for v in p.inputs])
            env.update(zip(p.outputs, [y._value for y in ys]))
            continue
        plan = p.run.plan
        want = p.run(*[env[v] for v in p.inputs])
        for at_end in (True, False):
            xs = []
            for v in p.inputs:
                x = guarded(v.shape, v.dtype, at_end)
                x[...] = env[v]
                xs.append(x)
            ys = [guarded(s, d, at_end) for s, d in plan.shapes]
            temps = [guarded(s, d, at_end) for s, d in plan.temps]
            for t in temps:
                t[...] = 0
            tail = []
            for t in plan.tail:
                if isinstance(t, int):
                    tail.append(temps[t])
                else:
                    c = guarded(t.shape, t.dtype, at_end)
                    c[...] = t
                    tail.append(c)
            assert plan.kernel(plan.threads(), *xs, *ys, *tail) is None
            for y, w in zip(ys, want):
                np.testing.assert_allclose(y, w, rtol=tol, atol=tol)
            count += 1
        env.update(zip(p.outputs, want))
    assert count


rng = np.random.default_rng(0)


def T(*shape, dtype=np.float64):
    return cr.tensor((rng.standard_normal(shape) * 0.5).astype(dtype))
"""

PROGRAMS = {
    "pointwise, sums and pads": """
for dtype in (np.float32, np.float64):
    tol = 1e-4 if dtype is np.float32 else 1e-9
    for n in (1, 3, 16, 17, 33, 65, 129):
        x, y = T(n, dtype=dtype), T(n, dtype=dtype)
        check(lambda x, y: ((x * y).exp().tanh(), x.sum(), (x + y).sin()), x, y, tol=tol)
        check(lambda x, y: (x.reshape(-1, 1) * y).sum(0) + (x.reshape(-1, 1) - y).sum(1), x, y, tol=tol * 10)
        if n > 2:
            check(grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()), x, tol=tol * 100)
            check(lambda x: cr.cat([x[2:], x[:1] * 2]) * 3, x, tol=tol)
            check(lambda x: x[::2] * 2, x, tol=tol)
    for n in (40_001,):
        x = T(n, dtype=dtype)
        check(grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()), x, tol=tol * 1000)
        check(lambda x: (x.exp(), x.tanh() * x), x, tol=tol)
    for shape in ((17, 33), (200, 301)):
        a, b = T(*shape, dtype=dtype), T(shape[1], dtype=dtype)
        check(lambda a, b: ((a * b).sum(0), (a + b).exp().sum(1), (a.T * 2).sum(0)), a, b, tol=tol * 100)
        check(grad(lambda a, b: ((a * b).tanh() ** 2).sum(), (0, 1)), a, b, tol=tol * 100)
""",
    "products": """
for dtype in (np.float32, np.float64):
    tol = 3e-3 if dtype is np.float32 else 1e-9
    for m, k, n in ((1, 1, 1), (3, 5, 2), (9, 17, 33), (5, 1, 20), (50, 200, 50), (33, 65, 17)):
        a, b, v = T(m, k, dtype=dtype), T(k, n, dtype=dtype), T(k, dtype=dtype)
        check(lambda a, b: (a @ b).tanh(), a, b, tol=tol)
        check(lambda a, v: a @ v + (v @ a.T), a, v, tol=tol)
        check(grad(lambda a, b: ((a @ b) ** 2).sum(), (0, 1)), a, b, tol=tol * 10)
        check(vmap(lambda r, b=b: r @ b), a, tol=tol)
    x, t = T(20, 7, dtype=dtype), T(20, dtype=dtype)
    check(hessian(lambda w: cr.nn.functional.softplus(-(x @ w) * t).sum()), T(7, dtype=dtype), tol=tol)
""",
    "loops and branches": """
for dtype in (np.float32, np.float64):
    tol = 1e-3 if dtype is np.float32 else 1e-9
    for n in (1, 3, 17):
        w, xs = T(n, n, dtype=dtype), T(9, n, dtype=dtype)
        rnn = lambda w, xs: (cr.scan(lambda h, x: ((w @ h + x).tanh(), h), xs[0], xs)[1] ** 2).sum()
        check(grad(rnn, (0, 1)), w, xs, tol=tol * 10)
        check(lambda x: cr.cond(x.sum() > 0, lambda x: x * 2, lambda x: x.exp(), (x,)), xs[0], tol=tol)
        check(lambda x: cr.while_loop(lambda x: (x * x).sum() > 1e-3, lambda x: (x * 0.5,), (x,))[0], xs[0], tol=tol)
        check(grad(lambda x: cr.fori_loop(0, 7, lambda i, c: c * 0.5 + (c * i).sin(), x).sum()), xs[0], tol=tol * 10)
    s = T(300, 3, dtype=dtype)
    check(vmap(lambda s: cr.fori_loop(0, 5, lambda i, s: s + 0.01 * s * s, s)), s, tol=tol)
    a, b = T(4, 4, dtype=dtype) + 2 * cr.eye(4, dtype=T(1, dtype=dtype).dtype), T(4, 2, dtype=dtype)
    check(lambda a, b: cr.linalg.solve(a, b) * 2, a, b, tol=tol * 10)
""",
}


def run(program, timeout=300):
    """A program in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=timeout)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_access_outside_of_arrays(name):
    got = run(GUARDS + PROGRAMS[name])
    assert got.returncode == 0, got.stderr[-3000:]


def test_the_guards_guard():
    got = run(GUARDS + "a = guarded((5,), np.float64, True)\nctypes.c_double.from_address(a.ctypes.data + 40).value")
    assert got.returncode < 0


def test_loops_are_interrupted():
    program = """
        import os, signal, threading, time
        import chainrule as cr

        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
        loops = [
            cr.jit(lambda x: cr.while_loop(lambda i, x: i >= 0, lambda i, x: (i + 1, x * 0.999), (cr.tensor(0), x))[1]),
            cr.jit(lambda x: cr.scan(lambda c, _: (c * 0.5 + 1, ()), x, None, length=10**11)[0]),
            cr.jit(lambda x: cr.while_loop(lambda x: x.sum() > -1, lambda x: (x * 0.999,), (x,))[0]),
        ]
        for f, x in zip(loops, (cr.ones(3), cr.ones(()), cr.ones(300))):
            threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            try:
                f(x)
            except KeyboardInterrupt:
                continue
            raise SystemExit("not interrupted")
    """
    got = run(textwrap.dedent(program), 120)
    assert got.returncode == 0, got.stderr[-3000:]


def test_what_an_assertion_is_rewritten_to_is_not_held():
    """A test's own function: the tool that rewrote its assertion leads to all that the tool knows."""
    from chainrule.jit.holds import survey

    def f(x):
        assert x.ndim == 1
        return x * 2

    held = survey(f)
    assert not any(k.startswith("@") for _, k, _ in held._names) and len(held._codes) == 1
