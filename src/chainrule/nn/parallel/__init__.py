"""A module on several devices (here there is one) or in several processes."""

from typing import TYPE_CHECKING, Any

from .data_parallel import DataParallel, data_parallel
from .parallel_apply import parallel_apply

if TYPE_CHECKING:
    from .distributed import DistributedDataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel", "parallel_apply"]


def __getattr__(name: str) -> Any:
    """What needs processes is loaded when it is asked for."""
    if name in ("DistributedDataParallel", "distributed"):
        import importlib

        module = importlib.import_module(f"{__name__}.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
