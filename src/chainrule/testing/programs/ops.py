"""Statements of one op: elementwise, reductions, products and linear algebra. Smooth and bounded at all arguments."""

from __future__ import annotations

from .maker import MAX_ELEMENTS, Make, Maker
from .program import Line, Shape, Var

UNARY = [
    "cr.sin({0})", "cr.cos({0})", "cr.tanh({0})", "cr.sigmoid({0})", "cr.exp(-{0} * {0})", "cr.erf({0})", "cr.atan({0})",
    "cr.log1p({0} * {0})", "cr.sqrt(1 + {0} * {0})", "cr.special.expit({0})", "F.softplus({0})", "F.gelu({0})", "F.silu({0})",
    "F.mish({0})", "{0} / (1 + {0} * {0})", "cr.asinh({0})", "1.3 * {0}", "{0} - 0.4", "-{0}", "cr.reciprocal(2 + cr.cos({0}))",
    "cr.rsqrt(1.5 + cr.sin({0}))", "F.logsigmoid({0})", "cr.sinc({0})", "cr.lgamma(2.5 + cr.sin({0}))", "(2 + cr.sin({0})) ** 1.5",
    "F.tanhshrink({0})", "cr.expm1(cr.tanh({0}))", "cr.xlogy({0}, 1 + {0} * {0})", "{0}.clone()", "{0} * 1.0",
    "cr.square(cr.tanh({0}))", "cr.nn.functional.softsign({0})", "cr.where({0} > 0.123, cr.sin({0}), {0})", "cr.relu({0} - 0.0123)",
    "cr.abs({0} + 0.0171)", "F.leaky_relu({0} + 0.0213, 0.2)", "F.elu({0})", "cr.clamp({0}, -0.8123, 0.9234)",
    "F.hardtanh({0} * 0.5, -0.6, 0.7)",
]  # fmt: skip
BINARY = [
    "{0} + {1}", "{0} - {1}", "{0} * cr.sin({1})", "cr.tanh({0}) * {1}", "{0} / (2 + cr.cos({1}))", "cr.atan2({0}, 1.5 + cr.sin({1}))",
    "cr.logaddexp({0}, {1})", "cr.hypot(1 + {0} * {0}, {1})", "cr.lerp({0}, {1}, 0.3)", "cr.add({0}, {1}, alpha=0.7)", "{0} * {1} * 0.5",
    "cr.maximum({0}, {1} + 0.1317)", "cr.where({0} > {1} + 0.0713, {0}, {1})", "cr.pow(1.5 + cr.sin({0}), {1})",
    "cr.addcmul({0}, {1}, {1}, value=0.2)", "cr.xlogy(cr.sin({0}), 1 + {1} * {1})", "cr.sub({0}, {1})",
]  # fmt: skip


def broadcast(a: Shape, b: Shape) -> Shape | None:
    """The shape of a + b, or None."""
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    if any(m != k and 1 not in (m, k) for m, k in zip(a, b)):
        return None
    return tuple(max(m, k) for m, k in zip(a, b))


def unary(m: Maker) -> Line | None:
    a = m.pick()
    text = m.one(UNARY)
    return None if a is None else Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(a.shape),))


def binary(m: Maker) -> Line | None:
    a = m.pick()
    b = a and m.pick(lambda v: broadcast(a.shape, v.shape) is not None)
    text = m.one(BINARY)
    if a is None or b is None:
        return None
    shape = broadcast(a.shape, b.shape)
    assert shape is not None
    return Line(text, "{o} = " + text, (a.name, b.name), (m.var(shape),))


def with_constant(m: Maker) -> Line | None:
    a = m.pick()
    if a is None:
        return None
    text = m.one(["{0} * " + m.constant(a.shape), m.constant(a.shape) + " - {0}"])
    return Line("constant", "{o} = " + text, (a.name,), (m.var(a.shape),))


ELEMENTWISE: list[Make] = [unary, unary, binary, with_constant]


# -- reductions -------------------------------------------------------------------------------------------------------

# A ramp is added where equal elements would meet: at a tie there is no derivative to compare.
REDUCTIONS = [
    ("cr.sum", ""), ("cr.mean", ""), ("cr.logsumexp", ""), ("cr.var", ", correction=0"), ("cr.amax", ""), ("cr.amin", ""),
    ("cr.linalg.vector_norm", ""), ("cr.norm", ""), ("cr.sum", ""), ("cr.prod", ""), ("cr.median", ""), ("cr.max", ""), ("cr.nansum", ""),
]  # fmt: skip


def ramp(a: Var) -> str:
    """A tensor like `a`, no two elements alike."""
    n = 1
    for k in a.shape:
        n *= k
    if not a.shape:
        return "0.1"
    flat = f"cr.linspace(0.1, 1.7, {n}, dtype=cr.float64)"
    return flat if len(a.shape) == 1 else f"{flat}.reshape({a.shape})"


def reduce(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) > 0)
    if a is None:
        return None
    f, rest = m.one(REDUCTIONS)
    d = m.dim(a)
    keep = m.flip()
    shape = list(a.shape)
    shape[d : d + 1 or None] = [1] if keep else []
    of = "{0}"
    if f in ("cr.amax", "cr.amin", "cr.median", "cr.max", "cr.linalg.vector_norm", "cr.norm", "cr.var", "cr.prod"):
        of = f"{{0}} + {ramp(a)}"
    tail = ".values" if f in ("cr.median", "cr.max") else ""
    return Line(f, f"{{o}} = {f}({of}, dim={d}, keepdim={keep}{rest}){tail}", (a.name,), (m.var(shape),))


def total(m: Maker) -> Line | None:
    a = m.pick()
    text = m.one(["{0}.sum()", "{0}.mean()", "(1 + {0} * {0}).sum().sqrt()", "cr.logsumexp({0}.reshape(-1), 0)"])
    return None if a is None else Line("total", "{o} = " + text, (a.name,), (m.var(()),))


def scan(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) > 0)
    text = m.one(
        [
            "cr.cumsum({0}, {d})",
            "cr.cumprod(cr.cos({0}), {d})",
            "cr.logcumsumexp({0}, {d})",
            "cr.softmax({0}, {d})",
            "cr.log_softmax({0}, {d})",
        ]
    )
    if a is None:
        return None
    d = str(m.dim(a))
    # PyTorch's own third derivative of logcumsumexp is not finite.
    judge = "{o} = cr.log(cr.cumsum(cr.exp({0}), {d}))".replace("{d}", d) if "logcum" in text else None
    return Line(text.split("(")[0], "{o} = " + text.replace("{d}", d), (a.name,), (m.var(a.shape),), judge=judge)


REDUCE: list[Make] = [reduce, reduce, total, scan]


# -- products and linear algebra --------------------------------------------------------------------------------------


def matmul(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) in (1, 2))
    b = a and m.pick(lambda v: len(v.shape) in (1, 2) and v.shape[0] == a.shape[-1])
    if a is None or b is None:
        return None
    shape = a.shape[:-1] + b.shape[1:]
    text = m.one(["({0} @ {1}) * 0.5", "cr.matmul({0}, {1}) * 0.5"])
    if len(a.shape) == len(b.shape) == 2:
        text = m.one([text, "cr.einsum('ij,jk->ik', {0}, {1}) * 0.5", "cr.mm({0}, {1}) * 0.5"])
    return Line("matmul", "{o} = " + text, (a.name, b.name), (m.var(shape),))


def outer(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) == 1)
    b = a and m.pick(lambda v: len(v.shape) == 1 and v.shape[0] * a.shape[0] <= MAX_ELEMENTS)
    if a is None or b is None:
        return None
    text = m.one(["cr.outer({0}, {1})", "cr.einsum('i,j->ij', {0}, {1})", "cr.kron({0}, {1})"])
    shape = (a.shape[0] * b.shape[0],) if "kron" in text else a.shape + b.shape
    return Line("outer", "{o} = " + text + " * 0.5", (a.name, b.name), (m.var(shape),))


# Of any matrix `{0}` of n rows; {s} is symmetric positive definite with eigenvalues apart.
MATRIX = [
    ("cr.linalg.inv({s})", "nn"), ("cr.linalg.cholesky({s})", "nn"), ("cr.logdet({s})", ""), ("cr.linalg.slogdet({s})[1]", ""),
    ("cr.linalg.solve({s}, {0})", "nm"), ("cr.linalg.eigvalsh({s})", "n"), ("cr.linalg.det({s}) * 0.1", ""),
    ("cr.linalg.svdvals({s})", "n"), ("cr.linalg.matrix_exp({s} * 0.1)", "nn"), ("cr.trace({s})", ""), ("cr.triu({s})", "nn"),
    ("cr.linalg.solve_triangular(cr.triu({s}), {0}, upper=True)", "nm"), ("cr.linalg.matrix_power({s} * 0.2, 2)", "nn"),
    ("cr.cholesky_solve({0}, cr.linalg.cholesky({s}))", "nm"), ("cr.linalg.qr({s})[0]", "nn"), ("cr.linalg.eigh({s})[1].square()", "nn"),
    ("cr.linalg.matrix_norm({s})", ""), ("cr.linalg.pinv({s})", "nn"), ("cr.linalg.multi_dot([{s}, {s}, {0}]) * 0.1", "nm"),
    ("cr.linalg.lu_factor({s})[0]", "nn"), ("cr.linalg.svd({s})[1]", "n"),
]  # fmt: skip


def matrix(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) == 2)
    if a is None:
        return None
    text, out = m.one(MATRIX)
    n, k = a.shape
    diag = f"cr.diag(cr.linspace(1.5, {1.5 + 2 * n}, {n}, dtype=cr.float64))"
    spd = f"(0.2 * cr.tanh({{0}}) @ cr.tanh({{0}}).mT + {diag})"
    shape = tuple({"n": n, "m": k}[c] for c in out)
    expression = text.replace("{s}", spd)
    if (
        out
    ):  # LAPACK's results lie by columns in PyTorch, where a view of one is then a copy: no program may depend on it
        expression = f"({expression}).contiguous()"
    return Line(text.split("(")[0], "{o} = " + expression, (a.name,), (m.var(shape),))


LINALG: list[Make] = [matmul, matmul, outer, matrix, matrix]
