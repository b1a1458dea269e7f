"""Tensors on ``device("meta")``: a shape and a type, no elements.

A :class:`MetaArray` stands for an array whose elements were never made. An op runs on one number seen as the whole array, and of its result only
the shape and the type are kept; so a model is built without its memory, and shapes are found by running it. Elements cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.payload import Payload, register
from ..core.tensor import Tensor


class MetaArray:
    """The shape and the type of an array."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape, self.dtype = tuple(shape), np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements there would be."""
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Those of an array in row-major order, in bytes."""
        out, step = [], self.itemsize
        for n in reversed(self.shape):
            out.append(step)
            step *= max(n, 1)
        return tuple(reversed(out))

    base = None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (0, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3}

    def astype(self, dtype: Any, **_: Any) -> MetaArray:
        """The same shape with another type."""
        return MetaArray(self.shape, dtype)

    def copy(self, order: str = "C") -> MetaArray:
        """Another one."""
        return MetaArray(self.shape, self.dtype)

    def filled(self) -> np.ndarray:
        """One zero, seen as an array of this shape."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def __getattr__(self, name: str) -> Any:
        if name in ("reshape", "tolist", "item", "__array__"):
            raise RuntimeError(
                f"a meta tensor has a shape {list(self.shape)} and no elements: its values cannot be read ({name}). "
                "Make the tensor on the CPU, or fill a module with to_empty() and load_state_dict()"
            )
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return MetaArray, (self.shape, self.dtype)


def _kept(y: Any) -> Any:
    if isinstance(y, tuple | list):
        return type(y)(_kept(v) for v in y)
    return MetaArray(np.shape(y), y.dtype) if isinstance(y, np.ndarray | np.generic) else y


class _Meta(Payload):
    array = MetaArray
    device = "meta"
    empty = True

    def body(self, op: Any) -> Callable[..., Any]:
        """The op's own body, on one number seen as the whole array."""

        def run(*vals: Any, **kw: Any) -> Any:
            full = []
            for v in vals:
                if isinstance(v, np.ndarray) and v.ndim:
                    raise RuntimeError(
                        f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, meta and cpu"
                    )
                full.append(v.filled() if isinstance(v, MetaArray) else v)
            return _kept(op.body(*full, **kw))

        return run

    def zeros(self, like: Any, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> Any:
        return MetaArray(shape, dtype)

    def asarray(self, like: Any, x: Any, dtype: np.dtype[Any]) -> Any:
        return MetaArray(np.shape(x), dtype)

    def write(self, target: Any, value: Any) -> bool:
        return True

    def numpy(self, x: Any) -> Any:
        raise RuntimeError("numpy: Cannot copy out of meta tensor; no data!")


register(_Meta())


def on_meta(x: Tensor) -> Tensor:
    """The shape and the type of `x` alone; derivatives end here."""
    t = Tensor(MetaArray(x.shape, x.dtype.np))
    return t.requires_grad_() if x.requires_grad and x.is_leaf else t
