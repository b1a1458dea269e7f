"""Tensor parallelism by hand: layers whose weights are shared out among the processes, in thirty lines, since collectives are ops.

    chainrule run -n 2 examples/distributed_tensor_parallel.py

A column-parallel Linear has some of the outputs, a row-parallel one some of the inputs; between the two nothing is sent. An
embedding has some of the words. The results and all gradients, of first and second order, are compared with the same layers on
one process.
"""

from __future__ import annotations

import chainrule as cr
import chainrule.distributed as dist
from chainrule import nn
from chainrule.distributed.nn import functional as C
from chainrule.func import functional_call, grad


def share(size: int) -> slice:
    """This process's part of a dim."""
    n, r = dist.get_world_size(), dist.get_rank()
    return slice(size * r // n, size * (r + 1) // n)


class ColumnParallelLinear(nn.Module):
    """This rank's outputs of a Linear; with `gather` all of them."""

    def __init__(self, whole: nn.Linear, gather: bool = False) -> None:
        super().__init__()
        s = share(whole.out_features)
        self.weight, self.bias = (
            nn.Parameter(whole.weight.detach()[s].clone()),
            nn.Parameter(whole.bias.detach()[s].clone()),
        )
        self.gather = gather

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """``x W_r' + b_r``."""
        y = nn.functional.linear(x, self.weight, self.bias)
        return cr.cat(list(C.all_gather(y)), -1) if self.gather else y


class RowParallelLinear(nn.Module):
    """A Linear whose inputs are shared out: the parts of the product are added over the ranks."""

    def __init__(self, whole: nn.Linear) -> None:
        super().__init__()
        s = share(whole.in_features)
        self.weight, self.bias = (
            nn.Parameter(whole.weight.detach()[:, s].clone()),
            nn.Parameter(whole.bias.detach().clone()),
        )

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """``sum over ranks of x_r W_r' + b``."""
        return C.all_reduce(nn.functional.linear(x, self.weight)) + self.bias


class ParallelEmbedding(nn.Module):
    """An embedding whose words are shared out: a rank gives zero for those of others."""

    def __init__(self, whole: nn.Embedding) -> None:
        super().__init__()
        self.part = share(whole.num_embeddings)
        self.weight = nn.Parameter(whole.weight.detach()[self.part].clone())

    def forward(self, words: cr.Tensor) -> cr.Tensor:
        """The rows of the words, from whoever has them."""
        mine = (words >= self.part.start) & (words < self.part.stop)
        rows = nn.functional.embedding((words - self.part.start).where(mine, 0), self.weight)
        return C.all_reduce(rows * mine.unsqueeze(-1))


def main() -> None:
    """Compare with one process."""
    dist.init_process_group("mpi")
    n = dist.get_world_size()
    cr.manual_seed(0)
    words, first, second = nn.Embedding(12, 6).double(), nn.Linear(6, 8).double(), nn.Linear(8, 6).double()
    whole = nn.Sequential(words, first, nn.GELU(), second)
    parts = nn.Sequential(ParallelEmbedding(words), ColumnParallelLinear(first), nn.GELU(), RowParallelLinear(second))
    x, t = cr.randint(0, 12, (5, 3)), cr.randn(5, 3, 6, dtype=cr.float64)

    def loss(model: nn.Module, scale: float):
        """The mean square; with the ranks' losses added up, each counts for a part `scale`."""
        return lambda ps: ((functional_call(model, ps, (x,)) - t) ** 2).mean() * scale

    def penalty(model: nn.Module, scale: float):
        """The squared gradient of the weights that both have in whole or in part."""
        return lambda ps: sum((v**2).sum() for k, v in grad(loss(model, scale))(ps).items() if "weight" in k)

    ours = {k: p.detach() for k, p in parts.named_parameters()}
    all_of = {k: p.detach() for k, p in whole.named_parameters()}
    worst = float((parts(x) - whole(x)).abs().max())
    for f, scale in ((loss, 1 / n), (penalty, 1 / n)):
        mine, everything = grad(f(parts, scale))(ours), grad(f(whole, 1.0))(all_of)
        cuts = {
            "0.weight": (share(12),),
            "1.weight": (share(8),),
            "1.bias": (share(8),),
            "3.weight": (slice(None), share(8)),
        }
        for k, v in mine.items():
            v = C.all_reduce(v) if k == "3.bias" else v  # every rank has a copy of it, of which each counts
            worst = max(worst, float((v - everything[k][cuts.get(k, ())]).abs().max()))
    print(
        f"rank {dist.get_rank()} of {n}: the layers in parts and as a whole differ by {worst:.1e}, with first and second derivatives",
        flush=True,
    )
    assert worst < 1e-12


if __name__ == "__main__":
    main()
