"""The vmap columns: equal to a loop over examples, and no more op calls for five examples than for two."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .adapters import Tensors, TorchLibrary, torch_to_numpy
from .calculus import Arrays, mismatch, random_like

if TYPE_CHECKING:
    from .columns import Judge

FEW, MANY = 2, 5


def vmap_columns(judge: Judge) -> dict[str, Callable[[], None]]:
    """The checks of the three vmap columns for one sample."""
    batch = Batch(judge)
    return {"vmap": batch.value, "vmap∘vjp": batch.vjp, "vmap∘jvp": batch.jvp}


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
        for vary in (_noisy, _scaled, lambda rng, x, k: x):
            rng = self.judge.case.rng
            variants = [first] + [[vary(rng, x, k) for x in first] for k in range(1, MANY)]
            if self._accepted(variants[1:]):
                return variants
        return [first] * MANY

    def _accepted(self, variants: Sequence[Arrays]) -> bool:
        lib = TorchLibrary()
        shapes = [v[1].shape for v in self.oracle.processed if isinstance(v, tuple)]
        f = self.oracle.problem.function(self.positions, None)
        for v in variants:
            try:
                out = [lib.numpy(o) for o in f(*map(lib.tensor, v))]
            except Exception:
                return False
            want = [w[1] for w in self.oracle.processed if isinstance(w, tuple)]
            if [o.shape for o in out] != shapes or not all(
                np.isfinite(o).all() or not np.isfinite(w).all() for o, w in zip(out, want, strict=True)
            ):
                return False
        return True

    # -- the law -------------------------------------------------------------------------------------------------------

    def _require(self) -> None:
        from .columns import NotApplicable

        if self.oracle.random:
            raise NotApplicable("random")
        if self.oracle.dynamic_shape:
            raise NotApplicable("the output's shape depends on the data")
        if not self.positions:
            raise NotApplicable("no tensor input")
        if not any(isinstance(v, tuple) for v in self.oracle.processed):
            raise NotApplicable("the result is not a tensor")

    def _law(
        self,
        f: Callable[..., Tensors],
        columns: Sequence[Arrays],
        dtypes: Sequence[str | None],
        in_dims: Sequence[int | None],
        *,
        count: bool,
        what: str,
    ) -> None:
        """vmap(f) over stacked examples equals f on each; `columns[j]` has the variants of argument j."""
        from .columns import Wrong

        lib = self.lib
        results: dict[int, tuple[Arrays, int]] = {}
        for size in (FEW, MANY) if count else (FEW,):
            stacked = [
                lib.tensor(c[0], d) if dim is None else lib.tensor(np.stack(c[:size], axis=dim), d)
                for c, d, dim in zip(columns, dtypes, in_dims, strict=True)
            ]
            with lib.counting() as counter:
                out = lib.vmap(f, in_dims)(*stacked)
            results[size] = [lib.numpy(o) for o in out], counter.total
        size = max(results)
        got = results[size][0]
        for k in range(size):
            row = [
                lib.tensor(c[0] if dim is None else c[k], d) for c, d, dim in zip(columns, dtypes, in_dims, strict=True)
            ]
            want = f(*row)
            for j, (a, b) in enumerate(zip(got, want, strict=True)):
                if a.shape[:1] != (size,):
                    raise Wrong(f"{what}: output {j} has shape {a.shape}, not batched by {size}")
                if text := mismatch(a[k], lib.numpy(b), lib.dtype(b), relative_to_all=True):
                    raise Wrong(f"{what}: example {k}, output {j} is not what a loop gives: {text}")
        if count and results[MANY][1] > results[FEW][1]:
            raise Wrong(
                f"{what}: loops over examples ({results[FEW][1]} op calls for {FEW} examples, {results[MANY][1]} for {MANY})"
            )

    def value(self) -> None:
        """All batched inputs at axis 0; one input alone at the last axis; index tensors too where PyTorch can."""
        from .columns import NotApplicable

        self._require()
        judge, n = self.judge, len(self.positions)
        if any(u is not None and u.any() for u in self.oracle.uninitialised):
            raise NotApplicable("uninitialised memory")
        f = judge.problem.function(self.positions, None)
        columns = [[e[j] for e in self.examples] for j in range(n)]
        names = self._names(self.positions)
        self._law(f, columns, names, [0] * n, count=True, what="all inputs batched")
        last = [columns[0][0].ndim] + [None] * (n - 1)
        self._law(f, columns, names, last, count=False, what="first input batched at its last axis")
        integral = self.oracle.problem.tensors("iub")
        if integral and integral != self.positions and self._pytorch_batches(integral):
            both = [*self.positions, *integral]
            more = [[torch_to_numpy(self.oracle.problem.torch_leaf(i))] * MANY for i in integral]
            f = judge.problem.function(both, None)
            self._law(
                f, columns + more, self._names(both), [0] * len(both), count=True, what="index tensors batched too"
            )

    def _names(self, positions: Sequence[int]) -> list[str | None]:
        return [str(self.oracle.problem.torch_leaf(i).dtype).removeprefix("torch.") for i in positions]

    def _pytorch_batches(self, integral: Sequence[int]) -> bool:
        """Whether PyTorch's vmap takes batched index tensors here: some fix the shape of the result and cannot be batched."""
        lib = TorchLibrary()
        both = [*self.positions, *integral]
        f = self.oracle.problem.function(both, None)
        arrays = [*self.examples[0], *(torch_to_numpy(self.oracle.problem.torch_leaf(i)) for i in integral)]
        stacked = [lib.tensor(np.stack([a, a]), d) for a, d in zip(arrays, self._names(both), strict=True)]
        try:
            with lib.counting():
                lib.vmap(f, [0] * len(both))(*stacked)
        except Exception:
            return False
        return True

    def _derivative(
        self, f: Callable[..., Tensors], like: Sequence[np.ndarray], dtypes: Sequence[str | None], what: str
    ) -> None:
        judge, n = self.judge, len(self.positions)
        rng = judge.case.rng
        spec = [(a.shape, a.dtype) for a in like]
        vectors = [random_like(rng, spec) for _ in range(MANY)]
        columns = [[e[j] for e in self.examples] for j in range(n)] + [
            [v[j] for v in vectors] for j in range(len(spec))
        ]
        names: list[Any] = [*self._names(self.positions), *dtypes]
        m = len(spec)
        self._law(f, columns, names, [0] * (n + m), count=True, what=f"inputs and {what}s batched")
        self._law(f, columns, names, [None] * n + [0] * m, count=False, what=f"{what}s alone batched")

    def vjp(self) -> None:
        """vmap over (x, g) -> vjp(x)(g), and over g alone."""
        self.judge.require_derivative()
        self._require()
        dtypes = [d for d, _ in self.oracle.output_spec()]
        self._derivative(self.judge.pullback, self.judge.g, dtypes, "cotangent")

    def jvp(self) -> None:
        """vmap over (x, t) -> jvp(x, t), and over t alone."""
        self.judge.require_derivative()
        self._require()
        self._derivative(self.judge.pushforward, self.judge.t, self._names(self.positions), "tangent")


def _noisy(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 + 0.2 * rng.uniform(-1, 1, x.shape)), x.dtype)
    return np.roll(x, k, axis=-1) if x.ndim else x


def _scaled(rng: np.random.Generator, x: np.ndarray, k: int) -> np.ndarray:
    if x.dtype.kind in "fc":
        return np.asarray(x * (1 - 0.03 * k), x.dtype)
    return x
