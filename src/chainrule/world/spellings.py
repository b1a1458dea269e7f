"""Inner names of PyTorch that libraries use all the same, and what stands for them here.

Left ``torch.<name>``, right ``chainrule.<name>``; a star stands for one part of the name, on both sides for the same one. Looked at only by the
mirrors of as_torch.py, after a module of ours turned out not to have the name.
"""

from __future__ import annotations

import functools
import importlib
import re
from typing import Any

TABLE = """
_foreach_*                                      world.foreach._foreach_*
_assert                                         world.inner._assert
_assert_async                                   world.inner._assert_async
_check                                          world.inner._check
_check_*                                        world.inner._check_*
_shape_as_tensor                                world.inner._shape_as_tensor
_cast_*                                         world.inner._cast_*
_sample_dirichlet                               world.inner._sample_dirichlet
_standard_gamma                                 world.inner._standard_gamma
_convert_indices_from_coo_to_csr                world.inner._convert_indices_from_coo_to_csr
_convert_indices_from_csr_to_coo                world.inner._convert_indices_from_csr_to_coo
_vmap_internals                                 world.inner
_vmap_internals.*                               world.inner.*
__config__                                      world.inner
__config__.*                                    world.inner.*
is_anomaly_enabled                              autograd.anomaly.is_anomaly_enabled
is_anomaly_check_nan_enabled                    autograd.anomaly.is_anomaly_check_nan_enabled
set_anomaly_enabled                             autograd.anomaly.set_detect_anomaly
set_vital                                       world.inner.nothing
_C._get_tracing_state                           world.inner.none
_C._is_tracing                                  world.inner.no
_C._are_functorch_transforms_active             world.inner.transforms_active
_C._get_default_device                          world.inner._get_default_device
_C._get_accelerator                             world.inner._get_default_device
_C._is_torch_function_mode_enabled              world.inner.no
_C._is_alias_of                                 world.inner._is_alias_of
_C._show_config                                 world.inner.show
_C._jit_can_fuse_on_*                           world.inner.no
_C._jit_*                                       world.inner.nothing
_C._set_*                                       world.inner.nothing
_C._log_api_usage_once                          world.inner.nothing
_C._TensorMeta                                  world.inner._TensorMeta
_C._functorch.is_batchedtensor                  world.inner.is_batchedtensor
_C._functorch.is_legacy_batchedtensor           world.inner.no
_C._functorch.is_gradtrackingtensor             world.inner.is_gradtrackingtensor
_C._nn._parse_to                                world.inner._parse_to
_utils.ExceptionWrapper                         world.inner.ExceptionWrapper
_utils._element_size                            world.inner._element_size
_utils._get_available_device_type               world.inner.none
distributions.utils._standard_normal            distributions.utils._standard_normal
distributions.*._standard_normal                distributions.utils._standard_normal
distributions.*._sum_rightmost                  distributions.transform_base.sum_rightmost
distributions.*.broadcast_all                   distributions.utils.broadcast_all
distributions.*.lazy_property                   distributions.utils.lazy_property
distributions.*.probs_to_logits                 distributions.utils.probs_to_logits
distributions.*.logits_to_probs                 distributions.utils.logits_to_probs
distributions.*.Distribution                    distributions.Distribution
distributions.*._batch_mahalanobis              distributions.multivariate.mahalanobis
distributions.*._batch_mv                       distributions.multivariate.times_vector
distributions.*._precision_to_scale_tril        distributions.multivariate.tril_of_precision
distributions.*._standard_gamma                 distributions.positive.standard_gamma
distributions.transforms._InverseTransform      distributions.transform_base._InverseTransform
optim.lbfgs._strong_wolfe                       world.inner._strong_wolfe
optim.lbfgs._cubic_interpolate                  world.inner._cubic_interpolate
optim.optimizer.ParamsT                         world.inner.Anything
optim.optimizer._use_grad_for_differentiable    world.inner._use_grad_for_differentiable
optim.optimizer._default_to_fused_or_foreach    world.inner._default_to_fused_or_foreach
optim.optimizer._get_capturable_supported_devices  world.inner.no_devices
optim.optimizer._get_value                      world.inner._get_value
optim.optimizer._dispatch_sqrt                  world.inner._dispatch_sqrt
optim.optimizer._view_as_real                   world.inner._view_as_real
optim.optimizer._*_doc                          world.inner.empty
autograd.functional._as_tuple                   world.inner._as_tuple
autograd.functional._tuple_postprocess          world.inner._tuple_postprocess
autograd.functional._grad_preprocess            world.inner._grad_preprocess
autograd.functional._grad_postprocess           world.inner._grad_postprocess
autograd.functional._construct_standard_basis_for  world.inner._construct_standard_basis_for
SymInt                                          payloads.nested.sizes.RaggedInt
functional.F                                    nn.functional
autograd._force_original_view_tracking          world.inner.around
autograd._profiler_enabled                      world.inner.no
autograd._disable_profiler                      world.inner.nothing
nn.functional._mha_shape_check                  world.inner.nothing
nn.functional.grad                              nn.grad
nn.functional.grad.*                            nn.grad.*
utils.model_zoo                                 world.hub
utils.model_zoo.load_url                        world.hub.load_state_dict_from_url
utils.model_zoo.tqdm                            world.hub.tqdm
multiprocessing.start_processes                 world.multiprocessing.spawn
jit.TracerWarning                               world.inner.TracerWarning
jit._script_if_tracing                          world.inner.itself
jit.annotations                                 world.inner
jit.annotations.List                            world.inner.list_of
jit.annotations.BroadcastingList*               world.inner.Lists
_jit_internal.BroadcastingList*                 world.inner.Lists
legacy_contiguous_format                        contiguous_format
cuda.*Tensor                                    world.inner.CudaTensor
cuda.nvtx.range                                 world.inner.around
cuda.nvtx.range_*                               world.inner.nothing
cuda.cudart                                     world.inner.none
autograd.profiler.emit_nvtx                     world.inner.around
autograd.profiler.emit_itt                      world.inner.around
backends.xnnpack                                world.inner
backends.xnnpack.*                              world.inner.no_value
profiler.kineto_available                       world.inner.no
autograd.kineto_available                       world.inner.no
autograd.DeviceType                             world.inner.Anything
amp.autocast_mode._cast                         world.inner._cast
amp.grad_scaler.OptState                        world.inner.OptState
accelerator.set_device_*                        world.inner.nothing
accelerator.current_device_*                    world.inner.zero
_C._functorch.get_unwrapped                     world.inner.get_unwrapped
_utils._get_device_module                       world.inner._get_device_module
_tensor_str._*                                  world.inner._*
utils._contextlib                               world.inner
utils._contextlib.*                             world.inner.*
onnx.symbolic_helper.parse_args                 world.inner.decorator
onnx.register_custom_op_symbolic                world.inner.nothing
onnx.unregister_custom_op_symbolic              world.inner.nothing
cuda._initialized                               world.inner.no_value
utils.checkpoint.get_device_states              world.inner.get_device_states
utils.checkpoint.set_device_states              world.inner.nothing
"""


@functools.cache
def _rows() -> list[tuple[re.Pattern[str], str]]:
    rows = []
    for line in TABLE.split("\n"):
        if line.strip():
            left, right = line.split()
            rows.append((re.compile(re.escape(left).replace(r"\*", r"([^.]+)")), f"chainrule.{right}"))
    return rows


def ours(name: str) -> str | None:
    """The full name of ours for ``torch.<name>``, or None."""
    for pattern, right in _rows():
        if found := pattern.fullmatch(name):
            return right.replace("*", found[1]) if "*" in right else right
    return None


def find(name: str) -> Any:
    """What stands for ``torch.<name>``; AttributeError if nothing does."""
    target = ours(name)
    if target is None:
        raise AttributeError(name)
    module, _, last = target.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        try:
            return importlib.import_module(target)
        except ModuleNotFoundError:
            raise AttributeError(name) from None
