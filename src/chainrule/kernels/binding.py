"""A compiled kernel as a built-in function of Python: a call costs a quarter of a microsecond, through ctypes it costs one.

The wrapper is part of the kernel's module. It takes its arguments as an array of objects (ndarrays, integers, and floats for
scalars), looks whether the ndarrays (but for strided ones) are contiguous, turns the rest into machine values, releases the GIL, calls the kernel and takes
the GIL back. It returns None, or False if an array is not contiguous; then nothing has been done. It uses functions of the stable
ABI only, and reads the flags of an ndarray where :mod:`.compiler` has found them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

from .lang import Param

METH_FASTCALL = 0x80

DECLARATIONS = """
@_Py_NoneStruct = external global i8
@_Py_FalseStruct = external global i8
declare i64 @PyLong_AsLongLong(ptr)
declare double @PyFloat_AsDouble(ptr)
declare ptr @PyErr_Occurred()
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @Py_IncRef(ptr)
declare void @PyErr_BadArgument()
"""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def supported() -> bool:
    """Is this a CPython whose C functions compiled code can call?"""
    return sys.implementation.name == "cpython" and sys.platform != "win32" and hasattr(ctypes, "pythonapi")


STOPPED = [
    "  %signal = call ptr @PyErr_Occurred()",
    "  %none = icmp eq ptr %signal, null",
    "  br i1 %none, label %done, label %bad",
    "done:",
]


def wrapper(params: list[Param], flags_offset: int, polls: bool = False, how: str = "") -> str:
    """@pycall(self, args, nargs) for a kernel @entry(pool, parameters...); one that polls may have been interrupted.

    `how` are attributes of the function.
    """
    kinds = ["address", *(p.kind for p in params)]
    lines = [
        DECLARATIONS,
        f"define ptr @pycall(ptr %self, ptr %args, i64 %nargs) {how} {{",
        f"  %enough = icmp eq i64 %nargs, {len(kinds)}",
        "  br i1 %enough, label %convert, label %few",
        "few:",
        "  call void @PyErr_BadArgument()",
        "  ret ptr null",
        "convert:",
    ]
    call = []
    contiguous = "true"
    for i, kind in enumerate(kinds):
        lines.append(f"  %a{i} = getelementptr ptr, ptr %args, i64 {i}")
        lines.append(f"  %o{i} = load ptr, ptr %a{i}")
        if kind == "scalar":
            lines.append(f"  %v{i} = call double @PyFloat_AsDouble(ptr %o{i})")
            call.append(f"double %v{i}")
        elif kind == "array":
            call.append(f"ptr %o{i}")
            if params[i - 1].array.strided:  # type: ignore[union-attr]
                continue
            lines += [
                f"  %f{i} = getelementptr i8, ptr %o{i}, i64 {flags_offset}",
                f"  %l{i} = load i32, ptr %f{i}",
                f"  %b{i} = trunc i32 %l{i} to i1",
                f"  %c{i} = and i1 {contiguous}, %b{i}",
            ]
            contiguous = f"%c{i}"
        else:
            lines.append(f"  %v{i} = call i64 @PyLong_AsLongLong(ptr %o{i})")
            if kind == "address":
                lines.append(f"  %p{i} = inttoptr i64 %v{i} to ptr")
            call.append(f"ptr %p{i}" if kind == "address" else f"i64 %v{i}")
    lines += [
        "  %error = call ptr @PyErr_Occurred()",
        "  %fine = icmp eq ptr %error, null",
        "  br i1 %fine, label %go, label %bad",
        "bad:",
        "  ret ptr null",
        "go:",
        f"  br i1 {contiguous}, label %work, label %scattered",
        "scattered:",
        "  call void @Py_IncRef(ptr @_Py_FalseStruct)",
        "  ret ptr @_Py_FalseStruct",
        "work:",
        "  %thread = call ptr @PyEval_SaveThread()",
        f"  call void @entry({', '.join(call)})",
        "  call void @PyEval_RestoreThread(ptr %thread)",
        *(STOPPED if polls else []),
        "  call void @Py_IncRef(ptr @_Py_NoneStruct)",
        "  ret ptr @_Py_NoneStruct",
        "}",
    ]
    return "\n".join(lines)


def bind(code: Any, symbol: str, name: str, *held: Any) -> Callable[..., Any]:
    """The built-in function whose machine code is a symbol of `code`; it keeps the code, its definition and what else is `held`."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    d = _MethodDef(name.encode(), code[symbol], METH_FASTCALL, None)
    # The object that a method belongs to, which the interpreter lets go after it has read the definition.
    return new(ctypes.addressof(d), (code, d, *held), None)
