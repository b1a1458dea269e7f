"""Rules of batch, layer and group norm: every mask, saved statistics as outputs, every argument batched, levels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.errors import ChainruleError, EscapedError
from chainrule.func import grad, jvp, vjp, vmap

from .judge import array, case, gradients, judge, laws, mathematics, require, row, same, values

EPS = 1e-3
MASKS = [m for m in itertools.product((False, True), repeat=3) if any(m)]
mask_ids = pytest.mark.parametrize(
    "mask", MASKS, ids=lambda m: "".join("xwb"[i] if on else "-" for i, on in enumerate(m))
)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return array(*shape, seed=seed, low=0.5)


# -- batch norm -----------------------------------------------------------------------------------------------------------

SHAPES = [(4, 3), (3, 2, 4), (2, 3, 2, 2)]


@row("batch_norm")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(shape: tuple[int, ...], training: bool) -> None:
    c = shape[1]
    x, w, b = array(*shape), array(c, seed=1), array(c, seed=2)
    m_, v_ = array(c, seed=3), positive(c, seed=4)
    F = "F.batch_norm"

    def run(m, x, w, b):
        # Statistics that a mapped function would update must be batched themselves: in training there are none here.
        mu, var = (None, None) if training else (m.tensor(m_), m.tensor(v_))
        return m.nn.functional.batch_norm(x, mu, var, w, b, training=training, eps=EPS)

    judge(F, run, x, w, b, order=3)
    judge(F, lambda m, x: run(m, x, None, None), x)
    judge(F, lambda m, x, b: run(m, x, m.ones(c, dtype=m.float64), b), x, b)
    judge(F, lambda m, x, w: run(m, x, w, None), x, w)
    f = lambda m, x, w: m.batch_norm(x, w, None, m.tensor(m_), m.tensor(v_), training, 0.1, EPS, False)
    judge(F, f, x, w, vmap=not training)
    if not training:
        # The running statistics are inputs like others in evaluation.
        f = lambda m, x, w, b, mu, var: m.nn.functional.batch_norm(x, mu, var, w, b, eps=EPS)
        judge(F, f, x, w, b, m_, v_, oracle="value")


@row("batch_norm")
def test_batch_norm_updates_its_running_statistics() -> None:
    for momentum in (0.1, 0.7):

        def f(m, x, momentum=momentum):
            mean, var = m.zeros(3, dtype=m.float64), m.ones(3, dtype=m.float64)
            y = m.nn.functional.batch_norm(x, mean, var, training=True, momentum=momentum)
            return y, mean, var

        values(f, array(4, 3, 2))
    for transform in (lambda g, x: grad(lambda v: (g(v) ** 2).sum())(x), lambda g, x: jvp(g, (x,), (x,))):
        mean, var = cr.zeros(3, dtype=cr.float64), cr.ones(3, dtype=cr.float64)
        x = array(4, 3, 2)
        transform(lambda v, mean=mean, var=var: cr.nn.functional.batch_norm(v, mean, var, training=True), cr.tensor(x))
        same(mean.numpy(), 0.1 * x.mean((0, 2)), "running mean")
        same(var.numpy(), 0.9 + 0.1 * x.var((0, 2), ddof=1), "running variance")


def saved(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    axes = (0, *range(2, x.ndim))
    return x.mean(axes), 1 / np.sqrt(x.var(axes) + EPS)


@row("batch_norm", "vmap.batch_norm.input_gradient", "vmap.batch_norm.backward")
@mask_ids
@pytest.mark.parametrize("train", [True, False])
def test_batch_norm_backward(mask: tuple[bool, ...], train: bool) -> None:
    require("native_batch_norm_backward")
    x, g, w = array(3, 2, 4), array(3, 2, 4, seed=5), array(2, seed=1)
    mu, r = saved(x)
    rm, rv = array(2, seed=3), positive(2, seed=4)

    def f(m, g, x, w, mu, r, rm, rv):
        out = m.native_batch_norm_backward(g, x, w, rm, rv, mu, r, train, EPS, list(mask))
        assert m is not cr or [o is not None for o in out] == list(mask)
        return tuple(o for o, on in zip(out, mask, strict=True) if on)

    values(f, g, x, w, mu, r, rm, rv)
    mathematics(
        case("native_batch_norm_backward", lambda m, g, x, w: f(m, g, x, w, *map(m.tensor, (mu, r, rm, rv))), g, x, w)
    )
    without = lambda m, g, x: f(m, g, x, None, *map(m.tensor, (mu, r, rm, rv)))
    if not mask[1]:
        values(without, g, x)
        mathematics(case("native_batch_norm_backward", without, g, x))


@row("vmap.batch_norm")
@pytest.mark.parametrize("training", [True, False])
def test_vmap_batch_norm_over_every_combination(training: bool) -> None:
    shapes = [(3, 2, 4), (2,), (2,), (2,), (2,)]
    full = [array(2, *s, seed=k) if k < 4 else positive(2, *s, seed=k) for k, s in enumerate(shapes)]

    def f(x, w, b, mu, var):
        mu, var = mu * 1.0, var * 1.0
        y, m, r = cr.native_batch_norm(x, w, b, mu, var, training, 0.1, EPS)
        return (y, m, r, mu, var) if training else (y, mu, var)

    for picked in itertools.product((0, None), repeat=5):
        if all(d is None for d in picked):
            continue
        args = [cr.tensor(a if d == 0 else a[0]) for a, d in zip(full, picked, strict=True)]
        if training and picked[0] == 0 and None in picked[3:]:  # not those that are made inside, as those of `f`
            with pytest.raises(RuntimeError, match=r"running_(mean|var).*batched"):
                vmap(lambda *a: cr.native_batch_norm(*a, training, 0.1, EPS)[0], in_dims=picked)(*args)
        got = vmap(f, in_dims=picked)(*args)
        for i in range(2):
            each = f(*[a[i] if d == 0 else a for a, d in zip(args, picked, strict=True)])
            for y, e in zip(got, each, strict=True):
                same(y[i].numpy(), e.numpy(), f"batched {picked}")


@row("vmap.batch_norm")
def test_statistics_that_are_not_batched_refuse_an_update_that_is() -> None:
    x = cr.tensor(array(2, 3, 2))
    mean, var = cr.zeros(2, dtype=cr.float64), cr.ones(2, dtype=cr.float64)
    for f in (
        lambda x: cr.native_batch_norm(x, None, None, mean, var, True, 0.1, EPS)[0],
        lambda x: cr.nn.functional.batch_norm(x, mean, var, training=True),
    ):
        with pytest.raises(RuntimeError, match=r"vmap.*(running|from outside)"):
            vmap(f)(x)
    # In evaluation nothing is updated.
    assert vmap(lambda x: cr.nn.functional.batch_norm(x, mean, var))(x).shape == (2, 3, 2)


@row("vmap.batch_norm", "vmap.batch_norm.backward")
def test_per_example_gradients_of_batch_norm() -> None:
    x, w, b = cr.tensor(array(2, 3, 2, 4)), cr.tensor(array(2, seed=1)), cr.tensor(array(2, seed=2))
    loss = lambda x, w, b: (cr.native_batch_norm(x, w, b, None, None, True, 0.1, EPS)[0] ** 3).sum()
    every = grad(loss, argnums=(0, 1, 2))
    got = vmap(every, in_dims=(0, None, None))(x, w, b)
    for i in range(2):
        for a, e in zip(got, every(x[i], w, b), strict=True):
            same(a[i].numpy(), e.numpy(), "per example")


@row("vmap.batch_norm.functional")
@pytest.mark.parametrize("stats", [True, False])
def test_functional_batch_norm(stats: bool) -> None:
    require("_native_batch_norm_legit _native_batch_norm_legit_no_training")
    x, w, b = array(3, 2, 4), array(2, seed=1), array(2, seed=2)
    rm, rv = array(2, seed=3), positive(2, seed=4)
    if stats:

        def f(m, x, w, b):
            mu, var = m.tensor(rm), m.tensor(rv)
            # PyTorch's dispatcher gives an overload that writes to the two tensors it is handed.
            return m._native_batch_norm_legit(x, w, b, mu, var, True, 0.1, EPS)[0]

        judge("_native_batch_norm_legit", f, x, w, b, vmap=False)
        g = lambda m, x, w, b: m._native_batch_norm_legit_no_training(x, w, b, m.tensor(rm), m.tensor(rv), 0.1, EPS)[0]
        judge("_native_batch_norm_legit_no_training", g, x, w, b)
    else:
        f = lambda m, x, w, b: m._native_batch_norm_legit(x, w, b, True, 0.1, EPS)
        values(f, x, w, b)
        gradients(lambda m, x, w, b: f(m, x, w, b)[0], x, w, b)
        mathematics(case("_native_batch_norm_legit", f, x, w, b))


@row("vmap.batch_norm.accelerator")
@pytest.mark.parametrize("name", ["cudnn_batch_norm", "miopen_batch_norm"])
def test_entry_points_of_accelerators(name: str) -> None:
    require(name)
    x, w, b = array(3, 2, 4), array(2, seed=1), array(2, seed=2)

    def f(m, x, w, b):
        return getattr(cr, name)(x, w, b, None, None, True, 0.1, EPS)[:3]

    ts = [cr.tensor(a) for a in (x, w, b)]
    for a, e in zip(f(cr, *ts), cr.native_batch_norm(*ts, None, None, True, 0.1, EPS), strict=True):
        same(a.numpy(), e.numpy(), "the general rule")
    mathematics(case(name, f, x, w, b))


# -- layer norm -------------------------------------------------------------------------------------------------------------


@row("layer_norm")
@pytest.mark.parametrize("nd", [1, 2])
def test_layer_norm(nd: int) -> None:
    shape = (3, 2, 4)[3 - nd :]
    x, w, b = array(3, 2, 4), array(*shape, seed=1), array(*shape, seed=2)
    judge("F.layer_norm", lambda m, x, w, b: m.nn.functional.layer_norm(x, shape, w, b), x, w, b, order=3)
    judge("F.layer_norm", lambda m, x: m.nn.functional.layer_norm(x, shape), x)
    judge("F.layer_norm", lambda m, x, w: m.nn.functional.layer_norm(x, shape, w), x, w)
    judge("F.layer_norm", lambda m, x, b: m.nn.functional.layer_norm(x, shape, None, b, 1e-2), x, b)
    judge(
        "F.layer_norm", lambda m, x: m.nn.functional.layer_norm(x, (3,)), np.array([[2.0, 2.0, 2.0], [0.0, 0.0, 0.0]])
    )
    values(lambda m, x: m.nn.functional.layer_norm(x, (4,)), np.zeros((0, 4)))


@row("layer_norm")
@pytest.mark.parametrize("nd", [1, 2])
def test_native_layer_norm_with_statistics_as_outputs(nd: int) -> None:
    shape = (3, 2, 4)[3 - nd :]
    x, w, b = array(3, 2, 4), array(*shape, seed=1), array(*shape, seed=2)
    f = lambda m, x, w, b: m.native_layer_norm(x, shape, w, b, EPS)
    require("native_layer_norm")
    values(f, x, w, b)
    gradients(lambda m, x, w, b: f(m, x, w, b)[0], x, w, b)
    mathematics(case("native_layer_norm", f, x, w, b), order=3)


def layer_backward(mask: tuple[bool, ...], shape: tuple[int, ...]):
    def f(m, g, x, w, b, mu, r):
        out = m.native_layer_norm_backward(g, x, shape, mu, r, w, b, list(mask))
        assert m is not cr or [o is not None for o in out] == list(mask)
        return tuple(o for o, on in zip(out, mask, strict=True) if on)

    return f


@row("vmap.layer_norm.input_gradient", "vmap.layer_norm.backward", "layer_norm")
@mask_ids
def test_layer_norm_backward(mask: tuple[bool, ...]) -> None:
    require("native_layer_norm_backward")
    x, g, w, b = array(3, 4), array(3, 4, seed=5), array(4, seed=1), array(4, seed=2)
    mu = x.mean(-1, keepdims=True)
    r = 1 / np.sqrt(x.var(-1, keepdims=True) + EPS)
    f = layer_backward(mask, (4,))
    values(f, g, x, w, b, mu, r)
    mathematics(
        case(
            "native_layer_norm_backward",
            lambda m, g, x, w: f(m, g, x, w, m.tensor(b), *map(m.tensor, (mu, r))),
            g,
            x,
            w,
        )
    )


@row("vmap.layer_norm")
def test_vmap_layer_norm_of_any_argument() -> None:
    x, w, b = array(3, 4), array(4, seed=1), array(4, seed=2)
    for f in (
        lambda m, x, w, b: m.native_layer_norm(x, (4,), w, b, EPS),
        lambda m, x, w, b: m.nn.functional.layer_norm(x, (4,), w, b),
    ):
        # check_vmap goes through every subset of arguments and every position of the batch axis.
        laws.check_vmap(case("native_layer_norm", f, x, w, b), np.random.default_rng(0))
    laws.check_vmap(
        case("layer_norm", lambda m, w: m.nn.functional.layer_norm(m.tensor(x), (4,), w), w), np.random.default_rng(0)
    )
    laws.check_vmap(
        case("layer_norm", lambda m, b: m.nn.functional.layer_norm(m.tensor(x), (4,), None, b), b),
        np.random.default_rng(0),
    )


@row("vmap.layer_norm")
def test_layer_norm_names_the_argument_of_a_wrong_shape() -> None:
    x = cr.tensor(array(2, 3, 4))
    ones = cr.ones(3, dtype=cr.float64)
    for kw, what in (({"weight": ones}, "weight"), ({"bias": ones}, "bias")):
        with pytest.raises(RuntimeError, match=what):
            cr.nn.functional.layer_norm(x, (4,), **kw)
        with pytest.raises(RuntimeError, match=what):
            vmap(lambda v, kw=kw: cr.nn.functional.layer_norm(v, (4,), **kw))(x)
    with pytest.raises(RuntimeError, match="normalized_shape"):
        vmap(lambda v: cr.nn.functional.layer_norm(v, (5,)))(x)
    with pytest.raises(RuntimeError, match="normalized_shape"):
        cr.nn.functional.layer_norm(x, ())


# -- group norm ---------------------------------------------------------------------------------------------------------------


@row("group_norm")
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm(groups: int) -> None:
    w, b = array(4, seed=1), array(4, seed=2)
    for x in (array(2, 4, 3), array(2, 4, 2, 2)):
        f = lambda m, x, w, b: m.nn.functional.group_norm(x, groups, w, b)
        judge("F.group_norm", f, x, w, b, order=3 if x.ndim == 3 else 2)
    judge("F.group_norm", lambda m, x: m.nn.functional.group_norm(x, groups), array(2, 4, 3))
    # PyTorch has no reverse mode of a bias without a weight.
    judge(
        "F.group_norm",
        lambda m, x, b: m.nn.functional.group_norm(x, groups, None, b, 1e-2),
        array(2, 4, 3),
        b,
        oracle="value",
    )


@row("group_norm")
@pytest.mark.parametrize("groups", [1, 2])
def test_native_group_norm_with_statistics_as_outputs(groups: int) -> None:
    x, w, b = array(2, 4, 3), array(4, seed=1), array(4, seed=2)
    f = lambda m, x, w, b: m.native_group_norm(x, w, b, 2, 4, 3, groups, EPS)
    require("native_group_norm")
    values(f, x, w, b)
    gradients(lambda m, x, w, b: f(m, x, w, b)[0], x, w, b)
    mathematics(case("native_group_norm", f, x, w, b), order=3)


@row("vmap.group_norm")
def test_vmap_group_norm_of_any_argument() -> None:
    f = lambda m, x, w, b: m.native_group_norm(x, w, b, 2, 4, 3, 2, EPS)
    # A rule that is wrong in the same way with and without vmap is seen by differences.
    mathematics(case("native_group_norm", f, array(2, 4, 3), array(4, seed=1), array(4, seed=2)))
    g = lambda m, b: m.native_group_norm(m.tensor(array(2, 4, 3)), None, b, 2, 4, 3, 2, EPS)
    mathematics(case("native_group_norm", g, array(4, seed=2)))


@row("vmap.group_norm.input_gradient", "vmap.group_norm.backward", "group_norm")
@mask_ids
def test_group_norm_backward(mask: tuple[bool, ...]) -> None:
    require("native_group_norm_backward")
    x, g, w = array(2, 4, 3), array(2, 4, 3, seed=5), array(4, seed=1)
    h = x.reshape(2, 2, 6)
    mu, r = h.mean(-1), 1 / np.sqrt(h.var(-1) + EPS)

    def f(m, g, x, w, mu, r):
        out = m.native_group_norm_backward(g, x, mu, r, w, 2, 4, 3, 2, list(mask))
        assert m is not cr or [o is not None for o in out] == list(mask)
        return tuple(o for o, on in zip(out, mask, strict=True) if on)

    values(f, g, x, w, mu, r)
    mathematics(case("native_group_norm_backward", f, g, x, w, mu, r))


# -- levels ---------------------------------------------------------------------------------------------------------------------


@row("vmap.escaped")
def test_a_batched_tensor_that_escapes_raises() -> None:
    kept = []

    def leak(v):
        kept.append(v * 2)
        kept.append(v)
        return v.sum()

    x = array(3, 2)
    same(vmap(leak)(cr.tensor(x)).numpy(), x.sum(1), "what leaks changes no result")
    for t in kept:
        for use in (
            lambda t: t + 1,
            lambda t: t.sum(),
            lambda t: cr.cat([t, t]),
            lambda t: cr.native_layer_norm(t, (2,), None, None, EPS),
            lambda t: float(t[0]),
        ):
            with pytest.raises(EscapedError, match="vmap"):
                use(t)
        with pytest.raises(ChainruleError, match="vmap"):
            t.numpy()
    # The same for the other transforms, and inside a later one.
    same(grad(leak)(cr.tensor(x)).numpy(), np.ones((3, 2)), "nor a gradient")
    with pytest.raises(EscapedError):
        kept[-2] + kept[-1]
    with pytest.raises(EscapedError):
        vmap(lambda v: v + kept[0])(cr.tensor(array(3, 2)))


@row("vmap.levels")
def test_levels_unwrap_in_the_right_order() -> None:
    x, y = array(3, 2), array(4, 2, seed=1)
    f = lambda a, b: (a * b.sin()).sum() * a
    inner = vmap(f, in_dims=(None, 0))
    got = vmap(inner, in_dims=(0, None))(cr.tensor(x), cr.tensor(y)).numpy()
    want = np.stack([np.stack([(a * np.sin(b)).sum() * a for b in y]) for a in x])
    same(got, want, "vmap of vmap")
    got = vmap(vmap(f, in_dims=(0, None)), in_dims=(None, 0), out_dims=1)(cr.tensor(x), cr.tensor(y)).numpy()
    same(got, want, "vmap of vmap, the other way")

    loss = lambda a, b: ((a * b) ** 3).sum()
    each = np.stack([3 * (a * y[0]) ** 2 * y[0] for a in x])
    same(vmap(grad(loss), in_dims=(0, None))(cr.tensor(x), cr.tensor(y[0])).numpy(), each, "vmap of grad")
    whole = grad(lambda a, b: vmap(loss, in_dims=(0, None))(a, b).sum())
    same(whole(cr.tensor(x), cr.tensor(y[0])).numpy(), each, "grad of vmap")
    both = vmap(grad(lambda a: vmap(grad(loss), in_dims=(None, 0))(a, cr.tensor(y)).sum()))(cr.tensor(x)).numpy()
    same(both, np.stack([(6 * a * y**3).sum(0) for a in x]), "vmap of grad of vmap of grad")


@row("vmap.levels")
def test_levels_around_a_norm() -> None:
    x, w = cr.tensor(array(3, 2, 4)), cr.tensor(array(4, seed=1))
    f = lambda v, w: cr.nn.functional.layer_norm(v, (4,), w)
    same(vmap(vmap(f, in_dims=(0, None)), in_dims=(0, None))(x, w).numpy(), f(x, w).numpy(), "vmap of vmap")
    g = lambda v, w: grad(lambda v: (f(v, w) ** 3).sum())(v)
    same(vmap(g, in_dims=(0, None))(x, w).numpy(), g(x, w).numpy(), "vmap of grad")
    t = jvp(lambda v: vmap(g, in_dims=(0, None))(v, w), (x,), (x,))[1]
    same(t.numpy(), jvp(lambda v: g(v, w), (x,), (x,))[1].numpy(), "jvp of vmap of grad")
    hess = vmap(vmap(cr.func.hessian(lambda v: (f(v, w) ** 3).sum())))(x)
    one = cr.func.hessian(lambda v: (f(v, w) ** 3).sum())(x[1][0])
    same(hess[1][0].numpy(), one.numpy(), "vmap of hessian")
    y, pull = vjp(lambda v: vmap(f, in_dims=(0, None))(v, w), x)
    assert y.shape == x.shape
    same(pull(y)[0].numpy(), vjp(lambda v: f(v, w), x)[1](y)[0].numpy(), "vjp of vmap")
