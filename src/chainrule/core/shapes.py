"""Dims and sizes as PyTorch takes them, and its errors."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .dispatch import innermost
from .dtypes import FROM_NP as DTYPES
from .dtypes import DType
from .errors import see
from .payload import payload_of
from .sizes import Ragged, has_ragged
from .tensor import Tensor


def sizes_of(x: Tensor) -> tuple[int, ...]:
    """The shape of `x` as a plain tuple, for the hot paths."""
    i = x._interp
    return x._value.shape if i is None else i.shape_of(x)


def zeros(shape: tuple[Any, ...], d: DType, like: Any = None) -> Tensor:
    """Zeros of a shape, which may have ragged sizes; where another array is, if that is not NumPy's."""
    if has_ragged(shape):
        from .primitives import expand_p

        return expand_p.bind(Tensor(np.zeros((), d.np)), shape=tuple(shape), old=())
    if like is None or type(like) is np.ndarray:
        return Tensor(np.zeros(shape, d.np))
    return Tensor(payload_of(like).zeros(like, tuple(shape), d.np))


def constant(value: Any, like: Tensor, d: DType | None = None) -> Tensor:
    """A number or an array as a tensor of the type of `like` (or of `d`), where the elements of `like` are."""
    v = innermost(like)
    dtype = v.dtype if d is None else d.np
    return Tensor(np.asarray(value, dtype) if type(v) is np.ndarray else payload_of(v).asarray(v, value, dtype))


def zeros_beside(shape: tuple[Any, ...], like: Tensor) -> Tensor:
    """Zeros of a shape, of the type of `like` and where its elements are."""
    v = innermost(like)
    return zeros(shape, DTYPES[v.dtype], v)


def zeros_like_tensor(x: Tensor) -> Tensor:
    """Zeros with the shape and type of `x` where its elements are, without its history."""
    v = innermost(x)
    return zeros(tuple(sizes_of(x)), DTYPES[v.dtype], v)


@functools.cache
def _one(d: DType) -> np.ndarray:
    a = np.ones((), d.np)
    a.setflags(write=False)
    return a


def unit(d: DType) -> Tensor:
    """The 0-d tensor 1, where backward passes begin: a new box around one array that a write would copy."""
    return Tensor(_one(d))


def broadcast_array(a: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """``np.broadcast_to`` in a tenth of its time, for a shape that `a` is known to broadcast to."""
    if not a.flags.c_contiguous:
        return np.broadcast_to(a, shape)
    k = len(shape) - a.ndim
    steps = (0,) * k + tuple([s if m == n else 0 for m, n, s in zip(a.shape, shape[k:], a.strides, strict=True)])
    return np.ndarray(shape, a.dtype, a, 0, steps)


def wrap_dim(dim: Any, n: int, what: str = "dim") -> int:
    """`dim` counted from the end: in ``[-n, -1]``. A 0-d tensor counts as having one dim."""
    try:
        d = operator.index(dim)
    except TypeError:
        raise TypeError(f"{what} must be an int, got {type(dim).__name__}") from None
    m = max(n, 1)
    if not -m <= d < m:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-m}, {m - 1}], but got {d} for {what})")
    return d - m if d >= 0 else d


def wrap_dims(dims: Any, n: int, what: str = "dim") -> tuple[int, ...]:
    """Several dims counted from the end, each once; None or () stands for all."""
    if dims is None:
        return tuple(range(-n, 0))
    out = (wrap_dim(dims, n, what),) if isinstance(dims, int | Tensor) else tuple(wrap_dim(d, n, what) for d in dims)
    if len(set(out)) != len(out):
        raise RuntimeError(
            f"{what}: dim {next(d for d in out if out.count(d) > 1)} appears multiple times in the list of dims"
        )
    if n == 0:
        return ()
    return out if out else tuple(range(-n, 0))


def sizes(args: Sequence[Any], what: str = "size") -> tuple[int, ...]:
    """Sizes given as ``(2, 3)`` or ``((2, 3),)``."""
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = args[0]
    try:
        return tuple(
            [a if type(a) is int or isinstance(a, Ragged) or hasattr(a, "each") else operator.index(a) for a in args]
        )
    except TypeError:
        raise TypeError(f"{what} must be ints or a tuple of ints, got {args!r}") from None


def infer_size(shape: tuple[int, ...], numel: int, have: Any) -> tuple[int, ...]:
    """`shape` with its -1 replaced so that it has `numel` elements."""
    if type(numel) is not int and hasattr(numel, "infer_size"):
        return numel.infer_size(shape, have)
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if any(n < -1 for n in shape):
        raise RuntimeError(f"invalid shape dimension {min(shape)} in shape {list(shape)}")
    if len(unknown) > 1:
        raise RuntimeError(f"only one dimension can be inferred (-1), got shape {list(shape)}")
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if unknown:
        if known == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 can be any value"
            )
        if numel % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel} (shape {list(have)})")
        return tuple(n if n != -1 else numel // known for n in shape)
    if known != numel:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel} (shape {list(have)})")
    return shape


def broadcast_shapes(*shapes: Sequence[int], what: str = "broadcast") -> tuple[int, ...]:
    """The shape that all broadcast to."""
    n = max((len(s) for s in shapes), default=0)
    out = [1] * n
    for s in shapes:
        for k in range(1, len(s) + 1):
            if s[-k] != 1:
                if out[-k] not in (1, s[-k]):
                    raise RuntimeError(
                        f"{what}: The size of tensor a ({out[-k]}) must match the size of tensor b ({s[-k]}) at "
                        f"non-singleton dimension {n - k}; shapes {' and '.join(str(list(t)) for t in shapes)} do not broadcast"
                        + see("Sizes do not broadcast")
                    )
                out[-k] = s[-k]
            elif s[-k].__class__ is not int and out[-k] == 1:  # the nesting dim of a single component is one
                out[-k] = s[-k]
    return tuple(out)
