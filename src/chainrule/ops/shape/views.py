"""Views: reshape, permutations, expand; each shares memory where NumPy can. In-place changes of shape."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import grad_enabled, innermost
from ...core.primitives import alias, alias_p, expand_p, permute_p, reshape_p  # noqa: F401
from ...core.registry import prop, public
from ...core.remembered_views import viewing
from ...core.shapes import broadcast_shapes, infer_size, sizes, sizes_of, wrap_dim, wrap_dims
from ...core.sizes import SEEN, is_ragged
from ...core.tensor import Tensor
from ...core.views import adopt, meta, register_view
from .in_each import same_size

# -- in-place changes of shape ---------------------------------------------------------------------------------------


def rebind_view(x: Tensor, y: Tensor, what: str) -> Tensor:
    """Make `x` itself the view `y` of it: ``x.t_()``, ``x.squeeze_()``; its other views stay as they are."""
    if x.requires_grad and x.is_leaf and grad_enabled():
        raise RuntimeError(
            f"{what}: a leaf Variable that requires grad is being used in an in-place operation; do it inside `with no_grad():`"
        )
    m, new = meta(x), meta(y)
    if new.base is x:
        others = [w for w in m.views or () if w() is not None and w() is not y]
        if not others:
            m.views = None
            adopt(x, y)
            return x
        # The family gets a root of its own: an unseen tensor with the old value, of which x becomes one more view.
        root = Tensor(x._value, x._interp, x._aux)
        r = meta(root)
        r.views, r.pinned = [*others, weakref.ref(x)], m.pinned
        for w in others:
            w()._meta.base = root  # type: ignore[union-attr]
        m.base, m.chain, m.views = root, new.chain, None
    else:
        m.chain = new.chain
    adopt(x, y)
    return x


def _reshaping(f: Any, *names: str) -> None:
    for name in names:

        def method(self: Tensor, *args: Any, _name: str = name, **kw: Any) -> Tensor:
            return rebind_view(self, f(self, *args, **kw), _name)

        method.__name__, method.__doc__ = name, f"Make `self` the view that :meth:`{name[:-1]}` gives."
        public("", methods=name, out=False)(method)


# -- reshape and view -------------------------------------------------------------------------------------------------


def named(f: str, what: str, args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, ...]:
    """Sizes that came by keyword: ``reshape(x, shape=(2, 3))``."""
    if set(kw) != {what} or args:
        raise TypeError(f"{f}() got an unexpected keyword argument {next((k for k in kw if k != what), what)!r}")
    return (kw[what],)


def _reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """reshape_p, as a view where memory allows one."""
    return _reshape_shared(x, shape)[0]


def _reshape_shared(x: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, bool]:
    """reshape_p, and whether it is a view."""
    old = sizes_of(x)
    y = reshape_p.bind(x, shape=shape, old=old)
    a = innermost(x)
    # Contiguous memory can always be viewed; else NumPy may have copied.
    shared = type(a) is not np.ndarray or a.flags.c_contiguous or not a.size or np.may_share_memory(a, innermost(y))
    if shared:
        register_view(reshape_p, x, y, {"shape": shape, "old": old})
    return y, shared


@public("reshape", methods="reshape", out=False)
@viewing
def reshape(input: Tensor, *shape: Any, **kw: Any) -> Tensor:
    """The same elements in row-major order with another shape; a view where possible.

    >>> chainrule.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    want = sizes(shape if not kw else named("reshape", "shape", shape, kw), "shape")
    have = input.shape
    if want == have:
        return _reshape(input, want)
    return _reshape(input, infer_size(want, have.numel(), have))


@public("", methods="view", out=False)
@viewing
def view(self: Tensor, *shape: Any, dtype: Any = None, size: Any = None) -> Tensor:
    """A reshape that never copies: an error where the layout in memory does not allow a view."""
    if (len(shape) == 1 and isinstance(shape[0], dt.DType)) or dtype is not None:
        return view_dtype(self, dtype if dtype is not None else shape[0])
    want = infer_size(sizes(shape if size is None else (size,), "shape"), self.numel(), self.shape)
    y, shared = _reshape_shared(self, want)
    if not shared:
        raise RuntimeError(
            f"view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            f"contiguous subspaces): {list(self.shape)} with strides {list(self.stride())} to {list(want)}. Use .reshape(...) instead."
        )
    return y


@op("view_dtype", differentiable=False)
def view_dtype_p(x: Any, *, dtype: np.dtype) -> Any:
    """The memory read as another type."""
    return x.view(dtype)


def view_dtype(x: Tensor, d: Any) -> Tensor:
    """The memory of `x` read as type `d`."""
    d = dt.as_dtype(d)
    if x.dtype is d:
        return x
    have, want = x.dtype.itemsize, d.itemsize
    if have != want and not x.is_nested:
        said = f"to view {x.dtype} as {d} (different element sizes)"
        if not x.ndim:
            raise RuntimeError(f"view(): self.dim() cannot be 0 {said}")
        if x.stride(-1) != 1 and x.shape[-1] != 1:
            raise RuntimeError(f"view(): self.stride(-1) must be 1 {said}, but got {x.stride(-1)}")
        if want > have and x.shape[-1] % (want // have):
            raise RuntimeError(
                f"view(): self.size(-1) must be divisible by {want // have} {said}, but got {x.shape[-1]}"
            )
        if want > have and x.storage_offset() % (want // have):
            raise RuntimeError(
                f"view(): self.storage_offset() must be divisible by {want // have} {said}, but got {x.storage_offset()}"
            )
        for i, s in enumerate(x.stride()[:-1] if want > have else ()):
            if s % (want // have):
                raise RuntimeError(f"view(): self.stride({i}) must be divisible by {want // have} {said}, but got {s}")
    return view_dtype_p(x, dtype=d.np)


@public("", methods="reshape_as view_as", out=False)
def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` with the shape of `other`."""
    return reshape(self, *other.shape)


@public("flatten", methods="flatten", out=False)
@viewing
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dims from `start_dim` to `end_dim` joined into one."""
    s, n = input.shape, input.ndim
    if n == 0:
        return reshape(input, 1)
    a, b = wrap_dim(start_dim, n, "start_dim") + n, wrap_dim(end_dim, n, "end_dim") + n
    if a > b:
        raise RuntimeError(f"flatten() has invalid args: start_dim ({start_dim}) cannot come after end_dim ({end_dim})")
    if a == b:
        return input
    return _reshape(input, (*s[:a], s[a : b + 1].numel(), *s[b + 1 :]))


@public("ravel", methods="ravel", out=False)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dim."""
    return reshape(input, -1) if input.ndim != 1 else input


@public("unflatten", methods="unflatten", out=False)
@viewing
def unflatten(input: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dim split into several; one of `sizes` may be -1."""
    d = wrap_dim(dim, input.ndim) + input.ndim
    if not len(sizes):
        raise RuntimeError("unflatten: sizes must be non-empty")
    s = input.shape
    try:
        new = infer_size(tuple(sizes), s[d], s)
    except RuntimeError:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {d} ({s[d]}) in the input tensor"
        ) from None
    return _reshape(input, (*s[:d], *new, *s[d + 1 :]))


@public("squeeze", methods="squeeze", out=False)
@viewing
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Dims of size 1 removed: all, or those listed."""
    s, n = input.shape, input.ndim
    ds = set(range(-n, 0)) if dim is None else set(wrap_dims(dim, n) if dim != () else ())
    return _reshape(input, tuple(k for i, k in enumerate(s) if k != 1 or i - n not in ds))


@public("unsqueeze", methods="unsqueeze", out=False)
@viewing
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A dim of size 1 inserted at `dim`."""
    n = input.ndim + 1
    d = wrap_dim(dim, n) + n
    s = input.shape
    return _reshape(input, (*s[:d], 1, *s[d:]))


# -- permutations -----------------------------------------------------------------------------------------------------


@public("permute", methods="permute", out=False)
@viewing
def permute(input: Tensor, *dims: Any, **kw: Any) -> Tensor:
    """Dims in the order `dims`."""
    ds = sizes(dims if not kw else named("permute", "dims", dims, kw), "dims")
    n = input.ndim
    if len(ds) != n:
        raise RuntimeError(
            f"permute: number of dims don't match: the tensor has {n} dims {list(input.shape)}, dims lists {len(ds)}: {ds}"
        )
    if n == 0:
        return permute_p(input, dims=())
    return permute_p(input, dims=wrap_dims(ds, n, "permute"))


@public("transpose swapdims", methods="transpose swapdims", out=False)
@viewing
def transpose(input: Tensor, dim0: Any, dim1: int | None = None) -> Tensor:
    """Two dims exchanged; with one tuple, all dims in that order, as NumPy has it."""
    n = input.ndim
    if dim1 is None:
        return permute_p(input, dims=tuple([wrap_dim(d, n, "axes") for d in dim0]))
    a, b = wrap_dim(dim0, n, "dim0"), wrap_dim(dim1, n, "dim1")
    if n == 0:
        return permute_p(input, dims=())
    dims = list(range(-n, 0))
    dims[a], dims[b] = dims[b], dims[a]
    return permute_p(input, dims=tuple(dims))


@public("swapaxes", methods="swapaxes", out=False)
@viewing
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dims exchanged."""
    return transpose(input, axis0, axis1)


@public("t", methods="t", out=False)
@viewing
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; vectors and scalars as they are."""
    if input.ndim > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D: use .mT or .transpose(...)"
        )
    return transpose(input, 0, 1) if input.ndim == 2 else permute_p(input, dims=tuple(range(-input.ndim, 0)))


@public("movedim moveaxis", methods="movedim moveaxis", out=False)
@viewing
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dims moved from `source` to `destination`, the others keeping their order."""
    n = input.ndim
    src = (source,) if isinstance(source, int) else tuple(source)
    dst = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(src) != len(dst):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(src)} dims) should contain the same number of dims "
            f"as destination ({list(dst)} dims)"
        )
    s, d = [wrap_dim(i, n, "source") for i in src], [wrap_dim(i, n, "destination") for i in dst]
    for what, dims, given in (("source", s, src), ("destination", d, dst)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(given)})")
    order: list[Any] = [None] * n
    for a, b in zip(s, d, strict=True):
        order[b] = a
    rest = iter(i for i in range(-n, 0) if i not in s)
    return permute_p(input, dims=tuple(next(rest) if o is None else o for o in order))


def mT(x: Tensor) -> Tensor:
    """The last two dims exchanged."""
    if x.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor.")
    return permute_p(x, dims=(-1, -2))


prop("mT")(viewing(mT))


@prop("mH")
def mH(x: Tensor) -> Tensor:
    """The conjugate of the last two dims exchanged."""
    return mT(x).conj()


@prop("T")
@viewing
def T(x: Tensor) -> Tensor:
    """All dims in reverse order."""
    return permute_p(x, dims=tuple(range(-1, -x.ndim - 1, -1)))


@prop("H")
def H(x: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if x.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor. Use .mH for batches."
        )
    return mT(x).conj() if x.ndim else x.conj()


@public("adjoint", methods="adjoint", out=False)
def adjoint(input: Tensor) -> Tensor:
    """The conjugate of the last two dims exchanged."""
    return mT(input).conj()


_reshaping(squeeze, "squeeze_")
_reshaping(unsqueeze, "unsqueeze_")
_reshaping(transpose, "transpose_", "swapdims_")
_reshaping(swapaxes, "swapaxes_")
_reshaping(t, "t_")


# -- expand -----------------------------------------------------------------------------------------------------------


@public("", methods="expand", out=False)
@viewing
def expand(self: Tensor, *size: Any, implicit: bool = False, **kw: Any) -> Tensor:
    """Dims of size 1 repeated without copying; -1 keeps a size."""
    want, have = sizes(size if not kw else named("expand", "size", size, kw)), self.shape
    k = len(want) - len(have)
    if k < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(want)}: {list(want)}) must be greater or equal "
            f"to the number of dimensions in the tensor ({len(have)}: {list(have)})"
        )
    full = []
    for i, n in enumerate(want):
        if n == -1:
            if i < k:
                raise RuntimeError(f"expand: size -1 isn't allowed in a leading, non-existing dimension {i}")
            full.append(have[i - k])
        else:
            if i >= k and have[i - k] not in (1, n) and not same_size(have[i - k], n):
                raise RuntimeError(
                    f"expand: The expanded size of the tensor ({n}) must match the existing size ({have[i - k]}) at "
                    f"non-singleton dimension {i}. Target sizes: {list(want)}. Tensor sizes: {list(have)}"
                )
            if n < 0:
                raise RuntimeError(f"expand: invalid size {n} at dimension {i}")
            full.append(have[i - k] if SEEN and i >= k and is_ragged(have[i - k]) else n)
    return expand_p(self, shape=tuple(full), old=tuple(have))


@public("", methods="expand_as", out=False)
def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` broadcast to the shape of `other`."""
    return expand(self, *other.shape)


@public("broadcast_to", methods="broadcast_to", out=False)
def broadcast_to(input: Tensor, size: Sequence[int]) -> Tensor:
    """`input` broadcast to `size`."""
    return expand(input, *size)


@public("broadcast_tensors", out=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors broadcast against each other."""
    xs = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else tensors
    shape = broadcast_shapes(*[x.shape for x in xs], what="broadcast_tensors")
    return tuple(expand(x, *shape) for x in xs)


@public("broadcast_shapes", out=False)
def _broadcast_shapes(*shapes: Any) -> Any:
    """The shape that all shapes broadcast to."""
    from ...core.tensor import Size

    return Size(broadcast_shapes(*[(s,) if isinstance(s, int) else tuple(s) for s in shapes]))
