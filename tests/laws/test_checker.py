"""The checker itself: rules that are wrong must be rejected, each by the law that it breaks."""

from __future__ import annotations

import numpy as np
import pytest

from chainrule.custom import custom_op
from chainrule.testing.laws import Case, LawError, check, check_dot, check_second, check_tangent, check_vmap

pytestmark = pytest.mark.fast


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


POINT = [np.array([0.3, -1.2, 0.7])]


def scaled_sin(forward: float, reverse: float) -> Case:
    @custom_op
    def f(x):
        return x.sin()

    f.jvp(lambda t, y, x: t[0] * x.cos() * forward)
    f.vjp(lambda g, y, x: g * x.cos() * reverse)
    return Case("sin", f, POINT)


def test_right_rules_pass() -> None:
    check(scaled_sin(1.0, 1.0))


def test_a_forward_rule_off_by_a_thousandth_fails() -> None:
    with pytest.raises(LawError, match="forward mode"):
        check_tangent(scaled_sin(1.001, 1.0), rng())


def test_a_reverse_rule_off_by_a_thousandth_fails() -> None:
    with pytest.raises(LawError, match="dot test"):
        check_dot(scaled_sin(1.0, 1.001), rng())


def moments(count_saved: bool) -> Case:
    """y = x / n with the saved norm n as an output; the reverse rule may forget the cotangent of n."""

    @custom_op
    def f(x):
        n = (x * x).sum().sqrt()
        return x / n, n

    @f.vjp
    def _(g, y, x):
        gy, gn = g
        h, n = y
        gx = (gy - h * (h * gy).sum()) / n
        return gx + h * gn if count_saved else gx

    return Case("normalize", f, POINT)


def test_a_rule_that_counts_its_saved_output_passes() -> None:
    check(moments(True))


def test_a_rule_that_drops_the_cotangent_of_a_saved_output_fails() -> None:
    # The forward rule is the transpose of the reverse rule here, so the mistake shows against central differences.
    with pytest.raises(LawError):
        check_tangent(moments(False), rng())


def test_a_rule_right_at_first_order_and_wrong_at_second_fails() -> None:
    @custom_op
    def f(x):
        return x**3

    # The saved value is detached: right at first order, constant at second.
    f.vjp(lambda g, y, x: g * 3 * x.detach() ** 2)
    f.jvp(lambda t, y, x: t[0] * 3 * x.detach() ** 2)
    case = Case("cube", f, POINT)
    check_tangent(case, rng())
    check_dot(case, rng())
    with pytest.raises(LawError):
        check_second(case, rng())


def test_a_wrong_batching_rule_fails() -> None:
    from chainrule.core.op import Op

    # Axis 0 is the batch axis under vmap: an op must store its axes negative.
    bad = Op("reversed_by_position", lambda x: x[::-1].copy())
    bad.jvp([lambda t, y, x: bad(t)])
    bad.vjp([lambda g, y, x: bad(g)])
    with pytest.raises(LawError, match="vmap"):
        check_vmap(Case("reversed", bad, POINT), rng())
