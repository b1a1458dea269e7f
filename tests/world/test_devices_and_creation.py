"""Devices by name, the meta device, memory formats, creation from foreign data, storages, error types."""

from __future__ import annotations

import array
import copy
import pickle

import numpy as np
import pytest
import torch

import chainrule as cr


def test_devices_can_be_named() -> None:
    assert cr.device("cuda:1") == cr.device("cuda", 1) != cr.device("cuda")
    assert str(cr.device("cuda", 0)) == "cuda:0"
    assert pickle.loads(pickle.dumps(cr.device("mps"))).type == "mps"
    with pytest.raises(RuntimeError, match="not available"):
        cr.zeros(2, device="cuda")
    with pytest.raises(RuntimeError, match="Expected one of"):
        cr.device("gpu")
    with cr.device("cpu"):
        assert cr.zeros(2).device.type == "cpu"


def test_meta() -> None:
    with cr.device("meta"):
        model = cr.nn.Sequential(cr.nn.Linear(3, 4), cr.nn.BatchNorm1d(4), cr.nn.ReLU())
        huge = cr.zeros(10**6, 10**6)
        drawn = cr.randn(2, 3)
    assert huge.is_meta
    assert huge.shape == (10**6, 10**6)
    assert all(p.is_meta for p in [*model.parameters(), *model.buffers()])
    y = model(drawn)
    assert (y.device.type, y.shape, y.dtype) == ("meta", (2, 4), cr.float32)
    y.sum().backward()
    assert model[0].weight.grad.is_meta
    assert cr.zeros_like(y).is_meta
    assert y.new_ones(3).is_meta
    assert y.uniform_() is y
    assert y.is_meta
    assert copy.deepcopy(huge).is_meta
    assert "meta" in repr(huge)
    with pytest.raises(NotImplementedError, match="no data"):
        huge.to("cpu")
    with pytest.raises(RuntimeError, match="no elements"):
        y.sum().item()
    with pytest.raises(RuntimeError, match="same device"):
        y + cr.ones(2, 4)
    cr.set_default_device("meta")
    assert cr.ones(1).is_meta
    cr.set_default_device(None)
    assert not cr.ones(1).is_meta
    model.to_empty(device="cpu")
    model.load_state_dict({k: cr.ones(v.shape).to(v.dtype) for k, v in model.state_dict().items()})
    assert model(cr.ones(2, 3)).shape == (2, 4)


def test_memory_formats() -> None:
    x = cr.randn(2, 3, 4, 5)
    y = x.to(memory_format=cr.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.equal(x)
    assert y.is_contiguous(memory_format=cr.channels_last)
    assert not y.is_contiguous()
    assert cr.empty_like(y).stride() == y.stride()
    assert cr.empty_like(y, memory_format=cr.contiguous_format).is_contiguous()
    assert cr.empty_like(cr.zeros(3, 4).T).stride() == (1, 4)
    assert x.contiguous(memory_format=cr.channels_last).stride() == y.stride()
    assert y.contiguous().is_contiguous()


def test_creation() -> None:
    assert cr.tensor(range(4)).tolist() == [0, 1, 2, 3]
    assert cr.tensor([-1], dtype=cr.uint8).item() == 255
    with pytest.raises(RuntimeError, match="overflow"):
        cr.tensor([300], dtype=cr.uint8)
    assert cr.asarray(memoryview(np.arange(3.0)), dtype=cr.float64).tolist() == [0, 1, 2]
    assert cr.tensor(array.array("d", [1.0, 2.0])).dtype is cr.float64
    assert cr.ones(2).type(cr.DoubleTensor).dtype is cr.float64
    g = cr.Generator().manual_seed(1)
    assert cr.randint_like(cr.ones(3), 9, generator=g).shape == (3,)
    state = g.get_state()
    first = cr.randn(3, generator=g)
    assert g.set_state(state) is g
    assert cr.randn(3, generator=g).equal(first)


def test_types() -> None:
    assert cr.finfo(float).eps == np.finfo(np.float64).eps
    assert cr.iinfo(int).max == 2**63 - 1
    with pytest.raises(TypeError, match="iinfo"):
        cr.finfo(cr.int32)
    x = cr.tensor([1.3, -0.6])
    assert x.to(cr.float8_e4m3fn).float().tolist() == [1.25, -0.625]
    assert (x.to(cr.float8_e5m2) + 0.0).dtype is cr.float8_e5m2
    large = [1e9, float("-inf"), 465.0, -3.0, 0.0]
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e8m0fnu"):
        for make in (lambda m, d: m.tensor(large).to(d), lambda m, d: m.tensor(large, dtype=d)):
            got, want = (make(m, getattr(m, name)).float().numpy() for m in (cr, torch))
            np.testing.assert_array_equal(got, want)
    assert cr.Size([1, 2]) * 2 == (1, 2, 1, 2)
    assert isinstance((3,) + cr.Size([1]), cr.Size)


def test_memory() -> None:
    x = cr.arange(6.0).reshape(2, 3)
    v = x[1]
    assert v._is_view()
    assert not x.detach()._is_view()
    before = x._version
    v.add_(1)
    assert x._version == v._version == before + 1
    assert v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() == x.data_ptr()
    assert x.untyped_storage().nbytes() == 24
    assert x.storage().tolist() == [0, 1, 2, 4, 5, 6]
    z = cr.zeros(2, dtype=cr.complex64)
    z.real, z.imag = cr.ones(2), cr.full((2,), 2.0)
    assert z.tolist() == [1 + 2j, 1 + 2j]
    a, b = cr.ones(2, requires_grad=True), cr.zeros(3)
    cr.utils.swap_tensors(a, b)
    assert b.requires_grad
    assert a.shape == (3,)


def test_error_types() -> None:
    x = cr.ones(2, 3)
    for error, f in (
        (IndexError, lambda: cr.nn.functional.embedding(cr.tensor([7]), x)),
        (IndexError, lambda: cr.tensor([1, 2])[cr.tensor([True])]),
        (TypeError, lambda: ~x),
        (ValueError, lambda: int(x)),
        (IndexError, lambda: x.sum(5)),
        (TypeError, lambda: x.sum(axis=0, dim=0)),
        (TypeError, lambda: cr.sin(y=x)),
    ):
        with pytest.raises(error):
            f()


def test_sobol_and_make_tensor() -> None:
    points = cr.quasirandom.SobolEngine(2).draw(4)
    assert points.tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    t = cr.testing.make_tensor(2, 3, dtype=cr.int8, low=0, high=5, noncontiguous=True)
    assert not t.is_contiguous()
    assert 0 <= t.min() <= t.max() < 5


def test_a_copy_of_a_structure_shares_memory_as_the_structure_does() -> None:
    a, b = cr.rand(2, 3), cr.rand(2, 3)
    q = [a, [a.storage(), b.storage()], b, a.view(6)]
    w = copy.deepcopy(q)
    w[0].add_(1)
    w[2].sub_(1)
    assert cr.equal(cr.tensor(w[1][0].tolist()), q[3] + 1) and cr.equal(w[3], q[3] + 1)
    assert cr.equal(cr.tensor(w[1][1].tolist()), (b - 1).view(6)) and cr.equal(a.view(6), q[3])
    assert a.storage().__sizeof__() - cr.rand(0).storage().__sizeof__() == 24


def test_tensors_that_are_exchanged_keep_their_families() -> None:
    a, b = cr.zeros(3), cr.ones(3)
    of_a, of_b = a[1:], b[:2]
    cr.utils.swap_tensors(a, b)
    assert a.tolist() == [1, 1, 1] and of_a._base is b and of_b._base is a
    a.fill_(5)
    b.fill_(7)
    assert of_b.tolist() == [5, 5] and of_a.tolist() == [7, 7]
    v = a[1:]
    cr.utils.swap_tensors(v, a)  # a view and its base
    assert a._base is v and v.shape == (3,)
    v.fill_(2)
    assert a.tolist() == [2, 2] and of_b.tolist() == [2, 2] and of_b._base is v
    assert copy.deepcopy([v, a])[1].tolist() == [2, 2]


def test_loading_into_a_module_without_data_says_that_it_does_nothing() -> None:
    with cr.device("meta"):
        model = cr.nn.Linear(3, 5)
    given = cr.nn.Linear(3, 5).state_dict()
    with pytest.warns(UserWarning, match="for (weight|bias): copying from a non-meta parameter"):
        model.load_state_dict(given)
    model.load_state_dict(given, assign=True)
    assert cr.equal(model.weight, given["weight"])


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_zeros_and_empty_of_a_sparse_layout_are_sparse(layout: str) -> None:
    """The layout was ignored."""
    z = cr.zeros(2, 3, dtype=cr.float64, layout=getattr(cr, layout), requires_grad=True)
    assert z.layout is getattr(cr, layout) and z.requires_grad and z.is_leaf and z._nnz() == 0 and z.shape == (2, 3)
    assert cr.empty((2, 3), layout=getattr(cr, layout)).layout is getattr(cr, layout)
    with pytest.raises(RuntimeError, match="not implemented for sparse layout"):
        cr.ones(2, 3, layout=getattr(cr, layout))


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int32", "bfloat16"])
def test_one_entry_of_a_sparse_tensor_has_its_type(dtype: str) -> None:
    s = cr.tensor([[0, 3], [4, 0]]).to(getattr(cr, dtype)).to_sparse()
    for x in (s[0, 1], s[0][0], s.to_sparse_csr()[1, 0]):
        assert x.dtype is s.dtype


@pytest.mark.filterwarnings("ignore:torch.sparse.SparseTensor")
def test_older_constructors_of_sparse_tensors() -> None:
    i = [[0, 1, 1], [2, 0, 2]]
    for lib in (cr, torch):
        v = lib.tensor([3.0, 4.0, 5.0])
        s = lib.sparse.FloatTensor(lib.tensor(i), v, lib.Size([2, 3]))
        assert s.to_dense().tolist() == [[0, 0, 3], [4, 0, 5]] and s.type() == "torch.sparse.FloatTensor"
        assert isinstance(s, lib.sparse.FloatTensor) and not isinstance(s.double(), lib.sparse.FloatTensor)
        assert not isinstance(v, lib.sparse.FloatTensor)
        assert lib.sparse.LongTensor(2, 3).dtype is lib.int64 and lib.sparse.LongTensor(2, 3)._nnz() == 0
