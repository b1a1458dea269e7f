"""Counting cells and writing them down: terminal, JSON, and the baseline of PyTorch's own results."""

from __future__ import annotations

import functools
import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from .columns import COLUMNS, NOT_APPLICABLE, RAISED, RIGHT, WRONG

BASELINE = "baseline_torch.json"


def counts(rows: Iterable[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Number of cells of each status, by column and under ``"all"``."""
    by: dict[str, Counter[str]] = {c: Counter() for c in (*COLUMNS, "all")}
    for row in rows:
        for column, cell in row["cells"].items():
            by[column][cell["status"]] += 1
            by["all"][cell["status"]] += 1
    return by


def headline(rows: Sequence[dict[str, Any]]) -> str:
    """One line: right cells of all cells of the differentiable entries, and of all applicable cells of every entry."""
    differentiable = [r for r in rows if r["differentiable"]]
    d, a = counts(differentiable)["all"], counts(rows)["all"]
    applicable = sum(a.values()) - a[NOT_APPLICABLE]
    return (
        f"{len(differentiable)} differentiable entries: {d[RIGHT]} right of {sum(d.values())} cells "
        f"({d[WRONG]} wrong, {d[RAISED]} raised, {d[NOT_APPLICABLE]} not applicable); "
        f"all {len(rows)} entries: {a[RIGHT]} right of {applicable} applicable"
    )


def failing_lines(rows: Iterable[dict[str, Any]], *, every: bool = False) -> Iterable[str]:
    """One line for every failing cell (its first failing sample), or with `every` for each failing sample kept."""
    for row in rows:
        for column, cell in row["cells"].items():
            details = cell.get("details", ())
            for d in details if every else details[:1]:
                share = f"{cell['failing']}/{cell['of']}"
                yield f"{row['name']}  {column}  {d['status']} {share}  {d['dtype']} {d['sample']}: {d['message']}"


def document(rows: Sequence[dict[str, Any]], meta: dict[str, Any]) -> dict[str, Any]:
    """What is written as JSON: nothing in it depends on the time or on the order of execution."""
    by = counts(rows)
    totals = {c: {s: n[s] for s in (RIGHT, WRONG, RAISED, NOT_APPLICABLE)} for c, n in by.items()}
    return {"meta": meta, "summary": headline(rows), "totals": totals, "entries": sorted(rows, key=lambda r: r["name"])}


def write_json(path: Path, content: dict[str, Any]) -> None:
    """JSON with one line per element of a top-level list, so that changes read well in a diff."""
    dump = functools.partial(json.dumps, ensure_ascii=False, separators=(",", ":"))
    parts = []
    for key, value in content.items():
        body = "[\n" + ",\n".join(map(dump, value)) + "\n]" if isinstance(value, list) else dump(value)
        parts.append(f"{dump(key)}:{body}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def baseline_path() -> Path:
    return Path(str(resources.files(__package__))) / BASELINE


def load_baseline() -> dict[str, Any] | None:
    """PyTorch's committed results, or None before they were made."""
    path = baseline_path()
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def with_columns(before: dict[str, Any] | None, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, with the cells of columns that were not run this time as they were `before`."""
    known = {r["name"]: r["cells"] for r in (before or {"entries": []})["entries"]}
    out = []
    for row in rows:
        cells = {**known.get(row["name"], {}), **row["cells"]}
        out.append({**row, "cells": {c: cells[c] for c in COLUMNS if c in cells}})
    return out


def exemptions() -> dict[tuple[str, str], str]:
    """(entry, column) -> reason, from ``exemptions.toml``."""
    text = (Path(str(resources.files(__package__))) / "exemptions.toml").read_text(encoding="utf-8")
    out = {}
    for item in tomllib.loads(text).get("exempt", []):
        if not item.get("reason"):
            raise ValueError(f"exemption of {item['entry']} has no reason")
        for column in item.get("columns", COLUMNS):
            out[item["entry"], column] = item["reason"]
    return out
