"""Machine code against eager: loops, branches, small systems, what is kept and shared, and what runs when something goes wrong."""

import threading
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, hessian, jvp, vmap
from chainrule.jit.api import jit

rng = np.random.default_rng(0)


def T(*shape, dtype=np.float64, scale=1.0):
    return cr.tensor((rng.standard_normal(shape) * scale).astype(dtype))


def same(a, b, tol=1e-9):
    got, want = cr.tree.flatten(a)[0], cr.tree.flatten(b)[0]
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=tol, atol=tol)


def whole(f, *args, tol=1e-9):
    """One part of machine code, with eager's result, twice."""
    e = cr.explain(f, *args)
    assert [p.run is not None for p in e.parts if p.reason != "views alone"] == [True], str(e)
    j = jit(f)
    for _ in range(2):
        same(j(*args), f(*args), tol)


def newton(a):
    return cr.while_loop(lambda x: (x * x - a).abs() > 1e-12, lambda x: (0.5 * (x + a / x),), (a,))[0]


def test_while_on_scalars_and_memory():
    whole(newton, cr.tensor(4.0, dtype=cr.float64))
    whole(lambda x: jvp(newton, (x,), (x * 0 + 1,))[1], cr.tensor(4.0, dtype=cr.float64))
    whole(
        lambda x: cr.while_loop(lambda i, x: x.sum() > 1, lambda i, x: (i + 1, x * 0.7), (cr.tensor(0), x)), T(40).abs()
    )
    whole(lambda x, n: cr.fori_loop(0, n, lambda i, c: c * 0.5 + i, x), T(3), cr.tensor(7))
    x = T(5).abs() + 1
    same(jit(vmap(newton))(x), x.sqrt())
    same(jit(lambda x: cr.while_loop(lambda i: i < 0, lambda i: (i + 1,), (x,))[0])(cr.tensor(3.0)), cr.tensor(3.0))


@pytest.mark.parametrize("n", [3, 40])
def test_branches(n):
    def f(x):
        return cr.cond(x.sum() > 0, lambda x: (x * 2).sin(), lambda x: x.exp() - 1, (x,))

    def g(i, x):
        return cr.switch(i, [lambda x: x * 2, lambda x: x.sin(), lambda x: x * x + x], (x,)).sum()

    x = T(n)
    for v in (x, x.abs(), -x.abs()):
        whole(f, v)
        whole(grad(lambda x: (f(x) * x).sum()), v)
        for i in (-3, 0, 1, 2, 9):
            whole(g, cr.tensor(i), v)
            whole(grad(g, 1), cr.tensor(i), v)
    # inside a loop
    whole(
        grad(
            lambda x: cr.fori_loop(
                0, 9, lambda i, c: cr.cond(c.sum() > 1, lambda c: c * 0.5, lambda c: c * 1.5 + 0.1, (c,)), x
            ).sum()
        ),
        x,
    )
    xs = cr.tensor(rng.standard_normal((6, n)))
    same(jit(vmap(f))(xs), vmap(f)(xs))


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_small_systems(n):
    a, b = T(n, n), T(n, min(n, 3))
    a[0, 0] = 0.0 if n > 1 else 2.0  # rows must be exchanged
    solve = cr.linalg.solve
    whole(lambda a, b: solve(a, b) * 1.0, a, b)
    whole(grad(lambda a, b: (solve(a, b) ** 2).sum(), (0, 1)), a, b, tol=1e-7)
    whole(lambda a, b: cr.linalg.solve_triangular(a, b, upper=False) + 0.0, a + 3 * cr.eye(n, dtype=cr.float64), b)
    f = jit(lambda a, b: solve(a, b) * 1.0)
    f(a, b)
    with pytest.raises(cr.linalg.LinAlgError, match="singular"):
        f(a * 0, b)
    same(f(a, b), solve(a, b), 1e-8)


def kalman(f, ys):
    q, h = 0.1 * cr.eye(4, dtype=f.dtype), cr.eye(2, 4, dtype=f.dtype)

    def step(c, y):
        m, p = c
        m, p = f @ m, f @ p @ f.T + q
        s = h @ p @ h.T + cr.eye(2, dtype=f.dtype)
        gain = cr.linalg.solve(s, h @ p).T
        e = y - h @ m
        return (m + gain @ e, p - gain @ h @ p), (e * cr.linalg.solve(s, e)).sum()

    return cr.scan(step, (cr.zeros(4, dtype=f.dtype), cr.eye(4, dtype=f.dtype)), ys)[1].sum()


def test_kalman_filter():
    f, ys = cr.eye(4, dtype=cr.float64) + T(4, 4, scale=0.05), T(20, 2)
    whole(grad(kalman), f, ys, tol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(16, 16, 16), (33, 20, 17), (50, 200, 50), (5, 400, 7), (128, 64, 40)])
def test_products_by_blas(dtype, shape):
    m, k, n = shape
    a, b = T(m, k, dtype=dtype), T(k, n, dtype=dtype)
    tol = 3e-3 if dtype is np.float32 else 1e-9
    whole(lambda a, b: (a @ b).tanh(), a, b, tol=tol)
    whole(lambda a, b: (a.T @ b.T.contiguous().T).tanh() if m == k else (b.T @ a.T).tanh(), a, b, tol=tol)
    whole(lambda a, b: (b.T @ a.T)[1:, ::2] * 2, a, b, tol=tol)
    whole(grad(lambda a, b: ((a @ b) ** 2).mean(), (0, 1)), a, b, tol=tol)
    whole(lambda a, b: cr.scan(lambda c, v: ((c @ b @ b.T).tanh(), c.sum()), a, None, length=3)[0], a, b * 0.1, tol=tol)


def test_identity_matrices_and_powers_of_two():
    x, w = T(9, 5), T(5)
    f = lambda w: ((x @ w) ** 3).sum()
    e = cr.explain(hessian(f), w)
    assert sum(n.op.name in ("matvec", "matmul") and n.outs[0].size == 45 for n in e.graph.nodes) == 0
    same(jit(hessian(f))(w), hessian(f)(w))
    g = cr.explain(lambda x: x * 2 * 3.7 * 4, w)
    assert [n.args[1] for n in g.graph.nodes][-1] == 2 * 3.7 * 4
    y = jit(lambda x: x * 2 * 3.7 * 4)(w)
    assert y.tolist() == (w * 2 * 3.7 * 4).tolist()
    h = cr.explain(lambda x: x * 0.1 * 0.3, w)
    assert len(h.graph.nodes) == 2  # this would round otherwise


def test_values_shared_by_several_results():
    def f(x, y):
        a = (x * y).exp().tanh()
        b = (a + x).sin() * y
        return a * b, b.exp(), (a * a).sum(0), a, b.sum()

    for shape in ((7,), (40, 50), (200, 300)):
        whole(f, T(*shape), T(*shape))
        whole(grad(lambda x, y: sum(v.sum() for v in f(x, y)), (0, 1)), T(*shape), T(*shape))


def test_what_reverse_mode_of_a_loop_keeps():
    w, xs = T(6, 6, scale=0.3), T(11, 6)
    f = lambda w, xs: (
        cr.scan(lambda h, x: ((w @ h + x).tanh(), (w @ h).sum()), cr.zeros(6, dtype=cr.float64), xs)[1] ** 2
    ).sum()
    e = cr.explain(grad(f), w, xs)
    back = [n for n in e.graph.nodes if n.op.name == "scan"][-1].kw["body"].graph
    assert [n.op.name for n in back.nodes].count("matvec") == 0  # no product of the way there is computed again
    cases = [
        (grad(f), (w, xs)),
        (grad(f, 1), (w, xs)),
        (grad(lambda w: (grad(f)(w, xs) ** 2).sum()), (w,)),
        (lambda w: jvp(lambda w: grad(f)(w, xs), (w,), (w,))[1], (w,)),
    ]
    for g, args in cases:
        same(jit(g)(*args), g(*args), 1e-8)
    for c in (3, "sqrt", "binomial"):
        k = lambda w, c=c: (
            cr.scan(lambda h, x: ((w @ h + x).tanh(), h), cr.zeros(6, dtype=cr.float64), xs, checkpoint=c)[1] ** 2
        ).sum()
        same(jit(grad(k))(w), grad(k)(w), 1e-8)
    same(
        jit(vmap(grad(f), (None, 0)))(w, cr.stack([xs, xs * 2])),
        vmap(grad(f), (None, 0))(w, cr.stack([xs, xs * 2])),
        1e-8,
    )


def test_large_examples_that_would_be_singular():
    a = T(90, 90)
    a = a @ a.T + 90 * cr.eye(90, dtype=cr.float64)
    f = lambda a: cr.linalg.solve(a, a[0]).sum() + cr.linalg.cholesky(a).sum()
    same(jit(f)(a), f(a))
    same(jit(grad(f))(a), grad(f)(a), 1e-7)
    big = T(100, 100)
    for f in (
        lambda x: x.std(),
        lambda x: x.sort(0)[0].sum(1),
        lambda x: (x[:, 3:] * x[:, :-3]).cumsum(1)[-1],
        lambda x: x.softmax(-1).T @ x,
    ):
        same(jit(f)(big), f(big))
        same(jit(grad(lambda x, f=f: f(x).square().sum()))(big), grad(lambda x, f=f: f(x).square().sum())(big), 1e-7)


def test_trees_in_and_out():
    t = {"b": (T(3), {"c": T(3)}), "a": [T(3), T(3)]}
    f = jit(lambda t: {"z": t["a"][0] + t["a"][1], "y": (t["b"][0] * t["b"][1]["c"], [t["a"][0]])})
    for _ in range(3):
        y = f(t)
        assert list(y) == ["z", "y"] and type(y["y"]) is tuple and type(y["y"][1]) is list
        same(y["y"][0], t["b"][0] * t["b"][1]["c"])
    del t["a"][1]
    with pytest.raises(IndexError):
        f(t)
    with pytest.raises(KeyError):
        f({"b": t["b"]})


def test_threads():
    f = jit(grad(lambda x: (x * 2).exp().sum() + (x @ x)))
    bad = []

    def work(i):
        x = cr.full((50,), i / 50, dtype=cr.float64)
        want = (x * 2).exp() * 2 + 2 * x
        for _ in range(200):
            if not f(x).allclose(want):
                bad.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad


def test_print(capsys):
    def f(x):
        cr.debug.print("x = {} twice {y}", x, y=x * 2)
        return x * x

    def lines(g):
        capsys.readouterr()
        g()
        return capsys.readouterr().out.splitlines()

    x = cr.tensor(1.5)
    one = ["x = 1.5 twice 3.0"]
    assert lines(lambda: f(x)) == one and lines(lambda: grad(f)(x)) == one
    j, g = jit(f), jit(grad(f))
    for _ in range(2):
        assert lines(lambda: j(x)) == one and lines(lambda: g(x)) == one and lines(lambda: grad(j)(x)) == one
    loop = jit(grad(lambda x: cr.fori_loop(0, 3, lambda i, c: (cr.debug.print("{}", i), c * c)[1], x)))
    for _ in range(2):
        assert lines(lambda: loop(x)) == ["0", "1", "2"]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "NAdam", "Adagrad", "RMSprop", "Adadelta", "Adamax", "Rprop"])
def test_optimisers(name):
    x, y = T(16, 4, dtype=np.float32), T(16, 1, dtype=np.float32)
    ends = []
    for compiled in (False, True):
        cr.manual_seed(0)
        model = cr.nn.Sequential(cr.nn.Linear(4, 8), cr.nn.Tanh(), cr.nn.Linear(8, 1))
        optimizer = getattr(cr.optim, name)(model.parameters(), lr=0.01)

        def step(x, y, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return loss

        s = jit(step) if compiled else step
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            losses = [float(s(x, y)) for _ in range(6)]
        ends.append((losses, [p.detach().numpy().copy() for p in model.parameters()]))
    same(ends[1], ends[0], 1e-4)
    assert sum(map(len, s._recordings.values())) <= 2


def test_donated_arguments():
    f = jit(lambda p, g: (p - 0.1 * g, p.sum()), donate=0)
    p, g = T(2000), T(2000)
    want = p.numpy() - 0.1 * g.numpy()
    held = p
    p, _ = f(p, g)
    same(p, cr.tensor(want))
    assert held.shape == (2000,) and g.sum() == g.sum()
    for use in (lambda x: x + 1, lambda x: x.sum(), lambda x: x.numpy(), lambda x: float(x[0]), lambda x: f(x, g)):
        with pytest.raises(cr.ChainruleError, match="donated"):
            use(held)
    same(f(p, g)[0], cr.tensor(want - 0.1 * g.numpy()))
    back = jit(lambda x: x, donate=0)  # what is returned is not given up
    x = T(5)
    assert back(x).tolist() == x.tolist()
    y = T(3)
    same(grad(jit(lambda y: (y * y).sum(), donate=0))(y), 2 * y)


def test_what_a_loop_carries_is_its_own():
    """What the first carry is computed from, and what reads it too, keeps its value while the loop writes."""

    def f(x, y):
        c = x.cos().exp()
        first = cr.scan(lambda a, v: ((a + v).sin(), ()), c, y)[0]
        second = cr.while_loop(lambda a: a.sum() < 40, lambda a: (a * 1.5 + c,), (c,))[0]
        return first, second, cr.scan(lambda a, v: ((a * v).sin(), c + a), c, y)[1], c

    x, y = cr.linspace(-1, 1, 20, dtype=cr.float64), cr.randn(6, 20, dtype=cr.float64)
    for got, want in zip(jit(f)(x, y), f(x, y), strict=True):
        assert got.allclose(want, rtol=1e-12, atol=1e-12)


def test_code_goes_with_the_function_that_it_is_of():
    """A process has room for some ten thousand pieces of code: what nobody can call any more is unmapped."""
    import gc

    from chainrule.kernels import compiler

    def some(n):
        for k in range(n):
            f = jit(grad(lambda x, k=k: (x * (k + 0.5)).sin().sum()))
            for v in (0.3, 0.4, 0.5):  # recorded, compiled, by the short way
                y = f(cr.tensor([v, 1.0]))
        del f
        gc.collect()
        return y, len(compiler._live)

    _, before = some(3)
    y, after = some(30)
    assert after <= before + 2 and y.isfinite().all()


@pytest.mark.parametrize("dtype", [cr.float32, cr.float64], ids=str)
@pytest.mark.parametrize("shape", [(8, 8), (5, 3), (2, 3, 5), (9, 7), (200, 4)])
def test_short_rows_with_broadcasting(shape: tuple[int, ...], dtype: Any) -> None:
    """Rows shorter than a vector: what is broadcast to them is laid out flat first."""
    x, row, column = (
        cr.randn(*shape, dtype=dtype),
        cr.randn(shape[-1], dtype=dtype),
        cr.randn(*shape[:-1], 1, dtype=dtype),
    )

    def f(x: Any, row: Any, column: Any) -> Any:
        y = (x * row).exp().tanh() + column.sin() * row
        return y, (x + column).sigmoid().tanh().exp(), y.sum(-1)

    for got, want in zip(jit(f)(x, row, column), f(x, row, column), strict=True):
        assert got.allclose(want, rtol=1e-5, atol=1e-6)
