"""From a recorded kernel to a callable: render, look in the caches, compile, link, bind.

llvmlite is imported when the first kernel is wanted; without it `available()` is False and callers run their plain bodies.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..fallback import NotSupported
from . import binding, cache, llvm
from .lang import Kernel

_lock = threading.RLock()
_binding: Any = None
_failed = False
_machine: Any = None
_quick: Any = None  # the same processor, less thorough: for long kernels
LONG = 1300  # lines
_jit: Any = None
_identity = ""
reason = "this interpreter keeps arrays elsewhere"  # why there are no kernels, where there are none
_counter = 0

CTYPES = {"array": ctypes.c_void_p, "size": ctypes.c_int64, "scalar": ctypes.c_double}
compiled: dict[str, float] = {}  # kernel name -> seconds spent in LLVM; 0 where the disk had it


def _data_offset() -> int | None:
    """Where an ndarray object keeps its data pointer, checked on real arrays; None if it cannot be read this way."""
    if sys.implementation.name != "cpython":
        return None
    offset = object.__basicsize__
    for a in (np.zeros(3), np.zeros((4, 5), np.float32)[1:, 2:], np.zeros(7, np.int8)[::-2]):
        if ctypes.c_void_p.from_address(id(a) + offset).value != a.ctypes.data:
            return None
    return offset


def _flags_offset() -> int | None:
    """Where an ndarray object keeps its flags, whose lowest bit says that it is C-contiguous; None if it is elsewhere."""
    if DATA_OFFSET is None:
        return None
    offset = DATA_OFFSET + 6 * ctypes.sizeof(ctypes.c_void_p)
    whole = np.zeros((4, 6))
    for a in (
        whole,
        whole.T,
        whole[:, ::2],
        whole[1:],
        np.zeros((3, 4), np.int8).T,
        np.broadcast_to(np.zeros(2), (3, 2)),
    ):
        if ctypes.c_int.from_address(id(a) + offset).value != a.flags.num:
            return None
    return offset


DATA_OFFSET = _data_offset()
FLAGS_OFFSET = _flags_offset()


def forever(x: Any) -> Any:
    """`x`, which is never freed: threads run its code until the process is gone, after Python has taken its modules down."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))
    return x


class Code:
    """Linked machine code: the addresses of its symbols. It is unmapped when the last reference goes, but not while the interpreter ends.

    Whoever keeps an address keeps the object: a system maps some ten thousand pieces of code into a process, and no more.
    """

    __slots__ = ("__weakref__", "tracker")

    def __init__(self, tracker: Any) -> None:
        self.tracker = tracker
        _live.add(self)

    def __getitem__(self, symbol: str) -> int:
        address: int = self.tracker[symbol]
        return address


_live: weakref.WeakSet[Code] = weakref.WeakSet()


@atexit.register
def _keep() -> None:
    """Threads may run code until the process is gone."""
    for code in list(_live):
        forever(code.tracker)


def available() -> bool:
    """Can kernels be compiled here: is there an llvmlite that works, on a platform that we know?"""
    return _init()


def _init() -> bool:
    global _binding, _failed, _machine, _quick, _jit, _identity, reason
    if _jit is not None:
        return True
    if _failed or DATA_OFFSET is None:
        return False
    with _lock:
        if _jit is not None:
            return True
        if _failed or os.environ.get("CHAINRULE_KERNELS", "1") == "0":
            _failed, reason = True, "switched off by CHAINRULE_KERNELS=0"
            return False
        try:
            import llvmlite
            import llvmlite.binding as lib

            lib.initialize_native_target()
            lib.initialize_native_asmprinter()
            cpu = lib.get_host_cpu_name()
            features = lib.get_host_cpu_features().flatten()
            triple = lib.get_default_triple()
            _machine, _quick = (
                lib.Target.from_triple(triple).create_target_machine(
                    cpu=cpu, features=features, opt=level, jit=True, reloc="pic", codemodel="default"
                )
                for level in (2, 1)
            )
            version = ".".join(map(str, lib.llvm_version_info))
            _identity = f"{llvmlite.__version__}\n{version}\n{triple}\n{cpu}\n{features}"
            _binding = lib
            _jit = forever(lib.create_lljit_compiler(_machine, suppress_errors=False))
        except (
            Exception
        ) as e:  # a broken llvmlite must not take the library down: the plain bodies run, and the reason is kept
            _failed, reason = True, f"{type(e).__name__}: {e}"
            return False
        return True


def has_feature(name: str) -> bool:
    """Does the processor have this feature (LLVM's name)?"""
    return _init() and bool(_binding.get_host_cpu_features().get(name, False))


def _optimise(module: Any) -> None:
    """Promote locals, fold, rotate loops: the code is already vectorised, and the whole pipeline takes five times as long."""
    builder = _binding.create_pass_builder(_machine, _binding.create_pipeline_tuning_options(speed_level=1))
    passes = _binding.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_loop_rotate_pass()
    passes.add_new_gvn_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for f in module.functions:
        if not f.is_declaration:
            passes.run(f, builder)


def object_code(ir: str) -> bytes:
    """Optimised machine code of an LLVM module, as a relocatable object."""
    module = _binding.parse_assembly(ir)
    module.verify()
    _optimise(module)
    return (_quick if ir.count("\n") > LONG else _machine).emit_object(module)


def link(ir: str, symbols: list[str], label: str) -> Code:
    """The module's code, compiled now or taken from the disk, with the addresses of these symbols."""
    global _counter
    if not _init():
        raise RuntimeError("no kernel compiler here: llvmlite is missing or does not work")
    import time

    name = cache.key_of(_identity, ir)
    with _lock:
        debug = os.environ.get("CHAINRULE_DEBUG", "")
        if "ir" in debug.split(","):
            print(ir, file=sys.stderr)
        code = cache.load(name)
        spent = 0.0
        for fresh in (False, True):
            if code is None or fresh:
                start = time.perf_counter()
                code = object_code(ir)
                spent = time.perf_counter() - start
                cache.save(name, code)
            if "asm" in debug.split(","):
                module = _binding.parse_assembly(ir)
                _optimise(module)
                print(_machine.emit_assembly(module), file=sys.stderr)
            _counter += 1
            builder = _binding.JITLibraryBuilder().add_object_img(code)
            for s in symbols:
                builder.export_symbol(s)
            try:
                tracker = builder.add_current_process().link(_jit, f"k{_counter}")
            except RuntimeError:
                if fresh:
                    raise
                continue
            break
        compiled[label] = spent
        return Code(tracker)


class _Pause(threading.local):
    """Whether this thread compiles no kernels: plain bodies run, for values that nobody waits for."""

    on = False


paused = _Pause()


def compile_kernel(k: Kernel) -> Callable[..., None]:
    """The kernel as a function f(pool, arrays, sizes and scalars in order) that runs without the GIL.

    It returns False, having done nothing, if an array is not contiguous. A kernel that LLVM does not take is reported once, and
    refused: the plain body of its op runs instead.
    """
    if paused.on:
        raise NotSupported
    try:
        return _compiled_kernel(k)
    except RuntimeError as e:
        if not _reported:
            _reported.append(k.name)
            warnings.warn(
                f"chainrule: the kernel {k.name} could not be compiled ({str(e).splitlines()[0] if str(e) else type(e).__name__}); "
                f"plain code runs instead, and slower. `python -m chainrule info` shows the versions of LLVM and llvmlite.",
                RuntimeWarning,
                stacklevel=3,
            )
        raise NotSupported from e


_reported: list[str] = []


def _compiled_kernel(k: Kernel) -> Callable[..., None]:
    assert DATA_OFFSET is not None
    ir = llvm.render(k, DATA_OFFSET)
    if binding.supported() and FLAGS_OFFSET is not None:
        try:
            return binding.bind(
                link(ir + binding.wrapper(k.params, FLAGS_OFFSET), ["pycall"], k.name), "pycall", k.name
            )
        except RuntimeError:  # an interpreter that does not export its functions
            pass
    code = link(ir, ["entry"], k.name)
    proto = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *(CTYPES[p.kind] for p in k.params))
    function = proto(code["entry"])
    function.code = code  # type: ignore[attr-defined]

    def call(*args: Any) -> Any:
        arrays = [a for a, p in zip(args[1:], k.params, strict=True) if p.array is not None and not p.array.strided]
        if not all(a.flags.c_contiguous for a in arrays):
            return False
        return function(*[id(a) if isinstance(a, np.ndarray) else a for a in args])

    return call
