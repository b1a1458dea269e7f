"""Errors of reductions and scans in every layout and along every axis, in units of the type's rounding, beside PyTorch's.

The truth is computed in a wider type: in float64 for the narrow ones, in long double (or exactly, by ``math.fsum``, for sums) for float64.
The unit is the type's epsilon times the size of what is added: the sum of the terms' magnitudes for sums, the result for what cannot
cancel. So an error of 1 is one rounding of the largest partial result, and not a matter of luck.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import chainrule

Array = np.ndarray
TYPES = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
LIMIT = 2.0  # times PyTorch's error, or one unit: what a result may be off by

# -- layouts: an array of the same numbers, elsewhere in memory -----------------------------------------------------------

LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "contiguous": lambda m, x: x,
    "transposed": lambda m, x: x.transpose(0, -1).contiguous().transpose(0, -1),
    "strided": lambda m, x: (
        m.cat([x, x], -1).reshape(*x.shape[:-1], 2, x.shape[-1]).transpose(-1, -2).contiguous()[..., 0]
    ),
    "fortran": lambda m, x: x.permute(*reversed(range(x.ndim))).contiguous().permute(*reversed(range(x.ndim))),
    "reversed": lambda m, x: x.flip(-1).contiguous().flip(-1),
    "expanded": lambda m, x: x[:1].expand(*x.shape),
}

# -- what is computed: a name, the function, the truth, the unit ----------------------------------------------------------


def _sum(x: Array, axis: Any) -> Array:
    if x.dtype != np.longdouble:
        return np.add.reduce(x, axis=axis)
    if axis is None:
        return np.asarray(math.fsum(x.ravel().astype(np.float64)), np.longdouble)
    return np.add.reduce(x, axis=axis)


def _spread(x: Array, axis: Any) -> Array:
    mean = _sum(x, axis) / (x.size if axis is None else x.shape[axis])
    return x - (mean if axis is None else np.expand_dims(mean, axis))


def _var(x: Array, axis: Any) -> Array:
    return _sum(_spread(x, axis) ** 2, axis) / ((x.size if axis is None else x.shape[axis]) - 1)


def _logsumexp(x: Array, axis: Any) -> Array:
    top = np.max(x, axis=axis, keepdims=True)
    return np.log(_sum(np.exp(x - top), axis)) + (top.reshape(()) if axis is None else np.squeeze(top, axis))


def _method(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, axis: getattr(x, name)() if axis is None else getattr(x, name)(axis)


Row = tuple[Callable[[Any, Any], Any], Callable[[Array, Any], Array], Callable[[Array, Array, Any], Array]]


def _of_sum(x: Array, y: Array, axis: Any) -> Array:
    return _sum(np.abs(x), axis)


def _shared(x: Any, axis: Any) -> Any:
    """The gradient of what is broadcast along an axis: the sum over it."""
    w = (x.reshape(-1)[0] if axis is None else x.select(axis, 0)).detach().clone().requires_grad_()
    ((w if axis is None else w.unsqueeze(axis)) * x).sum().backward()
    return w.grad


def _of_mean(x: Array, y: Array, axis: Any) -> Array:
    return _of_sum(x, y, axis) / (x.size if axis is None else x.shape[axis])


def _of_result(x: Array, y: Array, axis: Any) -> Array:
    return np.maximum(np.abs(y), 1e-30)


REDUCTIONS: dict[str, Row] = {
    "sum": (_method("sum"), _sum, _of_sum),
    "mean": (_method("mean"), lambda x, a: _sum(x, a) / (x.size if a is None else x.shape[a]), _of_mean),
    "nansum": (_method("nansum"), _sum, _of_sum),
    "var": (_method("var"), _var, _of_result),
    "std": (_method("std"), lambda x, a: np.sqrt(_var(x, a)), _of_result),
    "norm": (
        lambda x, a: x.norm() if a is None else x.norm(2, a),
        lambda x, a: np.sqrt(_sum(x * x, a)),
        _of_result,
    ),
    "logsumexp": (
        lambda x, a: x.logsumexp(tuple(range(x.ndim)) if a is None else a),
        _logsumexp,
        lambda x, y, a: np.maximum(np.abs(y), 1),
    ),
    "gradient": (_shared, _sum, _of_sum),
}
SCANS: dict[str, Row] = {
    "cumsum": (
        lambda x, a: x.cumsum(a),
        lambda x, a: np.add.accumulate(x, axis=a),
        lambda x, y, a: np.add.accumulate(np.abs(x), axis=a),
    ),
}


def data(shape: tuple[int, ...], dtype: str, shift: float, seed: int = 0) -> Array:
    """Normal numbers around `shift`, as they are after rounding to the type, in float64."""
    x = np.random.default_rng(seed).normal(shift, 1.0, shape)
    return chainrule.tensor(x).to(getattr(chainrule, dtype)).to(chainrule.float64).numpy()


def error(module: Any, f: Callable[[Any, Any], Any], x: Any, axis: Any, truth: Array, unit: Array) -> float:
    """The largest error of one library, in units; what the type has no number for is rightly infinite."""
    y = f(x, axis)
    rounded = module.tensor(np.asarray(truth, np.float64)).to(y.dtype).to(module.float64).numpy()
    truth = np.where(np.isinf(rounded), rounded, truth)
    y = y.to(module.float64).numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        off = np.where((y == truth) | (np.isnan(y) & np.isnan(truth)), 0, np.abs(y - truth) / unit)
    return float(np.max(np.where(np.isnan(off), np.inf, off)))


def rows(
    sizes: list[int], types: list[str], names: list[str], peer: Any
) -> Iterator[tuple[str, str, str, str, str, float, float]]:
    """(operator, type, shape, axis, layout, error, PyTorch's error), one at a time."""
    every = {**REDUCTIONS, **SCANS}
    for n in sizes:
        side = round(math.sqrt(n))
        for shape in ((n // 4, 4), (4, n // 4), (side, side)):
            for dtype in types:
                for name in names:
                    f, truth, unit = every[name]
                    x = data(shape, dtype, 100.0 if name in ("var", "std") and dtype != "float16" else 0.5)
                    wide = np.longdouble if dtype == "float64" else np.float64
                    ours, theirs = (
                        m.tensor(x).to(getattr(m, dtype)) if m is not None else None for m in (chainrule, peer)
                    )
                    for layout, place in LAYOUTS.items():
                        a = place(chainrule, ours)
                        v = a.to(chainrule.float64).numpy().astype(wide)
                        b = None if theirs is None else LAYOUTS[layout](peer, theirs)
                        for axis in (0, 1) if name in SCANS else (0, 1, None):
                            want = truth(v, axis)
                            u = unit(v, want, axis) * TYPES[dtype]
                            mine = error(chainrule, f, a, axis, want, u)
                            other = math.nan if b is None else error(peer, f, b, axis, want, u)
                            yield name, dtype, "x".join(map(str, shape)), str(axis), layout, mine, other


def main(args: list[str] | None = None) -> int:
    """Print the table; the exit status says whether every error is within the limit."""
    p = argparse.ArgumentParser(prog="python -m chainrule.testing.precision reductions", description=__doc__)
    p.add_argument("--sizes", type=lambda s: [int(float(v)) for v in s.split(",")], default=[10**4, 10**6])
    p.add_argument("--types", type=lambda s: s.split(","), default=list(TYPES))
    p.add_argument("--only", type=lambda s: s.split(","), default=[*REDUCTIONS, *SCANS])
    p.add_argument(
        "--markdown", type=Path, help="also write the table, the worst layout and axis of each line, to this file"
    )
    p.add_argument(
        "--docs", type=Path, help="the folder whose precision.md gets the worst line of each operator and type"
    )
    p.add_argument("--alone", action="store_true", help="without PyTorch beside it")
    o = p.parse_args(args)
    peer: Any = None
    if not o.alone:
        import torch as peer  # type: ignore[no-redef]
    worst: dict[tuple[str, str, str], list[Any]] = {}
    bad = total = 0
    for name, dtype, shape, axis, layout, mine, other in rows(o.sizes, o.types, o.only, peer):
        total += 1
        over = mine > LIMIT * max(other, 1.0) if other == other else False
        bad += over
        if over:
            print(f"worse than PyTorch: {name} {dtype} {shape} axis {axis} {layout}: {mine:.2f} and {other:.2f} units")
        w = worst.setdefault((name, dtype, shape), [0.0, "", 0.0])
        if mine >= w[0]:
            w[:2] = mine, f"{layout}, axis {axis}"
        w[2] = max(w[2], other) if other == other else other
    lines = ["| operator | type | shape | error | where | PyTorch's |", "|---|---|---|---:|---|---:|"]
    lines += [
        f"| {name} | {dtype} | {shape} | {w[0]:.2f} | {w[1]} | {w[2]:.3g} |"
        for (name, dtype, shape), w in worst.items()
    ]
    print("\n".join(lines))
    print(f"\n{total} reductions, {bad} of them worse than {LIMIT:g} times PyTorch's error and than {LIMIT:g} units")
    if o.markdown:
        o.markdown.write_text("\n".join(lines) + "\n")
    if o.docs:
        write(worst, total, bad, o.docs)
    return int(bad > 0)


BEGIN, END = "<!-- reductions: written by make precision -->", "<!-- reductions: end -->"


def write(worst: dict[tuple[str, str, str], list[Any]], total: int, bad: int, docs: Path) -> None:
    """The section of reductions in docs/precision.md, between its marks: of each operator and type the worst over shapes, axes and layouts."""
    most: dict[tuple[str, str], list[Any]] = {}
    for (name, dtype, shape), (mine, where, other) in worst.items():
        w = most.setdefault((name, dtype), [-1.0, "", 0.0])
        if mine > w[0]:
            w[:2] = mine, f"{shape}, {where}"
        w[2] = max(w[2], other)
    lines = ["| operator | type | error | where | PyTorch's worst |", "|---|---|--:|---|--:|"]
    lines += [f"| {name} | {dtype} | {_of(w[0])} | {w[1]} | {_of(w[2])} |" for (name, dtype), w in most.items()]
    lines += ["", f"{total} errors, {bad} of them more than {LIMIT:g} units and more than {LIMIT:g} times PyTorch's."]
    page = docs / "precision.md"
    text = page.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    page.write_text(before + "\n".join([BEGIN, "", *lines]) + "\n\n" + after)


def _of(v: float) -> str:
    return "all" if math.isinf(v) else f"{v:.2f}" if v < 1e3 else f"{v:.0e}".replace("e+0", "e").replace("e+", "e")
