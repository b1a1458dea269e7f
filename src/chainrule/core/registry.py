"""Where ops say under which public names they go: functions, Tensor methods, in-place methods.

``@public("softmax special.softmax nn.functional.softmax", methods="softmax")`` puts a function into three namespaces and
on Tensor. Adding an operator touches the one file that declares it.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np

from .arguments import EVERYTHING, around, blame_arrays, checked, parameters_of, renamed, second_look, takes_other_names
from .dtypes import scalar_type
from .fast import is_operand
from .op import Op
from .recalled_pointwise import recalled
from .shown_source import show_declaration
from .tensor import Tensor
from .views import assign, write_out

if TYPE_CHECKING:
    from ..typing import Operand

PUBLIC: dict[str, Any] = {}
METHODS: dict[str, Any] = {}
OWNERS: dict[str, str] = {}
F = TypeVar("F", bound=Callable[..., Any])
_ADDRESSED: dict[int, Any] = {}  # by id, with the object: an id alone may be given to another


def address(f: Any, name: str) -> None:
    """Tell a published object where it is imported from, so that it pickles by name; the first name is its home."""
    if id(f) in _ADDRESSED:
        return
    _ADDRESSED[id(f)] = f
    if name.startswith("Tensor."):
        head, tail, f.__qualname__ = "", name[7:], name
    else:
        head, _, tail = name.rpartition(".")
        f.__qualname__ = tail
    f.__name__ = tail
    f.__module__ = f"chainrule.{head}" if head else "chainrule"


def signed(f: Any, like: Any, *, out: bool = False, returns: Any = None) -> Any:
    """`f` with the signature of `like`, which it hands its arguments on to; with ``out=``, or returning something else."""
    s = inspect.signature(like)
    parameters = list(s.parameters.values())
    if out and "out" not in s.parameters:
        end = len(parameters) - (bool(parameters) and parameters[-1].kind is _VAR_KEYWORD)
        parameters.insert(end, _OUT)
    f.__signature__ = s.replace(parameters=parameters, return_annotation=returns or s.return_annotation)
    return f


_VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD
_OUT = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="Tensor | None")


def with_out(f: Callable[..., Any], fresh: bool = False, fill: bool = False) -> Callable[..., Any]:
    """`f` that also takes ``out=``, the tensor (or tuple of tensors) to write the result to.

    `fresh` is for functions that read their inputs while PyTorch writes: `out` may then share no memory with them at all.
    `fill` is for ranges: an `out` of another shape with as many elements is filled.
    """

    names = parameters_of(f)
    makes_new = hasattr(f, "makes_new") or (names is not EVERYTHING and names.issuperset(("dtype", "requires_grad")))

    @functools.wraps(f)
    def call(*args: Any, out: Any = None, **kw: Any) -> Any:
        if out is None:
            try:
                return f(*args, **kw)
            except (TypeError, AttributeError) as error:
                return second_look(call, f, names, args, kw, error)
            except (RuntimeError, ValueError):
                blame_arrays(call, f, args, kw)
                raise
        check_out(f.__name__, out, (*args, *kw.values()), fresh)
        if makes_new and isinstance(out, Tensor):  # what is made anew is of the type of `out`
            d = kw.setdefault("dtype", out.dtype)
            if d is None:
                kw["dtype"] = out.dtype
            elif d is not out.dtype:
                raise RuntimeError(f"{f.__name__}: dtype {d} does not match dtype of out parameter ({out.dtype})")
        y = f(*args, **renamed(f.__name__, names, kw))
        if isinstance(out, Tensor) and isinstance(y, tuple):
            raise RuntimeError(f"{f.__name__}: the result is {len(y)} tensors, which cannot be written to one")
        if fresh and isinstance(out, Tensor) and out.dtype is not y.dtype:
            raise RuntimeError(
                f"{f.__name__}: Expected out tensor to have dtype {y.dtype} (scalar type {scalar_type(y.dtype)}), but got {out.dtype} instead"
            )
        return write_out(out, y, fill)

    return signed(call, f, out=True)


def _unnamed(name: str, given: tuple[Any, ...], kw: dict[str, Any]) -> tuple[Any, ...]:
    """The operands of a pointwise op, of which some came under NumPy's names."""
    wanted = ("input", "other")[: len(given)]
    new = renamed(name, frozenset((*wanted, "out")), kw)
    operands = []
    for n, v in zip(wanted, given, strict=True):
        v = new.pop(n) if v is MISSING and n in new else v
        if v is MISSING:
            raise TypeError(f"{name}() missing 1 required positional argument: {n!r}")
        operands.append(v)
    if new:
        raise TypeError(f"{name}() got an unexpected keyword argument {next(iter(new))!r}")
    return tuple(operands)


MISSING: Any = inspect.Parameter.empty


def pointwise_function(p: Op) -> Callable[..., Any]:
    """A pointwise op as a function with PyTorch's argument names and ``out=``."""
    call = p.bind
    n = p.arity
    if n == 1:

        def function(input: Operand = MISSING, *, out: Tensor | None = None, **kw: Any) -> Tensor:
            if kw or input is MISSING:
                (input,) = _unnamed(p.name, (input,), kw)
            if out is None:
                return call(input)
            check_out(p.name, out, (input,), fresh=False)
            return write_out(out, call(input))

    elif n == 2:

        def function(  # type: ignore[misc]
            input: Operand = MISSING, other: Operand = MISSING, *, out: Tensor | None = None, **kw: Any
        ) -> Tensor:
            if kw or other is MISSING:
                input, other = _unnamed(p.name, (input, other), kw)
            if out is None:
                return call(input, other)
            check_out(p.name, out, (input, other), fresh=False)
            return write_out(out, call(input, other))

    else:
        return p
    function.__name__ = function.__qualname__ = p.name
    function.__doc__ = p.__doc__
    function.op = p  # type: ignore[attr-defined]
    function.__signature__ = _FUNCTION_SIGNATURES[n]  # type: ignore[attr-defined]
    return recalled(p, function)


def _unary(input: Operand, *, out: Tensor | None = None) -> Tensor: ...  # type: ignore[empty-body]
def _binary(input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor: ...  # type: ignore[empty-body]


_FUNCTION_SIGNATURES = {1: inspect.signature(_unary), 2: inspect.signature(_binary)}


def is_pointwise(f: Any) -> TypeGuard[Op]:
    """Whether `f` is an op that acts element by element."""
    return isinstance(f, Op) and f.form == "pointwise"


def check_out(name: str, out: Any, args: tuple[Any, ...], fresh: bool) -> None:
    """Refuse an `out` whose elements share memory with each other or, unless it is the input itself, with an input."""
    for o in out if isinstance(out, tuple | list) else (out,):
        v = getattr(o, "_value", None)
        if type(v) is not np.ndarray or not v.size:
            continue
        if any(s == 0 and n > 1 for s, n in zip(v.strides, v.shape, strict=True)):
            raise RuntimeError(
                f"{name}: unsupported operation: more than one element of out refers to a single memory location. Pass out.clone()"
            )
        for a in args:
            w = getattr(a, "_value", None) if isinstance(a, Tensor) else None
            if fresh and type(w) is np.ndarray and v is not w and _allocation(v) == _allocation(w):
                # PyTorch may resize `out` within the memory that the input lies in.
                raise RuntimeError(
                    f"{name}: unsupported operation: out lies in the same memory as the input of shape {list(w.shape)}. Pass a clone() as out"
                )
            if type(w) is np.ndarray and w.size and np.may_share_memory(v, w):
                same = (
                    v.__array_interface__["data"] == w.__array_interface__["data"]
                    and v.strides == w.strides
                    and v.shape == w.shape
                )
                if fresh or (not same and np.shares_memory(v, w)):
                    raise RuntimeError(
                        f"{name}: unsupported operation: out shares memory with the input of shape {list(w.shape)}. Pass a clone() as out"
                    )


def _allocation(a: Any) -> int:
    """Where the memory begins that an array is a part of."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a.__array_interface__["data"][0]


def in_place(f: Callable[..., Any], name: str) -> Callable[..., Tensor]:
    """The method that writes ``f(self, ...)`` to self and returns self."""

    if name.startswith("__"):
        from .fast import is_operand

        def method(self: Tensor, other: Any) -> Any:
            # What is no operand is left to Python, and so to the other's own operator.
            return assign(self, f(self, other), name) if is_operand(other) else NotImplemented

    else:

        def method(self: Tensor, *args: Any, **kw: Any) -> Any:  # type: ignore[misc]
            return assign(self, f(self, *args, **kw), name)

    method.__doc__ = f"In-place version of :meth:`{name.rstrip('_')}`."
    return signed(method, method if name.startswith("__") else f, returns="Tensor")


def public(
    names: str = "", *, methods: str = "", inplace: str = "", out: bool = True, fresh: bool = False, fill: bool = False
) -> Callable[[F], F]:
    """Publish a function: `names` (dotted, under chainrule), `methods` of Tensor, `inplace` methods; with ``out=`` (see with_out)."""

    def register(f: F) -> F:
        target: Any = (
            pointwise_function(f)
            if is_pointwise(f)
            else around(f, lambda f: with_out(f, fresh, fill))
            if out
            else around(f, checked)
        )
        for n in names.split():
            claim(n, f)
            PUBLIC[n] = target
            address(target, n)
        if hasattr(target, "op"):
            show_declaration(target)
        as_method: Any = _pointwise_method(f) if is_pointwise(f) else _bindable(f) if isinstance(f, Op) else f
        named = as_method
        legible = not is_pointwise(f) and not isinstance(f, Op) and (methods or inplace) and takes_other_names(f)
        if legible:
            named = around(f, checked)
        for n in methods.split():
            attach(n, _operator(f, as_method) if n in OPERATORS else named, f)
        for n in inplace.split():
            attach(n, method := in_place(checked(f, n) if legible else named, n), f)
            show_declaration(method)
        return f

    return register


def attach(name: str, method: Any, owner: Any) -> None:
    """Make a function a method of Tensor."""
    claim(f"Tensor.{name}", owner)
    METHODS[name] = method
    address(method, f"Tensor.{name}")
    setattr(Tensor, name, method)


OPERATORS = frozenset(
    f"__{r}{n}__"
    for n in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le gt ge eq ne".split()
    for r in ("", "r")
)


def _operator(f: Any, method: Callable[..., Any]) -> Callable[..., Any]:
    """The method as Python's operator: for what is neither a tensor nor a number the other operand is asked."""
    if is_pointwise(f):
        return f.operator

    @functools.wraps(method)
    def call(self: Any, other: Any, *rest: Any) -> Any:
        return method(self, other, *rest) if other.__class__ is Tensor or is_operand(other) else NotImplemented

    return call


def claim(name: str, f: Any) -> None:
    """A public name has one owner: a second one would silently win or lose by the order of imports."""
    home = getattr(f, "__globals__", {}).get("__name__") or getattr(f, "__module__", None) or type(f).__module__
    if name in OWNERS:
        raise ValueError(f"{name} is published twice, by {OWNERS[name]} and by {home}; a public name has one owner")
    OWNERS[name] = home


def _bindable(o: Op) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kw: Any) -> Any:
        return o(self, *args, **kw)

    method.__doc__ = o.__doc__
    return method


def _unary_method(self: Tensor) -> Tensor: ...  # type: ignore[empty-body]
def _binary_method(self: Tensor, other: Operand) -> Tensor: ...  # type: ignore[empty-body]


_METHOD_SIGNATURES = {1: inspect.signature(_unary_method), 2: inspect.signature(_binary_method)}


def _pointwise_method(p: Op) -> Callable[..., Any]:
    """A pointwise op's own call, which stands on the hot path, with what a reader wants to know of it."""
    signature = _METHOD_SIGNATURES.get(p.bind.__code__.co_argcount)
    call: Any
    for call in (p.bind, p.operator):
        call.__doc__ = p.__doc__
        if signature is not None:
            call.__signature__ = signature
            show_declaration(call)
    return p.bind


def prop(name: str) -> Callable[[F], F]:
    """Publish a function of one tensor as a property of Tensor."""

    def register(f: F) -> F:
        setattr(Tensor, name, property(f))
        return f

    return register


def interpose(name: str, wrap: Callable[[Any], Any]) -> None:
    """Put ``wrap(f)`` in the place of a published function (``"linalg.inv"``) or method (``"Tensor.mm"``), where there is one."""
    if name.startswith("Tensor."):
        tail = name[7:]
        if tail in METHODS:
            METHODS[tail] = new = wrap(METHODS[tail])
            setattr(Tensor, tail, new)
        return
    if (f := PUBLIC.get(name)) is None:
        return
    if (inner := getattr(f, "inner", None)) is not None:  # see core/overriding.py
        if getattr(inner[0], "interposed", None) is None:
            inner[0] = wrap(inner[0])
            inner[0].interposed = True
        return
    if getattr(f, "interposed", None) is not None:
        return  # under another name
    new = wrap(f)
    new.interposed = True
    for other in [n for n, g in PUBLIC.items() if g is f]:
        PUBLIC[other] = new
        head, _, tail = other.rpartition(".")
        module = sys.modules.get(f"chainrule.{head}" if head else "chainrule")
        if module is not None and module.__dict__.get(tail) is f:
            setattr(module, tail, new)


def house(module: str, names: list[str]) -> None:
    """Make a public module the home of the functions that it imports from the inside."""
    space = module.partition(".")[2]
    for name in names:
        f = getattr(sys.modules[module], name, None)
        private = getattr(f, "__module__", "").startswith(
            ("chainrule.core.", "chainrule.payloads.", "chainrule.transforms.")
        )
        if private and hasattr(f, "__qualname__") and not isinstance(f, type):  # a class stays where its source is
            address(f, f"{space}.{name}" if space else name)


def fill(module: Any, prefix: str) -> list[str]:
    """Put the public names under `prefix` into a module; returns them."""
    names = []
    for full, f in PUBLIC.items():
        head, _, tail = full.rpartition(".")
        if head == prefix:
            address(f, full)
            setattr(module, tail, f)
            names.append(tail)
    return sorted(names)
