"""The table of steps, complete: ``STEPS[name](rng, program)`` gives a step that fits a value of the program, or None."""

from __future__ import annotations

# The order is that of the table, and so decides which program a seed gives.
# isort: off
from . import steps_elements, steps_along, steps_shapes  # noqa: F401
from . import steps_layers, steps_writes, steps_components  # noqa: F401

# isort: on
from .choose import STEPS
from .steps_writes import written

__all__ = ["STEPS", "written"]
