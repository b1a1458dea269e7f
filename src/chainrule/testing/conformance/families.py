"""A family for every database entry, from its name and kind: used to filter runs and the page, never to judge."""

from __future__ import annotations

import re
from typing import Any

# First match wins, so narrow names stand before broad ones.
_BY_NAME: tuple[tuple[str, str], ...] = (
    ("pointwise", r"addcmul|addcdiv|clamp|lerp|logaddexp2"),
    ("masked", r"masked\."),
    ("sparse", r"sparse\.|to_sparse"),
    ("signal", r"signal\.|stft|istft"),
    ("fft", r"fft\."),
    ("attention", r".*attention"),
    ("recurrent", r".*(lstm|gru|rnn)"),
    (
        "random",
        r"(nn\.functional\.)?(.*dropout.*|bernoulli|multinomial|normal|uniform|cauchy|exponential|geometric|log_normal"
        r"|rand.*|.*rrelu)$",
    ),
    (
        "norm",
        r".*(batch_norm|layer_norm|group_norm|instance_norm|rms_norm|local_response_norm|weight_norm|_native_batch_norm).*"
        r"|nn\.functional\.normalize",
    ),
    ("embedding", r"nn\.functional\.embedding|nn\.functional\.one_hot"),
    (
        "resample",
        r".*(interpolate|upsample|grid_sampl|affine_grid|pixel_shuffle|pixel_unshuffle|channel_shuffle).*",
    ),
    ("pool", r".*(pool|nn\.functional\.(un)?fold$).*"),
    ("conv", r".*conv.*"),
    ("loss", r".*(_loss|cross_entropy|kl_div|pairwise_distance|cosine_similarity|pdist|cosine_embedding).*"),
    (
        "activation",
        r"nn\.functional\.(celu|elu|gelu|glu|hard.*|leaky_relu|logsigmoid|mish|prelu|relu6?|selu|silu|soft.*|tanhshrink"
        r"|threshold)|softmax|log_softmax|_softmax_backward_data|_safe_softmax|sigmoid|torch.ops.aten._safe_softmax",
    ),
    (
        "linalg",
        r"linalg\.|cholesky.*|lu.*|svd.*|pca_lowrank|pinverse|qr|logdet|geqrf|ormqr|triangular_solve|matrix_exp|trace"
        r"|cdist|cov|corrcoef|linalg_.*",
    ),
    (
        "matmul",
        r"(__r)?matmul|mm$|bmm|mv$|dot$|vdot|inner|outer|addmm.*|addbmm|addmv|addr|baddbmm|einsum|tensordot|kron|ger"
        r"|chain_matmul|.*bilinear$|nn\.functional\.linear|cross$|_scaled_mm.*|__rmatmul__",
    ),
    (
        "scan",
        r"cum.*|logcumsumexp|cumulative_trapezoid|trapezoid|trapz|diff$|gradient$",
    ),
    (
        "sort",
        r"sort|argsort|topk|kthvalue|msort|mode|median|nanmedian|quantile|nanquantile|unique.*|searchsorted|bucketize",
    ),
    (
        "index",
        r"gather|scatter.*|index_.*|take.*|put|masked_(fill|scatter|select)|__getitem__|select_scatter|slice_scatter"
        r"|diagonal_scatter|nonzero.*|argwhere|where|slice$|unravel_index|isin|bincount|histc|histogram.*|_unsafe_masked_index.*",
    ),
    (
        "creation",
        r"arange|linspace|logspace|empty.*|new_.*|ones.*|zeros.*|full.*|eye|scalar_tensor|tril_indices|triu_indices|vander"
        r"|block_diag|cartesian_prod|combinations|meshgrid",
    ),
    (
        "cast",
        r"to$|bfloat16|bool|byte|char|double|float|half|int|long|short|cdouble|cfloat|chalf|item|type_as|contiguous|clone"
        r"|resize.*|zero_|detach.*",
    ),
    (
        "reduce",
        r"equal|allclose|_segment_reduce|sum|mean|prod|norm$|amax|amin|aminmax|max|min|all|any|argmax|argmin|count_nonzero|std.*|var.*|logsumexp|nansum"
        r"|nanmean|dist|renorm|sum_to_size|hash_tensor|norm",
    ),
    (
        "shape",
        r"reshape.*|view.*|expand.*|flatten|unflatten|squeeze.*|unsqueeze.*|transpose.*|permute.*|swap.*|t$|T$|H$|mT$|mH$"
        r"|adjoint|movedim|cat|concat.*|.*stack|.*split.*|chunk|unsafe_chunk|tile|repeat.*|roll|rot90|flip.*|narrow.*|select"
        r"|diag.*|tril|triu|unbind.*|unfold.*|as_strided.*|atleast.*|broadcast.*|nn\.functional\.pad|constant_pad_nd|alias_copy"
        r"|_chunk_cat|ravel|.*_copy|hstack|vstack|dstack|trace|resolve.*",
    ),
    ("special", r"special\.|polygamma|digamma|lgamma|mvlgamma|igamma.*|erf.*|i0|sinc|xlogy|logit"),
)
_COMPILED = tuple((family, re.compile(f"(?:{pattern})")) for family, pattern in _BY_NAME)
_BY_KIND = {
    "UnaryUfuncInfo": "pointwise",
    "BinaryUfuncInfo": "pointwise",
    "ReductionOpInfo": "reduce",
    "SpectralFuncInfo": "fft",
    "ShapeFuncInfo": "shape",
}


def family_of(op: Any) -> str:
    """The family of an operator-database entry, ``"pointwise"`` where nothing else fits an elementwise kind."""
    name = op.name.removeprefix("torch.ops.aten.").removeprefix("torch.").removeprefix("ops.aten.")
    kind = _BY_KIND.get(type(op).__name__)
    for family, pattern in _COMPILED:
        if kind == "pointwise" and family in {"reduce", "shape", "index", "creation", "linalg"}:
            continue
        if pattern.match(name):
            return family
    return kind or "other"
