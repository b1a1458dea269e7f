"""Rules of normalisation where they are easily passed over: kernels that ran, statistics batched, masks, shapes, the accelerators' names."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule import kernels
from chainrule.core.payload import PAYLOADS, Payload, register
from chainrule.func import grad, jvp, vmap

from .judge import array, case, judge, laws, mathematics, row, same, values

EPS = 1e-3
MASKS = list(itertools.product((False, True), repeat=3))


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return array(*shape, seed=seed, low=0.5)


def subsets_agree(f: Any, arrays: list[np.ndarray], subsets: Any) -> None:
    """vmap over these subsets of the arguments equals a loop; None among the results stays None."""
    for picked in subsets:
        args = [cr.tensor(a if on else a[0]) for a, on in zip(arrays, picked, strict=True)]
        got = vmap(f, in_dims=tuple(0 if on else None for on in picked))(*args)
        for i in range(len(arrays[0])):
            want = f(*[a[i] if on else a for a, on in zip(args, picked, strict=True)])
            for g, w in zip(got, want, strict=True):
                same(g[i].numpy(), w.numpy(), f"batched {picked}")


# -- weight norm ------------------------------------------------------------------------------------------------------------


@row("weight_norm.first", "weight_norm.last", "weight_norm.first.backward", "weight_norm.last.backward")
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_the_fused_kernels_run(dim: int, dtype: str, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []
    for name in ("weight_norm", "weight_norm_backward"):
        inner = getattr(kernels, name)
        spy = lambda *a, name=name, inner=inner: (inner(*a), ran.append(name))[0]
        monkeypatch.setattr(kernels, name, spy)
    d = getattr(cr, dtype)
    v, g = cr.tensor(array(8, 6), dtype=d), cr.tensor(array(*((8, 1) if dim == 0 else (1, 6)), seed=1), dtype=d)
    if layout == "columns":
        v = v.t().contiguous().t()
        assert not v.is_contiguous()
    w, n = cr._weight_norm_interface(v, g, dim)
    assert ran == ["weight_norm"], "the kernel ran, and ran to its end"
    cr._weight_norm_interface_backward(w, v, g, n, dim)
    assert ran == ["weight_norm", "weight_norm_backward"]
    grad(lambda v: cr._weight_norm(v, g, dim).float().sum())(v)
    # A rule that runs for the second time is learnt as straight-line code, and what was learnt is compared: then it runs once more.
    assert ran[2:4] == ["weight_norm", "weight_norm_backward"] and set(ran[4:]) <= {"weight_norm_backward"}


class Elsewhere(np.ndarray):
    """An array that claims to be on another device."""


@row("weight_norm")
def test_other_devices_are_refused() -> None:
    class There(Payload):
        array, device = Elsewhere, "elsewhere"

    register(There())
    try:
        v, g = cr.tensor(array(3, 2)), cr.Tensor(array(3, 1).view(Elsewhere))
        for f in (cr._weight_norm, cr._weight_norm_interface):
            with pytest.raises(RuntimeError, match=r"same device.*v is on cpu and g on elsewhere"):
                f(v, g, 0)
    finally:
        del PAYLOADS[Elsewhere]


@row("norm_except_dim")
@pytest.mark.parametrize("p", [0, 1, 2, 3])
@pytest.mark.parametrize("shape", [(5,), (3, 2), (2, 1, 3), (2, 2, 3, 2), (1, 4)], ids=str)
def test_norm_except_dim_of_every_shape(p: int, shape: tuple[int, ...]) -> None:
    v = array(*shape)
    v.flat[1] = 0
    for dim in (-1, *range(len(shape))):
        f = lambda m, v, dim=dim: m.norm_except_dim(v, p, dim)
        judge("norm_except_dim", f, array(*shape))
        values(f, v)  # with a zero
    if len(shape) == 1 and p == 0:
        same(cr.norm_except_dim(cr.tensor(array(5)), 0, 0).numpy(), np.ones(5), "of a vector, order 0")
        g = grad(lambda v: cr.norm_except_dim(v, 0, 0).sum())(cr.tensor(array(5)))
        same(g.numpy(), np.zeros(5), "its gradient")


# -- batch norm -------------------------------------------------------------------------------------------------------------


@row("vmap.batch_norm", "vmap.batch_norm.evaluation")
def test_statistics_in_evaluation_are_empty() -> None:
    x, w, b = array(2, 3, 2, 4), array(2, seed=1), array(2, seed=2)
    mu, var = array(2, seed=3), positive(2, seed=4)
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"):
        run = lambda x, name=name: getattr(cr, name)(x, *map(cr.tensor, (w, b, mu, var)), False, 0.1, EPS)
        y, m, r = run(cr.tensor(x[0]))[:3]
        assert tuple(m.shape) == tuple(r.shape) == (0,) and m.dtype is r.dtype is cr.float64
        h = (x[0] - mu[:, None]) / np.sqrt(var[:, None] + EPS)
        same(y.numpy(), h * w[:, None] + b[:, None], "the running statistics are used")
        got = vmap(run)(cr.tensor(x))
        assert tuple(got[1].shape) == tuple(got[2].shape) == (2, 0)
        same(got[0].numpy()[1], run(cr.tensor(x[1]))[0].numpy(), "value")
    theirs = torch.vmap(lambda x: torch.native_batch_norm(x, *map(torch.tensor, (w, b, mu, var)), False, 0.1, EPS))
    assert tuple(theirs(torch.tensor(x))[1].shape) == (2, 0)


@row("vmap.batch_norm.backward", "vmap.batch_norm.input_gradient", "batch_norm", "vmap.norm_backward")
@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("weight", [True, False])
def test_batch_norm_backward_over_every_subset(train: bool, weight: bool) -> None:
    shapes = [(3, 2, 4), (3, 2, 4), (2,), (2,), (2,), (2,), (2,)]
    full = [array(2, *s, seed=k) if k not in (4, 6) else positive(2, *s, seed=k) for k, s in enumerate(shapes)]

    def f(g, x, w, rm, rv, mu, r, mask=(True, True, True)):
        out = cr.native_batch_norm_backward(g, x, w if weight else None, rm, rv, mu, r, train, EPS, mask)
        assert [o is not None for o in out] == list(mask)
        return tuple(o for o in out if o is not None)

    subsets = [s for s in itertools.product((False, True), repeat=7) if any(s)]
    subsets_agree(f, full, subsets)
    for mask in MASKS[1:]:
        subsets_agree(lambda *a, mask=mask: f(*a, mask=mask), full, [s for s in subsets if sum(s) in (1, 7)])
    one = [cr.tensor(a[0]) for a in full]
    assert f(*one, mask=(False, False, False)) == ()
    # By hand, so that a wrong factor is seen.
    g, x, w, rm, rv, mu, r = (a[0] for a in full)
    c = lambda a: a[:, None]
    m, s = (mu, r) if train else (rm, 1 / np.sqrt(rv + EPS))
    h = (x - c(m)) * c(s)
    u = g * c(w) if weight else g
    gw, gb = (g * h).sum((0, 2)), g.sum((0, 2))
    n = g.shape[0] * g.shape[2]
    gx = c(s) * (u - c(u.sum((0, 2)) / n) - h * c((u * h).sum((0, 2)) / n)) if train else c(s) * u
    for a, e in zip(f(*one), (gx, gw, gb), strict=True):
        same(a.numpy(), e, "by hand")


@row("vmap.batch_norm")
def test_running_statistics_that_are_batched() -> None:
    x, mu, var = array(3, 4, 2), array(3, 2, seed=1), positive(3, 2, seed=2)

    def f(x, mu, var):
        mu, var = mu * 1.0, var * 1.0
        y, m, r = cr.native_batch_norm(x, None, None, mu, var, True, 0.3, EPS)
        return y, m, r, mu, var

    y, m, r, new, spread = vmap(f)(*map(cr.tensor, (x, mu, var)))
    same(m.numpy(), x.mean(1), "mean of each example")
    same(r.numpy(), 1 / np.sqrt(x.var(1) + EPS), "rstd of each example")
    same(new.numpy(), 0.7 * mu + 0.3 * x.mean(1), "running mean")
    same(spread.numpy(), 0.7 * var + 0.3 * x.var(1, ddof=1), "running variance")
    same(y.numpy(), (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS), "value")


@row("vmap.batch_norm.functional")
def test_functional_batch_norm_has_statistics_for_each_example() -> None:
    x, w, b = array(3, 4, 2), array(2, seed=1), array(2, seed=2)
    mu, var = array(2, seed=3), positive(2, seed=4)
    f = lambda x, w, b, mu, var: cr._native_batch_norm_legit_functional(x, w, b, mu, var, True, 0.3, EPS)
    ts = [cr.tensor(a) for a in (w, b, mu, var)]
    got = vmap(f, in_dims=(0, None, None, None, None))(cr.tensor(x), *ts)  # shared statistics: nothing is written
    for i in range(3):
        for g, e in zip(got, f(cr.tensor(x[i]), *ts), strict=True):
            same(g[i].numpy(), e.numpy(), "example")
    theirs = torch.ops.aten._native_batch_norm_legit_functional(
        torch.tensor(x[0]), *map(torch.tensor, (w, b, mu, var)), True, 0.3, EPS
    )
    for g, t in zip(got, theirs, strict=True):
        same(g[0].numpy(), t.numpy(), "PyTorch")
    assert ts[2].tolist() == mu.tolist() and ts[3].tolist() == var.tolist()
    mathematics(case("_native_batch_norm_legit_functional", lambda m, *a: f(*a), x[0], w, b, mu, var))


@row("batch_norm.forward")
def test_tangents_of_running_statistics() -> None:
    x, mu, var = cr.tensor(array(4, 2)), cr.tensor(array(2, seed=1)), cr.tensor(positive(2, seed=2))
    one = cr.ones(2, dtype=cr.float64)
    for name, f in {
        "native": lambda mu, var: cr.native_batch_norm(x, None, None, mu, var, True, 0.1, EPS)[0],
        "functional": lambda mu, var: cr.nn.functional.batch_norm(x, mu, var, training=True),
    }.items():
        for g, at in ((lambda s, f=f: f(s, var * 1), mu * 1), (lambda s, f=f: f(mu * 1, s), var * 1)):
            with pytest.raises(RuntimeError, match=r"running_(mean|var) is not differentiable in training"):
                jvp(g, (at,), (one,))
                pytest.fail(name)
    f = lambda m, mu, var: m.nn.functional.batch_norm(m.tensor(array(4, 2)), mu, var, eps=EPS)
    mathematics(case("F.batch_norm", f, mu.numpy(), var.numpy()))
    t = jvp(lambda mu: f(cr, mu, var), (mu,), (one,))[1].numpy()
    same(t, np.broadcast_to(-1 / np.sqrt(var.numpy() + EPS), (4, 2)), "the mean's tangent")


# -- the accelerators' names --------------------------------------------------------------------------------------------------


@row("vmap.batch_norm.accelerator")
@pytest.mark.parametrize("name", ["cudnn_batch_norm", "miopen_batch_norm"])
@pytest.mark.parametrize("training", [True, False])
def test_accelerators_over_every_subset(name: str, training: bool) -> None:
    shapes = [(3, 2, 4), (2,), (2,), (2,), (2,)]
    full = [array(2, *s, seed=k) if k < 4 else positive(2, *s, seed=k) for k, s in enumerate(shapes)]

    def run(op):
        def f(x, w, b, mu, var):
            mu, var = mu * 1.0, var * 1.0
            return (*op(x, w, b, mu, var, training, 0.1, EPS)[: 3 if training else 1], mu, var)

        return f

    ours, general = run(getattr(cr, name)), run(cr.native_batch_norm)
    subsets = [
        s for s in itertools.product((False, True), repeat=5) if any(s) and not (training and s[0] and not all(s[3:]))
    ]
    subsets_agree(ours, full, subsets)
    one = [cr.tensor(a[0]) for a in full]
    for a, e in zip(ours(*one), general(*one), strict=True):
        same(a.numpy(), e.numpy(), "the general rule")
    out = getattr(cr, name)(*one, training, 0.1, EPS)
    if name == "cudnn_batch_norm":
        assert len(out) == 4 and out[3].dtype is cr.uint8 and tuple(out[3].shape) == (0,)
    else:
        assert len(out) == 3


@row("vmap.batch_norm.accelerator")
@pytest.mark.parametrize("name", ["cudnn_batch_norm_backward", "miopen_batch_norm_backward"])
def test_backward_functions_of_accelerators(name: str) -> None:
    shapes = [(3, 2, 4), (3, 2, 4), (2,), (2,), (2,)]
    full = [array(2, *s, seed=k) if k < 4 else positive(2, *s, seed=k) for k, s in enumerate(shapes)]
    extra = (cr.zeros(0, dtype=cr.uint8),) if name.startswith("cudnn") else ()
    f = lambda x, g, w, mu, r: getattr(cr, name)(x, g, w, None, None, mu, r, EPS, *extra)
    one = [cr.tensor(a[0]) for a in full]
    x, g, w, mu, r = one
    for a, e in zip(
        f(*one), cr.native_batch_norm_backward(g, x, w, None, None, mu, r, True, EPS, (True,) * 3), strict=True
    ):
        same(a.numpy(), e.numpy(), "the general rule")
    subsets_agree(f, full, [s for s in itertools.product((False, True), repeat=5) if any(s)])
    mathematics(case(name, lambda m, *a: f(*a), *[a[0] for a in full]))


# -- layer norm ---------------------------------------------------------------------------------------------------------------


@row("vmap.layer_norm.backward", "vmap.layer_norm.input_gradient", "layer_norm", "vmap.norm_backward")
@pytest.mark.parametrize("shape", [(4,), (3, 4)], ids=["last", "whole"])
@pytest.mark.parametrize("affine", ["weight bias", "weight", "bias", ""])
def test_layer_norm_backward_over_every_subset(shape: tuple[int, ...], affine: str) -> None:
    kept = (3, 1) if len(shape) == 1 else (1, 1)
    full = [array(2, 3, 4), array(2, 3, 4, seed=1), array(2, *kept, seed=2), positive(2, *kept, seed=3),
            array(2, *shape, seed=4), array(2, *shape, seed=5)]  # fmt: skip

    def f(g, x, mu, r, w, b, mask=(True, True, True)):
        w, b = w if "weight" in affine else None, b if "bias" in affine else None
        out = cr.native_layer_norm_backward(g, x, shape, mu, r, w, b, mask)
        return tuple(o for o in out if o is not None)

    subsets = [s for s in itertools.product((False, True), repeat=6) if any(s)]
    subsets_agree(f, full, subsets)
    for mask in MASKS[1:]:
        subsets_agree(
            lambda *a, mask=mask: f(*a, mask=mask), full, [(True,) * 6, (False, False, True, True, False, False)]
        )
    one = [cr.tensor(a[0]) for a in full]
    assert f(*one, mask=(False, False, False)) == ()
    g, x, mu, r, w, _ = (a[0] for a in full)
    h, u = (x - mu) * r, g * w if "weight" in affine else g
    axes = tuple(range(2 - len(shape), 2))
    gx = r * (u - u.mean(axes, keepdims=True) - h * (u * h).mean(axes, keepdims=True))
    same(f(*one)[0].numpy(), gx, "by hand")
    if "weight" in affine and len(shape) == 1:
        same(f(*one)[1].numpy(), (g * h).sum(0), "the weight's, by hand")
    mathematics(case("native_layer_norm_backward", lambda m, *a: f(*a), *[a[0] for a in full]), vmap=False)


@row("vmap.layer_norm", "vmap.norm_backward")
def test_wrong_shapes_while_batched_name_the_argument() -> None:
    x, wrong = cr.tensor(array(2, 3, 4)), cr.tensor(array(2, 3))
    for what in ("weight", "bias"):
        run = lambda v, p, what=what: cr.nn.functional.layer_norm(v, (4,), **{what: p})
        for dims in ((0, 0), (None, 0), (0, None)):
            args = (x if dims[0] == 0 else x[0], wrong if dims[1] == 0 else wrong[0])
            with pytest.raises(RuntimeError, match=what):
                vmap(run, in_dims=dims)(*args)
        native = lambda v, p, what=what: cr.native_layer_norm(
            v, (4,), *((p, None) if what == "weight" else (None, p)), EPS
        )
        with pytest.raises(RuntimeError, match=what):
            vmap(native)(x, wrong)
    for bad in ((5,), (2, 4), (2, 3, 4)):
        with pytest.raises(RuntimeError, match="normalized_shape"):
            vmap(lambda v, bad=bad: cr.native_layer_norm(v, bad, None, None, EPS))(x)


# -- group norm ---------------------------------------------------------------------------------------------------------------


@row("vmap.group_norm.backward", "vmap.group_norm.input_gradient", "vmap.norm_backward")
@pytest.mark.parametrize("weight", [True, False])
def test_group_norm_backward_over_every_subset(weight: bool) -> None:
    full = [
        array(2, 2, 4, 3),
        array(2, 2, 4, 3, seed=1),
        array(2, 2, 2, seed=2),
        positive(2, 2, 2, seed=3),
        array(2, 4, seed=4),
    ]

    def f(g, x, mu, r, w, mask=(True, True, True)):
        out = cr.native_group_norm_backward(g, x, mu, r, w if weight else None, 2, 4, 3, 2, mask)
        return tuple(o for o in out if o is not None)

    subsets_agree(f, full, [s for s in itertools.product((False, True), repeat=5) if any(s)])
    assert f(*[cr.tensor(a[0]) for a in full], mask=(False, False, False)) == ()
    laws.check_dot(
        case("native_group_norm_backward", lambda m, *a: f(*a), *[a[0] for a in full]), np.random.default_rng(0)
    )


# -- the other entry points -----------------------------------------------------------------------------------------------------


@row("bilinear")
def test_trilinear() -> None:
    f = lambda m, a, b, c: m._trilinear(a, b, c, [1, 3], [0], [1, 2], [2, 3])
    judge("_trilinear", f, array(2, 3), array(4, 3, 5, seed=1), array(2, 5, seed=2))
    # PyTorch has no complex derivatives here.
    judge(
        "_trilinear",
        f,
        *(array(*s, cx=True, seed=k) for k, s in enumerate(((2, 3), (4, 3, 5), (2, 5)))),
        oracle="value",
    )
    g = lambda m, a, b, c: m._trilinear(a, b, c, [], [], [], [1])
    xs = array(2, 3), array(2, 1, seed=1), array(1, 3, seed=2)  # dims of size 1 broadcast; PyTorch's loop refuses some
    judge("_trilinear", g, *xs, oracle="")
    same(g(cr, *map(cr.tensor, xs)).numpy(), (xs[0] * xs[1] * xs[2]).sum(1), "value")
    with pytest.raises(RuntimeError, match=r"_trilinear: i2 .* has 2 dims"):
        cr._trilinear(cr.zeros(2, 3), cr.zeros(2), cr.zeros(2, 3), [1], [0], [1], [0])


@row("nested.from_padded")
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_from_padded_with_transposed_heads() -> None:
    x, sizes = array(2, 3, 4, 2), np.array([[2, 6], [4, 6]])
    f = lambda x: cr._nested_from_padded(x, cr.tensor(sizes), True)
    theirs = torch._nested_from_padded(torch.tensor(x), torch.tensor(sizes), True)
    for a, b in zip(f(cr.tensor(x)).unbind(), theirs.unbind(), strict=True):
        same(a.numpy(), b.numpy(), "component")
    g = grad(lambda x: (f(x) ** 2).sum())(cr.tensor(x)).numpy()
    want = 2 * x
    want[0, :, 2:] = 0
    same(g, want, "gradient: zero where there was padding")
    t = jvp(lambda x: f(x).values(), (cr.tensor(x),), (cr.tensor(x),))[1]
    same(t.numpy(), f(cr.tensor(x)).values().numpy(), "tangent of a linear map")
    h = jvp(grad(lambda x: (f(x) ** 3).sum()), (cr.tensor(x),), (cr.tensor(x),))[1].numpy()
    want = 6 * x * x
    want[0, :, 2:] = 0
    same(h, want, "second order")
    with pytest.raises(RuntimeError, match="fuse_transform_0213 wants"):
        cr.nested.from_padded(cr.zeros(2, 3), [1, 2], fuse_transform_0213=True)


@row("convolution")
@pytest.mark.parametrize("mask", MASKS[1:])
def test_convolution_backward(mask: tuple[bool, bool, bool]) -> None:
    def f(transposed, stride, groups):
        def run(m, g, x, w):
            out = m.convolution_backward(g, x, w, [4], [stride], [1], [1], transposed, [0], groups, list(mask))
            return tuple(o for o, on in zip(out, mask, strict=True) if on)

        return run

    x, w = array(2, 4, 7), array(4, 2, 3, seed=1)
    judge("convolution_backward", f(False, 2, 2), array(2, 4, 4, seed=2), x, w, vmap=mask == (True, True, True))
    g = array(2, 4, 13, seed=2)
    values(f(True, 2, 2), g, x, w)


@row("embedding", "fft")
def test_backward_functions_that_programs_call() -> None:
    i = np.array([[0, 2, 2], [1, 0, 2]])
    for often in (False, True):
        f = lambda m, g, often=often: m.embedding_dense_backward(g, m.tensor(i), 4, 1, often)
        # PyTorch's second derivative forgets how often a row was seen.
        judge("embedding_dense_backward", f, array(2, 3, 2), oracle="value" if often else "value gradient")
    z, r = array(3, 4, cx=True), array(3, 4)
    for n in (0, 1, 2):
        judge("_fft_c2c", lambda m, z, n=n: m._fft_c2c(z, [0, 1], n, True), z)
        judge("_fft_c2c", lambda m, z, n=n: m._fft_c2c(z, [1], n, False), z)
        judge("_fft_r2c", lambda m, r, n=n: m._fft_r2c(r, [0, 1], n, True), r)
        judge("_fft_r2c", lambda m, r, n=n: m._fft_r2c(r, [1], n, False), r)
        judge("_fft_c2r", lambda m, z, n=n: m._fft_c2r(z, [0, 1], n, 6), z)
        judge("_fft_c2r", lambda m, z, n=n: m._fft_c2r(z, [1], n, 7), z)
    with pytest.raises(RuntimeError, match="normalization must be 0, 1 or 2"):
        cr._fft_c2c(cr.tensor(z), [0], 3, True)
