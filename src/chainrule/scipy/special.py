"""scipy.special: its ufuncs as they are, and its functions that are none."""

from __future__ import annotations

from typing import Any

from ..core.registry import PUBLIC
from .kinds import hand_out, kind_of, on_tensors, result


@on_tensors(1)
def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """``log sum b exp(a)``."""
    if return_sign:
        raise NotImplementedError("logsumexp: return_sign has no derivative here")
    dims = tuple(range(a.ndim)) if axis is None else axis
    if b is not None:
        w = result(b).to(a.dtype)
        a, w = PUBLIC["broadcast_tensors"](a, w)
        dims = tuple(range(a.ndim)) if axis is None else axis
        top = a.detach().amax(dims, keepdim=True)
        y = (w * (a - top).exp()).sum(dims, keepdim=True).log() + top
        return y if keepdims else y.squeeze(dims)
    return PUBLIC["logsumexp"](a, dims, keepdim=keepdims)


@on_tensors(1)
def softmax(x: Any, axis: Any = None) -> Any:
    """``exp(x) / sum exp(x)``."""
    return PUBLIC["softmax"](x.reshape(-1), 0).reshape(x.shape) if axis is None else PUBLIC["softmax"](x, axis)


@on_tensors(1)
def log_softmax(x: Any, axis: Any = None) -> Any:
    """The logarithm of softmax."""
    return PUBLIC["log_softmax"](x.reshape(-1), 0).reshape(x.shape) if axis is None else PUBLIC["log_softmax"](x, axis)


def polygamma(n: int, x: Any) -> Any:
    """The n-th derivative of digamma."""
    return hand_out(PUBLIC["polygamma"](n, result(x)), kind_of(x))


@on_tensors(1)
def multigammaln(a: Any, d: int) -> Any:
    """The logarithm of the multivariate gamma function."""
    return PUBLIC["special.multigammaln"](a, d)


def __getattr__(name: str) -> Any:
    import scipy.special as s

    return getattr(s, name)


__all__ = ["log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"]
