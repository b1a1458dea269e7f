"""``torch.jit``: scripted and traced functions are the Python functions they were; the annotations are accepted."""

from __future__ import annotations

import builtins
import contextlib
import copy
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from .refusal import refuse

T = TypeVar("T")
RECURSIVE: list[str] = []
Attribute = lambda value, type=None: value


class Error(RuntimeError):
    """Of TorchScript; never raised here."""


def script(obj: Any, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """`obj` itself: a function, a class or a module runs as the Python it is."""
    return obj


def script_method(fn: T) -> T:
    """The method itself."""
    return fn


def script_if_tracing(fn: T) -> T:
    """The function itself."""
    return fn


def trace(func: Any, example_inputs: Any = None, *args: Any, **kw: Any) -> Any:
    """`func` itself, after one call with the example, as tracing would make; control flow stays alive."""
    if example_inputs is not None:
        from ..core.imperative import no_grad

        inputs = example_inputs if isinstance(example_inputs, tuple | list) else (example_inputs,)
        with no_grad():
            func(*inputs)
    return func


def trace_module(mod: Any, inputs: Any, *args: Any, **kw: Any) -> Any:
    """The module itself."""
    return mod


def ignore(drop: Any = False, **kw: Any) -> Any:
    """The function itself, as ``@ignore`` or ``@ignore(drop=True)``."""
    return drop if callable(drop) else lambda f: f


def unused(fn: T) -> T:
    """The function itself."""
    return fn


export = interface = unused


def freeze(mod: T, preserved_attrs: Any = None, optimize_numerics: bool = True) -> T:
    """The module itself."""
    return mod


optimize_for_inference = run_frozen_optimizations = freeze


def annotate(the_type: Any, the_value: T) -> T:
    """The value."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Python's, which also takes a tuple of types; what is parametrised is compared by its origin."""
    kinds: Any = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(getattr(k, "__origin__", k) for k in kinds))


def is_scripting() -> bool:
    """False: nothing is scripted."""
    return False


is_tracing = is_scripting


def fork(func: Callable[..., Any], *args: Any, **kw: Any) -> Any:
    """The call, done at once; ``wait`` gives its result."""
    from .futures import Future

    done: Future = Future()
    done.set_result(func(*args, **kw))
    return done


def wait(future: Any) -> Any:
    """The result of ``fork``."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """The module pickled; ``load`` reads it."""
    from ..interop.system import save as write

    write(copy.copy(m), f)


load = refuse("jit.load", "script")
CompilationUnit = refuse("jit.CompilationUnit", "script")


class _Marked(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return False


class ScriptFunction(metaclass=_Marked):
    """The class of scripted functions, of which there are none."""


def __getattr__(name: str) -> Any:
    if name in ("ScriptModule", "RecursiveScriptModule", "TopLevelTracedModule", "TracedModule"):
        from ..nn import Module

        return _script_module(name, Module)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def _script_module(name: str, module: type) -> type:
    """A module to derive from; no instance of another class is one."""
    cls = type(name, (module,), {"__doc__": "A module: scripting leaves it as it is."})
    globals()[name] = cls
    return cls


@contextlib.contextmanager
def fuser(name: str) -> Iterator[None]:
    """Accepted."""
    yield


optimized_execution = strict_fusion = fuser


def set_fusion_strategy(strategy: Any) -> Any:
    """Accepted."""
    return strategy


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


class _Overload:
    """``_overload`` and its like: the last definition counts, as in Python."""

    def __call__(self, f: T) -> T:
        return f


_overload = _overload_method = _copy_to_script_wrapper = _Overload()


class BroadcastingList:
    """``BroadcastingList2[int]`` in annotations: a number or that many."""

    def __class_getitem__(cls, item: Any) -> Any:
        return list[item]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = BroadcastingList


def boolean_dispatch(
    arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str
) -> Any:
    """One of two functions, by an argument that is True or False."""

    def call(*args: Any, **kw: Any) -> Any:
        chosen = kw[arg_name] if arg_name in kw else args[arg_index] if arg_index < len(args) else default
        return (if_true if chosen else if_false)(*args, **kw)

    return call


_drop = export_opnames = unused
__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "ScriptFunction", "annotate", "enable_onednn_fusion", "export", "fork", "freeze", "ignore",
    "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
    "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip


def lend(jit: Any) -> None:
    """Let ``chainrule.jit``, which is a function, answer to PyTorch's names in ``torch.jit`` too."""
    for n in __all__:
        if n != "isinstance":
            setattr(jit, n, globals()[n])
