"""Statements of what stands beside the operators: sparse tensors, loops and branches, jit, NumPy's functions, recurrent layers, distributions."""

from __future__ import annotations

from .maker import MAX_ELEMENTS, Make, Maker
from .program import Line, Shape, Var


def _numel(shape: Shape) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


# -- sparse tensors ---------------------------------------------------------------------------------------------------

ROWS, COLUMNS = 3, 4
# With the sparse tensor {s}, what the judge says of the dense one {d}, and the shape.
USES: list[tuple[str, str, Shape]] = [
    ("({s}.sin() * {s}).sum()", "({d}.sin() * {d}).sum()", ()),
    ("{s}.sum()", "{d}.sum()", ()),
    ("({s} * 2).to_dense().sum(0)", "({d} * 2).sum(0)", (COLUMNS,)),
    ("{s}.tanh() @ {c}", "{d}.tanh() @ {c}", (ROWS,)),
    ("{r} @ {s}", "{r} @ {d}", (COLUMNS,)),
    ("({s} @ {s}.transpose(0, 1)).to_dense()", "{d} @ {d}.T", (ROWS, ROWS)),
    ("cr.sparse.sum({s} * {s}, 1).to_dense()", "({d} * {d}).sum(1)", (ROWS,)),
    ("({s} + {s}.sin()).to_dense()[1]", "({d} + {d}.sin())[1]", (COLUMNS,)),
    ("cr.sparse.softmax({s}, 1).to_dense().sum(0)", "({d}.exp() * {e} / (({d}.exp() * {e}).sum(1, keepdim=True) + {z})).sum(0)", (COLUMNS,)),
    ("cr.cat([{s}, {s} * 2], 0).to_dense().sum(1)[:3]", "{d}.sum(1)", (ROWS,)),
]  # fmt: skip


def sparse(m: Maker) -> Line | None:
    """A sparse tensor with a tensor's elements as its numbers, used twice."""
    a = m.pick(lambda v: 2 <= _numel(v.shape) <= ROWS * COLUMNS)
    if a is None:
        return None
    n = _numel(a.shape)
    places = list(range(ROWS * COLUMNS))
    for k in range(n):  # the first n of a shuffled list
        j = k + m.choose(len(places) - k)
        places[k], places[j] = places[j], places[k]
    at = places[:n]
    form = m.one(["coo", "coo", "twice", "csr"])
    if form == "twice":
        at[0] = at[-1]
    if form == "csr":
        at.sort()
    rows, columns = [p // COLUMNS for p in at], [p % COLUMNS for p in at]
    if form == "csr":
        crow = [sum(r < k for r in rows) for k in range(ROWS + 1)]
        made = f"cr.sparse_csr_tensor(cr.tensor({crow}), cr.tensor({columns}), {{0}}.reshape(-1), ({ROWS}, {COLUMNS}))"
    else:
        made = f"cr.sparse_coo_tensor({[rows, columns]}, {{0}}.reshape(-1), ({ROWS}, {COLUMNS}))"
    dense = f"cr.zeros({ROWS * COLUMNS}, dtype=cr.float64).index_add(0, cr.tensor({at}), {{0}}.reshape(-1)).reshape({ROWS}, {COLUMNS})"
    stored = (
        f"cr.tensor({[float(p in at) for p in range(ROWS * COLUMNS)]}, dtype=cr.float64).reshape({ROWS}, {COLUMNS})"
    )
    empty = f"cr.tensor({[[float(r not in rows)] for r in range(ROWS)]}, dtype=cr.float64)"
    options = [u for u in USES if form != "csr" or ".cat(" not in u[0]]
    first, second = m.one(options), m.one(options)
    words = {"c": m.constant((COLUMNS,)), "r": m.constant((ROWS,)), "s": "{o}s", "d": "{o}d", "e": stored, "z": empty}

    def use(k: int) -> str:
        return f"({_filled(first[k], words)}).sum() * ({_filled(second[k], words)})"

    return Line(
        f"sparse {form}", f"{{o}}s = {made}\n{{o}} = {use(0)}", (a.name,), (m.var(second[2]),),
        judge=f"{{o}}d = {dense}\n{{o}} = {use(1)}",
    )  # fmt: skip


def _filled(text: str, words: dict[str, str]) -> str:
    for k, v in words.items():
        text = text.replace("{" + k + "}", v)
    return text


SPARSE: list[Make] = [sparse]


# -- loops, branches, compiled functions --------------------------------------------------------------------------------


def _same_shape(m: Maker) -> tuple[Var, Line] | None:
    """A tensor, and a function from its shape to its shape; the line has no text yet."""
    a = m.pick(lambda v: _numel(v.shape) <= 6)
    made = a and m.function([a.shape], want=lambda v: v.shape == a.shape, recorded=True)
    return (a, Line("", "", (a.name,), fn=made[0])) if a is not None and made and made[1] == a.shape else None


def loop(m: Maker) -> Line | None:
    """A function applied again and again."""
    found = _same_shape(m)
    if found is None:
        return None
    a, line = found
    twice = "cr.sin({f}(cr.sin({f}({0}))))"
    ramp = "cr.linspace(0.5, 1.1, 2, dtype=cr.float64)"
    steps = "{o}a = cr.sin({f}({0})) * 0.5\n{o} = cr.sin({f}({o}a)) * 1.1\n{p} = cr.stack([{0}.cos(), {o}a.cos()])"
    kind, text, judge, results = m.one(
        [
            ("fori_loop", "{o} = cr.fori_loop(0, 2, lambda i, c: cr.sin({f}(c)), {0})", "{o} = " + twice, 1),
            ("scan", f"{{o}}, {{p}} = cr.scan(lambda c, t: (cr.sin({{f}}(c)) * t, c.cos()), {{0}}, {ramp})", steps, 2),
            (
                "scan checkpoint",
                f"{{o}}, {{p}} = cr.scan(lambda c, t: (cr.sin({{f}}(c)) * t, c.cos()), {{0}}, {ramp}, checkpoint=1)",
                steps,
                2,
            ),
            (
                "while_loop",
                "{o}, {o}n = cr.while_loop(lambda c, n: n < 2, lambda c, n: (cr.sin({f}(c)), n + 1), ({0}, cr.tensor(0)), max_steps=3)",
                "{o} = " + twice,
                1,
            ),
        ]
    )
    outs: tuple[Var, ...] = (m.var(a.shape, readonly=True),)
    if results == 2:
        outs = (*outs, m.var((2, *a.shape), readonly=True))
    return Line(kind, text, line.args, outs, line.fn, judge=judge)


def branch(m: Maker) -> Line | None:
    found = _same_shape(m)
    if found is None:
        return None
    a, line = found
    kind, text, judge = m.one(
        [
            (
                "cond",
                "{o} = cr.cond({0}.sum() > 0.0317, lambda u: {f}(u) * 1.0, lambda u: u * 0.5, ({0},))",
                "{o} = {f}({0}) * 1.0 if {0}.sum() > 0.0317 else {0} * 0.5",
            ),
            (
                "switch",
                "{o} = cr.switch(({0}.sum() > 0.0317).long(), [lambda u: u.sin(), lambda u: {f}(u) * 1.0], ({0},))",
                "{o} = {f}({0}) * 1.0 if {0}.sum() > 0.0317 else {0}.sin()",
            ),
        ]
    )
    return Line(kind, text, line.args, (m.var(a.shape, readonly=True),), line.fn, judge=judge)


def mapped(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1)
    if a is None:
        return None
    n = a.shape[0]
    if m.flip(3):
        text, judge = (
            "{o} = func.associative_scan(lambda a, b: a * b, cr.exp({0} * 0.5))",
            "{o} = cr.exp({0} * 0.5).cumprod(0)",
        )
        return Line("associative_scan", text, (a.name,), (m.var(a.shape, readonly=True),), judge=judge)
    made = m.function([a.shape[1:]], recorded=True, want=lambda v: n * _numel(v.shape) <= MAX_ELEMENTS)
    if not made:
        return None
    return Line(
        "func.map",
        "{o} = func.map({f}, {0})",
        (a.name,),
        (m.var((n, *made[1]), readonly=True),),
        made[0],
        judge="{o} = func.vmap({f})({0})",
    )


CONTROL: list[Make] = [loop, loop, branch, mapped]


def compiled(m: Maker) -> Line | None:
    """A function compiled where it stands: alone, around a transform, inside one."""
    a = m.pick(lambda v: _numel(v.shape) <= 6)
    if a is None:
        return None
    if m.flip(3):
        made = m.function([a.shape], scalar=True, recorded=True)
        text = m.one(["cr.jit(func.grad({f}))({0})", "func.grad(cr.jit({f}))({0})"])
        shape, judge = a.shape, "func.grad({f})({0})"
    else:
        made = m.function([a.shape], recorded=True)
        if not made:
            return None
        shape, text, judge = made[1], "cr.jit({f})({0})", "{f}({0})"
    if not made:
        return None
    out = m.var(shape, readonly=True)
    return Line("jit", "{o} = " + text, (a.name,), (out,), made[0], judge="{o} = " + judge)


JIT: list[Make] = [compiled]


# -- NumPy's functions, recurrent layers, distributions ---------------------------------------------------------------------


def numpy(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1)
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    text, judge, shape = m.one(
        [
            ("np.sin({0}) * np.exp({1})", "cr.sin({0}) * cr.exp({1})", a.shape),
            ("np.cumsum({0}, axis=0) + np.tanh({1})", "cr.cumsum({0}, 0) + cr.tanh({1})", a.shape),
            ("np.einsum('...i,...i->...', {0}, {1})", "({0} * {1}).sum(-1)", a.shape[:-1]),
            ("np.where({0} > 0.0119, {0}, {1})", "cr.where({0} > 0.0119, {0}, {1})", a.shape),
            ("np.mean({0} * {1}, axis=-1)", "({0} * {1}).mean(-1)", a.shape[:-1]),
            ("np.stack([{0}, np.flip({1}, 0)])[0]", "{0} * 1.0", a.shape),
            ("np.linalg.norm({0} + 2.1, axis=-1)", "(({0} + 2.1) ** 2).sum(-1).sqrt()", a.shape[:-1]),
        ]
    )
    return Line(
        text.split("(")[0],
        "{o} = " + text,
        (a.name, b.name),
        (m.var(shape, readonly=True),),
        judge="{o} = " + judge,
    )


def recurrent(m: Maker) -> Line | None:
    """A recurrent layer over the rows of a matrix."""
    a = m.pick(lambda v: len(v.shape) == 2)
    if a is None or m.recorded:
        return None
    n = a.shape[1]
    kind, gates = m.one([("RNN", 1), ("LSTM", 4), ("GRU", 3)])
    cell = m.flip(3)
    suffix = "" if cell else "_l0"
    state = ", ".join(
        f"{k}{suffix}={m.constant(s)}"
        for k, s in {
            "weight_ih": (2 * gates, n),
            "weight_hh": (2 * gates, 2),
            "bias_ih": (2 * gates,),
            "bias_hh": (2 * gates,),
        }.items()
    )
    name = kind + ("Cell" if cell else "")
    made = f"{{o}}m = nn.{name}({n}, 2, dtype=cr.float64)\n{{o}}m.load_state_dict(dict({state}))\n"
    first = "" if kind != "LSTM" and cell else "[0]"
    return Line("nn." + name, made + f"{{o}} = {{o}}m({{0}}){first}", (a.name,), (m.var((a.shape[0], 2)),))


def distribution(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1)
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    d = "cr.distributions"
    text, shape = m.one(
        [
            (f"{d}.Normal({{0}}, cr.exp({{1}})).log_prob(cr.sin({{0}}))", a.shape),
            (f"{d}.StudentT(3 + cr.exp({{1}}), {{0}}, cr.cosh({{1}})).log_prob({{1}})", a.shape),
            (f"{d}.Beta(cr.exp({{0}}), cr.cosh({{1}})).log_prob(cr.sigmoid({{1}}))", a.shape),
            (f"{d}.Categorical(logits={{0}}).entropy()", a.shape[:-1]),
            (
                f"{d}.kl_divergence({d}.Normal({{0}}, cr.exp({{1}})), {d}.Normal({{1}}, 1 + {{0}} * {{0}}))",
                a.shape,
            ),
            (f"{d}.Independent({d}.Laplace({{0}} + 1.3, cr.exp({{1}})), 1).log_prob({{0}} - 1.1)", a.shape[:-1]),
        ]
    )
    return Line("distributions", "{o} = " + text, (a.name, b.name), (m.var(shape),))


AROUND: list[Make] = [numpy, numpy, recurrent, distribution]
