"""Inference mode inside a compiled function cuts forward mode too, and what is around the call does not stay in the recording."""

import pytest

import chainrule as cr
from chainrule.func import grad, jvp, linearize, vmap

X = cr.tensor([0.3, -0.4], dtype=cr.float64)
T = cr.tensor([1.0, 2.0], dtype=cr.float64)


def cut(x):
    with cr.inference_mode():
        y = x.sin() * x.sum()
    return y * x


def inside(x):
    """A transform that starts inside is not cut."""
    with cr.inference_mode():
        y = jvp(lambda p: p.sin() * p, (x,), (T,))[1]
    return y * x


def captured(x):
    return cr.jit(lambda p: cut(x) + p)(x)


ASKED = {
    "jvp": lambda f: jvp(f, (X,), (T,))[1],
    "linearize": lambda f: linearize(f, X)[1](T),
    "grad": lambda f: grad(lambda x: f(x).sum())(X),
    "forward over reverse": lambda f: jvp(grad(lambda x: f(x).sum()), (X,), (T,))[1],
    "vmap of jvp": lambda f: vmap(lambda x: jvp(f, (x,), (T,))[1])(cr.stack([X, T])),
}


@pytest.mark.parametrize("f", [cut, inside, captured])
@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_as_without_jit(ask, f):
    plain = (lambda x: cut(x) + x) if f is captured else f
    assert cr.allclose(ask(cr.jit(f)), ask(plain))
    assert cr.allclose(cr.jit(ask)(f), ask(plain))


def test_the_mode_around_a_call_is_not_recorded():
    g = cr.jit(lambda x: x.sin() * x)
    with cr.inference_mode():
        assert cr.allclose(jvp(g, (X,), (T,))[1], jvp(lambda x: x.sin() * x, (X,), (T,))[1])
        value = g(X)
    assert cr.allclose(value, X.sin() * X)
    assert cr.allclose(jvp(g, (X,), (T,))[1], (X.cos() * X + X.sin()) * T)
    assert cr.allclose(grad(lambda x: g(x).sum())(X), X.cos() * X + X.sin())
