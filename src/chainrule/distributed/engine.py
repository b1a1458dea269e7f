"""MPI: loading it, its types and reductions, and how a call is waited for.

Every call is a nonblocking one of MPI that is asked for its end (`Test`) until that has come: so a wait ends by itself after its time, or
when the watch over the other processes says that one has died, and processes that share cores let each other run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np

from ..core import dtypes as dt
from .errors import DistBackendError, DistError

# What a launcher of MPI tells its processes; where there is nothing of it, this process is alone.
LAUNCHED = "PMI_RANK PMI_SIZE PMIX_RANK OMPI_COMM_WORLD_SIZE MV2_COMM_WORLD_SIZE PALS_RANKID".split()
DEFAULT_TIMEOUT = 1800.0


def launched() -> bool:
    """Whether a launcher of MPI started this process."""
    return any(k in os.environ for k in LAUNCHED)


def load() -> Any:
    """mpi4py's MPI, initialised for threads; its end is left to us, since it waits for processes that may have died."""
    try:
        import mpi4py
    except ImportError as e:
        raise DistError(
            "distributed: this process was started by a launcher of MPI, but mpi4py is not installed: pip install mpi4py mpich"
        ) from e
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    return MPI


def seconds(timeout: Any) -> float:
    """A number of seconds or a timedelta as seconds."""
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


class ReduceOp:
    """How a reduction combines: SUM, AVG, PRODUCT, MIN, MAX, and of integers BAND, BOR, BXOR."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR = "SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"
    RedOpType = str


_NAMES = {"SUM": "SUM", "PRODUCT": "PROD", "MIN": "MIN", "MAX": "MAX", "BAND": "BAND", "BOR": "BOR", "BXOR": "BXOR"}
_FUNCTIONS: dict[str, Any] = {"SUM": np.add, "PRODUCT": np.multiply, "MIN": np.minimum, "MAX": np.maximum}
_OF_BOOLS = {"SUM": "LOR", "MAX": "LOR", "BOR": "LOR", "PRODUCT": "LAND", "MIN": "LAND", "BAND": "LAND", "BXOR": "LXOR"}
_made: dict[Any, Any] = {}


def reduction(MPI: Any, d: np.dtype[Any], how: str) -> tuple[Any, Any]:
    """MPI's type and operation for elements of type `d`; numbers of 16 bits are added in 32 and rounded."""
    if how not in _NAMES:
        raise ValueError(f"distributed: unknown reduction {how!r}; there are {', '.join(_NAMES)} and AVG, of ReduceOp")
    if d.kind == "b":
        return MPI.C_BOOL, getattr(MPI, _OF_BOOLS[how])
    if how in ("BAND", "BOR", "BXOR") and d.kind not in "iu":
        raise TypeError(f"distributed: ReduceOp.{how} is for integers, not for {dt.FROM_NP[d]}")
    if how in ("MIN", "MAX") and (d.kind == "c" or d == dt.complex32.np):
        raise TypeError(
            f"distributed: ReduceOp.{how} is not defined for {dt.FROM_NP[d]}: complex numbers have no order"
        )
    kind = None if d.itemsize == 2 and d.kind not in "iu" else _typecode(MPI, d)
    if kind is not None:
        return kind, getattr(MPI, _NAMES[how])
    key = (d, how)
    if key not in _made:
        _made[key] = MPI.Op.Create(_combine(d, _FUNCTIONS[how]), commute=True)
    return (MPI.UINT16_T if d.itemsize == 2 else MPI.BYTE if d.itemsize == 1 else MPI.UINT32_T), _made[key]


def _typecode(MPI: Any, d: np.dtype[Any]) -> Any:
    try:
        return MPI._typedict[d.char] if d.kind in "iufc" else None
    except KeyError:
        return None


def _combine(d: np.dtype[Any], f: Any) -> Callable[..., None]:
    """A reduction of MPI for a type that it does not know."""
    wide = np.dtype(np.complex64) if d.itemsize == 4 else np.dtype(np.float32)

    def combine(a: Any, b: Any, _: Any) -> None:
        x, y = np.frombuffer(a, d), np.frombuffer(b, d)
        y[...] = f(x.astype(wide), y.astype(wide)).astype(d)

    return combine


def raw(x: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array as bytes: MPI need not know its type."""
    return x.reshape(-1).view(np.uint8)


# -- waiting --------------------------------------------------------------------------------------------------------------


class Waiting:
    """How long a wait asks without a pause: as long as the bytes may take where every process has a core, else hardly at all."""

    crowded = False
    spin_s = 2e-4
    rate = 4e8  # bytes a second, slower than any memory

    def patience(self, nbytes: int) -> float:
        return 2e-5 if self.crowded else self.spin_s + nbytes / self.rate


WAITING = Waiting()
# An emulated network: seconds and bytes a second that a collective takes at least (CHAINRULE_DISTRIBUTED_LINK="50e-6,1e9").
LINK: tuple[float, float] | None = None
if os.environ.get("CHAINRULE_DISTRIBUTED_LINK"):
    LINK = tuple(map(float, os.environ["CHAINRULE_DISTRIBUTED_LINK"].split(",")))  # type: ignore[assignment]


_free = 0.0  # when the emulated link has carried what it was given


def over_the_link(nbytes: int) -> float:
    """When an emulated network has carried so many more bytes: one message after the other, each with its latency."""
    global _free
    latency, rate = LINK  # type: ignore[misc]
    _free = max(time.perf_counter(), _free) + nbytes / rate
    return _free + latency


def wait_until(done: Callable[[], bool], timeout: float, nbytes: int, trouble: Callable[[bool], None]) -> None:
    """Wait for `done()`; ``trouble(False)`` is asked now and then and raises if a process died, ``trouble(True)`` raises after `timeout`."""
    if done():
        return
    begin = time.perf_counter()
    patience, pause, looked = WAITING.patience(nbytes), 2e-5, begin
    while not done():
        now = time.perf_counter()
        if now - begin < patience:
            os.sched_yield()
            continue
        time.sleep(pause)
        pause = min(pause * 1.2, 1e-3 if now - begin < 1 else 1e-2)
        if now - looked > 0.05:
            looked = now
            trouble(False)
            if now - begin > timeout:
                trouble(True)


def call(f: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    """A call of MPI, with our error in place of its own."""
    try:
        return f(*args, **kw)
    except Exception as e:
        if type(e).__name__ != "Exception" or not hasattr(e, "Get_error_string"):
            raise
        raise DistBackendError(
            f"distributed: MPI refused {getattr(f, '__name__', f)}: {e.Get_error_string().strip().splitlines()[0]}. Do all ranks call it with the same "
            f"shapes and types? CHAINRULE_DISTRIBUTED_DEBUG=1 compares them first"
        ) from e
