"""jit: whole functions, with their derivatives and loops, as machine code. See docs/jit.md.

A function is recorded (:mod:`.record`), the graph is simplified (:mod:`.simplify`) and runs (:mod:`.run`); :mod:`.program` makes one op
of it, with rules.
"""

from .api import Jitted, compile, explain, jit
from .record import JitError

__all__ = ["JitError", "Jitted", "compile", "explain", "jit"]
