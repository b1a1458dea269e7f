"""The four columns of second order: derivatives of a first derivative, judged by its central differences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .calculus import Arrays, Differences, differences, inner, mismatch

if TYPE_CHECKING:
    from .columns import Judge


def second_columns(judge: Judge) -> dict[str, Callable[[], None]]:
    """The checks of the four columns for one sample."""
    order = SecondOrder(judge)
    return {
        "vjp∘vjp": functools.partial(order.check, "vjp", "vjp"),
        "jvp∘vjp": functools.partial(order.check, "jvp", "vjp"),
        "vjp∘jvp": functools.partial(order.check, "vjp", "jvp"),
        "jvp∘jvp": functools.partial(order.check, "jvp", "jvp"),
    }


class SecondOrder:
    """The maps (x, g) -> vjp(x)(g) and (x, t) -> jvp(x, t) of one sample, and their derivatives."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.lib = judge, judge.lib

    def check(self, outer: str, first: str) -> None:
        """outer∘first equals central differences of `first`; where there are none, nestings must agree."""
        from .columns import NotApplicable, Wrong

        self.judge.require_derivative()
        d = self.reverse if first == "vjp" else self.forward
        text = (self._forward_check if outer == "jvp" else self._reverse_check)(first, d)
        if text:
            raise Wrong(text)
        if not d.all_usable and not self._nestings_agree(outer, first) and d.none_usable:
            raise NotApplicable("no difference can be trusted here, and no other nesting is finite")

    # -- the first derivative as a map of arrays -----------------------------------------------------------------------

    def _vectors(self, first: str, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Tensors of the second argument: cotangents for the vjp, tangents for the jvp."""
        return self.judge.cotangents(arrays) if first == "vjp" else self.judge.tangents(arrays)

    def _results(self, first: str, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Tensors like the map's results: tangents of inputs for the vjp, of outputs for the jvp."""
        return self._vectors("jvp" if first == "vjp" else "vjp", arrays)

    def _map(self, first: str) -> Callable[..., Any]:
        return self.judge.pullback if first == "vjp" else self.judge.pushforward

    def _at(self, first: str) -> Arrays:
        return self.judge.g if first == "vjp" else self.judge.t

    def _direction(self, first: str) -> Arrays:
        return [*self.judge.dx, *(self.judge.dg if first == "vjp" else self.judge.dt)]

    def _differences(self, first: str, along: Arrays) -> Differences:
        judge, n = self.judge, len(self.judge.x)

        def f(arrays: Arrays) -> Arrays:
            return judge.call(self._map(first), arrays[:n], self._vectors(first, arrays[n:]))

        return differences(f, [*judge.x, *self._at(first)], along, hopeless=judge.low)

    @functools.cached_property
    def reverse(self) -> Differences:
        return self._differences("vjp", self._direction("vjp"))

    @functools.cached_property
    def forward(self) -> Differences:
        return self._differences("jvp", self._direction("jvp"))

    # -- the two ways to differentiate it ------------------------------------------------------------------------------

    def _point(self, first: str) -> list[Any]:
        return [*self.judge.primals, *self._vectors(first, self._at(first))]

    def _forward_check(self, first: str, d: Differences) -> str | None:
        n, along = len(self.judge.x), self._direction(first)
        step = [*self.judge.tangents(along[:n]), *self._vectors(first, along[n:])]
        got = self.judge.arrays(self.lib.jvp(self._map(first), self._point(first), step)[1])
        return d.mismatch(got) and d.refined().mismatch(got)

    def _reverse_check(self, first: str, d: Differences) -> str | None:
        """Element by element: second derivatives are symmetric, so pulling back along t, or g, is D(vjp(g))[t] in x.

        In the other argument it is the first derivative itself.
        """
        _, pull = self.lib.vjp(self._map(first), self._point(first))
        n = len(self.judge.x)
        got = self.judge.arrays(pull(self._results(first, self.judge.t if first == "vjp" else self.judge.g)))
        text = _refined(self.hessian, got[:n])
        if first == "vjp":
            text = text or _refined(self.judge.value_differences, got[n:])
        else:
            gradient = zip(got[n:], self.judge.gradient, strict=True)
            text = text or next(
                (m for a, b in gradient if (m := mismatch(a, b, b.dtype.name, relative_to_all=True))), None
            )
        if text and (self.judge.pytorch_contradicts_itself or not self._first_order_right):
            # The vjp and the jvp are not of one function here, by convention or by mistake: each is held to its own differences.
            text = self._paired_check(first, d, pull)
        return text and f"vjp∘{first}: {text}"

    @functools.cached_property
    def _first_order_right(self) -> bool:
        from .columns import RIGHT, judged

        return all(judged(check).status == RIGHT for check in (self.judge.vjp, self.judge.jvp))

    @functools.cached_property
    def hessian(self) -> Differences:
        """Differences of x -> vjp(x)(g) along t."""
        still = [np.zeros_like(g) for g in self.judge.g]
        return self._differences("vjp", [*self.judge.t, *still])

    def _paired_check(self, first: str, d: Differences, pull: Callable[..., Any]) -> str | None:
        from .columns import scalar_mismatch

        def paired(d: Differences, along: Arrays) -> str | None:
            w = d.masked(self.judge.t if first == "vjp" else self.judge.g)
            got = self.judge.arrays(pull(self._results(first, w)))
            return None if d.none_usable else scalar_mismatch(inner(got, along), *d.pairing(w), f"vjp∘{first}")

        along = self._direction(first)
        return paired(d, along) and paired(d.refined(), along)

    # -- points without differences ------------------------------------------------------------------------------------

    @functools.cached_property
    def nestings(self) -> dict[tuple[str, str], float | None]:
        """D²f[g; t, dx] by all four nestings (None where one raises): one number, whichever way it is computed."""
        j, lib, n = self.judge, self.lib, len(self.judge.x)

        def reverse(first: str) -> float:
            pulled = lib.vjp(self._map(first), self._point(first))[1](
                self._results(first, j.t if first == "vjp" else j.g)
            )
            return inner(j.arrays(pulled)[:n], j.dx)

        def forward(first: str) -> float:
            still = self._vectors(first, [np.zeros_like(a) for a in self._at(first)])
            pushed = lib.jvp(self._map(first), self._point(first), [*j.tangents(j.dx), *still])[1]
            return inner(j.t if first == "vjp" else j.g, j.arrays(pushed))

        def attempt(compute: Callable[[str], float], first: str) -> float | None:
            try:
                return compute(first)
            except Exception:
                return None

        ways = {"vjp": reverse, "jvp": forward}
        return {(outer, first): attempt(way, first) for outer, way in ways.items() for first in ("vjp", "jvp")}

    def _nestings_agree(self, outer: str, first: str) -> bool:
        """Whether the others testify at all; if one that is finite disagrees, this one is wrong."""
        from .columns import Wrong

        mine = self.nestings[outer, first]
        others = {k: v for k, v in self.nestings.items() if k != (outer, first) and v is not None and np.isfinite(v)}
        if mine is None or not others:
            return False
        scale = max([abs(v) for v in (mine, *others.values()) if np.isfinite(v)])
        tolerance = max(1e-6 * scale, self.judge.dot_tolerance(scale))
        if not all(abs(mine - v) <= tolerance for v in others.values()):
            seen = ", ".join(f"{o}∘{f} {v:.6g}" for (o, f), v in others.items())
            raise Wrong(f"at a point without differences {outer}∘{first} gives {mine:.6g}, but {seen}")
        return True


def _refined(d: Differences, got: Arrays) -> str | None:
    return d.mismatch(got) and d.refined().mismatch(got)
