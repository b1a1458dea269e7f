"""What gradcheck judges, by which walk, and what it refuses; results of autograd.functional that keep their history."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule.autograd import gradcheck
from chainrule.autograd.gradcheck import GradcheckError


def test_gradcheck_walks_as_backward_does() -> None:
    x = cr.rand(3, dtype=cr.float64, requires_grad=True)

    def own_gradient(x):
        y = x * 2  # a leaf's gradient is asked for inside, as a differentiable optimiser's step does
        (y * y).sum().backward(inputs=(x,), create_graph=True)
        g, x.grad = x.grad, None
        return g

    assert gradcheck(own_gradient, (x,), check_batched_grad=True)

    def hooked(x):
        y = x * 2
        y.register_hook(lambda g: g * 1.5)
        return y

    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(hooked, (x,))
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only"):
        gradcheck(lambda z: hooked(z.detach() + 0j * z), (cr.rand(2, dtype=cr.complex128, requires_grad=True),))


def test_gradcheck_refuses_what_differences_cannot_judge() -> None:
    x = cr.ones(2, dtype=cr.float64, requires_grad=True)
    for fast in (False, True):
        with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
            gradcheck(lambda x: cr.cat([x, x]) if bool((x >= 1).all()) else x, (x,), fast_mode=fast)
        with pytest.raises(AssertionError, match="same dtype when inputs are perturbed"):
            gradcheck(lambda x: x.float() if bool((x >= 1).all()) else x, (x,), fast_mode=fast)
        with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
            gradcheck(lambda x: cr.tensor(x.tolist(), dtype=cr.float64), (x,), fast_mode=fast)
        assert gradcheck(lambda x: (), (x,), fast_mode=fast)
    with pytest.raises(AssertionError, match="Expected at least one of check_forward_ad or check_backward_ad"):
        gradcheck(lambda x: x, (x,), check_backward_ad=False)


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_notices_a_rule_that_varies(fast: bool) -> None:
    class Jitter(cr.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g * (1 + cr.rand_like(g) * 1e-6)

    x = cr.rand(3, dtype=cr.float64, requires_grad=True)
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Jitter.apply, (x,), fast_mode=fast)
    assert gradcheck(Jitter.apply, (x,), nondet_tol=1e-5, fast_mode=fast)


def test_functional_results_have_a_history_when_it_is_asked_for() -> None:
    from chainrule.autograd.functional import hessian, hvp, jacobian, vhp

    x, cube = cr.rand(3), lambda x: (x**3).sum()
    with cr.no_grad():
        for ask in (False, True):
            made = (
                jacobian(cube, x, create_graph=ask),
                hessian(cube, x, create_graph=ask),
                hvp(cube, x, cr.ones(3), create_graph=ask)[1],
                vhp(cube, x, cr.ones(3), create_graph=ask)[1],
            )
            assert [y.requires_grad for y in made] == [ask] * 4
