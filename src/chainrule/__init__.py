"""chainrule: differentiable NumPy. PyTorch's operators and derivative rules, JAX's composable transforms, ragged tensors."""

from __future__ import annotations

import gc as _gc
import warnings as _warnings
from typing import Any as _Any

# Whatever is made while this is imported stays: looking for garbage in between takes a fifth of the time.
_collecting = _gc.isenabled()
_gc.disable()

# A 0/0 or an overflow inside an op is a value (NaN, inf), as in PyTorch, not a warning.
_warnings.filterwarnings("ignore", r".*encountered in", RuntimeWarning, r"chainrule\.")

import math as _math  # noqa: E402

from .core.memory import keep_freed_memory as _keep_freed_memory  # noqa: E402

_keep_freed_memory()

from . import autograd, func  # noqa: E402
from . import ops as _ops  # noqa: E402
from .core import dtypes as _dt  # noqa: E402
from .core import imperative as _imperative  # noqa: E402
from .core import overriding as _overriding  # noqa: E402
from .core.device import (  # noqa: E402
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    jagged,
    layout,
    memory_format,
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
from .interop import inner as _inner  # noqa: E402
from .interop import system as _system  # noqa: E402
from .interop.numpy import door as _door  # noqa: E402
from .jit import api as _jit  # noqa: E402
from .jit import control as _control  # noqa: E402
from .ops.random.generator import Generator, default_generator  # noqa: E402
from .version_number import __version__  # noqa: E402

for _d in (*_dt.ALL, *_dt.FLOAT8):
    globals()[_d.name] = _d
for _alias in ("half", "float", "double", "short", "int", "long", "chalf", "cfloat", "cdouble"):
    globals()[_alias] = _dt.NAMES[_alias]

jit, compile, explain = _jit.jit, _jit.compile, _jit.explain
cond, switch, while_loop, fori_loop = _control.cond, _control.switch, _control.while_loop, _control.fori_loop
scan, map, associative_scan = _control.scan, _control.map_, _control.associative_scan
inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
_fill(__import__("sys").modules[__name__], "")
from . import namespaces as _namespaces  # noqa: E402

_namespaces.install(__import__("sys").modules[__name__])
from .world import torchscript as _torchscript  # noqa: E402

_torchscript.lend(__import__("sys").modules[__name__].jit)


def is_inference(x: Tensor) -> bool:
    """Whether a tensor was made in inference mode: never, such tensors are ordinary here."""
    return False


def typename(obj: _Any) -> str:
    """The type's name, as PyTorch prints it."""
    if isinstance(obj, Tensor):
        return obj.type() if type(obj) is Tensor else f"{type(obj).__module__}.{type(obj).__qualname__}"
    return (
        f"{type(obj).__module__}.{type(obj).__name__}"
        if not isinstance(obj, int | float | str | list | dict)
        else type(obj).__name__
    )


# Imported when first used, so that ``import chainrule`` stays quick.
_LAZY = (
    "amp",
    "array_api",
    "debug",
    "distributed",
    "distributions",
    "nested",
    "numpy",
    "optim",
    "overrides",
    "quasirandom",
    "scipy",
    "testing",
    "tree",
    "typing",
    "utils",
)
_WORLD = ("accelerator", "backends", "compiler", "cpu", "cuda", "futures", "fx", "hub", "library", "mps", "mtia",
          "multiprocessing", "profiler", "serialization", "torch_version", "types", "version", "xpu")  # fmt: skip
# Functions of parts that are imported on demand.
_FROM = dict.fromkeys(
    """autocast GradScaler is_autocast_enabled is_autocast_cpu_enabled is_autocast_available get_autocast_dtype set_autocast_dtype
    get_autocast_cpu_dtype get_autocast_gpu_dtype set_autocast_cpu_dtype set_autocast_gpu_dtype set_autocast_enabled set_autocast_cpu_enabled
    is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache autocast_increment_nesting autocast_decrement_nesting""".split(),
    "amp",
) | dict.fromkeys(
    """UntypedStorage TypedStorage Storage FloatStorage DoubleStorage HalfStorage BFloat16Storage ByteStorage CharStorage ShortStorage IntStorage
    LongStorage BoolStorage ComplexFloatStorage ComplexDoubleStorage""".split(),
    "world.storages",
) | {
    "DisableTorchFunction": "core.overriding", "DisableTorchFunctionSubclass": "core.overriding", "Stream": "world.devices",
    "verify": "people.verify", "show": "people.show", "find_nan": "people.find_nan", "profile": "people.profile",
    "summary": "people.summary", "progress": "people.progress", "Event": "world.devices",
    "install_as_torch": "as_torch", "OutOfMemoryError": "world.cuda", "AcceleratorError": "world.cuda",
}  # fmt: skip
_PARTS = ("autograd", "fft", "func", "linalg", "masked", "nn", "random", "return_types", "signal", "sparse", "special")
__all__ = _namespaces.public_names(__import__("sys").modules[__name__], _PARTS + _LAZY + _WORLD + tuple(_FROM))


def __getattr__(name: str) -> _Any:
    """The parts that are imported on demand."""
    if name in _LAZY:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in _WORLD:
        import importlib

        return importlib.import_module(f"{__name__}.world.{name}")
    if name in _FROM:
        import importlib

        value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_FROM[name]}"), name)
        return value
    # With the module, so that Python can suggest a name that is meant.
    raise AttributeError(
        f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__("sys").modules[__name__]
    )


def __dir__() -> list[str]:
    return __all__


if _collecting:
    _gc.enable()
