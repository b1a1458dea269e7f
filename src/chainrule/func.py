"""Composable transforms of functions: grad, vjp, jvp, vmap, Jacobians and Hessians, nested to any depth in any order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.registry import house
from .core.tensor import Tensor
from .jit.control import associative_scan, cond, fori_loop, scan, switch, while_loop
from .jit.control import map_ as map
from .transforms.batch import vmap
from .transforms.forward import jvp, linearize
from .transforms.jacobian import hessian, jacfwd, jacrev
from .transforms.reverse import elementwise_grad, grad, grad_and_value, value_and_grad, vjp

__all__ = [
    "associative_scan", "cond", "debug_unwrap", "elementwise_grad", "fori_loop", "functional_call", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "map", "replace_all_batch_norm_modules_", "scan",
    "stack_module_state", "switch", "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with these parameters and buffers in place of its own."""
    from .nn.functional_call import functional_call as call

    return call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one architecture, stacked for ``vmap``."""
    from .nn.functional_call import stack_module_state as stack

    return stack(models)


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Take the running statistics from the batch norms in a module, in place: they then use those of each batch, which vmap needs; returns the module."""
    from .nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: writes never touch anybody else's values here."""
    return func


def debug_unwrap(x: Tensor, *, recurse: bool = True) -> Tensor:
    """The concrete tensor beneath the transforms' levels, for looking at inside a transformed function."""
    while x._interp is not None:
        x = x._value
        if not recurse:
            break
    return x


house(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
