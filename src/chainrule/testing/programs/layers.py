"""Statements of nn: activations over dims, norms, losses, convolutions, pooling, attention, modules."""

from __future__ import annotations

from .maker import Make, Maker
from .program import Line, Shape

# In plain ops for the judge: the third derivatives of PyTorch's fused norms leave out what depends on saved statistics.
ROW = "({0} - {0}.mean(-1, keepdim=True)) / cr.sqrt({0}.var(-1, correction=0, keepdim=True) + 0.1)"
ALL = "({0} - {0}.mean()) / cr.sqrt({0}.var(correction=0) + 0.1)"
RMS = "{0} / cr.sqrt({0}.square().mean(-1, keepdim=True) + 0.1)"


def norm(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1 and v.shape[-1] >= 2)
    if a is None:
        return None
    n = a.shape[-1]
    flat, back, w = f"{{0}}.reshape(1, -1, {n})", f".reshape({a.shape})", m.constant((n,))
    text, judge = m.one(
        [
            (f"F.layer_norm({{0}}, ({n},), eps=0.1)", ROW),
            (f"F.layer_norm({{0}}, ({n},), {w}, {w}, eps=0.1)", f"{ROW} * {w} + {w}"),
            (f"F.rms_norm({{0}}, ({n},), eps=0.1)", RMS),
            (f"F.rms_norm({{0}}, ({n},), {w}, eps=0.1)", f"{RMS} * {w}"),
            (f"F.group_norm({flat}, 1, eps=0.1){back}", ALL),
            (f"F.instance_norm({flat}, eps=0.1){back}", ROW),
            (f"F.batch_norm({{0}}.reshape(-1, 1, {n}), None, None, training=True, eps=0.1){back}", ALL),
            ("F.normalize({0} + 2.3, dim=-1)", "({0} + 2.3) / cr.sqrt(({0} + 2.3).square().sum(-1, keepdim=True))"),
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(a.shape),), judge="{o} = " + judge)


def loss(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1)
    b = a and m.pick(lambda v: v.shape == a.shape)
    if a is None or b is None:
        return None
    how = m.one(["mean", "sum"])
    text = m.one(
        [
            f"F.mse_loss({{0}}, {{1}}, reduction='{how}')",
            f"F.huber_loss({{0}}, {{1}} + 0.0317, reduction='{how}', delta=0.8)",
            f"F.binary_cross_entropy_with_logits({{0}}, cr.sigmoid({{1}}), reduction='{how}')",
            "F.kl_div(F.log_softmax({0}, -1), F.softmax({1}, -1), reduction='sum')",
            f"F.gaussian_nll_loss({{0}}, {{1}}, 1 + {{0}} * {{0}}, reduction='{how}')",
            f"F.soft_margin_loss({{0}} * {{1}}, {m.constant(a.shape)}, reduction='{how}')",
            f"F.poisson_nll_loss(cr.tanh({{0}}), cr.sigmoid({{1}}), reduction='{how}')",
            "F.cosine_similarity({0} + 2, {1} - 2, dim=-1).sum()",
            f"F.smooth_l1_loss({{0}}, {{1}} + 0.0217, reduction='{how}')",
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name, b.name), (m.var(()),))


def classes(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) == 2 and v.shape[1] >= 2)
    if a is None:
        return None
    target = f"cr.tensor({[m.choose(a.shape[1]) for _ in range(a.shape[0])]})"
    text = m.one(
        [
            f"F.cross_entropy({{0}}, {target})",
            f"F.nll_loss(F.log_softmax({{0}}, 1), {target}, reduction='sum')",
            f"F.cross_entropy({{0}}, {target}, label_smoothing=0.1)",
            "F.cross_entropy({0}, F.softmax({0}, 1))",
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(()),))


def window(m: Maker) -> Line | None:
    """Convolution and pooling of a row."""
    a = m.pick(lambda v: len(v.shape) == 1 and v.shape[0] >= 3)
    if a is None:
        return None
    n = a.shape[0]
    row = "{0}.reshape(1, 1, -1)"
    text, shape = m.one(
        [
            (f"F.conv1d({row}, {m.constant((1, 1, 2))})[0, 0]", (n - 1,)),
            (f"F.conv1d({row}, {row}[..., :2] * 0.5, padding=1)[0, 0]", (n + 1,)),
            (f"F.conv_transpose1d({row}, {m.constant((1, 1, 2))})[0, 0]", (n + 1,)),
            (f"F.avg_pool1d({row}, 2, 1)[0, 0]", (n - 1,)),
            (f"F.max_pool1d({row} + cr.linspace(0.1, 0.9, {n}, dtype=cr.float64), 2, 1)[0, 0]", (n - 1,)),
            (f"F.adaptive_avg_pool1d({row}, 2)[0, 0]", (2,)),
            (f"F.lp_pool1d(cr.exp({row} * 0.3), 2, 2, 1)[0, 0]", (n - 1,)),
            (f"F.pad({row}, (1, 1), mode='reflect')[0, 0]", (n + 2,)),
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(shape),))


def image(m: Maker) -> Line | None:
    """The same of a picture."""
    a = m.pick(lambda v: len(v.shape) == 2 and min(v.shape) >= 2)
    if a is None:
        return None
    h, w = a.shape
    pic = "{0}[None, None]"
    text, shape = m.one(
        [
            (f"F.conv2d({pic}, {m.constant((1, 1, 2, 2))})[0, 0]", (h - 1, w - 1)),
            (f"F.avg_pool2d({pic}, 2, 1)[0, 0]", (h - 1, w - 1)),
            (f"F.conv2d({pic}, {pic}[..., :2, :2] * 0.5)[0, 0]", (h - 1, w - 1)),
            (f"F.unfold({pic}, 2)[0]", (4, (h - 1) * (w - 1))),
            (f"F.interpolate({pic}, scale_factor=2, mode='nearest')[0, 0, ::2]", (h, 2 * w)),
            ("F.scaled_dot_product_attention({0}, {0} * 0.5, cr.sin({0}))", (h, w)),
            ("cr.cdist({0}, {0} + 3)", (h, h)),
        ]
    )
    judge = "{o} = ({0}[:, None] - {0} - 3).square().sum(-1).sqrt()" if "cdist" in text else None
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(shape),), judge=judge)


def activation(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1)
    if a is None:
        return None
    d = m.dim(a)
    options: list[tuple[str, Shape]] = [
        (f"F.softmax({{0}}, dim={d})", a.shape),
        (f"F.log_softmax({{0}}, dim={d})", a.shape),
        (f"F.softmin({{0}}, dim={d})", a.shape),
        ("F.prelu({0} + 0.0119, cr.tensor([0.3], dtype=cr.float64))", a.shape),
        ("F.linear({0}, " + m.constant((2, a.shape[-1])) + ")", (*a.shape[:-1], 2)),
        ("F.linear({0}, " + m.constant((2, a.shape[-1])) + ", " + m.constant((2,)) + ")", (*a.shape[:-1], 2)),
        ("F.embedding(cr.tensor([0, 0, 1]), cr.stack([{0}, {0} * 0.5]).reshape(2, -1))", (3, _numel(a.shape))),
    ]
    if a.shape[-1] % 2 == 0:
        options.append(("F.glu({0}, -1)", (*a.shape[:-1], a.shape[-1] // 2)))
    text, shape = m.one(options)
    if _numel(shape) > 18:
        return None
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(shape),))


def _numel(shape: Shape) -> int:
    n = 1
    for k in shape:
        n *= k
    return n


LAYERS: list[Make] = [norm, norm, loss, classes, window, image, activation]


# -- modules ----------------------------------------------------------------------------------------------------------


def linear(m: Maker) -> Line | None:
    """A module made inside, with parameters of its own, which are leaves."""
    a = m.pick(lambda v: len(v.shape) >= 1)
    if a is None or m.recorded:
        return None
    n = a.shape[-1]
    w, b = m.constant((2, n)), m.constant((2,))
    load = f"{{o}}m = nn.Linear({n}, 2, dtype=cr.float64)\n{{o}}m.load_state_dict(dict(weight={w}, bias={b}))\n"
    text = m.one(
        [
            load + "{o} = {o}m({0})",
            load + "{o} = cr.tanh({o}m({0})) @ {o}m.weight[:, 0]",
            f"{{o}}m = nn.Linear({n}, 2, dtype=cr.float64)\n{{o}} = func.functional_call({{o}}m, dict(weight={w} * {{0}}.sum(), bias={b}), ({{0}},))",
        ]
    )
    shape = a.shape[:-1] if "@" in text else (*a.shape[:-1], 2)
    return Line("nn.Linear", text, (a.name,), (m.var(shape),))


def norm_module(m: Maker) -> Line | None:
    a = m.pick(lambda v: len(v.shape) >= 1 and v.shape[-1] >= 2)
    if a is None:
        return None
    n = a.shape[-1]
    flat, back = f"{{0}}.reshape(-1, 1, {n})", f".reshape({a.shape})"
    text, judge = m.one(
        [
            (f"nn.LayerNorm({n}, eps=0.1, dtype=cr.float64)({{0}})", ROW),
            (f"nn.RMSNorm({n}, eps=0.1, dtype=cr.float64)({{0}})", RMS),
            (f"nn.GroupNorm(1, 1, eps=0.1, dtype=cr.float64)({flat}){back}", ROW),
            (f"nn.BatchNorm1d(1, eps=0.1, track_running_stats=False, dtype=cr.float64)({flat}){back}", ALL),
            (f"nn.BatchNorm1d(1, eps=0.1, dtype=cr.float64).eval()({flat}){back}", None),
            ("nn.Sequential(nn.Tanh(), nn.Softmax(-1))({0})", None),
            ("nn.PReLU(dtype=cr.float64)({0} + 0.0119)", None),
            (f"nn.Parameter({m.constant(a.shape)}) * {{0}}", None),
        ]
    )
    return Line(text.split("(")[0], "{o} = " + text, (a.name,), (m.var(a.shape),), judge=judge and "{o} = " + judge)


MODULES: list[Make] = [linear, norm_module]
