"""How a function of the standard reaches NumPy's door: tensors become Arrays, and of tensors alone come tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.tensor import Tensor
from ..interop.numpy.functions import unwrapped
from ..interop.numpy.value import Array, from_numpy, wrap

VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def at_version(api_version: str | None) -> Any:
    """The namespace, if it is of the version that was asked for."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: version {api_version!r} of the standard is not known; there are {', '.join(VERSIONS)}"
        )
    import chainrule.array_api as namespace

    return namespace


def array(x: Any, name: str) -> Array:
    """An argument that must be an array."""
    if type(x) is Array:
        return x
    if isinstance(x, Tensor):
        return wrap(x)
    raise TypeError(f"{name}: expected an array of this namespace, got {type(x).__name__}; convert with asarray(x)")


def operand(x: Any, name: str) -> Any:
    """An argument that may be a Python number."""
    return x if isinstance(x, bool | int | float | complex) and not isinstance(x, np.generic) else array(x, name)


def back(y: Any, *given: Any) -> Any:
    """A result as what the arguments were: of tensors alone, tensors."""
    tensors = False
    for x in given:
        if type(x) is Array:
            tensors = False
            break
        tensors = tensors or isinstance(x, Tensor)
    if not (type(y) is Array or isinstance(y, tuple | list)):
        y = from_numpy(y)
    return unwrapped(y) if tensors else y


def dtype(d: Any) -> Any:
    """A type of ours or of NumPy's as NumPy's; None stays."""
    return None if d is None else np.dtype(d)


def check_device(device: Any) -> None:
    """There is one device."""
    if device is not None and str(device) != "cpu":
        raise ValueError(f"device must be 'cpu', the only one, got {device!r}")
