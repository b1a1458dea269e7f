"""Which nodes run together, what double precision beside float32 becomes, who shares memory, and the layouts that a function may ask for."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.jit.memory import Places
from chainrule.jit.run import own


def _training(dtype, optimiser, **kw):
    cr.manual_seed(0)
    net = cr.nn.Sequential(cr.nn.Linear(12, 40), cr.nn.Tanh(), cr.nn.Linear(40, 3)).to(dtype)
    steps = optimiser(net.parameters(), **kw)
    x, y = cr.randn(20, 12, dtype=dtype), cr.randn(20, 3, dtype=dtype)

    def step(x, y):
        steps.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        steps.step()
        return loss

    return net, step, (x, y)


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64])
def test_the_update_of_an_optimiser_is_machine_code(dtype):
    _, step, batch = _training(dtype, cr.optim.Adam, lr=1e-2)
    step(*batch)
    parts = cr.explain(step, *batch).parts
    alone = [n.op.name for p in parts if p.run is None for n in p.nodes]
    assert set(alone) <= {"linear", "matmul", "permute", "reshape", "tanh"}, alone
    assert len(parts) < 12
    assert sum(n.op.name == "sqrt" for p in parts if p.run is not None for n in p.nodes) >= 4


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64])
@pytest.mark.parametrize("optimiser", [cr.optim.Adam, cr.optim.AdamW, cr.optim.NAdam, cr.optim.RMSprop])
def test_compiled_updates_are_those_of_eager_steps(dtype, optimiser):
    nets = []
    for compiled in (False, True):
        net, step, batch = _training(dtype, optimiser, lr=1e-2)
        step = cr.jit(step) if compiled else step
        for _ in range(12):
            step(*batch)
        nets.append([p.detach().numpy() for p in net.parameters()])
    for a, b in zip(*nets, strict=True):
        tol = 2e-5 if dtype is cr.float32 else 1e-11
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def test_a_number_in_double_precision_beside_float32_counts_as_one_of_its_type():
    x, s = cr.randn(500), cr.tensor(0.123456789, dtype=cr.float64)

    def f(x, s):
        t = 1 - 0.9 ** (s * 40)
        return x * t + s / t, (s * s).sqrt() * x

    for a, b in zip(cr.jit(f)(x, s), f(x, s), strict=True):
        assert a.dtype is b.dtype is cr.float32
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=3e-7)


def test_powers_of_a_number_keep_their_digits():
    for c in (0.9, 0.999, 1e-3, 2.0, 37.5):
        for n in (0.0, 1.0, 7.0, 12.5, 100.0):
            got = cr.jit(lambda t, c=c: c**t * 1.0)(cr.tensor(n, dtype=cr.float64))
            np.testing.assert_allclose(float(got), c**n, rtol=2e-15)


def test_effects_stay_in_their_order(capsys):
    def f(x):
        for i in range(4):
            cr.debug.print("number {i}", i=i)
            x = cr.sort(x * 2).values if i % 2 else x.sin()
        return x

    cr.jit(f)(cr.randn(6))
    assert [c for c in capsys.readouterr().out if c.isdigit()] == ["0", "1", "2", "3"]


def test_who_shares_memory():
    a, b = np.zeros(10), np.zeros(10)
    raw = bytearray(80)
    foreign, same = np.frombuffer(raw), np.frombuffer(raw)[2:4]
    places = Places([a[2:], b, foreign])
    assert places.shared(a[1:4]) and not places.shared(a[:2]) and places.shared(same) and places.shared(b)
    assert not places.shared(b, but=b) and not places.shared(np.zeros(3))
    through = np.asarray(memoryview(b))  # our memory by way of somebody else
    assert places.shared(through) and Places([through]).shared(b)
    x, y = own([a, a[:3]], [b], [0, 1])
    assert x is a and not np.may_share_memory(x, y)


@pytest.mark.parametrize("n", [3, 100])
def test_strides_are_those_without_jit(n):
    def f(x):
        ys = (
            x, x.t(), x * 2, x.t() * 2, x.t().contiguous(), x[1:], x[:, ::2].sin(), x.expand(2, n, n), x.t() + x.t().exp(), x + x.t(),
            x.sum(0), x.unsqueeze(1).transpose(0, 2) * 3,
        )  # fmt: skip
        # What one step along a dimension of one element is makes no difference.
        strides = [[s for s, k in zip(y.stride(), y.shape, strict=True) if k > 1] for y in ys]
        return x.sum() * (2 if x.is_contiguous() else 3), strides

    j, x = cr.jit(f), cr.ones(n, n)
    for y in (x, x.t(), cr.ones(n, 2 * n)[:, ::2], x):
        assert j(y) == f(y)
