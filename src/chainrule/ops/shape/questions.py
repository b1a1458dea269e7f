"""What a tensor is like: its type, its memory, its place."""

from __future__ import annotations

from typing import Any

from ...core import dtypes as dt
from ...core.registry import public
from ...core.tensor import Tensor


@public("is_tensor", out=False)
def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a chainrule tensor."""
    return isinstance(obj, Tensor)


@public("numel", out=False)
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


@public("is_floating_point", out=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the type is real floating."""
    return input.dtype.is_floating_point


@public("is_complex", out=False)
def is_complex(input: Tensor) -> bool:
    """Whether the type is complex."""
    return input.dtype.is_complex


@public("is_signed", methods="is_signed", out=False)
def is_signed(input: Tensor) -> bool:
    """Whether the type has negative numbers."""
    return input.dtype not in (dt.uint8, dt.bool_)


@public("", methods="is_set_to", out=False)
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same view of the same memory."""
    same = self.shape == tensor.shape and self.stride() == tensor.stride() and self.dtype is tensor.dtype
    return same and self.data_ptr() == tensor.data_ptr()


@public("", methods="is_pinned is_shared is_inference", out=False)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: memory is ordinary memory."""
    return False


@public("", methods="pin_memory share_memory_", out=False)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """`self`: memory is ordinary memory."""
    return self


@public("", methods="dim_order", out=False)
def dim_order(self: Tensor, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dims in the order in which they lie in memory, the slowest first."""
    steps = self.stride()
    if ambiguity_check is not False:
        allowed = ambiguity_check if isinstance(ambiguity_check, list | tuple) else ()
        ways = [sorted(range(self.ndim), key=lambda d: (-steps[d], s * d)) for s in (1, -1)]
        if ways[0] != ways[1] and not any(self.is_contiguous(memory_format=f) for f in allowed):
            raise RuntimeError(
                f"The tensor does not have unique dim order, or cannot map to exact one of the given memory formats: "
                f"sizes {list(self.shape)}, strides {list(steps)}"
            )
    return tuple(sorted(range(self.ndim), key=lambda d: -steps[d]))


@public("get_device", out=False)
def get_device(input: Tensor) -> int:
    """The number of the accelerator that holds the tensor: -1, the CPU."""
    return -1


@public("result_type", out=False)
def result_type(tensor1: Any, tensor2: Any) -> dt.DType:
    """The type of an operation between the two."""
    return dt.result_of(
        (x.dtype, x.ndim) if isinstance(x, Tensor) else (dt.scalar_dtype(x), -1) for x in (tensor1, tensor2)
    )
