"""The vmap columns: equal to a loop over examples, and no more op calls for five examples than for two."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .adapters import Library, Tensors, TorchLibrary, torch_to_numpy
from .calculus import Arrays, mismatch, random_like
from .problem import is_partial_view, torch_name

if TYPE_CHECKING:
    from .columns import Judge

FEW, MANY = 2, 5


def vmap_columns(judge: Judge) -> dict[str, Callable[[], None]]:
    """The checks of the three vmap columns for one sample."""
    batch = Batch(judge)
    return {"vmap": batch.value, "vmap∘vjp": batch.vjp, "vmap∘jvp": batch.jvp}


@dataclass
class Argument:
    """One argument of a batched call: its variants, and how an array becomes a tensor."""

    variants: Arrays
    make: Callable[[np.ndarray], Any]
    can_batch: bool = True

    def one(self, k: int | None) -> Any:
        return self.make(self.variants[k or 0])

    def stacked(self, size: int, dim: int | None, lib: Library, dtype: str) -> Any:
        return self.one(None) if dim is None else lib.tensor(np.stack(self.variants[:size], axis=dim), dtype)


class Batch:
    """Several variants of a sample, batched in several ways."""

    def __init__(self, judge: Judge) -> None:
        self.judge, self.lib, self.oracle = judge, judge.lib, judge.oracle

    # -- examples ------------------------------------------------------------------------------------------------------

    @functools.cached_property
    def positions(self) -> list[int]:
        """What is batched: the differentiated inputs, else the floating ones, else the others."""
        p = self.oracle.problem
        return self.oracle.positions or p.tensors("fc") or p.tensors("iub")

    @functools.cached_property
    def examples(self) -> list[Arrays]:
        """MANY variants of the batched inputs, as far apart as PyTorch accepts; the first is the sample itself."""
        first = [torch_to_numpy(self.oracle.problem.torch_leaf(i)) for i in self.positions]
        for vary in (_noisy, _scaled):
            rng = self.judge.case.rng
            variants = [first] + [[vary(rng, x, k) for x in first] for k in range(1, MANY)]
            if self._accepted(variants[1:]):
                return variants
        return [first] * MANY

    def _accepted(self, variants: Sequence[Arrays], *, finite: bool = True) -> bool:
        """Whether PyTorch takes all of them, with results of the same shapes that are finite where the sample's are."""
        problem = self.oracle.problem
        want = [w[1] for w in self.oracle.processed if isinstance(w, tuple)]
        f = problem.function(self.positions, None)
        for v in variants:
            try:
                tensors = [problem.rebuilt(i, a) for i, a in zip(self.positions, v, strict=True)]
                out = [torch_to_numpy(o) for o in f(*tensors)]
            except Exception:
                return False
            if [o.shape for o in out] != [w.shape for w in want]:
                return False
            if finite and any(np.isfinite(w).all() and not np.isfinite(o).all() for o, w in zip(out, want)):
                return False
        return True

    @functools.cached_property
    def _storage_free(self) -> bool:
        """Whether plain copies of the inputs give the sample's value; a stack of examples is such a copy."""
        leaves = [self.oracle.problem.torch_leaf(i) for i in self.positions]
        if not any(is_partial_view(x) for x in leaves if x.layout is torch.strided):
            return True
        try:
            out = self.oracle.problem.function(self.positions, None)(*(x.detach().clone() for x in leaves))
        except RuntimeError:
            return False
        want = [w[1] for w in self.oracle.processed if isinstance(w, tuple)]
        return all(np.array_equal(torch_to_numpy(o), w, equal_nan=True) for o, w in zip(out, want, strict=True))

    @functools.cached_property
    def _shape_depends_on_data(self) -> bool:
        """Whether zeros, ones or other numbers in place of the batched inputs change the shape of PyTorch's result."""
        first = self.examples[0]
        if max(x.size for x in first) <= 1:
            return True
        rng = self.judge.case.rng
        noise = random_like(rng, [(x.shape, x.dtype if x.dtype.kind in "fc" else np.dtype(float)) for x in first])
        trials = [[np.full_like(x, c) for x in first] for c in (0, 1)]
        trials.append([np.asarray(n > 0 if x.dtype.kind in "biu" else n, x.dtype) for n, x in zip(noise, first)])
        return not all(self._accepted([t], finite=False) for t in trials)

    def _argument(self, position: int, variants: Arrays) -> Argument:
        strided = self.oracle.problem.torch_leaf(position).layout is torch.strided
        if strided:
            dtype = torch_name(self.oracle.problem.torch_leaf(position))
            return Argument(variants, functools.partial(self.lib.tensor, dtype=dtype))
        return Argument(variants, functools.partial(self.judge.problem.rebuilt, position), can_batch=False)

    def _inputs(self) -> list[Argument]:
        return [self._argument(i, [e[j] for e in self.examples]) for j, i in enumerate(self.positions)]

    def _names(self, positions: Sequence[int]) -> list[str]:
        return [torch_name(self.oracle.problem.torch_leaf(i)) for i in positions]

    @functools.cached_property
    def _written(self) -> list[int]:
        """Floating inputs that PyTorch's op writes to, such as running statistics."""
        problem = self.oracle.problem
        others = [i for i in problem.tensors("fc") if i not in self.positions]
        copies = [problem.torch_leaf(i).detach().clone() for i in others]
        try:
            problem.raw(others, copies)
        except Exception:
            return []

        def touched(position: int, copy: torch.Tensor) -> bool:
            # Some kernels write without counting, some count without changing anything.
            return copy._version > 0 or not torch.equal(copy.nan_to_num(), problem.torch_leaf(position).nan_to_num())

        return [i for i, c in zip(others, copies, strict=True) if touched(i, c)]

    def _writing(self, f: Callable[..., Tensors]) -> Callable[..., Tensors]:
        """`f` with what it writes to as its last arguments."""
        arguments, written = self.judge.problem.arguments, self._written

        def g(*values: Any) -> Tensors:
            before = [arguments[i] for i in written]
            n = len(values) - len(written)
            for i, v in zip(written, values[n:], strict=True):
                arguments[i] = v
            try:
                return f(*values[:n])
            finally:
                for i, v in zip(written, before, strict=True):
                    arguments[i] = v

        return g

    # -- the law -------------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        from .columns import NotApplicable

        if self.oracle.random:
            raise NotApplicable("random")
        if self.oracle.tagged_dynamic and self._shape_depends_on_data:
            raise NotApplicable("the output's shape depends on the data")
        if not self.positions:
            raise NotApplicable("no tensor input")
        if not any(isinstance(v, tuple) for v in self.oracle.processed):
            raise NotApplicable("the result is not a tensor")
        if any(u is not None and u.any() for u in self.oracle.uninitialised):
            raise NotApplicable("uninitialised memory")
        if not self._storage_free:
            raise NotApplicable("the value depends on storage outside of the tensor")

    def _law(
        self,
        f: Callable[..., Tensors],
        arguments: Sequence[Argument],
        dtypes: Sequence[str],
        in_dims: Sequence[int | None],
        what: str,
        *,
        count: bool,
    ) -> None:
        """vmap(f) over stacked examples equals f on each; with `count`, in as many op calls for MANY as for FEW."""
        from .columns import Wrong

        lib = self.lib
        dims = [d if a.can_batch else None for d, a in zip(in_dims, arguments, strict=True)]
        if all(d is None for d in dims):
            return
        size = MANY if count else FEW
        if self._written and any(d is not None for d in dims[: len(self.positions)]):
            # Where the examples differ, each needs its own copy of what the op writes to.
            same = [[torch_to_numpy(self.oracle.problem.torch_leaf(i))] * MANY for i in self._written]
            arguments = [*arguments, *(self._argument(i, v) for i, v in zip(self._written, same, strict=True))]
            dtypes, dims, f = (
                [*dtypes, *self._names(self._written)],
                [*dims, *[0] * len(self._written)],
                self._writing(f),
            )

        def batched(n: int) -> Tensors:
            stacked = [a.stacked(n, d, lib, t) for a, d, t in zip(arguments, dims, dtypes, strict=True)]
            return lib.vmap(f, dims)(*stacked)

        got = [lib.numpy(o) for o in batched(size)]
        for k in range(size):
            want = f(*(a.one(None if d is None else k) for a, d in zip(arguments, dims, strict=True)))
            for j, (a, b) in enumerate(zip(got, want, strict=True)):
                if a.shape[:1] != (size,):
                    raise Wrong(f"{what}: output {j} has shape {a.shape}, not batched by {size}")
                if text := mismatch(a[k], lib.numpy(b), lib.dtype(b), relative_to_all=True):
                    raise Wrong(f"{what}: example {k}, output {j} is not what a loop gives: {text}")
        if count:
            calls = {}
            for n in (FEW, MANY):
                with lib.counting() as counter:
                    batched(n)
                calls[n] = counter.total
            if calls[MANY] > calls[FEW]:
                raise Wrong(f"{what}: loops over examples ({calls[FEW]} op calls for {FEW}, {calls[MANY]} for {MANY})")

    def value(self) -> None:
        """All batched inputs at axis 0; one input alone at the last axis; index tensors too where PyTorch can."""
        self._require()
        f, inputs, n = self.judge.problem.function(self.positions, None), self._inputs(), len(self.positions)
        names = self._names(self.positions)
        self._law(f, inputs, names, [0] * n, "all inputs batched", count=True)
        last = [inputs[0].variants[0].ndim, *[None] * (n - 1)]
        self._law(f, inputs, names, last, "first input batched at its last axis", count=False)
        integral = self.oracle.problem.tensors("iub")
        if integral and integral != self.positions and self._pytorch_batches(integral):
            both = [*self.positions, *integral]
            same = [[torch_to_numpy(self.oracle.problem.torch_leaf(i))] * MANY for i in integral]
            more = [self._argument(i, v) for i, v in zip(integral, same, strict=True)]
            f = self.judge.problem.function(both, None)
            self._law(f, inputs + more, self._names(both), [0] * len(both), "index tensors batched too", count=True)

    def _pytorch_batches(self, integral: Sequence[int]) -> bool:
        """Whether PyTorch's vmap takes batched index tensors here: some fix the result's shape and cannot be."""
        lib, problem = TorchLibrary(), self.oracle.problem
        both = [*self.positions, *integral]
        arrays = [*self.examples[0], *(torch_to_numpy(problem.torch_leaf(i)) for i in integral)]
        stacked = [lib.tensor(np.stack([a, a]), d) for a, d in zip(arrays, self._names(both), strict=True)]
        try:
            lib.vmap(problem.function(both, None), [0] * len(both))(*stacked)
        except Exception:
            return False
        return True

    def _derivative(self, f: Callable[..., Tensors], vectors: list[Argument], dtypes: Sequence[str], what: str) -> None:
        inputs, names = self._inputs(), [*self._names(self.positions), *dtypes]
        n, m = len(inputs), len(vectors)
        self._law(f, inputs + vectors, names, [0] * (n + m), f"inputs and {what}s batched", count=True)
        self._law(f, inputs + vectors, names, [None] * n + [0] * m, f"{what}s alone batched", count=False)

    def _random(self, like: Sequence[np.ndarray]) -> list[Arrays]:
        rng = self.judge.case.rng
        drawn = [random_like(rng, [(a.shape, a.dtype) for a in like]) for _ in range(MANY)]
        return [[d[j] for d in drawn] for j in range(len(like))]

    def vjp(self) -> None:
        """vmap over (x, g) -> vjp(x)(g), and over g alone."""
        self.judge.require_derivative()
        self._require()
        dtypes = [d for d, _ in self.oracle.output_spec()]
        vectors = [
            Argument(v, functools.partial(self.lib.tensor, dtype=d))
            for v, d in zip(self._random(self.judge.g), dtypes, strict=True)
        ]
        self._derivative(self.judge.pullback, vectors, dtypes, "cotangent")

    def jvp(self) -> None:
        """vmap over (x, t) -> jvp(x, t), and over t alone."""
        self.judge.require_derivative()
        self._require()
        vectors = [self._argument(i, v) for i, v in zip(self.positions, self._random(self.judge.t), strict=True)]
        self._derivative(self.judge.pushforward, vectors, self._names(self.positions), "tangent")


def _noisy(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 + 0.2 * rng.uniform(-1, 1, x.shape)), x.dtype)
    return np.roll(x, k, axis=-1) if x.ndim else x


def _scaled(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 - 0.03 * k), x.dtype)
    return x
