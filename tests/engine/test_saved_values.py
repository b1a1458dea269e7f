"""What reverse mode saved stays as it was, whoever writes to the tensor afterwards: every sample of every op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.samples import SAMPLES
from chainrule.testing.laws import Case, case_of, like, outputs


def _without_recording(x: Any) -> None:
    with cr.no_grad():
        x.mul_(0.5)


def _view_without_recording(x: Any) -> None:
    with cr.no_grad():
        x[...].mul_(0.5)


WRITES: dict[str, Callable[[Any], Any]] = {
    "detach": lambda x: x.detach().mul_(0.5),
    "data": lambda x: x.data.add_(3),
    "no_grad": _without_recording,
    "a view under no_grad": _view_without_recording,
}


def gradients(case: Case, write: Callable[[Any], Any] | None, leaf: bool) -> list[Any] | None:
    xs = [x.requires_grad_() for x in case.tensors()]
    made = xs if leaf else [x * 1 for x in xs]
    ys = [y for y in outputs(case.f)(*made) if y.requires_grad]
    if not ys:
        return None
    gs = like(np.random.default_rng(0), [y.detach() for y in ys])
    if write is not None:
        for v in (*made, *(() if leaf else ys)):
            write(v)
    cr.autograd.backward(ys, gs)
    return [None if x.grad is None else x.grad.numpy().copy() for x in xs]


@pytest.mark.parametrize("leaf", [True, False], ids=["leaves", "results"])
@pytest.mark.parametrize("how", WRITES)
def test_writes_reach_nothing_that_was_saved(how: str, leaf: bool) -> None:
    judged, wrong = 0, []
    for s in SAMPLES:
        case = case_of(s, False)
        plain = gradients(case, None, leaf)
        if plain is None:
            continue
        judged += 1
        try:
            got = gradients(case, WRITES[how], leaf)
        except cr.ChainruleError as e:
            if "more than one element" in str(e):  # the result of expand
                continue
            raise
        for a, b in zip(plain, got or [], strict=True):
            if (a is None) != (b is None) or (a is not None and not np.allclose(a, b, equal_nan=True)):
                wrong.append(str(case))
                break
    assert judged > 800
    assert not wrong, f"{len(wrong)} of {judged}: {wrong[:8]}"


WITH_PLACES = {
    "max": lambda x: x.max(1),
    "median": lambda x: x.median(1),
    "mode": lambda x: x.mode(1),
    "kthvalue": lambda x: x.kthvalue(2, 1),
    "cummax": lambda x: x.cummax(1),
    "sort": lambda x: x.sort(1),
    "topk": lambda x: x.topk(2, 1),
    "max_pool1d": lambda x: cr.nn.functional.max_pool1d(x, 2, return_indices=True),
    "native_dropout": lambda x: cr.native_dropout(x, 0.0, True),
}


@pytest.mark.parametrize("name", WITH_PLACES)
def test_places_that_are_written_to_leave_the_derivative_alone(name) -> None:
    """Indices and masks leave an op as plain tensors, while the tape keeps them."""
    f, x = WITH_PLACES[name], cr.tensor([[3.0, 1.0, 4.0, 1.5], [2.0, 7.0, 1.0, 8.0]], dtype=cr.float64)

    def plain(x):
        v, _ = f(x)
        return (v**2).sum()

    def written(x):
        v, places = f(x)
        places.zero_()
        return (v**2).sum()

    want = cr.func.grad(plain)(x).tolist()
    for _ in range(3):  # the second and the third call may run as straight-line code
        assert cr.func.grad(written)(x).tolist() == want
        assert cr.func.vmap(cr.func.grad(written), randomness="same")(x[None])[0].tolist() == want
        leaf = x.clone().requires_grad_()
        written(leaf).backward()
        assert leaf.grad.tolist() == want
