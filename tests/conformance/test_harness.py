"""The harness can fail: a wrong rule planted in a copy of an op is caught in the column that it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import chainrule
from chainrule.core.declare import op
from chainrule.core.op import OPS
from chainrule.testing.conformance.adapters import Library, load_library
from chainrule.testing.conformance.batching import Batch
from chainrule.testing.conformance.calculus import differences, inner, mismatch
from chainrule.testing.conformance.columns import COLUMNS, Judge
from chainrule.testing.conformance.database import choose, samples_of, select_entries
from chainrule.testing.conformance.entry import Options, judge_entry
from chainrule.testing.conformance.extras import judge_errors
from chainrule.testing.conformance.precision import trials
from chainrule.testing.conformance.problem import Case, Oracle
from chainrule.testing.conformance.runner import run_all


def planted_torch(*, value=1.0, vjp=1.0, jvp=1.0, cut="", batch="") -> Callable:
    """sin with a fault: a factor on a rule, a rule with its input held constant (`cut`), or a bad batching rule."""

    class Sin(torch.autograd.Function):
        generate_vmap_rule = not batch

        @staticmethod
        def forward(x):
            return torch.sin(x) * value

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * torch.cos(x.detach() if cut == "vjp" else x).conj() * vjp

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return t * torch.cos(x.detach() if cut == "jvp" else x) * jvp

    def looping(info, in_dims, x):
        return torch.stack([torch.sin(e) for e in x.movedim(in_dims[0], 0).unbind(0)]), 0

    def first_only(info, in_dims, x):
        x = x.movedim(in_dims[0], 0)
        return torch.sin(x[:1]).expand(x.shape), 0

    if batch:
        Sin.vmap = staticmethod({"loop": looping, "first": first_only}[batch])
    return lambda x: Sin.apply(x)


def planted_chainrule(*, value=1.0, vjp=1.0, jvp=1.0, cut="", batch="") -> Callable:
    """The same faults in an op declared as chainrule's own are."""

    def looping(size, xs, flags):
        return chainrule.stack([sin.bind(xs[0][k]) for k in range(size)])

    def first_only(size, xs, flags):
        return sin.bind(xs[0][:1]).expand(xs[0].shape)

    rule = {"": "trailing", "loop": looping, "first": first_only}[batch]
    sin = op("planted_sin", batch=rule)(lambda x: np.sin(x) * value)
    sin.jvp(lambda t, y, x: t[0] * chainrule.cos(x.detach() if cut == "jvp" else x) * jvp)
    sin.vjp(lambda g, y, x: (g * chainrule.cos(x.detach() if cut == "vjp" else x).conj() * vjp,))
    OPS.pop("planted_sin")
    return sin


PLANTED = {"torch": planted_torch, "chainrule": planted_chainrule}


def library_with(name: str, function: Callable) -> Library:
    """The library's adapter with one function replaced for every entry."""
    library = load_library(name)
    library.function = lambda entry: function  # type: ignore[method-assign]
    return library


def failing(name: str, columns: tuple[str, ...] = COLUMNS, **fault: Any) -> list[str]:
    (entry,) = select_entries(["sin"])
    row = judge_entry(entry, library_with(name, PLANTED[name](**fault)), Options(samples=1, columns=columns))
    return [c for c, cell in row["cells"].items() if cell["status"] not in ("right", "n/a")]


# PyTorch's own custom functions silently lose the second tangent, so that jvp∘jvp is wrong without any planted fault.
FIRST_AND_SECOND = {"torch": COLUMNS[:6], "chainrule": COLUMNS[:7]}


@pytest.mark.parametrize("library", PLANTED)
@pytest.mark.parametrize(
    "fault, caught",
    [
        ({}, []),
        ({"vjp": 1.0001}, ["vjp"]),
        ({"jvp": 1.0001}, ["jvp"]),
        ({"cut": "vjp"}, ["vjp∘vjp", "jvp∘vjp"]),
        ({"cut": "jvp"}, ["vjp∘jvp", "jvp∘jvp"]),
    ],
    ids=str,
)
def test_planted_derivative_rules_are_caught_in_their_column(library: str, fault: dict, caught: list[str]) -> None:
    columns = FIRST_AND_SECOND[library]
    assert failing(library, columns, **fault) == [c for c in caught if c in columns]


@pytest.mark.parametrize("library", PLANTED)
def test_a_planted_value_is_caught(library: str) -> None:
    assert failing(library, ("value",), value=1.0001) == ["value"]


@pytest.mark.parametrize("library", PLANTED)
@pytest.mark.parametrize("batch", ["loop", "first"])
def test_planted_batching_rules_are_caught(library: str, batch: str) -> None:
    assert failing(library, ("value", "vmap"), batch=batch) == ["vmap"]


def test_a_derivative_lost_under_vmap_is_caught_outside_of_it() -> None:
    """A batching rule that cuts the level below is right in every column but the two that differentiate a vmap."""

    def cutting(size, xs, flags):
        return sin.bind(xs[0].detach())

    sin = op("planted_sin", batch=cutting)(np.sin)
    sin.jvp(lambda t, y, x: t[0] * chainrule.cos(x))
    sin.vjp(lambda g, y, x: (g * chainrule.cos(x).conj(),))
    OPS.pop("planted_sin")
    (entry,) = select_entries(["sin"])
    columns = tuple(c for c in COLUMNS if "vmap" in c)
    row = judge_entry(entry, library_with("chainrule", sin), Options(samples=1, columns=columns))
    assert [c for c, cell in row["cells"].items() if cell["status"] == "wrong"] == ["vjp∘vmap", "jvp∘vmap"]


@pytest.mark.parametrize("work, caught", [(np.float64, []), (np.float32, []), (np.float16, ["float32"])])
def test_a_value_computed_in_fewer_bits_is_caught(work: type, caught: list[str]) -> None:
    def body(x):
        return np.sin(x.astype(work) if x.dtype == np.float32 else x).astype(x.dtype)

    sin = op("planted_sin")(body)
    sin.vjp(lambda g, y, x: (g * chainrule.cos(x),))
    OPS.pop("planted_sin")
    (entry,) = select_entries(["sin"])
    row = judge_entry(entry, library_with("chainrule", sin), Options(samples=1, columns=("value", "float32", "16-bit")))
    assert [c for c, cell in row["cells"].items() if cell["status"] == "wrong"] == caught


def test_indices_differ_between_examples() -> None:
    """A batching rule that gives every example the first one's index is caught, as one that mixes masks up is."""

    def body(x, i):
        return np.take_along_axis(x, i, -1)

    def first(size, xs, flags):
        return gather.bind(xs[0], xs[1][:1].expand(xs[1].shape) if flags[1] else xs[1].expand(size, *xs[1].shape))

    gather = op("planted_gather", batch=first)(body)
    OPS.pop("planted_gather")
    (entry,) = select_entries(["gather"])
    library = library_with(
        "chainrule", lambda x, dim, index: gather(x.movedim(dim, -1), index.movedim(dim, -1)).movedim(-1, dim)
    )
    row = judge_entry(entry, library, Options(samples=1, columns=("value", "vmap")))
    assert "index tensors" in row["cells"]["vmap"]["details"][0]["message"]


def test_indices_that_pytorch_wraps_around_are_not_asked_for() -> None:
    """All indices of this sample are 4, the last of 5: one more is 0 again for PyTorch's take_along_dim, one less is another index."""
    (entry,) = select_entries(["take_along_dim"])
    x, index = torch.rand(5, 5, dtype=torch.float64), torch.full((1, 2), 4)
    judge = Judge(Case(entry, torch.float64, 0, SampleInput(x, args=(index, 1)), 0), load_library("chainrule"), None)
    (variants,) = Batch(judge).indices.values()
    assert [int(v.max()) for v in variants] == [4, 3, 4, 3, 4]


def test_known_mistakes_of_pytorch_are_found() -> None:
    """Published mistakes of torch 2.13 in forward-over-forward and reverse-over-forward."""
    library = load_library("torch")
    for entry in select_entries(["nn.functional.layer_norm", "linalg.det", "linalg.solve"]):
        cells = judge_entry(entry, library, Options(samples=2))["cells"]
        assert cells["jvp∘jvp"]["status"] == cells["vjp∘jvp"]["status"] == "wrong", entry.name
        assert cells["value"]["status"] == cells["vjp"]["status"] == cells["vjp∘vjp"]["status"] == "right", entry.name


def test_a_row_is_reproduced_exactly() -> None:
    (entry,) = select_entries(["cumprod"])
    library, options = load_library("torch"), Options(samples=2, seed=3)
    assert judge_entry(entry, library, options) == judge_entry(entry, library, options)


def test_differences_are_not_trusted_at_kinks_and_jumps() -> None:
    x = np.array([0.0, 1.0, -2.0, 1e-9])
    t = np.ones(4)
    kink = differences(lambda a: [np.abs(a[0])], [x], [t])
    assert kink.usable[0].tolist() == [False, True, True, False]
    jump = differences(lambda a: [np.floor(a[0])], [np.array([1.0, 1.5])], [np.ones(2)])
    assert jump.usable[0].tolist() == [False, True]
    np.testing.assert_allclose(kink.estimate[0][1:3], [1, -1], rtol=1e-9)


def test_refined_differences_reject_slopes_of_a_staircase() -> None:
    """Steps that cross many jumps look like a slope; smaller ones do not."""
    stairs = differences(lambda a: [np.floor(a[0] * 1e5) / 1e5], [np.array([0.123456])], [np.ones(1)])
    assert not stairs.refined().usable[0].any()


def test_refined_differences_reject_stairs_as_wide_as_the_fine_step() -> None:
    """The coarse ladder sees a curve and leaves the element to the fine one, which meets one stair at each of its steps."""
    point, along = [np.array([-8.953043]), np.array([0.004046053627])], [np.array([0.4531]), np.array([-1.688708])]
    stairs = differences(lambda a: [np.trunc(a[0] / a[1])], point, along)
    assert stairs.usable[0].all()
    assert not stairs.refined().usable[0].any()
    slope = differences(lambda a: [a[0] / a[1]], point, along)
    assert slope.refined().usable[0].all()


@pytest.mark.parametrize("shape", [(0,), (0, 1, 3), (2, 0)])
def test_samples_without_elements_have_no_precision(shape: tuple[int, ...]) -> None:
    (entry,) = select_entries(["fmod"])
    sample = SampleInput(torch.ones(5, 1, dtype=torch.float64), args=(torch.ones(shape, dtype=torch.float64),))
    for s in (sample, SampleInput(sample.args[0], args=(2.0,))):
        case = Case(entry, torch.float64, 0, s, 0)
        assert list(trials(case, torch.float32)) == []


def test_mismatch_sees_shape_nan_and_small_errors() -> None:
    a = np.array([1.0, np.nan])
    assert mismatch(a, a.copy(), "float64") is None
    assert "shape" in str(mismatch(a, a[:1], "float64"))
    assert mismatch(a, np.array([1.0, 0.0]), "float64") is not None
    assert mismatch(np.array([1.0]), np.array([1.0 + 1e-5]), "float64") is not None


def test_inner_is_the_real_pairing() -> None:
    assert inner([np.array([1j])], [np.array([1j])]) == 1.0
    assert inner([np.array([1j])], [np.array([1.0])]) == 0.0


def test_samples_show_every_pattern() -> None:
    trivial = [True, False, False, False, False]
    patterns = [frozenset("a"), frozenset("b"), frozenset("bc"), frozenset("bc"), frozenset("bd")]
    assert choose(trivial, patterns, 1) == [2]
    assert choose(trivial, patterns, 3) == [0, 2, 4]
    assert choose(trivial, patterns, 0) == list(range(5))
    many = [frozenset({str(i)}) for i in range(20)]
    assert len(choose([False] * 20, many, 3)) == 9


@pytest.mark.parametrize("name", ["cdist", "nn.functional.linear"])
def test_a_rule_is_not_judged_by_zeros_alone(name: str) -> None:
    """One sample of cdist in the list has p = 0, whose gradient is zero."""
    (entry,) = select_entries([name])
    samples, chosen = samples_of(entry, torch.float64, 3, 0)
    oracles = [Oracle(Case(entry, torch.float64, i, samples[i], 0)) for i in chosen]
    assert any(o.has_gradient for o in oracles)
    if name == "nn.functional.linear":
        assert {len(samples[i].args) for i in chosen} == {1, 2}


def _job(item: str, library: Library) -> str:
    if item == "hang":
        while True:
            pass
    if item == "crash":
        import os

        os._exit(3)
    if item == "raise":
        raise ValueError("no")
    return item.upper()


def test_hangs_and_crashes_cost_one_item() -> None:
    items = ["a", "hang", "crash", "raise", "b"]
    outcomes = {
        items[i]: (outcome, result) for i, outcome, result in run_all(_job, items, "torch", jobs=2, timeout=2.0)
    }
    assert {k: v[0] for k, v in outcomes.items()} == {
        "a": "done",
        "hang": "timeout",
        "crash": "crashed",
        "raise": "failed",
        "b": "done",
    }
    assert outcomes["b"][1] == "B"


def test_error_inputs_keep_identity_and_devices() -> None:
    """``cat((x, y), out=x)`` is about one tensor, and a tensor on a device that we lack names `device`."""
    for name in ("cat", "gradient"):
        (entry,) = select_entries([name])
        rows = judge_errors(entry, load_library("chainrule"), 0)
        assert [r for r in rows if r["status"] not in ("right", "n/a")] == []


def test_results_in_other_memory_are_for_pointwise_ops_only() -> None:
    """A result that PyTorch gives for other strides counts for ldexp; as_strided is about the strides."""
    kinds = {e.name: e.is_pointwise for e in select_entries(["ldexp", "sin", "as_strided", "sum"])}
    assert {n for n, pointwise in kinds.items() if pointwise} == {"ldexp", "sin"}
    assert {"as_strided", "sum"} <= set(kinds)
