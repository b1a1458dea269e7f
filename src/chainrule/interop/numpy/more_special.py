"""More ufuncs of scipy.special, a line of derivatives each: hypergeometric functions, integrals, polynomials, distributions and their inverses.

SciPy computes the values. Each derivative is made of ops, and of these functions themselves, so that it has all further ones. None stands for a
derivative in an order or a shape that has no closed form: asking for it raises.
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
from ...core.tensor import Tensor
from ...ops.special.orders import ORDERED

OPS: dict[str, Op] = {}
MORE: dict[str, Callable[..., Any]] = {}  # what a ufunc of this name is on tensors
# The arguments that SciPy wants as integers.
WHOLE = {
    "eval_hermite": (0,),
    "eval_hermitenorm": (0,),
    "bdtr": (1,),
    "bdtrc": (1,),
    "nbdtr": (0, 1),
    "nbdtrc": (0, 1),
    "expn": (0,),
}
Partial = Callable[..., Any] | None


def _body(name: str, part: int | None) -> Callable[..., Any]:
    def body(*xs: Any) -> Any:
        import scipy.special

        whole = WHOLE.get(name, ())
        xs = tuple([np.asarray(x).astype(np.int64) if i in whole else x for i, x in enumerate(xs)])
        if (
            name == "hyp1f1"
        ):  # beyond, SciPy adds terms for good, and unless the series ends the result is infinite long before
            a, b, x = xs
            xs = (a, b, np.where((x > 1e12) & ~((a <= 0) & (np.floor(a) == a)), 1e12, x))
        y = getattr(scipy.special, name)(*xs)
        y = y if part is None else y[part]
        floats = [x.dtype for x in xs if isinstance(x, np.ndarray | np.generic) and x.dtype.kind in "fc"]
        return y.astype(floats[0]) if floats and y.dtype.kind == floats[0].kind and y.dtype != floats[0] else y

    return body


def _rule(name: str, i: int, p: Partial, n: int) -> Any:
    """The derivative in one argument as a rule, which shows by its parameters what it reads."""
    if p is None:

        def p(*xs: Any) -> Any:
            raise missing(name, f"derivative in argument {i + 1}")

    if p is ZERO:
        return ZERO
    return (
        lambda t, y, a: t * p(y, a),
        lambda t, y, a, b: t * p(y, a, b),
        lambda t, y, a, b, c: t * p(y, a, b, c),
        lambda t, y, a, b, c, d: t * p(y, a, b, c, d),
    )[n - 1]


def declare(name: str, *partials: Partial, types: str = "float real", part: int | None = None, key: str = "") -> Op:
    """A ufunc of SciPy's (or one of the results it has), with a derivative ``p(y, *xs)`` for each argument."""
    n, f, key = len(partials), _body(name, part), key or name
    body = (lambda a: f(a), lambda a, b: f(a, b), lambda a, b, c: f(a, b, c), lambda a, b, c, d: f(a, b, c, d))[n - 1]
    o = OPS[key] = pointwise(f"scipy_{key}", body, *[_rule(key, i, p, n) for i, p in enumerate(partials)], types=types)
    if part is None:
        MORE[name] = o.bind
    return o


def _p(name: str, *xs: Any) -> Any:
    return PUBLIC[name](*xs)


def _of(name: str, *xs: Any) -> Any:
    return (OPS.get(name) or ORDERED[name]).bind(*xs)


def _exp(x: Any) -> Any:
    return _p("exp", x)


def _beta(a: Any, b: Any) -> Any:
    return _exp(_p("lgamma", a) + _p("lgamma", b) - _p("lgamma", a + b))


ROOT_PI = math.sqrt(math.pi)

# -- hypergeometric functions, and what is best said with them ---------------------------------------------------------------

declare("hyp0f1", None, lambda y, v, x: _of("hyp0f1", v + 1, x) / v)
declare("hyp1f1", None, None, lambda y, a, b, x: a / b * _of("hyp1f1", a + 1, b + 1, x))
declare("hyp2f1", None, None, None, lambda y, a, b, c, x: a * b / c * _of("hyp2f1", a + 1, b + 1, c + 1, x))
declare("hyperu", None, None, lambda y, a, b, x: -a * _of("hyperu", a + 1, b + 1, x))
declare("exprel", lambda y, x: _of("hyp1f1", 2.0, 3.0, x) / 2)
declare("wrightomega", lambda y, x: y / (1 + y))
declare("wofz", lambda y, z: -2 * z * y + 2j / ROOT_PI, types="float")


def _lambert(z: Any, *, k: int) -> Any:
    from scipy.special import lambertw

    y = lambertw(z, k)
    return y.astype(z.dtype) if isinstance(z, np.ndarray) else y


OPS["lambertw"] = pointwise(
    "scipy_lambertw", _lambert, lambda t, y, z, *, k: t / (z + _exp(y)), types="float", static=True
)
MORE["_lambertw"] = lambda z, k, tol: OPS["lambertw"].bind(z, k=int(k.concrete("lambertw: the branch")))

# -- integrals ---------------------------------------------------------------------------------------------------------------


def _of_results(name: str, *partials: Any) -> None:
    """A ufunc of one argument with several results, by the derivative of each."""
    ops = [declare(name, p, part=i, key=f"{name}_{i}") for i, p in enumerate(partials)]
    MORE[name] = lambda x: tuple([o.bind(x) for o in ops])


_of_results("sici", lambda y, x: _p("sinc", x / math.pi), lambda y, x: x.cos() / x)
_of_results("shichi", lambda y, x: x.sinh() / x, lambda y, x: x.cosh() / x)
_of_results("fresnel", lambda y, x: (x * x * (math.pi / 2)).sin(), lambda y, x: (x * x * (math.pi / 2)).cos())
_of_results(
    "airy",
    lambda y, x: _of("airy_1", x),
    lambda y, x: x * _of("airy_0", x),
    lambda y, x: _of("airy_3", x),
    lambda y, x: x * _of("airy_2", x),
)
declare("expn", None, lambda y, n, x: -_p("where", n > 0, _of("expn", _p("clamp", n, 1) - 1, x), (1 + 1 / x) * y))
declare(
    "ellipkinc",
    lambda y, u, m: 1 / (1 - m * u.sin() ** 2).sqrt(),
    lambda y, u, m: (
        (_of("ellipeinc", u, m) - (1 - m) * y) / (2 * m * (1 - m))
        - (2 * u).sin() / (4 * (1 - m) * (1 - m * u.sin() ** 2).sqrt())
    ),
)
declare(
    "ellipeinc",
    lambda y, u, m: (1 - m * u.sin() ** 2).sqrt(),
    lambda y, u, m: (y - _of("ellipkinc", u, m)) / (2 * m),
)
declare(
    "owens_t",
    lambda y, h, a: -_exp(-h * h / 2) * _p("erf", a * h / math.sqrt(2)) / (2 * math.sqrt(2 * math.pi)),
    lambda y, h, a: _exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)),
)


def _struve(sign: int, name: str) -> Partial:
    return lambda y, v, x: (
        (_of(name, v - 1, x) + sign * _of(name, v + 1, x) + (x / 2) ** v / (ROOT_PI * _exp(_p("lgamma", v + 1.5)))) / 2
    )


declare("struve", None, _struve(-1, "struve"))
declare("modstruve", None, _struve(1, "modstruve"))


def _voigt(of: Callable[..., Any]) -> Partial:
    """Derivatives of ``Re w(z) / (s sqrt(2 pi))``, ``z = (x + i g) / (s sqrt(2))``, by z and ``w'(z)``."""

    def partial(y: Any, x: Any, s: Any, g: Any) -> Any:
        z = _p("complex", *_p("broadcast_tensors", x, g)) / (s * math.sqrt(2))
        dw = -2 * z * _of("wofz", z) + 2j / ROOT_PI
        return of(y, z, dw, s) / (s * math.sqrt(2 * math.pi))

    return partial


declare(
    "voigt_profile",
    _voigt(lambda y, z, dw, s: dw.real / (s * math.sqrt(2))),
    _voigt(lambda y, z, dw, s: -y * math.sqrt(2 * math.pi) - (dw * z).real / s),
    _voigt(lambda y, z, dw, s: -dw.imag / (s * math.sqrt(2))),
)

# -- powers and factorials ---------------------------------------------------------------------------------------------------

declare("round", ZERO)
declare("powm1", lambda y, a, b: b * _p("pow", a, b - 1), lambda y, a, b: (y + 1) * a.log())
declare(
    "poch",
    lambda y, z, m: y * (_p("digamma", z + m) - _p("digamma", z)),
    lambda y, z, m: y * _p("digamma", z + m),
)


def boxcox(x: Any, l: Any) -> Any:
    """``(x^l - 1) / l``, log x at l = 0."""
    return x.log() * _of("exprel", l * x.log())


def inv_boxcox(x: Any, l: Any) -> Any:
    """``(1 + l x)^(1/l)``, exp x at l = 0."""
    return _exp(_log_of(x, l))


def _log_of(x: Any, l: Any) -> Any:
    """``log(1 + l x) / l``."""
    return x * _of("hyp2f1", 1.0, 1.0, 2.0, -l * x)


MORE |= {
    "cbrt": lambda x: x.sgn() * x.abs().pow(1 / 3),
    "boxcox": boxcox,
    "boxcox1p": lambda x, l: x.log1p() * _of("exprel", l * x.log1p()),
    "inv_boxcox": inv_boxcox,
    "inv_boxcox1p": lambda x, l: _log_of(x, l).expm1(),
    "cotdg": lambda x: 1 / (x * (math.pi / 180)).tan(),
}

# -- orthogonal polynomials: a derivative is one of the next family -------------------------------------------------------------


def _lower(name: str, n: Any, *rest: Any) -> Any:
    """The polynomial of the degree below, 0 below degree 0."""
    return _p("where", n > 0, _of(name, _p("clamp", n, 1) - 1, *rest), 0.0)


declare("eval_gegenbauer", None, None, lambda y, n, a, x: 2 * a * _lower("eval_gegenbauer", n, a + 1, x))
declare(
    "eval_jacobi",
    None,
    None,
    None,
    lambda y, n, a, b, x: (n + a + b + 1) / 2 * _lower("eval_jacobi", n, a + 1, b + 1, x),
)
declare("eval_genlaguerre", None, None, lambda y, n, a, x: -_lower("eval_genlaguerre", n, a + 1, x))
declare("eval_legendre", None, lambda y, n, x: _lower("eval_gegenbauer", n, 1.5, x))
declare("eval_chebyu", None, lambda y, n, x: 2 * _lower("eval_gegenbauer", n, 2.0, x))
declare("eval_chebyt", None, lambda y, n, x: n * _lower("eval_chebyu", n, x))
declare("eval_laguerre", None, lambda y, n, x: -_lower("eval_genlaguerre", n, 1.0, x))
declare("eval_hermite", None, lambda y, n, x: 2 * n * _lower("eval_hermite", n, x))
declare("eval_hermitenorm", None, lambda y, n, x: n * _lower("eval_hermitenorm", n, x))

# -- distribution functions and their inverses -----------------------------------------------------------------------------------


def _poisson(k: Any, m: Any) -> Any:
    return _exp(_p("xlogy", k.floor(), m) - m - _p("lgamma", k.floor() + 1))


def _binomial(k: Any, n: Any, p: Any) -> Any:
    """``(n - k) C(n, k) p^k (1 - p)^(n - k - 1)``."""
    k = k.floor()
    return _exp(_p("xlogy", k, p) + _p("special.xlog1py", n - k - 1, -p)) / _beta(k + 1, n - k)


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    return _exp(_p("xlogy", a - 1, x) + _p("special.xlog1py", b - 1, -x)) / _beta(a, b)


def _gamma_density(a: Any, x: Any) -> Any:
    return _exp(_p("xlogy", a - 1, x) - x - _p("lgamma", a))


declare("pdtr", None, lambda y, k, m: -_poisson(k, m))
declare("pdtrc", None, lambda y, k, m: _poisson(k, m))
declare("bdtr", None, None, lambda y, k, n, p: -_binomial(k, n, p))
declare("bdtrc", None, None, lambda y, k, n, p: _binomial(k, n, p))
declare("nbdtr", None, None, lambda y, k, n, p: _beta_density(n, k.floor() + 1, p))
declare("nbdtrc", None, None, lambda y, k, n, p: -_beta_density(n, k.floor() + 1, p))
declare("betaincc", None, None, lambda y, a, b, x: -_beta_density(a, b, x))
declare("betaincinv", None, None, lambda y, a, b, p: 1 / _beta_density(a, b, y))
declare("betainccinv", None, None, lambda y, a, b, p: -1 / _beta_density(a, b, y))
declare("gammaincinv", None, lambda y, a, p: 1 / _gamma_density(a, y))
declare("gammainccinv", None, lambda y, a, p: -1 / _gamma_density(a, y))
MORE |= {
    "gdtr": lambda a, b, x: _p("special.gammainc", b, a * x),
    "gdtrc": lambda a, b, x: _p("special.gammaincc", b, a * x),
    "fdtr": lambda a, b, x: _of("betainc", a / 2, b / 2, a * x / (b + a * x)),
    "fdtrc": lambda a, b, x: _of("betainc", b / 2, a / 2, b / (b + a * x)),
    "btdtr": lambda a, b, x: _of("betainc", a, b, x),
    "chdtri": lambda v, p: 2 * _of("gammainccinv", v / 2, p),
}

# -- samples ---------------------------------------------------------------------------------------------------------------------


def _constants(*xs: float) -> list[Tensor]:
    return [Tensor(np.asarray(x, float)) for x in xs]


_ONE = "hyp0f1 expn struve modstruve poch pdtr pdtrc gammaincinv gammainccinv"
_DEGREE = "eval_legendre eval_chebyu eval_chebyt eval_laguerre eval_hermite eval_hermitenorm"
for _n in _ONE.split():
    sample(f"scipy_{_n}", S(2, 3, low=0.3, high=0.8), f=lambda x, _o=OPS[_n]: _o.bind(*_constants(2.0), x), cx=False)
for _n in _DEGREE.split():
    sample(f"scipy_{_n}", S(2, 3, low=-0.8, high=0.8), f=lambda x, _o=OPS[_n]: _o.bind(*_constants(3), x), cx=False)
for (
    _n
) in "hyp1f1 hyperu eval_gegenbauer eval_genlaguerre betaincc betaincinv betainccinv bdtr bdtrc nbdtr nbdtrc".split():
    _k = (2.0, 5.0) if _n.startswith(("b", "n")) else (2, 1.5) if _n.startswith("eval") else (1.5, 2.5)
    sample(
        f"scipy_{_n}", S(2, 3, low=0.2, high=0.8), f=lambda x, _o=OPS[_n], _k=_k: _o.bind(*_constants(*_k), x), cx=False
    )
for _n in ("exprel", "wrightomega", "round", *[k for k in OPS if k[:-2] in ("sici", "shichi", "fresnel", "airy")]):
    sample(f"scipy_{_n}", S(2, 3, low=0.2, high=0.4), f=lambda x, _o=OPS[_n]: _o.bind(x), cx=False)
for _n in ("ellipkinc", "ellipeinc", "owens_t", "powm1"):
    _s = S(2, 3, low=0.2, high=0.8), S(2, 3, low=0.2, high=0.8)
    sample(f"scipy_{_n}", *_s, f=lambda x, y, _o=OPS[_n]: _o.bind(x, y), cx=False)
sample(
    "scipy_hyp2f1", S(2, 3, low=0.2, high=0.7), f=lambda x: OPS["hyp2f1"].bind(*_constants(0.5, 1.5, 2.5), x), cx=False
)
sample(
    "scipy_eval_jacobi",
    S(2, 3, low=-0.7, high=0.7),
    f=lambda x: OPS["eval_jacobi"].bind(*_constants(3, 0.5, 1.5), x),
    cx=False,
)
sample("scipy_lambertw", S(2, 3), f=lambda x: OPS["lambertw"].bind(x + 1j, k=1), cx=False)
sample("scipy_wofz", S(2, 3), f=lambda x: OPS["wofz"].bind(x + 1j), cx=False)
_s3 = S(2, 3), S(2, 3, low=0.5, high=1.5), S(2, 3, low=0.5, high=1.5)
sample("scipy_voigt_profile", *_s3, f=lambda x, s, g: OPS["voigt_profile"].bind(x, s, g), cx=False)
