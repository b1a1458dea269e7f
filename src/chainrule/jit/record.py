"""Recording: the fourth interpreter. It runs ops one level down on example values, and notes them.

It is pushed before the function runs, so that it has the lowest level inside and sees what grad, vmap and jvp leave. A tensor of this
level is a concrete tensor with the example's values and the value of the graph it stands for. An op whose arguments are all concrete
never arrives here: its result is a constant. Whoever looks at elements is refused: what an example says holds for no other input.
"""

from __future__ import annotations

import linecache
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.declare import op as declare_op
from ..core.dispatch import CUT, STACK, Interpreter, recorder_of
from ..core.errors import ChainruleError, see
from ..core.grad_mode import INFERENCE
from ..core.tensor import Tensor
from ..core.views import pin
from ..kernels import compiler
from .graph import ALL, Graph, Node, Var, constant, shielded
from .layouts import in_elements, strides_of

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_KINDS = (bool, int, float, complex, np.generic, type(None))


class JitError(ChainruleError):
    """A function cannot be recorded."""


class NotRecorded(Exception):
    """A value that no recording speaks of (another payload than NumPy's): the function runs without jit."""


def user_line() -> str:
    """Where the innermost frame outside this library is: file, line and source."""
    f: Any = sys._getframe(1)
    while f is not None:
        name = f.f_code.co_filename
        if not name.startswith(_HERE) and "numpy" not in name and not name.startswith("<frozen"):
            line = linecache.getline(name, f.f_lineno).strip()
            return f"{name}:{f.f_lineno}" + (f": {line}" if line else "")
        f = f.f_back
    return ""


@declare_op("look", differentiable=False)
def look_p(x: Any, *, check: Any) -> Any:
    """Looks at the elements and raises where they are not what they must be."""
    check(x)
    return np.zeros((), bool)


look_p.effect = True
GLIMPSES: dict[
    str, Callable[..., list[Tensor]]
] = {}  # of loops and branches: what their results may look like, without a run of all steps
LATER = frozenset(("debug_print", "generator_seed", "generator_set_state"))


def walks_back(x: Tensor) -> bool:
    """Whether reverse mode walks back from a tensor at its innermost level; nobody's asking, so that no recording depends on it."""
    i: Any = x._interp
    return i is not None and (i.kind == "reverse" or (i.kind == "record" and x._aux in i.walked))


def example(x: Tensor) -> np.ndarray:
    """The elements that a tensor has for whoever calls a function with it; under vmap, those of the first example (ones, if there is none)."""
    axes = 0
    while x._interp is not None:
        x._interp.check("jit")
        axes += x._interp.kind == "vmap"
        x = x._value
    v = x._value
    if type(v) is not np.ndarray:
        raise NotRecorded(f"a tensor that holds {type(v).__name__}")
    if 0 in v.shape[:axes]:
        return np.ones(v.shape[axes:], v.dtype)
    return v[(0,) * axes] if axes and v.ndim > axes else np.asarray(v[(0,) * axes]) if axes else v


BIG = 1 << 12  # elements from which an example is one number everywhere


class _Examples(threading.local):
    """Whether large examples may be replaced: by one number everywhere, on which a pointwise op costs nothing."""

    alike = True
    quiet = False  # whether what runs is an example: then nothing is printed


examples = _Examples()


def alike(a: Any) -> Any:
    """An array of the same shape and type with the first element everywhere."""
    if not examples.alike or type(a) is not np.ndarray or a.size < BIG:
        return a
    return np.broadcast_to(a[(0,) * a.ndim], a.shape)


def faithful(f: Callable[[], Any], undo: Callable[[], None] = lambda: None) -> Any:
    """``f()``, a recording; once more on the true values where the replaced ones are at fault: all rows alike make a matrix singular.

    `undo` takes back what a recording that failed has done.
    """
    try:
        return f()
    except BaseException as e:
        undo()
        if isinstance(e, JitError | NotRecorded) or not isinstance(e, Exception) or not examples.alike:
            raise
    examples.alike = False
    try:
        return f()
    except BaseException:
        undo()
        raise
    finally:
        examples.alike = True


class Recorder(Interpreter):
    """The level of a function that is being recorded."""

    kind = "record"

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Var] = []
        self.foreign: list[Tensor] = []  # tensors of levels around, met on the way: inputs beside the arguments
        self._known: dict[tuple[int, int, int], tuple[Tensor, Var]] = {}
        self.walked: set[Var] = set()  # what stands for tensors that reverse mode around walks back from
        self.asked = False  # whether the function wanted to know
        self._paused = False

    def __enter__(self) -> Any:
        # Nobody waits for what is computed meanwhile: constants, by plain bodies.
        self._paused, compiler.paused.on = compiler.paused.on, True
        return super().__enter__()

    def __exit__(self, et: Any, ev: Any, tb: Any) -> None:
        compiler.paused.on = self._paused
        super().__exit__(et, ev, tb)

    # -- values ---------------------------------------------------------------------------------------------------------
    def argument(self, x: Tensor) -> Tensor:
        """A new input of the graph, with the elements of `x` for an example."""
        a = example(x)
        v = alike(a)
        var = Var(v.shape, v.dtype)
        var.strides = in_elements(a)
        self.inputs.append(var)
        if walks_back(x):
            self.walked.add(var)
        return Tensor(pin(Tensor(v)), self, var)

    def is_walked(self, x: Tensor) -> bool:
        """Whether a tensor of this level stands for one of a level of reverse mode around; from then on the recording is for such a call."""
        for i in STACK.get():
            i.asked = True  # type: ignore[attr-defined]  # of a loop's body, the function around too
        return x._aux in self.walked

    def hooked(self) -> None:
        raise NotRecorded("a hook on a tensor, or a derivative by one, of a transform around the call,")

    def is_made(self, x: Tensor) -> bool:
        return self.is_walked(x) and all(v is not x._aux for v in self.inputs)

    def var_of(self, x: Tensor) -> tuple[Tensor, Var]:
        """The concrete tensor and the value of the graph that `x` stands for here."""
        if x._interp is self:
            return x._value, x._aux
        key = (id(x._value), id(x._interp), id(x._aux))
        found = self._known.get(key)
        if found is None:
            v = example(x)
            if x._interp is None:
                held = pin(x)
                low, var = Tensor(v), constant(v)
            else:
                held = pin(x)
                low, var = Tensor(v), Var(v.shape, v.dtype)
                var.strides = in_elements(v)
                self.inputs.append(var)
                self.foreign.append(held)
                if walks_back(x):
                    self.walked.add(var)
            # The key's numbers stay those of these objects as long as somebody holds them.
            self._known[key] = (held, var)
            low._aux = held
            return low, var
        return Tensor(example(found[0])), found[1]

    # -- ops ------------------------------------------------------------------------------------------------------------
    def run(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        if not self.alive:
            self.check(op.name)
        if (graph := kw.get("program")) is not None and op.name == "jit_call":
            from .graph import replay

            return tuple(replay(graph.graph, args))
        return self.note(op, args, kw)

    def note(self, op: Any, args: tuple[Any, ...], kw: dict[str, Any]) -> Any:
        """Run an op on the examples, and note it."""
        low: list[Any] = []
        ins: list[Any] = []
        for a in args:
            if isinstance(a, Tensor):
                t, var = self.var_of(a)
                low.append(t)
                ins.append(var)
            else:
                if isinstance(a, np.ndarray):
                    low.append(a)
                    ins.append(constant(a))
                    continue
                if not isinstance(a, _KINDS):
                    raise NotRecorded(f"{op.name} with an argument of type {type(a).__name__}")
                low.append(a)
                ins.append(a)
        for k, v in kw.items():
            if isinstance(v, Tensor):
                raise JitError(
                    f"jit: {op.name} has a tensor among its static data ({k}), which would be recorded as it is now"
                )
        y = self._run(op, low, kw)
        node = Node(op, ins, kw, self._mode())
        outs: list[Any] = []
        ts: list[Tensor] = []
        for t in y if type(y) is tuple else (y,):
            if t._interp is not None or type(t._value) is not np.ndarray:
                raise NotRecorded(f"{op.name}, whose result is no array")
            if (small := alike(t._value)) is not t._value:
                t = Tensor(small)
            ts.append(t)
            outs.append(small)
        node.results(tuple(outs) if type(y) is tuple else outs[0])
        self.nodes.append(node)
        if self.walked and op.differentiable and not node.cut and not self.walked.isdisjoint(ins):
            self.walked.update(v for v in node.outs if dt.FROM_NP[v.dtype].category >= dt.FLOAT)
        new = [Tensor(t, self, v) for t, v in zip(ts, node.outs, strict=True)]
        return tuple(new) if node.several else new[0]

    def _mode(self) -> int:
        """Which derivatives the levels around do not see of what is computed now: none, ``no_grad``'s, or all, as in inference mode."""
        return 0 if CUT.get() < self.level else ALL if INFERENCE.get() else 1

    def _run(self, op: Any, low: list[Any], kw: dict[str, Any]) -> Any:
        from .draws import sampled, untouched

        if op.name in ("draw", "draw_steps"):
            with untouched(kw):
                ys = tuple([Tensor(v) for v in sampled((kw,))])
                return ys[0] if op.name == "draw" else ys
        if op is look_p or op.name in LATER:  # so does what is looked at, printed, or done to a generator
            return Tensor(np.zeros((), bool))
        loud, examples.quiet = examples.quiet, True
        try:
            if op.form == "pointwise":
                return self._pointwise(op, low, kw)
            if op.writes:
                low = shielded(low)
            glimpse = GLIMPSES.get(op.name)
            with untouched(kw) if glimpse is not None else nullcontext():
                return op.bind(*low, **kw) if glimpse is None or not examples.alike else tuple(glimpse(low, **kw))
        finally:
            examples.quiet = loud

    def _pointwise(self, op: Any, low: list[Any], kw: dict[str, Any]) -> Any:
        """A pointwise op on examples that are one number everywhere: on that number."""
        arrays = [a._value for a in low if isinstance(a, Tensor)]
        if any(a.size > 1 and any(a.strides) for a in arrays) or max(a.size for a in arrays) < BIG:
            return op.bind(*low, **kw)
        shape = np.broadcast_shapes(*[a.shape for a in arrays])
        few = [Tensor(a._value[(slice(0, 1),) * a.ndim]) if isinstance(a, Tensor) else a for a in low]
        y = op.bind(*few, **kw)
        if type(y) is tuple or y._value.shape != (1,) * len(shape):
            return op.bind(*low, **kw)
        return Tensor(np.broadcast_to(y._value, shape))

    def write_past(self, x: Tensor, new: Tensor, forward: bool) -> Tensor:
        """`new` as the value of `x`, whose history it keeps: a write that whoever differentiates what is recorded must not see.

        A write under ``no_grad`` is seen by forward mode all the same, one to a detached view is not.
        """
        from .writes import write_past_p

        if new.shape != x.shape:
            raise JitError(
                f"jit: a tensor of shape {tuple(x.shape)} gets the shape {tuple(new.shape)} and keeps its derivative, at\n    "
                f"{user_line()}\nThat cannot be recorded. Make a new tensor instead of setting .data."
            )
        token = CUT.set(-1.0)
        try:
            return write_past_p.bind(x, new, forward=forward)
        finally:
            CUT.reset(token)

    def look(self, x: Tensor, check: Any) -> None:
        """Let every call look at the elements of `x`, of this level or one above."""
        while x._interp is not self:
            x = x._value
        self.note(look_p, (x,), {"check": check})

    def strides_of(self, x: Tensor) -> tuple[int, ...]:
        """Those that the value has without jit: a large example is a stand-in without a layout."""
        v: Any = x._value._value
        return strides_of(x._aux) if v.size >= BIG and isinstance(x._aux, Var) else super().strides_of(x)

    # -- refusals -------------------------------------------------------------------------------------------------------
    def refusal(self, what: str) -> JitError:
        """The error for whoever needs the elements."""
        return JitError(
            f"jit: {what} needs the elements of a tensor while the function is being recorded, at\n    {user_line()}\n"
            f"What they are now would hold for every later call. Use where(), cond() or masked arithmetic instead of Python control "
            f"flow on values, name the argument in static_argnums if it is a Python number, or do this outside of jit."
            + see("Branches on values, under vmap or jit")
        )

    def restore(self, boxes: list[Tensor], failed: bool) -> None:
        """Tensors that a write lifted to this level are looked at by whoever records."""

    def graph(self, outputs: list[Tensor]) -> Graph:
        """What was recorded, with these outputs (tensors of this level, or constants)."""
        return Graph(self.inputs, self.nodes, [self.var_of(y)[1] for y in outputs])


__all__ = ["JitError", "NotRecorded", "Recorder", "example", "look_p", "recorder_of", "user_line"]
