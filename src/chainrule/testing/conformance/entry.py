"""One row of the matrix: every chosen sample of an entry in every column, gathered into cells."""

from __future__ import annotations

import contextlib
import itertools
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .adapters import Library
from .columns import COLUMNS, NOT_APPLICABLE, RAISED, RIGHT, WRONG, Judge, Verdict, describe_exception
from .database import Entry, samples_of
from .problem import Case, Oracle

MAX_DETAILS = 4
MORE = 40  # samples that are tried for a gradient that is not zero
_ORDER = (WRONG, RAISED, RIGHT, NOT_APPLICABLE)


@dataclass(frozen=True)
class Options:
    """What a run asks of every entry."""

    samples: int = 3
    seed: int = 0
    columns: tuple[str, ...] = COLUMNS


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No warnings: PyTorch warns about beta features and fallbacks on nearly every sample."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def judge_entry(entry: Entry, library: Library, options: Options) -> dict[str, Any]:
    """The entry's row: ``{"name", "family", "differentiable", "samples", "cells"}``."""
    found: dict[str, list[tuple[Verdict, dict[str, str]]]] = {c: [] for c in options.columns}
    count, reason = 0, "the database has no samples on the CPU"
    with quiet():
        for dtype in entry.dtypes:
            try:
                samples, chosen = samples_of(entry, dtype, options.samples, options.seed)
            except Exception as e:
                reason = f"the database cannot make samples: {describe_exception(e)}"
                continue
            judges = []
            for index in chosen:
                try:
                    judges.append(_judge(Case(entry, dtype, index, samples[index], options.seed), library))
                except Exception as e:
                    reason = f"PyTorch itself raises: {describe_exception(e)}"
            if judges and entry.differentiable_at(dtype) and not any(j.oracle.has_gradient for j in judges):
                others = (Case(entry, dtype, i, s, options.seed) for i, s in enumerate(samples) if i not in chosen)
                judges += _with_gradient(others, library)
            for judge in judges:
                count += 1
                at = judge.case.describe()
                for column, verdict in judge.columns(options.columns).items():
                    found[column].append((verdict, at))
    return {
        "name": entry.name,
        "family": entry.family,
        "differentiable": entry.differentiable,
        "samples": count,
        "cells": {c: _cell(verdicts, reason) for c, verdicts in found.items()},
    }


def _judge(case: Case, library: Library) -> Judge:
    oracle = Oracle(case)
    oracle.outputs  # noqa: B018 (builds PyTorch's graph)
    return Judge(case, library, oracle)


def _with_gradient(cases: Iterable[Case], library: Library) -> list[Judge]:
    """The first of some more samples whose gradient is not zero: a rule is not judged by its zeros alone."""
    for case in itertools.islice(cases, MORE):
        with contextlib.suppress(Exception):  # PyTorch itself raises
            judge = _judge(case, library)
            if judge.oracle.has_gradient:
                return [judge]
    return []


def _cell(verdicts: Sequence[tuple[Verdict, dict[str, str]]], reason: str) -> dict[str, Any]:
    """Right only if right for every sample it applies to; failing samples are kept as details."""
    if not verdicts:
        return {"status": NOT_APPLICABLE, "message": reason}
    status = min((v.status for v, _ in verdicts), key=_ORDER.index)
    if status == RIGHT:
        return {"status": RIGHT}
    if status == NOT_APPLICABLE:
        return {"status": status, "message": verdicts[0][0].message}
    bad = [{**at, "status": v.status, "message": v.message} for v, at in verdicts if v.status in (WRONG, RAISED)]
    kept = 1 if all(d["message"] == bad[0]["message"] for d in bad) else MAX_DETAILS
    return {"status": status, "failing": len(bad), "of": len(verdicts), "details": bad[:kept]}


def failed_row(entry: Entry, options: Options, message: str) -> dict[str, Any]:
    """The row of an entry whose process died or ran out of time: every applicable column raised."""
    cells: dict[str, Any] = {}
    for c in options.columns:
        if c not in ("value", "vmap") and not entry.differentiable:
            cells[c] = {"status": NOT_APPLICABLE, "message": "not differentiable"}
        else:
            detail = {"dtype": "", "sample": "", "status": RAISED, "message": message}
            cells[c] = {"status": RAISED, "failing": 1, "of": 1, "details": [detail]}
    return {
        "name": entry.name,
        "family": entry.family,
        "differentiable": entry.differentiable,
        "samples": 0,
        "cells": cells,
    }


def single_thread() -> None:
    """One thread per worker: entries are small and the cores are shared by the workers."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    torch.set_num_threads(1)
