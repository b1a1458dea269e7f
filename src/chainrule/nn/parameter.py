"""Parameter and Buffer: tensors that a Module registers when they are assigned to it.

They are marked tensors rather than instances of a subclass: every fast path of the engine tests ``type(x) is Tensor``, and the
weights are what a model computes with most. ``isinstance(x, Parameter)`` looks at the mark.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.tensor import Tensor


class _Marked(type(Tensor)):  # type: ignore[misc]
    """isinstance() by a mark on the tensor."""

    mark = ""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor) and cls.mark in x.__dict__


def _fresh(data: Any) -> Tensor:
    """A tensor of its own with the value of `data`, sharing its memory."""
    if data is None:
        return Tensor(np.zeros(0, dt.get_default_dtype().np))
    if not isinstance(data, Tensor):
        return Tensor(data if isinstance(data, np.ndarray) else np.asarray(data, dt.get_default_dtype().np))
    d = data.detach()
    return Tensor(d._value, d._interp, d._aux)


class Parameter(Tensor, metaclass=_Marked):
    """A tensor that is a weight: ``Parameter(data, requires_grad=True)``."""

    mark = "_is_param"

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        x = _fresh(data)
        x.__dict__["_is_param"] = True
        if requires_grad and x.dtype.category < dt.FLOAT:
            raise RuntimeError(
                f"Parameter: only floating and complex tensors can require gradients, not {x.dtype}; pass requires_grad=False"
            )
        return x.requires_grad_(requires_grad)


class Buffer(Tensor, metaclass=_Marked):
    """A tensor that is state but no weight: ``Buffer(data, persistent=True)``."""

    mark = "_is_buffer"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        x = _fresh(data)
        x.__dict__["_is_buffer"] = True
        x.__dict__["persistent"] = persistent
        return x
