"""Products of matrices and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, vmap


@pytest.mark.parametrize("shapes", [((3,), (3, 2)), ((2, 3), (3,)), ((3,), (3,)), ((4, 2, 3), (3,)), ((3,), (4, 3, 2))])
@pytest.mark.parametrize("cx", [False, True])
def test_products_with_vectors_in_nested_maps(shapes: Any, cx: bool) -> None:
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
                make(*([5] if o == 0 else []), *([6] if i == 0 else []), *s)
                for s, o, i in zip(shapes, outer, inner, strict=True)
            )
            g = grad(loss, argnums=(0, 1))
            got = vmap(vmap(g, in_dims=inner), in_dims=outer)(a, b)
            pick = lambda x, o, i, p, q: (x[p] if o == 0 else x)[q] if i == 0 else (x[p] if o == 0 else x)
            for p, q in ((0, 0), (4, 5), (2, 1)):
                want = g(pick(a, outer[0], inner[0], p, q), pick(b, outer[1], inner[1], p, q))
                for have, w in zip(got, want, strict=True):
                    have = have[p] if have.shape[0] == 5 and 0 in outer else have
                    np.testing.assert_allclose(have[q].numpy(), w.numpy(), rtol=1e-12, atol=1e-12)
