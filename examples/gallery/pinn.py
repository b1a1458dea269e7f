"""A network that solves a differential equation

A physics-informed network: the loss is how badly $u'' + u = 0$, $u(0) = 0$, $u'(0) = 1$ is violated at random points.
Derivatives by the input are taken in forward mode, by the parameters in reverse mode, one inside the other.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule import nn
from chainrule.func import functional_call, grad, jvp, vmap

cr.manual_seed(0)
net = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
params = {k: p.detach() for k, p in net.named_parameters()}


# %%
def u(p, t):
    """The network as a function of one number; the first condition holds by construction."""
    return t * functional_call(net, p, (t[None],))[0]


def derivatives(p, t):
    """u, u' and u'' at t, by forward mode twice."""
    one = cr.ones_like(t)
    first = lambda t: jvp(lambda t: u(p, t), (t,), (one,))[1]
    slope, second = jvp(first, (t,), (one,))
    return u(p, t), slope, second


def loss(p, times):
    value, _, second = vmap(derivatives, in_dims=(None, 0))(p, times)
    start = derivatives(p, cr.zeros(()))[1]
    return (second + value).square().mean() + 10 * (start - 1) ** 2


# %%
m = {k: cr.zeros_like(v) for k, v in params.items()}
s = {k: cr.zeros_like(v) for k, v in params.items()}
gradient, losses, count = grad(loss), [], steps(2000, 15)
for i in (bar := cr.progress(count, "training")):
    times = cr.rand(64) * 6.3
    g = gradient(params, times)
    rate = 3e-3 * (1 - i / count) + 1e-4
    for k in params:  # Adam, by hand
        m[k] = 0.9 * m[k] + 0.1 * g[k]
        s[k] = 0.99 * s[k] + 0.01 * g[k] ** 2
        params[k] = params[k] - rate * (m[k] / (1 - 0.9 ** (i + 1))) / ((s[k] / (1 - 0.99 ** (i + 1))).sqrt() + 1e-8)
    if i % 10 == 0:
        losses.append(loss(params, cr.linspace(0, 6.3, 64)).item())
        bar.set(loss=losses[-1])
t = cr.linspace(0, 6.3, 200)
found = vmap(u, in_dims=(None, 0))(params, t)
print(f"residual {losses[0]:.3g} -> {losses[-1]:.3g}, largest error {(found - t.sin()).abs().max().item():.3f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.semilogy(range(0, 10 * len(losses), 10), losses)
left.set(title="residual", xlabel="step")
right.plot(t, t.sin(), "k--", label="sin t")
right.plot(t, found, color="tab:red", label="network")
right.legend(frameon=False)
right.set(title="u'' + u = 0", xlabel="t")
save(figure, __file__)
