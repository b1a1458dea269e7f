"""Tools that test chainrule, and code written with it: the laws, comparisons, counting op calls."""

from __future__ import annotations

from .compare import assert_allclose, assert_close, count_ops
from .make import make_tensor

__all__ = ["assert_allclose", "assert_close", "count_ops", "make_tensor"]


def __dir__() -> list[str]:
    return __all__
