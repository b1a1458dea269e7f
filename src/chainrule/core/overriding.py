"""``__torch_function__``: classes that take part in our functions, as subclasses of Tensor or as strangers.

A subclass of Tensor is kept by what is done with its instances: when one is defined it gets our methods once more, each of which asks the class first.
Public functions ask once :func:`enable` has been called, which the definition of a subclass, ``chainrule.overrides`` and ``install_as_torch`` do. So
whoever has no such class pays nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

from .registry import METHODS, PUBLIC
from .tensor import Tensor

OFF: ContextVar[bool] = ContextVar("chainrule_no_overriding", default=False)
MODES: ContextVar[tuple[Any, ...]] = ContextVar("chainrule_function_modes", default=())
KINDS: dict[type, bool] = dict.fromkeys(
    (Tensor, int, float, bool, complex, str, type(None)), False
)  # class -> whether it is asked
STATE = {"functions": False, "methods": False}
PROPERTIES = ("T", "mT", "H", "mH", "real", "imag", "data", "grad")


def disabled(*args: Any, **kw: Any) -> Any:
    """As a class's ``__torch_function__``: it takes no part."""
    return NotImplemented


class DisableTorchFunctionSubclass:
    """No class is asked inside a ``with``."""

    def __enter__(self) -> None:
        self._token = OFF.set(True)

    def __exit__(self, *exc: Any) -> None:
        OFF.reset(self._token)


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Neither a class nor a mode is asked inside a ``with``."""

    def __enter__(self) -> None:
        super().__enter__()
        self._modes = MODES.set(())

    def __exit__(self, *exc: Any) -> None:
        MODES.reset(self._modes)
        super().__exit__(*exc)


def is_asked(cls: type) -> bool:
    """Whether a class wants to be asked: it has ``__torch_function__``, and it is not Tensor itself."""
    known = KINDS.get(cls)
    if known is None:
        f = getattr(cls, "__torch_function__", None)
        theirs = any(
            b.__module__.partition(".")[0] == "torch" for b in cls.__mro__
        )  # PyTorch's own: data to be converted
        known = KINDS[cls] = f is not None and getattr(f, "__func__", f) is not disabled and not theirs
    return known


def overloaded(args: Iterable[Any], within: tuple[Any, ...] = ()) -> list[Any]:
    """The arguments to be asked, one of each class, subclasses first; in lists and tuples too."""
    found: list[Any] = []
    for a in args:
        if isinstance(a, list | tuple):
            if not any(a is b for b in within):  # of a list that contains itself the function will say so
                for x in overloaded(a, (*within, a)):
                    _insert(found, x)
        elif is_asked(type(a)):
            _insert(found, a)
    return found


def _insert(found: list[Any], x: Any) -> None:
    if any(type(x) is type(y) for y in found):
        return
    at = next((i for i, y in enumerate(found) if issubclass(type(x), type(y))), len(found))
    found.insert(at, x)


def ask(func: Any, relevant: Iterable[Any], args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
    """The result of `func` by the classes among `relevant`; NotImplemented if there is none to be asked."""
    modes = MODES.get()
    found = [] if OFF.get() else overloaded(relevant)
    if not found and not modes:
        return NotImplemented
    kinds = tuple(type(x) for x in found)
    if modes:
        token = MODES.set(modes[:-1])
        try:
            r = modes[-1].__torch_function__(func, kinds, args, kw)
        finally:
            MODES.reset(token)
        if r is not NotImplemented:
            return r
    for x in found:
        r = type(x).__torch_function__(func, kinds, args, kw)
        if r is not NotImplemented:
            return r
    name = f"{getattr(func, '__module__', '')}.{getattr(func, '__qualname__', func)}"
    raise TypeError(
        f"Multiple dispatch failed for {name!r}: no implementation found for types that implement __torch_function__: "
        f"{[t.__name__ for t in kinds]}; all returned NotImplemented"
    )


def overridable(f: Callable[..., Any], func: Any = None) -> Callable[..., Any]:
    """`f`, which asks the classes of its arguments first; they are told that it is `func`."""
    known = KINDS.get
    inner = [f]  # what runs: autocast may put a function of its own here, and this one stays what it is

    @functools.wraps(f)
    def call(*args: Any, **kw: Any) -> Any:
        for a in (*args, *kw.values()) if kw else args:
            if known(a.__class__, True):
                break
        else:
            if not modes_seen:
                return inner[0](*args, **kw)
        r = ask(func or call, (*args, *kw.values()), args, kw)
        return inner[0](*args, **kw) if r is NotImplemented else r

    call.inner = inner  # type: ignore[attr-defined]
    return call


modes_seen: list[bool] = []


def enable() -> None:
    """Let the public functions ask; done once."""
    if STATE["functions"]:
        return
    STATE["functions"] = True
    new: dict[int, Any] = {}
    methods = {id(m): n for n, m in METHODS.items()}
    for name, f in list(PUBLIC.items()):
        if isinstance(f, type) or name.rpartition(".")[2] in _UNASKED:
            continue
        if id(f) not in new:
            new[id(f)] = g = overridable(f)
            if f.__qualname__.startswith("Tensor."):  # a method that is a function too: each has a home
                g.__qualname__, g.__module__ = name.rpartition(".")[2], "chainrule"
            elif id(f) in methods:
                f.__qualname__, f.__module__ = f"Tensor.{methods[id(f)]}", "chainrule"
        PUBLIC[name] = new[id(f)]
        head, _, tail = name.rpartition(".")
        module = sys.modules.get(f"chainrule.{head}" if head else "chainrule")
        if module is not None and module.__dict__.get(tail) is f:
            setattr(module, tail, new[id(f)])


# What makes tensors from nothing or speaks of the state of the program.
_UNASKED = frozenset(
    """is_grad_enabled set_default_dtype get_default_dtype manual_seed seed initial_seed save load tensor is_tensor
    get_num_threads set_num_threads get_default_device set_default_device""".split()
)
WRAPPED: dict[str, Any] = {}


def _wrapped_methods() -> dict[str, Any]:
    if not WRAPPED:
        for name, m in METHODS.items():
            WRAPPED[name] = overridable(m, m)
        for name in PROPERTIES:
            p = vars(Tensor).get(name)
            if isinstance(p, property):
                WRAPPED[name] = property(_asking_getter(p), p.fset, p.fdel, p.__doc__)
    return WRAPPED


def _asking_getter(p: property) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        r = ask(p.__get__, (self,), (self,), {})
        return p.fget(self) if r is NotImplemented else r  # type: ignore[misc]

    return get


def enable_methods() -> None:
    """Let the methods of Tensor itself ask too: for modes; done once."""
    enable()
    if not STATE["methods"]:
        STATE["methods"] = True
        for name, m in _wrapped_methods().items():
            setattr(Tensor, name, m)


def _made(self: Any, *args: Any, **kw: Any) -> None:
    """Of a subclass with a constructor of its own: ``__new__`` has done it, and the arguments are for that."""


def _init_subclass(cls: type, **kw: Any) -> None:
    """A subclass of Tensor is kept by its methods, unless its ``__torch_function__`` says that it takes no part."""
    super(Tensor, cls).__init_subclass__(**kw)  # type: ignore[misc]
    if "__new__" in vars(cls) and cls.__init__ is Tensor.__init__:  # type: ignore[misc]
        cls.__init__ = _made  # type: ignore[misc]
    f: Any = cls.__torch_function__  # type: ignore[attr-defined]
    if getattr(f, "__func__", f) is disabled or any("_asks" in vars(b) for b in cls.__mro__):
        return
    enable()
    cls._asks = True  # type: ignore[attr-defined]
    for name, m in _wrapped_methods().items():
        owner = next(b for b in cls.__mro__ if name in vars(b))
        if owner is Tensor:
            setattr(cls, name, m)


def _torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What a subclass does that says nothing else: the function, with its results as instances of the subclass."""
    kwargs = kwargs or {}
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        y = func(*args, **kwargs)
    return _as_class(y, cls, args)


def _as_class(y: Any, cls: type, args: Any) -> Any:
    if isinstance(y, Tensor):
        if isinstance(y, cls) or cls is Tensor or type(y) is not Tensor:
            return y
        if any(y is a for a in args):
            return y.as_subclass(cls)
        y.__class__ = cls  # made just now: its views and its history stay its own
        return y
    if isinstance(y, tuple | list):
        parts = [_as_class(v, cls, args) for v in y]
        return type(y)(*parts) if hasattr(y, "_fields") else type(y)(parts)
    return y


Tensor.__torch_function__ = classmethod(_torch_function)
Tensor.__init_subclass__ = classmethod(_init_subclass)  # type: ignore[assignment, arg-type]
