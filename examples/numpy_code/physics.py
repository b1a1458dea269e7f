"""Small functions of mechanics, optics and fields, written for NumPy."""

import numpy as np


def pendulum_energy_drift(p):
    """Energy lost by 30 steps of the symplectic Euler method; p: angle, speed, length."""
    theta, omega, length = p[0], p[1], p[2]
    g, dt = 9.81, 0.02
    start = 0.5 * length**2 * omega**2 - g * length * np.cos(theta)
    for _ in range(30):
        omega = omega - dt * g / length * np.sin(theta)
        theta = theta + dt * omega
    return (0.5 * length**2 * omega**2 - g * length * np.cos(theta) - start) ** 2


def lorenz_end(p):
    """The square of the end of a Lorenz orbit by Runge-Kutta; p: sigma, rho, beta, x, y, z."""
    y = p[3:]

    def rate(v):
        return np.stack([p[0] * (v[1] - v[0]), v[0] * (p[1] - v[2]) - v[1], v[0] * v[1] - p[2] * v[2]])

    h = 0.01
    for _ in range(10):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y**2)


def heat_rod(u):
    """How uneven a rod is after 20 steps of heat conduction, with its ends held; written to in place."""
    u = u.copy()
    for _ in range(20):
        u[1:-1] += 0.2 * (u[2:] - 2 * u[1:-1] + u[:-2])
    return np.var(u)


def lens_focus(r):
    """The spread of ten rays behind two spherical surfaces; r: two radii, a thickness."""
    y = np.linspace(0.1, 1.0, 10)
    angle = np.zeros_like(y)
    for radius, n1, n2 in ((r[0], 1.0, 1.5), (-r[1], 1.5, 1.0)):
        angle = n1 / n2 * angle - y * (n2 - n1) / (n2 * radius)
        y = y + angle * (r[2] if n1 == 1.0 else 0.0)
    at = -y / angle
    return np.std(at) + np.mean(at)


def ising_energy(s):
    """The mean-field energy of spins on a torus of 4x4 with couplings to neighbours."""
    m = np.tanh(s.reshape(4, 4))
    bonds = m * np.roll(m, 1, axis=0) + m * np.roll(m, 1, axis=1)
    entropy = -0.5 * ((1 + m) * np.log1p(m) + (1 - m) * np.log1p(-m))
    return -np.sum(bonds) - 0.7 * np.sum(entropy)


def ray_march(p):
    """The brightness of a smooth sphere seen by 9 rays; p: centre and radius."""
    gx, gy = np.meshgrid(np.linspace(-0.4, 0.4, 3), np.linspace(-0.4, 0.4, 3))
    d = np.stack([gx.ravel(), gy.ravel(), np.ones(9)], axis=1)
    d = d / np.linalg.norm(d, axis=1, keepdims=True)
    t = np.zeros(9)
    for _ in range(12):
        points = d * t[:, None]
        t = t + 0.5 * (np.sqrt(np.sum((points - p[:3]) ** 2, axis=1)) - p[3])
    normal = (d * t[:, None] - p[:3]) / p[3]
    return np.mean(np.exp(-t) * (1 - np.tanh(normal[:, 2])))


def molecule(x):
    """The Lennard-Jones energy of four atoms in space."""
    r = x.reshape(4, 3)
    i, j = np.triu_indices(4, 1)
    d2 = np.sum((r[i] - r[j]) ** 2, axis=1)
    inv = 1.0 / d2**3
    return np.sum(4 * (inv**2 - inv))
