"""Steps of optimisers over many parameters, beside PyTorch's that goes over lists of tensors (`foreach`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import chainrule as ct
from benchmarks.common import OURS, Row, best_of, optional

SHAPES = {"64×64": [(64, 64)] * 100, "16": [(16,)] * 100, "256×256": [(256, 256)] * 100}


def step(lib: Any, name: str, shapes: Any, **kw: Any) -> Callable[[], Any]:
    """A step with gradients that stay."""
    rng = np.random.default_rng(0)
    ps = [lib.nn.Parameter(lib.tensor(rng.standard_normal(s).astype(np.float32))) for s in shapes]
    for p in ps:
        p.grad = lib.tensor(rng.standard_normal(tuple(p.shape)).astype(np.float32))
    return getattr(lib.optim, name)(ps, **kw).step


def rows(only: str = "") -> Iterable[Row]:
    """One row for each piece of work whose name contains `only`."""
    torch = optional("torch")
    for name in ("Adam", "SGD", "RMSprop"):
        for size, shapes in SHAPES.items():
            what = f"a step of {name} over 100 tensors of {size}"
            if only in what:
                kw = {"momentum": 0.9} if name == "SGD" else {}
                work = {OURS: step(ct, name, shapes, **kw)}
                if torch is not None:
                    torch.set_num_threads(2)
                    work["torch foreach"] = step(torch, name, shapes, foreach=True, **kw)
                yield Row(what, best_of(work, 20), {"torch foreach": 0.5} if name == "Adam" else {"torch foreach": 1.0})
