"""Reverse rules of pointwise ops as straight-line code on small arrays: what the walk runs where there is nothing but NumPy beneath.

A rule is made of ops on tensors, and on eight numbers each op costs more than its arithmetic. So a rule is noted once, op by op, and written as a
Python function of arrays that calls the same bodies in the same order. That is done where each op of the rule is pointwise, takes real floats as they
are and has no static data; other rules, complex numbers and other payloads go by the ops as before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dispatch import Interpreter
from .errors import ZERO
from .op import Op
from .tensor import Tensor

ndarray = np.ndarray
Short = Callable[[Any, Any, Any], Any]


class _Unfit(Exception):
    """The rule does something that has no place in straight-line code."""


class _Noting(Interpreter):
    """Notes the ops of a rule: each as the name of its result, its body and the names of its arguments."""

    kind = "note"

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.ufuncs = True

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        body = op.plain
        if kw or body is None or op.view:
            raise _Unfit
        self.ufuncs = self.ufuncs and isinstance(body, np.ufunc)
        low, words = [], []
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                words.append(a._aux)
                low.append(a._value)
            elif type(a) is float or type(a) is int:
                words.append(self.name("c", a))
                low.append(a)
            else:
                raise _Unfit
        y = op.bind(*low)
        if y._value.dtype != np.float64:
            raise _Unfit
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {self.name('f', body)}({', '.join(words)})")
        return Tensor(y, self, name)

    def name(self, kind: str, value: Any) -> str:
        """A name for a constant or a body."""
        name = f"{kind}{len(self.names)}"
        self.names[name] = value
        return name


def _noted(rule: Any, reads: tuple[bool, tuple[bool, ...]]) -> tuple[list[str], str, dict[str, Any], bool]:
    """The lines of a rule, the name of its result, what they call, and whether these are ufuncs alone."""
    level = _Noting()
    with level:
        box = lambda name: Tensor(Tensor(np.array([0.4, 0.6])), level, name)
        y, xs = reads
        out = rule(box("g"), box("y") if y else None, *[box(f"x{i}") if r else None for i, r in enumerate(xs)])
        if not (isinstance(out, Tensor) and out._interp is level):
            raise _Unfit
        return level.lines, out._aux, level.names, level.ufuncs


def _written(op: Op, rules: Any) -> Short | None:
    """``short(node, g, array of g)``: the cotangents of the inputs, or None where the node has something else than small real arrays."""
    names: dict[str, Any] = {"ndarray": ndarray, "Tensor": Tensor, "asarray": np.asarray}
    text = ["def short(n, g, gv):", "    d, xs = gv.dtype, n.args"]
    out = []
    for i, rule in enumerate(rules):
        out.append(f"r{i}")
        text.append(f"    r{i} = None")
        if rule is None or rule is ZERO:
            continue
        need = tuple([k == i for k in range(len(rules))])
        keep_y, keep_x = op.keeps(need)
        reads = bool(keep_y), tuple([keep_x is None or keep_x[k] for k in range(len(rules))])
        lines, result, called, ufuncs = _noted(rule, reads)
        pad = "    "
        if len(rules) > 1:
            text.append(f"    if n.parents[{i}] is not None:")
            pad = "        "
        for name, saved, on in [("y", "n.y", reads[0]), *[(f"x{k}", f"xs[{k}]", r) for k, r in enumerate(reads[1])]]:
            if not on:
                continue
            text.append(f"{pad}{name} = {saved}")
            text.append(f"{pad}if {name}.__class__ is Tensor:")
            text.append(f"{pad}    {name} = {name}._value")
            text.append(f"{pad}    if {name}.__class__ is not ndarray or {name}.dtype is not d: return None")
            plain = f"{name}.__class__ is not float and {name}.__class__ is not int" if ufuncs else "True"
            text.append(f"{pad}elif {plain}: return None")
        rename = {k: f"{k}_{i}" for k in called}
        for line in lines:
            for old in sorted(rename, key=len, reverse=True):
                line = _replaced(line, old, rename[old])
            text.append(pad + _replaced(line, "g", "gv"))
        names.update({rename[k]: v for k, v in called.items()})
        text.append(
            f"{pad}r{i} = g"
            if result == "g"
            else f"{pad}r{i} = Tensor({result} if {result}.__class__ is ndarray else asarray({result}))"
        )
    text.append(f"    return ({', '.join(out)},)")
    exec(compile("\n".join(text), f"<short rule of {op.name}>", "exec"), names)
    return names["short"]


def _replaced(line: str, old: str, new: str) -> str:
    """A word of a line replaced."""
    import re

    return re.sub(rf"\b{old}\b", new, line)


def short_rule(op: Op) -> Short | None:
    """The reverse rules of an op on small arrays, noted when first asked for; None where they cannot be."""
    rules = op.pull_rules
    made: Short | None = None
    if op.form == "pointwise" and op.conjugated and type(rules) is list and 1 <= len(rules) <= 2:
        try:
            with np.errstate(all="ignore"):
                made = _written(op, rules)
        except Exception:  # whatever a rule does with tensors that are no arrays: it goes by the ops
            made = None
    op.short = (rules, made)
    return made
