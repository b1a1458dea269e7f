"""``compile(module)`` is a module."""

import copy
import pickle

import chainrule as cr
from chainrule import nn


def near(a, b):
    assert cr.allclose(a, b, rtol=1e-6, atol=1e-7)


def test_a_compiled_module_is_the_module():
    plain = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    model, x = cr.compile(plain), cr.randn(5, 3)
    assert isinstance(model, nn.Module)
    near(model(x), plain(x))
    assert list(model.state_dict()) == [f"_orig_mod.{k}" for k in plain.state_dict()]
    assert model.get_submodule("_orig_mod.0") is plain[0]
    model.eval()
    assert not plain.training
    model.note = 3
    assert plain.note == 3
    near(cr.func.functional_call(model, {k: v * 0 for k, v in model.named_parameters()}, (x,)), cr.zeros(5, 1))


def test_a_compiled_module_is_trained():
    plain = nn.Linear(3, 1)
    twin = copy.deepcopy(plain)
    model, x = cr.compile(plain), cr.randn(8, 3)
    for m in (model, twin):
        opt = cr.optim.AdamW(m.parameters(), lr=0.1)
        for _ in range(3):
            opt.zero_grad()
            (m(x) ** 2).mean().backward()
            opt.step()
    near(plain.weight, twin.weight)
    near(nn.Sequential(model, nn.ReLU())(x), twin(x).relu())


def test_copies_of_compiled_modules_and_functions():
    model, x = cr.compile(nn.Linear(3, 2)), cr.randn(4, 3)
    before = model(x).detach()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with cr.no_grad():
            other.weight.add_(1.0)
        near(model(x), before)
        near(other(x), before + x.sum(1, keepdim=True))
    f = cr.jit(nn.Linear(3, 2))
    near(copy.deepcopy(f)(x), f(x))
    near(pickle.loads(pickle.dumps(f))(x), f(x))
    assert cr.compile(len, disable=True) is len


def test_a_decorated_function_pickles_by_its_name():
    assert pickle.loads(pickle.dumps(double)) is double


@cr.jit
def double(x):
    return x * 2
