"""summary: the modules of a network in a table, with their parameters and, given an input, the shapes of their results."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..core.tree import flatten
from ..nn.hooks import Handle
from ..nn.module import Module
from ..nn.parameter import UninitializedBuffer, UninitializedParameter
from .page import bytes_text, esc, table


class Layer:
    """One row: a module's path and class, the shapes of what it returned, the numbers of its own parameters."""

    def __init__(self, path: str, module: Module) -> None:
        self.path, self.kind = path, type(module).__name__
        self.shapes: list[str] = []
        self.calls = 0
        self.count(module)

    def count(self, module: Module) -> None:
        """Look at the parameters; those of a lazy module that has seen no input are not counted."""
        every = list(module.parameters(recurse=False))
        own = [p for p in every if not isinstance(p, UninitializedParameter)]
        self.lazy = len(own) < len(every)
        self.parameters = sum(p.numel() for p in own)
        self.trained = sum(p.numel() for p in own if p.requires_grad)
        self.bytes = sum(p.numel() * p.element_size() for p in own)


class Summary:
    """The table of a network; prints as text, shows as a table in notebooks."""

    def __init__(self, name: str, layers: list[Layer], ran: bool) -> None:
        self.name, self.layers, self.ran = name, layers, ran

    @property
    def parameters(self) -> int:
        """All parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def trained(self) -> int:
        """Those that are trained."""
        return sum(layer.trained for layer in self.layers)

    def _rows(self) -> list[list[str]]:
        rows = []
        for layer in self.layers:
            depth = layer.path.count(".") + (layer.path != "")
            label = "  " * depth + (f"{layer.path.rpartition('.')[2]} ({layer.kind})" if layer.path else layer.kind)
            rows.append(
                [
                    label,
                    " ".join(layer.shapes) + (f" ×{layer.calls}" if layer.calls > 1 else ""),
                    f"{layer.parameters:,}" if layer.parameters else "lazy" if layer.lazy else "",
                ]
            )
        return rows

    def __str__(self) -> str:
        rows = [["module", "result" if self.ran else "", "parameters"], *self._rows()]
        wide = [max(len(r[k]) for r in rows) for k in range(3)]
        lines = [f"{r[0]:<{wide[0]}}  {r[1]:<{wide[1]}}  {r[2]:>{wide[2]}}".rstrip() for r in rows]
        size = sum(layer.bytes for layer in self.layers)
        return "\n".join([*lines, f"{self.parameters:,} parameters, {self.trained:,} trained, {bytes_text(size)}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[f"<span style='white-space:pre'>{esc(a)}</span>", esc(b), c] for a, b, c in self._rows()]
        return (
            table(["module", "result", "parameters"], rows, (2,))
            + f"<p>{self.parameters:,} parameters, {self.trained:,} trained</p>"
        )


def summary(module: Module, *args: Any, **kw: Any) -> Summary:
    """The modules of a network in a table: names, parameters and, if inputs are given, the shapes of what each returns.

    To see the shapes the network runs once, without derivatives; running statistics and random numbers are as before afterwards.

    >>> import chainrule as cr
    >>> net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.ReLU(), cr.nn.Linear(4, 1))
    >>> print(cr.summary(net, cr.ones(2, 3)))
    module        result  parameters
    Sequential    2×1
      0 (Linear)  2×4             16
      1 (ReLU)    2×4
      2 (Linear)  2×1              5
    21 parameters, 21 trained, 84 B
    """
    from ..core.imperative import no_grad
    from ..random import fork_rng

    if not isinstance(module, Module):
        raise TypeError(f"summary: argument module must be a Module, not {type(module).__name__}")
    layers = {id(m): Layer(path, m) for path, m in module.named_modules()}
    if args or kw:
        handles: list[Handle] = []
        for m in module.modules():

            def note(m: Module, inputs: Any, result: Any) -> None:
                layer = layers[id(m)]
                layer.calls += 1
                layer.shapes = [
                    "×".join(map(str, y.shape)) or "scalar" for y in flatten(result)[0] if isinstance(y, Tensor)
                ][:3]

            handles.append(m.register_forward_hook(note))
        before = [(b, b.clone()) for b in module.buffers() if not isinstance(b, UninitializedBuffer)]
        try:
            with no_grad(), fork_rng():
                module(*args, **kw)
        finally:
            for h in handles:
                h.remove()
            with no_grad():
                for b, value in before:
                    b.copy_(value)
        for m in module.modules():  # lazy ones have their parameters now
            layers[id(m)].count(m)
    return Summary(type(module).__name__, list(layers.values()), bool(args or kw))
