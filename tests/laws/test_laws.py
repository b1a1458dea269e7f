"""The laws over every sample of every op."""

from __future__ import annotations

import pytest

import chainrule
from chainrule.core.samples import SAMPLES
from chainrule.testing.laws import Case, case_of, check

CASES = [(s, cx) for s in SAMPLES for cx in ((False, True) if s.cx else (False,))]
# The fast part: the first sample of every op.
FIRST = set({s.name: i for i, (s, _) in reversed(list(enumerate(CASES)))}.values())


def _params() -> list[object]:
    return [
        pytest.param(s, cx, id=f"{s!r}{'-complex' if cx else ''}", marks=[pytest.mark.fast] if i in FIRST else [])
        for i, (s, cx) in enumerate(CASES)
    ]


@pytest.mark.parametrize(("sample", "cx"), _params())
def test_laws(sample: object, cx: bool) -> None:
    check(case_of(sample, cx))


def test_there_are_samples() -> None:
    assert len(CASES) > 300
    assert isinstance(case_of(SAMPLES[0], False), Case)
    assert chainrule.__version__
