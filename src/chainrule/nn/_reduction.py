"""How losses are reduced: the names and numbers that PyTorch's code passes around."""

from __future__ import annotations

from .modules.thin import reduction_of


def get_enum(reduction: str) -> int:
    """The number of a reduction."""
    numbers = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}
    if reduction not in numbers:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return numbers[reduction]


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that two older flags ask for."""
    average, reduced = size_average is not False, reduce is not False
    name = ("mean" if average else "sum") if reduced else "none"
    return reduction_of(average, reduced, name) if emit_warning else name


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that two older flags ask for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
