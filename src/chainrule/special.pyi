"""Special functions; filled by the ops."""

# Written by `make surface` from the declarations of the ops.
# ruff: noqa
# fmt: off
from builtins import bool as _bool, complex as _complex, float as _float, int as _int, object as _object, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NamedTuple, Self, overload

from .core.dtypes import DType
from .core.errors import ChainruleError
from . import Generator
from .core.tensor import Size, Tensor
from .return_types import CholeskyEx, Eig, Geqrf, Histogram, HistogramDD, InvEx, LDL, LDLEx, LUFactor, LUFactorEx, Lstsq, MinMax, PLU, QR, SVD, SVDV, Slogdet, SolveEx, Sorted, StdMean, TriangularSolve, ValuesIndices, VarMean
from .typing import DTypeLike, DeviceLike, Ints, Layout, Number, Operand

__all__ = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e", "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta"]

def airy_ai(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai, with ``Ai'' = x Ai``."""
def bessel_j0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function J_0."""
def bessel_j1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function J_1."""
def bessel_y0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function Y_0; -inf at 0, NaN for negative arguments."""
def bessel_y1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function Y_1; -inf at 0, NaN for negative arguments."""
def chebyshev_polynomial_t(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``T_n(x)``, with ``T_n(cos a) = cos(n a)``."""
def chebyshev_polynomial_u(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``U_n(x)``, with ``U_n(cos a) = sin((n+1) a) / sin(a)``."""
def chebyshev_polynomial_v(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``V_n(x)``, with ``V_n(cos a) = cos((n+1/2) a) / cos(a/2)``."""
def chebyshev_polynomial_w(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``W_n(x)``, with ``W_n(cos a) = sin((n+1/2) a) / sin(a/2)``."""
def digamma(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``d/dx lgamma(x)``; at 0 infinite, NaN at the negative integers."""
def entr(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``-x log(x)``, 0 at 0 and -inf for negative x; its derivative at 0 is infinite."""
def erf(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The error function ``2/sqrt(pi) * integral of exp(-s**2) from 0 to x``."""
def erfc(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 - erf(x)``, accurate in the right tail."""
def erfcx(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``exp(x**2) * erfc(x)``, the scaled complementary error function."""
def erfinv(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf on (-1, 1); infinite at the ends."""
def exp2(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``2**x``."""
def expit(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``1 / (1 + e**-x)``."""
def expm1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``e**x - 1``, accurate near 0."""
def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``P(a, x) = 1/Gamma(a) * integral of s**(a-1) e**-s from 0 to x``, with a = `input` and x = `other`."""
def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``Q(a, x) = 1 - P(a, x)``, with a = `input` and x = `other`, accurate in the right tail."""
def gammaln(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log|Gamma(x)|``; infinite at 0, -1, -2, ..."""
def hermite_polynomial_h(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """The physicists' Hermite polynomial ``H_n(x)``, with ``H_n' = 2n H_{n-1}``."""
def hermite_polynomial_he(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """The probabilists' Hermite polynomial ``He_n(x)``, with ``He_n' = n He_{n-1}``."""
def i0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I_0."""
def i0e(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|x|) I_0(x)``; at its kink at 0 the derivative is 0, between the two slopes."""
def i1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I_1; its derivative at 0 is 1/2."""
def i1e(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``exp(-|x|) I_1(x)``; its derivative at 0 is 1/2."""
def laguerre_polynomial_l(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Laguerre polynomial ``L_n(x)``."""
def legendre_polynomial_p(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Legendre polynomial ``P_n(x)``."""
def log1p(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log(1 + x)``, accurate near 0."""
def log_ndtr(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``log(ndtr(x))``, accurate in both tails."""
def log_softmax(input: Tensor, dim: _int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(softmax(x))`` over `dim`, without underflow."""
def logit(input: Tensor, eps: _float | None = None, *, out: Tensor | None = None) -> Tensor:
    """``log(x / (1 - x))``, NaN outside [0, 1]; with `eps`, x is first limited to [eps, 1 - eps], and constant beyond."""
def logsumexp(input: Tensor, dim: Ints, keepdim: _bool = False, *, out: Tensor | None = None) -> Tensor:
    """``log(sum(exp(input)))`` over `dim`, without overflow."""
def modified_bessel_i0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I_0."""
def modified_bessel_i1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I_1; its derivative at 0 is 1/2."""
def modified_bessel_k0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function K_0; infinite at 0, NaN for negative arguments."""
def modified_bessel_k1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function K_1; infinite at 0, NaN for negative arguments."""
def multigammaln(input: Tensor, p: _int, *, out: Tensor | None = None) -> Tensor:
    """``p (p-1)/4 log(pi) + sum over j < p of lgamma(x - j/2)``, the logarithm of the multivariate gamma function."""
def ndtr(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The distribution function of the standard normal, ``erfc(-x / sqrt(2)) / 2``."""
def ndtri(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """The quantile function of the standard normal, the inverse of ndtr; infinite at 0 and 1."""
def polygamma(n: _int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``(d/dx)**n digamma(x)`` for ``n = 0, 1, 2, ...``, differentiable to any order."""
def psi(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``d/dx lgamma(x)``; at 0 infinite, NaN at the negative integers."""
def round(input: Tensor, *, decimals: _int = 0, out: Tensor | None = None) -> Tensor:
    """The nearest integer, or number with so many decimals; halves go to the even one."""
def scaled_modified_bessel_k0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``exp(x) K_0(x)``; infinite at 0, NaN for negative arguments."""
def scaled_modified_bessel_k1(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``exp(x) K_1(x)``; infinite at 0, NaN for negative arguments."""
def shifted_chebyshev_polynomial_t(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``T_n(2x - 1)``, orthogonal on [0, 1]."""
def shifted_chebyshev_polynomial_u(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``U_n(2x - 1)``, orthogonal on [0, 1]."""
def shifted_chebyshev_polynomial_v(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``V_n(2x - 1)``, orthogonal on [0, 1]."""
def shifted_chebyshev_polynomial_w(input: Operand, n: Operand, *, out: Tensor | None = None) -> Tensor:
    """``W_n(2x - 1)``, orthogonal on [0, 1]."""
def sinc(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``sin(pi x) / (pi x)``, 1 at 0 and 0 at the other integers; smooth to any order."""
def softmax(input: Tensor, dim: _int, dtype: DTypeLike | None = None, *, out: Tensor | None = None) -> Tensor:
    """``exp(x) / sum(exp(x))`` over `dim`."""
def spherical_bessel_j0(input: Operand, *, out: Tensor | None = None) -> Tensor:
    """``sin(x) / x``, and 1 at 0."""
def xlog1py(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * log(1 + other)``, and 0 where `input` is 0 (NaN where `other` is NaN)."""
def xlogy(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """``input * log(other)``, and 0 where `input` is 0."""
def zeta(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor:
    """The Hurwitz zeta function ``sum over k >= 0 of (other + k)**-input``, differentiable in both arguments."""
