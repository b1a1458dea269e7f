"""How a public function meets its arguments: by other names, in older forms, and what it says of those that it cannot take.

All this costs nothing where it is not needed: only a call that has failed for its arguments is looked at a second time.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from .tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])
_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD

# What NumPy calls the arguments: PyTorch takes these names too.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
# Functions whose older form has a factor among the tensors, ``addcmul(a, 2, b, c)``: its name now, and how many tensors there are.
LEGACY = {
    "add": ("alpha", 2),
    "sub": ("alpha", 2),
    "addcmul": ("value", 3),
    "addcdiv": ("value", 3),
}
# Products with two: ``addmm(beta, input, alpha, mat1, mat2)``, ``input.addmm_(beta, alpha, mat1, mat2)``, both also without alpha.
PRODUCTS = frozenset(("addmm", "addbmm", "baddbmm", "addmv", "addr"))


def modern(f: Any, args: tuple[Any, ...], kw: dict[str, Any], name: str) -> Any:
    """Call `f`, which the caller knows as `name`, with arguments that may be in the older form."""
    if f.__name__ in LEGACY:
        factor, n = LEGACY[f.__name__]
        if len(args) == n + 1:
            _deprecated(name, factor)
            return f(args[0], *args[2:], **{factor: args[1]}, **kw)
    elif f.__name__ in PRODUCTS and len(args) in (4, 5):
        x, beta, alpha = (args[0], args[1], args[2]) if isinstance(args[0], Tensor) else (args[1], args[0], args[2])
        _deprecated(name, "beta")
        return f(x, *args[-2:], beta=beta, alpha=alpha if len(args) == 5 else 1, **kw)
    return f(*args, **kw)


def _deprecated(name: str, factor: str) -> None:
    warnings.warn(
        f"This overload of {name} is deprecated: the factor goes by its name, {name}(..., {factor}=...)", stacklevel=5
    )


def parameters_of(f: Any) -> Any:
    """The names of a function's parameters that can be given by name; all names, if it takes any."""
    if type(f) is FunctionType and "__wrapped__" not in f.__dict__ and "__signature__" not in f.__dict__:
        code = f.__code__
        if code.co_flags & inspect.CO_VARKEYWORDS:
            return EVERYTHING
        return frozenset(code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount])
    try:
        ps = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return EVERYTHING
    if any(p.kind is _VAR_KEYWORD for p in ps):
        return EVERYTHING
    return frozenset(p.name for p in ps if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


class _Everything(frozenset[str]):
    def issuperset(self, other: Any) -> bool:
        return True


EVERYTHING = _Everything()


def renamed(name: str, names: Any, kw: dict[str, Any]) -> dict[str, Any]:
    """Keyword arguments with NumPy's names replaced by ours; what is unknown all the same is left for the function to refuse."""
    new: dict[str, Any] = {}
    for k, v in kw.items():
        to = ALIASES.get(k, k) if k not in names else k
        to = to if to in names else k
        if to == "input" and to not in names and "self" in names:
            to = "self"
        if to in new or (to != k and to in kw):
            raise TypeError(f"{name}() got multiple values for argument {to!r} ({k!r} is another name of it)")
        new[to] = v
    return new


def second_look(public: Any, f: Any, names: Any, args: tuple[Any, ...], kw: dict[str, Any], error: Exception) -> Any:
    """A call of `f` that failed, once more with the arguments under our names; or the error that says which of them is at fault.

    `public` is the function that the caller knows: its name stands in the message.
    """
    name = f"{public.__module__.partition('.')[2]}.{public.__name__}".lstrip(".")
    if isinstance(error, TypeError) and (not names.issuperset(kw) or len(args) > _most(f)):
        kw = renamed(name, names, kw)
        try:
            return modern(f, args, kw, public.__name__)  # it was never entered before
        except (TypeError, AttributeError) as again:
            error = again
    # A message of the function's own says more than ours.
    said = isinstance(error, TypeError) and public.__name__.strip("_") in str(error)
    fault = None if said else fault_of(name, f, args, kw)
    if fault is None:
        raise error
    raise fault from None


def blame_arrays(public: Any, f: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> None:
    """Raise for an array among the arguments of a call that failed: it may have been refused for what no tensor would be."""
    if any(type(a) is np.ndarray for a in (*args, *kw.values())):
        fault = fault_of(f"{public.__module__.partition('.')[2]}.{public.__name__}".lstrip("."), f, args, kw)
        if fault is not None:
            raise fault from None


def _most(f: Any) -> int:
    """How many positional arguments the newer form of a function has that has an older one."""
    return LEGACY[f.__name__][1] if f.__name__ in LEGACY else 3 if f.__name__ in PRODUCTS else 99


def fault_of(function: str, f: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> TypeError | None:
    """The error for the first argument that is no tensor where the declaration wants one."""
    try:
        s = inspect.signature(f)
        given = s.bind_partial(*args, **kw).arguments
    except (TypeError, ValueError):
        return None
    for k, (name, p) in enumerate(s.parameters.items(), 1):
        wanted = [w.strip() for w in str(p.annotation).split("|")]
        x: Any = given.get(name)
        if name not in given or isinstance(x, Tensor):
            continue
        place = f" (position {k})" if k <= len(args) else ""
        if wanted == ["int"] and not isinstance(x, int | np.integer | Tensor) and not hasattr(x, "__index__"):
            return TypeError(f"{function}(): argument '{name}'{place} must be int, not {type(x).__name__}")
        if _SEQUENCES.search(str(p.annotation)) or (p.kind is p.VAR_POSITIONAL and x):
            inner = x[0] if p.kind is p.VAR_POSITIONAL and len(x) == 1 and isinstance(x[0], list | tuple) else x
            if not isinstance(inner, list | tuple):
                return TypeError(
                    f"{function}(): argument '{name}'{place} must be tuple of Tensors, not {type(x).__name__}"
                )
            for i, e in enumerate(inner):
                if _is_data(e) and (
                    _TENSORS.search(str(p.annotation)) or hasattr(e, "__array__")
                ):  # numbers may be sizes
                    return TypeError(
                        f"{function}(): expected Tensor as element {i} in argument '{name}', but got {type(e).__name__}{_hint('it', e)}"
                    )
            continue
        if "Tensor" not in wanted or not {*wanted} <= {"Tensor", "None"} or (x is None and "None" in wanted):
            continue
        what = f"{function}(): argument '{name}'{place} must be Tensor, not {type(x).__name__}{_hint(name, x)}"
        return TypeError(what)
    return None


_DATA = (bool, int, float, complex, list, tuple)
_TENSORS, _SEQUENCES = re.compile(r"\bTensor\b"), re.compile(r"(Sequence|list|tuple|Iterable)\[[^]]*\bTensor\b")


def _is_data(x: Any) -> bool:
    """Whether something can be made a tensor and is none."""
    return not isinstance(x, Tensor) and (isinstance(x, _DATA) or hasattr(x, "__array__"))


def _hint(name: str, x: Any) -> str:
    return f"; write chainrule.tensor({name})" if _is_data(x) else ""


def takes_other_names(f: Any) -> bool:
    """Whether some of a function's arguments have other names, or itself an older form."""
    if isinstance(f, type):
        return False
    names = parameters_of(f)
    return (
        f.__name__ in LEGACY
        or f.__name__ in PRODUCTS
        or (names is not EVERYTHING and not names.isdisjoint(("dim", "keepdim", "other")))
    )


def around(f: Any, wrap: Callable[[Any], Any]) -> Any:
    """``wrap(f)``; of a function with straight-line code, on the way of those calls alone that have none."""
    itself, door, plain = getattr(f, "straight", (None, wrap, f))
    return door(wrap(plain)) if itself is f else wrap(f)


def checked(f: F, name: str | None = None) -> F:
    """`f` that takes NumPy's names of its arguments too, and says (as `name`) which argument is no tensor where it needs one."""
    if type(f) is not FunctionType:
        return f
    names = parameters_of(f)

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Any:
        try:
            return f(*args, **kw)
        except (TypeError, AttributeError) as error:
            return second_look(call, f, names, args, kw, error)
        except (RuntimeError, ValueError):
            blame_arrays(call, f, args, kw)
            raise

    if name is not None:
        call.__name__ = name
    return call  # type: ignore[return-value]
