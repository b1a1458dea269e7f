"""Element functions: what one element of a pointwise op is in the loop language, and what it costs in additions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..kernels import math
from ..kernels.lang import Kernel, Value
from ..kernels.pointwise import OPS

_CHEAP = {
    "add",
    "sub",
    "mul",
    "neg",
    "abs",
    "square",
    "relu",
    "where",
    "clone",
    "overwrite",
    "lt",
    "le",
    "gt",
    "ge",
    "eq",
    "ne",
    "to",
}
_NAMES = {
    "add", "sub", "mul", "div", "neg", "abs", "reciprocal", "square", "maximum", "minimum", "lt", "le", "gt", "ge", "eq", "ne", "where",
    "exp", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "rsqrt", "sqrt",
}  # fmt: skip


def _logical(f: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    return lambda k, a, b: f(a, b)


_EXTRA: dict[str, Callable[..., Any]] = {
    "overwrite": lambda k, x, new: new,
    "logical_and": _logical(lambda a, b: a & b),
    "logical_or": _logical(lambda a, b: a | b),
    "logical_not": lambda k, a: a ^ True,
    "isnan": lambda k, a: a.ne(a),
    "bitwise_and": _logical(lambda a, b: a & b),
    "bitwise_or": _logical(lambda a, b: a | b),
    "bitwise_xor": _logical(lambda a, b: a ^ b),
    "bitwise_not": lambda k, a: a ^ True,
}
_BOOLEAN = {"logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"}
_WHOLE: dict[str, Callable[..., Any]] = {
    "add": lambda k, a, b: a + b,
    "sub": lambda k, a, b: a - b,
    "mul": lambda k, a, b: a * b,
    "neg": lambda k, a: -a,
    "lt": lambda k, a, b: a < b,
    "le": lambda k, a, b: a <= b,
    "gt": lambda k, a, b: a > b,
    "ge": lambda k, a, b: a >= b,
    "eq": lambda k, a, b: a.eq(b),
    "ne": lambda k, a, b: a.ne(b),
    "where": lambda k, c, a, b: k.select(c, a, b),
}


for _f in _WHOLE.values():
    _f.whole = True  # type: ignore[attr-defined]


def kinds_of(node: Any) -> list[str]:
    """'f', 'i' or 'b' for each operand; whole numbers in a float's company are floats."""
    args = node.args
    floats = node.outs[0].dtype.kind == "f" or any(
        isinstance(a, float) or (hasattr(a, "dtype") and a.dtype.kind == "f") for a in args
    )

    def kind(a: Any) -> str:
        if hasattr(a, "dtype"):
            return "f" if a.dtype.kind in "iuf" and floats else a.dtype.kind
        return "b" if isinstance(a, bool) else "f" if floats else "i"

    return [kind(a) for a in args]


def power(k: Kernel, x: Value, n: Any) -> Value:
    """x to a small whole power, by squaring as often as it goes."""
    n = int(n)
    y: Any = None
    square = x
    while n:
        if n & 1:
            y = square if y is None else y * square
        n >>= 1
        if n:
            square = square * square
    return y


def element(node: Any, kinds: list[str]) -> tuple[Callable[..., Any], int] | None:
    """The function ``f(k, *elements)`` of a pointwise node, and its cost; `kinds` are those of the operands ('f', 'b', 'i')."""
    op, kw = node.op, node.kw
    name = op.name
    if name == "clone":
        return (lambda k, x: x), 1
    if name in ("to", "to_int"):
        return None
    kernel = getattr(op.body, "kernel", None)
    if kernel is not None and all(c == "f" for c in kinds):
        static = dict(kw)
        return (lambda k, *xs: kernel(k, *[_value(k, x) for x in xs], **static)), 12
    if kw:
        return None
    if name == "pow" and len(node.args) == 2 and not hasattr(node.args[1], "shape"):
        n = node.args[1]
        if isinstance(n, int | float) and float(n).is_integer() and 1 <= n <= 4 and kinds[0] == "f":
            return (lambda k, x, e: power(k, x, n)), 3
        return None
    if (
        name == "pow"
        and len(node.args) == 2
        and _positive(node.args[0])
        and node.outs[0].size == 1
        and node.outs[0].dtype.itemsize == 8
    ):
        from .schedule import power_of

        return power_of(float(node.args[0])), 25
    if "i" in kinds:  # whole numbers alone, with a condition at most
        good = (
            name in _WHOLE and all(c == "i" for c in kinds[name == "where" :]) and (name != "where" or kinds[0] == "b")
        )
        return (_WHOLE[name], 1) if good else None
    if name == "where":
        if kinds[0] != "b" or any(c != "f" for c in kinds[1:]):
            return None
    elif name in _BOOLEAN:
        if any(c != "b" for c in kinds):
            return None
    elif any(c != "f" for c in kinds):
        return None
    if name in _EXTRA:
        return _EXTRA[name], 1
    if name in _NAMES and name in OPS:
        f = OPS[name]
        return f, 1 if name in _CHEAP else 4 if name in ("div", "sqrt", "reciprocal", "maximum", "minimum") else 12
    return None


def _positive(a: Any) -> bool:
    return isinstance(a, int | float) and not isinstance(a, bool) and 0 < a < float("inf") and a != 1


def _value(k: Kernel, x: Any) -> Value:
    return x if isinstance(x, Value) else k.const(float(x), k.compute)


__all__ = ["element", "kinds_of", "math", "power"]
