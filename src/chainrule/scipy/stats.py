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


class _Family:
    """What families have in common: frozen parameters, and SciPy's own functions for all that has no derivative."""

    shapes: tuple[str, ...] = ()

    def __call__(self, *args: Any, **kw: Any) -> _Frozen:
        return _Frozen(self, args, kw)

    def _named(self, what: str, args: tuple[Any, ...], kw: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
        """Parameters by place or by name, in order; None for those that are not given."""
        if len(args) > len(names) or not kw.keys() <= set(names[len(args) :]):
            raise TypeError(
                f"{what}: got {len(args)} parameters and {', '.join(kw) or 'none'} by name, of {', '.join(names)}"
            )
        return [*args, *[kw.get(n) for n in names[len(args) :]]]


class _Frozen:
    """A family with its parameters: its methods take the rest."""

    def __init__(self, family: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> None:
        self._family, self._args, self._kw = family, args, kw

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        f = getattr(self._family, name)
        if name == "rvs":
            return lambda size=1, random_state=None: f(*self._args, **self._kw, size=size, random_state=random_state)
        return lambda *xs, **kw: f(*xs, *self._args, **self._kw, **kw)


class _Continuous(_Family):
    """A family of densities: what it has in common is that ``pdf`` is the exponential of ``logpdf``, and 0 outside of where the family lives."""

    low, high = -math.inf, math.inf

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        raise NotImplementedError

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: the distribution function has no derivative here")

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        """``1 - cdf``."""
        return 1 - self._distribution(x, *params)

    def _run(self, f: Any, x: Any, args: tuple[Any, ...], kw: dict[str, Any], below: float, above: float) -> Any:
        """`f` of the standardised argument where the family lives, other numbers below and above it."""
        *params, loc, scale = self._named(type(self).__name__[1:].lower(), args, kw, (*self.shapes, "loc", "scale"))
        for n, p in zip(self.shapes, params, strict=True):
            if p is None:
                raise TypeError(f"{type(self).__name__[1:].lower()}: the parameter {n} is missing")
        kind = kind_of(x, loc, scale, *params)
        s = floating(1.0 if scale is None else scale)
        z = (floating(x) - floating(0.0 if loc is None else loc)) / s
        y = f(z, s, *[floating(p) for p in params])
        where = _p("where")
        if self.low > -math.inf:
            y = where(z < self.low, below, y)
        if self.high < math.inf:
            y = where(z > self.high, above, y)
        return hand_out(y, kind)

    def logpdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of the density."""
        return self._run(lambda z, s, *p: self._log(z, *p) - s.log(), x, args, kw, -math.inf, -math.inf)

    def pdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The density."""
        return self._run(lambda z, s, *p: (self._log(z, *p) - s.log()).exp(), x, args, kw, 0.0, 0.0)

    def cdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The distribution function."""
        return self._run(lambda z, s, *p: self._distribution(z, *p), x, args, kw, 0.0, 1.0)

    def sf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """``1 - cdf``."""
        return self._run(lambda z, s, *p: self._rest(z, *p), x, args, kw, 1.0, 0.0)

    def logcdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of the distribution function."""
        return self._run(lambda z, s, *p: self._distribution(z, *p).log(), x, args, kw, -math.inf, 0.0)

    def logsf(self, x: Any, *args: Any, **kw: Any) -> Any:
        """The logarithm of ``1 - cdf``."""
        return self._run(lambda z, s, *p: self._rest(z, *p).log(), x, args, kw, 0.0, -math.inf)


class _Norm(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -0.5 * x * x - _HALF_LOG_TWO_PI

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.ndtr")(x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.ndtr")(-x)

    def logcdf(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._run(lambda z, s: _p("special.log_ndtr")(z), x, args, kw, 0.0, 0.0)

    def logsf(self, x: Any, *args: Any, **kw: Any) -> Any:
        return self._run(lambda z, s: _p("special.log_ndtr")(-z), x, args, kw, 0.0, 0.0)

    def ppf(self, q: Any, *args: Any, **kw: Any) -> Any:
        """The quantile: the inverse of the distribution function."""
        loc, scale = self._named("norm", args, kw, ("loc", "scale"))
        loc, scale = 0.0 if loc is None else loc, 1.0 if scale is None else scale
        return hand_out(_p("special.ndtri")(floating(q)) * floating(scale) + floating(loc), kind_of(q, loc, scale))


class _Expon(_Continuous):
    low = 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return -_p("expm1")(-x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return (-x).exp()


class _Gamma(_Continuous):
    shapes, low = ("a",), 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (a,) = params
        return _p("xlogy")(a - 1, x) - x - _p("lgamma")(a)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammainc")(params[0], x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammaincc")(params[0], x)


class _Chi2(_Continuous):
    shapes, low = ("df",), 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        h = params[0] * 0.5
        return _p("xlogy")(h - 1, x) - 0.5 * x - _p("lgamma")(h) - h * math.log(2)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammainc")(params[0] * 0.5, x * 0.5)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammaincc")(params[0] * 0.5, x * 0.5)


class _Beta(_Continuous):
    shapes, low, high = ("a", "b"), 0.0, 1.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        a, b = params
        g = _p("lgamma")
        return _p("xlogy")(a - 1, x) + _p("special.xlog1py")(b - 1, -x) - g(a) - g(b) + g(a + b)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return ORDERED["betainc"].bind(*params, x)


class _T(_Continuous):
    shapes = ("df",)

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (n,) = params
        g = _p("lgamma")
        return g((n + 1) * 0.5) - g(n * 0.5) - 0.5 * (n * math.pi).log() - (n + 1) * 0.5 * _p("log1p")(x * x / n)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return ORDERED["stdtr"].bind(*params, x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return ORDERED["stdtr"].bind(*params, -x)


class _Cauchy(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -_p("log1p")(x * x) - math.log(math.pi)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return 0.5 + _p("atan")(x) / math.pi

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return self._distribution(-x)


class _Logistic(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x + 2 * _p("nn.functional.logsigmoid")(x)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("sigmoid")(x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("sigmoid")(-x)


class _Laplace(_Continuous):
    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return -x.abs() - math.log(2)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        tail = 0.5 * (-x.abs()).exp()
        return _p("where")(x > 0, 1 - tail, tail)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return self._distribution(-x)


class _Uniform(_Continuous):
    low, high = 0.0, 1.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        return x * 0

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return x


class _Lognorm(_Continuous):
    shapes, low = ("s",), 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (s,) = params
        z = x.log() / s
        return -0.5 * z * z - _HALF_LOG_TWO_PI - s.log() - x.log()

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.ndtr")(x.log() / params[0])

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.ndtr")(-x.log() / params[0])


class _WeibullMin(_Continuous):
    shapes, low = ("c",), 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (c,) = params
        return c.log() + _p("xlogy")(c - 1, x) - x**c

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return -_p("expm1")(-(x ** params[0]))

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return (-(x ** params[0])).exp()


class _InvGamma(_Continuous):
    shapes, low = ("a",), 0.0

    def _log(self, x: Tensor, *params: Tensor) -> Tensor:
        (a,) = params
        return -(a + 1) * x.log() - 1 / x - _p("lgamma")(a)

    def _distribution(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammaincc")(params[0], 1 / x)

    def _rest(self, x: Tensor, *params: Tensor) -> Tensor:
        return _p("special.gammainc")(params[0], 1 / x)


def _of_counts(n: Tensor, y: Tensor, top: Any = math.inf) -> Tensor:
    """A logarithm of probabilities where `n` is a number that can be counted, minus infinity elsewhere."""
    return _p("where")((n >= 0) & (n <= top) & (n == n.floor()), y, -math.inf)


class _Poisson(_Family):
    def logpmf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """``k log mu - mu - log k!``."""
        kind = kind_of(k, mu)
        n, m = floating(k) - loc, floating(mu)
        return hand_out(_of_counts(n, _p("xlogy")(n, m) - m - _p("lgamma")(n + 1)), kind)

    def pmf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """The probability of k."""
        y = self.logpmf(k, mu, loc)
        return y.exp() if isinstance(y, Tensor) else np.exp(y)

    def cdf(self, k: Any, mu: Any, loc: Any = 0) -> Any:
        """The probability of at most k."""
        kind = kind_of(k, mu)
        n = (floating(k) - loc).floor()
        return hand_out(_p("where")(n < 0, 0.0, _p("special.gammaincc")(n + 1, floating(mu))), kind)


class _Binom(_Family):
    def logpmf(self, k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
        """``log C(n, k) + k log p + (n - k) log(1 - p)``."""
        kind = kind_of(k, n, p)
        i, m, q = floating(k) - loc, floating(n), floating(p)
        g = _p("lgamma")
        y = g(m + 1) - g(i + 1) - g(m - i + 1) + _p("xlogy")(i, q) + _p("special.xlog1py")(m - i, -q)
        return hand_out(_of_counts(i, y, m), kind)

    def pmf(self, k: Any, n: Any, p: Any, loc: Any = 0) -> Any:
        """The probability of k."""
        y = self.logpmf(k, n, p, loc)
        return y.exp() if isinstance(y, Tensor) else np.exp(y)


class _Bernoulli(_Family):
    def logpmf(self, k: Any, p: Any, loc: Any = 0) -> Any:
        """``k log p + (1 - k) log(1 - p)``."""
        return binom.logpmf(k, 1, p, loc)

    def pmf(self, k: Any, p: Any, loc: Any = 0) -> Any:
        """The probability of k."""
        return binom.pmf(k, 1, p, loc)


class _MultivariateNormal(_Family):
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


class _Dirichlet(_Family):
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


def _scipys(self: Any, name: str) -> Any:
    """What has no derivative (random numbers, moments) is SciPy's own."""
    import scipy.stats

    if name.startswith("__"):
        raise AttributeError(name)
    own = next(k for k, v in globals().items() if v is self)
    return getattr(getattr(scipy.stats, own), name)


_Family.__getattr__ = _scipys  # type: ignore[attr-defined]
norm, expon, gamma, chi2, beta, t = _Norm(), _Expon(), _Gamma(), _Chi2(), _Beta(), _T()
cauchy, logistic, laplace = _Cauchy(), _Logistic(), _Laplace()
uniform, lognorm, weibull_min, invgamma = _Uniform(), _Lognorm(), _WeibullMin(), _InvGamma()
binom, bernoulli = _Binom(), _Bernoulli()
poisson, multivariate_normal, dirichlet = _Poisson(), _MultivariateNormal(), _Dirichlet()
