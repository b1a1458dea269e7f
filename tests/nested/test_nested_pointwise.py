"""Every pointwise op that exists, on nests: values and derivatives of both orders against the same op on each component."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct
from chainrule.core.errors import MissingRuleError
from chainrule.core.op import OPS

from .harness import close

nested, func = ct.nested, ct.func
SHAPES = [(2, 3, 2), (0, 2, 2), (1, 4, 2), (3, 1, 2)]
# Static data of the ops that need some.
STATIC: dict[str, dict[str, Any]] = {
    "threshold": {"at": 0.5, "value": 2.0}, "hardshrink": {"by": 0.5}, "softshrink": {"by": 0.5},
    "addcmul": {"value": 0.7}, "addcdiv": {"value": 0.7}, "round_decimals": {"decimals": 1}, "to": {"dtype": np.dtype("f4")},
    "nan_to_num": {"nan": 0.0, "posinf": 1.0, "neginf": 2.0}, "to_int": {"dtype": np.dtype("i8")},
    "isclose": {"rtol": 0.1, "atol": 0.1, "equal_nan": False}, "bessel_jn": {"n": 2}, "bessel_yn": {"n": 2}, "bessel_in": {"n": 2},
    "bessel_kn": {"n": 2}, "scaled_i": {"n": 1}, "scaled_k": {"k": 1}, "spherical": {"n": 1}, "erfc_integral": {"n": 1},
    "polygamma": {"n": 1}, "zeta": {"n": 0}, "igamma_in_a": {"n": 1}, "polynomial": {"kind": "t", "k": 0},
    "elu": {"alpha": 1.0, "scale": 1.0, "rate": 1.0}, "hardtanh": {"lo": 0.3, "hi": 0.6}, "leaky_relu": {"slope": 0.1},
    "softplus": {"beta": 2.0, "top": 20.0}, "huber": {"delta": 0.5}, "filled": {"value": 0.5}, "bell": {"scale": 0.5}, "rms_of_one": {"eps": 1e-3},
}  # fmt: skip
# The part of a real number is refused, as in PyTorch; complex nests have a test of their own; so is Lambert's function, which is complex of reals.
NAMES = sorted(n for n, o in OPS.items() if o.form == "pointwise" and n not in ("imag", "scipy_lambertw"))


def arguments(name: str, seed: int, whole: bool) -> list[list[Any]]:
    """Components for every operand, of numbers in (0.2, 0.8), where nearly every op is defined; whole ones for ops of integers."""
    op: Any = OPS[name]
    rng = np.random.default_rng([seed, len(name)])
    make = (lambda s: ct.tensor(rng.integers(1, 9, s))) if whole else (lambda s: ct.tensor(rng.uniform(0.2, 0.8, s)))
    out = [[make(s) for s in SHAPES] for _ in range(op.arity)]
    if name == "where":
        out[0] = [c > 0.5 for c in out[0]]
    return out


def has_derivative(f: Any, xs: list[Any], i: int) -> bool:
    """Whether there is a derivative by an operand; where there is none, its rule says so."""
    try:
        func.grad(lambda x: f(*xs[:i], x, *xs[i + 1 :]).sum())(xs[i])
    except MissingRuleError:
        return False
    return True


@pytest.mark.parametrize("name", NAMES)
def test_pointwise(name: str) -> None:
    op, kw = OPS[name], STATIC.get(name.removesuffix("_pull"), {}) or STATIC.get(name, {})
    f = lambda *xs: op.bind(*xs, **kw)  # type: ignore[attr-defined]
    try:
        f(*[c[0] for c in arguments(name, 0, False)])
        whole = False
    except (RuntimeError, TypeError, NotImplementedError):
        whole = True
    comps = arguments(name, 0, whole)
    xs = [nested.as_nested_tensor(c) for c in comps]
    want = [f(*c) for c in zip(*comps, strict=True)]
    close(f(*xs), want, name)
    close(ct.vmap(f)(*xs), want, f"{name}: vmap")
    if len(xs) == 2:
        # A nest with a number for each component, and with one that broadcasts over the ragged dims.
        per, row = comps[1][0].reshape(-1)[:4].reshape(4, 1, 1, 1), comps[1][0].reshape(-1)[:2]
        close(f(xs[0], per), [f(c, p) for c, p in zip(comps[0], per, strict=True)], f"{name}: dense")
        close(f(row, xs[1]), [f(row, c) for c in comps[1]], f"{name}: dense first")
    if not op.differentiable or whole or not want[0].dtype.is_floating_point:
        return
    if name == "where":
        comps, xs, f = comps[1:], xs[1:], lambda a, b: op.bind(a > 0.5, a, b)  # type: ignore[attr-defined]
    free = [i for i in range(len(xs)) if has_derivative(f, [c[0] for c in comps], i)]
    if not free:
        return
    if len(free) < len(xs):  # orders and degrees of special functions
        orders, inner = [c[0].reshape(-1)[0] for c in comps], f
        comps, xs = [comps[i] for i in free], [xs[i] for i in free]
        f = lambda *a: inner(*[a[free.index(i)] if i in free else o for i, o in enumerate(orders)])
    number = lambda *a: f(*a).sin().sum()
    every = tuple(range(len(xs)))
    ts = [arguments(name, 1, whole)[i + (name == "where")] for i in free]
    nts = tuple(nested.as_nested_tensor(t) for t in ts)
    each = list(zip(zip(*comps, strict=True), zip(*ts, strict=True), strict=True))
    grads = [func.grad(number, every)(*c) for c, _ in each]
    for got, how in (
        (func.grad(number, every)(*xs), "grad"),
        (ct.vmap(func.grad(number, every))(*xs), "vmap of grad"),
    ):
        close(got, [[g[i] for g in grads] for i in every], f"{name}: {how}")
    close(func.jvp(f, tuple(xs), nts)[1], [func.jvp(f, c, t)[1] for c, t in each], f"{name}: jvp")
    second = [func.jvp(func.grad(number, every), c, t)[1] for c, t in each]
    close(
        func.jvp(func.grad(number, every), tuple(xs), nts)[1],
        [[g[i] for g in second] for i in every],
        f"{name}: jvp of grad",
    )


def test_static_data_is_that_of_ops() -> None:
    assert set(STATIC) <= set(OPS)
