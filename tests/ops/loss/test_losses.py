"""What the laws cannot see: CTC against all alignments, ignored targets, class indices out of range, old arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule as cr

F = cr.nn.functional


def collapse(path, blank):
    return tuple(k for k, _ in itertools.groupby(path) if k != blank)


@pytest.mark.parametrize(("target", "blank"), [((1, 2), 0), ((1, 1), 0), ((), 0), ((0, 1, 0), 2), ((1, 2, 1), 0)])
def test_ctc_is_the_sum_over_all_alignments(target, blank):
    rng = np.random.default_rng(0)
    lp = rng.standard_normal((5, 1, 3))
    total = sum(
        np.exp(sum(lp[t, 0, k] for t, k in enumerate(p)))
        for p in itertools.product(range(3), repeat=5)
        if collapse(p, blank) == target
    )
    got = F.ctc_loss(
        cr.tensor(lp), cr.tensor(np.array([target], np.int64)), [5], [len(target)], blank=blank, reduction="sum"
    )
    np.testing.assert_allclose(float(got), -np.log(total), rtol=1e-12)


def test_ctc_impossible_alignments():
    lp = cr.zeros(2, 1, 3, dtype=cr.float64)
    args = (cr.tensor([[1, 1]]), [2], [2])  # a repeated label needs a blank between: three steps
    assert float(F.ctc_loss(lp, *args)) == np.inf
    value = lambda x: F.ctc_loss(x, *args, zero_infinity=True)
    assert float(value(lp)) == 0
    assert np.all(cr.func.grad(value)(lp).numpy() == 0)


def test_ignored_targets_have_no_gradient_even_where_it_is_infinite():
    x = cr.tensor([[0.0, -np.inf], [0.0, 0.0]], dtype=cr.float64)
    g = cr.func.grad(lambda x: F.nll_loss(x, cr.tensor([-100, 1])))(x).numpy()
    np.testing.assert_array_equal(g, [[0, 0], [0, -1]])


@pytest.mark.parametrize("f", [F.nll_loss, F.cross_entropy, F.multi_margin_loss])
def test_classes_out_of_range(f):
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        f(cr.zeros(2, 3), cr.tensor([0, 3]))
    with pytest.raises(IndexError, match="Target 3 is out of bounds"):
        cr.vmap(f)(cr.zeros(2, 3), cr.tensor([0, 3]))


def test_legacy_arguments():
    x, y = cr.tensor([1.0, 3.0]), cr.tensor([0.0, 0.0])
    with pytest.warns(UserWarning, match="reduction='sum'"):
        assert float(F.mse_loss(x, y, size_average=False)) == 10
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        F.mse_loss(x, y, reduction="median")
    assert float(cr.kl_div(x, y, 2)) == float(F.kl_div(x, y, reduction="sum"))
