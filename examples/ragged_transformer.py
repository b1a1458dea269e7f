"""A transformer trained on sequences of different lengths, without padding: has this token occurred before in its sequence?

Every batch is one nested tensor of shape [sequences, length of each, features]. Layers are written as for ordinary tensors; attention is
causal within each sequence. The loss and the accuracy by length are saved as `build/ragged_transformer.png`.

    python examples/ragged_transformer.py [steps]
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
from chainrule.func import grad_and_value

F = cr.nn.functional
PICTURE = Path(__file__).resolve().parent.parent / "build" / "ragged_transformer.png"
TOKENS, WIDTH, HEADS, LAYERS, BATCH, LONGEST = 40, 64, 4, 2, 64, 48
Params = dict[str, cr.Tensor]


def batch(rng: np.random.Generator) -> tuple[cr.Tensor, cr.Tensor]:
    """Sequences of random tokens and, at each place, whether the token has occurred before; lengths follow a Pareto law."""
    lengths = np.minimum((rng.pareto(1.2, BATCH) + 1) * 5, LONGEST).astype(int)
    tokens = [rng.integers(0, TOKENS, n) for n in lengths]
    seen = [np.array([t in s[:i] for i, t in enumerate(s)], np.int64) for s in tokens]
    return cr.nested.nested_tensor(tokens), cr.nested.nested_tensor(seen)


def init(rng: np.random.Generator) -> Params:
    """Weights of the embedding, of the layers and of the head."""

    def normal(*shape: int) -> cr.Tensor:
        return cr.tensor(rng.normal(size=shape) / np.sqrt(shape[-1]), dtype=cr.float32)

    p = {"embed": normal(TOKENS, WIDTH) * WIDTH**0.5, "head": normal(2, WIDTH), "norm": cr.ones(WIDTH)}
    for i in range(LAYERS):
        p |= {
            f"{i}.qkv": normal(3 * WIDTH, WIDTH),
            f"{i}.out": normal(WIDTH, WIDTH),
            f"{i}.up": normal(2 * WIDTH, WIDTH),
            f"{i}.down": normal(WIDTH, 2 * WIDTH),
        }
        p |= {f"{i}.norm1": cr.ones(WIDTH), f"{i}.norm2": cr.ones(WIDTH)}
    return p


def heads(x: cr.Tensor) -> cr.Tensor:
    """[sequences, length, width] as [sequences, heads, length, width of a head]."""
    return x.unflatten(-1, (HEADS, WIDTH // HEADS)).transpose(1, 2)


def model(p: Params, tokens: cr.Tensor) -> cr.Tensor:
    """Logits [sequences, length, 2]."""
    x = F.embedding(tokens, p["embed"])
    for i in range(LAYERS):
        q, k, v = (heads(t) for t in F.linear(F.rms_norm(x, (WIDTH,), p[f"{i}.norm1"]), p[f"{i}.qkv"]).chunk(3, -1))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # within each sequence, nothing to mask
        x = x + F.linear(a.transpose(1, 2).flatten(-2), p[f"{i}.out"])
        x = x + F.linear(F.gelu(F.linear(F.rms_norm(x, (WIDTH,), p[f"{i}.norm2"]), p[f"{i}.up"])), p[f"{i}.down"])
    return F.linear(F.rms_norm(x, (WIDTH,), p["norm"]), p["head"])


def loss(p: Params, tokens: cr.Tensor, seen: cr.Tensor) -> cr.Tensor:
    """The cross entropy over all places of all sequences."""
    return F.cross_entropy(model(p, tokens).transpose(1, 2), seen)


def adam(p: Params, g: Params, m: Params, v: Params, t: int, lr: float) -> None:
    """One step of Adam, written to the parameters and to the moments."""
    for k in p:
        m[k], v[k] = 0.9 * m[k] + 0.1 * g[k], 0.99 * v[k] + 0.01 * g[k] ** 2
        p[k] = p[k] - lr * (m[k] / (1 - 0.9**t)) / ((v[k] / (1 - 0.99**t)).sqrt() + 1e-8)


def progress(steps: int) -> Iterable[int]:
    """Counts to `steps` behind a progress bar: rich's where it is installed, a plain one otherwise."""
    try:
        from rich.progress import track

        yield from track(range(steps), description="training")
    except ImportError:
        for i in range(steps):
            yield i
            print(f"\rtraining {100 * (i + 1) // steps:3d} %", end="" if i + 1 < steps else "\n", flush=True)


def by_length(p: Params, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Lengths of fresh sequences, the share of places answered rightly in each, and what the best constant answer would get."""
    lengths, rights, ones = [], [], []
    for _ in range(8):
        tokens, seen = batch(rng)
        right = cr.vmap(lambda y, s: (y.argmax(-1) == s).float().mean())(model(p, tokens), seen)
        lengths.append(tokens.lengths().numpy())
        rights.append(right.numpy())
        ones.append(seen.values().numpy())
    share = float(np.concatenate(ones).mean())
    return np.concatenate(lengths), np.concatenate(rights), max(share, 1 - share)


def picture(losses: list[float], lengths: np.ndarray, rights: np.ndarray, constant: float) -> None:
    """The loss, the accuracy by length, and what padding would have cost."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    fig, axes = plt.subplots(1, 3, figsize=(13, 3.8), constrained_layout=True)
    axes[0].plot(losses, lw=0.7, alpha=0.35, color="C0")
    w = max(1, len(losses) // 40)
    smooth = np.convolve(losses, np.ones(w) / w, "valid")
    axes[0].plot(np.arange(len(smooth)) + w / 2, smooth, color="C0")
    axes[0].set(title="loss", xlabel="step", ylabel="cross entropy", ylim=(0, None))
    edges = np.array([5, 6, 8, 12, 20, 32, LONGEST, LONGEST + 1])
    names = [f"{a}" if b == a + 1 else f"{a}-{b - 1}" for a, b in itertools.pairwise(edges)]
    share = [
        rights[(lengths >= a) & (lengths < b)].mean() if ((lengths >= a) & (lengths < b)).any() else 0
        for a, b in itertools.pairwise(edges)
    ]
    axes[1].bar(names, share, color="C2")
    axes[1].axhline(constant, color="black", lw=1, ls=":", label="best constant answer")
    axes[1].legend(loc="lower right")
    axes[1].set(title="accuracy by length", xlabel="length of the sequence", ylim=(0, 1.02))
    axes[2].hist(lengths, bins=np.arange(5, LONGEST + 2), color="C1")
    axes[2].set(
        title=f"lengths: padding would be {1 - lengths.sum() / (len(lengths) * LONGEST):.0%} of a batch",
        xlabel="length",
        ylabel="sequences",
        yscale="log",
    )
    PICTURE.parent.mkdir(exist_ok=True)
    fig.savefig(PICTURE, dpi=110)
    print(f"picture: {PICTURE.parent.name}/{PICTURE.name}")


def main(steps: int = 700) -> dict[str, Any]:
    """Trains, prints the accuracy, saves the picture."""
    rng = np.random.default_rng(0)
    p = init(rng)
    m, v = ({k: cr.zeros_like(w) for k, w in p.items()} for _ in range(2))
    step = grad_and_value(loss)
    losses: list[float] = []
    start = time.perf_counter()
    for t in progress(steps):
        g, value = step(p, *batch(rng))
        adam(p, g, m, v, t + 1, 2e-3 * min(1, (t + 1) / 20, 1.2 - t / steps))
        losses.append(value.item())
    lengths, rights, constant = by_length(p, rng)
    accuracy = float((rights * lengths).sum() / lengths.sum())
    took = time.perf_counter() - start
    print(f"{steps} steps in {took:.1f} s; loss {losses[0]:.3f} -> {np.mean(losses[-20:]):.3f}")
    print(f"right at {accuracy:.1%} of all places; the best constant answer would be right at {constant:.1%}")
    picture(losses, lengths, rights, constant)
    return {"losses": losses, "accuracy": accuracy}


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 700)
