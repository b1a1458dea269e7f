"""What the harness asks of a library under test, and PyTorch's answers."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .database import Entry

Tensors = tuple[Any, ...]
TensorFunction = Callable[..., Tensors]


class Missing(Exception):
    """The library has nothing of this name."""


class Counter:
    """Number of concrete op executions seen so far."""

    total: int = 0


class Library(abc.ABC):
    """A library under test. Functions given to the transforms take tensors and return a tuple of tensors."""

    name: str

    @property
    @abc.abstractmethod
    def version(self) -> str: ...

    @abc.abstractmethod
    def function(self, entry: Entry) -> Callable[..., Any]:
        """The library's function for the entry; raises `Missing`."""

    @abc.abstractmethod
    def helper(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A helper of the database (``gradcheck_wrapper``, ``output_process_fn_grad``) for this library's tensors."""

    @abc.abstractmethod
    def argument(self, leaf: Any) -> Any:
        """This library's equivalent of one leaf of the sample's arguments."""

    @abc.abstractmethod
    def tensor(self, array: np.ndarray, dtype: str | None = None) -> Any:
        """A tensor with the array's values, cast to the named dtype."""

    @abc.abstractmethod
    def is_tensor(self, value: Any) -> bool: ...

    @abc.abstractmethod
    def dtype(self, tensor: Any) -> str:
        """PyTorch's name of the dtype, ``"float64"``."""

    @abc.abstractmethod
    def numpy(self, tensor: Any) -> np.ndarray:
        """The values as a NumPy array that owns its memory, 16-bit floats widened, sparse layouts made dense."""

    @abc.abstractmethod
    def vjp(self, f: TensorFunction, primals: Sequence[Any]) -> tuple[Tensors, Callable[[Sequence[Any]], Tensors]]: ...

    @abc.abstractmethod
    def jvp(self, f: TensorFunction, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]: ...

    @abc.abstractmethod
    def vmap(self, f: TensorFunction, in_dims: Sequence[int | None]) -> TensorFunction: ...

    @abc.abstractmethod
    def counting(self) -> contextlib.AbstractContextManager[Any]:
        """A context whose value has `total`, the number of concrete op executions inside it."""

    @abc.abstractmethod
    def seed(self, value: int) -> None: ...

    def has(self, entry: Entry) -> bool:
        try:
            self.function(entry)
        except Missing:
            return False
        return True


def torch_to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """Values of a torch tensor, copied; 16-bit floats widened to 32, sparse and conjugate-bit tensors materialised."""
    t = tensor.detach()
    if t.layout is not torch.strided:
        t = t.to_dense()
    if t.dtype in (torch.bfloat16, torch.float16) or "float8" in str(t.dtype):
        t = t.to(torch.float32)
    elif t.dtype is torch.complex32:
        t = t.to(torch.complex64)
    return np.array(t.numpy(force=True))


class _CountingMode(TorchDispatchMode):
    def __init__(self, counter: Counter) -> None:
        super().__init__()
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.counter.total += 1
        return func(*args, **(kwargs or {}))


class TorchLibrary(Library):
    """PyTorch through ``torch.func``: the harness must find what is known to be wrong there."""

    name = "torch"

    @property
    def version(self) -> str:
        return torch.__version__

    def function(self, entry: Entry) -> Callable[..., Any]:
        return entry.op.op

    def helper(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return fn

    def argument(self, leaf: Any) -> Any:
        return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf

    def tensor(self, array: np.ndarray, dtype: str | None = None) -> Any:
        t = torch.from_numpy(np.array(array))
        return t if dtype is None else t.to(getattr(torch, dtype))

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, torch.Tensor)

    def dtype(self, tensor: Any) -> str:
        return str(tensor.dtype).removeprefix("torch.")

    def numpy(self, tensor: Any) -> np.ndarray:
        return torch_to_numpy(tensor)

    def vjp(self, f: TensorFunction, primals: Sequence[Any]) -> tuple[Tensors, Callable[[Sequence[Any]], Tensors]]:
        outs, pull = torch.func.vjp(f, *primals)
        return outs, lambda cotangents: pull(tuple(cotangents))

    def jvp(self, f: TensorFunction, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Tensors, Tensors]:
        return torch.func.jvp(f, tuple(primals), tuple(tangents))

    def vmap(self, f: TensorFunction, in_dims: Sequence[int | None]) -> TensorFunction:
        return torch.func.vmap(f, in_dims=tuple(in_dims), randomness="same")

    @contextlib.contextmanager
    def counting(self) -> Iterator[Counter]:
        counter = Counter()
        with _CountingMode(counter):
            yield counter

    def seed(self, value: int) -> None:
        torch.manual_seed(value)


def load_library(name: str) -> Library:
    """The adapter of the library called `name`: ``chainrule`` or ``torch``."""
    if name == "torch":
        return TorchLibrary()
    if name == "chainrule":
        from .chainrule_adapter import ChainruleLibrary

        return ChainruleLibrary()
    raise SystemExit(f"unknown library {name!r}; there are: chainrule, torch")
