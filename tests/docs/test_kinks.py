"""The table of kinks and ties in docs/conventions.md: each row holds, at a point that it speaks of."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import chainrule as cr
from docs.site import reference

F = cr.nn.functional
T = cr.tensor
NAN, INF = math.nan, math.inf
# Name, function, point, gradient of the sum of its values.
ROWS: list[tuple[str, Callable[[Any], Any], list[Any], list[Any]]] = [
    ("abs", cr.abs, [0.0], [0.0]), ("sgn", cr.sgn, [0.0], [0.0]), ("relu", cr.relu, [0.0], [0.0]),
    ("leaky_relu", F.leaky_relu, [0.0], [0.01]), ("prelu", lambda x: F.prelu(x, T([0.25])), [0.0], [0.25]),
    ("elu", lambda x: F.elu(x, 2.0), [0.0], [2.0]), ("celu", lambda x: F.celu(x, 2.0), [0.0], [1.0]), ("selu", F.selu, [0.0], [1.7580993]),
    ("hardshrink", lambda x: F.hardshrink(x, 0.5), [0.5, -0.5], [0.0, 0.0]), ("softshrink", lambda x: F.softshrink(x, 0.5), [0.5, -0.5], [0.0, 0.0]),
    ("threshold", lambda x: F.threshold(x, 0.5, 9.0), [0.5], [0.0]), ("relu6", F.relu6, [0.0, 6.0], [0.0, 0.0]), ("hardsigmoid", F.hardsigmoid, [-3.0, 3.0], [0.0, 0.0]),
    ("hardswish", F.hardswish, [-3.0, 3.0], [0.0, 1.0]), ("clamp", lambda x: cr.clamp(x, 0.0, 1.0), [0.0, 1.0], [1.0, 1.0]), ("hardtanh", F.hardtanh, [-1.0, 1.0], [0.0, 0.0]),
    ("maximum", lambda x: cr.maximum(x, T([1.0])), [1.0], [0.5]), ("minimum", lambda x: cr.minimum(x, T([1.0])), [1.0], [0.5]),
    ("fmax", lambda x: cr.fmax(x, T([1.0])), [1.0], [1.0]), ("fmin", lambda x: cr.fmin(T([1.0]), x), [1.0], [0.0]),
    ("amax", lambda x: x.amax(0), [1.0, 1.0], [0.5, 0.5]), ("amin", lambda x: x.amin(0), [1.0, 1.0], [0.5, 0.5]), ("median", lambda x: x.median(), [1.0, 1.0, 1.0], [1 / 3] * 3),
    ("kthvalue", lambda x: x.kthvalue(1, 0)[0], [1.0, 1.0], [1.0, 0.0]), ("norm", lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]), ("sqrt", cr.sqrt, [0.0], [INF]),
    ("floor", cr.floor, [1.0, 1.5], [0.0, 0.0]), ("ceil", cr.ceil, [1.0], [0.0]), ("round", cr.round, [0.5], [0.0]), ("trunc", cr.trunc, [1.0], [0.0]), ("sign", cr.sign, [0.0], [0.0]),
    ("heaviside", lambda x: cr.heaviside(x, T([0.5])), [0.0], [0.0]), ("frac", cr.frac, [1.0], [1.0]), ("fmod", lambda x: cr.fmod(x, 1.0), [1.0], [1.0]),
    ("remainder", lambda x: cr.remainder(x, 1.0), [1.0], [1.0]), ("angle", cr.angle, [0.0], [0.0]), ("atan2", lambda x: cr.atan2(x, T([0.0])), [0.0], [0.0]),
    ("copysign", lambda x: cr.copysign(x, T([1.0])), [0.0], [0.0]), ("hypot", lambda x: cr.hypot(x, T([0.0])), [0.0], [NAN]), ("rsqrt", cr.rsqrt, [0.0], [-INF]),
    ("xlogy", lambda x: cr.xlogy(x, x), [0.0], [0.0]), ("nan_to_num", cr.nan_to_num, [NAN, INF], [0.0, 0.0]), ("logit", lambda x: cr.logit(x, 0.1), [0.1, 0.05], [11.111111, 0.0]),
    ("std", lambda x: x.std(), [1.0, 1.0], [0.0, 0.0]), ("l1_loss", lambda x: F.l1_loss(x, T([1.0])), [1.0], [0.0]), ("dist", lambda x: cr.dist(x, T([1.0])), [1.0], [0.0]),
    ("triplet_margin_loss", lambda x: F.triplet_margin_loss(x, T([[1.0]]), T([[1.0]])), [[1.0]], [[0.0]]),
    ("hinge_embedding_loss", lambda x: F.hinge_embedding_loss(x, T([-1.0])), [1.0], [-1.0]), ("margin_ranking_loss", lambda x: F.margin_ranking_loss(x, T([0.0]), T([1.0])), [0.0], [-1.0]),
    ("multi_margin_loss", lambda x: F.multi_margin_loss(x, T([0])), [[1.0, 0.0]], [[0.0, 0.0]]), ("max_pool1d", lambda x: F.max_pool1d(x, 2), [[[1.0, 1.0]]], [[[1.0, 0.0]]]),
    ("max_pool2d", lambda x: F.max_pool2d(x, (1, 2)), [[[[1.0, 1.0]]]], [[[[1.0, 0.0]]]]), ("adaptive_max_pool1d", lambda x: F.adaptive_max_pool1d(x, 1), [[[1.0, 1.0]]], [[[1.0, 0.0]]]),
    ("cummax", lambda x: cr.cummax(x, 0).values[-1], [1.0, 1.0], [0.0, 1.0]), ("cummin", lambda x: cr.cummin(x, 0).values[-1], [1.0, 1.0], [0.0, 1.0]),
    ("quantile", lambda x: cr.quantile(x, 0.5), [1.0, 1.0, 1.0], [0.0, 1.0, 0.0]), ("prod", lambda x: x.prod(), [0.0, 2.0, 3.0], [6.0, 0.0, 0.0]),
    ("sort", lambda x: x.sort()[0][1], [1.0, 1.0], [0.0, 1.0]), ("topk", lambda x: x.topk(1)[0], [1.0, 1.0], [1.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize("name,f,x,expected", ROWS, ids=[r[0] for r in ROWS])
def test_a_row_holds(name: str, f: Callable[[Any], Any], x: list[Any], expected: list[Any]) -> None:
    assert name in reference.kinks(), "the reference finds the row by this name"
    g = cr.func.grad(lambda v: f(v).sum())(cr.tensor(x, dtype=cr.float32))
    assert cr.allclose(g, cr.tensor(expected, dtype=cr.float32), equal_nan=True), g


def test_rows_are_nearly_all_tried() -> None:
    """Those that are not here are the tests' of their ops: powers, eigenvalues, complex values and variants of what is here."""
    tried = {r[0] for r in ROWS}
    assert len(tried) > 55 and len(set(reference.kinks()) - tried) < 30
