"""vmap: a function of one example on all of them at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core import dispatch
from ..core.batching import Batching
from ..core.dispatch import constant, innermost, leaving
from ..core.payload import COMPOSED, STRIDED, payload_of
from ..core.shapes import sizes_of
from ..core.sizes import SEEN, ragged_in
from ..core.tensor import Tensor
from ..core.tree import LEAF, broadcast_prefix, flatten, unflatten
from ..core.views import assign, given_back, is_detached, pin, replay, root_of, view_again
from .common import are_arrays, as_tensor_result, named_as, written_to


def _batch_size(dims: list[Any], leaves: list[Any]) -> int:
    size = None
    for d, x in zip(dims, leaves, strict=True):
        if d is None:
            continue
        if not isinstance(x, Tensor):
            raise ValueError(
                f"vmap: Got in_dim={d} for an input but the input is of type {type(x)}, which is no tensor; use None for it in in_dims"
            )
        s = sizes_of(x)
        n = len(s)
        if not -n <= d < n:
            raise ValueError(
                f"vmap: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {n} (shape {list(x.shape)}), so in_dim must be "
                f"in [{-n}, {n})"
            )
        if size is None:
            size = s[d]
        elif s[d] != size:
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {size} and {s[d]}"
            )
    if size is None:
        raise ValueError(
            "vmap: Expected at least one Tensor to vmap over: at least one input must be mapped over, but in_dims has only None"
        )
    return size


def _is_dim(d: Any) -> bool:
    return d is None or d.__class__ is int


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
        for x in leaves:
            if (
                not isinstance(x, Tensor)
                and are_arrays(leaves)
                and (over := _array_dims(in_d, leaves, args)) is not None
            ):
                from ..interop.numpy.transform import mapped as of_arrays

                make = functools.partial(
                    vmap, in_dims=in_dims, out_dims=out_dims, randomness=randomness, chunk_size=chunk_size
                )
                return of_arrays(make, func, over, args, kw)
        if isinstance(in_d, int):
            for x in leaves:
                if not isinstance(x, Tensor):
                    _refuse_leaf(x, in_d)
            dims = [in_d] * len(leaves)
        elif type(in_d) is tuple and len(in_d) == len(args) == len(leaves) and all(map(_is_dim, in_d)) and spec.flat():
            dims = list(in_d)  # tensors beside each other: the common case
        else:
            try:
                dims = broadcast_prefix(in_d, args)
            except ValueError as e:
                raise ValueError(f"vmap: in_dims is not compatible with the structure of `inputs`: {e}") from None
        kdims = [None] * len(kws)  # only positional arguments are mapped, as in PyTorch
        every, alld = [*leaves, *kws], [*dims, *kdims]
        size = _batch_size(alld, every)
        if chunk_size is None or chunk_size >= size:
            return _run_vmap(func, every, alld, len(leaves), spec, kspec, size, out_dims, randomness)
        parts = []
        from ..ops.random.generator import default_generator

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
        from ..ops.shape.slices import cat

        return unflatten(
            [xs[0] if d is None else cat(list(xs), d) for d, *xs in zip(odims, *[f[0] for f in flat], strict=True)],
            flat[0][1],
        )

    return named_as(mapped, func)


def _array_dims(in_dims: Any, leaves: list[Any], args: tuple[Any, ...]) -> list[Any] | None:
    """The axis of each leaf, where arrays of NumPy's are among those to be mapped over; else None."""
    try:
        dims = [in_dims] * len(leaves) if isinstance(in_dims, int) else broadcast_prefix(in_dims, args)
    except ValueError:
        return None
    arrays = any(
        d is not None and not isinstance(x, Tensor) and hasattr(x, "ndim") for x, d in zip(leaves, dims, strict=True)
    )
    return dims if arrays else None


def _refuse_leaf(x: Any, d: int) -> Any:
    raise ValueError(
        f"vmap: Got in_dim={d} for an input but the input is of type {type(x)}, which is no tensor; give it None in in_dims, or bind it with a lambda"
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
                low = x.movedim(d, 0) if d and d % x.ndim else x
                if COMPOSED:
                    low = payload_of(innermost(low)).mapped(low)
                low = pin(low, True)
                xs.append(Tensor(low, level))
                entered.append(low)
        level.function = (func, held)
        out = func(*unflatten(xs[:n], spec), **unflatten(xs[n:], kspec)) if kspec else func(*unflatten(xs, spec))
        ys, yspec = flatten(out)
        if isinstance(out_dims, tuple) and len(out_dims) == 1 and isinstance(out, Tensor):
            out_dims = out_dims[0]
        try:
            odims = [out_dims] if yspec is LEAF and type(out_dims) is int else broadcast_prefix(out_dims, out)
        except ValueError as e:
            raise ValueError(
                f"vmap: out_dims={out_dims!r} is not compatible with the structure of `outputs`: {e}"
            ) from None
        for i, (y, d) in enumerate(zip(ys, odims, strict=True)):
            if d is not None and not isinstance(d, int):
                raise ValueError(
                    f"vmap: out_dims must be an int, None or a python collection of ints, one for each output, got {out_dims!r}"
                )
            if not isinstance(y, Tensor) and d is not None:
                ys[i] = y = as_tensor_result(y)
                if not isinstance(y, Tensor):
                    raise ValueError(
                        f"vmap: the function must only return Tensors (in tuples, lists or dicts), got type {type(y)}"
                    )
        ys = [y if getattr(y, "_interp", None) is level else level.settle(y) for y in ys]
        same = len(xs) == 1 and xs[0]._value is entered[0]
        written = [] if same else written_to(level, [*zip(every, dims, xs, strict=True)], xs, entered)
    for (x, d, box), new in written:
        if box._interp is not level:  # the same for all examples
            new = new.expand(size, *new.shape)
        # What the function wrote to a mapped argument (running statistics) shows in the argument.
        assign(x, new.movedim(0, d) if d % x.ndim else new, "vmap")
    results = []
    for y, d in zip(ys, odims, strict=True):
        batched = getattr(y, "_interp", None) is level
        if d is None:
            if batched:
                raise ValueError(
                    "vmap: can not return a BatchedTensor when out_dim is None: this output differs between examples; give it an int"
                )
            results.append(y)
            continue
        v = y._value if batched else y.expand(size, *y.shape)
        if y._meta is not None:
            v = _shown(v, y, [*zip(every, dims, xs, entered, strict=True)], level)
        elif batched:
            v = given_back(v)
        if level.floor >= 0 and batched:
            v = constant(v)
        if dispatch.SETTLE is not None and batched:
            v = leaving(v)
        if d:
            if not -v.ndim <= d < v.ndim:
                raise IndexError(
                    f"vmap: Dimension out of range: out_dim {d} for an output with {v.ndim} dims (with the batch)"
                )
            v = v.movedim(0, d)
        results.append(v)
    return unflatten(results, yspec)


class Mapped:
    """The views that a mapped function takes of one example, as one view of all of them: a link in the chain of a result."""

    def __init__(self, axis: int, size: int, randomness: str, chain: tuple[Any, ...]) -> None:
        self.axis, self.size, self.randomness, self.chain = axis, size, randomness, chain

    def bind(self, x: Tensor) -> Tensor:
        """The view of `x`, whose examples lie along an axis; they are in front in the result."""
        with Batching(self.size, self.randomness) as level:
            y = replay(Tensor(x.movedim(self.axis, 0), level), self.chain)
        return y._value if y._value is not x else x.view(x.shape)


def _ragged(link: Any) -> bool:
    """Whether a link in a chain of views was told a ragged size."""
    return type(link) is tuple and next(ragged_in(tuple(link[1].values())), None) is not None


def _shown(v: Tensor, y: Tensor, inputs: list[Any], level: Any) -> Tensor:
    """A result; as a view of the input whose memory it shows, where it is one: a write to either is then seen in both."""
    base = root_of(y)
    for x, axis, box, low in inputs:
        if base is not box or low is None or (x._interp is not None and x._interp.kind == "record"):
            continue
        chain = () if y is box else y._meta.chain  # type: ignore[union-attr]
        if is_detached(chain) or (y is box and box._value is low):
            break
        # What speaks of ragged sizes belongs to the level that ends, and examples of a nest share no strides.
        if SEEN and (payload_of(innermost(low)) is not STRIDED or any(map(_ragged, chain))):
            break
        front = x._meta
        link: tuple[Any, ...] = (Mapped(axis, level.size, level.randomness, chain), {})
        return view_again(root_of(x), ((link,) if front is None or front.base is None else (*front.chain, link)))
    return given_back(v)
