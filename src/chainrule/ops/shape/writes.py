"""Writing to a tensor as a whole: other numbers, other memory, other sizes."""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.payload import COMPOSED
from ...core.primitives import overwrite_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import constant, sizes
from ...core.tensor import Tensor
from .create import as_tensor, full_like, nonnegative, scalar_array


@public("", methods="copy_", out=False)
def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Write `src`, broadcast and converted, to `self`."""
    from ...core.views import assign

    if not isinstance(src, Tensor):
        src = as_tensor(src)
    if COMPOSED and self.layout is not src.layout:
        if self.layout.name == "strided":
            src = src.to_dense() if src.layout.name.startswith("sparse") else src
        elif src.layout.name == "strided" and self.layout.name.startswith("sparse"):
            raise RuntimeError(
                "copy_: a dense tensor does not fit into the pattern of a sparse one; write self.copy_(src.sparse_mask(self)) for the elements "
                "that do, or src.to_sparse() for a new tensor"
            )
    new = src.to(self.dtype)
    if new is src and src._interp is not None and not (src.is_nested or self.is_nested):
        new = overwrite_p.bind(self, src)  # a value of its own: what happens to it does not concern the source
    return assign(self, new, "copy_")


@public("fill_", methods="fill_", out=False)
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number to all elements."""
    from ...core.views import assign

    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return assign(self, value.to(self.dtype).expand(*self.shape), "fill_", even=True)
    # Through an op, so that a tensor with a history keeps one, in which its old value counts for nothing.
    return assign(
        self,
        full_like(self, value) if self._interp is None and not COMPOSED else filled_p.bind(self, value=value),
        "fill_",
        even=True,
    )


filled_p = pointwise(
    "filled",
    lambda x, *, value: np.full(x.shape, scalar_array(value, x.dtype), x.dtype),
    ZERO,
    fast=frozenset(),
    types="none",
    static=True,
)


@public("zero_", methods="zero_", out=False)
def zero_(self: Tensor) -> Tensor:
    """Write 0 to all elements."""
    return fill_(self, 0)


@public("", methods="set_", out=False)
def set_(
    self: Tensor, source: Tensor | None = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Tensor:
    """Make `self` share the memory of `source`, with other sizes and strides if given."""
    from ...core.primitives import alias
    from ...core.views import adopt, meta
    from .strided import as_strided

    if source is None:
        source = constant(np.zeros(0), self)
    elif not isinstance(source, Tensor):
        source = source.as_tensor(self.dtype)  # a storage: its memory, as numbers of this type
    if source.dtype is not self.dtype:
        raise RuntimeError(f"set_: source has type {source.dtype}, but self has {self.dtype}")
    if size is None:
        y = alias(source)
    else:
        n = sizes((size,))
        steps = (
            sizes((stride,), "stride") if stride is not None else tuple(math.prod(n[i + 1 :]) for i in range(len(n)))
        )
        y = as_strided(source, n, steps, storage_offset)
    m, new = meta(self), meta(y)
    m.base, m.chain, m.views = new.base, new.chain, None
    if new.base is not None:
        root = meta(new.base)
        root.views = [*(root.views or ()), weakref.ref(self)]
    adopt(self, y)
    return self


@public("resize_as_", methods="resize_as_", out=False)
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give `self` the shape of a template; see :func:`resize_`."""
    if memory_format is not None and memory_format.name == "preserve_format":
        from ...core.device import channels_last, channels_last_3d

        formats = {4: channels_last, 5: channels_last_3d}
        f = formats.get(the_template.ndim)
        memory_format = (
            f
            if f is not None and not the_template.is_contiguous() and the_template.is_contiguous(memory_format=f)
            else None
        )
    return resize_(self, *the_template.shape, memory_format=memory_format)


@public("", methods="resize_", out=False)
def resize_(self: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give `self` other sizes: its memory, in order, cut off or continued with unspecified elements (here: zeros)."""
    from ...core.views import adopt, meta
    from .create import unwritten
    from .slices import cat
    from .strided import as_strided

    want = nonnegative("resize_", sizes(size))
    if self._recorded:
        raise RuntimeError("resize_: cannot resize variables that require grad")
    if want == self.shape and memory_format is None:
        return self
    n, have = math.prod(want), self.numel()
    if n <= have and not self.is_contiguous():
        steps = tuple(math.prod(want[i + 1 :]) for i in range(len(want)))
        y = as_strided(self, want, steps)
    else:
        flat = self.reshape(-1)
        y = (flat[:n] if n <= have else cat([flat, Tensor(unwritten(n - have, self.dtype.np))])).reshape(want)
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        order = (0, *range(2, len(want)), 1)  # as the memory lies
        steps = tuple(math.prod(want[e] for e in order[order.index(d) + 1 :]) for d in range(len(want)))
        y = as_strided(y.reshape(-1), want, steps)
    if n <= have:
        from .views import rebind_view

        return rebind_view(self, y, "resize_")
    m = meta(self)
    m.base, m.chain, m.views = None, (), None
    adopt(self, y)
    return self


# -- samples ------------------------------------------------------------------------------------------------------------

sample("Tensor.copy_", S(2, 3), S(3), f=lambda x, y: x * x.clone().copy_(y))
sample("Tensor.fill_", S(2, 3), f=lambda x: x * x.clone().fill_(0.5))
sample("Tensor.set_", S(2, 3), f=lambda x: x * x.clone().set_(x.sin()))
