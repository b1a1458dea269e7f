"""Collectives and data-parallel training on two ranks: beside mpi4py's own call, and beside training that reduces after backward.

The rows are measured in two processes that this module starts. Overlap is judged twice: on this machine as it is, where the ranks have every core at work and a
message is copied by the same cores, so that little can be hidden; and behind an emulated network (``CHAINRULE_DISTRIBUTED_LINK``: a collective is over no
earlier than its latency and its bytes at that bandwidth take), where the bytes travel while the cores compute, as they do between machines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.common import Row

ROOT = Path(__file__).resolve().parents[1]
LINK = "1e-4,5e8"  # 100 µs and 0.5 GB/s: two ranks that share a 10 Gbit/s network


def ranks(what: str, n: int = 2, **env: str) -> dict[str, float]:
    """What `n` ranks measured, by this module's function `what`."""
    from chainrule.distributed.launch import find_mpiexec

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
        subprocess.run(
            [str(find_mpiexec()), "-n", str(n), sys.executable, "-m", "benchmarks.distributed", what, str(out)],
            env=os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | env,
            check=True,
            timeout=400,
        )
        return json.loads(out.read_text())


def rows(only: str = "") -> Iterable[Row]:
    """all_reduce beside mpi4py; what is left to see of the communication of data-parallel training."""
    name = "all_reduce of 64 MB on 2 ranks"
    if only in name:
        t = ranks("reduce")
        yield Row(name, {"chainrule": t["ours"], "mpi4py": t["mpi4py"]}, {"mpi4py": 1.2})
    name = "overlap of a 10-layer MLP on 2 ranks, emulated network of 4 Gbit/s a rank: communication that is seen, of what there is"
    if only in name:
        t = ranks("overlap", CHAINRULE_DISTRIBUTED_LINK=LINK)
        seen, there = max(t["overlapped"] - t["alone"], 1e-9), t["after"] - t["alone"]
        yield Row(name, {"chainrule": seen, "reduced after backward": there}, {"reduced after backward": 0.5})
    name = "overlap of a 10-layer MLP on 2 ranks, memory of this machine: communication that is seen, of what there is"
    if only in name:
        t = ranks("overlap")
        seen, there = max(t["overlapped"] - t["alone"], 1e-9), t["after"] - t["alone"]
        yield Row(name, {"chainrule": seen, "reduced after backward": there}, {})


# -- in a rank ------------------------------------------------------------------------------------------------------------


def turns(dist: Any, work: dict[str, Any], rounds: int) -> dict[str, float]:
    """The best time of each, in turns; a turn takes as long as its slowest rank."""
    import numpy as np

    from chainrule.distributed import groups

    best = dict.fromkeys(work, float("inf"))
    comm = groups.world().comm
    for _ in range(rounds):
        for name, f in work.items():
            comm.Barrier()
            begin = time.perf_counter()
            f()
            took, most = np.array(time.perf_counter() - begin), np.empty(())
            comm.Allreduce(took, most, groups.MPI.MAX)
            best[name] = min(best[name], float(most))
    return best


def reduce(dist: Any) -> dict[str, float]:
    """64 MB of float32 in place: ours, and mpi4py's call on the same memory."""
    import chainrule as cr
    from chainrule.distributed import groups

    x = cr.ones(16 * 2**20)
    a = x.numpy()
    comm, MPI = groups.world().comm, groups.MPI
    work = {"ours": lambda: dist.all_reduce(x), "mpi4py": lambda: comm.Allreduce(MPI.IN_PLACE, a)}
    return turns(dist, work, 25)


def overlap(dist: Any) -> dict[str, float]:
    """A step of a 10-layer MLP: without communication, with all of it after backward, and by DistributedDataParallel."""
    import numpy as np

    import chainrule as cr
    from chainrule import nn
    from chainrule.distributed import groups, wire

    width, batch = 512, 256
    cr.manual_seed(0)
    model = nn.Sequential(*[m for _ in range(10) for m in (nn.Linear(width, width), nn.Tanh())])
    x = cr.randn(batch, width)
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1)
    params = list(model.parameters())

    def step(f: Any) -> None:
        for p in params:
            p.grad = None
        (f(x) ** 2).mean().backward()

    def alone() -> None:
        with ddp.no_sync():
            step(ddp)

    def after() -> None:
        alone()
        g = groups.world()
        for b in ddp.reducer.buckets:
            flat = np.concatenate([params[k].grad.numpy().reshape(-1) for k in b.params])
            wire.all_reduce(g, None, flat).wait()
            flat /= g.size()
            at = 0
            for k in b.params:
                params[k].grad = cr.from_numpy(flat[at : at + params[k].numel()].reshape(params[k].shape))
                at += params[k].numel()

    return turns(dist, {"alone": alone, "after": after, "overlapped": lambda: step(ddp)}, 40)


def latency(dist: Any) -> dict[str, float]:
    """Seconds of all_reduce (in place) by bytes, and of a barrier, for the model of docs/scale.md."""
    import chainrule as cr

    work = {"barrier": dist.barrier}
    for k in (3, 10, 14, 17, 20, 22, 24, 26):
        x = cr.ones(2**k // 4) if k > 3 else cr.ones(2)
        work[str(x.nbytes)] = lambda x=x: dist.all_reduce(x)
    return turns(dist, work, 100)


def main(what: str, out: str) -> None:
    """One rank."""
    import chainrule.distributed as dist

    dist.init_process_group("mpi", timeout=120)
    found = globals()[what](dist)
    if dist.get_rank() == 0:
        Path(out).write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
