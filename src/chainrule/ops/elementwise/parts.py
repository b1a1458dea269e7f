"""Rounding, signs, and the parts of complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import pointwise
from ...core.errors import ZERO
from ...core.op import Op
from ...core.registry import prop, public
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS, REAL_NUMS
from ...core.views import register_view
from .select import where


def rounding(name: str, fn: Any, doc: str = "") -> Op:
    """A function with steps: its derivative is zero, integers are left alone, complex numbers are refused."""

    def body(x: Any) -> Any:
        if x.dtype.kind in "cb":
            raise NotImplementedError(f"{name}: not implemented for an input of type {dt.FROM_NP[x.dtype].name}")
        return x.copy() if x.dtype.kind in "iu" else fn(x)

    return pointwise(name, body, ZERO, fast=REAL_NUMS, doc=doc)


floor = public("floor", methods="floor", inplace="floor_")(
    rounding("floor", np.floor, "The largest integer not above x.")
)
ceil = public("ceil", methods="ceil", inplace="ceil_")(rounding("ceil", np.ceil, "The smallest integer not below x."))
trunc = public("trunc fix", methods="trunc fix", inplace="trunc_ fix_")(
    rounding("trunc", np.trunc, "x without its fraction.")
)


def real(input: Tensor) -> Tensor:
    """The real part."""
    return real_p.bind(input) if input.dtype.category == dt.COMPLEX else input


def imag(input: Tensor) -> Tensor:
    """The imaginary part."""
    if input.dtype.category != dt.COMPLEX:
        raise NotImplementedError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_p.bind(input)


def _to_complex(x: Tensor) -> Tensor:
    return x.to(x.dtype.to_complex())


real_p = pointwise("real", np.real, lambda t, y, z: real(t), vjp=lambda g, y, z: (_to_complex(g),), fast=FLOAT_NUMS)
imag_p = pointwise(
    "imag", np.imag, lambda t, y, z: imag(t), vjp=lambda g, y, z: (_to_complex(g) * 1j,), fast=FLOAT_NUMS
)
conj_p = pointwise("conj", np.conjugate, lambda t, y, z: conj(t), vjp=lambda g, y, z: (conj(g),))


@public("conj", methods="conj", inplace="conj_ conj_physical_", out=False)
def conj(input: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    return conj_p.bind(input) if input.dtype.category == dt.COMPLEX else input


@public("conj_physical", methods="conj_physical")
def conj_physical(input: Tensor) -> Tensor:
    """The complex conjugate; real tensors as they are."""
    return conj_p.bind(input) if input.dtype.category == dt.COMPLEX else input


@prop("real")
@public("real", out=False)
def real_view(input: Tensor) -> Tensor:
    """The real part, sharing memory; a real tensor itself."""
    y = real(input)
    if y is not input:
        register_view(real_p, input, y, {})
    return y


@prop("imag")
@public("imag", out=False)
def imag_view(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, sharing memory."""
    y = imag(input)
    register_view(imag_p, input, y, {})
    return y


def _sgn(x: Any) -> Any:
    if x.dtype.kind == "c":
        a = np.abs(x)
        return np.where(a == 0, 0, x / np.where(a == 0, 1, a)).astype(x.dtype)
    return _sign(x)


def _sign(x: Any) -> Any:
    if x.dtype.kind == "c":
        raise NotImplementedError("sign: not implemented for a complex input; use sgn for z / |z|")
    # NaN has the sign 0, as in PyTorch.
    return x.copy() if x.dtype.kind == "b" else np.subtract(x > 0, x < 0, dtype=x.dtype)


def _sgn_rule(t: Any, y: Any, z: Any) -> Any:
    if z.dtype.category != dt.COMPLEX:
        return None
    a = abs.bind(z)
    zero = a == 0
    # t - y Re(conj(y) t), without the cancellation.
    return where(zero, 0, y * 1j * (imag(conj(y) * t) / where(zero, 1, a)))


sgn = public("sgn", methods="sgn", inplace="sgn_")(
    pointwise("sgn", _sgn, _sgn_rule, vjp=lambda g, y, z: (_sgn_rule(g, y, z),), doc="``z / |z|``, and 0 at 0.")
)
sign = public("sign", methods="sign", inplace="sign_")(
    pointwise("sign", _sign, ZERO, doc="-1, 0 or 1 by the sign of x.")
)
abs = public("abs absolute", methods="abs absolute __abs__", inplace="abs_ absolute_")(
    pointwise(
        "abs",
        np.abs,
        lambda t, y, z: real(conj(sgn.bind(z)) * t),
        vjp=lambda g, y, z: (g * sgn.bind(z),),
        doc="The absolute value; its derivative at 0 is 0.",
    )
)
