"""``distributed``: one process computes here, and says so when asked."""

from __future__ import annotations

from typing import Any

from .refusal import refuse


def is_available() -> bool:
    """False: collectives over processes are not here."""
    return False


is_initialized = is_torchelastic_launched = is_nccl_available = is_gloo_available = is_mpi_available = is_available


def get_rank(group: Any = None) -> int:
    """0: the only process."""
    return 0


def get_world_size(group: Any = None) -> int:
    """1: the only process."""
    return 1


def barrier(*args: Any, **kw: Any) -> None:
    """Nothing: the only process waits for nobody."""


class ProcessGroup:
    """Of processes; a name for annotations."""


class ReduceOp:
    """How a collective combines."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "avg", "product", "min", "max"


init_process_group = refuse("distributed.init_process_group", "processes")
all_reduce = refuse("distributed.all_reduce", "processes")
all_gather = refuse("distributed.all_gather", "processes")
broadcast = refuse("distributed.broadcast", "processes")
reduce_scatter = refuse("distributed.reduce_scatter", "processes")
new_group = refuse("distributed.new_group", "processes")
