"""The cells: one program under each outer transform, against the judge."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import chainrule as cr

from .judge import Judge, NoOracle, Point, loss
from .program import Program

RTOL, ATOL = 1e-8, 1e-9
# Central differences of the gradient carry their own error.
RTOL_2, ATOL_2 = 1e-5, 1e-6
BATCH = 2


@dataclass(frozen=True)
class Verdict:
    """What came of one cell: right, wrong, raised, or no oracle; and what to say about it."""

    cell: str
    state: str
    note: str = ""


class Subject:
    """A program on chainrule, with the points and directions that all cells use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.code = compile(program.text(), "<program>", "exec")
        rng = np.random.default_rng(program.seed % 2**32)
        self.points = rng.uniform(-1.2, 1.2, (BATCH, *program.shape))
        self.ts = rng.uniform(-1, 1, (BATCH, *program.shape))
        self.space = dict(_space())
        exec(self.code, self.space)
        self.f: Callable[[Any], tuple[Any, ...]] = self.space["program"]

    def prepare(self) -> None:
        """Ask the judge; raises where it cannot answer."""
        judge = Judge(self.program)
        self.judged = [Point(judge, x) for x in self.points]
        first = self.judged[0]
        self.weights = [cr.tensor(w, dtype=cr.float64) for w in first.weights]
        scale = 1 + np.abs(first.gradient).max()
        values = [o for p in self.judged for o in p.outputs]
        if not all(np.isfinite(v).all() and np.abs(v).max(initial=0) < 1e4 for v in values) or not scale < 1e5:
            raise NoOracle("values too large")
        if not np.isfinite(self.judged[1].gradient).all():
            raise NoOracle("values too large")
        slope = first.slope(self.ts[0])
        if not abs(slope - float((first.gradient * self.ts[0]).sum())) <= 1e-6 * scale:
            raise NoOracle("the judge's gradient is not that of its central differences")
        self._curvature: np.ndarray | None = None
        self._tangents: list[float] | None = None

    def curvature(self, forward: bool = False) -> np.ndarray:
        """The Hessian times the first direction: what reverse over reverse, and forward over reverse, should give."""
        if forward and self.judged[0].switches:
            return _asked(lambda: self.judged[0].curvature(self.ts[0], forward=True))
        if self._curvature is None:
            self._curvature = _asked(lambda: self.judged[0].curvature(self.ts[0]))
        return self._curvature

    def tangents(self) -> list[float]:
        """The derivatives along the directions, example by example: what forward mode should give."""
        if self._tangents is None:
            self._tangents = _asked(lambda: [p.tangent(t) for p, t in zip(self.judged, self.ts)])
        return self._tangents

    def loss(self, x: Any) -> Any:
        return loss(self.f(x), self.weights)

    def x(self, k: int = 0) -> Any:
        return cr.tensor(self.points[k], dtype=cr.float64)

    def t(self, k: int = 0) -> Any:
        return cr.tensor(self.ts[k], dtype=cr.float64)

    def batch(self) -> Any:
        return cr.tensor(self.points, dtype=cr.float64)


def _space() -> dict[str, Any]:
    global _SPACE
    if _SPACE is None:
        from chainrule.autograd import forward_ad
        from chainrule.utils.checkpoint import checkpoint

        _SPACE = {"cr": cr, "autograd": cr.autograd, "func": cr.func, "nn": cr.nn, "F": cr.nn.functional,
                  "forward_ad": forward_ad, "checkpoint": checkpoint, "np": np}  # fmt: skip
    return _SPACE


_SPACE: dict[str, Any] | None = None


def _asked(question: Callable[[], Any]) -> Any:
    """The judge's answer; what PyTorch itself cannot do leaves the cell without an oracle."""
    try:
        return question()
    except NoOracle:
        raise
    except Exception as e:
        raise NoOracle(f"judge: {type(e).__name__}: {e}") from e


class Wrong(Exception):
    """A result that is not the judge's."""


def same(got: Any, want: Any, rtol: float = RTOL, atol: float = ATOL, what: str = "") -> None:
    got = got.detach().numpy() if hasattr(got, "detach") else np.asarray(got)
    want = np.asarray(want)
    if not np.isfinite(want).all():
        raise NoOracle("the judge's answer is not finite")
    if got.shape != want.shape:
        raise Wrong(f"{what}shape {got.shape}, expected {want.shape}")
    if not np.allclose(got, want, rtol=rtol, atol=atol * (1 + np.abs(want).max(initial=0))):
        raise Wrong(f"{what}got {np.round(got, 6).tolist()}, expected {np.round(want, 6).tolist()}")


# -- cells ------------------------------------------------------------------------------------------------------------


def value(s: Subject) -> None:
    for got, want in zip(s.f(s.x()), s.judged[0].outputs, strict=True):
        same(got, want)


def grad(s: Subject) -> None:
    same(cr.func.grad(s.loss)(s.x()), s.judged[0].gradient)


def backward(s: Subject) -> None:
    x = s.x().requires_grad_()
    y = s.loss(x)
    if y.requires_grad:
        y.backward()
    same(np.zeros(x.shape) if x.grad is None else x.grad, s.judged[0].gradient)


def double_backward(s: Subject) -> None:
    """The Hessian times t, by backward through a gradient with create_graph."""
    x = s.x().requires_grad_()
    y = s.loss(x)
    h = None
    if y.requires_grad:
        (g,) = cr.autograd.grad(y, x, create_graph=True, allow_unused=True)
        if g is not None and g.requires_grad:
            (h,) = cr.autograd.grad((g * s.t()).sum(), x, allow_unused=True)
    same(np.zeros(x.shape) if h is None else h, s.curvature(), RTOL_2, ATOL_2)


def jvp(s: Subject) -> None:
    _, got = cr.func.jvp(s.loss, (s.x(),), (s.t(),))
    same(got, s.tangents()[0])


def linearize(s: Subject) -> None:
    _, push = cr.func.linearize(s.loss, s.x())
    same(push(s.t()), s.tangents()[0])


def reverse_reverse(s: Subject) -> None:
    got = cr.func.jacrev(cr.func.grad(s.loss))(s.x())
    n = s.points[0].size
    same(got.reshape(n, n) @ s.t().reshape(n), s.curvature().reshape(n), RTOL_2, ATOL_2)


def forward_reverse(s: Subject) -> None:
    got = cr.func.hessian(s.loss)(s.x())
    n = s.points[0].size
    same(got.reshape(n, n) @ s.t().reshape(n), s.curvature(forward=True).reshape(n), RTOL_2, ATOL_2)


def vmap(s: Subject) -> None:
    got = cr.func.vmap(s.f)(s.batch())
    for k, o in enumerate(got):
        same(o, np.stack([p.outputs[k] for p in s.judged]))


def vmap_grad(s: Subject) -> None:
    same(cr.func.vmap(cr.func.grad(s.loss))(s.batch()), np.stack([p.gradient for p in s.judged]))


def grad_vmap(s: Subject) -> None:
    got = cr.func.grad(lambda b: cr.func.vmap(s.loss)(b).sum())(s.batch())
    same(got, np.stack([p.gradient for p in s.judged]))


def jvp_vmap(s: Subject) -> None:
    _, got = cr.func.jvp(cr.func.vmap(s.loss), (s.batch(),), (cr.tensor(s.ts, dtype=cr.float64),))
    same(got, s.tangents())


def vjp_vmap(s: Subject) -> None:
    _, pull = cr.func.vjp(cr.func.vmap(s.loss), s.batch())
    (got,) = pull(cr.tensor([0.7, -1.3], dtype=cr.float64))
    same(got, np.stack([c * p.gradient for c, p in zip((0.7, -1.3), s.judged)]))


def vmap_jvp(s: Subject) -> None:
    got = cr.func.vmap(lambda x, t: cr.func.jvp(s.loss, (x,), (t,))[1])(s.batch(), cr.tensor(s.ts, dtype=cr.float64))
    same(got, s.tangents())


def checkpointed(s: Subject) -> None:
    checkpoint = _space()["checkpoint"]
    same(cr.func.grad(lambda x: loss(checkpoint(s.f, x, use_reentrant=False), s.weights))(s.x()), s.judged[0].gradient)


def threads(s: Subject) -> None:
    """Two threads at once get what one gets."""
    results: list[Any] = [None, None]

    def work(k: int) -> None:
        try:
            results[k] = cr.func.grad(s.loss)(s.x(k))
        except Exception as e:
            results[k] = e

    workers = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    for got, p in zip(results, s.judged):
        if isinstance(got, Exception):
            raise got
        same(got, p.gradient)


CELLS: dict[str, Callable[[Subject], None]] = {
    "value": value, "grad": grad, "backward": backward, "double backward": double_backward, "jvp": jvp, "linearize": linearize,
    "reverse reverse": reverse_reverse, "forward reverse": forward_reverse, "vmap": vmap, "vmap grad": vmap_grad, "grad vmap": grad_vmap,
    "jvp vmap": jvp_vmap, "vjp vmap": vjp_vmap, "vmap jvp": vmap_jvp, "checkpoint": checkpointed, "threads": threads,
}  # fmt: skip


def check(program: Program, cells: list[str] | None = None) -> list[Verdict]:
    """The verdict on each cell."""
    names = list(CELLS) if cells is None else cells
    s = Subject(program)
    try:
        _asked(s.prepare)
    except NoOracle as e:
        return [Verdict(c, "no oracle", str(e)) for c in names]
    return [_one(s, c) for c in names]


def _one(s: Subject, cell: str) -> Verdict:
    try:
        CELLS[cell](s)
    except NoOracle as e:
        return Verdict(cell, "no oracle", str(e))
    except Wrong as e:
        return Verdict(cell, "wrong", str(e))
    except Exception as e:
        return Verdict(cell, "raised", f"{type(e).__name__}: {e}")
    return Verdict(cell, "right")
