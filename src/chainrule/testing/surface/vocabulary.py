"""What the names of parameters mean: a declaration that leaves a type open is read by PyTorch's vocabulary."""

from __future__ import annotations

# Names of parameters -> what they take. A default of None is added to the type where it is used.
_WORDS = {
    "input other exponent tensor1 tensor2 elements test_elements value fill_value fill initial alpha beta dx n min max q x y": "Operand",
    "rcond atol rtol tol var mean std condition": "Operand",
    "start end step": "Operand",
    "src values": "Operand",
    "weight": "Operand | None",
    "bias running_mean running_var save_mean save_var save_invstd reserve": "Tensor | None",
    "in_proj_weight in_proj_bias bias_k bias_v out_proj_bias key_padding_mask attn_mask": "Tensor | None",
    "q_proj_weight k_proj_weight v_proj_weight static_k static_v": "Tensor | None",
    "dtype input_dtype": "DTypeLike",
    "device": "DeviceLike",
    "layout memory_format": "Layout",
    "pin_memory unbiased": "bool | None",
    "generator": "Generator | None",
    "dim dims axis shifts source destination sizes sizes_ size shape physical_layout s": "Ints",
    "kernel_size stride dilation output_padding split_size_or_sections split_size": "Ints",
    "padding": "Ints | str",
    "output_size": "int | Sequence[int | None] | None",
    "spacing": "Operand | Sequence[Operand]",
    "scale_factor scale_factors output_ratio": "float | Sequence[float]",
    "correction": "float | None",
    "lengths input_lengths target_lengths repeats sections": "Ints | Tensor",
    "indices_or_sections tensor_indices_or_sections": "Ints | Tensor",
    "index": "int | Tensor",
    "ord p": "float | str | Tensor",
    "bins": "Ints | Tensor | Sequence[Tensor]",
    "tensors": "Sequence[Tensor]",
    "equation": "str | Tensor",
    "gradient": "Tensor | None",
    "inputs": "Tensor | Sequence[Tensor] | None",
}
TYPES = {name: kind for names, kind in _WORDS.items() for name in names.split()}

# Parameters that gather: ``*shape`` takes sizes one by one or together.
GATHERED = {
    "tensors": "Tensor | Sequence[Tensor]",
    "shapes": "Sequence[int]",
    "sizes_": "Ints",
    "operands": "Any",
} | dict.fromkeys(("shape", "dims", "size", "sizes"), "Ints")

# Flags that change what a function returns: a tensor without them.
FLAGS = ("return_indices", "return_inverse", "return_counts", "as_tuple")

_NEW = (
    "dtype: DTypeLike | None = None, layout: Layout | None = None, device: DeviceLike | None = None, "
    "requires_grad: bool = False, pin_memory: bool | None = None"
)
_SIZED = f"*sizes: Ints, size: Ints | None = None, out: Tensor | None = None, {_NEW}"
_TO = "non_blocking: bool = False, copy: bool = False, memory_format: Layout | None = None"

# Functions that are called in several ways, which their one Python signature cannot say. `input` is self in a method.
_SEVERAL = {
    "zeros ones": (f"({_SIZED}) -> Tensor",),
    "empty": (f"({_SIZED}, memory_format: Layout | None = None) -> Tensor",),
    "rand randn": (f"({_SIZED}, generator: Generator | None = None) -> Tensor",),
    "new_zeros new_ones new_empty": (f"(input: Tensor, *sizes: Ints, size: Ints | None = None, {_NEW}) -> Tensor",),
    "arange": (
        f"(end: Operand, /, *, out: Tensor | None = None, {_NEW}) -> Tensor",
        f"(start: Operand, end: Operand, step: Operand = 1, *, out: Tensor | None = None, {_NEW}) -> Tensor",
        f"(*, start: Operand = 0, end: Operand, step: Operand = 1, out: Tensor | None = None, {_NEW}) -> Tensor",
    ),
    "randint": (
        f"(high: int, size: Ints, *, generator: Generator | None = None, {_NEW}) -> Tensor",
        f"(low: int, high: int, size: Ints, *, generator: Generator | None = None, {_NEW}) -> Tensor",
    ),
    "max min": (
        "(input: Tensor, *, out: Tensor | None = None) -> Tensor",
        "(input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices",
        "(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor",
    ),
    "median nanmedian": (
        "(input: Tensor) -> Tensor",
        "(input: Tensor, dim: int, keepdim: bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices",
    ),
    "kthvalue": (
        "(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Sequence[Tensor] | None = None) -> ValuesIndices",
    ),
    "where": (
        "(condition: Tensor) -> tuple[Tensor, ...]",
        "(condition: Tensor, input: Operand, other: Operand, *, out: Tensor | None = None) -> Tensor",
    ),
    "Tensor.where": ("(input: Tensor, condition: Tensor, other: Operand) -> Tensor",),
    "reshape": ("(input: Tensor, *shape: Ints) -> Tensor", "(input: Tensor, *, shape: Ints) -> Tensor"),
    "permute flip": ("(input: Tensor, *dims: Ints) -> Tensor", "(input: Tensor, *, dims: Ints) -> Tensor"),
    "view": (
        "(input: Tensor, *shape: Ints) -> Tensor",
        "(input: Tensor, dtype: DType) -> Tensor",
        "(input: Tensor, *, size: Ints) -> Tensor",
    ),
    "expand": (
        "(input: Tensor, *size: Ints, implicit: bool = False) -> Tensor",
        "(input: Tensor, *, size: Ints, implicit: bool = False) -> Tensor",
    ),
    "repeat": ("(input: Tensor, *sizes: Ints) -> Tensor", "(input: Tensor, *, repeats: Ints) -> Tensor"),
    "to": (
        "(input: Tensor, dtype: DTypeLike, non_blocking: bool = False, copy: bool = False, *, "
        "memory_format: Layout | None = None) -> Tensor",
        f"(input: Tensor, device: DeviceLike | None = None, dtype: DTypeLike | None = None, {_TO}) -> Tensor",
        "(input: Tensor, other: Tensor, non_blocking: bool = False, copy: bool = False, *, "
        "memory_format: Layout | None = None) -> Tensor",
    ),
    "type": (
        "(input: Tensor) -> str",
        "(input: Tensor, dtype: DTypeLike | str | type[Tensor], non_blocking: bool = False) -> Tensor",
    ),
    "atleast_1d atleast_2d atleast_3d": (
        "(tensor: Tensor, /) -> Tensor",
        "(tensors: Sequence[Tensor], /) -> tuple[Tensor, ...]",
        "(first: Tensor, second: Tensor, /, *rest: Tensor) -> tuple[Tensor, ...]",
    ),
    "broadcast_shapes": ("(*shapes: Ints) -> Size",),
    "tensordot": (
        "(a: Tensor, b: Tensor, dims: Ints | Sequence[Sequence[int]] | Tensor = 2, *, out: Tensor | None = None) -> Tensor",
    ),
    "random.fork_rng": ("(devices: Any = None, enabled: bool = True, **_: Any) -> AbstractContextManager[None]",),
    "__getitem__": ("(input: Tensor, key: Any) -> Tensor",),
    "__setitem__": ("(input: Tensor, key: Any, value: Operand | Sequence[Any]) -> None",),
    "__eq__ __ne__": ("(input: Tensor, other: object) -> Tensor: ...  # type: ignore[override]",),
    "__contains__": ("(input: Tensor, element: object) -> bool",),
    "bernoulli_": ("(input: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Self",),
}
SEVERAL = {name: ways for names, ways in _SEVERAL.items() for name in names.split()}

# Attributes whose declaration does not say what they are.
ATTRIBUTES = {
    "grad": "Tensor | None",
    "data": "Tensor",
    "__array_priority__": "float",
    "retains_grad": "bool",
    "output_nr": "int",
}
FIELDS = {"HistogramDD.bin_edges": "tuple[Tensor, ...]"}
# Functions that return a tensor, though they do not say so.
TENSORS = frozenset(
    """binary_cross_entropy_with_logits cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss
    triplet_margin_loss __pos__""".split()
)
