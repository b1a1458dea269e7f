"""Beside the matrix: the database's error inputs (each must raise and say why) and reference inputs (values only)."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .adapters import Library, Missing, TorchLibrary
from .cli import progress
from .columns import NOT_APPLICABLE, RAISED, RIGHT, WRONG, Judge, describe_exception, judged
from .database import Entry, errors_of, references_of
from .problem import Case, Oracle, carrier
from .summary import write_json
from .tree import map_tree

SILENT, ACCIDENT, VAGUE = "silent", "accident", "vague"
# What an unchecked argument runs into somewhere inside: nobody meant to raise these.
_ACCIDENTS = (
    AttributeError,
    KeyError,
    NameError,
    AssertionError,
    RecursionError,
    ZeroDivisionError,
    UnboundLocalError,
    StopIteration,
)
_ALIASES = {
    "self": ("input",),
    "input": ("self",),
    "dim": ("dim", "dims", "axis", "dimension", "dimensions"),
    "dims": ("dim",),
    "size": ("shape", "sizes"),
    "shape": ("size",),
    "tensors": ("tensor",),
    "mat1": ("input",),
    "A": ("input",),
}


def judge_errors(entry: Entry, library: Library, seed: int) -> list[dict[str, str]]:
    """For each error input of the entry: right, vague (names no argument), accident, silent or missing."""
    return [_judge_error(entry, library, i, e) for i, e in errors_of(entry, seed)]


def _judge_error(entry: Entry, library: Library, index: int, error: Any) -> dict[str, str]:
    case = Case(entry, torch.float64, index, error.sample_input, 0)
    row = {"entry": entry.name, "sample": case.describe()["sample"], "expected": _expected(error)}
    try:
        outcome, names = _raises(entry, library, error.sample_input)
    except Missing as e:
        return {**row, "status": "missing", "message": str(e)}
    if outcome is not None:
        status = _quality(outcome, error, names)
        return {**row, "status": status, "message": describe_exception(outcome)}
    if _raises(entry, TorchLibrary(), error.sample_input)[0] is None:
        return {**row, "status": NOT_APPLICABLE, "message": "PyTorch does not raise either"}
    return {**row, "status": SILENT, "message": "did not raise"}


# What a tensor is made with, if the library cannot even make it ("no such device").
_MAKING = frozenset({"data", "dtype", "device", "layout"})


def _raises(entry: Entry, library: Library, sample: Any) -> tuple[Exception | None, set[str]]:
    """What the library raises when it is called with the sample, and names of arguments that its message may use."""
    op = library.function(entry)
    try:
        args, kwargs = map_tree(carrier(library), ((sample.input, *sample.args), dict(sample.kwargs)))
    except Exception as e:
        return e, _parameters(entry, op) | _MAKING
    try:
        op(*args, **kwargs)
    except Exception as e:
        return e, _parameters(entry, op)
    return None, set()


def _expected(error: Any) -> str:
    kind = error.error_type
    names = "|".join(k.__name__ for k in kind) if isinstance(kind, tuple) else kind.__name__
    return f"{names}: {error.error_regex}"


def _quality(e: Exception, error: Any, parameters: set[str]) -> str:
    if isinstance(e, _ACCIDENTS) and not isinstance(e, error.error_type):
        return ACCIDENT
    if isinstance(e, IndexError) and not isinstance(e, error.error_type) and not issubclass(type(e), ValueError):
        return ACCIDENT
    words = {w.lower() for w in re.findall(r"[A-Za-z_][A-Za-z_0-9]*", str(e))}
    return RIGHT if words & parameters else VAGUE


def _parameters(entry: Entry, op: Callable[..., Any]) -> set[str]:
    """Words that a message may use for an argument: the function's own parameters and those of PyTorch's schemas."""
    names = set(_schema_names(entry.op.name))
    with contextlib.suppress(TypeError, ValueError):
        names.update(inspect.signature(op).parameters)
    for name in list(names):
        names.update(_ALIASES.get(name.rstrip("0123456789"), ()))
    return {n.lower() for n in names} - {"args", "kwargs"}


@functools.cache
def _schema_names(name: str) -> frozenset[str]:
    wanted = (name.rpartition(".")[2], name.replace(".", "_"))
    schemas = (s for s in torch._C._jit_get_all_schemas() if s.name.rpartition("::")[2] in wanted)
    return frozenset(a.name for s in schemas for a in s.arguments)


def run_errors(entries: Sequence[Entry], args: argparse.Namespace) -> int:
    """`errors`: how many error inputs raise, and how many of these with a message that names an argument."""
    rows: list[dict[str, str]] = []
    with_errors = [e for e in entries if e.op.error_inputs_func is not None]
    for entry, outcome, result in progress(_Errors(args.seed), with_errors, args, lambda e: e.name):
        rows += result if outcome == "done" else [_lost(entry, outcome, result)]
    found = Counter(r["status"] for r in rows)
    for r in rows:
        if r["status"] not in (RIGHT, NOT_APPLICABLE) and not args.quiet:
            print(f"{r['entry']}  {r['status']}  {r['sample']}: {r['message']}  (PyTorch: {r['expected']})")
    print(
        f"{args.lib}: {len(rows)} error inputs: {found[RIGHT]} raise and name an argument, {found[VAGUE]} raise but "
        f"name none, {found[ACCIDENT]} raise by accident, {found[SILENT]} do not raise, {found['missing']} missing"
    )
    if args.json:
        write_json(args.json, {"library": args.lib, "totals": dict(sorted(found.items())), "inputs": rows})
    return 0


def _lost(entry: Entry, outcome: str, result: Any) -> dict[str, str]:
    return {"entry": entry.name, "sample": "", "expected": "", "status": ACCIDENT, "message": f"{outcome}: {result}"}


class _Errors:
    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, entry: Entry, library: Library) -> list[dict[str, str]]:
        return judge_errors(entry, library, self.seed)


class _References:
    """Values of every reference input of one entry; only failing ones are kept."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, entry: Entry, library: Library) -> tuple[Counter[str], list[dict[str, str]]]:
        found: Counter[str] = Counter()
        failing = []
        for dtype in entry.dtypes:
            for index, sample in references_of(entry, dtype, self.seed):
                case = Case(entry, dtype, index, sample, self.seed)
                try:
                    oracle = Oracle(case)
                except Exception:
                    found[NOT_APPLICABLE] += 1
                    continue
                verdict = judged(Judge(case, library, oracle).value)
                found[verdict.status] += 1
                if verdict.status in (WRONG, RAISED):
                    row = {"entry": entry.name, **case.describe(), "status": verdict.status, "message": verdict.message}
                    failing.append(row)
        return found, failing


def run_reference(entries: Sequence[Entry], args: argparse.Namespace) -> int:
    """`reference`: values of all reference inputs against PyTorch."""
    total: Counter[str] = Counter()
    failing: list[dict[str, str]] = []
    for entry, outcome, result in progress(_References(args.seed), entries, args, lambda e: e.name):
        if outcome == "done":
            total += result[0]
            failing += result[1]
        else:
            total[RAISED] += 1
            failing.append({**_lost(entry, outcome, result), "dtype": "", "status": RAISED})
    seen: Counter[str] = Counter()
    for r in failing:
        seen[r["entry"]] += 1
        if not args.quiet and (args.verbose or seen[r["entry"]] == 1):
            print(f"{r['entry']}  {r['status']}  {r['dtype']} {r['sample']}: {r['message']}")
    applicable = sum(total.values()) - total[NOT_APPLICABLE]
    print(
        f"{args.lib}: {total[RIGHT]} right of {applicable} reference inputs "
        f"({total[WRONG]} wrong, {total[RAISED]} raised, {total[NOT_APPLICABLE]} not applicable)"
    )
    if args.json:
        write_json(args.json, {"library": args.lib, "totals": dict(sorted(total.items())), "failing": failing})
    return 0
