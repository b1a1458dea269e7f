"""Devices that are not here: how many there are (none), and the calls that programs make before they ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..core.device import device as place_name
from .refusal import refuse

# What does nothing where there is no device.
HARMLESS = """empty_cache empty_host_cache synchronize ipc_collect init reset_peak_memory_stats reset_max_memory_allocated
    reset_max_memory_cached reset_accumulated_memory_stats manual_seed manual_seed_all seed seed_all set_per_process_memory_fraction
    set_sync_debug_mode set_stream""".split()
# What counts bytes or devices: there are none.
COUNTS = """device_count memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached
    current_allocated_memory driver_allocated_memory recommended_max_memory get_sync_debug_mode utilization initial_seed""".split()
REFUSED = """current_device get_device_name get_device_properties get_device_capability current_stream default_stream
    get_rng_state set_rng_state memory_stats memory_summary memory_snapshot mem_get_info can_device_access_peer make_graphed_callables
    list_gpu_processes compile_shader get_core_count""".split()


def _constant(name: str, value: Any) -> Any:
    def call(*args: Any, **kw: Any) -> Any:
        return value

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{value!r}: there is no such device here."
    return call


class Stream:
    """A queue of work: computation is in order here, so waiting is done at once."""

    def __init__(self, *args: Any, **kw: Any) -> None:
        pass

    def synchronize(self) -> None:
        """Nothing: all work is done."""

    wait_stream = wait_event = record_event = lambda self, *args, **kw: None

    def query(self) -> bool:
        """Whether all work is done: yes."""
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc: Any) -> None:
        pass


class Event(Stream):
    """A point in time of a queue of work."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self.time = 0.0

    def record(self, stream: Any = None) -> None:
        """Take the time."""
        import time

        self.time = time.perf_counter()

    wait = Stream.synchronize

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds from this event to another."""
        return 1000 * (end.time - self.time)


def fill(names: dict[str, Any], kind: str) -> None:
    """Put the functions of a device that is not here into a module's names."""

    class device:
        """The current device, inside a ``with``; None and -1 leave all as it is."""

        def __init__(self, device: Any) -> None:
            self.idx = -1 if device is None else place_name(kind, device).index if isinstance(device, int) else 0

        def __enter__(self) -> None:
            pass

        def __exit__(self, *exc: Any) -> None:
            pass

    @contextlib.contextmanager
    def stream(stream: Any) -> Iterator[None]:
        """Work in a queue: it is done in order."""
        yield

    for n in HARMLESS:
        names.setdefault(n, _constant(n, None))
    for n in COUNTS:
        names.setdefault(n, _constant(n, 0))
    for n in (
        "is_available",
        "is_initialized",
        "is_bf16_supported",
        "is_tf32_supported",
        "is_current_stream_capturing",
        "is_built",
    ):
        names.setdefault(n, _constant(n, False))
    for n in ("get_rng_state_all", "get_arch_list", "default_generators"):
        names.setdefault(n, _constant(n, []) if n != "default_generators" else ())
    names.setdefault("set_rng_state_all", _constant("set_rng_state_all", None))
    names.setdefault("set_device", _constant("set_device", None))
    for n in REFUSED:
        names.setdefault(n, refuse(f"{kind}.{n}", "cuda"))
    for n, v in (
        ("device", device),
        ("device_of", device),
        ("stream", stream),
        ("Stream", Stream),
        ("Event", Event),
        ("StreamContext", stream),
    ):
        names.setdefault(n, v)
