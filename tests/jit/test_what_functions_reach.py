"""What a compiled function depends on beside its arguments: modes around the call, classes, slots, bodies that write, what transforms left."""

import numpy as np
import pytest

import chainrule as cr
from chainrule.autograd import Function
from chainrule.func import grad, vmap
from chainrule.jit.api import jit


def x3():
    return cr.tensor([1.0, -2.0, 3.0])


@pytest.mark.parametrize("entered", [False, True])  # whether somebody has entered autocast before the short way is made
def test_autocast_around_a_call(entered):
    if entered:
        with cr.autocast("cpu"):
            pass
    w = cr.ones(3, 3)
    large = cr.ones(300, 300)  # this way in is one of Python
    for f, x in ((jit(lambda x: x @ w), cr.ones(2, 3)), (jit(lambda x: (x @ large) * 2), large)):
        for _ in range(3):
            assert f(x).dtype is cr.float32
        with cr.autocast("cpu", dtype=cr.bfloat16):
            assert f(x).dtype is cr.bfloat16 and f(x).dtype is cr.bfloat16
            with cr.autocast("cpu", enabled=False):
                assert f(x).dtype is cr.float32
        with cr.autocast("cpu", dtype=cr.float16):
            assert f(x).dtype is cr.float16
        assert f(x).dtype is cr.float32


class Config:
    w = cr.tensor([1.0, 2.0, 3.0])
    k = 2.0


def test_attributes_of_a_class():
    Config.w, Config.k = x3(), 2.0
    f = jit(lambda x: x * Config.w * Config.k)
    g = lambda x: x * Config.w * Config.k
    np.testing.assert_array_equal(f(x3()), g(x3()))
    Config.w.mul_(3)
    np.testing.assert_array_equal(f(x3()), g(x3()))
    Config.k = 5.0
    np.testing.assert_array_equal(f(x3()), g(x3()))
    Config.w = cr.tensor([0.0, 0.0, 1.0])
    np.testing.assert_array_equal(f(x3()), g(x3()))


def test_attributes_of_a_class_on_the_short_way():
    Config.k = 2.0
    f = jit(lambda x: x * Config.k)
    for _ in range(3):
        f(x3())
    if f.lower(x3()).recording.native is not None:  # in machine code
        assert f._fast(x3()).tolist() == [2.0, -4.0, 6.0]
    Config.k = 3.0
    assert f._fast(x3()) is None
    assert f(x3()).tolist() == [3.0, -6.0, 9.0]


def test_attributes_of_a_local_class():
    class Local:
        w = x3()

    f = jit(lambda x: x * Local.w)
    f(x3())
    Local.w = cr.zeros(3)
    assert f(x3()).abs().sum() == 0


class Slots:
    __slots__ = ("__hidden", "w")

    def __init__(self):
        self.w, self.__hidden = x3(), x3()

    def change(self):
        self.__hidden = cr.zeros(3)

    def __call__(self, x):
        return x * self.w + self.__hidden


def test_objects_with_slots():
    o = Slots()
    f = jit(lambda x: o(x))
    for change in (lambda: None, lambda: o.w.mul_(2), lambda: setattr(o, "w", cr.ones(3)), o.change):
        change()
        for _ in range(2):
            np.testing.assert_array_equal(f(x3()), o(x3()))


class Doubles(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return 2 * g


@cr.custom_op
def writes(x):
    x.mul_(2)
    return x * 1


@pytest.mark.parametrize("body", [Doubles.apply, writes])
def test_bodies_that_write_to_what_they_get(body):
    one = cr.ones(2)
    f = jit(lambda x: body(x * 1) + 0)
    for _ in range(3):
        assert f(one).tolist() == [2.0, 2.0] and one.tolist() == [1.0, 1.0]


def test_what_was_computed_before_a_body_writes_stays():
    f = jit(lambda x: (lambda y: y * y + 3 * writes(y.sin()))(x + 0))
    x = cr.ones(2)
    for _ in range(3):
        np.testing.assert_allclose(f(x), 1 + 6 * np.sin([1.0, 1.0]), rtol=1e-6)


class Cell:
    pass


@pytest.mark.parametrize("around", [lambda f: jit(grad(f)), lambda f: jit(vmap(grad(f))), lambda f: vmap(jit(grad(f)))])
def test_what_a_transform_left_in_an_attribute(around):
    c = Cell()

    def f(x):
        c.w = x * 2
        return (c.w**2).sum()

    x = cr.tensor([[1.0, 2.0]])
    g = around(f)
    for _ in range(3):
        np.testing.assert_allclose(g(x), 8 * x)


def test_recorded_under_hooks_on_what_is_saved():
    f = jit(lambda x: (x.sin() * x).sum())
    x = cr.tensor([1.0, 2.0], requires_grad=True)
    with cr.autograd.graph.save_on_cpu():
        y = f(x)
    y.backward()
    np.testing.assert_allclose(x.grad, np.sin([1, 2]) + np.array([1, 2]) * np.cos([1, 2]), rtol=1e-6)


def test_derivatives_turned_on_inside_under_no_grad():
    w = cr.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def f(x):
        with cr.enable_grad():
            y = w * x
        return y, w * 2

    for g in (f, jit(f)):
        for _ in range(3):
            with cr.no_grad():
                y, z = g(x3())
            assert y.requires_grad and not z.requires_grad
            w.grad = None
            y.sum().backward()
            assert w.grad.tolist() == [1.0, -2.0, 3.0]
            with cr.inference_mode():
                assert [y.requires_grad for y in g(x3())] == [y.requires_grad for y in f(x3())]


def test_functions_of_the_library_leave_the_way_short():
    from chainrule import exp, tanh

    f = jit(lambda x: tanh(exp(x)))
    for _ in range(3):
        f(x3())
    held = next(iter(f._recordings.values()))[0].held
    assert not held._dicts and f._fast(x3()) is not None
