"""Every op of nested tensors against the same op on each component, whole programs among them: values, vmap, first and second order."""

from __future__ import annotations

import pytest

from .cases import CASES as FIRST
from .cases_layers_to_programs import MORE
from .harness import Case, check_derivatives, check_empty, check_strided, check_values, check_vmap_derivatives

CASES = [*FIRST, *MORE]
DIFFERENTIABLE = [c for c in CASES if c.differentiable]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values(case: Case) -> None:
    check_values(case)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


@pytest.mark.parametrize("case", [c for c in DIFFERENTIABLE if c.vmap], ids=str)
def test_vmap_derivatives(case: Case) -> None:
    check_vmap_derivatives(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_components(case: Case) -> None:
    check_empty(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_apart_in_memory(case: Case) -> None:
    check_strided(case)
