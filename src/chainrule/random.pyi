"""The state of the random number generator; filled by the ops."""

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

__all__ = ["fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]

def fork_rng(devices: Any = None, enabled: _bool = True, **_: Any) -> AbstractContextManager[None]:
    """Return the default generator to its present state at the end of the ``with`` block."""
def get_rng_state() -> Tensor:
    """The default generator's state."""
def initial_seed() -> _int:
    """The seed of the default generator."""
def manual_seed(seed: _int) -> Generator:
    """Seed the default generator."""
def seed() -> _int:
    """Seed the default generator afresh."""
def set_rng_state(new_state: Tensor) -> None:
    """Return the default generator to a state."""
