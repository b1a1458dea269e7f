"""The way in as a built-in function: what has to hold is compared, results are made and the code is called, all in machine code.

Addresses (types, constants, what the function holds) stand in a table that is filled after linking, so that the code itself can come from
the disk. Where objects keep what is compared is looked for on real objects at the start; where it is not found, and for whatever is
not plain (another type, a level, another layout), None is returned and Python takes over. Reference counts are those of the C functions.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core import dtypes as dt
from ..core.casting import READY
from ..core.casting import STATE as AUTOCAST
from ..core.dispatch import CUT
from ..core.tensor import Tensor
from ..kernels import binding, compiler, objects
from ..kernels.objects import DESCR, DIMS, FLAGS, NDIM

SHORT = 200_000  # element operations below which the GIL is kept

DECLARATIONS = """
@table = global [{n} x ptr] zeroinitializer
@_Py_NoneStruct = external global i8
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare ptr @PyDict_GetItem(ptr, ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare ptr @PyDict_New()
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyErr_Occurred()
"""


def layout() -> dict[str, int] | None:
    """Offsets, or None where something is not where it is expected."""
    return objects.layout(lambda: Tensor(np.zeros(2)))


class Writer:
    """Lines of the function, and the table of addresses."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.table: list[int] = []
        self.held: list[Any] = []
        self.n = 0

    def ins(self, text: str) -> str:
        self.n += 1
        self.lines.append(f"  %r{self.n} = {text}")
        return f"%r{self.n}"

    def word(self, address: int, keep: Any = None) -> str:
        """An address of the table."""
        self.table.append(address)
        self.held.append(keep)
        return self.ins(f"load ptr, ptr getelementptr (ptr, ptr @table, i64 {len(self.table) - 1})")

    def object(self, x: Any) -> str:
        return self.word(id(x), x)

    def at(self, p: str, offset: int, ty: str = "ptr") -> str:
        return self.ins(f"load {ty}, ptr {self.ins(f'getelementptr i8, ptr {p}, i64 {offset}')}")

    def need(self, a: str, b: str, ty: str = "ptr") -> None:
        """Go on only if both are equal."""
        c = self.ins(f"icmp eq {ty} {a}, {b}")
        self.n += 1
        self.lines += [f"  br i1 {c}, label %l{self.n}, label %other", f"l{self.n}:"]

    def exists(self, p: str, otherwise: str) -> None:
        """Go on only if the address is not NULL."""
        c = self.ins(f"icmp eq ptr {p}, null")
        self.n += 1
        self.lines += [f"  br i1 {c}, label %{otherwise}, label %l{self.n}", f"l{self.n}:"]


def buildable(spec: Any) -> bool:
    """Whether a tree is made of lists, tuples and dicts of tensors, with words for keys."""
    if spec.kind is None:
        return True
    if spec.kind is dict:
        if not all(type(k) is str for k in spec.context):
            return False
    elif spec.kind not in (list, tuple):
        return False
    return all(map(buildable, spec.children))


def _built(w: Writer, spec: Any, leaves: Iterator[str]) -> str:
    """The tree of results; whoever calls owns it."""
    if spec.kind is None:
        return next(leaves)
    parts = [_built(w, c, leaves) for c in spec.children]
    if spec.kind is dict:
        d = w.ins("call ptr @PyDict_New()")
        w.exists(d, "failed")
        of = dict(zip(spec.context, parts, strict=True))
        for k in spec.order or spec.context:
            w.ins(f"call i32 @PyDict_SetItem(ptr {d}, ptr {w.object(k)}, ptr {of[k]})")
        w.lines += [f"  call void @Py_DecRef(ptr {p})" for p in parts]
        return d
    kind = "Tuple" if spec.kind is tuple else "List"
    tree = w.ins(f"call ptr @Py{kind}_New(i64 {len(parts)})")
    w.exists(tree, "failed")
    for i, o in enumerate(parts):
        w.ins(f"call i32 @Py{kind}_SetItem(ptr {tree}, i64 {i}, ptr {o})")
    return tree


def _taken(w: Writer, spec: Any, at: str, out: list[str]) -> None:
    """The tensors of an argument, a tree of lists and tuples; `at` is the address of the place that holds it."""
    o = w.ins(f"load ptr, ptr {at}")
    if spec.kind is None:
        out.append(o)
        return
    w.need(w.at(o, 8), w.object(spec.kind))
    if spec.kind is dict:
        w.need(w.ins(f"call i64 @PyDict_Size(ptr {o})"), str(len(spec.children)), "i64")
        for k, c in zip(spec.context, spec.children, strict=True):
            slot = w.ins("alloca ptr")
            got = w.ins(f"call ptr @PyDict_GetItem(ptr {o}, ptr {w.object(k)})")
            w.exists(got, "other")
            w.lines.append(f"  store ptr {got}, ptr {slot}")
            _taken(w, c, slot, out)
        return
    w.need(w.at(o, 16, "i64"), str(len(spec.children)), "i64")
    first = w.ins(f"getelementptr i8, ptr {o}, i64 24") if spec.kind is tuple else w.at(o, 24)
    for i, c in enumerate(spec.children):
        _taken(w, c, w.ins(f"getelementptr ptr, ptr {first}, i64 {i}"), out)


def native(
    r: Any, leaves: list[Any], plan: Any, entry: int, cost: int, specs: Any, bare: bool = False
) -> Callable[..., Any] | None:
    """The built-in function for calls whose arguments are these tensors' like; None where there is none.

    `bare`: for calls with the arrays themselves, to whom arrays (and NumPy's numbers) go back.
    """
    where = layout()
    if where is None or plan.parallel or not buildable(r.spec):
        return None
    d: int = compiler.DATA_OFFSET  # type: ignore[assignment]
    w = Writer()
    n = len(leaves)
    w.need("%nargs", str(len(specs)), "i64")
    given: list[str] = []
    for i, c in enumerate(specs):
        _taken(w, c, w.ins(f"getelementptr ptr, ptr %args, i64 {i}"), given)
    tensor, array, none = w.object(Tensor), w.object(np.ndarray), "@_Py_NoneStruct"
    arrays = []
    for i, x in enumerate([*leaves, *r.boxes]):
        o = given[i] if i < n else w.object(x)
        if bare and i < n:
            v = o
        else:
            if i < n:
                w.need(w.at(o, 8), tensor)
            w.need(w.at(o, where["interp"]), none)
            v = w.at(o, where["value"])
        w.need(w.at(v, 8), array)
        w.need(w.at(v, d + DESCR), w.object(x._value.dtype))
        w.need(w.at(v, d + NDIM, "i32"), str(x._value.ndim), "i32")
        flags = w.ins(f"and i32 {w.at(v, d + FLAGS, 'i32')}, 1")
        w.need(flags, "1", "i32")
        dims = w.at(v, d + DIMS)
        for k, s in enumerate(x._value.shape):
            w.need(w.at(dims, 8 * k, "i64"), str(s), "i64")
        arrays.append(v)
    for c, v in r.held._cells:
        w.need(w.at(w.object(c), 16), w.object(v))
    for f, code, defaults, kwdefaults in r.held._codes:
        o = w.object(f)
        for key, v in (("code", code), ("defaults", defaults), ("kwdefaults", kwdefaults)):
            w.need(w.at(o, where[key]), "null" if v is None else w.object(v))
    names = [(_dict_of(g), k, v) for g, k, v in r.held._names]
    if not all(type(g) is dict for g, _, _ in names):
        return None
    for g, k, v in (*names, (vars(dt), "_default", dt.get_default_dtype())):
        got = w.ins(f"call ptr @PyDict_GetItem(ptr {w.object(g)}, ptr {w.object(k)})")
        w.need(got, w.object(v))
    modes: list[Any] = [CUT]
    if READY:
        modes.append(AUTOCAST)
    else:  # nobody has entered autocast so far
        w.need(w.at(w.object(READY), 16, "i64"), "0", "i64")
    for variable in modes:
        slot = w.ins("alloca ptr")
        w.ins(f"call i32 @PyContextVar_Get(ptr {w.object(variable)}, ptr null, ptr {slot})")
        now = w.ins(f"load ptr, ptr {slot}")
        w.lines.append(f"  call void @Py_DecRef(ptr {now})")
        w.need(now, w.object(variable.get()))
    make = w.word(_of_numpy(94))  # PyArray_NewFromDescr

    def fresh(shape: tuple[int, ...], dtype: Any) -> str:
        sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        t = w.object(dtype)
        w.lines.append(f"  call void @Py_IncRef(ptr {t})")
        at = w.word(ctypes.addressof(sizes), sizes)
        y = w.ins(
            f"call ptr {make}(ptr {array}, ptr {t}, i32 {len(shape)}, ptr {at}, ptr null, ptr null, i32 0, ptr null)"
        )
        w.exists(y, "failed")
        return y

    ys = [fresh(s, np.dtype(t)) for s, t in plan.shapes]
    temps = [fresh(s, np.dtype(t)) for s, t in plan.temps]
    rest = [temps[t] if isinstance(t, int) else w.object(t) for t in plan.tail]
    code = w.word(entry)
    call = f"call void {code}(ptr null, {', '.join(f'ptr {a}' for a in (*arrays, *ys, *rest))})"
    if cost > SHORT or plan.polls:
        thread = w.ins("call ptr @PyEval_SaveThread()")
        w.lines += [f"  {call}", f"  call void @PyEval_RestoreThread(ptr {thread})"]
    else:
        w.lines.append(f"  {call}")
    w.lines += [f"  call void @Py_DecRef(ptr {t})" for t in temps]
    if plan.polls:
        c = w.ins(f"icmp eq ptr {w.ins('call ptr @PyErr_Occurred()')}, null")
        w.n += 1
        w.lines += [f"  br i1 {c}, label %l{w.n}, label %failed", f"l{w.n}:"]
    outs = []
    for y in ys:
        if bare:
            outs.append(
                w.ins(f"call ptr {w.word(_of_numpy(76))}(ptr {y})")
            )  # PyArray_Return: a number where there are no dimensions
            w.exists(outs[-1], "failed")
            continue
        outs.append(w.ins(f"call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr {tensor}, ptr {y}, ptr null)"))
        w.lines.append(f"  call void @Py_DecRef(ptr {y})")
        w.exists(outs[-1], "failed")
    w.lines.append(f"  ret ptr {_built(w, r.spec, iter(outs))}")
    text = "\n".join([
        DECLARATIONS.format(n=len(w.table)), "define ptr @pyfast(ptr %self, ptr %args, i64 %nargs) {", *w.lines,
        "other:", f"  call void @Py_IncRef(ptr {none})", f"  ret ptr {none}",
        "failed:", "  ret ptr null", "}",
    ])  # fmt: skip
    try:
        linked = compiler.link(text, ["pyfast", "table"], "jit_entry")
    except RuntimeError:
        return None
    (ctypes.c_void_p * len(w.table)).from_address(linked["table"])[:] = w.table  # type: ignore[assignment]
    f = binding.bind(linked, "pyfast", "jit", plan.kernel)
    # What the table speaks of lives as long as the recording, and that as long as whoever calls f.
    r.native = (r.native, f, w.held)
    return f


def _dict_of(names: Any) -> Any:
    """The dict that is looked into: that of a class hides behind a view, which holds nothing else."""
    return next(iter(gc.get_referents(names)), None) if type(names) is MappingProxyType else names


def _of_numpy(number: int) -> int:
    """The address of a function of NumPy's for those who write in C, by its number there."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = get(_multiarray_umath._ARRAY_API, None)
    return ctypes.cast(api + number * 8, ctypes.POINTER(ctypes.c_void_p))[0]
