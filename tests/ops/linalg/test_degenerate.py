"""Repeated and nearly repeated eigenvalues and singular values: every order, both modes, against functions without a factorization."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

import chainrule
from chainrule import linalg
from chainrule.func import grad, hessian, jacfwd, jacrev, jvp, vmap
from chainrule.ops.linalg.common import apart

N = 4


def tensor(x):
    return chainrule.tensor(np.asarray(x))


def random(rng, *shape, cx=False):
    x = rng.standard_normal(shape)
    return x + 1j * rng.standard_normal(shape) if cx else x


def unitary(rng, n, cx):
    return np.linalg.qr(random(rng, n, n, cx=cx))[0]


def herm(a):
    return (a + a.mH) / 2


def dot(w, y):
    """The real inner product."""
    return (tensor(w).conj() * y).real.sum()


def along(f, a, directions, modes):
    """The mixed derivative of `f` at a along all directions, each in forward (f) or reverse (r) mode, the first one outermost."""
    if not modes:
        return f(a)

    def inner(x):
        return along(f, x, directions[1:], modes[1:])

    t = directions[0]
    if modes[0] == "f":
        return jvp(inner, (a,), (t,))[1]
    return (grad(inner)(a).conj() * t).real.sum()


def polar(a):
    x = a
    for _ in range(12):
        x = (x + linalg.inv(x).mH) / 2
    return x


def square_root(a):
    y, z = a, chainrule.eye(N, dtype=a.dtype)
    for _ in range(12):
        y, z = (y + linalg.inv(z)) / 2, (z + linalg.inv(y)) / 2
    return y


def step(a):
    """1 on eigenvalues above 1.5, 0 on those below."""
    one = chainrule.eye(N, dtype=a.dtype)
    x = a - 1.5 * one
    for _ in range(14):
        x = (x + linalg.inv(x)) / 2
    return (x + one) / 2


def spectral(f):
    def g(a):
        values, vectors = linalg.eigh(herm(a))
        return (vectors * f(values)) @ vectors.mH

    return g


def through_svd(f):
    return lambda a: f(*linalg.svd(a, False))


def through_eig(a):
    values, vectors = linalg.eig(a)
    y = (vectors * values.exp()) @ linalg.inv(vectors)
    return y if a.dtype.is_complex else y.real


def projector(a):
    v = linalg.eigh(herm(a))[1][:, 2:]
    return v @ v.mH


def trace(y):
    return linalg.diagonal(y).sum()


# A function through a factorization, the same without one, the kind of matrix, and the values at which it is smooth.
CASES = {
    "exp": (spectral(lambda v: v.exp()), lambda a: linalg.matrix_exp(herm(a)), "eigh", ([1, 1, 2, 2], [1, 1, 1, 1], [1, 2, 2, 2])),
    "sqrt": (spectral(lambda v: v.sqrt()), lambda a: square_root(herm(a)), "eigh", ([1, 1, 2, 2], [1, 2, 2, 2])),
    "rebuilt": (spectral(lambda v: v), herm, "eigh", ([1, 1, 2, 2], [0, 0, 0, 1])),
    "projector": (projector, lambda a: step(herm(a)), "eigh", ([1, 1, 2, 2], [0, 1, 2, 2])),
    "sum": (lambda a: linalg.eigvalsh(herm(a)).exp().sum(), lambda a: trace(linalg.matrix_exp(herm(a))), "eigh", ([1, 1, 2, 2], [1, 1, 1, 1])),
    "U S Vh": (through_svd(lambda u, s, vh: u * s @ vh), lambda a: a, "svd", ([1, 1, 2, 2], [1, 1, 1, 1], [0, 0, 1, 1])),
    "polar": (through_svd(lambda u, s, vh: u @ vh), polar, "svd", ([1, 1, 2, 2], [1, 1, 1, 1])),
    "gram": (through_svd(lambda u, s, vh: vh.mH * (s * s).exp() @ vh), lambda a: linalg.matrix_exp(a.mH @ a), "svd", ([1, 1, 2, 2], [0, 0, 1, 1])),
    "nuclear": (lambda a: linalg.matrix_norm(a, "nuc"), lambda a: trace(polar(a).mH @ a), "svd", ([1, 1, 2, 2], [1, 1, 1, 1])),
    "spectral norm": (lambda a: linalg.matrix_norm(a, 2) ** 2, lambda a: linalg.eigvalsh(herm(a.mH @ a))[-1], "svd", ([1, 1, 2, 3],)),
    "eig": (through_eig, linalg.matrix_exp, "eig", ([1, 1, 2, 2], [1, 1, 1, 1])),
}  # fmt: skip
EVERY = [(name, tuple(values)) for name, case in CASES.items() for values in case[3]]
MODES = ["f", "r", "ff", "fr", "rf", "rr", "frr", "rff"]


def matrix(rng, kind, values, cx):
    d = np.diag(np.asarray(values, float))
    if kind == "eig":
        m = unitary(rng, N, cx) + 0.3 * random(rng, N, N, cx=cx)
        return m @ d @ np.linalg.inv(m)
    q = unitary(rng, N, cx)
    a = q @ d @ (q if kind == "eigh" else unitary(rng, N, cx)).conj().T
    return (a + a.conj().T) / 2 if kind == "eigh" else a


@pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize(("name", "values"), EVERY, ids=str)
def test_every_order_in_every_nesting(name, values, cx):
    rng = np.random.default_rng(len(name))
    through, without, kind, _ = CASES[name]
    w = random(rng, N, N, cx=cx)
    a, es = tensor(matrix(rng, kind, values, cx)), [tensor(random(rng, N, N, cx=cx)) for _ in range(3)]

    def loss(f):
        def g(x):
            y = f(x)
            return dot(w, y) if y.ndim else y.real

        return g

    for modes in MODES:
        got, want = (float(along(loss(f), a, es, modes)) for f in (through, without))
        assert got == pytest.approx(want, rel=1e-9, abs=1e-9), modes


@pytest.mark.parametrize("gap", [0, 1e-14, 1e-12, 1e-9, 1e-6])
@pytest.mark.parametrize("values", [[1, 1, 3, 4], [1, 1, 1, 4], [1, 1, 2, 2]], ids=str)
def test_small_gaps_lose_no_digits(gap, values):
    """Against the divided differences of exp in 50 digits."""
    rng = np.random.default_rng(3)
    offsets = gap * np.array([0, 1, 2, 0]) if values[2] == 1 else gap * np.array([0, 1, 0, 0])
    v = np.asarray(values, float) + offsets
    e, w = (random(rng, N, N) for _ in range(2))
    e, w = (e + e.T) / 2, (w + w.T) / 2
    with mpmath.workdps(50):
        x = [mpmath.mpf(float(t)) for t in v]

        def first(s, t):
            return mpmath.exp(s) if s == t else (mpmath.exp(s) - mpmath.exp(t)) / (s - t)

        def second(s, t, u):
            if s == t == u:
                return mpmath.exp(s) / 2
            if s == u:
                s, t, u = s, u, t
            if s == t:
                return (mpmath.exp(s) - first(s, u)) / (s - u)
            return (first(s, u) - first(t, u)) / (s - t)

        d1 = np.array([[float(first(s, t)) for t in x] for s in x])
        d2 = np.array([[[float(second(s, t, u)) for u in x] for t in x] for s in x])
    want1 = np.sum(w * d1 * e)
    want2 = 2 * np.einsum("ij,jk,ik,ijk->", e, e, w, d2)
    f = spectral(lambda s: s.exp())
    a, t = tensor(np.diag(v)), [tensor(e)] * 2
    for modes in ("f", "r"):
        assert float(along(lambda x: dot(w, f(x)), a, t, modes)) == pytest.approx(want1, rel=1e-12)
    for modes in ("ff", "fr", "rf", "rr"):
        assert float(along(lambda x: dot(w, f(x)), a, t, modes)) == pytest.approx(want2, rel=1e-11)


def test_hessian_of_the_sum_of_squares_is_the_projection_on_symmetric_matrices():
    def f(a):
        return (linalg.eigvalsh(a) ** 2).sum()

    n = 3
    swap = np.einsum("il,jk->ijkl", np.eye(n), np.eye(n))
    want = np.einsum("ik,jl->ijkl", np.eye(n), np.eye(n)) + swap
    a = tensor(np.eye(n))
    for h in (hessian(f), jacrev(grad(f)), jacfwd(grad(f)), jacrev(jacfwd(f)), jacfwd(jacfwd(f))):
        assert np.allclose(h(a).numpy(), want, atol=1e-12)


def test_vmap_inside_and_outside_of_matrices_repeated_nearly_and_not_at_all():
    rng = np.random.default_rng(4)
    batch = np.stack(
        [matrix(rng, "eigh", v, False) for v in ([1, 1, 2, 2], [1, 2, 3, 4], [1, 1 + 1e-9, 1, 2], [1, 1, 1, 1])]
    )
    w, e = random(rng, N, N), tensor(random(rng, *batch.shape))

    def f(a):
        return dot(w, spectral(lambda v: v.exp())(a))

    def g(a):
        return dot(w, linalg.matrix_exp(herm(a)))

    x = tensor(batch)
    for transform in (
        lambda f: vmap(grad(f))(x),
        lambda f: grad(lambda a: vmap(f)(a).sum())(x),
        lambda f: vmap(lambda a, t: jvp(f, (a,), (t,))[1])(x, e),
        lambda f: jvp(vmap(f), (x,), (e,))[1],
        lambda f: vmap(hessian(f))(x),
        lambda f: vmap(lambda a, t: jvp(grad(f), (a,), (t,))[1])(x, e),
    ):
        assert np.allclose(transform(f).numpy(), transform(g).numpy(), rtol=1e-9, atol=1e-9)


def test_imperative_style_to_second_order():
    rng = np.random.default_rng(5)
    w, e = random(rng, 3, 3), tensor(random(rng, 3, 3))

    def second(f):
        a = tensor(np.eye(3)).requires_grad_()
        (g,) = chainrule.autograd.grad(f(a), a, create_graph=True)
        (h,) = chainrule.autograd.grad((g * e).sum(), a)
        f(a).backward()
        return g.detach().numpy(), h.numpy(), a.grad.numpy()

    for got, want in zip(
        second(lambda a: dot(w, spectral(lambda v: v.exp())(a))),
        second(lambda a: dot(w, linalg.matrix_exp(herm(a)))),
        strict=True,
    ):
        assert np.allclose(got, want, atol=1e-12)


def test_writes_after_the_factorization():
    rng = np.random.default_rng(11)
    w = random(rng, 3, 3)

    def f(a):
        values, vectors = linalg.eigh(a)
        scale = chainrule.full((3,), 2.0, dtype=chainrule.float64)
        y = values * scale
        scale.add_(5.0)  # what was multiplied stays what it was
        y[0] = 2.0 * values[0]
        y.exp_()
        return dot(w, (vectors * y) @ vectors.mT)

    got = grad(f)(tensor(np.eye(3))).numpy()
    assert np.allclose(got, 2 * np.exp(2) * (w + w.T) / 2, atol=1e-12)


def test_long_programs_do_not_recurse():
    def f(a):
        values = linalg.eigvalsh(a)
        for _ in range(3000):
            values = values * 1.0
        return (values**2).sum()

    e = tensor(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert float(along(f, tensor(np.eye(2)), [e, e], "rr")) == pytest.approx(4.0)


def test_what_leaves_a_transform_is_an_ordinary_tensor():
    g, value = chainrule.func.grad_and_value(lambda a: dot(np.ones((3, 3)), spectral(lambda v: v.exp())(a)))(
        tensor(np.eye(3))
    )
    y, t = jvp(lambda a: linalg.eigvalsh(a).exp(), (tensor(np.eye(3)),), (tensor(np.eye(3)),))
    assert all(x._interp is None for x in (g, value, y, t))


def test_pinv_at_constant_rank_with_repeated_values():
    rng = np.random.default_rng(6)
    u, v = unitary(rng, 4, False)[:, :2], unitary(rng, 3, False)[:, :2]
    w, es = random(rng, 3, 4), [tensor(random(rng, 2, 2)) for _ in range(2)]

    def direct(b):
        return dot(w, linalg.pinv(tensor(u) @ b @ tensor(v.T)))

    def want(b):
        return dot(w, tensor(v) @ linalg.inv(b) @ tensor(u.T))

    for modes in ("f", "r", "ff", "fr", "rf", "rr"):
        a, b = (float(along(f, tensor(np.eye(2)), es, modes)) for f in (direct, want))
        assert a == pytest.approx(b, rel=1e-10)


def test_two_factorizations_after_each_other():
    """The eigenvalues of A^(1/2) B A^(1/2) are those of A B."""
    rng = np.random.default_rng(7)
    b = np.eye(3)
    es = [tensor(random(rng, 3, 3)) for _ in range(2)]

    def root(a):
        v, q = linalg.eigh(herm(a))
        return (q * v.sqrt()) @ q.mT

    def f(a):
        r = root(a)
        return linalg.eigvalsh(herm(r @ tensor(b) @ r)).sqrt().sum()

    def g(a):
        v = linalg.eigvalsh(herm(a))
        return v.sqrt().sum()

    for modes in ("f", "r", "ff", "fr", "rf", "rr"):
        a, c = (float(along(h, tensor(np.eye(3)), es, modes)) for h in (f, g))
        assert a == pytest.approx(c, rel=1e-10, abs=1e-10), modes


FACTORS = {
    "eigh": lambda a: linalg.eigh(herm(a))[1],
    "U": lambda a: linalg.svd(a)[0],
    "Vh": lambda a: linalg.svd(a)[2],
    "eig": lambda a: linalg.eig(a)[1],
}


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", FACTORS)
def test_the_choice_of_vectors_is_refused_in_both_modes(name, cx, mode, scale):
    rng = np.random.default_rng(8)
    e = random(rng, 3, 3, cx=cx)
    a = tensor(np.eye(3, dtype=complex if cx else float))
    for read in (lambda v: v[0, 0].real, lambda v: (v**3).sum().real):

        def f(x, read=read):
            return scale * read(FACTORS[name](x))

        with pytest.raises(RuntimeError, match=r"repeated|phase"):
            grad(f)(a) if mode == "reverse" else jvp(f, (a,), (tensor(e + e.conj().T),))


def test_phases_are_refused_in_forward_mode():
    rng = np.random.default_rng(9)
    a, e = (tensor(random(rng, 3, 3, cx=True)) for _ in range(2))
    for factor in FACTORS.values():
        with pytest.raises(RuntimeError, match="phases"):
            jvp(lambda x, factor=factor: factor(x).sum().real, (a,), (e,))
        jvp(lambda x, factor=factor: factor(x).abs(), (a,), (e,))


@pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])
def test_the_choice_of_vectors_beyond_the_thin_factors_is_refused(cx):
    rng = np.random.default_rng(12)
    a, e, w = (random(rng, 4, 2, cx=cx) for _ in range(3))
    for x, t, f in (
        (a, e, lambda x: dot(w, linalg.svd(x)[0][:, 2:])),
        (a.T, e.T, lambda x: dot(w.T, linalg.svd(x)[2][2:])),
    ):
        with pytest.raises(RuntimeError, match="depends on which vectors"):
            grad(f)(tensor(x))
        with pytest.raises(RuntimeError, match="depends on which vectors"):
            jvp(f, (tensor(x),), (tensor(t),))

    def complement(x):
        u = linalg.svd(x)[0][:, 2:]
        return (u @ u.mH).abs() ** 2

    jvp(complement, (tensor(a),), (tensor(e),))
    grad(lambda x: complement(x).sum())(tensor(a))


def test_vectors_of_small_but_real_gaps_have_derivatives():
    a, e = np.diag([1.0, 1.0 + 1e-9, 2.0]), np.zeros((3, 3))
    e[0, 1] = e[1, 0] = 1.0
    gap = a[1, 1] - a[0, 0]
    loss = jvp(lambda x: linalg.eigh(x)[1][0, 1], (tensor(a),), (tensor(e),))[1]
    assert abs(float(loss)) == pytest.approx(1 / gap, rel=1e-6)
    assert grad(lambda x: linalg.eigh(x)[1][0, 1])(tensor(a)).abs().max().item() == pytest.approx(0.5 / gap, rel=1e-6)


def crowded(rng, n, dtype):
    """Random, with one value far above the others, so that their gaps are small compared with it."""
    return (rng.uniform(-1, 1, (n, n)) + 3).astype(dtype)


ALONE = {
    "svdvals": (linalg.svdvals, lambda a, w: np.linalg.svd(a)[0] * w @ np.linalg.svd(a)[2]),
    "eigvalsh": (lambda a: linalg.eigvalsh(herm(a)), lambda a, w: np.linalg.eigh((a + a.T) / 2)[1] * w @ np.linalg.eigh((a + a.T) / 2)[1].T),
}  # fmt: skip


@pytest.mark.parametrize("n", [30, 260])
@pytest.mark.parametrize("name", ALONE)
def test_values_alone_need_no_gap(name, n):
    f, want = ALONE[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, w = crowded(rng, n, np.float32), rng.standard_normal(n).astype(np.float32)
        got = grad(lambda x, w=w: dot(w, f(x)))(tensor(a)).numpy()
        exact = want(a.astype(float), w.astype(float))
        assert np.linalg.norm(got - exact) <= 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize("gap", [1e-5, 3e-5, 1e-4, 1e-3])
def test_vectors_of_small_gaps_in_32_bits(gap):
    """Compared with 64 bits at the same numbers, beside a value far above them."""
    rng = np.random.default_rng(13)
    u, v = unitary(rng, 30, False), unitary(rng, 30, False)
    values = np.array([100.0, *np.linspace(1, 4, 27), 5, 5 + 100 * gap])
    a = (u * values @ v.T).astype(np.float32)
    w = rng.standard_normal(a.shape)

    def gradient(dtype):
        def f(x):
            u, _, vh = linalg.svd(x)
            return dot(w.astype(dtype), u.abs()) + dot(w.T.astype(dtype), vh.abs())

        return grad(f)(tensor(a.astype(dtype))).numpy()

    got, want = gradient(np.float32), gradient(np.float64)
    # The vectors turn by the rounding of the matrix over the gap.
    assert np.linalg.norm(got - want) <= 10 * np.finfo(np.float32).eps / gap * np.linalg.norm(want)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_value_far_above_a_repeated_one_hides_no_choice(dtype):
    rng = np.random.default_rng(14)
    q = unitary(rng, 40, False)
    a = (q * np.array([1e3, *np.linspace(2, 3, 37), 1, 1]) @ q.T).astype(dtype)
    w = random(rng, 40, 40).astype(dtype)
    with pytest.raises(RuntimeError, match="repeated"):
        grad(lambda x: dot(w, linalg.eigh(herm(x))[1].abs()))(tensor(a))


def test_chance_gaps_of_large_matrices_start_no_germ():
    rng = np.random.default_rng(15)
    for n in (200, 300):
        a = random(rng, n, n).astype(np.float32)
        for s in (np.linalg.eigvalsh((a + a.T) / 2), np.linalg.svd(a)[1]):
            assert apart(s, zeros=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e6])
def test_no_false_alarms(dtype, scale):
    rng = np.random.default_rng(10)
    cx = np.dtype(dtype).kind == "c"
    for values, kind in itertools.product(([1, 2, 3, 4], [1, 1, 2, 2], [1, 1, 1, 1]), ("eigh", "svd")):
        a, e, w = (
            x.astype(dtype) for x in (matrix(rng, kind, values, cx), *(random(rng, N, N, cx=cx) for _ in range(2)))
        )
        f = CASES["rebuilt" if kind == "eigh" else "U S Vh"][0]
        want = (w + w.conj().T) / 2 if kind == "eigh" else w
        tol = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
        got = grad(lambda x, f=f, w=w: scale * dot(w, f(x)))(tensor(a)).numpy()
        assert np.allclose(got, scale * want, rtol=tol, atol=tol * scale)
        t = float(jvp(lambda x, f=f, w=w: scale * dot(w, f(x)), (tensor(a),), (tensor(e),))[1])
        assert t == pytest.approx(scale * np.sum(want.conj() * e).real, rel=tol, abs=10 * tol * scale)
        for modes in ("fr", "rf"):  # the second derivative is zero: nothing but rounding is left of large numbers
            es = [tensor(e), tensor(w)]
            t = float(along(lambda x, f=f, w=w: scale * dot(w, f(x)), tensor(a), es, modes))
            assert t == pytest.approx(0, abs=10 * tol * scale)
        # Constants, of which nothing but rounding is left.
        jvp(lambda x: scale * (linalg.svd(x, False)[0] @ linalg.svd(x, False)[0].mH), (tensor(a),), (tensor(e),))
        grad(lambda x: scale * (linalg.svd(x, False)[0].abs() ** 2).sum())(tensor(a))


@pytest.mark.parametrize("by", ["svdvals", "svd"])
def test_zeros_keep_their_value_where_a_derivative_is_taken(by):
    """Singular values that are zero up to rounding are the same numbers with a derivative and without one."""
    rng = np.random.default_rng(0)
    a = tensor(rng.standard_normal((5, 3)) @ rng.standard_normal((3, 5)))

    def entropy(a):
        s = linalg.svdvals(a) if by == "svdvals" else linalg.svd(a)[1]
        p = s**2 / (s**2).sum()
        return -(p * p.log()).sum()

    value = entropy(a)
    slope, same = chainrule.func.grad_and_value(entropy)(a)
    assert chainrule.allclose(same, value, rtol=1e-12)
    assert chainrule.allclose(entropy(a.clone().requires_grad_()).detach(), value, rtol=1e-12)
    t = tensor(rng.standard_normal((3, 5)))
    t = (a @ tensor(rng.standard_normal((5, 3)))) @ t  # within the range of a: the rank stays
    h = 1e-6
    difference = (entropy(a + h * t) - entropy(a - h * t)) / (2 * h)
    assert chainrule.allclose((slope * t).sum(), difference, rtol=1e-5)
    y, along_a = jvp(entropy, (a,), (a,))
    assert chainrule.allclose(y, value, rtol=1e-12)
    assert abs(float(along_a)) < 1e-9  # it does not depend on the scale
