"""One row of the matrix: every chosen sample of an entry in every column, gathered into cells."""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .adapters import Library
from .columns import COLUMNS, NOT_APPLICABLE, RAISED, RIGHT, WRONG, Judge, Verdict, describe_exception
from .database import Entry, samples_of
from .problem import Case, Oracle

MAX_DETAILS = 4
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
                samples = list(samples_of(entry, dtype, options.samples, options.seed))
            except Exception as e:
                reason = f"the database cannot make samples: {describe_exception(e)}"
                continue
            for index, sample in samples:
                case = Case(entry, dtype, index, sample, options.seed)
                try:
                    oracle = Oracle(case)
                    oracle.outputs  # noqa: B018 (builds PyTorch's graph)
                except Exception as e:
                    reason = f"PyTorch itself raises: {describe_exception(e)}"
                    continue
                count += 1
                at = case.describe()
                for column, verdict in Judge(case, library, oracle).columns(options.columns).items():
                    found[column].append((verdict, at))
    return {
        "name": entry.name,
        "family": entry.family,
        "differentiable": entry.differentiable,
        "samples": count,
        "cells": {c: _cell(verdicts, reason) for c, verdicts in found.items()},
    }


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
