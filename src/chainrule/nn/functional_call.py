"""Modules as functions of their parameters and buffers: for ``grad``, ``vmap`` and the other transforms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from ..core.tensor import Tensor
from .module import Module

Slot = tuple[dict[str, Any], str]


def _slots(module: Module) -> dict[str, Slot]:
    """Where each parameter and buffer stands: dotted name -> (table, key)."""
    out: dict[str, Slot] = {}
    for path, m in module.named_modules(remove_duplicate=False):
        for table in (m._parameters, m._buffers):
            for name, x in table.items():
                if x is not None:
                    out[f"{path}.{name}" if path else name] = (table, name)
    return out


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    if not isinstance(dicts, tuple | list) or not all(isinstance(d, Mapping) for d in dicts):
        raise ValueError(
            f"functional_call: expected a dict of tensors or a sequence of such dicts, got {type(dicts).__name__}"
        )
    out: dict[str, Any] = {}
    for d in dicts:
        repeated = out.keys() & d.keys()
        if repeated:
            raise ValueError(
                f"functional_call: {sorted(repeated)} appeared in multiple dictionaries; behavior is ambiguous"
            )
        out.update(d)
    return out


def _tied(slots: dict[str, Slot], given: dict[str, Any]) -> dict[str, Any]:
    """What is given, for all names of the same tensor."""
    groups: dict[int, list[str]] = {}
    for name, (table, key) in slots.items():
        groups.setdefault(id(table[key]), []).append(name)
    full = dict(given)
    for names in groups.values():
        here = [n for n in names if n in given]
        if len(here) > 1 and any(given[n] is not given[here[0]] for n in here):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(here)}, which are tied. Consider using tie_weights=False"
            )
        if here:
            full.update(dict.fromkeys(names, given[here[0]]))
    return full


def _slot(module: Module, name: str) -> Slot:
    """Where a parameter or buffer stands, by any of its names."""
    path, _, key = name.rpartition(".")
    try:
        inner = module.get_submodule(path)
    except AttributeError:
        inner = None
    for table in () if inner is None else (inner._parameters, inner._buffers):
        if key in table:
            return table, key
    raise KeyError(f"functional_call: the module has no parameter or buffer {name!r}")


@contextmanager
def swapped(module: Module, values: dict[str, Any], tie_weights: bool = True, strict: bool = False) -> Iterator[None]:
    """The module with other tensors in the place of its own, inside a ``with``; what it puts there itself is in `values` after."""
    given = dict(values)
    if tie_weights or strict:
        slots = _slots(module)
        unknown = sorted(k for k in values if k not in slots)
        if unknown and strict:
            raise KeyError(f"Unexpected key(s): {', '.join(unknown)}.")
        given = _tied(slots, given) if tie_weights else given
        missing = sorted(k for k in slots if k not in given)
        if missing and strict:
            raise RuntimeError(f"functional_call: Missing key(s): {', '.join(missing)}.")
    for k, v in given.items():
        if v is not None and not isinstance(v, Tensor):
            raise TypeError(f"functional_call: {k} is not a tensor but {type(v).__name__}")
    places = {k: _slot(module, k) for k in given}
    before = {k: table[key] for k, (table, key) in places.items()}
    for k, (table, key) in places.items():
        table[key] = given[k]
    try:
        yield
    finally:
        for k, (table, key) in places.items():
            if k in values and key in table:
                values[k] = table[key]
            table[key] = before[k]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """``module(*args, **kwargs)`` with these parameters and buffers in place of its own.

    Writes to buffers (running statistics) go to the tensors that are given; where the module assigns another tensor, a dict that is
    given holds that one afterwards.
    """
    values = _merged(parameter_and_buffer_dicts)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    given = dict(values)
    try:
        with swapped(module, values, tie_weights, strict):
            return module(*args, **({} if kwargs is None else kwargs))
    finally:
        if isinstance(parameter_and_buffer_dicts, MutableMapping):
            parameter_and_buffer_dicts.update({k: v for k, v in values.items() if v is not given[k]})


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one architecture, stacked for ``vmap``."""
    from ..ops.shape.slices import stack

    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0")
    first = models[0]
    if any(type(m) is not type(first) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if any(m.training != first.training for m in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    tables = [(dict(m.named_parameters()), dict(m.named_buffers())) for m in models]
    if any(p.keys() != tables[0][0].keys() or b.keys() != tables[0][1].keys() for p, b in tables):
        raise RuntimeError("stack_module_state: the models have different parameters or buffers")
    params = {}
    for k, p in tables[0][0].items():
        on = {t[0][k].requires_grad for t in tables}
        if len(on) > 1:
            raise RuntimeError(f"stack_module_state: Expected {k} of all models to have the same .requires_grad")
        params[k] = stack([t[0][k].detach() for t in tables]).requires_grad_(p.requires_grad)
    buffers = {k: stack([t[1][k].detach() for t in tables]) for k in tables[0][1]}
    return params, buffers
