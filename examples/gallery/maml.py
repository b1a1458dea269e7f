"""Learning to learn: MAML

Parameters from which one step of gradient descent fits a new sine wave: the outer gradient goes through the inner
one, and vmap runs over the tasks.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule import nn
from chainrule.func import functional_call, grad, grad_and_value, vmap

cr.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh(), nn.Linear(40, 1))
params = {k: p.detach() for k, p in net.named_parameters()}


def error(p, x, y):
    return nn.functional.mse_loss(functional_call(net, p, (x,)), y)


def adapt(p, x, y, count=1):
    """Steps of gradient descent on a task."""
    for _ in range(count):
        g = grad(error)(p, x, y)
        p = {k: p[k] - 0.05 * g[k] for k in p}
    return p


def tasks(n, points=10):
    """Sine waves of random height and phase, seen twice at random places."""
    height, phase = 0.5 + 2 * cr.rand(n, 1, 1), 3 * cr.rand(n, 1, 1)
    x = 10 * cr.rand(2, n, points, 1) - 5
    y = height * (x + phase).sin()
    return x[0], y[0], x[1], y[1]


# %%
def outer(p, batch):
    """The error after adapting, on other points of the same tasks."""
    return vmap(lambda x, y, u, v: error(adapt(p, x, y), u, v))(*batch).mean()


step, losses = grad_and_value(outer), []
m, s = ({k: cr.zeros_like(v) for k, v in params.items()} for _ in range(2))
for i in (bar := cr.progress(steps(1200, 6), "meta-training")):
    g, loss = step(params, tasks(24))
    for k in params:
        m[k], s[k] = 0.9 * m[k] + 0.1 * g[k], 0.99 * s[k] + 0.01 * g[k] ** 2
        params[k] = params[k] - 3e-3 * (m[k] / (1 - 0.9 ** (i + 1))) / ((s[k] / (1 - 0.99 ** (i + 1))).sqrt() + 1e-8)
    losses.append(loss.item())
    bar.set(loss=loss)

# %%
fresh = {k: p.detach() for k, p in net.named_parameters()}
x, y, u, v = (t[0] for t in tasks(1))
errors = {
    name: [error(adapt(p, x, y, c), u, v).item() for c in range(9)]
    for name, p in (("meta-learnt", params), ("random", fresh))
}
print(
    f"outer loss {losses[0]:.2f} -> {losses[-1]:.2f}; a new wave after 5 steps: {errors['meta-learnt'][5]:.2f}"
    f" (from random parameters {errors['random'][5]:.2f})"
)
grid = cr.linspace(-5, 5, 200)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4))
left.plot(x, y, "k.", label="ten points")
for c, colour in ((0, "0.8"), (1, "tab:orange"), (5, "tab:red")):
    left.plot(grid, functional_call(net, adapt(params, x, y, c), (grid,)), color=colour, label=f"after {c} steps")
left.legend(frameon=False, fontsize=8)
left.set(title="a new task")
for name, e in errors.items():
    right.plot(e, "o-", label=name)
right.legend(frameon=False)
right.set(title="error on new points", xlabel="steps of adaptation")
save(figure, __file__)
