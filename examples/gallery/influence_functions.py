"""Influence functions: which example did that?

How would a prediction change without one of the training examples? The inverse Hessian times the example's gradient
says so, without training again; leaving each one out confirms it.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule.func import grad, hessian, vmap

cr.manual_seed(4)
cr.set_default_dtype(cr.float64)
n = steps(60, 12)
x = 6 * cr.rand(n) - 3
y = cr.sin(x) + 0.2 * cr.randn(n)
y[3] = y[3] + 2.5  # an outlier
basis = lambda x: cr.cat([x[..., None] ** k / 3.0**k for k in range(6)], -1)


def one(w, x, y):
    """The loss of one example: a robust distance."""
    r = basis(x) @ w - y
    return (1 + r**2).sqrt() - 1


def total(w, weights):
    return (weights * vmap(one, in_dims=(None, 0, 0))(w, x, y)).sum() + 0.05 * w.square().sum()


def fit(weights, w=None):
    """Newton's method."""
    w = cr.zeros(6) if w is None else w
    for _ in range(15):
        w = w - cr.linalg.solve(hessian(total)(w, weights), grad(total)(w, weights))
    return w


# %%
everyone = cr.ones(n)
w = fit(everyone)
where = cr.tensor(1.0)
predict = lambda w: basis(where) @ w
H = hessian(total)(w, everyone)
each = vmap(grad(one), in_dims=(None, 0, 0))(w, x, y)
influence = each @ cr.linalg.solve(H, grad(predict)(w))  # change of the prediction when an example is left out
actual = []
for i in cr.progress(n, "leaving one out"):
    weights = everyone.clone()
    weights[i] = 0.0
    actual.append((predict(fit(weights, w)) - predict(w)).item())
actual = cr.tensor(actual)
agreement = cr.corrcoef(cr.stack([influence, actual]))[0, 1].item()
print(
    f"correlation with leaving examples out: {agreement:.3f}; the most influential is number {int(influence.abs().argmax())}"
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6))
grid = cr.linspace(-3, 3, 200)
left.plot(grid, basis(grid) @ w, color="0.4")
dots = left.scatter(
    x,
    y,
    c=influence,
    cmap="coolwarm",
    vmin=-influence.abs().max().item(),
    vmax=influence.abs().max().item(),
    edgecolor="k",
    linewidth=0.4,
)
left.axvline(1.0, color="0.7", linestyle=":")
left.set(title="influence on the prediction at 1")
figure.colorbar(dots, ax=left)
right.plot(actual, influence, ".")
right.axline((0, 0), slope=1, color="0.7", linewidth=1)
right.set(title="predicted and actual change", xlabel="left out and fitted again", ylabel="influence function")
save(figure, __file__)
