"""Signal processing: the windows of ``signal.windows``."""

from . import windows

__all__ = ["windows"]


def __dir__() -> list[str]:
    return __all__
