"""Derivatives that are zero everywhere: a gradient of zeros for what they reach, none for what was not used."""

import pytest

import chainrule as cr


def test_backward_gives_zeros() -> None:
    x = cr.tensor([1.5, -2.5], requires_grad=True)
    x.floor().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]


def test_through_other_ops_and_without_nan() -> None:
    """Nothing is computed for what is zero: no 0 * inf on the way."""
    x = cr.tensor([0.0, 4.0], requires_grad=True)
    x.sqrt().sign().sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]


def test_zeros_beside_others() -> None:
    x = cr.tensor([1.5, -2.5], requires_grad=True)
    w = cr.tensor([2.0, 3.0], requires_grad=True)
    (x.round() * w).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 0.0]
    assert w.grad is not None and w.grad.tolist() == x.detach().round().tolist()
    (x - x.floor()).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_autograd_grad_tells_zero_from_unused() -> None:
    x = cr.tensor([1.5], requires_grad=True)
    other = cr.tensor([1.5], requires_grad=True)
    h = x * 2
    assert cr.autograd.grad(h.floor().sum(), x, retain_graph=True)[0].tolist() == [0.0]
    assert cr.autograd.grad(h.floor().sum(), h)[0].tolist() == [0.0]
    with pytest.raises(cr.ChainruleError, match="not have been used"):
        cr.autograd.grad((x * 2).sum(), other)
    assert cr.autograd.grad((x * 2).sum(), [x, other], allow_unused=True)[1] is None


def test_dims_of_a_number_are_checked() -> None:
    with pytest.raises(RuntimeError, match="multiple times"):
        cr.tensor(1.0).sum((0, 0))


def test_out_may_not_overlap_the_input() -> None:
    b = cr.arange(6.0)
    with pytest.raises(RuntimeError, match="shares memory"):
        cr.sin(b[:5], out=b[1:])
    assert cr.sin(b, out=b) is b


@pytest.mark.parametrize("f", [cr.copysign, cr.nextafter, lambda a, b: cr.copysign(a * 2.0, -b)])
def test_an_operand_whose_derivative_is_zero_beside_one_that_has_one(f) -> None:
    """The steps on small arrays tell "zero" from "not used", as the rules do."""
    a, b = (cr.tensor(v, requires_grad=True) for v in ([0.5, 2.0], [1.5, -2.0]))
    ga, gb = cr.autograd.grad(f(a, b).sum(), [a, b])
    assert ga.abs().min() > 0 and gb.tolist() == [0.0, 0.0]
    (gb,) = cr.autograd.grad(f(a, b).sum(), b)
    assert gb.tolist() == [0.0, 0.0]
