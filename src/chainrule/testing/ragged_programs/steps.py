"""The table of steps: ``name(rng, program)`` gives a step that fits a value of the program, or None.

Dims are negative, so that a function means the same on a nest and on a component; where the two are written differently a step
has both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ... import nn
from ...core.tensor import Tensor
from ...ops.elementwise.select import where
from ...ops.shape.create import arange, tensor
from ...ops.shape.slices import cat, stack
from .program import Dim, Dims, Program, Step, Value, found

F: Any = nn.functional
Rng = np.random.Generator
Maker = Callable[[Rng, Program], Step | None]
STEPS: dict[str, Maker] = {}


def step(f: Maker) -> Maker:
    """Put a step into the table."""
    STEPS[f.__name__] = f
    return f


def pick(rng: Rng, options: Iterable[Any]) -> Any:
    """One of the options."""
    options = list(options)
    return options[int(rng.integers(len(options)))]


def chosen(rng: Rng, p: Program, least: int = 0, ok: Callable[[Value], bool] = lambda v: True) -> int | None:
    """A real value with at least that many dims; the newest is the likeliest."""
    fit = [i for i, v in enumerate(p.values) if v.real and len(v.dims) >= least and ok(v)]
    if not fit:
        return None
    return fit[-1] if rng.random() < 0.6 else pick(rng, fit)


def weight(p: Program, *shape: int) -> int:
    """A new dense operand."""
    p.dense.append(np.zeros(shape))
    return len(p.dense) - 1


def one(
    text: str, i: int, f: Any, v: Value, dims: Dims, each: Any = None, real: bool = True, dense: tuple[int, ...] = ()
) -> Step:
    """A step of one value."""
    args = ", ".join([f"v{i}", *[f"w{j}" for j in dense]])
    return Step(f"{text}({args})", (i,), f, each or f, Value(dims, v.n, real), dense)


def replaced(dims: Dims, d: int, m: Dim) -> Dims:
    d %= len(dims)
    return (*dims[:d], m, *dims[d + 1 :])


def dropped(dims: Dims, ds: Iterable[int], keep: bool) -> Dims:
    gone = {d % len(dims) for d in ds}
    return tuple(1 if i in gone else m for i, m in enumerate(dims) if keep or i not in gone)


def same(a: Dim, b: Dim) -> bool:
    """Whether two sizes are the same, ragged ones too."""
    return isinstance(a, np.ndarray) == isinstance(b, np.ndarray) and bool(np.array_equal(a, b))


def dim_of(rng: Rng, v: Value) -> int:
    return -1 - int(rng.integers(len(v.dims)))


# -- pointwise ----------------------------------------------------------------------------------------------------------------

UNARY: dict[str, Callable[[Any], Any]] = {
    "sin": lambda x: x.sin(), "tanh": lambda x: x.tanh(), "exp": lambda x: x.tanh().exp(), "sigmoid": lambda x: x.sigmoid(),
    "abs": lambda x: x.abs(), "relu": lambda x: x.relu(), "gelu": F.gelu, "affine": lambda x: (2 * x + 1) / 3 - 0.5,
    "cube": lambda x: x.tanh() ** 3, "clamp": lambda x: x.clamp(-0.5, 0.7), "sqrt": lambda x: (x * x + 0.3).sqrt(),
    "where": lambda x: where(x > 0, x, 0.1 * x * x), "masked_fill": lambda x: x.masked_fill(x > 0.3, 2.0), "softplus": F.softplus,
    "reciprocal": lambda x: 1 / (x * x + 1), "sign": lambda x: x * x.sign(),
}  # fmt: skip


@step
def unary(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    name = pick(rng, UNARY)
    return None if i is None else one(name, i, UNARY[name], p.values[i], p.values[i].dims)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - 2 * b, "mul": lambda a, b: a * b, "div": lambda a, b: a / (b * b + 1),
    "maximum": lambda a, b: a.maximum(b), "hypot": lambda a, b: (a * a + b * b + 0.1).sqrt(), "where": lambda a, b: where(a > b, a, 2 * b),
    "mse": lambda a, b: F.mse_loss(a, b, reduction="none"), "huber": lambda a, b: F.huber_loss(a, b, reduction="none"),
}  # fmt: skip


@step
def binary(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    if i is None:
        return None
    v = p.values[i]
    fit = []
    for j, w in enumerate(p.values):
        if w.real and w.n == v.n and len(w.dims) == len(v.dims):
            if all(
                same(a, b) or (not isinstance(b, np.ndarray) and b == 1) for a, b in zip(v.dims, w.dims, strict=True)
            ):
                fit.append(j)
    j, name = pick(rng, fit), pick(rng, BINARY)
    f = BINARY[name]
    a, b = (i, j) if rng.random() < 0.5 or name in ("mse", "huber") else (j, i)
    if name in ("mse", "huber") and not all(same(a, b) for a, b in zip(v.dims, p.values[j].dims, strict=True)):
        return None
    return Step(f"{name}(v{a}, v{b})", (a, b), f, f, Value(v.dims, v.n))


@step
def with_dense(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p)
    if i is None:
        return None
    v = p.values[i]
    k = int(rng.integers(len(v.dims) + 1))
    tail = v.dims[len(v.dims) - k :]
    shape = tuple(1 if isinstance(m, np.ndarray) or rng.random() < 0.3 else m for m in tail)
    name = pick(rng, ("add", "mul", "hypot"))
    return one(name, i, BINARY[name], v, v.dims, dense=(weight(p, *shape),))


# -- reductions ---------------------------------------------------------------------------------------------------------------

REDUCE: dict[str, tuple[int, Callable[..., Any]]] = {
    "sum": (0, lambda x, d, k: x.sum(d, keepdim=k)), "mean": (1, lambda x, d, k: x.mean(d, keepdim=k)),
    "amax": (1, lambda x, d, k: x.amax(d, keepdim=k)), "amin": (1, lambda x, d, k: x.amin(d, keepdim=k)),
    "amax or": (0, lambda x, d, k: x.amax(d, keepdim=k, fill=0.5)), "amin or": (0, lambda x, d, k: x.amin(d, keepdim=k, fill=0.5)),
    "logsumexp": (1, lambda x, d, k: x.logsumexp(d, keepdim=k)), "norm": (1, lambda x, d, k: x.norm(dim=d, keepdim=k)),
    "norm1": (0, lambda x, d, k: x.norm(1, dim=d, keepdim=k)), "norm3": (1, lambda x, d, k: x.norm(3, dim=d, keepdim=k)),
    "var": (2, lambda x, d, k: x.var(d, keepdim=k)), "var0": (1, lambda x, d, k: x.var(d, correction=0, keepdim=k)),
    "std": (2, lambda x, d, k: (x.var(d, keepdim=k) + 0.1).sqrt()), "nansum": (0, lambda x, d, k: x.nansum(d, keepdim=k)),
}  # fmt: skip
REDUCE_ONE: dict[str, tuple[int, Callable[..., Any]]] = {
    "prod": (0, lambda x, d, k: x.prod(d, keepdim=k)), "max": (1, lambda x, d, k: x.max(d, keepdim=k).values),
    "min": (1, lambda x, d, k: x.min(d, keepdim=k).values), "median": (1, lambda x, d, k: x.median(d, keepdim=k).values),
    "kthvalue": (2, lambda x, d, k: x.kthvalue(2, d, keepdim=k).values), "quantile": (1, lambda x, d, k: x.quantile(0.3, d, keepdim=k)),
    "nanquantile": (1, lambda x, d, k: x.nanquantile(0.6, d, keepdim=k)), "quantile lower": (1, lambda x, d, k: x.quantile(0.4, d, k, interpolation="lower")),
}  # fmt: skip
COUNT: dict[str, Callable[..., Any]] = {
    "argmax": lambda x, d, k: x.argmax(d, keepdim=k), "argmin": lambda x, d, k: x.argmin(d, keepdim=k),
    "place of max or": lambda x, d, k: x.argmax(d, keepdim=k, fill=-1),
    "any": lambda x, d, k: (x > 0).any(d, keepdim=k), "all": lambda x, d, k: (x > 0).all(d, keepdim=k),
    "count": lambda x, d, k: (x > 0).sum(d, keepdim=k),
}  # fmt: skip


@step
def reduction(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, REDUCE)
    many = int(rng.integers(1, len(v.dims) + 1)) if rng.random() < 0.4 else 1
    ds = tuple(sorted(-1 - int(d) for d in rng.choice(len(v.dims), many, replace=False)))
    least, f = REDUCE[name]
    if name == "norm" and many > 2:
        return None
    size = np.prod([v.sizes(d) for d in ds], axis=0)
    if (size < least).any() or (least and not all(v.has(d) for d in ds)):
        return None
    d: Any = ds[0] if len(ds) == 1 and rng.random() < 0.5 else ds
    return one(f"{name} {d} {keep}", i, lambda x: f(x, d, keep), v, dropped(v.dims, ds, keep))


@step
def reduction_one(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, REDUCE_ONE)
    d = dim_of(rng, v)
    least, f = REDUCE_ONE[name]
    if not v.has(d, least) or (name.endswith("quantile") and not all(v.has(e) for e in range(len(v.dims)))):
        return None
    if "quantile" in name and not (v.n and all(v.has(e) for e in range(len(v.dims)))):
        return None
    return one(f"{name} {d} {keep}", i, lambda x: f(x, d, keep), v, dropped(v.dims, (d,), keep))


@step
def counting(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.6:
        return None
    v, keep, name = p.values[i], bool(rng.random() < 0.5), pick(rng, COUNT)
    d = dim_of(rng, v)
    if name.startswith("arg") and not v.has(d):
        return None
    return one(f"{name} {d} {keep}", i, lambda x: COUNT[name](x, d, keep), v, dropped(v.dims, (d,), keep), real=False)


# -- along a dim ---------------------------------------------------------------------------------------------------------------

ALONG: dict[str, Callable[[Any, int], Any]] = {
    "softmax": lambda x, d: x.softmax(d), "log_softmax": lambda x, d: x.log_softmax(d), "normalize": lambda x, d: F.normalize(x, dim=d),
    "cumsum": lambda x, d: x.cumsum(d), "cumprod": lambda x, d: x.cumprod(d), "logcumsumexp": lambda x, d: x.logcumsumexp(d),
    "sort": lambda x, d: x.sort(d).values, "sort down": lambda x, d: x.sort(d, descending=True).values, "flip": lambda x, d: x.flip(d),
    "roll": lambda x, d: x.roll(1, d), "roll back": lambda x, d: x.roll(-2, d), "gather": lambda x, d: x.gather(d, x.detach().argsort(d)),
    "take_along_dim": lambda x, d: x.take_along_dim((-x.detach()).argsort(d), d),
    "centred": lambda x, d: x - x.sum(d, keepdim=True), "index_fill": lambda x, d: x.index_fill(d, tensor([0]), 0.5),
    "scatter": lambda x, d: x.scatter(d, x.detach().argsort(d), 2 * x), "scatter_add": lambda x, d: x.scatter_add(d, x.detach().argsort(d), x * x),
    "select_scatter": lambda x, d: x.select_scatter(x.select(d, -1) * 2, d, 0),
    "slice_scatter": lambda x, d: x.slice_scatter(3 * x.narrow(d, 0, 1), d, 0, 1),
    "index_copy": lambda x, d: x.index_copy(d, tensor([0]), 2 * x.narrow(d, 0, 1)),
    "index_add": lambda x, d: x.index_add(d, tensor([0]), x.narrow(d, 0, 1) ** 2),
}  # fmt: skip
NEED = frozenset("index_fill select_scatter slice_scatter index_copy index_add cummax cummin".split())


@step
def along(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v, name = p.values[i], pick(rng, ALONG)
    d = dim_of(rng, v)
    if name in NEED and not v.has(d):
        return None
    return one(f"{name} {d}", i, lambda x: ALONG[name](x, d), v, v.dims)


@step
def running_extremum(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    f = pick(rng, (lambda x: x.cummax(d).values, lambda x: x.cummin(d).values))
    return one(f"cummax {d}", i, f, v, v.dims)


@step
def index_of(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.6:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    return one(f"argsort {d}", i, lambda x: x.argsort(d), v, v.dims, real=False)


@step
def fewer(rng: Rng, p: Program) -> Step | None:
    """A part of a dim: entries, slices, an index; fixed numbers that every component has."""
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    m = v.dims[d]
    t = (slice(None),) * (-d - 1)
    name = pick(
        rng,
        (
            "select",
            "last",
            "narrow",
            "head",
            "tail",
            "end",
            "steps",
            "index",
            "index list",
            "index_select",
            "topk",
            "diff",
            "none",
        ),
    )
    if name in ("select", "last", "narrow", "index", "index list", "index_select", "topk") and not v.has(d):
        return None
    at = int(np.min(v.sizes(d))) - 1 if v.n else 0
    at = int(rng.integers(at + 1)) if at > 0 else 0
    if name == "select":
        return one(f"select {d} {at}", i, lambda x: x.select(d, at), v, dropped(v.dims, (d,), False))
    if name == "last":
        return one(f"last {d}", i, lambda x: x[(..., -1, *t)], v, dropped(v.dims, (d,), False))
    if name == "narrow":
        return one(f"narrow {d}", i, lambda x: x.narrow(d, 0, 1), v, replaced(v.dims, d, 1))
    if name in ("head", "tail", "end", "steps", "none"):
        s = {
            "head": slice(None, 2),
            "tail": slice(1, None),
            "end": slice(-2, None),
            "steps": slice(None, None, 2),
            "none": slice(None, 0),
        }[name]
        size = np.array([len(range(int(q))[s]) for q in v.sizes(d)], np.int64)
        return one(
            f"{name} {d}",
            i,
            lambda x: x[(..., s, *t)],
            v,
            replaced(v.dims, d, size if v.ragged(d) else len(range(m)[s])),
        )
    if name in ("index", "index list", "index_select"):
        rows = [0, at, 0] if name == "index_select" or rng.random() < 0.5 else [at, -1]
        index: Any = rows if name == "index list" else tensor(rows)
        f = (lambda x: x.index_select(d, index)) if name == "index_select" else (lambda x: x[(..., index, *t)])
        return one(f"{name} {d} {rows}", i, f, v, replaced(v.dims, d, len(rows)))
    if name == "topk":
        return one(f"topk {d}", i, lambda x: x.topk(1, d).values, v, replaced(v.dims, d, 1))
    less: Dim = np.maximum(m - 1, 0) if v.ragged(d) else max(m - 1, 0)
    return one(f"diff {d}", i, lambda x: x.diff(dim=d), v, replaced(v.dims, d, less))


@step
def pieces(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1, lambda v: len(v.dims) > 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    if v.ragged(d):
        f = pick(rng, (lambda x: cat([2 * c for c in x.split(2, d)], d), lambda x: cat(x.tensor_split(2, d)[::-1], d)))
        return one(f"split {d}", i, f, v, v.dims, None) if v.has(d) and v.n else None
    if v.dims[d] == 0:
        return None
    f = pick(
        rng,
        (lambda x: stack(x.unbind(d)[::-1], d), lambda x: cat(x.chunk(2, d)[::-1], d), lambda x: cat(x.split(1, d), d)),
    )
    return one(f"unbind {d}", i, f, v, v.dims)


@step
def joined(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    fit = [
        j for j, w in enumerate(p.values)
        if w.real and w.n == v.n and len(w.dims) == len(v.dims)
        and all(same(a, b) for q, (a, b) in enumerate(zip(v.dims, w.dims, strict=True)) if q != d % len(v.dims))
    ]  # fmt: skip
    j = pick(rng, fit)
    w = p.values[j]
    out = v.dims[d] + w.dims[d]
    f = lambda a, b: cat([a, 2 * b, a], d)
    return Step(f"cat {d}(v{i}, v{j})", (i, j), f, f, Value(replaced(v.dims, d, out + v.dims[d]), v.n))


@step
def stacked(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 0, lambda v: len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    fit = [j for j, w in enumerate(p.values) if w.real and w.n == v.n and len(w.dims) == len(v.dims)
           and all(same(a, b) for a, b in zip(v.dims, w.dims, strict=True))]  # fmt: skip
    j, d = pick(rng, fit), -1 - int(rng.integers(len(v.dims) + 1))
    at = len(v.dims) + 1 + d
    f = lambda a, b: stack([a, 2 * b], d)
    return Step(f"stack {d}(v{i}, v{j})", (i, j), f, f, Value((*v.dims[:at], 2, *v.dims[at:]), v.n))


@step
def padded(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    a, b = int(rng.integers(-1, 3)), int(rng.integers(0, 3))
    if not v.has(d, max(-a, 0)):
        return None
    return one(
        f"pad {d} {a} {b}",
        i,
        lambda x: F.pad(x, (0, 0) * (-d - 1) + (a, b), value=0.5),
        v,
        replaced(v.dims, d, v.dims[d] + (a + b)),
    )


# -- shapes -------------------------------------------------------------------------------------------------------------------


@step
def swapped(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    a, b = (int(d) - len(v.dims) for d in rng.choice(len(v.dims), 2, replace=False))
    dims = list(v.dims)
    if rng.random() < 0.5:
        dims[a], dims[b] = dims[b], dims[a]
        return one(f"transpose {a} {b}", i, lambda x: x.transpose(a, b), v, tuple(dims))
    dims.insert(b % len(v.dims), dims.pop(a))
    return one(f"movedim {a} {b}", i, lambda x: x.movedim(a, b), v, tuple(dims))


@step
def more_dims(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 0, lambda v: len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    d = -1 - int(rng.integers(len(v.dims) + 1))
    at = len(v.dims) + 1 + d
    if rng.random() < 0.5:
        return one(f"unsqueeze {d}", i, lambda x: x.unsqueeze(d), v, (*v.dims[:at], 1, *v.dims[at:]))
    rest = (-1,) * len(v.dims)
    f = lambda x: x.unsqueeze(d).expand(*(-1,) * (x.ndim - len(rest)), *rest[:at], 3, *rest[at:])
    return one(f"expand {d}", i, f, v, (*v.dims[:at], 3, *v.dims[at:]))


@step
def fewer_dims(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    d = -1 - int(rng.integers(len(v.dims)))
    if not v.ragged(d) and v.dims[d] == 1:
        return one(f"squeeze {d}", i, lambda x: x.squeeze(d), v, dropped(v.dims, (d,), False))
    if d == -len(v.dims):
        return None
    e = d % len(v.dims)
    size = v.dims[e - 1] * v.dims[e]
    return one(f"flatten {d - 1}", i, lambda x: x.flatten(d - 1, d), v, (*v.dims[: e - 1], size, *v.dims[e + 1 :]))


@step
def repeated(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    times = tuple(2 if q == d % len(v.dims) else 1 for q in range(len(v.dims)))
    return one(
        f"repeat {d}",
        i,
        lambda x: x.repeat(*(1,) * (x.ndim - len(times)), *times),
        v,
        replaced(v.dims, d, v.dims[d] * 2),
    )


@step
def triangle(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v, q = p.values[i], int(rng.integers(-1, 2))
    name = pick(rng, ("tril", "triu", "diagonal"))
    if name != "diagonal":
        return one(f"{name} {q}", i, lambda x: getattr(x, name)(q), v, v.dims)
    size = np.minimum(v.sizes(-2), v.sizes(-1))
    ragged = v.ragged(-1) or v.ragged(-2)
    return one(
        "diagonal",
        i,
        lambda x: x.diagonal(dim1=-2, dim2=-1),
        v,
        (*v.dims[:-2], size.copy() if ragged else int(min(v.dims[-2:]))),
    )


# -- products and layers -------------------------------------------------------------------------------------------------------


@step
def product(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2)
    if i is None:
        return None
    v = p.values[i]
    name = pick(rng, ("gram", "outer gram", "right", "left", "vector", "linear"))
    a, b = v.dims[-2:]
    if name == "gram":
        return one("x @ x.mT", i, lambda x: x @ x.mT, v, (*v.dims[:-2], a, a))
    if name == "outer gram":
        return one("x.mT @ x", i, lambda x: x.mT @ x, v, (*v.dims[:-2], b, b))
    if name in ("right", "vector", "linear") and v.ragged(-1):
        return None
    if name == "right":
        return one("x @ w", i, lambda x, w: x @ w, v, (*v.dims[:-1], 3), dense=(weight(p, b, 3),))
    if name == "linear":
        return one("linear", i, F.linear, v, (*v.dims[:-1], 3), dense=(weight(p, 3, b), weight(p, 3)))
    if name == "vector":
        return one("x @ v", i, lambda x, w: x @ w, v, v.dims[:-1], dense=(weight(p, b),))
    if v.ragged(-2):
        return None
    return one("w @ x", i, lambda x, w: w @ x, v, (*v.dims[:-2], 3, b), dense=(weight(p, 3, a),))


@step
def attention(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: not v.ragged(-1) and len(v.dims) < 4 and v.has(-1))
    if i is None:
        return None
    v, causal = p.values[i], bool(rng.random() < 0.5)
    return one(
        f"attention {causal}", i, lambda x: F.scaled_dot_product_attention(x, x.sin(), x, is_causal=causal), v, v.dims
    )


@step
def row_norm(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1, lambda v: not v.ragged(-1) and v.has(-1))
    if i is None:
        return None
    v = p.values[i]
    m, f = v.dims[-1], pick(rng, (F.layer_norm, F.rms_norm))
    w = (weight(p, m),) if rng.random() < 0.5 else ()
    return one(f.__name__, i, lambda x, *w: f(x, (m,), *w), v, v.dims, dense=w)


@step
def channel_norm(rng: Rng, p: Program) -> Step | None:
    """Norms of images ``[channels, ...]``, the first dim of a component uniform."""
    i = chosen(rng, p, 2, lambda v: not v.ragged(0) and len(v.dims) < 4 and v.has(0))
    if i is None:
        return None
    v = p.values[i]
    c = v.dims[0]
    size = np.prod([v.sizes(d) for d in range(1, len(v.dims))], axis=0)
    name = pick(rng, ("instance_norm", "group_norm", "batch_norm"))
    if (size < 2).any() or not v.n:
        return None
    if name == "instance_norm":
        f: Any = F.instance_norm
    elif name == "group_norm":
        f = lambda x: F.group_norm(x, 2 if c % 2 == 0 else 1)
    else:
        mean, var = tensor(np.linspace(-0.2, 0.3, c)), tensor(np.linspace(0.5, 2.0, c))
        f = lambda x: F.batch_norm(x, mean, var)
    return one(name, i, f, v, v.dims, lambda x: f(x.unsqueeze(0)).squeeze(0))


def _windows(name: str, d: int, c: int) -> tuple[Any, Callable[[Any], Any], int | None, tuple[int, ...]]:
    """A function of images ``[channels, *sizes]``, the size it makes of a size, its channels where they change, its weight's shape."""
    if name == "conv":
        f = F.conv1d if d == 1 else F.conv2d
        return lambda x, w: f(x, w, padding=1), lambda m: m, 2, (2, c, *(3,) * d)
    if name == "conv_transpose":
        f = F.conv_transpose1d if d == 1 else F.conv_transpose2d
        return lambda x, w: f(x, w, stride=2), lambda m: (m - 1) * 2 + 3, 2, (c, 2, *(3,) * d)
    if name == "max_pool":
        return (F.max_pool1d if d == 1 else F.max_pool2d), lambda m: m // 2, None, ()
    if name == "avg_pool":
        return (F.avg_pool1d if d == 1 else F.avg_pool2d), lambda m: m // 2, None, ()
    if name == "adaptive":
        f = F.adaptive_avg_pool1d if d == 1 else F.adaptive_avg_pool2d
        return (lambda x, k: f(x, (2,) * d)), lambda m: m * 0 + 2, None, ()
    return (
        (lambda x, k: F.interpolate(x, scale_factor=2.0, mode="linear" if d == 1 else "bilinear")),
        lambda m: m * 2,
        None,
        (),
    )


@step
def windows(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: v.nested and not v.ragged(0) and v.has(0) and len(v.dims) < 4)
    if i is None:
        return None
    v = p.values[i]
    name = pick(rng, ("conv", "conv_transpose", "max_pool", "avg_pool", "adaptive", "interpolate"))
    if not all(v.has(e, 2) for e in range(1, len(v.dims))):
        return None
    f, size, channels, shape = _windows(name, len(v.dims) - 1, v.dims[0])
    g = f if shape else (lambda x: f(x, 2))
    dims = tuple(2 if name == "adaptive" else size(m) for m in v.dims[1:])
    out = (v.dims[0] if channels is None else channels, *dims)
    w = (weight(p, *shape),) if shape else ()
    return one(name, i, g, v, out, lambda x, *w: g(x.unsqueeze(0), *w).squeeze(0), dense=w)


@step
def classes(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 2, lambda v: len(v.dims) == 2 and not v.ragged(-1) and v.has(-1))
    if i is None:
        return None
    v = p.values[i]
    m = v.dims[-1]
    label = lambda x: (x.detach().sum(-1).abs() * 3).long() % m
    if rng.random() < 0.3:
        return one(
            "cross_entropy last",
            i,
            lambda x: F.cross_entropy(x, label(x), reduction="none", class_dim=-1),
            v,
            v.dims[:-1],
        )
    if rng.random() < 0.5:
        return one("cross_entropy", i, lambda x: F.cross_entropy(x.transpose(-1, -2), label(x), reduction="none"), v, v.dims[:-1],
                   lambda x: F.cross_entropy(x, label(x), reduction="none"))  # fmt: skip
    return one("nll", i, lambda x: -x.log_softmax(-1).gather(-1, label(x).unsqueeze(-1)).squeeze(-1), v, v.dims[:-1])


@step
def of_sizes(rng: Rng, p: Program) -> Step | None:
    """A size of each component in arithmetic."""
    i = chosen(rng, p, 1, lambda v: v.nested)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    return one(f"over size {d}", i, lambda x: x / (x.shape[d] + 1), v, v.dims)


@step
def positions(rng: Rng, p: Program) -> Step | None:
    """A table of positions cut to each component's size, and a range of it."""
    i = chosen(rng, p, 1, lambda v: v.ragged(0) and len(v.dims) <= 2 and not any(map(v.ragged, range(1, len(v.dims)))))
    if i is None:
        return None
    v = p.values[i]
    if (v.sizes(0) > 40).any():
        return None
    rest = tuple(v.dims[1:])
    if rng.random() < 0.5:
        w = (weight(p, 40, *rest),)
        return one(
            "positions", i, lambda x, w: x + w[: x.shape[1]], v, v.dims, lambda c, w: c + w[: c.shape[0]], dense=w
        )
    column = lambda r: r if not rest else r.unsqueeze(-1)
    f = lambda x: x * (column(arange(x.shape[1])) + 1)
    return one("range", i, f, v, v.dims, lambda c: c * (column(arange(c.shape[0])) + 1))


# -- writes -------------------------------------------------------------------------------------------------------------------


def written(change: Callable[..., Any]) -> Callable[..., Any]:
    def f(x: Tensor, *w: Any) -> Tensor:
        y = x * 1
        change(y, *w)
        return y

    return f


@step
def write(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    t = (slice(None),) * (-d - 1)
    name = pick(rng, ("tail", "mask", "in place", "first", "shift", "view", "select", "index", "masked one", "fill"))
    if name in ("first", "select", "index") and not v.has(d):
        return None
    if name == "view" and len(v.dims) < 2:
        return None
    change: Any = {
        "tail": lambda y: y.__setitem__((..., slice(1, None), *t), 2.0),
        "mask": lambda y: y.__setitem__(y > 0, -1.0),
        "in place": lambda y: y.mul_(2).add_(1).clamp_(-1, 3),
        "first": lambda y: y.__setitem__((..., 0, *t), y[(..., -1, *t)] ** 2),
        "shift": lambda y: y.__setitem__((..., slice(None, -1), *t), 3 * y[(..., slice(1, None), *t)]),
        "view": lambda y: y.transpose(-1, -2).mul_(y.transpose(-1, -2).sin()),
        "select": lambda y: y.select(d, 0).mul_(y.select(d, -1)),
        "index": lambda y: y.__setitem__((..., tensor([0, -1]), *t), y[(..., tensor([0]), *t)] * 3),
        "masked one": lambda y: y.masked_fill_(y < 0, 0.3),
        "fill": lambda y: y[(..., slice(0, 1), *t)].fill_(0.7),
    }[name]  # fmt: skip
    return one(f"write {name} {d}", i, written(change), v, v.dims)


@step
def write_dense(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None:
        return None
    v = p.values[i]
    d = dim_of(rng, v)
    if not v.has(d):
        return None
    t = (slice(None),) * (-d - 1)
    rest = v.dims[len(v.dims) + d + 1 :] if d != -1 else ()
    shape = tuple(1 if isinstance(m, np.ndarray) else m for m in rest)
    return one(
        f"write dense {d}",
        i,
        written(lambda y, w: y.__setitem__((..., 0, *t), w)),
        v,
        v.dims,
        dense=(weight(p, *shape),),
    )


# -- along the nesting dim ------------------------------------------------------------------------------------------------------


def _moved(v: Value, order: np.ndarray) -> Value:
    return Value(tuple(d[order] if isinstance(d, np.ndarray) else d for d in v.dims), len(order))


@step
def components_moved(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    n = v.n
    if not n:
        return None
    name = pick(rng, ("flip", "roll", "index", "slice"))
    order = {
        "flip": np.arange(n)[::-1],
        "roll": np.roll(np.arange(n), 1),
        "index": rng.integers(0, n, n),
        "slice": np.arange(n)[1:],
    }[name]
    f: Any = {
        "flip": lambda x: x.flip(0),
        "roll": lambda x: x.roll(1, 0),
        "index": lambda x: x[tensor(order)],
        "slice": lambda x: x[1:],
    }[name]
    return Step(
        f"components {name} {order.tolist()}(v{i})",
        (i,),
        f,
        None,
        _moved(v, order),
        whole=lambda c: [c[j] for j in order],
    )


@step
def components_joined(rng: Rng, p: Program) -> Step | None:
    i = chosen(rng, p, 1)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    fit = [j for j, w in enumerate(p.values) if w.real and len(w.dims) == len(v.dims) and w.nested == v.nested
           and all(isinstance(a, np.ndarray) == isinstance(b, np.ndarray) and (isinstance(a, np.ndarray) or a == b)
                   for a, b in zip(v.dims, w.dims, strict=True))]  # fmt: skip
    j = pick(rng, fit)
    w = p.values[j]
    dims = tuple(
        np.concatenate([a, b]) if isinstance(a, np.ndarray) else a for a, b in zip(v.dims, w.dims, strict=True)
    )
    return Step(
        f"cat 0(v{i}, v{j})",
        (i, j),
        lambda a, b: cat([a, 2 * b], 0),
        None,
        Value(dims, v.n + w.n),
        whole=lambda a, b: [*a, *[2 * c for c in b]],
    )


@step
def taken_apart(rng: Rng, p: Program) -> Step | None:
    """Components as tensors, changed and joined again."""
    from ...nested import as_nested_tensor

    i = chosen(rng, p, 1, lambda v: v.nested and v.n > 0)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    f = lambda x: as_nested_tensor([(q + 1) * c for q, c in enumerate(x.unbind())])
    return Step(
        f"unbind and join(v{i})", (i,), f, None, found(v), whole=lambda c: [(q + 1) * a for q, a in enumerate(c)]
    )


@step
def packed_values(rng: Rng, p: Program) -> Step | None:
    """A number of all packed rows spread to the components."""
    i = chosen(rng, p, 1, lambda v: v.nested)
    if i is None or rng.random() < 0.5:
        return None
    v = p.values[i]
    f = lambda x: x * x.values().sum()
    return Step(
        f"times sum of values(v{i})", (i,), f, None, v, whole=lambda c: [a * sum(b.sum() for b in c) for a in c]
    )


__all__ = ["STEPS"]
