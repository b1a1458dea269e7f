"""``chainrule bench``: a few rows in seconds, beside PyTorch where it is installed; ``--all`` in a checkout: the project's own benchmarks."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any


def main(rest: list[str]) -> int:
    """Run; returns the exit status."""
    if rest and rest[0] == "--all" and Path("benchmarks/__main__.py").exists():
        return subprocess.call([sys.executable, "-m", "benchmarks", *rest[1:]])
    if rest:
        print("chainrule bench takes no arguments, or --all in a checkout of the project", file=sys.stderr)
        return 2
    peer = importlib.util.find_spec("torch") is not None
    print(f"{'work':<44}{'chainrule':>12}" + (f"{'torch':>12}{'ratio':>8}" if peer else ""))
    for name, ours, theirs in rows():
        best = [_best(ours)]
        if peer:
            best.append(_best(theirs))
        cells = "".join(f"{b * 1e6:>9.1f} µs" for b in best)
        print(f"{name:<44}{cells}" + (f"{best[0] / best[1]:>8.2f}" if peer else ""))
    return 0


def rows() -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """The work: a name, and how each library does it."""
    out = []
    for name, make in (
        ("gradient of sum(tanh(exp(2a+1)) @ b), 8×8", _chain),
        ("layer norm 512×512, both ways", _norm),
        ("softmax 512×512, both ways", _softmax),
    ):
        out.append((name, make("chainrule"), make("torch")))
    return out


def _library(name: str) -> Any:
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None


def _chain(library: str) -> Callable[[], Any]:
    lib = _library(library)
    if lib is None:
        return lambda: None
    a, b = lib.ones(8, 8).mul(0.1).requires_grad_(), lib.ones(8, 8)
    return lambda: lib.autograd.grad(((a * 2 + 1).exp().tanh() @ b).sum(), a)


def _norm(library: str) -> Callable[[], Any]:
    lib = _library(library)
    if lib is None:
        return lambda: None
    x, w = lib.randn(512, 512).requires_grad_(), lib.ones(512).requires_grad_()
    return lambda: lib.autograd.grad(lib.nn.functional.layer_norm(x, (512,), w, w).sum(), (x, w))


def _softmax(library: str) -> Callable[[], Any]:
    lib = _library(library)
    if lib is None:
        return lambda: None
    x = lib.randn(512, 512).requires_grad_()
    return lambda: lib.autograd.grad((x.softmax(-1) * x.detach()).sum(), x)


def _best(f: Callable[[], Any], seconds: float = 0.3) -> float:
    """The shortest time of many."""
    f()
    best, end = float("inf"), perf_counter() + seconds
    while perf_counter() < end:
        t = perf_counter()
        f()
        best = min(best, perf_counter() - t)
    return best
