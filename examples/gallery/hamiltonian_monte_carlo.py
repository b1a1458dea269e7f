"""Hamiltonian Monte Carlo, many chains at once

The gradient of the log density drives a leapfrog integrator; vmap runs 200 chains, and jit compiles the trajectory.
The target is a banana.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule.func import grad, vmap

cr.manual_seed(0)


def log_density(x):
    """Rosenbrock's banana."""
    return -0.5 * (x[0] ** 2 + 4 * (x[1] - x[0] ** 2) ** 2)


# %%
slope = vmap(grad(log_density))


@cr.jit
def trajectory(x, v):
    """Leapfrog: half a kick, drifts and kicks, half a kick."""
    h = 0.12
    v = v + h / 2 * slope(x)
    for _ in range(12):
        x = x + h * v
        v = v + h * slope(x)
    return x, v - h / 2 * slope(x)


# %%
chains = 200
x = cr.randn(chains, 2)
samples, accepted = [], []
energy = lambda x, v: 0.5 * v.square().sum(1) - vmap(log_density)(x)
for _ in (bar := cr.progress(steps(400, 10), "sampling")):
    v = cr.randn(chains, 2)
    x_new, v_new = trajectory(x, v)
    accept = cr.rand(chains) < (energy(x, v) - energy(x_new, v_new)).clamp(max=0).exp()
    x = cr.where(accept[:, None], x_new, x)
    samples.append(x)
    accepted.append(accept.float().mean().item())
    bar.set(accepted=accepted[-1])
half = len(samples) // 2
draws = cr.cat(samples[half:])
print(f"{len(draws)} draws, {100 * sum(accepted) / len(accepted):.0f} % accepted")
print(
    f"mean of x0 {draws[:, 0].mean().item():+.2f} (0), of x1 {draws[:, 1].mean().item():.2f} (1), variance of x0 {draws[:, 0].var().item():.2f} (1)"
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6))
left.plot([s[0, 0].item() for s in samples], [s[0, 1].item() for s in samples], "-", linewidth=0.5, color="0.7")
left.plot(*draws[:: max(1, len(draws) // 3000)].T, ".", markersize=1.5)
left.set(title="draws, and the way of one chain", xlabel="x0", ylabel="x1")
right.hist(draws[:, 0].numpy(), bins=60, density=True, alpha=0.5)
grid = cr.linspace(-4, 4, 200)
right.plot(grid, (-0.5 * grid**2).exp() / (2 * cr.pi) ** 0.5, "k", label="the exact marginal")
right.legend(frameon=False, fontsize=8)
right.set(title="x0")
save(figure, __file__)
