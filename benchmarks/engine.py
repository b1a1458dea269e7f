"""The engine's budgets: what a gradient, a jvp, a vmap cost at sizes where the engine itself is the cost."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

import chainrule
from benchmarks.common import OURS, Row, best_of, optional

jax = optional("jax")
hips = optional("autograd")

Arrays = dict[str, np.ndarray]
Work = dict[str, Callable[[], object]]
rng = np.random.default_rng(0)


def _normal(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _agree(work: Work) -> Work:
    """The work, after a check that every library computes the same thing: a fast wrong answer is no result."""
    results = {name: _flat(f()) for name, f in work.items()}
    for name, got in results.items():
        np.testing.assert_allclose(got, results[OURS], rtol=2e-3, atol=2e-4, err_msg=f"{name} disagrees with {OURS}")
    return work


def _measure(work: Work, **options: Any) -> dict[str, float]:
    """The best of each library, with PyTorch on one thread and on two: whichever suits the size of the work counts."""
    best: dict[str, float] = {}
    for threads in (1, min(2, os.cpu_count() or 1)):
        torch.set_num_threads(threads)
        for name, seconds in best_of(_agree(work), **options).items():
            best[name] = min(seconds, best.get(name, seconds))
    return best


def _flat(result: Any) -> np.ndarray:
    if isinstance(result, (tuple, list)):
        return np.concatenate([_flat(r) for r in result])
    if isinstance(result, dict):
        return np.concatenate([_flat(result[k]) for k in sorted(result)])
    if isinstance(result, torch.Tensor):
        result = result.detach().numpy()
    return np.asarray(result, dtype=np.float64).ravel()


def small(lib: Any) -> Callable[[Any, Any], Any]:
    """sum(tanh(exp(a*2+1)) @ y): five ops of the kind that user code is made of."""
    if lib is torch or lib is chainrule:
        return lambda a, y: (lib.tanh(lib.exp(a * 2 + 1)) @ y).sum()
    return lambda a, y: lib.sum(lib.dot(lib.tanh(lib.exp(a * 2 + 1)), y))


def _backward(lib: Any, f: Callable[..., Any], x: np.ndarray, *rest: np.ndarray) -> Callable[[], Any]:
    """The imperative style: leaf, forward, `autograd.grad`."""
    leaf = lib.tensor(x, requires_grad=True)
    others = [lib.tensor(r) for r in rest]
    return lambda: lib.autograd.grad(f(leaf, *others), leaf)[0]


def small_grad() -> Row:
    a, y = 0.1 * _normal(8, 8), _normal(8, 8)
    ca, cy, ta, ty = chainrule.tensor(a), chainrule.tensor(y), torch.tensor(a), torch.tensor(y)
    ours, theirs = chainrule.func.grad(small(chainrule)), torch.func.grad(small(torch))
    work: Work = {
        OURS: lambda: ours(ca, cy),
        f"{OURS}.backward": _backward(chainrule, small(chainrule), a, y),
        "torch.autograd": _backward(torch, small(torch), a, y),
        "torch.func": lambda: theirs(ta, ty),
    }
    if hips is not None:
        hips_grad = hips.grad(small(optional("autograd.numpy")))
        work["HIPS autograd"] = lambda: hips_grad(a, y)
    if jax is not None:
        ja, jy = jax.numpy.asarray(a), jax.numpy.asarray(y)
        eager = jax.grad(small(jax.numpy))
        work["JAX eager"] = lambda: jax.block_until_ready(eager(ja, jy))
        jitted = jax.jit(eager)
        work["JAX jit"] = lambda: jax.block_until_ready(jitted(ja, jy))
    seconds = _measure(work)
    return Row("gradient of sum(tanh(exp(a*2+1)) @ y), 8×8", seconds, {"torch.autograd": 0.5})


def small_backward() -> Row:
    a, y = 0.1 * _normal(8, 8), _normal(8, 8)
    work: Work = {
        OURS: _backward(chainrule, small(chainrule), a, y),
        "torch.autograd": _backward(torch, small(torch), a, y),
    }
    return Row("the same with requires_grad and autograd.grad", _measure(work), {"torch.autograd": 0.5})


def small_jvp() -> Row:
    a, y, t = 0.1 * _normal(8, 8), _normal(8, 8), _normal(8, 8)

    def run(lib: Any) -> Callable[[], Any]:
        x, w, tangent, f = lib.tensor(a), lib.tensor(y), lib.tensor(t), small(lib)
        return lambda: lib.func.jvp(lambda x: f(x, w), (x,), (tangent,))

    work: Work = {OURS: run(chainrule), "torch.func": run(torch)}
    if jax is not None:
        ja, jy, jt, f = jax.numpy.asarray(a), jax.numpy.asarray(y), jax.numpy.asarray(t), small(jax.numpy)
        work["JAX eager"] = lambda: jax.block_until_ready(jax.jvp(lambda x: f(x, jy), (ja,), (jt,)))
    return Row("jvp of the same", _measure(work), {"torch.func": 0.1})


def small_vmap_grad() -> Row:
    a, y = 0.1 * _normal(16, 8, 8), _normal(8, 8)

    def run(lib: Any) -> Callable[[], Any]:
        x, w, g = lib.tensor(a), lib.tensor(y), lib.func.vmap(lib.func.grad(small(lib)), in_dims=(0, None))
        return lambda: g(x, w)

    work: Work = {OURS: run(chainrule), "torch.func": run(torch)}
    if jax is not None:
        ja, jy, g = jax.numpy.asarray(a), jax.numpy.asarray(y), jax.vmap(jax.grad(small(jax.numpy)), in_axes=(0, None))
        work["JAX eager"] = lambda: jax.block_until_ready(g(ja, jy))
    return Row("vmap(grad) of the same, 16 examples", _measure(work), {"torch.func": 0.3})


def deep_chain() -> Row:
    x, ws = _normal(32, 32), [_normal(32, 32) / 32**0.5 for _ in range(10)]

    def loss(np_like: Any) -> Callable[..., Any]:
        def f(ws: Any, x: Any) -> Any:
            for w in ws:
                x = np_like.tanh(x @ w)
            return (x * x).sum()

        return f

    def functional(lib: Any) -> Callable[[], Any]:
        tx, tws, g = lib.tensor(x), [lib.tensor(w) for w in ws], lib.func.grad(loss(lib))
        return lambda: g(tws, tx)

    def imperative(lib: Any) -> Callable[[], Any]:
        tx, tws, f = lib.tensor(x), [lib.tensor(w, requires_grad=True) for w in ws], loss(lib)
        return lambda: lib.autograd.grad(f(tws, tx), tws)

    work: Work = {
        OURS: functional(chainrule),
        f"{OURS}.backward": imperative(chainrule),
        "torch.autograd": imperative(torch),
        "torch.func": functional(torch),
    }
    if hips is not None:
        hips_grad = hips.grad(loss(optional("autograd.numpy")))
        work["HIPS autograd"] = lambda: hips_grad(ws, x)
    if jax is not None:
        jx, jws, eager = jax.numpy.asarray(x), [jax.numpy.asarray(w) for w in ws], jax.grad(loss(jax.numpy))
        work["JAX eager"] = lambda: jax.block_until_ready(eager(jws, jx))
        jitted = jax.jit(eager)
        work["JAX jit"] = lambda: jax.block_until_ready(jitted(jws, jx))
    seconds = _measure(work)
    return Row("gradient of a 10-layer tanh chain, width 32", seconds, {"torch.autograd": 0.9, "torch.func": 0.5})


def vector_chain() -> Row:
    x, layers = _normal(32), [(_normal(32, 32) / 32**0.5, _normal(32)) for _ in range(10)]

    def run(lib: Any) -> Callable[[], Any]:
        leaf, ws = lib.tensor(x, requires_grad=True), [(lib.tensor(w), lib.tensor(b)) for w, b in layers]

        def gradient() -> Any:
            v = leaf
            for w, b in ws:
                v = lib.tanh(w @ v + b)
            return lib.autograd.grad(v.sum(), leaf)[0]

        return gradient

    work: Work = {OURS: run(chainrule), "torch.autograd": run(torch)}
    return Row("gradient of a matrix × vector chain, 10 layers of 32", _measure(work), {"torch.autograd": 0.9})


def vmap_grad_norm() -> Row:
    x, w, b = _normal(64, 256), _normal(256), _normal(256)

    def run(lib: Any) -> Callable[[], Any]:
        tx, tw, tb, norm = lib.tensor(x), lib.tensor(w), lib.tensor(b), lib.nn.functional.layer_norm
        g = lib.func.vmap(lib.func.grad(lambda row: norm(row, (256,), tw, tb).sum()))
        return lambda: g(tx)

    work: Work = {OURS: run(chainrule), "torch.func": run(torch)}
    return Row("vmap(grad) of layer_norm(...).sum(), 64×256", _measure(work), {"torch.func": 0.5})


def beside_nests() -> Row:
    """Dense code in a process that uses nested tensors, beside one that does not."""
    code = """
import time, chainrule as cr
a, y = cr.randn(8, 8), cr.randn(8, 8)
if {nested}: import chainrule.nested
g = cr.func.vmap(cr.func.grad(lambda a: ((a * 2 + 1).exp().tanh() @ y).sum()))
x, best = cr.randn(16, 8, 8), 9.0
for _ in range(40):
    s = time.thread_time()
    for _ in range(30): g(x)
    best = min(best, (time.thread_time() - s) / 30)
print(best)
"""
    best = {OURS: float("inf"), "without chainrule.nested": float("inf")}
    for _ in range(3):
        for name, nested in ((OURS, True), ("without chainrule.nested", False)):
            out = subprocess.run(
                [sys.executable, "-c", code.format(nested=nested)], capture_output=True, check=True, text=True
            )
            best[name] = min(best[name], float(out.stdout))
    return Row("vmap(grad) on dense tensors with chainrule.nested imported", best, {"without chainrule.nested": 1.03})


def per_example_mlp() -> Row:
    sizes, n = [64, 128, 128, 10], 128
    params = {f"w{i}": _normal(a, b) / a**0.5 for i, (a, b) in enumerate(pairwise(sizes))}
    params |= {f"b{i}": 0.1 * _normal(b) for i, b in enumerate(sizes[1:])}
    x, onehot = _normal(n, 64), np.eye(10, dtype=np.float32)[rng.integers(0, 10, n)]

    def loss(lib: Any) -> Callable[..., Any]:
        def f(p: Any, x: Any, target: Any) -> Any:
            for i in range(3):
                x = x @ p[f"w{i}"] + p[f"b{i}"]
                x = lib.tanh(x) if i < 2 else x
            if lib is torch or lib is chainrule:
                return lib.logsumexp(x, dim=-1) - (x * target).sum()
            return lib.log(lib.sum(lib.exp(x - x.max()))) + x.max() - (x * target).sum()

        return f

    def run(lib: Any) -> Callable[[], Any]:
        p = {k: lib.tensor(v) for k, v in params.items()}
        tx, tt, g = lib.tensor(x), lib.tensor(onehot), lib.func.vmap(lib.func.grad(loss(lib)), in_dims=(None, 0, 0))
        return lambda: g(p, tx, tt)

    work: Work = {OURS: run(chainrule), "torch.func": run(torch)}
    if jax is not None:
        jp, jx, jt = jax.tree.map(jax.numpy.asarray, (params, x, onehot))
        jitted = jax.jit(jax.vmap(jax.grad(loss(jax.numpy)), in_axes=(None, 0, 0)))
        work["JAX jit"] = lambda: jax.block_until_ready(jitted(jp, jx, jt))
    seconds = _measure(work)
    return Row("per-example gradients, 64-128-128-10 MLP, 128 examples", seconds, {"torch.func": 1.0})


def pointwise_forward() -> Row:
    a = 0.1 * _normal(8, 8)

    def chain(lib: Any) -> Callable[[Any], Any]:
        return lambda x: lib.tanh(lib.sin(lib.exp(lib.cos(x * 2.0 + 1.0) - x) * x) * 0.5)

    x, tx, ours, plain, theirs = chainrule.tensor(a), torch.tensor(a), chain(chainrule), chain(np), chain(torch)
    work: Work = {OURS: lambda: ours(x), "NumPy": lambda: plain(a), "torch": lambda: theirs(tx)}
    return Row("forward of nine pointwise ops, 8×8", _measure(work), {"NumPy": 3.0})


def import_time() -> Row:
    """The wall time of a fresh interpreter that imports the library, less that of one that imports nothing."""
    statements = {"": "pass", OURS: "import chainrule", "numpy": "import numpy", "torch": "import torch"}
    if jax is not None:
        statements["JAX"] = "import jax"
    if hips is not None:
        statements["HIPS autograd"] = "import autograd"
    best = dict.fromkeys(statements, float("inf"))
    with tempfile.TemporaryDirectory() as cache:
        # Byte code as an installed package has it: the first of the runs compiles, the others count.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        for _ in range(6):
            for name, code in statements.items():
                start = time.perf_counter()
                subprocess.run([sys.executable, "-c", code], check=True, env=env)
                best[name] = min(best[name], time.perf_counter() - start)
    bare = best.pop("")
    return Row("import", {name: s - bare for name, s in best.items()}, {}, limit=0.3)


BENCHMARKS: dict[str, Callable[[], Row]] = {
    "grad": small_grad,
    "backward": small_backward,
    "jvp": small_jvp,
    "vmap grad": small_vmap_grad,
    "chain": deep_chain,
    "vector chain": vector_chain,
    "vmap grad norm": vmap_grad_norm,
    "beside nests": beside_nests,
    "mlp per-example": per_example_mlp,
    "pointwise forward": pointwise_forward,
    "import": import_time,
}


def rows(only: str = "") -> Iterator[Row]:
    """Every budget of the engine, or those whose key contains `only`."""
    for key, measure in BENCHMARKS.items():
        if only in key:
            yield measure()
