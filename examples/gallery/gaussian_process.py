"""A Gaussian process by marginal likelihood

Length scale, amplitude and noise of a kernel are found by the gradient of the log marginal likelihood, through a
Cholesky factorization; the Hessian gives their error bars.
"""

# %%
import math

import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule.func import grad_and_value, hessian

cr.manual_seed(1)
cr.set_default_dtype(cr.float64)
x = cr.rand(40).sort().values * 10
y = cr.sin(x) + 0.3 * cr.cos(3 * x) + 0.15 * cr.randn(40)


# %%
def kernel(a, b, p):
    """Squared exponential; the parameters are logarithms."""
    return (2 * p[1]).exp() * (-0.5 * ((a[:, None] - b) / p[0].exp()) ** 2).exp()


def negative_log_likelihood(p):
    """-log p(y | parameters)."""
    K = kernel(x, x, p) + (2 * p[2]).exp() * cr.eye(len(x))
    L = cr.linalg.cholesky(K)
    a = cr.linalg.solve_triangular(L, y[:, None], upper=False)
    return 0.5 * a.square().sum() + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


# %%
p = cr.tensor([1.0, 0.0, -0.5])
step = cr.jit(grad_and_value(negative_log_likelihood))
losses = []
momentum = cr.zeros(3)
for _ in (bar := cr.progress(steps(200, 12), "marginal likelihood")):
    g, value = step(p)
    momentum = 0.9 * momentum + g
    p = p - 0.002 * momentum
    losses.append(value.item())
    bar.set(nll=value)
errors = cr.linalg.inv(hessian(negative_log_likelihood)(p)).diagonal().clamp(min=0).sqrt()
for name, value, error in zip(("length", "amplitude", "noise"), p.exp(), errors, strict=True):
    print(f"{name:10s}{value.item():.3f}  (within a factor of {math.exp(error.item()):.2f})")

# %% What the process believes between the data.
z = cr.linspace(-0.5, 10.5, 200)
K = kernel(x, x, p) + (2 * p[2]).exp() * cr.eye(len(x))
cross = kernel(z, x, p)
mean = cross @ cr.linalg.solve(K, y)
variance = (2 * p[1]).exp() - (cross * cr.linalg.solve(K, cross.T).T).sum(1)
sd = variance.clamp(min=0).sqrt()
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), width_ratios=(1, 2))
left.plot(losses)
left.set(title="negative log likelihood", xlabel="step")
right.fill_between(z, mean - 2 * sd, mean + 2 * sd, color="tab:blue", alpha=0.2, label="two standard deviations")
right.plot(z, mean, color="tab:blue", label="mean")
right.plot(x, y, "k.", label="data")
right.legend(frameon=False, fontsize=8)
save(figure, __file__)
