"""Random numbers under jit: a call's value and derivatives see the same numbers, and seeds give what they give without jit."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule import func, jit
from chainrule.func import grad, vmap
from chainrule.jit.simplify import bodies
from chainrule.nn import functional as F
from chainrule.utils.checkpoint import checkpoint

N = 40


def doubled(c):
    """Every element doubled or not, by chance: the sum of the slopes is the sum of the values."""
    return c * (1 + (cr.rand(N, dtype=cr.float64) < 0.5).to(cr.float64))


def flat(x):
    return doubled(doubled(x)).sum()


def dropout(x):
    return F.dropout(x, 0.5).sum()


def again(x):
    return checkpoint(lambda u: doubled(u).sum(), x, use_reentrant=False)


def steps(x):
    return cr.scan(lambda c, a: (doubled(c) * a, c.sum()), x, cr.arange(1.0, 4.0, dtype=cr.float64), reverse=True)[
        0
    ].sum()


def loops(x):
    return cr.fori_loop(0, 2, lambda i, c: doubled(cr.fori_loop(0, 3, lambda j, d: doubled(d), c)), x).sum()


def kept(x):
    return cr.fori_loop(0, 9, lambda i, c: doubled(c), x, checkpoint="sqrt").sum()


def branch(x):
    return cr.cond(x.sum() > 0, lambda c: doubled(c).sum(), lambda c: c.sum(), (x,))


def bounded(x):
    return cr.while_loop(lambda c: c.sum() < 500, lambda c: (doubled(c),), (x,), max_steps=6)[0].sum()


def seeded(x):
    g = cr.Generator().manual_seed(3)
    return (x * (cr.rand(N, generator=g, dtype=cr.float64) < 0.5)).sum()


def restored(x):
    state = cr.get_rng_state()
    a = doubled(x)
    cr.set_rng_state(state)
    return (a + doubled(x)).sum()


PROGRAMS = [flat, dropout, again, steps, loops, kept, branch, bounded, seeded, restored]
WAYS = {
    "eager": func.grad_and_value,
    "jit of grad": lambda f: cr.jit(func.grad_and_value(f)),
    "grad of jit": lambda f: func.grad_and_value(cr.jit(f)),
    "jvp of jit": lambda f: lambda x: func.jvp(cr.jit(f), (x,), (x,))[::-1],
    "jit of jvp": lambda f: cr.jit(lambda x: func.jvp(f, (x,), (x,))[::-1]),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_value_and_derivative_see_the_same_numbers(f, way):
    x, g = cr.ones(N, dtype=cr.float64), WAYS[way](f)
    values = []
    for seed in (0, 0, 1):
        cr.manual_seed(seed)
        slopes, value = g(x)
        assert float(slopes.sum()) == pytest.approx(float(value), rel=1e-12)
        values.append(float(value))
    assert values[0] == values[1]
    if f is not bounded:  # whose steps after the last draw as well
        cr.manual_seed(0)
        assert float(f(x)) == pytest.approx(values[0], rel=1e-12)


@pytest.mark.parametrize("f", [flat, steps, loops, branch], ids=lambda f: f.__name__)
def test_backward_through_a_compiled_function(f):
    x = cr.ones(N, dtype=cr.float64, requires_grad=True)
    y = cr.jit(f)(x)
    y.backward()
    assert float(x.grad.sum()) == pytest.approx(float(y.detach()), rel=1e-12)


@pytest.mark.parametrize("f", [flat, steps], ids=lambda f: f.__name__)
def test_vmap_decides_whether_examples_draw_the_same(f):
    x = cr.ones(2, N, dtype=cr.float64)
    g = func.grad_and_value(cr.jit(f))
    slopes, values = func.vmap(g, randomness="same")(x)
    assert values[0] == values[1]
    slopes, values = func.vmap(g, randomness="different")(x)
    assert values[0] != values[1]
    assert slopes.sum(1).tolist() == pytest.approx(values.tolist())
    with pytest.raises(RuntimeError, match="randomness"):
        func.vmap(g)(x)


def test_every_call_draws_anew_and_seeds_inside_hold_for_each():
    f = cr.jit(lambda x: x + cr.rand(3))
    assert not bool((f(cr.zeros(3)) == f(cr.zeros(3))).all())

    def g(x):
        with cr.random.fork_rng():
            cr.manual_seed(7)
            return x + cr.rand(3)

    h = cr.jit(g)
    cr.manual_seed(0)
    want = cr.rand(2)
    cr.manual_seed(0)
    assert h(cr.zeros(3)).tolist() == h(cr.zeros(3)).tolist() == g(cr.zeros(3)).tolist()
    assert cr.rand(2).tolist() == want.tolist()


def test_checkpoint_without_draws_leaves_the_generator_alone() -> None:
    """A checkpoint keeps the generator's state; where nothing is drawn a compiled branch with one is as good as any."""

    def f(x):
        return cr.cond(x.sum() > 0, lambda u: checkpoint(lambda v: v.sin() * v, u), lambda u: u * 0.5, (x,)).sum()

    inside = [n.op.name for m in jit(f).lower(cr.ones(2)).graph.nodes for g in bodies(m) for n in g.nodes]
    assert "sin" in inside and not any("generator" in name for name in inside)
    x = cr.tensor([[0.3, 0.4], [-0.3, -0.4]], dtype=cr.float64)
    one = cr.stack([grad(f)(v) for v in x])
    for g in (vmap(grad(f)), jit(vmap(grad(f)))):
        cr.testing.assert_close(g(x), one, rtol=1e-14, atol=0)


def test_branches_that_draw_under_vmap() -> None:
    """The examples go different ways, and the numbers drawn on either way are the examples' own or common, as vmap was told."""

    def f(x):
        return cr.cond(x > 0, lambda u: u * cr.rand((), dtype=cr.float64), lambda u: u * 0.5, (x,))

    x = cr.tensor([0.3, -0.2, 0.7], dtype=cr.float64)
    for g in (vmap(grad(f), randomness="same"), lambda x: grad(lambda x: vmap(f, randomness="same")(x).sum())(x)):
        got = g(x)
        assert got[1] == 0.5 and got[0] == got[2] and 0 < got[0] < 1
    got = vmap(grad(f), randomness="different")(x)
    assert got[1] == 0.5 and got[0] != got[2]
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(grad(f))(x)
