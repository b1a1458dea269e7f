"""Steps over the nesting dim: with the ragged dims they are those of all rows, alone they need components of equal sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as ct

from .harness import close

nested, func, F = ct.nested, ct.func, ct.nn.functional
SEVERAL: dict[str, Callable[[Any, Any], Any]] = {
    **{n: (lambda x, d, n=n: getattr(x, n)(d)) for n in "sum mean amax amin var std logsumexp nansum".split()},
    "norm": lambda x, d: ct.linalg.vector_norm(x, dim=d),
    "norm 3": lambda x, d: ct.linalg.vector_norm(x, 3, dim=d),
}
SINGLE: dict[str, Callable[[Any, Any], Any]] = {
    **{
        n: (lambda x, d, n=n: getattr(x, n)(d))
        for n in "prod cumsum cumprod softmax log_softmax logcumsumexp flip".split()
    },
    **{n: (lambda x, d, n=n: getattr(x, n)(d).values) for n in "sort max min median cummax".split()},
    "descending": lambda x, d: x.sort(d, descending=True).values,
    "kthvalue": lambda x, d: x.kthvalue(2, d).values,
    "topk": lambda x, d: x.topk(2, d).values,
    "argmax": lambda x, d: x.argmax(d),
    "any": lambda x, d: (x > 0).any(d),
    "roll": lambda x, d: x.roll(1, d),
    "diff": lambda x, d: x.diff(dim=d),
    "normalize": lambda x, d: F.normalize(x, dim=d),
}
# What all components are joined to, and which dims of the nest and of the joined tensor are reduced.
JOINED: dict[str, tuple[list[tuple[int, ...]], Any, Callable[[list[Any]], Any], Any]] = {
    "rows": ([(3, 4), (0, 4), (2, 4)], (0, 1), ct.cat, 0),
    "all of rows": ([(3, 4), (0, 4), (2, 4)], (0, 1, 2), ct.cat, (0, 1)),
    "columns": ([(4, 3), (4, 1), (4, 2)], (0, 2), lambda cs: ct.cat(cs, 1), 1),
    "images": ([(2, 3, 2), (3, 1, 2), (1, 4, 2)], (0, 1, 2), lambda cs: ct.cat([c.reshape(-1, 2) for c in cs]), 0),
    "bands": ([(2, 3, 2), (3, 3, 2), (1, 3, 2)], (0, 1), ct.cat, 0),
    "equal": ([(3, 4)] * 3, 0, ct.stack, 0),
    "equal, kept": ([(3, 4)] * 3, (0, 2), ct.stack, (0, 2)),
}


def compare(f: Callable[[Any], Any], g: Callable[[list[Any]], Any], shapes: list[tuple[int, ...]]) -> None:
    """``f`` of the nest and ``g`` of the list of its components, in value and in derivatives of both orders."""
    rng = np.random.default_rng(len(shapes[0]))
    sizes = [int(np.prod(s)) for s in shapes]
    v, t = ct.tensor(rng.normal(size=sum(sizes))), ct.tensor(rng.normal(size=sum(sizes)))
    parts = lambda v: [p.reshape(s) for p, s in zip(v.split(sizes), shapes, strict=True)]

    def a(v: Any) -> Any:
        y = f(nested.as_nested_tensor(parts(v)))
        return ct.stack(y.unbind()) if y.is_nested else y

    def b(v: Any) -> Any:
        return g(parts(v))

    close(a(v), b(v), "value")
    if not b(v).dtype.is_floating_point:
        return
    number = lambda h: lambda v: (h(v).sin() * ct.arange(1, h(v).numel() + 1).reshape(h(v).shape)).sum()
    for how, program in {
        "grad": func.grad,
        "jvp": lambda h: lambda v: func.jvp(h, (v,), (t,))[1],
        "jvp of grad": lambda h: lambda v: func.jvp(func.grad(h), (v,), (t,))[1],
        "grad of grad": lambda h: func.grad(lambda v: (func.grad(h)(v) * t).sum()),
        "grad of jvp": lambda h: func.grad(lambda v: func.jvp(h, (v,), (t,))[1]),
    }.items():
        close(program(number(a))(v), program(number(b))(v), how)


@pytest.mark.parametrize("kind", JOINED)
@pytest.mark.parametrize("name", SEVERAL)
def test_reductions(name: str, kind: str) -> None:
    shapes, dim, join, joined = JOINED[kind]
    compare(lambda x: SEVERAL[name](x, dim), lambda cs: SEVERAL[name](join(cs), joined), shapes)


@pytest.mark.parametrize("name", SINGLE)
def test_along_components_of_equal_sizes(name: str) -> None:
    compare(lambda x: SINGLE[name](x, 0), lambda cs: SINGLE[name](ct.stack(cs), 0), [(3, 4)] * 3)


@pytest.mark.parametrize(
    "f", [lambda x: x.sum(0), lambda x: x.var(0), lambda x: x.logsumexp((0, 2)), lambda x: x.amax(0)]
)
def test_sizes_that_differ_teach(f: Any) -> None:
    x = nested.nested_tensor([np.ones((2, 3)), np.ones((2, 3)), np.ones((1, 3))])
    with pytest.raises(
        ct.ChainruleError, match=r"dimension 1 component 0 has size 2 and component 2 has 1.*dim=\(0, 1"
    ):
        f(x)
    with pytest.raises(ct.ChainruleError, match=r"component 2 has 1.*to_padded_tensor"):
        x.softmax(0)


def test_repeats_of_components() -> None:
    x = nested.nested_tensor([[1.0, 2.0], [3.0]])
    assert x.repeat(2, 1).tolist() == [[1, 2], [3], [1, 2], [3]] and x.repeat(0, 1).tolist() == []
    assert x.repeat(2, 2).tolist() == [[1, 2, 1, 2], [3, 3]] * 2
    assert x.repeat_interleave(2, dim=0).tolist() == [[1, 2], [1, 2], [3], [3]]
    g = func.grad(lambda x: (x.repeat(2, 1) * nested.nested_tensor([[1.0, 2.0], [3.0], [4.0, 5.0], [6.0]])).sum())(x)
    assert g.tolist() == [[5, 7], [9]]
