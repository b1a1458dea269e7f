"""The graph of what ran, folded: a tree of views, each with few enough boxes to be read."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from .tap import Event

LIMIT = 36  # boxes that one view shows at most, if there is a way to fold


class Item:
    """A box of a view: an op (`event`), several ops folded (`view` is their own view), or an input (`name` alone)."""

    def __init__(self, name: str, events: list[Event], view: View | None = None) -> None:
        self.name, self.events, self.view = name, events, view


class View:
    """A part of the graph: its boxes, and the edges between them."""

    def __init__(self, title: str, events: list[Event], parent: View | None) -> None:
        self.title, self.events, self.parent = title, events, parent
        self.items: list[Item] = []
        self.edges: list[tuple[int, int]] = []
        self.number = -1


def build(events: list[Event], names: dict[int, dict[int, str]], title: str) -> list[View]:
    """The views of a run, the whole first. `names` says of an event which of its arguments (by number) are inputs with a name."""
    views: list[View] = []

    def make(part: list[Event], depth: int, name: str, parent: View | None) -> View:
        view = View(name, part, parent)
        view.number = len(views)
        views.append(view)
        groups, depth = _grouped(part, depth)
        for label, run in groups:
            if len(run) == 1:
                view.items.append(Item(run[0].op.name, run))
            else:
                view.items.append(Item(label, run, make(run, depth + 1, label, view)))
        _connect(view, names)
        return view

    make(events, 0, title, None)
    return views


def _path(e: Event) -> tuple[str, ...]:
    return e.place.site.scope


def _grouped(part: list[Event], depth: int) -> tuple[list[tuple[str, list[Event]]], int]:
    """The events of a view in groups of consecutive ones: by module; where that does not suffice by line, then by number."""
    while True:
        longer = [e for e in part if len(_path(e)) > depth]
        if len(longer) == len(part) and len({_path(e)[depth] for e in part}) == 1 and part:
            depth += 1  # all in the same module: its inside is the view
            continue
        break
    if len(part) <= LIMIT // 2:
        return [(e.op.name, [e]) for e in part], depth
    single: list[tuple[str, list[Event]]] = []
    for key, run in groupby(part, lambda e: _path(e)[depth] if len(_path(e)) > depth else None):
        together = list(run)
        if key is None:
            single += [(e.op.name, [e]) for e in together]
        else:
            single.append((key, together))
    if len(single) <= LIMIT and len(single) > 1:
        return single, depth
    lines: list[tuple[str, list[Event]]] = []
    for (where, text), run in groupby(part, lambda e: (e.place.site.short, e.place.site.text)):
        lines.append((f"{where}  {text}"[:44], list(run)))
    if 1 < len(lines) <= LIMIT:
        return lines, depth
    size = -(-len(part) // (LIMIT // 2))
    chunks = [part[k : k + size] for k in range(0, len(part), size)]
    return [(f"{c[0].op.name} … {c[-1].op.name} ({len(c)} ops)", c) for c in chunks], depth


def _connect(view: View, names: dict[int, dict[int, str]]) -> None:
    """Edges between the boxes of a view, with a box for each input that has a name or comes from outside."""
    owner = {e.index: k for k, item in enumerate(view.items) for e in item.events}
    inputs: dict[str, int] = {}
    extra: list[Item] = []
    edges: set[tuple[int, int]] = set()
    n = len(view.items)
    for k, item in enumerate(view.items):
        for e in item.events:
            for _, maker in e.parents:
                a = owner.get(maker)
                if a is not None:
                    if a != k:
                        edges.add((a, k))
                elif view.parent is not None:
                    edges.add((_input(inputs, extra, "from outside"), k))
            for name in names.get(e.index, {}).values():
                if item.view is None or name.startswith("input"):  # a folded box has its parameters inside
                    edges.add((_input(inputs, extra, name), k))
    # Inputs come first, so that every edge leads to a higher number.
    m = len(extra)
    view.items = extra + view.items
    view.edges = sorted((-a - 1, b + m) if a < 0 else (a + m, b + m) for a, b in edges)
    assert n + m == len(view.items)


def _input(inputs: dict[str, int], extra: list[Item], name: str) -> int:
    """The number of an input's box, negative until inputs are put in front."""
    if name not in inputs:
        inputs[name] = len(extra)
        extra.append(Item(name, []))
    return -inputs[name] - 1


def total(events: list[Event], of: dict[int, list[Event]]) -> dict[str, Any]:
    """Seconds forward and backward, bytes kept and made, of some events and of the reverse rules of their ops."""
    back = [b for e in events for b in of.get(e.index, ())]
    return {
        "forward": sum(e.seconds for e in events),
        "backward": sum(b.seconds for b in back),
        "kept": sum(e.kept for e in events),
        "made": sum(n for e in events for _, _, n in e.outputs),
        "ops": len(events),
    }
