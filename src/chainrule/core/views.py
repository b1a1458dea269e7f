"""Mutation: writes rebind values, views know their base.

A family is a root tensor and its live views. Each view remembers the chain of view ops that leads to it from the root, so
that after a write to any member the others are derived anew. At the concrete level the members share memory and a write
goes straight into it, unless a tape keeps that memory (``pinned``): then the family moves to a copy first. So nothing that
was saved ever changes, and nobody sees PyTorch's "modified by an inplace operation".
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import dtypes as dt
from .dispatch import CUT, grad_enabled, innermost
from .errors import ChainruleError
from .payload import COMPOSED, EMPTY, PAYLOADS
from .tensor import Meta, Tensor

DETACH = object()


class Unseen:
    """A link of a chain: the view op that follows was called while levels up to `cut` recorded nothing."""

    __slots__ = ("cut",)

    def __init__(self, cut: float) -> None:
        self.cut = cut


class Marked:
    """A link of a chain: the view before it was made a leaf by ``requires_grad_()``, and those after it are views of that leaf."""

    __slots__ = ("aux", "interp")

    def __init__(self, leaf: Tensor) -> None:
        self.interp, self.aux = leaf._interp, leaf._aux


def is_detached(chain: tuple[Any, ...]) -> bool:
    """Whether derivatives of the base do not reach the view at the end of the chain, at some level at least."""
    return any(link is DETACH or type(link) is Unseen for link in chain)


class Scatter(NamedTuple):
    """How a write reaches the base of a view: the numbers of a tensor's elements, and a tensor with those at some numbers replaced."""

    places: Callable[[Tensor], Tensor]
    put: Callable[[Tensor, Tensor, Tensor], Tensor]


SCATTER: Scatter | None = None  # declared with the indexing ops


def meta(x: Tensor) -> Meta:
    """The tensor's Meta, made when first asked for."""
    m = x._meta
    if m is None:
        m = x._meta = Meta()
    return m


def root_of(x: Tensor) -> Tensor:
    """The tensor at the bottom of x's family of views."""
    m = x._meta
    return x if m is None or m.base is None else m.base


def register_view(op: Any, base: Tensor, y: Any, kw: dict[str, Any]) -> None:
    """Make `y` (or each of a tuple) a view of `base` by ``op(base, **kw)``."""
    if COMPOSED and type(innermost(y)) in COMPOSED:
        return  # composed of new parts: no memory to show
    b = base._meta
    root = base if b is None or b.base is None else b.base
    link: tuple[Any, ...] = ((op, kw),)
    if base._interp is not None:
        if CUT.get() >= 0:
            link = (Unseen(CUT.get()), *link)
        elif y._interp is not base._interp:
            link = (DETACH, *link)
    if b is not None and b.base is not None and getattr(base._aux, "owner", None) is not None:
        link = (Marked(base), *link)
    m = meta(y)
    m.base, m.chain = root, link if b is None else b.chain + link
    r = meta(root)
    views = r.views
    if views is None:
        r.views = [weakref.ref(y)]
        return
    if len(views) > 64 and not len(views) & (len(views) - 1):
        r.views = views = [w for w in views if w() is not None]
    views.append(weakref.ref(y))


def register_detached(x: Tensor, y: Tensor) -> Tensor:
    """Make `y` a view of the value of `x`, without its derivative."""
    root = root_of(x)
    m = meta(y)
    m.base, m.chain = root, (x._meta.chain if x._meta is not None else ()) + (DETACH,)
    r = meta(root)
    r.views = [] if r.views is None else r.views
    r.views.append(weakref.ref(y))
    return y


def replay(root: Tensor, chain: tuple[Any, ...]) -> Tensor:
    """The view of `root` that a chain describes."""
    x = root
    token = None
    for link in chain:
        if link is DETACH:
            x = _strip(x)
        elif type(link) is Unseen:
            token = CUT.set(link.cut)
        elif type(link) is Marked:
            if x._interp is not link.interp:
                x = Tensor(x, link.interp, link.aux)
        else:
            try:
                x = link[0].bind(x, **link[1])
            finally:
                if token is not None:
                    CUT.reset(token)
                    token = None
    return x


def view_again(root: Tensor, chain: tuple[Any, ...]) -> Tensor:
    """The view of `root` that a chain describes, as one of its family."""
    y = replay(root, chain)
    m, r = meta(y), meta(root)
    m.base, m.chain = root, chain
    r.views = [*(r.views or ()), weakref.ref(y)]
    return y


def same_family(x: Tensor, y: Tensor) -> None:
    """Make `y`, another tensor with the value of the view `x`, a view like it."""
    root, m = root_of(x), meta(y)
    m.base, m.chain = root, x._meta.chain  # type: ignore[union-attr]
    r = meta(root)
    r.views = [*(r.views or ()), weakref.ref(y)]


def grow(a: Tensor, size: int) -> Tensor:
    """`a` with a batch axis of equal examples in front."""
    from .primitives import expand_p

    return expand_p.bind(a, shape=(size, *a.shape), old=tuple(a.shape))


def _strip(x: Tensor) -> Tensor:
    from .primitives import detach_p

    return detach_p.bind(x)


def share_memory(x: Tensor, y: Tensor) -> bool:
    """Whether two tensors are one, or may show the same elements of one array."""
    v, w = innermost(x), innermost(y)
    return v is w or (type(v) is type(w) is np.ndarray and np.may_share_memory(v, w))


def pin(x: Tensor, shown: bool = False) -> Tensor:
    """A private tensor with the value x has now; later writes to x leave it alone.

    `shown`: a function gets it, and a result of that may show the same memory, which is copied before it is written to.
    """
    if x._interp is not None:
        return Tensor(x._value, x._interp, x._aux)
    m = x._meta
    if m is not None and m.base is not None:
        m = meta(m.base)
    elif m is None:
        m = x._meta = Meta()
    m.pinned = True
    y = Tensor(x._value, None, x._aux)
    if shown:
        y._meta = Meta()
        y._meta.pinned = True
    return y


def given_back(x: Any, taped: bool = False) -> Any:
    """A result of a transform; where an argument or a tape may hold the memory that it shows, a write to it goes to a copy."""
    if x.__class__ is not Tensor:
        return x
    m = x._meta
    if (
        x._interp is not None
    ):  # a write to a tensor of a level gives it another value, and the tape may hold the tensor itself
        return Tensor(x._value, x._interp, x._aux) if taped and (m is None or not m.chain) else x
    if type(x._value) is not np.ndarray:
        return x
    if (taped or x._value.base is not None) and (m is None or not m.chain):  # without one it is derived from nothing
        if taped:
            x = Tensor(x._value)  # the tape may hold the tensor itself
        meta(x).pinned = True
    return x


def adopt(x: Tensor, new: Tensor) -> None:
    """Rebind the box `x` to the value of `new`."""
    i = new._interp
    if i is not None and i is not x._interp and (x._interp is None or i.level > x._interp.level):
        i.touch(x)
        # What the tensor is now a vmap in between must know, which has it when the level of the value ends.
        low = new._value
        while (j := low._interp) is not None and (x._interp is None or j.level > x._interp.level):
            if j.kind == "vmap":
                j.touch(x)
            low = low._value
    if x._meta is not None and x._meta.retain is not None:
        _move_retain(x, new)
    x._value, x._interp, x._aux = new._value, i, new._aux


def _move_retain(x: Tensor, new: Tensor) -> None:
    """``retain_grad`` speaks of the tensor, not of the op that made it: after a write, of the one that made the new value."""
    hook = x._meta.retain  # type: ignore[union-attr]
    for node, on in ((x._aux, False), (new._aux, True)):
        if hasattr(node, "hooks"):
            others = [h for h in node.hooks or () if h is not hook]
            node.hooks, node.rare = [*others, hook] if on else others or None, True


def assign(x: Tensor, new: Any, what: str = "in-place write", *, even: bool = False) -> Tensor:
    """Make `new` the value of `x`, as seen through x, its base and all views of it; `even`: one number everywhere."""
    shape = x.shape
    if not isinstance(new, Tensor):
        new = Tensor(np.asarray(new, x.dtype.np))
    if new.shape != shape:
        new = _fit(x, new, what)
    d = x.dtype
    if new.dtype is not d:
        if not dt.can_cast(new.dtype, d):
            raise ChainruleError(
                f"{what}: result type {dt.scalar_type(new.dtype)} can't be cast to the desired output type {dt.scalar_type(d)}"
            )
        new = new.to(d)
    if EMPTY and type(innermost(x)) in EMPTY:
        return x
    if x._interp is not None or new._interp is not None:
        new = compact(new)
    _check_leaf(x, what)
    if not even:
        _check_overlap(x, what)
    m = meta(root_of(x))
    m.version += 1
    if x._interp is None and new._interp is None and not (PAYLOADS and _holds_other(x)) and not _saved_below(x):
        _write_memory(x, new._value)
        return x
    if x._interp is not None and x._interp.level <= CUT.get() and _write_leaf(x, new):
        return x
    m = meta(x)
    if m.base is None and not m.views:
        adopt(x, with_history(x, new))
        return x
    root = root_of(x)
    if m.base is not None:
        _write_through(root, m.chain, new)
    else:
        adopt(root, with_history(root, new))
    refresh(root)
    root._meta.pinned = False  # type: ignore[union-attr]  # the family has moved to memory that nobody saved
    if new._interp is not None and is_detached(m.chain):
        adopt(x, with_history(x, new))  # the base got the value alone
    return x


def _holds_other(x: Tensor) -> bool:
    """Whether x or its root holds another payload than an array: then a write cannot go through shared memory."""
    return type(x._value) in PAYLOADS or type(root_of(x)._value) in PAYLOADS


def _fit(x: Tensor, new: Tensor, what: str) -> Tensor:
    shape = x.shape
    if len(new.shape) <= len(shape) and all(
        a in (1, b) for a, b in zip(reversed(new.shape), reversed(shape), strict=False)
    ):
        return new.expand(*shape)
    raise ChainruleError(
        f"{what}: output with shape {list(shape)} doesn't match the broadcast shape {list(new.shape)}; "
        f"an in-place result must fit the tensor it is written to"
    )


def _check_leaf(x: Tensor, what: str) -> None:
    root = root_of(x)
    if root is not x and DETACH in x._meta.chain:  # type: ignore[union-attr]
        # Cut off on purpose, but perhaps to be a leaf, or a view of one.
        if any(type(c) is Marked and c.interp.level > CUT.get() for c in x._meta.chain):  # type: ignore[union-attr]
            raise _written_leaf(what, "view of a leaf")
        return
    # A view from before its base was marked is a view of a leaf too.
    if root._interp is not None and root._interp.level > CUT.get():
        # Only leaves that somebody marked with requires_grad: the variables of func.grad have no owner.
        if getattr(root._aux, "owner", None) is not None and (x._interp is None or x._interp is root._interp):
            raise _written_leaf(what, "leaf" if root is x else "view of a leaf")


def _written_leaf(what: str, whose: str) -> ChainruleError:
    return ChainruleError(
        f"{what}: a {whose} Variable that requires grad is being used in an in-place operation. Do it inside `with no_grad():`, or work on a copy "
        f"(x.clone())."
    )


def compact(new: Tensor) -> Tensor:
    """A value with memory of its own for every element: what was expanded is copied before it is adopted."""
    v = innermost(new)
    if type(v) is np.ndarray and v.size > 1 and 0 in v.strides and not _stand_in(new):
        from .primitives import clone_p

        return clone_p.bind(new, order="C")
    return new


def _stand_in(x: Tensor) -> bool:
    """Whether the memory of `x`, which is no view, is an example's in a recording: a large one is one number everywhere."""
    m = x._meta
    if m is not None and any(type(link) is tuple for link in m.chain or ()):
        return False
    while (i := x._interp) is not None and i.kind != "record":
        x = x._value
    return i is not None


def _check_overlap(x: Tensor, what: str) -> None:
    v = innermost(x)
    if (
        type(v) is np.ndarray
        and 0 in v.strides
        and v.size > 1
        and not _stand_in(x)
        and any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True))
    ):
        raise ChainruleError(
            f"{what}: unsupported operation: more than one element of the written-to tensor refers to a single memory location (it was expanded). "
            f"Write to a copy instead: x = x.clone()."
        )


def with_history(x: Tensor, new: Tensor) -> Tensor:
    """`new` as the value of `x` after a write.

    A level that records keeps x's history: of a constant, too, x is then a function (with the derivative zero) of what it
    was. A level that does not (``no_grad``) sees another value and the same history; so a leaf stays a leaf.
    """
    i, j = x._interp, new._interp
    if i is None:
        return new
    if j is not None and j.level > i.level:
        if CUT.get() < 0 or j.kind not in ("vmap", "jvp", "reverse"):
            return new
        below = _grown(x, j.size) if j.kind == "vmap" else x  # type: ignore[attr-defined]
        return Tensor(with_history(below, new._value), j, new._aux)
    if i.kind == "record":
        return i.write_past(x, new, forward=True) if i.level <= CUT.get() else new  # type: ignore[attr-defined]
    if i.kind != "reverse":
        if j is not i:
            if CUT.get() < 0 or i.kind not in ("vmap", "jvp"):
                return new
            if i.kind == "jvp":
                return with_history(x._value, new)
            new = Tensor(grow(new, i.size), i)  # type: ignore[attr-defined]
        aux = new._aux if i.kind != "jvp" or x._aux is None or new._aux is None else with_history(x._aux, new._aux)
        return Tensor(with_history(x._value, new._value), i, aux)
    if i.level <= CUT.get() and i.off():  # type: ignore[attr-defined]
        return Tensor(with_history(x._value, new._value if j is i else new), i, x._aux)
    if (
        i.level <= CUT.get()
    ):  # a tape that forward mode walks: the levels below keep the history, of values and of tangents
        if j is not i:
            return with_history(x._value, new)
        return i.written(x, new, with_history(x._value, new._value))  # type: ignore[attr-defined]
    if j is i:
        return new
    from .primitives import overwrite_p

    return overwrite_p.bind(x, new)


def _grown(x: Tensor, size: int) -> Tensor:
    """`grow`, recorded whatever the mode is."""
    token = CUT.set(-1.0)
    try:
        return grow(x, size)
    finally:
        CUT.reset(token)


def _saved_below(x: Tensor) -> bool:
    """Whether a detached view shows memory that the tape of its base keeps."""
    root = root_of(x)
    if root is x or root._interp is None:
        return False
    from .held import shared_memory

    return shared_memory(root) is None


def _write_leaf(x: Tensor, new: Tensor) -> bool:
    """Write a plain value into the memory of a leaf, where nobody saved what is there; whether that was done."""
    from .held import shared_memory

    if x._interp.kind != "reverse" or not x._interp.off():  # type: ignore[union-attr]
        return False
    payload, src = shared_memory(x), new._value
    if new._interp is not None or type(payload) is not np.ndarray or type(src) is not np.ndarray:
        return False
    np.copyto(payload, src.copy() if np.may_share_memory(src, payload) else src, casting="unsafe")
    return True


def _write_memory(x: Tensor, value: Any) -> None:
    root = root_of(x)
    m = root._meta
    if type(x._value) is not np.ndarray:
        x._value = value
        return
    if (m is not None and (m.pinned or (m.views and _saved_by_a_leaf(m.views)))) or not x._value.flags.writeable:
        if m is not None and root._interp is None:
            # What is overwritten as a whole need not be copied first.
            root._value = np.empty_like(root._value, order="C", subok=False) if root is x else root._value.copy()
            m.pinned = False
            refresh(root)
        if not x._value.flags.writeable:
            x._value = x._value.copy()
    src = value
    if src.size and np.may_share_memory(src, x._value):
        src = src.copy()
    np.copyto(x._value, src, casting="unsafe")


def _saved_by_a_leaf(views: list[weakref.ref[Tensor]]) -> bool:
    """Whether one of the views was made a leaf, and a tape keeps the memory that it shows."""
    for w in views:
        v = w()
        if v is not None and v._interp is not None and v._interp.kind == "reverse":
            from .held import shared_memory

            if shared_memory(v) is None:
                return True
    return False


def _write_through(root: Tensor, chain: tuple[Any, ...], new: Tensor) -> None:
    """Write `new` to the place of `root` that the chain of views selects."""
    steps = tuple(c for c in chain if type(c) is tuple)
    if DETACH in chain:
        adopt(root, with_value(root, scatter_view(_strip(root), steps, _strip(new))))
    elif len(steps) < len(chain):
        token = CUT.set(max(CUT.get(), -1.0, *[c.cut for c in chain if type(c) is Unseen]))
        try:
            adopt(root, with_history(root, scatter_view(root, steps, new)))
        finally:
            CUT.reset(token)
    else:
        adopt(root, with_history(root, scatter_view(root, chain, new)))


def with_value(x: Tensor, new: Tensor) -> Tensor:
    """`x` with another value and, at every level, the derivative it had."""
    i = x._interp
    if i is None:
        return new
    if i.kind == "record":
        return i.write_past(x, new, forward=False)  # type: ignore[attr-defined]
    below = new._value if new._interp is i else new if i.kind != "vmap" else grow(new, i.size)  # type: ignore[attr-defined]
    return Tensor(with_value(x._value, below), i, x._aux)


def scatter_view(root: Tensor, chain: tuple[Any, ...], new: Tensor) -> Tensor:
    """root with the elements that the chain selects replaced by `new`."""
    if not chain:
        return new
    for link in chain:
        # A view that is not a choice of elements (the parts of complex numbers) says itself how a write reaches the base.
        if (scatter := getattr(link[0], "scatter", None)) is not None:
            return scatter(root, chain, new)
    return SCATTER.put(root, replay(SCATTER.places(root), chain), new)  # type: ignore[union-attr]


def refresh(root: Tensor) -> None:
    """Derive the live views of a root anew from its present value."""
    m = root._meta
    if m is None or not m.views:
        return
    alive = []
    # Views that were made without recording say so in their chain; the others keep their history whatever the mode is now.
    token = CUT.set(-1.0)
    try:
        for w in m.views:
            v = w()
            if v is not None:
                alive.append(w)
                y = replay(root, v._meta.chain)  # type: ignore[union-attr]
                # What was marked as a leaf after it became a view stays one, with another value.
                if getattr(v._aux, "owner", None) is not None and y._interp is not v._interp:
                    y = Tensor(y, v._interp, v._aux)
                adopt(v, y)
    finally:
        CUT.reset(token)
    m.views = alive


def _warn_resized(out: Tensor, y: Tensor, fill: bool) -> None:
    if fill:
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is {out.numel()} which does not match the computed "
            f"number of elements {y.numel()}. Note that this may occur as a result of rounding error. "
            f"The out tensor will be resized to a tensor of shape {tuple(y.shape)}.",
            stacklevel=4,
        )
        return
    warnings.warn(
        f"An output with one or more elements was resized since it had shape {list(out.shape)}, which does not match the required "
        f"output shape {list(y.shape)}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized "
        f"unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
        stacklevel=4,
    )


def write_out(out: Any, y: Any, fill: bool = False) -> Any:
    """Put results into ``out=`` tensors, resizing empty ones as PyTorch does; `fill`: in row-major order, whatever the shape."""
    if isinstance(out, tuple | list):
        for o, v in zip(out, y, strict=True):
            write_out(o, v)
        return type(y)(*out) if hasattr(y, "_fields") else out
    if not isinstance(out, Tensor):
        raise TypeError(f"out= must be a tensor, got {type(out).__name__}")
    if out.requires_grad and out.is_leaf and grad_enabled():
        raise ChainruleError(
            "out=... arguments don't support automatic differentiation, but out is a leaf that requires grad; write inside `with no_grad():`"
        )
    if not dt.can_cast(y.dtype, out.dtype):
        raise ChainruleError(
            f"result type {dt.scalar_type(y.dtype)} can't be cast to the desired output type {dt.scalar_type(out.dtype)} (of dtype {out.dtype})"
        )
    if fill and out.shape != y.shape and out.numel() == y.numel():
        y = y.reshape(out.shape)
    if out.shape != y.shape:
        if out.numel():
            _warn_resized(out, y, fill)
        value = y.to(out.dtype)
        adopt(out, Tensor(innermost(value).copy()) if value._interp is None else value)
        return out
    return assign(out, y.to(out.dtype), "out=")
