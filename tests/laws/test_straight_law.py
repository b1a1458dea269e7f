"""What a call gives does not depend on the calls before it: samples whose code was written for other values, against the ops one by one.

A composition is noted on the values of one call and runs as code on those of the next ones. So the code is written on one set of values here
and judged on sets that would take every other way through it: other numbers, ties, zeros of both signs, one value everywhere, infinities
and NaN, and the same numbers in memory of another layout.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core import remembered_views as viewing
from chainrule.core import straight as code
from chainrule.core.samples import SAMPLES, Sample
from chainrule.core.tree import flatten
from chainrule.testing.laws import case_of

# What draws anew at every call has nothing to be compared with.
RANDOM = (
    "dropout",
    "rrelu",
    "multinomial",
    "bernoulli",
    "normal",
    "lowrank",
    "fractional",
    "poisson",
    "gumbel",
    "rand",
    "binomial",
)
CASES = [
    (s, cx) for s in SAMPLES for cx in ((False, True) if s.cx else (False,)) if not any(w in s.name for w in RANDOM)
]


def variants(x: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """The values that a later call may come with."""
    yield "other numbers", np.asarray(x * rng.uniform(0.6, 1.4, x.shape))
    yield "ties", np.round(x)
    yield "zero", x * 0.0
    yield "one value", np.full_like(x, 1.0)
    yield "a zero of the other sign", np.where(rng.uniform(size=x.shape) < 0.3, -0.0, x)
    yield "an infinity", np.where(np.arange(x.size).reshape(x.shape) == 0, np.inf, x)
    yield "a NaN", np.where(np.arange(x.size).reshape(x.shape) == x.size - 1, np.nan, x)
    yield "far out", x * 1e3
    yield "Fortran's order", np.asfortranarray(x)
    yield "every second", np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x


def layouts(x: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Memory in which views that differ elsewhere are one: the code of every layout must not be written by what holds there."""
    if x.ndim > 1 and x.size and x.shape[-1] == x.shape[-2]:
        step = x.itemsize
        line = np.ascontiguousarray(np.concatenate([x[..., 0, :], x[..., -1, 1:]], -1))
        yield "Hankel", np.lib.stride_tricks.as_strided(line, x.shape, (*line.strides[:-1], step, step))
    else:
        yield "Hankel", x
    yield "one row everywhere", np.broadcast_to(x[:1], x.shape) if x.ndim and x.size else x
    yield "Fortran's order", np.asfortranarray(x)


def run(f: Any, xs: list[np.ndarray], grad: bool, g: int) -> Any:
    """Results and cotangents as arrays, or the error."""
    leaves = [cr.from_numpy(x) for x in xs]
    try:
        if not grad:
            return [
                y.numpy() if isinstance(y, cr.Tensor) and not y.is_sparse else repr(y) for y in flatten(f(*leaves))[0]
            ]
        for x in leaves:
            x.requires_grad_()
        ys = [y for y in flatten(f(*leaves))[0] if isinstance(y, cr.Tensor)]
        out = [y.detach().numpy() for y in ys]
        rng = np.random.default_rng(g)
        live = [(y, cr.tensor(np.asarray(rng.standard_normal(y.shape))).to(y.dtype)) for y in ys if y.requires_grad]
        if live:
            got = cr.autograd.grad([y for y, _ in live], leaves, [v for _, v in live], allow_unused=True)
            out += [None if v is None else v.numpy() for v in got]
        return out
    except Exception as e:
        return type(e), str(e)


def differs(a: Any, b: Any) -> str:
    """'' if two runs gave the same, to the last digits that another order of sums leaves."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        return "" if a == b else f"{a!r:.200} instead of {b!r:.200}"
    for k, (v, w) in enumerate(zip(a, b, strict=True)):
        if not isinstance(w, np.ndarray) or not isinstance(v, np.ndarray):
            if (v is None) is not (w is None) or (w is not None and v != w):
                return f"result {k}: {v!r:.100} instead of {w!r:.100}"
            continue
        with np.errstate(all="ignore"):
            scale = float(np.max(np.abs(w), initial=0.0, where=np.isfinite(w))) if w.dtype.kind in "fc" else 0.0
            same = v.shape == w.shape and v.dtype == w.dtype
            if not (same and np.allclose(v, w, rtol=1e-10, atol=1e-12 * scale, equal_nan=w.dtype.kind in "fc")):
                return f"result {k}:\n{v}\ninstead of\n{w}"
    return ""


@pytest.mark.parametrize(("s", "cx"), CASES, ids=[f"{s!r}{'-complex' if cx else ''}" for s, cx in CASES])
def test_code_written_for_other_values(s: Sample, cx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "OFTEN", 1)  # compiled code recognises the calls
    monkeypatch.setattr(viewing, "OFTEN", 1)
    case = case_of(s, cx)
    rng = np.random.default_rng([7, *s.name.encode()])
    columns = zip(*(list(variants(x, rng)) for x in case.xs), strict=True)
    later = [
        (column[0][0], [np.asarray(v, x.dtype) for (_, v), x in zip(column, case.xs, strict=True)])
        for column in columns
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for grad in (False, True):
            for g in range(3):
                run(case.f, case.xs, grad, g)
            for k, (name, xs) in enumerate(later):
                got = run(case.f, xs, grad, k)
                code.PAUSED.append("here")
                try:
                    want = run(case.f, xs, grad, k)
                finally:
                    code.PAUSED.remove("here")
                assert not (why := differs(got, want)), (
                    f"{s!r}, {name}, {'with' if grad else 'without'} gradient: {why}"
                )


@pytest.mark.parametrize(("s", "cx"), CASES, ids=[f"{s!r}{'-complex' if cx else ''}" for s, cx in CASES])
def test_code_written_for_another_layout(s: Sample, cx: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code, "OFTEN", 1)
    case = case_of(s, cx)
    if not any(x.ndim > 1 for x in case.xs):
        return
    columns = zip(*(list(layouts(x)) for x in case.xs), strict=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for column in columns:
            earlier = [np.asarray(v, x.dtype) for (_, v), x in zip(column, case.xs, strict=True)]
            for grad in (False, True):
                code.forget()
                for g in range(3):
                    run(case.f, earlier, grad, g)
                got = run(case.f, case.xs, grad, 5)
                code.PAUSED.append("here")
                try:
                    want = run(case.f, case.xs, grad, 5)
                finally:
                    code.PAUSED.remove("here")
                assert not (why := differs(got, want)), (
                    f"{s!r}, after {column[0][0]}, {'with' if grad else 'without'} gradient: {why}"
                )


@pytest.mark.parametrize("grad", [False, True])
def test_a_result_never_shows_the_memory_of_an_argument(grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What only moves elements is a view of its argument in some layouts, and not in that of the example."""
    monkeypatch.setattr(code, "PAUSED", [])
    f = code.straight(lambda x: x.mT.reshape(-1))
    for x in (np.ones((3, 3)), np.ones((3, 3)), np.asfortranarray(np.ones((3, 3)))):
        leaf = cr.from_numpy(x).requires_grad_(grad)
        y = f(leaf)
        y.detach().mul_(2)
        assert (x == 1).all()
