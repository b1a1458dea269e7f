"""What the linear-algebra ops share: argument checks, adjoints, reciprocals of gaps, the check that a loss has no gauge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import innermost, look, unseen, values
from ...core.errors import ChainruleError
from ...core.primitives import permute_p
from ...core.registry import PUBLIC
from ...core.shapes import constant
from ...core.tensor import Tensor
from ..shape.in_each import same_size
from ..shape.slices import diagonal
from .matmul import matmul_p


class LinAlgError(ChainruleError):
    """A matrix for which the asked-for result does not exist."""


PUBLIC["linalg.LinAlgError"] = LinAlgError

WIDER = {
    dt.float16: dt.float32,
    dt.bfloat16: dt.float32,
    dt.complex32: dt.complex64,
    dt.float32: dt.float64,
    dt.complex64: dt.complex128,
}


def factored(name: str, a: Any, full: bool = True) -> Any:
    """``U, S, Vh`` of an array by LAPACK, which does not come back from an infinity: refused like NaN."""
    try:
        if np.isfinite(a).all():
            return np.linalg.svd(a, full_matrices=full)
        why = "contained non-finite values"
    except np.linalg.LinAlgError:
        why = "is ill-conditioned"
    raise LinAlgError(f"{name}: The algorithm failed to converge because the input matrix {why}.")


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two dims."""
    y = permute_p.bind(x, dims=(-1, -2))
    return y.conj() if x.dtype.category == dt.COMPLEX else y


def hermitian(x: Tensor) -> Tensor:
    """``(x + x^H) / 2``."""
    return (x + adjoint(x)) / 2


def skew(x: Tensor) -> Tensor:
    """``(x - x^H) / 2``."""
    return (x - adjoint(x)) / 2


def mm(*xs: Tensor) -> Tensor:
    """The matrix product of all, from left to right."""
    y = xs[0]
    for x in xs[1:]:
        y = matmul_p.bind(y, x)
    return y


def diag_of(x: Tensor) -> Tensor:
    """The main diagonal of the last two dims."""
    return diagonal(x, 0, -2, -1)


def is_complex(x: Tensor) -> bool:
    """Whether x has a complex type."""
    return x.dtype.category == dt.COMPLEX


def identity(n: int, like: Tensor, m: int | None = None) -> Tensor:
    """The n x m identity of the dtype of `like`."""
    return constant(np.eye(n, m), like)


def widened(*xs: Tensor) -> tuple[list[Tensor], Callable[[Tensor], Tensor]]:
    """Tensors of one type in the next wider one, 16 bits in 32 and 32 in 64, and the way back: for results that are rounded once."""
    d = xs[0].dtype
    wide = WIDER.get(d, d)
    return [x.to(wide) for x in xs], lambda y: y.to(d if y.dtype.is_complex or not d.is_complex else d.to_real())


def floating(name: str, x: Any, arg: str = "A", dims: int = 2) -> None:
    """Check that x is a tensor of a 32- or 64-bit floating or complex type with at least `dims` dims."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}: {arg} must be a tensor, got {type(x).__name__}")
    if x.ndim < dims:
        raise RuntimeError(
            f"{name}: The input tensor {arg} must have at least {dims} dimensions, got {list(x.shape)}. "
            f"unsqueeze it to a matrix first"
        )
    if x.dtype.category < dt.FLOAT or x.dtype.np in dt.HALVES or x.dtype is dt.complex32:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as {arg} (float32, float64, complex64 or complex128). Got {x.dtype}"
        )


def square(name: str, x: Any, arg: str = "A") -> None:
    """Check that x is a batch of square matrices of a floating type."""
    floating(name, x, arg)
    if not same_size(x.shape[-1], x.shape[-2]):
        raise RuntimeError(
            f"{name}: {arg} must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        )


def same_dtype(name: str, a: Tensor, b: Tensor, names: str = "A and B") -> None:
    """Check that two tensors have one dtype."""
    if a.dtype is not b.dtype:
        raise RuntimeError(
            f"{name}: Expected {names} to have the same dtype, but found {a.dtype} and {b.dtype} instead"
        )


# -- gaps ---------------------------------------------------------------------------------------------------------------


def _closed(near: Any) -> Any:
    """The equivalence relation that a relation among the last two axes generates."""
    n = near.shape[-1]
    if near.sum() > near.size // max(n, 1):
        for _ in range(max(n - 1, 1).bit_length()):
            near = (near.astype(np.float32) @ near.astype(np.float32)) > 0
    return near


def _chained(close: Any) -> Any:
    """The equivalence relation among sorted values of which neighbours are close."""
    label = np.cumsum(~close, axis=-1)
    label = np.concatenate((np.zeros((*label.shape[:-1], 1), label.dtype), label), -1)
    return label[..., None, :] == label[..., :, None]


NEAR = 1e-4  # gaps, relative to the values, below which a division by them is avoided


def _bounds(a: Any, slack: float) -> tuple[Any, float]:
    """Gaps that rounding makes among values of magnitudes a (LAPACK errs by a few eps of the largest), and small ones, relative to them.

    Among n values spread at random, some gap below ``1 / n**2`` of them is a chance of about ``1 / n``, below a fixed number a certainty.
    """
    n = a.shape[-1]
    tol = 8 * slack * np.finfo(a.dtype).eps * np.max(a, axis=-1, keepdims=True, initial=0)
    return tol, min(NEAR, 1 / max(n, 1) ** 2)


def clusters(s: Any, slack: float = 1.0, zeros: bool = False) -> tuple[Any, Any, Any]:
    """Which values along the last axis are equal up to rounding, which nearly equal, and which are zero (of those that may be).

    Real values are sorted; complex ones have no order, and all pairs are looked at.
    """
    a = np.abs(s)
    tol, small = _bounds(a, slack)
    zero = a <= tol if zeros else np.zeros(s.shape, bool)
    if s.dtype.kind == "c":
        gap = np.abs(s[..., None, :] - s[..., :, None])
        equal = _closed(gap <= tol[..., None])
        near = _closed(equal | (gap <= small * np.maximum(a[..., None, :], a[..., :, None])))
    elif s.shape[-1]:
        close, closer = _neighbours(s, a, tol, small)
        equal, near = _chained(closer), _chained(close | closer)
    else:
        equal = near = np.zeros((*s.shape, 0), bool)
    return equal, near, (equal & zero[..., None, :]).any(-1) if zeros else zero


def _neighbours(s: Any, a: Any, tol: Any, small: float) -> tuple[Any, Any]:
    """Which neighbours are nearly equal, and which equal up to rounding."""
    gap = np.abs(s[..., 1:] - s[..., :-1])
    return gap <= small * np.maximum(a[..., 1:], a[..., :-1]), gap <= tol


def apart(s: Any, slack: float = 1.0, zeros: bool = False) -> bool:
    """Whether sorted values are all distinct and not zero, at little cost; False for complex values, which have no order."""
    if s.dtype.kind == "c":
        return False
    a = np.abs(s)
    tol, small = _bounds(a, slack)
    close, closer = _neighbours(s, a, tol, small)
    return not (close.any() or closer.any() or (zeros and bool((a <= tol).any())))


@op("over_gaps", core="(n),(n,n)->(n,n)")
def over_gaps_p(s: Any, p: Any) -> Any:
    """``p / (s[j] - s[i])``, 0 between values that are equal, or nearly."""
    gap = s[..., None, :] - s[..., :, None]
    np.copyto(gap, np.inf, where=np.eye(s.shape[-1], dtype=bool) if apart(s) else clusters(s)[1])
    return p / gap


@op("over_sums", core="(n),(n,n)->(n,n)")
def over_sums_p(s: Any, p: Any) -> Any:
    """``p / (s[j] + s[i])`` for values that are not negative, 0 between zeros."""
    total = s[..., None, :] + s[..., :, None]
    if not apart(s, zeros=True):
        zero = clusters(s, zeros=True)[2]
        np.copyto(total, np.inf, where=zero[..., None, :] & zero[..., :, None])
    return p / total


@op("over_values", core="(n),(m,n)->(m,n)")
def over_values_p(s: Any, p: Any) -> Any:
    """``p / s[j]`` for values that are not negative, 0 where s is."""
    return p / (s if apart(s, zeros=True) else np.where(clusters(s, zeros=True)[2], np.inf, s))[..., None, :]


def _conj(x: Tensor) -> Tensor:
    return x.conj() if is_complex(x) else x


over_gaps_p.jvp(
    [
        lambda t, y, s, p: over_gaps_p.bind(s, y * (t.unsqueeze(-1) - t.unsqueeze(-2))),
        lambda t, y, s, p: over_gaps_p.bind(s, t),
    ]
)
over_sums_p.jvp(
    [
        lambda t, y, s, p: -over_sums_p.bind(s, y * (t.unsqueeze(-1) + t.unsqueeze(-2))),
        lambda t, y, s, p: over_sums_p.bind(s, t),
    ]
)

over_values_p.jvp(
    [
        lambda t, y, s, p: -over_values_p.bind(s, y * t.unsqueeze(-2)),
        lambda t, y, s, p: over_values_p.bind(s, t),
    ]
)


@over_values_p.vjp
def _(g: Any, y: Any, s: Any, p: Any) -> Any:
    gp = over_values_p.bind(s, g)
    return lambda: -(_conj(y) * gp).sum(-2), gp


@over_gaps_p.vjp
def _(g: Any, y: Any, s: Any, p: Any) -> Any:
    gp = over_gaps_p.bind(_conj(s), g)

    def gs() -> Tensor:
        q = _conj(y) * gp
        return q.sum(-1) - q.sum(-2)

    return gs, gp


@over_sums_p.vjp
def _(g: Any, y: Any, s: Any, p: Any) -> Any:
    gp = over_sums_p.bind(s, g)

    def gs() -> Tensor:
        q = _conj(y) * gp
        return -q.sum(-1) - q.sum(-2)

    return gs, gp


# -- gauges -------------------------------------------------------------------------------------------------------------


def _largest(x: Tensor) -> float:
    v = innermost(x)
    return float(np.max(np.abs(v), initial=0)) if type(v) is np.ndarray else 0.0


def check_phase(name: str, vectors: str, w: Tensor, g: Tensor, values: Tensor, gvalues: Tensor | None) -> None:
    """Raise where a loss depends on the phases of complex vectors; `w` has the inner products of vectors with their cotangents `g`.

    The test is relative: to the cotangents of the vectors and, as these may be rounding alone, to those of the values.
    """
    if not is_complex(w) or unseen(w, "the phase of vectors"):  # a warning about the loss, not about its derivative
        return
    eps = float(np.finfo(w.dtype.np).eps)
    noise = 0.0 if gvalues is None else eps**0.5 * _largest(gvalues) * _largest(values)
    if _largest(diag_of(w).imag) > max(1e-3 * _largest(g), noise):
        raise RuntimeError(
            f"{name}: the {vectors} in the complex case are specified up to multiplication by e^(i phi). The loss depends on "
            f"this phase term, making it ill-defined. Use a function of the {vectors} without it, such as their absolute value"
        )


def check_free(name: str, v: Tensor | None, g: Tensor | None) -> None:
    """Raise where a loss depends on which vectors v span a space that alone is given; `g` are their cotangents."""
    if v is None or g is None or unseen(g, "the choice of vectors") or unseen(v, "the choice of vectors"):
        return
    if _largest(skew(mm(adjoint(v), g))) > 1e-3 * _largest(g):
        raise RuntimeError(
            f"{name}: the loss depends on which vectors were chosen beyond those of the singular values, with full_matrices=True: it "
            f"has no derivative. Use a function that does not depend on the choice (phase and rotation), such as the projector on their span"
        )


# -- failures -----------------------------------------------------------------------------------------------------------


def concrete_info(info: Tensor) -> np.ndarray:
    """The numbers beneath all levels; empty for payloads of another kind."""
    v = values(info, "the success of a factorization")
    return v if type(v) is np.ndarray else np.zeros((0,), np.int32)


def raise_info(name: str, info: Tensor, message: str) -> None:
    """Raise where a factorization reports a failure; `message` takes its index."""

    def check(v: Any) -> None:
        if type(v) is np.ndarray and (v.item() > 0 if not v.ndim else (v > 0).any()):
            at = int(np.argmax(v.reshape(-1) > 0))
            which = f"(Batch element {at}): " if v.ndim else ""
            raise LinAlgError(f"{name}: {which}{message.format(int(v.reshape(-1)[at]))}")

    look(info, check)
