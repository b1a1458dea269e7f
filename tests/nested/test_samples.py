"""Every sample of every op in the library, mapped by vmap over a nest of such inputs with sizes of their own.

The first dim of the first tensor (and of those that share it) is ragged where the op allows other sizes. What an op cannot do is
listed, with the reason; it must then say so in an error, never give another value.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import chainrule as ct
from chainrule.core.samples import SAMPLES, Given, S, Sample
from chainrule.core.tree import flatten, unflatten

nested, func = ct.nested, ct.func

ON_A_PATTERN = "sparse.mm sparse.sampled_addmm sparse.softmax sparse.sum sparse.spsolve Tensor.to_dense Tensor.sparse_mask Tensor.coalesce".split()
RECURRENT = "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split()
CONCRETE = "its loops or tables need one concrete size"
WITHOUT: dict[str, str] = {
    "squeeze": "a ragged dim stays, though one component has size 1 in it",
    "prelu": "a number has no ragged dim", "index_add": "a number has no ragged dim", "band_scan": CONCRETE, "band_scan_back": CONCRETE,
    "cov": CONCRETE, "combinations": CONCRETE, "diagonal_scatter": CONCRETE,
    "gradient": "its formula at the ends depends on the size", "pdist": CONCRETE, "masked_select": "the number of results differs",
    "ormqr": CONCRETE, "nn.functional.ctc_loss": CONCRETE, "nn.functional.multilabel_margin_loss": CONCRETE, "nn.functional.multi_margin_loss": CONCRETE,
    "scatter_reduce": CONCRETE,
    "index_reduce": CONCRETE, "segment_reduce": "lengths of its own", "as_strided": "no strides", "as_strided_scatter": "no strides",
    "scatter_add": "a source larger than the index", "conv_tbc": CONCRETE, "nn.functional.grid_sample": CONCRETE,
    "nn.functional.affine_grid": CONCRETE, "linalg.svd": CONCRETE, "linalg.pinv": CONCRETE, "linalg.lstsq": CONCRETE,
    "linalg.det": CONCRETE, "linalg.lu": CONCRETE, "linalg.lu_factor": CONCRETE, "linalg.lu_solve": CONCRETE, "linalg.qr": CONCRETE,
    "linalg.householder_product": CONCRETE, "nn.functional.max_unpool1d": CONCRETE, "nn.functional.max_unpool2d": CONCRETE,
    "nn.functional.fractional_max_pool3d": CONCRETE, "Tensor.unfold": CONCRETE,
    **dict.fromkeys(ON_A_PATTERN, "one pattern of stored entries for all components"),
    "lobpcg": CONCRETE, "nn.functional.grouped_mm": "ends of groups of its own",
    "geqrf": CONCRETE, "_trilinear": CONCRETE, "embedding_dense_backward": CONCRETE, "sylvester": CONCRETE, "schur": CONCRETE,
    **dict.fromkeys(RECURRENT, "weights of one size, and steps that say how many rows there are"),
    "istft": CONCRETE, "_weight_norm": "the norm is taken over what is ragged",
}  # fmt: skip

# Their arguments must fit each other, or their numbers the size: three inputs of the sample's own sizes, still in a ragged dim.
OWN_SIZES = frozenset(
    """
    _C._nn.nll_loss _weight_norm addbmm addmm addmv addr as_strided band_scan band_scan_back bincount cholesky_solve column_stack
    cumulative_trapezoid diagonal_scatter einsum expand gather getitem gradient heaviside histogram index_add index_copy istft kthvalue
    ldexp linalg.ldl_factor lobpcg nn.functional.grouped_mm linalg.ldl_factor_ex linalg.ldl_solve
    linalg.det linalg.eigvals linalg.eigvalsh linalg.householder_product linalg.lstsq linalg.lu_solve linalg.matrix_power
    linalg.pinv linalg.solve linalg.solve_triangular linalg.tensorinv linalg.tensorsolve masked.amax masked.amin masked.cumprod
    masked.cumsum masked.logsumexp masked.mean masked.median masked.norm masked.normalize masked.prod masked.softmax masked.softmin
    masked.std masked.sum masked.var masked_scatter matmul native_dropout_backward native_group_norm_backward native_layer_norm
    nn.functional.affine_grid nn.functional.batch_norm nn.functional.binary_cross_entropy_with_logits nn.functional.conv1d
    nn.functional.conv_transpose1d nn.functional.cosine_embedding_loss nn.functional.cross_entropy nn.functional.ctc_loss
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d nn.functional.gaussian_nll_loss nn.functional.glu
    nn.functional.grid_sample nn.functional.group_norm nn.functional.instance_norm nn.functional.kl_div nn.functional.layer_norm
    nn.functional.linear_cross_entropy nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.multi_margin_loss
    nn.functional.multilabel_margin_loss nn.functional.nll_loss nn.functional.scaled_dot_product_attention ormqr pow prelu put scatter
    scatter_add scatter_reduce segment_reduce select_scatter split take triangular_solve view vstack
    """.split()
) | frozenset(
    (
        *ON_A_PATTERN,
        *RECURRENT,
        "sylvester",
        "schur",
        "_trilinear",
        "embedding_dense_backward",
        "nn.functional.embedding",
        "nn.functional.embedding_bag",
    )
)
# Random, or as many results as the size allows: there is nothing to compare with.
NOT_COMPARED = frozenset(
    "nn.functional.dropout nn.functional.alpha_dropout nn.functional.dropout2d native_dropout_backward split chunk".split()
)


def function(s: Sample) -> Any:
    f: Any = ct
    for part in s.name.split("."):
        f = s.f if s.f is not None else getattr(f, part)
    return f


class Mapped:
    """A sample with inputs of three sizes: the dense calls, and the function of the inputs that become nests."""

    def __init__(self, s: Sample) -> None:
        self.f = function(s)
        leaves, self.spec = flatten((s.args, s.kw))
        tensors = [i for i, a in enumerate(leaves) if isinstance(a, S) and a.shape and not a.spd]
        first = leaves[tensors[0]].shape if tensors else ()
        self.ragged = [i for i in tensors if leaves[i].shape[:1] == first[:1] and len(leaves[i].shape) == len(first)]
        self.inputs: list[list[Any]] = []
        for n in (first[0], first[0] + 2, max(first[0] - 1, 1)) if tensors else ():
            rng = np.random.default_rng(n)
            self.inputs.append(
                [
                    ct.tensor(S(n, *a.shape[1:], low=a.low, high=a.high).make(rng, False))
                    if i in self.ragged
                    else ct.tensor(a.make(np.random.default_rng(i), False))
                    if isinstance(a, S | Given)
                    else a
                    for i, a in enumerate(leaves)
                ]
            )

    def run(self, values: list[Any], *mine: Any) -> list[Any]:
        full = list(values)
        for i, v in zip(self.ragged, mine, strict=False):
            full[i] = v
        args, kw = unflatten(full, self.spec)
        return [y for y in flatten(self.f(*args, **kw))[0] if isinstance(y, ct.Tensor)]

    def number(self, values: list[Any]) -> Any:
        return lambda *c: sum((y * y).sum() for y in self.run(values, *c) if y.dtype.is_floating_point)


@pytest.mark.parametrize("s", [s for s in SAMPLES if Mapped(s).inputs and s.name not in NOT_COMPARED], ids=repr)
def test_samples_over_a_nest(s: Sample) -> None:
    m = Mapped(s)
    try:
        want = [m.run(v) for v in m.inputs]
    except (RuntimeError, ValueError, IndexError):
        if s.name not in OWN_SIZES:
            raise
        m.inputs = m.inputs[:1] * 3
        want = [m.run(v) for v in m.inputs]
    assert want[0] and len({len(w) for w in want}) == 1
    xs = [nested.as_nested_tensor([v[i] for v in m.inputs]) for i in m.ragged]
    one = lambda *c: m.run(m.inputs[0], *c)
    try:
        got = ct.vmap(one, randomness="different")(*xs)
    except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
        if s.name in WITHOUT:
            return
        raise
    # A ragged dim stays in each component, where squeezing one of size 1 alone would have removed it.
    assert agrees(got, want, ones=s.name == "squeeze"), f"{s!r}: values"
    if any(y.dtype.is_floating_point for y in want[0]):
        every = tuple(range(len(xs)))
        try:
            grads = ct.vmap(func.grad(m.number(m.inputs[0]), every), randomness="different")(*xs)
        except (RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            if s.name in WITHOUT:
                return
            raise
        each = [func.grad(m.number(v), every)(*[v[i] for i in m.ragged]) for v in m.inputs]
        assert agrees(grads, each), f"{s!r}: gradients"


def agrees(got: Any, want: list[Any], ones: bool = False) -> bool:
    """Whether mapped results equal those of each component, in numbers and shapes; with `ones`, but for sizes of 1."""
    for y, *w in zip(got, *want, strict=True):
        for a, b in zip(y.unbind(), w, strict=True):
            if ones and [n for n in a.shape if n != 1] == [n for n in b.shape if n != 1]:
                a = a.reshape(b.shape)
            if a.shape != b.shape or not np.allclose(a.numpy(), b.numpy(), 1e-7, 1e-9, equal_nan=True):
                return False
    return True
