"""Tools that test chainrule, and code written with it: the laws, comparisons, counting op calls."""

from __future__ import annotations

from .compare import assert_close, count_ops

__all__ = ["assert_close", "count_ops"]


def __dir__() -> list[str]:
    return __all__
