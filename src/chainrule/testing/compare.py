"""Comparing tensors, and counting how many ops run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.device import strided
from ..core.straight import PAUSED
from ..core.tensor import Tensor
from ..core.tree import flatten

_TOLERANCE = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}  # fmt: skip


def assert_close(actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None, equal_nan: bool = False,
                 check_dtype: bool = True, msg: str | None = None, **_: Any) -> None:  # fmt: skip
    """Raise AssertionError unless the two (trees of) tensors agree in shape, type and, to a tolerance, value."""
    xs, spec = flatten(actual)
    ys, other = flatten(expected)
    if spec != other:
        raise AssertionError(msg or f"structures differ: {spec} and {other}")
    for x, y in zip(xs, ys, strict=True):
        if isinstance(x, Tensor) and isinstance(y, Tensor) and (x.is_nested or y.is_nested):
            if x.is_nested != y.is_nested or tuple(x.shape) != tuple(y.shape):
                raise AssertionError(msg or f"the structures do not match: {x.shape} and {y.shape}")
            x, y = x.values(), y.values()
        a, b = (_array(v) if isinstance(v, Tensor) else np.asarray(v) for v in (x, y))
        if a.shape != b.shape:
            raise AssertionError(msg or f"the shapes do not match: {a.shape} and {b.shape}")
        if check_dtype and isinstance(x, Tensor) and isinstance(y, Tensor) and a.dtype != b.dtype:
            raise AssertionError(msg or f"the dtypes do not match: {x.dtype} and {y.dtype}")
        name = dt.FROM_NP[a.dtype].name if a.dtype in dt.FROM_NP else "float64"
        r, t = _TOLERANCE.get(name, (0.0, 0.0))
        r, t = r if rtol is None else rtol, t if atol is None else atol
        wide = np.complex128 if a.dtype.kind == "c" or b.dtype.kind == "c" else np.float64
        if not np.allclose(a.astype(wide), b.astype(wide), rtol=r, atol=t, equal_nan=equal_nan):
            diff = np.abs(a.astype(wide) - b.astype(wide))
            raise AssertionError(
                msg or f"tensors are not close: greatest difference {np.nanmax(diff):.3e} (rtol {r}, atol {t})"
            )


def _array(x: Tensor) -> Any:
    """The elements, those of a sparse tensor with its zeros."""
    return (x if x.layout is strided else x.to_dense()).detach().numpy()


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older name of :func:`assert_close`: types may differ, and NaN equals NaN."""
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


class Counter:
    """How many tensors ops have made."""

    def __init__(self) -> None:
        self.total = 0


@contextmanager
def count_ops() -> Iterator[Counter]:
    """Count what ops produce inside: an op that loops over examples shows as a count that grows with the batch.

    Every op wraps each of its results once at every level, so the number of tensors made is the number of op calls. Compositions run
    as they stand: as straight-line code they make fewer from the third call of a kind on.
    """
    counter = Counter()
    original = Tensor.__init__

    def counting(self: Tensor, *args: Any, **kw: Any) -> None:
        counter.total += 1
        original(self, *args, **kw)

    Tensor.__init__ = counting  # type: ignore[method-assign]
    PAUSED.append("counting")
    try:
        yield counter
    finally:
        PAUSED.remove("counting")
        Tensor.__init__ = original  # type: ignore[method-assign]
