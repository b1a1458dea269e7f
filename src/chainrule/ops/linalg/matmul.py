"""Products: matmul and its relatives, einsum over opt_einsum's paths."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import flat_array, innermost
from ...core.errors import see
from ...core.primitives import permute_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import broadcast_shapes, sizes_of
from ...core.short import kept_arrays
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ...core.types import FLOAT_NUMS, REAL_NUMS
from ...kernels.pool import MIN_BYTES, empty
from ..elementwise.operators import scaled
from ..shape.in_each import same_size
from . import vectors
from .long_sums import LONG, in_parts, is_long


def _same(a: Any, b: Any) -> tuple[Any, Any]:
    if a.dtype != b.dtype:
        d = np.result_type(a.dtype, b.dtype)
        a, b = a.astype(d, copy=False), b.astype(d, copy=False)
    return a, b


def rounded_once(f: Callable[..., Any]) -> Callable[..., Any]:
    """A composition that computes 16-bit floats, where all of its floats are of one such type, in float32 and rounds its results."""

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Any:
        xs = [x for x in (*args, *kw.values()) if isinstance(x, Tensor) and x.dtype.category >= dt.FLOAT]
        d = xs[0].dtype if xs else None
        if d is None or d.np not in dt.HALVES or any(x.dtype is not d for x in xs):
            return f(*args, **kw)

        def to(x: Any, old: dt.DType, new: dt.DType) -> Any:
            return x.to(new) if isinstance(x, Tensor) and x.dtype is old else x

        y = f(*[to(x, d, dt.float32) for x in args], **{k: to(x, d, dt.float32) for k, x in kw.items()})
        return tuple([to(v, dt.float32, d) for v in y]) if type(y) is tuple else to(y, dt.float32, d)

    return call


TALL = 1 << 12  # elements from which a matrix may be a tall one
WORK = 1 << 18  # multiplications from which a BLAS library uses its own threads
PANEL = 1 << 16  # bytes of a matrix that stays in the first cache while a tall one passes by
TURNED = 1 << 14  # elements from which a transposed matrix is copied in tiles
MANY, WIDE = 512, 1 << 19  # rows of a very tall one, beside which it may fill the second cache


def times(a: Any, b: Any, c: Any = None) -> Any:
    """``a @ b`` of two matrices of one float type, ``+ c`` with a vector c; compiled where one is tall and the other small."""
    if a.shape[1] >= LONG and is_long(a, b):
        y = in_parts(a, b)
        return y if c is None else np.add(y, c, out=y)
    if a.size >= TALL and a.size * b.shape[1] >= WORK and a.dtype.num in REAL_NUMS:
        from ...kernels import NotSupported, copies, matmul

        try:
            if b.nbytes <= (WIDE if a.shape[0] >= MANY else PANEL) and a.flags.c_contiguous:
                rows = copies.contiguous(b) if b.size >= TURNED and b.flags.f_contiguous else np.ascontiguousarray(b)
                return matmul.matmul(a, rows, c)
            most = WIDE if a.shape[1] >= 2 * MANY else PANEL
            if a.shape[0] * b.shape[1] * a.itemsize <= most and a.flags.f_contiguous and c is None:
                return matmul.matmul_transposed(a.T, b)
        except NotSupported:
            pass
    # A large result comes from the pool of buffers: fresh memory costs page faults.
    large = a.shape[0] * b.shape[1] * a.itemsize >= MIN_BYTES and a.dtype is b.dtype
    y = np.dot(a, b, out=empty((a.shape[0], b.shape[1]), a.dtype)) if large else np.dot(a, b)
    return y if c is None else np.add(y, c, out=y)


def _two(a: Any, b: Any) -> Any:
    """The product of two matrices of one float type, by the shortest way."""
    if a.ndim == 2 and b.ndim == 2 and a.dtype is b.dtype and a.dtype.num in FLOAT_NUMS:
        return a.dot(b) if a.size < LONG else times(a, b)
    return None


@op("matmul", core="(m,n),(n,k)->(m,k)", linear="each", quick=_two)
def matmul_p(a: Any, b: Any) -> Any:
    """The matrix product over the last two axes."""
    d = a.dtype
    if d is not b.dtype:
        a, b = _same(a, b)
        d = a.dtype
    if a.ndim == b.ndim == 2 and d.num in FLOAT_NUMS:
        return times(a, b)
    if d in dt.HALVES:
        return np.matmul(a.astype(np.float32), b.astype(np.float32)).astype(d)
    if a.ndim > 2 and b.ndim == 2 and a.flags.c_contiguous and d.num in FLOAT_NUMS:
        # One large product instead of many small ones.
        return times(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[-1])
    if a.shape[-1] == 1:
        # Outer products: a broadcast multiplication beats many products of thin matrices.
        return _outer(a, b)
    return in_parts(a, b) if is_long(a, b) and a.shape[:-2] == b.shape[:-2] else np.matmul(a, b)


def _multiplied(xs: list[Any], kw: dict[str, Any]) -> Any:
    a, b = xs
    if (
        a.dtype is not b.dtype
        or a.dtype.num not in FLOAT_NUMS
        or a.size >= TALL
        or b.size >= TALL
        or a.shape[-1] >= LONG
    ):
        return None
    if a.ndim == b.ndim == 2:
        return lambda a, b: a.dot(b)
    return np.matmul if a.ndim == b.ndim and a.shape[-1] > 1 else None


matmul_p.special = _multiplied


def _outer(a: Any, b: Any) -> Any:
    """``a * b`` for columns a and rows b. A large result comes from the pool of buffers, since fresh memory costs more in
    page faults than the arithmetic does, and two threads write it."""
    if (
        a.dtype is not b.dtype
        or a.ndim != b.ndim
        or a.shape[:-2] != b.shape[:-2]
        or a.size * b.shape[-1] * a.itemsize < 1 << 20
    ):
        return a * b
    from ...kernels import pool, runtime

    out = pool.empty((*a.shape[:-1], b.shape[-1]), a.dtype)
    half = len(a) // 2
    if runtime.get_num_threads() < 2 or not half or a.ndim < 3:
        return np.multiply(a, b, out=out)
    other = _second_thread().submit(np.multiply, a[half:], b[half:], out[half:])
    np.multiply(a[:half], b[:half], out=out[:half])
    other.result()
    return out


@functools.cache
def _second_thread() -> Any:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, "chainrule-outer")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_second_thread.cache_clear)  # a child has no threads but its own


def _h(x: Tensor) -> Tensor:
    """The conjugate transpose, without registering a view."""
    if x._interp is None and type(x._value) is np.ndarray:
        v = x._value.swapaxes(-1, -2)
        return Tensor(v.conj() if v.dtype.kind == "c" else v)
    y = permute_p.bind(x, dims=(-1, -2))
    return y.conj() if innermost(x).dtype.kind == "c" else y


product = matmul_p.bind


def _rows(x: Tensor) -> Tensor:
    """All leading dims as one."""
    if x._interp is None and (matrix := getattr(x._value, "matrix", None)) is not None:
        return Tensor(matrix)
    s = sizes_of(x)
    rows: Any = math.prod(s[:-1])
    width = getattr(s[-1], "most", s[-1])  # a ragged size here is that of a shared matrix in every component
    return x.reshape(rows if is_ragged(rows) else int(rows), width)


def _wide(g: Any, x: Any, other: Any) -> tuple[Any, Any]:
    """The factors of the cotangent of `x`: 16-bit floats in float32 where it is summed over leading dims, and rounded after that."""
    if innermost(g).dtype in dt.HALVES and sizes_of(x)[:-2] != sizes_of(g)[:-2]:
        return g.to(dt.float32), other.to(dt.float32)
    return g, other


def _matmul_ga(g: Any, y: Any, a: Any, b: Any) -> Any:
    g, b = _wide(g, a, b)
    return product(g, _h(b))


def _matmul_gb(g: Any, y: Any, a: Any, b: Any) -> Any:
    # Where b has no leading axes but a has, the sum over them is part of one larger product.
    na = len(sizes_of(a))
    if na > 2 and len(sizes_of(b)) == 2 and g.ndim == na:
        return product(_h(_rows(a)), _rows(g))
    g, a = _wide(g, b, a)
    return product(_h(a), g)


def _small(n: Any, g: Any) -> Any:
    """Both cotangents of a product of small matrices, in arrays."""
    xs = kept_arrays(n)
    if xs is None or g.ndim != 2 or max(g.shape) >= LONG:
        return None
    (a, b), (pa, pb) = xs, n.parents
    for x in xs:
        if x is not None and (x.dtype is not g.dtype or x.ndim != 2 or x.size >= TALL):
            return None
    return None if pa is None else g.dot(b.T), None if pb is None else a.T.dot(g)


matmul_p.vjp([_matmul_ga, _matmul_gb])
matmul_p.straight = matmul_p.pull_rules, _small


def _check_dtypes(name: str, *xs: Any) -> None:
    ds = {x.dtype for x in xs if isinstance(x, Tensor)}
    if len(ds) > 1:
        raise RuntimeError(
            f"{name}: expected the arguments to have the same dtype, but got {' and '.join(sorted(d.name for d in ds))}; "
            f"write b.to(a.dtype)" + see("Dtypes do not match")
        )


@public("matmul linalg.matmul", methods="matmul __matmul__")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """``input @ other``: vectors, matrices, and batches of matrices whose leading dims broadcast.

    >>> chainrule.ones(2, 3) @ chainrule.ones(3)
    tensor([3., 3.])
    """
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        raise TypeError(f"matmul: expected two tensors, got {type(input).__name__} and {type(other).__name__}")
    ia, ib = input._interp, other._interp
    # The arrays whose shapes are the tensors' own: of plain ones and those on one tape at once.
    va = input._value if ia is None else input._value._value if ia.kind == "reverse" else None
    vb = other._value if ib is None else other._value._value if ib.kind == "reverse" else None
    if va.__class__ is not np.ndarray or vb.__class__ is not np.ndarray:
        va, vb = flat_array(input), flat_array(other)
    if va is not None and vb is not None and va.dtype is vb.dtype:
        na, nb = va.ndim, vb.ndim
        if na == nb == 2:
            if va.shape[1] == vb.shape[0]:
                return product(input, other)
        elif nb == 1:
            if (na == 1 or na == 2) and va.shape[-1] == vb.shape[0]:
                return (vectors.matvec_p if na == 2 else vectors.dot_p).bind(input, other)
        elif na == 1 and nb == 2 and va.shape[0] == vb.shape[0]:
            return vectors.vecmat_p.bind(input, other)
    sa, sb = sizes_of(input), sizes_of(other)
    na, nb = len(sa), len(sb)
    va, vb = innermost(input), innermost(other)
    if va.dtype is vb.dtype:
        if na == nb == 2 and sa[1] == sb[0]:
            return product(input, other)
        if (na == 1 or nb == 1) and na and nb and type(va) is np.ndarray and type(vb) is np.ndarray:
            if sa[-1] == (sb[0] if nb == 1 else sb[-2]):
                return (vectors.vecmat_p if nb > 1 else vectors.matvec_p if na > 1 else vectors.dot_p).bind(
                    input, other
                )
    if na == 0 or nb == 0:
        raise RuntimeError(f"matmul: both arguments to matmul need to be at least 1D, but they are {na}D and {nb}D")
    if input.dtype is not other.dtype:
        _check_dtypes("matmul", input, other)
    if (na == 2 and nb == 2) or (na > 1 and nb > 1):
        a, b = input, other
    else:
        a = input.reshape(1, -1) if na == 1 else input
        b = other.reshape(-1, 1) if nb == 1 else other
    if not same_size(a.shape[-1], b.shape[-2]):
        raise RuntimeError(
            f"matmul: mat1 and mat2 shapes cannot be multiplied ({_times(input)} and {_times(other)}): "
            f"the last dim of input must equal the {'only' if nb == 1 else 'second to last'} dim of other"
        )
    y = matmul_p(a, b)
    if na == 1:
        y = y.squeeze(-2)
    return y.squeeze(-1) if nb == 1 else y


public("", methods="__rmatmul__")(lambda self, other: matmul(other, self))


def _times(x: Tensor) -> str:
    return "x".join(map(str, x.shape))


def _need(name: str, x: Any, n: int, arg: str) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {arg} must be a tensor, got {type(x).__name__}")
    if x.ndim != n:
        raise RuntimeError(f"{name}: {arg} must be a {n}-D tensor, got {x.ndim}-D of shape {list(x.shape)}")


@public("mm", methods="mm")
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    _need("mm", input, 2, "self")
    _need("mm", mat2, 2, "mat2")
    return matmul(input, mat2)


@public("bmm", methods="bmm")
@straight
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches of matrices."""
    _need("bmm", input, 3, "batch1")
    _need("bmm", mat2, 3, "batch2")
    if input.shape[0] != mat2.shape[0]:
        raise RuntimeError(
            f"bmm: batch1 and batch2 must have same number of batches, got {input.shape[0]} and {mat2.shape[0]}"
        )
    return matmul(input, mat2)


@public("mv", methods="mv")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """A matrix times a vector."""
    _need("mv", input, 2, "input")
    _need("mv", vec, 1, "vec")
    return matmul(input, vec)


@public("dot", methods="dot")
@straight
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """``sum(a * b)`` of two vectors."""
    _need("dot", input, 1, "self")
    _need("dot", tensor, 1, "tensor")
    if input.dtype is not tensor.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {dt.scalar_type(input.dtype)} and {dt.scalar_type(tensor.dtype)}"
        )
    if input.shape != tensor.shape:
        raise RuntimeError(
            f"dot: inconsistent tensor size: input has {input.shape[0]} elements, tensor (other) has {tensor.shape[0]}; they must be equal"
        )
    return matmul(input, tensor)


@public("vdot", methods="vdot")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """``sum(conj(a) * b)`` of two vectors."""
    _need("vdot", input, 1, "self")
    _need("vdot", other, 1, "other")
    return dot(input.conj(), other)


def plus(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """``beta * input + alpha * product``; with beta 0 the input is ignored, NaN and all."""
    p = scaled(product, alpha)
    return p if beta == 0 and not isinstance(beta, Tensor) else scaled(input, beta) + p


def _fits(name: str, input: Any, product: Tensor) -> None:
    if isinstance(input, Tensor) and input.dtype is not product.dtype:
        raise RuntimeError(
            f"{name}: Input dtypes must be the same: self and the product must have the same dtype, but got {input.dtype} and {product.dtype}"
        )
    try:
        ok = broadcast_shapes(tuple(input.shape), tuple(product.shape)) == tuple(product.shape)
    except RuntimeError:
        ok = False
    if not ok:
        raise RuntimeError(
            f"{name}: the expanded size of input {list(input.shape)} must match the product's shape {list(product.shape)}"
        )


@public("addmm", methods="addmm", inplace="addmm_")
@straight
@rounded_once
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """``beta * input + alpha * (mat1 @ mat2)``."""
    _need("addmm", mat1, 2, "mat1")
    _need("addmm", mat2, 2, "mat2")
    p = matmul(mat1, mat2)
    _fits("addmm", input, p)
    y = plus(input, p, beta, alpha)
    return y


# -- linear -----------------------------------------------------------------------------------------------------------


@op("linear", core="(m,i),(o,i),(o)->(m,o)")
def linear_p(x: Any, w: Any, b: Any) -> Any:
    """``x @ w.T + b``; the bias is added where the product lies, before 16-bit floats are rounded."""
    if x.dtype in dt.HALVES:
        return linear_p.body(*[v.astype(np.float32) for v in (x, w, b)]).astype(x.dtype)
    if (
        w.ndim == 2
        and b.ndim == 1
        and x.dtype is w.dtype is b.dtype
        and x.dtype.num in FLOAT_NUMS
        and x.flags.c_contiguous
    ):
        return times(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), w.T, b).reshape(*x.shape[:-1], len(w))
    y = matmul_p.body(x, w.swapaxes(-1, -2))
    if b.ndim > 1:
        b = b[..., None, :]
    if y.dtype is b.dtype and b.ndim <= y.ndim and np.broadcast_shapes(y.shape, b.shape) == y.shape:
        return np.add(y, b, out=y)
    return y + b


def _layer(xs: list[Any], kw: dict[str, Any]) -> Any:
    x, w, b = xs
    if not (x.dtype is w.dtype is b.dtype and x.dtype.num in FLOAT_NUMS) or (x.ndim, w.ndim, b.ndim) != (2, 2, 1):
        return None
    if max(x.size, w.size) >= TALL or x.shape[-1] >= LONG:
        return None

    def layer(x: Any, w: Any, b: Any) -> Any:
        y = x.dot(w.T)
        return np.add(y, b, y)

    return layer


linear_p.special = _layer


def per_row(b: Tensor) -> Tensor:
    """A bias with leading axes before [m, o]."""
    s = sizes_of(b)
    return b if len(s) == 1 else b.reshape(*s[:-1], 1, s[-1])


@linear_p.jvp(sparse=True)
def _(t: Any, y: Any, x: Any, w: Any, b: Any) -> Any:
    total: Any = None
    if t[0] is not None:
        total = product(t[0], permute_p.bind(w, dims=(-1, -2)))
    if t[1] is not None:
        part = product(x, permute_p.bind(t[1], dims=(-1, -2)))
        total = part if total is None else total + part
    if t[2] is not None:
        part = per_row(t[2])
        total = part if total is None else total + part
    return total


def _linear_gx(g: Any, y: Any, x: Any, w: Any, b: Any) -> Any:
    return product(g, w.conj() if innermost(w).dtype.kind == "c" else w)


def _linear_gw(g: Any, y: Any, x: Any, w: Any, b: Any) -> Any:
    n = len(sizes_of(x))
    if n > 2 and len(sizes_of(w)) == 2 and g.ndim == n:
        x, g = _rows(x), _rows(g)
    gw = product(_h(g), x)
    return gw.conj() if innermost(gw).dtype.kind == "c" else gw


def _linear_gb(g: Any, y: Any, x: Any, w: Any, b: Any) -> Any:
    # Where the bias has no leading axes, the sums over those of g are part of one.
    return g.sum(-2) if len(sizes_of(b)) > 1 else (g if g.ndim == 2 else _rows(g)).sum(0)


linear_p.vjp([_linear_gx, _linear_gw, _linear_gb])


@public("nn.functional.linear _C._nn.linear", out=False)
@straight
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``."""
    have, want = sizes_of(input), sizes_of(weight)
    if len(want) == 1:
        y = matmul(input, weight)
    elif len(want) == 2:
        if not have:
            raise RuntimeError(
                f"linear: both arguments to linear need to be at least 1D, but they are 0D and {len(want)}D"
            )
        if have[-1] != want[-1]:
            raise RuntimeError(
                f"linear: the last dim of input {list(input.shape)} must equal the last dim of weight {list(weight.shape)} "
                f"(weight is [out_features, in_features])"
            )
        d = weight.dtype
        if input.dtype is not d or (bias is not None and bias.dtype is not d):
            _check_dtypes("linear", input, weight, bias)
        if len(have) > 1 and bias is not None and sizes_of(bias) == want[:1]:
            return linear_p.bind(input, weight, bias)
        y = matmul(input, permute_p(weight, dims=(-1, -2)))
    else:
        raise RuntimeError(f"linear: weight must be 1-D or 2-D, got {list(weight.shape)}")
    if bias is None:
        return y
    if y.dtype.np in dt.HALVES and bias.dtype is y.dtype:
        f32 = dt.float32
        return linear(input.to(f32), weight.to(f32), bias.to(f32)).to(y.dtype)
    return y + bias


# -- einsum -----------------------------------------------------------------------------------------------------------


@public("einsum", out=False)
@straight
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products in Einstein's notation, contracted pair by pair in the order that opt_einsum finds.

    >>> chainrule.einsum("ij,jk->ik", chainrule.ones(2, 3), chainrule.ones(3, 4)).shape
    chainrule.Size([2, 4])
    """
    import opt_einsum

    if not isinstance(equation, str):
        equation, listed = _sublists((equation, *operands))
        operands = tuple(listed)
    ops = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    if not ops:
        raise ValueError("einsum(): must provide at least one operand")
    terms, out = _parse(equation, ops)
    xs = [_own_diagonals(x, t) for x, t in zip(ops, terms, strict=True)]
    if len(xs) <= 2:
        path: Any = [tuple(range(len(xs)))]
    else:
        eq = ",".join(t for _, t in xs) + "->" + out
        sizes = [tuple([n.most if is_ragged(n) else n for n in x.shape]) for x, _ in xs]
        path = opt_einsum.contract_path(eq, *sizes, shapes=True, optimize="auto")[0]
    for group in path:
        picked = [xs[i] for i in group]
        for i in sorted(group, reverse=True):
            del xs[i]
        need = set(out).union(*[t for _, t in xs])
        x, t = picked[0]
        for y, u in picked[1:]:
            last = y is picked[-1][0]
            x, t = _contract(x, t, y, u, need if last else need.union(*[v for _, v in picked]))
        xs.append((x, t))
    x, t = xs[0]
    gone = tuple(i for i, c in enumerate(t) if c not in out)
    if gone:
        x, t = x.sum(gone), "".join(c for c in t if c in out)
    return x.permute([t.index(c) for c in out]) if t != out else x


def _sublists(args: tuple[Any, ...]) -> tuple[str, list[Any]]:
    def letters(sub: Any) -> str:
        return "".join("..." if i is Ellipsis else chr(ord("A") + i) if i < 26 else chr(ord("a") + i - 26) for i in sub)

    n = len(args) // 2
    eq = ",".join(letters(args[2 * i + 1]) for i in range(n))
    return (eq + "->" + letters(args[-1]) if len(args) % 2 else eq), [args[2 * i] for i in range(n)]


def _parse(equation: str, ops: list[Any]) -> tuple[list[str], str]:
    eq = equation.replace(" ", "")
    left, arrow, out = eq.partition("->")
    terms = left.split(",")
    if len(terms) != len(ops):
        raise RuntimeError(
            f"einsum(): the equation {equation!r} names {len(terms)} operands, but {len(ops)} were given"
        )
    for c in left.replace("...", "").replace(",", "") + out.replace("...", ""):
        if not c.isalpha():
            raise RuntimeError(
                f"einsum(): invalid character {c!r} in the equation {equation!r}; only letters, '...', ',' and '->' are allowed"
            )
    free = list(map(chr, range(0x391, 0x391 + 64)))
    ell = 0
    for t, x in zip(terms, ops, strict=True):
        named = t.replace("...", "")
        if "..." in t:
            if x.ndim < len(named):
                raise RuntimeError(f"einsum(): operand of shape {list(x.shape)} has fewer dims than {t!r} names")
            ell = max(ell, x.ndim - len(named))
        elif x.ndim != len(named):
            raise RuntimeError(
                f"einsum(): the number of subscripts in {t!r} does not match the number of dimensions of its operand, {list(x.shape)}"
            )
    letters = free[:ell]
    full = [
        t.replace("...", "".join(letters[ell - (x.ndim - len(t.replace("...", ""))) :]))
        for t, x in zip(terms, ops, strict=True)
    ]
    if arrow:
        out = out.replace("...", "".join(letters))
        every = set("".join(full))
        for c in out:
            if c not in every and c not in letters:
                raise RuntimeError(
                    f"einsum(): output subscript {c!r} does not appear in the equation for any input operand"
                )
            if out.count(c) > 1:
                raise RuntimeError(f"einsum(): output subscript {c!r} appears more than once in the output")
        out = "".join(c for c in out if c in every)
    else:
        counts = "".join(terms).replace("...", "")
        out = "".join(letters) + "".join(sorted(c for c in set(counts.replace(",", "")) if counts.count(c) == 1))
    size: dict[str, int] = {}
    for t, x in zip(full, ops, strict=True):
        for c, n in zip(t, x.shape, strict=True):
            if size.get(c, 1) not in (1, n) and n != 1:
                raise RuntimeError(
                    f"einsum(): operands do not broadcast: subscript {c!r} has sizes {size[c]} and {n}; shapes {[list(o.shape) for o in ops]}"
                )
            size[c] = size.get(c, 1) if n == 1 else n
    return full, out


def _own_diagonals(x: Tensor, t: str) -> tuple[Tensor, str]:
    """Repeated subscripts of one operand taken along the diagonal."""
    for c in dict.fromkeys(t):
        while t.count(c) > 1:
            i = t.index(c)
            j = t.index(c, i + 1)
            x = x.diagonal(0, i, j)
            t = "".join(d for k, d in enumerate(t) if k not in (i, j)) + c
    return x, t


def _contract(a: Tensor, ta: str, b: Tensor, tb: str, need: set[str]) -> tuple[Tensor, str]:
    """The product of two operands summed over what nobody needs any more, as one batched matrix product."""
    for x, t, other in ((a, ta, tb), (b, tb, ta)):
        solo = tuple(i for i, c in enumerate(t) if c not in other and c not in need)
        if solo:
            if x is a:
                a, ta = a.sum(solo), "".join(c for i, c in enumerate(t) if i not in solo)
            else:
                b, tb = b.sum(solo), "".join(c for i, c in enumerate(t) if i not in solo)
    shared = [c for c in ta if c in tb]
    summed = [c for c in shared if c not in need]
    for c in list(summed):
        # A size-1 subscript broadcasts; it cannot be contracted against a longer one.
        na, nb = a.shape[ta.index(c)], b.shape[tb.index(c)]
        if na != nb:
            if na == 1:
                b, tb = b.sum(tb.index(c), True), tb
            else:
                a, ta = a.sum(ta.index(c), True), ta
    batch = [c for c in shared if c in need]
    fa, fb = [c for c in ta if c not in tb], [c for c in tb if c not in ta]
    pa = a.permute([ta.index(c) for c in (*batch, *fa, *summed)])
    pb = b.permute([tb.index(c) for c in (*batch, *summed, *fb)])
    sa, sb = [a.shape[ta.index(c)] for c in fa], [b.shape[tb.index(c)] for c in fb]
    k = math.prod(a.shape[ta.index(c)] for c in summed)
    ba, bb = [a.shape[ta.index(c)] for c in batch], [b.shape[tb.index(c)] for c in batch]
    if not summed:
        y = pa.reshape(*ba, *sa, *(1,) * len(sb)) * pb.reshape(*bb, *(1,) * len(sa), *sb)
        return y, "".join((*batch, *fa, *fb))
    y = matmul_p(pa.reshape(*ba, math.prod(sa), k), pb.reshape(*bb, k, math.prod(sb)))
    lead = list(y.shape[:-2])
    return y.reshape(*lead, *sa, *sb), "".join((*batch, *fa, *fb))


# -- samples ------------------------------------------------------------------------------------------------------------

sample("matmul", S(2, 3), S(3, 4))
sample("matmul", S(3), S(3, 4))
sample("matmul", S(2, 3), S(3))
sample("matmul", S(3), S(3))
sample("matmul", S(2, 2, 3), S(3, 4))
sample("matmul", S(2, 1, 2, 3), S(3, 3, 2))
sample("mm", S(2, 3), S(3, 4))
sample("bmm", S(2, 2, 3), S(2, 3, 1))
sample("mv", S(2, 3), S(3))
sample("dot", S(3), S(3))
sample("vdot", S(3), S(3))
sample("addmm", S(4), S(2, 3), S(3, 4), beta=0.5, alpha=2.0)
sample("nn.functional.linear", S(2, 5, 3), S(4, 3), S(4))
sample("einsum", "ij,jk->ik", S(2, 3), S(3, 4))
sample("einsum", "bij,bkj,k->bi", S(2, 3, 2), S(2, 4, 2), S(4))
sample("einsum", "ii->i", S(3, 3))
sample("einsum", "...ij,...jk->...ik", S(2, 2, 3), S(3, 2))
