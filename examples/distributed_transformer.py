"""A transformer over characters on 1, 2 and 4 processes: the same training, and a plot of loss and throughput.

    python examples/distributed_transformer.py              # starts itself on 1, 2 and 4 processes, and plots
    chainrule run -n 2 examples/distributed_transformer.py --rank

The batch of a step is shared out among the processes, so every run does the same arithmetic and the losses agree; the time of a
step falls where there are cores. The run can be stopped and started again: it goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import chainrule as cr
import chainrule.distributed as dist
from chainrule import nn
from chainrule.distributed import checkpoint

TEXT = (
    "the derivative of a sum is the sum of the derivatives, and the derivative of a product is the first times the derivative "
    "of the second plus the second times the derivative of the first. the chain rule is all the rest. "
) * 20
LENGTH, WIDTH, HEADS = 32, 64, 4


class Transformer(nn.Module):
    """Two blocks of attention over characters."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letter, self.place = nn.Embedding(letters, WIDTH), nn.Embedding(LENGTH, WIDTH)
        block = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, 2, enable_nested_tensor=False)
        self.out = nn.Linear(WIDTH, letters)

    def forward(self, x: cr.Tensor) -> cr.Tensor:
        """Scores of the next letter at every place."""
        h = self.letter(x) + self.place(cr.arange(x.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.out(self.blocks(h, mask=mask, is_causal=True))


def train(steps: int, batch: int, out: Path) -> None:
    """One rank: its part of every batch."""
    dist.init_process_group("mpi")
    rank, n = dist.get_rank(), dist.get_world_size()
    letters = sorted(set(TEXT))
    data = np.array([letters.index(c) for c in TEXT])
    cr.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(Transformer(len(letters)))
    opt = cr.optim.AdamW(model.parameters(), lr=3e-3)
    losses: list[float] = []
    place = out / f"checkpoint{n}"
    if place.exists():
        state = checkpoint.load(checkpoint_id=place)
        model.load_state_dict(state["model"])
        opt.load_state_dict(state["opt"])
        losses = state["losses"]
    begin, first = time.perf_counter(), len(losses)
    for step in range(len(losses), steps):
        starts = np.random.default_rng(step).integers(0, len(data) - LENGTH - 1, batch)[rank::n]
        x = cr.tensor(np.stack([data[s : s + LENGTH] for s in starts]))
        y = cr.tensor(np.stack([data[s + 1 : s + LENGTH + 1] for s in starts]))
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        opt.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
        if rank == 0 and step % 10 == 9:
            print(f"step {step + 1}: loss {losses[-1]:.4f}", flush=True)
        if (step + 1) % 50 == 0:
            checkpoint.save(
                {"model": model.state_dict(), "opt": opt.state_dict(), "losses": losses}, checkpoint_id=place
            )
    took = time.perf_counter() - begin
    if rank == 0:
        rate = (len(losses) - first) * batch * LENGTH / took if len(losses) > first else 0.0
        (out / f"run{n}.json").write_text(json.dumps({"ranks": n, "losses": losses, "letters a second": rate}))


def plot(runs: list[dict], path: Path) -> None:
    """Loss against steps, and letters a second against processes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
    for run in runs:
        left.plot(run["losses"], label=f"{run['ranks']} processes", alpha=0.7)
    left.set(xlabel="step", ylabel="loss", title="the same training")
    left.legend()
    right.bar([str(r["ranks"]) for r in runs], [r["letters a second"] for r in runs])
    right.set(xlabel="processes", ylabel="letters a second", title="throughput")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Start the runs, or be a rank of one."""
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rank", action="store_true", help="be a process of a run")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--out", type=Path, default=Path("build/distributed_transformer"))
    p.add_argument("--ranks", default="1,2,4", help="numbers of processes")
    args = p.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.rank:
        return train(args.steps, args.batch, args.out)
    runs = []
    for n in map(int, args.ranks.split(",")):
        print(f"{n} processes", flush=True)
        rest = ["--rank", "--steps", str(args.steps), "--batch", str(args.batch), "--out", str(args.out)]
        subprocess.run([sys.executable, "-m", "chainrule", "run", "-n", str(n), __file__, *rest], check=True)
        runs.append(json.loads((args.out / f"run{n}.json").read_text()))
    worst = max(abs(a - b) for r in runs for a, b in zip(r["losses"], runs[0]["losses"], strict=True))
    for r in runs:
        print(f"{r['ranks']} processes: loss {r['losses'][-1]:.4f}, {r['letters a second']:.0f} letters a second")
    print(f"the losses differ by {worst:.1e} at most")
    plot(runs, args.out / "runs.png")
    print(f"plot: {args.out / 'runs.png'}")
    return None


if __name__ == "__main__":
    main()
