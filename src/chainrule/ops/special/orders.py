"""Special functions of SciPy's that PyTorch lacks, with their derivatives in the argument: Bessel functions of any order, integrals, elliptic integrals.

The derivative in the order or in the shape parameters has no closed form: asking for it raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.declare import pointwise
from ...core.errors import ZERO, missing
from ...core.op import Op
from ...core.registry import PUBLIC
from ...core.samples import S, sample
from ..elementwise.elementary import exp, log

ORDERED: dict[str, Op] = {}


def _scipy(name: str) -> Callable[..., Any]:
    def body(*xs: Any) -> Any:
        import scipy.special

        y = getattr(scipy.special, name)(*xs)
        floats = [x.dtype for x in xs if isinstance(x, np.ndarray | np.generic)]
        return y.astype(floats[0]) if floats and y.dtype != floats[0] else y

    body.__name__ = name
    return body


def _unknown(name: str, what: str, count: int = 2) -> Callable[..., Any]:
    def of_two(t: Any, y: Any, a: Any, x: Any) -> Any:
        raise missing(name, f"derivative in {what}")

    def of_three(t: Any, y: Any, a: Any, b: Any, x: Any) -> Any:
        raise missing(name, f"derivative in {what}")

    return of_two if count == 2 else of_three


def _of_order(name: str, rule: Callable[[Any, Any, Any], Any]) -> None:
    """A function of an order and a number, by its derivative in the number."""
    ORDERED[name] = pointwise(
        f"scipy_{name}",
        _two(name),
        _unknown(name, "the order"),
        lambda t, y, v, x: t * rule(y, v, x),
        types="float real",
    )


def _two(name: str) -> Callable[..., Any]:
    f = _scipy(name)
    return lambda v, x: f(v, x)


def _of_one(name: str, rule: Any) -> None:
    f = _scipy(name)
    ORDERED[name] = pointwise(
        f"scipy_{name}", lambda x: f(x), rule if rule is ZERO else (lambda t, y, x: t * rule(y, x)), types="float real"
    )


def _call(name: str, *xs: Any) -> Any:
    return ORDERED[name].bind(*xs)


_of_order("jv", lambda y, v, x: (_call("jv", v - 1, x) - _call("jv", v + 1, x)) / 2)
_of_order("yv", lambda y, v, x: (_call("yv", v - 1, x) - _call("yv", v + 1, x)) / 2)
_of_order("iv", lambda y, v, x: (_call("iv", v - 1, x) + _call("iv", v + 1, x)) / 2)
_of_order("kv", lambda y, v, x: -(_call("kv", v - 1, x) + _call("kv", v + 1, x)) / 2)
_of_order("ive", lambda y, v, x: (_call("ive", v - 1, x) + _call("ive", v + 1, x)) / 2 - x.sign() * y)
_of_order("kve", lambda y, v, x: y - (_call("kve", v - 1, x) + _call("kve", v + 1, x)) / 2)


def _chi_square(v: Any, x: Any) -> Any:
    return exp((v / 2 - 1) * log(x) - x / 2 - (v / 2) * math.log(2) - _lgamma(v / 2))


def _student(v: Any, x: Any) -> Any:
    return exp(_lgamma((v + 1) / 2) - _lgamma(v / 2) - (v + 1) / 2 * log(1 + x * x / v)) / (v * math.pi) ** 0.5


def _lgamma(v: Any) -> Any:
    return math.lgamma(v) if isinstance(v, int | float) else PUBLIC["lgamma"](v)


# Distribution functions, by the number of degrees of freedom.
_of_order("stdtr", lambda y, v, x: _student(v, x))
_of_order("chdtr", lambda y, v, x: _chi_square(v, x))
_of_order("chdtrc", lambda y, v, x: -_chi_square(v, x))
_betainc = _scipy("betainc")
ORDERED["betainc"] = pointwise(
    "scipy_betainc",
    lambda a, b, x: _betainc(a, b, x),
    *[_unknown("betainc", f"the shape parameter {n}", 3) for n in "ab"],
    lambda t, y, a, b, x: t * exp((a - 1) * log(x) + (b - 1) * log(1 - x) + _lgamma(a + b) - _lgamma(a) - _lgamma(b)),
    types="float real",
)


def _of_complex(name: str, sign: int) -> None:
    """An error function where SciPy takes complex numbers and PyTorch does not."""
    f = _scipy(name)
    o = ORDERED[f"complex_{name}"] = pointwise(
        f"scipy_complex_{name}",
        lambda x: f(x),
        lambda t, y, x: t * (sign * 2 / math.sqrt(math.pi) * exp(-x * x)),
        types="float",
    )
    sample(f"scipy_complex_{name}", S(2, 3), f=lambda x: o.bind(x))


_of_complex("erf", 1)
_of_complex("erfc", -1)
sample("scipy_betainc", S(2, 3, low=0.1, high=0.9), f=lambda x: ORDERED["betainc"].bind(1.5, 2.5, x), cx=False)
_of_one("erfcinv", lambda y, x: -0.5 * math.sqrt(math.pi) * exp(y * y))
_of_one("dawsn", lambda y, x: 1 - 2 * x * y)
_of_one("expi", lambda y, x: exp(x) / x)
_of_one("exp1", lambda y, x: -exp(-x) / x)
_of_one("spence", lambda y, x: log(x) / (1 - x))
_of_one("ellipk", lambda y, m: (_call("ellipe", m) - (1 - m) * y) / (2 * m * (1 - m)))
_of_one("ellipe", lambda y, m: (y - _call("ellipk", m)) / (2 * m))
_of_one("gammasgn", ZERO)

for _n in ("jv", "yv", "iv", "kv", "ive", "kve", "stdtr", "chdtr", "chdtrc"):
    sample(f"scipy_{_n}", S(2, 3, low=0.5, high=3.0), f=lambda x, _o=ORDERED[_n]: _o.bind(1.5, x), cx=False)
for _n in ("erfcinv", "dawsn", "expi", "exp1", "spence", "ellipk", "ellipe", "gammasgn"):
    sample(f"scipy_{_n}", S(2, 3, low=0.2, high=0.8), f=lambda x, _o=ORDERED[_n]: _o.bind(x), cx=False)
