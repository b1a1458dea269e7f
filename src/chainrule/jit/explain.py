"""What became of a function: its graph, its parts, what they cost, the generated code; as text and as a page with the graph drawn."""

from __future__ import annotations

import html
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..core.tensor import Tensor
from .graph import Graph, Node, Var, replay
from .record import example

COLORS = ("#cfe8d5", "#d5e1f5", "#f5e6c8", "#ecd9f2", "#d9f0f0", "#f5d9d9")


class Lowered:
    """What one signature of a function is compiled to."""

    def __init__(self, recording: Any, tensors: list[Tensor]) -> None:
        self.recording = recording
        program = recording.program
        self.graph: Graph | None = program.graph if program is not None else None
        self.parts: list[Any] = []
        self.seconds: list[float] = []
        if program is not None:
            given = [example(x) for x in (*tensors, *recording.boxes, *recording.foreign)]
            program.arrays(*given)
            self.parts = getattr(program._run, "parts", [])
            self._measure(given)

    @property
    def code(self) -> str:
        """The generated code (LLVM IR) of all compiled parts."""
        return "\n".join(p.code for p in self.parts if p.code)

    def _measure(self, given: list[np.ndarray]) -> None:
        """The least time of a few runs of each part."""
        env: dict[Var, Any] = dict(zip(self.graph.inputs, given, strict=True))  # type: ignore[union-attr]
        for p in self.parts:
            ins = [env[v] for v in p.inputs]
            g = Graph(p.inputs, p.nodes, p.outputs)
            best = float("inf")
            for _ in range(5):
                start = time.perf_counter()
                ys = p.run(*ins) if p.run is not None else [y._value for y in replay(g, [Tensor(x) for x in ins])]
                best = min(best, time.perf_counter() - start)
            env.update(zip(p.outputs, ys, strict=True))
            self.seconds.append(best)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        if self.graph is None:
            return f"runs without jit: {self.recording.reason}"
        lines = [self.graph.text(), "", f"{len(self.graph.nodes)} ops in {len(self.parts)} part(s):"]
        for i, (p, s) in enumerate(zip(self.parts, self.seconds, strict=True)):
            how = "machine code" if p.run is not None else f"op by op ({p.reason})"
            lines.append(f"  {i}. {_summary(p.nodes)}: {how}, {s * 1e6:.3g} µs")
        if not self.parts:
            lines.append("  replayed op by op")
        return "\n".join(lines)

    def html(self) -> str:
        """A page: the parts with their times, the graph drawn, the code."""
        if self.graph is None:
            return f"<!doctype html><title>jit</title><p>{html.escape(str(self))}</p>"
        rows = "".join(
            f"<tr><td style='background:{COLORS[i % len(COLORS)]}'>{i}</td><td>{html.escape(_summary(p.nodes))}</td>"
            f"<td>{'machine code' if p.run is not None else html.escape('op by op: ' + p.reason)}</td><td>{s * 1e6:.3g} µs</td></tr>"
            for i, (p, s) in enumerate(zip(self.parts, self.seconds, strict=True))
        )
        return (
            "<!doctype html><meta charset='utf-8'><title>jit</title><style>body{font:14px sans-serif;margin:2em}"
            "td,th{padding:2px 10px;text-align:left}pre{background:#f6f6f6;padding:1em;overflow:auto}</style>"
            f"<h1>{html.escape(self.recording.program.name)}</h1><table><tr><th>part<th>ops<th>runs as<th>time</tr>{rows}</table>"
            f"{draw(self.graph, self.parts)}<h2>Graph</h2><pre>{html.escape(self.graph.text())}</pre>"
            f"<h2>Code</h2><pre>{html.escape(self.code)}</pre>"
        )

    def save(self, path: str | Path) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")


def _summary(nodes: list[Node]) -> str:
    counts = Counter(n.op.name for n in nodes)
    return ", ".join(f"{c} {k}" if c > 1 else k for k, c in counts.most_common())


def draw(graph: Graph, parts: list[Any]) -> str:
    """The graph as SVG: inputs on top, each node below what it reads, in the color of its part."""
    depth: dict[Var, int] = dict.fromkeys(graph.inputs, 0)
    color = {n: COLORS[i % len(COLORS)] for i, p in enumerate(parts) for n in p.nodes}
    layers: dict[int, list[tuple[str, str, Any, tuple[Any, ...]]]] = {}
    for i, v in enumerate(graph.inputs):
        layers.setdefault(0, []).append((f"x{i} {list(v.shape)}", "#eeeeee", (v,), ()))
    for n in graph.nodes:
        reads = tuple(a for a in n.args if isinstance(a, Var) and a.value is None)
        d = 1 + max((depth[a] for a in reads), default=0)
        depth.update((v, d) for v in n.outs)
        layers.setdefault(d, []).append(
            (f"{n.op.name} {list(n.outs[0].shape)}", color.get(n, "#ffffff"), n.outs, reads)
        )
    w, h = 150, 54
    width = max(len(x) for x in layers.values()) * w
    place: dict[Var, tuple[float, float]] = {}
    boxes, lines = [], []
    for d, layer in sorted(layers.items()):
        for i, (text, fill, outs, reads) in enumerate(layer):
            x, y = (i + 0.5) * width / len(layer), d * h + 20
            place.update((v, (x, y)) for v in outs)
            bold = any(v in graph.outputs for v in outs)
            boxes.append(
                f"<rect x='{x - 68}' y='{y - 12}' width='136' height='24' rx='5' fill='{fill}' stroke='{'#000' if bold else '#999'}'/>"
                f"<text x='{x}' y='{y + 4}' font-size='11' text-anchor='middle'>{html.escape(text)}</text>"
            )
            lines += [f"<path d='M{place[a][0]},{place[a][1] + 12} L{x},{y - 12}' stroke='#aaa'/>" for a in reads]
    return f"<svg width='{width}' height='{(max(layers) + 1) * h}' xmlns='http://www.w3.org/2000/svg'>{''.join(lines + boxes)}</svg>"
