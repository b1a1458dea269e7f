"""``_foreach_name(lists...)``: one operation on each of several tensors, which libraries of optimisers write out.

Lists go along with the first one; numbers and single tensors serve every tensor. ``_foreach_name_`` writes, and returns the list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core.registry import PUBLIC
from ..core.tensor import Tensor

# Where the operation on one tensor is not the function, or method, of the same name.
_SPECIAL: dict[str, Callable[..., Any]] = {
    "norm": lambda t, ord=2, dtype=None: PUBLIC["linalg.vector_norm"](t, ord, dtype=dtype),
    "powsum": lambda t, ord=2, dtype=None: (t if dtype is None else t.to(dtype)).abs().pow(ord).sum(),
    "max": lambda t: t.max(),
    "clone": lambda t: t.clone(),
    "maximum": lambda t, other: t.maximum(other) if isinstance(other, Tensor) else t.clamp(min=other),
    "minimum": lambda t, other: t.minimum(other) if isinstance(other, Tensor) else t.clamp(max=other),
    "addcmul": lambda t, tensor1, tensor2, value=1: t.addcmul(tensor1, tensor2, value=value),
    "addcdiv": lambda t, tensor1, tensor2, value=1: t.addcdiv(tensor1, tensor2, value=value),
}
# The operands after the first list, by all of their keywords, in the order in which they stand.
_OPERANDS = "tensors1 tensor1 tensor2 others other exponents exponent weights weight scalars scalar value".split()


def _on_one(name: str) -> Callable[..., Any]:
    """The operation on one tensor."""
    if not name.endswith("_"):
        return _SPECIAL.get(name) or PUBLIC[name]
    plain = name[:-1]
    method = getattr(Tensor, name, None)
    if method is None or plain in ("maximum", "minimum", "addcmul", "addcdiv"):
        new = _on_one(plain)
        return lambda t, *args, **kw: t.copy_(new(t, *args, **kw))
    return method


@functools.cache
def _make(name: str) -> Callable[..., Any]:
    one, writes = _on_one(name), name.endswith("_")

    def call(*lists: Any, **kw: Any) -> Any:
        named = {"self": kw.pop("self")} if "self" in kw else {}
        args = [*named.values(), *lists, *(kw.pop(k) for k in _OPERANDS if k in kw)]
        if len(args) == 4 and isinstance(args[3], Tensor) and args[3].ndim == 1:  # numbers for each, as a tensor
            args[3] = args[3].tolist()
        n = next((len(a) for a in (*args, *kw.values()) if isinstance(a, list | tuple)), 0)
        if n == 0:
            raise RuntimeError(f"_foreach_{name}: Tensor list must have at least one tensor.")
        for a in args:
            if isinstance(a, list | tuple) and len(a) != n:
                raise RuntimeError(
                    f"_foreach_{name}: Tensor lists must have the same number of tensors, got {n} and {len(a)}"
                )
        pick = lambda a, i: a[i] if isinstance(a, list | tuple) else a
        out = [one(*(pick(a, i) for a in args), **{k: pick(v, i) for k, v in kw.items()}) for i in range(n)]
        return args[0] if writes else tuple(out)

    call.__name__ = call.__qualname__ = f"_foreach_{name}"
    call.__doc__ = f"``{name}`` of each tensor of a list."
    return call


def __getattr__(name: str) -> Any:
    if name.startswith("_foreach_"):
        base = name[len("_foreach_") :]
        if base.rstrip("_") in _SPECIAL or base in PUBLIC or hasattr(Tensor, base):
            return _make(base)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
