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
    "torch.nested": "nested",
    "torch.signal.windows": "signal.windows",
}  # fmt: skip

# (pattern of the name, reason). The first that matches counts.
REASONS: list[tuple[str, str]] = [
    (
        r".*(cuda|cudnn|miopen|mps|xpu|mkldnn|mkl|hip|ipu|xla|hpu|mtia|maia|vulkan|metal|opaque|fbgemm|vitals).*",
        "another device or vendor library",
    ),
    (
        r".*(quant|fake_|qint|q_per|q_scale|q_zero|int_repr|qscheme|per_channel|per_tensor|dequant|rnn_.*_cell_q|quint).*",
        "quantisation",
    ),
    (
        r".*(float8|bits\d|uint[1-7]$|int[1-7]$|float4|storage|Storage|dlpack|shared_memory|share_memory|is_shared|pin|untyped|record_stream|sym_|Sym[A-Z]).*",
        "storages, sub-byte types and symbolic shapes of PyTorch itself",
    ),
    (
        r".*(jit|script|compile|fx|export|dynamo|inductor|functorch|aot|cond$|while_loop|vitals|library|classes|_C|_VF|package|hub|onnx|profiler|monitor|futures|distributed|multiprocessing|backends|accelerator|overrides|torch_function|torch_dispatch|autocast|amp).*",
        "PyTorch's compiler, tracer, dispatcher or tooling",
    ),
    (
        r".*(sparse|coalesce|crow_|ccol_|row_indices|col_indices|hspmm|smm|sspaddmm|to_dense|to_mkl|indices$|values_copy).*",
        "sparse tensors: later",
    ),
    (r".*(names|named_|align_|refine_|rename|has_names|name_from).*", "named tensors, which PyTorch itself gave up"),
    (
        r"^_.*|.*_(backward|forward)$|batch_norm_.*|native_norm|embedding_renorm_|.*_stats",
        "private, or a part of an op that is whole here",
    ),
    (
        r"AliasDb|Argument.*|Benchmark.*|Buffer.*|CallStack|Capsule|Code|Compil.*|Complete.*|Concrete.*|DeepCopy.*|Disable.*|Dispatch.*|Error.*"
        r"|Exec.*|File.*|Grad.*|JIT.*|Lock.*|Logger.*|Noop.*|Operator.*|Parameter.*|PyTorch.*|Script.*|Tag|Tracing.*|Use|parse_.*|unify_.*|merge_.*"
        r"|import_ir.*|fork|wait|thread_safe.*|classproperty|choose_.*|get_file_path|get_device_module|from_file|boolean_dispatch|assert_int.*"
        r"|is_warn.*|set_warn.*|.*interop.*|init_num.*|.*matmul_precision|.*multithreading.*|.*view_replay.*|kineto.*|enforce_.*|is_tensor_like"
        r"|variable|Device|FunctionSchema|GraphExecutorState|ModuleDict|index|resize|resize_as|module_load|const_data_ptr|reinforce|layout|memory_format|set_default_tensor_type|.*anomaly.*enabled|new|Profiler.*",
        "PyTorch's implementation, or a name it has given up",
    ),
    (r".*(scaled_mm|grouped_mm|spmm|saddmm|dense_dim).*", "kernels for 8-bit and sparse matrices: later"),
    (r".*masked_tensor", "a prototype of PyTorch's; chainrule.masked has the functions"),
    (r"embedding_bag", "the low-level form of nn.functional.embedding_bag"),
    (r"indices_copy", "sparse tensors: later"),
    (r"to_padded_tensor", "a method of nested tensors, there once chainrule.nested is used"),
    (r"rearrange", "of einops, which PyTorch carries along"),
    (r"replace_all_batch_norm_modules_", "not needed: running statistics work under every transform here"),
    (
        r".*(Tensor|Dtype|Type|Error|Warning|Module|Parser|Stream|Event|Graph|Node|Interface|Value|Block|Decl|Function|Future|Backend|Config|Mode|Guard)$",
        "a class of PyTorch's implementation",
    ),
    (
        r".*(conv|pool|unfold|fold|upsample|interpolate|grid_|affine_grid|pixel_|lstm|gru|rnn|multi_head|attention|fft|stft|istft|hann|hamming|bartlett|blackman|kaiser|ctc).*",
        "to come: convolution, pooling, resampling, recurrence, attention, Fourier",
    ),
    (
        r".*(svd|eig|qr|lu|lstsq|pinv|inv|det|cholesky|ldl|matrix_|tensorinv|tensorsolve|householder|ormqr|orgqr|geqrf|triangular|solve|lobpcg|pca|cond|vecdot|cross|multi_dot|chain_matmul|vander|expm|logdet|slogdet|trace).*",
        "to come: linear algebra",
    ),
]


def _names(obj: Any) -> list[str]:
    return sorted(n for n in dir(obj) if not n.startswith("__") and callable(getattr(obj, n, None)))


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
        shown = [(n, why) for n, why in rows if everything or why == "MISSING" or why.startswith("to come")]
        print(f"\n{space}: {len(rows)} names that chainrule does not have")
        for n, why in shown:
            print(f"  {n:40} {why}")
    print()
    for why, count in counts.most_common():
        print(f"{count:5}  {why}")
    return 1 if counts["MISSING"] else 0
