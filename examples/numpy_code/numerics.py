"""Small functions of numerical analysis, graphics and finance, written for NumPy."""

import numpy as np

KNOTS = np.array([0.0, 1.0, 2.0, 3.0, 4.0])


def spline_energy(y):
    """The bending energy of the natural cubic spline through five values."""
    h = np.diff(KNOTS)
    n = len(KNOTS)
    m = np.zeros((n, n))
    m[0, 0] = m[-1, -1] = 1.0
    for i in range(1, n - 1):
        m[i, i - 1], m[i, i], m[i, i + 1] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
    slope = np.diff(y) / h
    right = np.concatenate([[0.0], 6 * np.diff(slope), [0.0]])
    c = np.linalg.solve(m, right)
    return np.sum(h * (c[:-1] ** 2 + c[:-1] * c[1:] + c[1:] ** 2)) / 3


def option_price(p):
    """An American put on a binomial tree, smoothed; p: price, strike, volatility, rate."""
    n, t = 12, 1.0
    dt = t / n
    up = np.exp(p[2] * np.sqrt(dt))
    q = (np.exp(p[3] * dt) - 1 / up) / (up - 1 / up)
    k = np.arange(n + 1)
    soft = lambda x: 0.5 * (x + np.sqrt(x**2 + 1e-2))
    value = soft(p[1] - p[0] * up ** (2.0 * k - n))
    for i in range(n, 0, -1):
        value = np.exp(-p[3] * dt) * (q * value[1:] + (1 - q) * value[:-1])
        now = soft(p[1] - p[0] * up ** (2.0 * np.arange(i) - (i - 1)))
        value = value + soft(now - value)
    return value[0]


def spectrum(x):
    """The spectral centroid of a signal."""
    power = np.abs(np.fft.rfft(x * np.hanning(len(x)))) ** 2
    f = np.fft.rfftfreq(len(x))
    return np.sum(f * power) / np.sum(power)


def rosenbrock(x):
    """Rosenbrock's valley."""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def bezier_length(p):
    """The length of a cubic Bezier curve in the plane."""
    c = p.reshape(4, 2)
    t = np.linspace(0, 1, 20)[:, None]
    curve = (1 - t) ** 3 * c[0] + 3 * (1 - t) ** 2 * t * c[1] + 3 * (1 - t) * t**2 * c[2] + t**3 * c[3]
    return np.sum(np.sqrt(np.sum(np.diff(curve, axis=0) ** 2, axis=1)))


def equilibrium(p):
    """The square of a fixed point found by Newton's method, unrolled."""
    x = np.ones_like(p)
    for _ in range(8):
        f = x**3 + p * x - 2
        x = x - f / (3 * x**2 + p)
    return np.sum(x**2)
