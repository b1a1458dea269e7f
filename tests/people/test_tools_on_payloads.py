"""The tools that take tensors apart into numbers, on ragged and sparse ones."""

import pytest

import chainrule as cr

F64 = cr.float64
NEST = cr.nested.nested_tensor([cr.rand(2, dtype=F64) + 1, cr.rand(3, dtype=F64) + 1])
DEEP = cr.nested.nested_tensor([[[1.0, 2.0], [3.0]], [[4.0, 5.0, 6.0]]], dtype=F64)
COO = cr.sparse_coo_tensor([[0, 0, 1], [0, 2, 1]], [1.0, 2.0, 3.0], (2, 3), dtype=F64)
PAYLOADS = {"nest": NEST, "nest of nests": DEEP, "coo": COO, "csr": COO.to_sparse_csr()}


@pytest.mark.parametrize("x", PAYLOADS.values(), ids=PAYLOADS)
def test_verify_finds_right_derivatives_right(x):
    assert cr.verify(lambda x: (x * x).sum(), x)


@pytest.mark.parametrize("x", PAYLOADS.values(), ids=PAYLOADS)
def test_anomalies_are_found(x):
    leaf = x.clone().requires_grad_()
    with cr.autograd.detect_anomaly():
        (leaf * leaf).sum().backward()
        with pytest.raises(RuntimeError, match=r"(?i)nan"):
            ((leaf - leaf).sqrt() * 0).sum().backward()


@pytest.mark.parametrize("x", PAYLOADS.values(), ids=PAYLOADS)
def test_closeness(x):
    cr.testing.assert_close(x, x.clone())
    with pytest.raises(AssertionError):
        cr.testing.assert_close(x, x * 1.1)
