"""Rewrites the table of measured ratios in README.md from `build/bench.json`: `python -m benchmarks.readme`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import OURS, show_time

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def table(report: dict[str, Any]) -> str:
    """A Markdown table: the work, our time, our time as a fraction of each peer's, the budget."""
    lines = ["| work | chainrule | ratio to peers | budget | |", "|---|---|---|---|---|"]
    for row in report["rows"]:
        ours = row["seconds"][OURS]
        peers = ", ".join(f"{ours / s:.2g} × {name}" for name, s in row["seconds"].items() if not name.startswith(OURS))
        budget = ", ".join(
            f"≤ {v['budget']:g} × {v['peer']}" if v["peer"] else f"≤ {show_time(v['budget'])}" for v in row["verdicts"]
        )
        lines.append(f"| {row['name']} | {show_time(ours)} | {peers} | {budget} | {'✓' if row['good'] else '✗'} |")
    machine, libraries = report["machine"], report["libraries"]
    versions = ", ".join(f"{name} {v}" for name, v in libraries.items() if v)
    where = f"Measured on {report['date']}, {machine['cpus']} cores ({machine['arch']}), Python {machine['python']}"
    return "\n".join([*lines, "", f"{where}, {versions}. Below 1 is faster than the peer."])


def main() -> None:
    source = ROOT / "build" / "bench.json"
    if not source.exists():
        sys.exit("there is no build/bench.json: run `make bench` first")
    readme = ROOT / "README.md"
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"README.md has no {BEGIN} … {END} block")
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    readme.write_text(f"{head}{BEGIN}\n{table(json.loads(source.read_text()))}\n{END}{tail}")
    print("README.md: table of ratios rewritten")


if __name__ == "__main__":
    main()
