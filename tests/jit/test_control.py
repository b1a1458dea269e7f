"""Control flow: the same with and without jit, in every mode, batched, and against plain Python loops."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.jit import JitError, jit

rng = np.random.default_rng(1)


def T(*shape, dtype=np.float64):
    return cr.tensor(np.asarray(rng.standard_normal(shape), dtype))


def close(a, b, tol=1e-10):
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


W = T(3, 3)


def by_scan(x, **kw):
    def step(c, v):
        h = (c @ W + v).tanh()
        return h, h * v

    c, ys = cr.scan(step, cr.zeros(3, dtype=cr.float64) + x[0], x, **kw)
    return (c * c).sum() + ys.sin().sum()


def by_hand(x, reverse=False, **kw):
    c = cr.zeros(3, dtype=cr.float64) + x[0]
    total = 0.0
    for i in reversed(range(len(x))) if reverse else range(len(x)):
        c = (c @ W + x[i]).tanh()
        total = total + (c * x[i]).sin().sum()
    return (c * c).sum() + total


def by_while(x):
    y, n = cr.while_loop(lambda y, n: (y * y).sum() < 50.0, lambda y, n: (y * 1.5, n + 1), (x, cr.tensor(0)))
    return (y.sin() * n).sum()


def by_bounded_while(x):
    y, n = cr.while_loop(
        lambda y, n: (y * y).sum() < 50.0, lambda y, n: (y * 1.5, n + 1), (x, cr.tensor(0)), max_steps=25
    )
    return (y.sin() * n).sum()


def by_cond(x):
    return cr.cond(x.sum() > 0, lambda v: (v * W).sum(), lambda v: v.exp().sum() * 2, (x,))


def by_switch(x):
    return cr.switch(
        (x[0] > 0).long() + (x[0] > 1).long(),
        [lambda v: v.sum(), lambda v: (v * v).sum(), lambda v: v.cos().sum()],
        (x,),
    )


def by_fori(x):
    return cr.fori_loop(0, 7, lambda i, c: c * 0.9 + x.sin() * i, x * 2).sum()


def by_map(x):
    return cr.map(lambda r: (r * r).sin() * W[0].sum(), x).sum()


def by_associative(x):
    return (
        cr.associative_scan(lambda a, b: a * b + 0 * a, x).sin() * cr.associative_scan(lambda a, b: a + b, x, 0, True)
    ).sum()


FUNCTIONS = [
    (by_scan, (4, 3)), (by_while, (3,)), (by_bounded_while, (3,)), (by_cond, (3,)), (by_switch, (3,)), (by_fori, (3,)), (by_map, (4, 3)),
    (by_associative, (5,)),
]  # fmt: skip


@pytest.mark.parametrize(("f", "shape"), FUNCTIONS, ids=lambda f: getattr(f, "__name__", ""))
def test_every_mode(f, shape):
    g = func.grad(f)
    plain = {
        "value": f,
        "jvp": lambda x: func.jvp(f, (x,), (x.cos(),))[1],
        "vmap": lambda x: func.vmap(f)(cr.stack([x, -x, x * 2])),
        "grad": g,
        "second": lambda x: func.grad(lambda y: (func.grad(f)(y) * y.cos()).sum())(x),
        "forward over reverse": lambda x: func.jvp(g, (x,), (x.cos(),))[1],
        "vmap grad": lambda x: func.vmap(g)(cr.stack([x, -x, x * 2])),
    }
    for name, h in plain.items():
        reverse = name not in ("value", "jvp", "vmap")
        if f is by_while and reverse:
            continue
        j = jit(h)
        j(T(*shape))
        for _ in range(3):
            x = T(*shape)
            close(j(x), h(x))
    x = T(*shape)
    inner = jit(f)
    close(func.jvp(inner, (x,), (x.cos(),))[1], plain["jvp"](x))
    close(func.vmap(inner)(cr.stack([x, -x, x * 2])), plain["vmap"](x))
    if f is not by_while:
        close(func.grad(inner)(x), g(x))
        close(func.vmap(func.grad(inner))(cr.stack([x, -x, x * 2])), plain["vmap grad"](x))


WAYS = [
    {},
    {"reverse": True},
    {"checkpoint": 2},
    {"checkpoint": "sqrt"},
    {"checkpoint": "binomial"},
    {"checkpoint": "sqrt", "reverse": True},
]


@pytest.mark.parametrize("kw", WAYS)
def test_scan_is_a_loop(kw):
    x = T(11, 3)
    for f in (by_scan, jit(by_scan)) if not kw else (lambda x: by_scan(x, **kw), jit(lambda x: by_scan(x, **kw))):
        close(f(x), by_hand(x, **kw))
        close(func.grad(f)(x), func.grad(lambda x: by_hand(x, **kw))(x))
    close(jit(func.grad(lambda x: by_scan(x, **kw)))(x), func.grad(lambda x: by_hand(x, **kw))(x))


def test_scan_along_another_dim_and_of_trees():
    x = T(3, 5)

    def f(x):
        def step(c, v):
            return {"a": c["a"] + v["p"], "n": c["n"] + 1}, (v["p"] * c["a"], c["n"])

        return cr.scan(step, {"a": cr.zeros(3, dtype=cr.float64), "n": cr.tensor(0)}, {"p": x}, dim=1)

    (c, (y, n)), (d, (z, m)) = f(x), jit(f)(x)
    close(c["a"], d["a"])
    close(y, z)
    assert y.shape == (3, 5) and int(d["n"]) == 5 and n.tolist() == m.tolist() == [0, 1, 2, 3, 4]
    c, y = jit(
        lambda x: (
            cr.scan(lambda c, v: (c, v * c), x, None, length=0) if 0 else cr.scan(lambda c, v: (c * v, c), x, x[:0])
        )
    )(T(3) * 0 + 2)
    assert y.shape == (0, 3)


def test_a_loop_stays_a_loop():
    j = jit(func.grad(lambda x: cr.fori_loop(0, 500, lambda i, c: c * x.cos(), x).sum()))
    j(T(2))
    assert len(j.lower(T(2)).graph.nodes) < 100


def test_what_the_body_writes_outside_is_refused():
    total = cr.zeros(())

    def f(x):
        def body(i, c):
            total.add_(c.sum())
            return c

        return cr.fori_loop(0, 3, body, x)

    with pytest.raises(JitError, match="Carry it"):
        jit(f)(T(2))


def test_mistakes_are_named():
    with pytest.raises(RuntimeError, match="same shapes"):
        jit(lambda x: cr.cond(x.sum() > 0, lambda v: v, lambda v: v.sum(), (x,)))(T(2))
    with pytest.raises(RuntimeError, match="carry what it was given"):
        jit(lambda x: cr.scan(lambda c, v: (cr.stack([c, c]), v), x[0], x))(T(2))
    with pytest.raises(cr.MissingRuleError, match="max_steps"):
        jit(func.grad(by_while))(T(3))


def test_random_numbers_in_a_loop_differ_between_steps():
    y = jit(lambda x: cr.map(lambda v: v + cr.rand(()), x))(cr.zeros(6))
    assert len(set(y.tolist())) == 6


def test_branches_that_cannot_be_recorded_run_both():
    """Sparse tensors are in no recording: under a map all branches run, and the results are chosen."""

    def doubled(v):
        s = cr.sparse_coo_tensor([[0, 1], [1, 0]], v, (2, 2))
        return (s.tanh() @ cr.ones(2, dtype=cr.float64)) * v

    def f(x):
        return cr.switch((x.sum() > 0).long(), [lambda v: v.sin(), doubled], (x,))

    def by_hand(x):
        return doubled(x) if x.sum() > 0 else x.sin()

    xs = T(4, 2)
    close(cr.vmap(f)(xs), cr.stack([by_hand(x) for x in xs]))
    close(
        func.grad(lambda xs: cr.vmap(f)(xs).sum())(xs), cr.stack([func.grad(lambda x: by_hand(x).sum())(x) for x in xs])
    )


@pytest.mark.parametrize("most", [None, 12])
def test_while_whose_body_reads_a_batch(most):
    def f(x, y):
        return cr.while_loop(lambda v: (v * v).sum() > 1.0, lambda v: (v * 0.7 + 0.01 * y,), (x,), max_steps=most)[0]

    x, ys = cr.tensor([3.0, -2.0]), cr.tensor([[1.0, 2.0], [9.0, 9.0], [-1.0, 0.5]])
    want = cr.stack([f(x, y) for y in ys])
    assert cr.func.vmap(f, (None, 0))(x, ys).allclose(want)
    assert cr.func.vmap(cr.jit(f), (None, 0))(x, ys).allclose(want)
    assert cr.jit(cr.func.vmap(f, (None, 0)))(x, ys).allclose(want)
