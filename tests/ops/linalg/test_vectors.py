"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jacfwd, vmap


@pytest.mark.parametrize("shapes", [((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2))])
@pytest.mark.parametrize("cx", [False, True])
@pytest.mark.parametrize(("n", "m"), [(5, 6), (3, 3)], ids=["other sizes", "the same size everywhere"])
def test_products_with_vectors_in_nested_maps(shapes: Any, cx: bool, n: int, m: int) -> None:
    """Every way to map the two operands in two nested vmaps: their core ranks differ, so equal ranks do not mean equal leading axes."""
    rng = np.random.default_rng(0)

    def make(*s: int) -> Any:
        a = rng.standard_normal(s)
        return cr.tensor(a + 1j * rng.standard_normal(s) if cx else a)

    def loss(a: Any, b: Any) -> Any:
        y = (a @ b).sin().sum()
        return y.real + y.imag if cx else y

    for outer in ((0, 0), (0, None), (None, 0)):
        for inner in ((0, 0), (0, None), (None, 0)):
            a, b = (
                make(*([n] if o == 0 else []), *([m] if i == 0 else []), *s)
                for s, o, i in zip(shapes, outer, inner, strict=True)
            )
            g = grad(loss, argnums=(0, 1))
            got = vmap(vmap(g, in_dims=inner), in_dims=outer)(a, b)
            pick = lambda x, o, i, p, q: (x[p] if o == 0 else x)[q] if i == 0 else (x[p] if o == 0 else x)
            for p, q in ((0, 0), (n - 1, m - 1), (2, 1)):
                want = g(pick(a, outer[0], inner[0], p, q), pick(b, outer[1], inner[1], p, q))
                for have, w in zip(got, want, strict=True):
                    have = have[p]
                    np.testing.assert_allclose(have[q].numpy(), w.numpy(), rtol=1e-12, atol=1e-12)


def test_a_vector_as_long_as_the_batch() -> None:
    """The gradient of a captured vector is summed over the batch, also where both have the same size."""
    x = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
    for f in (lambda p, x: p @ x, lambda p, x: x @ p):
        got = grad(lambda x, f=f: jacfwd(lambda p: f(p, x) * 0.5)(x).sin().sum())(x)
        np.testing.assert_allclose(got.numpy(), 0.5 * np.cos(0.5 * x.numpy()), rtol=1e-12)
    w = cr.eye(3, dtype=cr.float64) * 2
    got = grad(lambda x: vmap(lambda a: (a @ x).sin())(w).sum())(x)
    np.testing.assert_allclose(got.numpy(), 2 * np.cos(2 * x.numpy()), rtol=1e-12)
