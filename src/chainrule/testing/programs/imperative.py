"""Statements of the imperative style: leaves, backward(), autograd.grad, hooks; and what cuts a derivative off.

`cut` in the judge's text: no derivative at all. `ng`: none in reverse mode, since a gradient without create_graph has no history.
"""

from __future__ import annotations

from .maker import Make, Maker
from .program import Line

CUT = frozenset({"cut", "const"})


def detach(m: Maker) -> Line | None:
    a = m.pick()
    if a is None:
        return None
    text = m.one(["{0}.detach()", "{0}.detach().clone()", "{0}.data", "cr.sin({0}.detach())"])
    out = m.var(a.shape, readonly="clone" not in text and "sin" not in text)
    if out.root in m.readonly:
        m.readonly.add(a.root)  # the judge notes a value once: nobody writes to it later
    judge = text.replace("{0}.detach()", "cut({0})").replace("{0}.data", "cut({0})")
    return Line("detach", "{o} = " + text, (a.name,), (out,), judge="{o} = " + judge, marks=CUT)


def straight_through(m: Maker) -> Line | None:
    a = m.pick()
    if a is None:
        return None
    text, judge = "{o} = {0} + (cr.sin({0}) - {0}).detach()", "{o} = {0} + cut(cr.sin({0}) - {0})"
    return Line("straight through", text, (a.name,), (m.var(a.shape),), judge=judge, marks=frozenset({"cut"}))


def leaf(m: Maker) -> Line | None:
    """A leaf made inside: a constant to everything around."""
    a = m.pick()
    if a is None:
        return None
    text, judge = m.one(
        [
            (f"cr.ones({a.shape}, dtype=cr.float64, requires_grad=True)", f"cr.ones({a.shape}, dtype=cr.float64)"),
            ("nn.Parameter(" + m.constant(a.shape) + ")", None),
            ("{0}.detach().requires_grad_()", "cut({0})"),
            ("{0}.detach().clone().requires_grad_()", "cut({0}).clone()"),
            ("cr.full_like({0}, 0.8).requires_grad_()", "cr.full_like({0}, 0.8)"),
        ]
    )
    judge = judge or text[len("nn.Parameter(") : -1]
    out = m.var(a.shape, readonly=True)
    if "clone" not in text and "detach" in text:
        m.readonly.add(a.root)
    return Line(
        "leaf",
        "{o} = " + text,
        (a.name,),
        (out,),
        judge="{o} = " + judge,
        marks=CUT if "cut" in judge else frozenset({"const"}),
    )


CUTS: list[Make] = [detach, detach, straight_through, leaf, leaf]


# -- derivatives taken inside -----------------------------------------------------------------------------------------

LOSS = [
    "(cr.sin({w}) * {1}).sum()",
    "({w} * {w} * {1}).sum()",
    "(cr.tanh({w} + {1})).sum()",
    "cr.exp(-({w} * {1}).sum() ** 2)",
]


def inner_gradient(m: Maker) -> Line | None:
    """A leaf, a loss, and its gradient with respect to the leaf."""
    if m.no_grad:
        return None
    a = m.pick()
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    loss = m.one(LOSS).replace("{w}", "{o}w")
    start = m.one(
        [
            "{0}.detach().requires_grad_()",
            "{0}.detach().clone().requires_grad_()",
            "cr.full_like({0}, 0.7).requires_grad_()",
            "nn.Parameter({0}.detach())",
        ]
    )
    form = m.choose(7)
    exact = f"({{o}},) = autograd.grad({loss}, {{o}}w, create_graph=True)"
    kind, marks = "autograd.grad", {"imp"}
    if form == 0:
        text = f"({{o}},) = autograd.grad({loss}, {{o}}w)"
    elif form == 1:
        text, kind, marks = exact, "autograd.grad create_graph", set()
    elif form == 2:
        text, kind = f"{loss}.backward(inputs=[{{o}}w])\n{{o}} = {{o}}w.grad", "backward"
    elif form == 3:
        loss = loss.replace("{1}", "{1}.detach()")
        text, kind = f"{loss}.backward()\n{{o}} = {{o}}w.grad", "backward"
        exact = f"({{o}},) = autograd.grad({loss.replace('{1}.detach()', 'cut({1})')}, {{o}}w, create_graph=True)"
        marks |= {"cut"}
    elif form == 4:
        scaled = loss.replace("{o}w", "{o}h")
        text = f"{{o}}h = cr.sin({{o}}w)\n{{o}}h.register_hook(lambda g: 2 * g)\n({{o}},) = autograd.grad({scaled}, {{o}}w)"
        exact = (
            f"{{o}}h = cr.sin({{o}}w)\n({{o}},) = autograd.grad({scaled}, {{o}}w, create_graph=True)\n{{o}} = 2 * {{o}}"
        )
        kind = "hook"
    elif form == 5:
        other, head = loss.replace("{o}w", "{o}h"), "{o}h = cr.sin({o}w)\n"
        text = (
            f"{head}{{o}}h.retain_grad()\n{other}.backward(inputs=[{{o}}w, {{o}}h])\n{{o}} = {{o}}h.grad + {{o}}w.grad"
        )
        exact = (
            f"{head}{{o}}, {{o}}g = autograd.grad({other}, ({{o}}h, {{o}}w), create_graph=True)\n{{o}} = {{o}} + {{o}}g"
        )
        kind = "retain_grad"
    else:
        text = f"({{o}}g,) = autograd.grad({loss}, {{o}}w, create_graph=True)\n({{o}},) = autograd.grad((cr.sin({{o}}g) * {{o}}w).sum(), {{o}}w)"
        exact = text[:-1] + ", create_graph=True)"
        kind = "autograd.grad twice"
    if "detach" in start:
        marks |= {"cut"}
    if "clone" not in start and "detach" in start:
        m.readonly.add(a.root)
    judge_start = (
        "cr.full_like({0}, 0.7).requires_grad_()" if "full_like" in start else "cut({0}).clone().requires_grad_()"
    )
    if "imp" in marks:
        marks |= {"const"}
        exact += "\n{o} = ng({o})"
    return Line(kind, f"{{o}}w = {start}\n{text}", (a.name, b.name), (m.var(a.shape),), judge=f"{{o}}w = {judge_start}\n{exact}",
                marks=frozenset(marks))  # fmt: skip


def observer(m: Maker) -> Line | None:
    """A hook that looks on and changes nothing."""
    if m.no_grad:
        return None
    a = m.pick()
    text = m.one(["register_hook(lambda g: None)", "register_hook(lambda g: g * 1.0)", "retain_grad()"])
    return None if a is None else Line("observer", "if {0}.requires_grad: {0}." + text, (a.name,), judge="pass")


def data_write(m: Maker) -> Line | None:
    """A write that no derivative sees: the value is new, the derivative the old one."""
    w = m.pick(m.writable)
    if w is None or m.no_grad:
        return None
    text, new, word = m.one(
        [
            ("with cr.no_grad():\n    {0}.mul_(0.7)", "0.7 * {0}", "ng"),
            ("{0}.data.mul_(0.7)", "0.7 * {0}", "cut"),
            ("with cr.no_grad():\n    {0}.add_(0.3)", "{0} + 0.3", "ng"),
            ("{0}.detach().sin_()", "cr.sin({0})", "cut"),
        ]
    )
    return Line(
        "data write", text, (w.name,), judge=f"{{0}}.add_({word}({new} - {{0}}))", marks=frozenset({"cut", "write"})
    )


def training(m: Maker) -> Line | None:
    """A step of gradient descent on a leaf, by hand or by an optimizer: a write without history."""
    if m.no_grad:
        return None
    a = m.pick()
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    loss = m.one(LOSS).replace("{w}", "{o}w")
    start = m.constant(a.shape)
    text = f"{{o}}w = nn.Parameter({start})\n{loss}.backward(inputs=[{{o}}w])\n" + m.one(
        [
            "with cr.no_grad():\n    {o}w -= 0.1 * {o}w.grad\n",
            "cr.optim.SGD([{o}w], lr=0.1).step()\n",
            "{o}w.data.sub_(0.1 * {o}w.grad)\n",
        ]
    )
    judge = f"{{o}}w = {start}.requires_grad_()\n({{o}}g,) = autograd.grad({loss}, {{o}}w, create_graph=True)\n"
    # Through .data no tangent is written either.
    word = "cut" if ".data" in text else "ng"
    judge += f"{{o}}w = {start} - {word}(0.1 * {{o}}g)\n"
    use = "{o} = cr.sin({o}w) * {1}"
    return Line(
        "training", text + use, (a.name, b.name), (m.var(a.shape),), judge=judge + use, marks=frozenset({"cut"})
    )


INNER: list[Make] = [inner_gradient, inner_gradient, inner_gradient, inner_gradient, observer, data_write, training]
