"""lstm, gru, rnn_tanh and rnn_relu over ordinary, packed and nested sequences; the cells."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...core.errors import ChainruleError
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.tensor import Tensor
from ..elementwise.elementary import sigmoid, tanh
from ..linalg.matmul import linear
from ..random.dropout import native_dropout
from ..shape.in_each import nest_in_sight
from ..shape.slices import cat, stack
from .loop import HAS_CELLS, recurrent_p

GATES = {"lstm": 4, "gru": 3, "tanh": 1, "relu": 1}
NAMES = {"lstm": "lstm", "gru": "gru", "tanh": "rnn_tanh", "relu": "rnn_relu"}


def _weights(mode: str, params: Sequence[Any], biases: bool, projected: bool, layers: int, ways: int) -> list[Any]:
    """The parameters of each layer and direction: (w_ih, w_hh, b_ih, b_hh, w_hr)."""
    each = 2 + 2 * biases + projected
    if len(params) != each * layers * ways:
        raise ChainruleError(
            f"{NAMES[mode]}: {layers} layers in {ways} directions {'with' if biases else 'without'} biases have "
            f"{each * layers * ways} weights, got {len(params)}"
        )
    out = []
    for k in range(0, len(params), each):
        w = list(params[k : k + each])
        out.append((*w[:2], *(w[2:4] if biases else (None, None)), w[-1] if projected else None))
    return out


def _check(
    mode: str, data: Tensor, steps: tuple[int, ...], hx: list[Tensor], ws: list[Any], layers: int, ways: int
) -> None:
    name, w = NAMES[mode], ws[0]
    if data.shape[-1] != w[0].shape[-1]:
        raise ChainruleError(
            f"{name}: input.size(-1) must be equal to input_size. Expected {w[0].shape[-1]}, got {data.shape[-1]}"
        )
    hidden = w[0].shape[0] // GATES[mode]
    sizes = (w[1].shape[-1], hidden)
    for s, size, what in zip(hx, sizes, ("hidden", "cell"), strict=False):
        if tuple(s.shape) != (layers * ways, steps[0], size):
            raise ChainruleError(
                f"{name}: expected {what} size ({layers * ways}, {steps[0]}, {size}), got {list(s.shape)}"
            )


def run(
    mode: str, data: Tensor, steps: tuple[int, ...], hx: Sequence[Tensor], params: Sequence[Any], has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool,
) -> list[Tensor]:  # fmt: skip
    """All layers over packed rows: the last layer's states, and the last state (LSTM: and cell) of each layer and direction."""
    hx = list(hx)
    name = NAMES[mode]
    if len(hx) != 1 + HAS_CELLS[mode]:
        raise ChainruleError(f"{name}: expected {1 + HAS_CELLS[mode]} initial states, got {len(hx)}")
    if not steps or steps[-1] < (steps[0] > 0):  # a batch of no sequences is one
        raise ChainruleError(f"{name}: expected sequences of at least one step, got batch sizes {list(steps)}")
    if steps.count(steps[0]) != len(steps) and any(b > a for a, b in pairwise(steps)):
        raise ChainruleError(f"{name}: batch_sizes of packed sequences must not grow, got {list(steps)}")
    ways = 2 if bidirectional else 1
    projected = mode == "lstm" and hx[0].shape[-1] != hx[1].shape[-1]
    ws = _weights(mode, params, has_biases, projected, num_layers, ways)
    _check(mode, data, steps, hx, ws, num_layers, ways)
    lasts: list[list[Tensor]] = [[] for _ in hx]
    for layer in range(num_layers):
        outs = []
        for d in range(ways):
            at = layer * ways + d
            w_ih, w_hh, b_ih, b_hh, w_hr = ws[at]
            gru = mode == "gru"
            x = linear(data, w_ih, b_ih if gru else None)
            b = b_hh if gru or b_hh is None else b_ih + b_hh
            h, c = hx[0][at], hx[1][at] if HAS_CELLS[mode] else None
            got = recurrent_p.bind(x, h, c, w_hh, b, w_hr, mode=mode, steps=steps, reverse=bool(d))
            outs.append(got[0])
            for k, s in enumerate(lasts):
                s.append(got[1 + k])
        data = outs[0] if ways == 1 else cat(outs, -1)
        if dropout and train and layer < num_layers - 1:
            data = native_dropout(data, dropout)[0]
    return [data, *[stack(s) for s in lasts]]


def dense(mode: str, input: Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
          bidirectional: bool, batch_first: bool) -> tuple[Tensor, ...]:  # fmt: skip
    """The same over ordinary [time, batch, features] or nested [batch, time, features] sequences."""
    if nest_in_sight(input):
        return nested(mode, input, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    if input.is_nested:  # inside a map over the components, each a batch of its own length
        from ...payloads.nested.by_sizes import call_by_sizes

        how = (has_biases, num_layers, dropout, train, bidirectional, batch_first)
        return call_by_sizes(lambda x, h, w: dense(mode, x, h, w, *how), (input, list(hx), list(params)), {})
    if input.ndim != 3:
        raise ChainruleError(
            f"{NAMES[mode]}: input must have 3 dimensions, got {input.ndim} (shape {list(input.shape)})"
        )
    x = input.transpose(0, 1) if batch_first else input
    t, n, f = x.shape
    y, *lasts = run(
        mode, x.reshape(t * n, f), (n,) * t, hx, params, has_biases, num_layers, dropout, train, bidirectional
    )
    y = y.reshape(t, n, y.shape[-1])
    return (y.transpose(0, 1) if batch_first else y, *lasts)


def packed_order(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Rows of sequences one after the other in packed order: the longest first, step by step.

    Gives the row of each packed row, the order of the sequences, and how many sequences each step has.
    """
    by = np.argsort(-lengths, kind="stable")
    sorted_, start = lengths[by], np.concatenate([[0], np.cumsum(lengths)])[:-1][by]
    longest = int(sorted_[0]) if len(sorted_) else 0
    steps = tuple(int(n) for n in (sorted_[None] > np.arange(longest)[:, None]).sum(1))
    rows = [start[:n] + t for t, n in enumerate(steps)]
    return np.concatenate(rows) if rows else np.zeros(0, np.int64), by, steps


def nested(mode: str, input: Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float, train: bool,
           bidirectional: bool) -> tuple[Tensor, ...]:  # fmt: skip
    """The same over the components [time, features] of a nest; states have a row for each component, in their order."""
    from ...nested import nested_tensor_from_jagged

    if input.ndim != 3:
        raise ChainruleError(
            f"{NAMES[mode]}: a nested input must have components [time, features], got shape {list(input.shape)}"
        )
    lengths = input.lengths().numpy()
    rows, by, steps = packed_order(lengths)
    back, unsort = np.argsort(rows), Tensor(np.argsort(by))
    data = input.values().index_select(0, Tensor(rows))
    states = [s.index_select(1, Tensor(by)) for s in hx]
    y, *lasts = run(mode, data, steps, states, params, has_biases, num_layers, dropout, train, bidirectional)
    y = nested_tensor_from_jagged(y.index_select(0, Tensor(back)), lengths=Tensor(lengths))
    return (y, *[s.index_select(1, unsort) for s in lasts])


def _packed_form(a: Any) -> bool:
    """Whether the second argument is the batch sizes of packed sequences: integers."""
    return isinstance(a, Tensor) and not (a.dtype.is_floating_point or a.dtype.is_complex)


def _layer(mode: str, states: str, shape: str) -> Any:
    several = HAS_CELLS[mode]

    def call(*args: Any, **kw: Any) -> tuple[Tensor, ...]:
        names = [
            "input",
            "hx",
            "params",
            "has_biases",
            "num_layers",
            "dropout",
            "train",
            "bidirectional",
            "batch_first",
        ]
        packed = (len(args) > 1 and _packed_form(args[1])) or "batch_sizes" in kw
        if packed:
            names = ["data", "batch_sizes", *names[1:-1]]
        if len(args) > len(names) or (unknown := set(kw) - set(names[len(args) :])) or len(args) + len(kw) < len(names):
            what = (
                f"unknown or repeated: {sorted(unknown)}"
                if len(args) <= len(names) and unknown
                else f"got {len(args) + len(kw)}"
            )
            raise TypeError(f"{NAMES[mode]}({', '.join(names)}): {what}")
        a = {**dict(zip(names, args, strict=False)), **kw}
        hx = list(a.pop("hx")) if several else [a.pop("hx")]
        if packed:
            steps = tuple(int(n) for n in a.pop("batch_sizes").tolist())
            return tuple(run(mode, a.pop("data"), steps, hx, **a))
        return dense(mode, a.pop("input"), hx, **a)

    call.__doc__ = (
        f"``{shape}`` over the steps of sequences, in `num_layers` layers: the states of all steps and the last {states}.\n\n"
        "``(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or with packed sequences "
        "``(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``."
    )
    return public(NAMES[mode], out=False)(call)


lstm = _layer("lstm", "states and cells", "c' = f c + i tanh(.), h' = o tanh(c')")
gru = _layer("gru", "states", "h' = (1 - z) n + z h")
rnn_tanh = _layer("tanh", "states", "h' = tanh(W x + b + V h + d)")
rnn_relu = _layer("relu", "states", "h' = relu(W x + b + V h + d)")


# -- cells --------------------------------------------------------------------------------------------------------------


def _cell_check(name: str, gates: int, input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor) -> None:
    if input.shape[-1] != w_ih.shape[-1] or hx.shape[-1] != w_hh.shape[-1] or w_ih.shape[0] != gates * hx.shape[-1]:
        raise ChainruleError(
            f"{name}: an input of shape {list(input.shape)} and a state of shape {list(hx.shape)} do not fit weights of shapes "
            f"{list(w_ih.shape)} (weight_ih) and {list(w_hh.shape)} (weight_hh)"
        )
    if tuple(input.shape[:-1]) != tuple(hx.shape[:-1]):
        raise ChainruleError(
            f"{name}: Input batch size {list(input.shape[:-1])} doesn't match hidden batch size {list(hx.shape[:-1])}; expand() the state"
        )


@public("lstm_cell", out=False)
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: ``h' = o tanh(c')`` and ``c' = f c + i tanh(.)``."""
    h, c = hx
    for state in (h, c):
        _cell_check("lstm_cell", 4, input, state, w_ih, w_hh)
    a = linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh)
    i, f, m, o = a.chunk(4, -1)
    c = sigmoid.bind(f) * c + sigmoid.bind(i) * tanh.bind(m)
    return sigmoid.bind(o) * tanh.bind(c), c


@public("gru_cell", out=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step of a GRU: ``h' = n + z (h - n)``."""
    _cell_check("gru_cell", 3, input, hx, w_ih, w_hh)
    xr, xz, xn = linear(input, w_ih, b_ih).chunk(3, -1)
    hr, hz, hn = linear(hx, w_hh, b_hh).chunk(3, -1)
    n = tanh.bind(xn + sigmoid.bind(xr + hr) * hn)
    return n + sigmoid.bind(xz + hz) * (hx - n)


@public("rnn_tanh_cell", out=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step: ``h' = tanh(W x + b + V h + d)``."""
    _cell_check("rnn_tanh_cell", 1, input, hx, w_ih, w_hh)
    return tanh.bind(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh))


@public("rnn_relu_cell", out=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """One step: ``h' = relu(W x + b + V h + d)``."""
    _cell_check("rnn_relu_cell", 1, input, hx, w_ih, w_hh)
    return (linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh)).relu()


# -- samples ------------------------------------------------------------------------------------------------------------


def _two_way(mode: str) -> Any:
    def f(x: Any, h: Any, c: Any, *params: Any) -> Any:
        hx = [h, c] if mode == "lstm" else h
        return PUBLISHED[mode](x, hx, list(params), True, 1, 0.0, False, True, False)

    return f


def _packed(mode: str, projected: bool) -> Any:
    def f(x: Any, sizes: Any, h: Any, c: Any, *params: Any) -> Any:
        hx = [h, c] if mode == "lstm" else h
        return PUBLISHED[mode](x, sizes, hx, list(params), False, 1, 0.0, False, False)

    return f


PUBLISHED = {"lstm": lstm, "gru": gru, "tanh": rnn_tanh, "relu": rnn_relu}
_SIZES = Given(np.array([3, 2, 1]))
for _mode, _g in GATES.items():
    _w = [S(2 * _g, 2, low=-1, high=1), S(2 * _g, 2, low=-1, high=1), S(2 * _g), S(2 * _g)]
    sample(NAMES[_mode], S(2, 2, 2), S(2, 2, 2), S(2, 2, 2), *_w, *_w, f=_two_way(_mode), cx=False)
    sample(NAMES[_mode], S(6, 2), _SIZES, S(1, 3, 2), S(1, 3, 2), *_w[:2], f=_packed(_mode, False), cx=False)
sample("lstm", S(6, 2), _SIZES, S(1, 3, 1), S(1, 3, 2), S(8, 2), S(8, 1), S(1, 2), f=_packed("lstm", True), cx=False)
sample(
    "lstm_cell",
    S(2, 3),
    S(2, 2),
    S(2, 2),
    S(8, 3),
    S(8, 2),
    S(8),
    S(8),
    f=lambda x, h, c, *w: lstm_cell(x, (h, c), *w),
    cx=False,
)
sample("gru_cell", S(2, 3), S(2, 2), S(6, 3), S(6, 2), S(6), S(6), cx=False)
sample("rnn_tanh_cell", S(2, 3), S(2, 2), S(2, 3), S(2, 2), S(2), S(2), cx=False)
sample("rnn_relu_cell", S(3), S(2), S(2, 3), S(2, 2), cx=False)
