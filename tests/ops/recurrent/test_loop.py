"""The loop over time: its kernels agree with the bodies in plain ops and run where they should; vmap over inputs, weights, both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func, kernels
from chainrule.core.tensor import Tensor
from chainrule.kernels import NotSupported
from chainrule.kernels.recurrent import GATES
from chainrule.ops.recurrent import loop

MODES = [("lstm", False), ("lstm", True), ("gru", False), ("tanh", False), ("relu", False)]
# The second has several parts, whose last ones are not there at every step, and two panels of columns.
SHAPES = [((4, 4, 3, 1), 5), ((100, 97), 70)]


def tensors(xs: Any) -> list[Any]:
    return [None if x is None else Tensor(x) for x in xs]


def agree(got: Any, want: Any, dtype: Any) -> None:
    assert len(got) == len(want)
    tol = 1e-12 if dtype is np.float64 else 2e-5
    for a, b in zip(got, want, strict=True):
        assert a.shape == tuple(b.shape) and a.dtype == dtype
        scale = 1 + np.abs(b.numpy()).max()
        np.testing.assert_allclose(a, b.numpy(), rtol=0, atol=tol * scale)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("leads", [((), ()), ((3,), ()), ((), (3,)), ((2, 1), (3,))], ids=str)
@pytest.mark.parametrize(("mode", "projected"), MODES)
@pytest.mark.parametrize("reverse", [False, True])
def test_kernels_equal_their_specification(dtype: Any, leads: Any, mode: str, projected: bool, reverse: bool) -> None:
    rng = np.random.default_rng(1)
    make = lambda *s: (0.5 * rng.standard_normal(s)).astype(dtype)
    for steps, hidden in SHAPES if not leads[0] else SHAPES[:1]:
        g, width, n = GATES[mode] * hidden, 2 if projected else hidden, steps[0]
        c, wr = make(n, hidden) if mode == "lstm" else None, make(width, hidden) if projected else None
        w, b = make(*leads[1], g, width) / np.sqrt(hidden).astype(dtype), make(g)
        args = (make(*leads[0], sum(steps), g), make(n, width), c, w, b, wr)
        kw = {"mode": mode, "steps": steps, "reverse": reverse}
        ys = loop._forward_kernel(*args, **kw)
        agree(ys, loop.recurrent_p.spec(*tensors(args), **kw), dtype)
        gs = [make(*y.shape) for y in ys]
        cells, gates = ys[3] if c is not None else None, ys[-1] if loop.KEPT[mode] else None
        for extra in (False, True):
            some = [*gs[:2], gs[2] if c is not None else None, gs[3] if extra and c is not None else None]
            some.append(gs[-1] if extra and gates is not None else None)
            back = (*some, ys[0], cells, gates, args[1], c, w, wr)
            mask = (True, True, projected)
            got = loop._backward_kernel(*back, mask=mask, **kw)
            agree(got, loop.recurrent_backward_p.spec(*tensors(back), mask=mask, **kw), dtype)


def test_the_compiled_loops_run(monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    for name in ("forward_loop", "backward_loop"):
        inner = getattr(loop, name)
        monkeypatch.setattr(loop, name, lambda *a, name=name, inner=inner: (ran.append(name), inner(*a))[1])
    w = [cr.randn(8, 2), cr.randn(8, 2)]
    h = cr.zeros(1, 3, 2)
    func.grad(lambda x: cr.lstm(x, [h, h], w, False, 1, 0.0, False, False, False)[0].sum())(cr.randn(4, 3, 2))
    assert ran == ["forward_loop", "backward_loop"]
    with pytest.raises(NotSupported):
        loop._forward_kernel(*[a.half().numpy() for a in (cr.randn(3, 8), h[0], h[0], *w)][:4], None, None,
                             mode="lstm", steps=(3,), reverse=False)  # fmt: skip


@pytest.mark.parametrize("mode", ["LSTM", "GRU", "RNN"])
def test_threads_change_no_bit(mode: str) -> None:
    """Each thread goes through all steps with a part of the sequences, whatever other threads do."""
    layer = getattr(cr.nn, mode)(5, 70, bidirectional=True)
    x = cr.randn(9, 37, 5)
    h = cr.nn.utils.rnn.pack_padded_sequence(x, cr.arange(37) % 9 + 1, enforce_sorted=False)
    before, results = kernels.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            kernels.set_num_threads(threads)
            ys = [layer(x)[0], layer(h)[0].data]
            gs = cr.autograd.grad(sum((y * y).sum() for y in ys), list(layer.parameters()))
            results.append([t.detach().numpy().tobytes() for t in (*ys, *gs)])
    finally:
        kernels.set_num_threads(before)
    assert results[0] == results[1] == results[2]


NAMES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_inputs_weights_and_both(name: str) -> None:
    cr.manual_seed(0)
    g, examples = NAMES[name], 3
    x = cr.randn(examples, 4, 2, 3, dtype=cr.float64)
    ws = [cr.randn(examples, *s, dtype=cr.float64) for s in ((2 * g, 3), (2 * g, 2), (2 * g,), (2 * g,))]
    h = cr.randn(1, 2, 2, dtype=cr.float64)

    def loss(x: Any, *ws: Any) -> Any:
        y, *lasts = getattr(cr, name)(
            x, [h, 0.5 * h] if name == "lstm" else h, list(ws), True, 1, 0.0, False, False, False
        )
        return (y**2).sum() + sum(s.sin().sum() for s in lasts)

    rule = func.grad(loss, argnums=(0, 1, 2, 3, 4))
    for dims in ((0, None), (None, 0), (0, 0)):
        at = lambda v, d, i: v[i if d == 0 else 0]
        args = (x if dims[0] == 0 else x[0], *[w if dims[1] == 0 else w[0] for w in ws])
        got = func.vmap(rule, in_dims=(dims[0], *[dims[1]] * 4))(*args)
        for i in range(examples):
            want = rule(at(x, dims[0], i), *[at(w, dims[1], i) for w in ws])
            for a, b in zip(got, want, strict=True):
                np.testing.assert_allclose(a[i].numpy(), b.numpy(), rtol=0, atol=1e-12)


def test_errors_name_the_argument() -> None:
    w, h = [cr.randn(8, 3), cr.randn(8, 2)], cr.zeros(1, 2, 2)
    how = (False, 1, 0.0, False, False)
    with pytest.raises(RuntimeError, match=r"lstm: input\.size\(-1\) must be equal to input_size\. Expected 3, got 4"):
        cr.lstm(cr.randn(5, 2, 4), [h, h], w, *how, False)
    with pytest.raises(RuntimeError, match=r"expected cell size \(1, 2, 2\), got \[1, 3, 2\]"):
        cr.lstm(cr.randn(5, 2, 3), [h, cr.zeros(1, 3, 2)], w, *how, False)
    with pytest.raises(RuntimeError, match="at least one step"):
        cr.lstm(cr.randn(0, 2, 3), [h, h], w, *how, False)
    with pytest.raises(RuntimeError, match="must not grow"):
        cr.lstm(cr.randn(5, 3), cr.tensor([2, 3]), [h, h], w, *how)
    with pytest.raises(RuntimeError, match="have 4 weights, got 2"):
        cr.lstm(cr.randn(5, 2, 3), [h, h], w, True, 1, 0.0, False, False, False)
    with pytest.raises(TypeError, match="unknown or repeated"):
        cr.gru(cr.randn(5, 2, 3), h, w, *how, first=True)
