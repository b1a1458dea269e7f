"""Devices, layouts and memory formats: names that PyTorch code passes around.

Any device can be named, compared and made the default; tensors live on the CPU, or on ``meta``, where they have a shape and a type
and no elements (:mod:`chainrule.payloads.meta`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from . import dtypes as dt


class _Name:
    """A named choice; it pickles by its name."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{dt.PREFIX[0]}.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class layout(_Name):
    """How the elements of a tensor are laid out: ``strided``, ``jagged``, or one of the sparse formats."""


class memory_format(_Name):
    """The order of the dimensions in memory."""


strided = layout("strided")
jagged = layout("jagged")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")

KINDS = ("cpu", "meta", "cuda", "mps", "xpu", "hip", "xla", "vulkan", "mtia", "hpu", "ipu", "privateuseone")
HERE = ("cpu", "meta")
DEFAULT: ContextVar[device | None] = ContextVar("chainrule_device", default=None)


class device:
    """A place for tensors: ``device("cpu")``, ``device("cuda", 0)``; inside ``with device("meta"):`` new tensors are made there."""

    __slots__ = ("_tokens", "index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            if type < 0:
                raise RuntimeError(f"device: Device index must not be negative, got {type}")
            type, index = "cuda", type
        if not isinstance(type, str):
            raise TypeError(f"device: type must be a string such as 'cpu', got {type!r}")
        name, colon, number = type.partition(":")
        if name not in KINDS:
            raise RuntimeError(
                f"device: Expected one of {', '.join(KINDS)} device type at start of device string: {type}"
            )
        if colon and (not number.isdigit() or index is not None):
            raise RuntimeError(f"device: Invalid device string: {type!r}; write 'cuda:0', or device('cuda', 0)")
        self.type, self.index = name, int(number) if colon else index
        self._tokens: list[Any] = []

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type,) if self.index is None else (self.type, self.index)

    def __enter__(self) -> device:
        self._tokens.append(DEFAULT.set(place(self)))
        return self

    def __exit__(self, *exc: Any) -> None:
        DEFAULT.reset(self._tokens.pop())

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """As a decorator: the tensors that `f` makes are made here."""

        @functools.wraps(f)
        def run(*args: Any, **kw: Any) -> Any:
            with device(self):
                return f(*args, **kw)

        return run


def place(where: Any) -> device | None:
    """`where` as a device that tensors can be on: None for the CPU; any other than ``cpu`` and ``meta`` is not available."""
    d = where if isinstance(where, device) else device(where)
    if d.type not in HERE:
        raise RuntimeError(
            f"device {str(d)!r} is not available: chainrule computes on the CPU; {d.type}.is_available() is False, "
            f"so write device('cuda' if cuda.is_available() else 'cpu')"
        )
    return d if d.type == "meta" else None


CPU = device("cpu")
META = device("meta")
