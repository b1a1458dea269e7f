"""``python -m chainrule.testing.conformance [matrix|errors|reference|record|page]``."""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m chainrule.testing.conformance", description=__doc__)
    parser.add_argument(
        "command", nargs="?", default="matrix", choices=("matrix", "errors", "reference", "record", "page")
    )
    # These may stand without a value: a Makefile passes on variables that are not set.
    for name, text in (
        ("only", "entry names or globs, comma-separated"),
        ("family", "families, comma-separated"),
        ("columns", "columns, comma-separated"),
        ("samples", "samples per entry and dtype (0: all; default 3)"),
        ("seed", "whatever is random follows from it (default 0)"),
        ("shard", "I/N: every Nth entry from the Ith on, I from 1"),
        ("lib", "chainrule (default) or torch"),
    ):
        parser.add_argument(f"--{name}", nargs="?", const="", default="", help=text)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for one entry")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--html", type=Path, help="write the page here")
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="store these results as PyTorch's in the package; with --columns, these alone",
    )
    parser.add_argument("--slowest", type=int, default=0, help="print the entries that took longest")
    parser.add_argument("--verbose", action="store_true", help="every failing sample, not the first of each cell")
    parser.add_argument("--quiet", action="store_true", help="no line per failing cell")
    return parser


def _names(text: str) -> list[str]:
    return [p.strip() for p in text.split(",") if p.strip()]


def _shard(text: str) -> tuple[int, int]:
    if not text:
        return 0, 1
    i, n = (int(p) for p in text.split("/"))
    if not 1 <= i <= n:
        raise SystemExit(f"--shard {text}: expected I/N with 1 <= I <= N")
    return i - 1, n


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0 when the run finished, whatever it found."""
    args = _parser().parse_args(argv)
    args.lib = args.lib or "chainrule"
    args.samples = int(args.samples or 3)
    args.seed = int(args.seed or 0)
    if args.command == "page":
        return run_page(args)
    from .database import select_entries

    entries = select_entries(_names(args.only), _names(args.family), _shard(args.shard))
    if args.command == "errors":
        from .extras import run_errors

        return run_errors(entries, args)
    if args.command == "reference":
        from .extras import run_reference

        return run_reference(entries, args)
    if args.command == "record":
        from .record import run_record

        return run_record(entries, args)
    return run_matrix(entries, args)


def run_page(args: argparse.Namespace) -> int:
    """`page`: the page again from results written before."""
    from .report import write_page

    if not args.json or not args.html:
        raise SystemExit("page needs --json (results to read) and --html (page to write)")
    write_page(args.html, json.loads(args.json.read_text(encoding="utf-8")))
    return 0


def progress(
    job: Callable[..., Any], items: Sequence[Any], args: argparse.Namespace, label: Callable[[Any], str]
) -> list[Any]:
    """Run all items in workers behind a progress bar; returns (item, outcome, result, seconds) in the items' order."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from .runner import run_all

    results: list[Any] = [None] * len(items)
    columns = (
        TextColumn("{task.description:<40.40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=len(items))
        for index, outcome, result in run_all(job, items, args.lib, jobs=args.jobs, timeout=args.timeout):
            results[index] = (items[index], outcome, result)
            bar.update(task, advance=1, description=label(items[index]))
    return results


def _judge(entry: Any, library: Any, options: Any) -> Any:
    from .entry import judge_entry

    start = time.perf_counter()
    row = judge_entry(entry, library, options)
    return row, time.perf_counter() - start


def matrix_rows(
    entries: Sequence[Any], args: argparse.Namespace, options: Any
) -> tuple[list[dict[str, Any]], list[tuple[float, str]]]:
    """Rows of the matrix in the entries' order, and the seconds each took."""
    from .entry import failed_row

    rows, seconds = [], []
    for entry, outcome, result in progress(functools.partial(_judge, options=options), entries, args, lambda e: e.name):
        if outcome == "done":
            rows.append(result[0])
            seconds.append((result[1], entry.name))
        else:
            rows.append(failed_row(entry, options, f"{outcome}: {result}"))
    return rows, seconds


def run_matrix(entries: Sequence[Any], args: argparse.Namespace) -> int:
    """The matrix: summary and failing cells to the terminal, JSON and HTML where asked."""
    from .adapters import load_library
    from .columns import COLUMNS
    from .entry import Options
    from .report import print_summary, write_page
    from .summary import baseline_path, document, failing_lines, headline, load_baseline, with_columns, write_json

    columns = tuple(_names(args.columns)) or COLUMNS
    if unknown := set(columns) - set(COLUMNS):
        raise SystemExit(f"no column {', '.join(sorted(unknown))}; there are: {', '.join(COLUMNS)}")
    options = Options(args.samples, args.seed, columns)
    version = load_library(args.lib).version
    start = time.perf_counter()
    rows, seconds = matrix_rows(entries, args, options)
    took = time.perf_counter() - start
    if not args.quiet:
        for line in failing_lines(rows, every=args.verbose):
            print(line)
    meta = {
        "library": args.lib,
        "version": version,
        "samples": args.samples,
        "seed": args.seed,
        "entries": len(rows),
    }
    result = document(rows, meta)
    print_summary(rows, args.lib)
    print(headline(rows))
    print(f"{took:.0f} s", file=sys.stderr)
    for s, name in sorted(seconds, reverse=True)[: args.slowest]:
        print(f"{s:8.2f} s  {name}", file=sys.stderr)
    if args.json:
        write_json(args.json, result)
    if args.baseline:
        write_json(baseline_path(), document(with_columns(load_baseline(), rows), meta))
    if args.html:
        write_page(args.html, result)
    return 0
