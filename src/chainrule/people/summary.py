"""summary: the modules of a network in a table, with their results' shapes, parameters and, given an input, time and kept memory."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..core.tree import flatten
from ..nn.hooks import Handle
from ..nn.module import Module
from .page import bytes_text, esc, table


class Layer:
    """One row: a module's path and class, the shapes of what it returned, the numbers of its own parameters."""

    def __init__(self, path: str, module: Module) -> None:
        self.path, self.kind = path, type(module).__name__
        own = list(module.parameters(recurse=False))
        self.parameters = sum(p.numel() for p in own)
        self.trained = sum(p.numel() for p in own if p.requires_grad)
        self.bytes = sum(p.numel() * p.element_size() for p in own)
        self.shapes: list[str] = []
        self.calls = 0


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
                    f"{layer.parameters:,}" if layer.parameters else "",
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
        try:
            with no_grad():
                module(*args, **kw)
        finally:
            for h in handles:
                h.remove()
    return Summary(type(module).__name__, list(layers.values()), bool(args or kw))
