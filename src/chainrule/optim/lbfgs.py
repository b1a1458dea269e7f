"""L-BFGS: Newton steps with a Hessian from the last differences of gradients, and a line search by the strong Wolfe conditions.

Nocedal & Wright, Numerical Optimization, algorithms 7.4, 3.5 and 3.6; the constants of the search are those of minFunc.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.imperative import enable_grad, no_grad
from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from .elementwise import has_pattern, on_pattern
from .optimizer import Optimizer, options


class Point(NamedTuple):
    """A point of a line: where, the value there, the gradient and its slope along the line."""

    t: Any
    f: float
    g: Tensor
    slope: Any


def cubic_minimum(a: Point, b: Point, low: Any = None, high: Any = None) -> Any:
    """Where the cubic through two points (values and slopes) is least, between bounds; their middle if it has no minimum."""
    if low is None:
        low, high = (a.t, b.t) if a.t <= b.t else (b.t, a.t)
    mean = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    under = mean * mean - a.slope * b.slope
    if not under >= 0:
        return (low + high) / 2
    root = math.sqrt(under)
    left, right = (a, b) if a.t <= b.t else (b, a)
    t = right.t - (right.t - left.t) * ((right.slope + root - mean) / (right.slope - left.slope + 2 * root))
    return min(max(t, low), high)


def strong_wolfe(
    at: Callable[[Any], Point],
    start: Point,
    t: Any,
    length: Any,
    tolerance: float,
    most: int,
    c1: float = 1e-4,
    c2: float = 0.9,
) -> tuple[Point, int]:
    """A point of the line with ``f <= f0 + c1 t slope0`` and ``|slope| <= c2 |slope0|``, and the number of evaluations.

    First steps that grow until an interval must contain one, then the interval is made smaller; at most `most` of both.
    """
    high = lambda p: p.f > start.f + c1 * p.t * start.slope
    flat = lambda p: abs(p.slope) <= -c2 * start.slope
    new, before, evaluations, k = at(t), start, 1, 0
    ends: list[Point] | None = None
    while k < most:
        if high(new) or (k > 1 and new.f >= before.f):
            ends = [before, new]
            break
        if flat(new):
            return new, evaluations
        if new.slope >= 0:
            ends = [before, new]
            break
        t = cubic_minimum(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, at(t)
        evaluations += 1
        k += 1
    if ends is None:
        ends = [start, new]
    low = 0 if ends[0].f <= ends[1].f else 1
    stuck = False
    while k < most:
        left, right = min(ends[0].t, ends[1].t), max(ends[0].t, ends[1].t)
        if abs(ends[1].t - ends[0].t) * length < tolerance:
            break
        t = cubic_minimum(ends[0], ends[1])
        # Twice near an end, or at it: a tenth of the interval away from it instead.
        margin = 0.1 * (right - left)
        near = min(right - t, t - left) < margin
        if near and (stuck or t >= right or t <= left):
            t = right - margin if abs(t - right) < abs(t - left) else left + margin
            stuck = False
        else:
            stuck = near
        new = at(t)
        evaluations += 1
        k += 1
        if high(new) or new.f >= ends[low].f:
            ends[1 - low] = new
            low = 0 if ends[0].f <= ends[1].f else 1
            continue
        done = flat(new)
        if not done and new.slope * (ends[1 - low].t - ends[low].t) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = new
        if done:
            break
    return ends[low], evaluations


class LBFGS(Optimizer):
    """``p -= t H g``, H the inverse Hessian that the last `history_size` differences of gradients agree with."""

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gradient(self) -> Tensor:
        """The gradients as one vector."""
        parts = []
        for p in self._params:
            g: Any = PUBLIC["zeros_like"](p) if p.grad is None else p.grad
            if has_pattern(p):
                g = on_pattern(p)[0](g)
            elif has_pattern(g):
                g = g.to_dense()
            parts.append((PUBLIC["view_as_real"](g) if g.is_complex() else g).reshape(-1).detach())
        return PUBLIC["cat"](parts, 0)

    def _move(self, t: Any, d: Tensor) -> None:
        """``p += t d``."""
        at = 0
        for p in self._params:
            x = on_pattern(p)[0](p) if has_pattern(p) else p  # the numbers are a view
            x = PUBLIC["view_as_real"](x) if x.is_complex() else x
            part = d[at : at + x.numel()].reshape(x.shape)
            x.add_(part * t)
            at += x.numel()

    def _direction(self, g: Tensor, memory: dict[str, Any]) -> Tensor:
        """``-H g`` by the two loops over the differences."""
        steps, changes, ro = memory["old_stps"], memory["old_dirs"], memory["ro"]
        d, weights = -g, []
        for s, y, r in zip(reversed(steps), reversed(changes), reversed(ro), strict=True):
            weights.append(s.dot(d) * r)
            d = d - y * weights[-1]
        d = d * memory["H_diag"]
        for s, y, r, w in zip(steps, changes, ro, reversed(weights), strict=True):
            d = d + s * (w - y.dot(d) * r)
        return d

    def _learn(self, state: dict[str, Any], g: Tensor, size: int) -> None:
        """Take the last step and what it did to the gradient into the memory."""
        y, s = g - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s)
        if ys > 1e-10:
            for name, v in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
                if len(state[name]) == size:
                    state[name].pop(0)
                state[name].append(v)
            state["H_diag"] = ys / y.dot(y)

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Up to `max_iter` iterations; `closure` computes the loss and its gradients anew."""
        with no_grad():
            return self._iterate(enable_grad()(closure))

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, most, evaluations = float(group["lr"]), group["max_iter"], 1
        small, search = group["tolerance_change"], group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported as line_search_fn, got {search!r}")
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss = float(first)
        state["func_evals"] += 1
        g = self._gradient()
        done = bool(g.abs().max() <= group["tolerance_grad"])
        if done:
            return first
        for k in range(1, most + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                state |= {"old_dirs": [], "old_stps": [], "ro": [], "H_diag": 1}
                d, t = -g, min(1.0, 1.0 / float(g.abs().sum())) * lr
            else:
                self._learn(state, g, group["history_size"])
                d, t = self._direction(g, state), lr
            before = loss
            state |= {"d": d, "t": t, "prev_flat_grad": g.clone(), "prev_loss": loss}
            slope = float(g.dot(d))
            if slope > -small:
                break
            used = 0
            if search is not None:
                at = self._on_line(closure, d)
                length = float(d.abs().max())
                best, used = strong_wolfe(
                    at, Point(0, loss, g, slope), t, length, small, group["max_eval"] - evaluations
                )
                loss, g, t = best.f, best.g, best.t
                state["t"] = t
                self._move(t, d)
            else:
                self._move(t, d)
                if k != most:  # after the last one nobody looks
                    loss, g, used = float(closure()), self._gradient(), 1
            done = bool(g.abs().max() <= group["tolerance_grad"])
            evaluations += used
            state["func_evals"] += used
            if (
                done
                or evaluations >= group["max_eval"]
                or float((d * t).abs().max()) <= small
                or abs(loss - before) < small
            ):
                break
        return first

    def _on_line(self, closure: Callable[[], Any], d: Tensor) -> Callable[[Any], Point]:
        """Points of the line from the parameters along `d`; the parameters stay where they are."""
        kept = [p.detach().clone() for p in self._params]

        def at(t: Any) -> Point:
            self._move(t, d)
            loss = float(closure())
            g = self._gradient()
            for p, v in zip(self._params, kept, strict=True):
                p.copy_(v)
            return Point(t, loss, g, float(g.dot(d)))

        return at
