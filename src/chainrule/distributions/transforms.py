"""Transforms: maps between sets of values with the logarithms of their determinants.

One that is given by formulas is a line of a table at the end; those that join or change shapes are classes.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import chainrule as cr
from chainrule import Tensor

from ..nn import functional as F
from . import constraints
from .utils import tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "PowerTransform",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform", "StickBreakingTransform",
    "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """``y = t(x)``, ``x = t.inv(y)``, and ``t.log_abs_det_jacobian(x, y)``."""

    bijective = False
    domain: Any
    codomain: Any
    _keys: tuple[str, ...] = ()  # what an equal one has in common

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: Any = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The dimensions of an event, where both sides have as many."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse."""
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = _InverseTransform(self)
            self._inv = weakref.ref(inv)
        return inv

    @property
    def sign(self) -> Any:
        """Whether it goes up (1) or down (-1)."""
        raise NotImplementedError(f"{type(self).__name__} is not monotonic")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with a memory of the last pair."""
        if self._cache_size == cache_size:
            return self
        import copy

        new = copy.copy(self)
        Transform.__init__(new, cache_size)
        return new

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(self) is type(other)
            and bool(self._keys or self._equal_by_type)
            and all(_same(getattr(self, k), getattr(other, k)) for k in self._keys)
        )

    _equal_by_type = True

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        old_x, old_y = self._cached_x_y
        if x is old_x:
            return old_y
        y = self._call(x)
        self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        old_x, old_y = self._cached_x_y
        if y is old_y:
            return old_x
        x = self._inverse(y)
        self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} needs a method _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """``log |det dy/dx|``."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the result."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the argument."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return bool((cr.as_tensor(a) == cr.as_tensor(b)).all())
    return a == b


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value.reshape((*value.shape[: value.ndim - dim], -1)).sum(-1) if dim else value


class _InverseTransform(Transform):
    """A transform, turned around."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    inv = property(lambda self: self._inv)
    domain = property(lambda self: self._inv.codomain)  # type: ignore[assignment]
    codomain = property(lambda self: self._inv.domain)  # type: ignore[assignment]
    bijective = property(lambda self: self._inv.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self._inv.sign)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """One after the other, the first part first."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [p.with_cache(cache_size) for p in parts] if cache_size else list(parts)
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:  # type: ignore[override]
        """What the first part takes, as events of as many dimensions as any part has."""
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        dim = self.parts[-1].codomain.event_dim
        for p in reversed(self.parts):
            dim = max(dim + p.domain.event_dim - p.codomain.event_dim, p.domain.event_dim)
        return constraints.independent(domain, dim - domain.event_dim) if dim > domain.event_dim else domain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        """What the last part gives."""
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        dim = self.parts[0].domain.event_dim
        for p in self.parts:
            dim = max(dim + p.codomain.event_dim - p.domain.event_dim, p.codomain.event_dim)
        return constraints.independent(codomain, dim - codomain.event_dim) if dim > codomain.event_dim else codomain

    bijective = property(lambda self: all(p.bijective for p in self.parts))  # type: ignore[assignment]
    sign = property(lambda self: reduce(operator.mul, (p.sign for p in self.parts), 1))

    @property
    def inv(self) -> Transform:
        """The inverses in the other order."""
        inv = self._inv() if self._inv is not None else None
        if inv is None:
            inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv, inv._inv = weakref.ref(inv), weakref.ref(self)
        return inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The same with memories."""
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for p in self.parts:
            x = p(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for p in reversed(self.parts):
            y = p.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum over the parts, each summed over what belongs to one event of the whole."""
        if not self.parts:
            return cr.zeros_like(x)
        xs = [x]
        for p in self.parts[:-1]:
            xs.append(p(xs[-1]))
        xs.append(y)
        total: Any = 0.0
        dim = self.domain.event_dim
        for p, a, b in zip(self.parts, xs[:-1], xs[1:], strict=True):
            total = total + sum_rightmost(p.log_abs_det_jacobian(a, b), dim - p.domain.event_dim)
            dim += p.codomain.event_dim - p.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for p in self.parts:
            shape = p.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for p in reversed(self.parts):
            shape = p.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """The same map, whose determinant is that of whole events."""

    _keys = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform, self.reinterpreted_batch_ndims = (
            base_transform.with_cache(cache_size),
            reinterpreted_batch_ndims,
        )

    domain = property(lambda self: constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims))  # type: ignore[assignment]
    codomain = property(
        lambda self: constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)
    )  # type: ignore[assignment]
    bijective = property(lambda self: self.base_transform.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self.base_transform.sign)

    def _check(self, x: Tensor, dim: int) -> Tensor:
        if x.ndim < dim:
            raise ValueError("Too few dimensions on input")
        return x

    def _call(self, x: Tensor) -> Tensor:
        return self.base_transform(self._check(x, self.domain.event_dim))

    def _inverse(self, y: Tensor) -> Tensor:
        return self.base_transform.inv(self._check(y, self.codomain.event_dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of one shape as events of another."""

    bijective = True
    _keys = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = cr.Size(in_shape), cr.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))  # type: ignore[assignment]
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))  # type: ignore[assignment]

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
    )  # type: ignore[assignment]
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
    sign = 1  # type: ignore[assignment]
    _keys = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


class StickBreakingTransform(Transform):
    """From n - 1 numbers to n shares: each breaks a part off what is left of a stick."""

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

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:  # type: ignore[override]
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

    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]

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
    domain = property(lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]
    codomain = property(lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths))  # type: ignore[assignment]

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

    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))  # type: ignore[assignment]
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))  # type: ignore[assignment]

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
