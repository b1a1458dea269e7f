"""Complex numbers: building them, taking them apart, angles. ``real``, ``imag``, ``conj``, ``sgn`` are in pointwise.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op, pointwise
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ...core.views import write_out
from ..shape.create import ones_like
from .arithmetic import need_tensors
from .elementary import cos, sin
from .operators import mul_p
from .parts import conj, imag, imag_p, real, real_p, sgn
from .select import where

# -- building ---------------------------------------------------------------------------------------------------------


def _join(a: Any, b: Any) -> Any:
    z = np.empty(np.broadcast_shapes(a.shape, b.shape), np.complex128 if a.dtype == np.float64 else np.complex64)
    z.real, z.imag = a, b
    return z


complex_p = pointwise(
    "complex",
    _join,
    lambda t, y, a, b: t.to(t.dtype.to_complex()),
    lambda t, y, a, b: t.to(t.dtype.to_complex()) * 1j,
    vjp=lambda g, y, a, b: (lambda: real(g), lambda: imag(g)),
    fast=REAL_NUMS,
)


def _two_floats(name: str, first: str, second: str, a: Tensor, b: Tensor) -> None:
    need_tensors(name, **{first: a, second: b})
    if any(x.dtype.category != dt.FLOAT for x in (a, b)):
        raise RuntimeError(
            f"{name}: Expected both inputs to be Half, Float or Double tensors but got {dt.scalar_type(a.dtype)} and {dt.scalar_type(b.dtype)}"
            f" (for `{first}` and `{second}`)"
        )
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected object of scalar type {dt.scalar_type(a.dtype)} but got scalar type {dt.scalar_type(b.dtype)} "
            f"for second argument (`{first}` and `{second}` are of one type)"
        )


@public("complex", out=False)
def complex(real: Tensor, imag: Tensor, *, out: Any = None) -> Tensor:
    """``real + i imag`` from two real tensors of one type."""
    _two_floats("complex", "real", "imag", real, imag)
    return _written("complex", out, complex_p.bind(real, imag))


@public("polar", out=False)
def polar(abs: Tensor, angle: Tensor, *, out: Any = None) -> Tensor:
    """``abs (cos(angle) + i sin(angle))``."""
    _two_floats("polar", "abs", "angle", abs, angle)
    return _written("polar", out, complex_p.bind(mul_p.bind(abs, cos.bind(angle)), mul_p.bind(abs, sin.bind(angle))))


def _written(name: str, out: Any, z: Tensor) -> Tensor:
    if out is not None and out.dtype is not z.dtype:
        raise RuntimeError(
            f"{name}: Expected object of scalar type {dt.scalar_type(z.dtype)} but got scalar type {dt.scalar_type(out.dtype)} "
            f"for argument 'out'"
        )
    return z if out is None else write_out(out, z)


# -- taking apart -----------------------------------------------------------------------------------------------------


@op("view_as_real", view=True)
def view_as_real_p(z: Any) -> Any:
    """Real and imaginary parts along a new last axis, sharing memory."""
    if z.dtype == dt.complex32.np:
        z = z.astype(np.complex64)
        return np.stack([z.real, z.imag], -1).astype(np.float16)
    part = z.real
    return np.lib.stride_tricks.as_strided(part, (*z.shape, 2), (*z.strides, part.itemsize))


@op("view_as_complex", view=True, linear="each")
def view_as_complex_p(x: Any) -> Any:
    """Pairs along the last axis as complex numbers, sharing memory where they lie side by side."""
    if x.dtype == np.float16:
        return _join(x[..., 0].astype(np.float32), x[..., 1].astype(np.float32)).astype(dt.complex32.np)
    if x.strides[-1] != x.itemsize:
        return _join(x[..., 0], x[..., 1])
    return x.view(np.complex128 if x.dtype == np.float64 else np.complex64)[..., 0]


# Both are linear over the reals and keep inner products: the adjoint is the inverse.
view_as_real_p.jvp([lambda t, y, z: view_as_real_p.bind(t)]).vjp([lambda g, y, z: view_as_complex_p.bind(g)])
view_as_complex_p.vjp([lambda g, y, x: view_as_real_p.bind(g)])


def scatter_parts(root: Tensor, chain: tuple[Any, ...], new: Tensor) -> Tensor:
    """`root` with `new` written to the place that a chain of views selects, where some of them take complex numbers apart.

    Positions are counted in real numbers. The view of a complex tensor of positions (even in the real parts, odd in the
    imaginary ones) holds the positions to write to.
    """
    from ...core.views import replay
    from ..index.rows import put_rows

    n, pairs = root.numel(), root.dtype.category == dt.COMPLEX
    flat = view_as_real_p.bind(root).reshape(2 * n) if pairs else root.reshape(n)
    at = np.arange(2 * n if pairs else n, dtype=np.float64)
    to = replay(Tensor((at.view(np.complex128) if pairs else at).reshape(root.shape)), chain)
    if to.dtype.category == dt.COMPLEX:
        to, new = view_as_real_p.bind(to), view_as_real_p.bind(new)
    flat = put_rows(flat, to.reshape(-1).to(dt.int64), new.reshape(-1))
    return view_as_complex_p.bind(flat.reshape(*root.shape, 2)) if pairs else flat.reshape(*root.shape)


for _p in (real_p, imag_p, view_as_real_p, view_as_complex_p):
    _p.scatter = scatter_parts


def is_batched(x: Tensor) -> bool:
    """Whether a level of vmap is among those of `x`."""
    while x._interp is not None:
        if x._interp.kind == "vmap":
            return True
        x = x._value
    return False


@public("view_as_real", out=False)
def view_as_real(input: Tensor) -> Tensor:
    """A real view of a complex tensor, with the two parts along a new last dimension.

    >>> chainrule.view_as_real(chainrule.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if input.dtype.category != dt.COMPLEX:
        raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype} for input")
    return view_as_real_p(input)


@public("view_as_complex", out=False)
def view_as_complex(input: Tensor) -> Tensor:
    """A complex view of a real tensor whose last dimension holds real and imaginary part."""
    if input.dtype.category != dt.FLOAT:
        raise RuntimeError(f"view_as_complex is only supported for floating-point tensors, got {input.dtype} for input")
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(
            f"view_as_complex: Tensor must have a last dimension of size 2, got shape {list(input.shape)}"
        )
    # Under vmap the strides are those of the whole batch, and a copy is made where they do not fit.
    if input.numel() and not input.is_nested and not is_batched(input):
        if input.stride(-1) != 1:
            raise RuntimeError(
                f"view_as_complex: input must have stride 1 in its last dimension, got strides {input.stride()}; call .contiguous()"
            )
        if any(s % 2 for n, s in zip(input.shape[:-1], input.stride()[:-1], strict=True) if n > 1):
            raise RuntimeError(
                f"view_as_complex: input must have even strides before its last dimension, got {input.stride()}"
            )
    return view_as_complex_p(input)


@public("view_as_real_copy")
def view_as_real_copy(input: Tensor) -> Tensor:
    """:func:`view_as_real` as a new tensor."""
    return view_as_real(input).clone()


@public("view_as_complex_copy")
def view_as_complex_copy(input: Tensor) -> Tensor:
    """:func:`view_as_complex` as a new tensor."""
    return view_as_complex(input).clone()


def _angle(x: Any) -> Any:
    return (
        np.angle(x)
        if x.dtype.kind == "c"
        else np.where(x < 0, np.pi, np.where(x != x, x, 0)).astype(x.dtype, copy=False)
    )


def _angle_tangent(t: Any, y: Any, z: Any) -> Any:
    if z.dtype.category != dt.COMPLEX:
        return None
    a = z.abs()
    zero = a == 0
    return where(zero, 0, imag(conj(sgn.bind(z)) * t) / where(zero, 1, a))


def _angle_cotangent(g: Any, y: Any, z: Any) -> Any:
    if z.dtype.category != dt.COMPLEX:
        return None
    a = z.abs()
    zero = a == 0
    return where(zero, 0, sgn.bind(z) * 1j * (g / where(zero, 1, a)))


angle = public("angle", methods="angle")(
    pointwise(
        "angle",
        _angle,
        _angle_tangent,
        vjp=lambda g, y, z: (_angle_cotangent(g, y, z),),
        types="float",
        doc="The angle of a complex number, in (-pi, pi]; of a real one 0 or pi. Its derivative at 0 is 0.",
    )
)


@public("isreal", methods="isreal", out=False)
def isreal(input: Tensor) -> Tensor:
    """Whether the imaginary part is 0."""
    if input.dtype.category == dt.COMPLEX:
        return imag(input) == 0
    return ones_like(input, dtype=dt.bool_)


@public("is_conj is_neg", out=False)
def is_conj(input: Tensor) -> bool:
    """Whether conjugation (or negation) is pending: never, it is applied at once."""
    return False


@public("resolve_conj resolve_neg", out=False)
def resolve_conj(input: Tensor) -> Tensor:
    """`input` itself: conjugation and negation are never pending."""
    return input


# -- samples ------------------------------------------------------------------------------------------------------------

sample("complex", S(2, 3), S(3), cx=False)
sample("complex", S(), S(), cx=False)
sample("polar", S(2, 3), S(2, 1), cx=False)
sample("view_as_real", S(2, 3), f=lambda x: view_as_real(x * (2 + 1j)))
sample("view_as_complex", S(3, 2), cx=False, f=lambda x: view_as_complex(x.contiguous()))
sample("angle", S(4))
sample("angle", Given([0.5, 1.0, -2.0], grad=True), f=lambda x: angle.bind(x * (1 + 2j)))
