"""Types: PyTorch's promotion over all pairs, casts, and 16-bit floats that round once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import chainrule

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
PAIRS = list(itertools.product(NAMES, NAMES))


def name(d: object) -> str:
    return str(d).rpartition(".")[2]


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_promotion(a: str, b: str) -> None:
    assert name(chainrule.promote_types(getattr(chainrule, a), getattr(chainrule, b))) == name(
        torch.promote_types(getattr(torch, a), getattr(torch, b))
    )
    assert chainrule.can_cast(getattr(chainrule, a), getattr(chainrule, b)) == torch.can_cast(
        getattr(torch, a), getattr(torch, b)
    )
    for shape_a, shape_b in itertools.product(((), (2,)), repeat=2):
        ours = chainrule.result_type(
            chainrule.ones(shape_a, dtype=getattr(chainrule, a)), chainrule.ones(shape_b, dtype=getattr(chainrule, b))
        )
        theirs = torch.result_type(
            torch.ones(shape_a, dtype=getattr(torch, a)), torch.ones(shape_b, dtype=getattr(torch, b))
        )
        assert name(ours) == name(theirs), (shape_a, shape_b)


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("a", NAMES)
@pytest.mark.parametrize("number", [True, 2, 2.5, 1 + 2j])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_promotion_with_numbers(a: str, number: complex, shape: tuple[int, ...]) -> None:
    ours = chainrule.ones(shape, dtype=getattr(chainrule, a)) * number
    theirs = torch.ones(shape, dtype=getattr(torch, a)) * number
    assert name(ours.dtype) == name(theirs.dtype)


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
@pytest.mark.parametrize("a", NAMES)
def test_promotion_under_vmap_looks_at_the_example(a: str) -> None:
    # One example is 0-d, so it ranks below the 1-d float32, whatever its batch looks like.
    x = chainrule.ones(3, dtype=getattr(chainrule, a))
    y = chainrule.ones(2, dtype=chainrule.float32)
    want = torch.ones((), dtype=getattr(torch, a)) * torch.ones(2)
    assert name(chainrule.vmap(lambda v: v * y)(x).dtype) == name(want.dtype)


@pytest.mark.parametrize("d", ["float16", "bfloat16"])
@pytest.mark.parametrize("op", ["exp", "tanh", "log1p", "sigmoid", "sum", "softmax", "logsumexp", "var", "matmul"])
def test_sixteen_bits_round_once(d: str, op: str) -> None:
    rng = np.random.default_rng(0)
    x = chainrule.tensor(rng.uniform(0.1, 2.0, (6, 6))).to(getattr(chainrule, d))
    wide = x.to(chainrule.float64)
    call = {
        "matmul": lambda v: v @ v, "softmax": lambda v: v.softmax(-1), "logsumexp": lambda v: v.logsumexp(-1),
        "sum": lambda v: v.sum(-1), "var": lambda v: v.var(-1),
    }.get(op, lambda v: getattr(chainrule, op)(v))  # fmt: skip
    got = call(x)
    assert got.dtype is getattr(chainrule, d)
    exact = call(wide).numpy()
    ulp = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[d]
    # Rounding once costs half a unit in the last place; the float32 in between adds far less.
    assert np.all(
        np.abs(got.to(chainrule.float64).numpy() - exact) <= 0.505 * ulp * 2.0 ** np.floor(np.log2(np.abs(exact)))
    )


def test_default_dtype() -> None:
    assert chainrule.tensor(1.0).dtype is chainrule.float32
    chainrule.set_default_dtype(chainrule.float64)
    try:
        assert chainrule.tensor(1.0).dtype is chainrule.float64
        assert (chainrule.tensor([1, 2]) / 2).dtype is chainrule.float64
    finally:
        chainrule.set_default_dtype(chainrule.float32)
    with pytest.raises(TypeError, match="floating"):
        chainrule.set_default_dtype(chainrule.int64)
