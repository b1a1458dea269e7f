"""chainrule: differentiable NumPy. PyTorch's operators and derivative rules, JAX's composable transforms, ragged tensors."""

from __future__ import annotations

import warnings as _warnings
from typing import Any as _Any

# A 0/0 or an overflow inside an op is a value (NaN, inf), as in PyTorch, not a warning.
_warnings.filterwarnings("ignore", r".*encountered in", RuntimeWarning, r"chainrule\.")

import math as _math  # noqa: E402

from .core.memory import keep_freed_memory as _keep_freed_memory  # noqa: E402

_keep_freed_memory()

from . import autograd, func  # noqa: E402
from . import ops as _ops  # noqa: E402
from .core import dtypes as _dt  # noqa: E402
from .core import imperative as _imperative  # noqa: E402
from .core.device import (  # noqa: E402
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    jagged,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .core.dtypes import DType as dtype  # noqa: E402
from .core.dtypes import can_cast, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype  # noqa: E402
from .core.errors import ChainruleError, EscapedError, MissingRuleError  # noqa: E402
from .core.imperative import (  # noqa: E402
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.printing import set_printoptions  # noqa: E402
from .core.registry import fill as _fill  # noqa: E402
from .core.tensor import Size, Tensor  # noqa: E402
from .custom import custom_op  # noqa: E402
from .func import vmap  # noqa: E402
from .interop import einops as _einops  # noqa: E402
from .interop import exchange as _exchange  # noqa: E402
from .interop import system as _system  # noqa: E402
from .interop.numpy import door as _door  # noqa: E402
from .ops.random.generator import Generator, default_generator  # noqa: E402

__version__ = "0.1.0"

for _d in _dt.ALL:
    globals()[_d.name] = _d
for _alias in ("half", "float", "double", "short", "int", "long", "chalf", "cfloat", "cdouble"):
    globals()[_alias] = _dt.NAMES[_alias]

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
_fill(__import__("sys").modules[__name__], "")
from . import namespaces as _namespaces  # noqa: E402

_namespaces.install(__import__("sys").modules[__name__])


def is_inference(x: Tensor) -> bool:
    """Whether a tensor was made in inference mode: never, such tensors are ordinary here."""
    return False


def typename(obj: _Any) -> str:
    """The type's name, as PyTorch prints it."""
    return "chainrule.Tensor" if isinstance(obj, Tensor) else type(obj).__name__


# Imported when first used, so that ``import chainrule`` stays quick.
_LAZY = ("array_api", "distributions", "nested", "numpy", "optim", "scipy", "testing", "tree", "typing", "utils")
_PARTS = ("autograd", "fft", "func", "linalg", "masked", "nn", "random", "return_types", "signal", "sparse", "special")
__all__ = _namespaces.public_names(__import__("sys").modules[__name__], _PARTS + _LAZY)


def __getattr__(name: str) -> _Any:
    """The parts that are imported on demand."""
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    # With the module, so that Python can suggest a name that is meant.
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__("sys").modules[__name__]
    )


def __dir__() -> list[str]:
    return __all__
