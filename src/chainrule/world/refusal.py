"""What we will not do has one clear error each; docs/not-done.md has the reasons."""

from __future__ import annotations

from typing import Any

REASONS = {
    "script": "TorchScript: functions and modules run as the Python they are; chainrule.jit compiles by recording",
    "quantisation": "quantisation: numbers of 8 bits and less with scales",
    "rpc": "distributed RPC: write the calls between processes with what fits them",
    "fx": "graph transformations of FX: transform functions with chainrule.func instead",
    "cuda": "what exists for CUDA alone: computation is on the CPU",
    "processes": "collectives over several processes: one process computes here",
}


class NotDone(NotImplementedError):
    """Something of PyTorch's that chainrule does not do, on purpose."""


def refuse(name: str, what: str) -> Any:
    """A function that raises, saying what is not done and where the reasons are."""

    def call(*args: Any, **kw: Any) -> Any:
        raise NotDone(f"{name}: chainrule does not do this ({REASONS[what]}). See docs/not-done.md")

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"Not done: {REASONS[what]}."
    return call


def refused_class(name: str, what: str) -> type:
    """A class that can be named, derived from and asked for in isinstance(), and of which there is no instance."""

    def __init__(self: Any, *args: Any, **kw: Any) -> None:
        raise NotDone(f"{name}: chainrule does not do this ({REASONS[what]}). See docs/not-done.md")

    return type(
        name.rpartition(".")[2],
        (),
        {"__init__": __init__, "__doc__": f"Not done: {REASONS[what]}.", "__module__": "chainrule.world"},
    )
