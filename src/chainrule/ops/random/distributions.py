"""Random numbers from distributions, drawn from a seeded generator; vmap's randomness modes hold for all of them.

What is drawn does not depend on the parameters (uniform or normal numbers); the parameters come in by ops, so that they may be
batched, and then the result is cut off: a sample has no derivative, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from ...core import dtypes as dt
from ...core.declare import op, pointwise
from ...core.dispatch import look
from ...core.primitives import detach_p
from ...core.registry import public
from ...core.shapes import broadcast_shapes, sizes
from ...core.tensor import Tensor
from ...core.views import assign, write_out
from .generator import draw, fits, quantised

# -- in place: fill a tensor ------------------------------------------------------------------------------------------


def _fill(self: Tensor, name: str, sample: Any, generator: Any) -> Tensor:
    # `sample` belongs to what is recorded: it must not hold the tensor, which would then seem to be held from outside.
    d = self.dtype.np
    drawn = draw(name, tuple(self.shape), lambda rng, s: np.asarray(sample(rng, s)).astype(d), generator, self.device)
    return assign(self, drawn, name)


def _floating(name: str, x: Tensor, complex_too: bool = False) -> None:
    if x.dtype.category < dt.FLOAT or (x.dtype.category == dt.COMPLEX and not complex_too):
        raise RuntimeError(f"{name} is only defined for floating-point tensors, got {x.dtype} for input")


@public("", methods="uniform_", out=False)
def uniform_(self: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None, **kw: Any) -> Tensor:
    """Fill with numbers uniform in [from, to)."""
    low, high = kw.get("from", from_), to
    _floating("uniform_", self, complex_too=True)
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")

    is_complex, d = self.dtype.category == dt.COMPLEX, self.dtype.to_real().np
    if high - low > ml_dtypes.finfo(d).max:
        raise RuntimeError(
            f"uniform_ expects to-from <= the largest number of {self.dtype}, but found to={high} and from={low}, which exceed it"
        )

    def part(rng: Any, shape: Any) -> Any:
        r = (low + (high - low) * quantised(rng.random(shape), d)).astype(d)
        # Rounding to the type may reach the end that is excluded.
        return np.where(r >= high, np.asarray(low, d), r) if high > low else r

    def sample(rng: Any, shape: Any) -> Any:
        return part(rng, shape) + 1j * part(rng, shape) if is_complex else part(rng, shape)

    return _fill(self, "uniform_", sample, generator)


@public("", methods="normal_", out=False)
def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with normal numbers."""
    _floating("normal_", self, complex_too=True)
    _std("normal_", std)
    d = self.dtype
    return _fill(self, "normal_", lambda rng, s: mean + std * _normal(rng, s, d), generator)


def _std(name: str, std: Any, strict: bool = False) -> None:
    if isinstance(std, Tensor) and std.dtype.category == dt.COMPLEX:
        raise RuntimeError(f"{name} expects standard deviation to be non-complex")

    def check(v: Any) -> None:
        if np.any(np.less_equal(v, 0) if strict else np.less(v, 0)):
            if isinstance(std, Tensor):
                raise RuntimeError(
                    f"{name} expects all elements of std {'>' if strict else '>='} 0.0, but found {np.min(v)}"
                )
            raise RuntimeError(f"{name} expects std {'>' if strict else '>='} 0.0, but found std={np.min(v)}")

    if isinstance(std, Tensor):
        look(std, check)
    else:
        check(std)


def _normal(rng: Any, shape: Any, d: dt.DType) -> Any:
    if d.category == dt.COMPLEX:
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) * math.sqrt(0.5)
    return rng.standard_normal(shape)


@public("", methods="log_normal_", out=False)
def log_normal_(self: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers whose logarithm is normal with this mean and standard deviation."""
    _floating("log_normal_", self)
    _std("log_normal_", std, strict=True)
    return _fill(self, "log_normal_", lambda rng, s: np.exp(mean + std * rng.standard_normal(s)), generator)


@public("", methods="cauchy_", out=False)
def cauchy_(self: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers of the Cauchy distribution."""
    _floating("cauchy_", self)
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _fill(self, "cauchy_", lambda rng, s: median + sigma * rng.standard_cauchy(s), generator)


@public("", methods="exponential_", out=False)
def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Fill with numbers of density ``lambd exp(-lambd x)``."""
    _floating("exponential_", self)
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambd > 0.0, but found lambd={lambd}")
    return _fill(self, "exponential_", lambda rng, s: rng.standard_exponential(s) / lambd, generator)


@public("", methods="geometric_", out=False)
def geometric_(self: Tensor, p: float, *, generator: Any = None) -> Tensor:
    """Fill with the number of trials up to the first success: k >= 1 with probability ``(1 - p)**(k - 1) p``."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _fill(self, "geometric_", lambda rng, s: rng.geometric(p, s), generator)


@public("", methods="random_", out=False)
def random_(self: Tensor, *args: Any, to: int | None = None, generator: Any = None, **kw: Any) -> Tensor:
    """Fill with integers uniform in [from, to): ``random_()``, ``random_(to)``, ``random_(from, to)``."""
    low, high = (kw.get("from", 0), args[0]) if len(args) == 1 else args if len(args) == 2 else (kw.get("from", 0), to)
    if high is None:
        d = self.dtype
        bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53, "bool": 1}.get(d.name)
        high = int(np.iinfo(d.np).max) + 1 if bits is None else 2 if d.name == "bool" else 2**bits + 1
        if kw.get("from") is None and not args and d.name == "int64":
            high = 2**63 - 1
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if args or kw or to is not None:
        fits(low, high, self.dtype)
    kind = np.uint64 if high > 2**63 else np.int64
    return _fill(self, "random_", lambda rng, s: rng.integers(low, high, s, dtype=kind), generator)


# -- distributions with parameters that may be tensors ------------------------------------------------------------------


def _cut(x: Tensor) -> Tensor:
    return detach_p.bind(x)


@public("normal")
def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Any = None, layout: Any = None,
           device: Any = None, requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """Normal numbers: ``normal(mean, std)`` with tensors or numbers, or ``normal(mean, std, size)``."""
    _std("normal", std)
    given = [x for x in (mean, std) if isinstance(x, Tensor)]
    if not given:
        if size is None:
            raise TypeError("normal: with numbers for mean and std, argument size must be given")
        d = dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)
        t = draw(
            "normal",
            sizes((size,)),
            lambda rng, s: np.asarray(mean + std * _normal(rng, s, d)).astype(d.np),
            generator,
            device,
        )
        return t.requires_grad_() if requires_grad else t
    d = given[0].dtype
    if d.category < dt.FLOAT:
        raise RuntimeError(f"normal: expected floating-point tensors for mean and std, got {d}")
    shape = broadcast_shapes(*[tuple(x.shape) for x in given])
    e = draw("normal", shape, lambda rng, s: np.asarray(_normal(rng, s, d)).astype(d.np), generator)
    return _cut(e * std + mean)


def _probabilities(name: str, p: Any) -> None:
    def check(v: Any) -> None:
        if v.dtype in dt.HALVES:
            v = v.astype(np.float32)
        if not np.all((v >= 0) & (v <= 1)):
            raise RuntimeError(f"{name}: expected probabilities 0 <= p <= 1, got p between {v.min()} and {v.max()}")

    if isinstance(p, Tensor):
        look(p, check)
    else:
        check(np.asarray(p))


def _trial(name: str, shape: tuple[int, ...], p: Any, d: dt.DType, generator: Any) -> Tensor:
    u = draw(name, shape, lambda rng, s: rng.random(s), generator)
    return _cut((u < p).to(d))


@public("bernoulli", methods="bernoulli", out=False)
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None, out: Tensor | None = None) -> Tensor:
    """1 with probability `input` (or `p`), else 0, in the type of `input` or of `out`."""
    q = input if p is None else p
    if p is None and input.dtype.category != dt.FLOAT:
        raise RuntimeError(f"bernoulli: expected a floating-point tensor of probabilities for input, got {input.dtype}")
    _probabilities("bernoulli", q)
    y = _trial("bernoulli", tuple(input.shape), q, input.dtype if out is None else out.dtype, generator)
    return y if out is None else write_out(out, y)


@public("", methods="bernoulli_", out=False)
def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """Fill with 1 with probability `p` (a number or a tensor), else 0."""
    _probabilities("bernoulli_", p)
    return assign(self, _trial("bernoulli_", tuple(self.shape), p, self.dtype, generator), "bernoulli_")


def _smallest(k: Any, cdf: Any, u: Any) -> Any:
    """The smallest integer whose cdf reaches u, from a real solution k of cdf(k) = u."""
    k = np.ceil(k)
    below = np.maximum(k - 1, 0)
    return np.where(cdf(below) >= u, below, k)


def _poisson(u: Any, rate: Any) -> Any:
    import scipy.special as sp

    m = np.where(rate == 0, 1, rate)
    return np.where(rate == 0, 0, _smallest(sp.pdtrik(u, m), lambda k: sp.pdtr(k, m), u))


def _binomial(u: Any, n: Any, p: Any) -> Any:
    import scipy.special as sp

    sure = (p == 0) | (p == 1) | (n == 0)
    n1, p1 = np.where(sure, 1, n), np.where(sure, 0.5, p)

    def cdf(k: Any) -> Any:
        return np.where(k >= n1, 1, sp.betaincc(np.minimum(k, n1 - 1) + 1, n1 - np.minimum(k, n1 - 1), p1))

    return np.where(sure, n * (p == 1), np.minimum(_smallest(sp.bdtrik(u, n1, p1), cdf, u), n))


poisson_p = pointwise("poisson", _poisson, fast=frozenset())
binomial_p = pointwise("binomial", _binomial, fast=frozenset())


def _rates(v: Any) -> None:
    if np.any(v < 0):
        raise RuntimeError("poisson: invalid Poisson rate in input, expected rates >= 0")


@public("poisson", out=False)
def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Counts k with probability ``exp(-input) input**k / k!``, in the type of `input`."""
    _floating("poisson", input)
    look(input, _rates)
    u = draw("poisson", tuple(input.shape), lambda rng, s: rng.random(s), generator)
    return _cut(poisson_p.bind(u, input.to(dt.float64)).to(input.dtype))


@public("binomial", out=False)
def binomial(count: Tensor, prob: Tensor, generator: Any = None) -> Tensor:
    """The number of successes in `count` trials of probability `prob`."""
    _floating("binomial", count)
    if count.dtype is not prob.dtype:
        raise ValueError(f"binomial: expected one type for count and prob, got {count.dtype} and {prob.dtype}")
    _probabilities("binomial", prob)
    shape = broadcast_shapes(tuple(count.shape), tuple(prob.shape))
    u = draw("binomial", shape, lambda rng, s: rng.random(s), generator)
    return _cut(binomial_p.bind(u, count.to(dt.float64), prob.to(dt.float64)).to(count.dtype))


# -- multinomial ------------------------------------------------------------------------------------------------------


@op("multinomial_with", core="(n),(k)->(k)", differentiable=False)
def multinomial_with_p(p: Any, u: Any) -> Any:
    """For each u the first category whose cumulated share exceeds it."""
    c = np.cumsum(p, axis=-1, dtype=np.float64)
    c = c / c[..., -1:]
    lead = np.broadcast_shapes(c.shape[:-1], u.shape[:-1])
    rows, n = math.prod(lead), p.shape[-1]
    # One search for all rows: row r is moved to [r, r + 1].
    shift = np.arange(rows).reshape(*lead, 1)
    flat = np.broadcast_to(c, (*lead, n)) + shift
    k = np.searchsorted(flat.reshape(-1), np.broadcast_to(u, (*lead, u.shape[-1])) + shift, side="right")
    return (k - shift * n).astype(np.int64)


@op("multinomial_without", core="(n),(n)->(k)", differentiable=False)
def multinomial_without_p(p: Any, e: Any, *, k: int) -> Any:
    """A race: category i arrives at time e_i / p_i with e_i exponential; the first k win, in order."""
    times = np.where(p > 0, e / np.where(p > 0, p, 1), np.inf)
    return np.argsort(times, axis=-1, kind="stable")[..., :k].astype(np.int64)


@public("multinomial", methods="multinomial", out=False)
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None, out: Any = None
) -> Tensor:
    """Indices drawn from each row with probabilities proportional to `input`, with or without replacement."""
    if out is not None:
        if out.dtype is not dt.int64:
            raise RuntimeError(f"multinomial expects an int64 tensor for argument out, got {out.dtype}")
        return write_out(out, multinomial(input, num_samples, replacement, generator=generator))
    if input.ndim not in (1, 2):
        raise RuntimeError(f"multinomial: prob_dist (input) must be 1 or 2 dim, got shape {list(input.shape)}")
    _floating("multinomial", input)
    n = input.shape[-1]
    if num_samples <= 0:
        raise RuntimeError(f"multinomial: cannot sample n_sample <= 0 samples, got num_samples={num_samples}")
    if not replacement and num_samples > n:
        raise RuntimeError(
            f"multinomial: cannot sample n_sample > prob_dist.size(-1) samples without replacement, got num_samples={num_samples} of {n}"
        )
    if n > 2**24:
        raise RuntimeError(f"multinomial: number of categories of input cannot exceed 2^24, got {n}")

    def check(v: Any) -> None:
        v = v.astype(np.float64)
        if not np.all((v >= 0) & np.isfinite(v)):
            raise RuntimeError(
                "multinomial: probability tensor (input) contains either `inf`, `nan` or element < 0: invalid multinomial distribution"
            )
        if np.any((v > 0).sum(-1) < (1 if replacement else num_samples)):
            raise RuntimeError(
                "multinomial: invalid multinomial distribution, input has too few categories of positive probability"
            )

    look(input, check)
    p, lead = _cut(input.to(dt.float64)), tuple(input.shape[:-1])
    if replacement:
        # 2**-30 below 1 at most, so that no row runs into the next.
        u = draw("multinomial", (*lead, num_samples), lambda rng, s: np.minimum(rng.random(s), 1 - 2.0**-30), generator)
        return multinomial_with_p(p, u)
    e = draw("multinomial", (*lead, n), lambda rng, s: rng.standard_exponential(s), generator)
    return multinomial_without_p(p, e, k=num_samples)
