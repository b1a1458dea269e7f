"""A derivative of a pointwise op on large arrays as one loop: its rule, made of pointwise ops, is a formula of the elements.

A rule is recorded once on an example of one element, and its formula compiled. Rules that do anything else (look at values, reduce) are left as they are.
16-bit floats are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core import walk
from ...core.dispatch import Interpreter
from ...core.errors import ChainruleError
from ...core.tensor import Tensor

CASTS = frozenset(("to", "clone", "alias", "detach"))
LIMIT = 64  # operations: more registers than a processor has
MANY = 1024  # rules that are remembered


class NoFormula(ChainruleError):
    """A rule that is no formula of the elements."""


class Formula(Interpreter):
    """The level on which a rule is recorded: it runs ops one level down on an example, and notes their formulas."""

    kind = "formula"

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, dict[str, Any], list[Any]]] = []
        self.inputs = 0
        self.cost = 0

    def argument(self, dtype: np.dtype, number: bool) -> Tensor:
        """An operand: an array with one element, or a number."""
        self.nodes.append((None, {}, [self.inputs]))
        self.inputs += 1
        return Tensor(Tensor(np.full(() if number else (1,), 0.5, np.float32).astype(dtype)), self, len(self.nodes) - 1)

    def run(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        low, refs = [], []
        for a in args:
            if isinstance(a, Tensor) and a._interp is self:
                low.append(a._value)
                refs.append(a._aux)
            else:
                low.append(a)
                refs.append(_number(a))
        if op.name in CASTS:
            y = op.bind(*low, **kw)
            if y.dtype.np not in dt.REALS or low[0].dtype.np not in dt.REALS or type(refs[0]) is not int:
                raise NoFormula
            return Tensor(y, self, refs[0])
        f, cost = _formula(op)
        y = op.bind(*low, **kw)
        if f is None or (y.dtype.np not in dt.REALS and y.dtype is not dt.bool_) or len(self.nodes) > LIMIT:
            raise NoFormula
        self.nodes.append((f, kw, refs))
        self.cost += cost
        return Tensor(y, self, len(self.nodes) - 1)

    def refusal(self, what: str) -> Exception:
        """The error for whoever needs the elements."""
        return NoFormula()


def _number(a: Any) -> float:
    """A constant of a rule."""
    if isinstance(a, Tensor):
        v = a._value
        if a._interp is not None or type(v) is not np.ndarray or v.size != 1 or v.dtype.kind not in "fi":
            raise NoFormula
        return float(v.reshape(-1)[0])
    if type(a) is not float and type(a) is not int:
        raise NoFormula
    return float(a)


def _formula(op: Any) -> tuple[Any, int]:
    """The formula of an op in the loop language, and what it costs in additions."""
    if op.form != "pointwise":
        return None, 0
    kernel = getattr(op.body, "kernel", None)
    if kernel is not None:
        return kernel, 8
    from ...kernels.elementwise import FORMULAS
    from ...kernels.math import FUNCTIONS

    if op.large is not None:
        return op.large.formula or FORMULAS.get(op.name), op.large.cost
    return FORMULAS.get(op.name), 8 if op.name in FUNCTIONS else 1


def _compose(nodes: list[Any], out: int, used: list[int]) -> Any:
    """The formula ``f(k, *operands)`` of a recorded rule, of the operands it uses."""

    def formula(k: Any, *operands: Any) -> Any:
        given = dict(zip(used, operands, strict=True))
        values: list[Any] = []
        for f, kw, refs in nodes:
            if f is None:
                values.append(given.get(refs[0]))
                continue
            values.append(f(k, *[values[r] if type(r) is int else k.const(r, k.compute) for r in refs], **kw))
        return values[out]

    return formula


_rules: dict[Any, Any] = {}


def record(rule: Any, name: str, operands: list[Any], kw: dict[str, Any]) -> Any:
    """The loop of a rule and the numbers of the operands it reads; None where it is no formula, or one operation."""
    from ...kernels.elementwise import Elementwise

    level = Formula()
    try:
        with level, np.errstate(all="ignore"):
            args = [x if x is None else level.argument(*x) for x in operands]
            y = rule(*args, **kw)
    except Exception:  # whatever a rule does with an example that it could not do with arrays: it runs as it is
        return None
    if not isinstance(y, Tensor) or y._interp is not level or y.dtype.np not in dt.REALS:
        return None
    needed, stack = set(), [y._aux]
    while stack:
        n = stack.pop()
        if n not in needed:
            needed.add(n)
            stack += [r for r in level.nodes[n][2] if type(r) is int and level.nodes[n][0] is not None]
    work = [n for n in needed if level.nodes[n][0] is not None]
    if len(work) < 2:
        return None
    nodes = [node if i in needed else (None, {}, [-1]) for i, node in enumerate(level.nodes)]
    places = [i for i, x in enumerate(operands) if x is not None]
    used = sorted(level.nodes[n][2][0] for n in needed if level.nodes[n][0] is None)
    loop = Elementwise(name, _compose(nodes, y._aux, used), max(level.cost, len(work)))
    return loop, [places[u] for u in used]


def fuse(op: Any, which: int, rule: Any, g: Any, y: Any, xs: Any, kw: dict[str, Any]) -> Any:
    """The rule on large arrays, by its loop; None where it has none, or none for these operands."""
    given = [g, y, *xs]
    kinds: list[Any] = []
    vals: list[Any] = []
    for x in given:
        if x is None:
            kinds.append(None)
            vals.append(None)
            continue
        v = x._value if type(x) is Tensor and x._interp is None else x
        if type(v) is np.ndarray:
            kinds.append((v.dtype, not v.ndim))
        elif type(v) is float or type(v) is int:
            kinds.append((g._value.dtype, True))
        else:
            return None
        vals.append(v)
    try:
        key = (op, which, *kinds, *kw.items())
        found = _rules.get(key, _rules)
    except TypeError:  # static data that cannot be compared
        return None
    if found is _rules:
        if len(_rules) > MANY:
            _rules.clear()
        good = all(k is None or k[0] in dt.REALS or k[0].kind == "b" for k in kinds)
        # A rule that asks whether an operand is a tensor has a better formula for numbers.
        if (
            any(type(x) in (int, float) for x in xs)
            and "isinstance" in getattr(rule, "__code__", record.__code__).co_names
        ):
            good = False
        found = _rules[key] = record(rule, f"{op.name}_pull{which}", kinds, kw) if good else None
    if found is None:
        return None
    loop, used = found
    if g._value.size < loop.least:
        return None
    r = loop(*[vals[i] for i in used])
    return None if r is None else Tensor(r)


walk.FUSE = fuse
