"""Every real function of the library against mpmath: the largest error in units in the last place, beside PyTorch's and SciPy's.

Values and first derivatives, float32 and float64, over the whole domain: all magnitudes, both tails, the ends, where the
function passes through 0. Each is called on a few elements and on many, where compiled loops run; the worse of the two counts.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from .exact import TABLE, Function

TYPES: dict[str, Any] = {"float32": np.float32, "float64": np.float64}
LIMITS = {"float32": 4.0, "float64": 8.0}
DIGITS = {"float32": (24, -126), "float64": (53, -1022)}
MANY = 1 << 14  # elements, enough for every compiled loop
PREC = 160
INF = float("inf")

CONDITION = "ill-conditioned there: the error stays within the limit times what half a last place of the argument moves"


# -- where ------------------------------------------------------------------------------------------------------------


def points(f: Function, dtype: str, n: int, seed: int = 0) -> list[np.ndarray]:
    """About `n` points in each span of `f`, or `n` pairs: even, of every magnitude, near the ends, near the hard points."""
    rng = np.random.default_rng(seed)
    if len(f.slopes) == 2:
        columns = [rng.permutation(_span(a, b, f.near, dtype, n, rng))[:n] for a, b in f.spans]
        size = min(map(len, columns))
        return [c[:size] for c in columns]
    return [np.unique(np.concatenate([_span(a, b, f.near, dtype, n, rng) for a, b in f.spans]))]


def _span(a: float, b: float, near: tuple[float, ...], dtype: str, n: int, rng: Any) -> np.ndarray:
    info = np.finfo(TYPES[dtype])
    low, high = max(a, float(info.min)), min(b, float(info.max))
    steps = lambda k: 2.0 ** -rng.uniform(0, info.nmant + 1, k)
    parts = [rng.uniform(max(low, -10.0), min(high, 10.0), n // 4) if low < 10 and high > -10 else np.empty(0)]
    with np.errstate(all="ignore"):
        if high - low < INF:
            parts.append(rng.uniform(low, high, n // 4))
        least = np.log2(float(info.smallest_subnormal))
        for sign, end in ((1.0, high), (-1.0, -low)):
            if end > 0:
                from_zero = max(least, np.log2(max(low, 0.0) if sign > 0 else max(-high, 0.0)))
                parts.append(sign * 2.0 ** rng.uniform(from_zero, np.log2(end), n // 4))
        for end, inward in ((a, 1.0), (b, -1.0)):
            if np.isfinite(end) and end != 0:
                parts.append(end + inward * steps(n // 8) * min(abs(end), 1.0))
        parts += [c + np.where(rng.random(n // 4) < 0.5, -1, 1) * steps(n // 4) * abs(c) for c in near]
        x = np.concatenate(parts).astype(TYPES[dtype])
    return x[(x > a) & (x < b) & np.isfinite(x) & (x != 0)]


# -- how far off ------------------------------------------------------------------------------------------------------


def exact(f: Any, xs: list[np.ndarray]) -> list[Any]:
    """`f` in 160 bits at float arguments."""
    with mp.workprec(PREC):
        return [mp.mpf(f(*[mp.mpf(float(v)) for v in row])) for row in zip(*xs, strict=True)]


def ulps(got: np.ndarray, want: list[Any], dtype: str) -> np.ndarray:
    """Distances in units in the last place of `dtype`; what is beyond its largest number must be infinite."""
    digits, _ = DIGITS[dtype]
    top = mp.mpf(float(np.finfo(TYPES[dtype]).max)) * (1 + mp.mpf(2) ** -(digits + 1))
    out = np.empty(len(want))
    with mp.workprec(PREC):
        for i, (g, w) in enumerate(zip(got.tolist(), want, strict=True)):
            if not mp.isfinite(w) or abs(w) >= top:
                out[i] = 0.0 if np.isinf(g) and (g > 0) == (w > 0) else INF
            elif not np.isfinite(g):
                out[i] = INF
            else:
                out[i] = float(abs(mp.mpf(g) - w) / _last_place(w, dtype))
    return out


def _last_place(w: Any, dtype: str) -> Any:
    digits, low = DIGITS[dtype]
    _, man, exp, bits = w._mpf_
    return mp.mpf(2) ** (max(exp + bits - 1 if man else low, low) - digits + 1)


# -- the libraries ----------------------------------------------------------------------------------------------------


def _lookup(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part, None)
    return module


def ours(f: Function, xs: list[np.ndarray], slopes: bool) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """Values, and the derivatives in each argument: on these elements, and as part of many."""
    import chainrule as cr

    function = _lookup(cr, f.name)
    call = lambda *ts: function(*f.before, *ts, *f.after)
    values, pulls = [], []
    for size in (len(xs[0]), MANY):
        ts = [cr.tensor(np.resize(x, size)) for x in xs]
        if slopes:
            y, pull = cr.func.vjp(call, *ts)
            gs = pull(cr.ones_like(y))
            pulls.append([g.numpy()[: len(xs[0])] for g in (gs if isinstance(gs, tuple) else (gs,))])
        else:
            y = call(*ts)
        values.append(y.detach().numpy()[: len(xs[0])])
    return values, pulls


def theirs(f: Function, xs: list[np.ndarray], slopes: bool) -> tuple[Any, Any]:
    """PyTorch's values and derivatives; None where it has none."""
    try:
        import torch
    except ImportError:
        return None, None
    function = _lookup(torch, f.torch or f.name)
    if function is None:
        return None, None
    after = {"approximate": f.after[0]} if f.after and isinstance(f.after[0], str) else {}
    rest = () if after else f.after
    ts = [torch.from_numpy(x.copy()).requires_grad_() for x in xs]
    y = function(*f.before, *ts, *rest, **after)
    gs: Any = None
    if slopes and y.requires_grad:
        try:
            gs = [None if g is None else g.numpy() for g in torch.autograd.grad(y.sum(), ts, allow_unused=True)]
        except (RuntimeError, NotImplementedError):
            gs = None
    return y.detach().numpy(), gs


def scipys(f: Function, xs: list[np.ndarray]) -> Any:
    """SciPy's (or NumPy's) values; None where it has none."""
    if f.scipy == "-":
        return None
    if f.scipy.startswith("np."):
        function = getattr(np, f.scipy[3:])
    else:
        function = getattr(importlib.import_module("scipy.special"), f.scipy or f.name.split(".")[-1])
    return np.asarray(function(*f.before, *xs, *f.after))


# -- the table --------------------------------------------------------------------------------------------------------


@dataclass
class Row:
    """The worst errors of one function in one type; `order` is "value" or the number of the argument derived by."""

    label: str
    family: str
    dtype: str
    order: str
    ours: float
    torch: float | None
    scipy: float | None
    at: tuple[float, ...]
    moved: float  # the worst error where half a unit in the last place of the arguments counts as much as one of the result

    @property
    def short(self) -> bool:
        """Whether the limit is passed and another library does better."""
        rivals = [r for r in (self.torch, self.scipy) if r is not None]
        return self.ours > LIMITS[self.dtype] and bool(rivals) and self.ours > min(rivals)

    @property
    def reason(self) -> str:
        """Why it may be."""
        return CONDITION if self.moved <= LIMITS[self.dtype] else ""


def measure(label: str, dtype: str, n: int, slopes: bool = True, seed: int = 0) -> list[Row]:
    """The rows of one function in one type."""
    f = TABLE[label]
    xs = points(f, dtype, n, seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        values, pulls = ours(f, xs, slopes)
        torch_value, torch_slopes = theirs(f, xs, slopes)
        scipy_value = scipys(f, xs)
    jobs = [("value", f.value, values, torch_value, scipy_value)]
    for i, s in enumerate(f.slopes if slopes else ()):
        if s is not None:
            name = "slope" if len(f.slopes) == 1 else f"slope {i + 1}"
            jobs.append((name, s, [p[i] for p in pulls], torch_slopes and torch_slopes[i], None))
    rows = []
    for order, formula, mine, other, third in jobs:
        want = exact(formula, xs)
        errors = np.maximum.reduce([ulps(v, want, dtype) for v in mine])
        worst = int(np.argmax(errors))
        rival, second = (None if v is None else float(ulps(v, want, dtype).max()) for v in (other, third))
        at = tuple(float(x[worst]) for x in xs)
        moved = _conditioned(formula, xs, want, errors, dtype)
        rows.append(Row(label, f.family, dtype, order, float(errors[worst]), rival, second, at, moved))
    return rows


def _conditioned(f: Any, xs: list[np.ndarray], want: list[Any], errors: np.ndarray, dtype: str) -> float:
    """The worst of the errors over the limit, each divided by one and by how far half a last place of the arguments moves f."""
    worst = float(np.minimum(errors, LIMITS[dtype]).max())
    for i in np.flatnonzero(errors > LIMITS[dtype]):
        if errors[i] == INF:
            return INF
        moved, row = 0.0, [x[i] for x in xs]
        for j, v in enumerate(row):
            with mp.workprec(PREC):
                near = [mp.mpf(float(u)) for u in row]
                near[j] -= mp.mpf(float(np.spacing(v))) / 2  # towards 0, where the function is defined
                moved += float(abs(f(*near) - want[i]) / _last_place(want[i], dtype))
        worst = max(worst, errors[i] / (1 + moved))
    return worst


def _number(v: float | None) -> str:
    if v is None:
        return ""
    return "all" if v == INF else f"{v:.1f}" if v < 1e3 else f"{v:.0e}".replace("e+0", "e").replace("e+", "e")


def table(rows: list[Row]) -> list[str]:
    """The rows as a table in Markdown: values and slopes of both types."""
    out = [
        "| function | of | float32 | PyTorch | SciPy | float64 | PyTorch | SciPy |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    found = {(r.label, r.order, r.dtype): r for r in rows}
    for label, order in dict.fromkeys((r.label, r.order) for r in rows):
        cells = [f"`{label}`", order]
        for dtype in TYPES:
            r = found.get((label, order, dtype))
            cells += ["", "", ""] if r is None else [_number(r.ours), _number(r.torch), _number(r.scipy)]
        out.append("| " + " | ".join(cells) + " |")
    return out


def plot(rows: list[Row], folder: Path) -> list[str]:
    """One picture a type and order: a mark a function and library."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = []
    for kind in ("value", "slope"):
        part = [r for r in rows if r.order.startswith(kind)]
        labels = list(dict.fromkeys((r.label, r.order) for r in part))
        fig, axes = plt.subplots(1, 2, figsize=(11, 0.16 * len(labels) + 1.2), sharey=True)
        for axis, dtype in zip(axes, TYPES, strict=True):
            for who, colour, mark in (("scipy", "#bbbbbb", "s"), ("torch", "#e07b39", "D"), ("ours", "#1f5fa8", "o")):
                found = [(getattr(r, who), labels.index((r.label, r.order))) for r in part if r.dtype == dtype]
                xy = [(min(max(v, 0.3), 1e18), i) for v, i in found if v is not None]
                name = {"ours": "chainrule", "torch": "PyTorch", "scipy": "SciPy, NumPy"}[who]
                axis.scatter(*zip(*xy, strict=True) if xy else ([], []), s=14, c=colour, marker=mark, label=name)
            axis.axvline(LIMITS[dtype], color="k", lw=0.6, ls=":")
            axis.set_xscale("log")
            axis.set_xlim(0.25, 2e18)
            axis.set_title(f"{dtype}: largest error of the {kind}, in units in the last place", fontsize=8)
            axis.tick_params(labelsize=6)
            axis.grid(axis="y", lw=0.2)
        axes[0].set_yticks(range(len(labels)), [f"{a}, {b}" if b[-1].isdigit() else a for a, b in labels])
        axes[0].set_ylim(len(labels), -1)
        axes[1].legend(fontsize=7, loc="lower right")
        fig.tight_layout()
        name = f"functions-{kind}s.png"
        fig.savefig(folder / name, dpi=80)
        plt.close(fig)
        names.append(name)
    return names


def main(args: list[str]) -> int:
    """Print the table; 1 where a function passes the limit without a reason although another library does better."""
    parser = argparse.ArgumentParser(prog="python -m chainrule.testing.precision functions", description=__doc__)
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--points", type=int, default=100, help="points in a span")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", action="store_true", help="print only what passes the limit")
    parser.add_argument("--docs", type=Path, help="the folder whose precision.md gets the tables and pictures")
    options, _ = parser.parse_known_args(args)
    start, rows = time.time(), []
    for label in TABLE:
        if options.only in label:
            for dtype in TYPES:
                n = options.points // 2 if len(TABLE[label].slopes) == 2 else options.points
                rows += measure(label, dtype, n, seed=options.seed)
    shown = [r for r in rows if r.ours > LIMITS[r.dtype]] if options.worst else rows
    print("\n".join(table(shown)))
    for r in rows:
        if r.short:
            print(f"{r.label} ({r.order}, {r.dtype}): {_number(r.ours)} ulp at {r.at}: {r.reason or 'NO REASON'}")
    print(f"{len(rows)} rows in {time.time() - start:.0f} s")
    if options.docs:
        write(rows, options.docs)
    return int(any(r.short and not r.reason for r in rows))


BEGIN, END = "<!-- functions: written by make precision -->", "<!-- functions: end -->"


def write(rows: list[Row], docs: Path) -> None:
    """The section of functions in docs/precision.md, between its marks, and the pictures in docs/precision/."""
    folder = docs / "precision"
    folder.mkdir(exist_ok=True)
    names = plot(rows, folder)
    lines = [BEGIN, ""]
    for name in names:
        lines += [f"![{name}](precision/{name})", ""]
    for family in dict.fromkeys(r.family for r in rows):
        lines += [f"### {family.capitalize()}", "", *table([r for r in rows if r.family == family]), ""]
    lines += ["### Over the limit although another library does better", ""]
    short = [r for r in rows if r.short]
    for r in short:
        at = ", ".join(f"{v:.6g}" for v in r.at)
        lines.append(
            f"* `{r.label}`, {r.order}, {r.dtype}: {_number(r.ours)} at {at}; {r.reason or 'no reason known'}."
        )
    lines += [] if short else ["None."]
    page = docs / "precision.md"
    text = page.read_text()
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    page.write_text(before + "\n".join(lines) + "\n\n" + after)
