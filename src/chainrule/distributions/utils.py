"""What the distributions share: parameters of one shape, probabilities and their logarithms, properties computed once."""

from __future__ import annotations

from functools import update_wrapper
from numbers import Number
from typing import Any

import chainrule as cr
from chainrule import Tensor

euler_constant = 0.57721566490153286060

__all__ = [
    "broadcast_all", "clamp_probs", "euler_constant", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip


def broadcast_all(*values: Any) -> list[Tensor]:
    """Numbers and tensors as tensors of one shape; numbers take the type of the tensors, or the default one."""
    for v in values:
        if not isinstance(v, Tensor | Number) and not hasattr(v, "__array__"):
            raise ValueError(
                f"Input arguments must all be instances of Number or Tensor, got {type(v).__name__}: write tensor(...) around it"
            )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    kind = cr.get_default_dtype() if like is None else like.dtype
    return list(cr.broadcast_tensors(*[v if isinstance(v, Tensor) else cr.as_tensor(v, dtype=kind) for v in values]))


def standard_normal(shape: Any, like: Tensor) -> Tensor:
    """Normal numbers of the type of a tensor."""
    return cr.randn(tuple(shape), dtype=like.dtype)


def _standard_normal(shape: Any, dtype: Any, device: Any = None) -> Tensor:
    """Normal numbers of a type, as PyTorch's libraries ask for them."""
    return cr.randn(tuple(shape), dtype=dtype)


def uniform(shape: Any, like: Tensor) -> Tensor:
    """Numbers in (0, 1), ends excluded, of the type of a tensor."""
    return clamp_probs(cr.rand(tuple(shape), dtype=like.dtype))


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved away from 0 and 1 by as little as their type can tell."""
    eps = cr.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def inside(x: Tensor) -> Tensor:
    """Draws on [0, 1] moved off the ends to the nearest numbers of their type: near 0 those are far smaller than its precision."""
    info = cr.finfo(x.dtype)
    return x.clamp(min=info.tiny, max=1 - info.eps / 2)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log-odds, or from logarithms up to a constant."""
    return cr.sigmoid(logits) if is_binary else cr.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log-odds of probabilities, or their logarithms."""
    p = clamp_probs(probs)
    return cr.log(p) - cr.log1p(-p) if is_binary else cr.log(p)


class lazy_property:
    """A property that is computed when first asked for, with recording on, and kept."""

    def __init__(self, wrapped: Any) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, obj_type: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with cr.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangle of matrices, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    i, j = cr.tril_indices(n, n, diag)
    return mat[..., i, j]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Matrices from their lower triangles, row by row."""
    m = vec.shape[-1]
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * m + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > cr.finfo(vec.dtype).eps or n != round(n):
        raise ValueError(
            f"The size of last dimension is {m} which cannot be expressed as the lower triangular part of a square D x D matrix."
        )
    k = round(n)
    i, j = cr.tril_indices(k, k, diag)
    place = cr.zeros((m, k * k), dtype=vec.dtype)
    place[cr.arange(m), i * k + j] = 1.0
    return (vec @ place).reshape((*vec.shape[:-1], k, k))
