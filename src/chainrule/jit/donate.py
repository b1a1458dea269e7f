"""Donated arguments: tensors that a caller gives up, so that their memory is free for results as soon as the call is over."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dispatch import Interpreter
from ..core.errors import ChainruleError
from ..core.tensor import Tensor


class _Gone(Interpreter):
    """The level of tensors that were given up: whoever uses one is told."""

    kind = "donated"
    level = float("inf")

    def check(self, op: str) -> None:
        raise ChainruleError(
            f"{op}: this tensor was donated to a compiled function, which has given its memory back. Use what the function returned, or "
            f"leave the argument out of jit's `donate`."
        )

    def run(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        self.check(op.name)


GONE = _Gone()


def give_up(given: list[Any], results: list[Any]) -> None:
    """Let go of the memory of plain tensors, but for those that a result still shows."""
    kept = [y._value for y in results if isinstance(y, Tensor) and y._interp is None]
    for x in given:
        if not isinstance(x, Tensor) or x._interp is not None or type(x._value) is not np.ndarray:
            continue
        if any(v is x._value or np.may_share_memory(v, x._value) for v in kept if type(v) is np.ndarray):
            continue
        shown = np.broadcast_to(np.zeros((), x._value.dtype), x._value.shape)
        x._value, x._interp, x._aux, x._meta = Tensor(shown), GONE, None, None
