"""The modules, in files named as PyTorch's."""

from . import (
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    recurrent,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)
from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .recurrent import *
from .sparse import *
from .transformer import *
from .upsampling import *

_PARTS = (
    activation, adaptive, batchnorm, channelshuffle, container, conv, distance, dropout, flatten, fold, instancenorm, linear, loss,
    normalization, padding, pixelshuffle, pooling, recurrent, sparse, transformer, upsampling,
)  # fmt: skip
__all__ = sorted({"Module", *(name for part in _PARTS for name in part.__all__)} - {"NonDynamicallyQuantizableLinear"})


def __dir__() -> list[str]:
    return __all__
