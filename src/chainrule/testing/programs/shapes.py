"""Statements of shape: views, indexing, gathering, sorting, joining, and small nested tensors."""

from __future__ import annotations

from .maker import MAX_ELEMENTS, Make, Maker
from .ops import ramp
from .program import Line, Shape


def view(m: Maker) -> Line | None:
    """A view that shares the memory of its base."""
    a = m.pick()
    if a is None:
        return None
    n = len(a.shape)
    if n == 0:
        text, shape = m.one([("{0}.unsqueeze(0)", (1,)), ("{0}.view(1, 1)", (1, 1)), ("{0}[None]", (1,))])
        return Line("view", "{o} = " + text, (a.name,), (m.var(shape, a),))
    d = m.dim(a)
    at, size = d % n, a.shape[d]
    before, after = a.shape[:at], a.shape[at + 1 :]
    e = m.dim(a)
    swapped = list(a.shape)
    swapped[at], swapped[e] = swapped[e], swapped[at]
    i = m.choose(size)
    options: list[tuple[str, Shape]] = [
        (f"{{0}}.select({d}, {i})", before + after),
        (f"{{0}}[{':, ' * at}{i - size}]", before + after),
        (f"{{0}}[{':, ' * at}{i}:]", before + (size - i,) + after),
        ("{0}[..., ::2]", a.shape[:-1] + ((a.shape[-1] + 1) // 2,)),
        (f"{{0}}.narrow({d}, {i}, {size - i})", before + (size - i,) + after),
        (f"{{0}}.transpose({d}, {e})", tuple(swapped)),
        (f"{{0}}.movedim({d}, 0)", (size,) + before + after),
        (
            f"{{0}}.unsqueeze({d})",
            a.shape[: d % (n + 1)] + (1,) + a.shape[d % (n + 1) :] if d >= 0 else _unsqueeze(a.shape, d),
        ),
        ("{0}.reshape(-1)", (_numel(a.shape),)),
        (f"{{0}}.unfold({d}, 1, 1)", before + (size,) + after + (1,)),
        # Of a row, flatten is the row itself, and not a view of it.
        ("{0}.flatten()" if n > 1 else "{0}.view(-1)", (_numel(a.shape),)),
        ("{0}.permute(" + ", ".join(str(k) for k in reversed(range(n))) + ")", a.shape[::-1]),
    ]
    judge = None
    if n >= 2:
        options += [
            ("{0}.diagonal()", a.shape[2:] + (min(a.shape[:2]),)),
            ("{0}.mT", (*a.shape[:-2], a.shape[-1], a.shape[-2])),
        ]
    pieces = [
        (f"{{0}}.unbind({d})[{i}]", f"{{0}}.select({d}, {i})", before + after),
        (f"{{0}}.split(1, {d})[{i}]", f"{{0}}.narrow({d}, {i}, 1)", before + (1,) + after),
        (f"{{0}}.chunk(1, {d})[0]", f"{{0}}.narrow({d}, 0, {size})", a.shape),
    ]
    k = m.choose(len(options) + len(pieces))
    if k < len(options):
        text, shape = options[k]
    else:
        text, judge, shape = pieces[k - len(options)]
    kind = text.split("(")[0].replace("{0}", "")
    return Line(kind, "{o} = " + text, (a.name,), (m.var(shape, a),), judge=judge and "{o} = " + judge)


def _numel(shape: Shape) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


def _unsqueeze(shape: Shape, d: int) -> Shape:
    at = d + len(shape) + 1
    return shape[:at] + (1,) + shape[at:]


def expand(m: Maker) -> Line | None:
    """Repeated elements: no place to write to."""
    a = m.pick(lambda v: 2 * _numel(v.shape) <= MAX_ELEMENTS and len(v.shape) < 3)
    if a is None:
        return None
    text = m.one(
        [
            "{0}.expand(2, *{0}.shape)",
            "cr.broadcast_to({0}, (2, *{0}.shape))",
            "{0}.repeat(2, *[1] * {0}.ndim)",
            "cr.stack([{0}, {0} * 0.5])",
        ]
    )
    fresh = "repeat" in text or "stack" in text
    out = m.var((2, *a.shape), None if fresh else a)
    if not fresh:
        m.overlapping.add(out.name)
    return Line(text.split("(")[0].replace("{0}", ""), "{o} = " + text, (a.name,), (out,))


VIEWS: list[Make] = [view, view, view, expand]


# -- indexing ---------------------------------------------------------------------------------------------------------


def _ints(m: Maker, count: int, size: int) -> str:
    return f"cr.tensor({[m.choose(size) for _ in range(count)]})"


def rows(m: Maker) -> Line | None:
    """Whole slices picked by a list of numbers."""
    a = m.pick(lambda v: len(v.shape) > 0 and v.shape[0] > 0)
    if a is None:
        return None
    k = 1 + m.choose(3)
    index = _ints(m, k, a.shape[0])
    if k * _numel(a.shape[1:]) > MAX_ELEMENTS:
        return None
    text = m.one([f"{{0}}[{index}]", f"cr.index_select({{0}}, 0, {index})", f"{{0}}.index_select(0, {index})"])
    if len(a.shape) == 1:
        text = m.one(
            [text, f"cr.take({{0}}, {index})", f"cr.gather({{0}}, 0, {index})", f"cr.take_along_dim({{0}}, {index}, 0)"]
        )
    return Line(
        "rows " + text.split("(")[0].replace("{0}", ""), "{o} = " + text, (a.name,), (m.var((k, *a.shape[1:])),)
    )


def gather(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) == 2)
    if a is None:
        return None
    d = m.choose(2)
    index = "cr.tensor(" + str([[m.choose(a.shape[d]) for _ in range(a.shape[1])] for _ in range(a.shape[0])]) + ")"
    text = m.one(
        [
            f"cr.gather({{0}}, {d}, {index})",
            f"cr.take_along_dim({{0}}, {index}, {d})",
            f"cr.scatter_add(0.3 * {{0}}, {d}, {index}, {{0}})",
            f"{{0}}.scatter_reduce({d}, {index}, {{0}} * 0.5, 'sum')",
            f"{{0}}.scatter_reduce({d}, {index}, {{0}} * 0.5, 'mean')",
        ]
    )
    return Line(text.split("(")[0].replace("{0}", ""), "{o} = " + text, (a.name,), (m.var(a.shape),))


def index_write(m: Maker) -> Line | None:
    """A copy with rows added or replaced."""
    a = m.pick(lambda v: len(v.shape) >= 1)
    if a is None:
        return None
    i = m.choose(a.shape[0])
    index = f"cr.tensor([{i}])"
    row = f"{{0}}[{m.choose(a.shape[0])}:][:1]"
    text = m.one(
        [
            f"cr.index_add({{0}}, 0, {index}, {row})",
            f"cr.index_copy({{0}}, 0, {index}, {row} * 0.5)",
            f"{{0}}.index_put(({index},), {row})",
            f"cr.index_fill({{0}}, 0, {index}, 0.7)",
            f"cr.select_scatter({{0}}, {{0}}[0] * 0.5, 0, {i})",
            f"cr.slice_scatter({{0}}, {{0}}[:1] * 0.5, 0, {i}, {i + 1})",
            "cr.masked_fill({0}, {0} > 0.2317, 0.5)",
        ]
    )
    return Line(text.split("(")[0].replace("{0}", ""), "{o} = " + text, (a.name,), (m.var(a.shape),))


def order(m: Maker) -> Line | None:
    """Sorted, or the largest: a ramp keeps equal elements apart."""
    a = m.pick(lambda v: len(v.shape) >= 1)
    if a is None:
        return None
    d = m.dim(a)
    apart = f"{{0}} + {ramp(a)}"
    head = list(a.shape)
    head[d] = 1
    text, shape = m.one(
        [
            (f"cr.sort({apart}, dim={d}).values", a.shape),
            (f"cr.topk({apart}, 1, dim={d})[0]", tuple(head)),
            (f"cr.kthvalue({apart}, 1, dim={d}, keepdim=True)[0]", tuple(head)),
            (f"cr.cummax({apart}, {d})[0]", a.shape),
            (f"cr.msort({apart})", a.shape),
            (f"cr.gather({{0}}, {d}, cr.argsort({apart}, dim={d}))", a.shape),
            (f"cr.flip({{0}}, ({d},))", a.shape),
            (f"cr.roll({{0}}, 1, {d})", a.shape),
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(shape),))


def strided(m: Maker) -> Line | None:
    """Overlapping windows of fresh memory."""
    a = m.pick(lambda v: 2 <= _numel(v.shape) <= 9)
    if a is None:
        return None
    n = _numel(a.shape)
    text, shape = m.one(
        [
            (f"{{0}}.reshape(-1).clone().as_strided(({n - 1}, 2), (1, 1))", (n - 1, 2)),
            (f"cr.as_strided({{0}}.reshape(-1).clone(), ({n // 2}, 1), (2, 1), 1)", (n // 2, 1)),
            ("{0}.reshape(-1).clone().unfold(0, 2, 1)", (n - 1, 2)),
        ]
    )
    return Line("as_strided", "{o} = " + text, (a.name,), (m.var(shape, readonly=True),))


def join(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1 and 2 * _numel(v.shape) <= MAX_ELEMENTS)
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    d = m.choose(len(a.shape))
    longer = list(a.shape)
    longer[d] *= 2
    padded = (*a.shape[:-1], a.shape[-1] + 2)
    text, shape = m.one(
        [
            (f"cr.cat([{{0}}, {{1}}], {d})", tuple(longer)),
            (f"cr.stack([{{0}}, {{1}}], {d})", (*a.shape[:d], 2, *a.shape[d:])),
            ("F.pad({0} + {1}, (1, 1))", padded),
            (f"cr.repeat_interleave({{0}} * {{1}}, 2, {d})", tuple(longer)),
            ("cr.hstack([{0}, {1}])", tuple(longer) if d == min(1, len(a.shape) - 1) else None),
        ]
    )
    if shape is None:
        return None
    return Line(text.split("(")[0], "{o} = " + text, (a.name, b.name), (m.var(shape),))


def mask(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1 and v.shape[0] >= 2)
    if a is None:
        return None
    keep = [m.choose(2) == 1 for _ in range(a.shape[0])]
    keep[0] = True
    text = m.one([f"{{0}}[cr.tensor({keep})]", f"{{0}}[..., None][cr.tensor({keep}), ..., 0]"])
    return Line("mask", "{o} = " + text, (a.name,), (m.var((sum(keep), *a.shape[1:])),))


INDEX: list[Make] = [rows, gather, index_write, order, order, strided, join, mask]


# -- nested tensors ---------------------------------------------------------------------------------------------------


def nested(m: Maker) -> Line | None:
    """Rows of two lengths through an op, back as one padded tensor."""
    a = m.pick(lambda v: len(v.shape) == 1 and v.shape[0] <= 4)
    b = a and m.pick(lambda v: len(v.shape) == 1 and v.shape[0] <= 4)
    if a is None or b is None:
        return None
    op = m.one(["cr.sin({n})", "{n} * 0.7", "cr.tanh({n})", "{n} + {n}", "{n}.clone()"])
    size = max(a.shape[0], b.shape[0])
    text = (
        "{o}n = cr.nested.as_nested_tensor([{0}, {1}])\n"
        "{o} = cr.nested.to_padded_tensor(" + op.replace("{n}", "{o}n") + ", 0.0)"
    )
    pads = [f"F.pad({op.replace('{n}', '{' + str(k) + '}')}, (0, {size - v.shape[0]}))" for k, v in enumerate((a, b))]
    return Line("nested", text, (a.name, b.name), (m.var((2, size)),), judge=f"{{o}} = cr.stack([{', '.join(pads)}])")


def nested_sum(m: Maker) -> Line | None:
    """Sums of rows of two lengths."""
    a = m.pick(lambda v: len(v.shape) == 1)
    b = a and m.pick(lambda v: len(v.shape) == 1)
    if a is None or b is None:
        return None
    text = "{o}n = cr.nested.as_nested_tensor([{0}, {1}])\n{o} = cr.sin({o}n).unbind()[1] * 0.5"
    return Line("nested", text, (a.name, b.name), (m.var(b.shape),), judge="{o} = cr.sin({1}) * 0.5")


def nested_rows(m: Maker) -> Line | None:
    """Matrices of two heights through an op over their rows."""
    a = m.pick(lambda v: len(v.shape) == 2 and v.shape[1] >= 2)
    b = a and m.pick(lambda v: len(v.shape) == 2 and v.shape[1] == a.shape[1])
    if a is None or b is None:
        return None
    n = a.shape[1]
    op = m.one(
        [
            f"F.layer_norm({{n}}, ({n},), eps=0.1)",
            "F.softmax({n}, -1)",
            f"F.linear({{n}}, {m.constant((2, n))})",
            "cr.tanh({n}) * {n}",
        ]
    )
    size = max(a.shape[0], b.shape[0])
    width = 2 if "linear" in op else n
    text = (
        "{o}n = cr.nested.as_nested_tensor([{0}, {1}])\n"
        "{o} = cr.nested.to_padded_tensor(" + op.replace("{n}", "{o}n") + ", 0.0)"
    )
    pads = [
        f"F.pad({op.replace('{n}', '{' + str(k) + '}')}, (0, 0, 0, {size - v.shape[0]}))" for k, v in enumerate((a, b))
    ]
    return Line(
        "nested rows",
        text,
        (a.name, b.name),
        (m.var((2, size, width)),),
        judge=f"{{o}} = cr.stack([{', '.join(pads)}])",
    )


NESTED: list[Make] = [nested, nested_sum, nested_rows]
