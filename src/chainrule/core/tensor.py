"""Tensor: a mutable box around an immutable value.

A concrete tensor holds a payload (a NumPy array, or one of another type: see :mod:`chainrule.core.payload`). A tensor of a transform's level
holds a tensor of a lower level, the interpreter it belongs to, and what that interpreter needs (a tangent, a tape node).
Writing to a tensor rebinds these three; whoever saved the old value keeps it.

Methods are attached by the ops that declare them (:mod:`chainrule.core.registry`).
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from . import dtypes as dt
from .dispatch import grad_enabled, innermost
from .errors import ChainruleError, see
from .payload import PAYLOADS, payload_of

if TYPE_CHECKING:
    from .dispatch import Interpreter
    from .methods import Methods  # written by `make surface`
else:
    Methods = object

ndarray = np.ndarray


@functools.cache
def _device() -> Any:
    """The module of devices and layouts, which needs tensors itself."""
    from . import device

    return device


class Size(tuple[Any, ...]):  # a ragged size is no int
    """The shape of a tensor: a tuple with ``numel()``."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        n = 1
        for d in self:
            n *= d
        return n

    def __repr__(self) -> str:
        return f"{dt.PREFIX[0]}.Size([{', '.join(map(str, self))}])"

    def __mul__(self, n: SupportsIndex) -> Size:
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    @overload
    def __getitem__(self, i: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> Size: ...
    def __getitem__(self, i: Any) -> Any:
        r = tuple.__getitem__(self, i)
        return Size(r) if isinstance(i, slice) else r

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            if hasattr(type(other), "__radd__"):
                return NotImplemented
            raise TypeError(
                f"can only concatenate tuple (not {type(other).__name__}) to {dt.PREFIX[0]}.Size; write (*size, *other)"
            )
        return Size(tuple.__add__(self, other))


class Meta:
    """What few tensors have: a base they are a view of, views, a gradient, hooks."""

    # Defaults of the class: most are never set, and making a Meta is on the way of every leaf's gradient.
    base: Tensor | None = None
    chain: tuple[Any, ...] = ()
    views: list[weakref.ref[Tensor]] | None = None
    version = 0  # how many writes there were, of the root of a family
    pinned = False  # whether others may hold the memory: then a write goes to a copy
    grad: Any = None
    hooks: dict[int, Any] | None = None
    post_hooks: dict[int, Any] | None = None
    retain: Any = None  # the hook that fills `grad` of a tensor that is no leaf


class Tensor(Methods):
    """A multi-dimensional array of one data type; PyTorch's names, differentiable to any order."""

    __slots__ = ("__dict__", "__weakref__", "_aux", "_interp", "_meta", "_value")

    _value: Any
    _interp: Interpreter | None
    _aux: Any
    _meta: Meta | None

    def __init__(self, value: Any = (), interp: Any = None, aux: Any = None) -> None:
        if interp is None:
            if type(value) is not ndarray:
                value = _legacy(value)
        elif interp.__class__ is int:  # PyTorch's Tensor(2, 3): sizes
            value, interp, aux = _legacy(Size([value, interp] if aux is None else [value, interp, aux])), None, None
        self._value = value
        self._interp = interp
        self._aux = aux
        self._meta = None

    # -- shape and type -----------------------------------------------------------------------------------------------
    @property
    def shape(self) -> Size:
        """The sizes of the dimensions."""
        i = self._interp
        return Size(self._value.shape if i is None else i.shape_of(self))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        i = self._interp
        return self._value.ndim if i is None else len(i.shape_of(self))

    @property
    def dtype(self) -> dt.DType:
        """The element type."""
        return dt.FROM_NP[innermost(self).dtype]

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the size of one dimension."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self.shape.numel()

    nelement = numel

    def __len__(self) -> int:
        s = self.shape
        if not s:
            raise TypeError("len() of a 0-d tensor")
        return s[0]

    def element_size(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes all elements take."""
        return self.numel() * self.dtype.itemsize

    def stride(self, dim: int | None = None) -> Any:
        """Steps, in elements, from one entry of a dimension to the next."""
        if self._interp is None:
            v = self._value
            s = tuple([b // v.itemsize for b in v.strides]) if v.itemsize else v.strides
        else:
            s = self._interp.strides_of(self)
        return s if dim is None else s[dim]

    def storage_offset(self) -> int:
        """The position of the first element in the memory that this tensor's family of views shares."""
        v = innermost(self)
        root = v
        while isinstance(root.base, ndarray):
            root = root.base
        if root is v or not v.itemsize:
            return 0
        return (v.__array_interface__["data"][0] - root.__array_interface__["data"][0]) // v.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return innermost(self).__array_interface__["data"][0]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in memory in row-major order without gaps."""
        if self.is_nested or self.layout.name.startswith("sparse"):
            return True  # packed rows, and stored numbers, always do
        expected = 1
        order = list(zip(self.shape, self.stride(), strict=True))
        if memory_format is not None and memory_format.name.startswith("channels_last"):
            rank = 4 if memory_format.name == "channels_last" else 5
            if len(order) != rank:
                return False
            order = [order[0], *order[2:], order[1]]
        for n, s in reversed(order):
            if n != 1:
                if s != expected:
                    return self.numel() == 0
                expected *= n
        return True

    @property
    def is_floating_point(self) -> Any:
        """Whether the type is real floating (callable, as in PyTorch)."""
        return _Flag(self.dtype.category == dt.FLOAT)

    @property
    def is_complex(self) -> Any:
        """Whether the type is complex (callable, as in PyTorch)."""
        return _Flag(self.dtype.category == dt.COMPLEX)

    @property
    def is_nested(self) -> bool:
        """Whether the tensor is ragged."""
        return getattr(innermost(self), "is_nested", False)

    @property
    def is_sparse(self) -> bool:
        """Whether the tensor is sparse, by coordinates (PyTorch's name for that layout alone)."""
        return getattr(innermost(self), "layout", None) == "sparse_coo"

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the tensor is sparse, by rows."""
        return getattr(innermost(self), "layout", None) == "sparse_csr"

    is_cuda = is_quantized = is_mkldnn = is_xla = is_xpu = is_ipu = is_hpu = is_mps = is_mtia = is_maia = is_vulkan = (
        False
    )

    @property
    def is_meta(self) -> bool:
        """Whether the tensor has a shape and a type, and no elements."""
        return payload_of(innermost(self)).device == "meta"

    def is_conj(self) -> bool:
        """Whether conjugation is pending: never, it is applied at once."""
        return False

    is_neg = is_conj

    def resolve_conj(self) -> Tensor:
        """Self: conjugation is never pending."""
        return self

    resolve_neg = resolve_conj

    @property
    def device(self) -> Any:
        """Where the elements are."""
        return _device().META if self.is_meta else _device().CPU

    @property
    def layout(self) -> Any:
        """How the elements are laid out."""
        v = innermost(self)
        return getattr(_device(), payload_of(v).layout_of(v))

    # -- values -------------------------------------------------------------------------------------------------------
    def concrete(self, what: str) -> Any:
        """The payload, for operations that need actual values; refused under vmap and jit."""
        x: Any = self
        while x._interp is not None:
            x._interp.check(what)
            if x._interp.kind == "vmap":
                raise ChainruleError(
                    f"{what} needs one concrete value, but under vmap this tensor stands for {x._interp.size} examples at once: vmap does not "
                    f"support {what} on a Tensor, nor data-dependent control flow. Use where(), masks or arithmetic instead of Python control "
                    f"flow, or call it outside of vmap." + see("Branches on values, under vmap or jit")
                )
            if x._interp.kind == "record":
                raise x._interp.refusal(what)
            x = x._value
        return x._value

    def item(self) -> Any:
        """The only element as a Python number."""
        v = self.concrete("item()")
        if v.size != 1:
            raise ChainruleError(
                f"a Tensor with {v.size} elements cannot be converted to Scalar (item() wants exactly one)"
            )
        r = v.reshape(()).item()
        return float(r) if dt.FROM_NP[v.dtype].category == dt.FLOAT else r

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        v = self.concrete("tolist()")
        return v.astype(np.float64).tolist() if v.dtype in dt.HALVES else v.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The elements as a NumPy array that shares this tensor's memory."""
        if not force and self._recorded:
            if not grad_enabled():
                return self.detach().numpy()
            raise ChainruleError(
                "numpy(): Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead. (It would lose the gradient.)"
            )
        v = self.concrete("numpy()")
        if not force and self.dtype.category >= dt.FLOAT and self._has_tangent():
            raise ChainruleError(
                "numpy() on a tensor that has a tangent (inside jvp or a dual level) would lose the derivative: write x.detach().numpy() "
                "if that is meant."
            )
        return v if type(v) is ndarray else payload_of(v).numpy(v)

    def _has_tangent(self) -> bool:
        """Whether forward mode at some level would lose the derivative of this tensor."""
        x: Any = self
        while x._interp is not None:
            if x._interp.kind == "jvp" and x._aux is not None:
                return True
            x = x._value
        return False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        v = self.numpy()
        if type(v) is list:
            return self.concrete("__array__")._no_array()
        if dtype is not None and v.dtype != dtype:
            if copy is False:
                raise ValueError(
                    f"__array__: a tensor of type {self.dtype} as an array of type {np.dtype(dtype)} is a copy, which copy=False forbids"
                )
            return v.astype(dtype)
        return v.copy() if copy else v

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise ChainruleError(
                f"bool(): Boolean value of Tensor with {'more than one value' if self.numel() else 'no values'} is ambiguous (shape "
                f"{list(self.shape)}): use .any(), .all() or where()"
            )
        return bool(self.concrete("bool()").reshape(()))

    def __float__(self) -> float:
        return float(self._real_only("double"))

    def __int__(self) -> int:
        return int(self._real_only("int64_t"))

    def _real_only(self, kind: str) -> Any:
        v = self._only()
        if type(v) is complex:
            if v.imag != 0:
                raise ChainruleError(
                    f"value cannot be converted to type {kind} without overflow: {v} has an imaginary part"
                )
            return v.real
        return v

    def __complex__(self) -> complex:
        return complex(self._only())

    def _only(self) -> Any:
        if self.numel() != 1:
            raise ValueError(
                f"only one element tensors can be converted to Python scalars, this one has {self.numel()}"
            )
        return self.item()

    def __index__(self) -> int:
        if self.dtype.category > dt.INT:
            raise TypeError(f"only integer tensors of a single element can be used as an index, got {self.dtype}")
        return int(self.item())

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __hash__(self) -> int:
        return id(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from ..people.reprs import tensor_html

        return tensor_html(self)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from .printing import tensor_repr

        return tensor_repr(self)

    def __format__(self, spec: str) -> str:
        # A number prints as one, as in PyTorch; what a transform made of it has more to say, and subclasses print as themselves.
        alone = self._interp is None or self._interp.level == 0
        plain = not self.ndim and (spec or (type(self) is Tensor and alone and not self.is_meta))
        return self.item().__format__(spec) if plain else object.__format__(repr(self), "")

    def __reduce_ex__(self, protocol: Any) -> Any:
        if (i := self._transformed()) is not None:
            raise ChainruleError(
                f"pickle: inside {i.kind} this tensor is no value of its own but a variable of that transform; return it from the transformed function, "
                f"and pickle the result"
            )
        return _rebuild, (type(self), innermost(self), self.requires_grad), self.__dict__ or None

    def __deepcopy__(self, memo: Any) -> Tensor:
        if self._interp is not None and not self.is_leaf:
            raise ChainruleError("only tensors that are leaves support deepcopy: call .detach() or .clone() first")
        if id(self) in memo:
            return memo[id(self)]
        if (
            self._transformed() is not None
        ):  # a copy is a value like any other: of each example, and with its derivative
            new = memo[id(self)] = self.clone() if type(self) is Tensor else self.clone().as_subclass(type(self))
            return new
        m = self._meta
        if m is not None and m.base is not None and self._interp is m.base._interp is None and type(self) is Tensor:
            from .views import view_again  # it shares the copy's memory, as this one shares its base's

            new = memo[id(self)] = view_again(deepcopy(m.base, memo), m.chain)
        else:
            v = innermost(self)
            # The memory may have been copied already, as a storage of the same structure.
            seen = (
                memo.get("torch", {}).get(v.__array_interface__["data"][0]) if type(v) is ndarray and v.size else None
            )
            if seen is not None and v.flags.c_contiguous and v.nbytes == seen.nbytes():
                v = seen.as_tensor(self.dtype)._value.reshape(v.shape)
            else:
                v = v.copy()
            new = memo[id(self)] = _rebuild(type(self), v, self.requires_grad)
        if self._meta is not None and self._meta.grad is not None:
            new.grad = deepcopy(self._meta.grad, memo)
        if self.__dict__:
            new.__dict__.update(deepcopy(self.__dict__, memo))
        return new

    def _transformed(self) -> Interpreter | None:
        """The outermost active transform that this tensor is a variable of, or made of; the imperative style is none."""
        x: Any = self
        while (i := x._interp) is not None:
            if i.alive and i.level and i.level % 1 == 0:
                return i
            x = x._value
        return None

    # -- imperative differentiation: the reverse interpreter at level 0 (core/imperative.py attaches the rest) ---------
    @property
    def _recorded(self) -> bool:
        """Whether reverse mode records what is done with this tensor at any level: inside a ``vmap`` or ``jvp`` too."""
        i = self._interp
        return i is not None and (i.kind == "reverse" or self._value._recorded)

    @property
    def requires_grad(self) -> bool:
        """Whether reverse mode records what is done with this tensor, at the innermost level that it belongs to. A dual level is none of its own."""
        i = self._interp
        return i is not None and (i.kind == "reverse" or i.is_walked(self))

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self.requires_grad_(on)


OWN = frozenset(vars(Tensor))  # what the class itself has; the rest is attached to it


class _Flag(int):
    """A truth value that can also be called, since PyTorch has methods where a property reads better."""

    def __call__(self) -> bool:
        return bool(self)

    def __repr__(self) -> str:
        return repr(bool(self))


def _rebuild(cls: type, value: Any, requires_grad: bool) -> Tensor:
    t: Tensor = object.__new__(cls)
    Tensor.__init__(t, value)
    if requires_grad:
        t.requires_grad_()
    return t


def _legacy(value: Any) -> Any:
    """PyTorch's constructor ``Tensor(data)``: what is no payload is converted at the default type."""
    if type(value) in PAYLOADS:
        return value
    if isinstance(value, Tensor):
        return value.concrete("Tensor()")
    if isinstance(value, np.generic):
        return np.asarray(value)
    if isinstance(value, int):
        return np.zeros((value,), dt.get_default_dtype().np)
    if type(value) is Size:
        return np.zeros(value, dt.get_default_dtype().np)
    return np.array(value, dtype=dt.get_default_dtype().np)
