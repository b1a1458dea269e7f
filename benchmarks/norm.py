"""The normalisations through the public API, forward and backward, beside PyTorch's: the same calls, on two threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import chainrule
from benchmarks.common import OURS, Row, best_of, optional
from chainrule import kernels

THREADS = 2
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def draw(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def both(torch: Any, f: Callable[..., Any], arrays: list[np.ndarray], gy: np.ndarray) -> Pair:
    """y and the gradients of all arrays, by each library: `f(library, *tensors)`."""
    ours = [chainrule.tensor(a).requires_grad_() for a in arrays]
    theirs = [torch.from_numpy(a.copy()).requires_grad_() for a in arrays]
    g, tg = chainrule.tensor(gy), torch.from_numpy(gy.copy())

    def run() -> Any:
        y = f(chainrule, *ours)
        return y, *chainrule.autograd.grad(y, ours, g)

    def peer() -> Any:
        y = f(torch, *theirs)
        return y, *torch.autograd.grad(y, theirs, tg)

    return run, peer


def weight_norm(torch: Any, shape: tuple[int, int], dim: int) -> Pair:
    g = np.ones([s if i == dim else 1 for i, s in enumerate(shape)], np.float32)
    return both(torch, lambda lib, v, g: lib._weight_norm(v, g, dim), [draw(*shape), g], draw(*shape, seed=1))


def layer_norm(torch: Any, rows: int, n: int) -> Pair:
    arrays = [draw(rows, n), draw(n, seed=1), draw(n, seed=2)]
    return both(torch, lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (n,), w, b), arrays, draw(rows, n, seed=3))


def rms_norm(torch: Any, rows: int, n: int) -> Pair:
    arrays = [draw(rows, n), draw(n, seed=1)]
    return both(torch, lambda lib, x, w: lib.nn.functional.rms_norm(x, (n,), w, 1e-5), arrays, draw(rows, n, seed=3))


def batch_norm(torch: Any, *shape: int) -> Pair:
    arrays = [draw(*shape), draw(shape[1], seed=1), draw(shape[1], seed=2)]
    return both(
        torch,
        lambda lib, x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, True),
        arrays,
        draw(*shape, seed=3),
    )


def group_norm(torch: Any, groups: int, *shape: int) -> Pair:
    arrays = [draw(*shape), draw(shape[1], seed=1), draw(shape[1], seed=2)]
    return both(torch, lambda lib, x, w, b: lib.nn.functional.group_norm(x, groups, w, b), arrays, draw(*shape, seed=3))


def ensemble(torch: Any, models: int, *shape: int) -> Pair:
    """vmap(grad(loss)) over the weights and inputs of several models with a batch norm in training."""
    arrays = [draw(models, shape[1], seed=1), draw(models, shape[1], seed=2), draw(models, *shape)]

    def work(lib: Any, tensors: list[Any]) -> Callable[[], Any]:
        def loss(w: Any, b: Any, x: Any) -> Any:
            y = lib.nn.functional.batch_norm(x, None, None, w, b, True)
            return (y * y).sum() / 1000

        f = lib.func.vmap(lib.func.grad(loss, argnums=(0, 1, 2)))
        return lambda: f(*tensors)

    return work(chainrule, [chainrule.tensor(a) for a in arrays]), work(torch, [torch.from_numpy(a) for a in arrays])


def hessian_vector(torch: Any, rows: int, n: int) -> Pair:
    """Forward over reverse: the Hessian of a layer norm's loss times a vector."""
    arrays = [draw(rows, n), draw(rows, n, seed=1), draw(n, seed=2), draw(n, seed=3)]

    def work(lib: Any, x: Any, t: Any, w: Any, b: Any) -> Callable[[], Any]:
        def loss(x: Any) -> Any:
            y = lib.nn.functional.layer_norm(x, (n,), w, b)
            return (y * y * y).sum() / 1000

        return lambda: lib.func.jvp(lib.func.grad(loss), (x,), (t,))

    return work(chainrule, *[chainrule.tensor(a) for a in arrays]), work(torch, *[torch.from_numpy(a) for a in arrays])


WORK: list[tuple[str, Callable[..., Pair], tuple[Any, ...], str, float]] = [
    ("weight norm 4096×4096, dim 0", weight_norm, ((4096, 4096), 0), "torch", 0.25),
    ("weight norm 4096×4096, last dim", weight_norm, ((4096, 4096), 1), "torch", 0.35),
    ("weight norm 256×256, dim 0", weight_norm, ((256, 256), 0), "torch", 0.6),
    ("weight norm 512×4608, dim 0", weight_norm, ((512, 4608), 0), "torch", 0.5),
    ("layer norm 8192×1024", layer_norm, (8192, 1024), "torch", 0.5),
    ("layer norm 2048×768", layer_norm, (2048, 768), "torch", 0.7),
    ("layer norm 64×256", layer_norm, (64, 256), "torch", 0.7),
    ("RMS norm 4096×1024", rms_norm, (4096, 1024), "torch", 0.5),
    ("batch norm 64×64×32×32", batch_norm, (64, 64, 32, 32), "torch", 0.7),
    ("group norm 64×64×32×32", group_norm, (8, 64, 64, 32, 32), "torch", 0.7),
    ("vmap(grad) of batch norm, 8 models, 32×32×16×16", ensemble, (8, 32, 32, 16, 16), "torch.func", 0.4),
    ("Hessian-vector product of layer norm 1024×512", hessian_vector, (1024, 512), "torch.func", 0.3),
]


def _arrays(result: Any) -> list[np.ndarray]:
    if isinstance(result, tuple | list):
        return [a for r in result for a in _arrays(r)]
    return [result.detach().numpy()]


def agree(ours: Any, theirs: Any) -> None:
    """The same result first."""
    for a, b in zip(_arrays(ours), _arrays(theirs), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-3 * max(1.0, float(np.abs(b).max())))


def rows(only: str = "") -> Iterable[Row]:
    """One row a piece of work; PyTorch is needed to compare with."""
    torch = optional("torch")
    if torch is None:
        return
    threads = kernels.get_num_threads(), torch.get_num_threads()
    kernels.set_num_threads(THREADS)
    torch.set_num_threads(THREADS)
    try:
        for name, make, args, peer, budget in WORK:
            if only in name:
                ours, theirs = make(torch, *args)
                agree(ours(), theirs())
                yield Row(f"{name}, public API", best_of({OURS: ours, peer: theirs}, rounds=60), {peer: budget})
    finally:
        kernels.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])
