"""Compiled kernels on NumPy arrays: `available()`, the normalisations, softmax, elementwise functions, the buffer pool, threads.

Every function takes and returns contiguous ndarrays of float32, float64, float16 or bfloat16 (16-bit types are computed in f32 and
rounded once), and raises `NotSupported` for anything else, so that its caller falls back to plain operators.
"""

from . import copies, folds, indexing, matmul, matrices, ordering, pool, ranks, scans, sums
from .batch_norm import batch_norm, batch_norm_backward, batch_norm_eval
from .calls import NotSupported
from .compiler import available
from .group_norm import group_norm, group_norm_backward
from .layer_norm import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from .layer_norm_higher import layer_norm_backward_tangent, layer_norm_double_backward, layer_norm_tangent
from .pointwise import Pointwise
from .runtime import get_num_threads, set_num_threads
from .softmax import along as softmax_along
from .softmax import log_softmax, log_softmax_backward, softmax, softmax_backward
from .softmax import pull_along as softmax_pull_along
from .weight_norm import (
    weight_norm,
    weight_norm_backward,
    weight_norm_backward_tangent,
    weight_norm_double_backward,
)

__all__ = [
    "NotSupported",
    "Pointwise",
    "available",
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_eval",
    "copies",
    "folds",
    "get_num_threads",
    "group_norm",
    "group_norm_backward",
    "indexing",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_backward_tangent",
    "layer_norm_double_backward",
    "layer_norm_tangent",
    "log_softmax",
    "log_softmax_backward",
    "matmul",
    "matrices",
    "ordering",
    "pool",
    "ranks",
    "rms_norm",
    "rms_norm_backward",
    "scans",
    "set_num_threads",
    "softmax",
    "softmax_along",
    "softmax_backward",
    "softmax_pull_along",
    "sums",
    "weight_norm",
    "weight_norm_backward",
    "weight_norm_backward_tangent",
    "weight_norm_double_backward",
]
