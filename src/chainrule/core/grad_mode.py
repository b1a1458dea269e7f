"""Grad mode: ``no_grad``, ``enable_grad``, ``inference_mode``, ``set_grad_enabled``, as context managers and decorators.

A mode cuts the levels that are active when it is entered, and none that starts inside (``CUT`` in :mod:`.dispatch`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from .dispatch import CUT, MUTE, grad_cut, grad_enabled, mute


class _Mode:
    """A context manager and decorator that turns recording on or off, for the levels that are active when it is entered."""

    mode = False

    def __new__(cls, f: Any = None, *args: Any) -> Any:
        # ``@no_grad`` without parentheses.
        return cls()(f) if callable(f) else object.__new__(cls)

    def __init__(self, f: Any = None) -> None:
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(CUT.get())
        CUT.set(grad_cut(self.mode))

    def __exit__(self, *exc: Any) -> None:
        CUT.set(self._before.pop())

    def clone(self) -> _Mode:
        """Another one with the same settings: a decorated function may call itself."""
        return type(self)()

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(f):
            return self._generator(f)

        @functools.wraps(f)
        def run(*args: Any, **kw: Any) -> Any:
            with self.clone():
                return f(*args, **kw)

        return run

    def _generator(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """The mode holds while the generator runs, and not while it waits."""

        @functools.wraps(f)
        def run(*args: Any, **kw: Any) -> Any:
            g = f(*args, **kw)
            step: Callable[[], Any] = lambda: next(g)
            try:
                while True:
                    with self.clone():
                        y = step()
                    try:
                        sent = yield y
                    except GeneratorExit:
                        with self.clone():
                            g.close()
                        raise
                    except BaseException as e:
                        step = functools.partial(g.throw, e)
                    else:
                        step = functools.partial(g.send, sent)
            except StopIteration as end:
                return end.value

        return run


class no_grad(_Mode):
    """Nothing inside is recorded by the levels that are active: ``with no_grad(): ...`` or ``@no_grad()``.

    A transform that starts inside is not concerned: ``with no_grad(): g = grad(f)(x)`` gives the gradient, as a constant.
    """


class enable_grad(_Mode):
    """Recording is on inside, even within ``no_grad``."""

    mode = True


class inference_mode(_Mode):
    """Like ``no_grad``, and forward mode stops too; tensors made inside are ordinary ones."""

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.inference, self.mode = mode, not mode

    def clone(self) -> _Mode:
        return inference_mode(self.inference)

    def __enter__(self) -> None:
        super().__enter__()
        self._before.append((INFERENCE.get(), MUTE.get()))
        INFERENCE.set(self.inference)
        mute(self.inference)

    def __exit__(self, *exc: Any) -> None:
        inference, muted = self._before.pop()
        INFERENCE.set(inference)
        MUTE.set(muted)
        super().__exit__(*exc)


class set_grad_enabled(_Mode):
    """Recording on or off from here on, or inside a ``with``."""

    def __new__(cls, mode: bool) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode, self._outer = mode, CUT.get()
        CUT.set(grad_cut(mode))

    def clone(self) -> _Mode:
        return set_grad_enabled(self.mode)

    def __enter__(self) -> None:
        self._before.append(self._outer)
        CUT.set(grad_cut(self.mode))

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        CUT.set(self._outer)
        return super().__call__(f)


INFERENCE: ContextVar[bool] = ContextVar("chainrule_inference", default=False)


def is_grad_enabled() -> bool:
    """Whether recording is on."""
    return grad_enabled()


def is_inference_mode_enabled() -> bool:
    """Whether inference mode is on."""
    return INFERENCE.get()
