"""A small GPT learns to sort

A decoder-only transformer reads digits and writes them in order. It is the model of the page that chainrule.show
makes.
"""

# %%
import matplotlib.pyplot as plt
from _common import save, steps

import chainrule as cr
from chainrule import nn
from chainrule.nn import functional as F


class Block(nn.Module):
    """Attention and a perceptron, each around a residual."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def attend(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, d))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Embeddings, blocks, and the next token."""

    def __init__(self, vocabulary, width=32, heads=4, depth=2, context=32):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, i):
        x = self.tokens(i) + self.places(cr.arange(i.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    def loss(self, i, start=1):
        """How badly tokens from `start` on are predicted."""
        return F.cross_entropy(self(i[:, :-1])[:, start - 1 :].flatten(0, 1), i[:, start:].flatten())


def batch(n, length=6):
    """Digits, and the same digits in order."""
    x = cr.randint(0, 10, (n, length))
    return cr.cat([x, x.sort(1).values], 1)


# %%
if __name__ == "__main__":
    cr.manual_seed(0)
    model = GPT(10)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters")
    optimizer = cr.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in (bar := cr.progress(steps(300, 8), "training")):
        loss = model.loss(batch(48), start=6)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        bar.set(loss=loss)
    test = batch(200)
    with cr.no_grad():
        written = test[:, :6]
        for _ in range(6):
            written = cr.cat([written, model(written)[:, -1:].argmax(-1)], 1)
    right = (written == test).all(1).float().mean().item()
    print(f"loss {losses[0]:.2f} -> {losses[-1]:.3f}; {100 * right:.0f} % of new sequences sorted without a mistake")
    figure, axes = plt.subplots(figsize=(6, 3.2))
    axes.plot(losses)
    axes.set(
        title=f"a GPT learns to sort: {' '.join(map(str, written[0, :6].tolist()))} → {' '.join(map(str, written[0, 6:].tolist()))}",
        xlabel="step",
        ylabel="loss",
    )
    save(figure, __file__)
