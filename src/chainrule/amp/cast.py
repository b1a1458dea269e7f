"""``autocast``: inside, products take their arguments in a 16-bit type, and losses, decompositions and transforms in float32.

The functions on the two lists are those that PyTorch's autocast on the CPU converts. They are replaced, when the first ``autocast`` is
entered, by ones that look for an active one; before that nobody pays for it. Derivatives are those of the conversions: gradients arrive
in the type of the weights.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from ..core import dtypes as dt
from ..core import overriding
from ..core.casting import READY, STATE, State
from ..core.registry import METHODS, PUBLIC, interpose
from ..core.straight import PAUSED
from ..core.tensor import Tensor

LOW = """matmul mm bmm addmm addbmm baddbmm linalg.vecdot linalg.matmul linalg.multi_dot chain_matmul einsum tensordot corrcoef cov nn.functional.linear
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
    nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d conv_tbc prelu nn.functional.prelu
    nn.functional.scaled_dot_product_attention nn.functional.multi_head_attention_forward Tensor.matmul Tensor.mm Tensor.bmm
    Tensor.addmm Tensor.addbmm Tensor.baddbmm Tensor.corrcoef Tensor.cov Tensor.__matmul__ Tensor.__rmatmul__ Tensor.prelu""".split()
_WIDE_FUNCTIONS = """cdist cholesky cholesky_inverse cholesky_solve geqrf lu lu_solve nanquantile quantile pinverse polar prod qr stft svd trace
    triangular_solve view_as_complex ormqr orgqr inverse logdet slogdet""".split()
_LINALG = """cholesky cholesky_ex cond eig eigh eigvals eigvalsh householder_product inv inv_ex lstsq lu lu_factor lu_solve qr solve svd svdvals
    tensorinv tensorsolve matrix_rank solve_triangular""".split()
_LOSSES = """binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy ctc_loss hinge_embedding_loss huber_loss kl_div
    l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss
    triplet_margin_loss linear_cross_entropy adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d fractional_max_pool2d fractional_max_pool3d
    grid_sample max_unpool1d max_unpool2d max_unpool3d""".split()
_FFT = "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn".split()
WIDE = [
    *_WIDE_FUNCTIONS, *(f"Tensor.{n}" for n in _WIDE_FUNCTIONS), *(f"linalg.{n}" for n in _LINALG), *(f"fft.{n}" for n in _FFT),
    *(f"nn.functional.{n}" for n in _LOSSES), "grid_sampler_2d", "grid_sampler_3d",
]  # fmt: skip


def convert(x: Any, d: dt.DType) -> Any:
    """Floating tensors, except those of double precision, as type `d`; in lists and tuples too."""
    if isinstance(x, Tensor):
        t = x.dtype
        return x.to(d) if t is not d and t.category == dt.FLOAT and t is not dt.float64 else x
    if type(x) is list or type(x) is tuple:
        return type(x)(convert(v, d) for v in x)
    return x


def _converting(wide: bool) -> Callable[[Any], Any]:
    def wrap(f: Any) -> Any:
        @functools.wraps(f)
        def call(*args: Any, **kw: Any) -> Any:
            s = STATE.get()
            if not s.enabled:
                return f(*args, **kw)
            d = dt.float32 if wide else s.dtype
            token = STATE.set(s._replace(enabled=False))  # what the function is made of is in its hands
            try:
                return f(
                    *[convert(a, d) for a in args], **{k: v if k == "out" else convert(v, d) for k, v in kw.items()}
                )
            finally:
                STATE.reset(token)

        return call

    return wrap


def _under_aten(names: list[str]) -> list[str]:
    """The other names of functions of nn.functional: those of ATen's signatures, at the top and in ``_C._nn``."""
    tails = {n.removeprefix("nn.functional.") for n in names if n.startswith("nn.functional.")}
    return [n for t in sorted(tails) for n in (t, f"_C._nn.{t}") if n in PUBLIC and n not in names]


def _prepare() -> None:
    if READY:
        return
    READY.append(True)
    PAUSED.append("autocast")
    for names, wrap in ((LOW, _converting(False)), (WIDE, _converting(True))):
        for n in (*names, *_under_aten(names)):
            interpose(n, wrap)
            tail = n.removeprefix("Tensor.")
            if tail != n and tail in overriding.WRAPPED:  # subclasses have the method once more
                overriding.WRAPPED[tail].inner[0] = METHODS[tail]
                if overriding.STATE["methods"]:
                    setattr(Tensor, tail, overriding.WRAPPED[tail])


class autocast:
    """``with autocast("cpu", dtype=bfloat16): ...``, or as a decorator; ``enabled=False`` inside switches it off again."""

    def __init__(
        self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"autocast: expected `device_type` of type `str`, got: {type(device_type).__name__}")
        if device_type != "cpu" and enabled:
            warnings.warn(
                f"User provided device_type of {device_type!r}, but it is not available: autocast is disabled. Write autocast('cpu')",
                stacklevel=2,
            )
            enabled = False
        self.device, self.dtype = device_type, get_autocast_dtype(device_type) if dtype is None else dt.as_dtype(dtype)
        self.fast_dtype = self.dtype
        if enabled and self.dtype not in (dt.bfloat16, dt.float16):
            warnings.warn(f"autocast: {self.dtype} is no 16-bit floating type: autocast is disabled", stacklevel=2)
            enabled = False
        self._enabled, self._cache = enabled, cache_enabled
        self._tokens: list[Any] = []

    def __enter__(self) -> autocast:
        s = STATE.get()
        if self._enabled:
            _prepare()
        new = (
            s
            if self.device != "cpu"
            else State(self._enabled, self.dtype, s.cache if self._cache is None else self._cache)
        )
        self._tokens.append(STATE.set(new))
        return self

    def __exit__(self, *exc: Any) -> None:
        STATE.reset(self._tokens.pop())

    def __call__(self, func: Any) -> Any:
        """As a decorator."""

        @functools.wraps(func)
        def run(*args: Any, **kw: Any) -> Any:
            with self:
                return func(*args, **kw)

        return run


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether products are converted now, on a device; without one, whether on CUDA, as PyTorch means it: False."""
    return STATE.get().enabled and device_type == "cpu"


def is_autocast_cpu_enabled() -> bool:
    """Whether products are converted now."""
    return STATE.get().enabled


def is_autocast_available(device_type: str) -> bool:
    """Whether a device has autocast: the CPU has."""
    return device_type == "cpu"


_OTHER: dict[str, dt.DType] = {}


def get_autocast_dtype(device_type: str) -> dt.DType:
    """The type that products are converted to."""
    return STATE.get().dtype if device_type == "cpu" else _OTHER.get(device_type, dt.float16)


def set_autocast_dtype(device_type: str, dtype: dt.DType) -> None:
    """Set the type that products are converted to."""
    if device_type == "cpu":
        STATE.set(STATE.get()._replace(dtype=dtype))
    else:
        _OTHER[device_type] = dtype


def get_autocast_cpu_dtype() -> dt.DType:
    """The type that products are converted to."""
    return STATE.get().dtype


def get_autocast_gpu_dtype() -> dt.DType:
    """The type that products would be converted to on CUDA."""
    return get_autocast_dtype("cuda")


def set_autocast_cpu_dtype(dtype: dt.DType) -> None:
    """Set the type that products are converted to."""
    set_autocast_dtype("cpu", dtype)


def set_autocast_gpu_dtype(dtype: dt.DType) -> None:
    """Set the type that products would be converted to on CUDA."""
    set_autocast_dtype("cuda", dtype)


def set_autocast_enabled(device_type: Any, enabled: bool | None = None) -> None:
    """Convert products from here on, or stop to."""
    if device_type == "cpu":
        if enabled:
            _prepare()
        STATE.set(STATE.get()._replace(enabled=bool(enabled)))


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Convert products from here on, or stop to."""
    set_autocast_enabled("cpu", enabled)


def is_autocast_cache_enabled() -> bool:
    """What was said with ``cache_enabled``: conversions are made anew every time."""
    return STATE.get().cache


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Remember the wish."""
    STATE.set(STATE.get()._replace(cache=enabled))


def clear_autocast_cache() -> None:
    """Nothing is kept."""


def autocast_increment_nesting() -> int:
    """1: nothing is kept that would have to be freed at the outermost end."""
    return 1


def autocast_decrement_nesting() -> int:
    """0."""
    return 0


def _floating(x: Any, d: dt.DType) -> Any:
    if isinstance(x, dict):
        return {k: _floating(v, d) for k, v in x.items()}
    return convert(x, d)


def custom_fwd(fwd: Any = None, *, device_type: str = "cpu", cast_inputs: Any = None) -> Any:
    """For ``forward`` of an autograd.Function: it runs in the present state, or with its inputs as `cast_inputs` and without autocast."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def run(*args: Any, **kw: Any) -> Any:
        s = STATE.get()
        args[0]._dtype = s.dtype
        args[0]._fwd_used_autocast = s.enabled and cast_inputs is None
        if cast_inputs is None or not s.enabled:
            return fwd(*args, **kw)
        with autocast("cpu", enabled=False):
            return fwd(*[_floating(a, cast_inputs) for a in args], **_floating(kw, cast_inputs))

    return run


def custom_bwd(bwd: Any = None, *, device_type: str = "cpu") -> Any:
    """For ``backward`` of an autograd.Function: it runs in the state that ``forward`` ran in."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def run(*args: Any, **kw: Any) -> Any:
        used = getattr(args[0], "_fwd_used_autocast", False)
        with autocast("cpu", dtype=getattr(args[0], "_dtype", dt.bfloat16), enabled=used):
            return bwd(*args, **kw)

    return run
