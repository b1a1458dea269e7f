"""Other libraries: DLPack, PyTorch's, pandas's and JAX's arrays, einops, opt_einsum, matplotlib, types."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import types
from typing import Any

import numpy as np
import opt_einsum
import pytest
import torch

import chainrule
from chainrule.func import grad
from chainrule.interop import einops as ours


def test_dlpack_of_bfloat16_and_of_memory_that_is_read_only() -> None:
    t = torch.from_dlpack(chainrule.ones(3, dtype=chainrule.bfloat16) * 1.5)
    assert t.dtype == torch.bfloat16 and t.tolist() == [1.5] * 3
    back = chainrule.from_dlpack(torch.ones(2, dtype=torch.bfloat16) * 0.5)
    assert back.dtype is chainrule.bfloat16 and back.tolist() == [0.5] * 2
    a = np.ones(3)
    a.setflags(write=False)
    frozen = chainrule.Tensor(a)
    np.testing.assert_array_equal(np.from_dlpack(frozen), a)
    assert torch.from_dlpack(frozen).tolist() == [1.0] * 3
    with pytest.raises(BufferError, match="detach"):
        torch.from_dlpack(chainrule.ones(2).requires_grad_())


class Series:
    """What pandas's Series has."""

    def to_numpy(self) -> np.ndarray:
        return np.array([1.0, 2.0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.to_numpy()


@pytest.mark.parametrize("make", [chainrule.tensor, chainrule.as_tensor])
def test_arrays_of_others(make: Any) -> None:
    assert make(torch.ones(2, 3, requires_grad=True)).tolist() == [[1.0] * 3] * 2
    assert make(torch.ones(2, dtype=torch.bfloat16)).dtype is chainrule.bfloat16
    assert make([torch.tensor(1.0), torch.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert make(Series()).dtype is chainrule.float64
    with pytest.raises(TypeError, match="could not infer"):
        make(object())


def test_state_dicts_of_others() -> None:
    m = chainrule.nn.Linear(2, 3)
    m.load_state_dict({"weight": np.full((3, 2), 2.0), "bias": torch.ones(3)})
    assert (
        m.weight.tolist() == [[2.0, 2.0]] * 3 and m.bias.tolist() == [1.0] * 3 and m.weight.dtype is chainrule.float32
    )


def test_types_are_numpys() -> None:
    assert np.dtype(chainrule.float32) == np.float32 and np.zeros(2, dtype=chainrule.int64).dtype == np.int64
    assert np.dtype("float32") == chainrule.float32


def test_opt_einsum() -> None:
    x = chainrule.arange(24.0).reshape(2, 3, 4)
    want = np.einsum("abc,abd->cd", x.numpy(), x.numpy())
    np.testing.assert_allclose(opt_einsum.contract("abc,abd->cd", x, x).numpy(), want)
    np.testing.assert_allclose(
        opt_einsum.contract("abc,dbc,de->ae", x, x, chainrule.ones(2, 2)).numpy(),
        np.einsum("abc,dbc,de->ae", x.numpy(), x.numpy(), np.ones((2, 2))),
    )
    g = grad(lambda v: opt_einsum.contract("abc,abc->", v, v))(x)
    np.testing.assert_allclose(g.numpy(), 2 * x.numpy())


def test_einops_backend() -> None:
    """The backend's operations, with einops's base class stood in for where einops is not installed."""
    if importlib.util.find_spec("einops") is not None:
        import einops

        x = chainrule.arange(24.0).reshape(2, 3, 4)
        assert einops.rearrange(x, "a b c -> (a b) c").shape == (6, 4)
        np.testing.assert_allclose(einops.reduce(x, "a b c -> a", "mean").numpy(), x.numpy().mean((1, 2)))
        g = grad(lambda v: np.sum(einops.reduce(v, "a b c -> b", "max") ** 2))(x.numpy())
        assert g.shape == (2, 3, 4) and g[0].sum() == 0
    module = types.SimpleNamespace(AbstractBackend=type("AbstractBackend", (), {}))
    ours.declare(module)
    backend = module.AbstractBackend.__subclasses__()[0]()
    x = chainrule.arange(6.0).reshape(2, 3)
    assert backend.is_appropriate_type(x) and not backend.is_appropriate_type(np.ones(2))
    assert backend.transpose(x, (1, 0)).shape == (3, 2) and backend.reduce(x, "prod", (0, 1)).item() == 0
    assert backend.tile(backend.add_axis(x, 0), (4, 1, 1)).shape == (4, 2, 3) and backend.stack_on_zeroth_dimension(
        [x, x]
    ).shape == (2, 2, 3)
    assert backend.concat([x, x], 1).shape == (2, 6) and backend.einsum("ij,ij->i", x, x).tolist() == [5.0, 50.0]


def test_a_curve_of_a_tensor_that_requires_grad() -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    t = chainrule.linspace(0, 1, 5).requires_grad_()
    (line,) = plt.plot(t, t * t)
    np.testing.assert_allclose(line.get_ydata(), (t * t).detach().numpy())
    plt.close("all")
    assert type(t.to_numpy()) is np.ndarray


def test_copies() -> None:
    t = chainrule.ones(3).requires_grad_()
    y = t * 2
    assert copy.copy(y).requires_grad and copy.copy(y).tolist() == [2.0] * 3
    assert pickle.loads(pickle.dumps(t)).requires_grad
