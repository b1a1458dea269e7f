"""Writes that a derivative must not see, under ``no_grad`` and to detached views: jit gives what the program gives without, in every nesting."""

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.func import grad, jvp, vmap
from chainrule.jit.record import JitError
from chainrule.utils.checkpoint import checkpoint

CASES = {}
X = cr.tensor([[0.3, 1.3], [2.3, 3.3]], dtype=cr.float64)
T = cr.tensor([[0.0, 0.3], [0.6, 0.9]], dtype=cr.float64)


def case(f):
    CASES[f.__name__] = f
    return f


@case
def det(x):
    y = x * 2
    y.detach().mul_(3)
    return (y * y).sum()


@case
def detview(x):
    y = x * 2
    y.detach()[0].mul_(3)
    return (y * y).sum()


@case
def viewdet(x):
    y = x * 2
    y[0].detach().mul_(x[1])
    return (y * y).sum()


@case
def ng_view(x):
    y = x * 2
    with cr.no_grad():
        y[0].mul_(x[1])
    return (y * y).sum()


@case
def ng_fill(x):
    y = x * 2
    with cr.no_grad():
        y[0] = 1.5
    return (y * y).sum()


@case
def ng_fill_all(x):
    y = x * 2
    with cr.no_grad():
        y.fill_(1.5)
    return (y * y).sum()


@case
def ng_zero_copy(x):
    y = x * 2
    with cr.no_grad():
        y.copy_(cr.ones(2, 2).double())
    return (y * y * x).sum()


@case
def data(x):
    y = x * 2
    y.data.mul_(3)
    return (y * y).sum()


@case
def data_set(x):
    y = x * 2
    y.data = y.data * 3
    return (y * y).sum()


@case
def ng_then_grad(x):
    y = x * 2
    v = y[0]
    with cr.no_grad():
        y.mul_(x)
    v.mul_(x[1])
    return (y * y).sum() + v.sum()


@case
def inner_grad(x):
    def h(z):
        y = z * 2
        with cr.no_grad():
            y.mul_(x)
        return (y * y * x).sum()

    return (grad(h)(x) * x).sum()


@case
def ng_const(x):
    y = cr.ones(2, 2).double()
    with cr.no_grad():
        y.mul_(x)
    return (y * y * x).sum()


@case
def ng_const2(x):
    y = cr.ones(2, 2).double()
    y.mul_(x)
    with cr.no_grad():
        y[1].mul_(x[0])
    return (y * y * x).sum()


@case
def ng_int(x):
    y = (x * 3).to(cr.int64)
    with cr.no_grad():
        y.mul_(2)
    return (y * x).sum()


@case
def vm(x):
    def h(r):
        y = r * 2
        with cr.no_grad():
            y.mul_(x[0])
        return (y * y).sum()

    return vmap(h)(x).sum()


@case
def out_(x):
    y = x * 2
    with cr.no_grad():
        cr.mul(x, x, out=y)
    return (y * y).sum()


@case
def arg_(x):
    y = x.clone()

    def g(z):
        with cr.no_grad():
            z.mul_(3)
        return z * z

    return (g(y) * y).sum()


@case
def det_w(x):
    y = x * 2
    v = y.detach()
    v.mul_(x)
    return v.sum() + (y * y).sum()


@case
def ng_v_later(x):
    y = x * 2
    with cr.no_grad():
        v = y[0]
    y.mul_(x)
    return v.sum() + (y * x).sum()


@case
def ng_vm_view(x):
    def h(r):
        y = r * 2
        with cr.no_grad():
            v = y[:1]
        y.mul_(r)
        return (v * r).sum() + (y * r).sum()

    return vmap(h)(x).sum()


@case
def ng_vm_unb(x):
    def h(r):
        y = r * 2
        with cr.no_grad():
            y.copy_(x[0])
            y[0] = x[0, 1]
        return (y * r).sum() + (y * y).sum()

    return vmap(h)(x).sum()


@case
def ng_jvp(x):
    def h(r):
        y = r * x
        with cr.no_grad():
            y.mul_(r * x)
        return (y * r).sum() + (y * y).sum()

    return jvp(h, (x * x,), (x,))[1]


@case
def ng_scan(x):
    def body(c, v):
        y = c * v
        with cr.no_grad():
            y.mul_(v)
            y[0] = c[1]
        return y * c, y

    c, ys = cr.scan(body, x[0], x)
    return (c * c).sum() + ys.sum()


@case
def ng_cond(x):
    def a(v):
        y = v * v
        with cr.no_grad():
            y.mul_(v)
        return y * v

    return cr.cond(x.sum() > 0, a, lambda v: v * 2, (x,)).sum()


@case
def dataset2(x):
    y = x * x
    y.data = x * 3
    return (y * y * x).sum()


@case
def enable(x):
    y = x * x
    with cr.no_grad():
        with cr.enable_grad():
            y.mul_(x)
        y.mul_(2)
    return (y * y).sum()


@case
def req(x):
    w = cr.ones(2, 2, dtype=cr.float64, requires_grad=True)
    l = (w * x).sum() + (w * w * x).sum()
    l.backward()
    with cr.no_grad():
        w -= 0.1 * w.grad
    return (w.detach() * x).sum() + (w.grad * x).sum()


@case
def scaled(x):
    with cr.no_grad():
        y = x * 2
    return (y * 4 * x).sum()


def _backward(f):
    x = X.clone().requires_grad_()
    f(x).backward()
    return x.grad


WAYS = {
    "value": lambda f: lambda x: f(x),
    "grad": grad,
    "jvp": lambda f: lambda x: jvp(f, (x,), (T,)),
    "vmap grad": lambda f: lambda x: vmap(grad(f))(cr.stack([x, x + 0.5])),
    "grad grad": lambda f: grad(lambda z: (grad(f)(z) * T).sum()),
    "jvp grad": lambda f: lambda x: jvp(grad(f), (x,), (T,)),
    "grad jvp": lambda f: grad(lambda z: jvp(f, (z,), (T,))[1]),
}


def _close(a, b, what):
    for p, q in zip(cr.tree.flatten(a)[0], cr.tree.flatten(b)[0], strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12, atol=1e-12, err_msg=what)


@pytest.mark.parametrize("name", CASES)
def test_jit_sees_what_the_program_sees(name):
    f = CASES[name]
    for way, transform in WAYS.items():
        want = transform(f)(X)
        _close(transform(cr.jit(f))(X), want, f"{way} of jit")
        _close(cr.jit(transform(f))(X), want, f"jit of {way}")
    _close(_backward(cr.jit(f)), _backward(f), "backward")


def test_a_write_under_no_grad_keeps_the_history():
    """With the write held fixed: y = 2 x, then 2 x k, where k is what the write multiplied by."""
    got = grad(cr.jit(CASES["ng_view"]))(X)
    y = np.array([[2 * 0.3 * 2.3, 2 * 1.3 * 3.3], [4.6, 6.6]])
    np.testing.assert_allclose(got.numpy(), 2 * y * 2)
    # Forward mode goes with what is written, whatever the mode; so does the tangent of a gradient.
    rate = jvp(grad(CASES["ng_view"]), (X,), (T,))[1]
    np.testing.assert_allclose(rate[0].numpy(), 8 * (T[0] * X[1] + X[0] * T[1]).numpy())


@pytest.mark.parametrize("compiled, mapped, checkpointed", list(itertools.product([False, True], repeat=3)))
def test_a_captured_tensor_written_to_under_no_grad(compiled, mapped, checkpointed):
    def program(x):
        def outer(p):
            def inner(u):
                v = cr.full((2,), 0.6, dtype=cr.float64) * x.sum()
                with cr.no_grad():
                    v.mul_(0.7)
                return v.sum()

            f = (lambda u: checkpoint(inner, u, use_reentrant=False)) if checkpointed else inner
            v = func.vmap(f)(p) if mapped else cr.stack([f(p[0]), f(p[1])])
            return (v @ v) * 0.5

        return (cr.jit(outer) if compiled else outer)(x)

    s = 0.6 * 0.7 * float(X.sum())  # each element of v; its derivative is 0.6
    np.testing.assert_allclose(grad(program)(X).numpy(), np.full((2, 2), 2 * (2 * s) * (2 * 0.6)))


def test_what_a_jitted_function_computes_without_a_derivative_is_no_part_of_one():
    @cr.jit
    def f(x, w):
        with cr.no_grad():
            mean = x.mean()
        return (x * w).sum(), mean

    w = cr.ones(2, 2, dtype=cr.float64, requires_grad=True)
    loss, mean = f(X, w)
    assert loss.requires_grad and not mean.requires_grad and mean.is_leaf
    # A tangent passes where a reverse pass sees nothing.
    g = jvp(grad(lambda x: (f(x, w)[1] * x).sum()), (X,), (T,))[1]
    np.testing.assert_allclose(g.detach().numpy(), np.full((2, 2), float(T.mean())))


def test_data_of_another_shape_is_refused_where_it_would_be_recorded():
    def f(x):
        y = x * 2
        y.data = cr.ones(3, dtype=cr.float64)
        return y.sum()

    with pytest.raises(JitError, match="keeps its derivative"):
        cr.jit(f)(X)


def test_a_view_of_a_tensor_that_was_written_to_may_be_returned():
    def f(x):
        z = cr.zeros(2, 2, dtype=cr.float64)
        cr.cumsum(x, 0, out=z[:, :])
        return z.select(1, 1), z.t()

    _close(cr.jit(f)(X), f(X), "views alone")
    _close(
        cr.scan(lambda c, v: (c, f(v)[0]), X, cr.stack([X, X + 1]))[1], cr.stack([f(X)[0], f(X + 1)[0]]), "in a loop"
    )
    _close(
        cr.jit(lambda x: cr.scan(lambda c, v: (c, f(v)[0]), x, cr.stack([x, x + 1]))[1])(X),
        cr.stack([f(X)[0], f(X + 1)[0]]),
        "in a recorded loop",
    )
    kept = []

    def g(x):
        z = cr.zeros(2, 2, dtype=cr.float64)
        z.add_(x)
        keep(z)
        return z[0]

    keep = (lambda store: store.append)(kept)
    with pytest.raises(JitError, match="happen once"):
        cr.jit(g)(X)


def test_linearize_sees_what_no_grad_hides():
    """It walks forward, as jvp does."""

    def f(x):
        with cr.no_grad():
            y = x * 3.0
        return y + x.detach() * 0.0

    x, t = cr.tensor([1.0, 2.0], dtype=cr.float64), cr.tensor([0.5, -1.0], dtype=cr.float64)
    for g in (f, cr.jit(f)):
        want = func.jvp(g, (x,), (t,))[1]
        assert want.tolist() == [1.5, -3.0]
        assert func.linearize(g, x)[1](t).tolist() == want.tolist()
        assert func.grad(lambda u, g=g: g(u).sum())(x).tolist() == [0.0, 0.0]
