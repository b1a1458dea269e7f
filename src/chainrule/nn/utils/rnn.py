"""Sequences of different lengths: padded, packed step by step, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import dtypes as dt
from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from ...ops.recurrent.layers import packed_order
from ...ops.shape.pad import pad
from ...ops.shape.slices import cat, stack

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    return None if permutation is None else Tensor(np.argsort(permutation.numpy(), kind="stable").astype(np.int64))


class PackedSequence(_Packed):
    """Sequences step by step, the longest first: `batch_sizes` says how many are left at each step.

    `sorted_indices` is the order in which the sequences stand, `unsorted_indices` leads back; None where they were in order.
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Tensor,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            raise ValueError("PackedSequence: batch_sizes is missing; pack_padded_sequence and pack_sequence make one")
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kw: Any) -> PackedSequence:
        """The same with data of another type or elsewhere."""
        data = self.data.to(*args, **kw)
        return self if data is self.data else self._replace(data=data)

    def byte(self) -> PackedSequence:
        """The same in uint8."""
        return self.to(dt.uint8)

    def char(self) -> PackedSequence:
        """The same in int8."""
        return self.to(dt.int8)

    def short(self) -> PackedSequence:
        """The same in int16."""
        return self.to(dt.int16)

    def int(self) -> PackedSequence:
        """The same in int32."""
        return self.to(dt.int32)

    def long(self) -> PackedSequence:
        """The same in int64."""
        return self.to(dt.int64)

    def half(self) -> PackedSequence:
        """The same in float16."""
        return self.to(dt.float16)

    def float(self) -> PackedSequence:
        """The same in float32."""
        return self.to(dt.float32)

    def double(self) -> PackedSequence:
        """The same in float64."""
        return self.to(dt.float64)

    def cpu(self) -> PackedSequence:
        """The same: there is one device."""
        return self

    def is_pinned(self) -> bool:
        """Whether the data are in pinned memory."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """The same: computation is on the CPU."""
        return self

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False


def _vector(lengths: Any) -> np.ndarray:
    return np.asarray(lengths.numpy() if isinstance(lengths, Tensor) else lengths, np.int64).reshape(-1)


def pack_padded_sequence(
    input: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Padded sequences [time, batch, ...] without their padding, step by step, the longest first."""
    if not input.numel():
        raise ChainruleError(f"pack_padded_sequence: Cannot pack empty tensors, got shape {list(input.shape)}")
    x = input.transpose(0, 1) if batch_first else input
    n = _vector(lengths)
    longest, batch = x.shape[:2]
    if len(n) != batch:
        raise ChainruleError(f"pack_padded_sequence: expected one length for each of {batch} sequences, got {len(n)}")
    if not len(n) or n.min() <= 0:
        raise ChainruleError("pack_padded_sequence: Length of all samples has to be greater than 0")
    if n.max() > longest:
        raise ChainruleError(f"pack_padded_sequence: a length of {n.max()}, but the sequences are padded to {longest}")
    order = np.argsort(-n, kind="stable")
    if enforce_sorted and (np.diff(n) > 0).any():
        raise ChainruleError(
            "pack_padded_sequence: `lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to have them sorted"
        )
    steps = (n[None] > np.arange(int(n.max()))[:, None]).sum(1)
    rows = np.concatenate([t * batch + order[:k] for t, k in enumerate(steps)])
    data = x.reshape(longest * batch, *x.shape[2:]).index_select(0, Tensor(rows))
    by = None if enforce_sorted else Tensor(order)
    return PackedSequence(data, Tensor(steps.astype(np.int64)), by)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Packed sequences as padded ones, in their order, and their lengths."""
    steps = sequence.batch_sizes.numpy()
    if not len(steps):
        raise ChainruleError("pad_packed_sequence: Expected batch_sizes to be non-empty, got a sequence without steps")
    longest, batch = len(steps), int(steps[0])
    if total_length is not None and total_length < longest:
        raise ValueError(
            f"pad_packed_sequence: Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {longest}"
        )
    lengths = (steps[:, None] > np.arange(batch)).sum(0)
    total = longest if total_length is None else total_length
    order = np.arange(batch) if sequence.unsorted_indices is None else sequence.unsorted_indices.numpy()
    start = np.concatenate([[0], np.cumsum(steps)])[:-1]
    data = sequence.data
    # Rows of padding are looked up behind the data.
    rows = np.full((total, batch), len(data), np.int64)
    for t, k in enumerate(steps):
        rows[t, :k] = start[t] + np.arange(k)
    rows = rows[:, order]
    behind = pad(data, [0, 0] * (data.ndim - 1) + [0, 1], value=padding_value)
    y = behind.index_select(0, Tensor(rows.reshape(-1))).reshape(total, batch, *data.shape[1:])
    return y.transpose(0, 1) if batch_first else y, Tensor(lengths[order].astype(np.int64))


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences [time, ...] of different lengths side by side, filled up with `padding_value`."""
    if padding_side not in ("left", "right"):
        raise ChainruleError(f"pad_sequence: padding_side must be 'left' or 'right', got {padding_side!r}")
    if not isinstance(sequences, Iterable):
        raise ChainruleError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences).__name__}"
        )
    xs = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not xs:
        raise ChainruleError("pad_sequence: received an empty list of sequences")
    longest = max(x.shape[0] for x in xs)
    left = padding_side == "left"
    full = []
    for x in xs:
        gap = longest - x.shape[0]
        around = [gap, 0] if left else [0, gap]
        full.append(x if not gap else pad(x, [0, 0] * (x.ndim - 1) + around, value=padding_value))
    return stack(full, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences of a padded tensor, each in its length."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [s[:n] for s, n in zip(x.unbind(0), _vector(lengths).tolist(), strict=True)]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences [time, ...] of different lengths step by step, the longest first."""
    xs = list(sequences)
    n = np.array([x.shape[0] for x in xs], np.int64)
    if not len(n) or n.min() <= 0:
        raise ChainruleError("pack_sequence: Length of all samples has to be greater than 0")
    if enforce_sorted and (np.diff(n) > 0).any():
        raise ChainruleError(
            "pack_sequence: the lengths of the sequences must be sorted in decreasing order when `enforce_sorted` is True. "
            "You can pass `enforce_sorted=False` to have them sorted"
        )
    rows, by, steps = packed_order(n)
    data = cat(xs, 0).index_select(0, Tensor(rows))
    return PackedSequence(data, Tensor(np.array(steps, np.int64)), None if enforce_sorted else Tensor(by))


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences of a packed one, in their order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def __dir__() -> list[str]:
    return __all__
