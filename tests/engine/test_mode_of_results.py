"""Results of transforms under ``no_grad`` are constants, also where a rule hands on what it got; writes keep the history."""

import pytest

import chainrule as cr
from chainrule.autograd import forward_ad
from chainrule.func import grad, jacfwd, jacrev, jvp, linearize, vjp, vmap

X = cr.tensor([0.3, -1.2, 2.1], dtype=cr.float64)
T = cr.tensor([1.0, -1.0, 2.0], dtype=cr.float64)


def unpacked(x, which, f):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, x)))[which]


CALLS = {
    "jvp value": lambda f, x: jvp(f, (x,), (x,))[0],
    "jvp tangent": lambda f, x: jvp(f, (x,), (x,))[1],
    "linearize": lambda f, x: linearize(f, x)[1](x),
    "vjp value": lambda f, x: vjp(f, x)[0],
    "vjp": lambda f, x: vjp(f, x)[1](x)[0],
    "vmap": lambda f, x: vmap(f)(x),
    "jacfwd": lambda f, x: jacfwd(lambda p: f(p) * x)(x),
    "jacrev": lambda f, x: jacrev(lambda p: f(p) * x)(x),
    "primal": lambda f, x: unpacked(x, 0, f),
    "tangent": lambda f, x: unpacked(x, 1, f),
}
FUNCTIONS = {
    "itself": lambda p: p,
    "clone": lambda p: p.clone(),
    "sum": lambda p: p + 1,
    "view": lambda p: p.view_as(p),
}


@pytest.mark.parametrize("outer", [lambda g: g, vmap], ids=["plain", "vmap"])
@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_result_under_no_grad_is_a_constant(call, f, outer):
    def cut(x):
        with cr.no_grad():
            y = call(f, x)
        return (y * x).sum()

    x = X if outer is not vmap else cr.stack([X, T])
    # What stands beside the constant is its derivative.
    expected = outer(lambda x: call(f, x).reshape(-1, x.shape[-1]).sum(0))(x)
    assert cr.allclose(outer(grad(cut))(x), expected)


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_leaves_come_out_of_it_as_constants(call, f):
    x = X.clone().requires_grad_()
    with cr.no_grad():
        y = call(f, x)
    assert not y.requires_grad
    assert call(f, x).requires_grad


def test_a_captured_tensor_that_a_function_returns_is_itself():
    x = X.clone().requires_grad_()
    with cr.no_grad():
        y = jvp(lambda p: (p, x), (T,), (T,))[0][1]
    assert y is x


def written(x):
    v = x.sin() * x
    with cr.no_grad():
        v.mul_(0.7)
    return v.sum()


def through_a_view(x):
    v = x.sin() * x
    w = v[1:]
    with cr.no_grad():
        w.mul_(0.7)
    return (v * x).sum()


def a_constant(x):
    v = x.sin() * x
    with cr.no_grad():
        v[0].copy_(cr.ones((), dtype=v.dtype))
    return (v * x).sum()


@pytest.mark.parametrize("f", [written, through_a_view, a_constant])
@pytest.mark.parametrize("outer", [lambda g: g, vmap], ids=["plain", "vmap"])
def test_linearize_plays_a_write_under_no_grad_as_jvp_does(f, outer):
    """The levels around see another value, and the history that was there: of the value and of the tangent."""
    x, t = (X, T) if outer is not vmap else (cr.stack([X, T]), cr.stack([T, X]))
    value = outer(grad(lambda x: jvp(f, (x,), (T,))[0]))(x), outer(grad(lambda x: linearize(f, x)[0]))(x)
    assert cr.allclose(*value)
    of_jvp = outer(grad(lambda x, t: jvp(f, (x,), (t,))[1], (0, 1)))(x, t)
    of_tape = outer(grad(lambda x, t: linearize(f, x)[1](t), (0, 1)))(x, t)
    for a, b in zip(of_jvp, of_tape):
        assert cr.allclose(a, b)
    assert grad(lambda x: linearize(f, x)[0])(X).count_nonzero() == 3
