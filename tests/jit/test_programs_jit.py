"""Random programs with views, writes and control flow: jit, jit(grad), grad(jit) and vmap(jit) give what the program gives without."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import chainrule as cr
from chainrule.func import grad, vmap
from chainrule.jit.api import jit

N = 6
POINTWISE = [
    lambda x, y: x * y,
    lambda x, y: x + y.sin(),
    lambda x, y: (x - y).tanh() * 2,
    lambda x, y: cr.where(x > y, x, 0.5 * y),
    lambda x, y: (x * 0.3).exp() - y,
    lambda x, y: x / (1 + y * y),
    lambda x, y: cr.maximum(x, y),
]
VIEWS = [slice(1, None), slice(None, -2), slice(None, None, 2), slice(2, 5), 3, slice(None)]


def _write(kind, key):
    def f(x, y):
        z = x.clone()
        v = z[key]
        if kind == 0:
            v += y[key]
        elif kind == 1:
            z[key] = y[key] * 2
        elif kind == 2:
            v.mul_(0.5)
        else:
            w = z.reshape(2, 3).T  # a view of a view
            w[0] = y[:2]
        return z

    return f


def _cond(x, y):
    return cr.cond(x.sum() > y.sum(), lambda x, y: x * 0.5 + y, lambda x, y: (x - y).sin(), (x, y))


def _switch(x, y):
    return cr.switch(
        (x.sum() > 0).to(cr.int64) + (y.sum() > 0).to(cr.int64), [lambda x: x * 2, lambda x: x.cos(), lambda x: x], (x,)
    )


def _loop(x, y):
    return cr.fori_loop(0, 3, lambda i, c: (c * 0.5 + y).tanh() + 0.1 * i, x)


def _scan(x, y):
    c, ys = cr.scan(lambda c, v: (c * v + 0.1, (c * c).sum()), x * 0.5, cr.stack([y, x, y]) * 0.5, reverse=True)
    return c + ys.sum()


def _while(x, y):
    return cr.while_loop(lambda v: (v * v).sum() > 1.0, lambda v: (v * 0.7 + 0.01 * y,), (x,), max_steps=12)[0]


def _matrix(x, y):
    return cr.outer(x, y).tanh() @ x + (x.reshape(2, 3) @ y.reshape(3, 2)).reshape(4)[:1]


def _flat(x, y):
    return cr.cat([x[3:], y[:3]]).reshape(3, 2).permute(1, 0).reshape(N) + x.flip(0)


STEPS = [
    *POINTWISE,
    *[_write(k, v) for k in range(4) for v in VIEWS],
    _cond,
    _switch,
    _loop,
    _scan,
    _while,
    _matrix,
    _flat,
]
program = st.lists(
    st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=7
)


def build(steps):
    def f(x, y):
        values = [x, y]
        for k, i, j in steps:
            values.append(STEPS[k](values[-1 - i % len(values)], values[-1 - j % len(values)]))
        return values[-1] * 1.0, sum(v.sum() for v in values[2:])

    return f


def close(a, b, what):
    for p, q in zip(cr.tree.flatten(a)[0], cr.tree.flatten(b)[0], strict=True):
        np.testing.assert_allclose(np.asarray(p), np.asarray(q), rtol=1e-8, atol=1e-8, err_msg=what)


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(program, st.integers(0, 1000))
def test_programs(steps, seed):
    rng = np.random.default_rng(seed)
    f = build(steps)
    scalar = lambda x, y: f(x, y)[1]
    j = jit(f)
    js, jg = jit(scalar), jit(grad(scalar, (0, 1)))
    for _ in range(2):  # the second time on other values: those of the first must not be baked in
        x, y = (cr.tensor(rng.standard_normal(N)) for _ in range(2))
        close(j(x, y), f(x, y), "jit")
        want = grad(scalar, (0, 1))(x, y)
        close(jg(x, y), want, "jit(grad)")
        close(grad(js, (0, 1))(x, y), want, "grad(jit)")
        xs = cr.tensor(rng.standard_normal((3, N)))
        close(vmap(j, (0, None))(xs, y), vmap(f, (0, None))(xs, y), "vmap(jit)")
