"""Pruning: a mask beside a parameter, ``weight = weight_orig * weight_mask``, renewed before each call of the module."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ...core.imperative import no_grad
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.views import assign
from ..module import Module


def _is_number(x: Any, kind: Any) -> bool:
    return isinstance(x, kind) and not isinstance(x, bool)


def _validate_pruning_amount_init(amount: Any) -> None:
    if not _is_number(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if (_is_number(amount, numbers.Integral) and amount < 0) or (
        not _is_number(amount, numbers.Integral) and not 0 <= amount <= 1
    ):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if _is_number(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many are meant: a number of them, or a fraction of all."""
    return amount if _is_number(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    if dim >= t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {list(t.shape)}")


def _validate_structured_pruning(t: Tensor) -> None:
    if t.ndim <= 1:
        raise ValueError(
            f"Structured pruning can only be applied to multidimensional tensors. Found tensor of shape {list(t.shape)} with {t.ndim} dims"
        )


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """The n-norm of each slice along `dim`."""
    dims = [d for d in range(t.ndim) if d != dim % t.ndim]
    return PUBLIC["norm"](t, p=n, dim=dims)


class BasePruningMethod(ABC):
    """How entries are chosen: ``compute_mask(t, default_mask)``, and what kind of choice that is: `PRUNING_TYPE`."""

    _tensor_name: str
    PRUNING_TYPE = ""

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for `t`, within `default_mask`."""

    def apply_mask(self, module: Module) -> Tensor:
        """The pruned tensor."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        orig = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(orig.dtype) * orig

    @classmethod
    def apply(cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any) -> Any:
        """Prune ``module.name``; on top of what was pruned before."""
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        for key, hook in list(module._forward_pre_hooks.items()):
            if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
                del module._forward_pre_hooks[key]
                container = hook if isinstance(hook, PruningContainer) else PruningContainer(hook)
                container._tensor_name = name
                container.add_pruning_method(method)
                method = container
                break
        orig = getattr(module, name)
        scores = orig if importance_scores is None else importance_scores
        if scores.shape != orig.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}")
        first = not isinstance(method, PruningContainer)
        if first:
            default = PUBLIC["ones_like"](orig)
            module.register_parameter(name + "_orig", orig)
            del module._parameters[name]
        else:
            default = getattr(module, name + "_mask").detach().clone()
        try:
            with no_grad():
                mask = method.compute_mask(scores.detach(), default)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                orig = getattr(module, name + "_orig")
                del module._parameters[name + "_orig"]
                module.register_parameter(name, orig)
            raise
        return method

    def prune(self, t: Tensor, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """A pruned `t`, without a module."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError("importance_scores should have the same shape as tensor t")
        default = PUBLIC["ones_like"](t) if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), default)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor a parameter again; what was pruned stays zero."""
        name = getattr(self, "_tensor_name", None)
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        with no_grad():
            value = self.apply_mask(module).detach()
            if hasattr(module, name):
                delattr(module, name)
            orig = module._parameters.pop(name + "_orig")
            assign(orig, value, "prune")
        del module._buffers[name + "_mask"]
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Several methods one after the other, each on what the ones before left."""

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if args and not isinstance(args[0], Iterable):
            self._tensor_name = args[0]._tensor_name
        for method in args if not (len(args) == 1 and isinstance(args[0], Iterable)) else args[0]:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        mine = getattr(self, "_tensor_name", None)
        if method is not None and mine is not None and mine != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{mine}' to PruningContainer {self}. "
                f"Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Any:
        return iter(self._pruning_methods)

    def __getitem__(self, k: Any) -> Any:
        return self._pruning_methods[k]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The last method's mask of what the mask so far has left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype).clone()
        kind = method.PRUNING_TYPE
        if kind == "unstructured":
            left: Any = mask == 1
        elif kind == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError(f"Pruning methods of PRUNING_TYPE 'structured' need a `dim`: {method}")
            dim = method.dim % t.ndim
            kept = mask.sum([d for d in range(t.ndim) if d != dim]) != 0
            left = tuple(kept if d == dim else slice(None) for d in range(t.ndim))
        elif kind == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {kind}")
        mask[left] = method.compute_mask(t[left], default_mask=mask[left]).to(t.dtype)
        return mask


class Identity(BasePruningMethod):
    """Nothing pruned; there are the mask and the original."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far."""
        return default_mask


class _Some(BasePruningMethod):
    """A number or a fraction of entries or slices."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, n: int) -> int:
        _validate_pruning_amount(self.amount, n)
        return _compute_nparams_toprune(self.amount, n)


def _without(default_mask: Tensor, places: Tensor) -> Tensor:
    """The mask with zeros at these places of its flattened entries."""
    return default_mask.reshape(-1).index_fill(0, places, 0).reshape(*default_mask.shape)


class RandomUnstructured(_Some):
    """Entries at random."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without some of its entries."""
        n = self._count(t.numel())
        if not n:
            return default_mask.clone()
        return _without(default_mask, PUBLIC["rand"](t.numel()).argsort()[:n])


class L1Unstructured(_Some):
    """The entries that are least in absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the least entries."""
        n = self._count(t.numel())
        return _without(default_mask, t.abs().reshape(-1).argsort()[:n]) if n else default_mask.clone()


class _Structured(_Some):
    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _drop(self, t: Tensor, default_mask: Tensor, scores: Any) -> Tensor:
        """The mask without the slices that have the least scores."""
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        n = self._count(t.shape[self.dim])
        if not n:
            return default_mask.clone()
        return default_mask.index_fill(self.dim, scores().argsort()[:n], 0)


class RandomStructured(_Structured):
    """Slices along `dim` at random."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without some slices."""
        return self._drop(t, default_mask, lambda: PUBLIC["rand"](t.shape[self.dim]))


class LnStructured(_Structured):
    """The slices along `dim` of least n-norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the slices of least norm."""
        return self._drop(t, default_mask, lambda: _compute_norm(t, self.n, self.dim))


class CustomFromMask(BasePruningMethod):
    """A mask of your own."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"the mask of shape {list(self.mask.shape)} does not fit a tensor of shape {list(default_mask.shape)}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """A mask of ones."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: Any) -> Module:
    """Prune entries at random."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: Any, importance_scores: Any = None) -> Module:
    """Prune the entries of least absolute value."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: Any, dim: int) -> Module:
    """Prune slices along `dim` at random."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module: Module, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None) -> Module:
    """Prune the slices along `dim` of least n-norm."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prune where a mask is zero."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]], pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune entries of several parameters, chosen among all of them."""
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    places = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    every = [scores.get((m, n), getattr(m, n)).detach().reshape(-1) for m, n in places]
    masks: list[Any] = [getattr(m, n + "_mask", None) for m, n in places]
    masks = [
        PUBLIC["ones_like"](getattr(m, n).detach()) if k is None else k for k, (m, n) in zip(masks, places, strict=True)
    ]
    method = pruning_method(**kwargs)
    method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}'
        )
    container = PruningContainer(method)
    with no_grad():
        mask = container.compute_mask(PUBLIC["cat"](every), PUBLIC["cat"]([k.reshape(-1) for k in masks]))
    at = 0
    for (m, n), old in zip(places, masks, strict=True):
        custom_from_mask(m, n, mask[at : at + old.numel()].reshape(*old.shape))
        at += old.numel()


def remove(module: Module, name: str) -> Module:
    """Make a pruned tensor an ordinary parameter; what was pruned stays zero."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether this module or one below it is pruned."""
    return any(isinstance(hook, BasePruningMethod) for m in module.modules() for hook in m._forward_pre_hooks.values())
