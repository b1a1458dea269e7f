"""The laws every op must obey, at every sample: forward mode equals central differences, reverse is its adjoint, both hold
again for the reverse rule itself and in all four mixes of second order, and vmap equals a loop.

``check(case)`` runs them all and raises :class:`LawError` naming the law that fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import func
from ..core import dtypes as dt
from ..core.samples import Given, S, Sample
from ..core.tensor import Tensor
from ..core.tree import flatten
from .conformance.variants import index_variants


class LawError(AssertionError):
    """An op breaks a law."""


class Case:
    """A function of floating tensors only, with a point to test it at.

    `fixed` are index and mask arguments: with them behind its own, `f` takes other values of these too.
    """

    def __init__(
        self, name: str, f: Callable[..., Any], xs: list[np.ndarray], fixed: Sequence[np.ndarray] = ()
    ) -> None:
        self.name, self.f, self.xs, self.fixed = name, f, xs, list(fixed)

    def __repr__(self) -> str:
        return self.name

    def tensors(self) -> list[Tensor]:
        return [Tensor(x.copy()) for x in self.xs]


def resolve(name: str) -> Callable[..., Any]:
    """The public function of this dotted name, or the Tensor method ``Tensor.name``."""
    import chainrule

    obj: Any = chainrule
    for part in name.split("."):
        obj = getattr(obj, part)
    return obj


def case_of(s: Sample, cx: bool, seed: int = 0) -> Case:
    """The case of a sample: its differentiable arguments free, the others fixed."""
    rng = np.random.default_rng([seed, *s.name.encode()])
    f = s.f or resolve(s.name)
    values: list[Any] = []
    free: list[int] = []
    xs: list[np.ndarray] = []

    def build(a: Any) -> Any:
        if isinstance(a, S | Given):
            v = a.make(rng, cx)
            if a.grad:
                free.append(len(values))
                xs.append(v)
            values.append(v)
            return _Slot(len(values) - 1)
        if isinstance(a, list | tuple) and any(isinstance(b, S | Given) for b in a):
            return type(a)(build(b) for b in a)
        return a

    args = [build(a) for a in s.args]
    kw = {k: build(v) for k, v in s.kw.items()}
    fixed = [Tensor(np.asarray(v)) for v in values]
    indices = [i for i, v in enumerate(values) if i not in free and np.asarray(v).dtype.kind in "iub"]

    def call(*ts: Any) -> Any:
        now: list[Any] = list(fixed)
        for i, t in zip((*free, *indices), ts, strict=False):
            now[i] = t

        def fill(a: Any) -> Any:
            if isinstance(a, _Slot):
                return now[a.index]
            return type(a)(fill(b) for b in a) if isinstance(a, list | tuple) and not hasattr(a, "_fields") else a

        return f(*[fill(a) for a in args], **{k: fill(v) for k, v in kw.items()})

    return Case(f"{s!r}{'-complex' if cx else ''}", call, xs, [np.asarray(values[i]) for i in indices])


class _Slot:
    def __init__(self, index: int) -> None:
        self.index = index


# -- helpers ----------------------------------------------------------------------------------------------------------


def outputs(f: Callable[..., Any]) -> Callable[..., tuple[Tensor, ...]]:
    """`f` with only its floating outputs, as a tuple."""

    def g(*xs: Any) -> tuple[Tensor, ...]:
        return tuple(y for y in flatten(f(*xs))[0] if isinstance(y, Tensor) and y.dtype.category >= dt.FLOAT)

    return g


def like(rng: np.random.Generator, xs: Any) -> list[Tensor]:
    """Random directions shaped like the tensors."""
    out = []
    for x in xs:
        v = rng.standard_normal(x.shape)
        if x.dtype.category == dt.COMPLEX:
            v = v + 1j * rng.standard_normal(x.shape)
        out.append(Tensor(np.asarray(v, x.dtype.np)))
    return out


def inner(a: Any, b: Any) -> float:
    """The real inner product ``Re <a, b>`` of two lists of tensors."""
    return float(sum(np.sum((np.conj(x.numpy()) * y.numpy()).real) for x, y in zip(a, b, strict=True)))


def central(
    f: Callable[..., Any], xs: list[Tensor], ts: list[Tensor], h: float = 1e-5
) -> tuple[list[np.ndarray], list[float]]:
    """Directional derivative by central differences, extrapolated once (error of order h**4), and how far it can be off."""

    def diff(step: float) -> list[np.ndarray]:
        up = f(*[Tensor(x.numpy() + step * t.numpy()) for x, t in zip(xs, ts, strict=True)])
        down = f(*[Tensor(x.numpy() - step * t.numpy()) for x, t in zip(xs, ts, strict=True)])
        return [(a.numpy() - b.numpy()) / (2 * step) for a, b in zip(up, down, strict=True)]

    pairs = list(zip(diff(h), diff(2 * h), strict=True))
    # Rounding shows as a difference between the steps, somewhere in the array if not in this element.
    return [(4 * a - b) / 3 for a, b in pairs], [np.max(np.abs(a - b), initial=0.0) for a, b in pairs]


def expect(law: str, case: Any, got: Any, want: Any, tol: float, off: Sequence[float] | None = None) -> None:
    """Raise unless every element of `got` and `want` agrees to `tol`, relative to its size and a hundredth of the largest.

    `off` says how far the elements of `want` can be off themselves.
    """
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if a.shape != b.shape:
            raise LawError(f"{law}: {case}: shape {a.shape}, expected {b.shape}")
        if not np.all(np.isfinite(a) == np.isfinite(b)):
            raise LawError(f"{law}: {case}: not finite where it should be, or the reverse")
        size = np.where(np.isfinite(b), np.abs(b), 0.0)
        scale = size + 1e-2 * np.max(size, initial=0.0) + 1e-4
        gap = np.abs(a - b) - (0.0 if off is None else off[k])
        err = np.max(np.where(np.isfinite(b), gap, 0) / scale, initial=0.0)
        if not err <= tol:
            raise LawError(f"{law}: {case}: relative error {err:.3g}, allowed {tol:g}")


# -- the laws ---------------------------------------------------------------------------------------------------------


def check_tangent(case: Case, rng: np.random.Generator) -> None:
    """Forward mode equals central differences."""
    f, xs = outputs(case.f), case.tensors()
    ts = like(rng, xs)
    got = func.jvp(f, tuple(xs), tuple(ts))[1]
    numbers = [g.numpy() for g in got]
    try:
        expect("forward mode", case, numbers, *_compared(f, xs, ts, 1e-5))
    except LawError:
        # Near a pole rounding is larger than the step's own error: a longer step must agree then.
        expect("forward mode", case, numbers, *_compared(f, xs, ts, 1e-4))


def _compared(f: Callable[..., Any], xs: list[Tensor], ts: list[Tensor], h: float) -> tuple[Any, float, Any]:
    """Central differences, the tolerance, and how far they can be off."""
    want, off = central(f, xs, ts, h)
    return want, 1e-6, off


def check_dot(case: Case, rng: np.random.Generator) -> None:
    """``<g, J t> = <J* g, t>``: reverse mode is the adjoint of forward mode, to 1e-9; for each input alone too."""
    f, xs = outputs(case.f), case.tensors()
    ys, pull = func.vjp(f, *xs)
    ts, gs = like(rng, xs), like(rng, ys)
    back = pull(tuple(gs))
    for x, b in zip(xs, back, strict=True):
        if b.shape != x.shape or b.dtype is not x.dtype:
            raise LawError(
                f"reverse mode: {case}: a gradient is {b.dtype}{list(b.shape)}, its input {x.dtype}{list(x.shape)}"
            )
    for k in range(len(xs)):
        one = [t if i == k else Tensor(np.zeros_like(t.numpy())) for i, t in enumerate(ts)]
        fwd = func.jvp(f, tuple(xs), tuple(one))[1]
        a, b = inner(gs, fwd), inner(back, one)
        if not abs(a - b) <= 1e-9 * (1 + abs(a) + sum(float(np.abs(t.numpy()).sum()) for t in back)):
            raise LawError(f"dot test: {case}: <g, J t> = {a!r}, <J* g, t> = {b!r} (input {k})")


def _vjp_map(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    return lambda *a: func.vjp(f, *a[:n])[1](tuple(a[n:]))


def _jvp_map(f: Callable[..., Any], n: int) -> Callable[..., Any]:
    return lambda *a: func.jvp(f, tuple(a[:n]), tuple(a[n:]))[1]


def check_second(case: Case, rng: np.random.Generator) -> None:
    """The same laws for the reverse rule and the forward rule themselves: all four mixes of second order."""
    f, xs = outputs(case.f), case.tensors()
    n = len(xs)
    gs, ts = like(rng, f(*xs)), like(rng, xs)
    for name, g, extra in (("reverse", _vjp_map(f, n), gs), ("forward", _jvp_map(f, n), ts)):
        sub = Case(f"{name} rule of {case}", g, [x.numpy() for x in (*xs, *extra)])
        check_tangent(sub, rng)
        check_dot(sub, rng)


def check_vmap(case: Case, rng: np.random.Generator, size: int = 3) -> None:
    """vmap equals a loop, over every subset of arguments and every batch position, for the op, its vjp and its jvp."""
    f, xs = outputs(case.f), case.tensors()
    gs, ts = like(rng, f(*xs)), like(rng, xs)
    n = len(xs)
    _vmap_law(case, f, xs, rng, size, every=True)
    _vmap_law(f"vjp of {case}", _vjp_map(f, n), [*xs, *gs], rng, size, every=False)
    _vmap_law(f"jvp of {case}", _jvp_map(f, n), [*xs, *ts], rng, size, every=False)


def _examples(
    f: Callable[..., Any], xs: list[Tensor], dims: Sequence[int | None], size: int
) -> tuple[list[Any], list[Any]]:
    """Stacked examples and `f` of each: rolled and scaled, so that other elements are the larger ones in each, or scaled alone."""

    def stacked(roll: int) -> list[Tensor]:
        batch = []
        for x, d in zip(xs, dims, strict=True):
            v = x.numpy()
            if d is not None:
                rolled = [np.roll(v.ravel(), roll * i).reshape(v.shape) for i in range(size)]
                v = np.stack([a * (1 + 0.05 * i) for i, a in enumerate(rolled)], d)
            batch.append(Tensor(v))
        return batch

    def each(batch: list[Tensor]) -> list[Any]:
        return [f(*[b if d is None else b.select(d, i) for b, d in zip(batch, dims, strict=True)]) for i in range(size)]

    batch = stacked(1)
    try:
        return batch, each(batch)
    except Exception:  # rolled, a matrix may not be positive definite any more
        batch = stacked(0)
        return batch, each(batch)


def _vmap_law(
    name: Any, f: Callable[..., Any], xs: list[Tensor], rng: np.random.Generator, size: int, every: bool
) -> None:
    n = len(xs)
    subsets = (
        itertools.product((False, True), repeat=n)
        if every and n <= 4
        else [(True,) * n, *(tuple(i == k for i in range(n)) for k in range(n))]
    )
    for picked in subsets:
        if not any(picked):
            continue
        rank = max(x.ndim for x, p in zip(xs, picked, strict=True) if p)
        for at in range(rank + 1) if every else (0,):
            dims = tuple(min(at, x.ndim) if p else None for x, p in zip(xs, picked, strict=True))
            batch, each = _examples(f, xs, dims, size)
            got = func.vmap(f, in_dims=dims)(*batch)
            want = [np.stack([e[k].numpy() for e in each]) for k in range(len(each[0]))]
            expect(f"vmap over {dims}", name, [g.numpy() for g in got], want, 1e-9)


# Index arguments, by their place among these, of which other numbers than the sample's may be refused.
CHOOSY = {
    ("nn.functional.embedding_bag", 1): "offsets ascend from 0",
    ("segment_reduce", 0): "lengths add up to the entries; the same lengths in another order do",
    **{
        (name, 0): "the sizes of the steps descend, and add up to the rows"
        for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")
    },
}


def _occurs(v: np.ndarray, x: np.ndarray) -> bool:
    """Whether the numbers in `v` are between those in `x`: what an index may be here, it may be there."""
    if x.dtype.kind == "b":
        return True
    # Negative numbers may be marks, such as that of a class to ignore.
    return bool(x.min() <= v.min() and v.max() <= x.max() and np.isin(v[v < 0], x).all())


def _index_examples(case: Case, k: int, size: int) -> tuple[list[np.ndarray], list[Any]]:
    """Other values of index argument `k` that the op accepts, and its results; none where they fix the result's shape."""
    f, x = outputs(case.f), case.fixed[k]

    def run(v: np.ndarray) -> tuple[Tensor, ...]:
        return f(*case.tensors(), *[Tensor(v if i == k else w) for i, w in enumerate(case.fixed)])

    for variants in index_variants(x, size):
        try:
            ys = [run(v) for v in variants]
        except Exception as e:
            free = not any(case.name.startswith(f"{name}(") and k == i for name, i in CHOOSY)
            if free and all(_occurs(v, x) for v in variants):
                raise LawError(f"index {k}: {case}: numbers within the sample's are refused: {e}") from e
            continue  # the op says that these values are out of range
        try:
            ys.append(run(np.zeros_like(x)))
        except Exception:  # zero is not in range: then it says nothing
            ys.append(ys[0])
        if len({tuple(y.shape for y in e) for e in ys}) == 1:
            return variants, ys
    return [], []


def check_indices(case: Case, rng: np.random.Generator, size: int = 3) -> None:
    """vmap equals a loop where index and mask arguments differ between the examples: the op, its vjp and its jvp."""
    f, n = outputs(case.f), len(case.xs)
    for k in range(len(case.fixed)):
        variants, ys = _index_examples(case, k, size)
        if not variants:
            continue

        def at(i: Tensor, k: int = k) -> list[Tensor]:
            return [i if j == k else Tensor(w) for j, w in enumerate(case.fixed)]

        def value(i: Tensor, *a: Any, at: Any = at) -> Any:
            return f(*a, *at(i))

        def pull(i: Tensor, *a: Any, value: Any = value) -> Any:
            return _vjp_map(lambda *b: value(i, *b), n)(*a)

        def push(i: Tensor, *a: Any, value: Any = value) -> Any:
            return _jvp_map(lambda *b: value(i, *b), n)(*a)

        vectors = like(rng, ys[0]), like(rng, case.tensors())
        for name, g, v in (("", value, []), ("vjp of ", pull, vectors[0]), ("jvp of ", push, vectors[1]))[
            : 3 if n else 1
        ]:
            _index_law(f"{name}{case}", k, g, variants, [*case.tensors(), *v])


def _index_law(name: str, k: int, g: Callable[..., Any], variants: list[np.ndarray], args: list[Tensor]) -> None:
    """vmap of ``g(index, *args)`` over the indices equals a loop, with arguments that the examples share and without."""
    size = len(variants)
    for shared in (True, False):
        batch = [a if shared else Tensor(np.stack([a.numpy() * (1 + 0.05 * i) for i in range(size)])) for a in args]
        got = func.vmap(g, in_dims=(0, *[None if shared else 0] * len(args)))(Tensor(np.stack(variants)), *batch)
        want = [g(Tensor(variants[i]), *[b if shared else b.select(0, i) for b in batch]) for i in range(size)]
        whole = [np.stack([e[j].numpy() for e in want]) for j in range(len(want[0]))]
        expect(f"vmap over index {k}", name, [y.numpy() for y in got], whole, 1e-9)


def check_outside(case: Case, rng: np.random.Generator) -> None:
    """Derivatives of vmap: those of the examples, added up for arguments that the examples share.

    With as many examples as a tensor has rows or columns too, and with one: a shape must not be taken for another.
    """
    f, xs = outputs(case.f), case.tensors()
    slope = _slope(f)
    n, sizes = len(xs), sorted({1, 3, *(d for x in xs for d in x.shape if 1 < d <= 6)})
    for size in sizes:
        for picked in dict.fromkeys([(True,) * n, *(tuple(i == k for i in range(n)) for k in range(n))]):
            dims = tuple(0 if p else None for p in picked)
            batch = _examples(slope, xs, dims, size)[0]
            _outside_law(f"{case}, {size} examples of {dims}", f, dims, batch, rng, size)
        for k in range(len(case.fixed)):
            variants = _index_examples(case, k, size)[0]
            if variants and n:
                fixed = [Tensor(np.stack(variants)) if i == k else Tensor(w) for i, w in enumerate(case.fixed)]
                dims = (*[None] * n, *[0 if i == k else None for i in range(len(fixed))])
                _outside_law(f"{case}, {size} examples of index {k}", f, dims, [*xs, *fixed], rng, size)


def _slope(f: Callable[..., Any]) -> Callable[..., Any]:
    """A cotangent of `f`: examples are at points at which there is a derivative."""

    def slope(*a: Any) -> Any:
        ys, pull = func.vjp(f, *a)
        return pull(tuple(like(np.random.default_rng(0), ys)))

    return slope


def check_second_outside(case: Case, rng: np.random.Generator, size: int = 3) -> None:
    """Derivatives of vmap of the reverse rule and of the forward rule, whose examples may share the inputs, or the directions."""
    f, xs = outputs(case.f), case.tensors()
    n = len(xs)
    for name, rule, extra in (
        ("reverse", _vjp_map(f, n), like(rng, f(*xs))),
        ("forward", _jvp_map(f, n), like(rng, xs)),
    ):
        m = len(extra)
        for dims in ((0,) * (n + m), (0,) * n + (None,) * m, (None,) * n + (0,) * m):
            if any(d == 0 for d in dims):
                batch = _examples(_slope(rule), [*xs, *extra], dims, size)[0]
                _outside_law(f"{name} rule of {case}, examples of {dims}", rule, dims, batch, rng, size)


def _outside_law(
    name: str,
    f: Callable[..., Any],
    dims: Sequence[int | None],
    batch: list[Tensor],
    rng: np.random.Generator,
    size: int,
) -> None:
    """``vjp(vmap(f))`` and ``jvp(vmap(f))`` in the floating arguments beside the loop over the examples."""
    free = [i for i, b in enumerate(batch) if b.dtype.category >= dt.FLOAT]
    xs = [batch[i] for i in free]

    def whole(*a: Any) -> Any:
        return func.vmap(f, in_dims=tuple(dims))(*_placed(batch, free, a))

    def example(e: int) -> tuple[Callable[..., Any], list[Tensor]]:
        own = [b if d is None else b.select(d, e) for b, d in zip(batch, dims, strict=True)]
        return (lambda *a: f(*_placed(own, free, a))), [own[i] for i in free]

    ys, pull = func.vjp(whole, *xs)
    gs, ts = like(rng, ys), like(rng, xs)
    pulled, pushed = [], []
    for e in range(size):
        g, own = example(e)
        pulled.append(func.vjp(g, *own)[1](tuple(c.select(0, e) for c in gs)))
        t = tuple(t if dims[i] is None else t.select(0, e) for i, t in zip(free, ts, strict=True))
        pushed.append(func.jvp(g, tuple(own), t)[1])
    want = [
        (np.sum if dims[i] is None else np.stack)([p[k].numpy() for p in pulled], axis=0) for k, i in enumerate(free)
    ]
    expect("reverse mode of vmap", name, [b.numpy() for b in pull(tuple(gs))], want, 1e-9)
    forward = func.jvp(whole, tuple(xs), tuple(ts))[1]
    expect(
        "forward mode of vmap",
        name,
        [y.numpy() for y in forward],
        [np.stack([p[k].numpy() for p in pushed]) for k in range(len(ys))],
        1e-9,
    )


def _placed(args: list[Tensor], at: list[int], values: Sequence[Any]) -> list[Any]:
    """The arguments with these values at these places."""
    out: list[Any] = list(args)
    for i, v in zip(at, values, strict=True):
        out[i] = v
    return out


LAWS = (check_tangent, check_dot, check_second, check_vmap, check_indices, check_outside, check_second_outside)


def check(case: Case, seed: int = 0) -> None:
    """All laws."""
    rng = np.random.default_rng(seed)
    for law in LAWS:
        law(case, rng)
