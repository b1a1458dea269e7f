"""A language model: an LSTM learns to predict the next word of a text that a small grammar makes up.

The text has agreement in number over a distance ("the cats that the dog sees sleep"), which a model of word pairs cannot get right. The
perplexity of training and of held-out text, beside that of word pairs counted in the training text, is saved as `build/lstm_text.png`.

    python examples/lstm_text.py [steps]
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np

import chainrule as cr
from chainrule import nn

PICTURE = Path(__file__).resolve().parent.parent / "build" / "lstm_text.png"
WIDTH, LAYERS, BATCH, LENGTH, STEPS = 64, 2, 16, 32, 800
NOUNS = ["cat", "dog", "bird", "child", "teacher", "robot"]
VERBS = ["sleep", "run", "sing", "wait"]
SEEN = ["see", "like", "follow", "hear"]
ADJECTIVES = ["old", "small", "happy", "red"]


def sentence(rng: np.random.Generator) -> list[str]:
    """A subject, perhaps with a clause of its own, and a verb that agrees with it in number."""

    def noun(plural: bool) -> list[str]:
        extra = [str(rng.choice(ADJECTIVES))] if rng.random() < 0.4 else []
        return ["the", *extra, str(rng.choice(NOUNS)) + "s" * plural]

    def verb(choices: list[str], plural: bool) -> str:
        return str(rng.choice(choices)) + "s" * (not plural)

    plural, other = rng.random() < 0.5, rng.random() < 0.5
    words = noun(plural)
    if rng.random() < 0.6:
        words += ["that", *noun(other), verb(SEEN, other)]
    return [*words, verb(VERBS, plural), "."]


def text(rng: np.random.Generator, words: int) -> list[str]:
    """Sentences, one after the other."""
    out: list[str] = []
    while len(out) < words:
        out += sentence(rng)
    return out[:words]


class Model(nn.Module):
    """Word numbers [time, batch] to the logits of the next words, and the state for what follows."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, LAYERS)
        self.head = nn.Linear(WIDTH, words)

    def forward(
        self, x: cr.Tensor, state: tuple[cr.Tensor, cr.Tensor] | None
    ) -> tuple[cr.Tensor, tuple[cr.Tensor, ...]]:
        """The logits, and the state at the end."""
        y, state = self.lstm(self.embed(x), state)
        return self.head(y), state


def columns(ids: np.ndarray) -> cr.Tensor:
    """A text as `BATCH` columns [time, batch], each a part of it."""
    n = len(ids) // BATCH
    return cr.tensor(ids[: n * BATCH].reshape(BATCH, n).T.copy())


def loss_of(
    model: Model, x: cr.Tensor, y: cr.Tensor, state: tuple[cr.Tensor, ...] | None
) -> tuple[cr.Tensor, tuple[cr.Tensor, ...]]:
    """The mean of -log p(next word), and the state."""
    logits, state = model(x, state)
    return nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()), state


def perplexity(model: Model, data: cr.Tensor) -> float:
    """exp of the mean loss over a whole text."""
    with cr.no_grad():
        return math.exp(float(loss_of(model, data[:-1], data[1:], None)[0]))


def by_pairs(train: np.ndarray, test: np.ndarray, words: int) -> float:
    """The perplexity of counting which word follows which."""
    counts = np.full((words, words), 0.1)
    np.add.at(counts, (train[:-1], train[1:]), 1)
    p = counts / counts.sum(1, keepdims=True)
    return float(np.exp(-np.log(p[test[:-1], test[1:]]).mean()))


def agreement(model: Model, index: dict[str, int]) -> float:
    """How much likelier the right number of the verb is, over a clause of the other number: the part that is right."""
    right, total = 0, 0
    for noun in NOUNS:
        for plural in (False, True):
            # After a sentence: the model was trained inside of a text, and knows nothing of how one begins.
            before = ["the", "cat", "sleeps", "."]
            start = [
                *before,
                "the",
                noun + "s" * plural,
                "that",
                "the",
                "dog" + "s" * (not plural),
                "see" + "s" * plural,
            ]
            with cr.no_grad():
                logits = model(cr.tensor([[index[w]] for w in start]), None)[0][-1, 0]
            for v in VERBS:
                right += bool(logits[index[v + "s" * (not plural)]] > logits[index[v + "s" * plural]])
                total += 1
    return right / total


def main(steps: int) -> None:
    rng = np.random.default_rng(0)
    cr.manual_seed(0)
    train, test = text(rng, 40_000), text(rng, 4_000)
    index = {w: i for i, w in enumerate(sorted(set(train)))}
    train_ids, test_ids = (np.array([index[w] for w in t]) for t in (train, test))
    data, held_out = columns(train_ids), columns(test_ids)
    pairs = by_pairs(train_ids, test_ids, len(index))
    model = Model(len(index))
    optimizer = cr.optim.Adam(model.parameters(), lr=3e-3)
    state, at, start = None, 0, time.perf_counter()
    curve: list[tuple[int, float]] = []
    tested: list[tuple[int, float]] = []
    for step in range(steps + 1):
        if step % 25 == 0:
            tested.append((step, perplexity(model, held_out)))
            print(
                f"step {step:4d}  perplexity of held-out text {tested[-1][1]:6.2f}  ({time.perf_counter() - start:.1f} s)"
            )
        if at + LENGTH + 1 > len(data):
            state, at = None, 0
        loss, state = loss_of(model, data[at : at + LENGTH], data[at + 1 : at + LENGTH + 1], state)
        state = tuple(s.detach() for s in state)  # derivatives go back to the start of the piece, the state goes on
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        curve.append((step, math.exp(float(loss))))
        at += LENGTH
    print(
        f"word pairs: {pairs:.2f}; LSTM: {tested[-1][1]:.2f}; verbs that agree over a clause: {agreement(model, index):.0%}"
    )
    save(curve, tested, pairs)


def save(curve: list[tuple[int, float]], tested: list[tuple[int, float]], pairs: float) -> None:
    """The picture, where matplotlib is installed."""
    try:
        import matplotlib

        matplotlib.use("agg")
        import matplotlib.pyplot as plt
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    PICTURE.parent.mkdir(exist_ok=True)
    fig, ax = plt.subplots(figsize=(7, 4))
    ax.plot(*zip(*curve, strict=True), color="#bbbbbb", lw=1, label="training text")
    ax.plot(*zip(*tested, strict=True), color="#1f77b4", marker="o", ms=4, label="held-out text")
    ax.axhline(pairs, color="#d62728", ls="--", label="counted word pairs")
    ax.set(xlabel="step", ylabel="perplexity", yscale="log", title="An LSTM learns a made-up language")
    ax.set_yticks([3, 4, 5, 6, 8, 10, 15, 20, 30], labels=["3", "4", "5", "6", "8", "10", "15", "20", "30"])
    ax.minorticks_off()
    ax.legend()
    fig.tight_layout()
    fig.savefig(PICTURE, dpi=120)
    print(f"saved {PICTURE.relative_to(PICTURE.parent.parent)}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
