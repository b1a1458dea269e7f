"""Operators by name, as programs for PyTorch declare them; and what such programs print and load."""

from __future__ import annotations

import numpy as np
import pytest

import chainrule as cr
from chainrule.world import dispatcher, library

from .test_as_torch import run


@pytest.fixture
def nsin():
    """An operator whose body is NumPy."""

    @library.custom_op("tests::nsin", mutates_args=())
    def nsin(x, scale: float = 1.0):
        return cr.from_numpy(np.sin(x.numpy()) * scale)

    yield nsin
    del dispatcher.CUSTOM["tests::nsin"]


def test_an_operator_has_the_rule_it_was_given(nsin):
    x = cr.linspace(0, 1, 3, dtype=cr.float64).requires_grad_()
    with pytest.raises(
        RuntimeError, match=r"backward through tests.nsin.default but no autograd formula was registered"
    ):
        nsin(x, 2.0).sum().backward()

    def setup(ctx, inputs, output):
        x, scale = inputs
        ctx.save_for_backward(x)
        ctx.scale = scale

    nsin.register_autograd(lambda ctx, g: (g * ctx.saved_tensors[0].cos() * ctx.scale, None), setup_context=setup)
    assert cr.allclose(cr.autograd.grad(dispatcher.Space("tests").nsin(x, 3.0).sum(), x)[0], 3 * x.cos())
    assert cr.autograd.gradcheck(nsin, (x,))  # the default of `scale` is among the inputs
    nsin.register_vmap(lambda info, in_dims, x, scale=1.0: (nsin(x, scale), in_dims[0]))
    assert cr.allclose(cr.vmap(lambda v: nsin(v, 2.0))(x), 2 * x.sin())
    nsin.register_fake(lambda x, scale=1.0: cr.empty_like(x))
    assert nsin(cr.empty(3, device="meta")).shape == (3,)


def test_lists_of_tensors_and_writes():
    cat = library.custom_op("tests::cat", lambda xs, dim: cr.cat(xs, dim), mutates_args=())

    def setup(ctx, inputs, output):
        ctx.n = [v.shape[0] for v in inputs[0]]

    library.register_autograd("tests::cat", lambda ctx, g: (list(g.split(ctx.n)), None), setup_context=setup)
    a, b = cr.ones(2, requires_grad=True), cr.ones(3, requires_grad=True)
    (cat([a, b], 0) * cr.arange(5.0)).sum().backward()
    assert a.grad.tolist() == [0.0, 1.0]
    assert b.grad.tolist() == [2.0, 3.0, 4.0]

    @library.custom_op("tests::fill", mutates_args={"x"})
    def fill(x, v: float) -> None:
        x.numpy()[:] = v

    x = cr.zeros(2)
    fill(x, 2.0)
    assert x.tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="non-functional"):
        fill.register_autograd(lambda ctx: None)
    for name in ("cat", "fill"):
        del dispatcher.CUSTOM[f"tests::{name}"]


def test_define_then_impl():
    library.define("tests::dbl", "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=r"library\.impl"):
        dispatcher.CUSTOM["tests::dbl"](cr.ones(2))
    library.impl("tests::dbl", "cuda")(lambda x: x * 5)
    library.impl("tests::dbl", "cpu")(lambda x: x * 2)
    library.register_autograd("tests::dbl", lambda ctx, g: g * 2)
    x = cr.ones(2, requires_grad=True)
    assert cr.autograd.grad(dispatcher.Space("tests").dbl(x).sum(), x)[0].tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="no such operator"):
        library.register_vmap("tests::nothing", lambda *a: None)
    with pytest.raises(ValueError, match="namespace"):
        library.custom_op("nothing", lambda x: x, mutates_args=())
    del dispatcher.CUSTOM["tests::dbl"]


def test_a_submodule_does_not_hide_the_function_of_its_name():
    out = run("""
        import io, sys
        sys.path.insert(0, "")
        import chainrule
        torch = chainrule.install_as_torch()
        import torch.autograd.gradcheck, torch.nn.utils.weight_norm, torch.utils.checkpoint
        assert callable(torch.autograd.gradcheck) and callable(torch.nn.utils.weight_norm)
        assert callable(torch.utils.checkpoint.checkpoint)
        # What is saved here is loaded here, and prints as PyTorch prints it.
        file = io.BytesIO()
        net = torch.nn.Linear(2, 1)
        torch.save({"w": net.state_dict(), "p": net.weight, "e": 3}, file)
        file.seek(0)
        back = torch.load(file, weights_only=True)
        assert torch.equal(back["w"]["weight"], net.weight) and type(back["p"]) is torch.nn.Parameter
        print(f"{torch.tensor(1.5)} {torch.tensor(2.0, requires_grad=True) * 2} {torch.tensor([1.0])}")
    """)
    assert out == "1.5 4.0 tensor([1.])\n"
