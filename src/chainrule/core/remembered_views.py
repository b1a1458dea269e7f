"""Views of plain tensors by the shortest way: which op a function comes down to, and with which static data, is remembered for each kind of call.

What ``x.t()`` or ``x[1:, ::2]`` shows depends on the shape, the strides and the arguments alone, and is one op. So it is worked out once, by the
function itself, and read off the chain that its result carries; the calls that follow run the op's body and register the view.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from .payload import COMPOSED
from .recall import LYING, Recall, machine, static
from .sizes import SEEN
from .straight import MANY, OFTEN, PAUSED
from .tensor import Tensor
from .views import register_view, root_of
from .watch import WATCHED

ndarray = np.ndarray
F = TypeVar("F", bound=Callable[..., Any])


def viewing(f: F) -> F:
    """`f`, a function of a tensor and static data whose result is a view by one op, or no view."""
    known: dict[Any, Any] = {}
    recall: Any = None
    calls = Recall()
    address = calls.address
    seen: dict[Any, int] = {}

    def often(key: Any, args: Any, kw: Any, found: Any) -> None:
        """Have calls like this one recognised by compiled code, when there were many of them."""
        nonlocal recall
        if len(seen) >= MANY:
            seen.clear()
        n = seen[key] = seen.get(key, 0) + 1
        if n >= OFTEN and not n & (n - 1) and (quick := machine()) is not None:
            calls.note(None, args, kw, _lying, found, False)
            recall = quick

    def door(around: Any) -> Any:
        @functools.wraps(around)
        def call(*args: Any, **kw: Any) -> Any:
            x = args[0] if args else None
            if x.__class__ is not Tensor or x._interp is not None or WATCHED.on or PAUSED or SEEN or COMPOSED:
                return around(*args, **kw)
            v = x._value
            if recall is not None and (found := recall(address, None, args, kw)) is not None:
                op, data, body = found
                y = Tensor(body(v))
                register_view(op, x, y, data)
                return y
            if v.__class__ is not ndarray:
                return around(*args, **kw)
            key: list[Any] = [v.shape, v.strides, tuple(kw)] if kw else [v.shape, v.strides]
            for a in (*args[1:], *kw.values()) if kw else args[1:]:
                if a.__class__ is int:
                    key.append(a)
                elif not static(a, key):
                    return around(*args, **kw)
            found = known.get(spec := tuple(key))
            if found is None:
                y = around(*args, **kw)
                _learn(known, spec, x, y)
                return y
            often(spec, args, kw, found)
            op, data, body = found
            y = Tensor(body(v))
            register_view(op, x, y, data)
            return y

        call.straight = call, door, around  # type: ignore[attr-defined]
        return call

    return door(f)


def _lying(x: Any) -> tuple[Any, int] | None:
    return (x._value, LYING) if x.__class__ is Tensor else None


def _learn(known: dict[Any, Any], key: Any, x: Any, y: Any) -> None:
    """Note the one op that made `y` a view of `x`."""
    m = getattr(y, "_meta", None)
    if y.__class__ is not Tensor or y is x or m is None or m.base is None or m.base is not root_of(x):
        return
    chain = x._meta.chain if x._meta is not None else ()
    if len(m.chain) == len(chain) + 1 and m.chain[: len(chain)] == chain and m.chain[-1].__class__ is tuple:
        if len(known) >= MANY:
            known.clear()
        op, data = m.chain[-1]
        body = op.settled(op.body, [x._value], data)
        known[key] = op, data, functools.partial(op.body, **data) if body is None else body
