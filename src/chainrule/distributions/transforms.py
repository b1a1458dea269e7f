"""Transforms: maps between sets of values with the logarithms of their determinants.

One that is given by formulas is a line of a table at the end; those that join or change shapes are classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..nn import functional as F
from . import constraints
from .transform_base import (
    ComposeTransform,
    IndependentTransform,
    Transform,
    identity_transform,
    sum_rightmost,
)
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class ReshapeTransform(Transform):
    """Events of one shape as events of another."""

    bijective = True
    _keys = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = cr.Size(in_shape), cr.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.ndim - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.ndim - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return cr.zeros(tuple(x.shape[: x.ndim - len(self.in_shape)]), dtype=x.dtype)

    def _replaced(self, shape: Any, a: Any, b: Any) -> Any:
        n = len(shape) - len(a)
        if n < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[n:]) != tuple(a):
            raise ValueError(f"Shape mismatch: expected {tuple(shape[n:])} but got {tuple(a)}")
        return cr.Size((*shape[:n], *b))

    def forward_shape(self, shape: Any) -> Any:
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._replaced(shape, self.out_shape, self.in_shape)


class AffineTransform(Transform):
    """``loc + scale x``."""

    bijective = True
    _keys = ("loc", "scale")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)
    domain = property(
        lambda self: constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real
    )
    codomain = domain
    sign = property(
        lambda self: self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)
    )

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        s = self.scale
        each = s.abs().log() if isinstance(s, Tensor) else cr.full_like(x, math.log(abs(s)))
        return sum_rightmost(
            each.expand(tuple(cr.broadcast_shapes(tuple(each.shape), tuple(x.shape)))), self._event_dim
        )

    def forward_shape(self, shape: Any) -> Any:
        parts = [tuple(v.shape) for v in (self.loc, self.scale) if isinstance(v, Tensor)]
        return cr.broadcast_shapes(tuple(shape), *parts)

    inverse_shape = forward_shape


class PowerTransform(Transform):
    """``x**exponent`` of positive numbers."""

    domain = codomain = constraints.positive
    bijective = True
    _keys = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.exponent = exponent if isinstance(exponent, Tensor) else cr.tensor(exponent)

    sign = property(lambda self: self.exponent.sign())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return cr.broadcast_shapes(tuple(shape), tuple(self.exponent.shape))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The distribution function of a distribution: to the unit interval."""

    bijective = True
    codomain = constraints.unit_interval
    sign = 1
    _keys = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class StickBreakingTransform(Transform):
    """From n - 1 numbers to n shares: each breaks a part off what is left of a stick."""

    _equal_by_type = True
    domain, codomain, bijective = constraints.real_vector, constraints.simplex, True

    def _offset(self, x: Tensor, n: int) -> Tensor:
        return (n - cr.arange(n, dtype=x.dtype)).log()

    def _call(self, x: Tensor) -> Tensor:
        z = cr.sigmoid(x - self._offset(x, x.shape[-1]))
        left = (1 - z).cumprod(-1)
        one = cr.ones_like(z[..., :1])
        return cr.cat([z, one], -1) * cr.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=cr.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._offset(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x, x.shape[-1])
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def _length(self, shape: Any, by: int) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return cr.Size((*shape[:-1], shape[-1] + by))

    def forward_shape(self, shape: Any) -> Any:
        return self._length(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return self._length(shape, -1)


class SoftmaxTransform(Transform):
    """Shares proportional to ``exp(x)``; not one to one."""

    _equal_by_type = True
    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        return cr.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class CorrCholeskyTransform(Transform):
    """From n (n-1) / 2 numbers to the Cholesky factor of a correlation matrix, by partial correlations ``tanh(x)``."""

    _equal_by_type = True
    domain, codomain, bijective = constraints.real_vector, constraints.corr_cholesky, True

    def _call(self, x: Tensor) -> Tensor:
        eps = cr.finfo(x.dtype).eps
        r = vec_to_tril_matrix(cr.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r * r).sqrt().cumprod(-1)
        r = r + cr.eye(r.shape[-1], dtype=r.dtype)
        return r * F.pad(left[..., :-1], [1, 0], value=1.0)

    def _inverse(self, y: Tensor) -> Tensor:
        left = F.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1.0)
        part = tril_matrix_to_vec(y, diag=-1)
        return cr.atanh(part / tril_matrix_to_vec(left, diag=-1).sqrt())

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) + (-2 * (x + F.softplus(-2 * x) - math.log(2))).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return cr.Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2 or shape[-2] != shape[-1]:
            raise ValueError("Input is not square" if len(shape) > 1 else "Too few dimensions on input")
        return cr.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class _Joined(Transform):
    """Parts of a dimension, each by a transform of its own."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, lengths: Any = None, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms, self.dim = [t.with_cache(cache_size) for t in tseq], dim
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    bijective = property(lambda self: all(t.bijective for t in self.transforms))

    def _split(self, x: Tensor) -> list[Tensor]:
        raise NotImplementedError

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        raise NotImplementedError

    def _call(self, x: Tensor) -> Tensor:
        return self._join([t(v) for t, v in zip(self.transforms, self._split(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._split(y), strict=True)], self.dim)


class CatTransform(_Joined):
    """Parts of these lengths along a dimension."""

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))
    length = property(lambda self: sum(self.lengths))
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))

    def _split(self, x: Tensor) -> list[Tensor]:
        return list(x.split(self.lengths, self.dim))

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return cr.cat(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = []
        for t, a, b in zip(self.transforms, self._split(x), self._split(y), strict=True):
            parts.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return cr.cat(parts, dim) if dim < 0 else sum(parts[1:], parts[0])


class StackTransform(_Joined):
    """Entries of a dimension."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, None, cache_size)

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def _split(self, x: Tensor) -> list[Tensor]:
        return [x.select(self.dim, i) for i in range(x.shape[self.dim])]

    def _join(self, parts: list[Tensor], dim: int) -> Tensor:
        return cr.stack(parts, dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._split(x), self._split(y), strict=True)
        return cr.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)


def _formula(
    name: str, doc: str, domain: Any, codomain: Any, call: Callable[[Any], Any], inverse: Callable[[Any], Any], log_det: Any = None,
    sign: int | None = 1,
) -> Any:  # fmt: skip
    """A transform by its formulas: each of one element, or of one matrix."""
    body: dict[str, Any] = {
        "__doc__": doc, "__module__": __name__, "domain": domain, "codomain": codomain, "bijective": log_det is not None,
        "_call": lambda self, x: call(x), "_inverse": lambda self, y: inverse(y),
        "_equal_by_type": True,
    }  # fmt: skip
    if log_det is not None:
        body["log_abs_det_jacobian"] = lambda self, x, y: log_det(x, y)
        if sign is not None:
            body["sign"] = sign
    return type(name, (Transform,), body)


def _clip(x: Tensor) -> Tensor:
    f = cr.finfo(x.dtype)
    return x.clamp(min=f.tiny, max=1 - f.eps)


def _exp_diagonal(x: Tensor, f: Callable[[Tensor], Tensor] = cr.exp) -> Tensor:
    return x.tril(-1) + cr.diag_embed(f(x.diagonal(dim1=-2, dim2=-1)))


def _from_positive_definite(y: Tensor) -> Tensor:
    return _exp_diagonal(cr.linalg.cholesky(y), cr.log)


def _positive_definite(x: Tensor) -> Tensor:
    low = _exp_diagonal(x)
    return low @ low.mT


_real, _matrix = constraints.real, constraints.independent(constraints.real, 2)
ExpTransform = _formula(
    "ExpTransform", "``exp(x)``.", _real, constraints.positive, lambda x: x.exp(), lambda y: y.log(), lambda x, y: x
)
SigmoidTransform = _formula(
    "SigmoidTransform", "``1 / (1 + exp(-x))``.", _real, constraints.unit_interval, lambda x: _clip(cr.sigmoid(x)),
    lambda y: _clip(y).log() - cr.log1p(-_clip(y)), lambda x, y: -F.softplus(-x) - F.softplus(x),
)  # fmt: skip
SoftplusTransform = _formula(
    "SoftplusTransform", "``log(1 + exp(x))``.", _real, constraints.positive, lambda x: F.softplus(x),
    lambda y: cr.log(-cr.expm1(-y)) + y, lambda x, y: -F.softplus(-x),
)  # fmt: skip
TanhTransform = _formula(
    "TanhTransform", "``tanh(x)``.", _real, constraints.interval(-1.0, 1.0), lambda x: cr.tanh(x), lambda y: cr.atanh(y),
    lambda x, y: 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x)),
)  # fmt: skip
AbsTransform = _formula(
    "AbsTransform", "``|x|``; not one to one.", _real, constraints.positive, lambda x: x.abs(), lambda y: y
)
LowerCholeskyTransform = _formula(
    "LowerCholeskyTransform", "The lower triangle, with exp of the diagonal; not one to one.", _matrix, constraints.lower_cholesky,
    _exp_diagonal, lambda y: _exp_diagonal(y, cr.log),
)  # fmt: skip
PositiveDefiniteTransform = _formula(
    "PositiveDefiniteTransform", "``L L'`` of the lower triangle, with exp of the diagonal; not one to one.", _matrix,
    constraints.positive_definite, _positive_definite, _from_positive_definite,
)  # fmt: skip
