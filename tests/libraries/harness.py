"""Runs one program under PyTorch or under chainrule in its place, and writes down what it records.

    python tests/libraries/harness.py torch|chainrule program.py results.npz

Both sides draw their random numbers from one NumPy generator, in the order in which they ask for them.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from typing import Any

import numpy as np

warnings.filterwarnings("ignore")
SIDE, PROGRAM, RESULTS = sys.argv[1:4]
if SIDE == "chainrule":
    import chainrule

    chainrule.install_as_torch()
import torch  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)
R = np.random.RandomState(0)
RECORD: dict[str, Any] = {}


def rec(name: str, value: Any) -> None:
    """Note a tensor or a number under a name."""
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj()
        value = (value if value.layout == torch.strided else value.to_dense()).numpy().copy()
    RECORD[name] = np.asarray(value)


def data(*shape: int, seed: int = 1, scale: float = 1.0) -> Any:
    """Normal numbers, the same on both sides."""
    return torch.tensor(np.random.RandomState(seed).randn(*shape) * scale)


def ints(n: int, *shape: int, seed: int = 2) -> Any:
    """Whole numbers below `n`."""
    return torch.tensor(np.random.RandomState(seed).randint(0, n, shape))


@torch.no_grad()
def fill(module: Any) -> Any:
    """Parameters by their names; those that start as zeros or ones stay near them."""
    for name, p in module.named_parameters():
        r = np.random.RandomState(zlib.crc32(name.encode()) % 2**31).randn(*p.shape)
        a = p.detach().numpy()
        constant = a.size > 1 and np.all(a == a.reshape(-1)[0])
        if constant or (a.size == 1 and float(abs(a.reshape(-1)[0])) in (0.0, 1.0)):
            r = a + 0.1 * r
        else:
            r = r / np.sqrt(np.prod(p.shape[1:])) if p.ndim >= 2 else 0.1 * r
        p.copy_(torch.tensor(r, dtype=p.dtype))
    return module


def train(module: Any, loss: Any, opt: Any = None, steps: int = 10, do_fill: bool = True, tag: str = "") -> Any:
    """Some steps; records every loss, the first gradients, and the weights and buffers at the end."""
    if do_fill:
        fill(module)
    optimiser = (opt or (lambda ps: torch.optim.Adam(ps, lr=1e-2)))(list(module.parameters()))
    for i in range(steps):
        optimiser.zero_grad()
        value = loss(module)
        value.backward()
        if i == 0:
            for n, p in module.named_parameters():
                if p.grad is not None:
                    rec(f"{tag}first gradient/{n}", p.grad)
        optimiser.step()
        rec(f"{tag}loss/{i}", value)
    for n, p in module.named_parameters():
        rec(f"{tag}weight/{n}", p)
    for n, b in module.named_buffers():
        if b.dtype.is_floating_point:
            rec(f"{tag}buffer/{n}", b)
    return module


# -- random numbers from one place ------------------------------------------------------------------------------------
def _sized(draw: Any) -> Any:
    def f(*a: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, **kw: Any) -> Any:
        shape = tuple(size) if size is not None else tuple(a[0]) if len(a) == 1 and not isinstance(a[0], int) else a
        values = np.asarray(draw(*shape))
        return torch.tensor(values, dtype=dtype or torch.get_default_dtype()).requires_grad_(requires_grad)

    return f


def _like(f: Any) -> Any:
    return lambda x, dtype=None, **kw: f(tuple(x.shape), dtype=dtype or x.dtype)


def _writes(draw: Any, combine: Any) -> Any:
    def f(self: Any, *args: Any, generator: Any = None, **kw: Any) -> Any:
        with torch.no_grad():
            values = torch.tensor(np.asarray(draw(*self.shape)), dtype=self.dtype)
            return self.copy_(combine(values, *args, **kw))

    return f


randn, rand = _sized(R.randn), _sized(R.rand)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, dtype: Any = None, **kw: Any) -> Any:
    shape = torch.broadcast_shapes(getattr(mean, "shape", ()), getattr(std, "shape", ())) if size is None else size
    return randn(tuple(shape), dtype=dtype) * std + mean


def bernoulli(x: Any, p: Any = None, **kw: Any) -> Any:
    return (rand(tuple(x.shape), dtype=x.dtype) < (x if p is None else p)).to(x.dtype)


def randperm(n: int, *, dtype: Any = None, **kw: Any) -> Any:
    return torch.tensor(R.permutation(n), dtype=dtype or torch.int64)


def randint(low: Any, high: Any = None, size: Any = None, *, dtype: Any = None, **kw: Any) -> Any:
    low, high, size = (0, low, high) if size is None else (low, high, size)
    return torch.tensor(np.asarray(R.randint(low, high, tuple(size))), dtype=dtype or torch.int64)


def multinomial(p: Any, n: int, replacement: bool = False, **kw: Any) -> Any:
    weights = p.detach().numpy()
    below = np.cumsum(weights / weights.sum(-1, keepdims=True), -1)
    draws = (below[..., None, :] < R.rand(*p.shape[:-1], n)[..., None]).sum(-1)
    return torch.tensor(draws.clip(0, p.shape[-1] - 1))


def dropout(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    if not training or p == 0:
        return x
    return x * (torch.tensor(np.asarray(R.rand(*x.shape) >= p), dtype=x.dtype) / (1 - p))


for _module in [torch, *([chainrule] if SIDE == "chainrule" else [])]:
    for _name, _f in {
        "randn": randn, "rand": rand, "randn_like": _like(randn), "rand_like": _like(rand), "normal": normal, "bernoulli": bernoulli,
        "randperm": randperm, "randint": randint, "multinomial": multinomial, "dropout": dropout,
    }.items():  # fmt: skip
        setattr(_module, _name, _f)
    _module.nn.functional.dropout = dropout
torch.nn.Dropout.forward = lambda self, x: dropout(x, self.p, self.training)
torch.Tensor.normal_ = _writes(R.randn, lambda v, mean=0, std=1: v * std + mean)
torch.Tensor.uniform_ = _writes(
    R.rand, lambda v, a=0, b=1, **kw: v * (kw.get("to", b) - kw.get("from", a)) + kw.get("from", a)
)
torch.Tensor.exponential_ = _writes(lambda *s: R.standard_exponential(s), lambda v, lambd=1: v / lambd)

sys.modules["harness"] = sys.modules["__main__"]  # where programs import from
with open(PROGRAM) as file:
    exec(compile(file.read(), PROGRAM, "exec"), {"__name__": "program"})
np.savez(RESULTS, **{k.replace("/", "|"): v for k, v in RECORD.items()})
