"""Checkpoints of several processes: each rank writes its share, any number of ranks reads it, and a kill at any byte leaves the last good one.

A checkpoint is a folder of versions. A version is written beside them under a name that no reader looks at: a file of each rank, then an index of all
tensors with their places and checksums, each synced to the disk; then it gets its name in one step. Whatever ends the program before that step leaves the
versions that were there, and whatever ends it after has the new one. The last two are kept. All ranks see the same file system.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import innermost
from ..core.errors import ChainruleError
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..core.views import assign
from . import groups, wire
from .objects import _gathered, decode, encode

KEPT = 2
ALIGN = 64


class CheckpointError(ChainruleError):
    """A checkpoint cannot be written or read."""


class Shard:
    """This rank's part of a tensor that no rank has as a whole: the rows from `offset` along `dim`, of `size` in all."""

    def __init__(self, tensor: Tensor, dim: int, offset: int, size: int) -> None:
        self.tensor, self.dim, self.offset, self.size = tensor, dim % max(tensor.ndim, 1), offset, size
        if not 0 <= offset <= offset + tensor.shape[self.dim] <= size:
            raise ValueError(
                f"Shard: {tensor.shape[self.dim]} rows from {offset} are not within the size {size} of dim {dim}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the whole tensor."""
        return tuple(self.size if k == self.dim else n for k, n in enumerate(self.tensor.shape))

    @property
    def start(self) -> list[int]:
        """Where this part begins in the whole."""
        return [self.offset if k == self.dim else 0 for k in range(self.tensor.ndim)]


class Disk:
    """What is done to the disk, in one place: a test ends the program at any of these steps."""

    def write(self, f: Any, data: Any) -> None:
        """Append bytes to a file."""
        f.write(data)

    def sync(self, f: Any) -> None:
        """Have the file on the disk, not only on its way there."""
        f.flush()
        os.fsync(f.fileno())

    def sync_folder(self, path: Path) -> None:
        """Have the names in a folder on the disk."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def rename(self, old: Path, new: Path) -> None:
        """The step that makes a version one."""
        os.rename(old, new)

    def remove(self, path: Path) -> None:
        """Remove a folder; first its index, so that a half-removed version is none."""
        (path / "index.json").unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)


DISK = Disk()


# -- what is in a state: a tree of dicts, lists and tuples ----------------------------------------------------------------


def _flatten(state: Any, path: tuple[Any, ...] = ()) -> Any:
    """Pairs of a path and a tensor, array or Shard; the tree without them, in whose place their number stands."""
    found: list[Any] = []

    def walk(v: Any) -> Any:
        if isinstance(v, Tensor | np.ndarray | Shard):
            found.append(v)
            return {"~tensor": len(found) - 1}
        if isinstance(v, dict):
            return {k: walk(i) for k, i in v.items()}
        if isinstance(v, list | tuple):
            return type(v)([walk(i) for i in v]) if not hasattr(v, "_fields") else [walk(i) for i in v]
        return v

    return walk(state), found


def _array(v: Any) -> np.ndarray:
    t = v.tensor if isinstance(v, Shard) else v
    a = innermost(t) if isinstance(t, Tensor) else t
    if type(a) is not np.ndarray:
        raise CheckpointError(f"checkpoint: a tensor that holds {type(a).__name__} cannot be saved; save its parts")
    return np.ascontiguousarray(a).reshape(a.shape)


def _shares(found: list[Any], ranks: int) -> list[int]:
    """Which rank writes which of the tensors that every rank has: the largest first, each to the one that has least to write."""
    load, owner = [0] * ranks, [-1] * len(found)
    sizes = [-1 if isinstance(v, Shard) else _array(v).nbytes for v in found]
    for k in sorted(range(len(found)), key=lambda k: -sizes[k]):
        if sizes[k] >= 0:
            r = load.index(min(load))
            load[r] += sizes[k]
            owner[k] = r
    return owner


# -- versions -------------------------------------------------------------------------------------------------------------


def _versions(root: Path) -> list[Path]:
    """The versions in a folder, the newest first."""
    if not root.is_dir():
        return []
    return sorted((p for p in root.iterdir() if p.name.startswith("v") and p.name[1:].isdigit()), reverse=True)


def save(
    state_dict: Any, *, checkpoint_id: Any, process_group: Any = None, no_dist: bool = False, disk: Disk | None = None
) -> Path:
    """Write a state (dicts, lists and tuples of tensors, numbers and strings) as a new version in the folder `checkpoint_id`.

    Every rank of the group calls this. What every rank has is written once, in shares; a :class:`Shard` is written by each rank. Numbers and
    strings are those of the group's first rank. Returns the folder of the version.
    """
    disk = DISK if disk is None else disk
    g = None if no_dist or groups.STATE.world is None else groups.resolve(process_group)
    rank, ranks = (0, 1) if g is None else (g.rank(), g.size())
    root = Path(checkpoint_id)
    number = np.array(0, np.int64)
    if rank == 0:
        root.mkdir(parents=True, exist_ok=True)
        for left in root.glob(".v*.part"):
            shutil.rmtree(left, ignore_errors=True)
        number[...] = 1 + max([int(p.name[1:]) for p in _versions(root)], default=0)
        (root / f".v{int(number):08d}.part").mkdir()
    if g is not None:
        wire.broadcast(g, number, 0).wait()
    part, final = root / f".v{int(number):08d}.part", root / f"v{int(number):08d}"
    trouble, pieces, tree = "", [], None
    try:
        tree, found = _flatten(state_dict)
        pieces = _write_part(part / f"rank{rank:05d}.bin", found, _shares(found, ranks), rank, disk)
    except Exception as e:
        trouble = f"rank {rank}: {type(e).__name__}: {e}"
    mine: dict[str, Any] = {"trouble": trouble, "pieces": pieces}
    every = [mine] if g is None else _gathered(mine, g)
    bad = [e["trouble"] for e in every if e["trouble"]]
    if bad:
        if rank == 0:
            shutil.rmtree(part, ignore_errors=True)
        raise CheckpointError(f"checkpoint: version {int(number)} was not written. {'; '.join(bad)}")
    if rank == 0:
        _write_index(part, tree, [p for e in every for p in e["pieces"]], ranks, disk)
        disk.rename(part, final)
        disk.sync_folder(root)
        for old in _versions(root)[KEPT:]:
            disk.remove(old)
    if g is not None:
        wire.barrier(g).wait()
    return final


def _write_part(path: Path, found: list[Any], owner: list[int], rank: int, disk: Disk) -> list[Any]:
    """This rank's file; returns what the index says of each tensor in it."""
    pieces = []
    with open(path, "wb", buffering=0) as f:
        at = 0
        for k, v in enumerate(found):
            if owner[k] not in (rank, -1):
                continue
            a = _array(v)
            if gap := -at % ALIGN:
                disk.write(f, bytes(gap))
                at += gap
            data = a.reshape(-1).view(np.uint8)
            disk.write(f, data.data)
            whole, start = (v.shape, v.start) if isinstance(v, Shard) else (a.shape, [0] * a.ndim)
            name = dt.FROM_NP[a.dtype].name
            pieces.append([k, path.name, at, list(a.shape), list(whole), start, name, zlib.crc32(data.data)])
            at += a.nbytes
        disk.sync(f)
    return pieces


def _write_index(part: Path, tree: Any, pieces: list[Any], ranks: int, disk: Disk) -> None:
    body = encode({"tree": tree, "pieces": pieces, "ranks": ranks}).tobytes()
    head = (
        json.dumps({"format": "chainrule checkpoint 1", "crc": zlib.crc32(body), "bytes": len(body)}).encode() + b"\n"
    )
    with open(part / "index.json", "wb", buffering=0) as f:
        disk.write(f, head + body)
        disk.sync(f)
    disk.sync_folder(part)


def _index(version: Path) -> Any:
    blob = (version / "index.json").read_bytes()
    head, _, body = blob.partition(b"\n")
    said = json.loads(head)
    if said["bytes"] != len(body) or said["crc"] != zlib.crc32(body):
        raise CheckpointError(f"the index of {version.name} is damaged")
    return decode(np.frombuffer(body, np.uint8))


def load(state_dict: Any = None, *, checkpoint_id: Any, process_group: Any = None, no_dist: bool = False) -> Any:
    """Read the last good version in the folder `checkpoint_id`; each rank reads what it needs, however many wrote it.

    With a `state_dict`, its tensors get the saved values (of a :class:`Shard` its part) and its numbers are replaced; returns it. Without one, returns the
    whole state. A version that is damaged is passed over, with a warning.
    """
    g = None if no_dist or groups.STATE.world is None else groups.resolve(process_group)
    root = Path(checkpoint_id)
    reasons: list[str] = []
    for version in _versions(root):
        answer, reason = None, ""
        try:
            answer = _read(version, state_dict)
        except (OSError, ValueError, KeyError, CheckpointError) as e:
            reason = f"{version.name}: {e}"
        # A version counts if every rank could read its part.
        bad = [reason] if g is None else _gathered(reason, g)
        bad = [r for r in bad if r]
        if not bad:
            return _put(state_dict, answer)
        reasons += bad
        warnings.warn(f"checkpoint: {bad[0]}; the version before it is tried", stacklevel=2)
    raise CheckpointError(
        f"checkpoint: there is no version in {root} that can be read" + (f": {'; '.join(reasons)}" if reasons else "")
    )


def _read(version: Path, want: Any) -> Any:
    """The saved tree with arrays; of those that `want` has a Shard for, its part."""
    index = _index(version)
    by_number: dict[int, list[Any]] = {}
    for piece in index["pieces"]:
        by_number.setdefault(piece[0], []).append(piece)

    def fill(v: Any, like: Any) -> Any:
        if isinstance(v, dict):
            if set(v) == {"~tensor"}:
                return _assemble(version, by_number[v["~tensor"]], like)
            return {k: fill(i, like.get(k) if isinstance(like, dict) else None) for k, i in v.items()}
        if isinstance(v, list | tuple):
            given = list(like) if isinstance(like, list | tuple) and len(like) == len(v) else [None] * len(v)
            return type(v)([fill(i, w) for i, w in zip(v, given, strict=True)])
        return v

    return fill(index["tree"], want)


def _assemble(version: Path, pieces: list[Any], like: Any) -> np.ndarray:
    """A tensor, or the part of it that a Shard asks for, from the pieces that overlap it."""
    whole, d = pieces[0][4], dt.NAMES[pieces[0][6]].np
    if like is not None and tuple(whole) != tuple(like.shape):
        raise ValueError(f"a tensor of shape {whole} was saved, where one of shape {list(like.shape)} is asked for")
    start, shape = (like.start, like.tensor.shape) if isinstance(like, Shard) else ([0] * len(whole), whole)
    out = np.empty(tuple(shape), d)
    filled = 0
    for _, name, at, size, _, begin, _, crc in pieces:
        lo = [max(a, b) for a, b in zip(start, begin, strict=True)]
        hi = [min(a + n, b + m) for a, n, b, m in zip(start, shape, begin, size, strict=True)]
        if any(a >= b for a, b in zip(lo, hi, strict=True)):
            continue
        count = int(np.prod(size, dtype=np.int64)) * d.itemsize
        raw = np.fromfile(version / name, np.uint8, count, offset=at)
        if raw.size != count or zlib.crc32(raw.data) != crc:
            raise CheckpointError(f"{name} is damaged at byte {at}")
        piece = raw.view(d).reshape(size) if d.itemsize > 1 or d != np.dtype(np.uint8) else raw.reshape(size)
        to = tuple(slice(a - s, b - s) for a, b, s in zip(lo, hi, start, strict=True))
        of = tuple(slice(a - s, b - s) for a, b, s in zip(lo, hi, begin, strict=True))
        out[to] = piece[of]
        filled += int(np.prod([b - a for a, b in zip(lo, hi, strict=True)], dtype=np.int64))
    if filled < out.size:
        raise CheckpointError(f"a part of a tensor of shape {list(whole)} is missing")
    return out


def _put(into: Any, values: Any) -> Any:
    """The values in place of what a state has: written to its tensors, put into its dicts and lists."""
    if isinstance(into, Shard | Tensor):
        t = into.tensor if isinstance(into, Shard) else into
        with no_grad():
            assign(t, Tensor(values), "checkpoint.load")
        return into
    if isinstance(into, np.ndarray):
        into[...] = values
        return into
    if isinstance(into, dict) and isinstance(values, dict):
        for k, v in values.items():
            into[k] = _put(into.get(k), v)
        return into
    if isinstance(into, list) and isinstance(values, list) and len(into) == len(values):
        into[:] = [_put(a, b) for a, b in zip(into, values, strict=True)]
        return into
    if isinstance(values, np.ndarray):
        return Tensor(values)
    if isinstance(values, dict):
        return {k: _put(None, v) for k, v in values.items()}
    if isinstance(values, list | tuple):
        return type(values)([_put(None, v) for v in values])
    return values


__all__ = ["CheckpointError", "Disk", "Shard", "load", "save"]
