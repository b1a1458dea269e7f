"""The device ``cuda``, which is not here: ``is_available()`` is False."""

from __future__ import annotations

from .devices import fill

fill(globals(), "cuda")

from ..amp import GradScaler, autocast, custom_bwd, custom_fwd  # noqa: E402, F401
from .refusal import refuse  # noqa: E402

CUDAGraph = graph = refuse("cuda.graph", "cuda")
has_half = has_magma = False


class OutOfMemoryError(RuntimeError):
    """Never raised: of a device with a memory of its own."""


CudaError = DeferredCudaCallError = AcceleratorError = OutOfMemoryError
