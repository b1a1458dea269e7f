"""The families of statements, and how often each is drawn."""

from __future__ import annotations

from dataclasses import dataclass

from . import blocks, features, functions, imperative, layers, ops, shapes, writes
from .maker import Make


@dataclass(frozen=True)
class Family:
    """A list of makers of lines; `nests`: they hold lines of their own."""

    name: str
    weight: int
    makers: list[Make]
    nests: bool = False


FAMILIES = [
    Family("elementwise", 16, ops.ELEMENTWISE),
    Family("reduce", 5, ops.REDUCE),
    Family("view", 12, shapes.VIEWS),
    Family("index", 9, shapes.INDEX),
    Family("linalg", 6, ops.LINALG),
    Family("layer", 9, layers.LAYERS),
    Family("module", 3, layers.MODULES),
    Family("write", 18, writes.WRITES),
    Family("nested", 2, shapes.NESTED),
    Family("cut", 4, imperative.CUTS),
    Family("imperative", 8, imperative.INNER),
    Family("function", 7, functions.FUNCTIONS),
    Family("transform", 22, blocks.TRANSFORMS, nests=True),
    Family("mode", 5, blocks.MODES, nests=True),
    Family("sparse", 3, features.SPARSE),
    Family("control", 3, features.CONTROL, nests=True),
    Family("jit", 2, features.JIT, nests=True),
    Family("around", 4, features.AROUND),
]
