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


def samples_of(entry: Entry, dtype: torch.dtype, count: int, seed: int) -> tuple[list[Any], list[int]]:
    """All samples of the entry, and which of them to judge (all for a `count` of 0); see `choose`."""
    seed_everything(seed_for(seed, entry.name, dtype))
    samples = list(entry.op.sample_inputs("cpu", dtype, requires_grad=entry.differentiable_at(dtype), set_seed=False))
    return samples, choose([_is_trivial(s) for s in samples], [pattern(s) for s in samples], count)


def choose(trivial: Sequence[bool], patterns: Sequence[frozenset[str]], count: int) -> list[int]:
    """Indices of samples that show as many features as possible: `count`, from three on up to three times as many.

    The next one is always that with most features that no other has shown; among equals, one with something to compute.
    """
    n = len(trivial)
    if count <= 0 or count >= n:
        return list(range(n))
    left, seen, chosen = set(range(n)), set[str](), list[int]()
    while left and len(chosen) < (3 * count if count >= 3 else count):
        best = max(left, key=lambda i: (not chosen and not trivial[i], len(patterns[i] - seen), not trivial[i], -i))
        if len(chosen) >= count and patterns[best] <= seen:
            break
        left.remove(best)
        seen |= patterns[best]
        chosen.append(best)
    return sorted(chosen)


def pattern(sample: Any) -> frozenset[str]:
    """What a sample shows: kinds, ranks and broadcasting of its tensors, which arguments it has, and sorts of numbers."""
    out: set[str] = set()
    named = [("input", sample.input), *((f"{i}", a) for i, a in enumerate(sample.args)), *sample.kwargs.items()]
    first = next((x for x in leaves(sample.input) if isinstance(x, torch.Tensor)), None)
    for name, value in named:
        found = leaves(value)
        out.add(f"{name}: {type(value).__name__} of {min(len(found), 3)}")
        for x in found:
            out.add(f"{name}: {_tensor_feature(x, first) if isinstance(x, torch.Tensor) else _number_feature(x)}")
    return frozenset(out)


def _tensor_feature(x: torch.Tensor, first: torch.Tensor | None) -> str:
    sizes = "empty" if x.numel() == 0 else "broadcast" if first is not None and x.shape != first.shape else "same"
    return f"{x.dtype} rank {x.ndim} {sizes} {'requires grad' if x.requires_grad else ''}"


def _number_feature(x: Any) -> str:
    """Flags, names and None themselves; numbers by sort: negative, zero, between, one, two, more, infinite."""
    if isinstance(x, bool) or not isinstance(x, int | float):
        return str(x) if isinstance(x, bool | str | None | torch.dtype) else type(x).__name__
    sort = (
        "zero"
        if x == 0
        else f"{x}"
        if x in (1, 2) or abs(x) == float("inf")
        else "negative"
        if x < 0
        else "less"
        if x < 1
        else "more"
    )
    return f"{type(x).__name__} {sort}"


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
