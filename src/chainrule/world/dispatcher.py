"""``torch.ops``: functions by the names of PyTorch's dispatcher. ``ops.aten.add.Tensor`` is ``chainrule.add``; custom operators are found by theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.registry import PUBLIC
from ..core.tensor import Tensor

CUSTOM: dict[str, Callable[..., Any]] = {}  # "space::name" of operators that a program declared


class Overload:
    """One operator; its overloads are itself."""

    def __init__(self, name: str, fn: Callable[..., Any]) -> None:
        self._name, self._fn = name, fn
        self.__name__ = self.__qualname__ = name.rpartition("::")[2]
        self.__doc__ = fn.__doc__

    def __call__(self, *args: Any, **kw: Any) -> Any:
        return self._fn(*args, **kw)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def overloads(self) -> list[str]:
        """There is one."""
        return ["default"]

    def __repr__(self) -> str:
        return f"<op {self._name}>"


class Space:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._space = name

    def __getattr__(self, name: str) -> Any:
        full = f"{self._space}::{name}"
        fn = CUSTOM.get(full) or (self._builtin(name) if self._space in ("aten", "prims") else None)
        if fn is None:
            raise AttributeError(f"'_OpNamespace' '{self._space}' object has no attribute '{name}'", name=name)
        op = self.__dict__[name] = Overload(full, fn)
        return op

    @staticmethod
    def _builtin(name: str) -> Any:
        """The published function of this name, at any address, or the method that writes."""
        for address in (
            name,
            f"nn.functional.{name}",
            *(name.replace(f"{p}_", f"{p}.", 1) for p in ("linalg", "special", "fft")),
        ):
            if address in PUBLIC:
                return PUBLIC[address]
        return getattr(Tensor, name, None) if name.endswith("_") and not name.startswith("_") else None


def load_library(path: Any) -> None:
    """Raise: operators compiled for PyTorch need PyTorch."""
    raise OSError(
        f"torch.ops.load_library({str(path)!r}): a library of operators for PyTorch itself cannot be loaded into chainrule; "
        f"declare the operator with chainrule.custom_op (docs/not-done.md)"
    )


loaded_libraries: set[str] = set()


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    space = globals()[name] = Space(name)
    return space
