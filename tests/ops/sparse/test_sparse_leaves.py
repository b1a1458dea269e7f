"""Derivatives in sparse tensors themselves: on the pattern or dense, accumulated, of second order, mapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, hessian, jacrev, jvp, linearize, vjp, vmap

INDEX = np.array([[0, 0, 1, 2], [0, 2, 1, 0]])
V = np.array([1.0, 2.0, 3.0, 4.0])
D = np.arange(6.0).reshape(3, 2)
D4 = cr.tensor(np.linspace(-1, 1, 8).reshape(4, 2))
ONES = np.zeros((3, 3))
ONES[tuple(INDEX)] = 1


def build(m: Any, layout: str = "coo", v: Any = None) -> Any:
    s = m.sparse_coo_tensor(m.tensor(INDEX), m.tensor(V) if v is None else v, (3, 3)).coalesce()
    return s if layout == "coo" else s.to_sparse_csr()


LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "mm": lambda m, x: (m.sparse.mm(x, m.tensor(D)) ** 2).sum(),
    "to_dense": lambda m, x: (x.to_dense() ** 2).sum(),
    "unmasked": lambda m, x: ((x.to_dense(masked_grad=False) + 1) ** 2).sum(),
    "values": lambda m, x: (x.values() ** 2).sum(),
    "product": lambda m, x: m.sparse.sum(x * x),
    "log1p": lambda m, x: m.sparse.sum(x.log1p()),
    "two uses": lambda m, x: (m.sparse.mm(x, m.tensor(D)) ** 2).sum() + (x.to_dense() ** 2).sum(),
    "both semantics": lambda m, x: (x.to_dense(masked_grad=False) ** 3).sum() + (x.to_dense() ** 2).sum(),
}


@pytest.mark.filterwarnings("ignore:Sparse", "ignore:log1p_backward")
@pytest.mark.parametrize("name", LOSSES)
def test_backward_into_a_leaf_is_pytorchs(name: str) -> None:
    def leaf(m: Any) -> Any:
        x = build(m).requires_grad_()
        LOSSES[name](m, x).backward()
        return x.grad

    ours, theirs = leaf(cr), leaf(torch)
    np.testing.assert_allclose(ours.to_dense().numpy(), theirs.to_dense().numpy(), atol=1e-12)
    assert ours.is_sparse == (name not in ("unmasked", "both semantics"))


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_gradients_lie_on_the_pattern(layout: str) -> None:
    s = build(cr, layout)
    g = grad(lambda s: (s @ cr.tensor(D)).sum())(s)
    assert g.layout is s.layout and g._nnz() == 4
    np.testing.assert_allclose(g.to_dense().numpy(), ONES * D.sum(1))
    y, pull = vjp(lambda s: s.sin(), s)
    for cotangent in (
        y,
        y.to_dense(),
        cr.ones(3, 3, dtype=cr.float64),
    ):  # sparse, or dense: what counts stands on the pattern
        want = ONES * cotangent.to_dense().numpy() * np.cos(s.to_dense().numpy())
        np.testing.assert_allclose(pull(cotangent)[0].to_dense().numpy(), want)


def test_gradients_accumulate() -> None:
    x = build(cr).requires_grad_()
    for _ in range(2):
        (x @ cr.tensor(D)).sum().backward()
    assert x.grad is not None and x.grad.is_sparse
    np.testing.assert_allclose(x.grad.to_dense().numpy(), 2 * ONES * D.sum(1))


def test_repeated_coordinates_get_a_gradient_each() -> None:
    twice = np.array([[0, 0, 1], [1, 1, 2]])
    x = cr.sparse_coo_tensor(cr.tensor(twice), cr.tensor([1.0, 2.0, 3.0]), (2, 3)).requires_grad_()
    (x.to_dense() ** 2).sum().backward()
    assert x.grad is not None
    assert x.grad._values().tolist() == [6.0, 6.0, 6.0]


def test_second_order() -> None:
    x = build(cr).requires_grad_()
    (g,) = cr.autograd.grad((x.to_dense() ** 3).sum(), x, create_graph=True)
    (h,) = cr.autograd.grad((g * g).sum(), x)
    dense = x.detach().to_dense().numpy()
    np.testing.assert_allclose(h.to_dense().numpy(), ONES * 36 * dense**3)
    s, t = build(cr), build(cr) * 2
    product = jvp(grad(lambda s: (s.to_dense() ** 3).sum()), (s,), (t,))[1]
    np.testing.assert_allclose(product.to_dense().numpy(), 12 * dense**2)
    other = grad(lambda s: jvp(lambda s: (s.to_dense() ** 3).sum(), (s,), (t,))[1])(s)
    np.testing.assert_allclose(other.to_dense().numpy(), 12 * dense**2)
    np.testing.assert_allclose(
        hessian(lambda s: (s.to_dense() ** 3).sum())(s).to_dense().numpy().reshape(9, 9), np.diag(6 * dense.reshape(-1))
    )


def test_forward_mode_with_any_tangent() -> None:
    s = build(cr)
    f = lambda s: s @ cr.tensor(D)
    want = ONES @ D
    for t in (cr.tensor(ONES), cr.tensor(ONES).to_sparse(), cr.ones(3, 3, dtype=cr.float64)):
        np.testing.assert_allclose(jvp(f, (s,), (t,))[1].numpy(), want)
    np.testing.assert_allclose(linearize(f, s)[1](s).numpy(), s.to_dense().numpy() @ D)
    jacobian = jacrev(f)(s).to_dense().numpy()
    np.testing.assert_allclose(
        jacobian, np.einsum("ik,kl,ij->ijkl", np.eye(3), ONES, np.ones((3, 2))) * D.T[None, :, None, :]
    )


@pytest.mark.parametrize("layout", ["coo", "csr", "bsr"])
def test_vmap_over_sparse_tensors(layout: str) -> None:
    dense = np.stack([ONES * k for k in (1.0, 2.0, 3.0)])
    s = {
        "coo": cr.tensor(dense).to_sparse,
        "csr": cr.tensor(dense).to_sparse_csr,
        "bsr": lambda: cr.tensor(dense).to_sparse_bsr((1, 3)),
    }[layout]()
    np.testing.assert_allclose(vmap(lambda s: s @ cr.tensor(D))(s).numpy(), dense @ D)
    twice = vmap(lambda s: s * 2)(s)
    assert twice.layout is s.layout and tuple(twice.shape) == (3, 3, 3)
    np.testing.assert_allclose(twice.to_dense().numpy(), 2 * dense)
    np.testing.assert_allclose((twice + s).to_dense().numpy(), 3 * dense)
    g = vmap(grad(lambda s: ((s @ cr.tensor(D)) ** 2).sum()))(s)
    pattern = np.ones((3, 3, 3)) if layout == "bsr" else dense != 0
    np.testing.assert_allclose(g.to_dense().numpy(), 2 * pattern * (dense @ D @ D.T))
    both = vmap(lambda s, x: s @ x)(s, cr.tensor(np.stack([D] * 3)))
    np.testing.assert_allclose(both.numpy(), dense @ D)


def test_vmap_over_another_dim_and_over_dense_operands() -> None:
    dense = np.stack([ONES, 2 * ONES])
    s = cr.tensor(dense.transpose(1, 0, 2).copy()).to_sparse()
    assert vmap(lambda s: s.sum(), in_dims=1)(s).tolist() == [4.0, 8.0]
    x = np.stack([D, 2 * D])
    np.testing.assert_allclose(vmap(lambda x: build(cr) @ x)(cr.tensor(x)).numpy(), build(cr).to_dense().numpy() @ x)
    scaled = vmap(lambda a: build(cr) * a)(cr.tensor([1.0, 3.0], dtype=cr.float64))
    np.testing.assert_allclose(scaled.to_dense().numpy()[1], 3 * build(cr).to_dense().numpy())


def test_to_sparse_under_vmap_shares_a_pattern() -> None:
    x = cr.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 0.0]])
    y = vmap(lambda r: r.to_sparse() * 3)(x)
    assert y._nnz() == 4  # two places in each of two examples
    np.testing.assert_allclose(y.to_dense().numpy(), 3 * x.numpy())


def test_different_patterns_are_refused() -> None:
    a = np.stack([ONES, np.eye(3)])
    for s in (cr.tensor(a).to_sparse(), cr.tensor(np.stack([ONES, ONES[::-1]])).to_sparse_csr()):
        with pytest.raises(cr.ChainruleError, match="different patterns"):
            vmap(lambda s: s.sum())(s)
    with pytest.raises(cr.ChainruleError, match="the indices differ between the examples"):
        vmap(lambda i: cr.sparse_coo_tensor(i, cr.ones(4), (3, 3)).sum())(cr.tensor(np.stack([INDEX, INDEX])))
    with pytest.raises(cr.ChainruleError, match="patterns of their own"):
        vmap(lambda s: s.sum())(build(cr, "csr"))


@pytest.mark.parametrize("padding", [None, 0])
def test_embedding_with_a_sparse_gradient(padding: int | None) -> None:
    rows = [[0, 2], [0, 1]]

    def table(m: Any) -> Any:
        w = m.tensor(np.arange(12.0).reshape(4, 3)).requires_grad_()
        y = m.nn.functional.embedding(m.tensor(rows), w, padding_idx=padding, sparse=True)
        (y**2).sum().backward()
        return w.grad

    ours, theirs = table(cr), table(torch)
    assert ours.is_sparse and ours.sparse_dim() == ours.dense_dim() == 1
    np.testing.assert_allclose(ours.to_dense().numpy(), theirs.to_dense().numpy())
    np.testing.assert_allclose(ours.coalesce().values().numpy()[-1], theirs.coalesce().values().numpy()[-1])


def test_embedding_bag_gather_and_steps_with_sparse_gradients() -> None:
    def run(m: Any) -> list[np.ndarray]:
        w = m.tensor(np.arange(8.0).reshape(4, 2)).requires_grad_()
        x = m.tensor(np.arange(6.0).reshape(2, 3)).requires_grad_()
        bag = m.nn.functional.embedding_bag(m.tensor([[0, 2], [3, 3]]), w, mode="sum", sparse=True)
        (bag**2).sum().backward()
        (m.gather(x, 1, m.tensor([[0, 0], [2, 1]]), sparse_grad=True) ** 2).sum().backward()
        assert w.grad.is_sparse and x.grad.is_sparse
        grads = [g.to_dense().numpy() for g in (w.grad, x.grad)]
        m.optim.SGD([w], lr=0.5).step()
        return [*grads, w.detach().numpy()]

    for a, b in zip(run(cr), run(torch), strict=True):
        np.testing.assert_allclose(a, b)


def test_sparse_gradients_of_second_order() -> None:
    i = cr.tensor([0, 2, 0])

    def loss(w: Any) -> Any:
        return (cr.nn.functional.embedding(i, w, sparse=True) ** 3).sum()

    w = cr.tensor(np.arange(6.0).reshape(3, 2))
    h = jvp(grad(loss), (w,), (cr.ones_like(w),))[1]
    dense = jvp(grad(lambda w: (cr.nn.functional.embedding(i, w) ** 3).sum()), (w,), (cr.ones_like(w),))[1]
    np.testing.assert_allclose(h.to_dense().numpy(), dense.numpy())


def test_gradcheck_of_sparse_inputs() -> None:
    check, x = cr.sparse.as_sparse_gradcheck(cr.autograd.gradcheck), build(cr).requires_grad_()
    assert check(lambda s: s @ cr.tensor(D), (x,), masked=True)
    assert check(lambda s: s.to_dense() ** 2, (x,), masked=False)
    assert cr.autograd.gradcheck(lambda s: s.sin(), (x,))
    assert cr.autograd.gradgradcheck(lambda s: s @ s, (x,))

    class Wrong(cr.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            return v * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.2

    with pytest.raises(RuntimeError, match="mismatch"):
        check(lambda s: Wrong.apply(s.values()), (x,), masked=True)


def test_optimizers_move_a_sparse_leaf() -> None:
    x = build(cr).requires_grad_()
    step = cr.optim.SGD([x], lr=0.1, momentum=0.9)
    for _ in range(3):
        step.zero_grad()
        ((x.to_dense() - 1) ** 2).sum().backward()
        step.step()
    assert x.is_sparse and x.requires_grad and x.is_leaf
    y = torch.tensor(V, requires_grad=True)
    same = torch.optim.SGD([y], lr=0.1, momentum=0.9)
    for _ in range(3):
        same.zero_grad()
        ((y - 1) ** 2).sum().backward()
        same.step()
    np.testing.assert_allclose(x.detach().values().numpy(), y.detach().numpy())


OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"momentum": 0.9},
    "Adam": {"amsgrad": True},
    "Adagrad": {"initial_accumulator_value": 0.3},  # a state that is not zero where nothing is stored either
    "Rprop": {},
    "RMSprop": {"centered": True},
    "Adamax": {"weight_decay": 0.1},
    "LBFGS": {},
}


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_the_numbers_of_sparse_leaves(name: str, layout: str) -> None:
    a = cr.tensor(np.array([[1.0, 5, 2, 0], [4, 3, 0, 0]]))
    mask = cr.tensor(np.array([[1.0, 1, 1, 1], [1, 1, 1, 1]])) if layout == "bsr" else (a != 0).to(a.dtype)
    x = (a + 0.0).to_sparse(layout=getattr(cr, f"sparse_{layout}"), blocksize=(2, 2) if layout == "bsr" else None)
    w, x = a.clone().requires_grad_(), x.requires_grad_()
    steps = [getattr(cr.optim, name)([p], lr=0.1, **OPTIMIZERS[name]) for p in (x, w)]
    outs = [lambda: x @ D4, lambda: (w * mask) @ D4]
    for _ in range(3):
        for step, f in zip(steps, outs, strict=True):

            def loss(step: Any = step, f: Any = f) -> Any:
                step.zero_grad()
                y = f().sin().sum()
                y.backward()
                return y

            step.step(loss)
        stored = (w.detach() * mask).numpy()
        np.testing.assert_allclose(x.detach().to_dense().numpy(), stored, atol=1e-12)
    assert x.layout is getattr(cr, f"sparse_{layout}") and x.is_leaf


@pytest.mark.parametrize("name", ["Muon", "Adafactor"])
def test_optimizers_of_whole_matrices_refuse_sparse_leaves(name: str) -> None:
    for x in (build(cr), build(cr).to_sparse_csr()):
        p = x.requires_grad_()
        (p @ cr.tensor(D)).sum().backward()
        with pytest.raises(RuntimeError, match="does not support sparse"):
            getattr(cr.optim, name)([p]).step()


def test_a_copy_into_another_layout() -> None:
    s = build(cr)
    y = cr.zeros(3, 3, dtype=s.dtype)
    np.testing.assert_array_equal(y.copy_(s).numpy(), s.to_dense().numpy())
    g = grad(lambda s: (cr.zeros(3, 3, dtype=s.dtype).copy_(s) ** 2).sum())(s)
    np.testing.assert_array_equal(g.to_dense().numpy(), 2 * s.to_dense().numpy())
    with pytest.raises(RuntimeError, match="sparse_mask"):
        s.copy_(y)


def test_sparse_adam_is_pytorchs() -> None:
    def run(m: Any) -> np.ndarray:
        w = m.tensor(np.arange(12.0).reshape(4, 3)).requires_grad_()
        step = m.optim.SparseAdam([w], lr=0.1)
        for k in range(4):
            step.zero_grad()
            rows = m.tensor([[0, 2, 0], [0, 1, 1]][k % 2])
            (m.nn.functional.embedding(rows, w, sparse=True) ** 2).sum().backward()
            step.step()
        return w.detach().numpy()

    np.testing.assert_allclose(run(cr), run(torch), atol=1e-12)
