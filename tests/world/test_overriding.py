"""__torch_function__: subclasses are kept, strangers are asked, modes see every call."""

from __future__ import annotations

from typing import Any

import pytest

import chainrule as cr
from chainrule import overrides


class Sub(cr.Tensor):
    pass


def test_subclasses_are_kept() -> None:
    x = cr.arange(6.0).reshape(2, 3).as_subclass(Sub)
    plain = cr.ones(2, 3)
    for y in (x + 1, 1 - x, x + plain, plain + x, plain * x, cr.sin(x), cr.cat([x, plain]), x[0], x.T, x.max(0).values, x.sum(),
              cr.nn.functional.softmax(x, -1), cr.matmul(x, plain.T), x.clone(), x.to(cr.float64), cr.add(plain, x), x.detach()):  # fmt: skip
        assert type(y) is Sub
    assert isinstance(cr.max(x, 0), tuple)
    assert type(x.add_(1)) is Sub
    assert type(plain + 1) is cr.Tensor
    assert type(x.tolist()) is list
    x[0].fill_(7)
    assert x[0].tolist() == [7, 7, 7]


def test_gradients_pass_through() -> None:
    x = cr.ones(3).as_subclass(Sub).requires_grad_()
    y = (cr.exp(x) * 2).sum()
    y.backward()
    assert type(y) is Sub
    assert x.grad.allclose(2 * cr.exp(cr.ones(3)))


def test_parameters_take_no_part() -> None:
    p = cr.nn.Parameter(cr.ones(2))
    assert type(p) is cr.nn.Parameter
    assert type(p + 1) is cr.Tensor
    assert type(p.T) is cr.Tensor


class Logged(cr.Tensor):
    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_a_subclass_is_told_the_function() -> None:
    x = cr.ones(2).as_subclass(Logged)
    Logged.calls.clear()
    assert type(cr.mean(x, dim=0)) is Logged
    x.exp()
    x - 1
    assert Logged.calls == ["mean", "exp", "__sub__"]


class Scaled:
    """A stranger: a number times the identity."""

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is cr.trace:
            return args[0].n * args[0].value
        if func is cr.matmul:
            return args[0].value * args[1]
        return NotImplemented


def test_strangers_are_asked() -> None:
    s = Scaled(3, 2.0)
    assert cr.trace(s) == 6
    assert cr.matmul(s, cr.ones(3)).tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="no implementation found"):
        cr.sin(s)
    assert overrides.is_tensor_like(s)
    assert overrides.has_torch_function((1, s))
    assert not overrides.has_torch_function((1, cr.ones(1)))


def test_functions_of_ones_own() -> None:
    def double(x: Any) -> Any:
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(double, (x,), x)
        return 2 * x

    class Here:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "asked" if func is double else NotImplemented

    assert double(Here()) == "asked"
    assert double(3) == 6


def test_nobody_is_asked_when_it_is_switched_off() -> None:
    x = cr.ones(2).as_subclass(Sub)
    with cr.DisableTorchFunctionSubclass():
        assert type(cr.sin(x)) is cr.Tensor
        assert type(x + 1) is cr.Tensor


@pytest.mark.filterwarnings("ignore")
def test_modes() -> None:
    import subprocess
    import sys
    from pathlib import Path

    # In a process of its own: once a mode was entered, all methods look for one.
    code = """
import chainrule as cr
from chainrule.overrides import TorchFunctionMode
class Count(TorchFunctionMode):
    names = []
    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))
x = cr.ones(2)
with Count() as c:
    cr.sin(x); x.exp(); x + 1
n = len(c.names)
cr.cos(x)
assert c.names[:n] == ["sin", "exp", "__add__"] and len(c.names) == n, c.names
"""
    src = str(Path(cr.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": src, "PATH": ""}, check=True, timeout=60)


def test_a_subclass_with_a_constructor_of_its_own() -> None:
    """``__new__`` may take what it likes, and end in _make_subclass or as_subclass."""

    class Labelled(cr.Tensor):
        def __new__(cls, data: Any, label: str = "") -> Any:
            x: Any = cr.Tensor._make_subclass(cls, cr.tensor(data))
            x.label = label
            return x

    a: Any = Labelled([1.0, 2.0], label="a")
    assert type(a) is Labelled
    assert a.label == "a"
    assert a.tolist() == [1.0, 2.0]
    assert type(a + 1) is Labelled
