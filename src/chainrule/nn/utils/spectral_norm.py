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
    """``weight = weight_orig / sigma(weight_orig)``, computed when it is read; as a hook before forward, a step of power iteration.

    The step updates v before u, the other way round than the parametrization does, and reading the weight makes none.
    """

    def __init__(self, name: str, step: _SpectralNorm) -> None:
        self.name, self.step = name, step

    def _parts(self, module: Module) -> tuple[Tensor, Tensor, Tensor]:
        w = self.step._matrix(getattr(module, self.name + "_orig"))
        return w, getattr(module, self.name + "_u"), getattr(module, self.name + "_v")

    def __call__(self, module: Module, inputs: Any) -> None:
        if not module.training:
            return
        w, u, v = self._parts(module)
        with no_grad():
            new_v, new_u = self.step._step(w.detach().mH, v, u)
            assign(u, new_u, "spectral_norm")
            assign(v, new_v, "spectral_norm")

    def compute(self, module: Module) -> Any:
        w, u, v = self._parts(module)
        return getattr(module, self.name + "_orig") / u.clone().dot(w.mv(v.clone()))

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
    norm = SpectralNorm(name, step)
    install(module, name, norm)
    module.register_forward_pre_hook(norm)
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
    norm = module.__dict__["_computed"][name]
    for key in [k for k, hook in module._forward_pre_hooks.items() if hook is norm]:
        del module._forward_pre_hooks[key]
    uninstall(module, name)
    for tail in ("_orig", "_u", "_v"):
        delattr(module, name + tail)
    module.register_parameter(name, Parameter(value, w.requires_grad))
    return module
