"""Process groups: who takes part, the numbers of their collectives, and what a wait that fails says."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dispatch import AGAIN
from .engine import DEFAULT_TIMEOUT, WAITING, call, launched, load, seconds, wait_until
from .errors import DistError, DistMismatchError, DistPeerError, DistTimeoutError
from .watch import Watch

MPI: Any = None
DEBUG = os.environ.get("CHAINRULE_DISTRIBUTED_DEBUG", "") not in ("", "0", "OFF")
SIGNATURE = 256


class ProcessGroup:
    """Some processes: ``group.ranks`` are their numbers in the world, ``group.rank`` is which of them this one is (-1: none)."""

    WORLD: Any = None

    def __init__(self, number: int, ranks: list[int], comm: Any, control: Any, timeout: float, me: int) -> None:
        self.number, self.ranks, self.comm, self.control, self.timeout = number, ranks, comm, control, timeout
        self._rank = ranks.index(me) if me in ranks else -1
        self.count = 0  # of the collectives that were begun
        self.now: tuple[Any, ...] = (0, "nothing yet", (), "")  # the last of them
        self.broken = ""
        self.where, self.again = (
            "",
            False,
        )  # of the second run of an activation checkpoint: what is said of it, whether there was one
        self.order: tuple[int, ...] = (0, number)  # in which several groups agree, the same on all ranks
        self.inner = self
        self.joined: Any = None  # the join() that is open, told of each backward that is a meeting
        self.to_self: dict[int, list[np.ndarray]] = {}  # by tag, what a process alone sent to itself

    def rank(self) -> int:
        """Which of the group's processes this one is; -1 if none."""
        return self._rank

    def size(self) -> int:
        """How many processes."""
        return len(self.ranks)

    def name(self) -> str:
        """What it is called in messages."""
        return "the world" if self.number == 0 else f"group {self.number} of ranks {self.ranks}"

    def __repr__(self) -> str:
        return f"ProcessGroup({self.number}, ranks={self.ranks})"

    def __reduce__(self) -> Any:
        raise TypeError("a ProcessGroup belongs to its process and cannot be pickled")

    # -- one collective -----------------------------------------------------------------------------------------------
    def begin(self, name: str, x: Any = None, extra: Any = "", sizes: bool = True) -> None:
        """Note that this rank comes to its next collective; with the debug switch, compare what all ranks came to."""
        if self.broken:
            raise DistError(f"distributed: {name}: {self.name()} cannot be used any more: {self.broken}")
        if self._rank < 0:
            raise DistError(f"distributed: {name}: rank {STATE.rank} is not in {self.name()}")
        self.count += 1
        self.rerun()
        self.now = (self.count, name, None if x is None else x.shape, None if x is None else x.dtype, extra)
        if DEBUG and self.comm is not None:
            self.compare(sizes)

    def rerun(self) -> None:
        """Note whether this is the second run of an activation checkpoint, to which the other ranks must come too."""
        self.where = " in the second run of a checkpoint" if AGAIN.get() else ""
        self.again = self.again or bool(self.where)

    def signature(self) -> str:
        """What this rank is at: ``all_reduce number 7 of shape [3] float32``."""
        n, name, shape, d, *extra = self.now
        if not n:
            return name + self.where
        text = f"{name} number {n}"
        if shape is not None:
            text += f" of shape {list(shape)} {d}"
        return text + (f" {extra[0]}" if extra and extra[0] else "") + self.where

    def compare(self, sizes: bool, before: str = "") -> None:
        """Raise on every rank where the ranks came to different collectives."""
        mine = before + self.signature()
        if not sizes:
            mine = mine.replace(f" of shape {list(self.now[2])}", " of")
        buf = np.zeros(SIGNATURE, np.uint8)
        text = mine.encode()[:SIGNATURE]
        buf[: len(text)] = np.frombuffer(text, np.uint8)
        all_of = np.empty((self.size(), SIGNATURE), np.uint8)
        request = call(self.control.Iallgather, buf, all_of)
        self.wait(request.Test, self.timeout, 0, f"the comparison before {mine}")
        texts = [bytes(row).rstrip(b"\0").decode(errors="replace") for row in all_of]
        if len(set(texts)) > 1:
            lines = "\n".join(f"    rank {r}: {t}" for r, t in zip(self.ranks, texts, strict=True))
            raise DistMismatchError(f"distributed: the ranks of {self.name()} called different collectives:\n{lines}")

    def wait(self, done: Callable[[], bool], timeout: float | None, nbytes: int = 0, what: str = "") -> None:
        """Wait for the end of a call; raises if a process of the group died, or after `timeout` seconds."""
        limit = self.timeout if timeout is None else timeout

        def trouble(over: bool) -> None:
            watch = STATE.watch
            dead = {} if watch is None else self._gone(watch)
            if dead:
                time.sleep(0.2)  # several may die at once
                dead = self._gone(watch)  # type: ignore[arg-type]
                self.broken = f"rank {', '.join(map(str, dead))} died"
                whys = "; ".join(f"rank {r}: {why}" for r, why in dead.items())
                raise DistPeerError(
                    f"distributed: {what or self.signature()} on rank {STATE.rank} of {self.name()}: "
                    f"rank {', '.join(map(str, dead))} did not come, since it died ({whys})"
                )
            if over:
                self.broken = "a collective timed out"
                raise DistTimeoutError(self._late(what or self.signature(), limit))

        wait_until(done, limit, nbytes, trouble)

    def _gone(self, watch: Watch) -> dict[int, str]:
        """The ranks that will not come: those that died, and those that have ended before this collective."""
        gone = {r: why for r, why in watch.dead.items() if r in self.ranks}
        for r, at in watch.left.items():
            if r in self.ranks and at.get(str(self.number), (0, ""))[0] < self.count and self.now[0]:
                gone[r] = "its program ended before this"
        return gone

    def _late(self, what: str, limit: float) -> str:
        """Who did not come in time, and where they are instead."""
        head = f"distributed: {what} on rank {STATE.rank} of {self.name()} was not over after {limit:g} s"
        if STATE.watch is None:
            return f"{head}; which ranks did not come is not known, since there is no watch over them"
        answers = STATE.watch.ask(2.0)
        late, odd = [], []
        for r in self.ranks:
            if r == STATE.rank:
                continue
            a = answers.get(r)
            if a is None and r in STATE.watch.left:
                late.append(f"rank {r} did not come: it has left the world")
                continue
            if a is None:
                late.append(f"rank {r} did not come and does not answer")
                continue
            n, text = a.get(str(self.number), (0, "nothing yet"))
            if n < self.count:
                late.append(f"rank {r} did not come: it is at {text}")
            elif n == self.count and text.split(" of shape")[0] != self.signature().split(" of shape")[0]:
                odd.append(f"rank {r} called {text} instead")
            elif n > self.count:
                odd.append(f"rank {r} has gone on to {text}")
        if self.again:
            odd.append(
                "this rank ran collectives again in an activation checkpoint, to which all ranks must come: put the same collectives inside "
                "checkpoints on every rank, or none"
            )
        return "; ".join([head, *late, *odd]) if late or odd else f"{head}, though every rank came"

    def agree(self, bits: int, words: int = 1) -> int:
        """The bits that some rank has set; all ranks of the group call this together."""
        if self.comm is None:
            return bits
        self.rerun()
        if DEBUG:
            self.compare(True, "the agreement after ")
        x = np.array([(bits >> (63 * k)) & (2**63 - 1) for k in range(words)], np.int64)
        y = np.empty_like(x)
        request = call(self.control.Iallreduce, x, y, MPI.BOR)
        self.wait(request.Test, None, 0, f"the agreement after {self.signature()}")
        return sum(int(v) << (63 * k) for k, v in enumerate(y))


class State:
    """This process: its number, how many there are, the groups and the watch over the others."""

    world: ProcessGroup | None = None
    groups: dict[int, ProcessGroup]
    watch: Watch | None = None
    rank = 0
    backend = "mpi"
    ended = False

    def __init__(self) -> None:
        self.groups = {}


STATE = State()


def world() -> ProcessGroup:
    """The group of all processes."""
    if STATE.world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return STATE.world


def resolve(group: Any, what: str = "") -> ProcessGroup:
    """The group that an argument `group` means."""
    if group is None:
        return world()
    if isinstance(group, ProcessGroup):
        return group
    raise TypeError(f"distributed: {what or 'group'} must be a ProcessGroup or None, got {type(group).__name__}")


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Become a process of the world: that of MPI if a launcher of MPI started this process, else a world of one.

    `backend` is "mpi" (also for None and "gloo": MPI does the work). Collectives raise after `timeout` (seconds or a timedelta; half an hour).
    """
    if STATE.world is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if backend not in (None, "mpi", "gloo", "cpu:gloo", "undefined"):
        from ..world.refusal import NotDone

        raise NotDone(
            f"distributed.init_process_group({backend!r}): chainrule does not do this (computation is on the CPU, "
            f'and collectives go by MPI: init_process_group("mpi")). See docs/not-done.md'
        )
    global MPI
    limit = DEFAULT_TIMEOUT if timeout is None else seconds(timeout)
    if launched():
        mind_the_end()
        MPI = load()
        base = MPI.COMM_WORLD
        n, STATE.rank = base.size, base.rank
        comm, control = (base.Dup(), base.Dup()) if n > 1 else (None, None)
        if comm is not None:
            for c in (comm, control):
                c.Set_errhandler(MPI.ERRORS_RETURN)  # type: ignore[union-attr]
            near = base.Split_type(MPI.COMM_TYPE_SHARED)
            WAITING.crowded = near.size > len(os.sched_getaffinity(0))
            near.Free()
            STATE.watch = Watch.start(base, lambda: status())
    else:
        n, STATE.rank, comm, control = 1, 0, None, None
    if world_size not in (-1, n) or rank not in (-1, STATE.rank):
        raise ValueError(
            f"init_process_group: world_size={world_size}, rank={rank}, but MPI started {n} processes and this is {STATE.rank}"
        )
    STATE.world = ProcessGroup.WORLD = ProcessGroup(0, list(range(n)), comm, control, limit, STATE.rank)
    STATE.groups = {0: STATE.world}


def status() -> dict[str, Any]:
    """Where this rank is in each of its groups, for whoever waits for it."""
    return {str(g.number): (g.count, g.signature()) for g in STATE.groups.values()}


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: Any = None,
    backend: Any = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: Any = None,
) -> ProcessGroup:
    """A group of some ranks (None: all); every rank of the world calls this, in it or not."""
    w = world()
    chosen = sorted(w.ranks if ranks is None else ranks)
    if len(set(chosen)) != len(chosen) or not all(r in w.ranks for r in chosen):
        raise ValueError(f"new_group: ranks must be different numbers below {w.size()}, got {chosen}")
    number = max(STATE.groups) + 1
    limit = w.timeout if timeout is None else seconds(timeout)
    comm = control = None
    if w.comm is not None:
        w.begin("new_group", extra=str(chosen))
        ours = STATE.rank in chosen and len(chosen) > 1
        color = chosen[0] if ours else MPI.UNDEFINED
        comm = w.comm.Split(color, STATE.rank)
        control = w.comm.Split(color, STATE.rank)
        comm, control = (comm, control) if ours else (None, None)
        if comm is not None:
            for c in (comm, control):
                c.Set_errhandler(MPI.ERRORS_RETURN)  # type: ignore[union-attr]
    group = STATE.groups[number] = ProcessGroup(number, chosen, comm, control, limit, STATE.rank)
    return group


def destroy_process_group(group: Any = None) -> None:
    """Leave a group; without `group` the world, and all groups with it."""
    if group is not None and group is not STATE.world:
        STATE.groups.pop(group.number, None)
        return
    world()
    STATE.world = ProcessGroup.WORLD = None
    STATE.groups = {}


def is_initialized() -> bool:
    """Whether init_process_group was called."""
    return STATE.world is not None


def get_rank(group: Any = None) -> int:
    """Which process of the group (of the world) this one is; -1 if it is not in it. Without a world 0."""
    return 0 if STATE.world is None and group is None else resolve(group).rank()


def get_world_size(group: Any = None) -> int:
    """How many processes the group has; -1 if this one is not in it. Without a world 1."""
    if STATE.world is None and group is None:
        return 1
    g = resolve(group)
    return g.size() if g.rank() >= 0 else -1


def get_process_group_ranks(group: Any = None) -> list[int]:
    """The numbers in the world of the group's processes."""
    return list(resolve(group).ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """The number in the world of a group's process."""
    return resolve(group).ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """The number in the group of a process of the world."""
    g = resolve(group)
    if global_rank not in g.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {g}")
    return g.ranks.index(global_rank)


def get_backend(group: Any = None) -> str:
    """The name of what carries the messages: "mpi"."""
    resolve(group)
    return STATE.backend


def root_in(group: ProcessGroup, root: int | None, group_root: int | None, what: str) -> int:
    """The number in the group of the process that a collective begins or ends at."""
    if group_root is not None:
        if root is not None:
            raise ValueError(f"{what}: give the rank in the world or the one in the group, not both")
        if not 0 <= group_root < group.size():
            raise ValueError(f"{what}: group rank {group_root} is not below {group.size()}")
        return group_root
    return get_group_rank(group, 0 if root is None else root)


# -- the end of a process -------------------------------------------------------------------------------------------------


def _failed(kind: Any, value: Any, tb: Any) -> None:
    """An exception that ends this process: the others are told why."""
    failed(f"{kind.__name__}: {str(value).splitlines()[0] if str(value) else ''}"[:300])
    _hook(kind, value, tb)


def failed(why: str) -> None:
    """This process ends by a mistake: it will not wait for the others, and they are told."""
    STATE.ended = True
    if (watch := STATE.watch or Watch.early) is not None:
        watch.say_last(why)


def _leave() -> None:
    """The end of MPI and of the watch; a process that fails does not wait for the others."""
    watch = STATE.watch or Watch.early
    on = MPI is not None and not MPI.Is_finalized()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "_mark"):
            stream.close()
    broken = STATE.ended or any(g.broken for g in STATE.groups.values())
    if broken or (watch is not None and watch.dead):
        sys.stdout.flush()
        sys.stderr.flush()
        if on or watch is not None:
            time.sleep(0.05)
            os._exit(1 if STATE.ended else 0 if not broken else 1)
        return
    if watch is not None:
        watch.leave()
    if on:
        MPI.Finalize()


_hook = sys.excepthook
_minded = False


def mind_the_end() -> None:
    """From now on the end of this process is told to the others."""
    global _hook, _minded
    if not _minded:
        _minded = True
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            signal.signal(
                signal.SIGUSR1, signal.SIG_IGN
            )  # by which MPICH's launcher tells of a death; by default it ends the others
        _hook, sys.excepthook = sys.excepthook, _failed
        atexit.register(_leave)
