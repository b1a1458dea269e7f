"""Training: a step of a convolutional network, a transformer, an LSTM and a variational autoencoder, beside PyTorch's.

Each program is written once, for whichever library it is handed: forward, loss, backward and a step of Adam. `curves` runs it in both from the
same weights over the same data, and gives the losses; `rows` measures the step, as it is and compiled by `jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import chainrule
from benchmarks.common import OURS, Row, best_of, optional
from benchmarks.norm import THREADS
from chainrule import kernels

Batch = tuple[np.ndarray[Any, Any], ...]


def convolutional(lib: Any) -> tuple[Any, Callable[..., Any], Callable[[np.random.Generator], Batch]]:
    """Two convolutions with batch norm, pooling and a linear layer on images 1×16×16."""
    nn, F = lib.nn, lib.nn.functional
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(512, 10),
    )  # fmt: skip

    def draw(rng: np.random.Generator) -> Batch:
        y = rng.integers(0, 10, 32)
        x = rng.standard_normal((32, 1, 16, 16)) + np.sin(np.arange(16) * (y[:, None] + 1) / 3)[:, None, None, :]
        return x.astype(np.float32), y

    return net, lambda net, x, y: F.cross_entropy(net(x), y), draw


def transformer(lib: Any) -> tuple[Any, Callable[..., Any], Callable[[np.random.Generator], Batch]]:
    """Two causal layers with 4 heads of 16 that predict the next of 32 tokens."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(32, 64), nn.Embedding(32, 64)
            layer = nn.TransformerEncoderLayer(
                64, 4, 128, dropout=0.0, batch_first=True, norm_first=True, activation="gelu"
            )
            self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(64, 32)

        def forward(self, x: Any) -> Any:
            n = x.shape[1]
            mask = lib.triu(lib.full((n, n), float("-inf")), 1)
            h = self.tokens(x) + self.places(lib.arange(n))
            return self.out(self.layers(h, mask=mask, is_causal=True))

    def draw(rng: np.random.Generator) -> Batch:
        start, step = rng.integers(0, 32, (16, 1)), rng.integers(1, 4, (16, 1))
        return ((start + step * np.arange(33)) % 32,)

    return Net(), lambda net, x: F.cross_entropy(net(x[:, :-1]).reshape(-1, 32), x[:, 1:].reshape(-1)), draw


def recurrent(lib: Any) -> tuple[Any, Callable[..., Any], Callable[[np.random.Generator], Batch]]:
    """An LSTM of 64 that sums a sequence of 30 marked numbers."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.out = nn.LSTM(2, 64, batch_first=True), nn.Linear(64, 1)

        def forward(self, x: Any) -> Any:
            return self.out(self.lstm(x)[0][:, -1])

    def draw(rng: np.random.Generator) -> Batch:
        values, marks = rng.random((32, 30)), rng.random((32, 30)) < 0.1
        x = np.stack([values, marks], -1).astype(np.float32)
        return x, (values * marks).sum(1, keepdims=True).astype(np.float32)

    return Net(), lambda net, x, y: F.mse_loss(net(x), y), draw


def autoencoder(lib: Any) -> tuple[Any, Callable[..., Any], Callable[[np.random.Generator], Batch]]:
    """A variational autoencoder 784-128-16-128-784; the noise belongs to the data."""
    nn, F = lib.nn, lib.nn.functional

    class Net(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32))
            self.outer = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 784))

        def forward(self, x: Any, noise: Any) -> Any:
            mean, logvar = self.inner(x).chunk(2, -1)
            return self.outer(mean + noise * (0.5 * logvar).exp()), mean, logvar

    def loss(net: Any, x: Any, noise: Any) -> Any:
        y, mean, logvar = net(x, noise)
        same = F.binary_cross_entropy_with_logits(y, x, reduction="sum") / x.shape[0]
        return same - 0.5 * (1 + logvar - mean.pow(2) - logvar.exp()).sum() / x.shape[0]

    def draw(rng: np.random.Generator) -> Batch:
        centre = rng.random((64, 2)) * 28
        grid = np.stack(np.meshgrid(np.arange(28), np.arange(28)), -1).reshape(1, 784, 2)
        x = (((grid - centre[:, None]) ** 2).sum(-1) < 30).astype(np.float32)
        return x, rng.standard_normal((64, 16)).astype(np.float32)

    return Net(), loss, draw


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "convolutional network": convolutional,
    "transformer": transformer,
    "LSTM": recurrent,
    "variational autoencoder": autoencoder,
}


def batches(draw: Callable[[np.random.Generator], Batch]) -> Iterator[Batch]:
    """The same data for whoever asks."""
    rng = np.random.default_rng(0)
    while True:
        yield draw(rng)


def both(torch: Any, name: str) -> dict[str, tuple[Any, Callable[..., Any], Any]]:
    """The program in both libraries, from the same weights."""
    torch.manual_seed(0)
    theirs = PROGRAMS[name](torch)
    ours = PROGRAMS[name](chainrule)
    ours[0].load_state_dict({k: chainrule.tensor(v.numpy().copy()) for k, v in theirs[0].state_dict().items()})
    return {OURS: ours, "PyTorch": theirs}


def step_of(lib: Any, net: Any, loss: Callable[..., Any], lr: float = 1e-3) -> Callable[..., Any]:
    """A step of Adam on one batch; returns the loss."""
    optimiser = lib.optim.Adam(net.parameters(), lr=lr)

    def step(*batch: Any) -> Any:
        optimiser.zero_grad()
        value = loss(net, *batch)
        value.backward()
        optimiser.step()
        return value

    return step


def curves(torch: Any, name: str, steps: int = 200, lr: float = 1e-3) -> dict[str, np.ndarray[Any, Any]]:
    """The losses of `steps` steps in each library."""
    out = {}
    for who, (net, loss, draw) in both(torch, name).items():
        lib = chainrule if who == OURS else torch
        step, data = step_of(lib, net, loss, lr), batches(draw)
        out[who] = np.array([step(*map(lib.tensor, next(data))).item() for _ in range(steps)])
    return out


def rows(only: str = "") -> Iterable[Row]:
    """A row for each program, as it is and compiled; PyTorch is needed to compare with."""
    torch = optional("torch")
    if torch is None:
        return
    threads = kernels.get_num_threads(), torch.get_num_threads()
    kernels.set_num_threads(THREADS)
    torch.set_num_threads(THREADS)
    try:
        for name in PROGRAMS:
            for how, budget in (("", 1.1), (", jit", 0.9)):
                title = f"training step, {name}{how}"
                if only not in title:
                    continue
                pair = both(torch, name)
                work = {}
                for who, (net, loss, draw) in pair.items():
                    lib = chainrule if who == OURS else torch
                    step = step_of(lib, net, loss)
                    if how and who == OURS:
                        step = chainrule.jit(step)
                    batch = [lib.tensor(a) for a in next(batches(draw))]
                    work[who] = lambda step=step, batch=batch: step(*batch)
                yield Row(title, best_of(work, rounds=25), {"PyTorch": budget})
    finally:
        kernels.set_num_threads(threads[0])
        torch.set_num_threads(threads[1])
