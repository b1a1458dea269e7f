"""The graph of the imperative style: its nodes, edges and hooks, and what it saves for backward."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..core.edges import TASK, GradientEdge, get_gradient_edge, node_at
from ..core.reverse import Node
from ..core.tensor import Tensor
from ..core.views import meta, root_of
from ..core.watch import WATCHERS, unwatch, watch

# -- saved tensors ------------------------------------------------------------------------------------------------------


class saved_tensors_hooks:
    """Inside, what ops save for backward is kept as ``pack_hook(x)``, and comes back as ``unpack_hook(packed)``.

    The innermost pair of hooks holds, for the thread that entered it. Transforms (``func.grad``) save for themselves, and are not concerned.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        w = WATCHERS.get()
        if w.refused is not None:
            raise RuntimeError(w.refused)
        watch(hooks=(*w.hooks, (self.pack_hook, self.unpack_hook)))

    def __exit__(self, *exc: Any) -> None:
        unwatch(WATCHERS.get()._replace(hooks=WATCHERS.get().hooks[:-1]))


class save_on_cpu(saved_tensors_hooks):
    """Inside, saved tensors are kept in the memory of the host: where they are already."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda x: x.detach().clone(), lambda x: x)


class disable_saved_tensors_hooks:
    """Inside, ``saved_tensors_hooks`` raises with this message."""

    def __init__(self, error_message: str) -> None:
        self.error_message = error_message
        self._before: list[Any] = []

    def __enter__(self) -> None:
        w = WATCHERS.get()
        if w.hooks and w.refused is None:
            raise RuntimeError(self.error_message)
        self._before.append(w)
        watch(refused=self.error_message)

    def __exit__(self, *exc: Any) -> None:
        unwatch(self._before.pop())

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(f)
        def run(*args: Any, **kw: Any) -> Any:
            with disable_saved_tensors_hooks(self.error_message):
                return f(*args, **kw)

        return run


class _AllowMutation:
    """What ``allow_mutation_on_saved_tensors`` gives: there is nothing to keep, so nothing to clear."""

    def clear(self) -> None:
        """Let go of copies: there are none."""


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutation]:
    """Writes to tensors that were saved for backward are allowed: here they always are, since a write never touches what was saved."""
    yield _AllowMutation()


def increment_version(tensor: Any) -> None:
    """Count a write to the tensor (or tensors) that happened outside of chainrule's sight."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        meta(root_of(t)).version += 1


# -- hooks ----------------------------------------------------------------------------------------------------------------


class _Handles:
    """Hooks on several tensors, removed together."""

    def __init__(self, handles: Sequence[Any]) -> None:
        self._handles = tuple(handles)

    def remove(self) -> None:
        """Take the hooks away."""
        for h in self._handles:
            h.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> _Handles:
    """Call ``fn(grads)`` when backward has computed the gradients of all these tensors, or with mode "any" ``fn(grad)`` at the first.

    Gradients of tensors that a backward does not reach are None.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"register_multi_grad_hook: Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        ran: dict[int, bool] = {}

        def first(g: Any) -> None:
            with lock:
                walk = current_walk()
                if ran.get(walk):
                    return
                ran[walk] = True
                if len(ran) > 256:  # other threads may walk at the same time; long ended walks are forgotten
                    del ran[min(ran)]
            fn(g)

        return _Handles([t.register_hook(first) for t in tensors if t._recorded])
    nodes = [get_gradient_edge(t) if t._recorded else None for t in tensors]
    state: dict[int, dict[int, Any]] = {}

    def arrived(i: int) -> Callable[[Any], None]:
        def hook(g: Any) -> None:
            with lock:
                walk = current_walk()
                got = state.setdefault(walk, {})
                got[i] = g
                due = [k for k, e in enumerate(nodes) if e is not None and will_run(node_at(e))]
                ready = all(k in got for k in due)
                if ready:
                    del state[walk]
            if ready:
                fn([got.get(k) for k in range(len(nodes))])

        return hook

    return _Handles([t.register_hook(arrived(i)) for i, t in enumerate(tensors) if t._recorded])


def current_walk() -> int:
    """The number of the backward that is running in this thread; -1 outside of one."""
    task = TASK.get()
    return -1 if task is None else task.number


def will_run(node: Node) -> bool:
    """Whether the backward that is running reaches a node."""
    task = TASK.get()
    return task is not None and task.reaches(node)


__all__ = [
    "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge", "increment_version",
    "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
]  # fmt: skip


def __dir__() -> list[str]:
    return __all__
