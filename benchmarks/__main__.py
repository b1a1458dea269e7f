"""Runs the benchmark modules (all, or those that are named), prints the ratios and writes `build/bench.json`.

    python -m benchmarks                 # everything
    python -m benchmarks engine          # one module
    python -m benchmarks engine -k jvp   # rows whose name contains a word

A module of this folder takes part when it has `rows(only: str = "") -> Iterable[Row]`; `only` filters by name before
anything is measured. Each module runs in a process of its own, all libraries side by side in it: the threads and the heap
that one module leaves behind would be the next one's luck. The exit code is 1 when a budget is missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.common import OURS, Row, show_time

HERE = Path(__file__).resolve().parent
REPORT = HERE.parent / "build" / "bench.json"
TOOLS = {"__main__", "common", "jit_cases", "readme", "ops_table"}


def modules(wanted: list[str]) -> list[str]:
    """Names of the benchmark modules, in order; unknown names are an error that lists the known ones."""
    known = sorted(m.name for m in pkgutil.iter_modules([str(HERE)]) if m.name not in TOOLS)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no benchmark module {', '.join(unknown)}; there are: {', '.join(known)}")
    return wanted or known


def show(row: Row) -> None:
    times = "  ".join(f"{peer} {show_time(s)}" for peer, s in row.seconds.items())
    print(f"{'✓' if row.good else '✗'} {row.name}\n    {times}")
    for peer, got, budget in row.verdicts():
        mark = "✓" if got <= budget else "✗"
        if peer:
            print(f"    {mark} {got:.3g} × {peer}, budget {budget:g} ×")
        else:
            print(f"    {mark} {show_time(got)}, budget {show_time(budget)}")
    for peer in row.unmeasured:
        print(f"    ? {peer} is not installed: its budget is open")


def as_json(module: str, row: Row) -> dict[str, object]:
    return {
        "module": module,
        "name": row.name,
        "seconds": dict(row.seconds),
        "verdicts": [{"peer": peer, "measured": got, "budget": budget} for peer, got, budget in row.verdicts()],
        "unmeasured": row.unmeasured,
        "good": row.good,
    }


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def measure(name: str, only: str) -> list[dict[str, object]]:
    """The rows of one module, printed as they come."""
    module = importlib.import_module(f"benchmarks.{name}")
    if not hasattr(module, "rows"):
        print(f"({name} has no rows(): it is a script of its own)")
        return []
    print(f"\n{name}", flush=True)
    report = []
    for row in module.rows(only):
        show(row)
        report.append(as_json(name, row))
    return report


def apart(name: str, only: str) -> list[dict[str, object]]:
    """The rows of one module, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "benchmarks", name, "-k", only, "--json", str(path)]
        subprocess.run(command, check=False)
        if not path.exists():
            sys.exit(f"benchmark module {name} failed")
        return json.loads(path.read_text())["rows"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="benchmark modules; all when none is given")
    parser.add_argument("-k", dest="only", default="", help="only rows whose name contains this")
    parser.add_argument("--json", type=Path, default=REPORT, help="where the report goes")
    args = parser.parse_args()

    names = modules(args.modules)
    report = measure(names[0], args.only) if len(names) == 1 else [r for n in names for r in apart(n, args.only)]
    missed = sum(not r["good"] for r in report)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    libraries = {lib: installed(lib) for lib in (OURS, "numpy", "torch", "jax", "autograd")}
    machine = {"cpus": os.cpu_count(), "arch": platform.machine(), "python": platform.python_version()}
    document = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "libraries": libraries, "rows": report}
    args.json.write_text(json.dumps(document, indent=1) + "\n")
    if len(names) > 1 or len(report) > 1:
        print(f"\n{len(report) - missed} of {len(report)} within budget", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
