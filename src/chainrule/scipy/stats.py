"""scipy.stats: densities and distribution functions, differentiable in the argument and in the parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..ops.special.orders import ORDERED
from .kinds import floating, hand_out, kind_of

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _p(name: str) -> Any:
    return PUBLIC[name]


class _Continuous:
    """A family of densities: what it has in common is that ``pdf`` is the exponential of ``logpdf``."""

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        raise NotImplementedError

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the distribution function has no derivative here")

    shapes = 0

    def _run(
        self, f: Any, x: Any, args: tuple[Any, ...], kw: dict[str, Any], density: bool = False, log: bool = False
    ) -> Any:
        loc = kw.pop("loc", args[self.shapes] if len(args) > self.shapes else 0.0)
        scale = kw.pop("scale", args[self.shapes + 1] if len(args) > self.shapes + 1 else 1.0)
        params = [*args[: self.shapes], *kw.values()]
        kind = kind_of(x, loc, scale, *params)
        s = floating(scale)
        z = (floating(x) - floating(loc)) / s
        y = f(z, *[floating(p) for p in params])
        if density:
            y = y - s.log()
        return hand_out(y.exp() if log else y, kind)

    def logpdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of the density."""
        return self._run(self._log, x, args, kw, density=True)

    def pdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The density."""
        return self._run(self._log, x, args, kw, density=True, log=True)

    def cdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The distribution function."""
        return self._run(self._distribution, x, args, kw)

    def sf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """``1 - cdf``."""
        return self._run(lambda *a: 1 - self._distribution(*a), x, args, kw)

    def logcdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of the distribution function."""
        return self._run(lambda *a: self._distribution(*a).log(), x, args, kw)

    def logsf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of ``1 - cdf``."""
        return self._run(lambda *a: (1 - self._distribution(*a)).log(), x, args, kw)


class _Norm(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -0.5 * x * x - _HALF_LOG_TWO_PI

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.ndtr")(x)

    def logcdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._run(_p("special.log_ndtr"), x, args, kw)

    def logsf(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._run(lambda z: _p("special.log_ndtr")(-z), x, args, kw)

    def sf(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._run(lambda z: _p("special.ndtr")(-z), x, args, kw)


class _Expon(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return -_p("expm1")(-x)


class _Gamma(_Continuous):
    shapes = 1

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (a,) = params
        return _p("xlogy")(a - 1, x) - x - _p("lgamma")(a)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammainc")(params[0], x)


class _Chi2(_Continuous):
    shapes = 1

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        h = params[0] * 0.5
        return _p("xlogy")(h - 1, x) - 0.5 * x - _p("lgamma")(h) - h * math.log(2)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammainc")(params[0] * 0.5, x * 0.5)


class _Beta(_Continuous):
    shapes = 2

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        a, b = params
        g = _p("lgamma")
        return _p("xlogy")(a - 1, x) + _p("special.xlog1py")(b - 1, -x) - g(a) - g(b) + g(a + b)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return ORDERED["betainc"].bind(*params, x)


class _T(_Continuous):
    shapes = 1

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (n,) = params
        g = _p("lgamma")
        return g((n + 1) * 0.5) - g(n * 0.5) - 0.5 * (n * math.pi).log() - (n + 1) * 0.5 * _p("log1p")(x * x / n)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return ORDERED["stdtr"].bind(*params, x)


class _Cauchy(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -_p("log1p")(x * x) - math.log(math.pi)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return 0.5 + _p("atan")(x) / math.pi


class _Logistic(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x + 2 * _p("nn.functional.logsigmoid")(x)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("sigmoid")(x)


class _Laplace(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x.abs() - math.log(2)


class _Poisson:
    def logpmf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """``k log mu - mu - log k!``."""
        kind = kind_of(k, mu)
        n, m = floating(k) - loc, floating(mu)
        return hand_out(_p("xlogy")(n, m) - m - _p("lgamma")(n + 1), kind)

    def pmf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """The probability of k."""
        y = self.logpmf(k, mu, loc)
        return y.exp() if isinstance(y, Tensor) else np.exp(y)

    def cdf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """The probability of at most k."""
        kind = kind_of(k, mu)
        return hand_out(_p("special.gammaincc")((floating(k) - loc).floor() + 1, floating(mu)), kind)


class _MultivariateNormal:
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """``-(x - m)^T C^-1 (x - m) / 2 - log det(2 pi C) / 2``."""
        kind = kind_of(x, mean, cov)
        v = floating(x)
        d = v if mean is None else v - floating(mean)
        if not d.ndim:
            d = d.unsqueeze(0)
        n = d.shape[-1]
        c = floating(cov)
        if c.ndim < 2:
            c = c * Tensor(np.eye(n)) if not c.ndim else _p("diag_embed")(c)
        if allow_singular:
            w, u = _p("linalg.eigh")(c)
            keep = w.detach() > 1e-10 * w.detach().abs().max()
            q = (_p("matmul")(d, u) ** 2 / _p("where")(keep, w, np.inf)).sum(-1)
            rank = keep.to(d.dtype).sum()
            logdet = _p("where")(keep, w, 1.0).log().sum()
            return hand_out(-0.5 * (q + logdet + rank * math.log(2 * math.pi)), kind)
        low = _p("linalg.cholesky")(c)
        z = _p("linalg.solve_triangular")(low, d.unsqueeze(-1), upper=False).squeeze(-1)
        logdet = 2 * low.diagonal(0, -2, -1).log().sum(-1)
        return hand_out(-0.5 * ((z * z).sum(-1) + logdet + n * math.log(2 * math.pi)), kind)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1.0, allow_singular: bool = False) -> Any:
        """The density."""
        y = self.logpdf(x, mean, cov, allow_singular)
        return y.exp() if isinstance(y, Tensor) else np.exp(y)

    def entropy(self, mean: Any = None, cov: Any = 1.0) -> Any:
        """``log det(2 pi e C) / 2``."""
        kind = kind_of(mean, cov)
        c = floating(cov)
        return hand_out(0.5 * (_p("linalg.slogdet")(c)[1] + c.shape[-1] * math.log(2 * math.pi * math.e)), kind)


class _Dirichlet:
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """``sum (alpha - 1) log x - log B(alpha)``."""
        kind = kind_of(x, alpha)
        v, a = floating(x), floating(alpha)
        g = _p("lgamma")
        if v.shape[0] == a.shape[-1] - 1:
            v = _p("cat")([v, (1 - v.sum(0)).unsqueeze(0)])
        w = a.reshape((-1,) + (1,) * (v.ndim - 1))
        return hand_out(_p("xlogy")(w - 1, v).sum(0) - g(a).sum() + g(a.sum()), kind)

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        y = self.logpdf(x, alpha)
        return y.exp() if isinstance(y, Tensor) else np.exp(y)


def _rest(self: Any, name: str) -> Any:
    """What has no derivative (random numbers, moments) is SciPy's own."""
    import scipy.stats

    if name.startswith("__"):
        raise AttributeError(name)
    own = next(k for k, v in globals().items() if v is self)
    return getattr(getattr(scipy.stats, own), name)


for _c in (_Continuous, _Poisson, _MultivariateNormal, _Dirichlet):
    _c.__getattr__ = _rest  # type: ignore[union-attr]
norm, expon, gamma, chi2, beta, t = _Norm(), _Expon(), _Gamma(), _Chi2(), _Beta(), _T()
cauchy, logistic, laplace = _Cauchy(), _Logistic(), _Laplace()
poisson, multivariate_normal, dirichlet = _Poisson(), _MultivariateNormal(), _Dirichlet()
