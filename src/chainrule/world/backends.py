"""Switches of PyTorch's libraries: they can be set and read, and nothing here depends on them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class _Switches(ModuleType):
    """A module whose attributes are switches."""

    def __init__(self, name: str, available: bool = False, **values: Any) -> None:
        super().__init__(f"{__name__}.{name}", f"Switches of {name}.")
        self.__dict__.update(values, __path__=[])
        for n in ("is_available", "is_built"):
            self.__dict__.setdefault(n, lambda: available)
        sys.modules[self.__name__] = self

    @contextlib.contextmanager
    def flags(self, *args: Any, **kw: Any) -> Iterator[None]:
        """The switches as given, inside a ``with``."""
        before = {k: self.__dict__.get(k) for k in kw}
        self.__dict__.update(kw)
        try:
            yield
        finally:
            self.__dict__.update(before)

    def set_flags(self, **kw: Any) -> dict[str, Any]:
        """Set switches; returns what they were."""
        before = {k: self.__dict__.get(k) for k in kw}
        self.__dict__.update(kw)
        return before


class _Options:
    """Switches of a part."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


def _sdp(names: str) -> dict[str, Any]:
    """Which algorithm attention takes: can be said, and makes no difference to the result."""
    state = dict.fromkeys(names.split(), True)
    out: dict[str, Any] = {}
    for n in state:

        def enable(enabled: bool, n: str = n) -> None:
            state[n] = enabled

        def enabled(n: str = n) -> bool:
            return state[n]

        out[f"enable_{n}_sdp"], out[f"{n}_sdp_enabled"] = enable, enabled
    return out


@contextlib.contextmanager
def _sdp_kernel(*args: Any, **kw: Any) -> Iterator[None]:
    yield


cuda = _Switches(
    "cuda",
    matmul=_Options(allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True, fp32_precision="none"),
    cufft_plan_cache=_Options(size=0, max_size=0, clear=lambda: None),
    preferred_linalg_library=lambda backend=None: "default",
    preferred_blas_library=lambda backend=None: "default",
    sdp_kernel=_sdp_kernel,
    **_sdp("flash math mem_efficient cudnn"),
)  # fmt: skip
cudnn = _Switches(
    "cudnn", enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=10, version=lambda: None,
    is_acceptable=lambda tensor: False,
)  # fmt: skip
mkldnn = _Switches("mkldnn", enabled=True, deterministic=False, allow_tf32=False)
mkl = _Switches("mkl")
mps = _Switches("mps", is_macos13_or_newer=lambda *a: False, is_macos_or_newer=lambda *a: False)
openmp = _Switches("openmp")
opt_einsum = _Switches("opt_einsum", True, enabled=True, strategy="auto")
nnpack = _Switches("nnpack", enabled=False)
quantized = _Switches("quantized", engine="none", supported_engines=["none"])
xeon = _Switches("xeon")
miopen = _Switches("miopen")
cusparselt = _Switches("cusparselt")
mha = _Switches("mha", get_fastpath_enabled=lambda: False, set_fastpath_enabled=lambda value: None)
cpu = _Switches("cpu", True, get_cpu_capability=lambda: "DEFAULT")
