"""Statements that write: in place, through views, by index, with out=, into tensors that were captured."""

from __future__ import annotations

from .maker import Make, Maker
from .ops import broadcast
from .program import Line, Var


def _target(m: Maker) -> Var | None:
    return m.pick(m.writable)


def _source(m: Maker, w: Var) -> tuple[str, tuple[str, ...]]:
    """What may be written to w: an expression, and its arguments after w. Never memory that w shares."""
    b = m.pick(lambda v: broadcast(v.shape, w.shape) == w.shape)
    if b is None or m.flip(6):
        return m.constant(w.shape), ()
    return ("({1} * 0.7)" if b.root == w.root else m.one(["{1}", "cr.sin({1})", "({1} + 0.3)"])), (b.name,)


def _line(kind: str, text: str, w: Var, args: tuple[str, ...] = (), judge: str | None = None) -> Line:
    return Line(kind, text, (w.name, *args), judge=judge, marks=frozenset({"write"}))


def in_place(m: Maker) -> Line | None:
    w = _target(m)
    if w is None:
        return None
    text = m.one(
        [
            "{0}.sin_()",
            "{0}.tanh_()",
            "{0}.mul_(0.7)",
            "{0}.add_(0.4)",
            "{0}.neg_()",
            "{0}.sigmoid_()",
            "{0}.exp_().mul_(0.4)",
            "{0}.clamp_(-0.9123, 0.8234)",
            "{0}.cumsum_(0)" if w.shape else "{0}.atan_()",
            "{0}.masked_fill_({0} > 0.3117, 0.2)",
            "{0}.relu_()",
        ]
    )
    return _line(text.split("(")[0][3:], text, w)


def in_place_with(m: Maker) -> Line | None:
    w = _target(m)
    if w is None:
        return None
    s, args = _source(m, w)
    # An assignment makes a name local to its function.
    signs = ["{0} += {s}", "{0} *= {s}"] if w in m.scopes[-1].vars else ["{0}.sub_({s})", "{0}.copy_({s})"]
    text = m.one(
        [
            *signs,
            "{0}.add_({s})",
            "{0}.mul_({s})",
            "{0}.sub_({s}, alpha=0.5)",
            "{0}.copy_({s})",
            "{0}.copy_({s})",
            "{0}[...] = {s}",
            "{0}.addcmul_({s}, {s}, value=0.3)",
            "{0}.lerp_({s}, 0.3)",
            "{0}.div_(2 + cr.cos({s}))",
            "{0}.atan2_(1.5 + cr.sin({s}))",
        ]
    )
    return _line(text.split("(")[0][3:], text.replace("{s}", s), w, args)


def by_index(m: Maker) -> Line | None:
    """A part of the target: a row, a slice, places in a list, a mask."""
    w = m.pick(lambda v: m.writable(v) and len(v.shape) >= 1)
    if w is None:
        return None
    n = w.shape[0]
    i = m.choose(n)
    index, shape = m.one(
        [
            (f"{i}", w.shape[1:]),
            (f"{i}:", (n - i, *w.shape[1:])),
            ("::2", ((n + 1) // 2, *w.shape[1:])),
            (f"..., {m.choose(w.shape[-1])}", w.shape[:-1]),
            (f"cr.tensor([{i}])", (1, *w.shape[1:])),
            (f"{[i]}", (1, *w.shape[1:])),
            (f"cr.tensor({[k == i for k in range(n)]})", (1, *w.shape[1:])),
            (f"{i - n}", w.shape[1:]),
        ]
    )
    s, args = _source(m, Var("", tuple(shape), w.root))
    part = f"{{0}}[{index}]"
    text = m.one(
        [
            f"{part} = {s}",
            f"{part} = {s}",
            f"{part} += {s}",
            f"{part} *= {s}",
            f"{part} = 0.6",
            f"{part}.mul_({s})",
            f"{part}.copy_({s})",
            f"{part}.zero_()",
        ]
    )
    return _line("setitem", text, w, args)


def rows_in_place(m: Maker) -> Line | None:
    w = m.pick(lambda v: m.writable(v) and len(v.shape) >= 1)
    if w is None:
        return None
    i = m.choose(w.shape[0])
    index = f"cr.tensor([{i}])"
    s, args = _source(m, Var("", (1, *w.shape[1:]), w.root))
    if not args:
        s = m.constant((1, *w.shape[1:]))
    else:
        s = f"{s}.expand{(1, *w.shape[1:])}"
    text = m.one(
        [
            f"{{0}}.index_add_(0, {index}, {s})",
            f"{{0}}.index_copy_(0, {index}, {s})",
            f"{{0}}.index_put_(({index},), {s})",
            f"{{0}}.index_put_(({index},), {s}, accumulate=True)",
            f"{{0}}.index_fill_(0, {index}, 0.3)",
            f"{{0}}.scatter_add_(0, cr.tensor({_full(w, i)}), {s})",
            f"{{0}}.scatter_(0, cr.tensor({_full(w, i)}), {s})",
        ]
    )
    return _line(text.split("(")[0][3:], text, w, args)


def _full(w: Var, i: int) -> object:
    index: object = i
    for n in reversed((1, *w.shape[1:])):
        index = [index] * n
    return index


def out(m: Maker) -> Line | None:
    """out= a tensor, a part of it, its transpose: fresh, or one with a history."""
    a = m.pick()
    w = a and m.pick(lambda v: m.writable(v) and v.shape == a.shape and v.root != a.root) if m.flip() else None
    if a is None:
        return None
    call, plain = m.one(
        [
            ("cr.sin({s}, out={w})", "cr.sin({s})"),
            ("cr.add({s}, 0.5, out={w})", "{s} + 0.5"),
            ("cr.mul({s}, {s}, out={w})", "{s} * {s}"),
            ("cr.tanh({s}, out={w})", "cr.tanh({s})"),
            ("cr.cumsum({s}, 0, out={w})", "cr.cumsum({s}, 0)") if a.shape else ("cr.neg({s}, out={w})", "-{s}"),
        ]
    )
    part = ""
    if len(a.shape) == 2 and m.flip():
        part = ".mT"
    elif a.shape and m.flip():
        part = f"[..., {m.choose(a.shape[-1])}:]"
    source, fixed = ("{0}.detach()", "cut({0})") if m.flip(3) else ("{0}", "{0}")
    marks = frozenset({"write", "cut"} if "cut" in fixed else {"write"})
    place, start = ("{1}", "") if w is not None else ("{o}", f"{{o}} = cr.zeros({a.shape}, dtype=cr.float64)\n")
    text = start + call.replace("{s}", source + part).replace("{w}", place + part)
    judge = start + place + part + f".copy_({plain.replace('{s}', fixed + part)})"
    if w is not None:
        return Line("out=", text, (a.name, w.name), judge=judge, marks=marks)
    return Line("out=", text, (a.name,), (m.var(a.shape),), judge=judge, marks=marks - {"write"})


def through_view(m: Maker) -> Line | None:
    """A view taken and written at once."""
    w = m.pick(lambda v: m.writable(v) and len(v.shape) >= 1)
    if w is None:
        return None
    n = w.shape[0]
    i = m.choose(n)
    options = [
        (f"{{0}}.select(0, {i})", w.shape[1:], None),
        (f"{{0}}.narrow(0, {i}, 1)", (1, *w.shape[1:]), None),
        ("{0}.transpose(0, -1)", (w.shape[-1], *w.shape[1:-1], w.shape[0]) if len(w.shape) > 1 else w.shape, None),
        (f"{{0}}.unbind(0)[{i}]", w.shape[1:], f"{{0}}.select(0, {i})"),
        (f"{{0}}.split(1)[{i}]", (1, *w.shape[1:]), f"{{0}}.narrow(0, {i}, 1)"),
        ("{0}.unsqueeze(0)", (1, *w.shape), None),
    ]
    if len(w.shape) == 2:
        options.append(("{0}.diagonal()", (min(w.shape),), None))
    view, shape, plain = m.one(options)
    s, args = _source(m, Var("", tuple(shape), w.root))
    tail = m.one([f".mul_({s})", f".copy_({s})", f".add_({s})", ".sin_()", ".mul_(0.6)"])
    return _line("view" + tail.split("(")[0], view + tail, w, args, judge=plain and plain + tail)


def buffer(m: Maker) -> Line | None:
    """Fresh memory without history, to be written to later."""
    a = m.pick()
    if a is None:
        return None
    text = m.one(
        [
            f"cr.zeros({a.shape}, dtype=cr.float64)",
            f"cr.ones({a.shape}, dtype=cr.float64)",
            "cr.zeros_like({0})",
            "cr.empty_like({0}).fill_(0.3)",
            "{0}.new_zeros({0}.shape)",
        ]
    )
    return Line("buffer", "{o} = " + text, (a.name,), (m.var(a.shape),), marks=frozenset({"const"}))


def strided_write(m: Maker) -> Line | None:
    """A write through as_strided to fresh memory."""
    a = m.pick(lambda v: len(v.shape) == 1 and v.shape[0] >= 2)
    if a is None:
        return None
    n = a.shape[0]
    text = m.one(
        [
            f"{{o}}.as_strided(({n - 1},), (1,), 1).mul_(0.6)",
            "{o}.as_strided((1,), (1,), 1).copy_({0}[:1])",
            "{o}.as_strided((2,), (1,), 0).sin_()",
            "{o}.unfold(0, 1, 1).mul_(0.7)",
        ]
    )
    return Line("as_strided write", "{o} = {0}.clone()\n" + text, (a.name,), (m.var(a.shape),))


WRITES: list[Make] = [
    in_place,
    in_place_with,
    in_place_with,
    by_index,
    by_index,
    rows_in_place,
    out,
    through_view,
    through_view,
    buffer,
    strided_write,
]
