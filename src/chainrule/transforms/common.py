"""What the transforms share: variables of a level, results on their way out, writes to arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from ..core import dispatch
from ..core import dtypes as dt
from ..core.dispatch import Interpreter, constant, innermost, leaving
from ..core.errors import ChainruleError
from ..core.reverse import Leaf, Reverse
from ..core.shapes import zeros_like_tensor
from ..core.tensor import Tensor
from ..core.tree import flatten
from ..core.views import assign, given_back, pin, root_of, share_memory

F = TypeVar("F", bound=Callable[..., Any])
Argnums = int | tuple[int, ...]
DIFFERENTIABLE = frozenset(d.np.num for d in dt.FROM_NP.values() if d.category >= dt.FLOAT)


def named_as(made: F, f: Callable[..., Any]) -> F:
    """The transformed function under the name of the one it was made from; what functools.wraps does, in a tenth of its time."""
    if not callable(f):
        raise TypeError(
            f"a transform takes a function, got {type(f).__name__}: write grad(f)(x), or grad(lambda x: ...)(x), not grad(f(x))"
        )
    if f.__class__ is FunctionType:  # what another object holds is its own
        if f.__dict__:
            made.__dict__.update(f.__dict__)
        made.__name__, made.__qualname__, made.__module__ = f.__name__, f.__qualname__, f.__module__
        made.__doc__, made.__annotations__ = f.__doc__, f.__annotations__
    made.__wrapped__ = f  # type: ignore[attr-defined]
    return made


def as_tensor_result(y: Any) -> Any:
    """What a function returned: of an Array (a value of NumPy's door) its tensor."""
    from ..interop.numpy.value import Array

    return y._t if type(y) is Array else y


def are_arrays(leaves: list[Any]) -> bool:
    """Whether some of the leaves are NumPy's arrays or numbers, so that the transform goes by NumPy's door."""
    return door().any_foreign(leaves)


@functools.cache
def door() -> Any:
    """How arrays come into a transform, imported with the first of them. (An import statement that finds its module costs as much as three ops.)"""
    from ..interop.numpy import transform

    return transform


def need_diff(name: str, x: Any) -> Tensor:
    """`x`, refused where it has no derivative: no tensor, or one of whole numbers."""
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{name}: expected tensors to differentiate with respect to, got {type(x).__name__}; pass a tensor, or choose other argnums"
        )
    if x.dtype.category < dt.FLOAT:
        raise RuntimeError(
            f"{name}: only tensors of floating point or complex type have derivatives, got {x.dtype}; convert with "
            ".to(chainrule.float32), of a NumPy array with .astype(float), or write a number with its point"
        )
    return x


def with_aux(name: str, out: Any) -> tuple[Any, Any]:
    """What a function returned under ``has_aux=True``: the output, and what is not differentiated."""
    if not (isinstance(out, tuple) and len(out) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True, got {type(out).__name__}"
        )
    return out


def results_of(name: str, level: Interpreter, out: Any) -> tuple[list[Any], Any]:
    """The tensors that a function returned, brought down to its level, and the tree that they were in."""
    ys, spec = flatten(out)
    if out is None or not ys:
        raise RuntimeError(f"{name}: Expected f to be a function that has non-empty output (got output = {out})")
    for i, y in enumerate(ys):
        if not isinstance(y, Tensor) and not isinstance(y := as_tensor_result(y), Tensor):
            raise RuntimeError(f"{name}: expected f(*primals) to return only tensors, got {type(y).__name__}")
        ys[i] = level.settle(y)
    return ys, spec


def lift(level: Reverse, name: str, xs: list[Any]) -> list[Tensor]:
    """The tensors as variables of a level."""
    out = []
    for x in xs:
        if not isinstance(x, Tensor) or innermost(x).dtype.num not in DIFFERENTIABLE:
            need_diff(name, x)
        out.append(Tensor(pin(x, True), level, Leaf()))
    return out


def lower(level: Any, x: Any) -> Any:
    """A value of a transform's function as the level below sees it."""
    x = level.settle(x)
    if isinstance(x, Tensor) and x._interp is level:
        return below(level, given_back(x._value, x._interp.kind == "reverse"))
    return x


def below(level: Any, x: Tensor) -> Tensor:
    """What leaves a level, as the level below sees it: a transform's results are an op's, where ``no_grad`` holds around it."""
    return x if level.floor < 0 else constant(x, level.floor)


def leave(ys: list[Any]) -> list[Any]:
    """Results on their way out of a transform."""
    return ys if dispatch.SETTLE is None else [leaving(y) for y in ys]


def written_to(level: Any, xs: list[Any], boxes: list[Any], entered: list[Any]) -> list[tuple[Any, Any]]:
    """The arguments that the function wrote to, and what they hold now, one level down."""
    out = []
    for x, box, before in zip(xs, boxes, entered, strict=True):
        if before is not None and box._value is not before:
            new = lower(level, box)
            if new is not before and new._value is not before._value:
                out.append((x, new))
    if out and len(xs) > 1:
        _refuse_shared([x[0] if type(x) is tuple else x for x in xs], [x for x, _ in out])
    return out


def _refuse_shared(args: list[Any], written: list[Any]) -> None:
    """The arguments of a transform are variables of their own: what is written to one that shares its memory with another would show in it alone."""
    for w in written:
        w = w[0] if type(w) is tuple else w
        if (
            sum(isinstance(x, Tensor) and (x is w or (root_of(x) is root_of(w) and share_memory(x, w))) for x in args)
            > 1
        ):
            raise ChainruleError(
                "the function of a transform writes to an argument that shares memory with another argument (one tensor given twice, or a view of "
                "it): they are variables of their own inside, and the write would show in one of them alone. Pass x.clone() for one of them."
            )


def write_back(written: list[tuple[Any, Any]]) -> None:
    """What a function writes to its argument shows in the caller's tensor, as it does without the transform."""
    for x, new in written:
        assign(x, new, "a write to an argument of a transformed function")


zeros_of = zeros_like_tensor  # the derivative where nothing leads to the argument


def split_args(argnums: Argnums, args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """The positions that `argnums` names, counted from the front."""
    if not isinstance(argnums, int | tuple | list):
        raise RuntimeError(f"{name}: argnums must be int or Tuple[int, ...], got {type(argnums).__name__}")
    nums = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not nums:
        raise RuntimeError(f"{name}: argnums must be non-empty")
    for i in nums:
        if not isinstance(i, int):
            raise RuntimeError(f"{name}: argnums must be int or Tuple[int, ...], got {type(i).__name__}")
        if not -len(args) <= i < len(args):
            raise RuntimeError(
                f"{name}: Got argnum={i}, but only {len(args)} positional inputs: the function was called with too few arguments"
            )
    places = tuple(i % len(args) for i in nums)
    if len(set(places)) < len(places):
        raise RuntimeError(f"{name}: argnums elements must be unique, got {argnums}")
    return places
