"""einops on tensors and on the values of NumPy's door: a backend, registered when einops is there.

einops finds a backend among the subclasses of its AbstractBackend; ours is declared when einops is imported, before or after chainrule.
"""

from __future__ import annotations

import importlib.machinery
import sys
from typing import Any

from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .numpy.value import Array, wrap

NAME = "einops._backends"


def declare(module: Any) -> None:
    """Declare the backend in einops's module of backends."""

    class ChainruleBackend(module.AbstractBackend):
        """einops's operations by chainrule's."""

        framework_name = "chainrule"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return type(tensor) is Array or isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Any:
            return Tensor(x)

        def to_numpy(self, x: Any) -> Any:
            return (x._t if type(x) is Array else x).numpy(force=True)

        def arange(self, start: int, stop: int) -> Any:
            return PUBLIC["arange"](start, stop)

        def shape(self, x: Any) -> Any:
            return tuple(x.shape)

        def reshape(self, x: Any, shape: Any) -> Any:
            return x.reshape(tuple(shape))

        def transpose(self, x: Any, axes: Any) -> Any:
            return wrap(x._t.permute(tuple(axes))) if type(x) is Array else x.permute(tuple(axes))

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            if type(x) is Array:
                return getattr(x, operation)(axis=tuple(axes))
            if operation == "prod":
                for k in sorted(axes, reverse=True):
                    x = x.prod(k)
                return x
            names = {"min": "amin", "max": "amax"}
            return getattr(x, names.get(operation, operation))(tuple(axes)) if axes else x

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return _joined("stack", tensors, 0)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return wrap(x._t.unsqueeze(new_position)) if type(x) is Array else x.unsqueeze(new_position)

        def tile(self, x: Any, repeats: Any) -> Any:
            sizes = [n * r for n, r in zip(x.shape, repeats, strict=True)]
            if all(n == 1 or r == 1 for n, r in zip(x.shape, repeats, strict=True)):
                return wrap(x._t.expand(sizes)) if type(x) is Array else x.expand(sizes)
            return wrap(x._t.tile(tuple(repeats))) if type(x) is Array else x.tile(tuple(repeats))

        def concat(self, tensors: Any, axis: int) -> Any:
            return _joined("cat", tensors, axis)

        def is_float_type(self, x: Any) -> bool:
            return (x._t if type(x) is Array else x).dtype.np.kind in "fc"

        def einsum(self, pattern: str, *x: Any) -> Any:
            arrays = any(type(v) is Array for v in x)
            y = PUBLIC["einsum"](pattern, *[v._t if type(v) is Array else v for v in x])
            return wrap(y) if arrays else y

    _DECLARED.append(ChainruleBackend)


_DECLARED: list[Any] = []  # einops finds it among living subclasses


def _joined(name: str, xs: Any, axis: int) -> Any:
    arrays = any(type(v) is Array for v in xs)
    y = PUBLIC[name]([v._t if type(v) is Array else v for v in xs], axis)
    return wrap(y) if arrays else y


class _Loader:
    """einops's own loader, and the declaration after it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> Any:
        return self.loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self.loader.exec_module(module)
        declare(module)


class _Finder:
    """Waits for the import of einops's backends, and of nothing else."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


def install() -> None:
    """Declare the backend now, or when einops is imported."""
    if NAME in sys.modules:
        declare(sys.modules[NAME])
    else:
        sys.meta_path.insert(0, _Finder())


install()
