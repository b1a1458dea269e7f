"""A map over no examples gives no results, of the shapes and types that one example would have given: every sample, in every nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.samples import SAMPLES, Sample
from chainrule.func import grad, jvp, vmap
from chainrule.testing.laws import case_of, outputs

CASES = [(s, cx) for s in SAMPLES for cx in ((False, True) if s.cx else (False,)) if case_of(s, cx).xs]


@pytest.mark.parametrize(("s", "cx"), CASES, ids=[f"{s!r}{'-complex' if cx else ''}" for s, cx in CASES])
def test_a_map_over_no_examples(s: Sample, cx: bool) -> None:
    case = case_of(s, cx)
    f, xs = outputs(case.f), case.tensors()
    ys = f(*xs)
    none = [x.unsqueeze(0)[:0] for x in xs]
    every = vmap(f, randomness="same")

    def total(h: Any) -> Any:
        return lambda *a: sum((y.abs() ** 2).sum() for y in h(*a))

    every_argument = tuple(range(len(xs)))
    _, tangents = jvp(every, tuple(none), tuple(none))
    for got, want in (
        (every(*none), ys),
        (tangents, ys),
        (vmap(grad(total(f), argnums=every_argument), randomness="same")(*none), xs),
        (grad(total(every), argnums=every_argument)(*none), xs),
    ):
        assert [(tuple(v.shape), v.dtype) for v in got] == [((0, *w.shape), w.dtype) for w in want]


def test_compiled_functions_and_loops_over_nothing() -> None:
    x = cr.empty(0, 3)
    square = cr.jit(lambda r: (r * r).sum())
    assert vmap(square)(x).shape == (0,) and vmap(grad(square))(x).shape == (0, 3)
    assert cr.jit(vmap(grad(square)))(x).shape == (0, 3) and vmap(square)(cr.ones(2, 3)).tolist() == [3.0, 3.0]
    assert cr.scan(lambda c, a: (c + a.sum(), c), cr.tensor(1.0), x)[1].shape == (0,)
    assert vmap(lambda r: r.sum(), chunk_size=2)(x).shape == (0,)
    assert vmap(lambda r: np.sum(np.sin(r)))(np.zeros((0, 3))).shape == (0,)
