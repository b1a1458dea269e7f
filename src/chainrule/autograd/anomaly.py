"""detect_anomaly: where was the NaN born? The op, the line, and whether in the value, the tangent or the cotangent."""

from __future__ import annotations

import os
import traceback
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.errors import ChainruleError
from ..core.reverse import Masked, Node
from ..core.tensor import Tensor
from ..core.watch import WATCHERS, unwatch, watch

_HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


class AnomalyError(ChainruleError):
    """A NaN was born."""


def _where() -> str:
    """The innermost line outside of chainrule."""
    for f in reversed(traceback.extract_stack()):
        if not f.filename.startswith(_HERE):
            return f'File "{f.filename}", line {f.lineno}, in {f.name}: {f.line}'
    return "an unknown line"


def _has_nan(x: Any) -> bool:
    if isinstance(x, Masked):
        x = x.g
    if not isinstance(x, Tensor):
        return False
    v = innermost(x)
    v = next((getattr(v, name) for name in ("rows", "values") if hasattr(v, name)), v)  # of nests, of sparse arrays
    return getattr(v, "dtype", None) is not None and v.dtype.kind in "fc" and bool(np.isnan(v).any())


def _note_place(node: Node, y: Any, inputs: Any) -> None:
    node.anomaly = _where()


def _note(node: Node, y: Any, inputs: Any) -> None:
    node.anomaly = _where()
    outs = y if isinstance(y, tuple) else (y,)
    if any(_has_nan(v) for v in outs) and not any(_has_nan(x) for x in inputs):
        raise AnomalyError(f"{node.op.name} returned NaN in its value, from inputs without NaN, at\n  {node.anomaly}")


def _check(node: Node, gs: Any) -> None:
    for i, g in enumerate(gs):
        if _has_nan(g):
            raise AnomalyError(
                f"Function '{node.name()}' returned nan values in its {i}th output. (The derivative of {node.op.name} returned NaN in a cotangent "
                f"during backward; the forward call was at\n  {node.anomaly})"
            )


def _changes(on: bool, check_nan: bool) -> dict[str, Any]:
    return {
        "note": (_note if check_nan else _note_place) if on else None,
        "check": _check if on and check_nan else None,
    }


class detect_anomaly:
    """Inside, a NaN that is born in an op or in its derivative raises, naming the op and your line.

    It holds for the thread (or async task) that entered it. With ``check_nan=False`` only the lines are noted.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self._before = WATCHERS.get()
        watch(**_changes(True, self.check_nan))

    def __exit__(self, *exc: Any) -> None:
        unwatch(self._before)


class set_detect_anomaly(detect_anomaly):
    """Turn anomaly detection on or off, from here on or inside a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._before = WATCHERS.get()
        watch(**_changes(mode, check_nan))

    def __enter__(self) -> None:
        """It is on already."""


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread."""
    return WATCHERS.get().note is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly detection looks for NaN in this thread."""
    return WATCHERS.get().check is not None
