"""gradcheck and gradgradcheck: analytical derivatives against central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import func as F
from ..core import dtypes as dt
from ..core.imperative import enable_grad, grad
from ..core.payload import COMPOSED
from ..core.shapes import zeros as constant_zeros
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


def _plain(x: Tensor) -> np.ndarray:
    """The value, also of what depends on a tensor that the function holds and that requires a gradient."""
    return x.detach().numpy()


def _asking(x: Tensor) -> Tensor:
    """`x` as a leaf that requires a gradient, as the function finds its arguments when it is called outside of gradcheck."""
    return x.detach().requires_grad_()


def _change(pair: list[list[Tensor]], eps: float) -> list[np.ndarray]:
    """The central difference of each output."""
    return [(a.detach().numpy() - b.detach().numpy()) / (2 * eps) for a, b in zip(*pair, strict=True)]


def _numerical(f: Callable[..., list[Tensor]], xs: list[Tensor], k: int, eps: float) -> list[np.ndarray]:
    """For every real coordinate of input k, the change of each output: rows of [coordinates, output]."""
    base = xs[k].detach().numpy()
    xs = [_asking(x) for x in xs]
    cols: list[list[np.ndarray]] = []
    units = [1.0, 1j] if base.dtype.kind == "c" else [1.0]
    for i in np.ndindex(base.shape):
        for u in units:
            pair = []
            for sign in (1, -1):
                moved = base.copy()
                moved[i] += sign * eps * u
                args = [_asking(Tensor(moved)) if j == k else x for j, x in enumerate(xs)]
                pair.append([y.detach().clone() for y in f(*args)])
            cols.append(_change(pair, eps))
    return [np.stack([c[j] for c in cols]).reshape(len(cols), -1) for j in range(len(cols[0]))] if cols else []


Back = Callable[..., Any]


def _backward(f: Callable[..., Any], xs: list[Tensor], k: int) -> tuple[list[Tensor], Back]:
    """The outputs, and from the number of one and its cotangent that of input k, by ``backward``'s own walk: with leaves and hooks."""
    leaves = [_asking(x) for x in xs]
    with enable_grad():
        ys = f(*leaves)

    def back(j: int, g: Any, batched: bool = False) -> Any:
        if not ys[j].requires_grad:
            return constant_zeros((*g.shape[:1], *leaves[k].shape) if batched else leaves[k].shape, leaves[k].dtype)
        (found,) = grad(
            ys[j], leaves[k], g, retain_graph=True, is_grads_batched=batched, allow_unused=True, materialize_grads=True
        )
        return found

    return ys, back


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
        return [(_plain(o) if batched else np.stack([_plain(v) for v in o])).reshape(len(rows), -1) for o in outs]
    ys, back = _backward(f, xs, k)
    result = []
    for j, y in enumerate(ys):
        m = y.numel()
        jac = np.zeros((2 * n if cx else n, m), np.complex128 if y.dtype.category == dt.COMPLEX else np.float64)
        for u in (1.0, 1j) if y.dtype.category == dt.COMPLEX else (1.0,):
            gs = np.eye(m).reshape(m, *y.shape) * u

            gt = Tensor(gs.astype(y.dtype.np))
            rows = (
                (
                    _plain(back(j, gt, True))
                    if batched
                    else np.stack([_plain(back(j, gt.select(0, i))) for i in range(m)])
                )
                if m
                else np.zeros((0, n))
            )
            rows = rows.reshape(m, n)
            # Re <u e_i, J t> for t = 1 and t = i
            real = np.stack([rows.real, rows.imag], 2).reshape(m, 2 * n) if cx else rows.real
            jac = jac + (real.T if u == 1.0 else 1j * real.T)
        result.append(jac)
    return result


def _projected(
    f: Callable[..., Any], xs: list[Tensor], k: int, eps: float, forward: bool, batched: bool
) -> list[tuple[Any, Any]]:
    """For each output the derivative along one random direction of input k, analytical and numerical.

    In reverse mode the output is weighed with random numbers too, so that one pass suffices: ``<v, J u> = <J* v, u>``.
    """
    rng = np.random.default_rng(0)
    x = xs[k]

    def draw(t: Tensor) -> np.ndarray:
        r = rng.standard_normal(t.shape)
        r = r + 1j * rng.standard_normal(t.shape) if t.dtype.category == dt.COMPLEX else r
        return (r / max(float(np.linalg.norm(r)), 1e-300)).astype(t.dtype.np)

    def one(v: Any) -> Any:
        return tuple(f(*[v if j == k else w for j, w in enumerate(xs)]))

    u = draw(x)
    base = x.numpy()
    there = [_asking(w) for w in xs]
    pair = [
        [y.detach().clone() for y in f(*there[:k], _asking(Tensor(np.asarray(base + s * eps * u))), *there[k + 1 :])]
        for s in (1, -1)
    ]
    want = _change(pair, eps)
    if forward:
        if batched:
            got = [_plain(t)[0] for t in F.vmap(lambda t: F.jvp(one, (x,), (t,))[1])(Tensor(u[None]))]
        else:
            got = [_plain(t) for t in F.jvp(one, (x,), (Tensor(u),))[1]]
        return list(zip(got, want, strict=True))
    ys, back = _backward(f, xs, k)
    out = []
    for j, y in enumerate(ys):
        v = draw(y)

        g = _plain(back(j, Tensor(v[None]), True))[0] if batched else _plain(back(j, Tensor(v)))
        inner = lambda a, b: np.sum(np.conj(a) * b).real
        out.append((inner(g, u), inner(v, want[j])))
    return out


def _same_twice(f: Callable[..., Any], xs: list[Tensor], k: int, tol: float, fast: bool) -> None:
    """Refuse a reverse rule that gives different values for the same cotangents; `fast`: for ones alone."""
    if fast:
        ys, back = _backward(f, xs, k)
        ones = [Tensor(np.ones(y.shape, y.dtype.np)) for y in ys]
        first, again = ([_plain(back(j, g)) for j, g in enumerate(ones)] for _ in range(2))
    else:
        first, again = (_analytical(f, xs, k, False, False) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        if a.size and np.abs(a - b).max() > tol:
            raise GradcheckError(
                f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, "
                f"although analytical gradient matches numerical gradient. The tolerance for nondeterminism was {tol}."
            )


def _part(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> str:
    """Which part of a complex output is wrong, in words; nothing for a real one."""
    if b.dtype.kind != "c":
        return ""
    part = "real" if np.allclose(a.imag, b.imag, rtol, atol) else "imaginary"
    return f"While considering the {part} part of complex outputs only, "


def _unconnected(f: Callable[..., Any], xs: list[Tensor], eps: float) -> None:
    """Refuse outputs that do not depend on the inputs as far as the graph knows, and change with them."""
    ys = f(*[_asking(x) for x in xs])
    if any(y.requires_grad for y in ys):
        return
    for k in range(len(xs)):
        if any(np.any(j != 0) for j in _numerical(f, xs, k, eps)):
            raise GradcheckError(
                f"gradcheck: Numerical gradient for function expected to be zero: no output depends on input {k} as far as the graph "
                f"knows, but the outputs change with it. Was a value taken out with item(), or a tensor made from one with tensor()?"
            )


def _check_dtypes(f: Callable[..., Any], xs: list[Tensor]) -> None:
    """Gradients have the type of their inputs."""
    ys, pull = F.vjp(lambda *a: tuple(f(*a)), *xs)
    for k, (g, x) in enumerate(zip(pull(ys), xs, strict=True)):
        if g.dtype is not x.dtype:
            raise GradcheckError(f"gradcheck: the gradient of input {k} has dtype {g.dtype}, the input has {x.dtype}")


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
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("gradcheck: Expected at least one of check_forward_ad or check_backward_ad to be True")
    func, args = _arguments(func, inputs)
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
    if not places:
        raise ValueError("gradcheck: expected at least one input tensor to require gradient; use requires_grad=True")
    xs = [args[i].detach() for i in places]
    for i, x in zip(places, xs, strict=True):
        if x.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"gradcheck: Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail "
                f"if all the inputs are not of double precision floating point or complex (it is {x.dtype}).",
                stacklevel=2,
            )

    forms: dict[str, Any] = {}

    def f(*vs: Any) -> list[Tensor]:
        full = list(args)
        for i, v in zip(places, vs, strict=True):
            full[i] = v
        ys = _outputs(func(*full))
        for what in ("shape", "dtype"):
            now = [getattr(y, what) for y in ys]
            if forms.setdefault(what, now) != now:
                raise AssertionError(
                    f"gradcheck: Expected `func` to return outputs with the same {what} when inputs are perturbed on the order of eps, "
                    f"got {forms[what]} and {now}"
                )
        return ys

    if not f(*[_asking(x) for x in xs]):
        return True  # nothing to differentiate
    try:
        modes = [(False, False)] * check_backward_ad + [(True, False)] * check_forward_ad
        modes += [(False, True)] * check_batched_grad + [(True, True)] * check_batched_forward_grad
        if check_grad_dtypes:
            _check_dtypes(f, xs)
        _unconnected(f, xs, eps)
        for k in range(len(xs)):
            doubtful = modes
            if fast_mode:  # whatever does not fit along one direction is looked at in all of them
                near = lambda a, b: np.allclose(a, b, rtol, atol)
                doubtful = [m for m in modes if not all(near(*t) for t in _projected(f, xs, k, eps, *m))]
            want = _numerical(f, xs, k, eps) if doubtful else []
            for forward, batched in doubtful:
                got = _analytical(f, xs, k, forward, batched)
                for j, (a, b) in enumerate(zip(got, want, strict=True)):
                    if not np.allclose(a, b, rtol, atol):
                        raise GradcheckError(
                            f"{_part(a, b, rtol, atol)}Jacobian {'computed with forward mode ' if forward else ''}mismatch for output {j} with "
                            f"respect to input {places[k]} ({'forward' if forward else 'reverse'} mode{', batched' if batched else ''}): greatest difference "
                            f"{np.abs(a - b).max():.3g}\nnumerical:\n{b}\nanalytical:\n{a}"
                        )
            if check_backward_ad:
                _same_twice(f, xs, k, nondet_tol, fast_mode)
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
    ys = [y.detach() for y in f(*[_asking(x) for x in xs])]
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
        gs = [grad_outputs] if isinstance(grad_outputs, Tensor) else list(grad_outputs)
    n = len(xs)

    def back(*a: Any) -> Any:
        return F.vjp(f, *a[:n])[1](tuple(a[n:]))

    # Cotangents that are given without requires_grad are constants.
    both = [
        t.detach().clone().requires_grad_(i < n or grad_outputs is None or t.requires_grad)
        for i, t in enumerate((*xs, *gs))
    ]
    return gradcheck(back, both, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, check_batched_grad=check_batched_grad,
                     nondet_tol=nondet_tol, check_grad_dtypes=check_grad_dtypes, fast_mode=fast_mode,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)  # fmt: skip
