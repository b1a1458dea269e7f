"""Rules of shapes: joining, splitting, repeating, strides, padding."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vjp

from .judge import array, case, gradient, judge, mathematics, row, same

CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])


@row("unbind")
@CX
def test_unbind(cx: bool) -> None:
    x = array(3, 2, cx=cx)
    for dim in (0, 1, -1):
        judge("unbind", lambda m, x, d=dim: m.unbind(x, d), x)
    # Outputs that are not used count as zero.
    judge("unbind", lambda m, x: m.unbind(x)[1] * 2, x)
    judge("unbind", lambda m, x: m.unbind(x, 1)[0] * m.unbind(x, 1)[0], x)
    same(gradient(lambda m, x: m.unbind(x)[-1], array(3, 2))[0], np.array([[0, 0], [0, 0], [1.0, 1.0]]), "one used")
    assert len(cr.unbind(cr.zeros(0, 3))) == 0


@row("unbind")
def test_unbind_of_a_nest() -> None:
    n = cr.nested.nested_tensor([array(2, 3), array(1, 3, seed=1), array(4, 3, seed=2)], dtype=cr.float64)
    g = grad(lambda n: (n.unbind()[2] ** 2).sum() + n.unbind()[0].sum())(n)
    want = [np.ones((2, 3)), np.zeros((1, 3)), 2 * array(4, 3, seed=2)]
    for a, b in zip(g.unbind(), want, strict=True):
        same(a.numpy(), b, "gradient of a component")
    t = jvp(lambda n: n.unbind()[1] * 3, (n,), (n,))[1]
    same(t.numpy(), 3 * array(1, 3, seed=1), "tangent of a component")


@row("join")
@CX
def test_cat_and_stack(cx: bool) -> None:
    a, b, c = array(2, 3, cx=cx), array(4, 3, cx=cx, seed=1), array(2, 3, cx=cx, seed=2)
    judge("cat", lambda m, a, b: m.cat([a, b]), a, b)
    judge("cat", lambda m, a, c: m.cat((a, c, a), dim=-1), a, c)
    for dim in (0, 1, -1):
        judge("stack", lambda m, a, c, d=dim: m.stack([a, c], d), a, c)
    judge("block_diag", lambda m, a, b, s: m.block_diag(a, b, s, s[0]), a, b, array(2, cx=cx, seed=3))
    # The legacy operand of shape (0,) is left out, and its gradient is empty.
    judge("cat", lambda m, a, e, c: m.cat([e, a, e, c], 1), a, np.zeros(0, a.dtype), c)
    judge("cat", lambda m, a, e: m.cat([a, e], 0), a, np.zeros((0, 3), a.dtype))
    judge("cat", lambda m, e: m.cat([e, e]), np.zeros(0))


@row("join")
def test_joining_mixed_types() -> None:
    x, z = array(2, 2), array(2, 2, cx=True, seed=1)
    ints = np.arange(4).reshape(2, 2)
    judge("cat", lambda m, x, i: m.cat([x, i]), x, ints)
    judge("cat", lambda m, x, z, i: m.cat([x, z, i], 1), x, z, ints)
    judge("stack", lambda m, x, z: m.stack([x, z]), x, z)
    judge("block_diag", lambda m, x, z: m.block_diag(x, z), x, z)
    low = array(2, 2, seed=2).astype(np.float32)
    y, pull = vjp(lambda a, b: cr.cat([a, b]), cr.tensor(x), cr.tensor(low))
    assert y.dtype is cr.float64
    assert [g.dtype for g in pull(y)] == [cr.float64, cr.float32]
    _, t = jvp(lambda b: cr.stack([cr.tensor(x), b]), (cr.tensor(low),), (cr.tensor(low),))
    same(t.numpy(), np.stack([np.zeros((2, 2)), low.astype(float)]), "a tangent of the narrower operand")


@row("repeat")
@CX
def test_repeats(cx: bool) -> None:
    x = array(2, 3, cx=cx)
    for times in ((2, 1), (1, 1), (3, 2, 2), (0, 2), (2, 0), (0, 1, 1)):
        judge("Tensor.repeat", lambda m, x, r=times: x.repeat(*r), x)
        judge("tile", lambda m, x, r=times: m.tile(x, r), x)
    judge("tile", lambda m, x: m.tile(x, (2,)), x)
    judge("Tensor.repeat", lambda m, x: x.repeat(2, 2), array(3, cx=cx))
    judge("Tensor.repeat", lambda m, x: x.repeat(()), array(cx=cx))
    for size in ((4, 2, 3), (-1, 3), (2, 3), (0, 2, 3)):
        judge("Tensor.expand", lambda m, x, s=size: x.expand(s), x)
    judge("Tensor.expand", lambda m, x: x.expand(2, 4), array(2, 1))
    judge("Tensor.expand", lambda m, x: x.expand(2, 0), array(1))
    judge("Tensor.expand", lambda m, x: x.expand(3), array())


@row("repeat")
def test_repeat_interleave() -> None:
    x = array(2, 3)
    for n in (0, 1, 3):
        judge("repeat_interleave", lambda m, x, n=n: m.repeat_interleave(x, n), x)
        judge("repeat_interleave", lambda m, x, n=n: m.repeat_interleave(x, n, dim=1), x)
    counts = np.array([2, 0, 3])
    judge("repeat_interleave", lambda m, x, c: m.repeat_interleave(x, c, dim=1), x, counts)
    judge("repeat_interleave", lambda m, x, c: m.repeat_interleave(x, c, dim=1, output_size=5), x, counts)
    judge("repeat_interleave", lambda m, x, c: m.repeat_interleave(x, c, dim=-1), x, np.zeros(3, int))


@row("split")
@CX
def test_splits(cx: bool) -> None:
    x = array(5, 3, cx=cx)
    for f in (
        lambda m, x: m.split(x, 2),
        lambda m, x: m.split(x, [1, 0, 4]),
        lambda m, x: m.split(x, 3, dim=-1),
        lambda m, x: m.split(x, 7),
        lambda m, x: m.split_with_sizes(x, [2, 3]),
        lambda m, x: m.chunk(x, 3),
        lambda m, x: m.chunk(x, 4, 1),
        lambda m, x: m.tensor_split(x, 3),
        lambda m, x: m.tensor_split(x, (1, 4)),
        lambda m, x: m.tensor_split(x, (-2, 1), 0),
        lambda m, x: m.tensor_split(x, 4, 1),
        lambda m, x: m.split(x, 2)[1] * 2,
        lambda m, x: m.split(x, [5, 0])[1],
    ):
        judge("split chunk tensor_split", f, x)
    judge("tensor_split", lambda m, x, i: m.tensor_split(x, i), x, np.array([2, 3]), vmap=False)
    judge("split", lambda m, x: m.split(x, 0), np.zeros((0, 3)))


@row("split")
def test_splits_of_a_nest() -> None:
    parts = [array(2, 5), array(3, 5, seed=1), array(0, 5)]
    n = cr.nested.nested_tensor(parts, dtype=cr.float64)
    for f, cut in (
        (lambda v: cr.split(v, [2, 3], -1), (2,)),
        (lambda v: cr.split_with_sizes(v, [1, 1, 3], -1), (1, 2)),
        (lambda v: cr.chunk(v, 2, -1), (3,)),
        (lambda v: cr.split(v, 2, -1), (2, 4)),
        (lambda v: cr.tensor_split(v, (1, 4), -1), (1, 4)),
    ):
        ys = f(n)
        g = grad(lambda v, f=f: sum((k + 1) * (y * y).sum() for k, y in enumerate(f(v))))(n)
        t = jvp(f, (n,), (n * 2,))[1]
        for i, p in enumerate(parts):
            want = np.split(p, cut, -1)
            for y, ty, w in zip(ys, t, want, strict=True):
                same(y.unbind()[i].numpy(), w, "part")
                same(ty.unbind()[i].numpy(), 2 * w, "tangent")
            same(g.unbind()[i].numpy(), np.concatenate([2 * (k + 1) * w for k, w in enumerate(want)], -1), "gradient")


STRIDED = {
    "plain": ((2, 3), (3, 1), 0),
    "transposed": ((3, 2), (1, 3), 0),
    "offset": ((2, 2), (2, 1), 3),
    "windows": ((4, 3), (1, 1), 0),
    "overlapping": ((3, 3), (2, 1), 1),
    "expanded": ((4, 2), (0, 1), 2),
    "one_number": ((2, 2), (0, 0), 5),
    "gaps": ((2, 2), (5, 2), 0),
    "empty": ((0, 2), (1, 1), 0),
    "scalar": ((), (), 4),
}


# Strides mean the memory of the argument's base: each program makes its own, so that it means the same in a loop and in vmap.


@row("as_strided")
@pytest.mark.parametrize("name", STRIDED)
def test_as_strided(name: str) -> None:
    size, stride, offset = STRIDED[name]
    judge("as_strided", lambda m, x: m.as_strided(x * 1.0, size, stride, offset), array(2, 4))
    judge("as_strided", lambda m, x: m.as_strided(x * 1.0, size, stride, offset) ** 2, array(8, cx=True))


@row("as_strided")
def test_as_strided_of_views() -> None:
    # The argument is itself a slice, a transposed view or one that overlaps itself.
    for f in (
        lambda m, x: m.as_strided((x * 1.0)[1:], (2, 2), (1, 2), 1),
        lambda m, x: m.as_strided((x * 1.0)[::2], (2,), (2,), 0),
        lambda m, x: m.as_strided((x * 1.0).reshape(2, 3).t(), (3, 2), (2, 1), 0),
        lambda m, x: m.as_strided((x * 1.0)[2:], (2,), (1,)),
    ):
        judge("as_strided", f, array(6))
    for f in (
        lambda m, x: m.as_strided((x * 1.0).expand(3, 2), (2,), (1,), 0) * 3,
        lambda m, x: m.as_strided((x * 1.0).expand(3, 2), (3, 2), (0, 1), 0),
        lambda m, x: m.as_strided(m.as_strided(x * 1.0, (3,), (0,), 0), (2,), (0,), 0),
    ):
        judge("as_strided", f, array(2))


@row("as_strided")
@pytest.mark.parametrize("name", ["plain", "transposed", "offset", "gaps", "empty", "scalar"])
@CX
def test_as_strided_scatter(name: str, cx: bool) -> None:
    # What is overwritten has no gradient, what is left passes it: PyTorch has it the other way round.
    size, stride, offset = STRIDED[name]
    f = lambda m, x, s: m.as_strided_scatter(x * 1.0, s, size, stride, offset)
    judge("as_strided_scatter", f, array(2, 4, cx=cx), array(*size, cx=cx, seed=1), oracle="value")


PADS = {
    "constant": ([(1, 2), (1, -1), (-1, -1), (0, 0), (1, 0, 2, -1), (-1, 2, -1, 1, 1, 1)], (2, 3, 4)),
    "reflect": ([(1, 2), (2, 0), (1, -1), (-1, 1)], (2, 4)),
    "replicate": ([(1, 2), (3, 0), (2, -1), (-1, 2)], (2, 3)),
    "circular": ([(1, 2), (3, 0), (0, 2)], (2, 4)),
}


@row("pad")
@pytest.mark.parametrize("mode", PADS)
@CX
def test_pad(mode: str, cx: bool) -> None:
    pads, shape = PADS[mode]
    for pad in pads:
        judge("F.pad", lambda m, x, p=pad: m.nn.functional.pad(x, p, mode=mode), array(*shape, cx=cx))
    if mode == "constant":
        judge("F.pad", lambda m, x: m.nn.functional.pad(x, (2, -1), value=1.5), array(3, cx=cx))
        return
    for deeper in ((1, 1, 2, 0), (0, 1, 1, 1)):
        judge("F.pad", lambda m, x, p=deeper: m.nn.functional.pad(x, p, mode=mode), array(2, 3, 4, cx=cx))
    judge("F.pad", lambda m, x: m.nn.functional.pad(x, (1, 1, 0, 1, 1, 0), mode=mode), array(1, 2, 3, 2, cx=cx))
    negative = lambda m, x: m.nn.functional.pad(x, (-1, 1, 1, -1), mode=mode)
    judge("F.pad", negative, array(2, 3, 4, cx=cx))


@row("pad")
def test_circular_pads_that_cut() -> None:
    # A negative pad removes numbers, whatever the mode; the rest wraps around what is left.
    for pad in ((-1, 2), (1, -1), (-1, -1)):
        f = lambda m, x, p=pad: m.nn.functional.pad(x, p, mode="circular")
        mathematics(case("F.pad", f, array(2, 4)))
