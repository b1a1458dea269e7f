"""Models from the internet: directories and state dicts; repositories with code are not run."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Any
from urllib.parse import urlparse
from urllib.request import urlopen

from .refusal import NotDone


def tqdm(iterable: Any = (), *args: Any, **kw: Any) -> Any:
    """The package's bar of progress where it is installed, else the argument."""
    import importlib

    try:
        return importlib.import_module("tqdm").tqdm(iterable, *args, **kw)
    except ImportError:
        return iterable


_DIR: list[str] = []
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # of a file name: how its SHA-256 begins


def get_dir() -> str:
    """Where files are kept: set_dir, $TORCH_HOME/hub, or ~/.cache/torch/hub."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return _DIR[0] if _DIR else os.path.join(os.path.expanduser(home), "hub")


def _get_torch_home() -> str:
    return os.path.dirname(get_dir())


def set_dir(d: Any) -> None:
    """Say where files are kept."""
    _DIR[:] = [os.path.expanduser(d)]


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Fetch a file; with `hash_prefix` its SHA-256 must begin so."""
    digest = hashlib.sha256()
    part = f"{dst}.part"
    with urlopen(url) as source, open(part, "wb") as file:
        while block := source.read(1 << 16):
            file.write(block)
            digest.update(block)
    if hash_prefix and not digest.hexdigest().startswith(hash_prefix):
        os.remove(part)
        raise RuntimeError(
            f"download_url_to_file: invalid hash value (expected {hash_prefix!r}, got {digest.hexdigest()!r})"
        )
    os.replace(part, dst)


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False, file_name: str | None = None, weights_only: bool = True) -> Any:  # fmt: skip
    """The state dict at an address, kept for the next time."""
    from ..interop.system import load as read

    folder = model_dir or os.path.join(get_dir(), "checkpoints")
    os.makedirs(folder, exist_ok=True)
    name = file_name or os.path.basename(urlparse(url).path)
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        found = re.search(r"-([a-f0-9]*)\.", name) if check_hash else None
        download_url_to_file(url, path, found.group(1) if found else None)
    return read(path, map_location=map_location, weights_only=weights_only)


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", **kw: Any) -> Any:
    """A model from the ``hubconf.py`` of a local folder: ``load(folder, "name", source="local")``."""
    if source != "local":
        raise NotDone(
            "hub.load: code is not fetched from repositories; clone it, and pass source='local'. See docs/not-done.md"
        )
    return getattr(_hubconf(repo_or_dir), model)(*args, **kw)


def _hubconf(folder: Any) -> Any:
    import importlib.util

    spec: Any = importlib.util.spec_from_file_location("hubconf", os.path.join(folder, "hubconf.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def list(github: Any, *args: Any, source: str = "local", **kw: Any) -> Any:
    """The models of a local folder's ``hubconf.py``."""
    return [n for n, f in vars(_hubconf(github)).items() if callable(f) and not n.startswith("_")]


def help(github: Any, model: str, *args: Any, **kw: Any) -> Any:
    """The docstring of a model of a local folder."""
    return getattr(_hubconf(github), model).__doc__
