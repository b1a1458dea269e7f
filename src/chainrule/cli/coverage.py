"""What PyTorch has and chainrule does not, name by name, each with the reason.

Needs PyTorch, which has the list of names. A name without a reason here is a gap: "to come" if its family is planned,
otherwise "MISSING".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..core.arguments import ALIASES
from ..core.registry import PUBLIC

SPACES = {
    "torch": "", "torch.Tensor": "Tensor", "torch.nn": "nn", "torch.nn.functional": "nn.functional", "torch.nn.utils": "nn.utils",
    "torch.nn.init": "nn.init", "torch.optim": "optim", "torch.optim.lr_scheduler": "optim.lr_scheduler", "torch.utils.data": "utils.data",
    "torch.distributions": "distributions", "torch.autograd": "autograd", "torch.func": "func", "torch.linalg": "linalg", "torch.fft": "fft",
    "torch.special": "special", "torch.sparse": "sparse", "torch.nested": "nested", "torch.random": "random", "torch.testing": "testing",
    "torch.masked": "masked", "torch.signal.windows": "signal.windows", "torch.amp": "amp", "torch.overrides": "overrides",
}  # fmt: skip

# (pattern of the name, reason). The first that matches counts.
REASONS: list[tuple[str, str]] = [
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
        r"compile|compiled_with.*|cond|while_loop|fork|wait|import_ir.*|parse_.*|unify_.*|merge_type.*|Script.*|LiteScriptModule|StaticModule"
        r"|Tracing.*|JIT.*|.*torch_function.*|DisableTorchFunction.*|Dispatch.*|ExcludeDispatch.*|FunctionSchema|Operator.*|AliasDb|Argument.*"
        r"|CallStack|Capsule|Code|Compil.*|Complete.*|Concrete.*|DeepCopy.*|ErrorReport|Exec.*|FileCheck|Gradient|Graph.*|Node|Block|Value|Use"
        r"|Lock.*|Logger.*|Noop.*|IODescriptor|PyTorchFile.*|BufferDict|ModuleDict|ParameterDict|Tag|Future|AggregationType|AwaitType|.*Type"
        r"|prepare_multiprocessing.*|is_distributed|get_file_path|get_device_module|classproperty|thread_safe_generator|init_num_threads"
        r"|boolean_dispatch|assert_int_or_pair|is_tensor_like|Device|DType|SavedTensor|NestedIOFunction|variable|enforce_.*",
        "PyTorch's compiler, tracer, dispatcher or their classes",
    ),
    (
        r"kineto.*|Profiler.*|profiler_.*|Benchmark.*|ThroughputBenchmark|.*anomaly.*|.*multithreading.*|.*view_replay.*|.*interop_threads|.*warn_always.*",
        "PyTorch's tooling",
    ),
    (r"AcceleratorError|OutOfMemoryError|FatalError|Stream|Event", "of devices with a memory and a queue of their own"),
    (r".*SemiStructured.*|to_sparse_semi_structured", "of one vendor's hardware"),
    (r"(scaled_|scaled_grouped_)mm|ScalingType|SwizzleType", "matrices of 8-bit numbers: later"),
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
    (
        r"DFIterDataPipe|DataChunk|IterDataPipe|MapDataPipe|argument_validation|functional_datapipe|guaranteed_datapipes_determinism"
        r"|non_deterministic|runtime_validation.*",
        "data pipes, which PyTorch has given up",
    ),
    (r"swap_in_optimizer_params_and_state", "a switch of PyTorch's own tests"),
    (r"(Function|SavedTensor)\..*", "of the context, or of PyTorch's node: what forward and backward get has it"),
    (
        r".*\.(OptimizerP\w+Hook|profile_hook_step|recursive_undo|cummulative_sizes|check_worker_number_rationality|check_\w+|get_expected_\w+|permute_hidden)|DataParallel\.\w+|override|ParamSpec",
        "a detail of PyTorch's class",
    ),
    (r".*\.(T_co|T_destination|call_super_init|dump_patches|pack_hook|unpack_hook)", "a detail of PyTorch's class"),
]


MODULES = (
    "typing",
    "collections",
    "functools",
    "builtins",
    "contextlib",
    "enum",
    "types",
    "weakref",
    "bisect",
    "_bisect",
    "_weakref",
    "dataclasses",
)
# The classes whose public methods are counted too.
CLASSES = (
    "torch.nn",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.utils.data",
    "torch.distributions",
    "torch.autograd",
    "torch.amp",
)


def _names(obj: Any) -> list[str]:
    """What can be called, and of a class its properties too; names of PyTorch's own, public ones."""
    return sorted(
        n for n in dir(obj) if not n.startswith("_") and (isinstance(obj, type) or callable(getattr(obj, n, None)))
    )


def _reason(name: str) -> str:
    for pattern, why in REASONS:
        if re.fullmatch(pattern, name):
            return why
    return "MISSING"


def _pairs(only: str) -> Iterator[tuple[str, Any, Any]]:
    """(namespace, PyTorch's, ours)."""
    import importlib
    import types

    for theirs, ours in SPACES.items():
        if only and only not in (ours, theirs):
            continue
        root = "torch.Tensor" if theirs == "torch.Tensor" else theirs
        if root == "torch.Tensor":
            yield theirs, importlib.import_module("torch").Tensor, importlib.import_module("chainrule").Tensor
            continue
        try:
            b: Any = importlib.import_module(f"chainrule.{ours}" if ours else "chainrule")
        except ModuleNotFoundError:
            b = types.SimpleNamespace()
        yield theirs, importlib.import_module(theirs), b


def survey(only: str = "") -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """How many public names each namespace of PyTorch has, and (namespace, name, reason) of those that chainrule lacks."""
    import types

    total: Counter[str] = Counter()
    out = []
    for theirs, a, b in _pairs(only):
        for n in _names(a):
            value = getattr(a, n)
            if isinstance(value, types.ModuleType):
                continue
            # What a namespace only imports for its own use is not part of it.
            home = getattr(value, "__module__", None) or ""
            if theirs != "torch.Tensor" and (
                home.partition(".")[0] in MODULES or (n == "Tensor" and theirs != "torch")
            ):
                continue
            total[theirs] += 1
            if not hasattr(b, n):
                out.append((theirs, n, _reason(n)))
            elif theirs in CLASSES and isinstance(value, type) and isinstance(getattr(b, n), type):
                mine = getattr(b, n)
                for m in [m for m in _names(value) if m in vars(value)]:  # the base has its own line
                    total[f"{theirs} (methods)"] += 1
                    if not hasattr(mine, m) and m not in getattr(mine, "__annotations__", {}):
                        out.append((f"{theirs} (methods)", f"{n}.{m}", _reason(f"{n}.{m}")))
    return total, out


def gaps(only: str = "") -> list[tuple[str, str, str]]:
    """(namespace, name, reason) of every public name that PyTorch has and chainrule lacks."""
    return survey(only)[1]


def report(everything: bool = False, only: str = "") -> int:
    """Print what there is and what is missing by namespace; the exit status is 1 if a name is missing without a reason."""
    try:
        total, found = survey(only)
    except ImportError:
        print("coverage compares with PyTorch, which is not installed: pip install torch==2.13.0")
        return 2
    counts = Counter(why for _, _, why in found)
    for space, n in total.items():
        rows = [(name, why) for s, name, why in found if s == space]
        open_ = [(name, why) for name, why in rows if why == "MISSING" or "to come" in why]
        meant = n - (len(rows) - len(open_))
        print(
            f"{space:38} {n - len(rows):5} of {n:5} public names ({100 * (n - len(rows)) / n:5.1f} %); "
            f"of those meant to be here {100 * (meant - len(open_)) / max(meant, 1):5.1f} %"
        )
        for name, why in rows if everything else open_:
            print(f"    {name:40} {why}")
    print("\nleft out, by reason (docs/not-done.md):")
    for why, count in counts.most_common():
        print(f"{count:5}  {why}")
    takes = sum(bool(p & {"dim", "keepdim", "other"}) for p in map(_parameters, PUBLIC.values()))
    print(
        f"\nNumPy's names of arguments ({', '.join(ALIASES)}) are taken by {takes} functions and by the methods of these names"
    )
    return 1 if counts["MISSING"] else 0


def _parameters(f: Any) -> set[str]:
    import inspect

    try:
        return set(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return set()
