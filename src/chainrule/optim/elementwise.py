"""Optimisers whose step is one formula for each element: the engine that runs it over all parameters at once.

Such an optimiser says what a parameter's state is (`scalars`, `buffers`), what numbers its formula needs after the present number of
steps (`coefficients`), and the formula (`rule`). The rule is a plain function of values that know arithmetic, and of `xp`, which has
the functions. So one text serves a compiled loop over all parameters, arrays where there is no compiler, and tensors: in a
differentiable step, and under transforms.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from ..core import dtypes as dt
from ..core.dispatch import STACK, innermost
from ..core.held import rebind, rows, shared_memory
from ..core.imperative import set_grad_enabled
from ..core.registry import PUBLIC
from ..core.tensor import Tensor
from ..fallback import NotSupported
from ..kernels import compiler, many
from .optimizer import Optimizer, closure_value

ndarray = np.ndarray


class Functions(SimpleNamespace):
    """What a rule needs beside arithmetic."""

    sqrt: Any
    maximum: Any
    where: Any
    abs: Any

    def sign(self, x: Any) -> Any:
        """-1, 0 or 1, and NaN for NaN."""
        return self.where(x > 0, 1.0, self.where(x < 0, -1.0, x))


ARRAYS = Functions(sqrt=np.sqrt, maximum=np.maximum, where=np.where, abs=np.abs)


def tensors() -> Functions:
    """The functions of tensors."""
    return Functions(**{n: PUBLIC[n] for n in vars(ARRAYS)})


def _kernel_functions(k: Any) -> Functions:
    def where(c: Any, a: Any, b: Any) -> Any:
        return k.select(c, k.value(a, k.compute), k.value(b, k.compute))

    return Functions(
        sqrt=k.sqrt,
        maximum=lambda a, b: where(a.ne(a), a, k.maximum(a, b)),
        where=where,
        abs=abs,
    )


class Elementwise(Optimizer):
    """An optimiser by a formula for each element."""

    scalars: ClassVar[tuple[str, ...]] = ("step",)  # what a state counts, one number each
    takes_sparse: ClassVar[bool] = False
    _own_slots: dict[int, _Slot] | None = None

    @property
    def _slots(self) -> dict[int, _Slot]:
        if self._own_slots is None:
            self._own_slots = {}
        return self._own_slots

    def scalar(self, name: str, group: dict[str, Any]) -> Any:
        """Where a number of the state starts; a tensor of one if it is differentiated."""
        return 0.0

    def buffers(self, group: dict[str, Any]) -> dict[str, Any]:
        """The tensors of a state, and what they are filled with at first: a number, or a tensor of one that is differentiated."""
        return {}

    def coefficients(self, group: dict[str, Any], s: Any) -> dict[str, Any]:
        """Count a step in `s`, the numbers of a state (and `s.fresh`, whether they are new), and give those of the formula.

        Truth values choose the formula; everything else is a number in it.
        """
        raise NotImplementedError

    @staticmethod
    def rule(xp: Functions, c: Any, p: Any, g: Any, *buffers: Any) -> tuple[Any, ...]:
        """The parameter and the buffers after a step."""
        raise NotImplementedError

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; `closure` computes the loss anew."""
        loss = closure_value(closure)
        with set_grad_enabled(bool(self.defaults.get("differentiable"))):
            for group in self.param_groups:
                if group.get("differentiable"):
                    for p in group["params"]:
                        if p.grad is not None:
                            self._step_tensor(p, group)
                else:
                    self._step_group(group)
        return loss

    # -- states -------------------------------------------------------------------------------------------------------
    def _start(self, p: Tensor, group: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """The state of a parameter, made at its first step; and whether that is now."""
        fill = self.buffers(group)
        if not fill and not self.scalars:
            return {}, True
        state = self.state[p]
        fresh = not all(k in state for k in fill) if fill else not state
        if fresh:
            wide = dt.get_default_dtype() is dt.float64 and not group.get("fused")
            float_type = dt.float64 if wide else dt.float32
            for k in self.scalars:
                v = self.scalar(k, group)
                state.setdefault(k, v.clone() if isinstance(v, Tensor) else Tensor(np.array(v, float_type.np)))
            for k, v in fill.items():
                if state.get(k) is None:
                    state[k] = _full_like(p, v)
        return state, fresh

    def _numbers(self, state: dict[str, Any]) -> list[Any]:
        """The numbers of a state as NumPy's, whose type is the state's."""
        out = []
        for k in self.scalars:
            t = state[k]
            if not isinstance(t, Tensor):
                t = state[k] = Tensor(np.array(float(t), np.float32))
            out.append(t._value[()] if t._interp is None else t)
        return out

    def _count(self, group: dict[str, Any], now: Iterable[Any], fresh: bool) -> tuple[list[Any], dict[str, Any]]:
        """The numbers of a state after a step, and those of the formula."""
        s = SimpleNamespace(**dict(zip(self.scalars, now, strict=True)), fresh=fresh)
        c = self.coefficients(group, s)
        c.setdefault("maximize", bool(group.get("maximize")))
        return [getattr(s, k) for k in self.scalars], c

    # -- arrays -------------------------------------------------------------------------------------------------------
    def _step_group(self, group: dict[str, Any]) -> None:
        """A step of all parameters of a group, those of one type and one formula together."""
        group = {k: _number(v) if isinstance(v, Tensor) else v for k, v in group.items()}
        if isinstance(b := group.get("betas"), tuple) and isinstance(b[0], Tensor):
            group["betas"] = tuple(map(_number, b))
        fill = self.buffers(group)
        names = tuple(fill)
        slots, states, counted, batches = self._slots, self.state, {}, {}  # type: ignore[var-annotated]
        for p in group["params"]:
            m = p._meta
            g = None if m is None else m.grad
            if g is None:
                continue
            slot = slots.get(id(p))
            if slot is None or not slot.holds(p, g, states, names):
                slot = self._slot(p, g, group, names)
                if slot is None:
                    continue
            numbers = slot.numbers
            key = (numbers[0].item(), slot.fresh) if len(numbers) == 1 else (*[a.item() for a in numbers], slot.fresh)
            done = counted.get(key)
            if done is None:
                new, c = self._count(group, [a[()] for a in numbers], slot.fresh)
                flags = tuple([(k, v) for k, v in c.items() if type(v) is bool])
                done = counted[key] = new, c, flags
            slot.fresh = False
            for a, v in zip(numbers, done[0], strict=True):
                a[()] = v
            slot.done = done
            batch = (slot.dtype, done[2])
            if batch in batches:
                batches[batch].append(slot)
            else:
                batches[batch] = [slot]
        for (dtype, flags), work in batches.items():
            self._run(dtype, flags, work)
            for slot in work:
                slot.finish(names, type(self).__name__)

    def _slot(self, p: Tensor, g: Tensor, group: dict[str, Any], names: tuple[str, ...]) -> _Slot | None:
        """Where the arrays of a parameter are; None if it is a tensor of a transform, which has moved by now."""
        if has_pattern(p):
            self._step_tensor(p, group)
            return None
        if has_pattern(g):
            g = self._dense(g)
        state, fresh = self._start(p, group)
        self._numbers(state)
        if not (_is_array(p) and _is_array(g) and all(_is_array(state[k]) for k in (*names, *self.scalars))):
            self._step_tensor(p, group, fresh)
            return None
        slot = self._slots[id(p)] = _Slot(p, g, state, names, self.scalars, fresh)
        return slot

    def _dense(self, g: Tensor) -> Tensor:
        """A sparse gradient as a dense one, where entries that it lacks change nothing."""
        if not self.takes_sparse:
            raise RuntimeError(
                f"{type(self).__name__} does not support sparse gradients, please consider SparseAdam instead, or write p.grad.to_dense()"
            )
        return g.to_dense()

    def _run(self, dtype: Any, flags: tuple[tuple[str, bool], ...], slots: list[_Slot]) -> None:
        """The rule on the arrays of all slots: compiled, or by NumPy."""
        rule, on = self.rule, dict(flags)
        fit = [s for s in slots if s.compiled] if compiler.available() else []
        if fit:
            first = fit[0].done
            names = [k for k, v in first[1].items() if type(v) is not bool]
            distinct = fit[:1] if all(s.done is first for s in fit) else fit
            table = np.array([[float(s.done[1][k]) for k in names] for s in distinct])

            def body(k: Any, at: list[Any], p: Any, g: Any, *bufs: Any) -> Any:
                c = SimpleNamespace(**dict(zip(names, at, strict=True)), **on)
                return rule(_kernel_functions(k), c, p, -g if c.maximize else g, *bufs)

            try:
                many.run(
                    (rule, flags), type(self).__name__, body, list(zip(*[s.arrays for s in fit], strict=True)), table
                )
            except NotSupported:
                fit = []
        for s in slots if not fit else [s for s in slots if not s.compiled]:
            _by_numpy(rule, s.done[1], s.arrays)

    # -- tensors ------------------------------------------------------------------------------------------------------
    def _step_tensor(self, p: Tensor, group: dict[str, Any], made: bool = False) -> None:
        """A step that can be differentiated: the same formula on tensors, recorded; `made`: the state was made for this step."""
        state, fresh = self._start(p, group)
        fresh = fresh or made
        names = list(self.buffers(group))
        new, numbers = self._count(group, self._numbers(state), fresh)
        c = SimpleNamespace(**numbers)
        for k, v in zip(self.scalars, new, strict=True):
            _write_number(state, k, v)
        grad: Any = p.grad
        g = self._dense(grad) if has_pattern(grad) and not has_pattern(p) else grad
        values = [p, -g if c.maximize else g, *(state[k] for k in names)]
        if sparse := has_pattern(p):
            read, put = on_pattern(p)
            values = [read(v) for v in values]
        if complex_numbers := p.dtype.category == dt.COMPLEX:
            values = [PUBLIC["view_as_real"](v) for v in values]
        out = [v for v in self.rule(tensors(), c, *values) if v is not None]
        if complex_numbers:
            out = [PUBLIC["view_as_complex"](v) for v in out]
        if sparse:
            out = [put(v) for v in out]
        p.copy_(out[0])
        for k, v in zip(names, out[1:], strict=True):
            _write(state, k, v)


def times(n: Any) -> Any:
    """A number of a state as Python's; that of a step that is being recorded as a tensor, in double precision."""
    return n.to(dt.float64) if isinstance(n, Tensor) and n._interp is not None else float(n)


def _number(t: Tensor) -> Any:
    """An option that is a tensor, as a number; of a step that is being recorded in double precision, as a number is; of a transform, as it is."""
    return float(t) if _is_array(t) else t.to(dt.float64) if _recorded() else t


def _recorded() -> bool:
    return any(i.kind == "record" for i in STACK.get())


def _write(state: dict[str, Any], k: str, v: Tensor) -> None:
    """Into the tensor that is there while a step is being recorded for jit: the next call finds the same one."""
    if _recorded():
        state[k].copy_(v)
    else:
        state[k] = v


def _write_number(state: dict[str, Any], k: str, v: Any) -> None:
    if isinstance(v, Tensor):
        _write(state, k, v)
        return
    t = state[k]
    if t._interp is None and (t._meta is None or not t._meta.pinned):
        t._value[()] = v
    else:
        state[k] = Tensor(np.array(v, innermost(t).dtype))


def _is_array(x: Any) -> bool:
    """Whether a tensor is an array, or recorded by ``requires_grad`` right above one."""
    i = x._interp
    if i is None:
        return True
    imperative = i.kind == "reverse" and (i.level == 0 or i.level % 1 != 0)  # and no transform's level
    return imperative and x._value._interp is None


def has_pattern(x: Tensor) -> bool:
    """Whether a tensor is sparse, in whatever layout."""
    return x.layout.name.startswith("sparse")


def on_pattern(p: Tensor) -> tuple[Any, Any]:
    """How the numbers at a sparse tensor's places are read off a tensor, and how numbers become a tensor of its pattern."""
    from ..ops.sparse.values import values_p, with_values_p

    pattern = innermost(p).pattern
    return lambda x: values_p(x, pattern=pattern), lambda v: with_values_p.bind(v, pattern=pattern)


def _full_like(p: Tensor, fill: Any) -> Tensor:
    """A buffer for a parameter; of a complex one, both parts are filled; of a sparse one, its numbers."""
    if isinstance(fill, Tensor):
        return PUBLIC["zeros_like"](p.detach()) + fill
    if has_pattern(p):
        with set_grad_enabled(False):
            v, put = on_pattern(p)
            return put(_full_like(v(p.detach()), fill))
    if not _is_array(p):
        with set_grad_enabled(False):
            t = PUBLIC["zeros_like"](p)
            return t if not fill else t + (complex(fill, fill) if p.dtype.category == dt.COMPLEX else fill)
    v = innermost(p)
    a = np.zeros(rows(v).shape, v.dtype)
    if fill:
        a[...] = complex(fill, fill) if v.dtype.kind == "c" else fill
    return Tensor(a)


class _Slot:
    """The arrays that a step of one parameter reads and writes: found once, and again where anything has been replaced."""

    __slots__ = (
        "arrays",
        "buffers",
        "compiled",
        "done",
        "dtype",
        "fresh",
        "g",
        "moved",
        "names",
        "numbers",
        "p",
        "raw",
        "state",
        "value",
    )

    def __init__(
        self, p: Tensor, g: Tensor, state: dict[str, Any], names: tuple[str, ...], scalars: tuple[str, ...], fresh: bool
    ) -> None:
        for k in scalars:
            state[k] = _private(state[k])
        for k in names:
            state[k] = _private(state[k])
        self.p, self.state, self.fresh = weakref.ref(p), state, fresh
        self.done: Any = None
        self.names = names
        self.buffers: list[tuple[str, Any, Any]] = [(k, state[k], state[k]._value) for k in (*scalars, *names)]
        self.numbers = [state[k]._value for k in scalars]
        payload = shared_memory(p)
        self.value = rows(innermost(p)).copy() if payload is None else rows(payload)
        self.moved = payload is None
        self.dtype = self.value.dtype
        self.raw = [self.value, None, *(rows(state[k]._value) for k in names)]
        self.compiled = all(
            a is None or (a.flags.c_contiguous and a.size == self.value.size and a.dtype == self.dtype)
            for a in self.raw
        )
        self.arrays: list[Any] = [a if a is None or not self.compiled else _real(a) for a in self.raw]
        self._gradient(rows(innermost(g)))

    def _gradient(self, g: ndarray) -> None:
        if g.dtype is not self.dtype:
            g = g.astype(self.dtype)
        if self.compiled:
            g = _real(g if g.flags.c_contiguous else np.ascontiguousarray(g))
        self.arrays[1] = g

    def holds(self, p: Tensor, g: Tensor, states: dict[Any, Any], names: tuple[str, ...]) -> bool:
        """Whether everything is where it was; then the gradient is that of now."""
        state = self.state
        if self.p() is not p or self.moved or g._interp is not None or type(v := g._value) is not ndarray:
            return False
        if self.buffers and states.get(p) is not state:
            return False
        if self.names != names:
            return False
        for k, t, a in self.buffers:
            if t._value is not a or t._meta is not None or state.get(k) is not t:
                return False
        payload = shared_memory(p)
        if payload is not self.value:
            return False
        if v.dtype is self.dtype and self.compiled and v.flags.c_contiguous and v.dtype.kind == "f":
            self.arrays[1] = v
        else:
            self._gradient(v)
        return True

    def finish(self, names: tuple[str, ...], what: str) -> None:
        """A parameter whose memory was kept by others moves to its new value."""
        self.done = self.arrays[1] = None
        if self.moved:
            p: Any = self.p()
            old = innermost(p)
            rebind(p, self.value if type(old) is ndarray else type(old)(self.value, old.geometry), what)


def _private(t: Tensor) -> Tensor:
    """A tensor of a state whose memory nobody else has saved: itself, or a copy."""
    a = innermost(t)
    saved = t._interp is not None or t._meta is not None
    return Tensor(a.copy()) if saved or not rows(a).flags.writeable else t


def _real(a: ndarray) -> ndarray:
    """A contiguous array of complex numbers as one of their parts."""
    return a.reshape(-1).view(f"f{a.dtype.itemsize // 2}") if a.dtype.kind == "c" else a


def _view_as_real(a: ndarray) -> ndarray:
    return np.lib.stride_tricks.as_strided(a.real, (*a.shape, 2), (*a.strides, a.itemsize // 2))


def _by_numpy(rule: Callable[..., Any], c: dict[str, Any], arrays: list[ndarray]) -> None:
    """The rule by NumPy, written to where the arrays are; numbers of 16 bits are computed in 32."""
    if arrays[0].dtype.kind == "c":
        arrays = [_view_as_real(a) for a in arrays]
    xs = [a.astype(np.float32) if a.dtype.itemsize == 2 else a for a in arrays]
    if c["maximize"]:
        xs[1] = -xs[1]
    out = [v for v in rule(ARRAYS, SimpleNamespace(**c), *xs) if v is not None]
    for a, v in zip([arrays[0], *arrays[2:]], out, strict=True):
        np.copyto(a, v, casting="unsafe")


__all__ = ["ARRAYS", "Elementwise", "Functions", "tensors"]
