"""What the judge must not overlook: indices that are refused, digits that are lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import chainrule as cr
from chainrule.core.samples import Given, S, Sample
from chainrule.testing.conformance.adapters import Library, load_library
from chainrule.testing.conformance.batching import Batch
from chainrule.testing.conformance.columns import Judge, Wrong
from chainrule.testing.conformance.database import select_entries
from chainrule.testing.conformance.entry import Options, judge_entry, quiet
from chainrule.testing.conformance.precision import trials
from chainrule.testing.conformance.problem import Case
from chainrule.testing.laws import LawError, case_of, check_indices


def library_with(function: Callable[..., Any]) -> Library:
    library = load_library("chainrule")
    library.function = lambda entry: function  # type: ignore[method-assign]
    return library


# -- indices ----------------------------------------------------------------------------------------------------------


def test_an_index_that_only_pytorch_takes_is_noticed() -> None:
    """All indices of this sample are 2: the judge tries 3, too."""

    def fussy(x: Any, dim: int, index: Any, value: float) -> Any:
        if (index.numpy() > 2).any():
            raise IndexError("index 3 is out of bounds")
        return cr.index_fill(x, dim, index, value)

    (entry,) = select_entries(["index_fill"])
    sample = SampleInput(torch.rand(5, 5, dtype=torch.float64), args=(0, torch.tensor([2, 2]), 1.0))
    case = Case(entry, torch.float64, 0, sample, 0)
    assert Batch(Judge(case, library_with(cr.index_fill))).indices
    with pytest.raises(Wrong, match="which PyTorch takes, is refused: IndexError"):
        _ = Batch(Judge(case, library_with(fussy))).indices


def test_the_laws_notice_an_index_that_is_refused() -> None:
    def choosy(x: Any, index: Any) -> Any:
        value = getattr(index, "_value", None)
        if isinstance(value, np.ndarray) and value.flat[0] == 2:
            raise IndexError("index 2 is out of bounds")
        return cr.take(x, index)

    args = (S(4), Given([0, 2, 1]))
    check_indices(case_of(Sample("take", None, args, {}, False), False), np.random.default_rng(0))
    with pytest.raises(LawError, match="are refused: index 2 is out of bounds"):
        check_indices(case_of(Sample("choosy", choosy, args, {}, False), False), np.random.default_rng(0))


# -- digits -----------------------------------------------------------------------------------------------------------


def off(y: Any, exact: Any) -> Any:
    """`y` with the value of `exact` and its own derivative."""
    return y + (exact - y).detach()


def naive_sum(x: Any) -> Any:
    return off(x.sum(), cr.tensor(np.cumsum(x.detach().numpy().ravel(), dtype=np.float32)[-1]))


def narrow_gradient(x: Any) -> Any:
    """sin whose gradient goes through 16 bits: right to two digits and a half."""
    y = cr.sin(x)
    return off(cr.cos(x.detach()).to(cr.bfloat16).to(x.dtype) * x, y)


def one_bad_element(x: Any) -> Any:
    """exp, of whose elements one is off by 8 units in the last place."""
    e = np.zeros(x.shape, np.float64)
    e.flat[7] = 8 * 2.0**-23
    return cr.exp(x) * (1 + cr.tensor(e)).to(x.dtype)


def not_finite(x: Any) -> Any:
    """exp that is not a number at one number alone, which no other draw will meet."""
    return cr.where(x == MET.setdefault(str(x.dtype), x.detach().flatten()[7].item()), float("nan"), cr.exp(x))


MET: dict[str, float] = {}
LOST = {
    "a sum one after another": ("sum", torch.float32, lambda x: x.sum(), naive_sum, {}),
    "log of 1 + x": ("log1p", torch.float32, cr.log1p, lambda x: cr.log(1 + x), {}),
    "a gradient in 16 bits": ("sin", torch.float32, cr.sin, narrow_gradient, {}),
    "one element": ("exp", torch.float32, cr.exp, one_bad_element, {}),
    "one element that is not finite": ("exp", torch.float32, cr.exp, not_finite, {}),
    "16 bits rounded twice": ("add", torch.bfloat16, cr.add, lambda x, y, alpha: x + y * alpha, {"alpha": -3.125}),
}


@pytest.mark.parametrize("name", LOST)
def test_lost_digits_are_noticed(name: str) -> None:
    """And the judge is content with the op itself, with the same numbers."""
    entry_name, dtype, right, wrong, kw = LOST[name]
    entry = next(e for e in select_entries([entry_name]) if e.name == entry_name)
    rng = np.random.default_rng(5)
    xs = [torch.from_numpy(rng.uniform(0.001, 2.0, (6, 7))).requires_grad_() for _ in range(2 if kw else 1)]
    case = Case(entry, torch.float64, 0, SampleInput(xs[0], args=tuple(xs[1:]), kwargs=kw), 0)
    with quiet():
        trial = next(trials(case, dtype))
        assert trial.verdict(library_with(right)) is None
        assert "of rounding" in str(trial.verdict(library_with(wrong)))


@pytest.mark.parametrize("name", ["nn.functional.avg_pool2d", "std_mean"])
def test_the_same_errors_in_another_order_are_no_loss(name: str) -> None:
    """Errors as large as PyTorch's, in other places, are right for every draw."""
    entry = next(e for e in select_entries([name]) if e.name == name)
    rows = [judge_entry(entry, load_library("chainrule"), Options(2, seed, ("float32",))) for seed in (11, 12)]
    assert [r["cells"]["float32"]["status"] for r in rows] == ["right"] * 2
