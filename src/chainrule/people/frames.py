"""Which line of the user's code an op belongs to: the innermost frame outside of the libraries, or the one that made the node a walk is at."""

from __future__ import annotations

import linecache
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from ..core.walk import walk_back
from ..nn.module import Module

_ROOT = str(Path(__file__).resolve().parent.parent)
_STDLIB = sysconfig.get_paths()["stdlib"]
_SITE = tuple({sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]})
_LIBRARIES = tuple(f"{s}/{name}" for s in _SITE for name in ("numpy", "scipy", "opt_einsum"))
_WALK = walk_back.__code__


class Site(NamedTuple):
    """A place in source code, and the modules whose ``forward`` is around it, outermost first."""

    file: str
    line: int
    function: str
    scope: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The source line itself."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def short(self) -> str:
        """``file.py:12``."""
        name = Path(self.file).name if not self.file.startswith("<") else self.file
        return f"{name}:{self.line}"

    def __str__(self) -> str:
        return f'File "{self.file}", line {self.line}, in {self.function}' + (f": {self.text}" if self.text else "")


class Place(NamedTuple):
    """Where an op ran: the user's line, the op whose reverse rule it is part of (or ""), and the user's stack, outermost first."""

    site: Site
    backward: str
    stack: tuple[Site, ...] = ()
    of: int = -1  # the event that made the node whose reverse rule it is part of


NOWHERE = Site("<unknown>", 0, "?")


def is_library(frame: FrameType) -> bool:
    """Whether a frame's code is chainrule's, NumPy's, SciPy's or Python's own."""
    file = frame.f_code.co_filename
    if file == "<string>" and frame.f_globals.get("__name__", "chainrule.").startswith("chainrule."):
        return True  # code that chainrule wrote itself
    if file.startswith((_ROOT, "<frozen")) or file == "<__array_function__ internals>":
        return True
    if file.startswith(_SITE):
        return file.startswith(_LIBRARIES)
    return file.startswith(_STDLIB)


def _module_of(frame: FrameType) -> Module | None:
    """The module whose ``forward`` a frame runs."""
    names = frame.f_code.co_varnames
    first = frame.f_locals.get(names[0]) if names else None
    return first if isinstance(first, Module) else None


def _module_name(frame: FrameType, module: Any) -> str:
    """How a module's parent calls it, if a frame further out is a ``forward`` of the parent; else its class."""
    f = frame.f_back
    while f is not None:
        if f.f_code.co_name == "forward":
            parent = _module_of(f)
            if parent is not None and parent is not module:
                return next((k for k, m in parent.named_modules() if m is module), type(module).__name__)
        f = f.f_back
    return type(module).__name__


def place(depth: int = 1, stack: bool = False) -> Place:
    """The place of the caller `depth` frames up."""
    f: FrameType | None = sys._getframe(depth)
    site: Site | None = None
    backward = ""
    scope: list[str] = []
    users: list[Site] = []
    of = -1
    while f is not None:
        code = f.f_code
        if code is _WALK and not backward:
            node = f.f_locals.get("n")
            if node is not None and node.op is not None:
                backward = node.op.name
                of = node.__dict__.get("event", -1)
                site = site or node.__dict__.get("site")  # a line further in is that of a checkpoint that runs again
                if site is not None and not stack:
                    return Place(site, backward, of=of)
        elif code.co_name == "forward" and (module := _module_of(f)) is not None:
            scope.append(_module_name(f, module))
        if not is_library(f):
            if site is None:
                site = Site(code.co_filename, f.f_lineno or 0, code.co_name)
            if stack:
                users.append(Site(code.co_filename, f.f_lineno or 0, code.co_name))
        f = f.f_back
    site = site or NOWHERE
    if scope and not site.scope:
        site = site._replace(scope=tuple(reversed(scope)))
    return Place(site, backward, tuple(reversed(users)), of)
