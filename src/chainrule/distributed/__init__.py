"""Programs over many processes, on MPI: PyTorch's names. See docs/scale.md.

Start the same program several times, with ``mpiexec -n 4 python train.py`` or ``python -m chainrule run -n 4 train.py``; alone it is a world of one.
"""

from __future__ import annotations

from typing import Any

from . import nn
from .c10d import *
from .c10d import __all__ as _collectives
from .engine import ReduceOp
from .errors import DistBackendError, DistError, DistMismatchError, DistPeerError, DistTimeoutError
from .groups import (
    ProcessGroup,
    destroy_process_group,
    get_backend,
    get_global_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)
from .objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .wire import Work

group = ProcessGroup  # PyTorch's ``dist.group.WORLD``
GroupMember = ProcessGroup
reduce_op = ReduceOp
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor


def is_available() -> bool:
    """True: one process is a world of its own, and several need mpi4py."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    import importlib.util

    return importlib.util.find_spec("mpi4py") is not None


def is_nccl_available() -> bool:
    """False: computation is on the CPU."""
    return False


is_gloo_available = is_ucc_available = is_torchelastic_launched = is_nccl_available


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Which process of this machine this one is, as the launcher says."""
    import os

    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "PALS_LOCAL_RANKID"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is None:
        raise RuntimeError("get_node_local_rank: the launcher does not say; pass fallback_rank")
    return fallback_rank


_LATER = ("checkpoint", "optim")


def __getattr__(name: str) -> Any:
    if name in _LATER:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    *_collectives, *_LATER, "DistBackendError", "DistError", "DistMismatchError", "DistPeerError", "DistTimeoutError", "GroupMember",
    "ProcessGroup", "ReduceOp", "Work", "all_gather_object", "broadcast_object_list", "destroy_process_group", "gather_object",
    "get_backend", "get_global_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "new_group", "nn", "recv_object_list", "reduce_op", "scatter_object_list",
    "send_object_list",
]  # fmt: skip
