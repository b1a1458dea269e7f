"""Optimal control of a pendulum

Which torques swing a pendulum up and hold it? The gradient by all torques goes through the simulation, a scan that
jit compiles; the torque is bounded.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from _common import save, steps
from scipy.optimize import minimize

import chainrule as cr
from chainrule.func import grad_and_value

cr.set_default_dtype(cr.float64)
n, h = 100, 0.05


def simulate(u):
    """Angles (0 is down) and speeds under torques u."""

    def step(state, torque):
        angle, speed = state
        speed = speed + h * (3 * torque.tanh() - 9.81 * angle.sin() - 0.1 * speed)
        angle = angle + h * speed
        return (angle, speed), cr.stack([angle, speed])

    return cr.scan(step, (cr.zeros(()), cr.zeros(())), u)[1]


def cost(u):
    """Height and rest in the last second, and little effort."""
    path = simulate(u)
    end = path[-20:]
    return (1 + end[:, 0].cos()).sum() + 0.1 * end[:, 1].square().sum() + 1e-3 * u.square().sum()


# %%
value = cr.jit(grad_and_value(cost))
costs = []


def for_scipy(u):
    g, c = value(cr.tensor(u))
    costs.append(c.item())
    return c.item(), g.numpy()


count = steps(400, 10)
bar = iter(cr.progress(count, "control"))
start = 2 * np.sin(3 * h * np.arange(n))
found = minimize(
    for_scipy, start, jac=True, method="L-BFGS-B", options={"maxiter": count}, callback=lambda x: next(bar, None)
)
bar.close()
path = simulate(cr.tensor(found.x))
print(
    f"cost {costs[0]:.2f} -> {found.fun:.3f} in {len(costs)} evaluations; last height {-path[-1, 0].cos().item():+.3f} (up is +1)"
)

# %%
t = h * np.arange(1, n + 1)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3))
left.plot(t, -path[:, 0].cos(), label="height")
left.plot(t, path[:, 1] / 5, label="speed / 5")
left.legend(frameon=False, fontsize=8)
left.set(title="the pendulum", xlabel="time")
middle.step(t, 3 * np.tanh(found.x))
middle.set(title="torque, within ±3 (its weight needs 9.81)", xlabel="time")
right.semilogy(costs)
right.set(title="cost", xlabel="evaluation")
save(figure, __file__)
