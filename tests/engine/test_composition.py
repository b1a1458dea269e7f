"""Where features meet: leaves, grad mode, checkpoints, writes, hooks, Functions and custom ops inside and around transforms."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import func
from chainrule.autograd import Function
from chainrule.core.errors import ChainruleError
from chainrule.utils.checkpoint import checkpoint, checkpoint_sequential, set_checkpoint_early_stop

X = cr.tensor([2.0, 3.0], dtype=cr.float64)
BATCH = cr.tensor([[2.0, 3.0], [0.5, -1.0], [1.5, 0.25]], dtype=cr.float64)


def ones(grad: bool = True) -> Any:
    return cr.ones(2, dtype=cr.float64, requires_grad=grad)


def same(a: Any, b: Any) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy() if isinstance(b, cr.Tensor) else b, 1e-10, 1e-12)


# Every way to differentiate a function of a vector to a number, as a matrix or a vector of results.
MODES: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f(X),
    "grad": lambda f: func.grad(f)(X),
    "vjp": lambda f: func.vjp(f, X)[1](cr.tensor(2.0, dtype=cr.float64))[0],
    "jvp": lambda f: func.jvp(f, (X,), (X,))[1],
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "linearize": lambda f: func.linearize(f, X)[1](X),
    "backward": lambda f: _backward(f),
    "reverse over reverse": lambda f: func.jacrev(func.jacrev(f))(X),
    "forward over reverse": lambda f: func.jacfwd(func.jacrev(f))(X),
    "reverse over forward": lambda f: func.jacrev(func.jacfwd(f))(X),
    "forward over forward": lambda f: func.jacfwd(func.jacfwd(f))(X),
    "create_graph": lambda f: _twice(f),
    "vmap": lambda f: func.vmap(f)(BATCH),
    "vmap of grad": lambda f: func.vmap(func.grad(f))(BATCH),
    "grad of vmap": lambda f: func.grad(lambda b: (func.vmap(f)(b) ** 2).sum())(BATCH),
    "jvp of vmap": lambda f: func.jvp(func.vmap(f), (BATCH,), (BATCH,))[1],
    "backward of vmap": lambda f: _backward(lambda b: (func.vmap(f)(b) ** 2).sum(), BATCH),
}


def _backward(f: Any, x: Any = X) -> Any:
    x = x.clone().requires_grad_()
    f(x * 1).backward()
    return x.grad


def _twice(f: Any) -> Any:
    x = X.clone().requires_grad_()
    (g,) = cr.autograd.grad(f(x * 1), x, create_graph=True)
    return cr.autograd.grad((g**2).sum(), x)[0]


def agree(f: Any, plain: Any, modes: Any = MODES) -> None:
    for name in modes:
        try:
            same(MODES[name](f), MODES[name](plain))
        except AssertionError as e:
            raise AssertionError(f"{name}: {e}") from None


# -- leaves made inside -----------------------------------------------------------------------------------------------


def test_a_leaf_made_inside_is_a_constant_to_the_transforms_around() -> None:
    agree(lambda x: (x * ones() * x).sum(), lambda x: (x * x).sum())


def test_a_module_built_inside() -> None:
    def f(x: Any) -> Any:
        layer = cr.nn.Linear(2, 1, dtype=cr.float64)
        with cr.no_grad():
            layer.weight.fill_(0.5)
            layer.bias.fill_(1.0)
        return (layer(x.sin()) ** 2).sum()

    agree(f, lambda x: ((x.sin() * 0.5).sum() + 1) ** 2)


def test_backward_inside_reaches_the_leaf_and_the_transform_goes_on() -> None:
    def f(x: Any) -> Any:
        w = ones()
        (w * w * x.detach()).sum().backward()
        return (x * x * w.grad).sum()

    agree(f, lambda x: (x * x * 2 * x.detach()).sum())


def test_create_graph_inside_is_seen_by_the_transform() -> None:
    def f(x: Any) -> Any:
        w = ones()
        (g,) = cr.autograd.grad((w * w * x.exp()).sum(), w, create_graph=True)
        return (g * x).sum()

    agree(f, lambda x: (2 * x.exp() * x).sum())


def test_without_create_graph_an_inner_gradient_is_a_constant() -> None:
    def f(x: Any) -> Any:
        w = ones()
        (g,) = cr.autograd.grad((w * x).sum(), w)
        return (g * x).sum()

    same(func.grad(f)(X), X)


def test_a_leaf_that_outlives_the_transform_is_an_ordinary_leaf() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(ones())
        return (x * kept[-1]).sum()

    func.grad(f)(X)
    outside = ones()
    (kept[0] * outside * 3).sum().backward()
    same(kept[0].grad, [3.0, 3.0])
    same(outside.grad, [3.0, 3.0])


def test_a_result_of_vmap_does_not_require_grad_by_a_leaf_inside() -> None:
    y = func.vmap(lambda x: x * ones())(BATCH)
    assert not y.requires_grad
    same(y, BATCH)


# -- grad mode --------------------------------------------------------------------------------------------------------


def test_no_grad_cuts_the_levels_around_it_and_not_those_inside() -> None:
    def f(x: Any) -> Any:
        with cr.no_grad():
            g, v = func.grad_and_value(lambda y: (y**2).sum())(x)
        same(g, 2 * x.detach())
        return (x**3).sum() - v - g.sum()

    same(func.grad(f)(X), 3 * X**2)
    x = X.clone().requires_grad_()
    f(x).backward()
    same(x.grad, 3 * X**2)


def test_enable_grad_takes_back_what_was_cut_since_the_transform_began() -> None:
    def f(x: Any) -> Any:
        with cr.no_grad():
            a = x**2
            with cr.enable_grad():
                b = x**3
        return (a + b).sum()

    same(func.grad(f)(X), 3 * X**2)

    def g(x: Any) -> Any:
        with cr.no_grad():

            def inner(y: Any) -> Any:
                with cr.enable_grad():
                    return (x * y**2).sum()

            a = func.grad(inner)(x)  # 2 x**2, a constant for the level outside of no_grad
        return (x**3 - a).sum()

    same(func.grad(g)(X), 3 * X**2)


def test_forward_mode_is_not_concerned_by_no_grad_but_by_inference_mode() -> None:
    def f(mode: Any) -> Any:
        def g(x: Any) -> Any:
            with mode():
                c = x**2
            return x - c

        return func.jvp(g, (X,), (ones(False),))[1]

    same(f(cr.no_grad), 1 - 2 * X)
    same(f(cr.inference_mode), [1.0, 1.0])


@pytest.mark.parametrize("mode", [cr.no_grad, cr.enable_grad, cr.inference_mode])
def test_decorators_with_and_without_parentheses(mode: Any) -> None:
    @mode
    def f(x: Any) -> Any:
        return x * 2

    @mode()
    def g(x: Any) -> Any:
        return x * 2

    on = mode is cr.enable_grad
    with cr.set_grad_enabled(not on):
        assert f(ones()).requires_grad is g(ones()).requires_grad is on
        assert cr.is_grad_enabled() is not on


def test_a_decorated_generator_leaves_the_mode_alone_while_it_waits() -> None:
    @cr.no_grad()
    def f() -> Any:
        seen = []
        try:
            while True:
                seen.append((cr.is_grad_enabled(), (yield len(seen))))
        finally:
            closed.append(cr.is_grad_enabled())

    closed: list[bool] = []
    g = f()
    assert next(g) == 0 and cr.is_grad_enabled()
    assert g.send("a") == 1 and cr.is_grad_enabled()
    g.close()
    assert closed == [False]


def test_set_grad_enabled_as_a_function_statement_and_decorator() -> None:
    cr.set_grad_enabled(False)
    assert not cr.is_grad_enabled()
    with cr.set_grad_enabled(True):
        assert cr.is_grad_enabled()
    assert not cr.is_grad_enabled()
    cr.set_grad_enabled(True)

    @cr.set_grad_enabled(False)
    def f() -> bool:
        return cr.is_grad_enabled()

    assert cr.is_grad_enabled() and not f()

    def inside(x: Any) -> Any:
        cr.set_grad_enabled(False)
        return (x * x).sum()

    same(func.grad(inside)(X), [0.0, 0.0])
    assert cr.is_grad_enabled()


# -- checkpoints ------------------------------------------------------------------------------------------------------


def _program(run: Any) -> Any:
    w = cr.tensor([0.3, -0.7], dtype=cr.float64)
    return lambda x: run(lambda v, k=2.0: (v.sin() * v * w * k).sum(), x * 2) * x.sum()


def test_checkpoint_in_every_mode() -> None:
    agree(_program(checkpoint), _program(lambda f, *a: f(*a)))


def test_checkpoints_nest_and_hold_transforms() -> None:
    def f(run: Any) -> Any:
        def inner(u: Any, v: Any) -> Any:
            return func.grad(lambda z: (z**3 * u).sum())(u) + v["a"]

        return lambda x: run(lambda v: run(inner, v * 0.5, {"a": v, "n": 3}).sin().sum(), x * 3) + (x * x).sum()

    agree(f(checkpoint), f(lambda g, *a: g(*a)))


def test_checkpoint_draws_the_same_numbers_again() -> None:
    def f(x: Any) -> Any:
        return checkpoint(lambda v: (cr.nn.functional.dropout(v * v, 0.5) * v).sum(), x * 1)

    big = cr.linspace(1, 2, 64, dtype=cr.float64)
    cr.manual_seed(0)
    g, y = func.grad_and_value(f)(big)
    same((g * big).sum() / 3, y)  # homogeneous of degree three, with one mask


def test_checkpoint_forgets_what_lies_between() -> None:
    calls = []

    def f(v: Any) -> Any:
        calls.append(1)
        return (v.sin() * v.cos()).sum()

    x = X.clone().requires_grad_()
    y = checkpoint(f, x * 2)
    assert len(calls) == 1
    node = y.grad_fn
    assert node.name() == "CheckpointBackward0" and all(a is None for a in node.args)
    y.backward()
    assert len(calls) == 2
    with pytest.raises(ChainruleError, match="retain_graph"):
        y.backward()


def test_checkpoint_of_a_module_and_in_segments() -> None:
    cr.manual_seed(0)
    layers = cr.nn.Sequential(*[cr.nn.Linear(2, 2, dtype=cr.float64) for _ in range(5)])
    x = X.clone().requires_grad_()
    layers(x.sin()).sum().backward()
    want = [x.grad.clone(), *[p.grad.clone() for p in layers.parameters()]]
    for run in (lambda v: checkpoint(layers, v), lambda v: checkpoint_sequential(layers, 2, v, use_reentrant=False)):
        x.grad = None
        layers.zero_grad()
        with set_checkpoint_early_stop(False):
            run(x.sin()).sum().backward()
        for a, b in zip([x.grad, *[p.grad for p in layers.parameters()]], want, strict=True):
            same(a, b)


# -- writes -----------------------------------------------------------------------------------------------------------


def test_copy_makes_a_value_of_its_own() -> None:
    leaf, y = ones(), cr.zeros(2, dtype=cr.float64)
    y.copy_(leaf)
    y.register_hook(lambda g: g * 10)
    assert not y.is_leaf
    (y * 3 + leaf).sum().backward()
    same(leaf.grad, [31.0, 31.0])


@pytest.mark.parametrize("write", [lambda y: y.copy_(ones(False)), lambda y: y.zero_(), lambda y: y.fill_(3.0)])
def test_a_constant_written_over_all_keeps_the_history(write: Any) -> None:
    leaf = ones()
    y = leaf * 2
    write(y)
    assert y.requires_grad
    y.sum().backward()
    same(leaf.grad, [0.0, 0.0])


def test_a_write_without_recording_leaves_history_and_views_alone() -> None:
    x = ones()
    y = x * 2
    v = y[:1]
    for mode in (cr.no_grad, cr.inference_mode):
        with mode():
            y.add_(1)
        assert y.requires_grad and v.requires_grad
    same(v, [4.0])
    (v * 2).sum().backward()
    same(x.grad, [4.0, 0.0])


def test_out_into_a_view_that_is_not_contiguous() -> None:
    for make in (
        lambda out: cr.arange(4.0, out=out),
        lambda out: cr.linspace(0, 3, 4, out=out),
        lambda out: cr.range(0, 3, out=out),
    ):
        base = cr.zeros(2, 4)
        make(base[:, ::2])
        assert base.tolist() == [[0, 0, 1, 0], [2, 0, 3, 0]]
    base = cr.zeros(3, 2)
    cr.logspace(0, 5, 6, base=2, out=base.T)
    assert base.T.reshape(-1).tolist() == [1, 2, 4, 8, 16, 32]


def test_a_captured_tensor_written_to_and_returned() -> None:
    buf = cr.zeros(2, dtype=cr.float64)

    def f(x: Any) -> Any:
        buf.add_(x)
        return (buf * x).sum(), buf

    g, aux = func.grad(f, has_aux=True)(X)
    same(g, 2 * X)
    same(aux, X)
    same(buf * 2, 2 * X)
    y, t = func.jvp(lambda x: buf.mul_(x), (X,), (X,))
    same(y, X * X)
    same(t, X * X)
    same(buf + 0, X * X)


def test_a_captured_tensor_written_to_by_a_leaf_made_inside() -> None:
    buf = cr.zeros(2, dtype=cr.float64)

    def f(x: Any) -> Any:
        buf.add_(x * ones())
        return (buf * x).sum()

    same(func.grad(f)(X), 2 * X)
    same(buf + 0, X)
    assert not buf.requires_grad


def test_what_a_function_writes_to_its_argument_shows_outside() -> None:
    a, b = cr.zeros(3, 2, dtype=cr.float64), BATCH.clone()
    same(func.vmap(cr.Tensor.copy_)(a, b), b)
    same(a, b)
    double: Any = lambda x: x.mul_(2).sum()
    runs: list[Any] = [
        lambda x: func.jvp(double, (x,), (x,)),
        lambda x: func.grad(double)(x),
        lambda x: func.vjp(double, x),
        lambda x: func.linearize(double, x),
    ]
    for run in runs:
        x = X.clone()
        run(x)
        same(x, 2 * X)
    leaf = ones()
    with pytest.raises(ChainruleError, match="leaf"):
        func.grad(double)(leaf)


def test_a_captured_tensor_written_to_under_vmap_is_refused() -> None:
    buf = cr.zeros(2, dtype=cr.float64)
    with pytest.raises(ChainruleError, match="differs between the 3 examples"):
        func.vmap(lambda x: buf.add_(x).sum() * 1)(BATCH)


# -- hooks, retained gradients, accumulation --------------------------------------------------------------------------


def test_retained_gradients_follow_the_tensor_through_writes_and_hooks() -> None:
    x = ones()
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    same(y.grad, [1.0, 1.0])
    same(x.grad, [6.0, 6.0])
    for first in (True, False):
        x = ones()
        y = x * 2
        if first:
            y.retain_grad()
        y.register_hook(lambda g: g * 5)
        y.retain_grad()
        y.sum().backward()
        same(y.grad, [5.0, 5.0])
        same(x.grad, [10.0, 10.0])


def test_a_hook_belongs_to_the_value_it_was_registered_on() -> None:
    x = ones()
    y = x * 2
    y.register_hook(lambda g: g * 5)
    y.mul_(3)
    y.register_hook(lambda g: g * 7)
    y.sum().backward()
    same(x.grad, [210.0, 210.0])


def test_a_post_accumulate_hook_may_write_the_leaf() -> None:
    x = ones()

    def step(p: Any) -> None:
        with cr.no_grad():
            p.sub_(p.grad)
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    same(x, [-1.0, -1.0])
    assert x.grad is None and x.is_leaf


def test_gradients_add_up_in_place_and_share_nothing() -> None:
    a, b = ones(), ones()
    (a + b).sum().backward()
    g = a.grad
    (a * 2).sum().backward()
    assert a.grad is g
    same(g, [3.0, 3.0])
    same(b.grad, [1.0, 1.0])
    b.grad.zero_()
    same(b.grad, [0.0, 0.0])


def test_a_second_backward_where_nothing_was_saved() -> None:
    x = ones()
    y = (x + 1).sum()
    y.backward()
    y.backward()
    same(x.grad, [2.0, 2.0])
    z = (x * x).sum()
    z.backward()
    with pytest.raises(ChainruleError, match="retain_graph=True"):
        z.backward()


# -- Function ---------------------------------------------------------------------------------------------------------


class Dirty(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def test_mark_dirty_on_a_view() -> None:
    leaf = cr.ones(3, dtype=cr.float64, requires_grad=True)
    b = leaf * 1
    v = b[1:]
    assert Dirty.apply(v) is v
    same(b, [1.0, 2.0, 2.0])
    b.sum().backward()
    same(leaf.grad, [1.0, 2.0, 2.0])


class Scale(Function):
    seen: list[Any] = []

    @staticmethod
    def forward(x: Any, y: Any, k: float = 3.0) -> Any:
        return x * k, y > 0, y * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[2]
        ctx.save_for_backward(inputs[0])
        ctx.mark_non_differentiable(output[1], output[2])

    @staticmethod
    def backward(ctx: Any, g: Any, *rest: Any) -> Any:
        Scale.seen = list(ctx.saved_tensors)
        return g * ctx.k, None, None


def test_function_defaults_keywords_none_and_identity() -> None:
    a, b = ones(), ones()
    y, mask, other = Scale.apply(a, b)
    assert y.requires_grad and not mask.requires_grad and not other.requires_grad
    y.sum().backward()
    assert Scale.seen[0] is a
    same(a.grad, [3.0, 3.0])
    assert b.grad is None
    assert cr.autograd.grad(Scale.apply(a, b, k=5.0)[0].sum(), (a, b), allow_unused=True)[1] is None
    with pytest.raises(ChainruleError, match="allow_unused"):
        cr.autograd.grad(Scale.apply(a, b)[0].sum(), (a, b))
    same(func.grad(lambda x: Scale.apply(x, x, k=5.0)[0].sum())(X), [5.0, 5.0])
    same(func.vmap(func.grad(lambda x: Scale.apply(x, x, k=5.0)[0].sum()))(BATCH), np.full((3, 2), 5.0))


# -- custom ops -------------------------------------------------------------------------------------------------------


@cr.custom_op
def product(a: Any, tree: Any, *, c: Any = 1) -> Any:
    return a * tree["x"][0] * c


def test_custom_op_takes_tensors_anywhere() -> None:
    agree(lambda x: product(2 * x, {"x": [x, 3]}).sum(), lambda x: (2 * x * x).sum())
    agree(lambda x: product(2 * x, {"x": [x.sin()]}, c=x).sum(), lambda x: (2 * x * x.sin() * x).sum())


@pytest.mark.parametrize("mode", [m for m in MODES if m not in ("value", "linearize")])
def test_custom_op_refuses_what_is_tracked_and_no_argument(mode: str) -> None:
    with pytest.raises(ChainruleError, match="pass the tensor as an argument"):
        MODES[mode](lambda x: cr.custom_op(lambda a: a * x)(X).sum())


def test_custom_op_with_a_leaf_inside() -> None:
    @cr.custom_op
    def f(a: Any) -> Any:
        return a * ones()

    agree(lambda x: (f(x) * x).sum(), lambda x: (x * x).sum())


# -- the rest ---------------------------------------------------------------------------------------------------------


def test_operators_ask_the_other_operand() -> None:
    class Other:
        def __radd__(self, o: Any) -> str:
            return "radd"

        __rmul__ = __rsub__ = __rtruediv__ = __rpow__ = __rmatmul__ = __rmod__ = __rfloordiv__ = __radd__

        def __lt__(self, o: Any) -> str:
            return "lt"

    t, u = cr.ones(2), Other()
    assert [t + u, t * u, t - u, t / u, t**u, t @ u, t % u, t // u] == ["radd"] * 8
    assert (t > u) == "lt"
    assert (t == u) is False and (t != u) is True
    for bad in ("a", None, [1]):
        with pytest.raises(TypeError):
            t + bad
        with pytest.raises(TypeError, match="expected a tensor or a number"):
            cr.add(t, bad)


def test_gradcheck_is_a_function_after_its_module_was_imported() -> None:
    from chainrule.autograd.gradcheck import GradcheckError

    assert issubclass(GradcheckError, RuntimeError)
    assert cr.autograd.gradcheck(lambda x: x * x, (ones(),))


def test_jacobians_of_complex_functions_agree_or_are_refused() -> None:
    z = cr.tensor([1 + 2j, 0.5 - 1j], dtype=cr.complex128)
    f: Any = lambda z: z * z * 1j
    same(func.jacrev(f, holomorphic=True)(z), func.jacfwd(f, holomorphic=True)(z))
    same(func.jacrev(f, holomorphic=True)(z), np.diag((2j * z).numpy()))
    for jac in (func.jacrev, func.jacfwd):
        with pytest.raises(RuntimeError, match="holomorphic=True"):
            jac(f)(z)
        a, b = jac(lambda x: (x * (1 + 2j), x * x))(X)
        same(a, (1 + 2j) * np.eye(2))
        same(b, np.diag(2 * X.numpy()))


def test_arguments_of_transforms() -> None:
    for t in (func.jacrev, func.jacfwd, func.grad):
        with pytest.raises(RuntimeError, match="unique"):
            t(lambda x, y: (x * y).sum(), argnums=(0, 0))(X, X)
    assert func.vmap(lambda x: x, out_dims=(1,))(BATCH).shape == (2, 3)
    cr.manual_seed(0)
    draws = func.vmap(lambda x: x * 0 + cr.rand(2), randomness="same", chunk_size=2)(BATCH)
    assert bool((draws == draws[0]).all())


def test_constructors_and_arrays() -> None:
    assert cr.Tensor(3, 4).shape == (3, 4) and cr.Tensor(2, 3, 4).shape == (2, 3, 4)
    assert cr.Tensor(cr.Size([2, 3])).shape == cr.ones(1).new(cr.Size([2, 3])).shape == (2, 3)
    t = cr.ones(3)
    assert np.shares_memory(np.asarray(t, copy=False), t.numpy())
    assert not np.shares_memory(np.array(t, copy=True), t.numpy())
    with pytest.raises(ValueError, match="copy=False"):
        np.asarray(t, dtype=np.float64, copy=False)
    assert cr.ones(2, 3)[:, cr.tensor(True)].shape == (2, 1, 3) and cr.ones(3)[cr.tensor(False)].shape == (0, 3)
    assert copy.deepcopy(ones()).requires_grad


class Sine(Function):
    @staticmethod
    def forward(a: Any) -> Any:
        return cr.sin(a)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (a,) = ctx.saved_tensors
        return g * cr.cos(a) if ctx.needs_input_grad[0] else None

    @staticmethod
    def vmap(info: Any, in_dims: Any, a: Any) -> Any:
        return Sine.apply(a), in_dims[0]


def test_a_function_with_a_vmap_rule_in_every_mode() -> None:
    agree(lambda x: (Sine.apply(x) * x).sum(), lambda x: (x.sin() * x).sum())


def test_a_hook_inside_vmap_sees_one_example() -> None:
    def f(x: Any) -> Any:
        y = x * 3
        y.register_hook(lambda g: g * 2 + (g.sum() * 0 if g.shape == (2,) else np.nan))
        return (y * x).sum()

    want = 6 * BATCH + 3 * BATCH  # through y doubled, through x itself
    same(func.grad(lambda b: func.vmap(f)(b).sum())(BATCH), want)
    same(_backward(lambda b: func.vmap(f)(b).sum(), BATCH), want)


def test_linearize_is_forward_mode() -> None:
    for mode in (cr.no_grad, cr.inference_mode):

        def f(x: Any, mode: Any = mode) -> Any:
            with mode():
                c = x.sin()
            return x * c

        same(func.linearize(f, X)[1](X), func.jvp(f, (X,), (X,))[1])


def test_retain_grad_of_a_tensor_among_the_inputs() -> None:
    w = ones()
    h = w * 3
    h.retain_grad()
    (h * X).sum().backward(inputs=[w, h])
    same(h.grad, X)


def test_writes_that_no_derivative_sees() -> None:
    def off(x: Any) -> Any:
        u = x.sin()
        with cr.no_grad():
            u.add_(0.3)
        return u.sum()

    def data(x: Any) -> Any:
        u = x.sin()
        u.data.mul_(0.7)
        return u.sum()

    for f in (off, data):
        for mode in ("grad", "backward", "vmap of grad"):
            same(MODES[mode](f), MODES[mode](lambda x: x.sin().sum()))
    b = func.jvp(func.vmap(data), (BATCH,), (BATCH,))
    same(b[0], 0.7 * BATCH.sin().sum(1))
    same(b[1], (BATCH.cos() * BATCH).sum(1))


def test_a_write_through_data_reaches_nothing_that_was_saved() -> None:
    def f(write: bool) -> Any:
        def g(x: Any) -> Any:
            v = cr.softmax(x, -1)
            w = v[cr.tensor([1, 0, 0])]
            if write:
                func.grad(lambda u: (v.data.mul_(0.7), u.sum())[1])(x)
            return (w * cr.tensor([1.0, 2.0, 4.0], dtype=cr.float64)).sum()

        return g

    same(func.grad(f(True))(X), func.grad(f(False))(X))


def test_a_tensor_made_inside_vmap_may_be_written_to() -> None:
    def f(x: Any) -> Any:
        v = cr.full((2, 2), 0.6, dtype=cr.float64)
        func.jvp(lambda p: Sine.apply(v.select(0, 0)) * 1.0, (v,), (v,))  # leaves a cycle of references behind
        v[0:] += x
        cr.mul(x.detach(), 2, out=v[1])
        return v.sum()

    same(func.vmap(f)(BATCH), 1.2 + 3 * BATCH.sum(1))


def test_a_tangent_keeps_the_value_it_had() -> None:
    def f(x: Any) -> Any:
        v = cr.sin(x)

        def g(p: Any) -> Any:
            v[0:].mul_(cr.sin(p))
            return p * 1.0

        return func.jvp(g, (v,), (v,))[1] * 1.0

    same(f(X), X.sin())


def test_dual_levels_meet_leaves_and_outlive_themselves() -> None:
    from chainrule.autograd import forward_ad

    kept: list[Any] = []

    def f(x: Any) -> Any:
        with forward_ad.dual_level():
            d = cr.nn.Parameter(ones(False)) * forward_ad.make_dual(x, x) * x
            kept[:] = [forward_ad.make_dual(x, x)]
            a, t = forward_ad.unpack_dual(d)
        return (a + t + kept[0] * 1).sum()

    agree(f, lambda x: (2 * x * x + x).sum())


def test_out_into_a_tensor_with_a_history() -> None:
    def f(x: Any) -> Any:
        v = x.cos()
        cr.sin(x, out=v)
        w = cr.zeros(3, dtype=cr.float64)
        cr.mul(x, v, out=w[1:])
        cr.mul(v, v, out=w[:2])
        return (v * w[1:]).sum()

    def plain(x: Any) -> Any:
        v = x.sin()
        return (v * cr.stack([v[1] ** 2, x[1] * v[1]])).sum()

    agree(f, plain)
    with pytest.raises(ChainruleError, match="leaf"):
        cr.sin(X, out=ones())


def test_retain_grad_inside_vmap() -> None:
    def f(x: Any) -> Any:
        v = x * 2
        if v.requires_grad:
            v.retain_grad()
        return (v * x).sum()

    agree(f, lambda x: (2 * x * x).sum())


class Product(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        a, b = ctx.saved_tensors
        return g * b if ctx.needs_input_grad[0] else None, g * a if ctx.needs_input_grad[1] else None


def test_each_level_says_what_it_needs_of_a_function() -> None:
    agree(lambda x: Product.apply(x, x).sum(), lambda x: (x * x).sum())

    def f(x: Any) -> Any:
        y, pull = func.vjp(lambda p: Product.apply(p, x).sum(), x)
        pull(y)
        return y

    agree(f, lambda x: (x * x).sum())


def test_a_checkpoint_that_captures_what_was_written_inside_vmap() -> None:
    def f(run: Any) -> Any:
        def g(x: Any) -> Any:
            v = cr.zeros(2, dtype=cr.float64)
            cr.cumsum(x, 0, out=v)
            return run(lambda p: (v @ v) * p.sum(), x)

        return g

    agree(f(checkpoint), f(lambda h, *a: h(*a)))


@pytest.mark.parametrize("make", [cr.optim.SGD, cr.optim.Adam])
def test_a_step_of_an_optimiser_inside_a_transform(make: Any) -> None:
    def f(x: Any) -> Any:
        w = cr.nn.Parameter(ones(False))
        (w * w * x).sum().backward(inputs=[w])
        make([w], lr=0.1).step()
        return (w * x).sum()

    def plain(x: Any) -> Any:
        g = 2 * x
        return ((1 - 0.1 * (g if make is cr.optim.SGD else g / (g.abs() + 1e-8))) * x).sum()

    for mode in ("value", "jvp", "jacfwd", "linearize", "vmap", "jvp of vmap", "forward over forward"):
        same(MODES[mode](f), MODES[mode](plain))


def test_a_write_without_recording_keeps_the_history_of_the_tangent() -> None:
    def f(p: Any) -> Any:
        v = cr.sin(p)
        with cr.no_grad():
            v.mul_(0.7)
        return v

    same(func.grad(lambda x: func.jvp(f, (x,), (x,))[1].sum())(X), X.cos() - X * X.sin())


def test_results_that_are_no_views_share_no_memory() -> None:
    u = cr.ones(2, 2)
    cr.nn.functional.unfold(u[None, None], 2)[0].mul_(3.0)
    assert u.tolist() == [[1, 1], [1, 1]]


def test_linearize_inside_a_derivative_keeps_the_mode_of_each_op() -> None:
    def f(run: Any) -> Any:
        def inner(p: Any) -> Any:
            with cr.no_grad():
                v = p.narrow(-1, 1, 1) * 3
            return v[-1] * p

        return lambda x: (run(inner, x) * x).sum()

    push = f(lambda g, x: func.linearize(g, x)[1](x * 1))
    forward = f(lambda g, x: func.jvp(g, (x,), (x * 1,))[1])
    for mode in ("grad", "backward", "reverse over reverse", "forward over reverse", "grad of vmap"):
        same(MODES[mode](push), MODES[mode](forward))


def test_a_captured_tensor_written_to_two_levels_down() -> None:
    v = cr.zeros(2, dtype=cr.float64)

    def outer(x: Any) -> Any:
        func.grad(lambda p: cr.sin(p, out=v).sum())(x * 2)
        return (v * x).sum()

    same(func.grad(outer)(X), (2 * X).sin() + 2 * X * (2 * X).cos())
    same(v + 0, (2 * X).sin())


def test_a_view_written_without_recording_leaves_what_was_saved() -> None:
    def f(x: Any) -> Any:
        y = x / (2 + cr.cos(x))
        v = y[0:]
        with cr.no_grad():
            v.mul_(0.7)
        return v.sum()

    def g(x: Any) -> Any:
        v = x.clone()
        v.as_strided((1,), (1,), 0).sin_()
        y = (x @ v) * 0.5
        v.detach().sin_()
        return y

    same(func.grad(f)(X), func.grad(lambda x: (x / (2 + cr.cos(x))).sum())(X))
    same(func.grad(g)(X), func.grad(lambda x: (x[0] * x[0].sin() + x[1] * x[1]) * 0.5)(X))
