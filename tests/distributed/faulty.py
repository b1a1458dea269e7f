"""Programs in which something goes wrong, by name: run by test_faults.py on several ranks."""

from __future__ import annotations

import os
import signal
import sys
import time

import chainrule as cr
import chainrule.distributed as dist
from chainrule.distributed import groups


def caught(f: object) -> None:
    """What this rank is told, in one line."""
    begin = time.monotonic()
    try:
        f()  # type: ignore[operator]
        print("went on", flush=True)
    except dist.DistError as e:
        print(
            f"{type(e).__name__} after {time.monotonic() - begin:.1f} s: {' / '.join(str(e).splitlines())}", flush=True
        )


def killed() -> None:
    """Rank 1 is killed; the others wait for it in an all_reduce."""
    dist.init_process_group("mpi", timeout=30)
    x = cr.ones(1000)
    dist.all_reduce(x)
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    caught(lambda: dist.all_reduce(x))
    sys.exit(3)


def raises() -> None:
    """Rank 1 ends by an exception, in the middle of training; the others are told which."""
    dist.init_process_group("mpi", timeout=30)
    if dist.get_rank() == 1:
        raise ValueError("no such batch")
    caught(lambda: dist.broadcast(cr.ones(3), 1))


def early() -> None:
    """Rank 1 never gets to init_process_group."""
    if os.environ["PMI_RANK"] == "1":
        raise ImportError("no module named chain")
    dist.init_process_group("mpi", timeout=30)


def late_and_odd() -> None:
    """A rank that hangs; ranks that call different things; with the debug switch and without. Each in a group of its own."""
    dist.init_process_group("mpi", timeout=30)
    r = dist.get_rank()
    hang, shapes, kinds, plain = (dist.new_group(timeout=1.0) for _ in range(4))
    if r == 1:
        time.sleep(4.5)
    else:
        caught(lambda: dist.all_gather_into_tensor(cr.zeros(4 * dist.get_world_size()), cr.ones(4), hang))
    dist.barrier()
    groups.DEBUG = True
    caught(lambda: dist.all_reduce(cr.ones(3 + (r == 1)), group=shapes))
    caught(lambda: dist.all_reduce(cr.ones(3, dtype=cr.float64 if r == 1 else cr.float32), group=shapes))
    caught(lambda: dist.all_reduce(cr.ones(3), group=kinds) if r else dist.broadcast(cr.ones(3), 0, kinds))
    dist.all_reduce(y := cr.ones(2))
    assert y.tolist() == [dist.get_world_size()] * 2
    groups.DEBUG = False
    caught(
        lambda: (
            dist.all_reduce(cr.ones(3), group=plain)
            if r
            else dist.all_gather([cr.ones(3)] * dist.get_world_size(), cr.ones(3), plain)
        )
    )
    time.sleep(3)
    sys.stdout.flush()
    os._exit(0)


def checkpoints(compared: bool = False) -> None:
    """Rank 0 alone has its collective inside an activation checkpoint, which runs it again."""
    from chainrule.distributed.nn import functional as C
    from chainrule.utils.checkpoint import checkpoint

    dist.init_process_group("mpi", timeout=1.0)
    groups.DEBUG = compared
    x = cr.ones(3, requires_grad=True)
    f = lambda v: C.all_reduce(v.sin())
    y = checkpoint(f, x, use_reentrant=False) if dist.get_rank() == 0 else f(x)
    caught(y.sum().backward)
    time.sleep(1.5)
    sys.stdout.flush()
    os._exit(0)


def checkpoints_compared() -> None:
    """The same with the debug switch."""
    checkpoints(True)


def forever() -> None:
    """Waits for Ctrl-C."""
    dist.init_process_group("mpi", timeout=30)
    try:
        print("ready", flush=True)
        while True:
            dist.all_reduce(cr.ones(1))
            time.sleep(0.02)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        time.sleep(1)  # the other one has its own
        os._exit(0)


def fine() -> None:
    """Nothing goes wrong."""
    dist.init_process_group("mpi")
    x = cr.ones(())
    dist.all_reduce(x)
    print(f"sum {x.item():g} of {dist.get_world_size()} args {sys.argv[2:]}", flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
