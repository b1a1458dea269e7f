"""What is built of the list, and the line that says so at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chainrule.testing.laws import resolve

from .rules import ROWS

_DONE = pytest.StashKey[bool]()


def exists(name: str) -> bool:
    """Whether chainrule has an operator of this dotted name."""
    try:
        resolve(name)
    except AttributeError:
        return False
    return True


def absent(names: Iterable[str]) -> list[str]:
    """Those of the operators that are not there."""
    return [n for n in names if not exists(n)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Name the rows that are missing and those that fail, once, in runs that have tests of the list.

    With several workers only the settings of the whole suite reach the process that prints: a conftest there imports this.
    """
    reports = [r for kind in ("passed", "failed", "xfailed") for r in terminalreporter.stats.get(kind, [])]
    if config.stash.get(_DONE, False) or not any("tests/spec/" in r.nodeid for r in reports):
        return
    config.stash[_DONE] = True
    gone = {r.id: absent(r.operators) for r in ROWS}
    missing = [f"{k} ({', '.join(v)})" for k, v in gone.items() if v]
    failing = {i for r in reports if r.failed for k, ids in r.user_properties if k == "rows" for i in ids.split()}
    terminalreporter.section("specification")
    terminalreporter.write_line(
        f"spec rows: {len(ROWS) - len(missing)} built, {len(missing)} missing"
        + (": " + "; ".join(missing) if missing else "")
    )
    if failing:
        terminalreporter.write_line(f"spec rows with a failing test: {', '.join(sorted(failing))}", red=True)
