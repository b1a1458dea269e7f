"""Ready parametrizations: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.imperative import no_grad
from ...core.registry import PUBLIC
from ...core.tensor import Tensor
from ...core.views import assign
from ...ops.linalg.norms import norm_except_dim
from ...ops.norm.weight import weight_norm as weight_norm_function
from ..module import Module
from .parametrize import is_parametrized, register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _need(module: Module, name: str, what: str) -> Any:
    x = getattr(module, name, None)
    if not isinstance(x, Tensor):
        raise ValueError(f"{what}: module {type(module).__name__} has no parameter or buffer with name '{name}'")
    return x


# -- weight norm ------------------------------------------------------------------------------------------------------


def kept_dim(dim: int | None, rank: int) -> int:
    """The kept dim as the operators take it: -1 for None, the norm of the whole; negative dims count from the end."""
    if dim is None:
        return -1
    if not -rank <= dim < rank:
        raise IndexError(f"weight_norm: dim must be in [{-rank}, {rank - 1}] or None, got {dim}")
    return dim % rank


class _WeightNorm(Module):
    """``v g / |v|``, the norm over all dims but one."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """``v g / |v|``."""
        return weight_norm_function(weight_v, weight_g, kept_dim(self.dim, weight_v.ndim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The norm and the weight itself."""
        return norm_except_dim(weight, 2, kept_dim(self.dim, weight.ndim)), weight.clone()

    def extra_repr(self) -> str:
        """The dim."""
        return f"dim={self.dim}"


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Direction and length of a weight as parameters: ``w = v g / |v|``, the norm over all dims but `dim`.

    ``dim=None`` takes the norm of the whole weight; a negative dim counts from the end. A slice of zeros stays zero, with
    zero gradients.
    """
    _need(module, name, "weight_norm")
    if is_parametrized(module, name) and any(isinstance(m, _WeightNorm) for m in module.parametrizations[name]):
        raise RuntimeError(
            f"weight_norm: Cannot register two weight_norm parametrizations on the same parameter {name}"
        )
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module.register_load_state_dict_pre_hook(_Rename(name))
    return module


class _Rename:
    """Takes states of the older weight norm, with ``weight_g`` and ``weight_v``."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        for old, new in (("g", "original0"), ("v", "original1")):
            key = f"{prefix}{self.name}_{old}"
            if key in state and is_parametrized(module, self.name):
                state[f"{prefix}parametrizations.{self.name}.{new}"] = state.pop(key)


# -- spectral norm ----------------------------------------------------------------------------------------------------


def _unit(x: np.ndarray, eps: float) -> np.ndarray:
    return x / max(float(np.linalg.norm(x)), eps)


def power_iteration(
    matrix: np.ndarray, u: np.ndarray, v: np.ndarray, steps: int, eps: float
) -> tuple[np.ndarray, np.ndarray]:
    """The first left and right singular vectors, improved by `steps` steps."""
    for _ in range(steps):
        u = _unit(matrix @ v, eps)
        v = _unit(matrix.conj().T @ u, eps)
    return u, v


class _SpectralNorm(Module):
    """``W / sigma(W)``, the largest singular value found by power iteration, one step for each use in training."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        if not -weight.ndim <= dim < weight.ndim:
            raise IndexError(f"spectral_norm: dim must be in [{-weight.ndim}, {weight.ndim - 1}], got {dim}")
        if n_power_iterations <= 0:
            raise ValueError(f"spectral_norm: n_power_iterations must be positive, got {n_power_iterations}")
        self.dim, self.eps, self.n_power_iterations = dim % weight.ndim, eps, n_power_iterations
        if weight.ndim > 1:
            m = self._matrix(weight).detach().numpy()
            rng = PUBLIC["randn"]
            u, v = (_unit(rng(n, dtype=weight.dtype).numpy(), eps) for n in m.shape)
            u, v = power_iteration(m, u, v, 15, eps)
            self.register_buffer("_u", Tensor(u.astype(m.dtype)))
            self.register_buffer("_v", Tensor(v.astype(m.dtype)))

    def _matrix(self, weight: Tensor) -> Tensor:
        return weight.movedim(self.dim, 0).reshape(weight.shape[self.dim], -1)

    def forward(self, weight: Tensor) -> Tensor:
        """``W / sigma(W)``."""
        if weight.ndim == 1:
            return PUBLIC["nn.functional.normalize"](weight, dim=0, eps=self.eps)
        w = self._matrix(weight)
        if self.training:
            with no_grad():
                u, v = self._step(w.detach(), self._u, self._v)
                assign(self._u, u, "spectral_norm")
                assign(self._v, v, "spectral_norm")
        u, v = self._u.clone(), self._v.clone()
        return weight / u.conj().dot(w.mv(v))

    def _step(self, w: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        normalize = PUBLIC["nn.functional.normalize"]
        for _ in range(self.n_power_iterations):
            u = normalize(w.mv(v), dim=0, eps=self.eps)
            v = normalize(w.conj().t().mv(u), dim=0, eps=self.eps)
        return u, v

    def right_inverse(self, value: Tensor) -> Tensor:
        """The value: what is assigned counts as normalised."""
        return value


def outputs_dim(module: Module) -> int:
    """The dim of a weight that counts the outputs: 1 for transposed convolutions, else 0."""
    from ..modules.conv import _ConvTransposeNd

    return int(isinstance(module, _ConvTransposeNd))


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """``W / sigma(W)`` with the largest singular value of W, whose rows are the slices of `dim` (default: that of the outputs)."""
    weight = _need(module, name, "spectral_norm")
    d = outputs_dim(module) if dim is None else dim
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, d, eps))
    return module


# -- orthogonal -------------------------------------------------------------------------------------------------------


def _orthogonalised(q: np.ndarray) -> np.ndarray:
    """The nearest-in-spirit orthogonal matrix: Q of QR, with R's diagonal made positive."""
    a, r = np.linalg.qr(q)
    d = np.diagonal(r, axis1=-2, axis2=-1)
    return a * np.where(d == 0, 1, d / np.where(d == 0, 1, np.abs(d)))[..., None, :]


def _is_orthogonal(q: np.ndarray) -> bool:
    eye = np.eye(q.shape[-1], dtype=q.dtype)
    return bool(np.allclose(np.conj(np.swapaxes(q, -1, -2)) @ q, eye, atol=10 * q.shape[-2] * np.finfo(q.dtype).eps))


class _Orthogonal(Module):
    """An orthogonal (tall or wide: orthonormal columns or rows) matrix from an unconstrained one."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool) -> None:
        super().__init__()
        if orthogonal_map == "householder" and weight.dtype.is_complex:
            raise ValueError("orthogonal: the householder parametrization does not support complex tensors")
        self.shape, self.orthogonal_map = tuple(weight.shape), orthogonal_map
        self.trivialise = use_trivialization
        self.register_buffer("base", None)

    def forward(self, x: Tensor) -> Tensor:
        """The orthogonal matrix."""
        n, k = x.shape[-2:]
        wide = n < k
        if wide:
            x, n, k = x.mT, k, n
        if self.orthogonal_map == "householder":
            a = x.tril(-1)
            tau = 2 / (1 + (a * a).sum(-2))
            q = PUBLIC["linalg.householder_product"](a, tau)
            q = q * x.diagonal(dim1=-2, dim2=-1).sign().detach().unsqueeze(-2)
        else:
            a = x.tril()
            if n != k:
                a = PUBLIC["cat"]([a, PUBLIC["zeros"](*a.shape[:-1], n - k, dtype=a.dtype)], -1)
            a = a - a.mH
            if self.orthogonal_map == "matrix_exp":
                q = PUBLIC["matrix_exp"](a)
            else:
                eye = PUBLIC["eye"](n, dtype=a.dtype)
                q = PUBLIC["linalg.solve"](eye - a / 2, eye + a / 2)
            if n != k:
                q = q[..., :k]
        if self.base is not None:
            q = self.base @ q
        return q.mT if wide else q

    def right_inverse(self, value: Tensor) -> Tensor:
        """What gives `value`, made orthogonal if it is not."""
        if tuple(value.shape) != self.shape:
            raise ValueError(
                f"orthogonal: Expected a matrix or batch of matrices of shape {self.shape}, got {tuple(value.shape)}"
            )
        q = value.detach().numpy()
        n, k = q.shape[-2:]
        wide = n < k
        if wide:
            q, n, k = np.swapaxes(q, -1, -2), k, n
        if not self.trivialise:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "orthogonal: It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
                )
            h, tau = np.linalg.qr(q, mode="raw")
            a = np.swapaxes(h, -1, -2).copy()
            i = np.arange(k)
            d = np.sign(a[..., i, i])
            a[..., i, i] = np.where(tau == 0, -d, d)
            return Tensor(np.ascontiguousarray(np.swapaxes(a, -1, -2) if wide else a).astype(value.dtype.np))
        if n != k:
            extra = PUBLIC["randn"](*q.shape[:-1], n - k, dtype=value.dtype).numpy()
            full = np.concatenate([q if _is_orthogonal(q) else _orthogonalised(q), extra], -1)
            base = _orthogonalised(full)
        else:
            base = q.copy() if _is_orthogonal(q) else _orthogonalised(q)
        self.base = Tensor(np.ascontiguousarray(base).astype(value.dtype.np))
        start = np.zeros(self.shape, value.dtype.np)
        i = np.arange(k)
        start[..., i, i] = -1  # A - A^H is 0 and the signs of the diagonal are -1: the result is the base
        return Tensor(start)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """An orthogonal weight: "matrix_exp" and "cayley" of a skew-symmetric matrix, or a product of "householder" reflections."""
    weight = _need(module, name, "orthogonal")
    if weight.ndim < 2:
        raise ValueError(
            f"orthogonal: Expected a matrix or batch of matrices, got a tensor of {weight.ndim} dimensions"
        )
    square = weight.shape[-2] == weight.shape[-1]
    how = orthogonal_map or ("matrix_exp" if square or weight.dtype.is_complex else "householder")
    if how not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder", got {how!r}'
        )
    register_parametrization(module, name, _Orthogonal(weight, how, use_trivialization), unsafe=True)
    return module
