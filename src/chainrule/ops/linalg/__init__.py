"""Linear algebra: factorizations and solvers as core-signature ops."""
