"""Several modules, each with its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..module import Module


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Any = None,
) -> list[Any]:
    """``[module(*input, **kwargs) for ...]``."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    options = [{} for _ in modules] if kwargs_tup is None else kwargs_tup
    return [
        m(*(x if isinstance(x, tuple | list) else (x,)), **kw)
        for m, x, kw in zip(modules, inputs, options, strict=True)
    ]


__all__ = ["parallel_apply"]
