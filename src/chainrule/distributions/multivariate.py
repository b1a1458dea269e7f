"""Families of vectors and of matrices: Dirichlet, normal vectors, Wishart, Cholesky factors of correlations."""

from __future__ import annotations

import math
from typing import Any

import chainrule as cr
from chainrule import Size, Tensor

from . import constraints
from .distribution import Distribution, ExponentialFamily, holds
from .positive import Beta, standard_gamma
from .utils import inside, lazy_property, standard_normal

_LOG_2PI = math.log(2 * math.pi)


class Dirichlet(ExponentialFamily):
    """``product of x_i**(a_i - 1) / B(a)`` on the simplex."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _params = {"concentration": 1}
    concentration: Tensor
    _mean_carrier_measure = 0

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def _total(self) -> Tensor:
        return self.concentration.sum(-1, keepdim=True)

    mean = property(lambda self: self.concentration / self._total)

    @property
    def mode(self) -> Tensor:
        """Where all are above 1, inside; else in a corner."""
        less = (self.concentration - 1).clamp(min=0.0)
        mode = less / less.sum(-1, keepdim=True)
        corner = cr.nn.functional.one_hot(mode.nan_to_num().argmax(-1), self.concentration.shape[-1]).to(mode.dtype)
        return cr.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self) -> Tensor:
        """``a (n - a) / (n**2 (n + 1))``, n the sum of all."""
        n = self._total
        return self.concentration * (n - self.concentration) / (n**2 * (n + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Gamma numbers, divided by their sum: functions of the concentrations."""
        g = standard_gamma(self.concentration.expand(tuple(self._extended_shape(sample_shape))).double())
        return inside((g / g.sum(-1, keepdim=True)).to(self.concentration.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return cr.xlogy(a - 1, value).sum(-1) + cr.lgamma(a.sum(-1)) - cr.lgamma(a).sum(-1)

    def entropy(self) -> Tensor:
        """In digammas."""
        a, n, k = self.concentration, self.concentration.sum(-1), self.concentration.shape[-1]
        norm = cr.lgamma(a).sum(-1) - cr.lgamma(n)
        return norm - (k - n) * cr.digamma(n) - ((a - 1) * cr.digamma(a)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - cr.lgamma(x.sum(-1))


def mahalanobis(tril: Tensor, x: Tensor) -> Tensor:
    """``|L**-1 x|**2`` for rows x and lower triangular L, both with batches."""
    z = cr.linalg.solve_triangular(tril, x.unsqueeze(-1), upper=False).squeeze(-1)
    return (z * z).sum(-1)


def times_vector(m: Tensor, v: Tensor) -> Tensor:
    """``m v`` for matrices and vectors, both with batches."""
    return (m @ v.unsqueeze(-1)).squeeze(-1)


def tril_of_precision(p: Tensor) -> Tensor:
    """The Cholesky factor of the inverse."""
    low = cr.linalg.cholesky(p.flip((-2, -1)))
    inverse = low.flip((-2, -1)).mT
    eye = cr.eye(p.shape[-1], dtype=p.dtype)
    return cr.linalg.solve_triangular(inverse, eye, upper=False)


def _diagonal_logs(tril: Tensor) -> Tensor:
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _matrix(name: str, m: Tensor) -> Tensor:
    if m.ndim < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return m


class MultivariateNormal(Distribution):
    """Normal vectors by their mean and a covariance, its inverse, or its Cholesky factor."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _params = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": 2}
    loc: Tensor

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        one = {k: v for k, v in given.items() if v is not None}
        if len(one) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, m),) = one.items()
        shape = cr.broadcast_shapes(tuple(_matrix(name, m).shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand((*shape, loc.shape[-1]))
        setattr(self, name, m.expand((*shape, *m.shape[-2:])))
        super().__init__(shape, self.loc.shape[-1:], validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = m
        else:
            self._unbroadcasted_scale_tril = (
                cr.linalg.cholesky(m) if name == "covariance_matrix" else tril_of_precision(m)
            )

    def _whole(self, m: Tensor) -> Tensor:
        return m.expand((*self.batch_shape, *self.event_shape, *self.event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """``L L'``."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._whole(cr.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return (self._unbroadcasted_scale_tril**2).sum(-1).expand((*self.batch_shape, *self.event_shape))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """``loc + L z``."""
        z = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._unbroadcasted_scale_tril @ z.unsqueeze(-1)).squeeze(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        m = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self.event_shape[0] * _LOG_2PI + m) - _diagonal_logs(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        """``n/2 (1 + log(2 pi)) + log |L|``."""
        h = 0.5 * self.event_shape[0] * (1 + _LOG_2PI) + _diagonal_logs(self._unbroadcasted_scale_tril)
        return h.expand(tuple(self.batch_shape))


class LowRankMultivariateNormal(Distribution):
    """Normal vectors with covariance ``W W' + diag(d)``."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _params = {"loc": 1, "cov_diag": 1, "cov_factor": 2, "_capacitance_tril": 2}
    loc: Tensor
    cov_factor: Tensor
    cov_diag: Tensor

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = tuple(loc.shape[-1:])
        if _matrix("cov_factor", cov_factor).shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        shape = cr.broadcast_shapes(tuple(loc.shape[:-1]), tuple(cov_factor.shape[:-2]), tuple(cov_diag.shape[:-1]))
        self.loc, self.cov_diag = loc.expand((*shape, *event)), cov_diag.expand((*shape, *event))
        self.cov_factor = cov_factor.expand((*shape, *cov_factor.shape[-2:]))
        super().__init__(shape, event, validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _capacitance(cov_factor, cov_diag)

    def _expand_more(self, new: Any, shape: Size) -> None:
        new._unbroadcasted_cov_factor, new._unbroadcasted_cov_diag = new.cov_factor, new.cov_diag

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return (self.cov_factor**2).sum(-1) + self.cov_diag

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """``W W' + diag(d)``."""
        return self.cov_factor @ self.cov_factor.mT + cr.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return cr.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance, by Woodbury's formula."""
        w = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = cr.linalg.solve_triangular(self._capacitance_tril, w, upper=False)
        return cr.diag_embed(self.cov_diag.reciprocal()) - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """``loc + W z + sqrt(d) e``."""
        shape = tuple(self._extended_shape(sample_shape))
        z = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        e = standard_normal(shape, self.loc)
        return self.loc + (self.cov_factor @ z.unsqueeze(-1)).squeeze(-1) + self.cov_diag.sqrt() * e

    def _log_det(self) -> Tensor:
        return 2 * _diagonal_logs(self._capacitance_tril) + self.cov_diag.log().sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, by the lemmas on determinant and inverse."""
        if self._validate_args:
            self._validate_sample(value)
        d = value - self.loc
        wd = ((self.cov_factor.mT / self.cov_diag.unsqueeze(-2)) @ d.unsqueeze(-1)).squeeze(-1)
        m = (d * d / self.cov_diag).sum(-1) - mahalanobis(self._capacitance_tril, wd)
        return -0.5 * (self.event_shape[0] * _LOG_2PI + self._log_det() + m)

    def entropy(self) -> Tensor:
        """``(n (1 + log(2 pi)) + log |C|) / 2``."""
        h = 0.5 * (self.event_shape[0] * (1 + _LOG_2PI) + self._log_det())
        return h.expand(tuple(self.batch_shape))


def _capacitance(w: Tensor, d: Tensor) -> Tensor:
    """The Cholesky factor of ``1 + W' diag(d)**-1 W``."""
    m = (w.mT / d.unsqueeze(-2)) @ w
    return cr.linalg.cholesky(m + cr.eye(m.shape[-1], dtype=m.dtype))


class Wishart(ExponentialFamily):
    """Sums ``x x'`` of `df` normal vectors: ``|X|**((df-p-1)/2) exp(-tr(V**-1 X)/2)`` up to a constant."""

    support = constraints.positive_definite
    has_rsample = True
    _params = {"df": 0, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2, "_unbroadcasted_scale_tril": 2}
    df: Tensor
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self) -> Any:
        """`df` above p - 1."""
        matrix = constraints.positive_definite
        low = constraints.greater_than(self.event_shape[-1] - 1)
        return {
            "covariance_matrix": matrix, "precision_matrix": matrix, "scale_tril": constraints.lower_cholesky, "df": low,
        }  # fmt: skip

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        one = {k: v for k, v in given.items() if v is not None}
        if len(one) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, m),) = one.items()
        _matrix(name, m)
        df = cr.as_tensor(df, dtype=m.dtype)
        shape, event = cr.broadcast_shapes(tuple(m.shape[:-2]), tuple(df.shape)), tuple(m.shape[-2:])
        if not holds(df > event[-1] - 1):
            raise ValueError(f"Value of df={df} must be greater than ndim - 1 = {event[-1] - 1}.")
        self.df = df.expand(tuple(shape))
        setattr(self, name, m.expand((*shape, *event)))
        super().__init__(shape, event, validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = m
        else:
            self._unbroadcasted_scale_tril = (
                cr.linalg.cholesky(m) if name == "covariance_matrix" else tril_of_precision(m)
            )

    def _whole(self, m: Tensor) -> Tensor:
        return m.expand((*self.batch_shape, *self.event_shape))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the scale V."""
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The scale V."""
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of V."""
        return self._whole(cr.cholesky_inverse(self._unbroadcasted_scale_tril))

    def _df(self) -> Tensor:
        return self.df.reshape((*self.batch_shape, 1, 1))

    mean = property(lambda self: self._df() * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        """``(df - p - 1) V``, for df >= p + 1."""
        f = self._df() - self.event_shape[-1] - 1
        return cr.where(f <= 0, math.nan, f) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """``df (V_ij**2 + V_ii V_jj)``."""
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self._df() * (v**2 + d.unsqueeze(-1) * d.unsqueeze(-2))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Bartlett's factor: chi numbers on the diagonal, normal ones below, functions of `df` too."""
        shape = tuple(self._extended_shape(sample_shape))
        p = shape[-1]
        half = (self.df.unsqueeze(-1) - cr.arange(p, dtype=self.df.dtype)) / 2
        diagonal = (2 * standard_gamma(half.expand(shape[:-1]))).sqrt()
        low = cr.randn(shape, dtype=self.df.dtype).tril(-1) + cr.diag_embed(diagonal)
        a = self._unbroadcasted_scale_tril @ low
        return a @ a.mT

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density."""
        if self._validate_args:
            self._validate_sample(value)
        n, p, low = self.df, self.event_shape[-1], self._unbroadcasted_scale_tril
        norm = -n * (p * math.log(2) / 2 + _diagonal_logs(low)) - cr.mvlgamma(n / 2, p)
        trace = cr.cholesky_solve(value, low.expand((*value.shape[:-2], *low.shape[-2:]))).diagonal(dim1=-2, dim2=-1)
        return norm + (n - p - 1) / 2 * cr.linalg.slogdet(value).logabsdet - trace.sum(-1) / 2

    def _digammas(self, half: Tensor) -> Tensor:
        p = self.event_shape[-1]
        return cr.digamma(half.unsqueeze(-1) - 0.5 * cr.arange(p, dtype=half.dtype)).sum(-1)

    def entropy(self) -> Tensor:
        """In digammas of df."""
        n, p = self.df, self.event_shape[-1]
        norm = n * (p * math.log(2) / 2 + _diagonal_logs(self._unbroadcasted_scale_tril)) + cr.mvlgamma(n / 2, p)
        log_det = self._digammas(n / 2) + p * math.log(2) + 2 * _diagonal_logs(self._unbroadcasted_scale_tril)
        return norm - (n - p - 1) / 2 * log_det + n * p / 2


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices with density ``|R|**(concentration - 1)``."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    has_rsample = True
    _params = {"concentration": 0}
    concentration: Tensor

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        self.concentration = (
            cr.as_tensor(concentration) if isinstance(concentration, Tensor) else cr.tensor(float(concentration))
        )
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _expand_more(self, new: Any, shape: Size) -> None:
        new.dim = self.dim

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """The onion, row by row: a direction on a sphere, and how far from the axis."""
        c = self.concentration
        shape = tuple(self._extended_shape(sample_shape))
        k = cr.arange(self.dim - 1, dtype=c.dtype)
        first = (c + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * k
        part = Beta(0.5 + 0.5 * k, first, validate_args=False).rsample(shape[: len(shape) - 2 - c.ndim]).unsqueeze(-1)
        z = cr.randn(shape, dtype=c.dtype).tril(-1)[..., 1:, :]
        row = z / z.norm(dim=-1, keepdim=True) * part.sqrt()
        row = cr.cat([cr.zeros_like(row[..., :1, :]), row], -2)
        eps = cr.finfo(c.dtype).tiny
        return row + cr.diag_embed((1 - (row * row).sum(-1)).clamp(min=eps).sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        """By the diagonal alone."""
        if self._validate_args:
            self._validate_sample(value)
        c, n = self.concentration, self.dim
        d = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = 2 * (c - 1).unsqueeze(-1) + n - cr.arange(2, n + 1, dtype=c.dtype)
        k = n - 1
        alpha = c + 0.5 * k
        norm = 0.5 * k * math.log(math.pi) + cr.mvlgamma(alpha - 0.5, k) - cr.lgamma(alpha) * k
        return (order * d.log()).sum(-1) - norm
