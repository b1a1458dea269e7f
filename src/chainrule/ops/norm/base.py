"""What the normalisations share: an op with a kernel and a body in plain ops, its derivatives, its batching.

The body is the specification: it runs where there is no kernel for the arrays, and derivatives without a rule of their own are
taken through it. Arguments may be None (no weight, no bias, a cotangent that is zero). Leading axes, which vmap adds, broadcast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.derive import jvp_through, vjp_through
from ...core.dispatch import CUT
from ...core.op import Op, lift_rank
from ...core.reverse import ANOMALY, Node
from ...core.shapes import broadcast_shapes, sizes_of
from ...core.tensor import PAYLOADS, Tensor
from ...core.views import pin
from ...kernels import NotSupported
from ..shape.views import expand_p, reshape_p

ndarray = np.ndarray
Ranks = Callable[..., tuple[int, ...]]


class Fused(Op):
    """An op of several tensors with a kernel, a body in plain ops, and core ranks that its static data decide.

    `ranks(**kw)` gives the rank of each argument without leading axes, `outs(**kw)` that of each result. `kernel` takes arrays
    and raises NotSupported for those it has no code for. `expand` gives all arguments the same leading axes before the body runs:
    for bodies that are derivatives, in which a cotangent or a tangent must have the shape of what it belongs to. A rule
    ``push(ts, y, xs, kw)`` or ``pull(g, y, xs, kw, need)`` replaces differentiation of the body; `keep` says which inputs (and
    whether the results) it reads. ``solo(g, xs, kept, kw, need)`` is `pull` where only the first result has a cotangent.
    """

    form = "fused"

    def __init__(
        self,
        name: str,
        body: Callable[..., Any],
        ranks: Ranks,
        outs: Ranks,
        kernel: Callable[..., Any] | None = None,
        integer_outputs: tuple[int, ...] = (),
        expand: bool = False,
    ) -> None:
        super().__init__(name, self._run, integer_outputs=integer_outputs, doc=body.__doc__)
        self.body, self.ranks, self.outs, self.kernel, self.expand = body, ranks, outs, kernel or _none, expand
        self.sparse_jvp = self.sparse_vjp = True
        self.pull_rule: Any = None
        self.push_rule: Any = None
        self.solo_rule: Any = None
        self.keep: tuple[bool, tuple[bool, ...] | None] = (False, None)
        self.solo = Solo(self)

    def _run(self, *xs: Any, **kw: Any) -> Any:
        try:
            return self.kernel(*xs, **kw)
        except NotSupported:
            ys = self.plain(*[Tensor(x) if isinstance(x, ndarray) else x for x in xs], **kw)
            return tuple([y._value for y in ys])

    def plain(self, *xs: Any, **kw: Any) -> Any:
        """The body, its results with the leading axes of all arguments."""
        ranks = self.ranks(**kw)
        lead: tuple[int, ...] = ()
        for x, r in zip(xs, ranks, strict=True):
            if isinstance(x, Tensor):
                s = sizes_of(x)
                if len(s) > r:
                    lead = broadcast_shapes(lead, s[: len(s) - r])
        if not lead:
            return self.body(*xs, **kw)
        if self.expand:
            xs = tuple([_led(x, lead, r) if isinstance(x, Tensor) else x for x, r in zip(xs, ranks, strict=True)])
        return tuple([_led(y, lead, r) for y, r in zip(self.body(*xs, **kw), self.outs(**kw), strict=True)])

    def bind(self, *args: Any, **kw: Any) -> Any:
        vals: list[Any] = []
        for a in args:
            if a is None:
                vals.append(None)
            elif type(v := a._value) is ndarray:
                vals.append(v)
            else:
                top = _top(args)
                return self.concrete(args, kw) if top is None else top.run(self, args, kw)
        return tuple([Tensor(v) for v in self._run(*vals, **kw)])

    def concrete(self, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        vals = [a if a is None else a._value for a in args]
        if PAYLOADS:
            for v in vals:
                if type(v) in PAYLOADS:
                    return tuple([Tensor(y) for y in PAYLOADS[type(v)](self)(*vals, **kw)])
        return tuple([Tensor(v) for v in self._run(*vals, **kw)])

    def first(self, *args: Any, **kw: Any) -> Tensor:
        """The first result alone, recorded as a node of one result that keeps the others: what most callers want.

        The others must be made of the first argument alone.
        """
        top = _top(args)
        if top is None:
            return self.concrete(args, kw)[0]
        if top.kind != "reverse" or top.keep_all or ANOMALY.on or not top.alive or top.level <= CUT.get():
            return top.run(self, args, kw)[0]
        low: list[Any] = []
        parents: list[Any] = []
        fits: list[Any] = []
        kept: list[Any] = []
        values: list[Any] = []
        for a, keep in zip(args, self.keep[1], strict=True):  # type: ignore[arg-type]
            if a is None:
                low.append(None)
                parents.append(None)
                fits.append(None)
                kept.append(None)
                values.append(None)
                continue
            if a._interp is top:
                x = a._value
                v = x._value
                parents.append(a._aux)
                fits.append((v.shape, dt.FROM_NP[v.dtype]) if type(v) is ndarray else (sizes_of(x), x.dtype))
                kept.append(x if keep else None)
            else:
                x = a
                v = x._value
                parents.append(None)
                fits.append(None)
                kept.append(pin(x) if keep else None)
            low.append(x)
            if type(v) is ndarray:
                values.append(v)
        if len(values) == len(args):  # nothing lies between this level and the arrays
            y, *rest = [Tensor(v) for v in self._run(*values, **kw)]
        else:
            y, *rest = self.bind(*low, **kw)
        self.solo.results = len(rest)
        none = [None] * len(rest)
        return Tensor(y, top, Node(self.solo, kept + rest, None, parents + none, kw, fits))

    def push(self, ts: list[Any], y: Any, xs: list[Any], kw: dict[str, Any]) -> Any:
        if self.push_rule is not None:
            return self.push_rule(ts, y, xs, kw)
        return jvp_through(self.plain, ts, xs, kw)

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        if self.pull_rule is not None:
            return self.pull_rule(g, y, xs, kw, need)
        return vjp_through(self.plain, g, xs, kw, need)

    def _find_keeps(self, need: tuple[bool, ...]) -> tuple[bool, tuple[bool, ...] | None]:
        return self.keep

    def batched(self, size: int, args: list[Any], flags: list[bool], kw: dict[str, Any]) -> Any:
        leads = [
            a.ndim - f - c if isinstance(a, Tensor) else 0
            for a, f, c in zip(args, flags, self.ranks(**kw), strict=True)
        ]
        n = max(leads)
        return self.bind(
            *[
                lift_rank(a, a.ndim - 1, a.ndim - 1 + n - r) if f and r < n else a
                for a, f, r in zip(args, flags, leads, strict=True)
            ],
            **kw,
        )


class Solo:
    """The first result of a Fused op on the tape: its node's arguments are the op's, and then the op's other results."""

    pull_rules = None
    linear_rules = False
    sparse_vjp = none_is_zero = True
    form = "fused"

    def __init__(self, op: Fused) -> None:
        self.op, self.name, self.results = op, op.name, 0

    def pull(self, g: Any, y: Any, xs: list[Any], kw: dict[str, Any], need: list[bool]) -> list[Any]:
        """The op's reverse rule, without cotangents for the other results."""
        k = self.results
        args, rest = xs[:-k], xs[-k:]
        i = args[0]._interp
        if i is not None and (rest[0]._interp is None or i.level > rest[0]._interp.level):
            # For create_graph the arguments come as recorded tensors. What was kept is made of the first: it must depend on it.
            rest = self.op.bind(*args, **kw)[1:]
        if self.op.solo_rule is not None:
            return self.op.solo_rule(g, args, rest, kw, need)
        return self.op.pull_rule([g] + [None] * k, (None, *rest), args, kw, need)


def _none(*xs: Any, **kw: Any) -> Any:
    """The kernel of an op that has none."""
    raise NotSupported


def _top(args: tuple[Any, ...]) -> Any:
    """The interpreter of the highest level among the arguments."""
    top = None
    for a in args:
        if a is not None:
            i = a._interp
            if i is not None and (top is None or i.level > top.level):
                top = i
    return top


def _led(x: Tensor, lead: tuple[int, ...], rank: int) -> Tensor:
    """`x` with the leading axes `lead` before its last `rank` dims."""
    s = tuple(sizes_of(x))
    own = s[: len(s) - rank]
    k = len(lead) - len(own)
    # A nesting dim stays one, also where there is one component.
    mine = tuple(b if hasattr(b, "each") else a for a, b in zip(lead[k:], own, strict=True)) if k >= 0 else lead
    full = (*lead[: max(k, 0)], *mine, *s[len(own) :])
    return x if s == full else expand_p.bind(x, shape=full, old=s)


# -- arrays -----------------------------------------------------------------------------------------------------------


def dense(a: Any) -> Any:
    """The array in row-major order, which the kernels need; None stays None."""
    return a if a is None or a.flags.c_contiguous else np.ascontiguousarray(a)


# -- tensors ----------------------------------------------------------------------------------------------------------


def wide(x: Tensor) -> Tensor:
    """16-bit floats as float64: what is computed from them is rounded once."""
    return x.to(dt.float64) if x.dtype.np in dt.HALVES else x


def narrow(y: Tensor, like: Tensor) -> Tensor:
    """The result with the type of `like`."""
    return y if y.dtype is like.dtype else y.to(like.dtype)


def stats(s: Tensor, like: Tensor) -> Tensor:
    """A kept statistic: float32 beside 16-bit floats, else of the type of `like`."""
    d = dt.float32 if like.dtype.np in dt.HALVES else like.dtype
    return s if s.dtype is d else s.to(d)


def returned(s: Tensor, x: Tensor, *parameters: Any) -> Tensor:
    """A statistic as PyTorch returns it: of the type of `x`, but float32 beside 16-bit floats if a parameter is of float32."""
    return stats(s, x) if any(p is not None and p.dtype is dt.float32 for p in parameters) else narrow(s, x)


def reshape(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """`x` with another shape, as an op of the level of `x`."""
    old = tuple(sizes_of(x))
    return x if old == shape else reshape_p.bind(x, shape=shape, old=old)


def total(x: Tensor, dims: tuple[int, ...], keepdim: bool = False) -> Tensor:
    """The sum over dims counted from the end; over none, `x`."""
    from ..reduce.reductions import sum_p

    return sum_p.bind(x, dim=dims, keepdim=keepdim, old=tuple(sizes_of(x))) if dims else x


def tensor_arg(name: str, arg: str, x: Any, optional: bool = True) -> None:
    """Refuse what is no tensor."""
    if not (isinstance(x, Tensor) or (optional and x is None)):
        raise TypeError(f"{name}: {arg} must be a tensor{' or None' if optional else ''}, got {type(x).__name__}")


def float_arg(name: str, x: Tensor) -> None:
    """Refuse integers and complex numbers."""
    if x.dtype.category != dt.FLOAT:
        raise RuntimeError(
            f"{name}: not implemented for {x.dtype}: convert the input to a floating type, input.to(chainrule.float32)"
        )
