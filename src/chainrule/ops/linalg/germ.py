"""Repeated eigenvalues: derivatives as limits of those at split values, exactly and to every order.

Where eigenvalues repeat, a function F that does not depend on the choice of eigenvectors is smooth, but the derivatives of values and
vectors are not, and the cotangents of both do not determine that of the matrix. So F is taken on the germ of a curve,
``A(e) = A + e V D V^H`` with distinct numbers D among equal values: eigenvalues ``L + e D``, the same vectors. There every rule holds,
with ``1 / (L[j] - L[i]) = 1 / (e (D[j] - D[i]))`` among equals, and derivatives of F are power series in e whose constant term is wanted.
Nearly equal values, whose small gaps would cost digits, lie on such a curve at a distance s from where they meet.

Two levels below all others carry this. `split`: power series in e. `pole`: polynomials in ``q = 1/(s + e)`` over them. Both are lazy
towers: a tensor is its value at 0 and, when somebody asks, its derivative, again such a tensor, from the forward rules of the ops.
`settle` turns polynomials in q into power series. If terms in 1/e are left, F depends on the choice of vectors, and this raises.
The reasons are in docs/decisions/008-repeated-eigenvalues.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial
from typing import Any

import numpy as np

from ...core import dispatch
from ...core.declare import op
from ...core.dispatch import STACK, Interpreter, innermost, look, recorder_of
from ...core.errors import Unfit, see
from ...core.forward import fit_tangent
from ...core.op import Op
from ...core.primitives import detach_p
from ...core.tensor import Tensor
from ...core.views import pin
from ..elementwise.select import where
from ..shape.diagonals import diag_embed
from .common import apart, clusters, diag_of

# Whether derivatives along a germ are being made: their own transforms must not leave it.
MAKING: ContextVar[bool] = ContextVar("chainrule_germs", default=False)


class Rate:
    """The derivative of a tensor of a tower, made when it is asked for; poles entered times up to `gain`, from up to `size`."""

    __slots__ = ("deps", "gain", "make", "size", "value")

    def __init__(self, make: Callable[[], Any], deps: tuple[Rate, ...] = ()) -> None:
        self.make: Any = make
        self.deps = deps
        self.size = max((d.size for d in deps), default=0.0)
        self.gain = max((d.gain for d in deps), default=0.0)
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


def _pick(r: Rate, i: int) -> Any:
    return r.value[i]


class Tower(Interpreter):
    """A level of lazy power series in one variable: value at 0 and derivative."""

    kind = "germ"

    def __init__(self, level: float) -> None:
        super().__init__()
        self.level = level

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        own = [isinstance(a, Tensor) and a._interp is self for a in args]
        low = [a._value if o else a for a, o in zip(args, own, strict=True)]
        special = SPECIAL.get(op)
        if special is not None and (r := special(self, args, low, kw)) is not NotImplemented:
            return r
        y = op.bind(*low, **kw)
        if not op.differentiable:
            return y
        xs = [pin(a) if isinstance(a, Tensor) else a for a in args]

        def make() -> Any:
            ts = [x._aux.get() if o else None for x, o in zip(xs, own, strict=True)]
            if all(t is None for t in ts):
                return (None,) * len(y) if type(y) is tuple else None
            t = op.push(ts, out, xs, kw)
            if type(y) is not tuple:
                return None if t is None else fit_tangent(t, y)
            return tuple(
                None if v is None else fit_tangent(v, w) for v, w in zip(t or (None,) * len(y), y, strict=True)
            )

        rate = Rate(make, tuple(x._aux for x, o in zip(xs, own, strict=True) if o))
        out: Any
        if type(y) is not tuple:
            out = Tensor(y, self, rate)
        else:
            out = tuple(
                v if i in op.integer_outputs else Tensor(v, self, Rate(partial(_pick, rate, i), (rate,)))
                for i, v in enumerate(y)
            )
        return out


class Curve:
    """The two towers of values that meet at a distance of about `s`, relative to them, and how many terms of a series that takes."""

    def __init__(self, s: float, terms: int, level: float) -> None:
        self.s, self.terms = s, terms
        self.pole, self.split = Tower(level), Tower(level - 0.5)


# Equal values, then nearly equal ones by decades: numbers of different sizes on one curve would cost digits.
CURVES = tuple(
    Curve(s, n, -1.0 - i) for i, (s, n) in enumerate(((0.0, 0), (1e-11, 1), (1e-8, 1), (3e-6, 2), (1e-4, 3)))
)
# Ops that know the towers: what they do there, from the arguments and their values at 0.
SPECIAL: dict[Op, Callable[..., Any]] = {
    # For those who see a detached tensor it is a constant; along the germ it moves.
    detach_p: lambda tower, args, low, kw: Tensor(low[0], tower, args[0]._aux),
}


def restarts(o: Op) -> Op:
    """Declare that `o` looks at values alone: a factorization of a germ starts a germ of its own."""
    SPECIAL[o] = lambda tower, args, low, kw: o.bind(*low, **kw)
    return o


def _bottom(name: str, core: str) -> Callable[[Callable[..., Any]], Op]:
    """A core op whose body makes tensors of a tower."""
    return op(name, core=core, on_tensors=True)


# -- splitting ----------------------------------------------------------------------------------------------------------


def _snapped(s: Any, equal: Any, zero: Any) -> Any:
    """s with equal values made exactly equal, to the first of them; zeros stay what the factorization gave, as they are without a derivative."""
    return np.where(zero, s, np.take_along_axis(s, np.argmax(equal, -1), -1)).astype(s.dtype)


def _numbers(s: Any, slack: float, zeros: bool) -> tuple[list[Any], Any, Any, Any]:
    """D for every curve, None where it has no values, and the relations `clusters`.

    Equal values get distinct numbers; nearly equal ones their distances from the first of them, in units of the curve's s.
    """
    equal, near, zero = relations = clusters(s, slack, zeros)
    top = np.max(np.abs(s), axis=-1, keepdims=True, initial=0)
    several = (equal.sum(-1) > 1) | zero
    rank = np.tril(equal, -1).sum(-1)
    out: list[Any] = [np.where(several, (1 + rank) * np.where(top > 0, top, 1), 0) if several.any() else None]
    if near.sum() == equal.sum():
        return [*out, *(None for _ in CURVES[1:])], *relations
    v = _snapped(s, equal, zero)
    away = v - np.take_along_axis(v, np.argmax(near, -1), -1)
    spread = np.max(near * np.abs(away)[..., None, :], -1) / np.maximum(
        np.max(near * np.abs(v)[..., None, :], -1), 1e-300
    )
    which = np.where(spread > 0, 1 + np.searchsorted([c.s for c in CURVES[1:-1]], spread), 0)
    for b, c in enumerate(CURVES[1:], 1):
        out.append(np.where(which == b, away / c.s, 0) if (which == b).any() else None)
    return out, *relations


@_bottom("split_values", "(n)->(n)")
def split_p(s: Any, *, b: int, slack: float, zeros: bool) -> Any:
    """``s + e D`` along the curve number b, equal values made exactly equal."""
    v = s._value
    numbers, equal, _, zero = _numbers(v, slack, zeros)
    v = _snapped(v, equal, zero)
    d = numbers[b]
    return Tensor(v) if d is None else Tensor(Tensor(v), CURVES[b].split, Rate(lambda: Tensor(d.astype(v.dtype))))


split_p.jvp([lambda t, y, s, *, b, slack, zeros: t])
split_p.vjp([lambda g, y, s, *, b, slack, zeros: g])


def reciprocals(s: Any, kind: str, b: int) -> Any:
    """``1 / (D[j] - D[i])`` among (nearly) equal values of curve b, ``1 / (D[j] + D[i])`` or ``1 / D[j]`` among zeros, else 0; or None."""
    numbers, equal, near, zero = _numbers(s, 1.0, kind != "gaps")
    if numbers[b] is None:
        return None
    d = numbers[b][..., None, :]
    if kind == "gaps":
        x = d - np.swapaxes(d, -1, -2)
        mask = (near & ~equal & (x != 0)) if b else equal & ~np.eye(s.shape[-1], dtype=bool)
    elif b:
        return None
    elif kind == "sums":
        mask, x = zero[..., None, :] & zero[..., :, None], d + np.swapaxes(d, -1, -2)
    else:
        mask, x = zero[..., None, :], d
    return np.where(mask, 1 / np.where(mask, x, 1), 0).astype(s.dtype) if mask.any() else None


def turned(s: Any, *vectors: Any, slack: float = 1.0, zeros: bool = False) -> Any:
    """Vectors in columns, those of equal values turned among themselves, by no special angle.

    A function that depends on the choice of vectors may be stationary at the special one that LAPACK makes, such as unit vectors for
    the identity; nobody could tell then.
    """
    if apart(s, slack, zeros):
        return vectors
    near = clusters(s, slack, zeros)[0]
    n = s.shape[-1]
    if near.sum() == near.size // max(n, 1):
        return vectors
    g = np.random.default_rng(7).standard_normal((n, n))
    q, r = np.linalg.qr(near * (np.abs(g) * np.eye(n) + g * (1 - np.eye(n))))
    q = (q * np.sign(np.diagonal(r, 0, -2, -1))[..., None, :]).astype(s.real.dtype)
    return tuple(np.concatenate((v[..., :n] @ q, v[..., n:]), -1) for v in vectors)


def may_move(x: Tensor) -> bool:
    """Whether a derivative is being taken of x, or may be later: of what is recorded."""
    return moving(x) or recorder_of(x) is not None


def moving(x: Tensor) -> bool:
    """Whether a derivative is being taken of x."""
    while x._interp is not None:
        if x._interp.kind in ("reverse", "jvp"):
            return True
        x = x._value
    return False


def _refuse_repeated(v: Any, slack: float, zeros: bool) -> None:
    """A recording follows no germ: which values are repeated, it cannot know."""
    if type(v) is not np.ndarray or not v.size or apart(v, slack, zeros):
        return
    if any(d is not None for d in _numbers(v, slack, zeros)[0]):
        raise Unfit(
            "jit: a derivative of eigenvalues or singular values of which some are repeated (or zero) was asked for. The compiled "
            "function is made for distinct ones: call this one without jit."
        )


def split(s: Tensor, slack: float = 1.0, zeros: bool = False) -> Tensor:
    """`s` on the germ where values are repeated; otherwise itself."""
    if recorder_of(s) is not None:
        look(s, lambda v: _refuse_repeated(v, slack, zeros))
        return s
    v = innermost(s)
    if type(v) is not np.ndarray or not v.size or apart(v, slack, zeros):
        return s
    for b, d in enumerate(_numbers(v, slack, zeros)[0]):
        if d is not None:
            dispatch.SETTLE = settled
            s = split_p.bind(s, b=b, slack=slack, zeros=zeros)
    return s


# -- poles --------------------------------------------------------------------------------------------------------------


def _times_pole(x: Tensor, b: int, size: float, gain: float) -> Tensor:
    """``q x``, where x is what is left of numbers of this size, times the gain."""
    tower = CURVES[b].pole

    def make() -> Tensor:
        if x._interp is not tower:
            return x
        t = x._aux.get()
        return x if t is None else x + _times_pole(t, b, size, gain)

    r = Rate(make, (x._aux,) if x._interp is tower else ())
    r.size, r.gain = max(r.size, size), max(r.gain, gain)
    return Tensor(Tensor(np.zeros(innermost(x).shape, innermost(x).dtype)), tower, r)


@_bottom("over_split", "(n),(m,n),(m,n)->(m,n)")
def over_split_p(s: Any, x: Any, of: Any, *, kind: str, b: int) -> Any:
    """x divided by differences, sums or values of s, where these are 0 or small on the curve b; 0 elsewhere.

    ``q x / (D[j] - D[i])`` and so on. x is what is left, after rounding, of matrices like `of`.
    """
    r = reciprocals(innermost(s), kind, b)
    if r is None:
        return x * 0
    return _times_pole(x * Tensor(r), b, _size(of), _size(Tensor(r)))


# A gap on curve b moves only along it and, for nearly equal values of which some are equal, along the first, which is above.
SPECIAL[over_split_p] = lambda tower, args, low, kw: (
    over_split_p.spec(*args, **kw) if tower.level <= CURVES[kw["b"]].pole.level else NotImplemented
)


def _divisor(t: Tensor, kind: str) -> Tensor:
    row = t.unsqueeze(-2)
    return row if kind == "values" else row - t.unsqueeze(-1) if kind == "gaps" else row + t.unsqueeze(-1)


over_split_p.jvp(
    [
        lambda t, y, s, x, of, *, kind, b: -over_split_p.bind(s, y * _divisor(t, kind), of, kind=kind, b=b),
        lambda t, y, s, x, of, *, kind, b: over_split_p.bind(s, t, of, kind=kind, b=b),
        None,
    ]
)


@over_split_p.vjp
def _(g: Any, y: Any, s: Any, x: Any, of: Any, *, kind: str, b: int) -> Any:
    cx = y.dtype.is_complex
    gx = over_split_p.bind(s.conj() if s.dtype.is_complex else s, g, of, kind=kind, b=b)

    def gs() -> Tensor:
        h = (y.conj() if cx else y) * gx
        d = -h.sum(-2)
        return d if kind == "values" else d + h.sum(-1) if kind == "gaps" else d - h.sum(-1)

    return gs, gx, None


def over_split(y: Tensor, s: Tensor, x: Tensor, of: Tensor, kind: str = "gaps") -> Tensor:
    """y and the quotients of `over_split_p` on all curves."""
    zeros = kind != "gaps"
    if recorder_of(s) is not None:
        look(s, lambda v: _refuse_repeated(v, 1.0, zeros))
        return y
    v = innermost(s)
    if type(v) is np.ndarray and v.size and not apart(v, zeros=zeros):
        for b, d in enumerate(_numbers(v, 1.0, zeros)[0]):
            if d is not None and (b == 0 or not zeros):
                y = y + over_split_p.bind(s, x, of.detach(), kind=kind, b=b)
    return y


@_bottom("gauge", "(n,n)->(n,n)")
def gauge_p(x: Any) -> Any:
    """``q x``: a motion that no function may see; `settle` looks whether one does."""
    return _times_pole(x, 0, _size(x), 1.0)


gauge_p.jvp([lambda t, y, x: gauge_p.bind(t)])
gauge_p.vjp([lambda g, y, x: gauge_p.bind(g)])
SPECIAL[gauge_p] = lambda tower, args, low, kw: gauge_p.spec(*args)


def _over_top(d: Tensor, s: Tensor) -> Tensor:
    top = s.detach().abs().amax(-1, True)
    return d.real / where(top > 0, top, 1)


def phases(p: Tensor, s: Tensor) -> Tensor:
    """A motion of the phases of complex vectors, linear in the tangent whose matrix between them is p; nobody may see it."""
    n = p.shape[-1]
    if not n:
        return p
    dispatch.SETTLE = settled
    turns = Tensor(((1 + np.arange(n)) / n).astype(p.dtype.to_real().np))
    return gauge_p.bind(diag_embed(_over_top(diag_of(p), s) * turns).to(p.dtype) * 1j)


def free(p: Tensor, s: Tensor, n: int) -> Tensor:
    """The same for n vectors that may be turned among themselves, those beyond the thin factors of an SVD."""
    dispatch.SETTLE = settled
    k = np.triu(np.ones((n, n)), 1)
    turns = Tensor((k - k.T + (1j * np.eye(n) if p.dtype.is_complex else 0)).astype(p.dtype.np))
    return gauge_p.bind(_over_top(diag_of(p), s).sum(-1, True).unsqueeze(-1) * turns)


# -- leaving ------------------------------------------------------------------------------------------------------------


def _size(x: Any) -> float:
    return float(np.max(np.abs(innermost(x)), initial=0)) if isinstance(x, Tensor) else abs(x)


def _series(tower: Tower, c: Callable[[int], Tensor]) -> Tensor:
    """The power series with coefficients ``c(k)``."""
    return Tensor(c(0), tower, Rate(lambda: _series(tower, lambda k: c(k + 1) * (k + 1))))


def _settle(x: Tensor, ref: float, curve: Curve, fresh: bool) -> Tensor:
    """The polynomial x in q as a power series in e: with ``h = 1/q``, the quotient ``N(h) / h**P`` of power series.

    N and its first P - 1 derivatives vanish at h = 0 if x does not depend on the choice of vectors. Near there, at ``h = s``, the
    quotient comes from the higher coefficients of N, which have lost no digits. If x does depend on it, there is no derivative for
    equal values, and the plain quotient for nearly equal ones.
    """
    terms: list[Any] = []
    t: Any = x
    while t is not None:
        own = t._interp is curve.pole
        terms.append(t._value if own else t)
        t = t._aux.get() if own else None
        if len(terms) > 16:
            raise RuntimeError("linalg: a function of repeated values needs derivatives of too high an order")
    top = len(terms) - 1
    if not top:
        return terms[0]
    s, like = curve.s, innermost(x)
    zero = Tensor(np.zeros(like.shape, like.dtype))

    @cache
    def c(p: int, k: int) -> Any:
        """The coefficient of ``q**p e**k``."""
        v = terms[p]
        for _ in range(k):
            v = v._aux.get() if v is not None and v._interp is curve.split else None
        return (
            0.0
            if v is None
            else (v._value if v._interp is curve.split else v) * (1 / math.factorial(p) / math.factorial(k))
        )

    @cache
    def around(j: int) -> Any:
        """The coefficient j of N around h = s."""
        return sum(
            c(p, j - i) * (math.comb(top - p, i) * s ** (top - p - i))
            for p in range(top + 1)
            for i in range(min(top - p, j) + 1)
            if s or i == top - p
        )

    def at_zero(j: int, last: int) -> Any:
        """The coefficient j of N around h = 0, from those around s up to `last`."""
        return sum(around(i) * (math.comb(i, j) * (-s) ** (i - j)) for i in range(j, last + 1))

    def smooth(k: int) -> Any:
        last = top + k + curve.terms
        return zero + sum(
            at_zero(j, last) * (math.comb(j - top, k) * s ** (j - top - k)) for j in range(top + k, last + 1)
        )

    def plain(k: int) -> Any:
        y = zero + c(0, k)
        for p in range(1, top + 1):
            for i in range(k + 1):
                y = y + c(p, i) * ((-1) ** (k - i) * math.comb(p + k - i - 1, k - i) * s ** (i - k - p))
        return y

    eps, y, gain = float(np.finfo(like.dtype).eps), smooth(0), x._aux.gain
    size = max(x._aux.size, x._aux.size**top)
    if not s:
        left = max(_size(at_zero(j, top)) for j in range(top))
        noise = eps * size * max(gain, gain**top) * (64 + 1024 * ref)
        # Fresh poles were not multiplied since their size was noted: what distinct values, with gaps of their own, add is no measure.
        seen = 0.0 if fresh else max(_size(y), *(_size(c(p, 0)) for p in range(top + 1)))
        if left > max(math.sqrt(eps) * seen, noise):
            raise RuntimeError(
                "linalg.eigh, eig or svd: eigenvalues or singular values are repeated (or singular values are zero), and the result "
                "depends on which vectors of a repeated value were chosen (or on the phases of complex vectors): it has no "
                "derivative there. Use a function that does not depend on the choice, such as the projector on their span, "
                "V f(L) V^H, or a symmetric function of the values" + see("Singular matrices, repeated eigenvalues")
            )
        return _series(curve.split, smooth)
    rounding = 64 * eps * size * (gain / s) ** top * max(ref, 1.0)
    # One element that depends on the choice convicts the function, all elements of it.
    return _series(curve.split, smooth if _size(plain(0) - y) <= rounding else plain)


@op("settle", batch=lambda size, xs, flags, **kw: settle_p.bind(*xs, **kw))
def settle_p(x: Any, ref: Any, *, b: int, fresh: bool) -> Any:
    """x itself: poles of curve b that cancel are gone after it. `ref` is of the size of what x is a derivative of.

    `fresh`: all poles are of the rule that made x.
    """
    return x


settle_p.jvp([lambda t, y, x, ref, *, b, fresh: settle_p.bind(t, ref, b=b, fresh=False), None])
settle_p.vjp([lambda g, y, x, ref, *, b, fresh: g, None])


def _settle_here(tower: Tower, args: Any, low: Any, kw: Any) -> Any:
    curve = CURVES[kw["b"]]
    if tower is not curve.pole:
        return NotImplemented
    return _settle(args[0], _size(args[1]), curve, kw["fresh"]) if args[0]._interp is tower else args[0]


SPECIAL[settle_p] = _settle_here


@op("leave_germ", linear="each")
def leave_p(x: Any) -> Any:
    """x at the point itself."""
    return x


leave_p.vjp([lambda g, y, x: g])
restarts(leave_p)
SPECIAL[split_p] = lambda tower, args, low, kw: (
    split_p.bind(*low, **kw) if tower is CURVES[kw["b"]].split else NotImplemented
)


def towers(x: Any) -> set[Any]:
    """The towers that x is part of."""
    out = set()
    while isinstance(x, Tensor) and x._interp is not None:
        i = x._interp
        if i.kind == "germ":
            out.add(i)
        elif i.kind == "jvp":
            out |= towers(x._aux)
        x = x._value
    return out


def pulled(x: Tensor, size: Tensor, *gs: Tensor | None, unitary: bool = True) -> Tensor:
    """`settled` for what a reverse rule makes of cotangents up to `size`; poles that they bring along were noted without it.

    `unitary`: after the division by gaps it multiplied by unitary matrices alone.
    """
    found = set().union(*(towers(g) for g in gs))
    carried = any(c.pole in found for c in CURVES)
    return settled(x, size if carried else None, fresh=unitary and not carried)


def settled(x: Any, ref: Any = None, fresh: bool = False) -> Any:
    """What leaves a transform: without poles and, if no derivative is being taken around it, without the germ."""
    found = towers(x)
    if not found or MAKING.get():
        return x
    size = Tensor(np.ones(())) if ref is None else ref.detach()
    for b, curve in enumerate(CURVES):
        if curve.pole in found:
            x = settle_p.bind(x, size, b=b, fresh=fresh)
    if any(i.kind in ("reverse", "jvp") for i in STACK.get()) or moving(x):
        return x
    return leave_p.bind(x)
