"""Conductivities of a grid from potentials at its boundary: a sparse inverse problem, with exact gradients through ``spsolve``.

Currents are driven through pairs of electrodes on the boundary of a square grid of resistors, and the potentials at all electrodes are
measured. What the grid is made of inside follows from these numbers alone: a Laplacian ``A(sigma) u = current`` is solved
for every pair of electrodes at once, and the misfit is differentiated through the solves, by the transpose of the same factors.

    python examples/sparse_inverse.py        # prints the misfit, saves build/sparse_inverse.png
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr

N = 24  # nodes along a side
ELECTRODES, NOISE, SMOOTH = 32, 1e-4, 2e-4
f64 = cr.float64


def grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The two ends of every edge between neighbours of an n x n grid."""
    at = np.arange(n * n).reshape(n, n)
    return (
        np.concatenate([at[:, :-1].reshape(-1), at[:-1].reshape(-1)]),
        np.concatenate([at[:, 1:].reshape(-1), at[1:].reshape(-1)]),
    )


def boundary(n: int, count: int) -> np.ndarray:
    """Nodes on the boundary, evenly spaced, in order around it."""
    at = np.arange(n * n).reshape(n, n)
    ring = np.concatenate([at[0, :-1], at[:-1, -1], at[-1, :0:-1], at[:0:-1, 0]])
    return ring[np.linspace(0, len(ring), count, endpoint=False).astype(int)]


def truth(n: int) -> np.ndarray:
    """A well-conducting disc and a badly conducting bar in a uniform sheet."""
    y, x = np.mgrid[0:n, 0:n] / (n - 1)
    sigma = np.ones((n, n))
    sigma[(x - 0.32) ** 2 + (y - 0.35) ** 2 < 0.17**2] = 4.0
    sigma[(np.abs(x - 0.68) < 0.1) & (np.abs(y - 0.65) < 0.2)] = 0.25
    return sigma


class Sheet:
    """A sheet of n x n nodes: from the logarithm of its conductivity to the potentials at the electrodes."""

    def __init__(self, n: int) -> None:
        a, b = grid(n)
        self.n, self.a, self.b = n, cr.tensor(a), cr.tensor(b)
        # Each edge adds c to two places of the diagonal and -c to two others; coordinates that repeat add up. One node is earthed.
        self.index = cr.tensor(np.stack([np.concatenate([a, b, a, b, [0]]), np.concatenate([a, b, b, a, [0]])]))
        at = boundary(n, ELECTRODES)
        self.electrodes = cr.tensor(at)
        currents = np.zeros((n * n, ELECTRODES))
        for k in range(ELECTRODES):  # between each electrode and the one a third of the way around
            currents[at[k], k], currents[at[(k + ELECTRODES // 3) % ELECTRODES], k] = 1, -1
        self.currents = cr.tensor(currents)

    def laplacian(self, m: Any) -> Any:
        """``sum over edges of c (e_a - e_b)(e_a - e_b)^T``, c the geometric mean of the conductivities at the ends."""
        c = ((m[self.a] + m[self.b]) / 2).exp()
        v = cr.cat([c, c, -c, -c, cr.ones(1, dtype=f64)])
        return cr.sparse_coo_tensor(self.index, v, (self.n**2, self.n**2))

    def measure(self, m: Any) -> Any:
        """The potentials at the electrodes, against their mean, for each current."""
        u = cr.sparse.spsolve(self.laplacian(m), self.currents)[self.electrodes]
        return u - u.mean(0)


def main() -> None:
    import scipy.optimize

    sheet, sigma = Sheet(N), truth(N)
    rng = np.random.default_rng(0)
    clean = sheet.measure(cr.tensor(np.log(sigma).reshape(-1))).numpy()
    data = cr.tensor(clean + NOISE * np.abs(clean).max() * rng.standard_normal(clean.shape))

    def misfit(m: Any) -> Any:
        steps = m[sheet.a] - m[sheet.b]
        edges = (steps * steps + 1e-4).sqrt().sum()  # few edges rather than small steps
        return ((sheet.measure(m) - data) ** 2).sum() + SMOOTH * edges

    value_and_grad = cr.func.grad_and_value(misfit)
    start = np.zeros(N * N)

    # The gradient against a central difference in one direction.
    t = rng.standard_normal(N * N)
    h = 1e-5
    numeric = (misfit(cr.tensor(start + h * t)) - misfit(cr.tensor(start - h * t))).item() / (2 * h)
    exact = float(value_and_grad(cr.tensor(start))[0].numpy() @ t)
    print(f"directional derivative {exact:.10g}, by central differences {numeric:.10g}")

    history: list[float] = []

    def f(x: np.ndarray) -> tuple[float, np.ndarray]:
        g, y = value_and_grad(cr.tensor(x))
        history.append(y.item())
        return y.item(), g.numpy()

    begin = time.perf_counter()
    found = scipy.optimize.minimize(f, start, jac=True, method="L-BFGS-B", options={"maxiter": 250})
    seconds = time.perf_counter() - begin
    image = np.exp(found.x.reshape(N, N))
    error = np.linalg.norm(np.log(image) - np.log(sigma)) / np.linalg.norm(np.log(sigma))
    print(f"{N * N} conductivities from {data.numel()} potentials: misfit {history[0]:.3g} -> {found.fun:.3g} in {len(history)} "
          f"gradients, {seconds:.1f} s; relative error of log sigma {error:.2f}")  # fmt: skip
    picture(sigma, image, history)


def picture(sigma: np.ndarray, image: np.ndarray, history: list[float]) -> None:
    """The sheet as it is, as it was found, and how the misfit fell."""
    try:
        import matplotlib
    except ImportError:
        print("no picture: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), width_ratios=[1, 1, 1.1])
    for axis, what, title in ((axes[0], sigma, "conductivity"), (axes[1], image, "found from the boundary")):
        shown = axis.imshow(np.log2(what), cmap="RdBu_r", vmin=-2, vmax=2)
        axis.set_title(title)
        axis.set_xticks([])
        axis.set_yticks([])
    bar = figure.colorbar(shown, ax=axes[:2], ticks=[-2, -1, 0, 1, 2], shrink=0.9)
    bar.ax.set_yticklabels(["¼", "½", "1", "2", "4"])
    axes[2].semilogy(history)
    axes[2].set_title("misfit")
    axes[2].set_xlabel("gradients")
    axes[2].grid(alpha=0.3)
    path = Path(__file__).resolve().parent.parent / "build" / "sparse_inverse.png"
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=130, bbox_inches="tight")
    print(f"saved {path.relative_to(path.parent.parent)}")


if __name__ == "__main__":
    main()
