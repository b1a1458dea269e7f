"""A program as a user writes it, with types: tensors, modules, transforms, linear algebra. Type checkers must have nothing to say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import chainrule as cr
import chainrule.nn.functional as F
from chainrule import Tensor, nn, optim
from chainrule.func import functional_call, grad, hessian, jacrev, jvp, vjp, vmap
from chainrule.linalg import cholesky, solve, svd
from chainrule.typing import Operand


class Block(nn.Module):
    """A layer with a residual."""

    def __init__(self, width: int, p: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.activation = nn.GELU()
        self.drop = nn.Dropout(p)
        self.scale = nn.Parameter(cr.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.drop(self.activation(self.inner(self.norm(x))))
        return x + self.scale * h


def data(n: int, width: int, dtype: cr.dtype = cr.float64) -> tuple[Tensor, Tensor]:
    """Inputs and targets."""
    cr.manual_seed(0)
    x = cr.randn(n, width, dtype=dtype)
    y = (2.0 * x - 1).sin().sum(dim=-1, keepdim=True) / width**0.5
    y += 0.01 * cr.randn(*y.shape, dtype=dtype)
    return x, y


def scaled(x: Tensor, by: Operand = 1.0) -> Tensor:
    """The softmax of scaled entries."""
    return cr.softmax(x * by, dim=-1)


def train(steps: int) -> float:
    """The last loss."""
    x, y = data(32, 4, cr.float32)
    model = nn.Sequential(Block(4), nn.ReLU(), nn.Linear(4, 1))
    opt = optim.AdamW(model.parameters(), lr=1e-2)
    loss = cr.zeros(())
    for _ in range(steps):
        opt.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        opt.step()
    with cr.no_grad():
        norms = [p.grad.norm().item() for p in model.parameters() if p.grad is not None]
    assert len(norms) == len(list(model.parameters()))
    return float(loss)


def transforms(x: Tensor) -> dict[str, Tensor]:
    """Derivatives of one function in every mode."""

    def f(v: Tensor) -> Tensor:
        return (v.exp() @ v.cos()).log1p() + v.square().mean()

    y, pull = vjp(f, x)
    _, tangent = jvp(f, (x,), (cr.ones_like(x),))
    per_example: Callable[..., Tensor] = vmap(grad(f), in_dims=0)
    return {
        "grad": grad(f)(x),
        "pull": pull(cr.ones_like(y))[0],
        "tangent": tangent,
        "hessian": hessian(f)(x),
        "jacobian": jacrev(scaled)(x),
        "batch": per_example(cr.stack([x, -x, x.flip(0)])),
    }


def algebra(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """A solution, twice."""
    spd = a @ a.mT + cr.eye(a.shape[-1], dtype=a.dtype)
    u, s, vh = svd(spd, full_matrices=False)
    by_svd = vh.mT @ ((u.mT @ b) / s.unsqueeze(-1))
    factor = cholesky(spd)
    log_det = 2 * cr.linalg.slogdet(factor).logabsdet
    assert log_det.isfinite().all() and cr.allclose(factor @ factor.mT, spd)
    return by_svd, solve(spd, b)


def shapes(x: Tensor) -> Tensor:
    """Views, indexing, writes, sorting, NumPy."""
    x = x.reshape(2, -1).transpose(0, 1).contiguous().view((-1, 2))
    x[0] = 0.5
    x[:, 1].add_(1).clamp_(min=0.0)
    best = x.max(dim=0)
    top = x.flatten().topk(2)
    order: Tensor = cr.argsort(best.values, descending=True)
    mask = (x > 0) & ~x.isnan()
    array: np.ndarray = cr.where(mask, x, 0.0).numpy()
    parts = cr.cat([x, cr.as_tensor(array)], dim=0).split(2)
    return parts[0].to(cr.float32)[order] + float(top.values.amax()) + cr.fft.rfft(x[:, 0]).abs().sum()


if __name__ == "__main__":
    inputs, targets = data(6, 3)
    print(train(20), {k: tuple(v.shape) for k, v in transforms(inputs[0]).items()}, shapes(inputs))
    first, second = algebra(inputs[:3], targets[:3])
    print(cr.dist(first, second), functional_call(nn.Linear(3, 1).double(), {}, (inputs,)).shape)
