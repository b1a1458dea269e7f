"""``import chainrule`` is quick because much of it waits until it is asked for; nobody sees that."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import chainrule as cr


def python(program: str) -> str:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_what_an_import_leaves_for_later() -> None:
    later = "scipy llvmlite numpy.random numpy.polynomial hashlib pathlib tempfile importlib.metadata email".split()
    ours = "nn.modules nn.init nested optim distributions as_torch world.cuda amp array_api scipy testing numpy".split()
    names = {*later, *(f"chainrule.{n}" for n in ours)}
    # What the interpreter itself had loaded before does not count.
    program = f"import sys, numpy; had = set(sys.modules); import chainrule; print({names} & (set(sys.modules) - had))"
    assert python(program) == "set()"


def test_garbage_is_collected_again_after_the_import() -> None:
    assert python("import gc; gc.enable(); import chainrule; print(gc.isenabled())") == "True"
    assert python("import gc; gc.disable(); import chainrule; print(gc.isenabled())") == "False"


def test_nn_shows_everything_from_the_start() -> None:
    first = "import chainrule as cr; "
    assert python(first + "print('Linear' in dir(cr.nn), 'functional' in dir(cr.nn))") == "True True"
    assert python(first + "print(cr.nn.Linear(2, 3).weight.shape)") == "chainrule.Size([3, 2])"
    assert python("from chainrule.nn import *; print(Linear.__name__, Module.__name__)") == "Linear Module"
    assert python("from chainrule.nn import Linear, functional_call, init, Parameter; print(1)") == "1"
    assert python("import chainrule.nn.modules.linear as m; print(m.Linear.__module__)") == "chainrule.nn.modules.linear"  # fmt: skip
    assert (
        python(first + "print(hasattr(cr.nn, '__wrapped__'), 'chainrule.nn.modules' in __import__('sys').modules)")
        == "False False"
    )


def test_a_misspelt_layer_is_refused_with_a_suggestion() -> None:
    run = [sys.executable, "-c", "import chainrule; chainrule.nn.Linaer"]
    message = subprocess.run(run, capture_output=True, text=True, check=False).stderr
    assert "module 'chainrule.nn' has no attribute 'Linaer'" in message
    assert "Did you mean: 'Linear'" in message


def test_every_name_of_the_root_is_there() -> None:
    assert all(hasattr(cr, n) for n in cr.__all__)
    assert all(hasattr(cr.nn, n) for n in cr.nn.__all__)


def test_type_checkers_see_what_nn_loads_later() -> None:
    tree = ast.parse(Path(cr.nn.__file__).read_text())
    (branch,) = (n for n in tree.body if isinstance(n, ast.If))
    imported = {a.name for n in branch.body if isinstance(n, ast.ImportFrom) for a in n.names} - {"*"}
    assert imported | {"factory_kwargs"} | set(cr.nn.modules.__all__) == set(cr.nn.__all__)
