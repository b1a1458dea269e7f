"""profile: where the time and the memory go, by op and by line of your code; as a table, a flame graph, a timeline and a Chrome trace."""

from __future__ import annotations

import json
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any

from .frames import Site
from .page import Page, asset, bytes_text, esc, page, table, time_text
from .tap import Event, Tap, listening


class Line:
    """What ran under one name: calls, seconds in the ops themselves, bytes that were made."""

    def __init__(self, name: str) -> None:
        self.name, self.calls, self.forward, self.backward, self.bytes = name, 0, 0.0, 0.0, 0

    def add(self, e: Event, seconds: float) -> None:
        """Count an event."""
        self.calls += 1
        self.bytes += sum(n for _, _, n in e.outputs)
        if e.backward:
            self.backward += seconds
        else:
            self.forward += seconds

    @property
    def total(self) -> float:
        """Seconds, forward and backward."""
        return self.forward + self.backward


class profile:
    """Inside, every op that runs on arrays is timed: ``with cr.profile() as p: train(); print(p)``.

    ``p.by_op()`` and ``p.by_line()`` are tables (an op of a backward pass counts for the line that made its node), ``p.html("out.html")`` is a page
    with a flame graph and the memory over time, ``p.chrome_trace("trace.json")`` a file for chrome://tracing or Perfetto. Timing costs some
    microseconds an op, so look at shares rather than at sums.

    >>> import chainrule as cr
    >>> with cr.profile() as p:
    ...     y = cr.ones(3).exp().sum()
    >>> sorted(line.name for line in p.by_op())
    ['exp', 'sum']
    """

    def __init__(self) -> None:
        self.tap = Tap(stack=True)
        self.seconds = 0.0
        self._own: list[float] | None = None

    def __enter__(self) -> profile:
        self._context = listening(self.tap)
        self._context.__enter__()
        self._start = perf_counter()
        return self

    def __exit__(self, et: type[BaseException] | None, ev: BaseException | None, tb: TracebackType | None) -> None:
        self.seconds = perf_counter() - self._start
        self._context.__exit__(et, ev, tb)

    @property
    def events(self) -> list[Event]:
        """What ran, in order."""
        return [e for e in self.tap.events if e.op is not None]

    def _self_seconds(self) -> list[float]:
        if self._own is None:
            own = [e.seconds for e in self.tap.events]
            for e in self.tap.events:
                if e.parent is not None:
                    own[e.parent.index] -= e.seconds
            self._own = own
        return self._own

    def _grouped(self, key: Any) -> list[Line]:
        own, lines = self._self_seconds(), dict[str, Line]()
        for e in self.events:
            name = key(e)
            lines.setdefault(name, Line(name)).add(e, own[e.index])
        return sorted(lines.values(), key=lambda line: -line.total)

    def by_op(self) -> list[Line]:
        """By op, the slowest first."""
        return self._grouped(lambda e: e.op.name)

    def by_line(self) -> list[Line]:
        """By line of your code, the slowest first."""
        return self._grouped(lambda e: f"{e.place.site.short}  {e.place.site.text}"[:100])

    @property
    def peak(self) -> int:
        """The most bytes that results of ops held at once."""
        return self.tap.peak

    def __str__(self) -> str:
        return self.text()

    def text(self, rows: int = 15) -> str:
        """Both tables as text."""
        out = [
            f"{time_text(self.seconds)} in all, {time_text(sum(self._self_seconds()))} in {len(self.events)} ops; at most {bytes_text(self.peak)} held"
        ]
        for title, lines in (("op", self.by_op()), ("line", self.by_line())):
            out.append(f"{'calls':>7}{'forward':>11}{'backward':>11}{'share':>7}{'made':>10}  {title}")
            total = sum(line.total for line in lines) or 1.0
            for line in lines[:rows]:
                out.append(
                    f"{line.calls:>7}{time_text(line.forward):>11}{time_text(line.backward):>11}"
                    f"{line.total / total:>7.0%}{bytes_text(line.bytes):>10}  {line.name}"
                )
        return "\n".join(out)

    # -- pages and files ------------------------------------------------------------------------------------------------
    def html(self, path: str | Path | None = None) -> Page:
        """A page with both tables, the flame graph and the memory over time; written to `path` if there is one."""
        tables = ""
        for title, lines in (("By op", self.by_op()), ("By line", self.by_line())):
            total = sum(line.total for line in lines) or 1.0
            rows = [
                [
                    f"<code>{esc(n.name)}</code>",
                    str(n.calls),
                    time_text(n.forward),
                    time_text(n.backward),
                    f"{n.total / total:.0%}",
                    bytes_text(n.bytes),
                ]
                for n in lines[:40]
            ]
            tables += f"<h2>{title}</h2>" + table(
                [title[3:], "calls", "forward", "backward", "share", "made"], rows, (1, 2, 3, 4, 5)
            )
        facts = "".join(
            f"<div><b>{v}</b><span>{k}</span></div>"
            for k, v in (("in all", time_text(self.seconds)), ("in ops", time_text(sum(self._self_seconds()))), ("ops", len(self.events)),
                         ("held at most", bytes_text(self.peak)))
        )  # fmt: skip
        body = (
            f'<div class="facts">{facts}</div><h2>Flame graph</h2>'
            f'<p class="dim">Your stack from top to bottom, ops below; the width is time. Click to zoom.</p>'
            f'<div class="bar"><button id="out" type="button">zoom out</button></div><div id="flame"></div>'
            f"<h2>Memory over time</h2>{memory_svg(self.tap)}{tables}"
        )
        p = page("profile", body, asset("flame.js").replace("__TREE__", json.dumps(self._flame())), asset("flame.css"))
        if path is not None:
            p.save(path)
        return p

    def _flame(self) -> list[Any]:
        """The tree of stacks: ``[name, seconds, kind, children]``."""
        root: dict[str, Any] = {}
        total = 0.0
        for e, s in zip(self.tap.events, self._self_seconds(), strict=True):
            if e.op is None:
                continue
            total += s
            node = root
            names = [(f"{f.function} {f.short}", "f") for f in e.place.stack] or [("?", "f")]
            if e.backward:
                names.append((f"backward of {e.backward} {e.place.site.short}", "b"))
            for name in [*names, (e.op.name, "b" if e.backward else "o")]:
                entry = node.setdefault(name[0], [0.0, name[1], {}])
                entry[0] += s
                node = entry[2]

        def pack(node: dict[str, Any]) -> list[Any]:
            return [
                [k, round(v[0] * 1e6, 2), v[1], pack(v[2])]
                for k, v in sorted(node.items(), key=lambda kv: -kv[1][0])
                if v[0] > total / 5000
            ]

        return ["all", round(total * 1e6, 2), "f", pack(root)]

    def chrome_trace(self, path: str | Path) -> Path:
        """Write the events as a trace for chrome://tracing or Perfetto: ops with shapes and lines, and the memory held."""
        begin = self.tap.begin
        events: list[dict[str, Any]] = []
        for e in self.events:
            site: Site = e.place.site
            events.append(
                {
                    "name": e.op.name, "cat": "backward" if e.backward else "forward", "ph": "X", "ts": (e.start - begin) * 1e6,
                    "dur": e.seconds * 1e6, "pid": 1, "tid": e.thread,
                    "args": {"line": site.short, "code": site.text, "shapes": [f"{d}{list(map(str, s))}" for s, d, _ in e.outputs], "of": e.backward},
                }
            )  # fmt: skip
        events += [
            {"name": "held", "ph": "C", "ts": t * 1e6, "pid": 1, "args": {"bytes": n}} for t, n in self.tap.timeline
        ]
        path = Path(path)
        path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}), encoding="utf-8")
        return path

    def _repr_html_(self) -> str:
        return f"<pre>{esc(self.text())}</pre>"


def memory_svg(tap: Tap, width: int = 960, height: int = 140) -> str:
    """The bytes held over time, with the peak and its op."""
    points = tap.timeline
    if not points or not tap.peak:
        return "<p class='dim'>No memory was taken by results of ops.</p>"
    step = max(1, len(points) // 1200)
    kept = [p for k, p in enumerate(points) if k % step == 0 or p[1] == tap.peak]
    end = max(points[-1][0], 1e-9)
    xy = [(t / end * (width - 20) + 10, height - 20 - n / tap.peak * (height - 45)) for t, n in kept]
    path = f"M{xy[0][0]:.1f},{height - 20}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in xy) + f"V{height - 20}Z"
    top = next(p for p in points if p[1] == tap.peak)
    x = top[0] / end * (width - 20) + 10
    e = tap.peak_event
    name = "" if e is None or e.op is None else f" in {e.op.name}, {e.place.site.short}"
    anchor = "start" if x < width / 2 else "end"
    return (
        f'<div class="scroll"><svg viewBox="0 0 {width} {height}" style="width:100%;min-width:420px;display:block" role="img" aria-label="memory over time">'
        f'<path d="{path}" fill="var(--fwd)" stroke="var(--accent)"/>'
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="22" y2="{height - 20}" stroke="var(--bad)" stroke-dasharray="3 3"/>'
        f'<text x="{x:.1f}" y="15" text-anchor="{anchor}" fill="var(--fg)" font-size="13">peak {bytes_text(tap.peak)}{esc(name)}</text>'
        f'<text x="10" y="{height - 5}" fill="var(--dim)" font-size="12">0</text>'
        f'<text x="{width - 10}" y="{height - 5}" text-anchor="end" fill="var(--dim)" font-size="12">'
        f"{time_text(end)}</text></svg></div>"
    )
