"""Operator by operator beside PyTorch: forward, and forward with backward, at three sizes, on one thread and on two.

    python -m benchmarks.ops                       # everything; rewrites docs/speed.json, docs/speed.md and the plot
    python -m benchmarks.ops -k topk -k "sum dim"  # rows whose name or family contains a word; the others keep what is stored
    python -m benchmarks.ops --quick --size 1024 --threads 1 --no-save

The libraries take turns in one process, a process for each number of threads. On one thread the time is the processor's, on two it is the clock's;
the best turn of each library counts. Results are compared before anything is timed: a fast wrong answer is no result.
The rows are one line each in :mod:`benchmarks.ops_table`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import OURS, Row, no_gc, show_time
from benchmarks.ops_table import CASES, CONSTANT, MAKERS, SIZES, Case

ROOT = Path(__file__).resolve().parent.parent
STORE, PAGE, PLOT = ROOT / "docs" / "speed.json", ROOT / "docs" / "speed.md", ROOT / "docs" / "speed.png"
THREADS = (1, 2)
PASSES = ("forward", "both")
SETTLE_S = 0.02  # threads of OpenMP go on spinning for as long after their last job


def _libraries() -> dict[str, Any]:
    import torch

    import chainrule

    return {OURS: chainrule, "torch": torch}


def _work(L: Any, case: Case, arrays: list[np.ndarray], both: bool) -> Callable[[], Any]:
    """The call to be timed: the function, or the function and the gradients of its floating arguments."""
    leaves, args = [], []
    for name, a in zip(case.inputs, arrays, strict=True):
        x = L.tensor(a.copy())
        if both and a.dtype.kind == "f" and name.lstrip("-") not in CONSTANT and not name.startswith("-"):
            x.requires_grad_()
            leaves.append(x)
        args.append(x)
    f = case.f
    if not both:
        return lambda: f(L, *args)
    y = f(L, *args)
    rng = np.random.default_rng(99)
    g = rng.standard_normal(tuple(y.shape)).astype(np.float32)
    cotangent = L.tensor(g).to(y.dtype)
    grad = L.autograd.grad
    return lambda: grad(f(L, *args), leaves, cotangent, allow_unused=True)


def _numbers(result: Any) -> list[np.ndarray]:
    many = result if isinstance(result, (tuple, list)) else (result,)
    return [np.zeros(()) if r is None else np.asarray(r.detach().numpy()) for r in many]


def _agree(work: dict[str, Callable[[], Any]]) -> str:
    """'' where the libraries agree, to the rounding of float32 and some more; else what does not."""
    ours, theirs = (_numbers(f()) for f in work.values())
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape and a.shape and b.shape:  # a cotangent that is None is zero
            return f"shapes {a.shape} and {b.shape}"
        if a.dtype.kind in "fc":
            scale = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))) or 1.0
            if not np.allclose(a, b, rtol=5e-3, atol=2e-3 * scale, equal_nan=True):
                return "values differ"
        elif not np.array_equal(a, b):
            return "values differ"
    return ""


def _best(work: dict[str, Callable[[], Any]], rounds: int, slice_s: float, threads: int) -> list[float]:
    """The best seconds of a call for each function, in turns."""
    clock = time.process_time if threads == 1 else time.perf_counter
    calls = {}
    for name, f in work.items():
        f()
        start = time.perf_counter()
        f()
        once = time.perf_counter() - start
        calls[name] = max(1, min(1000, math.ceil(slice_s / max(once, 1e-7))))
        rounds = min(rounds, max(3, math.ceil(1.5 / max(once, 1e-7))))
    best = dict.fromkeys(work, math.inf)
    with no_gc():
        for _ in range(rounds):
            for name, f in work.items():
                n = calls[name]
                if threads > 1:
                    time.sleep(SETTLE_S)
                f()
                start = clock()
                for _ in range(n):
                    f()
                best[name] = min(best[name], (clock() - start) / n)
    return list(best.values())


def measure(case: Case, size: int, both: bool, threads: int, rounds: int = 9, slice_s: float = 0.003) -> Any:
    """Seconds of a call, ours and PyTorch's; or a word where there is nothing to be timed."""
    arrays = [MAKERS[name.lstrip("-")](size, np.random.default_rng(i)) for i, name in enumerate(case.inputs)]
    try:
        work = {name: _work(L, case, arrays, both) for name, L in _libraries().items()}
        wrong = _agree(work)
    except Exception as e:
        return f"{type(e).__name__}: {e}".splitlines()[0][:120]
    return wrong or _best(work, rounds, slice_s, threads)


def _child(threads: int, names: list[str], sizes: list[int], passes: list[str], quick: bool) -> None:
    """Measure in this process, one line of JSON for each number."""
    libraries = _libraries()
    for L in libraries.values():
        L.set_num_threads(threads)
    warnings.simplefilter("ignore")
    options: dict[str, Any] = {"rounds": 4, "slice_s": 0.001} if quick else {}
    for name in names:
        case = CASES[name]
        for size in sizes:
            for which in passes:
                if size in case.sizes and (which == "forward" or case.grad):
                    got = measure(case, size, which == "both", threads, **options)
                    print(json.dumps([name, size, which, threads, got]), flush=True)


def _environment(threads: int) -> dict[str, str]:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "CHAINRULE_NUM_THREADS")
    return os.environ | dict.fromkeys(names, str(threads))


def chosen(words: list[str]) -> list[str]:
    """Rows whose name or family contains one of the words; a word that is a name stands for that row alone."""
    if not words:
        return list(CASES)
    return [n for n, c in CASES.items() if any(w == n if w in CASES else w in n or w in c.family for w in words)]


def run(names: list[str], sizes: list[int], passes: list[str], threads: int, quick: bool) -> Iterator[list[Any]]:
    """The measurements of one number of threads, from a process of their own."""
    code = (
        f"from benchmarks.ops import _child; _child({threads}, {names!r}, {list(sizes)!r}, {list(passes)!r}, {quick})"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=_environment(threads), cwd=ROOT
    ) as p:
        assert p.stdout is not None
        try:
            for line in p.stdout:
                if line.startswith("["):
                    yield json.loads(line)
        except BaseException:
            p.kill()
            raise
    if p.returncode:
        sys.exit(f"the process that measures on {threads} threads ended with {p.returncode}")


# -- what is stored, and the page made of it -----------------------------------------------------------------------------

Store = dict[str, dict[str, Any]]  # row -> "size pass threads" -> [ours, PyTorch's] or a word


def load() -> Store:
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def save(store: Store) -> None:
    rows = [f"{json.dumps(n, ensure_ascii=False)}: {json.dumps(_rounded(store[n]))}" for n in CASES if n in store]
    STORE.write_text("{\n" + ",\n".join(rows) + "\n}\n")


def _rounded(cells: dict[str, Any]) -> dict[str, Any]:
    return {k: v if isinstance(v, str) else [float(f"{s:.3g}") for s in v] for k, v in sorted(cells.items())}


def ratio(cell: Any) -> float | None:
    return cell[0] / cell[1] if isinstance(cell, list) else None


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def _column(store: Store, size: int, which: str, threads: int) -> dict[str, float]:
    key = f"{size} {which} {threads}"
    return {n: r for n in CASES if (r := ratio(store.get(n, {}).get(key))) is not None}


COLUMNS = [(s, w, t) for s in SIZES for w in PASSES for t in THREADS]


def page(store: Store) -> str:
    """docs/speed.md: what is measured, geometric means, the slowest rows, the whole table."""
    import torch

    lines = [
        "# Operator by operator beside PyTorch",
        "",
        f"Our time as a fraction of PyTorch {torch.__version__.partition('+')[0]}'s, in one process, in turns, best of repeats; below 1 is faster. float32. "
        "On one thread it is the processor's time, on two the clock's. 8, 128 and 1024 are the sides of square matrices; images, sequences and batches "
        "of small matrices have sizes of their own "
        "(`benchmarks/ops_table.py`, where each row is a line). *both* is forward and backward. Made by `python -m benchmarks.ops`, from `docs/speed.json`; "
        "with `-k` some rows are measured anew, and the other cells keep what was seen last, on whatever else the machine did then.",
        "",
        "![ratios of all rows, sorted](speed.png)",
        "",
        "| | rows | geometric mean | above 1 | above 1.5 | slowest |",
        "|---|---|---|---|---|---|",
    ]
    for size, which, threads in COLUMNS:
        column = _column(store, size, which, threads)
        if column:
            worst = sorted(column.items(), key=lambda kv: -kv[1])[:4]
            over = sum(r > CASES[n].limit for n, r in column.items())
            lines.append(
                f"| {size}, {which}, {threads} thread{'s' * (threads > 1)} | {len(column)} | {_mean(list(column.values())):.2f} | {over} "
                f"| {sum(r > 1.5 for r in column.values())} | {', '.join(f'{n} {r:.2g}' for n, r in worst)} |"
            )
    lines += ["", f"*Above 1*: above 1.2 in the rows where PyTorch has MKL and oneDNN behind it ({_blas()} rows).", ""]
    head = [f"{s} {w} {t}" for s, w, t in COLUMNS]
    family = ""
    for name, case in CASES.items():
        if case.family != family:
            family = case.family
            lines += ["", f"## {family[0].upper()}{family[1:]}", ""]
            lines += [f"| | {' | '.join(head)} |", "|---|" + "---|" * len(head)]
        cells = store.get(name, {})
        lines.append(f"| {name} | {' | '.join(_shown(cells.get(h), case.limit) for h in head)} |")
    words = [(n, k, v) for n, cells in store.items() for k, v in cells.items() if isinstance(v, str)]
    if words:
        lines += ["", "## Not measured", "", *[f"- {n} ({k}): {v}" for n, k, v in words]]
    return "\n".join(lines) + "\n"


def _blas() -> int:
    return sum(c.limit > 1 for c in CASES.values())


def _shown(cell: Any, limit: float) -> str:
    r = ratio(cell)
    if r is None:
        return "" if cell is None else "—"
    return f"**{r:.2f}**" if r > limit else f"{r:.2f}"


def plot(store: Store) -> None:
    """The ratios of each column in order, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seen = [t for t in THREADS if any(_column(store, size, which, t) for size in SIZES for which in PASSES)]
    fig, axes = plt.subplots(1, len(seen), figsize=(5.5 * len(seen), 4.2), sharey=True, squeeze=False)
    for ax, threads in zip(axes[0], seen, strict=True):
        for size, colour in zip(SIZES, ("#9ecae1", "#4292c6", "#08306b"), strict=True):
            for which, style in zip(PASSES, (":", "-"), strict=True):
                values = sorted(_column(store, size, which, threads).values())
                if values:
                    at = np.linspace(0, 100, len(values))
                    ax.plot(at, values, style, color=colour, label=f"{size}, {which}: {_mean(values):.2f}")
        ax.set(yscale="log", xlabel="% of rows", title=f"{threads} thread{'s' * (threads > 1)}")
        if ax.lines:
            ax.legend(fontsize=8)
        ax.axhline(1.0, color="black", linewidth=0.8)
    axes[0][0].set_ylabel("time / PyTorch's")
    fig.tight_layout()
    fig.savefig(PLOT, dpi=90)
    plt.close(fig)


def rows(only: str = "") -> Iterator[Row]:
    """One row for each operator and size, forward and backward on one thread, for ``make bench``."""
    names = [n for n in CASES if only in n or only in CASES[n].family]
    for name, size, which, _, got in run(names, list(SIZES), list(PASSES), 1, True):
        case = CASES[name]
        if isinstance(got, list) and (which == "both" or not case.grad):
            limit = max(case.limit, 1.5) if size == SIZES[0] else case.limit
            yield Row(f"{name}, {size}", {OURS: got[0], "torch": got[1]}, {"torch": limit})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", action="append", default=[], metavar="WORD", help="rows whose name or family contains it")
    parser.add_argument("--size", type=int, action="append", choices=SIZES)
    parser.add_argument("--threads", type=int, action="append", choices=THREADS)
    parser.add_argument("--only", choices=PASSES, help="forward, or both passes")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--no-save", action="store_true", help="print only")
    parser.add_argument("--above", type=float, default=0.0, help="print only what is slower than this ratio")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page from what is stored")
    args = parser.parse_args()
    store = load()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was measured until then is kept
    try:
        if not args.page:
            sizes, passes = args.size or list(SIZES), [args.only] if args.only else list(PASSES)
            for threads in args.threads or THREADS:
                for name, size, which, t, got in run(chosen(args.k), sizes, passes, threads, args.quick):
                    store.setdefault(name, {})[f"{size} {which} {t}"] = got
                    r = ratio(got)
                    if r is None or r >= args.above:
                        times = got if r is None else f"{r:7.2f}   {show_time(got[0])} / {show_time(got[1])}"
                        print(f"{name:32} {size:5} {which:8} {t}  {times}", flush=True)
    finally:
        if not args.no_save:
            save(store)
            plot(store)
            PAGE.write_text(page(store))


if __name__ == "__main__":
    main()
