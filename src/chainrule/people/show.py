"""show: the graph of a function and of its derivative, with shapes, types, memory and time; SVG in a notebook, and a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.dispatch import innermost
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..interop.numpy.value import Array
from ..nn.module import Module
from .graph import View, build, total
from .layout import Box, curve, lay_out
from .page import Page, asset, bytes_text, esc, page, time_text
from .profile import memory_svg
from .run import both_ways, floats
from .tap import Event, Tap, listening


class Picture:
    """What ``show`` returns: an SVG in a notebook; ``html(path)`` is a page in which boxes open and ops tell their source line."""

    def __init__(self, name: str, tap: Tap, inputs: dict[int, str]) -> None:
        self.name, self.tap = name, tap
        leaves = tap.leaves()
        named = {e.index: {k: inputs[i] for k, i in enumerate(e.inputs) if i in inputs} for e in leaves}
        self.forward = [e for e in leaves if not e.backward]
        self.backward = [e for e in leaves if e.backward]
        self.of: dict[int, list[Event]] = {}
        for e in self.backward:
            self.of.setdefault(e.place.of, []).append(e)
        self.views = build(self.forward, named, name)
        self.derivative = build(self.backward, named, f"derivative of {name}") if self.backward else []

    @property
    def kept(self) -> int:
        """Bytes that the tape keeps for the backward pass."""
        return sum(self.tap.kept.values())

    # -- as text -------------------------------------------------------------------------------------------------------
    def __str__(self) -> str:
        lines = [
            f"{self.name}: {len(self.forward)} ops forward ({time_text(sum(e.seconds for e in self.forward))}), {len(self.backward)} backward "
            f"({time_text(sum(e.seconds for e in self.backward))}), {bytes_text(self.kept)} kept, at most {bytes_text(self.tap.peak)} held"
        ]
        for e in self.forward[:60]:
            t = total([e], self.of)
            lines.append(
                f"  {e.op.name:<24}{_result(e):<22}{time_text(t['forward']):>9}{time_text(t['backward']):>10}{bytes_text(e.kept):>9}  {e.place.site.short}"
            )
        if len(self.forward) > 60:
            lines.append(f"  … and {len(self.forward) - 60} more: .html(path) is a page")
        return "\n".join(lines)

    __repr__ = __str__

    # -- as a picture --------------------------------------------------------------------------------------------------
    def svg(self, derivative: bool = False) -> str:
        """The folded graph, of the function or of its derivative."""
        views = self.derivative if derivative else self.views
        return self._svg(views[0], "", derivative)

    _repr_svg_ = svg

    def _svg(self, view: View, tag: str, derivative: bool) -> str:
        texts = [self._lines(item, derivative) for item in view.items]
        boxes = [
            Box(max(96.0, 20 + max(7.9 * len(t[0]), *(6.7 * len(x) for x in t))), 12 + 15.0 * len(t)) for t in texts
        ]
        lay = lay_out(boxes, view.edges)
        whole = sum(e.seconds for e in self.forward) + sum(e.seconds for e in self.backward) or 1.0
        parts = [f'<path class="e" d="{curve(points)}"/>' for _, _, points in lay.lines]
        for k, (item, box, (x, y), lines) in enumerate(zip(view.items, boxes, lay.places, texts, strict=True)):
            left, top = x - box.width / 2, y - box.height / 2
            cls = "in" if not item.events else "fold" if item.view is not None else "op"
            if self.tap.peak_event is not None and self.tap.peak_event in item.events:
                cls += " peak"
            t = total(item.events, {} if derivative else self.of)
            share = min(1.0, (t["forward"] + t["backward"]) / whole)
            f = min(1.0, t["forward"] / whole)
            inner, low = box.width - 2, top + box.height - 5
            bars = _bar("w" if derivative else "f", left + 1, low, inner * f) + _bar(
                "w", left + 1 + inner * f, low, inner * (share - f)
            )
            words = "".join(
                f'<text class="{"t" if j == 0 else "d"}" x="{left + 9:.1f}" y="{top + 16 + 15 * j:.1f}">{esc(s)}</text>'
                for j, s in enumerate(lines)
            )
            target = f' data-view="{tag}{item.view.number}"' if item.view is not None else ""
            index = f' data-i="{tag}{view.number}.{k}"' if item.events else ""
            parts.append(
                f'<g class="{cls}"{index}{target}>'
                f'<rect class="b" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="6"/>{bars}{words}</g>'
            )
        return (
            f'<svg class="ch" xmlns="http://www.w3.org/2000/svg" width="{lay.width:.0f}" height="{lay.height:.0f}" '
            f'viewBox="0 0 {lay.width:.0f} {lay.height:.0f}" '
            f'role="img" aria-label="{esc(view.title)}"><style>{asset("graph.css")}</style>{"".join(parts)}</svg>'
        )

    def _lines(self, item: Any, derivative: bool) -> list[str]:
        if not item.events:
            return [item.name]
        t = total(item.events, {} if derivative else self.of)
        what = _result(item.events[0]) if item.view is None else f"{t['ops']} ops → {_result(item.events[-1])}"
        spent = time_text(t["forward"]) + (f" + {time_text(t['backward'])}" if t["backward"] else "")
        if derivative and item.view is None:
            return [item.name, what, f"{spent}, of {item.events[0].backward}"]
        return [item.name, what, spent + (f", keeps {bytes_text(t['kept'])}" if t["kept"] else "")]

    # -- as a page -----------------------------------------------------------------------------------------------------
    def _details(self, views: list[View], tag: str, derivative: bool) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for v in views:
            for k, item in enumerate(v.items):
                if not item.events:
                    continue
                e, t = item.events[0], total(item.events, {} if derivative else self.of)
                site = e.place.site
                rows = [
                    ["result", ", ".join(f"{d} {_shape(s)}" for s, d, _ in item.events[-1].outputs)],
                    ["time", time_text(t["forward"])],
                ]
                if not derivative:
                    rows += [
                        ["time backward", time_text(t["backward"])],
                        ["kept for the backward pass", bytes_text(t["kept"])],
                    ]
                rows += [["held after it", bytes_text(item.events[-1].live)], ["made", bytes_text(t["made"])]]
                if derivative and e.backward:
                    rows.append(["part of the derivative of", e.backward])
                if site.scope:
                    rows.append(["module", ".".join(site.scope)])
                doc = (e.op.__doc__ or "").strip().splitlines()
                out[f"{tag}{v.number}.{k}"] = {
                    "name": item.name, "rows": rows, "line": f"{_near(site.file)}, line {site.line}, in {site.function}", "code": _context(site),
                    "doc": doc[0].replace("`", "") if doc and item.view is None else "",
                }  # fmt: skip
        return out

    def html(self, path: str | Path | None = None) -> Page:
        """The page, written to `path` if there is one: folded boxes open, ops tell their line, and the memory over time is below."""
        sections, crumbs, details = "", {}, dict[str, Any]()
        for tag, views, derivative in (("f", self.views, False), ("d", self.derivative, True)):
            details.update(self._details(views, tag, derivative))
            for v in views:
                sections += f'<div class="view" id="{tag}{v.number}" hidden>{self._svg(v, tag, derivative)}</div>'
                crumbs[f"{tag}{v.number}"] = [v.title, f"{tag}{v.parent.number}" if v.parent is not None else ""]
        facts = "".join(
            f"<div><b>{v}</b><span>{k}</span></div>"
            for k, v in (
                ("ops forward", len(self.forward)), ("ops backward", len(self.backward)), ("time forward", time_text(sum(e.seconds for e in self.forward))),
                ("time backward", time_text(sum(e.seconds for e in self.backward))), ("kept for backward", bytes_text(self.kept)),
                ("held at most", bytes_text(self.tap.peak)),
            )
        )  # fmt: skip
        tabs = '<button type="button" data-tab="f0" aria-pressed="true">the function</button>' + (
            '<button type="button" data-tab="d0" aria-pressed="false">its derivative</button>'
            if self.derivative
            else ""
        )
        body = (
            f'<div class="facts">{facts}</div><div class="bar">{tabs}<span id="crumbs"></span></div>'
            f'<p class="dim">Time flows down. A dashed box is folded: click it to look inside. '
            f"Click an op for its line. Bars are shares of the time, blue forward, "
            f"orange backward; a red frame marks the op at the memory peak.</p>"
            f'<div class="split"><div class="scroll" id="stage">{sections}</div><aside id="details"><p class="dim">Click a box.</p></aside></div>'
            f"<h2>Memory over time</h2>{memory_svg(self.tap)}"
        )
        data = json.dumps({"crumbs": crumbs, "details": details}).replace("</", "<\\/")
        p = page(self.name, body, asset("show.js").replace("__DATA__", data), asset("show.css"))
        if path is not None:
            p.save(path)
        return p


def _bar(cls: str, x: float, y: float, width: float) -> str:
    """A share of the time at the foot of a box."""
    return f'<rect class="{cls}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="4" rx="2"/>'


def _near(file: str) -> str:
    """A path as seen from here, where it is below."""
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _shape(s: tuple[Any, ...]) -> str:
    return "×".join(map(str, s)) if s else "scalar"


def _result(e: Event) -> str:
    s, d, _ = e.outputs[0] if e.outputs else ((), "?", 0)
    return f"{d} {_shape(s)}"


def _context(site: Any) -> str:
    """The source line with its neighbours."""
    import linecache

    lines = []
    for k in range(max(1, site.line - 2), site.line + 3):
        text = linecache.getline(site.file, k).rstrip("\n")
        if text or k == site.line:
            lines.append(f"{'>' if k == site.line else ' '} {k:>4}  {text}")
    return "\n".join(lines)


def show(
    f: Callable[..., Any], *args: Any, path: str | Path | None = None, derivative: bool = True, warm: bool = True
) -> Picture:
    """The graph of ``f(*args)`` and of its derivative: ops, shapes, types, bytes kept for the backward pass, time of every op both ways.

    In a notebook it is an SVG; ``show(f, x, path="f.html")`` also writes a page where modules and scopes unfold, and an op tells its source line and
    where the memory peak is. Parameters of modules and other captured tensors with ``requires_grad`` are differentiated too. With ``warm`` the
    function runs once before it is timed, so that kernels are compiled.

    >>> import chainrule as cr
    >>> picture = cr.show(lambda x: (x.exp() * x).sum(), cr.ones(3))
    >>> [e.op.name for e in picture.forward]
    ['exp', 'mul', 'sum']
    """
    inputs: dict[int, str] = {}
    held: list[Any] = []

    def name(x: Any, text: str) -> None:
        v = innermost(x.tensor if isinstance(x, Array) else x)
        inputs[id(v)] = text
        held.append(v)

    for k, a in enumerate(flatten(args)[0]):
        if isinstance(a, Tensor | Array):
            name(a, f"input {k}")
    for m in [f, getattr(f, "__self__", None), *(c.cell_contents for c in getattr(f, "__closure__", None) or ())]:
        if isinstance(m, Module):
            for label, p in m.named_parameters():
                name(p, label)

    def hear(e: Event, payloads: list[Any], results: list[Any]) -> None:
        e.inputs = [id(v) for v in payloads]

    if warm:
        both_ways(f, args, Tap())[1]() if derivative else floats(f)(*args)
    with listening(Tap(on_event=hear)) as tap:
        if derivative:
            both_ways(f, args, tap)[1]()
        else:
            floats(f)(*args)
    title = getattr(f, "__qualname__", None) or type(f).__name__
    picture = Picture(title.replace("<locals>.", ""), tap, inputs)
    if path is not None:
        picture.html(path)
    return picture
