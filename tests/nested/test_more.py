"""Activations, losses, pieces, indices, writes, products and whole programs against the same on each component, in every mode."""

from __future__ import annotations

import pytest

from .cases_more import MORE
from .harness import Case, check_derivatives, check_empty, check_strided, check_values, check_vmap_derivatives

DIFFERENTIABLE = [c for c in MORE if c.differentiable]


@pytest.mark.parametrize("case", MORE, ids=str)
def test_values(case: Case) -> None:
    check_values(case)


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=str)
def test_derivatives(case: Case) -> None:
    check_derivatives(case)


@pytest.mark.parametrize("case", [c for c in DIFFERENTIABLE if c.vmap], ids=str)
def test_vmap_derivatives(case: Case) -> None:
    check_vmap_derivatives(case)


@pytest.mark.parametrize("case", MORE, ids=str)
def test_no_components_and_rows_apart_in_memory(case: Case) -> None:
    check_empty(case)
    check_strided(case)
