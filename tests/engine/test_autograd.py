"""The imperative style: backward, hooks, Function, forward_ad, functional, gradcheck, anomalies, checkpoints."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import chainrule as cr
from chainrule import autograd
from chainrule.autograd import Function, forward_ad, functional, gradcheck, gradgradcheck
from chainrule.custom import custom_op
from chainrule.testing.laws import Case, LawError, check
from chainrule.utils.checkpoint import checkpoint, checkpoint_sequential


def leaf(*values: float) -> cr.Tensor:
    return cr.tensor(values, dtype=cr.float64, requires_grad=True)


def test_backward_accumulates_and_frees() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.backward()


def test_create_graph_differentiates_again() -> None:
    x = leaf(2.0)
    (g,) = autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = autograd.grad(g.sum(), x, create_graph=True)
    (third,) = autograd.grad(h.sum(), x)
    assert [g.item(), h.item(), third.item()] == [12.0, 12.0, 6.0]
    (x**3).sum().backward(create_graph=True)
    (x.grad * 1).sum().backward()


def test_grad_options() -> None:
    x, z = leaf(1.0, 2.0), leaf(3.0)
    y = (x * x).sum()
    with pytest.raises(RuntimeError, match="allow_unused"):
        autograd.grad(y, [x, z], retain_graph=True)
    assert autograd.grad(y, [x, z], retain_graph=True, allow_unused=True)[1] is None
    assert autograd.grad(y, [x, z], retain_graph=True, materialize_grads=True)[1].tolist() == [0.0]
    rows = autograd.grad(x * x, x, cr.eye(2, dtype=cr.float64), is_grads_batched=True)[0]
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="scalar"):
        (x * x).backward()
    (x * z).sum().backward(inputs=[z])
    assert x.grad is None and z.grad.tolist() == [3.0]


def test_grad_of_an_intermediate_and_hooks() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    y.retain_grad()
    seen = []
    handle = y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    (y * y).sum().backward()
    assert seen == [[6.0, 12.0]] and x.grad.tolist() == [180.0, 360.0]
    handle.remove()
    after = []
    x.register_post_accumulate_grad_hook(lambda t: after.append(t.grad.tolist()))
    (x * 1).sum().backward()
    assert after == [[181.0, 361.0]]
    assert y.grad_fn.name() == "MulBackward0" and x.is_leaf and not y.is_leaf


def test_modes() -> None:
    x = leaf(1.0)
    with cr.no_grad():
        assert not (x * 2).requires_grad
        with cr.enable_grad():
            assert (x * 2).requires_grad
    with cr.inference_mode():
        assert not (x * 2).requires_grad
    with cr.set_grad_enabled(False):
        assert not cr.is_grad_enabled()
    assert cr.is_grad_enabled()

    @cr.no_grad()
    def frozen(v):
        return v * 2

    assert not frozen(x).requires_grad
    # no_grad inside a differentiated function cuts; outside of it, it does not.
    assert cr.func.grad(lambda v: (v * frozen(v)).sum())(cr.tensor([3.0])).tolist() == [6.0]
    with cr.no_grad():
        assert cr.func.grad(lambda v: (v * v).sum())(cr.tensor([3.0])).tolist() == [6.0]


def test_leaves_are_written_only_without_grad() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="no_grad"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="no_grad"):
        x[0] = 5.0
    with cr.no_grad():
        x.sub_(1.0)
    x.data.mul_(2)
    assert x.tolist() == [0.0, 2.0] and x.is_leaf and x.requires_grad


def test_saved_values_survive_writes() -> None:
    c = cr.tensor([1.0, 2.0])
    x = cr.tensor([3.0, 4.0], requires_grad=True)
    y = (x * c).sum()
    c.mul_(100)
    y.backward()
    assert x.grad.tolist() == [1.0, 2.0]


def test_leaves_copy_and_pickle() -> None:
    x = leaf(1.0, 2.0)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y.tolist() == x.tolist() and y.requires_grad and y.is_leaf
    with pytest.raises(RuntimeError, match="leaves"):
        copy.deepcopy(x * 2)


# -- Function ---------------------------------------------------------------------------------------------------------


class Cube(Function):
    @staticmethod
    def forward(ctx, x, k):
        ctx.save_for_backward(x)
        ctx.k = k
        return x**3 * k

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x**2 * ctx.k, None


class NewStyle(Function):
    @staticmethod
    def forward(x, y):
        return x * y, x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def jvp(ctx, tx, ty):
        x, y = ctx.saved_tensors
        return tx * y + x * ty, tx * x.cos()


class WithVmap(Cube):
    calls: list[object] = []

    @staticmethod
    def vmap(info, in_dims, x, k):
        WithVmap.calls.append((info.batch_size, in_dims))
        return Cube.apply(x.movedim(in_dims[0], 0), k), 0


POINT = [np.array([0.4, -1.1])]


def test_function_with_backward_obeys_all_laws() -> None:
    check(Case("Cube", lambda x: Cube.apply(x, 2.0), POINT))


def test_function_with_only_a_jvp_obeys_all_laws() -> None:
    check(Case("NewStyle", NewStyle.apply, [*POINT, np.array([1.5, 0.2])]))


def test_function_with_its_own_vmap() -> None:
    WithVmap.calls.clear()
    got = cr.vmap(lambda v: WithVmap.apply(v, 2.0), in_dims=1)(cr.ones(2, 3))
    assert got.shape == (3, 2) and WithVmap.calls == [(3, (0, None))]


def test_function_imperatively() -> None:
    x = leaf(2.0)
    y = Cube.apply(x, 1.0)
    (g,) = autograd.grad(y.sum(), x, create_graph=True)
    assert autograd.grad(g.sum(), x)[0].tolist() == [12.0]
    assert gradgradcheck(lambda v: Cube.apply(v, 2.0), (x,))
    with pytest.raises(RuntimeError, match="WrongBackward"):

        class Wrong(Cube):
            @staticmethod
            def backward(ctx, g):
                return g

        Wrong.apply(x, 1.0).sum().backward()


def test_mark_non_differentiable() -> None:
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            n = x.round()
            ctx.mark_non_differentiable(n)
            return x * 2, n

        @staticmethod
        def backward(ctx, g, _):
            return g * 2

    x = leaf(1.2)
    y, n = Both.apply(x)
    assert y.requires_grad and not n.requires_grad


# -- custom ops -------------------------------------------------------------------------------------------------------


def test_custom_op_with_neither_rule() -> None:
    @custom_op
    def f(x, y):
        return x * y.exp()

    f.check(cr.tensor(POINT[0]), cr.tensor(POINT[0] * 2))


def test_custom_op_rules_are_used_and_checked() -> None:
    @custom_op
    def wrong(x):
        return x.sin()

    wrong.vjp(lambda g, y, x: g * x.cos() * 1.001)
    with pytest.raises(LawError):
        wrong.check(cr.tensor(POINT[0]))

    @custom_op
    def straight_through(x):
        return x.round()

    straight_through.vjp(lambda g, y, x: g)
    for f in (lambda v: straight_through(v).sum(), lambda v: cr.vmap(straight_through)(v).sum()):
        assert cr.func.grad(f)(cr.tensor([0.3, 1.7])).tolist() == [1.0, 1.0]
    assert cr.func.jvp(straight_through, (cr.tensor([0.3]),), (cr.tensor([2.0]),))[1].tolist() == [2.0]


def test_custom_op_sums_cotangents_of_arguments_without_a_batch() -> None:
    @custom_op
    def scale(x, w):
        return x * w

    scale.vjp(lambda g, y, x, w: (g * w, (g * x).sum()))
    w = cr.tensor(2.0)
    got = cr.func.grad(lambda w: cr.vmap(lambda v: scale(v, w))(cr.ones(3, 2)).sum())(w)
    assert got.item() == 6.0


# -- forward_ad and functional ----------------------------------------------------------------------------------------


def test_forward_ad() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(cr.tensor([2.0]), cr.tensor([1.0]))
        y = x**3
        assert forward_ad.unpack_dual(y).tangent.tolist() == [12.0]
        assert forward_ad.unpack_dual(cr.tensor([1.0])).tangent is None
    with pytest.raises(RuntimeError, match="dual level"):
        forward_ad.make_dual(cr.ones(1), cr.ones(1))
    assert (y + 1).tolist() == [9.0]  # what outlives its level is the primal


def test_functional() -> None:
    x, v = cr.tensor([1.0, 2.0]), cr.tensor([1.0, 0.5])
    f = lambda t: (t**3).sum()
    assert functional.jacobian(lambda t: t**2, x).tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert functional.jacobian(lambda t: t**2, x, strategy="forward-mode").tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert functional.hessian(f, x).tolist() == [[6.0, 0.0], [0.0, 12.0]]
    assert functional.hvp(f, x, v)[1].tolist() == functional.vhp(f, x, v)[1].tolist() == [6.0, 6.0]
    assert (
        functional.jvp(lambda t: t**2, x, v)[1].tolist()
        == functional.vjp(lambda t: t**2, x, v)[1].tolist()
        == [2.0, 2.0]
    )
    both = functional.jacobian(lambda a, b: a * b, (x, v))
    assert both[0].tolist() == [[1.0, 0.0], [0.0, 0.5]] and both[1].tolist() == [[1.0, 0.0], [0.0, 2.0]]


# -- gradcheck, anomalies, checkpoints ----------------------------------------------------------------------------------


def test_gradcheck_accepts_and_rejects() -> None:
    x = leaf(0.3, -0.7)
    z = (cr.tensor([0.3 + 0.2j, -1j], dtype=cr.complex128)).requires_grad_()
    assert gradcheck(
        lambda v: v.sin() * v, (x,), check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True
    )
    assert gradcheck(lambda v: v * v.conj() + v.exp(), (z,), check_forward_ad=True)
    assert gradcheck(lambda v: v.abs(), (z,), check_forward_ad=True)

    class Off(Cube):
        @staticmethod
        def backward(ctx, g):
            (v,) = ctx.saved_tensors
            return g * 3.01 * v**2, None

    assert not gradcheck(lambda v: Off.apply(v, 1.0), (x,), raise_exception=False)
    with pytest.raises(RuntimeError, match="mismatch"):
        gradcheck(lambda v: Off.apply(v, 1.0), (x,))


def test_anomaly_names_the_op_and_the_line() -> None:
    with autograd.detect_anomaly():
        with pytest.raises(autograd.AnomalyError, match=r"log returned NaN[\s\S]*test_autograd.py"):
            leaf(-1.0).log()
        x = leaf(0.0)
        y = (x.sqrt() * 0).sum()
        with pytest.raises(autograd.AnomalyError, match=r"derivative of sqrt[\s\S]*test_autograd.py"):
            y.backward()
    leaf(-1.0).log()


def test_checkpoint_keeps_nothing_and_gives_the_same() -> None:
    w = leaf(0.5, -0.25)
    runs = []

    def block(v):
        runs.append(1)
        return (v * w).sin().exp() * v

    x = leaf(0.3, 0.9)
    checkpoint(block, x).sum().backward()
    assert len(runs) == 2
    got = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    block(x).sum().backward()
    assert got == (x.grad.tolist(), w.grad.tolist())
    check(Case("checkpoint", lambda v: checkpoint(lambda u: u.sin() * u, v), POINT))


def test_checkpoint_draws_the_same_numbers() -> None:
    cr.manual_seed(3)
    x = leaf(1.0, 1.0, 1.0)
    y = checkpoint(lambda v: v * cr.rand(3, dtype=cr.float64), x)
    y.sum().backward()
    assert x.grad.tolist() == y.tolist()


def test_checkpoint_sequential() -> None:
    x = leaf(0.5)
    fs = [lambda v: v.sin(), lambda v: v * v, lambda v: v.exp()]
    checkpoint_sequential(fs, 2, x).sum().backward()
    want = cr.func.grad(lambda v: (v.sin() ** 2).exp().sum())(x.detach())
    assert x.grad.tolist() == pytest.approx(want.tolist())


# -- what a rule writes, how a Function is called, what gradcheck calls -------------------------------------------------


class Doubled(Function):
    """Its rules write to what they are handed."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g.mul_(2)

    @staticmethod
    def jvp(ctx, t):
        return t.mul_(2)


doubled_op = custom_op(lambda x: x * 2)
doubled_op.vjp(lambda g, y, x: g.mul_(2))


@pytest.mark.parametrize("f", [Doubled.apply, doubled_op], ids=["Function", "custom_op"])
@pytest.mark.parametrize("first", [True, False])
def test_what_a_rule_writes_to_its_cotangent_nobody_else_sees(f, first) -> None:
    x, w, g = leaf(1.0, 2.0), leaf(3.0, 4.0), cr.ones(2, dtype=cr.float64)
    (f(x) + w if first else w + f(x)).backward(g)
    assert x.grad.tolist() == [2.0, 2.0]
    assert w.grad.tolist() == g.tolist() == [1.0, 1.0]


def test_what_a_rule_writes_to_its_tangent_nobody_else_sees() -> None:
    x, t = cr.tensor([1.0, 2.0]), cr.ones(2)
    _, out = cr.func.jvp(lambda x: Doubled.apply(x.clone()) + x, (x,), (t,))
    assert out.tolist() == [3.0, 3.0]
    assert t.tolist() == [1.0, 1.0]
    out = cr.func.vmap(lambda t: cr.func.jvp(lambda x: x + Doubled.apply(x), (x,), (t,))[1])(cr.stack([t, 2 * t]))
    assert out.tolist() == [[3.0, 3.0], [6.0, 6.0]]


def test_keywords_of_apply_go_to_their_places() -> None:
    class Scaled(Function):
        @staticmethod
        def forward(ctx, x, y, scale=1.0):
            ctx.save_for_backward(x, y)
            ctx.scale = scale
            return scale * x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * ctx.scale * y, g * ctx.scale * x, None

    for call in (lambda x, y: Scaled.apply(x, y=y, scale=5.0), lambda x, y: Scaled.apply(scale=5.0, y=y, x=x)):
        x, y = leaf(2.0), leaf(3.0)
        call(x, y).backward()
        assert (x.grad.item(), y.grad.item()) == (15.0, 10.0)
    x = leaf(2.0)
    with pytest.raises(TypeError, match="got an unexpected keyword argument"):
        Scaled.apply(x, z=x)
    with pytest.raises(TypeError, match="got multiple values for argument 'y'"):
        Scaled.apply(x, x, y=x)


def test_integers_have_no_tangent_in_jvp() -> None:
    seen = []

    class Both(Function):
        @staticmethod
        def forward(ctx, x, n):
            return x.clone(), n.clone()

        @staticmethod
        def jvp(ctx, t, n):
            seen.append(n)
            return t, None

    with forward_ad.dual_level():
        y, n = Both.apply(forward_ad.make_dual(cr.tensor(2.0), cr.tensor(3.0)), cr.tensor(3))
        assert forward_ad.unpack_dual(y).tangent.item() == 3.0
        assert forward_ad.unpack_dual(n).tangent is None
    assert seen == [None]


def test_gradcheck_calls_the_function_as_others_do() -> None:
    asked, w = [], leaf(2.0, 3.0)

    def f(x):
        y = x * w  # a tensor held by the function, which requires a gradient too
        asked.append(y.requires_grad)
        y.register_hook(lambda g: g)
        return y

    assert gradcheck(f, (leaf(0.3, 0.9),))
    assert gradcheck(f, (leaf(0.3, 0.9),), fast_mode=True)
    assert gradgradcheck(f, (leaf(0.3, 0.9),))
    assert all(asked)
    # Cotangents that require no gradient are constants, of whatever precision.
    assert gradgradcheck(lambda x, y: cr.where(x > y, x, y), (leaf(0.3, 0.9), leaf(0.5, 0.1)), [cr.rand(2)])


def test_checkpoint_runs_again_under_the_autocast_of_the_first_run() -> None:
    seen = []

    def f(x, w):
        y = x @ w
        seen.append(y.dtype)
        return y.float().exp()

    x, w = cr.rand(3, 3, requires_grad=True), cr.rand(3, 3, requires_grad=True)
    with cr.autocast("cpu", dtype=cr.bfloat16):
        y = checkpoint(f, x, w)
    y.sum().backward()
    assert seen == [cr.bfloat16, cr.bfloat16]
    with cr.autocast("cpu", dtype=cr.bfloat16):
        checkpoint(f, x, w).sum().backward()
        assert cr.is_autocast_enabled("cpu")


def test_under_no_grad_numpy_shows_the_memory_of_a_leaf() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        x.numpy()
    with cr.no_grad():
        x.numpy()[0] = 5.0
        assert (x * 1).numpy().tolist() == [5.0, 2.0]
    assert x.tolist() == [5.0, 2.0]


def test_a_dual_tensor_asks_for_what_its_primal_asks_for() -> None:
    x = leaf(1.0)
    with forward_ad.dual_level():
        assert forward_ad.make_dual(x, cr.ones_like(x)).requires_grad
        assert not forward_ad.make_dual(x.detach(), cr.ones_like(x)).requires_grad


def test_a_context_that_hides_the_function_s_exception_is_refused() -> None:
    import contextlib

    def fails(x):
        raise ValueError("no")

    with pytest.raises(RuntimeError, match="context_fn suppressed"):
        checkpoint(fails, leaf(1.0), context_fn=lambda: (contextlib.suppress(ValueError), contextlib.nullcontext()))
