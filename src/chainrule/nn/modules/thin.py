"""Modules that only hold the options of a function: activations, dropout, distances, losses, paddings of shapes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from ...core.tensor import Tensor
from .. import functional as F
from ..module import Module
from ..parameter import Parameter
from . import thin_table


class Thin(Module):
    """``forward(*inputs)`` is a function of ``nn.functional`` with the options that the module was made with."""

    function = ""
    options: dict[str, Any] = {}
    shown: tuple[str, ...] = ()

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__()
        names = list(type(self).options)
        if len(args) > len(names):
            raise TypeError(
                f"{type(self).__name__} takes at most {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        given = dict(zip(names, args, strict=False))
        for k, v in kw.items():
            if k not in type(self).options or k in given:
                raise TypeError(
                    f"{type(self).__name__}: unexpected or repeated argument {k!r}; there are {', '.join(names)}"
                )
            given[k] = v
        for k, default in type(self).options.items():
            v = given.get(k, default)
            if v is inspect.Parameter.empty:
                raise TypeError(f"{type(self).__name__}: the argument {k!r} is missing")
            if isinstance(v, Tensor) and not isinstance(v, Parameter):
                self.register_buffer(k, v)
            else:
                setattr(self, k, v)

    def forward(self, *inputs: Any) -> Any:
        """The function of the inputs."""
        return getattr(F, self.function)(*inputs, **{k: getattr(self, k) for k in self.options})

    def extra_repr(self) -> str:
        """The options that differ from the defaults."""
        parts = []
        for k, default in type(self).options.items():
            v = getattr(self, k)
            if k in self.shown or (v is not default and not (isinstance(v, (int, float, str)) and v == default)):
                parts.append(f"{k}={tuple(v.shape)}" if isinstance(v, Tensor) else f"{k}={v!r}")
        return ", ".join(parts)


class _Random(Thin):
    """Acts in training only."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        super().__init__(*args, **kw)
        if "p" in self.options and not 0 <= self.p <= 1:
            raise ValueError(f"{type(self).__name__}: dropout probability has to be between 0 and 1, but got {self.p}")

    def forward(self, *inputs: Any) -> Any:
        """The function of the inputs, random in training."""
        return getattr(F, self.function)(*inputs, training=self.training, **{k: getattr(self, k) for k in self.options})


def _make(base: type, name: str, function: str, doc: str, options: dict[str, Any], shown: tuple[str, ...]) -> type:
    cls = type(
        name,
        (base,),
        {"__doc__": doc, "__module__": __name__, "function": function, "options": options, "shown": shown},
    )
    globals()[name] = cls
    return cls


for _name, _function, _doc, _options in thin_table.LOSSES:
    _make(Thin, _name, _function, _doc, _options, ())
for _name, _function, _doc, _options in thin_table.ACTIVATIONS + thin_table.SHAPES:
    _make(Thin, _name, _function, _doc, _options, tuple(k for k in _options if k != "inplace"))
for _name, _function, _doc, _options in thin_table.RANDOM:
    _make(_Random, _name, _function, _doc, _options, tuple(_options) if "p" in _options else ("lower", "upper"))


class PReLU(Module):
    """``max(x, 0) + a min(x, 0)`` with a learned `a`, one or one a channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(Tensor(np.full(num_parameters, init, np.float32 if dtype is None else dtype.np)))

    def forward(self, input: Tensor) -> Tensor:
        """``max(x, 0) + a min(x, 0)``."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The number of parameters."""
        return f"num_parameters={self.num_parameters}"


class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""

    def forward(self, input: Tensor) -> Tensor:
        """``1 / (1 + exp(-x))``."""
        return input.sigmoid()


class Tanh(Module):
    """``tanh(x)``."""

    def forward(self, input: Tensor) -> Tensor:
        """``tanh(x)``."""
        return input.tanh()


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Softmax over dim -3."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D")
        return input.softmax(-3)


__all__ = [
    n
    for n, v in list(globals().items())
    if isinstance(v, type) and issubclass(v, Module) and v.__module__ == __name__ and not n.startswith("_")
]
