"""Compositions on small arrays as straight-line code: what it computes, and when it steps aside."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core import straight as code
from chainrule.core.op import Op
from chainrule.core.short import short_rule

F = cr.nn.functional
rng = np.random.default_rng(5)


def _leaves(*shapes: tuple[int, ...]) -> list[Any]:
    return [cr.tensor(rng.standard_normal(s), requires_grad=True) for s in shapes]


CASES = [
    lambda x, y: F.smooth_l1_loss(x, y),
    lambda x, y: F.cosine_similarity(x, y, dim=-1).sum(),
    lambda x, y: cr.var_mean(x * y, dim=1)[0].sum(),
    lambda x, y: cr.max(x + y, dim=0).values.sum() * x.amin(),
    lambda x, y: cr.linalg.qr(x @ y.mT).R.sum(),
    lambda x, y: cr.linalg.lu_factor(x @ y.mT)[0].sum(),
    lambda x, y: F.hinge_embedding_loss(x * x, cr.ones(4, 3, dtype=x.dtype), reduction="sum") * y.prod(),
]


@pytest.mark.parametrize("f", CASES)
def test_code_computes_what_the_ops_do(f: Any) -> None:
    xs = _leaves((4, 3), (4, 3))
    runs = []
    for _ in range(4):  # by the ops, while it is noted, by the code
        y = f(*xs)
        runs.append([y, *cr.autograd.grad(y, xs)])
    for run in runs[1:]:
        for a, b in zip(run, runs[0], strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-13, atol=1e-14)
    y = f(*xs)
    (g,) = cr.autograd.grad(y, xs[0], create_graph=True)
    (h,) = cr.autograd.grad((g * g).sum(), xs[0])
    want = cr.func.grad(lambda x: (cr.func.grad(f)(x, xs[1].detach()) ** 2).sum())(xs[0].detach())
    np.testing.assert_allclose(h.numpy(), want.numpy(), rtol=1e-9, atol=1e-11)


def test_there_is_code_after_two_calls() -> None:
    """In a process of its own: autocast, once it was used, leaves compositions as they stand."""
    code = (
        "import chainrule as cr; from chainrule.core import straight; made = []\n"
        "class Counted(straight.Plan):\n"
        "    __slots__ = ()\n"
        "    def __init__(self, *args): super().__init__(*args); made.append(self.spec)\n"
        "straight.Plan = Counted\n"
        "x, y = cr.rand(5, 2, requires_grad=True), cr.rand(5, 2)\n"
        "for k in range(4): cr.nn.functional.mse_loss(x, y).backward(); print(len(made), end=' ')\n"
        "print(type(cr.nn.functional.mse_loss(x, y).grad_fn).__name__)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, *later, name = run.stdout.split()
    assert first == "0" != later[0] and len(set(later)) == 1 and name == "MseLossBackward0"


def test_checks_of_the_elements_are_made_at_every_call() -> None:
    x = _leaves((3, 4))[0]
    for _ in range(4):
        F.cross_entropy(x, cr.tensor([0, 1, 3])).backward()
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        F.cross_entropy(x, cr.tensor([0, 1, 4]))


def test_warnings_are_given_at_every_call() -> None:
    x, y = _leaves((3, 4), (4,))
    for _ in range(4):
        with pytest.warns(UserWarning, match="broadcast"):
            F.mse_loss(x, y)


def test_numbers_that_are_equal_and_not_the_same() -> None:
    x = _leaves((3,))[0].detach()
    for v in (0.0, -0.0, 1, 1.0, True) * 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y = cr.addcdiv(x, cr.ones(3, dtype=x.dtype), cr.full((3,), 2.0, dtype=x.dtype), value=v)
        np.testing.assert_allclose(y.numpy(), x.numpy() + v / 2)


def test_the_default_type_is_part_of_a_call() -> None:
    """Of whole numbers a composition makes what the default says now, not when it was noted."""
    x = cr.arange(1, 5)
    for f in (lambda: cr.logsumexp(x, 0), lambda: cr.trapezoid(x), lambda: cr.cov(x), lambda: cr.special.entr(x)):
        for _ in range(4):
            assert f().dtype is cr.float32
        cr.set_default_dtype(cr.float64)
        try:
            assert f().dtype is cr.float64
        finally:
            cr.set_default_dtype(cr.float32)
        assert f().dtype is cr.float32


def test_writes_after_the_call_change_no_derivative() -> None:
    for _ in range(4):
        (x,) = _leaves((3, 3))
        h = x * 2.0
        y = h.prod()
        with cr.no_grad():
            x.mul_(0.5)
        want = 2.0 * y.item() / (h.detach().numpy())
        h.zero_()
        np.testing.assert_allclose(cr.autograd.grad(y, x)[0].numpy(), want, rtol=1e-10)


def test_running_statistics_are_written_at_every_call() -> None:
    mean, var = cr.zeros(2), cr.ones(2)
    x = cr.ones(3, 2)
    for k in range(4):
        F.batch_norm(x, mean, var, training=True, momentum=0.5)
        np.testing.assert_allclose(mean.numpy(), 1 - 0.5 ** (k + 1))


def test_a_rule_of_somebody_else_is_not_noted() -> None:
    calls = []

    class Twice(cr.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            calls.append(g)
            return g * len(calls)

    (x,) = _leaves((3,))
    for k in range(5):
        (g,) = cr.autograd.grad(Twice.apply(x).sum(), x)
        assert g.tolist() == [k + 1.0] * 3


def test_rules_that_choose_have_short_forms() -> None:
    from chainrule.core.op import OPS

    for name in ("pow", "xlogy", "logaddexp2", "maximum", "fmax", "atan2"):
        op: Op = OPS[name]
        assert short_rule(op)[1] is not None, name


def test_infinities_and_nan_in_written_code_warn_nobody():
    """They are values; what NumPy says of them is not for the caller, at whichever call and under whichever filter."""
    code = (
        "import warnings; import chainrule as cr; F = cr.nn.functional\n"
        "x = cr.tensor([[0.0, float('inf')], [-1.0, 2.0]], dtype=cr.float64, requires_grad=True)\n"
        "for _ in range(4):\n"
        "    for f in (lambda v: F.cosine_similarity(v, v * v).sum(), lambda v: (v.log() / v).sum(), lambda v: F.mse_loss(v, -v),\n"
        "              lambda v: F.softplus(v).prod(), lambda v: v.std(), lambda v: cr.quantile(v, 0.3), lambda v: v.logsumexp(0).sum()):\n"
        "        y = f(x); y.backward(); cr.autograd.grad(f(x), x)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "Warning" not in run.stderr, run.stderr


def test_what_a_choice_hides_stays_hidden_at_every_call():
    """The cotangent of the branch not taken is absent for all that comes before it too, not a zero that an infinite slope makes NaN."""

    def f(v):
        return cr.where(cr.isnan(v), 0.0, v.std(-1, keepdim=True)).sum()

    x = cr.tensor([[1.0, float("nan"), 2.0], [3.0, 0.5, 0.7]], dtype=cr.float64)
    first = cr.func.grad(f)(x)
    a = np.array([[1.0, np.nan, 2.0]])
    for _ in range(3):
        assert cr.equal(cr.func.grad(f)(x).nan_to_num(7.0), first.nan_to_num(7.0))
        got = cr.func.grad(lambda v: np.sum(np.nanstd(v, axis=1)))(a)
        np.testing.assert_allclose(got, [[-0.5, 0.0, 0.5]], atol=1e-12)


HIDING = {
    "a choice of choices": lambda v: cr.where(v > 0, cr.where(v > 1, v.log(), v.sqrt()), 0.0),
    "a choice around a composition": lambda v: cr.where(v > 0, F.softshrink(v.sqrt(), 0.1), v),
    "a composition of a slope that is infinite": lambda v: F.leaky_relu(v.sqrt()).masked_fill(v <= 0, 1.0),
    "sums that leave out": lambda v: cr.nansum(cr.where(v > 0, v.sqrt(), float("nan")), -1),
    "moved, then chosen": lambda v: F.hardshrink(v.sqrt().flip(-1)).masked_fill(v.flip(-1) <= 0, 0.0),
}


@pytest.mark.parametrize("case", HIDING)
@pytest.mark.parametrize("again", [False, True], ids=["first", "create_graph"])
def test_masks_go_through_straight_line_code(case, again, monkeypatch):
    """Where a cotangent is absent is known before the code, in it and after it, as it is where the ops run one by one."""

    def slope():
        x = cr.tensor([[0.0, 2.0, 0.5], [1.5, 0.0, 0.0]], dtype=cr.float64, requires_grad=True)
        y = HIDING[case](x)
        return cr.autograd.grad(y, x, cr.ones_like(y), create_graph=again)[0].detach()

    got = [slope() for _ in range(4)]
    monkeypatch.setattr(code, "PAUSED", ["here"])
    want = slope()
    assert want.isfinite().all()
    for g in got:
        cr.testing.assert_close(g, want, rtol=1e-14, atol=1e-14)


def test_a_choice_in_code_is_called_by_hand():
    """A node called as a function gives cotangents, whatever is absent in them."""
    for _ in range(3):
        x = cr.tensor([1.0, -1.0], requires_grad=True)
        y = x.masked_fill(x < 0, 0.5)
        got = y.grad_fn(cr.tensor([2.0, 3.0]))  # of the op itself also for what has none
        [g] = [v for v in (got if type(got) is tuple else (got,)) if v is not None and v.ndim]
        assert cr.equal(g, cr.tensor([2.0, 0.0]))


def test_what_stands_around_a_function_stays_when_it_is_published() -> None:
    x = cr.tensor([[1.0, 0.0], [0.0, 0.0]])
    hit, top = cr.zeros(2, dtype=cr.bool), cr.zeros(2)
    for _ in range(3):
        cr.any(x, dim=1, out=hit)
        cr.amax(x, axis=1, out=top)
        assert hit.tolist() == [True, False]
        assert top.tolist() == [1.0, 0.0]
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
            cr.amax(x, dim=1, out=cr.zeros(2, dtype=cr.float64))
        with pytest.raises(RuntimeError, match="only supports bool tensor for result"):
            cr.any(x, dim=1, out=cr.zeros(2))
        hit.fill_(False)
        top.fill_(7.0)


def test_code_keeps_nothing_of_the_call_that_it_was_noted_on() -> None:
    """Its arguments carry graphs."""
    import gc
    import weakref

    (w,) = _leaves((3, 5))
    nodes = []
    for k in range(4):
        h = cr.tanh(w * k)
        nodes.append(weakref.ref(h._aux))
        F.smooth_l1_loss(h, cr.ones(3, 5, dtype=w.dtype), beta=0.7).backward()
        del h
    gc.collect()
    assert [n() for n in nodes] == [None] * 4
