"""The compiled loops of attention against NumPy's products, over sizes around vectors and tiles, layouts and shared heads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import attention, compiler
from chainrule.ops.activation.attention import _hidden, attend, attend_back

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler here: plain bodies run")
SIZES = [(1, 1, 1, 1), (7, 9, 3, 5), (8, 8, 8, 8), (17, 16, 15, 33), (33, 40, 16, 1), (5, 130, 64, 31)]


def draw(l: int, s: int, d: int, e: int, kind: Any, lead: tuple[int, ...] = (2,)) -> list[Any]:
    rng = np.random.default_rng(l * s)
    return [rng.standard_normal((*lead, *z)).astype(kind) for z in ((l, d), (s, d), (s, e), (l, e))]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("kind, tolerance", [(np.float64, 1e-13), (np.float32, 2e-5)])
def test_products(size: tuple[int, int, int, int], causal: bool, kind: Any, tolerance: float) -> None:
    q, k, v, g = draw(*size, kind)
    hide = _hidden(q, k, causal)
    np.testing.assert_allclose(attention.attention(q, k, v, 0.4, causal), attend(q, k, v, 0.4, hide)[0], atol=tolerance)
    got, want = attention.attention_back(g, q, k, v, 0.4, causal), attend_back(g, q, k, v, 0.4, hide)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, atol=tolerance)


def test_layouts_and_shared_heads_change_nothing() -> None:
    q, k, v, g = draw(9, 12, 8, 8, np.float64, (3, 2))
    want = attention.attention(q, k, v, 1.0, True)
    turned = [np.ascontiguousarray(x.swapaxes(-1, -3)).swapaxes(-1, -3) for x in (q, k, v)]
    np.testing.assert_array_equal(attention.attention(*turned, 1.0, True), want)
    np.testing.assert_array_equal(
        attention.attention(q, k[:1], v[0], 1.0, False)[1],
        attention.attention(q[1], k[0], v[0], 1.0, False),
    )
    gq, gk, gv = attention.attention_back(g, q, k[:1], v[0], 1.0, True)
    assert gq.shape == q.shape and gk.shape == (3, 2, 12, 8) and gv.shape == (3, 2, 12, 8)
    np.testing.assert_array_equal(gk[2], attention.attention_back(g[2], q[2], k[0], v[0], 1.0, True)[1])


def test_one_infinite_score_and_large_scores() -> None:
    q, k, v, _ = draw(8, 8, 4, 4, np.float64, ())
    assert np.isfinite(
        attention.attention(q * 1e4, k, v, 1.0, False)
    ).all()  # no overflow: the largest score is taken off
    k[5] = np.inf
    q[:] = abs(q)
    got = attention.attention(q, k, v, 1.0, True)
    assert np.isfinite(got[:5]).all() and np.isnan(got[5:]).all()
