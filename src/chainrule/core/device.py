"""Devices, layouts and memory formats: names that PyTorch code passes around."""

from __future__ import annotations

from typing import Any


class _Name:
    """A layout or a memory format."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"chainrule.{self.name}"

    def __reduce__(self) -> str:
        return self.name


strided = _Name("strided")
jagged = _Name("jagged")
sparse_coo = _Name("sparse_coo")
sparse_csr = _Name("sparse_csr")
sparse_csc = _Name("sparse_csc")
sparse_bsr = _Name("sparse_bsr")
sparse_bsc = _Name("sparse_bsc")
contiguous_format = _Name("contiguous_format")
preserve_format = _Name("preserve_format")
channels_last = _Name("channels_last")
channels_last_3d = _Name("channels_last_3d")


class device:
    """A place for tensors: ``device("cpu")``."""

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, kind: Any = "cpu", index: int | None = None) -> None:
        if isinstance(kind, device):
            kind, index = kind.type, kind.index
        name, _, number = str(kind).partition(":")
        if name != "cpu":
            raise RuntimeError(f"device {kind!r} is not available: this build of chainrule computes on the CPU")
        self.type, self.index = name, int(number) if number else index

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)


CPU = device("cpu")
