"""A Kalman filter, fitted by gradient

How noisy are the motion and the measurements of a tracked object? The likelihood of the data under a Kalman filter is
differentiated by the noise levels.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from _common import save, steps

import chainrule as cr
from chainrule.func import grad_and_value

cr.set_default_dtype(cr.float64)
rng = np.random.default_rng(3)
n, dt = 80, 0.1
F = cr.tensor([[1.0, dt], [0.0, 1.0]])
G = cr.tensor([[dt**2 / 2], [dt]])
speed = np.cumsum(1.5 * dt * rng.standard_normal(n))
place = np.cumsum(dt * speed)
data = cr.tensor(place + 0.3 * rng.standard_normal(n))


# %%
def run(p, data):
    """The filter: log likelihood, means and variances of the place. p are the logarithms of the two deviations."""
    q, r = (2 * p[0]).exp() * (G @ G.T), (2 * p[1]).exp()

    def step(state, z):
        m, P, total = state
        m, P = F @ m, F @ P @ F.T + q
        s = P[0, 0] + r
        gain = P[:, 0] / s
        miss = z - m[0]
        m, P = m + gain * miss, P - gain[:, None] * P[0][None]
        return (m, P, total - 0.5 * (miss**2 / s + s.log())), cr.stack([m[0], P[0, 0]])

    (_, _, total), path = cr.scan(step, (cr.zeros(2), cr.eye(2), cr.zeros(())), data)
    return total, path


# %%
p, losses = cr.tensor([-2.0, 1.0]), []
value = grad_and_value(lambda p: -run(p, data)[0])
count = steps(50, 3)
for _ in (bar := cr.progress(count, "fitting")):
    g, loss = value(p)
    p = p - 0.3 * g / (g.norm() + 3.0)
    losses.append(loss.item())
    bar.set(nll=loss)
print(f"deviation of the acceleration {p[0].exp().item():.2f} (1.5), of the measurements {p[1].exp().item():.2f} (0.3)")

# %%
before, after = (run(q, data)[1] for q in (cr.tensor([-2.0, 1.0]), p))
t = dt * np.arange(n)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.4), width_ratios=(1, 2))
left.plot(losses)
left.set(title="negative log likelihood", xlabel="step")
sd = after[:, 1].sqrt()
right.plot(t, data, ".", color="0.7", label="measured")
right.plot(t, place, "k--", linewidth=1, label="truth")
right.plot(t, before[:, 0], color="tab:orange", linewidth=1, label="before")
right.plot(t, after[:, 0], color="tab:blue", label="fitted")
right.fill_between(t, after[:, 0] - 2 * sd, after[:, 0] + 2 * sd, color="tab:blue", alpha=0.2)
right.legend(frameon=False, fontsize=8)
save(figure, __file__)
