"""The functions of examples/numpy_code as they stand: grad, jvp and hessian agree with central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.func import grad, hessian, jvp
from examples.numpy_code import numerics, physics, statistics

R = np.random.default_rng(3)
CASES: list[tuple[Any, np.ndarray]] = [
    (physics.pendulum_energy_drift, np.array([0.8, 0.3, 1.2])),
    (physics.lorenz_end, np.array([10.0, 28.0, 2.6, 1.0, 0.9, 1.1])),
    (physics.heat_rod, R.normal(size=7)),
    (physics.lens_focus, np.array([2.0, 3.0, 0.2])),
    (physics.ising_energy, R.normal(size=16) * 0.5),
    (physics.ray_march, np.array([0.1, -0.1, 3.0, 1.1])),
    (physics.molecule, (np.indices((2, 2, 1)).reshape(3, -1).T * 1.3 + 0.1 * R.normal(size=(4, 3))).ravel()),
    (statistics.least_squares, R.normal(size=4)),
    (statistics.logistic_regression, R.normal(size=4)),
    (statistics.hmm_forward, R.normal(size=12)),
    (statistics.kalman_filter, np.array([-1.0, -0.5])),
    (statistics.gaussian_process, np.array([0.1, -1.0, -2.0])),
    (statistics.mixture, np.array([0.5, -0.7, 0.1, -0.2, 0.3])),
    (statistics.network, R.normal(size=30) * 0.4),
    (statistics.principal_axis, R.normal(size=18)),
    (numerics.spline_energy, R.normal(size=5)),
    (numerics.option_price, np.array([1.0, 1.1, 0.3, 0.05])),
    (numerics.spectrum, R.normal(size=16)),
    (numerics.rosenbrock, R.normal(size=4)),
    (numerics.bezier_length, R.normal(size=8)),
    (numerics.equilibrium, np.array([0.5, 1.5, 2.0])),
]


@pytest.mark.parametrize(("f", "x"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_unchanged(f: Any, x: np.ndarray) -> None:
    g = grad(f)(x)
    assert type(g) is np.ndarray and g.shape == x.shape and g.dtype == x.dtype
    e = 1e-6
    differences = np.array([(f(x + e * v) - f(x - e * v)) / (2 * e) for v in np.eye(x.size)])
    scale = np.abs(differences).max() + 1e-3
    np.testing.assert_allclose(g, differences, rtol=1e-6, atol=3e-8 * scale)
    value, t = jvp(f, (x,), (x + 1,))
    assert value == pytest.approx(f(x), rel=1e-12)
    assert t == pytest.approx(g @ (x + 1), rel=1e-9, abs=1e-11 * scale)
    h = hessian(f)(x)
    second = np.array([(grad(f)(x + e * v) - grad(f)(x - e * v)) / (2 * e) for v in np.eye(x.size)])
    np.testing.assert_allclose(h, second, rtol=1e-5, atol=1e-7 * (np.abs(second).max() + 1e-3))


def test_there_are_twenty() -> None:
    assert len(CASES) >= 20
