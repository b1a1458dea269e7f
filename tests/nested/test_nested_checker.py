"""The judge itself: it rejects a wrong value, a wrong derivative, a wrong structure and a function that mixes components."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as ct

from .harness import Case, check_derivatives, check_values, check_vmap_derivatives


def off(x: Any) -> Any:
    """Right in value, wrong by a thousandth in its derivative."""
    return x.sin() if not x.is_nested else x.sin() + 0.001 * (x - x.detach())


@pytest.mark.parametrize(
    ("case", "check"),
    [
        (Case("value", lambda x: x.sin() * (1.001 if x.is_nested else 1)), check_values),
        (Case("derivative", off), check_derivatives),
        (Case("vmap", off), check_vmap_derivatives),
        (Case("structure", lambda x: x.sum(-1, keepdim=x.is_nested)), check_values),
        (Case("mixed", lambda x: x - x.mean() if x.is_nested else x, component=lambda c: c), check_derivatives),
    ],
    ids=lambda v: getattr(v, "name", ""),
)
def test_the_judge_rejects(case: Case, check: Any) -> None:
    with pytest.raises(AssertionError):
        check(case)


def test_the_judge_accepts() -> None:
    good = Case("good", lambda x: ct.sin(x))
    check_values(good)
    check_derivatives(good)
    check_vmap_derivatives(good)
