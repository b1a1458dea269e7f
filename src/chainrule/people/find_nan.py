"""find_nan: the birth certificate of the first NaN or infinity that reaches a result, forward or backward."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.tensor import Tensor
from ..core.tree import flatten
from .advice import advice
from .frames import Site
from .run import both_ways
from .tap import Event, Tap, listening


class Birth:
    """Where the first NaN or infinity that reaches the result was born. False where there is none.

    `op` is the op, `phase` "forward", "backward" (then `of` is the op whose derivative it was), "argument" or "captured"; `site` the line of your
    code, `inputs` what the op was given, `advice` what would avoid it.
    """

    def __init__(self, found: bool, phase: str = "", kind: str = "", op: str = "", of: str = "", site: Site | None = None,
                 inputs: list[str] | None = None, output: str = "", advice: str = "", where: str = "",
                 passing: list[str] | None = None) -> None:  # fmt: skip
        self.found, self.phase, self.kind, self.op, self.of, self.site = found, phase, kind, op, of, site
        self.inputs, self.output, self.advice, self.where, self.passing = (
            inputs or [], output, advice, where, passing or [],
        )  # fmt: skip

    def __bool__(self) -> bool:
        return self.found

    def lines(self) -> list[tuple[str, str]]:
        """The certificate: pairs of a word and what there is to say."""
        if not self.found:
            rows = [("found", "no NaN and no infinity reaches a value or a derivative")]
            return rows + [("passing", p) for p in self.passing]
        what = {
            "forward": f"in the value of {self.op}",
            "backward": f"in the derivative of {self.of or self.op}"
            + (f", by {self.op}" if self.op != self.of else ""),
            "argument": "in an argument: it was there before the function ran",
            "captured": f"in a tensor that {self.op} was given and no op of the function made",
        }[self.phase]
        rows = [("born", f"{self.kind}, {what}")]
        if self.site is not None:
            rows.append(("line", str(self.site)))
        rows += [(f"argument {i}" if len(self.inputs) > 1 else "argument", x) for i, x in enumerate(self.inputs)]
        if self.output:
            rows.append(("result", self.output))
        if self.where:
            rows.append(("reaches", self.where))
        if self.advice:
            rows.append(("instead", self.advice))
        return rows

    def __str__(self) -> str:
        rows = self.lines()
        width = max(len(k) for k, _ in rows)
        return "\n".join(f"{k:<{width}}  {v}" for k, v in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left;padding-right:1em'>{html.escape(k)}</th>"
            f"<td style='text-align:left'><code>{html.escape(v)}</code></td></tr>"
            for k, v in self.lines()
        )
        return f"<table>{cells}</table>"


def find_nan(f: Callable[..., Any], *args: Any, backward: bool = True) -> Birth:
    """Run ``f(*args)`` and its reverse pass, and say where the first NaN or infinity that reaches a result was born.

    The op, its values, your line, and what would avoid it. A NaN that is masked out before it reaches a value or a derivative is none.
    `f` may call ``backward()`` itself, take NumPy arrays, and use captured tensors. ``backward=False`` looks at values alone.

    >>> import chainrule as cr
    >>> born = cr.find_nan(lambda x: (x - x).sqrt().sum(), cr.ones(2))
    >>> born.phase, born.of, born.kind
    ('backward', 'sqrt', 'inf')
    """
    for i, a in enumerate(flatten(args)[0]):
        if _bad(_array(a)):
            return Birth(True, "argument", _kind(_array(a)), inputs=[_describe(_array(a))], where=f"argument {i}")
    born = _search(f, args, backward)
    if born and born.op.startswith("jit"):  # inside of a compiled function: op by op, where that has the same NaN
        with _without_jit():
            inner = _search(f, args, backward)
        return inner or born
    return born


@contextmanager
def _without_jit() -> Iterator[None]:
    """Inside, compiled functions run as the Python that they are made from."""
    from ..jit.api import Jitted

    before = Jitted.__call__
    Jitted.__call__ = lambda self, *args, **kw: self.f(*args, **kw)  # type: ignore[method-assign]
    try:
        yield
    finally:
        Jitted.__call__ = before  # type: ignore[method-assign]


def _search(f: Callable[..., Any], args: Any, backward: bool) -> Birth:
    watch = _Watch()
    with listening(Tap(on_event=watch.hear)) as tap, np.errstate(all="ignore"):
        values, where = _run(f, args, backward, tap)
    wrong = next((v for v in values if _bad(v)), None)
    if wrong is None:
        return Birth(False, passing=watch.passing(tap))
    return watch.certificate(tap, wrong, where(wrong))


def _run(f: Callable[..., Any], args: Any, backward: bool, tap: Tap) -> tuple[list[Any], Callable[[Any], str]]:
    """The values and the cotangents that come out, as arrays; and how to call one."""
    names: dict[int, str] = {}
    out: list[Any] = []

    def tell(x: Any, name: str) -> None:
        v = _array(x)
        if v is not None:
            names[id(v)] = name
            out.append(v)

    ys, pull = both_ways(f, args, tap)
    for k, v in enumerate(ys):
        tell(v, f"value {k}" if len(ys) > 1 else "the value")
    if backward and not any(map(_bad, out)):
        for name, g in pull():
            tell(g, f"the derivative by {name}")
    return out, lambda v: names.get(id(v), "")


class _Watch:
    """Which results were not finite, and what the ops that made them were given."""

    def __init__(self) -> None:
        self.bad: dict[int, list[str]] = {}  # event -> its arguments, described
        self.results: dict[int, tuple[str, str]] = {}  # event -> kind and description of its result
        self.given: dict[int, list[int]] = {}  # event -> the positions of arguments that were not finite already
        self.last: dict[int, int] = {}  # id of a bad result -> event
        self.slots: dict[int, list[Any]] = {}

    def hear(self, e: Event, args: list[Any], results: list[Any]) -> None:
        wrong = [v for v in results if _bad(v)]
        if not wrong:
            return
        self.given[e.index] = [k for k, a in enumerate(args) if _bad(a)]
        self.bad[e.index] = [_describe(a) for a in args]
        self.results[e.index] = (_kind(wrong[0]), _describe(wrong[0]))
        self.slots[e.index] = [a if isinstance(a, np.ndarray) and a.size <= 4096 else None for a in args]
        for v in wrong:
            self.last[id(v)] = e.index
            e.inputs.append(v)  # held, so that its id stays its own

    def passing(self, tap: Tap) -> list[str]:
        """What was not finite on the way and reached no result."""
        births = [tap.events[i] for i, g in self.given.items() if not g and tap.events[i].op is not None]
        return [f"{self.results[e.index][0]} in {e.op.name} at {e.place.site.short}" for e in births[:3]]

    def certificate(self, tap: Tap, wrong: Any, where: str) -> Birth:
        """From a result that is not finite back to the op that made the first such number."""
        i = tap.makers.get(id(wrong), self.last.get(id(wrong)))
        kind = _kind(wrong)
        if (
            i is None or i not in self.bad
        ):  # the array itself was made by no op: the last that was not finite is what it shows
            i = max(self.bad, default=None)
        if i is None:
            return Birth(True, "captured", kind, op="the function", where=where, output=_describe(wrong))
        seen: set[int] = set()
        path: list[int] = []
        while True:
            seen.add(i)
            path.append(i)
            makers = [m for k, m in tap.events[i].parents if k in self.given[i] and m in self.bad and m not in seen]
            if not makers:
                break
            i = min(makers)
        written = bool(self.given[i]) and _constants(self.slots[i], self.given[i])
        if written:  # an infinity that the code writes: who made a NaN of it?
            i = next((k for k in reversed(path) if self.results[k][0] == "NaN"), i)
            self.given[i] = []
        e = tap.events[i]
        kind, text = self.results[i]
        if self.given[i] and not _constants(self.slots[i], self.given[i]):
            return Birth(True, "captured", kind, e.op.name, e.backward, e.place.site, self.bad[i], text,
                         "look at how that tensor was made: it was not finite before the function ran", where)  # fmt: skip
        phase = "backward" if e.backward else "forward"
        if written and kind == "inf":
            return Birth(True, phase, kind, e.op.name, e.backward, e.place.site, self.bad[i], text,
                         "this line writes the infinity, which a softmax or a maximum takes away again; elsewhere write a finite number", where)  # fmt: skip
        return Birth(True, phase, kind, e.op.name, e.backward, e.place.site, self.bad[i], text,
                     advice(e.op.name, e.backward, kind, self.slots[i]), where)  # fmt: skip


def _constants(slots: list[Any], given: list[int]) -> bool:
    """Whether what was not finite are numbers that the code writes, like the -inf of a mask."""
    return all(slots[k] is None or np.ndim(slots[k]) == 0 for k in given)


def _numbers(v: Any) -> np.ndarray | None:
    """The numbers that an array holds; a ragged one its rows, a sparse one its values."""
    while v is not None and not isinstance(v, np.ndarray):
        v = next((getattr(v, name) for name in ("rows", "values", "inner") if hasattr(v, name)), None)
    return v


def _array(x: Any) -> Any:
    if isinstance(x, Tensor):
        return innermost(x)
    return (
        x if isinstance(x, np.ndarray) else np.asarray(x) if isinstance(x, np.floating | np.complexfloating) else None
    )


def _bad(v: Any) -> bool:
    if isinstance(v, float):
        return not np.isfinite(v)
    buffer = _numbers(v)
    if buffer is None or buffer.dtype.kind not in "fcV":
        return False
    try:
        return not bool(np.isfinite(buffer).all())
    except TypeError:
        return False


def _kind(v: Any) -> str:
    return "NaN" if bool(np.isnan(_numbers(v)).any()) else "inf"  # type: ignore[arg-type]


def _describe(v: Any) -> str:
    """Shape, type and range of an array, and which elements are not finite."""
    if not isinstance(v, np.ndarray):
        if (numbers := _numbers(v)) is not None:
            kind = "ragged, its rows" if getattr(v, "is_nested", False) else "sparse, its values"
            return f"{kind} {_describe(numbers)}"
        return repr(v) if isinstance(v, int | float | complex | str | bool | tuple) else type(v).__name__
    head = f"{v.dtype.name}{list(v.shape)}"
    if v.size == 0 or v.dtype.kind not in "fciub":
        return head
    if v.size == 1:
        return f"{head} = {v.reshape(-1)[0]:.4g}" if v.dtype.kind in "fc" else f"{head} = {v.reshape(-1)[0]}"
    ok = v[np.isfinite(v)] if v.dtype.kind in "fc" else v
    span = f", from {ok.min():.4g} to {ok.max():.4g}" if ok.size and v.dtype.kind != "c" else ""
    if v.dtype.kind not in "fc":
        return head + span
    nan, inf = np.isnan(v), np.isinf(v)
    if not (nan | inf).any():
        zeros = int((v == 0).sum())
        return head + span + (f", {zeros} zero{'s' if zeros > 1 else ''}" if zeros else "")
    first = tuple(int(k) for k in np.argwhere(nan | inf)[0])
    return f"{head}{span}, {int(nan.sum())} NaN and {int(inf.sum())} infinite, the first at {list(first)}"


__all__ = ["Birth", "find_nan"]
