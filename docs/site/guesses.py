"""Examples of modules, optimisers, schedules, distributions and NumPy's names: the simplest use that works, found by trying, as source lines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import chainrule as cr

# What a constructor may be called with, simplest first; for the rank in the name (1d, 2d, 3d) sizes that fit it.
ARGUMENTS = ("", "2", "1", "3", "4", "4, 2", "2, 4", "2, 2", "4, 3, 2", "4, 3, 1", "2, 8", "(4,)", "1, (2, 2)", "0.5", "1, 0.5", "4, 2, 8, 1", "0.1, 0.0",
             "2, output_size=1", "1, output_size=1", "4, 2, 2", "2, 3, 2")  # fmt: skip
INPUTS = {
    "1d": ("x = cr.linspace(-1, 1, 12).reshape(1, 4, 3)",),
    "2d": ("x = cr.linspace(-1, 1, 16).reshape(1, 4, 2, 2)", "x = cr.linspace(-1, 1, 16).reshape(1, 4, 4)"),
    "3d": ("x = cr.linspace(-1, 1, 16).reshape(1, 2, 2, 2, 2)",),
    "": ("x = cr.linspace(-1, 1, 8).reshape(2, 4)", "x = cr.linspace(-1, 1, 24).reshape(2, 3, 4)", "x = cr.tensor([0, 2])",
         "x = cr.linspace(-1, 1, 16).reshape(1, 4, 2, 2)", "x = cr.linspace(-1, 1, 12).reshape(1, 4, 3)"),
}  # fmt: skip
TARGETS = ("y = cr.linspace(0, 1, 8).reshape(2, 4)", "y = cr.tensor([1, 3])", "y = cr.tensor([1.0, -1.0])", "y = cr.tensor([[3, 0, -1, -1], [1, -1, -1, -1]])",
           "y = cr.ones(2, 4)")  # fmt: skip
PARAMETERS = ("0.0, 1.0", "1.0", "0.5", "1.0, 2.0", "cr.tensor([0.2, 0.3, 0.5])", "10, 0.5", "10, cr.tensor([0.2, 0.8])", "3, 2.0", "cr.zeros(2), cr.eye(2)",
              "cr.zeros(2), cr.ones(2, 1), cr.ones(2)", "cr.tensor(0.5), cr.tensor([0.2, 0.8])", "0.0, 1.0, 0.1", "cr.tensor(4.0), cr.eye(2)",
              "cr.tensor(0.5), cr.tensor(0.3)",
              "cr.distributions.Normal(cr.zeros(2), 1.0), 1", "cr.distributions.Categorical(cr.tensor([0.5, 0.5])), cr.distributions.Normal(cr.tensor([0.0, 3.0]), 1.0)",
              "cr.distributions.Normal(0.0, 1.0), [cr.distributions.ExpTransform()]")  # fmt: skip
VALUES = ("0.5", "2.0", "1", "cr.tensor([0.2, 0.3, 0.5])", "cr.tensor([1.0, 0.0, 0.0])", "cr.tensor([0.5, 0.5])", "cr.tensor([3.0, 7.0])",
          "cr.tensor([0.3, -0.2])", "cr.eye(2)", "cr.linalg.cholesky(cr.eye(3))", "5.0")  # fmt: skip
TRANSFORMS = ("", "0.0, 2.0", "2.0", "(2,), (1, 2)", "cr.distributions.ExpTransform(), 1", "[cr.distributions.ExpTransform()]",
              "[cr.distributions.ExpTransform(), cr.distributions.TanhTransform()]", "cr.distributions.Normal(0.0, 1.0)")  # fmt: skip
SCHEDULES = ("1", "5", "[2, 4]", "lambda epoch: 0.5**epoch", "0.5", "0.1, 0.5, 2", "0.5, total_steps=10")
ARRAYS = {
    "x": "x = np.array([0.5, -1.2, 2.0])", "y": "y = np.array([1.0, 0.3, -0.7])", "z": "z = np.array([0.2, 0.4, 0.6])", "i": "i = np.array([1, 2, 0])",
    "m": "m = np.array([[2.0, 1.0], [1.0, 3.0]])", "b": "b = np.array([True, False, True])", "u": "u = np.array([1, 2, 3], dtype=np.uint8)",
    "a": "a = np.arange(8.0).reshape(2, 2, 2)",
}  # fmt: skip
CALLS = ("x", "m", "x, y", "x, 1", "b, x", "b, x, y", "x, b", "x, i", "x, b, 1.0", "i", "i, 2", "u", "a, 2", "m, 2", "m, 0, 1", "m, 1, 0", "x, (3, 1)", "x, (2, 3)",
         "(x, y)", "[[x], [y]]", "x, 0", "x, 50", "x, 0.5", "x, x, y", "x, y, 1", "x, i, 0", "x, i, y", "x, 1, 9.0", "x, i, [b], [2 * x]", "i, [x, y, x]", "[b, ~b], [x, y]", "x, [x > 0], [np.exp]",
         "np.sum, 0, m", "np.sum, m, [0]", "m, np.array([[0], [1]]), 1", "m, np.array([[0], [1]]), 9.0, 1", "3", "0, 1, 5", "1, 8, 4", "(2, 3)", "(2, 3), 7.0", '"ij,jk->ik", m, m',
         "[0, 3], (2, 2)", "([0, 1], [1, 0]), (2, 2)", "x, np.float32", "0, x, 5.0", "np.float32", "np.float32, np.float64", "")  # fmt: skip


def rank_of(name: str) -> str:
    """``1d``, ``2d``, ``3d`` where a name ends so."""
    m = re.search(r"([123])d$", name)
    return f"{m[1]}d" if m else ""


def module_calls(name: str) -> Iterator[list[str]]:
    """A module made and called: with one argument, with a target, with two points."""
    rank = rank_of(name)
    inputs = INPUTS[rank]
    for x in inputs:
        for a in ARGUMENTS:
            yield [x, f"m = cr.{name}({a})", "m(x)"]
    if name.endswith(("Loss", "Loss2d", "Distance", "Similarity", "Bilinear")):
        for x in INPUTS[""][:1]:
            for y in TARGETS:
                for a in ("", "4, 5, [2]", "4, 4, 3"):
                    yield [x, y, f"m = cr.{name}({a})", "m(x, y)"]
            for more in ("cr.tensor([1.0, -1.0])", "cr.ones(2, 4)", "y.flip(0)"):
                yield [x, "y = x.flip(1)", f"m = cr.{name}()", f"m(x, y, {more})"]
            yield [x, "y = x.flip(1)", f"m = cr.{name}()", "m(x[:, 0], y[:, 0], cr.tensor([1.0, -1.0]))"]
    yield ["x = cr.linspace(-1, 1, 12).reshape(3, 1, 4)", f"m = cr.{name}(4, 2)", "m(x, x, x)[0]"]
    yield ["x = cr.linspace(-1, 1, 12).reshape(3, 1, 4)", f"m = cr.{name}(4, 2)", "m(x, x)"]


def distribution_calls(name: str) -> Iterator[list[str]]:
    """A density at a point."""
    for a in PARAMETERS:
        for v in VALUES:
            yield [f"x = {v}" if v.startswith("cr.") else f"x = cr.tensor({v})", f"d = cr.{name}({a})", "d.log_prob(x)"]


def transform_calls(name: str) -> Iterator[list[str]]:
    """A transform of a point."""
    for a in TRANSFORMS:
        for x in ("x = cr.tensor([0.5, 0.2])", "x = cr.tensor([0.5, 0.2, 0.3])"):
            yield [x, f"t = cr.{name}({a})", "t(x)"]


def optimiser_calls(name: str) -> Iterator[list[str]]:
    """Steps of an optimiser on a small problem."""
    for w in ("cr.nn.Parameter(cr.tensor([1.0, -2.0]))", "cr.nn.Parameter(cr.tensor([[1.0, -2.0], [0.5, 1.0]]))"):
        for tail in ("lr=0.1", ""):
            new = f"o = cr.{name}([w], {tail})".replace(", )", ")")
            yield [f"w = {w}", new, "w.square().sum().backward()", "_ = o.step()", "w.data"]
            closure = "def loss():\n    o.zero_grad()\n    l = w.square().sum()\n    l.backward()\n    return l"
            yield [f"w = {w}", new, closure, "_ = o.step(loss)", "w.data"]


def schedule_calls(name: str) -> Iterator[list[str]]:
    """The learning rates of some steps."""
    start = ["o = cr.optim.SGD([cr.nn.Parameter(cr.ones(1))], lr=1.0)"]
    loop = "rates = []\nfor _ in range(4):\n    rates.append(round(o.param_groups[0]['lr'], 3))\n    o.step()\n    s.step()"
    for a in ("", *SCHEDULES):
        yield [*start, f"s = cr.{name}(o, {a})".replace(", )", ")"), loop, "rates"]
    yield [*start, f"s = cr.{name}(o, patience=0)", loop.replace("s.step()", "s.step(1.0)"), "rates"]
    first = "a, b = cr.optim.lr_scheduler.ConstantLR(o, 0.5, 2), cr.optim.lr_scheduler.ExponentialLR(o, 0.9)"
    for call in ("[a, b]", "o, [a, b], milestones=[2]"):
        yield [*start, first, f"s = cr.{name}({call})", loop, "rates"]


def initial_calls(name: str) -> Iterator[list[str]]:
    """A weight that is filled."""
    for a in ("", ", 0.5"):
        for w in ("cr.empty(2, 2)", "cr.empty(2, 2, 2)"):
            random = re.search(r"normal|uniform|orthogonal|sparse", name) is not None
            yield [f"w = {w}", f"cr.{name}(w{a}){'.shape' if random else ''}"]
    yield [f'cr.{name}("relu")']


def numpy_calls(name: str) -> Iterator[list[str]]:
    """NumPy's function on small arrays."""
    short = name.removeprefix("numpy.")
    for call in CALLS:
        yield [
            *(ARRAYS[k] for k in dict.fromkeys(re.findall(r"\b[a-z]\b", call)) if k in ARRAYS),
            f"np.{short}({call})",
        ]


def scipy_calls(name: str) -> Iterator[list[str]]:
    """A function of SciPy's on small arrays."""
    _, module, short = name.split(".")
    start = f"from chainrule.scipy import {module}"
    for call in (
        "m",
        "m, x",
        "m, m",
        "m, m, m",
        "x",
        "x, y",
        "x, x, y",
        "(m, False), x",
        "x, 0.5",
        "(1, 1), np.array([[0.0, 1.0], [4.0, 4.0], [1.0, 0.0]]), x",
        "1, x",
        "x + 1.0, 2",
    ):
        arrays = {"x": "x = np.array([0.5, 1.2])", "y": "y = np.array([1.0, 0.3])", "m": ARRAYS["m"]}
        yield [
            start,
            *(arrays[k] for k in dict.fromkeys(re.findall(r"\b[a-z]\b", call)) if k in arrays),
            f"{module}.{short}({call})",
        ]


def distributed_calls(name: str) -> Iterator[list[str]]:
    """A collective in a world of one process."""
    module, _, short = name.rpartition(".")
    start = ["import chainrule.distributed as dist", "dist.init_process_group('mpi')"]
    if module.endswith("functional"):
        start += ["from chainrule.distributed.nn import functional as C", "x = cr.tensor([1.0, 2.0])"]
        for call in ("x", "x, 0", "None, [x]", "[x]", "[x], [x]", "None, x", "None, [x], 0", "x, x"):
            yield [*start, f"C.{short}({call})"]
        return
    start += ["x = cr.tensor([1.0, 2.0])"]
    for call in (
        "",
        "x",
        "x, 0",
        "x, x",
        "[x], x",
        "x, [x]",
        "[x], [x]",
        "['a']",
        "[None], 'a'",
        "'a', [None]",
        "[None], ['a']",
        "[0]",
        "dist.group.WORLD, 0",
        "dist.group.WORLD",
    ):
        yield [*start, f"dist.{short}({call})"]
        if "x" in call:
            yield [*start, f"_ = dist.{short}({call})", "x"]


def calls(module: str, name: str, f: Any) -> Iterator[list[str]]:
    """What may be an example of a public name of a namespace, simplest first, each as source lines of which the last one is shown."""
    if isinstance(f, type) and issubclass(f, BaseException):
        return
    if module == "numpy":
        yield from numpy_calls(name)
    elif module.startswith("scipy."):
        yield from scipy_calls(name)
    elif module.startswith("distributed") and not isinstance(f, type) and module != "distributed.checkpoint":
        yield from distributed_calls(name)
    elif isinstance(f, type) and issubclass(f, cr.nn.Module):
        yield from module_calls(name)
    elif isinstance(f, type) and issubclass(f, cr.distributions.Distribution):
        yield from distribution_calls(name)
    elif isinstance(f, type) and issubclass(f, cr.distributions.Transform):
        yield from transform_calls(name)
    elif isinstance(f, type) and issubclass(f, cr.optim.Optimizer):
        yield from optimiser_calls(name)
    elif module == "optim.lr_scheduler":
        yield from schedule_calls(name)
    elif module == "nn.init":
        yield from initial_calls(name)
    elif not isinstance(f, type) and not any(
        p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        for p in inspect.signature(f).parameters.values()
    ):
        yield [f"cr.{name}()"]
