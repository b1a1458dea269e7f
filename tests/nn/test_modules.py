"""Modules beside PyTorch's: the same weights give the same outputs, gradients, states and texts."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import chainrule as cr

rng = np.random.default_rng(0)


def draw(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def carry_over(ours: Any, theirs: Any) -> None:
    """Our module with the weights of PyTorch's."""
    state = {k: cr.tensor(v.numpy()) for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)


def close(a: Any, b: Any, tol: float = 1e-5) -> None:
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tol, atol=tol)


CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("Linear(4, 3)", ((5, 4),)),
    ("Linear(4, 3, bias=False)", ((2, 5, 4),)),
    ("Bilinear(4, 3, 2)", ((5, 4), (5, 3))),
    ("LayerNorm(4)", ((5, 4),)),
    ("LayerNorm((3, 4), bias=False)", ((5, 3, 4),)),
    ("RMSNorm(4)", ((5, 4),)),
    ("GroupNorm(2, 4)", ((5, 4, 3),)),
    ("BatchNorm1d(4)", ((5, 4),)),
    ("BatchNorm1d(4, momentum=None)", ((5, 4, 3),)),
    ("BatchNorm2d(4, affine=False)", ((5, 4, 3, 2),)),
    ("BatchNorm3d(2, track_running_stats=False)", ((5, 2, 3, 2, 2),)),
    ("InstanceNorm1d(4)", ((5, 4, 3),)),
    ("InstanceNorm2d(4, affine=True, track_running_stats=True)", ((5, 4, 3, 2),)),
    ("InstanceNorm3d(2)", ((2, 3, 2, 2),)),
    ("LocalResponseNorm(3)", ((5, 4, 3),)),
    ("PReLU(4)", ((5, 4),)),
    ("Sequential(Linear(4, 4), Tanh(), Linear(4, 2), LogSoftmax(-1))", ((5, 4),)),
    ("Flatten()", ((5, 4, 3),)),
    ("Unflatten(1, (2, 2))", ((5, 4),)),
    ("CosineSimilarity()", ((5, 4), (5, 4))),
]
ACTIVATIONS = (
    "ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink Tanhshrink Softplus "
    "Softsign LogSigmoid Sigmoid Tanh Softmax2d"
).split()
CASES += [(f"{name}()", ((2, 4, 3, 2),)) for name in ACTIVATIONS]
CASES += [
    ("GELU('tanh')", ((5, 4),)),
    ("Threshold(0.1, 2.0)", ((5, 4),)),
    ("GLU(1)", ((5, 4),)),
    ("Softmax(1)", ((5, 4),)),
]


def build(text: str, lib: Any) -> Any:
    return eval(text, {n: getattr(lib.nn, n) for n in dir(lib.nn) if not n.startswith("__")})


@pytest.mark.parametrize(("text", "shapes"), CASES, ids=[c[0] for c in CASES])
def test_like_pytorch(text: str, shapes: Any) -> None:
    torch.manual_seed(0)
    theirs, ours = build(text, torch), build(text, cr)
    carry_over(ours, theirs)
    for step in range(3):
        if step == 2:
            theirs.eval()
            ours.eval()
        arrays = [draw(*s) for s in shapes]
        a = [cr.tensor(x).requires_grad_() for x in arrays]
        b = [torch.tensor(x, requires_grad=True) for x in arrays]
        y, z = ours(*a), theirs(*b)
        close(y, z)
        g = draw(*y.shape)
        y.backward(cr.tensor(g))
        z.backward(torch.tensor(g))
        for p, q in zip(a, b, strict=True):
            close(p.grad, q.grad)
        for (k, p), (n, q) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
            assert k == n
            close(p.grad, q.grad, 1e-4)
        for p, q in zip(ours.state_dict().values(), theirs.state_dict().values(), strict=True):
            close(p, q)


LOSSES: list[tuple[str, Any]] = [
    ("MSELoss()", lambda: (draw(5, 3), draw(5, 3))),
    ("L1Loss(reduction='sum')", lambda: (draw(5, 3), draw(5, 3))),
    ("SmoothL1Loss(beta=0.5)", lambda: (draw(5, 3), draw(5, 3))),
    ("HuberLoss(delta=0.5)", lambda: (draw(5, 3), draw(5, 3))),
    ("CrossEntropyLoss(label_smoothing=0.1)", lambda: (draw(5, 3), np.array([0, 2, 1, 1, 0]))),
    ("NLLLoss()", lambda: (draw(5, 3), np.array([0, 2, 1, 1, 0]))),
    ("BCEWithLogitsLoss()", lambda: (draw(5, 3), np.abs(draw(5, 3)) % 1)),
    ("KLDivLoss(reduction='batchmean')", lambda: (draw(5, 3), np.abs(draw(5, 3)))),
    ("PoissonNLLLoss()", lambda: (draw(5, 3), np.abs(draw(5, 3)))),
    ("GaussianNLLLoss()", lambda: (draw(5, 3), draw(5, 3), np.abs(draw(5, 3)))),
    ("SoftMarginLoss()", lambda: (draw(5, 3), np.sign(draw(5, 3)))),
    ("MarginRankingLoss(0.1)", lambda: (draw(5), draw(5), np.sign(draw(5)))),
    ("TripletMarginLoss()", lambda: (draw(5, 3), draw(5, 3), draw(5, 3))),
    ("MultiMarginLoss()", lambda: (draw(5, 3), np.array([0, 2, 1, 1, 0]))),
    ("CosineEmbeddingLoss()", lambda: (draw(5, 3), draw(5, 3), np.sign(draw(5)))),
]


@pytest.mark.parametrize(("text", "make"), LOSSES, ids=[c[0] for c in LOSSES])
def test_losses(text: str, make: Any) -> None:
    arrays = make()
    close(build(text, cr)(*map(cr.tensor, arrays)), build(text, torch)(*map(torch.tensor, arrays)))


def test_embedding_and_padding_row() -> None:
    m = cr.nn.Embedding(6, 3, padding_idx=2)
    assert not m.weight.detach().numpy()[2].any()
    y = m(cr.tensor([[0, 2], [2, 5]]))
    y.sum().backward()
    assert y.shape == (2, 2, 3)
    assert m.weight.grad.numpy().sum(1).tolist() == [3, 0, 0, 0, 0, 3]


def test_dropout_only_in_training() -> None:
    m, x = cr.nn.Dropout(0.5), cr.ones(1000)
    zeros = int((m(x) == 0).sum())
    assert 350 < zeros < 650
    assert (m.eval()(x) == 1).all()
    with pytest.raises(ValueError, match=r"Dropout.*1\.5"):
        cr.nn.Dropout(1.5)


def test_registration_and_names() -> None:
    class Net(cr.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = cr.nn.Linear(2, 2)
            self.b = self.a  # shared
            self.w = cr.nn.Parameter(cr.zeros(3))
            self.register_buffer("seen", cr.zeros(1))
            self.register_buffer("cache", cr.zeros(1), persistent=False)
            self.plain = cr.zeros(2)

    m = Net()
    assert [n for n, _ in m.named_parameters()] == ["w", "a.weight", "a.bias"]
    assert [n for n, _ in m.named_parameters(remove_duplicate=False)] == [
        "w",
        "a.weight",
        "a.bias",
        "b.weight",
        "b.bias",
    ]
    assert list(m.state_dict()) == ["w", "seen", "a.weight", "a.bias", "b.weight", "b.bias"]
    assert [n for n, _ in m.named_modules()] == ["", "a"]
    assert isinstance(m.w, cr.nn.Parameter) and not isinstance(m.plain, cr.nn.Parameter)
    with pytest.raises(TypeError, match="parameter 'w'"):
        m.w = cr.zeros(3)
    m.seen = cr.ones(1)
    assert m.get_buffer("seen") is m.seen
    with pytest.raises(KeyError, match="already exists"):
        m.register_parameter("forward", None)
    with pytest.raises(AttributeError, match="nothing"):
        _ = m.nothing
    del m.w
    assert "w" not in m.state_dict()


def test_load_state_dict_reports() -> None:
    m = cr.nn.Linear(2, 3)
    state = m.state_dict()
    state["extra"] = cr.zeros(1)
    del state["bias"]
    with pytest.raises(RuntimeError, match=r"(?s)Missing.*bias.*Unexpected.*extra"):
        m.load_state_dict(state)
    result = m.load_state_dict(state, strict=False)
    assert result.missing_keys == ["bias"] and result.unexpected_keys == ["extra"]
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        m.load_state_dict({"weight": cr.zeros(2, 2), "bias": cr.zeros(3)})
    new = cr.ones(3, 2)
    m.load_state_dict({"weight": new, "bias": cr.zeros(3)})
    assert (m.weight == 1).all() and m.weight.requires_grad and m.weight.is_leaf


def test_pickle_and_deepcopy() -> None:
    m = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.BatchNorm1d(3), cr.nn.ReLU())
    m(cr.randn(4, 2))
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        for (k, a), (n, b) in zip(m.state_dict().items(), other.state_dict().items(), strict=True):
            assert k == n and a is not b and (a == b).all()
        assert all(isinstance(p, cr.nn.Parameter) and p.requires_grad for p in other.parameters())
        x = cr.randn(4, 2)
        close(m.eval()(x), other.eval()(x))
    p = cr.nn.Parameter(cr.ones(2))
    assert isinstance(pickle.loads(pickle.dumps(p)), cr.nn.Parameter)
    assert isinstance(copy.deepcopy(p), cr.nn.Parameter)


def test_conversion_keeps_identity() -> None:
    m = cr.nn.BatchNorm1d(3)
    p = m.weight
    assert m.double() is m and m.weight is p and p.dtype is cr.float64 and p.requires_grad and p.is_leaf
    assert m.running_mean.dtype is cr.float64 and m.num_batches_tracked.dtype is cr.int64
    m(cr.randn(4, 3, dtype=cr.float64)).sum().backward()
    assert p.grad.dtype is cr.float64
    m.float()
    assert p.grad.dtype is cr.float32


def test_hooks() -> None:
    m = cr.nn.Linear(2, 2)
    calls: list[str] = []
    one = m.register_forward_pre_hook(lambda mod, args: calls.append("pre") or (args[0] * 2,))
    two = m.register_forward_hook(lambda mod, args, out: calls.append("post") or out + 1)
    x = cr.ones(1, 2)
    want = x * 2 @ m.weight.T + m.bias + 1
    close(m(x), want)
    assert calls == ["pre", "post"]
    one.remove()
    two.remove()
    close(m(x), x @ m.weight.T + m.bias)
    seen: list[Any] = []
    m.register_full_backward_hook(lambda mod, gi, go: seen.append((gi[0].clone(), go[0].clone())))
    x = cr.ones(1, 2).requires_grad_()
    m(x).sum().backward()
    close(seen[0][0], x.grad)
    assert (seen[0][1] == 1).all()


def test_containers() -> None:
    m = cr.nn.ModuleList([cr.nn.Linear(1, 1) for _ in range(3)])
    m.append(cr.nn.ReLU())
    m.insert(0, cr.nn.Identity())
    assert len(m) == 5 and isinstance(m[0], cr.nn.Identity) and isinstance(m[-1], cr.nn.ReLU)
    del m[0]
    assert list(m._modules) == ["0", "1", "2", "3"] and len(m[1:3]) == 2
    d = cr.nn.ModuleDict({"a": cr.nn.ReLU()})
    d["b"] = cr.nn.Tanh()
    assert list(d) == ["a", "b"] and "a" in d
    ps = cr.nn.ParameterList([cr.zeros(2), cr.ones(3)])
    assert [n for n, _ in ps.named_parameters()] == ["0", "1"] and ps[1].shape == (3,)
    pd = cr.nn.ParameterDict({"x": cr.zeros(2)})
    assert [n for n, _ in pd.named_parameters()] == ["x"]
    s = cr.nn.Sequential(cr.nn.Linear(2, 3), cr.nn.ReLU())
    assert len(s[:1]) == 1 and s(cr.ones(1, 2)).shape == (1, 3)


def test_repr_like_pytorch() -> None:
    for text in (
        "Sequential(Linear(2, 3), Sequential(BatchNorm1d(3), Dropout()))",
        "Sequential(LeakyReLU(0.2), GELU(), Softmax(1), ReLU(), MSELoss(), LayerNorm((2, 3)), GroupNorm(2, 4), Embedding(3, 4))",
    ):
        assert repr(build(text, cr)) == repr(build(text, torch))


INITS = [
    ("uniform_", {"a": -1.0, "b": 3.0}, 1.0, 4 / 12**0.5),
    ("normal_", {"mean": 1.0, "std": 2.0}, 1.0, 2.0),
    ("xavier_uniform_", {}, 0.0, (2 / 400) ** 0.5),
    ("xavier_normal_", {}, 0.0, (2 / 400) ** 0.5),
    ("kaiming_uniform_", {"nonlinearity": "relu"}, 0.0, (2 / 100) ** 0.5),
    ("kaiming_normal_", {"mode": "fan_out"}, 0.0, (2 / 300) ** 0.5),
]


@pytest.mark.parametrize(("name", "kw", "mean", "std"), INITS, ids=[c[0] for c in INITS])
def test_init(name: str, kw: Any, mean: float, std: float) -> None:
    w = cr.nn.Parameter(cr.zeros(300, 100))
    getattr(cr.nn.init, name)(w, **kw)
    a = w.detach().numpy()
    assert abs(a.mean() - mean) < 5 * std / 30000**0.5 and abs(a.std() / std - 1) < 0.03
    assert w.is_leaf and w.requires_grad


def test_init_orthogonal_and_truncated() -> None:
    for shape in ((5, 3), (3, 5), (4, 2, 3)):
        w = cr.nn.init.orthogonal_(cr.empty(*shape), 2.0).numpy().reshape(shape[0], -1)
        w = w if w.shape[0] >= w.shape[1] else w.T
        np.testing.assert_allclose(w.T @ w, 4 * np.eye(w.shape[1]), atol=1e-5)
    t = cr.nn.init.trunc_normal_(cr.empty(1000), 0.5, 1.0, 0.0, 1.0).numpy()
    assert t.min() >= 0 and t.max() <= 1
