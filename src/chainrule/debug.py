"""Looking into functions while they run: ``chainrule.debug.print`` prints values under jit, grad and vmap too."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .core.declare import op
from .core.dispatch import recorder
from .core.tensor import Tensor

__all__ = ["print"]


@op("debug_print", differentiable=False)
def _print_p(*xs: Any, template: str, names: tuple[str, ...]) -> Any:
    """Prints the template with the values in it."""
    from .jit.record import examples

    if examples.quiet:  # a loop that is being recorded
        return np.zeros((), bool)
    values = [Tensor(x) for x in xs]
    n = len(values) - len(names)
    builtins.print(template.format(*values[:n], **dict(zip(names, values[n:], strict=True))), flush=True)
    return np.zeros((), bool)


_print_p.effect = True


def print(template: str, *args: Any, **kw: Any) -> None:
    """Print ``template.format(*args, **kw)``, whenever the function runs; under jit at every call, in order.

    Derivatives are looked through: what is printed is the value. Under vmap all examples are printed together, the batch axis in front.

    >>> chainrule.jit(lambda x: (chainrule.debug.print("x = {}", x), x * 2)[1])(chainrule.tensor(1.5))
    x = 1.5
    tensor(3.)
    """
    level = recorder()

    def low(x: Any) -> Any:
        x = x if isinstance(x, Tensor) else Tensor(np.asarray(x))
        while x._interp is not None and x._interp is not level:
            x = x._value
        return x

    values = [low(x) for x in (*args, *kw.values())]
    static = {"template": template, "names": tuple(kw)}
    if level is not None and values:
        level.note(_print_p, tuple(values), static)
    elif level is not None:
        level.note(
            _print_p, (Tensor(np.zeros(())),), {**static, "template": template.replace("{", "{{").replace("}", "}}")}
        )
    else:
        _print_p.run(tuple(values), static)
