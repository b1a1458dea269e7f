"""Small functions of statistics and learning, written for NumPy."""

import numpy as np

RNG = np.random.default_rng(7)
A = RNG.normal(size=(12, 4))
B = RNG.normal(size=12)
LABELS = (RNG.normal(size=12) > 0).astype(float)
OBSERVED = np.array([0, 1, 1, 0, 2, 1])
POINTS = np.linspace(0.0, 1.0, 6)
VALUES = np.sin(5 * POINTS)


def least_squares(w):
    """Ridge regression."""
    r = A @ w - B
    return 0.5 * r @ r + 0.1 * np.sum(w**2)


def logistic_regression(w):
    """The negative log-likelihood of labels."""
    z = np.dot(A, w)
    return np.sum(np.logaddexp(0, z) - LABELS * z)


def hmm_forward(p):
    """The log-likelihood of a hidden Markov model with two states and three symbols; p: logits of all its tables."""

    def table(x, shape):
        e = np.exp(x.reshape(shape))
        return e / e.sum(axis=-1, keepdims=True)

    start, move, emit = table(p[:2], (2,)), table(p[2:6], (2, 2)), table(p[6:12], (2, 3))
    alpha = start * emit[:, OBSERVED[0]]
    total = 0.0
    for o in OBSERVED[1:]:
        alpha = (alpha @ move) * emit[:, o]
        s = np.sum(alpha)
        total = total + np.log(s)
        alpha = alpha / s
    return total


def kalman_filter(p):
    """The log-likelihood of a Kalman filter for position and speed; p: logs of two noises."""
    q, r = np.exp(p[0]), np.exp(p[1])
    f, h = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    x, c = np.zeros(2), np.eye(2)
    total = 0.0
    for y in VALUES:
        x, c = f @ x, f @ c @ f.T + q * np.eye(2)
        s = h @ c @ h.T + r * np.eye(1)
        k = c @ h.T @ np.linalg.inv(s)
        e = y - h @ x
        total = total - 0.5 * (e @ np.linalg.solve(s, e) + np.linalg.slogdet(s)[1])
        x, c = x + k @ e, (np.eye(2) - k @ h) @ c
    return total


def gaussian_process(p):
    """The log marginal likelihood of a Gaussian process; p: logs of scale, length and noise."""
    scale, length, noise = np.exp(p)
    d = POINTS[:, None] - POINTS[None, :]
    k = scale * np.exp(-0.5 * (d / length) ** 2) + noise * np.eye(len(POINTS))
    low = np.linalg.cholesky(k)
    a = np.linalg.solve(low, VALUES)
    return -0.5 * a @ a - np.sum(np.log(np.diag(low)))


def mixture(p):
    """The log-likelihood of a mixture of two Gaussian densities; p: means, log widths, a logit."""
    w = 1 / (1 + np.exp(-p[4]))
    logs = np.stack(
        [np.log(v) - 0.5 * ((B - m) / np.exp(s)) ** 2 - s for v, m, s in ((w, p[0], p[2]), (1 - w, p[1], p[3]))]
    )
    top = np.max(logs, axis=0)
    return np.sum(top + np.log(np.sum(np.exp(logs - top), axis=0)))


def network(p):
    """The loss of a network with one hidden layer."""
    w1, b1, w2 = p[:20].reshape(4, 5), p[20:25], p[25:30]
    hidden = np.maximum(np.tanh(A @ w1 + b1), -0.9)
    return np.mean((hidden @ w2 - B) ** 2)


def principal_axis(x):
    """The share of the variance on the first principal axis."""
    m = x.reshape(6, 3)
    c = np.cov(m, rowvar=False)
    w = np.linalg.eigvalsh(c)
    return w[-1] / np.sum(w)
