"""More products: outer and inner, tensordot, and the fused ``beta * input + alpha * product`` family."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core import dtypes as dt
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes, wrap_dim
from ...core.straight import straight
from ...core.tensor import Tensor
from .common import widened
from .matmul import _check_dtypes, _fits, _need, addmm, bmm, matmul, mv, plus, rounded_once


def _alike(name: str, input: Any, product: Tensor, beta: Any, alpha: Any) -> None:
    _fits(name, input, product)
    if product.dtype.category <= dt.INT and (isinstance(alpha, float) or isinstance(beta, float)):
        raise RuntimeError(
            f"{name}: For integral input tensors, argument {'beta' if isinstance(beta, float) else 'alpha'} must not be a floating point number."
        )


@public("outer ger", methods="outer ger")
@straight
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """``y[i, j] = input[i] * vec2[j]``."""
    _need("outer", input, 1, "input (self)")
    _need("outer", vec2, 1, "vec2")
    return input.unsqueeze(-1) * vec2


@public("addr", methods="addr", inplace="addr_")
@rounded_once
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * outer(vec1, vec2)``."""
    _need("addr", vec1, 1, "vec1")
    _need("addr", vec2, 1, "vec2")
    p = outer(vec1, vec2)
    if input.ndim > 2 or broadcast_shapes(tuple(input.shape), tuple(p.shape)) != tuple(p.shape):
        raise RuntimeError(
            f"addr: input {list(input.shape)} does not broadcast to the outer product's shape {list(p.shape)}"
        )
    d = dt.promote_types(input.dtype, p.dtype)
    for what, v in (("beta", beta), ("alpha", alpha)):
        if isinstance(v, bool) and d is not dt.bool_:
            raise RuntimeError(f"addr: Boolean {what} only supported for Boolean results.")
        if isinstance(v, float) and d.category <= dt.INT:
            raise RuntimeError(
                f"addr: For integral input tensors, argument {what} must not be a floating point number."
            )
    return plus(input, p, beta, alpha)


@public("addmv", methods="addmv", inplace="addmv_")
@rounded_once
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat @ vec)``."""
    _need("addmv", mat, 2, "mat")
    _need("addmv", vec, 1, "vec")
    p = mv(mat, vec)
    _alike("addmv", input, p, beta, alpha)
    return plus(input, p, beta, alpha)


@public("baddbmm", methods="baddbmm", inplace="baddbmm_")
@rounded_once
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (batch1 @ batch2)``, batch by batch."""
    _need("baddbmm", batch1, 3, "batch1")
    _need("baddbmm", batch2, 3, "batch2")
    p = bmm(batch1, batch2)
    _alike("baddbmm", input, p, beta, alpha)
    return plus(input, p, beta, alpha)


@public("addbmm", methods="addbmm", inplace="addbmm_")
@rounded_once
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * sum_b batch1[b] @ batch2[b]``, as few products of longer matrices."""
    _need("addbmm", batch1, 3, "batch1")
    _need("addbmm", batch2, 3, "batch2")
    if batch1.shape[0] != batch2.shape[0] or batch1.shape[2] != batch2.shape[1]:
        raise RuntimeError(
            f"addbmm: batch1 {list(batch1.shape)} and batch2 {list(batch2.shape)} must have the same number of batches and matching inner sizes"
        )
    _check_dtypes("addbmm", batch1, batch2)
    p = _sum_of_products(batch1, batch2)
    _alike("addbmm", input, p, beta, alpha)
    return plus(input, p, beta, alpha)


CHAIN = 128  # products that are added in the type of the elements


def _sum_of_products(a: Tensor, b: Tensor) -> Tensor:
    """``sum_i a[i] @ b[i]``; as many i as make a chain are one product, and those are added as every sum is."""
    k, n, m = a.shape
    q = b.shape[2]
    few = max(CHAIN // max(m, 1), 1)
    whole = k // few
    if whole < 2:
        return matmul(a.permute(1, 0, 2).reshape(n, k * m), b.reshape(k * m, q))
    c = whole * few
    left = a[:c].reshape(whole, few, n, m).permute(0, 2, 1, 3).reshape(whole, n, few * m)
    p = matmul(left, b[:c].reshape(whole, few * m, q)).sum(0)
    return p if c == k else p + _sum_of_products(a[c:], b[c:])


@public("inner", methods="inner")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """The sum of products over the last dims of both."""
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


@public("tensordot")
@straight
def tensordot(a: Tensor, b: Tensor, dims: Any = 2, *, axes: Any = None) -> Tensor:
    """The sum of products over pairs of dims: the last `dims` of a with the first of b, or the listed ones; `axes` is NumPy's name."""
    if axes is not None:
        dims = axes
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims >= 0 and at most the number of dims of a and b, but got dims={dims}"
            )
        da, db = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        da, db = ([v] if isinstance(v, int) else list(v) for v in dims)
    if len(da) != len(db):
        raise RuntimeError(f"tensordot: both dimension lists should have same length, got {da} and {db}")
    _check_dtypes("tensordot", a, b)
    da, db = [wrap_dim(d, a.ndim, "dims") + a.ndim for d in da], [wrap_dim(d, b.ndim, "dims") + b.ndim for d in db]
    for x, y in zip(da, db, strict=True):
        if a.shape[x] != b.shape[y] and 1 not in (a.shape[x], b.shape[y]):
            raise RuntimeError(
                f"tensordot: contracted dimensions need to match, but first has size {a.shape[x]} in dim {x} and second has size {b.shape[y]} in dim {y}"
            )
    for x, y in zip(da, db, strict=True):
        if a.shape[x] != b.shape[y]:
            a, b = (a, b.sum(y, True)) if a.shape[x] == 1 else (a.sum(x, True), b)
    fa, fb = [d for d in range(a.ndim) if d not in da], [d for d in range(b.ndim) if d not in db]
    k = math.prod(a.shape[d] for d in da)
    sa, sb = [a.shape[d] for d in fa], [b.shape[d] for d in fb]
    left = a.permute(*fa, *da).reshape(math.prod(sa), k)
    return matmul(left, b.permute(*db, *fb).reshape(k, math.prod(sb))).reshape(*sa, *sb)


@public("chain_matmul linalg.multi_dot")
def multi_dot(*tensors: Any) -> Tensor:
    """The product of several matrices in the cheapest order; the first and last may be vectors."""
    xs: Sequence[Tensor] = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    if len(xs) == 0:
        raise RuntimeError(
            "chain_matmul(): Expected one or more matrices (multi_dot: expected at least 2 tensors but got 0)"
        )
    if len(xs) == 1:
        return xs[0]
    for i, x in enumerate(xs):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(xs) - 1)):
            raise RuntimeError(
                f"multi_dot: tensor {i} must be {'1D or 2D' if i in (0, len(xs) - 1) else '2D'} but got {x.ndim}D"
            )
    _check_dtypes("multi_dot", *xs)
    # Where long sums nearly cancel, the rounding of the products on the way is all that is left.
    xs, narrow = widened(*xs)
    sizes = [1 if xs[0].ndim == 1 else xs[0].shape[0], *[x.shape[-1] if x.ndim == 2 else 1 for x in xs]]
    if xs[0].ndim == 1:
        sizes[1] = xs[0].shape[0]
    for i in range(len(xs) - 1):
        if xs[i].shape[-1] != xs[i + 1].shape[0]:
            raise RuntimeError(
                f"multi_dot: tensors {i} and {i + 1} with shapes {list(xs[i].shape)} and {list(xs[i + 1].shape)} cannot be multiplied"
            )
    n = len(xs)
    mats = [
        xs[0].unsqueeze(0) if xs[0].ndim == 1 else xs[0],
        *xs[1:-1],
        xs[-1].unsqueeze(1) if xs[-1].ndim == 1 else xs[-1],
    ]
    # Every order is right: of ragged sizes the greatest decide which is taken.
    dims = [getattr(n, "most", n) for n in (mats[0].shape[0], *[m.shape[1] for m in mats])]
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            options = [(cost[i][k] + cost[k + 1][j] + dims[i] * dims[k + 1] * dims[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(options)

    def product(i: int, j: int) -> Tensor:
        return mats[i] if i == j else matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    y = product(0, n - 1)
    y = y.squeeze(0) if xs[0].ndim == 1 else y
    return narrow(y.squeeze(-1) if xs[-1].ndim == 1 else y)


# -- samples ----------------------------------------------------------------------------------------------------------

sample("outer", S(3), S(2))
sample("addr", S(3, 2), S(3), S(2), beta=0.5, alpha=2.0)
sample("addmv", S(3), S(3, 2), S(2), beta=0.5)
sample("baddbmm", S(2, 2, 2), S(2, 2, 3), S(2, 3, 2), alpha=2.0)
sample("addbmm", S(2, 2), S(3, 2, 3), S(3, 3, 2), beta=2.0)
sample("inner", S(2, 3), S(4, 3))
sample("tensordot", S(2, 3, 2), S(3, 2, 2), 2)
sample("tensordot", S(2, 3, 2), S(3, 2), ([1], [0]))
sample("linalg.multi_dot", [S(2, 3), S(3, 4), S(4)])


# -- products of 8-bit floats ---------------------------------------------------------------------------------------------


@public("_int_mm")
def _int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """``self @ mat2`` of 8-bit integers as int32. The products are added in float64, which holds every such sum."""
    _need("_int_mm", self, 2, "self")
    _need("_int_mm", mat2, 2, "mat2")
    if self.dtype not in (dt.int8, dt.uint8) or mat2.dtype is not dt.int8:
        raise RuntimeError(
            f"_int_mm: expected scalar type Char but found {dt.scalar_type(mat2.dtype if self.dtype is dt.int8 else self.dtype)}"
        )
    return (self.to(dt.float64) @ mat2.to(dt.float64)).to(dt.int32)


@public("_addmm_activation")
def _addmm_activation(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1, use_gelu: bool = False
) -> Tensor:
    """``relu`` (or ``gelu``) of ``beta * self + alpha * (mat1 @ mat2)``."""
    from ..activation.smooth import gelu

    y = addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return gelu(y) if use_gelu else y.relu()


@public("_scaled_mm")
def _scaled_mm(
    self: Tensor, mat2: Tensor, scale_a: Tensor, scale_b: Tensor, bias: Tensor | None = None, scale_result: Any = None,
    out_dtype: Any = None, use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """``(scale_a * self) @ (scale_b * mat2) + bias`` of 8-bit floats, computed in float32; the scales are numbers, a column and a row."""
    _need("_scaled_mm", self, 2, "self")
    _need("_scaled_mm", mat2, 2, "mat2")
    out = self.dtype if out_dtype is None else out_dtype
    y = (self.to(dt.float32) * scale_a) @ (mat2.to(dt.float32) * scale_b)
    if bias is not None:
        y = y + bias.to(dt.float32)
    if scale_result is not None and out.np.itemsize == 1:
        y = y * scale_result
    return y.to(out)


@public("_scaled_mm_v2")
def _scaled_mm_v2(
    self: Tensor, mat2: Tensor, scale_a: Any, recipe_a: Any, swizzle_a: Any, scale_b: Any, recipe_b: Any, swizzle_b: Any,
    bias: Tensor | None = None, out_dtype: Any = None, contraction_dim: Any = (), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """:func:`_scaled_mm` with the scales in lists: one for all elements (recipe 0), or one for each row or column (recipe 1)."""
    for recipe in (*recipe_a, *recipe_b):
        if int(getattr(recipe, "value", recipe)) not in (0, 1):
            raise NotImplementedError(f"_scaled_mm_v2: scales by blocks ({recipe}) are not available; multiply by them")
    if len(scale_a) != 1 or len(scale_b) != 1:
        raise NotImplementedError("_scaled_mm_v2: expected one tensor of scales for each matrix")
    return _scaled_mm(self, mat2, scale_a[0], scale_b[0], bias, out_dtype=out_dtype)
