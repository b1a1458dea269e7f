"""The functions that write to their argument, under their public names."""

from __future__ import annotations

from ...core.registry import METHODS, public
from . import arithmetic, complex, elementary, logarithms, parts, power, rounding, select  # noqa: F401 (their methods)

_IN_PLACE = """abs acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh ceil clamp clamp_max clamp_min clip
conj_physical cos cosh deg2rad exp exp2 expm1 fix floor frac gcd lcm ldexp log log10 log1p log2 nan_to_num neg negative rad2deg
reciprocal round rsqrt sigmoid sin sinh sqrt square tan tanh trunc xlogy"""
for _n in _IN_PLACE.split():
    public(f"{_n}_", out=False)(METHODS[f"{_n}_"])
