"""NumPy's functions on Arrays: NumPy's values and types, forward and reverse mode against central differences, second order, vmap against a loop."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from chainrule import jit
from chainrule.func import grad, hessian, jvp, vjp, vmap

RNG = np.random.default_rng(0)
X = RNG.permutation(np.linspace(0.21, 0.93, 12)).reshape(3, 4) + 0.003 * RNG.normal(size=(3, 4))
C = np.array([[0.5, -1.0, 0.25], [0.3, 0.7, -0.2], [1.1, -0.4, 0.6], [-0.9, 0.35, 0.15]])
V = np.array([0.2, -0.7, 1.3, 0.4])
M = np.abs(X) > 0.5
S = lambda x: x[:3, :3] @ x[:3, :3].T + 2 * np.eye(3)  # a positive definite matrix
N = lambda x: x[:3, :3] + 3 * np.eye(3)


def nan(x: Any) -> Any:
    """With NaN where the mask is false."""
    return np.where(M if x.shape == M.shape else True, x, np.nan)


def written(x: Any, f: Any) -> Any:
    """A copy that `f` wrote to."""
    y = x.copy()
    f(y)
    return y


UNARY = (
    "absolute fabs negative positive exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arctanh deg2rad radians rad2deg degrees rint floor ceil trunc sign conjugate sinc i0 fix nan_to_num real angle"
).split()
BINARY = (
    "add subtract multiply divide floor_divide remainder fmod power float_power maximum minimum fmax fmin arctan2 hypot copysign logaddexp logaddexp2 "
    "heaviside nextafter"
).split()
CASES: dict[str, Any] = {
    **{n: (lambda x, f=n: getattr(np, f)(x)) for n in UNARY},
    **{n: (lambda x, f=n: getattr(np, f)(x, C.T + 1.5)) for n in BINARY},
    **{f"{n} right": (lambda x, f=n: getattr(np, f)(np.abs(C.T) + 0.4, x)) for n in BINARY if n != "heaviside"},
    "arccosh": lambda x: np.arccosh(x + 1.1),
    "ldexp": lambda x: np.ldexp(x, 2),
    "modf": lambda x: np.modf(x * 3)[0] + np.modf(x * 3)[1],
    "frexp": lambda x: np.frexp(x)[0],
    "divmod": lambda x: np.divmod(x, 0.3)[1],
    "spacing": lambda x: np.spacing(x) * x,
    "matmul": lambda x: np.matmul(x, C),
    "matmul vector": lambda x: x @ V,
    "rmatmul": lambda x: C @ x,
    "matvec": lambda x: np.matvec(x, V),
    "vecmat": lambda x: np.vecmat(V, x.T),
    "vecdot": lambda x: np.vecdot(x, C.T),
    "vecdot axis": lambda x: np.vecdot(x, C.T, axis=0),
    # methods of ufuncs
    "add.reduce": lambda x: np.add.reduce(x, axis=1),
    "multiply.reduce": lambda x: np.multiply.reduce(x),
    "maximum.reduce": lambda x: np.maximum.reduce(x, axis=-1),
    "hypot.reduce": lambda x: np.hypot.reduce(x),
    "subtract.reduce": lambda x: np.subtract.reduce(x, axis=1, keepdims=True),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, axis=1),
    "add.accumulate": lambda x: np.add.accumulate(x, axis=1),
    "maximum.accumulate": lambda x: np.maximum.accumulate(x),
    "divide.accumulate": lambda x: np.divide.accumulate(x),
    "subtract.outer": lambda x: np.subtract.outer(x[0], x[:, 1]),
    "multiply.outer": lambda x: np.multiply.outer(V, x),
    "add.reduceat": lambda x: np.add.reduceat(x, [0, 2, 1], axis=1),
    "add.at": lambda x: written(x, lambda y: np.add.at(y, [0, 0, 2], x[:, :] * 2)),
    "multiply.at": lambda x: written(x, lambda y: np.multiply.at(y, [0, 2], 3.0)),
    "multiply.at repeated": lambda x: written(x, lambda y: np.multiply.at(y, [0, 2, 0, 0], x[[1, 1, 0, 2]] + 1.0)),
    "divide.at repeated": lambda x: written(x, lambda y: np.divide.at(y, ([1, 1, 0], [0, 0, 2]), x[0, :3])),
    "power.at repeated": lambda x: written(x, lambda y: np.power.at(y, [1, 1], 1.5)),
    "sin.at repeated": lambda x: written(x, lambda y: np.sin.at(y, [2, 2, 2])),
    "maximum.at repeated": lambda x: written(x, lambda y: np.maximum.at(y[0], [1, 1, 3], x[1, :3])),
    "take out": lambda x: written(np.zeros_like(x[:2]), lambda y: np.take(x, [2, 0], axis=0, out=y)),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 3)) * x[0, 0],
    "sliding_window_view axis": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1) ** 2,
    "unravel_index": lambda x: x[np.unravel_index(np.argmax(x), x.shape)] * x[1],
    "take_along_axis of a constant": lambda x: np.take_along_axis(C.T, np.argsort(x, axis=1), axis=1) * x,
    "add where": lambda x: np.add(x, 1.0, where=M, out=x * 0),
    "multiply out": lambda x: written(x, lambda y: np.multiply(y, y, out=y)),
    # reductions
    "sum": lambda x: np.sum(x, axis=0),
    "sum keepdims": lambda x: np.sum(x, axis=(0, 1), keepdims=True),
    "sum where": lambda x: np.sum(x, where=M, initial=2.0),
    "prod": lambda x: np.prod(x, axis=1),
    "prod all": lambda x: np.prod(x),
    "mean": lambda x: np.mean(x, 1),
    "mean where": lambda x: np.mean(x, where=M),
    "var": lambda x: np.var(x, axis=1, ddof=1),
    "std": lambda x: np.std(x),
    "var correction": lambda x: np.var(x, 0, correction=1),
    "max": lambda x: np.max(x, axis=1),
    "min": lambda x: np.min(x),
    "amax": lambda x: np.amax(x, axis=0, initial=0.6),
    "amin": lambda x: np.amin(x, where=M, initial=9.0),
    "ptp": lambda x: np.ptp(x, axis=1),
    "cumsum": lambda x: np.cumsum(x),
    "cumprod": lambda x: np.cumprod(x, axis=1),
    "average": lambda x: np.average(x, axis=0, weights=[1, 2, 3]),
    "average weights": lambda x: np.average(C.T, weights=x),
    "median": lambda x: np.median(x, axis=1),
    "median all": lambda x: np.median(x),
    "quantile": lambda x: np.quantile(x, [0.2, 0.7], axis=1),
    "quantile q": lambda x: np.quantile(x, 0.1 + 0 * 0.1),
    "percentile": lambda x: np.percentile(x, 30),
    "percentile nearest": lambda x: np.percentile(x, 30, method="nearest"),
    "nanquantile": lambda x: np.nanquantile(nan(x), 0.4),
    "nanpercentile": lambda x: np.nanpercentile(x, 40, axis=0),
    "nansum": lambda x: np.nansum(nan(x), axis=0),
    "nanmean": lambda x: np.nanmean(nan(x)),
    "nanprod": lambda x: np.nanprod(nan(x), axis=1),
    "nanmax": lambda x: np.nanmax(x, axis=0),
    "nanmin": lambda x: np.nanmin(nan(x)),
    "nanstd": lambda x: np.nanstd(nan(x)),
    "nanvar": lambda x: np.nanvar(x, axis=1),
    "nanmedian": lambda x: np.nanmedian(nan(x)),
    "nancumsum": lambda x: np.nancumsum(x, axis=0),
    "nancumprod": lambda x: np.nancumprod(x),
    "cov": lambda x: np.cov(x),
    "corrcoef": lambda x: np.corrcoef(x),
    "trace": lambda x: np.trace(x),
    # shapes
    "reshape": lambda x: np.reshape(x, (4, -1)),
    "reshape F": lambda x: np.reshape(x, (2, 6), order="F"),
    "ravel": lambda x: np.ravel(x),
    "ravel F": lambda x: np.ravel(x, order="F"),
    "transpose": lambda x: np.transpose(x),
    "transpose axes": lambda x: np.transpose(x, (1, 0)),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, -1),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "expand_dims": lambda x: np.expand_dims(x, (0, 2)),
    "squeeze": lambda x: np.squeeze(x[None]),
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 4)),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x[:, :1], x)[0],
    "concatenate": lambda x: np.concatenate([x, C.T, x], axis=1),
    "concatenate None": lambda x: np.concatenate((x, V), axis=None),
    "concat": lambda x: np.concat([x, x]),
    "stack": lambda x: np.stack([x, C.T], axis=1),
    "vstack": lambda x: np.vstack([x, V]),
    "hstack": lambda x: np.hstack([x, x]),
    "dstack": lambda x: np.dstack([x, x]),
    "column_stack": lambda x: np.column_stack([x[0], x[1]]),
    "block": lambda x: np.block([[x, x], [C.T, x * 2]]),
    "append": lambda x: np.append(x, C.T, axis=0),
    "insert": lambda x: np.insert(x, 1, 5.0, axis=1),
    "insert x": lambda x: np.insert(V, 1, x[0, 0]),
    "delete": lambda x: np.delete(x, 1, axis=0),
    "tile": lambda x: np.tile(x, (2, 2)),
    "repeat": lambda x: np.repeat(x, 2, axis=1),
    "repeat each": lambda x: np.repeat(x, [1, 2, 0], axis=0),
    "roll": lambda x: np.roll(x, 1, axis=1),
    "roll flat": lambda x: np.roll(x, 2),
    "flip": lambda x: np.flip(x),
    "fliplr": lambda x: np.fliplr(x),
    "flipud": lambda x: np.flipud(x),
    "rot90": lambda x: np.rot90(x),
    "split": lambda x: np.split(x, 2, axis=1)[1],
    "array_split": lambda x: np.array_split(x, 3, axis=1)[0],
    "hsplit": lambda x: np.hsplit(x, 2)[0],
    "vsplit": lambda x: np.vsplit(x, 3)[1],
    "atleast_1d": lambda x: np.atleast_1d(x[0, 0]),
    "atleast_3d": lambda x: np.atleast_3d(x),
    "resize": lambda x: np.resize(x, (2, 7)),
    "pad": lambda x: np.pad(x, 1),
    "pad edge": lambda x: np.pad(x, ((0, 1), (2, 0)), mode="edge"),
    "pad reflect": lambda x: np.pad(x, 1, mode="reflect"),
    "pad wrap": lambda x: np.pad(x, 1, mode="wrap"),
    "pad mean": lambda x: np.pad(x, 1, mode="mean"),
    "pad linear_ramp": lambda x: np.pad(x, 2, mode="linear_ramp", end_values=1.0),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1])[1] * 2,
    "diag": lambda x: np.diag(x),
    "diag of": lambda x: np.diag(x[0], 1),
    "diagflat": lambda x: np.diagflat(x),
    "diagonal": lambda x: np.diagonal(x, 1),
    "tril": lambda x: np.tril(x),
    "triu": lambda x: np.triu(x, 1),
    "kron": lambda x: np.kron(x, C),
    "copy": lambda x: np.copy(x),
    "astype": lambda x: np.astype(x, np.float64),
    "trim_zeros": lambda x: np.trim_zeros(x[0]),
    "matrix_transpose": lambda x: np.matrix_transpose(x),
    "permute_dims": lambda x: np.permute_dims(x, (1, 0)),
    # indexing and order
    "getitem": lambda x: x[1:, ::-1],
    "getitem fancy": lambda x: x[[0, 2], [1, 3]],
    "getitem mask": lambda x: x[M],
    "getitem steps": lambda x: x[::-2, 3:0:-2],
    "getitem new": lambda x: x[..., None, 1:3],
    "getitem array": lambda x: x[np.array([[0, 1], [2, 2]])],
    "take": lambda x: np.take(x, [1, 3], axis=1),
    "take wrap": lambda x: np.take(x, [5, -1], axis=1, mode="wrap"),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(X, axis=1), axis=1),
    "choose": lambda x: np.choose([0, 1, 1, 0], [x, x * 2]),
    "compress": lambda x: np.compress([True, False, True], x, axis=0),
    "extract": lambda x: np.extract(M, x),
    "where": lambda x: np.where(x > 0.5, x * 2, C.T),
    "select": lambda x: np.select([x > 0.7, x > 0.4], [x * 2, x**2], 0.5),
    "piecewise": lambda x: np.piecewise(x, [x < 0.5, x >= 0.5], [lambda v: v**2, lambda v: 3 * v]),
    "clip": lambda x: np.clip(x, 0.3, 0.7),
    "clip None": lambda x: np.clip(x, None, 0.6),
    "sort": lambda x: np.sort(x, axis=1),
    "sort all": lambda x: np.sort(x, axis=None),
    "partition": lambda x: np.sort(np.partition(x, 2, axis=1), axis=1),
    "unique": lambda x: np.unique(x),
    "union1d": lambda x: np.union1d(x, V),
    "sort_complex": lambda x: np.real(np.sort_complex(x[0])),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda v: v * np.sum(v), 1, x),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, [0, 1]),
    "ix_": lambda x: x[np.ix_([0, 2], [1, 2])],
    "setitem": lambda x: written(x, lambda y: y.__setitem__((slice(None), 0), x[:, 1] ** 2)),
    "setitem mask": lambda x: written(x, lambda y: (y.__setitem__(x > 0.6, 2.0), y.__setitem__(x < 0.4, x[1, 1]))),
    "setitem step": lambda x: written(x, lambda y: y.__setitem__(slice(None, None, -1), x * 2)),
    "iadd": lambda x: written(x, lambda y: y.__iadd__(x * x)),
    "copyto": lambda x: written(x, lambda y: np.copyto(y, x * 3, where=M)),
    "putmask": lambda x: written(x, lambda y: np.putmask(y, M, V)),
    "place": lambda x: written(x, lambda y: np.place(y, M, [1.0, 2.0])),
    "put": lambda x: written(x, lambda y: np.put(y, [0, 5], x[0, 1] * 2)),
    "fill_diagonal": lambda x: written(x, lambda y: np.fill_diagonal(y, 1.0)),
    "put_along_axis": lambda x: written(x, lambda y: np.put_along_axis(y, np.array([[1], [2], [0]]), 7.0, axis=1)),
    "zeros_like": lambda x: written(np.zeros_like(x), lambda y: y.__setitem__(0, x[1])),
    "full_like": lambda x: np.full_like(x, x[0, 0]),
    "like array": lambda x: (
        np.array([x[0, 0], x[1, 1] * 2], like=x) if not isinstance(x, np.ndarray) else np.array([x[0, 0], x[1, 1] * 2])
    ),
    # numerics
    "diff": lambda x: np.diff(x, 2, axis=1),
    "ediff1d": lambda x: np.ediff1d(x, to_begin=0.0),
    "gradient": lambda x: np.gradient(x, axis=1),
    "gradient spaced": lambda x: np.gradient(x[0], V.cumsum()),
    "trapezoid": lambda x: np.trapezoid(x, dx=0.5),
    "trapezoid x": lambda x: np.trapezoid(V, x[0]),
    "cross": lambda x: np.cross(x[:, :3], C[:3]),
    "dot": lambda x: np.dot(x, C),
    "dot nd": lambda x: np.dot(x, np.stack([C, C])),
    "vdot": lambda x: np.vdot(x, C.T),
    "inner": lambda x: np.inner(x, C.T),
    "outer": lambda x: np.outer(x[0], x[1]),
    "tensordot": lambda x: np.tensordot(x, C, axes=([0, 1], [1, 0])),
    "tensordot 1": lambda x: np.tensordot(x, C, 1),
    "einsum": lambda x: np.einsum("ij,jk->ik", x, C),
    "einsum trace": lambda x: np.einsum("ii", x[:, :3]),
    "einsum lists": lambda x: np.einsum(x, [0, 1], C, [1, 2], [2, 0]),
    "convolve": lambda x: np.convolve(x[0], V),
    "convolve same": lambda x: np.convolve(x[0], C[0], "same"),
    "convolve valid": lambda x: np.convolve(C[:, 0], x[0, :2], "valid"),
    "correlate": lambda x: np.correlate(x[0], C[0]),
    "correlate same": lambda x: np.correlate(x[0], C[0, :2], "same"),
    "correlate full": lambda x: np.correlate(C[0], x[0], "full"),
    "interp": lambda x: np.interp(x, [0.0, 0.4, 0.8, 1.0], V),
    "interp fp": lambda x: np.interp([0.1, 0.35, 2.0], [0.0, 0.3, 0.6, 1.0], x[0]),
    "interp period": lambda x: np.interp(x * 3, [0.0, 0.3, 0.5], [1.0, 2.0, -1.0], period=1.0),
    "unwrap": lambda x: np.unwrap(x * 9, axis=1),
    "polyval": lambda x: np.polyval(x[0], C),
    "polyval x": lambda x: np.polyval(V, x),
    "polyder": lambda x: np.polyder(x[0]),
    "polyint": lambda x: np.polyint(x[0]),
    "polyadd": lambda x: np.polyadd(x[0], V[:3]),
    "polysub": lambda x: np.polysub(V[:2], x[0]),
    "polymul": lambda x: np.polymul(x[0], V),
    "poly": lambda x: np.poly(x[0]),
    "polyfit": lambda x: np.polyfit(V, x[0], 2),
    "polydiv": lambda x: np.polydiv(x[0], V[:2] + 1)[0],
    "roots": lambda x: np.sum(np.abs(np.roots(np.concatenate([x[0], V]))) ** 2),
    "vander": lambda x: np.vander(x[0], 3),
    "linspace": lambda x: np.linspace(x[0], 2.0, 5),
    "logspace": lambda x: np.logspace(x[0, 0], 1.0, 4),
    "geomspace": lambda x: np.geomspace(x[0, 0], 3.0, 4),
    "histogram weights": lambda x: np.histogram(V, bins=3, weights=x[0])[0] * 2.0,
    "bincount": lambda x: np.bincount([0, 1, 1, 3], weights=x[0]),
    "histogramdd": lambda x: np.histogramdd(C[:, :2], bins=2, weights=x[0])[0] * 1.0,
    "histogram2d": lambda x: np.histogram2d(V, C[:, 0], bins=2, weights=x[0])[0],
    "real_if_close": lambda x: np.real_if_close(x),
    "imag": lambda x: np.imag(x * (1 + 2j)),
    "abs complex": lambda x: np.abs(x * (1 + 2j)),
    "exp complex": lambda x: np.real(np.exp(1j * x)),
    "round": lambda x: np.round(x, 1) * x,
    "digitize": lambda x: np.digitize(x, [0.3, 0.6]) * x,
    "searchsorted": lambda x: np.searchsorted([0.3, 0.6], x) * x,
    "argmax": lambda x: x[np.arange(3), np.argmax(x, axis=1)],
    "argsort": lambda x: x[0][np.argsort(x[0])],
    "isin": lambda x: x * ~np.isin(x, V),
    "isclose": lambda x: x * ~np.isclose(x, 5.0),
    "nonzero": lambda x: x[np.nonzero(x > 0.5)],
    "count_nonzero": lambda x: np.count_nonzero(x > 0.5, axis=1) * x[:, 0],
    "isneginf": lambda x: (np.isneginf(x) + 1 + np.isposinf(np.where(x > 0.6, np.inf, x))) * x,
    "nanargmax": lambda x: x[np.arange(3), np.nanargmax(np.where(x > 0.8, np.nan, x), axis=1)],
    "nanargmin": lambda x: np.nanargmin(np.where(x < 0.4, np.nan, x)) * x,
    "histogram of counts": lambda x: np.histogram(x, [0.2, 0.5, 0.7, 0.9])[0] * x[:, :3],
    "histogram of a range": lambda x: np.histogram(x, 4, range=(0.2, 0.9), weights=x**2, density=True)[0],
    "histogram2d of points": lambda x: np.histogram2d(x[0], x[1], 2, range=[[0, 1], [0, 1]], weights=x[2])[0],
    "matrix_rank": lambda x: np.linalg.matrix_rank(x) * x,
    "quantile hazen": lambda x: np.quantile(x, [0.01, 0.3, 0.99], axis=1, method="hazen"),
    "nanquantile weibull": lambda x: np.nanquantile(np.where(x > 0.8, np.nan, x), 0.4, method="weibull"),
    # linear algebra
    "inv": lambda x: np.linalg.inv(N(x)),
    "pinv": lambda x: np.linalg.pinv(x),
    "det": lambda x: np.linalg.det(N(x)),
    "slogdet": lambda x: np.linalg.slogdet(N(x))[1],
    "solve": lambda x: np.linalg.solve(N(x), C.T),
    "solve vector": lambda x: np.linalg.solve(N(x), x[:, 3]),
    "lstsq": lambda x: np.linalg.lstsq(x.T, V, rcond=None)[0],
    "cholesky": lambda x: np.linalg.cholesky(S(x)),
    "cholesky upper": lambda x: np.linalg.cholesky(S(x), upper=True),
    "qr": lambda x: np.abs(np.linalg.qr(N(x))[1]),
    "qr r": lambda x: np.abs(np.linalg.qr(N(x), mode="r")),
    "svd": lambda x: np.linalg.svd(x)[1],
    "svd vectors": lambda x: np.abs(np.linalg.svd(N(x), full_matrices=False)[0]),
    "svdvals": lambda x: np.linalg.svdvals(x),
    "eigh": lambda x: np.abs(np.linalg.eigh(S(x))[1]),
    "eigvalsh": lambda x: np.linalg.eigvalsh(S(x)),
    "eig": lambda x: np.abs(np.linalg.eig(N(x))[0]),
    "eigvals": lambda x: np.sum(np.linalg.eigvals(N(x)) ** 2).real,
    "matrix_power": lambda x: np.linalg.matrix_power(N(x), 3),
    "matrix_power -2": lambda x: np.linalg.matrix_power(N(x), -2),
    "norm": lambda x: np.linalg.norm(x),
    "norm 1": lambda x: np.linalg.norm(x, 1),
    "norm axis": lambda x: np.linalg.norm(x, axis=1, keepdims=True),
    "norm inf": lambda x: np.linalg.norm(x[0], np.inf),
    "norm nuc": lambda x: np.linalg.norm(x, "nuc"),
    "vector_norm": lambda x: np.linalg.vector_norm(x, ord=3),
    "matrix_norm": lambda x: np.linalg.matrix_norm(x),
    "cond": lambda x: np.linalg.cond(N(x)),
    "multi_dot": lambda x: np.linalg.multi_dot([x, C, x]),
    "tensorsolve": lambda x: np.linalg.tensorsolve(N(x), C[:3, 0]),
    "tensorinv": lambda x: np.linalg.tensorinv(N(x), ind=1),
    "linalg.cross": lambda x: np.linalg.cross(x[:, :3], C[:3]),
    "linalg.outer": lambda x: np.linalg.outer(x[0], V),
    "linalg.trace": lambda x: np.linalg.trace(x),
    "linalg.diagonal": lambda x: np.linalg.diagonal(x),
    "linalg.matmul": lambda x: np.linalg.matmul(x, C),
    "linalg.tensordot": lambda x: np.linalg.tensordot(x, C, axes=1),
    "linalg.vecdot": lambda x: np.linalg.vecdot(x, C.T),
    "linalg.matrix_transpose": lambda x: np.linalg.matrix_transpose(x),
    # Fourier transforms
    **{
        n: (lambda x, f=n: np.abs(getattr(np.fft, f)(x)))
        for n in "fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn ihfft".split()
    },
    **{n: (lambda x, f=n: getattr(np.fft, f)(x + 0.5j * x)) for n in "irfft irfft2 irfftn hfft".split()},
    "fft n": lambda x: np.real(np.fft.fft(x, 6, axis=0, norm="ortho")),
    "fftshift": lambda x: np.fft.fftshift(x),
    "ifftshift": lambda x: np.fft.ifftshift(x, axes=1),
}
# Of NumPy 2.1 and 2.2: tested where they are.
CASES |= {
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1),
    "cumulative_prod": lambda x: np.cumulative_prod(x, axis=0),
    "unstack": lambda x: np.unstack(x)[1],
}
for _n in ("cumulative_sum", "cumulative_prod", "unstack", "matvec", "vecmat"):
    if not hasattr(np, _n):
        del CASES[_n]
# Values decide which elements are taken, how many there are, or which way NumPy's code goes: one example at a time.
NO_BATCH = {
    "getitem mask",
    "unique",
    "union1d",
    "extract",
    "spacing",
    "trim_zeros",
    "nonzero",
    "roots",
    "sort_complex",
    "real_if_close",
    "polymul",
    "polydiv",
    "place",
    "histogram2d of points",
}
KINKED = {"rint", "floor", "ceil", "trunc", "sign", "fix", "heaviside", "nextafter", "nextafter right", "angle"}


def loss(f: Any) -> Any:
    """A smooth number of the result."""
    return lambda x: np.sum(np.sin(f(x) * 1.3))


@pytest.mark.parametrize("name", CASES)
def test_derivatives(name: str) -> None:
    f = CASES[name]
    seen: list[Any] = []
    g = grad(lambda x: (seen.append(y := f(x)), np.sum(np.sin(y * 1.3)))[1])(X)
    want = np.asarray(f(X))
    assert seen[0].dtype == want.dtype and seen[0].shape == want.shape
    l = loss(f)
    e = 1e-6
    for k in range(2):
        d = np.random.default_rng(k).normal(size=X.shape)
        differences = (l(X + e * d) - l(X - e * d)) / (2 * e)
        assert np.sum(g * d) == pytest.approx(differences, rel=2e-6, abs=2e-8)
        value, t = jvp(l, (X,), (d,))
        assert value == pytest.approx(l(X), rel=1e-12)
        assert t == pytest.approx(np.sum(g * d), rel=1e-9, abs=1e-11)
        # Second order: forward over reverse.
        second = np.sum(jvp(grad(l), (X,), (d,))[1] * d)
        twice = np.sum((grad(l)(X + e * d) - grad(l)(X - e * d)) * d) / (2 * e)
        assert second == pytest.approx(twice, rel=2e-5, abs=2e-6)


@pytest.mark.parametrize("name", [n for n in CASES if n not in NO_BATCH])
def test_vmap(name: str) -> None:
    f = CASES[name]
    xs = np.stack([X, X[::-1] * 0.97, X + 0.013])
    got = vmap(grad(loss(f)))(xs)
    np.testing.assert_allclose(got, np.stack([grad(loss(f))(x) for x in xs]), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(vmap(f)(xs), np.stack([f(x) for x in xs]), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", [n for n in CASES if n not in NO_BATCH])
def test_jit(name: str) -> None:
    f = jit(grad(loss(CASES[name])))
    for x in (X, X[::-1] * 0.97):
        np.testing.assert_allclose(f(x), grad(loss(CASES[name]))(x), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "name", ["sum", "exp", "power", "mean", "where", "einsum", "sort", "concatenate", "var", "fft", "add where"]
)
@pytest.mark.parametrize("dtype", ["float32", "int64", "int8", "bool", "complex64", "float16"])
def test_types_are_those_of_numpy(name: str, dtype: str) -> None:
    """An array without a derivative beside the one that has it: the common type is NumPy's."""
    calls = {
        "sum": lambda a, x: np.sum(a) + x * 0,
        "exp": lambda a, x: np.exp(a),
        "power": lambda a, x: np.power(a, x),
        "mean": lambda a, x: np.mean(a) * 1 + x * 0,
        "where": lambda a, x: np.where(x > 0, a, x),
        "einsum": lambda a, x: np.einsum("i,i->i", a, x),
        "sort": lambda a, x: np.sort(a) if dtype != "complex64" else a,
        "concatenate": lambda a, x: np.concatenate([a, x]),
        "var": lambda a, x: np.var(a),
        "fft": lambda a, x: np.fft.fft(a) if dtype != "float16" else a,
        "add where": lambda a, x: a + x,
    }
    a = np.array([1, 0, 1], dtype)
    x32 = np.array([0.5, 0.25, 2.0], np.float32)
    for x in (x32, x32.astype(np.float64)):
        want = calls[name](a, x).dtype
        assert _seen(lambda v, x=x: calls[name](v, x), a) == want
        assert _seen(lambda v: calls[name](a, v), x) == want


def _seen(f: Any, a: np.ndarray) -> Any:
    """The type of f(a) inside a transform: vmap, where the array has no derivative."""
    got: list[Any] = []
    run = lambda v: (got.append(f(v).dtype), v)[1]
    if a.dtype.kind in "fc":
        vjp(run, a)
    else:
        vmap(run)(a[None])
    return got[0]


def test_cases_have_names_that_numpy_has() -> None:
    assert inspect.isfunction(CASES["sum"]) and len(CASES) > 250


def test_second_derivatives_of_real_eigenvectors() -> None:
    """NumPy hands back real vectors where all eigenvalues are real: the phase that complex ones are free in stays fixed, also where they move."""
    a = np.array([[1.0, 2.0, 0.3], [0.4, -1.0, 0.5], [0.1, 0.7, 3.0]])
    for f in (
        lambda x: np.sum(np.abs(np.linalg.eig(x).eigenvectors) ** 3),
        lambda x: np.sum(np.linalg.eig(x)[1][0] * np.array([1.0, 2.0, -3.0])),
    ):
        g = grad(f)
        e = 1e-5 * np.eye(9).reshape(9, 3, 3)
        np.testing.assert_allclose(g(a).reshape(9), [(f(a + d) - f(a - d)) / 2e-5 for d in e], rtol=1e-6, atol=1e-8)
        want = np.stack([(g(a + d) - g(a - d)).reshape(9) / 2e-5 for d in e])
        np.testing.assert_allclose(hessian(f)(a).reshape(9, 9), want, rtol=1e-6, atol=1e-7)


def test_places_on_which_all_examples_agree() -> None:
    """nonzero and its relatives under vmap: as with masks, what is the same for all examples is that (polynomials drop leading zeros by it)."""
    x = np.array([[0.0, 2.0, 3.0], [0.0, 1.0, 4.0]])
    for f in (
        lambda v: v[np.flatnonzero(v)] ** 2,
        lambda v: v[np.nonzero(v)[0]] ** 2,
        lambda v: np.argwhere(v)[:, 0] * v[1:],
        lambda v: np.polymul(v, v + 1),
        lambda v: np.trim_zeros(v) * 2,
    ):
        np.testing.assert_array_equal(vmap(f)(x), np.stack([f(r) for r in x]))
        g = lambda v, f=f: np.sum(f(v) ** 2)
        np.testing.assert_allclose(vmap(grad(g))(x), np.stack([grad(g)(r) for r in x]))
    with pytest.raises(Exception, match="nonzero needs one concrete value"):
        vmap(np.flatnonzero)(np.array([[0.0, 1.0], [1.0, 0.0]]))
