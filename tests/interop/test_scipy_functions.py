"""chainrule.scipy and scipy.special's ufuncs: forward and reverse mode, and second order, against central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats

import chainrule
from chainrule.func import elementwise_grad, grad, jvp, vmap
from chainrule.scipy import integrate, linalg, optimize, signal, special, stats

P = np.array([1.3, 0.7])
A = np.array([[4.0, 1.0, 0.2], [0.3, 5.0, 0.7], [0.1, -0.4, 6.0]])
B = np.array([0.3, -0.5, 1.1])
spd = lambda a: a @ a.T


def pendulum(t: Any, y: Any, p: Any) -> Any:
    return np.stack([y[1] * p[0], -p[1] * np.sin(y[0]) + 0.1 * t])


CASES: dict[str, tuple[Any, np.ndarray]] = {
    "root": (
        lambda p: (
            optimize.root(
                lambda v, q: np.stack([v[0] ** 2 + q[0] * v[1] - 3, np.sin(v[1]) * q[1] + v[0] - 1]),
                np.ones(2),
                args=(p,),
                tol=1e-13,
            ).x
        ),
        P,
    ),
    "fsolve closure": (lambda p: optimize.fsolve(lambda v: v**3 + p * v - 2, np.ones(2)), P),
    "minimize": (
        lambda p: (
            optimize.minimize(
                lambda v, q: np.sum((v - q) ** 2) + 0.1 * np.sum(v**4) + v[0] * v[1] * q[0],
                np.zeros(2),
                args=(p,),
                method="trust-exact",
                options={"gtol": 1e-12},
            ).x
        ),
        P,
    ),
    "quad": (lambda p: integrate.quad(lambda t: np.exp(-p[0] * t * t) * np.cos(p[1] * t), 0, p[1])[0], P),
    "quad infinite": (
        lambda p: integrate.quad(lambda t: np.exp(-p[0] * t * t) * np.cos(p[1] * t), -np.inf, np.inf)[0],
        P,
    ),
    "quad half": (lambda p: integrate.quad(lambda t: np.exp(-p[0] * t), p[1], np.inf)[0], P),
    "solve_ivp": (
        lambda p: (
            integrate.solve_ivp(
                pendulum, (0, 1.0), np.array([1.0, 0.0]), args=(p,), rtol=1e-10, atol=1e-10, t_eval=[0.5, 1.0]
            ).y
        ),
        P,
    ),
    "solve_ivp ends": (
        lambda p: integrate.solve_ivp(lambda t, y: -(y**2), (0, p[1]), p, method="DOP853", rtol=1e-12, atol=1e-12).y[
            :, -1
        ],
        P,
    ),
    "odeint": (
        lambda p: integrate.odeint(lambda y, t, q: -q * y, np.array([1.0, 2.0]), np.linspace(0, 1, 4), args=(p,)),
        P,
    ),
    "solve_ivp times": (
        lambda p: (
            integrate.solve_ivp(
                pendulum, (0, 2.0), np.array([1.0, 0.0]), args=(P,), rtol=1e-10, atol=1e-10, t_eval=np.sort(p)
            ).y
        ),
        P,
    ),
    "solve_ivp a fixed time at the end": (
        lambda p: (
            integrate.solve_ivp(
                pendulum, (0, p[0]), np.array([1.0, 0.0]), args=(p,), rtol=1e-10, atol=1e-10, t_eval=[0.5, 1.2]
            ).y
        ),
        P,
    ),
    "odeint times": (
        lambda p: integrate.odeint(lambda y, t, q: -q * y * t, np.array([1.0, 2.0]), np.cumsum(p), args=(p,)),
        P,
    ),
    "simpson": (lambda a: integrate.simpson(a, dx=0.5), A),
    "simpson at points": (
        lambda a: np.stack([integrate.simpson(a[0][:n], x=np.cumsum(a[1][:n] ** 2)) for n in (2, 4, 5)]),
        np.random.default_rng(0).uniform(0.5, 1.5, (2, 5)),
    ),
    "trapezoid": (lambda a: integrate.trapezoid(a), A),
    "expm": (lambda a: linalg.expm(a * 0.2), A),
    "logm": (linalg.logm, A),
    "sqrtm": (linalg.sqrtm, A),
    "solve_sylvester": (lambda a: linalg.solve_sylvester(a, a.T, a @ a), A),
    "lyapunov": (lambda a: linalg.solve_continuous_lyapunov(a, a @ a), A),
    "solve_toeplitz": (
        lambda c: linalg.solve_toeplitz((c + 3 * np.array([1.0, 0, 0]), c * 0.5), B),
        np.array([1.0, 0.6, 0.4]),
    ),
    "toeplitz": (lambda c: linalg.toeplitz(c), B),
    "solve_triangular": (lambda a: linalg.solve_triangular(a, B, trans="T", lower=True), A),
    "cho_solve": (lambda a: linalg.cho_solve(linalg.cho_factor(spd(a)), B), A),
    "solve_banded": (lambda a: linalg.solve_banded((1, 1), a + np.array([[0], [5.0], [0]]), B), A),
    "solve": (lambda a: linalg.solve(a, B), A),
    "convolve": (lambda a: signal.convolve(a, A[:2, :2], "same"), A),
    "logsumexp": (lambda a: special.logsumexp(a, axis=0, b=np.array([[1.0], [2.0], [0.5]])), A * 0.2),
    "softmax": (lambda a: special.softmax(a, axis=1), A * 0.2),
    "norm": (
        lambda p: stats.norm.logpdf(B, p[0], p[1]) + stats.norm.cdf(B, p[0], p[1]) + stats.norm.logcdf(B, loc=p[0]),
        P,
    ),
    "gamma": (lambda p: stats.gamma.logpdf(np.abs(B), p[0], scale=p[1]), P),
    "beta": (lambda p: stats.beta.pdf(np.abs(B) * 0.5, p[0], p[1]), P),
    "t": (lambda p: stats.t.logpdf(B, p[0] + 2, 0.1, p[1]), P),
    "chi2": (lambda p: stats.chi2.logpdf(np.abs(B), p[0] + 1), P),
    "poisson": (lambda p: stats.poisson.pmf(np.array([0, 1, 3]), p[0]), P),
    "mvn": (lambda a: stats.multivariate_normal.logpdf(B, B * 0.5, spd(a)), A),
    "dirichlet": (lambda p: stats.dirichlet.logpdf(np.array([0.3, 0.7]), p), P),
}
UFUNCS = (
    "erf erfc erfinv expit logit gammaln digamma psi i0 i0e i1 i1e j0 j1 y0 y1 k0 k1 k0e k1e ndtr ndtri log_ndtr gamma rgamma log_expit exprel exp10 "
    "cosm1 entr loggamma sindg cosdg tandg erfcx erfcinv dawsn expi exp1 spence ellipk ellipe"
).split()
BINARY = "xlogy xlog1py beta betaln binom rel_entr kl_div boxcox huber pseudo_huber zeta".split()
ORDERED = "jv yv iv kv ive kve".split()
CASES |= {n: (lambda p, u=n: getattr(scipy.special, u)(p * 0.4), P) for n in UFUNCS}
CASES |= {n: (lambda p, u=n: getattr(scipy.special, u)(np.array([1.6, 2.3]), p), P) for n in (*BINARY, *ORDERED)}


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    f, x = CASES[name]
    loss = lambda v: np.sum(np.sin(f(v) * 1.1))
    d = np.random.default_rng(1).normal(size=x.shape)
    e = 1e-5
    g = grad(loss)(x)
    tol = 2e-5 if name == "minimize" else 1e-6
    assert np.sum(g * d) == pytest.approx((loss(x + e * d) - loss(x - e * d)) / (2 * e), rel=tol, abs=1e-7)
    assert jvp(loss, (x,), (d,))[1] == pytest.approx(np.sum(g * d), rel=1e-8, abs=1e-10)
    second = np.sum(jvp(grad(loss), (x,), (d,))[1] * d)
    assert second == pytest.approx(
        np.sum((grad(loss)(x + e * d) - grad(loss)(x - e * d)) * d) / (2 * e), rel=2e-5, abs=1e-5
    )


SHAPES: dict[str, tuple[float, ...]] = {
    "norm": (), "expon": (), "cauchy": (), "logistic": (), "laplace": (), "uniform": (), "gamma": (1.3,), "chi2": (3.0,), "beta": (1.3, 2.7),
    "t": (2.5,), "lognorm": (0.7,), "weibull_min": (1.7,), "invgamma": (2.5,),
}  # fmt: skip


@pytest.mark.parametrize("what", ["logpdf", "pdf", "cdf", "sf", "logcdf", "logsf"])
@pytest.mark.parametrize("name", SHAPES)
def test_densities_are_scipys(name: str, what: str) -> None:
    """Values where a family lives and outside, derivatives where they are finite; parameters by place, by name, and frozen."""
    x, a = np.array([-1.2, -0.1, 0.3, 0.6, 0.9, 1.3, 4.0]), SHAPES[name]
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    with np.errstate(all="ignore"):
        want = getattr(theirs, what)(x, *a, 0.1, 1.7)
        high, low = (getattr(theirs, what)(x + e, *a, 0.1, 1.7) for e in (1e-6, -1e-6))
        differences = (high - low) / 2e-6
    got = getattr(ours, what)(x, *a, 0.1, 1.7)
    np.testing.assert_allclose(got, want, rtol=1e-10)
    names = [s.strip() for s in (theirs.shapes or "").split(",") if s]
    by_name = dict(reversed([*zip(names, a, strict=True), ("loc", 0.1), ("scale", 1.7)]))
    np.testing.assert_array_equal(getattr(ours, what)(x, **by_name), got)
    np.testing.assert_array_equal(getattr(ours(*a, loc=0.1, scale=1.7), what)(x), got)
    live = np.isfinite(want)
    slope = elementwise_grad(lambda v: np.where(live, getattr(ours, what)(v, *a, 0.1, 1.7), 0.0))(x)
    np.testing.assert_allclose(slope[live], differences[live], rtol=1e-5, atol=1e-7)


def test_probabilities_are_scipys() -> None:
    k = np.array([-1.0, 0.0, 1.5, 2.0, 7.0])
    for name, a in {"poisson": (2.2,), "binom": (5, 0.3), "bernoulli": (0.3,)}.items():
        ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
        np.testing.assert_allclose(ours.logpmf(k, *a), theirs.logpmf(k, *a), rtol=1e-12)
        np.testing.assert_allclose(ours(*a).pmf(k), theirs.pmf(k, *a), rtol=1e-12)
    np.testing.assert_allclose(stats.poisson.cdf(k, 2.2), scipy.stats.poisson.cdf(k, 2.2))
    want = np.sum([0, 1, 2, 3]) / 0.3 - np.sum([5, 4, 3, 2]) / 0.7
    assert grad(lambda p: np.sum(stats.binom.logpmf(np.arange(4), 5, p)))(0.3) == pytest.approx(want)


def test_settings_that_are_not_taken_are_refused() -> None:
    with pytest.raises(TypeError, match="of loc, scale"):
        stats.norm.logpdf(1.0, sigma=2.0)
    with pytest.raises(TypeError, match="parameter a is missing"):
        stats.gamma.logpdf(1.0)
    with pytest.raises(TypeError, match="sym_pos"):
        linalg.solve(A, B, sym_pos=True)
    np.testing.assert_allclose(linalg.solve(A, B, transposed=True), scipy.linalg.solve(A, B, transposed=True))
    assert stats.norm(1.0, 2.0).rvs(size=3, random_state=0).shape == (3,) and stats.norm(1.0, 2.0).mean() == 1.0
    assert stats.norm.ppf(0.3, 1.0, 2.0) == pytest.approx(scipy.stats.norm.ppf(0.3, 1.0, 2.0))


def test_kinds_and_batches() -> None:
    assert type(linalg.sqrtm(A)) is np.ndarray and isinstance(linalg.sqrtm(chainrule.tensor(A)), chainrule.Tensor)
    np.testing.assert_allclose(vmap(linalg.logm)(np.stack([A, A * 2])), [linalg.logm(A), linalg.logm(A * 2)])
    with pytest.raises(NotImplementedError, match="bound or constraint"):
        grad(lambda p: np.sum(optimize.minimize(lambda v: np.sum((v - p) ** 2), np.zeros(2), bounds=[(0, 0.5)] * 2).x))(
            P
        )
    with pytest.raises(NotImplementedError, match="Radau"):
        integrate.solve_ivp(lambda t, y: -y, (0, 1), np.ones(1), method="Radau")


def test_scipy_finds_its_special_functions_in_the_namespace() -> None:
    """With SCIPY_ARRAY_API=1, SciPy looks for `special` in the namespace of its arguments."""
    from scipy.special import _ufuncs

    from chainrule.array_api import special

    assert special.erf is _ufuncs.erf
    with pytest.raises(AttributeError, match="no function 'no_such'"):
        _ = special.no_such
    x = chainrule.tensor([0.3, 0.7], dtype=chainrule.float64)
    for name in ("erf", "entr", "gammaln", "expit", "ndtr"):
        f = getattr(special, name)
        got = grad(lambda x, f=f: f(x).sum())(x)
        want = (f(x.numpy() + 1e-6) - f(x.numpy() - 1e-6)) / 2e-6
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)


@pytest.mark.parametrize("name", ["t", "beta"])
def test_distribution_functions(name: str) -> None:
    import scipy.stats

    import chainrule.scipy.stats as ours

    x, args = np.array([0.2, 0.5]), {"t": (3.5,), "beta": (1.5, 2.5)}[name]
    cdf, density = getattr(ours, name).cdf, getattr(scipy.stats, name).pdf
    np.testing.assert_allclose(cdf(x, *args), getattr(scipy.stats, name).cdf(x, *args))
    np.testing.assert_allclose(grad(lambda x: cdf(x, *args).sum())(x), density(x, *args))


def test_schur() -> None:
    a = np.random.default_rng(3).standard_normal((4, 4))
    for output in ("real", "complex"):
        for got, want in zip(linalg.schur(a, output), scipy.linalg.schur(a, output), strict=True):
            np.testing.assert_allclose(got, want)
    size = lambda a: (np.abs(linalg.schur(a, "complex")[0]) ** 4).sum()
    step = np.random.default_rng(4).standard_normal((4, 4))
    want = (size(a + 1e-6 * step) - size(a - 1e-6 * step)) / 2e-6
    np.testing.assert_allclose([(grad(size)(a) * step).sum(), jvp(size, (a,), (step,))[1]], [want] * 2, rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"phase"):
        grad(lambda a: linalg.schur(a, "complex")[1].real.sum())(a)
    with pytest.raises(NotImplementedError, match="output='complex'"):
        grad(lambda a: linalg.schur(np.array([[0.0, 1.0], [-1.0, 0.0]]) + 0 * a[:2, :2])[0].sum())(a)


@pytest.mark.parametrize("name", ["heaviside", "beta", "binom", "boxcox", "huber", "pseudo_huber", "kn", "yn", "xlogy"])
@pytest.mark.filterwarnings("ignore:floating point number truncated")
def test_numbers_beside_arrays(name: str) -> None:
    """A Python number is as good as an array, in either place."""
    u = np.heaviside if name == "heaviside" else getattr(scipy.special, name)
    x = np.array([0.3, 0.6, 0.9])
    for number in (2, 0.5):
        calls = [lambda x, n=number: u(n, x)]
        if name not in ("kn", "yn"):
            calls.append(lambda x, n=number: u(x, n))
        for f in calls:
            value, slope = jvp(f, (x,), (np.ones(3),))
            np.testing.assert_allclose(value, f(x), rtol=1e-12)
            if name != "binom" or number != 2:
                np.testing.assert_allclose(slope, (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("structure", ["sym", "pos", "tridiagonal", "upper triangular", "lower triangular", "diagonal"])
def test_no_more_of_a_matrix_is_read_than_its_structure_needs(structure: str, lower: bool) -> None:
    """Where one triangle stands for a matrix, the other has no value and no derivative."""
    a = np.random.default_rng(0).normal(size=(4, 4)) + 6 * np.eye(4)
    b = np.arange(4.0)
    solved = lambda lib: lambda x: np.sum(np.sin(lib.solve(x, b, assume_a=structure, lower=lower)))
    factor = lambda lib: (
        lambda x: np.sum(np.sin(lib.cho_solve(lib.cho_factor(x, lower), b)) + lib.cholesky(x, lower)[0])
    )
    for f in (solved, factor):
        ours, theirs = f(linalg), f(scipy.linalg)
        assert ours(a) == pytest.approx(theirs(a))
        e = 1e-6 * np.eye(16).reshape(16, 4, 4)
        want = [(theirs(a + d) - theirs(a - d)) / 2e-6 for d in e]
        np.testing.assert_allclose(grad(ours)(a).ravel(), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("first", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("second", ["float32", "float64", "complex64", "complex128", "int64"])
def test_arguments_of_several_types(first: str, second: str) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.normal(size=(4, 4)) + 5 * np.eye(4)).astype(first), (10 * rng.normal(size=(4, 2))).astype(second)
    for f in (
        lambda lib: lib.solve(a, b),
        lambda lib: lib.solve_triangular(a, b, trans="C"),
        lambda lib: lib.solve_banded((1, 1), a[:3] + 9, b),
        lambda lib: lib.cho_solve(lib.cho_factor(a @ a.conj().T), b),
    ):
        want, got = f(scipy.linalg), f(linalg)
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


FACTORS: dict[str, Any] = {
    "eigh": lambda lib, x: (lib.eigh(x)[0], np.abs(lib.eigh(x)[1])),
    "eigh, upper": lambda lib, x: (lib.eigh(x, lower=False)[0], np.abs(lib.eigh(x, lower=False)[1])),
    "eigh of a pencil": lambda lib, x: (lib.eigh(x, PENCIL)[0], np.abs(lib.eigh(x, PENCIL)[1])),
    "eigh of a pencil, in the second": lambda lib, x: np.abs(lib.eigh(SQUARE[::-1], x + 6 * np.eye(4), lower=False)[1]),
    "eigvalsh": lambda lib, x: lib.eigvalsh(SQUARE, x + 6 * np.eye(4)),
    "svd": lambda lib, x: (np.abs(lib.svd(x)[0]), lib.svd(x)[1]),
    "svd, thin": lambda lib, x: lib.svd(x[:, :3], full_matrices=False)[2] ** 2,
    "svd, values": lambda lib, x: lib.svd(x, compute_uv=False) * lib.svdvals(x),
    "qr": lambda lib, x: np.abs(lib.qr(x)[1]),
    "qr, economic": lambda lib, x: lib.qr(x[:, :2], mode="economic")[0] ** 2,
    "qr, r": lambda lib, x: np.abs(lib.qr(x[:, :2], mode="r")[0]),
    "pinv": lambda lib, x: lib.pinv(x[:, :2]),
    "norm": lambda lib, x: lib.norm(x) + lib.norm(x, 1) + lib.norm(x, 2),
    "lu": lambda lib, x: lib.lu(x)[1] + lib.lu(x)[2],
    "lu, permuted": lambda lib, x: lib.lu(x, permute_l=True)[0],
}
SQUARE = np.random.default_rng(0).normal(size=(4, 4))
PENCIL = np.random.default_rng(1).normal(size=(4, 4)) * 0.3 + 4 * np.eye(4)


@pytest.mark.parametrize("name", FACTORS)
def test_factors(name: str) -> None:
    total = lambda y: sum(np.sum(np.sin(v)) for v in (y if isinstance(y, tuple) else (y,)))
    theirs = lambda x: total(FACTORS[name](scipy.linalg, x))
    ours = lambda x: total(FACTORS[name](linalg, x))
    assert ours(SQUARE) == pytest.approx(theirs(SQUARE), rel=1e-10)
    d = 1e-6 * np.eye(16).reshape(16, 4, 4)
    want = np.reshape([(theirs(SQUARE + e) - theirs(SQUARE - e)) / 2e-6 for e in d], (4, 4))
    np.testing.assert_allclose(grad(ours)(SQUARE), want, rtol=1e-5, atol=1e-7)
    assert jvp(ours, (SQUARE,), (PENCIL,))[1] == pytest.approx(np.sum(want * PENCIL), rel=1e-5)
    np.testing.assert_allclose(vmap(grad(ours))(np.stack([SQUARE, 1.1 * SQUARE]))[0], want, rtol=1e-5, atol=1e-7)
