"""Every implemented entry of the operator database, one sample, all columns: what was right stays right.

``expected.json`` records the right cells; ``python -m chainrule.testing.conformance record`` rewrites it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from chainrule.testing.conformance.adapters import load_library
from chainrule.testing.conformance.database import Entry, all_entries
from chainrule.testing.conformance.entry import judge_entry, single_thread
from chainrule.testing.conformance.record import FAST, load_expected, right_columns

EXPECTED = load_expected(Path(__file__).with_name("expected.json"))
LIBRARY = load_library("chainrule")
ENTRIES = [e for e in all_entries() if e.name in EXPECTED or LIBRARY.has(e)]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_cells_are_as_recorded(entry: Entry) -> None:
    single_thread()
    row = judge_entry(entry, LIBRARY, FAST)
    right, expected = set(right_columns(row)), set(EXPECTED.get(entry.name, ()))
    lost = [f"{c}: {_why(row['cells'][c])}" for c in row["cells"] if c in expected - right]
    assert not lost, f"{entry.name} was right and is not:\n" + "\n".join(lost)
    gained = sorted(right - expected)
    assert not gained, f"{entry.name} is right in {', '.join(gained)}, which is not recorded: run the `record` command"


def test_every_recorded_entry_exists() -> None:
    names = {e.name for e in all_entries()}
    assert sorted(set(EXPECTED) - names) == []


def _why(cell: dict) -> str:
    details = cell.get("details")
    return (
        f"{details[0]['dtype']} {details[0]['sample']}: {details[0]['message']}" if details else cell.get("message", "")
    )
