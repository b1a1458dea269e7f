"""Reverse rules of pointwise ops as straight-line code on small arrays: what the walk runs where there is nothing but NumPy beneath.

A rule is made of ops on tensors, and on eight numbers each op costs more than its arithmetic. So a rule is noted once, op by op, and written as a
Python function of arrays that calls the same bodies in the same order. That is done where each op of the rule is pointwise, takes real floats as they
are and has no static data; other rules, complex numbers and other payloads go by the ops as before.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .dispatch import Interpreter, innermost
from .errors import ZERO
from .op import Op
from .reverse import _NONE, Node, _count
from .tensor import Tensor

ndarray = np.ndarray
Short = Callable[..., Any]


_KINDS = (np.dtype(np.float64), np.dtype(np.bool_))


class _Unfit(Exception):
    """The rule does something that has no place in straight-line code."""


class _Noting(Interpreter):
    """Notes the ops of a rule: each as the name of its result, its body and the names of its arguments."""

    kind = "record"  # a rule that looks at the elements of its example is refused, as where a function is recorded
    strict = True

    def __init__(self, suffix: str) -> None:
        self.suffix = suffix  # of names, which the rules of an op share
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.ufuncs = True

    def run(self, op: Op, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        body = op.direct
        if body is None or op.view or op.form != "pointwise":
            raise _Unfit(op.name)
        if kw:  # what a rule says itself: those of the node are not there
            body = functools.partial(body, **kw)
        self.ufuncs = self.ufuncs and isinstance(body, np.ufunc)
        low, words = [], []
        types: list[Any] = []
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                words.append(a._aux)
                low.append(a._value)
                types.append(a._value._value.dtype)
            elif type(a) is float or type(a) is int:
                name = self.name("c", a)
                # A body that is no ufunc may know nothing of numbers that take the type of an array.
                words.append(name if isinstance(body, np.ufunc) else f"d.type({name})")
                low.append(a)
            else:
                raise _Unfit(op.name)
        of = types[1:] if op.types.choice and len(types) > 1 else types  # type: ignore[union-attr]
        if any(t is not of[0] or t.num not in op.fast for t in of):
            raise _Unfit(op.name)
        y = op.bind(*low, **kw)
        if type(y) is not Tensor or y._value.dtype not in _KINDS:
            raise _Unfit(op.name)
        name = f"v{len(self.lines)}"
        call = self.name("f", body)
        below = None if kw else getattr(body, "below", None)
        if below is not None and words[0] not in self.names:  # an array, and no number
            call = f"({self.name('f', below[0])} if {words[0]}.size < {below[1]} else {call})"
        self.lines.append(f"{name} = {call}({', '.join(words)})")
        return Tensor(y, self, name)

    def refusal(self, what: str) -> Exception:
        """The error for a rule that asks for elements."""
        return _Unfit(what)

    def look(self, x: Any, check: Any) -> None:
        """Refuse to look at elements."""
        raise _Unfit

    def name(self, kind: str, value: Any) -> str:
        """A name for a constant or a body."""
        name = f"{kind}{len(self.names)}{self.suffix}"
        self.names[name] = value
        return name


def _noted(rule: Any, reads: tuple[bool, tuple[bool, ...]], suffix: str) -> tuple[list[str], str, dict[str, Any], bool]:
    """The lines of a rule, the name of its result, what they call, and whether these are ufuncs alone."""
    level = _Noting(suffix)
    with level:
        box = lambda name: Tensor(Tensor(np.array([0.4, 0.6])), level, name)
        y, xs = reads
        out = rule(box("gv"), box("y") if y else None, *[box(f"x{i}") if r else None for i, r in enumerate(xs)])
        if not (isinstance(out, Tensor) and out._interp is level) or innermost(out).dtype != np.float64:
            raise _Unfit
        return level.lines, out._aux, level.names, level.ufuncs


class Lean(Node):
    """A node whose op has a short rule, of arrays and numbers alone: it keeps these as they are, and makes tensors of them for whoever asks."""

    __slots__ = ("raw", "kept")
    raw: Any
    kept: Any
    rare: Any = False  # in the __dict__ of those few that are
    kw: Any = _NONE

    def __init__(self, op: Op, raw: Any, kept: Any, parents: Any, fits: Any) -> None:
        self.op = op
        self.raw = raw
        self.kept = kept
        self.parents = parents
        self.fits = fits
        self.seq = _count()

    @property
    def args(self) -> Any:
        """The inputs that are kept, as tensors."""
        return None if self.raw is None else tuple([Tensor(x) if type(x) is ndarray else x for x in self.raw])

    @args.setter
    def args(self, value: Any) -> None:
        self.raw = value

    @property
    def y(self) -> Any:
        """The result, if it is kept, as a tensor."""
        return None if self.kept is None else Tensor(self.kept)

    @y.setter
    def y(self, value: Any) -> None:
        self.kept = value


def kept_arrays(n: Any) -> Any:
    """What a node keeps of its inputs, as arrays and numbers; None where something else is among them."""
    if n.__class__ is Lean:
        return n.raw
    out: list[Any] = []
    for x in n.args:
        if x.__class__ is Tensor:
            x = x._value
            if x.__class__ is not ndarray:
                return None
        elif x is not None and x.__class__ is not float and x.__class__ is not int:
            return None
        out.append(x)
    return out


def _written(op: Op, rules: Any, lean: bool = False) -> Short:
    """``short(node, array of g)``: the cotangents of the inputs in arrays, or None where the node has something else than small real arrays.

    That of an op of one input is by itself. A lean node keeps arrays of one type and numbers, others keep tensors.
    """
    names: dict[str, Any] = {"__name__": __name__, "ndarray": ndarray, "Tensor": Tensor, "asarray": np.asarray}
    text = ["def short(n, gv):", "    d = gv.dtype"]
    if len(rules) > 1:
        text.append("    parents = n.parents")
    if not lean:
        text.append("    xs = n.args")
    out = []
    for i, rule in enumerate(rules):
        out.append(f"r{i}")
        if rule is None or rule is ZERO or len(rules) > 1:
            text.append(f"    r{i} = None")
        if rule is None or rule is ZERO:
            continue
        need = tuple([k == i for k in range(len(rules))])
        keep_y, keep_x = op.keeps(need)
        reads = bool(keep_y), tuple([keep_x is None or keep_x[k] for k in range(len(rules))])
        lines, result, called, ufuncs = _noted(rule, reads, f"_{i}")
        pad = "    "
        if len(rules) > 1:
            text.append(f"    if parents[{i}] is not None:")
            pad = "        "
        if lean and not ufuncs and len(rules) > 1:
            raise _Unfit  # an operand may be a number
        stored = "n.kept" if lean else "n.y"
        xs = "n.raw" if lean else "xs"
        for name, saved, on in [("y", stored, reads[0]), *[(f"x{k}", f"{xs}[{k}]", r) for k, r in enumerate(reads[1])]]:
            if not on:
                continue
            text.append(f"{pad}{name} = {saved}")
            if lean:  # the operand of an op of one is an array
                number = f"{name}.__class__ is ndarray and " if len(rules) > 1 else ""
                text.append(f"{pad}if {number}{name}.dtype is not d: return None")
                continue
            text.append(f"{pad}if {name}.__class__ is Tensor:")
            text.append(f"{pad}    {name} = {name}._value")
            text.append(f"{pad}    if {name}.__class__ is not ndarray or {name}.dtype is not d: return None")
            plain = f"{name}.__class__ is not float and {name}.__class__ is not int" if ufuncs else "True"
            text.append(f"{pad}elif {plain}: return None")
        text += [pad + line for line in lines]
        names.update(called)
        array = f"({result} if {result}.__class__ is ndarray else asarray({result}))"
        text.append(f"{pad}r{i} = {'gv' if result == 'gv' else array}")
    text.append(f"    return {out[0]}" if len(out) == 1 else f"    return ({', '.join(out)},)")
    exec(compile("\n".join(text), f"<short rule of {op.name}>", "exec"), names)
    return names["short"]


def short_rule(op: Op) -> tuple[Any, Short | None, Short | None]:
    """The reverse rules of an op, and what they are on small arrays of nodes and of lean nodes: noted when first asked for, None where they cannot be."""
    rules = op.pull_rules
    made: Short | None = None
    lean: Short | None = None
    if op.straight is not None and op.straight[0] is rules:
        made = lean = op.straight[1]
    elif op.form == "pointwise" and op.conjugated and type(rules) is list and 1 <= len(rules) <= 2:
        try:
            with np.errstate(all="ignore"):
                made = _written(op, rules)
                lean = _written(op, rules, lean=True)
        except Exception:  # whatever a rule does with tensors that are no arrays: it goes by the ops
            pass
    op.short = (rules, made, lean)
    return op.short
