"""Which element types a pointwise op takes, and which it computes in: PyTorch's promotion.

``types=`` of a declaration is a few words, checked when the op is declared:

    same    the common type of the arguments (the default)
    float   the same, with integers turned into the default float
    none    the arguments as they are
    real    complex numbers are refused: the op has no meaning for them
    count   truth values count as integers
    narrow  16-bit floats are not computed in a wider type
    choice  the first argument is a condition, and takes no part
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes as dt
from .payload import PAYLOADS
from .sizes import Ragged
from .tensor import Tensor

ndarray = np.ndarray
NUMBERS = (bool, int, float, complex)
FLOAT_NUMS = frozenset(d.np.num for d in (dt.float32, dt.float64, dt.complex64, dt.complex128))
REAL_NUMS = frozenset(d.np.num for d in (dt.float32, dt.float64))
INT_NUMS = frozenset(d.np.num for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64))
COMPLEX_NUMS = frozenset(d.np.num for d in (dt.complex32, dt.complex64, dt.complex128))
ALL_NUMS = FLOAT_NUMS | INT_NUMS | frozenset((dt.bool_.np.num,))
WORDS = ("same", "float", "none", "real", "count", "narrow", "choice")
ARGUMENTS = ("input", "other", "max")  # what PyTorch calls the operands


class Types:
    """The declared ``types=`` of an op, as a check of its arguments and a conversion of their values."""

    def __init__(self, name: str, words: str) -> None:
        given = words.split()
        for w in given:
            if w not in WORDS:
                raise ValueError(f"op {name}: types={words!r} has the unknown word {w!r}; there are {', '.join(WORDS)}")
        how = [w for w in given if w in WORDS[:3]]
        if len(how) > 1:
            raise ValueError(f"op {name}: types={words!r} must have one of {', '.join(WORDS[:3])}")
        self.name, self.promote = name, how[0] if how else "same"
        self.real, self.count, self.narrow, self.choice = (w in given for w in WORDS[3:])

    def fast(self) -> frozenset[int]:
        """The types of arrays that need neither a check nor a conversion."""
        if self.promote == "none" or self.narrow or self.choice:
            return frozenset()
        nums = FLOAT_NUMS if self.promote == "float" else ALL_NUMS
        return nums - (COMPLEX_NUMS if self.real else frozenset()) - ({dt.bool_.np.num} if self.count else frozenset())

    def common(self, args: Any, ranks: Any) -> dt.DType:
        """The type of the result, from arguments and the ranks they have for whoever calls the op (-1: a number)."""
        pairs = list(zip(args, ranks, strict=True))[self.choice :]
        return dt.result_of((a.dtype, r) if isinstance(a, Tensor) else (dt.scalar_dtype(a), -1) for a, r in pairs)

    def values(self, args: Any) -> tuple[list[Any], dt.DType | None]:
        """The values of the arguments in the type to compute in, and the type that a result computed in another has to have."""
        if self.promote == "none":
            return [a._value if isinstance(a, Tensor) else a for a in args], None
        if self.real:
            self._refuse_complex(args)
        vals: list[Any] = []
        kinds: list[tuple[dt.DType, int]] = []
        for a in args:
            if isinstance(a, Tensor):
                a = a._value
            elif isinstance(a, np.generic):
                a = np.asarray(a)
            if isinstance(a, ndarray) or type(a) in PAYLOADS:
                kinds.append((dt.FROM_NP[a.dtype], a.ndim))
            elif isinstance(a, NUMBERS):
                kinds.append((dt.scalar_dtype(a), -1))
            elif isinstance(a, Ragged):
                kinds.append((dt.int64, -1))
            else:
                raise TypeError(f"{self.name}: expected a tensor or a number, got {type(a).__name__}")
            vals.append(a)
        d = dt.result_of(kinds[self.choice :])
        if self.promote == "float" and d.category < dt.FLOAT:
            d = dt.get_default_dtype()
        elif self.count and d is dt.bool_:
            d = dt.int64
        work = d.np if self.narrow or self.choice else dt.WORK.get(d.np, d.np)
        for i in range(self.choice, len(vals)):
            v = vals[i]
            if isinstance(v, NUMBERS):
                vals[i] = as_scalar(v, work)
            elif getattr(v, "dtype", work) != work:
                vals[i] = v.astype(work)
        return vals, d if work is not d.np else None

    def _refuse_complex(self, args: Any) -> None:
        for i, a in enumerate(args):
            if a.dtype.category == dt.COMPLEX if isinstance(a, Tensor) else isinstance(a, complex):
                name = ARGUMENTS[i] if i < len(ARGUMENTS) else f"number {i + 1}"
                raise NotImplementedError(
                    f"{self.name}: not implemented for complex numbers, which have no order (argument {name})"
                )


def as_scalar(v: Any, work: Any) -> Any:
    """A number as one of a NumPy type."""
    try:
        return np.dtype(work).type(v)
    except (OverflowError, TypeError):
        return np.asarray(v).astype(work)
