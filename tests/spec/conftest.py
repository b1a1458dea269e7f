"""Tests of the specification's list carry their rows; what is missing or fails is named at the end of a run."""

from __future__ import annotations

import pytest

from .report import pytest_terminal_summary  # noqa: F401
from .rules import BY_ID


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(*ids): the rows of the specification's list that a test covers")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("row"):
            unknown = [i for i in mark.args if i not in BY_ID]
            if unknown:
                raise pytest.UsageError(f"{item.nodeid}: not in the list of rows: {unknown}")
            item.user_properties.append(("rows", " ".join(mark.args)))
