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


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (cr.tensor(2**53), cr.tensor(2**53 + 1), "not close: 1 of 1 elements differ"),
        (cr.tensor([1.0, 2.0]), cr.tensor([1.0, 2.1]), r"at index \(1,\)"),
        ([cr.ones(2)], [cr.ones(2), cr.ones(2)], "lengths of the sequences"),
        ({"a": cr.ones(2)}, {"b": cr.ones(2)}, "keys do not match"),
        ({"a": (cr.ones(2),)}, {"a": [cr.zeros(2)]}, r"\(at \['a'\]\[0\]\)"),
        (cr.ones(2), cr.ones(3), "shapes do not match"),
        (cr.ones(2), cr.ones(2, dtype=F64), "dtypes do not match"),
        (COO, COO.to_dense(), "layouts do not match"),
        (cr.tensor(float("nan")), cr.tensor(float("nan")), "not close"),
    ],
)
def test_what_is_not_close_is_named(a, b, words):
    with pytest.raises(AssertionError, match=words):
        cr.testing.assert_close(a, b)
    with pytest.raises(AssertionError, match="mine"):
        cr.testing.assert_close(a, b, msg="mine")
    with pytest.raises(AssertionError, match=f"so: .*{words}"):
        cr.testing.assert_close(a, b, msg=lambda text: f"so: {text}")


def test_what_is_close():
    close = cr.testing.assert_close
    close([cr.ones(2)], (cr.ones(2) + 1e-7,))
    close(1.0, 1.0 + 1e-9)
    close(cr.ones(2), cr.ones(2, dtype=F64), check_dtype=False)
    close(COO, COO.to_dense(), check_layout=False)
    close(cr.tensor(float("nan")), cr.tensor(float("nan")), equal_nan=True)
    close(cr.tensor(1), cr.tensor(2), rtol=0, atol=1)
    with pytest.raises(ValueError, match="both be given"):
        close(1.0, 1.0, rtol=1e-3)
    with pytest.raises(TypeError):
        close(1.0, 1.0, atoll=1e-3)
