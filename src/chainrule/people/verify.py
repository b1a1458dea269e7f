"""verify: are the derivatives of this function right? Every mode, every mix of second order, batches, precision, and kinks nearby."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.device import strided
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from ..interop.numpy.value import Array
from ..nn.module import Module
from .blame import blame
from .differences import MOVED, ROUGH, Verdict, directions, forward, judged, numbers, reverse
from .held import Held
from .page import Page, esc, page, table


class Row:
    """One check: its name, "right", "wrong", "skipped" or "note", the error beside what is allowed, and what there is to say."""

    def __init__(
        self, name: str, state: str, error: float | None = None, allowed: float | None = None, text: str = ""
    ) -> None:
        self.name, self.state, self.error, self.allowed, self.text = name, state, error, allowed, text


class Report:
    """What ``verify`` found. True if no check failed; prints as a table; ``html()`` is a page."""

    def __init__(self, name: str, rows: list[Row], culprits: list[str]) -> None:
        self.name, self.rows, self.culprits = name, rows, culprits

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not self.failures

    @property
    def failures(self) -> list[Row]:
        """The checks that failed."""
        return [r for r in self.rows if r.state == "wrong"]

    def __bool__(self) -> bool:
        return self.ok

    def raise_if_wrong(self) -> Report:
        """Raise an AssertionError with the table if a check failed: one line in a test of yours."""
        if not self.ok:
            raise AssertionError(str(self))
        return self

    def __str__(self) -> str:
        mark = {"right": "ok", "wrong": "WRONG", "skipped": "-", "note": "note"}
        width = max(len(r.name) for r in self.rows)
        lines = [
            f"{self.name}: {'every derivative is right' if self.ok else f'{len(self.failures)} of {len(self.rows)} checks failed'}"
        ]
        for r in self.rows:
            number = "" if r.error is None else f"{r.error:.1e}"
            lines.append(f"  {r.name:<{width}}  {mark[r.state]:<6} {number:>8}  {r.text}".rstrip())
        lines += [f"  {c}" for c in self.culprits]
        return "\n".join(lines)

    __repr__ = __str__

    def _body(self) -> str:
        cls = {"right": "good", "wrong": "bad", "skipped": "dim", "note": "warn"}
        rows = [
            [esc(r.name), f'<span class="{cls[r.state]}">{r.state}</span>', "" if r.error is None else f"{r.error:.1e}",
             "" if r.allowed is None else f"{r.allowed:.0e}", esc(r.text)]
            for r in self.rows
        ]  # fmt: skip
        verdict = (
            '<p class="good"><b>Every derivative is right.</b></p>'
            if self.ok
            else f'<p class="bad"><b>{len(self.failures)} checks failed.</b></p>'
        )
        culprits = "".join(f"<p><code>{esc(c)}</code></p>" for c in self.culprits)
        found = f"<h2>Where</h2>{culprits}" if culprits else ""
        return verdict + table(["check", "", "error", "allowed", ""], rows, (2, 3)) + found

    def html(self, path: str | Path | None = None) -> Page:
        """The report as a page, written to `path` if there is one."""
        p = page(f"verify {self.name}", self._body())
        if path is not None:
            p.save(path)
        return p

    def _repr_html_(self) -> str:
        return f"<b>verify {esc(self.name)}</b>{self._body()}"


def verify(f: Callable[..., Any], *args: Any, seed: int = 0, tolerance: float = 1e-5) -> Report:
    """Whether the derivatives of ``f`` at ``args`` are right, each way of taking them compared with central differences in float64.

    Forward and reverse mode, the four mixes of second order, vmap of values and of gradients against a loop, float32 against float64; modules and
    tensors that the function holds are float64 meanwhile. At a kink, a tie or the edge of where the function is defined no difference
    quotient can judge: what cannot be judged there is judged a little beside, and says so. A function that is not made for batches is noted. Floating
    arguments (tensors or NumPy arrays, in tuples, lists and dicts) are differentiated, others are held fixed. A failure says which op's own rule is
    wrong, and at which line.

    >>> import chainrule as cr
    >>> bool(cr.verify(lambda x: (x.sin() * x).sum(), cr.tensor([0.3, 1.2])))
    True
    >>> bool(cr.verify(lambda x: (x.detach() * x).sum(), cr.tensor([0.3, 1.2])))
    False
    """
    name = getattr(f, "__qualname__", None) or type(f).__name__
    if isinstance(f, Module):
        f, args = _with_parameters(f, args)
    g = _Function(f, args)
    if not g.xs:
        raise TypeError(
            "verify: no argument is a floating tensor or array, so there is nothing to differentiate by; write 1.0 instead of 1"
        )
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    with g.held.in_double():
        _Checks(g, rng, rows, tolerance).run()
        culprits = _culprits(g, rng, rows, tolerance)
    return Report(name.replace("<locals>.", ""), rows, culprits)


def _culprits(g: _Function, rng: np.random.Generator, rows: list[Row], tolerance: float) -> list[str]:
    """What is to blame for the checks that failed."""
    failed = [r for r in rows if r.state == "wrong"]
    if rows[0] in failed:
        return [
            "the function has another value when it is called again: write manual_seed(0) as its first line, or model.eval() for dropout; "
            "until then the other checks say little"
        ]
    return blame(g, rng, tolerance) if failed else []


class _Function:
    """`f` as a function of float64 tensors to a list of floating tensors."""

    def __init__(self, f: Callable[..., Any], args: Any) -> None:
        self.f = f
        leaves, self.tree = flatten(args)
        self.leaves = list(leaves)
        self.free = [i for i, a in enumerate(leaves) if _floating(a)]
        self.arrays = {i for i in self.free if isinstance(leaves[i], np.ndarray)}
        self.xs = [_double(leaves[i]) for i in self.free]
        self.names = [f"argument {i}" for i in self.free]
        self.held = Held(f)

    def __call__(self, *xs: Any) -> tuple[Any, ...]:
        """The floating results, of tensors at any level."""
        now = list(self.leaves)
        for i, x in zip(self.free, xs, strict=True):
            now[i] = Array(x) if i in self.arrays else x
        ys = flatten(self.f(*unflatten(now, self.tree)))[0]
        return tuple(_as_tensor(y) for y in ys if _floating(y))


def _as_tensor(y: Any) -> Any:
    return y if isinstance(y, Tensor) else y.tensor if isinstance(y, Array) else Tensor(np.asarray(y))


def _with_parameters(f: Any, args: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A module as a function of its parameters too; its buffers follow their type."""
    from ..func import functional_call

    def call(parameters: dict[str, Any], *xs: Any) -> Any:
        d = next((p.dtype for p in parameters.values()), dt.float32)
        buffers = {k: b.to(d) if b.dtype.category == dt.FLOAT else b.clone() for k, b in f.named_buffers()}
        return functional_call(f, (parameters, buffers), xs)

    call.__qualname__ = type(f).__name__
    return call, ({k: p.detach() for k, p in f.named_parameters()}, *args)


def _floating(a: Any) -> bool:
    if isinstance(a, Array):
        a = a.tensor
    if isinstance(a, Tensor):
        return a.dtype.category >= dt.FLOAT
    return isinstance(a, float | complex | np.floating | np.complexfloating) or (
        isinstance(a, np.ndarray) and a.dtype.kind in "fc"
    )


def _double(a: Any) -> Tensor:
    if isinstance(a, Tensor):
        a = a.detach()
        return a.to(dt.complex128 if a.dtype.category == dt.COMPLEX else dt.float64).clone()
    a = np.asarray(a)
    return Tensor(a.astype(np.complex128 if a.dtype.kind == "c" else np.float64))


def _raised(name: str, state: str, e: Exception) -> Row:
    return Row(name, state, text=f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}")


class _Checks:
    def __init__(self, g: _Function, rng: np.random.Generator, rows: list[Row], tol: float) -> None:
        self.g, self.rng, self.rows, self.tol = g, rng, rows, tol

    def direction(self, xs: Any) -> list[Tensor]:
        return directions(xs, self.rng)

    # -- one check ----------------------------------------------------------------------------------------------------
    def check(self, name: str, fn: Callable[[], tuple[float, float, str]], raised: str = "wrong") -> None:
        """Run a check: it returns the error, what is allowed, and a word on the worst element. `raised` is the state if it raises."""
        try:
            err, allowed, text = fn()
        except Exception as e:  # a derivative that raises is a failed check, and the message its explanation
            self.rows.append(_raised(name, raised, e))
            return
        ok = err <= allowed
        self.rows.append(Row(name, "right" if ok else "wrong", err, allowed, "" if ok else text))

    def compare(
        self,
        got: Any,
        want: Any,
        allowed: float,
        names: list[str] | None = None,
        judge: str = "expected",
        floor: float = 0.0,
    ) -> tuple[float, float, str]:
        """The largest relative error of `got`; what is `floor` times the largest number is as good as zero."""
        worst, text = 0.0, ""
        top = max((float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))) for b in want), default=0.0)
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            a, b = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
            if a.shape != b.shape:
                return float("inf"), allowed, f"{a.size} numbers where {b.size} are expected"
            if not a.size:
                continue
            both = np.isfinite(a) & np.isfinite(b)
            if not np.array_equal(np.isfinite(a), np.isfinite(b)):
                i = int(np.argmin(np.isfinite(a) == np.isfinite(b)))
                return (
                    float("inf"),
                    allowed,
                    f"not finite at element {i}: {a[i]:.4g}, {judge} {b[i]:.4g} (chainrule.find_nan says where)",
                )
            scale = np.abs(b) + 1e-2 * np.max(np.abs(b[both]), initial=0.0) + floor * top + 1e-5
            gap = np.where(both, np.abs(a - b) / scale, 0.0)
            i = int(np.argmax(gap))
            if gap[i] > worst:
                label = names[k] if names else f"result {k}" if len(got) > 1 else ""
                worst, text = float(gap[i]), f"{label} element {i}: {a[i]:.6g}, {judge} {b[i]:.6g}".strip()
        return worst, allowed, text

    def law(self, name: str, law: Callable[..., Verdict], f: Callable[..., Any], tolerance: float, *more: Any) -> None:
        """A check of derivatives by differences."""
        try:
            v = judged(law, f, self.g.xs, tolerance, self.rng, *more)
        except Exception as e:
            self.rows.append(_raised(name, "wrong", e))
            return
        said = f"judged {MOVED:g} beside, since differences say nothing at a kink, a tie or an edge" if v.moved else ""
        if v.doubt > ROUGH:
            self.rows.append(
                Row(name, "note", text="differences say nothing here, nor nearby: neither right nor wrong")
            )
        elif v.error > tolerance:
            self.rows.append(Row(name, "wrong", v.error, tolerance, f"{v.text}{f' ({said})' if said else ''}"))
        elif v.doubt > tolerance:
            self.rows.append(
                Row(
                    name,
                    "note",
                    v.doubt,
                    tolerance,
                    "right as far as differences can tell, which are no better than this here",
                )
            )
        else:
            self.rows.append(Row(name, "right", v.error, tolerance, said))

    # -- all checks ---------------------------------------------------------------------------------------------------
    def run(self) -> None:
        """All checks, in order."""
        g, xs = self.g, self.g.xs
        try:
            ys = g(*[x.clone() for x in xs])
        except RuntimeError as e:
            if "dtype" not in str(e) and "float" not in str(e):
                raise
            raise RuntimeError(
                f"verify runs the function in float64, where it raised: {e}\n"
                f"Let tensors of a fixed type that the function makes follow its arguments: w.to(x.dtype)"
            ) from e
        if not ys:
            raise TypeError(
                "verify: the function returns no floating tensor, so it has no derivative; look for .item(), int() or a comparison"
            )
        self.check(
            "the same value twice",
            lambda: self.compare(
                [numbers(y) for y in g(*[x.clone() for x in xs])],
                [numbers(y) for y in ys],
                0.0,
                judge="before it was",
            ),
        )
        if self.rows[-1].state == "wrong":
            self.rows[-1].text += "; random or stateful functions have no derivative to compare: fix the seed inside"
        self.kinks()
        self.law("forward mode", forward, g, self.tol)
        self.law("reverse mode", reverse, g, self.tol, g.names)
        self.second()
        self.batches()
        self.precision()

    def kinks(self) -> None:
        """Whether slopes from the left and from the right differ nearby: not in proportion to the step, as those of a smooth function do."""
        g, xs = self.g, self.g.xs
        for h in (1e-7, 1e-4, 1e-2):
            ts = self.direction(xs)
            up, half_up, mid, half_down, down = (
                [numbers(y) for y in g(*[x + s * h * t for x, t in zip(xs, ts, strict=True)])]
                for s in (1, 0.5, 0, -0.5, -1)
            )
            for a, b, m, c, d in zip(up, half_up, mid, half_down, down, strict=True):
                jump, half = np.abs(a - 2 * m + d) / h, 2 * np.abs(b - 2 * m + c) / h
                size = (np.abs(a - m) + np.abs(m - d)) / h
                noise = 1e-14 * (np.abs(m) + 1) / h
                if not np.array_equal(np.isfinite(a), np.isfinite(d)):
                    self.rows.append(Row("kinks nearby", "note", text=f"finite on one side only, within {h:g}"))
                    return
                if np.any((jump > 0.05 * size + 20 * noise) & (np.abs(jump - 2 * half) > 0.3 * jump)):
                    text = f"slopes from both sides differ within {h:g}"
                    self.rows.append(Row("kinks nearby", "note", text=text))
                    return
        self.rows.append(Row("kinks nearby", "right", text="none within 0.01"))

    def second(self) -> None:
        """Each mode of each mode."""
        from ..func import jvp, vjp

        g = self.g
        ts, gs = tuple(self.direction(g.xs)), tuple(self.direction(g(*g.xs)))
        once = {
            "forward": lambda *x: tuple(jvp(g, x, ts)[1]),
            "reverse": lambda *x: tuple(vjp(g, *x)[1](gs)),
        }
        for name, inner in once.items():
            self.law(f"forward over {name}", forward, inner, 10 * self.tol)
            self.law(f"reverse over {name}", reverse, inner, 10 * self.tol)

    def batches(self) -> None:
        from ..func import vjp, vmap

        g, xs = self.g, self.g.xs
        if any(x.layout is not strided for x in xs):
            self.rows.append(
                Row("vmap equals a loop", "skipped", text="over ragged and sparse arguments there is nothing to stack")
            )
            return
        examples = [xs, *([[x + 0.01 * t for x, t in zip(xs, self.direction(xs), strict=True)]] * 1)]
        stacked = [Tensor(np.stack([np.asarray(e[k].numpy()) for e in examples])) for k in range(len(xs))]
        gs = tuple(self.direction(g(*xs)))

        def slope(*x: Any) -> tuple[Any, ...]:
            return tuple(vjp(g, *x)[1](gs))

        for name, h in (("vmap equals a loop", g), ("vmap of the gradient equals a loop", slope)):

            def both(h: Any = h) -> tuple[float, float, str]:
                got = vmap(h)(*stacked)
                want = [h(*e) for e in examples]
                return self.compare(
                    [numbers(v) for v in got],
                    [np.concatenate([numbers(w[k]) for w in want]) for k in range(len(got))],
                    1e-9,
                    judge="the loop says",
                )

            self.check(
                name, both, raised="note"
            )  # a function with a branch on values is not made for batches, and may be right

    def precision(self) -> None:
        from ..func import vjp

        g, xs = self.g, self.g.xs
        narrow = {dt.float64: dt.float32, dt.complex128: dt.complex64}
        low = [x.to(narrow[x.dtype]) for x in xs]
        exact = [x.to(d.dtype) for x, d in zip(low, xs, strict=True)]

        def values() -> tuple[float, float, str]:
            with g.held.as_it_was():
                got = g(*low)
            want = g(*exact)
            return self.compare(
                [numbers(v) for v in got], [numbers(v) for v in want], 2e-4, judge="float64 says", floor=1e-3
            )

        def slopes() -> tuple[float, float, str]:
            with g.held.as_it_was():
                ys, pull = vjp(g, *low)
                gs = tuple(self.direction(ys))
                got = pull(gs)
            zs, exact_pull = vjp(g, *exact)
            want = exact_pull(tuple(c.to(z.dtype) for c, z in zip(gs, zs, strict=True)))
            return self.compare(
                [numbers(v) for v in got],
                [numbers(v) for v in want],
                2e-3,
                names=g.names,
                judge="float64 says",
                floor=1e-3,
            )

        for name, fn in (("float32 values", values), ("float32 gradients", slopes)):
            self.check(name, fn, raised="skipped")
            r = self.rows[-1]
            if r.state == "wrong":
                lost = min(7.0, np.log10(max(r.error or 1, 1e-7) / 1e-7))
                r.text = f"float32 loses {lost:.0f} of 7 digits: {r.text}"
                r.state = "note"
