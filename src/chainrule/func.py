"""Composable transforms of functions: grad, vjp, jvp, vmap, Jacobians and Hessians, nested to any depth in any order."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from .core import dispatch
from .core import dtypes as dt
from .core.batching import Batching
from .core.dispatch import innermost, leaving
from .core.forward import Forward
from .core.reverse import Leaf, Reverse
from .core.shapes import sizes_of, unit, zeros
from .core.sizes import SEEN, is_ragged
from .core.tensor import Tensor
from .core.tree import LEAF, broadcast_prefix, flatten, match, tree_map, unflatten
from .core.views import assign, pin
from .core.walk import reachable, walk_back, walk_forward

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "stack_module_state", "vjp", "vmap",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])
Argnums = int | tuple[int, ...]
DIFFERENTIABLE = frozenset(d.np.num for d in dt.FROM_NP.values() if d.category >= dt.FLOAT)


def named_as(made: F, f: Callable[..., Any]) -> F:
    """The transformed function under the name of the one it was made from; what functools.wraps does, in a tenth of its time."""
    d = getattr(f, "__dict__", None)
    if d:
        made.__dict__.update(d)
    made.__wrapped__ = f  # type: ignore[attr-defined]
    if f.__class__ is FunctionType:
        made.__name__, made.__qualname__, made.__module__ = f.__name__, f.__qualname__, f.__module__
        made.__doc__, made.__annotations__ = f.__doc__, f.__annotations__
    return made


def _is_diff(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.category >= dt.FLOAT


def _need_diff(name: str, x: Any) -> Tensor:
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{name}: expected tensors to differentiate with respect to, got {type(x).__name__}; pass a tensor, or choose other argnums"
        )
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"{name}: only tensors of floating point or complex type have derivatives, got {x.dtype}; convert with .to(chainrule.float32)"
        )
    return x


def _lift(level: Reverse, name: str, xs: list[Any]) -> list[Tensor]:
    """The tensors as variables of a level."""
    out = []
    for x in xs:
        if not isinstance(x, Tensor) or innermost(x).dtype.num not in DIFFERENTIABLE:
            _need_diff(name, x)
        out.append(Tensor(pin(x), level, Leaf()))
    return out


def _lower(level: Any, x: Any) -> Any:
    """A value of a transform's function as the level below sees it."""
    x = level.settle(x)
    return x._value if isinstance(x, Tensor) and x._interp is level else x


def _leave(ys: list[Any]) -> list[Any]:
    return ys if dispatch.SETTLE is None else [leaving(y) for y in ys]


def _written(level: Any, xs: list[Any], boxes: list[Any], entered: list[Any]) -> list[tuple[Any, Any]]:
    """The arguments that the function wrote to, and what they hold now, one level down."""
    out = []
    for x, box, before in zip(xs, boxes, entered, strict=True):
        if before is not None and box._value is not before:
            new = _lower(level, box)
            if new is not before and new._value is not before._value:
                out.append((x, new))
    return out


def _write_back(written: list[tuple[Any, Any]]) -> None:
    """What a function writes to its argument shows in the caller's tensor, as it does without the transform."""
    for x, new in written:
        assign(x, new, "a write to an argument of a transformed function")


def _zeros(x: Tensor) -> Tensor:
    return zeros(tuple(x.shape), x.dtype)


# -- reverse ----------------------------------------------------------------------------------------------------------


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """``(f(x), g -> J(x)^T g)``: the value and the function that pulls cotangents back, as often as you like.

    >>> y, pull = vjp(lambda x: x.sin(), chainrule.tensor([0.0, 1.0])); pull(chainrule.ones(2))[0]
    tensor([1.0000, 0.5403])
    """
    leaves, spec = flatten(primals)
    with Reverse() as level:
        xs = _lift(level, "vjp", leaves)
        inputs, like = [x._aux for x in xs], [x._value for x in xs]
        out = f(*unflatten(xs, spec))
        aux: Any = None
        if has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise RuntimeError("vjp(f, *primals): with has_aux=True f must return (output, aux)")
            out, aux = out
        ys, yspec = flatten(out)
        for y in ys:
            if not isinstance(y, Tensor):
                raise RuntimeError(f"vjp(f, *primals): expected f to return tensors, got {type(y).__name__}")
        ys = [level.settle(y) for y in ys]
        nodes = [y._aux if y._interp is level else None for y in ys]
        low = [_lower(level, y) for y in ys]
        aux = tree_map(lambda a: _lower(level, a), aux) if has_aux else None
        written = _written(level, leaves, xs, like)
    low, aux = _leave(low), tree_map(leaving, aux) if has_aux else None
    _write_back(written)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """Cotangents of the inputs from those of the output."""
        tree = cotangents[0] if len(cotangents) == 1 else cotangents
        gs = match(tree, yspec)
        if gs is None:
            gs, gspec = flatten(tree)
            if not len(gs) == len(ys) == 1:
                raise RuntimeError(f"vjp: the cotangent has the structure {gspec}, but the output has {yspec}")
        starts = []
        for n, g, y in zip(nodes, gs, low, strict=True):
            if n is not None and g is not None:
                starts.append((n, _check_cotangent("vjp", g, y)))
        got = walk_back(starts, free=not retain_graph)
        return unflatten([got[n] if n in got else _zeros(v) for n, v in zip(inputs, like, strict=True)], spec)

    result = unflatten(low, yspec)
    return (result, pull, aux) if has_aux else (result, pull)


def _check_cotangent(name: str, g: Any, y: Tensor) -> Tensor:
    if not isinstance(g, Tensor):
        raise RuntimeError(f"{name}: expected a tensor as the cotangent, got {type(g).__name__}")
    if g.shape != y.shape:
        raise RuntimeError(
            f"{name}: the cotangent has shape {list(g.shape)}, but the output it belongs to has shape {list(y.shape)}"
        )
    d = y.dtype
    if g.dtype is not d:
        if g.dtype.category == dt.COMPLEX and d.category != dt.COMPLEX:
            g = g.real
        g = g.to(d)
    return g


def _split_args(argnums: Argnums, args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not nums:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for i in nums:
        if not isinstance(i, int):
            raise RuntimeError(f"{name}: argnums must be int or tuple of ints, got {type(i).__name__}")
        if not -len(args) <= i < len(args):
            raise RuntimeError(
                f"{name}: argnums={argnums} but the function was called with only {len(args)} positional arguments"
            )
    places = tuple(i % len(args) for i in nums)
    if len(set(places)) < len(places):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}")
    return places


def _gradient(
    f: Any, argnums: Argnums, has_aux: bool, args: tuple[Any, ...], kw: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Gradient, value and auxiliary output of `f`."""
    one = argnums == 0 and args and isinstance(args[0], Tensor)
    if one:
        leaves = [args[0]]
    else:
        nums = _split_args(argnums, args, "grad")
        leaves, spec = flatten(tuple([args[i] for i in nums]))
    with Reverse() as level:
        xs = _lift(level, "grad", leaves)
        # The function may write to its arguments: what they are now is noted here.
        if one:
            inputs, like = [xs[0]._aux], [xs[0]._value]
            out = f(xs[0], *args[1:], **kw)
        else:
            inputs, like = [x._aux for x in xs], [x._value for x in xs]
            full = list(args)
            for i, v in zip(nums, unflatten(xs, spec), strict=True):
                full[i] = v
            out = f(*full, **kw)
        aux: Any = None
        if has_aux:
            if not (isinstance(out, tuple) and len(out) == 2):
                raise RuntimeError("grad: with has_aux=True the function must return (output, aux)")
            out, aux = out
        if not isinstance(out, Tensor):
            raise RuntimeError(
                f"grad: expected the function to return a tensor, got {type(out).__name__}"
                + ("; use has_aux=True to return more than the loss" if isinstance(out, tuple) else "")
            )
        if sizes_of(out):
            raise RuntimeError(
                f"grad: expected the function to return a scalar (0-d) tensor, got one of shape {list(out.shape)}; sum it, or use vjp or jacrev"
            )
        if out._interp is not level:
            out = level.settle(out)
        node, value = (out._aux, out._value) if out._interp is level else (None, out)
        if has_aux:
            aux = tree_map(lambda a: _lower(level, a), aux)
        same = len(xs) == 1 and xs[0]._value is like[0]
        written = [] if same else _written(level, leaves, xs, like)
    if dispatch.SETTLE is not None:
        value, aux = leaving(value), tree_map(leaving, aux) if has_aux else None
    if written:
        _write_back(written)
    if node is None:
        gs = [_zeros(x) for x in like]
    else:
        d = dt.FROM_NP[innermost(value).dtype]
        if d.category == dt.COMPLEX:
            raise RuntimeError(f"grad: expected a real result, got {d}; take .real or .abs() of it, or use vjp")
        got = walk_back([(node, unit(d))])
        if one:
            g = got.get(inputs[0])
            return _zeros(like[0]) if g is None else g, value, aux
        gs = [got[n] if n in got else _zeros(x) for n, x in zip(inputs, like, strict=True)]
    if one:
        return gs[0], value, aux
    result = unflatten(gs, spec)
    return result[0] if isinstance(argnums, int) else result, value, aux


def grad_and_value(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """``x -> (df/dx, f(x))`` for a function with a scalar result; with ``has_aux``, ``(df/dx, (f(x), aux))``."""

    @functools.wraps(f)
    def gradient(*args: Any, **kw: Any) -> Any:
        g, value, aux = _gradient(f, argnums, has_aux, args, kw)
        return (g, (value, aux)) if has_aux else (g, value)

    return gradient


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """``x -> df/dx`` for a function with a scalar result.

    >>> grad(grad(lambda x: x ** 3))(chainrule.tensor(2.0))
    tensor(12.)
    """

    def gradient(*args: Any, **kw: Any) -> Any:
        g, _, aux = _gradient(f, argnums, has_aux, args, kw)
        return (g, aux) if has_aux else g

    return named_as(gradient, f)


# -- forward ----------------------------------------------------------------------------------------------------------


def jvp(f: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """``(f(x), J(x) t)``: the value and the derivative in the direction of the tangents.

    >>> jvp(lambda x: x * x, (chainrule.tensor(3.0),), (chainrule.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"jvp: expected primals to be a tuple, e.g. jvp(f, (x,), (t,)), got {type(primals).__name__}"
        )
    if not isinstance(tangents, tuple):
        raise RuntimeError(
            f"jvp: expected tangents to be a tuple, e.g. jvp(f, (x,), (t,)), got {type(tangents).__name__}"
        )
    xs, spec = flatten(primals)
    ts, tspec = flatten(tangents)
    if spec != tspec:
        raise RuntimeError(f"jvp: primals and tangents must have the same structure, got {spec} and {tspec}")
    for x, t in zip(xs, ts, strict=True):
        _need_diff("jvp", x)
        if not isinstance(t, Tensor):
            raise RuntimeError(f"jvp: expected tensors as tangents, got {type(t).__name__}")
        if t.shape != x.shape:
            raise RuntimeError(f"jvp: a tangent has shape {list(t.shape)}, but its primal has shape {list(x.shape)}")
    from .core.forward import fit_tangent

    with Forward() as level:
        duals = [Tensor(pin(x), level, pin(fit_tangent(t, x))) for x, t in zip(xs, ts, strict=True)]
        entered = [d._value for d in duals]
        out = f(*unflatten(duals, spec))
        aux: Any = None
        if has_aux:
            out, aux = out
        ys, yspec = flatten(out)
        for y in ys:
            if not isinstance(y, Tensor):
                raise RuntimeError(f"jvp(f, primals, tangents): expected f to return tensors, got {type(y).__name__}")
        ys = [level.settle(y) for y in ys]
        if strict and any(y._interp is not level for y in ys):
            raise RuntimeError("jvp: with strict=True, an output is independent of the inputs")
        low = [_lower(level, y) for y in ys]
        ts = [y._aux if y._interp is level and y._aux is not None else _zeros(y) for y in ys]
        aux = tree_map(lambda a: _lower(level, a), aux) if has_aux else None
        written = _written(level, xs, duals, entered)
    tangent = unflatten([leaving(t, y) for t, y in zip(ts, low, strict=True)], yspec)
    primal, aux = unflatten(_leave(low), yspec), tree_map(leaving, aux) if has_aux else None
    _write_back(written)
    return (primal, tangent, aux) if has_aux else (primal, tangent)


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """``(f(x), t -> J(x) t)``: runs f once, and pushes tangents along its tape as often as you like."""
    leaves, spec = flatten(primals)
    with Reverse() as level:
        level.keep_all = True
        xs = _lift(level, "linearize", leaves)
        inputs, like = [x._aux for x in xs], [x._value for x in xs]
        ys, yspec = flatten(f(*unflatten(xs, spec)))
        ys = [level.settle(y) for y in ys]
        nodes = [y._aux if isinstance(y, Tensor) and y._interp is level else None for y in ys]
        low = [_lower(level, y) for y in ys]
        written = _written(level, leaves, xs, like)
    low = _leave(low)
    _write_back(written)
    order = reachable(n for n in nodes if n is not None)

    def push(*tangents: Any) -> Any:
        """Tangents of the output from those of the inputs."""
        ts, tspec = flatten(tangents)
        if tspec != spec:
            raise RuntimeError(f"linearize: the tangents have the structure {tspec}, but the inputs have {spec}")
        for t, x in zip(ts, like, strict=True):
            if t.shape != x.shape:
                raise RuntimeError(
                    f"linearize: a tangent has shape {list(t.shape)}, but its input has shape {list(x.shape)}"
                )
        out = walk_forward(list(zip(inputs, ts, strict=True)), nodes, order)
        return unflatten([_zeros(y) if t is None else leaving(t, y) for t, y in zip(out, low, strict=True)], yspec)

    return unflatten(low, yspec), push


# -- vmap -------------------------------------------------------------------------------------------------------------


def _batch_size(dims: list[Any], leaves: list[Any]) -> int:
    size = None
    for d, x in zip(dims, leaves, strict=True):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap: got in_dim={d} for an input that is no tensor but {type(x).__name__}; use None for it in in_dims"
            )
        s = sizes_of(x)
        n = len(s)
        if not -n <= d < n:
            raise ValueError(
                f"vmap: got in_dim={d} for an input of dimensionality {n} (shape {list(x.shape)}), so in_dim must be in [{-n}, {n})"
            )
        if size is None:
            size = s[d]
        elif s[d] != size:
            raise ValueError(
                f"vmap: expected all tensors to have the same size in the mapped dimension, got sizes {size} and {s[d]}"
            )
    if size is None:
        raise ValueError("vmap: at least one input must be mapped over, but in_dims has only None")
    return size


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function applied to every example at once: each op runs a single time on the whole batch.

    >>> vmap(chainrule.dot)(chainrule.ones(4, 3), chainrule.ones(4, 3))
    tensor([3., 3., 3., 3.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"vmap: randomness must be 'error', 'different' or 'same', got {randomness!r}")
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0, got {chunk_size}")

    def mapped(*args: Any, **kw: Any) -> Any:
        if not args:
            raise ValueError("vmap: got no inputs to map over; pass tensors as positional arguments")
        if isinstance(in_dims, list):
            in_d: Any = tuple(in_dims)
        else:
            in_d = in_dims
        leaves, spec = flatten(args)
        kws, kspec = flatten(kw) if kw else ([], None)
        if isinstance(in_d, int):
            for x in leaves:
                if not isinstance(x, Tensor):
                    _refuse_leaf(x, in_d)
            dims = [in_d] * len(leaves)
        else:
            try:
                dims = broadcast_prefix(in_d, args)
            except ValueError as e:
                raise ValueError(f"vmap: in_dims is not compatible with the structure of the inputs: {e}") from None
        kdims = [0 if isinstance(x, Tensor) else None for x in kws] if kws else []
        every, alld = [*leaves, *kws], [*dims, *kdims]
        size = _batch_size(alld, every)
        if chunk_size is None or chunk_size >= size:
            return _run_vmap(func, every, alld, len(leaves), spec, kspec, size, out_dims, randomness)
        parts = []
        from .ops.random.generator import default_generator

        state = default_generator.get_state()
        for a in range(0, size, chunk_size):
            n = min(chunk_size, size - a)
            if randomness == "same":
                default_generator.set_state(state)
            piece = [x if d is None else x.narrow(d, a, n) for x, d in zip(every, alld, strict=True)]
            parts.append(_run_vmap(func, piece, alld, len(leaves), spec, kspec, n, out_dims, randomness))
        flat = [flatten(p) for p in parts]
        one = isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(parts[0], Tensor)
        odims = broadcast_prefix(out_dims[0] if one else out_dims, parts[0])
        from .ops.shape.views import cat

        return unflatten(
            [xs[0] if d is None else cat(list(xs), d) for d, *xs in zip(odims, *[f[0] for f in flat], strict=True)],
            flat[0][1],
        )

    return named_as(mapped, func)


def _refuse_leaf(x: Any, d: int) -> Any:
    raise ValueError(
        f"vmap: got in_dim={d} for an input that is no tensor but {type(x).__name__}; give it None in in_dims, or bind it with a lambda"
    )


def _run_vmap(
    func: Any,
    every: list[Any],
    dims: list[Any],
    n: int,
    spec: Any,
    kspec: Any,
    size: int,
    out_dims: Any,
    randomness: str,
) -> Any:
    # A nest without components still knows the shapes of an example.
    if size == 0 and not (SEEN and hasattr(size, "each")):
        raise ValueError("vmap: the mapped dimension has size 0; there is no example to run the function on")
    with Batching(size, randomness) as level:
        held: list[Any] = []
        xs: list[Any] = []
        entered: list[Any] = []
        for x, d in zip(every, dims, strict=True):
            if d is None:
                held.append(x)
                xs.append(x)
                entered.append(None)
            else:
                low = pin(x.movedim(d, 0) if d and d % x.ndim else x)
                xs.append(Tensor(low, level))
                entered.append(low)
        level.function = (func, held)
        out = func(*unflatten(xs[:n], spec), **unflatten(xs[n:], kspec)) if kspec else func(*unflatten(xs, spec))
        ys, yspec = flatten(out)
        for y in ys:
            if not isinstance(y, Tensor):
                raise ValueError(
                    f"vmap: the function must only return tensors (in tuples, lists or dicts), got {type(y).__name__}"
                )
        if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(out, Tensor):
            out_dims = out_dims[0]
        try:
            odims = [out_dims] if yspec is LEAF and type(out_dims) is int else broadcast_prefix(out_dims, out)
        except ValueError as e:
            raise ValueError(
                f"vmap: out_dims={out_dims!r} is not compatible with the structure of the outputs: {e}"
            ) from None
        ys = [y if y._interp is level else level.settle(y) for y in ys]
        same = len(xs) == 1 and xs[0]._value is entered[0]
        written = [] if same else _written(level, [*zip(every, dims, strict=True)], xs, entered)
    for (x, d), new in written:
        # What the function wrote to a mapped argument (running statistics) shows in the argument.
        assign(x, new.movedim(0, d) if d % x.ndim else new, "vmap")
    results = []
    for y, d in zip(ys, odims, strict=True):
        batched = y._interp is level
        if d is None:
            if batched:
                raise ValueError("vmap: out_dims is None for an output that differs between examples; give it an int")
            results.append(y)
            continue
        v = y._value if batched else y.expand(size, *y.shape)
        if dispatch.SETTLE is not None and batched:
            v = leaving(v)
        if d:
            if not -v.ndim <= d < v.ndim:
                raise IndexError(f"vmap: out_dim {d} is out of range for an output with {v.ndim} dims (with the batch)")
            v = v.movedim(0, d)
        results.append(v)
    return unflatten(results, yspec)


# -- Jacobians --------------------------------------------------------------------------------------------------------


def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """Unit vectors of the space of all leaves together, one batch of rows for each leaf."""
    total: Any = sum(x.numel() for x in leaves)
    if is_ragged(total):
        from .payloads.nested.jacobian import ragged_basis

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
    from .payloads.nested.jacobian import flat_function

    return flat_function(f, picked, has_aux)


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
            f"{name}: input {cx.index(True)} is complex. If the function is holomorphic, pass holomorphic=True; otherwise its derivative "
            f"is no complex matrix: differentiate with respect to chainrule.view_as_real(z), or use vjp or jvp."
        )


def jacrev(func: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           holomorphic: bool = False, _preallocate_and_copy: bool = False) -> Callable[..., Any]:  # fmt: skip
    """``x -> J(x)``, by one batched reverse pass over the unit cotangents. Shape: output dims, then input dims.

    The inputs are real, or the function is holomorphic and ``holomorphic=True`` says so: then J is its complex derivative.
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kw: Any) -> Any:
        f, picked, backs = _picked(func, _split_args(argnums, args, "jacrev"), args, kw, has_aux)
        out = vjp(f, *picked, has_aux=has_aux)
        value, pull = out[0], out[1]
        ys, yspec = flatten(value)
        xs, xspec = flatten(picked)
        _check_holomorphic("jacrev", xs, ys, holomorphic)
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
        f, picked, backs = _picked(func, _split_args(argnums, args, "jacfwd"), args, kw, has_aux)
        xs, xspec = flatten(picked)
        for x in xs:
            _need_diff("jacfwd", x)
        if not holomorphic:
            _check_holomorphic("jacfwd", xs, [], False)

        def push(*e: Any) -> Any:
            r = jvp(f, picked, unflatten(list(e), xspec), has_aux=has_aux)
            return (r[1], r[2]) if has_aux else r[1]

        if not builtin_any(x.numel() for x in xs):
            raise RuntimeError("jacfwd: the inputs have no elements")
        # The tangents' batch axis goes last: output dims first, then input dims.
        out = vmap(push, out_dims=(0, None) if has_aux else 0, randomness=randomness, chunk_size=chunk_size)(
            *_basis(xs)
        )
        cols, aux = out if has_aux else (out, None)
        cs, cspec = flatten(cols)
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


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """``x -> d2f/dx2``, forward over reverse.

    >>> hessian(lambda x: (x ** 3).sum())(chainrule.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# -- modules ----------------------------------------------------------------------------------------------------------


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with these parameters and buffers in place of its own."""
    from .nn.functional_call import functional_call as call

    return call(module, parameter_and_buffer_dicts, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one architecture, stacked for ``vmap``."""
    from .nn.functional_call import stack_module_state as stack

    return stack(models)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """The function itself: writes never touch anybody else's values here."""
    return func


def debug_unwrap(x: Tensor, *, recurse: bool = True) -> Tensor:
    """The concrete tensor beneath the transforms' levels, for looking at inside a transformed function."""
    while x._interp is not None:
        x = x._value
        if not recurse:
            break
    return x


def __dir__() -> list[str]:
    return __all__
