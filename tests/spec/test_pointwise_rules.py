"""Rules of numbers one at a time: powers, products, phases, bounds, special functions, type conversion."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.special

import chainrule as cr
from chainrule.core.errors import MissingRuleError
from chainrule.func import grad, jvp, vjp, vmap

from .judge import array, case, gradient, gradients, judge, mathematics, row, same, values

INF, NAN = math.inf, math.nan
CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])


@row("copysign")
@pytest.mark.parametrize("b", [1.0, -1.0, 0.0, -0.0])
def test_copysign(b: float) -> None:
    judge("copysign", lambda m, x, y: m.copysign(x, y), array(2, 3), array(3, seed=1))
    judge("copysign", lambda m, x: m.copysign(x, b), array(4))
    # The magnitude of 0 has no sign to copy from: its gradient is 0, not NaN.
    zero = np.array([0.0, -0.0, 2.0, -2.0])
    judge("copysign", lambda m, x, y: m.copysign(x, y), zero, np.full(4, b), smooth=False)
    judge("copysign", lambda m, x: m.copysign(x, b), zero, smooth=False)
    assert gradient(lambda m, x: m.copysign(x, b), zero)[0][:2].tolist() == [0.0, 0.0]


@row("missing_rule")
def test_a_missing_rule_is_named() -> None:
    @cr.custom_op
    def opaque_spec_op(x):
        return cr.tensor(np.sin(x.numpy()))

    from chainrule.core.op import Op

    bare = Op("bare_spec_op", lambda x: np.sin(x))
    x = cr.tensor([1.0])
    np.testing.assert_allclose(bare(x).numpy(), np.sin(x.numpy()))
    for run in (
        lambda: vjp(bare, x)[1](x),
        lambda: jvp(bare, (x,), (x,)),
        lambda: grad(lambda v: bare(v).sum())(x),
    ):
        with pytest.raises(MissingRuleError, match=r"bare_spec_op.*(derivative|rule)"):
            run()
    assert issubclass(MissingRuleError, NotImplementedError)


REAL_TO_COMPLEX = {
    "mul": lambda m, x, z: x * z,
    "mul_left": lambda m, x, z: z * x,
    "add": lambda m, x, z: x + z,
    "sub": lambda m, x, z: z - x,
    "div": lambda m, x, z: x / z,
    "div_by_real": lambda m, x, z: z / x,
    "pow": lambda m, x, z: z**x,
    "pow_real_base": lambda m, x, z: (x * x + 1) ** z,
    "matmul": lambda m, x, z: m.matmul(x.to(z.dtype), z.mT),
    "complex": lambda m, x, z: m.complex(x, x * x) * z,
    "polar": lambda m, x, z: m.polar(x, x) + z,
    "where": lambda m, x, z: m.where(m.real(z) > 0, x, z),
    "cat": lambda m, x, z: m.cat([x, z]),
    "sum_dtype": lambda m, x, z: x.sum(0, dtype=m.complex128) * z,
    "addcmul": lambda m, x, z: m.addcmul(x, z, z),
    "lerp": lambda m, x, z: m.lerp(z, x.to(z.dtype), z),
    "linear": lambda m, x, z: m.nn.functional.linear(x.to(z.dtype), z),
}


@row("real_inputs")
@pytest.mark.parametrize("name", REAL_TO_COMPLEX)
def test_real_inputs_get_real_gradients(name: str) -> None:
    f = REAL_TO_COMPLEX[name]
    x, z = array(2, 3) + 3, array(2, 3, cx=True, seed=1)
    out = gradient(f, x, z)
    assert [g.dtype.kind for g in out] == ["f", "c"]
    # PyTorch refuses the reverse mode of these two.
    judge("mul", f, x, z, oracle="value" if name in ("where", "sum_dtype") else "value gradient")


BASES = np.array([0.0, 1.0, 2.5, 0.5, 3.0])
EXPONENTS = [0, 1, 2, 3, 0.5, -1, -2, -0.5, 2.5, 0.0, 1.0]


@row("pow")
@pytest.mark.parametrize("e", EXPONENTS)
def test_pow_by_a_number(e: float) -> None:
    judge("pow", lambda m, x: m.pow(x, e), BASES[1:])
    judge("pow float_power", lambda m, x: m.float_power(x, e), BASES[1:])
    judge("pow", lambda m, x: m.pow(x, e), array(4, cx=True))
    if e in (0, 1, 2, 3):
        judge("pow", lambda m, x: m.pow(x, e), np.array([0.0, -2.0, 1.5]))
        judge("pow", lambda m, x: m.pow(x, e), np.array([0j, -2 + 1j, 1.5 + 0j]))
    else:
        gradients(lambda m, x: m.pow(x, e), np.array([0.0, -0.0, 2.0]))
        # PyTorch takes x**-0.5 as 1/sqrt(x), which differs from x**y at -0 and -inf.
        special = [0.0, 2.0, -1.0, INF, NAN, *((-0.0, -INF) if e != -0.5 else ())]
        values(lambda m, x: m.pow(x, e), np.array(special))


@row("pow")
def test_pow_at_exponent_zero_is_flat_at_every_order() -> None:
    x = np.array([0.0, -2.0, 3.0])
    judge("pow", lambda m, x: m.pow(x, 0), x)
    judge("pow", lambda m, x: m.pow(x, 0.0), x)
    assert gradient(lambda m, x: m.pow(x, 0), x)[0].tolist() == [0, 0, 0]
    h = cr.func.hessian(lambda v: (v**0).sum())(cr.tensor(x)).numpy()
    assert not h.any()
    # x**1 and x**2 have constant derivatives of their order, at 0 too.
    for e, want in ((1, 0.0), (2, 2.0), (2.0, 2.0), (3, 0.0)):
        assert cr.func.hessian(lambda v, e=e: v**e)(cr.tensor(0.0, dtype=cr.float64)).item() == want


@row("pow")
def test_pow_of_tensors() -> None:
    pw = lambda m, x, e: m.pow(x, e)
    judge("pow", pw, array(2, 3, low=0.5), array(3, seed=1))
    judge("pow float_power", lambda m, x, e: m.float_power(x, e), array(2, 1, low=0.5), array(3, seed=1))
    judge("pow", pw, array(2, 3, cx=True), array(3, cx=True, seed=1))
    judge("pow", pw, array(3, cx=True), array(3, seed=1))
    judge("pow", pw, array(3, low=0.5), array(3, cx=True, seed=1))
    # Base 0: the derivative by the exponent is 0 for exponents of positive real part, 0**0 is 1.
    gradients(pw, np.array([0.0, 0.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.5, 0.0]))
    values(pw, np.array([0.0, 0.0, 0.0, 0.0, 2.0]), np.array([0.0, 1.0, 2.5, -1.0, 0.0]))
    values(pw, np.array([0j, 2 + 0j]), np.array([2 + 1j, 0j]))
    same(gradient(pw, np.array([0j]), np.array([2 + 1j]))[1], np.array([0j]), "by the exponent at base 0")
    # d(z**1) = dz at 0, where PyTorch has NaN.
    same(gradient(pw, np.array([0j]), np.array([1 + 0j]))[0], np.array([1 + 0j]), "0**1")
    judge("pow", pw, np.array([0.0, 0.0]), np.array([2.0, 3.0]), smooth=False)


@row("pow", "clamp", "extrema", "whole_extrema")
@pytest.mark.parametrize(
    "f",
    [
        lambda m, x, y: m.pow(x, y),
        lambda m, x, y: m.max(x, y),
        lambda m, x, y: m.min(x, y),
        lambda m, x, y: m.clamp(x, min=y),
        lambda m, x, y: m.clamp(x, y - 1, y),
    ],
    ids=["pow", "max", "min", "clamp to one bound", "clamp to two"],
)
def test_who_gets_the_gradient_differs_between_examples(f: Any) -> None:
    x = np.array([[0.0, 2.0, 1.0], [2.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
    y = np.array([[0.0, 2.0, 2.0], [-1.0, 1.0, 2.0], [1.0, 0.0, 2.0]])
    pull = lambda x, y: cr.func.grad(lambda x, y: f(cr, x, y).sum(), argnums=(0, 1))(x, y)
    for got, want in zip(
        cr.func.vmap(pull)(cr.tensor(x), cr.tensor(y)),
        zip(*[pull(cr.tensor(a), cr.tensor(b)) for a, b in zip(x, y, strict=True)], strict=True),
        strict=True,
    ):
        same(got.numpy(), np.stack([w.numpy() for w in want]), "gradient of each example")


@row("pow")
@pytest.mark.parametrize("base", [2.0, 1.0, 0.5, 0, 1.5 + 0.5j, -1 + 0j])
def test_pow_of_a_number(base: complex) -> None:
    f = lambda m, e: m.pow(base, e)
    if base == 0:
        e = np.array([0.0, 0.5, 2.0])
        values(f, e)
        gradients(f, e)
        mathematics(case("pow", f, e[1:]))
        return
    judge("pow", f, array(4))
    judge("pow", f, array(4, cx=True))
    judge("pow float_power", lambda m, e: m.float_power(base, e), array(4))


@row("angle")
def test_angle_sgn_abs_polar() -> None:
    z = array(2, 3, cx=True)
    for name in ("angle", "sgn", "abs"):
        judge(name, lambda m, x, name=name: getattr(m, name)(x), z)
        judge(name, lambda m, x, name=name: getattr(m, name)(x), array(2, 3))
        for zero in (np.array([0.0, -0.0, 1.0]), np.array([0j, 1 + 1j, -1 + 0j])):
            judge(name, lambda m, x, name=name: getattr(m, name)(x), zero, smooth=False)
            assert np.isfinite(gradient(lambda m, x, name=name: getattr(m, name)(x), zero)[0]).all()
    judge("polar", lambda m, r, a: m.polar(r, a), array(3, low=0.5), array(3, seed=1))
    # d polar / d r = exp(i a) also where r is 0 or negative, which PyTorch reads off the result's sign.
    judge(
        "polar",
        lambda m, r, a: m.polar(r, a),
        np.array([0.0, 1.0, -2.0]),
        np.array([0.3, 0.0, math.pi]),
        oracle="value",
    )
    values(lambda m, x: m.angle(x), np.array([-1.0, 0.0, 2.0, NAN, -INF]))
    # abs(z)**2 is smooth at 0 although abs is not.
    judge("abs", lambda m, x: m.real(x * x.conj()), np.array([0j, 1 + 2j]))


@row("mvlgamma")
@pytest.mark.parametrize("p", [1, 2, 4])
def test_mvlgamma(p: int) -> None:
    judge("mvlgamma", lambda m, x: m.mvlgamma(x, p), array(2, 3, low=(p - 1) / 2 + 0.2, high=6.0))
    values(lambda m, x: m.mvlgamma(x, p), np.array([p / 2 + 0.5, 20.0, 300.0]))


@row("mul_div")
@CX
def test_mul_and_div(cx: bool) -> None:
    a, b = array(2, 3, cx=cx), array(3, cx=cx, seed=1) + 2
    judge("mul", lambda m, x, y: m.mul(x, y), a, b)
    judge("div", lambda m, x, y: m.div(x, y), a, b)
    judge("div", lambda m, x: m.div(3.0, x) if m is cr else 3.0 / x, b)
    judge("mul", lambda m, x: m.mul(x, 2.5), a)
    judge("div", lambda m, x, y: m.true_divide(x, y), a[0, 0], b)
    # At 0 and at infinity.
    values(lambda m, x, y: m.div(x, y), np.array([0.0, 1.0, -1.0, INF]), np.array([0.0, 0.0, 0.0, INF]))
    gradients(lambda m, x, y: m.div(x, y), np.array([1.0, -1.0, 0.0]), np.array([0.0, -0.0, 0.0]))
    gradients(lambda m, x, y: m.mul(x, y), np.array([0.0, INF]), np.array([INF, 2.0]))


@row("mul_div")
@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_rounded_division_is_flat(mode: str) -> None:
    f = lambda m, x, y: m.div(x, y, rounding_mode=mode)
    a, b = np.array([5.5, -5.5, 7.3, 0.2]), np.array([2.0, 2.0, -2.0, 3.0])
    judge("div", f, a, b)
    gx, gy = gradient(f, a, b)
    assert not gx.any() and not gy.any()
    judge("div", lambda m, x: m.div(x, 2.0, rounding_mode=mode), a)
    values(f, np.array([1.0, -1.0, 6.0, -6.0]), np.array([0.0, 0.0, 2.0, 2.0]))


@row("permute_degrees")
def test_permute_and_degrees() -> None:
    for order in ((2, 0, 1), (0, 1, 2), (-1, 1, 0)):
        judge("permute", lambda m, x, order=order: m.permute(x, order), array(2, 3, 4, cx=True))
    judge("permute", lambda m, x: m.permute(x, ()), array())
    judge("permute", lambda m, x: x.permute(1, 0), array(2, 0))
    for name in ("rad2deg", "deg2rad"):
        judge(name, lambda m, x, name=name: getattr(m, name)(x), array(2, 3))
        values(lambda m, x, name=name: getattr(m, name)(x), np.array([0.0, -INF, NAN, 1e300]))


@row("clamp")
def test_clamp_by_numbers() -> None:
    x = np.array([-2.0, -0.5, 0.3, 0.9, 2.0])
    for lo, hi in ((-1, 0.5), (None, 0.5), (-1.0, None), (0.5, -0.5), (0.5, 0.5)):
        judge("clamp", lambda m, x, lo=lo, hi=hi: m.clamp(x, lo, hi), x)
    # On a bound the gradient passes.
    edge = np.array([-1.0, 1.0, 0.0])
    judge("clamp", lambda m, x: m.clamp(x, -1, 1), edge, smooth=False)
    assert gradient(lambda m, x: m.clamp(x, -1, 1), edge)[0].tolist() == [1, 1, 1]
    bad = np.array([NAN, INF, -INF, 0.5])
    values(lambda m, x: m.clamp(x, -1, 1), bad)
    gradients(lambda m, x: m.clamp(x, -1, 1), bad)
    gradients(lambda m, x: m.clamp(x, NAN, 1), bad)


@row("clamp")
def test_clamp_by_tensors_has_gradients_of_the_bounds() -> None:
    x, lo, hi = np.array([-2.0, 0.1, 2.0, 0.0]), np.array([-1.0, -1.0, -1.0, 0.6]), np.array([1.1, 1.0, 1.0, 0.2])
    judge("clamp", lambda m, x, a, b: m.clamp(x, a, b), x, lo, hi)
    judge("clamp", lambda m, x, a: m.clamp(x, min=a), x, lo)
    judge("clamp", lambda m, x, b: m.clamp(x, max=b), x, hi)
    judge(
        "clamp", lambda m, x, a, b: m.clamp(x, a, b), array(3, 1), np.array(-0.4), array(2, seed=3) + 1, oracle="value"
    )
    # Equal to a bound, and the bounds crossed or NaN: who gets the gradient is PyTorch's choice.
    tied = (np.array([1.0, 2.0, 0.5, -3.0]), np.array([1.0, 0.0, 0.5, 1.0]), np.array([3.0, 2.0, 0.5, -1.0]))
    judge("clamp", lambda m, x, a, b: m.clamp(x, a, b), *tied, smooth=False)
    bad = (np.array([NAN, 0.5, 0.5, NAN]), np.array([0.0, NAN, 0.0, NAN]), np.array([1.0, 1.0, NAN, NAN]))
    values(lambda m, x, a, b: m.clamp(x, a, b), *bad)
    gradients(lambda m, x, a, b: m.clamp(x, a, b), *bad)


@row("special")
def test_special_functions_at_zero_and_at_their_branch_points() -> None:
    judge("atan2", lambda m, y, x: m.atan2(y, x), array(2, 3), array(3, seed=1))
    quadrants = (np.array([1.0, -1.0, 1.0, -1.0, 0.0]), np.array([1.0, 1.0, -1.0, -1.0, 2.0]))
    judge("atan2", lambda m, y, x: m.atan2(y, x), *quadrants)
    on_axes = (np.array([0.0, 0.0, -0.0, 0.0]), np.array([0.0, -1.0, -1.0, -0.0]))
    values(lambda m, y, x: m.atan2(y, x), *on_axes)
    gradients(lambda m, y, x: m.atan2(y, x), *on_axes)
    assert gradient(lambda m, y, x: m.atan2(y, x), np.array(0.0), np.array(0.0)) == [0.0, 0.0]
    near = np.array([0.0, 1e-9, -1e-6, 1e-3, 0.3, 1.0, 2.5, -3.0])
    judge("sinc", lambda m, x: m.sinc(x), near, oracle="value")
    gradients(lambda m, x: m.sinc(x), near[[0, 3, 4, 5, 6, 7]])
    judge("sinc", lambda m, x: m.sinc(x), array(3, cx=True))
    # sinc(x) = 1 - (pi x)**2 / 6 + (pi x)**4 / 120 - ..., so its second derivative at 0 is -pi**2 / 3.
    assert cr.func.hessian(cr.sinc)(cr.tensor(0.0, dtype=cr.float64)).item() == pytest.approx(-(math.pi**2) / 3)
    third = cr.func.grad(cr.func.grad(cr.func.grad(cr.func.grad(cr.sinc))))
    assert third(cr.tensor(0.0, dtype=cr.float64)).item() == pytest.approx(math.pi**4 / 5)
    judge("log1p", lambda m, x: m.log1p(x), np.array([0.0, 1e-17, -0.5, 3.0]))
    judge("log1p", lambda m, x: m.log1p(x), array(3, cx=True))
    values(lambda m, x: m.log1p(x), np.array([-1.0, -2.0, INF, 1e-300]))
    gradients(lambda m, x: m.log1p(x), np.array([-1.0, INF, 1e-300]))
    for name in ("i0", "i0e", "i1", "i1e"):
        at = np.array([0.0, 1e-8, -0.2, 3.0, -12.0]) if name != "i0e" else np.array([1e-3, -0.2, 3.0, -12.0])
        f = lambda m, x, name=name: getattr(m.special, name)(x)
        judge(f"special.{name}", f, at, smooth=name[-1] != "e")
        mathematics(case(name, f, at[1:] if name != "i1e" else np.array([0.2, -3.0])))
    for at in (-0.5, 0.0, 4.0):
        second = cr.func.grad(cr.func.grad(cr.special.i1))(cr.tensor(at, dtype=cr.float64)).item()
        assert second == pytest.approx(scipy.special.ivp(1, at, 2), abs=1e-12)


@row("special")
def test_digamma_and_polygamma() -> None:
    x = np.array([0.3, 1.0, 2.5, 9.0, -0.4, -2.6])
    judge("digamma", lambda m, x: m.digamma(x), x)
    values(lambda m, x: m.digamma(x), np.array([0.0, -0.0, -1.0, -3.0, INF, 1e-300]))
    for n in (0, 1, 2, 3):
        judge("polygamma", lambda m, x, n=n: m.polygamma(n, x), x[:4])
    values(lambda m, x: m.polygamma(1, x), np.array([0.0, 1e-3, 50.0]))
    assert cr.polygamma(1, cr.tensor([-1.0, -2.0])).tolist() == [INF, INF]


@row("to")
def test_conversions() -> None:
    x, z = array(2, 3), array(2, 3, cx=True)
    judge("Tensor.to", lambda m, x: x.to(m.complex128), x)
    judge("Tensor.to", lambda m, x: x.to(m.complex128) * (2 + 1j), x)
    judge("Tensor.to", lambda m, x: x.to(m.float64) * 2, x)
    judge("Tensor.to", lambda m, x: (x.to(m.complex128) ** 2).abs(), x)
    # Complex to real drops the imaginary part, and the gradient comes back with none.
    f = cr.func.vjp(lambda v: v.real.to(cr.complex128).real, cr.tensor(z))[1](cr.ones(2, 3, dtype=cr.float64))[0]
    same(f.numpy(), np.ones((2, 3), complex), "complex to real and back")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, pull = cr.func.vjp(lambda v: v.to(cr.float64), cr.tensor(z))
        g = pull(cr.tensor(x))[0]
    same(y.numpy(), z.real.copy(), "complex to real")
    same(g.numpy(), x.astype(complex), "gradient of complex to real")
    for low in ("float32", "float16", "bfloat16", "complex64"):
        h = lambda m, v, low=low: v.to(getattr(m, low)).to(m.complex128 if low == "complex64" else m.float64) * 2
        got = gradient(h, x)[0]
        assert got.dtype == np.float64 and (got == 2).all()
        assert jvp(lambda v, low=low: v.to(getattr(cr, low)), (cr.tensor(x),), (cr.ones(2, 3, dtype=cr.float64),))[
            1
        ].dtype is getattr(cr, low)
    assert vmap(lambda v: v.to(cr.complex128))(cr.tensor(x)).dtype is cr.complex128
    # To integers and back: the derivative does not exist, and counts as zero.
    assert not gradient(lambda m, v: v.to(m.int64).to(m.float64) + 0 * v, x)[0].any()
