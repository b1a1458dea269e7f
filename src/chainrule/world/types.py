"""Names for annotations."""

from __future__ import annotations

import builtins
import os
from collections.abc import Sequence
from typing import IO, Any, Union

from ..core.device import device
from ..core.dtypes import DType
from ..core.tensor import Size, Tensor

_int, _float, _bool, _str, _complex = builtins.int, builtins.float, builtins.bool, builtins.str, builtins.complex
_dtype, _device, _size, _TensorOrTensors = (
    DType,
    device,
    Union[Size, list[builtins.int], tuple[builtins.int, ...]],
    Union[Tensor, Sequence[Tensor]],
)
Number = Union[builtins.int, builtins.float, builtins.bool]
Device = Union[device, builtins.str, builtins.int, None]
FileLike = Union[builtins.str, os.PathLike[builtins.str], IO[builtins.bytes]]
IntLikeType = _int_like = builtins.int
FloatLikeType = builtins.float
BoolLikeType = builtins.bool
Storage = Any
_Number = (builtins.int, builtins.float, builtins.bool)
_TensorOrOptionalTensors = Union[Tensor, Sequence[Union[Tensor, None]]]
_TensorOrTensorsOrGradEdge = Any
_symsize, _dispatchkey, _layout = _size, builtins.str, Any
