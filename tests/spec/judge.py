"""The judge of a rule: PyTorch for values and first-order reverse mode, mathematics for everything else.

A program is a function ``f(m, *xs)`` of a library `m` (chainrule or PyTorch) and arrays, so that one text runs on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import chainrule
from chainrule import func
from chainrule.testing import laws

from .report import absent
from .rules import F


def row(*ids: str) -> pytest.MarkDecorator:
    """The rows of the list that a test covers."""
    return pytest.mark.row(*ids)


def require(names: str) -> None:
    """Fail where an operator is gone. ``F.`` is short for ``nn.functional.``."""
    gone = absent(n.replace("F.", F, 1) if n.startswith("F.") else n for n in names.split())
    if gone:
        pytest.fail("gone: " + ", ".join(sorted(gone)))


class _Torch:
    """torch, with the operators that only its dispatcher names."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name) if hasattr(torch, name) else getattr(torch.ops.aten, name)


TORCH = _Torch()


def array(*shape: int, cx: bool = False, seed: int = 0, low: float | None = None, high: float = 2.0) -> np.ndarray:
    """A random array: normal, or uniform in [low, high)."""
    rng = np.random.default_rng([seed, *shape, 7])

    def part() -> np.ndarray:
        return rng.standard_normal(shape) if low is None else rng.uniform(low, high, shape)

    return np.asarray(part() + 1j * part() if cx else part())


def floats(ys: Any) -> list[Any]:
    """The floating and complex tensors among results."""
    return [y for y in leaves(ys) if y.dtype.is_floating_point or y.dtype.is_complex]


def leaves(ys: Any) -> list[Any]:
    if isinstance(ys, torch.Tensor | chainrule.Tensor):
        return [ys]
    return [z for y in ys for z in leaves(y)] if isinstance(ys, tuple | list) else []


def number(y: Any) -> np.ndarray:
    """A result of either library as an array."""
    y = y.detach()
    return y.numpy(force=True) if isinstance(y, torch.Tensor) else y.numpy()


def same(got: Any, want: Any, what: str, tol: float = 1e-9) -> None:
    """Equal shapes, kinds and numbers; NaN and infinities where they should be."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    assert got.dtype == want.dtype, f"{what}: {got.dtype}, expected {want.dtype}"
    scale = 1 + np.max(np.abs(want[np.isfinite(want)]), initial=0.0) if want.dtype.kind in "fc" else 1
    np.testing.assert_allclose(got, want, rtol=0, atol=tol * scale, err_msg=what)


def is_free(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


def bind(m: Any, f: Callable[..., Any], xs: tuple[Any, ...], make: Callable[[np.ndarray], Any]) -> Callable[..., Any]:
    """`f` as a function of the floating arrays among `xs` alone."""
    fixed = [x if is_free(x) or not isinstance(x, np.ndarray) else make(x) for x in xs]

    def g(*free: Any) -> Any:
        it: Iterator[Any] = iter(free)
        return f(m, *[next(it) if is_free(x) else x for x in fixed])

    return g


def cotangents(ys: list[np.ndarray], seed: int = 3) -> list[np.ndarray]:
    """Random cotangents of results; some are complex where the result is."""
    rng = np.random.default_rng(seed)
    return [
        np.asarray(
            rng.standard_normal(y.shape) + (1j * rng.standard_normal(y.shape) if y.dtype.kind == "c" else 0), y.dtype
        )
        for y in ys
    ]


def values(f: Callable[..., Any], *xs: Any, tol: float = 1e-10) -> None:
    """All results equal PyTorch's."""
    free = [x for x in xs if is_free(x)]
    ours = leaves(bind(chainrule, f, xs, chainrule.tensor)(*[chainrule.tensor(x) for x in free]))
    theirs = leaves(bind(TORCH, f, xs, torch.tensor)(*[torch.tensor(x) for x in free]))
    assert len(ours) == len(theirs), f"{len(ours)} results, expected {len(theirs)}"
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        same(number(a), number(b), f"value {k}", tol)


def gradients(f: Callable[..., Any], *xs: Any, tol: float = 1e-9) -> None:
    """First-order reverse mode equals PyTorch's, for a random cotangent of every result."""
    free = [x for x in xs if is_free(x)]
    g = bind(chainrule, f, xs, chainrule.tensor)
    ys, pull = func.vjp(lambda *a: tuple(floats(g(*a))), *[chainrule.tensor(x) for x in free])
    gs = cotangents([number(y) for y in ys])
    ours = pull(tuple(chainrule.tensor(c) for c in gs))
    leaf = [torch.tensor(x, requires_grad=True) for x in free]
    outs = [(y, c) for y, c in zip(floats(bind(TORCH, f, xs, torch.tensor)(*leaf)), gs, strict=True) if y.requires_grad]
    theirs = (
        torch.autograd.grad([y for y, _ in outs], leaf, [torch.tensor(c) for _, c in outs], allow_unused=True)
        if outs
        else [None] * len(leaf)
    )
    for k, (a, b, x) in enumerate(zip(ours, theirs, free, strict=True)):
        same(number(a), np.zeros_like(x) if b is None else number(b), f"gradient {k}", tol)


def case(name: str, f: Callable[..., Any], *xs: Any) -> laws.Case:
    """The program as a case of the laws."""
    return laws.Case(name, bind(chainrule, f, xs, chainrule.tensor), [x for x in xs if is_free(x)])


def mixes_agree(c: laws.Case, rng: np.random.Generator) -> None:
    """Where central differences have no meaning: the reverse and forward rules are adjoint at first and second order, and
    forward over reverse equals reverse over forward."""
    f, xs = laws.outputs(c.f), c.tensors()
    n = len(xs)
    gs, ts = laws.like(rng, f(*xs)), laws.like(rng, xs)
    back, push = laws._vjp_map(f, n), laws._jvp_map(f, n)
    for name, g, extra in (("reverse", back, gs), ("forward", push, ts)):
        laws.check_dot(laws.Case(f"{name} rule of {c}", g, [x.numpy() for x in (*xs, *extra)]), rng)
    hess = func.jvp(lambda *a: back(*a, *gs), tuple(xs), tuple(ts))[1]
    again = func.vjp(lambda *a: push(*a, *ts), *xs)[1](tuple(gs))
    laws.expect("two nestings agree", c, [number(a) for a in hess], [number(b) for b in again], 1e-8)


def mathematics(c: laws.Case, smooth: bool = True, vmap: bool = True, order: int = 2) -> None:
    """Forward mode, second order in all mixes, vmap of each. At a kink central differences are left out.

    `order` 3 puts the reverse rule itself through all of it.
    """
    rng = np.random.default_rng(5)
    laws.check_dot(c, rng)
    if smooth:
        laws.check_tangent(c, rng)
        laws.check_second(c, rng)
    else:
        mixes_agree(c, rng)
    if vmap:
        laws.check_vmap(c, rng)
    if order > 2:
        f, xs = laws.outputs(c.f), c.tensors()
        gs = laws.like(rng, f(*xs))
        rule = laws.Case(f"reverse rule of {c}", laws._vjp_map(f, len(xs)), [x.numpy() for x in (*xs, *gs)])
        mathematics(rule, smooth, vmap=False, order=order - 1)


def judge(
    needs: str,
    f: Callable[..., Any],
    *xs: Any,
    smooth: bool = True,
    vmap: bool = True,
    order: int = 2,
    oracle: str = "value gradient",
) -> None:
    """The whole judgement of a program at a point.

    `oracle` says for what PyTorch is right there. A point on a kink or at infinity is not `smooth`.
    """
    require(needs)
    if "value" in oracle:
        values(f, *xs)
    if "gradient" in oracle:
        gradients(f, *xs)
    if any(is_free(x) for x in xs):
        mathematics(case(needs, f, *xs), smooth, vmap, order)


def gradient(f: Callable[..., Any], *xs: Any) -> list[np.ndarray]:
    """Our gradients of the sum of all floating results (real parts)."""
    free = [chainrule.tensor(x) for x in xs if is_free(x)]
    g = bind(chainrule, f, xs, chainrule.tensor)
    ys, pull = func.vjp(lambda *a: tuple(floats(g(*a))), *free)
    return [number(a) for a in pull(tuple(chainrule.ones_like(y) for y in ys))]
