"""A Laplace approximation

How sure is a classifier? The Hessian at the best weights is the inverse covariance of a Gaussian posterior; forward
mode carries it to the predictions.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule.func import grad, hessian, jvp, vmap

cr.manual_seed(2)
cr.set_default_dtype(cr.float64)
x = cr.cat([cr.randn(30, 2) + cr.tensor([1.6, 1.0]), cr.randn(30, 2) - cr.tensor([1.2, 1.2])])
y = cr.cat([cr.ones(30), cr.zeros(30)])


def features(x):
    """A constant, the coordinates and their squares."""
    return cr.cat([cr.ones(1), x, x * x, x[:1] * x[1:]])


phi = vmap(features)(x)


def energy(w):
    """Negative log posterior, with a Gaussian prior."""
    z = phi @ w
    return cr.nn.functional.binary_cross_entropy_with_logits(z, y, reduction="sum") + 0.25 * w.square().sum()


# %% Newton's method: the gradient and the Hessian, both exact.
w, energies = cr.zeros(6), []
for _ in (bar := cr.progress(steps(12, 6), "Newton")):
    energies.append(energy(w).item())
    w = w - cr.linalg.solve(hessian(energy)(w), grad(energy)(w))
    bar.set(energy=energies[-1])
covariance = cr.linalg.inv(hessian(energy)(w))
print(f"energy {energies[0]:.2f} -> {energies[-1]:.4f}, gradient {grad(energy)(w).norm().item():.1e}")
print(
    "weights",
    ", ".join(f"{a:+.2f} ± {b:.2f}" for a, b in zip(w.tolist(), covariance.diagonal().sqrt().tolist(), strict=True)),
)


# %% The deviation of the logit at a point is sqrt(J C J').
def logit(w, x):
    return features(x) @ w


root = cr.linalg.cholesky(covariance)


def deviation(x):
    slopes = vmap(lambda t: jvp(lambda w: logit(w, x), (w,), (t,))[1])(root.T)
    return slopes.norm()


grid = cr.stack(cr.meshgrid(cr.linspace(-5, 5, 60), cr.linspace(-5, 5, 60), indexing="xy"), -1).reshape(-1, 2)
z, sd = vmap(logit, in_dims=(None, 0))(w, grid), vmap(deviation)(grid)
sure = (z / (1 + cr.pi / 8 * sd**2).sqrt()).sigmoid()
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8))
for a, p, title in ((axes[0], z.sigmoid(), "best weights alone"), (axes[1], sure, "with their uncertainty")):
    shown = a.contourf(
        grid[:, 0].reshape(60, 60),
        grid[:, 1].reshape(60, 60),
        p.reshape(60, 60),
        levels=[k / 10 for k in range(11)],
        cmap="RdBu",
    )
    a.scatter(*x.T, c=y, s=10, cmap="RdBu", edgecolor="k", linewidth=0.4)
    a.set(title=title)
figure.colorbar(shown, ax=axes)
save(figure, __file__)
