"""Weight norm is not in the operator database: an entry of our own puts it through the same columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from chainrule.testing.conformance.adapters import load_library
from chainrule.testing.conformance.database import Entry
from chainrule.testing.conformance.entry import Options, judge_entry

TYPES = {torch.float64, torch.float32, torch.bfloat16, torch.float16}


def _samples(device: str, dtype: torch.dtype, requires_grad: bool, **_: Any):
    def make(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=dtype).requires_grad_(requires_grad)

    yield SampleInput(make(4, 3), args=(make(4, 1), 0))
    yield SampleInput(make(4, 3), args=(make(1, 3), 1))
    yield SampleInput(make(5, 2, 3), args=(make(5, 1, 1), 0))
    yield SampleInput(make(5, 2, 3), args=(make(1, 1, 3), 2))


def weight_norm_entry() -> Entry:
    op = SimpleNamespace(
        name="_weight_norm",
        variant_test_name="",
        op=torch._weight_norm,
        dtypes=TYPES,
        supports_autograd=True,
        supported_backward_dtypes=lambda device: TYPES,
        sample_inputs=_samples,
        gradcheck_wrapper=lambda op, *args, **kwargs: op(*args, **kwargs),
        decorators=(),
    )
    return Entry("_weight_norm", op, "norm")


def test_second_order_of_pytorch_is_found_wrong() -> None:
    """PyTorch's fused weight norm holds its saved norm constant when its backward is differentiated."""
    cells = judge_entry(weight_norm_entry(), load_library("torch"), Options(samples=0))["cells"]
    assert cells["value"]["status"] == cells["vjp"]["status"] == "right"
    assert cells["vjp∘vjp"]["status"] == "wrong"


def test_ours_is_right_in_every_column() -> None:
    library, entry = load_library("chainrule"), weight_norm_entry()
    cells = judge_entry(entry, library, Options(samples=0))["cells"]
    assert {c: cell for c, cell in cells.items() if cell["status"] != "right"} == {}
