"""The standard's inspection of a namespace."""

from __future__ import annotations

from typing import Any

import numpy as np

from .call import check_device

_TYPES = {
    "bool": ("bool",), "signed integer": ("int8", "int16", "int32", "int64"), "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128"),
}  # fmt: skip
_TYPES["integral"] = _TYPES["signed integer"] + _TYPES["unsigned integer"]
_TYPES["numeric"] = _TYPES["integral"] + _TYPES["real floating"] + _TYPES["complex floating"]


class Info:
    """What this namespace can do."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on values exist; there is no limit of dimensions but NumPy's."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """The device on which arrays are made."""
        return "cpu"

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The types that numbers become."""
        check_device(device)
        return {
            "real floating": np.dtype("float64"), "complex floating": np.dtype("complex128"), "integral": np.dtype("int64"),
            "indexing": np.dtype("int64"),
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The types of a kind, or all."""
        check_device(device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k not in _TYPES:
                raise ValueError(f"dtypes: kind {k!r} is not known; there are {', '.join(_TYPES)}")
        return {n: np.dtype(n) for k in kinds for n in _TYPES[k]}

    def devices(self) -> list[str]:
        """The devices."""
        return ["cpu"]


def __array_namespace_info__() -> Info:
    """What this namespace can do."""
    return Info()
