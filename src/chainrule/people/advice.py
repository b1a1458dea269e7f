"""What would avoid a NaN or an infinity, for the op that made it."""

from __future__ import annotations

from typing import Any

import numpy as np

_FORWARD = {
    "log": "log of 0 or of a negative number: log(x.clamp(min=tiny)), log1p(x) for log(1 + x), xlogy(p, p) for p log p, log_softmax",
    "log2": "log2 of 0 or of a negative number: clamp it from below, or xlogy for p log p",
    "log10": "log10 of 0 or of a negative number: clamp it from below",
    "log1p": "log1p of -1 or less: clamp it to above -1",
    "sqrt": "sqrt of a negative number, mostly a rounding error below 0: sqrt(x.clamp(min=0))",
    "rsqrt": "1/sqrt of 0 or of a negative number: rsqrt(x + eps)",
    "div": "division by zero: divide by where(b == 0, 1, b) and choose with where, or add an eps",
    "reciprocal": "1/0: add an eps, or choose with where(x == 0, 1, x) first",
    "exp": "exp overflows above 88 in float32 and 709 in float64: logsumexp, softmax, softplus, sigmoid or expm1 do it without; or clamp",
    "exp2": "overflow: subtract the maximum first",
    "expm1": "overflow: clamp the argument",
    "sinh": "overflow: clamp the argument",
    "cosh": "overflow: clamp the argument",
    "square": "overflow: scale before squaring; linalg.norm and hypot scale by themselves",
    "pow": "0 to a negative power, a negative number to a fractional one, or overflow: clamp the base",
    "acos": "acos outside of [-1, 1], mostly by rounding: clamp(-1, 1), or atan2(sin, cos)",
    "asin": "asin outside of [-1, 1], mostly by rounding: clamp(-1, 1), or atan2(sin, cos)",
    "atanh": "atanh at 1 or beyond: clamp to inside of (-1, 1)",
    "acosh": "acosh below 1: clamp(min=1)",
    "mul": "an overflow or 0 * inf: choose with where instead of multiplying with a mask",
    "sub": "inf - inf: subtract logarithms with logsumexp, or mask with where before",
    "add": "inf + (-inf), or an overflow: mask with where before adding",
    "sum": "an overflow of the sum: use float64, or mean() on scaled numbers",
    "logit": "logit of 0 or 1: logit(x, eps=1e-6)",
    "softmax": "a row of -inf has no softmax: scaled_dot_product_attention gives 0 for it; or where(mask.any(-1, True), s, 0)",
    "log_softmax": "a row of -inf has no softmax: mask whole rows out with where",
    "mean": "the mean of no elements: look at empty slices",
    "var": "the variance of one element: correction=0",
    "std": "the deviation of one element: correction=0",
    "inv": "a singular matrix: add a multiple of the identity, or linalg.pinv",
    "solve": "a singular matrix: add a multiple of the identity, or linalg.lstsq",
    "prod": "overflow: exp(sum(log(abs(x)))) with the sign apart",
    "to_dtype": "overflow in the smaller type: scale first, or bfloat16, which reaches as far as float32",
    "gammaln": "lgamma of 0 or a negative integer",
    "lgamma": "lgamma of 0 or a negative integer: it is infinite there",
    "digamma": "digamma at a pole: keep away from 0 and the negative integers",
    "tan": "tan at a pole",
    "matmul": "an overflow in a product: scale the factors, or a wider type",
}  # fmt: skip
_BACKWARD = {
    "sqrt": "sqrt has an infinite slope at 0: sqrt(x + eps), or where(x == 0, 1, x) inside and where outside",
    "rsqrt": "1/sqrt has an infinite slope at 0: rsqrt(x + eps)",
    "pow": "a power below 1 has an infinite slope at 0: (x + eps) ** p, or choose with where before the power",
    "log": "log has slope 1/x: at 0 it is infinite; log(x + eps), or xlogy",
    "div": "the slope of a/b has b squared below: divide by where(b == 0, 1, b) and choose with where",
    "acos": "acos has an infinite slope at -1 and 1: atan2(sin, cos), or clamp to inside",
    "asin": "asin has an infinite slope at -1 and 1: atan2(sin, cos), or clamp to inside",
    "atanh": "atanh has an infinite slope at -1 and 1: clamp to inside",
    "acosh": "acosh has an infinite slope at 1: keep above it",
    "exp": "exp overflows: subtract the maximum first (logsumexp, softmax)",
    "norm": "a norm has no slope at 0 in every direction: sqrt((x * x).sum() + eps)",
    "hypot": "hypot has no slope at (0, 0): add an eps",
    "std": "the deviation of equal numbers has an infinite slope: sqrt(var + eps)",
    "cbrt": "cbrt has an infinite slope at 0: choose with where before it",
    "reciprocal": "the slope of 1/x is -1/x^2: keep away from 0",
    "logit": "logit has an infinite slope at 0 and 1: logit(x, eps=1e-6)",
    "mul": "an infinite factor times a zero cotangent: choose with where instead of multiplying with a mask",
}  # fmt: skip


def advice(op: str, of: str, kind: str, args: list[Any]) -> str:
    """What to write instead."""
    if of:
        return _BACKWARD.get(of) or _BACKWARD.get(op) or _FORWARD.get(of) or _general(of, kind, args)
    return _FORWARD.get(op) or _general(op, kind, args)


def _general(op: str, kind: str, args: list[Any]) -> str:
    big = [
        a for a in args if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.size and np.nanmax(np.abs(a)) > 1e30
    ]
    if big:
        return "the numbers are near the end of their type: scale them, or use float64"
    return f"look at where {op} is not defined, and choose with where or clamp before it"
