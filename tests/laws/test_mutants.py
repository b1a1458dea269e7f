"""The mutants: each way to bend a rule is noticed by a law, and nothing stays bent."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule
from chainrule.core.op import OPS
from chainrule.testing.laws import Case, LawError, check
from chainrule.testing.mutants.bend import Mutant, Slot, mutated, ways

pytestmark = pytest.mark.fast
X = np.array([0.3, -1.2, 0.7])
Z = X + 1j * X[::-1]
INDEX = chainrule.tensor([2, 0])
GATHER = Case("gather", lambda x, i=INDEX: chainrule.gather(x, 0, i), [X], [INDEX.numpy()])
CASES = {
    Mutant(Slot("sin", "push", 0), "scaled by 1.001"): Case("sin", chainrule.sin, [X]),
    Mutant(Slot("sin", "push", 0), "dropped"): Case("sin", chainrule.sin, [X]),
    Mutant(Slot("sin", "push", 0), "conjugated"): Case("sin", chainrule.sin, [Z]),
    Mutant(Slot("mul", "push", 1), "dropped"): Case("mul", lambda a, b: a * b, [X, X[::-1].copy()]),
    Mutant(Slot("gather", "batch", 1), "of another example"): GATHER,
}


@pytest.mark.parametrize("mutant", CASES, ids=str)
def test_a_mutant_is_noticed_and_goes(mutant: Mutant) -> None:
    case, o = CASES[mutant], OPS[mutant.slot.op]
    check(case)  # what an op works out when it is first used is there then
    before = {k: v for k, v in o.__dict__.items() if k not in ("_keeps", "keep_one")}
    with pytest.raises(LawError), mutated(mutant):
        check(case)
    assert {k: v for k, v in o.__dict__.items() if k not in ("_keeps", "keep_one")} == before
    check(case)


def test_only_complex_slots_are_conjugated() -> None:
    slot = Slot("sin", "push", 0)
    assert [m.way for m in ways(slot, frozenset({"nonzero"}))] == ["scaled by 1.001", "dropped"]
    assert "conjugated" in [m.way for m in ways(slot, frozenset({"nonzero", "complex"}))]
