"""Jacobians and Hessians: vmap of vjp or jvp over unit vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.sizes import SEEN, is_ragged
from ..core.tensor import Tensor
from ..core.tree import flatten, unflatten
from .batch import vmap
from .common import Argnums, are_arrays, need_diff, split_args
from .forward import jvp
from .reverse import vjp


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """Unit vectors of the space of all leaves together, one batch of rows for each leaf."""
    total: Any = sum(x.numel() for x in leaves)
    if is_ragged(total):
        from ..payloads.nested.jacobian import ragged_basis

        return ragged_basis(leaves, total)
    out, at = [], 0
    for x in leaves:
        n = x.numel()
        e = np.zeros((total, n), x.dtype.np)
        e[at : at + n] = np.eye(n)
        out.append(Tensor(e.reshape(total, *x.shape)))
        at += n
    return out


def _split_rows(rows: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """Rows, one for every element of all leaves, as one block for each leaf."""
    out, at = [], 0
    for x in leaves:
        n = x.numel()
        out.append(rows.narrow(0, at, n).reshape(*x.shape, *rows.shape[1:]))
        at += n
    return out


def _picked(
    func: Callable[..., Any], nums: tuple[int, ...], args: tuple[Any, ...], kw: dict[str, Any], has_aux: bool
) -> tuple[Callable[..., Any], tuple[Any, ...], list[Any] | None]:
    """`func` of the arguments `nums` alone, these arguments, and what makes a block of the Jacobian from its last dim for each.

    The elements of a nested tensor count as one dim; the blocks of a nested argument get its structure back.
    """

    def f(*picked: Any) -> Any:
        full = list(args)
        for i, v in zip(nums, picked, strict=True):
            full[i] = v
        return func(*full, **kw)

    picked = tuple([args[i] for i in nums])
    if not SEEN:
        return f, picked, None
    from ..payloads.nested.jacobian import flat_function

    return flat_function(f, picked, has_aux)


def _of_arrays(args: tuple[Any, ...], places: tuple[int, ...]) -> bool:
    """Whether a Jacobian is to be taken with respect to NumPy's arrays or numbers."""
    return builtin_any(not isinstance(args[i], Tensor) and are_arrays(flatten(args[i])[0]) for i in places)


def _restored(blocks: list[Tensor], backs: list[Any] | None) -> list[Tensor]:
    return blocks if backs is None else [back(b) for back, b in zip(backs, blocks, strict=True)]


def _check_holomorphic(name: str, xs: list[Any], ys: list[Any], holomorphic: bool) -> None:
    """A complex input has one complex derivative only where the function is holomorphic: the caller has to say so."""
    cx = [x.dtype.category == dt.COMPLEX for x in xs]
    if holomorphic:
        if not all(cx) or any(y.dtype.category != dt.COMPLEX for y in ys):
            raise RuntimeError(f"{name}: with holomorphic=True all inputs and outputs must be complex")
    elif any(cx):
        raise RuntimeError(
            f"{name}: Expected all inputs to be real, but input {cx.index(True)} is complex. If the function is "
            f"holomorphic, pass holomorphic=True; otherwise its derivative is no complex matrix: differentiate with respect to "
            f"chainrule.view_as_real(z), or use vjp or jvp."
        )


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           holomorphic: bool = False, argnum: Argnums | None = None, _preallocate_and_copy: bool = False) -> Callable[..., Any]:  # fmt: skip
    """``x -> J(x)``, by one batched reverse pass over the unit cotangents. Shape: output dims, then input dims.

    The inputs are real, or the function is holomorphic and ``holomorphic=True`` says so: then J is its complex derivative.
    """

    if argnum is not None:
        argnums = argnum

    @functools.wraps(func)
    def jacobian(*args: Any, **kw: Any) -> Any:
        places = split_args(argnums, args, "jacrev")
        if _of_arrays(args, places):
            from ..interop.numpy.transform import jacobian as of_arrays

            make = functools.partial(
                jacrev, argnums=argnums, has_aux=has_aux, chunk_size=chunk_size, holomorphic=holomorphic
            )
            return of_arrays(make, func, places, has_aux, args, kw)
        f, picked, backs = _picked(func, places, args, kw, has_aux)
        out = vjp(f, *picked, has_aux=has_aux)
        value, pull = out[0], out[1]
        ys, yspec = flatten(value)
        xs, xspec = flatten(picked)
        _check_holomorphic("jacrev", xs, ys, holomorphic)
        _need_output("jacrev: vjp", ys)
        if chunk_size is not None and chunk_size <= 0:
            raise ValueError(f"jacrev: `chunk_size` should be greater than 0. It is {chunk_size}.")
        if any(y.numel() for y in ys):
            back = vmap(lambda *e: pull(unflatten(list(e), yspec)), chunk_size=chunk_size)
            basis = _basis(ys)
            rows = flatten(back(*basis))[0]
            if holomorphic:  # reverse mode gives conj(J)^T g
                rows = [r.conj() for r in rows]
            elif any(y.dtype.category == dt.COMPLEX for y in ys):
                # Of real inputs: the cotangent 1 gives the real part of J, and i its imaginary part.
                turned = [e * 1j if e.dtype.category == dt.COMPLEX else e * 0 for e in basis]
                rows = [r + 1j * i for r, i in zip(rows, flatten(back(*turned))[0], strict=True)]
        else:
            rows = [Tensor(np.zeros((0, *x.shape), x.dtype.np)) for x in xs]
        # rows[k]: cotangents of input k, one for each output element
        blocks = [_split_rows(r, ys) for r in rows]
        real = [holomorphic or y.dtype.category == dt.COMPLEX for y in ys]
        blocks = [
            [v if z or v.dtype.category != dt.COMPLEX else v.real for v, z in zip(b, real, strict=True)] for b in blocks
        ]
        result = unflatten(
            [_inputs_tree(unflatten(_restored([b[j] for b in blocks], backs), xspec), argnums) for j in range(len(ys))],
            yspec,
        )
        return (result, out[2]) if has_aux else result

    return jacobian


def _need_output(name: str, ys: list[Any]) -> None:
    if not ys:
        raise RuntimeError(
            f"{name}(f, ...): Expected f to be a function that has non-empty output: it returned no tensor"
        )


def _inputs_tree(tree: Any, argnums: Argnums) -> Any:
    return tree[0] if isinstance(argnums, int) else tree


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
    chunk_size: int | None = None,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """``x -> J(x)``, by one batched forward pass over the unit tangents. Shape: output dims, then input dims.

    The inputs are real, or the function is holomorphic and ``holomorphic=True`` says so: then J is its complex derivative.
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kw: Any) -> Any:
        if chunk_size is not None and chunk_size <= 0:
            raise ValueError(f"jacfwd: `chunk_size` should be greater than 0. It is {chunk_size}.")
        places = split_args(argnums, args, "jacfwd")
        if _of_arrays(args, places):
            from ..interop.numpy.transform import jacobian as of_arrays

            make = functools.partial(
                jacfwd,
                argnums=argnums,
                has_aux=has_aux,
                randomness=randomness,
                chunk_size=chunk_size,
                holomorphic=holomorphic,
            )
            return of_arrays(make, func, places, has_aux, args, kw)
        f, picked, backs = _picked(func, places, args, kw, has_aux)
        xs, xspec = flatten(picked)
        for x in xs:
            need_diff("jacfwd", x)
        if not holomorphic:
            _check_holomorphic("jacfwd", xs, [], False)

        def push(*e: Any) -> Any:
            r = jvp(f, picked, unflatten(list(e), xspec), has_aux=has_aux)
            return (r[1], r[2]) if has_aux else r[1]

        some = builtin_any(x.numel() for x in xs)
        if some:
            # The tangents' batch axis goes last: output dims first, then input dims.
            out = vmap(push, out_dims=(0, None) if has_aux else 0, randomness=randomness, chunk_size=chunk_size)(
                *_basis(xs)
            )
        else:
            out = push(*xs)  # no element to move, and no column: the function says only what shape they would have
        cols, aux = out if has_aux else (out, None)
        cs, cspec = flatten(cols)
        if not some:
            cs = [c.unsqueeze(0).narrow(0, 0, 0) for c in cs]
        _need_output("jacfwd: jvp", cs)
        if holomorphic:
            _check_holomorphic("jacfwd", xs, cs, True)

        def block(c: Tensor) -> Any:
            parts = []
            at = 0
            for x in xs:
                n = x.numel()
                p = c.narrow(0, at, n).movedim(0, -1)
                parts.append(p.reshape(*p.shape[:-1], *x.shape))
                at += n
            return _inputs_tree(unflatten(_restored(parts, backs), xspec), argnums)

        result = unflatten([block(c) for c in cs], cspec)
        return (result, aux) if has_aux else result

    return jacobian


builtin_any = any


def hessian(func: Callable[..., Any], argnums: Argnums = 0, *, argnum: Argnums | None = None) -> Callable[..., Any]:
    """``x -> d2f/dx2``, forward over reverse.

    >>> hessian(lambda x: (x ** 3).sum())(chainrule.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    if argnum is not None:
        argnums = argnum
    return jacfwd(jacrev(func, argnums), argnums)
