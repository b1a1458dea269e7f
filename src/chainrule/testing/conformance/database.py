"""Entries of PyTorch's operator database: names, dtypes to judge at, what may be differentiated, and their samples."""

from __future__ import annotations

import fnmatch
import functools
import random
import warnings
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .families import family_of
from .tree import leaves

_INTEGRAL = (torch.int64, torch.bool, torch.int32, torch.uint8)


@dataclass(frozen=True)
class Entry:
    """One row of the matrix: a database entry under a unique name."""

    name: str
    op: Any
    family: str

    @functools.cached_property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        """float64 and complex128 where the entry has them, one integer or bool dtype where it has neither."""
        wide = tuple(d for d in (torch.float64, torch.complex128) if d in self.op.dtypes)
        if wide:
            return wide
        return (
            tuple(d for d in _INTEGRAL if d in self.op.dtypes)[:1]
            or tuple(sorted((d for d in self.op.dtypes if d.is_floating_point), key=str))[:1]
        )

    def differentiable_at(self, dtype: torch.dtype) -> bool:
        """Whether the database says that the entry has a derivative at this dtype."""
        return bool(self.op.supports_autograd) and dtype in self.op.supported_backward_dtypes("cpu")

    @functools.cached_property
    def gradient_untrusted(self) -> bool:
        """Whether the database itself expects PyTorch's gradient to fail its numerical check."""
        return any(
            getattr(d, "cls_name", None) == "TestBwdGradients"
            and d.test_name == "test_fn_grad"
            and d.active_if
            and d.device_type in (None, "cpu")
            for d in self.op.decorators
        )

    @property
    def is_pointwise(self) -> bool:
        """Whether an element of the result depends on one element of each argument, wherever these lie in memory."""
        return type(self.op).__name__ in ("UnaryUfuncInfo", "BinaryUfuncInfo")

    @property
    def differentiable(self) -> bool:
        return any(self.differentiable_at(d) for d in self.dtypes)


def entry_name(op: Any) -> str:
    """``name`` or ``name.variant``, unique within the database."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


@functools.cache
def all_entries() -> tuple[Entry, ...]:
    """Every entry of the database except the jiterator ones, which compile CUDA code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    entries = [Entry(entry_name(op), op, family_of(op)) for op in op_db if "jiterator" not in op.name]
    assert len({e.name for e in entries}) == len(entries), "entry names are not unique"
    return tuple(entries)


def select_entries(
    only: Sequence[str] = (), families: Sequence[str] = (), shard: tuple[int, int] = (0, 1)
) -> list[Entry]:
    """Entries whose name (or name without variant) matches one of the globs, of the given families, in shard i of n."""
    entries = all_entries()
    if only:
        unmatched = [p for p in only if not any(_matches(e, p) for e in entries)]
        if unmatched:
            raise SystemExit(f"no entry of the operator database matches {', '.join(unmatched)}")
        entries = tuple(e for e in entries if any(_matches(e, p) for p in only))
    if families:
        known = {e.family for e in all_entries()}
        unknown = sorted(set(families) - known)
        if unknown:
            raise SystemExit(f"no family {', '.join(unknown)}; there are: {', '.join(sorted(known))}")
        entries = tuple(e for e in entries if e.family in families)
    index, count = shard
    return [e for i, e in enumerate(entries) if i % count == index]


def _matches(entry: Entry, pattern: str) -> bool:
    return fnmatch.fnmatchcase(entry.name, pattern) or fnmatch.fnmatchcase(entry.op.name, pattern)


def seed_for(seed: int, *parts: object) -> int:
    """A seed that depends on the run's seed and on the parts only, never on order or sharding."""
    return zlib.crc32("/".join(map(str, (seed, *parts))).encode())


def seed_everything(value: int) -> None:
    torch.manual_seed(value)
    np.random.seed(value % 2**32)
    random.seed(value)


def samples_of(entry: Entry, dtype: torch.dtype, count: int, seed: int) -> Iterator[tuple[int, Any]]:
    """(index, sample) of at most `count` samples of the entry (0: all), spread over its list; see `choose`."""
    seed_everything(seed_for(seed, entry.name, dtype))
    samples = list(entry.op.sample_inputs("cpu", dtype, requires_grad=entry.differentiable_at(dtype), set_seed=False))
    for i in choose([_is_trivial(s) for s in samples], count):
        yield i, samples[i]


def choose(trivial: Sequence[bool], count: int) -> list[int]:
    """Indices of `count` samples, spread over those with something to compute; from three on, one trivial one too."""
    if count <= 0 or count >= len(trivial):
        return list(range(len(trivial)))
    full = [i for i, t in enumerate(trivial) if not t]
    empty = [i for i, t in enumerate(trivial) if t]
    few = min(len(empty), max(count - len(full), 1 if count >= 3 else 0))
    return sorted(_spread(full, count - few) + _spread(empty, few))


def _spread(items: Sequence[int], count: int) -> list[int]:
    return [items[i * len(items) // count] for i in range(count)]


def _is_trivial(sample: Any) -> bool:
    """No elements, or scalars only: such samples test edge cases and nothing else."""
    sizes = [x.numel() for x in leaves((sample.input, sample.args, sample.kwargs)) if isinstance(x, torch.Tensor)]
    return not sizes or min(sizes) == 0 or max(sizes) == 1


def references_of(entry: Entry, dtype: torch.dtype, seed: int) -> Iterator[tuple[int, Any]]:
    """(index, sample) of the entry's reference inputs."""
    seed_everything(seed_for(seed, entry.name, dtype, "reference"))
    yield from enumerate(entry.op.reference_inputs("cpu", dtype, requires_grad=False, set_seed=False))


def errors_of(entry: Entry, seed: int) -> Iterator[tuple[int, Any]]:
    """(index, error input) of the entry's inputs that must raise."""
    if entry.op.error_inputs_func is None:
        return
    seed_everything(seed_for(seed, entry.name, "errors"))
    yield from enumerate(entry.op.error_inputs("cpu", set_seed=False))
