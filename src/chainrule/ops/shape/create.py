"""Creation: tensors from numbers, lists and arrays, and filled ones."""

from __future__ import annotations

import array
import math
import warnings
from typing import Any, NoReturn

import numpy as np

from ...core import dtypes as dt
from ...core.device import DEFAULT, place
from ...core.dispatch import innermost
from ...core.errors import ChainruleError
from ...core.payload import COMPOSED
from ...core.registry import public
from ...core.shapes import sizes
from ...core.sizes import has_ragged
from ...core.tensor import Tensor
from ..elementwise.numbers import varies


def finish(a: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor around an array, converted and marked as asked."""
    if dtype is not None:
        d = dt.as_dtype(dtype).np
        a = (dt.FITTED[d](a) if d in dt.FITTED and d != a.dtype else a).astype(d, copy=False)
    if (DEFAULT.get() if device is None else place(device)) is not None:
        from ...payloads.meta import MetaArray

        a = MetaArray(a.shape, a.dtype)
    t = Tensor(a)
    return t.requires_grad_() if requires_grad else t


def foreign(data: Any) -> Any:
    """Arrays of other libraries (PyTorch, JAX, pandas), in lists too, as NumPy's; the rest as it is."""
    if isinstance(data, Tensor | np.ndarray | np.generic | bool | int | float | complex | str):
        return data
    if type(data) is list or type(data) is tuple:
        return type(data)([foreign(v) for v in data]) if any(_is_foreign(v) for v in data) else data
    if not _is_foreign(data):
        return data
    if hasattr(data, "__dlpack__"):
        from ...interop.capsule import take

        if getattr(data, "requires_grad", False):
            data = data.detach()
        return take(data)
    return np.asarray(data.to_numpy() if hasattr(data, "to_numpy") else data)


def _is_foreign(x: Any, depth: int = 0) -> bool:
    if isinstance(x, Tensor | np.ndarray | np.generic | bool | int | float | complex | str):
        return False
    if depth > 64:  # NumPy's most dims
        raise TypeError("tensor(): self-referential lists are incompatible with tensors (or lists are nested too deep)")
    return (
        hasattr(x, "__dlpack__")
        or hasattr(x, "__array__")
        or (type(x) in (list, tuple) and any(_is_foreign(v, depth + 1) for v in x))
    )


def infer(data: Any) -> dt.DType:
    """The type PyTorch gives a (nested list of) Python or NumPy value(s)."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, np.ndarray | np.generic):
        return dt.FROM_NP.get(data.dtype) or _no_numbers("tensor", data)
    if isinstance(data, SEQUENCES):
        out: dt.DType | None = None
        for d in data:
            k = infer(d)
            out = k if out is None else dt.promote_types(out, k)
        return out or dt.get_default_dtype()
    if isinstance(data, bool | int | float | complex):
        return dt.scalar_dtype(data)
    if (a := _foreign(data)) is not None:
        return infer(a)
    raise TypeError(
        f"tensor(): could not infer dtype of {type(data).__name__}: invalid data type '{type(data).__name__}'"
    )


def _no_numbers(name: str, a: Any) -> NoReturn:
    raise TypeError(
        f"{name}(): an array of type {a.dtype} holds no numbers; convert it first, e.g. a.astype(np.float32)"
    )


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.concrete("tensor()")
    if isinstance(data, SEQUENCES):
        return [_plain(d) for d in data]
    return data if (a := _foreign(data)) is None else a


SEQUENCES = (list, tuple, range)


def _foreign(data: Any) -> np.ndarray | None:
    """What another library, or Python, offers as an array; None if it is none."""
    if isinstance(data, bool | int | float | complex | np.ndarray | np.generic | str | bytes) or data is None:
        return None
    if hasattr(data, "__array__") or hasattr(data, "__array_interface__") or isinstance(data, BUFFERS):
        return np.asarray(data)
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, dict | set):
        return np.asarray([_plain(d) for d in data])  # a sequence of somebody's own
    return None


BUFFERS = (memoryview, bytearray, array.array)


def wrapped(data: Any, d: dt.DType) -> np.ndarray:
    """Python numbers as an array: an integer that is too large for a small type wraps around, as in C."""
    if d.np in dt.FITTED:
        return dt.FITTED[d.np](np.array(data, dtype=np.float64)).astype(d.np)
    try:
        return np.array(data, dtype=d.np)
    except OverflowError:
        if d.category == dt.INT and d.np.itemsize < 8:
            wide = np.array(data, dtype=np.int64)
            if d is dt.uint8:  # as PyTorch: -1 is 255; what is larger than the type is refused
                low = -(2 ** (8 * d.np.itemsize - 1))
                if wide.size and (wide.max() > np.iinfo(d.np).max or wide.min() < 2 * low):
                    raise RuntimeError(f"value cannot be converted to type {d.name} without overflow") from None
                return wide.astype(d.np)
        raise RuntimeError(f"value cannot be converted to type {d.name} without overflow") from None


@public("tensor", out=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, an array or a tensor.

    >>> chainrule.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    """
    data = foreign(data)
    if hasattr(data, "_untyped"):  # a storage: its memory, as numbers of this type
        data = data.as_tensor(dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype))
    d = infer(data) if dtype is None else dt.as_dtype(dtype)
    if isinstance(data, list | tuple) and any(isinstance(v, Tensor) and v._interp is not None for v in data):
        from .slices import stack

        return stack([v if isinstance(v, Tensor) else tensor(v, dtype=d) for v in data]).detach().to(d)
    if isinstance(data, Tensor) and (data._interp is not None or type(data._value) is not np.ndarray):
        y = data.detach().clone().to(d)
        return y.requires_grad_() if requires_grad else y
    try:
        plain = _plain(data)
        a = wrapped(plain, d) if d.category == dt.INT or d.np in dt.FITTED else np.array(plain, dtype=d.np)
    except ValueError:
        raise ValueError(
            "tensor(): expected sequences of equal length at every depth; for ragged data use chainrule.nested.nested_tensor"
        ) from None
    return finish(a, None, requires_grad, device)


@public("as_tensor", out=False)
def as_tensor(
    data: Any, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """`data` as a tensor, sharing memory where it can."""
    if isinstance(data, Tensor):
        t = data.to(dtype=dtype, device=device) if dtype is not None or device is not None else data
        return t.clone() if copy else t
    data = foreign(data)
    if not isinstance(data, np.ndarray) and (a := _foreign(data)) is not None and (not isinstance(data, SEQUENCES)):
        data = a
    if isinstance(data, np.ndarray) and not copy:
        if data.dtype not in dt.FROM_NP:
            _no_numbers("as_tensor", data)
        return finish(data, dtype, requires_grad, device)
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


@public("asarray", out=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """`obj` as a tensor, sharing memory where it can; a buffer of bytes is read as numbers of type `dtype`.

    A tensor keeps its history unless `requires_grad` says whether the result is a leaf that requires grad, or none that does.
    """
    if type(obj).__name__ == "PyCapsule":
        from ...interop.capsule import take

        obj = take(obj)
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError("asarray: can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray.")
    if copy is False and isinstance(obj, SEQUENCES):
        raise ValueError("asarray: can't alias arbitrary sequence into a tensor; leave copy out")
    if isinstance(obj, BUFFERS + (bytes,)):
        obj = np.frombuffer(obj, (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np)
    t = as_tensor(obj, dtype=dtype, device=device, copy=copy)
    if (
        copy is False
        and isinstance(obj, Tensor | np.ndarray)
        and not np.shares_memory(innermost(t), getattr(obj, "_value", obj))
    ):
        have = obj.dtype if isinstance(obj, Tensor) else dt.FROM_NP.get(obj.dtype, obj.dtype)
        raise ValueError(f"asarray: can't alias tensor with dtype '{have}' into dtype '{t.dtype}'; leave copy out")
    if requires_grad:
        return t if t.requires_grad else t.detach().requires_grad_()
    return t.detach() if requires_grad is False and t.requires_grad else t


@public("from_numpy", out=False)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor that shares memory with a NumPy array."""
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"from_numpy: expected np.ndarray (got {type(ndarray).__name__})")
    if ndarray.dtype not in dt.FROM_NP:
        native = ndarray.dtype.newbyteorder("=")
        if native not in dt.FROM_NP:
            raise TypeError(
                f"from_numpy: can't convert np.ndarray of type {ndarray.dtype}; the supported types are {', '.join(d.name for d in dt.ALL)}"
            )
        ndarray = ndarray.astype(native)
    return Tensor(ndarray)


@public("scalar_tensor", out=False)
def scalar_tensor(
    s: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    pin_memory: Any = None,
) -> Tensor:
    """A 0-d tensor."""
    return finish(
        scalar_array(s, (dt.as_dtype(dtype) if dtype is not None else dt.get_default_dtype()).np),
        None,
        requires_grad,
        device,
    )


def scalar_array(v: Any, d: np.dtype) -> np.ndarray:
    """A number as a 0-d array; integers wrap around in a type that is too small for them."""
    a = np.asarray(v)
    if a.dtype.kind == "f" and d.kind in "iu":
        a = a.astype(np.int64)
    return (a.real if a.dtype.kind == "c" and d.kind != "c" else a).astype(d)


def nonnegative(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(n < 0 for n in shape):
        raise RuntimeError(
            f"{name}: Dimension size must be non-negative. Trying to create tensor with negative dimension {min(shape)}: {list(shape)}"
        )
    if len(shape) > 1 and not has_ragged(shape) and math.prod(shape) >= 1 << 60:
        raise RuntimeError(f"{name}: Storage size calculation overflowed with sizes={list(shape)}")
    return shape


def _filled(name: str, make: Any, doc: str) -> Any:
    def f(*size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: Any = None,
          memory_format: Any = None) -> Tensor:  # fmt: skip
        shape = nonnegative(name, sizes(size))
        d = (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np
        if has_ragged(shape):
            return _spread(make((), d), shape, requires_grad)
        y = finish(
            make(shape, d) if has_elements(device) else np.broadcast_to(make((), d), shape), None, requires_grad, device
        )
        if layout is not None and layout.name.startswith("sparse"):
            if name not in ("zeros", "empty"):
                raise RuntimeError(f"{name}(...) is not implemented for sparse layout; write {name}(...).to_sparse()")
            return y.detach().to_sparse(layout=layout).requires_grad_(requires_grad)
        return (
            y
            if memory_format is None or memory_format.name == "contiguous_format"
            else y.contiguous(memory_format=memory_format)
        )

    def like(input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
             memory_format: Any = None, pin_memory: Any = None) -> Tensor:  # fmt: skip
        return like_of(make, input, dtype, requires_grad, device, memory_format)

    def new(self: Tensor, *size: Any, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
            pin_memory: Any = None) -> Tensor:  # fmt: skip
        return f(
            *size,
            dtype=self.dtype if dtype is None else dtype,
            requires_grad=requires_grad,
            device=_where(self, device),
        )

    f.__name__, f.__doc__ = name, f"A tensor of the given sizes {doc}."
    like.__name__, like.__doc__ = f"{name}_like", f"A tensor with the shape and type of `input` {doc}."
    new.__name__, new.__doc__ = f"new_{name}", f"A tensor of the type of `self` {doc}."
    public(name)(accept_size(f))
    public(f"{name}_like", out=False)(like)
    public("", methods=f"new_{name}", out=False)(accept_size(new))
    return f, like


def accept_size(f: Any) -> Any:
    def call(*args: Any, size: Any = None, **kw: Any) -> Any:
        return f(*args, *(() if size is None else (size,)), **kw)

    call.__name__, call.__doc__ = f.__name__, f.__doc__
    call.makes_new = True  # type: ignore[attr-defined]
    return call


def has_elements(device: Any) -> bool:
    """Whether a new tensor will have elements."""
    return (DEFAULT.get() if device is None else place(device)) is None


def _where(x: Tensor, device: Any) -> Any:
    """The device of a tensor made from `x`: that of `x` unless another is named."""
    return x.device if device is None else device


def like_of(
    make: Any, input: Tensor, dtype: Any, requires_grad: bool, device: Any, memory_format: Any = None
) -> Tensor:
    """A filled tensor shaped like `input`, with its order in memory; nested payloads keep their structure."""
    d = (input.dtype if dtype is None else dt.as_dtype(dtype)).np
    shape = tuple(input.shape)
    if has_ragged(shape):
        if memory_format is not None and memory_format.name.startswith("channels_last"):
            raise RuntimeError(
                f"{memory_format} is a memory format of images: the rows of a nested tensor lie one after the other"
            )
        return _spread(make((), d), shape, requires_grad)
    if COMPOSED and input.layout.name.startswith("sparse"):  # on the pattern
        from ..sparse.values import make as with_numbers
        from ..sparse.values import parts

        v, pattern = parts(input)
        return with_numbers(finish(make(tuple(v.shape), d)), pattern).requires_grad_(requires_grad)
    device = _where(input, device)
    if not has_elements(device):
        return finish(np.broadcast_to(make((), d), shape), None, requires_grad, device)
    if len(shape) > 1 and (memory_format is None or memory_format.name == "preserve_format"):
        order = _order(shape, input.stride())
        if order is not None:
            back = [0] * len(order)
            for i, k in enumerate(order):
                back[k] = i
            return finish(make(tuple([shape[k] for k in order]), d).transpose(back), None, requires_grad, device)
    y = finish(make(shape, d), None, False, device)
    if memory_format is not None and memory_format.name.startswith("channels_last"):
        y = y.contiguous(memory_format=memory_format)
    return y.requires_grad_() if requires_grad else y


def _order(shape: tuple[int, ...], stride: tuple[int, ...]) -> list[int] | None:
    """The axes from the slowest in memory to the fastest; None if that is their order, or if there are gaps or overlaps."""
    order = sorted(range(len(shape)), key=lambda k: (-stride[k], k))
    if order == list(range(len(shape))):
        return None
    expected = 1
    for k in reversed(order):
        if shape[k] != 1:
            if stride[k] != expected:
                return None
            expected *= shape[k]
    return order


def _spread(value: Any, shape: tuple[Any, ...], requires_grad: bool) -> Tensor:
    """A nested tensor of ragged sizes filled with one number, a 0-d array."""
    from ...core.primitives import expand_p

    t = expand_p.bind(Tensor(value), shape=shape, old=())
    return t.requires_grad_() if requires_grad else t


zeros, zeros_like = _filled("zeros", np.zeros, "filled with 0")
ones, ones_like = _filled("ones", np.ones, "filled with 1")


class Unwritten:
    """What new memory holds: zeros; or, where it is asked for, what shows that it was never written to."""

    shown = False  # use_deterministic_algorithms(True)
    fill = True  # utils.deterministic.fill_uninitialized_memory


def unwritten(shape: Any, d: np.dtype) -> np.ndarray:
    """New memory: zeros, or NaN (the largest integer, True) under deterministic algorithms."""
    if not (Unwritten.shown and Unwritten.fill):
        return np.zeros(shape, d)
    kind = dt.FROM_NP[d]
    if kind.category == dt.INT:
        return np.full(shape, np.iinfo(d).max, d)
    return np.full(
        shape, True if kind.category == dt.BOOL else complex(np.nan, np.nan) if kind.is_complex else np.nan, d
    )


empty, empty_like = _filled("empty", unwritten, "whose contents are unspecified (here: zeros)")


@public("full")
def full(size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
         pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the given size filled with one number."""
    shape = nonnegative("full", sizes((size,)))
    if varies(fill_value):
        return _everywhere(fill_value, shape, dtype)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    d = dt.as_dtype(dtype) if dtype is not None else dt.scalar_dtype(fill_value)
    if has_ragged(shape):
        return _spread(scalar_array(fill_value, d.np), shape, requires_grad)
    value = scalar_array(fill_value, d.np)
    return finish(
        np.full(shape, value, d.np) if has_elements(device) else np.broadcast_to(value, shape),
        None,
        requires_grad,
        device,
    )


def _everywhere(value: Tensor, shape: tuple[Any, ...], dtype: Any) -> Tensor:
    """A number that is differentiated, everywhere."""
    if value.numel() != 1:
        raise ChainruleError(f"full: fill_value must be one number, got a tensor of shape {list(value.shape)}")
    v = value.reshape(())
    return (v if dtype is None else v.to(dt.as_dtype(dtype))).expand(*shape).clone()


@public("full_like", out=False)
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
              memory_format: Any = None, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A tensor with the shape and type of `input` filled with one number."""
    if varies(fill_value):
        return _everywhere(fill_value, tuple(input.shape), input.dtype if dtype is None else dtype)
    fill = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return like_of(
        lambda s, d: np.full(s, scalar_array(fill, d), d), input, dtype, requires_grad, device, memory_format
    )


@public("", methods="new_full", out=False)
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the type of `self` filled with one number."""
    return full(
        size,
        fill_value,
        dtype=self.dtype if dtype is None else dtype,
        requires_grad=requires_grad,
        device=_where(self, device),
    )


@public("", methods="new_tensor", out=False)
def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor with a copy of `data` and the type of `self`."""
    return tensor(
        data, dtype=self.dtype if dtype is None else dtype, requires_grad=requires_grad, device=_where(self, device)
    )


@public("eye")
def eye(n: int, m: int | None = None, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        pin_memory: Any = None) -> Tensor:  # fmt: skip
    """The n-by-m matrix with ones on the diagonal."""
    if n < 0 or (m is not None and m < 0):
        raise RuntimeError(f"eye: n and m must be greater or equal to 0, got n={n}, m={m}")
    return finish(
        np.eye(n, m, dtype=(dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np),
        None,
        requires_grad,
        device,
    )


# -- memory of a given layout -----------------------------------------------------------------------------------------


@public("empty_strided", out=False)
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
                  pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the given sizes and strides whose contents are unspecified (here: zeros)."""
    n, s = nonnegative("empty_strided", sizes((size,))), sizes((stride,), "stride")
    if len(n) != len(s):
        raise RuntimeError(
            f"empty_strided: dimensionality of sizes ({len(n)}) must match dimensionality of strides ({len(s)})"
        )
    if any(k < 0 for k in s):
        raise RuntimeError(f"empty_strided: negative strides are not supported, got {list(s)}")
    d = (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np
    need = 0 if 0 in n else 1 + sum((k - 1) * b for k, b in zip(n, s, strict=True))
    if not need:
        return finish(np.zeros(n, d), None, requires_grad, device)
    return finish(np.ndarray(n, d, unwritten(need, d), 0, [b * d.itemsize for b in s]), None, requires_grad, device)


@public("", methods="new_empty_strided", out=False)
def new_empty_strided(self: Tensor, size: Any, stride: Any, dtype: Any = None, layout: Any = None, device: Any = None,
                      requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A tensor of the type of `self` with the given sizes and strides."""
    return empty_strided(
        size, stride, dtype=self.dtype if dtype is None else dtype, device=device, requires_grad=requires_grad
    )


@public("empty_permuted", out=False)
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False, pin_memory: Any = None) -> Tensor:  # fmt: skip
    """A dense tensor whose dims lie in memory in the order `physical_layout`."""
    n, p = nonnegative("empty_permuted", sizes((size,))), sizes((physical_layout,), "physical_layout")
    if len(n) != len(p):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(n)} is not equal to len(physical_layout) = {len(p)}"
        )
    for k in p:
        if not 0 <= k < len(n):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(n) - 1}, but got {k} in physical_layout). "
                f"Write dims of physical_layout as non-negative numbers."
            )
    if len(set(p)) != len(p):
        raise RuntimeError(f"Duplicate dim not allowed in physical_layout {list(p)}")
    d = (dt.get_default_dtype() if dtype is None else dt.as_dtype(dtype)).np
    return finish(unwritten([n[k] for k in p], d).transpose(np.argsort(p)), None, requires_grad, device)


@public("frombuffer", out=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector that shares the memory of an object with the buffer protocol."""
    try:
        data = memoryview(buffer)
    except TypeError:
        raise ValueError(
            f"frombuffer: object does not implement Python buffer protocol. (got {type(buffer).__name__})"
        ) from None
    d = dt.as_dtype(dtype)
    n, size = data.nbytes, d.itemsize
    if not n or not count:
        raise ValueError(f"frombuffer: both buffer length ({n}) and count ({count}) must not be 0")
    if not 0 <= offset < n:
        raise ValueError(
            f"frombuffer: offset ({offset} bytes) must be non-negative and no greater than buffer length ({n} bytes) minus 1"
        )
    if count > 0 and offset + count * size > n:
        raise ValueError(
            f"frombuffer: requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({n} bytes)"
        )
    if count < 0 and (n - offset) % size:
        raise ValueError(
            f"frombuffer: buffer length ({n - offset} bytes) after offset ({offset} bytes) must be a multiple of element size ({size})"
        )
    if data.readonly:
        warnings.warn(
            "The given buffer is not writable. A write to the tensor goes to a copy, and does not show in the buffer.",
            stacklevel=3,
        )
    return finish(np.frombuffer(buffer, d.np, count, offset), None, requires_grad)
