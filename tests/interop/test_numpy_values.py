"""What NumPy's functions return inside a transform: NumPy's values, shapes and types, for arrays of every type, at one level and under vmap."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from chainrule.func import vjp, vmap
from chainrule.numpy import Array

RNG = np.random.default_rng(0)
OF_TYPE = {
    "float64": RNG.normal(size=(3, 4)),
    "float32": RNG.normal(size=(3, 4)).astype(np.float32),
    "float16": RNG.normal(size=(3, 4)).astype(np.float16),
    "complex128": RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4)),
    "complex64": (RNG.normal(size=(3, 4)) + 1j).astype(np.complex64),
    "int64": RNG.integers(-4, 5, (3, 4)),
    "int32": RNG.integers(1, 5, (3, 4)).astype(np.int32),
    "uint8": RNG.integers(1, 9, (3, 4)).astype(np.uint8),
    "bool": RNG.random((3, 4)) > 0.5,
}
AXES: list[dict[str, Any]] = [
    {},
    {"axis": 0},
    {"axis": (0, 1)},
    {"axis": (-1,), "keepdims": True},
    {"keepdims": True},
    {"axis": ()},
]
CALLS: dict[str, Callable[[Any], Any]] = {}
for _n in "sum prod mean var std max min ptp any all nansum nanmean nanmax nanmin nanvar nanstd count_nonzero".split():
    for _kw in AXES:
        CALLS[f"{_n} {_kw}"] = lambda x, n=_n, kw=_kw: getattr(np, n)(x, **kw)
for _n in "median nanmedian argmax argmin nanargmax".split():
    for _kw in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
        CALLS[f"{_n} {_kw}"] = lambda x, n=_n, kw=_kw: getattr(np, n)(x, **kw)
for _n in "sum prod mean std var cumsum cumprod".split():
    for _d in ("float32", "float64", "complex128"):
        CALLS[f"{_n} {_d}"] = lambda x, n=_n, d=_d: getattr(np, n)(x, axis=0, dtype=d)
for _n in "sum prod max min".split():
    CALLS[f"{_n} initial"] = lambda x, n=_n: getattr(np, n)(x, initial=2)
    CALLS[f"{_n} where"] = lambda x, n=_n: getattr(np, n)(x, axis=1, initial=2, where=[True, False, True, True])
for _n in "var std".split():
    CALLS[f"{_n} where"] = lambda x, n=_n: getattr(np, n)(x, axis=1, ddof=1, where=[True, False, True, True])
_UNARY = (
    "exp log sqrt square sin arctan negative absolute sign reciprocal conjugate isfinite logical_not cbrt rint signbit"
)
for _n in _UNARY.split():
    CALLS[_n] = getattr(np, _n)
_PAIRS = (
    "add subtract multiply divide power maximum fmin arctan2 hypot logaddexp copysign less equal logical_and logical_or logical_xor "
    "floor_divide remainder fmod heaviside float_power"
).split()
for _n in _PAIRS:
    _u = getattr(np, _n)
    for _what, _other in {"itself": None, "int": 2, "float": 1.5, "complex": 1j, "float32": np.float32(2)}.items():
        CALLS[f"{_n} {_what}"] = lambda x, u=_u, o=_other: u(x, x[::-1] if o is None else o)
    CALLS[f"{_n}.accumulate"] = lambda x, u=_u: u.accumulate(x, axis=1)
    CALLS[f"{_n}.outer"] = lambda x, u=_u: u.outer(x[0], x[1])
    if _n not in ("power", "arctan2"):  # NumPy's own loops take the elements in another order
        CALLS[f"{_n}.reduce"] = lambda x, u=_u: u.reduce(x, axis=1)
        CALLS[f"{_n}.reduce float64"] = lambda x, u=_u: u.reduce(x, axis=1, dtype=float)
        CALLS[f"{_n}.reduce twice"] = lambda x, u=_u: u.reduce(x, axis=(0, 1), keepdims=True)
        CALLS[f"{_n}.reduceat"] = lambda x, u=_u: u.reduceat(x, [0, 2, 1], axis=1)
for _n in "add sub mul truediv pow lt".split():
    for _what, _other in {"int": 3, "list": [1, 2, 3, 4], "float64": np.float64(1.5)}.items():
        CALLS[f"{_n} with {_what}"] = lambda x, n=_n, o=_other: getattr(operator, n)(x, o)
        CALLS[f"{_what} with {_n}"] = lambda x, n=_n, o=_other: getattr(operator, n)(o, x)
for _q in (0.3, [0.2, 0.5], np.float32(0.5)):
    CALLS[f"quantile {_q}"] = lambda x, q=_q: np.quantile(x, q, axis=1)
    CALLS[f"nanquantile {_q}"] = lambda x, q=_q: np.nanquantile(x, q, axis=0)
    CALLS[f"percentile {_q}"] = lambda x, q=_q: np.percentile(x, q)
CALLS |= {
    "quantile hazen": lambda x: np.quantile(x, [0.2, 0.5], method="hazen"),
    "quantile lower": lambda x: np.quantile(x, 0.3, method="lower"),
    "average": lambda x: np.average(x, axis=0, weights=[1, 2, 3], returned=True),
    "average alone": lambda x: np.average(x, axis=0, returned=True),
    "linspace": lambda x: np.linspace(x[0], 3, 3),
    "linspace step": lambda x: np.linspace(2, x[0, 0], 4, retstep=True),
    "where": lambda x: np.where(x, x, 1),
    "astype bool": lambda x: x.astype(bool),
    "polyfit": lambda x: np.polyfit(np.arange(4), x[0], 1),
    "fft": lambda x: np.fft.fft(x),
    "irfft": lambda x: np.fft.irfft(x),
    "rfft2": lambda x: np.fft.rfft2(x),
    "interp": lambda x: np.interp(x, [0, 1, 2], [1.0, 3, 2]),
    "bincount": lambda x: np.bincount([0, 1, 1, 3], weights=x[0]),
    "lexsort": lambda x: np.lexsort((x[0].real, x[1].real > 0)),
    "lexsort axis": lambda x: np.lexsort((x.real, x.real * 0), axis=0),
    "iscomplexobj": lambda x: np.iscomplexobj(x),
    "beyond the type": lambda x: (x < 300, x >= -1, x == 2**70, x > -(2**70)),
}
# What differs, by the first word: division of integers by zero raises; numpy.linalg has no halves; NumPy does not subtract truth values.
WITHOUT = {
    "bool": {"floor_divide", "remainder", "fmod", "quantile", "nanquantile", "percentile", "beyond"},
    "int64": {"floor_divide", "remainder", "fmod"},
    "float16": {"polyfit"},
}


def _inside(f: Callable[[Any], Any], x: np.ndarray, level: str) -> Any:
    if level == "vmap":
        return vmap(f)(np.stack([x, x]))
    got: list[Any] = []
    vjp(lambda v: (got.append(f(v)), v)[1], x)
    return got[0]


def _same(got: Any, want: Any, level: str, digits: float) -> None:
    if isinstance(want, tuple):
        for g, w in zip(got, want, strict=True):
            _same(g, w, level, digits)
        return
    if type(got) is Array:
        assert got.dtype == np.asarray(want).dtype
        t = got._t
        while t._interp is not None:
            t = t._value
        got = t._value
    got, want = np.asarray(got), np.asarray(want)
    if level == "vmap" and got.ndim > want.ndim:
        got = got[0]
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    digits = max(digits, 2e-2) if want.dtype == np.float16 else digits
    np.testing.assert_allclose(got, want, rtol=digits, atol=digits)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", OF_TYPE)
@pytest.mark.parametrize("level", ["vjp", "vmap"])
def test_values_and_types(level: str, dtype: str) -> None:
    x = OF_TYPE[dtype]
    if level == "vjp" and x.dtype.kind not in "fc":
        x = x.astype(float)
    digits = 2e-2 if dtype == "float16" else 2e-4 if dtype in ("float32", "complex64") else 1e-7
    wrong = []
    for name, f in CALLS.items():
        word = name.split(".")[0].split(" ")[0]
        if word in WITHOUT.get(dtype, ()):
            continue
        try:
            want = f(x.copy())
        except Exception as e:
            want = e
        try:
            got = _inside(f, x.copy(), level)
        except (NotImplementedError, RuntimeError) as e:
            if "complex" in str(e):  # NumPy orders and rounds complex numbers: refused here, by name
                continue
            got = e
        except Exception as e:
            got = e
        if isinstance(want, Exception) or isinstance(got, Exception):
            if isinstance(want, Exception) != isinstance(got, Exception):
                wrong.append(f"{name}: {got!r} for {want!r}")
            continue
        try:
            _same(got, want, level, digits)
        except AssertionError as e:
            wrong.append(f"{name}: {' '.join(str(e).split())[:160]}")
    assert not wrong, "\n".join(wrong)
