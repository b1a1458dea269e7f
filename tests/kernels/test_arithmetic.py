"""Arithmetic on large arrays: the same bits as NumPy's, whatever repeats."""

import operator

import numpy as np
import pytest

import chainrule as ct
from chainrule.kernels.elementwise import FORMULAS, Elementwise

MUL = Elementwise("mul", FORMULAS["mul"])
SHAPE = (12, 30, 301)
OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}


def draw(dtype):
    x = np.random.default_rng(0).standard_normal(SHAPE).astype(dtype)
    x[0, 0, :5] = [0, -0.0, np.inf, -np.inf, np.nan]
    return x


def partners(x):
    """Operands that meet `x`: an array, a number, one for each row, one for each column, and what has no kernel."""
    d = x.dtype.type
    return {
        "array": x[::-1].copy(),
        "number": 2.5,
        "integer": 3,
        "0-d": np.asarray(d(1.5)),
        "one entry": np.full((1, 1), 1.5, d),
        "repeated": np.broadcast_to(d(3.25), SHAPE),
        "row scales": x[:, :, :1].copy(),
        "example scales": np.broadcast_to(x[:, :1, 7:8].copy(), SHAPE),
        "bias": x[3, 4].copy(),
        "repeated bias": np.broadcast_to(x[3, 4].copy(), SHAPE),
        "matrix": x[5].copy(),
        "middle": x[:1, :, :1].copy(),
        "strided": np.broadcast_to(x[:, :, :2].copy()[:, :, 1:], SHAPE),
        "transposed": np.ascontiguousarray(x.transpose(2, 1, 0)).transpose(2, 1, 0),
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPERATORS)
def test_the_bits_of_numpy(name, dtype):
    x, f = draw(dtype), OPERATORS[name]
    for label, other in partners(x).items():
        for a, b in ((x, other), (other, x)):
            with np.errstate(all="ignore"):
                want = f(a, b)
            got = f(*[ct.from_numpy(v) if isinstance(v, np.ndarray) else v for v in (a, b)]).numpy()
            assert got.dtype == want.dtype and got.shape == want.shape, label
            np.testing.assert_array_equal(got, want, err_msg=label)


@pytest.mark.skipif(not ct.kernels.available(), reason="no compiler")
@pytest.mark.parametrize(
    "label", ["array", "number", "repeated", "row scales", "example scales", "bias", "matrix", "middle"]
)
def test_there_is_a_kernel(label):
    x = draw(np.float32)
    other = partners(x)[label]
    assert MUL(x, other) is not None
    assert MUL(other, x) is not None


def test_what_lies_across_is_left_to_numpy():
    x = draw(np.float32)
    assert MUL(x, np.ascontiguousarray(x.transpose(0, 2, 1)).transpose(0, 2, 1)) is None
    assert MUL(x[:, :, :3].copy(), x[:, :1, 4:7].copy()) is None  # rows of three entries
