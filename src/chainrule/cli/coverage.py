"""What PyTorch has and chainrule does not, name by name, each with the reason.

Needs PyTorch, which has the list of names. A name without a reason here is a gap: "to come" if its family is planned,
otherwise "MISSING".
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

SPACES = {
    "torch": "", "torch.Tensor": "Tensor", "torch.special": "special", "torch.linalg": "linalg", "torch.fft": "fft",
    "torch.nn.functional": "nn.functional", "torch.masked": "masked", "torch.func": "func", "torch.autograd": "autograd",
    "torch.nested": "nested", "torch.sparse": "sparse",
    "torch.signal.windows": "signal.windows",
}  # fmt: skip

# (pattern of the name, reason). The first that matches counts.
REASONS: list[tuple[str, str]] = [
    (r"_.*", "private to PyTorch"),
    (
        r".*(cuda|cudnn|miopen|mps|xpu|mkldnn|ipu|xla|hpu|mtia|maia|vulkan|metal|fbgemm).*",
        "another device or vendor library",
    ),
    (
        r"(fake_)?(de)?quantize.*|quantized_.*|empty_quantized|int_repr|q_per_.*|q_scale|q_zero_point|qscheme|choose_qparams.*"
        r"|fused_moving_avg_obs_fake_quant",
        "quantisation",
    ),
    (
        r".*[sS]torage.*|Storage.*|Sym(Bool|Float|Int).*|sym_.*|record_stream|const_data_ptr",
        "storages and symbolic shapes of PyTorch itself",
    ),
    (
        r".*autocast.*|GradScaler",
        "automatic mixed precision: write .to(chainrule.bfloat16) where it is wanted",
    ),
    (
        r"compile|compiled_with.*|cond|while_loop|fork|wait|import_ir.*|parse_.*|unify_.*|merge_type.*|Script.*|LiteScriptModule|StaticModule"
        r"|Tracing.*|JIT.*|.*torch_function.*|DisableTorchFunction.*|Dispatch.*|ExcludeDispatch.*|FunctionSchema|Operator.*|AliasDb|Argument.*"
        r"|CallStack|Capsule|Code|Compil.*|Complete.*|Concrete.*|DeepCopy.*|ErrorReport|Exec.*|FileCheck|Gradient|Graph.*|Node|Block|Value|Use"
        r"|Lock.*|Logger.*|Noop.*|IODescriptor|PyTorchFile.*|BufferDict|ModuleDict|ParameterDict|Tag|Future|AggregationType|AwaitType|.*Type"
        r"|prepare_multiprocessing.*|is_distributed|get_file_path|get_device_module|classproperty|thread_safe_generator|init_num_threads"
        r"|boolean_dispatch|assert_int_or_pair|is_tensor_like|module_load|Device|DType|SavedTensor|NestedIOFunction|variable|enforce_.*",
        "PyTorch's compiler, tracer, dispatcher or their classes",
    ),
    (
        r"kineto.*|Profiler.*|profiler_.*|Benchmark.*|ThroughputBenchmark|.*anomaly.*|.*multithreading.*|.*view_replay.*|.*interop_threads|.*warn_always.*",
        "PyTorch's tooling",
    ),
    (r"AcceleratorError|OutOfMemoryError|FatalError|Stream|Event", "of devices with a memory and a queue of their own"),
    (r".*SemiStructured.*|to_sparse_semi_structured", "of one vendor's hardware"),
    (
        r"(BFloat16|Byte|Char|Double|Float|Half|Int|Long|Short)Tensor",
        "a constructor that PyTorch deprecated for sparse tensors",
    ),
    (r"(scaled_|grouped_|scaled_grouped_)mm|ScalingType|SwizzleType", "matrices of 8-bit numbers: later"),
    (r"batch_norm_.*|native_norm|embedding_renorm_", "a part of an op that is whole here"),
    (r"embedding_bag", "the low-level form of nn.functional.embedding_bag"),
    (
        r"as_masked_tensor|is_masked_tensor|masked_tensor|MaskedTensor",
        "a prototype; chainrule.masked has the functions",
    ),
    (r"to_padded_tensor", "a method of nested tensors, there once chainrule.nested is used"),
    (r"rearrange", "of einops, which PyTorch carries along"),
    (r"replace_all_batch_norm_modules_", "not needed: running statistics work under every transform here"),
    (
        r"eig|symeig|lstsq|solve|matrix_rank|reinforce|resize|resize_as|index",
        "given up by PyTorch: calling it only raises there",
    ),
    (r"name|volatile", "given up by PyTorch"),
    (r"grad_dtype", "a gradient has the type of its tensor here"),
    (r"from_file", "chainrule.load and numpy.memmap do this"),
    (r"Tensor", "another name of chainrule.Tensor, which PyTorch's module happens to import"),
    (r"(gru|lstm|rnn_relu|rnn_tanh)(_cell)?", "the low-level form of nn.GRU, nn.LSTM and nn.RNN: to come"),
    (r"lobpcg", "to come: linear algebra"),
]


def _names(obj: Any) -> list[str]:
    """What can be called, and of a class its properties too."""
    return sorted(
        n for n in dir(obj) if not n.startswith("__") and (isinstance(obj, type) or callable(getattr(obj, n, None)))
    )


def _reason(name: str) -> str:
    for pattern, why in REASONS:
        if re.fullmatch(pattern, name):
            return why
    return "MISSING"


def gaps(only: str = "") -> list[tuple[str, str, str]]:
    """(namespace, name, reason) of every callable public name that PyTorch has and chainrule lacks."""
    import types

    import torch

    import chainrule

    out = []
    for theirs, ours in SPACES.items():
        if only and only not in (ours, theirs):
            continue
        a: Any = torch
        for part in theirs.split(".")[1:]:
            a = getattr(a, part)
        b: Any = chainrule
        for part in ours.split(".") if ours else []:
            b = getattr(b, part, types.SimpleNamespace())
        for n in _names(a):
            value = getattr(a, n)
            if isinstance(value, types.ModuleType) or hasattr(b, n):
                continue
            # What a namespace only imports for its own use is not part of it.
            home = getattr(value, "__module__", None) or ""
            if (
                home.startswith(("typing", "collections", "functools", "builtins", "contextlib", "enum"))
                and theirs != "torch.Tensor"
            ):
                continue
            out.append((theirs, n, _reason(n)))
    return out


def report(everything: bool = False, only: str = "") -> int:
    """Print the gaps by namespace; the exit status is 1 if a name is missing without a reason."""
    try:
        found = gaps(only)
    except ImportError:
        print("coverage compares with PyTorch, which is not installed: pip install torch==2.13.0")
        return 2
    counts = Counter(why for _, _, why in found)
    for space in SPACES:
        rows = [(n, why) for s, n, why in found if s == space]
        shown = [(n, why) for n, why in rows if everything or why == "MISSING" or "to come" in why]
        print(f"\n{space}: {len(rows)} names that chainrule does not have")
        for n, why in shown:
            print(f"  {n:40} {why}")
    print()
    for why, count in counts.most_common():
        print(f"{count:5}  {why}")
    return 1 if counts["MISSING"] else 0
