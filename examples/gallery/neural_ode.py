"""A neural ODE learns a spiral

The right-hand side of $x' = f_\\theta(x)$ is a small network; a Runge-Kutta solver runs inside the loss, and
gradients go through it. The data are noisy points of a spiral.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule import nn

cr.manual_seed(0)
n = 60
times = cr.linspace(0, 6, n)
decay = cr.exp(-0.15 * times)
truth = cr.stack([decay * cr.cos(2 * times), decay * cr.sin(2 * times)], 1)
data = truth + 0.03 * cr.randn(n, 2)


# %%
class Field(nn.Module):
    """The velocity at a point."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)


def solve(f, x, count, h):
    """Runge-Kutta steps of fourth order from x."""
    path = [x]
    for _ in range(count - 1):
        k1 = f(x)
        k2 = f(x + h / 2 * k1)
        k3 = f(x + h / 2 * k2)
        k4 = f(x + h * k3)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        path.append(x)
    return cr.stack(path)


# %% Train on short pieces that start at data points, then solve the whole way.
field, h, piece = Field(), float(times[1] - times[0]), 8
optimizer = cr.optim.Adam(field.parameters(), lr=0.02)
starts = cr.arange(0, n - piece)
losses = []
for _ in (bar := cr.progress(steps(300, 8), "neural ODE")):
    path = solve(field, data[starts], piece, h)
    target = cr.stack([data[starts + k] for k in range(piece)])
    loss = (path - target).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    bar.set(loss=loss)
with cr.no_grad():
    found = solve(field, truth[0], n, h)
print(
    f"loss {losses[0]:.4f} -> {losses[-1]:.4f}, distance from the truth {(found - truth).norm(dim=1).mean().item():.3f}"
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.semilogy(losses)
left.set(title="loss", xlabel="step")
grid = cr.stack(cr.meshgrid(cr.linspace(-1.2, 1.2, 14), cr.linspace(-1.2, 1.2, 14), indexing="xy"), -1)
with cr.no_grad():
    v = field(grid)
right.quiver(*grid.unbind(-1), *v.unbind(-1), color="0.8")
right.plot(*data.T, ".", color="0.4", label="data")
right.plot(*found.T, color="tab:red", label="solution of the learnt equation")
right.legend(frameon=False, fontsize=8)
right.set(title="a spiral", aspect="equal")
save(figure, __file__)
