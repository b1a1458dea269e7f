"""NumPy's door: what the transforms take and hand back, writes, nesting, errors, and what functions of tensors pay for it."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.ndimage

import chainrule
import chainrule.numpy as cnp
from chainrule.core.errors import ChainruleError, MissingRuleError
from chainrule.func import (
    elementwise_grad,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    value_and_grad,
    vjp,
    vmap,
)

X = np.array([0.3, -1.2, 2.0])


def test_arrays_in_arrays_out() -> None:
    f = lambda x: np.sum(np.sin(x) * x)
    want = np.cos(X) * X + np.sin(X)
    for got in (
        grad(f)(X),
        vjp(f, X)[1](1.0)[0],
        jacrev(f)(X),
        jacfwd(f)(X),
        grad_and_value(f)(X)[0],
        value_and_grad(f)(X)[1],
    ):
        assert type(got) is np.ndarray and got.dtype == np.float64
        np.testing.assert_allclose(got, want, rtol=1e-14)
    y, t = jvp(f, (X,), (np.ones(3),))
    assert isinstance(y, np.float64) and t == pytest.approx(want.sum())
    y, push = linearize(f, X)
    assert push(np.ones(3)) == pytest.approx(want.sum())
    np.testing.assert_allclose(hessian(f)(X), np.diag(2 * np.cos(X) - X * np.sin(X)), atol=1e-14)
    np.testing.assert_allclose(elementwise_grad(lambda x: np.sin(x) * x)(X), want)


def test_numbers_trees_and_mixtures() -> None:
    assert grad(lambda x: x**3)(2.0) == 12.0 and grad(grad(lambda x: x**3))(2.0) == 12.0
    assert isinstance(grad(lambda x: np.tanh(x))(0.5), np.float64)
    g = grad(lambda p: np.sum(p["a"] * p["b"][0]))({"a": X, "b": (X + 1,)})
    np.testing.assert_allclose(g["a"], X + 1)
    np.testing.assert_allclose(g["b"][0], X)
    a, b = grad(lambda x, y: np.sum(x * 2) + (y * 3).sum(), argnums=(0, 1))(X, chainrule.ones(2))
    assert type(a) is np.ndarray and isinstance(b, chainrule.Tensor)
    _, aux = grad(lambda x: (np.sum(x * x), {"n": np.sum(x)}), has_aux=True)(X)
    assert aux["n"] == pytest.approx(X.sum())
    np.testing.assert_allclose(vmap(lambda x, c: x * c, in_dims=(0, None))(X, 2.0), 2 * X)
    np.testing.assert_allclose(vmap(lambda x: np.array([1.0, 2.0]))(X), [[1.0, 2.0]] * 3)


def test_any_nesting() -> None:
    f = lambda x: np.sum(np.exp(x[:-1] * x[1:]))
    xs = np.stack([X, X * 0.5])
    np.testing.assert_allclose(vmap(grad(f))(xs), [grad(f)(x) for x in xs])
    np.testing.assert_allclose(grad(lambda m: np.sum(vmap(f)(m)))(xs), vmap(grad(f))(xs))
    np.testing.assert_allclose(jvp(vmap(grad(f)), (xs,), (xs,))[1], [hessian(f)(x) @ x for x in xs])
    np.testing.assert_allclose(vmap(hessian(f))(xs), [hessian(f)(x) for x in xs])
    third = grad(lambda x: grad(lambda y: np.sum(grad(f)(y) * x))(x)[0])(X)
    e = 1e-5
    second = lambda x: grad(lambda y: np.sum(grad(f)(y) * x))(x)[0]
    np.testing.assert_allclose(
        third, [(second(X + e * d) - second(X - e * d)) / (2 * e) for d in np.eye(3)], rtol=1e-6, atol=1e-8
    )


def test_writes_are_numpys() -> None:
    def f(x: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = x[1] ** 2
        view = y[1:]
        view += x[:1]
        back = y[::-1]
        back[0] *= 3.0
        np.multiply(y, 2.0, out=y)
        s = x[2]
        s += 100.0  # a number, not a view
        total = np.zeros(3)
        total += y  # the name gets a new value
        return np.sum(total * x) + s

    e = 1e-6
    np.testing.assert_allclose(grad(f)(X), [(f(X + e * d) - f(X - e * d)) / (2 * e) for d in np.eye(3)], rtol=1e-7)

    def writes(x: Any) -> Any:
        x *= 2
        return np.sum(x**2)

    ours, theirs = X.copy(), X.copy()
    writes(theirs)
    np.testing.assert_allclose(grad(writes)(ours), 8 * X)
    np.testing.assert_array_equal(ours, theirs)


class Holder:
    total: Any


def _attribute(x: Any) -> Any:
    h = Holder()
    h.total = np.ones((1, 3)).T.reshape(3)
    h.total *= x
    return h.total


def _item(x: Any) -> Any:
    d = {"k": np.zeros(3)}
    d["k"] += x
    d["k"] += x * x
    return d["k"]


def _outer_name(x: Any) -> Any:
    total = np.zeros(3)

    def add(v: Any) -> None:
        nonlocal total
        total += v

    add(x)
    add(x**2)
    return total


@pytest.mark.parametrize("f", [_attribute, _item, _outer_name])
def test_the_only_name_of_an_array_may_get_a_new_value(f: Any) -> None:
    e = 1e-6
    want = [(np.sum(np.sin(f(X + e * d))) - np.sum(np.sin(f(X - e * d)))) / (2 * e) for d in np.eye(3)]
    np.testing.assert_allclose(grad(lambda x: np.sum(np.sin(f(x))))(X), want, rtol=1e-7)


def _alias(w: Any, x: Any) -> Any:
    v = w
    w += x
    return v


def _alias_of_a_part(w: Any, x: Any) -> Any:
    v = w[1:]
    w += x
    return v


def _rows(w: Any, x: Any) -> Any:
    m = np.zeros((2, 3))
    for row in m:
        row += x
    return m


def _without_a_name(w: Any, x: Any) -> Any:
    np.add(w, x, out=w)
    return w


def _by_a_function(w: Any, x: Any) -> Any:
    buffer = np.zeros(3)
    _alias(buffer, x)
    return buffer


@pytest.mark.parametrize("f", [_alias, _alias_of_a_part, _rows, _without_a_name, _by_a_function])
@pytest.mark.parametrize("transform", [grad, vmap, lambda f: lambda x: jvp(f, (x,), (x,))])
def test_what_others_would_not_see_raises(f: Any, transform: Any) -> None:
    x = np.ones((2, 3)) if transform is vmap else X
    with pytest.raises(TypeError, match="cannot hold a derivative"):
        transform(lambda x: np.sum(f(np.zeros(3), x)))(x)


def test_constructors_that_take_values_one_by_one() -> None:
    f = cnp.vectorize(lambda a, b, c=2.0: a * b if a > b else c * a - b)
    l = lambda x: np.sum(np.sin(f(x, 0.4, c=x[0])))
    e = 1e-6
    np.testing.assert_allclose(grad(l)(X), [(l(X + e * d) - l(X - e * d)) / (2 * e) for d in np.eye(3)], rtol=1e-7)
    pair = cnp.vectorize(lambda a: (a, a * a))
    np.testing.assert_allclose(grad(lambda x: (pair(x)[0] * pair(x)[1]).sum())(X), 3 * X**2)
    np.testing.assert_array_equal(f(X, 0.4), np.vectorize(f.pyfunc)(X, 0.4))
    each = lambda x: sum((i + 1) * v**2 for (i,), v in cnp.ndenumerate(x))
    np.testing.assert_allclose(grad(each)(X), 2 * X * np.arange(1, 4))
    np.testing.assert_allclose(grad(lambda x: cnp.polynomial.polynomial.polyval(0.5, x))(X), [1, 0.5, 0.25])


def test_a_constant_that_is_written_to_later() -> None:
    c = np.ones(3)

    def f(x: Any) -> Any:
        y = np.sum(x * c)
        c[:] = 100.0
        return y

    np.testing.assert_array_equal(grad(f)(X), np.ones(3))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.sum(np.asarray(x)), "np.stack"),
        (lambda x: np.array([x[0], x[1]]).sum(), "like=x"),
        (lambda x: math.sin(x[0]), "np.sin for math.sin"),
        (lambda x: np.float64(x[0]), "np.stack"),
        (lambda x: np.sum(np.add(x, 1.0, out=np.zeros(3))), "empty_like"),
        (
            lambda x: scipy.linalg.solve(np.outer(x, x) + np.eye(3), x).sum(),
            "chainrule.scipy.linalg.solve has its derivative",
        ),
        (lambda x: scipy.ndimage.rotate(np.outer(x, x), 30.0).sum(), "scipy.ndimage.rotate .* SCIPY_ARRAY_API=1"),
        (lambda x: np.sum(np.add.at(np.zeros(3), [0], x[0])), "zeros_like"),
    ],
)
def test_what_would_lose_the_derivative_raises(f: Any, words: str) -> None:
    with pytest.raises((ChainruleError, TypeError, ValueError), match=words):
        grad(f)(X)


def test_an_ndarray_that_a_value_is_written_to() -> None:
    with pytest.raises(ValueError, match="sequence") as e:
        grad(lambda x: np.zeros(3).__setitem__(0, x[0]))(X)
    assert "np.zeros(shape, like=x)" in str(e.value.__cause__)


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ma.masked_array(X, X > 0), "masked"),
        (np.array([1.0, None], dtype=object), "Python objects"),
        (np.zeros(2, [("a", float)]), "structured"),
        (np.arange(3), "floating"),
        (np.array(["a"]), "no arithmetic"),
    ],
)
def test_arrays_that_have_no_derivative(x: Any, words: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=words):
        grad(lambda v: np.sum(v))(x)
    with (
        pytest.raises(TypeError, match=r"masked|objects|structured|matrix|arithmetic")
        if x.dtype != np.int64
        else np.errstate()
    ):
        grad(lambda v: np.sum(v * x[0] if x.dtype == np.int64 else v * x))(1.0)


def test_a_function_without_a_rule_is_named() -> None:
    from scipy.special import mathieu_a

    with pytest.raises(MissingRuleError, match="mathieu_a"):
        grad(lambda x: mathieu_a(1, x))(0.5)
    with pytest.raises((MissingRuleError, TypeError, ChainruleError), match=r"packbits|no derivative|one concrete"):
        vmap(lambda x: np.packbits(x))(np.ones((2, 8), np.uint8))


def test_tensors_in_numpy_functions() -> None:
    t = chainrule.tensor([1.0, 2.0], requires_grad=True)
    np.sum(np.sin(t) * np.ones(2)).backward()
    np.testing.assert_allclose(t.grad.numpy(), np.cos([1.0, 2.0]), rtol=1e-6)
    y = np.float64(2.0) * t
    assert isinstance(y, chainrule.Tensor) and y.dtype is chainrule.float32 and y.requires_grad
    assert isinstance(np.concatenate([t, t]), chainrule.Tensor) and isinstance(np.linalg.norm(t), chainrule.Tensor)
    g = grad(lambda x: np.sum(np.linalg.inv(x)))(chainrule.eye(2) * 2)
    assert isinstance(g, chainrule.Tensor)


def test_chainrule_numpy_has_the_constructors() -> None:
    def f(x: Any) -> Any:
        m = cnp.array([[x[0], 1.0], [x[1], x[2]]])
        out = cnp.zeros(2)
        out[0] = m[0, 0] * 2
        return cnp.sum(m @ m) + cnp.sum(out) + cnp.linalg.norm([x[0], x[1]]) + cnp.sum(cnp.r_[x, 1.0] ** 2)

    e = 1e-6
    np.testing.assert_allclose(grad(f)(X), [(f(X + e * d) - f(X - e * d)) / (2 * e) for d in np.eye(3)], rtol=1e-7)
    assert type(cnp.zeros(2)) is np.ndarray and type(f(X)) is np.float64


def test_scipy_takes_our_derivatives() -> None:
    from scipy import integrate, optimize

    f = lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
    np.testing.assert_allclose(optimize.minimize(f, np.zeros(3), jac=grad(f), method="BFGS").x, 1, rtol=1e-4)
    np.testing.assert_allclose(
        optimize.minimize(f, np.zeros(3), jac=grad(f), hess=hessian(f), method="trust-exact").x, 1, rtol=1e-3
    )
    r = lambda p: p**2 - np.array([1.0, 4.0])
    np.testing.assert_allclose(optimize.least_squares(r, np.ones(2), jac=jacfwd(r)).x, [1, 2])
    np.testing.assert_allclose(optimize.root(r, np.ones(2), jac=jacrev(r)).x, [1, 2])
    rate = lambda t, y: np.stack([y[1], -100 * y[1] - y[0]])
    s = integrate.solve_ivp(
        lambda t, y: np.array(rate(t, y)),
        (0, 1),
        [1.0, 0.0],
        method="Radau",
        jac=lambda t, y: jacfwd(lambda v: rate(t, v))(y),
    )
    assert s.success


def calls(f: Any) -> int:
    """How many Python functions are called."""
    count = 0

    def tracer(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    f()
    sys.setprofile(tracer)
    try:
        f()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (0, 5), (0, 0, 0)])
def test_a_mask_without_elements_fits_any_size(shape: tuple[int, ...]) -> None:
    x, mask = np.arange(12.0).reshape(3, 4), np.zeros(shape, bool)
    f = lambda x: (x[mask] ** 2).sum() + x.sum()
    try:
        f(x)
    except IndexError:
        with pytest.raises(IndexError, match="mask of shape"):
            grad(f)(x)
    else:
        np.testing.assert_array_equal(grad(f)(x), np.ones((3, 4)))


def test_names_of_numpy_hide_no_builtins() -> None:
    assert cnp.any(np.array([0, 1])) and cnp.sum([1, 2]) == 3  # the first look-up of `any` keeps it in the module
    assert float(grad(lambda x: cnp.sum(cnp.array([x[0], 2.0])))(X)[0]) == 1.0


def swapped(x: Any) -> Any:
    y = x * 1.0
    t = y[0]
    y[0] = y[1]
    y[1] = t  # a number is a value: the write before this left it as it was
    return y @ np.arange(1.0, 5.0)


def dots(x: Any) -> Any:
    y = x.copy()
    part, number = y[..., 1], y[2]
    part += 3  # an array without dimensions shows a part of y
    part *= x[3]
    number += 5  # a number does not
    corner = y.reshape(2, 2)[0, 0]
    corner *= 2
    return (y * np.arange(4.0)).sum() + number * corner


def in_turn(x: Any) -> Any:
    y = x * 1.0
    for v in y:
        y[2] = y[2] + v  # its own turn comes later, and sees this
    total = y.sum()
    kept = total
    total += 1
    (last,) = (y[3:4],)
    last += total
    return kept * total + y @ y


def crossed(x: Any) -> Any:
    return np.cross(x[:3], x[1:] ** 2) @ x[1:] + np.cross(x[:2], x[2:])


@pytest.mark.filterwarnings("ignore:.*2-dimensional vectors:DeprecationWarning")
@pytest.mark.parametrize("f", [swapped, dots, in_turn, crossed])
def test_numbers_are_values_and_parts_are_views(f: Any) -> None:
    x = np.array([1.0, 2.0, 3.0, 4.5])
    value, slope = jvp(f, (x,), (np.ones(4),))
    np.testing.assert_allclose(value, f(x), rtol=1e-14)
    want = np.array([(f(x + 1e-6 * d) - f(x - 1e-6 * d)) / 2e-6 for d in np.eye(4)])
    np.testing.assert_allclose(grad(f)(x), want, rtol=1e-6)
    np.testing.assert_allclose(slope, want.sum(), rtol=1e-6)
    np.testing.assert_allclose(vmap(f)(np.stack([x, x + 1])), [f(x), f(x + 1)], rtol=1e-14)


def test_branches_and_ranks_under_vmap() -> None:
    """What decides by values where it can does without where each example has its own."""
    x = np.array([[0.2, 0.7, 0.9], [0.6, 0.1, 0.5]])
    f = lambda x: np.piecewise(x, [x < 0.3, x > 0.55], [lambda v: v**2, np.sin, 5.0])
    np.testing.assert_allclose(vmap(f)(x), f(x), rtol=1e-14)
    one = lambda x: np.piecewise(x, x < 0.3, [np.exp, np.log])
    np.testing.assert_allclose(vmap(one)(x), np.where(x < 0.3, np.exp(x), np.log(x)), rtol=1e-14)
    s = lambda x: np.sum(f(x) * x)
    np.testing.assert_allclose(vmap(grad(s))(x), [grad(s)(v) for v in x], rtol=1e-14)
    with pytest.raises(ValueError, match="functions are expected"):
        vmap(lambda x: np.piecewise(x, [x < 0.3], [1.0, 2.0, 3.0]))(x)
    a, b = np.random.default_rng(0).uniform(size=(3, 4, 2)), np.arange(4.0)
    got = vmap(lambda a: np.linalg.lstsq(a, b, rcond=None))(a)
    for k in range(3):
        for u, v in zip(got, np.linalg.lstsq(a[k], b, rcond=None), strict=True):
            np.testing.assert_allclose(u[k], v, rtol=1e-10)


def test_compiled_functions_of_arrays() -> None:
    """jit: arrays in, arrays out, NumPy's promotion inside; before, around and inside of the transforms."""

    def f(x: Any) -> Any:
        assert type(x) is not chainrule.Tensor
        return np.sum(np.sin(x) * x.astype(float) * np.arange(x.size))

    compiled = chainrule.jit(f)
    for scale in (1.0, 2.0, 3.0):
        y = compiled(scale * X)
        assert isinstance(y, np.float64) and y == pytest.approx(f(scale * X), rel=1e-13)
    batch = np.stack([X, 2 * X])
    for made, plain in (
        (chainrule.jit(grad(f)), grad(f)), (grad(compiled), grad(f)), (chainrule.jit(hessian(f)), hessian(f)), (hessian(compiled), hessian(f)),
        (lambda x: jvp(compiled, (x,), (x,)), lambda x: jvp(f, (x,), (x,))),
    ):  # fmt: skip
        for x in (X, 2 * X):
            got, want = made(x), plain(x)
            assert type(got) is type(want)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(chainrule.jit(vmap(grad(f)))(batch), vmap(grad(f))(batch), rtol=1e-12)
    np.testing.assert_allclose(vmap(compiled)(batch), [f(X), f(2 * X)], rtol=1e-12)
    assert chainrule.jit(lambda x: x * np.arange(3))(X.astype(np.float32)).dtype == np.float64


def test_compiled_functions_of_trees_numbers_and_writes() -> None:
    h = chainrule.jit(lambda x, n, d: {"a": x * n, "b": d["w"][0] + x, "n": n, "t": d["t"]})
    t = chainrule.tensor([1.0])
    for n in (3, 4, 3):
        y = h(X, n, {"w": [X], "t": t})
        assert y["n"] == n and type(y["n"]) is int
        np.testing.assert_allclose(y["a"], X * n)
        np.testing.assert_allclose(y["b"], 2 * X)
    doubled = chainrule.jit(lambda s: s * 2)
    assert [doubled(np.float64(k)) for k in (1, 2)] == [2.0, 4.0] and isinstance(doubled(np.float64(1)), np.float64)

    def write(x: Any) -> None:
        x[0] = x[1] * 5

    w = chainrule.jit(write)
    for _ in range(2):
        x = X.copy()
        w(x)
        np.testing.assert_allclose(x, [-6.0, -1.2, 2.0])
    frozen = X.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        w(frozen)
    with pytest.raises(TypeError, match="masked array"):
        w(np.ma.masked_array(X))  # type: ignore[no-untyped-call]


def test_the_name_of_argnums_in_hips_autograd() -> None:
    f = lambda a, b: np.sum(a * np.sin(b))
    np.testing.assert_allclose(grad(f, argnum=1)(X, X), X * np.cos(X))
    assert value_and_grad(f, argnum=[1])(X, X)[0] == f(X, X)
    np.testing.assert_allclose(value_and_grad(f, argnum=[1, 0])(X, X)[1][1], np.sin(X))
    np.testing.assert_allclose(elementwise_grad(lambda a, b: a * np.sin(b), argnum=1)(X, X), X * np.cos(X))
    np.testing.assert_allclose(jacrev(lambda a, b: a * b, argnum=1)(X, X), np.diag(X))
    np.testing.assert_allclose(hessian(f, argnum=1)(X, X), np.diag(-X * np.sin(X)))


def test_values_on_which_all_examples_agree() -> None:
    """Under vmap a branch, a number or a mask that is the same for all examples is what it is for each of them; where they differ it is refused."""

    def f(x: Any) -> Any:
        y = np.where(x > 0, x, 0.0) if np.isfinite(np.sum(x)) else x
        keep = np.abs(x) < 10
        y[keep] *= 2
        return np.sum(y[keep] ** 2) * x[int(np.argmax(np.arange(3.0) + 0 * x))]

    batch = np.stack([X, 2 * X, X - 0.1])
    for made, plain in ((vmap(f), f), (vmap(grad(f)), grad(f)), (vmap(hessian(f)), hessian(f))):
        np.testing.assert_allclose(made(batch), [plain(x) for x in batch], rtol=1e-12)
    want = [grad(f)(x) for x in batch]
    np.testing.assert_allclose(grad(lambda b: np.sum(vmap(f)(b)))(batch), want, rtol=1e-12)
    np.testing.assert_allclose(vmap(vmap(grad(f)))(batch[None]), [want], rtol=1e-12)
    signs = np.stack([X, -X])
    for g in (
        lambda x: x if x[0] > 0 else -x,
        lambda x: x[x > 0].sum(),
        lambda x: x[int(x[0] > 0)],
    ):
        with pytest.raises(ChainruleError, match="one concrete value"):
            vmap(g)(signs)
        with pytest.raises(ChainruleError, match="one concrete value"):  # another call may differ
            chainrule.jit(vmap(g))(batch)


def test_memory_is_not_handed_on_without_the_tangent() -> None:
    f = lambda x: np.sum(np.from_dlpack(x) * x)
    for call in (lambda: jvp(f, (X,), (X,)), lambda: grad(f)(X), lambda: hessian(f)(X)):
        with pytest.raises(BufferError, match="lose the derivative"):
            call()
    g = lambda t: chainrule.from_dlpack(t) * t
    with pytest.raises(BufferError, match="tangent"):
        jvp(g, (chainrule.tensor(X),), (chainrule.tensor(X),))


def test_parts_of_the_namespace_by_name() -> None:
    """``from chainrule.numpy.linalg import solve`` is what chainrule.numpy.linalg.solve is; it was a second copy of NumPy's."""
    import chainrule.numpy.fft
    import chainrule.numpy.random
    from chainrule.numpy.linalg import norm, solve

    assert chainrule.numpy.random is np.random and chainrule.numpy.fft is cnp.fft
    a = np.eye(3) * 2
    np.testing.assert_allclose(grad(lambda x: np.sum(solve(a, x)))(X), [0.5] * 3)
    np.testing.assert_allclose(grad(lambda x: norm([x[0], x[1]]))(np.array([3.0, 4.0])), [0.6, 0.8])
    with pytest.raises(AttributeError):
        _ = cnp.__path__


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    ("f", "advice"),
    [
        (lambda v: np.ma.masked_array(v, mask=[0, 1, 0]).sum(), r"np\.ma holds values alone: write np\.where"),
        (lambda v: np.ma.sum(v), r"np\.ma holds values alone"),
        (lambda v: np.asmatrix(v), r"np\.matrix holds values alone: arrays multiply with @"),
        (lambda v: np.lib.stride_tricks.as_strided(v, (2, 2), (8, 8)), "sliding_window_view"),
        (lambda v: np.vectorize(lambda a: a)(v), r"chainrule\.numpy\.vectorize"),
    ],
)
def test_parts_of_numpy_that_hold_values_alone(f: Any, advice: str) -> None:
    with pytest.raises(ChainruleError, match=advice):
        grad(lambda v: np.sum(f(v)))(np.array([0.3, 0.7, 0.1]))


def test_rounding_a_number() -> None:
    """As of NumPy's numbers: `round` and the functions of math give whole numbers of Python's."""
    import math

    x = np.array([2.64, -0.4])
    f = lambda v: (round(v[0]), math.floor(v[1]), math.ceil(v[1]), math.trunc(v[0]))
    seen: list[Any] = []
    g = grad(lambda v: (seen.extend(f(v)), np.sum(v * v) + round(v[0], 1))[1])
    np.testing.assert_allclose(g(x), 2 * x)
    assert seen == list(f(x)) and all(type(s) is int for s in seen)
    assert jvp(lambda v: round(v[0], 1), (x,), (x,))[0] == 2.6
    with pytest.raises(TypeError, match="__round__"):
        grad(lambda v: np.sum(round(v)))(x)
