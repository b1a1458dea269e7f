"""Type conversion, copies, detach."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.device import device as device_type
from ...core.device import place
from ...core.primitives import clone_p, detach_p, overwrite_p  # noqa: F401
from ...core.registry import public
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.views import adopt, meta, register_detached, with_value

# How C converts floats that do not fit: through a wider integer, whose high bits are dropped.
_THROUGH = {np.dtype(np.int8): np.int32, np.dtype(np.int16): np.int32, np.dtype(np.int32): np.int32}


def _cast(x: Any, *, dtype: np.dtype) -> Any:
    if x.dtype == dt.complex32.np:
        x = x.astype(np.complex64)
    if x.dtype.kind == "c" and dtype.kind not in "cW":
        if dtype.kind == "b":
            return np.not_equal(x, 0)
        x = x.real
    if x.dtype.kind == "f" and dtype.kind in "iu":
        return x.astype(_THROUGH.get(dtype, np.int64)).astype(dtype)
    if dtype.itemsize == 1 and dtype in dt.FITTED:
        x = dt.FITTED[dtype](x)
    return x.astype(dtype)


# The tangent has the output's type, the cotangent goes back to the input's by `fit_cotangent`.
to_p = pointwise(
    "to",
    _cast,
    lambda t, y, x, *, dtype: to_p.bind(t, dtype=dtype),
    vjp=lambda g, y, x, *, dtype: (g,),
    types="none",
    static=True,
)


def _casts(xs: list[Any], kw: dict[str, Any]) -> Any:
    """A conversion that NumPy makes in one call as it should be."""
    old, new = xs[0].dtype, kw["dtype"]
    plain = old.kind in "biu" and (new.kind in "biu" or new in dt.REALS)
    if new in dt.FITTED or not (plain or (old in dt.REALS and (new in dt.REALS or new == np.int64))):
        return None
    return lambda x: x.astype(new)


_cast.special = _casts  # type: ignore[attr-defined]
to_int_p = pointwise("to_int", _cast, types="none", static=True)


def cast(x: Tensor, d: dt.DType) -> Tensor:
    """`x` as type `d`; itself if it has it."""
    if x.dtype is d:
        return x
    if d.category < dt.FLOAT:
        return to_int_p.bind(x, dtype=d.np)
    return to_p.bind(x, dtype=d.np)


@public("clone", methods="clone", out=False)
@functools.partial(straight, taped=False)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy of `input`, differentiable.

    >>> x = chainrule.tensor([1.0, 2.0]); y = x.clone(); y.add_(1); x
    tensor([2., 3.])
    tensor([1., 2.])
    """
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        return input.contiguous(memory_format=memory_format).clone()
    return clone_p.bind(input, order="K" if memory_format is None or memory_format.name == "preserve_format" else "C")


def own(y: Tensor) -> Tensor:
    """`y`, or a copy of it if it is a view: for functions whose result is no view even where it could be one."""
    return clone_p.bind(y, order="C") if y._meta is not None and y._meta.base is not None else y


@public("detach", methods="detach", out=False)
def detach(input: Tensor) -> Tensor:
    """The same value, sharing memory, through which no derivative flows."""
    y = detach_p.bind(input)
    if y is input._value or y is input:
        y = Tensor(y._value, y._interp, y._aux)
    return register_detached(input, y)


@public("detach_", methods="detach_", out=False)
def detach_(self: Tensor) -> Tensor:
    """Cut this tensor off from what made it; a view would keep its base's history, and is refused."""
    if self._meta is not None and self._meta.base is not None:
        raise RuntimeError("detach_: Can't detach views in-place. Use detach() instead.")
    y = detach_p.bind(self)
    if y._interp is not self._interp:
        meta(self).pinned = True  # a tape may have saved the memory
    self._value, self._interp, self._aux = y._value, y._interp, y._aux
    return self


def _data(self: Tensor) -> Tensor:
    """The value without its derivative, sharing memory (PyTorch's ``.data``)."""
    return detach(self)


def _set_data(self: Tensor, new: Tensor) -> None:
    if not isinstance(new, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {new.__class__.__name__}")
    if self._recorded and new.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"data set to a tensor that requires gradients must be floating point or complex dtype, not {new.dtype}"
        )
    inner = detach_p.bind(new)
    if self._interp is None and inner._interp is None:
        self._value = inner._value
    else:
        adopt(self, with_value(self, inner))


Tensor.data = property(_data, _set_data)  # type: ignore[method-assign, assignment]


@public("", methods="to", out=False)
def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
       memory_format: Any = None, other: Any = None) -> Tensor:  # fmt: skip
    """`self` converted to a type: ``x.to(chainrule.float64)``, ``x.to(other)``; itself where nothing changes."""
    for a in args:
        if isinstance(a, dt.DType):
            dtype = a
        elif isinstance(a, Tensor):
            dtype, device = a.dtype, a.device
        elif isinstance(a, str | device_type) or (isinstance(a, int) and not isinstance(a, bool)):
            device = a
        elif isinstance(a, bool):
            pass
        elif a is not None:
            dtype = dt.as_dtype(a)
    if other is not None:
        dtype, device = other.dtype, other.device
    if device is not None and (place(device) is not None) != self.is_meta:
        if self.is_meta:
            raise NotImplementedError(
                "to: Cannot copy out of meta tensor; no data! Use Module.to_empty() to move a module from meta to another device."
            )
        from ...payloads.meta import on_meta

        self = on_meta(self)
    d = self.dtype if dtype is None else dt.as_dtype(dtype)
    if memory_format is not None and memory_format.name != "preserve_format":
        y = cast(self, d).contiguous(memory_format=memory_format)
        return clone(y) if copy and y is self else y
    if self.dtype is d:
        return clone(self) if copy else self
    return cast(self, d)


def _converter(name: str, d: dt.DType) -> None:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return to(self, d, memory_format=memory_format)

    method.__name__, method.__doc__ = name, f"`self` converted to {d!r}."
    public("", methods=name, out=False)(method)


for _n in ("bool", "half", "float", "double", "short", "int", "long", "chalf", "cfloat", "cdouble", "bfloat16"):
    _converter(_n, dt.NAMES[_n])
_converter("byte", dt.uint8)
_converter("char", dt.int8)


@public("", methods="type_as", out=False)
def type_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` converted to the type of `other`."""
    return cast(self, other.dtype)


@public("", methods="type", out=False)
def type(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kw: Any) -> Any:
    """The type's name, as ``"torch.FloatTensor"``; or `self` converted to `dtype`, which may be such a name."""
    if dtype is None:
        return f"torch.{'sparse.' if self.is_sparse else ''}{dt.scalar_type(self.dtype)}Tensor"
    if isinstance(dtype, str):
        short = dtype.rpartition(".")[2].removesuffix("Tensor")
        names = {v: k for k, v in dt.SCALAR_TYPES.items()}
        if short not in names:
            raise ValueError(f"type: dtype {dtype!r} is no type's name; write chainrule.float32 or 'torch.FloatTensor'")
        return cast(self, dt.NAMES[names[short]])
    return cast(self, dt.as_dtype(getattr(dtype, "dtype", dtype)))  # FloatTensor and its like have one


@public("", methods="cpu", out=False)
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """`self`: the elements are always in main memory."""
    return self
