"""Random programs on nested tensors, judged against the same program component by component, in every mode.

A program is drawn from a seed (:func:`draw`), written so that it means the same on a nest and on one component, and judged
(:func:`judge`) in value, first and second derivatives, ``vmap`` over the components and over something else, and by differences.

    python -m chainrule.testing.ragged_programs --seed 0 --count 1000
"""

from __future__ import annotations

from .judge import MODES, judge
from .program import Program, draw

__all__ = ["MODES", "Program", "draw", "judge"]
