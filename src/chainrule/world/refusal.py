"""What we will not do has one clear error each; docs/not-done.md has the reasons."""

from __future__ import annotations

import functools
from typing import Any

REASONS = {
    "script": "TorchScript: functions and modules run as the Python they are; chainrule.jit compiles by recording",
    "quantisation": "quantisation: numbers of 8 bits and less with scales",
    "rpc": "distributed RPC: write the calls between processes with what fits them",
    "fx": "graph transformations of FX: transform functions with chainrule.func instead",
    "cuda": "what exists for CUDA alone: computation is on the CPU",
    "processes": "collectives over several processes: one process computes here",
    "onnx": "export to ONNX",
    "export": "export of graphs",
    "compiler": "PyTorch's compiler and tracer: chainrule.jit compiles by recording",
    "dispatcher": "PyTorch's dispatcher: chainrule.custom_op and autograd.Function declare operators",
    "package": "packaging of models: chainrule.save",
    "cpp": "extensions in C++",
    "pipes": "data pipes, which PyTorch has given up: utils.data",
    "symbols": "symbolic shapes",
}
# Modules of PyTorch of which nothing, or little, is here: all their names can be imported, and say so when they are used.
PARTS = {
    "ao": "quantisation", "quantization": "quantisation", "nn.quantized": "quantisation", "nn.quantizable": "quantisation", "nn.qat": "quantisation",
    "nn.intrinsic": "quantisation", "distributed": "processes", "distributed.rpc": "rpc", "onnx": "onnx", "export": "export", "_export": "export",
    "_inductor": "compiler", "_dynamo": "compiler", "_prims": "compiler", "_prims_common": "compiler", "_refs": "compiler", "_decomp": "compiler",
    "_subclasses": "compiler", "_higher_order_ops": "compiler", "_guards": "compiler", "_ops": "dispatcher", "_custom_ops": "dispatcher",
    "_library": "dispatcher", "_python_dispatcher": "dispatcher", "utils._python_dispatch": "dispatcher", "classes": "dispatcher", "fx": "fx",
    "package": "package", "utils.cpp_extension": "cpp", "utils.data.datapipes": "pipes", "utils.data.graph_settings": "pipes", "utils.data.graph": "pipes",
    "utils._sympy": "symbols", "numa": "processes", "utils.flop_counter": "dispatcher", "nested._internal": "dispatcher", "jit._recursive": "script",
    "jit._trace": "script", "jit.frontend": "script", "jit.mobile": "script", "utils.mobile_optimizer": "script", "utils.bundled_inputs": "script",
    "nn.parallel.distributed": "processes", "cuda.profiler": "cuda", "cuda.nccl": "cuda", "cuda.comm": "cuda", "cuda.sparse": "cuda",
    "cuda._sanitizer": "cuda", "cuda.tunable": "cuda", "cuda.gds": "cuda", "backends._coreml": "cuda", "utils.dlpack_ext": "cpp",
    "autograd.profiler_legacy": "compiler", "autograd.profiler_util": "compiler", "monitor": "processes",
}  # fmt: skip
# Names at the top of PyTorch that belong to such a part.
NAMES = {
    "quantisation": "qint8 quint8 qint32 quint4x2 quint2x4 per_tensor_affine per_tensor_symmetric per_channel_affine per_channel_symmetric "
    "per_channel_affine_float_qparams quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic quantized_batch_norm quantized_max_pool1d "
    "quantized_max_pool2d quantized_max_pool3d quantized_lstm_cell quantized_gru_cell quantized_rnn_relu_cell quantized_rnn_tanh_cell dequantize "
    "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine fused_moving_avg_obs_fake_quant choose_qparams_optimized empty_quantized "
    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point int_repr QInt8Storage QUInt8Storage qscheme "
    "_make_per_tensor_quantized_tensor _make_per_channel_quantized_tensor uint1 uint2 uint3 uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7 "
    "bits16 bits1x8 bits2x4 bits4x2 bits8",
    "symbols": "SymInt SymFloat SymBool sym_int sym_float sym_not sym_max sym_min sym_ite sym_sum sym_sqrt sym_fresh_size",
    "script": "ScriptModule ScriptMethod ScriptFunction ScriptDict ScriptList ScriptObject ScriptClass ScriptDictIterator CompilationUnit "
    "PyTorchFileReader PyTorchFileWriter Graph FunctionSchema ErrorReport LiteScriptModule StaticModule",
    "compiler": "Future Value Node Block Use Argument AliasDb Code Gradient GraphExecutorState DeepCopyMemoTable",
    "dispatcher": "DispatchKey DispatchKeySet Tag _scaled_mm _grouped_mm _nested_view_from_buffer",
}


class Refused:
    """A name of a part that is not done: further names of it can be named, and calling one raises."""

    def __init__(self, name: str, what: str) -> None:
        self.__dict__.update(
            _name=name, _what=what, __name__=name.rpartition(".")[2], __qualname__=name.rpartition(".")[2]
        )
        self.__dict__["__doc__"] = f"Not done: {REASONS[what]}."

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return named(f"{self._name}.{name}", self._what)

    def __call__(self, *args: Any, **kw: Any) -> Any:
        raise NotDone(f"{self._name}: chainrule does not do this ({REASONS[self._what]}). See docs/not-done.md")

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return f"<{self._name}: not done>"


@functools.cache
def named(name: str, what: str) -> Any:
    """What stands for a name of a part that is not done: a class for a name in capitals, "no" to a question, else something that raises when called."""
    last = name.rpartition(".")[2]
    if last.startswith(("is_", "has_")):
        return _no
    if last.lstrip("_")[:1].isupper():
        return refused_class(name, what)
    return Refused(name, what)


def _no(*args: Any, **kw: Any) -> bool:
    """No: the part that would say yes is not there."""
    return False


def part_of(name: str) -> str | None:
    """The part to which ``torch.<name>`` belongs that is not done, or None."""
    while name:
        if name in PARTS:
            return PARTS[name]
        name = name.rpartition(".")[0]
    return None


@functools.cache
def top() -> dict[str, str]:
    """The names of ``torch`` itself that are not done, each with its part."""
    return {n: what for what, names in NAMES.items() for n in names.split()}


class NotDone(NotImplementedError):
    """Something of PyTorch's that chainrule does not do, on purpose."""


def refuse(name: str, what: str) -> Any:
    """A function that raises, saying what is not done and where the reasons are."""

    def call(*args: Any, **kw: Any) -> Any:
        raise NotDone(f"{name}: chainrule does not do this ({REASONS[what]}). See docs/not-done.md")

    call.__name__ = call.__qualname__ = name.rpartition(".")[2]
    call.__doc__ = f"Not done: {REASONS[what]}."
    return call


class _Class(type):
    """Of refused classes: what is looked up in one is of the same part."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return named(f"{cls._name}.{name}", cls._what)


def refused_class(name: str, what: str) -> type:
    """A class that can be named, derived from and asked for in isinstance(), and of which there is no instance."""

    def __init__(self: Any, *args: Any, **kw: Any) -> None:
        raise NotDone(f"{name}: chainrule does not do this ({REASONS[what]}). See docs/not-done.md")

    return _Class(
        name.rpartition(".")[2],
        (),
        {
            "_name": name,
            "_what": what,
            "__init__": __init__,
            "__doc__": f"Not done: {REASONS[what]}.",
            "__module__": "chainrule.world",
        },
    )
