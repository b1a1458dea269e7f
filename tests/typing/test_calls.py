"""No stub forbids what works: every call of PyTorch's operator database and of the ops' own samples, as functions and as methods."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from mypy import api

import chainrule
from chainrule import tree
from chainrule.core.registry import METHODS, PUBLIC
from chainrule.core.samples import SAMPLES, Given, S
from chainrule.testing.conformance.database import all_entries, samples_of

SOURCE = Path(chainrule.__file__).parents[1]


def literal(v: Any) -> str:
    """An argument as Python source; a tensor is `x`. Raises for what has no source."""
    match v:
        case torch.Tensor() | S() | Given():
            return "x"
        case float() if not np.isfinite(v):
            return f"float('{v}')"
        case None | bool() | int() | float() | complex() | str():
            return repr(v)
        case torch.dtype() | torch.layout() | torch.memory_format():
            return f"cr.{str(v).removeprefix('torch.')}"
        case list():
            return f"[{', '.join(map(literal, v))}]"
        case tuple():
            return f"({''.join(f'{literal(a)}, ' for a in v)})"
    raise LookupError(type(v).__name__)


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    for s in SAMPLES:
        if s.f is None:
            yield s.name, s.args, s.kw
    for entry in all_entries():
        op = entry.op
        made_up = isinstance(op.op, types.FunctionType) and (op.op.__module__ or "").startswith("torch.testing.")
        if op.name in PUBLIC and not made_up:
            for dtype in entry.dtypes[:1]:
                for s in samples_of(entry, dtype, 0, 0)[0]:
                    yield op.name, (s.input, *s.args), s.kwargs


def lines() -> set[str]:
    found = set()
    for name, args, kw in calls():
        try:
            texts = [literal(a) for a in args]
            named = [f"{k}={literal(v)}" for k, v in kw.items()]
        except LookupError:
            continue
        if not name.startswith(("_C", "ops.")):
            found.add(f"cr.{name}({', '.join(texts + named)})")
        if name in METHODS and texts[:1] == ["x"] and PUBLIC.get(name) is not None and "out" not in kw:
            found.add(f"x.{name}({', '.join(texts[1:] + named)})")
    return found


@pytest.mark.filterwarnings("ignore:Sparse")
def test_every_sample_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", str(SOURCE))
    written = sorted(lines())
    assert len(written) > 3000
    program = tmp_path / "calls.py"
    program.write_text("\n".join(["import chainrule as cr", "x = cr.ones(3)", *written]) + "\n")
    report, failure, _ = api.run(["--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path}", str(program)])
    assert failure == ""
    text = program.read_text().splitlines()
    refused = [f"{text[int(e.split(':')[1]) - 1]}  # {e}" for e in report.splitlines() if ": error: " in e]
    assert refused == []


def promised() -> dict[str, set[str]]:
    """What the stubs say that each function returns."""
    out: dict[str, set[str]] = {}
    for file in ("__init__", "fft", "linalg", "masked", "nn/functional", "special"):
        space = "" if file == "__init__" else file.replace("/", ".") + "."
        for node in ast.parse((SOURCE / "chainrule" / f"{file}.pyi").read_text()).body:
            if isinstance(node, ast.FunctionDef) and node.returns is not None:
                words = re.findall(r"\w+", re.sub(r"\[.*\]", "", ast.unparse(node.returns)))
                out.setdefault(space + node.name, set()).update(words)
    return out


def kind(y: Any) -> str:
    if isinstance(y, tuple):
        return type(y).__name__ if hasattr(y, "_fields") else "_tuple"
    return "Tensor" if isinstance(y, chainrule.Tensor) else f"_{type(y).__name__}"


def test_functions_return_what_the_stubs_say() -> None:
    rng, said, wrong, count = np.random.default_rng(0), promised(), set(), 0
    for s in SAMPLES:
        if s.f is None and s.name in said:
            fill = lambda v: chainrule.tensor(v.make(rng, False)) if isinstance(v, S | Given) else v
            args, kw = tree.map(fill, (list(s.args), s.kw))
            y = kind(PUBLIC[s.name](*args, **kw))
            count += 1
            if not {y, "Any"} & said[s.name]:
                wrong.add((s.name, y, *said[s.name]))
    assert wrong == set()
    assert count > 900
