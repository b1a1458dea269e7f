"""The judge: a program on a nest against the program on its components, in a mode; a difference raises AssertionError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import func, nested
from ...core.tensor import Tensor
from ...core.tree import flatten, tree_map
from ...ops.shape.create import tensor
from ...ops.shape.slices import cat, stack
from ...payloads.nested.deep_sizes import DeepInt
from ...payloads.nested.sizes import Nest, RaggedInt, geometry_of
from .program import Program, Value
from .steps import written


def components(v: Value, rng: np.random.Generator) -> list[np.ndarray]:
    """Random components of a value's sizes."""
    return [rng.normal(size=tuple(int(v.sizes(d)[i]) for d in range(len(v.dims)))) for i in range(v.n)]


def as_nest(cs: list[np.ndarray], v: Value, declared: bool) -> Tensor:
    """A nest of components: ragged as its sizes say, or (`declared`) in all dims that the program calls ragged."""
    if not declared and cs:
        return nested.nested_tensor(cs)
    shape = geometry_of(tuple(RaggedInt(d) if isinstance(d, np.ndarray) else d for d in v.dims), v.n).shape
    return nested.nest_p(Tensor(np.concatenate([np.zeros(0), *[c.reshape(-1) for c in cs]])), shape=shape)


class Inputs:
    """The arguments of a program, as nests and as lists of components."""

    def __init__(self, p: Program, rng: np.random.Generator) -> None:
        self.p = p
        lists = [components(v, rng) for v in p.nests]
        self._set(lists, [rng.normal(size=w.shape) for w in p.dense])

    def _set(self, lists: list[list[np.ndarray]], dense: list[np.ndarray]) -> None:
        self.dense = [tensor(a) for a in dense]
        self.nests = [as_nest(c, v, self.p.declared) for c, v in zip(lists, self.p.nests, strict=True)]
        self.lists = [[tensor(a) for a in c] for c in lists]

    def shake(self, rng: np.random.Generator) -> None:
        """Move every number by a few units in its last place."""
        move = lambda x: x.numpy() * (1 + 4e-15 * rng.choice([-1.0, 1.0], tuple(x.shape)))
        self._set([[move(a) for a in c] for c in self.lists], [move(a) for a in self.dense])

    @property
    def a(self) -> tuple[Any, ...]:
        return (*self.nests, *self.dense)

    @property
    def b(self) -> tuple[Any, ...]:
        return (*self.lists, *self.dense)


def arrays(tree: Any) -> list[np.ndarray]:
    """All arrays of a result, nests by component."""
    out: list[np.ndarray] = []
    for t in flatten(tree)[0]:
        if isinstance(t, Tensor):
            out += [c.numpy(force=True) for c in t.unbind()] if t.is_nested else [t.numpy(force=True)]
    return out


def parts(y: Tensor) -> list[np.ndarray]:
    """A result on nests by component."""
    return [c.numpy(force=True) for c in y.unbind()] if y.is_nested else list(y.numpy(force=True))


def _most(y: np.ndarray) -> float:
    return float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y))) if y.dtype.kind == "f" else 0.0


def close(got: list[np.ndarray], want: list[np.ndarray], what: str, tol: float = 1e-7) -> None:
    """Equal numbers in equal shapes.

    A part may be what is left of terms as large as the other parts (the slope along which a norm is constant is zero): what these lose
    in rounding is no error.
    """
    assert len(got) == len(want), f"{what}: {len(got)} arrays, wanted {len(want)}"
    large = max((_most(y) for y in want), default=0.0)
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        assert x.shape == y.shape, f"{what}: part {i} has shape {x.shape}, wanted {y.shape}"
        scale = max(1.0, _most(y), 1e-6 * large)
        np.testing.assert_allclose(x, y, rtol=tol, atol=tol * scale, err_msg=f"{what}, part {i}")


def structure(x: Tensor) -> tuple[Any, ...]:
    """Which dims are ragged, and the sizes."""
    return tuple((type(s) is RaggedInt, s.values.tolist() if type(s) is RaggedInt else int(s)) for s in x.shape)


def same_structure(d: Tensor, x: Tensor, what: str) -> None:
    """A derivative has the structure of its input."""
    assert structure(d) == structure(x), f"{what}: a derivative of structure {structure(d)} for {structure(x)}"


def total(ys: list[Any]) -> Any:
    """One number of all real outputs, with derivatives of every order that depend on each element."""
    t: Any = tensor(0.0, dtype=_f64())
    for y in ys:
        if isinstance(y, list):
            t = t + total(y)
        elif y.dtype.is_floating_point:
            t = t + (y * y).sum() / 2 + y.sin().sum()
    return t


def _f64() -> Any:
    from ... import float64

    return float64


def grad(f: Any, k: int) -> Any:
    return func.grad(f, argnums=tuple(range(k)))


def push(f: Any, t: tuple[Any, ...]) -> Any:
    """The derivative of `f` along `t`: zero where there are no components, and so no tensors to move."""
    return lambda *a: func.jvp(f, a, t)[1] if flatten(a)[0] else tree_map(lambda y: y * 0, f(*a))


def dot(a: Any, b: Any) -> Any:
    return sum(((u * v).sum() for u, v in zip(flatten(a)[0], flatten(b)[0], strict=True)), tensor(0.0, dtype=_f64()))


class Case:
    """A program with its inputs and two random directions; what a mode compares, it compares by :meth:`close`."""

    def __init__(self, p: Program, rng: np.random.Generator) -> None:
        self.p, self.rng = p, rng
        self.asked = 0  # comparisons so far
        self.different = False  # whether the last of them is why the judge says no
        self.wanted: list[list[np.ndarray]] | None = None  # collects the references, and compares nothing
        self.x, self.t, self.v = (Inputs(p, rng) for _ in range(3))
        self.k = len(p.nests) + len(p.dense)
        self.dims = (*(0,) * len(p.nests), *(None,) * len(p.dense))

    def close(self, got: list[np.ndarray], want: list[np.ndarray], what: str, tol: float = 1e-7) -> None:
        """Compare with the reference."""
        self.asked += 1
        if self.wanted is not None:
            self.wanted.append(want)
            return
        try:
            close(got, want, what, tol)
        except AssertionError:
            self.different = True
            raise

    def same_outputs(self, got: list[Tensor], want: list[list[Tensor]], what: str) -> None:
        """The outputs of a program on nests equal those on lists of components."""
        for j, (y, w) in enumerate(zip(got, want, strict=True)):
            assert int(y.shape[0]) == len(w), f"{what}: output {j} has {y.shape[0]} components, wanted {len(w)}"
            self.close(parts(y), [c.numpy(force=True) for c in w], f"{what}: output {j}")

    def f(self, *a: Any) -> Any:
        """The number on nests."""
        return total(self.p.on_nests(*a))

    def g(self, *a: Any) -> Any:
        """The number on lists of components."""
        return total(self.p.on_lists(*a))

    def h(self, *a: Any) -> Any:
        """The number of one component."""
        return total(self.p.on_one(*a))

    def mapped(self, *a: Any) -> Any:
        """The number on nests, mapped over the components."""
        return total(func.vmap(self.p.on_one, in_dims=self.dims)(*a))


# -- modes ------------------------------------------------------------------------------------------------------------------


def value(c: Case) -> None:
    c.same_outputs(c.p.on_nests(*c.x.a), c.p.on_lists(*c.x.b), "value")


def mapped_value(c: Case) -> None:
    c.same_outputs(func.vmap(c.p.on_one, in_dims=c.dims)(*c.x.a), c.p.on_lists(*c.x.b), "vmap")


def _first(c: Case, f: Any, what: str) -> None:
    got, want = grad(f, c.k)(*c.x.a), grad(c.g, c.k)(*c.x.b)
    for d, x in zip(got, c.x.a, strict=True):
        same_structure(d, x, f"{what}: grad")
    c.close(arrays(got), arrays(want), f"{what}: grad")
    c.close(arrays(push(f, c.t.a)(*c.x.a)), arrays(push(c.g, c.t.b)(*c.x.b)), f"{what}: jvp")


def first(c: Case) -> None:
    _first(c, c.f, "nest")


def first_mapped(c: Case) -> None:
    _first(c, c.mapped, "vmap")


def backward(c: Case) -> None:
    leaves = [x.detach().clone().requires_grad_() for x in c.x.a]
    y = c.f(*leaves)
    want = grad(c.g, c.k)(*c.x.b)
    if not y.requires_grad:
        assert not any(a.any() for a in arrays(want)), "backward: nothing to differentiate"
        return
    y.backward()
    for x, w in zip(leaves, want, strict=True):
        if x.grad is None:
            assert not any(a.any() for a in arrays(w)), "backward: a gradient is missing"
        else:
            same_structure(x.grad, x, "backward")
            c.close(arrays(x.grad), arrays(w), "backward")


_SECOND: dict[str, Callable[..., Any]] = {
    "jvp of grad": lambda f, k, t, v: push(grad(f, k), t),
    "grad of grad": lambda f, k, t, v: grad(lambda *a: dot(grad(f, k)(*a), t), k),
    "grad of jvp": lambda f, k, t, v: grad(push(f, t), k),
    "jvp of jvp": lambda f, k, t, v: push(push(f, t), v),
}


def _second(c: Case, f: Any, what: str) -> None:
    for name, program in _SECOND.items():
        if c.rng.random() < 0.5:
            got = program(f, c.k, c.t.a, c.v.a)(*c.x.a)
            want = program(c.g, c.k, c.t.b, c.v.b)(*c.x.b)
            c.close(arrays(got), arrays(want), f"{what}: {name}")


def second(c: Case) -> None:
    _second(c, c.f, "nest")


def second_mapped(c: Case) -> None:
    _second(c, c.mapped, "vmap")


def _per_component(c: Case, f: Any, extra: Any, what: str) -> None:
    m = len(c.p.nests)
    got = func.vmap(f, in_dims=(*c.dims, *(c.dims if extra else ())))(*c.x.a, *(c.t.a if extra else ()))
    each = [
        f(*[x[i] for x in c.x.lists], *c.x.dense, *([*[x[i] for x in c.t.lists], *c.t.dense] if extra else ()))
        for i in range(c.p.n)
    ]
    for j, d in enumerate(got):
        if c.p.n:
            c.close(parts(d), [e[j].numpy() for e in each], f"{what}: argument {j}")
        if j < m:
            same_structure(d, c.x.nests[j], what)


def per_component(c: Case) -> None:
    _per_component(c, grad(c.h, c.k), False, "vmap of grad")


def per_component_second(c: Case) -> None:
    _per_component(c, lambda *a: func.jvp(grad(c.h, c.k), a[: c.k], a[c.k :])[1], True, "vmap of jvp of grad")


def hessians(c: Case) -> None:
    """A Hessian of each component's own size, contracted with a direction."""
    count = [x.numel() for x in c.x.lists[0]]
    if not 0 < sum(count) <= 40:
        return
    got = func.vmap(func.hessian(c.h), in_dims=c.dims)(*c.x.a)
    want = [
        func.hessian(c.h)(*[x[i] for x in c.x.lists], *c.x.dense).numpy() if m else np.zeros(2 * c.x.lists[0][i].shape)
        for i, m in enumerate(count)
    ]
    if want:
        c.close(parts(got), want, "vmap of hessian")


def differences(c: Case) -> None:
    """Forward mode on the nest against central differences of the nest's own values."""
    h = 1e-5
    move = lambda s: c.f(*[x + s * h * t for x, t in zip(c.x.a, c.t.a, strict=True)]).item()
    got, want = push(c.f, c.t.a)(*c.x.a).item(), (move(1) - move(-1)) / (2 * h)
    finer = (move(0.25) - move(-0.25)) / (0.5 * h)
    size = max(1.0, abs(want), abs(c.f(*c.x.a).item()))
    if abs(finer - want) < 1e-5 * size:  # no kink in between
        c.close([np.asarray(got / size)], [np.asarray(want / size)], "jvp and differences", 5e-5)


class Ensemble:
    """Members that share the nests: a scale for each, and (or) dense operands of their own."""

    def __init__(self, c: Case) -> None:
        self.c, rng = c, c.rng
        self.size = int(rng.choice([1, 2, 3, max(c.p.n, 1)]))
        own = [bool(rng.random() < 0.5) for _ in c.p.dense]
        self.scales = tensor(rng.normal(size=self.size) + 1.5)
        self.dense = [
            tensor(rng.normal(size=(self.size, *w.shape))) if o else tensor(rng.normal(size=w.shape))
            for w, o in zip(c.p.dense, own, strict=True)
        ]
        self.in_dims = (0, *(None,) * len(c.p.nests), *[0 if o else None for o in own])
        self.own = own

    def args(self, xs: list[Any]) -> tuple[Any, ...]:
        return (self.scales, *xs, *self.dense)

    def member(self, e: int, xs: list[Any]) -> tuple[Any, ...]:
        return (self.scales[e], *xs, *[w[e] if o else w for w, o in zip(self.dense, self.own, strict=True)])

    def on_nests(self, s: Any, *a: Any) -> Any:
        m = len(self.c.p.nests)
        return self.c.p.on_nests(a[0] * s, *a[1:m], *a[m:])

    def on_lists(self, s: Any, *a: Any) -> Any:
        m = len(self.c.p.nests)
        return self.c.p.on_lists([x * s for x in a[0]], *a[1:m], *a[m:])


def _members(y: Tensor) -> list[Tensor]:
    return [y.select(0, e) for e in range(int(y.shape[0]))]


def ensemble(c: Case) -> None:
    e = Ensemble(c)
    got = func.vmap(e.on_nests, in_dims=e.in_dims)(*e.args(c.x.nests))
    for i in range(e.size):
        c.same_outputs([_members(y)[i] for y in got], e.on_lists(*e.member(i, c.x.lists)), f"ensemble of {e.size}")


def ensemble_first(c: Case) -> None:
    e = Ensemble(c)
    f, g = (lambda *a: total(e.on_nests(*a))), (lambda *a: total(e.on_lists(*a)))
    k = c.k + 1
    got = func.vmap(grad(f, k), in_dims=e.in_dims)(*e.args(c.x.nests))
    want = [grad(g, k)(*e.member(i, c.x.lists)) for i in range(e.size)]
    for i, w in enumerate(want):
        mine = [_members(d)[i] for d in got]
        for d, x in zip(mine[1 : 1 + len(c.x.nests)], c.x.nests, strict=True):
            same_structure(d, x, f"ensemble of {e.size}")
        c.close(arrays(mine), arrays(w), f"ensemble of {e.size}: vmap of grad")
    summed = grad(lambda *a: total([func.vmap(f, in_dims=e.in_dims)(*a)]), k)(*e.args(c.x.nests))
    loop = grad(lambda *a: total([g(*_pick(e, a, i)) for i in range(e.size)]), k)(*e.args(c.x.lists))
    c.close(arrays(summed), arrays(loop), f"ensemble of {e.size}: grad of vmap")


# Functions of what the members give, along their axis, which stands in front of the components.
ALONG_MEMBERS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda y: y.sum(0), "var": lambda y: y.var(0, correction=0), "logsumexp": lambda y: y.logsumexp(0), "norm": lambda y: (y * y + 1).norm(dim=0),
    "max": lambda y: y.max(0).values, "amin": lambda y: y.amin(0), "quantile": lambda y: y.quantile(0.3, 0), "prod": lambda y: y.prod(0),
    "mean too": lambda y: y.mean((0, -1)), "var too": lambda y: y.var((0, -1), correction=0), "norm too": lambda y: (y * y + 1).norm(dim=(0, -1)),
    "last": lambda y: y[-1], "apart": lambda y: y.movedim(0, -1), "median": lambda y: y.median(0).values,
    "centred": lambda y: y - y.mean(0, keepdim=True), "softmax": lambda y: y.softmax(0), "cumsum": lambda y: y.cumsum(0), "sort": lambda y: y.sort(0).values,
    "cummax": lambda y: y.cummax(0).values, "flip": lambda y: y.flip(0), "roll": lambda y: y.roll(1, 0), "index": lambda y: y[tensor([0, -1, 0])],
    "gather": lambda y: y.gather(0, y.detach().argsort(0)), "cat": lambda y: cat([y, 2 * y[:1]], 0), "diff": lambda y: y.diff(dim=0),
    "repeat": lambda y: y.repeat(2, *(1,) * (y.ndim - 1)), "written": lambda y: written(lambda z: z.__setitem__(0, z[-1] * 2))(y),
}  # fmt: skip
TOO = frozenset(("mean too", "var too", "norm too"))  # over the last dim of the components beside
DROPS = frozenset("sum var logsumexp norm max amin quantile prod last apart median".split()) | TOO


def members(c: Case) -> None:
    """What an ensemble gives, combined: values, and derivatives through both."""
    e, name = Ensemble(c), str(c.rng.choice(list(ALONG_MEMBERS)))
    real = [q for q, i in enumerate(c.p.outputs) if c.p.values[i].real]
    if name in TOO and not all(c.p.values[c.p.outputs[q]].dims and c.p.values[c.p.outputs[q]].has(-1) for q in real):
        return
    if name == "quantile" and (
        not all(c.p.values[c.p.outputs[q]].n for q in real)
        or any(not np.prod(w.shape) for out in c.p.on_lists(*c.x.b) for w in out)
    ):
        return  # there is none of nothing
    f, what = ALONG_MEMBERS[name], f"{name} along an ensemble"

    def on_nests(*a: Any) -> list[Any]:
        ys = func.vmap(e.on_nests, in_dims=e.in_dims)(*a)
        return [f(ys[q]) for q in real]

    def on_lists(*a: Any) -> list[Any]:
        each = [e.on_lists(*_pick(e, a, i)) for i in range(e.size)]
        return [[f(stack([y[q][j] for y in each])) for j in range(len(each[0][q]))] for q in real]

    a, b = e.args(c.x.nests), e.args(c.x.lists)
    for y, want in zip(on_nests(*a), on_lists(*b), strict=True):
        if name in DROPS:
            c.close(parts(y), [w.numpy() for w in want], what)
        else:
            for i in range(int(y.shape[0])):
                c.close(parts(y.select(0, i)), [w[i].numpy() for w in want], f"{what}, {i}")
    g, h = (lambda *a: total(on_nests(*a))), (lambda *a: total(on_lists(*a)))
    c.close(arrays(grad(g, c.k + 1)(*a)), arrays(grad(h, c.k + 1)(*b)), f"{what}: grad")
    c.close(arrays(push(g, a)(*a)), arrays(push(h, b)(*b)), f"{what}: jvp")


def _pick(e: Ensemble, a: tuple[Any, ...], i: int) -> list[Any]:
    return [x[i] if d == 0 else x for x, d in zip(a, e.in_dims, strict=True)]


def ensemble_second(c: Case) -> None:
    e = Ensemble(c)
    f, g = (lambda *a: total(e.on_nests(*a))), (lambda *a: total(e.on_lists(*a)))
    k = c.k + 1
    second = lambda h: lambda *a: func.jvp(grad(h, k), a, a)[1]
    got = func.vmap(second(f), in_dims=e.in_dims)(*e.args(c.x.nests))
    for i in range(e.size):
        want = second(g)(*e.member(i, c.x.lists))
        c.close(arrays([_members(d)[i] for d in got]), arrays(want), f"ensemble of {e.size}: vmap of jvp of grad")


def ensemble_of_maps(c: Case) -> None:
    """vmap over members of vmap over components, and the other way round."""
    e = Ensemble(c)
    one = lambda s, *a: c.p.on_one(a[0] * s, *a[1:])
    inner = (None, *c.dims)
    nestings = {
        "members of components": func.vmap(func.vmap(one, in_dims=inner), in_dims=e.in_dims),
        "gradients, members of components": func.vmap(
            func.vmap(grad(lambda *a: total(one(*a)), c.k + 1), in_dims=inner), in_dims=e.in_dims
        ),
    }
    for name, run in nestings.items():
        got = run(*e.args(c.x.nests))
        for i in range(e.size):
            s, *rest = e.member(i, c.x.lists)
            m = len(c.p.nests)
            one_of = lambda j, s=s, rest=rest, m=m: (s, *[x[j] for x in rest[:m]], *rest[m:])
            f = one if name.startswith("m") else grad(lambda *a: total(one(*a)), c.k + 1)
            want = [f(*one_of(j)) for j in range(c.p.n)]
            for q, y in enumerate(got):
                member = _members(y)[i]
                if want:
                    c.close(parts(member), [w[q].numpy() for w in want], f"{name}: output {q}")


def documents(c: Case) -> None:
    """The components in groups, as a nest of nests: a map over the groups of a map over their components."""
    n, rng = c.p.n, c.rng
    cuts = np.sort(rng.integers(0, n + 1, int(rng.integers(0, 3))))
    counts = np.diff([0, *cuts, n])
    deep = lambda xs: [_grouped(x, counts) for x in xs]
    k = len(c.p.nests)
    a = (*deep(c.x.nests), *c.x.dense)
    twice = lambda f: func.vmap(func.vmap(f, in_dims=c.dims), in_dims=c.dims)
    got = twice(c.p.on_one)(*a)
    for j, (y, want) in enumerate(zip(got, c.p.on_lists(*c.x.b), strict=True)):
        c.close(_members_of(y), [w.numpy() for w in want], f"documents: output {j}")
    slopes = grad(c.g, c.k)(*c.x.b)
    mine = grad(lambda *a: total(twice(c.p.on_one)(*a)), c.k)(*a)
    for j, (d, w) in enumerate(zip(mine, slopes, strict=True)):
        c.close(_members_of(d) if j < k else arrays(d), arrays(w), f"documents: grad of argument {j}")
    for d, x in zip(mine[:k], a[:k], strict=True):
        assert d.shape == x.shape, f"documents: a derivative of shape {d.shape} for {x.shape}"
    each = twice(grad(c.h, c.k))(*a)
    for j in range(k):
        c.close(_members_of(each[j]), arrays(slopes[j]), f"documents: grad inside, argument {j}")
    t = (*deep(c.t.nests), *c.t.dense)
    e = Ensemble(c)
    g, one = (lambda *a: total(e.on_lists(*a))), (lambda s: lambda *b: c.p.on_one(b[0] * s, *b[1:]))
    deep_number = lambda s, *a: total(twice(one(s))(*a))
    ours = grad(lambda *a: total([func.vmap(deep_number, in_dims=e.in_dims)(*a)]), c.k + 1)(*e.args(deep(c.x.nests)))
    theirs = grad(lambda *a: total([g(*_pick(e, a, i)) for i in range(e.size)]), c.k + 1)(*e.args(c.x.lists))
    for j, (d, w) in enumerate(zip(ours, theirs, strict=True)):
        c.close(_members_of(d) if 1 <= j <= k else arrays(d), arrays(w), f"documents of {e.size} members: argument {j}")
    push_twice = func.jvp(lambda *a: total(twice(c.p.on_one)(*a)), a, t)[1]
    c.close(arrays(push_twice), arrays(push(c.g, c.t.b)(*c.x.b)), "documents: jvp")


def _grouped(x: Tensor, counts: np.ndarray) -> Tensor:
    """The components of a nest as those of a nest of nests."""
    shape = (RaggedInt(counts), *[DeepInt(s.values, counts) if type(s) is RaggedInt else s for s in x.shape[1:]])
    full = (Nest(np.ones(len(counts), np.int64), shape), *shape)
    return nested.nest_p(nested.values(x).reshape(-1), shape=full)


def _members_of(y: Tensor) -> list[np.ndarray]:
    """The inner components of a result on nests of nests."""
    return [
        part for group in y.unbind() for part in (parts(group) if group.is_nested else list(group.numpy(force=True)))
    ]


ONE = {
    documents,
    mapped_value,
    first_mapped,
    second_mapped,
    per_component,
    per_component_second,
    hessians,
    ensemble_of_maps,
}
MODES: dict[str, Callable[[Case], None]] = {
    f.__name__: f
    for f in (
        value, mapped_value, first, first_mapped, backward, second, second_mapped, per_component, per_component_second, hessians,
        differences, ensemble, ensemble_first, ensemble_second, ensemble_of_maps, documents, members,
    )
}  # fmt: skip


def decided_by_rounding(p: Program, mode: str, seed: int, number: int) -> bool:
    """Whether the last digits of the inputs decide the reference of a comparison: an order of equal sums, the sine of 1e16.

    Measured, not assumed: the references of the same mode for inputs a few units in the last place away. Where they differ by
    more than the judge allows, nothing can be compared.
    """
    wanted = []
    for trial in range(5):
        c = Case(p, np.random.default_rng(seed))
        if trial:
            c.x.shake(np.random.default_rng([seed, trial]))
        c.wanted = []
        MODES[mode](c)
        if len(c.wanted) <= number:
            return True  # a kink between the points of a difference
        wanted.append(c.wanted[number])
    for near in wanted[1:]:
        try:
            close(near, wanted[0], "")
        except AssertionError:
            return True
    return False


def judge(p: Program, mode: str, seed: int = 0) -> bool:
    """Judge a program in a mode: False where rounding decides the result. Modes that map over components pass over programs that mix them."""
    f = MODES[mode]
    if p.mixes and f in ONE:
        return True
    c = Case(p, np.random.default_rng(seed))
    try:
        f(c)
    except AssertionError:
        if not c.different or not decided_by_rounding(p, mode, seed, c.asked - 1):
            raise
        return False
    return True
