"""The short way in: for plain tensors as the only arguments, one made-to-measure function that tests and calls the machine code.

It is Python source, written for one recording: what has to be compared is known, so nothing is looped over. It returns None where a test
fails, and the general way (:meth:`.api.Jitted.__call__`) is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.casting import STATE as AUTOCAST
from ..core.dispatch import CUT
from ..core.tensor import Tensor
from ..core.tree import LEAF, unflatten
from .native import buildable


def entry(r: Any, leaves: list[Any], spec: Any, bare: bool = False) -> Callable[..., Any] | None:
    """The function for calls like this one, if they are of the kind that has one; `bare`: in machine code, for arrays in place of tensors."""
    args, kw = spec.children
    run = r.program._run if r.program is not None else None
    plan = getattr(run, "plan", None)
    if plan is None or plan.fails or kw.leaves or not all(map(buildable, args.children)):
        return None
    if r.writes or r.foreign or any(kind != "out" for kind, _ in r.outputs) or r.program.draws:
        return None
    if [v for _, v in r.outputs] != list(range(len(r.program.graph.outputs))):
        return None
    every = [*leaves, *r.boxes]
    if not all(type(x) is Tensor and x._interp is None for x in leaves) or not all(
        isinstance(b, Tensor) for b in r.boxes
    ):
        return None
    if any(b._interp is not None for b in r.boxes) or r.held._dicts or r.held._lists or r.held._slots:
        return None
    if plan.entry:
        from .native import native

        f = native(r, leaves, plan, plan.entry, plan.cost, args.children, bare)
        if f is not None:
            return f
    if bare:
        return None
    return _made(r, every, len(leaves), plan, args.children)


def _taken(spec: Any, name: str, numbers: Any, tests: list[str]) -> None:
    """Tests that take a tree apart: its tensors get the names a0, a1, ... in order."""
    if spec.kind is None:
        tests.append(f"((a{next(numbers)} := {name}) is not None)")
        return
    tests.append(f"{name}.__class__ is {spec.kind.__name__} and len({name}) == {len(spec.children)}")
    for i, c in enumerate(spec.children):
        part = f"{name}.get({spec.context[i]!r})" if spec.kind is dict else f"{name}[{i}]"
        if c.kind is None:
            _taken(c, part, numbers, tests)
        else:
            tests.append(f"(({name}_{i} := {part}) is not None)")
            _taken(c, f"{name}_{i}", numbers, tests)


def _made(r: Any, every: list[Any], n: int, plan: Any, specs: Any) -> Callable[..., Any]:
    names: dict[str, Any] = {
        "Tensor": Tensor, "ndarray": np.ndarray, "empty": plan.new, "CUT": CUT.get, "cut": CUT.get(), "default": dt.get_default_dtype,
        "d": dt.get_default_dtype(), "AUTOCAST": AUTOCAST.get, "autocast": AUTOCAST.get(),
        "kernel": plan.kernel, "threads": plan.threads, "unflatten": unflatten, "spec": r.spec,
    }  # fmt: skip
    tests, values = ["default() is d", "CUT() == cut", "AUTOCAST() is autocast"], []
    numbers = count()
    for i, c in enumerate(specs):
        _taken(c, f"p{i}", numbers, tests)
    for i, x in enumerate(every):
        v = x._value
        names |= {f"t{i}": v.dtype, f"s{i}": v.shape}
        if i < n:
            tests.append(f"a{i}.__class__ is Tensor")
        else:
            names[f"a{i}"] = x
        tests += [
            f"a{i}._interp is None",
            f"(v{i} := a{i}._value).__class__ is ndarray",
            f"v{i}.dtype is t{i}",
            f"v{i}.shape == s{i}",
        ]
        values.append(f"v{i}")
    for k, (c, v) in enumerate(r.held._cells):
        names |= {f"c{k}": c, f"w{k}": v}
        tests.append(f"c{k}.cell_contents is w{k}")
    for k, (d, key, v) in enumerate(r.held._names):
        names |= {f"g{k}": d.get, f"k{k}": key, f"u{k}": v}
        tests.append(f"g{k}(k{k}) is u{k}")
    for k, (f, code, defaults, kwdefaults) in enumerate(r.held._codes):
        names |= {f"f{k}": f, f"code{k}": code, f"def{k}": defaults, f"kwd{k}": kwdefaults}
        tests.append(f"f{k}.__code__ is code{k} and f{k}.__defaults__ is def{k} and f{k}.__kwdefaults__ is kwd{k}")
    lines = [
        "def call(*p):",
        f"    if len(p) != {len(specs)}:",
        "        return None",
        *[f"    p{i} = p[{i}]" for i in range(len(specs))],
        f"    if not ({' and '.join(tests)}):",
        "        return None",
    ]
    for i, (shape, dtype) in enumerate(plan.shapes):
        names |= {f"ys{i}": shape, f"yt{i}": dtype}
        lines.append(f"    y{i} = empty(ys{i}, yt{i})")
    tail = []
    for i, t in enumerate(plan.tail):
        if isinstance(t, int):
            shape, dtype = plan.temps[t]
            names |= {f"ts{i}": shape, f"tt{i}": dtype}
            lines.append(f"    m{i} = empty(ts{i}, tt{i})")
        else:
            names[f"m{i}"] = t
        tail.append(f"m{i}")
    outs = [f"y{i}" for i in range(len(plan.shapes))]
    threads = "threads()" if plan.parallel else "0"
    lines.append(f"    if kernel({', '.join([threads, *values, *outs, *tail])}) is False:")
    lines.append("        return None")
    if r.spec is LEAF:
        lines.append("    return Tensor(y0)")
    else:
        lines.append(f"    return unflatten([{', '.join(f'Tensor({y})' for y in outs)}], spec)")
    exec("\n".join(lines), names)
    return names["call"]
