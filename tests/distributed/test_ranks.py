"""The checks of this folder, on 2 and on 4 ranks: one session of processes for each number runs them all (see session.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.runs import results_of
from tests.distributed.session import MODULES, all_checks


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the workers of this test run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "popen-gw" in base.name else base


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("name", ["session", *all_checks(MODULES)])
def test_on_ranks(name: str, n: int, shared: Path) -> None:
    results = results_of(n, shared, MODULES)
    assert name in results, f"not reached: {results['session']['answer']}"
    assert results[name]["answer"] == "ok", results[name]["answer"]
