"""Parameter and Buffer: tensors that a Module registers when they are assigned to it.

A Parameter is a class of its own; what is computed from it is a plain tensor. A tensor of somebody else's subclass keeps its class
when it becomes a parameter and is marked as one: ``isinstance(x, Parameter)`` sees the mark. Buffers are marked tensors, as in PyTorch.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import Interpreter
from ..core.overriding import disabled
from ..core.printing import tensor_repr
from ..core.tensor import Tensor
from ..core.views import root_of


class _Marked(type(Tensor)):  # type: ignore[misc]
    """isinstance() by class, or by a mark on the tensor."""

    mark = ""

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) or (
            "mark" in cls.__dict__ and isinstance(x, Tensor) and cls.mark in x.__dict__
        )


def _fresh(cls: type, data: Any) -> Any:
    """A tensor of class `cls` with the value of `data`, sharing its memory."""
    if data is None:
        d = Tensor(np.zeros(0, dt.get_default_dtype().np))
    elif isinstance(data, Tensor):
        d = data.detach()
    else:
        d = Tensor(data if isinstance(data, np.ndarray) else np.asarray(data, dt.get_default_dtype().np))
    x: Any = object.__new__(cls)
    Tensor.__init__(x, d._value, d._interp, d._aux)
    return x


class Parameter(Tensor, metaclass=_Marked):
    """A tensor that is a weight: ``Parameter(data, requires_grad=True)``."""

    mark = "_is_param"
    __torch_function__ = disabled  # what is computed from a parameter is a plain tensor

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """A leaf that shares the memory of `data`."""
        foreign = isinstance(data, Tensor) and type(data) is not Tensor and not issubclass(type(data), Parameter)
        x = _fresh(type(data) if foreign else cls, data)
        if foreign:
            x.__dict__["_is_param"] = True
        if requires_grad and x.dtype.category < dt.FLOAT:
            raise RuntimeError(
                f"Parameter: only floating and complex tensors can require gradients, not {x.dtype}; pass requires_grad=False"
            )
        x.requires_grad_(requires_grad)
        if isinstance(data, Tensor) and x._interp is not None:
            # Who writes to the memory of the parameter can see whether what it was made from is saved somewhere.
            x._value.origin = root_of(data)
        return x

    def __init__(self, *args: Any, **kw: Any) -> None:
        pass  # __new__ has done it; subclasses may have arguments of their own

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        text = tensor_repr(self)
        return text if text.startswith("Parameter") else f"Parameter containing:\n{text}"

    def _like(self, data: Tensor, memo: dict[int, Any] | None) -> Any:
        """A parameter of the same class with the attributes of this one, without its gradient."""
        new = Parameter.__new__(type(self), data, self.requires_grad)
        if memo is not None:
            memo[id(self)] = new
        new.__dict__.update(self.__dict__ if memo is None else copy.deepcopy(self.__dict__, memo))
        return new

    def __copy__(self) -> Any:
        return self._like(self.detach(), None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        done = memo.get(id(self))
        return self._like(self.detach().clone(), memo) if done is None else done

    def __reduce_ex__(self, protocol: Any) -> Any:
        data = self.detach()
        plain = Tensor(data._value, data._interp, data._aux)  # without the family of views
        state = self.__dict__ or None
        if type(self) is Parameter:
            return Parameter, (plain, self.requires_grad), state
        return _rebuild, (type(self), plain, self.requires_grad), state


def _rebuild(cls: type, data: Tensor, requires_grad: bool) -> Any:
    """A parameter of a subclass, whatever arguments its constructor takes."""
    return Parameter.__new__(cls, data, requires_grad)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that is state but no weight: ``Buffer(data, persistent=True)``."""

    mark = "_is_buffer"
    __torch_function__ = disabled
    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """A tensor that shares the memory of `data`, marked as a buffer."""
        x = _fresh(type(data) if isinstance(data, Tensor) and type(data) is not Parameter else Tensor, data)
        x.__dict__["_is_buffer"] = True
        x.__dict__["persistent"] = persistent
        return x


# -- tensors whose shape is not known yet -----------------------------------------------------------------------------

_ADVICE = (
    "This error happens when you are using a `LazyModule` or explicitly manipulating `UninitializedParameter` objects. "
    "Call `forward` with a dummy batch to initialize the parameters, or materialize(shape), first."
)


class _NoShape(RuntimeError, ValueError):
    """PyTorch raises the one where the shape is asked for and the other in an op; here an op asks for the shape."""


class _Unknown(Interpreter):
    """Stands above all levels and refuses every op: its tensors have a type but no shape and no values."""

    kind = "uninitialized"
    level = float("inf")

    def run(self, op: Any, args: Any, kw: Any) -> Any:
        raise ValueError(f"Attempted to use an uninitialized parameter in {op.name}. {_ADVICE}")

    def shape_of(self, x: Tensor) -> Any:
        raise _NoShape(
            f"Attempted to use an uninitialized parameter: can't access the shape of an uninitialized parameter or buffer. {_ADVICE}"
        )

    strides_of = shape_of

    def __deepcopy__(self, memo: Any) -> _Unknown:
        return self


_UNKNOWN = _Unknown()


class UninitializedTensorMixin:
    """A parameter or buffer whose shape the first input of its module will tell; see `materialize`."""

    cls_to_become: type = Tensor

    def _start(self, requires_grad: bool, dtype: Any, device: Any = None) -> None:
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        inner = Tensor(np.zeros(0, d.np))
        Tensor.__init__(self, inner.requires_grad_(requires_grad), _UNKNOWN)  # type: ignore[arg-type]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape, of values left to chance."""
        x: Any = self
        d = x.dtype if dtype is None else dt.as_dtype(dtype)
        on = x.requires_grad
        x._value, x._interp, x._aux = np.zeros((shape,) if isinstance(shape, int) else tuple(shape), d.np), None, None
        x.__class__ = self.cls_to_become
        x.requires_grad_(on)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients will be recorded."""
        return bool(self._value.requires_grad)  # type: ignore[attr-defined]

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self.requires_grad_(on)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Record gradients from here on (or stop to)."""
        self._value.requires_grad_(requires_grad)  # type: ignore[attr-defined]
        return self

    def _convert(self, fn: Any) -> None:
        """Take the type that `fn` gives."""
        x: Any = self
        x._start(x.requires_grad, fn(x._value.detach()).dtype)

    def share_memory_(self) -> Any:
        """Refused: there is no memory yet."""
        raise RuntimeError(f"Can't share memory on an uninitialized parameter or buffer. {_ADVICE}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __copy__(self) -> Any:
        make, args, state = self.__reduce_ex__(2)
        new = make(*args)
        new.__dict__.update(state)
        return new

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = self.__copy__()
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        x: Any = self
        return _uninitialized, (type(self), x.requires_grad, x.dtype), dict(self.__dict__)


def _uninitialized(cls: Any, requires_grad: bool, dtype: Any) -> Any:
    return cls(requires_grad=requires_grad, dtype=dtype)


def is_lazy(x: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(x, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not known yet."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """A parameter of this type, of no shape."""
        x: Any = object.__new__(cls)
        x._start(requires_grad, dtype, device)
        return x


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not known yet."""

    __torch_function__ = disabled

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        """A buffer of this type, of no shape."""
        x: Any = object.__new__(cls)
        x._start(requires_grad, dtype, device)
        x.__dict__.update(_is_buffer=True, persistent=persistent)
        return x

    def __init__(self, *args: Any, **kw: Any) -> None:
        pass  # __new__ has done it


__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "is_lazy",
]


def __dir__() -> list[str]:
    return __all__
