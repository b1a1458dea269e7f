"""The columns with vmap: equal to a loop over examples that differ in every argument, and no more op calls for five than for two."""

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
from .variants import index_variants, noisy, scaled

if TYPE_CHECKING:
    from .columns import Judge

FEW, MANY = 2, 5
# Here PyTorch takes indices modulo the size, so that it says nothing about which are in range.
WRAPPING = {"take_along_dim"}
# Here PyTorch reads wherever indices point, and may die of others than the sample's.
UNCHECKED = {"linalg.ldl_solve"}


def vmap_columns(judge: Judge) -> dict[str, Callable[[], None]]:
    """The checks of the five columns with vmap for one sample."""
    batch = Batch(judge)
    return {
        "vmap": batch.value,
        "vmap∘vjp": batch.vjp,
        "vmap∘jvp": batch.jvp,
        "vjp∘vmap": batch.vjp_outside,
        "jvp∘vmap": batch.jvp_outside,
    }


@dataclass
class Argument:
    """One argument of a batched call: its variants, how an array becomes a tensor, and the type of a stack of them."""

    variants: Arrays
    make: Callable[[np.ndarray], Any]
    dtype: str
    can_batch: bool = True

    def one(self, k: int | None) -> Any:
        return self.make(self.variants[k or 0])

    def stacked(self, size: int, dim: int | None, lib: Library) -> Any:
        return self.one(None) if dim is None else lib.tensor(np.stack(self.variants[:size], axis=dim), self.dtype)

    def examples(self, size: int, dim: int | None) -> list[Any]:
        return [self.one(None if dim is None else k) for k in range(size)]


Dims = Sequence[int | None]


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
        for vary in (noisy, scaled):
            rng = self.judge.case.rng
            variants = [first] + [[vary(rng, x, k) for x in first] for k in range(1, MANY)]
            if self._accepted(self.positions, variants[1:]):
                return variants
        return [first] * MANY

    @functools.cached_property
    def indices(self) -> dict[int, Arrays]:
        """Index and mask arguments by position, with other values in every example as far as PyTorch accepts them."""
        found = {i: v for i in self.oracle.problem.tensors("iub") if i not in self.positions and (v := self._varied(i))}
        while found:
            mixed = [[*e, *(v[k] for v in found.values())] for k, e in enumerate(self.examples)]
            if self._accepted([*self.positions, *found], mixed[1:]):
                break
            # Each alone fits, together they do not: the last one stays as it is.
            found.popitem()
        return found

    def _varied(self, position: int) -> Arrays | None:
        """Variants of one index argument; where nothing is computed, nothing says whether they are in range."""
        from .columns import Wrong

        if not all(w[1].size for w in self.oracle.processed if isinstance(w, tuple)):
            return None
        if self.judge.case.entry.name in UNCHECKED:
            return None
        x = torch_to_numpy(self.oracle.problem.torch_leaf(position))
        for variants in index_variants(x, MANY):
            if not self._accepted([position], [[a] for a in variants[1:]], finite=False):
                continue
            try:
                self._require_taken(position, variants)
            except Wrong:
                if self.judge.case.entry.name in WRAPPING:
                    continue
                raise
            return variants
        return None

    def _require_taken(self, position: int, variants: Arrays) -> None:
        """The library takes the values of one argument that PyTorch takes, one at a time: what it refused would go unseen."""
        from .columns import Wrong, describe_exception

        f = self.judge.problem.function([position], None)
        for a in variants:
            try:
                f(self.judge.problem.rebuilt(position, a))
            except Exception as e:  # whatever the library raises
                raise Wrong(
                    f"argument {position}: {a.tolist()}, which PyTorch takes, is refused: {describe_exception(e)}"
                ) from e

    def _accepted(self, positions: Sequence[int], variants: Sequence[Arrays], *, finite: bool = True) -> bool:
        """Whether PyTorch takes all of them, with results of the same shapes that are finite where the sample's are."""
        problem = self.oracle.problem
        want = [w[1] for w in self.oracle.processed if isinstance(w, tuple)]
        f = problem.function(positions, None)
        for v in variants:
            try:
                tensors = [problem.rebuilt(i, a) for i, a in zip(positions, v, strict=True)]
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
        return not all(self._accepted(self.positions, [t], finite=False) for t in trials)

    def _argument(self, position: int, variants: Arrays) -> Argument:
        leaf = self.oracle.problem.torch_leaf(position)
        dtype = torch_name(leaf)
        if leaf.layout is torch.strided:
            return Argument(variants, functools.partial(self.lib.tensor, dtype=dtype), dtype)
        return Argument(variants, functools.partial(self.judge.problem.rebuilt, position), dtype, can_batch=False)

    @functools.cached_property
    def _inputs(self) -> list[Argument]:
        return [self._argument(i, [e[j] for e in self.examples]) for j, i in enumerate(self.positions)]

    @functools.cached_property
    def _index_arguments(self) -> list[Argument]:
        return [self._argument(i, v) for i, v in self.indices.items()]

    @functools.cached_property
    def _state(self) -> list[Argument]:
        """What the op writes to, such as running statistics: where the examples differ, each needs its own copy."""
        return [self._argument(i, [v] * MANY) for i, v in self.oracle.written_before.items()]

    def _function(
        self, positions: Sequence[int], outputs: Sequence[int] | None, *, state: bool
    ) -> Callable[..., Tensors]:
        """The op as a function of the tensors at `positions` and of what it writes to; with `state` it returns that too."""
        written = list(self.oracle.written_before)
        f = self.judge.problem.function([*positions, *written], outputs)
        n = len(positions)

        def g(*values: Any) -> Tensors:
            out = f(*values)
            return (*out, *values[n:]) if state else out

        return g

    # -- the laws ------------------------------------------------------------------------------------------------------

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

    def _batched_indices(self, law: Callable[[Dims], None]) -> None:
        """The law with index arguments batched too; where PyTorch cannot batch them, a library need not either."""
        if not self.indices:
            return
        try:
            law([0] * len(self.indices))
        except Exception as e:
            from .columns import Wrong

            if isinstance(e, Wrong) or self._pytorch_batches:
                raise

    @functools.cached_property
    def _pytorch_batches(self) -> bool:
        """Whether PyTorch's vmap takes batched index tensors here: some fix the result's shape and cannot be."""
        lib, problem = TorchLibrary(), self.oracle.problem
        both, arrays = [*self.positions], [*self.examples[0]]
        for i, v in self.indices.items():
            both.append(i)
            arrays.append(v[0])
        names = [torch_name(problem.torch_leaf(i)) for i in both]
        stacked = [lib.tensor(np.stack([a, a]), d) for a, d in zip(arrays, names, strict=True)]
        try:
            lib.vmap(problem.function(both, None), [0] * len(both))(*stacked)
        except Exception:
            return False
        return True

    def _law(
        self, f: Callable[..., Tensors], arguments: Sequence[Argument], dims: Dims, what: str, *, count: bool
    ) -> None:
        """vmap(f) over stacked examples equals f on each; with `count`, in as many op calls for MANY as for FEW.

        `f` takes what the op writes to as further arguments.
        """
        dims = [d if a.can_batch else None for d, a in zip(dims, arguments, strict=True)]
        if all(d is None for d in dims):
            return
        size = MANY if count else FEW
        arguments, dims = [*arguments, *self._state], [*dims, *[0] * len(self._state)]

        def batched(n: int) -> Tensors:
            return self.lib.vmap(f, dims)(*(a.stacked(n, d, self.lib) for a, d in zip(arguments, dims, strict=True)))

        got = [self.lib.numpy(o) for o in batched(size)]
        columns = zip(*(a.examples(size, d) for a, d in zip(arguments, dims, strict=True)), strict=True)
        self._compare(got, [f(*values) for values in columns], what)
        if count:
            self._count(batched, what)

    def _count(self, batched: Callable[[int], Any], what: str) -> None:
        from .columns import Wrong

        calls = {}
        for n in (FEW, MANY):
            with self.lib.counting() as counter:
                batched(n)
            calls[n] = counter.total
        if calls[MANY] > calls[FEW]:
            raise Wrong(f"{what}: loops over examples ({calls[FEW]} op calls for {FEW}, {calls[MANY]} for {MANY})")

    def _compare(self, got: Arrays, want: Sequence[Sequence[Any]], what: str) -> None:
        """Each output's leading axis against the results of the examples, element by element."""
        from .columns import Wrong

        for k, example in enumerate(want):
            for j, (a, b) in enumerate(zip(got, example, strict=True)):
                if a.shape[:1] != (len(want),):
                    raise Wrong(f"{what}: output {j} has shape {a.shape}, not batched by {len(want)}")
                if text := mismatch(a[k], self.lib.numpy(b), self.lib.dtype(b), relative_to_all=True):
                    raise Wrong(f"{what}: example {k}, output {j} is not what a loop gives: {text}")

    def value(self) -> None:
        """All arguments at axis 0, indices too; the floating ones alone; the indices alone; one input at its last axis."""
        self._require()
        n, m = len(self.positions), len(self.indices)
        f = self._function([*self.positions, *self.indices], None, state=True)
        arguments = [*self._inputs, *self._index_arguments]
        self._law(f, arguments, [0] * n + [None] * m, "all inputs batched", count=True)
        last = [self._inputs[0].variants[0].ndim, *[None] * (n - 1 + m)]
        self._law(f, arguments, last, "first input batched at its last axis", count=False)
        self._batched_indices(
            lambda d: self._law(f, arguments, [*[0] * n, *d], "index tensors batched too", count=True)
        )
        self._batched_indices(
            lambda d: self._law(f, arguments, [*[None] * n, *d], "index tensors alone batched", count=False)
        )

    # -- vmap outside of a derivative ----------------------------------------------------------------------------------

    def _derivative(self, map_: Callable[..., Any], vectors: list[Argument], what: str) -> None:
        """The laws of (x, indices, v) -> map_(f)(x, v)."""
        n, m, v = len(self.positions), len(self.indices), len(vectors)
        f = self._function([*self.positions, *self.indices], self.oracle.outputs, state=False)

        def g(*values: Any) -> Tensors:
            x, fixed, vector = values[:n], values[n : n + m], values[n + m : n + m + v]
            return tuple(map_(lambda *x: f(*x, *fixed, *values[n + m + v :]), x, vector))

        arguments = [*self._inputs, *self._index_arguments, *vectors]
        self._law(g, arguments, [0] * n + [None] * m + [0] * v, f"inputs and {what}s batched", count=True)
        self._law(g, arguments, [None] * (n + m) + [0] * v, f"{what}s alone batched", count=False)
        self._batched_indices(
            lambda d: self._law(
                g, arguments, [*[0] * n, *d, *[0] * v], f"inputs, index tensors and {what}s batched", count=True
            )
        )

    def _random(self, like: Sequence[np.ndarray]) -> list[Arrays]:
        rng = self.judge.case.rng
        drawn = [random_like(rng, [(a.shape, a.dtype) for a in like]) for _ in range(MANY)]
        return [[d[j] for d in drawn] for j in range(len(like))]

    @functools.cached_property
    def _cotangents(self) -> list[Argument]:
        dtypes = [d for d, _ in self.oracle.output_spec()]
        drawn = zip(self._random(self.judge.g), dtypes, strict=True)
        return [Argument(v, functools.partial(self.lib.tensor, dtype=d), d) for v, d in drawn]

    @functools.cached_property
    def _tangents(self) -> list[Argument]:
        return [self._argument(i, v) for i, v in zip(self.positions, self._random(self.judge.t), strict=True)]

    def vjp(self) -> None:
        """vmap over (x, g) -> vjp(x)(g), and over g alone."""
        self.judge.require_derivative()
        self._require()
        self._derivative(self._pull, self._cotangents, "cotangent")

    def jvp(self) -> None:
        """vmap over (x, t) -> jvp(x, t), and over t alone."""
        self.judge.require_derivative()
        self._require()
        self._derivative(self._push, self._tangents, "tangent")

    def _pull(self, f: Callable[..., Tensors], x: Sequence[Any], g: Sequence[Any]) -> Tensors:
        return tuple(self.lib.vjp(f, x)[1](g))

    def _push(self, f: Callable[..., Tensors], x: Sequence[Any], t: Sequence[Any]) -> Tensors:
        return tuple(self.lib.jvp(f, x, t)[1])

    # -- a derivative outside of vmap ----------------------------------------------------------------------------------

    def vjp_outside(self) -> None:
        """The vjp of vmap(f) is the vjp of each example, added up for arguments that the examples share."""
        self._outside("vjp")

    def jvp_outside(self) -> None:
        """The jvp of vmap(f) is the jvp of each example."""
        self._outside("jvp")

    def _outside(self, kind: str) -> None:
        self.judge.require_derivative()
        self._require()
        n, m = len(self.positions), len(self.indices)
        fixed: Dims = [None] * m
        self._outer_law(kind, [0] * n, fixed, "all inputs batched", count=True)
        last = [self._inputs[0].variants[0].ndim, *[None] * (n - 1)]
        self._outer_law(kind, last, fixed, "first input batched at its last axis", count=False)
        for k in range(n) if n > 1 else ():
            alone = [0 if i == k else None for i in range(n)]
            self._outer_law(kind, alone, fixed, f"input {k} alone batched", count=False)
        self._batched_indices(lambda d: self._outer_law(kind, [0] * n, d, "index tensors batched too", count=True))
        self._batched_indices(
            lambda d: self._outer_law(kind, [None] * n, d, "index tensors alone batched", count=False)
        )

    def _outer_law(self, kind: str, dims: Dims, index_dims: Dims, what: str, *, count: bool) -> None:
        from .columns import Wrong

        lib, size = self.lib, MANY if count else FEW
        dims = [d if a.can_batch else None for d, a in zip(dims, self._inputs, strict=True)]
        if all(d is None for d in (*dims, *index_dims)):
            return
        f = self._function([*self.positions, *self.indices], self.oracle.outputs, state=False)
        others = [*zip(self._index_arguments, index_dims, strict=True), *((s, 0) for s in self._state)]
        all_dims = [*dims, *(d for _, d in others)]
        vectors = self._cotangents if kind == "vjp" else self._tangents
        vector_dims: Dims = [0] * len(vectors) if kind == "vjp" else dims
        derivative = self._pull if kind == "vjp" else self._push

        def batched(n: int) -> Tensors:
            fixed = [a.stacked(n, d, lib) for a, d in others]
            mapped = lib.vmap(f, all_dims)
            x = [a.stacked(n, d, lib) for a, d in zip(self._inputs, dims, strict=True)]
            v = [a.stacked(n, d, lib) for a, d in zip(vectors, vector_dims, strict=True)]
            return derivative(lambda *x: tuple(mapped(*x, *fixed)), x, v)

        got = [lib.numpy(o) for o in batched(size)]
        want: list[Arrays] = []
        for k in range(size):
            at = lambda a, d, k=k: a.one(None if d is None else k)
            x = [at(a, d) for a, d in zip(self._inputs, dims, strict=True)]
            v = [at(a, d) for a, d in zip(vectors, vector_dims, strict=True)]
            fixed = [at(a, d) for a, d in others]
            want.append([lib.numpy(o) for o in derivative(lambda *x, fixed=fixed: f(*x, *fixed), x, v)])
        out_dims: Dims = dims if kind == "vjp" else [0] * len(got)
        for j, (a, d) in enumerate(zip(got, out_dims, strict=True)):
            each = [w[j] for w in want]
            b = np.sum(each, axis=0) if d is None else np.stack(each, d)
            if text := mismatch(a, b, b.dtype.name, relative_to_all=True):
                raise Wrong(
                    f"{what}: {'gradient' if kind == 'vjp' else 'tangent'} {j} is not what a loop gives: {text}"
                )
        if count:
            self._count(batched, what)
