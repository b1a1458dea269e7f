"""The rows of :mod:`benchmarks.ops`: one line for each piece of work, ``row(name, inputs, function of the library and the inputs)``.

`inputs` are names of :data:`MAKERS`, each a function of a size (8, 128 or 1024) and a random generator. Floating inputs are leaves, unless a
``-`` stands before the name. ``grad=False`` says that there is no derivative to be measured; ``limit`` is the largest ratio allowed, where it is not 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

SIZES = (8, 128, 1024)
BLAS = 1.2  # where PyTorch has MKL and oneDNN behind it

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """One piece of work: what it reads, what it computes with a library `L`, the largest ratio allowed."""

    family: str
    name: str
    inputs: tuple[str, ...]
    f: Callable[..., Any]
    grad: bool = True
    limit: float = 1.0
    sizes: tuple[int, ...] = SIZES


CASES: dict[str, Case] = {}
_family = ""


def family(name: str) -> None:
    """The rows that follow belong to it."""
    global _family
    _family = name


def row(name: str, inputs: str, f: Callable[..., Any], **options: Any) -> None:
    """Add one row to the table."""
    if name in CASES:
        raise ValueError(f"row {name!r} stands twice in the table")
    CASES[name] = Case(_family, name, tuple(inputs.split()), f, **options)


# -- inputs -------------------------------------------------------------------------------------------------------------


def _pick(n: int, *each: Any) -> Any:
    """What belongs to the size: small, middle, large."""
    return each[SIZES.index(n)]


def _normal(*shape: int) -> Callable[..., Array]:
    return lambda n, rng: rng.standard_normal(tuple([s or n for s in shape])).astype(np.float32)


def _uniform(low: float, high: float, *shape: int) -> Callable[..., Array]:
    return lambda n, rng: rng.uniform(low, high, tuple([s or n for s in shape or (0, 0)])).astype(np.float32)


def _images(n: int) -> tuple[int, int, int, int]:
    return _pick(n, (2, 4, 8, 8), (4, 16, 32, 32), (16, 32, 64, 64))


def _sequences(n: int) -> tuple[int, int, int, int]:
    """Batch, heads, tokens, width of a head."""
    return _pick(n, (1, 2, 8, 8), (2, 4, 64, 32), (4, 8, 256, 64))


def _of(shape: Callable[[int], tuple[int, ...]], scale: float = 1.0) -> Callable[..., Array]:
    return lambda n, rng: (scale * rng.standard_normal(shape(n))).astype(np.float32)


def _definite(a: Array) -> Array:
    n = a.shape[-1]
    return (a @ a.swapaxes(-1, -2) / n + np.eye(n, dtype=np.float32)).astype(np.float32)


def _square(n: int) -> int:
    return n


def _factor(n: int) -> int:
    return _pick(n, 8, 128, 512)


def _small(n: int) -> tuple[int, int, int]:
    """Many small matrices."""
    return _pick(n, (8, 3, 3), (500, 8, 8), (2000, 16, 16))


def _matrix(size: Callable[[int], int]) -> Callable[..., Array]:
    """A matrix far from singular."""

    def make(n: int, rng: Any) -> Array:
        m = size(n)
        return (rng.standard_normal((m, m)) / m**0.5 + 2 * np.eye(m)).astype(np.float32)

    return make


def _spread(n: int, rng: Any) -> Array:
    """A symmetric matrix whose eigenvalues lie apart: derivatives of eigenvectors mean something."""
    m = _factor(n)
    q = np.linalg.qr(rng.standard_normal((m, m)))[0]
    return ((q * np.linspace(1.0, 4.0, m)) @ q.T).astype(np.float32)


def _ctc(n: int) -> tuple[int, int, int]:
    return _pick(n, (8, 2, 6), (50, 8, 20), (150, 16, 40))


MAKERS: dict[str, Callable[[int, Any], Array]] = {
    "x": _normal(0, 0),
    "y": _normal(0, 0),
    "z": _normal(0, 0),
    "p": _uniform(0.1, 2.0),
    "q": _uniform(0.1, 2.0),
    "u": _uniform(-0.95, 0.95),
    "h": _uniform(0.05, 0.95),
    "o": _uniform(1.1, 3.0),
    "v": _normal(0),
    "w": _normal(0),
    "column": _normal(0, 1),
    "vector": lambda n, rng: rng.standard_normal(n * n).astype(np.float32),
    "vector2": lambda n, rng: rng.standard_normal(n * n).astype(np.float32),
    "cube": lambda n, rng: rng.standard_normal(_pick(n, (2, 8, 8), (8, 64, 64), (16, 256, 256))).astype(np.float32),
    "cube2": lambda n, rng: rng.standard_normal(_pick(n, (2, 8, 8), (8, 64, 64), (16, 256, 256))).astype(np.float32),
    "mask": lambda n, rng: rng.random((n, n)) < 0.5,
    "rows": lambda n, rng: rng.integers(0, n, n),
    "each": lambda n, rng: rng.integers(0, n, (n, n)),
    "perm": lambda n, rng: rng.permutation(n),
    "perms": lambda n, rng: rng.permuted(np.tile(np.arange(n), (n, 1)), axis=1),
    "sign": lambda n, rng: np.sign(rng.standard_normal((n, n))).astype(np.float32),
    "signs": lambda n, rng: np.sign(rng.standard_normal(n)).astype(np.float32),
    "edges": lambda n, rng: np.sort(rng.standard_normal(n)).astype(np.float32),
    "bags": lambda n, rng: np.arange(0, n, 8),
    "counts": lambda n, rng: rng.integers(0, 2 * n, n * n),
    "three": _normal(0, 3),
    "three2": _normal(0, 3),
    "points": lambda n, rng: rng.standard_normal((n, 16)).astype(np.float32),
    "points2": lambda n, rng: rng.standard_normal((n, 16)).astype(np.float32),
    "spd": lambda n, rng: _definite(rng.standard_normal((n, n))),
    "matrix": _matrix(_square),
    "general": _matrix(_factor),
    "tall": lambda n, rng: rng.standard_normal((2 * _factor(n), _factor(n))).astype(np.float32),
    "spread": _spread,
    "triangle": lambda n, rng: np.tril(_matrix(_square)(n, rng)),
    "small": lambda n, rng: (rng.standard_normal(_small(n)) + 4 * np.eye(_small(n)[-1])).astype(np.float32),
    "smalls": _of(_small),
    "small_spd": lambda n, rng: _definite(rng.standard_normal(_small(n))),
    "small_triangle": lambda n, rng: (np.tril(rng.standard_normal(_small(n)) * 0.3) + 2 * np.eye(_small(n)[-1])).astype(
        np.float32
    ),
    "image": _of(_images),
    "image2": _of(_images),
    "k33": _of(lambda n: (_images(n)[1], _images(n)[1], 3, 3), 0.1),
    "k11": _of(lambda n: (_images(n)[1], _images(n)[1], 1, 1), 0.1),
    "depth": _of(lambda n: (_images(n)[1], 1, 3, 3), 0.3),
    "bias": _of(lambda n: (_images(n)[1],)),
    "scale": lambda n, rng: rng.uniform(0.5, 1.5, _images(n)[1]).astype(np.float32),
    "wide": _of(lambda n: (_images(n)[0], _images(n)[1] * 9, _images(n)[2] * _images(n)[3])),
    "signal": _of(lambda n: _pick(n, (2, 4, 16), (4, 16, 256), (16, 64, 1024))),
    "k3": _of(lambda n: _pick(n, (4, 4, 3), (16, 16, 3), (64, 64, 3)), 0.1),
    "volume": _of(lambda n: _pick(n, (1, 2, 4, 4, 4), (2, 8, 12, 12, 12), (4, 16, 24, 24, 24))),
    "k333": _of(lambda n: _pick(n, (2, 2, 3, 3, 3), (8, 8, 3, 3, 3), (16, 16, 3, 3, 3)), 0.1),
    "grid": lambda n, rng: rng.uniform(-1, 1, (_images(n)[0], *_images(n)[2:], 2)).astype(np.float32),
    "queries": _of(_sequences),
    "keys": _of(_sequences),
    "values": _of(_sequences),
    "scores": _of(_ctc),
    "labels": lambda n, rng: rng.integers(1, _ctc(n)[2], (_ctc(n)[1], _ctc(n)[0] // 4)),
    "lengths": lambda n, rng: np.full(_ctc(n)[1], _ctc(n)[0]),
    "label_lengths": lambda n, rng: np.full(_ctc(n)[1], _ctc(n)[0] // 4),
    "wave": lambda n, rng: rng.standard_normal((n, n)).astype(np.float32),
    "tokens": lambda n, rng: rng.integers(0, n, (n, 8)),
}
# What a row may use without a derivative although it is floating: gradients of it mean nothing.
CONSTANT = {"edges", "sign", "signs"}


def F(L: Any) -> Any:
    """The functions of neural networks."""
    return L.nn.functional


def _numbers(name: str, inputs: str, **options: Any) -> None:
    row(name, inputs, lambda L, *xs: getattr(L, name)(*xs), **options)


def _special(name: str, inputs: str, **options: Any) -> None:
    row(f"special.{name}", inputs, lambda L, *xs: getattr(L.special, name)(*xs), **options)


def _nn(name: str, inputs: str, *rest: Any, **options: Any) -> None:
    row(name, inputs, lambda L, *xs: getattr(L.nn.functional, name)(*xs, *rest), **options)


# -- elementwise --------------------------------------------------------------------------------------------------------

family("elementwise, one argument")
for _n in "exp exp2 expm1 sin cos tan sinh cosh tanh atan asinh sigmoid abs neg square sign floor ceil round trunc frac deg2rad sinc".split():
    _numbers(_n, "x")
for _n in "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma".split():
    _numbers(_n, "p")
for _n in "asin acos atanh erfinv".split():
    _numbers(_n, "u")
_numbers("acosh", "o")
_numbers("logit", "h")
for _n in "erf erfc i0 nan_to_num positive relu".split():
    _numbers(_n, "x")
for _n in "isfinite isnan signbit".split():
    _numbers(_n, "x", grad=False)
for _n in "i0e i1 i1e ndtr log_ndtr erfcx".split():
    _special(_n, "x")
_special("entr", "p")
_special("ndtri", "h")
row("polygamma(1)", "p", lambda L, p: L.polygamma(1, p))
row("clamp", "x", lambda L, x: L.clamp(x, -0.5, 0.5))
row("pow 2", "x", lambda L, x: x**2)
row("pow 3", "x", lambda L, x: x**3)
row("pow 0.5", "p", lambda L, p: p**0.5)
row("2 x + 1", "x", lambda L, x: x * 2.0 + 1.0)
row("to float64", "x", lambda L, x: x.to(L.float64))

family("activations")
for (
    _n
) in "silu mish softplus elu selu celu leaky_relu hardtanh hardswish hardsigmoid relu6 softsign logsigmoid".split():
    _nn(_n, "x")
for _n in "tanhshrink softshrink hardshrink gelu glu".split():
    _nn(_n, "x")
row("gelu tanh", "x", lambda L, x: F(L).gelu(x, approximate="tanh"))
row("threshold", "x", lambda L, x: F(L).threshold(x, 0.1, 0.0))
row("prelu", "x w", lambda L, x, w: F(L).prelu(x, w))

family("elementwise, more arguments")
for _n in "add sub mul maximum minimum hypot atan2 logaddexp logaddexp2 fmax".split():
    _numbers(_n, "x y")
for _n in "xlogy fmod remainder copysign".split():
    _numbers(_n, "x p")
_special("xlog1py", "x p")
row("div", "x o", lambda L, x, o: x / o)
row("floor_divide", "x o", lambda L, x, o: L.floor_divide(x, o), grad=False)
row("pow x y", "p x", lambda L, p, x: p**x)
row("add row", "x w", lambda L, x, w: x + w)
row("mul column", "x column", lambda L, x, c: x * c)
row("lerp 0.3", "x y", lambda L, x, y: L.lerp(x, y, 0.3))
row("lerp", "x y h", lambda L, x, y, h: L.lerp(x, y, h))
row("addcmul", "x y z", lambda L, x, y, z: L.addcmul(x, y, z, value=0.5))
row("addcdiv", "x y o", lambda L, x, y, o: L.addcdiv(x, y, o, value=0.5))
row("where", "mask x y", lambda L, m, x, y: L.where(m, x, y))
row("masked_fill", "x mask", lambda L, x, m: x.masked_fill(m, 0.5))
for _n in "eq lt logical_and".split():
    _numbers(_n, "x y", grad=False)
row("heaviside", "x y", lambda L, x, y: L.heaviside(x, y), grad=False)

# -- reductions and scans -----------------------------------------------------------------------------------------------

family("reductions")
for _n in "sum mean prod std var norm logsumexp amax amin median nansum nanmean nanmedian".split():
    if _n != "logsumexp":
        _numbers(_n, "h" if _n == "prod" else "x")
for _d in (0, 1):
    for _n in "sum mean std var norm logsumexp amax prod nansum".split():
        row(
            f"{_n} dim {_d}",
            "p" if _n == "prod" else "x",
            lambda L, x, _n=_n, _d=_d: L.norm(x, dim=_d) if _n == "norm" else getattr(L, _n)(x, dim=_d),
        )
row("max dim", "x", lambda L, x: L.max(x, dim=1).values)
row("median dim", "x", lambda L, x: L.median(x, dim=1).values)
row("mode dim", "each", lambda L, j: L.mode(j, dim=1).values, grad=False)
row("kthvalue", "x", lambda L, x: L.kthvalue(x, x.shape[1] // 3, dim=1).values)
row("quantile", "x", lambda L, x: L.quantile(x, 0.3, dim=1))
row("var_mean", "x", lambda L, x: L.var_mean(x, dim=1)[0])
row("vector_norm 1", "x", lambda L, x: L.linalg.vector_norm(x, 1, dim=1))
row("vector_norm 3", "x", lambda L, x: L.linalg.vector_norm(x, 3, dim=1))
row("vector_norm inf", "x", lambda L, x: L.linalg.vector_norm(x, float("inf"), dim=1))
row("dist", "x y", lambda L, x, y: L.dist(x, y))
row("argmax", "x", lambda L, x: L.argmax(x, dim=1), grad=False)
row("count_nonzero", "mask", lambda L, m: L.count_nonzero(m, dim=1), grad=False)
row("any", "mask", lambda L, m: L.any(m, dim=1), grad=False)
row("trace", "x", lambda L, x: L.trace(x))

family("scans")
for _n in "cumsum cumprod logcumsumexp".split():
    for _d in (0, 1):
        row(f"{_n} dim {_d}", "o" if _n == "cumprod" else "x", lambda L, x, _n=_n, _d=_d: getattr(L, _n)(x * 0.5, _d))
row("cummax", "x", lambda L, x: L.cummax(x, 1).values)
row("diff", "x", lambda L, x: L.diff(x, dim=1))
row("trapezoid", "x", lambda L, x: L.trapezoid(x, dim=1))

family("order")
row("sort", "x", lambda L, x: L.sort(x, dim=1, stable=True).values)
row("argsort", "x", lambda L, x: L.argsort(x, dim=1, stable=True), grad=False)
row("topk", "x", lambda L, x: L.topk(x, 5, dim=1).values)
row("topk quarter", "x", lambda L, x: L.topk(x, x.shape[1] // 4, dim=1).values)
row("searchsorted", "edges -x", lambda L, e, x: L.searchsorted(e, x), grad=False)
row("unique", "counts", lambda L, c: L.unique(c), grad=False)
row("bincount", "counts", lambda L, c: L.bincount(c), grad=False)
row("histc", "-x", lambda L, x: L.histc(x, 20, -3.0, 3.0), grad=False)

# -- indices ------------------------------------------------------------------------------------------------------------

family("indices")
row("rows by index", "x rows", lambda L, x, i: x[i])
row("index_select", "x rows", lambda L, x, i: L.index_select(x, 0, i))
row("index_select dim 1", "x rows", lambda L, x, i: L.index_select(x, 1, i))
row("gather", "x each", lambda L, x, j: L.gather(x, 1, j))
row("gather dim 0", "x each", lambda L, x, j: L.gather(x, 0, j))
row("take_along_dim", "x perms", lambda L, x, j: L.take_along_dim(x, j, 1))
row("take", "x each", lambda L, x, j: L.take(x, j))
row("pairs by index", "x rows perm", lambda L, x, i, j: x[i, j])
row("scatter", "x perms y", lambda L, x, j, y: L.scatter(x, 1, j, y))
row("scatter_add", "x each y", lambda L, x, j, y: L.scatter_add(x, 1, j, y))
row("scatter_add dim 0", "x each y", lambda L, x, j, y: L.scatter_add(x, 0, j, y))
row("scatter_reduce amax", "x each y", lambda L, x, j, y: L.scatter_reduce(x, 1, j, y, "amax"))
row("index_add", "x rows y", lambda L, x, i, y: L.index_add(x, 0, i, y))
row("index_copy", "x perm y", lambda L, x, i, y: L.index_copy(x, 0, i, y))
row("index_fill", "x rows", lambda L, x, i: L.index_fill(x, 0, i, 0.5))
row("index_put add", "x rows y", lambda L, x, i, y: L.index_put(x, (i,), y, accumulate=True))
row("masked_select", "x mask", lambda L, x, m: L.masked_select(x, m))
row("masked_scatter", "x mask y", lambda L, x, m, y: L.masked_scatter(x, m, y))
row("embedding", "tokens x", lambda L, i, w: F(L).embedding(i, w))
row("embedding_bag", "rows x bags", lambda L, i, w, b: F(L).embedding_bag(i, w, b, mode="mean"))
row("one_hot", "rows", lambda L, i: F(L).one_hot(i), grad=False)
row("nonzero", "mask", lambda L, m: L.nonzero(m), grad=False)
row("slice", "x", lambda L, x: x[1:-1, ::2] * 2.0)


def _assign(L: Any, x: Any, y: Any) -> Any:
    z = x.clone()
    z[1:-1, :] = y[2:, :]
    return z


row("slice assignment", "x y", _assign)

family("shapes")
row("clone", "x", lambda L, x: x.clone())
row("transposed copy", "x", lambda L, x: x.t().contiguous())
row("permuted copy", "cube", lambda L, x: x.permute(2, 0, 1).contiguous())
row("cat", "x y", lambda L, x, y: L.cat((x, y), 1))
row("stack", "x y z", lambda L, x, y, z: L.stack((x, y, z)))
row("split", "x", lambda L, x: L.split(x, x.shape[1] // 2, 1)[0] * 2.0)
for _n in "tril triu".split():
    _numbers(_n, "x")
row("flip", "x", lambda L, x: L.flip(x, (0, 1)))
row("roll", "x", lambda L, x: L.roll(x, 3, 1))
row("repeat", "x", lambda L, x: x.repeat(2, 2))
row("repeat_interleave", "x", lambda L, x: L.repeat_interleave(x, 2, 0))
row("expand", "v", lambda L, v: v.expand(v.shape[0], v.shape[0]) * 2.0)
row("pad", "x", lambda L, x: F(L).pad(x, (1, 2, 3, 4)))
row("pad reflect", "image", lambda L, x: F(L).pad(x, (1, 2, 3, 1), mode="reflect"))
row("diagonal", "x", lambda L, x: L.diagonal(x) * 2.0)
row("diag", "v", lambda L, v: L.diag(v))
row("rot90", "x", lambda L, x: L.rot90(x))
row("pixel_shuffle", "image", lambda L, x: F(L).pixel_shuffle(x, 2))
row("meshgrid", "v w", lambda L, v, w: L.meshgrid(v, w, indexing="ij")[1] * 2.0)

# -- products -----------------------------------------------------------------------------------------------------------

family("products")
row("matmul", "x y", lambda L, x, y: x @ y, limit=BLAS)
row("matmul transposed", "x y", lambda L, x, y: x.t() @ y, limit=BLAS)
row("matrix × vector", "x v", lambda L, x, v: x @ v, limit=BLAS)
row("vector × matrix", "v x", lambda L, v, x: v @ x, limit=BLAS)
row("dot", "vector vector2", lambda L, a, b: L.dot(a, b), limit=BLAS)
row("outer", "v w", lambda L, v, w: L.outer(v, w))
row("bmm", "cube cube2", lambda L, a, b: L.bmm(a, b), limit=BLAS)
row("addmm", "z x y", lambda L, z, x, y: L.addmm(z, x, y), limit=BLAS)
row("linear", "x y w", lambda L, x, y, w: F(L).linear(x, y, w), limit=BLAS)
row("einsum ij,kj->ik", "x y", lambda L, x, y: L.einsum("ij,kj->ik", x, y), limit=BLAS)
row("einsum ij,ij->i", "x y", lambda L, x, y: L.einsum("ij,ij->i", x, y), limit=BLAS)
row("tensordot", "x y", lambda L, x, y: L.tensordot(x, y, ([1], [1])), limit=BLAS)
row("cross", "three three2", lambda L, a, b: L.linalg.cross(a, b))
row("small matmul", "small smalls", lambda L, a, b: a @ b, limit=BLAS)
row("cdist", "points points2", lambda L, a, b: L.cdist(a, b))
row("cosine_similarity", "x y", lambda L, x, y: F(L).cosine_similarity(x, y))
row("pairwise_distance", "x y", lambda L, x, y: F(L).pairwise_distance(x, y))
row("matrix_power 3", "matrix", lambda L, a: L.linalg.matrix_power(a, 3), limit=BLAS)
row("kron", "small smalls", lambda L, a, b: L.kron(a[0], b[0]))

family("factorisations")
row("cholesky", "spd", lambda L, a: L.linalg.cholesky(a), limit=BLAS)
row("lu_factor", "matrix", lambda L, a: L.linalg.lu_factor(a)[0], limit=BLAS)
row("lu", "matrix", lambda L, a: L.linalg.lu(a)[2], limit=BLAS)
row("solve", "matrix x", lambda L, a, b: L.linalg.solve(a, b), limit=BLAS)
row("solve vector", "matrix v", lambda L, a, b: L.linalg.solve(a, b), limit=BLAS)
row("inv", "matrix", lambda L, a: L.linalg.inv(a), limit=BLAS)
row("det", "matrix", lambda L, a: L.linalg.det(a / 2.1), limit=BLAS)
row("slogdet", "matrix", lambda L, a: L.linalg.slogdet(a)[1], limit=BLAS)
row("triangular solve", "triangle x", lambda L, a, b: L.linalg.solve_triangular(a, b, upper=False), limit=BLAS)
row("cholesky_solve", "x triangle", lambda L, b, a: L.cholesky_solve(b, L.tril(a)), limit=BLAS)
row("qr", "general", lambda L, a: L.linalg.qr(a)[1], limit=BLAS)
row("eigh", "spread", lambda L, a: L.linalg.eigh(a)[0], limit=BLAS)
row("svdvals", "general", lambda L, a: L.linalg.svdvals(a), limit=BLAS)
row("svd", "general", lambda L, a: L.linalg.svd(a)[1], limit=BLAS)
row("pinv", "general", lambda L, a: L.linalg.pinv(a), limit=BLAS)
row("lstsq", "tall general", lambda L, a, b: L.linalg.lstsq(a, L.cat((b, b)))[0], limit=BLAS)
row("matrix_exp", "general", lambda L, a: L.linalg.matrix_exp(a / 4), limit=BLAS)
row("matrix_norm nuc", "general", lambda L, a: L.linalg.matrix_norm(a, "nuc"), limit=BLAS)
row("small cholesky", "small_spd", lambda L, a: L.linalg.cholesky(a), limit=BLAS)
row("small solve", "small smalls", lambda L, a, b: L.linalg.solve(a, b), limit=BLAS)
row("small inv", "small", lambda L, a: L.linalg.inv(a), limit=BLAS)
row("small det", "small", lambda L, a: L.linalg.det(a * 0.2), limit=BLAS)
row("small lu", "small", lambda L, a: L.linalg.lu_factor(a)[0], limit=BLAS)
row("small qr", "small", lambda L, a: L.linalg.qr(a)[1], limit=BLAS)
row("small eigh", "small_spd", lambda L, a: L.linalg.eigh(a)[0], limit=BLAS)
row("small svd", "small", lambda L, a: L.linalg.svd(a)[1], limit=BLAS)
row(
    "small triangular",
    "small_triangle smalls",
    lambda L, a, b: L.linalg.solve_triangular(a, b, upper=False),
    limit=BLAS,
)

# -- neural networks ----------------------------------------------------------------------------------------------------

family("norms and softmax")
row("softmax", "x", lambda L, x: L.softmax(x, 1))
row("softmax dim 0", "x", lambda L, x: L.softmax(x, 0))
row("log_softmax", "x", lambda L, x: L.log_softmax(x, 1))
row("softmin", "x", lambda L, x: F(L).softmin(x, 1))
row("layer_norm", "x v w", lambda L, x, v, w: F(L).layer_norm(x, (x.shape[1],), v, w))
row("rms_norm", "x v", lambda L, x, v: F(L).rms_norm(x, (x.shape[1],), v, 1e-5))
row("batch_norm", "image scale bias", lambda L, x, s, b: F(L).batch_norm(x, None, None, s, b, True))
row("group_norm", "image scale bias", lambda L, x, s, b: F(L).group_norm(x, 2, s, b))
row("instance_norm", "image", lambda L, x: F(L).instance_norm(x))
row("normalize", "x", lambda L, x: F(L).normalize(x, dim=1))
row("local_response_norm", "image", lambda L, x: F(L).local_response_norm(x, 3))

family("losses")
for _n in "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split():
    _nn(_n, "x -y" if _n != "binary_cross_entropy_with_logits" else "x -h")
_nn("soft_margin_loss", "x sign")
_nn("poisson_nll_loss", "x -p")
_nn("gaussian_nll_loss", "x -y p")
_nn("binary_cross_entropy", "h -h")
row("kl_div", "x -h", lambda L, x, h: F(L).kl_div(x, h, reduction="batchmean"))
row("cross_entropy", "x rows", lambda L, x, i: F(L).cross_entropy(x, i))
row("cross_entropy smooth", "x rows", lambda L, x, i: F(L).cross_entropy(x, i, label_smoothing=0.1))
row("nll_loss", "x rows", lambda L, x, i: F(L).nll_loss(x, i))
row("multi_margin_loss", "x rows", lambda L, x, i: F(L).multi_margin_loss(x, i))
row("hinge_embedding_loss", "x sign", lambda L, x, s: F(L).hinge_embedding_loss(x, s))
row("cosine_embedding_loss", "x y signs", lambda L, x, y, s: F(L).cosine_embedding_loss(x, y, s))
row("margin_ranking_loss", "v w signs", lambda L, v, w, s: F(L).margin_ranking_loss(v, w, s))
row("triplet_margin_loss", "x y z", lambda L, x, y, z: F(L).triplet_margin_loss(x, y, z))
row(
    "ctc_loss",
    "scores labels lengths label_lengths",
    lambda L, x, t, n, m: F(L).ctc_loss(L.log_softmax(x, -1), t, n, m),
)

family("windows")
row("conv2d 3×3", "image k33 bias", lambda L, x, k, b: F(L).conv2d(x, k, b, padding=1), limit=BLAS)
row("conv2d 3×3 stride 2", "image k33", lambda L, x, k: F(L).conv2d(x, k, stride=2, padding=1), limit=BLAS)
row("conv2d 1×1", "image k11 bias", lambda L, x, k, b: F(L).conv2d(x, k, b), limit=BLAS)
row("conv2d depthwise", "image depth", lambda L, x, k: F(L).conv2d(x, k, padding=1, groups=k.shape[0]), limit=BLAS)
row("conv_transpose2d", "image k33", lambda L, x, k: F(L).conv_transpose2d(x, k, stride=2, padding=1), limit=BLAS)
row("conv1d", "signal k3", lambda L, x, k: F(L).conv1d(x, k, padding=1), limit=BLAS)
row("conv3d", "volume k333", lambda L, x, k: F(L).conv3d(x, k, padding=1), limit=BLAS)
row("max_pool2d", "image", lambda L, x: F(L).max_pool2d(x, 2))
row("max_pool2d 3 stride 2", "image", lambda L, x: F(L).max_pool2d(x, 3, 2, 1))
row("avg_pool2d", "image", lambda L, x: F(L).avg_pool2d(x, 2))
row("adaptive_avg_pool2d", "image", lambda L, x: F(L).adaptive_avg_pool2d(x, (5, 3)))
row("adaptive_max_pool2d", "image", lambda L, x: F(L).adaptive_max_pool2d(x, (5, 3)))
row("lp_pool2d", "image", lambda L, x: F(L).lp_pool2d(x, 2.0, 2))
row("unfold", "image", lambda L, x: F(L).unfold(x, 3, padding=1))
row("fold", "wide image2", lambda L, x, y: F(L).fold(x, tuple(y.shape[2:]), 3, padding=1))
row("interpolate nearest", "image", lambda L, x: F(L).interpolate(x, scale_factor=2))
row("interpolate bilinear", "image", lambda L, x: F(L).interpolate(x, scale_factor=2, mode="bilinear"))
row("interpolate bicubic", "image", lambda L, x: F(L).interpolate(x, scale_factor=1.5, mode="bicubic"))
row("grid_sample", "image grid", lambda L, x, g: F(L).grid_sample(x, g, align_corners=False))
row("grid_sample nearest", "image grid", lambda L, x, g: F(L).grid_sample(x, g, mode="nearest", align_corners=False))

family("attention")
row("attention", "queries keys values", lambda L, q, k, v: F(L).scaled_dot_product_attention(q, k, v))
row(
    "attention causal",
    "queries keys values",
    lambda L, q, k, v: F(L).scaled_dot_product_attention(q, k, v, is_causal=True),
)

family("Fourier")
row("fft", "wave", lambda L, x: L.fft.fft(x), limit=BLAS)
row("rfft", "wave", lambda L, x: L.fft.rfft(x), limit=BLAS)
row("fft2", "wave", lambda L, x: L.fft.fft2(x), limit=BLAS)
row("irfft", "wave", lambda L, x: L.fft.irfft(L.complex(x, x)), limit=BLAS)
