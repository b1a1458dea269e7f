"""Rules of operators with several results: each result alone, each pair, all of them, in both modes; what no gauge fixes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import chainrule as cr
from chainrule.func import grad, jvp, vjp, vmap
from chainrule.ops.special.orders import ORDERED

from .judge import array, case, gradient, judge, laws, mathematics, row, same, values

CX = pytest.mark.parametrize("cx", [False, True], ids=["real", "complex"])
EPS = 1e-3


def signed(v: Any, rows: bool = False) -> Any:
    """Vectors times a phase that makes the first entry of each real and positive: what no gauge changes."""
    head = v[..., :, :1] if rows else v[..., :1, :]
    return v * (head.conj() if v.is_complex() else head) / head.abs()


def phased_eig(m: Any, a: Any) -> Any:
    w, v = m.linalg.eig(a)
    order = m.argsort(w.real.detach() + 3 * w.imag.detach())
    v = v[:, order]
    return w[order], v / v[:1]


def svd(m: Any, a: Any) -> Any:
    u, s, vh = m.linalg.svd(a, full_matrices=False)
    if not a.is_complex():
        return u, s, vh
    phase = u[..., :1, :] / u[..., :1, :].abs()  # moved from u to vh, so that the product stays
    return u / phase, s, vh * phase.mT


SEVERAL: dict[str, tuple[Any, list[tuple[int, ...]], bool]] = {
    "linalg.svd": (svd, [(3, 2)], True),
    "linalg.svd wide": (svd, [(2, 3)], True),
    "linalg.qr": (lambda m, a: m.linalg.qr(a), [(3, 2)], True),
    "linalg.qr wide": (lambda m, a: m.linalg.qr(a), [(2, 3)], True),
    "linalg.eig": (phased_eig, [(3, 3)], True),
    "linalg.eigh": (lambda m, a: (lambda w, v: (w, signed(v)))(*m.linalg.eigh((a + a.mH) / 2)), [(3, 3)], True),
    "linalg.lu": (lambda m, a: m.linalg.lu(a)[1:], [(3, 3)], True),
    "linalg.lu tall": (lambda m, a: m.linalg.lu(a)[1:], [(3, 2)], True),
    "linalg.lu wide": (lambda m, a: m.linalg.lu(a)[1:], [(2, 3)], True),
    "lu_unpack": (lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a))[1:], [(3, 3)], True),
    "linalg.slogdet": (lambda m, a: m.linalg.slogdet(a), [(3, 3)], True),
    "var_mean": (lambda m, a: m.var_mean(a, 1), [(2, 3)], False),
    "std_mean": (lambda m, a: m.std_mean(a, 1), [(2, 3)], False),
    "geqrf": (lambda m, a: m.geqrf(a), [(3, 2)], True),
    "native_group_norm": (
        lambda m, x, w, b: m.native_group_norm(x, w, b, 2, 4, 3, 2, EPS),
        [(2, 4, 3), (4,), (4,)],
        False,
    ),
    "native_layer_norm": (lambda m, x, w, b: m.native_layer_norm(x, (4,), w, b, EPS), [(3, 4), (4,), (4,)], False),
    "native_batch_norm": (
        lambda m, x, w, b: m.native_batch_norm(x, w, b, None, None, True, 0.1, EPS),
        [(3, 2, 4), (2,), (2,)],
        False,
    ),
}


@row("some_outputs")
@pytest.mark.parametrize("name", SEVERAL)
@CX
def test_each_result_alone_each_pair_and_all(name: str, cx: bool) -> None:
    f, shapes, complexes = SEVERAL[name]
    if cx and not complexes:
        return
    xs = [array(*s, cx=cx, seed=k) for k, s in enumerate(shapes)]
    n = len(f(cr, *map(cr.tensor, xs)))
    rng = np.random.default_rng(0)
    for size in range(1, n + 1):
        for picked in itertools.combinations(range(n), size):
            c = case(f"{name} {picked}", lambda m, *a, p=picked: tuple(f(m, *a)[k] for k in p), *xs)
            laws.check_tangent(c, rng)
            laws.check_dot(c, rng)
    # The cotangents of several results add up.
    ys, pull = vjp(lambda *a: tuple(f(cr, *a)), *map(cr.tensor, xs))
    gs = laws.like(rng, list(ys))
    parts = [pull(tuple(g if k == i else cr.zeros_like(g) for k, g in enumerate(gs))) for i in range(n)]
    for k, whole in enumerate(pull(tuple(gs))):
        same(sum(p[k].numpy() for p in parts), whole.numpy(), f"input {k}")


@row("some_outputs", "svd")
@CX
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (5, 2), (3, 3)], ids=str)
def test_svd_with_full_matrices(shape: tuple[int, int], cx: bool) -> None:
    m_ = shape[0]
    k = min(shape)

    def f(m, a):
        # The projectors on the vectors beyond those of the singular values, and products of them with the others.
        u, s, vh = m.linalg.svd(a, full_matrices=True)
        u2, v2 = u[:, k:], vh[k:].mH
        first = u[:, :k] * s @ vh[:k]
        return s, u2 @ u2.mH, v2 @ v2.mH, first, (u2 @ u2.mH) @ m.tensor(weights[0]) + 2 * (u @ u.mH)

    weights = [array(m_, m_, cx=cx, seed=9)]
    a = array(*shape, cx=cx)
    mathematics(case("linalg.svd", f, a))
    u = cr.linalg.svd(cr.tensor(a))[0].numpy()
    if m_ > k:  # by hand: dP2 = -(dA A^+ + (..)^H) on the complement
        t = array(*shape, cx=cx, seed=3)
        got = jvp(lambda a: f(cr, a)[1], (cr.tensor(a),), (cr.tensor(t),))[1].numpy()
        p2 = u[:, k:] @ u[:, k:].conj().T
        cross = p2 @ t @ np.linalg.pinv(a)
        same(got, -(cross + cross.conj().T), "the projector on what is left", tol=1e-8)


@row("svd", "eig", "gauge")
def test_results_that_depend_on_the_gauge_raise() -> None:
    z = cr.tensor(array(3, 3, cx=True))
    losses = {
        "U": lambda a: cr.linalg.svd(a)[0].real.sum(),
        "Vh": lambda a: cr.linalg.svd(a)[2].real.sum(),
        "Vh imaginary": lambda a: cr.linalg.svd(a)[2].imag.sum(),
        "eigh": lambda a: cr.linalg.eigh((a + a.mH) / 2)[1].imag.sum(),
        "eig": lambda a: cr.linalg.eig(a)[1].imag.sum(),
    }
    for what, f in losses.items():
        for scale in (1.0, 1e-6, 1e6):
            with pytest.raises(RuntimeError, match=r"gauge|phase"):
                grad(lambda a, f=f, scale=scale: scale * f(a))(z)
                pytest.fail(what)
    tall = cr.tensor(array(4, 2))
    with pytest.raises(RuntimeError, match="full_matrices"):
        grad(lambda a: cr.linalg.svd(a)[0][:, 3].sum())(tall)
    with pytest.raises(RuntimeError, match="full_matrices"):
        grad(lambda a: cr.linalg.svd(a)[2][3].sum())(cr.tensor(array(2, 4)))


@row("svd", "eig", "gauge")
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3, 1e6])
def test_no_false_alarm_in_single_precision(scale: float) -> None:
    for n, seed in itertools.product((3, 8, 20), range(3)):
        a = cr.tensor(array(n, n, cx=True, seed=seed).astype(np.complex64))
        for f in (
            lambda a: (cr.linalg.svd(a)[0].abs() ** 3).sum() + (cr.linalg.svd(a)[2].abs() ** 3).sum(),
            lambda a: (lambda w, v: (v.abs() ** 3).sum() * w.sum())(*cr.linalg.eigh(a + a.mH)),
            lambda a: (cr.linalg.eig(a)[1].abs() ** 3).sum(),
        ):
            grad(lambda a, f=f: scale * f(a))(a)


@row("qr")
def test_qr_modes_that_have_no_derivative_say_so_in_forward_mode() -> None:
    a = cr.tensor(array(4, 2))
    with pytest.raises(RuntimeError, match="mode='r'"):
        jvp(lambda a: cr.linalg.qr(a, mode="r")[1], (a,), (a,))
    with pytest.raises(RuntimeError, match="complete"):
        jvp(lambda a: cr.linalg.qr(a, mode="complete")[1], (a,), (a,))
    with pytest.raises(RuntimeError, match="complete"):
        vmap(lambda t: jvp(lambda a: cr.linalg.qr(a, mode="complete")[0], (a,), (t,))[1])(cr.stack([a, a]))


@row("triangular")
@pytest.mark.filterwarnings("ignore:torch.triangular_solve is deprecated")
@CX
def test_the_second_result_of_triangular_solve(cx: bool) -> None:
    b, a = array(3, 2, cx=cx), array(3, 3, cx=cx, seed=1) + 3 * np.eye(3)
    for upper, transpose, unit in itertools.product((False, True), repeat=3):
        f = lambda m, b, a, how=(upper, transpose, unit): m.triangular_solve(b, a, *how)
        judge("triangular_solve", f, b, a, oracle="value")
        second = lambda m, b, a, how=(upper, transpose, unit): m.triangular_solve(b, a, *how)[1]
        gb, ga = gradient(second, b, a)
        same(gb, np.zeros_like(b), "the coefficients do not depend on b")
        same(ga, np.ones_like(a), "they are a copy of a")


# -- indices --------------------------------------------------------------------------------------------------------------

INDICES: dict[str, tuple[Any, Any]] = {
    "gather": (lambda x, i: cr.gather(x, 1, i), (2, 2)),
    "take": (lambda x, i: cr.take(x, i), (4,)),
    "take_along_dim": (lambda x, i: cr.take_along_dim(x, i, 1), (2, 2)),
    "index_select": (lambda x, i: cr.index_select(x, 1, i), (2,)),
    "index": (lambda x, i: x[:, i], (2,)),
    "index_both": (lambda x, i: x[i % 2, i], (3,)),
    "scatter": (lambda x, i: cr.scatter(x, 1, i, 3 * x[:, :2]), (2, 2)),
    "scatter_add": (lambda x, i: cr.scatter_add(x, 1, i, 3 * x[:, :2]), (2, 2)),
    "index_add": (lambda x, i: cr.index_add(x, 1, i, x[:, :2] ** 2), (2,)),
    "index_put": (lambda x, i: cr.index_put(x, (i % 2, i), x[0, :2], accumulate=True), (2,)),
    "index_copy": (lambda x, i: cr.index_copy(x, 1, i, x[:, :1] ** 2), (1,)),
    "index_fill": (lambda x, i: cr.index_fill(x, 1, i, 2.0), (2,)),
    "embedding": (lambda x, i: cr.nn.functional.embedding(i % 2, x), (2, 2)),
}


@row("indexing")
@pytest.mark.parametrize("name", INDICES)
def test_vmap_over_index_tensors(name: str) -> None:
    f, shape = INDICES[name]
    rng = np.random.default_rng(4)
    x, t = cr.tensor(array(3, 2, 3)), cr.tensor(array(3, 2, 3, seed=1))
    i = cr.tensor(rng.integers(0, 3, (3, *shape)))
    rules = {
        "value": f,
        "gradient": lambda x, i: grad(lambda x: (f(x, i) ** 3).sum())(x),
        "tangent": lambda x, i: jvp(lambda x: f(x, i) ** 3, (x,), (t[0],))[1],
        "second": lambda x, i: jvp(grad(lambda x: (f(x, i) ** 3).sum()), (x,), (t[1],))[1],
    }
    for what, rule in rules.items():
        for dims in ((None, 0), (0, 0)):
            got = vmap(rule, in_dims=dims)(x[0] if dims[0] is None else x, i)
            for k in range(3):
                want = rule(x[0] if dims[0] is None else x[k], i[k])
                same(got[k].numpy(), want.numpy(), f"{what} {dims}")


# -- strides ----------------------------------------------------------------------------------------------------------------

OVERLAPS = [((3, 2), (1, 1), 0), ((2, 3), (2, 1), 1), ((2, 3), (1, 2), 0), ((3, 3), (1, 1), 2)]


@row("as_strided")
@pytest.mark.parametrize("where", OVERLAPS, ids=str)
@CX
def test_as_strided_scatter_with_overlap(where: tuple[Any, ...], cx: bool) -> None:
    size, stride, offset = where
    x, s = array(8, cx=cx), array(*size, cx=cx, seed=1)
    f = lambda m, x, s: m.as_strided_scatter(x * 1.0, s, size, stride, offset)
    values(f, x, s)
    # Where entries of s share a place the last one is there: it alone gets the gradient, and x gets none.
    places = offset + sum(np.arange(n).reshape([-1 if k == d else 1 for k in range(len(size))]) * st
                          for d, (n, st) in enumerate(zip(size, stride, strict=True)))  # fmt: skip
    flat = places.ravel()
    last = np.zeros(flat.size, bool)
    for p in np.unique(flat):
        last[np.flatnonzero(flat == p)[-1]] = True
    gx, gs = gradient(f, x, s)
    want = np.ones_like(x)
    want[np.unique(flat)] = 0
    same(gx, want, "what is left of x")
    same(gs, last.reshape(size).astype(s.dtype), "the last of those that share a place")
    mathematics(case("as_strided_scatter", f, x, s))


@row("as_strided")
def test_as_strided_scatter_into_what_overlaps() -> None:
    for made in (lambda m, x: x.expand(2, 4), lambda m, x: (x * 1.0).as_strided((3, 2), (1, 1))):
        f = lambda m, x, s, made=made: m.as_strided_scatter(made(m, x), s, (2,), (1,), 1)
        judge("as_strided_scatter", f, array(4), array(2, seed=1), oracle="value", vmap=False)
    for size, stride in (((2, 2), (0, 1)), ((4,), (0,))):
        with pytest.raises(RuntimeError, match="one place"):
            cr.as_strided_scatter(cr.zeros(8), cr.ones(*size), size, stride, 1)


# -- a nest of no components --------------------------------------------------------------------------------------------------


@row("nested.softmax", "nested.layer_norm", "nested.linear", "nested.sum", "nested.activations")
def test_a_nest_of_no_components() -> None:
    none = cr.nested.from_padded(cr.zeros(0, 3, 4, dtype=cr.float64), np.zeros((0, 1), np.int64))
    assert none.is_nested and int(none.shape[0]) == 0
    w, b = cr.tensor(array(2, 4)), cr.tensor(array(2, seed=1))
    v = cr.tensor(array(4, seed=2))
    F = cr.nn.functional
    programs = {
        "softmax": lambda x: F.softmax(x, -1),
        "layer_norm": lambda x: F.layer_norm(x, (4,), v, v),
        "linear": lambda x: F.linear(x, w, b),
        "sum": lambda x: x.sum(-1),
        "sum kept": lambda x: x.sum(-1, True),
        "gelu": F.gelu,
        "silu": F.silu,
        "relu": F.relu,
    }
    for name, f in programs.items():
        y = f(none)
        assert int(y.shape[0]) == 0 and y.numel() == 0, name
        g = grad(lambda x, f=f: (f(x) ** 2).sum())(none)
        assert g.is_nested and int(g.shape[0]) == 0, name
        assert jvp(lambda x, f=f: (f(x) ** 2).sum(), (none,), (none,))[1].item() == 0, name
        h = jvp(grad(lambda x, f=f: (f(x) ** 2).sum()), (none,), (none,))[1]
        assert h.is_nested and int(h.shape[0]) == 0, name
    gw, gb = grad(lambda w, b: (F.linear(none, w, b) ** 2).sum(), argnums=(0, 1))(w, b)
    assert not gw.numpy().any() and gw.shape == w.shape and not gb.numpy().any() and gb.shape == b.shape
    gv = grad(lambda v: (F.layer_norm(none, (4,), v, v) ** 2).sum())(v)
    assert gv.shape == v.shape and not gv.numpy().any()


# -- what is missing ------------------------------------------------------------------------------------------------------------


MATRIX = cr.tensor([[4.0, 1.0], [1.0, 3.0]], dtype=cr.float64)


@row("missing_rule")
@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda v: ORDERED["jv"](v, MATRIX).sum(), "jv has no derivative in the order"),
        (lambda a: cr.linalg.qr(a, mode="r")[1].sum(), r"linalg.qr: The derivative depends on Q.*mode='r'"),
    ],
    ids=["jv", "qr"],
)
def test_operators_say_what_is_missing_in_every_mode(f: Any, said: str) -> None:
    x = MATRIX
    for run in (
        lambda: grad(f)(x),
        lambda: vjp(f, x)[1](cr.tensor(1.0, dtype=cr.float64)),
        lambda: jvp(f, (x,), (x,)),
        lambda: cr.func.hessian(f)(x),
        lambda: cr.func.jacfwd(f)(x),
        lambda: vmap(grad(f))(cr.stack([x, x])),
        lambda: f(x.clone().requires_grad_()).backward(),
        lambda: cr.autograd.grad(f(z := x.clone().requires_grad_()), z),
    ):
        with pytest.raises(RuntimeError, match=said):
            run()


@row("missing_rule")
@pytest.mark.parametrize("diagonal", [0.05, 20.0])
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("cx", [False, True])
def test_the_factors_of_an_indefinite_matrix(cx: bool, hermitian: bool, diagonal: float) -> None:
    # A small diagonal asks for blocks of two rows and for interchanges; a large one for neither.
    n = 5
    a, b = array(n, n, cx=cx, seed=3), array(n, 2, cx=cx, seed=4)
    a[np.arange(n), np.arange(n)] *= diagonal
    assert (cr.linalg.ldl_factor(cr.tensor(a), hermitian=hermitian).pivots.numpy() < 0).any() == (diagonal < 1)

    def solved(m: Any, a: Any, b: Any) -> Any:
        return m.linalg.ldl_solve(*m.linalg.ldl_factor(a, hermitian=hermitian), b, hermitian=hermitian)

    def mirrored(m: Any, a: Any) -> Any:
        low, d = m.tril(a, -1), m.diagonal(a)
        d = d.real.to(d.dtype) if hermitian else d
        return low + (low.mT.conj() if hermitian else low.mT) + m.diag_embed(d)

    mathematics(case("ldl_factor", lambda m, a: m.linalg.ldl_factor(a, hermitian=hermitian).LD, a))
    mathematics(case("ldl_factor_ex", lambda m, a: m.linalg.ldl_factor_ex(a, hermitian=hermitian).LD, a), vmap=False)
    mathematics(case("ldl_solve", solved, a, b))
    # The lower triangle alone is read: the solution is that of a dense system with its mirror image.
    got, want = gradient(solved, a, b), gradient(lambda m, a, b: m.linalg.solve(mirrored(m, a), b), a, b)
    for g, w in zip(got, want, strict=True):
        same(g, w, "gradient of ldl_solve", 1e-8)


@row("missing_rule")
def test_what_has_a_derivative_is_no_silent_zero() -> None:
    x = array(4)
    for name, f in {
        "geqrf": lambda m, x: m.geqrf(x.reshape(2, 2)),
        "unique": lambda m, x: m.unique(x),
        "histogram": lambda m, x: m.histogram(x, 3)[1],
    }.items():
        mathematics(case(name, f, x), vmap=name != "unique")
        assert np.abs(gradient(f, x)[0]).max() > 0.1, name


@row("warning")
def test_the_warning_comes_once_a_backward() -> None:
    x = cr.tensor(array(3), requires_grad=True)
    y = cr._test_warn_in_autograd(x)
    for _ in range(2):
        with pytest.warns(UserWarning, match="Warn from backward") as seen:
            (g,) = cr.autograd.grad((y * y).sum(), x, retain_graph=True)
        assert len(seen) == 1
        same(g.numpy(), 2 * x.detach().numpy(), "gradient")
