"""A differentiable ray tracer finds a sphere

An image of a shaded sphere is compared with a target; the gradient by position, radius and light goes through the
rays. The edge is softened, so that it has a derivative.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule.func import grad_and_value

n = 48
ys, xs = cr.meshgrid(cr.linspace(1, -1, n), cr.linspace(-1, 1, n), indexing="ij")
rays = cr.stack([xs, ys, cr.full((n, n), -1.8)], -1)
rays = rays / rays.norm(dim=-1, keepdim=True)


def render(p):
    """The image: a sphere at p[:3] with radius exp(p[3]), lit from direction p[4:]."""
    centre, radius, light = p[:3], p[3].exp(), p[4:] / p[4:].norm()
    along = (rays * centre).sum(-1)  # where a ray is nearest to the centre
    near = rays * along[..., None] - centre
    gap = radius**2 - near.square().sum(-1)  # above 0 where the ray hits
    inside = (40 * gap).sigmoid()
    depth = cr.where(gap > 1e-6, gap, 1e-6).sqrt()
    normal = (near - rays * depth[..., None]) / radius
    shade = 0.15 + 0.85 * (normal * light).sum(-1).relu()
    return inside * shade


# %%
truth = cr.tensor([0.35, 0.25, -3.0, -0.4, 0.6, 0.7, 0.6])
target = render(truth)
start = p = cr.tensor([-0.3, -0.2, -3.6, -0.9, -0.2, 0.4, 1.0])
step = cr.jit(grad_and_value(lambda p: (render(p) - target).square().mean()))
m, s, losses = cr.zeros(7), cr.zeros(7), []
for i in (bar := cr.progress(steps(400, 15), "looking")):
    g, loss = step(p)
    m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g**2
    p = p - 0.03 * (m / (1 - 0.9 ** (i + 1))) / ((s / (1 - 0.99 ** (i + 1))).sqrt() + 1e-9)
    losses.append(loss.item())
    bar.set(loss=loss)
size = lambda p: (p[3].exp() / -p[2]).item()
print(f"loss {losses[0]:.4f} -> {losses[-1]:.2g}; apparent size {size(p):.3f} (truth {size(truth):.3f})")

# %%
figure, axes = plt.subplots(1, 4, figsize=(11, 2.9))
for a, (title, image) in zip(axes, (("start", render(start)), ("found", render(p)), ("target", target)), strict=False):
    a.imshow(image, cmap="gray", vmin=0, vmax=1)
    a.set(title=title)
    a.axis("off")
axes[3].semilogy(losses)
axes[3].set(title="loss", xlabel="step")
save(figure, __file__)
