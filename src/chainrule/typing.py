"""Types for annotations: what the functions of chainrule take, for the code that calls them.

>>> from chainrule.typing import Operand
>>> def scale(x: chainrule.Tensor, by: Operand) -> chainrule.Tensor:
...     return x * by
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from .core.device import _Name as Layout
from .core.device import device
from .core.dtypes import DType
from .core.tensor import Tensor

Number: TypeAlias = bool | int | float | complex
Operand: TypeAlias = Tensor | Number | np.generic | np.ndarray[Any, Any]
"""What arithmetic takes: a tensor, a number, or NumPy's."""
Ints: TypeAlias = int | Sequence[int]
"""One dim or size, or several."""
DTypeLike: TypeAlias = DType | np.dtype[Any] | type[Number] | type[np.generic]
DeviceLike: TypeAlias = device | str

__all__ = ["DTypeLike", "DeviceLike", "Ints", "Layout", "Number", "Operand"]


def __dir__() -> list[str]:
    return __all__
