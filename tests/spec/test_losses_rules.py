"""Rules of losses: every reduction, weights, targets that are differentiated, labels that are ignored."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr

from .judge import array, gradient, gradients, judge, row, same, values

REDUCTION = pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
INF = float("inf")


def unit(*shape: int, seed: int = 0) -> np.ndarray:
    return array(*shape, seed=seed, low=0.1, high=0.9)


@row("bce")
@REDUCTION
def test_bce(reduction: str) -> None:
    f = lambda m, p, t: m.nn.functional.binary_cross_entropy(p, t, reduction=reduction)
    judge("F.binary_cross_entropy", f, unit(2, 3), unit(2, 3, seed=1))
    g = lambda m, p, t, w: m.nn.functional.binary_cross_entropy(p, t, w, reduction=reduction)
    for shape in ((2, 3), (3,)):
        w = unit(*shape, seed=2)
        values(g, unit(2, 3), unit(2, 3, seed=1), w)
        h = lambda m, p, t, w=w: g(m, p, t, m.tensor(w))
        judge("F.binary_cross_entropy", h, unit(2, 3), unit(2, 3, seed=1))
        judge("F.binary_cross_entropy", g, unit(2, 3), unit(2, 3, seed=1), w, oracle="value")
    # Certain predictions: the logarithm is cut at -100, and nothing is infinite.
    p, t = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 1.0, 0.0])
    values(f, p, t)
    # PyTorch bounds the denominator by the 32-bit number next to 1e-12.
    gradients(lambda m, p, t: f(m, p, t.detach()), p, t, tol=1e-8)
    values(f, unit(0), unit(0))


@row("bce")
@REDUCTION
def test_bce_with_logits(reduction: str) -> None:
    name = "F.binary_cross_entropy_with_logits"
    call = lambda m, x, t, **k: m.nn.functional.binary_cross_entropy_with_logits(x, t, reduction=reduction, **k)
    x, t = array(2, 3), unit(2, 3, seed=1)
    judge(name, lambda m, x, t: call(m, x, t), x, t)
    for w in (unit(2, 3, seed=2), unit(3, seed=2)):
        for p in (unit(3, seed=3) + 1, np.array(2.0)):
            f = lambda m, x, t, w=w, p=p: call(m, x, t, weight=m.tensor(w), pos_weight=m.tensor(p))
            judge(name, f, x, t)
    # The weights have derivatives too.
    g = lambda m, x, t, w, p: call(m, x, t, weight=w, pos_weight=p)
    judge(name, g, x, t, unit(3, seed=2), unit(3, seed=3), oracle="value")
    far = np.array([-800.0, 800.0, 0.0, -40.0])
    judge(name, lambda m, x, t: call(m, x, t), far, np.array([0.0, 1.0, 0.5, 1.0]), smooth=False)


PAIRS = {
    "mse_loss": {},
    "l1_loss": {},
    "smooth_l1_loss": {"beta": 0.7},
    "huber_loss": {"delta": 0.7},
    "soft_margin_loss": {},
    "kl_div": {},
    "kl_div-log": {"log_target": True},
    "poisson_nll_loss": {},
}


@row("losses")
@REDUCTION
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses_of_pairs(name: str, reduction: str) -> None:
    op, kw = name.split("-")[0], PAIRS[name]
    f = lambda m, x, t: getattr(m.nn.functional, op)(x, t, reduction=reduction, **kw)
    x, t = array(2, 3), array(2, 3, seed=1)
    if op == "soft_margin_loss":
        judge(f"F.{op}", f, x, np.sign(t), oracle="value")
        gradients(lambda m, x: f(m, x, m.tensor(np.sign(t))), x)
        # log(1 + exp(800)) is 800, where PyTorch overflows.
        judge(f"F.{op}", f, np.array([800.0, -800.0]), np.array([1.0, 1.0]), smooth=False, oracle="")
        far = cr.nn.functional.soft_margin_loss(cr.tensor([-800.0]), cr.tensor([1.0]), reduction=reduction)
        assert far.item() == pytest.approx(800)
        return
    if op in ("kl_div", "poisson_nll_loss"):
        t = t if kw else unit(2, 3, seed=1)
        judge(f"F.{op}", f, x, t, oracle="value")
        gradients(lambda m, x: f(m, x, m.tensor(t)), x)
    else:
        judge(f"F.{op}", f, x, t)
    if op == "kl_div":
        if reduction == "mean":
            g = lambda m, x: m.nn.functional.kl_div(x, m.tensor(t), reduction="batchmean", **kw)
            judge("F.kl_div", g, x)
        if not kw:
            # 0 log 0 counts as 0.
            values(f, x, np.array([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]]))
            gradients(lambda m, x: f(m, x, m.tensor([[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], dtype=m.float64)), x)
    # At the kinks, and where nothing is compared.
    if op in ("l1_loss", "smooth_l1_loss", "huber_loss"):
        judge(f"F.{op}", f, np.array([1.0, 0.7, -0.7, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), smooth=False)
    values(f, np.zeros((0, 2)), np.zeros((0, 2)))
    gradients(lambda m, x: f(m, x, m.zeros(0, 2, dtype=m.float64)), np.zeros((0, 2)))


@row("losses")
@REDUCTION
@pytest.mark.parametrize("kw", [{}, {"p": 2}, {"margin": 0.3}, {"weight": True}], ids=str)
def test_multi_margin(reduction: str, kw: dict) -> None:
    k = dict(kw)
    weight = k.pop("weight", False)
    w = unit(4, seed=3)

    def f(m, x, t):
        return m.nn.functional.multi_margin_loss(
            x, t, reduction=reduction, **k, **({"weight": m.tensor(w)} if weight else {})
        )

    judge("F.multi_margin_loss", f, array(3, 4), np.array([0, 3, 1]))
    judge("F.multi_margin_loss", f, array(4), np.array(2))


@row("losses")
@REDUCTION
def test_multilabel_margin(reduction: str) -> None:
    f = lambda m, x, t: m.nn.functional.multilabel_margin_loss(x, t, reduction=reduction)
    # Labels end at the first -1.
    judge("F.multilabel_margin_loss", f, array(2, 4), np.array([[3, 0, -1, 1], [-1, 2, 0, 1]]))
    judge("F.multilabel_margin_loss", f, array(4), np.array([1, 3, 2, 0]))
    g = lambda m, x, t: m.nn.functional.multilabel_soft_margin_loss(x, t, reduction=reduction)
    judge("F.multilabel_soft_margin_loss", g, array(2, 4), np.array([[1.0, 0, 1, 0], [0, 0, 1, 1]]), oracle="value")


@row("losses")
@REDUCTION
def test_nll(reduction: str) -> None:
    w = unit(4, seed=3)
    for x, t in (
        (array(3, 4), np.array([0, 3, 1])),
        (array(3, 4), np.array([0, -100, 1])),
        (array(4), np.array(2)),
        (array(2, 4, 3), np.array([[0, 1, 3], [2, 2, -100]])),
        (array(2, 4, 2, 2), np.array([[[0, 1], [3, 2]], [[2, 2], [1, 0]]])),
    ):
        judge("F.nll_loss", lambda m, x, t: m.nn.functional.nll_loss(x, t, reduction=reduction), x, t)
        f = lambda m, x, t: m.nn.functional.nll_loss(x, t, m.tensor(w), reduction=reduction, ignore_index=1)
        judge("F.nll_loss", f, x, np.where(t < 0, 1, t))


@row("losses")
@REDUCTION
def test_nll_where_everything_is_ignored(reduction: str) -> None:
    f = lambda m, x, t: m.nn.functional.nll_loss(x, t, reduction=reduction)
    values(f, array(2, 3), np.array([-100, -100]))
    gradients(f, array(2, 3), np.array([-100, -100]))
    values(f, np.zeros((0, 3)), np.zeros(0, int))
    gradients(f, np.zeros((0, 3)), np.zeros(0, int))


@row("losses")
@REDUCTION
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(reduction: str, smoothing: float) -> None:
    w = unit(4, seed=3)
    kw = {"reduction": reduction, "label_smoothing": smoothing}
    for x, t in (
        (array(3, 4), np.array([0, -100, 1])),
        (array(4), np.array(2)),
        (array(2, 4, 2), np.array([[0, 1], [2, 2]])),
    ):
        judge("F.cross_entropy", lambda m, x, t: m.nn.functional.cross_entropy(x, t, **kw), x, t)
        judge("F.cross_entropy", lambda m, x, t: m.nn.functional.cross_entropy(x, t, m.tensor(w), **kw), x, t)
    # Probabilities as targets are differentiable.
    judge("F.cross_entropy", lambda m, x, t: m.nn.functional.cross_entropy(x, t, **kw), array(3, 4), unit(3, 4, seed=1))
    f = lambda m, x, t: m.nn.functional.cross_entropy(x, t, m.tensor(w), **kw)
    judge("F.cross_entropy", f, array(2, 4, 2), unit(2, 4, 2, seed=1))
    big = np.array([[1000.0, -1000.0, 0.0, 1.0]])
    judge(
        "F.cross_entropy", lambda m, x, t: m.nn.functional.cross_entropy(x, t, **kw), big, np.array([1]), smooth=False
    )


@row("losses")
def test_losses_refuse_an_unknown_reduction() -> None:
    for name in ("mse_loss", "l1_loss", "huber_loss", "kl_div"):
        with pytest.raises((ValueError, RuntimeError), match="average"):
            getattr(cr.nn.functional, name)(cr.ones(2), cr.ones(2), reduction="average")


# -- ctc -------------------------------------------------------------------------------------------------------------------


def logits(t: int = 6, n: int = 2, c: int = 4) -> np.ndarray:
    return array(t, n, c)


@row("ctc_loss")
@REDUCTION
@pytest.mark.parametrize("zero_infinity", [False, True])
def test_ctc(reduction: str, zero_infinity: bool) -> None:
    targets = np.array([[1, 2, 2], [3, 1, 0]])

    def f(m, x, t):
        logp = m.nn.functional.log_softmax(x, -1)
        return m.nn.functional.ctc_loss(logp, t, (6, 5), (3, 2), reduction=reduction, zero_infinity=zero_infinity)

    judge("F.ctc_loss", f, logits(), targets, order=3 if reduction == "sum" else 2)


@row("ctc_loss")
def test_ctc_layouts() -> None:
    def joined(m, x, t):
        return m.nn.functional.ctc_loss(m.nn.functional.log_softmax(x, -1), t, (6, 6), (2, 3), reduction="none")

    judge("F.ctc_loss", joined, logits(), np.array([1, 2, 3, 3, 1]))

    def single(m, x, t):
        return m.nn.functional.ctc_loss(m.nn.functional.log_softmax(x, -1), t, (5,), (2,), blank=3)

    judge("F.ctc_loss", single, array(5, 1, 4), np.array([[0, 2]]))

    def empty(m, x, t):
        return m.nn.functional.ctc_loss(m.nn.functional.log_softmax(x, -1), t, (4, 3), (0, 2), reduction="none")

    judge("F.ctc_loss", empty, logits(4), np.array([[0, 0], [1, 2]]))


@row("ctc_loss")
def test_ctc_of_targets_that_do_not_fit() -> None:
    # Three equal labels need five steps: with three the loss is infinite, and with zero_infinity it and its gradient are 0.
    targets = np.array([[1, 1, 1], [1, 2, 3]])

    def f(m, x, t, zero=True):
        logp = m.nn.functional.log_softmax(x, -1)
        return m.nn.functional.ctc_loss(logp, t, (3, 3), (3, 3), reduction="none", zero_infinity=zero)

    judge("F.ctc_loss", f, logits(3), targets)
    g = gradient(f, logits(3), targets)[0]
    assert not g[:, 0].any() and g[:, 1].any()
    values(lambda m, x, t: f(m, x, t, False), logits(3), targets)
    y = f(cr, cr.tensor(logits(3)), cr.tensor(targets), False).numpy()
    same(y[:1], np.array([INF]), "infinite")
