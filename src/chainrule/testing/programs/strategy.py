"""Programs as a strategy of hypothesis, which makes what fails small by its own means."""

from __future__ import annotations

from hypothesis import strategies as st

from .maker import draw
from .program import Program


@st.composite
def programs(draw_from: st.DrawFn, max_lines: int = 6) -> Program:
    """Mixed programs; every choice is a number that shrinks to 0, the simplest option."""

    def choose(n: int) -> int:
        return draw_from(st.integers(0, n - 1)) if n > 1 else 0

    return draw(choose, draw_from(st.integers(0, 1000)), max_lines)
