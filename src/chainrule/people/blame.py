"""Which op is to blame for a wrong derivative: every op that the function ran, judged alone at the values it had there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import innermost
from ..core.op import is_float
from ..core.tensor import Tensor
from ..core.watch import WATCHERS, unwatch, watch
from .differences import ROUGH, directions, forward, judged, numbers, reverse
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
    cuts = list(
        dict.fromkeys(
            str(e.place.site) for e in tap.events if e.op is not None and e.op.name in CUTS and e.parent is None
        )
    )
    if cuts:
        return [f"no op's own rule is wrong, but the derivative is cut off here: {c}" for c in cuts]
    return [
        "no op's own rule is wrong: look for .item(), .numpy(), .data, no_grad, hooks, rounding or a branch on values, which derivatives do not see"
    ]


def _wide(a: Any) -> Any:
    """A floating tensor in double precision: a rule is the same in both, and differences of single numbers say little."""
    if not isinstance(a, Tensor) or not is_float(a) or a.dtype not in _WIDE:
        return a
    return a.to(_WIDE[a.dtype])


def _judge(op: Any, args: list[Any], kw: dict[str, Any], rng: np.random.Generator, tol: float) -> str:
    """What is wrong with an op at these arguments, in a word or two; "" where nothing is."""
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
    try:
        for name, law, g, allowed in _laws(f, xs, tol, rng):
            v = judged(law, g, xs, allowed, rng)
            if v.error > allowed and v.doubt <= ROUGH:
                return "rule" if name == "forward rule" and op.jvp_rule is None else name
    except Exception:
        return ""
    return "batching rule" if _batches_wrongly(f, xs, rng) else ""


def _laws(f: Any, xs: list[Any], tol: float, rng: np.random.Generator) -> Iterator[tuple[str, Any, Any, float]]:
    """What is asked of an op: a name, the law, the function it is about, and what is allowed."""
    from ..func import vjp

    yield "forward rule", forward, f, tol
    yield "reverse rule", reverse, f, tol
    gs = tuple(directions(f(*xs), rng))
    yield "derivative of the rule", forward, lambda *at: tuple(vjp(f, *at)[1](gs)), 10 * tol


def _batches_wrongly(f: Any, xs: list[Any], rng: np.random.Generator) -> bool:
    from ..func import vmap

    other = [x + 0.01 * t for x, t in zip(xs, directions(xs, rng), strict=True)]
    try:
        got = vmap(f)(*[Tensor(np.stack([a.numpy(), b.numpy()])) for a, b in zip(xs, other, strict=True)])
    except Exception:
        return False
    want = [np.concatenate([numbers(a), numbers(b)]) for a, b in zip(f(*xs), f(*other), strict=True)]
    return not all(np.allclose(numbers(y), w, 1e-9, 1e-12, equal_nan=True) for y, w in zip(got, want, strict=True))
