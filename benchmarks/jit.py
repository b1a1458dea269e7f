"""jit beside JAX's: gradients of small functions, loops, solvers and large arrays, as compiled calls. JAX's asynchronous dispatch is off.

`python -m benchmarks.jit` prints more than the budgets: the least and the median time of single calls taken in turns, the ratio of CPU
time to wall time of each side (on busy cores it is below 1: throw the run away), and what the first call costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import chainrule as cr
from benchmarks.common import OURS, Row, best_of, show_time
from benchmarks.jit_cases import Case, Ours, Theirs, cases, jax, torch


def _both(case: Case, peers: bool = True) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
    """A compiled call for each library, and what the first one took."""
    cut = next((i for i, a in enumerate(case.arrays) if a is None), len(case.arrays))
    work, first = {}, {}
    libraries: list[tuple[str, Any, Any, Any]] = [(OURS, Ours, cr.jit, lambda a: cr.tensor(a))]
    if jax is not None and peers:
        libraries.append(("jax jit", Theirs(), jax.jit, jax.numpy.asarray))
    for name, xp, jit, array in libraries:
        put = [[array(w) for w in a] if isinstance(a, list) else array(a) for a in case.arrays if a is not None]
        args, held = put[:cut], put[cut:]
        f = jit(case.make(xp, held))
        start = time.perf_counter()
        f(*args)
        first[name] = time.perf_counter() - start
        work[name] = lambda f=f, args=args: f(*args)
    results = {k: [np.asarray(x) for x in _leaves(f())] for k, f in work.items()}
    for k, got in results.items():
        for a, b in zip(got, results[OURS], strict=True):
            close = case.tol * max(np.abs(a).max(), 1e-30)
            np.testing.assert_allclose(a, b, rtol=case.tol, atol=close, err_msg=f"{case.name}: {k}")
    if case.torch is not None and torch is not None and peers:
        torch.set_num_threads(os.cpu_count() or 1)
        for name, f in case.torch(case.arrays).items():
            start = time.perf_counter()
            f()
            first[name] = time.perf_counter() - start
            work[name] = f
    return work, first


def _leaves(y: Any) -> list[Any]:
    return [z for x in y for z in _leaves(x)] if isinstance(y, list | tuple) else [y]


def rows(only: str = "") -> Iterator[Row]:
    """One row for each function, then first calls and the cost of a call."""
    for case in cases():
        if only in case.name:
            work, _ = _both(case)
            yield Row(f"jit: {case.name}", best_of(work, rounds=20), {"jax jit": case.budget, **case.budgets})
    yield from _overhead(only)
    for case in cases():
        if only in f"first call: {case.name}":
            yield from _firsts(case)


# -- what a call costs --------------------------------------------------------------------------------------------------------


def _overhead(only: str) -> Iterator[Row]:
    """A call of a function that does next to nothing: two tensors, and a tree of six."""
    x, y = cr.ones(1), cr.ones(1)
    tree = {"a": [cr.ones(1), cr.ones(1)], "b": (cr.ones(1), {"c": cr.ones(1)}), "d": cr.ones(1), "e": cr.ones(1)}
    two = cr.jit(lambda x, y: x + y)
    many = cr.jit(lambda t: {"s": t["a"][0] + t["a"][1], "t": (t["b"][0] * t["b"][1]["c"], t["d"] + t["e"])})
    for name, f, limit in (("two arguments", lambda: two(x, y), 0.5e-6), ("a pytree", lambda: many(tree), 3e-6)):
        if only in f"overhead: {name}":
            f()
            yield Row(f"jit overhead: {name}", best_of({OURS: f}, rounds=20), {}, limit)


# -- first calls --------------------------------------------------------------------------------------------------------------

FIRST = """
import os, sys, time
import numpy as np
from benchmarks.jit import first_call
first_call(sys.argv[1], sys.argv[2])
"""


def first_call(name: str, library: str) -> None:
    """Prints the seconds that the first call takes in this process, after another function was compiled."""
    case = next(c for c in cases() if c.name == name)
    ours = library == OURS
    xp, jit, array = (Ours, cr.jit, lambda a: cr.tensor(a)) if ours else (Theirs(), jax.jit, jax.numpy.asarray)
    warm = jit(xp.grad(lambda x: (x * x).sum()))
    warm(array(np.ones(3, np.float32)))
    cut = next((i for i, a in enumerate(case.arrays) if a is None), len(case.arrays))
    put = [[array(w) for w in a] if isinstance(a, list) else array(a) for a in case.arrays if a is not None]
    f = jit(case.make(xp, put[cut:]))
    start = time.perf_counter()
    f(*put[:cut])
    print(time.perf_counter() - start)


def _spawn(case: Case, library: str, folder: str, times: int) -> float:
    # Both libraries as they are once installed: with the bytecode of their modules on disk.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"CHAINRULE_CACHE_DIR": folder, "PYTHONPYCACHEPREFIX": _bytecode()}
    got = []
    for _ in range(times):
        out = subprocess.run([sys.executable, "-c", FIRST, case.name, library], env=env, capture_output=True, text=True, check=True)  # fmt: skip
        got.append(float(out.stdout.split()[-1]))
    return min(got)


_folders: list[tempfile.TemporaryDirectory[str]] = []


def _bytecode() -> str:
    """A folder for bytecode, in which there is that of all that a first call imports: nothing is written beside the sources."""
    if not _folders:
        _folders.append(tempfile.TemporaryDirectory())
        for library in (OURS, "jax")[: 1 + (jax is not None)]:
            with tempfile.TemporaryDirectory() as folder:
                for name in ("Rosenbrock n = 1000000 f32", "gradient 8x8 f32", "Kalman 4x4, 500 steps f32", "per-example gradients f32"):  # fmt: skip
                    _spawn(next(c for c in cases() if c.name == name), library, folder, 1)
    return _folders[0].name


def _firsts(case: Case) -> Iterator[Row]:
    """First calls in processes of their own: with an empty cache on disk, and with the one that this left behind."""
    fresh, second = [], float("inf")
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            fresh.append(_spawn(case, OURS, folder, 1))
            got = _spawn(case, OURS, folder, 1)
            second = min(second, got)
    jaxs = {"jax jit": _spawn(case, "jax", "", 3)} if jax is not None else {}
    yield Row(f"jit first call: {case.name}", {OURS: min(fresh), **jaxs}, {"jax jit": case.first})
    # From the cache in a third of what is allowed for a first call.
    yield Row(f"jit first call, second process: {case.name}", {OURS: second, **jaxs}, {"jax jit": case.first / 3})


# -- the long table -----------------------------------------------------------------------------------------------------------


def turns(work: dict[str, Callable[[], Any]], seconds: float = 1.0) -> dict[str, tuple[float, float, float]]:
    """Least and median of single calls taken in turns, and CPU time over wall time."""
    times: dict[str, list[float]] = {k: [] for k in work}
    cpu = dict.fromkeys(work, 0.0)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for k, f in work.items():
            f()
            c, s = time.process_time(), time.perf_counter()
            f()
            times[k].append(time.perf_counter() - s)
            cpu[k] += time.process_time() - c
    return {k: (min(t), statistics.median(t), cpu[k] / sum(t)) for k, t in times.items()}


def main(only: str = "") -> None:
    """The long table."""
    for case in cases():
        if only in case.name:
            work, first = _both(case)
            got = turns(work)
            print(case.name)
            for k, (least, median, share) in got.items():
                print(
                    f"    {k:13s} least {show_time(least)}  median {show_time(median)}  CPU/wall {share:.2f}  first call {show_time(first[k])}"
                )
            for peer, budget in {"jax jit": case.budget, **case.budgets}.items():
                if peer in got:
                    a, b = got[OURS], got[peer]
                    ratio, middle = a[0] / b[0], a[1] / b[1]
                    print(
                        f"    {'ok  ' if ratio <= budget else 'MISS'} least {ratio:.2f}  median {middle:.2f} x {peer} (budget {budget})",
                        f" first {first[OURS] / first[peer]:.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
