"""Views share memory: random chains of views, a write through the last one, seen by base and all views, as in PyTorch."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch

import chainrule
from chainrule.func import jvp, vmap


def links(rng: random.Random, shape: tuple[int, ...]) -> tuple[str, tuple[Any, ...]]:
    """A view op that a tensor of this shape has, with its arguments."""
    n = len(shape)
    some = ["unsqueeze", "squeeze", "view", "as_strided"]
    if n:
        some += ["narrow", "select", "permute", "unfold", "split", "slice", "movedim", "tensor_split"]
    if n >= 2:
        some += ["transpose", "diagonal", "flatten"]
    name = rng.choice(some)
    d = rng.randrange(-n, n) if n else 0
    size = shape[d] if n else 1
    if name == "unsqueeze":
        return name, (rng.randrange(-n - 1, n + 1),)
    if name == "narrow":
        a = rng.randrange(size)
        return name, (d, a, rng.randint(1, size - a))
    if name == "select":
        return name, (d, rng.randrange(-size, size))
    if name == "permute":
        return name, (tuple(rng.sample(range(n), n)),)
    if name in ("transpose", "movedim"):
        return name, (d, rng.randrange(-n, n))
    if name == "unfold":
        k = rng.randint(1, size)
        return name, (d, k, rng.randint(k, k + 2))
    if name in ("split", "tensor_split"):
        return name, (rng.randint(1, size), d)
    if name == "slice":
        return name, (d % n, rng.randrange(size), rng.randint(1, 2))
    if name == "diagonal":
        a, b = rng.sample(range(n), 2)
        return name, (rng.choice((0, 0, 1, -1)), a, b)
    if name == "as_strided":
        return name, (int(np.prod(shape)),)
    return name, ()


def apply(x: Any, name: str, args: tuple[Any, ...]) -> Any:
    """The view of `x`; the same code for both libraries."""
    if name in ("split", "tensor_split"):
        last = getattr(x, name)(*args)[-1]
        if isinstance(x, torch.Tensor):
            # PyTorch refuses writes to what functions with several views return.
            d, k = args[1], last.shape[args[1]]
            return x.narrow(d, x.shape[d] - k, k)
        return last
    if name == "slice":
        d, start, step = args
        return x[(slice(None),) * d + (slice(start, None, step),)]
    if name == "view":
        return x.view(*x.shape, 1) if x.is_contiguous() else x.reshape(tuple(x.shape))
    if name == "as_strided":
        # One dense row of the storage from the view's first element on, or the view's own geometry.
        return x.as_strided((args[0],), (1,)) if x.is_contiguous() else x.as_strided(tuple(x.shape), tuple(x.stride()))
    return getattr(x, name)(*args)


def program(seed: int) -> tuple[tuple[int, ...], list[tuple[str, tuple[Any, ...]]], str]:
    """A base's shape, a chain of views that never runs empty, and a write."""
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    x, chain = torch.zeros(shape), []
    for _ in range(rng.randint(1, 4)):
        link = links(rng, tuple(x.shape))
        y = apply(x, *link)
        if y.numel():
            chain.append(link)
            x = y
    return shape, chain, rng.choice(("mul_", "add_", "copy_", "setitem", "fill_"))


def write(v: Any, how: str, w: Any) -> None:
    """An in-place write of (something with) the number `w` to `v`."""
    if how == "setitem":
        v[...] = v.clone() * w  # the copy is for PyTorch, which else refuses to differentiate
    elif how == "copy_":
        v.copy_((v + w) * w)
    else:
        getattr(v, how)(w)


def run(x: Any, w: Any, seed: int) -> list[Any]:
    """Base and views after the write, all of them copies."""
    _, chain, how = program(seed)
    family = [x * 1]
    for link in chain:
        family.append(apply(family[-1], *link))
    write(family[-1], how, w)
    write(family[len(family) // 2], "mul_", w)
    return [v.clone() for v in family]


@pytest.mark.parametrize("seed", range(120))
def test_writes_through_views(seed: int) -> None:
    shape, _, _ = program(seed)
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal(shape), rng.standard_normal(())
    xs, ws = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    want = run(xs, ws, seed)
    cs = [rng.standard_normal(tuple(v.shape)) for v in want]
    sum((v * torch.tensor(c)).sum() for v, c in zip(want, cs, strict=True)).backward()

    plain = run(chainrule.tensor(a), chainrule.tensor(b), seed)
    for v, u in zip(plain, want, strict=True):
        np.testing.assert_allclose(v.numpy(), u.detach().numpy())

    x, w = chainrule.tensor(a, requires_grad=True), chainrule.tensor(b, requires_grad=True)
    got = run(x, w, seed)
    sum((v * chainrule.tensor(c)).sum() for v, c in zip(got, cs, strict=True)).backward()
    for v, u in zip(got, want, strict=True):
        np.testing.assert_allclose(v.detach().numpy(), u.detach().numpy())
    for p, q in ((x, xs), (w, ws)):
        g = p.grad.numpy() if p.grad is not None else np.zeros(p.shape)
        np.testing.assert_allclose(g, q.grad.numpy() if q.grad is not None else 0, atol=1e-12)

    # Forward mode against the gradient, and a batch against a loop.
    t, s = rng.standard_normal(shape), rng.standard_normal(())
    _, tangents = jvp(
        lambda x, w: tuple(run(x, w, seed)),
        (chainrule.tensor(a), chainrule.tensor(b)),
        (chainrule.tensor(t), chainrule.tensor(s)),
    )
    forward = sum(float((c * v.numpy()).sum()) for v, c in zip(tangents, cs, strict=True))
    reverse = float((xs.grad.numpy() * t).sum()) + (float(ws.grad.numpy() * s) if ws.grad is not None else 0.0)
    assert forward == pytest.approx(reverse, rel=1e-9, abs=1e-9)

    many = np.stack([a, a * 2 - 1, a + 3])
    batch = vmap(lambda x, w: tuple(run(x, w, seed)), in_dims=(0, None))(chainrule.tensor(many), chainrule.tensor(b))
    for i in range(3):
        for v, u in zip(batch, run(torch.tensor(many[i]), torch.tensor(b), seed), strict=True):
            np.testing.assert_allclose(v.numpy()[i], u.numpy())


def test_in_place_changes_of_shape() -> None:
    x = chainrule.arange(6).reshape(2, 3)
    row = x[0]
    assert x.t_() is x
    assert x.shape == (3, 2)
    row.fill_(9)
    assert x.tolist() == [[9, 3], [9, 4], [9, 5]]
    x.unsqueeze_(0).squeeze_(0).transpose_(0, 1)
    x.add_(1)
    assert row.tolist() == [10, 10, 10]


def test_copies_share_nothing() -> None:
    x = chainrule.zeros(1, 1)
    for y in (x.repeat(3, 1), x.tile(2), x.repeat_interleave(3), chainrule.alias_copy(x), chainrule.permute_copy(x, (1, 0)),
              chainrule.diag(x), chainrule.rot90(x, 4), chainrule.expand_copy(x, (2, 2))):  # fmt: skip
        y.add_(1)
        assert x.tolist() == [[0.0]]


def test_as_strided_overlapping() -> None:
    """Input and output overlap: shared places share the gradient, places outside of the input have none."""
    a = np.arange(4.0)
    for size, stride, offset in [((3, 2), (1, 1), 0), ((2, 2), (0, 1), 1), ((4, 3), (1, 0), 0)]:
        p, q = torch.tensor(a, requires_grad=True), chainrule.tensor(a, requires_grad=True)
        u = p.as_strided((4, 2), (1, 0)).as_strided(size, stride, offset)
        v = q.as_strided((4, 2), (1, 0)).as_strided(size, stride, offset)
        c = np.random.default_rng(0).standard_normal(size)
        (u * torch.tensor(c)).sum().backward()
        (v * chainrule.tensor(c)).sum().backward()
        np.testing.assert_allclose(v.detach().numpy(), u.detach().numpy())
        np.testing.assert_allclose(q.grad.numpy(), p.grad.numpy())


def test_as_strided_stays_inside() -> None:
    with pytest.raises(RuntimeError, match="out of bounds"):
        chainrule.zeros(4).as_strided((5,), (1,))
    with pytest.raises(RuntimeError, match="Negative strides"):
        chainrule.zeros(4).as_strided((2,), (-1,))
