"""Examples that run: the one written for a function, one of its samples, or the simplest call that works, with what it prints, its shapes and its gradient."""

from __future__ import annotations

import doctest
import inspect
import io
import math
import re
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import numpy as np

import chainrule as cr
import chainrule.numpy as cnp
from chainrule.core.samples import SAMPLES, Given, S
from chainrule.people.tap import Tap, listening

from . import guesses
from .examples import EXAMPLES
from .module_examples import MODULE_EXAMPLES


def literal(a: np.ndarray) -> str:
    """A small array as Python source."""
    if a.dtype.kind == "f":
        a = np.round(a, 2)
    body = np.array2string(
        a, separator=", ", threshold=10_000, max_line_width=10_000, formatter={"float_kind": lambda v: repr(float(v))}
    )
    body = body.replace("\n", "").replace("  ", " ")
    return f"cr.tensor({body})"


def sample_lines(name: str) -> list[str] | None:
    """The smallest sample of a function as source: the arrays, then the call."""
    best: tuple[int, list[str]] | None = None
    for s in SAMPLES:
        if s.name != name or s.f is not None:
            continue
        rng = np.random.default_rng(0)
        lines: list[str] = []
        names = iter(["x", "y", "z", "u", "v", "w", "p", "q"])
        size = 0

        def build(a: Any, rng: Any = rng, names: Any = names, lines: list[str] = lines) -> str:
            nonlocal size
            if isinstance(a, S | Given):
                v = a.make(rng, False)
                size += v.size
                n = next(names)
                lines.append(f"{n} = {literal(np.asarray(v))}")
                return n
            if isinstance(a, list | tuple) and any(isinstance(b, S | Given) for b in a):
                inner = ", ".join(build(b) for b in a)
                return f"[{inner}]" if isinstance(a, list) else f"({inner},)"
            if isinstance(a, float) and not math.isfinite(a):  # its repr is no source
                raise StopIteration
            if isinstance(a, float | int | str | bool | type(None) | tuple | list | slice | complex):
                return repr(a)
            raise StopIteration

        try:
            args = [build(a) for a in s.args] + [f"{k}={build(v)}" for k, v in s.kw.items()]
        except (StopIteration, RuntimeError, ValueError):
            continue
        if "inf" in "".join(lines) or "nan" in "".join(lines):
            continue
        lines.append(f"cr.{name}({', '.join(args)})")
        cost = size if size >= 3 else 50 + size  # small, but not so small that nothing is seen
        if best is None or cost < best[0]:
            best = (cost, lines)
    return best[1] if best is not None and best[0] <= 60 else None


GUESSES = ("x", "x, y", "x, dim=0", "x, 1", "x, 2", "i", "i, j", "x, y, z", "c", "(2, 3)", "3", "x, 0, 1", "x, 1, 0", "[x, y]", "x, [0]", "m", "m, v", "m, m", "x, i", "b", "b, b",
           "x, 0", "x, b", "x, 0.5", "a", "a, 1", "a, (2, 2)", "a, 0, i", "i, 2", "x, (3,)", "s", "s, x", "")  # fmt: skip
SETUP = {
    "x": "x = cr.tensor([0.5, -1.2, 2.0])", "y": "y = cr.tensor([1.0, 0.3, -0.7])", "z": "z = cr.tensor([0.2, 0.4, 0.6])", "i": "i = cr.tensor([1, 2, 0])",
    "j": "j = cr.tensor([3, 1, 2])", "c": "c = cr.tensor([1 + 2j, 3 - 1j])", "m": "m = cr.tensor([[2.0, 1.0], [1.0, 3.0]])", "v": "v = cr.tensor([1.0, 2.0])",
    "b": "b = cr.tensor([True, False, True])", "a": "a = cr.tensor([[1.0, 2.0], [3.0, 4.0]])", "s": 's = cr.nested.nested_tensor([[1.0, 2.0], [3.0]])',
}  # fmt: skip


class Example(NamedTuple):
    """Source lines with what they print, and the shapes of the call."""

    text: str
    shapes: str
    lines: tuple[str, ...] = ()
    numpy: Any = np

    def ops(self) -> list[str]:
        """The ops that its last line is made of."""
        scope: dict[str, Any] = {"cr": cr, "np": self.numpy, "grad": cr.func.grad}
        fresh()
        with redirect_stdout(io.StringIO()):
            for line in self.lines[:-1]:
                exec(line, scope)
            with listening(Tap()) as tap:
                for line in self.lines[-1:]:
                    exec(line, scope)
        return list(dict.fromkeys(e.op.name for e in tap.leaves()))


def fresh() -> None:
    """As in a new session: the random numbers, and no world of processes from the example before."""
    cr.manual_seed(0)
    if cr.distributed.is_initialized():
        cr.distributed.destroy_process_group()


def shape_of(v: Any) -> str:
    """The shape of a result; of what has none, its type."""
    if isinstance(v, cr.Tensor):
        return "ragged" if v.is_nested else str(list(v.shape))
    if isinstance(v, np.ndarray | cnp.Array):
        return str(list(v.shape))
    if isinstance(v, tuple | list) and v and not isinstance(v, cr.Size) and not isinstance(v[0], int | float | str):
        return ", ".join(shape_of(w) for w in v[:4]) + (", …" if len(v) > 4 else "")
    return "" if v is None else type(v).__name__


def shapes_of(scope: dict[str, Any], result: Any) -> str:
    """``x [3], y [3] → [3]``."""
    before = [f"{k} {shape_of(v)}" for k, v in scope.items() if k[0] != "_" and isinstance(v, cr.Tensor | np.ndarray)]
    after = shape_of(result)
    return f"{', '.join(before)} → {after}".strip() if after else ""


def prompt(line: str) -> list[str]:
    """A piece of source as it is typed."""
    first, *rest = line.split("\n")
    return [f">>> {first}", *(f"... {r}" for r in rest)]


def run_lines(lines: list[str], name: str, derivative: bool, np: Any = np, seed: int = 0) -> Example:
    """Run source lines and write them with their results, as a doctest."""
    scope: dict[str, Any] = {"cr": cr, "np": np, "grad": cr.func.grad}
    fresh()
    cr.manual_seed(seed)
    given = set(scope)
    out = []
    for line in lines[:-1]:
        out += prompt(line)
        try:
            code = compile(line, name, "eval")
        except SyntaxError:
            exec(line, scope)
        else:
            value = eval(code, scope)
            out += [] if value is None else repr(value).splitlines()
    before = {k: v for k, v in scope.items() if k not in given and k != "__builtins__"}
    printed = io.StringIO()
    with redirect_stdout(printed):
        result = eval(lines[-1], scope)
    shapes = shapes_of(before, result)
    call = lines[-1]
    text = printed.getvalue() + ("" if result is None else repr(result))
    if len(text.splitlines()) > 10 and isinstance(result, cr.Tensor) and not result.is_nested:
        out += [f">>> {call}.shape", repr(result.shape)]
    else:
        out += prompt(call)
        if len(text.splitlines()) > 16:
            text = "\n".join(text.splitlines()[:6]) + "\n..."
        if text:
            out += text.rstrip().splitlines()
    if derivative:
        out += gradient_lines(scope, call, result, np)
    return Example("\n".join(out), shapes, tuple(lines), np)


def gradient_lines(scope: dict[str, Any], call: str, result: Any, np: Any) -> list[str]:
    """The gradient of the sum of a result by the first array that is handed in, where there is one."""
    first = next(
        (k for k in re.findall(r"\b[a-z]\w*\b", call) if isinstance(scope.get(k), cr.Tensor | np.ndarray)), None
    )
    head = result[0] if isinstance(result, tuple | list) and result else result
    if first is None or "(" not in call or not isinstance(head, cr.Tensor | np.ndarray | np.floating):
        return []
    x = scope[first]
    on_numpy = not isinstance(x, cr.Tensor)
    if on_numpy:
        if x.dtype.kind != "f" or x.size > 24 or head.dtype.kind != "f":
            return []
    elif (
        x.is_nested
        or not x.is_floating_point()
        or x.numel() > 24
        or not (head.is_floating_point() or head.is_complex())
    ):
        return []
    pick = "[0]" if head is not result else ""
    real = ".abs()" if not on_numpy and head.is_complex() else ""
    total = "np.sum({})" if on_numpy else "{}.sum()"
    square = "np.sum({} ** 2)" if on_numpy else "{}.square().sum()"
    try:
        expr = f"grad(lambda {first}: {total.format(call + pick + real)})({first})"
        g = eval(expr, scope)
        if not real and g.max() - g.min() < 1e-6:  # a sum that says nothing of the derivative
            expr = f"grad(lambda {first}: {square.format(call + pick)})({first})"
            g = eval(expr, scope)
    except Exception:  # a function without a derivative at all
        return []
    return [f">>> {expr}", *repr(g).splitlines()]


def doc_example(f: Any) -> Example:
    """The shapes of the last call of a docstring's own example, which the page shows as it is."""
    scope: dict[str, Any] = {"cr": cr, "chainrule": cr, "np": np, **vars(sys.modules[inspect.unwrap(f).__module__])}
    given = dict(scope)
    result: Any = None
    before: dict[str, Any] = {}
    for e in doctest.DocTestParser().get_examples(inspect.getdoc(f) or ""):
        before = dict(scope)
        try:
            with redirect_stdout(io.StringIO()):
                result = eval(e.source, scope)
        except SyntaxError:
            exec(e.source, scope)
        except (NameError, ImportError):  # of a package that is not installed here
            return Example("", "")
    made = {k: v for k, v in before.items() if k != "__builtins__" and given.get(k) is not v}
    return Example("", shapes_of(made, result))


def example_of(names: list[str], f: Any) -> Example | None:
    """An example of an operator that runs: the one written for it, one of its samples, or the simplest call that works."""
    doc = inspect.getdoc(f) or ""
    for name in names:
        if name in EXAMPLES:
            return run_lines(EXAMPLES[name].strip().splitlines(), name, True)
    if ">>>" in doc:
        return doc_example(f)
    for name in names:
        lines = sample_lines(name)
        if lines is not None:
            try:
                return run_lines(lines, name, True)
            except Exception:
                continue
    name = names[0]
    if name.endswith("_") and (base := sample_lines(name[:-1])) is not None:
        try:
            return run_lines([*base[:-1], base[-1].replace(f"cr.{name[:-1]}(", f"cr.{name}(")], name, False)
        except Exception:  # its result has another shape than its argument: one of the guesses does
            pass
    if re.match(r"(rand|empty|seed|initial)", name.rpartition(".")[2]):
        return None
    for guess in GUESSES:
        lines = [SETUP[k] for k in dict.fromkeys(re.findall(r"\b[a-z]\b", guess)) if k in SETUP]
        try:
            with redirect_stderr(io.StringIO()):
                return run_lines([*lines, f"cr.{name}({guess})"], name, True)
        except Exception:
            continue
    return None


def module_example(module: str, name: str, f: Any) -> Example | None:
    """An example of a public name of a namespace that runs, and prints the same whatever the random numbers are."""
    numpy = cnp if module == "numpy" else np
    if name in MODULE_EXAMPLES:
        return run_lines(MODULE_EXAMPLES[name].split("\n\n"), name, not name.startswith("autograd"), numpy)
    if ">>>" in (inspect.getdoc(f) or ""):
        return Example("", "")
    for lines in guesses.calls(module, name, f):
        first = run_quietly(lines, name, 0, numpy)
        if first is None:
            continue
        if run_quietly(lines, name, 1, numpy) == first:
            return first
        weights = "{k: list(v.shape) for k, v in m.named_parameters()}"
        shown = run_quietly([*lines[:-1], weights, lines[-1] + ".shape"], name, 0, numpy)
        if shown is None or "\n{}\n" in shown.text:
            shown = run_quietly([*lines[:-1], lines[-1] + ".shape"], name, 0, numpy)
        return None if shown is None else shown._replace(shapes=first.shapes)
    return None


def run_quietly(lines: list[str], name: str, seed: int, np: Any) -> Example | None:
    """The example, or None where it raises or warns."""
    try:
        with redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("error")
            return run_lines(lines, name, True, np, seed)
    except Exception:
        return None
