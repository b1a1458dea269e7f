"""Tensors in groups of one device and type."""

from __future__ import annotations

from typing import Any


def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> dict[Any, Any]:
    groups: dict[Any, Any] = {}
    for i, row in enumerate(zip(*tensorlistlist, strict=True)):
        first = next(t for t in row if t is not None)
        lists, where = groups.setdefault((first.device, first.dtype), ([[] for _ in row], []))
        for column, t in zip(lists, row, strict=True):
            column.append(t)
        where.append(i)
    return groups if with_indices else {k: (v[0], []) for k, v in groups.items()}


def _get_foreach_kernels_supported_devices() -> list[str]:
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    return ["cpu"]


def _device_has_foreach_support(device: Any) -> bool:
    return False


def _has_foreach_support(tensors: Any, device: Any) -> bool:
    return False
