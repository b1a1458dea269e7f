"""The imperative style: ``requires_grad``, ``backward()``, hooks, ``no_grad``. It is the reverse interpreter at level 0."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numpy import empty_like, ndarray

from . import dispatch
from . import dtypes as dt
from .dispatch import CUT, STACK, grad_cut, grad_enabled, innermost, recorder, revived
from .edges import TASK, GradientEdge, Task, node_at
from .errors import ChainruleError, see
from .grad_mode import INFERENCE as INFERENCE
from .grad_mode import enable_grad as enable_grad
from .grad_mode import inference_mode as inference_mode
from .grad_mode import is_grad_enabled as is_grad_enabled
from .grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from .grad_mode import no_grad as no_grad
from .grad_mode import set_grad_enabled as set_grad_enabled
from .over_duals import dual_level, grad_over, tangents_of_leaves
from .reverse import Leaf, Node, Pick, Reverse, host, imperative, named
from .shapes import sizes_of, unit, zeros_like_tensor
from .tensor import Tensor
from .views import assign, compact, meta, pin, root_of
from .walk import _run_before, reachable, walk_back
from .watch import WATCHED, WATCHERS

# -- leaves -----------------------------------------------------------------------------------------------------------


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Record what is done with this tensor from here on (or stop to)."""
    if not requires_grad:
        if self._interp is not None and self._interp.kind == "reverse":
            if not self.is_leaf:
                raise ChainruleError(
                    "you can only change requires_grad flags of leaf variables; use .detach() to get a tensor that doesn't require grad"
                )
            inner = self._value
            self._value, self._interp, self._aux = inner._value, inner._interp, inner._aux
            meta(root_of(self)).pinned = True  # a tape may have saved the memory
        return self
    if self.requires_grad:
        return self
    if self.dtype.category < dt.FLOAT:
        raise ChainruleError(
            f"Only Tensors of floating point and complex dtype can require gradients, not {self.dtype}"
        )
    level = imperative(self._interp)
    inner = Tensor(self._value, self._interp, self._aux)
    around = host(self._interp)
    self._value, self._interp = inner, level
    self._aux = Leaf(self)
    if around is not None:
        around.leaves = [*(around.leaves or ()), weakref.ref(self)]
    return self


def _is_leaf(self: Tensor) -> bool:
    """Whether the tensor was not made by a recorded op."""
    x = self
    while x._interp is not None and x._interp.kind != "reverse":
        if x._interp.is_made(x):
            return False
        x = x._value
    return x._interp is None or type(x._aux) is Leaf


def _grad_fn(self: Tensor) -> Any:
    """The node that made this tensor, or None for leaves."""
    if self._interp is None or self._interp.kind != "reverse" or type(self._aux) is Leaf:
        return None
    return named(self._aux.parents[0] if type(self._aux) is Pick else self._aux)


def _get_grad(self: Tensor) -> Any:
    """The gradient that backward() accumulated, or None."""
    return None if self._meta is None else self._meta.grad


def _set_grad(self: Tensor, g: Any) -> None:
    if g is not None:
        if not isinstance(g, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(g).__name__}")
        if g.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(g.shape)}' to a tensor of size '{list(self.shape)}'. "
                f"Please ensure that the gradient and the tensor are the same size"
            )
        if g.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{g.dtype}' to a tensor of dtype '{self.dtype}'. "
                f"Write x.grad = g.to(x.dtype)"
            )
    meta(self).grad = g


def _on_a_tape(x: Tensor, otherwise: str) -> None:
    if (level := recorder()) is not None:
        level.hooked()
    if not x._recorded:
        raise ChainruleError(otherwise)


def retain_grad(self: Tensor) -> None:
    """Let backward() fill ``.grad`` of this non-leaf tensor."""
    _on_a_tape(self, "can't retain_grad on Tensor that has requires_grad=False")
    m = meta(self)
    if self.is_leaf or m.retain is not None:
        return
    ref = weakref.ref(self)

    def keep(g: Any) -> None:
        t = ref()
        if t is not None:
            _accumulate(t, g, create_graph=grad_enabled())

    m.retain = _attach(self, keep, last=True)[1]


def _attach(x: Tensor, hook: Any, last: bool = False) -> tuple[Node, Any]:
    """Put a hook on the node that made `x`, at the highest level that records; returns both."""
    above: list[Any] = []
    while x._interp.kind != "reverse":  # type: ignore[union-attr]
        above.append(x._interp)
        x = x._value
    levels = [i for i in above if i.kind == "vmap"]
    if levels:
        hook = _hook_of_examples(hook, STACK.get(), CUT.get(), levels)
    if last:
        hook.last = True
    x._aux.hooks, x._aux.rare = [*(x._aux.hooks or ()), hook], True
    return x._aux, hook


_ADDING = threading.RLock()  # a sum is a read and a write


def _as_it_lies(g: Tensor, a: ndarray) -> Tensor:
    """`g` in the memory order of a leaf's array `a`, if that has no gaps: what PyTorch promises of gradients."""
    y = empty_like(a, dtype=g._value.dtype)
    if y.strides != a.strides or y.shape != g._value.shape:
        return g
    y[...] = g._value
    return Tensor(y)


def _accumulate(x: Tensor, g: Tensor, create_graph: bool) -> None:
    """Add to ``x.grad``: in place, as PyTorch does, unless the sum is to be differentiated itself. Threads may share a leaf."""
    m = meta(x)
    with _ADDING:
        if m.grad is None:
            if type(v := g._value) is not ndarray or 0 in v.strides:
                g = compact(g)
            elif type(a := innermost(x)) is ndarray and not a.flags.c_contiguous and v.strides != a.strides:
                g = _as_it_lies(g, a)
            m.grad = box = pin(g, True)  # others may hold this memory: who gave the cotangent, a tape
            if g._interp is not None and g._interp.fades:
                g._interp.touch(box)  # when the level of dual numbers ends, the gradient is its primal
        elif create_graph:
            m.grad = m.grad + g
        else:
            token = CUT.set(grad_cut(False))
            try:
                assign(m.grad, m.grad + g, "accumulating a gradient")
            finally:
                CUT.reset(token)


class RemovableHandle:
    """What ``register_hook`` returns: ``handle.remove()`` takes the hook away again."""

    def __init__(self, node: Any, hook: Any) -> None:
        self._node, self._hook = node, hook

    def remove(self) -> None:
        """Take the hook away."""
        if self._node is not None and self._node.hooks and self._hook in self._node.hooks:
            hooks = list(self._node.hooks)
            hooks.remove(self._hook)  # the same function may be there twice
            self._node.hooks = hooks or None
        self._node = None

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Call ``hook(grad)`` when backward computes this tensor's gradient; what it returns replaces the gradient."""
    _on_a_tape(self, "cannot register a hook on a tensor that doesn't require gradient")
    return RemovableHandle(*_attach(self, hook))


def _hook_of_examples(hook: Any, stack: Any, cut: float, levels: list[Any]) -> Callable[[Tensor], Any]:
    """A hook on a tensor inside vmap, for the tape of a level below it: it sees the gradient of one example."""

    def run(g: Tensor) -> Any:
        with revived(stack, cut):
            x = g
            for i in reversed(levels):
                x = Tensor(x, i)
            y = hook(x)
            if y is None:
                return None
            for i in levels:
                y = i.settle(y)
                y = y._value if y._interp is i else y.expand(i.size, *y.shape)
        return y

    return run


# -- backward ---------------------------------------------------------------------------------------------------------


def _starts(name: str, outputs: Sequence[Tensor], grads: Sequence[Any], create_graph: bool) -> list[tuple[Node, Any]]:
    starts = []
    for k, (y, g) in enumerate(zip(outputs, grads, strict=True)):
        if isinstance(y, GradientEdge):
            if g is None:
                raise ChainruleError(
                    f"{name}: grad can be implicitly created only for scalar outputs, and the shape of a GradientEdge is not known; pass its gradient"
                )
            starts.append((node_at(y), g))
            continue
        if type(y._aux) is Node and g is None:
            v = y._value._value
            if type(v) is ndarray and not v.ndim and v.dtype.kind == "f":  # a loss
                starts.append((y._aux, unit(dt.FROM_NP[v.dtype])))
                continue
        elif type(g) is Tensor and type(a := g._value) is ndarray and type(y._aux) is Node:  # made by a recorded op
            v = y._value._value
            if type(v) is ndarray and v.shape == a.shape and v.dtype is a.dtype:
                starts.append((y._aux, g))  # the common case
                continue
        if y._recorded and not y.requires_grad:
            raise _from_outside(f"{name}: what requires grad in element {k} of tensors is made", y)
        if y._interp is None or y._interp.kind != "reverse":
            raise ChainruleError(
                f"{name}: element {k} of tensors does not require grad and does not have a grad_fn; was it computed from a tensor with "
                f"requires_grad=True, outside of no_grad()?" + see("Nothing to differentiate")
            )
        if g is None:
            if y.numel() != 1:
                raise ChainruleError(
                    f"{name}: grad can be implicitly created only for scalar outputs, this one has shape {list(y.shape)}; pass its gradient"
                    + see("A gradient belongs to one number")
                )
            if y.dtype.category == dt.COMPLEX:
                raise ChainruleError(
                    f"{name}: grad can be implicitly created only for real scalar outputs but got {y.dtype}"
                )
            g = unit(y.dtype) if not sizes_of(y) and not y.is_meta else zeros_like_tensor(y) + 1
        elif g.shape != y.shape:
            raise ChainruleError(
                f"{name}: Mismatch in shape: grad_output[{k}] has a shape of {list(g.shape)} and output[{k}] has a shape of {list(y.shape)}."
            )
        if not create_graph and g._interp is not None and g._interp is y._interp:
            g = g.detach()
        if g.dtype is not y.dtype:
            if g.dtype.category == dt.COMPLEX and y.dtype.category != dt.COMPLEX:
                raise ChainruleError(
                    f"{name}: For complex Tensors, both grad_output and output are required to have the same dtype; "
                    f"for real outputs the gradient must be real. "
                    f"Mismatch in dtype: grad_output[{k}] has a dtype of {g.dtype} and output[{k}] has a dtype of {y.dtype}."
                )
            g = g.to(y.dtype)
        starts.append((y._aux, g))
    return starts


def _made_of(y: Tensor, leaf: Node | None) -> bool:
    """Whether a tensor is made, at a level below its own, of a leaf: of this one, or of any that belongs to somebody."""
    x: Any = y._value if y._interp is not None else y
    while (i := x._interp) is not None:
        if i.kind == "reverse":
            behind = reachable([x._aux])
            if leaf in behind or (leaf is None and any(type(n) is Leaf and n.variable is not None for n in behind)):
                return True
        x = x._value
    return False


def _from_outside(what: str, y: Tensor) -> ChainruleError:
    i: Any = y._interp
    kind = "grad" if i.kind == "reverse" else i.kind
    return ChainruleError(
        f"{what} outside of the {kind} that the output is a variable of: that transform cannot see a derivative with respect to it. Make the leaf inside "
        f"the transformed function (w = w.detach().requires_grad_()), or pass it to the function as an argument and use func.grad(argnums=...)."
    )


def _many(name: str, x: Any) -> tuple[list[Any], Any]:
    """Tensors or edges as a list, and the keys where they came in a dict."""
    if isinstance(x, (Tensor, GradientEdge)):  # a union of types would be made at every call
        return [x], None
    if type(x) is dict:
        return list(x.values()), list(x)
    if isinstance(x, Mapping):
        raise TypeError(f"{name}: `inputs` must be a tensor, a sequence of tensors or a dict, not {type(x).__name__}")
    return list(x), None


def _cotangents(given: Any, n: int) -> list[Any]:
    return [None] * n if given is None else [given] if isinstance(given, Tensor) else list(given)


def _node(x: Any) -> Node:
    return node_at(x) if isinstance(x, GradientEdge) else x._aux


def _walked(
    name: str, ys: list[Any], gs: list[Any], wanted: list[Node] | None, retain: bool, create_graph: bool
) -> tuple[dict[Node, Any], list[Node], Task]:
    """Cotangents of the wanted nodes (or of all leaves), the nodes behind derivatives that are zero everywhere, and the walk's task."""
    level: Any = imperative() if isinstance(ys[0], GradientEdge) else ys[0]._interp
    skipped: list[Node] = []
    token = CUT.set(grad_cut(create_graph))
    token_of_task = None
    watchers = WATCHERS.get() if WATCHED.on else None
    try:
        starts = _starts(name, ys, gs, create_graph)
        task = Task([n for n, _ in starts], wanted)
        token_of_task = TASK.set(task)
        must, met = (None, None) if dispatch.MEET is None else dispatch.MEET(level, starts, wanted)
        early = None if dispatch.EARLY is None or name != "backward" else dispatch.EARLY(starts, create_graph)
        turns, again = None if early is None else early.turns, level if create_graph else None
        got = walk_back(starts, wanted=wanted, free=not retain, rewrap=again, skipped=skipped, must=must, early=turns)
        if early is not None:
            early.finish(got)
        if met is not None:
            met(got)
    finally:
        if token_of_task is not None:
            TASK.reset(token_of_task)
        CUT.reset(token)
        if watchers is not None:
            WATCHERS.set(watchers)  # what hooks set while they ran ends with the walk
    return got, skipped, task


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add to ``.grad`` of the leaves (or of `inputs`) the gradients of the tensors."""
    ys = _many("backward", tensors)[0]
    wanted = None
    boxes: dict[Node, Tensor] = {}
    if inputs is not None:
        ins = _many("backward", inputs)[0]
        if not ins:
            raise ChainruleError("backward: `inputs` argument to `backward()` cannot be empty.")
        for x in ins:
            if not isinstance(x, GradientEdge):
                _need_record("backward", x)
        wanted = [_node(x) for x in ins]
        boxes = {n: x for n, x in zip(wanted, ins, strict=True) if isinstance(x, Tensor)}
    else:
        for y in ys:
            i = y._interp if isinstance(y, Tensor) else None
            if i is not None and i.kind == "reverse" and i.level and i.level % 1 == 0 and _made_of(y, None):
                raise _from_outside("backward: a leaf of the output is made", y)
    retain = create_graph if retain_graph is None else retain_graph
    gs = _cotangents(grad_tensors, len(ys))
    duals: list[Any] = []
    while (level := dual_level(ys)) is not None:
        # The gradients of dual numbers are dual; of several levels of them, the innermost is kept.
        duals = duals or [level, tangents_of_leaves(level, _dual_walk(create_graph), ys, gs, wanted)]
        ys = [y._value if y._interp is level else y for y in ys]
        gs = [g._value if g is not None and g._interp is level else g for g in gs]
    for x in boxes.values():
        for y in ys:  # without their tangents: a level of dual numbers has no leaves of its own
            if isinstance(y, Tensor) and x._interp is not y._interp and _made_of(y, x._aux):
                raise _from_outside("backward: one of `inputs` is made", y)
    got, skipped, task = _walked("backward", ys, gs, wanted, retain, create_graph)
    if duals:
        got = {n: Tensor(g, duals[0], t) if (t := duals[1].get(n)) is not None else g for n, g in got.items()}
    owner = lambda n: (
        boxes.get(n) if wanted is not None else n.owner() if type(n) is Leaf and n.owner is not None else None
    )
    if skipped:
        # What is reached through derivatives that are zero everywhere (floor, sign) has the gradient zero, not none.
        for node in reachable(dict.fromkeys(skipped)):
            x = owner(node)
            if x is not None and node not in got:
                got[node] = zeros_like_tensor(x)
    for node, g in got.items():
        x = owner(node)
        if x is None or (x._meta is not None and x._meta.retain is not None):
            continue
        if node.around is not None and type(node) is Leaf:
            g = _run_before(node, g)
        _accumulate(x, g, create_graph)
        if (node.around is not None and type(node) is Leaf) or (x._meta is not None and x._meta.post_hooks):
            _run_post_hooks(x, node, g, create_graph)
    if task.callbacks is not None:
        task.finish()


def _dual_walk(create_graph: bool) -> Callable[..., dict[Node, Any]]:
    """Cotangents of the wanted nodes, for a part of the gradient of dual numbers."""
    return lambda ys, gs, wanted: _walked("backward", ys, gs, wanted, True, create_graph)[0]


def _run_post_hooks(x: Tensor, node: Node, g: Any, create_graph: bool) -> None:
    """What was to be called once a leaf's gradient was added."""
    token = CUT.set(grad_cut(create_graph))
    try:
        for h in list((meta(x).post_hooks or {}).values()):
            if h(x) is not None:
                raise ChainruleError(
                    "register_post_accumulate_grad_hook: Tensor post accumulate grad hooks should return None."
                )
        for h in list(node.around[1] if node.around is not None and type(node) is Leaf else ()):
            h((), (g,))
    finally:
        CUT.reset(token)


def _backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add to ``.grad`` of the leaves the gradient of this tensor (a scalar, or with its cotangent `gradient`)."""
    backward(self, gradient, retain_graph, create_graph, inputs)


def _need_record(name: str, x: Any) -> None:
    if x._interp is not None and x._interp.kind == "record" and x._interp.is_walked(x):
        x._interp.hooked()  # its tape is around the recording, which gives up here
    if x._interp is None or x._interp.kind != "reverse":
        raise ChainruleError(
            f"{name}: One of the differentiated Tensors does not require grad; call x.requires_grad_() before it is used"
        )


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of the outputs with respect to the inputs, as a tuple (of a dict: as a dict), leaving ``.grad`` alone."""
    ys = _many("grad", outputs)[0]
    xs, keys = _many("grad", inputs)
    if not xs:
        raise ValueError("grad: grad requires non-empty inputs.")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "grad: Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    gs = _cotangents(grad_outputs, len(ys))
    if is_grads_batched:
        from .batching import map_over

        for y, g in zip(ys, gs, strict=True):
            if g is not None and (not g.ndim or g.shape[1:] != y.shape):
                raise ChainruleError(
                    f"grad: If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension: one of "
                    f"shape {list(g.shape)} does not fit an output of shape {list(y.shape)}."
                )

        def one(*g: Any) -> Any:
            return tuple(grad(ys, xs, g, True, create_graph, True, True, False, True))

        batch = map_over(gs[0].shape[0], one, gs, [True] * len(gs), {})
        return batch if keys is None else dict(zip(keys, batch, strict=True))
    retain = create_graph if retain_graph is None else retain_graph
    allow = materialize_grads if allow_unused is None else allow_unused
    if (level := dual_level((*ys, *xs))) is not None:

        def walk(ys: Any, xs: Any, gs: Any, retain: bool, absent: bool) -> Any:
            allow = True if absent else allow_unused
            return grad(ys, xs, gs, retain, create_graph, True, allow, False, materialize_grads and not absent)

        pair = grad_over(level, walk, ys, xs, gs, retain)
        return tuple(pair) if keys is None else dict(zip(keys, pair, strict=True))
    for k, x in enumerate(xs):
        if not isinstance(x, GradientEdge):
            _need_record("grad", x)
            for y in ys:
                if not isinstance(y, GradientEdge) and x._interp is not y._interp and _made_of(y, x._aux):
                    raise _from_outside(f"grad: input {k} is made", y)
    nodes = [_node(x) for x in xs]
    got, skipped, task = _walked("grad", ys, gs, nodes, retain, create_graph)
    out: list[Any] = []
    reached: Any = None
    for i, (x, node) in enumerate(zip(xs, nodes, strict=True)):
        g = got.get(node)
        if g is None:
            edge = isinstance(x, GradientEdge)
            zero = node in skipped
            if not zero and skipped:
                reached = set(reachable(dict.fromkeys(skipped))) if reached is None else reached
                zero = node in reached
            if zero and not edge:  # through derivatives that are zero everywhere
                out.append(zeros_like_tensor(x))
                continue
            if not allow:
                raise ChainruleError(
                    f"grad: The differentiated Tensor at index {i} appears to not have been used in the graph"
                    f"{'' if edge else f' (its shape is {list(x.shape)})'}. Set allow_unused=True if this is the desired behavior."
                )
            if materialize_grads:
                if edge:
                    raise ChainruleError(
                        "grad: materialize_grads cannot be used when the given input is a GradientEdge"
                    )
                g = zeros_like_tensor(x)
                g = g.requires_grad_() if create_graph else g
        out.append(g)
    if task.callbacks is not None:
        task.finish()
    return tuple(out) if keys is None else dict(zip(keys, out, strict=True))


_keys = itertools.count()


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> Any:
    """Call ``hook(tensor)`` after backward() has added to this leaf's ``.grad``."""
    if (level := recorder()) is not None:
        level.hooked()
    if not (self.requires_grad and self.is_leaf):
        raise ChainruleError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    m = meta(self)
    m.post_hooks = {} if m.post_hooks is None else m.post_hooks
    key = next(_keys)
    m.post_hooks[key] = hook

    class Handle:
        def remove(self) -> None:
            m.post_hooks.pop(key, None)  # type: ignore[union-attr]

    return Handle()


for _name, _f in {
    "requires_grad_": requires_grad_, "retain_grad": retain_grad, "register_hook": register_hook, "backward": _backward,
    "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook, "is_leaf": property(_is_leaf),
    "grad_fn": property(_grad_fn), "grad": property(_get_grad, _set_grad, lambda self: _set_grad(self, None)),
    "retains_grad": property(lambda self: self._meta is not None and self._meta.retain is not None),
    "output_nr": property(lambda self: self._aux.index if type(self._aux) is Pick else 0),
}.items():  # fmt: skip
    setattr(Tensor, _name, _f)
__all__ = ["Reverse", "backward", "grad"]
