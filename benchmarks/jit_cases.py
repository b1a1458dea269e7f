"""The functions that jit is measured on, each written once for chainrule and for JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import chainrule as cr
from benchmarks.common import optional
from chainrule import func

jax: Any = optional("jax")
torch: Any = optional("torch")
if jax is not None:
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    jax.config.update("jax_enable_x64", True)
rng = np.random.default_rng(0)


class Case(NamedTuple):
    """One function for both libraries: made of `xp` (chainrule or JAX) and arrays; budget is the ratio to JAX jit.

    `arrays` are the arguments and, after None, arrays that the function holds. `torch` makes what PyTorch's budgets are for: eager
    code, and code for its compiler.
    """

    name: str
    make: Callable[[Any, Any], Callable[..., Any]]
    arrays: list[Any]
    budget: float
    tol: float = 2e-3
    first: float = 0.6  # of JAX's first call
    torch: Callable[[list[Any]], dict[str, Callable[[], Any]]] | None = None
    budgets: dict[str, float] = {}


class Ours:
    """What the functions below need of chainrule."""

    grad, vmap = staticmethod(func.grad), staticmethod(func.vmap)
    hessian = staticmethod(func.hessian)
    exp, tanh, stack, sqrt, log, erf = cr.exp, cr.tanh, cr.stack, cr.sqrt, cr.log, cr.erf
    softplus, zeros, logsumexp = cr.nn.functional.softplus, cr.zeros, staticmethod(lambda x: cr.logsumexp(x, -1))
    inv, solve = cr.linalg.inv, cr.linalg.solve
    relu = staticmethod(cr.relu)

    @staticmethod
    def take(x: Any, i: Any) -> Any:
        """x[r, i[r]] for every row r."""
        return x.gather(1, i[:, None])[:, 0]

    @staticmethod
    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        """Over the last axis."""
        return cr.nn.functional.layer_norm(x, x.shape[-1:], w, b)

    @staticmethod
    def loop(n: int, f: Any, x: Any) -> Any:
        """n steps of f."""
        return cr.fori_loop(0, n, lambda i, c: f(c), x)

    @staticmethod
    def scan(f: Any, init: Any, xs: Any) -> Any:
        """carry and rows."""
        return cr.scan(f, init, xs)


class Theirs:
    """The same of JAX."""

    def __init__(self) -> None:
        jnp, lax = jax.numpy, jax.lax
        self.grad, self.vmap, self.hessian = jax.grad, jax.vmap, jax.hessian
        self.exp, self.tanh, self.stack, self.sqrt, self.zeros = jnp.exp, jnp.tanh, jnp.stack, jnp.sqrt, jnp.zeros
        self.softplus, self.inv, self.solve = jax.nn.softplus, jnp.linalg.inv, jnp.linalg.solve
        self.scan, self.log, self.erf, self.relu = lax.scan, jnp.log, lax.erf, jax.nn.relu

    @staticmethod
    def logsumexp(x: Any) -> Any:
        """Over the last axis."""
        return jax.nn.logsumexp(x, -1)

    @staticmethod
    def take(x: Any, i: Any) -> Any:
        """x[r, i[r]] for every row r."""
        return jax.numpy.take_along_axis(x, i[:, None], 1)[:, 0]

    @staticmethod
    def layer_norm(x: Any, w: Any, b: Any) -> Any:
        """Over the last axis."""
        m = x.mean(-1, keepdims=True)
        v = ((x - m) ** 2).mean(-1, keepdims=True)
        return (x - m) * jax.lax.rsqrt(v + 1e-5) * w + b

    @staticmethod
    def loop(n: int, f: Any, x: Any) -> Any:
        """n steps of f."""
        return jax.lax.fori_loop(0, n, lambda i, c: f(c), x)


def _chain8(xp: Any, a: Any) -> Any:
    (y,) = a
    return xp.grad(lambda x: (xp.tanh(xp.exp(x * 2 + 1)) @ y).sum())


def _rosenbrock(xp: Any, a: Any) -> Any:
    return xp.grad(lambda x: (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum())


def _layers(xp: Any, a: Any) -> Any:
    def f(ws: Any, x: Any) -> Any:
        for w in ws:
            x = xp.tanh(w @ x)
        return x.sum()

    return xp.grad(f)


def _logistic(xp: Any, a: Any) -> Any:
    x, t = a
    return xp.hessian(lambda w: xp.softplus(-(x @ w) * t).sum())


def _lorenz(s: Any, xp: Any) -> Any:
    x, y, z = s[0], s[1], s[2]
    return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])


def _rk4(s: Any, xp: Any, h: float = 0.01) -> Any:
    a = _lorenz(s, xp)
    b = _lorenz(s + h / 2 * a, xp)
    c = _lorenz(s + h / 2 * b, xp)
    d = _lorenz(s + h * c, xp)
    return s + h / 6 * (a + 2 * b + 2 * c + d)


def _solver(steps: int) -> Any:
    def make(xp: Any, a: Any) -> Any:
        return xp.grad(lambda s: xp.loop(steps, lambda s: _rk4(s, xp), s).sum())

    return make


def _many(xp: Any, a: Any) -> Any:
    return xp.vmap(lambda s: xp.loop(20, lambda s: _rk4(s, xp), s))


def _rnn(xp: Any, a: Any) -> Any:
    def f(w: Any, xs: Any, h: Any) -> Any:
        def step(h: Any, v: Any) -> Any:
            h = xp.tanh(w @ h + v)
            return h, h

        h, hs = xp.scan(step, h, xs)
        return (hs * hs).sum()

    return xp.grad(f)


def _mlp(xp: Any, a: Any) -> Any:
    def f(ws: Any, x: Any) -> Any:
        for w in ws[:-1]:
            x = xp.tanh(x @ w)
        return (x @ ws[-1]).sum()

    g = xp.grad(f)
    return lambda ws, xs: xp.vmap(lambda x: g(ws, x))(xs)


def _bodies(xp: Any, a: Any) -> Any:
    def energy(x: Any) -> Any:
        d = x[:, None, :] - x[None, :, :]
        r = xp.sqrt((d * d).sum(-1) + 1e-3)
        return (1 / r).sum()

    return xp.grad(energy)


def _kalman(xp: Any, a: Any) -> Any:
    """The gradient of the log-likelihood of 500 observations, in the transition matrix: four states, two of which are observed."""
    h, q, r, eye = a

    def likelihood(f: Any, ys: Any, m: Any, p: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            m, p = c
            m, p = f @ m, f @ p @ f.T + q
            s = h @ p @ h.T + r
            e = y - h @ m
            gain = xp.solve(s, h @ p).T
            det = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
            score = (e * xp.solve(s, e)).sum() + xp.log(det)
            return (m + gain @ e, (eye - gain @ h) @ p), score

        return xp.scan(step, (m, p), ys)[1].sum()

    return xp.grad(likelihood)


def _block(xp: Any, a: Any) -> Any:
    """bias + gelu + dropout mask + residual + layer norm."""

    def f(x: Any, bias: Any, w: Any, b: Any, res: Any, mask: Any) -> Any:
        h = x + bias
        h = h * 0.5 * (1 + xp.erf(h * math.sqrt(0.5)))
        y = xp.layer_norm(h * mask + res, w, b)
        return (y * y).sum()

    def g(x: Any, bias: Any, w: Any, b: Any, res: Any, mask: Any) -> Any:
        return xp.grad(lambda p: f(*p, mask))((x, bias, w, b, res))

    return g


def _block_torch(arrays: list[Any]) -> dict[str, Callable[[], Any]]:
    """PyTorch's compiler on the same block."""
    x, bias, w, b, res, mask = (torch.tensor(a) for a in arrays)
    leaves = [t.requires_grad_() for t in (x, bias, w, b, res)]

    def f(x: Any, bias: Any, w: Any, b: Any, res: Any, mask: Any) -> Any:
        h = torch.nn.functional.gelu(x + bias)
        y = torch.nn.functional.layer_norm(h * mask + res, (x.shape[-1],), w, b)
        return (y * y).sum()

    c = torch.compile(f)
    return {"torch.compile": lambda: torch.autograd.grad(c(x, bias, w, b, res, mask), leaves)}


def _adam(xp: Any, a: Any) -> Any:
    """One step of training 784-256-10 with Adam on a batch of 128."""
    relu = xp.relu

    def loss(p: Any, x: Any, t: Any) -> Any:
        w1, b1, w2, b2 = p
        y = relu(x @ w1 + b1) @ w2 + b2
        return (xp.logsumexp(y) - xp.take(y, t)).mean()

    g = xp.grad(loss)

    def step(p: Any, m: Any, v: Any, x: Any, t: Any, k: Any) -> Any:
        d = g(p, x, t)
        m = [0.9 * a + 0.1 * b for a, b in zip(m, d, strict=True)]
        v = [0.999 * a + 0.001 * b * b for a, b in zip(v, d, strict=True)]
        c1, c2 = 1 - xp.exp(k * math.log(0.9)), 1 - xp.exp(k * math.log(0.999))
        p = [a - 1e-3 * (b / c1) / (xp.sqrt(c / c2) + 1e-8) for a, b, c in zip(p, m, v, strict=True)]
        return p, m, v

    return step


def _adam_torch(arrays: list[Any]) -> dict[str, Callable[[], Any]]:
    """PyTorch's eager step of the same training."""
    p, _, _, x, t, _ = arrays
    ps = [torch.tensor(a).requires_grad_() for a in p]
    x, t = torch.tensor(x), torch.tensor(t)
    opt = torch.optim.Adam(ps, lr=1e-3)

    def step() -> Any:
        opt.zero_grad()
        w1, b1, w2, b2 = ps
        loss = torch.nn.functional.cross_entropy(torch.relu(x @ w1 + b1) @ w2 + b2, t)
        loss.backward()
        opt.step()
        return loss

    return {"torch": step}


def _black_scholes(xp: Any, a: Any) -> Any:
    """Price, all first and second derivatives in spot, volatility, rate and time, of every option."""

    def price(s: Any, v: Any, r: Any, t: Any, k: Any) -> Any:
        root = v * xp.sqrt(t)
        d1 = (xp.log(s / k) + (r + v * v / 2) * t) / root
        d2 = d1 - root
        half = math.sqrt(0.5)
        return s * 0.5 * (1 + xp.erf(d1 * half)) - k * xp.exp(-r * t) * 0.5 * (1 + xp.erf(d2 * half))

    def total(p: Any, k: Any) -> Any:
        return price(*p, k).sum()

    def f(s: Any, v: Any, r: Any, t: Any, k: Any) -> Any:
        p = (s, v, r, t)
        first = xp.grad(total)(p, k)
        second = [xp.grad(lambda p, i=i: xp.grad(total)(p, k)[i].sum())(p)[i:] for i in range(4)]
        return [price(*p, k), *first, *[h for row in second for h in row]]

    return f


def _normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return rng.standard_normal(shape) * scale


def cases() -> Iterator[Case]:
    """The functions of every size, float32 and float64."""
    for d in (np.float32, np.float64):
        t = "f32" if d is np.float32 else "f64"

        def c(x: np.ndarray, d: Any = d) -> np.ndarray:
            return x.astype(d)

        def u(lo: float, hi: float, n: int, d: Any = d) -> np.ndarray:
            return rng.uniform(lo, hi, n).astype(d)

        yield Case(f"gradient 8x8 {t}", _chain8, [c(_normal(8, 8)), None, c(_normal(8, 8))], 0.15)
        yield Case(f"10 layers of 32 {t}", _layers, [[c(_normal(32, 32, scale=0.2)) for _ in range(10)], c(_normal(32))], 0.35)  # fmt: skip
        yield Case(f"Rosenbrock n = 100 {t}", _rosenbrock, [c(_normal(100))], 0.15)
        yield Case(f"Rosenbrock n = 1000000 {t}", _rosenbrock, [c(_normal(1_000_000))], 0.7, first=1.0)
        yield Case(f"Hessian 200 x 50 {t}", _logistic, [c(_normal(50, scale=0.1)), None, c(_normal(200, 50)), c(_normal(200))], 0.5)  # fmt: skip
        ws = [c(_normal(m, n, scale=0.1)) for m, n in ((64, 128), (128, 128), (128, 10))]
        yield Case(f"per-example gradients {t}", _mlp, [ws, c(_normal(128, 64))], 0.7)
        p = [c(_normal(784, 256, scale=0.05)), c(_normal(256)), c(_normal(256, 10, scale=0.05)), c(_normal(10))]
        zeros = [np.zeros_like(w) for w in p]
        ones = [np.ones_like(w) for w in p]
        batch = [c(_normal(128, 784)), rng.integers(0, 10, 128), np.asarray(5, d)]
        yield Case(f"Adam 784-256-10 {t}", _adam, [p, zeros, ones, *batch], 0.9, torch=_adam_torch, budgets={"torch": 0.7})  # fmt: skip
        yield Case(f"Lorenz 1000 steps {t}", _solver(1000), [c(np.ones(3))], 0.5, 0.5 if t == "f32" else 1e-6)
        yield Case(f"RNN 200 x 64 {t}", _rnn, [c(_normal(64, 64, scale=0.1)), c(_normal(200, 64)), c(_normal(64))], 0.8)
        yield Case(f"10000 solves {t}", _many, [c(_normal(10_000, 3))], 0.7)
        f = np.eye(4) + 0.1 * np.eye(4, k=2)
        observed = [c(np.eye(2, 4)), c(0.1 * np.eye(4)), c(np.eye(2)), c(np.eye(4))]
        yield Case(f"Kalman 4x4, 500 steps {t}", _kalman, [c(f), c(_normal(500, 2)), c(np.zeros(4)), c(np.eye(4)), None, *observed], 0.8)  # fmt: skip
        yield Case(f"512 bodies {t}", _bodies, [c(_normal(512, 3))], 0.7)
        mask = c(rng.random((4096, 1024)) > 0.1) / d(0.9)
        big = [
            c(_normal(4096, 1024)),
            c(_normal(1024)),
            c(_normal(1024)),
            c(_normal(1024)),
            c(_normal(4096, 1024)),
            mask,
        ]
        yield Case(f"norm block 4096x1024 {t}", _block, big, 0.6, first=1.0, torch=_block_torch, budgets={"torch.compile": 0.6})  # fmt: skip
        n = 1_000_000
        options = [u(80, 120, n), u(0.1, 0.5, n), u(0.01, 0.05, n), u(0.2, 2, n), u(80, 120, n)]
        yield Case(f"Black-Scholes 1000000 {t}", _black_scholes, options, 0.7, first=1.0, tol=2e-2 if t == "f32" else 1e-6)  # fmt: skip
