"""The older form of weight norm: ``weight_g`` and ``weight_v`` as parameters of the module itself."""

from __future__ import annotations

from typing import Any

from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign
from ...ops.linalg.norms import norm_except_dim
from ...ops.norm.weight import weight_norm as weight_norm_function
from ..module import Module
from ..parameter import Parameter, is_lazy
from .computed import Computed, install, uninstall
from .parametrizations import kept_dim


class WeightNorm(Computed):
    """``weight = weight_v weight_g / |weight_v|``, computed when it is read."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name, self.dim = name, dim

    def compute(self, module: Module) -> Any:
        v = getattr(module, self.name + "_v")
        return weight_norm_function(v, getattr(module, self.name + "_g"), kept_dim(self.dim, v.ndim))

    def store(self, module: Module, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{type(value).__name__}' to the normalised weight '{self.name}' (Tensor expected)"
            )
        with no_grad():
            x = value.detach()
            assign(getattr(module, self.name + "_v"), x, "weight_norm")
            assign(getattr(module, self.name + "_g"), norm_except_dim(x, 2, kept_dim(self.dim, x.ndim)), "weight_norm")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Direction and length of a weight as parameters ``weight_v`` and ``weight_g``; the norm is over all dims but `dim`.

    ``dim=None`` takes the norm of the whole weight; a negative dim counts from the end.
    """
    if isinstance(module.__dict__.get("_computed", {}).get(name), WeightNorm):
        raise RuntimeError(f"weight_norm: Cannot register two weight_norm hooks on the same parameter {name}")
    w = module._parameters.get(name)
    if w is None:
        raise ValueError(f"weight_norm: module {type(module).__name__} has no parameter '{name}'")
    if is_lazy(w):
        raise ValueError(
            "The module passed to `WeightNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying weight normalization"
        )
    x, on = w.detach(), w.requires_grad
    g = norm_except_dim(x, 2, kept_dim(dim, x.ndim))
    delattr(module, name)
    module.register_parameter(name + "_g", Parameter(g, on))
    module.register_parameter(name + "_v", Parameter(x.clone(), on))
    install(module, name, WeightNorm(name, dim))
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """The weight as an ordinary parameter again, with its present value."""
    if not isinstance(module.__dict__.get("_computed", {}).get(name), WeightNorm):
        raise ValueError(f"weight_norm of '{name}' not found in {type(module).__name__}")
    on = getattr(module, name + "_v").requires_grad
    with no_grad():
        value = getattr(module, name).detach()
    uninstall(module, name)
    delattr(module, name + "_g")
    delattr(module, name + "_v")
    module.register_parameter(name, Parameter(value, on))
    return module
