"""What an array inside a transform says when somebody converts it to an ndarray: who did, and what to write instead."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

LIBRARIES = ("numpy", "scipy", "sklearn", "pandas")
GENERAL = (
    "an array inside a transform has no single value, so np.array() and np.asarray() of it would lose the derivative. Write "
    "np.stack([...]) or np.array([...], like=x) to build an array of such values, np.zeros(shape, like=x) or np.zeros_like(x) "
    "for a buffer to be written to, chainrule.numpy.asarray(x) where both kinds may come; "
    "chainrule.numpy.stop_gradient(x) is the value alone."
)


# Parts of NumPy that hold nothing but ndarrays, by module or function, and what to write for them.
PARTS = {
    "numpy.ma.": "np.ma holds values alone: write np.where(mask, x, 0), or np.sum(x, where=mask) and its like. ",
    "numpy.matrixlib": "np.matrix holds values alone: arrays multiply with @. ",
    "as_strided": "as_strided shows an ndarray's memory: write np.lib.stride_tricks.sliding_window_view(x, n), or x[places]. ",
    "vectorize": "np.vectorize calls with numbers: write chainrule.numpy.vectorize, or chainrule.func.vmap. ",
}


def against_conversion(frame: Any) -> str:
    """The message for a conversion that the code in this frame asks for."""
    caller = None
    part = ""
    while frame is not None and (library := str(frame.f_globals.get("__name__", "")).partition(".")[0]) in LIBRARIES:
        if library != "numpy":
            caller = _names(frame) or caller
        else:
            where = (str(frame.f_globals["__name__"]), *frame.f_code.co_qualname.split("."))
            part = next((v for k, v in PARTS.items() if where[0].startswith(k) or k in where[1:]), part)
        frame = frame.f_back
    if caller is None:
        return part + GENERAL
    module = ".".join([part for part in caller[0].split(".") if not part.startswith("_")])
    function = caller[1].removesuffix(".__init__").removesuffix(".__call__")
    head = f"{module}.{function} converts what it is given with np.asarray"
    if module.startswith("scipy"):
        head += "; " + _instead(module, function)
    return f"{head}. In general: {GENERAL}"


def against_number(frame: Any) -> str:
    """What to add where a library makes a Python number of an array: '' for one's own code."""
    caller = None
    while frame is not None and (library := str(frame.f_globals.get("__name__", "")).partition(".")[0]) in LIBRARIES:
        caller = _names(frame) or caller if library != "numpy" else caller
        frame = frame.f_back
    if caller is None:
        return ""
    module = ".".join([part for part in caller[0].split(".") if not part.startswith("_")])
    text = f"{module}.{caller[1]} makes a Python number of its result, which holds no derivative and no examples. "
    if module.startswith("sklearn.metrics"):
        text += "Where the metric has multioutput=, ask for multioutput='raw_values': that stays an array. The others are a line of NumPy. "
    return text + "In general: "


def _names(frame: Any) -> tuple[str, str] | None:
    """Module and function of a frame; of a decorator's inner function those of what it decorates."""
    name = frame.f_code.co_qualname
    if "<locals>" not in name:
        return frame.f_globals["__name__"], name
    f = frame.f_locals.get("f")
    return (f.__module__, f.__qualname__) if hasattr(f, "__qualname__") else None


def _instead(module: str, function: str) -> str:
    with contextlib.suppress(ImportError):
        if function in vars(
            importlib.import_module(f"chainrule.{module}")
        ):  # what is there by a look-up is SciPy's own
            return f"chainrule.{module}.{function} has its derivative"
    return (
        "with SCIPY_ARRAY_API=1 in the environment before SciPy is imported many of its functions take such arrays as they are, and "
        "chainrule.scipy has derivatives of others"
    )
