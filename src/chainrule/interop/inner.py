"""What programs ask a tensor about its memory: storages, versions, bases of views; and the parts of complex numbers as targets."""

from __future__ import annotations

from typing import Any

from ..core.registry import prop, public
from ..core.tensor import Tensor
from ..core.views import is_detached, root_of


@public("", methods="untyped_storage", out=False)
def untyped_storage(self: Tensor) -> Any:
    """The bytes of the memory that this tensor's family of views shares."""
    from ..world import storages

    return storages.untyped_storage(self)


@public("", methods="storage", out=False)
def storage(self: Tensor) -> Any:
    """The elements of the memory that this tensor's family of views shares."""
    from ..world import storages

    return storages.storage(self)


@public("", methods="_typed_storage", out=False)
def _typed_storage(self: Tensor) -> Any:
    """The elements of the memory that this tensor's family of views shares."""
    return storage(self)


@public("", methods="storage_type", out=False)
def storage_type(self: Tensor) -> Any:
    """The class of storages for elements of this type."""
    from ..world import storages

    return storages.BY_TYPE.get(storages._NAMES.get(self.dtype.name, ""), storages.TypedStorage)


@public("", methods="const_data_ptr", out=False)
def const_data_ptr(self: Tensor) -> int:
    """The address of the first element."""
    return self.data_ptr()


@prop("_version")
def _version(self: Tensor) -> int:
    """How many in-place writes this tensor's family of views has seen."""
    m = root_of(self)._meta
    return 0 if m is None else m.version


@prop("_base")
def _base(self: Tensor) -> Tensor | None:
    """The tensor that this one is a view of."""
    m = self._meta
    return None if m is None or m.base is None or is_detached(m.chain) else m.base


@public("", methods="_is_view", out=False)
def _is_view(self: Tensor) -> bool:
    """Whether this tensor is a view of another."""
    return self._base is not None


@public("", methods="module_load", out=False)
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What a module that loads a state makes of `other` for this tensor: its value copied here, or with `assign` itself."""
    return other.detach() if assign else self.copy_(other).detach()


@prop("names")
def names(self: Tensor) -> tuple[None, ...]:
    """None for every dimension: dimensions have no names here."""
    return (None,) * self.ndim


@public("", methods="has_names", out=False)
def has_names(self: Tensor) -> bool:
    """False: dimensions have no names here."""
    return False


def _settable(name: str) -> None:
    part: Any = vars(Tensor)[name]

    def write(self: Tensor, value: Any) -> None:
        part.fget(self).copy_(
            value if isinstance(value, Tensor) else self.new_tensor(value, dtype=part.fget(self).dtype)
        )

    setattr(Tensor, name, property(part.fget, write, None, part.__doc__))


_settable("real")
_settable("imag")


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """An instance of a subclass of Tensor with the value of `data`, a leaf."""
    x = data.detach().as_subclass(cls)
    return x.requires_grad_() if require_grad else x


Tensor._make_subclass = staticmethod(_make_subclass)


def _make_wrapper_subclass(cls: type, *args: Any, **kw: Any) -> Any:
    """Not done: subclasses that answer for ops of the dispatcher; ``__torch_function__`` is what they have here."""
    from ..world import refusal

    return refusal.refuse("Tensor._make_wrapper_subclass", "dispatcher")()


Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)


# -- sizes as PyTorch's compiler names them: here they are Python's numbers ------------------------------------------------


def _sizes() -> None:
    import math
    import operator

    for name, f, doc in (
        ("sym_int", int, "A number as an int."),
        ("sym_float", float, "A number as a float."),
        ("sym_not", operator.not_, "The other truth value."),
        ("sym_max", max, "The greater of two numbers."),
        ("sym_min", min, "The smaller of two numbers."),
        ("sym_sqrt", math.sqrt, "The square root of a number."),
        ("sym_sum", sum, "The sum of a list of numbers."),
        ("sym_ite", lambda b, t, f: t if b else f, "One of two numbers."),
    ):

        def call(*args: Any, _f: Any = f) -> Any:
            return _f(*args)

        call.__name__, call.__doc__ = name, doc
        public(name, out=False)(call)


_sizes()


@public("get_device_module", out=False)
def get_device_module(device: Any = None) -> Any:
    """The module of a device: ``chainrule.cuda`` for "cuda"."""
    import importlib

    from ..core.device import device as name

    return importlib.import_module(f"chainrule.world.{'cpu' if device is None else name(device).type}")


@public("is_distributed", methods="is_distributed", out=False)
def is_distributed(input: Tensor) -> bool:
    """False: a tensor is in one process."""
    return False


@public("is_vulkan_available", out=False)
def is_vulkan_available() -> bool:
    """False."""
    return False


@public("from_file", out=False)
def from_file(filename: str, shared: bool | None = None, size: int = 0, *, dtype: Any = None, layout: Any = None, device: Any = None,
              pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A vector of `size` numbers in a file; with `shared`, what is written goes to the file."""
    import numpy as np

    from ..core import dtypes as dt

    d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
    return Tensor(np.asarray(np.memmap(filename, d.np, "r+" if shared else "c", shape=(size,))))
