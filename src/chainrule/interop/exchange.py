"""Meeting other libraries: DLPack, NumPy numbers to the left of an operator, and PyTorch's constructors named after a type."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.registry import prop, public
from ..core.tensor import Size, Tensor
from ..ops.shape.create import empty, finish, tensor

# NumPy's numbers and arrays give way to Tensor's reflected operators: np.sqrt(2.0) * x is a tensor, with its derivative.
Tensor.__array_priority__ = 1000.0

_CPU = 1  # DLPack's number of the kind of device


@public("", methods="__dlpack__", out=False)
def dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """The memory of this tensor for another library; of bfloat16 and of memory that may not be written to, too."""
    if self._recorded or self._has_tangent():
        raise BufferError(
            "__dlpack__: a tensor that requires grad, or has a tangent, would lose the derivative; export x.detach()"
        )
    from .capsule import export

    return export(self.concrete("__dlpack__()"), stream, max_version, dl_device, copy)


@public("", methods="__dlpack_device__", out=False)
def dlpack_device(self: Tensor) -> tuple[int, int]:
    """The CPU, in DLPack's numbers."""
    return _CPU, 0


@public("", methods="to_numpy", out=False)
def to_numpy(self: Tensor) -> np.ndarray:
    """The values as a NumPy array, without a derivative: what pandas and matplotlib ask for."""
    return self.numpy(force=True)


@public("", methods="__copy__", out=False)
def shallow(self: Tensor) -> Tensor:
    """``copy.copy(x)``: another tensor of the same value and derivative, as a view."""
    t: Tensor = object.__new__(type(self))
    Tensor.__init__(t, self._value, self._interp, self._aux)
    t.__dict__.update(self.__dict__)
    return t


@prop("is_cpu")
def is_cpu(self: Tensor) -> bool:
    """True: tensors are on the CPU."""
    return True


@public("to_dlpack", out=False)
def to_dlpack(tensor: Tensor) -> Any:
    """The memory of a tensor for another library, as an opaque capsule."""
    return dlpack(tensor)


@public("from_dlpack", out=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's array, which has ``__dlpack__``."""
    if not hasattr(ext_tensor, "__dlpack__") and type(ext_tensor).__name__ != "PyCapsule":
        raise TypeError(
            f"from_dlpack: ext_tensor must have __dlpack__, got {type(ext_tensor).__name__}; pass the array itself"
        )
    from .capsule import take

    return finish(take(ext_tensor, copy), None, False, device)


class _OfType(type):
    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        d = cls.dtype  # type: ignore[attr-defined]
        if len(args) == 1 and not isinstance(args[0], int):
            return tensor(args[0], dtype=d, device=device)
        return empty(*(args or (0,)), dtype=d, device=device)

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and x.dtype is cls.dtype  # type: ignore[attr-defined]


def _of_type(name: str, d: dt.DType) -> Any:
    doc = f"``{name}(data)`` or ``{name}(*sizes)``: a tensor of type {d.name}; ``isinstance(x, {name})`` tests for it."
    return public(name, out=False)(_OfType(name, (), {"dtype": d, "__doc__": doc}))


TYPES = {
    name: _of_type(name, d)
    for name, d in {
        "FloatTensor": dt.float32, "DoubleTensor": dt.float64, "HalfTensor": dt.float16, "BFloat16Tensor": dt.bfloat16,
        "ByteTensor": dt.uint8, "CharTensor": dt.int8, "ShortTensor": dt.int16, "IntTensor": dt.int32, "LongTensor": dt.int64,
        "BoolTensor": dt.bool_,
    }.items()
}  # fmt: skip


@public("set_default_tensor_type", out=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default floating type by the name of a constructor, ``"torch.DoubleTensor"``."""
    name = t.rpartition(".")[2] if isinstance(t, str) else getattr(t, "__name__", "")
    d = TYPES[name].dtype if name in TYPES else None
    if d is None or d.category != dt.FLOAT:
        raise TypeError(f"set_default_tensor_type: t must name a floating tensor type such as FloatTensor, got {t!r}")
    dt.set_default_dtype(d)


@public("", methods="new", out=False)
def new(self: Tensor, *args: Any, device: Any = None) -> Tensor:
    """A tensor of this one's type from data or from sizes; ``new_tensor`` and ``new_empty`` say which."""
    if len(args) == 1 and not isinstance(args[0], int | Size):
        return self.new_tensor(args[0], device=device)
    return self.new_empty(*(args or (0,)), device=device)
