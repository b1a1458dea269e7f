"""Connectionist temporal classification: the likelihood of a label sequence, summed over all its alignments.

The forward variables obey ``a[t, l] = lp[t, l] + logsumexp(a[t-1, l], a[t-1, l-1], a[t-1, l-2])``. Linearised, this is a
recurrence with three diagonals, ``y[t] = b[t] + W[t] y[t-1]``, whose weights come from the forward variables without a loop.
That recurrence and its transpose are each other's derivatives, so that three scans over time give every order.
Graves, Fernandez, Gomez, Schmidhuber: Connectionist temporal classification (2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtypes as dt
from ...core.declare import op
from ...core.dispatch import look, values
from ...core.registry import public
from ...core.samples import Given, S, sample
from ...core.shapes import constant, zeros_beside
from ...core.straight import straight
from ...core.tensor import Tensor
from ..elementwise.elementary import exp
from ..elementwise.select import where
from ..index.gather import gather
from ..reduce.reductions import logsumexp
from ..shape.in_each import whole_nest
from ..shape.slices import cat, stack
from .classes import check_classes_p
from .elements import REDUCTIONS, reduced, reduction_of

NEVER = float("-inf")


def _full(like: Tensor, shape: tuple[int, ...], value: float) -> Tensor:
    return constant(np.full(shape, value), like)


def shifts(y: Tensor, fill: float = 0.0, first: float = 0.0) -> Tensor:
    """``s[t, l, k] = y[t-1, l-k]`` for k = 0, 1, 2, with `fill` outside and `first` at ``y[-1, 0]``."""
    *lead, steps, n = y.shape
    start = _full(y, (*lead, 1, n), fill)
    if first != fill:
        start = cat([_full(y, (*lead, 1, 1), first), start.narrow(-1, 1, n - 1)], -1)
    before = cat([start, y.narrow(-2, 0, steps - 1)], -2)
    wide = cat([_full(y, (*lead, steps, 2), fill), before], -1)
    return stack([before, wide.narrow(-1, 1, n), wide.narrow(-1, 0, n)], -1)


def unshifts(v: Tensor) -> Tensor:
    """The transpose of ``shifts``: ``z[t, l] = sum_k v[t+1, l+k, k]``."""
    *lead, steps, n, _ = v.shape
    late = cat([v.narrow(-3, 1, steps - 1), _full(v, (*lead, 1, n, 3), 0.0)], -3)
    wide = cat([late, _full(v, (*lead, steps, 2, 3), 0.0)], -2)
    return sum((wide.narrow(-2, k, n).select(-1, k) for k in (1, 2)), wide.narrow(-2, 0, n).select(-1, 0))


@op("band_scan", core="(t,l,k),(t,l)->(t,l)")
def band_scan_p(w: Any, b: Any) -> Any:
    """``y[t, l] = b[t, l] + sum_k w[t, l, k] y[t-1, l-k]``."""
    lead = np.broadcast_shapes(w.shape[:-3], b.shape[:-2])
    steps, n = b.shape[-2:]
    y = np.empty((*lead, steps, n), np.result_type(w, b))
    pad = np.zeros((*lead, n + 2), y.dtype)
    for t in range(steps):
        v = w[..., t, :, :]
        now = b[..., t, :] + v[..., 0] * pad[..., 2:] + v[..., 1] * pad[..., 1:-1] + v[..., 2] * pad[..., :-2]
        y[..., t, :] = pad[..., 2:] = now
    return y


@op("band_scan_back", core="(t,l,k),(t,l)->(t,l)")
def band_scan_back_p(w: Any, g: Any) -> Any:
    """``z[t, l] = g[t, l] + sum_k w[t+1, l+k, k] z[t+1, l+k]``: the transpose of ``band_scan`` in its second argument."""
    lead = np.broadcast_shapes(w.shape[:-3], g.shape[:-2])
    steps, n = g.shape[-2:]
    z = np.empty((*lead, steps, n), np.result_type(w, g))
    come = np.zeros((*lead, n), z.dtype)
    for t in range(steps - 1, -1, -1):
        now = z[..., t, :] = g[..., t, :] + come
        v = w[..., t, :, :]
        come = v[..., 0] * now
        come[..., :-1] += v[..., 1:, 1] * now[..., 1:]
        come[..., :-2] += v[..., 2:, 2] * now[..., 2:]
    return z


band_scan_p.jvp(
    [
        lambda t, y, w, b: band_scan_p(w, (t * shifts(y)).sum(-1)),
        lambda t, y, w, b: band_scan_p(w, t),
    ]
)
band_scan_back_p.jvp(
    [
        lambda t, z, w, g: band_scan_back_p(w, unshifts(t * z.unsqueeze(-1))),
        lambda t, z, w, g: band_scan_back_p(w, t),
    ]
)


@band_scan_p.vjp
def _(g: Any, y: Any, w: Any, b: Any) -> Any:
    z = band_scan_back_p(w, g)
    return lambda: z.unsqueeze(-1) * shifts(y), lambda: z


@band_scan_back_p.vjp
def _(c: Any, z: Any, w: Any, g: Any) -> Any:
    u = band_scan_p(w, c)
    return lambda: z.unsqueeze(-1) * shifts(u), lambda: u


@op("ctc_forward", core="(t,l),(l)->(t,l)")
def ctc_forward_p(lp: Any, skip: Any) -> Any:
    """The forward variables: log-likelihood of all alignments of the first l labels to the first t steps."""
    lead = np.broadcast_shapes(lp.shape[:-2], skip.shape[:-1])
    steps, n = lp.shape[-2:]
    a = np.empty((*lead, steps, n), lp.dtype)
    pad = np.full((*lead, n + 2), NEVER, lp.dtype)
    pad[..., 2] = 0
    for t in range(steps):
        stay = np.logaddexp(pad[..., 2:], pad[..., 1:-1])
        now = np.logaddexp(stay, np.where(skip, pad[..., :-2], NEVER)) + lp[..., t, :]
        a[..., t, :] = pad[..., 2:] = now
    return a.astype(lp.dtype, copy=False)


def _ctc_weights(a: Tensor, lp: Tensor, skip: Tensor) -> Tensor:
    """Which share of ``a[t, l]`` came from each of its three predecessors."""
    s = shifts(a, NEVER, 0.0)
    allowed = stack([skip == skip, skip == skip, skip], -1).unsqueeze(-3)
    dead = (s == NEVER) | (a == NEVER).unsqueeze(-1) | ~allowed
    return where(dead, 0, exp.bind(where(dead, 0, s + (lp - a).unsqueeze(-1))))


@ctc_forward_p.jvp(sparse=True)
def _(t: Any, a: Any, lp: Any, skip: Any) -> Any:
    return band_scan_p(_ctc_weights(a, lp, skip), t[0])


@ctc_forward_p.vjp
def _(g: Any, a: Any, lp: Any, skip: Any) -> Any:
    return lambda: band_scan_back_p(_ctc_weights(a, lp, skip), g), None


def _lengths(x: Any, n: int, name: str, most: int, of: str) -> Tensor:
    """Lengths given as numbers or as an integer tensor, one an example, checked against what there is."""
    v = x if isinstance(x, Tensor) else Tensor(np.asarray(x, np.int64))
    if v.dtype.category != dt.INT:
        raise RuntimeError(f"ctc_loss: {name} must be integral, got {v.dtype}")
    if v.numel() != n:
        raise RuntimeError(
            f"ctc_loss: {name} must be of size {n}, one for each example of log_probs; got {list(v.shape)}"
        )

    def check(values: Any) -> None:
        if values.size and (values.min() < 0 or values.max() > most):
            raise RuntimeError(
                f"ctc_loss: Expected {name} to lie in [0, {most}], the {of}, but got {values.min()} to {values.max()}"
            )

    look(v, check)
    return v.reshape(n).to(dt.int64)


_LONGEST = "ctc_loss, whose targets are cut to the longest,"


def _padded(targets: Tensor, lengths: Tensor) -> Tensor:
    """Concatenated targets as one row an example."""
    most = int(values(lengths, _LONGEST).max(initial=0))
    where_from = (lengths.cumsum(0) - lengths).unsqueeze(-1) + constant(np.arange(most), lengths)
    n = targets.shape[0]
    if n == 0 or most == 0:
        return zeros_beside((lengths.shape[0], most), lengths)
    return gather(targets, 0, where_from.clamp(max=n - 1).reshape(-1)).reshape(lengths.shape[0], most)


@public("nn.functional.ctc_loss", out=False)
@straight
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any = None,
    target_lengths: Any = None,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Minus the log of the probability that the steps of `log_probs` (T, N, C) spell `targets`, blanks and repeats removed.

    `targets` is (N, S), or all sequences in one row. Lengths are those of the arguments unless told. Of nested tensors `log_probs` is
    (N, T, C) and `targets` (N, S) with lengths of their own. "mean" divides each loss by its target's length first. The gradient
    is that of the formula for any `log_probs`; PyTorch's agrees after a log_softmax.
    """
    r = reduction_of(reduction)
    if not isinstance(log_probs, Tensor) or not isinstance(targets, Tensor):
        raise TypeError(
            f"ctc_loss: log_probs and targets must be tensors, got {type(log_probs).__name__} and {type(targets).__name__}"
        )
    if whole_nest(log_probs) or whole_nest(targets):
        log_probs, targets, input_lengths, target_lengths = _dense(log_probs, targets, input_lengths, target_lengths)
    elif any(not isinstance(s, int) for s in (*log_probs.shape, *targets.shape)):  # of one component
        from ...payloads.nested.by_sizes import call_by_sizes

        args = (log_probs, targets, input_lengths, target_lengths)
        return call_by_sizes(ctc_loss, args, {"blank": blank, "reduction": r, "zero_infinity": zero_infinity})
    single = log_probs.ndim == 2
    if log_probs.ndim not in (2, 3):
        raise RuntimeError(f"ctc_loss: log_probs must be (T, N, C) or (T, C), got {list(log_probs.shape)}")
    if log_probs.dtype.category != dt.FLOAT or targets.dtype.category != dt.INT:
        raise RuntimeError(
            f"ctc_loss: log_probs must be floating and targets integral, got {log_probs.dtype} and {targets.dtype}"
        )
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.reshape(1, -1)
    steps, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError(f"ctc_loss: blank must be in label range [0, {classes}), got {blank}")
    if targets.ndim not in (1, 2) or (targets.ndim == 2 and targets.shape[0] != n):
        raise RuntimeError(f"ctc_loss: targets must be ({n}, S) or all sequences in one row, got {list(targets.shape)}")
    if steps == 0:
        raise RuntimeError(f"ctc_loss: log_probs tensor must not be empty, got {list(log_probs.shape)}")
    if target_lengths is None and targets.ndim == 1:
        raise RuntimeError("ctc_loss: target_lengths must say how targets in one row are divided")
    input_lengths = [steps] * n if input_lengths is None else input_lengths
    target_lengths = [targets.shape[-1]] * n if target_lengths is None else target_lengths
    il = _lengths(input_lengths, n, "input_lengths", steps, "steps of log_probs")
    tl = _lengths(target_lengths, n, "target_lengths", targets.shape[-1], "width of targets")
    t = targets.to(dt.int64)
    if t.ndim == 1:
        if int(values(tl, _LONGEST).sum(-1).max(initial=0)) > t.shape[0]:
            raise RuntimeError(f"ctc_loss: target_lengths add up to more than the {t.shape[0]} entries of targets")
        t = _padded(t, tl)
    else:
        t = t.narrow(1, 0, int(values(tl, _LONGEST).max(initial=0)))
    t = where(constant(np.arange(t.shape[1]), tl) < tl.unsqueeze(-1), t, blank)
    check_classes_p.bind(t, n=classes, ignore=None, name="ctc_loss")
    return _reduce(_losses(log_probs, t, il, tl, blank), tl, r, zero_infinity, single)


def _dense(log_probs: Tensor, targets: Tensor, il: Any, tl: Any) -> tuple[Tensor, Tensor, Any, Any]:
    """Nested arguments padded, with their lengths."""
    if whole_nest(log_probs):
        if log_probs.ndim != 3 or not isinstance(log_probs.shape[2], int):
            raise RuntimeError(
                f"ctc_loss: nested log_probs must be (N, T, C) with T ragged, got {list(log_probs.shape)}"
            )
        il = log_probs.lengths() if il is None else il
        log_probs = log_probs.to_padded_tensor(0.0).transpose(0, 1)
    if whole_nest(targets):
        if targets.ndim != 2:
            raise RuntimeError(f"ctc_loss: nested targets must be (N, S), got {list(targets.shape)}")
        tl = targets.lengths() if tl is None else tl
        targets = targets.to_padded_tensor(0)
    return log_probs, targets, il, tl


def _losses(log_probs: Tensor, t: Tensor, il: Tensor, tl: Tensor, blank: int) -> Tensor:
    """One loss an example, from padded targets."""
    steps, n, _ = log_probs.shape
    s = t.shape[1]
    edge = constant(np.full((n, 1), blank), t)
    # Blanks before, between and after the labels.
    spelled = cat([edge, stack([t, constant(np.full((n, s), blank), t)], -1).reshape(n, 2 * s)], -1)
    width = 2 * s + 1
    ahead = cat([spelled.narrow(-1, 0, min(2, width)), spelled.narrow(-1, 0, max(width - 2, 0))], -1)
    skip = spelled != ahead
    lp = gather(log_probs.permute(1, 0, 2), 2, spelled.unsqueeze(1).expand(n, steps, width))
    a = ctc_forward_p(lp, skip)
    last = gather(a, 1, (il - 1).clamp(min=0).reshape(n, 1, 1).expand(n, 1, width)).squeeze(1)
    ends = gather(last, 1, stack([tl * 2, (tl * 2 - 1).clamp(min=0)], -1))
    none = constant([False, True], tl, dt.bool_) & (tl == 0).unsqueeze(-1)
    total = logsumexp(where(none, NEVER, ends), -1)
    return -where(il == 0, where(tl == 0, 0.0, NEVER).to(total.dtype), total)


def _reduce(loss: Tensor, tl: Tensor, reduction: str, zero_infinity: bool, single: bool) -> Tensor:
    if zero_infinity:
        loss = where(loss == float("inf"), 0, loss)
    if reduction == "mean":
        loss = loss / tl.clamp(min=1).to(loss.dtype)
    return loss.squeeze(0) if single and reduction == "none" else reduced(loss, reduction)


# -- samples ------------------------------------------------------------------------------------------------------------

_targets = Given([[1, 1, 2], [2, 0, 0]])
for _r in REDUCTIONS:
    sample("nn.functional.ctc_loss", S(6, 2, 3), _targets, Given([6, 4]), Given([3, 1]), reduction=_r, cx=False)
sample("nn.functional.ctc_loss", S(6, 2, 3), Given([1, 1, 2, 2]), (6, 4), (3, 1), cx=False)
sample("nn.functional.ctc_loss", S(5, 3), Given([1, 2]), 5, 2, cx=False)
sample("nn.functional.ctc_loss", S(3, 2, 3), _targets, (3, 0), (3, 0), zero_infinity=True, cx=False)
sample("nn.functional.ctc_loss", S(4, 2, 3), Given([[0, 1], [1, 0]]), (4, 4), (2, 2), blank=2, cx=False)
sample("band_scan", S(4, 3, 3), S(4, 3), f=band_scan_p, cx=False)
sample("band_scan_back", S(4, 3, 3), S(4, 3), f=band_scan_back_p, cx=False)
