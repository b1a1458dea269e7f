"""Chainrule's answers to what the harness asks: names resolved, torch arguments carried over."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from .adapters import Counter, Library, Missing, TensorFunction, Tensors
from .database import Entry
from .rebind import Rebinder

_TESTING = "torch.testing."
_PREFIXES = ("torch.ops.aten.", "ops.aten.", "torch.")
_OVERLOADS = (".default", ".Tensor")


class ChainruleLibrary(Library):
    """Chainrule, imported when first needed so that a broken import is one failing run, not an import error here."""

    name = "chainrule"

    def __init__(self) -> None:
        self.module: Any = importlib.import_module("chainrule")
        self._lambdas = Rebinder(self.module, strict=True)
        self._helpers = Rebinder(self.module, strict=False)

    @property
    def version(self) -> str:
        return str(getattr(self.module, "__version__", "0"))

    def function(self, entry: Entry) -> Callable[..., Any]:
        fn = entry.op.op
        if isinstance(fn, types.FunctionType) and (fn.__module__ or "").startswith(_TESTING):
            if not self._knows(entry.op.name):
                raise Missing(f"chainrule has no {entry.op.name}")
            return self._lambdas(fn)
        return self._by_name(entry.op.name)

    def _knows(self, name: str) -> bool:
        for candidate in (name, name + "_"):
            try:
                self._by_name(candidate)
            except Missing:
                continue
            return True
        return False

    def _by_name(self, name: str) -> Callable[..., Any]:
        short = name
        for prefix in _PREFIXES:
            short = short.removeprefix(prefix)
        for suffix in _OVERLOADS:
            short = short.removesuffix(suffix)
        found: Any = self.module
        for part in short.split("."):
            found = self._attribute(found, part)
            if found is None:
                break
        if found is None or (short in _DTYPE_NAMES and not callable(found)):
            found = getattr(self.module.Tensor, short, None)
        if found is None:
            raise Missing(f"chainrule has no {name}")
        return found

    def _attribute(self, owner: Any, part: str) -> Any:
        found = getattr(owner, part, None)
        if found is None and isinstance(owner, types.ModuleType):
            with contextlib.suppress(ImportError):
                return importlib.import_module(f"{owner.__name__}.{part}")
        return found

    def helper(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return self._helpers(fn)

    def argument(self, leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return self._from_torch(leaf)
        if isinstance(leaf, torch.dtype | torch.layout | torch.memory_format):
            return getattr(self.module, str(leaf).removeprefix("torch."))
        if isinstance(leaf, torch.device):
            return str(leaf)
        if isinstance(leaf, torch.Size):
            return tuple(leaf)
        if isinstance(leaf, torch.Generator):
            return self.module.Generator().manual_seed(leaf.initial_seed())
        if isinstance(leaf, types.FunctionType):
            return self._helpers(leaf)
        return self._by_torch_object(leaf)

    def _by_torch_object(self, leaf: Any) -> Any:
        """PyTorch functions that are themselves arguments (a distance function, say) become ours of the same name."""
        if isinstance(leaf, type) or not (getattr(leaf, "__module__", None) or "").startswith("torch"):
            return leaf
        if isinstance(leaf, torch.nn.Module):
            return types.MethodType(self._helpers(type(leaf).forward), leaf)
        name = getattr(leaf, "__name__", None)
        if callable(leaf) and name is not None:
            for space in ("", "nn.functional.", "linalg."):
                with contextlib.suppress(Missing):
                    return self._by_name(space + name)
        return leaf

    def _from_torch(self, t: torch.Tensor) -> Any:
        t = t.detach()
        if t.layout is torch.sparse_coo:
            t = t.coalesce()
            return self.module.sparse_coo_tensor(
                self._from_torch(t.indices()), self._from_torch(t.values()), tuple(t.shape)
            )
        if t.layout is torch.sparse_csr:
            return self.module.sparse_csr_tensor(
                self._from_torch(t.crow_indices()),
                self._from_torch(t.col_indices()),
                self._from_torch(t.values()),
                tuple(t.shape),
            )
        if t.layout is not torch.strided:
            raise TypeError(f"layout {t.layout} cannot be carried over")
        t = t.resolve_conj().resolve_neg()
        name = str(t.dtype).removeprefix("torch.")
        if t.device.type != "cpu":
            return self.module.empty(tuple(t.shape), dtype=getattr(self.module, name), device=str(t.device))
        if t.dtype is torch.bfloat16:
            import ml_dtypes

            return self.module.from_numpy(t.view(torch.int16).numpy().view(ml_dtypes.bfloat16))
        if t.dtype is torch.complex32 or "float8" in name:
            wide = t.to(torch.complex64 if t.is_complex() else torch.float32)
            return self.module.from_numpy(wide.numpy()).to(getattr(self.module, name))
        return self.module.from_numpy(_numpy_in_storage(t))

    def tensor(self, array: np.ndarray, dtype: str | None = None) -> Any:
        t = self.module.from_numpy(np.array(array))
        return t if dtype is None or self.dtype(t) == dtype else t.to(getattr(self.module, dtype))

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, self.module.Tensor)

    def dtype(self, tensor: Any) -> str:
        return str(tensor.dtype).rpartition(".")[2]

    def numpy(self, tensor: Any) -> np.ndarray:
        t = tensor.detach()
        if getattr(t, "is_sparse", False) or getattr(t, "is_sparse_csr", False):
            t = t.to_dense()
        array = np.array(t.numpy())
        if str(array.dtype.kind) == "W":
            return array.astype(np.complex64)
        return (
            array.astype(np.float32)
            if array.dtype.kind == "V" or (array.dtype.itemsize == 2 and array.dtype.kind not in "iub")
            else array
        )

    def vjp(self, f: TensorFunction, primals: Sequence[Any]) -> tuple[Tensors, Callable[[Sequence[Any]], Tensors]]:
        outs, pull = self.module.func.vjp(f, *primals)
        return outs, lambda cotangents: pull(tuple(cotangents))

    def jvp(self, f: TensorFunction, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        return self.module.func.jvp(f, tuple(primals), tuple(tangents))

    def vmap(self, f: TensorFunction, in_dims: Sequence[int | None]) -> TensorFunction:
        return self.module.func.vmap(f, in_dims=tuple(in_dims), randomness="same")

    def counting(self) -> contextlib.AbstractContextManager[Any]:
        count_ops = getattr(importlib.import_module("chainrule.testing"), "count_ops", None)
        return count_ops() if count_ops is not None else _counting_calls(str(self.module.__path__[0]))

    def seed(self, value: int) -> None:
        self.module.manual_seed(value)


def _numpy_in_storage(t: torch.Tensor) -> np.ndarray:
    """The elements of a tensor as an array whose base is the tensor's whole storage."""
    n = t.untyped_storage().nbytes() // t.element_size()
    if n == t.numel():
        return t.numpy()
    whole = torch.as_strided(t, (n,), (1,), 0).numpy()
    strides = [s * t.element_size() for s in t.stride()]
    return np.ndarray(tuple(t.shape), whole.dtype, whole, t.storage_offset() * t.element_size(), strides)


@contextlib.contextmanager
def _counting_calls(root: str) -> Iterator[Counter]:
    """Counts calls of Python functions below `root`: as a measure of looping as good as counting ops, only slower."""
    counter = Counter()

    def profile(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            counter.total += 1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield counter
    finally:
        sys.setprofile(before)


# Names that are a dtype in the top namespace and a method on tensors.
_DTYPE_NAMES = frozenset(
    {"cfloat", "cdouble", "chalf", "float", "double", "half", "bfloat16", "bool", "int", "long", "short"}
)
