"""Random programs of views, in-place writes and ops give PyTorch's values and gradients, plain and under transforms.

PyTorch refuses to differentiate about half of these programs in reverse mode ("modified by an inplace operation",
"output of a function that returns multiple views"). It does not refuse them in forward mode, so for those its forward
mode, entry by entry, is the judge: no program is passed over. CHAINRULE_EXAMPLES=5000 in the environment looks longer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, note
from hypothesis import strategies as st

import chainrule
from tests.engine.programs import SHAPES, Program, build, programs

RTOL, ATOL = 1e-9, 1e-11
BATCH = 3
REFUSED = ("modified by an inplace operation", "is a view and", "derivative for")


def close(got: Any, want: Any, what: str, *, rtol: float = RTOL, atol: float = ATOL) -> None:
    got, want = np.asarray(_plain(got)), np.asarray(_plain(want))
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol * (1 + np.abs(want).max(initial=0)), err_msg=what)


def _plain(x: Any) -> Any:
    return x.detach().numpy() if hasattr(x, "detach") else x


def ours(arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
    return tuple(chainrule.tensor(a, dtype=chainrule.float64) for a in arrays)


def theirs(arrays: Sequence[np.ndarray]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.tensor(a, dtype=torch.float64) for a in arrays)


def directions(program: Program) -> list[np.ndarray]:
    rng = np.random.default_rng(program.seed + 1)
    return [rng.standard_normal(shape) for shape in program.shapes]


def torch_gradient(program: Program, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """PyTorch's gradient of the weighted sum of all live tensors: by reverse mode, or forward where that refuses."""
    f, xs = program.on(torch), theirs(arrays)
    try:
        outputs, pull = torch.func.vjp(f, *xs)
        return [g.numpy() for g in pull(theirs(program.weights(outputs)))]
    except RuntimeError as error:
        if not any(text in str(error) for text in REFUSED):
            raise
    weights = theirs(program.weights(f(*xs)))
    gradients = [np.zeros(a.shape) for a in arrays]
    for i, a in enumerate(arrays):
        for where in np.ndindex(a.shape):
            tangents = [torch.zeros_like(x) for x in xs]
            tangents[i][where] = 1
            _, out = torch.func.jvp(f, xs, tuple(tangents))
            gradients[i][where] = sum(float((w * t).sum()) for w, t in zip(weights, out))
    return gradients


def weighted(program: Program) -> Callable[..., Any]:
    """The program with one number as result: the weighted sum of all tensors that are alive at its end."""
    f = program.on(chainrule)

    def loss(*xs: Any) -> Any:
        outputs = f(*xs)
        return sum((w * o).sum() for w, o in zip(ours(program.weights(outputs)), outputs))

    return loss


@given(programs())
def test_values(program: Program) -> None:
    note(repr(program))
    got = program.on(chainrule)(*ours(program.inputs()))
    want = program.on(torch)(*theirs(program.inputs()))
    for name, g, w in zip(program.names, got, want, strict=True):
        close(g, w, name)


@given(programs())
def test_inputs_are_left_alone(program: Program) -> None:
    """The programs copy their inputs first, so nothing they write may reach the caller's tensors or arrays."""
    note(repr(program))
    arrays = program.inputs()
    inputs = ours(arrays)
    program.on(chainrule)(*inputs)
    chainrule.func.vjp(program.on(chainrule), *inputs)
    for before, after in zip(program.inputs(), inputs):
        close(after, before, "input", rtol=0, atol=0)


@given(programs())
def test_gradients(program: Program) -> None:
    note(repr(program))
    arrays = program.inputs()
    want = torch_gradient(program, arrays)
    outputs, pull = chainrule.func.vjp(program.on(chainrule), *ours(arrays))
    for i, (g, w) in enumerate(zip(pull(ours(program.weights(outputs))), want, strict=True)):
        close(g, w, f"func.vjp, gradient of t{i}")


@given(programs())
def test_gradients_imperative(program: Program) -> None:
    """The same through requires_grad and backward()."""
    note(repr(program))
    arrays = program.inputs()
    want = torch_gradient(program, arrays)
    leaves = tuple(x.requires_grad_() for x in ours(arrays))
    loss = weighted(program)(*leaves)
    if loss.requires_grad:
        loss.backward()
    for i, (leaf, w) in enumerate(zip(leaves, want, strict=True)):
        close(np.zeros(w.shape) if leaf.grad is None else leaf.grad, w, f"backward(), gradient of t{i}")


@given(programs())
def test_jvp(program: Program) -> None:
    note(repr(program))
    arrays, ts = program.inputs(), directions(program)
    got_values, got = chainrule.func.jvp(program.on(chainrule), ours(arrays), ours(ts))
    values, want = torch.func.jvp(program.on(torch), theirs(arrays), theirs(ts))
    for name, v, g, value, w in zip(program.names, got_values, got, values, want, strict=True):
        close(v, value, name)
        close(g, w, f"tangent of {name}")


@given(programs(), st.lists(st.sampled_from([0, 0, -1, None]), min_size=2, max_size=2))
def test_vmap(program: Program, dims: list[int | None]) -> None:
    """vmap equals a loop on PyTorch, also where an input without a batch is written with batched values."""
    note(repr(program))
    in_dims = tuple(dims[: len(program.shapes)])
    note(f"in_dims = {in_dims}")
    if all(d is None for d in in_dims):
        in_dims = (0,) * len(in_dims)
    stacked, examples = batched(program, in_dims)
    got = chainrule.func.vmap(program.on(chainrule), in_dims=in_dims)(*ours(stacked))
    want = [program.on(torch)(*theirs(x)) for x in examples]
    for name, g, *w in zip(program.names, got, *want, strict=True):
        close(g, np.stack([_plain(x) for x in w]), f"vmap, {name}")


@given(programs(), st.lists(st.sampled_from([0, 0, -1, None]), min_size=2, max_size=2))
def test_vmap_of_grad(program: Program, dims: list[int | None]) -> None:
    """Per-example gradients equal a loop over PyTorch's gradients."""
    note(repr(program))
    in_dims = tuple(dims[: len(program.shapes)])
    if all(d is None for d in in_dims):
        in_dims = (0,) * len(in_dims)
    note(f"in_dims = {in_dims}")
    stacked, examples = batched(program, in_dims)
    loss, argnums = weighted(program), tuple(range(len(in_dims)))
    got = chainrule.func.vmap(chainrule.func.grad(loss, argnums=argnums), in_dims=in_dims)(*ours(stacked))
    want = [torch_gradient(program, x) for x in examples]
    for i, (g, *w) in enumerate(zip(got, *want, strict=True)):
        close(g, np.stack(w), f"vmap(grad), gradient of t{i}")


@given(programs())
def test_grad_of_vmap(program: Program) -> None:
    """The gradient of a sum over a batch is the stack of the per-example gradients."""
    note(repr(program))
    stacked, examples = batched(program, (0,) * len(program.shapes))
    argnums = tuple(range(len(stacked)))
    mapped = chainrule.func.vmap(weighted(program))
    got = chainrule.func.grad(lambda *xs: mapped(*xs).sum(), argnums=argnums)(*ours(stacked))
    want = [torch_gradient(program, x) for x in examples]
    for i, (g, *w) in enumerate(zip(got, *want, strict=True)):
        close(g, np.stack(w), f"grad(vmap), gradient of t{i}")


@given(programs())
def test_second_order(program: Program) -> None:
    """Forward over reverse equals central differences of PyTorch's gradient along a direction."""
    note(repr(program))
    arrays, ts = program.inputs(), directions(program)
    gradient = chainrule.func.grad(weighted(program), argnums=tuple(range(len(arrays))))
    _, got = chainrule.func.jvp(gradient, ours(arrays), ours(ts))
    h = 1e-6
    high = torch_gradient(program, [x + h * t for x, t in zip(arrays, ts)])
    low = torch_gradient(program, [x - h * t for x, t in zip(arrays, ts)])
    for i, (g, a, b) in enumerate(zip(got, high, low, strict=True)):
        close(g, (a - b) / (2 * h), f"jvp(grad), t{i}", rtol=1e-5, atol=1e-6)


def batched(program: Program, in_dims: Sequence[int | None]) -> tuple[list[np.ndarray], list[list[np.ndarray]]]:
    """Inputs for vmap with these in_dims, and the same inputs as a list of examples."""
    plain, many = program.inputs(), program.inputs(BATCH)
    stacked = [p if d is None else np.moveaxis(m, 0, d) for p, m, d in zip(plain, many, in_dims)]
    examples = [[p if d is None else m[i] for p, m, d in zip(plain, many, in_dims)] for i in range(BATCH)]
    return stacked, examples


def test_the_programs_are_worth_running() -> None:
    """Guards the generator: nearly all programs write in place, make views and have a gradient that is not zero."""
    random, count = Random(0), 100
    writes = views = gradients = refused = 0
    for _ in range(count):
        shapes = tuple(random.choice(SHAPES) for _ in range(random.randint(1, 2)))
        program = build(shapes, random.randrange(10_000), [random.getrandbits(32) for _ in range(12)])
        text, arrays = program.source, program.inputs()
        writes += any(mark in text for mark in ("_(", "] = ", " += ", " -= ", " *= "))
        views += any(
            f".{name}(" in text
            for name in ("select", "narrow", "transpose", "permute", "reshape", "diagonal", "unbind")
        )
        gradients += any(np.abs(g).max(initial=0) > 0 for g in torch_gradient(program, arrays))
        refused += refuses(program, arrays)
    assert writes > 0.9 * count
    assert views > 0.6 * count
    assert gradients > 0.9 * count
    assert 0.2 * count < refused < 0.8 * count


@pytest.mark.parametrize(
    "law", ["gradients", "gradients_imperative", "jvp", "vmap_of_grad", "grad_of_vmap", "second_order"]
)
def test_the_judge_rejects(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A derivative that is off by 1.001 is found by every law, though all values are right."""
    program = Program(((3,),), ("t1 = t0[1:]", "t1.mul_(2.1)", "t2 = lib.sin(t0 * t0)"), ("t0", "t1", "t2"), 0)
    check = globals()[f"test_{law}"].hypothesis.inner_test
    rest = ([0, 0],) if law.startswith("vmap") else ()
    monkeypatch.setitem(globals(), "note", print)
    check(program, *rest)
    right = chainrule.sin
    monkeypatch.setattr(chainrule, "sin", lambda x: 1.001 * right(x) - 0.001 * right(x.detach()))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(program, *rest)


def test_the_judge_rejects_a_lost_write() -> None:
    """A view that turned into a copy shows in the values of the base."""
    right = Program(((3,),), ("t1 = t0[1:]", "t1.mul_(2.1)"), ("t0",), 0)
    wrong = Program(((3,),), ("t1 = t0[1:].clone()", "t1.mul_(2.1)"), ("t0",), 0)
    want = right.on(torch)(*theirs(right.inputs()))
    close(right.on(chainrule)(*ours(right.inputs()))[0], want[0], "t0")
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        close(wrong.on(chainrule)(*ours(wrong.inputs()))[0], want[0], "t0")


def refuses(program: Program, arrays: Sequence[np.ndarray]) -> bool:
    """Whether PyTorch's reverse mode turns this program down."""
    try:
        outputs, pull = torch.func.vjp(program.on(torch), *theirs(arrays))
        pull(theirs(program.weights(outputs)))
    except RuntimeError:
        return True
    return False


@pytest.fixture(autouse=True)
def _quiet_torch() -> Any:
    # torch.func announces what it has no batching rule for, and prototype features, as warnings.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="torch")
        yield
