"""What runs around a module's forward and backward."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from ..core.tensor import Tensor

_ids = itertools.count()


class Handle:
    """Removes a hook: ``handle.remove()``, or at the end of a ``with``."""

    id: int
    _table: dict[int, Any]

    def __init__(self, table: dict[int, Any], key: int) -> None:
        self._table, self.id = table, key

    def remove(self) -> None:
        """Take the hook away."""
        self._table.pop(self.id, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class Hooks:
    """The tables of a module's hooks: kind -> id -> function."""

    @staticmethod
    def add(hooks: dict[str, dict[int, Any]], kind: str, f: Any, prepend: bool) -> Handle:
        """Put a hook into its table."""
        table = hooks.setdefault(kind, {})
        key = next(_ids)
        if prepend:
            old = dict(table)
            table.clear()
            table[key] = f
            table.update(old)
        else:
            table[key] = f
        return Handle(table, key)

    @staticmethod
    def call(module: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """``module.forward`` between its hooks."""
        hooks = module._hooks
        for f, with_kw in list(hooks.get("pre", {}).values()):
            r = f(module, args, kw) if with_kw else f(module, args)
            if r is not None:
                if with_kw:
                    args, kw = r
                else:
                    args = r if isinstance(r, tuple) else (r,)
        back = hooks.get("backward") or hooks.get("backward_pre")
        watch = _Watch(module) if back else None
        if watch is not None:
            args = watch.inputs(args)
        out = module.forward(*args, **kw)
        for f, with_kw in list(hooks.get("forward", {}).values()):
            r = f(module, args, kw, out) if with_kw else f(module, args, out)
            if r is not None:
                out = r
        return out if watch is None else watch.outputs(out)


class _Watch:
    """Follows the gradients of one call of a module, for its backward hooks."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.grad_in: list[Any] = []
        self.grad_out: Any = None
        self.left = 0

    def inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments as new tensors whose gradients are seen."""
        out = []
        self.grad_in = [None] * len(args)
        for k, a in enumerate(args):
            if isinstance(a, Tensor) and a.requires_grad:
                a = a.view_as(a) if hasattr(a, "view_as") else a + 0
                self.left += 1
                a.register_hook(functools.partial(self._arrived, k))
            out.append(a)
        return tuple(out)

    def _arrived(self, k: int, g: Any) -> Any:
        self.grad_in[k] = g
        self.left -= 1
        if self.left:
            return None
        grads = tuple(self.grad_in)
        for f in list(self.module._hooks.get("backward", {}).values()):
            r = f(self.module, grads, self.grad_out)
            if r is not None:
                grads = r if isinstance(r, tuple) else (r,)
        return grads[k]

    def outputs(self, out: Any) -> Any:
        """The results, whose gradients are seen."""
        several = isinstance(out, tuple | list)
        outs = list(out) if several else [out]
        self.grad_out = (None,) * len(outs)
        for k, y in enumerate(outs):
            if isinstance(y, Tensor) and y.requires_grad:
                outs[k] = y.view_as(y) if hasattr(y, "view_as") else y + 0
                outs[k].register_hook(lambda g, k=k: self._started(k, g))
        return type(out)(outs) if several else outs[0]

    def _started(self, k: int, g: Any) -> Any:
        for f in list(self.module._hooks.get("backward_pre", {}).values()):
            r = f(self.module, (g,))
            if r is not None:
                g = r[0] if isinstance(r, tuple) else r
        grads = list(self.grad_out)
        grads[k] = g
        self.grad_out = tuple(grads)
        if not self.left and not any(x is not None for x in self.grad_in):
            for f in list(self.module._hooks.get("backward", {}).values()):
                f(self.module, tuple(self.grad_in), self.grad_out)
        return g
