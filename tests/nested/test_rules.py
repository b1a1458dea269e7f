"""Rules whose result mixes the components, or that PyTorch states for nested tensors one by one: against the packed rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct

from .harness import close

F, func, nested = ct.nn.functional, ct.func, ct.nested
RNG = np.random.default_rng(5)
LENGTHS = [3, 0, 1, 5]
VALUES, TANGENT = (ct.tensor(RNG.normal(size=(sum(LENGTHS), 4))) for _ in range(2))
W, B = ct.tensor(RNG.normal(size=(3, 4))), ct.tensor(RNG.normal(size=(3,)))


def nest(v: Any) -> Any:
    return nested.nested_tensor_from_jagged(v, lengths=ct.tensor(LENGTHS))


def both(f: Any, g: Any, *args: Any) -> None:
    """``f`` of the nest of rows and ``g`` of the rows agree, with all derivatives up to the second order."""
    a, b = (lambda v, *p: f(nest(v), *p)), g
    every = tuple(range(1 + len(args)))
    xs, ts = (VALUES, *args), (TANGENT, *[p.sin() for p in args])
    close(a(*xs), b(*xs), "value")
    for how in (
        lambda h: func.grad(h, argnums=every),
        lambda h: lambda *x: func.jvp(h, x, ts)[1],
        lambda h: lambda *x: func.jvp(func.grad(h, argnums=every), x, ts)[1],
        lambda h: func.grad(
            lambda *x: sum((u * v).sum() for u, v in zip(func.grad(h, argnums=every)(*x), ts, strict=True)),
            argnums=every,
        ),
    ):
        close(how(a)(*xs), how(b)(*xs), "derivative")


def number(f: Any) -> Any:
    return lambda *x: (f(*x).sin() ** 2).sum()


def test_linear_gives_input_weight_and_bias() -> None:
    both(number(F.linear), number(F.linear), W, B)
    leaves = [nest(VALUES).detach(), W.detach().requires_grad_(), B.detach()]
    F.linear(*leaves).sum().backward()
    assert leaves[0].grad is None and leaves[2].grad is None
    close(leaves[1].grad, func.grad(lambda w: F.linear(VALUES, w, B).sum())(W), "the weight alone")


def test_layer_norm_gives_input_weight_and_bias() -> None:
    f = lambda x, w, b: (F.layer_norm(x, (4,), w, b).sin() ** 2).sum()
    both(f, f, W[0], W[1])


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_takes_all_places_of_all_components(training: bool) -> None:
    mean, var = ct.zeros(4, dtype=ct.float64), ct.ones(4, dtype=ct.float64)
    f = number(
        lambda x, w, b: F.batch_norm(x.transpose(1, 2), mean.clone(), var.clone(), w, b, training=training).transpose(
            1, 2
        )
    )
    g = number(lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training=training))
    both(f, g, W[0], W[1])


def test_batch_norm_updates_running_statistics() -> None:
    stats = [[ct.zeros(4, dtype=ct.float64), ct.ones(4, dtype=ct.float64)] for _ in range(2)]
    F.batch_norm(nest(VALUES).transpose(1, 2), *stats[0], training=True)
    F.batch_norm(VALUES, *stats[1], training=True)
    close(stats[0], stats[1], "running statistics")


def test_losses_over_all_places() -> None:
    target = ct.tensor(RNG.integers(0, 4, size=len(VALUES)))
    both(lambda x: F.cross_entropy(x.transpose(1, 2), nest(target)), lambda v: F.cross_entropy(v, target))
    both(lambda x: F.mse_loss(x, nest(TANGENT)), lambda v: F.mse_loss(v, TANGENT))
    both(lambda x: F.smooth_l1_loss(x, nest(TANGENT)), lambda v: F.smooth_l1_loss(v, TANGENT))
    both(
        lambda x: F.binary_cross_entropy_with_logits(x, nest(TANGENT.sigmoid())),
        lambda v: F.binary_cross_entropy_with_logits(v, TANGENT.sigmoid()),
    )


def test_select_puts_the_gradient_into_the_slice() -> None:
    g = func.grad(lambda x: x.select(-1, 2).sum())(nest(VALUES))
    assert all((c[:, 2] == 1).all() and c.sum() == c.shape[0] for c in g.unbind())
    g = func.grad(lambda x: x[3].sum())(nest(VALUES))
    assert [c.sum().item() for c in g.unbind()] == [0, 0, 0, 20]


def test_sum_over_the_last_dim() -> None:
    for keep in (False, True):
        both(number(lambda x, keep=keep: x.sum(-1, keepdim=keep)), number(lambda v, keep=keep: v.sum(-1, keepdim=keep)))


def test_masks_and_bmm() -> None:
    x = nest(VALUES)
    close(list(ct.bmm(x, x.mT).unbind()), [c @ c.t() for c in x.unbind()], "bmm")
    close(x.masked_fill(x > 0, 0.0).values(), VALUES.masked_fill(VALUES > 0, 0.0), "masked_fill")
    y = F.scaled_dot_product_attention(x, x, x, attn_mask=(x @ x.mT) > 0)
    close(
        list(y.unbind()),
        [F.scaled_dot_product_attention(c, c, c, attn_mask=(c @ c.t()) > 0) for c in x.unbind()],
        "a mask for each component",
    )


def test_a_custom_op() -> None:
    @ct.custom_op
    def twice(x: Any) -> Any:
        return x.sin() * 2

    both(lambda x: twice(x).sum(), lambda v: twice(v).sum())


def test_16_bit_floats_are_rounded_once() -> None:
    x = nest(VALUES)
    for f in (lambda v: v.softmax(-1), lambda v: F.layer_norm(v, (4,)), lambda v: F.gelu(v)):
        got = f(x.to(ct.float16)).values()
        close(got.double(), f(VALUES.to(ct.float16)).double(), "float16")


@pytest.mark.parametrize("dtype", [ct.float64, ct.float32])
def test_compiled_loops_over_many_components(dtype: Any) -> None:
    """Large nests take compiled loops: the same numbers as component by component, empty ones among them."""
    lengths = RNG.integers(0, 40, size=4000)
    v = ct.tensor(RNG.normal(size=int(lengths.sum())), dtype=dtype)
    x = nested.nested_tensor_from_jagged(v, lengths=ct.tensor(lengths))
    some = [i for i in range(0, 4000, 97) if lengths[i]]
    tol = {"rtol": 1e-10 if dtype is ct.float64 else 2e-5, "atol": 1e-10 if dtype is ct.float64 else 2e-5}
    got = [x.softmax(-1), func.grad(lambda x: (x.softmax(-1) ** 2).sum())(x)]
    want = [lambda c: c.softmax(-1), func.grad(lambda c: (c.softmax(-1) ** 2).sum())]
    for y, f in zip(got, want, strict=True):
        parts = y.unbind()
        for i in some:
            np.testing.assert_allclose(parts[i].numpy(), f(x[i]).numpy(), **tol)
    sums = x.sum(-1).numpy()
    np.testing.assert_allclose(sums, [c.sum() for c in x.numpy()], **tol)
    assert (sums[lengths == 0] == 0).all()


def test_a_component_without_degrees_of_freedom_spoils_no_other() -> None:
    x = nest(VALUES)
    for f in (lambda c: c[..., 0].var(), lambda c: c[..., 0].std()):
        got = ct.vmap(func.grad(f))(x).unbind()
        for i in (0, 3):
            close(got[i], func.grad(f)(x[i]), f"component {i}")
        assert got[2][..., 0].isnan().all()
