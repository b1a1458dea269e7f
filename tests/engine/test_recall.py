"""Calls that compiled code recognises: what it compares, and that the answer is the one without it."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.core import recall
from chainrule.core import recalled_pointwise as recalled
from chainrule.core.op import OPS
from chainrule.core.recall import LYING, PLAIN, TAPED, Recall, machine
from chainrule.core.registry import pointwise_function
from chainrule.core.tensor import Tensor
from chainrule.kernels import compiler

pytestmark = pytest.mark.skipif(not compiler.available() or machine() is None, reason="nothing is compiled here")


def _array(x):
    if x.__class__ is not Tensor:
        return None
    return (x._value, PLAIN) if x._interp is None else (x._value._value, TAPED)


def _known(*args, what=None, run=False, array=_array, default=None, **kw):
    calls = Recall()
    calls.note(default, args, kw, array, what if what is not None else "found", run)
    return calls, lambda *a, default=None, **k: machine()(calls.address, default, a, k)


def test_arguments_are_compared_by_what_they_are():
    x = cr.zeros(2, 3)
    _, ask = _known(x, 2, 0.0, "mean", (1, 2), True, None, dim=-1)
    same = (cr.ones(2, 3), 2, 0.0, "mean", (1, 2), True, None)
    assert ask(*same, dim=-1) == "found"
    for k, other in enumerate([cr.zeros(3, 2), 3, -0.0, "sum", (1, 3), False, 0]):
        assert ask(*same[:k], other, *same[k + 1 :], dim=-1) is None, k
    for k, other in enumerate([cr.zeros(2, 3, dtype=cr.float64), 2.0, 0, None, [1, 2], 1, False]):
        assert ask(*same[:k], other, *same[k + 1 :], dim=-1) is None, k
    assert ask(*same, dim=0) is None
    assert ask(*same) is None
    assert ask(*same, axis=-1) is None
    assert ask(*same, dim=-1, more=1) is None
    assert ask(*same[:-1], dim=-1) is None
    assert ask(*same, dim=-1, default=cr.float64) is None
    assert ask(np.zeros((2, 3), np.float32), *same[1:], dim=-1) is None
    assert ask(cr.nn.Parameter(cr.zeros(2, 3)), *same[1:], dim=-1) is None


def test_whole_numbers_of_any_size_are_compared():
    _, ask = _known(1 << 60, (1 << 60, -1))
    assert ask(1 << 60, (1 << 60, -1)) == "found"
    assert ask(1 << 70, (1 << 60, -1)) is None
    assert ask(-1, (1 << 60, -1)) is None
    assert ask(1 << 60, (1 << 90, -1)) is None
    assert ask(1 << 60, (1 << 60, True)) is None
    large = 1 << 80
    _, ask = _known(large)
    assert ask(large) == "found" and ask(large + 1) is None


def test_what_can_change_is_not_known_by_its_identity():
    sizes = [1, 2]
    calls, ask = _known(cr.zeros(2), sizes)
    assert ask(cr.zeros(2), sizes) is None and not calls.held


def test_a_tape_is_told_from_none_and_one_from_another():
    x = cr.zeros(2, requires_grad=True)
    _, ask = _known(x, x)
    assert ask(x, cr.ones(2, requires_grad=True)) == "found"
    assert ask(x, cr.zeros(2)) is None
    assert ask(cr.zeros(2), cr.zeros(2)) is None
    seen = []
    cr.func.grad(lambda t: (seen.append((ask(t, t), ask(t, x))), t.sum())[1])(cr.zeros(2))
    assert seen == [("found", None)]
    cr.func.vmap(lambda t: (seen.append(ask(t, t)), t.sum())[1])(cr.zeros(3, 2))
    assert seen[1] is None


def test_strides_are_compared_where_they_are_asked_for():
    x = cr.zeros(3, 3)
    _, ask = _known(x, array=lambda v: (v._value, LYING))
    assert ask(cr.ones(3, 3)) == "found"
    assert ask(cr.ones(3, 3).t()) is None
    _, ask = _known(x)
    assert ask(cr.ones(3, 3).t()) == "found"


def test_the_function_is_called_with_the_arrays_and_errors_are_left_to_python():
    x, y = cr.tensor([1.0, 2.0]), cr.tensor([3.0, 5.0])
    _, ask = _known(x, 1, y, what=np.add, run=True)
    assert ask(y, 1, x).tolist() == [4.0, 7.0]
    refuse = Recall()

    def fails(a):
        raise FloatingPointError

    def stops(a):
        raise KeyboardInterrupt

    refuse.note(None, (x,), {}, _array, fails, True)
    assert machine()(refuse.address, None, (x,), {}) is None
    refuse.clear()
    assert machine()(refuse.address, None, (x,), {}) is None
    refuse.note(None, (x,), {}, _array, stops, True)
    with pytest.raises(KeyboardInterrupt):
        machine()(refuse.address, None, (x,), {})


def test_the_oldest_call_makes_room():
    calls = Recall()
    for n in range(2 * recall.CAPACITY + 1):
        calls.note(None, (n,), {}, _array, f"call {n}", False)
    ask = machine()
    found = [ask(calls.address, None, (n,), {}) for n in range(2 * recall.CAPACITY + 1)]
    assert [f for f in found if f] == [f"call {n}" for n in range(recall.CAPACITY + 1, 2 * recall.CAPACITY + 1)]
    assert len(calls.held) == recall.CAPACITY


@pytest.mark.parametrize("name", ["exp", "erf", "sign", "sigmoid"])
def test_many_calls_give_what_one_gives(name):
    f = getattr(cr, name)
    x = cr.linspace(-2.0, 2.0, 12).reshape(3, 4)
    first = f(x).numpy()
    for _ in range(100):
        y = f(x)
    assert np.array_equal(y.numpy(), first)
    leaf = x.clone().requires_grad_()
    assert f(leaf).requires_grad and f(leaf.detach()).requires_grad is False
    with cr.no_grad():
        assert not f(leaf).requires_grad
    assert np.array_equal(f(x.t()).numpy(), first.T)
    assert f(x.double()).dtype is cr.float64


POINTWISE = sorted(n for n, o in OPS.items() if o.form == "pointwise" and not o.several and o.arity < 3 and o.fast)
VALUES = [
    np.linspace(0.1, 0.9, 12).reshape(3, 4),
    np.linspace(3.0, -3.0, 12).reshape(3, 4),
    np.array([[0.0, -0.0, np.inf, -np.inf], [np.nan, 1.0, -1.0, 2.0], [1e300, -1e300, 1e-300, 5e-324]]),
]
LAYOUTS = [lambda a: a, np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]]


def _bits(f, *xs):
    """The bits of a result, or the class of the error."""
    try:
        y = f(*xs)
    except Exception as error:
        return type(error)
    return y.dtype, tuple(y.shape), y.numpy().tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", POINTWISE)
def test_a_function_that_is_recognised_gives_the_same_bits(name, monkeypatch):
    """A call that compiled code knows is that call for every value, in every layout."""
    op, made = OPS[name], []
    monkeypatch.setattr(recalled, "Recall", lambda: made.append(Recall()) or made[-1])
    for d in (np.float64, np.float32, np.complex128, np.int64, np.bool_):
        f = pointwise_function(op)  # one of its own, which was never called
        whole = d in (np.int64, np.bool_)
        columns = [(np.nan_to_num(v, posinf=5, neginf=5).clip(-7, 7) if whole else v).astype(d) for v in VALUES]
        operands = [columns, columns[1:] + columns[:1]][: op.arity]
        later = [[cr.from_numpy(lay(c[k])) for c in operands] for k in range(len(VALUES)) for lay in LAYOUTS]
        for _ in range(recalled.OFTEN):
            _bits(f, *later[0])
        assert [_bits(f, *xs) for xs in later] == [_bits(op.bind, *xs) for xs in later], d
    assert any(calls.held for calls in made), "no call was recognised: nothing was compared"


def test_no_grad_is_told_from_a_tape():
    x = cr.linspace(0.1, 1.0, 8).reshape(2, 4).requires_grad_()
    with cr.no_grad():
        for _ in range(100):
            y = cr.softmax(x, 1)
    assert not y.requires_grad
    assert cr.softmax(x, 1).requires_grad
    for _ in range(100):
        y = cr.softmax(x, 1)
    assert y.requires_grad
    with cr.no_grad():
        assert not cr.softmax(x, 1).requires_grad
    (g,) = cr.autograd.grad(y, x, y.detach())
    assert g.shape == x.shape


def test_whoever_looks_on_sees_calls_that_are_recognised() -> None:
    x = cr.tensor([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(200):
        x.sqrt(), cr.sqrt(x), cr.add(x, x), cr.softmax(x, -1), cr.sum(x, 1), x.reshape(-1)
    with cr.profile() as p:
        cr.sqrt(x), cr.add(x, x), cr.softmax(x, -1), cr.sum(x, 1), x.reshape(-1)
    seen = str(p)
    assert all(f"  {name}\n" in seen for name in ("sqrt", "add", "softmax", "sum", "reshape")), seen
