"""Discrete Fourier transforms: complex, of real signals, to real signals; in one, two or any number of dims.

Three linear ops over trailing axes carry the family. With ``W[k, n] = exp(-2 pi i k n / N)`` along each of `dims`:

* `c2c_p`: ``s W x`` or, backwards, ``s W* x``; each is the other's adjoint.
* `r2c_p`: ``s W x`` of a real x; one-sided, only ``k <= N / 2`` of the last dim is kept, since ``y[N - k] = conj(y[k])``.
* `c2r_p`: ``s Re sum_k m[k] z[k] W*[k]`` of such a half, where m is 1 for the entries that are their own mirror image (k = 0
  and k = N / 2) and 2 for the others.

The scale s is 1, ``1 / sqrt(N)`` or ``1 / N`` (static data `norm`: "none", "root", "all"), N the number of all points.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.primitives import clone_p
from ...core.registry import public
from ...core.samples import S, sample
from ...core.shapes import wrap_dim
from ...core.sizes import is_ragged
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.arithmetic import need_tensors
from ..elementwise.convert import cast
from ..elementwise.parts import conj, real
from ..shape.create import finish
from ..shape.pad import constant_pad_p
from ..shape.slices import roll_p

Dims = tuple[int, ...]

# -- the linear ops ---------------------------------------------------------------------------------------------------

# SciPy names a scale by the direction it belongs to.
_FORWARD = {"none": "backward", "root": "ortho", "all": "forward"}
_BACKWARD = {"none": "forward", "root": "ortho", "all": "backward"}


def _transform(name: str, x: Any, dims: Dims, norm: str, last: int | None = None) -> Any:
    """A transform of ``scipy.fft``, `last` the size of the result's last dim; 16-bit parts are computed in 32, rounded once."""
    import scipy.fft

    z = x.astype(dt.WORK[x.dtype]) if x.dtype in dt.WORK else x
    if len(dims) == 1:
        y = getattr(scipy.fft, name)(z, last, dims[0], norm)
    else:
        shape = None if last is None else (*[x.shape[d] for d in dims[:-1]], last)
        y = getattr(scipy.fft, f"{name}n")(z, shape, dims, norm)
    return y if z is x else y.astype(dt.NARROW[x.dtype][y.dtype])


@op("fft_c2c", linear="each")
def c2c_p(x: Any, *, dims: Dims, norm: str, forward: bool) -> Any:
    """The transform of a complex x along `dims`, or the transform backwards."""
    return _transform("fft", x, dims, _FORWARD[norm]) if forward else _transform("ifft", x, dims, _BACKWARD[norm])


@op("fft_r2c", sizes="n", linear="each")
def r2c_p(x: Any, *, dims: Dims, norm: str, n: int, onesided: bool) -> Any:
    """The transform of a real x along `dims`; of the last of them, n points long, one side or all of it."""
    return _transform("rfft" if onesided else "fft", x, dims, _FORWARD[norm])


@op("fft_c2r", linear="each")
def c2r_p(x: Any, *, dims: Dims, norm: str, n: int) -> Any:
    """The real signal, n points long in the last of `dims`, whose transform has x as its one side."""
    return _transform("irfft", x, dims, _BACKWARD[norm], n)


@op("fft_mirrored", linear="each")
def mirrored_p(x: Any, *, dim: int, n: int, times: float) -> Any:
    """One side of a transform of n points with `times` the entries that stand for two, not those that mirror themselves."""
    z = x.astype(dt.WORK.get(x.dtype, x.dtype))
    both: list[Any] = [slice(None)] * x.ndim
    both[dim] = slice(1, (n + 1) // 2)
    # By parts: the product of complex numbers would make NaN of an infinite part.
    for part in (z.real, z.imag):
        part[tuple(both)] *= times
    return z.astype(x.dtype, copy=False)


def _r2c_adjoint(g: Tensor, dims: Dims, norm: str, n: int, onesided: bool) -> Tensor:
    """``s Re W* g``, the entries left out of g being zero: so each counts once, where c2r would count its mirror image too."""
    if onesided:
        return c2r_p(mirrored_p(g, dim=dims[-1], n=n, times=0.5), dims=dims, norm=norm, n=n)
    return real(c2c_p(g, dims=dims, norm=norm, forward=False))


def _c2r_adjoint(g: Tensor, dims: Dims, norm: str, n: int) -> Tensor:
    """``s m W g``, one side of it."""
    return mirrored_p(r2c_p(g, dims=dims, norm=norm, n=n, onesided=True), dim=dims[-1], n=n, times=2.0)


def _directly() -> Any:
    """The transforms beneath ``scipy.fft``, which look at nothing; None where they are not where they were."""
    try:
        from scipy.fft._pocketfft import pypocketfft as direct

        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        z = direct.r2c(x, (1,), True, 0, None, 1)
        same = np.array_equal(direct.c2c(x, (0,), False, 2, None, 1)[1], np.float32(0.5) * (x[0] - x[1]))
        return direct if same and np.allclose(direct.c2r(z, (1,), 3, False, 2, None, 1), x) else None
    except Exception:  # they are not public: whatever goes wrong, there is scipy.fft
        return None


_direct: list[Any] = []
_WIDE = tuple(np.dtype(t) for t in ("float32", "float64", "complex64", "complex128"))
_FACTORS = {"none": 0, "root": 1, "all": 2}


def _quickly(name: str) -> Any:
    """The special body of a transform: one call for arrays whose sizes are those of the transform."""

    def special(xs: list[Any], kw: dict[str, Any]) -> Any:
        (x,), dims = xs, kw["dims"]
        if not _direct:
            _direct.append(_directly())
        axes_ = tuple([d % x.ndim for d in dims])
        n: int = kw.get("n", 0)
        size = n if name != "c2r" else n // 2 + 1
        if (
            _direct[0] is None
            or x.dtype not in _WIDE
            or x.size > SMALL
            or not x.size
            or len(set(axes_)) < len(axes_)
            or (name != "c2c" and x.shape[axes_[-1]] != size)
        ):
            return None
        both = name == "r2c" and not kw["onesided"]
        f = getattr(_direct[0], "c2c" if both else name)
        scale = _FACTORS[kw["norm"]]
        if name == "c2r":
            return lambda x: f(x, axes_, n, False, scale, None, 1)
        forward = kw.get("forward", True)
        return lambda x: f(x, axes_, forward, scale, None, 1)

    return special


SMALL = 1 << 12  # entries: beyond, the call costs nothing beside the transform
for _p, _name in ((c2c_p, "c2c"), (r2c_p, "r2c"), (c2r_p, "c2r")):
    _p.special = _quickly(_name)
c2c_p.vjp([lambda g, y, x, *, dims, norm, forward: c2c_p(g, dims=dims, norm=norm, forward=not forward)])
r2c_p.vjp([lambda g, y, x, *, dims, norm, n, onesided: _r2c_adjoint(g, dims, norm, n, onesided)])
c2r_p.vjp([lambda g, y, x, *, dims, norm, n: _c2r_adjoint(g, dims, norm, n)])
mirrored_p.vjp([lambda g, y, x, **kw: mirrored_p(g, **kw)])

# -- arguments --------------------------------------------------------------------------------------------------------


def _scale(name: str, norm: Any, forward: bool) -> str:
    if norm is None or norm == "backward":
        return "none" if forward else "all"
    if norm == "forward":
        return "all" if forward else "none"
    if norm == "ortho":
        return "root"
    raise RuntimeError(f"{name}: Invalid normalization mode: {norm!r}; use 'backward', 'forward' or 'ortho'")


def _ints(name: str, what: str, v: Any) -> tuple[int, ...]:
    try:
        return tuple(k if is_ragged(k) else operator.index(k) for k in (v if isinstance(v, list | tuple) else (v,)))
    except TypeError:
        raise TypeError(f"{name}: argument '{what}' must be int or a tuple of ints, got {v!r}") from None


def _dims(name: str, input: Tensor, dim: Any) -> Dims:
    ds = _ints(name, "dim", dim)
    if ds and not input.ndim:
        raise IndexError(f"{name}: Dimension specified as {ds[0]} but tensor has no dimensions")
    dims = tuple(wrap_dim(d, input.ndim) for d in ds)
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"{name}: FFT dims must be unique, got dim={dim!r} for an input of {input.ndim} dims")
    return dims


def _axes(name: str, input: Tensor, s: Any, dim: Any) -> tuple[Dims, list[int | None]]:
    """The dims to transform and the sizes asked for them, None where the input's own stays."""
    if s is None:
        dims = tuple(range(-input.ndim, 0)) if dim is None else _dims(name, input, dim)
        return dims, [None] * len(dims)
    want = _ints(name, "s", s)
    if dim is None:
        if len(want) > input.ndim:
            raise RuntimeError(
                f"{name}: Got shape s={list(want)} with {len(want)} values but input tensor only has {input.ndim} dimensions."
            )
        dims = tuple(range(-len(want), 0))
    else:
        dims = _dims(name, input, dim)
        if len(dims) != len(want):
            raise RuntimeError(
                f"{name}: When given, dim and shape arguments must have the same length, got dim={dim!r} and s={list(want)}"
            )
    return dims, [None if n == -1 else n for n in want]


def _resize(name: str, x: Tensor, dims: Dims, sizes: list[int]) -> Tensor:
    """`x` cut or filled up with zeros at the end of `dims`."""
    if any(n < 1 for n in sizes):
        raise RuntimeError(
            f"{name}: Invalid number of data points ({min(sizes)}) specified, for an input of shape {list(x.shape)}"
        )
    grow = {d: n - x.shape[d] for d, n in zip(dims, sizes, strict=True)}
    if not any(grow.values()):
        return x
    return constant_pad_p(x, pads=tuple((0, grow.get(d, 0)) for d in range(min(dims), 0)), value=0)


def floating(name: str, x: Tensor) -> Tensor:
    """`x` in a floating type that has a complex one of its precision."""
    if x.dtype is dt.bfloat16:
        raise RuntimeError(
            f"{name}: Unsupported dtype {x.dtype} (there is no complex type of its precision); use .to(chainrule.float32)"
        )
    return x if x.dtype.category >= dt.FLOAT else cast(x, dt.get_default_dtype())


# -- the three kinds of transform -------------------------------------------------------------------------------------

Plan = tuple[Dims, list[int | None]]


def _complex(name: str, x: Tensor, plan: Plan, norm: Any, forward: bool) -> Tensor:
    dims, want = plan
    scale = _scale(name, norm, forward)
    x = floating(name, x)
    x = _resize(name, x, dims, [x.shape[d] if n is None else n for d, n in zip(dims, want, strict=True)])
    if x.dtype.category == dt.COMPLEX:
        return c2c_p(x, dims=dims, norm=scale, forward=forward) if dims else clone_p.bind(x)
    if not dims:
        return cast(x, x.dtype.to_complex())
    y = r2c_p(x, dims=dims, norm=scale, n=x.shape[dims[-1]], onesided=False)
    return y if forward else conj(y)


def _need_dims(name: str, dims: Dims) -> None:
    if not dims:
        raise RuntimeError(f"{name}: {name} must transform at least one axis, got an empty dim")


def _from_real(name: str, x: Tensor, plan: Plan, norm: Any, forward: bool) -> Tensor:
    dims, want = plan
    scale = _scale(name, norm, forward)
    if x.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"{name}: {name} expects a real input tensor, but got {x.dtype}; use the complex transform")
    _need_dims(name, dims)
    x = floating(name, x)
    x = _resize(name, x, dims, [x.shape[d] if n is None else n for d, n in zip(dims, want, strict=True)])
    y = r2c_p(x, dims=dims, norm=scale, n=x.shape[dims[-1]], onesided=True)
    return y if forward else conj(y)


def _to_real(name: str, x: Tensor, plan: Plan, norm: Any, forward: bool) -> Tensor:
    dims, want = plan
    scale = _scale(name, norm, forward)
    _need_dims(name, dims)
    x = floating(name, x)
    x = cast(x, x.dtype.to_complex())
    last = want[-1]
    n = 2 * (x.shape[dims[-1]] - 1) if last is None else last
    if n < 1:
        raise RuntimeError(
            f"{name}: Invalid number of data points ({n}) specified, for an input of shape {list(x.shape)}; give the size of the "
            f"output's last dim"
        )
    sizes = [x.shape[d] if k is None else k for d, k in zip(dims[:-1], want, strict=False)]
    x = _resize(name, x, dims, [*sizes, n // 2 + 1])
    return c2r_p(conj(x) if forward else x, dims=dims, norm=scale, n=n)


def _publish(name: str, kind: Callable[..., Tensor], forward: bool, doc: str) -> None:
    """The transform `name` of one dim, of two and of several."""

    def one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        need_tensors(name, input=input)
        dims = _dims(name, input, operator.index(dim))
        size = None if n is None else _ints(name, "n", (n,))[0]
        return kind(name, input, (dims, [size]), norm, forward)

    def two(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        need_tensors(f"{name}2", input=input)
        return kind(f"{name}2", input, _axes(f"{name}2", input, s, dim), norm, forward)

    def many(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        need_tensors(f"{name}n", input=input)
        return kind(f"{name}n", input, _axes(f"{name}n", input, s, dim), norm, forward)

    about = 'cut or filled with zeros to {}; `norm`: "backward" (only the inverse is divided by the number of points), "forward", "ortho".'
    cut = about.format("the size `n`"), about.format("the sizes `s` (-1: as it is)")
    for f, suffix, where, more in (
        (one, "", "along `dim`", cut[0]),
        (two, "2", "along two dims", cut[1]),
        (many, "n", "along `dim`, by default all", cut[1]),
    ):
        f.__name__ = f.__qualname__ = name + suffix
        f.__doc__ = f"{doc} {where}.\n\nThe dims are {more}\n"
        public(f"fft.{name}{suffix}")(straight(f))


_publish("fft", _complex, True, "``y[k] = sum_n x[n] exp(-2 pi i k n / N)``")
_publish("ifft", _complex, False, "``y[n] = 1/N sum_k x[k] exp(2 pi i k n / N)``, the inverse of fft,")
_publish(
    "rfft", _from_real, True, "The first ``N // 2 + 1`` entries (of the last dim) of the transform of a real signal"
)
_publish("irfft", _to_real, False, "The real signal whose rfft is `input`, by default of ``2 (size - 1)`` points,")
_publish(
    "hfft", _to_real, True, "The (real) transform of a signal with ``x[-n] = conj(x[n])``, given by its first half,"
)
_publish("ihfft", _from_real, False, "The first half of the inverse transform of a real spectrum, the inverse of hfft,")


# -- order and names of the frequencies ---------------------------------------------------------------------------------


_NORMALIZATION = ("none", "root", "all")  # by number: not scaled, by 1/sqrt(n), by 1/n


def _numbered(name: str, input: Tensor, dim: Any, normalization: int) -> tuple[Dims, str]:
    if normalization not in (0, 1, 2):
        raise RuntimeError(f"{name}: normalization must be 0, 1 or 2, got {normalization!r}")
    return _dims(name, input, dim), _NORMALIZATION[normalization]


@public("_fft_c2c")
def fft_c2c(input: Tensor, dim: Any, normalization: int, forward: bool) -> Tensor:
    """The transform of a complex tensor along `dim`, or the transform backwards; `normalization`: 0 none, 1 1/sqrt(n), 2 1/n."""
    dims, norm = _numbered("_fft_c2c", input, dim, normalization)
    if input.dtype.category != dt.COMPLEX:
        raise RuntimeError(f"_fft_c2c: expected a complex input, got {input.dtype}; use _fft_r2c")
    return c2c_p(input, dims=dims, norm=norm, forward=bool(forward)) if dims else clone_p.bind(input)


@public("_fft_r2c")
def fft_r2c(input: Tensor, dim: Any, normalization: int, onesided: bool) -> Tensor:
    """The transform of a real tensor along `dim`, of the last of them one side or all; `normalization` as in _fft_c2c."""
    dims, norm = _numbered("_fft_r2c", input, dim, normalization)
    _need_dims("_fft_r2c", dims)
    if input.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"_fft_r2c: expected a real input, got {input.dtype}; use _fft_c2c")
    return r2c_p(input, dims=dims, norm=norm, n=input.shape[dims[-1]], onesided=bool(onesided))


@public("_fft_c2r")
def fft_c2r(input: Tensor, dim: Any, normalization: int, last_dim_size: int) -> Tensor:
    """The real signal, `last_dim_size` points long in the last of `dim`, whose transform has `input` as its one side."""
    dims, norm = _numbered("_fft_c2r", input, dim, normalization)
    _need_dims("_fft_c2r", dims)
    if input.dtype.category != dt.COMPLEX:
        raise RuntimeError(f"_fft_c2r: expected a complex input, got {input.dtype}")
    x = _resize("_fft_c2r", input, dims, [*[input.shape[d] for d in dims[:-1]], last_dim_size // 2 + 1])
    return c2r_p(x, dims=dims, norm=norm, n=last_dim_size)


def _shift(name: str, input: Tensor, dim: Any, half: Callable[[int], int]) -> Tensor:
    need_tensors(name, input=input)
    ds = range(input.ndim) if dim is None else _ints(name, "dim", dim)
    if dim is not None and not input.ndim:
        raise IndexError(f"{name}: dim is {dim!r} but tensor has no dimensions; leave out dim for a 0-d input")
    dims = tuple(wrap_dim(d, input.ndim) for d in ds)
    if not dims:
        return clone_p.bind(input)
    return roll_p(input, shifts=tuple(half(input.shape[d]) for d in dims), dims=dims)


@public("fft.fftshift", out=False)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """Entries along `dim` (all dims) moved by ``N // 2``: the zero frequency goes to the middle."""
    return _shift("fftshift", input, dim, lambda n: n // 2)


@public("fft.ifftshift", out=False)
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of fftshift: the middle entry goes to the front."""
    return _shift("ifftshift", input, dim, lambda n: -(n // 2))


def _frequencies(
    name: str, k: Callable[[int], Any], n: Any, d: Any, dtype: Any, requires_grad: bool, device: Any
) -> Any:
    (n,) = _ints(name, "n", n)
    if n < 0:
        raise RuntimeError(f"{name}: Trying to create tensor with negative dimension: n={n}")
    t = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
    if t.category < dt.FLOAT:
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {t}")
    points = n * float(d)
    step = 1 / points if points else math.inf
    with np.errstate(invalid="ignore"):
        return finish((k(n) * step).astype(t.np), None, requires_grad, device)


@public("fft.fftfreq")
def fftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``[0, 1, ..., (N - 1) // 2, -(N // 2), ..., -1] / (N d)``: the frequency of each entry of fft, `d` the sampling interval."""

    def k(n: int) -> Any:
        return (np.arange(n) + n // 2) % max(n, 1) - n // 2

    return _frequencies("fftfreq", k, n, d, dtype, requires_grad, device)


@public("fft.rfftfreq")
def rfftfreq(
    n: int, d: float = 1.0, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """``[0, 1, ..., N // 2] / (N d)``: the frequency of each entry of rfft, `d` the sampling interval."""
    return _frequencies("rfftfreq", lambda n: np.arange(n // 2 + 1), n, d, dtype, requires_grad, device)


# -- samples ----------------------------------------------------------------------------------------------------------

sample("fft.fft", S(2, 5))
sample("fft.fft", S(4, 3), n=6, dim=0, norm="ortho")
sample("fft.fft", S(1))
sample("fft.ifft", S(2, 4))
sample("fft.ifft", S(5), n=3, norm="forward")
sample("fft.ifft", S(0, 3))
sample("fft.fft2", S(2, 3, 4), norm="forward")
sample("fft.fftn", S(2, 3, 4), s=(5, 2), dim=(0, 2))
sample("fft.fftn", S())
sample("fft.ifft2", S(3, 2, 4), s=(-1, 5), dim=(2, 0), norm="ortho")
sample("fft.ifftn", S(2, 3))
for _name in ("rfft", "ihfft"):
    sample(f"fft.{_name}", S(2, 5), cx=False)
    sample(f"fft.{_name}", S(3, 6), n=4, dim=0, norm="forward", cx=False)
    sample(f"fft.{_name}", S(2, 1), cx=False)
    sample(f"fft.{_name}2", S(2, 3, 4), norm="ortho", cx=False)
    sample(f"fft.{_name}n", S(2, 3, 4), s=(3, 5), dim=(2, 0), cx=False)
for _name in ("irfft", "hfft"):
    sample(f"fft.{_name}", S(2, 4))
    sample(f"fft.{_name}", S(2, 4), n=7)
    sample(f"fft.{_name}", S(3, 2), n=1, dim=0)
    sample(f"fft.{_name}", S(3, 2), n=8, dim=0, norm="ortho")
    sample(f"fft.{_name}2", S(2, 3, 4), norm="forward")
    sample(f"fft.{_name}n", S(2, 3, 4), s=(3, 5), dim=(2, 0), norm="ortho")
sample("fft.fftshift", S(4, 5))
sample("fft.fftshift", S(4, 5), 1)
sample("fft.ifftshift", S(4, 5), (0, 1))
