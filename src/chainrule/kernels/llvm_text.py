"""The words of LLVM: names of types and instructions, constants, and the text of a function."""

from __future__ import annotations

import platform
import struct

from .lang import DType, Value, bf16, bool_, f16, f32, f64, i32, i64, u8

TYPES = {f64: "double", f32: "float", f16: "half", bf16: "i16", i64: "i64", i32: "i32", u8: "i8", bool_: "i1"}
STORAGE = {**TYPES, bool_: "i8"}
MANGLE = {f64: "f64", f32: "f32", f16: "f16", bf16: "i16", i64: "i64", i32: "i32", u8: "i8", bool_: "i8"}

BINARY = {
    ("add", "f"): "fadd",
    ("sub", "f"): "fsub",
    ("mul", "f"): "fmul",
    ("div", "f"): "fdiv",
    ("add", "i"): "add",
    ("sub", "i"): "sub",
    ("mul", "i"): "mul",
    ("idiv", "i"): "sdiv",
    ("irem", "i"): "srem",
    ("and", "i"): "and",
    ("or", "i"): "or",
    ("xor", "i"): "xor",
    ("shl", "i"): "shl",
    ("shr", "i"): "lshr",
    ("sar", "i"): "ashr",
    ("and", "b"): "and",
    ("or", "b"): "or",
    ("xor", "b"): "xor",
}
COMPARE = {
    ("lt", "f"): "fcmp olt",
    ("le", "f"): "fcmp ole",
    ("gt", "f"): "fcmp ogt",
    ("ge", "f"): "fcmp oge",
    ("eq", "f"): "fcmp oeq",
    ("ne", "f"): "fcmp une",
    ("lt", "i"): "icmp slt",
    ("le", "i"): "icmp sle",
    ("gt", "i"): "icmp sgt",
    ("ge", "i"): "icmp sge",
    ("eq", "i"): "icmp eq",
    ("ne", "i"): "icmp ne",
}
INTRINSIC = {
    "sqrt": "sqrt",
    "rint": "roundeven",
    "floor": "floor",
    "ceil": "ceil",
    "trunc": "trunc",
    "abs": "fabs",
    "fma": "fma",
    "copysign": "copysign",
}
IDENTITY = {"add": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}
PURE = {
    *(op for op, _ in BINARY),
    *(op for op, _ in COMPARE),
    *INTRINSIC,
    "cast",
    "bitcast",
    "select",
    "neg",
    "param",
    "const",
}

# Of functions that only call others: turning them into code as they are takes a third of the time, and nobody waits for them.
GLUE = "noinline optnone nounwind"

X86 = platform.machine() in ("x86_64", "AMD64")


def literal(x: float | int | bool, dtype: DType) -> str:
    """x as an LLVM constant of the type; floats as hexadecimal bit patterns, which are exact."""
    if dtype.kind == "b":
        return "true" if x else "false"
    if dtype.kind == "i":
        return str(int(x))
    if dtype is f16:
        return f"0xH{struct.unpack('<H', struct.pack('<e', x))[0]:04X}"
    if dtype is bf16:  # its bits, rounded to nearest even
        bits = struct.unpack("<I", struct.pack("<f", x))[0]
        return str((bits >> 16) | 0x40 if x != x else (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16)
    if dtype is f32:
        x = struct.unpack("f", struct.pack("f", x))[0] if abs(x) <= 3.4028235677973366e38 or x != x else x
    return f"0x{struct.unpack('<Q', struct.pack('<d', float(x)))[0]:016X}"


class Function:
    """The text of one LLVM function: lines in order, allocas first."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.allocas: list[str] = []
        self.count = 0
        self.label = "entry"

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def ins(self, text: str) -> str:
        n = self.name()
        self.lines.append(f"  {n} = {text}")
        return n

    def new_label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label

    def alloca(self, ty: str) -> str:
        n = self.name()
        self.allocas.append(f"  {n} = alloca {ty}")
        return n


class Lanes:
    """Where the walk is inside a lane loop: the scalar offset of each unrolled vector; in the last one the mask, and whose place it is in."""

    def __init__(self, index: Value, bases: list[str], mask: str | None, first: int = 0):
        self.index, self.bases, self.mask, self.first = index, bases, mask, first
