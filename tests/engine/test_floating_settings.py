"""What the caller asks NumPy to do about 0/0 and overflow does not change what an op does: there they are values."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.registry import PUBLIC, is_pointwise
from chainrule.core.tree import flatten
from chainrule.func import grad, jvp, vjp, vmap

VALUES = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-40, 800.0, -800.0], np.float32)


@contextmanager
def strict() -> Iterator[None]:
    """A caller who wants to hear of everything."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


def _pointwise() -> list[str]:
    found = []
    for name, f in sorted(PUBLIC.items()):
        op = getattr(f, "op", None)
        if is_pointwise(op) and op.arity in (1, 2) and op.differentiable and not name.endswith("_"):
            found.append(name)
    return found


def _same(got: Any, want: Any) -> None:
    for a, b in zip(flatten(got)[0], flatten(want)[0], strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_every_pointwise_function_and_its_derivative() -> None:
    names = _pointwise()
    assert len(names) > 80
    for name in names:
        f = PUBLIC[name]
        n = len([p for p in inspect.signature(f).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD])
        k = len(VALUES)
        xs = [cr.tensor(VALUES)] if n == 1 else [cr.tensor(np.repeat(VALUES, k)), cr.tensor(np.tile(VALUES, k))]

        def run(f: Any = f, xs: Any = xs) -> Any:
            y, pull = vjp(f, *xs)
            return y, pull(cr.ones_like(y)) if y.dtype.is_floating_point else ()

        try:
            want = run()
        except (RuntimeError, NotImplementedError, TypeError):
            continue  # of integers, or without a derivative
        with strict():
            got = run()
        _same(got, want)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x.log() * x).sum(),
        lambda x: (1 / x - x / x).exp().sum(),
        lambda x: (x @ x) * x.mean(),
        lambda x: x.softmax(0).log().sum(),
        lambda x: cr.logsumexp(x, 0) + x.cumsum(0).sum() + x.prod(),
        lambda x: cr.nn.functional.layer_norm(x, (12,)).sum() + x.std(),
    ],
)
def test_programs_in_every_transform(f: Any) -> None:
    x = cr.tensor(VALUES)
    runs = [
        lambda: f(x),
        lambda: grad(f)(x),
        lambda: jvp(f, (x,), (cr.ones(12),)),
        lambda: vmap(grad(f))(cr.stack([x, x * 2])),
        lambda: cr.autograd.grad(f(v := x.clone().requires_grad_()), v)[0],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = [r() for r in runs]
    with strict():
        got = [r() for r in runs]
    _same(got, want)


def test_the_callers_own_numpy_code_is_left_alone() -> None:
    with strict():
        cr.tensor([0.0]).log()
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))
