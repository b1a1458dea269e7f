"""The transforms' options, nestings and errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import chainrule as cr
from chainrule.func import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


def tensors(*shapes: tuple[int, ...], seed: int = 0) -> tuple[list[cr.Tensor], list[torch.Tensor]]:
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal(s) for s in shapes]
    return [cr.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]


def same(ours: object, theirs: object) -> None:
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for k in theirs:
            same(ours[k], theirs[k])
    elif isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
    else:
        assert tuple(ours.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-12)


def f(lib, x, y):
    return (lib.sin(x) * y).sum() + (y**3).sum()


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,), -1])
def test_grad_argnums(argnums) -> None:
    (x, y), (u, v) = tensors((3,), (3,))
    same(grad(lambda a, b: f(cr, a, b), argnums)(x, y), torch.func.grad(lambda a, b: f(torch, a, b), argnums)(u, v))


def test_aux_and_trees() -> None:
    (x, y), (u, v) = tensors((3,), (3,))
    ours = grad_and_value(lambda p: (f(cr, p["x"], p["y"][0]), {"s": p["x"] * 2}), has_aux=True)({"x": x, "y": [y]})
    theirs = torch.func.grad_and_value(lambda p: (f(torch, p["x"], p["y"][0]), {"s": p["x"] * 2}), has_aux=True)(
        {"x": u, "y": [v]}
    )
    same(ours, theirs)


@pytest.mark.parametrize("make", ["jacrev", "jacfwd", "hessian"])
@pytest.mark.parametrize("argnums", [0, (0, 1)])
def test_jacobians(make, argnums) -> None:
    (x, y), (u, v) = tensors((2, 3), (3,))
    ours = {"jacrev": jacrev, "jacfwd": jacfwd, "hessian": hessian}[make]
    g = (
        (lambda lib: lambda a, b: f(lib, a, b))
        if make == "hessian"
        else (lambda lib: lambda a, b: (lib.sin(a) * b, (a @ b).exp()))
    )
    same(ours(g(cr), argnums)(x, y), getattr(torch.func, make)(g(torch), argnums)(u, v))


@pytest.mark.parametrize("chunk_size", [1, 2, None])
def test_jacrev_in_chunks(chunk_size) -> None:
    (x,), (u,) = tensors((2, 3))
    same(jacrev(lambda a: a.exp() @ a.mT, chunk_size=chunk_size)(x), torch.func.jacrev(lambda a: a.exp() @ a.mT)(u))


@pytest.mark.parametrize(("in_dims", "out_dims"), [(0, 0), (1, 1), (-1, 0), ((0, None), 1), ((None, 1), -1)])
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_vmap_dims(in_dims, out_dims, chunk_size) -> None:
    (x, y), (u, v) = tensors((3, 3), (3, 3))
    same(
        vmap(lambda a, b: a * b.sum() + a, in_dims, out_dims, chunk_size=chunk_size)(x, y),
        torch.vmap(lambda a, b: a * b.sum() + a, in_dims, out_dims)(u, v),
    )


def test_vmap_trees() -> None:
    (x, y), (u, v) = tensors((3, 2), (2, 3))
    g = lambda d: (d["a"] + 1, {"b": d["b"] * 2})
    same(
        vmap(g, in_dims=({"a": 0, "b": 1},), out_dims=(0, 1))({"a": x, "b": y}),
        torch.vmap(g, in_dims=({"a": 0, "b": 1},), out_dims=(0, 1))({"a": u, "b": v}),
    )


def test_an_output_that_saw_no_batched_input_is_repeated_or_stays() -> None:
    x, w = cr.ones(3, 2), cr.arange(4.0)
    assert vmap(lambda v: w * 2)(x).shape == (3, 4)
    assert vmap(lambda v: (v, w * 2), out_dims=(0, None))(x)[1].shape == (4,)


NESTINGS = {
    "vmap(grad(jvp))": lambda lib, fn, x: fn.vmap(
        fn.grad(lambda v: fn.jvp(lambda z: (lib.sin(z) ** 2).sum(), (v,), (lib.cos(v),))[1])
    )(x),
    "grad(vmap)": lambda lib, fn, x: fn.grad(lambda v: fn.vmap(lambda z: (lib.sin(z) ** 2).sum())(v).prod())(x),
    "jvp(vmap(jvp))": lambda lib, fn, x: fn.jvp(
        fn.vmap(lambda z: fn.jvp(lib.sin, (z,), (z * z,))[1]), (x,), (lib.cos(x),)
    )[1],
    "grad(jvp(vmap(grad)))": lambda lib, fn, x: fn.grad(
        lambda v: fn.jvp(lambda a: fn.vmap(fn.grad(lambda z: (lib.sin(z) * z**2).sum()))(a).sum(), (v,), (v * 2,))[1]
    )(x),
    "vmap(vmap(grad))": lambda lib, fn, x: fn.vmap(fn.vmap(fn.grad(lambda z: lib.sin(z) * z)))(x),
    "jacfwd(jacrev)": lambda lib, fn, x: fn.jacfwd(fn.jacrev(lambda v: (lib.sin(v) * v).sum()))(x),
    "jacrev(jacfwd(jacrev))": lambda lib, fn, x: fn.jacrev(fn.jacfwd(fn.jacrev(lambda v: (lib.sin(v) * v**2).sum())))(
        x[0]
    ),
    "vmap(hessian)": lambda lib, fn, x: fn.vmap(fn.hessian(lambda v: (lib.exp(v) * v).sum()))(x),
}


@pytest.mark.parametrize("name", NESTINGS)
def test_nestings(name) -> None:
    (x,), (u,) = tensors((3, 2), seed=4)
    same(NESTINGS[name](cr, cr.func, x), NESTINGS[name](torch, torch.func, u))


def test_linearize_runs_the_function_once() -> None:
    (x,), _ = tensors((3,))
    calls = []
    y, push = linearize(lambda v: (calls.append(1), v.sin() * v)[1], x)
    for _ in range(3):
        same(push(x), jvp(lambda v: v.sin() * v, (x,), (x,))[1])
    assert len(calls) == 1
    same(y, x.sin() * x)
    same(vmap(push)(cr.eye(3, dtype=cr.float64)).mT, jacrev(lambda v: v.sin() * v)(x))


def test_vjp_can_pull_back_many_times_and_in_batches() -> None:
    (x,), _ = tensors((3,))
    _, pull = vjp(lambda v: v.sin() * v, x)
    first = pull(cr.ones(3, dtype=cr.float64))[0]
    same(pull(cr.ones(3, dtype=cr.float64))[0], first)
    same(vmap(pull)(cr.eye(3, dtype=cr.float64))[0], jacrev(lambda v: v.sin() * v)(x))


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_randomness(randomness) -> None:
    y = vmap(lambda v: v + cr.rand(3), randomness=randomness)(cr.zeros(4))
    assert y.shape == (4, 3)
    assert bool((y[0] == y[1]).all()) == (randomness == "same")
    z = vmap(vmap(lambda v: v + cr.rand(3), randomness="different"), randomness=randomness)(cr.zeros(2, 4))
    assert z.shape == (2, 4, 3)
    assert bool((z[0] == z[1]).all()) == (randomness == "same")
    assert not bool((z[:, 0] == z[:, 1]).all())


def test_randomness_is_refused_by_default() -> None:
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(lambda v: v + cr.rand(3))(cr.zeros(4))


def test_batching_does_not_loop() -> None:
    from chainrule.testing import count_ops

    counts = []
    for n in (2, 5):
        with count_ops() as c:
            vmap(grad(lambda v: (v.sin() @ cr.ones(3, 3)).softmax(-1).max()))(cr.ones(n, 3))
        counts.append(c.total)
    assert counts[0] == counts[1]


def test_captured_state_is_updated_under_transforms() -> None:
    count = cr.zeros(2)

    def loss(x):
        count.add_(x.detach() * 0 + 1)
        return (x * x).sum()

    grad(loss)(cr.ones(2))
    jvp(loss, (cr.ones(2),), (cr.ones(2),))
    assert count.tolist() == [2.0, 2.0]
    seen = cr.zeros(2)

    def leaky(x):
        seen.copy_(x * 3)
        return x.sum()

    grad(leaky)(cr.ones(2))
    assert seen.tolist() == [3.0, 3.0] and not seen.requires_grad


def test_where_has_no_nan_from_the_branch_not_taken() -> None:
    x = cr.tensor([0.0, 1.0, -1.0])
    for g in (
        lambda v: cr.where(v > 0, v.log(), v),
        lambda v: cr.where(v > 0, v.sqrt(), 0.0),
        lambda v: v.clamp(min=0.5) ** 0.5,
    ):
        got = grad(lambda v: g(v).sum())(x)  # noqa: B023
        assert bool(cr.isfinite(got).all()), got
        assert bool(cr.isfinite(hessian(lambda v: g(v).sum())(x)).all())  # noqa: B023


# -- errors teach -----------------------------------------------------------------------------------------------------


def leaked(transform):
    box = []
    transform(lambda v: (box.append(v), v.sum())[1])
    return box[0]


@pytest.mark.parametrize(
    "transform",
    [lambda g: grad(g)(cr.ones(2)), lambda g: vmap(g)(cr.ones(2, 2)), lambda g: jvp(g, (cr.ones(2),), (cr.ones(2),))],
)
def test_a_value_that_outlives_its_transform(transform) -> None:
    with pytest.raises(cr.EscapedError, match="already returned"):
        leaked(transform) + 1


OUTSIDE = cr.zeros(())
MISTAKES = {
    "an integer input": (lambda: grad(lambda v: v.sum())(cr.arange(3)), "floating point"),
    "a vector result": (lambda: grad(lambda v: v * 2)(cr.ones(3)), r"scalar.*\[3\]"),
    "a complex result": (lambda: grad(lambda v: v.sum())(cr.ones(3, dtype=cr.complex64)), "real"),
    "no tensor returned": (lambda: grad(lambda v: 1.0)(cr.ones(3)), "float"),
    "a wrong tangent": (lambda: jvp(lambda v: v, (cr.ones(3),), (cr.ones(2),)), r"\[2\].*\[3\]"),
    "tangents that are no tuple": (lambda: jvp(lambda v: v, cr.ones(3), cr.ones(3)), "tuple"),
    "a wrong cotangent": (lambda: vjp(lambda v: v, cr.ones(3))[1](cr.ones(2)), r"\[2\].*\[3\]"),
    "argnums out of range": (lambda: grad(lambda v: v.sum(), 3)(cr.ones(3)), "argnum=3, but only 1 positional"),
    "different batch sizes": (lambda: vmap(lambda a, b: a + b)(cr.ones(2), cr.ones(3)), "2 and 3"),
    "in_dims of another structure": (lambda: vmap(lambda a: a, in_dims=(0, 0))(cr.ones(2)), "in_dims"),
    "an in_dim out of range": (lambda: vmap(lambda a: a, in_dims=2)(cr.ones(2)), r"in_dim=2"),
    "a truth value under vmap": (lambda: vmap(lambda a: a if a > 0 else -a)(cr.ones(2)), "where"),
    "a write that differs between examples": (
        lambda: vmap(lambda a: (OUTSIDE.add_(a), a)[1])(cr.ones(2)),
        "from outside",
    ),
    "shapes that do not broadcast": (lambda: cr.ones(2) + cr.ones(3), r"add.*\[2\] and \[3\]"),
    "matrices that do not fit": (lambda: cr.ones(2, 3) @ cr.ones(2, 3), r"matmul: .*2x3 and 2x3"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_errors(name) -> None:
    call, text = MISTAKES[name]
    with pytest.raises((RuntimeError, ValueError, TypeError), match=text):
        call()


def test_a_missing_rule_names_the_op() -> None:
    from chainrule.core.op import Op

    bare = Op("bare_test_op", lambda x: x + 1)
    with pytest.raises(cr.MissingRuleError, match="bare_test_op has no reverse-mode rule"):
        grad(lambda v: bare(v).sum())(cr.ones(2))


def test_jacobians_of_inputs_without_elements() -> None:
    """Nothing to move is no column, in either mode."""
    x = cr.zeros(0, 3)
    for make, shape in ((jacfwd, (2, 0, 3)), (jacrev, (2, 0, 3)), (hessian, (2, 0, 3, 0, 3))):
        assert make(lambda x: cr.ones(2) * x.sum())(x).shape == shape
    parts = jacfwd(lambda p: p["a"].sum() * p["b"])({"a": cr.zeros(0), "b": cr.ones(2)})
    assert parts["a"].shape == (2, 0) and parts["b"].shape == (2, 2)
    assert jacfwd(lambda x: (x.sum(), x * 2), has_aux=True)(x)[1].shape == (0, 3)
    assert vmap(jacfwd(lambda x: x.sum() * cr.ones(2)))(cr.zeros(4, 0)).shape == (4, 2, 0)


def test_functions_that_return_nothing_are_refused() -> None:
    x = cr.ones(3)
    for nothing in (None, ()):
        with pytest.raises(
            RuntimeError, match=r"vjp\(f, \*primals\): Expected f to be a function that has non-empty output"
        ):
            cr.func.vjp(lambda x: nothing, x)  # noqa: B023
        with pytest.raises(
            RuntimeError, match=r"jvp\(f, primals, tangents\): Expected f to be a function that has non-empty"
        ):
            cr.func.jvp(lambda x: nothing, (x,), (x,))  # noqa: B023
    with pytest.raises(RuntimeError, match="at least one Tensor"):
        cr.func.jvp(cr.sin, (), ())


def test_what_a_function_must_return_is_the_same_for_all_transforms() -> None:
    """A tensor of two entries is no pair of an output and an auxiliary one, text no tensor; each transform says so."""
    x = cr.ones(2)
    wrong = [
        ("vjp", lambda f: cr.func.vjp(f, x)),
        ("jvp", lambda f: cr.func.jvp(f, (x,), (x,))),
        ("linearize", lambda f: cr.func.linearize(f, x)),
    ]
    for name, transform in wrong:
        for y in ("text", 3.0, (x, "text")):
            with pytest.raises(RuntimeError, match=rf"^{name}\(f, .*to return only tensors, got (str|float)"):
                transform(lambda _, y=y: y)
    with_aux = [
        lambda f: cr.func.vjp(f, x, has_aux=True),
        lambda f: cr.func.jvp(f, (x,), (x,), has_aux=True),
        lambda f: jacfwd(f, has_aux=True)(x),
        lambda f: jacrev(f, has_aux=True)(x),
        lambda f: cr.func.grad(f, has_aux=True)(x),
    ]
    cr.nested.nested_tensor([cr.ones(2), cr.ones(3)])  # once there was one, Jacobians look for more
    for transform in with_aux:
        for g in (lambda v: v * 1.0, lambda v: v.sum(), lambda v: [v, v]):
            with pytest.raises(RuntimeError, match=r"should be a tuple: \(output, aux\) if has_aux is True"):
                transform(g)
    with pytest.raises(RuntimeError, match="linearize: expected the tangents to be tensors, got float"):
        cr.func.linearize(cr.sin, x)[1](1.0)
