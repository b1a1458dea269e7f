"""Checkpointing: forget what a part of the program saved, and compute it again when backward comes by."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from ..core.captures import tensors_of
from ..core.dispatch import AGAIN, CUT, STACK, revived
from ..core.errors import ChainruleError
from ..core.op import Op
from ..core.reverse import Node, Pick, Reverse, _count
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from ..core.views import pin, same_family
from ..core.walk import walk_back
from ..ops.random.generator import default_generator

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "noop_context_fn", "set_checkpoint_early_stop"]


class CheckpointError(ChainruleError):
    """The function did not do the same when it ran again."""


def _again_op(run: Callable[[], list[Tensor]], edge: list[Node], places: list[int], level: Any) -> Op:
    """What stands for a whole call on the tape of one level: its cotangents come from a second run, walked back through."""

    def again(g: list[Any], rewrap: Reverse | None) -> list[Any]:
        """The cotangents of the nodes at the edge of the call; recorded in turn if `rewrap` is the level of the tape."""
        before = len(level.effects or ())
        made = run()
        must = (level.effects or [])[before:]  # collectives of the second run, to which every process comes
        if must:
            del level.effects[before:]
        starts = [(made[i]._aux, gi) for i, gi in zip(places, g, strict=True) if gi is not None]
        got = walk_back(starts, wanted=edge, stop=True, rewrap=rewrap, free=rewrap is None, must=must)
        return [got.get(n) for n in edge]

    o = Op("checkpoint", None, listed=False)
    o.again, o.sparse_vjp = again, True
    return o


def noop_context_fn() -> tuple[Any, Any]:
    """Two contexts that do nothing: the default of ``context_fn``."""
    return contextlib.nullcontext(), contextlib.nullcontext()


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Any = noop_context_fn,
               determinism_check: str = "default", debug: bool = False, preserve_rng_state: bool = True, early_stop: bool = True,
               **kw: Any) -> Any:  # fmt: skip
    """``function(*args)``, keeping nothing but its inputs for backward; it runs again when backward needs it.

    Works under every transform, inside other checkpoints, and for tensors the function captures. Random numbers are drawn
    alike both times. Of PyTorch's options, `context_fn` gives the contexts of the first and of the second run,
    ``determinism_check="none"`` does not compare the results' shapes; the way of recomputing (`use_reentrant`,
    `early_stop`) is always the same.

    >>> x = chainrule.tensor(2.0)
    >>> chainrule.func.grad(lambda x: checkpoint(lambda v: v.sin() * v, x))(x)
    tensor(0.0770)
    """
    from ..core.casting import STATE as CAST

    state = default_generator.get_state() if preserve_rng_state else None
    cast = CAST.get()
    first, second = context_fn()
    stack, cut = STACK.get(), CUT.get()
    held, spec = flatten((args, kw))
    held = [pin(a) if isinstance(a, Tensor) else a for a in held]
    captures = [(t, pin(t)) for t in tensors_of(function)]
    start = _count()
    marks = [len(i.effects or ()) for i in stack]
    out: Any = captures  # which no function returns
    with first:
        out = function(*args, **kw)
    if out is captures:
        raise RuntimeError("checkpoint: context_fn suppressed an exception of the function in the first run")
    ys, yspec = flatten(out)
    atoms = [t for y in ys for t in _tapes(y)]
    shapes = [(t.shape, t.dtype) for t in atoms]

    def again() -> list[Tensor]:
        """The parts of the results that tapes made, from a second run in the context of the first."""
        a, k = unflatten([Tensor(h._value, h._interp, h._aux) if isinstance(h, Tensor) else h for h in held], spec)
        now, token, mark = default_generator.get_state(), CAST.set(cast), AGAIN.set(True)
        with revived(stack, cut), _as_they_were(captures), second:
            if state is not None:
                default_generator.set_state(state)
            try:
                made = [t for y in flatten(function(*a, **k))[0] for t in _tapes(y)]
            finally:
                CAST.reset(token)
                AGAIN.reset(mark)
                if state is not None:
                    default_generator.set_state(now)
        if determinism_check != "none" and [(t.shape, t.dtype) for t in made] != shapes:
            raise CheckpointError(
                f"checkpoint: the function gave results of other shapes when it ran again: {[list(t.shape) for t in made]}, "
                f"at first {[list(s) for s, _ in shapes]}. It must do the same for the same arguments."
            )
        return made

    swaps: dict[int, Node] = {}
    for level in {t._interp: None for t in atoms}:
        if level.keep_all:  # type: ignore[union-attr]
            continue  # linearize walks forward, over all of it
        places = [i for i, t in enumerate(atoms) if t._interp is level and t._aux.seq > start]
        edge = _edge([atoms[i]._aux for i in places], start)
        if edge:
            blank = (None,) * len(edge)
            node = Node(_again_op(again, edge, places, level), blank, None, tuple(edge), {}, blank)
            node.nout, node.rare = len(places), True
            if level in stack and len(level.effects or ()) > (mark := marks[stack.index(level)]):
                # The collectives run again with the rest: it is this node that every process comes to.
                level.effects[mark:] = [node]  # type: ignore[index]
                node.level, node.result = level, (tuple(atoms[places[0]].shape), atoms[places[0]].dtype)
            swaps.update({id(atoms[i]): Pick(node, k) if k else node for k, i in enumerate(places)})
    return unflatten([_like(y, _swapped(y, swaps)) for y in ys], yspec) if swaps else out


def _like(y: Any, new: Any) -> Any:
    """`new`, a view of what `y` is a view of."""
    if isinstance(y, Tensor) and new is not y and y._meta is not None and y._meta.base is not None:
        same_family(y, new)
    return new


@contextlib.contextmanager
def _as_they_were(captures: list[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """The tensors that a function holds, with the values they had when it was called."""
    now = [Tensor(t._value, t._interp, t._aux) for t, _ in captures]
    for t, then in captures:
        t._value, t._interp, t._aux = then._value, then._interp, then._aux
    try:
        yield
    finally:
        for (t, _), v in zip(captures, now, strict=True):
            t._value, t._interp, t._aux = v._value, v._interp, v._aux


def _tapes(y: Any) -> Iterator[Tensor]:
    """The tensors of reverse levels that a value is made of, from the highest level down."""
    if not isinstance(y, Tensor) or y._interp is None:
        return
    if isinstance(y._interp, Reverse):
        yield y
    yield from _tapes(y._value)
    if y._interp.kind == "jvp":
        yield from _tapes(y._aux)


def _swapped(y: Any, swaps: dict[int, Node]) -> Any:
    """`y` with the nodes that made its parts replaced."""
    if not isinstance(y, Tensor) or y._interp is None:
        return y
    aux = _swapped(y._aux, swaps) if y._interp.kind == "jvp" else swaps.get(id(y), y._aux)
    value = _swapped(y._value, swaps)
    return y if value is y._value and aux is y._aux else Tensor(value, y._interp, aux)


def _edge(nodes: list[Node], start: int) -> list[Node]:
    """The nodes made before `start` that these depend on."""
    seen: set[Any] = {None}
    edge: list[Node] = []
    stack = list(nodes)
    while stack:
        n = stack.pop()
        if n in seen:
            continue
        seen.add(n)
        if n.seq < start:
            edge.append(n)
        else:
            stack.extend(n.parents)
    return edge


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kw: Any
) -> Any:
    """Run modules one after the other, each of `segments` groups but the last under a checkpoint."""
    fs = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = max(len(fs) // segments, 1)

    def group(part: list[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for f in part:
                x = f(x)
            return x

        return run

    last = size * (segments - 1)
    for a in range(0, last, size):
        input = checkpoint(group(fs[a : a + size]), input, use_reentrant=use_reentrant, **kw)
    return group(fs[last:])(input)


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """PyTorch's switch for when a second run stops; here it makes no difference."""
    yield


def __dir__() -> list[str]:
    return __all__
