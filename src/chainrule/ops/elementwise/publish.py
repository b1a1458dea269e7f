"""How a pointwise op of two arguments is published: checked arguments, ``out=``, methods."""

from __future__ import annotations

from typing import Any

from ...core import dtypes as dt
from ...core.op import Op
from ...core.recalled_pointwise import recalled
from ...core.registry import check_out, public
from ...core.shapes import zeros_like_tensor
from ...core.tensor import Tensor
from ...core.views import write_out

INTS = frozenset(d.np.num for d in (dt.uint8, dt.int8, dt.int16, dt.int32, dt.int64))


def publish(p: Op, takes: str = "**", aliases: str = "", methods: str = "", inplace: bool = True) -> Op:
    """Publish a pointwise op of two arguments under its name and aliases; `takes` says which must be tensors.

    "tt" both, "t*" the first, "**" at least one. `methods` are operators and further methods without an in-place form.
    """
    names = f"{p.name} {aliases}".split()
    plain = [n for n in names if "." not in n]
    f = _checked(p, takes)
    public(" ".join(names), out=False)(f)
    # Operators always get a tensor as self: the check is for calls by name.
    own: Any = f if takes == "tt" else p
    public("", methods=" ".join([*plain, methods]), inplace=" ".join(f"{n}_" for n in plain) if inplace else "")(own)
    return p


def _checked(p: Op, takes: str) -> Any:
    call, name, one, two = p.bind, p.name, takes[0] == "t", takes[1] == "t"

    def function(input: Any, other: Any, *, out: Any = None) -> Any:
        if not isinstance(input, Tensor) and (one or not isinstance(other, Tensor)):
            raise TypeError(f"{name}: argument input must be a tensor, got {type(input).__name__}")
        if two and not isinstance(other, Tensor):
            raise TypeError(f"{name}: argument other must be a tensor, got {type(other).__name__}")
        if out is None:
            return call(input, other)
        check_out(name, out, (input, other), fresh=False)
        return write_out(out, call(input, other))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = p.__doc__
    function.op = p  # type: ignore[attr-defined]
    return recalled(p, function)


def zeros_like(x: Any) -> Any:
    """Zeros with the shape and type of `x`, without its history."""
    return zeros_like_tensor(x)
