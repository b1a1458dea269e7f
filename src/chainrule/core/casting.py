"""What ``autocast`` holds now. The rest of it is loaded when the first one is entered (:mod:`chainrule.amp.cast`)."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple

from . import dtypes as dt


class State(NamedTuple):
    """What holds now: whether products are converted, and to which type."""

    enabled: bool = False
    dtype: dt.DType = dt.bfloat16
    cache: bool = True


STATE: ContextVar[State] = ContextVar("chainrule_autocast", default=State())  # noqa: B039
READY: list[bool] = []  # not empty once the functions that convert are in place
