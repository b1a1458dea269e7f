"""Which op is to blame for a wrong derivative: every op that the function ran, judged alone at the values it had there."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import innermost
from ..core.op import is_float
from ..core.tensor import Tensor
from ..core.watch import WATCHERS, unwatch, watch
from .frames import Site, place

_WIDE = {dt.float32: dt.float64, dt.complex64: dt.complex128}
CUTS = ("detach", "alias")


def blame(g: Any, rng: np.random.Generator, tol: float) -> list[str]:
    """Lines that name the ops whose own rules are wrong; or what cuts derivatives off, where no rule is."""
    from ..func import vjp
    from .tap import Tap, listening

    seen: list[tuple[Any, list[Any], dict[str, Any], Site]] = []

    def note(node: Any, y: Any, low: Any) -> None:
        seen.append((node.op, list(low), dict(node.kw), place(3).site))

    before = WATCHERS.get()
    watch(note=note)
    try:
        vjp(g, *g.xs)
    except Exception:
        return []
    finally:
        unwatch(before)
    found: list[str] = []
    done: set[tuple[str, Site]] = set()
    for op, args, kw, site in seen:
        if (op.name, site) in done:
            continue
        done.add((op.name, site))
        wrong = _judge(op, args, kw, rng, tol)
        if wrong:
            found.append(f"the {wrong} of {op.name} is wrong by itself: {site}")
    if found:
        return found
    with listening(Tap()) as tap:
        g(*[x.clone() for x in g.xs])
    cuts = list(dict.fromkeys(str(e.place.site) for e in tap.events if e.op is not None and e.op.name in CUTS))
    if cuts:
        return [f"no op's own rule is wrong, but the derivative is cut off here: {c}" for c in cuts]
    return [
        "no op's own rule is wrong: look for .item(), .numpy(), .data, no_grad, rounding or a branch on values, which derivatives do not see"
    ]


def _wide(a: Any) -> Any:
    """A floating tensor in double precision: a rule is the same in both, and differences of single numbers say little."""
    if not isinstance(a, Tensor) or not is_float(a) or a.dtype not in _WIDE:
        return a
    return a.to(_WIDE[a.dtype])


def _judge(op: Any, args: list[Any], kw: dict[str, Any], rng: np.random.Generator, tol: float) -> str:
    """What is wrong with an op at these arguments: "forward rule", "reverse rule", or "" where nothing is."""
    from ..func import jvp, vjp

    if any(isinstance(a, Tensor) and (a._interp is not None or not isinstance(innermost(a), np.ndarray)) for a in args):
        return ""
    args = [_wide(a) for a in args]
    free = [k for k, a in enumerate(args) if is_float(a)]
    if not free or op.form not in ("custom", "function", "structured", "pointwise", "core", "fused"):
        return ""

    def f(*xs: Any) -> tuple[Any, ...]:
        now = list(args)
        for k, x in zip(free, xs, strict=True):
            now[k] = x
        y = op.bind(*now, **kw)
        return tuple(v for v in (y if isinstance(y, tuple) else (y,)) if is_float(v))

    xs = [args[k] for k in free]
    ts = [Tensor(np.asarray(rng.standard_normal(tuple(x.shape)), x.dtype.np)) for x in xs]
    try:
        h = 1e-5

        def diff(h: float) -> list[np.ndarray]:
            up = f(*[x + h * t for x, t in zip(xs, ts, strict=True)])
            down = f(*[x - h * t for x, t in zip(xs, ts, strict=True)])
            return [(a.numpy() - b.numpy()) / (2 * h) for a, b in zip(up, down, strict=True)]

        want, rough = diff(h), diff(2 * h)
        off = [float(np.max(np.abs(a - b), initial=0.0)) for a, b in zip(want, rough, strict=True)]
    except Exception:
        return ""
    close = lambda a, b, o: bool(
        np.all(np.abs(a - b) <= 4 * o + 10 * tol * (np.abs(b) + 1e-2 * np.max(np.abs(b), initial=0.0) + 1e-5))
    )
    try:
        got = [t.numpy() for t in jvp(f, tuple(xs), tuple(ts))[1]]
        if not all(close(a, b, o) for a, b, o in zip(got, want, off, strict=True)):
            return "forward rule" if op.jvp_rule is not None else "rule"
    except Exception:
        return ""
    try:
        ys, pull = vjp(f, *xs)
        gs = tuple(Tensor(np.asarray(rng.standard_normal(tuple(y.shape)), y.dtype.np)) for y in ys)
        back = pull(gs)
    except Exception:
        return ""
    left = sum(float(np.sum((np.conj(c.numpy()) * w).real)) for c, w in zip(gs, want, strict=True))
    right = sum(float(np.sum((np.conj(b.numpy()) * t.numpy()).real)) for b, t in zip(back, ts, strict=True))
    size = sum(float(np.sum(np.abs(c.numpy()) * np.abs(w))) for c, w in zip(gs, want, strict=True)) + abs(right)
    return (
        "reverse rule"
        if abs(left - right) > 10 * tol * (size + 1e-5) + 12 * sum(off) * max(w.size for w in want)
        else ""
    )
