"""Rewrites the table of measured ratios in docs/budgets.md, and ten rows of it in README.md, from `build/bench.json`: `python -m benchmarks.readme`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import OURS, show_time

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


TEN = (
    "gradient of sum(tanh(exp(a*2+1)) @ y), 8×8", "jvp of the same", "vmap(grad) of the same, 16 examples", "gradient of a 10-layer tanh chain, width 32",
    "per-example gradients, 64-128-128-10 MLP, 128 examples", "import", "weight norm 4096×4096, last dim, public API", "layer norm 8192×1024, public API",
    "batch norm 64×64×32×32, public API", "ragged attention, 4 heads, fwd+bwd",
)  # fmt: skip


def table(report: dict[str, Any], names: tuple[str, ...] | None = None) -> str:
    """A Markdown table: the work, our time, our time as a fraction of each peer's, the budget; of all rows, or of those with these names."""
    lines = ["| work | chainrule | ratio to peers | budget | |", "|---|---|---|---|---|"]
    for row in report["rows"] if names is None else [r for r in report["rows"] if r["name"] in names]:
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
    report = json.loads(source.read_text())
    for path, names in ((ROOT / "docs" / "budgets.md", None), (ROOT / "README.md", TEN)):
        text = path.read_text()
        if BEGIN not in text or END not in text:
            sys.exit(f"{path.name} has no {BEGIN} … {END} block")
        head, rest = text.split(BEGIN, 1)
        path.write_text(f"{head}{BEGIN}\n{table(report, names)}\n{END}{rest.split(END, 1)[1]}")
        print(f"{path.name}: table of ratios rewritten")


if __name__ == "__main__":
    main()
