"""The judge of nested tensors: a function on a nest against the same function on each component, in every mode.

A case's function uses negative dims, so that it means the same on a nest and on one component. Both are made one number by
fixed random weights, ``sum(w * y + u * y**2 / 2)``, whose derivatives of first and second order are then compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import chainrule as ct
from chainrule.core.dispatch import innermost
from chainrule.core.tree import flatten, unflatten

SHAPES = {
    "rows": [(3, 4), (1, 4), (5, 4), (2, 4)],
    "gaps": [(3, 4), (0, 4), (1, 4), (5, 4), (0, 4)],
    "vectors": [(3,), (1,), (6,), (2,)],
    "equal": [(3, 4), (3, 4)],
    "ones": [(1, 4), (1, 4), (1, 4)],
    "single": [(3, 4)],
    "inner": [(4, 3), (4, 1), (4, 5)],
    "images": [(2, 3, 2), (3, 1, 2), (1, 4, 2)],
    "planes": [(2, 3), (3, 1), (1, 4)],
    "long": [(3, 4), (2, 4), (5, 4)],
    "channels": [(4, 3), (4, 2), (4, 5)],
    "pictures": [(4, 2, 3), (4, 3, 2), (4, 1, 4)],
    "heads": [(2, 3, 4), (2, 1, 4), (2, 5, 4)],
    "heads gap": [(2, 3, 4), (2, 0, 4), (2, 2, 4)],
    "square": [(2, 2), (3, 3), (1, 1)],
}


@dataclass(frozen=True)
class Case:
    """A function of nests (one for each entry of `nests`, of the same kind of shapes) and of dense tensors."""

    name: str
    f: Callable[..., Any]
    shapes: str = "rows"
    nests: int = 1
    dense: tuple[tuple[int, ...], ...] = ()
    make: Callable[[np.ndarray], np.ndarray] = field(default=lambda a: a)
    differentiable: bool = True
    vmap: bool = True
    # The same on one component, where dims of the nest and of a component are not the same.
    component: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return f"{self.name}-{self.shapes}"


def data(case: Case, seed: int = 0) -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """The components of each nest, and the dense operands."""
    rng = np.random.default_rng([seed, *map(ord, case.name)])
    nests = [[case.make(rng.normal(size=s)) for s in SHAPES[case.shapes]] for _ in range(case.nests)]
    return nests, [rng.normal(size=s) for s in case.dense]


def parts(y: Any, n: int) -> list[list[np.ndarray]]:
    """A result as a list for each component."""
    out = []
    for t in flatten(y)[0]:
        if t.is_nested:
            out.append([c.numpy(force=True) for c in t.unbind()])
        else:
            assert t.shape[0] == n, f"a dense result must have one entry for each component, got {t.shape}"
            out.append(list(t.numpy(force=True)))
    return [list(c) for c in zip(*out, strict=True)] if n else []


def weights(shape: Any, k: int) -> np.ndarray:
    """Fixed weights of a result's component."""
    size = int(np.prod(shape))
    return np.cos(np.arange(size) * (1.3 + k) + 0.7).reshape(shape)


def number(ys: list[Any], make: Callable[[Any, int], Any]) -> Any:
    """``sum(w y + u y**2 / 2)`` over all floating results."""
    total: Any = 0
    for j, y in enumerate(ys):
        if y.dtype.is_floating_point:
            total = total + (make(y, 2 * j) * y).sum() + (make(y, 2 * j + 1) * y * y).sum() / 2
    return total


def nested_number(case: Case) -> Callable[..., Any]:
    """The number as a function of the nests and the dense operands."""

    def make(y: Any, k: int) -> Any:
        if y.is_nested:
            return ct.nested.nested_tensor(
                [weights(tuple(s), k) for s in y._nested_tensor_size().tolist()], dtype=ct.float64
            )
        return ct.tensor(np.stack([weights(tuple(y.shape[1:]), k) for _ in range(y.shape[0])]))

    return lambda *xs: number(flatten(case.f(*xs))[0], make)


def component_number(case: Case) -> Callable[..., Any]:
    """The same number as a function of lists of components and the dense operands."""
    f = case.component or case.f

    def g(*xs: Any) -> Any:
        nests, dense = xs[: case.nests], xs[case.nests :]
        total: Any = 0
        for comps in zip(*nests, strict=True):
            total = total + number(flatten(f(*comps, *dense))[0], lambda y, k: ct.tensor(weights(tuple(y.shape), k)))
        return total

    return g


def flat(tree: Any) -> list[np.ndarray]:
    """All numbers of a result: nests by component."""
    out = []
    for t in flatten(tree)[0]:
        out += [c.numpy(force=True) for c in t.unbind()] if t.is_nested else [t.numpy(force=True)]
    return out


def close(got: Any, want: Any, what: str) -> None:
    """Equal numbers in the same structure."""
    a, b = flat(got), flat(want)
    assert len(a) == len(b), f"{what}: {len(a)} and {len(b)} arrays"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        assert x.shape == y.shape, f"{what}: part {i} has shape {x.shape}, wanted {y.shape}"
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9, err_msg=f"{what}, part {i}")


def inputs(case: Case, seed: int = 0) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Arguments for the nested function, and for the one of components."""
    nests, dense = data(case, seed)
    ds = tuple(ct.tensor(d) for d in dense)
    xs = tuple(ct.nested.nested_tensor(c, dtype=ct.float64) for c in nests)
    return (*xs, *ds), (*[[ct.tensor(a) for a in c] for c in nests], *ds)


def check_values(case: Case) -> None:
    """The function of the nest equals the function of each component; under vmap too."""
    (xs, cs), n = inputs(case), len(SHAPES[case.shapes])
    f = case.component or case.f
    want = [[t.numpy() for t in flatten(f(*[c[i] for c in cs[: case.nests]], *cs[case.nests :]))[0]] for i in range(n)]
    runs = {"value": case.f(*xs)}
    if case.vmap:
        runs["vmap"] = ct.vmap(f, in_dims=(*(0,) * case.nests, *(None,) * len(case.dense)))(*xs)
    for how, y in runs.items():
        got = parts(y, n)
        for i, (a, b) in enumerate(zip(got, want, strict=True)):
            for u, v in zip(a, b, strict=True):
                assert u.shape == v.shape, f"{how}: component {i} has shape {u.shape}, wanted {v.shape}"
                np.testing.assert_allclose(u, v, rtol=1e-10, atol=1e-10, err_msg=f"{how}, component {i}")


def check_derivatives(case: Case) -> None:
    """Gradient, forward mode, and the four second-order mixes equal those of the components."""
    xs, cs = inputs(case)
    ts, tcs = inputs(case, 1)
    vs, vcs = inputs(case, 2)
    f, g = nested_number(case), component_number(case)
    every = tuple(range(len(xs)))

    def grad(h: Any) -> Any:
        return ct.func.grad(h, argnums=every)

    def push(h: Any, t: Any) -> Any:
        return lambda *a: ct.func.jvp(h, a, t)[1]

    def dot(a: Any, b: Any) -> Any:
        return sum((u * v).sum() for u, v in zip(flatten(a)[0], flatten(b)[0], strict=True))

    programs = {
        "grad": lambda h, t, v: grad(h),
        "jvp": lambda h, t, v: push(h, t),
        "jvp of grad": lambda h, t, v: push(grad(h), t),
        "grad of grad": lambda h, t, v: grad(lambda *a: dot(grad(h)(*a), t)),
        "grad of jvp": lambda h, t, v: grad(push(h, t)),
        "jvp of jvp": lambda h, t, v: push(push(h, t), v),
    }
    for name, program in programs.items():
        close(program(f, ts, vs)(*xs), program(g, tcs, vcs)(*cs), f"{case.name}: {name}")
    # backward() is the same reverse mode at level 0.
    leaves = [x.detach().clone().requires_grad_() for x in xs]
    f(*leaves).backward()
    close([x.grad for x in leaves], grad(g)(*cs), f"{case.name}: backward")


def check_vmap_derivatives(case: Case) -> None:
    """Per-component gradients and forward mode by ``vmap`` equal the gradients of each component's own number."""
    xs, cs = inputs(case)
    ts, tcs = inputs(case, 1)
    n, k = len(SHAPES[case.shapes]), case.nests
    f = case.component or case.f

    def one(*a: Any) -> Any:
        return sum((y * y).sum() / 2 + y.sin().sum() for y in flatten(f(*a))[0] if y.dtype.is_floating_point)

    dims = (*(0,) * k, *(None,) * len(case.dense))
    every = tuple(range(len(xs)))
    got = ct.vmap(ct.func.grad(one, argnums=every), in_dims=dims)(*xs)
    each = [ct.func.grad(one, argnums=every)(*[c[i] for c in cs[:k]], *cs[k:]) for i in range(n)]
    close(
        got,
        [[e[j] for e in each] if j < k else ct.stack([e[j] for e in each]) for j in range(len(xs))],
        f"{case.name}: vmap of grad",
    )
    push = ct.vmap(lambda a, t: ct.func.jvp(ct.func.grad(one, argnums=every), a, t)[1], in_dims=(dims, dims))(xs, ts)
    each = [
        ct.func.jvp(
            ct.func.grad(one, argnums=every), (*[c[i] for c in cs[:k]], *cs[k:]), (*[c[i] for c in tcs[:k]], *tcs[k:])
        )[1]
        for i in range(n)
    ]
    close(
        push,
        [[e[j] for e in each] if j < k else ct.stack([e[j] for e in each]) for j in range(len(xs))],
        f"{case.name}: vmap of jvp of grad",
    )


def check_empty(case: Case) -> None:
    """A nest without components gives results and derivatives without components."""
    xs, _ = inputs(case)
    none = tuple(x[:0] if i < case.nests else x for i, x in enumerate(xs))
    mapped = ct.vmap(case.component or case.f, in_dims=(*(0,) * case.nests, *(None,) * len(case.dense)))
    for y in flatten((case.f(*none), mapped(*none) if case.vmap else ()))[0]:
        assert int(y.shape[0]) == 0, f"{case.name}: a result of shape {y.shape} from no components"
    if not case.differentiable:
        return

    def f(*a: Any) -> Any:
        return sum((y * y.sin()).sum() for y in flatten(case.f(*a))[0] if y.dtype.is_floating_point)

    every = tuple(range(len(none)))
    for g in (
        ct.func.grad(f, every)(*none),
        ct.func.jvp(ct.func.grad(f, every), none, none)[1],
        ct.func.grad(lambda *a: ct.func.jvp(f, a, none)[1], every)(*none),
    ):
        for x, d in zip(none, g, strict=True):
            assert d.shape == x.shape, f"{case.name}: a derivative of shape {d.shape} for an input of shape {x.shape}"
            assert d.is_nested or not d.any(), f"{case.name}: dense operands have no derivative without components"
    assert ct.func.jvp(f, none, none)[1].item() == 0


def check_strided(case: Case) -> None:
    """A nest whose packed rows are not contiguous in memory is as good as one whose rows are."""
    xs, _ = inputs(case)
    apart = tuple(ct.complex(x, 3 * x).real if i < case.nests else x for i, x in enumerate(xs))
    rows = innermost(apart[0]).rows
    assert rows.size < 2 or not rows.flags.c_contiguous
    close(flatten(case.f(*apart))[0], flatten(case.f(*xs))[0], f"{case.name}: value")
    if case.differentiable:
        f, every = nested_number(case), tuple(range(len(xs)))
        close(ct.func.grad(f, every)(*apart), ct.func.grad(f, every)(*xs), f"{case.name}: grad")
        close(ct.func.jvp(f, apart, apart)[1], ct.func.jvp(f, xs, xs)[1], f"{case.name}: jvp")


__all__ = [
    "SHAPES",
    "Case",
    "check_derivatives",
    "check_empty",
    "check_strided",
    "check_values",
    "check_vmap_derivatives",
    "close",
    "inputs",
    "unflatten",
]
