"""Sparse tensors: products, solves, sums and softmax of tensors most of whose elements are zero, through every transform.

>>> s = chainrule.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2))
>>> s @ chainrule.ones(2)
tensor([2., 3.])
>>> chainrule.func.grad(lambda s: (s @ chainrule.ones(2)).sum())(s).to_dense()
tensor([[0., 1.],
        [1., 0.]])

Filled by the ops; see docs/sparse.md.
"""
