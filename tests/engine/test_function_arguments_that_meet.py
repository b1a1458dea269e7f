"""Arguments of a Function that are two above and one tensor below: what is saved of each is found by its place on every level."""

import pytest

import chainrule as cr
from chainrule.autograd import Function
from chainrule.func import grad, hessian, jacfwd, jvp, linearize, vmap


class Product(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b if ctx.needs_input_grad[0] else None, g * a if ctx.needs_input_grad[1] else None


X = cr.tensor([0.3, -1.1, 0.7, 0.9], dtype=cr.float64)
T = cr.tensor([0.5, 0.2, -1.0, 0.8], dtype=cr.float64)
ONES = cr.ones_like(X)


def second(product):
    """The second derivative in the first operand, with the second captured."""

    def f(x):
        inner = grad(lambda p: product(p, x).sin().sum())
        return jvp(inner, (x,), (ONES,))[1]

    return f


ASKED = {
    "value": lambda f: f(X),
    "jvp": lambda f: jvp(f, (X,), (T,))[1],
    "linearize": lambda f: linearize(f, X)[1](T),
    "grad": lambda f: grad(lambda x: (f(x) * T).sum())(X),
    "jacfwd": lambda f: jacfwd(f)(X),
    "hessian": lambda f: hessian(lambda x: (f(x) * T).sum())(X),
    "vmap of jvp": lambda f: vmap(lambda x: jvp(f, (x,), (T,))[1])(cr.stack([X, T])),
    "jvp of vmap": lambda f: jvp(vmap(f), (cr.stack([X, T]),), (cr.stack([T, X]),))[1],
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=ASKED)
def test_a_captured_operand_is_not_the_argument(ask):
    assert cr.allclose(ask(second(Product.apply)), ask(second(lambda a, b: a * b)))


def test_one_tensor_given_twice():
    x = X.clone().requires_grad_()
    (g,) = cr.autograd.grad(Product.apply(x, x).sum(), x, create_graph=True)
    assert cr.allclose(g, 2 * X)
    assert cr.allclose(cr.autograd.grad((g * T).sum(), x)[0], 2 * T)
