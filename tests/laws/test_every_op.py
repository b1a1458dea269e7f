"""Every differentiable op is differentiated by a law, on one of the samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule import func
from chainrule.core.forward import Forward
from chainrule.core.op import OPS
from chainrule.core.samples import SAMPLES
from chainrule.testing.laws import _jvp_map, _vjp_map, case_of, like, outputs

# Ops whose derivative no law can ask for, and why.
BEYOND = {
    "leave_germ": "called where no derivative is taken around it: see `settled` in ops/linalg/germ.py",
    "_test_warn_in_autograd": "its derivative warns, and warnings are errors here: see tests/ops/elementwise/test_warn.py",
    "nearbyint": "the nearest mode of grid_sample detaches its coordinates first",
}
# The ops that take nests apart and join them have their laws in tests/nested, recorded programs and loops theirs in tests/jit.
ELSEWHERE = ("chainrule.nested", "chainrule.jit.")
DIFFERENTIABLE = frozenset(
    n
    for n, o in OPS.items()
    if o.differentiable and not str(getattr(o.body or o.spec, "__module__", "")).startswith(ELSEWHERE)
)


def test_every_differentiable_op_is_differentiated_by_a_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward mode of the samples and of their first derivatives, as in `check_tangent` and `check_second`, runs them all.

    An op that is missing here needs a ``sample(...)`` beside it.
    """
    seen: set[str] = set()

    def noting(method: Any) -> Any:
        def run(self: Forward, op: Any, *args: Any) -> Any:
            seen.add(op.name)
            return method(self, op, *args)

        return run

    for name in ("run", "run_unary", "run_binary"):
        monkeypatch.setattr(Forward, name, noting(getattr(Forward, name)))
    rng = np.random.default_rng(0)
    for s in SAMPLES:
        for cx in (False, True) if s.cx else (False,):
            case = case_of(s, cx)
            f, xs = outputs(case.f), case.tensors()
            ts, gs = like(rng, xs), like(rng, f(*xs))
            func.jvp(_vjp_map(f, len(xs)), (*xs, *gs), (*ts, *gs))
            func.jvp(_jvp_map(f, len(xs)), (*xs, *ts), (*ts, *ts))
    assert sorted(DIFFERENTIABLE - seen - set(BEYOND)) == []
    assert sorted(seen & set(BEYOND)) == [], "a law reaches these: they need no exception"
