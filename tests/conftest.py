"""Settings for the whole suite: reproducible property tests, one torch thread per worker."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

# Printed by the process that collects, which under xdist never loads tests/spec/conftest.py.
from tests.spec.report import pytest_terminal_summary  # noqa: F401

# Two workers share two cores: more threads than that only wait for each other.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# CHAINRULE_EXAMPLES=5000 looks longer and at random; the default is the same examples on every machine.
_EXAMPLES = os.environ.get("CHAINRULE_EXAMPLES")
_COMMON = {
    "deadline": None,
    "report_multiple_bugs": False,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow],
}
settings.register_profile("ci", derandomize=True, database=None, max_examples=70, **_COMMON)
settings.register_profile("search", max_examples=int(_EXAMPLES or 70), **_COMMON)
settings.load_profile("search" if _EXAMPLES else "ci")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `long` run only when the marker expression names them."""
    if "long" in (config.getoption("-m") or ""):
        return
    skip = pytest.mark.skip(reason="takes minutes: ask for it with -m long")
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(skip)
