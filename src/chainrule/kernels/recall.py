"""What a call comes down to, found in machine code: the arguments are compared with those of calls that are known.

``recall(address, default, args, kw)`` compares the arguments with each call of a list (:class:`..core.recall.Recall`, which says how calls are
described) and returns None where none is the same. Where there is one it calls the function that belongs to it with the arrays of the tensors, and
makes a tensor of the result; or, for a call that is noted not to be run, returns what was noted. Where the function raises, the answer is None:
Python finds out why. The list is data, so that one piece of code serves all.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import binding, compiler, objects

IR = """
@types = global [3 x ptr] zeroinitializer
@_Py_NoneStruct = external global i8
@PyLong_Type = external global i8
@PyFloat_Type = external global i8
@PyTuple_Type = external global i8
@PyExc_Exception = external global ptr
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyDict_Size(ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare i32 @PyErr_ExceptionMatches(ptr)
declare void @PyErr_Clear()
declare void @PyErr_BadArgument()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)

; Whether an object is what a description at %p says; the end of the description, or NULL. %s: number of arrays, tape, arrays.
define internal ptr @fits(ptr %o, ptr %p, ptr %s) {
  %kind = load i64, ptr %p
  %at1 = getelementptr i64, ptr %p, i64 1
  %want = load i64, ptr %at1
  %end2 = getelementptr i64, ptr %p, i64 2
  %tya = getelementptr i8, ptr %o, i64 8
  %ty = load ptr, ptr %tya
  switch i64 %kind, label %no [
    i64 0, label %same i64 1, label %plain i64 2, label %int i64 3, label %float i64 4, label %taped i64 5, label %ints i64 6, label %plain
  ]
no:
  ret ptr null
yes:
  ret ptr %end2
same:
  %id = ptrtoint ptr %o to i64
  %is = icmp eq i64 %id, %want
  br i1 %is, label %yes, label %no
int:
  %isint = icmp eq ptr %ty, @PyLong_Type
  br i1 %isint, label %int1, label %no
int1:
  %over = alloca i32
  %value = call i64 @PyLong_AsLongLongAndOverflow(ptr %o, ptr %over)
  %large = load i32, ptr %over
  %small = icmp eq i32 %large, 0
  %equal = icmp eq i64 %value, %want
  %both = and i1 %small, %equal
  br i1 %both, label %yes, label %no
float:
  %isfloat = icmp eq ptr %ty, @PyFloat_Type
  br i1 %isfloat, label %float1, label %no
float1:
  %d = call double @PyFloat_AsDouble(ptr %o)
  %bits = bitcast double %d to i64
  %samebits = icmp eq i64 %bits, %want
  br i1 %samebits, label %yes, label %no
ints:
  %istuple = icmp eq ptr %ty, @PyTuple_Type
  %lena = getelementptr i8, ptr %o, i64 16
  br i1 %istuple, label %ints1, label %no
ints1:
  %len = load i64, ptr %lena
  %samelen = icmp eq i64 %len, %want
  %item0 = getelementptr i8, ptr %o, i64 24
  br i1 %samelen, label %ints2, label %no
ints2:
  %ik = phi i64 [0, %ints1], [%ik1, %ints4]
  %iend = icmp eq i64 %ik, %len
  %iwa = getelementptr i64, ptr %end2, i64 %ik
  br i1 %iend, label %ints5, label %ints3
ints3:
  %ioa = getelementptr ptr, ptr %item0, i64 %ik
  %io = load ptr, ptr %ioa
  %iw = load i64, ptr %iwa
  %itya = getelementptr i8, ptr %io, i64 8
  %ity = load ptr, ptr %itya
  %iisint = icmp eq ptr %ity, @PyLong_Type
  br i1 %iisint, label %ints3a, label %no
ints3a:
  %ismall = alloca i32
  %iv = call i64 @PyLong_AsLongLongAndOverflow(ptr %io, ptr %ismall)
  %iover = load i32, ptr %ismall
  %ifits = icmp eq i32 %iover, 0
  %ieq = icmp eq i64 %iv, %iw
  %iboth = and i1 %ifits, %ieq
  br i1 %iboth, label %ints4, label %no
ints4:
  %ik1 = add i64 %ik, 1
  br label %ints2
ints5:
  ret ptr %iwa
plain:
  br label %tensor
taped:
  %tensor_type = load ptr, ptr @types
  %istensor = icmp eq ptr %ty, %tensor_type
  br i1 %istensor, label %taped1, label %no
taped1:
  %tapea = getelementptr i8, ptr %o, i64 INTERP
  %tape = load ptr, ptr %tapea
  %tapetya = getelementptr i8, ptr %tape, i64 8
  %tapety = load ptr, ptr %tapetya
  %tape_type = load ptr, ptr getelementptr (ptr, ptr @types, i64 2)
  %istape = icmp eq ptr %tapety, %tape_type
  br i1 %istape, label %taped2, label %no
taped2:
  %leveladdress = getelementptr ptr, ptr %s, i64 1
  %before = load ptr, ptr %leveladdress
  %first = icmp eq ptr %before, null
  %again = icmp eq ptr %before, %tape
  %one = or i1 %first, %again
  store ptr %tape, ptr %leveladdress
  %innera = getelementptr i8, ptr %o, i64 VALUE
  %inner = load ptr, ptr %innera
  br i1 %one, label %tensor, label %no
tensor:
  %x = phi ptr [%o, %plain], [%inner, %taped2]
  %xtya = getelementptr i8, ptr %x, i64 8
  %xty = load ptr, ptr %xtya
  %tt = load ptr, ptr @types
  %isx = icmp eq ptr %xty, %tt
  br i1 %isx, label %tensor1, label %no
tensor1:
  %interpa = getelementptr i8, ptr %x, i64 INTERP
  %interp = load ptr, ptr %interpa
  %lowest = icmp eq ptr %interp, @_Py_NoneStruct
  br i1 %lowest, label %tensor2, label %no
tensor2:
  %va = getelementptr i8, ptr %x, i64 VALUE
  %v = load ptr, ptr %va
  %vtya = getelementptr i8, ptr %v, i64 8
  %vty = load ptr, ptr %vtya
  %array_type = load ptr, ptr getelementptr (ptr, ptr @types, i64 1)
  %isarray = icmp eq ptr %vty, %array_type
  br i1 %isarray, label %array, label %no
array:
  %descra = getelementptr i8, ptr %v, i64 DESCR
  %descr = load i64, ptr %descra
  %rightdescr = icmp eq i64 %descr, %want
  %nda = getelementptr i8, ptr %v, i64 NDIM
  %nd32 = load i32, ptr %nda
  %nd = sext i32 %nd32 to i64
  %wantnd = load i64, ptr %end2
  %rightnd = icmp eq i64 %nd, %wantnd
  %right = and i1 %rightdescr, %rightnd
  %dimsa = getelementptr i8, ptr %v, i64 DIMS
  %dims = load ptr, ptr %dimsa
  %wanted = getelementptr i64, ptr %p, i64 3
  br i1 %right, label %sizes, label %no
sizes:
  %k = phi i64 [0, %array], [%k1, %size1]
  %done = icmp eq i64 %k, %nd
  br i1 %done, label %found, label %size
size:
  %ma = getelementptr i64, ptr %dims, i64 %k
  %m = load i64, ptr %ma
  %wa = getelementptr i64, ptr %wanted, i64 %k
  %w = load i64, ptr %wa
  %eq = icmp eq i64 %m, %w
  br i1 %eq, label %size1, label %no
size1:
  %k1 = add i64 %k, 1
  br label %sizes
found:
  %n = load i64, ptr %s
  %n2 = add i64 %n, 2
  %place = getelementptr ptr, ptr %s, i64 %n2
  store ptr %v, ptr %place
  %n1 = add i64 %n, 1
  store i64 %n1, ptr %s
  %end = getelementptr i64, ptr %wanted, i64 %nd
  %lying = icmp eq i64 %kind, 6
  br i1 %lying, label %steps, label %good
good:
  ret ptr %end
steps:
  %stridesa = getelementptr i8, ptr %v, i64 STRIDES
  %strides = load ptr, ptr %stridesa
  br label %step
step:
  %sk = phi i64 [0, %steps], [%sk1, %step2]
  %sw = getelementptr i64, ptr %end, i64 %sk
  %sdone = icmp eq i64 %sk, %nd
  br i1 %sdone, label %lies, label %step1
lies:
  ret ptr %sw
step1:
  %sma = getelementptr i64, ptr %strides, i64 %sk
  %sm = load i64, ptr %sma
  %swv = load i64, ptr %sw
  %seq = icmp eq i64 %sm, %swv
  br i1 %seq, label %step2, label %no
step2:
  %sk1 = add i64 %sk, 1
  br label %step
}

define ptr @recall(ptr %self, ptr %args, i64 %nargs) {
  %s = alloca [16 x ptr]
  %pos = alloca i64
  %key = alloca ptr
  %val = alloca ptr
  %four = icmp eq i64 %nargs, 4
  br i1 %four, label %begin, label %few
few:
  call void @PyErr_BadArgument()
  ret ptr null
begin:
  %address = load ptr, ptr %args
  %list64 = call i64 @PyLong_AsLongLong(ptr %address)
  %list = inttoptr i64 %list64 to ptr
  %defaulta = getelementptr ptr, ptr %args, i64 1
  %default = load ptr, ptr %defaulta
  %tuplea = getelementptr ptr, ptr %args, i64 2
  %tuple = load ptr, ptr %tuplea
  %kwa = getelementptr ptr, ptr %args, i64 3
  %kw = load ptr, ptr %kwa
  %na = getelementptr i8, ptr %tuple, i64 16
  %n = load i64, ptr %na
  %items = getelementptr i8, ptr %tuple, i64 24
  %nkw = call i64 @PyDict_Size(ptr %kw)
  %count = load i64, ptr %list
  br label %next
next:
  %i = phi i64 [0, %begin], [%i1, %other]
  %i1 = add i64 %i, 1
  %last = icmp sge i64 %i, %count
  br i1 %last, label %none, label %compare
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
other:
  br label %next
compare:
  %ea = getelementptr ptr, ptr %list, i64 %i1
  %e = load ptr, ptr %ea
  %e0 = load ptr, ptr %e
  %e3a = getelementptr i64, ptr %e, i64 3
  %e3 = load i64, ptr %e3a
  %e4a = getelementptr i64, ptr %e, i64 4
  %e4 = load i64, ptr %e4a
  %d0 = icmp eq ptr %e0, %default
  %d3 = icmp eq i64 %e3, %n
  %d4 = icmp eq i64 %e4, %nkw
  %d03 = and i1 %d0, %d3
  %d = and i1 %d03, %d4
  br i1 %d, label %start, label %other
start:
  store i64 0, ptr %s
  %level = getelementptr ptr, ptr %s, i64 1
  store ptr null, ptr %level
  %p0 = getelementptr i64, ptr %e, i64 5
  br label %each
each:
  %j = phi i64 [0, %start], [%j1, %fine]
  %p = phi ptr [%p0, %start], [%q, %fine]
  %all = icmp eq i64 %j, %n
  br i1 %all, label %named, label %argument
argument:
  %oa = getelementptr ptr, ptr %items, i64 %j
  %o = load ptr, ptr %oa
  %q = call ptr @fits(ptr %o, ptr %p, ptr %s)
  %bad = icmp eq ptr %q, null
  br i1 %bad, label %other, label %fine
fine:
  %j1 = add i64 %j, 1
  br label %each
named:
  store i64 0, ptr %pos
  br label %name
name:
  %np = phi ptr [%p, %named], [%nq, %name2]
  %more = call i32 @PyDict_Next(ptr %kw, ptr %pos, ptr %key, ptr %val)
  %some = icmp ne i32 %more, 0
  br i1 %some, label %name1, label %match
name1:
  %keyis = load ptr, ptr %key
  %keywant = load ptr, ptr %np
  %rightkey = icmp eq ptr %keyis, %keywant
  %valis = load ptr, ptr %val
  %valat = getelementptr i64, ptr %np, i64 1
  br i1 %rightkey, label %name2a, label %other
name2a:
  %nq = call ptr @fits(ptr %valis, ptr %valat, ptr %s)
  %badname = icmp eq ptr %nq, null
  br i1 %badname, label %other, label %name2
name2:
  br label %name
match:
  %moda = getelementptr i64, ptr %e, i64 1
  %mode = load i64, ptr %moda
  %whata = getelementptr ptr, ptr %e, i64 2
  %what = load ptr, ptr %whata
  call void @Py_IncRef(ptr %what)
  %runs = icmp ne i64 %mode, 0
  br i1 %runs, label %hold, label %give
give:
  ret ptr %what
hold:
  %m = load i64, ptr %s
  %vals = getelementptr ptr, ptr %s, i64 2
  br label %hold0
hold0:
  %h = phi i64 [0, %hold], [%h1, %hold1]
  %held = icmp eq i64 %h, %m
  br i1 %held, label %go, label %hold1
hold1:
  %ha = getelementptr ptr, ptr %vals, i64 %h
  %ho = load ptr, ptr %ha
  call void @Py_IncRef(ptr %ho)
  %h1 = add i64 %h, 1
  br label %hold0
go:
  %r = call ptr @PyObject_Vectorcall(ptr %what, ptr %vals, i64 %m, ptr null)
  call void @Py_DecRef(ptr %what)
  br label %drop0
drop0:
  %f = phi i64 [0, %go], [%f1, %drop1]
  %dropped = icmp eq i64 %f, %m
  br i1 %dropped, label %made, label %drop1
drop1:
  %fa = getelementptr ptr, ptr %vals, i64 %f
  %fo = load ptr, ptr %fa
  call void @Py_DecRef(ptr %fo)
  %f1 = add i64 %f, 1
  br label %drop0
made:
  %failed = icmp eq ptr %r, null
  br i1 %failed, label %error, label %box
box:
  %tensor_type = load ptr, ptr @types
  %y = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(ptr %tensor_type, ptr %r, ptr null)
  call void @Py_DecRef(ptr %r)
  ret ptr %y
error:
  %exception = load ptr, ptr @PyExc_Exception
  %usual = call i32 @PyErr_ExceptionMatches(ptr %exception)
  %isusual = icmp ne i32 %usual, 0
  br i1 %isusual, label %forget, label %raise
raise:
  ret ptr null
forget:
  call void @PyErr_Clear()
  br label %none
}
"""


@functools.cache
def machine(tensor: type, tape: type) -> Callable[..., Any] | None:
    """``recall`` for tensors of this class and tapes of that one; None where there is none."""
    where = objects.layout(lambda: tensor(np.zeros(2)))
    if where is None or not compiler.available() or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    d: int = compiler.DATA_OFFSET  # type: ignore[assignment]
    text = IR
    for word, at in (
        ("INTERP", where["interp"]),
        ("VALUE", where["value"]),
        ("DESCR", d + objects.DESCR),
        ("NDIM", d + objects.NDIM),
        ("DIMS", d + objects.DIMS),
        ("STRIDES", d + objects.STRIDES),
    ):
        text = text.replace(f"i64 {word}", f"i64 {at}")
    try:
        linked = compiler.link(text, ["recall", "types"], "recall")
    except RuntimeError:  # an interpreter that does not export its functions
        return None
    held = (tensor, np.ndarray, tape)
    (ctypes.c_void_p * 3).from_address(linked["types"])[:] = [id(t) for t in held]
    return binding.bind(linked, "recall", "recall", held)
