"""The four columns of second order: derivatives of a first derivative, judged by its central differences."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .calculus import Arrays, Differences, differences, inner

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
        from .columns import Wrong

        self.judge.require_derivative()
        d = self.reverse if first == "vjp" else self.forward
        text = (self._forward_check if outer == "jvp" else self._reverse_check)(first, d)
        if text:
            raise Wrong(text)
        if not d.all_usable:
            self._nestings_agree(outer, first)

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
        from .columns import scalar_mismatch

        _, pull = self.lib.vjp(self._map(first), self._point(first))

        def paired(d: Differences, along: Arrays) -> str | None:
            w = d.masked(self.judge.t if first == "vjp" else self.judge.g)
            got = self.judge.arrays(pull(self._results(first, w)))
            if not d.finite and not all(np.isfinite(a).all() for a in got):
                # Outside of the domain, 0 times NaN is NaN: go only where the result is a number.
                along = [np.where(np.isfinite(a), t, 0).astype(t.dtype) for a, t in zip(got, along, strict=True)]
                d = self._differences(first, along)
                w = d.masked(w)
                got = [np.where(np.isfinite(a), a, 0) for a in self.judge.arrays(pull(self._results(first, w)))]
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

    def _nestings_agree(self, outer: str, first: str) -> None:
        from .columns import Wrong, both_not_finite

        mine = self.nestings[outer, first]
        others = {k: v for k, v in self.nestings.items() if k != (outer, first) and v is not None}
        if mine is None or not others:
            return
        scale = max([abs(v) for v in (mine, *others.values()) if np.isfinite(v)], default=0.0)
        tolerance = max(1e-6 * scale, self.judge.dot_tolerance(scale))
        if not any(abs(mine - v) <= tolerance or both_not_finite(mine, v) for v in others.values()):
            seen = ", ".join(f"{o}∘{f} {v:.6g}" for (o, f), v in others.items())
            raise Wrong(f"at a point without differences {outer}∘{first} gives {mine:.6g}, but {seen}")
