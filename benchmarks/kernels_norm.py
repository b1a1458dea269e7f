"""The normalisation kernels beside PyTorch's operators, forward and backward, on two threads.

These are the kernels alone, called on arrays: what the engine adds per call is measured where the operators are. The weight norm
is also compared with the machine: a copy of the same bytes on two threads, tuned the same way (whole vectors past the cache).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from benchmarks.common import OURS, Row, best_of, optional
from chainrule import kernels
from chainrule.kernels import compiler, runtime
from chainrule.kernels.lang import Kernel, f32

THREADS = 2
COPY_BLOCK = 1 << 16


def agree(ours: tuple, theirs: tuple, scale: float) -> None:
    """The same result first."""
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.reshape(-1), b.detach().numpy().reshape(-1), rtol=2e-3, atol=scale)


def draw(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def weight_norm(shape: tuple[int, int], dim: int, torch) -> tuple[Callable, Callable]:
    v, grad = draw(*shape), draw(*shape)
    g = np.ones([s if i == dim else 1 for i, s in enumerate(shape)], np.float32)

    def ours():
        w, norm = kernels.weight_norm(v, g, dim)
        return w, *kernels.weight_norm_backward(grad, v, g, norm, dim)

    tv, tg, tgrad = torch.from_numpy(v).requires_grad_(), torch.from_numpy(g).requires_grad_(), torch.from_numpy(grad)

    def theirs():
        w = torch._weight_norm(tv, tg, dim)
        return w, *torch.autograd.grad(w, (tv, tg), tgrad)

    return ours, theirs


def affine(torch, x: np.ndarray, channels: int) -> tuple:
    w, b, gy = draw(channels), draw(channels), draw(*x.shape)
    return w, b, gy, [torch.from_numpy(a).requires_grad_() for a in (x, w, b)], torch.from_numpy(gy)


def layer_norm(rows: int, n: int, torch) -> tuple[Callable, Callable]:
    x = draw(rows, n)
    w, b, gy, t, tgy = affine(torch, x, n)

    def ours():
        y, mean, rstd = kernels.layer_norm(x, w, b, 1e-5)
        return y, *kernels.layer_norm_backward(gy, x, mean, rstd, w)

    def theirs():
        y = torch.nn.functional.layer_norm(t[0], (n,), t[1], t[2], 1e-5)
        return y, *torch.autograd.grad(y, t, tgy)

    return ours, theirs


def rms_norm(rows: int, n: int, torch) -> tuple[Callable, Callable]:
    x = draw(rows, n)
    w, _, gy, t, tgy = affine(torch, x, n)

    def ours():
        y, rstd = kernels.rms_norm(x, w, 1e-5)
        return y, *kernels.rms_norm_backward(gy, x, rstd, w)

    def theirs():
        y = torch.nn.functional.rms_norm(t[0], (n,), t[1], 1e-5)
        return y, *torch.autograd.grad(y, t[:2], tgy)

    return ours, theirs


def batch_norm(shape: tuple[int, ...], torch) -> tuple[Callable, Callable]:
    x = draw(*shape)
    w, b, gy, t, tgy = affine(torch, x, shape[1])

    def ours():
        y, mean, rstd, _ = kernels.batch_norm(x, w, b, 1e-5)
        return y, *kernels.batch_norm_backward(gy, x, mean, rstd, w)

    def theirs():
        y = torch.nn.functional.batch_norm(t[0], None, None, t[1], t[2], True, 0.1, 1e-5)
        return y, *torch.autograd.grad(y, t, tgy)

    return ours, theirs


def group_norm(shape: tuple[int, ...], groups: int, torch) -> tuple[Callable, Callable]:
    x = draw(*shape)
    w, b, gy, t, tgy = affine(torch, x, shape[1])

    def ours():
        y, mean, rstd = kernels.group_norm(x, groups, w, b, 1e-5)
        return y, *kernels.group_norm_backward(gy, x, mean, rstd, w, groups)

    def theirs():
        y = torch.nn.functional.group_norm(t[0], groups, t[1], t[2], 1e-5)
        return y, *torch.autograd.grad(y, t, tgy)

    return ours, theirs


def softmax(rows: int, n: int, torch) -> tuple[Callable, Callable]:
    x, gy = draw(rows, n), draw(rows, n)
    t, tgy = torch.from_numpy(x).requires_grad_(), torch.from_numpy(gy)

    def ours():
        y = kernels.softmax(x)
        return y, kernels.softmax_backward(gy, y)

    def theirs():
        y = torch.softmax(t, -1)
        return y, *torch.autograd.grad(y, t, tgy)

    return ours, theirs


WORK: list[tuple[str, Callable, tuple, float]] = [
    ("weight norm 4096×4096, dim 0", weight_norm, ((4096, 4096), 0), 0.25),
    ("weight norm 4096×4096, last dim", weight_norm, ((4096, 4096), 1), 0.35),
    ("weight norm 256×256, dim 0", weight_norm, ((256, 256), 0), 0.6),
    ("weight norm 512×4608, dim 0", weight_norm, ((512, 4608), 0), 0.5),
    ("layer norm 8192×1024", layer_norm, (8192, 1024), 0.5),
    ("layer norm 2048×768", layer_norm, (2048, 768), 0.7),
    ("layer norm 64×256", layer_norm, (64, 256), 0.7),
    ("RMS norm 4096×1024", rms_norm, (4096, 1024), 0.5),
    ("batch norm 64×64×32×32", batch_norm, ((64, 64, 32, 32),), 0.7),
    ("group norm 64×64×32×32", group_norm, ((64, 64, 32, 32), 8), 0.7),
    ("softmax 4096×1024", softmax, (4096, 1024), 1.0),
]


def copy_kernel() -> Callable[..., None]:
    """Copies an array on all threads, past the cache."""
    k = Kernel("copy", f32)
    x, y, n = k.array("x", f32), k.array("y", f32, stream=True), k.size("n")
    with k.grid(n // COPY_BLOCK, cost=COPY_BLOCK) as i:
        base = i * COPY_BLOCK
        with k.lanes(k.minimum(n - base, COPY_BLOCK)) as j:
            y[base + j] = x[base + j]
    return compiler.compile_kernel(k)


def against_the_machine() -> Row:
    """Weight norm reads and writes what a copy does: at least 80 % of the copy's bytes per second."""
    v, g = draw(4096, 4096), np.ones((4096, 1), np.float32)
    out, copy = kernels.pool.empty(v.shape, v.dtype), copy_kernel()
    work = {OURS: lambda: kernels.weight_norm(v, g, 0), "copy": lambda: copy(runtime.pool(), v, out, v.size)}
    seconds = best_of(work, rounds=40)
    assert np.array_equal(v, out)
    return Row("weight norm 4096×4096, forward, beside a copy", seconds, {"copy": 1 / 0.8})


def rows(only: str = "") -> Iterable[Row]:
    torch = optional("torch")
    if torch is None or not kernels.available():
        return
    threads = kernels.get_num_threads(), torch.get_num_threads()
    kernels.set_num_threads(THREADS)
    torch.set_num_threads(THREADS)
    try:
        for name, make, args, budget in WORK:
            if only in name:
                ours, theirs = make(*args, torch)
                agree(ours(), theirs(), 2e-3)
                seconds = best_of({OURS: ours, "torch": theirs}, rounds=20)
                yield Row(name + ", forward + backward", seconds, {"torch": budget})
        if only in "weight norm 4096×4096, forward, beside a copy":
            yield against_the_machine()
    finally:
        kernels.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])


if __name__ == "__main__":
    for row in rows():
        ratios = "  ".join(f"{got:.3f} × {peer} (budget {budget:g})" for peer, got, budget in row.verdicts())
        print(f"{'ok ' if row.good else 'NOT'} {row.name:60s} {row.seconds[OURS] * 1e6:10.1f} µs  {ratios}")
