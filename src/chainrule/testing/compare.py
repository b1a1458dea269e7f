"""Comparing tensors, and counting how many ops run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ..core import dtypes as dt
from ..core.device import strided
from ..core.straight import PAUSED
from ..core.tensor import Tensor
from ..core.tree import flatten

_TOLERANCE = {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
              "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7)}  # fmt: skip


class _How(NamedTuple):
    """What is compared, and how closely."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    dtype: bool
    layout: bool
    stride: bool


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    allow_subclasses: bool = True,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol |expected|`` in all tensors of two structures, and shapes and types agree.

    Both tolerances are given, or neither: then the coarser type has its own. Integers and bools are compared exactly. Sequences are compared
    element by element, mappings by key. `msg` replaces the message, or makes one of it.

    >>> chainrule.testing.assert_close([chainrule.tensor(1.0)], (chainrule.tensor(1.0 + 1e-7),))
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"assert_close: rtol and atol must both be given or both be left out, but rtol is {rtol} and atol is {atol}"
        )
    how = _How(rtol, atol, equal_nan, check_dtype, check_layout, check_stride)
    for where, a, b in _pairs(actual, expected, "", msg):
        if not allow_subclasses and type(a) is not type(b):
            _fail(f"the types do not match: {type(a).__name__} and {type(b).__name__}", where, msg)
        text = _difference(a, b, how)
        if text is not None:
            _fail(text, where, msg)


def _fail(text: str, where: str, msg: Any) -> None:
    text = f"{text} (at {where})" if where else text
    raise AssertionError(msg(text) if callable(msg) else msg or text)


def _pairs(a: Any, b: Any, where: str, msg: Any) -> Iterator[tuple[str, Any, Any]]:
    """The leaves of two structures beside each other, and where they are."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() != b.keys():
            _fail(f"the keys do not match: {sorted(map(str, a))} and {sorted(map(str, b))}", where, msg)
        for k in a:
            yield from _pairs(a[k], b[k], f"{where}[{k!r}]", msg)
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and any(map(_is_no_number, (*a, *b))):
        if len(a) != len(b):
            _fail(f"the lengths of the sequences do not match: {len(a)} and {len(b)}", where, msg)
        for k, (x, y) in enumerate(zip(a, b, strict=True)):
            yield from _pairs(x, y, f"{where}[{k}]", msg)
    else:
        xs, spec = flatten(a)
        ys, other = flatten(b)
        if spec != other and not (_is_leaf(a) and _is_leaf(b)):
            _fail(f"structures differ: {spec} and {other}", where, msg)
        if _is_leaf(a) or len(xs) != len(ys):
            yield where, a, b
        else:
            yield from ((f"{where}, leaf {k}".lstrip(", "), x, y) for k, (x, y) in enumerate(zip(xs, ys, strict=True)))


def _is_no_number(x: Any) -> bool:
    return not isinstance(x, int | float | complex)


def _is_leaf(x: Any) -> bool:
    return isinstance(x, Tensor | np.ndarray | np.generic | int | float | complex)


def _difference(x: Any, y: Any, how: _How) -> str | None:
    """What is different, in words; None where nothing is."""
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        if x.is_nested or y.is_nested:
            if x.is_nested != y.is_nested or tuple(x.shape) != tuple(y.shape):
                return f"the structures do not match: {x.shape} and {y.shape}"
            x, y = x.values(), y.values()
        if how.layout and x.layout is not y.layout:
            return f"the layouts do not match: {x.layout} and {y.layout}"
        if how.dtype and x.dtype is not y.dtype:
            return f"the dtypes do not match: {x.dtype} and {y.dtype}"
    a, b = (_array(v) if isinstance(v, Tensor) else np.asarray(v) for v in (x, y))
    if a.shape != b.shape:
        return f"the shapes do not match: {a.shape} and {b.shape}"
    if how.stride and isinstance(x, Tensor) and isinstance(y, Tensor) and x.stride() != y.stride():
        return f"the strides do not match: {x.stride()} and {y.stride()}"
    if a.dtype.kind not in "biufcV" or b.dtype.kind not in "biufcV":
        return None if np.array_equal(a, b) else f"{x!r} and {y!r} are not equal"
    both = [
        _TOLERANCE.get(dt.FROM_NP[v.dtype].name if v.dtype in dt.FROM_NP else "float64", (0.0, 0.0)) for v in (a, b)
    ]
    rtol = max(t[0] for t in both) if how.rtol is None else how.rtol
    atol = max(t[1] for t in both) if how.atol is None else how.atol
    if a.dtype.kind in "biu" and b.dtype.kind in "biu" and not rtol and not atol:
        same = a == b
    else:
        wide = np.complex128 if a.dtype.kind == "c" or b.dtype.kind == "c" else np.float64
        a, b = a.astype(wide), b.astype(wide)
        same = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=how.equal_nan)
    if np.all(same):
        return None
    with np.errstate(all="ignore"):
        far = np.where(same, 0, np.abs(np.subtract(a, b, dtype=np.result_type(a.dtype, b.dtype, np.float64))))
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(far), np.inf, far))), far.shape)
    count = int(np.size(same) - np.count_nonzero(same))
    at = f" at index {tuple(map(int, worst))}" if far.ndim else ""
    return (
        f"tensors are not close: {count} of {np.size(same)} elements differ, the greatest difference is {float(far[worst]):.3e}{at} "
        f"(rtol {rtol}, atol {atol})"
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
