"""The fourteen columns of the matrix, judged on one sample."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .adapters import Library, Missing, Tensors
from .calculus import (
    LOW_PRECISION,
    TOLERANCES,
    Arrays,
    Differences,
    differences,
    inner,
    magnitude,
    mismatch,
    random_like,
)
from .problem import Case, Oracle, Problem, torch_name
from .tree import leaves

COLUMNS = (
    "value",
    "vjp",
    "jvp",
    "vjp∘vjp",
    "jvp∘vjp",
    "vjp∘jvp",
    "jvp∘jvp",
    "vmap",
    "vmap∘vjp",
    "vmap∘jvp",
    "vjp∘vmap",
    "jvp∘vmap",
    "float32",
    "16-bit",
)
RIGHT, WRONG, RAISED, NOT_APPLICABLE = "right", "wrong", "raised", "n/a"
_DOT_TOLERANCE = 1e-7


@dataclass(frozen=True)
class Verdict:
    status: str
    message: str = ""


class Wrong(Exception):
    """A result that disagrees with the judge."""


class NotApplicable(Exception):
    """The database says that the column has no meaning for this sample."""


def judged(check: Callable[[], None]) -> Verdict:
    """The verdict of a check that returns when all is right."""
    try:
        check()
    except Wrong as e:
        return Verdict(WRONG, str(e))
    except NotApplicable as e:
        return Verdict(NOT_APPLICABLE, str(e))
    except Missing as e:
        return Verdict(RAISED, f"missing: {e}")
    except Exception as e:
        return Verdict(RAISED, describe_exception(e))
    return Verdict(RIGHT)


def describe_exception(e: BaseException) -> str:
    """Type and first line of an exception, without addresses."""
    lines = [line.strip() for line in str(e).splitlines() if line.strip()]
    return f"{type(e).__name__}: {lines[0][:300] if lines else ''}"


class Judge:
    """Everything known about one sample for one library; expensive parts are computed once, when first asked for."""

    def __init__(self, case: Case, library: Library, oracle: Oracle | None = None) -> None:
        self.case, self.lib = case, library
        self.oracle = oracle or Oracle(case)
        self.rng = case.rng
        if self.oracle.outputs:
            self.x = self.oracle.primals()
            spec = self.oracle.output_spec()
            # Differences cannot see through a 16- or 32-bit result, wherever on the way it was rounded.
            self.low = any(d in LOW_PRECISION for d, _ in spec) or all(x.dtype.name in LOW_PRECISION for x in self.x)
            self.g = random_like(self.rng, [(s, _numpy_dtype(d)) for d, s in spec])
            self.dg = random_like(self.rng, [(s, _numpy_dtype(d)) for d, s in spec])
            self.t, self.dx, self.dt = (self._direction() for _ in range(3))

    def _direction(self) -> Arrays:
        """A random tangent; zero for inputs of lower precision than others, whose steps would drown in rounding."""
        t = random_like(self.rng, [(x.shape, x.dtype) for x in self.x])
        if any(x.dtype.name not in LOW_PRECISION for x in self.x):
            return [np.zeros_like(a) if a.dtype.name in LOW_PRECISION else a for a in t]
        return t

    @functools.cached_property
    def problem(self) -> Problem:
        return Problem(self.case, self.lib)

    def columns(self, wanted: Sequence[str] = COLUMNS) -> dict[str, Verdict]:
        from .batching import vmap_columns
        from .precision import precision_columns
        from .second_order import second_columns

        checks: dict[str, Callable[[], None]] = {
            "value": self.value,
            "vjp": self.vjp,
            "jvp": self.jvp,
            **second_columns(self),
            **vmap_columns(self),
            **precision_columns(self),
        }
        return {c: judged(checks[c]) for c in COLUMNS if c in wanted}

    # -- library calls on arrays ---------------------------------------------------------------------------------------

    def require_derivative(self) -> None:
        if not self.case.entry.differentiable_at(self.case.dtype):
            raise NotApplicable("not differentiable")
        if not self.oracle.positions:
            raise NotApplicable("the sample has no input that needs a gradient")
        if not self.oracle.outputs:
            raise NotApplicable("no output carries a gradient")

    @functools.cached_property
    def f(self) -> Callable[..., Tensors]:
        """The differentiable outputs as a function of the differentiated inputs."""
        return self.problem.function(self.oracle.positions, self.oracle.outputs)

    @functools.cached_property
    def primals(self) -> list[Any]:
        """The differentiated inputs with the strides that the sample gave them."""
        return [self.problem.arguments[i] for i in self.oracle.positions]

    def cotangents(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        return [self.lib.tensor(a, d) for a, (d, _) in zip(arrays, self.oracle.output_spec(), strict=True)]

    def tangents(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """Tangents of the differentiated inputs: like these, with zeros in what they do not show of their storage."""
        return [self.problem.rebuilt(i, a, tangent=True) for i, a in zip(self.oracle.positions, arrays, strict=True)]

    def points(self, arrays: Sequence[np.ndarray]) -> list[Any]:
        """The differentiated inputs with other values."""
        return [self.problem.rebuilt(i, a) for i, a in zip(self.oracle.positions, arrays, strict=True)]

    def pullback(self, *values: Any) -> Tensors:
        """(x, g) -> vjp of f at x applied to g."""
        n = len(self.oracle.positions)
        _, pull = self.lib.vjp(self.f, values[:n])
        return tuple(pull(values[n:]))

    def pushforward(self, *values: Any) -> Tensors:
        """(x, t) -> jvp of f at x applied to t."""
        n = len(self.oracle.positions)
        return tuple(self.lib.jvp(self.f, values[:n], values[n:])[1])

    def arrays(self, tensors: Sequence[Any]) -> Arrays:
        return [self.lib.numpy(t) for t in tensors]

    def call(self, f: Callable[..., Tensors], x: Sequence[np.ndarray], extra: Sequence[Any] = ()) -> Arrays:
        return self.arrays(f(*self.points(x), *extra))

    # -- value and first order -----------------------------------------------------------------------------------------

    def value(self) -> None:
        """Equal to PyTorch: dtypes, shapes, values; values through the database's output function where it has one."""
        oracle, lib = self.oracle, self.lib
        state = [self.problem.rebuilt(i, a) for i, a in oracle.written_before.items()]
        raw = leaves(self.problem.raw(list(oracle.written_before), state))
        _same_kind(lib, raw, oracle.raw)
        if oracle.random:
            raise NotApplicable("random")
        for i, (position, want) in enumerate(oracle.written_after.items()):
            if text := mismatch(lib.numpy(state[i]), want, torch_name(oracle.problem.torch_leaf(position))):
                raise Wrong(f"what the op writes to, argument {position}: {text}")
        problems = [
            self._difference(got, want, k, oracle.uninitialised)
            for k, (got, want) in enumerate(zip(raw, oracle.raw, strict=True))
        ]
        if not any(problems) or self._database_reference_agrees(raw) or self._agrees_elsewhere(raw):
            return
        exact = [isinstance(w, tuple) and w[1].dtype.kind in "biu" for w in oracle.raw]
        if not oracle.problem.is_wrapped or any(p and e for p, e in zip(problems, exact, strict=True)):
            raise Wrong(next(p for p in problems if p))
        processed = self.problem.processed()
        _same_kind(lib, processed, oracle.processed)
        for k, (got, want) in enumerate(zip(processed, oracle.processed, strict=True)):
            if problem := self._difference(got, want, k, []):
                raise Wrong(f"after the database's output function: {problem}")

    def _database_reference_agrees(self, raw: Sequence[Any]) -> bool:
        """Whether the entry's own NumPy reference sides with this library against PyTorch, whose result it rejects."""
        ref = getattr(self.case.entry.op, "ref", None)
        if ref is None or len(raw) != 1 or not isinstance(self.oracle.raw[0], tuple):
            return False
        try:
            s = self.case.sample.numpy()
            want = np.asarray(ref(s.input, *s.args, **s.kwargs))
        except Exception:
            return False
        name, theirs = self.oracle.raw[0]
        ours = self.lib.numpy(raw[0])
        return mismatch(ours, want, name) is None and mismatch(theirs, want, name) is not None

    def _agrees_elsewhere(self, raw: Sequence[Any]) -> bool:
        """Whether PyTorch itself gives this result on another processor, or where the same values lie elsewhere in memory.

        oneDNN's products of 8-bit floats round twice and overflow to NaN on some processors. Pointwise loops over contiguous memory do
        not fuse products and sums, those over strides do, and they overflow differently.
        """
        others = [self.oracle.by_own_kernels()]
        if self.case.entry.is_pointwise:
            others.append(self.oracle.in_other_memory())
        return any(
            other is not None
            and len(other) == len(raw)
            and not any(
                self._difference(got, want, k, []) for k, (got, want) in enumerate(zip(raw, other, strict=True))
            )
            for other in others
        )

    def _difference(self, got: Any, want: Any, k: int, ignore: Sequence[np.ndarray | None]) -> str | None:
        if not isinstance(want, tuple):
            same = got == want or (want != want and got != got)
            if isinstance(want, float | complex):
                same = same or bool(np.isclose(got, want, rtol=1e-7, atol=1e-7))
            return None if same else f"output {k}: got {got!r}, expected {want!r}"
        text = mismatch(self.lib.numpy(got), want[1], want[0], ignore=ignore[k] if ignore else None)
        return text and f"output {k}: {text}"

    @functools.cached_property
    def value_differences(self) -> Differences:
        return differences(lambda x: self.call(self.f, x), self.x, self.t, hopeless=self.low)

    @functools.cached_property
    def gradient(self) -> Arrays:
        outs = [(o.shape, o.dtype) for o in self.x]
        got = self.arrays(self.pullback(*self.primals, *self.cotangents(self.g)))
        for k, (a, (shape, dtype)) in enumerate(zip(got, outs, strict=True)):
            if a.shape != shape or a.dtype != dtype:
                raise Wrong(f"gradient {k}: {a.dtype}{list(a.shape)}, expected {dtype}{list(shape)}")
        return got

    def vjp(self) -> None:
        """Equal to PyTorch's first-order reverse mode; to differences where that is random, or known to be wrong."""
        self.require_derivative()
        got = self.gradient
        if self.oracle.random and self.oracle.random_gradient(self.g):
            self._against_differences(got)
            return
        try:
            wanted = self.oracle.vjp(self.g)
        except RuntimeError:
            # PyTorch cannot differentiate what its database says it can: mathematics decides.
            self._against_differences(got)
            return
        for k, (a, b) in enumerate(zip(got, wanted, strict=True)):
            # A gradient is as precise as the coarser of its own type and the outputs'.
            precision = max(self._precision, b.dtype.name, key=lambda n: TOLERANCES.get(n, (0.0, 0.0))[0])
            if text := mismatch(a, b, precision, relative_to_all=True):
                if self.case.entry.gradient_untrusted and self.pytorch_contradicts_itself:
                    self._against_differences(got)
                    return
                raise Wrong(f"gradient {k}: {text}")

    @functools.cached_property
    def pytorch_contradicts_itself(self) -> bool:
        return self.oracle.contradicts_itself(self.x, self.t, self.g)

    def _against_differences(self, got: Arrays) -> None:
        def text(d: Differences) -> str | None:
            g = d.masked(self.g)
            pulled = got if d.all_usable else self.arrays(self.pullback(*self.primals, *self.cotangents(g)))
            return None if d.none_usable else scalar_mismatch(inner(pulled, self.t), *d.pairing(g), "vjp")

        d = self.value_differences
        if text(d) and (message := text(d.refined())):
            raise Wrong(message)

    @property
    def _precision(self) -> str:
        names = [d for d, _ in self.oracle.output_spec()]
        return max(names, key=lambda n: TOLERANCES.get(n, (0.0, 0.0))[0])

    def jvp(self) -> None:
        """Equal to central differences of the value, and adjoint to the vjp: Re<g, J t> = Re<J* g, t>.

        Where PyTorch's reverse mode is not the derivative of its value, the two cannot both hold and either will do.
        """
        self.require_derivative()
        got = self.arrays(self.pushforward(*self.primals, *self.tangents(self.t)))
        self._check_outputs(got)
        d = self.value_differences
        found = [d.mismatch(got) and d.refined().mismatch(got), self._dot_test(got)]
        if any(found) and (all(found) or not self.pytorch_contradicts_itself):
            raise Wrong(str(next(f for f in found if f)))

    def _dot_test(self, got: Arrays) -> str | None:
        gradient = self._trusted_gradient
        left, right = inner(self.g, got), inner(gradient, self.t)
        tolerance = self.dot_tolerance(magnitude(self.g, got) + magnitude(gradient, self.t))
        if abs(left - right) <= tolerance or both_not_finite(left, right):
            return None
        return f"dot test: Re<g, jvp(t)> = {left:.10g}, Re<vjp(g), t> = {right:.10g}"

    @functools.cached_property
    def _trusted_gradient(self) -> Arrays:
        """The library's gradient where the vjp column is right, else PyTorch's: a wrong vjp must not blame the jvp."""
        if judged(self.vjp).status == RIGHT or self.oracle.random:
            return self.gradient
        return self.oracle.vjp(self.g)

    def dot_tolerance(self, scale: float) -> float:
        relative = TOLERANCES[self._precision][0] if self.low else _DOT_TOLERANCE
        return relative * max(scale, 1e-3) * (10 if self.low else 1)

    def _check_outputs(self, got: Arrays) -> None:
        for k, (a, (dtype, shape)) in enumerate(zip(got, self.oracle.output_spec(), strict=True)):
            if a.shape != shape or a.dtype != _numpy_dtype(dtype):
                raise Wrong(f"tangent {k}: {a.dtype}{list(a.shape)}, expected {dtype}{list(shape)}")


def scalar_mismatch(got: float, want: float, tolerance: float, what: str) -> str | None:
    if abs(got - want) <= tolerance:
        return None
    return f"{what} paired with a random direction gives {got:.8g}, central differences {want:.8g}"


def both_not_finite(a: float, b: float) -> bool:
    return not np.isfinite(a) and not np.isfinite(b)


def _numpy_dtype(name: str) -> np.dtype:
    return np.dtype({"bfloat16": "float32", "float16": "float32", "complex32": "complex64"}.get(name, name))


def _same_kind(lib: Library, got: Sequence[Any], want: Sequence[Any]) -> None:
    if len(got) != len(want):
        raise Wrong(f"{len(got)} outputs, expected {len(want)}")
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if isinstance(b, tuple) != lib.is_tensor(a):
            wanted = "a tensor" if isinstance(b, tuple) else type(b).__name__
            raise Wrong(f"output {k}: got {type(a).__name__}, expected {wanted}")
        if isinstance(b, tuple):
            if lib.dtype(a) != b[0]:
                raise Wrong(f"output {k}: dtype {lib.dtype(a)}, expected {b[0]}")
            if tuple(a.shape) != b[1].shape:
                raise Wrong(f"output {k}: shape {tuple(a.shape)}, expected {b[1].shape}")
