"""Op ops whose bodies run compiled on large arrays: a formula in NumPy, the same in the kernels' loop language.

The NumPy formula is the specification and what runs on small or strided arrays, and without llvmlite. A derivative is an op too,
``pull(t, x) = t * f'(x)``: one pass over memory, 16-bit floats rounded once, differentiable again.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import pulls as pulls
from ...core.declare import LARGE, pointwise
from ...core.errors import ZERO
from ...core.op import Op
from ...core.recall import MAKE
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS

LEAST = 1 << 13  # elements from which a compiled loop is worth its call
LEAST_COSTLY = 1 << 11  # the same for functions with an exponential in them


class RoundedOnce:
    """A rule of a pointwise op of which 16-bit floats are computed in float32: rounded at its end, not in the middle."""

    def __init__(self, rule: Any) -> None:
        self.rule, self.__code__ = rule, rule.__code__  # of which what reverse mode saves is read

    def __call__(self, t: Any, *xs: Any, **kw: Any) -> Any:
        if t.dtype.np not in dt.HALVES:
            return self.rule(t, *xs, **kw)
        wide = [x.to(dt.float32) if isinstance(x, Tensor) and x.dtype.np in dt.HALVES else x for x in (t, *xs)]
        return self.rule(*wide, **kw).to(t.dtype)


CHEAP_LEAST, COSTLY_LEAST = (
    1 << 15,
    1 << 11,
)  # elements from which a loop over a few additions, or over an exponential, is worth its call


class Large:
    """The body of a pointwise op for operands of many elements: its formula in the loop language, in any layout, on all threads.

    Without a formula it is the one that the kernels have under the name. None where there is no code for the operands.
    """

    settles = True  # whether `special` finds what the call would do

    def __init__(
        self, name: str, formula: Callable[..., Any] | None = None, cost: int = 1, boolean: bool = False, least: int = 0
    ) -> None:
        self.name, self.formula, self.cost, self.boolean = name, formula, cost, boolean
        self.least = least or (CHEAP_LEAST if cost < 4 else COSTLY_LEAST)
        self.made: dict[Any, Any] = {}

    def __call__(self, *operands: Any, **static: Any) -> Any:
        if not static:
            return (self.made.get(()) or self._make((), static))(*operands)
        if not all(type(v) in (int, float, bool) for v in static.values()):
            return None
        key = tuple(static.items())
        return (self.made.get(key) or self._make(key, static))(*operands)

    def special(self, body: Any, xs: list[Any], static: dict[str, Any]) -> Any:
        """The function of arrays like these, where they are contiguous, `body` for others; None where there is none."""
        key = tuple(static.items()) if static else ()
        arrays = [k for k, x in enumerate(xs) if type(x) is np.ndarray and x.ndim]
        if not all(type(v) in (int, float, bool) for v in static.values()):
            return None
        if not arrays or not self._takes(xs) or not self._enough([xs[k].shape for k in arrays]):
            return None
        f = self.made.get(key)
        go = (self._make(key, static) if f is None else f).at(*xs)
        if go is None:
            return None

        def otherwise(*xs: Any) -> Any:
            y = self(*xs, **static)
            return body(*xs, **static) if y is None else y

        def quick(*xs: Any) -> Any:
            for k in arrays:
                if not xs[k].flags.c_contiguous:
                    return otherwise(*xs)
            y = go(*xs)
            return body(*xs, **static) if y is None else y

        return quick

    def _enough(self, shapes: list[tuple[int, ...]]) -> bool:
        """Whether there are as many elements as a loop is worth; what only moves and adds numbers counts those of the result."""
        least = self.least
        if any(prod(s) >= least for s in shapes):
            return True
        return self.cost == 1 and prod(map(prod, shapes)) >= least and prod(np.broadcast_shapes(*shapes)) >= least

    def _takes(self, xs: list[Any]) -> bool:
        """Whether the operands are what `__call__` is asked with: of one real type, beside numbers and, first, truth values."""
        kinds = {x.dtype for k, x in enumerate(xs) if type(x) is np.ndarray and not (k == 0 and x.dtype.kind == "b")}
        return len(kinds) == 1 and kinds.pop() in dt.REALS

    def _make(self, key: Any, static: dict[str, Any]) -> Any:
        from ...kernels.elementwise import FORMULAS, Elementwise

        formula = self.formula or FORMULAS[self.name]
        f = self.made[key] = Elementwise(
            "_".join([self.name, *_named(static)]),
            (lambda k, *xs: formula(k, *xs, **static)) if static else formula,
            self.cost,
            self.boolean,
        )
        return f


class LargePower(Large):
    """``x**n``: whole numbers from 2 to 4 by multiplication, those beyond left to NumPy, which takes them in double precision."""

    def __call__(self, *operands: Any, **static: Any) -> Any:
        n = operands[1]
        if isinstance(n, np.ndarray) or not float(n).is_integer():
            return super().__call__(*operands)
        n = int(n)
        return self._whole(n)(operands[0]) if 2 <= n <= 4 else None

    settles = False

    def special(self, body: Any, xs: list[Any], static: dict[str, Any]) -> Any:
        return None

    def _whole(self, n: int) -> Any:
        f = self.made.get(n)
        if f is None:
            from ...kernels.elementwise import Elementwise

            powers = {2: lambda k, x: x * x, 3: lambda k, x: x * (x * x), 4: lambda k, x: (x * x) * (x * x)}
            f = self.made[n] = Elementwise(f"power{n}", powers[n])
        return f


class LargeCopy:
    """A copy of an array of many elements in pooled memory, in rows where that is asked for."""

    least, formula, cost, settles = 1 << 15, None, 1, False

    def special(self, body: Any, xs: list[Any], static: dict[str, Any]) -> Any:
        return None

    def __call__(self, x: Any, order: str = "K") -> Any:
        if order != "C" and not x.flags.c_contiguous:
            return None
        from ...kernels.copies import contiguous

        return contiguous(x)


# What an addition costs, and the functions for which the kernels have a formula.
COSTS = {
    1: "add sub mul div neg abs square sign sgn reciprocal maximum minimum clamp clamp_min clamp_max fmax fmin frac floor ceil trunc "
    "copysign deg2rad rad2deg nan_to_num lerp addcmul addcdiv where sqrt",
    4: "rsqrt hypot fmod remainder floor_divide",
    8: "exp expm1 log log1p tanh sin cos logaddexp logaddexp2 logit xlogy entr atan2 erfinv ndtri lgamma digamma polygamma less_share "
    "i0 i0e i1 i1e bessel_in scaled_i erfcx erfc_integral hazard",
}
LARGE.update({name: Large(name, cost=cost) for cost, names in COSTS.items() for name in names.split()})
LARGE.update({name: Large(name, boolean=True) for name in "lt le gt ge eq ne isnan isfinite".split()})
# Of these NumPy makes three calls and more: the compiled loop is quicker at any size.
for _n in (
    "deg2rad rad2deg copysign clamp clamp_min clamp_max sign sgn nan_to_num lerp addcmul addcdiv xlogy floor_divide "
    "erfinv lgamma i0 i0e i1 i1e polygamma"
).split():
    LARGE[_n].least = 0


def _recognised(tensor: type, tape: type) -> Any:
    """The code that recognises calls (:mod:`....core.recall`)."""
    from ...kernels.recall import machine

    return machine(tensor, tape)


MAKE.append(_recognised)
LARGE["clone"] = LargeCopy()
LARGE["logical_and"] = Large("logical_and_real", lambda k, a, b: a.ne(0.0) & b.ne(0.0), boolean=True)
LARGE["logical_or"] = Large("logical_or_real", lambda k, a, b: a.ne(0.0) | b.ne(0.0), boolean=True)
LARGE["logical_and"].least = LARGE["logical_or"].least = COSTLY_LEAST  # NumPy converts both
LARGE["pow"] = LargePower("pow", cost=8)


def _named(static: dict[str, Any]) -> list[str]:
    """Static data as part of the name of a kernel."""
    return [f"{v:.17g}".replace("-", "m").replace(".", "p").replace("+", "") for v in static.values()]


Kernel: Any = None
NotSupported: Any = None


def compiled(
    name: str,
    plain: Callable[..., Any],
    kernel: Callable[..., Any],
    cost: int = 8,
    least: int | None = None,
    usual: tuple[dict[str, Any], ...] = (),
) -> Callable[..., Any]:
    """``plain(*arrays, **static)``, or on large contiguous real arrays the kernel ``kernel(k, *values, **static)``.

    `least` is the size from which it runs; 0 where NumPy's formula would be slower, or less accurate, at any size. With static data that is so
    for those named in `usual`: each of the others is a kernel of its own, which arrays of a few numbers are not worth.
    """
    ready = {tuple(u.items()) for u in usual}
    made: dict[Any, Any] = {}
    if least is None:
        least = LEAST_COSTLY if cost >= 8 else LEAST

    def make(key: Any, static: dict[str, Any]) -> Any:
        global NotSupported, Kernel
        if Kernel is None:
            from ...kernels.calls import NotSupported
            from ...kernels.pointwise import Pointwise as Kernel
        f = made[key] = Kernel("_".join([name, *_named(static)]), lambda k, *values: kernel(k, *values, **static), cost)
        return f

    spread: dict[Any, Any] = {}

    def loops(key: Any, static: dict[str, Any]) -> Any:
        """The same formula for operands in any layout, and broadcast."""
        f = spread.get(key)
        if f is None:
            from ...kernels.elementwise import Elementwise

            f = spread[key] = Elementwise(
                "_".join([name, "spread", *_named(static)]), lambda k, *values: kernel(k, *values, **static), cost
            )
        return f

    def body(*xs: Any, **static: Any) -> Any:
        x = xs[0]
        key = tuple(static.items()) if static else ()
        if type(x) is not np.ndarray or (x.size < least and key not in ready) or x.dtype.num not in REAL_NUMS:
            return plain(*xs, **static)
        f = made.get(key)
        if f is None:
            f = make(key, static)
        try:
            return f(*xs)
        except NotSupported:
            y = loops(key, static)(*xs) if all(type(v) is np.ndarray and v.dtype is x.dtype for v in xs) else None
            if y is not None:
                return y
            # What has no such loop is worth a copy where all are of one shape; the rest is left to NumPy.
            try:
                if all(v.shape == x.shape for v in xs):
                    return f(*[np.ascontiguousarray(v).reshape(v.shape) for v in xs])
            except NotSupported:
                pass
        return plain(*xs, **static)

    def special(xs: list[Any], static: dict[str, Any]) -> Any:
        """The kernel's own call for arrays of one shape."""
        x, key = xs[0], tuple(static.items())
        if not all(type(v) is np.ndarray and v.shape == x.shape and v.dtype is x.dtype for v in xs):
            return None
        if (x.size < least and key not in ready) or x.dtype.num not in REAL_NUMS:
            return (lambda *xs: plain(*xs, **static)) if static else plain
        go = (made.get(key) or make(key, static)).call(x.dtype, x.shape, len(xs))
        if go is None:
            return None

        def quick(*xs: Any) -> Any:
            y = go(*xs)
            if y is None:  # copies that are contiguous
                y = go(*[v.copy() for v in xs])
            return y

        return quick

    body.__name__ = name
    body.special = special  # type: ignore[attr-defined]
    body.below = None if () in ready else (plain, least)  # type: ignore[attr-defined]  # what runs on fewer elements than that
    body.kernel = kernel  # type: ignore[attr-defined]  # for whoever renders the op into a loop of his own
    return body


def smooth(
    name: str,
    f: tuple[Callable[..., Any], Callable[..., Any]],
    slope: tuple[Callable[..., Any], Callable[..., Any]],
    curve: Callable[..., Any],
    *,
    static: bool = False,
    cost: int = 8,
    least: int | None = None,
    usual: tuple[dict[str, Any], ...] = (),
    pull: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
) -> Op:
    """The op of a function: `f` and its slope, each in NumPy and as a kernel, and its second derivative in ops.

    `pull` says how a cotangent is multiplied by the slope where that is not simply a product; `least` and `usual` are those of `compiled`.
    """
    times = pull or (
        lambda t, x, **kw: t * slope[0](x, **kw),
        lambda k, t, x, **kw: t * slope[1](k, x, **kw),
    )
    pull_p = pointwise(
        f"{name}_pull",
        compiled(f"{name}_pull", *times, cost, least, usual),
        lambda s, y, t, x, **kw: pull_p.bind(s, x, **kw),
        lambda s, y, t, x, **kw: s * (t * curve(x, **kw)),
        static=static,
    )
    body = compiled(name, *f, cost, least, usual)
    return pointwise(name, body, lambda t, y, x, **kw: pull_p.bind(t, x, **kw), static=static)


def piecewise(
    name: str,
    f: tuple[Callable[..., Any], Callable[..., Any]],
    pull: tuple[Callable[..., Any], Callable[..., Any]],
    *,
    static: bool = False,
    least: int | None = None,
    usual: tuple[dict[str, Any], ...] = (),
) -> Op:
    """The op of a function of straight pieces: `f` and ``pull(t, x)``, each in NumPy and as a kernel; `least` and `usual` are those of `compiled`."""
    pull_p = pointwise(
        f"{name}_pull",
        compiled(f"{name}_pull", *pull, 1, least, usual),
        lambda s, y, t, x, **kw: pull_p.bind(s, x, **kw),
        ZERO,
        static=static,
    )
    body = compiled(name, *f, 1, least, usual)
    return pointwise(name, body, lambda t, y, x, **kw: pull_p.bind(t, x, **kw), static=static)
