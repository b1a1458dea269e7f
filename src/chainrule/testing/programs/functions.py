"""Statements of user-written ops: autograd.Function in its forms, and custom_op with and without rules."""

from __future__ import annotations

from .maker import Make, Maker
from .program import Line, Var

# name, class body, judge's expression of {0} and {1}; the last says whether a second argument is taken
CLASSES = [
    ("Function ctx", """\
    @staticmethod
    def forward(ctx, a):
        ctx.save_for_backward(a)
        return cr.sin(a)
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * cr.cos(a)""", "cr.sin({0})", 1),
    ("Function setup_context", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return cr.exp(-a * a)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
    @staticmethod
    def backward(ctx, g):
        a, y = ctx.saved_tensors
        return -2 * a * y * g""", "cr.exp(-{0} * {0})", 1),
    ("Function jvp", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a, b):
        return cr.tanh(a) * b
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        y = cr.tanh(a)
        return g * b * (1 - y * y), g * y
    @staticmethod
    def jvp(ctx, ta, tb):
        a, b = ctx.saved_tensors
        y = cr.tanh(a)
        return ta * b * (1 - y * y) + y * tb""", "cr.tanh({0}) * {1}", 2),
    ("Function vmap", """\
    @staticmethod
    def forward(a):
        return cr.sin(a) * 0.5
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g):
        (a,) = ctx.saved_tensors
        return g * cr.cos(a) * 0.5
    @staticmethod
    def vmap(info, in_dims, a):
        return {o}F.apply(a), in_dims[0]""", "cr.sin({0}) * 0.5", 1),
    ("Function two outputs", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return cr.sin(a), cr.cos(a)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*output)
    @staticmethod
    def backward(ctx, g, h):
        s, c = ctx.saved_tensors
        return g * c - h * s""", "(cr.sin({0}), cr.cos({0}))", 1),
    ("Function scalar argument", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a, k):
        return a * k
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.k = inputs[1]
    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None""", "{0} * 0.7", 1),
    ("Function mark_dirty", """\
    @staticmethod
    def forward(ctx, a):
        ctx.mark_dirty(a)
        a.mul_(0.6)
        return a
    @staticmethod
    def backward(ctx, g):
        return g * 0.6""", "{0} * 0.6", 1),
    ("Function straight through", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return cr.sin(a)
    @staticmethod
    def setup_context(ctx, inputs, output):
        pass
    @staticmethod
    def backward(ctx, g):
        return g""", "{0} + cut(cr.sin({0}) - {0})", 1),
    ("Function jvp only", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return cr.sin(a)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_forward(inputs[0])
    @staticmethod
    def jvp(ctx, t):
        (a,) = ctx.saved_tensors
        return t * cr.cos(a)""", "cr.sin({0})", 1),
    ("Function non differentiable", """\
    generate_vmap_rule = True
    @staticmethod
    def forward(a):
        return cr.sin(a), cr.cos(a)
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0])
    @staticmethod
    def backward(ctx, g, h):
        (a,) = ctx.saved_tensors
        return g * cr.cos(a)""", "(cr.sin({0}), cut(cr.cos({0})))", 1),
    ("Function needs_input_grad", """\
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b
    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return (g * b if ctx.needs_input_grad[0] else None, g * a if ctx.needs_input_grad[1] else None)""", "{0} * {1}", 2),
]  # fmt: skip


def function(m: Maker) -> Line | None:
    name, body, plain, count = m.one(CLASSES)
    a = m.pick()
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    args = (a.name, b.name)[:count]
    outs: tuple[Var, ...] = (m.var(a.shape),)
    head = f"class {{o}}F(autograd.Function):\n{body}\n"
    given = ", ".join("{" + str(k) + "}" for k in range(count))
    left = "{o}"
    if plain.startswith("(cr.sin"):
        outs += (m.var(a.shape),)
        left = "{o}, {p}"
    if "scalar" in name:
        given += ", 0.7"
    if "dirty" in name:
        given = "cr.sin({0})"
        plain = "cr.sin({0}) * 0.6"
    return Line(name, f"{head}{left} = {{o}}F.apply({given})", args, outs, judge=f"{left} = {plain}",
                marks=frozenset({"cut"}) if "cut" in plain else frozenset())  # fmt: skip


CUSTOM = [
    ("custom_op", "", "cr.sin({0}) * {1}"),
    ("custom_op vjp", "@{o}f.vjp\ndef _(g, y, a, b):\n    return g * cr.cos(a) * b, g * cr.sin(a)\n", "cr.sin({0}) * {1}"),
    ("custom_op jvp", "@{o}f.jvp\ndef _(t, y, a, b):\n    return t[0] * cr.cos(a) * b + cr.sin(a) * t[1]\n", "cr.sin({0}) * {1}"),
    ("custom_op thunk", "@{o}f.vjp\ndef _(g, y, a, b):\n    return (lambda: g * cr.cos(a) * b), (lambda: g * cr.sin(a))\n", "cr.sin({0}) * {1}"),
]  # fmt: skip


def custom(m: Maker) -> Line | None:
    name, rule, plain = m.one(CUSTOM)
    a = m.pick()
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    text = f"@cr.custom_op\ndef {{o}}f(a, b):\n    return cr.sin(a) * b\n{rule}{{o}} = {{o}}f({{0}}, {{1}})"
    return Line(name, text, (a.name, b.name), (m.var(a.shape),), judge="{o} = " + plain)


def custom_constant(m: Maker) -> Line | None:
    """A custom op with an argument that is no tensor, and a rule that leaves one derivative out."""
    a = m.pick()
    if a is None:
        return None
    rule = m.one(["", "@{o}f.vjp\ndef _(g, y, a, k):\n    return g * k * cr.cos(a), None\n"])
    text = f"@cr.custom_op\ndef {{o}}f(a, k):\n    return k * cr.sin(a)\n{rule}{{o}} = {{o}}f({{0}}, 0.7)"
    return Line("custom_op constant", text, (a.name,), (m.var(a.shape),), judge="{o} = 0.7 * cr.sin({0})")


FUNCTIONS: list[Make] = [function, function, function, custom, custom_constant]
