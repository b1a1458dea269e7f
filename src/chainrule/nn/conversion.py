"""Other element types and places for a module's tensors, and the modes it works in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from ..core import dtypes as dt
from ..core.device import device as Device
from ..core.device import place
from ..core.imperative import no_grad
from ..core.tensor import Tensor
from ..utils import swap_tensors
from .parameter import Parameter, is_lazy

C = TypeVar("C", bound="Conversion")


class Parameters:
    """What becomes of parameters when a module is converted; ``torch.__future__`` sets it."""

    overwrite = False  # new ones take their place, instead of their getting a new value
    swap = False  # they change places with new ones, when a state is loaded too


def _plan(args: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Device, type and the rest of what ``to`` was asked for: (device, dtype, non_blocking), (dtype, ...) or (tensor, ...)."""
    rest = dict(kw)
    device, dtype, other = rest.pop("device", None), rest.pop("dtype", None), rest.pop("tensor", None)
    if rest.pop("copy", False):
        raise RuntimeError("nn.Module.to: .to() does not accept copy argument; copy.deepcopy(module) makes a copy")
    if unknown := rest.keys() - {"non_blocking", "memory_format"}:
        raise TypeError(f"nn.Module.to: unexpected keyword argument {sorted(unknown)[0]!r}")
    places = ["device", "dtype", "non_blocking"]
    if args and isinstance(args[0], Tensor | dt.DType):
        places = ["other", "non_blocking"] if isinstance(args[0], Tensor) else ["dtype", "non_blocking"]
    kinds: dict[str, Any] = {"device": str | int | Device, "dtype": dt.DType, "non_blocking": bool, "other": Tensor}
    if len(args) > len(places):
        raise TypeError(f"nn.Module.to takes ({', '.join(places)}), got {len(args)} arguments")
    for what, x in zip(places, args, strict=False):
        wrong = not isinstance(x, kinds[what]) or (isinstance(x, bool) and what != "non_blocking")
        if x is not None and wrong:
            raise TypeError(
                f"nn.Module.to: {what} must not be {type(x).__name__}; write to(device, dtype), to(dtype) or to(tensor)"
            )
        if what == "device":
            device = x
        elif what == "dtype":
            dtype = x
        elif what == "other":
            other = x
        else:
            rest["non_blocking"] = x
    if other is not None:
        device, dtype = other.device, other.dtype
    return device, dtype, rest


class Conversion:
    """What a Module knows of types, devices and modes; see :class:`chainrule.nn.Module`."""

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    children: Callable[[], Iterator[Any]]
    modules: Callable[[], Iterator[Any]]
    parameters: Callable[[], Iterator[Any]]

    def _apply(self: C, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> C:
        """Replace the value of every parameter, gradient and buffer by ``fn`` of it; parameters keep their identity."""
        if recurse:
            for m in self.children():
                m._apply(fn)
        for name, p in list(self._parameters.items()):
            if p is None:
                continue
            if is_lazy(p):
                p._convert(fn)
                continue
            with no_grad():
                new, on, g = fn(p.detach()), p.requires_grad, p.grad
                if Parameters.swap or Parameters.overwrite:
                    q = Parameter(new, on)
                    if Parameters.swap:
                        p.grad = None
                        swap_tensors(p, q)
                    else:
                        self._parameters[name] = p = q
                else:
                    p.requires_grad_(False)
                    p._value, p._interp, p._aux = new._value, new._interp, new._aux
                p.grad = None if g is None else fn(g)
            p.requires_grad_(on)
        for name, b in self._buffers.items():
            if b is None:
                continue
            if is_lazy(b):
                b._convert(fn)
            else:
                self._buffers[name] = fn(b)
        return self

    def to(self: C, *args: Any, **kw: Any) -> C:
        """Convert floating parameters and buffers: ``to(dtype)``, ``to(device)``, ``to(tensor)``."""
        device, dtype, rest = _plan(args, kw)
        if dtype is not None and dtype.category < dt.FLOAT:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        rest.pop("non_blocking", None)

        def convert(x: Tensor) -> Tensor:
            d = dtype if dtype is not None and x.dtype.category >= dt.FLOAT else x.dtype
            layout = rest if x.ndim in (4, 5) else {}  # memory formats are for images
            return x.to(dtype=d, **({} if device is None else {"device": device}), **layout)

        return self if device is None and dtype is None and not rest else self._apply(convert)

    def type(self: C, dst_type: Any) -> C:
        """Convert all parameters and buffers."""
        return self._apply(lambda x: x.type(dst_type))

    def _floating(self: C, d: dt.DType) -> C:
        return self._apply(lambda x: x.to(d) if x.dtype.category == dt.FLOAT else x)

    def double(self: C) -> C:
        """Floating parameters and buffers as float64."""
        return self._floating(dt.float64)

    def float(self: C) -> C:
        """Floating parameters and buffers as float32."""
        return self._floating(dt.float32)

    def half(self: C) -> C:
        """Floating parameters and buffers as float16."""
        return self._floating(dt.float16)

    def bfloat16(self: C) -> C:
        """Floating parameters and buffers as bfloat16."""
        return self._floating(dt.bfloat16)

    def xpu(self: C, device: Any = None) -> C:
        """Raises: there is no such device here."""
        place("xpu")
        return self

    def cpu(self: C) -> C:
        """This module, its tensors in the main memory."""
        return self._apply(lambda x: x.to("cpu"))

    def cuda(self: C, device: Any = None) -> C:
        """Raises: there is no such device here."""
        place("cuda")
        return self

    def to_empty(self: C, *, device: Any, recurse: bool = True) -> C:
        """Parameters and buffers of the same shapes on `device`, their values left to chance."""
        from ..core.registry import PUBLIC

        return self._apply(lambda x: PUBLIC["empty_like"](x, device=device), recurse=recurse)

    def share_memory(self: C) -> C:
        """Parameters and buffers in memory that other processes see, where tensors can do that."""
        for m in self.modules():
            for x in (*m._parameters.values(), *m._buffers.values()):
                if is_lazy(x):
                    x.share_memory_()  # says why not
        return self._apply(lambda x: x.share_memory_() if hasattr(x, "share_memory_") else x)

    # -- modes --------------------------------------------------------------------------------------------------------
    def train(self: C, mode: bool = True) -> C:
        """Training mode, for this module and all below it."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for m in self.children():
            m.train(mode)
        return self

    def eval(self: C) -> C:
        """Evaluation mode, for this module and all below it."""
        return self.train(False)

    def requires_grad_(self: C, requires_grad: bool = True) -> C:
        """Whether gradients are recorded for the parameters."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of the parameters (or set them to zero)."""
        from ..optim.optimizer import clear_gradients

        clear_gradients(self.parameters(), set_to_none)
