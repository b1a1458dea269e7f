"""Ufuncs of scipy.special that are compositions of ops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from .more_special import MORE


def _p(name: str) -> Callable[..., Any]:
    return PUBLIC[name]


def gamma(x: Tensor) -> Tensor:
    """``Gamma(x) = sign exp(log |Gamma(x)|)``, with the sign of the negative axis."""
    s = _p("where")((x < 0) & (_p("remainder")(x.floor(), 2.0) != 0), -1.0, 1.0)
    return s.to(x.dtype) * _p("lgamma")(x).exp()


def rgamma(x: Tensor) -> Tensor:
    """``1 / Gamma(x)``."""
    return 1 / gamma(x)


def betaln(a: Any, b: Any) -> Tensor:
    """``log |B(a, b)|``."""
    g = _p("lgamma")
    return g(a) + g(b) - g(a + b)


def beta(a: Any, b: Any) -> Tensor:
    """``Gamma(a) Gamma(b) / Gamma(a + b)``."""
    return gamma(a) * gamma(b) / gamma(a + b)


def binom(n: Any, k: Any) -> Tensor:
    """The binomial coefficient of real numbers."""
    return 1 / ((n + 1) * beta(n - k + 1, k + 1))


def expit(x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return _p("sigmoid")(x)


def log_expit(x: Tensor) -> Tensor:
    """``log(1 / (1 + exp(-x)))``."""
    return _p("nn.functional.logsigmoid")(x)


def exp10(x: Tensor) -> Tensor:
    """``10 ** x``."""
    return (x * math.log(10.0)).exp()


def cosm1(x: Tensor) -> Tensor:
    """``cos(x) - 1``, as ``-2 sin(x/2)^2``."""
    s = (x * 0.5).sin()
    return -2 * s * s


def kl_div(x: Tensor, y: Tensor) -> Tensor:
    """``x log(x/y) - x + y``."""
    return _p("xlogy")(x, x / y) - x + y


def rel_entr(x: Tensor, y: Tensor) -> Tensor:
    """``x log(x/y)``."""
    return _p("xlogy")(x, x / y)


def huber(delta: Any, r: Any) -> Tensor:
    """Quadratic near 0, linear beyond `delta`."""
    return _p("where")(r.abs() <= delta, 0.5 * r * r, delta * (r.abs() - 0.5 * delta))


def pseudo_huber(delta: Any, r: Any) -> Tensor:
    """``delta^2 (sqrt(1 + (r/delta)^2) - 1)``."""
    q = r / delta
    return delta * delta * (((1 + q * q).sqrt()) - 1)


def degrees_of(f: str) -> Callable[[Tensor], Tensor]:
    """A function of degrees."""
    return lambda x: _p(f)(x * (math.pi / 180))


def real_or_complex(name: str) -> Callable[[Tensor], Tensor]:
    """A function that PyTorch has for real numbers alone."""

    def f(x: Tensor) -> Tensor:
        from ...ops.special.orders import ORDERED

        return ORDERED[f"complex_{name}"].bind(x) if x.dtype.is_complex else _p(f"special.{name}")(x)

    return f


COMPOSED_SPECIAL: dict[str, Callable[..., Any]] = MORE | {
    "erf": real_or_complex("erf"),
    "erfc": real_or_complex("erfc"),
    "gamma": gamma,
    "rgamma": rgamma,
    "beta": beta,
    "betaln": betaln,
    "binom": binom,
    "log_expit": log_expit,
    "exp10": exp10,
    "cosm1": cosm1,
    "kl_div": kl_div,
    "rel_entr": rel_entr,
    "huber": huber,
    "pseudo_huber": pseudo_huber,
    "sindg": degrees_of("sin"),
    "cosdg": degrees_of("cos"),
    "tandg": degrees_of("tan"),
    "radian": lambda d, m, s: (d + m / 60 + s / 3600) * (np.pi / 180),
}
