"""gradcheck and gradgradcheck: analytical derivatives against central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import func as F
from ..core import dtypes as dt
from ..core.payload import COMPOSED
from ..core.sizes import SEEN
from ..core.tensor import Tensor


class GradcheckError(RuntimeError):
    """An analytical derivative does not match the numerical one."""


def _arguments(func: Callable[..., Any], inputs: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The function and its arguments; with vectors in place of nested tensors, whose elements count as one dim."""
    args = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    if COMPOSED:
        from ..ops.sparse.check import of_numbers

        func, args = of_numbers(func, args)
    if not SEEN or not any(isinstance(a, Tensor) and a.is_nested for a in args):
        return func, args
    from ..payloads.nested.jacobian import flat_function

    f, vectors, _ = flat_function(func, tuple(a.detach() if isinstance(a, Tensor) else a for a in args))
    return f, [
        v.detach().requires_grad_(a.requires_grad) if isinstance(a, Tensor) else a
        for v, a in zip(vectors, args, strict=True)
    ]


def _outputs(y: Any) -> list[Tensor]:
    ys = list(y) if isinstance(y, tuple | list) else [y]
    return [v for v in ys if isinstance(v, Tensor) and v.dtype.category >= dt.FLOAT]


def _numerical(f: Callable[..., list[Tensor]], xs: list[Tensor], k: int, eps: float) -> list[np.ndarray]:
    """For every real coordinate of input k, the change of each output: rows of [coordinates, output]."""
    base = xs[k].detach().numpy()
    cols: list[list[np.ndarray]] = []
    units = [1.0, 1j] if base.dtype.kind == "c" else [1.0]
    for i in np.ndindex(base.shape):
        for u in units:
            pair = []
            for sign in (1, -1):
                moved = base.copy()
                moved[i] += sign * eps * u
                args = [Tensor(moved) if j == k else x for j, x in enumerate(xs)]
                pair.append([y.detach().numpy().copy() for y in f(*args)])
            cols.append([(a - b) / (2 * eps) for a, b in zip(*pair, strict=True)])
    return [np.stack([c[j] for c in cols]).reshape(len(cols), -1) for j in range(len(cols[0]))] if cols else []


def _analytical(f: Callable[..., Any], xs: list[Tensor], k: int, forward: bool, batched: bool) -> list[np.ndarray]:
    x = xs[k]
    cx = x.dtype.category == dt.COMPLEX
    n = x.numel()

    def one(v: Any) -> Any:
        return tuple(f(*[v if j == k else w for j, w in enumerate(xs)]))

    if forward:
        basis = np.eye(n, dtype=x.dtype.np).reshape(n, *x.shape)
        rows = np.concatenate([basis[:, None], 1j * basis[:, None]], 1).reshape(2 * n, *x.shape) if cx else basis
        push = lambda t: F.jvp(one, (x,), (t,))[1]
        outs: Any = F.vmap(push)(Tensor(rows)) if batched else list(zip(*[push(Tensor(r)) for r in rows], strict=True))
        return [(o.numpy() if batched else np.stack([v.numpy() for v in o])).reshape(len(rows), -1) for o in outs]
    ys, pull = F.vjp(one, x)
    result = []
    for j, y in enumerate(ys):
        m = y.numel()
        jac = np.zeros((2 * n if cx else n, m), np.complex128 if y.dtype.category == dt.COMPLEX else np.float64)
        for u in (1.0, 1j) if y.dtype.category == dt.COMPLEX else (1.0,):
            gs = np.eye(m).reshape(m, *y.shape) * u

            def back(g: Any) -> Any:
                return pull(tuple(g if i == j else Tensor(np.zeros(v.shape, v.dtype.np)) for i, v in enumerate(ys)))[0]  # noqa: B023

            gt = Tensor(gs.astype(y.dtype.np))
            rows = (
                (F.vmap(back)(gt).numpy() if batched else np.stack([back(gt.select(0, i)).numpy() for i in range(m)]))
                if m
                else np.zeros((0, n))
            )
            rows = rows.reshape(m, n)
            # Re <u e_i, J t> for t = 1 and t = i
            real = np.stack([rows.real, rows.imag], 2).reshape(m, 2 * n) if cx else rows.real
            jac = jac + (real.T if u == 1.0 else 1j * real.T)
        result.append(jac)
    return result


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Whether the derivatives of `func` at `inputs` equal central differences; differentiates in what requires grad.

    >>> x = chainrule.randn(3, dtype=chainrule.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.sin(), (x,))
    True
    """
    func, args = _arguments(func, inputs)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    if not places:
        raise ValueError("gradcheck: expected at least one input tensor to require gradient; use requires_grad=True")
    xs = [args[i].detach() for i in places]
    for x in xs:
        if x.dtype.name not in ("float64", "complex128"):
            raise ValueError(f"gradcheck needs double precision inputs to be meaningful, got {x.dtype}")

    def f(*vs: Any) -> list[Tensor]:
        full = list(args)
        for i, v in zip(places, vs, strict=True):
            full[i] = v
        return _outputs(func(*full))

    try:
        for k in range(len(xs)):
            want = _numerical(f, xs, k, eps)
            modes = [(False, False)] * check_backward_ad + [(True, False)] * check_forward_ad
            modes += [(False, True)] * check_batched_grad + [(True, True)] * check_batched_forward_grad
            for forward, batched in modes:
                got = _analytical(f, xs, k, forward, batched)
                for j, (a, b) in enumerate(zip(got, want, strict=True)):
                    if not np.allclose(a, b, rtol, atol):
                        raise GradcheckError(
                            f"Jacobian mismatch for output {j} with respect to input {places[k]} ({'forward' if forward else 'reverse'} mode"
                            f"{', batched' if batched else ''}): greatest difference {np.abs(a - b).max():.3g}\nnumerical:\n{b}\nanalytical:\n{a}"
                        )
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False) -> bool:  # fmt: skip
    """gradcheck of the gradient itself: second derivatives, reverse over reverse and, if asked, forward over reverse."""
    func, args = _arguments(func, inputs)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]

    def f(*vs: Any) -> tuple[Tensor, ...]:
        full = list(args)
        for i, v in zip(places, vs, strict=True):
            full[i] = v
        return tuple(_outputs(func(*full)))

    xs = [args[i].detach() for i in places]
    ys = f(*xs)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        gs = [
            Tensor(
                (
                    rng.standard_normal(y.shape)
                    + (1j * rng.standard_normal(y.shape) if y.dtype.category == dt.COMPLEX else 0)
                ).astype(y.dtype.np)
            )
            for y in ys
        ]
    else:
        gs = [g.detach() for g in ([grad_outputs] if isinstance(grad_outputs, Tensor) else grad_outputs)]
    n = len(xs)

    def back(*a: Any) -> Any:
        return F.vjp(f, *a[:n])[1](tuple(a[n:]))

    both = [t.clone().requires_grad_() for t in (*xs, *gs)]
    return gradcheck(back, both, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)  # fmt: skip
