"""Compiled kernels on disk: only what this user wrote and nobody changed is ever loaded.

An entry is named by the hash of everything that determines it (the IR, the versions of llvmlite and LLVM, the processor and its
features) and carries a keyed checksum of its content; the key is a secret in the same directory. A directory or file that others
can write, an entry that is truncated, damaged or copied from elsewhere, reads as absent: the kernel is compiled again.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

MAGIC = b"CRKERN1\n"
MAX_ENTRIES = 4096

_checked: dict[str, bytes | None] = {}


def directory() -> Path:
    """CHAINRULE_CACHE_DIR, or chainrule/kernels in the user's cache directory."""
    from pathlib import Path

    env = os.environ.get("CHAINRULE_CACHE_DIR")
    if env:
        return Path(env)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "chainrule" / "kernels"


def key_of(*parts: str) -> str:
    """The name of an entry: a hash of its parts, which cannot run into one another."""
    import hashlib  # here and below: not for those who only import the library

    h = hashlib.sha256()
    for p in parts:
        b = p.encode()
        h.update(len(b).to_bytes(8, "little"))
        h.update(b)
    return h.hexdigest()


def _private(st: os.stat_result, directory: bool) -> bool:
    kind = stat.S_ISDIR(st.st_mode) if directory else stat.S_ISREG(st.st_mode)
    return kind and (not hasattr(os, "geteuid") or (st.st_uid == os.geteuid() and not st.st_mode & 0o022))


def _read_private(path: Path) -> bytes | None:
    """The file's content if it is a regular file of ours that nobody else can write."""
    # NONBLOCK: a pipe that somebody put there must not make us wait.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError:
        return None
    try:
        if not _private(os.fstat(fd), directory=False):
            return None
        with os.fdopen(fd, "rb", closefd=False) as f:
            return f.read()
    except OSError:
        return None
    finally:
        os.close(fd)


def _write_atomic(path: Path, data: bytes, replace: bool = True) -> None:
    """Write a private temporary file, then rename: a reader sees the old content or the new one."""
    import tempfile

    fd, tmp = tempfile.mkstemp(dir=path.parent, prefix=".tmp-")
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data)
        if replace:
            os.replace(tmp, path)
        else:
            os.link(tmp, path)
            os.unlink(tmp)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(tmp)
        raise


def _secret(d: Path) -> bytes | None:
    import secrets

    path = d / "secret"
    key = _read_private(path)
    if key is not None and len(key) == 32:
        return key
    damaged = path.exists() or path.is_symlink()
    with contextlib.suppress(OSError):
        _write_atomic(path, secrets.token_bytes(32), replace=damaged)
    key = _read_private(path)  # another process may have been first: theirs counts
    return key if key is not None and len(key) == 32 else None


def _open() -> tuple[Path, bytes] | None:
    """The directory and its secret, or None if it cannot be trusted (then nothing is read or written)."""
    try:
        d = directory()
        d.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _private(os.lstat(d), directory=True):
            return None
        name = str(d)
        key = _checked.get(name)
        if key is None:
            key = _checked[name] = _secret(d)
        return None if key is None else (d, key)
    except (OSError, RuntimeError):
        return None


def _tag(key: bytes, name: str, payload: bytes) -> bytes:
    import hashlib
    import hmac

    return hmac.new(key, name.encode() + b"\0" + payload, hashlib.sha256).digest()


def load(name: str) -> bytes | None:
    """The entry's payload, or None unless every check holds."""
    import hmac

    opened = _open()
    if opened is None:
        return None
    d, key = opened
    data = _read_private(d / f"{name}.o")
    if data is None or len(data) < len(MAGIC) + 32 or not data.startswith(MAGIC):
        return None
    tag, payload = data[len(MAGIC) : len(MAGIC) + 32], data[len(MAGIC) + 32 :]
    return payload if hmac.compare_digest(tag, _tag(key, name, payload)) else None


def save(name: str, payload: bytes) -> None:
    """Keep the payload under the name; a failure to write is no error."""
    opened = _open()
    if opened is None:
        return
    d, key = opened
    with contextlib.suppress(OSError):
        _write_atomic(d / f"{name}.o", MAGIC + _tag(key, name, payload) + payload)
        _trim(d)


def _trim(d: Path) -> None:
    """Drop the entries that were written first when there are too many."""
    entries = [e for e in os.scandir(d) if e.name.endswith(".o")]
    if len(entries) > MAX_ENTRIES:
        entries.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime)
        for e in entries[: len(entries) - MAX_ENTRIES * 3 // 4]:
            with contextlib.suppress(OSError):
                os.unlink(e.path)
