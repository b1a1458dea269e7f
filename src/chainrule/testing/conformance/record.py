"""The committed list of right cells that the fast tests hold the library to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .columns import COLUMNS, RIGHT
from .database import Entry, all_entries
from .entry import Options
from .precision import COLUMN_TYPES

FAST = Options(samples=1, seed=0, columns=tuple(c for c in COLUMNS if c not in COLUMN_TYPES))
DEFAULT_PATH = Path("tests/conformance/expected.json")


def right_columns(row: dict[str, Any]) -> list[str]:
    """The columns of a row that are right."""
    return [c for c, cell in row["cells"].items() if cell["status"] == RIGHT]


def load_expected(path: Path) -> dict[str, list[str]]:
    """Entry name -> its right columns, as recorded."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_expected(path: Path, expected: dict[str, list[str]]) -> None:
    """One line per entry, sorted by name, so that changes read well in a diff."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"  {json.dumps(n)}: {json.dumps(expected[n], ensure_ascii=False)}" for n in sorted(expected) if expected[n]
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def run_record(entries: Sequence[Entry], args: argparse.Namespace) -> int:
    """`record`: judge the entries as the fast tests do and rewrite their lines of the committed list."""
    from .cli import matrix_rows

    path = args.json or DEFAULT_PATH
    rows, _ = matrix_rows(entries, args, FAST)
    known = {e.name for e in all_entries()}
    expected = {n: c for n, c in load_expected(path).items() if n in known}
    gained = lost = 0
    for row in rows:
        before, now = set(expected.get(row["name"], ())), right_columns(row)
        gained, lost = gained + len(set(now) - before), lost + len(before - set(now))
        for column in sorted(before - set(now)):
            print(f"lost: {row['name']}  {column}")
        expected[row["name"]] = now
    write_expected(path, expected)
    print(f"{path}: {sum(map(len, expected.values()))} right cells; {gained} gained, {lost} lost")
    return 0
