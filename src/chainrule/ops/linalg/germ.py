"""Repeated eigenvalues: derivatives as limits of those at split values, exactly and to every order.

Where eigenvalues repeat, a function F that does not depend on the choice of eigenvectors is smooth, but the derivatives of values and
vectors are not, and the cotangents of both do not determine that of the matrix. So F is taken on the germ of a curve,
``A(e) = A + e V D V^H`` with distinct numbers D among equal values: eigenvalues ``L + e D``, the same vectors. There every rule holds,
with ``1 / (L[j] - L[i]) = 1 / (e (D[j] - D[i]))`` among equals, and derivatives of F are power series in e whose constant term is wanted.

Two levels below all others carry this. ``SPLIT``: power series in e. ``POLE``: polynomials in ``q = 1/e`` over them. Both are lazy
towers: a tensor is its value at 0 and, when somebody asks, its derivative, again such a tensor, from the forward rules of the ops.
`settle` turns polynomials in q into power series. If terms in 1/e are left, F depends on the choice of vectors, and this raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache
from typing import Any

import numpy as np

from ...core import dispatch
from ...core.dispatch import STACK, Interpreter, innermost
from ...core.forward import fit_tangent
from ...core.op import CoreOp, Op, op
from ...core.tensor import Tensor
from ...core.views import pin
from ..convert import detach_p
from ..diagonals import diag_embed
from ..pointwise import where
from .common import clusters, diag_of


# Whether derivatives along a germ are being made: their own transforms must not leave it.
MAKING: ContextVar[bool] = ContextVar("chainrule_germs", default=False)


class Rate:
    """The derivative of a tensor of a tower, made when it is asked for.

    Of the poles in it: how large they were where they must cancel (`scale`) and in all (`size`), and whether some need not (`near`).
    """

    __slots__ = ("deps", "make", "near", "scale", "size", "value")

    def __init__(self, make: Callable[[], Any], deps: tuple[Rate, ...] = ()) -> None:
        self.make: Any = make
        self.deps = deps
        self.scale = max((d.scale for d in deps), default=0.0)
        self.size = max((d.size for d in deps), default=0.0)
        self.near = any(d.near for d in deps)
        self.value: Any = None

    def get(self) -> Any:
        """The derivative, or None for zero. A loop, not a recursion: programs are long."""
        if self.make is None:
            return self.value
        stack, token = [self], MAKING.set(True)
        try:
            while stack:
                r = stack[-1]
                if r.make is None:
                    stack.pop()
                elif todo := [d for d in r.deps if d.make is not None]:
                    stack.extend(todo)
                else:
                    r.value, r.make, r.deps = r.make(), None, ()
        finally:
            MAKING.reset(token)
        return self.value


class Tower(Interpreter):
    """A level of lazy power series in one variable: value at 0 and derivative."""

    __slots__ = ()
    kind = "germ"

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = level

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        own = [isinstance(a, Tensor) and a._interp is self for a in args]
        low = [a._value if o else a for a, o in zip(args, own, strict=True)]
        special = SPECIAL.get(op)
        if special is not None:
            return special(self, args, low, kw)
        y = op.bind(*low, **kw)
        if not op.differentiable:
            return y
        xs = [pin(a) if o else a for a, o in zip(args, own, strict=True)]

        def make() -> Any:
            ts = [x._aux.get() if o else None for x, o in zip(xs, own, strict=True)]
            if all(t is None for t in ts):
                return (None,) * len(y) if type(y) is tuple else None
            t = op.push(ts, out, xs, kw)
            if type(y) is not tuple:
                return None if t is None else fit_tangent(t, y)
            return tuple(None if v is None else fit_tangent(v, w) for v, w in zip(t or (None,) * len(y), y, strict=True))

        rate = Rate(make, tuple(x._aux for x, o in zip(xs, own, strict=True) if o))
        out: Any
        if type(y) is not tuple:
            out = Tensor(y, self, rate)
        else:
            out = tuple(
                v if i in op.integer_outputs else Tensor(v, self, Rate(lambda i=i: rate.value[i], (rate,)))
                for i, v in enumerate(y)
            )
        return out


SPLIT, POLE = Tower(-2.0), Tower(-1.0)
# Ops that know the towers: what they do there, from the arguments and their values at 0.
SPECIAL: dict[Op, Callable[..., Any]] = {
    # For those who see a detached tensor it is a constant; along the germ it moves.
    detach_p: lambda tower, args, low, kw: Tensor(low[0], tower, args[0]._aux),
}


def restarts(o: Op) -> Op:
    """Declare that `o` looks at values alone: a factorization of a germ starts a germ of its own."""
    SPECIAL[o] = lambda tower, args, low, kw: o.bind(*low, **kw)
    return o


class Bottom(CoreOp):
    """A core op whose body makes tensors of a tower."""

    def concrete(self, args: Any, kw: dict[str, Any]) -> Any:
        return self.impl(*args, **kw)  # type: ignore[misc]


def _bottom(name: str, core: str) -> Callable[[Callable[..., Any]], Op]:
    def declare(f: Callable[..., Any]) -> Op:
        o = Bottom(name, f)
        o.core = [len([d for d in part.strip("() ").split(",") if d]) for part in core.split("->")[0].split("),")]
        return o

    return declare


# -- splitting ----------------------------------------------------------------------------------------------------------


def _at(d: Any) -> float:
    """How far along its curve the matrix lies: less than rounding, so that the numbers D of equal values do no harm."""
    return float(np.finfo(d).eps) / 4


def _snapped(s: Any, equal: Any, zero: Any) -> Any:
    """s with equal values made exactly equal, to the first of them or to 0."""
    return np.where(zero, 0, np.take_along_axis(s, np.argmax(equal, -1), -1)).astype(s.dtype)


def _numbers(s: Any, equal: Any, near: Any, zero: Any) -> Any:
    """D: values move away from the first of those nearly equal, by their distance in ``_at`` steps; equal ones by distinct numbers."""
    v = _snapped(s, equal, zero)
    first = np.take_along_axis(v, np.argmax(near, -1), -1)
    rank = np.tril(equal, -1).sum(-1)
    top = np.max(np.abs(s), axis=-1, keepdims=True, initial=0)
    d = (v - first) / _at(s.dtype) + (1 + rank) * np.where(top > 0, top, 1)
    return np.where((near.sum(-1) > 1) | zero, d, 0).astype(s.dtype)


@_bottom("split_values", "(n)->(n)")
def split_p(s: Any, *, slack: float = 1.0, zeros: bool = False) -> Any:
    """``s + e D``: equal values, made exactly equal, move apart along the germ."""
    v = s._value
    equal, near, zero = clusters(v, slack, zeros)
    d = _numbers(v, equal, near, zero)
    if not d.any():
        return s
    return Tensor(Tensor(_snapped(v, equal, zero)), SPLIT, Rate(lambda: Tensor(d)))


split_p.jvp([lambda t, y, s, *, slack, zeros: t])
split_p.vjp([lambda g, y, s, *, slack, zeros: g])
restarts(split_p)


def reciprocals(s: Any, kind: str) -> tuple[Any, Any]:
    """``1 / (D[j] - D[i])`` among near ones ("gaps"), ``1 / (D[j] + D[i])`` or ``1 / D[j]`` among zeros ("sums", "values"), else 0.

    Also which values are equal.
    """
    equal, near, zero = clusters(s, 1.0, kind != "gaps")
    d = _numbers(s, equal, near, zero)[..., None, :]
    if kind == "gaps":
        mask, x = near & ~np.eye(s.shape[-1], dtype=bool), d - np.swapaxes(d, -1, -2)
    elif kind == "sums":
        mask, x = zero[..., None, :] & zero[..., :, None], d + np.swapaxes(d, -1, -2)
    else:
        mask, x = zero[..., None, :], d
    return np.where(mask, 1 / np.where(mask, x, 1), 0).astype(s.dtype), equal


def turned(s: Any, *vectors: Any, slack: float = 1.0, zeros: bool = False) -> Any:
    """Vectors in columns, those of equal values turned among themselves, by no special angle.

    A function that depends on the choice of vectors may be stationary at the special one that LAPACK makes, such as unit vectors for
    the identity; nobody could tell then.
    """
    near = clusters(s, slack, zeros)[0]
    n = s.shape[-1]
    if near.sum() == near.size // max(n, 1):
        return vectors
    g = np.random.default_rng(7).standard_normal((n, n))
    q, r = np.linalg.qr(near * (np.abs(g) * np.eye(n) + g * (1 - np.eye(n))))
    q = (q * np.sign(np.diagonal(r, 0, -2, -1))[..., None, :]).astype(s.real.dtype)
    return tuple(np.concatenate((v[..., :n] @ q, v[..., n:]), -1) for v in vectors)


def moving(x: Tensor) -> bool:
    """Whether a derivative is being taken of x."""
    while x._interp is not None:
        if x._interp.kind in ("reverse", "jvp"):
            return True
        x = x._value
    return False


def split(s: Tensor, slack: float = 1.0, zeros: bool = False) -> Tensor:
    """`s` on the germ where values are repeated; otherwise itself."""
    v = innermost(s)
    if type(v) is not np.ndarray or not v.size:
        return s
    _, near, zero = clusters(v, slack, zeros)
    if not zero.any() and near.sum() == near.size // v.shape[-1]:
        return s
    if dispatch.SETTLE is None:
        dispatch.SETTLE = settled
    return split_p.bind(s, slack=slack, zeros=zeros)


# -- poles --------------------------------------------------------------------------------------------------------------


def _times_pole(x: Tensor, scale: float, size: float = 0.0, near: bool = False) -> Tensor:
    """``q x``."""

    def make() -> Tensor:
        if x._interp is not POLE:
            return x
        t = x._aux.get()
        return x if t is None else x + _times_pole(t, scale, size, near)

    deps = (x._aux,) if x._interp is POLE else ()
    r = Rate(make, deps)
    r.scale, r.size, r.near = max(r.scale, scale), max(r.size, size), r.near or near
    return Tensor(Tensor(np.zeros(innermost(x).shape, innermost(x).dtype)), POLE, r)


@_bottom("over_split", "(n),(m,n),(m,n)->(m,n)")
def over_split_p(s: Any, x: Any, of: Any, *, kind: str) -> Any:
    """x divided by differences, sums or values of s, where these are 0 but move along the germ; 0 elsewhere.

    ``q x / (D[j] - D[i])`` and so on. x is what is left, after rounding, of matrices like `of`.
    """
    r, equal = reciprocals(innermost(s), kind)
    size = float(np.max(np.abs(innermost(of)), initial=0))
    every = np.abs(r)
    exact = every if kind != "gaps" else every * equal
    most = float(np.max(every, initial=0))
    rest = bool((every != exact).any())
    return _times_pole(x * Tensor(r), size * float(np.max(exact, initial=0)), size * most, rest)


SPECIAL[over_split_p] = lambda tower, args, low, kw: over_split_p.impl(*args, **kw)  # type: ignore[misc]


def _divisor(t: Tensor, kind: str) -> Tensor:
    row = t.unsqueeze(-2)
    return row if kind == "values" else row - t.unsqueeze(-1) if kind == "gaps" else row + t.unsqueeze(-1)


over_split_p.jvp(
    [
        lambda t, y, s, x, of, *, kind: -over_split_p.bind(s, y * _divisor(t, kind), of, kind=kind),
        lambda t, y, s, x, of, *, kind: over_split_p.bind(s, t, of, kind=kind),
        None,
    ]
)


@over_split_p.vjp
def _(g: Any, y: Any, s: Any, x: Any, of: Any, *, kind: str) -> Any:
    cx = y.dtype.is_complex
    gx = over_split_p.bind(s.conj() if s.dtype.is_complex else s, g, of, kind=kind)

    def gs() -> Tensor:
        h = (y.conj() if cx else y) * gx
        d = -h.sum(-2)
        return d if kind == "values" else d + h.sum(-1) if kind == "gaps" else d - h.sum(-1)

    return gs, gx, None


def over_split(s: Tensor, x: Tensor, of: Tensor, kind: str = "gaps") -> Tensor | None:
    """`over_split_p`; None where nothing is split."""
    v = innermost(s)
    if type(v) is not np.ndarray or not np.any(reciprocals(v, kind)[0]):
        return None
    return over_split_p.bind(s, x, of.detach(), kind=kind)


@_bottom("gauge", "(n,n)->(n,n)")
def gauge_p(x: Any) -> Any:
    """``q x``: a motion that no function may see; `settle` looks whether one does."""
    return _times_pole(x, float(np.max(np.abs(innermost(x)), initial=0)))


gauge_p.jvp([lambda t, y, x: gauge_p.bind(t)])
gauge_p.vjp([lambda g, y, x: gauge_p.bind(g)])
SPECIAL[gauge_p] = lambda tower, args, low, kw: gauge_p.impl(*args)  # type: ignore[misc]


def phases(p: Tensor, s: Tensor) -> Tensor:
    """A motion of the phases of complex vectors, linear in the tangent whose matrix between them is p, for `gauge_p`."""
    if dispatch.SETTLE is None:
        dispatch.SETTLE = settled
    n = p.shape[-1]
    turns = Tensor(((1 + np.arange(n)) / n).astype(p.dtype.to_real().np))
    top = s.detach().abs().amax(-1, True)
    turns = turns / where(top > 0, top, 1)
    return gauge_p.bind(diag_embed(diag_of(p).real * turns).to(p.dtype) * 1j)


def plus(x: Tensor, y: Tensor | None) -> Tensor:
    """``x + y`` where there is a y."""
    return x if y is None else x + y


# -- leaving ------------------------------------------------------------------------------------------------------------


def _coefficient(x: Any, k: int) -> Any:
    """The coefficient of ``e**k`` as an array; None for zero."""
    for _ in range(k):
        if x is None or x._interp is not SPLIT:
            return None
        x = x._aux.get()
    return None if x is None else innermost(x) / math.factorial(k)


def _series(c: Callable[[int], Any]) -> Tensor:
    """The power series with coefficients ``c(k)``, arrays."""
    return Tensor(Tensor(c(0)), SPLIT, Rate(lambda: _series(lambda k: (k + 1) * c(k + 1))))


def _settle(x: Tensor, ref: float) -> Tensor:
    """The polynomial x in q as a power series in e: with ``h = 1/q``, the quotient ``N(h) / h**P`` of power series.

    N and its first P - 1 derivatives vanish at h = 0 if x does not depend on the choice of vectors. Near there, at ``h = s``, the
    quotient comes from the higher coefficients of N, which have lost no digits.
    """
    terms: list[Any] = []
    t: Any = x
    while t is not None:
        own = t._interp is POLE
        terms.append(t._value if own else t)
        t = t._aux.get() if own else None
        if len(terms) > 16:
            raise RuntimeError("linalg: a function of repeated values needs derivatives of too high an order")
    top = len(terms) - 1
    if not top:
        return terms[0]
    like = innermost(x)
    s, more, rate = _at(like.dtype), 2 if x._aux.near else 0, x._aux

    @cache
    def c(p: int, k: int) -> Any:
        """The coefficient of ``q**p e**k``."""
        v = _coefficient(terms[p], k)
        return 0.0 if v is None else v / math.factorial(p)

    @cache
    def n_at(j: int) -> Any:
        """The coefficient j of N around h = s."""
        return sum(
            math.comb(top - p, i) * s ** (top - p - i) * c(p, j - i)
            for p in range(top + 1)
            for i in range(min(top - p, j) + 1)
        )

    def n_zero(j: int, last: int) -> Any:
        """The coefficient j of N around h = 0, from those around s up to `last`."""
        return sum(math.comb(i, j) * (-s) ** (i - j) * n_at(i) for i in range(j, last + 1))

    def smooth(k: int) -> Any:
        last = top + k + more
        return sum(
            math.comb(j - top, k) * s ** (j - top - k) * n_zero(j, last) for j in range(top + k, last + 1)
        ) + np.zeros_like(like)

    def plain(k: int) -> Any:
        return sum(
            (-1) ** (k - i) * math.comb(p + k - i - 1, k - i) * s ** (i - k - p) * c(p, i) if p else c(0, k) / (k + 1)
            for p in range(top + 1)
            for i in range(k + 1)
        )

    eps = float(np.finfo(like.dtype).eps)
    y = smooth(0)
    if rate.scale:
        left = max(_size(n_zero(j, top + more)) for j in range(top))
        noise = 64 * eps * max(rate.scale, rate.scale**top) * max(ref, 1.0)
        if left > max(math.sqrt(eps) * max(_size(y), *(_size(c(p, 0)) for p in range(top + 1))), noise):
            raise RuntimeError(
                "linalg.eigh, eig or svd: eigenvalues or singular values are repeated (or singular values are zero), and the result "
                "depends on which vectors of a repeated value were chosen (or on the phases of complex vectors): it has no "
                "derivative there. Use a function that does not depend on the choice, such as the projector on their span, "
                "V f(L) V^H, or a symmetric function of the values"
            )
    good: Any = True
    if more:
        rounding = 64 * eps * max(rate.size / s, (rate.size / s) ** top) * max(ref, 1.0)
        good = np.abs(plain(0) - y) <= rounding

    def coefficient(k: int) -> Any:
        v = smooth(k)
        return (v if good is True or good.all() else np.where(good, v, plain(k))).astype(like.dtype, copy=False)

    return _series(coefficient)


def _size(x: Any) -> float:
    return float(np.max(np.abs(x), initial=0))


@op("settle", batch=lambda size, xs, flags: settle_p.bind(*xs))
def settle_p(x: Any, ref: Any) -> Any:
    """x itself: poles that cancel are gone after it. `ref` is of the size of what x is a derivative of."""
    return x


settle_p.jvp([lambda t, y, x, ref: settle_p.bind(t, ref), None])
settle_p.vjp([lambda g, y, x, ref: g, None])


def _settle_here(tower: Tower, args: Any, low: Any, kw: Any) -> Any:
    x, ref = args
    if not isinstance(x, Tensor) or x._interp is not POLE:
        return x
    return _settle(x, float(np.max(np.abs(innermost(ref)), initial=0)))


SPECIAL[settle_p] = _settle_here


@op("leave_germ")
def leave_p(x: Any) -> Any:
    """x at the point itself."""
    return x


leave_p.jvp([lambda t, y, x: leave_p.bind(t)])
leave_p.vjp([lambda g, y, x: g])
SPECIAL[leave_p] = lambda tower, args, low, kw: leave_p.bind(low[0])


def on_germ(x: Any) -> bool:
    """Whether x moves along a germ."""
    while isinstance(x, Tensor) and x._interp is not None:
        i = x._interp
        if i.kind == "germ" or (i.kind == "jvp" and on_germ(x._aux)):
            return True
        x = x._value
    return False


def settled(x: Any, ref: Any = None) -> Any:
    """What leaves a transform: without poles and, if no derivative is being taken around it, without the germ."""
    if not on_germ(x) or MAKING.get():
        return x
    x = settle_p.bind(x, Tensor(np.ones(())) if ref is None else ref.detach())
    if any(i.kind in ("reverse", "jvp") for i in STACK.get()) or moving(x):
        return x
    return leave_p.bind(x)
