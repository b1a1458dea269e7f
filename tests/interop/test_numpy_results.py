"""What transforms of functions of arrays hand back: arrays of the caller's own, to be written to, and functions that read no later writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from chainrule.func import grad, hessian, jacfwd, jacrev, jvp, linearize, value_and_grad, vjp, vmap

X = np.array([0.3, -0.7, 1.9])
C = np.array([1.0, 2.0, 3.0])
FIXED = C.copy()
FIXED.setflags(write=False)
RESULTS: dict[str, Any] = {
    "grad": lambda x: grad(np.sum)(x),
    "grad of a constant product": lambda x: grad(lambda a: np.sum(a * FIXED))(x),
    "grad, several": lambda x: grad(lambda a, b: np.sum(a + b), argnums=(0, 1))(x, x.copy()),
    "grad, a dict": lambda x: grad(lambda d: np.sum((d["a"] + d["b"]) * C))({"a": x, "b": x.copy()}),
    "value_and_grad": lambda x: value_and_grad(np.sum)(x)[1],
    "vjp": lambda x: vjp(lambda a: np.broadcast_to(a, (2, 3)), x)[0],
    "pull": lambda x: vjp(lambda a, b: a + b, x, x.copy())[1](C),
    "jvp": lambda x: jvp(lambda a: a, (x,), (C,))[1],
    "jvp of a constant": lambda x: jvp(lambda a: FIXED, (x,), (C,))[0],
    "linearize": lambda x: linearize(lambda a: a[::-1], x)[1](C),
    "vmap": lambda x: vmap(lambda a: FIXED)(x),
    "vmap of a number": lambda x: vmap(lambda a: 1.0)(x),
    "jacfwd": lambda x: jacfwd(lambda a: a)(x),
    "jacrev": lambda x: jacrev(np.sum)(x),
    "hessian": lambda x: hessian(lambda a: np.sum(a))(x),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_can_be_written_to(name: str) -> None:
    """Element by element, without a change of another result, of an argument or of what comes next."""
    x, c = X.copy(), C.copy()
    leaves = lambda r: list(r.values()) if isinstance(r, dict) else list(r) if isinstance(r, tuple) else [r]
    want = [v.copy() for v in leaves(RESULTS[name](x))]
    got = leaves(RESULTS[name](x))
    for k, v in enumerate(got):
        v.flat[0] = 17.0
        assert np.count_nonzero(v == 17.0) == 1
        for other, w in zip(got[k + 1 :], want[k + 1 :], strict=True):
            np.testing.assert_array_equal(other, w)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(C, c)
    for v, w in zip(leaves(RESULTS[name](x)), want, strict=True):
        np.testing.assert_array_equal(v, w)


def test_later_writes_to_arguments_are_not_seen() -> None:
    """``vjp`` and ``linearize`` hand out functions that live on: the caller may go on with its arrays."""
    x, y = X.copy(), X.copy()
    _, pull = vjp(lambda a, b: a * a * b["b"], x, {"b": y})
    _, push = linearize(lambda a: np.sin(a) * a, x)
    x[:], y[:] = 0, 0
    np.testing.assert_allclose(pull(C)[0], 2 * X * X * C)
    np.testing.assert_allclose(pull(C)[1]["b"], X * X * C)
    np.testing.assert_allclose(push(C), (np.cos(X) * X + np.sin(X)) * C)


def test_writes_of_the_function_show_in_the_argument() -> None:
    def f(a: Any) -> Any:
        y = a * a
        a[0] = 5.0
        return y

    for run in (lambda x: vjp(f, x)[1](C)[0], lambda x: linearize(f, x)[1](C), lambda x: jvp(f, (x,), (C,))[1]):
        x = X.copy()
        np.testing.assert_allclose(run(x), 2 * X * C)
        assert x.tolist() == [5.0, *X[1:]]


def test_a_number_of_numpys_cannot_be_mapped_over() -> None:
    with pytest.raises(ValueError, match="vmap"):
        vmap(np.sin)(np.float64(2.0))
