"""Maps along axes and maxima over windows, compiled, against NumPy's, for windows of every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.kernels import axes, compiler
from chainrule.ops.conv.maps import Maps, Taps, maps_of
from chainrule.ops.conv.pool_max import max_windows_p
from chainrule.ops.conv.pool_sum import adaptive_taps, window_taps
from chainrule.ops.conv.resample import taps_of

pytestmark = pytest.mark.skipif(not compiler.available(), reason="no compiler here: plain bodies run")


def kinds(n: int) -> list[Taps]:
    return [
        window_taps(n, 2, 2, 0, 1, n // 2),
        window_taps(n, 3, 1, 1, 2, n - 2),
        adaptive_taps(n, 3),
        adaptive_taps(n, n + 4),
        taps_of("bilinear", n, 2 * n, None, False, False, True),
        taps_of("bicubic", n, n + 5, None, True, False, True),
        taps_of("nearest", n, 3 * n, None, False, False, True),
        taps_of("bilinear", n, 3, None, False, True, True),
    ]


def plain(f: Any, *args: Any) -> Any:
    """What runs without kernels."""
    with pytest.MonkeyPatch.context() as m:
        for name in ("sums", "maxima"):
            m.setattr(axes, name, _refuse)
        return f(*args)


def _largest(x: Any, taps: Any) -> Any:
    return max_windows_p.body(x, taps=taps)


def _refuse(*args: Any) -> Any:
    raise axes.NotSupported


@pytest.mark.parametrize("kind, tolerance", [(np.float64, 1e-14), (np.float32, 1e-6)])
@pytest.mark.parametrize("which", range(8))
def test_maps_and_their_transposes(which: int, kind: Any, tolerance: float) -> None:
    rng = np.random.default_rng(which)
    for n, lead, dims in ((5, (2, 3), 1), (33, (2,), 2), (16, (1,), 2), (7, (), 3)):
        taps = tuple(kinds(n + k)[(which + k) % 8] for k in range(dims))
        for by in (None, tuple(np.arange(1, t.m + 1) for t in taps)):
            maps = Maps(taps, by)
            x = rng.standard_normal((*lead, *(t.n for t in taps))).astype(kind)
            y = maps.apply(x)
            np.testing.assert_allclose(y, plain(maps.apply, x), atol=tolerance * max(1, abs(y).max()))
            g = rng.standard_normal(y.shape).astype(kind)
            back = maps.transposed.apply(g)
            np.testing.assert_allclose(back, plain(maps.transposed.apply, g), atol=tolerance * max(1, abs(back).max()))
            np.testing.assert_allclose((y * g).sum(), (x * back).sum(), rtol=1e-3, atol=1e-3)
            np.testing.assert_array_equal(maps.apply(np.asfortranarray(x)), y)


@pytest.mark.parametrize("which", range(4))
def test_maxima(which: int) -> None:
    rng = np.random.default_rng(which)
    for n, lead in ((6, (2, 3)), (33, (2,)), (17, (1,))):
        for dims in (1, 2, 3):
            taps = tuple(kinds(n)[(which + k) % 4] for k in range(dims))
            x = rng.integers(-2, 3, (*lead, *(t.n for t in taps))).astype(np.float32)  # many ties
            x[rng.random(x.shape) < 0.05] = np.nan
            x[rng.random(x.shape) < 0.3] = -np.inf
            got, want = max_windows_p.body(x, taps=taps), plain(_largest, x, taps)
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_an_infinite_entry_spoils_what_reads_it_alone() -> None:
    x = np.ones((1, 9, 9))
    x[0, 4, 4] = np.inf
    y = maps_of((adaptive_taps(9, 4), adaptive_taps(9, 4)), ((3, 3, 3, 3),) * 2).apply(x)
    assert np.isfinite(y).sum() == 16 - 4 and np.isinf(y[0, 1:3, 1:3]).all()
