"""Recurrent layers and cells: LSTM, GRU, RNN."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from ...ops.recurrent import layers
from ...ops.recurrent.loop import HAS_CELLS
from ...ops.shape.create import zeros
from ...ops.shape.in_each import nest_in_sight
from .. import init
from ..module import Module
from ..utils.rnn import PackedSequence
from .linear import blank

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

MODES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "tanh", "RNN_RELU": "relu"}


class RNNBase(Module):
    """What the layers share: the weights of `num_layers` layers in one or two directions."""

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if mode not in MODES:
            raise ValueError(f"{name}: unrecognized RNN mode {mode!r}; there are {', '.join(MODES)}")
        if isinstance(dropout, bool) or not isinstance(dropout, int | float) or not 0 <= dropout <= 1:
            raise ValueError(f"{name}: dropout should be a number in range [0, 1], got {dropout!r}")
        if hidden_size <= 0 or num_layers <= 0:
            raise ValueError(
                f"{name}: hidden_size and num_layers must be greater than zero, got {hidden_size}, {num_layers}"
            )
        if proj_size < 0 or proj_size >= hidden_size:
            raise ValueError(f"{name}: proj_size must be at least 0 and smaller than hidden_size, got {proj_size}")
        if proj_size and mode != "LSTM":
            raise ValueError(f"{name}: proj_size argument is only supported for LSTM, not RNN or GRU")
        if dropout and num_layers == 1:
            warnings.warn(
                f"{name}: dropout is between layers, and there is one: dropout={dropout} has no effect", stacklevel=3
            )
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.proj_size = bidirectional, proj_size
        g, ways, out = layers.GATES[MODES[mode]], 2 if bidirectional else 1, proj_size or hidden_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for d in range(ways):
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (g * hidden_size, input_size if layer == 0 else out * ways),
                    "weight_hh": (g * hidden_size, out),
                }
                if bias:
                    shapes["bias_ih"] = shapes["bias_hh"] = (g * hidden_size,)
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                end = f"_l{layer}{'_reverse' if d else ''}"
                for k, shape in shapes.items():
                    self.register_parameter(k + end, blank(*shape, dtype=dtype, device=device))
                self._all_weights.append([k + end for k in shapes])
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers in +-1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size)
        for w in self.parameters():
            init.uniform_(w, -bound, bound)

    def flatten_parameters(self) -> None:
        """Nothing: the weights are used as they lie."""

    @property
    def all_weights(self) -> list[list[Any]]:
        """The weights of each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def _states(self, hx: Any, batch: int, like: Tensor) -> list[Tensor]:
        """The initial states: given, or zeros."""
        n = self.num_layers * (2 if self.bidirectional else 1)
        sizes = [self.proj_size or self.hidden_size, self.hidden_size][: 1 + HAS_CELLS[MODES[self.mode]]]
        if hx is None:
            return [zeros(n, batch, k, dtype=like.dtype) for k in sizes]
        return list(hx) if self.mode == "LSTM" else [hx]

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The states of all steps of the last layer, and the last state (LSTM: states and cells) of each layer and direction.

        `input` is [time, batch, features] ([batch, time, features] with `batch_first`), one sequence [time, features], a
        :class:`PackedSequence`, or a nested tensor of sequences.
        """
        mode = MODES[self.mode]
        ws = [getattr(self, name) for names in self._all_weights for name in names]
        how = (ws, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, sizes, by, back = input
            steps = tuple(int(n) for n in sizes.tolist())
            states = self._states(hx, steps[0], data)
            if hx is not None and by is not None:
                states = [s.index_select(1, by) for s in states]
            y, *lasts = layers.run(mode, data, steps, states, *how)
            if back is not None:
                lasts = [s.index_select(1, back) for s in lasts]
            return PackedSequence(y, sizes, by, back), self._last(lasts)
        if nest_in_sight(input):
            y, *lasts = layers.nested(mode, input, self._states(hx, int(input.shape[0]), input), *how)
            return y, self._last(lasts)
        if input.ndim not in (2, 3):
            raise ChainruleError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.ndim}D (shape {list(input.shape)})"
            )
        alone = input.ndim == 2
        x = input.unsqueeze(0 if self.batch_first else 1) if alone else input
        if alone and hx is not None:
            hx = tuple(s.unsqueeze(1) for s in hx) if mode == "lstm" else hx.unsqueeze(1)
        states = self._states(hx, x.shape[0 if self.batch_first else 1], x)
        y, *lasts = layers.dense(mode, x, states, *how, self.batch_first)
        if alone:
            y, lasts = y.squeeze(0 if self.batch_first else 1), [s.squeeze(1) for s in lasts]
        return y, self._last(lasts)

    def _last(self, lasts: list[Tensor]) -> Any:
        return tuple(lasts) if self.mode == "LSTM" else lasts[0]

    def extra_repr(self) -> str:
        """What differs from the defaults."""
        s = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("proj_size", 0), ("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0),
                              ("bidirectional", False)):  # fmt: skip
            if getattr(self, name) != default:
                s += f", {name}={getattr(self, name)}"
        return s


class LSTM(RNNBase):
    """Long short-term memory: ``c' = f c + i tanh(.)``, ``h' = o tanh(c')``, with projections for ``proj_size > 0``."""

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **kw: Any) -> None:
        super().__init__("LSTM", input_size, hidden_size, *args, **kw)


class GRU(RNNBase):
    """Gated recurrent units: ``h' = (1 - z) n + z h``."""

    def __init__(self, input_size: int, hidden_size: int, *args: Any, **kw: Any) -> None:
        super().__init__("GRU", input_size, hidden_size, *args, **kw)


class RNN(RNNBase):
    """``h' = tanh(W x + b + V h + d)``, or relu with ``nonlinearity="relu"``."""

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", *args: Any, **kw: Any
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNN: Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, *args, **kw)
        self.nonlinearity = nonlinearity


class RNNCellBase(Module):
    """What the cells share: the weights."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        g = num_chunks * hidden_size
        self.weight_ih = blank(g, input_size, dtype=dtype, device=device)
        self.weight_hh = blank(g, hidden_size, dtype=dtype, device=device)
        self.register_parameter("bias_ih", blank(g, dtype=dtype, device=device) if bias else None)
        self.register_parameter("bias_hh", blank(g, dtype=dtype, device=device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform numbers in +-1/sqrt(hidden_size)."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size else 0
        for w in self.parameters():
            init.uniform_(w, -bound, bound)

    def _state(self, input: Tensor) -> Tensor:
        return zeros(*input.shape[:-1], self.hidden_size, dtype=input.dtype)

    def _weights(self, input: Tensor) -> tuple[Any, ...]:
        if input.ndim not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected input to be 1D or 2D, got {input.ndim}D instead")
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class LSTMCell(RNNCellBase):
    """One step of an LSTM: the new state and cell."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        """``h', c'`` from `input` and ``(h, c)``."""
        ws = self._weights(input)
        return layers.lstm_cell(input, (self._state(input),) * 2 if hx is None else hx, *ws)


class GRUCell(RNNCellBase):
    """One step of a GRU: the new state."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """``h'`` from `input` and ``h``."""
        ws = self._weights(input)
        return layers.gru_cell(input, self._state(input) if hx is None else hx, *ws)


class RNNCell(RNNCellBase):
    """One step of an RNN: the new state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"RNNCell: Unknown nonlinearity {nonlinearity!r}. Select from 'tanh' or 'relu'.")
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """``h'`` from `input` and ``h``."""
        ws, h = self._weights(input), self._state(input) if hx is None else hx
        return (layers.rnn_tanh_cell if self.nonlinearity == "tanh" else layers.rnn_relu_cell)(input, h, *ws)

    def extra_repr(self) -> str:
        """The sizes."""
        return super().extra_repr() + ("" if self.nonlinearity == "tanh" else f", nonlinearity={self.nonlinearity}")
