"""The laws over every sample of every op."""

from __future__ import annotations

import pytest

import chainrule
from chainrule.core.samples import SAMPLES
from chainrule.testing.laws import Case, case_of, check

CASES = [(s, cx) for s in SAMPLES for cx in ((False, True) if s.cx else (False,))]


@pytest.mark.parametrize(("sample", "cx"), CASES, ids=[f"{s!r}{'-complex' if cx else ''}" for s, cx in CASES])
def test_laws(sample: object, cx: bool) -> None:
    check(case_of(sample, cx))


def test_there_are_samples() -> None:
    assert len(CASES) > 300
    assert isinstance(case_of(SAMPLES[0], False), Case)
    assert chainrule.__version__
