"""Who an argument is: tensors with derivatives are themselves at every call, and a function may ask whether one has any."""

import pytest

import chainrule as cr
from chainrule import nn
from chainrule.func import grad, vmap
from chainrule.jit.api import jit


def leaf(*values):
    return cr.tensor(values, requires_grad=True)


def numbers(*tensors):
    return [None if t is None else t.tolist() for t in tensors]


def test_the_argument_of_this_call_is_returned_and_gets_the_gradient():
    def f(x, y):
        (x * x * y).sum().backward()
        return x * 2, x

    j = jit(f)
    for k in range(3):
        x, y = leaf(1.0 + k, 2.0), leaf(3.0, float(k))
        p, q = leaf(1.0 + k, 2.0), leaf(3.0, float(k))
        for _ in range(2):  # gradients add up
            got, want = j(x, y), f(p, q)
            assert got[1] is x and numbers(*got) == numbers(*want)
            assert numbers(x.grad, y.grad) == numbers(p.grad, q.grad)


def test_the_argument_of_this_call_is_written_to():
    def f(x):
        with cr.no_grad():
            x.mul_(2.0)
        return x * 3

    j = jit(f)
    for k in range(3):
        x = leaf(1.0 + k)
        assert j(x).tolist() == [6.0 * (1 + k)] and x.tolist() == [2.0 * (1 + k)] and x.is_leaf


def test_an_argument_given_twice():
    a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)

    def f(x, y, z):
        return x * 2 + y * 3, z

    j = jit(f)
    for args in ((a, a, b), (a, b, c), (a, b, a), (b, b, c), (a, c, c)):
        got, want = j(*args), f(*args)
        assert got[1] is args[2] and numbers(*got) == numbers(*want)
        slopes = [numbers(*cr.autograd.grad(y[0].sum(), args, allow_unused=True)) for y in (got, want)]
        assert slopes[0] == slopes[1]


def test_what_has_no_part_gets_no_gradient():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)

        def forward(self, x, both):
            return self.a(x) + (self.b(x) if both else 0)

    m = Half()
    j = jit(m)
    for both in (False, True, False):
        m.zero_grad()
        j(cr.ones(2, 3), both).sum().backward()
        assert [p.grad is None for p in m.parameters()] == [False, False, not both, not both]
    x, y = leaf(1.0), leaf(2.0)
    jit(lambda x, y: (x * 2, y * 3))(x, y)[0].sum().backward()
    assert x.grad.tolist() == [2.0] and y.grad is None
    jit(lambda x, y: x + y.floor())(x, y).sum().backward()  # a derivative that is zero is one
    assert y.grad.tolist() == [0.0]


@pytest.mark.parametrize("mapped", [False, True])
def test_whether_an_argument_has_derivatives_may_be_asked(mapped):
    def f(x):
        y = x * x
        return y * 2 if y.requires_grad and not x.detach().requires_grad else y * 3

    j = jit(f)
    x = cr.tensor([1.0, 2.0])
    for _ in range(2):
        if mapped:
            assert vmap(grad(j))(x).tolist() == [4.0, 8.0] and vmap(j)(x).tolist() == [3.0, 12.0]
        else:
            assert grad(lambda x: j(x).sum())(x).tolist() == [4.0, 8.0] and j(x).tolist() == [3.0, 12.0]
    p = leaf(1.0, 2.0)
    assert j(p).tolist() == [2.0, 8.0] and j(p * 1).tolist() == [2.0, 8.0] and j(x).tolist() == [3.0, 12.0]


def test_the_mode_around_is_the_mode_inside():
    w = leaf(2.0)

    def f(x):
        y = x * w
        return y, cr.is_grad_enabled(), y.requires_grad

    j = jit(f)
    x = cr.tensor([3.0])
    for _ in range(2):
        y, *seen = j(x)
        assert y.requires_grad and seen == [True, True]
        with cr.no_grad():
            y, *seen = j(x)
            assert y.tolist() == [6.0] and not y.requires_grad and seen == [False, False]
            with cr.enable_grad():
                y, *seen = j(x)
                assert y.requires_grad and seen == [True, True]


def test_what_an_op_has_made_is_no_leaf():
    def f(x):
        o = cr.empty(3)
        cr.mul(x, x, out=o)
        cr.sin(o, out=o[:])
        return o.sum() if not o.is_leaf or not o.requires_grad else o.sum() * 7

    x = cr.tensor([0.1, 0.5, -0.3])
    want = 2 * x * (x * x).cos()
    for g in (grad(jit(f)), jit(grad(f)), grad(f)):
        for _ in range(2):
            cr.testing.assert_close(g(x), want)
    leaves = []
    grad(jit(lambda x: (leaves.append((x.is_leaf, (x * 1).is_leaf)), x.sum())[1]))(x)
    assert leaves[-1] == (True, False)


def test_layers_made_inside_are_one_for_all_directions():
    def f(x):
        cr.manual_seed(0)
        return (nn.Linear(3, 2)(x) ** 2).sum()

    x = cr.tensor([0.1, 0.5, -0.3])
    j = jit(f)
    for _ in range(2):
        cr.testing.assert_close(cr.func.hessian(j)(x), cr.func.hessian(f)(x))
        cr.testing.assert_close(vmap(j)(cr.stack([x, x * 2])), vmap(f)(cr.stack([x, x * 2])))


@pytest.mark.parametrize(
    "call", [grad, lambda f: lambda x: vmap(grad(f))(x[None])[0], None], ids=["grad", "vmap", "backward"]
)
def test_hooks_are_those_of_the_call(call):
    """A recording has no room for them: the function runs as it stands, whether they sit on arguments, results or weights."""
    w = leaf(2.0, 3.0)

    def f(x):
        y = x * w
        for t, k in ((x, 2.0), (y, 3.0), (w, 5.0)):
            if t.requires_grad:
                t.register_hook(lambda g, k=k: g * k)
        if y.requires_grad:
            y.retain_grad()
        return (y * y).sum()

    def slopes(f):
        w.grad, w._aux.hooks = None, None
        if call is not None:
            return call(f)(cr.tensor([1.0, -1.0])).tolist()
        x = leaf(1.0, -1.0)
        f(x).backward()
        return x.grad.tolist(), w.grad.tolist()

    j = jit(f)
    assert slopes(j) == slopes(j) == slopes(f)
