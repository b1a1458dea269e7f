"""Rows that are not built yet are named at the end of a run, never left out silently."""

from __future__ import annotations

import pytest

from .judge import absent
from .rules import BY_ID, ROWS


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(*ids): the rows of the specification's list that a test covers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("row"):
            unknown = [i for i in mark.args if i not in BY_ID]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid}: not in the list of rows: {unknown}")
            item.user_properties.append(("rows", " ".join(mark.args)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    gone = {r.id: absent(r.operators) for r in ROWS}
    missing = [f"{k} ({', '.join(v)})" for k, v in gone.items() if v]
    failing = sorted(
        {
            i
            for report in terminalreporter.stats.get("failed", [])
            for name, ids in getattr(report, "user_properties", ())
            if name == "rows"
            for i in ids.split()
        }
    )
    terminalreporter.section("specification")
    terminalreporter.write_line(
        f"spec rows: {len(ROWS) - len(missing)} built, {len(missing)} missing"
        + (": " + "; ".join(missing) if missing else "")
    )
    if failing:
        terminalreporter.write_line(f"spec rows with a failing test: {', '.join(failing)}", red=True)
