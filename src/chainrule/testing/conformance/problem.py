"""One sample of one entry as a function of its differentiated inputs, for PyTorch and for the library under test."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .adapters import Library, Tensors, TorchLibrary, torch_to_numpy
from .calculus import Arrays, differences, inner, mismatch, random_like
from .database import Entry, seed_for
from .tree import leaves, map_tree

SEED_INSIDE = 20


@dataclass(frozen=True)
class Case:
    """A sample: what is needed to build it again, and to say which one it was."""

    entry: Entry
    dtype: torch.dtype
    index: int
    sample: Any
    seed: int

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(seed_for(self.seed, self.entry.name, self.dtype, self.index))

    def describe(self) -> dict[str, str]:
        """Dtype, index, shapes and other arguments of the sample, for people."""
        s = self.sample
        parts = [_show(s.input)] + [_show(a) for a in s.args] + [f"{k}={_show(v)}" for k, v in s.kwargs.items()]
        return {"dtype": str(self.dtype).removeprefix("torch."), "sample": f"#{self.index} ({', '.join(parts)})"}


def _show(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        layout = "" if value.layout is torch.strided else f" {str(value.layout).removeprefix('torch.')}"
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{layout}"
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        inner = ", ".join(_show(v) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if callable(value) and not isinstance(value, type):
        return getattr(value, "__name__", type(value).__name__)
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class Problem:
    """The entry called on this sample by a library, with chosen tensor arguments as variables."""

    def __init__(self, case: Case, library: Library) -> None:
        self.case, self.library = case, library
        s = case.sample
        self._torch_leaves: list[Any] = []
        self._template = map_tree(self._slot, (s.input, tuple(s.args), dict(s.kwargs)))
        self._op = library.function(case.entry)
        self._wrapper = library.helper(case.entry.op.gradcheck_wrapper)
        self._process = library.helper(s.output_process_fn_grad)
        self.differentiated = [
            i for i, x in enumerate(self._torch_leaves) if isinstance(x, torch.Tensor) and x.requires_grad
        ]

    def _slot(self, leaf: Any) -> int:
        self._torch_leaves.append(leaf)
        return len(self._torch_leaves) - 1

    @functools.cached_property
    def arguments(self) -> list[Any]:
        """All leaves of the arguments in the library's own types."""
        carry_over = carrier(self.library)
        return [carry_over(leaf) for leaf in self._torch_leaves]

    def tensors(self, *kinds: str) -> list[int]:
        """Positions of strided tensor arguments of the given NumPy kinds, ``"fc"`` floating, ``"iub"`` the others."""
        return [
            i
            for i, x in enumerate(self._torch_leaves)
            if isinstance(x, torch.Tensor) and x.layout is torch.strided and _kind(x.dtype) in kinds
        ]

    def torch_leaf(self, position: int) -> torch.Tensor:
        return self._torch_leaves[position]

    def _assemble(self, positions: Sequence[int], values: Sequence[Any]) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        slots = dict(zip(positions, values, strict=True))
        return map_tree(lambda i: slots[i] if i in slots else self.arguments[i], self._template)

    def rebuilt(self, position: int, array: np.ndarray, *, tangent: bool = False) -> Any:
        """The tensor argument at `position` with other values, or a tangent of it."""
        return self.library.argument(carry(self.torch_leaf(position), array, tangent=tangent))

    def raw(self, positions: Sequence[int] = (), values: Sequence[Any] = ()) -> Any:
        """The op's own result, nothing applied to it."""
        x, args, kwargs = self._assemble(positions, values)
        self.library.seed(SEED_INSIDE)
        return self._op(x, *args, **kwargs)

    def processed(self, positions: Sequence[int] = (), values: Sequence[Any] = ()) -> list[Any]:
        """Leaves of the result after the database's wrapper and output function."""
        x, args, kwargs = self._assemble(positions, values)
        self.library.seed(SEED_INSIDE)
        return leaves(self._process(self._wrapper(self._op, x, *args, **kwargs)))

    @property
    def is_wrapped(self) -> bool:
        """Whether the database changes inputs or outputs of this entry before it judges them."""
        s, op = self.case.sample, self.case.entry.op
        identity = ("OpInfo.<lambda>", "SampleInput.<lambda>", "SampleInput.__init__.<locals>.<lambda>")
        return not all(
            getattr(f, "__qualname__", "") in identity for f in (op.gradcheck_wrapper, s.output_process_fn_grad)
        )

    def function(self, positions: Sequence[int], outputs: Sequence[int] | None) -> Callable[..., Tensors]:
        """A function of the tensors at `positions` to the tuple of chosen outputs (None: every tensor output)."""
        lib = self.library

        def f(*values: Any) -> Tensors:
            out = self.processed(positions, values)
            if outputs is None:
                return tuple(o for o in out if lib.is_tensor(o))
            return tuple(out[i] for i in outputs)

        return f


def carrier(library: Library) -> Callable[[Any], Any]:
    """The library's equivalent of a leaf; a tensor that occurs twice is one tensor there too (``cat((x, y), out=x)``)."""
    seen: dict[int, Any] = {}

    def carry_over(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return library.argument(leaf)
        if id(leaf) not in seen:
            seen[id(leaf)] = library.argument(leaf)
        return seen[id(leaf)]

    return carry_over


def carry(leaf: torch.Tensor, array: np.ndarray, *, tangent: bool = False) -> torch.Tensor:
    """A tensor of the array's values with the sparsity pattern of `leaf`, or with its place in a larger storage.

    The rest of that storage is kept, or zero for a tangent.
    """
    values = torch.from_numpy(np.array(array)).to(leaf.dtype)
    if leaf.layout is torch.strided:
        return _into_storage(leaf.detach(), values, tangent)
    pattern = leaf.detach().to_sparse_coo().coalesce().indices()
    sparse = torch.sparse_coo_tensor(pattern, values[tuple(pattern)], values.shape, is_coalesced=True)
    return sparse.to_sparse(layout=leaf.layout) if leaf.layout is not torch.sparse_coo else sparse


def is_partial_view(leaf: torch.Tensor) -> bool:
    """Whether the strided tensor's storage holds more than its elements."""
    return leaf.untyped_storage().nbytes() > leaf.numel() * leaf.element_size()


def _into_storage(leaf: torch.Tensor, values: torch.Tensor, tangent: bool) -> torch.Tensor:
    if not is_partial_view(leaf) or leaf.numel() == 0 or 0 in leaf.stride():
        return values
    whole = leaf.untyped_storage().nbytes() // leaf.element_size()
    storage = torch.as_strided(leaf, (whole,), (1,), 0).clone()
    if tangent:
        storage.zero_()
    storage.as_strided(leaf.shape, leaf.stride(), leaf.storage_offset()).copy_(values)
    return storage.as_strided(leaf.shape, leaf.stride(), leaf.storage_offset())


def _kind(dtype: torch.dtype) -> str:
    if dtype.is_complex or dtype.is_floating_point:
        return "fc"
    return "iub"


class _TagMode(TorchDispatchMode):
    """Collects the tags of the PyTorch operators that run inside it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[torch.Tag] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.tags.update(func.tags)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _other_seed(value: int) -> Iterator[None]:
    """Whatever seed is asked for, PyTorch's generator starts elsewhere."""
    original = torch.manual_seed
    torch.manual_seed = lambda seed: original(int(seed) + value)
    try:
        yield
    finally:
        torch.manual_seed = original


@contextlib.contextmanager
def _filled_memory() -> Iterator[None]:
    """Uninitialised memory reads as NaN."""
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)


def _in_other_memory(leaf: torch.Tensor) -> torch.Tensor:
    """A contiguous copy of a tensor that is not, and one with gaps of a tensor that is."""
    leaf = leaf.detach()
    if not leaf.is_contiguous():
        return leaf.contiguous()
    gaps = leaf.new_zeros((*leaf.shape, 2))[..., 0]
    return gaps.copy_(leaf)


class Oracle:
    """PyTorch on one sample: values, differentiable outputs, first-order reverse mode, and what cannot be compared."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.problem = Problem(case, TorchLibrary())
        self.positions = self.problem.differentiated
        self.raw = self._numpy(leaves(self.problem.raw()))
        if any(v is NotImplemented for v in self.raw):
            raise TypeError("PyTorch answers NotImplemented")
        # Values computed inside a dispatch mode are not trusted: conjugate views go wrong there (pinv, complex).
        mode = _TagMode()
        with mode:
            self.problem.raw()
        self.tagged_dynamic = torch.Tag.dynamic_output_shape in mode.tags
        self.processed = self._numpy(self.problem.processed()) if self.problem.is_wrapped else self.raw
        self.random = torch.Tag.nondeterministic_seeded in mode.tags and self._depends_on_seed()
        self.uninitialised = self._uninitialised() if "empty" in case.entry.name or "resize" in case.entry.name else []

    @staticmethod
    def _numpy(values: Sequence[Any]) -> list[Any]:
        return [(torch_name(v), torch_to_numpy(v)) if isinstance(v, torch.Tensor) else v for v in values]

    def in_other_memory(self) -> list[Any] | None:
        """The op's own result where every argument has the same values at every second place of its memory, or not."""
        leaf = self.problem.torch_leaf
        positions = [i for i in self.problem.tensors("fc", "iub") if leaf(i).ndim]
        try:
            return self._numpy(leaves(self.problem.raw(positions, [_in_other_memory(leaf(i)) for i in positions])))
        except Exception:
            return None

    def by_own_kernels(self) -> list[Any] | None:
        """The op's result by PyTorch's own kernels, without oneDNN's, which are others for every family of processors."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with torch.backends.mkldnn.flags(enabled=False):
                    return self._numpy(leaves(self.problem.raw()))
        except Exception:
            return None

    def _depends_on_seed(self) -> bool:
        """Whether other seeds give another result; an empty result is taken to."""
        arrays = [v for v in self.processed if isinstance(v, tuple)]
        return not sum(v[1].size for v in arrays) or any(self._differs(k) for k in range(1, 9))

    def _differs(self, seed: int) -> bool:
        with _other_seed(seed):
            other = self._numpy(self.problem.processed())
        return any(
            isinstance(a, tuple) and not np.allclose(a[1], b[1], rtol=1e-6, atol=1e-8, equal_nan=True)
            for a, b in zip(self.processed, other, strict=True)
        )

    def _uninitialised(self) -> list[np.ndarray | None]:
        with _filled_memory():
            filled = self._numpy(leaves(self.problem.raw()))
        return [v[1] != v[1] if isinstance(v, tuple) else None for v in filled]

    @functools.cached_property
    def _written(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """Floating inputs that the op writes to, such as running statistics: position -> (before, after)."""
        others = [i for i in self.problem.tensors("fc") if i not in self.positions]
        before = [torch_to_numpy(self.problem.torch_leaf(i)) for i in others]
        copies = [self.problem.torch_leaf(i).detach().clone() for i in others]
        try:
            self.problem.raw(others, copies)
        except Exception:
            return {}
        after = [torch_to_numpy(c) for c in copies]
        # Some kernels write without counting, some count without changing anything.
        return {
            i: (b, a)
            for i, b, a, c in zip(others, before, after, copies, strict=True)
            if c._version > 0 or not np.array_equal(a, b, equal_nan=True)
        }

    @functools.cached_property
    def written_before(self) -> dict[int, np.ndarray]:
        """What the op writes to, with the sample's own values."""
        return {i: before for i, (before, _) in self._written.items()}

    @functools.cached_property
    def written_after(self) -> dict[int, np.ndarray]:
        """What the op writes to, with the values that PyTorch leaves there."""
        return {i: after for i, (_, after) in self._written.items()}

    @functools.cached_property
    def _graph(self) -> tuple[list[torch.Tensor], list[Any]]:
        return self._build_graph()

    def _build_graph(self) -> tuple[list[torch.Tensor], list[Any]]:
        leaf = self.problem.torch_leaf
        inputs = [carry(leaf(i), torch_to_numpy(leaf(i))).requires_grad_() for i in self.positions]
        return inputs, self.problem.processed(self.positions, inputs)

    @functools.cached_property
    def outputs(self) -> list[int]:
        """Positions among the processed outputs of those that carry a gradient."""
        if not self.positions:
            return []
        return [i for i, o in enumerate(self._graph[1]) if isinstance(o, torch.Tensor) and o.requires_grad]

    def output_spec(self) -> list[tuple[str, tuple[int, ...]]]:
        """Dtype name and shape of every differentiable output."""
        outs = self._graph[1]
        return [(torch_name(outs[i]), tuple(outs[i].shape)) for i in self.outputs]

    def vjp(self, cotangents: Sequence[np.ndarray]) -> Arrays:
        """First-order reverse mode of PyTorch's own autograd, zeros where an input is not used."""
        return self._pull(self._graph, cotangents)

    def _pull(self, graph: tuple[list[torch.Tensor], list[Any]], cotangents: Sequence[np.ndarray]) -> Arrays:
        inputs, outs = graph
        chosen = [outs[i] for i in self.outputs]
        gs = [torch.from_numpy(np.array(g)).to(o.dtype) for g, o in zip(cotangents, chosen, strict=True)]
        chosen = [o.to_dense() if o.layout is not torch.strided else o for o in chosen]
        grads = torch.autograd.grad(chosen, inputs, gs, allow_unused=True, retain_graph=True)
        return [
            np.zeros(tuple(x.shape), torch_to_numpy(x).dtype) if g is None else torch_to_numpy(g)
            for g, x in zip(grads, inputs, strict=True)
        ]

    @functools.cached_property
    def has_gradient(self) -> bool:
        """Whether PyTorch's gradient for some cotangent is not zero."""
        if not self.outputs:
            return False
        spec = [(s, np.dtype("complex128" if d.startswith("complex") else "float64")) for d, s in self.output_spec()]
        try:
            return any(bool(np.any(g)) for g in self.vjp(random_like(self.case.rng, spec)))
        except RuntimeError:
            return True

    def random_gradient(self, cotangents: Sequence[np.ndarray]) -> bool:
        """Whether the gradient of a random sample changes with the seed, as the value does, by what a comparison would notice."""
        for seed in range(1, 5):
            with _other_seed(seed):
                other = self._pull(self._build_graph(), cotangents)
            pairs = zip(other, self.vjp(cotangents), strict=True)
            if any(mismatch(a, b, b.dtype.name, relative_to_all=True) for a, b in pairs):
                return True
        return False

    def contradicts_itself(self, x: Arrays, t: Arrays, g: Arrays) -> bool:
        """Whether PyTorch's reverse mode is not the derivative of its value: by contract (``padding_idx``) or not."""
        f = self.problem.function(self.positions, self.outputs)

        def value(arrays: Arrays) -> Arrays:
            tensors = (carry(self.problem.torch_leaf(i), a) for i, a in zip(self.positions, arrays, strict=True))
            return [torch_to_numpy(y) for y in f(*tensors)]

        d = differences(value, x, t)
        g = d.masked(g)
        want, tolerance = d.pairing(g)
        return not abs(inner(self.vjp(g), t) - want) <= tolerance

    def primals(self) -> Arrays:
        return [torch_to_numpy(self.problem.torch_leaf(i)) for i in self.positions]


def torch_name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
