"""Evenly spaced numbers: arange, linspace, logspace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.registry import public
from ...core.shapes import constant
from ...core.sizes import has_ragged
from ...core.tensor import Tensor
from ...core.views import write_out
from ..elementwise.numbers import varies
from .create import finish


def number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _moving_range(args: tuple[Any, ...], start: Any, end: Any, step: Any, dtype: Any) -> Tensor:
    """``start + step k``, with the derivatives of both; how many there are does not change."""
    k = arange(*map(number, args), start=number(start), end=number(end), step=number(step), dtype=dtype)
    first = args[0] if len(args) > 1 else start
    by = args[2] if len(args) > 2 else step
    n = constant(np.arange(len(k)), k)
    for v, times in ((first, 1), (by, n)):
        if varies(v):
            k = k + (v - v.detach()) * times  # the value is that of the range
    return k


@public("arange", out=False)
def arange(*args: Any, start: Any = None, end: Any = None, step: Any = None, out: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """``start, start + step, ...`` up to but not including `end`.

    >>> chainrule.arange(1, 2.5, 0.5)
    tensor([1.0000, 1.5000, 2.0000])
    """
    if varies(*args, start, end, step):
        return _moving_range(args, start, end, step, dtype)
    a = [number(v) for v in args]
    if len(a) == 1:
        end = a[0] if end is None else end
        start = start if start is not None or end is a[0] else a[0]
    elif len(a) >= 2:
        start, end = a[0], a[1]
        step = a[2] if len(a) > 2 else step
    start, end, step = (0 if start is None else number(start)), number(end), (1 if step is None else number(step))
    if end is None:
        raise TypeError("arange: missing argument `end`")
    if has_ragged((start, end, step)):
        from ...payloads.nested.public_forms import arange_ragged

        y = arange_ragged(start, end, step, dt.int64 if dtype is None else dt.as_dtype(dtype))
        return y.requires_grad_() if requires_grad else y
    whole = isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
    d = (
        dt.as_dtype(dtype)
        if dtype is not None
        else out.dtype
        if out is not None
        else dt.int64
        if whole
        else dt.get_default_dtype()
    )
    if not math.isfinite(start) or not math.isfinite(end):
        raise RuntimeError(f"arange: unsupported range: start {start} to end {end}")
    if d is dt.int64:
        start, end, step = int(start), int(end), int(step)
    if step == 0 or (d.category == dt.INT and int(step) == 0):
        raise RuntimeError(f"arange: step must be nonzero, got {step} (an integer for {d!r})")
    if (end - start) * step < 0:
        raise RuntimeError(
            f"arange: upper bound and lower bound inconsistent with step sign: start {start}, end {end}, step {step}"
        )
    n = max(math.ceil((end - start) / step), 0)
    if d.category == dt.INT:
        values = int(start) + int(step) * np.arange(n, dtype=np.int64)
    else:
        values = start + step * np.arange(n, dtype=np.int64 if whole else np.float64)
    y = finish(values.astype(d.np), None, requires_grad, device)
    return y if out is None else write_out(out, y, fill=True)


@public("range", fill=True)
def range_(start: Any, end: Any = None, step: Any = 1, *, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """``start, start + step, ...`` up to and including `end` (deprecated in PyTorch: use arange)."""
    a, b, h = (0, number(start), number(step)) if end is None else (number(start), number(end), number(step))
    if h == 0 or (b - a) * h < 0:
        raise RuntimeError(f"range: step must be nonzero and lead from start to end, got start {a}, end {b}, step {h}")
    d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
    return finish(
        (a + h * np.arange(math.floor((b - a) / h) + 1, dtype=np.float64)).astype(d.np), None, requires_grad, device
    )


def _line(name: str, start: Any, end: Any, steps: int, d: dt.DType) -> Any:
    """The points from `start` to `end` in double precision: an array, or a tensor if an end is a tensor of some level."""
    if not isinstance(steps, int):
        raise TypeError(f"{name}: steps must be an int, got {type(steps).__name__}")
    if steps < 0:
        raise RuntimeError(f"{name}: number of steps must be non-negative, got {steps}")
    for what, v in (("start", start), ("end", end)):
        if isinstance(v, Tensor) and v.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {what} with {v.ndim} dimension(s)."
            )
    wide = np.dtype(np.complex128 if d.category == dt.COMPLEX else np.float64)
    if any(isinstance(v, Tensor) and v._interp is not None for v in (start, end)):
        w = np.arange(steps) / max(steps - 1, 1)
        a, b = (v.to(dt.FROM_NP[wide]) if isinstance(v, Tensor) else v for v in (start, end))
        return a * Tensor(1 - w) + b * Tensor(w)
    a, b = number(start), number(end)
    if d.category < dt.FLOAT:
        # Integer ends are made integers first, as PyTorch does.
        a, b = int(a), int(b)
    k = np.arange(steps, dtype=np.float64)
    step = (b - a) / max(steps - 1, 1)
    # From both ends towards the middle, so that both are hit exactly.
    return np.where(k < max(steps // 2, steps == 1), a + step * k, b - step * (steps - 1 - k)).astype(wide)


@public("linspace", fill=True)
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             pin_memory: Any = None) -> Tensor:  # fmt: skip
    """`steps` numbers evenly spaced from `start` to `end`; differentiable in ends that are tensors.

    >>> chainrule.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000])
    """
    d = _ends_dtype(dtype, start, end)
    y = _line("linspace", start, end, steps, d)
    return y.to(d) if isinstance(y, Tensor) else finish(y.astype(d.np), None, requires_grad, device)


def _ends_dtype(dtype: Any, *ends: Any) -> dt.DType:
    if dtype is not None:
        return dt.as_dtype(dtype)
    d = dt.get_default_dtype()
    cx = any(isinstance(v, complex) or (isinstance(v, Tensor) and v.dtype.category == dt.COMPLEX) for v in ends)
    return dt.promote_types(d, dt.complex64) if cx else d


@public("logspace", fill=True)
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """``base ** linspace(start, end, steps)``."""
    d = _ends_dtype(dtype, start, end, base)
    from ..elementwise.power import pow as pow_

    y = _line("logspace", start, end, steps, d)
    if isinstance(y, Tensor):
        return pow_(base, y).to(d)
    with np.errstate(all="ignore"):
        v = np.power(complex(base) if d.category == dt.COMPLEX else float(base), y)
        return finish(v.astype(d.np), None, requires_grad, device)
