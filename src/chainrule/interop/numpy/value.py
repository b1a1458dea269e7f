"""Array: what a function of NumPy arrays is handed inside a transform. NumPy's functions, methods and promotion work on it.

It is a thin box around a :class:`Tensor`, which belongs to whatever level is active; the tensor knows the derivatives, the box knows
NumPy's names and types. Nothing of it is on the way of a function of tensors. Where no level is involved, NumPy itself does the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes as dt
from ...core.dispatch import innermost
from ...core.errors import ChainruleError
from ...core.tensor import Tensor
from ...core.views import meta
from .advice import against_conversion, against_number

ndarray = np.ndarray
NUMBERS = (bool, int, float, complex)


if TYPE_CHECKING:
    Base = Any  # methods, operators and protocols are attached by the other files of this folder
else:
    Base = object


class Array(Base):
    """A NumPy array that belongs to a transform: same names, same types, with derivatives."""

    # The tensor is made when it is first asked for. Until then an array inside a single gradient is a value, the level and the node that made it: all
    # that the next ufunc needs (see `direct.py`).
    __slots__ = ("__weakref__", "_box", "_d", "_level", "_node", "_value")
    _box: Tensor
    _d: np.dtype[Any]
    _level: Any
    _node: Any
    _value: Any
    __array_priority__ = 1100.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any) -> None:
        t = as_constant(value, "Array")
        self._box, self._d, self._level = t, innermost(t).dtype, None

    @property
    def _t(self) -> Tensor:
        """The tensor inside. From now on it is what counts: it may be written to."""
        level = self._level
        if level is not None:
            self._level = None
            low = Tensor(self._value)
            meta(low).pinned = True
            self._box = Tensor(low, level, self._node)
        return self._box

    @property
    def tensor(self) -> Tensor:
        """The tensor inside, for chainrule's own functions."""
        return self._t

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the dimensions."""
        return self._value.shape if self._level is not None else tuple(self._box.shape)

    @shape.setter
    def shape(self, shape: Any) -> None:
        self._box = self._t.reshape(tuple(shape) if isinstance(shape, tuple | list) else (shape,))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._value.ndim if self._level is not None else self._box.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._value.size if self._level is not None else self._box.numel()

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type, one of NumPy's."""
        return self._d

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return self._d.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes all elements take."""
        return self.size * self._d.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in bytes from one entry of a dimension to the next."""
        return tuple([s * self._d.itemsize for s in self._t.stride()])

    @property
    def flags(self) -> Any:
        """How the elements lie in memory."""
        return innermost(self._t).flags

    @property
    def device(self) -> str:
        """Where the elements are, by the name the Array API standard gives it."""
        return "cpu"

    @property
    def base(self) -> None:
        """None: what an array is a view of is known to its tensor."""
        return None

    # -- values ---------------------------------------------------------------------------------------------------------
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> ndarray:
        t = self._t
        if t._interp is not None:
            raise ChainruleError(against_conversion(sys._getframe(1)))
        v = t._value
        if dtype is not None and v.dtype != dtype:
            if copy is False:
                raise ValueError(
                    f"__array__: an array of type {v.dtype} as {np.dtype(dtype)} is a copy, which copy=False forbids"
                )
            return v.astype(dtype)
        return v.copy() if copy is not False else v

    def item(self, *args: Any) -> Any:
        """An element as a Python number."""
        return self._bare("item()").item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self._bare("tolist()").tolist()

    def tobytes(self, order: Any = "C") -> bytes:
        """The elements' memory."""
        return self._bare("tobytes()").tobytes(order)

    def _bare(self, what: str) -> Any:
        """The values without their derivative, where there is none to lose."""
        t = self._t
        if t._interp is not None and self._d.kind in "fc" and differentiated(t):
            raise ChainruleError(
                f"{what} of an array that is being differentiated would lose the derivative. Write chainrule.numpy.stop_gradient(x) (of a tensor "
                f"x.detach()) for the value alone, and that where the derivative is not wanted; x[0], x.sum() and their like keep it."
            )
        return t.concrete(what)

    def __bool__(self) -> bool:
        return bool(agreed(self._t, "bool()"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __int__(self) -> int:
        return int(agreed(self._t, "int()"))

    def __round__(self, ndigits: int | None = None) -> Any:
        """As NumPy's numbers have it: without `ndigits` an integer of Python's. Arrays with dimensions have none."""
        if self.ndim:
            raise TypeError("only 0-d arrays have __round__(); write np.round(x)")
        return int(np.rint(self)) if ndigits is None else np.round(self, ndigits)

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __trunc__(self) -> int:
        return int(self)

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def _number(self, what: str) -> Any:
        """The only element, where that loses no derivative: Python's math functions and np.float64 ask for it."""
        t = self._t
        if t._interp is not None and self._d.kind in "fc" and differentiated(t):
            raise ChainruleError(
                f"{against_number(sys._getframe(2))}{what}(x) of an array that is being differentiated would lose the derivative: "
                f"write np.sin for math.sin, x.astype(...) for np.float64(x), np.zeros(shape, like=x) for an ndarray that x is written to; "
                f"chainrule.numpy.stop_gradient(x) is the bare number."
            )
        try:
            v = t.concrete(f"{what}()")
        except ChainruleError as e:
            if advice := against_number(sys._getframe(2)):
                raise ChainruleError(advice + str(e)) from None
            raise
        return v.item() if not v.ndim else v

    def __index__(self) -> int:
        if self._d.kind not in "iu" or self.ndim:
            raise TypeError(f"only 0-d integer arrays are an index, got {self._d} of shape {self.shape}")
        return int(agreed(self._t, "index()"))

    def __len__(self) -> int:
        s = self._t.shape
        if not s:
            raise TypeError("len() of unsized object")
        return s[0]

    def __iter__(self) -> Any:
        if not self._t.ndim:
            raise TypeError("iteration over a 0-d array")
        d = self._d
        if self._t.ndim == 1:  # numbers are values: what they are when their turn comes, whatever is written later
            return (made(t.clone(), d) for t in self._t.unbind(0))
        return iter([made(t, d) for t in self._t.unbind(0)])

    def __contains__(self, x: Any) -> bool:
        return bool((self == x).any())

    def __repr__(self) -> str:
        v = innermost(self._t)
        if self._t._interp is None:
            return repr(v).replace("array(", "Array(")
        kinds = []
        t: Any = self._t
        while t._interp is not None:
            kinds.append(t._interp.kind)
            t = t._value
        return f"Array(shape={self.shape}, dtype={self._d}, inside {' of '.join(kinds)}, values {np.array2string(v, threshold=20)})"

    def __format__(self, spec: str) -> str:
        return format(self._t.concrete("format()").item(), spec) if spec and not self.ndim else repr(self)

    def __reduce__(self) -> Any:
        return Array, (self.__array__(),)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array

    def __copy__(self) -> Array:
        return made(self._t.clone(), self._d)

    def __deepcopy__(self, memo: Any) -> Array:
        return made(self._t.clone(), self._d)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The Array API standard's functions."""
        from ... import array_api

        return array_api.at_version(api_version)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        """Itself: arrays are on the CPU."""
        if device not in ("cpu", None):
            raise ValueError(f"to_device: there is only the device 'cpu', got {device!r}")
        return self

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        return self._t.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> Any:
        return self._t.__dlpack_device__()


def batched(t: Any) -> bool:
    """Whether a tensor stands for several examples, or for those of other calls of a recorded function, so that its values decide nothing."""
    return any(i.kind == "vmap" or i.kind == "record" for i in levels(t))


def agreed(t: Tensor, what: str) -> Any:
    """The value of a tensor: under vmap one on which all examples agree, so that each goes the way it would go alone."""
    v = common_value(t, what)
    return t.concrete(what) if v is None else v


def common_value(t: Tensor, what: str) -> Any:
    """The value of a tensor; None where it differs between the examples of a vmap, or between the calls of a recorded function."""
    kinds = set()
    for i in levels(t):
        i.check(what)
        kinds.add(i.kind)
    v = innermost(t)
    if "record" in kinds:
        return None
    if "vmap" not in kinds:
        return v
    each = v.reshape(-1, *t.shape)
    return each[0] if len(each) and (each == each[0]).all() else None


def levels(t: Any) -> Iterator[Any]:
    """The levels that a tensor belongs to, from the innermost transform outwards."""
    while t._interp is not None:
        yield t._interp
        t = t._value


def differentiated(t: Any) -> bool:
    """Whether a level that takes derivatives is involved."""
    return any(i.kind != "vmap" for i in levels(t))


_new = object.__new__


def made(t: Tensor, d: Any) -> Array:
    """The array around a tensor of the type `d`."""
    a = _new(Array)
    a._box = t
    a._d = d
    a._level = None
    return a


def wrap(t: Tensor) -> Array:
    """The array around a tensor."""
    a = _new(Array)
    a._box = t
    a._d = innermost(t).dtype
    a._level = None
    return a


def entered(level: Any, v: ndarray, node: Any) -> Array:
    """An array whose tensor, of a value at a level, is made when somebody asks for it."""
    a = _new(Array)
    a._d = v.dtype
    a._value = v
    a._node = node
    a._level = level
    return a


def refuse(a: Any, what: str) -> TypeError:
    """Why an array of NumPy's cannot take part."""
    kind = (
        "a masked array: differentiate with respect to x.data, and use np.where with the mask"
        if isinstance(a, np.ma.MaskedArray)
        else "a matrix: pass np.asarray(x), whose products are written @"
        if isinstance(a, np.matrix)
        else f"an array of the structured type {a.dtype}: pass its fields as a dict of arrays"
        if a.dtype.names
        else "an array of Python objects: convert with x.astype(float), or pass a list of arrays"
        if a.dtype == object
        else f"an array of type {a.dtype}, which has no arithmetic here: convert with x.astype(np.float64)"
    )
    return TypeError(f"{what}: got {kind}")


def check_array(a: ndarray, what: str) -> ndarray:
    """A plain array of a type that tensors have, or an error that says what to write."""
    if type(a) is not ndarray:
        if isinstance(a, np.ma.MaskedArray | np.matrix) or a.dtype.names:
            raise refuse(a, what)
        a = np.asarray(a)
    if a.dtype not in dt.FROM_NP:
        if a.dtype.newbyteorder("=") in dt.FROM_NP:
            return a.astype(a.dtype.newbyteorder("="))
        raise refuse(a, what)
    return a


def as_constant(x: Any, what: str = "array") -> Tensor:
    """The tensor of an Array, a tensor, an array of NumPy's, a number, or nested lists of them."""
    if type(x) is Array:
        return x._t
    if isinstance(x, Tensor):
        return x
    if isinstance(x, ndarray):
        a = check_array(x, what)
        # Whoever made the array may write to it later, and a tape may keep this value.
        return Tensor(a.copy() if a is x and a.flags.writeable else a)
    if isinstance(x, list | tuple) and holds_arrays(x):
        return stack_nested(x, None)
    return Tensor(check_array(np.asarray(x), what))


def holds_arrays(x: Any) -> bool:
    """Whether nested lists have arrays of a transform, or tensors, in them."""
    if type(x) is Array or isinstance(x, Tensor):
        return True
    return isinstance(x, list | tuple) and any(holds_arrays(v) for v in x)


def stack_nested(x: Any, dtype: Any) -> Tensor:
    """Nested lists of arrays and numbers as one tensor: ``np.array(x)``."""
    from ...core.registry import PUBLIC

    def parts(v: Any) -> Any:
        return [parts(w) for w in v] if isinstance(v, list | tuple) and holds_arrays(v) else v

    def leaves(v: Any) -> list[Any]:
        return [w for u in v for w in leaves(u)] if isinstance(v, list) else [v]

    tree = parts(x)
    d = np.dtype(dtype) if dtype is not None else result_type(*leaves(tree))

    def build(v: Any) -> Tensor:
        if isinstance(v, list):
            ts = [build(w) for w in v]
            if len({tuple(t.shape) for t in ts}) > 1:
                raise ValueError(
                    f"array: the parts have different shapes, {[tuple(t.shape) for t in ts]}, so they are no array"
                )
            return PUBLIC["stack"](ts)
        return cast(as_constant(v), d)

    return build(tree)


def dtype_of(x: Any) -> Any:
    """What NumPy's promotion wants to know of an operand: an array's type, or a Python number itself."""
    if type(x) is Array:
        return x._d
    if isinstance(x, Tensor):
        return innermost(x).dtype
    return x if isinstance(x, NUMBERS) else np.asarray(x).dtype if not hasattr(x, "dtype") else x.dtype


def result_type(*xs: Any) -> np.dtype[Any]:
    """NumPy's common type of arrays and numbers."""
    return np.result_type(*[dtype_of(x) for x in xs])


def cast(t: Tensor, d: Any) -> Tensor:
    """A tensor in another of NumPy's types."""
    have = innermost(t).dtype
    if have == d:
        return t
    want = dt.FROM_NP.get(np.dtype(d))
    if want is None:
        raise TypeError(
            f"arrays of type {np.dtype(d)} have no arithmetic here; use one of {', '.join(k.name for k in dt.ALL)}"
        )
    if have.kind == "c" and want.category != dt.COMPLEX and want is not dt.bool_:
        t = t.real
    return t.to(want)


def is_concrete(x: Any) -> bool:
    """Whether no transform is involved in an operand."""
    return (x._t if type(x) is Array else x)._interp is None if type(x) is Array or isinstance(x, Tensor) else True


def to_numpy(x: Any) -> Any:
    """Arrays without a level, in lists and dicts too, as NumPy's own."""
    k = type(x)
    if k is Array:
        return x._t._value
    if k is list or k is tuple:
        return k([to_numpy(v) for v in x])
    if k is dict:
        return {n: to_numpy(v) for n, v in x.items()}
    if k is slice and not (x.start is None and x.stop is None and x.step is None):
        return slice(to_numpy(x.start), to_numpy(x.stop), to_numpy(x.step))
    return x._value if isinstance(x, Tensor) else x


def from_numpy(y: Any, inputs: Any = ()) -> Any:
    """Results of NumPy's functions as Arrays; what shares memory with an input is copied, as a tape may keep that."""
    if isinstance(y, ndarray):
        if y.dtype not in dt.FROM_NP:
            return y
        for v in inputs:
            if isinstance(v, ndarray) and np.may_share_memory(v, y):
                y = y.copy()
                break
        return made(Tensor(np.asarray(y)), y.dtype)
    if isinstance(y, np.generic):
        return made(Tensor(np.asarray(y)), y.dtype) if y.dtype in dt.FROM_NP else y
    if isinstance(y, tuple) and hasattr(y, "_fields"):
        return type(y)(*[from_numpy(v, inputs) for v in y])
    if isinstance(y, list | tuple):
        return type(y)([from_numpy(v, inputs) for v in y])
    return y


def arrays_in(x: Any, found: list[Any]) -> list[Any]:
    """The Arrays and tensors among arguments, in lists, tuples and dicts too."""
    k = type(x)
    if k is Array or isinstance(x, Tensor):
        found.append(x)
    elif k is list or k is tuple:
        for v in x:
            arrays_in(v, found)
    elif k is dict:
        for v in x.values():
            arrays_in(v, found)
    return found


def method(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of an Array its method."""
    setattr(Array, f.__name__, f)
    return f
