"""NumPy's protocols on Arrays and tensors, all at once: importing this makes them work."""

from __future__ import annotations

from . import functions, indexing, methods, operators
from .value import Array, wrap

__all__ = ["Array", "functions", "indexing", "methods", "operators", "wrap"]
