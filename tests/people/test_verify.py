"""chainrule.verify: twenty planted wrong derivatives are caught, twenty right functions pass, the culprit is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn
from chainrule.autograd import Function
from chainrule.func import functional_call

X = cr.tensor([0.3, -1.2, 0.8])
M = cr.tensor([[0.5, -0.2, 0.1], [1.0, 0.4, -0.7]])
SPD = cr.tensor([[3.0, 0.5, 0.2], [0.5, 2.0, 0.1], [0.2, 0.1, 1.5]])


def op_with(forward: Callable[..., Any], pull: Any = None, push: Any = None) -> Any:
    o = cr.custom_op(forward, name="planted")
    if pull is not None:
        o.vjp(pull)
    if push is not None:
        o.jvp(push)
    return o


class WrongBackward(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 2 * x**2


class RightBackward(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3 * x**2


class StraightThrough(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.round() + 0.1 * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


class LooksRightAtFirstOrder(Function):
    """The slope is right, but made of a constant: its own derivative is lost."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.slope = x.detach().cos()
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.slope


sin_slope = op_with(lambda x: x.sin(), pull=lambda g, y, x: g * x.cos() * 1.001)
sin_sign = op_with(lambda x: x.sin(), pull=lambda g, y, x: -g * x.cos())
exp_jvp = op_with(
    lambda x: x.exp(), push=lambda t, y, x: t[0] * y * 1.01 if isinstance(t, list | tuple) else t * y * 1.01
)
bias_forgotten = op_with(lambda x, b: x * b, pull=lambda g, y, x, b: (g * b, g * 0))
swapped = op_with(lambda a, b: a * a * b, pull=lambda g, y, a, b: (g * a * a, 2 * g * a * b))
softmax_diagonal = op_with(lambda x: x.softmax(-1), pull=lambda g, y, x: g * y * (1 - y))
no_transpose = op_with(lambda a: a @ SPD.to(a.dtype) @ a.T, pull=lambda g, y, a: g @ a @ SPD.to(a.dtype))
modes_differ = op_with(
    lambda x: x * x,
    pull=lambda g, y, x: 2 * g * x,
    push=lambda t, y, x: 2.1 * (t[0] if isinstance(t, list | tuple) else t) * x,
)
conj_forgotten = op_with(lambda z: z * z, pull=lambda g, y, z: 2 * g * z)


def in_no_grad(x: Any) -> Any:
    with cr.no_grad():
        scale = x.norm()
    return (x * scale).sum()


def written_as_data(x: Any) -> Any:
    y = x.exp()
    return (y * cr.tensor(y.detach().numpy())).sum()


def forgotten_part(x: Any) -> Any:
    return (x * x).sum() + x.detach()[0] ** 2


def by_item(x: Any) -> Any:
    return x.sum() * x[0].detach().item()


def random_function(x: Any) -> Any:
    return (x * cr.rand(3, dtype=x.dtype)).sum()


STATE = {"calls": 0.0}


def stateful(x: Any) -> Any:
    STATE["calls"] += 1.0
    return x.sum() * STATE["calls"]


def numpy_leak(x: Any) -> Any:
    a = np.asarray(x.detach())
    return (x * cr.tensor(np.sin(a))).sum()


WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "off by a thousandth": (lambda x: sin_slope(x).sum(), (X,)),
    "wrong sign": (lambda x: sin_sign(x).sum(), (X,)),
    "wrong forward rule": (lambda x: exp_jvp(x).sum(), (X,)),
    "an input without gradient": (lambda x, b: bias_forgotten(x, b).sum(), (X, X + 1)),
    "gradients swapped": (lambda a, b: swapped(a, b).sum(), (X, X + 2)),
    "softmax with a diagonal Jacobian": (lambda x: (softmax_diagonal(x) * x).sum(), (X,)),
    "one side of a product": (lambda a: no_transpose(a).sum(), (M,)),
    "two modes that differ": (lambda x: modes_differ(x).sum(), (X,)),
    "conjugate forgotten": (lambda z: conj_forgotten(z).real.sum(), (cr.tensor([0.5 + 0.7j, -0.2 + 0.4j]),)),
    "Function with a wrong factor": (lambda x: WrongBackward.apply(x).sum(), (X,)),
    "straight-through estimator": (lambda x: (StraightThrough.apply(x) * x).sum(), (X,)),
    "second order lost": (lambda x: LooksRightAtFirstOrder.apply(x).sum(), (X,)),
    "detach": (lambda x: (x.detach() * x).sum(), (X,)),
    "no_grad": (in_no_grad, (X,)),
    "through NumPy and back": (written_as_data, (X,)),
    "a term detached": (forgotten_part, (X,)),
    "item": (by_item, (X,)),
    "random": (random_function, (X,)),
    "state": (stateful, (X,)),
    "NumPy on a detached copy": (numpy_leak, (X,)),
}
LAYER = nn.Linear(3, 2)
NET = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.LayerNorm(4), nn.Linear(4, 1))


def written_in_place(x: Any) -> Any:
    y = x.exp()
    y[0] = y[1] * 2
    y.mul_(x)
    return y.sum()


def loop(x: Any) -> Any:
    for _ in range(5):
        x = x - 0.1 * x.sin()
    return x


RIGHT: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "polynomial": (lambda x: (x**3 - 2 * x).sum(), (X,)),
    "several results": (lambda x: (x.sin(), x.cos().sum()), (X,)),
    "dict of arguments": (lambda p: (p["w"] * p["b"]).exp().sum(), ({"w": X, "b": X + 1},)),
    "product of matrices": (lambda a, b: (a @ b).tanh(), (M, M.T.contiguous())),
    "softmax": (lambda x: (x.softmax(-1) * x).sum(), (X,)),
    "norm": (lambda x: x.norm(), (X,)),
    "solve": (lambda a, b: cr.linalg.solve(a, b), (SPD, X)),
    "cholesky": (lambda a: cr.linalg.cholesky((a + a.T) / 2).sum(), (SPD,)),
    "eigenvalues": (lambda a: cr.linalg.eigvalsh((a + a.T) / 2), (SPD,)),
    "logdet": (lambda a: cr.linalg.slogdet(a)[1], (SPD,)),
    "in place": (written_in_place, (X,)),
    "a loop": (loop, (X,)),
    "a kink passed by": (lambda x: x.relu().sum(), (X,)),
    "where": (lambda x: cr.where(x > 0, x.abs().sqrt(), x * x).sum(), (X,)),
    "complex": (lambda z: (z * z.conj()).real.sum() + z.real.sum(), (cr.tensor([0.5 + 0.7j, -0.2 + 0.4j]),)),
    "NumPy code": (lambda x: np.sum(np.sin(x) * np.exp(-x * x)), (np.array([0.3, -1.2, 0.8]),)),
    "Function": (lambda x: RightBackward.apply(x).sum(), (X,)),
    "a layer": (LAYER, (M,)),
    "parameters of a network": (
        lambda p, x: functional_call(NET, p, (x,)).sum(),
        ({k: v.detach() for k, v in NET.named_parameters()}, M),
    ),
    "integers beside": (lambda x, i: x[i].exp().sum(), (X, cr.tensor([0, 2]))),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_derivative_is_caught(name: str) -> None:
    f, args = WRONG[name]
    report = cr.verify(f, *args)
    assert not report.ok, str(report)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_function_passes(name: str) -> None:
    f, args = RIGHT[name]
    report = cr.verify(f, *args)
    assert report.ok, str(report)
    assert len([r for r in report.rows if r.state == "right"]) >= 9, str(report)


def test_there_are_twenty_of_each() -> None:
    assert len(WRONG) == len(RIGHT) == 20


# Where a difference quotient of one step says nothing: kinks, edges, what is steep, what oscillates, large and small numbers.
D = cr.float64
CARE: dict[str, tuple[Callable[..., Any], Any]] = {
    "at a kink": (lambda x: x.relu().sum(), cr.tensor([0.0, 1.0, -1.0])),
    "at a tie": (lambda x: x.amax() * x.sum(), cr.ones(3)),
    "beside a kink": (lambda x: x.abs().sum(), cr.tensor([1e-6, 1.0, -1e-6])),
    "at an edge": (lambda x: x.sqrt().sum(), cr.tensor([0.0, 1.0, 2.0])),
    "beside an edge": (lambda x: x.sqrt().sum() + x.log().sum(), cr.tensor([1e-9, 1e-3, 1.0])),
    "oscillating": (lambda x: (1e6 * x).sin().sum(), X),
    "large numbers": (lambda x: (x * x).sum(), cr.tensor([1e6, 1e8, 1.0])),
    "small numbers": (lambda x: (1e-9 * x.sin()).sum(), X),
    "numbers of all sizes": (lambda x: x.reciprocal(), cr.tensor([1e-5, 1.0, 1e5])),
    "a large constant": (lambda x: 1e6 + x.sin().sum(), X),
    "a network with kinks": (lambda x: ((M.to(x.dtype).T @ (M.to(x.dtype) @ x).relu()).relu() ** 2).sum(), cr.zeros(3)),
}


@pytest.mark.parametrize("name", CARE)
def test_hard_points_are_judged(name: str) -> None:
    f, x = CARE[name]
    report = cr.verify(f, x)
    assert report.ok, str(report)
    assert not [r for r in report.rows if "mode" in r.name and r.state != "right"], str(report)
    bent = lambda x: f(cr.where(cr.tensor([True, False, False]), identity_bent(x), x))  # by 1.001 in one number
    wrong = cr.verify(bent, x)
    assert not wrong.ok, str(wrong)
    assert "rule of planted is wrong" in wrong.culprits[0] and len(wrong.culprits) == 1, str(wrong)


identity_bent = op_with(lambda x: x * 1.0, pull=lambda g, y, x: 1.001 * g)


def test_what_differences_cannot_judge_is_called_neither_right_nor_wrong() -> None:
    cantor = lambda x: sum((0.9**k * (7.0**k * x).cos() for k in range(60)), start=0 * x).sum()
    report = cr.verify(cantor, cr.tensor([0.31, 0.77]))
    assert report.ok and [r.state for r in report.rows if "mode" in r.name] == ["note", "note"], str(report)


def test_a_smaller_tolerance_finds_smaller_mistakes() -> None:
    slope = op_with(lambda x: x.sin(), pull=lambda g, y, x: g * x.cos() * (1 + 1e-6))
    assert cr.verify(lambda x: slope(x).sum(), X)
    assert not cr.verify(lambda x: slope(x).sum(), X, tolerance=1e-7)
    for name in ("polynomial", "solve", "eigenvalues", "in place", "complex", "NumPy code", "parameters of a network"):
        f, args = RIGHT[name]
        assert cr.verify(f, *args, tolerance=1e-7), name


def test_nan_at_a_kink_is_wrong() -> None:
    report = cr.verify(lambda x: (x * x).sum().sqrt(), cr.zeros(3))
    assert not report.ok and "find_nan" in str(report), str(report)


def test_a_wrong_batching_rule_and_a_rule_without_derivative_are_named() -> None:
    @cr.library.custom_op("planted::cube", mutates_args=())
    def cube(x: cr.Tensor) -> cr.Tensor:
        return x.detach() ** 3

    cube.register_autograd(
        lambda ctx, g: 3 * ctx.x**2 * g, setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0])
    )
    cube.register_vmap(lambda info, dims, x: (x**2, dims[0]))
    assert "the batching rule of planted_cube is wrong" in cr.verify(lambda x: cube(x).sum(), X).culprits[0]
    square = op_with(lambda x: x * x, pull=lambda g, y, x: 2 * g * x.detach())
    assert "the derivative of the rule of planted is wrong" in cr.verify(lambda x: square(x).sum(), X).culprits[0]


# Mistakes of other kinds: what a rule forgets, what it does to its cotangent, hooks, iterations, indices.
class ForgetsSecond(Function):
    @staticmethod
    def forward(ctx: Any, a: Any, b: Any) -> Any:
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.saved_tensors[1], None


class ChangesWhatItSaved(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.y = y.clone().mul_(1.5)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * ctx.y


def hooked(x: Any) -> Any:
    y = x * 1.0
    if y.requires_grad:
        y.register_hook(lambda g: 2 * g)
    return (y * y).sum()


def fixed_point_of_one_step(x: Any) -> Any:
    with cr.no_grad():
        z = x * 0
        for _ in range(100):
            z = 0.5 * z.cos() + x
    return (0.5 * z.cos() + x).sum()


lse_unnormalised = op_with(lambda x: x.exp().sum().log(), pull=lambda g, y, x: g * x.exp())
leak_elsewhere = op_with(lambda x: cr.where(x > 0, x, 0.1 * x), pull=lambda g, y, x: cr.where(x > 0, g, 0.01 * g))
mean_for_sum = op_with(lambda a, b: a * b, pull=lambda g, y, a, b: (g * b, (g * a).mean(0)))
one_of_two = op_with(lambda x: (x.sin(), x.cos()), pull=lambda g, y, x: g[0] * y[1])
scan_not_reversed = op_with(lambda x: x.cumsum(0), pull=lambda g, y, x: g.cumsum(0))
first_for_largest = op_with(lambda x: x.max(), pull=lambda g, y, x: cr.cat([g.reshape(1), cr.zeros(2, dtype=x.dtype)]))
inverse_untransposed = op_with(lambda a: cr.linalg.inv(a), pull=lambda g, y, a: -(y @ g @ y))
reversal = op_with(lambda x: x * 1.0, pull=lambda g, y, x: -g)
clipped = op_with(lambda x: x * 1.0, pull=lambda g, y, x: g.clamp(-0.1, 0.1))
half_modulus = op_with(lambda z: z.abs(), pull=lambda g, y, z: g * z / y / 2)
SKEW = SPD + cr.tensor([[0.0, 0.3, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
MORE_WRONG: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "logsumexp not normalised": (lambda x: lse_unnormalised(x), (X,)),
    "another slope on one side": (lambda x: leak_elsewhere(x).sum(), (X,)),
    "mean over what was broadcast": (lambda a, b: mean_for_sum(a, b).sum(), (M, X)),
    "one of two results": (lambda x: (one_of_two(x)[0] * one_of_two(x)[1]).sum(), (X,)),
    "scan not reversed": (lambda x: (scan_not_reversed(x) * cr.arange(3.0)).sum(), (X,)),
    "first for largest": (lambda x: first_for_largest(x), (X,)),
    "inverse not transposed": (lambda a: inverse_untransposed(a)[0, 1], (SKEW,)),
    "gradient reversal": (lambda x: reversal(x).sin().sum(), (X,)),
    "clipped cotangent": (lambda x: clipped(x).sin().sum(), (X,)),
    "half of a modulus": (lambda z: half_modulus(z).sum(), (cr.tensor([0.5 + 0.7j, -0.2 + 0.4j]),)),
    "Function without its second": (lambda a, b: ForgetsSecond.apply(a, b).sum(), (X, X + 1)),
    "Function that changes what it saved": (lambda x: ChangesWhatItSaved.apply(x).sum(), (X,)),
    "hook": (hooked, (X,)),
    "one step of a fixed point": (fixed_point_of_one_step, (X,)),
    "list and back": (lambda x: (x * cr.tensor(x.tolist())).sum(), (X,)),
    "data": (lambda x: (x.data * x).sum(), (X,)),
}


@pytest.mark.parametrize("name", MORE_WRONG)
def test_other_wrong_derivatives_are_caught(name: str) -> None:
    f, args = MORE_WRONG[name]
    report = cr.verify(f, *args)
    assert not report.ok, str(report)
    assert any("rule of" in c for c in report.culprits) == name.startswith(tuple(PLANTED)), str(report)


PLANTED = [n for n in MORE_WRONG if n not in ("hook", "one step of a fixed point", "list and back", "data")]


def test_the_wrong_op_is_named_with_its_line() -> None:
    def f(x: Any) -> Any:
        y = x * 2
        return sin_slope(y).sum()  # the line

    report = cr.verify(f, X)
    assert any("planted" in c and "# the line" in c for c in report.culprits), report.culprits


def test_what_cuts_a_derivative_is_named() -> None:
    report = cr.verify(forgotten_part, X)
    assert any("cut off" in c and "x.detach()[0] ** 2" in c for c in report.culprits), report.culprits


def test_a_kink_is_noted() -> None:
    report = cr.verify(lambda x: x.abs().sum(), cr.tensor([0.0, 1.0], dtype=cr.float64))
    assert any(r.name == "kinks nearby" and r.state == "note" for r in report.rows)


def test_report_as_page_and_as_assertion(tmp_path: Any) -> None:
    report = cr.verify(lambda x: sin_slope(x).sum(), X)
    page = report.html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    assert "http://" not in page and "https://" not in page
    with pytest.raises(AssertionError, match="reverse mode"):
        report.raise_if_wrong()


def test_nothing_to_differentiate() -> None:
    with pytest.raises(TypeError, match=r"write 1\.0 instead of 1"):
        cr.verify(lambda x: x, 1)


# -- what a function holds ---------------------------------------------------------------------------------------------------


def test_what_a_function_holds_follows_it_to_float64_and_is_as_before_afterwards() -> None:
    cr.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1))
    data, x = cr.randn(3, 2), cr.randn(5, 3)
    before = {k: v.clone() for k, v in net.state_dict().items()}
    parameters = list(net.parameters())

    def loss(x: Any) -> Any:
        made = cr.zeros(5, 2)  # of the default type
        made[:, 0] = (x @ data)[:, 1]
        return net(x).sum() + made.sum()

    report = cr.verify(loss, x)
    assert report.ok, report
    assert cr.get_default_dtype() is cr.float32 and data.dtype is cr.float32
    after = net.state_dict()
    assert all(after[k].dtype is v.dtype and bool((after[k] == v).all()) for k, v in before.items())
    assert all(a is b and a.requires_grad for a, b in zip(parameters, net.parameters(), strict=True))
    net(x).sum().backward()
    assert net[0].weight.grad is not None


def test_what_it_holds_is_put_back_after_an_error_too() -> None:
    w = cr.ones(3)
    with pytest.raises(TypeError, match="no floating tensor"):
        cr.verify(lambda x: (w * x).sum().item() > 0, cr.ones(3))
    assert w.dtype is cr.float32 and cr.get_default_dtype() is cr.float32


def test_a_wrong_rule_in_what_a_lambda_holds_is_found() -> None:
    w = cr.tensor([[1.0, 2.0], [0.5, 1.0]])

    @cr.custom_op
    def bent(x: Any) -> Any:
        return x.sin()

    @bent.vjp
    def _(g: Any, y: Any, x: Any) -> Any:
        return 1.01 * g * x.cos()

    report = cr.verify(lambda x: (bent(x @ w) * 2).sum(), cr.tensor([0.3, 0.7]))
    assert not report.ok and "rule of bent is wrong" in str(report)
    assert "sum is wrong" not in str(report) and "matmul is wrong" not in str(report)


def test_a_branch_on_values_is_right_and_not_made_for_batches() -> None:
    def f(x: Any) -> Any:
        return (x * x).sum() if x.sum() > 0 else x.sum()

    report = cr.verify(f, cr.tensor([0.3, 0.7]))
    assert report.ok
    assert [r.state for r in report.rows if "vmap" in r.name] == ["note", "note"]


def test_a_random_function_blames_no_op() -> None:
    report = cr.verify(lambda x: (x * cr.rand(3)).sum(), cr.ones(3))
    assert (
        not report.ok
        and "another value when it is called again" in str(report)
        and "wrong by itself" not in str(report)
    )


def test_a_gradient_that_is_zero_loses_no_digits() -> None:
    cr.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))  # the bias in front of a normalisation has no effect
    assert "loses" not in str(cr.verify(net, cr.randn(5, 3)))
