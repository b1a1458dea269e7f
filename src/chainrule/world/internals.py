"""Inner names of PyTorch that libraries import all the same."""

from __future__ import annotations

import collections.abc
from collections import OrderedDict
from typing import Any

from ..core.device import device
from ..core.dtypes import DType as dtype
from ..core.overriding import DisableTorchFunction, DisableTorchFunctionSubclass
from ..core.tensor import Size, Tensor
from ..ops.random.generator import Generator

inf = float("inf")
string_classes, int_classes, container_abcs = (str, bytes), int, collections.abc
TensorBase = _TensorBase = Tensor
_disabled_torch_function_impl = "_disabled"


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    return -1


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    from ..core.registry import PUBLIC

    return PUBLIC["cat"]([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    out, at = [], 0
    for t in tensors:
        out.append(flat[at : at + t.numel()].reshape(t.shape))
        at += t.numel()
    return tuple(out)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Any:
    """A tensor over a storage, as PyTorch's files spell it."""
    from .storages import over

    t = over(storage, storage_offset, size, stride)
    return t.requires_grad_() if requires_grad else t


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter, as PyTorch's files spell it."""
    from ..nn.parameter import Parameter

    return Parameter(data, requires_grad)


def _log_api_usage_once(*args: Any) -> None:
    """Nothing is counted."""


def _get_privateuse1_backend_name() -> str:
    return "privateuseone"


def _is_torch_function_enabled() -> bool:
    return True


class _Namespace:
    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"torch._C.{name}: an inner name of PyTorch that chainrule does not have", name=name)


_VariableFunctions = _Namespace()
__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Generator",
    "OrderedDict",
    "Size",
    "Tensor",
    "device",
    "dtype",
]
