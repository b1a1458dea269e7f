"""A transformer on sequences of different lengths

Is a bracket sequence balanced? Sequences of 4 to 24 characters go through attention as one nested tensor, without
padding and without masks.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from _common import save, steps

import chainrule as cr
from chainrule import nn
from chainrule.nested import nested_tensor
from chainrule.nn import functional as F

cr.manual_seed(0)
rng = np.random.default_rng(0)


def sequence():
    """A bracket sequence, as often balanced as not, and whether it is."""
    half = int(rng.integers(2, 13))
    s, depth, left = [], 0, half
    for _ in range(2 * half):  # a balanced one
        up = left > 0 and (depth == 0 or rng.random() < 0.5)
        s.append(0 if up else 1)
        depth, left = depth + (1 if up else -1), left - up
    if rng.random() < 0.5:  # a bracket turned round
        k = int(rng.integers(len(s)))
        s[k] = 1 - s[k]
    depths = np.cumsum(1 - 2 * np.array(s))
    return s, float(depths[-1] == 0 and depths.min() >= 0)


def batch(n):
    pairs = [sequence() for _ in range(n)]
    return nested_tensor([cr.tensor(s) for s, _ in pairs], dtype=cr.int64), cr.tensor([y for _, y in pairs])


# %%
class Model(nn.Module):
    """Embedding, one layer of attention, a perceptron, a mean over each sequence."""

    def __init__(self, width=32):
        super().__init__()
        self.tokens, self.qkv, self.out = nn.Embedding(2, width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2, self.width = nn.LayerNorm(width), nn.LayerNorm(width), width
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))
        self.head = nn.Linear(width, 1)

    def forward(self, i):
        x = self.tokens(i)
        depth = (1.0 - 2.0 * i.to(cr.float32)).cumsum(1)  # how many brackets are open
        x = x + cr.sin(depth.unsqueeze(-1) * cr.linspace(0.1, 2.0, self.width))
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v))
        x = x + self.mlp(self.norm2(x))
        return self.head(x.mean(1))[:, 0]


# %%
model, losses = Model(), []
optimizer = cr.optim.Adam(model.parameters(), lr=4e-3)
for _ in (bar := cr.progress(steps(250, 6), "training")):
    s, y = batch(64)
    loss = F.binary_cross_entropy_with_logits(model(s), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    bar.set(loss=loss)
s, y = batch(steps(400, 40))
with cr.no_grad():
    right = ((model(s) > 0).float() == y).float().mean().item()
print(f"loss {losses[0]:.2f} -> {losses[-1]:.2f}; {100 * right:.1f} % of new sequences right")
figure, axes = plt.subplots(figsize=(6, 3.2))
axes.plot(losses)
axes.set(title=f"balanced or not, lengths 4 to 24: {100 * right:.0f} % right", xlabel="step", ylabel="loss")
save(figure, __file__)
