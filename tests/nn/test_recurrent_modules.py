"""nn.LSTM, GRU, RNN and their cells beside PyTorch's: values and gradients to 1e-12; packed, nested and single sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule import func, nn
from chainrule.nn.utils import rnn

LAYERS = [
    ("LSTM", {}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    ("LSTM", {"num_layers": 2, "bidirectional": True, "proj_size": 2}),
    ("LSTM", {"bias": False, "proj_size": 1}),
    ("GRU", {"num_layers": 2, "bidirectional": True}),
    ("GRU", {"bias": False, "batch_first": True}),
    ("RNN", {"num_layers": 2, "bidirectional": True}),
    ("RNN", {"nonlinearity": "relu", "batch_first": True}),
]


def pair(name: str, *args: Any, **kw: Any) -> tuple[Any, Any]:
    """A module of each library with the same weights in float64."""
    torch.manual_seed(3)
    theirs = getattr(torch.nn, name)(*args, **kw).double()
    ours = getattr(nn, name)(*args, **kw).double()
    state = {k: cr.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict()), "the names of the weights, in order"
    ours.load_state_dict(state)
    return ours, theirs


def numbers(y: Any) -> list[np.ndarray]:
    if isinstance(y, tuple | list):
        return [a for v in y for a in numbers(v)]
    if not hasattr(y, "dtype"):
        return []
    return [y.detach().numpy()] if y.dtype in (cr.float64, torch.float64) else []


def floats(y: Any) -> list[Any]:
    if isinstance(y, tuple | list):
        return [a for v in y for a in floats(v)]
    return [y] if hasattr(y, "dtype") and y.dtype in (cr.float64, torch.float64) else []


def agree(run: Any, ours: Any, theirs: Any, *arrays: np.ndarray) -> None:
    """Values, and gradients of the inputs and weights, for a random cotangent of all results."""
    rng = np.random.default_rng(0)
    a = [cr.tensor(x).requires_grad_() for x in arrays]
    b = [torch.tensor(x, requires_grad=True) for x in arrays]
    ys, zs = floats(run(cr, ours, *a)), floats(run(torch, theirs, *b))
    assert len(ys) == len(zs)
    gs = [rng.standard_normal(tuple(y.shape)) for y in ys]
    for y, z in zip(ys, zs, strict=True):
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=0, atol=1e-12)
    sum((y * cr.tensor(g)).sum() for y, g in zip(ys, gs, strict=True)).backward()
    sum((z * torch.tensor(g)).sum() for z, g in zip(zs, gs, strict=True)).backward()
    for p, q in zip([*a, *ours.parameters()], [*b, *theirs.parameters()], strict=True):
        np.testing.assert_allclose(
            p.grad.detach().numpy(), q.grad.detach().numpy(), rtol=0, atol=1e-12 * (1 + q.grad.abs().max().item())
        )


@pytest.mark.parametrize(("name", "kw"), LAYERS, ids=str)
def test_layers(name: str, kw: dict[str, Any]) -> None:
    ours, theirs = pair(name, 3, 4, **kw)
    assert repr(ours) == repr(theirs)
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 5, 3) if kw.get("batch_first") else (5, 2, 3))
    agree(lambda m, f, x: f(x), ours, theirs, x)
    n = kw.get("num_layers", 1) * (1 + kw.get("bidirectional", False))
    states = [rng.standard_normal((n, 2, kw.get("proj_size") or 4)), rng.standard_normal((n, 2, 4))]
    if name == "LSTM":
        ours, theirs = pair(name, 3, 4, **kw)
        agree(lambda m, f, x, h, c: f(x, (h, c)), ours, theirs, x, *states)
    ours, theirs = pair(name, 3, 4, **kw)
    agree(lambda m, f, x: f(x), ours, theirs, x[0] if kw.get("batch_first") else x[:, 0])  # one sequence alone


@pytest.mark.parametrize(("name", "kw"), LAYERS[:7], ids=str)
def test_packed(name: str, kw: dict[str, Any]) -> None:
    kw = {**kw, "batch_first": False}
    ours, theirs = pair(name, 3, 4, **kw)
    x = np.random.default_rng(2).standard_normal((5, 4, 3))

    def run(m: Any, f: Any, x: Any) -> Any:
        p = m.nn.utils.rnn.pack_padded_sequence(x, m.tensor([3, 5, 1, 3]), enforce_sorted=False)
        y, last = f(p)
        padded, lengths = m.nn.utils.rnn.pad_packed_sequence(y, padding_value=-1.0, total_length=6)
        assert lengths.tolist() == [3, 5, 1, 3]
        return y.data, padded, last

    agree(run, ours, theirs, x)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_nested_sequences_are_each_run_alone(name: str) -> None:
    cr.manual_seed(0)
    f = getattr(nn, name)(3, 4, 2, bidirectional=True, dtype=cr.float64)
    parts = [cr.randn(n, 3, dtype=cr.float64) for n in (2, 5, 1)]
    x = cr.nested.nested_tensor(parts)
    y, last = f(x)
    h = last[0] if name == "LSTM" else last
    for i, part in enumerate(parts):
        alone, own = f(part)
        np.testing.assert_allclose(y.unbind()[i].detach().numpy(), alone.detach().numpy(), rtol=0, atol=1e-13)
        np.testing.assert_allclose(
            h[:, i].detach().numpy(), (own[0] if name == "LSTM" else own).detach().numpy(), rtol=0, atol=1e-13
        )
    loss = lambda x: (f(x)[0] ** 2).sum()
    g = func.grad(loss)(x)
    for i, part in enumerate(parts):
        np.testing.assert_allclose(
            g.unbind()[i].detach().numpy(), func.grad(loss)(part).detach().numpy(), rtol=0, atol=1e-12
        )
    v = cr.nested.nested_tensor([cr.randn(n, 3, dtype=cr.float64) for n in (2, 5, 1)])
    slope = func.jvp(loss, (x,), (v,))[1]
    np.testing.assert_allclose(slope.detach().numpy(), (g * v).sum().detach().numpy(), rtol=1e-10)
    hv = func.jvp(func.grad(loss), (x,), (v,))[1]
    each = [func.jvp(func.grad(loss), (p,), (t,))[1] for p, t in zip(parts, v.unbind(), strict=True)]
    for a, b in zip(hv.unbind(), each, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells(name: str) -> None:
    for kw in ({}, {"bias": False}, *([{"nonlinearity": "relu"}] if name == "RNNCell" else [])):
        ours, theirs = pair(name, 3, 4, **kw)
        assert repr(ours) == repr(theirs)
        rng = np.random.default_rng(4)
        x, h, c = (rng.standard_normal(s) for s in ((2, 3), (2, 4), (2, 4)))
        if name == "LSTMCell":
            agree(lambda m, f, x, h, c: f(x, (h, c)), ours, theirs, x, h, c)
        else:
            agree(lambda m, f, x, h: f(x, h), ours, theirs, x, h)
        ours, theirs = pair(name, 3, 4, **kw)
        with torch.no_grad():
            want = numbers(theirs(torch.tensor(x)))
        for a, b in zip(numbers(ours(cr.tensor(x))), want, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_dropout_lies_between_layers() -> None:
    cr.manual_seed(0)
    f = nn.LSTM(3, 64, 2, dropout=0.5)
    x = cr.randn(4, 2, 3)
    a, b = f(x)[0], f(x)[0]
    assert (a != b).any()
    f.eval()
    assert (f(x)[0] == f(x)[0]).all()
    g = nn.LSTM(3, 64, 2, dropout=0.0)
    g.load_state_dict(f.state_dict())
    np.testing.assert_array_equal(f(x)[0].detach().numpy(), g(x)[0].detach().numpy())
    with pytest.warns(UserWarning, match="has no effect"):
        nn.GRU(2, 2, dropout=0.5)
    f.train()
    f.dropout = 1.0  # the second layer sees zeros, whatever the input
    np.testing.assert_array_equal(f(x)[0].detach().numpy(), f(2 * x)[0].detach().numpy())


def test_ensembles_of_modules() -> None:
    cr.manual_seed(1)
    models = [nn.GRU(2, 3, dtype=cr.float64) for _ in range(3)]
    params, _ = nn.stack_module_state(models)
    x = cr.randn(4, 2, 2, dtype=cr.float64)
    run = lambda p, x: (func.functional_call(models[0], p, (x,))[0] ** 2).sum()
    got = func.vmap(func.grad(run), in_dims=(0, None))(params, x)
    for i, m in enumerate(models):
        want = func.grad(run)(dict(m.named_parameters()), x)
        for k in want:
            np.testing.assert_allclose(got[k][i].detach().numpy(), want[k].detach().numpy(), rtol=0, atol=1e-12)


def test_utilities_against_pytorch() -> None:
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal((n, 2)) for n in (4, 2, 1)]
    ours, theirs = [cr.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]
    for kw in ({}, {"batch_first": True}, {"padding_value": 7.0}, {"padding_side": "left"}):
        got, want = rnn.pad_sequence(ours, **kw), torch.nn.utils.rnn.pad_sequence(theirs, **kw)
        np.testing.assert_array_equal(got.detach().numpy(), want.numpy())
    p, q = rnn.pack_sequence(ours), torch.nn.utils.rnn.pack_sequence(theirs)
    np.testing.assert_array_equal(p.data.detach().numpy(), q.data.numpy())
    assert p.batch_sizes.tolist() == q.batch_sizes.tolist() and p.sorted_indices is None
    shuffled = [ours[1], ours[0], ours[2]]
    p = rnn.pack_sequence(shuffled, enforce_sorted=False)
    assert p.sorted_indices.tolist() == [1, 0, 2]
    for a, b in zip(rnn.unpack_sequence(p), shuffled, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.numpy())
    padded = rnn.pad_sequence(ours)
    for a, b in zip(rnn.unpad_sequence(padded, cr.tensor([4, 2, 1])), ours, strict=True):
        np.testing.assert_array_equal(a.detach().numpy(), b.numpy())
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_sequence(shuffled)
    with pytest.raises(RuntimeError, match="greater than 0"):
        rnn.pack_padded_sequence(padded, [4, 2, 0])
    with pytest.raises(ValueError, match="total_length to be at least"):
        rnn.pad_packed_sequence(p, total_length=2)


def test_packed_sequences_change_type_and_say_what_is_wrong() -> None:
    rnn = cr.nn.utils.rnn
    packed = rnn.pack_sequence([cr.ones(3), cr.ones(2)])
    assert packed.to("cpu") is packed
    for name in ("byte", "char", "short", "int", "long", "half", "float", "double"):
        t = getattr(packed, name)()
        assert t.data.dtype is getattr(packed.data, name)().dtype
        assert t.batch_sizes.tolist() == [2, 2, 1]
    with pytest.raises(RuntimeError, match=r"sorted in decreasing order.*You can pass `enforce_sorted=False`"):
        rnn.pack_sequence([cr.ones(1), cr.ones(2)])
    with pytest.raises(RuntimeError, match=r"sorted in decreasing order.*You can pass `enforce_sorted=False`"):
        rnn.pack_padded_sequence(cr.ones(3, 3), [1, 3, 2])
    with pytest.raises(RuntimeError, match="empty tensor"):
        rnn.pack_padded_sequence(cr.ones(0, 0), [])
    with pytest.raises(
        ValueError, match="Expected total_length to be at least the length of the longest sequence in input"
    ):
        rnn.pad_packed_sequence(packed, total_length=2)
    with pytest.raises(RuntimeError, match="batch_sizes"):
        rnn.pad_packed_sequence(rnn.PackedSequence(cr.ones(0), cr.tensor([], dtype=cr.int64)))
    with pytest.raises(RuntimeError, match="Expected iterable for input sequences"):
        rnn.pad_sequence(5)


@pytest.mark.parametrize("cell", ["RNNCell", "GRUCell", "LSTMCell"])
def test_a_cell_refuses_a_state_of_another_batch(cell: str) -> None:
    good, bad = cr.zeros(3, 4), cr.zeros(1, 4)
    for state in ((bad, good), (good, bad)) if cell == "LSTMCell" else (bad,):
        with pytest.raises(RuntimeError, match="Input batch size"):
            getattr(cr.nn, cell)(2, 4)(cr.zeros(3, 2), state)
