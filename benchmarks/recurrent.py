"""Recurrent layers through the public API, forward and backward, beside PyTorch's: the same calls, on two threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import chainrule
from benchmarks.common import OURS, Row, best_of, optional
from benchmarks.norm import THREADS, agree
from chainrule import kernels

Pair = tuple[Callable[[], Any], Callable[[], Any]]


def layer(torch: Any, name: str, time: int, batch: int, size: int, hidden: int, **kw: Any) -> Pair:
    """y and the gradients of the input and of all weights, by each library."""
    theirs = getattr(torch.nn, name)(size, hidden, **kw)
    ours = getattr(chainrule.nn, name)(size, hidden, **kw)
    ours.load_state_dict({k: chainrule.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    rng = np.random.default_rng(0)
    x = rng.standard_normal((time, batch, size), dtype=np.float32)
    g = rng.standard_normal(tuple(theirs(torch.from_numpy(x))[0].shape), dtype=np.float32)

    def work(lib: Any, f: Any, x: Any, g: Any) -> Callable[[], Any]:
        xs = [x.requires_grad_(), *f.parameters()]

        def run() -> Any:
            y = f(x)[0]
            return y, *lib.autograd.grad(y, xs, g)

        return run

    return work(chainrule, ours, chainrule.tensor(x), chainrule.tensor(g)), work(
        torch, theirs, torch.from_numpy(x.copy()), torch.from_numpy(g)
    )


WORK: list[tuple[str, tuple[Any, ...], dict[str, Any], float]] = [
    ("LSTM 100×16×64→128", ("LSTM", 100, 16, 64, 128), {}, 1.0),
    ("GRU 100×16×64→128", ("GRU", 100, 16, 64, 128), {}, 1.0),
    ("RNN 100×16×64→128", ("RNN", 100, 16, 64, 128), {}, 1.0),
    (
        "LSTM 50×32×64→128, two layers both ways",
        ("LSTM", 50, 32, 64, 128),
        {"num_layers": 2, "bidirectional": True},
        1.0,
    ),
    ("GRU 50×128×128→256", ("GRU", 50, 128, 128, 256), {}, 1.0),
]


def rows(only: str = "") -> Iterable[Row]:
    """One row a layer; PyTorch is needed to compare with."""
    torch = optional("torch")
    if torch is None:
        return
    threads = kernels.get_num_threads(), torch.get_num_threads()
    kernels.set_num_threads(THREADS)
    torch.set_num_threads(THREADS)
    try:
        for name, args, kw, budget in WORK:
            if only in name:
                ours, theirs = layer(torch, *args, **kw)
                agree(ours(), theirs())
                work = {OURS: ours, "torch": theirs}
                yield Row(f"{name}, forward and backward", best_of(work, rounds=40), {"torch": budget})
    finally:
        kernels.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])
