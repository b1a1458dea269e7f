"""The summary for the terminal and the self-contained page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from .columns import COLUMNS, NOT_APPLICABLE, RAISED, RIGHT, WRONG
from .summary import counts, exemptions, load_baseline


def print_summary(rows: Sequence[dict[str, Any]], library: str) -> None:
    """A table of columns with the number of right, wrong, raised and not applicable cells."""
    from rich.console import Console
    from rich.table import Table

    by = counts(rows)
    table = Table(title=f"{library}: {len(rows)} entries", title_justify="left")
    table.add_column("column")
    for name, style in ((RIGHT, "green"), (WRONG, "red"), (RAISED, "yellow"), (NOT_APPLICABLE, "dim")):
        table.add_column(name, justify="right", style=style)
    for column in (*COLUMNS, "all"):
        n = by[column]
        if sum(n.values()):
            table.add_row(
                column, *(str(n[s]) for s in (RIGHT, WRONG, RAISED, NOT_APPLICABLE)), end_section=column == COLUMNS[-1]
            )
    Console().print(table)


def write_page(path: Path, result: dict[str, Any]) -> None:
    """One HTML file with the matrix of `result` beside PyTorch's committed results; needs no network."""
    template = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")
    data = {
        "columns": COLUMNS,
        "ours": result,
        "torch": load_baseline(),
        "exemptions": [{"entry": e, "column": c, "reason": r} for (e, c), r in sorted(exemptions().items())],
    }
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.replace("/*DATA*/null", text), encoding="utf-8")
