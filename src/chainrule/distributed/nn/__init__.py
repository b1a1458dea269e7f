"""Collectives with derivatives: :mod:`chainrule.distributed.nn.functional`."""

from . import functional
from .functional import (
    all_gather,
    all_reduce,
    all_to_all,
    all_to_all_single,
    broadcast,
    gather,
    recv,
    reduce,
    reduce_scatter,
    scatter,
    send,
)

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "functional", "gather", "recv", "reduce", "reduce_scatter",
    "scatter", "send",
]  # fmt: skip
