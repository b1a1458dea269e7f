"""detect_anomaly: where was the NaN born? The op, the line, and whether in the value, the tangent or the cotangent."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np

from ..core.dispatch import innermost
from ..core.errors import ChainruleError
from ..core.reverse import ANOMALY, Masked, Node
from ..core.tensor import Tensor

_HERE = str(Path(__file__).resolve().parent.parent)


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
    v = getattr(v, "values", v)  # the stored numbers of a sparse array
    return getattr(v, "dtype", None) is not None and v.dtype.kind in "fc" and bool(np.isnan(v).any())


def _note(node: Node, y: Any) -> None:
    node.anomaly = _where()
    outs = y if isinstance(y, tuple) else (y,)
    if any(_has_nan(v) for v in outs) and not any(_has_nan(x) for x in node.args):
        raise AnomalyError(f"{node.op.name} returned NaN in its value, from inputs without NaN, at\n  {node.anomaly}")


def _check(node: Node, gs: Any) -> None:
    if any(_has_nan(g) for g in gs):
        raise AnomalyError(
            f"the derivative of {node.op.name} returned NaN in a cotangent during backward. The forward call was at\n  {node.anomaly}"
        )


class detect_anomaly:
    """Inside, a NaN that is born in an op or in its derivative raises, naming the op and your line."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan

    def __enter__(self) -> None:
        self._before = ANOMALY.on, ANOMALY.note, ANOMALY.check
        ANOMALY.note, ANOMALY.check = _note, _check  # type: ignore[method-assign]
        ANOMALY.on = True

    def __exit__(self, *exc: Any) -> None:
        ANOMALY.on, ANOMALY.note, ANOMALY.check = self._before  # type: ignore[method-assign]


class set_detect_anomaly(detect_anomaly):
    """Turn anomaly detection on or off, from here on or inside a ``with``."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(check_nan)
        self._outer = ANOMALY.on, ANOMALY.note, ANOMALY.check
        ANOMALY.note, ANOMALY.check = _note, _check  # type: ignore[method-assign]
        ANOMALY.on = mode

    def __enter__(self) -> None:
        self._before = self._outer
