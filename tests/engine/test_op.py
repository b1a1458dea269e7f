"""Declarations: what an op says of itself is checked, and does what it says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.core.declare import fused, op, pointwise
from chainrule.core.op import OPS, Op
from chainrule.core.payload import PAYLOADS, Payload, register
from chainrule.core.sizes import Ragged, ragged_in
from chainrule.fallback import NotSupported
from chainrule.func import grad, hessian, jvp, vmap


@pytest.fixture(autouse=True)
def _forget_ops() -> Any:
    before = dict(OPS)
    yield
    for name in set(OPS) - set(before):
        del OPS[name]


def test_a_name_is_declared_once() -> None:
    pointwise("twice_test", np.sin)
    with pytest.raises(ValueError, match=r"twice_test.*declared twice"):
        pointwise("twice_test", np.sin)


@pytest.mark.parametrize("words", ["flaot", "same float", "float reel"])
def test_misspelt_types_are_refused_when_declared(words: str) -> None:
    with pytest.raises(ValueError, match="types="):
        pointwise("misspelt_test", np.sin, types=words)


def test_misspelt_linear_is_refused_when_declared() -> None:
    with pytest.raises(ValueError, match="linear="):
        op("linear_test", linear="yes")


def test_real_refuses_complex_and_names_the_argument() -> None:
    p = pointwise(
        "softsign_test", lambda x: x / (1 + np.abs(x)), lambda t, y, x: t / (1 + x.abs()) ** 2, types="float real"
    )
    assert grad(lambda x: p(x).sum())(cr.ones(2)).tolist() == [0.25, 0.25]
    for x in (cr.ones(2, dtype=cr.complex64), cr.ones(2, dtype=cr.complex128)):
        with pytest.raises(NotImplementedError, match=r"softsign_test.*complex.*argument input"):
            p(x)
        with pytest.raises(NotImplementedError, match="softsign_test"):
            vmap(p)(x)


def test_types_of_truth_values_and_integers() -> None:
    count = pointwise("count_test", lambda x: x * x, lambda t, y, x: 2 * x * t, types="count")
    assert count(cr.tensor([True, False])).dtype is cr.int64
    float_ = pointwise("float_test", np.cbrt, types="float")
    assert float_(cr.tensor([8])).dtype is cr.float32


def test_a_linear_op_needs_no_forward_rule() -> None:
    @op("outer_test", core="(m),(n)->(m,n)", linear="each")
    def outer(x: Any, y: Any) -> Any:
        return x[..., :, None] * y[..., None, :]

    outer.vjp([lambda g, z, x, y: (g * y).sum(-1), lambda g, z, x, y: (g * x.unsqueeze(-1)).sum(-2)])
    x, y, t = cr.randn(3, dtype=cr.float64), cr.randn(2, dtype=cr.float64), cr.randn(3, dtype=cr.float64)
    got = jvp(outer, (x, y), (t, y))[1]
    np.testing.assert_allclose(got.numpy(), np.outer(t.numpy() + x.numpy(), y.numpy()))

    @op("join_test", batch="expand", linear="all")
    def join(*xs: Any) -> Any:
        return np.concatenate(xs, -1)

    np.testing.assert_allclose(jvp(lambda a: join(a, x), (y,), (y,))[1].numpy(), [*y.tolist(), 0, 0, 0])
    # The reverse rule is the transpose of the op, by the tape of the forward rule; its own, where that is the op itself, is missing.
    with pytest.raises(cr.MissingRuleError, match="join_test"):
        grad(lambda a: (join(a, x) ** 2).sum())(y)


def test_a_kernel_and_its_specification() -> None:
    ran: list[str] = []

    def body(x: Any, *, n: int) -> Any:
        """x ** n and the sum of that."""
        y = x**n
        return y, y.sum(-1, keepdim=True)

    def kernel(x: Any, *, n: int) -> Any:
        if x.dtype != np.float64:
            raise NotSupported
        ran.append("kernel")
        y = x**n
        return y, y.sum(-1, keepdims=True)

    p = fused("power_sum_test", body, lambda n: (1,), lambda n: (1, 1), kernel)
    assert p.__doc__ == body.__doc__
    x = cr.tensor([1.0, 2.0, 3.0], dtype=cr.float64)
    f = lambda v: (p.bind(v, n=3)[0] * p.bind(v, n=3)[1]).sum()
    want = lambda v: (v**3).sum() ** 2
    for take in (grad, hessian):
        np.testing.assert_allclose(take(f)(x).numpy(), take(want)(x).numpy())
    assert ran
    ran.clear()
    np.testing.assert_allclose(vmap(grad(f))(cr.stack([x, 2 * x])).numpy()[0], grad(want)(x).numpy())
    assert grad(f)(x.float()).dtype is cr.float32


def test_reverse_mode_keeps_only_the_statistics_of_a_norm() -> None:
    x = cr.randn(8, 16).requires_grad_()
    y = cr.nn.functional.layer_norm(x, (16,))
    node = y.grad_fn
    assert node.y[0] is None and node.y[1] is not None and node.y[2] is not None


class Marked:
    """An array type of somebody else: NumPy's protocols, and a mark that has to stay."""

    def __init__(self, a: Any) -> None:
        self.a = np.asarray(a)

    shape = property(lambda self: self.a.shape)
    ndim = property(lambda self: self.a.ndim)
    dtype = property(lambda self: self.a.dtype)
    size = property(lambda self: self.a.size)
    itemsize = property(lambda self: self.a.itemsize)

    def astype(self, d: Any, copy: bool = True) -> Any:
        return Marked(self.a.astype(d))

    def __array_ufunc__(self, ufunc: Any, method: str, *xs: Any, **kw: Any) -> Any:
        return Marked(getattr(ufunc, method)(*[x.a if isinstance(x, Marked) else x for x in xs], **kw))

    def reshape(self, *s: Any) -> Any:
        return Marked(self.a.reshape(*s))


class MarkedPayload(Payload):
    array = Marked

    def zeros(self, like: Any, shape: Any, dtype: Any) -> Any:
        return Marked(np.zeros(shape, dtype))

    def numpy(self, x: Any) -> Any:
        return x.a


def test_another_array_type_joins_without_touching_the_core() -> None:
    register(MarkedPayload())
    try:
        x = cr.Tensor(Marked([1.0, 2.0]))
        f = lambda x: cr.sin(x) * x + cr.exp(x)
        y, t = jvp(f, (x,), (x,))
        assert type(y._value) is Marked and type(t._value) is Marked
        a = np.array([1.0, 2.0])
        np.testing.assert_allclose(y.numpy(), np.sin(a) * a + np.exp(a))
        np.testing.assert_allclose(t.numpy(), (np.cos(a) * a + np.sin(a) + np.exp(a)) * a)
        x.requires_grad_()
        z = f(x)
        z.backward(cr.Tensor(Marked([1.0, 1.0])))
        assert type(x.grad._value) is Marked
        np.testing.assert_allclose(x.grad.numpy(), np.cos(a) * a + np.sin(a) + np.exp(a))
        unused = jvp(lambda x: cr.floor(x), (x.detach(),), (x.detach(),))[1]
        assert type(unused._value) is Marked
    finally:
        del PAYLOADS[Marked]


def test_ragged_sizes_stand_only_in_static_data_that_is_declared_as_sizes() -> None:
    """A sweep over what nests do: an op that meets a ragged size elsewhere would be blind to it."""
    from chainrule.nested import nested_tensor

    bad: set[str] = set()
    run = Op.run

    def watched(self: Any, args: Any, kw: Any) -> Any:
        bad.update(
            f"{self.name}({k}=)" for k, v in kw.items() if k not in self.sizes and any(True for _ in ragged_in(v))
        )
        return run(self, args, kw)

    Op.run = watched  # type: ignore[method-assign]
    try:
        x = nested_tensor([cr.randn(3, 4), cr.randn(1, 4), cr.randn(5, 4)], dtype=cr.float64)
        for f in (
            lambda c: c.cumsum(0).sum(), lambda c: (c @ c.mT).softmax(-1).sum(), lambda c: c.std(0).sum(), lambda c: c.sort(0)[0][0].sum(),
            lambda c: cr.cat([c, c]).amax(0).sum(), lambda c: (c.flip(0) * cr.arange(c.shape[0]).unsqueeze(1)).sum(),
            lambda c: c[: c.shape[0]].diff(dim=0).sum(), lambda c: cr.nn.functional.pad(c, (0, 0, 1, 2)).logsumexp(0).sum(),
            lambda c: c.expand(2, *c.shape).reshape(-1).prod(), lambda c: (c / c.shape[0]).var(0).sum(), lambda c: c.roll(1, 0).sum(),
            lambda c: c.diagonal().sum(), lambda c: c.gather(0, c.argsort(0)).norm(),
        ):  # fmt: skip
            vmap(grad(f))(x)
    finally:
        Op.run = run  # type: ignore[method-assign]
    assert not bad
    assert isinstance(x.shape[1], Ragged)


def test_rules_are_as_many_as_arguments():
    from chainrule.core.declare import pointwise

    with pytest.raises(ValueError, match="1 rules for a body of 2 arguments"):
        pointwise("one_rule_too_few", np.add, lambda t, y, a: t)
    with pytest.raises(ValueError, match="2 rules for a body of 1 arguments"):
        pointwise("one_rule_too_many", lambda x: x + 1, lambda t, y, a: t, lambda t, y, a: t)
