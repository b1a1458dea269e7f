"""Linear algebra where it is delicate: singular matrices at high order, repeated values, gauges, failures, dtypes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import chainrule
from chainrule import linalg
from chainrule.func import grad, jvp

rng = np.random.default_rng(0)


def tensor(x, dtype=np.float64):
    return chainrule.tensor(np.asarray(x, dtype))


def directional(f, x, ts):
    """The mixed derivative of `f` at x along all of `ts`, by nested forward mode."""
    if not ts:
        return f(x)
    return jvp(lambda y: directional(f, y, ts[1:]), (x,), (ts[0],))[1]


def mixed_minors(a, es):
    """The same for the determinant: the coefficient of the product of all steps, by inclusion and exclusion of the columns."""
    n = len(a)
    total = 0.0
    for columns in itertools.permutations(range(n), len(es)):
        m = a.copy()
        for c, e in zip(columns, es, strict=True):
            m[:, c] = e[:, c]
        total += np.linalg.det(m)
    return total


@pytest.mark.parametrize("rank", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_det_any_rank_any_order(rank, order):
    a = rng.standard_normal((4, rank)) @ rng.standard_normal((rank, 4))
    es = [rng.standard_normal((4, 4)) for _ in range(order)]
    got = directional(linalg.det, tensor(a), [tensor(e) for e in es])
    assert float(got) == pytest.approx(mixed_minors(a, es), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("rank", [1, 3])
def test_det_reverse_over_reverse_over_reverse(rank):
    a = rng.standard_normal((3, rank)) @ rng.standard_normal((rank, 3))
    es = [rng.standard_normal((3, 3)) for _ in range(3)]

    def along(f, e):
        return lambda x: (grad(f)(x) * tensor(e)).sum()

    got = along(along(along(linalg.det, es[0]), es[1]), es[2])(tensor(a))
    assert float(got) == pytest.approx(mixed_minors(a, es), rel=1e-9, abs=1e-9)


def test_projector_on_repeated_eigenvectors():
    q = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    a, g = q @ np.diag([1.0, 2.0, 2.0, 5.0]) @ q.T, rng.standard_normal((4, 4))

    def f(x):
        v = linalg.eigh((x + x.mT) / 2)[1][:, 1:3]
        return (v @ v.mT * tensor(g)).sum()

    # The projector is the polynomial in A that is 1 at 2 and 0 at 1 and 5: its derivative needs no eigenvectors.
    t = rng.standard_normal((4, 4))
    h = 1e-5
    numeric = (float(f(tensor(a + h * t))) - float(f(tensor(a - h * t)))) / (2 * h)
    assert float((grad(f)(tensor(a)) * tensor(t)).sum()) == pytest.approx(numeric, rel=1e-6)


def test_nuclear_norm_of_the_identity():
    assert np.allclose(grad(lambda x: linalg.matrix_norm(x, "nuc"))(tensor(np.eye(3))).numpy(), np.eye(3))


@pytest.mark.parametrize(
    "loss",
    [
        lambda a: linalg.svd(a)[0].sum().real,
        lambda a: linalg.svd(a, False)[2].sum().real,
        lambda a: linalg.eigh(a + a.mH)[1].sum().real,
        lambda a: linalg.eig(a)[1].sum().real,
    ],
)
def test_phases_are_refused(loss):
    a = chainrule.tensor(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)))
    with pytest.raises(RuntimeError, match="phase"):
        grad(loss)(a)


def test_the_choice_among_repeated_vectors_is_refused():
    w = tensor(rng.standard_normal((3, 3)))
    with pytest.raises(RuntimeError, match="repeated"):
        grad(lambda a: (linalg.eigh(a)[1] * w).sum())(tensor(np.eye(3)))
    with pytest.raises(RuntimeError, match="repeated"):
        grad(lambda a: (linalg.svd(a)[0] * w).sum())(tensor(np.eye(3)))


def test_values_and_vectors_of_a_repeated_value_together():
    w = rng.standard_normal((3, 3))

    def rebuilt(a):
        values, vectors = linalg.eigh(a)
        return (vectors * values @ vectors.mT * tensor(w)).sum()

    assert np.allclose(grad(rebuilt)(tensor(np.eye(3))).numpy(), (w + w.T) / 2)


def test_qr_says_where_it_has_no_derivative():
    a = tensor(rng.standard_normal((4, 2)))
    with pytest.raises(RuntimeError, match="complete"):
        grad(lambda x: linalg.qr(x, "complete")[1].sum())(a)
    with pytest.raises(RuntimeError, match="mode='r'"):
        grad(lambda x: linalg.qr(x, "r")[1].sum())(a)


def test_singular_and_indefinite_matrices():
    a = tensor([[1.0, 2.0], [2.0, 4.0]])
    both = chainrule.stack([tensor(np.eye(2)), a])
    for f in (linalg.inv, lambda x: linalg.solve(x, tensor(np.ones((2, 1)))), linalg.lu_factor):
        with pytest.raises(linalg.LinAlgError):
            f(a)
    y, info = linalg.inv_ex(both)
    assert info.tolist() == [0, 2] and np.allclose(y[0].numpy(), np.eye(2))
    x, info = linalg.solve_ex(both, tensor(np.ones((2, 2, 1))))
    assert info.tolist() == [0, 2] and np.allclose(x[0].numpy(), 1)
    with pytest.raises(linalg.LinAlgError, match="leading minor of order 2"):
        linalg.cholesky(tensor([[1.0, 2.0], [2.0, 1.0]]))
    assert linalg.cholesky_ex(tensor([[1.0, 2.0], [2.0, 1.0]])).info.item() == 2
    assert linalg.det(a).item() == 0 and linalg.matrix_rank(a).item() == 1


def test_batched_substitution_equals_blas():
    a, b = rng.standard_normal((30, 6, 6)) + 3 * np.eye(6), rng.standard_normal((30, 6, 2))
    for upper, unit in itertools.product((False, True), repeat=2):
        many = linalg.solve_triangular(tensor(a), tensor(b), upper=upper, unitriangular=unit).numpy()
        each = [
            linalg.solve_triangular(tensor(x), tensor(y), upper=upper, unitriangular=unit).numpy() for x, y in zip(a, b)
        ]
        assert np.allclose(many, each, rtol=1e-10)


def test_elimination_equals_lapack():
    a = rng.standard_normal((30, 6, 6)) + 1j * rng.standard_normal((30, 6, 6))
    many = linalg.lu_factor(chainrule.tensor(a))
    for i in range(30):
        one = linalg.lu_factor(chainrule.tensor(a[i]))
        assert np.allclose(many.LU[i].numpy(), one.LU.numpy()) and many.pivots[i].tolist() == one.pivots.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize(
    "name", "svd svdvals eigh eigvalsh eig eigvals qr lu lu_factor inv det slogdet pinv matrix_exp cond".split()
)
def test_single_precision_stays(name, dtype):
    x = rng.standard_normal((3, 3)) + (1j * rng.standard_normal((3, 3)) if dtype is np.complex64 else 0)
    out = getattr(linalg, name)(tensor(x + x.conj().T, dtype))
    for y in out if isinstance(out, tuple) else (out,):
        assert y.dtype in (chainrule.float32, chainrule.complex64, chainrule.int32)


def test_matrix_exp_of_16_bit_floats() -> None:
    a = np.array([[0.5, -1.0], [2.0, 0.25]])
    for d in (chainrule.bfloat16, chainrule.float16):
        x = chainrule.tensor(a, dtype=d, requires_grad=True)
        y = chainrule.linalg.matrix_exp(x)
        want = chainrule.linalg.matrix_exp(chainrule.tensor(a, dtype=chainrule.float32))
        assert y.dtype is d and y.tolist() == want.to(d).tolist()
        y.sum().backward()
        assert x.grad.dtype is d


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_matrices_that_are_not_finite_come_back(value: float) -> None:
    """LAPACK looks for the singular vectors of an infinity for ever."""
    a = chainrule.tensor([[value, 1.0, 2.0], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0]], dtype=chainrule.float64)
    b = chainrule.ones(3, 1, dtype=chainrule.float64)
    for f in (
        chainrule.linalg.svd,
        chainrule.linalg.pinv,
        lambda a: chainrule.linalg.lstsq(a, b),
        lambda a: chainrule.linalg.svd(chainrule.stack([a, a])),
    ):
        with pytest.raises(RuntimeError, match="non-finite values"):
            f(a)
    for f in (grad(chainrule.linalg.det), chainrule.func.hessian(chainrule.linalg.det)):
        assert f(a).isnan().all()
