"""Statements that hold lines of their own: transforms of functions, checkpoint, dual levels, grad modes."""

from __future__ import annotations

from .maker import MAX_ELEMENTS, Make, Maker
from .program import Line, Shape, Var


def _numel(shape: Shape) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def _tangent(m: Maker, a: Var) -> tuple[str, tuple[str, ...]]:
    """A tangent for a: a live tensor of its shape, or a constant."""
    t = m.pick(lambda v: v.shape == a.shape)
    return ("{1}", (t.name,)) if t is not None and not m.flip(3) else (m.constant(a.shape), ())


def gradient(m: Maker) -> Line | None:
    a = m.pick()
    made = a and m.function([a.shape], scalar=True, writes_out=True)
    if a is None or not made:
        return None
    form = m.choose(5)
    fn = made[0]
    if form <= 1:
        return Line("grad", "{o} = func.grad({f})({0})", (a.name,), (m.var(a.shape, readonly=True),), fn)
    if form == 2:
        return Line(
            "grad_and_value",
            "{o}, {p} = func.grad_and_value({f})({0})",
            (a.name,),
            (m.var(a.shape, readonly=True), m.var((), readonly=True)),
            fn,
        )
    if form == 3:
        return Line(
            "vjp",
            "{p}, {o}pull = func.vjp({f}, {0})\n({o},) = {o}pull(cr.sin({p}))",
            (a.name,),
            (m.var(a.shape, readonly=True), m.var((), readonly=True)),
            fn,
        )
    return Line(
        "grad has_aux",
        "{o}, {p} = func.grad(lambda u: ({f}(u), cr.sin(u)), has_aux=True)({0})",
        (a.name,),
        (m.var(a.shape, readonly=True), m.var(a.shape, readonly=True)),
        fn,
    )


def gradient_of_two(m: Maker) -> Line | None:
    a, b = m.pick(), m.pick()
    made = a and b and m.function([a.shape, b.shape], scalar=True, writes_out=True)
    if a is None or b is None or not made:
        return None
    return Line(
        "grad argnums",
        "{o}, {p} = func.grad({f}, argnums=(0, 1))({0}, {1})",
        (a.name, b.name),
        (m.var(a.shape, readonly=True), m.var(b.shape, readonly=True)),
        made[0],
    )


def pullback(m: Maker) -> Line | None:
    a = m.pick()
    made = a and m.function([a.shape], writes_out=True)
    if a is None or not made:
        return None
    g = m.one(["cr.sin({p})", "cr.ones_like({p})", "{p}"])
    return Line(
        "vjp",
        "{p}, {o}pull = func.vjp({f}, {0})\n({o},) = {o}pull(" + g + ")",
        (a.name,),
        (m.var(a.shape, readonly=True), m.var(made[1], readonly=True)),
        made[0],
    )


def push(m: Maker) -> Line | None:
    a = m.pick()
    made = a and m.function([a.shape], writes_out=True)
    if a is None or not made:
        return None
    t, args = _tangent(m, a)
    fn, shape = made
    kind, text, judge = m.one(
        [
            ("jvp", "{o}, {p} = func.jvp({f}, ({0},), ({t},))", None),
            (
                "linearize",
                "{o}t = {t} * 1.0\n{o}, {o}push = func.linearize({f}, {0})\n{p} = {o}push({o}t)",
                "{o}, {p} = func.jvp({f}, ({0},), ({t},))",
            ),
            (
                "forward_ad",
                "with forward_ad.dual_level():\n    {o}, {p} = forward_ad.unpack_dual({f}(forward_ad.make_dual({0}, {t})))\n"
                "{p} = cr.zeros_like({o}) if {p} is None else {p}",
                "{o}, {p} = func.jvp({f}, ({0},), ({t},))",
            ),
        ]
    )
    outs = (m.var(shape, readonly=True), m.var(shape, readonly=True))
    return Line(kind, text.replace("{t}", t), (a.name, *args), outs, fn, judge=judge and judge.replace("{t}", t))


def vmap(m: Maker) -> Line | None:
    """Over rows, columns, or pairs of rows; other tensors are captured."""
    a = m.pick(lambda v: 1 <= len(v.shape) <= 3)
    if a is None:
        return None
    d = m.choose(len(a.shape))
    n = a.shape[d]
    row = a.shape[:d] + a.shape[d + 1 :]
    b = m.pick(lambda v: len(v.shape) >= 1 and v.shape[0] == n) if m.flip() else None
    c = m.pick(lambda v: _numel(v.shape) <= 6) if b is None and m.flip(3) else None
    params, args, dims = [row], [a.name], [str(d)]
    if b is not None:
        params, args, dims = [row, b.shape[1:]], [a.name, b.name], [str(d), "0"]
    if c is not None:
        params, args, dims = [row, c.shape], [a.name, c.name], [str(d), "None"]
    given = ", ".join("{" + str(k) + "}" for k in range(len(args)))
    where = "" if set(dims) == {"0"} else f", in_dims=({', '.join(dims)},)"
    if m.flip(4) and b is None:
        made = m.function(params, scalar=True)
        if not made:
            return None
        inner, shape, kind = m.one([("func.grad({f})", row, "vmap(grad)"), ("func.hessian({f})", row + row, "vmap(hessian)") if _numel(row) <= 3
                              else ("func.grad({f})", row, "vmap(grad)")])  # fmt: skip
        fn = made[0]
    else:
        made = m.function(params, want=lambda v: n * _numel(v.shape) <= MAX_ELEMENTS)
        if not made:
            return None
        (fn, shape), inner, kind = made, "{f}", "vmap"
    if n * _numel(shape) > 2 * MAX_ELEMENTS:
        return None
    if shape and m.flip(4):
        where += ", out_dims=-1"
        out = (*shape, n)
    else:
        out = (n, *shape)
    return Line(kind, f"{{o}} = func.vmap({inner}{where})({given})", tuple(args), (m.var(out, readonly=True),), fn)


def jacobian(m: Maker) -> Line | None:
    a = m.pick(lambda v: _numel(v.shape) <= 4 and len(v.shape) <= 2)
    if a is None:
        return None
    if m.flip(3):
        made = m.function([a.shape], scalar=True)
        if not made:
            return None
        text = m.one(
            [
                "func.hessian({f})",
                "func.jacrev(func.jacrev({f}))",
                "func.jacfwd(func.grad({f}))",
                "func.jacrev(func.jacfwd({f}))",
                "func.jacfwd(func.jacfwd({f}))",
            ]
        )
        shape = a.shape + a.shape
        return Line(text, "{o} = " + text + "({0})", (a.name,), (m.var(shape, readonly=True),), made[0])
    made = m.function([a.shape], want=lambda v: _numel(v.shape) <= 4 and len(v.shape) <= 2)
    if not made:
        return None
    text = m.one(["func.jacrev({f})", "func.jacfwd({f})"])
    return Line(text, "{o} = " + text + "({0})", (a.name,), (m.var(made[1] + a.shape, readonly=True),), made[0])


def checkpoint(m: Maker) -> Line | None:
    a = m.pick()
    b = m.pick() if m.flip() else None
    params = [a.shape] + ([b.shape] if b else []) if a else []
    made = a and m.function(params, transform=False)
    if a is None or not made:
        return None
    args = (a.name, b.name) if b else (a.name,)
    given = ", ".join("{" + str(k) + "}" for k in range(len(args)))
    return Line(
        "checkpoint", f"{{o}} = checkpoint({{f}}, {given}, use_reentrant=False)", args, (m.var(made[1]),), made[0]
    )


def call(m: Maker) -> Line | None:
    """The function as it stands: what transforms are compared with."""
    a = m.pick()
    made = a and m.function([a.shape], transform=False)
    if a is None or not made:
        return None
    return Line("call", "{o} = {f}({0})", (a.name,), (m.var(made[1]),), made[0])


def decorated(m: Maker) -> Line | None:
    """A function that computes without history."""
    if m.no_grad:
        return None
    a = m.pick()
    m.no_grad, before, m.before_no_grad = True, m.before_no_grad, m.counter
    made = a and m.function([a.shape], transform=False)
    m.no_grad, m.before_no_grad = False, before
    if a is None or not made:
        return None
    text = m.one(["cr.no_grad()({f})({0})", "cr.set_grad_enabled(False)({f})({0})"])
    return Line("no_grad decorator", "{o} = " + text, (a.name,), (m.var(made[1], readonly=True),), made[0],
                judge="{o} = ng({f}({0}))", marks=frozenset({"cut", "const"}))  # fmt: skip


def composed(m: Maker) -> Line | None:
    """Transforms of transforms in one expression."""
    a = m.pick(lambda v: len(v.shape) == 2 and _numel(v.shape) <= 6)
    made = a and m.function([a.shape[1:]], scalar=True)
    if a is None or not made:
        return None
    n, k = a.shape
    text, shape = m.one(
        [
            ("func.jacrev(func.vmap({f}))({0})", (n, n, k)),
            ("func.jacfwd(func.vmap({f}))({0})", (n, n, k)),
            ("func.grad(lambda u: func.vmap({f})(u).sum())({0})", (n, k)),
            ("func.vmap(func.jacrev(func.grad({f})))({0})", (n, k, k)),
            ("func.vmap(func.jacfwd(func.grad({f})))({0})", (n, k, k)),
            ("func.vmap({f}, chunk_size=1)({0})", (n,)),
            ("func.jvp(func.vmap({f}), ({0},), ({0},))[1]", (n,)),
            ("func.vmap(lambda u: func.jvp(func.grad({f}), (u,), (u,))[1])({0})", (n, k)),
            ("func.vmap(lambda u: func.vjp({f}, u)[1](u.sum())[0])({0})", (n, k)),
            ("checkpoint(func.vmap({f}), {0}, use_reentrant=False)", (n,)),
            ("func.vmap(lambda u: checkpoint({f}, u, use_reentrant=False))({0})", (n,)),
            ("func.vmap(func.grad(lambda u: checkpoint({f}, u, use_reentrant=False)))({0})", (n, k)),
        ]
    )
    if _numel(shape) > 2 * MAX_ELEMENTS:
        return None
    return Line(
        text.replace("{f}", "f").replace("{0}", "a"),
        "{o} = " + text,
        (a.name,),
        (m.var(shape, readonly=True),),
        made[0],
    )


TRANSFORMS: list[Make] = [
    gradient,
    gradient,
    gradient_of_two,
    pullback,
    push,
    push,
    push,
    vmap,
    vmap,
    vmap,
    jacobian,
    jacobian,
    checkpoint,
    checkpoint,
    call,
    composed,
    composed,
    decorated,
]


# -- grad modes -------------------------------------------------------------------------------------------------------


def mode(m: Maker) -> Line | None:
    """What is computed inside has no derivative, save for transforms that start inside."""
    if m.no_grad:
        return None
    text = m.one(
        ["with cr.no_grad():", "with cr.no_grad():", "with cr.set_grad_enabled(False):", "with cr.inference_mode():"]
    )
    m.no_grad, m.before_no_grad = True, m.counter
    inner = list(m.block(1 + m.choose(2)))
    m.no_grad, m.before_no_grad = False, -1
    # What was made inside may be a view of something outside, without its history: nobody writes to either.
    for line in inner:
        for v in line.outs:
            m.readonly.add(v.root)
    if m.flip() and "inference" not in text:
        m.depth += 1
        again = m.line()
        m.depth -= 1
        if again is not None:
            inner.append(Line("enable_grad", "with cr.enable_grad():", body=(again,), marks=frozenset({"enable_grad"})))
    inner = [ln for ln in inner if ln]
    if not inner:
        return None
    return Line("no_grad", text, body=tuple(inner), marks=frozenset({"no_grad", "cut"}))


MODES: list[Make] = [mode]
