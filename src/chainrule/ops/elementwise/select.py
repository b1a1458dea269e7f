"""Selection by a condition: where, masked_fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.registry import public
from ...core.reverse import Masked
from ...core.straight import straight
from ...core.tensor import Tensor


def _mask_like(c: Any, g: Any) -> Any:
    return c if c.shape == g.shape else c.expand(*g.shape)


def _where(c: Any, a: Any, b: Any) -> Any:
    return np.where(c, a, b)


def _quickly(xs: list[Any], kw: dict[str, Any]) -> Any:
    """The loop for large arrays on small ones: it moves the same bits."""
    arrays = [x for x in xs if isinstance(x, np.ndarray)]
    if (
        len(arrays) < 2
        or not all(x.ndim and x.size for x in arrays)
        or xs[0] is not arrays[0]
        or xs[0].dtype.kind != "b"
    ):
        return None
    d = arrays[1].dtype
    if d not in dt.REALS or d in dt.HALVES or any(x.dtype is not d for x in arrays[2:]):
        return None
    go = LOOP[0].at(*xs) if LOOP else _loop().at(*xs)
    if go is None:
        return None
    first = [k for k, x in enumerate(xs) if isinstance(x, np.ndarray)]

    def quick(*xs: Any) -> Any:
        for k in first:
            if not xs[k].flags.c_contiguous:
                return np.where(*xs)
        y = go(*xs)
        return np.where(*xs) if y is None else y

    return quick


LOOP: list[Any] = []


def _loop() -> Any:
    from ...kernels.elementwise import FORMULAS, Elementwise

    LOOP.append(Elementwise("where", FORMULAS["where"], 1))
    return LOOP[0]


_where.special = _quickly  # type: ignore[attr-defined]
where_p = pointwise(
    "where",
    _where,
    None,
    lambda t, y, c, a, b: where_p.bind(c, t, 0),
    lambda t, y, c, a, b: where_p.bind(c, 0, t),
    types="choice",
    vjp=lambda g, y, c, a, b: (
        None,
        lambda: Masked(where_p.bind(c, g, 0), _mask_like(c, g)),
        lambda: Masked(where_p.bind(c, 0, g), _mask_like(~c, g)),
    ),
)


@public("where")
@straight
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """``input`` where the condition holds, else ``other``. Cotangents of the branch not taken are absent, not 0 * inf.

    >>> x = chainrule.tensor([0.0, 1.0])
    >>> chainrule.func.grad(lambda x: chainrule.where(x > 0, x.log(), x).sum())(x)
    tensor([1., 1.])
    """
    if input is None and other is None:
        return condition.nonzero(as_tuple=True)
    if not isinstance(condition, Tensor) or condition.dtype.name not in ("bool", "uint8"):
        raise RuntimeError(
            f"where expected condition to be a boolean tensor, but got a tensor with dtype {getattr(condition, 'dtype', type(condition))}"
        )
    if condition.dtype is not dt.bool_:
        condition = condition.to(dt.bool_)
    return where_p.bind(condition, input, other)


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """``self`` where the condition holds, else ``other``."""
    return where(condition, self, other)


public("", methods="where")(_where_method)


def _converted(value: Any, d: dt.DType) -> Any:
    """A number as one of a type of a lower category: cut off towards 0; an error where it is out of range."""
    if isinstance(value, complex) and value.imag != 0:
        raise RuntimeError(f"masked_fill: value cannot be converted to type {d} without overflow: {value} is complex")
    value = value.real
    if d.category == dt.BOOL:
        return bool(value)
    if d.category == dt.INT:
        low, high = np.iinfo(d.np).min, np.iinfo(d.np).max
        if not low <= value <= high:  # a NaN neither
            raise RuntimeError(f"masked_fill: value cannot be converted to type {d} without overflow: {value}")
        return int(value)
    return float(value)


@public("masked_fill", methods="masked_fill", inplace="masked_fill_", out=False)
@straight
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`input` with `value` (a number or a 0-d tensor) where the mask holds."""
    if mask.dtype is not dt.bool_:
        raise RuntimeError(f"masked_fill only supports boolean masks, but got mask with dtype {mask.dtype}")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"masked_fill only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.category == dt.COMPLEX and input.dtype.category != dt.COMPLEX:
            raise RuntimeError(
                f"masked_fill: value of {value.dtype} cannot be converted to type {input.dtype} without overflow"
            )
        value = value.to(input.dtype)
    elif dt.scalar_dtype(value).category > input.dtype.category:
        value = _converted(value, input.dtype)
    return where_p.bind(mask, value, input)
