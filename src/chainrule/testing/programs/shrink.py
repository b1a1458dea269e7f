"""Makes a failing program small: fewer lines, fewer names, one result, while it fails in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .cells import Verdict, check
from .program import Line, Program, Var, walk


def failure(v: Verdict) -> tuple[str, str]:
    """What two failures must share to count as the same: an exception by type and text, without names and numbers."""
    if v.state != "raised":
        return v.state, ""
    first = v.note.split("\n")[0]
    return v.state, re.sub(r"\bv\d+\w?|\bf\d+|\(?-?\d[\d.,\s]*\)?", "#", first)[:90]


# Families whose statements are rarely the culprit where another one stands beside them.
PLAIN = ("plain", "elementwise", "reduce", "view", "linalg", "layer", "index")


def suspects(program: Program) -> tuple[str, ...]:
    """The kinds of statements that a small failing program is about."""
    kinds = sorted(set(program.kinds))
    return tuple(k for k in kinds if k.split("/")[0] not in PLAIN) or tuple(k for k in kinds if k != "plain")


def shrink(program: Program, cell: str, like: Verdict, seconds: float = 4.0) -> tuple[Program, Verdict]:
    """The smallest program found that fails in `cell` as `like` does, and its verdict."""
    end = time.monotonic() + seconds
    best, verdict = program, like
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for candidate in candidates(best):
            if time.monotonic() > end:
                break
            try:
                (got,) = check(candidate, [cell])
            except Exception:
                continue  # no program any more
            if failure(got) == failure(like):
                best, verdict, progress = candidate, got, True
                break
    return best, verdict


def candidates(p: Program) -> Iterator[Program]:
    """Programs that are a little smaller."""
    used = _used(p)
    for lines in _without_one(p.lines, lambda ln: not any(v.name in used for v in ln.outs)):
        yield p.with_lines(lines)
    if len(p.returns) > 1:
        for name in p.returns:
            yield p.with_lines(p.lines, (name,))
    everything = [Var("x", p.shape, 0), *(v for ln in walk(p.lines) for v in ln.outs)]
    params = [v for ln in walk(p.lines) if ln.fn for v in ln.fn.params]
    written = {a for ln in walk(p.lines) if "write" in ln.marks for a in ln.args}
    # A result is replaced by another tensor of its shape, the simplest first. Arguments are never written to.
    for line in reversed(list(walk(p.lines))):
        for v in line.outs:
            for other in [*everything[:1], *params, *everything[1:]]:
                if other.shape == v.shape and other.name != v.name and other not in line.outs and v.name in used:
                    if v.name in written and (other in params or other.name == "x"):
                        continue
                    if _place(everything, params, other) < _place(everything, params, v):
                        yield _renamed(p, v.name, other.name)
    for line in walk(p.lines):
        if line.outs and line.kind != "plain":
            for plain in _plain(line.outs, p.shape):
                yield p.with_lines(_mapped(p.lines, line, plain))
        if line.body:
            yield p.with_lines(_mapped(p.lines, line, line.body))
        if line.fn and line.fn.result not in ("{0}", "{0}.sum()"):
            for result in ("{0}", "{0}.sum()"):
                yield p.with_lines(_mapped(p.lines, line, (replace(line, fn=replace(line.fn, result=result)),)))


def _plain(outs: tuple[Var, ...], shape: tuple[int, ...]) -> Iterator[tuple[Line, ...]]:
    """The simplest lines with results of these shapes: without a derivative, then with one."""
    for form in ("cr.full({s}, 0.6, dtype=cr.float64)", "cr.full({s}, 0.6, dtype=cr.float64) * x.sum()", "cr.sin(x)"):
        if "sin" not in form or all(v.shape == shape for v in outs):
            yield tuple(Line("plain", "{o} = " + form.replace("{s}", str(v.shape)), (), (v,)) for v in outs)


def _place(everything: list[Var], params: list[Var], v: Var) -> int:
    return everything.index(v) if v in everything else 0


def _used(p: Program) -> set[str]:
    names = set(p.returns)
    for line in walk(p.lines):
        names.update(line.args)
        if line.fn:
            names.update(line.fn.args)
    return names


def _without_one(lines: tuple[Line, ...], free: Callable[[Line], bool]) -> Iterator[tuple[Line, ...]]:
    for line in reversed(list(walk(lines))):
        if free(line):
            yield _mapped(lines, line, ())


def _mapped(lines: tuple[Line, ...], old: Line, new: tuple[Line, ...]) -> tuple[Line, ...]:
    """The lines with `old`, wherever it stands, replaced."""
    out: list[Line] = []
    for line in lines:
        if line is old:
            out.extend(new)
            continue
        if line.body:
            body = _mapped(line.body, old, new)
            if not body:
                continue
            line = replace(line, body=body) if body is not line.body else line
        if line.fn:
            inner = _mapped(line.fn.body, old, new)
            line = replace(line, fn=replace(line.fn, body=inner)) if inner != line.fn.body else line
        out.append(line)
    return tuple(out)


def _renamed(p: Program, old: str, new: str) -> Program:
    def swap(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if n == old else n for n in names)

    def all_of(lines: tuple[Line, ...]) -> tuple[Line, ...]:
        return tuple(
            replace(
                ln,
                args=swap(ln.args),
                body=all_of(ln.body),
                fn=ln.fn and replace(ln.fn, body=all_of(ln.fn.body), args=swap(ln.fn.args)),
            )
            for ln in lines
        )

    return p.with_lines(all_of(p.lines), tuple(dict.fromkeys(swap(p.returns))))
