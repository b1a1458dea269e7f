"""How tensors print: as PyTorch's do, four digits, with the level they belong to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dtypes as dt
from .dispatch import STACK, innermost

if TYPE_CHECKING:
    from .tensor import Tensor

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": sys.maxsize, "edgeitems": 3, "linewidth": 80},
}
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(precision: int | None = None, threshold: int | None = None, edgeitems: int | None = None,
                     linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None) -> None:  # fmt: skip
    """Set how tensors print: digits, when to summarise, width, scientific notation; `profile` (default, short, full) sets them all first."""
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: profile is one of {', '.join(_PROFILES)}, got {profile!r}")
        _options.update(_PROFILES[profile])
    for k, v in {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }.items():
        _options[k] = _options[k] if v is None else v
    _options["sci_mode"] = sci_mode


def _formatter(a: np.ndarray) -> Any:
    p = _options["precision"]
    if a.dtype.kind in "iub":
        return {"all": str}
    if a.dtype.kind == "c":
        re, im = _formatter(a.real.copy())["all"], _formatter(a.imag.copy())["all"]

        def both(z: Any) -> str:
            s = im(z.imag).strip()
            return f"{re(z.real).strip()}{'' if s.startswith('-') else '+'}{s}j"

        return {"all": both}
    f = np.abs(a[np.isfinite(a) & (a != 0)].astype(np.float64))
    if _options["sci_mode"] or (
        _options["sci_mode"] is None
        and f.size
        and (f.max() / f.min() > 1000 or f.max() > 1e8 or f.min() < 1e-4)
        and not bool((f == np.floor(f)).all() and f.max() < 1e8)
    ):
        return {"all": lambda v: f"{float(v):.{p}e}"}
    if f.size == 0 or bool((f == np.floor(f)).all()):
        return {"all": lambda v: f"{float(v):.0f}." if np.isfinite(v) else str(float(v))}
    return {"all": lambda v: f"{float(v):.{p}f}"}


def array_text(a: np.ndarray, indent: int) -> str:
    """An array as PyTorch prints one, aligned."""
    if a.size == 0:
        return "[" * max(a.ndim, 1) + "]" * max(a.ndim, 1)
    fmt = _formatter(a if a.size <= _options["threshold"] else a.reshape(-1)[: _options["threshold"]])["all"]
    if a.ndim == 0:
        return fmt(a[()]).strip()
    edge, big = _options["edgeitems"], a.size > _options["threshold"]
    shown = a
    for axis in range(a.ndim):
        if big and a.shape[axis] > 2 * edge:
            shown = np.concatenate([shown.take(range(edge), axis), shown.take(range(-edge, 0), axis)], axis)
    width = max(len(fmt(v)) for v in shown.reshape(-1))

    def part(x: np.ndarray, depth: int) -> str:
        cut = big and x.shape[0] > 2 * edge
        items = [*range(edge), None, *range(x.shape[0] - edge, x.shape[0])] if cut else list(range(x.shape[0]))
        pad = " " * (indent + depth + 1)
        if x.ndim == 1:
            words = ["..." if i is None else fmt(x[i]).rjust(width) for i in items]
            per = max(1, (_options["linewidth"] - indent - depth - 1) // (width + 2))
            rows = [", ".join(words[i : i + per]) for i in range(0, len(words), per)]
            return "[" + (",\n" + pad).join(rows) + "]"
        sep = "," + "\n" * (x.ndim - 1) + pad
        return "[" + sep.join("..." if i is None else part(x[i], depth + 1) for i in items) + "]"

    return part(a, 0)


def component_texts(arrays: list[np.ndarray]) -> list[str]:
    """The components of a nested tensor as they print; of many, the first and the last ones."""
    edge = _options["edgeitems"]
    shown = [a.astype(dt.WORK[a.dtype]) if a.dtype in dt.WORK else a for a in arrays]
    if sum(a.size for a in arrays) > _options["threshold"] and len(arrays) > 2 * edge:
        return [*[array_text(a, 2) for a in shown[:edge]], "...", *[array_text(a, 2) for a in shown[-edge:]]]
    return [array_text(a, 2) for a in shown]


def _depth(x: Tensor) -> int:
    """The number of transforms around what a tensor belongs to, with its own; of one that has ended, the number that it is of."""
    stack, i = STACK.get(), x._interp
    if i in stack:
        return stack.index(i) + 1
    below = _depth(x._value) if i is not None else 0
    return below + (i is not None and i.level % 1 == 0)


def tensor_repr(x: Tensor) -> str:
    """``tensor([1., 2.])`` with dtype, level and history where they are not the default."""
    i = x._interp
    if i is not None and i.kind == "germ":  # see ops/linalg/germ.py: nobody's business
        return tensor_repr(x._value)
    if i is not None and i.kind == "vmap":
        return f"BatchedTensor(level={_depth(x)}, size={i.size}, value=\n{x._value!r})"  # type: ignore[attr-defined]
    if i is not None and i.kind == "jvp":
        return f"DualTensor(level={_depth(x)}, primal=\n{x._value!r}, tangent=\n{x._aux!r})"
    if i is not None and i.kind == "record":  # the values are those of an example
        return f"RecordedTensor(shape={list(x.shape)}, dtype={x.dtype})"
    v: Any = innermost(x)
    if i is not None and x._value._interp is not None and x._value._interp.kind != "germ":
        return f"GradTensor(level={_depth(x)}, value=\n{x._value!r})"
    name = "Parameter containing:\n" if type(x).__name__ == "Parameter" else ""
    if type(v) is np.ndarray:
        name += "tensor"
        body = array_text(v.astype(dt.WORK[v.dtype]) if v.dtype in dt.WORK else v, 7) if v.size else "[]"
    elif x.is_meta:
        name += "tensor"
        body = f"..., device='meta', size={tuple(v.shape)}"
    else:
        name += getattr(v, "printed_as", "nested_tensor")
        body = v.text()
    notes = []
    d = x.dtype
    # Of numbers one sees whether they are whole or true; of none one sees nothing.
    usual = dt.get_default_dtype()
    if d is not usual and (not v.size or d not in (dt.int64, dt.bool_, usual.to_complex())):
        notes.append(f"dtype={d}")
    if not v.size and v.ndim != 1 and type(v) is np.ndarray:
        notes.insert(0, f"size={tuple(v.shape)}")
    if i is not None:
        leaf = x._aux.op is None and not x._aux.parents
        notes.append("requires_grad=True" if leaf else f"grad_fn={x._aux!r}")
    return f"{name}({body}{''.join(', ' + n for n in notes)})"
