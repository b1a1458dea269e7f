"""Small arrays inside a single gradient go a shorter way (interop/numpy/direct.py, core/short.py): the same results, and everything else still works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule
import chainrule.numpy as cnp
from chainrule.core import steps
from chainrule.core.op import OPS
from chainrule.core.short import Lean, short_rule
from chainrule.core.tensor import Tensor
from chainrule.func import grad, hessian, jvp, vjp, vmap
from chainrule.interop.numpy.direct import of_one, of_two
from chainrule.interop.numpy.ufuncs import _DIRECT

RNG = np.random.default_rng(0)
X, W = RNG.uniform(0.2, 0.8, (3, 4)), RNG.uniform(0.2, 0.8, (4, 4))


def ten_calls(x: Any) -> Any:
    h = np.tanh(np.dot(np.sin(x), W))
    h = np.multiply(np.exp(h), x)
    return np.sum(np.sqrt(np.add(np.log1p(np.square(h)), 1.0)))


def differences(f: Any, x: Any, e: float = 1e-6) -> np.ndarray:
    eye = np.eye(x.size).reshape(x.size, *x.shape)
    return np.array([(f(x + e * d) - f(x - e * d)) / (2 * e) for d in eye]).reshape(x.shape)


def long_way(f: Any) -> Any:
    """What a call gives where no array is small."""

    def run(*args: Any) -> Any:
        from chainrule.interop.numpy import direct

        with pytest.MonkeyPatch.context() as m:
            m.setattr(steps, "SMALL", 0)
            m.setattr(direct, "SMALL", 0)
            return f(*args)

    return run


def test_the_short_way_is_gone_and_is_right() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = np.sin(x)
        seen.append(y._level is not None and type(y._node) is Lean)
        return ten_calls(x)

    np.testing.assert_allclose(grad(f)(X), differences(ten_calls, X), rtol=1e-6)
    assert seen == [True]
    np.testing.assert_array_equal(grad(ten_calls)(X), long_way(grad(ten_calls))(X))
    assert grad(ten_calls)(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(grad(lambda x: np.sin(x) * 2)(np.float64(0.3)), 2 * np.cos(0.3))


@pytest.mark.parametrize("name", sorted(u.__name__ for u in _DIRECT))
def test_each_ufunc(name: str) -> None:
    u = getattr(np, name)
    programs = (
        [lambda x: np.sum(u(x) ** 2)]
        if u.nin == 1
        else [
            lambda x: np.sum(u(x, x * x) ** 2),
            lambda x: np.sum(u(x, 1.5) ** 2),
            lambda x: np.sum(u(2, x) ** 2),
            lambda x: np.sum(u(x, W[:3]) ** 2),
            lambda x: np.sum(u(x, x[:1]) ** 2),
            lambda x: np.sum(u(W[0], x[:, :1]) ** 2),
        ]
    )
    x = X + 1 if name == "arccosh" else X
    for f in programs:
        np.testing.assert_allclose(grad(f)(x), differences(f, x), rtol=1e-5, atol=1e-8)
        np.testing.assert_array_equal(grad(f)(x), long_way(grad(f))(x))
        np.testing.assert_allclose(jvp(f, (x,), (x,))[1], np.sum(grad(f)(x) * x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(vmap(grad(f))(np.stack([x, x]))[1], grad(f)(x), rtol=1e-12)


def test_every_order() -> None:
    x = X[0, :3]
    f = lambda x: np.sum(np.exp(np.sin(x) * x) * np.log1p(x))
    np.testing.assert_allclose(
        hessian(f)(x), np.stack([differences(lambda y, i=i: grad(f)(y)[i], x) for i in range(3)]), rtol=1e-5
    )
    np.testing.assert_allclose(grad(lambda x: np.sum(grad(f)(x)))(x), hessian(f)(x).sum(0), rtol=1e-9)
    pull = vjp(lambda x: np.sin(x) * x, x)[1]
    np.testing.assert_allclose(vmap(pull)(np.eye(3))[0], np.diag(np.cos(x) * x + np.sin(x)), rtol=1e-12)
    np.testing.assert_array_equal(pull(np.ones(3))[0], pull(np.ones(3))[0])  # once more through the same tape


def test_writes_leave_what_was_kept_alone() -> None:
    w = W[:3].copy()

    def f(x: Any) -> Any:
        y = x * 1.0
        z = np.sin(y) * w  # keeps y
        y[0] = 7.0
        y += 1.0
        w[...] = 0.0  # a constant that the caller's function writes to
        return np.sum(z) + np.sum(y * y)

    before = w.copy()
    got = grad(f)(X)
    want = np.cos(X) * before + 2 * (X + 1)
    want[0] = np.cos(X[0]) * before[0]
    np.testing.assert_allclose(got, want, rtol=1e-12)

    def g(x: Any) -> Any:
        y = np.exp(x)  # keeps its own result
        c = cnp.stop_gradient(y)
        c[...] = 0.0
        return np.sum(y)

    np.testing.assert_allclose(grad(g)(X), np.exp(X), rtol=1e-12)


def test_modes_hooks_and_graphs() -> None:
    x = chainrule.tensor(X, requires_grad=True)
    y = np.sin(x) * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(1))
    np.sum(y).backward(retain_graph=True)
    np.sum(y).backward()
    np.testing.assert_allclose(x.grad.numpy(), 4 * np.cos(X), rtol=1e-12)
    assert len(seen) == 2
    with chainrule.no_grad():
        assert not np.sin(x).requires_grad

    def f(x: Any) -> Any:
        with chainrule.no_grad():
            c = np.exp(x)
        return np.sum(c * x)

    np.testing.assert_allclose(grad(f)(X), np.exp(X), rtol=1e-12)
    kept: list[Any] = []
    grad(lambda x: (kept.append(np.sin(x)), np.sum(x))[1])(X)
    with pytest.raises(RuntimeError, match="already returned"):
        np.cos(kept[0])


def test_a_rule_in_the_place_of_another_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS["sin"]
    monkeypatch.setattr(op, "pull_rules", [lambda t, y, x: t * 3])
    monkeypatch.setattr(op, "_keeps", {})
    monkeypatch.setattr(op, "keep_one", None)
    np.testing.assert_array_equal(grad(lambda x: np.sum(np.sin(x)))(X), np.full(X.shape, 3.0))
    g = grad(lambda x: x.sin().sum())(chainrule.tensor(X))
    np.testing.assert_array_equal(g.numpy(), np.full(X.shape, 3.0))


def test_what_has_no_place_in_straight_line_code() -> None:
    assert of_one(OPS["relu"]) is None or short_rule(OPS["relu"])[2] is not None
    assert of_two(OPS["pow"]) is None  # its rule asks where the base is zero
    assert short_rule(OPS["maximum"])[2] is None  # of two arguments: not on nodes of one
    node = Lean(OPS["sin"], (X,), None, (None,), (None,))
    assert isinstance(node.args[0], Tensor) and node.y is None
    node.release()
    assert node.args is None


PRODUCTS: list[Any] = [
    lambda x: np.sum(np.dot(x, W)),
    lambda x: np.sum(np.exp(np.dot(W[:3].T, x)) * 2.0),
    lambda x: np.sum(np.dot(np.sin(x), x.T) ** 2),
    lambda x: np.sum(np.dot(np.dot(x, W), np.dot(x, W).T * x[:, 0])) * np.sum(x),
    lambda x: np.sum(1.0 - np.sum(x) * np.sum(np.sum(x) + x)),
]


@pytest.mark.parametrize("f", PRODUCTS)
def test_products_and_sums(f: Any) -> None:
    """Rules that are written by hand for small arrays give what the ops' rules give."""
    g = grad(f)
    np.testing.assert_allclose(g(X), differences(f, X), rtol=1e-5)
    np.testing.assert_allclose(g(X), long_way(g)(X), rtol=1e-13)
    assert g(X.astype(np.float32)).dtype == np.float32
    eye = np.eye(12).reshape(12, 3, 4)
    np.testing.assert_allclose(
        [np.sum(jvp(g, (X,), (d,))[1]) for d in eye], differences(lambda x: np.sum(g(x)), X).reshape(-1), rtol=1e-5
    )
    np.testing.assert_allclose(vmap(g)(np.stack([X, X]))[1], g(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["matmul", "sum"])
def test_a_rule_in_the_place_of_one_written_by_hand_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    op = OPS[name]
    f = lambda x: np.sum(np.dot(x, W))
    want = grad(f)(X)
    assert op.straight[0] is op.pull_rules
    rules = [lambda *args, r=r, **kw: r(*args, **kw) * 3 for r in op.pull_rules]
    monkeypatch.setattr(op, "pull_rules", rules)
    monkeypatch.setattr(op, "_keeps", {})
    np.testing.assert_array_equal(grad(f)(X), want * 3)


def test_values_do_not_leave_with_their_derivative_lost() -> None:
    """item(), tolist(), tobytes() and np.save hand the bare numbers on: refused where somebody differentiates, as np.asarray is."""
    import io

    x = np.array([1.0, 2.0])
    for leave in (
        lambda v: v[0].item(),
        lambda v: v.tolist()[0],
        lambda v: len(v.tobytes()),
        lambda v: np.save(io.BytesIO(), v) or 1.0,
        lambda v: np.savetxt(io.StringIO(), v) or 1.0,
        lambda v: np.savez(io.BytesIO(), v=v) or 1.0,
    ):
        f = lambda v, leave=leave: leave(v) * v.sum()
        for of in (lambda: grad(f)(x), lambda: jvp(f, (x,), (x,))):  # noqa: B023
            with pytest.raises(chainrule.ChainruleError, match="lose the derivative"):
                of()
        g = grad(lambda v, leave=leave: leave(cnp.stop_gradient(v)) * v.sum())(x)
        assert g.shape == x.shape and g[0] == g[1]
    t = chainrule.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(chainrule.ChainruleError, match="detach"):  # as PyTorch refuses it
        np.save(io.BytesIO(), t)
    assert t.tolist() == [1.0, 2.0] and t[0].item() == 1.0  # as PyTorch allows it
    seen = []
    grad(lambda v: seen.append(f"{v[0]:.2f} {v.astype(int).tolist()}") or v.sum())(x)
    assert seen == ["1.00 [1, 2]"]


def test_a_walk_over_arrays_meets_all_kinds_of_nodes() -> None:
    """Several ways to one node, shapes that are summed back, writes to the argument, several results, arrays that do not fit."""

    def f(x: Any) -> Any:
        a = np.sin(x)
        b = a * x + a / 2.0 + x * np.array([1.0, 2.0, 3.0, 4.0])  # one node by three ways
        s = np.linalg.svd(b @ b.T + np.eye(3))[1]
        c = np.add(a, np.sum(a)) * a  # a 0-d cotangent, and one that is summed back
        return np.sum(np.tanh(c)) + np.sum(s) + np.sum(np.maximum(b, 0.5) ** 2)

    np.testing.assert_allclose(grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(grad(lambda x: np.sum(grad(f)(x) ** 2))(X), grad(lambda x: (grad(f)(x) ** 2).sum())(X))

    def writes(x: Any) -> Any:
        x[0] = np.sin(x[0]) * x[1]
        return np.sum(x * x)

    a, b = X.copy(), X.copy()
    value = writes(b)
    g = grad(writes)(a)
    np.testing.assert_array_equal(a, b)  # what is written shows outside, as without the transform
    np.testing.assert_allclose(g, differences(lambda v: writes(v.copy()), X.copy()), rtol=1e-6)
    assert np.isclose(value, (b * b).sum())
    c = X.copy()
    c.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        grad(writes)(c)
    assert (grad(lambda x: 3.0)(X) == 0).all() and (grad(lambda x: np.sum(x))(X.astype(np.float32))).dtype == np.float32
    with pytest.raises(RuntimeError, match="scalar"):
        grad(np.sin)(X)


def test_a_library_that_ends_in_float_is_named() -> None:
    """scikit-learn's metrics return Python floats: the message names the metric and what to ask it for."""
    code = "def mean_error(y):\n    return float(y.sum())\n"
    names: dict[str, Any] = {"__name__": "sklearn.metrics._regression"}
    exec(compile(code, "<metric>", "exec"), names)
    x = np.array([1.0, 2.0])
    for of in (lambda: grad(names["mean_error"])(x), lambda: vmap(names["mean_error"])(np.stack([x, 2 * x]))):
        with pytest.raises(
            chainrule.ChainruleError, match=r"^sklearn\.metrics\.mean_error makes .* multioutput='raw_values'"
        ):
            of()
    with pytest.raises(chainrule.ChainruleError, match=r"^float\(x\) of an array"):
        grad(lambda v: float(v.sum()))(x)


def test_jit_takes_arrays_as_they_are() -> None:
    """A compiled function of small arrays is called with the arrays themselves: other shapes, types, layouts and constants are noticed, numbers are NumPy's."""
    scale = 2.0

    def f(x: Any, y: Any) -> Any:
        return {"sum": np.sum(x * y) * scale, "both": (x + y, np.sin(x) @ y)}

    g = chainrule.jit(f)
    a, b = np.ascontiguousarray(W), np.ascontiguousarray(W.T)

    def check(x: Any, y: Any) -> None:
        got, want = g(x, y), f(x, y)
        assert type(got["sum"]) is type(want["sum"]) and type(got["both"][0]) is np.ndarray
        np.testing.assert_allclose(got["sum"], want["sum"], rtol=1e-6)
        for p, q in zip(got["both"], want["both"], strict=True):
            assert p.dtype == q.dtype and p.flags.owndata
            np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-12)

    for _ in range(4):
        check(a, b)
    assert type(g._fast).__name__ == "builtin_function_or_method"  # machine code, with nothing of Python before it
    before = a.copy()
    g(a, b)["both"][0][...] = 7.0  # what comes back is the caller's
    np.testing.assert_array_equal(a, before)
    check(a[:2, :2], b[:2, :2])
    check(a.astype(np.float32), b.astype(np.float32))
    check(a.T, b)
    check(a, b)
    a[0] = 3.0
    check(a, b)
    scale = 5.0
    check(a, b)
    assert isinstance(g(chainrule.tensor(a), chainrule.tensor(b))["sum"], Tensor)
    np.testing.assert_allclose(grad(lambda x: g(x, b)["sum"])(a), 5.0 * b)
    np.testing.assert_allclose(
        vmap(lambda x: g(x, b)["sum"])(np.stack([a, 2 * a])), [g(a, b)["sum"], 2 * g(a, b)["sum"]]
    )


def test_jit_of_a_chain_that_reads_each_value_several_times() -> None:
    """Newton's iteration reads its value three times a step: under jit the sum at its end took time that tripled with every step."""

    def f(x: Any) -> Any:
        y = np.ones_like(x)
        for _ in range(14):
            y -= (y * y - x) / (2 * y)
        return np.sum(y)

    x = np.array([0.3, 0.5, 0.7, 0.2])
    np.testing.assert_allclose(chainrule.jit(f)(x), np.sum(np.sqrt(x)), rtol=1e-14)
    np.testing.assert_allclose(chainrule.jit(grad(f))(x), 0.5 / np.sqrt(x), rtol=1e-12)
