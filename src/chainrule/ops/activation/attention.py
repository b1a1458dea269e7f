"""Attention: ``softmax(q k^T scale + mask) v``, one op; with a mask or dropout a composition, on ragged sequences one op on buckets of similar lengths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.registry import PUBLIC, public
from ...core.samples import Given, S, sample
from ...core.shapes import broadcast_shapes, sizes_of
from ...core.straight import straight
from ...core.tensor import Tensor
from ...kernels import NotSupported
from ...kernels import attention as kernels
from ..elementwise.select import where
from ..linalg.matmul import rounded_once
from ..reduce.adding import total
from ..reduce.reductions import softmax
from ..shape.create import ones


def _check(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> None:
    name = "scaled_dot_product_attention"
    if not q.dtype is k.dtype is v.dtype:
        raise RuntimeError(
            f"{name}: query, key and value must have the same dtype, got {q.dtype}, {k.dtype} and {v.dtype}"
        )
    for what, x in (("query", q), ("key", k), ("value", v)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name}: {what} must be at least 2-D, [..., length, features], got shape {list(x.shape)}"
            )
    if q.shape[-1] != k.shape[-1]:
        raise RuntimeError(
            f"{name}: query and key must have the same number of features, got {list(q.shape)} and {list(k.shape)}"
        )
    if mask is not None:
        if causal:
            raise RuntimeError(f"{name}: Explicit attn_mask should not be set when is_causal=True")
        if mask.dtype is not dt.bool_ and mask.dtype is not q.dtype:
            raise RuntimeError(f"{name}: attn_mask must be bool or of query's dtype {q.dtype}, got {mask.dtype}")


def scores(q: Tensor, k: Tensor, scale: float, mask: Tensor | None, causal: bool) -> Tensor:
    """``q k^T scale``, with ``-inf`` where the mask says so, or plus the mask."""
    s = (q @ k.mT) * scale
    if causal:
        mask = triangle(s)
    if mask is None:
        return s
    return where(mask, s, float("-inf")) if mask.dtype is dt.bool_ else s + mask


def triangle(s: Tensor) -> Tensor:
    """Whether an entry is on or below the diagonal."""
    if s.is_nested:
        return (s.detach() * 0 + 1).tril() != 0
    return ones(s.shape[-2], s.shape[-1], dtype=dt.bool_).tril()


def weights(s: Tensor, masked: bool) -> Tensor:
    """The softmax over the last dim; rows in which every entry is masked are 0, not NaN."""
    if not masked:
        return softmax(s, -1)
    dead = (s == float("-inf")).all(-1, True)
    return where(dead, 0, softmax(where(dead, 0, s), -1))


def compose(q: Tensor, k: Tensor, v: Tensor, scale: float, causal: bool) -> Tensor:
    """Attention without a mask of its own, as a composition."""
    return weights(scores(q, k, scale, None, causal), causal) @ v


@public("nn.functional.scaled_dot_product_attention _C._nn.scaled_dot_product_attention", out=False)
@straight
@rounded_once
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """``softmax(query key^T scale + mask) value`` over the last two dims; nested sequences of any lengths.

    A boolean mask says which keys a query may see; a query that may see none gets 0. With ``enable_gqa`` several heads of
    the query (dim -3) share one of key and value.
    """
    _check(query, key, value, attn_mask, is_causal)
    if not 0 <= dropout_p <= 1:
        raise ValueError(f"scaled_dot_product_attention: dropout_p must be between 0 and 1, got {dropout_p}")
    if enable_gqa:
        key, value = (_share_heads(query, x, n) for x, n in ((key, "key"), (value, "value")))
    d = query.shape[-1]
    factor = scale if scale is not None else d**-0.5 if not isinstance(d, int) else 1 / math.sqrt(d) if d else 1.0
    if attn_mask is None and not dropout_p and _alike(query, key, value, factor):
        return attention_p(query, key, value, scale=factor, causal=bool(is_causal))
    w = weights(scores(query, key, factor, attn_mask, is_causal), is_causal or attn_mask is not None)
    if dropout_p:
        w = PUBLIC["nn.functional.dropout"](w, dropout_p)
    return w @ value


def _alike(q: Tensor, k: Tensor, v: Tensor, factor: Any) -> bool:
    """Whether one op does it: real numbers, one scale, and three tensors that are all ragged, or none of them."""
    ragged = q.is_nested
    if k.is_nested != ragged or v.is_nested != ragged or q.dtype.category != dt.FLOAT:
        return False
    return isinstance(factor, float | int) and (not ragged or q.ndim == k.ndim == v.ndim)


def _share_heads(q: Tensor, x: Tensor, name: str) -> Tensor:
    """Heads of key or value repeated for the groups of the query's heads that share them."""
    if q.ndim < 3 or x.ndim < 3 or x.shape[-3] == 0 or q.shape[-3] % x.shape[-3]:
        raise RuntimeError(
            f"scaled_dot_product_attention: the number of heads of {name} {list(x.shape)} must divide the query's {list(q.shape)}"
        )
    n = q.shape[-3] // x.shape[-3]
    if n == 1:
        return x
    s = tuple(x.shape)
    return x.unsqueeze(-3).expand(*s[:-2], n, *s[-2:]).reshape(*s[:-3], s[-3] * n, *s[-2:])


# -- one op for ragged sequences: its body and that of its transpose are given for nests ---------------------------------------------


def attend(q: Any, k: Any, v: Any, scale: float, hide: Any) -> tuple[Any, Any]:
    """Attention of arrays, and its weights; `hide` marks the pairs that do not see each other."""
    s = np.matmul(q * q.dtype.type(scale), k.swapaxes(-1, -2))
    if hide is not None:
        np.copyto(s, -np.inf, where=hide)
    top = np.maximum.reduce(s, axis=-1, keepdims=True, initial=-np.inf)
    s -= np.where(np.isfinite(top), top, 0)
    np.exp(s, out=s)
    each = total(s, (-1,), True)
    s /= np.where(each == 0, 1, each)
    return np.matmul(s, v), s


def attend_back(g: Any, q: Any, k: Any, v: Any, scale: float, hide: Any) -> tuple[Any, Any, Any]:
    """Cotangents of query, key and value, from weights that are computed again."""
    y, w = attend(q, k, v, scale, hide)
    gv = np.matmul(w.swapaxes(-1, -2), g)
    gs = np.matmul(g, v.swapaxes(-1, -2))
    gs -= total(g * y, (-1,), True)
    gs *= w
    gs *= g.dtype.type(scale)
    return np.matmul(gs, k), np.matmul(gs.swapaxes(-1, -2), q), gv


def _hidden(q: Any, k: Any, causal: bool) -> Any:
    return ~np.tri(q.shape[-2], k.shape[-2], dtype=bool) if causal else None


@op("attention", core="(l,d),(s,d),(s,e)->(l,e)")
def attention_p(q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    """``softmax(q k^T scale) v``, each query seeing all keys, or with `causal` those up to its own place."""
    try:
        return kernels.attention(q, k, v, scale, causal)
    except NotSupported:
        return attend(q, k, v, scale, _hidden(q, k, causal))[0]


@op("attention_back", core="(l,e),(l,d),(s,d),(s,e)->(l,d),(s,d),(s,e)")
def attention_back_p(g: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    """The cotangents of q, k and v: the weights are computed again instead of being kept."""
    try:
        return kernels.attention_back(g, q, k, v, scale, causal)
    except NotSupported:
        pass
    lead = np.broadcast_shapes(*(x.shape[:-2] for x in (g, q, k, v)))  # under vmap some may be shared by the examples
    g, q, k, v = (np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (g, q, k, v))
    return attend_back(g, q, k, v, scale, _hidden(q, k, causal))


@attention_p.jvp
def _(t: Any, y: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    from ...transforms.forward import jvp

    return jvp(lambda q, k, v: compose(q, k, v, scale, causal), (q, k, v), tuple(t))[1]


@attention_p.vjp
def _(g: Any, y: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    return attention_back_p(g, q, k, v, scale=scale, causal=causal)


def _composed_back(scale: float, causal: bool) -> Any:
    from ...transforms.reverse import vjp

    def back(g: Any, q: Any, k: Any, v: Any) -> Any:
        # Under vmap the examples may share some of them, the cotangent too: all have the leading axes of all, as in the body.
        lead = broadcast_shapes(*(sizes_of(x)[:-2] for x in (g, q, k, v)))
        g, q, k, v = (x if sizes_of(x)[:-2] == lead else x.expand(*lead, *x.shape[-2:]) for x in (g, q, k, v))
        return vjp(lambda q, k, v: compose(q, k, v, scale, causal), q, k, v)[1](g)

    return back


@attention_back_p.jvp
def _(t: Any, y: Any, g: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    from ...transforms.forward import jvp

    return jvp(_composed_back(scale, causal), (g, q, k, v), tuple(t))[1]


@attention_back_p.vjp
def _(c: Any, y: Any, g: Any, q: Any, k: Any, v: Any, *, scale: float, causal: bool) -> Any:
    from ...transforms.reverse import vjp

    return vjp(_composed_back(scale, causal), g, q, k, v)[1](tuple(c))


# -- samples ------------------------------------------------------------------------------------------------------------

for _kw in ({}, {"is_causal": True}, {"scale": 0.3}):
    sample("nn.functional.scaled_dot_product_attention", S(2, 3, 4), S(2, 5, 4), S(2, 5, 2), cx=False, **_kw)
sample("nn.functional.scaled_dot_product_attention", S(3, 4), S(3, 4), S(3, 2), S(3, 3), cx=False)
sample(
    "nn.functional.scaled_dot_product_attention",
    S(2, 4), S(3, 4), S(3, 2), Given([[True, False, True], [False, False, False]]), cx=False,
)  # fmt: skip
sample("nn.functional.scaled_dot_product_attention", S(4, 3, 2), S(2, 3, 2), S(2, 3, 2), enable_gqa=True, cx=False)
# The op for nests, on one sequence.
for _causal in (False, True):
    sample(
        "nn.functional.scaled_dot_product_attention",
        S(2, 4), S(3, 4), S(3, 2), f=lambda q, k, v, c=_causal: attention_p(q, k, v, scale=0.5, causal=c), cx=False,
    )  # fmt: skip
