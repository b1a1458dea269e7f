"""Where the boxes of a graph go: layers by longest path, an order with few crossings, lines between."""

from __future__ import annotations

import itertools
from typing import NamedTuple


class Box(NamedTuple):
    """A box to be placed: its width and height."""

    width: float
    height: float


class Layout(NamedTuple):
    """The places of boxes (their centres), the lines between them as points, and the size of the whole."""

    places: list[tuple[float, float]]
    lines: list[tuple[int, int, list[tuple[float, float]]]]
    width: float
    height: float


def lay_out(boxes: list[Box], edges: list[tuple[int, int]], gap_x: float = 22, gap_y: float = 34) -> Layout:
    """Boxes in layers from top to bottom, so that edges point down; `edges` must have no cycle and lead from lower to higher numbers."""
    edges = sorted({(a, b) for a, b in edges if a != b})
    n = len(boxes)
    layer = [0] * n
    for a, b in edges:
        layer[b] = max(layer[b], layer[a] + 1)
    for _ in range(3):  # a source sits just above its first reader
        for k in range(n - 1, -1, -1):
            below = [layer[b] for a, b in edges if a == k]
            if below and not any(b == k for _, b in edges):
                layer[k] = min(below) - 1
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    # An edge over several layers goes through thin places of its own.
    size = list(boxes)
    chain: list[tuple[int, int, list[int]]] = []
    row_of = list(layer)
    for a, b in edges:
        mids = []
        for r in range(layer[a] + 1, layer[b]):
            mids.append(len(size))
            size.append(Box(8, 0))
            row_of.append(r)
        chain.append((a, b, mids))
    for k, r in enumerate(row_of):
        rows[r].append(k)
    up: list[list[int]] = [[] for _ in size]
    down: list[list[int]] = [[] for _ in size]
    for a, b, mids in chain:
        path = [a, *mids, b]
        for p, q in itertools.pairwise(path):
            down[p].append(q)
            up[q].append(p)
    x = [0.0] * len(size)
    for row in rows:
        _pack(row, x, size, gap_x)
    for sweep in range(10):
        order = rows if sweep % 2 == 0 else rows[::-1]
        near = up if sweep % 2 == 0 else down
        for row in order:
            want = {k: (sum(x[m] for m in near[k]) / len(near[k]) if near[k] else x[k]) for k in row}
            row.sort(key=lambda k: want[k])
            _settle(row, x, size, want, gap_x)
    left = min((x[k] - size[k].width / 2 for k in range(len(size))), default=0.0)
    heights = [max((size[k].height for k in row), default=0.0) for row in rows]
    tops, y = [], 10.0
    for h in heights:
        tops.append(y + h / 2)
        y += h + gap_y
    where = [(x[k] - left + 10, tops[row_of[k]]) for k in range(len(size))]
    lines = []
    for a, b, mids in chain:
        start, end = where[a], where[b]
        points = [
            (start[0], start[1] + size[a].height / 2),
            *(where[m] for m in mids),
            (end[0], end[1] - size[b].height / 2),
        ]
        lines.append((a, b, points))
    width = max((where[k][0] + size[k].width / 2 for k in range(len(size))), default=0.0) + 10
    return Layout(where[:n], lines, width, max(y - gap_y + 10, 20))


def _pack(row: list[int], x: list[float], size: list[Box], gap: float) -> None:
    at = 0.0
    for k in row:
        x[k] = at + size[k].width / 2
        at += size[k].width + gap
    for k in row:
        x[k] -= at / 2


def _settle(row: list[int], x: list[float], size: list[Box], want: dict[int, float], gap: float) -> None:
    """Places as near as possible to those wanted, in order, without overlap: groups that touch move together."""
    blocks: list[tuple[float, list[int], float]] = []
    for k in row:
        w = size[k].width + gap
        blocks.append((want[k] - w / 2, [k], w))
        while len(blocks) > 1 and blocks[-2][0] + blocks[-2][2] > blocks[-1][0]:
            b, a = blocks.pop(), blocks.pop()
            members = a[1] + b[1]
            start = (a[0] * len(a[1]) + (b[0] - a[2]) * len(b[1])) / len(members)
            blocks.append((start, members, a[2] + b[2]))
    for start, members, _ in blocks:
        for k in members:
            x[k] = start + (size[k].width + gap) / 2
            start += size[k].width + gap


def curve(points: list[tuple[float, float]]) -> str:
    """A smooth SVG path through points that go down."""
    d = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        m = (y0 + y1) / 2
        d += f"C{x0:.1f},{m:.1f} {x1:.1f},{m:.1f} {x1:.1f},{y1:.1f}"
    return d
