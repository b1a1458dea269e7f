"""The older form of spectral norm: ``weight_orig``, ``weight_u`` and ``weight_v`` on the module itself."""

from __future__ import annotations

from typing import Any

from ...core.imperative import no_grad
from ...core.tensor import Tensor
from ...core.views import assign
from ..module import Module
from ..parameter import Parameter, is_lazy
from .computed import Computed, install, uninstall
from .parametrizations import _SpectralNorm, outputs_dim


class SpectralNorm(Computed):
    """``weight = weight_orig / sigma(weight_orig)``, computed when it is read; a step of power iteration in training."""

    def __init__(self, name: str, step: _SpectralNorm) -> None:
        self.name, self.step = name, step

    def compute(self, module: Module) -> Any:
        w = self.step._matrix(getattr(module, self.name + "_orig"))
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        if module.training:
            with no_grad():
                new = self.step._step(w.detach(), u, v)
                assign(u, new[0], "spectral_norm")
                assign(v, new[1], "spectral_norm")
        u, v = u.clone(), v.clone()
        return getattr(module, self.name + "_orig") / u.dot(w.mv(v))

    def store(self, module: Module, value: Any) -> None:
        with no_grad():
            assign(getattr(module, self.name + "_orig"), value.detach(), "spectral_norm")


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """``W / sigma(W)`` with the largest singular value of W, whose rows are the slices of `dim` (default: that of the outputs)."""
    if isinstance(module.__dict__.get("_computed", {}).get(name), SpectralNorm):
        raise RuntimeError(f"spectral_norm: Cannot register two spectral_norm hooks on the same parameter {name}")
    w = module._parameters.get(name)
    if w is None:
        raise ValueError(f"spectral_norm: module {type(module).__name__} has no parameter '{name}'")
    if is_lazy(w):
        raise ValueError(
            "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy forward before applying spectral normalization"
        )
    step = _SpectralNorm(w, n_power_iterations, outputs_dim(module) if dim is None else dim, eps)
    delattr(module, name)
    module.register_parameter(name + "_orig", w)
    module.register_buffer(name + "_u", step._buffers.pop("_u"))
    module.register_buffer(name + "_v", step._buffers.pop("_v"))
    install(module, name, SpectralNorm(name, step))
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """The weight as an ordinary parameter again, with its present value."""
    if not isinstance(module.__dict__.get("_computed", {}).get(name), SpectralNorm):
        raise ValueError(f"spectral_norm of '{name}' not found in {type(module).__name__}")
    w: Tensor = getattr(module, name + "_orig")
    training = module.training
    module.train(False)
    with no_grad():
        value = getattr(module, name).detach()
    module.train(training)
    uninstall(module, name)
    for tail in ("_orig", "_u", "_v"):
        delattr(module, name + tail)
    module.register_parameter(name, Parameter(value, w.requires_grad))
    return module
