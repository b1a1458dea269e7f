"""Random programs that mix ops, transforms, imperative code and writes, judged by mathematics.

A program is a few lines of Python that map a tensor to tensors (`program`), drawn from tables of statements (`maker` and the
tables). It runs on chainrule under every outer transform (`cells`) and is judged by `judge`: the same lines on PyTorch's
plain tensors, transforms spelled out as loops and derivatives of scalars, what is cut off held fixed, and all of it checked
against central differences. `python -m chainrule.testing.programs --count 1000` runs a campaign, shrinks what fails and groups it.
"""

from __future__ import annotations

from .maker import draw
from .program import Fn, Line, Program, Var

__all__ = ["Fn", "Line", "Program", "Var", "draw"]
