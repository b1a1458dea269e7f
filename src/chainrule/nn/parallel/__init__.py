"""Several devices: here there is one, so that the module itself does the work."""

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply

__all__ = ["DataParallel", "data_parallel", "parallel_apply"]


def __dir__() -> list[str]:
    return __all__
