"""Files, threads and settings: save and load, the number of threads, and names that code written for PyTorch calls."""

from __future__ import annotations

import os
import pickle
from typing import Any

from ..core.registry import METHODS, public
from ..core.tensor import Tensor


@public("save", out=False)
def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = 4, **_: Any) -> None:
    """Write an object to a file: a dict of tensors to ``*.safetensors`` in that format, anything else pickled."""
    if isinstance(f, str | os.PathLike) and str(f).endswith(".safetensors"):
        from .safe import save_file

        save_file(obj, str(f))
    elif isinstance(f, str | os.PathLike):
        with open(f, "wb") as file:
            pickle_module.dump(obj, file, pickle_protocol)
    else:
        pickle_module.dump(obj, f, pickle_protocol)


SAFE: list[Any] = []  # what serialization.add_safe_globals was given


# What chainrule wrote while it stood in for PyTorch names our classes as that does.
_RENAMED = {
    ("torch", "Tensor"): ("chainrule.core.tensor", "Tensor"),
    ("torch.nn.parameter", "Parameter"): ("chainrule.nn.parameter", "Parameter"),
}


class _Safe(pickle.Unpickler):
    """Loads tensors and plain containers; anything else could run code and is refused."""

    _BUILTINS = frozenset("dict list set tuple frozenset int float str bytes bool complex slice range".split())

    def find_class(self, module: str, name: str) -> Any:
        module, name = _RENAMED.get((module, name), (module, name))
        plain = (module == "builtins" and name in self._BUILTINS) or (
            module == "collections" and name in ("OrderedDict", "Counter")
        )
        ours = (module, name) in {
            ("chainrule.core.tensor", "_rebuild"), ("chainrule.core.tensor", "Tensor"), ("chainrule.core.tensor", "Size"),
            ("chainrule.core.dtypes", "_by_name"), ("chainrule.nn.parameter", "Parameter"), ("chainrule.payloads.nested.array", "_rebuild"),
            ("chainrule.payloads.sparse.array", "_rebuild"), ("chainrule.payloads.nested.deep", "_rebuild"),
        }  # fmt: skip
        arrays = (
            module.startswith("numpy") and name in ("_reconstruct", "ndarray", "dtype", "scalar", "_frombuffer")
        ) or (module, name) == ("ml_dtypes", "bfloat16")
        if plain or ours or arrays:
            return super().find_class(module, name)
        for c in SAFE:
            if (c.__module__, c.__qualname__) == (module, name):
                return c
        raise pickle.UnpicklingError(
            f"load: {module}.{name} is neither a tensor nor a plain container; pass weights_only=False if you trust the file"
        )


@public("load", out=False)
def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: Any = None,
    **_: Any,
) -> Any:
    """Read what ``save`` wrote, or ``torch.save``: only tensors and plain containers are accepted, since pickles can run code.

    A file of our own that holds more is read with ``weights_only=False``; of PyTorch's files nothing is ever run.
    """
    if isinstance(f, str | os.PathLike) and str(f).endswith(".safetensors"):
        from .safe import load_file

        return load_file(str(f))

    def read(file: Any) -> Any:
        from .checkpoint import CheckpointError, is_zip, read_zip

        if getattr(file, "seekable", bool)() and is_zip(file):
            return read_zip(file)
        if weights_only is False:
            return (pickle_module or pickle).load(file)
        try:
            return _Safe(file).load()
        except OSError:
            raise
        except Exception as e:
            if str(e).startswith("load: "):  # our own words
                raise
            raise CheckpointError(
                f"load: the file is broken or no pickle of tensors ({type(e).__name__}: {str(e)[:200]})"
            ) from None

    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file:
            return read(file)
    return read(f)


@public("get_num_threads", out=False)
def get_num_threads() -> int:
    """The number of threads that compiled kernels use."""
    from ..kernels import runtime

    return runtime.get_num_threads()


@public("set_num_threads", out=False)
def set_num_threads(n: int) -> None:
    """Set the number of threads that compiled kernels use; results do not depend on it."""
    if n < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {n}")
    from ..kernels import runtime

    runtime.set_num_threads(n)


@public("get_default_device", out=False)
def get_default_device() -> Any:
    """The device on which new tensors are made."""
    from ..core.device import CPU, DEFAULT

    return DEFAULT.get() or CPU


@public("set_default_device", out=False)
def set_default_device(device: Any) -> None:
    """Make new tensors on this device: the CPU or ``meta``, the only ones there are; None takes it back."""
    from ..core.device import DEFAULT, place

    DEFAULT.set(None if device is None else place(device))


class _Settings:
    """What code written for PyTorch sets: nothing here depends on it, results are the same every time."""

    deterministic = warn_only = warn_always = False
    matmul_precision = "highest"


@public("use_deterministic_algorithms", out=False)
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Remember the wish: every algorithm here is deterministic."""
    from ..ops.shape.create import Unwritten

    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(mode and warn_only)
    Unwritten.shown = _Settings.deterministic


@public("are_deterministic_algorithms_enabled", out=False)
def are_deterministic_algorithms_enabled() -> bool:
    """What was asked for with ``use_deterministic_algorithms``."""
    return _Settings.deterministic


@public("is_deterministic_algorithms_warn_only_enabled", out=False)
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What was asked for with ``use_deterministic_algorithms``."""
    return _Settings.warn_only


@public("set_deterministic_debug_mode", out=False)
def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """0 or "default", 1 or "warn", 2 or "error": remembered, as every algorithm here is deterministic."""
    modes = {"default": 0, "warn": 1, "error": 2}
    mode = modes.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in (0, 1, 2):
        raise RuntimeError(f"set_deterministic_debug_mode: debug_mode must be one of {modes}, got {debug_mode!r}")
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


@public("get_deterministic_debug_mode", out=False)
def get_deterministic_debug_mode() -> int:
    """0, 1 or 2, as set."""
    return (1 if _Settings.warn_only else 2) if _Settings.deterministic else 0


@public("set_float32_matmul_precision", out=False)
def set_float32_matmul_precision(precision: str) -> None:
    """Remember "highest", "high" or "medium": products are always computed in the type of their arguments."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(
            f"set_float32_matmul_precision: precision must be 'highest', 'high' or 'medium', got {precision!r}"
        )
    _Settings.matmul_precision = precision


@public("get_float32_matmul_precision", out=False)
def get_float32_matmul_precision() -> str:
    """What was set with ``set_float32_matmul_precision``."""
    return _Settings.matmul_precision


@public("set_flush_denormal", out=False)
def set_flush_denormal(mode: bool) -> bool:
    """False: the processor's treatment of tiny numbers is left as it is."""
    return False


@public("is_same_size", methods="is_same_size", out=False)
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape."""
    return input.shape == other.shape


@public("", methods="get_device", out=False)
def get_device(self: Tensor) -> int:
    """-1: the CPU, which has no number."""
    return -1


@public("", methods="as_subclass", out=False)
def as_subclass(self: Tensor, cls: type) -> Tensor:
    """The same value as an instance of a subclass of Tensor."""
    if not issubclass(cls, Tensor):
        raise TypeError(
            f"as_subclass: Creating a Tensor subclass from a class that does not inherit from Tensor is not possible: {cls.__name__}"
        )
    t = Tensor.__new__(cls)  # the class's own constructor may well end here
    Tensor.__init__(t, self._value, self._interp, self._aux)
    return t


@public("", methods="apply_", out=False)
def apply_(self: Tensor, f: Any) -> Tensor:
    """Write ``f(element)`` to every element; slow, for Python functions of numbers."""
    import numpy as np

    v = self.concrete("apply_()")
    return self.copy_(Tensor(np.vectorize(f, otypes=[v.dtype])(v) if v.size else v))


@public("", methods="map_", out=False)
def map_(self: Tensor, tensor: Tensor, f: Any) -> Tensor:
    """Write ``f(self element, tensor element)`` to every element; slow, for Python functions of numbers."""
    import numpy as np

    v, w = self.concrete("map_()"), tensor.concrete("map_()")
    return self.copy_(Tensor(np.vectorize(f, otypes=[v.dtype])(v, w) if v.size else v))


@public("", methods="map2_", out=False)
def map2_(self: Tensor, x: Tensor, y: Tensor, f: Any) -> Tensor:
    """Write ``f(self element, x element, y element)`` to every element; slow, for Python functions of numbers."""
    import numpy as np

    v, a, b = (t.concrete("map2_()") for t in (self, x, y))
    return self.copy_(Tensor(np.vectorize(f, otypes=[v.dtype])(v, a, b) if v.size else v))


def _publish_in_place(names: str) -> None:
    """PyTorch has some in-place methods as functions too."""
    for n in names.split():
        public(n, out=False)(METHODS[n])


_publish_in_place("erf_ erfc_ i0_ logit_ sinc_ addmv_ index_put_")


@public("get_num_interop_threads", out=False)
def get_num_interop_threads() -> int:
    """1: operations follow one another."""
    return 1


@public("set_num_interop_threads", out=False)
def set_num_interop_threads(n: int) -> None:
    """Accepted: operations follow one another."""


@public("set_warn_always", out=False)
def set_warn_always(b: bool) -> None:
    """Remember the wish: warnings go through Python's filters."""
    _Settings.warn_always = bool(b)


@public("is_warn_always_enabled", out=False)
def is_warn_always_enabled() -> bool:
    """What was asked for with ``set_warn_always``."""
    return _Settings.warn_always


@public("is_storage", out=False)
def is_storage(obj: Any) -> bool:
    """Whether an object is a storage."""
    from ..world.storages import TypedStorage, UntypedStorage

    return isinstance(obj, TypedStorage | UntypedStorage)


def _elsewhere(kind: str) -> None:
    def method(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        from ..core.device import place

        place(kind)
        return self

    method.__name__, method.__doc__ = kind, f"Raises: there is no device {kind} here."
    public("", methods=kind, out=False)(method)


for _kind in ("cuda", "xpu", "hpu", "ipu", "mtia"):
    _elsewhere(_kind)
