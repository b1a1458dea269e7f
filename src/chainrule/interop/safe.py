"""safetensors files, both ways, in every type that the format has (bfloat16 too)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.errors import ChainruleError
from ..core.tensor import Tensor

# What the format calls the types.
_NAMES = {
    "F64": dt.float64, "F32": dt.float32, "F16": dt.float16, "BF16": dt.bfloat16, "I64": dt.int64, "I32": dt.int32, "I16": dt.int16,
    "I8": dt.int8, "U8": dt.uint8, "U16": dt.uint16, "U32": dt.uint32, "U64": dt.uint64, "BOOL": dt.bool_, "C64": dt.complex64,
}  # fmt: skip


def save_file(tensors: Any, path: str, metadata: dict[str, str] | None = None) -> None:
    """Write a dict of tensors or arrays."""
    from safetensors.numpy import save_file as write

    known = {d.np for d in _NAMES.values()}
    data = {}
    for k, v in tensors.items():
        a = np.ascontiguousarray(v.detach().numpy() if isinstance(v, Tensor) else np.asarray(v)).reshape(np.shape(v))
        if a.dtype not in known:
            raise ChainruleError(f"save: {k!r} is of type {a.dtype}, which safetensors does not have; convert it first")
        data[k] = a
    write(data, path, metadata)


def load_file(path: str) -> dict[str, Tensor]:
    """Read a dict of tensors."""
    from safetensors import deserialize

    with open(path, "rb") as f:
        parts = deserialize(f.read())
    out = {}
    for name, p in parts:
        if p["dtype"] not in _NAMES:
            raise ChainruleError(f"load: {name!r} is of the type {p['dtype']}, which tensors here do not have")
        d = _NAMES[p["dtype"]].np
        out[name] = Tensor(np.frombuffer(bytearray(p["data"]), d).reshape(p["shape"]))
    return out
