"""Inner functions of PyTorch that libraries call, each in terms of what is here; spellings.py says which is where."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from ..core import dtypes as dt
from ..core.batching import Batching
from ..core.device import device
from ..core.dispatch import STACK
from ..core.imperative import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from ..core.registry import PUBLIC
from ..core.reverse import Reverse
from ..core.tensor import Tensor

Anything = Any
empty = ""
no_value = False
_TensorMeta = type(Tensor)


def nothing(*args: Any, **kw: Any) -> None:
    """Accepted, without effect."""


def none(*args: Any, **kw: Any) -> None:
    """None: nothing of the kind is active."""


def no(*args: Any, **kw: Any) -> bool:
    """False."""
    return False


def no_devices(*args: Any, **kw: Any) -> list[str]:
    """None: an empty list."""
    return []


def zero(*args: Any, **kw: Any) -> int:
    """0."""
    return 0


def itself(x: Any) -> Any:
    """The argument."""
    return x


def decorator(*args: Any, **kw: Any) -> Any:
    """A decorator that leaves its function as it is."""
    return itself


class around:
    """A ``with`` without effect, which also decorates."""

    def __init__(self, *args: Any, **kw: Any) -> None: ...

    def __call__(self, fn: Any) -> Any:
        return fn

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: Any) -> None: ...


class TracerWarning(Warning):
    """Of PyTorch's tracer: nothing warns so here."""


list_of = list


class Lists:
    """``BroadcastingList2[int]`` in annotations."""

    def __class_getitem__(cls, item: Any) -> Any:
        return list[item]


class CudaTensor:
    """A type of tensors on a device that is not there: nothing is one."""


class OptState:
    """Where a scaler of gradients stands with an optimiser."""

    READY, UNSCALED, STEPPED = range(3)


# Assertions: the first argument may be a tensor.
def _raise_unless(kind: type[Exception]) -> Callable[..., None]:
    def check(cond: Any, message: Any = None) -> None:
        if not bool(cond):
            raise kind(message() if callable(message) else "Expected cond to be True" if message is None else message)

    return check


_check, _check_index, _check_value = (_raise_unless(k) for k in (RuntimeError, IndexError, ValueError))
_check_type, _check_not_implemented, _assert = (
    _raise_unless(k) for k in (TypeError, NotImplementedError, AssertionError)
)
_assert_async = _raise_unless(RuntimeError)


def _check_with(error_type: type[Exception], cond: Any, message: Any) -> None:
    """Raise an error of this type unless the condition holds."""
    _raise_unless(error_type)(cond, message)


def _check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raise unless a number can be a size."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raise unless all elements are true."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Any = None) -> None:
    """Raise an error of this type unless all elements are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not dt.bool_:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all(), message)


# Tensors.
def _shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes as a tensor."""
    return PUBLIC["tensor"](list(x.shape), dtype=dt.int64)


def __getattr__(name: str) -> Any:
    if name.startswith("_cast_"):
        kind = {"Byte": "uint8", "Char": "int8", "Short": "int16", "Int": "int32", "Long": "int64", "Half": "float16",
                "Float": "float32", "Double": "float64"}.get(name[6:])  # fmt: skip
        if kind:
            return lambda x, non_blocking=False: x.to(getattr(dt, kind))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def _standard_gamma(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws of Gamma(concentration, 1), with derivatives."""
    from ..distributions.positive import standard_gamma

    return standard_gamma(concentration)


def _sample_dirichlet(concentration: Tensor, generator: Any = None) -> Tensor:
    """Draws of Dirichlet(concentration)."""
    from ..distributions import Dirichlet

    return Dirichlet(concentration).sample()


def _convert_indices_from_coo_to_csr(x: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Sorted row numbers as the places where the rows begin."""
    counts = PUBLIC["bincount"](x, minlength=size).cumsum(0)
    return PUBLIC["cat"]([counts.new_zeros(1), counts]).to(dt.int32 if out_int32 else dt.int64)


def _convert_indices_from_csr_to_coo(
    crow: Tensor, col: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The places where rows begin as row numbers, above the column numbers."""
    rows = PUBLIC["arange"](crow.shape[0] - 1).repeat_interleave(crow[1:] - crow[:-1])
    pair = [col, rows] if transpose else [rows, col]
    return PUBLIC["stack"]([p.to(dt.int32 if out_int32 else dt.int64) for p in pair])


def _element_size(kind: Any) -> int:
    """The bytes of one element."""
    return kind.itemsize


def _is_alias_of(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors share their memory."""
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def _get_default_device() -> str:
    """The name of the device where tensors are made."""
    return str(device("cpu"))


def _parse_to(*args: Any, **kw: Any) -> tuple[Any, Any, bool, Any]:
    """What ``Tensor.to`` was given: device, type, non_blocking, memory format."""
    where, kind = kw.get("device"), kw.get("dtype")
    for a in args:
        if isinstance(a, Tensor):
            where, kind = a.device, a.dtype
        elif isinstance(a, dt.DType):
            kind = a
        elif a is not None and not isinstance(a, bool):
            where = a
    flags = [a for a in args if isinstance(a, bool)]
    non_blocking = bool(kw.get("non_blocking", flags[0] if flags else False))
    return None if where is None else device(where), kind, non_blocking, kw.get("memory_format")


# Transforms.
def get_unwrapped(x: Any) -> Any:
    """The value of a tensor one level down."""
    return x._value if isinstance(x, Tensor) and x._interp is not None else x


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """The floating-point tensors in lists and dicts, converted."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    return type(value)(_cast(v, device_type, dtype) for v in value) if isinstance(value, list | tuple) else value


def _get_device_module(device_type: str) -> Any:
    """``torch.cpu``, ``torch.cuda``, ..."""
    import importlib

    return importlib.import_module(f"chainrule.world.{device_type}")


def transforms_active() -> bool:
    """Whether a transform of functions is running."""
    return bool(STACK.get())


def is_batchedtensor(x: Any) -> bool:
    """Whether a tensor is one example of a batch inside vmap."""
    return isinstance(x, Tensor) and isinstance(x._interp, Batching)


def is_gradtrackingtensor(x: Any) -> bool:
    """Whether a tensor belongs to a reverse transform."""
    return isinstance(x, Tensor) and isinstance(x._interp, Reverse)


def _vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False) -> Any:
    """``func.vmap``, where None among the results stays None."""
    from ..func import vmap

    return vmap(func, in_dims, out_dims)


def _as_tuple(x: Any, arg_name: str | None = None, fn_name: str | None = None) -> tuple[bool, tuple[Tensor, ...]]:
    """Whether the argument is a tuple, and it as one."""
    if isinstance(x, tuple):
        return True, x
    return False, (x,)


def _tuple_postprocess(x: Any, to_unpack: Any) -> Any:
    """A tuple of one as its element, where that is asked for, at both levels."""
    if not isinstance(to_unpack, tuple):
        return x if to_unpack else x[0]
    inner = x if to_unpack[1] else tuple(row[0] for row in x)
    return inner if to_unpack[0] else inner[0]


def _grad_preprocess(inputs: Iterable[Tensor], create_graph: bool, need_graph: bool) -> tuple[Tensor, ...]:
    """Tensors to differentiate with respect to: views of the given ones, or leaves of their own."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(need_graph) for x in inputs
    )


def _grad_postprocess(inputs: Any, create_graph: bool) -> Any:
    """The results, without their history unless it is asked for."""
    if isinstance(inputs, tuple):
        return tuple(_grad_postprocess(x, create_graph) for x in inputs)
    return inputs if create_graph else inputs.detach()


def _construct_standard_basis_for(tensors: Any, tensor_numels: Any) -> tuple[Tensor, ...]:
    """Rows of the identity, cut into blocks of columns: one for each tensor, as wide as that has elements."""
    total, at, out = sum(tensor_numels), 0, []
    for t, n in zip(tensors, tensor_numels, strict=True):
        out.append(PUBLIC["eye"](total, dtype=t.dtype)[:, at : at + n])
        at += n
    return tuple(out)


class _DecoratorContextManager:
    """A context that also decorates functions; derive from it and give ``__enter__`` and ``__exit__``."""

    def __call__(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def run(*args: Any, **kw: Any) -> Any:
            with self.clone():
                return fn(*args, **kw)

        return run

    def __enter__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs __enter__")

    def __exit__(self, *exc: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} needs __exit__")

    def clone(self) -> Any:
        """A fresh one of the same kind."""
        return self.__class__()


_NoParamDecoratorContextManager = _DecoratorContextManager


# Optimisers.
def _use_grad_for_differentiable(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step that is recorded if, and only if, the optimiser is `differentiable`."""

    @functools.wraps(step)
    def run(self: Any, *args: Any, **kw: Any) -> Any:
        before = is_grad_enabled()
        set_grad_enabled(self.defaults["differentiable"])
        try:
            return step(self, *args, **kw)
        finally:
            set_grad_enabled(before)

    return run


def _default_to_fused_or_foreach(params: Any, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Neither: one tensor at a time."""
    return False, False


def _get_value(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _dispatch_sqrt(x: Any) -> Any:
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Complex tensors replaced by their real and imaginary parts, in these lists."""
    for i, p in enumerate(params):
        if p.is_complex():
            for column in (params, *state_and_grads):
                column[i] = PUBLIC["view_as_real"](column[i])


def _cubic_interpolate(x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: Any = None) -> Any:
    """Where the cubic through two points with these values and slopes is least, between bounds."""
    from ..optim.lbfgs import Point, cubic_minimum

    low, high = (None, None) if bounds is None else bounds
    point: Any = Point
    return cubic_minimum(point(x1, f1, None, g1), point(x2, f2, None, g2), low, high)


def _strong_wolfe(obj_func: Any, x: Any, t: Any, d: Tensor, f: Any, g: Tensor, gtd: Any, c1: float = 1e-4, c2: float = 0.9,
                  tolerance_change: float = 1e-9, max_ls: int = 25) -> tuple[Any, Tensor, Any, int]:  # fmt: skip
    """A step along `d` by the strong Wolfe conditions: value and gradient there, the step, the number of evaluations."""
    from ..optim.lbfgs import Point, strong_wolfe

    def at(step: Any) -> Any:
        value, slope = obj_func(x, step, d)
        return Point(step, value, slope, slope.dot(d))

    found, evaluations = strong_wolfe(at, Point(0, f, g, gtd), t, d.abs().max(), tolerance_change, max_ls, c1, c2)
    return found.f, found.g, found.t, evaluations


# The rest.
def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The states of other devices: there are none."""
    return [], []


def show() -> str:
    """What computes."""
    import numpy

    return f"chainrule as torch, NumPy {numpy.__version__}, Python {sys.version.split()[0]}"


parallel_info = show


class ExceptionWrapper:
    """An exception on its way from another process or thread: ``reraise()`` raises it with the place it was met."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        import traceback

        info: Any = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.exc_msg, self.where = info[0], "".join(traceback.format_exception(*info)), where

    def reraise(self) -> None:
        """Raise it again."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(text)
        try:
            error = self.exc_type(text)
        except Exception:  # its constructor takes something else
            raise RuntimeError(text) from None
        raise error


__all__ = ["ExceptionWrapper", "enable_grad", "no_grad", "parallel_info", "show"]
