"""Parametrizations: a weight as a function of other parameters, ``module.weight = f(original)``.

    register_parametrization(layer, "weight", Symmetric())

Parametrized modules can be pickled, copied, and their states loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...core import dtypes as dt
from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign
from ..module import Module
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter
from .computed import Computed, install, plain_class, uninstall

_CACHE: ContextVar[dict[tuple[int, str], Any] | None] = ContextVar("parametrization_cache", default=None)


@contextmanager
def cached() -> Iterator[None]:
    """Inside, each parametrized tensor is computed once; an inner ``cached()`` shares what the outer one has."""
    outer = _CACHE.get()
    token = _CACHE.set({} if outer is None else outer)
    try:
        yield
    finally:
        _CACHE.reset(token)


def _check(original: Tensor, y: Any) -> None:
    """Refuse a parametrization that changes the type or the shape of what it parametrizes."""
    what = "register_parametrization:"
    if not isinstance(y, Tensor):
        raise ValueError(f"{what} A parametrization must return a tensor. Got {type(y).__name__}.")
    if y.dtype is not original.dtype:
        raise ValueError(
            f"{what} Registering a parametrization may not change the dtype of the tensor, unless the `unsafe` flag is enabled; "
            f"it changes it from {original.dtype} to {y.dtype}"
        )
    if y.shape != original.shape:
        raise ValueError(
            f"{what} Registering a parametrization may not change the shape of the tensor, unless the `unsafe` flag is enabled; "
            f"it changes it from {tuple(original.shape)} to {tuple(y.shape)}"
        )


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, in order, and what they are applied to: ``original`` or ``original0, ...``."""

    is_tensor: bool

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with no_grad():
            new = self._inverted(original)
            self._check_inverse(original, new)
            if not unsafe:
                _check(original, self._chain([new] if isinstance(new, Tensor) else new))
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if new is not original:  # the same object with another value, so that optimisers keep it
                original.data = new
            self._register("original", original, original)
        else:
            for k, x in enumerate(new):
                self._register(f"original{k}", x, original)

    @staticmethod
    def _check_inverse(original: Tensor, new: Any) -> None:
        """Refuse what a right inverse may not return as the original, or the originals."""
        if isinstance(new, Tensor):
            for part in ("dtype", "device"):
                if getattr(new, part) != getattr(original, part):
                    raise ValueError(
                        f"register_parametrization: When `right_inverse` outputs one tensor, it may not change the {part}; it changes it from "
                        f"{getattr(original, part)} to {getattr(new, part)}"
                    )
            return
        for k, x in enumerate(new):
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"register_parametrization: `right_inverse` must return a Tensor or a Sequence of tensors (list, tuple...). Got element {k} of "
                    f"the sequence with type {type(x).__name__}"
                )

    def _register(self, name: str, x: Tensor, original: Tensor) -> None:
        if not isinstance(original, Parameter):
            self.register_buffer(name, x if x is original else x.detach())
        elif x is original:
            self.register_parameter(name, original)
        else:
            self.register_parameter(name, Parameter(x, original.requires_grad and x.dtype.category >= dt.FLOAT))

    def _inverted(self, value: Any, every: bool = False) -> Any:
        """The originals for which the tensor is `value`; with `every`, no step may lack an inverse."""
        new = value
        for m in reversed(list(self)):
            if not hasattr(m, "right_inverse"):
                if every:
                    raise RuntimeError(
                        f"cannot assign: the parametrization {type(m).__name__} does not implement right_inverse"
                    )
                continue
            try:
                new = m.right_inverse(new)
            except NotImplementedError:
                if every:
                    raise
                continue
            if not isinstance(new, Tensor) and not isinstance(new, Sequence):
                raise ValueError(
                    f"register_parametrization: `right_inverse` of {type(m).__name__} must return a Tensor or a Sequence of tensors. Got {type(new).__name__}"
                )
        return new

    def originals(self) -> list[Tensor]:
        """The tensors that the first parametrization is applied to."""
        return [self.original] if self.is_tensor else [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Choose the originals so that the parametrized tensor is `value`."""
        with no_grad():
            new = self._inverted(value, every=True)
            for old, x in zip(self.originals(), [new] if self.is_tensor else new, strict=True):
                if old.shape != x.shape:
                    raise ValueError(
                        f"right_inverse gave a tensor of shape {tuple(x.shape)} for an original of shape {tuple(old.shape)}"
                    )
                assign(old, x.detach(), "right_inverse")

    def _chain(self, xs: Sequence[Tensor]) -> Tensor:
        modules = iter(self)
        x = next(modules)(*xs)
        for m in modules:
            x = m(x)
        return x

    def forward(self) -> Tensor:
        """The parametrized tensor."""
        return self._chain(self.originals())


class _Parametrized(Computed):
    def __init__(self, name: str) -> None:
        self.name = name

    def compute(self, module: Module) -> Any:
        cache = _CACHE.get()
        if cache is None:
            return module.parametrizations[self.name]()
        key = (id(module), self.name)
        if key not in cache:
            cache[key] = module.parametrizations[self.name]()
        return cache[key]

    def store(self, module: Module, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{type(value).__name__}' as parametrized tensor '{self.name}' (Tensor expected)"
            )
        module.parametrizations[self.name].right_inverse(value)


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module has a parametrization, of this tensor or of any."""
    table = module._modules.get("parametrizations")
    if not isinstance(table, ModuleDict):
        return False
    return len(table) > 0 if tensor_name is None else tensor_name in table


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Make ``module.tensor_name`` the result of `parametrization`; several are applied one after the other.

    The first one keeps the value, where it has a ``right_inverse``: the original is the inverse of the value. A further one is
    applied to what there is.
    """
    what = "register_parametrization"
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        group = module.parametrizations[tensor_name]
        if not unsafe:
            with no_grad():
                x = getattr(module, tensor_name)
                y = parametrization(x)
                _check(x, y)
                if hasattr(parametrization, "right_inverse"):
                    back = parametrization.right_inverse(y)
                    if not isinstance(back, Tensor):
                        raise ValueError(
                            f"{what}: parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
                        )
                    for part in ("dtype", "shape"):
                        if getattr(back, part) != getattr(x, part):
                            raise ValueError(
                                f"{what}: The tensor returned by parametrization.right_inverse must have the same {part} as module.{tensor_name}, "
                                f"unless the `unsafe` flag is enabled; got {getattr(back, part)} instead of {getattr(x, part)}"
                            )
        group.append(parametrization)
        group.unsafe |= unsafe
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(
            f"{what}: Module '{type(module).__name__}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    original = module._parameters.get(tensor_name, module._buffers.get(tensor_name))
    if original is None:
        raise ValueError(f"{what}: '{tensor_name}' of {type(module).__name__} is None")
    group = ParametrizationList([parametrization], original, unsafe)
    delattr(module, tensor_name)
    if "parametrizations" not in module._modules:
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = group
    install(module, tensor_name, _Parametrized(tensor_name))
    return module


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Make a parametrized tensor an ordinary one, with its parametrized value or with the original's."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(
            f"remove_parametrizations: module {type(module).__name__} does not have a parametrization on {tensor_name}"
        )
    group = module.parametrizations[tensor_name]
    originals = group.originals()
    is_param = isinstance(originals[0], Parameter)
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name).detach()
        if group.is_tensor and is_param and originals[0].shape == value.shape and originals[0].dtype is value.dtype:
            new = originals[0]
            with no_grad():
                assign(new, value, "remove_parametrizations")
        else:
            new = Parameter(value, any(o.requires_grad for o in originals)) if is_param else value
    elif not group.is_tensor:
        raise ValueError(
            "remove_parametrizations: leave_parametrized=False needs a single original tensor, there are several"
        )
    else:
        new = originals[0]
    uninstall(module, tensor_name)
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        delattr(module, "parametrizations")
    if is_param:
        module.register_parameter(tensor_name, new)
    else:
        module.register_buffer(tensor_name, new)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class before it was parametrized."""
    return plain_class(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Parametrize `to_module` as `from_module` is, of one tensor or of all, with the values of its originals."""
    if not is_parametrized(from_module):
        return to_module
    table = from_module.parametrizations
    for name in list(table) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        for step in table[name]:
            register_parametrization(to_module, name, step, unsafe=table[name].unsafe)
        with no_grad():
            for new, old in zip(to_module.parametrizations[name].originals(), table[name].originals(), strict=True):
                assign(new, old.detach(), "transfer_parametrizations_and_params")
    return to_module
