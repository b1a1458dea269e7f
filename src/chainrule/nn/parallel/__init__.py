"""Several devices: here there is one, so that the module itself does the work."""

from ...world.refusal import refused_class
from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply

DistributedDataParallel = refused_class("nn.parallel.DistributedDataParallel", "processes")

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "parallel_apply"]


def __dir__() -> list[str]:
    return __all__
