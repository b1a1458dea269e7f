"""jit beside JAX's: gradients of small functions, loops and solvers, as compiled calls. JAX's asynchronous dispatch is off.

`python -m benchmarks.jit` prints more than the budgets: the least and the median time of single calls taken in turns, the ratio of CPU
time to wall time of each side (on busy cores it is below 1: throw the run away), and what the first call costs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule as cr
from benchmarks.common import OURS, Row, best_of, optional, show_time
from chainrule import func

jax: Any = optional("jax")
if jax is not None:
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


class Case(NamedTuple):
    """One function for both libraries: made of `xp` (chainrule or jax.numpy) and arrays; budget is the ratio to JAX jit."""

    name: str
    make: Callable[[Any, Any], Callable[..., Any]]
    arrays: list[Any]
    budget: float
    tol: float = 2e-3


class Ours:
    """What the functions below need of chainrule."""

    grad, vmap = staticmethod(func.grad), staticmethod(func.vmap)
    hessian = staticmethod(func.hessian)
    exp, tanh, stack, sqrt = cr.exp, cr.tanh, cr.stack, cr.sqrt
    softplus, zeros = cr.nn.functional.softplus, cr.zeros
    inv = cr.linalg.inv

    @staticmethod
    def loop(n: int, f: Any, x: Any) -> Any:
        """n steps of f."""
        return cr.fori_loop(0, n, lambda i, c: f(c), x)

    @staticmethod
    def scan(f: Any, init: Any, xs: Any) -> Any:
        """carry and rows."""
        return cr.scan(f, init, xs)


class Theirs:
    """The same of JAX."""

    def __init__(self) -> None:
        jnp, lax = jax.numpy, jax.lax
        self.grad, self.vmap, self.hessian = jax.grad, jax.vmap, jax.hessian
        self.exp, self.tanh, self.stack, self.sqrt, self.zeros = jnp.exp, jnp.tanh, jnp.stack, jnp.sqrt, jnp.zeros
        self.softplus, self.inv = jax.nn.softplus, jnp.linalg.inv
        self.scan = lax.scan

    @staticmethod
    def loop(n: int, f: Any, x: Any) -> Any:
        """n steps of f."""
        return jax.lax.fori_loop(0, n, lambda i, c: f(c), x)


def _chain8(xp: Any, a: Any) -> Any:
    (y,) = a
    return xp.grad(lambda x: (xp.tanh(xp.exp(x * 2 + 1)) @ y).sum())


def _rosenbrock(xp: Any, a: Any) -> Any:
    return xp.grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def _layers(xp: Any, a: Any) -> Any:
    def f(ws: Any, x: Any) -> Any:
        for w in ws:
            x = xp.tanh(w @ x)
        return x.sum()

    return xp.grad(f)


def _logistic(xp: Any, a: Any) -> Any:
    x, t = a
    return xp.hessian(lambda w: xp.softplus(-(x @ w) * t).sum())


def _lorenz(s: Any, xp: Any) -> Any:
    x, y, z = s[0], s[1], s[2]
    return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def _rk4(s: Any, xp: Any, h: float = 0.01) -> Any:
    a = _lorenz(s, xp)
    b = _lorenz(s + h / 2 * a, xp)
    c = _lorenz(s + h / 2 * b, xp)
    d = _lorenz(s + h * c, xp)
    return s + h / 6 * (a + 2 * b + 2 * c + d)


def _solver(steps: int) -> Any:
    def make(xp: Any, a: Any) -> Any:
        return xp.grad(lambda s: xp.loop(steps, lambda s: _rk4(s, xp), s).sum())

    return make


def _many(xp: Any, a: Any) -> Any:
    return xp.vmap(lambda s: xp.loop(20, lambda s: _rk4(s, xp), s))


def _rnn(xp: Any, a: Any) -> Any:
    def f(w: Any, xs: Any, h: Any) -> Any:
        def step(h: Any, v: Any) -> Any:
            h = xp.tanh(w @ h + v)
            return h, h

        h, hs = xp.scan(step, h, xs)
        return (hs * hs).sum()

    return xp.grad(f)


def _mlp(xp: Any, a: Any) -> Any:
    def f(ws: Any, x: Any) -> Any:
        for w in ws[:-1]:
            x = xp.tanh(x @ w)
        return (x @ ws[-1]).sum()

    g = xp.grad(f)
    return lambda ws, xs: xp.vmap(lambda x: g(ws, x))(xs)


def _bodies(xp: Any, a: Any) -> Any:
    def energy(x: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        r = xp.sqrt((d * d).sum(-1) + 1e-3)
        return (1 / r).sum()

    return xp.grad(energy)


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return rng.standard_normal(shape) * scale


def cases() -> Iterator[Case]:
    """The functions, with arguments and, after None, arrays that they hold."""
    for d in (np.float32, np.float64):
        t = "f32" if d is np.float32 else "f64"

        def c(x: np.ndarray, d: Any = d) -> np.ndarray:
            return x.astype(d)

        yield Case(f"gradient 8x8 {t}", _chain8, [c(_normal(8, 8)), None, c(_normal(8, 8))], 0.15)
        yield Case(f"Rosenbrock n = 100 {t}", _rosenbrock, [c(_normal(100))], 0.15)
        yield Case(
            f"10 layers of 32 {t}", _layers, [[c(_normal(32, 32, scale=0.2)) for _ in range(10)], c(_normal(32))], 0.35
        )
        yield Case(
            f"Hessian 200 x 50 {t}",
            _logistic,
            [c(_normal(50, scale=0.1)), None, c(_normal(200, 50)), c(_normal(200))],
            0.5,
        )
        yield Case(f"Lorenz 300 steps {t}", _solver(300), [c(np.ones(3))], 0.5, 0.1)
        yield Case(f"Lorenz 1000 steps {t}", _solver(1000), [c(np.ones(3))], 0.5, 0.5 if t == "f32" else 1e-6)
        yield Case(f"RNN 200 x 64 {t}", _rnn, [c(_normal(64, 64, scale=0.1)), c(_normal(200, 64)), c(_normal(64))], 0.8)
        yield Case(f"Rosenbrock n = 1000000 {t}", _rosenbrock, [c(_normal(1_000_000))], 0.7)
        ws = [c(_normal(m, n, scale=0.1)) for m, n in ((64, 128), (128, 128), (128, 10))]
        yield Case(f"per-example gradients {t}", _mlp, [ws, c(_normal(128, 64))], 0.7)
        yield Case(f"10000 solves {t}", _many, [c(_normal(10_000, 3))], 0.7)
        yield Case(f"512 bodies {t}", _bodies, [c(_normal(512, 3))], 0.7)


def _both(case: Case) -> tuple[dict[str, Callable[[], Any]], dict[str, float]]:
    """A compiled call for each library, and what the first one took."""
    cut = next((i for i, a in enumerate(case.arrays) if a is None), len(case.arrays))
    work, first = {}, {}
    libraries: list[tuple[str, Any, Any, Any]] = [(OURS, Ours, cr.jit, lambda a: cr.tensor(a))]
    if jax is not None:
        libraries.append(("jax jit", Theirs(), jax.jit, jax.numpy.asarray))
    for name, xp, jit, array in libraries:
        put = [[array(w) for w in a] if isinstance(a, list) else array(a) for a in case.arrays if a is not None]
        args, held = put[:cut], put[cut:]
        f = jit(case.make(xp, held))
        start = time.perf_counter()
        f(*args)
        first[name] = time.perf_counter() - start
        work[name] = lambda f=f, args=args: f(*args)
    results = {k: np.concatenate([np.ravel(np.asarray(x)) for x in _leaves(f())]) for k, f in work.items()}
    for k, got in results.items():
        np.testing.assert_allclose(
            got, results[OURS], rtol=case.tol, atol=case.tol * np.abs(got).max(), err_msg=f"{case.name}: {k}"
        )
    return work, first


def _leaves(y: Any) -> list[Any]:
    return [z for x in y for z in _leaves(x)] if isinstance(y, list | tuple) else [y]


def rows(only: str = "") -> Iterator[Row]:
    """One row for each function."""
    for case in cases():
        if only in case.name:
            work, _ = _both(case)
            yield Row(f"jit: {case.name}", best_of(work, rounds=20), {"jax jit": case.budget})


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
                    f"    {k:10s} least {show_time(least)}  median {show_time(median)}  CPU/wall {share:.2f}  first call {show_time(first[k])}"
                )
            if "jax jit" in got:
                a, b = got[OURS], got["jax jit"]
                print(
                    f"    ratio least {a[0] / b[0]:.2f}  median {a[1] / b[1]:.2f}  (budget {case.budget})  first {first[OURS] / first['jax jit']:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
