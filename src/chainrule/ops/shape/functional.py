"""Views written functionally: ``*_copy`` (the view, copied) and ``*_scatter`` (the base with the view replaced)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import alias, clone_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import sizes, wrap_dim, zeros_like_tensor
from ...core.sizes import is_ragged
from ...core.tensor import Tensor
from ...core.views import write_out
from ..elementwise.convert import detach
from . import slices as parts
from . import views as sh
from .in_each import in_each, same_size
from .slices import diagonal_p, slice_p

# -- copies -----------------------------------------------------------------------------------------------------------


def _copied(y: Any) -> Any:
    return clone_p.bind(y, order="C") if isinstance(y, Tensor) else tuple([clone_p.bind(v, order="C") for v in y])


def _declare_copy(name: str, f: Callable[..., Any]) -> None:
    def copy(input: Tensor, *args: Any, **kw: Any) -> Any:
        return _copied(f(input, *args, **kw))

    def several(input: Tensor, *args: Any, out: Any = None, **kw: Any) -> Any:
        y = copy(input, *args, **kw)
        if out is None:
            return y
        write_out(out, y)
        return None

    copy.__name__ = several.__name__ = name
    copy.__doc__ = several.__doc__ = f"A copy of what :func:`{name.removesuffix('_copy')}` gives."
    many = name in ("split_copy", "split_with_sizes_copy", "unbind_copy")
    public(name, out=not many)(several if many else copy)


@public("slice", out=False)
def slice_(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Entries ``start, start + step, ...`` before `end` of `dim`, a view."""
    d, key = _slice_key("slice", input, dim, start, end, step)
    return parts.take_slice(input, d, key)


def _slice_key(name: str, x: Tensor, dim: int, start: Any, end: Any, step: int) -> tuple[int, slice]:
    if x.ndim == 0:
        raise RuntimeError(f"{name}() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, x.ndim)
    if step <= 0:
        raise RuntimeError(f"{name}: slice step must be positive, got {step}")
    if is_ragged(x.shape[d]):
        return d, slice(start, end, step)
    a, b, _ = slice(start, end).indices(x.shape[d])
    return d, slice(a, max(a, b), step)


def _narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    if not -input.ndim <= dim < input.ndim:
        raise RuntimeError(f"narrow_copy: expected dim to be in [{-input.ndim}, {input.ndim - 1}], got {dim}")
    return parts.narrow(input, dim, start, length)


def _expand(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    return sh.expand(input, *sizes((size,)), implicit=implicit)


def _view(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    return sh.view(input, dtype=dtype) if dtype is not None else sh.view(input, size)


def _squeeze(input: Tensor, dim: Any = None) -> Tensor:
    return sh.squeeze(input) if dim is None else sh.squeeze(input, dim)


_COPIES: dict[str, Callable[..., Any]] = {
    "alias_copy": alias,
    "detach_copy": detach,
    "diagonal_copy": parts.diagonal,
    "expand_copy": _expand,
    "narrow_copy": _narrow,
    "permute_copy": sh.permute,
    "select_copy": parts.select,
    "slice_copy": slice_,
    "split_copy": parts.split,
    "split_with_sizes_copy": parts.split_with_sizes,
    "squeeze_copy": _squeeze,
    "t_copy": sh.t,
    "transpose_copy": sh.transpose,
    "unbind_copy": parts.unbind,
    "unsqueeze_copy": sh.unsqueeze,
    "view_copy": _view,
}
for _name, _f in _COPIES.items():
    _declare_copy(_name, _f)


@public("", methods="narrow_copy", out=False)
def narrow_copy(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of ``self.narrow(dim, start, length)``."""
    return _copied(_narrow(self, dim, start, length))


@public("slice_inverse", methods="slice_inverse", out=False)
def slice_inverse(
    self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor whose slice is `self` and that equals `src` where the slice does not reach."""
    return slice_scatter(src, self, dim, start, end, step)


# -- scatters -----------------------------------------------------------------------------------------------------------


@op("set_slice", batch="expand", sizes="old key", moves=True)
def set_slice_p(x: Any, v: Any, *, key: tuple[Any, ...], old: tuple[int, ...]) -> Any:
    """`x`, its last axes of sizes `old`, with ``[key]`` replaced by `v`."""
    y = x.astype(np.result_type(x, v)) if x.dtype.kind != v.dtype.kind else x.copy()
    y[(..., *key)] = v
    return y


@set_slice_p.jvp
def _(t: Any, y: Any, x: Any, v: Any, *, key: Any, old: Any) -> Any:
    return set_slice_p(t[0], t[1], key=key, old=old)


def _zeros(x: Tensor) -> Tensor:
    return zeros_like_tensor(x)


@set_slice_p.vjp
def _(g: Any, y: Any, x: Any, v: Any, *, key: Any, old: Any) -> Any:
    return (
        lambda: set_slice_p(g, _zeros(slice_p(g, key=key, old=old)), key=key, old=old),
        lambda: slice_p(g, key=key, old=old),
    )


@op("set_diagonal", batch="expand", moves=True)
def set_diagonal_p(x: Any, v: Any, *, offset: int, dim1: int, dim2: int, old: tuple[int, ...]) -> Any:
    """`x` with a diagonal of two axes replaced by `v`, whose last axis runs along it."""
    y = x.copy()
    d = y.diagonal(offset, dim1, dim2)
    d.flags.writeable = True
    d[...] = v
    return y


@set_diagonal_p.jvp
def _(t: Any, y: Any, x: Any, v: Any, **kw: Any) -> Any:
    return set_diagonal_p(t[0], t[1], **kw)


@set_diagonal_p.vjp
def _(g: Any, y: Any, x: Any, v: Any, **kw: Any) -> Any:
    return lambda: set_diagonal_p(g, _zeros(diagonal_p(g, **kw)), **kw), lambda: diagonal_p(g, **kw)


def _fits(name: str, src: Tensor, want: tuple[int, ...], x: Tensor) -> Tensor:
    if len(src.shape) != len(want) or not all(map(same_size, src.shape, want)):
        raise RuntimeError(
            f"{name}: expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(want)}"
        )
    if x.dtype.category < dt.COMPLEX and src.dtype.category == dt.COMPLEX:
        src = src.real
    return src.to(x.dtype)


def _scatter(name: str, x: Tensor, src: Tensor, d: int, k: Any) -> Tensor:
    s = tuple(x.shape)
    at = len(s) + d
    n = () if isinstance(k, int) else (s[at].sliced(k) if is_ragged(s[at]) else len(range(*k.indices(s[at]))),)
    want = s[:at] + n + s[at + 1 :]
    key = (k, *(slice(None),) * (-d - 1))
    return set_slice_p(x, _fits(name, src, want, x), key=key, old=s[at:])


@public("select_scatter", methods="select_scatter")
@in_each("src")
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """A copy of `input` with entry `index` of `dim` replaced by `src`."""
    if input.ndim == 0:
        raise RuntimeError("select_scatter() cannot be applied to a 0-dim tensor.")
    d, i = wrap_dim(dim, input.ndim), int(index)
    n = input.shape[d]
    if not (n.covers(max(i + 1, -i)) if is_ragged(n) else -n <= i < n):
        raise IndexError(
            f"select_scatter(): index {i} out of range for tensor of size {list(input.shape)} at dimension {d + input.ndim}"
        )
    return _scatter("select_scatter", input, src, d, i)


@public("slice_scatter", methods="slice_scatter")
@in_each("src")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of `input` with the entries ``start:end:step`` of `dim` replaced by `src`."""
    d, key = _slice_key("slice_scatter", input, dim, start, end, step)
    return _scatter("slice_scatter", input, src, d, key)


@public("diagonal_scatter", methods="diagonal_scatter")
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """A copy of `input` with a diagonal of two dims replaced by `src`."""
    n = input.ndim
    a, b = wrap_dim(dim1, n, "dim1"), wrap_dim(dim2, n, "dim2")
    if a == b:
        raise RuntimeError(f"diagonal_scatter: diagonal dimensions cannot be identical {dim1}, {dim2}")
    kw = {"offset": offset, "dim1": a, "dim2": b, "old": tuple(input.shape)}
    want = tuple(np.empty(input.shape, bool).diagonal(offset, a, b).shape)
    return set_diagonal_p(input, _fits("diagonal_scatter", src, want, input), **kw)


sample("permute_copy", S(2, 3), (1, 0))
sample("unbind_copy", S(2, 3), 1)
sample("slice_copy", S(5, 2), 0, 1, None, 2)
sample("select_scatter", S(3, 4), S(3), 1, -1)
sample("slice_scatter", S(5, 2), S(2, 2), 0, 1, 4, 2)
sample("slice_scatter", S(2, 3), S(2, 0), 1, 3)
sample("diagonal_scatter", S(3, 4), S(3), 1)
sample("diagonal_scatter", S(2, 3, 2), S(3, 2), 0, 0, 2)
