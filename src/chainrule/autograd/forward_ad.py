"""Forward mode in the imperative style: ``with dual_level(): x = make_dual(x, t); ...; unpack_dual(y).tangent``."""

from __future__ import annotations

import weakref
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..core import dispatch
from ..core.errors import ChainruleError
from ..core.forward import Forward, fit_tangent
from ..core.primitives import alias
from ..core.tensor import Tensor
from ..core.views import grow, pin


class Dual(Forward):
    """A level of dual numbers; what outlives it is its primal, as in PyTorch."""

    fades = True

    def __init__(self) -> None:
        self.given: list[weakref.ref[Any]] = []  # nodes of the tangents that make_dual was given

    def check(self, op: str) -> None:
        """Nothing to say: a dual number of a level that has ended is a primal."""

    def run(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if self.alive:
            return super().run(op, args, kw)
        return op.bind(*[a._value if isinstance(a, Tensor) and a._interp is self else a for a in args], **kw)

    def run_unary(self, op: Any, x: Tensor) -> Any:
        return super().run_unary(op, x) if self.alive else op.bind(x._value)

    def run_binary(self, op: Any, a: Any, b: Any) -> Any:
        return super().run_binary(op, a, b) if self.alive else self.run(op, (a, b), {})


_LEVELS: ContextVar[tuple[Dual, ...]] = ContextVar("chainrule_dual_levels", default=())


class UnpackedDualTensor(NamedTuple):
    """Primal and tangent of a dual tensor; the tangent is None where there is none."""

    primal: Tensor
    tangent: Tensor | None


def enter_dual_level() -> int:
    """Enter a new level of dual numbers; returns its number."""
    _enter()
    return len(_LEVELS.get()) - 1


def _enter() -> Dual:
    level = Dual()
    level.__enter__()
    _LEVELS.set((*_LEVELS.get(), level))
    return level


def _leave(level: Dual) -> None:
    """Leave a level, which need not be the innermost: a generator may end late."""
    _LEVELS.set(tuple([i for i in _LEVELS.get() if i is not level]))
    level.__exit__(None, None, None)


def exit_dual_level(*, level: int | None = None) -> None:
    """Leave the innermost level; its tangents are gone."""
    levels = _LEVELS.get()
    if not levels:
        raise RuntimeError("exit_dual_level: no dual level is active")
    _leave(levels[-1])


class dual_level:
    """A level of dual numbers as a context manager."""

    def __enter__(self) -> int:
        self._level = _enter()
        return len(_LEVELS.get()) - 1

    def __exit__(self, *exc: Any) -> None:
        _leave(self._level)


def _level(level: int | None, what: str) -> Dual:
    levels = _LEVELS.get()
    if not levels:
        raise RuntimeError(
            f"{what}: trying to use forward AD without a dual level; write `with forward_ad.dual_level():` around it"
        )
    return levels[-1 if level is None else level]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """The dual number of a primal and a tangent of the same shape."""
    if tangent.shape != tensor.shape:
        raise RuntimeError(
            f"make_dual: Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported: "
            f"the tangent has shape {list(tangent.shape)}, the primal {list(tensor.shape)}"
        )
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if x.dtype.category < 2:
            raise ValueError(f"make_dual: Expected {what} to be floating point or complex, but got: {x.dtype}")
    lv = _level(level, "make_dual")
    if (batch := _batch_above(lv, tensor, tangent)) is not None:
        p, t = (x._value if x._interp is batch else grow(x, batch.size) for x in (tensor, tangent))
        return Tensor(make_dual(p, t, level=level), batch)
    given = fit_tangent(tangent, tensor)
    if given.requires_grad:
        given = alias(given)  # a node of its own on the tape: gradients of dual numbers stop there
        lv.given += [weakref.ref(n) for n in _nodes(given)]
    if tensor.requires_grad:
        tensor = alias(tensor)  # the dual number is a variable beside its primal
    return Tensor(pin(tensor, True), lv, pin(given, True))


def _batch_above(lv: Dual, *xs: Tensor) -> Any:
    """The highest level of the tensors, where that is a vmap within the level of dual numbers."""
    top: Any = max((x._interp for x in xs if x._interp is not None), key=lambda i: i.level, default=None)
    return top if top is not None and top.kind == "vmap" and top.level > lv.level else None


def _nodes(x: Tensor) -> list[Any]:
    """The nodes of the tapes that a tensor is on."""
    nodes = []
    while (i := x._interp) is not None:
        if i.kind == "reverse":
            nodes.append(x._aux)
        x = x._value
    return nodes


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Primal and tangent of a tensor at the innermost level; there is no tangent where there is no level."""
    if level is None and not _LEVELS.get():
        return UnpackedDualTensor(tensor, None)
    lv = _level(level, "unpack_dual")
    if (batch := _batch_above(lv, tensor)) is not None:
        p, t = unpack_dual(tensor._value, level=level)
        return UnpackedDualTensor(Tensor(p, batch), None if t is None else Tensor(t, batch))
    i = tensor._interp
    if i is not None and i.alive and i.level > lv.level and i.level % 1 == 0 and not i.fades:
        raise ChainruleError(
            f"unpack_dual: the tensor is a variable of {'grad' if i.kind == 'reverse' else i.kind} inside the level of dual numbers, which differentiates "
            f"functions of it: its tangent is none. Unpack outside of that transform, or open the dual level inside its function."
        )
    tensor = lv.settle(tensor)
    if tensor._interp is lv:
        # A write to either changes no dual number.
        primal, tangent = (x if x is None else pin(dispatch.constant(x), True) for x in (tensor._value, tensor._aux))
        return UnpackedDualTensor(dispatch.leaving(primal), dispatch.leaving(tangent, primal))
    return UnpackedDualTensor(tensor, None)


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents are propagated at the innermost level."""
    return not any(i.is_muted() for i in dispatch.STACK.get() if i.kind == "jvp")


class _set_fwd_grad_enabled:
    """Stop (or resume) the propagation of tangents, from here on or inside a ``with``."""

    def __init__(self, mode: bool) -> None:
        self._before = dispatch.MUTE.get()
        dispatch.mute(not mode)

    def __enter__(self) -> None: ...

    def __exit__(self, *exc: Any) -> None:
        dispatch.MUTE.set(self._before)


__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def __getattr__(name: str) -> Any:
    """``_current_level``: the number of the innermost level, -1 where none is active."""
    if name == "_current_level":
        return len(_LEVELS.get()) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
