"""An inverse heat problem on a sparse grid

Where is the material that conducts badly, given temperatures at the surface? Heat obeys a sparse linear system; the
gradient by every conductivity is one more sparse solve.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from _common import save, steps

import chainrule as cr
from chainrule.func import grad_and_value

cr.set_default_dtype(cr.float64)
n = 14
index = np.arange(n * n).reshape(n, n)
pairs = np.concatenate(
    [np.stack([index[:, :-1], index[:, 1:]], -1).reshape(-1, 2), np.stack([index[:-1], index[1:]], -1).reshape(-1, 2)]
)
a, b = cr.tensor(pairs[:, 0]), cr.tensor(pairs[:, 1])
diagonal = cr.arange(n * n)
places = cr.stack([cr.cat([a, b, a, b, diagonal]), cr.cat([b, a, a, b, diagonal])])
edge = cr.tensor(np.r_[index[0], index[-1], index[1:-1, 0], index[1:-1, -1]])
sources = [cr.tensor(s) for s in (index[0], index[-1], index[:, 0], index[:, -1])]


# %%
def temperatures(log_c):
    """At the edge, for heat that enters at each of four sides."""
    c = log_c.exp().reshape(-1)
    k = 2 / (1 / c[a] + 1 / c[b])  # between neighbours
    values = cr.cat([-k, -k, k, k, cr.full((n * n,), 0.02)])
    A = cr.sparse_coo_tensor(places, values, (n * n, n * n)).coalesce().to_sparse_csr()
    fields = []
    for s in sources:
        heat = cr.zeros(n * n).index_fill(0, s, 1.0 / n)
        fields.append(cr.sparse.spsolve(A, heat)[edge])
    return cr.stack(fields)


# %%
yy, xx = np.mgrid[0:n, 0:n] / (n - 1)
truth = cr.tensor(np.where((xx - 0.35) ** 2 + (yy - 0.4) ** 2 < 0.03, -1.5, 0.0))
data = temperatures(truth) * (1 + 0.001 * cr.tensor(np.random.default_rng(0).standard_normal((4, len(edge)))))


def misfit(log_c):
    rough = (log_c[1:] - log_c[:-1]).square().sum() + (log_c[:, 1:] - log_c[:, :-1]).square().sum()
    return (temperatures(log_c) / data - 1).square().sum() * 2e3 + 0.02 * rough


x, m, s, losses = cr.zeros(n, n), cr.zeros(n, n), cr.zeros(n, n), []
step = grad_and_value(misfit)
for i in (bar := cr.progress(steps(250, 5), "inverting")):
    g, loss = step(x)
    m, s = 0.9 * m + 0.1 * g, 0.99 * s + 0.01 * g**2
    x = x - 0.05 * (m / (1 - 0.9 ** (i + 1))) / ((s / (1 - 0.99 ** (i + 1))).sqrt() + 1e-9)
    losses.append(loss.item())
    bar.set(misfit=loss)
print(
    f"misfit {losses[0]:.1f} -> {losses[-1]:.2f}; lowest conductivity found at {divmod(int(x.argmin()), n)}, true centre (5, 5)"
)

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3))
for axes, field, title in ((left, truth, "log conductivity"), (middle, x, "found from the edge")):
    axes.imshow(field, cmap="viridis", vmin=-1.5, vmax=0.2)
    axes.set(title=title)
    axes.axis("off")
right.semilogy(losses)
right.set(title="misfit", xlabel="step")
save(figure, __file__)
