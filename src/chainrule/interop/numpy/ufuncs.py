"""``__array_ufunc__``: NumPy's ufuncs on Arrays and tensors. NumPy says which types a ufunc computes in, an op of ours does it.

`OPS_OF` is the table: the ufunc's name, and the public function of chainrule that has its derivative. A ufunc of scipy.special is found
by its name in `SPECIAL`. One that is in neither raises, naming it, unless no transform is involved: then NumPy itself runs.
"""

from __future__ import annotations

import dis
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dispatch import innermost
from ...core.errors import MissingRuleError
from ...core.op import OPS
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.types import REAL_NUMS
from ...core.views import assign
from .direct import Direct, of_one, of_two
from .value import Array, as_constant, cast, check_array, from_numpy, is_concrete, levels, made, to_numpy, wrap

ndarray = np.ndarray
_SAME = (
    "exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan sinh cosh tanh floor ceil trunc isfinite isinf isnan signbit "
    "logical_not deg2rad rad2deg positive floor_divide remainder fmod float_power maximum minimum fmax fmin hypot copysign nextafter "
    "logaddexp logaddexp2 heaviside ldexp gcd lcm bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor"
)
OPS_OF: dict[str, str] = {n: n for n in _SAME.split()} | {
    "absolute": "abs",
    "fabs": "abs",
    "negative": "neg",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "power": "pow",
    "radians": "deg2rad",
    "degrees": "rad2deg",
    "rint": "round",
    "sign": "sgn",
    "conjugate": "conj",
    "invert": "bitwise_not",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "equal": "eq",
    "not_equal": "ne",
    "matmul": "matmul",
}
# scipy.special's ufuncs, by their names there.
SPECIAL: dict[str, str] = {
    n: f"special.{n}"
    for n in (
        "erfcx erfinv expit logit log_ndtr ndtr ndtri gammaln i0 i0e i1 i1e xlogy xlog1py zeta gammainc gammaincc psi "
        "expm1 log1p exp2 entr"
    ).split()
} | {
    "j0": "special.bessel_j0",
    "j1": "special.bessel_j1",
    "y0": "special.bessel_y0",
    "y1": "special.bessel_y1",
    "digamma": "special.digamma",
    "k0": "special.modified_bessel_k0",
    "k1": "special.modified_bessel_k1",
    "k0e": "special.scaled_modified_bessel_k0",
    "k1e": "special.scaled_modified_bessel_k1",
    "loggamma": "special.gammaln",
    "_zeta": "special.zeta",
    "lgamma": "special.gammaln",
}
_CACHE: dict[Any, Any] = {}
_FUNCTIONS: dict[Any, Callable[..., Any]] = {}
_OF_TENSORS: set[Any] = {np.heaviside}  # those whose function is written with tensors: numbers are made ones first


def public_bind(name: str) -> Callable[..., Any]:
    """A public function by the shortest way in."""
    f = PUBLIC[name]
    return f.op.bind if hasattr(f, "op") else f


def function_of(ufunc: Any) -> Callable[..., Any] | None:
    """What computes a ufunc on tensors of the types it wants, or None."""
    f = _FUNCTIONS.get(ufunc)
    if f is None:
        name = ufunc.__name__
        scipy = ufunc not in _NUMPYS
        table = SPECIAL if scipy else OPS_OF
        if not scipy and name in COMPOSED:
            f = COMPOSED[name]
            _OF_TENSORS.add(ufunc)
        elif name in table:
            f = public_bind(table[name])
        elif scipy:
            from ...ops.special.orders import ORDERED
            from .special import COMPOSED_SPECIAL

            whole = {"yn": "yv", "kn": "kv"}.get(name)  # of integer orders: SciPy cuts off the rest of others
            name = whole or {"jn": "jv"}.get(name, name)
            f = ORDERED[name].bind if name in ORDERED else COMPOSED_SPECIAL.get(name)
            if whole:
                f = lambda n, x, f=f: f(n.trunc(), x)
            if whole or name in COMPOSED_SPECIAL:
                _OF_TENSORS.add(ufunc)
        if f is None:
            return None
        _FUNCTIONS[ufunc] = f
    return f


_NUMPYS = {v for v in vars(np).values() if isinstance(v, np.ufunc)}


# -- ufuncs that are no single op ---------------------------------------------------------------------------------------


def _cbrt(x: Tensor) -> Tensor:
    return x.sgn() * x.abs().pow(1 / 3)


def _sign(x: Tensor) -> Tensor:
    return PUBLIC["sgn"](x) if x.dtype.is_complex else PUBLIC["sign"](x)


def _modf(x: Tensor) -> tuple[Tensor, Tensor]:
    whole = x.trunc()
    return (x - whole).where(x.isfinite(), x * 0), whole


def _frexp(x: Tensor) -> Any:
    return tuple(PUBLIC["frexp"](x))


def _divmod(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    return PUBLIC["floor_divide"](a, b), PUBLIC["remainder"](a, b)


def _vecdot(a: Tensor, b: Tensor) -> Tensor:
    return (a.conj() * b if a.dtype.is_complex else a * b).sum(-1)


def _matvec(a: Tensor, b: Tensor) -> Tensor:
    return PUBLIC["matmul"](a, b.unsqueeze(-1)).squeeze(-1)


def _vecmat(a: Tensor, b: Tensor) -> Tensor:
    return PUBLIC["matmul"]((a.conj() if a.dtype.is_complex else a).unsqueeze(-2), b).squeeze(-2)


def _float_power(a: Any, b: Any) -> Tensor:
    return PUBLIC["pow"](a, b)


COMPOSED: dict[str, Callable[..., Any]] = {
    "cbrt": _cbrt,
    "sign": _sign,
    "modf": _modf,
    "frexp": _frexp,
    "divmod": _divmod,
    "vecdot": _vecdot,
    "matvec": _matvec,
    "vecmat": _vecmat,
    "float_power": _float_power,
}
_COMPARISONS = frozenset((np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal))
# What NumPy's comparisons and integer functions cannot be asked under vmap, and need not: no derivative, computed on values.
VALUES = frozenset("spacing bitwise_count isnat".split())


# -- calling --------------------------------------------------------------------------------------------------------------


def _kind(x: Any) -> Any:
    if type(x) is Array:
        return x._d
    k = type(x)
    if k is int or k is float or k is complex:
        return k
    if k is bool:
        return np.dtype(bool)
    if isinstance(x, Tensor):
        return x.dtype.np
    if isinstance(x, ndarray):
        return check_array(x, "a ufunc").dtype
    return np.asarray(x).dtype if not isinstance(x, np.generic) else x.dtype


def _resolve(ufunc: Any, kinds: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    key = (ufunc, kinds, dtype)
    r = _CACHE.get(key)
    if r is None:
        outs = (None,) * ufunc.nout
        sig = None if dtype is None else (None,) * ufunc.nin + (np.dtype(dtype),) * ufunc.nout
        r = _CACHE[key] = ufunc.resolve_dtypes(kinds + outs, **({} if sig is None else {"signature": sig}))
    return r


def call(ufunc: Any, *inputs: Any, dtype: Any = None) -> Any:
    """``ufunc(*inputs)`` as Arrays: in NumPy's types, by the ops that have the derivative."""
    f = _FUNCTIONS.get(ufunc) or function_of(ufunc)
    if f is None:
        raise MissingRuleError(
            f"{ufunc.__name__}: this ufunc has no derivative here (python -m chainrule coverage numpy lists those that have); "
            f"apply it to chainrule.numpy.stop_gradient(x) if its value is a constant"
        )
    types = _resolve(ufunc, tuple([_kind(x) for x in inputs]), dtype)
    args = []
    for x, d in zip(inputs, types, strict=False):
        if type(x) is int and d.kind in "iu" and not np.iinfo(d).min <= x <= np.iinfo(d).max:
            if ufunc not in _COMPARISONS:
                raise OverflowError(f"{ufunc.__name__}: Python integer {x} out of bounds for {d}")
            # Beyond all that the type can hold: compared with as infinity is.
            return call(ufunc, *[math.copysign(math.inf, v) if v is x else v for v in inputs])
        if (type(x) is float or type(x) is int) and ufunc not in _OF_TENSORS:
            args.append(x)
            continue
        t = x._t if type(x) is Array else as_constant(x, ufunc.__name__)
        args.append(t if t._interp is None and t._value.dtype is d else cast(t, d))  # type: ignore[arg-type]
    if ufunc is np.power and types[1].kind == "i" and _negative(args[1]):
        raise ValueError("Integers to negative integer powers are not allowed.")
    if not any(isinstance(a, Tensor) for a in args):
        args[0] = as_constant(args[0])  # type: ignore[call-overload]
    y = f(*args)
    outs = types[ufunc.nin :]
    if type(y) is tuple:
        return tuple([made(cast(v, d), d) for v, d in zip(y, outs, strict=True)])
    return made(cast(y, outs[0]), outs[0])


def _negative(exponent: Any) -> bool:
    """Whether an integer exponent is negative somewhere; what a recorded call would be told is about another one."""
    if not isinstance(exponent, Tensor):
        return exponent < 0
    return all(i.kind != "record" for i in levels(exponent)) and bool((innermost(exponent) < 0).any())


def operate(ufunc: Any, method: str, inputs: tuple[Any, ...], kw: dict[str, Any], rebinds: bool = False) -> Any:
    """``__array_ufunc__`` with Arrays (and no tensors) among its arguments."""
    out = kw.pop("out", None)
    mask = kw.pop("where", True)
    casting = kw.get("casting", "same_kind")
    if method == "__call__":
        if all(is_concrete(x) for x in inputs) and (mask is True or is_concrete(mask)) and _plain_out(out):
            y = from_numpy(
                ufunc(*[to_numpy(x) for x in inputs], **({} if mask is True else {"where": to_numpy(mask)}), **kw)
            )
        elif ufunc.__name__ in VALUES:
            y = from_numpy(ufunc(*[x._t.concrete(ufunc.__name__) if type(x) is Array else x for x in inputs]))
        else:
            y = call_with(ufunc, inputs, kw, mask, out)
    else:
        from .ufunc_methods import METHODS

        y = METHODS[method](ufunc, *inputs, **kw, **({} if mask is True else {"where": mask}))  # type: ignore[operator]
        if method == "at":
            return None
    return y if out is None else write_out(ufunc.__name__, out, y, rebinds, casting)


def _plain_out(out: Any) -> bool:
    return out is None or all(o is None or type(o) is not Array or o._t._interp is None for o in out)


def call_with(ufunc: Any, inputs: tuple[Any, ...], kw: dict[str, Any], mask: Any, out: Any) -> Any:
    """A ufunc's call with ``where=`` and those of its keywords that change the result."""
    dtype = kw.pop("dtype", None)
    if isinstance(dtype, type) and issubclass(dtype, np.dtype):
        dtype = dtype()  # type: ignore[call-overload]
    kw.pop("casting", None), kw.pop("order", None), kw.pop("subok", None)
    axes, axis, keepdims = kw.pop("axes", None), kw.pop("axis", None), kw.pop("keepdims", False)
    if kw:
        raise TypeError(f"{ufunc.__name__}: inside a transform {', '.join(kw)}= is not taken; leave it out")
    if axes is not None or axis is not None or keepdims:
        inputs, back = _to_last(ufunc, inputs, axes, axis, keepdims)  # type: ignore[assignment]
        return back(call(ufunc, *inputs, dtype=dtype))
    y = call(ufunc, *inputs, dtype=dtype)
    if mask is not True:
        before = out[0] if out is not None else None
        y = wrap(
            PUBLIC["where"](
                as_constant(mask), y._t, cast(as_constant(before), y._d) if before is not None else y._t * 0
            )
        )
    return y


def _to_last(ufunc: Any, inputs: Any, axes: Any, axis: Any, keepdims: bool) -> tuple[list[Any], Callable[[Any], Any]]:
    """The operands of a generalised ufunc with its core axes last, and what moves them back in the result."""
    core = {"vecdot": ((1, 1), 0), "matmul": ((2, 2), 2), "matvec": ((2, 1), 1), "vecmat": ((1, 2), 1)}.get(
        ufunc.__name__
    )
    if core is None:
        raise TypeError(f"{ufunc.__name__}: axis= and axes= belong to vecdot, matmul, matvec and vecmat")
    if axes is None:
        axes = [(axis if axis is not None else -1,)] * 2 + [()]
    each = [a if isinstance(a, tuple) else (a,) for a in axes]
    moved = [wrap(as_constant(x).movedim(a, tuple(range(-len(a), 0)))) for x, a in zip(inputs, each, strict=False)]
    last = each[2] if len(each) > 2 else ()

    def back(y: Any) -> Any:
        if keepdims:
            return wrap(y._t.unsqueeze(-1).movedim(-1, axis if axis is not None else -1))
        return wrap(y._t.movedim(tuple(range(-len(last), 0)), last)) if last else y

    return moved, back


def write_out(name: str, out: Any, y: Any, rebinds: bool = False, casting: str = "same_kind") -> Any:
    """Put results where ``out=`` says. A plain ndarray can hold no derivative: the name in ``a += x`` gets a new value, another `out` is refused."""
    outs = out if isinstance(out, tuple) else (out,)
    ys = y if isinstance(y, tuple) else (y,)
    got = []
    for o, v in zip(outs, ys, strict=True):
        if o is None:
            got.append(v)
        elif type(o) is Array or isinstance(o, Tensor):
            t = o._t if type(o) is Array else o
            if not np.can_cast(v._d, t.dtype.np, casting):  # type: ignore[arg-type, union-attr]
                raise TypeError(
                    f"{name}: cannot cast the result of type {v._d} to out= of type {t.dtype.np} with casting rule {casting!r}"  # type: ignore[union-attr]
                )
            if tuple(t.shape) != v.shape:
                np.broadcast_shapes(t.shape, v.shape)
                if np.broadcast_shapes(t.shape, v.shape) != tuple(t.shape):
                    raise ValueError(f"{name}: out= has shape {tuple(t.shape)}, the result {v.shape}")
            assign(t, cast(v._t, t.dtype.np), f"{name}(out=)")  # type: ignore[union-attr]
            got.append(o)
        elif v._t._interp is None:
            np.copyto(o, v._t._value, casting=casting)  # type: ignore[arg-type]
            got.append(o)
        elif rebinds:
            if np.broadcast_shapes(o.shape, v.shape) != o.shape or not np.can_cast(v._d, o.dtype, "same_kind"):
                raise ValueError(
                    f"{name}: the result has shape {v.shape} and type {v._d}, which does not fit the array written to ({o.shape}, {o.dtype})"
                )
            got.append(made(cast(v._t, o.dtype), o.dtype))
        else:
            raise TypeError(
                f"{name}: the array written to is an ndarray, which cannot hold a derivative. Make it inside the function with np.empty_like(x) or "
                f"np.empty(shape, like=x). (`a += x` works where a is the only name of the array: write a = a + x where it has others.)"
            )
    return tuple(got) if len(got) > 1 else got[0]


_INPLACE = {i for i, (_, symbol) in enumerate(getattr(dis, "_nb_ops", ())) if symbol.endswith("=")}
_BINARY_OP = dis.opmap["BINARY_OP"]


def _references(a: ndarray, frame: Any) -> int:
    """How many names refer to an array beside those on its way here, -1 where no statement ``a += x`` in this frame is what runs."""
    at, code = frame.f_lasti, frame.f_code.co_code
    if code[at] != _BINARY_OP or code[at + 1] not in _INPLACE:
        return -1
    base = a.base
    if base is None:
        return sys.getrefcount(a)
    return sys.getrefcount(a) if isinstance(base, ndarray) and sys.getrefcount(base) == _BASE else sys.maxsize


_ALONE: list[
    int
] = []  # what `_references` says where there is one name; found out below, as it depends on NumPy and Python
_BASE = 3  # the view, the name above and the argument


def array_ufunc(self: Array, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
    """NumPy's protocol for ufuncs."""
    if not kw and method == "__call__":
        # (A call with `*inputs` costs more than one with what is in them.)
        n = len(inputs)
        if (short := _DIRECT.get(ufunc)) is not None and n < 3:
            r = short(inputs[0]) if n == 1 else short(inputs[0], inputs[1])
            if r is not None:
                return r
        # Otherwise the common case: one real argument, or two of one type, by an op that keeps it.
        n = n if self._d.num in REAL_NUMS else 0
        if n == 1 and (f := _KEEPING.get(ufunc)) is not None:
            return made(f(self._t), self._d)
        if n == 2 and (f := _PAIRS.get(ufunc)) is not None:
            x, y = inputs
            if type(x) is Array and type(y) is Array and x._d is y._d:
                return made(f(x._t, y._t), x._d)
    if (
        not kw
        and method == "__call__"
        and self._t._interp is not None
        and not any(isinstance(x, Tensor) for x in inputs)
    ):
        return call(ufunc, *inputs) if ufunc.__name__ not in VALUES else operate(ufunc, method, inputs, kw)
    rebinds = False
    if method == "__call__" and (out := kw.get("out")) is not None and type(out[0]) is ndarray:
        # Where ``a += x`` is what runs and nobody else would see what is written, the name may get a new value instead.
        n = _references(out[0], sys._getframe(1))
        if not _ALONE:
            _ALONE.append(n)
        rebinds = 0 <= n <= _ALONE[0]
    for x in (*inputs, *kw.get("out", ())):
        if (
            type(x) is not Array
            and not isinstance(x, Tensor)
            and hasattr(x, "__array_ufunc__")
            and not isinstance(x, ndarray | np.generic)
        ):
            return NotImplemented
    return operate(ufunc, method, tuple([wrap(x) if isinstance(x, Tensor) else x for x in inputs]), kw, rebinds)


# The operators that tensors have themselves: np.multiply(a, t) is what Python calls for ``a * t``, with PyTorch's promotion.
OPERATORS = frozenset(
    "add subtract multiply divide floor_divide remainder power matmul bitwise_and bitwise_or bitwise_xor left_shift right_shift "
    "less less_equal greater greater_equal equal not_equal".split()
)


def tensor_ufunc(self: Tensor, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
    """NumPy's protocol for ufuncs on tensors: the result is a tensor, with its derivative."""
    if any(type(x) is Array for x in (*inputs, *kw.get("out", ()))):
        return array_ufunc(wrap(self), ufunc, method, *inputs, **kw)
    if not kw and method == "__call__" and ufunc.__name__ in OPERATORS and ufunc in _NUMPYS:
        return public_bind(OPS_OF[ufunc.__name__])(
            *[Tensor(np.asarray(x)) if isinstance(x, ndarray) else x for x in inputs]
        )
    out = kw.pop("out", None)
    y = operate(ufunc, method, tuple([wrap(x) if isinstance(x, Tensor) else x for x in inputs]), kw)
    if out is not None:
        if any(
            isinstance(o, ndarray) and _needs_graph(v)
            for o, v in zip(out, y if isinstance(y, tuple) else (y,), strict=True)
        ):
            raise TypeError(
                f"{ufunc.__name__}: out= is an ndarray, which cannot hold a derivative; pass a tensor, or x.detach()"
            )
        return write_out(ufunc.__name__, out, y)
    return tuple([v._t for v in y]) if isinstance(y, tuple) else y._t if type(y) is Array else y


def _needs_graph(y: Array) -> bool:
    return y._t._interp is not None


def _keeping(names: str) -> dict[Any, Callable[..., Any]]:
    return {getattr(np, n): public_bind(OPS_OF[n]) for n in names.split()}


_KEEPING = _keeping(
    "exp exp2 expm1 log log2 log10 log1p sqrt square reciprocal sin cos tan sinh cosh tanh arcsin arccos arctan arcsinh arccosh arctanh absolute "
    "negative"
)
_PAIRS = _keeping("add subtract multiply divide maximum minimum power arctan2 hypot logaddexp")
_DIRECT: dict[Any, Direct] = {
    u: f
    for table, make in ((_KEEPING, of_one), (_PAIRS, of_two))
    for u in table
    if (o := OPS.get(OPS_OF[u.__name__])) is not None and (f := make(o)) is not None
}
Array.__array_ufunc__ = array_ufunc


def _calibrate() -> None:
    """One name refers to the array: what does `_references` say?"""

    class Holder:
        a: Any

    h = Holder()
    h.a = np.zeros(1)
    h.a += from_numpy(np.zeros(1))


_calibrate()
Tensor.__array_ufunc__ = tensor_ufunc  # type: ignore[assignment, method-assign]
