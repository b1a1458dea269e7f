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
from .recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNBase, RNNCell, RNNCellBase
from .thin import *

__all__ = [
    "RNNCellBase",
    "RNNCell",
    "RNNBase",
    "LSTMCell",
    "GRUCell",
    "RNN",
    "LSTM",
    "GRU",
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
