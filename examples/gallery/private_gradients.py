"""Per-example gradients with differential privacy

Each example's gradient is clipped before they are added and noise is put on top, so that no single example can be
found in the model. vmap(grad) gives all of them in one pass.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule import nn
from chainrule.func import functional_call, grad, vmap

cr.manual_seed(0)
n = 512
angle, label = 3.14 * cr.rand(n), cr.arange(n) % 2
moon = cr.stack([cr.cos(angle), cr.sin(angle)], 1)
x = cr.where(label[:, None] == 0, moon, cr.tensor([1.0, 0.4]) - moon) + 0.12 * cr.randn(n, 2)
net = nn.Sequential(nn.Linear(2, 24), nn.Tanh(), nn.Linear(24, 2))


def loss(p, x, y):
    """Of one example."""
    return nn.functional.cross_entropy(functional_call(net, p, (x[None],)), y[None])


each = vmap(grad(loss), in_dims=(None, 0, 0))


# %%
def train(noise, count, clip=1.0, lr=1.5):
    """Gradient descent with clipped, noisy gradients; returns the parameters and the losses."""
    p, losses = {k: v.detach() for k, v in net.named_parameters()}, []
    for _ in (bar := cr.progress(count, f"noise {noise}")):
        pick = cr.randint(0, n, (128,))
        g = each(p, x[pick], label[pick])
        size = sum(v.flatten(1).square().sum(1) for v in g.values()).sqrt()
        scale = (clip / size).clamp(max=1.0)
        for k in p:
            clipped = (g[k] * scale.reshape(-1, *[1] * (g[k].ndim - 1))).sum(0)
            p[k] = p[k] - lr * (clipped + noise * clip * cr.randn(*clipped.shape)) / len(pick)
        losses.append(vmap(loss, in_dims=(None, 0, 0))(p, x, label).mean().item())
        bar.set(loss=losses[-1])
    return p, losses


# %%
grid = cr.stack(cr.meshgrid(cr.linspace(-1.6, 2.6, 60), cr.linspace(-1.2, 1.7, 60), indexing="xy"), -1)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2))
for a, noise in zip(axes, (0.0, 2.0), strict=False):
    p, losses = train(noise, steps(300, 6))
    right = (functional_call(net, p, (x,)).argmax(1) == label).float().mean().item()
    print(f"noise {noise}: loss {losses[-1]:.3f}, {100 * right:.1f} % right")
    share = functional_call(net, p, (grid,)).softmax(-1)[..., 1]
    a.contourf(*grid.unbind(-1), share, levels=20, cmap="RdBu", alpha=0.6)
    a.scatter(*x.T, c=label, s=4, cmap="RdBu")
    a.set(title=f"noise {noise:g}: {100 * right:.0f} % right")
    axes[2].plot(losses, label=f"noise {noise:g}")
axes[2].set(title="loss", xlabel="step")
axes[2].legend(frameon=False)
save(figure, __file__)
