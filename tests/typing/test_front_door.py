"""What is public knows where it lives: home, signature, docstring, source; it pickles by name, and dir() shows nothing else."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import pkgutil
from types import ModuleType
from typing import Any

import pytest

import chainrule as cr
import chainrule.overrides  # functions that ask foreign types take the place of those that do not
from chainrule.core.op import OPS
from chainrule.core.registry import METHODS, OPERATORS

MODULES = """autograd autograd.forward_ad autograd.functional fft func linalg masked nested nn nn.functional nn.init nn.modules nn.parameter
    nn.utils optim optim.lr_scheduler random return_types signal signal.windows special testing tree typing utils utils.checkpoint""".split()
SPACES = ["chainrule", *(f"chainrule.{m}" for m in MODULES)]
INSIDE = ("chainrule.core", "chainrule.ops", "chainrule.payloads", "chainrule.namespaces")


def functions() -> dict[str, Any]:
    found = {}
    for space in SPACES:
        module = importlib.import_module(space)
        for name in module.__all__:
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type | ModuleType) and hasattr(f, "__qualname__"):
                found[f"{space}.{name}"] = f
    return found


def look_up(f: Any) -> Any:
    home: Any = importlib.import_module(f.__module__)
    for part in f.__qualname__.split("."):
        home = getattr(home, part)
    return home


def test_functions() -> None:
    assert len(functions()) > 800
    for name, f in functions().items():
        assert not f.__module__.startswith(INSIDE), name
        assert look_up(f) is f, name
        assert pickle.loads(pickle.dumps(f)) is f, name
        assert f.__doc__, name
        assert inspect.signature(f), name
        assert inspect.getsource(f), name


def test_classes() -> None:
    for space in SPACES:
        module = importlib.import_module(space)
        for name in module.__all__:
            cls = getattr(module, name)
            if isinstance(cls, type):
                assert look_up(cls) is cls, name
                assert pickle.loads(pickle.dumps(cls)) is cls, name
                assert cls.__doc__, name


def test_methods() -> None:
    for name, f in METHODS.items():
        assert pickle.loads(pickle.dumps(f)) is f, name
        assert look_up(f) is f, name
        assert inspect.signature(f).parameters, name
        assert inspect.getsource(f), name


def test_ops_and_results_pickle() -> None:
    assert all(pickle.loads(pickle.dumps(o)) is o for o in OPS.values())
    assert pickle.loads(pickle.dumps(cr.strided)) is cr.strided
    q = cr.linalg.qr(cr.eye(2))
    back = pickle.loads(pickle.dumps(q))
    assert type(back) is type(q) is cr.return_types.QR
    assert back.Q.tolist() == q.Q.tolist()


@pytest.mark.parametrize("space", SPACES)
def test_dir_shows_public_names_only(space: str) -> None:
    module = importlib.import_module(space)
    assert module.__doc__
    assert sorted(module.__all__) == dir(module)
    assert len(set(module.__all__)) == len(module.__all__)
    for name in module.__all__:
        assert not name.startswith("_")
        getattr(module, name)


def test_where_functions_live() -> None:
    assert (cr.softmax.__module__, cr.softmax.__qualname__) == ("chainrule", "softmax")
    assert cr.special.softmax is cr.softmax
    assert cr.linalg.svd.__module__ == "chainrule.linalg"
    assert cr.nn.functional.relu.__module__ == "chainrule.nn.functional"
    assert cr.Tensor.view.__qualname__ == "Tensor.view"
    assert str(inspect.signature(cr.sin)) == "(input: 'Operand', *, out: 'Tensor | None' = None) -> 'Tensor'"
    assert "out" in inspect.signature(cr.linalg.inv).parameters
    assert list(inspect.signature(cr.Tensor.add_).parameters) == ["input", "other", "alpha"]


def test_source_is_the_declaration() -> None:
    assert inspect.getsource(cr.sin).startswith('sin = elementary("sin", np.sin')
    assert inspect.getsource(cr.expm1).rstrip().endswith(")")
    assert '"expm1"' in inspect.getsource(cr.expm1)
    assert "def softmax(" in inspect.getsource(cr.softmax)
    assert '"isnan"' in inspect.getsource(cr.isnan)
    assert inspect.getsource(cr.Tensor.sin_) == inspect.getsource(cr.sin)
    assert cr.sin.__wrapped__(cr.tensor(0.0)).item() == 0  # type: ignore[attr-defined]


def test_the_examples_of_the_docstrings_run() -> None:
    for space in [*SPACES, "chainrule.custom"]:
        module = importlib.import_module(space)
        done = doctest.testmod(module, extraglobs={"chainrule": cr}, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not done.failed, space
        assert done.attempted or space not in ("chainrule", "chainrule.func", "chainrule.nn.functional"), space


def test_the_examples_of_all_other_modules_run() -> None:
    ran = 0
    for found in pkgutil.walk_packages(cr.__path__, "chainrule."):
        if found.name.rpartition(".")[2] == "__main__" or found.name == "chainrule.utils.tensorboard":  # an extra
            continue
        module = importlib.import_module(found.name)
        done = doctest.testmod(module, extraglobs={"chainrule": cr}, optionflags=doctest.NORMALIZE_WHITESPACE)
        assert not done.failed, found.name
        ran += done.attempted
    assert ran > 100


def test_signatures_are_true() -> None:
    """A parameter that a signature names can be given by its name; Python's operators have places only."""
    for name, f in [*functions().items(), *METHODS.items()]:
        code = getattr(f, "__code__", None)
        if code is not None and name not in OPERATORS and not code.co_flags & inspect.CO_VARKEYWORDS:
            real = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            said = [
                p.name for p in list(inspect.signature(f).parameters.values())[1:] if p.kind is not p.VAR_POSITIONAL
            ]
            assert set(said) <= set(real), name
    assert cr.ones(1).mul(other=2).tolist() == [2]
    assert cr.ones(1).mul_(other=3).tolist() == [3]
