"""The modules."""

from ..module import Module
from . import thin
from .containers import ModuleDict, ModuleList, ParameterDict, ParameterList, Sequential
from .linear import Bilinear, Embedding, Flatten, Identity, Linear, Unflatten
from .normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    GroupNorm,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    LayerNorm,
    RMSNorm,
)
from .thin import *

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "Bilinear",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleDict",
    "ModuleList",
    "ParameterDict",
    "ParameterList",
    "RMSNorm",
    "Sequential",
    "Unflatten",
]
__all__ += thin.__all__


def __dir__() -> list[str]:
    return __all__
