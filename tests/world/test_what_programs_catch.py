"""Errors and printed forms on which programs written for PyTorch rely: their types, and the words that are looked for."""

from __future__ import annotations

import pytest

import chainrule as cr
from chainrule.nn.made_functional import combine_state_for_ensemble, make_functional, make_functional_with_buffers

from .test_as_torch import run

X = cr.ones(2, 3, 4)
FAR = cr.tensor([4])


def _assign(attribute, value):
    x = cr.ones(3, requires_grad=True)
    setattr(x, attribute, value)


@pytest.mark.parametrize(
    ("f", "kind", "words"),
    [
        (
            lambda: X[cr.tensor([0, 1]), cr.tensor([0, 1, 2])],
            IndexError,
            r"broadcast together with shapes \[2\], \[3\]",
        ),
        (lambda: X[0.0:2.0], TypeError, "slice indices must be integers"),
        (lambda: cr.tensor(3.0)[0], IndexError, "invalid index of a 0-dim tensor"),
        (
            lambda: cr.zeros(3).index_add(0, FAR, cr.zeros(1)),
            IndexError,
            "index 4 is out of bounds for dimension 0 with size 3",
        ),
        (
            lambda: cr.zeros(3).index_copy(0, FAR, cr.zeros(1)),
            IndexError,
            "index 4 is out of bounds for dimension 0 with size 3",
        ),
        (lambda: cr.zeros(3).gather(0, FAR), RuntimeError, "index 4 is out of bounds for dimension 0 with size 3"),
        (lambda: cr.zeros(3).index_fill_(0, cr.tensor([0]), 1j), RuntimeError, "Converting complex Scalar"),
        (lambda: X.view(-1).detach_(), RuntimeError, "Can't detach views in-place"),
        (lambda: _assign("grad", cr.ones(2)), RuntimeError, "attempting to assign a gradient of size"),
        (
            lambda: _assign("grad", cr.ones(3, dtype=cr.float64)),
            RuntimeError,
            "attempting to assign a gradient with dtype",
        ),
        (lambda: _assign("data", cr.ones(3, dtype=cr.int64)), RuntimeError, "must be floating point or complex dtype"),
        (lambda: _assign("data", None), TypeError, "data has to be a tensor"),
        (lambda: cr.randn(3, dtype=cr.int64), NotImplementedError, "randint draws whole numbers"),
        (lambda: cr.rand_like(FAR), NotImplementedError, "not implemented for"),
        (lambda: cr.ones(()).view(cr.int16), RuntimeError, r"self.dim\(\) cannot be 0"),
        (lambda: X.mT.view(cr.float64), RuntimeError, r"self.stride\(-1\) must be 1"),
        (lambda: X.view(4, 2, 3).view(cr.float64), RuntimeError, r"self.size\(-1\) must be divisible by 2"),
        (lambda: make_functional(cr.nn.BatchNorm1d(2)), RuntimeError, "make_functional_with_buffers"),
        (lambda: combine_state_for_ensemble([]), RuntimeError, "at least one model"),
    ],
)
def test_errors(f, kind, words):
    with pytest.raises(kind, match=words):
        f()


def test_tangents_are_of_a_type_that_has_derivatives():
    ad = cr.autograd.forward_ad
    with ad.dual_level():
        for primal, tangent, what in ((FAR, cr.ones(1), "primal"), (cr.ones(1), FAR, "tangent")):
            with pytest.raises(ValueError, match=f"Expected {what} to be floating point or complex"):
                ad.make_dual(primal, tangent)


def test_a_view_from_before_its_base_was_marked_is_a_view_of_a_leaf():
    base = cr.zeros(3)
    view = base[:2]
    base.requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        view.add_(1)
    with cr.no_grad():
        view.add_(1)
    base.detach()[1:].view(-1).mul_(3)
    base.data[0] = 9
    assert base.tolist() == [9.0, 3.0, 0.0]


def test_a_storage_can_be_set():
    x = cr.arange(12.0).reshape(3, 4)
    y = cr.zeros(6)
    y.set_(x.untyped_storage(), 2, (2, 2), (4, 1))
    assert y.tolist() == [[2.0, 3.0], [6.0, 7.0]]
    y[0, 0] = 100.0
    assert x[0, 2] == 100.0


@pytest.mark.parametrize(
    ("shape", "dtype", "text"),
    [
        ((0,), "float32", "tensor([])"),
        ((2, 0), "float32", "tensor([], size=(2, 0))"),
        ((0,), "int64", "tensor([], dtype=chainrule.int64)"),
        ((0,), "complex64", "tensor([], dtype=chainrule.complex64)"),
    ],
)
def test_what_has_no_elements_prints_its_shape_and_unusual_type(shape, dtype, text):
    assert repr(cr.zeros(shape, dtype=getattr(cr, dtype))) == text


def test_functions_of_parameters_by_position():
    net = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.Tanh(), cr.nn.Linear(4, 1))
    f, params = make_functional(net)
    x = cr.ones(5, 3)
    assert cr.equal(f(params, x), net(x))
    assert all(p.requires_grad and p is not q for p, q in zip(params, net.parameters(), strict=True))
    assert not any(p.requires_grad for p in make_functional(net, disable_autograd_tracking=True)[1])
    each = cr.vmap(cr.func.grad(lambda p, x: f(p, x).sum()), (None, 0))(params, x)
    assert [tuple(g.shape) for g in each] == [(5, 4, 3), (5, 4), (5, 1, 4), (5, 1)]
    models = [cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4)).eval() for _ in range(3)]
    fm, ps, bs = combine_state_for_ensemble(models)
    y = cr.vmap(fm, (0, 0, None))(ps, bs, x)
    assert cr.allclose(y, cr.stack([m(x) for m in models]))
    g, p, b = make_functional_with_buffers(models[0])
    assert cr.equal(g(p, b, x), models[0](x))
    with pytest.raises(ValueError, match="takes 4 parameters"):
        f(params[:2], x)


def test_old_programs_import_functorch():
    out = run("""
        import chainrule
        torch = chainrule.install_as_torch()
        import functorch
        from functorch import make_functional, vmap, grad, jacrev
        import warnings
        warnings.simplefilter("ignore", FutureWarning)  # each says the name that it has now
        assert functorch.hessian.__wrapped__ is torch.func.hessian
        f, p = make_functional(torch.nn.Linear(2, 1))
        print(vmap(grad(lambda p, x: f(p, x).sum()), (None, 0))(p, torch.ones(3, 2))[0].tolist())
    """)
    assert out == "[[[1.0, 1.0]], [[1.0, 1.0]], [[1.0, 1.0]]]\n"


def test_bags_say_what_is_wrong_and_empty_ones_have_gradients() -> None:
    bag, w = cr.nn.functional.embedding_bag, cr.rand(4, 2, requires_grad=True)
    for far in (-1, 4):
        with pytest.raises(RuntimeError, match="Expected idx >= 0 && idx < num_embeddings"):
            bag(cr.tensor([[1, far]]), w)
    with pytest.raises(RuntimeError, match="padding_idx must be within the number of embeddings"):
        bag(cr.tensor([[1, 2]]), w, padding_idx=4)
    with pytest.raises(RuntimeError, match="to have the same type"):
        bag(cr.tensor([[1, 2]]), w, mode="sum", per_sample_weights=cr.ones(1, 2, dtype=cr.float64))
    for mode in ("sum", "mean", "max"):
        bag(cr.tensor([], dtype=cr.int64), w, cr.tensor([0, 0]), mode=mode).sum().backward()
        assert w.grad.tolist() == [[0.0, 0.0]] * 4


def test_dropout_of_channels_warns_of_other_ranks() -> None:
    with pytest.warns(UserWarning, match="Received a 5-D input to dropout2d"):
        cr.nn.Dropout2d()(cr.ones(1, 2, 2, 2, 2))
    with pytest.warns(UserWarning, match="channel-wise 1D dropout behavior is desired"):
        cr.nn.Dropout2d()(cr.ones(1, 2, 2))
    with pytest.warns(UserWarning, match="Received a 3-D input to dropout3d"):
        cr.nn.Dropout3d()(cr.ones(1, 2, 2))


@pytest.mark.parametrize(
    ("f", "kind", "words"),
    [
        (lambda: cr.ones(3).expand(2, 3).mul_(2), RuntimeError, "unsupported operation"),
        (lambda: cr.nn.functional.linear(cr.tensor(1.0), cr.ones(2, 2)), RuntimeError, "both arguments.*1D"),
        (lambda: cr.nn.functional.conv1d(cr.ones(1, 1, 4), cr.ones(1, 1, 10)), RuntimeError, r"per channel: \(4\). Kernel size: \(10\)"),
        (lambda: cr.nn.functional.conv2d(cr.ones(1, 3, 4, 4), cr.ones(1, 2, 1, 1)), RuntimeError, "Given groups=1, weight"),
        (lambda: cr.nn.functional.nll_loss(cr.ones(10), cr.tensor([1, 2, 3])), ValueError, "For 1D input, 1D target must have size 1"),
        (lambda: cr.nn.functional.nll_loss(cr.ones(2, 3), cr.tensor([[1], [2]])), RuntimeError, "1D target tensor expected"),
        (lambda: cr.rrelu(cr.ones(1), float("inf"), 2.0), RuntimeError, "rrelu: lower bound must be finite, got inf"),
        (lambda: cr.nn.RNN(2, 2, nonlinearity="garbage"), ValueError, "Unknown nonlinearity"),
        (lambda: cr.nn.GRU(2, 2, proj_size=1), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
        (lambda: cr.nn.functional.unfold(cr.ones(1, 1, 2, 2), 3), RuntimeError, "its components must be at least one"),
        (lambda: cr.nn.functional.pad(cr.ones(2, 3), (1, 1, 1, 1), mode="reflect"), NotImplementedError, "Padding size 4 is not supported for 2D input"),
        (lambda: cr.nn.LinearCrossEntropyLoss(2, 3, options=_options(acc_policy="Memory")), ValueError, "acc_policy"),
        (lambda: _options(chunking_method="aspect_ratio:0"), ValueError, "chunking_method"),
        (lambda: _options(acc_dtype=cr.int32), ValueError, "acc_dtype"),
    ],
)  # fmt: skip
def test_layers_say_what_pytorch_s_say(f, kind, words):
    with pytest.raises(kind, match=words):
        f()


def _options(**kw):
    from chainrule.nn.modules.loss import LinearCrossEntropyOptions

    return LinearCrossEntropyOptions(**kw)


def test_one_pixel_wide_grids_warn():
    with pytest.warns(UserWarning, match="See the documentation of affine_grid for details"):
        cr.nn.functional.affine_grid(cr.rand(1, 2, 3), [1, 1, 2, 1], align_corners=True)


def test_weights_of_a_norm_have_gradients_for_an_empty_batch():
    m = cr.nn.BatchNorm2d(3)
    m(cr.ones(0, 3, 2, 2)).sum().backward()
    assert m.weight.grad.tolist() == m.bias.grad.tolist() == [0.0] * 3
