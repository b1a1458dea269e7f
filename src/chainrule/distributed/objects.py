"""Objects between processes: what JSON knows (and tuples, bytes, complex numbers), with arrays and tensors in it.

No pickle: what arrives is data, never code, so a message from a stranger cannot run anything.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.tensor import Tensor
from . import wire
from .groups import resolve, root_in


def encode(obj: Any) -> np.ndarray:
    """An object as bytes: its JSON, and after it the elements of its arrays."""
    parts: list[bytes] = []

    def plain(v: Any) -> Any:
        if v is None or isinstance(v, bool | int | float | str):
            return v
        if isinstance(v, Tensor | np.ndarray):
            a = np.ascontiguousarray(v.detach().numpy() if isinstance(v, Tensor) else v)
            d = dt.FROM_NP.get(a.dtype)
            if d is None:
                raise TypeError(f"distributed: an array of type {a.dtype} cannot be sent")
            parts.append(a.tobytes())
            return {
                "~": "tensor" if isinstance(v, Tensor) else "array",
                "d": d.name,
                "s": list(np.shape(v)),
                "n": len(parts[-1]),
            }
        if isinstance(v, np.generic):
            return v.item()
        if isinstance(v, complex):
            return {"~": "complex", "v": [v.real, v.imag]}
        if isinstance(v, bytes):
            return {"~": "bytes", "v": base64.b64encode(v).decode()}
        if isinstance(v, tuple):
            return {"~": "tuple", "v": [plain(i) for i in v]}
        if isinstance(v, list):
            return [plain(i) for i in v]
        if isinstance(v, dict):
            if all(isinstance(k, str) for k in v) and "~" not in v:
                return {k: plain(i) for k, i in v.items()}
            return {"~": "dict", "v": [[plain(k), plain(i)] for k, i in v.items()]}
        raise TypeError(
            f"distributed: an object of type {type(v).__name__} cannot be sent: numbers, strings, bytes, lists, tuples, dicts, arrays and tensors can "
            f"(there is no pickle, so that no message can run code)"
        )

    head = json.dumps(plain(obj)).encode()
    return np.frombuffer(len(head).to_bytes(8, "little") + head + b"".join(parts), np.uint8)


def decode(data: np.ndarray) -> Any:
    """What `encode` made bytes of."""
    blob = np.ascontiguousarray(data).data.cast("B")
    n = int.from_bytes(blob[:8], "little")
    at = 8 + n

    def full(v: Any) -> Any:
        nonlocal at
        if isinstance(v, list):
            return [full(i) for i in v]
        if not isinstance(v, dict):
            return v
        kind = v.get("~")
        if kind is None:
            return {k: full(i) for k, i in v.items()}
        if kind in ("tensor", "array"):
            a = np.frombuffer(blob[at : at + v["n"]], dt.NAMES[v["d"]].np).reshape(v["s"]).copy()
            at += v["n"]
            return Tensor(a) if kind == "tensor" else a
        if kind == "complex":
            return complex(*v["v"])
        if kind == "bytes":
            return base64.b64decode(v["v"])
        if kind == "tuple":
            return tuple(full(i) for i in v["v"])
        return {full(k): full(i) for k, i in v["v"]}

    return full(json.loads(bytes(blob[8 : 8 + n])))


def _gathered(obj: Any, g: Any) -> list[Any]:
    mine = encode(obj)
    sizes = np.empty(g.size(), np.int64)
    wire.all_gather(g, np.array(mine.size, np.int64), sizes).wait()
    most = int(sizes.max())
    padded = np.zeros(most, np.uint8)
    padded[: mine.size] = mine
    all_of = np.empty((g.size(), most), np.uint8)
    wire.all_gather(g, padded, all_of).wait()
    return [decode(row[:n]) for row, n in zip(all_of, sizes, strict=True)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The objects of all ranks, put into the list."""
    object_list[:] = _gathered(obj, resolve(group))


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The objects of all ranks, put into the list of rank `dst`."""
    g = resolve(group)
    every = _gathered(obj, g)
    if g.rank() == root_in(g, dst, group_dst, "gather_object"):
        if object_gather_list is None:
            raise ValueError("gather_object: object_gather_list must be given on the rank where the objects arrive")
        object_gather_list[:] = every


def _broadcast(data: Any, g: Any, root: int) -> np.ndarray:
    size = np.array(0 if data is None else data.size, np.int64)
    wire.broadcast(g, size, root).wait()
    buf = data.copy() if g.rank() == root else np.empty(int(size), np.uint8)
    wire.broadcast(g, buf, root).wait()
    return buf


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """The objects in the list of rank `src`, put into that of every rank."""
    g = resolve(group)
    root = root_in(g, src, group_src, "broadcast_object_list")
    object_list[:] = decode(_broadcast(encode(list(object_list)) if g.rank() == root else None, g, root))


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """The object that rank `src` has for this rank, put into the first place of the list."""
    g = resolve(group)
    root = root_in(g, src, group_src, "scatter_object_list")
    given = None
    if g.rank() == root:
        if scatter_object_input_list is None or len(scatter_object_input_list) != g.size():
            raise ValueError(
                f"scatter_object_list: rank {g.ranks[root]} must give one object for each of {g.size()} ranks"
            )
        given = encode(scatter_object_input_list)
    scatter_object_output_list[0] = decode(_broadcast(given, g, root))[g.rank()]


def send_object_list(
    object_list: list[Any], dst: int | None = None, group: Any = None, device: Any = None, group_dst: int | None = None
) -> None:
    """Send the objects in the list to rank `dst`."""
    g = resolve(group)
    to = root_in(g, dst, group_dst, "send_object_list")
    data = encode(list(object_list))
    wire.send(g, np.array(data.size, np.int64), to).wait()
    wire.send(g, data, to).wait()


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> int:
    """The objects that rank `src` sends, put into the list; returns `src`."""
    g = resolve(group)
    source = root_in(g, src, group_src, "recv_object_list")
    size = np.empty((), np.int64)
    wire.recv(g, size, source).wait()
    data = np.empty(int(size), np.uint8)
    wire.recv(g, data, source).wait()
    object_list[:] = decode(data)
    return g.ranks[source]
