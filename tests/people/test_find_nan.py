"""chainrule.find_nan names the line, the op and the phase of fifteen planted births, and none where none reaches a result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule import nn

F = nn.functional
Z = cr.tensor([0.0, 1.0, 2.0])


def log_of_zero(x: Any) -> Any:
    y = x * 2
    z = y.log()  # born
    return z.sum()


def negative_root(x: Any) -> Any:
    y = x - 1
    z = y.sqrt()  # born
    return (z * 2).sum()


def zero_over_zero(x: Any) -> Any:
    y = x - x
    z = y / y  # born
    return z.mean()


def overflow(x: Any) -> Any:
    y = x * 100
    z = y.exp()  # born
    return z.log().sum()


def infinity_less_infinity(x: Any) -> Any:
    big = (x + 1) * 3e38  # born
    return (big - big).sum()


def acos_beyond(x: Any) -> Any:
    y = x * 1.5
    return y.acos().sum()  # born


def root_slope(x: Any) -> Any:
    s = (x * x).sum()
    r = s.sqrt()  # born
    return r * 2


def power_slope(x: Any) -> Any:
    y = x**0.7  # born
    return y.sum()


def masked_by_product(x: Any) -> Any:
    mask = (x > 0).to(x.dtype)
    y = x.log()  # born
    return (y * mask).sum()


def deviation_of_equals(x: Any) -> Any:
    y = x * 0 + 1
    v = y.var()
    return v.sqrt()  # born


def softmax_of_nothing(x: Any) -> Any:
    s = cr.where(x > 5, x, float("-inf"))
    return s.softmax(-1).sum()  # born


def in_numpy(x: Any) -> Any:
    y = np.cos(x) - 1
    z = np.log(y)  # born
    return np.sum(z)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Any) -> Any:
        h = self.layer(x)
        h = h - h
        return h.reciprocal().sum()  # born


def by_hand() -> Any:
    w = cr.zeros(3, requires_grad=True)
    loss = w.norm() * 0 + (w * w).sum().sqrt()  # born
    loss.backward()
    return w.grad


def sixteen_bits(x: Any) -> Any:
    y = (x + 1) * 40000
    z = y.half()  # born
    return z.float().sum()


def differences_of_points(x: Any) -> Any:
    d = x[:, None] - x[None]
    r = (d * d).sqrt()  # born
    return r.sum()


def cosine_of_nothing(x: Any) -> Any:
    n = x * 0
    return (n / n.norm()).sum()  # born


def own_softplus(x: Any) -> Any:
    e = (x * 500).exp()  # born
    return (1 + e).log().sum()


def own_divergence(x: Any) -> Any:
    p = (x * 200).softmax(-1)
    return (p * (p / p.flip(0)).log()).sum()  # born


def normalised_without_eps(x: Any) -> Any:
    y = x[None].expand(4, 3)
    v = ((y - y.mean(0)) ** 2).mean(0)
    h = (y - y.mean(0)) / v.sqrt()  # born
    return h.sum()


def iterated(x: Any) -> Any:
    for _ in range(5):
        x = x * x * 1e5  # born
    return x.sum()


def mapped(x: Any) -> Any:
    def one(v: Any) -> Any:
        return (v - 1).log()  # born

    return cr.func.vmap(one)(x).sum()


def of_a_gradient(x: Any) -> Any:
    g = cr.func.grad(lambda v: (v**1.5).sum())(x)
    return g.reciprocal().sum()  # born


def second_derivative(x: Any) -> Any:
    g = cr.func.grad(lambda v: (v.abs() ** 1.2).sum())(x)  # born
    return g.sum()


def numpy_root(x: Any) -> Any:
    return np.sum(x**0.5)  # born


def root_in_place(x: Any) -> Any:
    y = x.clone()
    y.sub_(1)
    y.sqrt_()  # born
    return y.sum()


def one_number(x: Any) -> Any:
    return x[:1].std()  # born


def mean_of_none(x: Any) -> Any:
    return x[x > 5].mean()  # born


def determinant(x: Any) -> Any:
    return cr.linalg.slogdet(cr.diag(x))[1]  # born


def inverse_sine(x: Any) -> Any:
    y = x / 2
    return y.asin().sum()  # born


MORE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str]] = {
    f.__name__: (f, (np.array([0.0, 1.0]),) if f is numpy_root else (Z,), phase, op)
    for f, phase, op in [
        (differences_of_points, "backward", "sqrt"), (cosine_of_nothing, "forward", "div"), (own_softplus, "forward", "exp"),
        (own_divergence, "forward", "div"), (normalised_without_eps, "forward", "div"), (iterated, "forward", "mul"), (mapped, "forward", "log"),
        (of_a_gradient, "forward", "reciprocal"), (second_derivative, "backward", "pow"), (numpy_root, "backward", "sqrt"),
        (root_in_place, "forward", "sqrt"), (one_number, "forward", "std"), (mean_of_none, "forward", "div"), (determinant, "forward", "slogdet"),
        (inverse_sine, "backward", "asin"),
    ]
}  # fmt: skip
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str]] = {
    "log of zero": (log_of_zero, (Z,), "forward", "log"),
    "negative root": (negative_root, (Z,), "forward", "sqrt"),
    "zero over zero": (zero_over_zero, (Z,), "forward", "div"),
    "overflow of exp": (overflow, (Z,), "forward", "exp"),
    "infinity less infinity": (infinity_less_infinity, (Z,), "forward", "mul"),
    "acos": (acos_beyond, (Z,), "forward", "acos"),
    "slope of a root": (root_slope, (cr.zeros(3),), "backward", "sqrt"),
    "slope of a power": (power_slope, (Z,), "backward", "pow"),
    "masked by a product": (masked_by_product, (Z,), "forward", "log"),
    "deviation of equal numbers": (deviation_of_equals, (Z,), "backward", "sqrt"),
    "softmax of nothing": (softmax_of_nothing, (Z,), "forward", "softmax"),
    "NumPy code": (in_numpy, (np.array([0.0, 0.5]),), "forward", "log"),
    "a module": (Net(), (cr.ones(2, 3),), "forward", "reciprocal"),
    "backward by hand": (by_hand, (), "backward", "sqrt"),
    "sixteen bits": (sixteen_bits, (Z,), "forward", ""),
}


def born_line(f: Any) -> int:
    source, first = inspect.getsourcelines(type(f) if isinstance(f, nn.Module) else f)
    return first + next(k for k, line in enumerate(source) if "# born" in line)


@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_the_right_line(name: str) -> None:
    f, args, phase, op = {**CASES, **MORE}[name]
    born = cr.find_nan(f, *args)
    assert born and born.site is not None, str(born)
    assert (born.site.file, born.site.line) == (__file__, born_line(f)), str(born)
    assert born.phase == phase, str(born)
    if op:
        assert op in (born.op, born.of), str(born)
    assert len(born.advice) > 20 and born.inputs


def test_there_are_fifteen() -> None:
    assert len(CASES) == len(MORE) == 15


def test_what_reaches_no_result_is_none() -> None:
    born = cr.find_nan(lambda x: cr.where(x > 0, x.log(), 0.0).sum(), Z)
    assert not born
    assert any("log" in p for p in born.passing)
    assert not cr.find_nan(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True).sum(), cr.ones(2, 3, 4))


def test_an_infinity_that_is_written_is_told_from_one_that_is_made() -> None:
    born = cr.find_nan(lambda x: x.logsumexp(0) - cr.where(x > 0, x, -float("inf"))[0], Z)
    assert born.op == "where" and "writes the infinity" in born.advice


def test_arguments_and_captured_tensors_are_said_to_be_to_blame() -> None:
    bad = cr.tensor([1.0, float("nan")])
    assert cr.find_nan(lambda x: x.sum(), bad).phase == "argument"
    born = cr.find_nan(lambda x: (x * bad).sum(), cr.ones(2))
    assert born.phase == "captured" and born.op == "mul"


def test_it_prints_and_shows_in_notebooks() -> None:
    born = cr.find_nan(log_of_zero, Z)
    assert "z = y.log()" in str(born) and "instead" in str(born)
    assert "<table>" in born._repr_html_()


def test_nothing_stays_behind() -> None:
    from chainrule.core.op import OPS

    before = {name: (op.__dict__.get("run"), op.__dict__.get("bind")) for name, op in OPS.items()}
    cr.find_nan(log_of_zero, Z)
    with pytest.raises(ZeroDivisionError):
        cr.find_nan(lambda x: x * (1 / 0), Z)
    assert before == {name: (op.__dict__.get("run"), op.__dict__.get("bind")) for name, op in OPS.items()}
    from chainrule.core.watch import WATCHED

    assert WATCHED.on == 0


def test_it_looks_into_compiled_functions() -> None:
    inner = cr.jit(lambda v: (v - 1).log().sum())
    born = cr.find_nan(lambda x: inner(x) * 2, cr.ones(3))
    assert (born.op, born.kind, born.phase) == ("log", "inf", "forward")
    assert "jit" in repr(inner) and inner(cr.full((3,), 2.0)).item() == 0.0  # and it is compiled again


def test_it_looks_into_ragged_and_sparse_tensors() -> None:
    x = cr.nested.nested_tensor([[1.0, -1.0], [3.0]])
    born = cr.find_nan(lambda x: (x / x.sum(1, keepdim=True)).sum(), x)
    assert (born.op, born.kind) == ("div", "inf")
    assert "ragged, its rows float32[3]" in str(born)
    i = cr.tensor([[0, 1], [0, 1]])
    born = cr.find_nan(lambda v: cr.sparse_coo_tensor(i, v, (2, 2)).sqrt().sum(), cr.tensor([-1.0, 2.0]))
    assert (born.op, born.kind) == ("sqrt", "NaN")
