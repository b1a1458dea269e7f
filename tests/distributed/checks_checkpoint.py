"""Checkpoints on several ranks: shares, shards, another number of ranks, training that goes on bit for bit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import chainrule as cr
import chainrule.distributed as dist
from chainrule.distributed import checkpoint
from chainrule.optim import Adam
from tests.distributed.checks_train import data, mlp, mse


def folder() -> Path:
    """A folder that all ranks know."""
    box: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(box, 0)
    return Path(box[0])


def check_every_type() -> None:
    n, _r = dist.get_world_size(), dist.get_rank()
    types = [cr.float64, cr.float32, cr.float16, cr.bfloat16, cr.complex64, cr.int64, cr.uint8, cr.bool]
    state = {
        "t": {d.name: cr.arange(7).to(d) for d in types},
        "n": [1, 2.5, "x", None, (True, b"z")],
        3: cr.zeros(()),
        "e": cr.zeros(0, 2),
    }
    at = folder()
    version = checkpoint.save(state, checkpoint_id=at)
    files = sorted(p.name for p in version.iterdir())
    assert files == ["index.json", *[f"rank{k:05d}.bin" for k in range(n)]]
    got = checkpoint.load(checkpoint_id=at)
    assert got["n"] == state["n"] and got[3].shape == () and got["e"].shape == (0, 2)
    for d in types:
        assert got["t"][d.name].dtype is d
        np.testing.assert_array_equal(got["t"][d.name].numpy(), state["t"][d.name].numpy())
    into = {"t": {d.name: cr.zeros(7, dtype=d) for d in types}}
    held = into["t"]["float32"]
    checkpoint.load(into, checkpoint_id=at)
    assert held.tolist() == list(range(7)) and into["n"] == state["n"]
    sizes = [os.path.getsize(version / f"rank{k:05d}.bin") for k in range(n)]
    assert max(sizes) < sum(sizes)  # shared out


def check_shards_on_other_numbers_of_ranks() -> None:
    """Written by n ranks in parts of unequal size, read as a whole, by halves and by one."""
    n, r = dist.get_world_size(), dist.get_rank()
    whole = cr.arange(30.0).reshape(10, 3)
    cuts = [0, *[3 + 2 * k if 3 + 2 * k < 10 else 10 for k in range(n - 1)], 10]
    mine = checkpoint.Shard(whole[cuts[r] : cuts[r + 1]].clone(), 0, cuts[r], 10)
    at = folder()
    checkpoint.save({"w": mine, "step": 4}, checkpoint_id=at)
    assert checkpoint.load(checkpoint_id=at)["w"].tolist() == whole.tolist()
    lo, hi = (0, 5) if r % 2 else (5, 10)
    part = checkpoint.Shard(cr.zeros(hi - lo, 3), 0, lo, 10)
    checkpoint.load({"w": part}, checkpoint_id=at)
    assert part.tensor.tolist() == whole[lo:hi].tolist()
    column = checkpoint.Shard(cr.zeros(10, 1), 1, 2, 3)
    checkpoint.load({"w": column}, checkpoint_id=at)
    assert column.tensor.tolist() == whole[:, 2:].tolist()
    if r == 0:  # one rank alone
        assert checkpoint.load(checkpoint_id=at, no_dist=True)["w"].tolist() == whole.tolist()
    dist.barrier()


def check_versions() -> None:
    """The last two are kept; a damaged one is passed over."""
    at = folder()
    for k in range(4):
        checkpoint.save({"k": k, "x": cr.full((50,), float(k))}, checkpoint_id=at)
    if dist.get_rank() == 0:
        assert sorted(p.name for p in at.iterdir()) == ["v00000003", "v00000004"]
        last = (
            at
            / "v00000004"
            / ("rank00000.bin" if os.path.getsize(at / "v00000004" / "rank00000.bin") else "rank00001.bin")
        )
        blob = bytearray(last.read_bytes())
        blob[17] ^= 255
        last.write_bytes(blob)
    dist.barrier()
    import warnings

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = checkpoint.load(checkpoint_id=at)
    assert got["k"] == 2 and got["x"].tolist() == [2.0] * 50
    assert any("damaged" in str(w.message) for w in seen)
    dist.barrier()


def check_goes_on_bit_for_bit() -> None:
    """Six steps at once, and three with a checkpoint and three after it: the same bits, random numbers too."""
    n, r = dist.get_world_size(), dist.get_rank()
    x, t = data(8 * n)

    def steps(model: Any, opt: Any, count: int) -> None:
        for _ in range(count):
            opt.zero_grad()
            noise = cr.randn(8, 5, dtype=cr.float64)
            mse(model(x[r::n] + 0.1 * noise), t[r::n]).backward()
            opt.step()

    def fresh(seed: int) -> tuple[Any, Any]:
        model = cr.nn.parallel.DistributedDataParallel(mlp(seed))
        return model, Adam(model.parameters(), lr=0.02)

    cr.manual_seed(r)
    model, opt = fresh(0)
    cr.manual_seed(r)
    steps(model, opt, 6)
    want = [p.detach().numpy().copy() for p in model.parameters()]
    model, opt = fresh(0)
    cr.manual_seed(r)
    steps(model, opt, 3)
    at = folder()
    noise = cr.get_rng_state()
    random = checkpoint.Shard(noise.reshape(1, -1), 0, r, n)  # each rank's own
    checkpoint.save({"model": model.state_dict(), "opt": opt.state_dict(), "random": random}, checkpoint_id=at)
    cr.manual_seed(99)
    model, opt = fresh(7)
    state = checkpoint.load({"random": random}, checkpoint_id=at)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    cr.set_rng_state(random.tensor[0])
    steps(model, opt, 3)
    for a, b in zip(want, model.parameters(), strict=True):
        np.testing.assert_array_equal(a, b.detach().numpy())


def checks() -> dict[str, Callable[[], None]]:
    return {k: f for k, f in globals().items() if k.startswith("check_")}
